/* Numbers at the ends of their range for every integer parameter of every function: each call gives
 * a result or an error, and the shape of a result is that of exact arithmetic. */
/* ctest: timeout=300 */
#include "samples/expr_samples.h"

#include <inttypes.h>

#include "support/support.h"

/* An allocation of more than this is refused, so that a request that is merely large ends in an
 * error of memory at once. */
enum { ROOM = 1 << 20 };
/* COT_TEST_SAY=1 prints each call before it is made: the last one is the one that does not end. */

#define LEAST "(-9223372036854775807-1)"
static const char *const extremes[]     = {LEAST,
                                           "(-9223372036854775807)",
                                           "(-4611686018427387904)",
                                           "(-4294967296)",
                                           "(-2147483649)",
                                           "(-2147483648)",
                                           "(-1)",
                                           "0",
                                           "1",
                                           "2147483647",
                                           "2147483648",
                                           "4294967296",
                                           "1099511627776",
                                           "1152921504606846976",
                                           "4611686018427387904",
                                           "9223372036854775806",
                                           "9223372036854775807"};
static const char *const few_extremes[] = {
    LEAST, "(-1)", "0", "1", "2147483647", "4611686018427387904", "9223372036854775806", "9223372036854775807"};

/* The arrays that the samples are called on: those of their prelude, without columns, and without
 * rows. */
static const char *const preludes[] = {
    prelude,
    "A = zeros([2, 0]) + x; v = A[0]; S = zeros([0, 0]) * x; i = zeros([0], int64); m = v > 0; q = zeros([2, 0, 4]) * "
    "x; b = zeros([1, 2, 0]) * x;"
    "b2 = b[:, :, None]; b3 = b2[:, :, None];",
    "A = zeros([0, 3]) + x; v = zeros([3]) + x; S = eye(3) * x; i = zeros([0], int64); m = v > 0; q = zeros([0, 3, 4]) "
    "* x; b = zeros([0, 2, 6]) * x;"
    "b2 = b[:, :, None]; b3 = b2[:, :, None];",
};

/* ---- one call -------------------------------------------------------------------------------- */

/* All derivatives of y by x must exist, in each way to get them: an operation that accepts a shape
 * accepts it in all derivatives. */
static void differentiate(cot_tape *t, const char *text, cot_var x, cot_var z) {
    cot_var g, gg;
    if (!cot_requires_grad(z) || cot_size(z) > 4096) return;
    cot_var y = cot_sum(z, COT_ALL);
    cot_backward(y);
    cot_grad_of(y, 1, &x, &g);
    cot_jvp(z, 1, &x, &(cot_var){x.tape, x.id});
    cot_grad_of(g, 1, &x, &gg);
    if (cot_tape_status(t) != COT_OK && cot_tape_status(t) != COT_MEMORY)
        test_note("%s: accepted, but its derivative is not: %s", text, cot_tape_message(t));
}

static void try_call(const char *before, const char *call) {
    char            text[2000], why[400];
    counting        c = {.fail_from_size = ROOM};
    cot_tape       *t = counted_tape(&c, false);
    cot__expr_error error;
    cot__expr_input x = {"x", cot_scalar(t, 0.5), NULL};
    snprintf(text, sizeof text, "%s%s", before, call);
    if (getenv("COT_TEST_SAY")) fprintf(stderr, "%s\n", text);
    cot__expr *e = cot__expr_parse(text, strlen(text), &error);
    if (e) {
        cot_var z = cot__expr_run(e, t, 1, &x, &error, NULL, NULL);
        if (cot_is_valid(z)) differentiate(t, text, x.value, z);
        else
            TEST_CHECK(error.message[0] && !strstr(error.message, "knows no reason"), "%s: no result, and no reason",
                       text);
        if (cot_tape_status(t) != COT_OK)
            TEST_CHECK(cot_tape_message(t)[0] == '[', "%s: %s", text, cot_tape_message(t));
        cot_tape_clear_error(t);
        TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "%s: %s", text, why);
    }
    cot__expr_free(e);
    cot_tape_destroy(t);
    TEST_CHECK(c.blocks == 0 && !c.wrong_size, "%s: %zu blocks leak", text, c.blocks);
}

