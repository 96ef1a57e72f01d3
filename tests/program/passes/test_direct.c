/* Large outputs are written where the caller wants them, and nobody can tell but by the clock:
 * whatever lies there, results are the same, and a run that is refused writes nothing. */
#include "random_program.h"

#include "base/parallel.h"
#include "program/plan.h"

enum { N = 3000 };

/* How many outputs of the program are direct. */
static uint32_t directs_of(const cot__program *p) {
    heard       h;
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__plan   plan;
    assert_true(cot__plan_open(&plan, p, &cot__cpu_backend, NULL, NULL, true, &caller));
    uint32_t count = plan.directs.count;
    cot__plan_close(&plan);
    return count;
}

static cot__run *run_of(const cot__program *p) {
    static heard       h;
    static cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__run          *r = cot__run_create(p, &cot__cpu_backend, NULL, NULL, &caller);
    assert_non_null(r);
    return r;
}

/* w - 0.01 g, over w: a step of an optimiser. */
static void a_step_is_written_over_the_parameters(void **state) {
    draft d;
    float w[N], g[N], want[N];
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F32, SHAPE(N)), b = input(&d, COT_F32, SHAPE(N));
    output(&d, op(&d, OP_sub, X(a, op(&d, OP_mul, X(NUM, b), .number = 0.01))));
    cot__program *p = draft_close(&d);
    cot__run     *r = run_of(p);
    for (int i = 0; i < N; i++) w[i] = (float)i, g[i] = (float)(i % 7), want[i] = w[i] - 0.01f * g[i];
    assert_int_equal(directs_of(p), 1);
    assert_true(cot__run_go(r, (const void *[]){w, g}, (void *[]){w}));
    assert_memory_equal(w, want, sizeof w);
    assert_ptr_equal(cot__run_output(r, 0).data, w); /* not a copy */
    cot__run_destroy(r);
    cot__program_release(p);
}

/* A check comes after what would be written. */
static void what_may_still_be_refused_is_not_written(void **state) {
    draft   d;
    float   x[N], z[N], y[2];
    int64_t index[2] = {0, N};
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F32, SHAPE(N)), i = input(&d, COT_I64, SHAPE(2)), e = op(&d, OP_exp, X(a));
    output(&d, e);
    output(&d, op(&d, OP_take, X(a, i), .ints = 1, .at = {0}));
    cot__program *p = draft_close(&d);
    cot__run     *r = run_of(p);
    for (int k = 0; k < N; k++) x[k] = 1, z[k] = 7;
    assert_int_equal(directs_of(p), 0);
    assert_false(cot__run_go(r, (const void *[]){x, index}, (void *[]){z, y}));
    for (int k = 0; k < N; k++) assert_true(z[k] == 7);
    cot__run_destroy(r);
    cot__program_release(p);
}

/* The gradient of an embedding asks again whether tokens are positions in its table: that was asked
 * before, of the same tokens and for the same table or a smaller one. */
static uint32_t directs_after(int64_t first, int64_t second, bool other, bool part) {
    draft d;
    draft_open(&d, NULL);
    uint32_t table = input(&d, COT_F32, SHAPE(first, 4)), wide = input(&d, COT_F32, SHAPE(second, 4));
    uint32_t i = input(&d, COT_I64, SHAPE(6)), k = input(&d, COT_I64, SHAPE(6));
    uint32_t asked = part ? op(&d, OP_slice, X(i), .ints = 5, .at = {0, 0, 3, 1, 0}) : i;
    output(&d, op(&d, OP_take, X(table, asked), .ints = 1, .at = {0}));
    output(&d, op(&d, OP_exp, X(wide)));
    output(&d, op(&d, OP_take, X(wide, other ? k : i), .ints = 1, .at = {0}));
    cot__program *p = draft_close(&d);
    uint32_t      count = directs_of(p);
    cot__program_release(p);
    return count;
}

static void what_was_asked_before_refuses_nothing(void **state) {
    (void)state;
    assert_int_equal(directs_after(N, N, false, false), 1);
    assert_int_equal(directs_after(N - 1, N, false, false), 1);
    assert_int_equal(directs_after(N + 1, N, false, false), 0);
    assert_int_equal(directs_after(N, N, true, false), 0);
    assert_int_equal(directs_after(N, N, false, true), 0);
}

/* ---- anywhere -------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Runs the program with inputs side by side in one buffer, and outputs anywhere in it, but not in
 * one another. */
static result run_overlapping(cot__run *run, const cot__program *p, void *const *in, dice *r) {
    result z = {.outputs = p->outputs};
    void  *inputs[4], *outputs[8];
    size_t room = 0, at = 0;
    for (uint32_t k = 0; k < p->outputs; k++) {
        z.bytes[k] = bytes_at(p, p->output[k]);
        z.dtype[k] = cot__value_view(p, p->output[k]).dtype;
        z.out[k] = malloc(z.bytes[k] + 1);
        room += rounded(z.bytes[k]) + 192;
    }
    for (uint32_t k = 0; k < p->inputs; k++) room += rounded(bytes_at(p, p->input[k]));
    char *buffer = malloc(room + 64);
    for (uint32_t k = 0; k < p->inputs; k++) {
        inputs[k] = buffer + at;
        memcpy(inputs[k], in[k], bytes_at(p, p->input[k]));
        at += rounded(bytes_at(p, p->input[k]));
    }
    at = 0;
    for (uint32_t k = 0; k < p->outputs; k++) {
        at += below(r, 2) ? 0 : 8 * (size_t)below(r, 24);
        outputs[k] = buffer + at;
        at += rounded(z.bytes[k]);
    }
    z.ok = cot__run_go(run, (const void *const *)inputs, outputs);
    snprintf(z.text, sizeof z.text, "%s", cot__run_message(run));
    for (uint32_t k = 0; z.ok && k < p->outputs; k++) memcpy(z.out[k], outputs[k], z.bytes[k]);
    for (uint32_t k = 0; !z.ok && k < p->inputs; k++)
        if (memcmp(inputs[k], in[k], bytes_at(p, p->input[k])) != 0) test_note("a refused run wrote over input %u", k);
    free(buffer);
    return z;
}

/* A run remembers what it found out about the places of the run before. */
static void outputs_may_lie_anywhere(void **state) {
    dice    r = {5};
    int64_t usual = cot__grain;
    int     direct = 0;
    (void)state;
    cot__grain = 1;
    cot_set_threads(2);
    for (uint64_t seed = 0; seed < (test_small() ? 100 : 1000); seed++) {
        void         *in[4];
        cot__program *p = random_program(seed, true, NULL);
        fill_inputs(p, seed, in);
        result    want = run_program(p, in, false);
        cot__run *run = run_of(p);
        for (int turn = 0; turn < 3; turn++) {
            result got = run_overlapping(run, p, in, &r);
            if (!same_result(&want, &got))
                test_note("seed %llu, turn %d: another result", (unsigned long long)seed, turn);
            free_result(&got);
        }
        direct += directs_of(p) > 0;
        cot__run_destroy(run);
        free_result(&want);
        for (uint32_t k = 0; k < p->inputs; k++) free(in[k]);
        cot__program_release(p);
    }
    cot__grain = usual;
    cot_set_threads(0);
    TEST_CHECK(direct > 20, "%d programs have direct outputs", direct);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_written_over_the_parameters),
        cmocka_unit_test(what_may_still_be_refused_is_not_written),
        cmocka_unit_test(what_was_asked_before_refuses_nothing),
        cmocka_unit_test(outputs_may_lie_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
