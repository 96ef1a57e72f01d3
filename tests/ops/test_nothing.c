/* Operations that have nothing to do (a cast to the same dtype, a sum over no axes, the derivative
 * of the identity) give a computed value. A write to their operand has the same effect as for an
 * operation that has something to do: the value keeps the old numbers or, if it is a view, becomes
 * stale. The result is never the leaf or the constant itself, with the new numbers. A computed
 * operand, which cannot be assigned, is returned without a node. */
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "tape/tape.h"

/* ---- operands ------------------------------------------------------------------------------ */

enum { SCALAR, VECTOR, MATRIX, ROW, ONE, SQUARE, EMPTY, KINDS };
#define ON(kind) (1u << (kind))
#define TENSORS (ON(VECTOR) | ON(MATRIX) | ON(ONE))
#define ANY (ON(SCALAR) | TENSORS | ON(EMPTY))

static cot_shape shape_of_kind(int kind) {
    const cot_shape shapes[KINDS] = {COT_SCALAR,      COT_SHAPE(3),    COT_SHAPE(2, 3), COT_SHAPE(1, 3),
                                     COT_SHAPE(1, 1), COT_SHAPE(2, 2), COT_SHAPE(0, 0)};
    return shapes[kind];
}

/* The elements are 2, 3, 4, …: all dtypes have them and their squares. */
static cot_var source(cot_tape *t, int kind, cot_dtype dtype, bool is_leaf) {
    int64_t numbers[6] = {2, 3, 4, 5, 6, 7};
    cot_var x = cot_cast(cot_data(t, COT_I64, shape_of_kind(kind), numbers), dtype);
    if (is_leaf) return cot_leaf(x);
    cot_var z = cot_data(t, dtype, shape_of_kind(kind), NULL);
    cot_assign(z, x);
    return z;
}

/* ---- operations ---------------------------------------------------------------------------- */

