/* Random numbers: the generator against its published answers, keys against each other,
 * distributions against their functions. */
/* ctest: labels=threads */
/* Keys are fixed, so the tests always give the same answer; the bounds are such that fair numbers
 * would fail one of them with a probability below 1e-9: 6.2 standard deviations for means and
 * counts, and sqrt(10.7 / n) for the distance between two distribution functions, as P(D > e) <= 2
 * exp(-2 n e²). */
#include "support/tape_test.h"

#include "base/random.h"

enum { N = 100000 };
#define SIGMAS 6.2

static double numbers[N], others[N];

static const double *read_all(cot_var x, double *out) {
    assert_int_equal(cot_read(x, out, cot_size(x)), COT_OK);
    return out;
}

/* ---- the generator and the keys -------------------------------------------------------------- */

static void threefry_gives_the_published_answers(void **state) {
    (void)state;
    static const struct { uint32_t counter[2], key[2], words[2]; } known[] = {
        {{0, 0}, {0, 0}, {0x6b200159, 0x99ba4efe}},
        {{0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x1cb996fc, 0xbb002be7}},
        {{0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}, {0xc4923a9c, 0x483df7a0}},
    };
    for (int i = 0; i < 3; i++) {
        cot_key  key = {.word = {known[i].key[0], known[i].key[1]}};
        uint32_t a, b;
        cot__random_words(key, (uint64_t)known[i].counter[0] << 32 | known[i].counter[1], 1, &a, &b);
        assert_int_equal(a, known[i].words[0]);
        assert_int_equal(b, known[i].words[1]);
    }
}

static void words_do_not_depend_on_where_a_run_begins(void **state) {
    (void)state;
    uint32_t a[40], b[40], c[40], d[40];
    uint64_t first = UINT64_C(0xfffffff0); /* over the carry into the upper word */
    cot__random_words(cot_key_of(9), first, 40, a, b);
    for (int i = 0; i < 40; i++) cot__random_words(cot_key_of(9), first + (uint64_t)i, 1, c + i, d + i);
    assert_memory_equal(a, c, sizeof a);
    assert_memory_equal(b, d, sizeof b);
}

static void keys_split_into_folds(void **state) {
    (void)state;
    cot_key k = cot_key_of(UINT64_C(0x123456789)), parts[100];
    assert_int_equal(k.word[0], 1);
    assert_int_equal(k.word[1], 0x23456789);
    cot_key_split(k, 100, parts);
    for (int i = 0; i < 100; i++) {
        cot_key f = cot_key_fold(k, (uint64_t)i);
        assert_memory_equal(&f, &parts[i], sizeof f);
        for (int j = 0; j < i; j++) assert_true(memcmp(&parts[i], &parts[j], sizeof f) != 0);
    }
    cot_key_split(k, 3, NULL);
    cot_key_split(k, -1, parts);
}

static double correlation(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum / n;
}

static void keys_are_independent(void **state) {
    (void)state;
    cot_key   keys[8] = {{.word = {0, 0}}, cot_key_of(0), cot_key_of(1), cot_key_of(2), cot_key_of(UINT64_C(1) << 32)};
    cot_tape *t = cot_tape_create(NULL);
    cot_key_split(keys[2], 3, keys + 5);
    for (int i = 1; i < 8; i++) {
        read_all(cot_normal(t, keys[i], COT_F64, COT_SHAPE(N)), numbers);
        /* neighbours too */
        assert_true(fabs(correlation(numbers, numbers + 1, N - 1)) < SIGMAS / sqrt(N));
        for (int j = 1; j < i; j++) {
            read_all(cot_normal(t, keys[j], COT_F64, COT_SHAPE(N)), others);
            assert_true(fabs(correlation(numbers, others, N)) < SIGMAS / sqrt(N));
        }
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void every_bit_is_fair(void **state) {
    (void)state;
    static uint32_t a[N], b[N];
    int             ones[64] = {0};
    cot__random_words(cot_key_of(42), 0, N, a, b);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 32; k++) ones[k] += a[i] >> k & 1, ones[32 + k] += b[i] >> k & 1;
    for (int k = 0; k < 64; k++) assert_true(fabs(ones[k] - N / 2.0) < SIGMAS * sqrt(N / 4.0));
}

/* ---- distributions --------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double uniform_cdf(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2)); }
static double gumbel_cdf(double x) { return exp(-exp(-x)); }

/* The largest distance of the empirical distribution function. Ties (24 bits) count as one step. */
static double distance(double *x, int n, double (*cdf)(double)) {
    double d = 0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int i = 0; i < n; i++) d = fmax(d, fmax(fabs(cdf(x[i]) - (double)i / n), fabs(cdf(x[i]) - (i + 1.0) / n)));
    return d;
}

