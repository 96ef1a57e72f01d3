/* Samples of loops, conditions, checkpoints and function forms, for tests/samples/samples.h. */
#ifndef ROWS
static int step_tanh(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_tanh(cot_add(cot_matmul(*(const cot_var *)user, xs[0]), xs[1]));
    ys[1] = cot_mul(ys[0], xs[0]);
    return 0;
}
SAMPLE(s_scan) {
    UNUSED;
    cot_var w = x[2], last, ys;
    cot_scan(step_tanh, &w, -1, 1, x, 1, x + 1, &last, 1, &ys, &(cot_loop_options){.states = 1});
    return cot_concat(2, (cot_var[]){cot_expand_dims(last, 0), ys}, 0);
}
SAMPLE(s_scan_back) {
    UNUSED;
    cot_var w = x[2], last, ys;
    cot_scan(step_tanh, &w, 3, 1, x, 1, x + 1, &last, 1, &ys, &(cot_loop_options){.reverse = true});
    return cot_mul(last, cot_sum(ys, COT_AXES(0)));
}
static int step_counted(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sin(cot_mul(xs[1], cot_cast(cot_add(xs[0], 1), cot_dtype_of(xs[1]))));
    return 0;
}
SAMPLE(s_fori) {
    UNUSED;
    cot_var y;
    cot_fori(step_counted, NULL, 0, 3, 1, x, &y, NULL);
    return y;
}
static int twice(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(xs[0], *(const cot_var *)user);
    return 0;
}
static int above(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_less(cot_sum(cot_square(xs[0]), COT_ALL), 100.0);
    return 0;
}
/* grows by a factor of 2 or more each step, so that the number of steps does not change nearby */
SAMPLE(s_while) {
    UNUSED;
    cot_var factor = cot_add(cot_sigmoid(x[1]), 7.0), start = cot_add(cot_sigmoid(x[0]), 0.5), y;
    cot_while(above, twice, &factor, 1, &start, &y, NULL);
    return y;
}
/* the gradient for each element of a batch: in the body of vmap the length of the loop is not
 * known */
static int sum_of_while(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var y = s_while(n, xs, user);
    (void)m;
    ys[0] = cot_sum(cot_mul(y, y), COT_ALL);
    return 0;
}
static int slope_of_while(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    return cot_value_and_grad(sum_of_while, user, n, xs, NULL, ys);
}
SAMPLE(s_slopes_of_while) {
    cot_var g[2];
    cot_vmap(slope_of_while, user, n, x, NULL, 2, g, NULL);
    return cot_mul(g[0], cot_expand_dims(g[1], 1));
}
static int square_sum(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(cot_sum(cot_mul(xs[0], cot_square(xs[0])), COT_AXES(1)), *(const cot_var *)user);
    return 0;
}
static int sine_sum(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_sin(xs[0]), COT_AXES(1));
    return 0;
}
SAMPLE(s_cond) {
    UNUSED;
    cot_var c = x[1], y, z;
    cot_cond(cot_constant(c.tape, 1), square_sum, sine_sum, &c, 1, x, 1, &y);
    cot_cond(cot_constant(c.tape, 0), square_sum, sine_sum, &c, 1, x, 1, &z);
    return cot_add(y, z);
}
SAMPLE(s_checkpoint) {
    UNUSED;
    cot_var c = x[1], y;
    cot_checkpoint(square_sum, &c, 1, x, 1, &y);
    return y;
}
static int cube_all(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_mul(xs[0], cot_square(xs[0])), COT_ALL);
    return 0;
}
SAMPLE(s_value_and_grad) {
    UNUSED;
    cot_var y, g;
    cot_value_and_grad(cube_all, NULL, 1, x, &y, &g);
    return cot_add(g, y);
}
/* (2 + x²) v - shift(v)/2, plus a part of every other element: a matrix that depends on x, is far
 * from singular, and is not symmetric */
