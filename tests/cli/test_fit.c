/* ctest: timeout=240 */
/* cotangent fit: regressions whose answer is known, every error, the picture. NIST's files are read
 * if COT_SHARED_DATA has them. */
#include "support/cli_test.h"
#include "support/svg_test.h"

#include <sys/stat.h>

#include "fit/fit.h"
#include "problem/uniform.h"

#ifndef COT_SHARED_DATA
#define COT_SHARED_DATA ""
#endif

static void put_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* The number behind "key": in an object of the last output: group "params", say. group NULL: at the
 * top. */
static double number_at(const char *group, const char *key) {
    char        wanted[96];
    const char *p = last.out;
    if (group) {
        snprintf(wanted, sizeof wanted, "\"%s\":{", group);
        p = strstr(p, wanted);
        assert_non_null(p);
    }
    snprintf(wanted, sizeof wanted, "\"%s\":", key);
    p = strstr(p, wanted);
    assert_non_null(p);
    return strtod(p + strlen(wanted), NULL);
}

static void close_to(const char *what, double a, double b, double relative) {
    if (!(fabs(a - b) <= relative * fabs(b))) print_error("%s: %.17g, not %.17g\n", what, a, b);
    assert_true(fabs(a - b) <= relative * fabs(b));
}

static void converges(const char *line) {
    sh("%s", line);
    if (last.status != 0) print_error("%s\n%s%s", line, last.out, last.err);
    assert_int_equal(last.status, 0);
    assert_non_null(strstr(last.out, "\"converged\":true"));
}

/* ---- NIST's reference data sets -------------------------------------------------------------- */

typedef struct reference {
    const char *name, *model;
} reference;

static const reference references[] = {
    {"Chwirut2", "exp(-b1*x)/(b2 + b3*x)"},
    {"DanWood", "b1*x**b2"},
    {"ENSO", "b1 + b2*cos(2*pi*x/12) + b3*sin(2*pi*x/12) + b5*cos(2*pi*x/b4) + b6*sin(2*pi*x/b4) + b8*cos(2*pi*x/b7) + "
             "b9*sin(2*pi*x/b7)"},
    {"Eckerle4", "b1/b2*exp(-0.5*((x - b3)/b2)**2)"},
    {"Gauss2", "b1*exp(-b2*x) + b3*exp(-(x - b4)**2/b5**2) + b6*exp(-(x - b7)**2/b8**2)"},
    {"Hahn1", "(b1 + b2*x + b3*x**2 + b4*x**3)/(1 + b5*x + b6*x**2 + b7*x**3)"},
    {"Kirby2", "(b1 + b2*x + b3*x**2)/(1 + b4*x + b5*x**2)"},
    {"Lanczos2", "b1*exp(-b2*x) + b3*exp(-b4*x) + b5*exp(-b6*x)"},
    {"MGH09", "b1*(x**2 + x*b2)/(x**2 + x*b3 + b4)"},
    {"MGH17", "b1 + b2*exp(-x*b4) + b3*exp(-x*b5)"},
    {"Misra1b", "b1*(1 - (1 + b2*x/2)**(-2))"},
    {"Rat42", "b1/(1 + exp(b2 - b3*x))"},
    /* The file's certified b1 and its certified sum of squares belong together on this branch of
     * the arctangent. On the branch of arctan(b3/(x - b4)) b1 is 1 less, and everything else is the
     * same. */
    {"Roszman1", "b1 - b2*x - arctan2(b3, x - b4)/pi"},
    {"Thurber", "(b1 + b2*x + b3*x**2 + b4*x**3)/(1 + b5*x + b6*x**2 + b7*x**3)"},
};

typedef struct certified {
    int    n;
    double start[2][9], value[9], error[9], rss, sd;
} certified;

static certified read_certified(const char *path) {
    certified   c = {0};
    char       *text = slurp(path);
    const char *line = text;
    for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        double s[2], value, error;
        int    k;
        if (sscanf(line, " b%d = %lf %lf %lf %lf", &k, &s[0], &s[1], &value, &error) == 5 && k == c.n + 1 && k <= 9) {
            c.start[0][c.n] = s[0], c.start[1][c.n] = s[1];
            c.value[c.n] = value, c.error[c.n++] = error;
        }
        sscanf(line, "Residual Sum of Squares: %lf", &c.rss);
        sscanf(line, "Residual Standard Deviation: %lf", &c.sd);
    }
    free(text);
    assert_true(c.n > 0 && c.rss > 0 && c.sd > 0);
    return c;
}

/* 11 digits are certified. Nine of them must be met; two are left for the effect of rounding on
 * ill-conditioned problems. */
