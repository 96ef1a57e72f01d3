/* Products, sums, convolutions, attention, norms and linear algebra, with their gradients, have the
 * same bits on every instruction set of this machine, in plain C with portable bits, and with any
 * number of threads. */
/* ctest: labels=threads timeout=120 */
#include <cotangent.h>

#include "base/cpu.h"
#include "base/parallel.h"
#include "pending/pending.h"
#include "support/support.h"

#include <cotangent_program.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 3 };

typedef struct sample {
    const char *name;
    bool        linear_algebra; /* f64 and f32 alone */
    cot_var (*run)(const cot_var *x);
    cot_shape shape[OPERANDS]; /* ndim -1: no more operands */
} sample;

#define S(...)                                                                                                         \
    { sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), { __VA_ARGS__ } }
#define NO                                                                                                             \
    { -1, { 0 } }
#define RUN(name, expression)                                                                                          \
    static cot_var name(const cot_var *x) { return expression; }

/* ---- what is compared ------------------------------------------------------------------------ */

RUN(product, cot_matmul(x[0], x[1]))
RUN(product_turned, cot_matmul(cot_transpose(x[0]), cot_transpose(x[1])))
RUN(product_half_turned, cot_matmul(x[0], cot_transpose(x[1])))
RUN(product_left_turned, cot_matmul(cot_transpose(x[0]), x[1]))
RUN(product_strided, cot_matmul(cot_slice(x[0], 1, 0, -1, 2), cot_slice(x[1], 0, 0, -1, 2)))
RUN(dots, cot_dot(x[0], x[1]))
RUN(dots_backward, cot_dot(cot_flip(x[0], COT_AXES(0)), x[1]))
RUN(outer, cot_outer(x[0], x[1]))
RUN(sum_of_all, cot_sum(cot_transpose(x[0]), COT_ALL))
RUN(sum_of_columns, cot_sum(x[0], COT_AXES(0)))
RUN(sum_of_rows, cot_sum(x[0], COT_AXES(-1)))
RUN(length, cot_norm(x[0], 2, COT_ALL))
RUN(logsum, cot_logsumexp(x[0], COT_AXES(-1)))
RUN(weights, cot_softmax(x[0], 0))
RUN(frequencies, cot_rfft(x[0], 0, -1))
RUN(contraction, cot_einsum("bij,jkb->ik", 2, x))

RUN(conv1, cot_conv1d(x[0], x[1], COT_CONV(.padding = {2}, .dilation = {2})))
RUN(conv2, cot_conv2d(x[0], x[1], COT_CONV(.padding = {1, 1})))
RUN(conv2_plain, cot_conv2d(x[0], x[1], COT_CONV(.groups = 1)))
RUN(conv2_stride, cot_conv2d(x[0], x[1], COT_CONV(.stride = {2, 3}, .padding = {2, 1})))
RUN(conv2_groups, cot_conv2d(x[0], x[1], COT_CONV(.groups = 3, .padding = {1, 1}, .dilation = {2, 1})))
RUN(conv3, cot_conv3d(x[0], x[1], COT_CONV(.padding = {1, 1, 1}, .stride = {1, 2, 1})))
RUN(conv_back, cot_conv_transpose2d(x[0], x[1], COT_CONV(.stride = {2, 2}, .padding = {1, 1})))
RUN(most, cot_max_pool2d(x[0], COT_POOL(.window = {2, 2})))
RUN(most_overlapping, cot_max_pool2d(x[0], COT_POOL(.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1})))
RUN(means, cot_avg_pool2d(x[0], COT_POOL(.window = {3, 2}, .stride = {2, 2}, .padding = {1, 1})))

RUN(attend, cot_attention(x[0], x[1], x[2], NULL))
RUN(attend_causally, cot_attention(x[0], x[1], x[2], &(cot_attention_options){.causal = true}))
RUN(layers, cot_layer_norm(x[0], x[1], x[2], -1, 1e-5))
RUN(squares, cot_rms_norm(x[0], x[1], -1, 1e-5))
RUN(groups, cot_group_norm(x[0], 2, x[1], x[2], 1e-5))

