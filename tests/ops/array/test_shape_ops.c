/* Creation, casts, shapes, slices, joins and indices: values, which results are views, empty
 * arrays. */
#include "support/structural_test.h"


static void creation_fills_real_memory(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int d = 0; d < COT_DTYPE_COUNT; d++) {
        VALUES(cot_zeros(t, (cot_dtype)d, S(2, 2)), S(2, 2), 0, 0, 0, 0);
        VALUES(cot_ones(t, (cot_dtype)d, S(2)), S(2), 1, 1);
        VALUES(cot_eye(t, (cot_dtype)d, 2, 3), S(2, 3), 1, 0, 0, 0, 1, 0);
        VALUES(cot_full(t, (cot_dtype)d, O, 1), O, 1);
    }
    VALUES(cot_full(t, COT_I32, S(2), 7), S(2), 7, 7);
    /* whose difference is no double */
    VALUES(cot_linspace(t, COT_F64, -1e308, 1e308, 3), S(3), -1e308, 0, 1e308);
    VALUES(cot_arange(t, COT_F64, 0, 1, 0.25), S(4), 0, 0.25, 0.5, 0.75);
    VALUES(cot_arange(t, COT_I64, 5, 0, -2), S(3), 5, 3, 1);
    VALUES(cot_arange(t, COT_I64, 5, 0, 1), S(0), 0);
    VALUES(cot_arange(t, COT_U8, 250, 256, 1), S(6), 250, 251, 252, 253, 254, 255);
    VALUES(cot_arange(t, COT_U8, 2, -1, -1), S(3), 2, 1, 0);
    VALUES(cot_arange(t, COT_BOOL, -1, 2, 1), S(3), 1, 0, 1);
    VALUES(cot_arange(t, COT_U8, 300, 0, 1), S(0), 0);
    VALUES(cot_linspace(t, COT_U8, 0, 255, 2), S(2), 0, 255);
    /* the last is 2^63 - 1, which is no double */
    cot_var end = cot_arange(t, COT_I64, 0x1p63 - 1024, 0x1p63, 1);
    assert_int_equal(cot_size(end), 1024);
    assert_int_equal(cot_value_i64(cot_index(end, 0, -1)), INT64_MAX);
    assert_int_equal(cot_value_i64(cot_index(cot_arange(t, COT_I64, -0x1p63, 0, 0x1p62), 0, 0)), INT64_MIN);
    /* 2^53 + 1 is no double */
    cot_var far = cot_sub(cot_arange(t, COT_I64, 0x1p53, 0x1p53 + 4, 1), (cot_integer)(INT64_C(1) << 53));
    VALUES(far, S(4), 0, 1, 2, 3);
    VALUES(cot_linspace(t, COT_F64, 0, 1, 5), S(5), 0, 0.25, 0.5, 0.75, 1);
    VALUES(cot_linspace(t, COT_F32, 3, 9, 1), S(1), 3);
    assert_false(cot_requires_grad(cot_ones(t, COT_F64, S(2))));
    cot_tape_destroy(t);
}

static void a_constant_like_another_value_has_its_shape_dtype_and_tape(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int d = 0; d < COT_DTYPE_COUNT; d++) {
        cot_var x = cot_zeros(t, (cot_dtype)d, S(2, 3)), z = cot_full_like(x, 1);
        assert_int_equal(cot_dtype_of(z), d);
        assert_ptr_equal(cot_tape_of(z), t);
        VALUES(z, S(2, 3), 1, 1, 1, 1, 1, 1);
    }
    cot_var x = cot_tensor(t, COT_F64, S(2, 3), NULL), weak = cot_full_like(cot_ones(t, COT_I32, S(1)), 2.75);
    VALUES(cot_full_like(cot_transpose(x), -0.5), S(3, 2), -0.5, -0.5, -0.5, -0.5, -0.5, -0.5);
    VALUES(cot_full_like(cot_broadcast_to(cot_scalar(t, 1), S(2)), 4), S(2), 4, 4);
    VALUES(weak, S(1), 2); /* as a cast to integers would */
    VALUES(cot_full_like(cot_scalar(t, 3), INFINITY), O, INFINITY);
    VALUES(cot_full_like(cot_zeros(t, COT_F32, S(2, 0)), 5), S(2, 0), 0);
    assert_true(isnan(cot_value(cot_full_like(cot_scalar(t, 3), NAN))));
    cot_no_grad_open(t);
    VALUES(cot_full_like(x, 1), S(2, 3), 1, 1, 1, 1, 1, 1);
    cot_no_grad_close(t);

    /* a constant: x gets no gradient through it … */
    cot_var ones = cot_full_like(x, 1), once = cot_mul(x, ones);
    assert_false(cot_requires_grad(ones));
    /* it has memory of its own */
    assert_int_equal(cot_add_into(&ones, 1.0), COT_OK);
    VALUES(x, S(2, 3), 0, 0, 0, 0, 0, 0);
    /* the product had saved it */
    assert_int_equal(cot_backward(cot_sum(once, COT_ALL)), COT_STALE);
    cot_tape_destroy(t);
}

