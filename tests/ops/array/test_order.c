/* Sorting, the k largest, searching: against qsort and counting, on every dtype, stable, with NaNs
 * and signed zeros. */
/* ctest: timeout=120 */
#include "support/tape_test.h"

static double noise(uint64_t *s) {
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*s >> 11) * 0x1p-53 * 2 - 1;
}

static const double *keys; /* the keys that qsort compares */
static bool          down;

/* NaN above everything; of equals the first. */
static int compare(const void *a, const void *b) {
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    double  x = keys[i], y = keys[j];
    int     c = isnan(x) || isnan(y) ? (isnan(x) != 0) - (isnan(y) != 0) : (x > y) - (x < y);
    if (down) c = -c;
    return c ? c : (i > j) - (i < j);
}

static void sorted_places(const double *x, int n, bool descending, int64_t *places) {
    keys = x, down = descending;
    for (int i = 0; i < n; i++) places[i] = i;
    qsort(places, (size_t)n, sizeof *places, compare);
}

/* Random numbers with many ties, or few; NaNs, infinities and both zeros among them. */
static void fill(double *x, int n, int kind, uint64_t *seed) {
    for (int i = 0; i < n; i++) {
        double v = noise(seed);
        x[i] = kind == 0 ? v : kind == 1 ? floor(4 * v) : kind == 2 ? (double)i : kind == 3 ? (double)-i : 1;
        if (kind == 0 && v > 0.95) x[i] = v > 0.98 ? NAN : v > 0.97 ? INFINITY : v > 0.96 ? 0.0 : -0.0;
    }
}

static void orders_equal_qsort_with_ties_in_place(void **state) {
    (void)state;
    static const int lengths[] = {1,   2,   3,   11,   12,    13,    24,    25,    100,
                                  255, 256, 257, 1000, 16383, 16384, 16385, 50000, 70001};
    int              most = test_small() ? 14 : (int)(sizeof lengths / sizeof *lengths);
    double          *x = malloc(70001 * sizeof *x);
    int64_t         *want = malloc(70001 * sizeof *want), *got = malloc(70001 * sizeof *got);
    uint64_t         seed = 7;
    for (int l = 0; l < most; l++)
        for (int kind = 0; kind < 5; kind++)
            for (int descending = 0; descending < 2; descending++) {
                int       n = lengths[l], ks[] = {n, n / 2, n / 16, n / 20, 1, 0};
                cot_tape *t = cot_tape_create(NULL);
                fill(x, n, kind, &seed);
                sorted_places(x, n, descending, want);
                cot_var v = cot_data(t, COT_F64, COT_SHAPE(n), x);
                assert_int_equal(cot_read_as(cot_argsort(v, 0, descending), COT_I64, got, n), COT_OK);
                assert_memory_equal(got, want, (size_t)n * sizeof *got);
                for (int k = 0; descending && k < 6; k++) {
                    cot_var places, values = cot_topk(v, ks[k], -1, &places);
                    assert_int_equal(cot_size(values), ks[k]);
                    assert_int_equal(cot_read_as(places, COT_I64, got, ks[k]), COT_OK);
                    assert_memory_equal(got, want, (size_t)ks[k] * sizeof *got);
                }
                assert_ok(t);
                cot_tape_destroy(t);
            }
    free(x), free(want), free(got);
}

