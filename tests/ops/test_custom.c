/* Custom operations: all ways to give derivatives lead to the same ones, and a missing one is an
 * error, never taken for zero. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cotangent.h>

#include <float.h>

/* The operation under test: y[i] = x[i]² · sin(w[i]), elementwise on two operands of one shape.
 *     dy/dx = 2 x sin w,   dy/dw = x² cos w */

static double get(const cot_array *a, int64_t i) {
    return a->dtype == COT_F64 ? ((const double *)a->data)[i] : (double)((const float *)a->data)[i];
}
static void set(cot_array *a, int64_t i, double v) {
    if (a->dtype == COT_F64) ((double *)a->data)[i] = v;
    else ((float *)a->data)[i] = (float)v;
}

static int value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)user;
    if (n != 2) return 7;
    for (int64_t i = 0; i < y->size; i++) set(y, i, get(&xs[0], i) * get(&xs[0], i) * sin(get(&xs[1], i)));
    return 0;
}

static int vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, cot_mul(2.0, cot_mul(xs[0], cot_sin(xs[1]))));
    xbars[1] = cot_mul(ybar, cot_mul(cot_square(xs[0]), cot_cos(xs[1])));
    return 0;
}

static int jvp(int n, const cot_var *xs, cot_var y, const cot_var *dxs, cot_var *dy, void *user) {
    (void)n, (void)y, (void)user;
    cot_var a = dxs[0], b = dxs[1];
    if (cot_is_valid(a)) a = cot_mul(a, cot_mul(2.0, cot_mul(xs[0], cot_sin(xs[1]))));
    if (cot_is_valid(b)) b = cot_mul(b, cot_mul(cot_square(xs[0]), cot_cos(xs[1])));
    *dy = !cot_is_valid(a) ? b : !cot_is_valid(b) ? a : cot_add(a, b);
    return 0;
}

static int vjp_numbers(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                       void *user) {
    (void)n, (void)user;
    for (int64_t i = 0; i < y->size; i++) {
        double x = get(&xs[0], i), w = get(&xs[1], i), g = get(ybar, i);
        set(&xbars[0], i, get(&xbars[0], i) + g * 2 * x * sin(w)); /* += : they arrive zeroed */
        set(&xbars[1], i, get(&xbars[1], i) + g * x * x * cos(w));
    }
    return 0;
}

static int jvp_numbers(int n, const cot_array *xs, const cot_array *y, const cot_array *dxs, cot_array *dy,
                       void *user) {
    (void)n, (void)user;
    for (int64_t i = 0; i < y->size; i++) {
        double x = get(&xs[0], i), w = get(&xs[1], i), d = 0;
        if (dxs[0].data) d += get(&dxs[0], i) * 2 * x * sin(w);
        if (dxs[1].data) d += get(&dxs[1], i) * x * x * cos(w);
        set(dy, i, get(dy, i) + d);
    }
    return 0;
}

enum { VJP = 1, JVP = 2, VJP_NUMBERS = 4, JVP_NUMBERS = 8, ALL = 16 };

static cot_custom with(int rules) {
    cot_custom op = {.name = "wave", .value = value};
    if (rules & VJP) op.vjp = vjp;
    if (rules & JVP) op.jvp = jvp;
    if (rules & VJP_NUMBERS) op.vjp_numbers = vjp_numbers;
    if (rules & JVP_NUMBERS) op.jvp_numbers = jvp_numbers;
    return op;
}
static bool has_reverse(int rules) { return (rules & (VJP | JVP | VJP_NUMBERS)) != 0; }
static bool has_forward(int rules) { return (rules & (VJP | JVP | JVP_NUMBERS)) != 0; }
static bool has_again(int rules) { return (rules & (VJP | JVP)) != 0; }

/* The same in built-in operations. */
static cot_var plain(cot_var x, cot_var w) { return cot_mul(cot_square(x), cot_sin(w)); }

enum { ROWS = 3, COLUMNS = 4, SIZE = ROWS * COLUMNS };

/* How the operands come: scalars; dense tensors; one transposed and one broadcast. */
enum { SCALARS, TENSORS, STRIDED, LAYOUTS };

typedef struct operands { cot_var leaf[2], x, w; int64_t size[2]; } operands;

