/* time_bodies.h: steps of a program that run bodies, on the tape and, operation by operation, in
 * the model; and bodies that leave no trace, or fail. */
#ifndef COT_TIME_BODIES_H
#define COT_TIME_BODIES_H

#include "tape/time_world.h"

/* ---- bodies ---------------------------------------------------------------------------------- */

#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#define CAPTURED (*(const cot_var *)user)

BODY(wave) { return (void)n, (void)m, ys[0] = cot_add(cot_mul(cot_sin(xs[0]), CAPTURED), xs[0]), 0; }
BODY(product) { return (void)n, (void)m, ys[0] = cot_mul(xs[0], CAPTURED), 0; }
BODY(sum_of_sine) { return (void)n, (void)m, ys[0] = cot_add(xs[0], cot_sin(CAPTURED)), 0; }
BODY(sine_product) { return (void)n, (void)m, ys[0] = cot_mul(cot_sin(xs[0]), CAPTURED), 0; }
BODY(horner) { return (void)n, (void)m, ys[0] = cot_add(cot_mul(xs[0], CAPTURED), xs[1]), 0; }
BODY(indexed_sine) { return (void)n, (void)m, ys[0] = cot_sin(cot_mul(xs[1], CAPTURED)), 0; }
BODY(counted_sine) {
    (void)n, (void)m;
    ys[0] = cot_sin(cot_mul(xs[0], CAPTURED)), ys[1] = cot_add(xs[1], 1.0);
    return 0;
}
BODY(below_three) { return (void)n, (void)m, (void)user, ys[0] = cot_less(xs[1], 3.0), 0; }
BODY(diagonal) { return (void)n, (void)m, ys[0] = cot_mul(xs[0], cot_add(cot_square(CAPTURED), 2.0)), 0; }
BODY(residual) {
    return (void)n, (void)m, ys[0] = cot_sub(cot_mul(xs[0], cot_add(cot_square(xs[1]), 2.0)), CAPTURED), 0;
}
BODY(halving) { return (void)n, (void)m, ys[0] = cot_add(cot_mul(0.5, xs[0]), cot_mul(xs[1], CAPTURED)), 0; }
BODY(distance) {
    return (void)n, (void)m, ys[0] = cot_sum(cot_square(cot_sub(xs[0], cot_mul(xs[1], CAPTURED))), COT_ALL), 0;
}
BODY(nested_wave) { return (void)m, cot_checkpoint(wave, user, n, xs, 1, ys), 0; }
BODY(summed_wave) {
    return (void)n, (void)m, ys[0] = cot_sum(cot_add(cot_mul(cot_sin(xs[0]), CAPTURED), xs[0]), COT_ALL), 0;
}
BODY(failing) {
    (void)m;
    ys[0] = cot_square(cot_mul(xs[n - 1], CAPTURED));
    return 1;
}
BODY(failing_inside) { return (void)m, cot_checkpoint(failing, user, n, xs, 1, ys), 0; }

static inline int call_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    for (int64_t i = 0; i < y->size; i++) {
        if (y->dtype == COT_F32) ((float *)y->data)[i] = ((float *)xs[0].data)[i] * ((float *)xs[1].data)[i];
        else ((double *)y->data)[i] = ((double *)xs[0].data)[i] * ((double *)xs[1].data)[i];
    }
    return 0;
}
static inline int call_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, xs[1]), xbars[1] = cot_mul(ybar, xs[0]);
    return 0;
}
static const cot_custom call_product = {.name = "product", .value = call_value, .vjp = call_vjp};

BODY(given_product) { return (void)n, (void)m, (void)user, ys[0] = cot_mul(xs[0], xs[1]), 0; }
static inline int given_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                            void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    xbars[0] = cot_mul(ybars[0], xs[1]), xbars[1] = cot_mul(ybars[0], xs[0]);
    return 0;
}
static const cot_fn_rules given_rules = {.name = "given", .vjp = given_vjp};

enum {
    CHECKPOINT,
    COND,
    VMAP,
    SCAN,
    FORI,
    WHILE,
    SOLVE,
    ROOT,
    FIXED,
    MINIMUM,
    CALL,
    GIVEN,
    NESTED,
    VALUE_AND_GRAD,
    LINEARIZE,
    DOT,
    DOT_OF,
    BODIES
};
static const char *const body_names[BODIES] = {
    "checkpoint",         "cond",           "vmap",        "scan",     "fori",  "while",
    "linear_solve",       "root",           "fixed_point", "minimize", "call",  "custom_fn",
    "nested checkpoints", "value_and_grad", "linearize",   "dot",      "dot_of"};

