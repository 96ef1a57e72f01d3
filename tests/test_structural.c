/* Structural operations: values against plain loops; gradients, second derivatives and forward mode against central differences
 * and against each other, for every operation in one table; strided operands; empty arrays; every error's text. */
/* ctest: timeout=120 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cotangent.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
enum { MAX_OPERANDS = 3, MAX_SIZE = 256 };

/* ---- numbers to test with ------------------------------------------------------------------------------------------- */

static uint64_t seed;

static double uniform(double lo, double hi) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(seed >> 11) * 0x1p-53;
}

static int64_t size_of(cot_shape s) {
    int64_t n = 1;
    for (int k = 0; k < s.ndim; k++) n *= s.dim[k];
    return n;
}

static bool near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * (1 + fabs(b)) || (isnan(a) && isnan(b)); }

static void assert_ok(cot_tape *t) {
    if (cot_tape_status(t) != COT_OK) fail_msg("%s", cot_tape_message(t));
}

static void assert_shape(cot_var x, cot_shape s) {
    cot_shape z = cot_shape_of(x);
    assert_int_equal(z.ndim, s.ndim);
    for (int k = 0; k < s.ndim; k++) assert_int_equal(z.dim[k], s.dim[k]);
}

/* The elements of x equal the list, to within rounding. */
static void assert_values(cot_var x, cot_shape shape, const double *want) {
    double  have[MAX_SIZE];
    int64_t n = size_of(shape);
    assert_ok(x.tape);
    assert_shape(x, shape);
    assert_int_equal(cot_read(x, have, n), COT_OK);
    for (int64_t i = 0; i < n; i++)
        if (!(have[i] == want[i] || near(have[i], want[i], 1e-14))) fail_msg("element %d is %.17g, not %.17g", (int)i, have[i], want[i]);
}
#define VALUES(x, shape, ...) assert_values(x, shape, (const double[]){__VA_ARGS__})

static cot_var iota(cot_tape *t, cot_shape shape) { return cot_reshape(cot_arange(t, COT_F64, 0, (double)size_of(shape), 1), shape); }

static cot_var ints(cot_tape *t, cot_shape shape, const int64_t *v) { return cot_data(t, COT_I64, shape, v); }
#define INTS(shape, ...) ints(t, shape, (const int64_t[]){__VA_ARGS__})
#define REALS(shape, ...) cot_data(t, COT_F64, shape, (const double[]){__VA_ARGS__})

/* ---- the table: every differentiable structural operation in its forms ------------------------------------------------ */

#define S COT_SHAPE
#define O COT_SCALAR
#define STACK(n, axis, ...) cot_stack(n, (cot_var[]){__VA_ARGS__}, axis)
#define CONCAT(n, axis, ...) cot_concat(n, (cot_var[]){__VA_ARGS__}, axis)

/*  name               operands' shapes               low high  expression in x[0], x[1], x[2] */
#define CASES(CASE)                                                                                                          \
    CASE(sum_all,        1, S(3, 4), O, O,              -2, 2, cot_sum(x[0], COT_ALL))                                         \
    CASE(sum_scalar,     1, O, O, O,                    -2, 2, cot_sum(x[0], COT_ALL))                                         \
    CASE(sum_axis,       1, S(3, 4), O, O,              -2, 2, cot_sum(x[0], COT_AXES(0)))                                     \
    CASE(sum_keep,       1, S(2, 3, 4), O, O,           -2, 2, cot_sum(x[0], COT_KEEP(-1, 0)))                                 \
    CASE(mean,           1, S(2, 3, 4), O, O,           -2, 2, cot_mean(x[0], COT_AXES(1)))                                    \
    CASE(prod_all,       1, S(5, 3), O, O,              -2, 2, cot_prod(x[0], COT_ALL))                                        \
    CASE(prod_axis,      1, S(2, 7), O, O,              -2, 2, cot_prod(x[0], COT_KEEP(1)))                                    \
    CASE(prod_two,       1, S(2, 3, 5), O, O,           -2, 2, cot_prod(x[0], COT_AXES(2, 0)))                                 \
    CASE(max_all,        1, S(3, 4), O, O,              -2, 2, cot_max(x[0], COT_ALL))                                         \
    CASE(max_axis,       1, S(3, 4), O, O,              -2, 2, cot_max(x[0], COT_AXES(1)))                                     \
    CASE(min_axis,       1, S(3, 4), O, O,              -2, 2, cot_min(x[0], COT_KEEP(0)))                                     \
    CASE(max_square,     1, S(3, 4), O, O,              -2, 2, cot_square(cot_max(cot_sin(x[0]), COT_AXES(1))))                \
    CASE(variance,       1, S(3, 4), O, O,              -2, 2, cot_variance(x[0], COT_AXES(1)))                                \
    CASE(std,            1, S(3, 4), O, O,              -2, 2, cot_std(x[0], COT_AXES(0)))                                     \
    CASE(logsumexp,      1, S(3, 4), O, O,              -2, 2, cot_logsumexp(x[0], COT_AXES(1)))                               \
    CASE(logsumexp_all,  1, S(3, 4), O, O,              -2, 2, cot_logsumexp(x[0], COT_KEEP_ALL))                              \
    CASE(norm,           1, S(3, 4), O, O,              -2, 2, cot_norm(x[0], 2, COT_AXES(1)))                                 \
    CASE(norm_all,       1, S(3, 4), O, O,              -2, 2, cot_norm(x[0], 2, COT_ALL))                                     \
    CASE(norm_scalar,    1, O, O, O,                    0.2, 2, cot_norm(x[0], 2, COT_ALL))                                    \
    CASE(norm_1,         1, S(3, 4), O, O,              0.2, 2, cot_norm(x[0], 1, COT_AXES(0)))                                \
    CASE(norm_3,         1, S(3, 4), O, O,              0.2, 2, cot_norm(x[0], 3, COT_AXES(0)))                                \
    CASE(norm_inf,       1, S(3, 4), O, O,              -2, 2, cot_norm(x[0], INFINITY, COT_AXES(0)))                          \
    CASE(reshape,        1, S(3, 4), O, O,              -2, 2, cot_reshape(x[0], S(2, -1)))                                    \
    CASE(reshape_scalar, 1, O, O, O,                    -2, 2, cot_reshape(x[0], S(1, 1)))                                     \
    CASE(reshape_to_0d,  1, S(1, 1), O, O,              -2, 2, cot_reshape(x[0], O))                                           \
    CASE(reshape_copy,   1, S(3, 4), O, O,              -2, 2, cot_reshape(cot_transpose(x[0]), S(6, 2)))                      \
    CASE(transpose,      1, S(2, 3, 4), O, O,           -2, 2, cot_transpose(x[0]))                                            \
    CASE(permute,        1, S(2, 3, 4), O, O,           -2, 2, cot_permute(x[0], COT_AXES(1, -1, 0)))                          \
    CASE(broadcast_to,   1, S(3, 1), O, O,              -2, 2, cot_broadcast_to(x[0], S(2, 3, 4)))                             \
    CASE(broadcast_0d,   1, O, O, O,                    -2, 2, cot_broadcast_to(x[0], S(2, 3)))                                \
    CASE(expand_dims,    1, S(3, 4), O, O,              -2, 2, cot_expand_dims(x[0], -2))                                      \
    CASE(squeeze,        1, S(1, 3, 1), O, O,           -2, 2, cot_squeeze(x[0], COT_AXES(0)))                                 \
    CASE(slice,          1, S(3, 7), O, O,              -2, 2, cot_slice(x[0], 1, 1, COT_END, 2))                              \
    CASE(slice_back,     1, S(3, 7), O, O,              -2, 2, cot_slice(x[0], -1, -2, 0, -2))                                 \
    CASE(index,          1, S(3, 4), O, O,              -2, 2, cot_index(x[0], 0, -1))                                         \
    CASE(index_vector,   1, S(5), O, O,                 -2, 2, cot_index(x[0], 0, 2))                                          \
    CASE(index_twice,    1, S(5), O, O,                 -2, 2, cot_mul(cot_index(x[0], 0, 2), cot_index(x[0], 0, 4)))          \
    CASE(flip,           1, S(2, 3, 2), O, O,           -2, 2, cot_flip(x[0], COT_AXES(0, 2)))                                 \
    CASE(pad,            1, S(2, 3), O, O,              -2, 2, cot_pad(x[0], S(1, 0), S(0, 2), 7))                             \
    CASE(concat,         3, S(2, 3), S(2, 1), S(2, 2),  -2, 2, cot_concat(3, x, 1))                                            \
    CASE(concat_one,     1, S(2, 3), O, O,              -2, 2, cot_concat(1, x, 0))                                            \
    CASE(concat_self,    1, S(2, 3), O, O,              -2, 2, CONCAT(4, 0, x[0], x[0], cot_square(x[0]), x[0]))               \
    CASE(stack,          2, S(2, 3), S(2, 3), O,        -2, 2, cot_stack(2, x, 1))                                             \
    CASE(stack_three,    3, S(2), S(2), S(2),           -2, 2, cot_stack(3, x, -1))                                            \
    CASE(stack_scalars,  3, O, O, O,                    -2, 2, cot_stack(3, x, 0))                                             \
    CASE(stack_numbers,  1, O, O, O,                    -2, 2, STACK(3, 0, cot_number(2), x[0], cot_number(0.5)))              \
    CASE(take,           1, S(4, 3), O, O,              -2, 2, cot_take(x[0], INTS(S(2, 2), 3, 0, -1, 0), 0))                  \
    CASE(take_middle,    1, S(2, 4, 2), O, O,           -2, 2, cot_take(x[0], INTS(S(3), 1, 1, 2), 1))                         \
    CASE(take_scalar,    1, S(2, 4), O, O,              -2, 2, cot_take(x[0], cot_cast(cot_constant(t, 3), COT_I32), 1))       \
    CASE(take_along,     1, S(2, 4), O, O,              -2, 2, cot_take_along_axis(x[0], INTS(S(2, 3), 1, 1, 0, 3, -1, 2), 1)) \
    CASE(scatter_add,    2, S(4, 2), S(3, 2), O,        -2, 2, cot_scatter_add(x[0], INTS(S(3), 1, -1, 1), x[1], 0))           \
    CASE(scatter_scalar, 2, S(4), O, O,                 -2, 2, cot_scatter_add(x[0], INTS(S(3), 1, -1, 1), x[1], 0))           \
    CASE(matmul,         2, S(3, 4), S(4, 2), O,        -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_mv,      2, S(3, 4), S(4), O,           -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_vm,      2, S(3), S(3, 4), O,           -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_vv,      2, S(3), S(3), O,              -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_batch,   2, S(2, 3, 4), S(2, 4, 2), O,  -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_folded,  2, S(2, 3, 4), S(4, 2), O,     -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_left2,   2, S(3, 4), S(2, 4, 2), O,     -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_cross,   2, S(2, 1, 2, 3), S(2, 3, 2), O, -2, 2, cot_matmul(x[0], x[1]))                                       \
    CASE(matmul_bv,      2, S(2, 3, 4), S(4), O,        -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_vb,      2, S(3), S(2, 3, 4), O,        -2, 2, cot_matmul(x[0], x[1]))                                         \
    CASE(matmul_self,    1, S(3, 3), O, O,              -2, 2, cot_matmul(x[0], cot_matmul(cot_transpose(x[0]), x[0])))        \
    CASE(dot,            2, S(5), S(5), O,              -2, 2, cot_dot(x[0], x[1]))                                            \
    CASE(dot_self,       1, S(5), O, O,                 -2, 2, cot_dot(x[0], x[0]))                                            \
    CASE(outer,          2, S(2), S(3), O,              -2, 2, cot_outer(x[0], x[1]))                                          \
    CASE(softmax,        1, S(3, 4), O, O,              -2, 2, cot_softmax(x[0], -1))                                          \
    CASE(softmax_0,      1, S(3, 4), O, O,              -2, 2, cot_softmax(x[0], 0))                                           \
    CASE(log_softmax,    1, S(3, 4), O, O,              -2, 2, cot_log_softmax(x[0], 1))                                       \
    CASE(sce_labels,     1, S(3, 4), O, O,              -2, 2, cot_softmax_cross_entropy(x[0], INTS(S(3), 1, 3, 0)))           \
    CASE(sce_label,      1, S(4), O, O,                 -2, 2, cot_softmax_cross_entropy(x[0], cot_cast(cot_constant(t, 2), COT_I64))) \
    CASE(sce_deep,       1, S(2, 3, 4), O, O,           -2, 2, cot_softmax_cross_entropy(x[0], INTS(S(2, 3), 1, 3, 0, 0, 2, 1))) \
    CASE(sce_weights,    2, S(3, 4), S(3, 4), O,        -2, 2, cot_softmax_cross_entropy(x[0], x[1]))                          \
    CASE(ce_labels,      1, S(3, 4), O, O,              0.2, 1, cot_cross_entropy(x[0], INTS(S(3), 1, 3, 0)))                  \
    CASE(ce_weights,     2, S(3, 4), S(3, 4), O,        0.2, 1, cot_cross_entropy(x[0], x[1]))                                 \
    CASE(mse,            2, S(3, 4), S(3, 4), O,        -2, 2, cot_mse(x[0], x[1]))                                            \
    CASE(mse_scalar,     2, O, S(3), O,                 -2, 2, cot_mse(x[0], x[1]))                                            \
    CASE(mse_number,     1, S(3), O, O,                 -2, 2, cot_mse(x[0], 0.5))                                             \
    CASE(mse_0d,         2, O, O, O,                    -2, 2, cot_mse(x[0], x[1]))                                            \
    CASE(cast,           1, S(3), O, O,                 -2, 2, cot_cast(cot_mul(x[0], x[0]), COT_F64))

