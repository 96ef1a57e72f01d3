/* Compiled functions: a program gives the bits of the same function on a tape, at every input;
 * what cannot be compiled is told in a sentence; a run takes no memory, and its errors end with
 * it. */
/* ctest: labels=threads */
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- a small network ------------------------------------------------------------------------- */

enum { BATCH = 8, IN = 5, HIDDEN = 7, OUT = 3, PARAMETERS = 4, INPUTS = PARAMETERS + 2 };

static const cot_type network[INPUTS] = {{COT_F32, {2, {IN, HIDDEN}}}, {COT_F32, {1, {HIDDEN}}},
                                         {COT_F32, {2, {HIDDEN, OUT}}}, {COT_F32, {1, {OUT}}},
                                         {COT_F32, {2, {BATCH, IN}}}, {COT_I64, {1, {BATCH}}}};

BODY(loss) {
    UNUSED;
    cot_var h = cot_relu(cot_add(cot_matmul(xs[4], xs[0]), xs[1]));
    ys[0] = cot_softmax_cross_entropy(cot_add(cot_matmul(h, xs[2]), xs[3]), xs[5]);
    return 0;
}

/* The loss and its gradients by the four parameters. */
BODY(gradient) {
    cot_var grads[INPUTS];
    (void)m, (void)user;
    cot_status s = cot_value_and_grad(loss, NULL, n, xs, &ys[0], grads);
    for (int k = 0; k < PARAMETERS; k++) ys[1 + k] = grads[k];
    return s == COT_OK ? 0 : 1;
}

/* The loss, and the parameters after a step downhill; the rate is an input. */
BODY(descent) {
    cot_var grads[INPUTS];
    (void)m, (void)user;
    cot_status s = cot_value_and_grad(loss, NULL, n - 1, xs, &ys[0], grads);
    for (int k = 0; k < PARAMETERS; k++) ys[1 + k] = cot_sub(xs[k], cot_mul(xs[n - 1], grads[k]));
    return s == COT_OK ? 0 : 1;
}

static int64_t size_of(cot_type type) {
    int64_t n = 1;
    for (int i = 0; i < type.shape.ndim; i++) n *= type.shape.dim[i];
    return n;
}

typedef struct arrays { float p[PARAMETERS][64], x[BATCH * IN]; int64_t label[BATCH]; } arrays;

static void fill(arrays *a, uint64_t seed) {
    for (int k = 0; k < PARAMETERS; k++)
        for (int i = 0; i < 64; i++) a->p[k][i] = (float)sin((double)(seed * 100 + (uint64_t)(k * 64 + i)));
    for (int i = 0; i < BATCH * IN; i++) a->x[i] = (float)cos((double)(seed * 77 + (uint64_t)i));
    for (int i = 0; i < BATCH; i++) a->label[i] = (int64_t)(seed + (uint64_t)i) % OUT;
}

static void inputs_of(const arrays *a, const void *inputs[INPUTS]) {
    for (int k = 0; k < PARAMETERS; k++) inputs[k] = a->p[k];
    inputs[4] = a->x, inputs[5] = a->label;
}