/* A symmetric matrix with eigenvalues apart and above 0. */
static cot_var definite(cot_var x) {
    int64_t n = cot_shape_of(x).dim[0];
    cot_var d = cot_mul(cot_eye(x.tape, cot_dtype_of(x), n, n), (double)n);
    cot_var apart = cot_arange(x.tape, cot_dtype_of(x), 1, (double)n + 1, 1);
    return cot_add(cot_matmul(x, cot_transpose(x)), cot_mul(d, apart));
}
RUN(solved, cot_solve(x[0], x[1]))
RUN(triangle, cot_triangular_solve(cot_add(definite(x[0]), 0.0), x[1], COT_UPPER | COT_TRANSPOSED))
RUN(inverse, cot_inv(definite(x[0])))
RUN(determinant, cot_det(x[0]))
RUN(cholesky, cot_cholesky(definite(x[0])))
RUN(eigenvalues, cot_eigvalsh(definite(x[0])))
RUN(singular_values, cot_svdvals(x[0]))
RUN(least_squares, cot_lstsq(x[0], x[1]))
static cot_var log_determinant(const cot_var *x) {
    cot_var sign, logarithm;
    return cot_slogdet(definite(x[0]), &sign, &logarithm) == COT_OK ? logarithm : sign;
}
RUN(exponential, cot_matrix_exp(x[0]))
static cot_var orthogonal(const cot_var *x) {
    cot_var q, r;
    return cot_qr(x[0], &q, &r) == COT_OK ? cot_matmul(r, cot_transpose(q)) : cot_sub(q, r);
}

