/* reduce.c: reductions over any set of axes.
 *
 * A result depends on the sequence of values in its slice (row-major over the reduced axes) and on
 * nothing else: not on strides, not on its neighbours, not on the path chosen here. Sums round
 * O(log n) deep. Checking that a slice is not empty where that matters (max, min and their
 * positions) is left to the caller. */
#include "backend/cpu/gemm/recipe.h"
#include "backend/cpu/leaves.h"
#include "backend/cpu/reduce/reduce.h"
#include "backend/cpu/split.h"
#include "backend/cpu/strip.h"
#include "backend/cpu/reduce/vexp.h"
#include "base/math/elementary.h"

#include <string.h>

typedef void add_fn(void *a, const void *b, int n);
typedef enum fold_op { OP_ADD, OP_MAX, OP_MIN, OP_ANY, OP_ALL } fold_op;
typedef enum fold_map { MAP_NONE, MAP_TRUTH, MAP_ABS, MAP_SQUARE, MAP_EXP } fold_map;

enum {
    LEAF   = COT__BLOCK, /* values per leaf of the tree */
    /* chains per leaf: enough to hide the latency of an addition in 16-byte registers */
    LANES  = 16,
    LEVELS = 48,         /* LEAF * 2^LEVELS exceeds any array */
    /* levels kept when slices are folded side by side; longer slices are folded alone, to spare the
     * stack */
    SHALLOW = 17,
    ROW    = 512,        /* bytes of a row of slices folded side by side */
    WIDEST = ROW / sizeof(float),
    /* slices side by side that are worth cutting: more are shared out as they are */
    CHUNKED_WIDTH = 16,
    LINE   = 64,         /* bytes of a line of the cache */
    READY  = COT__RECIPE_SUMS, /* leaves of sums that are asked for at once */
    /* most chunks of a long slice; each but the last is a power of two of leaves, a subtree */
    CHUNKS = 64,
};

typedef struct fold_plan {
    cot__view x;
    cot__walk slice; /* the reduced axes, in order */
    int64_t   n;     /* values in a slice */
    int64_t   from;  /* the first of them to fold; n is where to stop */
    int64_t   step;  /* from one slice to its neighbour */
    bool      alone; /* slices one at a time: they run closer in memory than their neighbours lie */
    /* x has memory but no elements, which this recipe makes. NULL: x has elements */
    const cot__recipe *made;
    int64_t   first; /* the number of x's first element among them */
} fold_plan;

/* ---- values that are not in memory ----------------------------------------------------------- */

/* n values a step apart. */
static void make_steps(const fold_plan *f, int64_t first, int64_t step, int n, void *buf) {
    int bytes = cot__dtype_size(f->x.dtype);
    if (step == 1) cot__recipe_load(f->made, first, n, buf);
    else
        for (int i = 0; i < n; i++) cot__recipe_load(f->made, first + i * step, 1, (char *)buf + i * bytes);
}

/* Values done … done + n - 1 of the slice at `offset`. */
static const void *make(const fold_plan *f, int64_t offset, int64_t done, int n, void *buf) {
    int64_t   first = f->first + offset;
    cot__walk at = f->slice;
    if (at.ndim <= 1)
        make_steps(f, first + (at.ndim ? done * at.stride[0][0] : 0), at.ndim ? at.stride[0][0] : 1, n, buf);
    else {
        cot__walk_seek(&at, done);
        for (int i = 0; i < n; i++, cot__walk_next(&at))
            make_steps(f, first + at.offset[0], 1, 1, (char *)buf + i * cot__dtype_size(f->x.dtype));
    }
    return buf;
}

/* Sums of leaves from there on, as many as the recipe can give at once. */
static int make_sums(const fold_plan *f, int64_t offset, int64_t done, void *sums) {
    int64_t whole = (f->n - done) / LEAF;
    if (f->slice.ndim != 1 || f->slice.stride[0][0] != 1 || whole == 0) return 0;
    return cot__recipe_sums(f->made, f->first + offset + done, whole < READY ? (int)whole : READY, sums);
}

/* The values of w slices, side by side, in one row of them. */
static void make_row(const fold_plan *f, int64_t offset, int w, void *buf) {
    make_steps(f, f->first + offset, f->step, w, buf);
}
static bool make_added(const fold_plan *f, int64_t offset, int w, void *sums, bool add) {
    return f->step == 1 && cot__recipe_add(f->made, f->first + offset, w, sums, add);
}

/* ---- the folds ------------------------------------------------------------------------------- */

