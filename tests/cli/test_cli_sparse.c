/* jac --sparse and hess --sparse: their output, that it equals the dense matrices, and that they
 * are quick where dense matrices would be too large. */
#include "support/cli_test.h"

#include <math.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST = 4096 };

/* The numbers of the (nested) list, or the one number, behind the first "key": from `text` on; how
 * many. */
static int numbers_behind(const char *text, const char *key, double *out) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *p = strstr(text, quoted);
    assert_non_null(p);
    int depth = 0, count = 0;
    p += strlen(quoted);
    do {
        if (*p == '[') depth++, p++;
        else if (*p == ']') depth--, p++;
        else if (*p == ',') p++;
        else {
            char *end;
            assert_true(count < MOST);
            out[count++] = strtod(p, &end);
            assert_ptr_not_equal(p, end);
            p = end;
        }
    } while (depth > 0);
    return count;
}

typedef struct sparse {
    int    rows, columns, entries;
    double start[MOST], column[MOST], value[MOST];
} sparse;

static void read_sparse(const char *text, sparse *s) {
    double shape[2];
    assert_int_equal(numbers_behind(text, "shape", shape), 2);
    s->rows = (int)shape[0], s->columns = (int)shape[1];
    assert_int_equal(numbers_behind(text, "row_start", s->start), s->rows + 1);
    s->entries = numbers_behind(text, "col", s->column);
    assert_int_equal(numbers_behind(text, "values", s->value), s->entries);
    assert_true(s->start[0] == 0 && s->start[s->rows] == s->entries);
}

/* Entry (i, j), 0 where there is none. */
static double entry(const sparse *s, int i, int j) {
    for (int e = (int)s->start[i]; e < (int)s->start[i + 1]; e++)
        if ((int)s->column[e] == j) return s->value[e];
    return 0;
}

static char *kept_output(const char *format, const char *arguments) {
    char line[2048];
    snprintf(line, sizeof line, format, arguments);
    prints_json(line);
    char *text = strdup(last.out);
    assert_non_null(text);
    return text;
}

