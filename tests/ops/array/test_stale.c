/* Every use of a value that was overwritten since, in place or by an assignment, is reported, on a
 * tape and in bodies. */
#include "ops/array/inplace_test.h"

/* ---- stale values ---------------------------------------------------------------------------- */

static void old_vars_and_views_are_stale(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), v = cot_mul(x, 1.0), old = v, view = cot_slice(v, 0, 0, 2, 1);
    cot_add_into(&v, 1.0);
    assert_false(cot_is_valid(cot_exp(old)));
    assert_error(t, COT_STALE,
                 "[exp] the operand, mul (v₁), was overwritten by add (v₄); use the var that the write updated");
    cot_tape_clear_error(t);
    cot_mul(v, view);
    assert_error(
        t, COT_STALE,
        "[mul] the right operand, slice (v₂), was overwritten by add (v₄); use the var that the write updated");
    cot_tape_clear_error(t);
    double got[3];
    assert_int_equal(cot_read(old, got, 3), COT_STALE);
    assert_error(t, COT_STALE,
                 "[read] the operand, mul (v₁), was overwritten by add (v₄); use the var that the write updated");
    cot_tape_clear_error(t);
    assert_int_equal(cot_add_into(&old, 1.0), COT_STALE);
    assert_error(
        t, COT_STALE,
        "[add_into] the target operand, mul (v₁), was overwritten by add (v₄); use the var that the write updated");
    cot_tape_clear_error(t);
    assert_values(v, 3, (double[]){2.5, -1, 1.75});
    cot_tape_destroy(t);
}

static void writing_through_a_view_makes_the_base_stale(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 4, start), base = cot_name(cot_mul(x, 1.0), "base"), row = cot_slice(base, 0, 1, 3, 1);
    cot_copy_into(&row, 0.0);
    cot_exp(base);
    assert_error(
        t, COT_STALE,
        "[exp] the operand, mul (base), was overwritten by copy_into (v₃); use the var that the write updated");
    cot_tape_destroy(t);
}

static void a_saved_value_that_was_overwritten_is_reported_at_backward(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), v = cot_mul(x, 1.0), y = cot_sin(v);
    cot_add_into(&v, 1.0);
    assert_ok(t);
    assert_int_equal(cot_backward(cot_sum(cot_add(y, v), COT_ALL)), COT_STALE);
    assert_error(t, COT_STALE, "[backward] sin (v₂) needs the value of mul (v₁), which was overwritten by add (v₄); "
                               "compute before the write, or write to a copy (cot_copy)");
    cot_tape_clear_error(t);
    double g[3];
    cot_read_grad(x, g, 3); /* a sweep that failed adds nothing */
    assert_near(g[0], 0, 0);
    /* a derivative that does not need the old value still works */
    cot_backward(cot_sum(v, COT_ALL));
    assert_ok(t);
    assert_grads(x, 3, (double[]){1, 1, 1});
    cot_var grad;
    assert_int_equal(cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &grad), COT_STALE);
    assert_false(cot_is_valid(grad));
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_jvp(y, 1, &x, (cot_var[]){cot_ones(t, COT_F64, COT_SHAPE(3))})));
    assert_error(t, COT_STALE, "[jvp] sin (v₂) needs the value of mul (v₁), which was overwritten by add (v₄); "
                               "compute before the write, or write to a copy (cot_copy)");
    cot_tape_destroy(t);
}

static void a_saved_result_that_was_overwritten_is_reported(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), y = cot_name(cot_exp(x), "e");
    cot_mul_into(&y, 2.0);
    cot_backward(cot_sum(y, COT_ALL));
    assert_error(t, COT_STALE,
                 "[backward] exp (e) needs the value of exp (e), which was overwritten by mul (v₂); "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_destroy(t);
}

static void a_structural_rule_that_saved_is_reported(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), start), b = cot_mul(a, 1.0), c = cot_matmul(a, b);
    cot_add_into(&b, 1.0);
    cot_backward(cot_sum(c, COT_ALL));
    assert_error(t, COT_STALE, "[backward] matmul (v₂) needs the value of mul (v₁), which was overwritten by add (v₄); "
                               "compute before the write, or write to a copy (cot_copy)");
    cot_tape_destroy(t);
}

