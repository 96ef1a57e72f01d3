/* Which inputs each element depends on. For every operation of the tables the pattern covers the
 * dense Jacobian; for operations that only move, add and multiply, both are equal. */
/* ctest: timeout=120 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "diff/sparse/sparsity.h"
#include "ops/structural.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/samples.h"

enum { MOST = 4096 };

typedef struct matrix {
    int64_t rows, cols;
    bool    on[MOST];
} matrix;

static int64_t size_of(int n, const cot_var *vars) {
    int64_t size = 0;
    for (int k = 0; k < n; k++) size += cot_size(vars[k]);
    return size;
}

/* The pattern, checked for form, as a matrix. */
static bool pattern_of(const char *name, int m, const cot_var *ys, int n, const cot_var *xs, matrix *out) {
    cot_tape *t = xs[0].tape;
    cot__csr  c;
    memset(out, 0, sizeof *out);
    if (!cot__sparsity("test", t, NULL, m, ys, n, xs, &c)) {
        test_tape_ok(t, name);
        return false;
    }
    out->rows = c.rows;
    out->cols = c.cols;
    TEST_CHECK(c.rows == size_of(m, ys) && c.cols == size_of(n, xs) && c.row_start[0] == 0 &&
                   c.row_start[c.rows] == c.nnz,
               "%s: sizes", name);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t e = c.row_start[i]; e < c.row_start[i + 1]; e++) {
            TEST_CHECK(e == c.row_start[i] || c.col[e] > c.col[e - 1], "%s: the columns of row %lld do not ascend",
                       name, (long long)i);
            if (i * c.cols + c.col[e] < MOST) out->on[i * c.cols + c.col[e]] = true;
        }
    cot__csr_free(NULL, &c);
    return true;
}

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        cot_var x = f->in[k].shape.ndim ? cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data)
                                        : cot_scalar(t, f->in[k].data[0]);
        xs[k] = dtype == COT_F64 ? x : cot_leaf(cot_cast(x, dtype));
    }
}

/* Notes every non-zero of the dense Jacobian that the pattern lacks; the non-zeros are gathered in
 * `met`. */
static bool covers(const char *name, int m, const cot_var *ys, int n, const cot_var *xs, matrix *pattern, bool *met) {
    static double dense[MOST];
    int64_t       size = size_of(m, ys) * size_of(n, xs);
    assert_true(size <= MOST);
    if (cot_jacobian(m, ys, n, xs, COT_AUTO, dense) != COT_OK || !pattern_of(name, m, ys, n, xs, pattern))
        return test_tape_ok(xs[0].tape, name);
    for (int64_t i = 0; i < size; i++) {
        TEST_CHECK(dense[i] == 0 || pattern->on[i], "%s: the pattern lacks (%lld,%lld), where the Jacobian is %g", name,
                   (long long)(i / pattern->cols), (long long)(i % pattern->cols), dense[i]);
        if (met) met[i] |= dense[i] != 0;
    }
    return true;
}

/* ---- every operation ------------------------------------------------------------------------- */

static bool is_exact(const char *op) {
    static const char *const exact[] = {"leaf",
                                        "constant",
                                        "detach",
                                        "cast",
                                        "copy",
                                        "reshape",
                                        "permute",
                                        "broadcast_to",
                                        "slice",
                                        "concat",
                                        "pad",
                                        "take",
                                        "take_along_axis",
                                        "scatter_add",
                                        "scatter_add_along",
                                        "sum",
                                        "max",
                                        "min",
                                        "norm",
                                        "logsumexp",
                                        "softmax",
                                        "matmul",
                                        "sum_of",
                                        "dot_of",
                                        "copy_into",
                                        "update_slice",
                                        "add_slice",
                                        "mse",
                                        "csr_matmul",
                                        "csr_sddmm",
                                        "csr_softmax"};
    for (int k = 0; k < TEST_COUNT(exact); k++)
        if (op && strcmp(op, exact[k]) == 0) return true;
    return false;
}

