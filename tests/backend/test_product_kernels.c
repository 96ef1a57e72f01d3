/* test_product_kernels.c: compares matrix products of the CPU with a slow, obvious reference, over
 * random shapes and layouts (kernel_test.h), and their bits with the chain that docs/bits.md
 * gives. */
#include "backend/kernel_test.h"

static void make_matrix_as(array *a, cot__matrix *m, cot_dtype d, int64_t rows, int64_t cols, int flags) {
    make(a, d, 2, (const int64_t[]){rows, cols}, flags);
    fill(a, false);
    *m = (cot__matrix){a->v.data, rows, cols, a->stride[0], a->stride[1]};
}
static void make_matrix(array *a, cot__matrix *m, cot_dtype d, int64_t rows, int64_t cols) {
    make_matrix_as(a, m, d, rows, cols, 0);
}

static void *element(const cot__matrix *m, cot_dtype d, int64_t i, int64_t j) {
    return (char *)m->data + (i * m->row_stride + j * m->col_stride) * cot__dtype_size(d);
}

enum { GUARD = 64 };

/* The product in memory that is as large as one of these extents asks for, either way round. */
static void gemm_in(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, int64_t rows,
                    int64_t cols, int64_t depth) {
    size_t one = cot__gemm_workspace(d, rows, cols, depth), other = cot__gemm_workspace(d, cols, rows, depth);
    size_t bytes = one > other ? one : other;
    /* where many rows or deep ones are packed, a wrong plan would write far behind */
    size_t guard = rows + cols > 1500 || depth > 40000 ? (size_t)8 << 20 : GUARD, spoilt = 0;
    char  *memory = bytes ? malloc(bytes + guard) : NULL;
    if (memory) memset(memory, 0xff, bytes + guard);
    cot__gemm(d, a, b, c, accumulate, (cot__lent){memory, bytes});
    for (size_t i = 0; i < guard && memory; i++) spoilt += (unsigned char)memory[bytes + i] != 0xff;
    assert_int_equal(spoilt, 0);
    free(memory);
}

static void gemm(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate) {
    gemm_in(d, a, b, c, accumulate, c.rows, c.cols, a.cols);
}

static void check_product(cot_dtype d, const cot__matrix *a, const cot__matrix *b, const cot__matrix *c,
                          const array *old) {
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->cols; j++) {
            long double before = old ? read_any(at(&old->v, (const int64_t[]){i, j}), d) : 0, sum = before,
                        size = fabsl(before);
            for (int64_t p = 0; p < a->cols; p++) {
                long double t = read_any(element(a, d, i, p), d) * read_any(element(b, d, p, j), d);
                sum += t;
                size += fabsl(t);
            }
            long double got = read_any(element(c, d, i, j), d);
            if (cot__dtype_is_float(d)) check_close("gemm", d, got, sum, size, (double)a->cols + 2);
            else {
                uint64_t cell;
                cot__store_i64(&cell, d, (int64_t)sum);
                assert_true(got == read_any(&cell, d));
            }
        }
}

static void product(cot_dtype d, int64_t m, int64_t n, int64_t k, bool accumulate) {
    array       xa, xb, xc, old;
    cot__matrix a, b, c;
    make_matrix(&xa, &a, d, m, k);
    make_matrix(&xb, &b, d, k, n);
    make_matrix(&xc, &c, d, m, n);
    make(&old, d, 2, xc.shape, CONTIGUOUS);
    cot__copy(&old.v, &xc.v);
    gemm(d, a, b, c, accumulate);
    check_product(d, &a, &b, &c, accumulate ? &old : NULL);
    drop(&xa);
    drop(&xb);
    drop(&xc);
    drop(&old);
}