static cot_tape *strict_tape(void) { return cot_tape_create(&(cot_options){.strict = true}); }

static void a_strict_tape_refuses_the_write(void **state) {
    (void)state;
    cot_tape *t = strict_tape();
    cot_var   x = leaf(t, 3, start), v = cot_name(cot_mul(x, 1.0), "v");
    cot_sin(v);
    assert_int_equal(cot_add_into(&v, 1.0), COT_STALE);
    assert_error(
        t, COT_STALE,
        "[add_into] this write would spoil the value of mul (v), which sin (v₁) saved for its derivative");
    cot_tape_clear_error(t);
    assert_values(v, 3, start); /* nothing was written */
    cot_var a = cot_square(v);
    cot_div_into(&a, v); /* fine: nothing had saved a */
    assert_ok(t);
    /* but the division by a value that needs a gradient saved its own result */
    cot_add_into(&a, 1.0);
    assert_error(t, COT_STALE,
                 "[add_into] this write would spoil the value of div (v₃), which div (v₃) saved for its derivative");
    cot_tape_destroy(t);
}

static void a_strict_tape_allows_what_spoils_nothing(void **state) {
    (void)state;
    cot_tape *t = strict_tape();
    cot_var   x = leaf(t, 3, start), c = cot_data(t, COT_F64, COT_SHAPE(3), other), v = cot_mul(x, 1.0);
    cot_var   y = cot_mul(v, c); /* c is a constant: its derivative in v reads c, none reads v */
    cot_add_into(&v, 1.0);
    assert_ok(t);
    cot_backward(cot_sum(cot_add(y, v), COT_ALL));
    assert_ok(t);
    assert_grads(x, 3, (double[]){1.5, 5, -0.25});
    cot_tape_destroy(t);
}

/* The node that saved a value may itself be forgotten. Then the write is free again, whatever node
 * has its index now. */
static void a_saver_forgotten_by_a_rewind_does_not_forbid_the_write(void **state) {
    (void)state;
    cot_tape *t = strict_tape();
    cot_var   x = leaf(t, 3, start), v = cot_mul(x, 1.0);
    cot_mark  m = cot_tape_mark(t);
    cot_sin(v);
    cot_tape_rewind(t, m);
    cot_add(x, x);
    cot_add(x, x);
    cot_add_into(&v, 1.0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void an_older_saver_still_forbids_the_write_after_a_rewind(void **state) {
    (void)state;
    cot_tape *t = strict_tape();
    cot_var   x = leaf(t, 3, start), v = cot_mul(x, 1.0);
    cot_sin(v);
    cot_mark m = cot_tape_mark(t);
    cot_cos(v);
    cot_tape_rewind(t, m);
    cot_add_into(&v, 1.0);
    assert_error(t, COT_STALE,
                 "[add_into] this write would spoil the value of mul (v₁), which sin (v₂) saved for its derivative");
    cot_tape_destroy(t);
}

static void a_write_forgotten_by_a_rewind_is_not_named_after_another_operation(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), v = cot_mul(x, 1.0), w = v;
    cot_mark  m = cot_tape_mark(t);
    cot_add_into(&w, 1.0);
    cot_tape_rewind(t, m);
    for (int i = 0; i < 5; i++) cot_exp(x);
    cot_sin(v);
    assert_error(t, COT_STALE,
                 "[sin] the operand, mul (v₁), was overwritten by a write that was rewound; record it again");
    cot_tape_destroy(t);
}

/* ---- assignment ------------------------------------------------------------------------------ */

static void assignment_after_recording_makes_backward_an_error(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_name(cot_scalar(t, 2), "x"), y = cot_mul(x, x), s = cot_add(x, 1.0);
    assert_int_equal(cot_assign(x, 5.0), COT_OK);
    assert_near(cot_value(y), 4, 0); /* values keep */
    cot_backward(y);
    assert_error(t, COT_STALE,
                 "[backward] mul (v₁) needs the value of leaf (x), which was overwritten by cot_assign; "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_clear_error(t);
    double j;
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_REVERSE, &j), COT_STALE);
    cot_tape_clear_error(t);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, &j), COT_STALE);
    cot_tape_clear_error(t);
    cot_var g;
    assert_int_equal(cot_grad_of(y, 1, &x, &g), COT_STALE);
    cot_tape_clear_error(t);
    cot_backward(s); /* reads nothing that was saved */
    assert_ok(t);
    assert_near(cot_grad_value(x), 1, 0);
    cot_zero_grad(x);
    cot_backward(cot_mul(x, x)); /* recorded after it */
    assert_ok(t);
    assert_near(cot_grad_value(x), 10, 0);
    cot_tape_destroy(t);
}

