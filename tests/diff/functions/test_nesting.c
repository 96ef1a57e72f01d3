/* test_nesting.c: transformations inside each other, and unusual bodies. Each is compared with the
 * same thing written out in plain C: value, gradient in numbers and recorded, tangents, second
 * order. */
/* ctest: timeout=240 */
#include "support/pair_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cot_var like(cot_var x, double v) { return cot_full(x.tape, cot_dtype_of(x), cot_shape_of(x), v); }

/* ---- scan inside scan: the inner body uses the outer carry, and constants that are tensors --- */

BODY(inner_step) {
    UNUSED;
    const cot_var *outer = user; /* the outer carry, and a value from outside of both */
    double         weights[3] = {0.5, -0.25, 1};
    cot_var        w = cot_cast(cot_data(xs[0].tape, COT_F64, COT_SHAPE(3), weights), cot_dtype_of(xs[0]));
    ys[0] = cot_sin(cot_add(cot_mul(cot_mul(w, xs[0]), outer[0]), outer[1]));
    return 0;
}
BODY(outer_step) {
    UNUSED;
    cot_var both[2] = {xs[0], *(cot_var *)user};
    cot_scan(inner_step, both, 2, 1, xs, 0, NULL, ys, 0, NULL, NULL);
    return 0;
}
WHOLE(nested_scans) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(outer_step, &a, 3, 1, x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = 1});
    return y;
}
WHOLE(nested_scans_plain) {
    IGNORE;
    cot_var y = x[0];
    for (int i = 0; i < 3; i++) {
        cot_var both[2] = {y, x[1]};
        for (int j = 0; j < 2; j++) inner_step(1, &y, 1, &y, both);
    }
    return y;
}

/* ---- scan inside the function of a root, root inside a scan ---------------------------------- */

BODY(contract) { UNUSED; ys[0] = cot_mul(0.25, cot_sin(cot_add(xs[0], *(cot_var *)user))); return 0; }
BODY(scan_equation) {
    UNUSED;
    cot_var theta = xs[1], y;
    cot_scan(contract, &theta, 3, 1, xs, 0, NULL, &y, 0, NULL, NULL);
    ys[0] = cot_sub(cot_add(xs[0], y), *(cot_var *)user);
    return 0;
}
BODY(plain_equation) {
    UNUSED;
    cot_var y = xs[0], theta = xs[1];
    for (int k = 0; k < 3; k++) contract(1, &y, 1, &y, &theta);
    ys[0] = cot_sub(cot_add(xs[0], y), *(cot_var *)user);
    return 0;
}
WHOLE(scan_in_root) { IGNORE; cot_var b = x[1]; return cot_root(scan_equation, &b, NULL, like(x[0], 0), 1, x, NULL); }
WHOLE(scan_in_root_plain) {
    IGNORE;
    cot_var b = x[1];
    return cot_root(plain_equation, &b, NULL, like(x[0], 0), 1, x, NULL);
}

BODY(root_step) {
    UNUSED;
    cot_var b = *(cot_var *)user;
    ys[0] = cot_root(plain_equation, &b, NULL, xs[0], 1, xs, NULL);
    ys[1] = cot_square(ys[0]);
    return 0;
}
WHOLE(root_in_scan) {
    IGNORE;
    cot_var b = x[1], last, ys;
    cot_scan(root_step, &b, 2, 1, x, 0, NULL, &last, 1, &ys, NULL);
    return cot_add(last, cot_sum(ys, COT_AXES(0)));
}
WHOLE(root_in_scan_plain) {
    IGNORE;
    cot_var b = x[1], y[2] = {x[0]}, sum = like(x[0], 0);
    for (int k = 0; k < 2; k++) {
        root_step(1, y, 2, y, &b);
        sum = cot_add(sum, y[1]);
    }
    return cot_add(y[0], sum);
}