static operands make_operands(cot_tape *t, cot_dtype dtype, int layout) {
    operands o;
    if (layout == SCALARS) {
        o.leaf[0] = o.x = cot_scalar_of(t, dtype, 1.25);
        o.leaf[1] = o.w = cot_scalar_of(t, dtype, 0.75);
    } else {
        double    a[SIZE], b[SIZE];
        cot_shape shape = COT_SHAPE(ROWS, COLUMNS);
        for (int i = 0; i < SIZE; i++) a[i] = 0.5 + 0.125 * i, b[i] = -1 + 0.25 * i;
        cot_shape sa = layout == STRIDED ? COT_SHAPE(COLUMNS, ROWS) : shape,
                  sb = layout == STRIDED ? COT_SHAPE(ROWS, 1) : shape;
        o.leaf[0] = cot_tensor(t, dtype, sa, NULL);
        o.leaf[1] = cot_tensor(t, dtype, sb, NULL);
        cot_assign(o.leaf[0], cot_cast(cot_data(t, COT_F64, sa, a), dtype));
        cot_assign(o.leaf[1], cot_cast(cot_data(t, COT_F64, sb, b), dtype));
        o.x = layout == STRIDED ? cot_transpose(o.leaf[0]) : o.leaf[0];
        o.w = layout == STRIDED ? cot_broadcast_to(o.leaf[1], shape) : o.leaf[1];
    }
    o.size[0] = cot_size(o.leaf[0]);
    o.size[1] = cot_size(o.leaf[1]);
    return o;
}

/* A function around it that is not linear, so that second derivatives mix: <y, y> / 2 and one more
 * use of x. */
static cot_var loss(operands o, cot_var y) {
    return cot_add(cot_mul(0.5, cot_sum(cot_square(y), COT_ALL)), cot_sum(cot_exp(o.x), COT_ALL));
}

/* Each element of both is a sum of a few products of size up to `scale`. */
static void assert_near(const double *a, const double *b, int64_t n, cot_dtype dtype) {
    double eps = dtype == COT_F64 ? DBL_EPSILON : (double)FLT_EPSILON, scale = 1;
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs(b[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= 16 * eps * scale)) fail_msg("element %d: %.17g, not %.17g", (int)i, a[i], b[i]);
}

static void assert_ok(cot_tape *t) {
    if (cot_tape_status(t) != COT_OK) fail_msg("%s", cot_tape_message(t));
}

static void for_every_rule(void (*test)(int rules, cot_dtype dtype, int layout)) {
    for (int rules = 0; rules < ALL; rules++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            test(rules, COT_F64, layout);
            test(rules, COT_F32, layout);
        }
}

/* ---- first derivatives ----------------------------------------------------------------------- */

static void reverse_case(int rules, cot_dtype dtype, int layout) {
    cot_tape  *t = cot_tape_create(NULL);
    operands   o = make_operands(t, dtype, layout);
    cot_custom op = with(rules);
    double     expected[2][SIZE], got[SIZE];
    cot_backward(loss(o, plain(o.x, o.w)));
    for (int k = 0; k < 2; k++) cot_read_grad(o.leaf[k], expected[k], o.size[k]);
    cot_tape_zero_grads(t);
    cot_var y = cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL), sum = loss(o, y);
    assert_ok(t);
    assert_int_equal(cot_dtype_of(y), dtype);
    cot_status status = cot_backward(sum);
    if (!has_reverse(rules)) {
        assert_int_equal(status, COT_GRAD);
    } else {
        cot_var grads[2];
        assert_ok(t);
        for (int k = 0; k < 2; k++) {
            cot_read_grad(o.leaf[k], got, o.size[k]);
            assert_near(got, expected[k], o.size[k], dtype);
        }
        /* recorded: first derivatives come out whatever the rules */
        cot_grad_of(sum, 2, o.leaf, grads);
        assert_ok(t);
        for (int k = 0; k < 2; k++) {
            double same[SIZE];
            cot_read(grads[k], got, o.size[k]);
            cot_read_grad(o.leaf[k], same, o.size[k]);
            assert_memory_equal(got, same, (size_t)o.size[k] * sizeof(double));
        }
    }
    cot_tape_destroy(t);
}
static void reverse_mode_works_with_any_rule_that_can_give_it(void **state) {
    (void)state;
    for_every_rule(reverse_case);
}