static void assignment_of_a_tensor_makes_backward_an_error(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), y = cot_sum(cot_square(x), COT_ALL), view = cot_slice(x, 0, 0, 2, 1);
    cot_assign_data(x, other);
    cot_backward(y);
    assert_error(t, COT_STALE,
                 "[backward] square (v₁) needs the value of leaf (x₁), which was overwritten by cot_assign_data; "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_clear_error(t);
    double j[3];
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, j), COT_STALE);
    cot_tape_clear_error(t);
    cot_exp(view);
    assert_error(t, COT_STALE,
                 "[exp] the operand, slice (v₃), was overwritten by cot_assign_data to leaf (x₁); record it again");
    cot_tape_clear_error(t);
    cot_backward(cot_sum(cot_square(x), COT_ALL));
    assert_ok(t);
    assert_grads(x, 3, (double[]){1, 8, -2.5});
    cot_tape_destroy(t);
}

static void assignment_of_constants_makes_backward_an_error_too(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3), c = cot_constant(t, 2), y = cot_mul(x, c), g;
    double    j;
    cot_assign(c, 5.0);
    cot_backward(y);
    assert_error(t, COT_STALE,
                 "[backward] mul (v₁) needs the value of constant (5), which was overwritten by cot_assign; "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_clear_error(t);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, &j), COT_STALE);
    cot_tape_clear_error(t);
    assert_int_equal(cot_grad_of(y, 1, &x, &g), COT_STALE);
    cot_tape_clear_error(t);
    cot_var v = leaf(t, 3, start), w = cot_data(t, COT_F64, COT_SHAPE(3), start), z = cot_sum(cot_mul(v, w), COT_ALL);
    cot_assign_data(w, other);
    cot_backward(z);
    assert_error(t, COT_STALE,
                 "[backward] mul (v₂) needs the value of constant (c₁), which was overwritten by cot_assign_data; "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_clear_error(t);
    cot_backward(cot_sum(cot_mul(v, w), COT_ALL)); /* recorded after it */
    assert_ok(t);
    assert_grads(v, 3, other);
    cot_tape_destroy(t);
}

static void dot_of_reads_its_scalars_too(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x[2] = {cot_scalar(t, 2), cot_scalar(t, 3)}, y[2] = {cot_scalar(t, 5), cot_scalar(t, 7)},
            z = cot_dot_of(2, x, y);
    cot_assign(y[1], 0.0);
    assert_int_equal(cot_backward(z), COT_STALE);
    assert_error(t, COT_STALE,
                 "[backward] dot_of (v₁) needs the value of leaf (x₄), which was overwritten by cot_assign; "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_destroy(t);
}

static void logsumexp_of_reads_its_scalars_too(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x[2] = {cot_scalar(t, 2), cot_scalar(t, 3)}, z = cot_logsumexp_of(2, x);
    cot_assign(x[1], 0.0);
    assert_int_equal(cot_backward(z), COT_STALE);
    assert_error(t, COT_STALE,
                 "[backward] logsumexp_of (v₁) needs the value of leaf (x₂), which was overwritten by cot_assign; "
                 "compute before the write, or write to a copy (cot_copy)");
    cot_tape_destroy(t);
}

static void assignment_survives_a_rewind(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   s = cot_scalar(t, 1), x = leaf(t, 3, start);
    cot_mark  m = cot_tape_mark(t);
    cot_assign(s, cot_mul(s, 8.0));
    cot_assign(x, cot_mul(x, 2.0));
    cot_tape_rewind(t, m);
    assert_near(cot_value(s), 8, 0);
    assert_values(x, 3, (double[]){3, -4, 1.5});
    cot_backward(cot_add(cot_mul(s, s), cot_sum(cot_square(x), COT_ALL)));
    assert_ok(t);
    assert_near(cot_grad_value(s), 16, 0);
    assert_grads(x, 3, (double[]){6, -8, 3});
    cot_tape_destroy(t);
}

/* A step need not be followed by a rewind: nodes recorded after it are new. */
static void what_is_recorded_after_a_step_has_a_gradient(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3), v = leaf(t, 3, start), both[2] = {x, v};
    for (int i = 0; i < 3; i++) {
        cot_var y = cot_add(cot_mul(x, x), cot_sum(cot_square(v), COT_ALL));
        cot_tape_zero_grads(t);
        assert_int_equal(cot_backward(y), COT_OK);
        assert_ok(t);
        assert_int_equal(cot_sgd_step(2, both, 0.25), COT_OK);
    }
    assert_near(cot_value(x), 3.0 / 8, 0);
    assert_values(v, 3, (double[]){1.5 / 8, -2.0 / 8, 0.75 / 8});
    cot_tape_destroy(t);
}