static void whatever_is_on_no_tape_has_none(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2);
    cot_mark  mark = cot_tape_mark(t);
    cot_var   later = cot_exp(x);
    assert_ptr_equal(cot_tape_of(x), t);
    assert_ptr_equal(cot_tape_of(cot_scalar(other, 1)), other);
    assert_null(cot_tape_of(COT_NONE));
    assert_null(cot_tape_of(cot_number(2)));
    assert_null(cot_tape_of(cot_integer(2)));
    cot_tape_rewind(t, mark);
    assert_ptr_equal(cot_tape_of(later), t); /* forgotten, but its errors stand there */
    assert_false(cot_is_valid(cot_full_like(cot_number(2), 1)));
    assert_false(cot_is_valid(cot_full_like(COT_NONE, 1)));
    assert_ok(t);
    assert_false(cot_is_valid(cot_full_like(later, 1)));
    assert_int_equal(cot_tape_status(t), COT_VAR);
    /* an error is there: invalid, but it says where */
    assert_ptr_equal(cot_tape_of(cot_full_like(x, 1)), t);
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

static void casts_keep_values_and_carry_gradients(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(3), (double[]){1.5, -2.5, NAN});
    VALUES(cot_cast(x, COT_I32), S(3), 1, -2, 0);
    assert_false(cot_requires_grad(cot_cast(x, COT_I32)));
    cot_var y = cot_cast(x, COT_F32);
    assert_true(cot_requires_grad(y));
    cot_backward(cot_cast(cot_sum(cot_mul(y, 3.0), COT_ALL), COT_F64));
    double g[3];
    cot_read_grad(x, g, 3);
    for (int i = 0; i < 3; i++) assert_true(g[i] == 3);
    assert_true(cot_cast(y, COT_F32).id == y.id); /* of a leaf: test_nothing.c */
    assert_ok(t);
    cot_tape_destroy(t);
}

