/* test_reduction_kernels.c: compares sums, maxima and softmax of the CPU with a slow, obvious
 * reference, over random shapes and layouts (kernel_test.h). */
#include "backend/kernel_test.h"

typedef struct slice_facts {
    long double sum, magnitude, squares, most, least, exps;
    int64_t     n, integer, first_most, first_least;
    bool        any, all, nan;
} slice_facts;

/* All facts about the slice of x through `at_z` that any reduction needs. */
static slice_facts facts(const array *x, uint32_t axes, const int64_t *at_z) {
    slice_facts f = {.most = -INFINITY, .least = INFINITY, .all = true, .first_most = -1, .first_least = -1};
    uint64_t    wrapped = 0;
    for (int pass = 0; pass < 2; pass++) {
        int64_t n = 0;
        EACH(i, x->v) {
            bool here = true;
            for (int k = 0; k < x->v.ndim; k++) here = here && (axes >> k & 1 || i[k] == at_z[k]);
            if (!here) continue;
            long double v = read_any(at(&x->v, i), x->v.dtype);
            if (pass == 1) {
                f.exps += expl(v - f.most);
                continue;
            }
            if (v != v && !f.nan) {
                f.nan        = true;
                f.first_most = f.first_least = n;
            }
            if (!f.nan && (v > f.most || f.first_most < 0)) f.most = v, f.first_most = n;
            if (!f.nan && (v < f.least || f.first_least < 0)) f.least = v, f.first_least = n;
            f.sum += v;
            f.magnitude += fabsl(v);
            f.squares += v * v;
            if (!cot__dtype_is_float(x->v.dtype)) wrapped += (uint64_t)(int64_t)v;
            f.any = f.any || v != 0;
            f.all = f.all && v != 0;
            n++;
        }
        f.n = pass == 0 ? n : f.n;
    }
    f.integer = (int64_t)wrapped;
    return f;
}

static cot_dtype result_dtype(cot__reduction what, cot_dtype d) {
    if (what == COT__ARGMAX || what == COT__ARGMIN) return COT_I64;
    if (what == COT__ANY || what == COT__ALL) return COT_BOOL;
    if (what == COT__SUM && d == COT_BOOL) return COT_I64;
    if ((what == COT__NORM2 || what == COT__LOGSUMEXP) && !cot__dtype_is_float(d)) return COT_F64;
    return d;
}

static void check_reduction(cot__reduction what, const array *x, const slice_facts *f, const void *z, cot_dtype d) {
    long double got = read_any(z, d);
    double      log_n = f->n > 1 ? log2((double)f->n) : 0;
    uint64_t    cell;
    switch (what) {
    case COT__SUM:
        if (cot__dtype_is_float(d)) check_close("sum", d, got, f->sum, f->magnitude, 20 + log_n);
        else {
            cot__store_i64(&cell, d, f->integer);
            assert_true(got == read_any(&cell, d));
        }
        break;
    case COT__MAX: assert_true(f->nan ? got != got : got == f->most); break;
    case COT__MIN: assert_true(f->nan ? got != got : got == f->least); break;
    case COT__ARGMAX: assert_true(got == f->first_most); break;
    case COT__ARGMIN: assert_true(got == f->first_least); break;
    case COT__ANY: assert_true(got == f->any); break;
    case COT__ALL: assert_true(got == f->all); break;
    case COT__NORM2: check_close("norm2", d, got, sqrtl(f->squares), sqrtl(f->squares), 24 + log_n); break;
    case COT__LOGSUMEXP: {
        long double want = f->n == 0 ? -INFINITY : f->nan ? NAN : isinf(f->most) ? f->most : f->most + logl(f->exps);
        check_close("logsumexp", d, got, want, fabsl(want) + 1, 24 + log_n);
        break;
    }
    }
    (void)x;
}

