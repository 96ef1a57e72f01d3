/* Sparse matrices: products, sampled products and softmax against their definitions to the bit, on
 * every instruction set and number of threads; making them; derivatives in both modes and to second
 * order, in batches, loops and programs; patterns made to deceive; every error. */
/* ctest: labels=threads timeout=240 */
#include "support/tape_test.h"

#include "base/cpu.h"
#include "base/parallel.h"

static uint64_t seed = 7;

static int whole(int n) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)n);
}
static double small(void) { return whole(2001) / 1000.0 - 1; }

/* ---- a matrix at random, sorted, in plain arrays --------------------------------------------- */

enum { MOST = 1 << 14 };

typedef struct plain {
    int64_t rows, columns, n;
    int64_t row[MOST], column[MOST];
    double  value[MOST];
} plain;

/* About `each` entries in a row; some rows have none, and the first has all columns. */
static void fill(plain *p, int64_t rows, int64_t columns, int each) {
    *p = (plain){.rows = rows, .columns = columns};
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            if (i == 0 || (i % 3 && whole((int)columns) < each)) {
                p->row[p->n] = i;
                p->column[p->n] = j;
                p->value[p->n++] = small();
            }
}

static cot_csr sparse(cot_tape *t, const plain *p, cot_var values) {
    return cot_csr_from_triplets(t, p->rows, p->columns, p->n, p->row, p->column, values);
}

static cot_var random_data(cot_tape *t, cot_dtype d, cot_shape s) {
    static double x[1 << 17];
    int64_t       n = 1;
    for (int k = 0; k < s.ndim; k++) n *= s.dim[k];
    assert_true(n <= 1 << 17);
    for (int64_t i = 0; i < n; i++) x[i] = small();
    return cot_cast(cot_data(t, COT_F64, s, x), d);
}

/* ---- the definition: one chain for each element, products and sums rounded ------------------- */

static double rounded(bool narrow, double x) {
    volatile float f = (float)x;
    return narrow ? (double)f : x;
}

static void define(const plain *p, bool narrow, bool transposed, const double *v, const double *x, int64_t k,
                   double *z) {
    memset(z, 0, (size_t)((transposed ? p->columns : p->rows) * k) * sizeof *z);
    for (int64_t e = 0; e < p->n; e++)
        for (int64_t j = 0; j < k; j++) {
            int64_t out = transposed ? p->column[e] : p->row[e], in = transposed ? p->row[e] : p->column[e];
            z[out * k + j] = rounded(narrow, z[out * k + j] + rounded(narrow, v[e] * x[in * k + j]));
        }
}

static void compare(const char *what, cot_var z, const double *want, int64_t n) {
    static double have[1 << 17];
    assert_ok(z.tape);
    assert_int_equal(cot_size(z), n);
    assert_int_equal(cot_read(z, have, n), COT_OK);
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&have[i], &want[i], sizeof *have))
            fail_msg("%s: element %d is %.17g, not %.17g", what, (int)i, have[i], want[i]);
}

static void products_are_their_chains(const plain *p, cot_dtype d, int64_t k) {
    static double v[MOST], x[1 << 17], z[1 << 17];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       values = cot_cast(cot_data(t, COT_F64, COT_SHAPE(p->n), p->value), d);
    cot_csr       a = sparse(t, p, values);
    cot_read(values, v, p->n);
    for (int transposed = 0; transposed < 2; transposed++) {
        int64_t in = transposed ? p->rows : p->columns, out = transposed ? p->columns : p->rows;
        cot_var y = random_data(t, d, COT_SHAPE(in, k));
        cot_read(y, x, in * k);
        define(p, d == COT_F32, transposed, v, x, k, z);
        compare(transposed ? "transposed" : "product",
                transposed ? cot_csr_matmul_transposed(a, y) : cot_csr_matmul(a, y), z, out * k);
        /* rows that do not lie side by side */
        cot_var turned = cot_transpose(cot_copy(cot_transpose(y)));
        compare("strided", transposed ? cot_csr_matmul_transposed(a, turned) : cot_csr_matmul(a, turned), z, out * k);
        if (transposed) compare("from the left", cot_transpose(cot_matmul_csr(cot_transpose(y), a)), z, out * k);
    }
    cot_tape_destroy(t);
}

static void each_element_is_one_chain_on_every_processor(void **state) {
    (void)state;
    static const int64_t columns[] = {0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 65, 130};
    static plain         p[3];
    static const int     threads[] = {1, 2, 7};
    int64_t              grain = cot__grain;
    cot__isa             best = cot__cpu_best();
    fill(&p[0], 23, 17, 4);
    fill(&p[1], 40, 150, 9); /* rows longer than what is looked up at a time */
    fill(&p[2], 1, 1, 1);
    cot__grain = 64;
    for (int isa = 0; isa <= (int)best; isa++) {
        assert_true(cot__cpu_use((cot__isa)isa));
        for (int n = 0; n < 3; n++) {
            cot_set_threads(threads[n]);
            for (int m = 0; m < 3; m++)
                for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
                    products_are_their_chains(&p[m], COT_F64, columns[k]);
                    products_are_their_chains(&p[m], COT_F32, columns[k]);
                }
        }
    }
    cot__cpu_use(best);
    cot_set_threads(0);
    cot__grain = grain;
}