#define NONE ((cot_axes){0})
#define CALLED(name, x) static cot_var name(cot_var x)
#define REDUCTION(f) \
    CALLED(idle_##f, x) { return cot_##f(x, NONE); } \
    CALLED(all_##f, x) { return cot_##f(x, COT_ALL); } \
    CALLED(kept_##f, x) { return cot_##f(x, (cot_axes){.keepdims = true}); } \
    CALLED(busy_##f, x) { return cot_##f(x, COT_AXES(0)); }
REDUCTION(sum)
REDUCTION(mean)
REDUCTION(prod)
REDUCTION(max)
REDUCTION(min)
REDUCTION(logsumexp)

CALLED(kept_along_prod, x) { return cot_prod(x, COT_KEEP(0)); }

static cot_shape all_extents(cot_var x, int64_t extent) {
    cot_shape s = cot_shape_of(x);
    for (int k = 0; k < s.ndim; k++) s.dim[k] = extent;
    return s;
}

CALLED(idle_cast, x) { return cot_cast(x, cot_dtype_of(x)); }
CALLED(busy_cast, x) { return cot_cast(x, cot_dtype_of(x) == COT_F64 ? COT_F32 : COT_F64); }
CALLED(idle_reshape, x) { return cot_reshape(x, cot_shape_of(x)); }
CALLED(open_reshape, x) { return cot_reshape(x, COT_SHAPE(-1)); }
CALLED(busy_reshape, x) { return cot_reshape(x, COT_SHAPE(3, 2)); }
CALLED(transpose, x) { return cot_transpose(x); }
CALLED(idle_permute, x) { return cot_permute(x, COT_ALL); }
CALLED(busy_permute, x) { return cot_permute(x, COT_AXES(1, 0)); }
CALLED(idle_broadcast_to, x) { return cot_broadcast_to(x, cot_shape_of(x)); }
CALLED(busy_broadcast_to, x) { return cot_broadcast_to(x, COT_SHAPE(4, 2, 3)); }
CALLED(idle_squeeze, x) { return cot_squeeze(x, NONE); }
CALLED(squeeze, x) { return cot_squeeze(x, COT_ALL); }
CALLED(idle_slice, x) { return cot_slice(x, 0, 0, COT_END, 1); }
CALLED(busy_slice, x) { return cot_slice(x, 0, 1, COT_END, 1); }
CALLED(idle_flip, x) { return cot_flip(x, NONE); }
CALLED(flip, x) { return cot_flip(x, COT_ALL); }
CALLED(idle_pad, x) { return cot_pad(x, COT_SCALAR, COT_SCALAR, 1); }
CALLED(busy_pad, x) { return cot_pad(x, COT_SHAPE(1, 1), COT_SHAPE(0, 0), 1); }
CALLED(idle_roll, x) { return cot_roll(x, 0, 0); }
CALLED(whole_roll, x) { return cot_roll(x, -2 * cot_shape_of(x).dim[0], 0); }
CALLED(busy_roll, x) { return cot_roll(x, 1, 0); }
CALLED(idle_tile, x) { return cot_tile(x, all_extents(x, 1)); }
CALLED(busy_tile, x) { return cot_tile(x, COT_SHAPE(2, 1)); }
CALLED(idle_repeat, x) { return cot_repeat(x, 1, 0); }
CALLED(busy_repeat, x) { return cot_repeat(x, 2, 0); }
CALLED(tril, x) { return cot_tril(x, 0); }
CALLED(triu, x) { return cot_triu(x, 0); }
CALLED(cumprod, x) { return cot_cumprod(x, 0, false); }
CALLED(idle_einsum, x) { return cot_einsum("...->...", 1, &x); }
CALLED(busy_einsum, x) { return cot_einsum("ij->ji", 1, &x); }
CALLED(matrix_exp, x) { return cot_matrix_exp(x); }
CALLED(idle_dropout, x) { return cot_dropout(x, 0, cot_key_of(1)); }
CALLED(busy_dropout, x) { return cot_dropout(x, 0.5, cot_key_of(1)); }

static cot_var batch_mean(cot_var x, cot_axes axes) {
    cot_var mean, variance;
    cot_batch_norm(x, axes, COT_NONE, COT_NONE, 1e-5, &mean, &variance);
    return mean;
}
CALLED(idle_statistics, x) { return batch_mean(x, NONE); }
CALLED(busy_statistics, x) { return batch_mean(x, COT_AXES(0)); }

BODY(same) { UNUSED; ys[0] = xs[0]; return 0; }
BODY(doubled) { UNUSED; ys[0] = cot_mul(2.0, xs[0]); return 0; }
BODY(captured) { UNUSED; ys[0] = *(cot_var *)user; return 0; }

static cot_var mapped(cot_var x, cot_fn f, void *user, int in, int out) {
    cot_var y, both[2] = {x, cot_zeros(x.tape, COT_F64, COT_SHAPE(2))};
    cot_vmap(f, user, 2, both, (int[]){in, 0}, 1, &y, &out);
    return y;
}
CALLED(idle_vmap, x) { return mapped(x, same, NULL, COT_NOT_BATCHED, COT_NOT_BATCHED); }
CALLED(captured_vmap, x) {
    return mapped(cot_zeros(x.tape, COT_F64, COT_SCALAR), captured, &x, COT_NOT_BATCHED, COT_NOT_BATCHED);
}
CALLED(batched_vmap, x) {
    cot_var y;
    cot_vmap(same, NULL, 1, &x, NULL, 1, &y, NULL);
    return y;
}
CALLED(busy_vmap, x) { return mapped(x, same, NULL, 0, 1); }

/* Derivatives of the identity, and of other functions, at a point of x's shape, along x. */
static cot_var point(cot_var x) { return cot_leaf(cot_full_like(x, 1)); }
#define DERIVATIVE(name, ...) \
    static cot_var name##_of(cot_var x, cot_fn f) { \
        cot_var     p = point(x), y, d = COT_NONE; \
        cot_linear *l; \
        (void)l, f(1, &p, 1, &y, NULL); \
        __VA_ARGS__; \
        return d; \
    } \
    CALLED(idle_##name, x) { return name##_of(x, same); } \
    CALLED(busy_##name, x) { return name##_of(x, doubled); }
DERIVATIVE(vjp, cot_vjp(y, x, 1, &p, &d))
DERIVATIVE(jvp, d = cot_jvp(y, 1, &p, &x))
DERIVATIVE(fn_vjp, cot_fn_vjp(f, NULL, 1, &p, 1, &y, &x, &d))
DERIVATIVE(fn_jvp, cot_fn_jvp(f, NULL, 1, &p, &x, 1, &y, &d))
DERIVATIVE(linear_vjp, cot_linearize(f, NULL, 1, &p, 1, &y, &l); cot_linear_vjp(l, &x, &d))
DERIVATIVE(linear_jvp, cot_linearize(f, NULL, 1, &p, 1, &y, &l); cot_linear_jvp(l, &x, &d))
DERIVATIVE(taylor, cot_var o[2]; cot_taylor(y, 1, &p, 1, &x, 1, o); d = o[1])
CALLED(idle_value, x) {
    cot_var out[2], one = cot_number(1);
    cot_taylor(x, 1, &x, 1, &one, 1, out);
    return out[0];
}
CALLED(busy_value, x) { return idle_value(cot_mul(x, 2.0)); }
static cot_var value_of(cot_var x, cot_fn f) {
    cot_var p = cot_scalar(x.tape, 1), y = COT_NONE, g;
    cot_fn_vjp(f, &x, 1, &p, 1, &y, &COT_NONE, &g);
    return y;
}
CALLED(idle_function, x) { return value_of(x, captured); }
BODY(captured_flipped) { UNUSED; ys[0] = cot_flip(*(cot_var *)user, COT_ALL); return 0; }
CALLED(busy_function, x) { return value_of(x, captured_flipped); }

/* on: the kinds of operands with which `idle` has nothing to do. busy_on: a kind with which `busy`
 * has something to do. view: for tensors it gives views. real: it takes floats only. back: it
 * returns a computed operand itself. */
typedef struct row {
    const char *name;
    cot_var (*idle)(cot_var x);
    unsigned on;
    cot_var (*busy)(cot_var x);
    int  busy_on;
    bool view, real, back;
} row;

#define COPY false
#define VIEW true
#define REDUCED(f) \
    {#f, idle_##f, ANY, busy_##f, MATRIX, COPY, false, true}, \
        {#f, kept_##f, ANY, busy_##f, MATRIX, COPY, false, true}, \
        {#f, all_##f, ON(SCALAR), busy_##f, MATRIX, COPY, false, true}
static const row rows[] = {
    {"cast", idle_cast, ANY, busy_cast, MATRIX, COPY, false, true},
    REDUCED(sum), REDUCED(mean), REDUCED(prod), REDUCED(max), REDUCED(min), REDUCED(logsumexp),
    /* along an extent of 1 */
    {"prod", kept_along_prod, ON(ONE), busy_prod, MATRIX, COPY, false, true},
    {"reshape", idle_reshape, ANY, busy_reshape, MATRIX, VIEW, false, true},
    {"reshape", open_reshape, ON(VECTOR), busy_reshape, MATRIX, VIEW, false, true},
    {"transpose", transpose, ON(SCALAR) | ON(VECTOR), transpose, MATRIX, VIEW, false, true},
    {"permute", idle_permute, ANY, busy_permute, MATRIX, VIEW, false, true},
    {"broadcast_to", idle_broadcast_to, ANY, busy_broadcast_to, MATRIX, VIEW, false, true},
    {"squeeze", idle_squeeze, ANY, squeeze, ROW, VIEW, false, true},
    {"squeeze", squeeze, ON(SCALAR) | ON(VECTOR) | ON(MATRIX) | ON(EMPTY), squeeze, ROW, VIEW, false, true},
    {"slice", idle_slice, TENSORS | ON(EMPTY), busy_slice, MATRIX, VIEW, false, true},
    {"flip", idle_flip, ANY, flip, MATRIX, VIEW, false, true},
    {"flip", flip, ON(SCALAR) | ON(ONE) | ON(EMPTY), flip, MATRIX, VIEW, false, true},
    {"pad", idle_pad, ON(SCALAR), busy_pad, MATRIX, COPY, false, true},
    {"roll", idle_roll, TENSORS | ON(EMPTY), busy_roll, MATRIX, COPY, false, true},
    {"roll", whole_roll, TENSORS | ON(EMPTY), busy_roll, MATRIX, COPY, false, true},
    {"tile", idle_tile, ANY, busy_tile, MATRIX, COPY, false, true},
    {"repeat", idle_repeat, TENSORS | ON(EMPTY), busy_repeat, MATRIX, COPY, false, true},
    {"tril", tril, ON(EMPTY), tril, MATRIX, COPY, false, true},
    {"triu", triu, ON(EMPTY), triu, MATRIX, COPY, false, true},
    {"cumprod", cumprod, ON(ONE) | ON(EMPTY), cumprod, MATRIX, COPY, false, true},
    {"einsum", idle_einsum, ANY, busy_einsum, MATRIX, VIEW, false, true},
    {"matrix_exp", matrix_exp, ON(EMPTY), matrix_exp, SQUARE, COPY, false, true},
    {"dropout", idle_dropout, ANY, busy_dropout, MATRIX, COPY, false, true},
    {"the mean of batch_norm", idle_statistics, TENSORS | ON(EMPTY), busy_statistics, MATRIX, COPY, true, true},
    {"vmap, not batched", idle_vmap, ANY, busy_vmap, MATRIX, VIEW, false, false},
    {"vmap, captured", captured_vmap, ANY, busy_vmap, MATRIX, VIEW, false, false},
    {"vmap", batched_vmap, TENSORS | ON(EMPTY), busy_vmap, MATRIX, VIEW, false, true},
    {"vjp", idle_vjp, ANY, busy_vjp, MATRIX, COPY, true, true},
    {"jvp", idle_jvp, ANY, busy_jvp, MATRIX, COPY, true, true},
    {"fn_vjp", idle_fn_vjp, ANY, busy_fn_vjp, MATRIX, COPY, true, true},
    {"fn_jvp", idle_fn_jvp, ANY, busy_fn_jvp, MATRIX, COPY, true, true},
    {"linear_vjp", idle_linear_vjp, ANY, busy_linear_vjp, MATRIX, COPY, true, true},
    {"linear_jvp", idle_linear_jvp, ANY, busy_linear_jvp, MATRIX, COPY, true, true},
    {"taylor, the first derivative", idle_taylor, ANY, busy_taylor, MATRIX, COPY, true, true},
    {"taylor, the value", idle_value, ON(SCALAR), busy_value, SCALAR, COPY, true, true},
    {"fn_vjp, the value", idle_function, ANY, busy_function, MATRIX, VIEW, true, true},
};

/* ---- an operand, its result, a write ------------------------------------------------------- */

static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_I64};
static char            about[160];

static int64_t read_now(cot_var x, double *out) { return cot_read(x, out, cot_size(x)), cot_size(x); }

/* Is the value of y stale or has it the n old numbers, as `stale` says? */
static void check_value(cot_var y, bool stale, int64_t n, const double *old) {
    cot_tape  *t = y.tape;
    double     now[6] = {0};
    cot_status status = cot_read(y, now, n);
    TEST_CHECK(status == (stale ? COT_STALE : COT_OK), "%s: reading it after the write gives status %d: %s", about,
               status, cot_tape_message(t));
    for (int k = 0; k < n && status == COT_OK; k++)
        TEST_CHECK(now[k] == old[k], "%s: element %d was %g and is %g after the write", about, k, old[k], now[k]);
    cot_tape_clear_error(t);
}

/* Is the gradient of z by the leaf x stale, or slope · old + offset, as `stale` says? */
static void check_gradient(const char *what, cot_var z, cot_var x, bool stale, int64_t n, const double *old,
                           double slope, double offset) {
    cot_tape *t = x.tape;
    double    g[6] = {0};
    cot_tape_zero_grads(t);
    cot_status status = cot_backward(z);
    TEST_CHECK(status == (stale ? COT_STALE : COT_OK), "%s: the gradient of %s has status %d: %s", about, what, status,
               cot_tape_message(t));
    cot_tape_clear_error(t);
    cot_read_grad(x, g, n);
    for (int k = 0; k < n && status == COT_OK; k++) {
        double want = slope * old[k] + offset;
        TEST_CHECK(g[k] == want, "%s: element %d of the gradient of %s is %g, not %g", about, k, what, g[k], want);
    }
}

static void write_to(cot_var x, int how) {
    double five[6] = {5, 5, 5, 5, 5, 5};
    if (how == 0) cot_assign(x, 5.0);
    if (how == 1) cot_assign(x, cot_cast(cot_data(x.tape, COT_F64, cot_shape_of(x), five), cot_dtype_of(x)));
    if (how == 2) cot_sgd_step(1, &x, 0.5);
}

/* Checks one operand of a row: the result, values computed from it, a write, and the values after
 * the write. */
static void check_idle(const row *r, int kind, cot_dtype dtype, bool is_leaf, int how) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = source(t, kind, dtype, is_leaf), y = r->idle(x), sum = COT_NONE, square = COT_NONE;
    double    old[6] = {0}, have[6] = {0};
    int64_t   n = read_now(x, old);
    bool      stale = r->view && kind != SCALAR;
    snprintf(about, sizeof about, "%s of a %s of dtype %s, kind %d, write %d", r->name, is_leaf ? "leaf" : "constant",
             cot__dtype_name(dtype), kind, how);
    if (!test_tape_ok(t, about)) {
        cot_tape_destroy(t);
        return;
    }
    TEST_CHECK(y.id != x.id, "%s: it is the operand itself", about);
    TEST_CHECK(cot_requires_grad(y) == is_leaf, "%s: it requires a gradient, or does not, unlike its operand", about);
    read_now(y, have);
    for (int k = 0; k < n; k++)
        TEST_CHECK(have[k] == old[k], "%s: element %d is %g, not %g", about, k, have[k], old[k]);
    if (is_leaf) {
        sum = cot_sum(y, COT_ALL), square = cot_sum(cot_square(y), COT_ALL);
        check_gradient("its sum", sum, x, false, n, old, 0, 1);
        check_gradient("its square", square, x, false, n, old, 2, 0);
    }
    write_to(x, how);
    if (test_tape_ok(t, about)) {
        check_value(y, stale, n, old);
        if (is_leaf) check_gradient("its sum", sum, x, false, n, old, 0, 1);
        if (is_leaf) check_gradient("its square", square, x, stale, n, old, 2, 0);
    }
    cot_tape_destroy(t);
}

static void what_has_nothing_to_do_gives_a_value_that_a_write_leaves_alone(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(rows); k++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int d = 0; d < TEST_COUNT(dtypes); d++)
                for (int how = 0; how < 3; how++) {
                    bool real = dtypes[d] != COT_I64;
                    if (!(rows[k].on & ON(kind)) || (rows[k].real && !real)) continue;
                    if (real) check_idle(&rows[k], kind, dtypes[d], true, how);
                    /* a Taylor series of a constant is refused */
                    bool needs_leaf = rows[k].idle == idle_value;
                    if (how < 2 && !needs_leaf) check_idle(&rows[k], kind, dtypes[d], false, how);
                }
    test_verdict();
}

/* The other side of the promise: the same operations with something to do. */
static void it_is_left_as_what_the_same_operation_computes(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(rows); k++) {
        const row *r = &rows[k];
        cot_tape  *t = cot_tape_create(NULL);
        cot_var    x = source(t, r->busy_on, COT_F64, true), y = r->busy(x);
        double     old[64] = {0}, now[64] = {0};
        snprintf(about, sizeof about, "%s with something to do", r->name);
        int64_t n = read_now(y, old);
        cot_assign(x, 5.0);
        if (test_tape_ok(t, about)) {
            cot_status status = cot_read(y, now, n);
            TEST_CHECK(status == (r->view ? COT_STALE : COT_OK), "%s: status %d after the write", about, status);
            for (int e = 0; e < n && status == COT_OK; e++)
                TEST_CHECK(now[e] == old[e], "%s: element %d has changed", about, e);
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* x += 1 through the result writes to the operand's memory if the result is a view of it, and to
 * its own otherwise. */
static void a_write_in_place_reaches_the_operand_through_views_alone(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(rows); k++)
        for (int kind = 0; kind < KINDS; kind++) {
            const row *r = &rows[k];
            if (!(r->on & ON(kind)) || kind == EMPTY) continue;
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = source(t, kind, COT_F64, true), y = r->idle(x);
            double    now[6];
            snprintf(about, sizeof about, "%s, kind %d, written in place", r->name, kind);
            cot_add_into(&y, 1.0);
            if (test_tape_ok(t, about)) {
                cot_status status = cot_read(x, now, cot_size(x));
                cot_status want = r->view && kind != SCALAR ? COT_STALE : COT_OK;
                TEST_CHECK(status == want, "%s: reading the operand gives status %d", about, status);
                TEST_CHECK(status != COT_OK || now[0] == 2, "%s: the operand has changed", about);
            }
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* Two gradients that are the seed would be one constant, and a write to one a write to both. */
static void two_derivatives_are_never_one_constant(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_scalar(t, 1), cot_scalar(t, 1)}, y = cot_add(xs[0], xs[1]), g[4];
    assert_int_equal(cot_grad_of(y, 2, xs, g), COT_OK);
    assert_int_equal(cot_vjp(y, cot_number(1), 2, xs, g + 2), COT_OK);
    for (int k = 0; k < 4; k++) {
        assert_true(cot_value(g[k]) == 1);
        for (int j = 0; j < k; j++) assert_true(g[k].id != g[j].id);
        /* computed, as any gradient */
        assert_int_equal(cot_assign(g[k], cot_number(2)), COT_VALUE);
        cot_tape_clear_error(t);
    }
    cot_tape_destroy(t);
}

static void a_computed_operand_is_given_back_without_a_node(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(rows); k++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (!(rows[k].on & ON(kind)) || !rows[k].back) continue;
            cot_tape *t = cot_tape_create(NULL);
            cot_var   h = cot_mul(source(t, kind, COT_F64, true), 1.0);
            TEST_CHECK(rows[k].idle(h).id == h.id, "%s, kind %d: not the operand itself", rows[k].name, kind);
            cot_tape_destroy(t);
        }
    test_verdict();
}

static void every_function_that_may_have_nothing_to_do_is_tried(void **state) {
    (void)state;
#define NOTHING(name, how, parameters, arguments) {#name, how},
    const struct { const char *name; bool view; } listed[] = {
#include "ops/nothing.def"
    };
    for (int k = 0; k < TEST_COUNT(listed); k++) {
        int found = 0;
        for (int j = 0; j < TEST_COUNT(rows); j++)
            if (strcmp(rows[j].name, listed[k].name) == 0) found++, assert_int_equal(rows[j].view, listed[k].view);
        TEST_CHECK(found > 0, "%s has no row", listed[k].name);
    }
    test_verdict();
}

/* ---- what is not recorded ------------------------------------------------------------------ */

static int recorded_since(const cot_tape *t, uint32_t count) { return (int)(t->count - count); }

/* The library's own casts and reshapes of a leaf, inside an operation, record no nodes. */
static void compositions_record_no_more_for_it(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = source(t, MATRIX, COT_F64, true), y = source(t, MATRIX, COT_F64, false), s = cot_scalar(t, 2);
    uint32_t  count = t->count;
    cot_mean(x, COT_ALL); /* sum, div */
    assert_int_equal(recorded_since(t, count), 2);
    count = t->count;
    cot_mse(x, y); /* mse */
    assert_int_equal(recorded_since(t, count), 1);
    count = t->count;
    cot_dropout(x, 0.5, cot_key_of(1)); /* the mask, smul */
    assert_int_equal(recorded_since(t, count), 2);
    count = t->count;
    cot_variance(s, COT_ALL); /* sub, square */
    assert_int_equal(recorded_since(t, count), 2);
    count = t->count;
    cot_einsum("ij,ij->ij", 2, (cot_var[]){x, y}); /* mul */
    assert_int_equal(recorded_since(t, count), 1);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* A seed of the user's is no reason for rules to record more. */
static void rules_record_no_more_for_it(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = source(t, MATRIX, COT_F64, true), y = cot_mul(x, 3.0), seed = source(t, MATRIX, COT_F64, false), g;
    uint32_t  count = t->count;
    cot_vjp(y, seed, 1, &x, &g); /* mul */
    assert_int_equal(recorded_since(t, count), 1);
    y = cot_copy(x), count = t->count;
    cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g); /* sum; one, reshape, broadcast_to */
    assert_int_equal(recorded_since(t, count), 4);
    assert_ok(t);
    cot_tape_destroy(t);
}

BODY(scaled) { UNUSED; ys[0] = cot_mul(xs[0], *(cot_var *)user); return 0; }
BODY(idly_scaled) {
    UNUSED;
    cot_var w = *(cot_var *)user;
    ys[0] = cot_mul(xs[0], cot_reshape(cot_cast(w, COT_F64), COT_SHAPE(3)));
    return 0;
}

/* Nothing is assigned in a body, so its program is that without the operation. */
static void bodies_record_no_more_for_it(void **state) {
    (void)state;
    uint32_t counts[2];
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = source(t, VECTOR, COT_F64, true), w = source(t, VECTOR, COT_F64, true), y;
        double    g[3];
        cot_scan(k ? idly_scaled : scaled, &w, 4, 1, &x, 0, NULL, &y, 0, NULL, NULL);
        counts[k] = t->count;
        cot_backward(cot_sum(y, COT_ALL));
        assert_ok(t);
        cot_read_grad(w, g, 3);
        for (int e = 0; e < 3; e++) assert_near(g[e], 4 * pow(2 + e, 4), 0);
        cot_tape_destroy(t);
    }
    assert_int_equal(counts[0], counts[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_nothing_to_do_gives_a_value_that_a_write_leaves_alone),
        cmocka_unit_test(it_is_left_as_what_the_same_operation_computes),
        cmocka_unit_test(a_write_in_place_reaches_the_operand_through_views_alone),
        cmocka_unit_test(two_derivatives_are_never_one_constant),
        cmocka_unit_test(a_computed_operand_is_given_back_without_a_node),
        cmocka_unit_test(every_function_that_may_have_nothing_to_do_is_tried),
        cmocka_unit_test(compositions_record_no_more_for_it),
        cmocka_unit_test(rules_record_no_more_for_it),
        cmocka_unit_test(bodies_record_no_more_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
