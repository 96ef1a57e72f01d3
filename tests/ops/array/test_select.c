/* roll, tile, repeat, diag, tril, triu, trace, kron, gather, scatter and masks: edges, dtypes,
 * zeros beside infinities, every error. And for these and the cumulative and ordering operations:
 * threads, and memory that runs out. */
/* ctest: labels=threads timeout=300 */
#include "support/tape_test.h"

#define VALUES(y, ...)                                                                                                 \
    do {                                                                                                               \
        const double want_[] = {__VA_ARGS__};                                                                          \
        values_are(y, (int)(sizeof want_ / sizeof *want_), want_);                                                     \
    } while (0)

static void values_are(cot_var y, int n, const double *want) {
    double got[64];
    assert_string_equal(cot_tape_message(y.tape), "");
    assert_int_equal(cot_size(y), n);
    assert_int_equal(cot_read(y, got, n), COT_OK);
    for (int i = 0; i < n; i++) assert_near(got[i], want[i], 0);
}

#define GRADS(x, ...)                                                                                                  \
    do {                                                                                                               \
        const double want_[] = {__VA_ARGS__};                                                                          \
        double       got_[64];                                                                                         \
        assert_int_equal(cot_read_grad(x, got_, (int)(sizeof want_ / sizeof *want_)), COT_OK);                         \
        for (size_t i_ = 0; i_ < sizeof want_ / sizeof *want_; i_++) assert_near(got_[i_], want_[i_], 0);              \
    } while (0)

#define FAILS(call, code, text)                                                                                        \
    do {                                                                                                               \
        assert_false(cot_is_valid(call));                                                                              \
        assert_error(t, code, text);                                                                                   \
        cot_tape_rewind(t, m);                                                                                         \
    } while (0)