/* What a tape gives for the same. */
static void on_a_tape(const arrays *a, float *value, float grads[PARAMETERS][64]) {
    const void *inputs[INPUTS];
    cot_var     xs[INPUTS], ys[1 + PARAMETERS];
    cot_tape   *t = cot_tape_create(NULL);
    inputs_of(a, inputs);
    for (int k = 0; k < INPUTS; k++)
        xs[k] = k < PARAMETERS ? cot_tensor(t, network[k].dtype, network[k].shape, inputs[k])
                               : cot_data(t, network[k].dtype, network[k].shape, inputs[k]);
    assert_int_equal(gradient(INPUTS, xs, 1 + PARAMETERS, ys, NULL), 0);
    cot_read_as(ys[0], COT_F32, value, 1);
    for (int k = 0; k < PARAMETERS; k++) cot_read_as(ys[1 + k], COT_F32, grads[k], size_of(network[k]));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void a_program_gives_the_bits_of_the_tape_at_every_input(void **state) {
    (void)state;
    cot_program *p = cot_compile(gradient, NULL, INPUTS, network, 1 + PARAMETERS, NULL);
    cot_run     *r = cot_run_create(p);
    assert_string_equal(cot_program_message(p), "");
    for (uint64_t seed = 1; seed <= 3; seed++) {
        arrays      a;
        float       value, want, grads[PARAMETERS][64], wanted[PARAMETERS][64];
        const void *inputs[INPUTS];
        fill(&a, seed);
        inputs_of(&a, inputs);
        void *outputs[1 + PARAMETERS] = {&value, grads[0], grads[1], grads[2], grads[3]};
        assert_int_equal(cot_program_run(r, inputs, outputs), COT_OK);
        on_a_tape(&a, &want, wanted);
        assert_memory_equal(&value, &want, sizeof value);
        for (int k = 0; k < PARAMETERS; k++)
            assert_memory_equal(grads[k], wanted[k], (size_t)size_of(network[k]) * sizeof(float));
    }
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void a_training_step_may_write_its_parameters_over_the_old_ones(void **state) {
    (void)state;
    cot_type types[INPUTS + 1];
    memcpy(types, network, sizeof network);
    types[INPUTS] = (cot_type){COT_F32, COT_SCALAR};
    cot_program *p = cot_compile(descent, NULL, INPUTS + 1, types, 1 + PARAMETERS, NULL);
    cot_run     *r = cot_run_create(p);
    assert_string_equal(cot_run_message(r), "");
    arrays      a;
    float       value, before = 0, rate = 0.1f;
    const void *inputs[INPUTS + 1];
    fill(&a, 1);
    inputs_of(&a, inputs);
    inputs[INPUTS] = &rate;
    for (int step = 0; step < 20; step++) {
        arrays old = a;
        float  want, wanted[PARAMETERS][64];
        assert_int_equal(
            cot_program_run(r, inputs, (void *[]){&value, a.p[0], a.p[1], a.p[2], a.p[3]}), COT_OK);
        on_a_tape(&old, &want, wanted);
        assert_memory_equal(&value, &want, sizeof value);
        for (int k = 0; k < PARAMETERS; k++)
            for (int64_t i = 0; i < size_of(network[k]); i++)
                assert_true(a.p[k][i] == old.p[k][i] - rate * wanted[k][i]);
        if (step) assert_true(value < before);
        before = value;
    }
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void unwanted_outputs_are_left_out(void **state) {
    (void)state;
    cot_program *p = cot_compile(gradient, NULL, INPUTS, network, 1 + PARAMETERS, NULL);
    cot_run     *r = cot_run_create(p);
    arrays       a;
    float        bias[OUT], want, wanted[PARAMETERS][64];
    const void  *inputs[INPUTS];
    fill(&a, 4);
    inputs_of(&a, inputs);
    assert_int_equal(cot_program_run(r, inputs, (void *[]){NULL, NULL, NULL, NULL, bias}), COT_OK);
    on_a_tape(&a, &want, wanted);
    assert_memory_equal(bias, wanted[3], sizeof bias);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void a_program_knows_its_types(void **state) {
    (void)state;
    cot_program *p = cot_compile(gradient, NULL, INPUTS, network, 1 + PARAMETERS, NULL);
    assert_int_equal(cot_program_inputs(p), INPUTS);
    assert_int_equal(cot_program_outputs(p), 1 + PARAMETERS);
    for (int k = 0; k < INPUTS; k++) {
        cot_type type = cot_program_input_type(p, k);
        assert_int_equal(type.dtype, network[k].dtype);
        assert_int_equal(type.shape.ndim, network[k].shape.ndim);
        assert_int_equal(type.shape.dim[0], network[k].shape.dim[0]);
    }
    assert_int_equal(cot_program_output_type(p, 0).shape.ndim, 0);
    assert_int_equal(cot_program_output_type(p, 2).shape.dim[0], HIDDEN);
    assert_int_equal(cot_program_input_type(p, INPUTS).dtype, COT_F64);
    assert_int_equal(cot_program_output_type(p, -1).shape.ndim, 0);
    cot_program_destroy(p);
}

/* ---- sharing --------------------------------------------------------------------------------- */

static void *run_many(void *program) {
    cot_run *r = cot_run_create(program);
    bool     same = true;
    for (uint64_t seed = 1; same && seed <= 50; seed++) {
        arrays      a;
        float       value, want, wanted[PARAMETERS][64];
        const void *inputs[INPUTS];
        fill(&a, seed);
        inputs_of(&a, inputs);
        same = cot_program_run(r, inputs, (void *[]){&value, NULL, NULL, NULL, NULL}) == COT_OK;
        on_a_tape(&a, &want, wanted);
        same = same && memcmp(&value, &want, sizeof want) == 0;
    }
    cot_run_destroy(r);
    return same ? program : NULL;
}

static void threads_share_a_program(void **state) {
    (void)state;
    cot_program *p = cot_compile(gradient, NULL, INPUTS, network, 1 + PARAMETERS, NULL);
    pthread_t    thread[3];
    void        *answer;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_many, p), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], &answer);
        assert_ptr_equal(answer, p);
    }
    cot_program_destroy(p);
}

