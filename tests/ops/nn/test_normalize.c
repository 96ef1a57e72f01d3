/* Normalisation: values against formulas in long double, every variant of the kernel, rows without
 * numbers, threads, errors. */
/* ctest: labels=threads */
#include "rules/structural_ids.h"
#include "support/tape_test.h"
#include "tape/tape.h"

#include <float.h>

/* The kernel once more, without wider instructions. */
#define COT__NORMALIZE_ISA 0
#define cot__normalize narrow_normalize
#define cot__normalize_back narrow_normalize_back
#define cot__normalize_scratch narrow_normalize_scratch
#define cot__normalize_weights narrow_normalize_weights
#include "backend/cpu/nn/normalize.c"
#undef cot__normalize
#undef cot__normalize_back
#undef cot__normalize_scratch
#undef cot__normalize_weights
void   cot__normalize(const cot__rows *r, const void *x, const void *weight, const void *bias, void *z);
void   cot__normalize_back(const cot__rows *r, const void *x, const void *weight, const void *g, void *z);
void   cot__normalize_weights(const cot__rows *r, const void *x, const void *g, void *scratch, void *z);

static double noise(int64_t i, int stream) {
    return sin(1.7 * (double)i + stream) + 0.5 * cos(0.3 * (double)(i * i % 1009) * stream);
}

static cot_var leaf(cot_tape *t, cot_dtype d, cot_shape s, int stream) {
    int64_t n = 1;
    for (int k = 0; k < s.ndim; k++) n *= s.dim[k];
    double *a = malloc((size_t)(n + 1) * sizeof *a);
    for (int64_t i = 0; i < n; i++) a[i] = noise(i, stream);
    cot_var x = cot_tensor(t, d, s, NULL);
    cot_assign(x, cot_cast(cot_data(t, COT_F64, s, a), d));
    free(a);
    return x;
}