static void every_dtype_axis_and_layout(void **state) {
    (void)state;
    enum { A = 5, B = 37, C = 3 };
    double    x[A * B * C], got[A * B * C], row[B];
    int64_t   places[B];
    uint64_t  seed = 3;
    cot_tape *t = cot_tape_create(NULL);
    for (int i = 0; i < A * B * C; i++) x[i] = floor(fabs(noise(&seed)) * 200);
    for (int d = 0; d < COT_DTYPE_COUNT; d++)
        for (int layout = 0; layout < 2; layout++) {
            cot_var v = cot_cast(cot_data(t, COT_F64, COT_SHAPE(A, B, C), x), (cot_dtype)d);
            if (layout) v = cot_permute(cot_copy(cot_permute(v, COT_AXES(1, 2, 0))), COT_AXES(2, 0, 1));
            double cast[A * B * C];
            cot_read(v, cast, A * B * C);
            cot_var s = cot_sort(v, 1, layout);
            assert_int_equal(cot_dtype_of(s), d);
            assert_int_equal(cot_read(s, got, A * B * C), COT_OK);
            for (int a = 0; a < A; a++)
                for (int c = 0; c < C; c++) {
                    for (int b = 0; b < B; b++) row[b] = cast[(a * B + b) * C + c];
                    sorted_places(row, B, layout, places);
                    for (int b = 0; b < B; b++) assert_near(got[(a * B + b) * C + c], row[places[b]], 0);
                }
        }
    /* not to be told apart as doubles */
    int64_t near[3] = {INT64_MAX, INT64_MAX - 1, INT64_MIN}, order[3];
    cot_read_as(cot_argsort(cot_data(t, COT_I64, COT_SHAPE(3), near), 0, false), COT_I64, order, 3);
    assert_true(order[0] == 2 && order[1] == 1 && order[2] == 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void gradients_follow_the_permutation(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    g[4], w[4] = {1, 10, 100, 1000};
    cot_var   x     = cot_tensor(t, COT_F64, COT_SHAPE(4), (double[]){3, 1, 3, 2}),
            weights = cot_data(t, COT_F64, COT_SHAPE(4), w), places;
    cot_backward(cot_sum(cot_mul(cot_sort(x, 0, false), weights), COT_ALL));
    cot_read_grad(x, g, 4);
    /* of the two 3s the first comes first */
    assert_true(g[0] == 100 && g[1] == 1 && g[2] == 1000 && g[3] == 10);
    cot_tape_zero_grads(t);
    cot_backward(cot_sum(cot_mul(cot_sort(x, 0, true), weights), COT_ALL));
    cot_read_grad(x, g, 4);
    assert_true(g[0] == 1 && g[1] == 1000 && g[2] == 10 && g[3] == 100);
    cot_tape_zero_grads(t);
    cot_backward(cot_sum(cot_topk(x, 1, 0, &places), COT_ALL));
    cot_read_grad(x, g, 4);
    assert_true(g[0] == 1 && g[1] == 0 && g[2] == 0 && g[3] == 0);
    assert_false(cot_requires_grad(places));
    assert_int_equal(cot_dtype_of(places), COT_I64);
    cot_tape_destroy(t);
}

static void searches_count_what_is_smaller(void **state) {
    (void)state;
    enum { N = 300, Q = 77 };
    double    sorted[N], q[Q];
    int64_t   got[Q];
    uint64_t  seed = 11;
    cot_tape *t = cot_tape_create(NULL);
    for (int d = 0; d < COT_DTYPE_COUNT; d++)
        for (int layout = 0; layout < 2; layout++)
            for (int right = 0; right < 2; right++) {
                for (int i = 0; i < N; i++) sorted[i] = floor(i / 7.0);
                for (int i = 0; i < Q; i++) q[i] = floor(fabs(noise(&seed)) * 60);
                cot_var x = cot_cast(cot_data(t, COT_F64, COT_SHAPE(N), sorted), (cot_dtype)d);
                cot_var v = cot_cast(cot_data(t, COT_F64, COT_SHAPE(7, 11), q), (cot_dtype)d);
                if (layout)
                    x = cot_flip(cot_copy(cot_flip(x, COT_ALL)), COT_ALL),
                    v = cot_transpose(cot_copy(cot_transpose(v)));
                assert_int_equal(cot_read(x, sorted, N), COT_OK);
                assert_int_equal(cot_read(v, q, Q), COT_OK);
                assert_int_equal(cot_read_as(cot_searchsorted(x, v, right), COT_I64, got, Q), COT_OK);
                for (int i = 0; i < Q; i++) {
                    int64_t count = 0;
                    for (int j = 0; j < N; j++) count += right ? sorted[j] <= q[i] : sorted[j] < q[i];
                    assert_int_equal(got[i], count);
                }
            }
    assert_near(cot_value(cot_searchsorted(cot_data(t, COT_F64, COT_SHAPE(0), NULL), cot_scalar(t, 1), false)), 0, 0);
    cot_var two = cot_data(t, COT_F64, COT_SHAPE(2), NULL), none = cot_data(t, COT_F64, COT_SHAPE(0), NULL);
    assert_int_equal(cot_size(cot_searchsorted(two, none, false)), 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void ten_million_elements_are_sorted(void **state) {
    (void)state;
    int64_t   n = test_small() ? 200000 : 10000000;
    float    *x = malloc((size_t)n * sizeof *x);
    uint64_t  seed = 5;
    double    sum = 0, sorted_sum = 0;
    cot_tape *t = cot_tape_create(NULL);
    for (int64_t i = 0; i < n; i++) x[i] = (float)noise(&seed), sum += (double)x[i];
    cot_var s = cot_sort(cot_data(t, COT_F32, COT_SHAPE(n), x), 0, false);
    assert_int_equal(cot_read_as(s, COT_F32, x, n), COT_OK);
    for (int64_t i = 1; i < n; i++)
        if (x[i] < x[i - 1]) fail_msg("element %lld is out of order", (long long)i);
    for (int64_t i = 0; i < n; i++) sorted_sum += (double)x[i];
    /* f32 summed in f64, in another order: about n ulp of f64 */
    assert_near(sorted_sum, sum, 1e-9);
    assert_ok(t);
    cot_tape_destroy(t);
    free(x);
}

static void empty_arrays_are_in_order(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(0, 3), NULL);
    for (int axis = -2; axis < 2; axis++) assert_int_equal(cot_size(cot_sort(x, axis, false)), 0);
    assert_int_equal(cot_size(cot_topk(x, 2, 1, NULL)), 0);
    cot_backward(cot_sum(cot_sort(x, 0, true), COT_ALL));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void errors(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL),
            v   = cot_tensor(t, COT_F64, COT_SHAPE(4), (double[]){1, 2, 4, 3}), out;
    cot_mark  m = cot_tape_mark(t);
#define FAILS(call, code, text)                                                                                        \
    do {                                                                                                               \
        call;                                                                                                          \
        assert_error(t, code, text);                                                                                   \
        cot_tape_rewind(t, m);                                                                                         \
    } while (0)
    FAILS(cot_sort(x, 2, false), COT_SHAPE, "[sort] axis 2 is out of range for rank 2; axes run from -2 to 1");
    FAILS(cot_argsort(cot_constant(t, 1), 0, false), COT_SHAPE,
          "[argsort] axis 0 is out of range for rank 0; a scalar has no axes");
    FAILS(cot_topk(x, 4, 1, &out), COT_VALUE,
          "[topk] the 4 largest of 3 elements along axis 1; k runs from 0 to the extent");
    assert_false(cot_is_valid(out));
    FAILS(cot_topk(x, -1, 0, NULL), COT_VALUE,
          "[topk] the -1 largest of 2 elements along axis 0; k runs from 0 to the extent");
    FAILS(cot_topk(x, 1, -3, NULL), COT_SHAPE, "[topk] axis -3 is out of range for rank 2; axes run from -2 to 1");
    FAILS(cot_searchsorted(x, v, false), COT_SHAPE,
          "[searchsorted] the sorted array has shape (2,3); it must be a vector");
    FAILS(cot_searchsorted(v, x, false), COT_VALUE,
          "[searchsorted] element 3 is smaller than the one before it; the array must be sorted, upward, NaN last");
    assert_ok(t);
    cot_tape_destroy(t);
}

static void reports_name_ties(void **state) {
    (void)state;
    char      out[512];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), (double[]){1, 2, 1, 5, 4, 3}),
            y   = cot_sum(cot_sort(x, 1, false), COT_ALL);
    assert_int_equal(cot_report(y, out, sizeof out), 1);
    assert_string_equal(
        out,
        "argsort (v₁) chooses between equal elements at [0,0]; its derivative there: the first of them comes first.");
    /* 2, 1: another 1 is left out */
    assert_int_equal(cot_report(cot_sum(cot_topk(x, 2, 1, NULL), COT_ALL), out, sizeof out), 1);
    assert_int_equal(cot_report(cot_sum(cot_topk(x, 1, 1, NULL), COT_ALL), out, sizeof out), 0);
    assert_int_equal(cot_report(cot_sum(cot_cummin(x, 1, false), COT_ALL), out, sizeof out), 1);
    assert_int_equal(cot_report(cot_sum(cot_cummax(x, 1, false), COT_ALL), out, sizeof out), 0);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_equal_qsort_with_ties_in_place),
        cmocka_unit_test(every_dtype_axis_and_layout),
        cmocka_unit_test(gradients_follow_the_permutation),
        cmocka_unit_test(searches_count_what_is_smaller),
        cmocka_unit_test(ten_million_elements_are_sorted),
        cmocka_unit_test(empty_arrays_are_in_order),
        cmocka_unit_test(errors),
        cmocka_unit_test(reports_name_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
