/* A sweep in numbers and a recorded derivative agree to the bit in every float dtype, for every
 * sample: sums and rules round to 16 bits at the same places. A zero may have another sign. */
/* ctest: timeout=120 */
#include "samples/sample_programs.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <math.h>
#include <stdlib.h>

static int compared;

static void compare(const test_function *f, cot_dtype dtype, cot_var recorded, const double *want) {
    int64_t n = cot_size(recorded);
    double *got = malloc((size_t)n * sizeof *got + 8);
    if (cot_read(recorded, got, n) == COT_OK)
        for (int64_t i = 0; i < n; i++, compared++)
            TEST_CHECK(got[i] == want[i] || (isnan(got[i]) && isnan(want[i])), "%s, %s: element %d is %.9g, not %.9g",
                       f->name, cot__dtype_name(dtype), (int)i, got[i], want[i]);
    free(got);
}

static void sweep_both_ways(const test_function *f, cot_dtype dtype) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], grads[TEST_MAX_INPUTS];
    leaves_of(t, f, dtype, xs);
    cot_var y = loss(f->f(f->n, xs, f->user));
    if (cot_requires_grad(y) && cot_backward(y) == COT_OK && cot_grad_of(y, f->n, xs, grads) == COT_OK)
        for (int k = 0; k < f->n; k++) {
            int64_t n = cot_size(xs[k]);
            double *want = malloc((size_t)n * sizeof *want + 8);
            if (cot_read_grad(xs[k], want, n) == COT_OK) compare(f, dtype, grads[k], want);
            free(want);
        }
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
