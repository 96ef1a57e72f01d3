/* The gradients of every example of a batch, compiled: norms and clipped means of them take no
 * arrays, as little as they do on a tape, and have the same bits. */
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 24, IN = 96, OUT = 256, INPUTS = 4, RESULTS = 3 };

/* tanh of a layer, against its target; the weights are the user's. */
BODY(one_example) {
    (void)n, (void)m;
    const cot_var *p = user;
    cot_var        loss = cot_mse(cot_tanh(cot_add(cot_matmul(xs[0], p[0]), p[1])), xs[1]);
    return cot_grad_of(loss, 2, p, ys) == COT_OK ? 0 : 1;
}

/* The norm of each example's gradient, the mean of all gradients of the weights, each scaled to a
 * norm of at most 1, and the sum of each gradient; inputs, targets, weights and bias. */
BODY(clipped) {
    UNUSED;
    cot_var g[2];
    if (cot_vmap(one_example, (void *)(uintptr_t)(xs + 2), 2, xs, NULL, 2, g, NULL) != COT_OK) return 1;
    ys[0] = cot_sqrt(cot_add(cot_sum(cot_square(g[0]), COT_AXES(1, 2)), cot_sum(cot_square(g[1]), COT_AXES(1))));
    cot_var scale = cot_minimum(1, cot_div(1, ys[0]));
    ys[1] = cot_mean(cot_mul(cot_reshape(scale, COT_SHAPE(BATCH, 1, 1)), g[0]), COT_AXES(0));
    ys[2] = cot_sum(cot_reshape(g[0], COT_SHAPE(BATCH, -1)), COT_AXES(1));
    return 0;
}

static const int64_t size_of[RESULTS] = {BATCH, IN * OUT, BATCH};

static cot_type type_of(int k, cot_dtype dtype) {
    static const cot_shape shapes[INPUTS] = {{2, {BATCH, IN}}, {2, {BATCH, OUT}}, {2, {IN, OUT}}, {1, {OUT}}};
    return (cot_type){dtype, shapes[k]};
}

static void *array_of(cot_type type, int seed) {
    int64_t n = 1;
    for (int k = 0; k < type.shape.ndim; k++) n *= type.shape.dim[k];
    void *x = malloc((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) {
        double v = (double)((i * 7919 + seed * 104729) % 2003) / 5000 - 0.2;
        if (type.dtype == COT_F64) ((double *)x)[i] = v;
        else ((float *)x)[i] = (float)v;
    }
    return x;
}

static void recorded(cot_dtype dtype, void *const *in, double *const *want) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS], ys[RESULTS];
    for (int k = 0; k < INPUTS; k++) xs[k] = cot_tensor(t, dtype, type_of(k, dtype).shape, in[k]);
    for (int k = 2; k < INPUTS; k++) xs[k] = cot_leaf(xs[k]);
    int refused = clipped(INPUTS, xs, RESULTS, ys, NULL);
    test_tape_ok(t, "recorded");
    assert_int_equal(refused, 0);
    for (int k = 0; k < RESULTS; k++) assert_int_equal(cot_read(ys[k], want[k], size_of[k]), COT_OK);
    cot_tape_destroy(t);
}

static void compare(cot_dtype dtype, const cot_compile_options *o) {
    static const int threads[] = {1, 2, 7};
    cot_type         types[INPUTS];
    void            *in[INPUTS], *out[RESULTS];
    double          *want[RESULTS];
    for (int k = 0; k < INPUTS; k++) types[k] = type_of(k, dtype), in[k] = array_of(types[k], k);
    for (int k = 0; k < RESULTS; k++)
        want[k] = malloc(sizeof(double[IN * OUT])), out[k] = malloc(sizeof(double[IN * OUT]));
    recorded(dtype, in, want);
    cot_program *p = cot_compile(clipped, NULL, INPUTS, types, RESULTS, o);
    cot_run     *r = cot_run_create(p);
    assert_string_equal(cot_program_message(p), "");
    size_t arrays = (size_t)BATCH * IN * OUT * (dtype == COT_F64 ? 8 : 4);
    if (!o) TEST_CHECK(cot_run_bytes(r) < arrays / 4, "%zu bytes, and arrays are %zu", cot_run_bytes(r), arrays);
    for (int t = 0; t < TEST_COUNT(threads); t++) {
        cot_set_threads(threads[t]);
        assert_int_equal(cot_program_run(r, (const void *const *)in, out), COT_OK);
        for (int k = 0; k < RESULTS; k++)
            for (int64_t i = 0; i < size_of[k]; i++) {
                double got = dtype == COT_F64 ? ((double *)out[k])[i] : (double)((float *)out[k])[i];
                TEST_CHECK(memcmp(&got, &want[k][i], sizeof got) == 0, "result %d, element %lld: %a, recorded %a", k,
                           (long long)i, got, want[k][i]);
            }
    }
    cot_set_threads(0);
    for (int k = 0; k < INPUTS; k++) free(in[k]);
    for (int k = 0; k < RESULTS; k++) free(want[k]), free(out[k]);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void norms_and_means_of_every_example_take_no_arrays(void **state) {
    (void)state;
    compare(COT_F32, NULL);
    compare(COT_F64, NULL);
    test_verdict();
}

static void programs_without_passes_have_the_same_bits(void **state) {
    (void)state;
    compare(COT_F32, &(cot_compile_options){.plain = true});
    test_verdict();
}

/* Half of what the arrays would take is more than enough. */
static void so_memory_limits_that_arrays_would_pass_are_obeyed(void **state) {
    (void)state;
    compare(COT_F32, &(cot_compile_options){.memory_limit = (int64_t)BATCH * IN * OUT * 4 / 2});
    test_verdict();
}

static void reports_say_what_is_computed_where_it_is_reduced(void **state) {
    cot_type          types[INPUTS];
    cot_program_facts facts;
    char             *text = NULL;
    size_t            length = 0;
    FILE             *out = open_memstream(&text, &length);
    (void)state;
    for (int k = 0; k < INPUTS; k++) types[k] = type_of(k, COT_F32);
    cot_program *p = cot_compile(clipped, NULL, INPUTS, types, RESULTS, NULL);
    assert_int_equal(cot_program_report(p, out), COT_OK);
    assert_int_equal(cot_program_measure(p, &facts), COT_OK);
    fclose(out);
    const char *made = strstr(text, "\ncomputed where it is reduced:\n  over (24,96,256)\n    %");
    TEST_CHECK(made && strstr(made, " = sum(square(matmul(%"), "%s", text);
    TEST_CHECK(made && strstr(made, "  over (24,24576)\n    %") && strstr(made, " = sum(matmul(%"), "%s", text);
    int64_t arrays = (int64_t)BATCH * IN * OUT * 4; /* which three operations do without, once */
    TEST_CHECK(facts.fused_bytes >= arrays && facts.fused_bytes < 2 * arrays, "%lld bytes",
               (long long)facts.fused_bytes);
    free(text);
    cot_program_destroy(p);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_and_means_of_every_example_take_no_arrays),
        cmocka_unit_test(programs_without_passes_have_the_same_bits),
        cmocka_unit_test(reports_say_what_is_computed_where_it_is_reduced),
        cmocka_unit_test(so_memory_limits_that_arrays_would_pass_are_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
