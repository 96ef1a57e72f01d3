/* Errors of structural operations: the text of every error, operands that are not values, and
 * writes over values that rules have saved. */
#include "support/structural_test.h"


static void says(cot_tape *t, cot_var z, cot_status code, const char *text) {
    assert_false(cot_is_valid(z));
    assert_string_equal(cot_tape_message(t), text);
    assert_int_equal(cot_tape_status(t), code);
    cot_tape_clear_error(t);
}

/* AddressSanitizer ends a process that asks for more memory than there is, unless it is told to
 * answer like malloc. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

static void errors_name_the_operation_the_facts_and_the_rule(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var x = iota(t, S(2, 3)), v = iota(t, S(3)), s = cot_constant(t, 1), e = cot_zeros(t, COT_F64, S(0, 3)), out[2];
#define SAYS(z, code, text) says(t, z, code, text)
    SAYS(cot_sum(x, COT_AXES(2)), COT_SHAPE, "[sum] axis 2 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_sum(x, COT_AXES(0, -2)), COT_SHAPE, "[sum] axis 0 is listed twice; each axis may appear once");
    SAYS(cot_mean(s, COT_AXES(0)), COT_SHAPE, "[mean] axis 0 is out of range for rank 0; a scalar has no axes");
    SAYS(cot_max(e, COT_ALL), COT_SHAPE,
         "[max] shape (0,3) has no elements along the reduced axes; an empty max does not exist");
    SAYS(cot_norm(e, INFINITY, COT_ALL), COT_SHAPE,
         "[norm] shape (0,3) has no elements along the reduced axes; an empty norm does not exist");
    SAYS(cot_argmin(e, COT_AXES(0)), COT_SHAPE,
         "[argmin] shape (0,3) has no elements along the reduced axes; an empty argmin does not exist");
    SAYS(cot_argmax(x, COT_AXES(0, 1)), COT_SHAPE,
         "[argmax] 2 axes are listed; positions run along one axis, or along all with COT_ALL");
    SAYS(cot_norm(x, NAN, COT_ALL), COT_VALUE, "[norm] the order is NaN; orders are numbers, INFINITY or -INFINITY");
    SAYS(cot_cast(x, (cot_dtype)77), COT_DTYPE, "[cast] 77 is not a dtype; dtypes are COT_F64 … COT_BOOL");
    SAYS(cot_reshape(x, S(4)), COT_SHAPE,
         "[reshape] (2,3) has 6 elements and does not fit (4,); the number of elements stays the same");
    SAYS(cot_reshape(x, S(4, -1)), COT_SHAPE,
         "[reshape] (2,3) has 6 elements and does not fit (4,-1); the number of elements stays the same");
    SAYS(cot_reshape(x, S(-1, -1)), COT_SHAPE,
         "[reshape] axes 0 and 1 both have extent -1; one extent may be left open");
    SAYS(cot_reshape(x, S(-2, 3)), COT_SHAPE,
         "[reshape] axis 0 of shape (-2,3) has extent -2; extents are not negative");
    SAYS(cot_reshape(e, S(0, INT64_MAX, 2)), COT_LIMIT,
         "[reshape] shape (0,9223372036854775807,2) has too many elements to address");
    SAYS(cot_reshape(x, ((cot_shape){17, {0}})), COT_LIMIT, "[reshape] a shape of 17 axes; shapes have 0 to 16 axes");
    SAYS(cot_permute(x, COT_AXES(0)), COT_SHAPE,
         "[permute] 1 axes are listed for rank 2; the order lists every axis once");
    SAYS(cot_permute(x, COT_AXES(1, 1)), COT_SHAPE, "[permute] axis 1 is listed twice; each axis may appear once");
    SAYS(cot_broadcast_to(x, S(2, 4)), COT_SHAPE,
         "[broadcast_to] (2,3) does not broadcast to (2,4); aligned at the last axis, extents are equal or 1");
    SAYS(cot_broadcast_to(x, S(3)), COT_SHAPE,
         "[broadcast_to] (2,3) does not broadcast to (3,); aligned at the last axis, extents are equal or 1");
    SAYS(cot_expand_dims(x, 4), COT_SHAPE, "[expand_dims] axis 4 is out of range for rank 3; axes run from -3 to 2");
    SAYS(cot_expand_dims(cot_ones(t, COT_F64, ((cot_shape){16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}})), 0),
         COT_LIMIT, "[expand_dims] the operand has 16 axes already; there are at most 16");
    SAYS(cot_squeeze(x, COT_AXES(1)), COT_SHAPE, "[squeeze] axis 1 has extent 3; only axes of extent 1 can go");
    SAYS(cot_slice(x, 0, 0, 1, 0), COT_VALUE, "[slice] the step is 0; steps are positive or negative");
    SAYS(cot_slice(s, 0, 0, 1, 1), COT_SHAPE, "[slice] axis 0 is out of range for rank 0; a scalar has no axes");
    SAYS(cot_index(x, 1, 3), COT_VALUE, "[index] position 3 is out of range for axis 1 of extent 3");
    SAYS(cot_index(x, 1, -4), COT_VALUE, "[index] position -4 is out of range for axis 1 of extent 3");
    SAYS(cot_concat(1, &s, 0), COT_SHAPE,
         "[concat] the operands are scalars, which have no axis; cot_stack joins scalars");
    SAYS(CONCAT(2, 0, x, v), COT_SHAPE,
         "[concat] xs[0] has shape (2,3), xs[1] has (3,); all extents but the one along the axis must be equal");
    SAYS(STACK(3, 0, v, v, x), COT_SHAPE, "[stack] xs[0] has shape (3,), xs[2] has (2,3); all shapes must be equal");
    SAYS(cot_pad(x, S(1), S(1, 1), 0), COT_SHAPE,
         "[pad] 1 extents before and 2 after for rank 2; one of each for every axis");
    SAYS(cot_pad(x, S(0, -1), S(0, 0), 0), COT_VALUE,
         "[pad] -1 before and 0 after on axis 1; a border is not negative");
    SAYS(cot_take(x, INTS(S(2, 2), 0, 1, 3, 0), 1), COT_VALUE,
         "[take] indices[1,0] is 3, out of range for extent 3; values run from -3 to 2");
    SAYS(cot_take(x, v, 1), COT_DTYPE, "[take] indices have dtype f64; they must be integers");
    SAYS(cot_take(e, INTS(S(1), 0), 0), COT_VALUE,
         "[take] indices[0] is 0, but the axis has extent 0; it has no positions");
    SAYS(cot_take_along_axis(x, INTS(S(1, 1), 0), 1), COT_SHAPE,
         "[take_along_axis] x has shape (2,3), indices (1,1); they agree in all extents but the one along axis 1");
    SAYS(cot_scatter_add(v, INTS(S(2), 0, 1), v, 0), COT_SHAPE,
         "[scatter_add] the updates have shape (3,); the positions ask for (2,)");
    SAYS(cot_scatter_add(cot_zeros(t, COT_BF16, S(3)), cot_broadcast_to(INTS(S(1), 0), S((int64_t)1 << 57)),
                         cot_number(1), 0),
         COT_MEMORY, "[scatter_add] out of memory: 576460752303423504 bytes of workspace");
    SAYS(cot_one_hot(INTS(S(2), 0, 4), 4, COT_F64), COT_VALUE,
         "[one_hot] indices[1] is 4, out of range for extent 4; values run from -4 to 3");
    SAYS(cot_matmul(cot_zeros(t, COT_F32, S(64, 128)), cot_zeros(t, COT_F32, S(64, 10))), COT_SHAPE,
         "[matmul] inner dimensions differ: (64,128) @ (64,10); the last axis of a must equal the second last of b");
    SAYS(cot_matmul(x, iota(t, S(2))), COT_SHAPE,
         "[matmul] inner dimensions differ: (2,3) @ (2,); the last axis of a must equal the only one of b");
    SAYS(cot_matmul(x, s), COT_SHAPE,
         "[matmul] a scalar has no axis to multiply along: (2,3) @ (); cot_mul takes scalars");
    SAYS(cot_matmul(iota(t, S(2, 2, 3)), iota(t, S(3, 3, 1))), COT_SHAPE,
         "[matmul] leading axes do not broadcast: (2,2,3) @ (3,3,1); aligned before the last two, extents are equal or "
         "1");
    SAYS(cot_dot(x, v), COT_SHAPE, "[dot] the operands have shapes (2,3) and (3,); both must be vectors");
    SAYS(cot_dot(v, iota(t, S(2))), COT_SHAPE,
         "[dot] the operands have shapes (3,) and (2,); both must have the same extent");
    SAYS(cot_outer(v, s), COT_SHAPE, "[outer] the operands have shapes (3,) and (); both must be vectors");
    SAYS(cot_softmax(x, -3), COT_SHAPE, "[softmax] axis -3 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_softmax_cross_entropy(x, INTS(S(2), 0, 3)), COT_VALUE,
         "[softmax_cross_entropy] labels[1] is 3, out of range for extent 3; values run from 0 to 2");
    SAYS(cot_softmax_cross_entropy(x, INTS(S(1), 0)), COT_SHAPE,
         "[softmax_cross_entropy] predictions of shape (2,3) need labels of shape (2,); these have (1,)");
    SAYS(cot_cross_entropy(x, v), COT_SHAPE,
         "[cross_entropy] predictions of shape (2,3) need targets of shape (2,3); these have (3,)");
    SAYS(cot_cross_entropy(s, s), COT_SHAPE,
         "[cross_entropy] the predictions have shape (); the last axis holds the classes, at least one");
    SAYS(cot_mse(x, v), COT_SHAPE,
         "[mse] the operands have shapes (2,3) and (3,); they must be equal, or one a scalar: this does not broadcast, "
         "and cot_reshape or cot_broadcast_to say what is meant");
    SAYS(cot_arange(t, COT_F64, 0, 1, 0), COT_VALUE,
         "[arange] start 0, stop 1, step 0; these and stop - start must be finite, and the step not 0");
    SAYS(cot_arange(t, COT_F64, 0, 1e300, 1), COT_LIMIT,
         "[arange] start 0, stop 1e+300, step 1; these are too many elements to address");
    SAYS(cot_arange(t, COT_F64, -1e308, 1.5e308, 1e308), COT_VALUE,
         "[arange] start -1e+308, stop 1.5e+308, step 1e+308; these and stop - start must be finite, and the step not "
         "0");
    SAYS(cot_arange(t, COT_F64, 0, 1, 1e-310), COT_LIMIT,
         "[arange] start 0, stop 1, step 1e-310; these are too many elements to address");
    SAYS(cot_arange(t, COT_I64, 1e19, 1e19 + 4096, 2048), COT_DTYPE,
         "[arange] from 1e+19 to 1.0000000000000002e+19, which i64 does not hold; choose a wider dtype");
    SAYS(cot_arange(t, COT_I32, 0, 0x1p31 + 1, 0x1p30), COT_DTYPE,
         "[arange] from 0 to 2147483648, which i32 does not hold; choose a wider dtype");
    SAYS(cot_arange(t, COT_U8, 250, 257, 1), COT_DTYPE,
         "[arange] from 250 to 256, which u8 does not hold; choose a wider dtype");
    SAYS(cot_arange(t, COT_U8, 2, -2, -1), COT_DTYPE,
         "[arange] from 2 to -1, which u8 does not hold; choose a wider dtype");
    SAYS(cot_linspace(t, COT_I32, 0, 1e10, 5), COT_DTYPE,
         "[linspace] from 0 to 10000000000, which i32 does not hold; choose a wider dtype");
    SAYS(cot_linspace(t, COT_I32, NAN, 1, 5), COT_DTYPE,
         "[linspace] from nan to 1, which i32 does not hold; choose a wider dtype");
    SAYS(cot_linspace(t, COT_U8, -1, 1, 3), COT_DTYPE,
         "[linspace] from -1 to 1, which u8 does not hold; choose a wider dtype");
    SAYS(cot_linspace(t, COT_F64, 0, 1, -1), COT_SHAPE,
         "[linspace] axis 0 of shape (-1,) has extent -1; extents are not negative");
    SAYS(cot_zeros(t, (cot_dtype)-1, S(1)), COT_DTYPE, "[zeros] -1 is not a dtype; dtypes are COT_F64 … COT_BOOL");
    assert_int_equal(cot_split(x, 2, 1, out), COT_SHAPE);
    SAYS(out[1], COT_SHAPE, "[split] axis 1 of extent 3 does not split into 2 equal parts");
    cot_mark m = cot_tape_mark(t);
    cot_var  gone = cot_add(s, 1.0);
    cot_tape_rewind(t, m);
    SAYS(cot_sum(gone, COT_ALL), COT_VAR, "[sum] the operand was forgotten by a rewind");
    SAYS(STACK(2, 0, s, gone), COT_VAR, "[stack] the xs[1] operand was forgotten by a rewind");
    SAYS(cot_matmul(x, gone), COT_VAR, "[matmul] the right operand was forgotten by a rewind");
    cot_tape_destroy(t);
}

/* After an error every operation is a no-op that keeps the first message. */
static void errors_stick(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(2, 3)), bad = cot_sum(x, COT_AXES(5));
    int64_t   length = cot_tape_length(t);
    assert_false(cot_is_valid(cot_matmul(x, bad)));
    assert_false(cot_is_valid(cot_transpose(x)));
    assert_false(cot_is_valid(cot_stack(2, (cot_var[]){x, x}, 0)));
    assert_false(cot_is_valid(cot_mse(x, 1.0)));
    assert_false(cot_is_valid(cot_variance(x, COT_ALL)));
    assert_false(cot_is_valid(cot_zeros(t, COT_F64, S(2))));
    assert_int_equal(cot_tape_length(t), length);
    assert_string_equal(cot_tape_message(t), "[sum] axis 5 is out of range for rank 2; axes run from -2 to 1");
    cot_tape_destroy(t);
}

