/* group_test.h: programs told by their groups, and run with groups and without. */
#ifndef GROUP_TEST_H
#define GROUP_TEST_H

#include "random_program.h"

#include "base/parallel.h"
#include "program/fusion.h"
#include "program/run.h"

/* Operations on rows of any size, or of those that are worth it. */
static int64_t    usual_size;
static inline int of_any_size(void **state) {
    return (void)state, usual_size = cot__small_rows, cot__small_rows = 1, 0;
}
static inline int of_usual_size(void **state) { return (void)state, cot__small_rows = usual_size, 0; }

#define SOFTMAX(d, x) op(d, OP_softmax, X(x), .ints = 1, .at = {1})
#define NORM(d, which, keeps, ...)                                                                                     \
    op(d, which, X(__VA_ARGS__), .ints = 3, .at = {1, (which) == OP_rms_norm, keeps}, .attr_number = 1e-5)

/* Writes what is to be known of operation k behind its name. */
typedef void group_teller(cot__text *to, const cot__fusion *f, uint32_t k, uint32_t result);

static inline void open_groups(const cot__program *p, cot__fusion *f) {
    heard       h;
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    assert_true(cot__fusion_open(f, p, NULL, NULL, &caller));
}

/* One line for each operation. */
static inline void describe_groups(const cot__program *p, group_teller *tell, char *text, size_t size) {
    cot__fusion f;
    cot__text   to = cot__text_buffer(text, size);
    open_groups(p, &f);
    for (uint32_t k = 0; k < p->operations; k++) {
        cot__putf(&to, "%%%u %s", p->operation[k].result, cot__op_of(p->operation[k].op)->name);
        tell(&to, &f, k, p->operation[k].result);
        cot__put(&to, "\n");
    }
    cot__fusion_close(&f);
}

static inline void groups_are_told(draft *d, group_teller *tell, const char *text) {
    char          got[4096];
    cot__program *p = draft_close(d);
    describe_groups(p, tell, got, sizeof got);
    assert_string_equal(got, text);
    cot__program_release(p);
}

/* Runs the program with groups, by 1, 2 and 7 threads, and compares with operations one by one. */
static inline void groups_keep_bits(const cot__program *p, void **in, uint64_t seed) {
    static const int threads[] = {1, 2, 7};
    int64_t          usual = cot__grain;
    result           want = run_program(p, in, false);
    for (int k = 0; k < TEST_COUNT(threads); k++) {
        cot_set_threads(threads[k]);
        cot__grain = k ? 1 : usual;
        result got = run_program(p, in, true);
        TEST_CHECK(same_result(&want, &got), "seed %d, %d threads: other bits", (int)seed, threads[k]);
        free_result(&got);
    }
    cot_set_threads(0);
    cot__grain = usual;
    free_result(&want);
    for (uint32_t k = 0; k < p->inputs; k++) free(in[k]);
}

#endif
