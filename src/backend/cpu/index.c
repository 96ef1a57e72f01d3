/* index.c: gathers and scatters along one axis, by positions held in an integer array.
 *
 * Positions have been checked; negative ones count from the end. A scatter visits the positions in
 * row-major order, one after another, so equal positions add up in a fixed order. Deciding what an
 * out-of-range position means is the caller's. */
#include "backend/cpu/split.h"
#include "backend/cpu/strip.h"

enum { LINE = 64 }; /* bytes of a line of the cache */

static inline int64_t from_end(int64_t position, int64_t extent) { return position < 0 ? position + extent : position; }

void cot__bad_position(const cot__view *index, int64_t extent, bool wrap, int64_t *status) {
    int64_t     n = cot__count(index->ndim, index->shape), buf[COT__BLOCK], lowest = wrap ? -extent : 0;
    cot__cursor c;
    cot__cursor_open(&c, index, COT_I64);
    status[0] = 0;
    for (int64_t done = 0; done < n; done += COT__BLOCK) {
        int            len = n - done < COT__BLOCK ? (int)(n - done) : COT__BLOCK;
        const int64_t *p   = cot__cursor_load(&c, len, buf);
        for (int i = 0; i < len; i++)
            if (p[i] < lowest || p[i] >= extent) {
                status[0] = 1;
                status[1] = done + i;
                return;
            }
    }
}

/* ---- elements at computed offsets ------------------------------------------------------------ */

typedef uint64_t __attribute__((may_alias)) word8;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint8_t __attribute__((may_alias))  word1;

#define GATHER(W) for (int i = 0; i < n; i++) ((W *)dst)[i * ds] = ((const W *)src)[at[i]]

/* dst[i * ds] = src[at[i]], equal dtypes of the given size. */
static void gather_words(int size, void *dst, int64_t ds, const void *src, const int64_t *at, int n) {
    switch (size) {
    case 8: GATHER(word8); break;
    case 4: GATHER(word4); break;
    case 2: GATHER(word2); break;
    default: GATHER(word1); break;
    }
}

static void gather(const cot__view *z, int64_t z_offset, int64_t zs, const cot__view *x, const int64_t *at, int n) {
    if (z->dtype == x->dtype) {
        gather_words(cot__dtype_size(z->dtype), cot__at(z, z_offset), zs, x->data, at, n);
        return;
    }
    cot__strip_fn *strip = cot__strip(z->dtype, x->dtype);
    for (int i = 0; i < n; i++) strip(cot__at(z, z_offset + i * zs), 1, cot__at(x, at[i]), 1, 1);
}

/* x[at[i]] += u[i * us]. */
static void scatter(const cot__view *x, const int64_t *at, const cot__view *u, int64_t u_offset, int64_t us, int n) {
    const void *from = cot__at(u, u_offset);
    if (x->dtype == COT_F64 && u->dtype == COT_F64) {
        for (int i = 0; i < n; i++) ((double *)x->data)[at[i]] += ((const double *)from)[i * us];
    } else if (x->dtype == COT_F32 && u->dtype == COT_F32) {
        for (int i = 0; i < n; i++) ((float *)x->data)[at[i]] += ((const float *)from)[i * us];
    } else {
        for (int i = 0; i < n; i++)
            cot__strip_add(cot__at(x, at[i]), x->dtype, 1, cot__at(u, u_offset + i * us), u->dtype, 1, 1);
    }
}

/* ---- whole slabs: take and its transpose ----------------------------------------------------- */

/* x is (outer, axis, inner) and y is (outer, index, inner), each group of axes a walk of its
 * own. */
typedef struct slabs {
    cot__view x, y, index;
    cot__walk outer;  /* x, y */
    cot__walk places; /* index, y */
    cot__walk inner;  /* x, y */
    int64_t   run, run_stride[2]; /* the innermost loop, taken out of `inner` */
    int64_t   extent, axis_stride;
    bool      add;    /* y into x rather than x into y */
} slabs;

