/* test_kernels.c: compares the CPU's kernels with a slow, obvious reference, over random shapes and
 * layouts (kernel_test.h); reductions and products have files of their own.
 *
 * The references use nothing of the kernels but cot__load_* and cot__store_*, which are tested
 * first. Derivatives that use the kernels are tested elsewhere. */
#include "backend/kernel_test.h"

/* ---- dtypes and memory ----------------------------------------------------------------------- */

static void test_dtypes(void **state) {
    (void)state;
    const int order[] = {COT_BOOL, COT_U8, COT_I32, COT_I64};
    for (int a = 0; a < COT_DTYPE_COUNT; a++)
        for (int b = 0; b < COT_DTYPE_COUNT; b++) {
            int p = (int)cot__dtype_promote((cot_dtype)a, (cot_dtype)b), want = -1;
            bool fa = cot__dtype_is_float((cot_dtype)a), fb = cot__dtype_is_float((cot_dtype)b);
            if (a == b || (fa && !fb)) want = a;
            else if (fb && !fa) want = b;
            else if (fa) want = a == COT_F64 || b == COT_F64 ? COT_F64 : COT_F32;
            else
                for (int i = 0; i < 4; i++)
                    if (order[i] == a || order[i] == b) want = order[i];
            assert_int_equal(p, want);
        }
    assert_int_equal(cot__dtype_compute(COT_BF16), COT_F32);
    assert_int_equal(cot__dtype_compute(COT_BOOL), COT_I64);
    assert_string_equal(cot__dtype_name(COT_BF16), "bf16");
}