/* Lines of the cache have 64 bytes, and vectors need not begin with one. */
static void a_dot_product_has_the_same_bits_wherever_its_vectors_begin(void **state) {
    enum { N = 1000, PLACES = 8 };
    (void)state;
    for (int d = COT_F64; d <= COT_F32; d++) {
        int     size = cot__dtype_size((cot_dtype)d);
        char   *x = aligned_alloc(64, 16384), *y = aligned_alloc(64, 16384);
        double  want = 0, got;
        array   a, b;
        make(&a, (cot_dtype)d, 1, (const int64_t[]){N}, CONTIGUOUS);
        make(&b, (cot_dtype)d, 1, (const int64_t[]){N}, CONTIGUOUS);
        fill(&a, false);
        fill(&b, false);
        for (int i = 0; i < PLACES * PLACES; i++) {
            char *left = x + i % PLACES * size, *right = y + i / PLACES * size;
            memcpy(left, a.v.data, (size_t)(N * size));
            memcpy(right, b.v.data, (size_t)(N * size));
            got = 0;
            gemm((cot_dtype)d, (cot__matrix){left, 1, N, N, 1}, (cot__matrix){right, N, 1, 1, 1},
                 (cot__matrix){&got, 1, 1, 1, 1}, false);
            if (i == 0) want = got;
            assert_memory_equal(&got, &want, sizeof got);
        }
        drop(&a);
        drop(&b);
        free(x);
        free(y);
    }
}

static void test_gemm(void **state) {
    (void)state;
    for (int round = 0; round < 600; round++) {
        cot_dtype d    = (cot_dtype)(round % 3 == 0 ? below(8) : below(2));
        int       most = round % 20 == 0 ? 90 : 24;
        int64_t   m = 1 + below(most), n = 1 + below(most), k = 1 + below(most);
        if (below(12) == 0) m = 1;
        if (below(12) == 0) n = 1;
        if (below(20) == 0) k = 0;
        if (below(30) == 0) m = 0;
        product(d, m, n, k, below(2));
    }
    for (int d = COT_F64; d <= COT_F16; d++) { /* several depth blocks, several blocks of rows */
        product((cot_dtype)d, 37, 41, 700, true);
        product((cot_dtype)d, 230, 17, 300, false);
        product((cot_dtype)d, 3, 1100, 20, false);
        product((cot_dtype)d, 1, 300, 600, true);
        product((cot_dtype)d, 300, 1, 600, false);
        product((cot_dtype)d, 1, 1, 5000, true);
        product((cot_dtype)d, 9, 1, 2000, true);
        product((cot_dtype)d, 13, 35, 4000, true);
        product((cot_dtype)d, 2, 3, 70000, true);
    }
}

/* The bits of any block of a product are those of the product of that block's rows and columns,
 * unless it is a single element: that is a product of vectors. */
static void test_gemm_bits(void **state) {
    (void)state;
    for (int round = 0; round < 60; round++) {
        cot_dtype   d = (cot_dtype)below(2);
        int64_t     m = 40 + below(60), n = 40 + below(60), k = round % 4 ? 1 + below(60) : 500 + below(100);
        array       xa, xb, xc, part;
        cot__matrix a, b, c;
        size_t      size = (size_t)cot__dtype_size(d);
        make_matrix(&xa, &a, d, m, k);
        make_matrix(&xb, &b, d, k, n);
        make_matrix(&xc, &c, d, m, n);
        gemm(d, a, b, c, false);
        for (int i = 0; i < 10; i++) {
            int64_t i0 = below((int)m), j0 = below((int)n), h = below(3) ? 1 + below((int)(m - i0)) : 1;
            int64_t w = below(3) ? 1 + below((int)(n - j0)) : 1;
            if (h == 1 && w == 1) continue;
            cot__matrix pa = {element(&a, d, i0, 0), h, k, a.row_stride, a.col_stride}, pc;
            cot__matrix pb = {element(&b, d, 0, j0), k, w, b.row_stride, b.col_stride};
            make_matrix(&part, &pc, d, h, w);
            gemm(d, pa, pb, pc, false);
            for (int64_t r = 0; r < h; r++)
                for (int64_t s = 0; s < w; s++)
                    assert_memory_equal(element(&pc, d, r, s), element(&c, d, i0 + r, j0 + s), size);
            drop(&part);
        }
        drop(&xa);
        drop(&xb);
        drop(&xc);
    }
}