static void forward_case(int rules, cot_dtype dtype, int layout) {
    cot_tape  *t = cot_tape_create(NULL);
    operands   o = make_operands(t, dtype, layout);
    cot_custom op = with(rules);
    double     v[2 * SIZE], expected[SIZE], got[SIZE];
    for (int i = 0; i < 2 * SIZE; i++) v[i] = 1 - 0.125 * i;
    cot_var reference = plain(o.x, o.w), y = cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL);
    int64_t m = cot_size(y);
    for (int moving = 1; moving <= 3; moving++) { /* x alone, w alone, both */
        int     first = moving == 2, count = moving == 3 ? 2 : 1;
        cot_var tangents[2];
        for (int k = 0; k < count; k++) {
            cot_shape s = cot_shape_of(o.leaf[first + k]);
            tangents[k] = cot_cast(cot_data(t, COT_F64, s, k == 0 ? v : v + o.size[first]), dtype);
        }
        cot_jvps(1, count, o.leaf + first, v, 1, &reference, expected);
        assert_ok(t);
        cot_jvps(1, count, o.leaf + first, v, 1, &y, got);
        if (!has_forward(rules)) {
            assert_int_equal(cot_tape_status(t), COT_GRAD);
            cot_tape_clear_error(t);
            continue;
        }
        assert_ok(t);
        assert_near(got, expected, m, dtype);
        cot_read(cot_jvp(y, count, o.leaf + first, tangents), got, m);
        assert_ok(t);
        assert_near(got, expected, m, dtype);
    }
    cot_tape_destroy(t);
}
static void forward_mode_works_with_any_rule_that_can_give_it(void **state) {
    (void)state;
    for_every_rule(forward_case);
}

/* ---- second derivatives ---------------------------------------------------------------------- */

static void second_case(int rules, cot_dtype dtype, int layout) {
    if (!has_reverse(rules)) return;
    cot_tape  *t = cot_tape_create(NULL);
    operands   o = make_operands(t, dtype, layout);
    cot_custom op = with(rules);
    int64_t    n = o.size[0] + o.size[1];
    double    *expected = calloc((size_t)(n * n), sizeof *expected), *got = calloc((size_t)(n * n), sizeof *got);
    cot_hessian(loss(o, plain(o.x, o.w)), 2, o.leaf, expected);
    assert_ok(t);
    cot_var    y = loss(o, cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL));
    cot_status status = cot_hessian(y, 2, o.leaf, got);
    if (has_again(rules)) {
        assert_ok(t);
        assert_near(got, expected, n * n, dtype);
        cot_var grads[2]; /* reverse over reverse */
        cot_grad_of(y, 2, o.leaf, grads);
        cot_jacobian(2, grads, 2, o.leaf, COT_REVERSE, got);
        assert_ok(t);
        assert_near(got, expected, n * n, dtype);
    } else {
        assert_int_equal(status, COT_GRAD);
        assert_non_null(strstr(cot_tape_message(t), rules & JVP_NUMBERS
                                                        ? "cannot be recorded to be differentiated again"
                                                        : "forward mode needs"));
    }
    free(expected);
    free(got);
    cot_tape_destroy(t);
}
static void recorded_rules_give_second_derivatives_and_numbers_refuse_them(void **state) {
    (void)state;
    for_every_rule(second_case);
}

static void a_numbers_only_gradient_fails_only_when_differentiated_again(void **state) {
    (void)state;
    cot_tape  *t = cot_tape_create(NULL);
    operands   o = make_operands(t, COT_F64, TENSORS);
    cot_custom op = with(VJP_NUMBERS);
    cot_var    y = cot_sum(cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL), COT_ALL), grad;
    assert_int_equal(cot_grad_of(y, 1, &o.leaf[0], &grad), COT_OK);
    assert_true(cot_requires_grad(grad));
    /* the recorded gradient is on the tape, but y does not depend on it */
    assert_int_equal(cot_backward(y), COT_OK);
    assert_int_equal(cot_backward(cot_sum(grad, COT_ALL)), COT_GRAD);
    assert_string_equal(
        cot_tape_message(t),
        "[wave] has only vjp_numbers: its gradient cannot be recorded to be differentiated again; give a "
        "vjp in recorded operations");
    cot_tape_destroy(t);

    t = cot_tape_create(NULL);
    o = make_operands(t, COT_F64, SCALARS);
    op = with(JVP_NUMBERS);
    y = cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL);
    cot_var dy = cot_jvp(y, 1, &o.leaf[0], (cot_var[]){cot_constant(t, 1)});
    assert_ok(t);
    assert_int_equal(cot_backward(dy), COT_GRAD);
    assert_string_equal(
        cot_tape_message(t),
        "[wave] has only jvp_numbers: its tangent cannot be recorded to be differentiated again; give a "
        "jvp in recorded operations");
    cot_tape_destroy(t);
}