/* An in-place write that a rewind forgot has still destroyed the leaf's numbers; assigning brings
 * it back. */
static void assignment_revives_a_leaf(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    double    d[2] = {1, 2};
    cot_var   w = cot_tensor(t, COT_F64, COT_SHAPE(2), d), v = w;
    cot_mark  m = cot_tape_mark(t);
    cot_mul_into(&v, 2.0);
    cot_tape_rewind(t, m);
    cot_exp(w);
    assert_error(
        t, COT_STALE,
        "[exp] the operand, leaf (x₁), was overwritten by a write that was rewound; cot_assign gives it new numbers");
    cot_tape_clear_error(t);
    assert_int_equal(cot_assign_data(w, d), COT_OK);
    cot_backward(cot_sum(cot_square(w), COT_ALL));
    double g[2];
    cot_read_grad(w, g, 2);
    assert_true(g[0] == 2 && g[1] == 4);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void only_borrowed_memory_can_be_touched(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL);
    cot_touch(&x);
    assert_error(t, COT_VALUE,
                 "[touch] leaf (x₁) does not lie in borrowed memory (cot_wrap): nothing can change it from outside");
    cot_tape_destroy(t);
}

/* Of several writes the first one spoiled the value. */
static void the_write_that_spoiled_the_value_is_named(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), a = cot_exp(x), old = a;
    cot_add_into(&a, 1.0);
    cot_sub_into(&a, 1.0);
    cot_sin(old);
    assert_error(t, COT_STALE,
                 "[sin] the operand, exp (v₁), was overwritten by add (v₃); use the var that the write updated");
    cot_tape_destroy(t);
}

/* ---- in bodies ------------------------------------------------------------------------------- */

/* In a body a write goes to a copy of an input or of a constant, which changes nothing for whoever
 * reads the old value: it is stale as anywhere else. */
