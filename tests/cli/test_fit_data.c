/* Tables of numbers in a text: the many forms of CSV, NIST's files, and damaged texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/data_file.h"
#include "problem/uniform.h"

static cot__data_table table;

/* Parses a text of n bytes, which may hold zeros. */
static bool parse_n(const char *text, size_t n, failure *f) {
    char *copy = malloc(n + 1); /* exactly: a byte read behind it is seen by AddressSanitizer */
    assert_non_null(copy);
    memcpy(copy, text, n);
    copy[n] = 0;
    *f = (failure){0};
    cot__data_table_free(&table);
    cot__trouble trouble = {0};
    cot__data_table_parse(&table, NULL, "t.csv", copy, n, &trouble);
    return failure_of_trouble(f, &trouble);
}

static void parses(const char *text, int columns, int64_t rows) {
    failure f;
    if (!parse_n(text, strlen(text), &f)) print_error("%s: %s\n", text, f.message);
    assert_int_equal(f.status, 0);
    assert_int_equal(table.columns, columns);
    assert_int_equal(table.rows, rows);
}

static void column_is(int column, const double *expected) {
    double  out[16];
    failure f = {0};
    if (!table_column(&table, column, "c", out, &f)) print_error("%s\n", f.message);
    assert_int_equal(f.status, 0);
    for (int64_t i = 0; i < table.rows; i++) assert_true(out[i] == expected[i]);
}

#define COLUMN(column, ...) column_is(column, (double[]){__VA_ARGS__})

static void separators_are_found(void **state) {
    (void)state;
    static const char *const forms[] = {"1,2\n3,4\n",          "1;2\n3;4\n",           "1\t2\n3\t4\n",
                                        "1 2\n3 4\n",          "  1   2  \n3 4",       " 1 , 2 \r\n3,4\r\n",
                                        "1,2\r3,4\r",          "\n\n1,2\n\n\n3,4\n\n", "# a, b\n1,2\n3,4\n",
                                        "1,2 # one\n3,4\t# x", "\"1\",\"2\"\n3,4",     "\357\273\2771,2\n3,4",
                                        "1,2\n  # 9,9,9\n3,4"};
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        parses(forms[k], 2, 2);
        assert_null(table.names);
        COLUMN(0, 1, 3);
        COLUMN(1, 2, 4);
    }
    parses("1 2 3\n4 5 6", 3, 2);
    COLUMN(2, 3, 6);
    parses("7", 1, 1);
    parses("", 0, 0);
    parses("# nothing\n\n", 0, 0);
    parses("\xEF\xBB\xBF", 0, 0);
    parses("a,b\n", 2, 0);
    parses("1\t\t3\n4\t5\t6", 3, 2); /* an empty cell is a cell */
    parses("1,2,\n3,4,\n", 3, 2);
}

static void numbers_are_read_as_programs_write_them(void **state) {
    (void)state;
    parses("1.5D+02 .5E0 -2d-1\n+3 4. 1e-320", 3, 2);
    COLUMN(0, 150, 3);
    COLUMN(1, 0.5, 4);
    COLUMN(2, -0.2, 1e-320);
    parses("1,5;2\n-3,25;4,0e1", 2, 2); /* a decimal comma, where commas separate nothing */
    COLUMN(0, 1.5, -3.25);
    COLUMN(1, 2, 40);
    parses("x\ty\n1,5\t2", 2, 1);
    COLUMN(0, 1.5);
}