static const double *values(cot_var x) {
    static double out[1 << 16];
    assert_int_equal(cot_read(x, out, cot_size(x)), COT_OK);
    return out;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* (x - mean) / sqrt(variance + eps), of n numbers `step` apart */
static void formula(int n, const double *x, bool rms, double eps, double *z) {
    long double mean = 0, v = 0;
    for (int i = 0; i < n && !rms; i++) mean += (long double)x[i] / n;
    for (int i = 0; i < n; i++) v += ((long double)x[i] - mean) * ((long double)x[i] - mean) / n;
    for (int i = 0; i < n; i++) z[i] = (double)(((long double)x[i] - mean) / sqrtl(v + (long double)eps));
}

static void rows_of_every_length_match_the_formula(void **state) {
    (void)state;
    static double x[4 * 10000], w[10000], b[10000], want[10000];
    for (int n = 1; n <= 10000; n = n < 70 ? n + 1 : n < 4000 ? 4096 : n < 5000 ? 9001 : 10001)
        for (int k = 0; k < 8; k++) {
            cot_dtype d = (cot_dtype)(k / 2);
            bool      rms = k % 2;
            cot_tape *t = cot_tape_create(NULL);
            cot_var   vx = leaf(t, d, COT_SHAPE(2, 2, n), 1), vw = leaf(t, d, COT_SHAPE(n), 2),
                    vb = leaf(t, d, COT_SHAPE(n), 3);
            cot_read(vx, x, 4 * n), cot_read(vw, w, n), cot_read(vb, b, n);
            const double *z = values(rms ? cot_rms_norm(vx, vw, -1, 1e-3) : cot_layer_norm(vx, vw, vb, 2, 1e-3));
            assert_ok(t);
            /* a few roundings of y w, and of x - mean, whose error is that of x */
            double unit = d == COT_F64 ? 0x1p-52 : d == COT_F32 ? 0x1p-23 : d == COT_BF16 ? 0x1p-7 : 0x1p-10;
            for (int row = 0; row < 4; row++) {
                formula(n, x + row * n, rms, 1e-3, want);
                for (int i = 0; i < n; i++) {
                    double y = want[i] * w[i] + (rms ? 0 : b[i]);
                    assert_true(fabs(z[row * n + i] - y) <= 8 * unit * (n == 1 ? 40 : 4));
                }
            }
            cot_tape_destroy(t);
        }
}

static void every_variant_of_the_kernel_has_the_same_bits(void **state) {
    (void)state;
    enum { MOST = 9000, ROWS_ = 3 };
    static char x[8 * MOST * ROWS_], g[8 * MOST * ROWS_], w[8 * MOST], b[8 * MOST], z[2][8 * MOST * ROWS_];
    static double scratch[4 * MOST * 32];
    for (int n = 0; n <= MOST; n = n <= 65 ? n + 1 : n < 5000 ? n + 4033 : MOST + 1)
        for (int k = 0; k < 8; k++) {
            cot__rows r = {ROWS_, n, 1e-5, k & 1, k & 2 ? COT_F64 : COT_F32, NULL, false};
            const void *weight = k & 4 ? w : NULL, *bias = k & 4 ? b : NULL;
            for (int i = 0; i < n * ROWS_; i++) {
                if (k & 2) ((double *)(void *)x)[i] = noise(i, 1), ((double *)(void *)g)[i] = noise(i, 2);
                else ((float *)(void *)x)[i] = (float)noise(i, 1), ((float *)(void *)g)[i] = (float)noise(i, 2);
                if (i >= n) continue;
                if (k & 2) ((double *)(void *)w)[i] = noise(i, 3), ((double *)(void *)b)[i] = noise(i, 4);
                else ((float *)(void *)w)[i] = (float)noise(i, 3), ((float *)(void *)b)[i] = (float)noise(i, 4);
            }
            size_t size = (size_t)n * (k & 2 ? 8 : 4);
            cot__normalize(&r, x, weight, bias, z[0]);
            narrow_normalize(&r, x, weight, bias, z[1]);
            if (n) assert_memory_equal(z[0], z[1], size * ROWS_);
            cot__normalize_back(&r, x, weight, g, z[0]);
            narrow_normalize_back(&r, x, weight, g, z[1]);
            if (n) assert_memory_equal(z[0], z[1], size * ROWS_);
            cot__normalize_weights(&r, x, g, scratch, z[0]);
            narrow_normalize_weights(&r, x, g, scratch, z[1]);
            if (n) assert_memory_equal(z[0], z[1], size * 2);
        }
}

static void constant_rows_become_zero_and_range_does_not_matter(void **state) {
    (void)state;
    static const double scales[] = {1, 1e30, 1e-30, 1e38, 1e-36};
    cot_tape           *t = cot_tape_create(NULL);
    const double       *z;
    /* the sum of many equal numbers rounds; their mean must not */
    for (int n = 1; n < 4000; n = 2 * n + 1)
        for (int k = 1; k < 10; k++) {
            z = values(cot_layer_norm(cot_full(t, COT_F32, COT_SHAPE(n), 12.3 / k), COT_NONE, COT_NONE, 0, 1e-5));
            for (int i = 0; i < n; i++) assert_near(z[i], 0, 0);
        }
    for (int k = 0; k < 5; k++) { /* eps 0: the result does not depend on the scale */
        float  x[4];
        double exact[4], in[4];
        for (int i = 0; i < 4; i++) in[i] = x[i] = (float)((i + 1) * 0.5 * scales[k]);
        for (int rms = 0; rms < 2; rms++) {
            formula(4, in, rms, 0, exact);
            cot_var v = cot_data(t, COT_F32, COT_SHAPE(4), x);
            z = values(rms ? cot_rms_norm(v, COT_NONE, 0, 0) : cot_layer_norm(v, COT_NONE, COT_NONE, 0, 0));
            /* at 1e38 the factor r is subnormal */
            for (int i = 0; i < 4; i++) assert_near(z[i], exact[i], scales[k] == 1e38 ? 2e-6 : 4e-7);
        }
    }
    double huge[3] = {-1.7e308, 0, 1.7e308}, exact[3] = {-sqrt(1.5), 0, sqrt(1.5)};
    z = values(cot_layer_norm(cot_data(t, COT_F64, COT_SHAPE(3), huge), COT_NONE, COT_NONE, 0, 1e-5));
    for (int i = 0; i < 3; i++) assert_near(z[i], exact[i], 1e-15);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void layouts_do_not_matter(void **state) {
    (void)state;
    double    a[35], g[35];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F64, COT_SHAPE(7, 5), 1), w = leaf(t, COT_F64, COT_SHAPE(7), 2), grad[2];
    cot_var   view = cot_transpose(x), dense = cot_copy(view);
    cot_read(cot_layer_norm(dense, w, w, -1, 1e-5), a, 35);
    assert_memory_equal(values(cot_layer_norm(view, w, w, -1, 1e-5)), a, sizeof a);
    assert_memory_equal(values(cot_layer_norm(cot_flip(cot_flip(dense, COT_ALL), COT_ALL),
                                              cot_flip(cot_flip(w, COT_ALL), COT_ALL), w, -1, 1e-5)),
                        a, sizeof a);
    cot_grad_of(cot_sum(cot_sin(cot_layer_norm(dense, w, COT_NONE, -1, 1e-5)), COT_ALL), 1, &x, grad);
    cot_grad_of(cot_sum(cot_sin(cot_layer_norm(view, w, COT_NONE, -1, 1e-5)), COT_ALL), 1, &x, grad + 1);
    cot_read(grad[0], g, 35);
    assert_memory_equal(values(grad[1]), g, sizeof g);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void axes_flatten(void **state) {
    (void)state;
    double    a[24];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F64, COT_SHAPE(2, 3, 4), 1), w = leaf(t, COT_F64, COT_SHAPE(3, 4), 2);
    cot_read(cot_layer_norm(x, w, w, 1, 1e-5), a, 24);
    cot_var flat = cot_reshape(w, COT_SHAPE(12));
    assert_memory_equal(values(cot_layer_norm(cot_reshape(x, COT_SHAPE(2, 12)), flat, flat, -1, 1e-5)), a, sizeof a);
    assert_memory_equal(values(cot_layer_norm(x, w, w, -2, 1e-5)), a, sizeof a);
    /* one group: all but the batch */
    cot_read(cot_layer_norm(x, COT_NONE, COT_NONE, 1, 1e-5), a, 24);
    assert_memory_equal(values(cot_group_norm(x, 1, COT_NONE, COT_NONE, 1e-5)), a, sizeof a);
    cot_read(cot_layer_norm(x, COT_NONE, COT_NONE, 2, 1e-5), a, 24); /* each channel a group */
    assert_memory_equal(values(cot_group_norm(x, 3, COT_NONE, COT_NONE, 1e-5)), a, sizeof a);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- what is not a number, and nothing ------------------------------------------------------- */

static void a_spoilt_row_stays_alone_and_zeros_win(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 6; k++) {
        double    a[6] = {1, bad[k % 3], 3, 4, 6, 5.5}, g[6];
        bool      rms = k >= 3;
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a), w = leaf(t, COT_F64, COT_SHAPE(3), 1);
        cot_var   y = rms ? cot_rms_norm(x, w, 1, 1e-5) : cot_layer_norm(x, w, COT_NONE, 1, 1e-5);
        const double *z = values(y);
        assert_true(isnan(z[1]) && isfinite(z[3]) && isfinite(z[4]) && isfinite(z[5]));
        /* nothing flows into the first row */
        cot_backward(cot_sum(cot_sin(cot_index(y, 0, 1)), COT_ALL));
        cot_read_grad(x, g, 6);
        for (int i = 0; i < 3; i++) assert_near(g[i], 0, 0);
        for (int i = 3; i < 6; i++) assert_true(isfinite(g[i]) && g[i] != 0);
        cot_read_grad(w, g, 3);
        for (int i = 0; i < 3; i++) assert_true(isfinite(g[i]) && g[i] != 0);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static void empty_arrays_are_fine(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{0, 3}, {3, 0}, {0, 0}};
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x    = cot_tensor(t, COT_F32, COT_SHAPE(shapes[k][0], shapes[k][1]), NULL),
                w      = cot_tensor(t, COT_F32, COT_SHAPE(shapes[k][1]), NULL);
        cot_var   y = cot_layer_norm(x, w, w, -1, 1e-5);
        double    g[3] = {1, 1, 1};
        assert_int_equal(cot_size(y), 0);
        cot_backward(cot_sum(cot_add(y, cot_rms_norm(x, w, -1, 0)), COT_ALL));
        assert_int_equal(cot_read_grad(w, g, shapes[k][1]), COT_OK);
        if (k == 0) assert_true(g[0] == 0 && g[1] == 0 && g[2] == 0); /* a sum over no rows */
        cot_tape_destroy(t);
    }
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(0, 4, 2), NULL), mean, variance;
    assert_int_equal(cot_size(cot_group_norm(x, 2, COT_NONE, COT_NONE, 1e-5)), 0);
    assert_int_equal(cot_size(cot_batch_norm(x, COT_AXES(0, 2), COT_NONE, COT_NONE, 1e-5, &mean, &variance)), 0);
    /* the mean of nothing, as cot_mean */
    assert_true(isnan(values(mean)[0]) && isnan(values(variance)[3]));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void batch_norm_returns_its_statistics(void **state) {
    (void)state;
    double    x[24], m[3], v[3], y[24];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   vx = leaf(t, COT_F64, COT_SHAPE(4, 3, 2), 5), w = leaf(t, COT_F64, COT_SHAPE(3), 1),
            b   = leaf(t, COT_F64, COT_SHAPE(3), 2), mean, variance;
    cot_var   z = cot_batch_norm(vx, COT_AXES(-1, 0), w, b, 1e-3, &mean, &variance);
    cot_read(vx, x, 24), cot_read(mean, m, 3), cot_read(variance, v, 3), cot_read(z, y, 24);
    assert_int_equal(cot_shape_of(mean).ndim, 1);
    for (int c = 0; c < 3; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < 8; i++) sum += x[i / 2 * 6 + c * 2 + i % 2] / 8;
        for (int i = 0; i < 8; i++) squares += pow(x[i / 2 * 6 + c * 2 + i % 2] - sum, 2) / 8;
        assert_near(m[c], sum, 1e-15);
        assert_near(v[c], squares, 1e-15);
    }
    const double *given = values(cot_batch_norm_inference(vx, COT_AXES(0, 2), mean, variance, w, b, 1e-3));
    for (int i = 0; i < 24; i++) assert_near(given[i], y[i], 1e-14);
    /* one statistic for everything */
    cot_var whole = cot_batch_norm(vx, COT_ALL, COT_NONE, COT_NONE, 1e-3, &mean, NULL);
    assert_int_equal(cot_shape_of(mean).ndim, 0);
    cot_var layer = cot_layer_norm(vx, COT_NONE, COT_NONE, 0, 1e-3);
    assert_true(cot_value(cot_max(cot_abs(cot_sub(whole, layer)), COT_ALL)) < 1e-14);
    cot_var half = cot_cast(vx, COT_F16),
            hz   = cot_batch_norm(half, COT_AXES(0, 2), COT_NONE, COT_NONE, 1e-3, &mean, &variance);
    assert_true(cot_dtype_of(hz) == COT_F16 && cot_dtype_of(mean) == COT_F16 && cot_dtype_of(variance) == COT_F16);
    /* dtypes meet */
    assert_int_equal(cot_dtype_of(cot_layer_norm(half, leaf(t, COT_F32, COT_SHAPE(2), 1), COT_NONE, -1, 0)), COT_F32);
    assert_int_equal(cot_dtype_of(cot_rms_norm(cot_ones(t, COT_I32, COT_SHAPE(3)), COT_NONE, 0, 0)), COT_F64);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    static const int     counts[] = {1, 2, 3, 8};
    static const int64_t shapes[][2] = {{1024, 128}, {37, 5000}, {30000, 3}};
    for (int k = 0; k < 6; k++) {
        int64_t n = shapes[k / 2][1], size = shapes[k / 2][0] * n;
        double *kept = malloc((size_t)(2 * size + 2 * n) * sizeof *kept),
               *now  = malloc((size_t)(2 * size + 2 * n) * sizeof *now);
        for (int c = 0; c < 4; c++) {
            double   *out = c ? now : kept;
            cot_dtype d = k % 2 ? COT_F64 : COT_F32;
            cot_set_threads(counts[c]);
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = leaf(t, d, COT_SHAPE(shapes[k / 2][0], n), 1), w = leaf(t, d, COT_SHAPE(n), 2),
                    b   = leaf(t, d, COT_SHAPE(n), 3);
            cot_var   y = cot_layer_norm(x, w, b, -1, 1e-5);
            cot_backward(cot_sum(cot_mul(y, cot_rms_norm(y, w, -1, 1e-5)), COT_ALL));
            cot_read(y, out, size), cot_read_grad(x, out + size, size), cot_read_grad(w, out + 2 * size, n),
                cot_read_grad(b, out + 2 * size + n, n);
            assert_ok(t);
            cot_tape_destroy(t);
            if (c) assert_memory_equal(now, kept, (size_t)(2 * size + 2 * n) * sizeof *now);
        }
        free(kept), free(now);
    }
    cot_set_threads(0);
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define SAYS(call, code, text)                                                                                         \
    do {                                                                                                               \
        assert_false(cot_is_valid(call));                                                                              \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F64, COT_SHAPE(2, 3), 1), w = leaf(t, COT_F64, COT_SHAPE(3), 1),
            two = leaf(t, COT_F64, COT_SHAPE(2), 1), none = COT_NONE;
    cot_var   mean = x, variance = x;
    cot_axes  first = COT_AXES(0);
    SAYS(cot_layer_norm(x, two, none, -1, 0), COT_SHAPE,
         "[layer_norm] x of shape (2,3) needs a weight of shape (3,); this one has (2,)");
    SAYS(cot_layer_norm(x, w, x, -1, 0), COT_SHAPE,
         "[layer_norm] x of shape (2,3) needs a bias of shape (3,); this one has (2,3)");
    SAYS(cot_layer_norm(x, w, none, 2, 0), COT_SHAPE,
         "[layer_norm] axis 2 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_layer_norm(cot_scalar(t, 1), none, none, -1, 0), COT_SHAPE,
         "[layer_norm] axis -1 is out of range for rank 0; a scalar has no axes");
    SAYS(cot_layer_norm(x, w, none, 1, -1), COT_VALUE, "[layer_norm] eps is -1; it must be finite and at least 0");
    SAYS(cot_rms_norm(x, none, 1, NAN), COT_VALUE, "[rms_norm] eps is nan; it must be finite and at least 0");
    SAYS(cot_rms_norm(x, two, 1, 0), COT_SHAPE,
         "[rms_norm] x of shape (2,3) needs a weight of shape (3,); this one has (2,)");
    SAYS(cot_group_norm(w, 1, none, none, 0), COT_SHAPE,
         "[group_norm] x has shape (3,); axis 0 is the batch and axis 1 the channels");
    SAYS(cot_group_norm(x, 2, none, none, 0), COT_SHAPE,
         "[group_norm] 3 channels in 2 groups; the groups must divide the channels");
    SAYS(cot_group_norm(x, 0, none, none, 0), COT_SHAPE,
         "[group_norm] 3 channels in 0 groups; the groups must divide the channels");
    SAYS(cot_group_norm(x, 3, two, none, 0), COT_SHAPE,
         "[group_norm] x of shape (2,3) needs a weight of shape (3,); this one has (2,)");
    SAYS(cot_group_norm(x, 3, none, none, INFINITY), COT_VALUE,
         "[group_norm] eps is inf; it must be finite and at least 0");
    SAYS(cot_batch_norm(x, COT_AXES(0, -2), none, none, 0, &mean, &variance), COT_SHAPE,
         "[batch_norm] axis 0 is listed twice; each axis may appear once");
    assert_false(cot_is_valid(mean) || cot_is_valid(variance));
    SAYS(cot_batch_norm(x, first, none, two, 0, NULL, NULL), COT_SHAPE,
         "[batch_norm] x of shape (2,3) needs a bias of shape (3,); this one has (2,)");
    SAYS(cot_batch_norm_inference(x, first, two, w, none, none, 0), COT_SHAPE,
         "[batch_norm_inference] x of shape (2,3) needs a mean of shape (3,); this one has (2,)");
    SAYS(cot_batch_norm_inference(x, first, w, two, none, none, 0), COT_SHAPE,
         "[batch_norm_inference] x of shape (2,3) needs a variance of shape (3,); this one has (2,)");
    SAYS(cot_batch_norm_inference(x, first, none, w, none, none, 0), COT_VAR,
         "[batch_norm_inference] the mean operand is not a value on a tape");
    cot_var failed = cot_reshape(x, COT_SHAPE(5));
    cot_tape_clear_error(t);
    SAYS(cot_layer_norm(x, failed, none, -1, 0), COT_VAR,
         /* not: left out */
         "[layer_norm] the weight operand is invalid: the operation that should have made it failed");
    assert_false(cot_is_valid(cot_layer_norm(none, w, none, -1, 0)));
    cot_tape_destroy(t);
}

