/* bits_kernels.c: operations whose arithmetic has an order, on arrays large enough to show it. */
#include "bits/bits.h"

/* The loops below give each result its name and its derivatives. */
static void finish(const char *name, cot_dtype dtype, cot_tape *t, cot_var y, int n, const cot_var *xs) {
    bits_item("%s %s", name, cot_dtype_name(dtype));
    bits_derivatives(y, n, xs);
    bits_close(t);
}

/* ---- reductions and scans -------------------------------------------------------------------- */

static cot_var reduced(int which, cot_var x, cot_axes axes) {
    switch (which) {
    case 0: return cot_sum(x, axes);
    case 1: return cot_mean(x, axes);
    case 2: return cot_variance(x, axes);
    case 3: return cot_logsumexp(x, axes);
    case 4: return cot_norm(x, 2, axes);
    case 5: return cot_norm(x, 3, axes);
    case 6: return cot_max(x, axes);
    case 7: return cot_std(x, axes);
    default: return cot_argmin(x, axes);
    }
}
static const char *const reductions[] = {"sum",    "mean", "variance", "logsumexp", "norm",
                                         "norm 3", "max",  "std",      "argmin"};

void bits_family_reductions(void) {
    static const int64_t lengths[] = {1, 7, 100, 1000, 20011};
    char                 name[64];
    for (int which = 0; which < TEST_COUNT(reductions); which++)
        for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
            cot_dtype dtype = BITS_DTYPES[d];
            for (int l = 0; l < TEST_COUNT(lengths); l++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_var   x = bits_leaf(t, dtype, COT_SHAPE(lengths[l]), l, -1, 2);
                snprintf(name, sizeof name, "%s of %d", reductions[which], (int)lengths[l]);
                finish(name, dtype, t, reduced(which, x, COT_ALL), 1, &x);
            }
            for (int axis = 0; axis < 3; axis++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_var   x = bits_leaf(t, dtype, COT_SHAPE(13, 150, 21), axis, -1, 2);
                snprintf(name, sizeof name, "%s along axis %d", reductions[which], axis);
                finish(name, dtype, t, reduced(which, x, COT_AXES(axis)), 1, &x);
            }
        }
}

void bits_family_scans(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int axis = 0; axis < 2; axis++)
            for (int which = 0; which < 3; which++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_var   x = bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(300, 5), which, 0.5, 1.5);
                cot_var   y = which == 0   ? cot_cumsum(x, axis, axis == 0)
                              : which == 1 ? cot_cumprod(x, axis, axis == 1)
                                           : cot_cummax(x, axis, false);
                finish(which == 0 ? "cumsum" : which == 1 ? "cumprod" : "cummax", BITS_DTYPES[d], t, y, 1, &x);
            }
}

void bits_family_scatters(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
        cot_tape *t     = cot_tape_create(NULL);
        cot_var   at    = bits_leaf(t, COT_I64, COT_SHAPE(500), 1, 0, 17);
        cot_var   xs[2] = {bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(17, 3), 2, -1, 1),
                           bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(500, 3), 3, -1, 1)};
        finish("scatter_add", BITS_DTYPES[d], t, cot_scatter_add(xs[0], at, xs[1], 0), 2, xs);
        t         = cot_tape_create(NULL);
        at        = bits_leaf(t, COT_I64, COT_SHAPE(500), 4, 0, 17);
        cot_var x = bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(17, 3), 5, -1, 1);
        finish("take", BITS_DTYPES[d], t, cot_take(x, at, 0), 1, &x);
        t = cot_tape_create(NULL);
        x = bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(400), 6, -1, 1);
        finish("sort", BITS_DTYPES[d], t, cot_sort(x, 0, false), 1, &x);
    }
}

/* ---- products -------------------------------------------------------------------------------- */

static void product(cot_dtype dtype, int64_t m, int64_t n, int64_t k, bool transposed) {
    char      name[64];
    cot_tape *t     = cot_tape_create(NULL);
    cot_var   xs[2] = {bits_leaf(t, dtype, transposed ? COT_SHAPE(k, m) : COT_SHAPE(m, k), (int)m, -1, 1),
                       bits_leaf(t, dtype, transposed ? COT_SHAPE(n, k) : COT_SHAPE(k, n), (int)n + 50, -1, 1)};
    snprintf(name, sizeof name, "%d x %d x %d%s", (int)m, (int)n, (int)k, transposed ? " transposed" : "");
    cot_var y = transposed ? cot_matmul(cot_transpose(xs[0]), cot_transpose(xs[1])) : cot_matmul(xs[0], xs[1]);
    finish(name, dtype, t, y, 2, xs);
}