/* ---- where integers stand in a call ---------------------------------------------------------- */

/* Length 0: the parameter is left out, and put there. */
typedef struct place { int start, length; const char *name; } place;

static bool is_word(char c) {
    return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Integers as they are written, with their sign. */
static int written(const char *call, place *out, int most) {
    int  n = 0;
    bool quoted = false;
    for (int i = 0; call[i] && n < most; i++) {
        if (call[i] == '\'') quoted = !quoted;
        if (quoted || call[i] < '0' || call[i] > '9' || (i && is_word(call[i - 1]))) continue;
        int end = i, start = i;
        while (call[end] >= '0' && call[end] <= '9') end++;
        if (!is_word(call[end])) {
            if (i > 1 && call[i - 1] == '-' && strchr("(,[= ", call[i - 2])) start--;
            out[n++] = (place){start, end - start, NULL};
        }
        i = end - 1;
    }
    return n;
}

static bool takes_integers(const cot__parameter *p) {
    return p->takes == TAKES_AXES || p->takes == TAKES_SHAPE || p->takes == TAKES_INT || p->takes == TAKES_INTEGER ||
           p->takes == TAKES_THREE || p->takes == TAKES_TABLE || p->takes == TAKES_KEY;
}

/* The bracket that closes the first one. */
static int end_of_call(const char *call) {
    int depth = 0;
    for (int i = 0; call[i]; i++) {
        depth += call[i] == '(' ? 1 : call[i] == ')' ? -1 : 0;
        if (call[i] == ')' && depth == 0) return i;
    }
    return (int)strlen(call);
}

/* … and parameters that are left out. (One that is given by its place is then given twice, which is
 * an error of the text.) */
static int left_out(const cot__callee *f, const char *call, place *out, int most) {
    int n = 0;
    for (int k = 1; k < f->n && n < most; k++) {
        char given[100];
        snprintf(given, sizeof given, "%s=", f->parameter[k].name);
        if (takes_integers(&f->parameter[k]) && f->parameter[k].fallback && !strstr(call, given))
            out[n++] = (place){end_of_call(call), 0, f->parameter[k].name};
    }
    return n;
}

static void put(const char *call, const place *p, const char *value, char *out, size_t size) {
    if (p->length) snprintf(out, size, "%.*s%s%s", p->start, call, value, call + p->start + p->length);
    else snprintf(out, size, "%.*s, %s=%s%s", p->start, call, p->name, value, call + p->start);
}

enum { MOST_PLACES = 24 };

static int places_of(const char *name, const char *call, place *out) {
    const cot__callee *f = cot__find_callee(name, strlen(name));
    assert_non_null(f);
    int n = written(call, out, MOST_PLACES);
    return n + left_out(f, call, out + n, MOST_PLACES - n);
}

/* The samples have few windows and strides at once; these have all. */
static const struct { const char *name, *text;
} more_calls[] = {
    {"max_pool1d", "max_pool1d(b, window=2, stride=1, padding=1)"},
    {"avg_pool1d", "avg_pool1d(b, window=2, stride=1, padding=1, ceil_mode=True)"},
    {"max_pool2d", "max_pool2d(b2, window=[1, 2], stride=[1, 1], padding=[0, 1], ceil_mode=True)"},
    {"conv1d",
     "conv1d(b, ones([2, 1, 3]), stride=1, padding=1, dilation=1, groups=2, padding_before=1, padding_after=1)"},
    {"conv_transpose1d",
     "conv_transpose1d(b, ones([2, 1, 3]), stride=2, padding=1, dilation=1, groups=1, output_padding=1)"},
    {"pad", "pad(A, [[1, 2], [0, 1]])"},
    {"slice", "slice(A, 1, 0, 2, 1)"},
    {"reshape", "reshape(A, [3, -1, 1])"},
    {"tile", "tile(A, [2, 1, 2])"},
    {"fft_convolve", "fft_convolve(b, v[:1], axis=2)"},
    {"arange", "arange(0, 3, 1)"},
    {"take", "take(A, [0, 1], axis=0)"},
    {"gather", "gather(A, [[0, 1], [1, 2]])"},
    {"tensordot", "tensordot(A, A, axes=2)"},
    {"eye", "eye(3)"},
    {"irfft", "irfft(q[:, :, :2], n=4)"},
    {"rfft", "rfft(A, n=4, axis=0)"},
};
enum { CALLS = COUNTOF(call_samples) + COUNTOF(more_calls) };

static const char *call_named(int i, const char **name) {
    *name = i < COUNTOF(call_samples) ? call_samples[i].name : more_calls[i - COUNTOF(call_samples)].name;
    return i < COUNTOF(call_samples) ? call_samples[i].text : more_calls[i - COUNTOF(call_samples)].text;
}

static void every_integer_may_be_extreme(void **state) {
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        const char *name, *call = call_named(i, &name);
        place       at[MOST_PLACES];
        char        text[1000];
        for (int k = 0, n = places_of(name, call, at); k < n; k++)
            for (int v = 0; v < COUNTOF(extremes); v++) {
                put(call, &at[k], extremes[v], text, sizeof text);
                for (int p = 0; p < COUNTOF(preludes); p++) try_call(preludes[p], text);
            }
    }
    test_verdict();
}

