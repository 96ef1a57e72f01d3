/* Donated inputs: large outputs are made in their memory, so that a training step holds its
 * parameters once; results have the bits of a run that writes over nothing, wherever inputs and
 * outputs lie; what a check refuses has been written over nowhere. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <stdlib.h>
#include <string.h>

enum { N = 64, ELEMENTS = N * N, BYTES = ELEMENTS * 4, INPUTS = 5 };

/* w, m, x, the rate, a position. */
static const cot_type types[INPUTS] = {{COT_F32, {2, {N, N}}}, {COT_F32, {2, {N, N}}}, {COT_F32, {2, {N, N}}},
                                       {COT_F32, {0, {0}}}, {COT_I64, {1, {1}}}};

BODY(loss) {
    UNUSED;
    ys[0] = cot_mean(cot_square(cot_tanh(cot_matmul(xs[0], xs[1]))), COT_ALL);
    return 0;
}

/* A step with momentum: the loss, a row of w, then the new w and m. */
BODY(descent) {
    cot_var g[2];
    UNUSED;
    cot_value_and_grad(loss, NULL, 2, (cot_var[]){xs[0], xs[2]}, &ys[0], g);
    ys[1] = cot_take(xs[0], xs[4], 0);
    ys[3] = cot_add(cot_mul(xs[1], 0.9), g[0]);
    ys[2] = cot_sub(xs[0], cot_mul(xs[3], ys[3]));
    return cot_tape_status(xs[0].tape) == COT_OK ? 0 : 1;
}

typedef struct arrays { float w[ELEMENTS], m[ELEMENTS], x[ELEMENTS], rate, loss, row[N]; int64_t at; } arrays;

static void fill(arrays *a) {
    for (int i = 0; i < ELEMENTS; i++)
        a->w[i] = 0.1f * (float)sin(i), a->m[i] = 0.2f * (float)cos(i), a->x[i] = (float)sin(3 * i + 1);
    a->rate = 0.1f, a->at = 3;
}

static const cot_compile_options donating = {.donate = (const int[]){0, 1}, .donations = 2};

static cot_run *run_of(const cot_compile_options *o) {
    cot_program *p = cot_compile(descent, NULL, INPUTS, types, 4, o);
    cot_run     *r = cot_run_create(p);
    assert_string_equal(cot_run_message(r), "");
    cot_program_destroy(p);
    return r;
}

static cot_status step(cot_run *r, arrays *a, float *w, float *m) {
    return cot_program_run(r, (const void *[]){a->w, a->m, a->x, &a->rate, &a->at},
                           (void *[]){&a->loss, a->row, w, m});
}

/* Parameters that shrink, all at once. */
BODY(decay) {
    UNUSED;
    for (int k = 0; k < 3; k++) ys[k] = cot_mul(cot_tanh(xs[k]), xs[3]);
    return 0;
}

static void tells(cot_program *p, const char *words) {
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    assert_int_equal(cot_program_report(p, out), COT_OK);
    fclose(out);
    if (!strstr(text, words)) fail_msg("%s\nlacks: %s", text, words);
    free(text);
}

static void donated_inputs_take_the_place_of_memory(void **state) {
    (void)state;
    cot_compile_options o = {.donate = (const int[]){0, 1, 2}, .donations = 3};
    cot_program        *p = cot_compile(decay, NULL, 4, types, 3, &o), *q = cot_compile(decay, NULL, 4, types, 3, NULL);
    cot_run            *r = cot_run_create(p), *plain = cot_run_create(q);
    cot_program_facts   f, g;
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    assert_int_equal(cot_program_measure(q, &g), COT_OK);
    assert_true(g.run_bytes - f.run_bytes >= 2 * BYTES);
    tells(p, "donated: input 0 takes output 0\ndonated: input 1 takes output 1\ndonated: input 2 takes output 2\n");
    tells(q, "bytes:\n");
    assert_int_equal(f.run_bytes, cot_run_bytes(r));
    assert_int_equal(g.run_bytes, cot_run_bytes(plain));
    cot_run_destroy(r), cot_run_destroy(plain);
    cot_program_destroy(p), cot_program_destroy(q);
}

BODY(product_of_two) {
    UNUSED;
    ys[0] = cot_mul(xs[0], xs[1]);
    return 0;
}
BODY(small_and_large) {
    UNUSED;
    ys[0] = cot_tanh(xs[0]);
    ys[1] = cot_sum(xs[1], COT_ALL);
    return 0;
}
BODY(read_again) {
    UNUSED;
    ys[0] = cot_tanh(xs[0]);
    ys[1] = cot_matmul(ys[0], xs[0]);
    return 0;
}