static const double count[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static cot_var bools(cot_tape *t, cot_shape s, const uint8_t *b) { return cot_data(t, COT_BOOL, s, b); }
static cot_var places(cot_tape *t, cot_shape s, const int64_t *i) { return cot_data(t, COT_I64, s, i); }

static void shape_is(cot_var x, cot_shape want) {
    cot_shape s = cot_shape_of(x);
    assert_int_equal(s.ndim, want.ndim);
    for (int k = 0; k < s.ndim; k++) assert_int_equal(s.dim[k], want.dim[k]);
}

/* ---- arranging ------------------------------------------------------------------------------- */

static void every_dtype_is_arranged(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int d = 0; d < COT_DTYPE_COUNT; d++) {
        cot_var x      = cot_cast(cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 0, 1, 1}), (cot_dtype)d),
                v      = cot_index(x, 0, 1);
        cot_var made[] = {cot_roll(x, 1, 0),
                          cot_tile(v, COT_SHAPE(2)),
                          cot_repeat(v, 2, 0),
                          cot_diag(x, 0),
                          cot_diag(v, 1),
                          cot_tril(x, 0),
                          cot_triu(x, 1),
                          cot_gather(x, places(t, COT_SHAPE(1, 2), (int64_t[]){1, 0})),
                          cot_scatter(x, places(t, COT_SHAPE(1), (int64_t[]){0}), cot_slice(x, 0, 1, 2, 1), 0)};
        for (int k = 0; k < 9; k++) assert_int_equal(cot_dtype_of(made[k]), d);
        VALUES(made[0], 1, 1, 1, 0);
        VALUES(made[1], 1, 1, 1, 1);
        VALUES(made[2], 1, 1, 1, 1);
        VALUES(made[3], 1, 1);
        VALUES(made[4], 0, 1, 0, 0, 0, 1, 0, 0, 0);
        VALUES(made[5], 1, 0, 1, 1);
        VALUES(made[6], 0, 0, 0, 0);
        VALUES(made[7], 1);
        VALUES(made[8], 1, 1, 1, 1);
        VALUES(cot_trace(x, 0), 2);
        /* as sum */
        assert_int_equal(cot_dtype_of(cot_trace(x, 0)), d <= COT_F16 ? d : (int)COT_I64);
        VALUES(cot_kron(v, v), 1, 1, 1, 1);
        cot_var mask = bools(t, COT_SHAPE(2), (uint8_t[]){0, 1});
        VALUES(cot_compress(x, mask, 1), 0, 1);
        VALUES(cot_compress_to(x, mask, 1, 2, 1), 0, 1, 1, 1);
        assert_int_equal(cot_dtype_of(cot_compress_to(x, mask, 1, 2, 1)), d);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void edges_of_arrangements(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_data(t, COT_F64, COT_SHAPE(2, 3), count), none = cot_data(t, COT_F64, COT_SHAPE(0, 3), NULL),
            s = cot_constant(t, 7);
    VALUES(cot_roll(x, INT64_MIN, 1), 3, 1, 2, 6, 4, 5); /* -2^63 is 1 modulo 3 */
    VALUES(cot_roll(x, INT64_MAX, 0), 4, 5, 6, 1, 2, 3);
    shape_is(cot_roll(none, 5, 0), COT_SHAPE(0, 3));
    shape_is(cot_tile(x, COT_SHAPE(0, 1)), COT_SHAPE(0, 3));
    shape_is(cot_tile(none, COT_SHAPE(2, 2, 2)), COT_SHAPE(2, 0, 6));
    VALUES(cot_tile(s, COT_SHAPE(2, 1)), 7, 7);
    VALUES(cot_tile(s, COT_SCALAR), 7);
    VALUES(cot_tile(cot_transpose(x), COT_SHAPE(1, 2)), 1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6);
    shape_is(cot_repeat(x, 0, 1), COT_SHAPE(2, 0));
    VALUES(cot_repeat(cot_transpose(x), 2, 0), 1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6);
    shape_is(cot_diag(x, 3), COT_SHAPE(0));
    shape_is(cot_diag(x, INT64_MIN), COT_SHAPE(0));
    shape_is(cot_diag(none, 0), COT_SHAPE(0));
    VALUES(cot_diag(cot_data(t, COT_F64, COT_SHAPE(0), NULL), -2), 0, 0, 0, 0);
    shape_is(cot_diag(cot_data(t, COT_F64, COT_SHAPE(0), NULL), 0), COT_SHAPE(0, 0));
    VALUES(cot_diag(cot_transpose(x), -1), 2, 6);
    VALUES(cot_trace(x, -5), 0);
    VALUES(cot_tril(x, INT64_MAX), 1, 2, 3, 4, 5, 6);
    VALUES(cot_triu(x, INT64_MAX), 0, 0, 0, 0, 0, 0);
    VALUES(cot_tril(x, INT64_MIN), 0, 0, 0, 0, 0, 0);
    shape_is(cot_triu(none, 0), COT_SHAPE(0, 3));
    shape_is(cot_kron(none, x), COT_SHAPE(0, 9));
    VALUES(cot_kron(s, cot_constant(t, 2)), 14);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Elements that are left out may be infinite or NaN: values and gradients stay clean. */
static void triangles_leave_no_nan_behind(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, NAN, 2, 3});
    cot_var   y = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 0, 4, 9});
    VALUES(cot_tril(x, 0), 1, 0, 2, 3);
    cot_backward(cot_sum(cot_tril(cot_sqrt(y), 0), COT_ALL)); /* sqrt'(0) = inf, left out */
    GRADS(y, 0.5, 0, 0.25, 1.0 / 6);
    cot_var z = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){4, 0, 0, 1});
    cot_backward(cot_trace(cot_sqrt(z), 0));
    GRADS(z, 0.25, 0, 0, 0.5);
    cot_tape_destroy(t);
}

/* ---- selecting ------------------------------------------------------------------------------- */

static void the_last_of_equal_positions_wins_and_the_losers_get_nothing(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(4), (double[]){0, 4, 0, 9});
    cot_var   u = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0, 16, 25});
    cot_var   i = places(t, COT_SHAPE(3), (int64_t[]){2, 0, -2});
    /* sqrt'(0) is infinite at the overwritten element and at the losing update */
    cot_var   z = cot_scatter(cot_sqrt(x), i, cot_sqrt(u), 0);
    VALUES(z, 4, 2, 5, 3);
    cot_backward(cot_sum(z, COT_ALL));
    GRADS(x, 0, 0.25, 0, 1.0 / 6);
    GRADS(u, 0, 0.125, 0.1);
    cot_tape_destroy(t);
}

