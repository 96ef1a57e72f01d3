/* copy.c: the library's only cast: copies between any two layouts and dtypes, whole arrays or runs.
 *
 * Every path converts through the same strip functions, so the value of an element never depends on
 * the layouts. Each conversion rounds once. Copies within a dtype move bits and so keep NaN
 * payloads. base/convert.h has the conversions. */
#include "backend/cpu/split.h"
#include "backend/cpu/strip.h"
#include "base/convert.h"

#include <string.h>

/* ---- strips ---------------------------------------------------------------------------------- */

/* The three loops are one loop. Separated, the compiler vectorises the first and turns the second
 * into a fill. */
#define STRIP(NAME, TO_TYPE, FROM_TYPE, CONVERT)                                                                       \
    static void NAME(void *dst, int64_t ds, const void *src, int64_t ss, int64_t n) {                                  \
        TO_TYPE *restrict         d = dst;                                                                             \
        const FROM_TYPE *restrict s = src;                                                                             \
        if (ss == 0) {                                                                                                 \
            TO_TYPE v = CONVERT(*s);                                                                                   \
            if (ds == 1) for (int64_t i = 0; i < n; i++) d[i] = v;                                                     \
            else for (int64_t i = 0; i < n; i++) d[i * ds] = v;                                                        \
        } else if (ds == 1 && ss == 1) {                                                                               \
            for (int64_t i = 0; i < n; i++) d[i] = CONVERT(s[i]);                                                      \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) d[i * ds] = CONVERT(s[i * ss]);                                            \
        }                                                                                                              \
    }

typedef uint64_t __attribute__((may_alias)) word8;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint8_t __attribute__((may_alias))  word1;

#define SAME(s) (s)
#define STRIP_SAME(D, WORD)                                                                                            \
    STRIP(step_##D, WORD, WORD, SAME)                                                                                  \
    static void strip_##D##_##D(void *dst, int64_t ds, const void *src, int64_t ss, int64_t n) {                       \
        if (ds == 1 && ss == 1 && n > 0) memcpy(dst, src, (size_t)n * sizeof(WORD));                                   \
        else step_##D(dst, ds, src, ss, n);                                                                            \
    }
STRIP_SAME(F64, word8)
STRIP_SAME(F32, word4)
STRIP_SAME(BF16, word2)
STRIP_SAME(F16, word2)
STRIP_SAME(I64, word8)
STRIP_SAME(I32, word4)
STRIP_SAME(U8, word1)
STRIP_SAME(BOOL, word1)

#define CONVERT_VIA(TO, FROM)                                                                                          \
    static inline stored_##TO TO##_from_##FROM(stored_##FROM s) { return WRITE_##TO(READ_##FROM(s)); }
