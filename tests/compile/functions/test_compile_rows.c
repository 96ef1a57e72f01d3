/* A block of a network and its gradient, compiled at the size at which softmax, norms and their
 * ways back run together with what stands around them: the bits are those of recording, and the
 * report tells the groups. */
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "program/fusion.h"

#include <cotangent_program.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 1100, ROW = 120, SIZE = ROWS * ROW };

/* A norm of the sum, softmax of it with a bias, a variance of each row. */
BODY(block) {
    UNUSED;
    cot_var h = cot_layer_norm(cot_add(xs[0], cot_mul(xs[1], 0.5)), xs[2], xs[2], -1, 1e-5);
    cot_var p = cot_softmax(cot_add(cot_mul(h, 2), xs[2]), -1);
    cot_var v = cot_variance(cot_mul(p, xs[1]), COT_AXES(-1));
    ys[0] = cot_add(cot_sum(cot_mul(p, xs[0]), COT_ALL), cot_sum(v, COT_ALL));
    return 0;
}
BODY(block_back) { UNUSED; return cot_value_and_grad(block, NULL, 3, xs, &ys[0], ys + 1) != COT_OK; }

static const int64_t size_of[4] = {1, SIZE, SIZE, ROW};

static cot_type type_of(int k, cot_dtype dtype) {
    return (cot_type){dtype, k == 2 ? COT_SHAPE(ROW) : COT_SHAPE(ROWS, ROW)};
}

/* Values of every kind in a few rows; the others are tame. */
static void *array_of(cot_dtype dtype, int64_t n, int seed) {
    void *x = malloc((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) {
        double v = (double)((i * 7919 + seed * 104729) % 2003) / 500 - 2;
        if (n > ROW && i % 40009 == 5017) v = i % 2 ? INFINITY : NAN;
        if (dtype == COT_F64) ((double *)x)[i] = v;
        else ((float *)x)[i] = (float)v;
    }
    return x;
}

/* The loss and three gradients. */
static void recorded(cot_dtype dtype, void *const *in, double *const *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[3], ys[4];
    for (int k = 0; k < 3; k++) xs[k] = cot_tensor(t, dtype, type_of(k, dtype).shape, in[k]);
    assert_int_equal(block_back(3, xs, 4, ys, NULL), 0);
    for (int k = 0; k < 4; k++) assert_int_equal(cot_read(ys[k], out[k], size_of[k]), COT_OK);
    cot_tape_destroy(t);
}

/* Of elements that were read as doubles; any two NaN are the same. */
static bool same(cot_dtype dtype, const void *got, const double *want, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double x = dtype == COT_F64 ? ((const double *)got)[i] : (double)((const float *)got)[i];
        if (!(isnan(x) && isnan(want[i])) && memcmp(&x, &want[i], sizeof x) != 0) return false;
    }
    return true;
}

static cot_program *compiled(cot_dtype dtype) {
    cot_type types[3] = {type_of(0, dtype), type_of(1, dtype), type_of(2, dtype)};
    cot_program *p = cot_compile(block_back, NULL, 3, types, 4, NULL);
    assert_string_equal(cot_program_message(p), "");
    return p;
}