BODY(diagonal) { UNUSED; ys[0] = cot_mul(cot_add(cot_square(*(cot_var *)user), 1.0), xs[0]); return 0; }
BODY(solve_step) {
    UNUSED;
    cot_var a = *(cot_var *)user, d = cot_add(xs[0], a);
    ys[0] = cot_linear_solve(diagonal, &d, xs[0], NULL);
    return 0;
}
WHOLE(solve_in_scan) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(solve_step, &a, 2, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
WHOLE(solve_in_scan_plain) {
    IGNORE;
    cot_var y = x[0];
    for (int k = 0; k < 2; k++) y = cot_div(y, cot_add(cot_square(cot_add(y, x[1])), 1.0));
    return y;
}

/* ---- conditions ------------------------------------------------------------------------------ */

BODY(double_it) { UNUSED; ys[0] = cot_mul(xs[0], cot_add(cot_sigmoid(*(cot_var *)user), 2.0)); return 0; }
BODY(triple_it) { UNUSED; ys[0] = cot_mul(xs[0], 3.0); return 0; }
BODY(small) { UNUSED; ys[0] = cot_less(cot_sum(cot_square(xs[0]), COT_ALL), 1e4); return 0; }
BODY(either) {
    UNUSED;
    cot_cond(cot_less(cot_sum(cot_square(xs[0]), COT_ALL), 50.0), double_it, triple_it, user, 1, xs, 1, ys);
    return 0;
}
WHOLE(cond_in_while) {
    IGNORE;
    cot_var start = cot_add(cot_sigmoid(x[0]), 0.5), a = x[1], y;
    cot_while(small, either, &a, 1, &start, &y, &(cot_loop_options){.states = 2});
    return y;
}
WHOLE(cond_in_while_plain) {
    IGNORE;
    cot_var y = cot_add(cot_sigmoid(x[0]), 0.5), a = x[1];
    for (;;) {
        double size = cot_value(cot_sum(cot_square(cot_cast(y, COT_F64)), COT_ALL));
        if (size >= 1e4) return y;
        (size < 50 ? double_it : triple_it)(1, &y, 1, &y, &a);
    }
}

/* A branch that does not run may be one that would not end, or has no solution. */
BODY(always) { UNUSED; ys[0] = cot_integer(1); return 0; }
BODY(no_solution) { UNUSED; ys[0] = cot_add(cot_square(xs[0]), 1.0); return 0; }
BODY(endless) {
    UNUSED;
    cot_var y;
    cot_while(always, triple_it, NULL, 1, xs, &y, NULL);
    ys[0] = cot_add(cot_root(no_solution, NULL, NULL, y, 0, NULL, NULL),
                    cot_cholesky(cot_neg(cot_matmul(xs[0], cot_transpose(xs[0])))));
    return 0;
}
BODY(sine) { UNUSED; ys[0] = cot_sin(xs[0]); return 0; }
WHOLE(untaken) {
    IGNORE;
    cot_var y;
    cot_cond(cot_constant(x[0].tape, 0), endless, sine, NULL, 1, x, 1, &y);
    return y;
}
WHOLE(untaken_plain) { IGNORE; return cot_sin(x[0]); }

/* ---- derivatives inside bodies --------------------------------------------------------------- */

BODY(valley) {
    UNUSED;
    ys[0] = cot_sum(cot_mul(*(cot_var *)user, cot_mul(cot_square(xs[0]), cot_cos(xs[0]))), COT_ALL);
    return 0;
}
BODY(descend) {
    UNUSED;
    cot_var g, a = *(cot_var *)user;
    cot_value_and_grad(valley, &a, 1, xs, NULL, &g);
    ys[0] = cot_sub(xs[0], cot_mul(0.1, g));
    return 0;
}
WHOLE(grad_in_scan) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(descend, &a, 3, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
/* d/dx x² cos x = 2 x cos x - x² sin x */
static cot_var descended(cot_var x, cot_var a) {
    cot_var g = cot_sub(cot_mul(2.0, cot_mul(x, cot_cos(x))), cot_mul(cot_square(x), cot_sin(x)));
    return cot_sub(x, cot_mul(0.1, cot_mul(a, g)));
}
WHOLE(grad_in_scan_plain) {
    IGNORE;
    cot_var y = x[0];
    for (int k = 0; k < 3; k++) y = descended(y, x[1]);
    return y;
}
WHOLE(grad_in_cond) {
    IGNORE;
    cot_var a = x[1], y;
    cot_cond(cot_constant(a.tape, 1), descend, sine, &a, 1, x, 1, &y);
    return y;
}
WHOLE(grad_in_cond_plain) { IGNORE; return descended(x[0], x[1]); }

BODY(scanned_sum) {
    UNUSED;
    cot_var y;
    cot_scan(contract, user, 3, 1, xs, 0, NULL, &y, 0, NULL, NULL);
    ys[0] = cot_sum(cot_mul(y, xs[0]), COT_ALL);
    return 0;
}
BODY(plain_sum) {
    UNUSED;
    cot_var y = xs[0];
    for (int k = 0; k < 3; k++) contract(1, &y, 1, &y, user);
    ys[0] = cot_sum(cot_mul(y, xs[0]), COT_ALL);
    return 0;
}
BODY(gradient_of_scanned) { UNUSED; cot_value_and_grad(scanned_sum, user, 1, xs, NULL, ys); return 0; }
BODY(gradient_of_plain) { UNUSED; cot_value_and_grad(plain_sum, user, 1, xs, NULL, ys); return 0; }
static cot_var hessian_times(cot_fn gradient, const cot_var *x) {
    cot_var a = x[1], direction = cot_cos(x[0]), g, hv, gg;
    cot_fn_jvp(gradient, &a, 1, x, &direction, 1, &g, &hv);     /* forward over reverse */
    /* reverse over reverse: the same number */
    cot_fn_vjp(gradient, &a, 1, x, 1, &g, &direction, &gg);
    return cot_add(hv, cot_mul(0.5, gg));
}
WHOLE(jvp_of_grad_of_scan) { IGNORE; return hessian_times(gradient_of_scanned, x); }
WHOLE(jvp_of_grad_of_scan_plain) { IGNORE; return hessian_times(gradient_of_plain, x); }

BODY(linear_step) {
    UNUSED;
    cot_linear *l;
    cot_var     y, dy, g;
    cot_linearize(sine, NULL, 1, xs, 1, &y, &l);
    cot_linear_jvp(l, xs, &dy);
    cot_linear_vjp(l, &y, &g);
    ys[0] = cot_add(dy, g);
    return 0;
}
WHOLE(linearize_in_scan) {
    IGNORE;
    cot_var y;
    cot_scan(linear_step, NULL, 2, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
WHOLE(linearize_in_scan_plain) {
    IGNORE;
    cot_var y = x[0];
    for (int k = 0; k < 2; k++) y = cot_mul(cot_cos(y), cot_add(y, cot_sin(y)));
    return y;
}

/* ---- checkpoints, functions with rules of their own ------------------------------------------ */

BODY(noisy) { /* random numbers replay exactly */
    UNUSED;
    cot_var u = cot_uniform(xs[0].tape, cot_key_of(7), cot_dtype_of(xs[0]), cot_shape_of(xs[0]), -1, 1);
    ys[0] = cot_exp(cot_mul(u, cot_mul(xs[0], *(cot_var *)user)));
    return 0;
}
BODY(checkpoint_inside) { UNUSED; cot_var y; cot_checkpoint(noisy, user, 1, xs, 1, &y); ys[0] = cot_sin(y); return 0; }
WHOLE(nested_checkpoints) { IGNORE; cot_var a = x[1], y; cot_checkpoint(checkpoint_inside, &a, 1, x, 1, &y); return y; }
WHOLE(nested_checkpoints_plain) { IGNORE; cot_var a = x[1], y; noisy(1, x, 1, &y, &a); return cot_sin(y); }

static int sine_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                    void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    cot_var c;
    /* a rule may use bodies too */
    cot_checkpoint(sine, NULL, 1, (cot_var[]){cot_add(xs[0], 1.5707963267948966)}, 1, &c);
    xbars[0] = cot_mul(ybars[0], c);
    return 0;
}
static const cot_fn_rules sine_rules = {"my_sine", sine_vjp, NULL};
BODY(ruled_step) { UNUSED; cot_custom_fn(&sine_rules, sine, NULL, 1, xs, 1, ys); return 0; }
WHOLE(rules_in_scan) { IGNORE; cot_var y; cot_scan(ruled_step, NULL, 3, 1, x, 0, NULL, &y, 0, NULL, NULL); return y; }
WHOLE(rules_in_scan_plain) { IGNORE; return cot_sin(cot_sin(cot_sin(x[0]))); }

/* ---- unusual bodies -------------------------------------------------------------------------- */

BODY(in_place) {
    UNUSED;
    cot_var z = cot_copy(xs[0]);
    cot_mul_into(&z, *(cot_var *)user);
    cot_update_slice(&z, 0, 0, 1, 1, cot_sin(cot_slice(xs[0], 0, 1, 2, 1)));
    ys[0] = z;
    return 0;
}
WHOLE(writes_in_place) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(in_place, &a, 3, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
WHOLE(writes_in_place_plain) {
    IGNORE;
    cot_var y = x[0], rest;
    for (int k = 0; k < 3; k++) {
        rest = cot_mul(cot_slice(y, 0, 1, COT_END, 1), x[1]);
        y = cot_concat(2, (cot_var[]){cot_sin(cot_slice(y, 0, 1, 2, 1)), rest}, 0);
    }
    return y;
}

/* carries (p, q, r) -> (q, captured, r); out: p, p again, a constant, a captured value */
BODY(hands_on) {
    UNUSED;
    ys[0] = xs[1], ys[1] = *(cot_var *)user, ys[2] = xs[2];
    ys[3] = ys[4] = xs[0];
    ys[5] = cot_full(xs[0].tape, cot_dtype_of(xs[0]), COT_SCALAR, 3);
    ys[6] = *(cot_var *)user;
    return 0;
}
WHOLE(hands_values_on) {
    IGNORE;
    cot_var a = cot_exp(x[1]), init[3] = {x[0], cot_sin(x[0]), x[0]}, final[3], y[4];
    cot_scan(hands_on, &a, 3, 3, init, 0, NULL, final, 4, y, NULL);
    cot_var sum =
        cot_add(cot_add(cot_mul(final[0], 2.0), cot_mul(final[1], final[2])), cot_mul(cot_sum(y[2], COT_ALL), x[0]));
    for (int k = 0; k < 2; k++) sum = cot_add(sum, cot_square(cot_sum(y[k], COT_AXES(0))));
    return cot_add(sum, cot_sum(y[3], COT_AXES(0)));
}
WHOLE(hands_values_on_plain) {
    IGNORE;
    cot_var a = cot_exp(x[1]), p = cot_add(cot_add(x[0], cot_sin(x[0])), a);
    cot_var sum = cot_add(cot_add(cot_mul(a, 2.0), cot_mul(a, x[0])), cot_mul(9.0, x[0]));
    return cot_add(cot_add(sum, cot_mul(2.0, cot_square(p))), cot_mul(3.0, a));
}

/* carried values that change places, and views of themselves */
BODY(swaps) {
    UNUSED;
    ys[0] = xs[1], ys[1] = xs[2], ys[2] = cot_flip(xs[0], COT_ALL), ys[3] = cot_flip(xs[3], COT_ALL);
    return 0;
}
WHOLE(swapped) {
    IGNORE;
    cot_var init[4] = {x[0], cot_sin(x[0]), x[1], cot_exp(x[0])}, y[4];
    cot_scan(swaps, NULL, 5, 4, init, 0, NULL, y, 0, NULL, &(cot_loop_options){.states = 1});
    return cot_add(cot_mul(y[0], y[1]), cot_mul(cot_square(y[2]), y[3]));
}
WHOLE(swapped_plain) {
    IGNORE;
    cot_var a[4] = {x[0], cot_sin(x[0]), x[1], cot_exp(x[0])};
    for (int k = 0; k < 5; k++) {
        cot_var b[4];
        swaps(4, a, 4, b, NULL);
        memcpy(a, b, sizeof a);
    }
    return cot_add(cot_mul(a[0], a[1]), cot_mul(cot_square(a[2]), a[3]));
}

BODY(reads_nothing) {
    UNUSED;
    ys[0] = cot_sin(*(cot_var *)user), ys[1] = cot_full(xs[0].tape, cot_dtype_of(xs[0]), COT_SHAPE(2), 5);
    return 0;
}
WHOLE(unused_inputs) {
    IGNORE;
    cot_var a = x[1], last, y;
    cot_scan(reads_nothing, &a, 2, 1, x + 1, 0, NULL, &last, 1, &y, NULL);
    return cot_add(cot_mul(x[0], last), cot_sum(y, COT_ALL));
}
WHOLE(unused_inputs_plain) { IGNORE; return cot_add(cot_mul(x[0], cot_sin(x[1])), 20.0); }

BODY(step_with_xs) { UNUSED; ys[0] = cot_mul(xs[0], xs[1]), ys[1] = cot_sin(ys[0]); return 0; }
WHOLE(no_steps) {
    IGNORE;
    cot_var none = cot_slice(cot_expand_dims(x[0], 0), 0, 0, 0, 1), last, y, counted, until;
    cot_scan(step_with_xs, NULL, -1, 1, x, 1, &none, &last, 1, &y, NULL);
    cot_fori(step_with_xs, NULL, 4, 2, 0, NULL, NULL, NULL);
    cot_var a = x[1];
    cot_scan(contract, &a, 0, 1, x, 0, NULL, &counted, 0, NULL, NULL);
    cot_var big = cot_add(cot_square(x[0]), 1e4);
    cot_while(small, double_it, &a, 1, &big, &until, NULL);
    return cot_add(cot_add(cot_mul(last, counted), cot_sum(y, COT_AXES(0))), cot_mul(1e-4, until));
}
WHOLE(no_steps_plain) { IGNORE; return cot_add(cot_square(x[0]), cot_mul(1e-4, cot_add(cot_square(x[0]), 1e4))); }

/* values without elements, through everything */
BODY(same_sine) { UNUSED; ys[0] = cot_sin(xs[0]); return 0; }
BODY(sub_theta) { UNUSED; ys[0] = cot_sub(xs[0], xs[1]); return 0; }
WHOLE(empty_values) {
    IGNORE;
    cot_var nothing = cot_slice(x[0], 0, 0, 0, 1), y[4];
    cot_scan(same_sine, NULL, 3, 1, &nothing, 0, NULL, y, 0, NULL, NULL);
    cot_checkpoint(same_sine, NULL, 1, &nothing, 1, y + 1);
    y[2] = cot_linear_solve(same_sine, NULL, nothing, NULL);
    y[3] = cot_root(sub_theta, NULL, NULL, nothing, 1, &nothing, NULL);
    cot_var sum = cot_sin(x[0]);
    for (int k = 0; k < 4; k++) sum = cot_add(sum, cot_sum(y[k], COT_ALL));
    return sum;
}

/* carried beside: a count, a flag, and floats of fewer bits */
BODY(mixed) {
    UNUSED;
    ys[0] = cot_where(xs[2], cot_mul(xs[0], 2.0), cot_sin(xs[0]));
    ys[1] = cot_add(xs[1], 1);
    ys[2] = cot_logical_not(xs[2]);
    ys[3] = cot_mul(xs[3], 0.5);
    ys[4] = cot_add(xs[4], cot_cast(xs[3], COT_F32));
    return 0;
}
WHOLE(mixed_dtypes) {
    IGNORE;
    int64_t five = 5;
    bool    yes = true;
    cot_tape *t = x[0].tape;
    cot_var   init[5] = {x[0], cot_data(t, COT_I64, COT_SCALAR, &five), cot_data(t, COT_BOOL, COT_SCALAR, &yes),
                         cot_cast(cot_constant(t, 2), COT_BF16), cot_cast(cot_mul(x[1], 0.0), COT_F32)},
            out[5];
    cot_scan(mixed, NULL, 3, 5, init, 0, NULL, out, 0, NULL, NULL);
    if (cot_tape_status(t) == COT_OK) {
        assert_int_equal(cot_dtype_of(out[1]), COT_I64);
        assert_int_equal(cot_dtype_of(out[2]), COT_BOOL);
        assert_int_equal(cot_dtype_of(out[3]), COT_BF16);
        assert_int_equal(cot_dtype_of(out[4]), COT_F32);
        assert_true(cot_value(out[1]) == 8 && cot_value(out[2]) == 0 && cot_value(out[3]) == 0.25 &&
                    cot_value(out[4]) == 3.5);
    }
    return cot_add(cot_mul(out[0], cot_cast(out[1], cot_dtype_of(x[0]))), cot_cast(out[4], cot_dtype_of(x[0])));
}
WHOLE(mixed_dtypes_plain) { IGNORE; return cot_add(cot_mul(8.0, cot_mul(2.0, cot_sin(cot_mul(2.0, x[0])))), 3.5); }

/* a root and loops of constants alone inside a body: while it is recorded their values are
 * examples */
BODY(two_less) { UNUSED; ys[0] = cot_sub(cot_square(xs[0]), 2.0); return 0; }
BODY(below_nine) { UNUSED; ys[0] = cot_less(xs[0], 9.0); return 0; }
BODY(constant_inside) { UNUSED; ys[0] = cot_root(two_less, NULL, NULL, xs[0], 0, NULL, NULL); return 0; }
BODY(constant_parts) {
    UNUSED;
    cot_tape *t = xs[0].tape;
    cot_var   one = cot_full(t, cot_dtype_of(xs[0]), COT_SCALAR, 1),
            root  = cot_root(two_less, NULL, NULL, one, 0, NULL, NULL), ten, once;
    cot_while(below_nine, triple_it, NULL, 1, &one, &ten, NULL);
    cot_checkpoint(constant_inside, NULL, 1, &one, 1, &once);
    ys[0] = cot_mul(cot_sin(xs[0]), cot_add(cot_add(root, ten), once));
    return 0;
}
WHOLE(constants_alone) {
    IGNORE;
    cot_var y;
    cot_scan(constant_parts, NULL, 2, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
WHOLE(constants_alone_plain) {
    IGNORE;
    double factor = sqrt(2) + 9 + sqrt(2);
    return cot_mul(factor, cot_sin(cot_mul(factor, cot_sin(x[0]))));
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const pair pairs[] = {
    {"scan in scan", nested_scans, nested_scans_plain, 2, {{1, 3}, {0}}, false},
    {"scan in root", scan_in_root, scan_in_root_plain, 2, {{1, 2}, {0}}, false},
    {"scan in root of a matrix", scan_in_root, scan_in_root_plain, 2, {{2, 2, 2}, {0}}, false},
    {"root in scan", root_in_scan, root_in_scan_plain, 2, {{1, 2}, {1, 2}}, false},
    {"linear_solve in scan", solve_in_scan, solve_in_scan_plain, 2, {{2, 2, 2}, {0}}, false},
    {"cond in while", cond_in_while, cond_in_while_plain, 2, {{1, 2}, {0}}, false},
    {"a branch not taken", untaken, untaken_plain, 1, {{2, 2, 2}}, false},
    {"value_and_grad in scan", grad_in_scan, grad_in_scan_plain, 2, {{1, 3}, {0}}, false},
    {"value_and_grad in cond", grad_in_cond, grad_in_cond_plain, 2, {{1, 3}, {0}}, false},
    {"jvp of grad of scan", jvp_of_grad_of_scan, jvp_of_grad_of_scan_plain, 2, {{1, 2}, {0}}, false},
    {"linearize in scan", linearize_in_scan, linearize_in_scan_plain, 1, {{1, 2}}, false},
    {"checkpoint in checkpoint", nested_checkpoints, nested_checkpoints_plain, 2, {{1, 3}, {0}}, false},
    {"custom_fn in scan", rules_in_scan, rules_in_scan_plain, 1, {{1, 3}}, false},
    {"writes in place", writes_in_place, writes_in_place_plain, 2, {{1, 3}, {0}}, false},
    {"values handed on", hands_values_on, hands_values_on_plain, 2, {{0}, {0}}, false},
    {"values handed on, tensors", hands_values_on, hands_values_on_plain, 2, {{1, 2}, {1, 2}}, false},
    {"carried values change places", swapped, swapped_plain, 2, {{1, 3}, {1, 3}}, false},
    {"inputs not used", unused_inputs, unused_inputs_plain, 2, {{1, 2}, {1, 2}}, false},
    {"constants alone", constants_alone, constants_alone_plain, 1, {{1, 2}}, false},
    {"no steps", no_steps, no_steps_plain, 2, {{1, 2}, {0}}, false},
    {"no elements", empty_values, untaken_plain, 1, {{1, 3}}, false},
    {"dtypes mixed", mixed_dtypes, mixed_dtypes_plain, 2, {{1, 2}, {0}}, false},
};

/* Value, gradient in numbers, recorded gradient, a tangent, gradient of the square of the gradient:
 * one row of numbers. */
static int numbers_of(const test_function *f, double *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], g[TEST_MAX_INPUTS], h[TEST_MAX_INPUTS], d[TEST_MAX_INPUTS];
    int       n = 0;
    leaves_of(f, t, xs), directions_of(f, t, d);
    cot_var y = f->f(f->n, xs, f->user), loss = cot_sum(cot_mul(y, cot_cos(y)), COT_ALL);
    n = append(y, out, n);
    cot_backward(loss);
    for (int k = 0; k < f->n; k++) n = append(cot_grad(xs[k]), out, n);
    cot_grad_of(loss, f->n, xs, g);
    for (int k = 0; k < f->n; k++) n = append(g[k], out, n);
    n = append(cot_jvp(y, f->n, xs, d), out, n);
    cot_var square = cot_constant(t, 0);
    for (int k = 0; k < f->n; k++) square = cot_add(square, cot_sum(cot_square(g[k]), COT_ALL));
    cot_grad_of(square, f->n, xs, h);
    for (int k = 0; k < f->n; k++) n = append(h[k], out, n);
    n = append(cot_jvp(square, f->n, xs, d), out, n);
    /* whole matrices, which go through sweeps in numbers, forward and reverse */
    int64_t in = 0, size = cot_size(y);
    for (int k = 0; k < f->n; k++) in += cot_size(xs[k]);
    cot_jacobian(1, &y, f->n, xs, COT_FORWARD, out + n), n += (int)(in * size);
    cot_jacobian(1, &y, f->n, xs, COT_REVERSE, out + n), n += (int)(in * size);
    cot_hessian(loss, f->n, xs, out + n), n += (int)(in * in);
    tape_is_sound(t, f->name);
    cot_tape_destroy(t);
    return n;
}

static void all_equal_what_is_written_out(void **state) {
    (void)state;
    /* Both do the same arithmetic in another order; second derivatives of cond in while reach
     * 1e8. */
    for (int i = 0; i < TEST_COUNT(pairs); i++)
        assert_pair_agrees(&pairs[i], test_small() ? 1 : 5, numbers_of, (allowance){.of_each = 1e-11});
    test_verdict();
}

static void all_have_their_derivatives(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(pairs); i++) {
        int smooth = 0;
        for (int round = 0; round < 8 && smooth < 2; round++) {
            test_function f = function_at(&pairs[i], round, pairs[i].ours);
            smooth += test_differences(&f, 1) && test_differences(&f, 2);
            test_transpose(&f);
            test_second_order(&f);
            test_numbers_as_recorded(&f);
            test_single_precision(&f);
        }
        TEST_CHECK(smooth == 2, "%s: only %d points look smooth", pairs[i].name, smooth);
    }
    test_verdict();
}

/* Rules that choose by values choose at each step. The determinant of a matrix with a row of zeros
 * has a derivative; least squares of it are NaN. */
BODY(determinant) {
    UNUSED;
    cot_var a = cot_stack(2, (cot_var[]){xs[0], cot_mul(xs[1], *(cot_var *)user)}, 0);
    ys[0] = cot_det(a);
    return 0;
}
BODY(least_squares) { UNUSED; ys[0] = cot_lstsq(cot_stack(2, xs, 0), xs[0]); return 0; }

static void rules_choose_at_each_step(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 2, 1, 2}),
                       cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){3, 4, 0, 0})};
    cot_var   one = cot_constant(t, 1), y[2], g[2];
    double    out[8];
    cot_scan(determinant, &one, -1, 0, NULL, 2, xs, NULL, 1, y, NULL);
    cot_scan(least_squares, NULL, -1, 0, NULL, 2, xs, NULL, 1, y + 1, NULL);
    cot_read(y[1], out, 4);
    TEST_CHECK(isfinite(out[0]) && isnan(out[2]) && isnan(out[3]), "%s",
               "least squares do not see the rank of each step");
    for (int recorded = 0; recorded < 2; recorded++) {
        cot_tape_zero_grads(t);
        if (recorded) cot_grad_of(cot_sum(y[0], COT_ALL), 2, xs, g);
        else cot_backward(cot_sum(y[0], COT_ALL)), g[0] = cot_grad(xs[0]), g[1] = cot_grad(xs[1]);
        test_tape_ok(t, "det in scan");
        cot_read(g[0], out, 4), cot_read(g[1], out + 4, 4);
        /* ad - bc, by a, b and by c, d */
        double want[8] = {4, -3, 0, 0, -2, 1, -2, 1};
        for (int k = 0; k < 8; k++)
            TEST_CHECK(fabs(out[k] - want[k]) <= 1e-14, "number %d of the gradient is %.17g, not %g", k, out[k],
                       want[k]);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* A loop of unknown length moves inside others, to every order of forward mode; in numbers it goes
 * back, too. */
BODY(until_large) {
    UNUSED;
    cot_var y;
    cot_while(small, double_it, user, 1, xs, &y, &(cot_loop_options){.states = 2});
    ys[0] = cot_add(cot_sin(y), 0.5);
    return 0;
}

static void a_while_goes_back_inside_a_scan(void **state) {
    (void)state;
    double out[2][6];
    for (int plain = 0; plain < 2; plain++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0.7, 1.9}), a = cot_scalar(t, 0.3), y = x,
                one = cot_constant(t, 1);
        if (!plain) cot_scan(until_large, &a, 3, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = 1});
        for (int k = 0; plain && k < 3; k++) {
            while (cot_value(cot_sum(cot_square(y), COT_ALL)) < 1e4) double_it(1, &y, 1, &y, &a);
            y = cot_add(cot_sin(y), 0.5);
        }
        cot_var f = cot_sum(cot_square(y), COT_ALL);
        cot_backward(f);
        test_tape_ok(t, "while in scan");
        out[plain][0] = cot_value(f), out[plain][1] = cot_grad_value(a);
        cot_read(cot_grad(x), out[plain] + 2, 2);
        cot_var d = cot_jvp(f, 1, &a, &one);
        out[plain][4] = cot_value(d), out[plain][5] = cot_value(cot_jvp(d, 1, &a, &one));
        test_tape_ok(t, "the tangents of while in scan");
        cot_tape_destroy(t);
    }
    /* Three loops up to 100 multiply rounding errors by about 100 each. */
    for (int k = 0; k < 6; k++)
        TEST_CHECK(fabs(out[0][k] - out[1][k]) <= 1e-9 * (1 + fabs(out[1][k])), "number %d is %.17g, not %.17g", k,
                   out[0][k], out[1][k]);
    test_verdict();
}