#define STRIP_CONVERT(TO, FROM)                                                                                        \
    CONVERT_VIA(TO, FROM)                                                                                              \
    STRIP(strip_##TO##_##FROM, stored_##TO, stored_##FROM, TO##_from_##FROM)
#define STRIP_SMALL(TO, FROM)                                                                                          \
    CONVERT_VIA(TO, FROM)                                                                                              \
    __attribute__((cold)) STRIP(strip_##TO##_##FROM, stored_##TO, stored_##FROM, TO##_from_##FROM)

#define EACH_COMMON(X) \
    X(F32, F64) X(BOOL, F64) X(F64, F32) X(BF16, F32) X(F16, F32) X(BOOL, F32) X(F64, BF16) X(F32, BF16) \
    X(F32, F16) X(F64, I64) X(F32, I64) X(I32, I64) X(F64, I32) X(F32, I32) X(I64, I32) X(F64, U8) \
    X(F32, U8) X(F64, BOOL) X(F32, BOOL) X(I64, BOOL)
/* Compiled for size: vector code for these took 100 kB, and no kernel waits for them. */
#define EACH_RARE(X) \
    X(BF16, F64) X(F16, F64) X(I64, F64) X(I32, F64) X(U8, F64) X(I64, F32) X(I32, F32) X(U8, F32) \
    X(F16, BF16) X(I64, BF16) X(I32, BF16) X(U8, BF16) X(BOOL, BF16) X(F64, F16) X(BF16, F16) X(I64, F16) \
    X(I32, F16) X(U8, F16) X(BOOL, F16) X(BF16, I64) X(F16, I64) X(U8, I64) X(BOOL, I64) X(BF16, I32) \
    X(F16, I32) X(U8, I32) X(BOOL, I32) X(BF16, U8) X(F16, U8) X(I64, U8) X(I32, U8) X(BOOL, U8) \
    X(BF16, BOOL) X(F16, BOOL) X(I32, BOOL) X(U8, BOOL)
EACH_COMMON(STRIP_CONVERT)
EACH_RARE(STRIP_SMALL)

cot__strip_fn *cot__strip(cot_dtype to, cot_dtype from) {
#define ROW(TO)                                                                                                        \
    [COT_##TO] = {strip_##TO##_F64, strip_##TO##_F32, strip_##TO##_BF16, strip_##TO##_F16,                             \
                  strip_##TO##_I64, strip_##TO##_I32, strip_##TO##_U8,   strip_##TO##_BOOL},
    static cot__strip_fn *const table[COT_DTYPE_COUNT][COT_DTYPE_COUNT] = {EACH_DTYPE(ROW)};
#undef ROW
    return table[to][from];
}

static void add_f64(double *restrict d, const double *restrict s, int64_t n) {
    for (int64_t i = 0; i < n; i++) d[i] += s[i];
}

static void add_f32(float *restrict d, const float *restrict s, int64_t n) {
    for (int64_t i = 0; i < n; i++) d[i] += s[i];
}

/* Unsigned, because integers wrap. */
static void add_i64(uint64_t *restrict d, const uint64_t *restrict s, int64_t n) {
    for (int64_t i = 0; i < n; i++) d[i] += s[i];
}

static void add_contiguous(cot_dtype compute, void *d, const void *s, int64_t n) {
    if (compute == COT_F64) add_f64(d, s, n);
    else if (compute == COT_F32) add_f32(d, s, n);
    else add_i64(d, s, n);
}

void cot__strip_add(void *dst, cot_dtype to, int64_t ds, const void *src, cot_dtype from, int64_t ss, int64_t n) {
    cot_dtype compute = cot__dtype_compute(to);
    if (compute == to && from == to && ds == 1 && ss == 1) {
        add_contiguous(to, dst, src, n);
        return;
    }
    uint64_t sum[COT__BLOCK], term[COT__BLOCK];
    int64_t  step = ds == 0 ? 1 : COT__BLOCK;
    int      to_size = cot__dtype_size(to), from_size = cot__dtype_size(from);
    for (int64_t i = 0; i < n; i += step) {
        int64_t     len = n - i < step ? n - i : step;
        char       *d   = (char *)dst + i * ds * to_size;
        const char *s   = (const char *)src + i * ss * from_size;
        cot__strip(compute, to)(sum, 1, d, ds, len);
        cot__strip(compute, from)(term, 1, s, ss, len);
        add_contiguous(compute, sum, term, len);
        cot__strip(to, compute)(d, ds, sum, 1, len);
    }
}

/* ---- whole arrays ---------------------------------------------------------------------------- */

enum { TILE = 16, SHORT_ROW = 8 };

/* Two axes that want opposite loop orders are copied tile by tile, so that each cache line is used
 * completely while it is near; along the longer side of a tile. */
static void copy_tiles(cot__strip_fn *strip, char *dst, const char *src, const int64_t shape[2], const int64_t ds[2],
                       const int64_t ss[2], int dsize, int ssize) {
    for (int64_t i0 = 0; i0 < shape[0]; i0 += TILE)
        for (int64_t j0 = 0; j0 < shape[1]; j0 += TILE) {
            int64_t ni = shape[0] - i0 < TILE ? shape[0] - i0 : TILE, nj = shape[1] - j0 < TILE ? shape[1] - j0 : TILE;
            for (int64_t j = j0; j < j0 + nj && nj < ni; j++)
                strip(dst + (i0 * ds[0] + j * ds[1]) * dsize, ds[0], src + (i0 * ss[0] + j * ss[1]) * ssize, ss[0], ni);
            for (int64_t i = i0; i < i0 + ni && nj >= ni; i++)
                strip(dst + (i * ds[0] + j0 * ds[1]) * dsize, ds[1], src + (i * ss[0] + j0 * ss[1]) * ssize, ss[1], nj);
        }
}

/* Bytes of rows that are moved here: calls would take longer than they. */
enum { CHUNK = 16, MOST_CHUNKS = 16 };
typedef uint64_t chunk __attribute__((vector_size(CHUNK), aligned(1), may_alias));

static void copy_rows(char *dst, const char *src, int64_t rows, int64_t bytes, int64_t ds, int64_t ss) {
    for (; rows > 0; rows--, dst += ds, src += ss) {
        for (int64_t i = 0; i < bytes - CHUNK; i += CHUNK) *(chunk *)(dst + i) = *(const chunk *)(src + i);
        *(chunk *)(dst + bytes - CHUNK) = *(const chunk *)(src + bytes - CHUNK);
    }
}

/* Is the innermost axis such a row? */
static bool has_short_rows(const cot__walk *w, const cot__view *dst, const cot__view *src) {
    int     last = w->ndim - 1;
    int64_t bytes = w->shape[last] * cot__dtype_size(dst->dtype);
    return last > 0 && dst->dtype == src->dtype && w->stride[0][last] == 1 && w->stride[1][last] == 1 &&
           bytes >= CHUNK && bytes <= MOST_CHUNKS * CHUNK;
}

/* The axis along which the source runs closest. -1: it is the innermost already, or nothing would
 * be gained. */
static int transposed_axis(const cot__walk *w) {
    int     last = w->ndim - 1, best = -1;
    int64_t least = llabs(w->stride[1][last]);
    for (int i = 0; i < last; i++) {
        int64_t s = llabs(w->stride[1][i]);
        if (s != 0 && s < least && w->shape[i] > 1) {
            best  = i;
            least = s;
        }
    }
    return best;
}

static void copy_walk(cot__walk *w, const cot__view *dst, const cot__view *src) {
    cot__strip_fn *strip = cot__strip(dst->dtype, src->dtype);
    int            turn  = transposed_axis(w);
    int64_t        ds[2], ss[2], s[2];
    int64_t        shape[2] = {1, 1};
    /* bring that axis next to the innermost; both leave the walk together */
    if (turn >= 0) {
        for (int i = turn; i < w->ndim - 2; i++) cot__walk_swap(w, i, i + 1);
    } else if (w->ndim >= 2 && w->shape[w->ndim - 1] < SHORT_ROW && w->shape[w->ndim - 2] > w->shape[w->ndim - 1]) {
        /* a long strip with a stride beats many short ones */
        cot__walk_swap(w, w->ndim - 1, w->ndim - 2);
    }
    bool rows = turn < 0 && has_short_rows(w, dst, src);
    for (int i = 1; i >= (turn >= 0 || rows ? 0 : 1); i--) {
        shape[i] = cot__walk_pop(w, s);
        ds[i]    = s[0];
        ss[i]    = s[1];
    }
    do {
        char *d = cot__at(dst, w->offset[0]), *from = cot__at(src, w->offset[1]);
        int   dsize = cot__dtype_size(dst->dtype), ssize = cot__dtype_size(src->dtype);
        if (turn >= 0) copy_tiles(strip, d, from, shape, ds, ss, dsize, ssize);
        else if (rows) copy_rows(d, from, shape[0], shape[1] * dsize, ds[0] * dsize, ss[0] * dsize);
        else strip(d, ds[1], from, ss[1], shape[1]);
    } while (cot__walk_next(w));
}

static void copy_here(const cot__view *dst, const cot__view *src) {
    cot__walk w;
    cot__walk_start(&w, 2);
    for (int i = 0; i < src->ndim; i++) {
        if (src->shape[i] == 0) return;
        cot__walk_axis(&w, src->shape[i], dst->stride[i], src->stride[i], 0);
    }
    if (w.ndim > 1) {
        cot__walk_sort(&w, 0);
        cot__walk_merge(&w);
    }
    if (w.ndim == 0) cot__strip(dst->dtype, src->dtype)(dst->data, 1, src->data, 1, 1);
    else copy_walk(&w, dst, src);
}

/* Parts of an axis, of each element of the axes before it if these are few. Then parts follow the
 * elements of a row-major array, as those of other operations on it do, and threads find what they
 * have made. */
typedef struct copies {
    const cot__view *dst, *src;
    int              axis;
    bool             each;
    int64_t          parts;
} copies;

static cot__view part_of(const copies *c, const cot__view *v, int64_t part, int64_t *shape) {
    int64_t   extent = v->shape[c->axis], at = part % c->parts, rest = part / c->parts;
    cot__view z = cot__split_view(v, c->axis, cot__part_start(extent, c->parts, at),
                                  cot__part_start(extent, c->parts, at + 1), shape);
    for (int k = c->axis - 1; c->each && k >= 0; rest /= v->shape[k], k--) {
        shape[k] = 1;
        z.data = (char *)z.data + rest % v->shape[k] * v->stride[k] * cot__dtype_size(v->dtype);
    }
    return z;
}

static void copy_part(void *ctx, int64_t part) {
    const copies *c = ctx;
    int64_t       to[COT_MAX_NDIM], from[COT_MAX_NDIM];
    cot__view     src = part_of(c, c->src, part, from), dst = part_of(c, c->dst, part, to);
    copy_here(&dst, &src);
}

/* Elements in one row, of a plain array or of one number, to such a row: longer strips, whichever
 * axis would be cut. */
static bool copy_flat(const cot__view *dst, const cot__view *src, int64_t size) {
    int64_t step = !cot__repeats(src), one = 1;
    if (dst->ndim < 2 || !cot__is_contiguous(dst->ndim, dst->shape, dst->stride)) return false;
    if (step && !cot__is_contiguous(src->ndim, src->shape, src->stride)) return false;
    cot__copy(&(cot__view){dst->data, dst->dtype, 1, &size, &one},
              &(cot__view){src->data, src->dtype, 1, &size, &step});
    return true;
}

void cot__copy(const cot__view *dst, const cot__view *src) {
    int64_t size = cot__count(src->ndim, src->shape);
    if (size >= cot__grain && copy_flat(dst, src, size)) return;
    copies c = {dst, src, size < cot__grain ? -1 : cot__split_axis(src->ndim, src->shape, UINT32_MAX), false, 1};
    if (c.axis >= 0) c.parts = cot__parts(src->shape[c.axis], size / src->shape[c.axis], COT__MOST_PARTS);
    if (c.parts == 1) {
        copy_here(dst, src);
        return;
    }
    int64_t before = cot__count(c.axis, src->shape);
    c.each = before <= c.parts;
    if (c.each) c.parts /= before;
    cot__parallel(c.parts * (c.each ? before : 1), copy_part, &c);
}

void cot__fill(const cot__view *v, double value) {
    static const int64_t zero[COT_MAX_NDIM];
    uint64_t             element = 0;
    cot__store_f64(&element, v->dtype, value);
    cot__view one = {&element, v->dtype, v->ndim, v->shape, zero};
    cot__copy(v, &one);
}

/* ---- cursors --------------------------------------------------------------------------------- */

void cot__cursor_open(cot__cursor *c, const cot__view *v, cot_dtype as) {
    c->view     = *v;
    c->as       = as;
    c->filled   = 0;
    c->offset   = 0;
    c->constant = true;
    c->ndim     = 0;
    for (int i = 0; i < v->ndim; i++) {
        int64_t extent = v->shape[i], stride = v->stride[i];
        if (extent == 1) continue;
        if (stride != 0) c->constant = false;
        int k = c->ndim;
        if (k > 0 && c->stride[k - 1] == stride * extent) {
            c->shape[k - 1] *= extent;
            c->stride[k - 1] = stride;
        } else {
            c->shape[k]  = extent;
            c->stride[k] = stride;
            c->index[k]  = 0;
            c->ndim++;
        }
    }
    if (c->ndim == 0) {
        c->shape[0] = c->stride[0] = 1;
        c->index[0] = 0;
        c->ndim     = 1;
    }
    c->direct = c->ndim == 1 && c->stride[0] == 1 && v->dtype == as;
}

void cot__cursor_seek(cot__cursor *c, int64_t at) {
    c->offset = 0;
    for (int i = c->ndim - 1; i >= 0; i--) {
        c->index[i] = i > 0 ? at % c->shape[i] : at;
        c->offset += c->index[i] * c->stride[i];
        at /= c->shape[i];
    }
}

/* Past n elements, all of which lie on the innermost axis. */
static void cursor_advance(cot__cursor *c, int64_t n) {
    int i = c->ndim - 1;
    c->offset += n * c->stride[i];
    c->index[i] += n;
    while (i > 0 && c->index[i] == c->shape[i]) {
        c->offset += c->stride[i - 1] - c->index[i] * c->stride[i];
        c->index[i] = 0;
        c->index[--i]++;
    }
}

/* How many of the next n elements lie on the innermost axis from here on. */
static int64_t cursor_run(const cot__cursor *c, int64_t n) {
    int64_t left = c->shape[c->ndim - 1] - c->index[c->ndim - 1];
    return n < left ? n : left;
}

/* Short rows of the innermost axis: how many whole ones of it come next, within n elements. */
static int64_t cursor_rows(const cot__cursor *c, int64_t n) {
    int i = c->ndim - 1;
    if (i == 0 || c->shape[i] >= SHORT_ROW || c->index[i] > 0) return 0;
    int64_t left = c->shape[i - 1] - c->index[i - 1], rows = n / c->shape[i];
    return rows < left ? rows : left;
}

/* Such rows, column by column: a long strip with a stride beats many short ones. */
static int64_t load_rows(cot__cursor *c, cot__strip_fn *strip, int64_t rows, char *buf) {
    int     i = c->ndim - 1, size = cot__dtype_size(c->as);
    int64_t width = c->shape[i];
    for (int64_t j = 0; j < width; j++)
        strip(buf + j * size, width, cot__at(&c->view, c->offset + j * c->stride[i]), c->stride[i - 1], rows);
    c->offset += (rows - 1) * c->stride[i - 1];
    c->index[i - 1] += rows - 1;
    cursor_advance(c, width);
    return rows * width;
}

/* Elements that are repeated along rows: how many rows come next, within n elements. */
static int64_t repeated_rows(const cot__cursor *c, int64_t n) {
    int i = c->ndim - 1;
    if (i == 0 || c->stride[i] != 0 || c->shape[i] > COT__BLOCK / 4 || c->index[i] > 0) return 0;
    int64_t left = c->shape[i - 1] - c->index[i - 1], rows = n / c->shape[i];
    if (rows > COT__BLOCK) rows = COT__BLOCK;
    return rows < left ? rows : left;
}

static int64_t repeat_rows(cot__cursor *c, cot__strip_fn *strip, int64_t rows, char *buf) {
    int      i = c->ndim - 1;
    int64_t  width = c->shape[i], from = c->stride[i - 1];
    uint64_t element[COT__BLOCK];
    strip(element, 1, cot__at(&c->view, c->offset), from, rows);
    if (cot__dtype_size(c->as) == 8)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < width; j++) ((word8 *)(void *)buf)[r * width + j] = element[r];
    else
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < width; j++)
                ((word4 *)(void *)buf)[r * width + j] = ((const word4 *)(const void *)element)[r];
    c->offset += (rows - 1) * from;
    c->index[i - 1] += rows - 1;
    cursor_advance(c, width);
    return rows * width;
}

static const void *cursor_constant(cot__cursor *c, int n, void *buf) {
    if (c->filled < n) cot__strip(c->as, c->view.dtype)(buf, 1, c->view.data, 0, n);
    if (c->filled < n) c->filled = n;
    return buf;
}

const void *cot__cursor_load(cot__cursor *c, int n, void *buf) {
    if (c->direct) {
        const void *p = cot__at(&c->view, c->offset);
        c->offset += n;
        return p;
    }
    if (c->constant) return cursor_constant(c, n, buf);
    int64_t stride = c->stride[c->ndim - 1];
    if (stride == 1 && c->view.dtype == c->as && cursor_run(c, n) == n) {
        const void *p = cot__at(&c->view, c->offset);
        cursor_advance(c, n);
        return p;
    }
    cot__strip_fn *strip = cot__strip(c->as, c->view.dtype);
    int            size  = cot__dtype_size(c->as);
    for (int64_t done = 0; done < n;) {
        char   *to   = (char *)buf + done * size;
        int64_t rows = cursor_rows(c, n - done), run = cursor_run(c, n - done), again = repeated_rows(c, n - done);
        if (again > 1 && size >= 4) done += repeat_rows(c, strip, again, to);
        else if (rows > 1) done += load_rows(c, strip, rows, to);
        else {
            strip(to, 1, cot__at(&c->view, c->offset), stride, run);
            cursor_advance(c, run);
            done += run;
        }
    }
    return buf;
}

void cot__cursor_store(cot__cursor *c, int n, const void *block) {
    cot__strip_fn *strip  = cot__strip(c->view.dtype, c->as);
    int64_t        stride = c->stride[c->ndim - 1];
    int            size   = cot__dtype_size(c->as);
    for (int64_t done = 0; done < n;) {
        int64_t run = cursor_run(c, n - done);
        strip(cot__at(&c->view, c->offset), stride, (const char *)block + done * size, 1, run);
        cursor_advance(c, run);
        done += run;
    }
}

void cot__cursor_add(cot__cursor *c, int n, const void *block) {
    int64_t stride = c->stride[c->ndim - 1];
    int     size   = cot__dtype_size(c->as);
    for (int64_t done = 0; done < n;) {
        int64_t     run = cursor_run(c, n - done);
        const char *b   = (const char *)block + done * size;
        cot__strip_add(cot__at(&c->view, c->offset), c->view.dtype, stride, b, c->as, 1, run);
        cursor_advance(c, run);
        done += run;
    }
}