static void names_are_those_of_the_first_line(void **state) {
    (void)state;
    parses("y,x\n1,2\n", 2, 1);
    assert_string_equal(table.names[0], "y");
    assert_int_equal(cot__data_table_find(&table, "x"), 1);
    assert_int_equal(cot__data_table_find(&table, "z"), COT__COLUMN_NONE);
    parses("\xEF\xBB\xBF\"Time, \"\"s\"\"\" ; \"y\"\r\n1;2\r\n", 2, 1);
    assert_string_equal(table.names[0], "Time, \"s\"");
    assert_string_equal(table.names[1], "y");
    parses("# made by hand\nname y x1\nfirst 1 2\n\"the second\" 3 4", 3, 2);
    assert_int_equal(cot__data_table_find(&table, "name"), 0);
    COLUMN(1, 1, 3);
    COLUMN(2, 2, 4);
    parses("x,x,y\n1,2,3", 3, 1);
    assert_int_equal(cot__data_table_find(&table, "x"), COT__COLUMN_TWICE);
    assert_int_equal(cot__data_table_find(&table, "y"), 2);
    parses("nan,1\n2,3", 2, 2); /* not names */
    assert_null(table.names);
    parses("NA,1\n2,3", 2, 2);
    assert_null(table.names);
    /* a # in a word or alone between commas is none of a comment */
    parses("größe,#,y\n1,2,3", 3, 1);
    assert_string_equal(table.names[1], "#");
}

static void refused(const char *text, size_t n, const char *message) {
    failure f;
    assert_false(parse_n(text, n, &f));
    assert_string_equal(f.message, message);
    assert_int_equal(f.status, EXIT_RUN);
    assert_string_equal(f.code, "file");
}

static void cell_refused(const char *text, int status, const char *message) {
    double  out[16];
    failure f;
    assert_true(parse_n(text, strlen(text), &f));
    bool fine = true;
    for (int c = 0; c < table.columns && fine; c++) fine = table_column(&table, c, c == 0 ? "y" : "x", out, &f);
    assert_false(fine);
    assert_string_equal(f.message, message);
    assert_int_equal(f.status, status);
}

static void what_is_wrong_is_said_with_its_place(void **state) {
    (void)state;
#define REFUSED(text, message) refused(text, sizeof text - 1, message)
    REFUSED(
        "1,2\n\n3,4,5\n",
        "line 3 of t.csv has 3 cells, and line 1 has 2 (cells stand between commas); a # before a line leaves it out");
    REFUSED(
        "y,x\n1\n",
        "line 2 of t.csv has 1 cell, and line 1 has 2 (cells stand between commas); a # before a line leaves it out");
    REFUSED("1,\"2\n3,4", "line 1 of t.csv ends inside quotes");
    REFUSED("1,\"2\"3\n", "line 1 of t.csv goes on behind closed quotes");
    REFUSED("1,2\n3,\0004\n", "line 2 of t.csv has a byte 0: this is no text in UTF-8; save it as UTF-8, or as CSV");
    REFUSED("NIST/ITL StRD\nnothing", "t.csv begins like a NIST data set, but no line 'Data (lines A to B)' follows");
    REFUSED("NIST/ITL StRD\nData (lines 3 to 9)\n1 2\n",
            "t.csv says that its data are in lines 3 to 9, and it has 3 lines");
    REFUSED("NIST/ITL StRD\nData (lines 2 to 3)\n1 2\n",
            "t.csv says that its data are in lines 2 to 3, and it has 3 lines");
    REFUSED("NIST/ITL StRD\nData (lines 99999999999999999999 to 3)\n1 2\n",
            "t.csv begins like a NIST data set, but no line 'Data (lines A to B)' follows");
    cell_refused(
        "1,2\n\n3,nan\n", 1,
        "row 2 (line 3 of t.csv), column x: nan; a fit needs finite numbers, and a # before the line leaves it out");
    cell_refused(
        "y,x\n-inf,2\n", 1,
        "row 1 (line 2 of t.csv), column y: -inf; a fit needs finite numbers, and a # before the line leaves it out");
    cell_refused(
        "1e999,2\n", 1,
        "row 1 (line 1 of t.csv), column y: 1e999; a fit needs finite numbers, and a # before the line leaves it out");
    cell_refused("1,2\n,3\n", 1,
                 "row 2 (line 2 of t.csv), column y: the value is missing; a fit needs finite numbers, and a # before "
                 "the line leaves it out");
    cell_refused("1,2\n1,NA\n", 1,
                 "row 2 (line 2 of t.csv), column x: the value is missing; a fit needs finite numbers, and a # before "
                 "the line leaves it out");
    cell_refused("1,2\n1,two\n", 3,
                 "row 2 (line 2 of t.csv), column x: 'two' is not a number; a # before the line leaves it out");
    cell_refused("y,date\n1,2024-05-01\n2,2024-05-02\n", 3,
                 "row 1 (line 2 of t.csv), column date: '2024-05-01' is not a number, nor is any cell below its name; "
                 "leave the column out, or make it numbers");
    cell_refused("1,2\n1 2,3\n", 3,
                 "row 2 (line 2 of t.csv), column y: '1 2' is not a number; a # before the line leaves it out");
    char *wide = calloc(1, 30001);
    assert_non_null(wide);
    for (int k = 0; k < 15000; k++) memcpy(wide + 2 * k, "1,", 2);
    refused(wide, 30000, "line 1 of t.csv has more than 10000 cells");
    free(wide);
}