static const sample samples[] = {
    {"1 x 1", false, product, {S(1, 1), S(1, 1), NO}},
    {"one term", false, product, {S(7, 1), S(1, 9), NO}},
    {"no rows", false, product, {S(0, 5), S(5, 3), NO}},
    {"no terms", false, product, {S(4, 0), S(0, 3), NO}},
    {"tiny", false, product, {S(3, 5), S(5, 4), NO}},
    {"tiny, half turned", false, product_half_turned, {S(9, 6), S(7, 6), NO}},
    {"tiny, turned", false, product_turned, {S(6, 9), S(7, 6), NO}},
    {"batch of tiny", false, product, {S(5, 12, 4), S(5, 4, 3), NO}},
    {"odd", false, product, {S(37, 53), S(53, 41), NO}},
    {"square", false, product, {S(96, 96), S(96, 96), NO}},
    {"deep", false, product, {S(5, 1700), S(1700, 7), NO}},
    {"shallow", false, product, {S(150, 3), S(3, 170), NO}},
    {"two rows", false, product, {S(2, 300), S(300, 65), NO}},
    {"turned", false, product_turned, {S(67, 33), S(29, 67), NO}},
    {"half turned", false, product_half_turned, {S(33, 70), S(45, 70), NO}},
    {"strided", false, product_strided, {S(21, 61), S(61, 19), NO}},
    {"few columns", false, product, {S(205, 300), S(300, 8), NO}},
    {"few columns, deep", false, product, {S(67, 1000), S(1000, 5), NO}},
    {"few rows, half turned", false, product_half_turned, {S(7, 300), S(211, 300), NO}},
    {"few columns, turned", false, product_turned, {S(310, 93), S(16, 310), NO}},
    {"few columns, left turned, far apart", false, product_left_turned, {S(64, 1568), S(64, 10), NO}},
    {"few columns, four depth blocks", false, product, {S(61, 1568), S(1568, 10), NO}},
    {"few terms, half turned", false, product_half_turned, {S(64, 10), S(1561, 10), NO}},
    {"matrix and vector", false, product, {S(83, 410), S(410), NO}},
    {"matrix of a power of two and vector", false, product, {S(75, 512), S(512), NO}},
    {"vector and matrix", false, product, {S(410), S(410, 83), NO}},
    {"few rows and vector", false, product, {S(3, 900), S(900), NO}},
    {"turned matrix and vector", false, product_half_turned, {S(1, 410), S(83, 410), NO}},
    {"long matrix and vector", false, product, {S(6, 70000), S(70000), NO}},
    {"batch", false, product, {S(5, 9, 31), S(5, 31, 12), NO}},
    {"batch of vectors", false, product, {S(5, 1, 331), S(5, 331, 1), NO}},
    {"one element", false, product, {S(1, 77), S(77, 1), NO}},
    {"dot of 1", false, dots, {S(1), S(1), NO}},
    {"dot of 19", false, dots, {S(19), S(19), NO}},
    {"dot of 1000", false, dots, {S(1000), S(1000), NO}},
    {"dot of 100003", false, dots, {S(100003), S(100003), NO}},
    {"dot backward", false, dots_backward, {S(700), S(700), NO}},
    {"outer", false, outer, {S(61), S(47), NO}},
    {"sum", false, sum_of_all, {S(100003), NO, NO}},
    {"sum, strided", false, sum_of_all, {S(41, 53), NO, NO}},
    {"sum of columns", false, sum_of_columns, {S(700, 39), NO, NO}},
    {"sum of rows", false, sum_of_rows, {S(39, 700), NO, NO}},
    {"norm", false, length, {S(3001), NO, NO}},
    {"logsumexp", false, logsum, {S(39, 700), NO, NO}},
    {"softmax", false, weights, {S(70, 39), NO, NO}},
    {"rfft", true, frequencies, {S(9, 360), NO, NO}},
    {"rfft, prime", true, frequencies, {S(9, 101), NO, NO}},
    {"contraction", false, contraction, {S(4, 13, 21), S(21, 17, 4), NO}},
    {"conv1d", false, conv1, {S(3, 4, 50), S(5, 4, 5), NO}},
    {"conv2d, rows of 28", false, conv2, {S(3, 4, 28, 28), S(9, 4, 3, 3), NO}},
    {"conv2d, splits of images", false, conv2, {S(33, 4, 14, 14), S(32, 4, 3, 3), NO}},
    {"conv2d, splits, few channels", false, conv2, {S(20, 2, 28, 28), S(9, 2, 3, 3), NO}},
    {"conv2d, rows of 7", false, conv2, {S(5, 6, 7, 7), S(17, 6, 3, 3), NO}},
    {"conv2d, rows of 8", false, conv2_plain, {S(2, 3, 12, 12), S(6, 3, 5, 5), NO}},
    {"conv2d, one row", false, conv2, {S(2, 2, 1, 40), S(3, 2, 3, 3), NO}},
    {"conv2d, long kernel", false, conv2, {S(1, 2, 20, 33), S(5, 2, 2, 9), NO}},
    {"conv2d, pointwise", false, conv2_plain, {S(4, 20, 9, 9), S(11, 20, 1, 1), NO}},
    {"conv2d, stride", false, conv2_stride, {S(3, 3, 23, 25), S(6, 3, 5, 4), NO}},
    {"conv2d, groups", false, conv2_groups, {S(2, 6, 15, 14), S(9, 2, 3, 3), NO}},
    {"conv3d", false, conv3, {S(2, 2, 6, 9, 11), S(3, 2, 3, 3, 3), NO}},
    {"transposed conv2d", false, conv_back, {S(2, 4, 8, 9), S(4, 5, 4, 4), NO}},
    {"max pool", false, most, {S(3, 4, 18, 22), NO, NO}},
    {"max pool, overlapping", false, most_overlapping, {S(3, 2, 17, 19), NO, NO}},
    {"mean pool", false, means, {S(3, 2, 17, 19), NO, NO}},
    {"attention", false, attend, {S(2, 3, 70, 24), S(2, 3, 90, 24), S(2, 3, 90, 17)}},
    {"causal attention", false, attend_causally, {S(2, 130, 16), S(2, 130, 16), S(2, 130, 16)}},
    {"layer norm", false, layers, {S(31, 77), S(77), S(77)}},
    {"layer norm, long rows", false, layers, {S(2, 9000), S(9000), S(9000)}},
    {"rms norm", false, squares, {S(13, 40), S(40), NO}},
    {"group norm", false, groups, {S(3, 4, 30), S(4), S(4)}},
    {"solve", true, solved, {S(50, 50), S(50, 3), NO}},
    {"solve, small", true, solved, {S(4, 7, 7), S(4, 7, 2), NO}},
    {"triangular solve", true, triangle, {S(70, 70), S(70, 5), NO}},
    {"inverse", true, inverse, {S(40, 40), NO, NO}},
    {"determinant", true, determinant, {S(12, 12), NO, NO}},
    {"slogdet", true, log_determinant, {S(12, 12), NO, NO}},
    {"cholesky", true, cholesky, {S(75, 75), NO, NO}},
    {"qr", true, orthogonal, {S(60, 45), NO, NO}},
    {"eigvalsh", true, eigenvalues, {S(110, 110), NO, NO}},
    {"svdvals", true, singular_values, {S(50, 38), NO, NO}},
    {"lstsq", true, least_squares, {S(60, 20), S(60, 4), NO}},
    {"matrix_exp", true, exponential, {S(20, 20), NO, NO}},
};

