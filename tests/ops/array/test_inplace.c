/* In-place operations are functional operations on donated memory: same values, same derivatives,
 * in leaves, views, scalars and borrowed memory. */
#include "ops/array/inplace_test.h"

#include "backend/elements.h"
#include "tape/tape.h"

/* ---- the same as their functional equivalents ------------------------------------------------ */

typedef cot_status (*into)(cot_var *, cot_var);
typedef cot_var (*functional)(cot_var, cot_var);

static cot_var right_operand(cot_var x, cot_var y) { (void)x; return y; }

static const struct { const char *name; into into; functional functional; } writes[] = {
    {"add", cot_add_into, cot_add}, {"sub", cot_sub_into, cot_sub}, {"mul", cot_mul_into, cot_mul},
    {"div", cot_div_into, cot_div}, {"copy", cot_copy_into, right_operand},
};

static const double weight[4] = {1, -2, 0.5, 3};

/* Gradients and Hessian of Σ w·(x·1 op y)·x, with the op in place (k) or not; which of x, y is a
 * leaf. */
static void run_one(int k, bool in_place, bool x_leaf, bool y_leaf, double *value, double *grad, double *second) {
    cot_tape *t = open_tape();
    cot_var   x = x_leaf ? leaf(t, 4, start) : cot_data(t, COT_F64, COT_SHAPE(4), start);
    cot_var   y = y_leaf ? leaf(t, 4, other) : cot_data(t, COT_F64, COT_SHAPE(4), other);
    cot_var   w = cot_data(t, COT_F64, COT_SHAPE(4), weight), z = cot_mul(x, 1.0);
    if (in_place)
        assert_int_equal(writes[k].into(&z, y), COT_OK);
    else
        z = writes[k].functional(z, y);
    cot_read(z, value, 4);
    cot_var f = cot_sum(cot_mul(w, cot_mul(z, cot_square(z))), COT_ALL), xs[2];
    int     n = 0;
    if (x_leaf) xs[n++] = x;
    if (y_leaf) xs[n++] = y;
    memset(grad, 0, 8 * sizeof *grad);
    memset(second, 0, 64 * sizeof *second);
    assert_int_equal(cot_hessian(f, n, xs, second), n ? COT_OK : COT_GRAD);
    cot_tape_clear_error(t);
    cot_backward(f);
    for (int i = 0; i < n; i++) cot_read_grad(xs[i], grad + 4 * i, 4);
    cot_tape_destroy(t);
}

static void values_and_derivatives_are_the_functional_ones(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof writes / sizeof *writes; k++)
        for (int which = 1; which < 4; which++) {
            /* depends on no leaf */
            if (writes[k].functional == right_operand && which == 1) continue;
            double value[2][4], grad[2][8], second[2][64];
            for (int in_place = 0; in_place < 2; in_place++)
                run_one((int)k, in_place, which & 1, which & 2, value[in_place], grad[in_place], second[in_place]);
            assert_memory_equal(value[0], value[1], sizeof value[0]);
            assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
            for (int i = 0; i < 64; i++) assert_near(second[0][i], second[1][i], 1e-12);
            assert_true(grad[0][0] != 0 || grad[0][4] != 0);
            assert_true(second[0][0] != 0 || second[0][36] != 0);
        }
}

static void update_slice_is_a_write_of_a_part(void **state) {
    (void)state;
    static const struct { int64_t start, stop, step; int at[4], n;
    } cases[] = {
        {1, 3, 1, {1, 2}, 2}, {0, COT_END, 2, {0, 2, 4}, 3}, {-1, COT_END, -2, {4, 2, 0}, 3},
        {3, 3, 1, {0}, 0},    {-2, -1, 1, {3}, 1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        cot_tape *t = open_tape();
        double    xv[5] = {1, 2, 3, 4, 5}, yv[4] = {-1, -2, -3, -4}, gx[5], gy[4] = {0}, z[5];
        cot_var   x = leaf(t, 5, xv), y = leaf(t, cases[c].n, yv), v = cot_mul(x, 2.0);
        assert_int_equal(cot_update_slice(&v, 0, cases[c].start, cases[c].stop, cases[c].step, cot_mul(y, 1.0)),
                         COT_OK);
        for (int i = 0; i < 5; i++) z[i] = 2 * xv[i], gx[i] = 4 * z[i];
        for (int i = 0; i < cases[c].n; i++) {
            z[cases[c].at[i]] = yv[i];
            gx[cases[c].at[i]] = 0;
            gy[i] = 2 * yv[i];
        }
        assert_values(v, 5, z);
        cot_backward(cot_sum(cot_square(v), COT_ALL));
        assert_ok(t);
        assert_grads(x, 5, gx);
        assert_grads(y, cases[c].n, gy);
        cot_tape_destroy(t);
    }
}

static void update_slice_broadcasts_and_takes_numbers(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6}), v = cot_mul(x, 1.0),
            s = cot_scalar(t, 7);
    cot_update_slice(&v, 1, 0, 2, 1, s);
    cot_update_slice(&v, 0, 1, 2, 1, 0.5);
    assert_values(v, 6, (double[]){7, 7, 3, 0.5, 0.5, 0.5});
    cot_backward(cot_sum(cot_square(v), COT_ALL));
    assert_ok(t);
    assert_grads(x, 6, (double[]){0, 0, 6, 0, 0, 0});
    assert_near(cot_grad_value(s), 28, 0);
    cot_tape_destroy(t);
}

