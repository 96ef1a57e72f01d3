/* Every error of the tape, of elementwise operations, of in-place writes and of the drivers: its
 * code and its exact sentence. Errors stick, can be cleared, and never end the program.
 * check_errors_listed.sh makes sure that no error is missing here. */
#include "base/cpu.h"
#include "support/tape_test.h"
#include "tape/tape.h"

static const double numbers[6] = {1, 2, 3, 4, 5, 6};

static cot_tape *open_tape(void) { return cot_tape_create(NULL); }
static cot_var   vec(cot_tape *t, int n) { return cot_tensor(t, COT_F64, COT_SHAPE(n), numbers); }

/* The error, then go on as if it had not been. */
#define expect(t, code, text)                                                                                          \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

/* ---- making values --------------------------------------------------------------------------- */

static void sources(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_shape deep = {17, {0}}, minus = {-1, {0}};
    cot_tensor(t, COT_F64, deep, NULL);
    expect(t, COT_LIMIT, "[tensor] 17 axes; between 0 and 16 are possible");
    cot_data(t, COT_F64, minus, NULL);
    expect(t, COT_LIMIT, "[data] -1 axes; between 0 and 16 are possible");
    cot_wrap(t, COT_F64, deep, NULL);
    expect(t, COT_LIMIT, "[wrap] 17 axes; between 0 and 16 are possible");
    cot_data(t, (cot_dtype)42, COT_SHAPE(1), NULL);
    expect(t, COT_DTYPE, "[data] 42 is not a dtype");
    cot_scalar_of(t, COT_DTYPE_COUNT, 1);
    expect(t, COT_DTYPE, "[scalar_of] 8 is not a dtype");
    cot_scalar_of(t, COT_BOOL, 1);
    expect(t, COT_DTYPE,
           "[scalar_of] a leaf of dtype bool; only f64, f32, bf16 and f16 have gradients, use cot_data for others");
    cot_tensor(t, COT_I32, COT_SHAPE(2), NULL);
    expect(t, COT_DTYPE,
           "[tensor] a leaf of dtype i32; only f64, f32, bf16 and f16 have gradients, use cot_data for others");
    cot_wrap(t, COT_F64, COT_SCALAR, &deep);
    expect(t, COT_SHAPE, "[wrap] a scalar lives in the tape and cannot be borrowed; use cot_data");
    cot_wrap(t, COT_F64, COT_SHAPE(2, 3), NULL);
    expect(t, COT_VALUE, "[wrap] the memory is NULL; it must hold 6 elements");
    cot_tensor(t, COT_F64, COT_SHAPE(3, -2), NULL);
    expect(t, COT_SHAPE, "[tensor] extent -2 of axis 1 is negative: shape (3,-2)");
    cot_data(t, COT_F64, COT_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), NULL);
    expect(t, COT_LIMIT, "[data] shape (1099511627776,1099511627776) has more elements than memory can hold");
    /* empty, but its strides would overflow */
    cot_tensor(t, COT_F64, COT_SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40), NULL);
    expect(t, COT_LIMIT, "[tensor] shape (0,1099511627776,1099511627776) has more elements than memory can hold");
    /* no public way leads here: shapes are checked before */
    assert_int_equal(cot__checked_size(t, "test", COT_F64, 17, deep.dim), -1);
    expect(t, COT_LIMIT, "[test] 17 axes; at most 16 are possible");
    /* nothing needs no memory */
    assert_true(cot_is_valid(cot_wrap(t, COT_F64, COT_SHAPE(0), NULL)));
    /* empty, but its strides could not be written down */
    cot_tensor(t, COT_F64, COT_SHAPE(0, INT64_MAX), NULL);
    expect(t, COT_LIMIT, "[tensor] shape (0,9223372036854775807) has more elements than memory can hold");
    assert_true(cot_is_valid(cot_tensor(t, COT_F64, COT_SHAPE(0, 1 << 20), NULL)));
    cot_name(cot_scalar(t, 1), NULL);
    expect(t, COT_VALUE, "[name] the name is NULL; give a text, it is copied");
    cot_no_grad_close(t);
    expect(t, COT_VALUE, "[no_grad_close] no no-grad scope is open; every close needs its open");
    cot_tape_destroy(t);
}

static void a_full_tape(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_scalar(t, 1);
    uint32_t count = t->count, capacity = t->capacity;
    /* as if 2^32 - 17 operations were there */
    t->count = t->capacity = t->fast_limit = COT__MAX_NODES;
    assert_false(cot_is_valid(cot_constant(t, 1)));
    t->count = count, t->capacity = capacity;
    expect(t, COT_LIMIT,
           "[constant] the tape is full: 4294967279 operations; rewind, or split the work over several tapes");
    assert_true(cot_is_valid(cot_constant(t, 1)));
    cot_tape_destroy(t);
}

/* ---- operands -------------------------------------------------------------------------------- */

static void operands(void **state) {
    (void)state;
    cot_tape *t = open_tape(), *u = open_tape();
    cot_var   x = cot_scalar(t, 2), other = cot_scalar(u, 2), none = {0};
    cot_mul(x, other);
    expect(t, COT_VAR, "[mul] the right operand belongs to another tape; operands of one operation share a tape");
    cot_mul(vec(t, 2), other);
    expect(t, COT_VAR, "[mul] the right operand belongs to another tape; operands of one operation share a tape");
    assert_ok(u);
    cot_add(none, x);
    expect(t, COT_VAR, "[add] the left operand is not a value on a tape");
    cot_fma(x, x, none);
    expect(t, COT_VAR, "[fma] the third operand is not a value on a tape");
    cot_var bad = cot_add(vec(t, 2), vec(t, 3));
    assert_false(cot_is_valid(bad));
    expect(t, COT_SHAPE,
           "[add] shapes (2,) and (3,) do not broadcast; counted from the end, extents must be equal or 1");
    cot_exp(bad);
    expect(t, COT_VAR, "[exp] the operand is invalid: the operation that should have made it failed");
    cot_where(cot_greater(vec(t, 4), 0.0), cot_tensor(t, COT_F64, COT_SHAPE(2, 1), numbers), vec(t, 3));
    expect(t, COT_SHAPE,
           "[where] shapes (2,4) and (3,) do not broadcast; counted from the end, extents must be equal or 1");
    cot_mark m = cot_tape_mark(t);
    cot_var  gone = cot_mul(x, x);
    cot_tape_rewind(t, m);
    cot_mul(gone, x);
    expect(t, COT_VAR, "[mul] the left operand was forgotten by a rewind");
    cot_var instead = cot_mul(x, 3.0); /* at the same index */
    assert_int_equal((uint32_t)instead.id, (uint32_t)gone.id);
    assert_false(cot_is_valid(gone));
    assert_true(isnan(cot_value(gone)));
    expect(t, COT_VAR, "[value] the operand was forgotten by a rewind");
    cot_sum_of(2, (cot_var[]){instead, gone});
    expect(t, COT_VAR, "[sum_of] the first operand was forgotten by a rewind");
    cot_dot_of(1, &x, &gone);
    expect(t, COT_VAR, "[dot_of] the second operand was forgotten by a rewind");
    cot_sum_of(2, (cot_var[]){x, vec(t, 2)});
    expect(t, COT_SHAPE,
           "[sum_of] element 1 is a tensor; every element must be a scalar, use cot_stack or cot_dot for tensors");
    cot_logsumexp_of(2, (cot_var[]){x, gone});
    expect(t, COT_VAR, "[logsumexp_of] the first operand was forgotten by a rewind");
    cot_logsumexp_of(2, (cot_var[]){vec(t, 2), x});
    expect(
        t, COT_SHAPE,
        "[logsumexp_of] element 0 is a tensor; every element must be a scalar, use cot_stack or cot_dot for tensors");
    cot_tape_destroy(t);
    cot_tape_destroy(u);
}

