/* Expressions that are too large, too deep or short of memory: one clear error, quickly, and
 * nothing leaks. */
/* ctest: timeout=120 */
#include "expr/expr.h"
#include "support/tape_test.h"

#include <time.h>

static char *repeated(const char *piece, size_t times, const char *end, size_t *length) {
    size_t n = strlen(piece);
    char  *text = malloc(n * times + strlen(end) + 1);
    assert_non_null(text);
    for (size_t i = 0; i < times; i++) memcpy(text + i * n, piece, n);
    strcpy(text + n * times, end);
    *length = n * times + strlen(end);
    return text;
}

static void refused(const char *piece, size_t times, const char *end, const char *message) {
    size_t          n;
    char           *text = repeated(piece, times, end, &n);
    cot__expr_error error;
    cot__expr      *e = cot__expr_parse(text, n, &error);
    if (e) fail_msg("%zu times %s is accepted", times, piece);
    assert_string_equal(error.message, message);
    free(text);
}

static cot_var run_one(cot_tape *t, const char *text, size_t n, cot__expr_error *error) {
    cot__expr_input x = {"x", cot_scalar(t, 1), NULL};
    cot__expr      *e = cot__expr_parse(text, n, error);
    cot_var         z = e ? cot__expr_run(e, t, 1, &x, error, NULL, NULL) : COT_NONE;
    cot__expr_free(e);
    return z;
}

/* The value of a text of n pieces, which has no depth however long it is. */
static void accepted(const char *piece, size_t times, const char *end, double value) {
    size_t          n;
    char           *text = repeated(piece, times, end, &n);
    cot__expr_error error = {0};
    cot_tape       *t = cot_tape_create(NULL);
    cot_var         z = run_one(t, text, n, &error);
    if (!cot_is_valid(z)) fail_msg("%zu times %s: %s", times, piece, error.message);
    assert_true(cot_value(z) == value);
    cot_tape_destroy(t);
    free(text);
}

static void ten_megabytes_of_brackets_are_one_error(void **state) {
    (void)state;
    refused("(", 10 << 20, "", "the text has 10485760 bytes; at most 1048576 are read");
    refused("(", 1 << 20, "", "nested more than 200 deep; give parts a name in a statement of their own");
}

static void every_way_to_nest_is_bounded(void **state) {
    (void)state;
    static const char deep[] = "nested more than 200 deep; give parts a name in a statement of their own";
    static const char *const pieces[] = {"(",    "[",      "-",      "+",  "not ", "x**", "x[", "sin(", "1 if x else ",
                                         "x = ", "sum(x=", "x if (", "-(", "x[1:"};
    for (int i = 0; i < (int)(sizeof pieces / sizeof *pieces); i++) refused(pieces[i], 5000, "x", deep);
    accepted("(", 200,
             "x))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))"
             "))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
             1);
}

static void what_does_not_nest_may_be_long(void **state) {
    (void)state;
    accepted("x+", 100000, "x", 100001);
    accepted("x*", 100000, "x", 1);
    accepted("0 or ", 100000, "x", 1);
    accepted("x and ", 100000, "x", 1);
    accepted("1 < ", 100000, "x", 0);
    accepted("x = x + 1; ", 50000, "x", 50001);
    accepted("\n", 500000, "x", 1);
    accepted("# comment\n", 50000, "x", 1);
}

/* Distinct names, long lists: time grows with the text, not with its square. A square would take
 * minutes. */
static void long_texts_take_time_in_proportion(void **state) {
    (void)state;
    char   *text = malloc(COT__EXPR_MAX_BYTES);
    size_t  n = 0;
    clock_t start = clock();
    assert_non_null(text);
    for (int i = 0; n + 40 < COT__EXPR_MAX_BYTES; i++) n += (size_t)sprintf(text + n, "n%d=x;", i);
    n += (size_t)sprintf(text + n, "n0");
    cot_tape       *t = cot_tape_create(NULL);
    cot__expr_error error;
    assert_true(cot_is_valid(run_one(t, text, n, &error)));
    n = (size_t)sprintf(text, "sum([");
    int count = 0;
    for (; n + 40 < COT__EXPR_MAX_BYTES; count++) n += (size_t)sprintf(text + n, "1,");
    n += (size_t)sprintf(text + n, "])");
    cot_var z = run_one(t, text, n, &error);
    assert_int_equal(cot_value_i64(z), count);
    memset(text, 'x', COT__EXPR_MAX_BYTES); /* one name, unknown */
    assert_false(cot_is_valid(run_one(t, text, COT__EXPR_MAX_BYTES, &error)));
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20);
    cot_tape_destroy(t);
    free(text);
}

static void a_shape_too_large_is_an_error_of_the_tape(void **state) {
    (void)state;
    counting        c = {.fail_from_size = 1 << 20};
    cot_tape       *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, &c}});
    cot__expr_error error;
    const char     *text = "2 * zeros([100000, 1000])";
    assert_false(cot_is_valid(run_one(t, text, strlen(text), &error)));
    assert_int_equal(error.status, COT_MEMORY);
    assert_int_equal(error.column, 5);
    cot_tape_destroy(t);
    assert_int_equal(c.blocks, 0);
}