static void sampled_products_are_dot_products(void **state) {
    (void)state;
    static plain  p;
    static double want[MOST];
    fill(&p, 23, 17, 4);
    for (int k = 1; k < 600; k = 2 * k + 3)
        for (int narrow = 0; narrow < 2; narrow++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_dtype d = narrow ? COT_F32 : COT_F64;
            cot_var   x = random_data(t, d, COT_SHAPE(p.rows, k)), y = random_data(t, d, COT_SHAPE(p.columns, k));
            cot_csr   a = sparse(t, &p, cot_data(t, d, COT_SHAPE(p.n), NULL));
            for (int64_t e = 0; e < p.n; e++)
                want[e] = cot_value(cot_dot(cot_index(x, 0, p.row[e]), cot_index(y, 0, p.column[e])));
            compare("samples", cot_csr_sddmm(a, x, y).values, want, p.n);
            cot_tape_destroy(t);
        }
}

static void row_weights_are_the_softmax_of_the_entries(void **state) {
    (void)state;
    static plain  p;
    static double want[MOST];
    static const double special[] = {INFINITY, -INFINITY, NAN};
    for (int round = 0; round < 5; round++)
        for (int narrow = 0; narrow < 2; narrow++) {
            fill(&p, round == 4 ? 3 : 23, round == 4 ? 700 : 17, 4);
            if (round < 3) p.value[20] = special[round];
            cot_tape *t = cot_tape_create(NULL);
            cot_var   v = cot_cast(cot_data(t, COT_F64, COT_SHAPE(p.n), p.value), narrow ? COT_F32 : COT_F64);
            for (int64_t from = 0, to; from < p.n; from = to) {
                for (to = from; to < p.n && p.row[to] == p.row[from];) to++;
                cot_read(cot_softmax(cot_slice(v, 0, from, to, 1), 0), want + from, to - from);
            }
            static double have[MOST];
            cot_read(cot_csr_softmax(sparse(t, &p, v)).values, have, p.n);
            for (int64_t e = 0; e < p.n; e++)
                if (!(have[e] == want[e] || (isnan(have[e]) && isnan(want[e]))))
                    fail_msg("weight %d is %.17g, not %.17g", (int)e, have[e], want[e]);
            assert_ok(t);
            cot_tape_destroy(t);
        }
}

/* ---- making them ----------------------------------------------------------------------------- */

static void assert_dense(cot_csr a, const double *want) {
    double have[64];
    assert_ok(a.values.tape);
    assert_int_equal(cot_read(cot_csr_to_dense(a), have, a.rows * a.columns), COT_OK);
    for (int64_t i = 0; i < a.rows * a.columns; i++) assert_near(have[i], want[i], 0);
}

static const double three_by_four[] = {0, 5, 0, 7, 0, 0, 0, 0, 2, 9, 0, 4};

static void triplets_come_in_any_order_and_equal_places_are_summed(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    const int64_t row[] = {2, 0, 2, 0, 2, 0}, column[] = {3, 1, 0, 3, 1, 1};
    const double  v[] = {4, 2, 2, 7, 9, 3}, c[] = {1, 2, 3, 4, 5};
    cot_var       x = cot_tensor(t, COT_F64, COT_SHAPE(6), v);
    cot_csr       a = cot_csr_from_triplets(t, 3, 4, 6, row, column, x);
    double        g[6];
    assert_dense(a, three_by_four);
    assert_int_equal(cot_size(a.values), 5);
    cot_backward(cot_sum(cot_mul(a.values, cot_data(t, COT_F64, COT_SHAPE(5), c)), COT_ALL));
    cot_read_grad(x, g, 6);
    for (int k = 0; k < 6; k++) assert_near(g[k], ((const double[]){5, 1, 3, 2, 4, 1})[k], 0);
    cot_tape_destroy(t);
}

static void arrays_of_scipy_are_taken_as_they_are(void **state) {
    (void)state;
    int64_t   wide_starts[] = {0, 2, 2, 5}, wide_indices[] = {1, 3, 0, 1, 3};
    int32_t   starts[] = {0, 2, 2, 5}, indices[] = {1, 3, 0, 1, 3}, mixed[] = {3, 1, 1, 3, 0};
    cot_array p = {COT_I32, COT_SHAPE(4), 4, starts}, q = {COT_I64, COT_SHAPE(4), 4, wide_starts};
    cot_array i = {COT_I32, COT_SHAPE(5), 5, indices}, j = {COT_I64, COT_SHAPE(5), 5, wide_indices};
    cot_array m = {COT_I32, COT_SHAPE(5), 5, mixed};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   v = cot_data(t, COT_F64, COT_SHAPE(5), (double[]){5, 7, 2, 9, 4});
    assert_dense(cot_csr_from_arrays(t, 3, 4, &p, &i, v), three_by_four);
    assert_dense(cot_csr_from_arrays(t, 3, 4, &q, &j, v), three_by_four);
    assert_dense(cot_csr_from_arrays(t, 3, 4, &p, &m, cot_data(t, COT_F64, COT_SHAPE(5), (double[]){7, 5, 9, 4, 2})),
                 three_by_four);
    cot_tape_destroy(t);
}

