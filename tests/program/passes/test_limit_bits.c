/* ctest: labels=threads */
/* Programs that keep as little as they can have every bit: random programs that compute again, and
 * the same where nothing may be done twice, so that all goes to a file. */
#include "random_program.h"
#include "backend/cpu/table/cpu.h"
#include "base/parallel.h"
#include "program/limit/again.h"
#include "program/plan.h"

/* The program within a budget of no bytes; all_once: each operation is done once. */
static cot__program *tightest(const cot__program *p, bool all_once) {
    heard             h = {0};
    cot__caller       caller = {"test", &h, hear_error, hear_note, NULL};
    cot__pass_options o = {.caller = &caller, .backend = &cot__cpu_backend};
    cot__plan         plan;
    cot__units        units;
    bool              too_long;
    assert_true(cot__plan_open(&plan, p, &cot__cpu_backend, NULL, NULL, true, &caller));
    assert_true(cot__units_open(&units, &plan, NULL, &caller));
    for (uint32_t k = 0; k < units.count; k++) units.unit[k].once |= all_once;
    cot__program *made = cot__compute_again(&units, 0, true, &o, &too_long);
    cot__units_close(&units);
    cot__plan_close(&plan);
    if (!made) return assert_true(too_long), NULL;
    cot__program *lean = cot__pass_dead(made, &o);
    cot__program_release(made);
    assert_legal(lean);
    return lean;
}

static int fetches_in(const cot__program *p) {
    int n = 0;
    for (uint32_t k = 0; k < p->operations; k++) n += cot__is_fetch(p, k);
    return n;
}

/* Twice, since the second run finds what the first has left in the file. */
static result run_spilling(const cot__program *p, void *const *in) {
    heard       h = {0};
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__lent   lent = {.spill = P_tmpdir};
    result      z = {.outputs = p->outputs};
    cot__run   *r = cot__run_create_with(p, &cot__cpu_backend, NULL, NULL, &lent, &caller);
    assert_non_null(r);
    for (uint32_t k = 0; k < p->outputs; k++) {
        z.bytes[k] = bytes_at(p, p->output[k]);
        z.dtype[k] = cot__value_view(p, p->output[k]).dtype;
        z.out[k] = malloc(z.bytes[k] + 1);
    }
    for (int k = 0; k < 2; k++) z.ok = cot__run_go(r, (const void *const *)in, z.out);
    snprintf(z.text, sizeof z.text, "%s", cot__run_message(r));
    cot__run_destroy(r);
    return z;
}

/* Without a folder a fetch is a copy. How many there are. */
static int check(uint64_t seed, bool all_once) {
    void         *in[4];
    cot__program *p = random_program_of(seed, true, 40, NULL), *small = tightest(p, all_once);
    int           fetches = small ? fetches_in(small) : 0;
    fill_inputs(p, seed, in);
    if (small) {
        result want = run_program(p, in, true), got = run_spilling(small, in), copied = run_program(small, in, true);
        if (!same_result(&want, &got)) test_note("seed %llu: another result", (unsigned long long)seed);
        if (!same_result(&want, &copied)) test_note("seed %llu: copies give another", (unsigned long long)seed);
        free_result(&want), free_result(&got), free_result(&copied);
    }
    for (uint32_t k = 0; k < p->inputs; k++) free(in[k]);
    cot__program_release(p);
    cot__program_release(small);
    return fetches;
}

static void random_programs_keep_every_bit(void **state) {
    (void)state;
    int     fetches = 0, seeds = test_small() ? 40 : 400;
    int64_t usual = cot__grain;
    cot__grain = 1;
    cot_set_threads(2);
    for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++) {
        check(seed, false);
        fetches += check(seed, true);
    }
    cot__grain = usual;
    cot_set_threads(0);
    TEST_CHECK(fetches > seeds / 2, "%d fetches", fetches);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_keep_every_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