BODY(after_a_softmax) {
    UNUSED;
    ys[0] = cot_exp(cot_mul(cot_add(xs[0], cot_softmax(xs[1], 1)), -0.1));
    return 0;
}

/* An input in which nothing is made saves no memory, and the report says why; outputs may lie there
 * all the same. */
static void a_donation_that_saves_nothing_is_told(void **state) {
    (void)state;
    cot_compile_options o = {.donate = (const int[]){0, 1}, .donations = 2};
    const cot_type      small[2] = {{COT_F32, {1, {N}}}, types[0]};
    cot_program        *p = cot_compile(product_of_two, NULL, 2, types, 1, &o);
    tells(p, "donated: input 0 takes output 0\n"
             "donated: input 1 saves no memory: output 0 could be made there, and takes input 0\n");
    cot_program_destroy(p);
    p = cot_compile(small_and_large, NULL, 2, small, 2, &o);
    tells(p, "donated: input 0 saves no memory: no output of its type and of 8 KiB is made as a whole after the last "
             "check\ndonated: input 1 saves no memory: no output of its type ");
    cot_program_destroy(p);
    o.donate++, o.donations--;
    p = cot_compile(after_a_softmax, NULL, 2, types, 1, &o);
    tells(p, "donated: input 1 saves no memory: output 0 is made in memory that the run has anyway\n");
    cot_program_destroy(p);
    o.donate--;
    p = cot_compile(read_again, NULL, 1, types, 2, &o);
    tells(p, "donated: input 0 saves no memory: outputs of its type are made while it is still read\n");
    cot_run *r = cot_run_create(p);
    float   *x = malloc(3 * BYTES), *y = x + ELEMENTS, *z = y + ELEMENTS;
    for (int i = 0; i < ELEMENTS; i++) x[i] = (float)(i % 7) / 8;
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){y, z}), COT_OK);
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){x, z}), COT_OK);
    assert_memory_equal(x, y, BYTES);
    free(x);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void a_step_that_owns_its_parameters_holds_them_once(void **state) {
    (void)state;
    cot_run *r = run_of(&donating), *plain = run_of(NULL);
    arrays  *a = malloc(2 * sizeof *a), *b = a + 1;
    size_t   before = cot_run_bytes(r);
    assert_true(before <= cot_run_bytes(plain));
    fill(a), fill(b);
    for (int k = 0; k < 5; k++) {
        assert_int_equal(step(r, a, a->w, a->m), COT_OK);
        assert_int_equal(step(plain, b, b->w, b->m), COT_OK);
        assert_memory_equal(a, b, sizeof *a);
    }
    assert_int_equal(cot_run_bytes(r), before);
    free(a);
    cot_run_destroy(r), cot_run_destroy(plain);
}

/* Outputs elsewhere, not wanted, swapped, shifted, or inputs that are one array: always the bits of
 * a run that writes over nothing. */
static void wherever_outputs_lie_results_are_right(void **state) {
    (void)state;
    cot_run *r = run_of(&donating);
    cot_run *plain = run_of(NULL);
    arrays  *a = malloc(3 * sizeof *a), *b = a + 1, *room = a + 2;
    for (int k = 0; k < 6; k++) {
        fill(a), fill(b);
        float *shifted = a->w + (ELEMENTS - N); /* the end of w and most of m */
        float *w[] = {room->w, NULL, a->m, shifted, room->w, a->w}, *m[] = {room->m, room->m, a->w, NULL, NULL, a->x};
        assert_int_equal(step(plain, b, room->x, b->x), COT_OK);
        float *wanted_w = room->x, *wanted_m = b->x;
        assert_int_equal(step(r, a, w[k], m[k]), COT_OK);
        assert_memory_equal(&a->loss, &b->loss, sizeof a->loss);
        assert_memory_equal(a->row, b->row, sizeof a->row);
        if (w[k]) assert_memory_equal(w[k], wanted_w, k == 3 ? 0 : BYTES);
        if (m[k]) assert_memory_equal(m[k], wanted_m, BYTES);
    }
    free(a);
    cot_run_destroy(r), cot_run_destroy(plain);
}

enum { POOL = 6 * ELEMENTS };

/* Places of three inputs and three outputs in a pool: anywhere, but no two outputs share bytes. -1:
 * not wanted. */