static void scatter_mixes_dtypes_and_takes_nothing_too(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_data(t, COT_F32, COT_SHAPE(2), (float[]){1, 2}), nothing = places(t, COT_SHAPE(0), NULL);
    cot_var   z = cot_scatter(x, nothing, cot_data(t, COT_F64, COT_SHAPE(0), NULL), 0);
    assert_int_equal(cot_dtype_of(z), COT_F64);
    VALUES(z, 1, 2);
    assert_int_equal(cot_dtype_of(cot_scatter(x, places(t, COT_SHAPE(1), (int64_t[]){1}), cot_number(2.5), 0)),
                     COT_F32);
    VALUES(cot_scatter(x, places(t, COT_SCALAR, (int64_t[]){1}), cot_constant(t, 5), 0), 1, 5);
    VALUES(cot_scatter(x, nothing, cot_number(2.5), 0), 1, 2);
    shape_is(cot_scatter(cot_data(t, COT_F64, COT_SHAPE(0), NULL), nothing, cot_number(2.5), 0), COT_SHAPE(0));
    cot_tape_destroy(t);
}

static void gather_reads_strided_views_and_adds_up_repeats(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), count);
    /* (0,1), (2,-1), (0,1) in the transpose */
    cot_var   i = cot_transpose(places(t, COT_SHAPE(2, 3), (int64_t[]){0, 2, 0, 1, -1, 1}));
    cot_var   z = cot_gather(cot_transpose(x), i);
    VALUES(z, 4, 6, 4);
    cot_backward(cot_sum(z, COT_ALL));
    GRADS(x, 0, 0, 0, 2, 0, 1);
    shape_is(cot_gather(x, places(t, COT_SHAPE(0, 2), NULL)), COT_SHAPE(0));
    shape_is(cot_gather(x, places(t, COT_SHAPE(0, 1), NULL)), COT_SHAPE(0, 3));
    VALUES(cot_gather(cot_constant(t, 3), places(t, COT_SHAPE(2, 0), NULL)), 3, 3);
    cot_tape_destroy(t);
}

