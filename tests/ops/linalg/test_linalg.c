/* Linear algebra: factors multiply back, solutions solve, residuals are as small as the arithmetic
 * allows, with any strides and any number of threads. */
/* ctest: labels=threads timeout=300 */
#include "support/tape_test.h"

#include "backend/cpu/linalg/lin.h"
#include "support/support.h"

/* A backward stable method leaves a residual of a few units times n (its chains are that long)
 * times the norms. */
static double unit_of(cot_dtype d) {
    return d == COT_F64 ? 0x1p-52 : d == COT_F32 ? 0x1p-23 : d == COT_F16 ? 0x1p-10 : 0x1p-7;
}

static cot_var filled(cot_tape *t, cot_dtype d, cot_shape s, const char *name, double lo, double hi) {
    test_random random = test_random_of(name, (int)s.dim[0]);
    int64_t     n = 1;
    for (int k = 0; k < s.ndim; k++) n *= s.dim[k];
    double *x = malloc(((size_t)n + 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = test_uniform(&random, lo, hi);
    cot_var v = cot_cast(cot_data(t, COT_F64, s, x), d);
    free(x);
    return v;
}

/* The largest |element|; NaN if there is one. */
static double largest(cot_var x) {
    if (cot_size(x) == 0) return 0;
    return cot_value(cot_max(cot_cast(cot_abs(x), COT_F64), COT_ALL));
}
static cot_var swap(cot_var x) {
    cot_axes order = {cot_shape_of(x).ndim, false, {0}};
    for (int k = 0; k < order.n; k++) order.axis[k] = k < order.n - 2 ? k : 2 * order.n - 3 - k;
    return cot_permute(x, order);
}
static int64_t dim(cot_var x, int k) {
    cot_shape s = cot_shape_of(x);
    return s.dim[k < 0 ? s.ndim + k : k];
}

/* |x - y| is small against n units of the size of the factors. */
static void assert_close_at(cot_var x, cot_var y, double bound, int line) {
    double off = largest(cot_sub(cot_cast(x, COT_F64), cot_cast(y, COT_F64)));
    if (!(off <= bound)) {
        print_message("line %d: off by %g, allowed %g; %s\n", line, off, bound, cot_tape_message(x.tape));
        fail();
    }
}
#define CLOSE(x, y, bound) assert_close_at(x, y, bound, __LINE__)

static void assert_orthonormal(cot_var q, double unit) { /* columns */
    cot_tape *t = q.tape;
    CLOSE(cot_matmul(swap(cot_cast(q, COT_F64)), cot_cast(q, COT_F64)), cot_eye(t, COT_F64, dim(q, -1), dim(q, -1)),
          8 * unit * (double)(dim(q, -2) + 1));
}
static void assert_triangle(cot_var x, bool upper) { /* zeros are exact */
    int64_t rows = dim(x, -2), columns = dim(x, -1), n = cot_size(x);
    double *d = malloc(((size_t)n + 1) * sizeof *d);
    assert_int_equal(cot_read(x, d, n), COT_OK);
    for (int64_t i = 0; i < n; i++) {
        int64_t r = i / columns % rows, c = i % columns;
        if (upper ? c < r : c > r) assert_true(d[i] == 0);
    }
    free(d);
}

static const int64_t sizes[] = {0, 1, 2, 3, 5, 16, 31, 32, 33, 40, 63, 64, 65, 100, 150};

typedef void (*check)(cot_tape *t, cot_dtype d, int64_t n);
static void each_size(check f) {
    for (int k = 0; k < TEST_COUNT(sizes); k++)
        for (int d = 0; d < 2; d++) {
            cot_tape *t = cot_tape_create(NULL);
            f(t, d ? COT_F32 : COT_F64, sizes[k]);
            assert_ok(t);
            assert_string_equal(cot_tape_note(t), "");
            cot_tape_destroy(t);
        }
}

static cot_var spd(cot_tape *t, cot_dtype d, cot_shape s) { /* symmetric, condition about 4 */
    cot_var x = filled(t, d, s, "spd", -1, 1);
    double  n = (double)dim(x, -1) + 1;
    return cot_add(cot_div(cot_matmul(x, swap(x)), n), cot_eye(t, d, dim(x, -1), dim(x, -1)));
}

/* ---- factors multiply back ------------------------------------------------------------------- */

static void cholesky_back(cot_tape *t, cot_dtype d, int64_t n) {
    cot_var a = spd(t, d, COT_SHAPE(2, n, n)), l = cot_cholesky(a), w = cot_cast(l, COT_F64);
    CLOSE(cot_matmul(w, swap(w)), a, unit_of(d) * (double)(n + 4) * 4);
    assert_triangle(l, false);
}
static void a_cholesky_factor_times_itself_is_the_matrix(void **state) {
    (void)state;
    each_size(cholesky_back);
}

static cot_var rows_of(cot_var a, cot_var permutation) { /* a[permutation] */
    cot_shape s = cot_shape_of(a);
    return cot_take_along_axis(a, cot_broadcast_to(cot_expand_dims(permutation, -1), s), -2);
}
static void lu_back(cot_tape *t, cot_dtype d, int64_t n) {
    const int64_t shapes[][2] = {{n, n}, {n + 7, n}, {n, n + 40}};
    for (int k = 0; k < 3; k++) {
        cot_var a = filled(t, d, COT_SHAPE(2, shapes[k][0], shapes[k][1]), "lu", -1, 1), p, l, u;
        assert_int_equal(cot_lu(a, &p, &l, &u), COT_OK);
        CLOSE(cot_matmul(cot_cast(l, COT_F64), cot_cast(u, COT_F64)), rows_of(a, p),
              unit_of(d) * (double)(n + 2) * 2 * (1 + largest(u)));
        assert_triangle(l, false);
        assert_triangle(u, true);
        assert_true(largest(l) <= 1); /* pivoting */
    }
}
static void lower_times_upper_is_the_matrix_with_rows_exchanged(void **state) {
    (void)state;
    each_size(lu_back);
}

static void qr_back(cot_tape *t, cot_dtype d, int64_t n) {
    const int64_t shapes[][2] = {{n, n}, {n + 7, n}, {n, n + 40}};
    for (int k = 0; k < 3; k++) {
        cot_var a = filled(t, d, COT_SHAPE(2, shapes[k][0], shapes[k][1]), "qr", -1, 1), q, r;
        assert_int_equal(cot_qr(a, &q, &r), COT_OK);
        CLOSE(cot_matmul(cot_cast(q, COT_F64), cot_cast(r, COT_F64)), a,
              unit_of(d) * (double)(n + 4) * (2 + largest(r)));
        assert_orthonormal(q, unit_of(d));
        assert_triangle(r, true);
    }
}
static void q_times_r_is_the_matrix(void **state) {
    (void)state;
    each_size(qr_back);
}

static cot_var times_diagonal(cot_var x, cot_var d) {
    return cot_mul(cot_cast(x, COT_F64), cot_expand_dims(cot_cast(d, COT_F64), -2));
}

static void assert_order(cot_var x, bool ascending) {
    int64_t n = cot_size(x), k = dim(x, -1);
    double *d = malloc(((size_t)n + 1) * sizeof *d);
    cot_read(x, d, n);
    for (int64_t i = 0; i + 1 < n; i++)
        if ((i + 1) % k) assert_true(ascending ? d[i] <= d[i + 1] : d[i] >= d[i + 1]);
    free(d);
}
/* the first of the largest elements of each column is positive */
static void assert_signs(cot_var v) {
    int64_t rows = dim(v, -2), k = dim(v, -1), n = cot_size(v);
    double *d = malloc(((size_t)n + 1) * sizeof *d);
    cot_read(v, d, n);
    for (int64_t b = 0; rows > 0 && k > 0 && b < n / (rows * k); b++)
        for (int64_t c = 0; c < k; c++) {
            double big = 0, *x = d + b * rows * k + c;
            for (int64_t r = 0; r < rows; r++) big = fmax(big, fabs(x[r * k]));
            for (int64_t r = 0; r < rows; r++)
                if (fabs(x[r * k]) >= 0.999 * big) {
                    assert_true(x[r * k] > 0);
                    break;
                }
        }
    free(d);
}

static void eigh_back(cot_tape *t, cot_dtype d, int64_t n) {
    cot_var x = filled(t, d, COT_SHAPE(2, n, n), "eigh", -1, 1), a = cot_add(x, swap(x)), w, v;
    assert_int_equal(cot_eigh(a, &w, &v), COT_OK);
    CLOSE(cot_matmul(times_diagonal(v, w), swap(cot_cast(v, COT_F64))), a,
          4 * unit_of(d) * (double)(n + 4) * (1 + largest(w)));
    assert_orthonormal(v, unit_of(d));
    assert_order(w, true);
    assert_signs(v);
}
static void eigenvectors_diagonalise(void **state) {
    (void)state;
    each_size(eigh_back);
}

static void svd_back(cot_tape *t, cot_dtype d, int64_t n) {
    const int64_t shapes[][2] = {{n, n}, {n + 7, n}, {n, n + 40}};
    for (int k = 0; k < 3; k++) {
        cot_var a = filled(t, d, COT_SHAPE(2, shapes[k][0], shapes[k][1]), "svd", -1, 1), u, s, vt;
        assert_int_equal(cot_svd(a, &u, &s, &vt), COT_OK);
        CLOSE(cot_matmul(times_diagonal(u, s), cot_cast(vt, COT_F64)), a,
              4 * unit_of(d) * (double)(n + 8) * (1 + largest(s)));
        assert_orthonormal(u, unit_of(d));
        assert_orthonormal(swap(vt), unit_of(d));
        assert_order(s, false);
        assert_signs(u);
    }
}
static void singular_vectors_diagonalise(void **state) {
    (void)state;
    each_size(svd_back);
}

/* A matrix of rank 2 and one of zeros: the vectors of singular values 0 are orthonormal all the
 * same. */
static void singular_vectors_of_deficient_matrices_are_orthonormal(void **state) {
    (void)state;
    for (int64_t n = 5; n < 60; n += 40) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   a = cot_matmul(filled(t, COT_F64, COT_SHAPE(n + 3, 2), "left", -1, 1),
                                 filled(t, COT_F64, COT_SHAPE(2, n), "right", -1, 1)),
                u, s, vt;
        cot_var   both = cot_stack(2, (cot_var[]){a, cot_zeros(t, COT_F64, COT_SHAPE(n + 3, n))}, 0);
        cot_svd(both, &u, &s, &vt);
        assert_orthonormal(u, unit_of(COT_F64));
        assert_orthonormal(swap(vt), unit_of(COT_F64));
        CLOSE(cot_matmul(times_diagonal(u, s), vt), both, 4 * unit_of(COT_F64) * (double)(n + 8) * (1 + largest(s)));
        assert_true(largest(cot_slice(s, -1, 2, COT_END, 1)) <= unit_of(COT_F64) * (double)n * largest(s));
        cot_tape_destroy(t);
    }
}

/* Graded columns: each singular value is as exact as its column, not only as the largest. */
static void small_singular_values_are_found_precisely(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    s[3], a[9] = {3e10, 0, 0, 0, 2, 0, 4e10, 0, 5e-11};
    cot_read(cot_svdvals(cot_data(t, COT_F64, COT_SHAPE(3, 3), a)), s, 3);
    assert_near(s[0] / 5e10, 1, 8 * unit_of(COT_F64));
    assert_near(s[1], 2, 8 * unit_of(COT_F64));
    assert_near(s[2] / 3e-11, 1, 32 * unit_of(COT_F64));
    /* one column of ordinary size and seven so small that their squares lose digits: rotations
     * among these would never end */
    cot_var faint = cot_concat(2,
                               (cot_var[]){filled(t, COT_F64, COT_SHAPE(8, 1), "large", -1, 1),
                                           cot_mul(filled(t, COT_F64, COT_SHAPE(8, 7), "faint", -1, 1), 1e-21)},
                               1),
            u, v, vt;
    cot_svd(cot_cast(faint, COT_F32), &u, &v, &vt);
    assert_orthonormal(u, unit_of(COT_F32));
    CLOSE(cot_matmul(times_diagonal(u, v), cot_cast(vt, COT_F64)), faint, 64 * unit_of(COT_F32));
    assert_string_equal(cot_tape_note(t), "");
    double scale[] = {1e-300, 1e300, 1e-310};
    for (int k = 0; k < 3; k++) {
        double  b[4] = {3 * scale[k], 0, 0, 4 * scale[k]};
        cot_var x = cot_data(t, COT_F64, COT_SHAPE(2, 2), b);
        cot_read(cot_svdvals(x), s, 2);
        assert_near(s[0] / scale[k], 4, 1e-12);
        cot_read(cot_eigvalsh(x), s, 2);
        assert_near(s[1] / scale[k], 4, 1e-12);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- solutions solve ------------------------------------------------------------------------- */

static void solve_back(cot_tape *t, cot_dtype d, int64_t n) {
    cot_var a = filled(t, d, COT_SHAPE(2, n, n), "solve", -1, 1), b = filled(t, d, COT_SHAPE(2, n, 3), "side", -1, 1);
    cot_var x = cot_solve(a, b), wide = cot_cast(a, COT_F64);
    CLOSE(cot_matmul(wide, cot_cast(x, COT_F64)), b, 16 * unit_of(d) * (double)(n + 2) * (1 + largest(x)));
    cot_var s = spd(t, d, COT_SHAPE(n, n)), inverse = cot_inv(s);
    CLOSE(cot_matmul(cot_cast(s, COT_F64), cot_cast(inverse, COT_F64)), cot_eye(t, COT_F64, n, n),
          16 * unit_of(d) * (double)(n + 2));
    cot_var v = filled(t, d, COT_SHAPE(n), "vector", -1, 1), y = cot_solve(cot_transpose(s), v);
    assert_int_equal(cot_shape_of(y).ndim, 1);
    CLOSE(cot_matmul(cot_cast(s, COT_F64), cot_cast(y, COT_F64)), v, 16 * unit_of(d) * (double)(n + 2));
}
static void solutions_solve(void **state) {
    (void)state;
    each_size(solve_back);
}

static void triangular_back(cot_tape *t, cot_dtype d, int64_t n) {
    for (int flags = 0; flags < 16; flags++) {
        bool    right = flags & COT_RIGHT;
        double *m = malloc(((size_t)(n * n) + 1) * sizeof *m);
        cot_var a     = filled(t, d, COT_SHAPE(n, n), "triangle", -1, 1),
                b     = filled(t, d, right ? COT_SHAPE(5, n) : COT_SHAPE(n, 5), "b", -1, 1);
        /* condition about 3 */
        a = cot_add(cot_div(a, (double)n + 1), cot_mul(cot_eye(t, d, n, n), 1.5));
        cot_var x = cot_triangular_solve(a, b, flags);
        cot_read(a, m, n * n);
        for (int64_t i = 0; i < n * n; i++) { /* the matrix meant */
            int64_t r = i / n, c = i % n;
            if (flags & COT_UPPER ? c < r : c > r) m[i] = 0;
            if (r == c && (flags & COT_UNIT_DIAGONAL)) m[i] = 1;
        }
        cot_var meant = cot_data(t, COT_F64, COT_SHAPE(n, n), m), w = cot_cast(x, COT_F64);
        if (flags & COT_TRANSPOSED) meant = cot_transpose(meant);
        CLOSE(right ? cot_matmul(w, meant) : cot_matmul(meant, w), b, 8 * unit_of(d) * (double)(n + 2));
        free(m);
    }
}
static void triangular_solutions_solve_in_all_sixteen_ways(void **state) {
    (void)state;
    each_size(triangular_back);
}

static void the_other_half_of_a_triangle_is_not_read(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    x[2];
    cot_read(cot_triangular_solve(cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){2, NAN, 1, 4}),
                                  cot_data(t, COT_F64, COT_SHAPE(2), (double[]){2, 9}), 0),
             x, 2);
    assert_true(x[0] == 1 && x[1] == 2);
    cot_read(cot_triangular_solve(cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){NAN, 3, NAN, INFINITY}),
                                  cot_data(t, COT_F64, COT_SHAPE(2), (double[]){7, 2}), COT_UPPER | COT_UNIT_DIAGONAL),
             x, 2);
    assert_true(x[0] == 1 && x[1] == 2);
    cot_tape_destroy(t);
}