static void reference_data_are_fitted_from_both_starts(void **state) {
    (void)state;
    const char *base = getenv("COT_SHARED_DATA");
    char        path[512], line[4096];
    base = base && *base ? base : COT_SHARED_DATA;
    snprintf(path, sizeof path, "%s/nist/%s.dat", base, references[0].name);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no files of NIST's in %s/nist (set COT_SHARED_DATA)\n", base);
        skip();
    }
    for (size_t k = 0; k < sizeof references / sizeof *references; k++) {
        snprintf(path, sizeof path, "%s/nist/%s.dat", base, references[k].name);
        certified c = read_certified(path);
        for (int s = 0; s < 2; s++) {
            int used = snprintf(line, sizeof line, "cotangent fit --json '%s' '%s'", references[k].model, path);
            for (int j = 0; j < c.n; j++)
                used += snprintf(line + used, sizeof line - (size_t)used, " b%d=%.17g", j + 1, c.start[s][j]);
            converges(line);
            for (int j = 0; j < c.n; j++) {
                char name[16], what[96];
                snprintf(name, sizeof name, "b%d", j + 1);
                snprintf(what, sizeof what, "%s, start %d, %s", references[k].name, s + 1, name);
                close_to(what, number_at("params", name), c.value[j], 1e-9);
                close_to(what, number_at("stderr", name), c.error[j], 1e-9);
            }
            close_to(references[k].name, number_at(NULL, "rss"), c.rss, 1e-9);
            close_to(references[k].name, number_at(NULL, "residual_sd"), c.sd, 1e-9);
        }
    }
}

/* ---- generated data -------------------------------------------------------------------------- */

typedef double (*function)(double x1, double x2);

static double decay(double x, double unused) { return (void)unused, 2.5 * exp(-1.3 * x) + 0.2; }
static double logistic(double x, double unused) { return (void)unused, 10 / (1 + exp(-(x - 2) / 0.5)); }
static double peak(double x, double unused) { return (void)unused, 3 * exp(-((x - 1.5) / 0.4) * ((x - 1.5) / 0.4)); }
static double surface(double x1, double x2) { return 1.5 * exp(-0.7 * x1) * x2 + 0.3 * x1; }

static void make_data(const char *name, function f, int columns, double noise) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(columns == 1 ? "x,y\n" : "x1,x2,y\n", file);
    for (int i = 0; i < 60; i++) {
        double x1 = 0.05 * i, x2 = columns == 2 ? 1 + uniform_at(5, (uint64_t)i, 1) : 0;
        double y = f(x1, x2) + uniform_at(6, (uint64_t)i, noise);
        if (columns == 1) fprintf(file, "%.17g,%.17g\n", x1, y);
        else fprintf(file, "%.17g,%.17g,%.17g\n", x1, x2, y);
    }
    fclose(file);
}

/* Exact data give the parameters back to rounding, which these well conditioned problems multiply
 * by less than 1000. */
static void exact_data_give_their_parameters_back(void **state) {
    (void)state;
    double accurate = 1000 * 2.2e-16;
    make_data("decay.csv", decay, 1, 0);
    converges("cotangent fit --json 'a*exp(-k*x) + c' decay.csv a=1 k=0.5 c=0");
    close_to("a", number_at("params", "a"), 2.5, accurate);
    close_to("k", number_at("params", "k"), 1.3, accurate);
    close_to("c", number_at("params", "c"), 0.2, accurate);
    assert_true(number_at(NULL, "rss") < 1e-28);
    make_data("logistic.csv", logistic, 1, 0);
    converges("cotangent fit --json 'top/(1 + exp(-(x - x0)/w))' logistic.csv top=5 x0=1 w=1");
    close_to("top", number_at("params", "top"), 10, accurate);
    close_to("x0", number_at("params", "x0"), 2, accurate);
    close_to("w", number_at("params", "w"), 0.5, accurate);
    make_data("peak.csv", peak, 1, 0);
    converges("cotangent fit --json 'h*exp(-((x - m)/s)**2)' peak.csv h=1 m=1 s=1");
    close_to("h", number_at("params", "h"), 3, accurate);
    close_to("m", number_at("params", "m"), 1.5, accurate);
    close_to("s", number_at("params", "s"), 0.4, accurate);
    make_data("surface.csv", surface, 2, 0);
    converges("cotangent fit --json 'a*exp(-k*x1)*x2 + c*x1' surface.csv a=1 k=0 c=0");
    close_to("a", number_at("params", "a"), 1.5, accurate);
    close_to("k", number_at("params", "k"), 0.7, accurate);
    close_to("c", number_at("params", "c"), 0.3, accurate);
}