/* A product of vectors is a sum of products: the same tree, whatever the strides, the threads and
 * the instruction set. */
static void test_dot_bits(void **state) {
    (void)state;
    static const int64_t lengths[] = {1,   2,   15,  16,   17,   31,   32,    33,   255,
                                      256, 257, 300, 2048, 5000, 8192, 16133, 25000, 70001};
    int64_t              grain = cot__grain;
    cot__isa             isa = cot__cpu_isa();
    for (int l = 0; l < 2 * COUNTOF(lengths); l++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            int64_t     k = lengths[l / 2], shape[1] = {k}, one[1] = {1};
            array       xa, xb, terms, sum, xc;
            cot__matrix a, b, c;
            make_matrix_as(&xa, &a, (cot_dtype)d, 1, k, l % 2 ? CONTIGUOUS : 0);
            make_matrix_as(&xb, &b, (cot_dtype)d, k, 1, l % 2 ? CONTIGUOUS : 0);
            make_matrix(&xc, &c, (cot_dtype)d, 1, 1);
            make(&terms, (cot_dtype)d, 1, shape, CONTIGUOUS);
            make(&sum, (cot_dtype)d, 1, one, CONTIGUOUS);
            for (int64_t p = 0; p < k; p++) {
                void *x = element(&a, (cot_dtype)d, 0, p), *y = element(&b, (cot_dtype)d, p, 0);
                if (d == COT_F64) ((double *)terms.v.data)[p] = *(double *)x * *(double *)y;
                else ((float *)terms.v.data)[p] = *(float *)x * *(float *)y;
            }
            cot__reduce(COT__SUM, &terms.v, 1, &sum.v);
            for (int which = 0; which <= (int)cot__cpu_best(); which++)
                for (int g = 0; g < 2; g++) {
                    assert_true(cot__cpu_use((cot__isa)which));
                    cot__grain = g ? 64 : grain;
                    gemm((cot_dtype)d, a, b, c, false);
                    assert_memory_equal(c.data, sum.v.data, (size_t)cot__dtype_size((cot_dtype)d));
                }
            cot__cpu_use(isa);
            cot__grain = grain;
            drop(&xa);
            drop(&xb);
            drop(&xc);
            drop(&terms);
            drop(&sum);
        }
}

/* Products of a column and a row have these bits too, wherever the rows are cut, also if a product
 * is -0, infinite or NaN. */
static void test_outer_bits(void **state) {
    (void)state;
    for (int round = 0; round < 60; round++) {
        cot_dtype   d = (cot_dtype)below(2);
        int64_t m = 1 + below(40), n = round % 8 ? 1 + below(60) : 2 * COT__BLOCK + below(60), cut = below((int)m + 1);
        array       xa, xb, xc;
        cot__matrix a, b, c;
        make_matrix(&xa, &a, d, m, 1);
        make_matrix(&xb, &b, d, 1, n);
        make_matrix(&xc, &c, d, m, n);
        cot__store_f64(element(&a, d, 0, 0), d, round % 3 ? -0.0 : -INFINITY);
        cot__store_f64(element(&b, d, 0, n - 1), d, round % 2 ? 0.0 : 1e30);
        char       *rows = malloc((size_t)(m * n) * 8);
        cot__matrix z = {rows, m, n, n, 1};
        gemm(d, a, b, c, false);
        cot__outer_rows(d, a, b, z, 0, cut);
        cot__outer_rows(d, a, b, z, cut, m);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                assert_memory_equal(element(&z, d, i, j), element(&c, d, i, j), (size_t)cot__dtype_size(d));
        free(rows);
        drop(&xa);
        drop(&xb);
        drop(&xc);
    }
}