/* Bodies have let their values go: whatever looks at a tape must not look there. */
static void what_looks_at_tapes_passes_bodies_by(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(pairs); i++)
        for (int smooth = 0; smooth < 2; smooth++) {
            test_function f = function_at(&pairs[i], 0, pairs[i].ours);
            cot_tape     *t = cot_tape_create(&(cot_options){.smooth = smooth});
            cot_var       xs[TEST_MAX_INPUTS], g[TEST_MAX_INPUTS];
            char          text[2000];
            leaves_of(&f, t, xs);
            cot_var y = cot_sum(f.f(f.n, xs, f.user), COT_ALL);
            FILE   *out = tmpfile();
            cot_tape_print(t, out);
            cot_tape_print_sweep(y, out);
            fclose(out);
            cot_explain(y, text, sizeof text);
            cot_report(y, text, sizeof text);
            cot_backward(y);
            cot_grad_of(y, f.n, xs, g);
            cot_explain(xs[0], text, sizeof text);
            TEST_CHECK(cot_tape_check(t, text, sizeof text) == COT_OK, "%s: %s", f.name, text);
            double jacobian[16];
            int64_t size = 0;
            for (int k = 0; k < f.n; k++) size += cot_size(xs[k]);
            if (size <= 4) cot_hessian(y, f.n, xs, jacobian);
            test_tape_ok(t, f.name);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* ---- gradients inside vmap, of a condition that every element chooses for itself ------------- */

BODY(chosen_sine) { UNUSED; ys[0] = cot_mul(cot_sin(xs[0]), *(cot_var *)user); return 0; }
BODY(chosen_square) { UNUSED; ys[0] = cot_square(xs[0]); return 0; }
BODY(choosing) { return UNUSED, cot_cond(cot_greater(xs[0], 1.0), chosen_sine, chosen_square, user, n, xs, m, ys); }
BODY(slope_of_choosing) { return UNUSED, cot_value_and_grad(choosing, user, n, xs, NULL, ys); }
BODY(slope_of_slope) { return UNUSED, cot_value_and_grad(slope_of_choosing, user, n, xs, NULL, ys); }

static void a_gradient_in_a_batch_chooses(void **state) {
    (void)state;
    double    at[3] = {0.5, 1.5, -2}, first[3], second[3], moved[3];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), at), a = cot_scalar(t, 3), y, z, g;
    cot_vmap(slope_of_choosing, &a, 1, &x, NULL, 1, &y, NULL);
    cot_vmap(slope_of_slope, &a, 1, &x, NULL, 1, &z, NULL);
    cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
    cot_backward(cot_sum(y, COT_ALL));
    cot_read(y, first, 3);
    cot_read(z, second, 3);
    cot_read(g, moved, 3);
    test_tape_ok(t, "vmap of the gradient of a condition");
    for (int k = 0; k < 3; k++) {
        double slope = at[k] > 1 ? 3 * cos(at[k]) : 2 * at[k], bend = at[k] > 1 ? -3 * sin(at[k]) : 2;
        TEST_CHECK(fabs(first[k] - slope) < 1e-12, "element %d: %.17g, not %.17g", k, first[k], slope);
        TEST_CHECK(fabs(second[k] - bend) < 1e-12, "second of element %d: %.17g, not %.17g", k, second[k], bend);
        TEST_CHECK(fabs(moved[k] - bend) < 1e-12, "gradient by element %d: %.17g, not %.17g", k, moved[k], bend);
    }
    TEST_CHECK(fabs(cot_grad_value(a) - cos(1.5)) < 1e-12, "the value from outside: %.17g", cot_grad_value(a));
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- a condition in an equation, one of whose bodies gives its input back -------------------- */