/* Fewer digits take fewer steps, and these digits are right. */
static void a_tolerance_saves_steps(void **state) {
    (void)state;
    make_data("noisy.csv", decay, 1, 0.1);
    converges("cotangent fit --json 'a*exp(-k*x) + c' noisy.csv a=1 k=0.5 c=0");
    double all = number_at(NULL, "iterations"), k = number_at("params", "k");
    converges("cotangent fit --json 'a*exp(-k*x) + c' noisy.csv a=1 k=0.5 c=0 --tolerance 1e-3");
    assert_true(number_at(NULL, "iterations") < all);
    close_to("k", number_at("params", "k"), k, 1e-3);
    converges("cotangent fit --json 'a*exp(-k*x) + c' noisy.csv a=1 k=0.5 c=0 --tolerance 1e-14");
    assert_true(number_at(NULL, "iterations") == all && number_at("params", "k") == k);
}

/* A parameter whose true value is 0 has no relative error; the fit must end all the same. */
static void a_parameter_may_be_zero(void **state) {
    (void)state;
    make_data("decay.csv", decay, 1, 0);
    converges("cotangent fit --json 'a*exp(-k*x) + 0.2 + z*sin(x)' decay.csv a=1 k=0.5 z=1");
    assert_true(fabs(number_at("params", "z")) < 1e-13);
}

/* With noise: the same minimum from other starts, and residuals to which every column of the
 * Jacobian is orthogonal. */
static void noise_does_not_move_the_minimum(void **state) {
    (void)state;
    make_data("noisy.csv", decay, 1, 0.1);
    converges("cotangent fit --json 'a*exp(-k*x) + c' noisy.csv a=1 k=0.5 c=0");
    double a = number_at("params", "a"), k = number_at("params", "k"), c = number_at("params", "c"), sa = 0, sk = 0,
           sc = 0;
    for (int i = 0; i < 60; i++) {
        double x = 0.05 * i, e = exp(-k * x), r = decay(x, 0) + uniform_at(6, (uint64_t)i, 0.1) - a * e - c;
        sa += r * e, sk += r * a * x * e, sc += r;
    }
    assert_true(fabs(sa) < 1e-12 && fabs(sk) < 1e-12 && fabs(sc) < 1e-12);
    assert_true(fabs(a - 2.5) < 3 * number_at("stderr", "a") && fabs(k - 1.3) < 3 * number_at("stderr", "k"));
    close_to("sd", number_at(NULL, "residual_sd"), 0.1 / sqrt(3), 0.2);
    converges("cotangent fit --json 'a*exp(-k*x) + c' noisy.csv a=50 k=10 c=-3");
    close_to("a", number_at("params", "a"), a, 1e-10);
    close_to("k", number_at("params", "k"), k, 1e-10);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void results_have_two_forms(void **state) {
    (void)state;
    put_file("c.csv", "y\n1\n2\n3\n");
    prints("cotangent fit c c.csv c=0",
           "   value  standard error  95 % confidence interval\n"
           "c  2.00   0.58            -0.48 … 4.48\n\n"
           "residual sum of squares      2\nresidual standard deviation  1\n"
           "rows                         3\nconverged in 2 iterations\n");
    prints_json("cotangent fit c c.csv c=0 --json");
    assert_non_null(strstr(last.out, "{\"c\":2},\"stderr\":{\"c\":0.5773502691896258},\"interval\":{\"c\":"));
    assert_non_null(strstr(last.out, ",\"rss\":2,\"iterations\":2,\"converged\":true,\"residual_sd\":1,\"rows\":3}\n"));
    const char *interval = strstr(last.out, "\"interval\":{\"c\":[") + strlen("\"interval\":{\"c\":[");
    double      half = 0.95 / sqrt(2 * 0.975 * 0.025) / sqrt(3); /* two degrees of freedom */
    close_to("low", strtod(interval, NULL), 2 - half, 1e-14);
    close_to("high", strtod(strchr(interval, ',') + 1, NULL), 2 + half, 1e-14);
    put_file("l.csv", "y x\n1 1\n2 2\n");
    prints(
        "cotangent fit 'long_name*x + b' l.csv long_name=1 b=0",
        "           value  standard error  95 % confidence interval\n"
        "long_name  1      unknown\nb          0      unknown\n\nresidual sum of squares      0\n"
        "residual standard deviation  unknown: as many parameters as rows\nrows                         2\nconverged "
        "in 0 iterations\n");
    prints_json("cotangent fit 'a*x + b' l.csv a=1 b=0 --json");
    assert_non_null(strstr(last.out, "\"stderr\":{\"a\":null,\"b\":null}"));
    assert_non_null(strstr(last.out, "\"interval\":{\"a\":null,\"b\":null}"));
    assert_non_null(strstr(last.out, "\"residual_sd\":null"));
}

/* Of one and two degrees of freedom there are formulas: tan(0.475 π), 0.95/√(2·0.975·0.025). The
 * others come from integrating the density, by Simpson's rule, to some ten digits. */
static void intervals_are_students(void **state) {
    (void)state;
    static const struct {
        int64_t degrees;
        double  t;
    } known[] = {{3, 3.182446305}, {5, 2.570581836}, {10, 2.228138852}, {29, 2.045229642}, {100, 1.983971519},
                 {999, 1.962341461}, {1000, 1.962339081}, {100000, 1.959987708}};
    assert_true(fabs(fit_student(1) - tan(0.475 * acos(-1))) < 1e-13);
    assert_true(fabs(fit_student(2) - 0.95 / sqrt(2 * 0.975 * 0.025)) < 1e-14);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        assert_true(fabs(fit_student(known[k].degrees) - known[k].t) < 1e-9);
    assert_true(isnan(fit_student(0)));
}

static void digits_are_those_that_errors_justify(void **state) {
    (void)state;
    static const struct {
        double      v, error;
        const char *text;
    } cases[] = {
        {2.0700000000000003, 0.0794, "2.070"}, {-0.1, 0.2174, "-0.10"}, {338.0012, 3.16, "338.0"},
        {3.9039e-4, 4.25e-6, "0.0003904"},     {5.5e-12, 3.1e-14, "5.500e-12"}, {56789, 1234, "5.68e+04"},
        {12.5, 0.996, "12.5"},                 {1, 9.96, "1"},          {0, 0.5, "0.00"},
        {1.25, 0, "1.25"},                     {1.25, NAN, "1.25"},     {1e20, 1, "1e+20"},
        {0.004, 70, "0"},                      {0.1, 1e-30, "0.1"},
        /* of an error of rounding alone: what every double holds */
        {1.9999999999999991, 8.9e-16, "2"},    {2.0000000000000027, 8.9e-16, "2"},
        {2.00000000000027, 8.9e-14, "2.00000000000027"},
    };
    char buf[32];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_string_equal(fit_rounded(cases[k].v, cases[k].error, buf), cases[k].text);
}

static void columns_are_found(void **state) {
    (void)state;
    static const char *const lines[] = {
        "cotangent fit --json 'a*x' two.txt a=1",                  /* without names: y, x */
        "cotangent fit --json 'a*x1' two.txt a=1",                 /* x1 is x */
        "cotangent fit --json 'a*x' - a=1 < two.txt",              /* the standard input */
        "cotangent fit --json 'a*x' a=1 two.txt",                  /* in any order */
        "cotangent fit --json 'a*x' turned.txt a=1 --y 2",         /* by number */
        "cotangent fit --json 'a*time' named.csv a=1 --y 'the y'", /* by names, quoted or not */
        "cotangent fit --json 'a*x' named.csv a=1 --y 'the y'",    /* x: the first beside y */
        "cotangent fit --json 'a*time' named.csv a=1 --y 3",
        "cotangent fit --json -f model.txt two.txt a=1",
        "cotangent fit --json -f - two.txt a=1 < model.txt",
        "cotangent fit --json 'a*x2' three.txt a=1",
        "cotangent fit --json 'h = 2*a; h*x/2' two.txt a=1",
        "cotangent fit --json 'e*x' two.txt e=1", /* a constant's name, given */
    };
    put_file("two.txt", "3 1\n6 2\n9 3\n");
    put_file("turned.txt", "1,3\n2,6\n3,9\n");
    put_file("named.csv", "time,site,\"the y\"\r\n1,a,3\r\n2,b,6\r\n3,c,9\r\n");
    put_file("three.txt", "3 0 1\n6 0 2\n9 0 3\n");
    put_file("model.txt", "# proportional\na*x\n");
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        converges(lines[k]);
        close_to(lines[k], number_at("params", strstr(lines[k], " e=") ? "e" : "a"), 3, 1e-15);
    }
}