static void what_is_missing_is_said(void **state) {
    (void)state;
    static const struct { int rules; bool reverse; const char *message;
    } cases[] = {
        {0, true,
         "[wave] has no derivative: none of vjp, jvp, vjp_numbers and jvp_numbers is given; detach its result "
         "(cot_detach) if it is "
         "meant to be constant"},
        {JVP_NUMBERS, true,
         "[wave] has only jvp_numbers: reverse mode needs vjp_numbers, or a vjp or jvp in recorded operations"},
        {VJP_NUMBERS, false,
         "[wave] has only vjp_numbers: forward mode needs jvp_numbers, or a vjp or jvp in recorded operations"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cot_tape  *t = cot_tape_create(NULL);
        operands   o = make_operands(t, COT_F64, SCALARS);
        cot_custom op = with(cases[i].rules);
        cot_var    y = cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL);
        if (cases[i].reverse) cot_backward(y);
        else cot_jvp(y, 1, &o.leaf[0], (cot_var[]){cot_constant(t, 1)});
        assert_int_equal(cot_tape_status(t), COT_GRAD);
        assert_string_equal(cot_tape_message(t), cases[i].message);
        cot_tape_destroy(t);
    }
}

static void nothing_recorded_in_a_no_grad_scope_requires_a_gradient(void **state) {
    (void)state;
    for (int rules = 1; rules < ALL; rules++) {
        cot_tape  *t = cot_tape_create(NULL);
        operands   o = make_operands(t, COT_F64, TENSORS);
        cot_custom op = with(rules);
        cot_var    y  = cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL), grads[2],
                ones  = cot_ones(t, COT_F64, COT_SHAPE(ROWS, COLUMNS));
        cot_no_grad_open(t);
        if (has_forward(rules)) assert_false(cot_requires_grad(cot_jvp(y, 1, &o.leaf[0], &ones)));
        if (has_reverse(rules)) {
            cot_vjp(y, ones, 2, o.leaf, grads);
            assert_false(cot_requires_grad(grads[0]) || cot_requires_grad(grads[1]));
        }
        cot_no_grad_close(t);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* ---- shapes, dtypes, operands ---------------------------------------------------------------- */

/* (n,) and (m,) -> (n, m), and how often each is larger: an integer. */
static int outer_shape(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n;
    if (xs[0].data) return 9; /* shapes depend on shapes */
    y->shape = COT_SHAPE(xs[0].size, xs[1].size);
    if (user) y->dtype = COT_I64;
    return 0;
}
static int outer_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n;
    const double *a = xs[0].data, *b = xs[1].data;
    for (int64_t i = 0; i < y->size; i++) {
        double p = a[i / xs[1].size] * b[i % xs[1].size];
        if (user) ((int64_t *)y->data)[i] = (int64_t)p;
        else ((double *)y->data)[i] = p;
    }
    return 0;
}
static int outer_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y, (void)user;
    xbars[0] = cot_matmul(ybar, xs[1]);
    xbars[1] = cot_matmul(cot_transpose(ybar), xs[0]);
    return 0;
}

static void the_result_may_have_another_shape_and_dtype(void **state) {
    (void)state;
    cot_tape        *t = cot_tape_create(NULL);
    const cot_custom op = {.name = "outer", .shape = outer_shape, .value = outer_value, .vjp = outer_vjp};
    cot_var          a  = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}),
            b           = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){3, 4, 5});
    cot_var          y = cot_call(&op, 2, (cot_var[]){a, b}, NULL);
    double           got[6];
    assert_int_equal(cot_shape_of(y).ndim, 2);
    cot_backward(cot_sum(y, COT_ALL));
    cot_read_grad(a, got, 2);
    assert_true(got[0] == 12 && got[1] == 12);
    int     integers = 1;
    cot_var z = cot_call(&op, 2, (cot_var[]){a, b}, &integers);
    assert_ok(t);
    assert_int_equal(cot_dtype_of(z), COT_I64);
    assert_false(cot_requires_grad(z));
    cot_read(z, got, 6);
    assert_true(got[5] == 10);
    cot_tape_destroy(t);
}

