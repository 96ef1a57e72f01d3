/* Nonlinear least squares without expressions: the QR factorisation, known minima, and ends that
 * are not a minimum. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regression/householder.h"
#include "regression/least_squares.h"
#include "regression/squares.h"
#include "draw/svg.h"
#include "problem/uniform.h"

enum { M = 40, N = 5 };

static void qr_keeps_products_and_lengths(void **state) {
    (void)state;
    double a[M * N], r[M * N], c[M], q[M], z[N], x[N];
    int    perm[N];
    for (int i = 0; i < M * N; i++) a[i] = r[i] = uniform_at(1, (uint64_t)i, 1);
    for (int i = 0; i < M; i++) c[i] = q[i] = uniform_at(2, (uint64_t)i, 1);
    householder_qr(M, N, r, q, perm);
    for (int j = 0; j < N; j++) {
        for (int k = 0; k <= j; k++) { /* RᵀR = AᵀA in the order of perm */
            double of_r = 0, of_a = 0;
            for (int i = 0; i <= k; i++) of_r += r[j * M + i] * r[k * M + i];
            for (int i = 0; i < M; i++) of_a += a[perm[j] * M + i] * a[perm[k] * M + i];
            assert_true(fabs(of_r - of_a) < 1e-13 * M);
        }
        if (j > 0) assert_true(fabs(r[j * M + j]) <= fabs(r[(j - 1) * M + j - 1]) * (1 + 1e-14));
    }
    assert_true(fabs(householder_norm(M, q) - householder_norm(M, c)) < 1e-14 * M);
    householder_solve(M, N, N, r, q, z);
    for (int j = 0; j < N; j++) x[perm[j]] = z[j];
    /* the residual is orthogonal to every column */
    for (int j = 0; j < N; j++) {
        double sum = 0;
        for (int i = 0; i < M; i++) {
            double left = c[i];
            for (int k = 0; k < N; k++) left -= a[k * M + i] * x[k];
            sum += left * a[j * M + i];
        }
        assert_true(fabs(sum) < 1e-13 * M);
    }
}

static void norms_do_not_overflow(void **state) {
    (void)state;
    assert_true(fabs(householder_norm(2, (double[]){3e300, 4e300}) / 5e300 - 1) < 1e-15);
    assert_true(fabs(householder_norm(2, (double[]){3e-300, 4e-300}) / 5e-300 - 1) < 1e-15);
    double long_one[1003]; /* in several sums, and a rest */
    for (int i = 0; i < 1003; i++) long_one[i] = i < 1000 ? 3 : 4;
    assert_true(householder_norm(1003, long_one) == sqrt(9000 + 48));
    for (int i = 0; i < 1003; i++) long_one[i] *= 0x1p-600;
    assert_true(householder_norm(1003, long_one) == sqrt(9000 + 48) * 0x1p-600);
    assert_true(householder_norm(3, (double[]){0, 0, 0}) == 0);
    assert_true(isnan(householder_norm(2, (double[]){NAN, 1})));
    assert_true(isnan(householder_norm(2, (double[]){1, NAN})));
    assert_true(isinf(householder_norm(2, (double[]){1, -INFINITY})));
}

static void sums_of_squares_are_exact_to_the_last_digit(void **state) {
    (void)state;
    double r[1001];
    r[0] = 1e8;
    /* each of them is lost when it is added to 1e16 alone */
    for (int i = 1; i < 1001; i++) r[i] = 1;
    assert_true(squares_sum(1001, r) == 1e16 + 1000);
    r[7] = INFINITY;
    assert_true(isinf(squares_sum(1001, r)));
    r[7] = NAN;
    assert_true(isinf(squares_sum(1001, r)));
    r[7] = 1e200;
    assert_true(isinf(squares_sum(1001, r)));
}

/* ---- fits ------------------------------------------------------------------------------------ */

typedef struct example {
    int           rows, calls, give_up; /* give_up: the call that fails, from 1 */
    const double *x, *y;
    double (*model)(const double *b, double x, double *slopes);
    int    n;
    double at[8]; /* the point of the last call */
} example;

static bool residuals(void *user, const double *b, double *r) {
    example *e = user;
    double   slopes[8];
    memcpy(e->at, b, (size_t)e->n * sizeof *b);
    for (int i = 0; i < e->rows; i++) r[i] = e->y[i] - e->model(b, e->x[i], slopes);
    return ++e->calls != e->give_up;
}

static bool jacobian(void *user, double *j) {
    example *e = user;
    double   slopes[8];
    for (int i = 0; i < e->rows; i++) {
        e->model(e->at, e->x[i], slopes);
        for (int k = 0; k < e->n; k++) j[k * e->rows + i] = slopes[k];
    }
    return true;
}