/* Sums and products of two of them are where arithmetic wraps. */
static void two_integers_may_be_extreme(void **state) {
    (void)state;
    int step = test_small() ? 3 : 1;
    for (int i = 0; i < CALLS; i++) {
        const char *name, *call = call_named(i, &name);
        place       at[MOST_PLACES];
        char        one[1000], two[1000];
        int         n = places_of(name, call, at);
        for (int k = 0; k < n; k++)
            for (int l = k + 1; l < n; l++) /* the later one first: its place is as it was */
                for (int v = (k + l) % step; v < COUNTOF(few_extremes) * COUNTOF(few_extremes); v += step) {
                    put(call, &at[l], few_extremes[v / COUNTOF(few_extremes)], one, sizeof one);
                    put(one, &at[k], few_extremes[v % COUNTOF(few_extremes)], two, sizeof two);
                    try_call(preludes[v % COUNTOF(preludes)], two);
                }
    }
    test_verdict();
}

/* x[a:b:c], x[i]. */
static void positions_between_brackets_may_be_extreme(void **state) {
    (void)state;
    static const char *const forms[] = {"A[%s]",      "A[:, %s]",  "A[%s:]",     "A[:%s]",     "A[::%s]",
                                        "A[1:%s:-1]", "A[%s::-1]", "A[[0, %s]]", "A[..., %s:]"};
    for (int f = 0; f < COUNTOF(forms); f++)
        for (int v = 0; v < COUNTOF(extremes); v++)
            for (int p = 0; p < COUNTOF(preludes); p++) {
                char call[200];
                snprintf(call, sizeof call, forms[f], extremes[v]);
                try_call(preludes[p], call);
            }
    test_verdict();
}

/* ---- shapes ---------------------------------------------------------------------------------- */

__extension__ typedef __int128 wide;

static const int64_t numbers[] = {INT64_MIN,
                                  INT64_MIN + 1,
                                  -((int64_t)1 << 32),
                                  -1,
                                  0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  7,
                                  INT32_MAX,
                                  (int64_t)1 << 31,
                                  (int64_t)1 << 32,
                                  ((int64_t)1 << 62) + 1,
                                  INT64_MAX - 1,
                                  INT64_MAX};

/* The extent that the result has, or -1: refused. */
static wide pooled(wide n, wide w, wide s, wide p, bool up, bool largest) {
    if (w < 1 || w > INT32_MAX || s < 0 || s > INT32_MAX || p < 0 || 2 * p > w || n + 2 * p < w || (n == 0 && largest))
        return -1;
    if (s == 0) s = w;
    wide z = (n + 2 * p - w + (up ? s - 1 : 0)) / s + 1;
    return up && (z - 1) * s >= n + p ? z - 1 : z;
}

static void check_extent(cot_tape *t, cot_var z, int axis, wide want, const char *what) {
    bool valid = cot_is_valid(z), memory = cot_tape_status(t) == COT_MEMORY;
    if (want < 0) TEST_CHECK(!valid, "%s: is not refused", what);
    else if (valid)
        TEST_CHECK(cot_shape_of(z).dim[axis] == (int64_t)want, "%s: extent %lld", what,
                   (long long)cot_shape_of(z).dim[axis]);
    else TEST_CHECK(memory || (want > 1 << 20 && cot_tape_status(t) == COT_LIMIT), "%s: %s", what, cot_tape_message(t));
    cot_tape_clear_error(t);
}