static void reduce_and_check(cot__reduction what, const array *x, uint32_t axes) {
    int64_t shape[COT_MAX_NDIM], reduced = 1;
    int     gone = 0;
    for (int i = 0; i < x->v.ndim; i++) {
        shape[i] = axes >> i & 1 ? 1 : x->shape[i];
        reduced *= axes >> i & 1 ? x->shape[i] : 1;
        gone += (int)(axes >> i & 1);
    }
    if (reduced == 0 && what >= COT__MAX && what <= COT__ARGMIN) return;
    if (gone != 1 && (what == COT__ARGMAX || what == COT__ARGMIN)) return;
    array     z, y, packed;
    cot_dtype d = result_dtype(what, x->v.dtype);
    make(&z, d, x->v.ndim, shape, 0);
    cot__reduce(what, &x->v, axes, &z.v);
    EACH(i, z.v) {
        slice_facts f = facts(x, axes, i);
        check_reduction(what, x, &f, at(&z.v, i), d);
    }
    /* the same values laid out otherwise must give the same bits */
    make(&y, d, x->v.ndim, shape, CONTIGUOUS);
    make(&packed, x->v.dtype, x->v.ndim, x->shape, CONTIGUOUS);
    cot__copy(&packed.v, &x->v);
    cot__reduce(what, &packed.v, axes, &y.v);
    EACH(i, z.v) {
        long double a = read_any(at(&y.v, i), d), b = read_any(at(&z.v, i), d);
        assert_true(same(a, b));
    }
    drop(&z);
    drop(&y);
    drop(&packed);
}

static void test_reduce(void **state) {
    (void)state;
    for (int round = 0; round < 30; round++)
        for (int d = 0; d < COT_DTYPE_COUNT; d++) {
            int64_t shape[5];
            int     ndim = random_shape(shape, round % 3 == 0 ? 5 : 3, round % 3 == 0 ? 3 : 7, true);
            array   x;
            make(&x, (cot_dtype)d, ndim, shape, ALLOW_ZERO | (below(3) == 0 ? CONTIGUOUS : 0));
            fill(&x, false);
            for (uint32_t axes = 0; axes < 1u << ndim; axes++)
                for (int what = COT__SUM; what <= COT__LOGSUMEXP; what++)
                    reduce_and_check((cot__reduction)what, &x, axes);
            drop(&x);
        }
}

/* Slices long enough for many leaves, along either axis, in both orders of memory. */
static void test_reduce_long(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1000, 3}, {3, 1000}, {257, 40}, {40, 257},
                                        {5000, 1}, {1, 5000}, {700, 35}, {33, 15}};
    for (int s = 0; s < COUNTOF(shapes); s++)
        for (int d = 0; d < COT_DTYPE_COUNT; d++) {
            array x;
            make(&x, (cot_dtype)d, 2, shapes[s], d % 2 ? 0 : CONTIGUOUS);
            fill(&x, false);
            for (uint32_t axes = 1; axes < 4; axes++) {
                int64_t zshape[2] = {axes & 1 ? 1 : shapes[s][0], axes & 2 ? 1 : shapes[s][1]};
                if (zshape[0] * zshape[1] > 45) continue; /* the reference is quadratic */
                for (int what = COT__SUM; what <= COT__LOGSUMEXP; what++)
                    reduce_and_check((cot__reduction)what, &x, axes);
            }
            drop(&x);
        }
}

/* Columns are summed in registers, several at a time: each has the bits of its sum alone. */
static void test_sum_of_columns(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 5, 15, 16, 17, 40, 255, 256, 257, 300, 770, 1291};
    static const int64_t columns[] = {2, 3, 4, 7, 8, 15, 16, 17, 33, 70, 129, 200};
    for (int k = 0; k < COUNTOF(rows) * COUNTOF(columns) * 2; k++) {
        int64_t   n = rows[k / 2 % COUNTOF(rows)], w = columns[k / 2 / COUNTOF(rows)], far = w + 3;
        cot_dtype d = k % 2 ? COT_F32 : COT_F64;
        array     x, z;
        make(&x, d, 2, (const int64_t[]){n, far}, CONTIGUOUS);
        make(&z, d, 1, (const int64_t[]){w}, CONTIGUOUS);
        fill(&x, false);
        cot__view part = {x.memory, d, 2, (const int64_t[]){n, w}, x.stride};
        cot__view sums = {z.memory, d, 2, (const int64_t[]){1, w}, (const int64_t[]){0, 1}};
        cot__reduce(COT__SUM, &part, 1, &sums);
        for (int64_t j = 0; j < w; j++) {
            double    alone = 0;
            cot__view column = {(char *)x.memory + j * cot__dtype_size(d), d, 1, &n, x.stride};
            cot__view sum = {&alone, d, 1, (const int64_t[]){1}, (const int64_t[]){0}};
            cot__reduce(COT__SUM, &column, 1, &sum);
            assert_memory_equal(&alone, (char *)z.memory + j * cot__dtype_size(d), (size_t)cot__dtype_size(d));
        }
        drop(&x);
        drop(&z);
    }
}