static void marks(void **state) {
    (void)state;
    static const char *const text = "[tape_rewind] this mark lies in a part of the tape that was already forgotten; "
                                    "marks are rewound in the reverse of the order in which they were made";
    cot_tape *t = open_tape(), *u = open_tape();
    cot_var   x = vec(t, 3);
    cot_mark  a = cot_tape_mark(t);
    cot_exp(x);
    cot_mark b = cot_tape_mark(t);
    cot_tape_rewind(t, a);
    cot_tape_rewind(t, b);
    expect(t, COT_VALUE, text);
    cot_sin(x); /* as long as before, and yet another tape */
    cot_tape_rewind(t, b);
    expect(t, COT_VALUE, text);
    cot_tape_rewind(t, a);
    /* Between two nodes: a long name makes memory of its own, which the first rewind frees. */
    char long_name[1 << 17];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    cot_name(x, long_name);
    b = cot_tape_mark(t);
    cot_tape_rewind(t, a);
    cot_tape_rewind(t, b);
    expect(t, COT_VALUE, text);
    double got[3];
    assert_int_equal(cot_read(x, got, 3), COT_OK);
    cot_tape_rewind(u, a);
    expect(u, COT_VALUE, "[tape_rewind] this mark was made on another tape, or never; cot_tape_mark makes one");
    cot_tape_rewind(t, (cot_mark){{0}});
    expect(t, COT_VALUE, "[tape_rewind] this mark was made on another tape, or never; cot_tape_mark makes one");
    cot_tape_rewind(t, a);
    assert_ok(t);
    cot_tape_destroy(t);
    cot_tape_destroy(u);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void reading(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = vec(t, 3), y = cot_exp(x);
    double    got[3];
    assert_true(isnan(cot_value(x)));
    expect(t, COT_SHAPE, "[value] shape (3,) has 3 elements; only a single number has a value, use cot_read for more");
    assert_int_equal(cot_value_i64(x), 0);
    expect(t, COT_SHAPE,
           "[value_i64] shape (3,) has 3 elements; only a single number has a value, use cot_read for more");
    assert_int_equal(cot_read(x, got, 2), COT_SHAPE);
    expect(t, COT_SHAPE, "[read] room for 2 elements, but shape (3,) has 3");
    assert_int_equal(cot_read_as(x, (cot_dtype)-1, got, 3), COT_DTYPE);
    expect(t, COT_DTYPE, "[read_as] -1 is not a dtype");
    assert_int_equal(cot_read_grad(x, got, 4), COT_SHAPE);
    expect(t, COT_SHAPE, "[read_grad] room for 4 elements, but shape (3,) has 3");
    assert_true(isnan(cot_grad_value(x)));
    expect(t, COT_SHAPE, "[grad_value] the gradient has 3 elements; use cot_read_grad");
    assert_int_equal(cot_read_grad(y, got, 3), COT_GRAD);
    expect(t, COT_GRAD,
           "[read_grad] exp (v₁) keeps no gradient; only leaves do, and values marked with cot_retain_grad before "
           "backward");
    assert_true(isnan(cot_grad_value(cot_name(cot_exp(x), "y"))));
    expect(t, COT_GRAD,
           "[grad_value] exp (y) keeps no gradient; only leaves do, and values marked with cot_retain_grad "
           "before backward");
    cot_zero_grad(y);
    expect(t, COT_GRAD,
           "[zero_grad] exp (v₁) keeps no gradient; only leaves do, and values marked with cot_retain_grad before "
           "backward");
    cot_tape_destroy(t);
}

/* ---- the drivers ----------------------------------------------------------------------------- */

static void reverse_mode(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = vec(t, 3), c = cot_constant(t, 1), i = cot_data(t, COT_I64, COT_SHAPE(1), NULL), y = cot_square(x), g;
    cot_var   d = cot_name((cot_detach)(x), "d");
    assert_int_equal(cot_backward(y), COT_SHAPE);
    expect(t, COT_SHAPE,
           "[backward] y has shape (3,), not a single number; give a seed of that shape (cot_backward_seeded, "
           "cot_vjp), or reduce y "
           "to a scalar first");
    cot_grad_of(y, 1, &x, &g);
    expect(t, COT_SHAPE,
           "[grad_of] y has shape (3,), not a single number; give a seed of that shape (cot_backward_seeded, cot_vjp), "
           "or reduce y "
           "to a scalar first");
    assert_null(cot_sparse_hessian_plan(y, 1, &x));
    expect(t, COT_SHAPE,
           "[sparse_hessian_plan] y has shape (3,), not a single number; a Hessian is of one number: cot_sum y first");
    /* a number is the seed of every element */
    assert_int_equal(cot_backward_seeded(y, 0.0), COT_OK);
    cot_backward_seeded(y, ((cot_var){NULL, 0}));
    expect(t, COT_VAR, "[backward_seeded] the seed operand is not a value on a tape");
    cot_backward_seeded(y, c);
    expect(t, COT_SHAPE, "[backward_seeded] the seed has shape (), y has (3,); they must be equal");
    cot_vjp(y, vec(t, 2), 1, &x, &g);
    expect(t, COT_SHAPE, "[vjp] the seed has shape (2,), y has (3,); they must be equal");
    assert_int_equal(cot_backward(i), COT_DTYPE);
    expect(t, COT_DTYPE, "[backward] constant (c₁) has dtype i64; only floats have derivatives");
    assert_int_equal(cot_backward(c), COT_GRAD);
    expect(t, COT_GRAD,
           "[backward] y, constant (1), depends on no leaf: nothing requires a gradient (constants, detach, a no-grad "
           "scope, or an "
           "operation without derivative lie between)");
    cot_grad_of(c, 1, &d, &g);
    expect(t, COT_GRAD,
           "[grad_of] xs[0], detach (d), does not require a gradient: it is a constant, detached, an integer, "
           "or was recorded "
           "without gradients");
    cot_vjp(y, x, 2, (cot_var[]){x, (cot_var){0}}, (cot_var[]){x, x});
    expect(t, COT_VAR, "[vjp] the xs[1] operand is not a value on a tape");
    cot_retain_grad(c);
    expect(t, COT_GRAD,
           "[retain_grad] xs[0], constant (1), does not require a gradient: it is a constant, detached, an integer, "
           "or was recorded "
           "without gradients");
    cot_tape_destroy(t);
}

/* A rule whose contribution has the wrong shape is a bug of the rule; made here by bending a
 * node. */
static void a_rule_that_gives_the_wrong_shape(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   w = vec(t, 2), x = vec(t, 3), y = cot_cast(x, COT_F32), g;
    t->nodes[(uint32_t)y.id].a = (uint32_t)w.id;
    cot_backward(cot_sum(y, COT_ALL));
    expect(t, COT_SHAPE, "[cast] its derivative rule gave an adjoint of shape (3,) for an operand of shape (2,)");
    cot_grad_of(cot_sum(y, COT_ALL), 1, &w, &g);
    expect(t, COT_SHAPE, "[cast] its derivative rule gave an adjoint of shape (3,) for an operand of shape (2,)");
    cot_tape_destroy(t);
}

static void forward_mode(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = vec(t, 3), y = cot_square(x), c = cot_constant(t, 1);
    assert_false(cot_is_valid(cot_jvp(y, 1, &x, &c)));
    expect(t, COT_SHAPE, "[jvp] tangents[0] has shape (), xs[0] has (3,); they must be equal");
    cot_jvp(y, 1, &x, (cot_var[]){COT_NONE});
    expect(t, COT_VAR, "[jvp] the tangents[0] operand is not a value on a tape");
    cot_jvp(y, 1, &c, &c);
    expect(t, COT_GRAD,
           "[jvp] xs[0], constant (1), does not require a gradient: it is a constant, detached, an integer, or was "
           "recorded "
           "without gradients");
    cot_tape_destroy(t);
}

static void matrices(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3), y = cot_square(x), i = cot_data(t, COT_I64, COT_SHAPE(2), NULL), none = {0},
            one[2]   = {y, i};
    double    out[4] = {7, 7, 7, 7}, seed[4] = {1, 0, 0, 0};
    assert_int_equal(cot_vjps(1, 2, one, seed, 1, &x, out), COT_DTYPE);
    expect(t, COT_DTYPE, "[vjps] ys[1] has dtype i64; only floats have derivatives");
    cot_vjps(1, 1, &y, seed, -1, &x, out);
    expect(t, COT_VALUE, "[vjps] a negative number of vars: -1");
    cot_jvps(-2, 1, &x, seed, 1, &y, out);
    expect(t, COT_VALUE, "[jvps] a negative number of lanes: -2");
    cot_grad_of(y, -1, &x, NULL);
    expect(t, COT_VALUE, "[grad_of] a negative number of vars: -1");
    cot_jvps(1, 1, &i, seed, 1, &y, out);
    expect(t, COT_GRAD,
           "[jvps] xs[0], constant (c₁), does not require a gradient: it is a constant, detached, an integer, or was "
           "recorded "
           "without gradients");
    cot_jacobian(2, (cot_var[]){y, none}, 1, &x, COT_AUTO, out);
    expect(t, COT_VAR, "[jacobian] the ys[1] operand is not a value on a tape");
    cot_mark m = cot_tape_mark(t);
    cot_var  gone = cot_square(x);
    cot_tape_rewind(t, m);
    /* also when nothing would be computed */
    assert_int_equal(cot_jacobian(1, &gone, 1, &x, COT_AUTO, out), COT_VAR);
    expect(t, COT_VAR, "[jacobian] the ys[0] operand was forgotten by a rewind");
    assert_int_equal(cot_jacobian(1, &y, 1, &gone, COT_FORWARD, out), COT_VAR);
    expect(t, COT_VAR, "[jacobian] the xs[0] operand was forgotten by a rewind");
    assert_int_equal(cot_jacobian(1, &y, 0, NULL, COT_FORWARD, out), COT_OK);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, (cot_mode)9, out), COT_VALUE);
    expect(t, COT_VALUE, "[jacobian] 9 is not a mode; COT_AUTO, COT_REVERSE and COT_FORWARD are");
    assert_true(isnan(out[0])); /* a failure leaves no number behind */
    assert_int_equal(cot_grad_of(y, 1, NULL, one), COT_VALUE);
    expect(t, COT_VALUE, "[grad_of] the list of 1 vars is NULL");
    assert_int_equal(cot_jacobian(1, NULL, 1, &x, COT_AUTO, out), COT_VAR);
    expect(t, COT_VAR, "[jacobian] the list of 1 y is NULL");
    assert_false(cot_is_valid(cot_stack(2, NULL, 0)) || cot_is_valid(cot_concat(2, NULL, 0)) ||
                 cot_is_valid(cot_sum_of(2, NULL)));
    assert_int_equal(cot_hessian(gone, 1, &x, out), COT_VAR);
    expect(t, COT_VAR, "[hessian] the operand was forgotten by a rewind");
    assert_int_equal(cot_hvp(y, 1, &gone, seed, out), COT_VAR);
    expect(t, COT_VAR, "[hvp] the xs[0] operand was forgotten by a rewind");
    for (int k = 1; k < 4; k++) assert_near(out[k], 7, 0);
    cot_tape_destroy(t);
}

