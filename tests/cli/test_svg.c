/* Pictures of fits: ticks of axes, and points that are many. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/svg.h"
#include "problem/uniform.h"

static void ticks_are_round_and_inside(void **state) {
    (void)state;
    static const svg_range ranges[] = {
        {0, 1},           {-3, 250},  {1e-12, 3e-12},   {-1.7e308, 1.7e308}, {4.9e-324, 1e-323},
        {1e16, 1e16 + 8}, {5, 5.001}, {-1e-300, 2e-300}};
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        double ticks[SVG_TICKS], step;
        char   buf[40];
        int    n = svg_ticks(ranges[k], 9, ticks, &step);
        assert_true(n <= SVG_TICKS);
        if (k < 4) assert_true(n >= 3);
        for (int i = 0; i < n; i++) {
            assert_true(ticks[i] >= ranges[k].low - 1e-9 * step && ticks[i] <= ranges[k].high);
            assert_true(strlen(svg_tick_text(ticks[i], step, buf)) < 30);
            if (k < 3) assert_true(fabs(strtod(buf, NULL) - ticks[i]) < 1e-6 * step);
        }
    }
    svg_range same = svg_range_of(3, (double[]){7, 7, 7}), none = svg_range_of(1, (double[]){NAN}),
              zero = svg_range_of(1, (double[]){0});
    assert_true(same.low < 7 && same.high > 7 && none.low < none.high && zero.low < 0 && zero.high > 0);
    svg_range wide = svg_range_of(2, (double[]){-DBL_MAX, DBL_MAX});
    assert_true(isfinite(wide.low) && isfinite(wide.high));
    char buf[40];
    assert_string_equal(svg_tick_text(0.5, 0.5, buf), "0.5");
    assert_string_equal(svg_tick_text(250, 50, buf), "250");
    assert_string_equal(svg_tick_text(0, 1e-9, buf), "0");
    assert_string_equal(svg_tick_text(1.5e-8, 5e-9, buf), "1.5e-08");
    assert_string_equal(svg_tick_text(2e6, 1e6, buf), "2e+06");
}

/* A million points that lie on each other are as few as the picture can show. */
static void many_points_are_thinned_out(void **state) {
    (void)state;
    enum { MANY = 100000, FEW = 20000 };
    double   *x = malloc(MANY * sizeof *x), *y = malloc(MANY * sizeof *y);
    svg_panel p = {tmpfile(), 10, 20, 100, 50, {0, 1}, {-1, 1}, false};
    long      few, many;
    for (int i = 0; i < MANY; i++) x[i] = 0.5 + uniform_at(1, (uint64_t)i, 0.5), y[i] = uniform_at(2, (uint64_t)i, 1);
    y[7] = NAN;
    svg_points(&p, "data", FEW, x, y);
    few = ftell(p.out);
    svg_points(&p, "data", MANY, x, y);
    many = ftell(p.out) - few;
    assert_true(few > FEW * 5L); /* each of them */
    /* one in each unit square, nearly all of which are hit */
    assert_true(many > 101 * 51 * 5L / 2 && many < 101 * 51 * 15L);
    fclose(p.out);
    free(x);
    free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round_and_inside),
        cmocka_unit_test(many_points_are_thinned_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
