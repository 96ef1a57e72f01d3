/* Random programs as exported C, compiled with strict warnings: the bits of the executor. They hold
 * dtypes, views and orders of operations that nobody has thought of. */
/* ctest: timeout=300 plain-only */
#define _GNU_SOURCE /* mkdtemp, open_memstream */
#include "program/passes/random_program.h"
#include "support/emit_test.h"

enum { PROGRAMS = 150 };

/* False: a check refuses its data, or it has an operation that cannot be exported. */
static bool add(emitted *e, uint64_t seed) {
    void         *in[8];
    emit_refusal  why = {""};
    cot__program *p = random_program(seed, false, NULL);
    fill_inputs(p, seed, in);
    result z = run_program(p, in, true);
    bool   ok = z.ok && emitted_add(e, p, false, in, z.out, &why);
    TEST_CHECK(ok || !z.ok || strstr(why.text, "cannot be exported"), "seed %d: %s", (int)seed, why.text);
    for (uint32_t k = 0; k < p->inputs; k++) free(in[k]);
    free_result(&z);
    cot__program_release(p);
    return ok;
}

static void random_programs_have_the_executors_bits(void **state) {
    (void)state;
    emitted e;
    int     exported = 0;
    emitted_begin(&e);
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) exported += add(&e, seed);
    emitted_end(&e);
    emitted_compare(&e, "gcc -O1", "");
    if (!test_small() && emit_has("clang")) emitted_compare(&e, "clang -O1", "");
    emitted_close(&e);
    print_message("%d of %d programs\n", exported, PROGRAMS);
    assert_true(exported > PROGRAMS / 3);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_have_the_executors_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