static void test_sum_accuracy(void **state) {
    (void)state;
    const int64_t n = 1000003;
    for (int d = COT_F64; d <= COT_F32; d++) {
        array       x, z;
        long double want = 0, magnitude = 0;
        make(&x, (cot_dtype)d, 1, &n, CONTIGUOUS);
        make(&z, (cot_dtype)d, 1, (const int64_t[]){1}, CONTIGUOUS);
        for (int64_t i = 0; i < n; i++) {
            void *p = (char *)x.memory + i * cot__dtype_size((cot_dtype)d);
            cot__store_f64(p, (cot_dtype)d, exp(8 * uniform()));
            want += read_any(p, (cot_dtype)d);
            magnitude += fabsl(read_any(p, (cot_dtype)d));
        }
        cot__reduce(COT__SUM, &x.v, 1, &z.v);
        /* 15 additions along a chain of a leaf, 4 across, then one per level */
        check_close("long sum", (cot_dtype)d, read_any(z.memory, (cot_dtype)d), want, magnitude,
                    19 + ceil(log2((double)n / 256)));
        drop(&x);
        drop(&z);
    }
}

static double reduce_list(cot__reduction what, cot_dtype d, int64_t n, const double *values) {
    array x, z;
    make(&x, d, 1, &n, CONTIGUOUS);
    make(&z, result_dtype(what, d), 1, (const int64_t[]){1}, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++) cot__store_f64((char *)x.memory + i * cot__dtype_size(d), d, values[i]);
    cot__reduce(what, &x.v, 1, &z.v);
    double r = cot__load_f64(z.memory, z.v.dtype);
    drop(&x);
    drop(&z);
    return r;
}

