/* Fourier transforms against the sum that defines them, in long double; lengths of every kind,
 * strides, dtypes, threads, errors. */
/* ctest: labels=threads timeout=300 */
#include "support/tape_test.h"

#include "backend/cpu/fft/fft.h"

#include <stdlib.h>
#include <float.h>

/* The same file once more without vector instructions beyond the baseline, under other names. */
#define COT__FFT_ISA 0
#define cot__fft plain_fft
#define cot__fft_workspace plain_fft_workspace
#define cot__fft_root plain_fft_root
#define cot__fft_row plain_fft_row
void    cot__fft(const cot__fft_job *job, const cot__view *x, const cot__view *z, void *scratch);
int64_t cot__fft_workspace(const cot__fft_job *job, const cot__view *x);
void    cot__fft_root(int64_t j, int64_t n, double *re, double *im);
int64_t cot__fft_row(const cot__view *v, int axis, bool is_complex, int64_t r);
#include "backend/cpu/fft/fft.c"
#undef cot__fft
#undef cot__fft_workspace
#undef cot__fft_root
#undef cot__fft_row

enum { MOST = 16384 };

static uint64_t seed = 7;

static double noise(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(seed >> 11) * 0x1p-52 - 1;
}

static void fill(int64_t n, double *v) {
    for (int64_t i = 0; i < n; i++) v[i] = (double)(float)noise();
}

/* ---- the definition -------------------------------------------------------------------------- */

static long double cosines[MOST], sines[MOST];

/* z[k] = Σ x[j] exp(sign 2πi jk/n), pairs */
static void define(int64_t n, int sign, const double *x, long double *z) {
    for (int64_t j = 0; j < n; j++) {
        long double angle = 2 * 3.14159265358979323846264338327950288L * (long double)j / (long double)n;
        cosines[j] = cosl(angle), sines[j] = sign * sinl(angle);
    }
    for (int64_t k = 0; k < n; k++) {
        long double re = 0, im = 0;
        for (int64_t j = 0, at = 0; j < n; j++, at = (at + k) % n) {
            re += x[2 * j] * cosines[at] - x[2 * j + 1] * sines[at];
            im += x[2 * j] * sines[at] + x[2 * j + 1] * cosines[at];
        }
        z[2 * k] = re, z[2 * k + 1] = im;
    }
}

/* The error in the 2-norm, in units of eps times (1 + log2 n) times the norm of the result. */
static double distance(int64_t n, int64_t count, const double *have, const long double *want, double eps) {
    long double error = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        long double d = have[i] - want[i];
        error += d * d, norm += want[i] * want[i];
    }
    return norm > 0 ? (double)sqrtl(error / norm) / (eps * (1 + log2((double)n))) : (double)error;
}

static cot_var values(cot_tape *t, cot_dtype d, cot_shape shape, const double *v) {
    return cot_cast(cot_data(t, COT_F64, shape, v), d);
}

static const int64_t odd_lengths[] = {121, 127, 128, 210,  243,  251,  256,  343,  500,
                                      512, 625, 700, 1000, 1009, 1024, 1155, 2003, 2048};

/* Every step rounds by half an eps and there are about 2 log2 n of them; Bluestein does three
 * transforms of four times the length. A transform with exact tables keeps within one eps for each
 * level. The errors of wrong or sloppy tables grow with n and do not. */