BODY(as_it_is) { UNUSED; ys[0] = xs[0]; return 0; }
BODY(half_and_more) { UNUSED; ys[0] = cot_add(cot_mul(xs[0], 0.5), cot_mean(*(cot_var *)user, COT_ALL)); return 0; }
BODY(chosen_next) {
    UNUSED;
    cot_var z;
    cot_cond(cot_greater(cot_sum(xs[0], COT_ALL), 0.25), as_it_is, half_and_more, user, 1, xs, 1, &z);
    ys[0] = cot_add(cot_mul(0.1, cot_tanh(z)), xs[1]);
    return 0;
}

/* Sweeps inside rules leave the adjoints alone that the sweep around them still needs. */
static void an_input_given_back_keeps_adjoints(void **state) {
    (void)state;
    for (int low = 0; low < 2; low++) {
        double    at[3] = {0.4, -0.7, low ? -0.9 : 0.9}, p[2] = {0.6, 1.1}, found[3], g[3], gp[2], more = 0;
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), at), outside = cot_tensor(t, COT_F64, COT_SHAPE(2), p);
        cot_var   y = cot_fixed_point(chosen_next, &outside, NULL, cot_detach(x), 1, &x, NULL);
        cot_backward(cot_sum(cot_sin(y), COT_ALL));
        cot_read(y, found, 3), cot_read_grad(x, g, 3), cot_read_grad(outside, gp, 2);
        test_tape_ok(t, "a condition in a fixed point");
        for (int k = 0; k < 3; k++) {
            double u = low ? 0.5 * found[k] + 0.85 : found[k], slope = 0.1 * (1 - tanh(u) * tanh(u)),
                   want = cos(found[k]) / (1 - slope * (low ? 0.5 : 1));
            more += low ? want * slope / 2 : 0;
            TEST_CHECK(fabs(g[k] - want) <= 1e-9, "low %d, element %d: %.17g, not %.17g", low, k, g[k], want);
        }
        TEST_CHECK(fabs(gp[0] - more) <= 1e-9 && fabs(gp[1] - more) <= 1e-9, "low %d, outside: %.17g, not %.17g", low,
                   gp[0], more);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* ---- scopes without gradients ---------------------------------------------------------------- */

