/* Every function of the library can be called in an expression: a loop over the table, and a sample
 * for each that is not elementwise. */
#include "samples/expr_samples.h"

static void every_function_can_be_called(void **state) {
    (void)state;
    assert_true(cot__callee_count > 200);
    for (int i = 0; i < cot__callee_count; i++) {
        char            text[1000];
        cot__expr_error error;
        cot_tape       *t = cot_tape_create(NULL);
        cot__expr_input x = {"x", cot_scalar(t, 0.5), NULL};
        call_sample(&cot__callees[i], text, sizeof text);
        cot__expr *e = cot__expr_parse(text, strlen(text), &error);
        cot_var    z = e ? cot__expr_run(e, t, 1, &x, &error, NULL, NULL) : COT_NONE;
        if (!cot_is_valid(z)) fail_msg("%s: column %d: %s", text, error.column, error.message);
        assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
        cot__expr_free(e);
        cot_tape_destroy(t);
    }
}

/* The order in which the table is searched, and that all of it is found. */
static void every_function_is_found_by_its_name(void **state) {
    (void)state;
    for (int i = 0; i < cot__callee_count; i++) {
        const cot__callee *f = &cot__callees[i];
        assert_ptr_equal(cot__find_callee(f->name, strlen(f->name)), f);
        assert_string_equal(cot__expr_function_name(i), f->name);
    }
    assert_null(cot__find_callee("su", 2));
    assert_null(cot__find_callee("summ", 4));
    assert_null(cot__expr_function_name(cot__callee_count));
}

static void signatures_are_those_of_numpy(void **state) {
    (void)state;
    char buf[400];
    assert_string_equal(cot__expr_signature("sum", buf, sizeof buf), "sum(x, axis=None, keepdims=False)");
    assert_string_equal(cot__expr_signature("zeros", buf, sizeof buf), "zeros(shape, dtype=float64)");
    assert_string_equal(cot__expr_signature("einsum", buf, sizeof buf), "einsum(subscripts, *xs)");
    assert_string_equal(cot__expr_signature("var", buf, sizeof buf), "var(x, axis=None, keepdims=False)");
    assert_string_equal(cot__expr_signature("where", buf, sizeof buf), "where(condition, x, y)");
    assert_string_equal(cot__expr_signature("arctan2", buf, sizeof buf), "arctan2(y, x)");
    assert_string_equal(cot__expr_signature("polygamma", buf, sizeof buf), "polygamma(n, x)");
    assert_string_equal(cot__expr_signature("clip", buf, sizeof buf), "clip(x, min, max)");
    assert_null(cot__expr_signature("nothing", buf, sizeof buf));
}

/* The argument reaches the C parameter it is named after: results against direct calls. */
static void arguments_reach_their_parameters(void **state) {
    (void)state;
    static const struct { const char *text; double want; } cases[] = {
        {"sum(attention(q, q, q, causal=True) - attention(q, q, q, mask=tril(ones([3, 3])) > 0))", 0},
        {"sum(layer_norm([1., 3.], eps=3, axis=0)[1:])", 0.5},
        {"sum(compress_to(array([1., 2., 3.]), [True, False, True], 4, fill=10))", 24},
        {"sum(triangular_solve(array([[2., 9.], [1., 4.]]), [2., 8.])) - (1 + 1.75)", 0},
        {"sum(triangular_solve(array([[2., 1.], [9., 4.]]), [4., 8.], upper=True)) - (1 + 2)", 0},
        {"sum(triangular_solve(array([[2., 9.], [1., 4.]]), [2., 8.], unit_diagonal=True)) - (2 + 6)", 0},
        {"sum(triangular_solve(array([[2., 9.], [1., 4.]]), [[3., 8.]], right=True)) - (0.5 + 2)", 0},
        {"sum(pad(array([1.]), (1, 2), constant_values=5))", 16},
        {"sum(uniform(1, [9], minval=3, maxval=3.000001) > 2.9)", 9},
        {"sum(cumsum(array([1, 2, 3]), reverse=True) == array([6, 5, 3]))", 3},
        {"sum(avg_pool1d(array([[2., 4.]]), 2, padding=1))", 1 + 2},
        {"sum(avg_pool1d(array([[2., 4.]]), 2, padding=1, exclude_padding=True))", 2 + 4},
        {"sum(conv1d(array([[[1., 2., 3., 4.]]]), array([[[1., 10.]]]), stride=2, padding_after=2))", 21 + 43},
        {"sum(conv1d(array([[[1., 2., 3., 4.]]]), array([[[1., 10.]]]), dilation=3))", 41},
        {"dropout(ones([1]), 0.0, 1)[0]", 1},
        {"sum(searchsorted(array([1., 2., 2., 3.]), array([2., 2.]), right=True))", 6},
    };
    for (int i = 0; i < COUNTOF(cases); i++) {
        char            text[1000];
        cot__expr_error error;
        cot_tape       *t = cot_tape_create(NULL);
        cot__expr_input x = {"x", cot_scalar(t, 0.5), NULL};
        snprintf(text, sizeof text, "%s%s", prelude, cases[i].text);
        cot__expr *e = cot__expr_parse(text, strlen(text), &error);
        cot_var    z = e ? cot__expr_run(e, t, 1, &x, &error, NULL, NULL) : COT_NONE;
        if (!cot_is_valid(z)) fail_msg("%s: column %d: %s", text, error.column, error.message);
        if (!(fabs(cot_value(z) - cases[i].want) < 1e-14))
            fail_msg("%s is %.17g, not %g", cases[i].text, cot_value(z), cases[i].want);
        cot__expr_free(e);
        cot_tape_destroy(t);
    }
}