static void mistakes_are_said(void **state) {
    (void)state;
    put_file("l.csv", "y,x\n1,1\n2,2\n3,3.5\n");
    put_file("t.csv", "t,t,v\n1,2,3\n4,5,6\n");
    put_file("n.csv", "1,2\n3,4\n5,7\n");
    fails("cotangent fit", 2, "fit needs an expression: cotangent fit EXPR DATA name=start… [options]", "");
    fails("cotangent fit 'a*x' a=1", 2, "fit needs data: cotangent fit EXPR DATA name=start… [options]", "");
    fails("cotangent fit 'a*x' l.csv", 2, "fit needs parameters to find: name=start for each", "");
    fails("cotangent fit 'a*x' l.csv m.csv a=1", 2, "'m.csv' is not name=start; the data are in l.csv", "");
    fails("cotangent fit 'a*x' l.csv a=1 a=2", 2, "a is given twice", "");
    fails("cotangent fit 'a*x' l.csv b=2", 2, "the expression has no name b; it has a and x", "");
    fails("cotangent fit 'alpha*x' l.csv alpa=2", 2, "the expression has no name alpa; did you mean alpha?", "");
    fails("cotangent fit '1 + 2' l.csv b=2", 2, "the expression has no name b: it needs no values", "");
    fails("cotangent fit 'a*z' l.csv a=1", 2,
          "z is neither a parameter (z=start) nor a column of l.csv, whose columns are y and x", "");
    fails("cotangent fit 'a*z' n.csv a=1", 2,
          "z is neither a parameter (z=start) nor a column of n.csv, whose columns are 1 to 2, without names; x, or "
          "x1, x2, … stand for those beside the "
          "fitted one",
          "");
    put_file("s.csv", "time (s),y\n1,2\n2,4\n3,6\n");
    fails("cotangent fit 'a*time' s.csv a=1", 2,
          "time is neither a parameter (time=start) nor a column of s.csv, whose columns are time (s) and y; x, or x1, "
          "x2, … stand for those beside the "
          "fitted one",
          "");
    assert_int_equal(sh("cotangent fit 'a*x' s.csv a=1"), 0);
    fails("cotangent fit 'y ~ a*x' l.csv a=1", 2,
          "a model is written without ~, the right side alone: 'a*x'; --y NAME chooses the column that it is fitted to",
          "");
    fails("cotangent fit 'a*x2' l.csv a=1", 2,
          "x2 is neither a parameter (x2=start) nor a column of l.csv, whose columns are y and x", "");
    fails("cotangent fit 'a*y' l.csv a=1", 2, "the expression uses y, the column that it is fitted to", "");
    fails("cotangent fit 'a*y' n.csv a=1", 2, "the expression uses y, the column that it is fitted to", "");
    fails("cotangent fit 'a*x' l.csv x=1 a=1", 2,
          "x is a parameter and a column of l.csv; give the parameter another name", "");
    fails("cotangent fit 'a*x' l.csv a=[1,2]", 2, "a starts at one real number, not at f64 of shape (2,)", "");
    fails("cotangent fit 'a*x' l.csv 'a=cast(1, i64)'", 2, "a starts at one real number, not at i64 of shape ()", "");
    fails("cotangent fit 'a*x' l.csv a=nan", 2, "a starts at nan; a start is finite", "");
    fails("cotangent fit 'a*x' l.csv a=-inf", 2, "a starts at infinity; a start is finite", "");
    fails("cotangent fit 'a*x' l.csv a=1 --y z", 2, "l.csv has no column z; its columns are y and x", "");
    fails("cotangent fit 'a*x' n.csv a=1 --y 3", 2, "n.csv has no column 3; its columns are 1 to 2, without names", "");
    fails("cotangent fit 'a*x' t.csv a=1", 2,
          "t.csv has no column y; its columns are t, t and v; choose one with --y NAME", "");
    put_file("bars.csv", "x|y\n1|2\n2|3\n");
    fails("cotangent fit 'a*x' bars.csv a=1", 2,
          "bars.csv has no column y; its only column is x|y (commas, semicolons, tabs or blanks stand between cells); "
          "choose one with --y NAME",
          "");
    fails("cotangent fit l.csv 'a*x' a=1", 2,
          "the expression is 'l.csv', which is the name of a file: the expression comes first, then the data", "");
    fails("cotangent fit 'a*x' data=l.csv a=1", 2,
          "the expression has no name data; the data are given by the name of their file alone: l.csv", "");
    fails("cotangent fit 'a*x' @l.csv a=1", 2, "the data are named without @: l.csv", "");
    fails("cotangent fit 'a*x' @nowhere.csv a=1", 3, "cannot read @nowhere.csv: No such file or directory", "");
    fails("cotangent fit 'a*x' l.csv a=n.csv", 2,
          "a: n.csv is the name of a file, and values are read from .npy, .npz and .safetensors files: @FILE.npy", "");
    fails("cotangent fit 'a*x' t.csv a=1 --y t", 2, "t.csv has more than one column t; choose one by its number: --y N",
          "");
    fails("cotangent fit 'a*t' t.csv a=1 --y v", 2, "t.csv has more than one column t; rename one", "");
    put_file("e.csv", "y,e\n1,2\n2,3\n");
    fails("cotangent fit 'a*e' e.csv a=1", 2, "e is a number in expressions and a column of e.csv; rename the column",
          "");
    put_file("u8.csv", "y,u7,u8\n1,2,3\n2,3,4\n");
    fails("cotangent fit 'a*u7 + b*u8' u8.csv a=1 b=1", 2,
          "u8 is a dtype in expressions and a column of u8.csv; rename the column", "");
    fails("cotangent fit -f - - a=1", 2, "expected an expression; the text is empty", "");
    put_file("model.txt", "a*x");
    fails("cotangent fit -f - - a=1 < model.txt", 2,
          "only one of the expression and the data can come from the standard input", "");
    fails("cotangent fit 'a*x' l.csv a=1 --tolerance 2", 2, "--tolerance is a number between 0 and 1, not '2'", "");
    fails("cotangent fit 'a*x' l.csv a=1 --max-iterations 0", 2,
          "--max-iterations is a whole number from 1 to 1000000000, not '0'", "");
}