static void sample_pattern(int number, cot_dtype dtype) {
    static bool met[MOST];
    matrix      pattern = {0};
    memset(met, 0, sizeof met);
    for (int round = 0, rounds = is_exact(samples[number].op) ? 12 : 2; round < rounds; round++) {
        test_function f = function_of(&samples[number], number, round);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS];
        leaves_of(t, &f, dtype, xs);
        cot_var y = f.f(f.n, xs, f.user);
        covers(f.name, 1, &y, f.n, xs, &pattern, met);
        test_tape_ok(t, f.name);
        cot_tape_destroy(t);
    }
    /* an operation that chooses (max) has chosen each of its elements in some round */
    for (int64_t i = 0; is_exact(samples[number].op) && i < pattern.rows * pattern.cols; i++)
        TEST_CHECK(met[i] == pattern.on[i],
                   "sample %d (%s): (%lld,%lld) is in the pattern, and the Jacobian is 0 there", number,
                   samples[number].op, (long long)(i / pattern.cols), (long long)(i % pattern.cols));
}

static void patterns_cover_the_jacobian_of_every_operation(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) sample_pattern(i, COT_F64);
    test_verdict();
}

static void patterns_are_the_same_in_f32(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) sample_pattern(i, COT_F32);
    test_verdict();
}

/* The gradient of a curved function of each sample: the patterns of Hessians, through every
 * rule. */
static void patterns_cover_the_hessian_of_every_operation(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS], grads[TEST_MAX_INPUTS];
        matrix        pattern;
        leaves_of(t, &f, COT_F64, xs);
        cot_var y = f.f(f.n, xs, f.user);
        cot_grad_of(cot_sum(cot_sin(y), COT_ALL), f.n, xs, grads);
        covers(f.name, f.n, grads, f.n, xs, &pattern, NULL);
        test_tape_ok(t, f.name);
        cot_tape_destroy(t);
    }
    test_verdict();
}