static void norms_and_gradients(cot_tape *t, void *user) {
    (void)user;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(40, 30), NULL), w = cot_tensor(t, COT_F64, COT_SHAPE(30), NULL),
            grads[2], mean;
    cot_var y = cot_layer_norm(cot_add(x, 1.0), w, w, -1, 1e-5), z = cot_rms_norm(cot_transpose(x), COT_NONE, 1, 1e-5);
    cot_var all = cot_add(cot_sum(cot_sin(y), COT_ALL), cot_sum(cot_sin(z), COT_ALL));
    all = cot_add(all, cot_sum(cot_group_norm(x, 3, w, COT_NONE, 1), COT_ALL));
    all = cot_add(all, cot_sum(cot_batch_norm(x, COT_AXES(0), w, w, 1, &mean, NULL), COT_ALL));
    cot_grad_of(all, 2, (cot_var[]){x, w}, grads);
    cot_backward(cot_sum(cot_sin(grads[0]), COT_ALL));
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    assert_survives_no_memory(norms_and_gradients, NULL, 0, NULL);
}

/* ---- statistics are results ------------------------------------------------------------------ */

static int count_of(const cot_tape *t, int op) {
    int n = 0;
    for (uint32_t i = 0; i < t->count; i++) n += t->nodes[i].op == op;
    return n;
}

