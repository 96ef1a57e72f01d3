/* emit_loops.h: loops that are exported: of every kind, carrying floats and integers, keeping all
 * states or few, and their derivatives. */
#ifndef COT_EMIT_LOOPS_H
#define COT_EMIT_LOOPS_H

#include "samples/samples.h"

#ifndef BODY
#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#endif
#define UNUSED_LOOP (void)n, (void)m, (void)user

/* carries a matrix and an integer; takes a row and a number; gives a matrix and a number. user: a
 * value from outside */
BODY(step) {
    UNUSED_LOOP;
    ys[0] = cot_add(cot_mul(xs[0], 0.5), cot_mul(xs[2], cot_sin(*(cot_var *)user)));
    ys[1] = cot_add(xs[1], 1);
    ys[2] = cot_mul(cot_transpose(ys[0]), xs[3]);
    ys[3] = cot_add(cot_sum(ys[0], COT_ALL), cot_cast(xs[1], cot_dtype_of(xs[0])));
    return 0;
}
BODY(count) { UNUSED_LOOP; ys[0] = cot_add(cot_mul(xs[1], 1.01), cot_cast(xs[0], cot_dtype_of(xs[1]))); return 0; }
BODY(small) { UNUSED_LOOP; ys[0] = cot_less(cot_sum(cot_square(xs[0]), COT_ALL), 100.0); return 0; }
BODY(grow) { UNUSED_LOOP; ys[0] = cot_mul(xs[0], 1.5); ys[1] = cot_add(xs[1], 1); return 0; }
BODY(nested) {
    UNUSED_LOOP;
    cot_var out[2];
    cot_while(small, grow, NULL, 2, (cot_var[]){cot_mul(xs[1], 0.25), xs[0]}, out, NULL);
    ys[0] = cot_div(out[0], cot_add(cot_cast(out[1], cot_dtype_of(out[0])), 1.0));
    return 0;
}
BODY(positive) { UNUSED_LOOP; ys[0] = cot_sqrt(cot_abs(xs[0])); ys[1] = cot_sum(ys[0], COT_ALL); return 0; }
BODY(negative) { UNUSED_LOOP; ys[0] = cot_neg(xs[0]); ys[1] = cot_max(ys[0], COT_ALL); return 0; }
/* it takes a value from outside, too */
BODY(wave) { UNUSED_LOOP; ys[0] = cot_mul(cot_sin(cot_mul(xs[0], 1.1)), *(cot_var *)user); return 0; }
BODY(counted_wave) { return wave(n, xs + 1, m, ys, user); }
BODY(slow) {
    UNUSED_LOOP;
    ys[0] = cot_add(cot_mul(xs[0], 1.05), cot_mul(cot_cos(xs[0]), cot_mul(*(cot_var *)user, 0.01)));
    ys[1] = cot_add(xs[1], 1);
    return 0;
}
BODY(root_of) { UNUSED_LOOP; ys[0] = cot_sqrt(cot_add(cot_square(xs[0]), *(cot_var *)user)); return 0; }

