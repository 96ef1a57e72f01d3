/* ctest: timeout=240 */
/* test_locale.c: numbers are written and read with a decimal point, whatever locale the program
 * or the thread has chosen: in printed tapes, messages, explanations, expressions, traces, and
 * all that the command prints and reads.
 *
 * Everything is done in the locale "C" and again in locales with other decimal points, one of
 * them of several bytes, and must be the same bytes. The locales are made here by localedef, so
 * that none need be installed; without it this is passed over. */
#define _GNU_SOURCE /* uselocale, mkdtemp */
#include "rules/elementwise_ids.h"
#include "support/tape_test.h"

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include "cotangent_command.h"
#include "base/number.h"
#include "expr/expr.h"
#include "ops/elementwise/elementwise.h"
#include "support/support.h"
#include "trace/trace.h"

/* ---- locales --------------------------------------------------------------------------------- */

static char folder[] = "/tmp/cotangent-locale-XXXXXX";

/* glibc itself leaks the list that it makes of LOCPATH, each time it looks for a locale. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:argz_add_sep\n"; }

static const struct { const char *name, *point; } locales[] = {{"comma", "<U002C>"}, {"arabic", "<U066B>"}};
static bool made;

static bool make_locale(const char *name, const char *point) {
    char  line[512], path[128];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s.src", folder, name);
    if (!(file = fopen(path, "w"))) return false;
    static const char *const plain[] = {"LC_CTYPE", "LC_COLLATE", "LC_MONETARY", "LC_TIME", "LC_MESSAGES"};
    fprintf(file, "comment_char %%\nescape_char /\n");
    for (int k = 0; k < TEST_COUNT(plain); k++) fprintf(file, "%s\ncopy \"POSIX\"\nEND %s\n", plain[k], plain[k]);
    fprintf(file, "LC_NUMERIC\ndecimal_point \"%s\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n", point);
    fclose(file);
    snprintf(line, sizeof line, "localedef -c -f UTF-8 -i %s %s/%s >/dev/null 2>&1", path, folder, name);
    /* it warns about what the locale leaves out, with status 1 */
    int code = system(line);
    snprintf(path, sizeof path, "%s/%s/LC_NUMERIC", folder, name);
    return code != -1 && access(path, R_OK) == 0;
}

static int make_locales(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    made = true;
    for (int k = 0; k < TEST_COUNT(locales); k++) made = made && make_locale(locales[k].name, locales[k].point);
    setenv("LOCPATH", folder, 1);
    if (chdir(folder) != 0) return -1;
    FILE *data = fopen("data.csv", "w");
    if (!data) return -1;
    fputs("y,x\n1.5,0.5\n2.75,1.5\n4.25,2.5\n", data);
    fclose(data);
    if (!made)
        print_message(
            "localedef made no locale with another decimal point (Debian: package locales), so none is looked at\n");
    return 0;
}

static int remove_locales(void **state) {
    char line[64];
    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

/* The locale of the whole program; it is seen to have another decimal point. */
static void enter(const char *name) {
    char text[16];
    assert_non_null(setlocale(LC_ALL, name));
    snprintf(text, sizeof text, "%.1f", 2.5);
    assert_int_equal(strcmp(text, "2.5") == 0, strcmp(name, "C") == 0);
}

/* ---- all that is written --------------------------------------------------------------------- */

static cot_var half_squared(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_mul(cot_mul(xs[0], xs[0]), 0.5);
}

/* A wrong derivative: 2.5 times the right one. */
static int wrong_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    for (int64_t i = 0; i < y->size; i++) ((double *)y->data)[i] = ((double *)xs[0].data)[i] * 0.75;
    return 0;
}
static int wrong_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, 1.875);
    return 0;
}
static const cot_custom wrong = {.name = "wrong", .value = wrong_value, .vjp = wrong_vjp};
static cot_var          call_wrong(int n, const cot_var *xs, void *user) { return cot_call(&wrong, n, xs, user); }

static void tell_error(cot_tape *t, FILE *out) {
    fprintf(out, "%s\n", cot_tape_message(t));
    cot_tape_clear_error(t);
}

