/* With COT_SOURCE_LINES operations know the line that recorded them, and messages tell it; numbers
 * can be operands at any depth. */
#define COT_SOURCE_LINES
#include "support/tape_test.h"

static cot_tape *open_tape(void) { return cot_tape_create(NULL); }

/* The message is the format with the given line numbers in. */
#define assert_message(t, ...)                                                                     \
    do {                                                                                           \
        char want[512];                                                                            \
        snprintf(want, sizeof want, __VA_ARGS__);                                                  \
        assert_string_equal(cot_tape_message(t), want);                                            \
        cot_tape_clear_error(t);                                                                   \
    } while (0)

static const double numbers[3] = {1, 2, 3};

static void messages_name_the_lines_of_both_operations(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    enum { LEAF = __LINE__ + 1 };
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3), numbers);
    enum { ADDED = __LINE__ + 1 };
    cot_var h = cot_name(cot_add(x, 1.0), "h");
    enum { SAVED = __LINE__ + 1 };
    cot_var  y = cot_sigmoid(cot_square(h));
    cot_var *p = &h;
    enum { WRITTEN = __LINE__ + 1 };
    cot_sub_into(p++, 1.0); /* the target is evaluated once */
    assert_ptr_equal(p, &h + 1);
    assert_int_equal(cot_backward(cot_sum(y, COT_ALL)), COT_STALE);
    assert_message(t,
                   "[backward] square (v₁, test_lines.c:%d in %s) needs the value of add (h, "
                   "test_lines.c:%d in %s), which was overwritten by sub (v₄, test_lines.c:%d in %s); "
                   "compute before the write, or write to a copy (cot_copy)",
                   SAVED, __func__, ADDED, __func__, WRITTEN, __func__);
    cot_read_grad(y, (double[3]){0}, 3);
    assert_message(t,
                   "[read_grad] sigmoid (v₂, test_lines.c:%d in %s) keeps no gradient; only leaves do, and values "
                   "marked with cot_retain_grad before backward",
                   SAVED, __func__);
    cot_square(x);
    enum { LEAF_WRITTEN = __LINE__ + 1 };
    cot_add_into(&x, 1.0);
    /* v₆ is the square */
    cot_backward(cot_sum((cot_var){t, (h.id & ~UINT64_C(0xffffffff)) | 8}, COT_ALL));
    assert_message(t,
                   "[backward] square (v₆, test_lines.c:%d in %s) needs the value of leaf (x₁, test_lines.c:%d in "
                   "%s), which was overwritten by add (v₈, test_lines.c:%d in %s); compute before the write, or "
                   "write to a copy (cot_copy)",
                   LEAF_WRITTEN - 2, __func__, LEAF, __func__, LEAF_WRITTEN, __func__);
    cot_tape_destroy(t);
}

/* Every way to make a value gets the line of its own call, not that of the next operation. */
static void sources_have_their_own_lines(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    double    memory[3] = {0}, out[3];
    cot_var   made[16];
    int       line[16], n = 0;
    made[n] = cot_constant(t, 1), line[n++] = __LINE__;
    made[n] = cot_data(t, COT_F64, COT_SHAPE(3), numbers), line[n++] = __LINE__;
    made[n] = cot_wrap(t, COT_F64, COT_SHAPE(3), memory), line[n++] = __LINE__;
    cot_var x = cot_scalar(t, 2), x32 = cot_scalar_of(t, COT_F32, 2);
    made[n] = cot_detach(x), line[n++] = __LINE__;
    made[n] = cot_cast(x32, COT_F64), line[n++] = __LINE__;
    made[n] = cot_grad(x), line[n++] = __LINE__;
    made[n] = cot_zeros(t, COT_F64, COT_SHAPE(3)), line[n++] = __LINE__;
    cot_var y = cot_mul(x, x);
    made[n] = cot_jvp(y, 1, &x, (cot_var[]){x}), line[n++] = __LINE__;
    made[n] = cot_maximum(x, 1.0), line[n++] = __LINE__;
    cot_grad_of(cot_square(y), 1, &x, &made[n]), line[n++] = __LINE__;
    cot_vjp(cot_square(y), 2.0, 1, (cot_var[]){x}, &made[n]), line[n++] = __LINE__;
    cot_split(cot_tensor(t, COT_F64, COT_SHAPE(3), memory), 3, 0, &made[n]), line[n++] = __LINE__;
    cot_exp(x);
    for (int i = 0; i < n; i++) {
        char where[64];
        cot_read_grad(made[i], out, 1);
        snprintf(where, sizeof where, ", test_lines.c:%d in sources_have_their_own_lines)", line[i]);
        if (!strstr(cot_tape_message(t), where)) fail_msg("%s, but recorded at %d", cot_tape_message(t), line[i]);
        cot_tape_clear_error(t);
    }
    cot_tape_destroy(t);
}