static void windows_are_counted_exactly(void **state) {
    (void)state;
    counting  c = {.fail_from_size = ROOM};
    cot_tape *t = counted_tape(&c, false);
    for (int n = 0; n < 6; n++)
        for (int i = 0; i < COUNTOF(numbers) * COUNTOF(numbers) * COUNTOF(numbers); i++) {
            int64_t w = numbers[i % COUNTOF(numbers)], s = numbers[i / COUNTOF(numbers) % COUNTOF(numbers)],
                    p  = numbers[i / COUNTOF(numbers) / COUNTOF(numbers)];
            cot_mark m = cot_tape_mark(t);
            cot_var  x = cot_zeros(t, COT_F64, COT_SHAPE(2, n));
            char     what[200];
            for (int how = 0; how < 4; how++) {
                cot_pool_options o = {.window = {w}, .stride = {s}, .padding = {p}, .ceil_mode = how & 1};
                snprintf(what, sizeof what, "%s_pool1d of %d, window %lld, stride %lld, padding %lld%s",
                         how < 2 ? "max" : "avg", n, (long long)w, (long long)s, (long long)p, how & 1 ? ", ceil" : "");
                check_extent(t, how < 2 ? cot_max_pool1d(x, o) : cot_avg_pool1d(x, o), 1,
                             pooled(n, w, s, p, how & 1, how < 2), what);
            }
            cot_tape_rewind(t, m);
        }
    cot_tape_destroy(t);
    test_verdict();
}

/* stride, dilation and padding of a kernel of k elements. */
static wide convolved(wide n, wide k, wide s, wide d, wide p, bool transposed) {
    if (s < 0 || s > INT32_MAX || d < 0 || d > INT32_MAX || p < 0 || p > INT32_MAX || k < 1) return -1;
    s = s ? s : 1, d = d ? d : 1;
    wide reach = (k - 1) * d + 1, z = transposed ? (n - 1) * s + reach - 2 * p : n + 2 * p - reach;
    if (transposed) return n > 0 && z > 0 ? z : -1;
    return z >= 0 ? z / s + 1 : -1;
}

static void convolutions_are_measured_exactly(void **state) {
    (void)state;
    counting  c = {.fail_from_size = ROOM};
    cot_tape *t = counted_tape(&c, false);
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < COUNTOF(numbers) * COUNTOF(numbers) * COUNTOF(numbers); i++) {
            int64_t s = numbers[i % COUNTOF(numbers)], d = numbers[i / COUNTOF(numbers) % COUNTOF(numbers)],
                    p  = numbers[i / COUNTOF(numbers) / COUNTOF(numbers)];
            cot_mark m = cot_tape_mark(t);
            cot_var  x = cot_zeros(t, COT_F64, COT_SHAPE(1, 1, n)), w = cot_zeros(t, COT_F64, COT_SHAPE(1, 1, 2));
            for (int back = 0; back < 2; back++) {
                cot_conv_options o = {.stride = {s}, .dilation = {d}, .padding = {p}};
                char             what[200];
                snprintf(what, sizeof what, "conv%s1d of %d, stride %lld, dilation %lld, padding %lld",
                         back ? "_transpose" : "", n, (long long)s, (long long)d, (long long)p);
                check_extent(t, back ? cot_conv_transpose1d(x, w, o) : cot_conv1d(x, w, o), 2,
                             convolved(n, 2, s, d, p, back), what);
            }
            cot_tape_rewind(t, m);
        }
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- what expressions cannot say ------------------------------------------------------------- */

static int add_one(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m, (void)user;
    ys[0] = cot_add(xs[n - 1], 1.0);
    return 0;
}