static void write_library(FILE *out) {
    char      text[4096];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_name(cot_scalar(t, 2.5), "x"), v = cot_tensor(t, COT_F32, COT_SHAPE(2), (float[]){0.25f, -1.5f});
    cot_var   y = cot_add(cot_mul(x, 1.75), cot_sum(cot_exp(cot_mul(v, 1e-3)), COT_ALL));
    cot_tape_print(t, out);
    cot_tape_print_sweep(y, out);
    cot_explain(cot_log(cot_sub(x, 2.75)), text, sizeof text);
    fprintf(out, "%s\n", text);
    cot_report(cot_abs(cot_sub(x, 2.5)), text, sizeof text);
    fprintf(out, "%s\n", text);
    cot_dropout(v, 1.5, cot_key_of(1)), tell_error(t, out);
    cot_arange(t, COT_F64, 0.5, 1.5, NAN), tell_error(t, out);
    cot_huber(v, v, -0.125), tell_error(t, out);
    cot_uniform(t, cot_key_of(1), COT_F64, COT_SHAPE(2), 1.5, 0.5), tell_error(t, out);
    cot_adamw_step(0, NULL, NULL, NULL, (cot_adamw){.rate = -0.5}), tell_error(t, out);
    cot_check_report report;
    cot_array        at = {COT_F64, COT_SHAPE(1), 1, &(double){1.5}};
    cot_check_grads(half_squared, NULL, 1, &at, 2, &report);
    fprintf(out, "%s\n", report.message);
    cot_check_grads(call_wrong, NULL, 1, &at, 1, &report);
    fprintf(out, "%s\n", report.message);
    cot_tape_destroy(t);
    for (int op = 0; op < OP_elementwise_count; op++) {
        cot__formula(op, cot__elementwise_table[op].value, text, sizeof text);
        fprintf(out, "%s\n", text);
    }
}

static void write_expressions(FILE *out) {
    static const char *const lines[] = {"2.5 + .5e1 + 1_000.25",
                                        "norm(x, 1.5)",
                                        "1.5x",
                                        "clip(x, 0.5, 1.25)",
                                        "dropout(x, 2.5, key(1))",
                                        "gelu(x)*1e-5",
                                        "x[2.5]",
                                        "layer_norm(x)",
                                        "1,5"};
    for (int k = 0; k < TEST_COUNT(lines); k++) {
        cot_tape       *t = cot_tape_create(NULL);
        cot__expr_error error = {0};
        cot__expr      *e = cot__expr_parse(lines[k], strlen(lines[k]), &error);
        double          data[2] = {0.125, 2.5}, sum = NAN;
        cot__expr_input in = {"x", cot_tensor(t, COT_F64, COT_SHAPE(2), data), NULL};
        cot_var         y = COT_NONE;
        if (e) y = cot__expr_run(e, t, 1, &in, &error, NULL, NULL);
        if (cot_is_valid(y)) sum = cot_value(cot_sum(y, COT_ALL));
        fprintf(out, "%s: %lld millionths %s\n", lines[k], (long long)(0 * sum == 0 ? floor(1e6 * sum) : 0),
                error.message);
        cot_tape_print(t, out);
        cot__expr_free(e);
        cot_tape_destroy(t);
    }
}

/* The command as a function, its output into a file. */
static void write_command(FILE *out) {
    static char lines[][8][32] = { /* argv is no const */
        {"eval", "x*2.5", "x=[0.5,1.25]"},
        {"grad", "x*y + sin(x)", "x=pi/4", "y=3.5"},
        {"grad", "--json", "x*y + sin(x)", "x=0.75", "y=1e-3"},
        {"hess", "x**2.5*y", "x=1.5", "y=2.5"},
        {"jac", "--sparse", "x**2*0.5", "x=[0.5,1.5]"},
        {"check", "x*y", "x=1.5", "y=2.5"},
        {"taylor", "exp(x)", "x=0.5", "--order", "3"},
        {"explain", "log(x - 2.75)", "x=2.5"},
        {"trace", "x*y + sin(x)", "x=0.75", "y=2.5"},
        {"trace", "--json", "x*y + sin(x)", "x=0.75", "y=2.5"},
        {"cost", "x*y + sin(x)", "x=0.75", "y=2.5"},
        {"fit", "a*x + b", "data.csv", "a=0.5", "b=1.5", "--tolerance", "1.5e-9"},
        {"fit", "a*x + b", "data.csv", "a=0.5", "b=1.5", "--plot", "-"},
        {"fit", "a*exp(b*x)", "data.csv", "a=0.5", "b=1.5", "--max-iterations", "1"},
        {"eval", "dropout(x, 2.5, key(1))", "x=[0.5,1.5]"},
        {"eval", "x", "x=uniform(1,[3],0.125)"},
    };
    for (int k = 0; k < TEST_COUNT(lines); k++) {
        char name[] = "cotangent", *argv[10] = {name};
        int  n = 1;
        for (int i = 0; i < 8 && lines[k][i][0]; i++) argv[n++] = lines[k][i];
        fflush(stdout), fflush(stderr), fflush(out);
        int kept = dup(1), told = dup(2);
        dup2(fileno(out), 1), dup2(fileno(out), 2);
        int status = cotangent_command(n, argv);
        fflush(stdout), fflush(stderr);
        dup2(kept, 1), dup2(told, 2);
        close(kept), close(told);
        fseek(out, 0, SEEK_END);
        fprintf(out, "status %d\n", status);
    }
}

