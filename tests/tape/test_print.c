/* A printed tape and a printed sweep read as documented, and printing survives whatever state a
 * tape is in. */
#define COT_SOURCE_LINES
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rules/elementwise_ids.h"
#include "ops/elementwise/elementwise.h"
#include "support/see.h"

static const char *printed(const cot_tape *t) {
    FILE *f = tmpfile();
    cot_tape_print(t, f);
    return text_of(f);
}

static const char *printed_sweep(cot_var y) {
    FILE *f = tmpfile();
    cot_tape_print_sweep(y, f);
    return text_of(f);
}

/* Only cot_sqrt keeps its line, for the one test that wants it. */
#undef cot_scalar
#undef cot_tensor
#undef cot_constant
#undef cot_data
#undef cot_mul
#undef cot_sin
#undef cot_add
#undef cot_exp
#undef cot_sum

static cot_tape *textbook(cot_var *y) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x1 = cot_name(cot_scalar(t, 0.785398163397448), "x1"), x2 = cot_scalar(t, 3);
    cot_var   product = cot_mul(x1, x2), sine = cot_sin(x1);
    *y = cot_add(product, sine);
    return t;
}

static void a_tape_is_a_list_of_lets(void **state) {
    (void)state;
    cot_var   y;
    cot_tape *t = textbook(&y);
    cot_mul(y, cot_number(2));
    assert_string_equal(printed(t), "x1 = leaf               f64           0.785398\n"
                                    "x₁ = leaf               f64           3\n"
                                    "v₁ = mul x1 x₁          f64           2.35619\n"
                                    "v₂ = sin x1             f64           0.707107\n"
                                    "v₃ = add v₁ v₂          f64           3.0633\n"
                                    "v₄ = mul v₃ 2           f64           6.1266\n");
    cot_tape_destroy(t);
}

static void tensors_show_few_elements_or_their_range(void **state) {
    (void)state;
    float     a[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    uint8_t   flags[3] = {1, 0, 1};
    int32_t   whole[2] = {-7, 2000000000};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   m = cot_tensor(t, COT_F32, COT_SHAPE(3, 4), a);
    cot_sum(m, COT_AXES(0));
    cot_sum(m, COT_KEEP(0, 1));
    (cot_slice)(m, 1, 0, COT_END, 2);
    (cot_index)(m, 0, 2);
    (cot_transpose)(m);
    cot_data(t, COT_BOOL, COT_SHAPE(3), flags);
    cot_data(t, COT_I32, COT_SHAPE(2), whole);
    cot_data(t, COT_F64, COT_SHAPE(0, 3), NULL);
    cot_data(t, COT_F64, COT_SHAPE(20), NULL);
    (cot_stack)(2, (cot_var[]){m, m}, 0);
    a[3] = NAN;
    cot_data(t, COT_F32, COT_SHAPE(2, 6), a);
    (cot_pad)(cot_data(t, COT_I32, COT_SHAPE(1), whole), COT_SHAPE(1), COT_SHAPE(0), 5);
    assert_string_equal(printed(t),
                        "x₁ = leaf               f32(3,4)      1 … 12\n"
                        "v₁ = sum(x₁, axes=0)    f32(4,)       [15 18 21 24]\n"
                        "v₂ = sum(x₁, axes=0,1, keepdims)  f32(1,1)  [[78]]\n"
                        "v₃ = slice(x₁, axis=1, first=0, length=2, step=2)  f32(3,2)  [[1 3] [5 7] [9 11]]\n"
                        "v₄ = slice(x₁, axis=0, first=2, length=1, drop)  f32(4,)  [9 10 11 12]\n"
                        "v₅ = permute(x₁, order=1,0)  f32(4,3)  1 … 12\n"
                        "c₁ = constant           bool(3,)      [true false true]\n"
                        "c₂ = constant           i32(2,)       [-7 2000000000]\n"
                        "c₃ = constant           f64(0,3)      []\n"
                        "c₄ = constant           f64(20,)      0 everywhere\n"
                        "v₆ = concat(x₁, x₁, axis=0, new)  f32(2,3,4)  1 … 12\n"
                        "c₅ = constant           f32(2,6)      1 … 12, 1 not finite\n"
                        "c₆ = constant           i32(1,)       [-7]\n"
                        "v₇ = pad(c₆, border=1,0, value=5)  i32(2,)  [5 -7]\n");
    cot_tape_destroy(t);
}

static void a_sweep_shows_adjoints_rules_and_contributions(void **state) {
    (void)state;
    cot_var   y;
    cot_tape *t = textbook(&y);
    assert_string_equal(printed_sweep(y),
                        "x1 = leaf               f64           0.785398\n"
                        "x₁ = leaf               f64           3\n"
                        "v₁ = mul x1 x₁          f64           2.35619\n"
                        "v₂ = sin x1             f64           0.707107\n"
                        "v₃ = add v₁ v₂          f64           3.0633\n"
                        "\n"
                        "reverse sweep from v₃\n"
                        "v₃ = add v₁ v₂          f64           3.0633      adjoint 1\n"
                        "    v̄₁ += v̄₃ = 1\n"
                        "    v̄₂ += v̄₃ = 1\n"
                        "v₂ = sin x1             f64           0.707107    adjoint 1\n"
                        "    x̄1 += v̄₂·cos(x1) = 0.707107\n"
                        "v₁ = mul x1 x₁          f64           2.35619     adjoint 1\n"
                        "    x̄1 += v̄₁·x₁ = 3\n"
                        "    x̄₁ += v̄₁·x1 = 0.785398\n"
                        "x₁ = leaf               f64           3           adjoint 0.785398\n"
                        "x1 = leaf               f64           0.785398    adjoint 3.70711\n");
    assert_true(cot_grad_value((cot_var){t, y.id - 4}) == 0); /* leaf gradients are not touched */
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    cot_tape_destroy(t);
}

static void a_sweep_over_tensors_names_structural_rules(void **state) {
    (void)state;
    double    a[2] = {1, -2};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), a), s = cot_sum((cot_relu)(x), COT_ALL);
    const char *text = strstr(printed_sweep(s), "reverse");
    assert_string_equal(text, "reverse sweep from v₂\n"
                              "v₂ = sum(v₁, axes=0)    f64           1           adjoint 1\n"
                              "    x̄ += z̄ broadcast\n"
                              "v₁ = relu x₁            f64(2,)       [1 0]       adjoint [1 1]\n"
                              "    x̄₁ += [x₁ > 0]·v̄₁ = [1 0]\n"
                              "x₁ = leaf               f64(2,)       [1 -2]      adjoint [1 0]\n");
    cot_tape_destroy(t);
}