static void operands_that_overlap_are_read_before_they_are_written(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 5, (double[]){1, 2, 3, 4, 5}), v = cot_mul(x, 1.0);
    cot_var   head = cot_slice(v, 0, 0, 4, 1), tail = cot_slice(v, 0, 1, COT_END, 1);
    cot_add_into(&tail, head); /* x[1:] += x[:-1], not a running sum */
    assert_values(tail, 4, (double[]){3, 5, 7, 9});
    cot_backward(cot_sum(cot_square(tail), COT_ALL));
    assert_ok(t);
    assert_grads(x, 5, (double[]){6, 16, 24, 32, 18});
    cot_tape_destroy(t);

    t = open_tape();
    x = leaf(t, 4, (double[]){1, 2, 3, 4});
    v = cot_mul(x, 1.0);
    cot_copy_into(&v, cot_flip(v, COT_ALL));
    assert_values(v, 4, (double[]){4, 3, 2, 1});
    cot_mul_into(&v, v);
    assert_values(v, 4, (double[]){16, 9, 4, 1});
    cot_update_slice(&v, 0, 1, COT_END, 1, cot_slice(v, 0, 0, 3, 1));
    assert_values(v, 4, (double[]){16, 16, 9, 4});
    cot_backward(cot_sum(v, COT_ALL)); /* Σ = 2·x₃² + x₂² + x₁² */
    assert_ok(t);
    assert_grads(x, 4, (double[]){0, 4, 6, 16});
    cot_tape_destroy(t);
}

static void writing_in_a_loop_accumulates(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, (double[]){1.1, 0.9, 1.2}), p = cot_mul(x, 1.0), s = cot_zeros(t, COT_F64, COT_SHAPE(3));
    for (int k = 0; k < 4; k++) { /* p = x^(k+2), s = Σ */
        cot_mul_into(&p, x);
        cot_add_into(&s, p);
    }
    cot_backward(cot_sum(s, COT_ALL));
    assert_ok(t);
    double want[3], xs[3] = {1.1, 0.9, 1.2};
    for (int i = 0; i < 3; i++) want[i] = 2 * xs[i] + 3 * pow(xs[i], 2) + 4 * pow(xs[i], 3) + 5 * pow(xs[i], 4);
    assert_grads(x, 3, want);
    double hessian[9];
    assert_int_equal(cot_hessian(cot_sum(s, COT_ALL), 1, &x, hessian), COT_OK);
    for (int i = 0; i < 3; i++)
        assert_near(hessian[4 * i], 2 + 6 * xs[i] + 12 * pow(xs[i], 2) + 20 * pow(xs[i], 3), 1e-11);
    assert_near(hessian[1], 0, 0);
    cot_tape_destroy(t);
}

static void a_scalar_is_simply_replaced(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3), y = x, z = cot_mul(x, x);
    cot_mul_into(&y, x);
    cot_add_into(&y, 1.0);
    cot_sub_into(&y, z);
    cot_div_into(&y, 2.0);
    assert_near(cot_value(y), 0.5, 0);
    assert_near(cot_value(x), 3, 0);
    cot_copy_into(&y, cot_exp(x));
    cot_backward(y);
    assert_ok(t);
    assert_near(cot_grad_value(x), exp(3), 1e-13);
    cot_tape_destroy(t);
}