static void shapes_may_be_extreme(void **state) {
    (void)state;
    counting  c = {.fail_from_size = ROOM};
    cot_tape *t = counted_tape(&c, false);
    double    memory[4] = {0};
    for (int i = 0; i < COUNTOF(numbers) * COUNTOF(numbers); i++) {
        int64_t   a = numbers[i % COUNTOF(numbers)], b = numbers[i / COUNTOF(numbers)];
        cot_shape s = COT_SHAPE(a, b, 0), whole = COT_SHAPE(a, b);
        cot_mark  m = cot_tape_mark(t);
        cot_var   z[] = {cot_tensor(t, COT_F64, s, NULL),
                         cot_data(t, COT_U8, s, NULL),
                         cot_wrap(t, COT_F64, s, memory),
                         cot_full(t, COT_F32, s, 1),
                         cot_eye(t, COT_F64, a, b),
                         cot_zeros(t, COT_BF16, whole),
                         cot_uniform(t, cot_key_of(1), COT_F32, s, 0, 1),
                         cot_linspace(t, COT_F64, 0, 1, a),
                         cot_broadcast_to(cot_scalar(t, 1), whole),
                         cot_permutation(t, cot_key_of(1), a)};
        for (int k = 0; k < COUNTOF(z); k++) {
            if (!cot_is_valid(z[k])) continue;
            cot_shape got = cot_shape_of(z[k]);
            TEST_CHECK(got.dim[0] == a && a >= 0 && (got.ndim == 1 || (got.dim[1] == b && b >= 0)),
                       "shape %d of %lld, %lld", k, (long long)a, (long long)b);
        }
        cot_tape_clear_error(t);
        cot_tape_rewind(t, m);
    }
    for (int i = 0; i < COUNTOF(numbers); i++) { /* numbers of axes */
        cot_shape s = {(int)numbers[i], {1}};
        if (s.ndim >= 0 && s.ndim <= COT_MAX_NDIM) continue;
        assert_false(cot_is_valid(cot_zeros(t, COT_F64, s)));
        cot_tape_clear_error(t);
        assert_false(cot_is_valid(cot_reshape(cot_constant(t, 1), s)));
        cot_tape_clear_error(t);
        assert_false(cot_is_valid(cot_pad(cot_constant(t, 1), s, s, 0)));
        cot_tape_clear_error(t);
        cot_axes axes = {(int)numbers[i], false, {0}};
        if (axes.n <= COT_MAX_NDIM) continue;
        assert_false(cot_is_valid(cot_sum(cot_zeros(t, COT_F64, COT_SHAPE(2)), axes)));
        cot_tape_clear_error(t);
    }
    cot_tape_destroy(t);
    assert_int_equal(c.blocks, 0);
    test_verdict();
}

static void writes_and_loops_may_be_given_extremes(void **state) {
    (void)state;
    counting  c = {.fail_from_size = ROOM};
    cot_tape *t = counted_tape(&c, false);
    for (int i = 0; i < COUNTOF(numbers) * COUNTOF(numbers); i++) {
        int64_t  a = numbers[i % COUNTOF(numbers)], b = numbers[i / COUNTOF(numbers)];
        cot_mark m = cot_tape_mark(t);
        char     why[400];
        cot_var  x = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), NULL), z = cot_mul(x, 1.0), last, ys[2], out[2],
                s = cot_scalar(t, 1);
        for (int step = -2; step < 3; step++) {
            cot_update_slice(&z, 0, a, b, step, 2.0);
            cot_tape_clear_error(t);
        }
        cot_update_slice(&z, 0, 0, 2, a, 2.0);
        cot_tape_clear_error(t);
        cot_loop_options o = {.states = (int)a, .limit = b};
        if ((wide)b - a < 4 || (wide)b - a > INT64_MAX) cot_fori(add_one, NULL, a, b, 1, &s, &last, &o);
        cot_tape_clear_error(t);
        if (a < 8) cot_scan(add_one, NULL, a, 1, &s, 0, NULL, &last, 0, NULL, &o);
        cot_tape_clear_error(t);
        if (a <= 4 || a > 60)
            cot_taylor(cot_sin(s), 1, &s, (int)b < 2 ? (int)b : 1, &s, (int)a < 1 || (int)a > 60 ? (int)a : 1, out);
        cot_tape_clear_error(t);
        if ((int)a <= 2) cot_split(x, (int)a, (int)b, ys); /* as many as there is room for */
        cot_tape_clear_error(t);
        cot_vmap(add_one, NULL, 1, &x, (int[]){(int)a}, 1, ys, (int[]){(int)b});
        cot_tape_clear_error(t);
        if (a != 6) TEST_CHECK(cot_read(x, NULL, a) != COT_OK, "reading %lld of 6 elements", (long long)a);
        cot_tape_clear_error(t);
        TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "%lld and %lld: %s", (long long)a, (long long)b, why);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    assert_int_equal(c.blocks, 0);
    test_verdict();
}