/* Sample mean and variance against the true ones; `fourth`: the fourth central moment. */
static void check_moments(const double *x, int n, double mean, double variance, double fourth) {
    double m = 0, v = 0;
    for (int i = 0; i < n; i++) m += x[i] / n;
    for (int i = 0; i < n; i++) v += (x[i] - mean) * (x[i] - mean) / n;
    assert_true(fabs(m - mean) < SIGMAS * sqrt(variance / n));
    assert_true(fabs(v - variance) < SIGMAS * sqrt((fourth - variance * variance) / n));
}

static void distributions_have_their_functions_and_moments(void **state) {
    (void)state;
    const double pi = acos(-1), far = sqrt(10.7 / N);
    for (cot_dtype d = COT_F64; d <= COT_F32; d++) {
        cot_tape *t = cot_tape_create(NULL);
        read_all(cot_uniform(t, cot_key_of(1), d, COT_SHAPE(N), 0, 1), numbers);
        check_moments(numbers, N, 0.5, 1 / 12.0, 1 / 80.0);
        assert_true(distance(numbers, N, uniform_cdf) < far);
        read_all(cot_normal(t, cot_key_of(2), d, COT_SHAPE(N)), numbers);
        check_moments(numbers, N, 0, 1, 3);
        assert_true(distance(numbers, N, normal_cdf) < far);
        read_all(cot_gumbel(t, cot_key_of(3), d, COT_SHAPE(N)), numbers);
        check_moments(numbers, N, 0.57721566490153286, pi * pi / 6, pi * pi * pi * pi * 3 / 20);
        assert_true(distance(numbers, N, gumbel_cdf) < far);
        /* the distance tells distributions apart */
        assert_true(distance(numbers, N, normal_cdf) > far);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static void the_plain_logarithm_is_a_logarithm(void **state) {
    (void)state;
    for (int i = 0; i < N; i++) {
        double x = ldexp(1 + (i * 0x9e3779b9u) * 0x1p-32, i % 120 - 60), exact = (double)logl((long double)x);
        assert_true(fabs(cot__plain_log(x) - exact) <= 1.5 * 0x1p-52 * fabs(exact));
    }
    assert_near(cot__plain_log(1), 0, 0);
    assert_near(cot__plain_log(2), log(2), 0);
}

/* Each number follows from its 53 or 24 bits by its formula. */
static void bits_become_numbers_as_promised(void **state) {
    (void)state;
    enum { M = 3000 };
    static uint32_t a[M], b[M];
    cot_tape       *t = cot_tape_create(NULL);
    cot__random_words(cot_key_of(77), 0, M, a, b);
    for (cot_dtype d = COT_F64; d <= COT_F16; d++) {
        cot_var u          = cot_uniform(t, cot_key_of(77), d, COT_SHAPE(M), 0, 1),
                z          = cot_normal(t, cot_key_of(77), d, COT_SHAPE(M));
        cot_var g = cot_gumbel(t, cot_key_of(77), d, COT_SHAPE(M));
        int     bits = d == COT_F64 ? 53 : 24;
        double  unit = d == COT_F64 ? 0x1p-52 : d == COT_F32 ? 0x1p-23 : d == COT_BF16 ? 0x1p-7 : 0x1p-10;
        static double gu[M], gz[M], gg[M];
        read_all(u, gu), read_all(z, gz), read_all(g, gg);
        for (int i = 0; i < M; i++) {
            double k = (double)(((uint64_t)a[i] << 32 | b[i]) >> (64 - bits));
            if (bits == 53 || d == COT_F32) assert_near(gu[i], ldexp(k, -bits), 0);
            else assert_true(fabs(gu[i] - ldexp(k, -bits)) <= unit && gu[i] < 1);
            /* Φ(z) = v to the precision of z: |dΦ| = φ(z) |dz| */
            double v = ldexp(k + 0.5, -bits), slack = 4 * unit * (1 + fabs(gz[i])) + 1e-15;
            assert_true(fabs(normal_cdf(gz[i]) - v) <= slack);
            /* this log(v) rounds v */
            assert_true(fabs(-log(-log(v)) - gg[i]) <= 4 * unit * (1 + fabs(gg[i])) + 2e-16 / (1 - v));
        }
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void uniform_numbers_stay_below_the_end(void **state) {
    (void)state;
    static const double ends[][2] = {{0, 1}, {-1, 0}, {1, 1.0078125}, {-3, 5}, {1000, 1001}};
    cot_tape           *t = cot_tape_create(NULL);
    for (cot_dtype d = COT_F64; d <= COT_F16; d++)
        for (int k = 0; k < 5; k++) {
            if (d == COT_BF16 && k == 4) continue; /* 1000 and 1001 are one number there */
            read_all(cot_uniform(t, cot_key_of((uint64_t)k), d, COT_SHAPE(N), ends[k][0], ends[k][1]), numbers);
            double top = -INFINITY, bottom = INFINITY;
            for (int i = 0; i < N; i++) top = fmax(top, numbers[i]), bottom = fmin(bottom, numbers[i]);
            assert_true(bottom >= ends[k][0] && top < ends[k][1]);
        }
    /* the length overflows */
    read_all(cot_uniform(t, cot_key_of(1), COT_F64, COT_SHAPE(N), -1.5e308, 1.5e308), numbers);
    for (int i = 0; i < N; i++) numbers[i] = numbers[i] / 1.5e308 / 2 + 0.5;
    assert_true(distance(numbers, N, uniform_cdf) < sqrt(10.7 / N));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- no state -------------------------------------------------------------------------------- */

static void numbers_depend_on_key_and_place_only(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    read_all(cot_normal(t, cot_key_of(4), COT_F64, COT_SHAPE(10, 100)), numbers);
    read_all(cot_normal(t, cot_key_of(4), COT_F64, COT_SHAPE(77)), others);
    assert_memory_equal(numbers, others, 77 * sizeof(double));
    read_all(cot_normal(t, cot_key_of(4), COT_F64, COT_SCALAR), others);
    assert_near(others[0], numbers[0], 0);
    /* f32 takes the upper bits of the same words */
    read_all(cot_normal(t, cot_key_of(4), COT_F32, COT_SHAPE(1000)), others);
    for (int i = 0; i < 1000; i++) assert_near(others[i], numbers[i], 1e-3);
    cot_tape_destroy(t);
}

static void any_number_of_threads_draws_the_same_bits(void **state) {
    (void)state;
    enum { BIG = 300001 };
    static const int counts[] = {1, 2, 3, 8};
    double          *kept[5], *now = malloc(BIG * sizeof *now);
    for (int c = 0; c < 4; c++) {
        cot_set_threads(counts[c]);
        cot_tape *t = cot_tape_create(NULL);
        cot_key   k = cot_key_of(6);
        cot_shape s = COT_SHAPE(BIG);
        cot_var   x = cot_normal(t, k, COT_F64, s);
        cot_var all[5] = {x, cot_uniform(t, k, COT_F32, s, -1, 2), cot_gumbel(t, k, COT_F64, s), cot_dropout(x, 0.3, k),
                          cot_bernoulli(t, k, cot_number(0.2), s)};
        for (int i = 0; i < 5; i++) {
            if (c == 0) kept[i] = malloc(BIG * sizeof *now);
            read_all(all[i], c ? now : kept[i]);
            if (c) assert_memory_equal(now, kept[i], BIG * sizeof *now);
        }
        assert_ok(t);
        cot_tape_destroy(t);
    }
    cot_set_threads(0);
    for (int i = 0; i < 5; i++) free(kept[i]);
    free(now);
}

/* ---- choices --------------------------------------------------------------------------------- */

static void coins_fall_as_often_as_asked(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int k = 0; k <= 4; k++) {
        double  p = k / 4.0, ones = 0;
        cot_var z = cot_bernoulli(t, cot_key_of((uint64_t)k), cot_number(p), COT_SHAPE(N));
        assert_int_equal(cot_dtype_of(z), COT_BOOL);
        read_all(z, numbers);
        for (int i = 0; i < N; i++) ones += numbers[i];
        assert_true(fabs(ones - p * N) <= SIGMAS * sqrt(p * (1 - p) * N)); /* none at 0, all at 1 */
    }
    cot_var p = cot_tensor(t, COT_F32, COT_SHAPE(2, 1), (float[]){0, 1}),
            z = cot_bernoulli(t, cot_key_of(1), p, COT_SHAPE(2, 3));
    read_all(z, numbers);
    for (int i = 0; i < 6; i++) assert_near(numbers[i], i / 3, 0);
    assert_false(cot_requires_grad(z));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void categories_come_with_their_probabilities(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    logits[4] = {0.5, -INFINITY, 2, -1}, sum = exp(0.5) + exp(2) + exp(-1);
    int       count[4] = {0};
    cot_var   wide     = cot_broadcast_to(cot_tensor(t, COT_F64, COT_SHAPE(4), logits), COT_SHAPE(N, 4)),
            z          = cot_categorical(cot_key_of(8), wide, -1);
    assert_int_equal(cot_dtype_of(z), COT_I64);
    assert_int_equal(cot_size(z), N);
    assert_false(cot_requires_grad(z));
    read_all(z, numbers);
    for (int i = 0; i < N; i++) count[(int)numbers[i]]++;
    for (int k = 0; k < 4; k++) {
        double p = exp(logits[k]) / sum;
        assert_true(fabs(count[k] - p * N) <= SIGMAS * sqrt(p * (1 - p) * N));
    }
    read_all(cot_categorical(cot_key_of(8), cot_transpose(wide), 0), others);
    assert_int_equal(cot_size(cot_categorical(cot_key_of(8), cot_zeros(t, COT_BF16, COT_SHAPE(0, 3)), 1)), 0);
    assert_int_equal(cot_value_i64(cot_categorical(cot_key_of(8), cot_zeros(t, COT_I32, COT_SHAPE(1)), 0)), 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void a_choice_without_probabilities_leaves_a_note(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    logits[6] = {0, -INFINITY, 1, NAN, 2, -INFINITY};
    cot_var   x         = cot_data(t, COT_F64, COT_SHAPE(3, 2), logits),
            below       = cot_data(t, COT_F32, COT_SHAPE(2), (float[]){-INFINITY, -INFINITY});
    cot_var   fine = cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){0, -INFINITY, -INFINITY, INFINITY});
    /* the other rows have theirs */
    assert_int_equal(cot_size(cot_categorical(cot_key_of(3), x, 1)), 3);
    assert_string_equal(cot_tape_note(t), "[categorical] the logits of choice 1 of 3 are NaN, or one of them is; they "
                                          "give no probabilities, and the choice "
                                          "means nothing");
    cot_tape_clear_note(t);
    cot_categorical(cot_key_of(3), x, 0);
    assert_string_equal(cot_tape_note(t), "[categorical] the logits of choice 1 of 2 are NaN, or one of them is; they "
                                          "give no probabilities, and the choice "
                                          "means nothing");
    cot_tape_clear_note(t);
    cot_categorical(cot_key_of(3), below, 0);
    assert_string_equal(cot_tape_note(t), "[categorical] the logits of choice 0 of 1 are all -inf; they give no "
                                          "probabilities, and the choice means nothing");
    cot_tape_clear_note(t);
    assert_int_equal(cot_value_i64(cot_index(cot_categorical(cot_key_of(3), fine, 1), 0, 1)), 1);
    assert_string_equal(cot_tape_note(t), "");
    assert_ok(t);
    cot_tape_destroy(t);
}

static void permutations_hold_each_number_once_and_are_equally_likely(void **state) {
    (void)state;
    enum { TRIES = 12000 };
    static bool seen[1000];
    int         count[6] = {0};
    cot_tape   *t = cot_tape_create(NULL);
    read_all(cot_permutation(t, cot_key_of(1), 1000), numbers);
    for (int i = 0; i < 1000; i++) seen[(int)numbers[i]] = true;
    for (int i = 0; i < 1000; i++) assert_true(seen[i]);
    assert_int_equal(cot_size(cot_permutation(t, cot_key_of(1), 0)), 0);
    assert_int_equal(cot_value_i64(cot_permutation(t, cot_key_of(1), 1)), 0);
    cot_mark m = cot_tape_mark(t);
    for (int i = 0; i < TRIES; i++) {
        read_all(cot_permutation(t, cot_key_fold(cot_key_of(2), (uint64_t)i), 3), numbers);
        count[(int)numbers[0] * 2 + (numbers[1] > numbers[2])]++;
        cot_tape_rewind(t, m);
    }
    for (int k = 0; k < 6; k++) assert_true(fabs(count[k] - TRIES / 6.0) < SIGMAS * sqrt(TRIES * 5 / 36.0));
    cot_tape_destroy(t);
}

static void shuffles_move_whole_slices(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    a[12], z[12], g[12];
    for (int i = 0; i < 12; i++) a[i] = i;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(4, 3), a), y = cot_shuffle(cot_key_of(2), x, -2);
    read_all(y, z);
    for (int i = 0; i < 4; i++) assert_true(z[3 * i] == floor(z[3 * i] / 3) * 3 && z[3 * i + 2] == z[3 * i] + 2);
    cot_backward(cot_sum(cot_mul(y, y), COT_ALL));
    cot_read_grad(x, g, 12);
    for (int i = 0; i < 12; i++) assert_near(g[i], 2 * i, 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void dropout_keeps_its_mask_in_every_derivative(void **state) {
    (void)state;
    static double z[N], g[N], h[N], j[N];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_tensor(t, COT_F64, COT_SHAPE(N), NULL), grad, second, y;
    cot_assign(x, 3.0);
    y = cot_dropout(x, 0.25, cot_key_of(1));
    cot_grad_of(cot_sum(cot_mul(y, cot_mul(y, y)), COT_ALL), 1, &x, &grad);
    cot_grad_of(cot_sum(grad, COT_ALL), 1, &x, &second);
    read_all(y, z), read_all(grad, g), read_all(second, h);
    read_all(cot_jvp(y, 1, &x, (cot_var[]){cot_ones(t, COT_F64, COT_SHAPE(N))}), j);
    double kept = 0, c = 1 / 0.75;
    for (int i = 0; i < N; i++) {
        bool in = z[i] != 0;
        kept += in;
        assert_near(z[i], in ? 3 * c : 0, 0);
        assert_near(g[i], in ? 3 * z[i] * z[i] * c : 0, 1e-15);
        assert_near(h[i], in ? 6 * z[i] * c * c : 0, 1e-15);
        assert_near(j[i], in ? c : 0, 0);
    }
    assert_true(fabs(kept - 0.75 * N) < SIGMAS * sqrt(0.1875 * N));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void dropout_at_its_ends_and_on_what_is_not_a_number(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    a[4] = {NAN, INFINITY, -INFINITY, 1}, z[4];
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(4), a);
    cot_var h = cot_add(x, 0.0);
    /* itself; of a leaf: test_nothing.c */
    assert_int_equal(cot_dropout(h, 0, cot_key_of(1)).id, h.id);
    read_all(cot_dropout(x, 1, cot_key_of(1)), z);
    for (int i = 0; i < 4; i++) assert_near(z[i], 0, 0);
    cot_backward(cot_sum(cot_dropout(x, 1, cot_key_of(1)), COT_ALL));
    cot_read_grad(x, z, 4);
    for (int i = 0; i < 4; i++) assert_near(z[i], 0, 0);
    /* scaled in f32, rounded once */
    cot_var half = cot_dropout(cot_ones(t, COT_BF16, COT_SHAPE(1000)), 0.3, cot_key_of(1));
    assert_int_equal(cot_dtype_of(half), COT_BF16);
    read_all(half, numbers);
    for (int i = 0; i < 1000; i++) assert_true(numbers[i] == 0 || numbers[i] == 1.4296875);
    assert_int_equal(cot_dtype_of(cot_dropout(cot_ones(t, COT_I32, COT_SHAPE(3)), 0.5, cot_key_of(1))), COT_F64);
    assert_int_equal(cot_size(cot_dropout(cot_zeros(t, COT_F32, COT_SHAPE(0, 3)), 0.5, cot_key_of(1))), 0);
    /* the mask follows the shape */
    read_all(cot_dropout(cot_transpose(cot_ones(t, COT_F64, COT_SHAPE(20, 10))), 0.5, cot_key_of(1)), numbers);
    read_all(cot_dropout(cot_ones(t, COT_F64, COT_SHAPE(10, 20)), 0.5, cot_key_of(1)), others);
    assert_memory_equal(numbers, others, 200 * sizeof *numbers);
    assert_ok(t);
    cot_tape_destroy(t);
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
    cot_key   k = cot_key_of(1);
    cot_shape s = COT_SHAPE(2), absurd = COT_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL);
    SAYS(cot_uniform(t, k, COT_F64, s, 1, 1), COT_VALUE,
         "[uniform] from 1 to 1 in f64; the ends must be finite and the first below the second");
    SAYS(cot_uniform(t, k, COT_BF16, s, 1, 1.001), COT_VALUE,
         "[uniform] from 1 to 1.001 in bf16; the ends must be finite and the first below the second");
    SAYS(cot_uniform(t, k, COT_F64, s, 0, INFINITY), COT_VALUE,
         "[uniform] from 0 to inf in f64; the ends must be finite and the first below the second");
    SAYS(cot_uniform(t, k, COT_F64, s, NAN, 1), COT_VALUE,
         "[uniform] from nan to 1 in f64; the ends must be finite and the first below the second");
    SAYS(cot_uniform(t, k, COT_I64, s, 0, 9), COT_DTYPE, "[uniform] numbers of dtype i64; they must be floats");
    SAYS(cot_normal(t, k, COT_BOOL, s), COT_DTYPE, "[normal] numbers of dtype bool; they must be floats");
    SAYS(cot_gumbel(t, k, (cot_dtype)42, s), COT_DTYPE, "[gumbel] 42 is not a dtype; dtypes are COT_F64 … COT_BOOL");
    SAYS(cot_normal(t, k, COT_F32, absurd), COT_LIMIT,
         "[normal] shape (1099511627776,1099511627776) has too many elements to address");
    SAYS(cot_uniform(t, k, COT_F32, COT_SHAPE(-1), 0, 1), COT_SHAPE,
         "[uniform] axis 0 of shape (-1,) has extent -1; extents are not negative");
    SAYS(cot_bernoulli(t, k, 1.5, s), COT_VALUE,
         "[bernoulli] element 0 of the probabilities is 1.5; they run from 0 to 1");
    SAYS(cot_bernoulli(t, k, cot_data(t, COT_F64, s, (double[]){0, NAN}), s), COT_VALUE,
         "[bernoulli] element 1 of the probabilities is nan; they run from 0 to 1");
    SAYS(cot_bernoulli(t, k, cot_zeros(t, COT_F64, COT_SHAPE(3)), s), COT_SHAPE,
         "[bernoulli] (3,) does not broadcast to (2,); aligned at the last axis, extents are equal or 1");
    SAYS(cot_categorical(k, x, 2), COT_SHAPE, "[categorical] axis 2 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_categorical(k, cot_zeros(t, COT_F64, COT_SHAPE(2, 0)), 1), COT_SHAPE,
         "[categorical] axis 1 of shape (2,0) is empty; there is nothing to choose from");
    SAYS(cot_permutation(t, k, -3), COT_SHAPE,
         "[permutation] axis 0 of shape (-3,) has extent -3; extents are not negative");
    SAYS(cot_permutation(t, k, INT64_MAX), COT_LIMIT,
         "[permutation] shape (9223372036854775807,) has too many elements to address");
    SAYS(cot_shuffle(k, x, -3), COT_SHAPE, "[shuffle] axis -3 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_dropout(x, -0.1, k), COT_VALUE, "[dropout] the rate is -0.1; it runs from 0 to 1");
    SAYS(cot_dropout(x, NAN, k), COT_VALUE, "[dropout] the rate is nan; it runs from 0 to 1");
    cot_tape_destroy(t);
    assert_false(cot_is_valid(cot_normal(NULL, k, COT_F64, s)));
    assert_false(cot_is_valid(cot_permutation(NULL, k, 3)));
}

static void draw_everything(cot_tape *t, void *user) {
    (void)user;
    cot_key   k = cot_key_of(1);
    cot_shape s = COT_SHAPE(50, 50);
    cot_var   x = cot_normal(t, k, COT_F64, s);
    cot_uniform(t, k, COT_F32, s, 0, 1), cot_bernoulli(t, k, cot_number(0.5), s), cot_categorical(k, x, 0),
        cot_shuffle(k, x, 1);
    cot_dropout(cot_cast(x, COT_F16), 0.5, k);
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    assert_survives_no_memory(draw_everything, NULL, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threefry_gives_the_published_answers),
        cmocka_unit_test(words_do_not_depend_on_where_a_run_begins),
        cmocka_unit_test(keys_split_into_folds),
        cmocka_unit_test(keys_are_independent),
        cmocka_unit_test(every_bit_is_fair),
        cmocka_unit_test(distributions_have_their_functions_and_moments),
        cmocka_unit_test(the_plain_logarithm_is_a_logarithm),
        cmocka_unit_test(bits_become_numbers_as_promised),
        cmocka_unit_test(uniform_numbers_stay_below_the_end),
        cmocka_unit_test(numbers_depend_on_key_and_place_only),
        cmocka_unit_test(any_number_of_threads_draws_the_same_bits),
        cmocka_unit_test(coins_fall_as_often_as_asked),
        cmocka_unit_test(categories_come_with_their_probabilities),
        cmocka_unit_test(a_choice_without_probabilities_leaves_a_note),
        cmocka_unit_test(permutations_hold_each_number_once_and_are_equally_likely),
        cmocka_unit_test(shuffles_move_whole_slices),
        cmocka_unit_test(dropout_keeps_its_mask_in_every_derivative),
        cmocka_unit_test(dropout_at_its_ends_and_on_what_is_not_a_number),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
