/* Every sample called as a program on a tape, and swept back through: with an allocation of the
 * call or of its derivative failing, once or all from there on, the tape says so or the gradients
 * have the bits of ever; the same program then does the next call, and nothing is lost. Of each
 * sample every ninth is tried, since all 580,000 take some minutes (COT_TEST_EVERY=1). */
/* ctest: timeout=300 */
#include "samples/sample_programs.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <string.h>

typedef struct gradients { double of[TEST_MAX_INPUTS][TEST_MAX_SIZE]; } gradients;

static int value_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    return 0;
}

static cot_program *compile(test_function *f, counting *c) {
    cot_type types[TEST_MAX_INPUTS];
    for (int i = 0; i < f->n; i++) types[i] = (cot_type){COT_F64, f->in[i].shape};
    return cot_compile(value_of, f, f->n, types, 1, &(cot_compile_options){.allocator = {counting_alloc, c}});
}

/* The status of the tape in the end. */
static cot_status sweep(const test_function *f, cot_program *p, counting *c, gradients *z) {
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, c}});
    cot_var   xs[TEST_MAX_INPUTS], y;
    memset(z, 0, sizeof *z);
    if (!t) return COT_MEMORY;
    for (int k = 0; k < f->n; k++) xs[k] = cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data);
    cot_program_call(p, f->n, xs, 1, &y);
    cot_backward(loss(y));
    for (int k = 0; k < f->n; k++) cot_read(cot_grad(xs[k]), z->of[k], cot_size(xs[k]));
    cot_status s = cot_tape_status(t);
    cot_tape_destroy(t);
    return s;
}

/* How often memory is asked for once there is a program. False: there is none, or its sweep is
 * refused. */
static bool sweep_whole(test_function *f, gradients *z, long *before, long *requests) {
    counting     c = {0};
    cot_program *p = compile(f, &c);
    *before = c.requests;
    bool ok = cot_program_status(p) == COT_OK && sweep(f, p, &c, z) == COT_OK;
    *requests = c.requests;
    cot_program_destroy(p);
    return ok;
}

static void sweep_without(long at, test_function *f, const gradients *want) {
    static gradients got;
    counting         c = {0};
    cot_program     *p = compile(f, &c);
    c.fail_at = at;
    c.fail_for_good = at % 2;
    cot_status s = sweep(f, p, &c, &got);
    TEST_CHECK(s == COT_MEMORY || s == COT_OK, "%s, allocation %ld: status %d", f->name, at, (int)s);
    TEST_CHECK(s != COT_OK || memcmp(&got, want, sizeof got) == 0, "%s, allocation %ld: other bits", f->name, at);
    c.fail_at = 0;
    c.fail_for_good = false;
    s = sweep(f, p, &c, &got);
    TEST_CHECK(s == COT_OK, "%s, after allocation %ld: status %d", f->name, at, (int)s);
    TEST_CHECK(s != COT_OK || memcmp(&got, want, sizeof got) == 0, "%s, after allocation %ld: other bits", f->name, at);
    cot_program_destroy(p);
    TEST_CHECK(c.live == 0 && c.blocks == 0 && !c.wrong_size, "%s, allocation %ld: %zu blocks are lost", f->name, at,
               c.blocks);
}

static void allocations_of_calling_every_sample_may_fail(void **state) {
    static gradients want;
    const char      *every = getenv("COT_TEST_EVERY");
    int              programs = 0, step = every && atoi(every) > 0 ? atoi(every) : test_small() ? 79 : 9;
    long             before, requests, all = 0;
    (void)state;
    for (int k = 0; k < TEST_COUNT(samples); k++) {
        test_function f = function_of(&samples[k], k, 0);
        if (!sweep_whole(&f, &want, &before, &requests)) continue;
        programs++;
        for (long at = before + 1 + k % step; at <= requests; at += step, all++) sweep_without(at, &f, &want);
    }
    print_message("%d programs, %ld allocations\n", programs, all);
    assert_true(programs > TEST_COUNT(samples) * 9 / 10);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations_of_calling_every_sample_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