static int sum_all(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)user;
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < xs[k].size; i++)
            *(double *)y->data += xs[k].dtype == COT_F64   ? ((const double *)xs[k].data)[i]
                                  : xs[k].dtype == COT_F32 ? (double)((const float *)xs[k].data)[i]
                                                           : (double)((const int64_t *)xs[k].data)[i];
    return 0;
}
static int scalar_shape(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)xs, (void)user;
    y->dtype = COT_F64;
    y->shape = COT_SCALAR;
    return 0;
}
static int ones_vjp(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                    void *user) {
    (void)y, (void)user;
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < xs[k].size; i++) {
            double g = *(const double *)ybar->data;
            if (xs[k].dtype == COT_F64) ((double *)xbars[k].data)[i] = g;
            else if (xs[k].dtype == COT_F32) ((float *)xbars[k].data)[i] = (float)g;
            /* written all the same: there is memory for it */
            else ((int64_t *)xbars[k].data)[i] = (int64_t)g;
        }
    return 0;
}

static void many_operands_of_mixed_dtypes_constants_and_numbers(void **state) {
    (void)state;
    enum { MANY = 40 };
    cot_tape        *t = cot_tape_create(NULL);
    const cot_custom op = {.name = "sum_all", .shape = scalar_shape, .value = sum_all, .vjp_numbers = ones_vjp};
    cot_var          xs[MANY];
    double           expected = 0, got[2];
    for (int k = 0; k < MANY; k++) {
        double v[2] = {k, 1};
        xs[k] = k % 5 == 0 ? cot_tensor(t, COT_F64, COT_SHAPE(2), v)
                : k % 5 == 1 ? cot_scalar_of(t, COT_F32, k)
                : k % 5 == 2 ? cot_data(t, COT_I64, COT_SHAPE(1), (int64_t[]){k})
                : k % 5 == 3 ? cot_number(k)
                             : cot_tensor(t, COT_F64, COT_SHAPE(0, 3), NULL); /* empty */
        expected += k % 5 == 0 ? k + 1 : k % 5 == 4 ? 0 : k;
    }
    cot_var y = cot_call(&op, MANY, xs, NULL);
    assert_ok(t);
    assert_true(cot_value(y) == expected);
    cot_backward(cot_mul(2.0, y));
    assert_ok(t);
    cot_read_grad(xs[5], got, 2);
    assert_true(got[0] == 2 && got[1] == 2);
    assert_true(cot_grad_value(xs[1]) == 2);
    cot_tape_destroy(t);
}

/* ---- failures -------------------------------------------------------------------------------- */

static int bad_shape(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)xs;
    switch (*(int *)user) {
    case 0: y->shape = COT_SHAPE(2, -3); return 0;
    case 1: y->shape.ndim = 99; return 0;
    case 2: y->dtype = (cot_dtype)77; return 0;
    default: return 5;
    }
}
static int three(int n, const cot_array *xs, cot_array *y, void *user) {
    return (void)n, (void)xs, (void)y, (void)user, 3;
}
static cot_mark mark_before; /* made before the call whose rule rewinds to it */
static int bad_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y;
    switch (*(int *)user) {
    case 0: return -2;
    case 1: xbars[0] = cot_matmul(xs[0], ybar); return 0;             /* records an error */
    case 2: xbars[0] = cot_sum(ybar, COT_ALL); return 0;              /* of the wrong shape */
    case 3: cot_no_grad_open(ybar.tape); xbars[0] = ybar; return 0;   /* leaves a scope open */
    case 4: cot_backward(cot_sum(cot_square(xs[0]), COT_ALL)); return 0;
    case 5: cot_tape_rewind(ybar.tape, mark_before); return 0;
    /* the error that came first is the one that is kept */
    default: cot_matmul(xs[0], ybar); return 4;
    }
}
static int bad_jvp(int n, const cot_var *xs, cot_var y, const cot_var *dxs, cot_var *dy, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    *dy = cot_sum(dxs[0], COT_ALL);
    return 0;
}
static int copy_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    memcpy(y->data, xs[0].data, (size_t)y->size * sizeof(double));
    return 0;
}