static void shapes_move_no_element_to_the_wrong_place(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(2, 3));
    VALUES(cot_reshape(x, S(3, -1)), S(3, 2), 0, 1, 2, 3, 4, 5);
    VALUES(cot_transpose(x), S(3, 2), 0, 3, 1, 4, 2, 5);
    VALUES(cot_reshape(cot_transpose(x), S(6)), S(6), 0, 3, 1, 4, 2, 5);
    VALUES(cot_reshape(cot_slice(x, 1, 0, 2, 1), S(4)), S(4), 0, 1, 3, 4);
    VALUES(cot_reshape(cot_flip(cot_reshape(x, S(6)), COT_ALL), S(2, 3)), S(2, 3), 5, 4, 3, 2, 1, 0);
    VALUES(cot_permute(iota(t, S(2, 1, 3)), COT_AXES(2, 0, 1)), S(3, 2, 1), 0, 3, 1, 4, 2, 5);
    VALUES(cot_broadcast_to(iota(t, S(2, 1)), S(2, 2, 3)), S(2, 2, 3), 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1);
    VALUES(cot_expand_dims(x, 1), S(2, 1, 3), 0, 1, 2, 3, 4, 5);
    VALUES(cot_squeeze(cot_reshape(x, S(1, 2, 1, 3, 1)), COT_ALL), S(2, 3), 0, 1, 2, 3, 4, 5);
    VALUES(cot_squeeze(cot_reshape(x, S(1, 2, 1, 3, 1)), COT_AXES(-1, 0)), S(2, 1, 3), 0, 1, 2, 3, 4, 5);
    VALUES(cot_flip(x, COT_ALL), S(2, 3), 5, 4, 3, 2, 1, 0);
    VALUES(cot_flip(x, COT_AXES(1)), S(2, 3), 2, 1, 0, 5, 4, 3);
    VALUES(cot_index(x, 1, 1), S(2), 1, 4);
    VALUES(cot_index(cot_index(x, 0, -1), 0, 2), O, 5);
    cot_var parts[3];
    assert_int_equal(cot_split(x, 3, -1, parts), COT_OK);
    VALUES(parts[2], S(2, 1), 2, 5);
    VALUES(cot_pad(x, S(1, 0), S(0, 1), 9), S(3, 4), 9, 9, 9, 9, 0, 1, 2, 9, 3, 4, 5, 9);
    VALUES(CONCAT(2, 1, x, iota(t, S(2, 1))), S(2, 4), 0, 1, 2, 0, 3, 4, 5, 1);
    VALUES(STACK(2, 0, x, x), S(2, 2, 3), 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5);
    VALUES(STACK(2, -1, x, cot_neg(x)), S(2, 3, 2), 0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5);
    VALUES(STACK(2, 0, cot_integer(2), cot_scalar(t, 1)), S(2), 2, 1);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_number(2.5), cot_full(t, COT_I32, O, 1))), COT_F64);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_number(2), cot_full(t, COT_I32, O, 1))), COT_F64);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_integer(2), cot_full(t, COT_I32, O, 1))), COT_I32);
    assert_int_equal(cot_dtype_of(STACK(2, 0, cot_full(t, COT_F32, O, 1), cot_full(t, COT_I64, O, 1))), COT_F32);
    cot_tape_destroy(t);
}

/* Python's x[start:stop:step], by its own definition: the indices of range(n)[start:stop:step]. */
static void slices_follow_python(void **state) {
    (void)state;
    static const int64_t bounds[] = {INT64_MIN, -9, -5, -4, -1, 0, 1, 3, 4, 5, 9, COT_END},
                         steps[]  = {INT64_MIN, -9, -3, -2, -1, 1, 2, 3, 9, INT64_MAX};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(5));
    for (int a = 0; a < COUNT(bounds); a++)
        for (int b = 0; b < COUNT(bounds); b++)
            for (int s = 0; s < COUNT(steps); s++) {
                int64_t step = steps[s], low = step > 0 ? 0 : -1, high = step > 0 ? 5 : 4, start = bounds[a],
                        stop = bounds[b], n = 0;
                double  want[8];
                if (start < 0) start = start < -5 ? low : start + 5;
                if (stop < 0) stop = stop < -5 ? low : stop + 5;
                if (bounds[b] == COT_END) stop = step > 0 ? 5 : -1;
                start = start > high ? high : start;
                stop = stop > high ? high : stop;
                for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
                    want[n++] = (double)i;
                    if (step > 9 || step < -9) break;
                }
                assert_values(cot_slice(x, 0, bounds[a], bounds[b], step), S(n), want);
            }
    cot_tape_destroy(t);
}

static void views_share_memory_and_copies_do_not(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(4, 6));
    int64_t   bytes = cot_tape_storage_bytes(t);
    cot_reshape(x, S(2, 2, 6));
    cot_reshape(cot_slice(x, 0, 0, COT_END, 2), S(2, 3, 2));
    cot_reshape(cot_broadcast_to(cot_slice(x, 0, 0, 1, 1), S(4, 6)), S(2, 2, 6));
    cot_transpose(x);
    cot_broadcast_to(x, S(5, 4, 6));
    cot_expand_dims(x, 0);
    cot_slice(x, 1, 0, 6, 2);
    cot_flip(x, COT_ALL);
    cot_index(x, 0, 1);
    cot_squeeze(cot_slice(x, 0, 1, 2, 1), COT_ALL);
    assert_int_equal(cot_tape_storage_bytes(t), bytes);
    cot_reshape(cot_transpose(x), S(24));
    assert_true(cot_tape_storage_bytes(t) > bytes);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* One node however many scalars, and one for x[i]. */
