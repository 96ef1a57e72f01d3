/* test_grid.c: paragraphs, and tables: columns as wide as their widest cell, cells that give way,
 * no blanks at the end of a line. */
#include "support/support.h"
#include "trace/lines/grid.h"
#include "trace/trace.h"

#include <string.h>

static char text[4096];

static const char *printed(cot__grid *g) {
    FILE *f = tmpfile();
    assert_true(cot__grid_print(f, g));
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void put(cot__grid *g, const char *const *cells, int n) {
    for (int k = 0; k < n; k++) cot__grid_put(g, NULL, cells[k]);
}
#define PUT(g, ...)                                                                                                    \
    put(g, (const char *const[]){__VA_ARGS__}, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)))

static void columns_are_as_wide_as_their_widest_cell(void **state) {
    (void)state;
    cot__grid g = {.columns = 3, .column = {COT__LEFT, COT__RIGHT, COT__LEFT}};
    PUT(&g, "name", "n", "why", "x̄1", "1000", "", "a long one", "7", "it is");
    cot__grid_put(&g, NULL, "end");
    cot__grid_integer(&g, -42);
    cot__grid_put(&g, NULL, "");
    assert_string_equal(printed(&g), "name           n  why\n"
                                     "x̄1          1000\n"
                                     "a long one     7  it is\n"
                                     "end          -42\n");
}

/* A remark that ends its row makes no column wider. */
static void the_last_cell_uses_the_rest_of_its_line(void **state) {
    (void)state;
    cot__grid g = {.columns = 3, .column = {COT__LEFT, COT__LEFT, COT__LEFT}};
    PUT(&g, "a", "b", "c", "x", "a remark that is long", "");
    assert_string_equal(printed(&g), "a  b  c\nx  a remark that is long\n");
}

static void cells_give_way_where_the_terminal_ends(void **state) {
    (void)state;
    cot__grid g = {.columns = 3, .column = {COT__CUT, COT__WRAP, COT__LEFT}, .width = 32};
    PUT(&g, "a name of eighteen", "one two three four five", "end", "b", "", "c");
    assert_string_equal(printed(&g), "a name of e…  one two three  end\n"
                                     "              four five\n"
                                     "b                            c\n");
    /* a word that is too long is broken between characters */
    g = (cot__grid){.columns = 2, .column = {COT__WRAP, COT__LEFT}, .width = 12};
    PUT(&g, "x̄x̄x̄x̄x̄x̄x̄x̄x̄x̄", "ab");
    assert_string_equal(printed(&g), "x̄x̄x̄x̄x̄x̄x̄x̄  ab\nx̄x̄\n");
}

static void a_newline_in_a_cell_begins_a_line(void **state) {
    (void)state;
    cot__grid g = {.columns = 2, .column = {COT__WRAP, COT__LEFT}};
    PUT(&g, "ab\ncdef\n\ng", "x", "h", "y");
    assert_string_equal(printed(&g), "ab    x\ncdef\n\ng\nh     y\n");
}

/* Longer than a buffer of any usual size. */
static void long_cells_are_not_cut(void **state) {
    (void)state;
    char      cell[1500], want[3100];
    cot__grid g = {.columns = 2, .column = {COT__LEFT, COT__RIGHT}, .width = 80};
    memset(cell, 'a', sizeof cell - 1);
    cell[sizeof cell - 1] = 0;
    PUT(&g, cell, cell);
    snprintf(want, sizeof want, "%s  %s\n", cell, cell);
    assert_string_equal(printed(&g), want);
}

static void paragraphs_break_at_blanks(void **state) {
    (void)state;
    FILE *f = tmpfile();
    cot__paragraph(f, 12, 2, "one two three four\n\nfive sixteenseventeen");
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    assert_string_equal(text, "one two\n  three four\n\nfive\n  sixteensev\n  enteen\n");
    assert_int_equal(cot__line("ab cd", 5), 5);
    assert_int_equal(cot__line("ab cd", 4), 2);
    assert_int_equal(cot__line("ab   cd", 6), 2); /* no blanks at the end */
    assert_int_equal(cot__line("abcd", 0), 1);
}

static void inks_are_written_when_asked(void **state) {
    (void)state;
    cot__grid g = {.columns = 2, .column = {COT__LEFT, COT__RIGHT}, .colour = true};
    cot__grid_put(&g, "\x1b[1m", "a");
    cot__grid_put(&g, NULL, "1");
    PUT(&g, "bc", "23");
    assert_string_equal(printed(&g), "\x1b[1ma\x1b[0m    1\nbc  23\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(the_last_cell_uses_the_rest_of_its_line),
        cmocka_unit_test(cells_give_way_where_the_terminal_ends),
        cmocka_unit_test(a_newline_in_a_cell_begins_a_line),
        cmocka_unit_test(long_cells_are_not_cut),
        cmocka_unit_test(paragraphs_break_at_blanks),
        cmocka_unit_test(inks_are_written_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