static void a_block_and_its_gradient_have_the_bits_of_recording(void **state) {
    static const int threads[] = {1, 2, 7};
    (void)state;
    for (int t = 0; t < 2; t++) {
        cot_dtype    dtype = t ? COT_F64 : COT_F32;
        void        *in[3], *out[4];
        double      *want[4];
        cot_program *p = compiled(dtype);
        cot_run     *r = cot_run_create(p);
        for (int k = 0; k < 3; k++) in[k] = array_of(dtype, size_of[k + 1], k);
        for (int k = 0; k < 4; k++) out[k] = malloc((size_t)size_of[k] * 8), want[k] = malloc((size_t)size_of[k] * 8);
        recorded(dtype, in, want);
        assert_true(isfinite(want[1][0]) && want[1][0] != 0 && isnan(want[1][5017]));
        for (int i = 0; i < TEST_COUNT(threads); i++) {
            cot_set_threads(threads[i]);
            assert_int_equal(cot_program_run(r, (const void *const *)in, out), COT_OK);
            for (int k = 0; k < 4; k++)
                TEST_CHECK(same(dtype, out[k], want[k], size_of[k]), "%s, result %d, %d threads: other bits",
                           t ? "f64" : "f32", k, threads[i]);
        }
        cot_set_threads(0);
        for (int k = 0; k < 3; k++) free(in[k]);
        for (int k = 0; k < 4; k++) free(out[k]), free(want[k]);
        cot_run_destroy(r);
        cot_program_destroy(p);
    }
    test_verdict();
}

static char *reported(cot_program *p) {
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    assert_int_equal(cot_program_report(p, out), COT_OK);
    fclose(out);
    return text;
}

/* Fewer operations by themselves, fewer arrays, and formulas with softmax and norms in them. */
static void the_report_tells_what_runs_together(void **state) {
    cot_program_facts f[2];
    char             *text[2];
    int64_t           usual = cot__small_rows;
    (void)state;
    for (int k = 0; k < 2; k++) {
        cot__small_rows = k ? usual : INT64_MAX;
        cot_program *p = compiled(COT_F64);
        assert_int_equal(cot_program_measure(p, &f[k]), COT_OK);
        text[k] = reported(p);
        cot_program_destroy(p);
    }
    cot__small_rows = usual;
    assert_true(f[1].jobs < f[0].jobs && f[1].fused > f[0].fused && f[1].fused_bytes > f[0].fused_bytes);
    assert_non_null(strstr(text[1], " = softmax((layer_norm(%5, %2, %2) * 2) + %2)\n"));
    assert_null(strstr(text[0], " = softmax("));
    free(text[0]), free(text[1]);
}

/* The way back through a sum reads slices of one number that is repeated. */
BODY(log_of_rolled) {
    UNUSED;
    cot_var a = cot_sum(cot_roll(cot_mul(xs[1], xs[0]), 1, 0), COT_KEEP(0));
    ys[0] = cot_sum(cot_log(a), COT_ALL);
    return 0;
}
BODY(log_of_rolled_back) { UNUSED; return cot_value_and_grad(log_of_rolled, NULL, 2, xs, &ys[0], ys + 1) != COT_OK; }

static void slices_of_a_number_that_is_repeated_are_read_when_it_is_made(void **state) {
    const cot_type types[2] = {{COT_F64, COT_SHAPE(7)}, {COT_F64, COT_SCALAR}};
    double         x[7] = {1, 2, 3, 4, 5, 6, 7}, scale = 2, y, dx[7], dscale;
    (void)state;
    cot_program *p = cot_compile(log_of_rolled_back, NULL, 2, types, 3, NULL);
    cot_run     *r = cot_run_create(p);
    for (int k = 0; k < 3; k++, x[0] += 1) { /* what an earlier run left would show */
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(7), x), cot_scalar(t, scale)}, ys[3];
        double    want[7];
        assert_int_equal(cot_program_run(r, (const void *[]){x, &scale}, (void *[]){&y, dx, &dscale}), COT_OK);
        assert_int_equal(log_of_rolled_back(2, xs, 3, ys, NULL), 0);
        assert_int_equal(cot_read(ys[1], want, 7), COT_OK);
        assert_memory_equal(dx, want, sizeof dx);
        assert_true(dscale == cot_value(ys[2]) && y == cot_value(ys[0]));
        cot_tape_destroy(t);
    }
    cot_run_destroy(r);
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_and_its_gradient_have_the_bits_of_recording),
        cmocka_unit_test(the_report_tells_what_runs_together),
        cmocka_unit_test(slices_of_a_number_that_is_repeated_are_read_when_it_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