static bool plan(slabs *p, const cot__view *x, int axis, const cot__view *index, const cot__view *y, bool add) {
    if (cot__count(y->ndim, y->shape) == 0) return false;
    p->x           = *x;
    p->y           = *y;
    p->index       = *index;
    p->add         = add;
    p->extent      = x->shape[axis];
    p->axis_stride = x->stride[axis];
    cot__walk_start(&p->outer, 2);
    cot__walk_start(&p->places, 2);
    cot__walk_start(&p->inner, 2);
    for (int i = 0; i < axis; i++) cot__walk_axis(&p->outer, x->shape[i], x->stride[i], y->stride[i], 0);
    for (int i = 0; i < index->ndim; i++)
        cot__walk_axis(&p->places, index->shape[i], index->stride[i], y->stride[axis + i], 0);
    for (int i = axis + 1; i < x->ndim; i++)
        cot__walk_axis(&p->inner, x->shape[i], x->stride[i], y->stride[i - 1 + index->ndim], 0);
    p->run = cot__walk_pop(&p->inner, p->run_stride);
    return true;
}

static void move_slab(slabs *p, int64_t xo, int64_t yo) {
    do {
        void *x = cot__at(&p->x, xo + p->inner.offset[0]), *y = cot__at(&p->y, yo + p->inner.offset[1]);
        if (p->add) cot__strip_add(x, p->x.dtype, p->run_stride[0], y, p->y.dtype, p->run_stride[1], p->run);
        else cot__strip(p->y.dtype, p->x.dtype)(y, p->run_stride[1], x, p->run_stride[0], p->run);
    } while (cot__walk_next(&p->inner));
}

/* Slabs of one run of elements: a block of positions is turned into offsets, and of slabs of one
 * element gathered at once. */
static void move_runs(slabs *p, const int64_t place_stride[2], int64_t n) {
    int64_t        at[COT__BLOCK];
    cot__strip_fn *decode = cot__strip(COT_I64, p->index.dtype);
    for (int64_t j = 0; j < n; j += COT__BLOCK) {
        int     len = n - j < COT__BLOCK ? (int)(n - j) : COT__BLOCK;
        int64_t yo  = p->outer.offset[1] + p->places.offset[1] + j * place_stride[1];
        decode(at, 1, cot__at(&p->index, p->places.offset[0] + j * place_stride[0]), place_stride[0], len);
        for (int i = 0; i < len; i++) at[i] = p->outer.offset[0] + from_end(at[i], p->extent) * p->axis_stride;
        if (p->run > 1)
            for (int i = 0; i < len; i++) move_slab(p, at[i], yo + i * place_stride[1]);
        else if (p->add) scatter(&p->x, at, &p->y, yo, place_stride[1], len);
        else gather(&p->y, yo, place_stride[1], &p->x, at, len);
    }
}

static void move(slabs *p) {
    bool    runs = p->inner.ndim == 0;
    int64_t stride[2], n = runs ? cot__walk_pop(&p->places, stride) : 0;
    do {
        do {
            if (runs) {
                move_runs(p, stride, n);
                continue;
            }
            int64_t at = from_end(cot__load_i64(cot__at(&p->index, p->places.offset[0]), p->index.dtype), p->extent);
            move_slab(p, p->outer.offset[0] + at * p->axis_stride, p->outer.offset[1] + p->places.offset[1]);
        } while (cot__walk_next(&p->places));
    } while (cot__walk_next(&p->outer));
}

/* A cut along an axis of y: one of x's that stays, or, for a gather, one of the positions.
 * Positions of a scatter are not shared out: two of them may be equal. */
typedef struct moves { const cot__view *x, *index, *y; int axis, cut; bool add; int64_t parts; } moves;

static void move_here(const cot__view *x, int axis, const cot__view *index, const cot__view *y, bool add) {
    slabs p;
    if (plan(&p, x, axis, index, y, add)) move(&p);
}

static void move_part(void *ctx, int64_t part) {
    const moves *m = ctx;
    int64_t      shape[3][COT_MAX_NDIM], extent = m->y->shape[m->cut];
    int64_t      start = cot__part_start(extent, m->parts, part), stop = cot__part_start(extent, m->parts, part + 1);
    int          place = m->cut - m->axis, behind = m->cut - m->index->ndim + 1;
    cot__view    x = *m->x, index = *m->index, y = cot__split_view(m->y, m->cut, start, stop, shape[0]);
    if (place < 0) x = cot__split_view(&x, m->cut, start, stop, shape[1]);
    else if (place < index.ndim) index = cot__split_view(&index, place, start, stop, shape[2]);
    else x = cot__split_view(&x, behind, start, stop, shape[1]);
    move_here(&x, m->axis, &index, &y, m->add);
}