#define T double
#define N(name) name##_f64
#define DTYPE COT_F64
#define FLOATING 1
#define EXP cot__exp_less_f64
#define MOST cot__most_f64
#define LOG cot__log
#define MAX_SCALE 1021
#include "backend/cpu/reduce/reduce_template.h"

#define T float
#define N(name) name##_f32
#define DTYPE COT_F32
#define FLOATING 1
#define EXP cot__exp_less_f32
#define MOST cot__most_f32
#define LOG cot__logf
#define MAX_SCALE 125
#include "backend/cpu/reduce/reduce_template.h"

#define T int64_t
#define N(name) name##_i64
#define DTYPE COT_I64
#define FLOATING 0
#include "backend/cpu/reduce/reduce_template.h"

/* Splits x's axes: the reduced ones, in order, to f->slice; the kept ones, nearest innermost, to
 * `kept`, whose innermost becomes f->step and the loop of the caller: its extent is returned. */
static int64_t plan(fold_plan *f, cot__walk *kept, const cot__view *x, uint32_t axes, const int64_t *z0,
                    const int64_t *z1, int64_t stride[COT__WALK_MAX]) {
    f->x = *x;
    f->made = NULL;
    cot__walk_start(&f->slice, 1);
    cot__walk_start(kept, 3);
    for (int i = 0; i < x->ndim; i++) {
        if (axes >> i & 1) cot__walk_axis(&f->slice, x->shape[i], x->stride[i], 0, 0);
        else cot__walk_axis(kept, x->shape[i], x->stride[i], z0[i], z1[i]);
    }
    f->n = cot__walk_count(&f->slice);
    f->from = 0;
    if (kept->ndim > 1) {
        cot__walk_sort(kept, 0);
        cot__walk_merge(kept);
    }
    int64_t extent = cot__walk_pop(kept, stride);
    int64_t along  = f->slice.ndim > 0 ? llabs(f->slice.stride[0][f->slice.ndim - 1]) : 0;
    f->step        = stride[0];
    f->alone = extent == 1 || f->n > (int64_t)LEAF << (SHALLOW - 1) || (f->n >= 2 * LANES && along < llabs(stride[0]));
    return extent;
}

/* Reductions of nothing; max and min of nothing do not occur. */
static void reduce_empty(cot__reduction what, const cot__view *z) {
    double   value = what == COT__LOGSUMEXP ? -INFINITY : what == COT__ALL ? 1 : 0;
    int64_t  zero[COT_MAX_NDIM] = {0};
    cot__view v = {&value, COT_F64, z->ndim, z->shape, zero};
    cot__copy(z, &v);
}

static cot_dtype compute_type(cot__reduction what, const cot__view *x, const cot__view *z) {
    cot_dtype d = cot__dtype_compute(x->dtype);
    if (d == COT_I64 &&
        (what == COT__NORM2 || what == COT__LOGSUMEXP || (what == COT__SUM && cot__dtype_is_float(z->dtype))))
        d = cot__dtype_is_float(z->dtype) ? cot__dtype_compute(z->dtype) : COT_F64;
    return d;
}

static void reduce_here(cot__reduction what, const cot__view *x, const cot__recipe *made, uint32_t axes,
                        const cot__view *z) {
    fold_plan f;
    cot__walk kept;
    int64_t   stride[COT__WALK_MAX];
    uint64_t  out[WIDEST];
    int64_t   extent = plan(&f, &kept, x, axes, z->stride, z->stride, stride);
    f.made = made;
    f.first = made ? ((const char *)x->data - (const char *)made->data) / cot__dtype_size(x->dtype) : 0;
    if (extent == 0 || cot__walk_count(&kept) == 0) return;
    if (f.n == 0) {
        reduce_empty(what, z);
        return;
    }
    cot_dtype      d     = compute_type(what, x, z);
    int            width = ROW / cot__dtype_size(d);
    bool           where = what == COT__ARGMAX || what == COT__ARGMIN;
    cot__strip_fn *store = cot__strip(z->dtype, where ? COT_I64 : d);
    do {
        for (int64_t j = 0; j < extent; j += width) {
            int     w      = extent - j < width ? (int)(extent - j) : width;
            int64_t offset = kept.offset[0] + j * f.step;
            if (d == COT_F64) reduce_f64(what, &f, offset, w, out);
            else if (d == COT_F32) reduce_f32(what, &f, offset, w, out);
            else reduce_i64(what, &f, offset, w, out);
            store(cot__at(z, kept.offset[1] + j * stride[1]), stride[1], out, 1, w);
        }
    } while (cot__walk_next(&kept));
}