static void batch_of_products(cot_dtype dtype, cot_shape a, cot_shape b, const char *name) {
    cot_tape *t     = cot_tape_create(NULL);
    cot_var   xs[2] = {bits_leaf(t, dtype, a, 1, -1, 1), bits_leaf(t, dtype, b, 2, -1, 1)};
    finish(name, dtype, t, cot_matmul(xs[0], xs[1]), 2, xs);
}

void bits_family_products(void) {
    static const int64_t shapes[][3] = {{1, 1, 7},     {3, 5, 4},     {17, 33, 65}, {64, 48, 64},  {100, 1, 300},
                                        {1, 100, 300}, {90, 50, 400}, {5, 7, 1000}, {2, 3, 70000}, {40, 40, 1},
                                        {1, 40, 1},    {2, 300, 40},  {300, 2, 40}, {33, 1, 1}};
    for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
        for (int s = 0; s < TEST_COUNT(shapes); s++) {
            product(BITS_DTYPES[d], shapes[s][0], shapes[s][1], shapes[s][2], false);
            product(BITS_DTYPES[d], shapes[s][0], shapes[s][1], shapes[s][2], true);
        }
        batch_of_products(BITS_DTYPES[d], COT_SHAPE(6, 9, 20), COT_SHAPE(6, 20, 11), "batch");
        batch_of_products(BITS_DTYPES[d], COT_SHAPE(6, 9, 20), COT_SHAPE(20, 11), "batch with one");
        batch_of_products(BITS_DTYPES[d], COT_SHAPE(40, 3, 3), COT_SHAPE(40, 3, 3), "batch of small ones");
    }
    product(COT_I64, 9, 8, 30, false);
    product(COT_I32, 9, 8, 30, false);
}

void bits_family_dots(void) {
    static const int64_t lengths[] = {1, 3, 8, 17, 100, 1000, 5003, 70001};
    char                 name[64];
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int l = 0; l < TEST_COUNT(lengths); l++) {
            cot_tape *t     = cot_tape_create(NULL);
            cot_var   xs[2] = {bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(lengths[l]), 1, -1, 1),
                               bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(lengths[l]), 2, -1, 1)};
            snprintf(name, sizeof name, "dot of %d", (int)lengths[l]);
            finish(name, BITS_DTYPES[d], t, cot_dot(xs[0], xs[1]), 2, xs);
        }
}

/* ---- networks -------------------------------------------------------------------------------- */

static void convolution(cot_dtype dtype, const char *name, cot_shape x, cot_shape w, cot_conv_options options) {
    cot_tape *t     = cot_tape_create(NULL);
    cot_var   xs[2] = {bits_leaf(t, dtype, x, 1, -1, 1), bits_leaf(t, dtype, w, 2, -1, 1)};
    bool      back  = name[0] == 't';
    cot_var   y     = x.ndim == 3   ? (back ? cot_conv_transpose1d : cot_conv1d)(xs[0], xs[1], options)
                      : x.ndim == 4 ? (back ? cot_conv_transpose2d : cot_conv2d)(xs[0], xs[1], options)
                                    : (back ? cot_conv_transpose3d : cot_conv3d)(xs[0], xs[1], options);
    finish(name, dtype, t, y, 2, xs);
}

void bits_family_convolutions(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
        cot_dtype e = BITS_DTYPES[d];
        convolution(e, "3x3", COT_SHAPE(2, 8, 11, 13), COT_SHAPE(18, 8, 3, 3), COT_CONV(.padding = {1, 1}));
        convolution(e, "1x1", COT_SHAPE(2, 20, 9, 9), COT_SHAPE(33, 20, 1, 1), COT_CONV(0));
        convolution(e, "strided", COT_SHAPE(1, 3, 19, 17), COT_SHAPE(7, 3, 5, 3), COT_CONV(.stride = {2, 3}));
        convolution(e, "groups", COT_SHAPE(2, 6, 9, 9), COT_SHAPE(12, 2, 3, 3),
                    COT_CONV(.groups = 3, .dilation = {2, 1}));
        convolution(e, "depthwise", COT_SHAPE(2, 9, 12, 12), COT_SHAPE(9, 1, 3, 3), COT_CONV(.groups = 9));
        convolution(e, "line", COT_SHAPE(3, 5, 70), COT_SHAPE(6, 5, 9), COT_CONV(.padding = {4}));
        convolution(e, "space", COT_SHAPE(1, 2, 5, 6, 7), COT_SHAPE(3, 2, 2, 3, 2), COT_CONV(0));
        convolution(e, "many images", COT_SHAPE(20, 2, 14, 14), COT_SHAPE(32, 2, 5, 5), COT_CONV(.padding = {2, 2}));
        convolution(e, "transposed", COT_SHAPE(1, 6, 5, 5), COT_SHAPE(6, 4, 3, 3), COT_CONV(.stride = {2, 2}));
    }
}