SAMPLE(m_scan) {
    UNUSED;
    cot_var w = x[0], final[2], ys[2];
    cot_var rows = cot_stack(3, (cot_var[]){w, cot_transpose(w), cot_exp(w)}, 0);
    cot_var init[2] = {w, cot_full(w.tape, COT_I64, COT_SCALAR, 3)};
    cot_var xs[2] = {rows, cot_index(cot_index(rows, 2, 1), 1, 0)};
    cot_scan(step, &w, -1, 2, init, 2, xs, final, 2, ys, &(cot_loop_options){.reverse = true});
    cot_var z = cot_add(final[0], cot_add(cot_cast(final[1], cot_dtype_of(w)), cot_sum(ys[0], COT_AXES(0))));
    return cot_add(z, cot_sum(ys[1], COT_ALL));
}
SAMPLE(m_fori) {
    UNUSED;
    cot_var a, b;
    cot_fori(count, NULL, 2, 7, 1, x, &a, NULL);
    cot_fori(nested, NULL, 0, 3, 1, x, &b, NULL);
    return cot_add(a, b);
}
SAMPLE(m_cond) {
    UNUSED;
    cot_var a[2], b[2], sum = cot_sum(x[0], COT_ALL);
    cot_cond(cot_greater(sum, 0.0), positive, negative, NULL, 1, x, 2, a);
    cot_cond(cot_less(sum, 0.0), positive, negative, NULL, 1, x, 2, b);
    return cot_add(cot_add(a[0], b[0]), cot_sub(a[1], b[1]));
}
/* Few states: most steps run again on the way back. */
SAMPLE(m_bounded) {
    UNUSED;
    cot_var w = cot_add(x[0], 1.5), z;
    cot_fori(counted_wave, &w, 0, 25, 1, x, &z, &(cot_loop_options){.states = 3});
    return z;
}
SAMPLE(m_while) {
    UNUSED;
    cot_var w = cot_sigmoid(x[0]), a[2], b[2];
    cot_var init[2] = {w, cot_full(w.tape, COT_I64, COT_SCALAR, 0)};
    cot_while(small, slow, &w, 2, init, a, &(cot_loop_options){.states = 4});
    cot_while(small, slow, &w, 2, init, b, &(cot_loop_options){.limit = 1000});
    return cot_add(cot_add(a[0], b[0]), cot_cast(a[1], cot_dtype_of(w)));
}
/* Their test is false at once. */
SAMPLE(m_never) {
    UNUSED;
    cot_var a[2], init[2] = {cot_add(x[0], 100.0), cot_full(x[0].tape, COT_I64, COT_SCALAR, 0)};
    cot_while(small, grow, NULL, 2, init, a, NULL);
    return a[0];
}
SAMPLE(m_numbers) {
    UNUSED;
    cot_var w = cot_sigmoid(cot_sum(x[0], COT_ALL)), first = cot_index(cot_index(x[0], 0, 0), 0, 1), z, y;
    cot_fori(counted_wave, &w, 0, 12, 1, &first, &z, &(cot_loop_options){.states = 2, .reverse = true});
    cot_checkpoint(root_of, &w, 1, &z, 1, &y);
    return cot_add(cot_mul(x[0], y), z);
}
/* Choices and tests that are 16-bit floats, and -0, which is 0. */
BODY(minus) { UNUSED_LOOP; ys[0] = cot_neg(xs[1]); return 0; }
BODY(one_less) { UNUSED_LOOP; ys[0] = cot_mul(xs[0], 1.25); ys[1] = cot_sub(xs[1], 1.0); return 0; }
SAMPLE(m_halves) {
    UNUSED;
    cot_var sum = cot_sum(cot_abs(x[0]), COT_ALL), a[2], b[2];
    cot_var zero = cot_detach(cot_mul(cot_cast(sum, COT_BF16), -0.0));
    cot_cond(zero, positive, negative, NULL, 1, x, 2, a);
    cot_var init[2] = {x[0], cot_add(cot_cast(zero, COT_F16), 3.0)};
    cot_while(minus, one_less, NULL, 2, init, b, &(cot_loop_options){.limit = 10});
    return cot_add(cot_add(a[0], a[1]), b[0]);
}
/* Nothing is carried, and the first number is the least. */
BODY(each) { UNUSED_LOOP; ys[0] = cot_sin(xs[0]); return 0; }
BODY(from_least) { UNUSED_LOOP; ys[0] = cot_add(xs[1], cot_cast(cot_less(xs[0], 0), cot_dtype_of(xs[1]))); return 0; }
SAMPLE(m_each) {
    UNUSED;
    cot_var y, z;
    cot_scan(each, NULL, -1, 0, NULL, 1, x, NULL, 1, &y, NULL);
    cot_fori(from_least, NULL, INT64_MIN, INT64_MIN + 2, 1, x, &z, NULL);
    return cot_add(y, z);
}
BODY(scanned) { UNUSED_LOOP; ys[0] = cot_add(m_scan(1, xs, NULL), m_while(1, xs, NULL)); return 0; }
SAMPLE(m_tangent) {
    UNUSED;
    cot_var y, t, direction = cot_cos(x[0]);
    cot_fn_jvp(scanned, NULL, 1, x, &direction, 1, &y, &t);
    return cot_add(y, t);
}
SAMPLE(m_second) {
    UNUSED;
    cot_var g;
    cot_grad_of(cot_sum(cot_add(m_while(1, x, NULL), m_bounded(1, x, NULL)), COT_ALL), 1, x, &g);
    return g;
}

#endif
