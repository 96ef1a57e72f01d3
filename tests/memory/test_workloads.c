/* Workloads of bench/workloads, as they are, under the limit that cot_tape_memory tells before a
 * sweep: the limit holds, and two steps leave the same weights to the bit. */
#include "memory/memory.h"
#include "support/tape_test.h"
#include "workloads/workloads.h"

enum { STEPS = 2 };

typedef struct result {
    int64_t peak, replayed;
    size_t  bytes;
    char   *weights; /* the elements of all leaves, one behind the other */
    double  loss[STEPS];
} result;

static cot_tape *tape_of(void *state) { return *(cot_tape **)state; }

static void run_steps(const recorded *w, int64_t limit, result *r) {
    void     *state = w->make();
    cot_tape *t = tape_of(state);
    memset(r, 0, sizeof *r);
    assert_int_equal(cot_tape_set_memory_limit(t, limit), COT_OK);
    for (int k = 0; k < STEPS; k++) r->loss[k] = w->step(state);
    assert_ok(t);
    for (uint32_t k = 0; k < t->leaves.count; k++) {
        const cot__storage *s = t->nodes[t->leaves.list[k]].value.tensor->storage;
        r->weights = must(realloc(r->weights, r->bytes + s->bytes));
        memcpy(r->weights + r->bytes, s->data, s->bytes);
        r->bytes += s->bytes;
    }
    r->peak = cot_tape_peak_bytes(t);
    r->replayed = t->memory.replayed;
    w->destroy(state);
}

static int64_t least_of_loss(const recorded *w) {
    void      *state = w->make();
    cot_memory told;
    w->loss(state);
    assert_int_equal(cot_tape_memory(tape_of(state), &told, NULL), COT_OK);
    w->destroy(state);
    return told.least;
}

static void holds_at_least(const recorded *w) {
    result  whole, less;
    int64_t least = least_of_loss(w);
    run_steps(w, 0, &whole);
    run_steps(w, least, &less);
    if (getenv("COT_TEST_TELL"))
        fprintf(stderr, "%s: peak %lld, least %lld, %lld operations again\n", w->name, (long long)whole.peak,
                (long long)least, (long long)less.replayed);
    assert_true(whole.bytes > 0);
    assert_int_equal(whole.bytes, less.bytes);
    assert_memory_equal(whole.weights, less.weights, whole.bytes);
    assert_memory_equal(whole.loss, less.loss, sizeof whole.loss);
    assert_true(less.peak <= least);
    assert_true(least <= whole.peak);
    free(whole.weights);
    free(less.weights);
}

static void mlp_keeps_to_the_least_that_is_told(void **state) {
    (void)state;
    holds_at_least(&mlp_recorded);
}
static void cnn_keeps_to_the_least_that_is_told(void **state) {
    (void)state;
    holds_at_least(&cnn_recorded);
}
static void gcn_cora_keeps_to_the_least_that_is_told(void **state) {
    (void)state;
    holds_at_least(&gcn_recorded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mlp_keeps_to_the_least_that_is_told),
        cmocka_unit_test(cnn_keeps_to_the_least_that_is_told),
        cmocka_unit_test(gcn_cora_keeps_to_the_least_that_is_told),
    };
    return cmocka_run_group_tests_name("workloads", tests, NULL, NULL);
}
