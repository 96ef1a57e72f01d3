/* cot_explain names the operation that is to blame, in sentences that can be relied on. */
#include "support/tape_test.h"

#include "tape/tape.h"
#include "support/see.h"

static cot_tape *t;
static char      out[4096];

static int setup(void **state) {
    (void)state;
    t = cot_tape_create(NULL);
    return t == NULL;
}

static int teardown(void **state) {
    (void)state;
    bool sound = cot_tape_check(t, NULL, 0) == COT_OK && cot_tape_status(t) == COT_OK;
    cot_tape_destroy(t);
    return !sound;
}

#define EXPLAINS(y, count, text)                                                                                       \
    do {                                                                                                               \
        assert_int_equal(cot_explain(y, out, sizeof out), count);                                                      \
        assert_string_equal(out, text);                                                                                \
    } while (0)

/* ---- values ---------------------------------------------------------------------------------- */

static void a_nan_is_traced_to_the_operation_that_made_it(void **state) {
    (void)state;
    cot_var x = cot_name(cot_scalar(t, -1), "x"), y = (cot_log)(x);
    y = cot_mul(y, cot_number(2));
    y = cot_add(y, x);
    EXPLAINS(y, 1,
             "The result, add (v₃), is nan. The first value that is not finite is log (v₁): log(x) = nan for x = -1. "
             "From there to the result: v₁ log, v₂ mul, v₃ add.");
}

static void elements_are_named(void **state) {
    (void)state;
    double  a[4] = {1, 2, 0, -4};
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), a), l = cot_name((cot_log)(x), "l");
    EXPLAINS(cot_sum(l, COT_ALL), 1,
             "The result, sum (v₁), is nan. The first value that is not finite is element [1,0] of log (l): "
             "log(x₁) = -inf for x₁ = 0; "
             "2 of its 4 elements are not finite. From there to the result: l log, v₁ sum.");
    EXPLAINS(l, 1,
             "The result, log (l), is -inf at [1,0]. The first value that is not finite is element [1,0] of log "
             "(l): "
             "log(x₁) = -inf for x₁ = 0; 2 of its 4 elements are not finite.");
}

static void a_branch_that_was_not_taken_is_not_blamed(void **state) {
    (void)state;
    cot_var x = cot_scalar(t, 0), l = (cot_log)(x);
    cot_var chosen = cot_where(cot_greater(x, 0.0), l, cot_constant(t, 1)), y = (cot_div)(chosen, x);
    EXPLAINS(y, 1,
             "The result, div (v₄), is inf. The first value that is not finite is div (v₄): v₃/x₁ = inf for v₃ = 1, x₁ "
             "= 0.");
    cot_var big = (cot_exp)(cot_scalar(t, 1000)), taken = cot_where(cot_constant(t, 1), big, l);
    EXPLAINS(
        taken, 1,
        "The result, where (v₇), is inf. The first value that is not finite is exp (v₅): exp(x₂) = inf for x₂ = 1000. "
        "From there to the result: v₅ exp, v₇ where.");
}

static void a_value_that_was_given_is_named(void **state) {
    (void)state;
    cot_var x = cot_name(cot_scalar(t, (double)INFINITY), "w");
    EXPLAINS(
        cot_sub(x, x), 1,
        "The result, sub (v₁), is nan. The first value that is not finite is leaf (w): inf, as it was given. "
        "From there to the result: w leaf, v₁ sub.");
    cot_var z = cot_mul(cot_scalar(t, 2), cot_number((double)INFINITY));
    EXPLAINS(z, 1,
             "The result, mul (v₂), is inf. It comes from inf, a number that mul (v₂) was given: x₁·inf = inf for x₁ = "
             "2.");
    z = cot_square(cot_mul(cot_number(-(double)NAN), cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2})));
    EXPLAINS(z, 1,
             "The result, square (v₄), is nan at [0]. It comes from nan, a number that mul (v₃) was given: nan·x₂ = "
             "nan for x₂ = 1; 2 of its 2 elements are not finite. From there to the result: v₃ mul, v₄ square.");
}