static void *counting(void *user, void *ptr, size_t old_size, size_t new_size) {
    *(int64_t *)user += (int64_t)new_size - (int64_t)old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void test_memory(void **state) {
    (void)state;
    int64_t             held = 0;
    const cot_allocator mine = {counting, &held}, libc = {NULL, NULL}, *all[] = {&mine, &libc, NULL};
    for (int i = 0; i < 3; i++) {
        void *a = cot__alloc(all[i], 0), *b = cot__alloc(all[i], 10);
        assert_non_null(a);
        assert_ptr_not_equal(a, b);
        b = cot__resize(all[i], b, 10, 1000);
        memset(b, 1, 1000);
        assert_null(cot__resize(all[i], b, 1000, 0));
        b = cot__resize(all[i], NULL, 0, 5);
        assert_non_null(b);
        cot__free(all[i], a, 0);
        cot__free(all[i], b, 5);
        cot__free(all[i], NULL, 7);
        assert_int_equal(held, 0);
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Rounds a long double (which holds every f64 and i64) to p bits with least exponent emin: half to
 * even. */
static long double round_to(long double v, int bits, int emin, long double most) {
    int e;
    if (v == 0 || !isfinite(v)) return v;
    frexpl(v, &e);
    e = e - bits < emin ? emin : e - bits;
    long double r = ldexpl(rintl(ldexpl(v, -e)), e);
    return fabsl(r) > most ? copysignl(INFINITY, v) : r;
}

static long double saturate(long double v, long double low, long double high) {
    if (v != v) return 0;
    return v < low ? low : v > high ? high : truncl(v);
}

/* The value that element s, of dtype `from`, must become. */
static long double converted(const void *s, cot_dtype from, cot_dtype to) {
    long double v = read_any(s, from);
    uint64_t    u = cot__dtype_is_float(from) ? 0 : (uint64_t)(int64_t)v;
    switch (to) {
    case COT_F64: return round_to(v, 53, -1074, DBL_MAX);
    case COT_F32: return round_to(v, 24, -149, FLT_MAX);
    case COT_BF16: return round_to(v, 8, -133, 0x1.fep127L);
    case COT_F16: return round_to(v, 11, -24, 65504);
    case COT_I64: return cot__dtype_is_float(from) ? saturate(v, -0x1p63L, 0x1p63L - 1) : v;
    case COT_I32: return cot__dtype_is_float(from) ? saturate(v, -0x1p31L, 0x1p31L - 1) : (int32_t)(uint32_t)u;
    case COT_U8: return cot__dtype_is_float(from) ? saturate(v, 0, 255) : (uint8_t)u;
    default: return v != 0;
    }
}

static void test_elements(void **state) {
    (void)state;
    uint64_t cell;
    for (int d = 0; d < COT_DTYPE_COUNT; d++) {
        for (int i = 0; i < COUNTOF(specials); i++) {
            cot__store_f64(&cell, (cot_dtype)d, specials[i]);
            assert_true(
                same_as((cot_dtype)d, read_any(&cell, (cot_dtype)d), converted(&specials[i], COT_F64, (cot_dtype)d)));
            assert_true(same_as(COT_F64, (long double)cot__load_f64(&cell, (cot_dtype)d),
                                converted(&cell, (cot_dtype)d, COT_F64)));
            assert_true(cot__load_i64(&cell, (cot_dtype)d) == converted(&cell, (cot_dtype)d, COT_I64));
        }
        for (int i = 0; i < COUNTOF(integers); i++) {
            cot__store_i64(&cell, (cot_dtype)d, integers[i]);
            assert_true(
                same_as((cot_dtype)d, read_any(&cell, (cot_dtype)d), converted(&integers[i], COT_I64, (cot_dtype)d)));
        }
    }
}

static void check_copy(const array *z, const array *x) {
    EACH(i, x->v) {
        long double got = read_any(at(&z->v, i), z->v.dtype), want = converted(at(&x->v, i), x->v.dtype, z->v.dtype);
        if (!same_as(z->v.dtype, got, want))
            fail_msg("%s to %s: %Lg, want %Lg", cot__dtype_name(x->v.dtype), cot__dtype_name(z->v.dtype), got, want);
    }
}

/* By half of the rounds also in parts, however short. */
static void test_copy(void **state) {
    (void)state;
    int64_t grain = cot__grain;
    for (int round = 0; round < 40; cot__grain = round++ % 2 ? grain : 8)
        for (int d = 0; d < 64; d++) {
            int64_t shape[5];
            array   x, z;
            int     ndim = random_shape(shape, 5, round % 8 == 0 ? 9 : 4, true);
            make(&x, (cot_dtype)(d / 8), ndim, shape, ALLOW_ZERO | (below(3) == 0 ? CONTIGUOUS : 0));
            make(&z, (cot_dtype)(d % 8), ndim, shape, below(3) == 0 ? CONTIGUOUS : 0);
            fill(&x, true);
            cot__copy(&z.v, &x.v);
            check_copy(&z, &x);
            drop(&x);
            drop(&z);
        }
    cot__grain = grain;
}

/* Sizes at which tiles are full, and same-dtype copies must keep every bit. */
static void test_copy_large(void **state) {
    (void)state;
    const int64_t shape[2] = {67, 83};
    for (int d = 0; d < 64; d++)
        for (int round = 0; round < 6; round++) {
            array x, z;
            make(&x, (cot_dtype)(d / 8), 2, shape, ALLOW_ZERO);
            make(&z, (cot_dtype)(d % 8), 2, shape, round % 2 ? CONTIGUOUS : 0);
            fill(&x, true);
            cot__copy(&z.v, &x.v);
            check_copy(&z, &x);
            if (d / 8 == d % 8)
                EACH(i, x.v) assert_memory_equal(at(&x.v, i), at(&z.v, i), (size_t)cot__dtype_size(x.v.dtype));
            drop(&x);
            drop(&z);
        }
    cot__view none = {NULL, COT_F64, 1, (const int64_t[]){0}, (const int64_t[]){1}};
    cot__copy(&none, &none);
}

/* Rows of any few bytes, in another order: every bit of them and nothing behind them. */
static void test_copy_rows(void **state) {
    (void)state;
    for (int d = 0; d < COT_DTYPE_COUNT; d++)
        for (int64_t n = 1; n < 70; n++) {
            const int64_t shape[3] = {5, 7, n}, turned[3] = {n, 5 * n, 1}, gaps[3] = {9 * n + 6, n + 1, 1};
            unsigned char x[35 * 70 * 8], z[50 * 71 * 8], untouched[sizeof z];
            const int64_t size = cot__dtype_size((cot_dtype)d);
            for (size_t i = 0; i < sizeof x; i++) x[i] = d == COT_BOOL ? i % 3 == 0 : (unsigned char)below(256);
            memset(z, 77, sizeof z), memset(untouched, 77, sizeof z);
            cot__view from = {x, (cot_dtype)d, 3, shape, turned}, to = {z, (cot_dtype)d, 3, shape, gaps};
            cot__copy(&to, &from);
            for (int64_t r = 0; r < 35; r++) {
                unsigned char *row = z + (r / 7 * gaps[0] + r % 7 * gaps[1]) * size;
                assert_memory_equal(row, x + (r / 7 * n + r % 7 * 5 * n) * size, (size_t)(n * size));
                memset(row, 77, (size_t)(n * size));
            }
            assert_memory_equal(z, untouched, sizeof z);
        }
}

/* Plain arrays and fills that are shared out, whatever their axes are. */
static void test_copy_plain(void **state) {
    (void)state;
    const int64_t shape[3] = {3, 130, 101}, repeats[3] = {0, 0, 0};
    for (int d = 0; d < 64; d++) {
        array x, z;
        make(&x, (cot_dtype)(d / 8), 3, shape, CONTIGUOUS);
        make(&z, (cot_dtype)(d % 8), 3, shape, CONTIGUOUS);
        fill(&x, true);
        cot__copy(&z.v, &x.v);
        check_copy(&z, &x);
        x.v.stride = repeats;
        cot__copy(&z.v, &x.v);
        check_copy(&z, &x);
        drop(&x);
        drop(&z);
    }
}

/* ---- cursors --------------------------------------------------------------------------------- */

static void test_cursor(void **state) {
    (void)state;
    static const cot_dtype as[] = {COT_F64, COT_F32, COT_I64};
    for (int round = 0; round < 1500; round++) {
        int64_t     shape[5], flat, done = 0;
        int         ndim = random_shape(shape, 4, 9, true);
        array       x, y, z;
        cot_dtype   a = as[below(3)];
        double      buf[COT__BLOCK];
        cot__cursor cx, cy, cz;
        make(&x, (cot_dtype)below(8), ndim, shape, ALLOW_ZERO | (below(3) == 0 ? CONTIGUOUS : 0));
        make(&y, (cot_dtype)below(8), ndim, shape, below(3) == 0 ? CONTIGUOUS : 0);
        make(&z, y.v.dtype, ndim, shape, 0);
        fill(&x, false);
        fill(&z, false);
        array sum;
        make(&sum, y.v.dtype, ndim, shape, CONTIGUOUS);
        cot__copy(&sum.v, &z.v);
        cot__cursor_open(&cx, &x.v, a);
        cot__cursor_open(&cy, &y.v, a);
        cot__cursor_open(&cz, &z.v, a);
        flat = cot__count(ndim, shape);
        while (done < flat) {
            int n = 1 + below(COT__BLOCK);
            n     = flat - done < n ? (int)(flat - done) : n;
            const void *p = cot__cursor_load(&cx, n, buf);
            cot__cursor_store(&cy, n, p);
            cot__cursor_add(&cz, n, p);
            done += n;
        }
        /* in the order of `a`, as the cursor goes */
        EACH(i, x.v) {
            uint64_t cell, cell2;
            if (a == COT_I64) cot__store_i64(&cell, a, cot__load_i64(at(&x.v, i), x.v.dtype));
            else cot__store_f64(&cell, a, cot__load_f64(at(&x.v, i), x.v.dtype));
            long double want = converted(&cell, a, y.v.dtype);
            assert_true(same_as(y.v.dtype, read_any(at(&y.v, i), y.v.dtype), want));
            cot_dtype c = cot__dtype_compute(y.v.dtype);
            if (c == COT_I64) {
                int64_t t = cot__load_i64(&cell, a);
                cot__store_i64(&cell2, y.v.dtype, cot__load_i64(at(&sum.v, i), y.v.dtype) + t);
            } else {
                double t = cot__load_f64(&cell, a);
                t = c == COT_F32 ? (double)((float)t + (float)cot__load_f64(at(&sum.v, i), y.v.dtype))
                                 : t + cot__load_f64(at(&sum.v, i), y.v.dtype);
                cot__store_f64(&cell2, y.v.dtype, t);
            }
            assert_true(same_as(y.v.dtype, read_any(at(&z.v, i), z.v.dtype), read_any(&cell2, z.v.dtype)));
        }
        drop(&x);
        drop(&y);
        drop(&z);
        drop(&sum);
    }
}

/* ---- indexing -------------------------------------------------------------------------------- */

static void fill_index(const array *a, int64_t extent) {
    bool negative = a->v.dtype != COT_U8;
    EACH(i, a->v) cot__store_i64(at(&a->v, i), a->v.dtype, below((int)extent) - (negative && below(2) ? extent : 0));
}

static cot_dtype index_dtype(void) { return (cot_dtype)(COT_I64 + below(3)); }

static int64_t position(const array *index, const int64_t *i, int64_t extent) {
    int64_t p = cot__load_i64(at(&index->v, i), index->v.dtype);
    return p < 0 ? p + extent : p;
}

static void add_one(const cot__view *x, const int64_t *xi, const cot__view *u, const int64_t *ui) {
    void *p = at(x, xi);
    if (!cot__dtype_is_float(x->dtype))
        cot__store_i64(p, x->dtype, cot__load_i64(p, x->dtype) + cot__load_i64(at(u, ui), u->dtype));
    else if (x->dtype == COT_F64) *(double *)p += cot__load_f64(at(u, ui), u->dtype);
    else
        cot__store_f64(p, x->dtype,
                       (double)((float)cot__load_f64(p, x->dtype) + (float)cot__load_f64(at(u, ui), u->dtype)));
}

static void assert_equal_arrays(const array *a, const array *b) {
    EACH(i, a->v) assert_true(same(read_any(at(&a->v, i), a->v.dtype), read_any(at(&b->v, i), b->v.dtype)));
}

/* Axes of x around `axis` come from u's index ui, the position itself from `index`. */
static void source_index(int axis, int ndim, int index_ndim, const int64_t *ui, int64_t p, int64_t *xi) {
    for (int k = 0; k < axis; k++) xi[k] = ui[k];
    xi[axis] = p;
    for (int k = axis + 1; k < ndim; k++) xi[k] = ui[k - 1 + index_ndim];
}

/* The first element that is no position, or -1. */
static int64_t bad_position(const cot__view *index, int64_t extent, bool wrap) {
    int64_t status[2] = {7, 7};
    cot__bad_position(index, extent, wrap, status);
    assert_in_range(status[0], 0, 1);
    return status[0] ? status[1] : -1;
}

static void check_take_of(cot_dtype d, int ndim, const int64_t *shape, int axis, int idim, const int64_t *ishape) {
    int64_t zshape[7], xi[COT_MAX_NDIM];
    int     zdim = 0;
    for (int i = 0; i < axis; i++) zshape[zdim++] = shape[i];
    for (int i = 0; i < idim; i++) zshape[zdim++] = ishape[i];
    for (int i = axis + 1; i < ndim; i++) zshape[zdim++] = shape[i];
    array x, y, index, z, u;
    make(&x, d, ndim, shape, 0);
    make(&y, d, ndim, shape, CONTIGUOUS);
    make(&index, index_dtype(), idim, ishape, ALLOW_ZERO);
    make(&z, d, zdim, zshape, 0);
    make(&u, d, zdim, zshape, ALLOW_ZERO);
    fill(&x, false);
    fill(&u, false);
    fill_index(&index, shape[axis]);
    assert_int_equal(bad_position(&index.v, shape[axis], true), -1);
    cot__take(&x.v, axis, &index.v, &z.v);
    cot__copy(&y.v, &x.v);
    cot__scatter_add(&x.v, axis, &index.v, &u.v);
    EACH(i, z.v) {
        source_index(axis, ndim, idim, i, position(&index, i + axis, shape[axis]), xi);
        add_one(&y.v, xi, &u.v, i);
    }
    assert_equal_arrays(&x, &y);
    drop(&y);
    make(&y, d, zdim, zshape, CONTIGUOUS);
    fill(&x, false);
    cot__take(&x.v, axis, &index.v, &z.v);
    EACH(i, z.v) {
        source_index(axis, ndim, idim, i, position(&index, i + axis, shape[axis]), xi);
        memcpy(at(&y.v, i), at(&x.v, xi), (size_t)cot__dtype_size(d));
    }
    assert_equal_arrays(&z, &y);
    drop(&x);
    drop(&y);
    drop(&z);
    drop(&u);
    drop(&index);
}

static void check_take(int round) {
    int64_t   shape[4], ishape[3];
    int       ndim = 0, idim = random_shape(ishape, 3, round % 20 == 0 ? 12 : 4, true);
    cot_dtype d = (cot_dtype)below(8);
    while (ndim == 0) ndim = random_shape(shape, 4, 5, false);
    check_take_of(d, ndim, shape, below(ndim), idim, ishape);
}

/* Rows that threads share, as of an embedding: equal positions add up in order. */
static void check_take_rows(int64_t columns) {
    cot_set_threads(1 + below(7));
    check_take_of(below(2) ? COT_F32 : COT_F64, 2, (const int64_t[]){9, columns}, 0, 2, (const int64_t[]){20, 30});
    cot_set_threads(0);
}

static void check_along(void) {
    int64_t   shape[4], ishape[4], xi[COT_MAX_NDIM];
    int       ndim = 0, axis;
    cot_dtype d = (cot_dtype)below(8);
    while (ndim == 0) ndim = random_shape(shape, 4, 5, false);
    axis = below(ndim);
    memcpy(ishape, shape, sizeof(shape));
    ishape[axis] = below(7);
    array x, y, index, z, u;
    make(&x, d, ndim, shape, 0);
    make(&y, d, ndim, shape, CONTIGUOUS);
    make(&index, index_dtype(), ndim, ishape, ALLOW_ZERO);
    make(&z, d, ndim, ishape, 0);
    make(&u, d, ndim, ishape, ALLOW_ZERO);
    fill(&x, false);
    fill(&u, false);
    fill_index(&index, shape[axis]);
    cot__take_along(&x.v, axis, &index.v, &z.v);
    EACH(i, z.v) {
        memcpy(xi, i, sizeof(xi));
        xi[axis] = position(&index, i, shape[axis]);
        assert_memory_equal(at(&z.v, i), at(&x.v, xi), (size_t)cot__dtype_size(d));
    }
    cot__copy(&y.v, &x.v);
    cot__scatter_add_along(&x.v, axis, &index.v, &u.v);
    EACH(i, z.v) {
        memcpy(xi, i, sizeof(xi));
        xi[axis] = position(&index, i, shape[axis]);
        add_one(&y.v, xi, &u.v, i);
    }
    assert_equal_arrays(&x, &y);
    drop(&x);
    drop(&y);
    drop(&z);
    drop(&u);
    drop(&index);
}

static void test_index(void **state) {
    (void)state;
    for (int round = 0; round < 1500; round++) {
        check_take(round);
        check_along();
    }
    for (int64_t columns = 60; columns < 200; columns += 7) check_take_rows(columns);
    const int32_t   p[4] = {0, -3, 3, -4};
    int32_t         copy[4];
    memcpy(copy, p, sizeof(p));
    const cot__view v = {copy, COT_I32, 1, (const int64_t[]){4}, (const int64_t[]){1}};
    assert_int_equal(bad_position(&v, 4, true), -1);
    assert_int_equal(bad_position(&v, 3, true), 2);
    assert_int_equal(bad_position(&v, 0, true), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes), cmocka_unit_test(test_memory),     cmocka_unit_test(test_elements),
        cmocka_unit_test(test_copy),   cmocka_unit_test(test_copy_large), cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_copy_rows), cmocka_unit_test(test_copy_plain),
        cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
