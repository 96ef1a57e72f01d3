/* step_derive.c: derivatives inside a program, as values, so that programs have derivatives of
 * higher order. */
#include "program.h"

static const cot_axes all = {-1, false, {0}};

static cot_var to_scalar(cot_var x) { return cot_sum(cot_mul(cot_sin(x), cot_number(0.5)), all); }

STEP_FUNCTION(backward) {
    run  *r = f->run;
    value x = float_of(f, c);
    if (x.name < 0 || f->depth > 0) return;
    say(f, "cot_backward(the sum of sin %s / 2)", name_of(x));
    cot_backward(to_scalar(x.var));
    put_status(f);
    for (int k = 0; k < r->leaves; k++) {
        outcome_open(r->out, "gradient of v%d so far", r->leaf[k].name);
        cot_var g = cot_grad(r->leaf[k].var);
        if (cot_is_valid(g)) outcome_value(r->out, g);
        outcome_status(r->out, r->tape);
    }
    if (chance(c, 2)) say(f, "cot_tape_zero_grads(t)"), cot_tape_zero_grads(r->tape);
}

STEP_FUNCTION(gradient) {
    value x = float_of(f, c), by = float_of(f, c);
    if (x.name < 0 || by.name < 0) return;
    cot_var g = {NULL, 0};
    say(f, "cot_grad_of(the sum of sin %s / 2, 1, %s, &g)", name_of(x), name_of(by));
    cot_grad_of(to_scalar(x.var), 1, &by.var, &g);
    put(f, g);
}

STEP_FUNCTION(tangent) {
    value x = float_of(f, c), by = float_of(f, c);
    if (x.name < 0 || by.name < 0) return;
    cot_var one = cot_number(0.5);
    say(f, "cot_jvp(%s, 1, %s, 0.5)", name_of(x), name_of(by));
    put(f, cot_jvp(x.var, 1, &by.var, &one));
}

STEP_FUNCTION(taylor) {
    value x = float_of(f, c), by = float_of(f, c);
    if (x.name < 0 || by.name < 0 || cot_size(x.var) > 60) return;
    cot_var one = cot_number(0.5), out[4] = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    int     order = 1 + (int)choose(c, 3);
    say(f, "cot_taylor(%s, 1, %s, 1, 0.5, %d, …)", name_of(x), name_of(by), order);
    cot_taylor(x.var, 1, &by.var, 1, &one, order, out);
    put(f, out[order]);
}

/* Derivatives of the steps behind this one, as a function. */
STEP_FUNCTION(function_form) {
    value x = pick(f, c, is_small, no_value);
    body  b = body_of(f, c);
    if (x.name < 0 || b.from == b.to) return;
    cot_var y = {NULL, 0}, d = {NULL, 0}, one = cot_number(1);
    b.like_inputs = true;
    switch (choose(c, 4)) {
    case 0:
        say(f, "cot_fn_vjp(%s, seed 1) of", name_of(x)), cot_fn_vjp(body_play, &b, 1, &x.var, 1, &y, &one, &d);
        break;
    case 1:
        say(f, "cot_fn_jvp(%s, tangent 1) of", name_of(x)), cot_fn_jvp(body_play, &b, 1, &x.var, &one, 1, &y, &d);
        break;
    case 2:
        if (cot_size(x.var) > 12) return;
        say(f, "cot_fn_jacobian(%s) of", name_of(x)), cot_fn_jacobian(body_play, &b, 1, &x.var, 1, &y, COT_AUTO, &d);
        break;
    default: {
        cot_linear *linear = NULL;
        say(f, "cot_linearize(%s), and its vjp with 1, of", name_of(x));
        if (cot_linearize(body_play, &b, 1, &x.var, 1, &y, &linear) == COT_OK) cot_linear_vjp(linear, &one, &d);
    }
    }
    if (cot_tape_status(f->run->tape) != COT_OK) {
        put_status(f);
        return;
    }
    put(f, y);
    if (cot_is_valid(d)) put(f, d);
}