/* What calls functions of the user's: their operations have their own lines, what comes behind them
 * and the results the line of the call. */
static int squares(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m, (void)user;
    ys[0] = cot_square(xs[n - 1]);
    return 0;
}
static int goes_on(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_less(xs[0], 10.0);
    return 0;
}
static int adds(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)user;
    ys[0] = cot_add(xs[0], xs[1]);
    if (m > 1) ys[1] = ys[0];
    return 0;
}
static int squares_a_layer(int64_t layer, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)layer, (void)n, (void)user;
    ys[0] = cot_square(xs[0]);
    return 0;
}
static int squares_back(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                        void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    xbars[0] = cot_mul(2.0, cot_mul(xs[0], ybars[0]));
    return 0;
}
static int doubles(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(2.0, xs[0]);
    return 0;
}
static int fixed(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_cos(xs[0]);
    return 0;
}

static void drivers_have_their_own_lines(void **state) {
    (void)state;
    cot_tape    *t = open_tape();
    cot_type     type = {COT_F64, COT_SCALAR};
    cot_program *p = cot_compile(squares, NULL, 1, &type, 1, NULL);
    cot_jit     *j = cot_jit_create(squares, NULL, NULL);
    cot_linear  *linear;
    cot_fn_rules own = {.name = "mine", .vjp = squares_back};
    cot_var      x = cot_scalar(t, 2), v = cot_tensor(t, COT_F64, COT_SHAPE(3), numbers), one = cot_constant(t, 1);
    cot_var      made[40], unused[2], y;
    int          line[40], n = 0;
    cot_fori(squares, NULL, 0, 2, 1, &x, &made[n], NULL), line[n++] = __LINE__;
    cot_scan(adds, NULL, 3, 1, &x, 1, &v, &made[n], 1, unused, NULL), line[n++] = __LINE__;
    cot_scan(adds, NULL, 3, 1, (cot_var[]){cot_number(0)}, 1, &v, unused, 1, &made[n], NULL), line[n++] = __LINE__;
    cot_while(goes_on, squares, NULL, 1, &x, &made[n], NULL), line[n++] = __LINE__;
    cot_cond(cot_less(x, 1.0), squares, fixed, NULL, 1, &x, 1, &made[n]), line[n++] = __LINE__;
    cot_cond(cot_number(1), squares, fixed, NULL, 1, (cot_var[]){x}, 1, &made[n]), line[n++] = __LINE__;
    cot_checkpoint(squares, NULL, 1, &x, 1, &made[n]), line[n++] = __LINE__;
    cot_checkpoint_sequential(squares_a_layer, NULL, 4, 2, 1, &x, &made[n]), line[n++] = __LINE__;
    cot_vmap(squares, NULL, 1, &v, NULL, 1, &made[n], NULL), line[n++] = __LINE__;
    cot_custom_fn(&own, squares, NULL, 1, &x, 1, &made[n]), line[n++] = __LINE__;
    cot_program_call(p, 1, &x, 1, &made[n]), line[n++] = __LINE__;
    cot_jit_call(j, 1, &x, 1, &made[n]), line[n++] = __LINE__;
    cot_value_and_grad(squares, NULL, 1, &x, &y, &made[n]), line[n++] = __LINE__;
    cot_fn_vjp(squares, NULL, 1, &x, 1, &y, &one, &made[n]), line[n++] = __LINE__;
    cot_fn_jvp(squares, NULL, 1, &x, &x, 1, &y, &made[n]), line[n++] = __LINE__;
    cot_linearize(squares, NULL, 1, &x, 1, &y, &linear);
    cot_linear_jvp(linear, &x, &made[n]), line[n++] = __LINE__;
    cot_linear_vjp(linear, &x, &made[n]), line[n++] = __LINE__;
    cot_fn_jacobian(squares, NULL, 1, &v, 1, &y, COT_AUTO, &made[n]), line[n++] = __LINE__;
    cot_fn_hessian(squares, NULL, 1, &x, &y, &made[n]), line[n++] = __LINE__;
    made[n] = cot_linear_solve(doubles, NULL, v, NULL), line[n++] = __LINE__;
    made[n] = cot_fixed_point(fixed, NULL, NULL, one, 1, &x, NULL), line[n++] = __LINE__;
    made[n] = cot_stop_gradient(x), line[n++] = __LINE__;
    cot_csr a = cot_csr_from_dense(cot_tensor(t, COT_F64, COT_SHAPE(1, 3), numbers));
    made[n] = a.values, line[n++] = __LINE__ - 1;
    made[n] = cot_csr_softmax(a).values, line[n++] = __LINE__;
    made[n] = cot_csr_matmul(a, v), line[n++] = __LINE__;
    cot_var pairs = cot_zeros(t, COT_F64, COT_SHAPE(3, 2));
    made[n] = cot_nn_rotary(pairs, 10, 0), line[n++] = __LINE__;
    assert_ok(t);
    cot_exp(x);
    for (int i = 0; i < n; i++) {
        char where[80];
        cot_read_grad(made[i], (double[9]){0}, cot_size(made[i]));
        snprintf(where, sizeof where, ", test_lines.c:%d in drivers_have_their_own_lines)", line[i]);
        if (!strstr(cot_tape_message(t), where)) fail_msg("%s, but recorded at %d", cot_tape_message(t), line[i]);
        cot_tape_clear_error(t);
    }
    cot_program_destroy(p);
    cot_jit_destroy(j);
    cot_tape_destroy(t);
}