static void the_source_line_stands_at_the_end(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2);
    char      want[200];
    cot_name(cot_sqrt(x), "root"); const int line = __LINE__;
    snprintf(want, sizeof want,
             "x₁ = leaf               f64           2           test_print.c:%d\n"
             "root = sqrt x₁          f64           1.41421     test_print.c:%d\n",
             line, line);
    assert_string_equal(printed(t), want);
    cot_tape_destroy(t);
}

static void any_state_of_a_tape_can_be_printed(void **state) {
    (void)state;
    cot_var   y;
    cot_tape *t = textbook(&y);
    assert_string_equal(printed(NULL), "error: the tape is NULL: cot_tape_create found no memory\n");
    assert_string_equal(printed_sweep((cot_var){0}), "error: the tape is NULL: cot_tape_create found no memory\n");
    assert_string_equal(printed_sweep(cot_number(1)), "error: y is a plain number, not a value on a tape\n");
    cot_tape_print(t, NULL);
    cot_var none = {t, UINT64_MAX};
    assert_non_null(strstr(printed_sweep(none), "error: y is invalid or was forgotten by a rewind\n"));
    assert_non_null(strstr(printed_sweep(cot_constant(t, 1)), "1 depends on no leaf: there is nothing to sweep\n"));
    cot_mul(y, none);
    assert_non_null(strstr(printed(t), "\nerror: [mul] the right operand is invalid"));
    assert_non_null(strstr(printed_sweep(y), "\nerror: [mul] the right operand is invalid"));
    cot_tape_destroy(t);
}

static void overwritten_values_say_so(void **state) {
    (void)state;
    double    a[2] = {1, 2};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), a), e = cot_exp(x);
    (cot_add_into)(&e, x);
    assert_non_null(strstr(printed(t), "v₁ = exp x₁             f64(2,)       (overwritten)\n"));
    assert_non_null(strstr(printed_sweep(e),
                           "error: [sweep] exp (v₁) needs the value of exp (v₁), which was overwritten by add (v₂); "
                           "compute before the write, or write to a copy (cot_copy)\n"));
    assert_int_equal(cot_tape_status(t), COT_OK); /* looking is not an error of the tape */
    cot_tape_destroy(t);
}