static char *everything(void (*write)(FILE *)) {
    char  path[64];
    FILE *out;
    snprintf(path, sizeof path, "%s/out", folder);
    out = fopen(path, "w+");
    assert_non_null(out);
    write(out);
    long  n = (fseek(out, 0, SEEK_END), ftell(out));
    char *text = calloc(1, (size_t)n + 1);
    assert_non_null(text);
    rewind(out);
    assert_int_equal(fread(text, 1, (size_t)n, out), n);
    fclose(out);
    return text;
}

static void same_text(const char *where, const char *want, const char *got) {
    if (strcmp(want, got) == 0) return;
    size_t n = 0;
    while (want[n] == got[n]) n++;
    while (n > 0 && want[n - 1] != '\n') n--;
    test_note("%s: \"%.*s\" instead of \"%.*s\"", where, (int)strcspn(got + n, "\n"), got + n,
              (int)strcspn(want + n, "\n"), want + n);
}

static void (*const writers[])(FILE *) = {write_library, write_expressions, write_command};

static void the_program_may_choose_a_locale(void **state) {
    (void)state;
    if (!made) skip();
    for (int w = 0; w < TEST_COUNT(writers); w++) {
        enter("C");
        char *want = everything(writers[w]);
        /* there is something to see */
        assert_non_null(strstr(want, w == 1 ? "1007750000 millionths" : "2.5"));
        for (int k = 0; k < TEST_COUNT(locales); k++) {
            enter(locales[k].name);
            char *got = everything(writers[w]);
            /* and it is still the program's */
            assert_string_equal(setlocale(LC_ALL, NULL), locales[k].name);
            enter("C");
            same_text(locales[k].name, want, got);
            free(got);
        }
        free(want);
    }
    test_verdict();
}

static void a_thread_may_choose_a_locale(void **state) {
    (void)state;
    if (!made) skip();
    enter("C");
    for (int w = 0; w < TEST_COUNT(writers); w++) {
        char *want = everything(writers[w]);
        for (int k = 0; k < TEST_COUNT(locales); k++) {
            locale_t mine = newlocale(LC_ALL_MASK, locales[k].name, (locale_t)0);
            assert_true(mine != (locale_t)0);
            locale_t before = uselocale(mine);
            char    *got = everything(writers[w]);
            assert_true(uselocale(before) == mine);
            freelocale(mine);
            same_text(locales[k].name, want, got);
            free(got);
        }
        free(want);
    }
    test_verdict();
}

/* ---- one number ------------------------------------------------------------------------------ */

#define FORMATS(X)                                                                                                     \
    X("%g", 2.5)                                                                                                       \
    X("%.17g|%g|%s", 0.1, -1e-300, "x") X("%8.3f|%-8.3f|%+.1e|% g", 2.5, 2.5, 12345.678, 1.5)                          \
        X("%*.*f|%-*g|%.*s|%5d%%", 9, 2, 3.14159, 7, 0.5, 2, "abc", 42)                                                \
            X("%lld %zu %ld %u %x %c %p", -5LL, (size_t)7, 3L, 4u, 255, 'c', (void *)0)                                \
                X("%.0f %.3g %G %E %F", 1e22, 1e22, 1e-10, 0.5, 2.25)                                                  \
                    X("%g %g %8g|", (double)INFINITY, (double)-INFINITY, (double)INFINITY) X("%.300f", 1e-5)           \
                        X("%s", "") X("100%%") X("%.*g", -1, 0.123456789) X("%jd %td", (intmax_t)-3, (ptrdiff_t)4)     \
                            X("%a %A", 0.1, 2.5)