/* Equal terms are the worst case: every rounding may err in the same direction. A sum of n terms in
 * a chain is wrong by at most n half units in the last place; a long contraction is chains of 384
 * terms, of some 171 blocks (or as many as sections) and of the sections. */
static void test_gemm_long(void **state) {
    (void)state;
    enum { K = 1 << 22 };
    static const int64_t shapes[][2] = {{1, 1}, {3, 2}};
    for (int s = 0; s < 2; s++) {
        array       xa, xb, xc;
        cot__matrix a, b, c;
        make_matrix(&xa, &a, COT_F32, shapes[s][0], K);
        make_matrix(&xb, &b, COT_F32, K, shapes[s][1]);
        make_matrix(&xc, &c, COT_F32, shapes[s][0], shapes[s][1]);
        for (int64_t p = 0; p < K; p++) {
            for (int64_t i = 0; i < a.rows; i++) *(float *)element(&a, COT_F32, i, p) = 0.1f;
            for (int64_t j = 0; j < b.cols; j++) *(float *)element(&b, COT_F32, p, j) = 1;
        }
        gemm(COT_F32, a, b, c, false);
        for (int64_t i = 0; i < c.rows; i++)
            for (int64_t j = 0; j < c.cols; j++) {
                double exact = (double)0.1f * K, got = *(float *)element(&c, COT_F32, i, j);
                assert_true(fabs(got / exact - 1) <= (384 + 171 + K / 65664) * 0x1p-24);
            }
        drop(&xa);
        drop(&xb);
        drop(&xc);
    }
}

/* … and bits do not show whose memory it was, nor how the work was cut. */
static void test_gemm_memory(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{60, 50, 40},   {9, 7, 4000},  {1, 3, 5000},  {3, 2, 70000},
                                        {200, 130, 20}, {2000, 3, 50}, {1600, 9, 400}, {3, 2000, 50}};
    int64_t              grain = cot__grain;
    for (int d = COT_F64; d <= COT_F16; d++)
        for (int s = 0; s < COUNTOF(shapes); s++) {
            int64_t     m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            array       xa, xb, xc, xe;
            cot__matrix a, b, c, e;
            make_matrix(&xa, &a, (cot_dtype)d, m, k);
            make_matrix(&xb, &b, (cot_dtype)d, k, n);
            make_matrix(&xc, &c, (cot_dtype)d, m, n);
            make_matrix(&xe, &e, (cot_dtype)d, m, n);
            gemm((cot_dtype)d, a, b, c, false);
            for (int other = 0; other < 4; other++) {
                cot__grain = other % 2 ? 64 : grain;
                gemm_in((cot_dtype)d, a, b, e, false, m + 40 * (other / 2), n + 3 * other, k + 500 * (other / 2));
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < n; j++)
                        assert_memory_equal(element(&e, (cot_dtype)d, i, j), element(&c, (cot_dtype)d, i, j),
                                            (size_t)cot__dtype_size((cot_dtype)d));
            }
            cot__grain = grain;
            drop(&xa), drop(&xb), drop(&xc), drop(&xe);
        }
}

/* A matrix of numbers in rows or in columns that lie side by side. */
static cot__matrix filled_matrix(cot_dtype d, int64_t rows, int64_t cols, bool turned) {
    cot__matrix m = {malloc((size_t)(rows * cols * cot__dtype_size(d))), rows, cols, turned ? 1 : cols,
                     turned ? rows : 1};
    for (int64_t i = 0; i < rows * cols; i++)
        cot__store_f64((char *)m.data + i * cot__dtype_size(d), d, below(2001) / 1000.0 - 1);
    return m;
}

/* Operands that are read where they lie, packed before, and packed by the first tiles: each row has
 * the bits of its product alone, which packs nothing. */