typedef cot_var function(cot_tape *t, const cot_var *x);

#define FUNCTION(name, n, s0, s1, s2, lo, hi, expression)                                                                    \
    static cot_var f_##name(cot_tape *t, const cot_var *x) {                                                                 \
        (void)t;                                                                                                             \
        return expression;                                                                                                   \
    }
CASES(FUNCTION)

typedef struct row {
    const char *name;
    function   *f;
    int         n;
    cot_shape   shape[MAX_OPERANDS];
    double      lo, hi;
    double      x[MAX_OPERANDS][MAX_SIZE], v[MAX_OPERANDS][MAX_SIZE]; /* a point and a direction */
    double      w[MAX_SIZE];                                          /* weights of the result's elements */
} row;

static void each_row(void (*check)(row *r)) {
    static row r;
#define ROW(label, count, s0, s1, s2, low, high, expression)                                                                 \
    r = (row){.name = #label, .f = f_##label, .n = count, .shape = {s0, s1, s2}, .lo = low, .hi = high};                     \
    seed = 7;                                                                                                                \
    for (int k = 0; k < r.n; k++)                                                                                            \
        for (int64_t i = 0; i < size_of(r.shape[k]); i++) r.x[k][i] = uniform(low, high), r.v[k][i] = uniform(-1, 1);        \
    for (int i = 0; i < MAX_SIZE; i++) r.w[i] = uniform(-1, 1);                                                              \
    check(&r);
    CASES(ROW)
}

/* Σ w f(x): what is differentiated. */
static cot_var weighted(const row *r, cot_tape *t, const cot_var *x) {
    cot_var y = r->f(t, x);
    return cot_sum(cot_mul(y, cot_data(t, COT_F64, cot_shape_of(y), r->w)), COT_ALL);
}

static void leaves(const row *r, cot_tape *t, cot_var *x) {
    for (int k = 0; k < r->n; k++) x[k] = cot_tensor(t, COT_F64, r->shape[k], r->x[k]);
}

static void directions(const row *r, cot_tape *t, cot_var *v) {
    for (int k = 0; k < r->n; k++) v[k] = cot_data(t, COT_F64, r->shape[k], r->v[k]);
}

static double value_at(const row *r) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[MAX_OPERANDS];
    for (int k = 0; k < r->n; k++) x[k] = cot_data(t, COT_F64, r->shape[k], r->x[k]);
    double y = cot_value(weighted(r, t, x));
    cot_tape_destroy(t);
    return y;
}

static void compare(const row *r, const char *what, int k, int64_t i, double have, double want) {
    if (!near(have, want, 2e-7)) fail_msg("%s: %s of x[%d], element %d: %.12g, not %.12g", r->name, what, k, (int)i, have, want);
}

enum { H = 100000 }; /* one over the step */

static void check_gradient(row *r) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[MAX_OPERANDS];
    leaves(r, t, x);
    assert_int_equal(cot_backward(weighted(r, t, x)), COT_OK);
    assert_ok(t);
    for (int k = 0; k < r->n; k++) {
        double  g[MAX_SIZE];
        int64_t n = size_of(r->shape[k]);
        assert_int_equal(cot_read_grad(x[k], g, n), COT_OK);
        for (int64_t i = 0; i < n; i++) {
            double at = r->x[k][i];
            r->x[k][i] = at + 1.0 / H;
            double up = value_at(r);
            r->x[k][i] = at - 1.0 / H;
            double down = value_at(r);
            r->x[k][i] = at;
            compare(r, "gradient", k, i, g[i], (up - down) * H / 2);
        }
    }
    cot_tape_destroy(t);
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    each_row(check_gradient);
}

