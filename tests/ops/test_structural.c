/* Every differentiable structural operation in its forms, in one table: gradients, second
 * derivatives and forward mode against central differences and against each other; strided
 * operands, f32, failing memory; the effect of a write over an operand. */
/* ctest: timeout=120 */
#include "support/structural_test.h"

enum { MAX_OPERANDS = 3 };

static uint64_t seed;

static double uniform(double lo, double hi) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(seed >> 11) * 0x1p-53;
}

/* ---- the table: every differentiable structural operation in its forms ----------------------- */


/*  name               operands' shapes               low high  expression in x[0], x[1], x[2] */
#define CASES(CASE)                                                                                                    \
    CASE(sum_all, 1, S(3, 4), O, O, -2, 2, cot_sum(x[0], COT_ALL))                                                     \
    CASE(sum_scalar, 1, O, O, O, -2, 2, cot_sum(x[0], COT_ALL))                                                        \
    CASE(sum_axis, 1, S(3, 4), O, O, -2, 2, cot_sum(x[0], COT_AXES(0)))                                                \
    CASE(sum_keep, 1, S(2, 3, 4), O, O, -2, 2, cot_sum(x[0], COT_KEEP(-1, 0)))                                         \
    CASE(mean, 1, S(2, 3, 4), O, O, -2, 2, cot_mean(x[0], COT_AXES(1)))                                                \
    CASE(prod_all, 1, S(5, 3), O, O, -2, 2, cot_prod(x[0], COT_ALL))                                                   \
    CASE(prod_axis, 1, S(2, 7), O, O, -2, 2, cot_prod(x[0], COT_KEEP(1)))                                              \
    CASE(prod_two, 1, S(2, 3, 5), O, O, -2, 2, cot_prod(x[0], COT_AXES(2, 0)))                                         \
    CASE(max_all, 1, S(3, 4), O, O, -2, 2, cot_max(x[0], COT_ALL))                                                     \
    CASE(max_axis, 1, S(3, 4), O, O, -2, 2, cot_max(x[0], COT_AXES(1)))                                                \
    CASE(min_axis, 1, S(3, 4), O, O, -2, 2, cot_min(x[0], COT_KEEP(0)))                                                \
    CASE(max_square, 1, S(3, 4), O, O, -2, 2, cot_square(cot_max(cot_sin(x[0]), COT_AXES(1))))                         \
    CASE(variance, 1, S(3, 4), O, O, -2, 2, cot_variance(x[0], COT_AXES(1)))                                           \
    CASE(std, 1, S(3, 4), O, O, -2, 2, cot_std(x[0], COT_AXES(0)))                                                     \
    CASE(logsumexp, 1, S(3, 4), O, O, -2, 2, cot_logsumexp(x[0], COT_AXES(1)))                                         \
    CASE(logsumexp_all, 1, S(3, 4), O, O, -2, 2, cot_logsumexp(x[0], COT_KEEP_ALL))                                    \
    CASE(norm, 1, S(3, 4), O, O, -2, 2, cot_norm(x[0], 2, COT_AXES(1)))                                                \
    CASE(norm_all, 1, S(3, 4), O, O, -2, 2, cot_norm(x[0], 2, COT_ALL))                                                \
    CASE(norm_scalar, 1, O, O, O, 0.2, 2, cot_norm(x[0], 2, COT_ALL))                                                  \
    CASE(norm_1, 1, S(3, 4), O, O, 0.2, 2, cot_norm(x[0], 1, COT_AXES(0)))                                             \
    CASE(norm_3, 1, S(3, 4), O, O, 0.2, 2, cot_norm(x[0], 3, COT_AXES(0)))                                             \
    CASE(norm_inf, 1, S(3, 4), O, O, -2, 2, cot_norm(x[0], INFINITY, COT_AXES(0)))                                     \
    CASE(reshape, 1, S(3, 4), O, O, -2, 2, cot_reshape(x[0], S(2, -1)))                                                \
    CASE(reshape_scalar, 1, O, O, O, -2, 2, cot_reshape(x[0], S(1, 1)))                                                \
    CASE(reshape_to_0d, 1, S(1, 1), O, O, -2, 2, cot_reshape(x[0], O))                                                 \
    CASE(reshape_copy, 1, S(3, 4), O, O, -2, 2, cot_reshape(cot_transpose(x[0]), S(6, 2)))                             \
    CASE(transpose, 1, S(2, 3, 4), O, O, -2, 2, cot_transpose(x[0]))                                                   \
    CASE(permute, 1, S(2, 3, 4), O, O, -2, 2, cot_permute(x[0], COT_AXES(1, -1, 0)))                                   \
    CASE(broadcast_to, 1, S(3, 1), O, O, -2, 2, cot_broadcast_to(x[0], S(2, 3, 4)))                                    \
    CASE(broadcast_0d, 1, O, O, O, -2, 2, cot_broadcast_to(x[0], S(2, 3)))                                             \
    CASE(expand_dims, 1, S(3, 4), O, O, -2, 2, cot_expand_dims(x[0], -2))                                              \
    CASE(squeeze, 1, S(1, 3, 1), O, O, -2, 2, cot_squeeze(x[0], COT_AXES(0)))                                          \
    CASE(slice, 1, S(3, 7), O, O, -2, 2, cot_slice(x[0], 1, 1, COT_END, 2))                                            \
    CASE(slice_back, 1, S(3, 7), O, O, -2, 2, cot_slice(x[0], -1, -2, 0, -2))                                          \
    CASE(index, 1, S(3, 4), O, O, -2, 2, cot_index(x[0], 0, -1))                                                       \
    CASE(index_vector, 1, S(5), O, O, -2, 2, cot_index(x[0], 0, 2))                                                    \
    CASE(index_twice, 1, S(5), O, O, -2, 2, cot_mul(cot_index(x[0], 0, 2), cot_index(x[0], 0, 4)))                     \
    CASE(flip, 1, S(2, 3, 2), O, O, -2, 2, cot_flip(x[0], COT_AXES(0, 2)))                                             \
    CASE(pad, 1, S(2, 3), O, O, -2, 2, cot_pad(x[0], S(1, 0), S(0, 2), 7))                                             \
    CASE(concat, 3, S(2, 3), S(2, 1), S(2, 2), -2, 2, cot_concat(3, x, 1))                                             \
    CASE(concat_one, 1, S(2, 3), O, O, -2, 2, cot_concat(1, x, 0))                                                     \
    CASE(concat_self, 1, S(2, 3), O, O, -2, 2, CONCAT(4, 0, x[0], x[0], cot_square(x[0]), x[0]))                       \
    CASE(stack, 2, S(2, 3), S(2, 3), O, -2, 2, cot_stack(2, x, 1))                                                     \
    CASE(stack_three, 3, S(2), S(2), S(2), -2, 2, cot_stack(3, x, -1))                                                 \
    CASE(stack_scalars, 3, O, O, O, -2, 2, cot_stack(3, x, 0))                                                         \
    CASE(stack_numbers, 1, O, O, O, -2, 2, STACK(3, 0, cot_number(2), x[0], cot_number(0.5)))                          \
    CASE(take, 1, S(4, 3), O, O, -2, 2, cot_take(x[0], INTS(S(2, 2), 3, 0, -1, 0), 0))                                 \
    CASE(take_middle, 1, S(2, 4, 2), O, O, -2, 2, cot_take(x[0], INTS(S(3), 1, 1, 2), 1))                              \
    CASE(take_scalar, 1, S(2, 4), O, O, -2, 2, cot_take(x[0], cot_cast(cot_constant(t, 3), COT_I32), 1))               \
    CASE(take_along, 1, S(2, 4), O, O, -2, 2, cot_take_along_axis(x[0], INTS(S(2, 3), 1, 1, 0, 3, -1, 2), 1))          \
    CASE(scatter_add, 2, S(4, 2), S(3, 2), O, -2, 2, cot_scatter_add(x[0], INTS(S(3), 1, -1, 1), x[1], 0))             \
    CASE(scatter_scalar, 2, S(4), O, O, -2, 2, cot_scatter_add(x[0], INTS(S(3), 1, -1, 1), x[1], 0))                   \
    CASE(matmul, 2, S(3, 4), S(4, 2), O, -2, 2, cot_matmul(x[0], x[1]))                                                \
    CASE(matmul_mv, 2, S(3, 4), S(4), O, -2, 2, cot_matmul(x[0], x[1]))                                                \
    CASE(matmul_vm, 2, S(3), S(3, 4), O, -2, 2, cot_matmul(x[0], x[1]))                                                \
    CASE(matmul_vv, 2, S(3), S(3), O, -2, 2, cot_matmul(x[0], x[1]))                                                   \
    CASE(matmul_batch, 2, S(2, 3, 4), S(2, 4, 2), O, -2, 2, cot_matmul(x[0], x[1]))                                    \
    CASE(matmul_folded, 2, S(2, 3, 4), S(4, 2), O, -2, 2, cot_matmul(x[0], x[1]))                                      \
    CASE(matmul_left2, 2, S(3, 4), S(2, 4, 2), O, -2, 2, cot_matmul(x[0], x[1]))                                       \
    CASE(matmul_cross, 2, S(2, 1, 2, 3), S(2, 3, 2), O, -2, 2, cot_matmul(x[0], x[1]))                                 \
    CASE(matmul_bv, 2, S(2, 3, 4), S(4), O, -2, 2, cot_matmul(x[0], x[1]))                                             \
    CASE(matmul_vb, 2, S(3), S(2, 3, 4), O, -2, 2, cot_matmul(x[0], x[1]))                                             \
    CASE(matmul_self, 1, S(3, 3), O, O, -2, 2, cot_matmul(x[0], cot_matmul(cot_transpose(x[0]), x[0])))                \
    CASE(dot, 2, S(5), S(5), O, -2, 2, cot_dot(x[0], x[1]))                                                            \
    CASE(dot_self, 1, S(5), O, O, -2, 2, cot_dot(x[0], x[0]))                                                          \
    CASE(outer, 2, S(2), S(3), O, -2, 2, cot_outer(x[0], x[1]))                                                        \
    CASE(softmax, 1, S(3, 4), O, O, -2, 2, cot_softmax(x[0], -1))                                                      \
    CASE(softmax_0, 1, S(3, 4), O, O, -2, 2, cot_softmax(x[0], 0))                                                     \
    CASE(log_softmax, 1, S(3, 4), O, O, -2, 2, cot_log_softmax(x[0], 1))                                               \
    CASE(sce_labels, 1, S(3, 4), O, O, -2, 2, cot_softmax_cross_entropy(x[0], INTS(S(3), 1, 3, 0)))                    \
    CASE(sce_label, 1, S(4), O, O, -2, 2, cot_softmax_cross_entropy(x[0], cot_cast(cot_constant(t, 2), COT_I64)))      \
    CASE(sce_deep, 1, S(2, 3, 4), O, O, -2, 2, cot_softmax_cross_entropy(x[0], INTS(S(2, 3), 1, 3, 0, 0, 2, 1)))       \
    CASE(sce_weights, 2, S(3, 4), S(3, 4), O, -2, 2, cot_softmax_cross_entropy(x[0], x[1]))                            \
    CASE(ce_labels, 1, S(3, 4), O, O, 0.2, 1, cot_cross_entropy(x[0], INTS(S(3), 1, 3, 0)))                            \
    CASE(ce_weights, 2, S(3, 4), S(3, 4), O, 0.2, 1, cot_cross_entropy(x[0], x[1]))                                    \
    CASE(mse, 2, S(3, 4), S(3, 4), O, -2, 2, cot_mse(x[0], x[1]))                                                      \
    CASE(mse_scalar, 2, O, S(3), O, -2, 2, cot_mse(x[0], x[1]))                                                        \
    CASE(mse_number, 1, S(3), O, O, -2, 2, cot_mse(x[0], 0.5))                                                         \
    CASE(mse_0d, 2, O, O, O, -2, 2, cot_mse(x[0], x[1]))                                                               \
    CASE(cast, 1, S(3), O, O, -2, 2, cot_cast(cot_mul(x[0], x[0]), COT_F64))