static void data_that_cannot_be_fitted_are_refused(void **state) {
    (void)state;
    put_file("l.csv", "y,x\n1,1\n2,2\n3,3.5\n");
    put_file("nan.csv", "y,x,z\n1,1,nan\n2,NaN,0\n");
    put_file("inf.csv", "y,x\n1,1\n-inf,2\n");
    put_file("none.csv", "y,x\n");
    put_file("odd.csv", "y,x\n1,2\n3\n");
    put_file("text.csv", "y,x\n1,2\n3,four\n");
    put_file("two.csv", "y,x\n1,2\n3,4\n");
    fails("cotangent fit 'a*x' nan.csv a=1", 1,
          "row 2 (line 3 of nan.csv), column x: NaN; a fit needs finite numbers, and a # before the line leaves it out",
          "");
    assert_int_equal(sh("cotangent fit 'a*x' inf.csv a=1"), 1);
    assert_string_equal(last.err, "cotangent: row 2 (line 3 of inf.csv), column y: -inf; a fit needs finite numbers, "
                                  "and a # before the line leaves it out\n");
    /* columns that are not used may hold anything */
    assert_int_equal(sh("cotangent fit 'a' nan.csv a=1"), 0);
    fails("cotangent fit 'a*x' none.csv a=1", 1,
          "none.csv has no rows of data: nothing follows the names of its columns", "");
    fails("cotangent fit 'a*x' - a=1", 1, "the standard input has no rows of data: it is empty", "");
    fails("cotangent fit 'a*x + b + c*x**2' two.csv a=1 b=1 c=1", 1,
          "two.csv has 2 rows, too few for 3 parameters: it takes at least as many rows", "");
    fails(
        "cotangent fit 'a*x' odd.csv a=1", 3,
        "line 3 of odd.csv has 1 cell, and line 1 has 2 (cells stand between commas); a # before a line leaves it out",
        "");
    fails("cotangent fit 'a*x' text.csv a=1", 3,
          "row 2 (line 3 of text.csv), column x: 'four' is not a number; a # before the line leaves it out", "");
    fails("cotangent fit 'a*x' nowhere.csv a=1", 3, "cannot read nowhere.csv: No such file or directory", "");
    fails("cotangent fit 'a*x' . a=1", 3, "cannot read .: it is a directory", "");
    fails("cotangent fit 'x[:2]*a' l.csv a=1", 3,
          "[fit] the expression has shape (2,); it must have one value for each of the 3 rows", "");
    fails("cotangent fit 'a*x > 1' l.csv a=1", 3, "[fit] the expression is bool; only floats can be fitted", "");
    fails("cotangent fit 'log(a)*x' l.csv a=-1", 1,
          "[fit] the model is nan in row 1, where x = 1, at the start, a = -1; choose another, or leave the row out "
          "where none helps",
          "");
    fails("cotangent fit 'a*log(x-2)' l.csv a=1", 1,
          "[fit] the model is nan in row 1, where x = 1, at the start, a = 1; choose another, or leave the row out "
          "where none helps",
          "");
    fails("cotangent fit 'x/(x - a)' l.csv a=2", 1,
          "[fit] the model is infinite in row 2, where x = 2, at the start, a = 2; choose another, or leave the row "
          "out where none helps",
          "");
    fails("cotangent fit 'x*a' l.csv a=1e200", 1,
          "[fit] the model is off by 3.5e+200 in row 3 at the start, a = 1e+200, and no double holds the sum of such "
          "squares; choose another, or divide the data by a power of ten", "");
    fails("cotangent fit 'sqrt(a)*x' l.csv a=0", 1,
          "[fit] a derivative of the model is not finite at a = 0; try another start", "");
    fails("cotangent fit 'b + 0*c*x' l.csv b=2 c=1", 1,
          "[fit] the Jacobian is singular: the data do not determine c, which can change without changing the model; "
          "it stands at "
          "b = 2, c = 1",
          "");
    fails("cotangent fit 'floor(c)*x' l.csv c=1.5", 1,
          "[fit] the Jacobian is singular: the data do not determine c, which can change without changing the model; "
          "it stands at c = 1.5",
          "");
    assert_int_equal(sh("cotangent fit 'k*a*b*x' l.csv k=1 a=1 b=2"), 1);
    assert_non_null(strstr(last.err, "the data do not determine k, a and b, which can change together without changing "
                                     "the model; it stands at k = "));
}