/* grad (Σ v · grad f) by the tape, and by differences of grad f along v. */
static void gradient_at(const row *r, double step, double g[MAX_OPERANDS][MAX_SIZE]) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[MAX_OPERANDS], grads[MAX_OPERANDS];
    for (int k = 0; k < r->n; k++) {
        double moved[MAX_SIZE];
        for (int64_t i = 0; i < size_of(r->shape[k]); i++) moved[i] = r->x[k][i] + step * r->v[k][i];
        x[k] = cot_tensor(t, COT_F64, r->shape[k], moved);
    }
    assert_int_equal(cot_grad_of(weighted(r, t, x), r->n, x, grads), COT_OK);
    for (int k = 0; k < r->n; k++) cot_read(grads[k], g[k], size_of(r->shape[k]));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void check_second_order(row *r) {
    static double up[MAX_OPERANDS][MAX_SIZE], down[MAX_OPERANDS][MAX_SIZE];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x[MAX_OPERANDS], v[MAX_OPERANDS], g[MAX_OPERANDS], parts[MAX_OPERANDS], h[MAX_OPERANDS];
    leaves(r, t, x);
    directions(r, t, v);
    cot_grad_of(weighted(r, t, x), r->n, x, g);
    for (int k = 0; k < r->n; k++) parts[k] = cot_sum(cot_mul(g[k], v[k]), COT_ALL);
    cot_grad_of(cot_sum(cot_stack(r->n, parts, 0), COT_ALL), r->n, x, h);
    assert_ok(t);
    gradient_at(r, 1.0 / H, up);
    gradient_at(r, -1.0 / H, down);
    for (int k = 0; k < r->n; k++) {
        double have[MAX_SIZE];
        cot_read(h[k], have, size_of(r->shape[k]));
        for (int64_t i = 0; i < size_of(r->shape[k]); i++) compare(r, "second derivative", k, i, have[i], (up[k][i] - down[k][i]) * H / 2);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void second_derivatives_match_differences_of_gradients(void **state) {
    (void)state;
    each_row(check_second_order);
}

/* w · (J v) = (w J) · v, and forward over reverse gives the same second derivative as reverse over reverse. */
static void check_forward(row *r) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[MAX_OPERANDS], v[MAX_OPERANDS], g[MAX_OPERANDS], h[MAX_OPERANDS], sum = cot_constant(t, 0), second = sum;
    leaves(r, t, x);
    directions(r, t, v);
    cot_var y = r->f(t, x), w = cot_data(t, COT_F64, cot_shape_of(y), r->w);
    cot_var dy = cot_jvp(y, r->n, x, v);
    assert_ok(t);
    assert_shape(dy, cot_shape_of(y));
    double forward = cot_value(cot_sum(cot_mul(w, dy), COT_ALL));
    cot_vjp(y, w, r->n, x, g);
    for (int k = 0; k < r->n; k++) sum = cot_add(sum, cot_sum(cot_mul(g[k], v[k]), COT_ALL));
    compare(r, "forward against reverse", 0, 0, forward, cot_value(sum));
    cot_grad_of(sum, r->n, x, h);
    for (int k = 0; k < r->n; k++) second = cot_add(second, cot_sum(cot_mul(h[k], v[k]), COT_ALL));
    cot_var d2 = cot_jvp(cot_sum(cot_mul(w, dy), COT_ALL), r->n, x, v);
    compare(r, "forward over forward", 0, 0, cot_value(d2), cot_value(second));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void forward_mode_matches_reverse_mode(void **state) {
    (void)state;
    each_row(check_forward);
}

/* The same numbers behind other strides: transposed, flipped, every second element, an inner part. */
enum { TRANSPOSED, FLIPPED, STEPPED, INNER, LAYOUTS };

static cot_var laid_out(const row *r, cot_tape *t, int k, int layout) {
    cot_var   x = cot_data(t, COT_F64, r->shape[k], r->x[k]);
    cot_shape s = r->shape[k], ones = s;
    if (s.ndim == 0) return cot_tensor(t, COT_F64, s, r->x[k]);
    for (int i = 0; i < s.ndim; i++) ones.dim[i] = 1;
    cot_var stored = x;
    int     last = s.ndim - 1;
    if (layout == TRANSPOSED) stored = cot_transpose(x);
    if (layout == FLIPPED) stored = cot_flip(x, COT_ALL);
    if (layout == STEPPED) {
        cot_var nan = cot_full(t, COT_F64, s, NAN);
        cot_shape twice = s;
        twice.dim[last] *= 2;
        stored = cot_reshape(STACK(2, -1, x, nan), twice);
    }
    if (layout == INNER) stored = cot_pad(x, ones, ones, NAN);
    double  *buf = malloc((size_t)cot_size(stored) * sizeof *buf);
    cot_read(stored, buf, cot_size(stored));
    cot_var z = cot_tensor(t, COT_F64, cot_shape_of(stored), buf);
    free(buf);
    if (layout == TRANSPOSED) return cot_transpose(z);
    if (layout == FLIPPED) return cot_flip(z, COT_ALL);
    if (layout == STEPPED) return cot_slice(z, last, 0, COT_END, 2);
    for (int i = 0; i < s.ndim; i++) z = cot_slice(z, i, 1, -1, 1);
    return z;
}

static void check_layouts(row *r) {
    static double want[MAX_OPERANDS][MAX_SIZE];
    double        value = value_at(r);
    gradient_at(r, 0, want);
    for (int layout = 0; layout < LAYOUTS; layout++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x[MAX_OPERANDS], g[MAX_OPERANDS];
        for (int k = 0; k < r->n; k++) x[k] = laid_out(r, t, k, layout);
        cot_var y = weighted(r, t, x);
        cot_grad_of(y, r->n, x, g);
        assert_ok(t);
        if (!near(cot_value(y), value, 1e-14)) fail_msg("%s, layout %d: %.17g, not %.17g", r->name, layout, cot_value(y), value);
        for (int k = 0; k < r->n; k++) {
            double have[MAX_SIZE];
            cot_read(g[k], have, size_of(r->shape[k]));
            for (int64_t i = 0; i < size_of(r->shape[k]); i++)
                if (!near(have[i], want[k][i], 1e-13)) fail_msg("%s, layout %d: gradient %g, not %g", r->name, layout, have[i], want[k][i]);
        }
        cot_tape_destroy(t);
    }
}

static void strided_operands_give_the_same_results(void **state) {
    (void)state;
    each_row(check_layouts);
}

/* f32: the same table, to within a few roundings of the f64 result. */
static void check_f32(row *r) {
    static double want[MAX_OPERANDS][MAX_SIZE];
    gradient_at(r, 0, want);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[MAX_OPERANDS], g[MAX_OPERANDS];
    for (int k = 0; k < r->n; k++) {
        float f[MAX_SIZE];
        for (int64_t i = 0; i < size_of(r->shape[k]); i++) f[i] = (float)r->x[k][i];
        x[k] = cot_tensor(t, COT_F32, r->shape[k], f);
    }
    cot_var y = r->f(t, x);
    if (strcmp(r->name, "cast") != 0) assert_int_equal(cot_dtype_of(y), COT_F32);
    cot_var w = cot_cast(cot_data(t, COT_F64, cot_shape_of(y), r->w), cot_dtype_of(y));
    cot_grad_of(cot_sum(cot_mul(y, w), COT_ALL), r->n, x, g);
    assert_ok(t);
    for (int k = 0; k < r->n; k++) {
        double have[MAX_SIZE];
        assert_int_equal(cot_dtype_of(g[k]), COT_F32);
        cot_read(g[k], have, size_of(r->shape[k]));
        for (int64_t i = 0; i < size_of(r->shape[k]); i++)
            if (!near(have[i], want[k][i], 1e-4)) fail_msg("%s: f32 gradient %g, not %g", r->name, have[i], want[k][i]);
    }
    cot_tape_destroy(t);
}

static void float32_agrees_with_float64(void **state) {
    (void)state;
    each_row(check_f32);
}

/* An allocator that fails from its n-th call on and counts what is out. */
typedef struct meagre { int64_t left, bytes; } meagre;

static void *meagre_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    meagre *m = user;
    if (new_size > old_size && m->left-- <= 0) return NULL;
    m->bytes += (int64_t)new_size - (int64_t)old_size;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* Either the gradient or a COT_MEMORY error, and everything given back. */
static void check_memory(row *r) {
    cot_status status = COT_MEMORY;
    for (int64_t n = 0; status != COT_OK; n++) {
        meagre      m = {n, 0};
        cot_options options = {.allocator = {meagre_alloc, &m}};
        cot_tape   *t = cot_tape_create(&options);
        cot_var     x[MAX_OPERANDS], g[MAX_OPERANDS], v[MAX_OPERANDS];
        if (t) {
            leaves(r, t, x);
            directions(r, t, v);
            cot_var y = weighted(r, t, x);
            cot_backward(y);
            cot_grad_of(y, r->n, x, g);
            cot_jvp(y, r->n, x, v);
        }
        status = cot_tape_status(t);
        if (status != COT_OK && status != COT_MEMORY) fail_msg("%s, allocation %d: %s", r->name, (int)n, cot_tape_message(t));
        cot_tape_destroy(t);
        assert_int_equal(m.bytes, 0);
        assert_true(n < 10000);
    }
}

static void every_failing_allocation_is_survived(void **state) {
    (void)state;
    each_row(check_memory);
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

/* Squares and powers of these are 0 or infinite in a double; the results are not. */
static void norms_and_deviations_of_far_away_numbers_have_gradients(void **state) {
    (void)state;
    static const double scales[] = {1e-300, 1e-200, 1, 1e200, 1e300};
    for (int i = 0; i < 5; i++) {
        double    s = scales[i], g[3];
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, S(3), (double[]){1 * s, 3 * s, 5 * s}), std = cot_std(x, COT_ALL), norm = cot_norm(x, 3, COT_ALL);
        assert_true(near(cot_value(std) / s, sqrt(8.0 / 3), 4e-16 * 8));
        cot_backward(std);
        cot_read_grad(x, g, 3); /* (x - 3) / (3 std) */
        for (int k = 0; k < 3; k++) assert_true(near(g[k], (2 * k - 2) / (3 * sqrt(8.0 / 3)), 1e-15));
        cot_tape_zero_grads(t);
        assert_true(near(cot_value(norm) / s, cbrt(153), 4e-16 * 16));
        cot_backward(norm);
        cot_read_grad(x, g, 3); /* (x / norm)² */
        for (int k = 0; k < 3; k++) assert_true(near(g[k], (2 * k + 1) * (2 * k + 1) / pow(153, 2.0 / 3), 2e-15));
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static void reductions_equal_plain_loops(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(2, 3));
    VALUES(cot_sum(x, COT_ALL), O, 15);
    VALUES(cot_sum(x, COT_AXES(0)), S(3), 3, 5, 7);
    VALUES(cot_sum(x, COT_KEEP(1)), S(2, 1), 3, 12);
    VALUES(cot_sum(x, COT_KEEP_ALL), S(1, 1), 15);
    VALUES(cot_mean(x, COT_AXES(1)), S(2), 1, 4);
    VALUES(cot_prod(cot_add(x, 1.0), COT_ALL), O, 720);
    VALUES(cot_prod(cot_add(x, 1.0), COT_AXES(0)), S(3), 4, 10, 18);
    VALUES(cot_prod(cot_arange(t, COT_F64, 1, 16, 1), COT_ALL), O, 1307674368000.0);
    VALUES(cot_prod(cot_add(iota(t, S(7, 1)), 1.0), COT_AXES(0)), S(1), 5040);
    VALUES(cot_max(x, COT_AXES(0)), S(3), 3, 4, 5);
    VALUES(cot_min(x, COT_KEEP(-1)), S(2, 1), 0, 3);
    VALUES(cot_variance(x, COT_ALL), O, 35.0 / 12);
    VALUES(cot_std(x, COT_AXES(1)), S(2), sqrt(2.0 / 3), sqrt(2.0 / 3));
    VALUES(cot_logsumexp(x, COT_ALL), O, log(exp(0) + exp(1) + exp(2) + exp(3) + exp(4) + exp(5)));
    VALUES(cot_norm(x, 2, COT_ALL), O, sqrt(55));
    VALUES(cot_norm(x, 1, COT_AXES(0)), S(3), 3, 5, 7);
    VALUES(cot_norm(x, 0, COT_AXES(0)), S(3), 1, 2, 2);
    VALUES(cot_norm(x, INFINITY, COT_AXES(1)), S(2), 2, 5);
    VALUES(cot_norm(x, -INFINITY, COT_AXES(1)), S(2), 0, 3);
    VALUES(cot_norm(x, 3, COT_ALL), O, cbrt(225));
    VALUES(cot_norm(REALS(S(2), 3e200, 4e200), 2, COT_ALL), O, 5e200);
    VALUES(cot_norm(REALS(S(2), -3e200, 6e200), 3, COT_KEEP(0)), S(1), 3e200 * cbrt(9));
    VALUES(cot_norm(REALS(S(2, 2), 3e200, 6e200, 0, 0), 3, COT_AXES(1)), S(2), 3e200 * cbrt(9), 0);
    VALUES(cot_mul(cot_norm(REALS(S(2), 3e200, 6e-200), -3, COT_ALL), 1e200), O, 6);
    VALUES(cot_norm(REALS(S(2), INFINITY, 1), 3, COT_ALL), O, INFINITY);
    VALUES(cot_norm(cot_zeros(t, COT_F64, S(0)), 3, COT_ALL), O, 0);
    VALUES(cot_kron(2, REALS(S(2), 3, 4)), S(2), 6, 8);
    VALUES(cot_any(x, COT_AXES(1)), S(2), 1, 1);
    VALUES(cot_all(x, COT_AXES(1)), S(2), 0, 1);
    VALUES(cot_all(x, COT_ALL), O, 0);
    cot_var y = REALS(S(2, 3), 3, 9, 9, 7, 1, 1);
    VALUES(cot_argmax(y, COT_AXES(1)), S(2), 1, 0);
    VALUES(cot_argmin(y, COT_KEEP(1)), S(2, 1), 0, 1);
    VALUES(cot_argmax(y, COT_ALL), O, 1);
    VALUES(cot_argmin(cot_transpose(y), COT_ALL), O, 3); /* 3 7 9 1 9 1 */
    VALUES(cot_argmax(y, COT_KEEP_ALL), S(1, 1), 1);
    VALUES(cot_logsumexp(REALS(S(2), -INFINITY, -INFINITY), COT_ALL), O, -INFINITY);
    cot_tape_destroy(t);
}

/* cot_logsumexp_of is cot_logsumexp of the same numbers in a line, to the last place or so; where something is infinite or NaN, exactly,
 * and so is the gradient. Recorded and swept derivatives have the same bits. */
static void logsumexp_over_scalars_is_that_over_a_tensor(void **state) {
    (void)state;
    static const double lists[][3] = {{1, 2, 3},     {-800, -801, -900},   {1e308, 0, -1e308},    {INFINITY, 1, 2},
                                      {NAN, 1, 2},   {1, NAN, -INFINITY},  {-INFINITY, 5, 4},     {INFINITY, NAN, 1},
                                      {0, -0.0, 0},  {-INFINITY, -INFINITY, -INFINITY}, {INFINITY, -INFINITY, INFINITY}};
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; j++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x[3], g[3];
            for (int k = 0; k < 3; k++) x[k] = cot_scalar_of(t, dtypes[j], lists[i][k]);
            cot_var line = cot_detach(cot_stack(3, x, 0)), z = cot_logsumexp_of(3, x);
            cot_var leaf = cot_cast(line, COT_F64); /* the numbers as they were rounded */
            double  numbers[3];
            cot_read(leaf, numbers, 3);
            leaf = cot_tensor(t, COT_F64, S(3), numbers);
            cot_var want = cot_logsumexp(leaf, COT_ALL);
            double  eps = (double[]){2.3e-16, 1.2e-7, 8e-3, 1e-3}[j], w = cot_value(want), v = cot_value(z), grad[3];
            assert_int_equal(cot_dtype_of(z), dtypes[j]);
            assert_true(isfinite(w) ? fabs(v - w) <= 4 * eps * (1 + fabs(w)) : isnan(w) ? isnan(v) : v == w);
            cot_grad_of(z, 3, x, g);
            cot_backward(z);
            cot_backward(want);
            cot_read_grad(leaf, grad, 3);
            for (int k = 0; k < 3; k++) {
                double swept = cot_grad_value(x[k]), recorded = cot_value(g[k]);
                assert_true(isnan(grad[k]) ? isnan(swept) && isnan(recorded) : fabs(swept - grad[k]) <= 4 * eps);
                if (dtypes[j] == COT_F64 || dtypes[j] == COT_F32) assert_memory_equal(&swept, &recorded, sizeof swept);
            }
            assert_int_equal(cot_tape_status(t), COT_OK);
            cot_tape_destroy(t);
        }
}

static void scalars_reduce_to_themselves(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, -3);
    VALUES(cot_sum(x, COT_ALL), O, -3);
    VALUES(cot_mean(x, COT_KEEP_ALL), O, -3);
    VALUES(cot_prod(x, COT_ALL), O, -3);
    VALUES(cot_max(x, COT_ALL), O, -3);
    VALUES(cot_min(x, COT_ALL), O, -3);
    VALUES(cot_argmax(x, COT_ALL), O, 0);
    VALUES(cot_argmin(x, COT_KEEP_ALL), O, 0);
    VALUES(cot_variance(x, COT_ALL), O, 0);
    VALUES(cot_std(x, COT_ALL), O, 0);
    VALUES(cot_logsumexp(x, COT_ALL), O, -3);
    VALUES(cot_norm(x, 2, COT_ALL), O, 3);
    VALUES(cot_norm(x, INFINITY, COT_ALL), O, 3);
    VALUES(cot_any(x, COT_ALL), O, 1);
    VALUES(cot_all(cot_mul(0.0, x), COT_ALL), O, 0);
    VALUES(cot_transpose(x), O, -3);
    VALUES(cot_squeeze(x, COT_ALL), O, -3);
    VALUES(cot_flip(x, COT_ALL), O, -3);
    VALUES(cot_pad(x, O, O, 1), O, -3);
    VALUES(cot_expand_dims(x, 0), S(1), -3);
    VALUES(cot_one_hot(cot_cast(cot_constant(t, 1), COT_I64), 3, COT_F32), S(3), 0, 1, 0);
    cot_tape_destroy(t);
}

static void integers_reduce_as_in_numpy(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    int32_t   big[] = {INT32_MAX, 1, 2};
    uint8_t   small[] = {200, 100, 0};
    cot_var   i = cot_data(t, COT_I32, S(3), big), u = cot_data(t, COT_U8, S(3), small), b = cot_cast(u, COT_BOOL);
    VALUES(cot_sum(i, COT_ALL), O, 2147483650.0);
    VALUES(cot_sum(u, COT_ALL), O, 300);
    VALUES(cot_sum(b, COT_ALL), O, 2);
    assert_int_equal(cot_dtype_of(cot_sum(u, COT_ALL)), COT_I64);
    assert_int_equal(cot_dtype_of(cot_sum(cot_cast(cot_constant(t, 1), COT_BOOL), COT_ALL)), COT_I64);
    VALUES(cot_mean(u, COT_ALL), O, 100);
    assert_int_equal(cot_dtype_of(cot_mean(u, COT_ALL)), COT_F64);
    VALUES(cot_prod(cot_slice(u, 0, 0, 2, 1), COT_ALL), O, 20000);
    assert_int_equal(cot_dtype_of(cot_max(u, COT_ALL)), COT_U8);
    VALUES(cot_max(u, COT_ALL), O, 200);
    VALUES(cot_min(b, COT_ALL), O, 0);
    assert_int_equal(cot_dtype_of(cot_min(b, COT_ALL)), COT_BOOL);
    VALUES(cot_variance(INTS(S(2), 1, 3), COT_ALL), O, 1);
    VALUES(cot_norm(INTS(S(2), 3, 4), 2, COT_ALL), O, 5);
    VALUES(cot_matmul(INTS(S(2), 3, 4), INTS(S(2), 3, 4)), O, 25);
    assert_int_equal(cot_dtype_of(cot_matmul(b, b)), COT_I64);
    VALUES(cot_matmul(b, b), O, 2);
    VALUES(cot_matmul(INTS(S(2), 3, 4), REALS(S(2), 0.5, 0.5)), O, 3.5);
    VALUES(cot_softmax(INTS(S(2), 3, 3), 0), S(2), 0.5, 0.5);
    cot_tape_destroy(t);
}

static void halves_average_without_overflow(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_full(t, COT_F16, S(1000), 1024);
    assert_int_equal(cot_dtype_of(cot_mean(x, COT_ALL)), COT_F16);
    assert_true(cot_value(cot_mean(x, COT_ALL)) == 1024);
    assert_true(cot_value(cot_std(x, COT_ALL)) == 0);
    cot_var y = cot_full(t, COT_BF16, S(1000), 3);
    assert_true(cot_value(cot_mean(y, COT_ALL)) == 3);
    assert_int_equal(cot_dtype_of(cot_variance(y, COT_ALL)), COT_BF16);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void norms_and_products_of_halves_do_not_overflow_on_the_way(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_full(t, COT_F16, S(8), 64); /* 64³ is no f16, the norm 64·8^(1/3) = 128 is */
    assert_int_equal(cot_dtype_of(cot_norm(x, 3, COT_ALL)), COT_F16);
    assert_true(cot_value(cot_norm(x, 3, COT_ALL)) == 128);
    cot_var y = cot_cast(REALS(S(2, 2), 512, 0.0078125, 512, 0.0078125), COT_F16), p = cot_prod(y, COT_ALL); /* 512² is no f16 */
    assert_int_equal(cot_dtype_of(p), COT_F16);
    assert_true(cot_value(p) == 16);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* More ties than the largest f16: a share is still g / ties, and the tangent of the maximum their mean. */
static void halves_share_among_many_ties(void **state) {
    (void)state;
    enum { N = 1 << 17 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F16, S(N), NULL), z = cot_max(x, COT_ALL), g;
    assert_int_equal(cot_vjp(z, 32768.0, 1, &x, &g), COT_OK);
    assert_int_equal(cot_dtype_of(g), COT_F16);
    assert_true(cot_value(cot_index(g, 0, N - 1)) == 0.25);
    cot_var ones = cot_ones(t, COT_F16, S(N)), dz = cot_jvp(z, 1, &x, &ones);
    assert_int_equal(cot_dtype_of(dz), COT_F16);
    assert_true(cot_value(dz) == 1);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Σ z̄ is 2^17, no f16; the adjoint 1 - exp(z) Σ z̄ is small: what is left is the rounding of z, relative to 1 2^-11 · |z| at most. */
static void softmax_of_halves_sums_wide(void **state) {
    (void)state;
    enum { N = 1 << 17 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F16, S(N), NULL), g, ones = cot_ones(t, COT_F16, S(N));
    assert_int_equal(cot_vjp(cot_log_softmax(x, 0), 1.0, 1, &x, &g), COT_OK);
    assert_int_equal(cot_dtype_of(g), COT_F16);
    assert_true(fabs(cot_value(cot_index(g, 0, 0))) <= 17 * log(2) / 2048);
    cot_var dz = cot_jvp(cot_log_softmax(x, 0), 1, &x, &ones);
    assert_int_equal(cot_dtype_of(dz), COT_F16);
    assert_true(fabs(cot_value(cot_index(dz, 0, 0))) <= 17 * log(2) / 2048);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void casts_keep_values_and_carry_gradients(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(3), (double[]){1.5, -2.5, NAN});
    VALUES(cot_cast(x, COT_I32), S(3), 1, -2, 0);
    assert_false(cot_requires_grad(cot_cast(x, COT_I32)));
    cot_var y = cot_cast(x, COT_F32);
    assert_true(cot_requires_grad(y));
    cot_backward(cot_cast(cot_sum(cot_mul(y, 3.0), COT_ALL), COT_F64));
    double g[3];
    cot_read_grad(x, g, 3);
    for (int i = 0; i < 3; i++) assert_true(g[i] == 3);
    assert_true(cot_cast(x, COT_F64).id == x.id);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void shapes_move_no_element_to_the_wrong_place(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(2, 3));
    VALUES(cot_reshape(x, S(3, -1)), S(3, 2), 0, 1, 2, 3, 4, 5);
    VALUES(cot_transpose(x), S(3, 2), 0, 3, 1, 4, 2, 5);
    VALUES(cot_reshape(cot_transpose(x), S(6)), S(6), 0, 3, 1, 4, 2, 5);
    VALUES(cot_reshape(cot_slice(x, 1, 0, 2, 1), S(4)), S(4), 0, 1, 3, 4);
    VALUES(cot_reshape(cot_flip(cot_reshape(x, S(6)), COT_ALL), S(2, 3)), S(2, 3), 5, 4, 3, 2, 1, 0);
    VALUES(cot_permute(iota(t, S(2, 1, 3)), COT_AXES(2, 0, 1)), S(3, 2, 1), 0, 3, 1, 4, 2, 5);
    VALUES(cot_broadcast_to(iota(t, S(2, 1)), S(2, 2, 3)), S(2, 2, 3), 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1);
    VALUES(cot_expand_dims(x, 1), S(2, 1, 3), 0, 1, 2, 3, 4, 5);
    VALUES(cot_squeeze(cot_reshape(x, S(1, 2, 1, 3, 1)), COT_ALL), S(2, 3), 0, 1, 2, 3, 4, 5);
    VALUES(cot_squeeze(cot_reshape(x, S(1, 2, 1, 3, 1)), COT_AXES(-1, 0)), S(2, 1, 3), 0, 1, 2, 3, 4, 5);
    VALUES(cot_flip(x, COT_ALL), S(2, 3), 5, 4, 3, 2, 1, 0);
    VALUES(cot_flip(x, COT_AXES(1)), S(2, 3), 2, 1, 0, 5, 4, 3);
    VALUES(cot_index(x, 1, 1), S(2), 1, 4);
    VALUES(cot_index(cot_index(x, 0, -1), 0, 2), O, 5);
    cot_var parts[3];
    assert_int_equal(cot_split(x, 3, -1, parts), COT_OK);
    VALUES(parts[2], S(2, 1), 2, 5);
    VALUES(cot_pad(x, S(1, 0), S(0, 1), 9), S(3, 4), 9, 9, 9, 9, 0, 1, 2, 9, 3, 4, 5, 9);
    VALUES(CONCAT(2, 1, x, iota(t, S(2, 1))), S(2, 4), 0, 1, 2, 0, 3, 4, 5, 1);
    VALUES(STACK(2, 0, x, x), S(2, 2, 3), 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5);
    VALUES(STACK(2, -1, x, cot_neg(x)), S(2, 3, 2), 0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5);
    VALUES(STACK(2, 0, cot_integer(2), cot_scalar(t, 1)), S(2), 2, 1);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_number(2.5), cot_full(t, COT_I32, O, 1))), COT_F64);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_number(2), cot_full(t, COT_I32, O, 1))), COT_F64);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_integer(2), cot_full(t, COT_I32, O, 1))), COT_I32);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_full(t, COT_F32, O, 1), cot_full(t, COT_I64, O, 1))), COT_F32);
    cot_tape_destroy(t);
}