void bits_family_pooling(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int which = 0; which < 4; which++) {
            cot_tape        *t = cot_tape_create(NULL);
            cot_var          x = bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(2, 3, 14, 14), which, -1, 1);
            cot_pool_options o = which < 2 ? COT_POOL(.window = {2, 2})
                                           : COT_POOL(.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1});
            finish(which % 2 ? "avg" : "max", BITS_DTYPES[d], t,
                   which % 2 ? cot_avg_pool2d(x, o) : cot_max_pool2d(x, o), 1, &x);
        }
}

void bits_family_attention(void) {
    static const int64_t sizes[][4] = {{2, 5, 5, 8}, {2, 37, 45, 16}, {1, 70, 70, 64}, {1, 130, 130, 20}};
    char                 name[64];
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int s = 0; s < TEST_COUNT(sizes); s++)
            for (int causal = 0; causal < 2; causal++) {
                const int64_t        *n     = sizes[s];
                cot_tape             *t     = cot_tape_create(NULL);
                cot_attention_options o     = {.causal = causal != 0};
                cot_var               xs[3] = {bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(n[0], n[1], n[3]), 1, -2, 2),
                                               bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(n[0], n[2], n[3]), 2, -2, 2),
                                               bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(n[0], n[2], n[3]), 3, -2, 2)};
                snprintf(name, sizeof name, "%d by %d by %d%s", (int)n[1], (int)n[2], (int)n[3],
                         causal ? " causal" : "");
                finish(name, BITS_DTYPES[d], t, cot_attention(xs[0], xs[1], xs[2], &o), 3, xs);
            }
}

void bits_family_norms(void) {
    static const int64_t widths[] = {1, 5, 100, 1000};
    char                 name[64];
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int w = 0; w < TEST_COUNT(widths); w++)
            for (int which = 0; which < 3; which++) {
                cot_tape *t     = cot_tape_create(NULL);
                cot_var   xs[3] = {bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(9, widths[w]), 1, -1, 2),
                                   bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(widths[w]), 2, 0.5, 1.5),
                                   bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(widths[w]), 3, -1, 1)};
                cot_var   y     = which == 0   ? cot_layer_norm(xs[0], xs[1], xs[2], -1, 1e-5)
                                  : which == 1 ? cot_rms_norm(xs[0], xs[1], -1, 1e-5)
                                               : cot_group_norm(xs[0], 1, xs[1], xs[2], 1e-5);
                snprintf(name, sizeof name, "%s of %d",
                         which == 0   ? "layer"
                         : which == 1 ? "rms"
                                      : "group",
                         (int)widths[w]);
                finish(name, BITS_DTYPES[d], t, y, which == 1 ? 2 : 3, xs);
            }
}

static cot_var normalised(int which, cot_var x, cot_var labels) {
    switch (which) {
    case 0: return cot_softmax(x, -1);
    case 1: return cot_log_softmax(x, -1);
    case 2: return cot_softmax(x, 0);
    case 3: return cot_softmax_cross_entropy(x, labels);
    case 4: return cot_cross_entropy(cot_sigmoid(x), labels);
    case 5: return cot_cross_entropy(cot_sigmoid(x), cot_softmax(x, -1));
    default: return cot_kl_div(cot_log_softmax(x, -1), cot_softmax(cot_neg(x), -1));
    }
}

void bits_family_softmax(void) {
    static const char *const names[] = {
        "softmax", "log_softmax", "softmax of columns", "labels", "cross_entropy", "of probabilities", "kl_div"};
    static const int64_t widths[] = {3, 40, 700};
    char                 name[64];
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int w = 0; w < TEST_COUNT(widths); w++)
            for (int which = 0; which < TEST_COUNT(names); which++) {
                cot_tape *t      = cot_tape_create(NULL);
                cot_var   x      = bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(15, widths[w]), which, -6, 6);
                cot_var   labels = bits_leaf(t, COT_I64, COT_SHAPE(15), 3, 0, (double)widths[w]);
                snprintf(name, sizeof name, "%s %d", names[which], (int)widths[w]);
                finish(name, BITS_DTYPES[d], t, normalised(which, x, labels), 1, &x);
            }
}

