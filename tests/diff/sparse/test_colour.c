/* Colourings: valid on any pattern, and with the least number of colours where it is known: bands,
 * grids, arrows. */
#include "support/support.h"

#include "base/random.h"
#include "diff/sparse/colour.h"

#include <stdlib.h>
#include <string.h>

/* ---- patterns -------------------------------------------------------------------------------- */

typedef bool (*holds)(int64_t i, int64_t j, int64_t a);

static cot__csr pattern(int64_t rows, int64_t cols, holds f, int64_t a, int64_t reach) {
    cot__csr m = {rows, cols, 0, calloc((size_t)rows + 1, sizeof *m.row_start), NULL};
    for (int pass = 0; pass < 2; pass++) {
        int64_t n = 0;
        for (int64_t i = 0; i < rows; i++) {
            int64_t from = reach >= 0 && i > reach ? i - reach : 0,
                    to   = reach >= 0 && i + reach + 1 < cols ? i + reach + 1 : cols;
            for (int64_t j = from; j < to; j++)
                if (f(i, j, a)) {
                    if (pass) m.col[n] = (int32_t)j;
                    n++;
                }
            m.row_start[i + 1] = n;
        }
        if (!pass) m.col = calloc((size_t)n + 1, sizeof *m.col);
        m.nnz = n;
    }
    return m;
}

static bool band(int64_t i, int64_t j, int64_t half) { return llabs(i - j) <= half; }
static bool upper_band(int64_t i, int64_t j, int64_t width) { return j >= i && j < i + width; }
static bool arrow(int64_t i, int64_t j, int64_t tip) { return i == j || i == tip || j == tip; }
static bool dense(int64_t i, int64_t j, int64_t a) { return (void)i, (void)j, (void)a, true; }
static bool empty(int64_t i, int64_t j, int64_t a) { return (void)i, (void)j, (void)a, false; }
static bool first_row(int64_t i, int64_t j, int64_t a) { return (void)a, i == 0 || i == j; }
/* neighbours on a grid of a columns: 5 points, 9 points */
static bool grid5(int64_t i, int64_t j, int64_t a) { return llabs(i / a - j / a) + llabs(i % a - j % a) <= 1; }
static bool grid9(int64_t i, int64_t j, int64_t a) { return llabs(i / a - j / a) <= 1 && llabs(i % a - j % a) <= 1; }
/* symmetric, about a fifth full; the diagonal is there for even seeds, else here and there */
static bool scattered(int64_t i, int64_t j, int64_t seed) {
    if (i == j && seed % 2 == 0) return true;
    uint64_t low = (uint64_t)(i < j ? i : j), high = (uint64_t)(i < j ? j : i);
    return cot__mixed((uint64_t)seed * 1000003 + low * 1009 + high) % 5 == 0;
}
static bool lopsided(int64_t i, int64_t j, int64_t seed) {
    return cot__mixed((uint64_t)seed * 1000003 + (uint64_t)i * 1009 + (uint64_t)j) % 7 == 0;
}

/* ---- what a colouring promises --------------------------------------------------------------- */

static void check_columns(const char *name, const cot__csr *m, const int32_t *colour, int32_t colours) {
    for (int64_t j = 0; j < m->cols; j++)
        TEST_CHECK(colour[j] >= 0 && colour[j] < colours, "%s: column %lld has no colour", name, (long long)j);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++)
            for (int64_t f = m->row_start[i]; f < e; f++)
                TEST_CHECK(colour[m->col[e]] != colour[m->col[f]], "%s: row %lld has columns %d and %d in one colour",
                           name, (long long)i, m->col[f], m->col[e]);
}

static int in_row(const cot__csr *m, int64_t i, const int32_t *colour, int32_t c) {
    int n = 0;
    for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++) n += colour[m->col[e]] == c;
    return n;
}

/* Every entry is alone in its row with the colour of its column, or its mirror image is. */
static void check_readable(const char *name, const cot__csr *m, const int32_t *colour, int32_t colours) {
    for (int64_t i = 0; i < m->rows; i++) {
        TEST_CHECK(colour[i] >= 0 && colour[i] < colours, "%s: vertex %lld has no colour", name, (long long)i);
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++)
            TEST_CHECK(in_row(m, i, colour, colour[m->col[e]]) == 1 || in_row(m, m->col[e], colour, colour[i]) == 1,
                       "%s: entry (%lld,%d)", name, (long long)i, m->col[e]);
    }
}

static bool has_diagonal(const cot__csr *m) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++) n += m->col[e] == i;
    return n == m->rows;
}

/* Where the diagonal is there, being readable is being a star colouring: neighbours differ, and no
 * path v w x y has two colours. */
static void check_star(const char *name, const cot__csr *m, const int32_t *colour, int32_t colours) {
    check_readable(name, m, colour, colours);
    if (!has_diagonal(m)) return;
    for (int64_t v = 0; v < m->rows; v++) {
        TEST_CHECK(colour[v] >= 0 && colour[v] < colours, "%s: vertex %lld has no colour", name, (long long)v);
        for (int64_t a = m->row_start[v]; a < m->row_start[v + 1]; a++) {
            int32_t w = m->col[a];
            if (w == v) continue;
            TEST_CHECK(colour[w] != colour[v], "%s: neighbours %lld and %d", name, (long long)v, w);
            for (int64_t b = m->row_start[w]; b < m->row_start[w + 1]; b++) {
                int32_t x = m->col[b];
                if (x == v || x == w || colour[x] != colour[v]) continue;
                for (int64_t c = m->row_start[x]; c < m->row_start[x + 1]; c++)
                    TEST_CHECK(m->col[c] == x || m->col[c] == w || m->col[c] == v || colour[m->col[c]] != colour[w],
                               "%s: path %lld %d %d %d", name, (long long)v, w, x, m->col[c]);
            }
        }
    }
}

