/* Every convention of kinks.def holds in the library, at the point given there; and cot_report
 * finds such points. */
#include "support/tape_test.h"

#include "ops/elementwise/elementwise.h"
#include "rules/kinks.h"
#include "support/see.h"

static char out[4096];

static bool same(double a, double b) { return a == b || fabs(a - b) <= 1e-15 * fabs(b); }

static void every_kink_has_the_gradient_of_the_table(void **state) {
    (void)state;
    for (int i = 0; i < KINK_count; i++) {
        const cot__kink *k = &cot__kinks[i];
        cot_tape        *t = cot_tape_create(NULL);
        cot_var          xs[3];
        int              arity = cot__elementwise_arity(k->op);
        assert_true(k->holds(k->point[0], k->point[1], k->point[2]));
        for (int n = 0; n < 2; n++) { /* as scalars, and as tensors of one element */
            for (int j = 0; j < arity; j++)
                xs[j] = n ? cot_tensor(t, COT_F64, COT_SHAPE(1), &k->point[j]) : cot_scalar(t, k->point[j]);
            /* called as in the table */
            for (int j = 0; j < arity; j++) cot_name(xs[j], cot__operand_name(k->op, j));
            cot_var y = cot__elementwise(k->op, arity, xs);
            if (cot_requires_grad(y)) cot_backward(y);
            for (int j = 0; j < arity; j++)
                if (!same(cot_grad_value(xs[j]), k->partial[j]))
                    fail_msg("%s, kink %d: operand %d has the gradient %g; the table says %g",
                             cot__elementwise_table[k->op].name, i, j, cot_grad_value(xs[j]), k->partial[j]);
            assert_true(cot_report(y, out, sizeof out) >= 1);
            assert_non_null(strstr(out, k->convention));
        }
        assert_int_equal(cot_tape_status(t), COT_OK);
        cot_tape_destroy(t);
    }
}

static void every_kink_holds_at_its_point_only(void **state) {
    (void)state;
    for (int i = 0; i < KINK_count; i++) {
        const cot__kink *k = &cot__kinks[i];
        assert_false(k->holds((isinf(k->point[0]) ? 0 : k->point[0]) + 0.3, k->point[1] + 0.171, k->point[2] + 0.02));
    }
}

#define LIST(...) {__VA_ARGS__}
#define KINK(...)
#define KINK_OF(id, op, condition, convention, call, n, at, gradient)                                                  \
    static cot_var      f_##id(cot_var x) { return call; }                                                             \
    static const double at_##id[] = LIST at, gradient_##id[] = LIST gradient;
#include "rules/kinks.def"

static const struct { int n; const double *at, *gradient; cot_var (*f)(cot_var); } array_kinks[] = {
#define KINK(...)
#define KINK_OF(id, op, condition, convention, call, n, at, gradient) {n, at_##id, gradient_##id, f_##id},
#include "rules/kinks.def"
};

static void every_kink_of_arrays_has_the_gradient_of_the_table(void **state) {
    (void)state;
    for (int i = 0; i < ARRAY_KINK_count; i++) {
        double    gradient[8];
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(array_kinks[i].n), array_kinks[i].at), y = array_kinks[i].f(x);
        cot_backward(y);
        assert_int_equal(cot_read_grad(x, gradient, array_kinks[i].n), COT_OK);
        for (int j = 0; j < array_kinks[i].n; j++) assert_true(same(gradient[j], array_kinks[i].gradient[j]));
        assert_true(cot_report(y, out, sizeof out) >= 1);
        cot_tape_destroy(t);
    }
}

#define REPORTS(y, count, text)                                                                                        \
    do {                                                                                                               \
        assert_int_equal(cot_report(y, out, sizeof out), count);                                                       \
        assert_string_equal(out, text);                                                                                \
    } while (0)

static void kinks_are_listed_with_place_and_convention(void **state) {
    (void)state;
    double    a[4] = {-1, 0, 2, 0};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2, 2), a), "x"), r = cot_name(cot_relu(x), "r");
    REPORTS(cot_sum(r, COT_ALL), 1, "relu (r) sits on its kink x = 0 at [0,1] and 1 more of 4 elements; "
                                    "its derivative there: 0, as on the left.");
    REPORTS(cot_max(r, COT_AXES(1)), 2,
            "relu (r) sits on its kink x = 0 at [0,1] and 1 more of 4 elements; "
            "its derivative there: 0, as on the left.\n"
            "max (v₂) has 2 results, reached by 3 elements; its derivative there: they share equally.");
    cot_tape_destroy(t);
}

static void kinks_that_no_leaf_reaches_are_not_listed(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0), side = cot_abs(x), y = cot_add(cot_exp(x), cot_relu(cot_constant(t, 0)));
    (void)side; /* not an ancestor of y */
    REPORTS(y, 0, "");
    cot_tape_destroy(t);
}

static void a_zero_that_won_over_infinity_is_listed(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0), l = cot_log(x), c = cot_greater(x, 0.0), y = cot_where(c, l, cot_mul(x, 2.0));
    REPORTS(y, 2, "log (v₁) sits on its kink x₁ = 0; its derivative there: inf, the limit from the right.\n"
                  "log (v₁) has the partial inf, by the rule v̄₁/x₁, but the adjoint v̄₁ is 0: the zero wins.");
    assert_true(cot_grad_value(x) == 0); /* leaf gradients are not touched */
    cot_tape_destroy(t);
}