static void a_run_outlives_the_handle_of_its_program(void **state) {
    (void)state;
    cot_program *p = cot_compile(gradient, NULL, INPUTS, network, 1 + PARAMETERS, NULL);
    cot_run     *r = cot_run_create(p);
    arrays       a;
    float        value, want, wanted[PARAMETERS][64];
    const void  *inputs[INPUTS];
    cot_program_destroy(p);
    fill(&a, 9);
    inputs_of(&a, inputs);
    assert_int_equal(cot_program_run(r, inputs, (void *[]){&value, NULL, NULL, NULL, NULL}), COT_OK);
    on_a_tape(&a, &want, wanted);
    assert_memory_equal(&value, &want, sizeof value);
    cot_run_destroy(r);
}

/* ---- what cannot be compiled ----------------------------------------------------------------- */

static float borrowed[2];

BODY(wraps) { UNUSED; ys[0] = cot_add(xs[0], cot_wrap(xs[0].tape, COT_F32, COT_SHAPE(2), borrowed)); return 0; }
BODY(draws) { UNUSED; ys[0] = cot_add(xs[0], cot_normal(xs[0].tape, cot_key_of(1), COT_F32, COT_SHAPE(2))); return 0; }
BODY(reads) { UNUSED; ys[0] = cot_value(cot_sum(xs[0], COT_ALL)) > 0 ? xs[0] : cot_neg(xs[0]); return 0; }
BODY(gives_up) { UNUSED; return 3; }
BODY(forgets) { UNUSED; return 0; }
BODY(foreign) { UNUSED; ys[0] = cot_add(xs[0], *(cot_var *)user); return 0; }

static void refused(cot_fn f, void *user, cot_status code, const char *message) {
    cot_type     two = {COT_F32, COT_SHAPE(2)};
    cot_program *p = cot_compile(f, user, 1, &two, 1, NULL);
    cot_run     *r = cot_run_create(p);
    float        x[2] = {1, 2}, z[2];
    assert_int_equal(cot_program_status(p), code);
    assert_string_equal(cot_program_message(p), message);
    assert_int_equal(cot_run_status(r), code);
    assert_string_equal(cot_run_message(r), message);
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){z}), code);
    assert_int_equal(cot_program_inputs(p), 0);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void what_cannot_be_compiled_is_told(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   other = cot_ones(t, COT_F32, COT_SHAPE(2));
    (void)state;
    refused(wraps, NULL, COT_VALUE,
            "[wrap] called in a function that is compiled; a program holds no address: pass the array as an input, or "
            "copy it with cot_data (in the function of [compile])");
    refused(draws, NULL, COT_VALUE,
            "[normal] draws from a plain key in a function that is compiled, which would give the same numbers in "
            "every run; use cot_key_at with an integer input (in the function of [compile])");
    refused(reads, NULL, COT_VALUE,
            "[value] asked for while a function is compiled, for all values that it may be run on; "
            "choose by values with cot_where or cot_cond (in the function of [compile])");
    refused(gives_up, NULL, COT_CUSTOM, "[compile] its function failed with code 3");
    refused(forgets, NULL, COT_VAR, "[compile] its function did not set ys[0]; it gives 1 result and must set each");
    refused(foreign, &other, COT_VAR,
            "[add] the right operand belongs to another tape; operands of one operation share a tape (in the function "
            "of [compile])");
    refused(NULL, NULL, COT_VALUE, "[compile] the function is NULL");
    cot_tape_destroy(t);
}

static void bad_arguments_of_compile_are_told(void **state) {
    cot_type bad[2] = {{COT_F32, COT_SHAPE(2)}, {COT_F32, COT_SHAPE(-2)}};
    (void)state;
    cot_program *p = cot_compile(loss, NULL, -1, NULL, 1, NULL);
    assert_string_equal(cot_program_message(p), "[compile] a negative number of inputs: -1");
    cot_program_destroy(p);
    p = cot_compile(loss, NULL, 2, NULL, 1, NULL);
    assert_string_equal(cot_program_message(p), "[compile] the list of 2 types is NULL");
    cot_program_destroy(p);
    p = cot_compile(loss, NULL, 2, bad, 1, NULL);
    assert_int_equal(cot_program_status(p), COT_SHAPE);
    assert_non_null(strstr(cot_program_message(p), "(in input 1 of [compile])"));
    cot_program_destroy(p);
    bad[1] = (cot_type){(cot_dtype)99, COT_SHAPE(2)};
    p = cot_compile(loss, NULL, 2, bad, 1, NULL);
    assert_int_equal(cot_program_status(p), COT_DTYPE);
    cot_program_destroy(p);
}