static void elementwise_patterns_are_diagonal(void **state) {
    (void)state;
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int scalars = 0; scalars < 2; scalars++) {
            const cot__elementwise_info *e = &cot__elementwise_table[op];
            cot_tape                    *t = cot_tape_create(NULL);
            cot_var                      xs[3], y;
            matrix                       p;
            test_random                  random = test_random_of(e->name, 0);
            double                       x[3], at[3][4];
            int64_t                      n = scalars ? 1 : 4;
            for (int64_t i = 0; i < n; i++) {
                test_sample(op, &random, x);
                for (int k = 0; k < 3; k++) at[k][i] = x[k];
            }
            for (int k = 0; k < e->arity; k++)
                xs[k] = scalars ? cot_scalar(t, at[k][0]) : cot_tensor(t, COT_F64, COT_SHAPE(4), at[k]);
            y = test_call(op, xs);
            if (cot_dtype_of(y) == COT_F64 && pattern_of(e->name, 1, &y, e->arity, xs, &p))
                for (int64_t i = 0; i < n; i++)
                    for (int64_t j = 0; j < n * e->arity; j++)
                        TEST_CHECK(p.on[i * p.cols + j] == (j % n == i && e->partial[j / n] != NULL),
                                   "%s: element %lld, column %lld", e->name, (long long)i, (long long)j);
            test_tape_ok(t, e->name);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* ---- compositions ---------------------------------------------------------------------------- */

/* Random expressions over a vector: the pattern covers the Jacobian however operations follow each
 * other. */
static cot_var random_step(test_random *r, cot_var x) {
    int64_t n = cot_size(x), k = (int64_t)test_uniform(r, 0, 12);
    switch (k) {
    case 0: return cot_mul(x, cot_roll(x, 1, 0));
    case 1: return cot_sin(x);
    case 2:
        return cot_concat(2, (cot_var[]){cot_slice(x, 0, 0, n / 2, 1), cot_mul(2.0, cot_slice(x, 0, n / 2, n, 1))}, 0);
    case 3: return cot_take(x, cot_data(x.tape, COT_I64, COT_SHAPE(4), (int64_t[]){0, n - 1, n / 2, 0}), 0);
    case 4: return cot_pad(x, COT_SHAPE(1), COT_SHAPE(0), 0.5);
    case 5: return cot_where(cot_greater(x, 0.0), x, cot_flip(x, COT_ALL));
    case 6: return cot_cumsum(x, 0, false);
    case 7: return cot_softmax(x, 0);
    case 8:
        return cot_scatter_add(x, cot_data(x.tape, COT_I64, COT_SHAPE(2), (int64_t[]){0, n - 1}),
                               cot_slice(x, 0, 0, 2, 1), 0);
    case 9: {
        cot_var z = cot_mul(x, 1.0);
        cot_update_slice(&z, 0, 0, 1, 1, cot_index(x, 0, n - 1));
        return z;
    }
    case 10: return cot_reshape(cot_sum(cot_outer(x, x), COT_AXES(1)), COT_SHAPE(n));
    default: return cot_sort(x, 0, false);
    }
}

static void patterns_cover_random_expressions(void **state) {
    (void)state;
    for (int round = 0; round < (test_small() ? 50 : 400); round++) {
        test_random r = test_random_of("expression", round);
        cot_tape   *t = cot_tape_create(NULL);
        double      at[6];
        matrix      p;
        for (int i = 0; i < 6; i++) at[i] = test_uniform(&r, -2, 2);
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(6), at), y = x, z = x;
        for (int k = 0; k < 5; k++) {
            cot_var next = random_step(&r, y);
            z = y;
            y = next;
        }
        char name[32];
        snprintf(name, sizeof name, "expression %d", round);
        covers(name, 2, (cot_var[]){y, z}, 1, &x, &p, NULL);
        /* an input that is computed from another */
        covers(name, 1, &y, 2, (cot_var[]){z, x}, &p, NULL);
        test_tape_ok(t, name);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* ---- inputs and outputs of all sorts --------------------------------------------------------- */

static void check_rows(const char *name, int m, const cot_var *ys, int n, const cot_var *xs, const char *want) {
    matrix p;
    if (!pattern_of(name, m, ys, n, xs, &p)) return;
    TEST_CHECK((int64_t)strlen(want) == p.rows * p.cols, "%s: (%lld,%lld)", name, (long long)p.rows, (long long)p.cols);
    for (int64_t i = 0; want[i] && i < p.rows * p.cols; i++)
        TEST_CHECK(p.on[i] == (want[i] == 'x'), "%s: (%lld,%lld)", name, (long long)(i / p.cols),
                   (long long)(i % p.cols));
}

static void inputs_may_be_scalars_tensors_computed_and_listed_twice(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_scalar(t, 1), b = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), c = cot_mul(a, b),
            d = cot_exp(c);
    check_rows("tensors and scalars", 1, &d, 2, (cot_var[]){a, b}, "xx." "x.x");
    check_rows("computed", 1, &d, 1, &c, "x." ".x");
    check_rows("computed and its origin", 1, &d, 2, (cot_var[]){c, a}, "x.x" ".xx");
    check_rows("twice", 1, &d, 2, (cot_var[]){a, a}, "xx" "xx");
    check_rows("an output that is an input", 2, (cot_var[]){b, a}, 1, &b, "x." ".x" "..");
    check_rows("an output older than the inputs", 1, &a, 1, &c, "..");
    check_rows("a constant", 1, (cot_var[]){cot_constant(t, 3)}, 1, &a, ".");
    check_rows("detached", 1, (cot_var[]){cot_detach(d)}, 1, &a, "." ".");
    cot_var empty = cot_tensor(t, COT_F64, COT_SHAPE(0), NULL);
    check_rows("no rows", 1, (cot_var[]){cot_sin(empty)}, 1, &a, "");
    check_rows("no columns", 1, &d, 1, &empty, "");
    check_rows("a sum of nothing", 1, (cot_var[]){cot_sum(empty, COT_ALL)}, 2, (cot_var[]){empty, a}, ".");
    test_tape_ok(t, "inputs");
    cot_tape_destroy(t);
    test_verdict();
}

/* NaN and zero are values like others: the pattern does not look. */
static void values_do_not_show(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){NAN, 0, INFINITY});
    check_rows("mul", 1, (cot_var[]){cot_mul(x, cot_roll(x, 1, 0))}, 1, &x, "x.x" "xx." ".xx");
    check_rows("matmul", 1, (cot_var[]){cot_matmul(cot_data(t, COT_F64, COT_SHAPE(2, 3), (double[6]){0}), x)}, 1, &x,
               "xxx"
               "xxx");
    check_rows("both branches", 1, (cot_var[]){cot_where(cot_greater(x, 0.0), x, cot_flip(x, COT_ALL))}, 1, &x,
               "x.x"
               ".x."
               "x.x");
    test_tape_ok(t, "values");
    cot_tape_destroy(t);
    test_verdict();
}