static void assert_error(cot_tape *t, cot_status status, const char *text) {
    if (cot_tape_status(t) != status || !strstr(cot_tape_message(t), text))
        fail_msg("expected %s: %s\ngot %s: %s", cot_status_name(status), text, cot_status_name(cot_tape_status(t)),
                 cot_tape_message(t));
}

static void failures_in_calling_and_computing_are_reported(void **state) {
    (void)state;
    static const char *const shapes[] = {"[broken] shape gave (2,-3) for the result; extents are not negative",
                                         "99 axes", "77 for a dtype", "[broken] shape failed with code 5"};
    cot_custom op = {.name = "broken", .shape = bad_shape, .value = three};
    cot_tape  *t = cot_tape_create(NULL);
    cot_var    x = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL);
    for (int k = 0; k < 4; k++) {
        cot_mark m = cot_tape_mark(t);
        assert_false(cot_is_valid(cot_call(&op, 1, &x, &k)));
        assert_error(t, COT_CUSTOM, shapes[k]);
        cot_tape_rewind(t, m);
    }
    cot_mark m = cot_tape_mark(t);
    op.shape = NULL;
    assert_false(cot_is_valid(cot_call(&op, 1, &x, NULL)));
    assert_error(t, COT_CUSTOM, "[broken] value failed with code 3");
    cot_tape_rewind(t, m);
    op.value = NULL;
    cot_call(&op, 1, &x, NULL);
    assert_error(t, COT_CUSTOM, "[broken] has no value function");
    cot_tape_rewind(t, m);
    cot_call(NULL, 1, &x, NULL);
    assert_error(t, COT_CUSTOM, "[call] the operation is NULL");
    cot_tape_rewind(t, m);
    assert_false(cot_is_valid(cot_call(&op, 0, &x, NULL)));
    assert_false(cot_is_valid(cot_call(&op, 1, NULL, NULL)));
    assert_false(cot_is_valid(cot_call(&op, -1, &x, NULL)));
    assert_ok(t);
    op.value = three;
    cot_tape *other = cot_tape_create(NULL);
    cot_call(&op, 2, (cot_var[]){x, cot_scalar(other, 1)}, NULL);
    assert_error(t, COT_VAR, "[broken] the xs[1] operand belongs to another tape");
    cot_tape_destroy(other);
    cot_tape_destroy(t);
}

static void all_of_many_operands_count_as_saved(void **state) {
    (void)state;
    const cot_custom op = {.name = "first", .value = copy_value, .vjp = bad_vjp};
    cot_tape        *t = cot_tape_create(&(cot_options){.strict = true});
    cot_var          xs[9];
    for (int k = 0; k < 9; k++) xs[k] = cot_neg(cot_tensor(t, COT_F64, COT_SHAPE(2), NULL));
    cot_call(&op, 9, xs, NULL);
    for (int k = 0; k < 9; k++) {
        cot_add_into(&xs[k], 1.0);
        assert_error(t, COT_STALE, "which first (v₁₀) saved for its derivative");
        cot_tape_clear_error(t);
    }
    cot_tape_destroy(t);
}

static void failures_in_rules_are_reported_and_leave_the_tape_usable(void **state) {
    (void)state;
    static const struct { cot_status status; const char *text;
    } cases[] = {
        {COT_CUSTOM, "[broken] vjp failed with code -2"},
        {COT_SHAPE, "[matmul]"},
        {COT_SHAPE, "[broken] its derivative rule gave an adjoint of shape ()"},
        {COT_OK, ""},
        {COT_GRAD, "called inside a function of [broken]; such a function computes or records, and the library "
                   "differentiates what it recorded "
                   "(use a tape of its own to differentiate there)"},
        {COT_VALUE, "[tape_rewind] called inside a function of [broken], to a mark made before; such a function may "
                    "forget only what it recorded "
                    "itself"},
        {COT_SHAPE, "[matmul]"},
    };
    const cot_custom op = {.name = "broken", .value = copy_value, .vjp = bad_vjp};
    for (int way = 0; way < 3; way++) /* in numbers, recorded, transposed for forward mode */
        for (int k = 0; k < 7; k++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL), g;
            mark_before = cot_tape_mark(t);
            cot_var y = cot_sum(cot_call(&op, 1, &x, &k), COT_ALL);
            if (way == 0) cot_backward(y);
            if (way == 1) cot_grad_of(y, 1, &x, &g);
            if (way == 2) cot_jvp(y, 1, &x, (cot_var[]){cot_ones(t, COT_F64, COT_SHAPE(2, 3))});
            assert_error(t, cases[k].status, cases[k].text);
            cot_tape_clear_error(t);
            cot_var z = cot_sum(cot_square(x), COT_ALL);
            assert_true(cot_requires_grad(z)); /* an open no-grad scope was closed */
            assert_int_equal(cot_backward(z), COT_OK);
            cot_tape_destroy(t);
        }
    const cot_custom wrong = {.name = "broken", .value = copy_value, .jvp = bad_jvp};
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL);
    cot_backward(cot_sum(cot_call(&wrong, 1, &x, NULL), COT_ALL));
    assert_error(t, COT_SHAPE, "[broken] jvp gave a tangent of shape () for a result of shape (2,3)");
    cot_tape_destroy(t);
}