static void masks_choose(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), (double[]){0, 4, 0, 16, 0, 25}), y = cot_sqrt(x);
    cot_var   z = cot_masked_select(y, cot_greater(x, 0));
    VALUES(z, 2, 4, 5);
    cot_backward(cot_sum(z, COT_ALL));
    GRADS(x, 0, 0.25, 0, 0.125, 0, 0.1);
    cot_tape_zero_grads(t);
    cot_var first = bools(t, COT_SHAPE(3), (uint8_t[]){0, 1, 0});
    z = cot_compress_to(y, first, 1, 3, -1);
    VALUES(z, 2, -1, -1, 0, -1, -1);
    /* the places filled up read x[0], whose slope is infinite */
    cot_backward(cot_sum(cot_slice(z, 0, 0, 1, 1), COT_ALL));
    GRADS(x, 0, 0.25, 0, 0, 0, 0);
    /* more than fit: the first */
    VALUES(cot_compress_to(y, bools(t, COT_SHAPE(3), (uint8_t[]){1, 1, 1}), 1, 2, -1), 0, 2, 4, 0);
    VALUES(cot_compress(x, bools(t, COT_SHAPE(2), (uint8_t[]){0, 1}), -2), 16, 0, 25);
    shape_is(cot_masked_select(x, bools(t, COT_SHAPE(2), (uint8_t[]){0, 0})), COT_SHAPE(0, 3));
    shape_is(cot_masked_select(x, bools(t, COT_SCALAR, (uint8_t[]){0})), COT_SHAPE(0, 2, 3));
    cot_var none = cot_data(t, COT_F64, COT_SHAPE(0, 2), NULL), nothing = bools(t, COT_SHAPE(0), NULL);
    shape_is(cot_compress(none, nothing, 0), COT_SHAPE(0, 2));
    VALUES(cot_compress_to(none, nothing, 0, 1, 3), 3, 3);
    VALUES(cot_compress(cot_transpose(x), cot_flip(bools(t, COT_SHAPE(3), (uint8_t[]){1, 0, 0}), COT_ALL), 0), 0, 25);
    cot_tape_destroy(t);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void errors_of_arrangements(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), count), v = cot_tensor(t, COT_F64, COT_SHAPE(3), count),
            s      = cot_scalar(t, 1);
    cot_shape deep = {17, {0}}, nine = {9, {1, 1, 1, 1, 1, 1, 1, 1, 1}};
    cot_mark  m = cot_tape_mark(t);
    FAILS(cot_roll(s, 1, 0), COT_SHAPE, "[roll] axis 0 is out of range for rank 0; a scalar has no axes");
    FAILS(cot_tile(x, deep), COT_LIMIT, "[tile] 17 repetition counts; there are 0 to 16, one for each axis");
    FAILS(cot_tile(x, COT_SHAPE(2, -1)), COT_VALUE, "[tile] -1 repetitions along axis 1; counts are not negative");
    FAILS(cot_tile(x, COT_SHAPE(INT64_MAX, 2)), COT_LIMIT,
          "[tile] shape (9223372036854775807,6) has too many elements to address");
    FAILS(cot_repeat(x, -2, 0), COT_VALUE, "[repeat] -2 repetitions; the count is not negative");
    FAILS(cot_repeat(x, INT64_MAX / 2, 0), COT_LIMIT,
          "[repeat] shape (9223372036854775806,3) has too many elements to address");
    FAILS(cot_repeat(x, 2, 2), COT_SHAPE, "[repeat] axis 2 is out of range for rank 2; axes run from -2 to 1");
    FAILS(cot_diag(s, 0), COT_SHAPE, "[diag] the operand is a scalar; diag takes a vector or matrices");
    FAILS(cot_diag(v, INT64_MIN), COT_LIMIT,
          "[diag] shape (9223372036854775807,9223372036854775807) has too many elements to address");
    FAILS(cot_diag(v, INT64_C(1) << 31), COT_LIMIT,
          "[diag] shape (2147483651,2147483651) has too many elements to address");
    FAILS(cot_tril(v, 0), COT_SHAPE,
          "[tril] the operand has shape (3,); it needs at least two axes, the rows and columns of matrices");
    FAILS(cot_triu(s, 0), COT_SHAPE,
          "[triu] the operand has shape (); it needs at least two axes, the rows and columns of matrices");
    FAILS(cot_trace(v, 0), COT_SHAPE,
          "[trace] the operand has shape (3,); it needs at least two axes, the rows and columns of matrices");
    FAILS(cot_kron(cot_reshape(s, nine), v), COT_LIMIT, "[kron] operands of rank 9 and 1; at most 8 axes are possible");
    cot_var wide = cot_broadcast_to(s, COT_SHAPE(INT64_C(1) << 40));
    FAILS(cot_kron(wide, wide), COT_LIMIT, "[kron] shape (9223372036854775807,) has too many elements to address");
    assert_ok(t);
    cot_tape_destroy(t);
}