/* ---- errors of a run ------------------------------------------------------------------------- */

BODY(looks_up) { UNUSED; ys[0] = cot_take(xs[0], xs[1], 0); return 0; }

static void errors_of_a_run_end_with_it(void **state) {
    (void)state;
    cot_type     types[2] = {{COT_F64, COT_SHAPE(3)}, {COT_I64, COT_SHAPE(2)}};
    cot_program *p = cot_compile(looks_up, NULL, 2, types, 1, NULL);
    cot_run     *r = cot_run_create(p);
    double       x[3] = {1, 2, 3}, z[2] = {7, 7};
    int64_t      good[2] = {2, 0}, bad[2] = {1, 3};
    assert_int_equal(cot_program_run(r, (const void *[]){x, bad}, (void *[]){z}), COT_VALUE);
    assert_string_equal(cot_run_message(r),
                        "[take] indices[1] is 3, out of range for extent 3; values run from -3 to 2");
    assert_true(z[0] == 7 && z[1] == 7);
    assert_int_equal(cot_program_run(r, (const void *[]){x, NULL}, (void *[]){z}), COT_VALUE);
    assert_string_equal(cot_run_message(r), "[program_run] inputs[1] is NULL; every input must be given");
    assert_int_equal(cot_program_run(r, NULL, (void *[]){z}), COT_VALUE);
    assert_string_equal(cot_run_message(r), "[program_run] the list of inputs is NULL; it has 2 elements");
    assert_int_equal(cot_program_run(r, (const void *[]){x, good}, (void *[]){z}), COT_OK);
    assert_string_equal(cot_run_message(r), "");
    assert_true(z[0] == 3 && z[1] == 1);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        counting     c = {.fail_at = at, .fail_for_good = true};
        cot_program *p = cot_compile(gradient, NULL, INPUTS, network, 1 + PARAMETERS,
                                     &(cot_compile_options){.allocator = {counting_alloc, &c}});
        cot_run     *r = cot_run_create(p);
        bool         made = r && cot_run_status(r) == COT_OK;
        if (!made && p) assert_true(cot_program_status(p) == COT_MEMORY || !r || cot_run_status(r) == COT_MEMORY);
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
        if (made) break;
    }
}

static void a_run_takes_no_memory(void **state) {
    (void)state;
    counting     c = {0};
    cot_program *p = cot_compile(gradient, NULL, INPUTS, network, 1 + PARAMETERS,
                                 &(cot_compile_options){.allocator = {counting_alloc, &c}});
    cot_run     *r = cot_run_create(p);
    long         before = c.requests;
    arrays       a;
    float        value;
    const void  *inputs[INPUTS];
    fill(&a, 2);
    inputs_of(&a, inputs);
    for (int i = 0; i < 10; i++)
        assert_int_equal(cot_program_run(r, inputs, (void *[]){&value, NULL, NULL, NULL, NULL}), COT_OK);
    assert_int_equal(c.requests, before);
    assert_true(cot_run_bytes(r) > 0);
    cot_run_destroy(r);
    cot_program_destroy(p);
    assert_int_equal(c.live, 0);
}

/* ---- where outputs lie ----------------------------------------------------------------------- */

/* Output k is x (k + 1), but for one without elements. */
enum { PIECE = 7, PIECES = 40, EMPTY = 13 };

BODY(multiples) {
    (void)n, (void)user;
    for (int k = 0; k < m; k++) ys[k] = k == EMPTY ? cot_zeros(xs[0].tape, COT_F32, COT_SHAPE(0))
                                                   : cot_mul(xs[0], cot_number(k + 1));
    return 0;
}

static void assert_multiples(float *const *ys, const float *x) {
    for (int k = 0; k < PIECES; k++)
        for (int i = 0; i < PIECE && ys[k] && k != EMPTY; i++)
            if (ys[k][i] != x[i] * (float)(k + 1)) fail_msg("output %d", k);
}