/* Python's x[start:stop:step], by its own definition: the indices of range(n)[start:stop:step]. */
static void slices_follow_python(void **state) {
    (void)state;
    static const int64_t bounds[] = {INT64_MIN, -9, -5, -4, -1, 0, 1, 3, 4, 5, 9, COT_END}, steps[] = {INT64_MIN, -9, -3, -2, -1, 1, 2, 3, 9, INT64_MAX};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(5));
    for (int a = 0; a < COUNT(bounds); a++)
        for (int b = 0; b < COUNT(bounds); b++)
            for (int s = 0; s < COUNT(steps); s++) {
                int64_t step = steps[s], low = step > 0 ? 0 : -1, high = step > 0 ? 5 : 4, start = bounds[a], stop = bounds[b], n = 0;
                double  want[8];
                if (start < 0) start = start < -5 ? low : start + 5;
                if (stop < 0) stop = stop < -5 ? low : stop + 5;
                if (bounds[b] == COT_END) stop = step > 0 ? 5 : -1;
                start = start > high ? high : start;
                stop = stop > high ? high : stop;
                for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
                    want[n++] = (double)i;
                    if (step > 9 || step < -9) break;
                }
                assert_values(cot_slice(x, 0, bounds[a], bounds[b], step), S(n), want);
            }
    cot_tape_destroy(t);
}