/* The number of colours, after the checks; star or columns. */
static int32_t colours_of(const char *name, cot__csr m, bool star) {
    int32_t *colour = malloc(((size_t)m.cols + 1) * sizeof *colour);
    int32_t  colours = (star ? cot__colour_star : cot__colour_columns)(NULL, &m, colour);
    (star ? check_star : check_columns)(name, &m, colour, colours);
    free(colour);
    cot__csr_free(NULL, &m);
    return colours;
}

/* ---- least numbers --------------------------------------------------------------------------- */

static void bands_need_their_width(void **state) {
    (void)state;
    for (int64_t half = 0; half <= 6; half++) {
        assert_int_equal(colours_of("band", pattern(200, 200, band, half, half), false), 2 * half + 1);
        assert_int_equal(colours_of("band, star", pattern(200, 200, band, half, half), true), 2 * half + 1);
    }
    for (int64_t width = 1; width <= 6; width++)
        assert_int_equal(colours_of("upper band", pattern(100, 105, upper_band, width, width), false), width);
    test_verdict();
}

static void grids_need_the_points_of_their_stencil(void **state) {
    (void)state;
    static const int64_t sides[][2] = {{4, 4}, {10, 10}, {7, 31}, {30, 30}, {40, 17}};
    for (int k = 0; k < TEST_COUNT(sides); k++) {
        int64_t n = sides[k][0] * sides[k][1], w = sides[k][1];
        assert_int_equal(colours_of("grid of 5", pattern(n, n, grid5, w, w), false), 5);
        assert_int_equal(colours_of("grid of 9", pattern(n, n, grid9, w, w + 1), false), 9);
        /* the star chromatic number of a grid */
        assert_int_equal(colours_of("grid of 5, star", pattern(n, n, grid5, w, w), true), 5);
        assert_true(colours_of("grid of 9, star", pattern(n, n, grid9, w, w + 1), true) <= 9);
    }
    test_verdict();
}

static void an_arrow_needs_two_by_symmetry_and_all_without(void **state) {
    (void)state;
    for (int64_t tip = 0; tip < 50; tip += 7) {
        assert_int_equal(colours_of("arrow, star", pattern(50, 50, arrow, tip, -1), true), 2);
        assert_int_equal(colours_of("arrow", pattern(50, 50, arrow, tip, -1), false), 50);
    }
    test_verdict();
}

static void dense_empty_diagonal_and_nothing(void **state) {
    (void)state;
    assert_int_equal(colours_of("dense", pattern(9, 7, dense, 0, -1), false), 7);
    assert_int_equal(colours_of("dense, star", pattern(7, 7, dense, 0, -1), true), 7);
    assert_int_equal(colours_of("diagonal", pattern(9, 9, band, 0, 0), false), 1);
    assert_int_equal(colours_of("diagonal, star", pattern(9, 9, band, 0, 0), true), 1);
    assert_int_equal(colours_of("empty", pattern(4, 5, empty, 0, -1), false), 1);
    assert_int_equal(colours_of("empty, star", pattern(5, 5, empty, 0, -1), true), 1);
    assert_int_equal(colours_of("no rows", pattern(0, 5, empty, 0, -1), false), 1);
    assert_int_equal(colours_of("no columns", pattern(4, 0, empty, 0, -1), false), 0);
    assert_int_equal(colours_of("nothing, star", pattern(0, 0, empty, 0, -1), true), 0);
    assert_int_equal(colours_of("one full row", pattern(6, 6, first_row, 0, -1), false), 6);
    test_verdict();
}

/* More than 64 colours: the colours that a column sees no longer fit one word. */
static void many_colours(void **state) {
    (void)state;
    assert_int_equal(colours_of("wide band", pattern(600, 600, band, 70, 70), false), 141);
    assert_int_equal(colours_of("wide band, star", pattern(600, 600, band, 70, 70), true), 141);
    test_verdict();
}

static void random_patterns_are_coloured_validly(void **state) {
    (void)state;
    for (int seed = 0; seed < (test_small() ? 30 : 300); seed++) {
        int64_t n = 5 + seed % 40;
        cot__csr m = pattern(n, n + seed % 7, lopsided, seed, -1);
        int64_t  least = cot__fullest_row(&m);
        assert_true(colours_of("lopsided", m, false) >= least);
        int32_t by_columns = colours_of("scattered", pattern(n, n, scattered, seed, -1), false);
        assert_true(colours_of("scattered, star", pattern(n, n, scattered, seed, -1), true) <= by_columns);
    }
    test_verdict();
}

static void the_transpose_has_columns_as_rows(void **state) {
    (void)state;
    cot__csr m = pattern(23, 31, lopsided, 5, -1), t;
    assert_true(cot__csr_transpose(NULL, &m, &t));
    assert_int_equal(t.rows, 31);
    assert_int_equal(t.cols, 23);
    assert_int_equal(t.nnz, m.nnz);
    for (int64_t j = 0; j < t.rows; j++)
        for (int64_t e = t.row_start[j], k = 0; k < 23; k++)
            if (lopsided(k, j, 5)) assert_int_equal(t.col[e++], k);
    cot__csr_free(NULL, &m);
    cot__csr_free(NULL, &t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_need_their_width),
        cmocka_unit_test(grids_need_the_points_of_their_stencil),
        cmocka_unit_test(an_arrow_needs_two_by_symmetry_and_all_without),
        cmocka_unit_test(dense_empty_diagonal_and_nothing),
        cmocka_unit_test(many_colours),
        cmocka_unit_test(random_patterns_are_coloured_validly),
        cmocka_unit_test(the_transpose_has_columns_as_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