static void long_tapes_print_whole(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1);
    for (int i = 1; i < 100000; i++) x = cot_add(x, cot_number(1));
    FILE *f = tmpfile();
    cot_tape_print_sweep(x, f);
    rewind(f);
    int lines = 0;
    for (int c; (c = getc(f)) != EOF;) lines += c == '\n';
    fclose(f);
    assert_int_equal(lines, 100000 + 2 + 99999 * 2 + 1);
    cot_tape_destroy(t);
}

static void formulas_have_the_parentheses_they_need(void **state) {
    (void)state;
    char buf[COT__FORMULA_TEXT];
#define PARTIAL(op, k) cot__formula(OP_##op, cot__elementwise_table[OP_##op].partial[k], buf, sizeof buf)
    assert_string_equal(PARTIAL(sqrt, 0), "g/(2·z)");
    assert_string_equal(PARTIAL(div, 1), "-g·z/y");
    assert_string_equal(PARTIAL(relu, 0), "[x > 0]·g");
    assert_string_equal(PARTIAL(atanh, 0), "g/((1 - x)·(1 + x))");
    assert_string_equal(PARTIAL(hypot, 0), "g·(x/z)");
    assert_string_equal(PARTIAL(pow, 0), "g·y·x^(y - 1)");
    assert_string_equal(PARTIAL(erf, 0), "g·1.1283791670955126·exp(-x²)");
    assert_string_equal(PARTIAL(maximum, 0), "[x > y]·g + [x = y]·g·0.5");
    assert_string_equal(PARTIAL(hard_sigmoid, 0), "[x > -3 and x < 3]·(g/6)");
    assert_string_equal(PARTIAL(lerp, 0), "g - g·w");
    assert_string_equal(PARTIAL(floor, 0), "");
    assert_string_equal(cot__formula(OP_lerp, cot__elementwise_table[OP_lerp].value, buf, sizeof buf),
                        "w < 0.5 ? x + w·(y - x) : y - (1 - w)·(y - x)");
    /* by y, the first operand */
    assert_string_equal(PARTIAL(atan2, 0), "g·(x/hypot(y, x))/hypot(y, x)");
    assert_string_equal(PARTIAL(clamp, 1), "[x ≤ lo and lo < hi]·g");
    assert_string_equal(PARTIAL(where, 2), "[not c]·g");
    assert_string_equal(PARTIAL(polygamma, 1), "g·polygamma(n + 1, x)");
    char small[4]; /* never half a character */
    assert_string_equal(cot__formula(OP_square, cot__elementwise_table[OP_square].value, small, 3), "x");
    assert_string_equal(cot__formula(OP_square, cot__elementwise_table[OP_square].value, small, 4), "x²");
}

/* The newest name of a value wins, whether values were named in order or not. */
static void names_are_found_in_any_order(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[5];
    char      text[64];
    for (int i = 0; i < 5; i++) {
        snprintf(text, sizeof text, "x%d", i);
        x[i] = cot_name(cot_scalar(t, i), text);
    }
    cot_scalar(t, 9);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5; i++) {
            snprintf(text, sizeof text, "x%d", (int)i);
            assert_string_equal(cot__name_of(t, i), round && i == 1 ? "again" : text);
        }
        assert_null(cot__name_of(t, 5));
        cot_name(x[1], "again");
    }
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tape_is_a_list_of_lets),
        cmocka_unit_test(tensors_show_few_elements_or_their_range),
        cmocka_unit_test(a_sweep_shows_adjoints_rules_and_contributions),
        cmocka_unit_test(a_sweep_over_tensors_names_structural_rules),
        cmocka_unit_test(the_source_line_stands_at_the_end),
        cmocka_unit_test(any_state_of_a_tape_can_be_printed),
        cmocka_unit_test(overwritten_values_say_so),
        cmocka_unit_test(long_tapes_print_whole),
        cmocka_unit_test(formulas_have_the_parentheses_they_need),
        cmocka_unit_test(names_are_found_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