static void views_share_memory_and_copies_do_not(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(4, 6));
    int64_t   bytes = cot_tape_storage_bytes(t);
    cot_reshape(x, S(2, 2, 6));
    cot_reshape(cot_slice(x, 0, 0, COT_END, 2), S(2, 3, 2));
    cot_reshape(cot_broadcast_to(cot_slice(x, 0, 0, 1, 1), S(4, 6)), S(2, 2, 6));
    cot_transpose(x);
    cot_broadcast_to(x, S(5, 4, 6));
    cot_expand_dims(x, 0);
    cot_slice(x, 1, 0, 6, 2);
    cot_flip(x, COT_ALL);
    cot_index(x, 0, 1);
    cot_squeeze(cot_slice(x, 0, 1, 2, 1), COT_ALL);
    assert_int_equal(cot_tape_storage_bytes(t), bytes);
    cot_reshape(cot_transpose(x), S(24));
    assert_true(cot_tape_storage_bytes(t) > bytes);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* One node however many scalars, and one for x[i]. */
static void stacking_scalars_is_one_operation(void **state) {
    (void)state;
    enum { N = 1000 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[N];
    for (int i = 0; i < N; i++) xs[i] = cot_scalar(t, i);
    int64_t before = cot_tape_length(t);
    cot_var v = cot_stack(N, xs, 0);
    assert_int_equal(cot_tape_length(t), before + 1);
    cot_var y = cot_index(v, 0, 7);
    assert_int_equal(cot_tape_length(t), before + 2);
    cot_backward(cot_add(cot_sum(cot_square(v), COT_ALL), y));
    assert_ok(t);
    for (int i = 0; i < N; i++) assert_true(cot_grad_value(xs[i]) == 2 * i + (i == 7));
    cot_tape_destroy(t);
}

static void indices_pick_and_add_the_right_elements(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(3, 2));
    VALUES(cot_take(x, INTS(S(2), 2, -3), 0), S(2, 2), 4, 5, 0, 1);
    VALUES(cot_take(x, INTS(S(1, 2), 1, 0), 1), S(3, 1, 2), 1, 0, 3, 2, 5, 4);
    VALUES(cot_take(x, cot_full(t, COT_U8, O, 2), 0), S(2), 4, 5);
    VALUES(cot_take_along_axis(x, INTS(S(3, 1), 1, 0, -1), 1), S(3, 1), 1, 2, 5);
    VALUES(cot_scatter_add(x, INTS(S(3), 0, 0, 2), REALS(S(3, 2), 10, 20, 30, 40, 50, 60), 0), S(3, 2), 40, 61, 2, 3, 54, 65);
    VALUES(cot_scatter_add(cot_zeros(t, COT_F32, S(3)), INTS(S(4), 1, 1, 1, 2), cot_number(1), 0), S(3), 0, 3, 1);
    VALUES(cot_scatter_add(INTS(S(2), 1, 2), INTS(S(2), 1, 1), cot_number(0.5), 0), S(2), 1, 3); /* integers and a fraction: f64 */
    assert_int_equal(cot_dtype_of(cot_scatter_add(INTS(S(1), 1), INTS(S(1), 0), cot_integer(2), 0)), COT_I64);
    VALUES(cot_one_hot(INTS(S(2), 2, -3), 3, COT_F64), S(2, 3), 0, 0, 1, 1, 0, 0);
    assert_int_equal(cot_dtype_of(cot_one_hot(INTS(S(1), 0), 1, COT_BOOL)), COT_BOOL);
    cot_tape_destroy(t);
}

static void matmul_equals_three_loops(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int m = 0; m < 4; m++)
        for (int k = 0; k < 4; k++)
            for (int n = 0; n < 4; n++) {
                double a[16], b[16], want[16];
                for (int i = 0; i < m * k; i++) a[i] = uniform(-1, 1);
                for (int i = 0; i < k * n; i++) b[i] = uniform(-1, 1);
                for (int i = 0; i < m; i++)
                    for (int j = 0; j < n; j++) {
                        want[i * n + j] = 0;
                        for (int l = 0; l < k; l++) want[i * n + j] += a[i * k + l] * b[l * n + j];
                    }
                assert_values(cot_matmul(cot_data(t, COT_F64, S(m, k), a), cot_data(t, COT_F64, S(k, n), b)), S(m, n), want);
            }
    VALUES(cot_matmul(iota(t, S(2, 1, 2)), iota(t, S(2, 2, 1))), S(2, 1, 1), 1, 13);
    VALUES(cot_matmul(iota(t, S(2, 1, 1, 2)), iota(t, S(2, 2, 1))), S(2, 2, 1, 1), 1, 3, 3, 13);
    VALUES(cot_matmul(iota(t, S(2)), iota(t, S(2, 2, 1))), S(2, 1), 1, 3);
    VALUES(cot_matmul(iota(t, S(2, 1, 2)), iota(t, S(2))), S(2, 1), 1, 3);
    VALUES(cot_outer(iota(t, S(2)), iota(t, S(3))), S(2, 3), 0, 0, 0, 0, 1, 2);
    VALUES(cot_dot(iota(t, S(3)), iota(t, S(3))), O, 5);
    cot_tape_destroy(t);
}