/* Each parameter of each function gets a value that it was not made for: the result is a sentence
 * or a value, never a crash, and nothing leaks. */
static void odd_arguments_are_refused_or_computed(void **state) {
    (void)state;
    static const char *const odd[] = {"x",
                                      "A",
                                      "v",
                                      "None",
                                      "0",
                                      "-1",
                                      "2",
                                      "1.5",
                                      "nan",
                                      "inf",
                                      "[]",
                                      "[[]]",
                                      "[0, 1]",
                                      "[[1, 2], [3, 4]]",
                                      "[x, v]",
                                      "'ij->ji'",
                                      "''",
                                      "f32",
                                      "bool",
                                      "True",
                                      "9223372036854775807",
                                      "-9223372036854775807",
                                      "1e300",
                                      "m",
                                      "q",
                                      "zeros([0, 3])",
                                      "[1, 1, 1, 1]",
                                      "(3, -1)",
                                      "S * nan",
                                      "S * inf",
                                      "i",
                                      "[[[[1.]]]]",
                                      "1000000",
                                      "cast(A, f16)"};
    uint64_t                 seed = 1;
    const char              *quick = getenv("COT_TEST_SMALL");
    for (int i = 0; i < cot__callee_count; i++) {
        for (int round = 0; round < (quick ? 20 : 150); round++) {
            const cot__callee *f = &cot__callees[i];
            char               text[2000];
            int                n = snprintf(text, sizeof text, "%s%s(", prelude, f->name);
            for (int k = 0; k < f->n; k++) {
                seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                /* often a value that fits, so that the other parameters are checked too */
                bool first = k == 0 && (seed >> 50) % 2;
                if (k > 0 && f->parameter[k].fallback && (seed >> 40) % 3 == 0) break;
                n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", k ? ", " : "",
                              first ? "A" : odd[(seed >> 33) % COUNTOF(odd)]);
            }
            snprintf(text + n, sizeof text - (size_t)n, ")");
            counting        c = {.fail_from_size = 1 << 20};
            cot_tape       *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, &c}});
            cot__expr_error error;
            cot__expr_input x = {"x", cot_scalar(t, 0.5), NULL};
            cot__expr      *e = cot__expr_parse(text, strlen(text), &error);
            if (!e) fail_msg("%s: %s", text, error.message);
            cot_var z = cot__expr_run(e, t, 1, &x, &error, NULL, NULL);
            if (!cot_is_valid(z) && (!error.message[0] || error.column < 1 || strstr(error.message, "knows no reason")))
                fail_msg("%s: column %d: %s", text, error.column, error.message);
            cot_tape_clear_error(t);
            if (cot_tape_check(t, NULL, 0) != COT_OK) fail_msg("%s leaves a broken tape", text);
            cot__expr_free(e);
            cot_tape_destroy(t);
            assert_int_equal(c.blocks, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_can_be_called),
        cmocka_unit_test(every_function_is_found_by_its_name),
        cmocka_unit_test(signatures_are_those_of_numpy),
        cmocka_unit_test(arguments_reach_their_parameters),
        cmocka_unit_test(odd_arguments_are_refused_or_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