static void structural_operations_are_blamed_with_their_operands(void **state) {
    (void)state;
    double  a[2] = {1e308, 1e308};
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(2), a);
    EXPLAINS(
        cot_sum(x, COT_ALL), 1,
        "The result, sum (v₁), is inf. The first value that is not finite is sum (v₁): inf from x₁ = [1e+308 1e+308].");
}

static void long_chains_are_shortened_in_the_middle(void **state) {
    (void)state;
    cot_var y = (cot_log)(cot_scalar(t, 0));
    for (int i = 0; i < 20; i++) y = (cot_neg)(y);
    EXPLAINS(y, 1,
             "The result, neg (v₂₁), is -inf. The first value that is not finite is log (v₁): log(x₁) = -inf for x₁ = "
             "0. From there to the result: "
             "v₁ log, v₂ neg, v₃ neg, v₄ neg, … 14 more …, v₁₉ neg, v₂₀ neg, v₂₁ neg.");
}

static void the_source_line_is_told_when_known(void **state) {
    (void)state;
    static const cot_site site = {"dir/model.c", 42, "loss"};
    cot_var y = cot_sited((cot_log)(cot_scalar(t, -1)), &site);
    EXPLAINS(y, 1,
             "The result, log (v₁, model.c:42 in loss), is nan. The first value that is not finite is log (v₁, "
             "model.c:42 in loss): "
             "log(x₁) = nan for x₁ = -1.");
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void nothing_is_found_where_nothing_is_wrong(void **state) {
    (void)state;
    cot_var x = cot_scalar(t, 2), y = (cot_exp)(x);
    EXPLAINS(y, 0, "The result is finite, and the gradient of its leaf is finite and not zero.");
    EXPLAINS(cot_mul(y, cot_scalar(t, 1)), 0,
             "The result is finite, and the gradients of its 2 leaves are finite and not zero.");
    assert_true(cot_grad_value(x) == 0); /* leaf gradients are not touched */
}

static void an_infinite_gradient_is_traced_to_its_rule(void **state) {
    (void)state;
    cot_var x = cot_name(cot_scalar(t, 0), "x"), y = (cot_sqrt)(x);
    EXPLAINS(cot_mul(y, cot_number(3)), 1,
             "The gradient of leaf (x) is inf. It became so at sqrt (v₁): its rule v̄₁/(2·v₁) gives inf for the "
             "adjoint v̄₁ = 3, v₁ = 0.");
    /* mul only passes on the value that sqrt made */
    cot_var below = (cot_sqrt)(cot_mul(x, cot_number(2)));
    EXPLAINS(below, 1,
             "The gradient of leaf (x) is inf. It became so at sqrt (v₄): its rule v̄₄/(2·v₄) gives inf for the "
             "adjoint v̄₄ = 1, v₄ = 0.");
    double  a[3] = {1, 0, 4};
    cot_var v = cot_tensor(t, COT_F64, COT_SHAPE(3), a), root = (cot_sqrt)(v);
    EXPLAINS(cot_sum(root, COT_ALL), 1,
             "The gradient of leaf (x₁) is inf at [1]. It became so at sqrt (v₅): its rule v̄₅/(2·v₅) gives inf at [1] "
             "for the adjoint v̄₅ = 1, v₅ = 0.");
}

static void gradients_that_overflow_are_found(void **state) {
    (void)state;
    cot_var x = cot_scalar(t, 1e-300), y = cot_mul(cot_mul(x, cot_number(1e200)), cot_number(1e200));
    EXPLAINS(y, 1,
             "The gradient of leaf (x₁) is inf. It became so at mul (v₁): its rule v̄₁·1e+200 gives inf for the adjoint "
             "v̄₁ = 1e+200.");
}

static void a_dead_relu_is_named(void **state) {
    (void)state;
    double  a[2] = {-1, -2};
    cot_var x = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2), a), "w"), e = cot_mul(x, cot_number(2)),
            r = (cot_relu)(e);
    EXPLAINS(cot_sum(r, COT_ALL), 1,
             "The gradient of leaf (w) is zero everywhere. It is cut at relu (v₂): its rule [v₁ > 0]·v̄₂ gives 0 "
             "everywhere for the adjoint v̄₂ = [1 1], v₁ = [-2 -4].");
}