/* A weight shared by a batch gets its gradient from one product: nothing of the size batch times weight is made. */
static void a_shared_matrix_is_not_broadcast(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_ones(t, COT_F64, S(100, 1, 50)), w = cot_tensor(t, COT_F64, S(50, 50), NULL);
    int64_t   before = cot_tape_storage_bytes(t);
    cot_var   y = cot_matmul(x, w);
    cot_var   g;
    cot_grad_of(cot_sum(y, COT_ALL), 1, &w, &g);
    assert_ok(t);
    assert_true(cot_tape_storage_bytes(t) - before < 4 * 100 * 50 * 8);
    cot_tape_destroy(t);
}

static void losses_equal_their_formulas(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = REALS(S(2, 3), 1, 2, 3, 1, 1, 1);
    double    lse = log(exp(1) + exp(2) + exp(3));
    VALUES(cot_softmax(x, 1), S(2, 3), exp(1 - lse), exp(2 - lse), exp(3 - lse), 1 / 3.0, 1 / 3.0, 1 / 3.0);
    VALUES(cot_log_softmax(x, 1), S(2, 3), 1 - lse, 2 - lse, 3 - lse, -log(3), -log(3), -log(3));
    VALUES(cot_softmax_cross_entropy(x, INTS(S(2), 0, 2)), O, (lse - 1 + log(3)) / 2);
    VALUES(cot_softmax_cross_entropy(cot_flip(x, COT_AXES(0)), INTS(S(2), 2, 0)), O, (lse - 1 + log(3)) / 2);
    VALUES(cot_softmax_cross_entropy(x, REALS(S(2, 3), 0.5, 0.5, 0, 0, 1, 0)), O, (lse - 1.5 + log(3)) / 2);
    VALUES(cot_softmax_cross_entropy(REALS(S(2), 0, -INFINITY), REALS(S(2), 1, 0)), O, 0);
    VALUES(cot_softmax_cross_entropy(REALS(S(1, 2), 1000, -1000), INTS(S(1), 1)), O, 2000);
    VALUES(cot_cross_entropy(REALS(S(2, 2), 0.25, 0.75, 0.5, 0.5), INTS(S(2), 0, 1)), O, (log(4) + log(2)) / 2);
    VALUES(cot_cross_entropy(cot_transpose(REALS(S(2, 2), 0.25, 0.5, 0.75, 0.5)), INTS(S(2), 0, 1)), O, (log(4) + log(2)) / 2);
    VALUES(cot_cross_entropy(REALS(S(1, 2), 1, 0), REALS(S(1, 2), 1, 0)), O, 0);
    VALUES(cot_mse(x, cot_zeros(t, COT_F64, S(2, 3))), O, 17 / 6.0);
    VALUES(cot_mse(x, 1), O, 5 / 6.0);
    cot_tape_destroy(t);
}

static void creation_fills_real_memory(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int d = 0; d < COT_DTYPE_COUNT; d++) {
        VALUES(cot_zeros(t, (cot_dtype)d, S(2, 2)), S(2, 2), 0, 0, 0, 0);
        VALUES(cot_ones(t, (cot_dtype)d, S(2)), S(2), 1, 1);
        VALUES(cot_eye(t, (cot_dtype)d, 2, 3), S(2, 3), 1, 0, 0, 0, 1, 0);
        VALUES(cot_full(t, (cot_dtype)d, O, 1), O, 1);
    }
    VALUES(cot_full(t, COT_I32, S(2), 7), S(2), 7, 7);
    VALUES(cot_linspace(t, COT_F64, -1e308, 1e308, 3), S(3), -1e308, 0, 1e308); /* whose difference is no double */
    VALUES(cot_arange(t, COT_F64, 0, 1, 0.25), S(4), 0, 0.25, 0.5, 0.75);
    VALUES(cot_arange(t, COT_I64, 5, 0, -2), S(3), 5, 3, 1);
    VALUES(cot_arange(t, COT_I64, 5, 0, 1), S(0), 0);
    cot_var far = cot_sub(cot_arange(t, COT_I64, 0x1p53, 0x1p53 + 4, 1), (cot_integer)(INT64_C(1) << 53)); /* 2^53 + 1 is no double */
    VALUES(far, S(4), 0, 1, 2, 3);
    VALUES(cot_linspace(t, COT_F64, 0, 1, 5), S(5), 0, 0.25, 0.5, 0.75, 1);
    VALUES(cot_linspace(t, COT_F32, 3, 9, 1), S(1), 3);
    assert_false(cot_requires_grad(cot_ones(t, COT_F64, S(2))));
    cot_tape_destroy(t);
}

/* ---- conventions and corners ----------------------------------------------------------------------------------------------- */

static void gradient_is(cot_tape *t, cot_var y, cot_var x, const double *want) {
    double  g[MAX_SIZE];
    cot_var gx;
    cot_grad_of(y, 1, &x, &gx);
    assert_ok(t);
    cot_read(gx, g, cot_size(x));
    for (int64_t i = 0; i < cot_size(x); i++)
        if (!(g[i] == want[i])) fail_msg("gradient element %d is %g, not %g", (int)i, g[i], want[i]);
}
#define GRADIENT(y, x, ...) gradient_is(t, y, x, (const double[]){__VA_ARGS__})

static void kinks_follow_the_written_conventions(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   ties = cot_tensor(t, COT_F64, S(4), (double[]){1, 3, 3, 2}), zero = cot_tensor(t, COT_F64, S(2), NULL);
    GRADIENT(cot_max(ties, COT_ALL), ties, 0, 0.5, 0.5, 0);
    GRADIENT(cot_min(cot_neg(ties), COT_ALL), ties, 0, -0.5, -0.5, 0);
    GRADIENT(cot_norm(zero, 2, COT_ALL), zero, 0, 0);
    GRADIENT(cot_norm(zero, 3, COT_ALL), zero, 0, 0);
    GRADIENT(cot_std(zero, COT_ALL), zero, 0, 0);
    cot_var dark = cot_tensor(t, COT_F64, S(2), (double[]){-INFINITY, -INFINITY});
    GRADIENT(cot_logsumexp(dark, COT_ALL), dark, 0, 0);
    cot_var half_dark = cot_tensor(t, COT_F64, S(2), (double[]){-INFINITY, 1});
    GRADIENT(cot_logsumexp(half_dark, COT_ALL), half_dark, 0, 1);
    cot_var v = cot_tensor(t, COT_F64, S(4), (double[]){0, 2, 0, 3});
    GRADIENT(cot_prod(v, COT_ALL), v, 0, 0, 0, 0);
    cot_var one_zero = cot_tensor(t, COT_F64, S(3), (double[]){0, 2, 3});
    GRADIENT(cot_prod(one_zero, COT_ALL), one_zero, 6, 0, 0);
    cot_var p = cot_tensor(t, COT_F64, S(1, 2), (double[]){1, 0});
    GRADIENT(cot_cross_entropy(p, REALS(S(1, 2), 1, 0)), p, -1, 0);
    cot_tape_destroy(t);
}

/* With two zeros the product's gradient is 0 and its second derivative is not. */
static void products_with_zeros_keep_second_derivatives(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(4), (double[]){0, 2, 0, 3});
    double    h[16];
    assert_int_equal(cot_hessian(cot_prod(x, COT_ALL), 1, &x, h), COT_OK);
    for (int i = 0; i < 16; i++) assert_true(h[i] == (i == 2 || i == 8 ? 6 : 0));
    cot_tape_destroy(t);
}

static void empty_arrays_are_fine_where_they_make_sense(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(0, 3), NULL), y = cot_tensor(t, COT_F64, S(3, 0), NULL);
    VALUES(cot_sum(x, COT_ALL), O, 0);
    VALUES(cot_sum(x, COT_AXES(0)), S(3), 0, 0, 0);
    VALUES(cot_sum(x, COT_AXES(1)), S(0), 0);
    VALUES(cot_prod(x, COT_AXES(0)), S(3), 1, 1, 1);
    VALUES(cot_prod(INTS(S(0), 0), COT_KEEP_ALL), S(1), 1);
    assert_int_equal(cot_backward(cot_prod(x, COT_ALL)), COT_OK); /* a leaf's function, like the sum */
    VALUES(cot_mean(x, COT_ALL), O, NAN);
    VALUES(cot_max(x, COT_AXES(1)), S(0), 0);
    VALUES(cot_any(x, COT_ALL), O, 0);
    VALUES(cot_all(x, COT_ALL), O, 1);
    VALUES(cot_norm(x, 2, COT_ALL), O, 0);
    VALUES(cot_logsumexp(x, COT_AXES(0)), S(3), -INFINITY, -INFINITY, -INFINITY);
    VALUES(cot_reshape(x, S(6, 0)), S(6, 0), 0);
    VALUES(cot_transpose(x), S(3, 0), 0);
    VALUES(cot_flip(x, COT_ALL), S(0, 3), 0);
    VALUES(cot_slice(x, 1, 2, 1, 1), S(0, 0), 0);
    VALUES(cot_broadcast_to(x, S(2, 0, 3)), S(2, 0, 3), 0);
    VALUES(cot_broadcast_to(cot_ones(t, COT_F64, S(1, 3)), S(0, 3)), S(0, 3), 0);
    VALUES(CONCAT(2, 0, x, cot_ones(t, COT_F64, S(1, 3))), S(1, 3), 1, 1, 1);
    VALUES(STACK(2, 0, x, x), S(2, 0, 3), 0);
    VALUES(cot_pad(x, S(1, 0), S(0, 0), 2), S(1, 3), 2, 2, 2);
    VALUES(cot_take(x, INTS(S(1), 1), 1), S(0, 1), 0);
    VALUES(cot_take(x, cot_zeros(t, COT_I64, S(0)), 0), S(0, 3), 0);
    VALUES(cot_matmul(x, cot_ones(t, COT_F64, S(3, 2))), S(0, 2), 0);
    VALUES(cot_matmul(y, x), S(3, 3), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    VALUES(cot_softmax(x, 1), S(0, 3), 0);
    VALUES(cot_softmax_cross_entropy(x, cot_zeros(t, COT_I64, S(0))), O, NAN);
    VALUES(cot_mse(x, x), O, NAN);
    VALUES(cot_one_hot(cot_zeros(t, COT_I64, S(0)), 3, COT_F64), S(0, 3), 0);
    cot_var total = cot_add(cot_sum(cot_matmul(y, x), COT_ALL), cot_sum(cot_square(x), COT_ALL));
    assert_int_equal(cot_backward(total), COT_OK);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void nothing_comes_of_nothing(void **state) {
    (void)state;
    cot_var none = {NULL, 0}, number = cot_number(2), out[2];
    assert_false(cot_is_valid(cot_zeros(NULL, COT_F64, S(2))));
    assert_false(cot_is_valid(cot_sum(none, COT_ALL)));
    assert_false(cot_is_valid(cot_sum(number, COT_ALL)));
    assert_false(cot_is_valid(cot_matmul(number, number)));
    assert_false(cot_is_valid(cot_mse(1.0, 2.0)));
    assert_false(cot_is_valid(cot_stack(1, &number, 0)));
    assert_false(cot_is_valid(cot_stack(0, NULL, 0)));
    assert_false(cot_is_valid(cot_take(none, none, 0)));
    assert_false(cot_is_valid(cot_softmax(number, 0)));
    assert_false(cot_is_valid(cot_cross_entropy(none, none)));
    assert_int_not_equal(cot_split(none, 2, 0, out), COT_OK);
    assert_false(cot_is_valid(out[1]));
}

static void in_place_checks_know_what_rules_saved(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(2, 2), (double[]){1, 2, 3, 4});
    cot_var   y = cot_mul(x, 2.0), s = cot_sum(y, COT_ALL); /* a sum saves nothing */
    cot_add_into(&y, cot_number(1));
    assert_int_equal(cot_backward(s), COT_OK);
    cot_var z = cot_mul(x, 2.0), m = cot_matmul(z, x); /* a product saves both */
    cot_add_into(&z, cot_number(1));
    assert_int_equal(cot_backward(cot_sum(m, COT_ALL)), COT_STALE);
    cot_tape_destroy(t);
}