static void no_convergence_prints_where_it_stands(void **state) {
    (void)state;
    make_data("decay.csv", decay, 1, 0.1);
    assert_int_equal(sh("cotangent fit 'a*exp(-k*x) + c' decay.csv a=1 k=0.5 c=0 --max-iterations 2"), 1);
    assert_string_equal(last.err, "");
    assert_non_null(strstr(last.out, "\na  "));
    assert_non_null(
        strstr(last.out, "no convergence in 2 iterations: the next step would still change a parameter by "));
    assert_non_null(strstr(last.out, " of itself; try another start, or more with --max-iterations\n"));
    prints_json("cotangent fit 'a*exp(-k*x) + c' decay.csv a=1 k=0.5 c=0 --max-iterations 2 --json");
    assert_int_equal(last.status, 1);
    assert_non_null(strstr(last.out, "\"iterations\":2,\"converged\":false,"));
    assert_non_null(strstr(last.out, "\"message\":\"no convergence in 2 iterations: "));
    assert_int_equal(sh("cotangent fit 'a*exp(-k*x) + c*k*0 + d - d' decay.csv a=1 k=0.5 c=0 d=1 --max-iterations 1"),
                     1);
    assert_non_null(strstr(last.out, "\na  "));
    assert_non_null(strstr(last.out, "unknown"));
    assert_non_null(strstr(
        last.out,
        "no convergence in 1 iteration; where it stands, the Jacobian is singular: the data do not determine c and d; "
        "try another start\n"));
    /* |b| + x must be more; its least is at a kink */
    put_file("less.csv", "y,x\n-1,1\n0,2\n1,3\n2,4\n");
    assert_int_equal(sh("cotangent fit 'abs(b) + x' less.csv b=0.001"), 1);
    assert_non_null(strstr(
        last.out,
        "no convergence: no step makes the residual sum of squares smaller, yet this is no minimum; is the model "
        "smooth there?\n"));
}