static void errors_of_selections(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), count), v = cot_tensor(t, COT_F64, COT_SHAPE(3), count),
            s      = cot_scalar(t, 1);
    cot_var three  = bools(t, COT_SHAPE(3), (uint8_t[]){1, 0, 1}),
            bad    = places(t, COT_SHAPE(2, 2), (int64_t[]){0, 1, 1, 3});
    cot_shape deep = {16, {0}};
    for (int k = 0; k < 16; k++) deep.dim[k] = 1;
    cot_var  deepest = cot_reshape(s, deep);
    cot_mark m = cot_tape_mark(t);
    FAILS(cot_gather(x, cot_constant(t, 1)), COT_SHAPE,
          "[gather] the indices are a scalar; their last axis lists the coordinates of a position");
    FAILS(cot_gather(v, bad), COT_SHAPE,
          "[gather] the indices have 2 coordinates, x has rank 1; there is at most one for each axis of x");
    FAILS(cot_gather(x, bad), COT_VALUE,
          "[gather] coordinate 1 of indices[1] is 3, out of range for extent 3; values run from -3 to 2");
    FAILS(cot_gather(x, v), COT_SHAPE,
          "[gather] the indices have 3 coordinates, x has rank 2; there is at most one for each axis of x");
    FAILS(cot_gather(x, cot_slice(v, 0, 0, 2, 1)), COT_DTYPE, "[gather] indices have dtype f64; they must be integers");
    FAILS(cot_gather(deepest, places(t, COT_SHAPE(2, 0), NULL)), COT_LIMIT,
          "[gather] a shape of 17 axes; shapes have 0 to 16 axes");
    cot_var long_row = cot_broadcast_to(s, COT_SHAPE(1, INT64_C(1) << 58)),
            zero     = places(t, COT_SHAPE(1), (int64_t[]){0});
    FAILS(cot_gather(long_row, cot_broadcast_to(zero, COT_SHAPE(1 << 10, 1))), COT_LIMIT,
          "[gather] shape (1024,288230376151711744) has too many elements to address");
    FAILS(cot_scatter(x, bad, s, 0), COT_VALUE,
          "[scatter] indices[1,1] is 3, out of range for extent 2; values run from -2 to 1");
    FAILS(cot_scatter(x, v, s, 0), COT_DTYPE, "[scatter] indices have dtype f64; they must be integers");
    FAILS(cot_scatter(x, places(t, COT_SHAPE(2), (int64_t[]){0, 1}), v, 1), COT_SHAPE,
          "[scatter] the updates have shape (3,); the positions ask for (2,2)");
    FAILS(cot_scatter(s, bad, s, 0), COT_SHAPE, "[scatter] axis 0 is out of range for rank 0; a scalar has no axes");
    FAILS(cot_compress(x, v, 1), COT_DTYPE,
          "[compress] the mask has dtype f64; a mask is made of bools, as comparisons give them");
    FAILS(cot_compress(x, three, 0), COT_SHAPE,
          "[compress] the mask has shape (3,), axis 0 of x has extent 2; a mask is a vector with one bool for each "
          "position");
    FAILS(cot_compress(x, cot_greater(x, 0), 1), COT_SHAPE,
          "[compress] the mask has shape (2,3), axis 1 of x has extent 3; a mask is a vector with one bool for each "
          "position");
    FAILS(cot_compress(x, three, 2), COT_SHAPE, "[compress] axis 2 is out of range for rank 2; axes run from -2 to 1");
    FAILS(cot_compress_to(x, bad, 1, 2, 0), COT_DTYPE,
          "[compress_to] the mask has dtype i64; a mask is made of bools, as comparisons give them");
    FAILS(cot_compress_to(x, three, 0, 2, 0), COT_SHAPE,
          "[compress_to] the mask has shape (3,), axis 0 of x has extent 2; a mask is a vector with one bool for each "
          "position");
    FAILS(cot_compress_to(x, three, 1, -2, 0), COT_SHAPE,
          "[compress_to] axis 1 of shape (2,-2) has extent -2; extents are not negative");
    FAILS(cot_compress_to(x, three, 1, INT64_MAX, 0), COT_LIMIT,
          "[compress_to] shape (2,9223372036854775807) has too many elements to address");
    FAILS(cot_masked_select(x, v), COT_DTYPE,
          "[masked_select] the mask has dtype f64; a mask is made of bools, as comparisons give them");
    FAILS(cot_masked_select(x, three), COT_SHAPE,
          "[masked_select] the mask has shape (3,), x (2,3); a mask has the extents of x's leading axes");
    FAILS(cot_masked_select(v, cot_greater(x, 0)), COT_SHAPE,
          "[masked_select] the mask has shape (2,3), x (3,); a mask has the extents of x's leading axes");
    FAILS(cot_masked_select(deepest, bools(t, COT_SCALAR, (uint8_t[]){1})), COT_LIMIT,
          "[masked_select] the operand has 16 axes already; a scalar mask adds one, and there are at most 16");
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- everything at once ---------------------------------------------------------------------- */

enum { RESULTS = 24 };

/* Each operation of the three families on x (n, n) and its gradient; results that are integers are
 * cast. */