/* Two outputs in the same memory, wholly or in part, are refused before anything is written, by any
 * run: also by one whose pointers were good before. Outputs may touch, lie in any order and over
 * inputs; those that are NULL or empty lie nowhere. */
static void outputs_across_one_another_are_refused(void **state) {
    (void)state;
    cot_program *p = cot_compile(multiples, NULL, 1, &(cot_type){COT_F32, COT_SHAPE(PIECE)}, PIECES, NULL);
    cot_run     *r = cot_run_create(p);
    float        x[PIECE] = {1, 2, 3, 4, 5, 6, 7}, over[PIECE], room[(2 * PIECES + 1) * PIECE], *ys[PIECES];
    const void  *inputs[] = {x}, *in_place[] = {over};
    const int    shift[] = {0, PIECE - 1, 1 - PIECE, 0};
    for (int i = 0; i < PIECES; i++) ys[i] = room + 2 * PIECE * (i * 27 % PIECES) + PIECE;
    for (int round = 0; round < 4; round++) {
        memset(room, 0, sizeof room);
        assert_int_equal(cot_program_run(r, inputs, (void **)ys), COT_OK);
        assert_multiples(ys, x);
        float *own = ys[5];
        ys[5] = ys[30] + shift[round];
        memset(room, 0, sizeof room);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(cot_program_run(r, inputs, (void **)ys), COT_VALUE);
            assert_string_equal(cot_run_message(r), "[program_run] outputs[5] and outputs[30] overlap; each needs "
                                                    "memory of its own");
        }
        for (int i = 0; i < (2 * PIECES + 1) * PIECE; i++) assert_true(room[i] == 0);
        ys[5] = own;
    }
    ys[5] = ys[30] = NULL;
    ys[EMPTY] = ys[2] + 1;
    assert_int_equal(cot_program_run(r, inputs, (void **)ys), COT_OK);
    assert_multiples(ys, x);
    memcpy(over, x, sizeof x);
    ys[9] = over;
    assert_int_equal(cot_program_run(r, in_place, (void **)ys), COT_OK);
    assert_multiples(ys, x);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void nothing_is_asked_of_null(void **state) {
    (void)state;
    cot_program_destroy(NULL);
    cot_run_destroy(NULL);
    assert_null(cot_run_create(NULL));
    assert_int_equal(cot_program_status(NULL), COT_MEMORY);
    assert_int_equal(cot_program_run(NULL, NULL, NULL), COT_MEMORY);
    assert_int_equal(cot_program_native(NULL, true), COT_NATIVE_OFF);
    assert_non_null(strstr(cot_program_native_message(NULL), "not asked for"));
    assert_string_equal(cot_program_message(NULL), "the program is NULL: cot_compile found no memory");
    assert_int_equal(cot_program_inputs(NULL), 0);
    assert_int_equal(cot_program_outputs(NULL), 0);
    assert_int_equal(cot_program_input_type(NULL, 0).dtype, COT_F64);
    assert_int_equal(cot_program_output_type(NULL, 0).shape.ndim, 0);
    assert_int_equal(cot_run_status(NULL), COT_MEMORY);
    assert_string_equal(cot_run_message(NULL),
                        "the run is NULL: cot_run_create was given no program, or found no memory");
    assert_string_equal(cot_run_note(NULL), "");
    assert_int_equal(cot_run_bytes(NULL), 0);
    cot_program_print(NULL, NULL);
    char why[80];
    assert_int_equal(cot_program_emit_c(NULL, NULL, NULL, NULL, why, sizeof why), COT_MEMORY);
    assert_string_equal(why, "the program is NULL: cot_compile found no memory");
    assert_int_equal(cot_program_emit_c(NULL, NULL, NULL, NULL, NULL, 0), COT_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_gives_the_bits_of_the_tape_at_every_input),
        cmocka_unit_test(a_training_step_may_write_its_parameters_over_the_old_ones),
        cmocka_unit_test(unwanted_outputs_are_left_out),
        cmocka_unit_test(a_program_knows_its_types),
        cmocka_unit_test(threads_share_a_program),
        cmocka_unit_test(a_run_outlives_the_handle_of_its_program),
        cmocka_unit_test(what_cannot_be_compiled_is_told),
        cmocka_unit_test(bad_arguments_of_compile_are_told),
        cmocka_unit_test(errors_of_a_run_end_with_it),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_run_takes_no_memory),
        cmocka_unit_test(outputs_across_one_another_are_refused),
        cmocka_unit_test(nothing_is_asked_of_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