BODY(partly_without) {
    UNUSED;
    cot_no_grad_open(xs[0].tape);
    cot_var still = cot_sin(cot_mul(xs[0], 1.5));
    cot_no_grad_close(xs[0].tape);
    ys[0] = cot_add(xs[0], still);
    return 0;
}
BODY(one_square) { UNUSED; ys[0] = cot_sum(cot_square(xs[0]), COT_ALL); return 0; }

/* A scope inside a body stops gradients at every step, as it does outside. */
static void a_body_may_stop_gradients(void **state) {
    (void)state;
    double    at[2] = {0.5, 2}, g[2], d[2];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), at), y[3], one = cot_ones(t, COT_F64, COT_SHAPE(2)), r;
    cot_scan(partly_without, NULL, 3, 1, &x, 0, NULL, &y[0], 0, NULL, NULL);
    cot_checkpoint(partly_without, NULL, 1, &x, 1, &y[1]);
    cot_vmap(partly_without, NULL, 1, &x, NULL, 1, &y[2], NULL);
    for (int k = 0; k < 3; k++) {
        cot_tape_zero_grads(t);
        cot_backward(cot_sum(y[k], COT_ALL));
        cot_read_grad(x, g, 2);
        TEST_CHECK(g[0] == 1 && g[1] == 1, "kind %d, backward: %g %g", k, g[0], g[1]);
        cot_grad_of(cot_sum(y[k], COT_ALL), 1, &x, &r);
        cot_read(r, g, 2);
        cot_read(cot_jvp(y[k], 1, &x, &one), d, 2);
        TEST_CHECK(g[0] == 1 && g[1] == 1 && d[0] == 1 && d[1] == 1, "kind %d, recorded: %g %g, %g %g", k, g[0], g[1],
                   d[0], d[1]);
    }
    test_tape_ok(t, "no-grad scopes in bodies");
    cot_tape_destroy(t);
    test_verdict();
}