static void assignment(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = vec(t, 3), y = cot_square(x), s = cot_scalar(t, 1);
    assert_int_equal(cot_assign(y, 1.0), COT_VALUE);
    expect(t, COT_VALUE,
           "[assign] square (v₁) is computed from other values; only leaves and constants can be assigned");
    cot_assign_data(y, numbers);
    expect(t, COT_VALUE,
           "[assign_data] square (v₁) is computed from other values; only leaves and constants can be assigned");
    cot_assign(x, s);
    expect(t, COT_SHAPE, "[assign] the value has shape (), the leaf (3,); they must be equal");
    cot_assign(x, (cot_flip)(x, COT_ALL));
    expect(t, COT_VALUE,
           "[assign] the value is a view of the leaf's own memory; compute it into memory of its own first");
    cot_assign_data(x, NULL);
    expect(t, COT_VALUE, "[assign_data] the data is NULL; it must hold 3 elements");
    assert_int_equal(cot_sgd_step(2, (cot_var[]){x, y}, 0.1), COT_VALUE);
    expect(t, COT_VALUE, "[sgd_step] xs[1] is not a leaf");
    cot_assign(x, (cot_var){0});
    expect(t, COT_VAR, "[assign] the new operand is not a value on a tape");
    /* a failed tape keeps its first code, and every call returns it */
    cot_backward(cot_constant(t, 1));
    assert_int_equal(cot_assign(x, 1.0), COT_GRAD);
    assert_int_equal(cot_assign_data(x, numbers), COT_GRAD);
    assert_int_equal(cot_sgd_step(1, &x, 0.1), COT_GRAD);
    cot_tape_destroy(t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The sentence when a given request fails: counts the requests of a program, then lets one of them
 * fail. */
static void short_of(void (*program)(cot_tape *), long request, size_t from_size, const char *text) {
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    for (int i = 0; i < 5; i++) cot_scalar(t, 2);
    c.requests = 0;
    c.fail_at = request;
    c.fail_from_size = from_size;
    program(t);
    assert_error(t, COT_MEMORY, text);
    c.fail_from_size = 0;
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
    assert_false(c.wrong_size);
}

static void make_tensor(cot_tape *t) { cot_tensor(t, COT_F64, COT_SHAPE(1000), NULL); }
static void make_many(cot_tape *t) {
    for (int i = 0; i < 100; i++) cot_scalar(t, 1);
}
static void make_many_named(cot_tape *t) {
    cot_var x = cot_scalar(t, 1);
    for (int i = 0; i < 17; i++) cot_name(x, "x");
}
static cot_var first(cot_tape *t) { return VAR(t, 0); }
static void sweep_back(cot_tape *t) { cot_backward(cot_square(first(t))); }
static void record_gradient(cot_tape *t) {
    cot_var x = first(t), g;
    cot_grad_of(cot_square(x), 1, &x, &g);
}
static void many_inputs(cot_tape *t) {
    cot_var x[20], g[20];
    for (int i = 0; i < 20; i++) x[i] = first(t);
    cot_grad_of(cot_square(x[0]), 20, x, g);
}
static void many_tangents(cot_tape *t) {
    cot_var x[20];
    for (int i = 0; i < 20; i++) x[i] = first(t);
    cot_jvp(cot_square(x[0]), 20, x, x);
}
static void wide_tangent(cot_tape *t) {
    cot_var x[9], y, y2;
    for (int i = 0; i < 9; i++) x[i] = first(t);
    y = cot_sum_of(9, x);
    y2 = cot_jvp(y, 1, x, x);
    (void)y2;
}
static void one_vjps(cot_tape *t) {
    double  seed = 1, out;
    cot_var x = first(t), y = cot_square(x);
    cot_vjps(1, 1, &y, &seed, 1, &x, &out);
}
static void one_jacobian(cot_tape *t) {
    double  out;
    cot_var x = first(t), y = cot_square(x);
    cot_jacobian(1, &y, 1, &x, COT_FORWARD, &out);
}
static void one_hessian(cot_tape *t) {
    double  out;
    cot_var x = first(t);
    cot_hessian(cot_square(x), 1, &x, &out);
}
static void backward_after_assign(cot_tape *t) {
    cot_var x = first(t), y = cot_square(x);
    cot_assign(x, 3.0);
    cot_backward(y);
}

static void memory(void **state) {
    (void)state;
    short_of(make_tensor, 1, 0, "[tensor] out of memory: 8000 bytes for a tensor");
    short_of(make_tensor, 2, 0, "[tensor] out of memory: 128 bytes for a list of the tape");
    short_of(make_tensor, 3, 0, "[tensor] out of memory: 4032 bytes for shapes and attributes");
    short_of(make_tensor, 4, 0, "[leaf] out of memory: 64 bytes for a list of the tape");
    short_of(make_many, 1, 0, "[leaf] out of memory: 2080 bytes for the tape");
    short_of(make_many_named, 3, 0, "[name] out of memory: 512 bytes for a list of the tape");
    short_of(sweep_back, 1, 0, "[backward] out of memory: 48 bytes for the adjoints of the sweep");
    short_of(record_gradient, 1, 0, "[grad_of] out of memory: 6 bytes to mark what depends on the inputs");
    short_of(many_inputs, 1, 0, "[grad_of] out of memory: a list of 20 inputs");
    short_of(many_tangents, 1, 0, "[jvp] out of memory: a list of 20 inputs");
    short_of(wide_tangent, 3, 0, "[jvp] out of memory: 6 bytes to mark what the results depend on");
    short_of(wide_tangent, 4, 0, "[jvp] out of memory: the tangents of 9 operands");
    short_of(one_vjps, 1, 0, "[vjps] out of memory: a list of 1 vars");
    short_of(one_jacobian, 1, 0, "[jacobian] out of memory: 1 directions of 1 elements");
    short_of(one_jacobian, 2, 0, "[jacobian] out of memory: 1 directions of 1 elements");
    short_of(one_hessian, 1, 0, "[hessian] out of memory: 1 gradients");
    short_of(backward_after_assign, 1, 0, "[backward] out of memory: 6 bytes to look for assigned leaves");
    assert_string_equal(cot_tape_message(NULL), "the tape is NULL: cot_tape_create found no memory");
    assert_int_equal(cot_tape_status(NULL), COT_MEMORY);
    counting c = {.fail_at = 1};
    assert_null(counted_tape(&c, false));
}

/* ---- sticking -------------------------------------------------------------------------------- */

static void the_first_error_sticks(void **state) {
    (void)state;
    static const char *const text =
        "[add] shapes (2,) and (3,) do not broadcast; counted from the end, extents must be equal or 1";
    cot_tape *t = open_tape();
    cot_var   x = vec(t, 2), y = vec(t, 3), s = cot_scalar(t, 4), z = cot_add(x, y);
    int64_t   length = cot_tape_length(t);
    assert_error(t, COT_SHAPE, text);
    assert_false(cot_is_valid(z));
    assert_ptr_equal(z.tape, t);
    /* harmless, invalid, unrecorded; and the sentence is still the first */
    assert_false(cot_is_valid(cot_mul(s, s)));
    assert_false(cot_is_valid(cot_exp(x)));
    assert_false(cot_is_valid(cot_scalar(t, 1)));
    assert_false(cot_is_valid(cot_tensor(t, COT_F64, COT_SHAPE(2), NULL)));
    assert_false(cot_is_valid(cot_matmul(x, y)));
    cot_reshape(x, COT_SHAPE(7));
    cot_no_grad_close(t);
    cot_name(z, NULL);
    assert_int_equal(cot_backward(s), COT_SHAPE);
    assert_int_equal(cot_tape_length(t), length);
    assert_error(t, COT_SHAPE, text);
    assert_true(isnan(cot_value(z)));
    assert_true(isnan(cot_grad_value(z)));
    assert_int_equal(cot_value_i64(z), 0);
    assert_int_equal(cot_size(z), 0);
    assert_int_equal(cot_shape_of(z).ndim, 0);
    /* values that were valid can still be read */
    assert_near(cot_value(s), 4, 0);
    cot_tape_clear_error(t);
    assert_ok(t);
    assert_true(cot_is_valid(cot_mul(s, s)));
    assert_false(cot_is_valid(z));
    cot_tape_destroy(t);
}

static void a_rewind_clears_what_happened_since_and_nothing_else(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = vec(t, 2), y = vec(t, 3);
    cot_mark  before = cot_tape_mark(t);
    cot_add(x, y);
    cot_mark after = cot_tape_mark(t); /* as many operations, but younger than the error */
    cot_tape_rewind(t, after);
    assert_int_equal(cot_tape_status(t), COT_SHAPE);
    cot_tape_rewind(t, before);
    assert_ok(t);
    cot_exp(x);
    cot_mark middle = cot_tape_mark(t);
    cot_exp(x);
    cot_add(x, y);
    cot_tape_rewind(t, middle);
    assert_ok(t);
    assert_true(cot_is_valid(cot_exp(x)));
    cot_tape_destroy(t);
}

/* A value older than a mark may be retained after it: the rewind forgets the retaining, not
 * more. */
static void retaining_is_rewound(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3), y = cot_mul(x, 2.0), v = vec(t, 2), w = cot_mul(v, 2.0);
    cot_mark  m = cot_tape_mark(t);
    cot_retain_grad(y);
    cot_retain_grad(w);
    cot_backward(cot_add(cot_square(y), cot_sum(cot_square(w), COT_ALL)));
    assert_near(cot_grad_value(y), 12, 0);
    cot_tape_rewind(t, m);
    cot_tape_zero_grads(t);
    for (int i = 0; i < 3; i++) {
        cot_backward(cot_add(cot_square(y), cot_sum(cot_square(w), COT_ALL)));
        assert_near(cot_grad_value(x), 24 * (i + 1), 0);
    }
    assert_ok(t);
    assert_true(isnan(cot_grad_value(y)));
    expect(t, COT_GRAD,
           "[grad_value] mul (v₁) keeps no gradient; only leaves do, and values marked with cot_retain_grad before "
           "backward");
    cot_retain_grad(y);
    cot_backward(cot_square(y));
    assert_near(cot_grad_value(y), 12, 0);
    cot_tape_destroy(t);
}

/* ---- every public function, with everything that is not a value ------------------------------ */

static void call_operations(cot_tape *t, cot_var x) {
    cot_axes  all = COT_ALL;
    cot_shape shape = COT_SHAPE(2, 3);
    cot_var   xs[2] = {x, x}, out[2];
#define UNARY(name, ...) (cot_##name)(x);
#define BINARY(name, ...) (cot_##name)(x, x), (cot_##name)(x, cot_number(2)), (cot_##name)(cot_integer(2), x);
#define TERNARY(name, ...) (cot_##name)(x, x, x), (cot_##name)(x, cot_number(2), cot_number(3));
#include "rules/rules.def"
    cot_cast(x, COT_F32), cot_sum(x, all), cot_mean(x, all), cot_prod(x, all), cot_max(x, all), cot_min(x, all);
    cot_argmax(x, all), cot_argmin(x, all), cot_variance(x, all), cot_std(x, all), cot_logsumexp(x, all),
        cot_norm(x, 2, all);
    cot_any(x, all), cot_all(x, all), cot_sum_of(2, xs), cot_dot_of(2, xs, xs), cot_sum_of(0, NULL),
        cot_dot_of(0, NULL, NULL);
    cot_logsumexp_of(2, xs), cot_logsumexp_of(0, NULL), cot_logsumexp_of(-1, xs);
    cot_reshape(x, shape), cot_transpose(x), cot_permute(x, COT_AXES(1, 0)), cot_broadcast_to(x, shape),
        cot_expand_dims(x, 0);
    cot_squeeze(x, all), cot_concat(2, xs, 0), cot_stack(2, xs, 0), cot_concat(0, NULL, 0), cot_stack(0, NULL, 0);
    cot_var part[3];
    cot_solve(x, x), cot_triangular_solve(x, x, 0), cot_triangular_solve(x, x, -1), cot_inv(x), cot_det(x),
        cot_cholesky(x), cot_lstsq(x, x);
    cot_matrix_exp(x), cot_eigvalsh(x), cot_svdvals(x), cot_qr(x, &part[0], &part[1]), cot_qr(x, NULL, NULL),
        cot_slogdet(x, &part[0], &part[1]);
    cot_lu(x, &part[0], &part[1], &part[2]), cot_eigh(x, &part[0], &part[1]), cot_svd(x, &part[0], &part[1], &part[2]);
    cot_slice(x, 0, 0, 1, 1), cot_index(x, 0, 0), cot_pad(x, shape, shape, 0), cot_flip(x, all);
    cot_take(x, x, 0), cot_take_along_axis(x, x, 0), cot_scatter_add(x, x, x, 0), cot_one_hot(x, 3, COT_F64);
    cot_roll(x, 1, 0), cot_tile(x, shape), cot_repeat(x, 2, 0), cot_diag(x, 1), cot_tril(x, 0), cot_triu(x, 0);
    cot_trace(x, 0), cot_kron(x, x);
    cot_gather(x, x), cot_scatter(x, x, x, 0), cot_compress(x, x, 0), cot_compress_to(x, x, 0, 2, 0),
        cot_masked_select(x, x);
    cot_cumsum(x, 0, false), cot_cumprod(x, 0, true), cot_cummax(x, 0, false), cot_cummin(x, 0, true),
        cot_sort(x, 0, false);
    cot_argsort(x, 0, true), cot_topk(x, 1, 0, out), cot_topk(x, 1, 0, NULL), cot_searchsorted(x, x, true);
    cot_matmul(x, x), cot_dot(x, x), cot_outer(x, x), cot_softmax(x, 0), cot_log_softmax(x, 0);
    cot_softmax_cross_entropy(x, x), cot_cross_entropy(x, x), (cot_mse)(x, x);
    cot_einsum("i,i", 2, xs), cot_einsum(NULL, 2, xs), cot_einsum("", 0, NULL), cot_tensordot(x, x, all, all);
    cot_fft(x, 0, 0), cot_ifft(x, 0, 0), cot_rfft(x, 0, 0), cot_irfft(x, 0, 0), cot_fft_convolve(x, x, 0, "full"),
        cot_fft_convolve(x, x, 0, NULL);
    cot_attention(x, x, x, NULL), cot_attention(x, x, x, &(cot_attention_options){.mask = x, .bias = x});
    cot_conv1d(x, x, COT_CONV(0)), cot_conv2d(x, x, COT_CONV(0)), cot_conv3d(x, x, COT_CONV(0)),
        cot_conv_transpose1d(x, x, COT_CONV(0));
    cot_conv_transpose2d(x, x, COT_CONV(0)), cot_conv_transpose3d(x, x, COT_CONV(0)),
        cot_max_pool1d(x, COT_POOL(.window = {2}));
    cot_max_pool2d(x, COT_POOL(.window = {1, 1})), cot_max_pool3d(x, COT_POOL(.window = {1, 1, 1})),
        cot_avg_pool1d(x, COT_POOL(.window = {2}));
    cot_avg_pool2d(x, COT_POOL(.window = {1, 1})), cot_avg_pool3d(x, COT_POOL(.window = {1, 1, 1}));
    cot_zeros(t, COT_F64, shape), cot_ones(t, COT_F64, shape), cot_full(t, COT_F64, shape, 2), cot_full_like(x, 2),
        cot_arange(t, COT_F64, 0, 3, 1);
    cot_linspace(t, COT_F64, 0, 1, 3), cot_eye(t, COT_F64, 2, 2), cot_split(x, 2, 0, out), cot_detach(x);
    cot_layer_norm(x, x, x, 0, 1), cot_rms_norm(x, x, 0, 1), cot_group_norm(x, 1, x, x, 1),
        cot_layer_norm(x, COT_NONE, COT_NONE, 0, 1);
    cot_batch_norm(x, all, x, x, 1, out, out + 1), cot_batch_norm_inference(x, all, x, x, x, x, 1),
        cot_embedding(x, x, COT_NO_PADDING);
    (cot_bce_with_logits)(x, x), cot_nll(x, x), cot_huber(x, x, 1), cot_kl_div(x, x), cot_cosine_similarity(x, x, 0, 1);
    cot_set_threads(cot_threads() > 1 ? 2 : 1), cot_set_threads(0);
    cot_key key = cot_key_fold(cot_key_of(1), 2);
    cot_key_split(key, 1, &key), cot_key_split(key, 1, NULL), cot_key_split(key, -1, &key);
    cot_uniform(t, key, COT_F64, shape, 0, 1), cot_normal(t, key, COT_F64, shape), cot_gumbel(t, key, COT_F64, shape);
    cot_bernoulli(t, key, x, shape), cot_categorical(key, x, 0), cot_permutation(t, key, 3), cot_shuffle(key, x, 0),
        cot_dropout(x, 0.5, key);
    cot_normal(t, cot_key_at(key, x), COT_F64, shape), cot_dropout(x, 0.5, cot_key_at(cot_key_at(key, x), x));
}

static int give_first(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)user;
    for (int k = 0; k < m; k++) ys[k] = xs[0];
    return 0;
}
static int give_last(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    for (int k = 0; k < m; k++) ys[k] = xs[n - 1];
    return 0;
}
static int give_no(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)xs, (void)m, (void)user;
    ys[0] = cot_integer(0);
    return 0;
}