static void a_site_may_know_no_function(void **state) {
    (void)state;
    static const cot_site site = {"/there/net.c", 7, NULL};
    cot_tape             *t = open_tape();
    cot_var               y = cot_sited((cot_exp)(cot_scalar(t, 1)), &site);
    cot_read_grad(y, (double[1]){0}, 1);
    assert_message(t, "[read_grad] exp (v₁, net.c:7) keeps no gradient; only leaves do, and values marked with "
                      "cot_retain_grad before backward");
    cot_tape_destroy(t);
}

static void a_strict_tape_names_the_lines_at_the_write(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.strict = true});
    enum { MADE = __LINE__ + 1 };
    cot_var x = cot_mul(cot_tensor(t, COT_F64, COT_SHAPE(3), numbers), 1.0);
    cot_sin(x);
    cot_mul_into(&x, 2.0);
    assert_message(t,
                   "[mul_into] this write would spoil the value of mul (v₁, test_lines.c:%d in %s), which sin (v₂, "
                   "test_lines.c:%d in %s) saved for its derivative (test_lines.c:%d in %s)",
                   MADE, __func__, MADE + 1, __func__, MADE + 2, __func__);
    cot_tape_destroy(t);
}

/* The call that failed is the one whose line the message tells; calls that merely find the tape
 * failed are not. Behind it stands only what it was called by: the body of a loop, a step, another
 * call. */