static void check_length(int64_t n, cot_dtype d) {
    static double      x[2 * MOST], have[2 * MOST];
    static long double want[2 * MOST];
    double             eps = d == COT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    cot_tape          *t = cot_tape_create(NULL);
    fill(2 * n, x);
    cot_var v = values(t, d, COT_SHAPE(n, 2), x), real = values(t, d, COT_SHAPE(n), x), z = cot_fft(v, 0, 0);
    for (int sign = -1; sign <= 1; sign += 2) {
        define(n, sign, x, want);
        for (int64_t i = 0; sign > 0 && i < 2 * n; i++) want[i] /= (long double)n;
        assert_int_equal(cot_read(sign < 0 ? z : cot_ifft(v, 0, 0), have, 2 * n), COT_OK);
        double off = distance(n, 2 * n, have, want, eps);
        if (!(off <= 1))
            fail_msg("%s of %lld points in %s is off by %g", sign < 0 ? "fft" : "ifft", (long long)n, cot_dtype_name(d),
                     off);
    }
    static double row[2 * MOST];
    for (int64_t j = 0; j < n; j++) row[2 * j] = x[j], row[2 * j + 1] = 0;
    define(n, -1, row, want);
    assert_int_equal(cot_read(cot_rfft(real, 0, 0), have, 2 * (n / 2 + 1)), COT_OK);
    double off = distance(n, 2 * (n / 2 + 1), have, want, eps);
    if (!(off <= 1)) fail_msg("rfft of %lld points in %s is off by %g", (long long)n, cot_dtype_name(d), off);
    if (have[1] != 0 || (n % 2 == 0 && have[n + 1] != 0))
        fail_msg("rfft of %lld points: a real bin has an imaginary part", (long long)n);
    /* irfft: the bins and their mirror images are made here. The imaginary part of a bin that is
     * its own mirror image does not count */
    int64_t bins = n / 2 + 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t from = k < bins ? k : n - k;
        bool    own = (n - k) % n == k;
        row[2 * k] = x[2 * from], row[2 * k + 1] = own ? 0 : k < bins ? x[2 * from + 1] : -x[2 * from + 1];
    }
    define(n, 1, row, want);
    for (int64_t j = 0; j < n; j++) want[j] = want[2 * j] / (long double)n;
    assert_int_equal(cot_read(cot_irfft(cot_slice(v, 0, 0, bins, 1), n, 0), have, n), COT_OK);
    off = distance(n, n, have, want, eps);
    if (!(off <= 1)) fail_msg("irfft of %lld points in %s is off by %g", (long long)n, cot_dtype_name(d), off);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void every_length_is_near_its_definition(void **state) {
    (void)state;
    for (int d = COT_F64; d <= COT_F32; d++) {
        for (int64_t n = 1; n <= (test_small() ? 40 : 120); n++) check_length(n, (cot_dtype)d);
        for (size_t k = 0; !test_small() && k < sizeof odd_lengths / sizeof *odd_lengths; k++)
            check_length(odd_lengths[k], (cot_dtype)d);
    }
}

/* A million points and a large prime: done in a moment only if the work is n log n. */
static void long_rows_come_back(void **state) {
    (void)state;
    const int64_t lengths[2] = {test_small() ? 4096 : 1 << 18, test_small() ? 4099 : 100003};
    for (int k = 0; k < 2; k++) {
        int64_t   n = lengths[k];
        double   *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y), worst = 0;
        cot_tape *t = cot_tape_create(NULL);
        assert_true(x && y);
        fill(n, x);
        cot_var v = cot_data(t, COT_F64, COT_SHAPE(n), x), f = cot_rfft(v, 0, 0);
        assert_int_equal(cot_read(cot_irfft(f, n, 0), y, n), COT_OK);
        for (int64_t i = 0; i < n; i++) worst = fmax(worst, fabs(x[i] - y[i]));
        /* two transforms; numbers up to 1, up to 4 deviations from their mean error */
        assert_true(worst <= 2 * DBL_EPSILON * (1 + log2((double)n)) * 2);
        cot_tape_destroy(t);
        free(x), free(y);
    }
}