static cot_var give_it(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return xs[0];
}

static void call_optimisers(cot_tape *t, cot_var x) {
    cot_optim_options o = {.kind = COT_SGD, .rate = 0.1};
    cot_params       *p = cot_params_create(t);
    cot_optim        *made = cot_optim_create(p, &o);
    cot_var           y;
    cot_optim_create(NULL, &o), cot_optim_create(p, NULL), cot_optim_step(made), cot_optim_step(NULL);
    cot_optim_rate(NULL), cot_optim_set_rate(made, 0.1), cot_optim_set_rate(NULL, 0.1), cot_optim_swap(made),
        cot_optim_swap(NULL), cot_optim_swapped(NULL);
    cot_optim_states(NULL), cot_optim_state(made, 0, NULL), cot_optim_steps(NULL), cot_optim_set_steps(NULL, 1);
    cot_optim_kept(NULL), cot_optim_record(&o, x, x, 1, &x, &x, NULL, &y),
        cot_optim_record(NULL, x, x, 1, &x, &x, NULL, &y), cot_optim_record(&o, x, x, 1, NULL, NULL, NULL, NULL);
    cot_schedule_rate(NULL, 0), cot_clip_grad_norm(p, 1), cot_clip_grad_norm(NULL, 1);
    cot_grad_scale(x, 2), cot_grad_set(x, x), cot_grad_set(x, 1.0), cot_grad_add(x, x), cot_grad_add(x, 1.0);
    cot_lbfgs_minimize(1, &x, give_it, NULL, NULL, NULL), cot_lbfgs_minimize(1, NULL, give_it, NULL, NULL, NULL),
        cot_lbfgs_minimize(1, &x, NULL, NULL, NULL, NULL);
    cot_least_squares(1, &x, give_it, NULL, NULL, NULL), cot_least_squares(-1, &x, give_it, NULL, NULL, NULL);
    cot_optim_destroy(made), cot_params_destroy(p);
}