static void overwriting_an_operand_is_caught_by_name(void **state) {
    (void)state;
    for (int rules = 1; rules < ALL; rules++) {
        if (!has_reverse(rules)) continue;
        cot_tape  *t = cot_tape_create(NULL);
        operands   o = make_operands(t, COT_F64, TENSORS);
        cot_custom op = with(rules);
        cot_var    x = cot_exp(o.x), y = cot_call(&op, 2, (cot_var[]){x, o.w}, NULL);
        cot_mul_into(&x, 2.0);
        cot_backward(cot_sum(y, COT_ALL));
        assert_error(t, COT_STALE, "wave (v₄");
        cot_tape_destroy(t);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct budget { int left; int64_t bytes; } budget;

static void *limited(void *user, void *ptr, size_t old_size, size_t new_size) {
    budget *b = user;
    if (new_size == 0) {
        b->bytes -= (int64_t)old_size;
        free(ptr);
        return NULL;
    }
    if (b->left == 0) return NULL;
    if (b->left > 0) b->left--;
    void *p = realloc(ptr, new_size);
    if (p) b->bytes += (int64_t)new_size - (ptr ? (int64_t)old_size : 0);
    return p;
}

static cot_status everything(cot_tape *t, int rules) {
    operands   o = make_operands(t, COT_F64, STRIDED);
    cot_custom op = with(rules);
    cot_var    y = loss(o, cot_call(&op, 2, (cot_var[]){o.x, o.w}, NULL)), grads[2];
    if (has_reverse(rules)) {
        cot_backward(y);
        cot_grad_of(y, 2, o.leaf, grads);
    }
    cot_var ones[2] = {cot_ones(t, COT_F64, COT_SHAPE(COLUMNS, ROWS)), cot_ones(t, COT_F64, COT_SHAPE(ROWS, 1))};
    if (has_forward(rules)) cot_jvp(y, 2, o.leaf, ones);
    return cot_tape_status(t);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const int sets[] = {VJP, JVP, VJP_NUMBERS, JVP_NUMBERS, VJP_NUMBERS | JVP_NUMBERS};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        cot_status status = COT_MEMORY;
        for (int n = 0; status != COT_OK; n++) {
            budget      b = {n, 0};
            cot_options options = {.allocator = {limited, &b}};
            cot_tape   *t = cot_tape_create(&options);
            status = t ? everything(t, sets[s]) : COT_MEMORY;
            assert_true(status == COT_OK || status == COT_MEMORY);
            cot_tape_destroy(t);
            assert_true(b.bytes == 0); /* and the sizes told to the allocator add up */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reverse_mode_works_with_any_rule_that_can_give_it),
        cmocka_unit_test(forward_mode_works_with_any_rule_that_can_give_it),
        cmocka_unit_test(recorded_rules_give_second_derivatives_and_numbers_refuse_them),
        cmocka_unit_test(a_numbers_only_gradient_fails_only_when_differentiated_again),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(nothing_recorded_in_a_no_grad_scope_requires_a_gradient),
        cmocka_unit_test(the_result_may_have_another_shape_and_dtype),
        cmocka_unit_test(many_operands_of_mixed_dtypes_constants_and_numbers),
        cmocka_unit_test(failures_in_calling_and_computing_are_reported),
        cmocka_unit_test(all_of_many_operands_count_as_saved),
        cmocka_unit_test(failures_in_rules_are_reported_and_leave_the_tape_usable),
        cmocka_unit_test(overwriting_an_operand_is_caught_by_name),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