/* ---- the picture ----------------------------------------------------------------------------- */

static void pictures_are_well_formed(void **state) {
    (void)state;
    make_data("decay.csv", decay, 1, 0.1);
    make_data("surface.csv", surface, 2, 0.1);
    assert_int_equal(sh("cotangent fit 'a*exp(-k*x) + c' decay.csv a=1 k=0.5 c=0 --plot -"), 0);
    assert_true(well_formed(last.out) > 20);
    assert_int_equal(occurrences(last.out, "h0"), 121); /* points, residuals, one in the legend */
    assert_int_equal(occurrences(last.out, "class=\"fit\""), 2);
    assert_null(strstr(last.out, "nan"));
    assert_non_null(strstr(last.out, "<title>a*exp(-k*x) + c</title>"));
    assert_int_equal(sh("cotangent fit 'a*exp(-k*x1)*x2 + c*x1' surface.csv a=1 k=0 c=0 --plot -"), 0);
    well_formed(last.out);
    assert_int_equal(occurrences(last.out, "h0"), 61);
    assert_non_null(strstr(last.out, ">fitted value</text>"));
    /* The title is text, whatever characters it has. */
    assert_int_equal(sh("cotangent fit 'a*x*(1 if 2 < 3 else 0) # <b>&\"'\"'\"' \x01 \xff \xef\xbf\xbf größer' "
                        "decay.csv a=1 --plot -"),
                     0);
    well_formed(last.out);
    assert_non_null(strstr(
        last.out, "2 &lt; 3 else 0) # &lt;b&gt;&amp;&quot;' \xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd größer</title>"));
    /* An expression that mixes rows has no curve; one x only, one row only, constants, a pole
     * between the data. */
    assert_int_equal(sh("cotangent fit 'a*(x - mean(x**3))' decay.csv a=1 --plot -"), 0);
    well_formed(last.out);
    assert_int_equal(occurrences(last.out, "h0"), 181);
    put_file("same.csv", "y,x\n1,2\n1,2\n");
    assert_int_equal(sh("cotangent fit 'a*x' same.csv a=1 --plot -"), 0);
    well_formed(last.out);
    put_file("one.csv", "y,x\n5,0\n");
    assert_int_equal(sh("cotangent fit 'a + 0*x' one.csv a=1 --plot -"), 0);
    well_formed(last.out);
    put_file("pole.csv", "y,x\n-1,-1\n1,1\n2,0.5\n-2,-0.5\n");
    assert_int_equal(sh("cotangent fit 'a/x' pole.csv a=3 --plot -"), 0);
    well_formed(last.out);
    assert_int_equal(sh("cotangent fit 'a*log(x + 1.0001)' decay.csv a=3 --plot -"), 0);
    well_formed(last.out);
    put_file("huge.csv", "y,x\n1e150,-1e308\n2e150,1e308\n3e150,0\n");
    assert_int_equal(sh("cotangent fit 'a + 0*x' huge.csv a=1e150 --plot -"), 0);
    well_formed(last.out);
    assert_null(strstr(last.out, "inf"));
}