static int keep_all(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    for (int k = 0; k < m; k++) ys[k] = xs[n - m + k];
    return 0;
}

static int repeat_all(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)user;
    for (int k = 0; k < m; k++) ys[k] = cot_broadcast_to(xs[0], COT_SHAPE((int64_t)1 << 58));
    ys[0] = xs[0];
    return 0;
}

/* Views of one number, each of which could be addressed; the bytes of 32 of them together are 2^66,
 * which is 0 in 64 bits. */
static void what_a_loop_carries_is_counted_together(void **state) {
    (void)state;
    enum { N = 32 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   init[N], last[N], ys[N + 1], one = cot_scalar(t, 1);
    for (int k = 0; k < N; k++) init[k] = cot_broadcast_to(one, COT_SHAPE((int64_t)1 << 58));
    cot_fori(keep_all, NULL, 0, 2, N, init, last, NULL);
    assert_error(t, COT_LIMIT, "[fori] the carried values have more elements together than memory can hold");
    cot_tape_clear_error(t);
    cot_scan(repeat_all, NULL, 1, 1, &one, 0, NULL, last, N + 1, ys, NULL);
    assert_error(t, COT_LIMIT, "[scan] the results have more elements together than memory can hold");
    cot_tape_clear_error(t);
    cot_tape_destroy(t);
}

static cot_var repeated(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_broadcast_to(xs[0], COT_SHAPE((int64_t)1 << 58));
}

/* There is no memory for matrices of derivatives with so many elements, and the size of the request
 * does not wrap to a smaller one. */
static void matrices_that_no_memory_holds_are_refused(void **state) {
    (void)state;
    counting  c = {.fail_from_size = ROOM};
    cot_tape *t = counted_tape(&c, false);
    cot_var   x = cot_scalar(t, 1), y = repeated(1, &x, NULL);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_REVERSE, NULL), COT_VALUE);
    cot_tape_clear_error(t);
    cot_array        at = {COT_F64, COT_SCALAR, 1, (double[]){1}};
    cot_check_report report;
    assert_int_equal(cot_check_grads(repeated, NULL, 1, &at, 1, &report), COT_MEMORY);
    assert_null(cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO));
    assert_int_equal(cot_tape_status(t), COT_LIMIT);
    cot_tape_destroy(t);
    assert_int_equal(c.blocks, 0);
}

/* ---- how much memory a reduction of bytes takes ---------------------------------------------- */

typedef struct peak { size_t live, most; } peak;

static void *peak_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    peak *p = user;
    p->live += new_size - old_size;
    if (p->live > p->most) p->most = p->live;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* Bytes in use at once while f runs, beside those of x, for each byte of x (n elements of u8). */
static double factor(cot_var (*f)(cot_var), cot_shape shape, bool *same) {
    peak      p = {0, 0};
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {peak_alloc, &p}});
    int64_t   n = shape.dim[0] * (shape.ndim > 1 ? shape.dim[1] : 1);
    uint8_t  *data = malloc((size_t)n);
    for (int64_t i = 0; i < n; i++) data[i] = (uint8_t)((uint64_t)i * 2654435761u >> 13);
    cot_var x = cot_data(t, COT_U8, shape, data);
    cot_constant(t, 0);
    size_t  before = p.live;
    p.most = p.live;
    cot_var z = f(x);
    assert_ok(t);
    double by = (double)(p.most - before) / (double)n;
    cot_var in_f64 = f(cot_cast(x, COT_F64)); /* the bits are those of the numbers in f64 */
    double *a = malloc((size_t)cot_size(z) * sizeof *a), *b = malloc((size_t)cot_size(z) * sizeof *b);
    cot_read(z, a, cot_size(z));
    cot_read(in_f64, b, cot_size(z));
    *same = memcmp(a, b, (size_t)cot_size(z) * sizeof *a) == 0;
    free(a), free(b), free(data);
    cot_tape_destroy(t);
    assert_int_equal(p.live, 0);
    return by;
}