/* Sums of products come in the same order from both: equal but for the rounding of a few. */
static void assert_close(double a, double b) {
    if (!(fabs(a - b) <= 1e-14 * fmax(1, fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static void jacobian_equals_the_dense_one(const char *arguments, const char *const *inputs, int64_t most_entries) {
    char *dense = kept_output("cotangent jac --json %s", arguments),
         *text  = kept_output("cotangent jac --sparse --json %s", arguments);
    double matrix[MOST];
    static sparse s;
    for (int64_t total = 0; *inputs; inputs++) {
        char key[32];
        snprintf(key, sizeof key, "\"%s\":", *inputs);
        const char *blocks = strstr(dense, "\"jacobian\""), *of = strstr(strstr(text, "\"jacobian\""), key);
        assert_non_null(of);
        read_sparse(of, &s);
        assert_int_equal(numbers_behind(blocks, *inputs, matrix), s.rows * s.columns);
        for (int i = 0; i < s.rows; i++)
            for (int j = 0; j < s.columns; j++) assert_close(entry(&s, i, j), matrix[i * s.columns + j]);
        total += s.entries;
        assert_true(total <= most_entries);
    }
    free(dense);
    free(text);
}

static void jacobians_equal_the_dense_ones(void **state) {
    (void)state;
    static const char *const x[] = {"x", NULL}, *const wx[] = {"W", "x", NULL}, *const yx[] = {"y", "x", NULL};
    jacobian_equals_the_dense_one("'x**2 + sin(x)' x=[1,2,3]", x, 3);
    /* tridiagonal */
    jacobian_equals_the_dense_one("'x[1:-1]**2 - x[:-2] + x[2:]*x[1:-1]' 'x=uniform(1,[12],1)'", x, 30);
    jacobian_equals_the_dense_one("'tanh(W @ x)' 'W=uniform(1,[3,4],1)' 'x=uniform(2,[4],1)'", wx, 24);
    jacobian_equals_the_dense_one("--mode reverse 'tanh(W @ x)' 'W=uniform(1,[3,4],1)' 'x=uniform(2,[4],1)'", wx, 24);
    jacobian_equals_the_dense_one("--mode forward 'tanh(W @ x)' 'W=uniform(1,[3,4],1)' 'x=uniform(2,[4],1)'", wx, 24);
    jacobian_equals_the_dense_one("'x*sum(y)' 'y=uniform(1,[2,3],1)' x=[1,2]", yx, 14);
    jacobian_equals_the_dense_one("'y*2 + x' 'y=uniform(1,[2,3],1)' x=[1,2,3]", yx, 12);
    jacobian_equals_the_dense_one("'softmax(x)' x=[1,2,4]", x, 9);
    jacobian_equals_the_dense_one("--dtype f32 'x[::2]/3' x=[1,2,3]", x, 2);
    jacobian_equals_the_dense_one("'x*y' x=2 y=3 --wrt x", x, 1);
    jacobian_equals_the_dense_one("'x*0 + [1, 2]' x=2", x, 2);
}

/* One input: the dense Hessian is one block. */
static void hessian_equals_the_dense_one(const char *arguments, int most_entries) {
    char *dense = kept_output("cotangent hess --json %s", arguments),
         *text  = kept_output("cotangent hess --sparse --json %s", arguments);
    double matrix[MOST];
    static sparse s;
    read_sparse(strstr(text, "\"hessian\""), &s);
    assert_int_equal(s.rows, s.columns);
    assert_true(s.entries <= most_entries);
    assert_int_equal(numbers_behind(strstr(dense, "\"x\":{"), "x\":{\"x", matrix), s.rows * s.rows);
    for (int i = 0; i < s.rows; i++)
        for (int j = 0; j < s.rows; j++) assert_close(entry(&s, i, j), matrix[i * s.rows + j]);
    free(dense);
    free(text);
}

static void hessians_equal_the_dense_ones(void **state) {
    (void)state;
    hessian_equals_the_dense_one("'sum(x**3)' x=[1,2,3]", 3);
    /* tridiagonal */
    hessian_equals_the_dense_one("'sum((x[1:] - x[:-1]**2)**2)' 'x=uniform(1,[12],1)'", 34);
    hessian_equals_the_dense_one("'logsumexp(x)' x=[1,2,3]", 9);
    hessian_equals_the_dense_one("'sum(tanh(x @ x))' 'x=uniform(1,[3,3],1)'", 81);
    hessian_equals_the_dense_one("'x**4' x=[3]", 1);
    hessian_equals_the_dense_one("'sum(x*y)' x=[1,2] y=3 --wrt x", 0);
    hessian_equals_the_dense_one("--dtype f32 'sum(x**3)/7' x=[1,2,3] --mode forward", 3);
}

static void they_print_entries(void **state) {
    (void)state;
    prints("cotangent jac --sparse 'x[1:]**2 - x[:-1]' x=[1,2,3]",
           "value = [3, 7]\nmode: forward, 2 colours\nd/dx: 2 × 3, 4 entries (row, column, value)\n  0 0  -1\n  0 1  "
           "4\n  1 1  -1\n  1 2  6\n");
    prints("cotangent jac --sparse 'sum(W*x)' W=[[1,2],[3,4]] x=5",
           "value = 50\nmode: reverse, 1 colour\nd/dW: 1 × 4, 4 entries (row, column, value)\n  0 0  5\n  0 1  5\n  0 "
           "2  5\n  0 3  5\n"
           "d/dx: 1 × 1, 1 entry (row, column, value)\n  0 0  10\n");
    prints("cotangent hess --sparse 'sum(x**3)*y' x=[1,2] y=1",
           "value = 9\nmode: forward over reverse, 2 colours\nhessian: 3 × 3, 6 entries (row, column, value)\nrows and "
           "columns: x from 0, y from 2\n"
           "  0 0  6\n  0 2  3\n  1 1  12\n  1 2  12\n  2 0  3\n  2 1  12\n");
    prints("cotangent jac --sparse --json 'y*x**2' x=[1,2,3] y=2 --wrt x",
           "{\"value\":[2,8,18],\"mode\":\"forward\",\"colours\":1,\"jacobian\":{\"x\":{\"shape\":[3,3],\"row_start\":["
           "0,1,2,3],\"col\":[0,1,2],"
           "\"values\":[4,8,12]}}}\n");
    prints("cotangent hess --sparse --json 'sum(x**3)*y' x=[1,2] y=1",
           "{\"value\":9,\"mode\":\"forward over "
           "reverse\",\"colours\":2,\"hessian\":{\"shape\":[3,3],\"row_start\":[0,2,4,6],\"col\":[0,2,1,2,0,1],"
           "\"values\":[6,3,12,12,3,12],\"offsets\":{\"x\":0,\"y\":2}}}\n");
    prints("cotangent jac --sparse --json --dtype f32 'x/3' x=1",
           "{\"value\":0.33333334,\"mode\":\"forward\",\"colours\":1,\"jacobian\":{\"x\":{\"shape\":[1,1],\"row_"
           "start\":[0,1],\"col\":[0],\"values\":[0.33333334]}}}\n");
    prints("cotangent jac --sparse --json 'log(x)' x=[0,1]",
           "{\"value\":[\"-inf\",0],\"mode\":\"forward\",\"colours\":1,\"jacobian\":{\"x\":{\"shape\":[2,2],\"row_"
           "start\":[0,1,2],\"col\":[0,1],"
           "\"values\":[\"inf\",1]}}}\n");
    prints("cotangent jac --sparse 'x*2' 'x=zeros([0])'",
           "value = [] of shape (0,)\nmode: forward, 0 colours\nd/dx: 0 × 0, 0 entries (row, column, value)\n");
    prints("cotangent hess --sparse --json 'sum(x)' x=[1,2]",
           "{\"value\":3,\"mode\":\"forward over "
           "reverse\",\"colours\":0,\"hessian\":{\"shape\":[2,2],\"row_start\":[0,0,0],\"col\":[],\"values\":[],"
           "\"offsets\":{\"x\":0}}}\n");
}

/* The dense matrices have 10^8 elements. Seconds are for busy machines and sanitizers; alone it
 * takes some hundredths of one. */
static void bands_are_quick(void **state) {
    (void)state;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_int_equal(sh("cotangent jac --sparse 'x[1:-1]**2 - x[:-2] + x[2:]' 'x=ones([10000])'"), 0);
    assert_non_null(strstr(
        last.out,
        "\nmode: forward, 3 colours\nd/dx: 9998 × 10000, 29994 entries (row, column, value)\n"
        "     0    0  -1\n     0    1  2\n     0    2  1\n  …\n  9997 9997  -1\n  9997 9998  2\n  9997 9999  1\n"));
    assert_int_equal(sh("cotangent hess --sparse 'sum(x[1:]*x[:-1]**2)' 'x=ones([10000])'"), 0);
    assert_non_null(strstr(
        last.out,
        " 3 colours\nhessian: 10000 × 10000, 29997 entries (row, column, value)\n     0    0  2\n     0    1  2\n"));
    prints_json("cotangent hess --sparse --json 'sum(x[1:]*x[:-1]**2)' 'x=ones([10000])'");
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true(to.tv_sec - from.tv_sec < 20);
}

/* A thousand inputs are too many blocks for a dense Hessian; a sparse one is one matrix. */
static void there_may_be_many_inputs(void **state) {
    (void)state;
    assert_int_equal(sh("seq 1000 | sed 's/.*/a&**2/' | paste -s -d+ > many; cotangent hess --sparse -f many $(seq "
                        "1000 | sed 's/.*/a&=1/')"),
                     0);
    assert_non_null(strstr(
        last.out, "mode: forward over reverse, 1 colour\nhessian: 1000 × 1000, 1000 entries (row, column, value)\n"));
    assert_non_null(strstr(last.out, ", a1000 from 999\n    0   0  2\n"));
}

/* Names are found by a table: eight times as many take some eight times as long, not 64. User time
 * of the children, the least of three. */
static void the_time_grows_with_the_inputs_not_with_their_square(void **state) {
    (void)state;
    double least[2] = {INFINITY, INFINITY};
    for (int i = 0; i < 6; i++) {
        struct rusage before, after;
        assert_int_equal(sh(i % 2 ? "seq 40000 | sed 's/^/a/' | paste -s -d+ > many"
                                  : "seq 5000 | sed 's/^/a/' | paste -s -d+ > many"),
                         0);
        getrusage(RUSAGE_CHILDREN, &before);
        assert_int_equal(sh(i % 2 ? "cotangent eval -f many $(seq 40000 | sed 's/.*/a&=1/')"
                                  : "cotangent eval -f many $(seq 5000 | sed 's/.*/a&=1/')"),
                         0);
        getrusage(RUSAGE_CHILDREN, &after);
        assert_string_equal(last.out, i % 2 ? "40000\n" : "5000\n");
        double took = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                      1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
        least[i % 2] = fmin(least[i % 2], took);
    }
    if (least[1] > 24 * least[0] + 0.05) fail_msg("%g s for 5000 inputs, %g s for 40000", least[0], least[1]);
}

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    fails("cotangent hess --sparse 'x**2' x=[1,2]", 2,
          "[hess] the value has shape (2,); only a value of one element has a Hessian", "");
    fails("cotangent hess 'x**2' x=2 --sparse --mode reverse", 2,
          "hess --sparse sweeps forward over the gradient; it has no --mode reverse", "");
    fails("cotangent jac 'x > 0' x=1 --sparse", 3, "[jac] the value is bool; only floats have derivatives", "");
    fails("cotangent jac --sparse 'softmax(x)' 'x=ones(9000)'", 3,
          "[jac] the pattern of (9000,9000) has more than 67108864 entries, here or on the way; without --sparse it is "
          "made whole, products (vjp, jvp, hvp) "
          "need no matrix, and --wrt takes fewer inputs",
          "");
    fails("cotangent hess --sparse 'sum(x)**2' 'x=ones(9000)'", 3,
          "[hess] the pattern of (9000,9000) has more than 67108864 entries, here or on the way; without --sparse it "
          "is made whole, products (vjp, jvp, hvp) "
          "need no matrix, and --wrt takes fewer inputs",
          "");
    fails("cotangent jac x x=1 --sparse=1", 2, "--sparse takes no value", "");
    fails("cotangent grad x x=1 --sparse", 2, "grad has no option --sparse; `cotangent grad --help` lists them", "");
    fails("cotangent jac x x=1 --spars", 2, "jac has no option --spars; did you mean --sparse?", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jacobians_equal_the_dense_ones),
        cmocka_unit_test(hessians_equal_the_dense_ones),
        cmocka_unit_test(they_print_entries),
        cmocka_unit_test(bands_are_quick),
        cmocka_unit_test(there_may_be_many_inputs),
        cmocka_unit_test(the_time_grows_with_the_inputs_not_with_their_square),
        cmocka_unit_test(errors_say_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