static void pictures_have_a_legend_and_the_values(void **state) {
    (void)state;
    put_file("line.csv", "x,y\n1,2\n2,4.1\n3,5.9\n4,8.3\n");
    assert_int_equal(sh("cotangent fit 'a*x+b' line.csv a=1 b=0 --plot -"), 0);
    well_formed(last.out);
    assert_non_null(strstr(last.out, ">data</text>"));
    assert_non_null(strstr(last.out, ">fit, with</text>"));
    assert_non_null(strstr(last.out, ">a = 2.070 ± 0.079</text>"));
    assert_non_null(strstr(last.out, ">b = -0.10 ± 0.22</text>"));
    prints("cotangent fit 'a*x+b' line.csv a=1 b=0 --chart | sed -n '1,5p;16,22p'",
           "a*x+b\n"
           "* fit   + data\n"
           "  │                                                               +\n"
           "8 ┤                                                            ****\n"
           "  │                                                       ******\n"
           "  │       *****\n"
           "  │  ******\n"
           "2 ┤  +\n"
           "  └──┬─────────┬─────────┬──────────┬─────────┬─────────┬─────────┬──\n"
           "    1.0       1.5       2.0        2.5       3.0       3.5       4.0\n"
           "                                   x\n\n");
    put_file("plane.csv", "y,u,v\n1,1,1\n2,1,2\n4.5,2,2\n");
    prints("cotangent fit 'a*u*v' plane.csv a=1 --chart | sed -n '1,2p;21p'",
           "a*u*v\nresiduals\n                                 fitted value\n");
    fails("cotangent fit 'a*x+b' line.csv a=1 b=0 --chart --plot -", 2,
          "--chart draws in the terminal; it does not go together with --json and --plot -", "");
}

static void pictures_are_put_whole_or_not_at_all(void **state) {
    (void)state;
    struct stat about;
    char        path[128];
    make_data("decay.csv", decay, 1, 0.1);
    assert_int_equal(sh("cotangent fit 'a*exp(-k*x) + c' decay.csv a=1 k=0.5 c=0 --json --plot p.svg"), 0);
    assert_string_equal(last.err, "cotangent: wrote p.svg\n");
    assert_int_equal(last.out[0], '{');
    snprintf(path, sizeof path, "%s/p.svg", folder);
    char *text = slurp(path);
    well_formed(text);
    free(text);
    assert_int_equal(sh("rm -f k.svg; cotangent fit 'a*x' decay.csv a=nan --plot k.svg; test ! -e k.svg"), 0);
    put_file("keep.svg", "mine");
    /* singular: nothing is written */
    assert_int_equal(sh("cotangent fit 'a*b*x' decay.csv a=1 b=1 --plot keep.svg"), 1);
    assert_int_equal(sh("cat keep.svg"), 0);
    assert_string_equal(last.out, "mine");
    assert_int_equal(sh("cotangent fit 'a*exp(-k*x) + c' decay.csv a=1 k=0.5 c=0 --max-iterations 1 --plot limit.svg"),
                     1);
    snprintf(path, sizeof path, "%s/limit.svg", folder);
    assert_int_equal(stat(path, &about), 0); /* where it stands can be seen */
    fails("cotangent fit 'a*x' decay.csv a=1 --plot nowhere/p.svg", 3,
          "cannot write nowhere/p.svg: No such file or directory", "");
    fails("cotangent fit 'a*x' decay.csv a=1 --plot .", 3, "cannot write .: it is a directory", "");
    assert_int_equal(sh("cotangent fit 'a*x' decay.csv a=1 --json --plot -"), 2);
    assert_non_null(strstr(last.out, "only one of --json and --plot - can go to the standard output"));
    assert_int_equal(sh("ls | grep -c 'new'"), 1); /* nothing unfinished lies about */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_data_are_fitted_from_both_starts),
        cmocka_unit_test(exact_data_give_their_parameters_back),
        cmocka_unit_test(a_tolerance_saves_steps),
        cmocka_unit_test(a_parameter_may_be_zero),
        cmocka_unit_test(noise_does_not_move_the_minimum),
        cmocka_unit_test(results_have_two_forms),
        cmocka_unit_test(columns_are_found),
        cmocka_unit_test(mistakes_are_said),
        cmocka_unit_test(data_that_cannot_be_fitted_are_refused),
        cmocka_unit_test(no_convergence_prints_where_it_stands),
        cmocka_unit_test(pictures_are_well_formed),
        cmocka_unit_test(intervals_are_students),
        cmocka_unit_test(digits_are_those_that_errors_justify),
        cmocka_unit_test(pictures_have_a_legend_and_the_values),
        cmocka_unit_test(pictures_are_put_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