static int everything(cot_tape *t, cot_var x, int64_t n, cot_var *y) {
    int     k = 0;
    cot_var row = cot_index(x, 0, 0), top, mask = cot_greater(row, 0.5), at = cot_argsort(row, 0, false);
    y[k++] = cot_cumsum(x, 0, false), y[k++] = cot_cumsum(x, 1, true);
    y[k++] = cot_cumprod(x, 0, true), y[k++] = cot_cumprod(x, 1, false);
    y[k++] = cot_cummax(x, 0, false), y[k++] = cot_cummin(x, 1, true);
    y[k++] = cot_sort(x, 0, false), y[k++] = cot_sort(x, 1, true),
    y[k++] = cot_sort(cot_reshape(x, COT_SHAPE(n * n)), 0, false);
    y[k++] = cot_topk(x, n / 20, 1, &top), y[k++] = cot_cast(top, COT_F64);
    y[k++] = cot_cast(cot_searchsorted(cot_sort(row, 0, false), x, true), COT_F64);
    y[k++] = cot_roll(x, 3, 1), y[k++] = cot_tile(row, COT_SHAPE(2, 2)), y[k++] = cot_repeat(x, 2, 0);
    y[k++] = cot_diag(x, -1), y[k++] = cot_diag(row, 1), y[k++] = cot_tril(x, 2), y[k++] = cot_trace(x, 0);
    y[k++] = cot_kron(cot_slice(x, 0, 0, 2, 1), cot_slice(x, 1, 0, 2, 1));
    y[k++] = cot_gather(x, cot_reshape(at, COT_SHAPE(n, 1))), y[k++] = cot_scatter(x, at, x, 1);
    y[k++] = cot_add(cot_sum(cot_compress(x, mask, 1), COT_ALL), cot_sum(cot_compress_to(x, mask, 0, n, 1), COT_ALL));
    y[k++] = cot_masked_select(x, cot_greater(x, 0.9));
    (void)t;
    return k;
}

/* All values, one after the other, and the gradient of the sum of their squares; how many
 * numbers. */
static int64_t all_bits(int threads, int64_t n, const double *data, double *out, int64_t room) {
    cot_var y[RESULTS];
    int64_t at = 0;
    cot_set_threads(threads);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(n, n), data), sum = cot_constant(t, 0);
    assert_int_equal(everything(t, x, n, y), RESULTS);
    for (int k = 0; k < RESULTS; k++) {
        int64_t size = cot_size(y[k]);
        assert_true(at + size + n * n <= room);
        assert_int_equal(cot_read(y[k], out + at, size), COT_OK);
        at += size;
        sum = cot_add(sum, cot_sum(cot_mul(y[k], y[k]), COT_ALL));
    }
    assert_int_equal(cot_backward(sum), COT_OK);
    assert_int_equal(cot_read_grad(x, out + at, n * n), COT_OK);
    assert_ok(t);
    cot_tape_destroy(t);
    return at + n * n;
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    /* a row of n² is sorted in several blocks */
    int64_t  n = test_small() ? 150 : 400, size = n * n, room = 40 * size;
    double  *data = malloc((size_t)size * sizeof *data), *first = malloc((size_t)room * sizeof *first);
    double  *again = malloc((size_t)room * sizeof *again);
    uint64_t seed = 9;
    for (int64_t i = 0; i < size; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = 0.5 + (double)(seed >> 40) * 0x1p-24;
    }
    int64_t numbers = all_bits(1, n, data, first, room);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(all_bits((int[]){2, 3, 8}[k], n, data, again, room), numbers);
        assert_memory_equal(first, again, (size_t)numbers * sizeof *first);
    }
    cot_set_threads(0);
    free(data), free(first), free(again);
}

static void arrange(cot_tape *t, void *user) {
    (void)user;
    enum { N = 24 };
    double data[N * N];
    for (int i = 0; i < N * N; i++) data[i] = 0.5 + (i * 37 % 101) / 101.0;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(N, N), data), y[RESULTS], sum = cot_constant(t, 0);
    int     n = everything(t, x, N, y);
    for (int k = 0; k < n; k++) sum = cot_add(sum, cot_sum(y[k], COT_ALL));
    cot_backward(sum);
}

static void every_failing_allocation_is_said_and_nothing_leaks(void **state) {
    (void)state;
    assert_survives_no_memory(arrange, NULL, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_is_arranged),
        cmocka_unit_test(edges_of_arrangements),
        cmocka_unit_test(triangles_leave_no_nan_behind),
        cmocka_unit_test(the_last_of_equal_positions_wins_and_the_losers_get_nothing),
        cmocka_unit_test(scatter_mixes_dtypes_and_takes_nothing_too),
        cmocka_unit_test(gather_reads_strided_views_and_adds_up_repeats),
        cmocka_unit_test(masks_choose),
        cmocka_unit_test(errors_of_arrangements),
        cmocka_unit_test(errors_of_selections),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(every_failing_allocation_is_said_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