static void call_the_rest(cot_tape *t, cot_var x) {
    double   d[8] = {0};
    cot_var  g[2], w = x;
    cot_mark m = cot_tape_mark(t);
    cot_tape_status(t), cot_tape_message(t), cot_tape_length(t), cot_tape_storage_bytes(t), cot_tape_bytes(t),
        cot_tape_peak_bytes(t), cot_tape_memory_limit(t), cot_tape_set_memory_limit(t, -1), cot_tape_trim(t);
    cot_tape_note(t), cot_tape_clear_note(t);
    cot_tape_status(t), cot_tape_message(t), cot_tape_length(t), cot_tape_storage_bytes(t), cot_tape_bytes(t);
    cot_scalar(t, 1), cot_scalar_of(t, COT_F32, 1), cot_tensor(t, COT_F64, COT_SHAPE(2), NULL), cot_constant(t, 1);
    cot_data(t, COT_F64, COT_SHAPE(2), NULL), cot_wrap(t, COT_F64, COT_SHAPE(2), d), cot_name(x, "x"),
        cot_name(x, NULL);
    cot_is_valid(x), cot_tape_of(x), cot_value(x), cot_value_i64(x), cot_dtype_of(x), cot_shape_of(x), cot_size(x),
        cot_requires_grad(x);
    cot_read(x, d, 1), cot_read_as(x, COT_F32, d, 1), cot_dtype_name(cot_dtype_of(x)),
        cot_status_name(cot_tape_status(t));
    cot_backward(x), cot_backward_seeded(x, x), cot_grad_value(x), cot_read_grad(x, d, 1), cot_grad(x),
        cot_zero_grad(x);
    cot_tape_zero_grads(t), cot_retain_grad(x), cot_grad_of(x, 1, &x, g), cot_vjp(x, x, 1, &x, g),
        cot_jvp(x, 1, &x, &x);
    cot_taylor(x, 1, &x, 1, &x, 1, g), cot_taylor(x, 1, NULL, 1, NULL, 1, NULL),
        cot_taylor_values(x, 1, &x, 1, d, 1, d);
    cot_vjps(1, 1, &x, d, 1, &x, d), cot_jvps(1, 1, &x, d, 1, &x, d), cot_jacobian(1, &x, 1, &x, COT_AUTO, d);
    cot_hessian(x, 1, &x, d), cot_hvp(x, 1, &x, d, d), cot_grad_of(x, 0, NULL, NULL),
        cot_jacobian(0, NULL, 0, NULL, COT_AUTO, NULL);
    cot_scope_open(t, "a"), cot_scope_close(t, 1, &x), cot_scope_open(t, NULL), cot_scope_close(t, 1, NULL);
    cot_tape_peak_bytes(t), cot_tape_memory(t, NULL, NULL);
    cot_no_grad_open(t), cot_no_grad_close(t), cot_assign(x, x), cot_assign(x, 1.0), cot_assign_data(x, d),
        cot_assign_data(x, NULL);
    cot_sgd_step(1, &x, 0.1), cot_sgd_step(0, NULL, 0.1), cot_leaf(x),
        cot_adamw_step(1, &x, NULL, NULL, (cot_adamw){.step = 1});
    call_optimisers(t, x);
    (cot_add_into)(&w, x), (cot_sub_into)(&w, x), (cot_mul_into)(&w, x), (cot_div_into)(&w, x), (cot_copy_into)(&w, x);
    (cot_update_slice)(&w, 0, 0, 1, 1, x), cot_touch(&w), cot_add_into(&w, 1.0), cot_update_slice(&w, 0, 0, 1, 1, 2.0);
    cot_copy(x), (cot_add_into)(NULL, x), (cot_copy_into)(NULL, x), (cot_update_slice)(NULL, 0, 0, 1, 1, x),
        cot_touch(NULL);
    static const cot_site here = {__FILE__, 1, "here"};
    cot_sited(x, &here);
    const cot_custom nothing = {.name = "nothing"};
    cot_call(&nothing, 1, &x, NULL), cot_call(NULL, 1, &x, NULL), cot_call(&nothing, 0, NULL, NULL);
    cot_var     results[2] = {x, x}, pair[2] = {x, x};
    cot_linear *linear;
    cot_value_and_grad(give_first, NULL, 1, &x, NULL, results), cot_value_and_grad(NULL, NULL, 1, &x, NULL, results);
    cot_fn_vjp(give_first, NULL, 1, &x, 1, results, &x, results + 1),
        cot_fn_jvp(give_first, NULL, 1, &x, &x, 1, results, results + 1);
    cot_fn_jacobian(give_first, NULL, 1, &x, 1, results, COT_AUTO, results + 1),
        cot_fn_jacobian(NULL, NULL, 1, &x, 1, NULL, COT_AUTO, results);
    cot_fn_hessian(give_first, NULL, 1, &x, results, results + 1), cot_fn_hessian(NULL, NULL, 1, &x, NULL, results);
    cot_linearize(give_first, NULL, 1, &x, 1, results, &linear);
    cot_linear_jvp(linear, &x, results), cot_linear_vjp(linear, &x, results), cot_linear_jvp(NULL, &x, results),
        cot_linear_vjp(NULL, &x, results);
    cot_stop_gradient(x);
    cot_checkpoint_sequential(NULL, NULL, 2, 0, 1, &x, results);
    cot_checkpoint_sequential(NULL, NULL, 0, 0, 0, NULL, NULL);
    cot_vmap(give_first, NULL, 1, &x, NULL, 1, results, NULL), cot_vmap(NULL, NULL, 1, &x, NULL, 1, results, NULL);
    double           values[64];
    cot_sparse_plan *plan   = cot_sparse_jacobian_plan(1, &x, 1, &x, COT_AUTO),
                    *other  = cot_sparse_hessian_plan(x, 1, &x);
    cot_sparse_plan *third  = cot_sparse_jacobian_plan_of(give_first, NULL, 1, &x, 1, COT_AUTO),
                    *fourth = cot_sparse_hessian_plan_of(give_first, NULL, 1, &x);
    cot_sparse_jacobian_plan(-1, &x, 1, NULL, COT_AUTO), cot_sparse_jacobian_plan_of(NULL, NULL, 1, &x, 1, COT_AUTO);
    cot_sparse_plan_limit(t, 0), cot_sparse_plan_limit(NULL, -1);
    cot_sparse_plan_info(plan), cot_sparse_plan_info(NULL);
    if (cot_sparse_plan_info(plan).nnz < 64)
        cot_sparse_jacobian(plan, 1, &x, 1, &x, values),
            cot_sparse_jacobian_of(third, give_first, NULL, 1, &x, 1, values);
    cot_sparse_hessian(other, x, 1, &x, values), cot_sparse_hessian_of(fourth, give_first, NULL, 1, &x, values),
        cot_sparse_hessian(NULL, x, 1, &x, values);
    cot_sparse_jacobian(NULL, 1, &x, 1, &x, values), cot_sparse_check(plan, 1, &x, 1, &x, values, 1),
        cot_sparse_check(NULL, 1, &x, 1, &x, values, 1);
    cot_fn_sparse_jacobian(plan, give_first, NULL, 1, &x, 1, results, results + 1),
        cot_fn_sparse_hessian(other, give_first, NULL, 1, &x, results, results + 1);
    cot_fn_sparse_jacobian(NULL, NULL, NULL, 1, &x, 1, NULL, results),
        cot_fn_sparse_hessian(NULL, give_first, NULL, 1, &x, NULL, NULL);
    FILE *file = tmpfile();
    cot_sparse_plan_save(plan, file), cot_sparse_plan_save(NULL, file);
    rewind(file);
    cot_sparse_plan_destroy(cot_sparse_plan_load(t, file));
    fclose(file);
    cot_sparse_plan_destroy(plan), cot_sparse_plan_destroy(other), cot_sparse_plan_destroy(third),
        cot_sparse_plan_destroy(fourth);
    cot_scan(give_first, NULL, -1, 1, &x, 1, &x, results, 0, NULL, NULL),
        cot_scan(NULL, NULL, 3, 1, &x, 0, NULL, results, 0, NULL, NULL);
    cot_scan(give_first, NULL, 2, -1, &x, 0, NULL, results, 0, NULL, NULL),
        cot_scan(give_first, NULL, 2, 1, NULL, 0, NULL, results, 0, NULL, NULL);
    cot_fori(give_last, NULL, 0, 2, 1, &x, results, NULL), cot_fori(NULL, NULL, 0, 2, 0, NULL, NULL, NULL);
    cot_while(give_no, give_first, NULL, 1, &x, results, NULL), cot_while(NULL, NULL, NULL, 1, &x, results, NULL);
    cot_cond(x, give_first, give_first, NULL, 1, &x, 1, results), cot_cond(x, NULL, NULL, NULL, 2, pair, 1, results);
    cot_custom_fn(NULL, give_first, NULL, 1, &x, 1, results);
    cot_checkpoint(give_first, NULL, 1, &x, 1, results), cot_checkpoint(NULL, NULL, 0, NULL, 0, NULL);
    cot_vmap(give_first, NULL, 1, &x, NULL, 1, results, NULL), cot_vmap(NULL, NULL, 1, &x, NULL, 1, results, NULL);
    cot_vmap(give_first, NULL, 1, NULL, NULL, 1, results, NULL),
        cot_vmap(give_first, NULL, -1, &x, NULL, 0, NULL, NULL);
    cot_linear_solve(give_first, NULL, x, NULL), cot_linear_solve(NULL, NULL, x, NULL);
    cot_root(give_first, NULL, NULL, x, 1, &x, NULL), cot_root(NULL, NULL, NULL, x, 0, NULL, NULL),
        cot_root(give_first, NULL, NULL, x, 2, NULL, NULL);
    cot_fixed_point(give_first, NULL, NULL, x, -1, &x, NULL), cot_minimize(give_first, NULL, NULL, x, 0, NULL, NULL);
    char  text[64];
    FILE *out = tmpfile();
    cot_tape_print(t, out), cot_tape_print_sweep(x, out);
    fclose(out);
    cot_tape_check(t, text, sizeof text), cot_tape_check(t, NULL, 0), cot_explain(x, text, sizeof text),
        cot_explain(x, NULL, 0);
    cot_report(x, text, sizeof text), cot_report(x, NULL, 0);
    cot_check_grads(NULL, NULL, 0, NULL, 1, NULL);
    cot_tape_rewind(t, m);
}