static void saturation_and_products_with_zero_are_named(void **state) {
    (void)state;
    cot_var x = cot_scalar(t, 1000), y = (cot_sigmoid)(x);
    EXPLAINS(y, 1,
             "The gradient of leaf (x₁) is zero. It is cut at sigmoid (v₁): its rule v̄₁·v₁·(1 - v₁) gives 0 for the "
             "adjoint v̄₁ = 1, v₁ = 1.");
    cot_var z = cot_mul((cot_exp)(cot_scalar(t, 1)), cot_number(0));
    EXPLAINS(z, 1,
             "The gradient of leaf (x₂) is zero. It is cut at mul (v₃): its rule v̄₃·0 gives 0 for the adjoint v̄₃ = 1.");
}

static void the_other_branch_is_named(void **state) {
    (void)state;
    cot_var x = cot_name(cot_scalar(t, 1), "x"), z = cot_name(cot_scalar(t, 2), "z");
    EXPLAINS(cot_where(cot_constant(t, 1), x, z), 1,
             "The gradient of leaf (z) is zero. It is cut at where (v₂): its rule [not v₁]·v̄₂ gives 0 for the "
             "adjoint v̄₂ = 1, v₁ = true.");
}

static void detached_and_underivable_paths_are_named(void **state) {
    (void)state;
    cot_var x = cot_scalar(t, 1.5), e = (cot_exp)(x), d = cot_detach(e);
    EXPLAINS(cot_mul(d, cot_number(2)), 1,
             "The gradient of leaf (x₁) is zero. It is cut at detach (v₂), through which no gradient flows.");
    EXPLAINS((cot_floor)(x), 1, "The gradient of leaf (x₁) is zero. It is cut at floor (v₄), which has no derivative.");
    cot_no_grad_open(t);
    cot_var quiet = (cot_sin)(x);
    cot_no_grad_close(t);
    EXPLAINS(quiet, 1,
             "The gradient of leaf (x₁) is zero. It is cut at sin (v₅), which was recorded without gradients.");
    EXPLAINS(cot_constant(t, 3), 1, "The result, constant (3), depends on no leaf, so there is no gradient.");
}

/* A leaf with elements that are never used, and one that has none. */
static void what_has_no_elements_is_named(void **state) {
    (void)state;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(0), NULL), y = cot_scalar(t, 2);
    EXPLAINS(cot_sum(x, COT_ALL), 1,
             "The result, sum (v₁), depends on leaves without elements alone, so their gradients have none.");
    EXPLAINS(cot_sum(cot_mul(x, y), COT_ALL), 1,
             "The gradient of leaf (x₂) is zero: it is used for mul (v₃), which has no elements.");
}

static void cancellation_is_named(void **state) {
    (void)state;
    cot_var x = cot_scalar(t, 1), e = (cot_exp)(x);
    EXPLAINS(cot_sub(x, x), 1, "The gradient of leaf (x₁) is zero: what its uses contribute cancels.");
    EXPLAINS(cot_sub(e, e), 1,
             "The gradient of leaf (x₁) is zero. It is cut at exp (v₁): what its uses contribute cancels.");
}

