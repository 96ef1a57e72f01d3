/* ctest: labels=threads */
/* Programs that keep less than they would have every bit: random programs that compute again, and
 * the same where nothing may be done twice, so that all goes to a file. Some have numbers, in rows
 * of instructions, between their arrays. */
#include "random_program.h"
#include "backend/cpu/table/cpu.h"
#include "base/parallel.h"
#include "program/limit/again.h"
#include "program/limit/limit.h"
#include "program/plan.h"
#include "program/run_parts.h"

/* A number goes through all of it, two instructions between any two other operations. */
static cot__program *random_chain(uint64_t seed) {
    draft   d;
    growing g = {.d = &d, .r = {seed}, .large = true};
    draft_open(&d, NULL);
    uint32_t s = input(&d, COT_F32, NO_AXES);
    keep(&g, input(&d, any_dtype(&g), any_shape(&g)));
    for (int k = 0; k < 40 && g.values < MAX_VALUES - 16; k++) {
        s = op(&d, OP_sin, X(op(&d, OP_mul, X(s, NUM), .number = 0.9 + 0.01 * k)));
        keep(&g, grow(&g));
    }
    for (int k = 0; k < 3; k++) output(&d, any(&g));
    output(&d, s);
    return draft_close(&d);
}

/* How much of the arena it may have, in quarters; all_once: each operation is done once. */
typedef struct terms { bool chain, all_once; int quarters; } terms;

/* The program within its budget. */
static cot__program *tight(const cot__program *p, const terms *t) {
    heard             h = {0};
    cot__caller       caller = {"test", &h, hear_error, hear_note, NULL};
    cot__pass_options o = {.caller = &caller, .backend = &cot__cpu_backend};
    cot__plan         plan;
    cot__units        units;
    bool              too_long;
    assert_true(cot__plan_open(&plan, p, &cot__cpu_backend, NULL, NULL, true, &caller));
    assert_true(cot__units_open(&units, &plan, NULL, &caller));
    for (uint32_t k = 0; k < units.count; k++) units.unit[k].once |= t->all_once;
    cot__program *made = cot__compute_again(&units, plan.bytes / 4 * t->quarters, true, &o, &too_long);
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

/* Each list of a run lies behind the other. */
static void assert_lists_have_room(const cot__run *r) {
    assert_true((const char *)(r->step + r->steps) <= (const char *)r->binding);
    assert_true((const char *)(r->binding + r->bindings) <= (const char *)r->base);
    assert_true((const char *)(r->scalar + r->scalars) <= (const char *)r->block_run);
}

/* Twice, since the second run finds what the first has left in the file. */
static result run_spilling(const cot__program *p, void *const *in) {
    heard       h = {0};
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__lent   lent = {.spill = P_tmpdir};
    result      z = {.outputs = p->outputs};
    cot__run   *r = cot__run_create_with(p, &cot__cpu_backend, NULL, NULL, &lent, &caller);
    assert_non_null(r);
    assert_lists_have_room(r);
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
static int check(uint64_t seed, terms t) {
    void         *in[4];
    cot__program *p = t.chain ? random_chain(seed) : random_program_of(seed, true, 40, NULL), *small = tight(p, &t);
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

/* chains: random programs have them. */
static void check_all(bool chains) {
    int     fetches = 0, seeds = test_small() ? 40 : chains ? 200 : 400;
    int64_t usual = cot__grain;
    cot__grain = 1;
    cot_set_threads(2);
    for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++) {
        check(seed, (terms){chains, false, 0});
        fetches += check(seed, (terms){chains, true, 0});
        check(seed, (terms){chains, seed % 2, 1 + (int)(seed / 2 % 3)});
    }
    cot__grain = usual;
    cot_set_threads(0);
    TEST_CHECK(fetches > seeds / 2, "%d fetches", fetches);
    test_verdict();
}

static void random_programs_keep_every_bit(void **state) {
    (void)state;
    check_all(false);
}
static void numbers_between_arrays_keep_every_bit(void **state) {
    (void)state;
    check_all(true);
}

/* Large outputs lie at the caller's under a limit, and others where they can: not for more bytes
 * than without. */
static void check_unlimited(uint64_t seed, bool chains) {
    heard              h = {0};
    cot__caller        caller = {"test", &h, hear_error, hear_note, NULL};
    cot__pass_options  passes = {.caller = &caller, .backend = &cot__cpu_backend};
    bool               donated[4] = {seed % 3 == 0, true, seed % 3 == 0, false};
    cot__lent          without = {.donated = seed % 2 ? donated : NULL}, lent = without;
    cot__program      *p = chains ? random_chain(seed) : random_program_of(seed, true, 40, NULL);
    cot__program      *runs = cot__optimise(p, &passes);
    cot__limit_options o = {.backend = &cot__cpu_backend, .lent = &lent, .apart = runs, .caller = &caller};
    cot__limit_way     how;
    int64_t            bytes;
    lent.outputs = true;
    assert_true(cot__run_measure(runs, &cot__cpu_backend, NULL, NULL, &without, &caller, &o.unlimited));
    o.bytes = o.unlimited;
    cot__program *kept = cot__limit(runs, &o, &how);
    lent.outputs = how.lends;
    if (kept) assert_true(cot__run_measure(kept, &cot__cpu_backend, NULL, NULL, &lent, &caller, &bytes));
    if (kept != runs || bytes > o.bytes)
        test_note("seed %llu: not within %lld bytes", (unsigned long long)seed, (long long)o.bytes);
    cot__program_release(p), cot__program_release(runs), cot__program_release(kept);
}

static void a_limit_that_runs_without_one_keep_to_is_no_limit(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (test_small() ? 100 : 1000); seed++)
        check_unlimited(seed, false), check_unlimited(seed, true);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_keep_every_bit),
        cmocka_unit_test(numbers_between_arrays_keep_every_bit),
        cmocka_unit_test(a_limit_that_runs_without_one_keep_to_is_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