static void a_batch_stays_apart(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 2, 3, 4}),
            w   = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 1, 1, 2});
    check_rows("x @ w", 1, (cot_var[]){cot_matmul(x, w)}, 1, &x, "xx.." "xx.." "..xx" "..xx");
    check_rows("in w", 1, (cot_var[]){cot_matmul(x, w)}, 1, &w, "x.x." ".x.x" "x.x." ".x.x");
    check_rows("softmax", 1, (cot_var[]){cot_softmax(x, 0)}, 1, &x, "x.x." ".x.x" "x.x." ".x.x");
    check_rows("layer_norm", 1, (cot_var[]){cot_layer_norm(x, COT_NONE, COT_NONE, -1, 1e-5)}, 1, &x,
               "xx.."
               "xx.."
               "..xx"
               "..xx");
    check_rows("max", 1, (cot_var[]){cot_max(x, COT_AXES(0))}, 1, &x, "x.x." ".x.x");
    check_rows("max, kept", 1, (cot_var[]){cot_max(x, COT_KEEP(1))}, 1, &x, "xx.." "..xx");
    check_rows("cumsum", 1, (cot_var[]){cot_cumsum(x, 1, false)}, 1, &x, "xx.." "xx.." "..xx" "..xx");
    test_tape_ok(t, "batch");
    cot_tape_destroy(t);
    test_verdict();
}

/* A kernel moved over a grid connects neighbours, not everything with everything. By the weights of
 * its kernel a result is dense. */
static void convolutions_reach_as_far_as_their_kernel(void **state) {
    (void)state;
    enum { SIDE = 9, N = SIDE * SIDE };
    cot_tape *t = cot_tape_create(NULL);
    double    at[N];
    for (int i = 0; i < N; i++) at[i] = sin(i);
    cot_var x  = cot_tensor(t, COT_F64, COT_SHAPE(1, 1, SIDE, SIDE), at),
            w  = cot_tensor(t, COT_F64, COT_SHAPE(1, 1, 3, 3), at + 7), grads;
    cot_var  y = cot_conv2d(x, w, COT_CONV(.padding = {1, 1}));
    cot__csr c, h;
    assert_true(cot__sparsity("test", t, NULL, 1, &y, 1, &x, &c));
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0, e = c.row_start[i]; j < N; j++) {
            bool near = llabs(i / SIDE - j / SIDE) <= 1 && llabs(i % SIDE - j % SIDE) <= 1;
            bool is = e < c.row_start[i + 1] && c.col[e] == j;
            TEST_CHECK(near == is, "conv: (%lld,%lld)", (long long)i, (long long)j);
            e += is;
        }
    cot__csr_free(NULL, &c);
    /* its gradient is a transposed convolution: two steps far */
    assert_int_equal(cot_grad_of(cot_sum(cot_sin(y), COT_ALL), 1, &x, &grads), COT_OK);
    assert_true(cot__sparsity("test", t, NULL, 1, &grads, 1, &x, &h));
    TEST_CHECK(h.row_start[41] - h.row_start[40] == 25, "conv_transpose: %lld",
               (long long)(h.row_start[41] - h.row_start[40]));
    cot__csr_free(NULL, &h);
    assert_true(cot__sparsity("test", t, NULL, 1, &y, 1, &w, &c));
    assert_int_equal(c.nnz, 9 * N);
    cot__csr_free(NULL, &c);
    test_tape_ok(t, "conv");
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- size ------------------------------------------------------------------------------------ */

/* x[i] x[i+1] over a million scalars: one pass, a few columns an element. */
static void a_band_of_scalars_takes_linear_memory(void **state) {
    (void)state;
    int       n = test_small() ? 20000 : 1000000;
    cot_tape *t = cot_tape_create(NULL);
    cot_var  *xs = malloc((size_t)n * sizeof *xs), *ys = malloc((size_t)n * sizeof *ys);
    cot__csr  c;
    assert_true(xs && ys);
    for (int i = 0; i < n; i++) xs[i] = cot_scalar(t, i);
    for (int i = 0; i < n; i++) ys[i] = cot_mul(xs[i], cot_sin(xs[(i + 1) % n]));
    int64_t before = cot_tape_bytes(t);
    assert_true(cot__sparsity("test", t, NULL, n, ys, n, xs, &c));
    assert_int_equal(c.nnz, 2 * (int64_t)n);
    cot__csr_free(NULL, &c);
    /* memory of the analysis is kept for later use */
    assert_true(cot_tape_bytes(t) < before + 400 * (int64_t)n);

    /* A running sum beside it: as lists its sets would be n²/2 columns. */
    cot_var sum = ys[0];
    for (int i = 1; i < n; i++) sum = cot_add(sum, ys[i]);
    assert_true(cot__sparsity("test", t, NULL, 1, &sum, n, xs, &c));
    assert_int_equal(c.nnz, n);
    cot__csr_free(NULL, &c);
    assert_true(cot_tape_bytes(t) < before + 1000 * (int64_t)n);

    /* A long loop over the same hundred parameters. */
    cot_var z = ys[0];
    for (int i = 0; i < n; i++) z = cot_add(cot_mul(z, xs[i % 100]), 1.0), ys[i] = z;
    int m = n / 100;
    for (int i = 0; i < m; i++) ys[i] = ys[i * 100];
    assert_true(cot__sparsity("test", t, NULL, m, ys, 100, xs, &c));
    assert_int_equal(c.row_start[m] - c.row_start[m - 1], 100);
    cot__csr_free(NULL, &c);
    assert_int_equal(cot_tape_status(t), COT_OK);
    cot_tape_destroy(t);
    free(xs);
    free(ys);
}