static fit_end run(example *e, double *b, fit_result *out) {
    static double errors[8], r[100];
    static bool   undetermined[8];
    *out = (fit_result){.errors = errors, .undetermined = undetermined};
    least_squares p = {.rows = e->rows,
                       .n = e->n,
                       .size = householder_norm(e->rows, e->y),
                       .most_iterations = 2000,
                       .tolerance = 1e-10,
                       .residuals = residuals,
                       .jacobian = jacobian,
                       .user = e};
    fit_end       end = least_squares_fit(&p, b, r, out);
    if (end != FIT_ABANDONED && end != FIT_BAD_START) assert_true(out->rss == squares_sum(e->rows, r));
    return end;
}

static void close_to(double a, double b, double relative) {
    if (!(fabs(a - b) <= relative * fabs(b))) print_error("%.17g, not %.17g\n", a, b);
    assert_true(fabs(a - b) <= relative * fabs(b));
}

static double thermistor(const double *b, double x, double *s) {
    double e = exp(b[1] / (x + b[2]));
    s[0] = e;
    s[1] = b[0] * e / (x + b[2]);
    s[2] = -b[0] * e * b[1] / ((x + b[2]) * (x + b[2]));
    return b[0] * e;
}

static double saturation(const double *b, double x, double *s) {
    double e = exp(-b[1] * x);
    s[0] = 1 - e;
    s[1] = b[0] * x * e;
    return b[0] * (1 - e);
}

/* Steep exponentials (a thermistor's resistance) and saturation, on exact data, from starts from
 * which simple methods do not arrive. */
static void far_starts_arrive(void **state) {
    (void)state;
    static const double starts[2][3] = {{0.5, 3000, 200}, {0.02, 4000, 250}}, others[2][2] = {{1, 1}, {100, 0.75}};
    static const double resistor[3] = {5.6e-3, 6180, 345}, curve[2] = {210, 0.55};
    double              x[16], day[6] = {1, 2, 3, 5, 7, 10}, resistance[16], demand[6], b[3], slopes[3];
    fit_result          r;
    for (int i = 0; i < 16; i++) x[i] = 50 + 5 * i, resistance[i] = thermistor(resistor, x[i], slopes);
    for (int i = 0; i < 6; i++) demand[i] = saturation(curve, day[i], slopes);
    for (int k = 0; k < 2; k++) {
        example e = {.rows = 16, .x = x, .y = resistance, .model = thermistor, .n = 3};
        memcpy(b, starts[k], sizeof b);
        assert_int_equal(run(&e, b, &r), FIT_CONVERGED);
        /* the data are rounded, and the problem loses six digits */
        for (int i = 0; i < 3; i++) close_to(b[i], resistor[i], 1e-9);
        example d = {.rows = 6, .x = day, .y = demand, .model = saturation, .n = 2};
        memcpy(b, others[k], sizeof others[k]);
        assert_int_equal(run(&d, b, &r), FIT_CONVERGED);
        for (int i = 0; i < 2; i++) close_to(b[i], curve[i], 1e-12);
    }
}

static double line(const double *b, double x, double *s) {
    s[0] = x;
    s[1] = 1;
    return b[0] * x + b[1];
}

/* A straight line against its closed form, in units that differ by 10^20. */
static void lines_are_those_of_the_closed_form(void **state) {
    (void)state;
    double     x[30], y[30], b[2];
    fit_result r;
    for (int scale = -10; scale <= 10; scale += 5) {
        long double sx = 0, sy = 0, sxx = 0, sxy = 0, unit = powl(10, scale), rss = 0;
        for (int i = 0; i < 30; i++) {
            x[i] = (double)(unit * (i + 1));
            y[i] = 3 + 0.5 * i + uniform_at(3, (uint64_t)i, 1);
            sx += x[i], sy += y[i], sxx += (long double)x[i] * x[i], sxy += (long double)x[i] * y[i];
        }
        long double slope = (30 * sxy - sx * sy) / (30 * sxx - sx * sx), rest = (sy - slope * sx) / 30;
        for (int i = 0; i < 30; i++) rss += powl(y[i] - slope * x[i] - rest, 2);
        example e = {.rows = 30, .x = x, .y = y, .model = line, .n = 2};
        b[0] = b[1] = 1;
        assert_int_equal(run(&e, b, &r), FIT_CONVERGED);
        close_to(b[0], (double)slope, 1e-13);
        close_to(b[1], (double)rest, 1e-13);
        close_to(r.rss, (double)rss, 1e-14);
        close_to(r.errors[0], (double)sqrtl(rss / 28 / (sxx - sx * sx / 30)), 1e-13);
        close_to(r.errors[1], (double)sqrtl(rss / 28 * (1.0L / 30 + sx * sx / 900 / (sxx - sx * sx / 30))), 1e-13);
    }
}