/* ---- one run --------------------------------------------------------------------------------- */

static void mix(uint64_t *hash, double value) {
    uint64_t bits = 0;
    if (value == value) memcpy(&bits, &value, sizeof bits); /* all NaN count as one */
    for (int i = 0; i < 8; i++) *hash = (*hash ^ (bits >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
}

static void mix_all(uint64_t *hash, cot_var x) {
    int64_t n = cot_size(x);
    double *all = malloc((size_t)(n > 0 ? n : 1) * sizeof *all);
    if (cot_read(x, all, n) != COT_OK) *hash = 0;
    for (int64_t i = 0; i < n; i++) mix(hash, all[i]);
    free(all);
}

/* In [-1, 1), with all the bits of a double, so that nothing is exact by chance. */
static cot_var numbers(cot_tape *t, cot_dtype dtype, cot_shape shape, uint64_t seed) {
    int64_t n = 1;
    for (int k = 0; k < shape.ndim; k++) n *= shape.dim[k];
    double *all = malloc((size_t)(n > 0 ? n : 1) * sizeof *all);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        all[i] = (double)(int64_t)(seed ^ seed >> 29) * 0x1p-63;
    }
    cot_var x = cot_cast(cot_tensor(t, COT_F64, shape, all), dtype);
    free(all);
    return x;
}

/* The bits of the result and of its gradients. */
static uint64_t bits_of(const sample *s, cot_dtype dtype) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[OPERANDS], g[OPERANDS];
    int       n = 0;
    uint64_t  hash = UINT64_C(0xcbf29ce484222325);
    for (; n < OPERANDS && s->shape[n].ndim >= 0; n++)
        x[n] = cot_leaf(numbers(t, dtype, s->shape[n], 77u + (uint64_t)n));
    cot_var z = s->run(x), w = numbers(t, dtype, cot_shape_of(z), 5);
    mix_all(&hash, z);
    if (cot_grad_of(cot_sum(cot_mul(z, w), COT_ALL), n, x, g) == COT_OK)
        for (int k = 0; k < n; k++) mix_all(&hash, g[k]);
    test_tape_ok(t, s->name);
    cot_tape_destroy(t);
    return hash;
}

/* ---- all of them ----------------------------------------------------------------------------- */

typedef struct way { const char *name; cot__isa isa; int threads; } way;

static void set_way(const way *w, int64_t grain) {
    cot__cpu_use(w->isa);
    cot__cpu_use_bits(COT__BITS_PORTABLE);
    cot_set_threads(w->threads);
    cot__grain = w->threads == 1 ? grain : 512; /* small work too is shared out */
}

static void every_way_has_the_bits_of_the_first(void **state) {
    (void)state;
    static const way ways[] = {{"the best", 0, 1},       {"the best, 2 threads", 0, 2}, {"the best, 7 threads", 0, 7},
                               /* products are cut for many threads in another way */
                               {"the best, 12 threads", 0, 12},
                               {"AVX2 or NEON", COT__ISA_AVX2, 1}, {"AVX2 or NEON, 7 threads", COT__ISA_AVX2, 7},
                               {"plain", COT__ISA_PLAIN, 1},       {"plain, 7 threads", COT__ISA_PLAIN, 7},
                               {"AVX2 or NEON, 16 threads", COT__ISA_AVX2, 16}};
    int64_t  grain = cot__grain;
    cot__isa isa = cot__cpu_isa();
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int d = COT_F64; d <= (samples[i].linear_algebra ? COT_F32 : COT_F16); d++) {
            uint64_t want = 0;
            for (int k = 0; k < TEST_COUNT(ways); k++) {
                way w = ways[k];
                if (k < 4) w.isa = cot__cpu_best();
                if (w.isa > cot__cpu_best()) continue;
                set_way(&w, grain);
                uint64_t got = bits_of(&samples[i], (cot_dtype)d);
                if (k == 0) want = got;
                TEST_CHECK(got == want, "%s, %s: %s differs", samples[i].name, cot_dtype_name((cot_dtype)d), w.name);
            }
        }
    set_way(&(way){"", isa, 0}, grain);
    cot__grain = grain;
    cot__cpu_use_bits(COT__BITS_FAST);
    test_verdict();
}

