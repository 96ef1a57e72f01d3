/* Passes keep every bit: random programs before and after each pass, and after all of them, on 1, 2
 * and 7 threads; the same outputs, and the same words where a check of data refuses something. */
/* ctest: timeout=300 */
#include "random_program.h"

#include "base/parallel.h"

static void note_difference(const cot__program *p, const cot__program *q, uint64_t seed, const char *what) {
    static bool once;
    char        before[8192], later[8192];
    test_note("seed %llu: %s changes bits", (unsigned long long)seed, what);
    if (once) return;
    once = true;
    text_of(p, before, sizeof before);
    text_of(q, later, sizeof later);
    print_message("%s\nbecame\n\n%s", before, later);
}

/* No pass, but groups: what was run alone runs together. */
static cot__program *keep_all(const cot__program *p, const cot__pass_options *o) {
    (void)o;
    return cot__program_share(p);
}

static uint32_t found[COT__PASS_COUNT + 1]; /* how often each pass did something */

static void compare_pass(const cot__program *p, uint64_t seed, int number, const char *name, cot__pass *pass,
                         void *const *in, const result *want) {
    static const int threads[] = {1, 2, 7};
    cot__program    *q = after(p, pass);
    int64_t          usual = cot__grain;
    found[number] += q != p;
    for (int k = 0; k < TEST_COUNT(threads) && (q != p || pass == keep_all); k++) {
        cot_set_threads(threads[k]);
        cot__grain = k ? 1 : usual; /* cut into as many parts as there can be */
        result got = run_program(q, in, true);
        if (!same_result(want, &got)) note_difference(p, q, seed, name);
        free_result(&got);
    }
    cot_set_threads(0);
    cot__grain = usual;
    cot__program_release(q);
}

static void compare_program(uint64_t seed, bool large) {
    void         *in[4];
    cot__program *p = random_program(seed, large, NULL);
    assert_legal(p);
    fill_inputs(p, seed, in);
    result want = run_program(p, in, false);
    compare_pass(p, seed, COT__PASS_COUNT, "running in groups", keep_all, in, &want);
#define COMPARE(name) compare_pass(p, seed, COT__PASS_##name, #name, cot__pass_##name, in, &want);
    COT__PASSES(COMPARE)
    compare_pass(p, seed, COT__PASS_COUNT, "all", cot__optimise, in, &want);
    free_result(&want);
    for (uint32_t k = 0; k < p->inputs; k++) free(in[k]);
    cot__program_release(p);
}

static void random_programs_keep_every_bit(void **state) {
    int n = test_small() ? 200 : 2000;
    (void)state;
    for (int k = 0; k < n; k++) compare_program((uint64_t)k, false);
    /* they have neither; tests/compile/functions/test_compile_loops.c has */
    found[COT__PASS_bodies] = found[COT__PASS_loops] = 1;
    found[COT__PASS_fast] = 1; /* it does nothing unless asked; test_pass_fast.c asks */
    found[COT__PASS_remake] = 1; /* large products alone, but in test_pass_remake.c */
    /* a few in a thousand have a product that is read turned */
    if (test_small()) found[COT__PASS_turns] = 1;
#define FOUND(name) TEST_CHECK(found[COT__PASS_##name] > 0, "no random program has work for " #name);
    COT__PASSES(FOUND)
    test_verdict();
}

static void arrays_of_several_blocks_keep_every_bit(void **state) {
    int n = test_small() ? 50 : 600;
    (void)state;
    for (int k = 0; k < n; k++) compare_program(1000 + (uint64_t)k, true);
    test_verdict();
}

/* From each dtype through each other to a third: what rounds, saturates or wraps does. */
static void two_casts_keep_every_bit(void **state) {
    enum { N = COT_DTYPE_COUNT };
    (void)state;
    for (int k = 0; k < N * N * N; k++) {
        draft d;
        void *in[1];
        draft_open(&d, NULL);
        uint32_t x = input(&d, (cot_dtype)(k / (N * N)), SHAPE(300));
        uint32_t y = op(&d, OP_cast, X(x), .asked = {(cot_dtype)(k / N % N), {0}});
        output(&d, op(&d, OP_cast, X(y), .asked = {(cot_dtype)(k % N), {0}}));
        cot__program *p = draft_close(&d);
        fill_inputs(p, 1, in);
        result want = run_program(p, in, false);
        compare_pass(p, (uint64_t)k, COT__PASS_views, "views", cot__pass_views, in, &want);
        free_result(&want);
        free(in[0]);
        cot__program_release(p);
    }
    test_verdict();
}

static void no_allocation_that_fails_spoils_a_program(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        cot__program *p = random_program(seed, false, NULL);
        never_spoils(p, cot__optimise);
        cot__program_release(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_keep_every_bit),
        cmocka_unit_test(arrays_of_several_blocks_keep_every_bit),
        cmocka_unit_test(two_casts_keep_every_bit),
        cmocka_unit_test(no_allocation_that_fails_spoils_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