static int system_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    cot_var c = *(const cot_var *)user;
    ys[0]     = cot_sub(cot_mul(cot_add(cot_square(c), 3.0), xs[0]),
                        cot_mul(0.5, cot_mul(cot_sin(c), cot_flip(xs[0], COT_AXES(0)))));
    return 0;
}
SAMPLE(s_linear_solve) {
    UNUSED;
    cot_var c = x[1];
    return cot_linear_solve(system_of, &c, x[0], NULL);
}
/* x + tanh(x)/2 + a x[reversed]/4 = b: monotone, one solution */
static int equations(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    cot_var left = cot_add(xs[0], cot_mul(0.5, cot_tanh(xs[0])));
    ys[0] = cot_sub(cot_add(left, cot_mul(cot_mul(0.25, cot_sin(*(const cot_var *)user)), cot_flip(xs[0], COT_ALL))),
                    xs[1]);
    return 0;
}
SAMPLE(s_root) {
    UNUSED;
    cot_var a = x[1];
    return cot_root(equations, &a, NULL, cot_zeros(a.tape, cot_dtype_of(x[0]), cot_shape_of(x[0])), 1, x, NULL);
}
static int next_one(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(0.5, cot_add(cot_sin(xs[0]), cot_mul(*(const cot_var *)user, xs[1])));
    return 0;
}
SAMPLE(s_fixed_point) {
    UNUSED;
    cot_var a = x[1];
    /* the start has a derivative, which must not count */
    return cot_fixed_point(next_one, &a, NULL, x[0], 1, x, NULL);
}
/* Σ x²/2 + log cosh x - θ x */
static int convex(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var curved = cot_add(cot_mul(0.5, cot_square(xs[0])), cot_log(cot_cosh(xs[0])));
    ys[0] = cot_sum(cot_sub(curved, cot_mul(xs[0], xs[1])), COT_ALL);
    return 0;
}
SAMPLE(s_minimize) {
    UNUSED;
    return cot_minimize(convex, NULL, NULL, cot_zeros(x[0].tape, cot_dtype_of(x[0]), cot_shape_of(x[0])), 1, x, NULL);
}
static int step_root(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_root(equations, user, NULL, xs[0], 1, xs, NULL);
    return 0;
}
/* an integer beside floats; one float is not read */
static int step_several(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_add(xs[0], INT64_C(1));
    ys[1] = cot_sin(cot_mul(xs[1], cot_cast(xs[0], cot_dtype_of(xs[1]))));
    ys[2] = cot_square(ys[1]);
    ys[3] = cot_exp(xs[1]);
    return 0;
}
SAMPLE(s_several) {
    UNUSED;
    int64_t one = 1;
    cot_var init[2] = {cot_data(x[0].tape, COT_I64, COT_SCALAR, &one), x[0]}, final[2], ys[2];
    cot_scan(step_several, NULL, 2, 2, init, 0, NULL, final, 2, ys, NULL);
    return cot_add(final[1], cot_sum(ys[0], COT_AXES(0)));
}
SAMPLE(s_root_in_scan) {
    UNUSED;
    cot_var a = x[1], y;
    cot_scan(step_root, &a, 2, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
/* A program of two results, called. */
static inline int two_of_a_kind(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_tanh(cot_matmul(xs[0], xs[1]));
    ys[1] = cot_mul(cot_exp(ys[0]), xs[1]);
    return 0;
}
SAMPLE(s_call) {
    UNUSED;
    cot_type types[2] = {{cot_dtype_of(x[0]), cot_shape_of(x[0])}, {cot_dtype_of(x[1]), cot_shape_of(x[1])}};
    cot_var  ys[2];
    cot_program *p = cot_compile(two_of_a_kind, NULL, 2, types, 2, NULL);
    cot_program_call(p, 2, x, 2, ys);
    cot_program_destroy(p);
    return cot_add(cot_square(ys[0]), ys[1]);
}
#else
    {"loop", s_scan, 3, {{1, 3}, {2, 3, 3}, {2, 3, 3}}},
    {"loop", s_scan_back, 3, {{1, 3}, {2, 3, 3}, {2, 3, 3}}},
    {"loop", s_fori, 1, {{1, 3}}},
    {"loop", s_fori, 1, {{0}}},
    {"loop", s_while, 2, {{1, 3}, {0}}},
    {"loop_adjoint", s_slopes_of_while, 2, {{2, 2, 3}, {1, 2}}},
    {"loop", s_cond, 2, {{2, 2, 3}, {0}}},
    {"loop", s_checkpoint, 2, {{2, 2, 3}, {0}}},
    {"parameter", s_checkpoint, 2, {{2, 2, 3}, {0}}},
    {"pick", s_several, 1, {{1, 3}}},
    {"pick", s_several, 1, {{0}}},
    {"linear_solve", s_linear_solve, 2, {{1, 3}, {0}}},
    {"linear_solve", s_linear_solve, 2, {{2, 2, 2}, {2, 2, 2}}},
    {"root", s_root, 2, {{1, 3}, {0}}},
    {"root", s_root, 2, {{0}, {0}}},
    {"root", s_fixed_point, 2, {{1, 2}, {0}}},
    {"root", s_minimize, 1, {{1, 2}}},
    {"loop", s_root_in_scan, 2, {{1, 2}, {0}}},
    {"call", s_call, 2, {{2, 2, 2}, {2, 2, 2}}},
    {"alias", s_value_and_grad, 1, {{1, 3}}},
#endif