static void call_sparse(cot_tape *t, cot_var x) {
    cot_mark      m = cot_tape_mark(t);
    const int64_t at[2] = {0, 1};
    cot_array     starts = {COT_I64, COT_SHAPE(2), 2, (int64_t[]){0, 2}}, indices = {COT_I64, COT_SHAPE(2), 2, NULL};
    indices.data = (void *)(uintptr_t)at;
    cot_csr_from_triplets(t, 2, 2, 2, NULL, at, x), cot_csr_from_dense(x), cot_csr_gcn(t, COT_F32, 2, 2, at, NULL);
    cot_csr_gcn(t, COT_BOOL, -1, -1, at, at), cot_csr_from_arrays(t, -1, 2, &starts, NULL, x);
    cot_csr all[] = {{2, 2, x, x},
                     {2, 2, x, cot_data(t, COT_I32, COT_SHAPE(12), NULL)},
                     cot_csr_from_triplets(t, 2, 2, 2, at, at, x),
                     cot_csr_from_arrays(t, 1, 2, &starts, &indices, x)};
    for (int k = 0; k < 4; k++) {
        cot_csr a = all[k];
        cot_csr_matmul(a, x), cot_csr_matmul_transposed(a, x), cot_matmul_csr(x, a), cot_csr_sddmm(a, x, x);
        cot_csr_sum_rows(a), cot_csr_sum_columns(a), cot_csr_softmax(a), cot_csr_transpose(a), cot_csr_to_dense(a);
        cot_csr_entry_rows(a), cot_csr_entry_columns(a), cot_csr_solve(a, x, NULL);
    }
    cot_tape_rewind(t, m);
}

