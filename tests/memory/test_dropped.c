/* Values that were dropped under a memory limit are made again, with the bits they had, or are
 * stale where what they come from was written. */
#include "memory/memory.h"
#include "support/tape_test.h"

/* A tape on which everything that can be dropped is. */
static cot_tape *dropping_tape(void) {
    cot__drop_always = true;
    cot_tape *t = cot_tape_create(NULL);
    return t;
}

static int no_more_dropping(void **state) {
    (void)state;
    cot__drop_always = getenv("COT_TEST_DROP") != NULL;
    return 0;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void a_leaf_that_was_written_makes_dropped_values_stale(void **state) {
    (void)state;
    cot_tape *t = dropping_tape();
    cot_var   w = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), "w"), y = cot_exp(w);
    double    out[3];
    cot_square(y); /* so that y was let go */
    cot_assign(w, 5.0);
    cot_read(y, out, 3);
    assert_error(t, COT_STALE,
                 "[read] the value of exp (v₁) was dropped under the memory limit of 0 bytes, and computing it again "
                 "would read leaf (w), which was overwritten by cot_assign; read it before the write, or raise "
                 "the limit");
    cot_tape_destroy(t);
}

static int unchanged(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = xs[1];
    return 0;
}

/* The loop takes no step, so nothing but its first value is read. */
static void a_plan_through_a_loop_says_that_its_first_value_is_stale(void **state) {
    (void)state;
    cot_tape *t = dropping_tape();
    cot_var   w = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), "w"), y = cot_exp(w);
    cot_var   z;
    cot_fori(unchanged, NULL, 0, 0, 1, &y, &z, NULL);
    cot_square(y); /* so that y was let go */
    cot_assign(w, 5.0);
    assert_null(cot_sparse_jacobian_plan(1, &z, 1, &w, COT_AUTO));
    assert_error(t, COT_STALE,
                 "[sparse_jacobian_plan] the value of exp (v₁) was dropped under the memory limit of 0 bytes, and "
                 "computing it again would read leaf (w), which was overwritten by cot_assign; read it before the "
                 "write, or raise the limit");
    cot_tape_destroy(t);
}

static void wrapped_memory_that_was_touched_makes_dropped_values_stale(void **state) {
    (void)state;
    cot_tape *t = dropping_tape();
    double    memory[3] = {1, 2, 3}, out[3];
    cot_var   w = cot_wrap(t, COT_F64, COT_SHAPE(3), memory), y = cot_exp(w);
    cot_square(y);
    memory[0] = 7;
    cot_touch(&w);
    cot_read(y, out, 3);
    assert_int_equal(cot_tape_status(t), COT_STALE);
    assert_non_null(strstr(cot_tape_message(t), "which was overwritten by a write from outside (cot_touch)"));
    cot_tape_destroy(t);
}

/* Values that were made from what is overwritten are made before. */
static void writes_in_place_leave_other_values_as_they_were(void **state) {
    (void)state;
    cot_tape *t = dropping_tape();
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), y = cot_square(x);
    cot_var   z = cot_add(y, 1.0), part = cot_slice(y, 0, 1, 3, 1), u = cot_mul(part, 10.0);
    cot_exp(z);
    double out[3];
    cot_var w = y;
    cot_add_into(&w, 100.0);
    cot_read(z, out, 3);
    assert_memory_equal(out, ((double[]){2, 5, 10}), sizeof out);
    cot_read(u, out, 2);
    assert_memory_equal(out, ((double[]){40, 90}), 2 * sizeof *out);
    cot_read(w, out, 3);
    assert_memory_equal(out, ((double[]){101, 104, 109}), sizeof out);
    assert_ok(t);
    cot_backward(cot_sum(cot_mul(z, w), COT_ALL));
    cot_read_grad(x, out, 3); /* (x² + 1)(x² + 100): 2x (2x² + 101) */
    assert_memory_equal(out, ((double[]){206, 436, 714}), sizeof out);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void random_numbers_are_drawn_again(void **state) {
    (void)state;
    cot_tape *t = dropping_tape();
    cot_var   u = cot_normal(t, cot_key_of(5), COT_F64, COT_SHAPE(7)), v = cot_exp(u);
    double    a[7], b[7];
    cot_read(u, a, 7);
    cot_square(v);
    assert_true(t->nodes[cot__index(u)].value.tensor->storage->dropped);
    cot_read(u, b, 7);
    assert_memory_equal(a, b, sizeof a);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- failing memory -------------------------------------------------------------------------- */

static int doubled_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    for (int64_t k = 0; k < y->size; k++) ((double *)y->data)[k] = 2 * ((const double *)xs[0].data)[k];
    return 0;
}