static void a_dense_matrix_goes_there_and_back(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3, 4), three_by_four);
    cot_csr   a = cot_csr_from_dense(x), b = cot_csr_transpose(a), c = cot_csr_transpose(b);
    double    turned[12], g[12];
    assert_dense(a, three_by_four);
    for (int k = 0; k < 12; k++) turned[k % 4 * 3 + k / 4] = three_by_four[k];
    assert_dense(b, turned);
    assert_dense(c, three_by_four);
    /* the transposed pattern multiplies as one that was made */
    cot_var y = cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, 10, 100});
    double  z[4], w[4];
    cot_read(cot_csr_matmul(b, y), z, 4);
    cot_read(cot_csr_matmul_transposed(c, y), w, 4);
    for (int k = 0; k < 4; k++)
        assert_near(z[k], ((const double[]){200, 905, 0, 407})[k], 0), assert_near(w[k], z[k], 0);
    cot_backward(cot_sum(cot_square(cot_csr_to_dense(c)), COT_ALL));
    cot_read_grad(x, g, 12);
    for (int k = 0; k < 12; k++) assert_near(g[k], 2 * three_by_four[k], 0);
    double at[5];
    cot_read(cot_csr_entry_rows(a), at, 5);
    for (int k = 0; k < 5; k++) assert_near(at[k], ((const double[]){0, 0, 2, 2, 2})[k], 0);
    cot_read(cot_csr_entry_columns(a), at, 5);
    for (int k = 0; k < 5; k++) assert_near(at[k], ((const double[]){1, 3, 0, 1, 3})[k], 0);
    cot_tape_destroy(t);
}

/* A path of three nodes and one alone, by the formula: degrees with loops are 2, 3, 2 and 1. */
static void a_graph_is_normalised_with_its_loops(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    const double  r = 0.40824829046386302; /* 1/√6 */
    const double  want[16] = {0.5, r, 0, 0, r, 1 / 3.0, r, 0, 0, r, 0.5, 0, 0, 0, 0, 1};
    const int64_t from[] = {0, 1, 2, 0, 1}, to[] = {1, 2, 1, 1, 1};
    double        have[16];
    cot_read(cot_csr_to_dense(cot_csr_gcn(t, COT_F64, 4, 5, from, to)), have, 16);
    assert_ok(t);
    for (int k = 0; k < 16; k++) assert_near(have[k], want[k], 1e-15);
    assert_int_equal(cot_dtype_of(cot_csr_gcn(t, COT_F32, 4, 0, NULL, NULL).values), COT_F32);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void matrices_without_entries_rows_or_columns_multiply(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{0, 0, 2}, {0, 3, 2}, {3, 0, 2}, {3, 4, 0}, {3, 4, 2}, {0, 0, 0}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int64_t   m = sizes[k][0], n = sizes[k][1], c = sizes[k][2];
        cot_tape *t = cot_tape_create(NULL);
        cot_var   v = cot_tensor(t, COT_F64, COT_SHAPE(0), NULL), x = cot_tensor(t, COT_F64, COT_SHAPE(n, c), NULL);
        cot_var   y = cot_tensor(t, COT_F64, COT_SHAPE(m, c), NULL), g[3];
        cot_csr   a = cot_csr_softmax(cot_csr_from_triplets(t, m, n, 0, NULL, NULL, v));
        cot_var   z = cot_csr_matmul(a, x), w = cot_csr_matmul_transposed(a, y);
        cot_csr   s = cot_csr_sddmm(a, y, x);
        cot_var   all[] = {cot_sum(z, COT_ALL), cot_sum(w, COT_ALL), cot_sum(s.values, COT_ALL),
                           cot_sum(cot_csr_to_dense(a), COT_ALL), cot_sum(cot_csr_sum_rows(a), COT_ALL),
                           cot_sum(cot_csr_sum_columns(cot_csr_transpose(a)), COT_ALL)};
        assert_int_equal(cot_grad_of(cot_sum_of(6, all), 3, (cot_var[]){v, x, y}, g), COT_OK);
        assert_ok(t);
        assert_int_equal(cot_size(z), m * c);
        assert_near(cot_value(cot_sum_of(6, all)), 0, 0);
        cot_tape_destroy(t);
    }
}

/* ---- derivatives ----------------------------------------------------------------------------- */

enum { ROWS = 5, COLUMNS = 4, ENTRIES = 8, WIDTH = 3 };
static const int64_t some_row[ENTRIES] = {4, 0, 0, 1, 3, 3, 4, 1}, some_column[ENTRIES] = {0, 1, 3, 2, 0, 3, 3, 1};

static cot_csr some(cot_var values) {
    return cot_csr_from_triplets(cot_tape_of(values), ROWS, COLUMNS, ENTRIES, some_row, some_column, values);
}

/* Weights from samples, as attention over a graph has them, then products from both sides. */
static cot_var attends(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    cot_csr a = some(xs[0]);
    cot_csr w = cot_csr_sddmm(a, cot_tanh(xs[1]), xs[2]);
    w.values = cot_add(w.values, cot_square(a.values));
    w = cot_csr_softmax(w);
    cot_var z = cot_csr_matmul(w, cot_sin(xs[2])), u = cot_csr_matmul_transposed(a, z);
    cot_var s = cot_mul(cot_csr_sum_rows(a), cot_csr_matmul(w, cot_csr_sum_columns(w)));
    cot_var left = cot_matmul_csr(cot_transpose(z), a);
    return cot_add(cot_add(cot_sum(cot_square(u), COT_ALL), cot_sum(cot_exp(s), COT_ALL)),
                   cot_sum(cot_mul(left, cot_transpose(u)), COT_ALL));
}

static void derivatives_agree_with_differences_to_second_order(void **state) {
    (void)state;
    double    v[ENTRIES], x[ROWS * WIDTH], y[COLUMNS * WIDTH];
    cot_array xs[] = {{COT_F64, COT_SHAPE(ENTRIES), ENTRIES, v},
                      {COT_F64, COT_SHAPE(ROWS, WIDTH), ROWS * WIDTH, x},
                      {COT_F64, COT_SHAPE(COLUMNS, WIDTH), COLUMNS * WIDTH, y}};
    for (int k = 0; k < ENTRIES; k++) v[k] = small();
    for (int k = 0; k < ROWS * WIDTH; k++) x[k] = small();
    for (int k = 0; k < COLUMNS * WIDTH; k++) y[k] = small();
    cot_check_report r;
    if (cot_check_grads(attends, NULL, 3, xs, 2, &r) != COT_OK) fail_msg("%s", r.message);
}

