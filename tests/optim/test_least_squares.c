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

#include "base/math/vectors.h"
#include "optim/householder.h"
#include "optim/levenberg.h"
#include "optim/squares.h"
#include "problem/uniform.h"

enum { M = 40, N = 5 };

static void qr_keeps_products_and_lengths(void **state) {
    (void)state;
    double a[M * N], r[M * N], c[M], q[M], z[N], x[N];
    int    perm[N];
    for (int i = 0; i < M * N; i++) a[i] = r[i] = uniform_at(1, (uint64_t)i, 1);
    for (int i = 0; i < M; i++) c[i] = q[i] = uniform_at(2, (uint64_t)i, 1);
    cot__householder_qr(M, N, r, q, perm);
    for (int j = 0; j < N; j++) {
        for (int k = 0; k <= j; k++) { /* RᵀR = AᵀA in the order of perm */
            double of_r = 0, of_a = 0;
            for (int i = 0; i <= k; i++) of_r += r[j * M + i] * r[k * M + i];
            for (int i = 0; i < M; i++) of_a += a[perm[j] * M + i] * a[perm[k] * M + i];
            assert_true(fabs(of_r - of_a) < 1e-13 * M);
        }
        if (j > 0) assert_true(fabs(r[j * M + j]) <= fabs(r[(j - 1) * M + j - 1]) * (1 + 1e-14));
    }
    assert_true(fabs(cot__length(M, q) - cot__length(M, c)) < 1e-14 * M);
    cot__householder_solve(M, N, N, r, q, z);
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
    assert_true(fabs(cot__length(2, (double[]){3e300, 4e300}) / 5e300 - 1) < 1e-15);
    assert_true(fabs(cot__length(2, (double[]){3e-300, 4e-300}) / 5e-300 - 1) < 1e-15);
    assert_true(cot__length(2, (double[]){3 * DBL_TRUE_MIN, 4 * DBL_TRUE_MIN}) == 5 * DBL_TRUE_MIN);
    double long_one[1003]; /* in several sums, and a rest */
    for (int i = 0; i < 1003; i++) long_one[i] = i < 1000 ? 3 : 4;
    assert_true(cot__length(1003, long_one) == sqrt(9000 + 48));
    for (int i = 0; i < 1003; i++) long_one[i] *= 0x1p-600;
    assert_true(cot__length(1003, long_one) == sqrt(9000 + 48) * 0x1p-600);
    assert_true(cot__length(3, (double[]){0, 0, 0}) == 0);
    assert_true(isnan(cot__length(2, (double[]){NAN, 1})));
    assert_true(isnan(cot__length(2, (double[]){1, NAN})));
    assert_true(isnan(cot__length(2, (double[]){NAN, 0})));
    assert_true(isinf(cot__length(2, (double[]){1, -INFINITY})));
}