static void determinants(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_data(t, COT_F64, COT_SHAPE(2, 2, 2), (double[]){1, 2, 3, 4, 0, 1, 1, 0}), sign, logarithm;
    double    d[2], s[2], l[2];
    cot_read(cot_det(a), d, 2);
    cot_slogdet(a, &sign, &logarithm);
    cot_read(sign, s, 2), cot_read(logarithm, l, 2);
    assert_near(d[0], -2, 4 * unit_of(COT_F64));
    assert_true(d[1] == -1 && s[0] == -1 && s[1] == -1 && l[1] == 0);
    assert_near(l[0], log(2), 4 * unit_of(COT_F64));
    assert_true(cot_value(cot_det(cot_zeros(t, COT_F64, COT_SHAPE(0, 0)))) == 1);
    cot_slogdet(cot_zeros(t, COT_F64, COT_SHAPE(0, 0)), &sign, &logarithm);
    assert_true(cot_value(sign) == 1 && cot_value(logarithm) == 0);
    assert_true(cot_value(cot_det(cot_data(t, COT_I64, COT_SHAPE(1, 1), (int64_t[]){-7}))) == -7);
    /* factors that overflow and underflow on the way, a product that does not */
    double big[9] = {1e200, 0, 0, 0, 1e200, 0, 0, 0, 1e-300};
    assert_near(cot_value(cot_det(cot_data(t, COT_F64, COT_SHAPE(3, 3), big))) / 1e100, 1, 1e-12);
    /* singular: 0 and -inf, no note for the value */
    cot_var flat = cot_ones(t, COT_F64, COT_SHAPE(3, 3));
    cot_slogdet(flat, &sign, &logarithm);
    assert_true(cot_value(cot_det(flat)) == 0 && cot_value(sign) == 0 && cot_value(logarithm) == -INFINITY);
    cot_slogdet(cot_full(t, COT_F64, COT_SHAPE(2, 2), NAN), &sign, &logarithm);
    assert_true(isnan(cot_value(sign)) && isnan(cot_value(logarithm)));
    assert_string_equal(cot_tape_note(t), "");
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Rank n - 1: the cofactors, by hand. Rank n - 2: 0. */
static void the_gradient_of_a_determinant_that_is_zero(void **state) {
    (void)state;
    cot_tape    *t = cot_tape_create(NULL);
    const double a[27] = {1, 2, 3, 2, 4, 6, 1, 0, 1, 1, 2, 3, 2, 4, 6, 3, 6, 9, 2, 0, 0, 0, 3, 0, 0, 0, 4};
    const double want[27] = {4, 4, -4, -2, -2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 8, 0, 0, 0, 6};
    double       g[27];
    cot_var      x = cot_tensor(t, COT_F64, COT_SHAPE(3, 3, 3), a), dx, d[2];
    cot_backward(cot_sum(cot_det(x), COT_ALL));
    cot_read_grad(x, g, 27);
    /* products of entries up to 9 */
    for (int i = 0; i < 27; i++) assert_near(g[i], want[i], 64 * unit_of(COT_F64) * 100);
    assert_string_equal(cot_tape_note(t), "");
    dx = cot_data(t, COT_F64, COT_SHAPE(3, 3, 3), want);
    cot_read(cot_jvp(cot_det(x), 1, &x, &dx), g, 3); /* forward: ⟨cof, dx⟩ */
    assert_near(g[0], 60, 1e-12);
    cot_grad_of(cot_sum(cot_det(x), COT_ALL), 1, &x, &d[0]);
    cot_grad_of(cot_sum(d[0], COT_ALL), 1, &x, &d[1]); /* second order: NaN, but not in silence */
    assert_true(isnan(cot_value(cot_sum(d[1], COT_ALL))));
    assert_string_equal(cot_tape_note(t), "[inv] matrix [0] and 1 more of 3: each is singular; its inverse is NaN");
    assert_ok(t);
    cot_tape_destroy(t);
}

static void least_squares(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = filled(t, COT_F64, COT_SHAPE(2, 9, 4), "tall", -1, 1),
            b   = filled(t, COT_F64, COT_SHAPE(2, 9, 2), "b", -1, 1);
    cot_var   x = cot_lstsq(a, b), rest = cot_sub(cot_matmul(a, x), b);
    CLOSE(cot_matmul(swap(a), rest), cot_zeros(t, COT_F64, COT_SHAPE(1)),
          64 * unit_of(COT_F64)); /* the rest is normal to the columns */
    cot_var wide = filled(t, COT_F64, COT_SHAPE(3, 7), "wide", -1, 1), y = filled(t, COT_F64, COT_SHAPE(3), "y", -1, 1),
            z = cot_lstsq(wide, y);
    assert_int_equal(cot_shape_of(z).ndim, 1);
    CLOSE(cot_matmul(wide, z), y, 64 * unit_of(COT_F64));
    /* the shortest solution lies in the rows: z = wideᵀ u */
    CLOSE(cot_matmul(cot_transpose(wide), cot_lstsq(cot_transpose(wide), z)), z, 64 * unit_of(COT_F64));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void exponentials(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    z[12];
    /* a turn, a shear, a diagonal with very different norms in one batch */
    double  a[12] = {0, 3, -3, 0, 0, 1000, 0, 0, 1e-3, 0, 0, -40};
    cot_read(cot_matrix_exp(cot_data(t, COT_F64, COT_SHAPE(3, 2, 2), a)), z, 12);
    double want[12] = {cos(3), sin(3), -sin(3), cos(3), 1, 1000, 0, 1, exp(1e-3), 0, 0, exp(-40)};
    for (int i = 0; i < 12; i++) assert_near(z[i], want[i], 1e-14);
    assert_near(z[11] / want[11], 1, 40 * 8 * unit_of(COT_F64)); /* the condition of exp at -40 */
    assert_true(cot_value(cot_sum(cot_matrix_exp(cot_zeros(t, COT_F32, COT_SHAPE(3, 3))), COT_ALL)) == 3);
    assert_int_equal(cot_size(cot_matrix_exp(cot_zeros(t, COT_F64, COT_SHAPE(0, 0)))), 0);
    assert_true(isnan(cot_value(cot_matrix_exp(cot_full(t, COT_F64, COT_SHAPE(1, 1), NAN)))));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- dtypes, strides, batches ---------------------------------------------------------------- */

static void halves_are_computed_in_f32_and_integers_in_f64(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    a[4] = {4, 1, 2, 3};
    cot_var   whole          = cot_cast(cot_data(t, COT_F64, COT_SHAPE(2, 2), a), COT_I32),
            f64              = cot_data(t, COT_F64, COT_SHAPE(2, 2), a);
    const cot_dtype halves[] = {COT_BF16, COT_F16};
    for (int k = 0; k < 2; k++) {
        cot_var h      = cot_cast(f64, halves[k]),
                one[]  = {cot_inv(h), cot_det(h), cot_cholesky(h), cot_matrix_exp(cot_div(h, 8.0)), cot_solve(h, h)};
        cot_var f      = cot_cast(f64, COT_F32),
                want[] = {cot_inv(f), cot_det(f), cot_cholesky(f), cot_matrix_exp(cot_div(f, 8.0)), cot_solve(f, f)};
        for (int i = 0; i < TEST_COUNT(one); i++) {
            assert_int_equal(cot_dtype_of(one[i]), halves[k]);
            assert_true(largest(cot_sub(cot_cast(one[i], COT_F32), cot_cast(cot_cast(want[i], halves[k]), COT_F32))) ==
                        0); /* rounded once */
        }
        cot_var q, r, l, u, p, w, v, s, vt;
        cot_qr(h, &q, &r), cot_lu(h, &p, &l, &u), cot_eigh(h, &w, &v);
        assert_true(cot_dtype_of(q) == halves[k] && cot_dtype_of(r) == halves[k] && cot_dtype_of(l) == halves[k] &&
                    cot_dtype_of(p) == COT_I64);
        assert_true(cot_dtype_of(w) == halves[k] && cot_dtype_of(v) == halves[k] && cot_dtype_of(u) == halves[k]);
        cot_svd(h, &u, &s, &vt);
        assert_true(cot_dtype_of(u) == halves[k] && cot_dtype_of(s) == halves[k] && cot_dtype_of(vt) == halves[k]);
    }
    assert_int_equal(cot_dtype_of(cot_inv(whole)), COT_F64);
    CLOSE(cot_inv(whole), cot_inv(f64), 0);
    CLOSE(cot_solve(whole, cot_cast(f64, COT_BOOL)), cot_solve(f64, cot_cast(cot_cast(f64, COT_BOOL), COT_F64)), 0);
    assert_int_equal(cot_dtype_of(cot_solve(f64, cot_cast(f64, COT_F16))), COT_F64);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void strided_views_give_the_bits_of_copies(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a      = filled(t, COT_F64, COT_SHAPE(2, 80, 41), "strides", -1, 1),
            v        = cot_flip(cot_slice(cot_permute(a, COT_AXES(0, 2, 1)), 2, 0, COT_END, 2), COT_ALL);
    cot_var   square = cot_slice(v, 1, 0, 40, 1), copy = cot_copy(square), b = cot_slice(v, 2, 0, 3, 1);
    b = cot_slice(b, 1, 0, 40, 1);
    cot_var q[2], r[2], w[2], x[2], u[2], s[2], vt[2];
    for (int k = 0; k < 2; k++) {
        cot_var m = k ? copy : square;
        cot_qr(m, &q[k], &r[k]), cot_eigh(m, &w[k], &x[k]), cot_svd(m, &u[k], &s[k], &vt[k]);
    }
    CLOSE(q[0], q[1], 0);
    CLOSE(r[0], r[1], 0);
    CLOSE(w[0], w[1], 0);
    CLOSE(x[0], x[1], 0);
    CLOSE(u[0], u[1], 0);
    CLOSE(vt[0], vt[1], 0);
    CLOSE(cot_solve(square, b), cot_solve(copy, cot_copy(b)), 0);
    CLOSE(cot_triangular_solve(square, b, COT_UPPER), cot_triangular_solve(copy, cot_copy(b), COT_UPPER), 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void empty_batches_and_empty_matrices(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    const int64_t shapes[][3] = {{0, 2, 2}, {2, 0, 0}, {0, 0, 0}, {3, 0, 2}, {3, 2, 0}, {0, 3, 2}};
    for (int k = 0; k < TEST_COUNT(shapes); k++) {
        int64_t b = shapes[k][0], m = shapes[k][1], n = shapes[k][2], least = m < n ? m : n;
        cot_var a = cot_tensor(t, COT_F64, COT_SHAPE(b, m, n), NULL), p, l, u, q, r, w, v, s, vt;
        cot_lu(a, &p, &l, &u);
        assert_true(dim(l, 1) == m && dim(l, 2) == least && dim(u, 1) == least && dim(u, 2) == n && dim(p, 1) == m);
        cot_qr(a, &q, &r);
        assert_true(dim(q, 1) == m && dim(q, 2) == least && dim(r, 1) == least && dim(r, 2) == n);
        cot_svd(a, &u, &s, &vt);
        assert_true(dim(u, 1) == m && dim(u, 2) == least && dim(s, 1) == least && dim(vt, 1) == least &&
                    dim(vt, 2) == n);
        cot_var sum = cot_add(cot_sum(l, COT_ALL), cot_add(cot_sum(r, COT_ALL), cot_sum(s, COT_ALL)));
        if (m == n) {
            assert_int_equal(cot_size(cot_det(a)), b);
            cot_eigh(a, &w, &v);
            assert_true(dim(w, 1) == n && dim(v, 1) == n && dim(v, 2) == n);
            sum = cot_add(sum, cot_add(cot_sum(cot_inv(a), COT_ALL), cot_sum(cot_cholesky(a), COT_ALL)));
            sum = cot_add(sum, cot_add(cot_sum(cot_matrix_exp(a), COT_ALL), cot_sum(w, COT_ALL)));
            assert_int_equal(cot_size(cot_solve(a, a)), b * n * n);
        }
        assert_int_equal(cot_backward(sum), COT_OK);
    }
    cot_var x = cot_lstsq(cot_zeros(t, COT_F64, COT_SHAPE(3, 0)), cot_zeros(t, COT_F64, COT_SHAPE(3, 2)));
    assert_true(dim(x, 0) == 0 && dim(x, 1) == 2);
    assert_true(dim(cot_solve(cot_eye(t, COT_F64, 3, 3), cot_zeros(t, COT_F64, COT_SHAPE(3, 0))), 1) == 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void gradients_of_symmetrised_operations_are_symmetric(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), (double[]){4, 1, 0.5, 0.2, 5, 1, 0.7, 0.3, 6}), g[2], w, v;
    cot_eigh(a, &w, &v);
    cot_var weights = cot_data(t, COT_F64, COT_SHAPE(3, 3), (double[]){1, 2, 3, 4, 5, 6, 7, 8, 10});
    cot_grad_of(cot_sum(cot_mul(cot_cholesky(a), weights), COT_ALL), 1, &a, &g[0]);
    cot_grad_of(cot_sum(cot_mul(v, weights), COT_ALL), 1, &a, &g[1]);
    for (int k = 0; k < 2; k++) CLOSE(g[k], cot_transpose(g[k]), 0), assert_true(largest(g[k]) > 0.01);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- threads and libraries ------------------------------------------------------------------- */

static uint64_t bits_of(cot_var x, uint64_t h) {
    int64_t n = cot_size(x);
    double *d = malloc(((size_t)n + 1) * sizeof *d);
    cot_read(x, d, n);
    for (int64_t i = 0; i < n; i++) {
        uint64_t u;
        memcpy(&u, &d[i], sizeof u);
        h = (h ^ u) * UINT64_C(1099511628211);
    }
    free(d);
    return h;
}

static uint64_t everything(cot_dtype d, cot_shape shape) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = filled(t, d, shape, "threads", -1, 1), w, v, u, s, vt, q, r, p, l;
    uint64_t  h = 1;
    cot_eigh(a, &w, &v);
    h = bits_of(v, bits_of(w, h));
    cot_svd(a, &u, &s, &vt);
    h = bits_of(u, bits_of(s, bits_of(vt, h)));
    cot_qr(a, &q, &r), cot_lu(a, &p, &l, &u);
    h = bits_of(q, bits_of(r, bits_of(l, bits_of(u, h))));
    h = bits_of(cot_inv(a), bits_of(cot_cholesky(spd(t, d, shape)), bits_of(cot_triangular_solve(a, a, COT_UPPER), h)));
    h = bits_of(cot_det(a), bits_of(cot_matrix_exp(a), h));
    assert_ok(t);
    cot_tape_destroy(t);
    return h;
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    const cot_shape shapes[] = {COT_SHAPE(500, 8, 8), COT_SHAPE(120, 120)};
    for (int k = 0; k < TEST_COUNT(shapes); k++)
        for (int d = 0; d < 2; d++) {
            uint64_t want = 0;
            const int threads[] = {1, 2, 3, 8};
            for (int i = 0; i < TEST_COUNT(threads); i++) {
                cot_set_threads(threads[i]);
                uint64_t h = everything(d ? COT_F32 : COT_F64, shapes[k]);
                if (i == 0) want = h;
                assert_true(h == want);
            }
        }
    cot_set_threads(0);
}

/* If a LAPACK can be loaded, it agrees with our own kernels on results that have one answer. */
static void our_kernels_agree_with_lapack(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    /* the threads of a library that was built without the sanitizer look like races to it */
    skip();
#endif
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 3; k++) {
            cot_dtype dtype = d ? COT_F32 : COT_F64;
            cot_shape shape = k == 0 ? COT_SHAPE(70, 70) : k == 1 ? COT_SHAPE(2, 60, 45) : COT_SHAPE(45, 90);
            cot_tape *t = cot_tape_create(NULL);
            cot_var   a = filled(t, dtype, shape, "lapack", -1, 1), w[2], v[2], u[2], s[2], vt[2];
            for (int own = 0; own < 2; own++) {
                if (!own && !cot__lapack_use("liblapack.so.3")) {
                    cot_tape_destroy(t);
                    skip();
                }
                if (own) cot__lapack_use(NULL);
                cot_svd(a, &u[own], &s[own], &vt[own]);
                if (k == 0) cot_eigh(a, &w[own], &v[own]);
            }
            double bound = 4 * unit_of(dtype) * 100 * largest(s[0]);
            CLOSE(s[0], s[1], bound);
            if (k == 0) CLOSE(w[0], w[1], bound);
            CLOSE(cot_matmul(times_diagonal(u[0], s[0]), cot_cast(vt[0], COT_F64)), a, bound);
            assert_signs(u[0]);
            if (k == 0)
                CLOSE(cot_matmul(times_diagonal(v[0], w[0]), swap(cot_cast(v[0], COT_F64))),
                      cot_mul(cot_add(a, swap(a)), 0.5), bound),
                    assert_signs(v[0]);
            assert_ok(t);
            cot_tape_destroy(t);
        }
    assert_false(cot__lapack_use("no-such-library.so"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cholesky_factor_times_itself_is_the_matrix),
        cmocka_unit_test(lower_times_upper_is_the_matrix_with_rows_exchanged),
        cmocka_unit_test(q_times_r_is_the_matrix),
        cmocka_unit_test(eigenvectors_diagonalise),
        cmocka_unit_test(singular_vectors_diagonalise),
        cmocka_unit_test(singular_vectors_of_deficient_matrices_are_orthonormal),
        cmocka_unit_test(small_singular_values_are_found_precisely),
        cmocka_unit_test(solutions_solve),
        cmocka_unit_test(triangular_solutions_solve_in_all_sixteen_ways),
        cmocka_unit_test(the_other_half_of_a_triangle_is_not_read),
        cmocka_unit_test(determinants),
        cmocka_unit_test(the_gradient_of_a_determinant_that_is_zero),
        cmocka_unit_test(least_squares),
        cmocka_unit_test(exponentials),
        cmocka_unit_test(halves_are_computed_in_f32_and_integers_in_f64),
        cmocka_unit_test(strided_views_give_the_bits_of_copies),
        cmocka_unit_test(empty_batches_and_empty_matrices),
        cmocka_unit_test(gradients_of_symmetrised_operations_are_symmetric),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(our_kernels_agree_with_lapack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