static void test_gemm_layouts(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{130, 330, 400}, {784, 200, 190}, {61, 512, 800}, {24, 1300, 90}};
    for (int way = 0; way < 8 * COUNTOF(shapes); way++) {
        cot_dtype      d = way & 1 ? COT_F32 : COT_F64;
        const int64_t *shape = shapes[way / 8];
        cot__matrix    a = filled_matrix(d, shape[0], shape[2], way & 2);
        cot__matrix    b = filled_matrix(d, shape[2], shape[1], way & 4);
        cot__matrix    c = filled_matrix(d, shape[0], shape[1], false), row = filled_matrix(d, 1, shape[1], false);
        gemm(d, a, b, c, false);
        for (int64_t i = 0; i < c.rows; i++) {
            gemm(d, (cot__matrix){element(&a, d, i, 0), 1, a.cols, a.row_stride, a.col_stride}, b, row, false);
            assert_memory_equal(element(&c, d, i, 0), row.data, (size_t)(c.cols * cot__dtype_size(d)));
        }
        free(a.data), free(b.data), free(c.data), free(row.data);
    }
}

/* Of matrices beyond the caches columns are read by other kernels, and fetched ahead: they have the
 * bits of the products of a few columns, which are not. The last ones fill no vector. */
static void a_vector_with_a_matrix_beyond_the_caches_has_the_bits_of_its_columns(void **state) {
    enum { DEPTH = 1100, SOME = 100, MEGABYTES = 5 };
    (void)state;
    for (int way = 0; way < 4; way++) {
        cot_dtype   d = way & 1 ? COT_F32 : COT_F64;
        int64_t     cols = (MEGABYTES << 20) / (DEPTH * cot__dtype_size(d)) | 1;
        cot__matrix x = filled_matrix(d, 1, DEPTH, false), b = filled_matrix(d, DEPTH, cols, way & 2);
        cot__matrix c = filled_matrix(d, 1, cols, false), part = filled_matrix(d, 1, SOME, false);
        gemm(d, x, b, c, false);
        for (int64_t j = 0; j < cols; j += part.cols) {
            part.cols = cols - j < SOME ? cols - j : SOME;
            gemm(d, x, (cot__matrix){element(&b, d, 0, j), DEPTH, part.cols, b.row_stride, b.col_stride}, part, false);
            assert_memory_equal(element(&c, d, 0, j), part.data, (size_t)(part.cols * cot__dtype_size(d)));
        }
        free(x.data), free(b.data), free(c.data), free(part.data);
    }
}

/* The last rows of an A that is read where it lies are packed over its whole depth. Its rows may
 * overlap, which makes it small here. */
static void test_gemm_deep_last_rows(void **state) {
    enum { ROWS = 107, DEPTH = 50000, COLS = 15 };
    (void)state;
    cot__matrix a = filled_matrix(COT_F64, 1, DEPTH + ROWS, false), b = filled_matrix(COT_F64, DEPTH, COLS, false);
    cot__matrix c = filled_matrix(COT_F64, ROWS, COLS, false), row = filled_matrix(COT_F64, 1, COLS, false);
    a = (cot__matrix){a.data, ROWS, DEPTH, 1, 1};
    gemm(COT_F64, a, b, c, false);
    gemm(COT_F64, (cot__matrix){element(&a, COT_F64, ROWS - 1, 0), 1, DEPTH, 1, 1}, b, row, false);
    assert_memory_equal(element(&c, COT_F64, ROWS - 1, 0), row.data, COLS * sizeof(double));
    free(a.data), free(b.data), free(c.data), free(row.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),        cmocka_unit_test(test_gemm_layouts),
        cmocka_unit_test(test_gemm_deep_last_rows),
        cmocka_unit_test(a_vector_with_a_matrix_beyond_the_caches_has_the_bits_of_its_columns),
        cmocka_unit_test(a_dot_product_has_the_same_bits_wherever_its_vectors_begin),
        cmocka_unit_test(test_gemm_bits),   cmocka_unit_test(test_outer_bits),
        cmocka_unit_test(test_gemm_long), cmocka_unit_test(test_gemm_memory), cmocka_unit_test(test_dot_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