static void choose_places(int round, int64_t in[3], int64_t out[3]) {
    uint32_t seed = (uint32_t)round * 2654435761u + 12345;
    for (int k = 0; k < 6; k++) {
        int64_t *place = k < 3 ? &in[k] : &out[k - 3];
        bool     apart;
        do {
            seed = seed * 1664525u + 1013904223u;
            int64_t anywhere = (int64_t)(seed >> 8) % (POOL - ELEMENTS), slot = (int64_t)(seed >> 8) % 5 * ELEMENTS;
            *place = seed >> 30 == 0 ? anywhere : slot;
            if (k >= 3 && seed >> 28 == 5) *place = -1;
            apart = true;
            for (int i = 0; k >= 3 && *place >= 0 && i < k - 3; i++)
                apart &= out[i] < 0 || llabs(out[i] - *place) >= ELEMENTS;
        } while (!apart);
    }
}

static void run_in_pool(cot_run *r, float *pool, const int64_t in[3], const int64_t out[3]) {
    float rate = 0.5f;
    for (int i = 0; i < POOL; i++) pool[i] = (float)sin(i);
    assert_int_equal(cot_program_run(r, (const void *[]){pool + in[0], pool + in[1], pool + in[2], &rate},
                                     (void *[]){out[0] < 0 ? NULL : pool + out[0], out[1] < 0 ? NULL : pool + out[1],
                                                out[2] < 0 ? NULL : pool + out[2]}),
                     COT_OK);
}

static void inputs_and_outputs_may_lie_anywhere(void **state) {
    (void)state;
    cot_compile_options o = {.donate = (const int[]){0, 1, 2}, .donations = 3};
    cot_program        *p = cot_compile(decay, NULL, 4, types, 3, &o), *q = cot_compile(decay, NULL, 4, types, 3, NULL);
    cot_run            *r = cot_run_create(p), *plain = cot_run_create(q);
    float              *a = malloc(2 * POOL * sizeof *a), *b = a + POOL;
    for (int round = 0; round < 100; round++) {
        int64_t in[3], out[3];
        choose_places(round, in, out);
        run_in_pool(r, a, in, out);
        run_in_pool(plain, b, in, out);
        for (int k = 0; k < 3; k++)
            if (out[k] >= 0) assert_memory_equal(a + out[k], b + out[k], BYTES);
    }
    free(a);
    cot_run_destroy(r), cot_run_destroy(plain);
    cot_program_destroy(p), cot_program_destroy(q);
}

static void one_array_for_two_inputs_is_not_written_over_too_early(void **state) {
    (void)state;
    cot_run *r = run_of(&donating), *plain = run_of(NULL);
    arrays  *a = malloc(3 * sizeof *a), *b = a + 1, *room = a + 2;
    fill(a), fill(b);
    cot_run *runs[2] = {r, plain};
    arrays  *in[2] = {a, b};
    for (int k = 0; k < 2; k++)
        assert_int_equal(cot_program_run(runs[k], (const void *[]){in[k]->w, in[k]->w, in[k]->w, &a->rate, &a->at},
                                         (void *[]){&in[k]->loss, in[k]->row, k ? room->w : room->m, NULL}),
                         COT_OK);
    assert_memory_equal(room->w, room->m, BYTES);
    assert_memory_equal(a->row, b->row, sizeof a->row);
    free(a);
    cot_run_destroy(r), cot_run_destroy(plain);
}

static void what_a_check_refuses_is_written_over_nowhere(void **state) {
    (void)state;
    cot_run *r = run_of(&donating);
    arrays  *a = malloc(2 * sizeof *a);
    fill(a);
    a->at = N;
    memset(&a->loss, 0, sizeof a->loss + sizeof a->row);
    a[1] = *a;
    assert_int_equal(step(r, a, a->w, a->m), COT_VALUE);
    assert_non_null(strstr(cot_run_message(r), "[take] indices[0] is 64"));
    assert_memory_equal(a, a + 1, sizeof *a);
    free(a);
    cot_run_destroy(r);
}

/* Of a row that repeats, as many elements as there are positions, and not all of them. */
BODY(looks_up_twice) {
    UNUSED;
    cot_var some = cot_broadcast_to(cot_slice(xs[1], 0, 0, 2, 1), COT_SHAPE(2, 2));
    cot_var some_x = cot_sum(cot_take(xs[0], some, 0), COT_ALL);
    ys[0] = cot_exp(cot_add(xs[0], some_x));
    ys[1] = cot_take(ys[0], xs[1], 0);
    return 0;
}