/* Mean and 1/√(variance + eps) of each row follow a norm that may be differentiated, and what its
 * backward records reads them there. */
static void statistics_are_a_second_result(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F64, COT_SHAPE(2, 3, 5), 2), w = leaf(t, COT_F64, COT_SHAPE(5), 3), grads[2];
    cot_var   z = cot_layer_norm(x, w, w, -1, 0.25), stats = cot__result_of(z, 1);
    cot_shape s = cot_shape_of(stats);
    assert_int_equal(cot__results_at(t, cot__index(z)), 2);
    assert_true(s.ndim == 3 && s.dim[0] == 2 && s.dim[1] == 3 && s.dim[2] == 2);
    cot_var mean = cot_mean(x, COT_KEEP(-1)), r = cot_rsqrt(cot_add(cot_variance(x, COT_KEEP(-1)), 0.25));
    cot_var want = cot_concat(2, (cot_var[]){mean, r}, -1);
    double  a[12], b[12];
    cot_read(stats, a, 12);
    cot_read(want, b, 12);
    for (int k = 0; k < 12; k++) assert_true(fabs(a[k] - b[k]) <= 8 * DBL_EPSILON * (1 + fabs(b[k])));
    cot_grad_of(cot_sum(cot_sin(z), COT_ALL), 2, (cot_var[]){x, w}, grads);
    assert_int_equal(count_of(t, OP_norm_back), 1);
    assert_int_equal(count_of(t, OP_norm_weights), 1);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].op == OP_norm_back || t->nodes[i].op == OP_norm_weights)
            assert_int_equal(cot__arg(&t->nodes[i], 2), cot__index(stats));
    assert_int_equal(cot_tape_status(t), COT_OK);
    cot_tape_destroy(t);
}