static void stacking_scalars_is_one_operation(void **state) {
    (void)state;
    enum { N = 1000 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[N];
    for (int i = 0; i < N; i++) xs[i] = cot_scalar(t, i);
    int64_t before = cot_tape_length(t);
    cot_var v = cot_stack(N, xs, 0);
    assert_int_equal(cot_tape_length(t), before + 1);
    cot_var y = cot_index(v, 0, 7);
    assert_int_equal(cot_tape_length(t), before + 2);
    cot_backward(cot_add(cot_sum(cot_square(v), COT_ALL), y));
    assert_ok(t);
    for (int i = 0; i < N; i++) assert_true(cot_grad_value(xs[i]) == 2 * i + (i == 7));
    cot_tape_destroy(t);
}

static void indices_pick_and_add_the_right_elements(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(3, 2));
    VALUES(cot_take(x, INTS(S(2), 2, -3), 0), S(2, 2), 4, 5, 0, 1);
    VALUES(cot_take(x, INTS(S(1, 2), 1, 0), 1), S(3, 1, 2), 1, 0, 3, 2, 5, 4);
    VALUES(cot_take(x, cot_full(t, COT_U8, O, 2), 0), S(2), 4, 5);
    VALUES(cot_take_along_axis(x, INTS(S(3, 1), 1, 0, -1), 1), S(3, 1), 1, 2, 5);
    VALUES(cot_scatter_add(x, INTS(S(3), 0, 0, 2), REALS(S(3, 2), 10, 20, 30, 40, 50, 60), 0), S(3, 2), 40, 61, 2, 3,
           54, 65);
    VALUES(cot_scatter_add(cot_zeros(t, COT_F32, S(3)), INTS(S(4), 1, 1, 1, 2), cot_number(1), 0), S(3), 0, 3, 1);
    /* integers and a fraction: f64 */
    VALUES(cot_scatter_add(INTS(S(2), 1, 2), INTS(S(2), 1, 1), cot_number(0.5), 0), S(2), 1, 3);
    assert_int_equal(cot_dtype_of(cot_scatter_add(INTS(S(1), 1), INTS(S(1), 0), cot_integer(2), 0)), COT_I64);
    VALUES(cot_one_hot(INTS(S(2), 2, -3), 3, COT_F64), S(2, 3), 0, 0, 1, 1, 0, 0);
    assert_int_equal(cot_dtype_of(cot_one_hot(INTS(S(1), 0), 1, COT_BOOL)), COT_BOOL);
    cot_tape_destroy(t);
}

/* One position many times over, in halves: the sum is made in f32, or it would stop where a half
 * has no more digits. */
static void repeated_positions_of_halves_do_not_stagnate(void **state) {
    (void)state;
    enum { REPEATS = 4096 };
    static const cot_dtype halves[] = {COT_BF16, COT_F16};
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, halves[k], COT_SHAPE(2), NULL), at = cot_zeros(t, COT_I64, COT_SHAPE(REPEATS));
        cot_var   sum = cot_scatter_add(cot_zeros(t, halves[k], COT_SHAPE(2)), at,
                                        cot_ones(t, halves[k], COT_SHAPE(REPEATS)), 0),
                g;
        double    got[2];
        cot_read(sum, got, 2);
        assert_true(got[0] == REPEATS && got[1] == 0);
        cot_var y = cot_take(x, at, 0);
        cot_backward_seeded(y, 1.0);
        cot_read_grad(x, got, 2);
        assert_true(got[0] == REPEATS && got[1] == 0);
        cot_vjp(y, 1.0, 1, &x, &g);
        cot_read(g, got, 2);
        assert_true(got[0] == REPEATS && got[1] == 0);
        assert_int_equal(cot_tape_status(t), COT_OK);
        cot_tape_destroy(t);
    }
}

