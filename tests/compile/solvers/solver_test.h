/* solver_test.h: how tests compare compiled functions that solve equations with the same functions
 * on a tape. All are functions of a matrix, a vector and a number. */
#ifndef COT_SOLVER_TEST_H
#define COT_SOLVER_TEST_H

#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <string.h>

enum { INPUTS = 3, ELEMENTS = 9 + 3 + 1, OUTPUTS = 1 + ELEMENTS };
static const cot_type TYPES[INPUTS] = {{COT_F64, {2, {3, 3}}}, {COT_F64, {1, {3}}}, {COT_F64, {0, {0}}}};

static inline cot_var total(cot_var x) { return cot_sum(x, COT_ALL); }

static inline cot_var start(const cot_var *xs) { return cot_mul(cot_ones(xs[0].tape, COT_F64, COT_SHAPE(3)), 0.3); }

/* x³ + a x + c tanh(W x) = b, where W is captured. */
static inline int equations(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    UNUSED;
    cot_var linear = cot_exp(cot_data(xs[0].tape, COT_F64, COT_SHAPE(3), (double[]){0.7, 0.8, 0.9}));
    cot_var bent = cot_mul(cot_tanh(cot_matmul(*(cot_var *)user, xs[0])), xs[2]);
    ys[0] = cot_sub(cot_add(cot_add(cot_mul(cot_square(xs[0]), xs[0]), cot_mul(linear, xs[0])), bent), xs[1]);
    return 0;
}
static inline cot_var root_of(const cot_var *xs, const cot_solve_options *o) {
    cot_var w = cot_transpose(xs[0]);
    return cot_root(equations, &w, NULL, start(xs), 2, xs + 1, o);
}

/* ---- what is made of them -------------------------------------------------------------------- */

enum { VALUE, GRADIENT, SECOND, TANGENT, KINDS };
typedef struct which { cot_fn f; int kind; } which;

/* The sum of the squares of its gradients. */
static inline int slope(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const which *w = user;
    cot_var      g[INPUTS], y;
    (void)m;
    if (cot_value_and_grad(w->f, NULL, n, xs, &y, g) != COT_OK) return 1;
    ys[0] = cot_add(total(cot_square(g[0])), cot_add(total(cot_square(g[1])), cot_square(g[2])));
    return 0;
}

static inline int made(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const which *w = user;
    (void)m;
    if (w->kind == VALUE) return w->f(n, xs, 1, ys, NULL);
    if (w->kind == TANGENT) {
        cot_var y, along[INPUTS] = {cot_cos(xs[0]), cot_sin(xs[1]), cot_mul(xs[2], 2.0)};
        w->f(n, xs, 1, &y, NULL);
        ys[0] = cot_jvp(y, n, xs, along);
        return 0;
    }
    if (w->kind == GRADIENT) return cot_value_and_grad(w->f, NULL, n, xs, &ys[0], ys + 1) != COT_OK;
    return cot_value_and_grad(slope, user, n, xs, &ys[0], ys + 1) != COT_OK;
}
static inline int outputs(const which *w) { return w->kind == VALUE || w->kind == TANGENT ? 1 : 1 + INPUTS; }
static inline int elements(const which *w) { return w->kind == VALUE || w->kind == TANGENT ? 1 : OUTPUTS; }
static const char *const KIND[KINDS] = {"its value", "its gradient", "its second derivative", "its tangent"};

static inline cot_program *program_of(const which *w, const cot_compile_options *o) {
    return cot_compile(made, (void *)(uintptr_t)w, INPUTS, TYPES, outputs(w), o);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static inline void point(int round, double x[ELEMENTS]) {
    for (int k = 0; k < ELEMENTS; k++) x[k] = 0.4 * sin(1.3 * k + round + 0.2);
    x[12] = round % 2 ? 0.9 : 0.2;
}

static inline void leaves(cot_tape *t, const double *x, cot_var *xs) {
    for (int k = 0, at = 0; k < INPUTS; at += (int)cot_size(xs[k++]))
        xs[k] = cot_tensor(t, COT_F64, TYPES[k].shape, x + at);
}

static inline void on_tape(const which *w, const double *x, double *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS], ys[1 + INPUTS];
    leaves(t, x, xs);
    made(INPUTS, xs, outputs(w), ys, (void *)(uintptr_t)w);
    assert_ok(t);
    for (int k = 0; k < outputs(w); to += cot_size(ys[k++])) cot_read(ys[k], to, cot_size(ys[k]));
    assert_ok(t);
    cot_tape_destroy(t);
}

static inline cot_status go(cot_run *r, const double *x, double *to) {
    return cot_program_run(r, (const void *[]){x, x + 9, x + 12}, (void *[]){to, to + 1, to + 10, to + 13});
}

static inline void compare(cot_program *p, const which *w, const char *name, const char *how) {
    static const int threads[] = {1, 2, 7};
    if (cot_program_status(p) != COT_OK) fail_msg("%s, %s: %s", name, KIND[w->kind], cot_program_message(p));
    cot_run *r = cot_run_create(p);
    assert_string_equal(cot_run_message(r), "");
    for (int round = 0; round < 3; round++) {
        double x[ELEMENTS], want[OUTPUTS], got[OUTPUTS];
        point(round, x);
        cot_set_threads(threads[round]);
        on_tape(w, x, want);
        if (go(r, x, got) != COT_OK) fail_msg("%s, %s, %s: %s", name, KIND[w->kind], how, cot_run_message(r));
        for (int k = 0; k < elements(w); k++)
            if (!test_same(want[k], got[k]))
                fail_msg("%s, %s, %s, output %d: %.17g is not %.17g", name, KIND[w->kind], how, k, got[k], want[k]);
    }
    cot_set_threads(0);
    cot_run_destroy(r);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A program, and the function that it was made of. */
typedef struct either { cot_program *p; cot_fn f; } either;
static inline int calls(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const either *e = user;
    if (!e->p) return e->f(n, xs, m, ys, NULL);
    return cot_program_call(e->p, n, xs, m, ys) != COT_OK;
}

/* The value and its gradients by a sweep; `twice`: of its slope instead. */
static inline void sweep(const either *e, bool twice, const double *x, double *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS], y;
    leaves(t, x, xs);
    calls(INPUTS, xs, 1, &y, (void *)(uintptr_t)e);
    if (twice) {
        cot_var g[INPUTS];
        cot_grad_of(y, INPUTS, xs, g);
        y = cot_add(total(cot_square(g[0])), cot_add(total(cot_square(g[1])), cot_square(g[2])));
    }
    cot_backward(y);
    cot_read(y, to++, 1);
    for (int k = 0; k < INPUTS; to += cot_size(xs[k++])) cot_read_grad(xs[k], to, cot_size(xs[k]));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Searches end within their tolerance, and a call adds adjoints up in another order. */
static inline void near_all(const char *name, const char *how, double most, const double *got, const double *want) {
    for (int k = 0; k < OUTPUTS; k++)
        if (!(fabs(got[k] - want[k]) <= most * (1 + fabs(want[k]))))
            fail_msg("%s, %s, output %d: %.17g is not %.17g", name, how, k, got[k], want[k]);
}

#endif