static void a_failing_call_says_where_it_stands(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL), b = cot_tensor(t, COT_F64, COT_SHAPE(2, 4), NULL);
    enum { ADDED = __LINE__ + 1 };
    cot_var c = cot_add(a, b);
    cot_exp(c), cot_scalar(t, 1);
    assert_message(t,
                   "[add] shapes (2,3) and (2,4) do not broadcast; counted from the end, extents must be equal or 1 "
                   "(test_lines.c:%d in %s)",
                   ADDED, __func__);
    cot_tape_clear_error(t);
    char where[80];
    /* nor do calls of the operation itself, behind the one that failed, take its line away */
    cot_var v = cot_tensor(t, COT_F64, COT_SHAPE(3), numbers), u = cot_zeros(t, COT_F64, COT_SHAPE(2));
    cot_var at = cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 3}), in = cot_reshape(at, COT_SHAPE(2, 1));
    int line = __LINE__ + 2;
    for (int k = 0; k < 4; k++) {
        k == 0 ? cot_scatter(v, at, u, 0) : k == 1 ? cot_scatter(v, u, u, 0) : cot_gather(v, k == 2 ? in : u);
        snprintf(where, sizeof where, " (test_lines.c:%d in %s)", line, __func__);
        if (!strstr(cot_tape_message(t), where)) fail_msg("%s, but called at %d", cot_tape_message(t), line);
        cot_tape_clear_error(t);
    }
    /* functions of functions have a line where what they are given does not fit */
    enum { LOOPS = __LINE__ + 1 };
    cot_fori(NULL, NULL, 0, 2, 1, &a, &c, NULL), cot_exp(a);
    snprintf(where, sizeof where, " (test_lines.c:%d in %s)", LOOPS, __func__);
    assert_non_null(strstr(cot_tape_message(t), where));
    cot_tape_clear_error(t);
    cot_vmap(squares, NULL, 1, &a, (int[]){7}, 1, &c, NULL), cot_exp(a);
    snprintf(where, sizeof where, " (test_lines.c:%d in %s)", LOOPS + 4, __func__);
    assert_non_null(strstr(cot_tape_message(t), where));
    cot_tape_clear_error(t);
    cot_program_call(NULL, 1, &a, 1, &c), cot_exp(a);
    snprintf(where, sizeof where, " (test_lines.c:%d in %s)", LOOPS + 8, __func__);
    assert_non_null(strstr(cot_tape_message(t), where));
    cot_tape_clear_error(t);
    /* cot_backward is no operation: it has no line, and must not get that of the next operation */
    cot_backward(a);
    cot_exp(a);
    assert_null(strstr(cot_tape_message(t), "test_lines.c"));
    cot_tape_destroy(t);
}

/* ---- in programs ----------------------------------------------------------------------------- */

enum { TAKEN = __LINE__ + 4, INVERTED = __LINE__ + 12 };

static int take_some(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_take(xs[0], xs[1], 0);
    return 0;
}
static int take_in_a_body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return cot_checkpoint(take_some, user, n, xs, m, ys) != COT_OK;
}
static int invert(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_inv(cot_outer(xs[0], xs[0]));
    return 0;
}

static const char told[] = "[take] indices[1] is 3, out of range for extent 3; values run from -3 to 2";

/* A run has lost the tape, but it knows the line of the check that refuses, also in a body, and of
 * what it has a note about. Who called the program on a tape is told that line, and its own. */
static void a_run_names_the_line_that_was_recorded(void **state) {
    (void)state;
    static const cot_fn functions[] = {take_some, take_in_a_body};
    const cot_type      types[2] = {{COT_F64, COT_SHAPE(3)}, {COT_I64, COT_SHAPE(2)}};
    const double        x[3] = {1, 2, 3};
    const int64_t       at[2] = {1, 3};
    double              z[9];
    char                wanted[200];
    snprintf(wanted, sizeof wanted, "%s (test_lines.c:%d)", told, TAKEN);
    for (int k = 0; k < 2; k++) {
        cot_program *p = cot_compile(functions[k], NULL, 2, types, 1, NULL);
        cot_run     *r = cot_run_create(p);
        assert_int_equal(cot_program_run(r, (const void *[]){x, at}, (void *[]){z}), COT_VALUE);
        assert_string_equal(cot_run_message(r), wanted);
        cot_run_destroy(r);
        cot_tape *t = open_tape();
        cot_var   y, xs[2] = {cot_data(t, COT_F64, COT_SHAPE(3), x), cot_data(t, COT_I64, COT_SHAPE(2), at)};
        enum { CALLED = __LINE__ + 1 };
        assert_int_equal(cot_program_call(p, 2, xs, 1, &y), COT_VALUE);
        assert_message(t, "%s (test_lines.c:%d in %s)", wanted, CALLED, __func__);
        cot_tape_destroy(t);
        cot_program_destroy(p);
    }
    /* also where derivatives are wanted, for which programs are recorded again */
    for (int k = 0; k < 4; k++) {
        cot_program *p = cot_compile(functions[k % 2], NULL, 2, types, 1, NULL);
        cot_jit     *j = cot_jit_create(functions[k % 2], NULL, NULL);
        cot_tape    *t = open_tape();
        cot_var      y, xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), x), cot_data(t, COT_I64, COT_SHAPE(2), at)};
        enum { CALLED = __LINE__ + 1 };
        assert_int_equal(k < 2 ? cot_program_call(p, 2, xs, 1, &y) : cot_jit_call(j, 2, xs, 1, &y), COT_VALUE);
        assert_message(t, "%s (test_lines.c:%d in %s)", wanted, CALLED, __func__);
        cot_tape_destroy(t);
        cot_jit_destroy(j);
        cot_program_destroy(p);
    }
    cot_program *p = cot_compile(invert, NULL, 1, types, 1, NULL);
    cot_run     *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){z}), COT_OK);
    snprintf(wanted, sizeof wanted, "(test_lines.c:%d)", INVERTED);
    if (!strstr(cot_run_note(r), wanted)) fail_msg("%s", cot_run_note(r));
    cot_run_destroy(r);
    cot_program_destroy(p);
}