/* Most parts: runs that lie side by side share lines of the cache, and take a while to begin. */
static int64_t most_parts(const cot__view *y, int cut) {
    int64_t lines = y->stride[cut] == 1 ? y->shape[cut] * cot__dtype_size(y->dtype) / LINE : COT__MOST_PARTS;
    return lines < 1 ? 1 : lines < COT__MOST_PARTS ? lines : COT__MOST_PARTS;
}

static void move_shared(const cot__view *x, int axis, const cot__view *index, const cot__view *y, bool add) {
    int64_t  size = cot__count(y->ndim, y->shape);
    uint32_t places = ((UINT32_C(1) << index->ndim) - 1) << axis;
    int      cut    = size < cot__grain ? -1 : cot__split_axis(y->ndim, y->shape, add ? ~places : UINT32_MAX);
    moves    m      = {x, index, y, axis, cut, add, 1};
    if (m.cut >= 0) m.parts = cot__parts(y->shape[m.cut], 2 * (size / y->shape[m.cut]), most_parts(y, m.cut));
    if (m.parts > 1) cot__parallel(m.parts, move_part, &m);
    else move_here(x, axis, index, y, add);
}

void cot__take(const cot__view *x, int axis, const cot__view *index, const cot__view *z) {
    move_shared(x, axis, index, z, false);
}
void cot__scatter_add(const cot__view *x, int axis, const cot__view *index, const cot__view *u) {
    move_shared(x, axis, index, u, true);
}

/* ---- one position per element: take_along and its transpose ---------------------------------- */

static void along_here(const cot__view *x, int axis, const cot__view *index, const cot__view *y, bool add) {
    if (cot__count(y->ndim, y->shape) == 0) return;
    cot__walk w;
    int64_t   stride[COT__WALK_MAX], at[COT__BLOCK];
    cot__walk_start(&w, 3);
    for (int i = 0; i < x->ndim; i++)
        cot__walk_axis(&w, index->shape[i], i == axis ? 0 : x->stride[i], y->stride[i], index->stride[i]);
    int64_t        n      = cot__walk_pop(&w, stride);
    cot__strip_fn *decode = cot__strip(COT_I64, index->dtype);
    do {
        for (int64_t j = 0; j < n; j += COT__BLOCK) {
            int     len = n - j < COT__BLOCK ? (int)(n - j) : COT__BLOCK;
            int64_t xo = w.offset[0] + j * stride[0], yo = w.offset[1] + j * stride[1];
            decode(at, 1, cot__at(index, w.offset[2] + j * stride[2]), stride[2], len);
            for (int i = 0; i < len; i++)
                at[i] = xo + i * stride[0] + from_end(at[i], x->shape[axis]) * x->stride[axis];
            if (add) scatter(x, at, y, yo, stride[1], len);
            else gather(y, yo, stride[1], x, at, len);
        }
    } while (cot__walk_next(&w));
}

static void along_part(void *ctx, int64_t part) {
    const moves *m = ctx;
    int64_t      shape[3][COT_MAX_NDIM], extent = m->y->shape[m->cut];
    int64_t      start = cot__part_start(extent, m->parts, part), stop = cot__part_start(extent, m->parts, part + 1);
    cot__view    x     = cot__split_view(m->x, m->cut, start, stop, shape[0]),
              y        = cot__split_view(m->y, m->cut, start, stop, shape[1]);
    cot__view    index = cot__split_view(m->index, m->cut, start, stop, shape[2]);
    along_here(&x, m->axis, &index, &y, m->add);
}

static void along(const cot__view *x, int axis, const cot__view *index, const cot__view *y, bool add) {
    int64_t size = cot__count(y->ndim, y->shape);
    moves m = {x,   index, y, axis, size < cot__grain ? -1 : cot__split_axis(y->ndim, y->shape, ~(UINT32_C(1) << axis)),
               add, 1};
    if (m.cut >= 0) m.parts = cot__parts(y->shape[m.cut], 2 * (size / y->shape[m.cut]), COT__MOST_PARTS);
    if (m.parts > 1) cot__parallel(m.parts, along_part, &m);
    else along_here(x, axis, index, y, add);
}

void cot__take_along(const cot__view *x, int axis, const cot__view *index, const cot__view *z) {
    along(x, axis, index, z, false);
}

void cot__scatter_add_along(const cot__view *x, int axis, const cot__view *index, const cot__view *u) {
    along(x, axis, index, u, true);
}
