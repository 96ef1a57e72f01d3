/* Every sample with its gradient: running it takes no memory. With each allocation of compiling it
 * and of making a run failing once there is no program, or no run, and that is told, or there are
 * both and the bits are those of ever; nothing is lost. */
/* ctest: timeout=300 */
#include "samples/sample_programs.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <math.h>
#include <string.h>

enum { BYTES = 1 << 13 };

typedef struct results { int m; int64_t bytes[SAMPLE_OUTPUTS]; char of[SAMPLE_OUTPUTS][BYTES]; } results;

static bool run(const test_function *f, const cot_program *p, cot_run *r, results *z) {
    const void *in[TEST_MAX_INPUTS];
    void       *out[SAMPLE_OUTPUTS];
    z->m = cot_program_outputs(p);
    for (int k = 0; k < f->n; k++) in[k] = f->in[k].data;
    for (int k = 0; k < z->m; k++) {
        cot_type type = cot_program_output_type(p, k);
        z->bytes[k] = cot__dtype_size(type.dtype);
        for (int i = 0; i < type.shape.ndim; i++) z->bytes[k] *= type.shape.dim[i];
        if (z->bytes[k] > BYTES) return false;
        memset(z->of[k], 0, BYTES);
        out[k] = z->of[k];
    }
    return cot_program_run(r, in, out) == COT_OK;
}

/* What it gives where no memory is missing, and how often some is asked for until it is run. False:
 * it is no program. */
static bool run_whole(test_function *f, const cot_type *types, results *z, long *requests) {
    counting     c = {0};
    cot_program *p = cot_compile(with_gradient, f, f->n, types, 2 + f->n,
                                 &(cot_compile_options){.allocator = {counting_alloc, &c}});
    cot_run     *r = cot_run_create(p);
    *requests = c.requests;
    bool ok = cot_run_status(r) == COT_OK && run(f, p, r, z);
    TEST_CHECK(!ok || c.requests == *requests, "%s: a run has asked for memory", f->name);
    cot_run_destroy(r);
    cot_program_destroy(p);
    return ok;
}

static void run_without(long at, test_function *f, const cot_type *types, const results *want) {
    static results z;
    counting       c = {.fail_at = at, .fail_for_good = at % 2};
    cot_program   *p = cot_compile(with_gradient, f, f->n, types, 2 + f->n,
                                   &(cot_compile_options){.allocator = {counting_alloc, &c}});
    cot_run       *r = cot_run_create(p);
    cot_status     s = cot_run_status(r);
    TEST_CHECK(s == COT_OK || s == COT_MEMORY, "%s, allocation %ld: %s", f->name, at, cot_run_message(r));
    bool ok = s != COT_OK || run(f, p, r, &z);
    TEST_CHECK(ok, "%s, allocation %ld: the run fails: %s", f->name, at, cot_run_message(r));
    for (int k = 0; ok && s == COT_OK && k < want->m; k++)
        TEST_CHECK(memcmp(z.of[k], want->of[k], BYTES) == 0, "%s, allocation %ld: other bits in output %d", f->name, at,
                   k);
    cot_run_destroy(r);
    cot_program_destroy(p);
    TEST_CHECK(c.live == 0, "%s, allocation %ld: %ld blocks are lost", f->name, at, c.live);
}

static void every_allocation_of_every_sample_may_fail(void **state) {
    static results want;
    int            programs = 0;
    long           requests, all = 0;
    (void)state;
    for (int k = 0; k < TEST_COUNT(samples); k++) {
        test_function f = function_of(&samples[k], k, 0);
        cot_type      types[TEST_MAX_INPUTS];
        for (int i = 0; i < f.n; i++) types[i] = (cot_type){COT_F64, f.in[i].shape};
        if (!run_whole(&f, types, &want, &requests)) continue;
        programs++;
        for (long at = 1; at <= requests; at += test_small() ? 17 : 1, all++) run_without(at, &f, types, &want);
    }
    print_message("%d programs, %ld allocations\n", programs, all);
    assert_true(programs > TEST_COUNT(samples) * 9 / 10);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_of_every_sample_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
