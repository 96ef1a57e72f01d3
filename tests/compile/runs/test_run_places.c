/* One cot_run whose inputs and outputs move from run to run: apart, over one another, and back. It
 * remembers where they lay, and every run must be as that of a new cot_run. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <stdlib.h>
#include <string.h>

/* Arrays lie in a pool, at multiples of half an array. */
enum { N = 64, ELEMENTS = N * N, BYTES = ELEMENTS * 4, HALF = ELEMENTS / 2, PLACES = 16, MOVING = 6 };
enum { POOL = (PLACES + 1) * HALF, NOWHERE = -1 };

/* What reads elements one by one, what reads them all, and what is read before and after. */
BODY(several) {
    UNUSED;
    ys[0] = cot_mul(cot_tanh(xs[0]), 0.5);
    ys[1] = cot_matmul(xs[0], xs[1]);
    ys[2] = cot_add(xs[2], cot_mul(xs[1], xs[1]));
    ys[3] = cot_sum(xs[2], COT_ALL);
    return 0;
}
static const cot_type types[3] = {{COT_F32, {2, {N, N}}}, {COT_F32, {2, {N, N}}}, {COT_F32, {2, {N, N}}}};

/* Places of three inputs, then of three outputs; the sum lies by itself. */
typedef struct places { int at[MOVING]; } places;

static float *at(float *pool, const places *p, int k) { return p->at[k] < 0 ? NULL : pool + p->at[k] * HALF; }

static void fill(float *pool) {
    for (int i = 0; i < POOL; i++) pool[i] = (float)sin(i);
}

static cot_status run_at(cot_run *r, float *pool, const places *p, float *sum) {
    return cot_program_run(r, (const void *[]){at(pool, p, 0), at(pool, p, 1), at(pool, p, 2)},
                           (void *[]){at(pool, p, 3), at(pool, p, 4), at(pool, p, 5), sum});
}

static bool outputs_overlap(const places *p) {
    for (int a = 3; a < MOVING; a++)
        for (int b = 3; b < a; b++)
            if (p->at[a] >= 0 && p->at[b] >= 0 && abs(p->at[a] - p->at[b]) < 2) return true;
    return false;
}

typedef struct compared {
    cot_program *p;
    cot_run     *r, *apart; /* the one that is tried; and one whose outputs lie by themselves */
    float       *pool, *other, *want;
} compared;

/* A run writes what is wanted where it is wanted, or fails as a new one does and writes nothing. */
static void compare(const compared *c, const places *p) {
    float       sum = 0, fresh_sum = 0, want_sum;
    const float *want[3] = {c->want, c->want + ELEMENTS, c->want + 2 * ELEMENTS};
    fill(c->pool), fill(c->other);
    cot_program_run(c->apart, (const void *[]){at(c->pool, p, 0), at(c->pool, p, 1), at(c->pool, p, 2)},
                    (void *[]){c->want, c->want + ELEMENTS, c->want + 2 * ELEMENTS, &want_sum});
    assert_string_equal(cot_run_message(c->apart), "");
    cot_run   *fresh = cot_run_create(c->p);
    cot_status status = run_at(fresh, c->other, p, &fresh_sum);
    assert_int_equal(run_at(c->r, c->pool, p, &sum), status);
    assert_string_equal(cot_run_message(c->r), cot_run_message(fresh));
    assert_int_equal(status == COT_VALUE, outputs_overlap(p));
    for (int k = 0; k < 3 && status == COT_OK; k++) {
        if (p->at[3 + k] < 0) continue;
        assert_memory_equal(at(c->pool, p, 3 + k), want[k], BYTES);
        assert_memory_equal(at(c->other, p, 3 + k), want[k], BYTES);
    }
    if (status == COT_OK) assert_true(sum == want_sum && fresh_sum == want_sum);
    if (status != COT_OK) {
        fill(c->other);
        assert_memory_equal(c->pool, c->other, POOL * sizeof *c->pool);
    }
    cot_run_destroy(fresh);
}

