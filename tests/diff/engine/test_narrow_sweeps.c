/* A sweep in numbers and a recorded derivative agree to the bit in every float dtype, for every
 * sample: sums and rules round to 16 bits at the same places. A zero may have another sign. No
 * sample is passed over without a word. */
/* ctest: timeout=120 */
#include "samples/sample_programs.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compared;

static void compare(const test_function *f, cot_dtype dtype, cot_var x, cot_var recorded) {
    int64_t n = cot_size(x);
    double *got = malloc((size_t)n * sizeof *got + 8), *want = malloc((size_t)n * sizeof *want + 8);
    TEST_CHECK(cot_read_grad(x, want, n) == COT_OK && cot_read(recorded, got, n) == COT_OK, "%s, %s: %s", f->name,
               cot__dtype_name(dtype), cot_tape_message(x.tape));
    for (int64_t i = 0; i < n && cot_tape_status(x.tape) == COT_OK; i++, compared++)
        TEST_CHECK(got[i] == want[i] || (isnan(got[i]) && isnan(want[i])), "%s, %s: element %d is %.9g, not %.9g",
                   f->name, cot__dtype_name(dtype), (int)i, got[i], want[i]);
    free(got);
    free(want);
}

/* An operation of linear algebra that is given no 16 bits, because a public function casts before,
 * is refused there by its record; samples that record it so are compared in f64 and f32 alone. */
static bool takes_no_16_bits(const cot_tape *t, cot_dtype dtype) {
    bool narrow = dtype == COT_BF16 || dtype == COT_F16;
    return narrow && strstr(cot_tape_message(t), "not f64 or f32; this is no legal operation");
}

static void sweep_both_ways(const test_function *f, cot_dtype dtype) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], grads[TEST_MAX_INPUTS];
    leaves_of(t, f, dtype, xs);
    cot_var y = loss(f->f(f->n, xs, f->user));
    if (takes_no_16_bits(t, dtype)) {
        cot_tape_destroy(t);
        return;
    }
    TEST_CHECK(cot_backward(y) == COT_OK && cot_grad_of(y, f->n, xs, grads) == COT_OK, "%s, %s: %s", f->name,
               cot__dtype_name(dtype), cot_tape_message(t));
    for (int k = 0; k < f->n && cot_tape_status(t) == COT_OK; k++) compare(f, dtype, xs[k], grads[k]);
    cot_tape_destroy(t);
}

static void every_sample_has_one_gradient_in_every_dtype(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    (void)state;
    for (int d = 0; d < TEST_COUNT(dtypes); d++) {
        compared = 0;
        for (int k = 0; k < TEST_COUNT(samples); k++) {
            test_function f = function_of(&samples[k], k, 0);
            sweep_both_ways(&f, dtypes[d]);
        }
        assert_true(compared > 1000);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_sample_has_one_gradient_in_every_dtype)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