static void nothing_comes_of_nothing(void **state) {
    (void)state;
    cot_var none = {NULL, 0}, number = cot_number(2), out[2];
    assert_false(cot_is_valid(cot_zeros(NULL, COT_F64, S(2))));
    assert_false(cot_is_valid(cot_sum(none, COT_ALL)));
    assert_false(cot_is_valid(cot_sum(number, COT_ALL)));
    assert_false(cot_is_valid(cot_matmul(number, number)));
    assert_false(cot_is_valid(cot_mse(1.0, 2.0)));
    assert_false(cot_is_valid(cot_stack(1, &number, 0)));
    assert_false(cot_is_valid(cot_stack(0, NULL, 0)));
    assert_false(cot_is_valid(cot_take(none, none, 0)));
    assert_false(cot_is_valid(cot_softmax(number, 0)));
    assert_false(cot_is_valid(cot_cross_entropy(none, none)));
    assert_int_not_equal(cot_split(none, 2, 0, out), COT_OK);
    assert_false(cot_is_valid(out[1]));
}

static void in_place_checks_know_what_rules_saved(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(2, 2), (double[]){1, 2, 3, 4});
    cot_var   y = cot_mul(x, 2.0), s = cot_sum(y, COT_ALL); /* a sum saves nothing */
    cot_add_into(&y, cot_number(1));
    assert_int_equal(cot_backward(s), COT_OK);
    cot_var z = cot_mul(x, 2.0), m = cot_matmul(z, x); /* a product saves both */
    cot_add_into(&z, cot_number(1));
    assert_int_equal(cot_backward(cot_sum(m, COT_ALL)), COT_STALE);
    cot_tape_destroy(t);
}