/* Slices are shared out along a kept axis; a long slice is cut into chunks by the template. */
typedef struct reductions {
    cot__reduction     what;
    const cot__view   *x, *z;
    const cot__recipe *made;
    uint32_t           axes;
    int                cut;
    int64_t            parts;
} reductions;

static void reduce_part(void *ctx, int64_t part) {
    const reductions *r = ctx;
    int64_t           shape[2][COT_MAX_NDIM], extent = r->x->shape[r->cut];
    int64_t   start = cot__part_start(extent, r->parts, part), stop = cot__part_start(extent, r->parts, part + 1);
    cot__view x = cot__split_view(r->x, r->cut, start, stop, shape[0]),
              z = cot__split_view(r->z, r->cut, start, stop, shape[1]);
    reduce_here(r->what, &x, r->made, r->axes, &z);
}

/* Most parts of the axis: slices that lie side by side share lines of the cache, and a vector. */
static int64_t most_parts(const cot__view *x, int axis) {
    int64_t lines = x->stride[axis] == 1 ? x->shape[axis] * cot__dtype_size(x->dtype) / LINE : COT__MOST_PARTS;
    return lines < 1 ? 1 : lines < COT__MOST_PARTS ? lines : COT__MOST_PARTS;
}

static void reduce(cot__reduction what, const cot__view *x, const cot__recipe *made, uint32_t axes,
                   const cot__view *z) {
    int64_t    size = cot__count(x->ndim, x->shape);
    reductions r = {what, x, z, made, axes, size < cot__grain ? -1 : cot__split_axis(x->ndim, x->shape, ~axes), 1};
    if (r.cut >= 0)
        r.parts = cot__parts(x->shape[r.cut], (what == COT__LOGSUMEXP ? 16 : 1) * (size / x->shape[r.cut]),
                             most_parts(x, r.cut));
    if (r.parts > 1) cot__parallel(r.parts, reduce_part, &r);
    else reduce_here(what, x, made, axes, z);
}

void cot__reduce(cot__reduction what, const cot__view *x, uint32_t axes, const cot__view *z) {
    reduce(what, x, NULL, axes, z);
}

void cot__reduce_join(cot__reduction what, cot_dtype d, const void *nodes, int64_t whole, int64_t parts,
                      const cot__view *z) {
    fold_op  op = what == COT__SUM ? OP_ADD : what == COT__MAX ? OP_MAX : OP_MIN;
    union { double f64; float f32; } out;
    if (d == COT_F64) out.f64 = join_f64(op, nodes, 1, whole, parts);
    else out.f32 = join_f32(op, nodes, 1, whole, parts);
    cot__strip(z->dtype, d)(z->data, 1, &out, 1, 1);
}

bool cot__reduce_made(cot__reduction what, const cot__view *x, const cot__recipe *made, uint32_t axes,
                      const cot__view *z) {
    fold_plan f;
    cot__walk kept;
    int64_t   stride[COT__WALK_MAX];
    plan(&f, &kept, x, axes, z->stride, z->stride, stride);
    bool runs = f.alone ? f.slice.ndim == 0 || (f.slice.ndim == 1 && f.slice.stride[0][0] == 1) : f.step == 1;
    if (!runs || what == COT__ARGMAX || what == COT__ARGMIN || what == COT__LOGSUMEXP) return false;
    if (!made) return true;
    cot__recipe ready;
    cot__recipe_ready(made, &ready);
    reduce(what, x, &ready, axes, z);
    return true;
}

void cot__reduce_exp(const cot__view *x, uint32_t axes, cot_dtype as, const cot__view *m, const cot__view *s) {
    fold_plan f;
    cot__walk kept;
    int64_t   stride[COT__WALK_MAX];
    uint64_t  most[WIDEST], sum[WIDEST];
    int64_t   extent = plan(&f, &kept, x, axes, m->stride, s->stride, stride);
    if (extent == 0 || cot__walk_count(&kept) == 0 || f.n == 0) return;
    int width = ROW / cot__dtype_size(as);
    do {
        for (int64_t j = 0; j < extent; j += width) {
            int     w      = extent - j < width ? (int)(extent - j) : width;
            int64_t offset = kept.offset[0] + j * f.step;
            if (as == COT_F64) fold_exp_f64(&f, offset, w, (double *)(void *)most, (double *)(void *)sum);
            else fold_exp_f32(&f, offset, w, (float *)(void *)most, (float *)(void *)sum);
            cot__strip(m->dtype, as)(cot__at(m, kept.offset[1] + j * stride[1]), stride[1], most, 1, w);
            cot__strip(s->dtype, as)(cot__at(s, kept.offset[2] + j * stride[2]), stride[2], sum, 1, w);
        }
    } while (cot__walk_next(&kept));
}