static void whatever_is_not_a_value_reports_nothing(void **state) {
    (void)state;
    REPORTS(cot_number(2), 0, "y is not a value on a tape.");
    REPORTS((cot_var){0}, 0, "y is not a value on a tape.");
}

static void failing_allocations_are_said(void **state) {
    (void)state;
    int       failures = 0;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    double    a[2] = {1, 0};
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), a), y = cot_sum(cot_sqrt(x), COT_ALL);
    for (int n = 0;; n++) {
        let_succeed(&c, n);
        int found = cot_report(y, out, sizeof out);
        let_succeed(&c, -1);
        assert_int_equal(cot_tape_status(t), COT_OK);
        assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
        if (found == 1) break;
        assert_int_equal(found, -1);
        assert_string_equal(out, "There is not enough memory to look at the tape.");
        failures++;
    }
    assert_true(failures > 3);
    cot_tape_destroy(t);
}

/* A tape may be told to refuse such points: an error instead of a convention, and no gradient. */
static void a_smooth_tape_refuses_kinks(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = true});
    cot_var   x = cot_scalar(t, 0), g;
    cot_mark  m = cot_tape_mark(t);
    cot_var   y = cot_mul(cot_relu(x), 2.0);
    assert_int_equal(cot_backward(y), COT_GRAD);
    const char *start = "[backward] a derivative at a point without one was refused, as this tape was asked to: ";
    assert_memory_equal(cot_tape_message(t), start, strlen(start));
    cot_report(y, out, sizeof out);
    out[strcspn(out, "\n")] = 0;
    assert_string_equal(cot_tape_message(t) + strlen(start), out);
    assert_true(cot_grad_value(x) == 0);
    cot_tape_clear_error(t);
    assert_int_equal(cot_grad_of(y, 1, &x, &g), COT_GRAD);
    cot_tape_rewind(t, m);
    /* beside the kink all is well */
    assert_int_equal(cot_backward(cot_relu(cot_add(x, 1.0))), COT_OK);
    assert_true(cot_grad_value(x) == 1);
    cot_tape_destroy(t);
}

static void a_smooth_tape_says_when_it_cannot_look(void **state) {
    (void)state;
    int       failures = 0;
    counting  c = {0};
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, &c}, .smooth = true});
    double    a[2] = {1, 2};
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), a), y = cot_sum(cot_sqrt(x), COT_ALL);
    for (int n = 0;; n++) {
        let_succeed(&c, n);
        cot_status status = cot_backward(y);
        let_succeed(&c, -1);
        if (status == COT_OK) break;
        assert_int_equal(status, COT_MEMORY);
        failures += strstr(cot_tape_message(t),
                           "[backward] out of memory: nothing left to look for points without a derivative") != NULL;
        cot_tape_clear_error(t);
    }
    assert_true(failures > 0);
    cot_tape_destroy(t);
}

/* A formula is filled with the operands of the node, by place, whatever their names and those of
 * the formula are. */
static void operands_of_other_names_are_filled_in(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    char      buf[1000];
    cot_var   x = cot_name(cot_scalar(t, -2), "x"), y = cot_name(cot_scalar(t, 0), "y"), lo = cot_scalar(t, 0);
    assert_int_equal(cot_report(cot_atan2(y, x), buf, sizeof buf), 1);
    assert_non_null(strstr(buf, "sits on its kink y = 0 and x < 0; "));
    assert_int_equal(cot_report(cot_atan2(lo, x), buf, sizeof buf), 1);
    assert_non_null(strstr(buf, "sits on its kink x₁ = 0 and x < 0; "));
    assert_int_equal(cot_report(cot_clamp(y, lo, 7), buf, sizeof buf), 1);
    assert_non_null(strstr(buf, "sits on its kink y = x₁ and x₁ < "));
    assert_non_null(strstr(buf, "; its derivative there: all to x₁, none to y."));
    assert_int_equal(cot_report(cot_leaky_relu(y, 0.25), buf, sizeof buf), 1);
    assert_non_null(strstr(buf, "sits on its kink y = 0; its derivative there: 0.25, as on the left."));
    assert_ok(t);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kink_has_the_gradient_of_the_table),
        cmocka_unit_test(every_kink_holds_at_its_point_only),
        cmocka_unit_test(every_kink_of_arrays_has_the_gradient_of_the_table),
        cmocka_unit_test(kinks_are_listed_with_place_and_convention),
        cmocka_unit_test(kinks_that_no_leaf_reaches_are_not_listed),
        cmocka_unit_test(operands_of_other_names_are_filled_in),
        cmocka_unit_test(a_zero_that_won_over_infinity_is_listed),
        cmocka_unit_test(whatever_is_not_a_value_reports_nothing),
        cmocka_unit_test(failing_allocations_are_said),
        cmocka_unit_test(a_smooth_tape_refuses_kinks),
        cmocka_unit_test(a_smooth_tape_says_when_it_cannot_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