/* Elements of a tensor taken one by one and written one by one: neither must look at all of it each
 * time. */
static void a_loop_over_the_elements_of_a_tensor_stays_linear(void **state) {
    (void)state;
    int       n = test_small() ? 3000 : 30000;
    cot_tape *t = cot_tape_create(NULL);
    double   *at = malloc((size_t)n * sizeof *at);
    cot__csr  c;
    for (int i = 0; i < n; i++) at[i] = i + 1;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(n), at), z = cot_mul(x, 1.0), g;
    for (int i = 0; i < n; i++)
        cot_update_slice(&z, 0, i, i + 1, 1, cot_mul(cot_index(x, 0, i), cot_index(x, 0, (i + 1) % n)));
    assert_true(cot__sparsity("test", t, NULL, 1, &z, 1, &x, &c));
    assert_int_equal(c.nnz, 2 * (int64_t)n);
    cot__csr_free(NULL, &c);
    /* its gradient adds slices */
    cot_var f = cot_constant(t, 0);
    for (int i = 0; i < n; i++) f = cot_add(f, cot_mul(cot_index(x, 0, i), cot_index(x, 0, (i + 1) % n)));
    assert_int_equal(cot_grad_of(f, 1, &x, &g), COT_OK);
    assert_true(cot__sparsity("test", t, NULL, 1, &g, 1, &x, &c));
    assert_int_equal(c.nnz, 2 * (int64_t)n);
    cot__csr_free(NULL, &c);
    cot_tape_destroy(t);
    free(at);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Against bits. */
static void unions_are_unions(void **state) {
    (void)state;
    enum { WIDTH = 300, COUNT = 500 };
    static bool bits[COUNT][WIDTH];
    static cot__set set[COUNT];
    cot__sets s;
    assert_true(cot__sets_open(&s, NULL, WIDTH, INT64_MAX));
    test_random r = test_random_of("sets", 0);
    for (int i = 0; i < COUNT; i++) {
        if (i < 100 || test_uniform(&r, 0, 1) < 0.05) {
            int c = (int)test_uniform(&r, 0, WIDTH);
            set[i] = cot__set_of(&s, (uint32_t)c);
            bits[i][c] = true;
        } else {
            int a = (int)test_uniform(&r, 0, i), b = (int)test_uniform(&r, 0, i);
            set[i] = cot__set_union(&s, set[a], set[b]);
            for (int c = 0; c < WIDTH; c++) bits[i][c] = bits[a][c] || bits[b][c];
        }
        int64_t         n, at = 0;
        const uint32_t *columns = cot__set_columns(&s, set[i], &n);
        for (uint32_t c = 0; c < WIDTH; c++)
            if (bits[i][c]) TEST_CHECK(at < n && columns[at++] == c, "set %d lacks %u", i, c);
        TEST_CHECK(at == n, "set %d has %lld columns, not %lld", i, (long long)n, (long long)at);
    }
    cot__sets_close(&s);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unions_are_unions),
        cmocka_unit_test(patterns_cover_the_jacobian_of_every_operation),
        cmocka_unit_test(patterns_are_the_same_in_f32),
        cmocka_unit_test(patterns_cover_the_hessian_of_every_operation),
        cmocka_unit_test(elementwise_patterns_are_diagonal),
        cmocka_unit_test(patterns_cover_random_expressions),
        cmocka_unit_test(inputs_may_be_scalars_tensors_computed_and_listed_twice),
        cmocka_unit_test(values_do_not_show),
        cmocka_unit_test(a_batch_stays_apart),
        cmocka_unit_test(convolutions_reach_as_far_as_their_kernel),
        cmocka_unit_test(a_band_of_scalars_takes_linear_memory),
        cmocka_unit_test(a_loop_over_the_elements_of_a_tensor_stays_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