static const char nist[] =
    "NIST/ITL StRD\r\nDataset Name: made up\r\n\r\nFile Format:   ASCII\r\n"
    "               Starting Values   (lines 3 to 4)\r\n               Data              (lines 9 to 11)\r\n"
    "anything 1, 2; 3\r\nData:   y               x\r\n      10.07E0      77.6E0\r\n 14.73 114.9\r\n  1.794E+01 141.1 ";

static void nist_files_say_where_their_data_are(void **state) {
    (void)state;
    parses(nist, 2, 3);
    COLUMN(0, 10.07, 14.73, 17.94);
    COLUMN(1, 77.6, 114.9, 141.1);
    assert_int_equal(table.lines[0], 9);
}

/* Cut at every byte, and with bytes changed at random: a table or an error. */
static void try_text(const char *text, size_t n) {
    failure f;
    double *out;
    bool    fine = parse_n(text, n, &f);
    assert_true(fine == (f.status == EXIT_FINE));
    assert_true(fine == (f.message[0] == 0));
    if (!fine) return;
    assert_true(table.rows * table.columns <= (int64_t)n + 1);
    out = malloc(((size_t)table.rows + 1) * sizeof *out);
    assert_non_null(out);
    for (int c = 0; c < table.columns; c++) {
        f = (failure){0};
        assert_true(table_column(&table, c, "c", out, &f) == (f.status == EXIT_FINE));
        if (table.names) cot__data_table_find(&table, table.names[c]);
    }
    free(out);
}

static void damaged_texts_never_crash(void **state) {
    (void)state;
    static const char *const texts[] = {
        nist, "\xEF\xBB\xBF\"a \"\"b\"\"\";y;x # c\r\n1,5;2;3\r\n# no\r\n\"4\";5;\"6\"\n7;nan;-\n",
        "y x1 x2\n1 2 3\n 4\t5  6 #\n\n7 8 9"};
    static const char        bytes[] = "\0\"#,; \t\r\n.-+e19x\xEF\xBB\xBF\xFF";
    char                     copy[1024];
    uint64_t                 at = 0;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        size_t n = strlen(texts[k]);
        for (size_t cut = 0; cut <= n; cut++) try_text(texts[k], cut);
        for (int round = 0; round < 5000; round++) {
            memcpy(copy, texts[k], n);
            for (int change = 0; change < 1 + round % 4; change++) {
                double where = uniform_at(9, at++, 0.5) + 0.5, what = uniform_at(9, at++, 0.5) + 0.5;
                copy[(size_t)(where * (double)n) % n] = bytes[(size_t)(what * sizeof bytes) % sizeof bytes];
            }
            try_text(copy, n);
        }
    }
}

static int forget(void **state) {
    (void)state;
    cot__data_table_free(&table);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separators_are_found),
        cmocka_unit_test(numbers_are_read_as_programs_write_them),
        cmocka_unit_test(names_are_those_of_the_first_line),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(nist_files_say_where_their_data_are),
        cmocka_unit_test(damaged_texts_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, forget);
}