static void several_findings_are_paragraphs(void **state) {
    (void)state;
    cot_var a = cot_scalar(t, 0), b = cot_scalar(t, -1), root = (cot_sqrt)(a), flat = (cot_relu)(b);
    EXPLAINS(cot_add(root, flat), 2,
             "The gradient of leaf (x₁) is inf. It became so at sqrt (v₁): its rule v̄₁/(2·v₁) gives inf for the "
             "adjoint v̄₁ = 1, v₁ = 0.\n\n"
             "The gradient of leaf (x₂) is zero. It is cut at relu (v₂): its rule [x₂ > 0]·v̄₂ gives 0 for the "
             "adjoint v̄₂ = 1, x₂ = -1.");
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void whatever_is_not_a_value_is_said_to_be_none(void **state) {
    (void)state;
    EXPLAINS(cot_number(2), 0, "The result is not a value on a tape: it is a plain number.");
    const char *on_no_tape = "The result is not a value on a tape: it was never set, or no operand of its operation "
                             "was on a tape, where the error would stand.";
    EXPLAINS((cot_var){0}, 0, on_no_tape);
    EXPLAINS((cot_einsum)("ij", 0, NULL), 0, on_no_tape);
    EXPLAINS((cot_stack)(0, NULL, 0), 0, on_no_tape);
    cot_mark m = cot_tape_mark(t);
    cot_var  gone = cot_scalar(t, 1);
    cot_tape_rewind(t, m);
    EXPLAINS(gone, 0, "The result is not a value on a tape: it is invalid, or was forgotten by a rewind.");
    cot_var y = (cot_log)(cot_scalar(t, -1));
    char    small[10];
    assert_int_equal(cot_explain(y, small, sizeof small), 1);
    assert_string_equal(small, "The resul");
    assert_int_equal(cot_explain(y, NULL, 0), 1);
}

static void deep_tapes_are_explained_without_recursion(void **state) {
    (void)state;
    cot_var x = cot_scalar(t, 1), y = x;
    for (int i = 0; i < (test_small() ? 20000 : 300000); i++) y = cot_add(y, cot_number(1));
    EXPLAINS(y, 0, "The result is finite, and the gradient of its leaf is finite and not zero.");
    assert_int_equal(cot_explain((cot_mul)(y, (cot_log)(cot_scalar(t, -1))), out, sizeof out), 1);
}

static void failing_allocations_are_said_and_leave_the_tape_alone(void **state) {
    (void)state;
    int       failures = 0;
    counting  c = {0};
    cot_tape *own = counted_tape(&c, false);
    double    a[3] = {1, 0, 4};
    cot_var   x = cot_tensor(own, COT_F64, COT_SHAPE(3), a), y = cot_sum((cot_sqrt)(x), COT_ALL),
            bad = cot_sum((cot_log)(x), COT_ALL);
    for (int n = 0;; n++) {
        /* otherwise the tape would use memory that it had kept */
        cot_tape_trim(own);
        let_succeed(&c, n);
        int found = cot_explain(y, out, sizeof out);
        let_succeed(&c, -1);
        assert_int_equal(cot_tape_status(own), COT_OK);
        assert_int_equal(cot_tape_check(own, NULL, 0), COT_OK);
        if (found == 1) break;
        assert_int_equal(found, -1);
        assert_true(strncmp(out, "There is not enough memory", 26) == 0);
        failures++;
    }
    assert_true(failures > 5);
    cot_tape_trim(own);
    let_succeed(&c, 0);
    assert_int_equal(cot_explain(bad, out, sizeof out), -1);
    assert_string_equal(out, "There is not enough memory to explain the result: a few bytes for each of 5 operations.");
    let_succeed(&c, -1);
    cot_tape_destroy(own);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_nan_is_traced_to_the_operation_that_made_it),
        TEST(elements_are_named),
        TEST(a_branch_that_was_not_taken_is_not_blamed),
        TEST(a_value_that_was_given_is_named),
        TEST(structural_operations_are_blamed_with_their_operands),
        TEST(long_chains_are_shortened_in_the_middle),
        TEST(the_source_line_is_told_when_known),
        TEST(nothing_is_found_where_nothing_is_wrong),
        TEST(an_infinite_gradient_is_traced_to_its_rule),
        TEST(gradients_that_overflow_are_found),
        TEST(a_dead_relu_is_named),
        TEST(saturation_and_products_with_zero_are_named),
        TEST(the_other_branch_is_named),
        TEST(detached_and_underivable_paths_are_named),
        TEST(what_has_no_elements_is_named), TEST(cancellation_is_named),
        TEST(several_findings_are_paragraphs),
        TEST(whatever_is_not_a_value_is_said_to_be_none),
        TEST(deep_tapes_are_explained_without_recursion),
        TEST(failing_allocations_are_said_and_leave_the_tape_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