/* Next to a constant a factor is free, the constant is not; positions are read again by the transposes. */
static void strict_tapes_protect_what_adjoints_read_and_nothing_else(void **state) {
    (void)state;
    cot_options options = {.strict = true};
    cot_tape   *t = cot_tape_create(&options);
    cot_var     x = cot_tensor(t, COT_F64, S(2, 2), (double[]){1, 2, 3, 4}), a = REALS(S(2, 2), 1, 1, 2, 2);
    cot_var     y = cot_add(x, 0.0), m = cot_matmul(a, y), p = cot_mul(y, a);
    assert_int_equal(cot_add_into(&y, cot_number(1)), COT_OK);
    assert_int_equal(cot_backward(cot_add(cot_sum(m, COT_ALL), cot_sum(p, COT_ALL))), COT_OK);
    double g[4], want[4] = {3 + 1, 3 + 1, 3 + 2, 3 + 2};
    cot_read_grad(x, g, 4);
    for (int i = 0; i < 4; i++) assert_true(g[i] == want[i]);
    assert_int_equal(cot_add_into(&a, cot_number(1)), COT_STALE);
    cot_tape_clear_error(t);
    cot_var at = INTS(S(2, 1), 0, 1), labels = cot_reshape(at, S(2));
    cot_take(x, labels, 0);
    cot_status status = cot_add_into(&labels, cot_integer(-1));
    assert_int_equal(status, COT_STALE);
    cot_tape_clear_error(t);
    at = INTS(S(2, 1), 0, 1);
    cot_take_along_axis(x, at, 1);
    assert_int_equal(cot_add_into(&at, cot_integer(-1)), COT_STALE);
    cot_tape_clear_error(t);
    at = INTS(S(2), 0, 1);
    cot_scatter_add(x, at, x, 0);
    assert_int_equal(cot_add_into(&at, cot_integer(-1)), COT_STALE);
    cot_tape_destroy(t);
}

/* A write over operand k (or, k = n, over the result): what a strict tape says to it, or else the backward after it. */
static cot_status overwrite(const row *r, int k, bool strict, bool *wrote) {
    cot_options options = {.strict = strict};
    cot_tape   *t = cot_tape_create(&options);
    cot_var     x[MAX_OPERANDS], y[MAX_OPERANDS + 1];
    leaves(r, t, x);
    for (int j = 0; j < r->n; j++) y[j] = cot_add(x[j], 0.0); /* values of their own that their makers do not need again */
    cot_var z = r->f(t, y), out = cot_add(z, 0.0), seed_z = cot_data(t, COT_F64, cot_shape_of(z), r->w);
    y[r->n] = z;
    assert_ok(t);
    cot_status status = COT_OK;
    *wrote = cot_shape_of(y[k]).ndim > 0;
    if (*wrote) status = cot_add_into(&y[k], cot_number(1));
    if (status == COT_VALUE || status == COT_SHAPE) *wrote = false; /* a broadcast view: not writable */
    if (status == COT_OK && !strict) status = cot_backward_seeded(out, seed_z);
    cot_tape_destroy(t);
    return status;
}

/* A strict tape refuses at the write exactly what another tape finds at backward: save masks tell what rules read, no more, no less. */
static void check_saves(row *r) {
    for (int k = 0; k <= r->n; k++) {
        bool       wrote;
        cot_status late = overwrite(r, k, false, &wrote), early = overwrite(r, k, true, &wrote);
        if (wrote && early != late) fail_msg("%s, operand %d: %s at the write, %s at backward", r->name, k, cot_status_name(early), cot_status_name(late));
    }
}

static void save_masks_are_exact(void **state) {
    (void)state;
    each_row(check_saves);
}

/* ---- errors ------------------------------------------------------------------------------------------------------------------ */

static void says(cot_tape *t, cot_var z, cot_status code, const char *text) {
    assert_false(cot_is_valid(z));
    assert_string_equal(cot_tape_message(t), text);
    assert_int_equal(cot_tape_status(t), code);
    cot_tape_clear_error(t);
}