static const places story[] = {
    /* apart, and again */
    {{0, 2, 4, 6, 8, 10}},
    {{0, 2, 4, 6, 8, 10}},
    /* an output just where an input lies, and one that may not be made there */
    {{0, 2, 4, 0, 8, 10}},
    {{0, 2, 4, 0, 8, 10}},
    {{0, 2, 4, 6, 8, 10}},
    {{0, 2, 4, 6, 0, 10}},
    /* across two inputs, then elsewhere */
    {{0, 2, 4, 3, 8, 10}},
    {{0, 2, 4, 12, 8, 10}},
    /* inputs move to where outputs lie */
    {{12, 2, 4, 12, 8, 10}},
    {{8, 2, 10, 12, 8, 10}},
    {{0, 2, 4, 12, 8, 10}},
    /* outputs across one another, twice */
    {{0, 2, 4, 12, 13, 10}},
    {{0, 2, 4, 12, 13, 10}},
    {{0, 2, 4, 12, 8, 10}},
    /* not all are wanted */
    {{0, 2, 4, NOWHERE, 8, 4}},
    {{0, 2, 4, 2, 8, NOWHERE}},
    /* inputs change places, and outputs */
    {{0, 2, 4, 4, 8, 2}},
    {{0, 4, 2, 4, 8, 2}},
    {{0, 4, 2, 2, 8, 4}},
    /* one array for three inputs */
    {{0, 0, 0, 0, 8, 4}},
    {{0, 0, 0, 6, 8, 10}},
};

/* Then one moves, at random, or none. */
static void move_one(places *p, int round) {
    uint32_t seed = (uint32_t)round * 2654435761u + 12345;
    seed = (seed ^ seed >> 15) * 2246822519u;
    int k = (int)(seed >> 8) % (MOVING + 1);
    if (k < MOVING) p->at[k] = (int)(seed >> 16) % PLACES;
    if (k >= 3 && k < MOVING && seed >> 29 == 0) p->at[k] = NOWHERE;
}

static void walk(const cot_compile_options *o) {
    cot_program *p = cot_compile(several, NULL, 3, types, 4, o), *plain = cot_compile(several, NULL, 3, types, 4, NULL);
    assert_string_equal(cot_program_message(p), "");
    compared c = {p, cot_run_create(p), cot_run_create(plain), malloc(POOL * sizeof(float)),
                  malloc(POOL * sizeof(float)), malloc(3 * BYTES)};
    int      rounds = test_small() ? 40 : 400;
    for (int k = 0; k < (int)(sizeof story / sizeof *story); k++) compare(&c, &story[k]);
    places now = story[0];
    for (int k = 0; k < rounds; k++) {
        move_one(&now, k);
        compare(&c, &now);
        if (outputs_overlap(&now) && k % 3 == 0) now = story[0];
    }
    free(c.pool), free(c.other), free(c.want);
    cot_run_destroy(c.r), cot_run_destroy(c.apart);
    cot_program_destroy(p), cot_program_destroy(plain);
}

static void a_run_is_as_new_wherever_memory_has_moved(void **state) {
    (void)state;
    walk(NULL);
}

static void so_is_one_that_may_write_over_inputs(void **state) {
    (void)state;
    walk(&(cot_compile_options){.donate = (const int[]){0, 1, 2}, .donations = 3});
    walk(&(cot_compile_options){.donate = (const int[]){2}, .donations = 1});
}

/* What a limit leaves no place for is refused, each time, and done where it can be again. */
static void so_is_one_that_keeps_to_a_limit(void **state) {
    (void)state;
    cot_program_facts f;
    cot_program      *p = cot_compile(several, NULL, 3, types, 4, NULL);
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    cot_program_destroy(p);
    walk(&(cot_compile_options){.memory_limit = f.run_bytes});
    walk(&(cot_compile_options){.memory_limit = f.run_bytes, .donate = (const int[]){0, 2}, .donations = 2});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_as_new_wherever_memory_has_moved),
        cmocka_unit_test(so_is_one_that_may_write_over_inputs),
        cmocka_unit_test(so_is_one_that_keeps_to_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