static void test_reduce_special(void **state) {
    (void)state;
    const double inf = INFINITY;
    assert_true(isnan(reduce_list(COT__MAX, COT_F32, 3, (double[]){1, NAN, 2})));
    assert_true(isnan(reduce_list(COT__MIN, COT_F64, 3, (double[]){NAN, 1, 2})));
    assert_true(reduce_list(COT__ARGMAX, COT_F64, 5, (double[]){1, 5, NAN, 7, NAN}) == 2);
    assert_true(reduce_list(COT__ARGMIN, COT_F16, 4, (double[]){3, 1, 1, 2}) == 1);
    assert_true(reduce_list(COT__ANY, COT_F32, 2, (double[]){0, NAN}) == 1);
    assert_true(reduce_list(COT__ALL, COT_F32, 2, (double[]){0, NAN}) == 0);
    assert_true(reduce_list(COT__LOGSUMEXP, COT_F64, 2, (double[]){-inf, -inf}) == -inf);
    assert_true(reduce_list(COT__LOGSUMEXP, COT_F64, 2, (double[]){-inf, inf}) == inf);
    assert_true(reduce_list(COT__LOGSUMEXP, COT_F32, 2, (double[]){-inf, 3}) == 3);
    assert_true(isnan(reduce_list(COT__LOGSUMEXP, COT_F32, 2, (double[]){inf, NAN})));
    assert_true(fabs(reduce_list(COT__LOGSUMEXP, COT_F64, 2, (double[]){1000, 1000}) - 1000 - log(2)) < 1e-12);
    assert_true(reduce_list(COT__NORM2, COT_F64, 2, (double[]){3e300, -4e300}) == 5e300);
    assert_true(reduce_list(COT__NORM2, COT_F64, 2, (double[]){0x3p-1074, 0x4p-1074}) == 0x5p-1074);
    assert_true(reduce_list(COT__NORM2, COT_F32, 2, (double[]){0x3p-149, 0x4p-149}) == 0x5p-149);
    assert_true(reduce_list(COT__NORM2, COT_F32, 2, (double[]){0x3p125, 0x1p127}) == 0x5p125);
    assert_true(reduce_list(COT__NORM2, COT_F32, 2, (double[]){0, -0.0}) == 0);
    assert_true(reduce_list(COT__NORM2, COT_F32, 2, (double[]){1, -inf}) == inf);
    assert_true(isnan(reduce_list(COT__NORM2, COT_F32, 2, (double[]){NAN, 1})));
    assert_true(signbit(reduce_list(COT__SUM, COT_F32, 1, (double[]){-0.0})));
    assert_true(reduce_list(COT__SUM, COT_U8, 2, (double[]){255, 2}) == 1);
    assert_true(reduce_list(COT__SUM, COT_BOOL, 3, (double[]){1, 0, 1}) == 2);
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void test_softmax(void **state) {
    (void)state;
    for (int round = 0; round < 400; round++) {
        int64_t   shape[4];
        int       ndim = random_shape(shape, 4, round % 10 == 0 ? 70 : 6, true);
        cot_dtype d    = (cot_dtype)below(4);
        if (ndim == 0 || cot__count(ndim, shape) > 20000) continue;
        int  axis = below(ndim);
        bool logarithm = below(2);
        array x, z;
        make(&x, d, ndim, shape, ALLOW_ZERO | (below(2) ? CONTIGUOUS : 0));
        make(&z, d, ndim, shape, below(2) ? CONTIGUOUS : 0);
        EACH(i, x.v) cot__store_f64(at(&x.v, i), d, 10 * uniform() + 300);
        cot__softmax(&x.v, axis, logarithm, &z.v);
        EACH(i, x.v) {
            int64_t     k[COT_MAX_NDIM];
            long double most = -INFINITY, sum = 0, v = read_any(at(&x.v, i), d);
            memcpy(k, i, sizeof(k));
            for (k[axis] = 0; k[axis] < shape[axis]; k[axis]++) most = fmaxl(most, read_any(at(&x.v, k), d));
            for (k[axis] = 0; k[axis] < shape[axis]; k[axis]++) sum += expl(read_any(at(&x.v, k), d) - most);
            long double want = logarithm ? v - most - logl(sum) : expl(v - most) / sum;
            check_close("softmax", d, read_any(at(&z.v, i), d), want, logarithm ? fabsl(want) + 1 : want, 64);
        }
        drop(&x);
        drop(&z);
    }
}

enum { SOFT_ROWS = 35, LONGEST = 300 };

/* Element j of row i: some rows have infinite or NaN elements. */
static double soft_element(int i, int j) {
    if (i % 5 == 1 && j % 3 == 0) return -(double)INFINITY;
    if ((i == 7 || i == 30) && j % 11 == 4) return NAN;
    if (i == 13 && j == 1) return (double)INFINITY;
    return i == 22 ? -(double)INFINITY : 40 * uniform();
}

/* Rows that lie side by side are done from end to end, and slices across them all at once. */
static void check_soft_rows(cot_dtype d, int n, bool logarithm) {
    const int64_t rows[2] = {SOFT_ROWS, n}, turned[2] = {n, SOFT_ROWS};
    array         x, xt, z, zt;
    make(&x, d, 2, rows, CONTIGUOUS), make(&z, d, 2, rows, CONTIGUOUS);
    make(&xt, d, 2, turned, CONTIGUOUS), make(&zt, d, 2, turned, CONTIGUOUS);
    EACH(i, x.v) {
        cot__store_f64(at(&x.v, i), d, soft_element((int)i[0], (int)i[1]));
        memcpy(at(&xt.v, (const int64_t[]){i[1], i[0]}), at(&x.v, i), (size_t)cot__dtype_size(d));
    }
    cot__softmax(&x.v, 1, logarithm, &z.v);
    cot__softmax(&xt.v, 0, logarithm, &zt.v);
    cot__softmax(&x.v, 1, logarithm, &x.v); /* in place */
    EACH(i, z.v) {
        long double row = read_any(at(&z.v, i), d), slice = read_any(at(&zt.v, (const int64_t[]){i[1], i[0]}), d);
        assert_true(same(row, slice) && same(row, read_any(at(&x.v, i), d)));
    }
    drop(&x), drop(&z), drop(&xt), drop(&zt);
}

static void rows_of_softmax_have_the_bits_of_slices_side_by_side(void **state) {
    (void)state;
    for (cot__isa isa = COT__ISA_PLAIN; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1)) {
        assert_true(cot__cpu_use(isa));
        for (int n = 1; n <= LONGEST; n += n < 70 || n > 250 ? 1 : 13)
            for (int k = 0; k < 4; k++) check_soft_rows(k % 2 ? COT_F32 : COT_F64, n, k > 1);
    }
    cot__cpu_use(cot__cpu_best());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_softmax_have_the_bits_of_slices_side_by_side),
        cmocka_unit_test(test_reduce),         cmocka_unit_test(test_reduce_long),
        cmocka_unit_test(test_sum_accuracy),   cmocka_unit_test(test_sum_of_columns),
        cmocka_unit_test(test_reduce_special), cmocka_unit_test(test_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