BODY(reads_the_input) {
    UNUSED;
    cot_var x = xs[0], before = cot_copy(x);
    cot_sub_into(&before, 1.0);
    cot_add_into(&x, before);
    ys[0] = cot_exp(xs[0]);
    return 0;
}
BODY(reads_after_a_part_was_written) {
    UNUSED;
    cot_var x = xs[0];
    cot_update_slice(&x, 0, 0, 1, 1, 7.0);
    ys[0] = cot_mul(x, xs[0]);
    return 0;
}
BODY(reads_a_view) {
    UNUSED;
    cot_var x = xs[0], view = cot_flip(cot_reshape(x, COT_SHAPE(3, 1)), COT_ALL);
    cot_mul_into(&x, x);
    ys[0] = cot_add(x, view);
    return 0;
}
BODY(reads_below_a_view) {
    UNUSED;
    cot_var view = cot_slice(xs[0], 0, 0, 2, 1);
    cot_mul_into(&view, 5.0);
    ys[0] = cot_sin(xs[0]);
    return 0;
}
BODY(reads_a_constant) {
    UNUSED;
    cot_var c = cot_data(xs[0].tape, COT_F64, COT_SHAPE(3), start), x = c;
    cot_add_into(&x, 1.0);
    ys[0] = cot_mul(xs[0], cot_add(c, x));
    return 0;
}
BODY(gives_the_input) {
    UNUSED;
    cot_var x = xs[0];
    cot_add_into(&x, 1.0);
    ys[0] = xs[0];
    return 0;
}
BODY(differentiates_what_read_it) {
    UNUSED;
    cot_var h = cot_sin(xs[0]), x = xs[0];
    cot_add_into(&x, 1.0);
    cot_grad_of(cot_sum(h, COT_ALL), 1, xs, ys);
    return 0;
}
BODY(written) {
    UNUSED;
    cot_var x = xs[0];
    cot_mul_into(&x, 3.0);
    ys[0] = x;
    return 0;
}
BODY(reads_after_a_tangent) {
    UNUSED;
    cot_var y, d;
    cot_fn_jvp(written, NULL, 1, xs, (cot_var[]){cot_number(1)}, 1, &y, &d);
    ys[0] = cot_add(xs[0], d);
    return 0;
}
/* what an outer value is seen through is stale, the value is not */
BODY(reads_another_view) {
    UNUSED;
    cot_var view = cot_slice(*(cot_var *)user, 0, 0, 2, 1), other_view = cot_reshape(view, COT_SHAPE(2, 1));
    cot_add_into(&view, 1.0);
    ys[0] = cot_add(cot_slice(xs[0], 0, 0, 2, 1), cot_index(other_view, 1, 0));
    return 0;
}
BODY(writes_a_view_of_an_outer_value) {
    UNUSED;
    cot_var view = cot_slice(*(cot_var *)user, 0, 0, 2, 1);
    cot_add_into(&view, 1.0);
    ys[0] = cot_mul(xs[0], cot_sum(view, COT_ALL));
    return 0;
}
/* the checkpoint's input is another one */
BODY(is_written_inside) {
    UNUSED;
    cot_var c = cot_data(xs[0].tape, COT_F64, COT_SHAPE(3), start), x = c, y;
    cot_checkpoint(written, NULL, 1, xs, 1, &y);
    cot_add_into(&x, 1.0);
    cot_add_into(&x, cot_mul(xs[0], y));
    cot_mul_into(&y, x);
    ys[0] = cot_add(xs[0], y);
    return 0;
}

/* The function on a tape (0), and in each kind of body. */
static void in_body(int way, cot_fn f, cot_var x, cot_var *y) {
    cot_type     type = {COT_F64, COT_SHAPE(3)};
    cot_var      e;
    cot_program *p;
    switch (way) {
    case 0: f(1, &x, 1, y, NULL); break;
    case 1: cot_checkpoint(f, NULL, 1, &x, 1, y); break;
    case 2: cot_scan(f, NULL, 1, 1, &x, 0, NULL, y, 0, NULL, NULL); break;
    case 3: e = cot_expand_dims(x, 0), cot_vmap(f, NULL, 1, &e, NULL, 1, y, NULL); break;
    default:
        p = cot_compile(f, NULL, 1, &type, 1, NULL);
        if (cot_program_status(p)) assert_int_equal(cot_program_status(p), COT_STALE);
        assert_int_equal(cot_program_call(p, 1, &x, 1, y), cot_program_status(p));
        cot_program_destroy(p);
    }
}