static void sums_of_squares_are_exact_to_the_last_digit(void **state) {
    (void)state;
    double r[1001];
    r[0] = 1e8;
    /* each of them is lost when it is added to 1e16 alone */
    for (int i = 1; i < 1001; i++) r[i] = 1;
    assert_true(cot__squares_sum(1001, r) == 1e16 + 1000);
    r[7] = INFINITY;
    assert_true(isinf(cot__squares_sum(1001, r)));
    r[7] = NAN;
    assert_true(isinf(cot__squares_sum(1001, r)));
    r[7] = 1e200;
    assert_true(isinf(cot__squares_sum(1001, r)));
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

static cot_fit_end run(example *e, double *b, cot__fit_result *out) {
    static double errors[8], r[100];
    static bool   undetermined[8];
    *out                   = (cot__fit_result){.errors = errors, .undetermined = undetermined};
    cot__least_squares p   = {.rows            = e->rows,
                              .n               = e->n,
                              .size            = cot__length(e->rows, e->y),
                              .most_iterations = 2000,
                              .tolerance       = 1e-10,
                              .residuals       = residuals,
                              .jacobian        = jacobian,
                              .user            = e};
    cot_fit_end        end = cot__least_squares_fit(&p, b, r, out);
    if (end != COT_FIT_ABANDONED && end != COT_FIT_BAD_START) assert_true(out->rss == cot__squares_sum(e->rows, r));
    return end;
}

static void close_to(double a, double b, double relative) {
    if (!(fabs(a - b) <= relative * fabs(b))) print_error("%.17g, not %.17g\n", a, b);
    assert_true(fabs(a - b) <= relative * fabs(b));
}

static double thermistor(const double *b, double x, double *s) {
    double e = exp(b[1] / (x + b[2]));
    s[0]     = e;
    s[1]     = b[0] * e / (x + b[2]);
    s[2]     = -b[0] * e * b[1] / ((x + b[2]) * (x + b[2]));
    return b[0] * e;
}

static double saturation(const double *b, double x, double *s) {
    double e = exp(-b[1] * x);
    s[0]     = 1 - e;
    s[1]     = b[0] * x * e;
    return b[0] * (1 - e);
}

/* Steep exponentials (a thermistor's resistance) and saturation, on exact data, from starts from
 * which simple methods do not arrive. */
static void far_starts_arrive(void **state) {
    (void)state;
    static const double starts[2][3] = {{0.5, 3000, 200}, {0.02, 4000, 250}}, others[2][2] = {{1, 1}, {100, 0.75}};
    static const double resistor[3] = {5.6e-3, 6180, 345}, curve[2] = {210, 0.55};
    double              x[16], day[6] = {1, 2, 3, 5, 7, 10}, resistance[16], demand[6], b[3], slopes[3];
    cot__fit_result     r;
    for (int i = 0; i < 16; i++) x[i] = 50 + 5 * i, resistance[i] = thermistor(resistor, x[i], slopes);
    for (int i = 0; i < 6; i++) demand[i] = saturation(curve, day[i], slopes);
    for (int k = 0; k < 2; k++) {
        example e = {.rows = 16, .x = x, .y = resistance, .model = thermistor, .n = 3};
        memcpy(b, starts[k], sizeof b);
        assert_int_equal(run(&e, b, &r), COT_FIT_CONVERGED);
        /* the data are rounded, and the problem loses six digits */
        for (int i = 0; i < 3; i++) close_to(b[i], resistor[i], 1e-9);
        example d = {.rows = 6, .x = day, .y = demand, .model = saturation, .n = 2};
        memcpy(b, others[k], sizeof others[k]);
        assert_int_equal(run(&d, b, &r), COT_FIT_CONVERGED);
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
    double          x[30], y[30], b[2];
    cot__fit_result r;
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
        assert_int_equal(run(&e, b, &r), COT_FIT_CONVERGED);
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
    cot__fit_result     r;
    example             e    = {.rows = 4, .x = x, .y = y, .model = product, .n = 3};
    double              b[3] = {1, 1, 1};
    assert_int_equal(run(&e, b, &r), COT_FIT_SINGULAR);
    assert_true(r.singular && r.undetermined[0] && r.undetermined[1] && !r.undetermined[2]);
    assert_true(isnan(r.errors[0]) && isnan(r.change));
    close_to(b[0] * b[1], 1.9, 1e-8); /* the product is determined, and is found */

    example n = {.rows = 4, .x = x, .y = y, .model = edge, .n = 1};
    b[0]      = -1;
    assert_int_equal(run(&n, b, &r), COT_FIT_BAD_START);
    assert_true(b[0] == -1);
    b[0] = 0;
    assert_int_equal(run(&n, b, &r), COT_FIT_BAD_SLOPE);

    static const double less[4] = {-1, 0, 1, 2}; /* |b| + x would have to be less than x */
    example             k       = {.rows = 4, .x = x, .y = less, .model = corner, .n = 1};
    b[0]                        = 1e-3;
    assert_int_equal(run(&k, b, &r), COT_FIT_STALLED);
    close_to(r.rss, 16, 1e-6);

    static const double ninth[4] = {1e-9, 1e-9, 1e-9, 1e-9};
    example             c        = {.rows = 4, .x = x, .y = ninth, .model = cubic, .n = 1};
    b[0]                         = 1; /* exact data: the sum ends at nothing but rounding */
    assert_int_equal(run(&c, b, &r), COT_FIT_CONVERGED);
    close_to(b[0], 1e-3, 1e-14);

    for (int call = 1; call < 6; call++) {
        example a = {.rows = 4, .x = x, .y = y, .model = line, .n = 2, .give_up = call};
        b[0] = b[1]     = 10;
        cot_fit_end end = run(&a, b, &r);
        assert_true(end == COT_FIT_ABANDONED || a.calls < call);
    }
}

static void iterations_are_limited(void **state) {
    (void)state;
    static const double demand[6] = {109, 149, 149, 191, 213, 224}, day[6] = {1, 2, 3, 5, 7, 10};
    for (int most = 1; most < 20; most++) {
        double             b[2] = {1, 1}, errors[2], r[6];
        bool               undetermined[2];
        cot__fit_result    out = {.errors = errors, .undetermined = undetermined};
        example            e   = {.rows = 6, .x = day, .y = demand, .model = saturation, .n = 2};
        cot__least_squares p   = {.rows            = 6,
                                  .n               = 2,
                                  .size            = 400,
                                  .most_iterations = most,
                                  .tolerance       = 1e-10,
                                  .residuals       = residuals,
                                  .jacobian        = jacobian,
                                  .user            = &e};
        cot_fit_end        end = cot__least_squares_fit(&p, b, r, &out);
        assert_true(end != COT_FIT_CONVERGED);
        assert_true(out.iterations <= most);
        assert_true(out.rss == cot__squares_sum(6, r) && out.rss < 2e5); /* the start has 1.8e5 */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qr_keeps_products_and_lengths),
        cmocka_unit_test(norms_do_not_overflow),
        cmocka_unit_test(sums_of_squares_are_exact_to_the_last_digit),
        cmocka_unit_test(far_starts_arrive),
        cmocka_unit_test(lines_are_those_of_the_closed_form),
        cmocka_unit_test(ends_that_are_no_minimum_are_told_apart),
        cmocka_unit_test(iterations_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