static void empty_arrays_are_fine_where_they_make_sense(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(0, 3), NULL), y = cot_tensor(t, COT_F64, S(3, 0), NULL);
    VALUES(cot_sum(x, COT_ALL), O, 0);
    VALUES(cot_sum(x, COT_AXES(0)), S(3), 0, 0, 0);
    VALUES(cot_sum(x, COT_AXES(1)), S(0), 0);
    VALUES(cot_prod(x, COT_AXES(0)), S(3), 1, 1, 1);
    VALUES(cot_prod(INTS(S(0), 0), COT_KEEP_ALL), S(1), 1);
    /* a leaf's function, like the sum */
    assert_int_equal(cot_backward(cot_prod(x, COT_ALL)), COT_OK);
    VALUES(cot_mean(x, COT_ALL), O, NAN);
    VALUES(cot_max(x, COT_AXES(1)), S(0), 0);
    VALUES(cot_any(x, COT_ALL), O, 0);
    VALUES(cot_all(x, COT_ALL), O, 1);
    VALUES(cot_norm(x, 2, COT_ALL), O, 0);
    VALUES(cot_logsumexp(x, COT_AXES(0)), S(3), -INFINITY, -INFINITY, -INFINITY);
    VALUES(cot_reshape(x, S(6, 0)), S(6, 0), 0);
    VALUES(cot_transpose(x), S(3, 0), 0);
    VALUES(cot_flip(x, COT_ALL), S(0, 3), 0);
    VALUES(cot_slice(x, 1, 2, 1, 1), S(0, 0), 0);
    VALUES(cot_broadcast_to(x, S(2, 0, 3)), S(2, 0, 3), 0);
    VALUES(cot_broadcast_to(cot_ones(t, COT_F64, S(1, 3)), S(0, 3)), S(0, 3), 0);
    VALUES(CONCAT(2, 0, x, cot_ones(t, COT_F64, S(1, 3))), S(1, 3), 1, 1, 1);
    VALUES(STACK(2, 0, x, x), S(2, 0, 3), 0);
    VALUES(cot_pad(x, S(1, 0), S(0, 0), 2), S(1, 3), 2, 2, 2);
    VALUES(cot_take(x, INTS(S(1), 1), 1), S(0, 1), 0);
    VALUES(cot_take(x, cot_zeros(t, COT_I64, S(0)), 0), S(0, 3), 0);
    VALUES(cot_matmul(x, cot_ones(t, COT_F64, S(3, 2))), S(0, 2), 0);
    VALUES(cot_matmul(y, x), S(3, 3), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    VALUES(cot_softmax(x, 1), S(0, 3), 0);
    VALUES(cot_softmax_cross_entropy(x, cot_zeros(t, COT_I64, S(0))), O, NAN);
    VALUES(cot_mse(x, x), O, NAN);
    VALUES(cot_one_hot(cot_zeros(t, COT_I64, S(0)), 3, COT_F64), S(0, 3), 0);
    cot_var total = cot_add(cot_sum(cot_matmul(y, x), COT_ALL), cot_sum(cot_square(x), COT_ALL));
    assert_int_equal(cot_backward(total), COT_OK);
    assert_ok(t);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_like_another_value_has_its_shape_dtype_and_tape),
        cmocka_unit_test(whatever_is_on_no_tape_has_none),
        cmocka_unit_test(casts_keep_values_and_carry_gradients),
        cmocka_unit_test(shapes_move_no_element_to_the_wrong_place),
        cmocka_unit_test(slices_follow_python),
        cmocka_unit_test(views_share_memory_and_copies_do_not),
        cmocka_unit_test(stacking_scalars_is_one_operation),
        cmocka_unit_test(indices_pick_and_add_the_right_elements),
        cmocka_unit_test(creation_fills_real_memory),
        cmocka_unit_test(empty_arrays_are_fine_where_they_make_sense),
        cmocka_unit_test(repeated_positions_of_halves_do_not_stagnate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
