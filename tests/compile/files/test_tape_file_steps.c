/* A tape file that is loaded takes no more steps than the options allow, whatever it says of its
 * loops and solvers. */
#include "compile/files/tape_bytes.h"

#include "compile/compile.h"
#include "diff/loops/loop.h"
#include "program/loop_form.h"
#include "rules/structural_ids.h"

#include <cotangent_program.h>

static int halve_once(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[1], 0.5);
    return 0;
}
static int above_one(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_greater(xs[0], 1.0);
    return 0;
}
static int half(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], 0.5);
    return 0;
}
/* Ten steps, and then four of a cot_while: from 16 times the sum to at most 1. */
static int loops_inside(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var inner;
    (void)n, (void)m, (void)user;
    cot_fori(halve_once, NULL, 0, 10, 1, &xs[1], &inner, NULL);
    inner = cot_add(cot_mul(inner, 0.0), 16.0);
    return cot_while(above_one, half, NULL, 1, &inner, ys, NULL) != COT_OK;
}

/* The file of a loop, whose length is said to be another. */
static file_bytes file_of_loop(cot_fn body, int64_t claimed) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), y;
    cot_fori(body, NULL, 0, 5, 1, &x, &y, NULL);
    assert_ok(t);
    const cot__loop *l                  = t->nodes[cot__index(y)].extra.attr->pointer;
    ((cot__loop *)(uintptr_t)l)->length = claimed;
    file_bytes b                        = bytes_of(t, 1, &y);
    assert_true(b.count > 0);
    cot_tape_destroy(t);
    return b;
}

static cot_status load_within(const file_bytes *b, int64_t steps, char message[512]) {
    cot_tape *t = cot_tape_create(&(cot_options){.load_steps = steps});
    cot_var   v;
    cot__tape_file_record(t, b->at, b->count, 1, &v);
    cot_status status = cot_tape_status(t);
    snprintf(message, 512, "%s", cot_tape_message(t));
    cot_tape_destroy(t);
    return status;
}

static void loops_take_no_more_steps_than_the_options_allow(void **state) {
    char       message[512];
    file_bytes plain = file_of_loop(halve_once, 5), nested = file_of_loop(loops_inside, 5),
               endless = file_of_loop(halve_once, INT64_MAX), deep = file_of_loop(loops_inside, INT64_MAX);
    (void)state;
    assert_int_equal(load_within(&plain, 5, message), COT_OK);
    assert_int_equal(load_within(&plain, 4, message), COT_LIMIT);
    assert_non_null(strstr(message, "[tape_load] the loops and solvers of the file take more steps than load_steps of "
                                    "the options, 2^24 if not given; allow more if the file is to be trusted"));
    /* five times a step, its ten and its four, and the ten once more while the body is recorded */
    assert_int_equal(load_within(&nested, 10 + 5 * 15, message), COT_OK);
    assert_int_equal(load_within(&nested, 10 + 5 * 15 - 1, message), COT_LIMIT);
    assert_int_equal(load_within(&endless, 10000, message), COT_LIMIT);
    assert_int_equal(load_within(&deep, 10000, message), COT_LIMIT);
    assert_int_equal(load_within(&plain, -1, message), COT_VALUE);
    assert_string_equal(message, "[tape_load] load_steps is -1; 0 is the default, 1 and more a bound");
    if (!test_small()) assert_int_equal(load_within(&endless, 0, message), COT_LIMIT);
    free(plain.at), free(nested.at), free(endless.at), free(deep.at);
}

static int five_steps(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    return cot_fori(halve_once, NULL, 0, 5, 1, xs, ys, NULL) != COT_OK;
}

static int eighty(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_linear_solve(tridiagonal, (void *)(uintptr_t)&xs[1], xs[0], NULL);
    return 0;
}