static void stale_inputs_and_constants_of_bodies_are_not_read(void **state) {
    (void)state;
    static const struct { cot_fn f; const char *tape, *body; } cases[] = {
        {reads_the_input, "[exp] the operand, leaf (x₁), was overwritten by add (v₄); use",
         "[exp] the operand, parameter (p₁), was overwritten by add ("},
        {reads_after_a_part_was_written,
         "[mul] the right operand, leaf (x₁), was overwritten by update_slice (v₂); use",
         "[mul] the right operand, parameter (p₁), was overwritten by update_slice ("},
        {reads_a_view, "[add] the right operand, slice (v₂), was overwritten by mul (v₅); use",
         "[add] the right operand, slice ("},
        {reads_below_a_view, "[sin] the operand, leaf (x₁), was overwritten by mul (",
         "[sin] the operand, parameter (p₁), was overwritten by mul ("},
        {reads_a_constant, "[add] the left operand, constant (c₁), was overwritten by add (",
         "), was overwritten by add ("},
        {gives_the_input, "", "result ys[0] as operand, parameter (p₁), was overwritten by add ("},
        {differentiates_what_read_it, "[grad_of] sin (v₁) needs the value of leaf (x₁), which was overwritten by add (",
         "[grad_of] sin ("},
        {reads_after_a_tangent, "[add] the left operand, leaf (x₁), was overwritten by mul (",
         "[add] the left operand, parameter (p₁), was overwritten by mul ("},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int way = 0; way < 5; way++) {
            const char *want = way ? cases[k].body : cases[k].tape;
            cot_tape   *t = open_tape();
            cot_var     x = leaf(t, 3, start), y = COT_NONE;
            in_body(way, cases[k].f, x, &y);
            if (!strstr(cot_tape_message(t), want)) fail_msg("case %d, way %d: %s", (int)k, way, cot_tape_message(t));
            if (*want) assert_int_equal(cot_tape_status(t), COT_STALE);
            cot_tape_clear_error(t);
            if (way) assert_values(x, 3, start); /* nothing outside was written */
            cot_tape_destroy(t);
        }
}

static void views_of_outer_values_are_written_on_copies(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), c = cot_mul(leaf(t, 3, other), 1.0), y;
    cot_checkpoint(writes_a_view_of_an_outer_value, &c, 1, &x, 1, &y);
    assert_values(y, 3, (double[]){6.5 * start[0], 6.5 * start[1], 6.5 * start[2]});
    assert_values(c, 3, other);
    assert_ok(t);
    cot_checkpoint(reads_another_view, &c, 1, &x, 1, &y);
    assert_int_equal(cot_tape_status(t), COT_STALE);
    cot_tape_clear_error(t);
    assert_values(c, 3, other);
    cot_tape_destroy(t);
}

static void what_a_body_writes_is_its_own(void **state) {
    (void)state;
    for (int way = 0; way < 5; way++) {
        cot_tape *t = open_tape();
        cot_var   x = leaf(t, 3, start), y;
        in_body(way, is_written_inside, x, &y);
        if (way == 3) y = cot_index(y, 0, 0);
        double want[3];
        for (int i = 0; i < 3; i++) want[i] = start[i] + 3 * start[i] * (start[i] + 1 + 3 * start[i] * start[i]);
        assert_values(y, 3, want);
        cot_tape_destroy(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_vars_and_views_are_stale),
        cmocka_unit_test(writing_through_a_view_makes_the_base_stale),
        cmocka_unit_test(a_saved_value_that_was_overwritten_is_reported_at_backward),
        cmocka_unit_test(a_saved_result_that_was_overwritten_is_reported),
        cmocka_unit_test(a_structural_rule_that_saved_is_reported),
        cmocka_unit_test(a_strict_tape_refuses_the_write),
        cmocka_unit_test(a_strict_tape_allows_what_spoils_nothing),
        cmocka_unit_test(a_saver_forgotten_by_a_rewind_does_not_forbid_the_write),
        cmocka_unit_test(an_older_saver_still_forbids_the_write_after_a_rewind),
        cmocka_unit_test(a_write_forgotten_by_a_rewind_is_not_named_after_another_operation),
        cmocka_unit_test(assignment_after_recording_makes_backward_an_error),
        cmocka_unit_test(assignment_of_a_tensor_makes_backward_an_error),
        cmocka_unit_test(assignment_of_constants_makes_backward_an_error_too),
        cmocka_unit_test(dot_of_reads_its_scalars_too),
        cmocka_unit_test(logsumexp_of_reads_its_scalars_too),
        cmocka_unit_test(assignment_survives_a_rewind),
        cmocka_unit_test(what_is_recorded_after_a_step_has_a_gradient),
        cmocka_unit_test(only_borrowed_memory_can_be_touched),
        cmocka_unit_test(assignment_revives_a_leaf),
        cmocka_unit_test(the_write_that_spoiled_the_value_is_named),
        cmocka_unit_test(stale_inputs_and_constants_of_bodies_are_not_read),
        cmocka_unit_test(views_of_outer_values_are_written_on_copies),
        cmocka_unit_test(what_a_body_writes_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