/* Runs a body. Operand c goes with x: captured, or as the second input. This records the library's
 * side; the model's side is below. */
static inline cot_var run_body(world *w, int which, int x, int c, const step *s, cot_linear **linear) {
    cot_var          in[2] = {at(w, x), at(w, c)}, user = at(w, c), y = {w->t, UINT64_MAX}, out[2] = {y, y}, extra;
    cot_loop_options few = {.states = (int)(s->r[3] % 3)};
    switch (which) {
    case CHECKPOINT: cot_checkpoint(wave, &user, 1, in, 1, &y); break;
    case COND: cot_cond(cot_number(s->r[3] & 1), product, sum_of_sine, &user, 1, in, 1, &y); break;
    case VMAP: cot_vmap(sine_product, &user, 1, in, NULL, 1, &y, NULL); break;
    case SCAN:
        /* the start is the captured value, too */
        in[0] = at(w, c), in[1] = at(w, x);
        cot_scan(horner, &user, -1, 1, in, 1, in + 1, &y, 0, NULL, &few);
        break;
    case FORI: cot_fori(indexed_sine, &user, 0, 3, 1, in, &y, &few); break;
    case WHILE:
        in[1] = cot_data(w->t, COT_F64, COT_SCALAR, &(double){0});
        cot_while(below_three, counted_sine, &user, 2, in, out, &few);
        y = out[0];
        break;
    case SOLVE: y = cot_linear_solve(diagonal, &user, in[0], NULL); break;
    case ROOT: y = cot_root(residual, &user, NULL, cot_detach(in[0]), 1, in, NULL); break;
    case FIXED: y = cot_fixed_point(halving, &user, NULL, cot_detach(in[0]), 1, in, NULL); break;
    case MINIMUM: y = cot_minimize(distance, &user, NULL, cot_detach(in[0]), 1, in, NULL); break;
    case CALL: y = cot_call(&call_product, 2, in, NULL); break;
    case GIVEN: cot_custom_fn(&given_rules, given_product, NULL, 2, in, 1, &y); break;
    case NESTED: cot_checkpoint(nested_wave, &user, 1, in, 1, &y); break;
    case VALUE_AND_GRAD: cot_value_and_grad(summed_wave, &user, 1, in, &y, &extra); break;
    case LINEARIZE: cot_linearize(wave, &user, 1, in, 1, &y, linear); break;
    case DOT: y = cot_dot(in[0], in[1]); break;
    case DOT_OF: y = cot_dot_of(2, in, (cot_var[2]){in[1], in[1]}); break;
    }
    return y;
}

static inline int hide(world *w, model_op op, int a, int b, double number, int part) {
    int i = model_push(&w->m, op, a, b, number);
    w->m.node[i].hidden = true, w->m.node[i].part = part;
    return i;
}

static inline int hidden_wave(world *w, int x, int c, int part) {
    return hide(w, M_ADD, hide(w, M_MUL, hide(w, M_SIN, x, -1, 0, part), c, 0, part), x, 0, part);
}

/* The same in operations of the model. */
static inline int model_body(world *w, int which, int x, int c, const step *s, int part) {
    int z = x;
    switch (which) {
    case LINEARIZE: /* by an alias of x, which is active though x be a constant */
        z = hide(w, M_SAME, x, -1, 0, part);
        w->m.node[z].active = w->m.no_grad == 0;
        return hidden_wave(w, z, c, part);
    case CHECKPOINT: case NESTED: return hidden_wave(w, x, c, part);
    case VALUE_AND_GRAD:
        z = hide(w, M_SAME, x, -1, 0, part);
        w->m.node[z].active = w->m.no_grad == 0;
        z = hidden_wave(w, z, c, part);
        return w->m.node[z].wide ? hide(w, M_SUM, z, -1, 0, part) : z;
    case COND:
        return s->r[3] & 1 ? hide(w, M_MUL, x, c, 0, part) : hide(w, M_ADD, x, hide(w, M_SIN, c, -1, 0, part), 0, part);
    case VMAP: return hide(w, M_MUL, hide(w, M_SIN, x, -1, 0, part), c, 0, part);
    case SCAN:
        z = c;
        for (int k = 0; k < WIDE; k++)
            z = hide(w, M_ADD, hide(w, M_MUL, z, c, 0, part), hide(w, M_INDEX, x, -1, k, part), 0, part);
        return z;
    case FORI: case WHILE:
        for (int k = 0; k < 3; k++) z = hide(w, M_SIN, hide(w, M_MUL, z, c, 0, part), -1, 0, part);
        return z;
    case SOLVE: return hide(w, M_DIV, x, hide(w, M_SHIFT, hide(w, M_SQUARE, c, -1, 0, part), -1, 2, part), 0, part);
    case ROOT: return hide(w, M_DIV, c, hide(w, M_SHIFT, hide(w, M_SQUARE, x, -1, 0, part), -1, 2, part), 0, part);
    case DOT: return hide(w, M_SUM, hide(w, M_MUL, x, c, 0, part), -1, 0, part);
    case DOT_OF: return hide(w, M_ADD, hide(w, M_MUL, x, c, 0, part), hide(w, M_MUL, c, c, 0, part), 0, part);
    case FIXED: return hide(w, M_SCALE, hide(w, M_MUL, x, c, 0, part), -1, 2, part);
    default: return hide(w, M_MUL, x, c, 0, part);
    }
}