/* The least number of steps with which a file is loaded. */
static int64_t steps_of(const file_bytes *b, int64_t most) {
    char    message[512];
    int64_t low = 1, high = most;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (load_within(b, middle, message) == COT_OK)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Each time that the function of a solver is applied is a step; those of a derivative, too. */
static void steps_of_solvers_count(void **state) {
    (void)state;
    char      message[512];
    cot_tape *t = cot_tape_create(NULL);
    double    numbers[80];
    for (int k = 0; k < 80; k++) numbers[k] = k * k % 7;
    cot_var  s = cot_scalar(t, 2), b = cot_data(t, COT_F64, COT_SHAPE(80), numbers), y, z;
    cot_var  x        = cot_ones(t, COT_F64, COT_SHAPE(1));
    cot_mark m        = cot_tape_mark(t);
    y                 = cot_sum(cot_linear_solve(tridiagonal, &s, b, NULL), COT_ALL);
    file_bytes solved = bytes_of(t, 1, &y);
    int64_t    steps  = steps_of(&solved, 1 << 12);
    assert_true(steps > 10 && steps < 1000);
    assert_int_equal(load_within(&solved, steps - 1, message), COT_LIMIT);
    assert_non_null(strstr(message, "[tape_load] the loops and solvers of the file take more steps than load_steps"));
    cot_tape_rewind(t, m);
    cot_type     types[2] = {{COT_F64, COT_SHAPE(80)}, {COT_F64, COT_SCALAR}};
    cot_program *p        = cot_compile(eighty, NULL, 2, types, 1, NULL);
    cot_no_grad_open(t);
    cot_program_call(p, 2, (cot_var[]){b, s}, 1, &z);
    cot_no_grad_close(t);
    z                 = cot_sum(z, COT_ALL);
    file_bytes called = bytes_of(t, 1, &z);
    assert_ok(t);
    assert_true(steps_of(&called, 1 << 14) > steps);
    cot_tape_rewind(t, m);
    y               = cot_sum(cot_root(cubic, NULL, NULL, cot_mul(x, 3), 1, &s, NULL), COT_ALL);
    file_bytes root = bytes_of(t, 1, &y);
    assert_ok(t);
    assert_true(steps_of(&root, 1 << 12) > 5);
    free(solved.at), free(called.at), free(root.at);
    cot_program_destroy(p);
    cot_tape_destroy(t);
}

/* A called program runs its loops by itself, once: with a derivative to come the same loop keeps
 * the states. */
static void steps_of_calls_count(void **state) {
    (void)state;
    char         message[512];
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_scalar(t, 3), one = cot_constant(t, 1), y;
    cot_mark     m = cot_tape_mark(t);
    cot_program *p = cot_compile(five_steps, NULL, 1, &(cot_type){COT_F64, COT_SCALAR}, 1, NULL);
    cot_program_call(p, 1, &one, 1, &y);
    file_bytes called = bytes_of(t, 1, &y);
    cot_tape_rewind(t, m);
    cot_program_call(p, 1, &x, 1, &y);
    file_bytes active = bytes_of(t, 1, &y);
    assert_ok(t);
    assert_int_equal(steps_of(&called, 100), 6);
    assert_int_equal(load_within(&called, 5, message), COT_LIMIT);
    assert_non_null(strstr(message, "[tape_load] the loops and solvers of the file take more steps than load_steps"));
    assert_int_equal(steps_of(&active, 100), 6);
    free(called.at), free(active.at);
    cot_program_destroy(p);
    cot_tape_destroy(t);
}

static int slowly(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var y;
    (void)n, (void)m, (void)user;
    cot_fori(halve_once, NULL, 0, 3, 1, &xs[0], &y, NULL);
    ys[0] = cot_sub(cot_add(y, cot_mul(y, cot_square(xs[0]))), xs[1]);
    return 0;
}
static int slow_root(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_root(slowly, NULL, NULL, cot_mul(xs[0], 2), 1, &xs[0], NULL);
    return 0;
}

/* The loops of a program are said to have no end. */
static int make_endless(cot__program *p) {
    int loops = 0;
    for (uint32_t k = 0; k < p->operations; k++) {
        if (p->operation[k].op != OP_loop) continue;
        ((cot__attr *)(uintptr_t)cot__operation_attr(p, k))->ints[COT__LOOP_LENGTH] = INT64_MAX;
        loops++;
    }
    return loops;
}

/* A derivative in a file is not believed to be one: what a called program runs of it is counted. */
static void steps_of_a_false_derivative_count(void **state) {
    (void)state;
    char         message[512];
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_constant(t, 3), y;
    cot_program *p = cot_compile(slow_root, NULL, 1, &(cot_type){COT_F64, COT_SCALAR}, 1, NULL);
    cot_program_call(p, 1, &x, 1, &y);
    file_bytes honest = bytes_of(t, 1, &y);
    for (uint32_t k = 0; k < p->source->operations; k++)
        if (p->source->operation[k].op == OP_root)
            assert_true(make_endless(p->source->body[p->source->operation[k].body + 1]) > 0);
    file_bytes lie = bytes_of(t, 1, &y);
    assert_ok(t);
    assert_int_equal(load_within(&honest, 10000, message), COT_OK);
    assert_int_equal(load_within(&lie, 10000, message), COT_LIMIT);
    free(honest.at), free(lie.at);
    cot_program_destroy(p);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_take_no_more_steps_than_the_options_allow),
        cmocka_unit_test(steps_of_calls_count),
        cmocka_unit_test(steps_of_solvers_count),
        cmocka_unit_test(steps_of_a_false_derivative_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