static void a_leaf_may_be_written(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 2, (double[]){1, 2}), old = x;
    cot_add_into(&x, 1.0);
    cot_backward(cot_sum(cot_square(x), COT_ALL));
    assert_ok(t);
    double g[2];
    /* the leaf is still the leaf: gradients are its own */
    assert_int_equal(cot_read_grad(old, g, 2), COT_OK);
    assert_near(g[0], 4, 0);
    assert_near(g[1], 6, 0);
    cot_tape_destroy(t);
}

static void other_dtypes_are_written_in_their_own(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   i = cot_data(t, COT_I32, COT_SHAPE(3), (int32_t[]){1, 2, 3}), h = cot_zeros(t, COT_F16, COT_SHAPE(2));
    cot_add_into(&i, cot_integer(2));
    cot_mul_into(&i, i);
    assert_values(i, 3, (double[]){9, 16, 25});
    assert_int_equal(cot_dtype_of(i), COT_I32);
    cot_add_into(&h, 0.1);
    assert_int_equal(cot_dtype_of(h), COT_F16);
    double got[2];
    cot_read(h, got, 2);
    assert_near(got[0], 0.0999755859375, 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- targets that cannot be written ---------------------------------------------------------- */

static void a_broadcast_view_cannot_be_written(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), b = cot_broadcast_to(x, COT_SHAPE(2, 3));
    cot_add_into(&b, 1.0);
    assert_error(t, COT_VALUE,
                 "[add_into] the target broadcast_to (v₁) is a broadcast view: one element stands for many; copy it "
                 "before writing");
    cot_tape_clear_error(t);
    cot_update_slice(&b, 0, 0, 1, 1, 1.0);
    assert_error(t, COT_VALUE,
                 "[update_slice] the target broadcast_to (v₁) is a broadcast view: one element stands for many; copy "
                 "it before writing");
    cot_tape_clear_error(t);
    cot_copy_into(&b, 1.0);
    assert_error(t, COT_VALUE,
                 "[copy_into] the target broadcast_to (v₁) is a broadcast view: one element stands for many; copy it "
                 "before writing");
    cot_tape_destroy(t);
}

/* Scalars are replaced, but by the rules of tensors: the target keeps its dtype, and its value is
 * its own. */
static void scalar_targets_keep_their_dtype(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar_of(t, COT_F32, 1), y = cot_scalar(t, 0.1), n = cot_cast(cot_constant(t, 7), COT_I32);
    cot_add_into(&x, y);
    assert_int_equal(cot_dtype_of(x), COT_F32);
    assert_near(cot_value(x), (double)(1.0f + 0.1f), 0);
    cot_backward(x);
    assert_near(cot_grad_value(y), 1, 0);
    cot_mul_into(&n, cot_integer(3));
    assert_true(cot_dtype_of(n) == COT_I32 && cot_value(n) == 21);
    cot_var flag = cot_greater(y, 0.0);
    cot_add_into(&flag, flag);
    assert_true(cot_dtype_of(flag) == COT_BOOL && cot_value(flag) == 1);
    assert_ok(t);
    cot_add_into(&n, 0.5);
    assert_error(t, COT_DTYPE,
                 "[add_into] a value of dtype f64 does not fit into a target of dtype i32; cast it first");
    cot_tape_clear_error(t);
    cot_div_into(&n, n);
    assert_error(t, COT_DTYPE, "[div_into] the result is a fraction and does not fit into a target of dtype i32");
    cot_tape_clear_error(t);
    cot_var copy = cot_constant(t, 0);
    cot_copy_into(&copy, y);
    cot_assign(y, 9.0);
    assert_near(cot_value(copy), 0.1, 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void whole_numbers_are_assigned_exactly(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   n = cot_data(t, COT_I64, COT_SHAPE(1), NULL);
    int64_t   odd = (INT64_C(1) << 53) + 1;
    cot_assign(n, cot_integer(odd));
    assert_true(cot_value_i64(n) == odd);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   i = cot_data(t, COT_I64, COT_SHAPE(3), (int64_t[]){1, 2, 3}), x = leaf(t, 3, start), s = cot_scalar(t, 1),
            big = leaf(t, 4, start);
    cot_add_into(&i, x);
    assert_error(t, COT_DTYPE,
                 "[add_into] a value of dtype f64 does not fit into a target of dtype i64; cast it first");
    cot_tape_clear_error(t);
    cot_div_into(&i, i);
    assert_error(t, COT_DTYPE, "[div_into] the result is a fraction and does not fit into a target of dtype i64");
    cot_tape_clear_error(t);
    cot_mul_into(&s, x);
    assert_error(t, COT_SHAPE, "[mul_into] a scalar target cannot take the shape of the other operand");
    cot_tape_clear_error(t);
    cot_copy_into(&x, big);
    assert_error(t, COT_SHAPE,
                 "[copy_into] (4,) does not broadcast to (3,); aligned at the last axis, extents are equal or 1");
    cot_tape_clear_error(t);
    cot_update_slice(&s, 0, 0, 1, 1, 1.0);
    assert_error(t, COT_SHAPE, "[update_slice] axis 0 is out of range for rank 0; a scalar has no axes");
    cot_tape_clear_error(t);
    cot_update_slice(&x, 0, 0, 1, 0, 1.0);
    assert_error(t, COT_VALUE, "[update_slice] the step is 0; steps are positive or negative");
    cot_tape_clear_error(t);
    assert_values(x, 3, start);
    cot_tape_destroy(t);
}

/* ---- borrowed memory ------------------------------------------------------------------------- */

/* A tape on a device (COT_TEST_BACKEND) borrows nothing, and says so. */
static bool borrowing_is_refused(void) {
    double    memory[1] = {1};
    cot_tape *t = open_tape();
    bool      refused = !cot__on_host(t->backend);
    cot_wrap(t, COT_F64, COT_SHAPE(1), memory);
    if (refused)
        assert_error(t, COT_VALUE,
                     "[wrap] the device of this tape, guarded, cannot borrow memory of the host; use cot_data, which "
                     "copies");
    else assert_ok(t);
    cot_tape_destroy(t);
    return refused;
}

static void borrowed_memory_is_written_in_place(void **state) {
    (void)state;
    if (borrowing_is_refused()) return;
    double    memory[3] = {1, 2, 3};
    cot_tape *t = open_tape();
    cot_var   w = cot_wrap(t, COT_F64, COT_SHAPE(3), memory), x = leaf(t, 3, start);
    cot_mul_into(&w, x);
    assert_near(memory[0], 1.5, 0);
    assert_near(memory[1], -4, 0);
    cot_backward(cot_sum(w, COT_ALL));
    assert_ok(t);
    assert_grads(x, 3, (double[]){1, 2, 3}); /* the old numbers */
    assert_int_equal(cot_tape_storage_bytes(t) % (int64_t)sizeof(double), 0);
    cot_tape_destroy(t);
    assert_near(memory[2], 2.25, 0);
}

static void touch_tells_of_a_write_from_outside(void **state) {
    (void)state;
    if (borrowing_is_refused()) return;
    double    memory[3] = {1, 2, 3};
    cot_tape *t = open_tape();
    cot_var   w = cot_wrap(t, COT_F64, COT_SHAPE(3), memory), old = w, x = leaf(t, 3, start), y = cot_mul(x, w);
    memory[0] = 10;
    cot_touch(&w);
    assert_values(w, 3, (double[]){10, 2, 3});
    cot_exp(old);
    assert_error(t, COT_STALE,
                 "[exp] the operand, constant (c₁), was overwritten by a write from outside (cot_touch); use the var "
                 "that the write updated");
    cot_tape_clear_error(t);
    cot_backward(cot_sum(y, COT_ALL));
    assert_error(t, COT_STALE,
                 "[backward] mul (v₁) needs the value of constant (c₁), which was overwritten by a write from outside "
                 "(cot_touch); "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_clear_error(t);
    cot_backward(cot_sum(cot_mul(x, w), COT_ALL));
    assert_ok(t);
    assert_grads(x, 3, (double[]){10, 2, 3});
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_derivatives_are_the_functional_ones),
        cmocka_unit_test(update_slice_is_a_write_of_a_part),
        cmocka_unit_test(update_slice_broadcasts_and_takes_numbers),
        cmocka_unit_test(operands_that_overlap_are_read_before_they_are_written),
        cmocka_unit_test(writing_in_a_loop_accumulates),
        cmocka_unit_test(a_scalar_is_simply_replaced),
        cmocka_unit_test(a_leaf_may_be_written),
        cmocka_unit_test(other_dtypes_are_written_in_their_own),
        cmocka_unit_test(a_broadcast_view_cannot_be_written),
        cmocka_unit_test(scalar_targets_keep_their_dtype),
        cmocka_unit_test(whole_numbers_are_assigned_exactly),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(borrowed_memory_is_written_in_place),
        cmocka_unit_test(touch_tells_of_a_write_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