/* ---- depth 1 --------------------------------------------------------------------------------- */

enum { AT_ONCE, WAITING, AS_A_PROGRAM };
enum { BATCH = 2, ROWS = 3, COLUMNS = 5, PRODUCTS = BATCH * ROWS * COLUMNS };

static int columns_times_rows(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_dtype d = *(const cot_dtype *)user;
    (void)n, (void)m;
    ys[0] = cot_cast(cot_matmul(cot_cast(xs[0], d), cot_cast(xs[1], d)), COT_F64);
    return 0;
}

/* How many of the products are -0. */
static int minus_zeros(cot_dtype dtype, bool compiled, const double *columns, const double *rows) {
    double   z[PRODUCTS];
    int      signs = 0;
    cot_type types[] = {{COT_F64, COT_SHAPE(BATCH, ROWS, 1)}, {COT_F64, COT_SHAPE(BATCH, 1, COLUMNS)}};
    if (compiled) {
        cot_program *p = cot_compile(columns_times_rows, &dtype, 2, types, 1, NULL);
        cot_run     *r = cot_run_create(p);
        cot_program_run(r, (const void *[]){columns, rows}, (void *[]){z});
        cot_run_destroy(r);
        cot_program_destroy(p);
    } else {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   y, xs[] = {cot_data(t, COT_F64, types[0].shape, columns), cot_data(t, COT_F64, types[1].shape, rows)};
        columns_times_rows(2, xs, 1, &y, &dtype);
        TEST_CHECK(cot_read(y, z, PRODUCTS) == COT_OK, "%s", cot_tape_message(t));
        cot_tape_destroy(t);
    }
    for (int i = 0; i < PRODUCTS; i++) signs += z[i] == 0 && signbit(z[i]);
    return signs;
}

/* -10^-200 · 10^-200 rounds to -0, to which 0 is added; of bf16 -10^-30 · 10^-30 does so in f32.
 * (What vanishes only when that is rounded to 16 bits keeps its sign, and products of f16 are none
 * too small for f32.) */
static void a_product_of_depth_1_that_vanishes_is_0(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    (void)state;
    double   columns[BATCH * ROWS], rows[BATCH * COLUMNS];
    size_t   from = cot__product_from, times = cot__product_times;
    cot__isa isa = cot__cpu_isa();
    cot__cpu_use_bits(COT__BITS_PORTABLE);
    for (int i = 0; i < TEST_COUNT(dtypes); i++) {
        cot_dtype d = dtypes[i];
        double    tiny = d == COT_F64 ? 1e-200 : 1e-30;
        for (int j = 0; j < BATCH * ROWS; j++) columns[j] = j % 3 ? -tiny : 0;
        for (int j = 0; j < BATCH * COLUMNS; j++) rows[j] = j % 2 ? tiny : -0.0;
        for (int how = AT_ONCE; how <= AS_A_PROGRAM; how++)
            for (cot__isa k = COT__ISA_PLAIN; k <= cot__cpu_best(); k++) {
                cot__cpu_use(k);
                cot__product_from = how == WAITING ? 0 : from, cot__product_times = how == WAITING ? 0 : times;
                int signs = minus_zeros(d, how == AS_A_PROGRAM, columns, rows);
                TEST_CHECK(signs == 0, "%s, way %d, instruction set %d: %d times -0", cot_dtype_name(d), how,
                           (int)k, signs);
            }
    }
    cot__product_from = from, cot__product_times = times;
    cot__cpu_use_bits(COT__BITS_FAST);
    cot__cpu_use(isa);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_has_the_bits_of_the_first),
        cmocka_unit_test(a_product_of_depth_1_that_vanishes_is_0),
    };
    return cmocka_run_group_tests_name("product_bits", tests, NULL, NULL);
}