/* The same matrix as a dense one; the rules of the two share nothing. */
static void gradients_are_those_of_the_dense_product(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    const double  v[] = {5, 7, 2, 9, 4}, x[] = {1, 2, -1, 0.5, 3, 1, 0.25, -2};
    const int64_t row[] = {0, 0, 2, 2, 2}, column[] = {1, 3, 0, 1, 3};
    cot_var       a = cot_tensor(t, COT_F64, COT_SHAPE(5), v), y = cot_tensor(t, COT_F64, COT_SHAPE(4, 2), x);
    cot_var d = cot_tensor(t, COT_F64, COT_SHAPE(3, 4), three_by_four), u = cot_tensor(t, COT_F64, COT_SHAPE(4, 2), x);
    double        ga[5], gd[12], gx[8], gu[8];
    cot_backward(cot_sum(cot_square(cot_csr_matmul(cot_csr_from_triplets(t, 3, 4, 5, row, column, a), y)), COT_ALL));
    cot_backward(cot_sum(cot_square(cot_matmul(d, u)), COT_ALL));
    cot_read_grad(a, ga, 5), cot_read_grad(d, gd, 12), cot_read_grad(y, gx, 8), cot_read_grad(u, gu, 8);
    assert_ok(t);
    for (int k = 0; k < 5; k++) assert_near(ga[k], gd[row[k] * 4 + column[k]], 1e-14);
    for (int k = 0; k < 8; k++) assert_near(gx[k], gu[k], 1e-14);
    cot_tape_destroy(t);
}

/* A chain of springs, stiffness k: symmetric, positive definite, too many unknowns to eliminate. */
enum { UNKNOWNS = 90 };
static cot_var spring(int n, const cot_var *xs, void *user) {
    int64_t row[3 * UNKNOWNS], column[3 * UNKNOWNS], at[3 * UNKNOWNS], e = 0;
    (void)n, (void)user;
    for (int64_t i = 0; i < UNKNOWNS; i++)
        for (int64_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < UNKNOWNS; j++)
            row[e] = i, column[e] = j, at[e++] = i == j;
    cot_tape *t = cot_tape_of(xs[0]);
    cot_var   two = cot_stack(2, (cot_var[]){cot_neg(cot_exp(xs[0])), cot_add(1.0, cot_mul(2.0, cot_exp(xs[0])))}, 0);
    cot_csr   a = cot_csr_from_triplets(t, UNKNOWNS, UNKNOWNS, e, row, column,
                                        cot_take(two, cot_data(t, COT_I64, COT_SHAPE(e), at), 0));
    cot_var   b = cot_sin(cot_mul(xs[1], cot_arange(t, COT_F64, 0, UNKNOWNS, 1)));
    /* solved closer than the check looks */
    return cot_sum(cot_square(cot_csr_solve(a, b, &(cot_solve_options){.tolerance = 1e-14})), COT_ALL);
}

static void systems_are_solved_and_differentiated(void **state) {
    (void)state;
    double           k = 0.3, w = 0.7;
    cot_array        xs[] = {{COT_F64, COT_SCALAR, 1, &k}, {COT_F64, COT_SCALAR, 1, &w}};
    cot_check_report r;
    if (cot_check_grads(spring, NULL, 2, xs, 2, &r) != COT_OK) fail_msg("%s", r.message);
    cot_tape *t = cot_tape_create(NULL);
    cot_csr   a = cot_csr_from_dense(cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){2, 0, 1, 4}));
    double    x[2];
    cot_read(cot_csr_solve(a, cot_data(t, COT_F64, COT_SHAPE(2), (double[]){6, 7}), NULL), x, 2);
    assert_near(x[0], 3, 1e-15);
    assert_near(x[1], 1, 1e-15);
    a.columns = 3;
    cot_csr_solve(a, cot_zeros(t, COT_F64, COT_SHAPE(2)), NULL);
    assert_error(t, COT_SHAPE, "[csr_solve] the matrix has 2 rows and 3 columns; it must be square");
    cot_tape_clear_error(t);
    a.columns = 2;
    cot_csr_solve(a, cot_zeros(t, COT_F64, COT_SHAPE(3)), NULL);
    assert_error(t, COT_SHAPE, "[csr_solve] b has shape (3,), and the matrix 2 rows; b has as many");
    cot_tape_destroy(t);
}

/* ---- batches, loops, programs ---------------------------------------------------------------- */

static int batched(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m, (void)user;
    ys[0] = attends(n, xs, NULL);
    cot_var g[3];
    if (cot_grad_of(ys[0], 3, xs, g) != COT_OK) return 1;
    ys[1] = g[0], ys[2] = g[1], ys[3] = g[2];
    return 0;
}