/* Where nobody can ask for a derivative there is one result, and no memory is kept. */
static void statistics_are_kept_only_where_there_is_a_derivative(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F64, COT_SHAPE(4, 5), 2), y = cot_detach(x);
    assert_int_equal(cot__results_at(t, cot__index(cot_layer_norm(y, COT_NONE, COT_NONE, -1, 1))), 1);
    assert_int_equal(cot__results_at(t, cot__index(cot_rms_norm(y, COT_NONE, -1, 1))), 1);
    cot_no_grad_open(t);
    assert_int_equal(cot__results_at(t, cot__index(cot_rms_norm(x, COT_NONE, -1, 1))), 1);
    cot_no_grad_close(t);
    assert_int_equal(cot__results_at(t, cot__index(cot_rms_norm(x, COT_NONE, -1, 1))), 2);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_length_match_the_formula),
        cmocka_unit_test(every_variant_of_the_kernel_has_the_same_bits),
        cmocka_unit_test(constant_rows_become_zero_and_range_does_not_matter),
        cmocka_unit_test(layouts_do_not_matter),
        cmocka_unit_test(axes_flatten),
        cmocka_unit_test(a_spoilt_row_stays_alone_and_zeros_win),
        cmocka_unit_test(empty_arrays_are_fine),
        cmocka_unit_test(batch_norm_returns_its_statistics),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(statistics_are_a_second_result),
        cmocka_unit_test(statistics_are_kept_only_where_there_is_a_derivative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