/* Every allocation of parsing and running fails once; all are given back, and the error says so. */
static void each_allocation_may_fail(void **state) {
    (void)state;
    const char *text = "a, b = [x, 2*x], 'text'; q, r = qr([[1., 2.], [3., 4.]]); c = 1 if x < 2 < 3 else 0\n"
                       "sum(a)*c + einsum('ij->', q)*0 + [1, 2, 3][1] + a[::-1][0] + A_long_name_1 + A_long_name_2 + "
                       "A_long_name_3 + concat([a, a])[2]";
    long        at = 0;
    for (bool failed = true; failed;) {
        counting        c = {.fail_at = ++at};
        cot_allocator   al = {counting_alloc, &c};
        cot__expr_error error;
        cot_tape       *t = cot_tape_create(NULL);
        cot__expr_input in[] = {{"x", cot_scalar(t, 1), NULL},
                                {"A_long_name_1", cot_scalar(t, 1), NULL},
                                {"A_long_name_2", cot_scalar(t, 1), NULL},
                                {"A_long_name_3", cot_scalar(t, 1), NULL}};
        cot__expr      *e = cot__expr_parse_with(&al, text, strlen(text), &error);
        cot_var         z = e ? cot__expr_run(e, t, 4, in, &error, NULL, NULL) : COT_NONE;
        failed = c.failed > 0;
        if (failed) {
            assert_false(cot_is_valid(z));
            assert_int_equal(error.status, COT_MEMORY);
            assert_string_equal(error.message, "memory is short");
        } else if (!cot_is_valid(z)) {
            fail_msg("column %d: %s", error.column, error.message);
        }
        cot__expr_free(e);
        cot_tape_destroy(t);
        assert_int_equal(c.blocks, 0);
        assert_false(c.wrong_size);
    }
    assert_true(at > 5);
}

/* The same for the tape's memory: its sentence, and a program that can run again. Memory that the
 * tape can do without (a place for waiting work) is no error; then the value is right. */
static void a_tape_short_of_memory_says_so(void **state) {
    (void)state;
    cot__expr_error error;
    const char     *text = "sum(reshape(arange(100), [10, 10]) @ ones([10, 10]) * x)";
    cot__expr *e = cot__expr_parse(text, strlen(text), &error);
    long       at = 0, said = 0;
    for (bool failed = true; failed;) {
        counting  c = {.fail_at = ++at, .fail_for_good = true};
        cot_tape *t = counted_tape(&c, false);
        cot__expr_input x = {"x", cot_scalar(t, 1), NULL};
        cot_var   z = cot__expr_run(e, t, 1, &x, &error, NULL, NULL);
        failed = c.failed > 0;
        assert_true(failed || cot_is_valid(z));
        if (cot_is_valid(z)) assert_true(cot_value(z) == 49500); /* Σ 0 … 99, each in ten columns */
        else assert_int_equal(error.status, COT_MEMORY), said++;
        cot_tape_destroy(t);
        assert_int_equal(c.blocks, 0);
    }
    /* all but the last, and memory that the tape can do without: four lists of work that waits */
    assert_true(said > 5 && said >= at - 6);
    cot__expr_free(e);
}

static void nothing_given_is_no_crash(void **state) {
    (void)state;
    cot__expr_error error;
    cot_tape       *t = cot_tape_create(NULL);
    assert_null(cot__expr_parse(NULL, 0, &error));
    assert_string_equal(error.message, "expected an expression; the text is empty");
    assert_false(cot_is_valid(cot__expr_run(NULL, t, 0, NULL, &error, NULL, NULL)));
    assert_string_equal(error.message, "no program is given");
    cot__expr *e = cot__expr_parse("1", 1, NULL);
    assert_false(cot_is_valid(cot__expr_run(e, NULL, 0, NULL, &error, NULL, NULL)));
    assert_string_equal(error.message, "memory is short");
    assert_int_equal(error.status, COT_MEMORY);
    cot_add(cot_scalar(t, 1), COT_NONE);
    assert_false(cot_is_valid(cot__expr_run(e, t, 0, NULL, &error, NULL, NULL)));
    assert_string_equal(error.message, cot_tape_message(t));
    cot__expr_free(e);
    cot__expr_free(NULL);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_megabytes_of_brackets_are_one_error),
        cmocka_unit_test(every_way_to_nest_is_bounded),
        cmocka_unit_test(what_does_not_nest_may_be_long),
        cmocka_unit_test(long_texts_take_time_in_proportion),
        cmocka_unit_test(a_shape_too_large_is_an_error_of_the_tape),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(a_tape_short_of_memory_says_so),
        cmocka_unit_test(nothing_given_is_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