static void a_batch_gives_what_its_elements_give(void **state) {
    (void)state;
    enum { B = 3, MOST_OUT = 64 };
    for (int mask = 1; mask < 8; mask++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_shape s[3] = {COT_SHAPE(ENTRIES), COT_SHAPE(ROWS, WIDTH), COT_SHAPE(COLUMNS, WIDTH)};
        cot_var   xs[3], ys[4], one[3], zs[4];
        int       in[3], out[4] = {0};
        double    have[MOST_OUT * B], want[MOST_OUT];
        for (int k = 0; k < 3; k++) {
            cot_shape full = s[k];
            if (mask >> k & 1) {
                full.ndim++;
                full.dim[0] = B;
                for (int i = 0; i < s[k].ndim; i++) full.dim[i + 1] = s[k].dim[i];
            }
            xs[k] = cot_leaf(random_data(t, COT_F64, full));
            in[k] = mask >> k & 1 ? 0 : COT_NOT_BATCHED;
        }
        cot_vmap(batched, NULL, 3, xs, in, 4, ys, out);
        assert_ok(t);
        for (int b = 0; b < B; b++) {
            for (int k = 0; k < 3; k++) one[k] = mask >> k & 1 ? cot_index(xs[k], 0, b) : xs[k];
            batched(3, one, 4, zs, NULL);
            for (int k = 0; k < 4; k++) {
                int64_t n = cot_size(zs[k]);
                assert_int_equal(cot_read(ys[k], have, B * n), COT_OK);
                cot_read(zs[k], want, n);
                if (memcmp(have + b * n, want, (size_t)n * sizeof *want))
                    fail_msg("mask %d, result %d differs", mask, k);
            }
        }
        cot_tape_destroy(t);
    }
}

typedef struct steps { cot_csr a; } steps;

static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    const steps *s = user;
    ys[0] = cot_tanh(cot_csr_matmul_transposed(s->a, cot_csr_matmul(s->a, xs[0])));
    return 0;
}

static void loops_carry_products_and_their_gradients(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   v = cot_tensor(t, COT_F64, COT_SHAPE(ENTRIES), NULL), x, g[2], h[2], last, y;
    double    init[ENTRIES], a[ENTRIES], b[ENTRIES];
    for (int k = 0; k < ENTRIES; k++) init[k] = small();
    v = cot_tensor(t, COT_F64, COT_SHAPE(ENTRIES), init);
    x = cot_tensor(t, COT_F64, COT_SHAPE(COLUMNS, 2), (double[]){1, 2, -1, 0.5, 0.3, -2, 0.7, 1});
    steps s = {some(v)};
    assert_int_equal(cot_scan(step, &s, 12, 1, &x, 0, NULL, &last, 0, NULL, NULL), COT_OK);
    y = x;
    for (int k = 0; k < 12; k++) step(1, &y, 1, &y, &s);
    cot_grad_of(cot_sum(cot_square(last), COT_ALL), 2, (cot_var[]){v, x}, g);
    cot_grad_of(cot_sum(cot_square(y), COT_ALL), 2, (cot_var[]){v, x}, h);
    for (int k = 0; k < 2; k++) {
        cot_read(g[k], a, ENTRIES), cot_read(h[k], b, ENTRIES);
        assert_ok(t);
        for (int i = 0; i < ENTRIES; i++) assert_near(a[i], b[i], 1e-14);
    }
    cot_tape_destroy(t);
}

static void programs_give_the_same_bits(void **state) {
    (void)state;
    cot_type     types[3] = {{COT_F64, COT_SHAPE(ENTRIES)}, {COT_F64, COT_SHAPE(ROWS, WIDTH)},
                             {COT_F64, COT_SHAPE(COLUMNS, WIDTH)}};
    cot_program *p = cot_compile(batched, NULL, 3, types, 4, NULL);
    assert_string_equal(cot_program_message(p), "");
    double       in[3][ROWS * WIDTH], out[4][ROWS * WIDTH], want[ROWS * WIDTH];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < ROWS * WIDTH; i++) in[k][i] = small();
    cot_run *r = cot_run_create(p);
    assert_int_equal(
        cot_program_run(r, (const void *[]){in[0], in[1], in[2]}, (void *[]){out[0], out[1], out[2], out[3]}), COT_OK);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[3], ys[4];
    for (int k = 0; k < 3; k++) xs[k] = cot_tensor(t, COT_F64, types[k].shape, in[k]);
    batched(3, xs, 4, ys, NULL);
    for (int k = 0; k < 4; k++) {
        int64_t n = cot_size(ys[k]);
        assert_int_equal(cot_read(ys[k], want, n), COT_OK);
        assert_memory_equal(out[k], want, (size_t)n * sizeof *want);
    }
    cot_tape_destroy(t);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* ---- threads, dtypes, memory ----------------------------------------------------------------- */

static void threads_give_the_same_bits(void **state) {
    (void)state;
    static plain  p;
    static double have[4][MOST];
    int64_t       grain = cot__grain;
    fill(&p, 61, 47, 6);
    for (int k = 0; k < 4; k++) {
        cot__grain = k ? 1 : grain;
        cot_set_threads(((const int[]){1, 1, 2, 7})[k]);
        seed = 99;
        cot_tape *t = cot_tape_create(NULL);
        cot_var   v = cot_tensor(t, COT_F64, COT_SHAPE(p.n), p.value), g[3];
        cot_var   x = cot_leaf(random_data(t, COT_F64, COT_SHAPE(2, p.rows, 9)));
        cot_var   y = cot_leaf(random_data(t, COT_F64, COT_SHAPE(2, p.columns, 9)));
        cot_csr   w = cot_csr_softmax(cot_csr_sddmm(sparse(t, &p, v), x, y));
        w.values = cot_mul(w.values, v);
        cot_grad_of(cot_sum(cot_square(cot_csr_matmul(w, y)), COT_ALL), 3, (cot_var[]){v, x, y}, g);
        double *to = have[k];
        for (int i = 0; i < 3; i++) cot_read(g[i], to, cot_size(g[i])), to += cot_size(g[i]);
        assert_ok(t);
        cot_tape_destroy(t);
        assert_memory_equal(have[0], have[k], sizeof have[0]);
    }
    cot_set_threads(0);
    cot__grain = grain;
}