static void positions_of_which_a_part_was_checked_are_not_known(void **state) {
    static const cot_type of[2] = {{COT_F32, {1, {ELEMENTS}}}, {COT_I64, {1, {4}}}};
    cot_compile_options   o = {.donate = (const int[]){0}, .donations = 1};
    cot_program          *p = cot_compile(looks_up_twice, NULL, 2, of, 2, &o);
    cot_run              *r = cot_run_create(p);
    float                *x = calloc(ELEMENTS, sizeof *x), y[4];
    int64_t               at[4] = {0, 1, 2, ELEMENTS};
    (void)state;
    assert_int_equal(cot_program_run(r, (const void *[]){x, at}, (void *[]){x, y}), COT_VALUE);
    for (int i = 0; i < ELEMENTS; i++) assert_true(x[i] == 0);
    cot_run_destroy(r);
    cot_program_destroy(p);
    free(x);
}

static void calls_write_over_nothing(void **state) {
    (void)state;
    cot_program *p = cot_compile(descent, NULL, INPUTS, types, 4, &donating);
    arrays      *a = malloc(sizeof *a);
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      xs[INPUTS], ys[4];
    float       *w = malloc(BYTES);
    fill(a);
    const void *data[] = {a->w, a->m, a->x, &a->rate, &a->at};
    for (int k = 0; k < INPUTS; k++) xs[k] = cot_data(t, types[k].dtype, types[k].shape, data[k]);
    assert_int_equal(cot_program_call(p, INPUTS, xs, 4, ys), COT_OK);
    cot_read_as(xs[0], COT_F32, w, ELEMENTS);
    assert_memory_equal(w, a->w, BYTES);
    cot_tape_destroy(t);
    free(a), free(w);
    cot_program_destroy(p);
}

static void refused(const cot_compile_options *o, const char *message) {
    cot_program *p = cot_compile(descent, NULL, INPUTS, types, 4, o);
    assert_int_equal(cot_program_status(p), COT_VALUE);
    assert_string_equal(cot_program_message(p), message);
    cot_program_destroy(p);
}

static void what_cannot_be_donated_is_told(void **state) {
    (void)state;
    refused(&(cot_compile_options){.donations = -1}, "[compile] a negative number of donations: -1");
    refused(&(cot_compile_options){.donations = 2}, "[compile] the list of 2 donated inputs is NULL");
    refused(&(cot_compile_options){.donate = (const int[]){0, 5}, .donations = 2},
            "[compile] donate[1] is 5; the inputs are 0 to 4");
    refused(&(cot_compile_options){.donate = (const int[]){-1}, .donations = 1},
            "[compile] donate[0] is -1; the inputs are 0 to 4");
    refused(&(cot_compile_options){.donate = (const int[]){1, 0, 1}, .donations = 3},
            "[compile] donate[2] is 1, and so is one before; an input is donated once");
}

/* The second run finds other memory, and takes what it needs. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    arrays *a = malloc(sizeof *a);
    fill(a);
    for (long at = 1;; at++) {
        counting            c = {.fail_at = at, .fail_for_good = true};
        cot_compile_options o = donating;
        o.allocator = (cot_allocator){counting_alloc, &c};
        cot_program *p = cot_compile(descent, NULL, INPUTS, types, 4, &o);
        cot_run     *r = cot_run_create(p);
        bool         made = r && cot_run_status(r) == COT_OK;
        cot_status   done = made ? step(r, a, a->m, a->w) : COT_MEMORY;
        assert_true(done == COT_OK || done == COT_MEMORY);
        if (made && done != COT_OK) assert_non_null(strstr(cot_run_message(r), "out of memory"));
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
        if (done == COT_OK) break;
    }
    free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(donated_inputs_take_the_place_of_memory),
        cmocka_unit_test(a_donation_that_saves_nothing_is_told),
        cmocka_unit_test(a_step_that_owns_its_parameters_holds_them_once),
        cmocka_unit_test(wherever_outputs_lie_results_are_right),
        cmocka_unit_test(inputs_and_outputs_may_lie_anywhere),
        cmocka_unit_test(one_array_for_two_inputs_is_not_written_over_too_early),
        cmocka_unit_test(what_a_check_refuses_is_written_over_nowhere),
        cmocka_unit_test(positions_of_which_a_part_was_checked_are_not_known),
        cmocka_unit_test(calls_write_over_nothing),
        cmocka_unit_test(what_cannot_be_donated_is_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