typedef cot_var function(cot_tape *t, const cot_var *x);

#define FUNCTION(name, n, s0, s1, s2, lo, hi, expression)                                                              \
    static cot_var f_##name(cot_tape *t, const cot_var *x) {                                                           \
        (void)t;                                                                                                       \
        return expression;                                                                                             \
    }
CASES(FUNCTION)

typedef struct row {
    const char *name;
    function   *f;
    int         n;
    cot_shape   shape[MAX_OPERANDS];
    double      lo, hi;
    double      x[MAX_OPERANDS][MAX_SIZE], v[MAX_OPERANDS][MAX_SIZE]; /* a point and a direction */
    /* weights of the result's elements */
    double      w[MAX_SIZE];
} row;

static void each_row(void (*check)(row *r)) {
    static row r;
#define ROW(label, count, s0, s1, s2, low, high, expression)                                                           \
    r    = (row){.name = #label, .f = f_##label, .n = count, .shape = {s0, s1, s2}, .lo = low, .hi = high};            \
    seed = 7;                                                                                                          \
    for (int k = 0; k < r.n; k++)                                                                                      \
        for (int64_t i = 0; i < size_of(r.shape[k]); i++) r.x[k][i] = uniform(low, high), r.v[k][i] = uniform(-1, 1);  \
    for (int i = 0; i < MAX_SIZE; i++) r.w[i] = uniform(-1, 1);                                                        \
    check(&r);
    CASES(ROW)
}

/* Σ w f(x): the function that is differentiated. */
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
    if (!near(have, want, 2e-7))
        fail_msg("%s: %s of x[%d], element %d: %.12g, not %.12g", r->name, what, k, (int)i, have, want);
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
        for (int64_t i = 0; i < size_of(r->shape[k]); i++)
            compare(r, "second derivative", k, i, have[i], (up[k][i] - down[k][i]) * H / 2);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void second_derivatives_match_differences_of_gradients(void **state) {
    (void)state;
    each_row(check_second_order);
}

/* w · (J v) = (w J) · v, and forward over reverse gives the same second derivative as reverse over
 * reverse. */
static void check_forward(row *r) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var x[MAX_OPERANDS], v[MAX_OPERANDS], g[MAX_OPERANDS], h[MAX_OPERANDS], sum = cot_constant(t, 0), second = sum;
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

/* The same numbers behind other strides: transposed, flipped, every second element, an inner
 * part. */
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
        if (!near(cot_value(y), value, 1e-14))
            fail_msg("%s, layout %d: %.17g, not %.17g", r->name, layout, cot_value(y), value);
        for (int k = 0; k < r->n; k++) {
            double have[MAX_SIZE];
            cot_read(g[k], have, size_of(r->shape[k]));
            for (int64_t i = 0; i < size_of(r->shape[k]); i++)
                if (!near(have[i], want[k][i], 1e-13))
                    fail_msg("%s, layout %d: gradient %g, not %g", r->name, layout, have[i], want[k][i]);
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


static void differentiate(cot_tape *t, void *user) {
    const row *r = user;
    cot_var    x[MAX_OPERANDS], g[MAX_OPERANDS], v[MAX_OPERANDS];
    leaves(r, t, x);
    directions(r, t, v);
    cot_var y = weighted(r, t, x);
    cot_backward(y);
    cot_grad_of(y, r->n, x, g);
    cot_jvp(y, r->n, x, v);
}

static void check_memory(row *r) { assert_survives_no_memory(differentiate, r, 0, NULL); }

static void every_failing_allocation_is_survived(void **state) {
    (void)state;
    each_row(check_memory);
}

/* Writes over operand k (or, with k = n, over the result). Returns the status of the write on a
 * strict tape, otherwise of the backward after it. */
static cot_status overwrite(const row *r, int k, bool strict, bool *wrote) {
    cot_options options = {.strict = strict};
    cot_tape   *t = cot_tape_create(&options);
    cot_var     x[MAX_OPERANDS], y[MAX_OPERANDS + 1];
    leaves(r, t, x);
    /* values of their own that their makers do not need again */
    for (int j = 0; j < r->n; j++) y[j] = cot_add(x[j], 0.0);
    cot_var z = r->f(t, y), out = cot_add(z, 0.0), seed_z = cot_data(t, COT_F64, cot_shape_of(z), r->w);
    y[r->n] = z;
    assert_ok(t);
    cot_status status = COT_OK;
    *wrote = cot_shape_of(y[k]).ndim > 0;
    if (*wrote) status = cot_add_into(&y[k], cot_number(1));
    /* a broadcast view: not writable */
    if (status == COT_VALUE || status == COT_SHAPE) *wrote = false;
    if (status == COT_OK && !strict) status = cot_backward_seeded(out, seed_z);
    cot_tape_destroy(t);
    return status;
}

/* A strict tape refuses a write exactly where another tape fails at backward: save masks name the
 * values that rules read, no more and no fewer. */
static void check_saves(row *r) {
    for (int k = 0; k <= r->n; k++) {
        bool       wrote;
        cot_status late = overwrite(r, k, false, &wrote), early = overwrite(r, k, true, &wrote);
        if (wrote && early != late)
            fail_msg("%s, operand %d: %s at the write, %s at backward", r->name, k, cot_status_name(early),
                     cot_status_name(late));
    }
}

static void save_masks_are_exact(void **state) {
    (void)state;
    each_row(check_saves);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_central_differences),
        cmocka_unit_test(second_derivatives_match_differences_of_gradients),
        cmocka_unit_test(forward_mode_matches_reverse_mode),
        cmocka_unit_test(strided_operands_give_the_same_results),
        cmocka_unit_test(float32_agrees_with_float64),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(save_masks_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