/* The derivative of a function does not depend on a scope around it; in that scope the result is a
 * constant. */
static void forms_work_in_scopes_without_gradients(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_scalar(t, 3), one = cot_number(1), y[3], g[3];
    cot_linear *linear;
    cot_no_grad_open(t);
    cot_value_and_grad(one_square, NULL, 1, &x, &y[0], &g[0]);
    cot_fn_jvp(one_square, NULL, 1, &x, &one, 1, &y[1], &g[1]);
    cot_linearize(one_square, NULL, 1, &x, 1, &y[2], &linear);
    cot_linear_vjp(linear, &one, &g[2]);
    cot_no_grad_close(t);
    test_tape_ok(t, "forms in a no-grad scope");
    for (int k = 0; k < 3; k++) {
        TEST_CHECK(cot_value(y[k]) == 9 && cot_value(g[k]) == 6, "form %d: %g, %g", k, cot_value(y[k]),
                   cot_value(g[k]));
        TEST_CHECK(!cot_requires_grad(y[k]) && !cot_requires_grad(g[k]), "form %d: recorded with gradients", k);
    }
    TEST_CHECK(cot_requires_grad(cot_sin(x)), "the scope is still open");
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- rules of which no input moves ----------------------------------------------------------- */

static int double_tangent(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys,
                          void *user) {
    UNUSED;
    dys[0] = cot_mul(2.0, dxs[0]); /* the only input: it moves, or the rule would not be asked */
    return 0;
}
BODY(uses_outside) { UNUSED; ys[0] = cot_mul(xs[0], *(cot_var *)user); return 0; }

BODY(flat) { UNUSED; ys[0] = cot_floor(xs[0]); return 0; }

/* The tangent of a constant function is a loop that reads nothing. */
static void a_loop_on_nothing_is_well_formed(void **state) {
    (void)state;
    char      why[300];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2.5), one = cot_constant(t, 1), y;
    cot_checkpoint(flat, NULL, 1, &x, 1, &y);
    TEST_CHECK(cot_value(cot_jvp(cot_mul(y, x), 1, &x, &one)) == 2, "its derivative");
    TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "%s", why);
    test_tape_ok(t, "a checkpoint of floor");
    cot_tape_destroy(t);
    test_verdict();
}