/* 16 bits: computed in f32 and rounded once. */
static void halves_are_computed_in_single_precision(void **state) {
    (void)state;
    static plain p;
    fill(&p, 23, 17, 4);
    for (int d = 0; d < 2; d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_dtype half = d ? COT_F16 : COT_BF16;
        cot_var   v = random_data(t, half, COT_SHAPE(p.n)), x = random_data(t, half, COT_SHAPE(p.columns, 5));
        cot_var   y = random_data(t, half, COT_SHAPE(p.rows, 5));
        cot_csr   a = sparse(t, &p, v), b = sparse(t, &p, cot_cast(v, COT_F32));
        cot_var   z = cot_csr_matmul(a, x), w = cot_cast(cot_csr_matmul(b, cot_cast(x, COT_F32)), half);
        cot_var   s = cot_csr_sddmm(a, y, x).values,
                u = cot_cast(cot_csr_sddmm(b, cot_cast(y, COT_F32), cot_cast(x, COT_F32)).values, half);
        cot_var q = cot_csr_softmax(a).values, r = cot_cast(cot_csr_softmax(b).values, half);
        assert_int_equal(cot_dtype_of(z), half);
        assert_true(cot_value_i64(cot_all(cot_equal(z, w), COT_ALL)));
        assert_true(cot_value_i64(cot_all(cot_equal(s, u), COT_ALL)));
        assert_true(cot_value_i64(cot_all(cot_equal(q, r), COT_ALL)));
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* As many nodes and edges as a graph of papers has: nothing is made dense. The most that is in use
 * at once: x, z, and the gradients of both, and some arrays of entries. */
static void a_backward_takes_memory_for_entries_and_dense_operands(void **state) {
    (void)state;
    enum { SMALL = 16 };
    int64_t   nodes = 110000, edges = 860000, width = test_small() ? SMALL : 200;
    int64_t  *row = malloc((size_t)edges * 2 * sizeof *row), *column = row + edges;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    assert_non_null(row);
    for (int64_t e = 0; e < edges; e++) row[e] = whole((int)nodes), column[e] = whole((int)nodes);
    cot_var v = cot_tensor(t, COT_F32, COT_SHAPE(edges), NULL),
            x = cot_tensor(t, COT_F32, COT_SHAPE(nodes, width), NULL);
    cot_csr a = cot_csr_from_triplets(t, nodes, nodes, edges, row, column, v);
    cot_var z = cot_csr_matmul(a, x);
    assert_int_equal(cot_backward(cot_sum(z, COT_ALL)), COT_OK);
    assert_ok(t);
    int64_t dense = nodes * width * 4, entries = edges * 4, all = cot_tape_bytes(t);
    if (all > 5 * dense + 16 * entries + 8 * nodes * 4)
        fail_msg("%lld bytes for dense operands of %lld and entries of %lld", (long long)all, (long long)dense,
                 (long long)entries);
    cot_tape_destroy(t);
    free(row);
}

static void work(cot_tape *t, void *user) {
    (void)user;
    cot_var   xs[3] = {cot_tensor(t, COT_F64, COT_SHAPE(ENTRIES), NULL),
                       cot_tensor(t, COT_F64, COT_SHAPE(ROWS, WIDTH), NULL),
                       cot_tensor(t, COT_F64, COT_SHAPE(COLUMNS, WIDTH), NULL)};
    cot_var  g[3];
    int32_t  starts[] = {0, 2, 2, 5}, indices[] = {3, 1, 0, 1, 3};
    cot_array p = {COT_I32, COT_SHAPE(4), 4, starts}, i = {COT_I32, COT_SHAPE(5), 5, indices};
    cot_grad_of(attends(3, xs, NULL), 3, xs, g);
    cot_csr a = cot_csr_from_arrays(t, 3, 4, &p, &i, cot_cast(cot_tensor(t, COT_F64, COT_SHAPE(5), NULL), COT_BF16));
    cot_csr_to_dense(cot_csr_transpose(a));
    cot_csr_matmul(a, cot_transpose(cot_zeros(t, COT_BF16, COT_SHAPE(2, 4))));
    cot_csr_from_dense(cot_csr_to_dense(cot_csr_gcn(t, COT_F32, 3, 2, (int64_t[]){0, 1}, (int64_t[]){1, 2})));
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(work, NULL, 0, NULL);
}

/* ---- patterns made to deceive ---------------------------------------------------------------- */

/* Any integers at all: sanitizers look that nothing outside is read or written. */
static void no_pattern_reads_outside(void **state) {
    (void)state;
    int64_t grain = cot__grain;
    cot__grain = 1;
    for (int round = 0; round < 400; round++) {
        int32_t   p[ROWS + COLUMNS + 2 + 3 * ENTRIES];
        int       n = (int)(sizeof p / sizeof *p);
        cot_tape *t = cot_tape_create(NULL);
        for (int k = 0; k < n; k++)
            p[k] = round % 2  ? whole(ENTRIES + 3) - 1
                   : whole(4) ? whole(INT32_MAX) - INT32_MAX / 2
                              : INT32_MIN + whole(3);
        cot_csr a = {ROWS, COLUMNS, random_data(t, COT_F64, COT_SHAPE(ENTRIES)), cot_data(t, COT_I32, COT_SHAPE(n), p)};
        for (int k = 1; k < 20; k += 9) {
            cot_csr_matmul(a, random_data(t, COT_F64, COT_SHAPE(COLUMNS, k)));
            cot_csr_matmul_transposed(a, random_data(t, COT_F64, COT_SHAPE(ROWS, k)));
            cot_csr b = cot_csr_sddmm(a, random_data(t, COT_F64, COT_SHAPE(ROWS, k)),
                                      random_data(t, COT_F64, COT_SHAPE(COLUMNS, k)));
            double    have[ENTRIES];
            assert_int_equal(cot_read(cot_csr_softmax(b).values, have, ENTRIES), COT_OK);
        }
        assert_ok(t);
        cot_tape_destroy(t);
    }
    cot__grain = grain;
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define expect(code, text)                                                                                             \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void errors_say_what_is_wrong_when_one_is_made(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       v = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    const int64_t at[] = {0, 5}, below[] = {-1, 0};
    int32_t       starts[] = {0, 3, 2}, late[] = {1, 2, 2}, short_[] = {0, 1, 1}, indices[] = {0, 1};
    double        reals[] = {0, 1, 2};
    cot_array     p = {COT_I32, COT_SHAPE(3), 3, starts}, i = {COT_I32, COT_SHAPE(2), 2, indices};
    assert_false(cot_is_valid(cot_csr_from_triplets(t, 2, 3, 2, (int64_t[]){0, 1}, at, v).values));
    expect(COT_VALUE, "[csr_from_triplets] column[1] is 5, out of range for extent 3; values run from 0 to 2");
    cot_csr_from_triplets(t, 2, 3, 2, below, at, v);
    expect(COT_VALUE, "[csr_from_triplets] row[0] is -1, out of range for extent 2; values run from 0 to 1");
    cot_csr_from_triplets(t, -2, 3, 0, NULL, NULL, v);
    expect(COT_SHAPE, "[csr_from_triplets] -2 rows; a sparse matrix has from 0 to 1073741823 of them");
    cot_csr_from_triplets(t, 2, INT64_C(1) << 40, 0, NULL, NULL, v);
    expect(COT_LIMIT, "[csr_from_triplets] 1099511627776 columns; a sparse matrix has from 0 to 1073741823 of them");
    cot_csr_from_triplets(t, 2, 3, 2, NULL, at, v);
    expect(COT_VALUE, "[csr_from_triplets] row is NULL; it lists 2 of them");
    cot_csr_from_triplets(t, 2, 3, 1, (int64_t[]){0}, (int64_t[]){0}, v);
    expect(COT_SHAPE,
           "[csr_from_triplets] values have shape (2,), and 1 places are given; their last axis has one for each");
    cot_csr_from_arrays(t, 2, 3, &p, &i, v);
    expect(COT_VALUE,
           "[csr_from_arrays] starts[1] is 3, for 2 indices; starts ascend from 0 to the number of indices");
    p.data = late;
    cot_csr_from_arrays(t, 2, 3, &p, &i, v);
    expect(COT_VALUE,
           "[csr_from_arrays] starts[0] is 1, for 2 indices; starts ascend from 0 to the number of indices");
    p.data = short_;
    cot_csr_from_arrays(t, 2, 3, &p, &i, v);
    expect(COT_VALUE,
           "[csr_from_arrays] starts[2] is 1, for 2 indices; starts ascend from 0 to the number of indices");
    cot_csr_from_arrays(t, 3, 3, &p, &i, v);
    expect(COT_SHAPE, "[csr_from_arrays] 3 starts for 3 rows; there is one more than there are rows");
    short_[2] = 2;
    indices[1] = 3;
    cot_csr_from_arrays(t, 2, 3, &p, &i, v);
    expect(COT_VALUE, "[csr_from_arrays] indices[1] is 3, out of range for extent 3; values run from 0 to 2");
    p.dtype = COT_F64, p.data = reals;
    cot_csr_from_arrays(t, 2, 3, &p, &i, v);
    expect(COT_DTYPE, "[csr_from_arrays] starts have dtype f64; they must be i32 or i64");
    cot_csr_from_arrays(t, 2, 3, &i, NULL, v);
    expect(COT_VALUE, "[csr_from_arrays] indices are NULL; they are an array of the host");
    cot_csr_from_triplets(NULL, 2, 3, 0, NULL, NULL, v);
    expect(COT_VALUE, "[csr_from_triplets] the tape is NULL; it is that of the values");
    cot_csr_from_dense(v);
    expect(COT_SHAPE, "[csr_from_dense] a has shape (2,); a matrix has two axes");
    cot_csr_gcn(t, COT_I32, 3, 0, NULL, NULL);
    expect(COT_DTYPE, "[csr_gcn] dtype i32; values are floats");
    cot_csr_gcn(t, COT_F32, 3, 1, (int64_t[]){3}, (int64_t[]){0});
    expect(COT_VALUE, "[csr_gcn] from[0] is 3, out of range for extent 3; values run from 0 to 2");
    cot_tape_destroy(t);
}

static void errors_say_what_is_wrong_in_products(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   v = cot_data(t, COT_F64, COT_SHAPE(ENTRIES), NULL), x = cot_zeros(t, COT_F64, COT_SHAPE(7, 2));
    cot_csr   a = some(v), b = a;
    cot_csr_matmul(a, x);
    expect(COT_SHAPE, "[csr_matmul] x has shape (7,2), and the matrix 4 columns; x has as many rows");
    cot_csr_matmul_transposed(a, x);
    expect(COT_SHAPE, "[csr_matmul_transposed] x has shape (7,2), and the matrix 5 rows; x has as many rows");
    cot_matmul_csr(x, a);
    expect(COT_SHAPE, "[matmul_csr] x has shape (7,2), and the matrix 5 rows; x has as many columns");
    cot_csr_matmul(a, cot_constant(t, 1));
    expect(COT_SHAPE, "[csr_matmul] x has shape (), and the matrix 4 columns; x has as many rows");
    cot_csr_sddmm(a, cot_zeros(t, COT_F64, COT_SHAPE(5, 2)), cot_zeros(t, COT_F64, COT_SHAPE(4, 3)));
    expect(COT_SHAPE, "[csr_sddmm] x has shape (5,2) and y (4,3); their last axes must be equal");
    cot_csr_sddmm(a, cot_zeros(t, COT_F64, COT_SHAPE(5, 2)), x);
    expect(COT_SHAPE, "[csr_sddmm] y has shape (7,2), and the matrix 4 columns; y has as many rows");
    b.values = cot_zeros(t, COT_F64, COT_SHAPE(9));
    cot_csr_sum_rows(b);
    expect(COT_SHAPE, "[csr_sum_rows] the values have shape (9,), the pattern (8,) entries; the last axis of values "
                      "has one for each");
    b.values = cot_zeros(t, COT_F64, COT_SHAPE(2, 8));
    cot_csr_matmul(b, cot_zeros(t, COT_F64, COT_SHAPE(3, 4, 2)));
    assert_int_equal(cot_tape_status(t), COT_SHAPE);
    cot_tape_clear_error(t);
    b = a;
    b.rows = 6;
    cot_csr_softmax(b);
    expect(COT_SHAPE,
           "[csr_softmax] the pattern is i32 of shape (35,), and the matrix has 6 rows and 4 columns; a pattern "
           "is made by cot_csr_from_triplets and its like");
    b.rows = INT64_MAX, b.columns = INT64_MAX; /* no sum of them is taken */
    cot_csr_sum_rows(b);
    expect(COT_SHAPE, "[csr_sum_rows] the pattern is i32 of shape (35,), and the matrix has 9223372036854775807 rows "
                      "and 9223372036854775807 columns; a pattern is made by cot_csr_from_triplets and its like");
    cot_tape_destroy(t);
}

static cot_shape deep(int axes, int64_t last) {
    cot_shape s = {axes, {0}};
    for (int k = 0; k < axes; k++) s.dim[k] = k + 1 < axes ? 1 : last;
    return s;
}

/* As many leading axes as fit, and one more: a product has one axis more than the values. */
static void values_leave_room_for_an_axis(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_csr   a = some(cot_data(t, COT_F64, COT_SHAPE(ENTRIES), NULL));
    cot_var   x = cot_ones(t, COT_F64, COT_SHAPE(COLUMNS));
    a.values = cot_ones(t, COT_F64, deep(15, ENTRIES));
    assert_int_equal(cot_shape_of(cot_csr_to_dense(a)).ndim, 16);
    assert_int_equal(cot_shape_of(cot_csr_matmul(a, x)).ndim, 15);
    assert_int_equal(cot_shape_of(cot_csr_sum_rows(a)).ndim, 15);
    assert_ok(t);
    a.values = cot_ones(t, COT_F64, deep(16, ENTRIES));
    cot_csr_to_dense(a);
    expect(COT_LIMIT, "[csr_to_dense] the values have 16 axes; a matrix has one more, and at most 16 are possible");
    cot_csr_matmul(a, x);
    expect(COT_LIMIT, "[csr_matmul] the values have 16 axes; a matrix has one more, and at most 16 are possible");
    cot_csr_sum_rows(a);
    expect(COT_LIMIT, "[csr_sum_rows] the values have 16 axes; a matrix has one more, and at most 16 are possible");
    cot_csr_sddmm(a, x, x);
    expect(COT_LIMIT, "[csr_sddmm] the values have 16 axes; a matrix has one more, and at most 16 are possible");
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_is_one_chain_on_every_processor),
        cmocka_unit_test(sampled_products_are_dot_products),
        cmocka_unit_test(row_weights_are_the_softmax_of_the_entries),
        cmocka_unit_test(triplets_come_in_any_order_and_equal_places_are_summed),
        cmocka_unit_test(arrays_of_scipy_are_taken_as_they_are),
        cmocka_unit_test(a_dense_matrix_goes_there_and_back),
        cmocka_unit_test(a_graph_is_normalised_with_its_loops),
        cmocka_unit_test(matrices_without_entries_rows_or_columns_multiply),
        cmocka_unit_test(derivatives_agree_with_differences_to_second_order),
        cmocka_unit_test(gradients_are_those_of_the_dense_product),
        cmocka_unit_test(systems_are_solved_and_differentiated),
        cmocka_unit_test(a_batch_gives_what_its_elements_give),
        cmocka_unit_test(loops_carry_products_and_their_gradients),
        cmocka_unit_test(programs_give_the_same_bits),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(halves_are_computed_in_single_precision),
        cmocka_unit_test(a_backward_takes_memory_for_entries_and_dense_operands),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(no_pattern_reads_outside),
        cmocka_unit_test(errors_say_what_is_wrong_when_one_is_made),
        cmocka_unit_test(errors_say_what_is_wrong_in_products),
        cmocka_unit_test(values_leave_room_for_an_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