static inline void body(world *w, const step *s) {
    int  which = (int)(s->r[0] % BODIES);
    bool alike = which == CALL || which == GIVEN, solver = which >= SOLVE && which <= MINIMUM;
    bool array = which == VMAP || which == SCAN || which == DOT;
    int  x = pick(w, s->r[1], (array ? WIDE_ONLY : which == DOT_OF ? SCALAR_ONLY : ANY) | (solver ? F64_ONLY : 0));
    if (x < 0) return;
    int c = pick(w, s->r[2], which == DOT || (alike && w->m.node[x].wide) ? WIDE_ONLY : SCALAR_ONLY);
    if (c < 0 || w->m.node[c].narrow != w->m.node[x].narrow || w->m.parts == MODEL_PARTS) return;
    if (which == LINEARIZE && w->handle_count == HANDLES) return;
    int         part = w->m.parts++;
    cot_linear *linear = NULL;
    w->m.part[part] = (model_part){2, {x, c}, w->m.clock, which == VALUE_AND_GRAD || which == LINEARIZE};
    int         from = w->m.count, z = model_body(w, which, x, c, s, part);
    model_node *n = &w->m.node[z];
    n->hidden = false;
    n->var = run_body(w, which, x, c, s, &linear);
    model_own(&w->m, z);
    /* the result counts as saved */
    if (alike || solver) w->m.part[part].in[w->m.part[part].n++] = z;
    adopt(w, z, body_names[which]);
    TELL(w, "  of %%%d with %%%d\n", x, c);
    if (which != LINEARIZE) return;
    w->handles[w->handle_count++] = (handle){.y = z, .x = from, .count = w->m.count, .linear = linear};
}

/* Work that is run and thrown away. It must leave no trace in time. */
static inline void noise(world *w, const step *s) {
    cot_var q = cot_scalar(w->t, 1.5), r, h[1];
    int     which = (int)(s->r[0] % 8);
    if (which == 0) cot_checkpoint(wave, &q, 1, &q, 1, &r);
    else if (which == 1) cot_fn_hessian(summed_wave, &q, 1, &q, &r, h);
    else if (which == 2) cot_fori(indexed_sine, &q, 0, 2, 1, &q, &r, NULL);
    else if (which == 3) cot_root(residual, &q, NULL, q, 1, &q, NULL);
    else if (which == 4) cot_minimize(distance, &q, NULL, q, 1, &q, NULL);
    else if (which == 5) cot_linear_solve(diagonal, &q, q, NULL);
    else if (which == 6) cot_fixed_point(halving, &q, NULL, q, 1, &q, NULL);
    else cot_value_and_grad(summed_wave, &q, 1, &q, &r, h);
    if (cot_tape_status(w->t) != COT_OK) TROUBLE(w, "noise %d: %s", which, cot_tape_message(w->t));
    TELL(w, "noise %d\n", which);
}

static inline void bad_body(world *w, const step *s) {
    int     x = pick(w, s->r[0], ANY), c = pick(w, s->r[1], SCALAR_ONLY);
    cot_fn  f = s->r[2] & 1 ? failing : failing_inside;
    cot_var y;
    if (x < 0 || c < 0) return;
    cot_var in = at(w, x), user = at(w, c);
    switch (s->r[3] % 4) {
    case 0: cot_checkpoint(f, &user, 1, &in, 1, &y); break;
    case 1: cot_fori(f, &user, 0, 2, 1, &in, &y, NULL); break;
    case 2: cot_linear_solve(f, &user, in, NULL); break;
    default: cot_root(f, &user, NULL, in, 1, &in, NULL); break;
    }
    if (cot_tape_status(w->t) != COT_CUSTOM) TROUBLE(w, "a body that fails: %s", cot_tape_message(w->t));
    TELL(w, "a body that fails\n");
    recover(w, s->r[4]);
}

#endif