static void fast_lengths_are_the_next_of_2_3_5(void **state) {
    (void)state;
    for (int64_t n = 1, next = 1; n <= 3000; n++) {
        for (next = n;; next++) {
            int64_t left = next;
            while (left % 2 == 0) left /= 2;
            while (left % 3 == 0) left /= 3;
            while (left % 5 == 0) left /= 5;
            if (left == 1) break;
        }
        assert_int_equal(cot__fft_fast_length(n), next);
    }
    assert_true(cot__fft_fast_length(INT64_C(1) << 58) == INT64_C(1) << 58);
    assert_true(cot__fft_fast_length((INT64_C(1) << 58) + 1) > INT64_C(1) << 58);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void assert_same(cot_var a, cot_var b) {
    static double x[MOST], y[MOST];
    cot_shape     s = cot_shape_of(a), z = cot_shape_of(b);
    assert_ok(a.tape);
    assert_int_equal(s.ndim, z.ndim);
    for (int k = 0; k < s.ndim; k++) assert_int_equal(s.dim[k], z.dim[k]);
    assert_int_equal(cot_dtype_of(a), cot_dtype_of(b));
    assert_int_equal(cot_read(a, x, cot_size(a)), COT_OK);
    assert_int_equal(cot_read(b, y, cot_size(b)), COT_OK);
    for (int64_t i = 0; i < cot_size(a); i++)
        if (memcmp(&x[i], &y[i], sizeof *x) != 0) fail_msg("element %d is %.17g, not %.17g", (int)i, x[i], y[i]);
}

static void axes_and_strides_do_not_matter(void **state) {
    (void)state;
    static double x[MOST];
    cot_tape     *t = cot_tape_create(NULL);
    fill(MOST, x);
    for (int64_t n = 4; n <= 7; n++) {
        cot_var v = cot_data(t, COT_F64, COT_SHAPE(2, n, 3, 2), x), moved = cot_permute(v, COT_AXES(0, 2, 1, 3)),
                packed = cot_copy(moved);
        assert_same(cot_permute(cot_fft(v, 0, 1), COT_AXES(0, 2, 1, 3)), cot_fft(packed, 0, -1));
        assert_same(cot_fft(moved, 0, 2), cot_fft(packed, 0, 2));
        assert_same(cot_ifft(moved, 0, -1), cot_ifft(packed, 0, -1));
        assert_same(cot_irfft(moved, 0, -1), cot_irfft(packed, 0, -1));
        cot_var real = cot_index(moved, -1, 1), back = cot_flip(real, COT_AXES(2));
        assert_same(cot_rfft(real, 0, 2), cot_rfft(cot_copy(real), 0, 2));
        assert_same(cot_rfft(back, 0, -1), cot_rfft(cot_copy(back), 0, -1));
        assert_same(cot_rfft(cot_broadcast_to(cot_scalar(t, 2), COT_SHAPE(3, n)), 0, -1),
                    cot_rfft(cot_full(t, COT_F64, COT_SHAPE(3, n), 2), 0, -1));
    }
    cot_tape_destroy(t);
}

/* The bits of a row are its own: alone, or beside any number of others. */
static void a_row_does_not_depend_on_its_neighbours(void **state) {
    (void)state;
    static double x[MOST];
    cot_tape     *t = cot_tape_create(NULL);
    fill(MOST, x);
    for (int64_t n = 1; n <= 30; n++) {
        int64_t rows = 37;
        cot_var v = cot_data(t, COT_F64, COT_SHAPE(rows, n, 2), x), real = cot_data(t, COT_F64, COT_SHAPE(rows, n), x);
        cot_var f = cot_fft(v, 0, 1), r = cot_rfft(real, 0, 1), h = cot_irfft(r, n, 1);
        for (int64_t i = 0; i < rows; i += 9) {
            assert_same(cot_index(f, 0, i), cot_fft(cot_index(v, 0, i), 0, 0));
            assert_same(cot_index(r, 0, i), cot_rfft(cot_index(real, 0, i), 0, 0));
            assert_same(cot_index(h, 0, i), cot_irfft(cot_index(r, 0, i), n, 0));
        }
    }
    cot_tape_destroy(t);
}

static void a_nan_stays_in_its_row(void **state) {
    (void)state;
    static double x[5 * 6 * 2], have[5 * 6 * 2];
    cot_tape     *t = cot_tape_create(NULL);
    fill(60, x);
    x[2 * 12 + 3] = NAN;
    cot_var v = cot_data(t, COT_F64, COT_SHAPE(5, 6, 2), x);
    assert_int_equal(cot_read(cot_fft(v, 0, 1), have, 60), COT_OK);
    for (int i = 0; i < 60; i += 2) assert_int_equal(isnan(have[i]) || isnan(have[i + 1]), i / 12 == 2);
    cot_tape_destroy(t);
}

static void rows_are_cut_or_padded(void **state) {
    (void)state;
    static double x[60];
    cot_tape     *t = cot_tape_create(NULL);
    fill(60, x);
    cot_var v = cot_data(t, COT_F64, COT_SHAPE(3, 5, 2), x), real = cot_data(t, COT_F64, COT_SHAPE(3, 5), x);
    cot_var cut = cot_slice(v, 1, 0, 3, 1), padded = cot_pad(v, COT_SHAPE(0, 0, 0), COT_SHAPE(0, 3, 0), 0);
    assert_same(cot_fft(v, 3, 1), cot_fft(cut, 0, 1));
    assert_same(cot_ifft(v, 8, 1), cot_ifft(padded, 0, 1));
    assert_same(cot_rfft(real, 4, 1), cot_rfft(cot_slice(real, 1, 0, 4, 1), 0, 1));
    assert_same(cot_rfft(real, 9, 1), cot_rfft(cot_pad(real, COT_SHAPE(0, 0), COT_SHAPE(0, 4), 0), 0, 1));
    assert_same(cot_irfft(v, 0, 1), cot_irfft(v, 8, 1));
    assert_same(cot_irfft(v, 5, 1), cot_irfft(cut, 5, 1));
    assert_same(cot_irfft(v, 14, 1), cot_irfft(padded, 14, 1));
    cot_tape_destroy(t);
}

static void empty_batches_and_single_points(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   none = cot_fft(cot_tensor(t, COT_F64, COT_SHAPE(0, 5, 2), NULL), 0, 1);
    assert_same(none, cot_zeros(t, COT_F64, COT_SHAPE(0, 5, 2)));
    assert_same(cot_rfft(cot_zeros(t, COT_F32, COT_SHAPE(0, 5)), 0, 1), cot_zeros(t, COT_F32, COT_SHAPE(0, 3, 2)));
    assert_same(cot_irfft(cot_zeros(t, COT_F64, COT_SHAPE(0, 5, 2)), 0, 1), cot_zeros(t, COT_F64, COT_SHAPE(0, 8)));
    /* nothing but padding */
    assert_same(cot_fft(cot_zeros(t, COT_F64, COT_SHAPE(0, 2)), 4, 0), cot_zeros(t, COT_F64, COT_SHAPE(4, 2)));
    cot_var one = cot_full(t, COT_F64, COT_SHAPE(1, 2), 3);
    assert_same(cot_fft(one, 0, 0), one);
    assert_same(cot_ifft(one, 0, 0), one);
    assert_same(cot_irfft(one, 1, 0), cot_full(t, COT_F64, COT_SHAPE(1), 3));
    assert_same(cot_index(cot_rfft(cot_full(t, COT_F64, COT_SHAPE(1), 3), 0, 0), 1, 0),
                cot_full(t, COT_F64, COT_SHAPE(1), 3));
    cot_tape_destroy(t);
}

static void halves_are_computed_in_f32_and_integers_in_f64(void **state) {
    (void)state;
    static double x[24];
    int64_t       whole[12];
    cot_tape     *t = cot_tape_create(NULL);
    fill(24, x);
    for (int i = 0; i < 12; i++) whole[i] = i * i - 20;
    for (int d = COT_BF16; d <= COT_F16; d++) {
        cot_var v = values(t, (cot_dtype)d, COT_SHAPE(12, 2), x), real = values(t, (cot_dtype)d, COT_SHAPE(12), x);
        assert_same(cot_fft(v, 0, 0), cot_cast(cot_fft(cot_cast(v, COT_F32), 0, 0), (cot_dtype)d));
        assert_same(cot_rfft(real, 0, 0), cot_cast(cot_rfft(cot_cast(real, COT_F32), 0, 0), (cot_dtype)d));
        assert_same(cot_irfft(v, 0, 0), cot_cast(cot_irfft(cot_cast(v, COT_F32), 0, 0), (cot_dtype)d));
        assert_same(
            cot_fft_convolve(real, real, 0, "full"),
            cot_cast(cot_fft_convolve(cot_cast(real, COT_F32), cot_cast(real, COT_F32), 0, "full"), (cot_dtype)d));
    }
    cot_var i = cot_data(t, COT_I64, COT_SHAPE(12), whole);
    assert_same(cot_rfft(i, 0, 0), cot_rfft(cot_cast(i, COT_F64), 0, 0));
    cot_tape_destroy(t);
}

/* Which part of the spectrum irfft reads is which part receives an adjoint. */
static void irfft_ignores_what_its_gradient_says(void **state) {
    (void)state;
    static double x[16], g[16], y[8], z[8];
    cot_tape     *t = cot_tape_create(NULL);
    fill(16, x);
    for (int64_t n = 7; n <= 8; n++) {
        int64_t bins = n / 2 + 1;
        cot_var v = cot_tensor(t, COT_F64, COT_SHAPE(bins, 2), x);
        cot_var weights = cot_data(t, COT_F64, COT_SHAPE(n), x + 3);
        cot_backward(cot_sum(cot_mul(cot_irfft(v, n, 0), weights), COT_ALL));
        assert_int_equal(cot_read_grad(v, g, 2 * bins), COT_OK);
        assert_int_equal(cot_read(cot_irfft(v, n, 0), y, n), COT_OK);
        for (int64_t i = 0; i < 2 * bins; i++) {
            double moved[16];
            memcpy(moved, x, sizeof moved);
            moved[i] += 0.5;
            assert_int_equal(cot_read(cot_irfft(cot_data(t, COT_F64, COT_SHAPE(bins, 2), moved), n, 0), z, n), COT_OK);
            bool   counts = i != 1 && !(n == 8 && i == 2 * bins - 1);
            double change = 0;
            for (int64_t j = 0; j < n; j++) change += (z[j] - y[j]) * x[3 + j];
            assert_int_equal(memcmp(y, z, (size_t)n * sizeof *y) != 0, counts);
            /* linear: any step will do; a few dozen roundings of numbers below 1 */
            assert_near(g[i], change / 0.5, 64 * DBL_EPSILON);
            if (!counts) assert_true(g[i] == 0);
        }
    }
    cot_tape_destroy(t);
}

/* ---- convolution ----------------------------------------------------------------------------- */

static void convolution_is_the_sum_that_defines_it(void **state) {
    (void)state;
    static double     x[64], h[64], have[128];
    const char *const modes[] = {"full", "same", "valid"};
    cot_tape         *t = cot_tape_create(NULL);
    fill(64, x), fill(64, h);
    for (int64_t a = 1; a <= 9; a++)
        for (int64_t b = 1; b <= 9; b++)
            for (int m = 0; m < 3; m++) {
                int64_t first = m == 0 ? 0 : m == 1 ? (b - 1) / 2 : (a < b ? a : b) - 1;
                int64_t n = m == 0 ? a + b - 1 : m == 1 ? a : (a < b ? b - a : a - b) + 1;
                cot_var z     = cot_fft_convolve(cot_data(t, COT_F64, COT_SHAPE(a), x),
                                                 cot_data(t, COT_F64, COT_SHAPE(b), h), 0, modes[m]);
                assert_ok(t);
                assert_int_equal(cot_size(z), n);
                assert_int_equal(cot_read(z, have, n), COT_OK);
                for (int64_t i = 0; i < n; i++) {
                    double sum = 0;
                    for (int64_t j = 0; j < a; j++)
                        if (first + i - j >= 0 && first + i - j < b) sum += x[j] * h[first + i - j];
                    /* three transforms of up to 5 levels; sums of up to 9 numbers below 1 */
                    assert_near(have[i], sum, 3 * 5 * 9 * DBL_EPSILON);
                }
            }
    cot_var rows = cot_data(t, COT_F64, COT_SHAPE(4, 8), x), kernel = cot_data(t, COT_F64, COT_SHAPE(3), h);
    cot_var z = cot_fft_convolve(rows, kernel, -1, "valid"), down = cot_fft_convolve(rows, kernel, 0, "full");
    assert_same(cot_index(z, 0, 2), cot_fft_convolve(cot_index(rows, 0, 2), kernel, 0, "valid"));
    assert_same(cot_index(down, 1, 5), cot_fft_convolve(cot_index(rows, 1, 5), kernel, 0, "full"));
    cot_var one = cot_data(t, COT_F64, COT_SHAPE(1, 8), x);
    assert_same(cot_index(cot_fft_convolve(one, rows, 1, "same"), 0, 3),
                cot_fft_convolve(cot_index(one, 0, 0), cot_index(rows, 0, 3), 0, "same"));
    assert_same(cot_fft_convolve(cot_zeros(t, COT_F64, COT_SHAPE(0, 4)), kernel, 1, "full"),
                cot_zeros(t, COT_F64, COT_SHAPE(0, 6)));
    cot_tape_destroy(t);
}

/* ---- bits ------------------------------------------------------------------------------------ */

static void threads_give_the_same_bits(void **state) {
    (void)state;
    enum { ROWS = 96 };
    const int     threads[4] = {1, 2, 3, 8};
    /* two that pass directly, a prime, and rows so short that many go together */
    const int64_t lengths[4] = {512, 360, 331, 15};
    for (int l = 0; l < 4; l++) {
        int64_t n = lengths[l], rows = n == 15 ? 8000 : ROWS, size = rows * n;
        double *x = malloc(2 * (size_t)size * sizeof *x), *first = malloc(6 * (size_t)size * sizeof *x),
               *have = malloc(6 * (size_t)size * sizeof *x);
        assert_true(x && first && have);
        fill(2 * size, x);
        for (int k = 0; k < 4; k++) {
            cot_set_threads(threads[k]);
            cot_tape *t = cot_tape_create(NULL);
            cot_var   v   = cot_data(t, COT_F64, COT_SHAPE(rows, n, 2), x),
                    real  = cot_data(t, COT_F64, COT_SHAPE(rows, n), x);
            double   *out = k ? have : first;
            cot_var   r = cot_rfft(real, 0, 1);
            assert_int_equal(cot_read(cot_fft(v, 0, 1), out, 2 * size), COT_OK);
            assert_int_equal(cot_read(r, out + 2 * size, cot_size(r)), COT_OK);
            assert_int_equal(cot_read(cot_irfft(v, n, 1), out + 2 * size + cot_size(r), size), COT_OK);
            if (k) assert_memory_equal(first, have, (size_t)(3 * size + cot_size(r)) * sizeof *x);
            cot_tape_destroy(t);
        }
        free(x), free(first), free(have);
    }
    cot_set_threads(0);
}

static void every_instruction_set_gives_the_same_bits(void **state) {
    (void)state;
    static double x[2 * MOST], a[2 * MOST], b[2 * MOST];
    static float  xs[2 * MOST], as[2 * MOST], bs[2 * MOST];
    fill(2 * MOST, x);
    for (int i = 0; i < 2 * MOST; i++) xs[i] = (float)x[i];
    for (int64_t n = 1; n <= 66; n++)
        for (int kind = COT__FFT_COMPLEX; kind <= COT__FFT_HALF; kind++)
            for (int64_t rows = 1; rows <= 21; rows += 4) {
                int64_t bins = n / 2 + 1, in = kind == COT__FFT_HALF ? bins : n, out = kind == COT__FFT_REAL ? bins : n;
                int          nx = kind == COT__FFT_REAL ? 2 : 3, nz = kind == COT__FFT_HALF ? 2 : 3;
                int64_t      sx[3] = {rows, in, 2}, sz[3] = {rows, out, 2}, tx[3], tz[3];
                cot__fft_job job = {(cot__fft_kind)kind, 1, n, kind != COT__FFT_REAL, true};
                cot__strides(nx, sx, tx), cot__strides(nz, sz, tz);
                cot__view v = {x, COT_F64, nx, sx, tx}, za = {a, COT_F64, nz, sz, tz}, zb = {b, COT_F64, nz, sz, tz};
                cot__view w = {xs, COT_F32, nx, sx, tx}, ya = {as, COT_F32, nz, sz, tz}, yb = {bs, COT_F32, nz, sz, tz};
                void *memory = malloc((size_t)cot__fft_workspace(&job, &v));
                assert_true(cot__fft_workspace(&job, &v) == plain_fft_workspace(&job, &v));
                assert_true(cot__fft_workspace(&job, &w) <= cot__fft_workspace(&job, &v));
                cot__fft(&job, &v, &za, memory), plain_fft(&job, &v, &zb, memory);
                cot__fft(&job, &w, &ya, memory), plain_fft(&job, &w, &yb, memory);
                free(memory);
                assert_memory_equal(a, b, (size_t)cot__count(nz, sz) * sizeof *a);
                assert_memory_equal(as, bs, (size_t)cot__count(nz, sz) * sizeof *as);
            }
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define expect(t, code, text)                                                                                          \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   real = cot_zeros(t, COT_F64, COT_SHAPE(4, 3)), pairs = cot_zeros(t, COT_F64, COT_SHAPE(4, 3, 2)),
            none = cot_zeros(t, COT_F64, COT_SHAPE(2, 0, 2));
    cot_fft(real, 0, 0);
    expect(t, COT_SHAPE,
           "[fft] the operand has shape (4,3); complex values have a last axis of extent 2, real and imaginary part");
    cot_ifft(cot_scalar(t, 1), 0, 0);
    expect(t, COT_SHAPE,
           "[ifft] the operand has shape (); complex values have a last axis of extent 2, real and imaginary part");
    cot_irfft(real, 0, 0);
    expect(t, COT_SHAPE,
           "[irfft] the operand has shape (4,3); complex values have a last axis of extent 2, real and imaginary part");
    cot_fft(pairs, 0, 2);
    expect(t, COT_SHAPE, "[fft] axis 2 is out of range for rank 2; axes run from -2 to 1");
    cot_fft(cot_zeros(t, COT_F64, COT_SHAPE(2)), 0, 0);
    expect(t, COT_SHAPE, "[fft] axis 0 is out of range for rank 0; a scalar has no axes");
    cot_rfft(real, 0, 2);
    expect(t, COT_SHAPE, "[rfft] axis 2 is out of range for rank 2; axes run from -2 to 1");
    cot_rfft(real, -1, 0);
    expect(t, COT_VALUE, "[rfft] n is -1; it is the number of points, or 0 for those of the axis");
    cot_fft(none, 0, 1);
    expect(t, COT_SHAPE, "[fft] the axis has no points; a transform has at least one, give n");
    cot_irfft(cot_zeros(t, COT_F64, COT_SHAPE(1, 2)), 0, 0); /* one bin: 2 (1 - 1) points */
    expect(t, COT_SHAPE,
           "[irfft] the axis has one bin, and without n that is a transform of 2 · (1 - 1) points; give n, 1 for the "
           "constant");
    cot_shape deep = {16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    cot_rfft(cot_zeros(t, COT_F64, deep), 0, 0);
    expect(t, COT_LIMIT, "[rfft] a shape of 17 axes; shapes have 0 to 16 axes");
    cot_fft(pairs, INT64_MAX, 0);
    expect(t, COT_LIMIT, "[fft] shape (9223372036854775807,3,2) has too many elements to address");
    cot_fft_convolve(real, cot_zeros(t, COT_F64, COT_SHAPE(3, 2)), 0, "full");
    expect(t, COT_SHAPE,
           "[fft_convolve] x has shape (4,3) and h (3,2); h has one axis, or the rank of x and extents that are equal "
           "or 1 beside the axis");
    cot_fft_convolve(cot_index(real, 0, 0), real, 0, "full");
    expect(t, COT_SHAPE,
           "[fft_convolve] x has shape (3,) and h (4,3); h has one axis, or the rank of x and extents that are equal "
           "or 1 beside the axis");
    cot_fft_convolve(real, cot_zeros(t, COT_F64, COT_SHAPE(0)), 0, "full");
    expect(t, COT_SHAPE, "[fft_convolve] x has 4 points along the axis and h has 0; both need one at least");
    cot_fft_convolve(real, real, 0, "wrap");
    expect(t, COT_VALUE, "[fft_convolve] the mode is \"wrap\"; modes are \"full\", \"same\" and \"valid\"");
    cot_fft_convolve(real, real, 0, NULL);
    expect(t, COT_VALUE, "[fft_convolve] the mode is \"NULL\"; modes are \"full\", \"same\" and \"valid\"");
    cot_fft_convolve(real, real, 5, "full");
    expect(t, COT_SHAPE, "[fft_convolve] axis 5 is out of range for rank 2; axes run from -2 to 1");
    cot_tape_destroy(t);
}

static void transform(cot_tape *t, void *user) {
    double *x = user;
    cot_var v = cot_tensor(t, COT_F64, COT_SHAPE(2, 11), x), z = cot_irfft(cot_fft(cot_rfft(v, 0, 1), 7, 1), 6, 1), g;
    cot_grad_of(cot_sum(cot_square(cot_fft_convolve(z, v, 1, "same")), COT_ALL), 1, &v, &g);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    double x[22];
    fill(22, x);
    /* a device has its status words behind the workspace */
    const char *said = getenv("COT_TEST_BACKEND") ? "[rfft] out of memory: 2512 bytes of workspace"
                                                  : "[rfft] out of memory: 2496 bytes of workspace";
    assert_survives_no_memory(transform, x, 1,
                              (const char *const[]){said});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_near_its_definition),
        cmocka_unit_test(long_rows_come_back),
        cmocka_unit_test(fast_lengths_are_the_next_of_2_3_5),
        cmocka_unit_test(axes_and_strides_do_not_matter),
        cmocka_unit_test(a_row_does_not_depend_on_its_neighbours),
        cmocka_unit_test(a_nan_stays_in_its_row),
        cmocka_unit_test(rows_are_cut_or_padded),
        cmocka_unit_test(empty_batches_and_single_points),
        cmocka_unit_test(halves_are_computed_in_f32_and_integers_in_f64),
        cmocka_unit_test(irfft_ignores_what_its_gradient_says),
        cmocka_unit_test(convolution_is_the_sum_that_defines_it),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