static cot_var mean_of(cot_var x) { return cot_mean(x, COT_ALL); }
static cot_var mean_of_rows(cot_var x) { return cot_mean(x, COT_AXES(-1)); }
static cot_var norm_of(cot_var x) { return cot_norm(x, 2, COT_ALL); }
static cot_var logsumexp_of(cot_var x) { return cot_logsumexp(x, COT_ALL); }
static cot_var cummax_of(cot_var x) { return cot_cummax(x, -1, false); }
static cot_var max_pool_of(cot_var x) { return cot_max_pool1d(x, COT_POOL(.window = {2})); }

static void bytes_are_reduced_without_a_copy_in_f64(void **state) {
    (void)state;
    static const struct { const char *name; cot_var (*f)(cot_var); double most;
    } cases[] = {
        {"mean", mean_of, 0.1},
        {"norm", norm_of, 0.1},
        {"logsumexp", logsumexp_of, 0.1},
        {"mean of rows", mean_of_rows, 0.1},
        /* results, and places of 1 or 4 bytes, rounded up by an eighth */
        {"cummax", cummax_of, 2.4},
        {"max_pool1d", max_pool_of, 3.0},
    };
    for (int i = 0; i < COUNTOF(cases); i++) {
        bool   same;
        double by = factor(cases[i].f, COT_SHAPE(1 << 12, 1 << 8), &same);
        TEST_CHECK(by <= cases[i].most, "%s takes %g times the bytes of its operand; %g would do", cases[i].name, by,
                   cases[i].most);
        TEST_CHECK(same, "%s of bytes differs from that in f64", cases[i].name);
    }
    bool   same;
    double by = factor(cummax_of, COT_SHAPE(1 << 20), &same);
    TEST_CHECK(by <= 5.8 && same, "cummax along a long axis takes %g times the bytes", by);
    test_verdict();
}

/* Large integers, in any order of axes: sums in f64 round as the sums of a copy would. */
static void means_of_integers_have_the_bits_of_their_copies(void **state) {
    (void)state;
    enum { N = 6000 };
    static int64_t data[N];
    for (int i = 0; i < N; i++) data[i] = (int64_t)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15)) >> (i % 40);
    for (int d = COT_I64; d <= COT_BOOL; d++)
        for (int turned = 0; turned < 2; turned++)
            for (int axes = 0; axes < 3; axes++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_var   x = cot_cast(cot_data(t, COT_I64, COT_SHAPE(60, 100), data), (cot_dtype)d);
                double    a[100], b[100];
                if (turned) x = cot_transpose(x);
                cot_axes which = axes == 2 ? COT_ALL : COT_AXES(axes);
                cot_var  y = cot_mean(x, which), z = cot_mean(cot_cast(x, COT_F64), which);
                assert_int_equal(cot_dtype_of(y), COT_F64);
                cot_read(y, a, cot_size(y));
                cot_read(z, b, cot_size(y));
                TEST_CHECK(memcmp(a, b, (size_t)cot_size(y) * sizeof *a) == 0, "mean of %s, %d, %d",
                           cot_dtype_name((cot_dtype)d), turned, axes);
                cot_tape_destroy(t);
            }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_counted_exactly),
        cmocka_unit_test(convolutions_are_measured_exactly),
        cmocka_unit_test(shapes_may_be_extreme),
        cmocka_unit_test(writes_and_loops_may_be_given_extremes),
        cmocka_unit_test(what_a_loop_carries_is_counted_together),
        cmocka_unit_test(matrices_that_no_memory_holds_are_refused),
        cmocka_unit_test(bytes_are_reduced_without_a_copy_in_f64),
        cmocka_unit_test(means_of_integers_have_the_bits_of_their_copies),
        cmocka_unit_test(every_integer_may_be_extreme),
        cmocka_unit_test(two_integers_may_be_extreme),
        cmocka_unit_test(positions_between_brackets_may_be_extreme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