/* ---- transforms of signals, random numbers, arrays made from numbers ------------------------- */

void bits_family_fft(void) {
    static const int64_t lengths[] = {1, 2, 8, 12, 30, 49, 64, 97, 100, 1000, 1024};
    char                 name[64];
    for (int d = 0; d < 2; d++)
        for (int l = 0; l < TEST_COUNT(lengths); l++)
            for (int which = 0; which < 4; which++) {
                cot_tape *t = cot_tape_create(NULL);
                int64_t   n = lengths[l];
                cot_var   x = which == 2
                                  ? bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(3, n), 1, -1, 1)
                                  : bits_leaf(t, BITS_DTYPES[d], COT_SHAPE(3, which == 3 ? n / 2 + 1 : n, 2), 2, -1, 1);
                cot_var   y = which == 0   ? cot_fft(x, n, 1)
                              : which == 1 ? cot_ifft(x, n, 1)
                              : which == 2 ? cot_rfft(x, n, 1)
                                           : cot_irfft(x, n, 1);
                snprintf(name, sizeof name, "%s of %d", (const char *[]){"fft", "ifft", "rfft", "irfft"}[which],
                         (int)n);
                finish(name, BITS_DTYPES[d], t, y, 1, &x);
            }
}

void bits_family_random(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
        cot_dtype e   = BITS_DTYPES[d];
        cot_tape *t   = cot_tape_create(NULL);
        cot_key   key = cot_key_fold(cot_key_of(14), (uint64_t)d);
        cot_var   x   = bits_leaf(t, e, COT_SHAPE(30, 11), 1, -3, 3);
        bits_one("uniform", cot_uniform(t, key, e, COT_SHAPE(3001), -1, 3));
        bits_one("normal", cot_normal(t, key, e, COT_SHAPE(3001)));
        bits_one("gumbel", cot_gumbel(t, key, e, COT_SHAPE(3001)));
        bits_one("bernoulli", cot_bernoulli(t, key, cot_sigmoid(x), COT_SHAPE(30, 11)));
        bits_one("categorical", cot_categorical(key, x, 1));
        bits_one("permutation", cot_permutation(t, key, 1000));
        bits_one("shuffle", cot_shuffle(key, x, 0));
        bits_item("dropout");
        bits_derivatives(cot_dropout(x, 0.3, key), 1, &x);
        bits_close(t);
    }
}

void bits_family_create(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
        cot_tape *t = cot_tape_create(NULL);
        bits_one("linspace", cot_linspace(t, BITS_DTYPES[d], -0.7, 3.1, 1001));
        bits_one("arange", cot_arange(t, BITS_DTYPES[d], 0.1, 30, 0.3));
        bits_one("full", cot_full(t, BITS_DTYPES[d], COT_SHAPE(3), 0.1));
        bits_close(t);
    }
}

/* ---- sparse matrices ------------------------------------------------------------------------- */

/* Rows of very different lengths, some empty; equal places are summed. */
static cot_csr bits_sparse(cot_var values, int64_t n) {
    enum { MOST = 900 };
    int64_t row[MOST], column[MOST];
    for (int64_t e = 0; e < n; e++) row[e] = e * e % 41 * (e % 3) / 2, column[e] = e * 7 % 67;
    return cot_csr_from_triplets(cot_tape_of(values), 41, 67, n, row, column, values);
}

void bits_family_csr(void) {
    static const int64_t widths[] = {1, 3, 16, 37, 70};
    char                 name[64];
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int w = 0; w < TEST_COUNT(widths); w++)
            for (int which = 0; which < 4; which++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_dtype dtype = BITS_DTYPES[d];
                cot_var   xs[3] = {bits_leaf(t, dtype, COT_SHAPE(900), w, -1, 1),
                                   bits_leaf(t, dtype, COT_SHAPE(41, widths[w]), w + 1, -1, 1),
                                   bits_leaf(t, dtype, COT_SHAPE(67, widths[w]), w + 2, -1, 1)};
                cot_csr   a = bits_sparse(xs[0], 900);
                cot_var   y = which == 0   ? cot_csr_matmul(a, xs[2])
                              : which == 1 ? cot_csr_matmul_transposed(a, xs[1])
                              : which == 2 ? cot_csr_sddmm(a, xs[1], xs[2]).values
                                           : cot_csr_matmul(cot_csr_softmax(a), xs[2]);
                snprintf(name, sizeof name, "csr %d of %d", which, (int)widths[w]);
                finish(name, dtype, t, y, 3, xs);
            }
}
