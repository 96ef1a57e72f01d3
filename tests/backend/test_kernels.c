/* test_kernels.c: compares every CPU kernel with a slow, obvious reference, over random shapes and
 * layouts.
 *
 * Arrays are drawn with permuted, skipped, negative and zero strides inside a larger buffer. The
 * references use nothing of the kernels but cot__load_* and cot__store_*, which are tested first.
 * Derivatives that use the kernels are tested elsewhere. */
#include "backend/cpu/kernels.h"
#include "base/cpu.h"
#include "base/half.h"
#include "base/parallel.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- random arrays --------------------------------------------------------------------------- */

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t draw(void) { /* xorshift* */
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * 0x2545f4914f6cdd1d;
}

static int    below(int n) { return (int)((draw() >> 33) % (uint64_t)n); }
/* in [-1, 1) */
static double uniform(void) { return (double)(int64_t)(draw() >> 11) * 0x1p-52 - 1; }

typedef struct array {
    cot__view v;
    int64_t   shape[COT_MAX_NDIM], stride[COT_MAX_NDIM];
    void     *memory;
} array;

enum { ALLOW_ZERO = 1, CONTIGUOUS = 2 };

/* v points into *a itself, so arrays are filled in place and never copied. */
static void make(array *a, cot_dtype d, int ndim, const int64_t *shape, int flags) {
    int     order[COT_MAX_NDIM];
    int64_t total = 1, base = 0;
    for (int i = 0; i < ndim; i++) order[i] = i;
    for (int i = ndim - 1; i > 0 && !(flags & CONTIGUOUS); i--) {
        int j = below(i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int k = ndim - 1; k >= 0; k--) {
        int     i     = order[k];
        int64_t steps = flags & CONTIGUOUS ? 1 : 1 + (below(4) == 0);
        a->shape[i]   = shape[i];
        a->stride[i]  = total * steps;
        total *= (shape[i] > 0 ? shape[i] : 1) * steps;
        if (flags & CONTIGUOUS) continue;
        if ((flags & ALLOW_ZERO) && below(5) == 0) a->stride[i] = 0;
        else if (below(4) == 0) {
            base += a->stride[i] * (shape[i] > 0 ? shape[i] - 1 : 0);
            a->stride[i] = -a->stride[i];
        }
    }
    a->memory = calloc((size_t)total, (size_t)cot__dtype_size(d));
    assert_non_null(a->memory);
    a->v = (cot__view){(char *)a->memory + base * cot__dtype_size(d), d, ndim, a->shape, a->stride};
}

static void drop(array *a) { free(a->memory); }

static void *at(const cot__view *v, const int64_t *index) {
    int64_t o = 0;
    for (int i = 0; i < v->ndim; i++) o += index[i] * v->stride[i];
    return (char *)v->data + o * cot__dtype_size(v->dtype);
}

/* Next index in row-major order. */
static bool next(int ndim, const int64_t *shape, int64_t *index) {
    for (int i = ndim - 1; i >= 0; i--) {
        if (++index[i] < shape[i]) return true;
        index[i] = 0;
    }
    return false;
}

#define EACH(index, view)                                                                                              \
    for (int64_t index[COT_MAX_NDIM] = {0}, go_ = cot__count((view).ndim, (view).shape) > 0; go_;                      \
         go_ = next((view).ndim, (view).shape, index))

static int random_shape(int64_t *shape, int most_axes, int most_extent, bool zeros) {
    int ndim = below(most_axes + 1);
    for (int i = 0; i < ndim; i++) shape[i] = below(4) == 0 ? 1 : 1 + below(most_extent);
    if (zeros && ndim > 0 && below(10) == 0) shape[below(ndim)] = 0;
    return ndim;
}

static const double  specials[] = {0.0,
                                   -0.0,
                                   1,
                                   -1,
                                   0.5,
                                   -0.5,
                                   2.5,
                                   254.9,
                                   255,
                                   256,
                                   300,
                                   -3,
                                   65504,
                                   65520,
                                   1e-7,
                                   6e-8,
                                   1e-40,
                                   1e-310,
                                   2147483647,
                                   2147483648,
                                   -2147483648.0,
                                   -2147483649.0,
                                   0x1p62,
                                   0x1p63,
                                   -0x1p63,
                                   1e19,
                                   -1e19,
                                   3.4e38,
                                   3.5e38,
                                   1e300,
                                   -1e300,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   1 + 0x1p-8,
                                   1 + 0x1p-8 + 0x1p-40,
                                   1 + 0x1p-11,
                                   1 + 0x1p-11 + 0x1p-40,
                                   16777217};
static const int64_t integers[] = {0,
                                   1,
                                   -1,
                                   127,
                                   128,
                                   255,
                                   256,
                                   257,
                                   -256,
                                   INT32_MAX,
                                   (int64_t)INT32_MAX + 1,
                                   INT32_MIN,
                                   (int64_t)INT32_MIN - 1,
                                   INT64_MAX,
                                   INT64_MIN,
                                   0x123456789abcdef,
                                   16777217,
                                   (1ll << 53) + 1,
                                   (1ll << 62) + (1ll << 54),
                                   (1ll << 62) + (1ll << 54) + 1,
                                   (1ll << 62) + (1ll << 54) - 1};

static void fill(const array *a, bool special) {
    EACH(i, a->v) {
        void *p = at(&a->v, i);
        if (!cot__dtype_is_float(a->v.dtype))
            cot__store_i64(p, a->v.dtype, special ? integers[below(COUNTOF(integers))] : below(7) - 3);
        else cot__store_f64(p, a->v.dtype, special ? specials[below(COUNTOF(specials))] : uniform());
    }
}

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

static long double read_any(const void *p, cot_dtype d) {
    switch (d) {
    case COT_F64: return *(const double *)p;
    case COT_F32: return *(const float *)p;
    case COT_BF16: return cot__f32_from_bf16(*(const uint16_t *)p);
    case COT_F16: return cot__f32_from_f16(*(const uint16_t *)p);
    case COT_I64: return *(const int64_t *)p;
    case COT_I32: return *(const int32_t *)p;
    default: return *(const uint8_t *)p;
    }
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

static bool same(long double a, long double b) { return (a != a && b != b) || (a == b && signbit(a) == signbit(b)); }

/* Integers have no signed zero. */
static bool same_as(cot_dtype d, long double a, long double b) { return cot__dtype_is_float(d) ? same(a, b) : a == b; }

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

static void test_copy(void **state) {
    (void)state;
    for (int round = 0; round < 40; round++)
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

/* ---- reductions ------------------------------------------------------------------------------ */

static double unit(cot_dtype d) {
    static const double u[COT_DTYPE_COUNT] = {0x1p-53, 0x1p-24, 0x1p-8, 0x1p-11, 0, 0, 0, 0};
    return u[d];
}

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

/* |got - want| within `ulps` units of z's and the compute type's rounding, relative to scale. */
static void check_close(const char *what, cot_dtype d, long double got, long double want, long double scale,
                        double ulps) {
    if (same(got, want) || got == want) return;
    long double bound = scale * (ulps * unit(cot__dtype_compute(d)) + (d == COT_F64 || d == COT_F32 ? 0 : unit(d)));
    bound += d == COT_F16 ? 0x1p-24L : d == COT_F64 ? 0x1p-1074L : 0x1p-149L;
    if (!(fabsl(got - want) <= bound))
        fail_msg("%s %s: %Lg, want %Lg within %Lg", what, cot__dtype_name(d), got, want, bound);
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

/* ---- matrix products ------------------------------------------------------------------------- */

static void make_matrix(array *a, cot__matrix *m, cot_dtype d, int64_t rows, int64_t cols) {
    make(a, d, 2, (const int64_t[]){rows, cols}, 0);
    fill(a, false);
    *m = (cot__matrix){a->v.data, rows, cols, a->stride[0], a->stride[1]};
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
    /* where many rows are packed, a wrong plan would write far behind */
    size_t guard = rows + cols > 1500 ? (size_t)8 << 20 : GUARD, spoilt = 0;
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
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, 300, 2048, 5000, 70001};
    int64_t              grain = cot__grain;
    cot__isa             isa = cot__cpu_isa();
    for (int l = 0; l < COUNTOF(lengths); l++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            int64_t     k = lengths[l], shape[1] = {k}, one[1] = {1};
            array       xa, xb, terms, sum, xc;
            cot__matrix a, b, c;
            make_matrix(&xa, &a, (cot_dtype)d, 1, k);
            make_matrix(&xb, &b, (cot_dtype)d, k, 1);
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

static void check_take(int round) {
    int64_t   shape[4], ishape[3], zshape[7], xi[COT_MAX_NDIM];
    int       ndim = 0, axis, idim = random_shape(ishape, 3, round % 20 == 0 ? 12 : 4, true), zdim = 0;
    cot_dtype d = (cot_dtype)below(8);
    while (ndim == 0) ndim = random_shape(shape, 4, 5, false);
    axis = below(ndim);
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
        cmocka_unit_test(test_dtypes),      cmocka_unit_test(test_memory),         cmocka_unit_test(test_elements),
        cmocka_unit_test(test_copy),        cmocka_unit_test(test_copy_large),     cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_reduce),      cmocka_unit_test(test_reduce_long),    cmocka_unit_test(test_sum_accuracy),
        cmocka_unit_test(test_sum_of_columns),
        cmocka_unit_test(test_reduce_special), cmocka_unit_test(test_softmax),     cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_bits),   cmocka_unit_test(test_outer_bits),     cmocka_unit_test(test_gemm_long),
        cmocka_unit_test(test_gemm_memory), cmocka_unit_test(test_dot_bits),       cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