enum { TAKEN_IN_A_STEP = __LINE__ + 5 };

static int takes_in_a_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var at = cot_reshape(xs[0], COT_SHAPE(1));
    ys[0] = cot_add(xs[1], cot_sum(cot_take(xs[1], at, 0), COT_ALL));
    return 0;
}
static int loops(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    return cot_fori(takes_in_a_step, user, 0, 5, 1, xs, ys, NULL) != COT_OK;
}

/* From the inside out: the line of the operation, the step of the loop, the line of the call. */
static void an_error_in_a_loop_names_line_and_step(void **state) {
    (void)state;
    const cot_type type = {COT_F64, COT_SHAPE(3)};
    const double   x[3] = {1, 2, 3};
    char           wanted[200];
    cot_program   *p = cot_compile(loops, NULL, 1, &type, 1, NULL);
    cot_run       *r = cot_run_create(p);
    double         z[3];
    snprintf(wanted, sizeof wanted, "[take] indices[0] is 3, out of range for extent 3; values run from -3 to 2 "
             "(test_lines.c:%d) (in step 3 of [fori])", TAKEN_IN_A_STEP);
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){z}), COT_VALUE);
    assert_string_equal(cot_run_message(r), wanted);
    cot_tape *t = open_tape();
    for (int active = 0; active < 2; active++) {
        cot_var y, v = active ? cot_tensor(t, COT_F64, COT_SHAPE(3), x) : cot_data(t, COT_F64, COT_SHAPE(3), x);
        enum { CALLED = __LINE__ + 1 };
        assert_int_equal(cot_program_call(p, 1, &v, 1, &y), COT_VALUE);
        assert_message(t, "%s (test_lines.c:%d in %s)", wanted, CALLED, __func__);
    }
    cot_run_destroy(r);
    cot_program_destroy(p);
    cot_tape_destroy(t);
}

/* Numbers mix in at any depth, and the text that the compiler sees grows with the depth, not with
 * its power. */
static void nested_calls_mix_numbers_in(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3);
    cot_var   y =
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        cot_add(1, cot_mul(0.5, cot_add(1, cot_mul(0.5,
        x))))))))))))))))))))))))))))))))))))))));
    assert_near(cot_value(y), 2 + 1 / 1048576.0, 0);
    cot_backward(y);
    assert_near(cot_grad_value(x), 1 / 1048576.0, 0);
    assert_int_equal(cot_tape_length(t), 41);
    assert_ok(t);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_name_the_lines_of_both_operations),
        cmocka_unit_test(sources_have_their_own_lines),
        cmocka_unit_test(drivers_have_their_own_lines),
        cmocka_unit_test(a_site_may_know_no_function),
        cmocka_unit_test(a_strict_tape_names_the_lines_at_the_write),
        cmocka_unit_test(a_failing_call_says_where_it_stands),
        cmocka_unit_test(a_run_names_the_line_that_was_recorded),
        cmocka_unit_test(an_error_in_a_loop_names_line_and_step),
        cmocka_unit_test(nested_calls_mix_numbers_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