static void errors_name_the_operation_the_facts_and_the_rule(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(2, 3)), v = iota(t, S(3)), s = cot_constant(t, 1), e = cot_zeros(t, COT_F64, S(0, 3)), out[2];
#define SAYS(z, code, text) says(t, z, code, text)
    SAYS(cot_sum(x, COT_AXES(2)), COT_SHAPE, "[sum] axis 2 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_sum(x, COT_AXES(0, -2)), COT_SHAPE, "[sum] axis 0 is listed twice; each axis may appear once");
    SAYS(cot_mean(s, COT_AXES(0)), COT_SHAPE, "[mean] axis 0 is out of range for rank 0; a scalar has no axes");
    SAYS(cot_max(e, COT_ALL), COT_SHAPE, "[max] shape (0,3) has no elements along the reduced axes; an empty max does not exist");
    SAYS(cot_norm(e, INFINITY, COT_ALL), COT_SHAPE, "[norm] shape (0,3) has no elements along the reduced axes; an empty norm does not exist");
    SAYS(cot_argmin(e, COT_AXES(0)), COT_SHAPE,
         "[argmin] shape (0,3) has no elements along the reduced axes; an empty argmin does not exist");
    SAYS(cot_argmax(x, COT_AXES(0, 1)), COT_SHAPE,
         "[argmax] 2 axes are listed; positions run along one axis, or along all with COT_ALL");
    SAYS(cot_norm(x, NAN, COT_ALL), COT_VALUE, "[norm] the order is NaN; orders are numbers, INFINITY or -INFINITY");
    SAYS(cot_cast(x, (cot_dtype)77), COT_DTYPE, "[cast] 77 is not a dtype; dtypes are COT_F64 … COT_BOOL");
    SAYS(cot_reshape(x, S(4)), COT_SHAPE, "[reshape] (2,3) has 6 elements and does not fit (4,); the number of elements stays the same");
    SAYS(cot_reshape(x, S(4, -1)), COT_SHAPE,
         "[reshape] (2,3) has 6 elements and does not fit (4,-1); the number of elements stays the same");
    SAYS(cot_reshape(x, S(-1, -1)), COT_SHAPE, "[reshape] axes 0 and 1 both have extent -1; one extent may be left open");
    SAYS(cot_reshape(x, S(-2, 3)), COT_SHAPE, "[reshape] axis 0 of shape (-2,3) has extent -2; extents are not negative");
    SAYS(cot_reshape(e, S(0, INT64_MAX, 2)), COT_LIMIT,
         "[reshape] shape (0,9223372036854775807,2) has too many elements to address");
    SAYS(cot_reshape(x, ((cot_shape){17, {0}})), COT_LIMIT, "[reshape] a shape of 17 axes; shapes have 0 to 16 axes");
    SAYS(cot_permute(x, COT_AXES(0)), COT_SHAPE, "[permute] 1 axes are listed for rank 2; the order lists every axis once");
    SAYS(cot_permute(x, COT_AXES(1, 1)), COT_SHAPE, "[permute] axis 1 is listed twice; each axis may appear once");
    SAYS(cot_broadcast_to(x, S(2, 4)), COT_SHAPE,
         "[broadcast_to] (2,3) does not broadcast to (2,4); aligned at the last axis, extents are equal or 1");
    SAYS(cot_broadcast_to(x, S(3)), COT_SHAPE,
         "[broadcast_to] (2,3) does not broadcast to (3,); aligned at the last axis, extents are equal or 1");
    SAYS(cot_expand_dims(x, 4), COT_SHAPE, "[expand_dims] axis 4 is out of range for rank 3; axes run from -3 to 2");
    SAYS(cot_expand_dims(cot_ones(t, COT_F64, ((cot_shape){16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}})), 0), COT_LIMIT,
         "[expand_dims] the operand has 16 axes already; there are at most 16");
    SAYS(cot_squeeze(x, COT_AXES(1)), COT_SHAPE, "[squeeze] axis 1 has extent 3; only axes of extent 1 can go");
    SAYS(cot_slice(x, 0, 0, 1, 0), COT_VALUE, "[slice] the step is 0; steps are positive or negative");
    SAYS(cot_slice(s, 0, 0, 1, 1), COT_SHAPE, "[slice] axis 0 is out of range for rank 0; a scalar has no axes");
    SAYS(cot_index(x, 1, 3), COT_VALUE, "[index] position 3 is out of range for axis 1 of extent 3");
    SAYS(cot_index(x, 1, -4), COT_VALUE, "[index] position -4 is out of range for axis 1 of extent 3");
    SAYS(cot_concat(1, &s, 0), COT_SHAPE, "[concat] the operands are scalars, which have no axis; cot_stack joins scalars");
    SAYS(CONCAT(2, 0, x, v), COT_SHAPE,
         "[concat] xs[0] has shape (2,3), xs[1] has (3,); all extents but the one along the axis must be equal");
    SAYS(STACK(3, 0, v, v, x), COT_SHAPE, "[stack] xs[0] has shape (3,), xs[2] has (2,3); all shapes must be equal");
    SAYS(cot_pad(x, S(1), S(1, 1), 0), COT_SHAPE, "[pad] 1 extents before and 2 after for rank 2; one of each for every axis");
    SAYS(cot_pad(x, S(0, -1), S(0, 0), 0), COT_VALUE, "[pad] -1 before and 0 after on axis 1; a border is not negative");
    SAYS(cot_take(x, INTS(S(2, 2), 0, 1, 3, 0), 1), COT_VALUE,
         "[take] indices[1,0] is 3, out of range for extent 3; values run from -3 to 2");
    SAYS(cot_take(x, v, 1), COT_DTYPE, "[take] indices have dtype f64; they must be integers");
    SAYS(cot_take(e, INTS(S(1), 0), 0), COT_VALUE, "[take] indices[0] is 0, but the axis has extent 0; it has no positions");
    SAYS(cot_take_along_axis(x, INTS(S(1, 1), 0), 1), COT_SHAPE,
         "[take_along_axis] x has shape (2,3), indices (1,1); they agree in all extents but the one along axis 1");
    SAYS(cot_scatter_add(v, INTS(S(2), 0, 1), v, 0), COT_SHAPE, "[scatter_add] the updates have shape (3,); the positions ask for (2,)");
    SAYS(cot_one_hot(INTS(S(2), 0, 4), 4, COT_F64), COT_VALUE,
         "[one_hot] indices[1] is 4, out of range for extent 4; values run from -4 to 3");
    SAYS(cot_matmul(cot_zeros(t, COT_F32, S(64, 128)), cot_zeros(t, COT_F32, S(64, 10))), COT_SHAPE,
         "[matmul] inner dimensions differ: (64,128) @ (64,10); the last axis of a must equal the second last of b");
    SAYS(cot_matmul(x, iota(t, S(2))), COT_SHAPE,
         "[matmul] inner dimensions differ: (2,3) @ (2,); the last axis of a must equal the only one of b");
    SAYS(cot_matmul(x, s), COT_SHAPE, "[matmul] a scalar has no axis to multiply along: (2,3) @ (); cot_mul takes scalars");
    SAYS(cot_matmul(iota(t, S(2, 2, 3)), iota(t, S(3, 3, 1))), COT_SHAPE,
         "[matmul] leading axes do not broadcast: (2,2,3) @ (3,3,1); aligned before the last two, extents are equal or 1");
    SAYS(cot_dot(x, v), COT_SHAPE, "[dot] the operands have shapes (2,3) and (3,); both must be vectors");
    SAYS(cot_dot(v, iota(t, S(2))), COT_SHAPE, "[dot] the operands have shapes (3,) and (2,); both must have the same extent");
    SAYS(cot_outer(v, s), COT_SHAPE, "[outer] the operands have shapes (3,) and (); both must be vectors");
    SAYS(cot_softmax(x, -3), COT_SHAPE, "[softmax] axis -3 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_softmax_cross_entropy(x, INTS(S(2), 0, 3)), COT_VALUE,
         "[softmax_cross_entropy] labels[1] is 3, out of range for extent 3; values run from 0 to 2");
    SAYS(cot_softmax_cross_entropy(x, INTS(S(1), 0)), COT_SHAPE,
         "[softmax_cross_entropy] predictions of shape (2,3) need labels of shape (2,); these have (1,)");
    SAYS(cot_cross_entropy(x, v), COT_SHAPE, "[cross_entropy] predictions of shape (2,3) need targets of shape (2,3); these have (3,)");
    SAYS(cot_cross_entropy(s, s), COT_SHAPE,
         "[cross_entropy] the predictions have shape (); the last axis holds the classes, at least one");
    SAYS(cot_mse(x, v), COT_SHAPE, "[mse] the operands have shapes (2,3) and (3,); they must be equal, or one a scalar");
    SAYS(cot_arange(t, COT_F64, 0, 1, 0), COT_VALUE, "[arange] start 0, stop 1, step 0; all must be finite and the step not 0");
    SAYS(cot_arange(t, COT_F64, 0, 1e300, 1), COT_LIMIT, "[arange] 1e+300 elements are too many to address");
    SAYS(cot_linspace(t, COT_F64, 0, 1, -1), COT_SHAPE, "[linspace] axis 0 of shape (-1,) has extent -1; extents are not negative");
    SAYS(cot_zeros(t, (cot_dtype)-1, S(1)), COT_DTYPE, "[zeros] -1 is not a dtype; dtypes are COT_F64 … COT_BOOL");
    assert_int_equal(cot_split(x, 2, 1, out), COT_SHAPE);
    SAYS(out[1], COT_SHAPE, "[split] axis 1 of extent 3 does not split into 2 equal parts");
    cot_mark m = cot_tape_mark(t);
    cot_var  gone = cot_add(s, 1.0);
    cot_tape_rewind(t, m);
    SAYS(cot_sum(gone, COT_ALL), COT_VAR, "[sum] the operand was forgotten by a rewind");
    SAYS(STACK(2, 0, s, gone), COT_VAR, "[stack] the xs[1] operand was forgotten by a rewind");
    SAYS(cot_matmul(x, gone), COT_VAR, "[matmul] the right operand was forgotten by a rewind");
    cot_tape_destroy(t);
}

/* After an error every operation is a no-op that keeps the first message. */
static void errors_stick(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(2, 3)), bad = cot_sum(x, COT_AXES(5));
    int64_t   length = cot_tape_length(t);
    assert_false(cot_is_valid(cot_matmul(x, bad)));
    assert_false(cot_is_valid(cot_transpose(x)));
    assert_false(cot_is_valid(cot_stack(2, (cot_var[]){x, x}, 0)));
    assert_false(cot_is_valid(cot_mse(x, 1.0)));
    assert_false(cot_is_valid(cot_variance(x, COT_ALL)));
    assert_false(cot_is_valid(cot_zeros(t, COT_F64, S(2))));
    assert_int_equal(cot_tape_length(t), length);
    assert_string_equal(cot_tape_message(t), "[sum] axis 5 is out of range for rank 2; axes run from -2 to 1");
    cot_tape_destroy(t);
}

/* One position many times over, in halves: the sum is made in f32, or it would stop where a half has no more digits. */
static void repeated_positions_of_halves_do_not_stagnate(void **state) {
    (void)state;
    enum { REPEATS = 4096 };
    static const cot_dtype halves[] = {COT_BF16, COT_F16};
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, halves[k], COT_SHAPE(2), NULL), at = cot_zeros(t, COT_I64, COT_SHAPE(REPEATS));
        cot_var   sum = cot_scatter_add(cot_zeros(t, halves[k], COT_SHAPE(2)), at, cot_ones(t, halves[k], COT_SHAPE(REPEATS)), 0), g;
        double    got[2];
        cot_read(sum, got, 2);
        assert_true(got[0] == REPEATS && got[1] == 0);
        cot_var y = cot_take(x, at, 0);
        cot_backward_seeded(y, 1.0);
        cot_read_grad(x, got, 2);
        assert_true(got[0] == REPEATS && got[1] == 0);
        cot_vjp(y, 1.0, 1, &x, &g);
        cot_read(g, got, 2);
        assert_true(got[0] == REPEATS && got[1] == 0);
        assert_int_equal(cot_tape_status(t), COT_OK);
        cot_tape_destroy(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_equal_plain_loops),
        cmocka_unit_test(norms_and_deviations_of_far_away_numbers_have_gradients),
        cmocka_unit_test(logsumexp_over_scalars_is_that_over_a_tensor),
        cmocka_unit_test(scalars_reduce_to_themselves),
        cmocka_unit_test(integers_reduce_as_in_numpy),
        cmocka_unit_test(halves_average_without_overflow),
        cmocka_unit_test(norms_and_products_of_halves_do_not_overflow_on_the_way),
        cmocka_unit_test(halves_share_among_many_ties),
        cmocka_unit_test(softmax_of_halves_sums_wide),
        cmocka_unit_test(casts_keep_values_and_carry_gradients),
        cmocka_unit_test(shapes_move_no_element_to_the_wrong_place),
        cmocka_unit_test(slices_follow_python),
        cmocka_unit_test(views_share_memory_and_copies_do_not),
        cmocka_unit_test(stacking_scalars_is_one_operation),
        cmocka_unit_test(indices_pick_and_add_the_right_elements),
        cmocka_unit_test(matmul_equals_three_loops),
        cmocka_unit_test(a_shared_matrix_is_not_broadcast),
        cmocka_unit_test(losses_equal_their_formulas),
        cmocka_unit_test(creation_fills_real_memory),
        cmocka_unit_test(gradients_match_central_differences),
        cmocka_unit_test(second_derivatives_match_differences_of_gradients),
        cmocka_unit_test(forward_mode_matches_reverse_mode),
        cmocka_unit_test(strided_operands_give_the_same_results),
        cmocka_unit_test(float32_agrees_with_float64),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(kinks_follow_the_written_conventions),
        cmocka_unit_test(products_with_zeros_keep_second_derivatives),
        cmocka_unit_test(empty_arrays_are_fine_where_they_make_sense),
        cmocka_unit_test(nothing_comes_of_nothing),
        cmocka_unit_test(in_place_checks_know_what_rules_saved),
        cmocka_unit_test(save_masks_are_exact),
        cmocka_unit_test(strict_tapes_protect_what_adjoints_read_and_nothing_else),
        cmocka_unit_test(errors_name_the_operation_the_facts_and_the_rule),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(repeated_positions_of_halves_do_not_stagnate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