static void nothing_crashes(void **state) {
    (void)state;
    cot_tape *failed = open_tape(), *fine = open_tape();
    cot_var   on_failed = cot_scalar(failed, 1), tensor_on_failed = vec(failed, 2);
    cot_mark  m = cot_tape_mark(fine);
    cot_var   forgotten = cot_scalar(fine, 1), forgotten_tensor = vec(fine, 2);
    cot_tape_rewind(fine, m);
    cot_scalar(fine, 1);
    cot_var integers = cot_data(fine, COT_I64, COT_SHAPE(2), NULL);
    cot_no_grad_close(failed);
    const struct { cot_tape *t; cot_var x;
    } cases[] = {
        {NULL, {NULL, 0}},
        {NULL, {NULL, UINT64_MAX}},
        {NULL, cot_number(2)},
        {NULL, cot_integer(2)},
        {fine, {fine, UINT64_MAX}},
        {fine, {NULL, 0}},
        {fine, cot_number(2)},
        {fine, forgotten},
        {fine, forgotten_tensor},
        {failed, on_failed},
        {failed, tensor_on_failed},
        {failed, {failed, UINT64_MAX}},
        {NULL, forgotten},
        {fine, on_failed},
        {fine, integers},
        {fine, cot_scalar(fine, 1)},
        {fine, vec(fine, 2)},
        {fine, cot_data(fine, COT_F64, COT_SHAPE(0), NULL)},
        {fine, cot_tensor(fine, COT_F16, COT_SHAPE(1, 2, 0, 2), NULL)},
        {fine, cot_data(fine, COT_BOOL, COT_SCALAR, NULL)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        call_operations(cases[i].t, cases[i].x);
        call_the_rest(cases[i].t, cases[i].x), call_sparse(cases[i].t, cases[i].x);
        cot_tape_clear_error(fine);
        call_the_rest(cases[i].t, cases[i].x), call_sparse(cases[i].t, cases[i].x);
        cot_tape_clear_error(fine);
    }
    assert_error(failed, COT_VALUE, "[no_grad_close] no no-grad scope is open; every close needs its open");
    assert_true(isnan(cot_value((cot_var){0})));
    assert_string_equal(cot_status_name((cot_status)99), "?");
    assert_string_equal(cot_dtype_name((cot_dtype)99), "?");
    assert_string_equal(cot_status_name(COT_STALE), "STALE");
    assert_non_null(cot_version());
    cot_set_threads(-7); /* as many as there are processors */
    assert_true(cot_threads() >= 1);
    cot_tape_clear_error(NULL);
    cot_tape_destroy(NULL);
    cot_tape_destroy(failed);
    cot_tape_destroy(fine);
}

/* ---- the environment ------------------------------------------------------------------------- */

static void told_of(const char *name, const char *text, const char *message) {
    setenv(name, text, 1);
    cot_tape *t = cot_tape_create(NULL);
    assert_string_equal(cot_tape_message(t), message);
    assert_int_equal(cot_tape_status(t), *message ? COT_VALUE : COT_OK);
    cot_tape_destroy(t);
    unsetenv(name);
}

static void variables_that_cannot_be_read(void **state) {
    (void)state;
    const char *const isa = getenv("COTANGENT_ISA");
    if (isa) return; /* the test is run for it */
    cot_set_threads(0);
    told_of("COTANGENT_THREADS", "abc",
            "[tape_create] COTANGENT_THREADS is \"abc\"; it must be a whole number, 1 at least");
    told_of("COTANGENT_THREADS", "0",
            "[tape_create] COTANGENT_THREADS is \"0\"; it must be a whole number, 1 at least");
    told_of("COTANGENT_THREADS", "", "");
    told_of("COTANGENT_THREADS", "2", "");
    told_of("COTANGENT_ISA", "avx3", "[tape_create] COTANGENT_ISA is \"avx3\"; it must be " COT__ISA_NAMES);
    told_of("COTANGENT_ISA", "", "");
    told_of("COTANGENT_ISA", cot__isa_name(COT__ISA_PLAIN), "");
    told_of("COTANGENT_BITS", "exact", "[tape_create] COTANGENT_BITS is \"exact\"; it must be fast or portable");
    told_of("COTANGENT_BITS", "portable", "");
    told_of("COTANGENT_BITS", "fast", "");
    cot_set_threads(2); /* then nobody asks the environment */
    told_of("COTANGENT_THREADS", "abc", "");
    cot_set_threads(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources),
        cmocka_unit_test(variables_that_cannot_be_read),
        cmocka_unit_test(a_full_tape),
        cmocka_unit_test(operands),
        cmocka_unit_test(marks),
        cmocka_unit_test(reading),
        cmocka_unit_test(reverse_mode),
        cmocka_unit_test(a_rule_that_gives_the_wrong_shape),
        cmocka_unit_test(forward_mode),
        cmocka_unit_test(matrices),
        cmocka_unit_test(assignment),
        cmocka_unit_test(memory),
        cmocka_unit_test(the_first_error_sticks),
        cmocka_unit_test(a_rewind_clears_what_happened_since_and_nothing_else),
        cmocka_unit_test(retaining_is_rewound),
        cmocka_unit_test(nothing_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