static double product(const double *b, double x, double *s) {
    s[0] = b[1] * x;
    s[1] = b[0] * x;
    s[2] = 1;
    return b[0] * b[1] * x + b[2];
}

static double edge(const double *b, double x, double *s) {
    s[0] = 1 / (2 * sqrt(b[0]));
    return sqrt(b[0]) + x;
}

static double corner(const double *b, double x, double *s) { /* its slope is a lie, as at a kink */
    s[0] = 1;
    return fabs(b[0]) + x;
}

static double cubic(const double *b, double x, double *s) {
    s[0] = 3 * b[0] * b[0];
    return b[0] * b[0] * b[0] + 0 * x;
}

static void ends_that_are_no_minimum_are_told_apart(void **state) {
    (void)state;
    static const double x[4] = {1, 2, 3, 4}, y[4] = {2, 4.5, 5.5, 8};
    fit_result          r;
    example             e = {.rows = 4, .x = x, .y = y, .model = product, .n = 3};
    double              b[3] = {1, 1, 1};
    assert_int_equal(run(&e, b, &r), FIT_SINGULAR);
    assert_true(r.singular && r.undetermined[0] && r.undetermined[1] && !r.undetermined[2]);
    assert_true(isnan(r.errors[0]) && isnan(r.change));
    close_to(b[0] * b[1], 1.9, 1e-8); /* the product is determined, and is found */

    example n = {.rows = 4, .x = x, .y = y, .model = edge, .n = 1};
    b[0] = -1;
    assert_int_equal(run(&n, b, &r), FIT_BAD_START);
    assert_true(b[0] == -1);
    b[0] = 0;
    assert_int_equal(run(&n, b, &r), FIT_BAD_SLOPE);

    static const double less[4] = {-1, 0, 1, 2}; /* |b| + x would have to be less than x */
    example             k = {.rows = 4, .x = x, .y = less, .model = corner, .n = 1};
    b[0] = 1e-3;
    assert_int_equal(run(&k, b, &r), FIT_STALLED);
    close_to(r.rss, 16, 1e-6);

    static const double ninth[4] = {1e-9, 1e-9, 1e-9, 1e-9};
    example             c = {.rows = 4, .x = x, .y = ninth, .model = cubic, .n = 1};
    b[0] = 1; /* exact data: the sum ends at nothing but rounding */
    assert_int_equal(run(&c, b, &r), FIT_CONVERGED);
    close_to(b[0], 1e-3, 1e-14);

    for (int call = 1; call < 6; call++) {
        example a = {.rows = 4, .x = x, .y = y, .model = line, .n = 2, .give_up = call};
        b[0] = b[1] = 10;
        fit_end end = run(&a, b, &r);
        assert_true(end == FIT_ABANDONED || a.calls < call);
    }
}

static void iterations_are_limited(void **state) {
    (void)state;
    static const double demand[6] = {109, 149, 149, 191, 213, 224}, day[6] = {1, 2, 3, 5, 7, 10};
    for (int most = 1; most < 20; most++) {
        double        b[2] = {1, 1}, errors[2], r[6];
        bool          undetermined[2];
        fit_result    out = {.errors = errors, .undetermined = undetermined};
        example       e = {.rows = 6, .x = day, .y = demand, .model = saturation, .n = 2};
        least_squares p = {.rows = 6,
                           .n = 2,
                           .size = 400,
                           .most_iterations = most,
                           .tolerance = 1e-10,
                           .residuals = residuals,
                           .jacobian = jacobian,
                           .user = &e};
        fit_end       end = least_squares_fit(&p, b, r, &out);
        assert_true(end != FIT_CONVERGED);
        assert_true(out.iterations <= most);
        assert_true(out.rss == squares_sum(6, r) && out.rss < 2e5); /* the start has 1.8e5 */
    }
}

/* ---- axes ------------------------------------------------------------------------------------ */

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
        cmocka_unit_test(many_points_are_thinned_out),
        cmocka_unit_test(qr_keeps_products_and_lengths),
        cmocka_unit_test(norms_do_not_overflow),
        cmocka_unit_test(sums_of_squares_are_exact_to_the_last_digit),
        cmocka_unit_test(far_starts_arrive),
        cmocka_unit_test(lines_are_those_of_the_closed_form),
        cmocka_unit_test(ends_that_are_no_minimum_are_told_apart),
        cmocka_unit_test(iterations_are_limited),
        cmocka_unit_test(ticks_are_round_and_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