static void rules_are_asked_where_an_input_moves(void **state) {
    (void)state;
    const cot_fn_rules rules = {.name = "doubled", .jvp = double_tangent};
    char               why[300];
    cot_tape          *t = cot_tape_create(NULL);
    cot_var            x = cot_constant(t, 3), a = cot_scalar(t, 2), one = cot_constant(t, 1), y, z;
    cot_custom_fn(&rules, uses_outside, &a, 1, &x, 1, &y);
    z = cot_add(y, a);
    cot_backward(z);
    TEST_CHECK(cot_grad_value(a) == 1, "what the function uses from outside got %g", cot_grad_value(a));
    TEST_CHECK(cot_value(cot_jvp(z, 1, &a, &one)) == 1, "forward");
    test_tape_ok(t, "a rule with no input that moves");
    TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "%s", why);
    cot_tape_destroy(t);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_equal_what_is_written_out),
        cmocka_unit_test(all_have_their_derivatives),
        cmocka_unit_test(rules_choose_at_each_step),
        cmocka_unit_test(a_while_goes_back_inside_a_scan),
        cmocka_unit_test(a_gradient_in_a_batch_chooses),
        cmocka_unit_test(an_input_given_back_keeps_adjoints),
        cmocka_unit_test(a_body_may_stop_gradients),
        cmocka_unit_test(forms_work_in_scopes_without_gradients),
        cmocka_unit_test(a_loop_on_nothing_is_well_formed),
        cmocka_unit_test(rules_are_asked_where_an_input_moves),
        cmocka_unit_test(what_looks_at_tapes_passes_bodies_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