/* Next to a constant a factor is free, the constant is not; positions are read again by the
 * transposes. */
static void strict_tapes_protect_what_adjoints_read_and_nothing_else(void **state) {
    (void)state;
    cot_options options = {.strict = true};
    cot_tape   *t = cot_tape_create(&options);
    cot_var     x = cot_tensor(t, COT_F64, S(2, 2), (double[]){1, 2, 3, 4}), a = REALS(S(2, 2), 1, 1, 2, 2);
    cot_var     y = cot_add(x, 0.0), m = cot_matmul(a, y), p = cot_mul(y, a);
    assert_int_equal(cot_add_into(&y, cot_number(1)), COT_OK);
    assert_int_equal(cot_backward(cot_add(cot_sum(m, COT_ALL), cot_sum(p, COT_ALL))), COT_OK);
    double g[4], want[4] = {3 + 1, 3 + 1, 3 + 2, 3 + 2};
    cot_read_grad(x, g, 4);
    for (int i = 0; i < 4; i++) assert_true(g[i] == want[i]);
    assert_int_equal(cot_add_into(&a, cot_number(1)), COT_STALE);
    cot_tape_clear_error(t);
    cot_var at = INTS(S(2, 1), 0, 1), labels = cot_reshape(at, S(2));
    cot_take(x, labels, 0);
    cot_status status = cot_add_into(&labels, cot_integer(-1));
    assert_int_equal(status, COT_STALE);
    cot_tape_clear_error(t);
    at = INTS(S(2, 1), 0, 1);
    cot_take_along_axis(x, at, 1);
    assert_int_equal(cot_add_into(&at, cot_integer(-1)), COT_STALE);
    cot_tape_clear_error(t);
    at = INTS(S(2), 0, 1);
    cot_scatter_add(x, at, x, 0);
    assert_int_equal(cot_add_into(&at, cot_integer(-1)), COT_STALE);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_comes_of_nothing),
        cmocka_unit_test(in_place_checks_know_what_rules_saved),
        cmocka_unit_test(strict_tapes_protect_what_adjoints_read_and_nothing_else),
        cmocka_unit_test(errors_name_the_operation_the_facts_and_the_rule),
        cmocka_unit_test(errors_stick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