static void dropping_program(cot_tape *t, void *user) {
    (void)user;
    cot_var  x = cot_tensor(t, COT_F64, COT_SHAPE(4, 4), NULL), h = x;
    double   out[16];
    static const cot_custom doubled = {.value = doubled_value, .pure = true};
    for (int i = 0; i < 6; i++) h = cot_tanh(cot_matmul(cot_add(h, 0.5), cot_transpose(x)));
    cot_var twice = cot_call(&doubled, 1, &h, NULL);
    cot_exp(h);
    cot_read(twice, out, 16);
    cot_var s = cot_softmax(h, 1), w = cot_square(s);
    cot_add_into(&w, cot_max(h, COT_AXES(0)));
    cot_backward(cot_sum(cot_mul(w, s), COT_ALL));
    cot_read(h, out, 16);
    cot_read_grad(x, out, 16);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    cot__drop_always = true;
    assert_survives_no_memory(dropping_program, NULL, 0, NULL);
}

/* ---- functions of the user's ----------------------------------------------------------------- */

/* Calls are counted in *user; from the fourth on it fails. */
static int squares(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n;
    const double *x = xs[0].data;
    double       *out = y->data;
    for (int64_t k = 0; k < y->size; k++) out[k] = x[k] * x[k];
    return ++*(int *)user > 3 ? 9 : 0;
}

static void a_pure_function_is_called_again(void **state) {
    (void)state;
    for (int pure = 0; pure < 2; pure++) {
        cot_tape  *t = dropping_tape();
        cot_custom op = {.name = "squares", .value = squares, .pure = pure != 0};
        int        calls = 0;
        cot_var    x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3});
        cot_var    y = cot_call(&op, 1, &x, &calls);
        double     out[3];
        for (int k = 0; k < 2; k++) {
            cot_exp(x); /* so that y is let go */
            cot_read(y, out, 3);
            assert_ok(t);
            assert_memory_equal(out, ((double[]){1, 4, 9}), sizeof out);
            assert_int_equal(calls, pure ? 2 + k : 1);
        }
        cot_exp(x);
        cot_read(y, out, 3);
        if (pure) assert_error(t, COT_CUSTOM, "[squares] value failed with code 9");
        else assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* y = y·x + x */
static int horner(int n, const cot_var *in, int m, cot_var *out, void *user) {
    (void)n, (void)m, (void)user;
    out[0] = cot_add(cot_mul(in[0], in[1]), in[1]);
    return 0;
}

/* A step of a loop works on slices, which lie in the memory of what is sliced. */
static void a_pattern_is_found_through_slices_of_a_dropped_value(void **state) {
    (void)state;
    cot_tape *t = dropping_tape();
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), (double[]){1, 2, 3, 4, 5, 6}), xs = cot_tanh(x);
    cot_var   y = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, 1});
    cot_scan(horner, NULL, -1, 1, &y, 1, &xs, &y, 0, NULL, NULL);
    cot_sparse_plan *plan = cot_sparse_hessian_plan(cot_sum(y, COT_ALL), 1, &x);
    assert_string_equal(cot_tape_message(t), "");
    assert_int_equal(cot_sparse_plan_info(plan).nnz, 2 * 3 * 3);
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_leaf_that_was_written_makes_dropped_values_stale, no_more_dropping),
        cmocka_unit_test_teardown(a_plan_through_a_loop_says_that_its_first_value_is_stale, no_more_dropping),
        cmocka_unit_test_teardown(wrapped_memory_that_was_touched_makes_dropped_values_stale, no_more_dropping),
        cmocka_unit_test_teardown(writes_in_place_leave_other_values_as_they_were, no_more_dropping),
        cmocka_unit_test_teardown(random_numbers_are_drawn_again, no_more_dropping),
        cmocka_unit_test_teardown(a_pattern_is_found_through_slices_of_a_dropped_value, no_more_dropping),
        cmocka_unit_test_teardown(a_pure_function_is_called_again, no_more_dropping),
        cmocka_unit_test_teardown(any_allocation_may_fail, no_more_dropping),
    };
    return cmocka_run_group_tests_name("dropped", tests, NULL, NULL);
}