/* snprintf in the locale C is the reference, into buffers of every size up to beyond the text. */
static void formats_are_those_of_printf(void **state) {
    (void)state;
    for (int k = -1; k < (made ? TEST_COUNT(locales) : 0); k++) {
        const char *where = k < 0 ? "C" : locales[k].name;
#define TRY(...)                                                                                                       \
    for (size_t size = 0; size < 400; size += size < 40 ? 1 : 37) {                                                    \
        char want[512], got[512];                                                                                      \
        memset(want, 7, sizeof want), memset(got, 7, sizeof got);                                                      \
        enter("C");                                                                                                    \
        int length = snprintf(want, size, __VA_ARGS__);                                                                \
        setlocale(LC_ALL, where);                                                                                      \
        int told = cot__format(got, size, __VA_ARGS__);                                                                \
        if (told != length || memcmp(want, got, size))                                                                 \
            test_note("%s, size %zu: %d \"%s\", not %d \"%s\"", where, size, told, got, length, want);                 \
    }
        FORMATS(TRY)
    }
    enter("C");
    test_verdict();
}

static void reading_is_that_of_strtod(void **state) {
    (void)state;
    static const char *const texts[] = {"2.5",
                                        "-2.5e3x",
                                        "+.5",
                                        "1.",
                                        ".",
                                        "",
                                        "-",
                                        "e5",
                                        "1e",
                                        "1e+",
                                        "1.5e-",
                                        "0x1.8p3",
                                        "0X.8P-1z",
                                        "0x",
                                        "0x.",
                                        "0xg",
                                        "0x1p",
                                        "inf",
                                        "-INFINITY",
                                        "nan",
                                        "nan(12)",
                                        "nano",
                                        " \t7.25 ",
                                        "00.001",
                                        "0e999999999999999999999",
                                        "1e999999999999999999999",
                                        "1e-99999999999999999999",
                                        "-0.0",
                                        "1,5",
                                        ",5",
                                        "1.2.3",
                                        "4.9e-324",
                                        "2.2250738585072011e-308",
                                        "1.7976931348623159e308",
                                        "9007199254740993.0",
                                        "9007199254740992.99999999999",
                                        "0.1e1_0",
                                        "i",
                                        "n",
                                        "+inf",
                                        "infx",
                                        "1e5.5",
                                        "0x1.fffffffffffff8p0",
                                        "0x1.00000000000008000000000000000000001p0",
                                        "123456789012345678901234567890",
                                        "٫5",
                                        "1٫5",
                                        "\2402.5"};
    char deep[3000];
    for (int k = -1; k < (made ? TEST_COUNT(locales) : 0); k++) {
        test_random r = test_random_of("reading", 0);
        for (int i = 0; i < TEST_COUNT(texts) + 500; i++) {
            const char *text = i < TEST_COUNT(texts) ? texts[i] : deep;
            char       *end = NULL, *stop = NULL;
            int         n = (int)test_uniform(&r, 1, i % 10 == 0 ? 1500 : 30), point = (int)test_uniform(&r, -1, n);
            if (text == deep) { /* halfway cases and long tails among them */
                size_t at = 0;
                for (int d = 0; d < n; d++) {
                    if (d == point) deep[at++] = '.';
                    deep[at++] = (char)('0' + (i % 3 ? (int)test_uniform(&r, 0, 10) : d % 800 == 0));
                }
                snprintf(deep + at, 32, "e%d", (int)test_uniform(&r, -350, 330) - (i % 10 == 0 ? n : 0));
            }
            enter("C");
            double want = strtod(text, &stop);
            float  narrow = strtof(text, NULL);
            setlocale(LC_ALL, k < 0 ? "C" : locales[k].name);
            double got = cot__read_number(text, &end);
            float  got_narrow = cot__read_float(text);
            if (!test_same(want, got) || !test_same((double)narrow, (double)got_narrow) || end != stop)
                test_note("%.60s: %a, not %a; %td, not %td", text, got, want, end - text, stop - text);
        }
    }
    enter("C");
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_those_of_printf),
        cmocka_unit_test(reading_is_that_of_strtod),
        cmocka_unit_test(the_program_may_choose_a_locale),
        cmocka_unit_test(a_thread_may_choose_a_locale),
    };
    return cmocka_run_group_tests(tests, make_locales, remove_locales);
}
