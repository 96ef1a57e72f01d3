/* step_solve.c: values that solve an equation, and operations with rules of the user's. */
#include "program.h"

static const cot_axes all = {-1, false, {0}};

/* 4 x + sin(c) · reversed x: linear, and far from singular. */
static int a_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *with = user;
    (void)n, (void)m;
    ys[0] = cot_add(cot_mul(xs[0], cot_number(4)), cot_mul(cot_sin(*with), cot_flip(xs[0], all)));
    return 0;
}

STEP_FUNCTION(linear_solve) {
    value b = pick(f, c, is_small, no_value), with = pick(f, c, is_alike, b);
    if (b.name < 0 || with.name < 0) return;
    f->run->bodies = true;
    say(f, "cot_linear_solve(4 x + sin(%s) flip(x) = %s)", name_of(with), name_of(b));
    put(f, cot_linear_solve(a_of, &with.var, b.var, NULL));
}

/* x - 0.3 sin(body(x, theta)), so that there is one root, near 0. */
static int residual(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    int failed = body_play(n, xs, m, ys, user);
    if (!failed) ys[0] = cot_sub(xs[0], cot_mul(cot_sin(ys[0]), cot_number(0.3)));
    return failed;
}
static int contraction(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    int failed = body_play(n, xs, m, ys, user);
    if (!failed) ys[0] = cot_mul(cot_sin(ys[0]), cot_number(0.3));
    return failed;
}
/* Σ (x - tanh theta)² + x⁴/8 */
static int bowl(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var d = cot_square(cot_sub(xs[0], cot_tanh(xs[1])));
    ys[0]     = cot_sum(cot_add(d, cot_mul(cot_square(cot_square(xs[0])), cot_number(0.125))), all);
    return 0;
}

/* Solutions are as exact as the tolerance of the solver, and so are derivatives through them. A
 * body may be so steep that no solver converges: that is an error, the same in every way. */
STEP_FUNCTION(root) {
    value theta = pick(f, c, is_small, no_value);
    body  b     = body_of(f, c);
    if (theta.name < 0 || b.from == b.to || cot_size(theta.var) > 8) return;
    b.like_inputs = true;
    f->run->ill   = true;
    cot_var x0 = cot_mul(cot_ones(f->run->tape, cot_dtype_of(theta.var), cot_shape_of(theta.var)), cot_number(0.125));
    say(f, "cot_root(x - 0.3 sin(body(x, %s))) of", name_of(theta));
    put(f, cot_root(residual, &b, NULL, x0, 1, &theta.var, NULL));
}

STEP_FUNCTION(fixed_point) {
    value theta = pick(f, c, is_small, no_value);
    body  b     = body_of(f, c);
    if (theta.name < 0 || b.from == b.to || cot_size(theta.var) > 8) return;
    b.like_inputs = true;
    f->run->ill   = true;
    cot_var x0    = cot_zeros(f->run->tape, cot_dtype_of(theta.var), cot_shape_of(theta.var));
    say(f, "cot_fixed_point(0.3 sin(body(x, %s))) of", name_of(theta));
    put(f, cot_fixed_point(contraction, &b, NULL, x0, 1, &theta.var, NULL));
}

STEP_FUNCTION(minimize) {
    value theta = pick(f, c, is_small, no_value);
    if (theta.name < 0 || cot_size(theta.var) > 8) return;
    f->run->ill = true;
    cot_var x0  = cot_zeros(f->run->tape, cot_dtype_of(theta.var), cot_shape_of(theta.var));
    say(f, "cot_minimize(Σ (x - tanh %s)² + x⁴/8)", name_of(theta));
    put(f, cot_minimize(bowl, NULL, NULL, x0, 1, &theta.var, NULL));
}

/* ---- rules of the user's: x² y --------------------------------------------------------------- */

static int product_f(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(cot_square(xs[0]), xs[1]);
    return 0;
}
static int product_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                       void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    xbars[0] = cot_mul(ybars[0], cot_mul(cot_number(2), cot_mul(xs[0], xs[1])));
    xbars[1] = cot_mul(ybars[0], cot_square(xs[0]));
    return 0;
}
static int product_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys,
                       void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    cot_var a = {NULL, 0}, b = {NULL, 0};
    if (cot_is_valid(dxs[0])) a = cot_mul(dxs[0], cot_mul(cot_number(2), cot_mul(xs[0], xs[1])));
    if (cot_is_valid(dxs[1])) b = cot_mul(dxs[1], cot_square(xs[0]));
    dys[0] = cot_is_valid(a) && cot_is_valid(b) ? cot_add(a, b) : cot_is_valid(a) ? a : b;
    return 0;
}
static const cot_fn_rules with_vjp = {"square times", product_vjp, NULL},
                          with_jvp = {"square times", NULL, product_jvp};

STEP_FUNCTION(custom_rules) {
    value x = float_of(f, c), y = pick(f, c, is_alike, x);
    if (x.name < 0 || y.name < 0) return;
    cot_var z      = {NULL, 0};
    bool    back   = chance(c, 2);
    f->run->bodies = true;
    say(f, "cot_custom_fn(%s² %s, by its %s)", name_of(x), name_of(y), back ? "vjp" : "jvp");
    cot_custom_fn(back ? &with_vjp : &with_jvp, product_f, NULL, 2, (cot_var[]){x.var, y.var}, 1, &z);
    put(f, z);
}

/* ---- an operation of the user's: 3 x, in numbers --------------------------------------------- */

static int triple(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    for (int64_t i = 0; i < y->size; i++)
        if (y->dtype == COT_F64)
            ((double *)y->data)[i] = 3 * ((const double *)xs[0].data)[i];
        else if (y->dtype == COT_F32)
            ((float *)y->data)[i] = 3 * ((const float *)xs[0].data)[i];
    return 0;
}
static int triple_back(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, cot_number(3));
    return 0;
}
static int triple_numbers(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                          void *user) {
    (void)xs, (void)y;
    return triple(n, ybar, xbars, user);
}
static const cot_custom recorded_triple = {.name = "triple", .value = triple, .vjp = triple_back};
static const cot_custom numbers_triple  = {.name = "triple in numbers", .value = triple, .vjp_numbers = triple_numbers};

STEP_FUNCTION(custom) {
    value x       = float_of(f, c);
    bool  numbers = chance(c, 4);
    if (x.name < 0) return;
    say(f, "cot_call(triple%s, %s)", numbers ? " in numbers" : "", name_of(x));
    put(f, cot_call(numbers ? &numbers_triple : &recorded_triple, 1, &x.var, NULL));
}
