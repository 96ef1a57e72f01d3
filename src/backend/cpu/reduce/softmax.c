/* softmax.c: softmax and log-softmax along one axis.
 *
 * Shifted by the maximum, so no exponential overflows and at least one is 1: exp(x - m) / s, or (x
 * - m) - log s. The maxima and sums come from the reductions, WIDTH slices at a time, so no memory
 * is needed beyond the stack. Slices that hold +inf or NaN come out NaN where the mathematics has
 * no answer, as in NumPy written out by hand. */
#include "backend/cpu/leaves.h"
#include "backend/cpu/reduce/reduce.h"
#include "backend/cpu/split.h"
#include "backend/cpu/strip.h"
#include "backend/cpu/reduce/vexp.h"
#include "base/math/elementary.h"

#include <math.h>

enum { WIDTH = 32, LONGEST = 8192 /* values of a row that stays near */ };

typedef struct slices {
    cot_dtype   d;             /* F64 or F32 */
    bool        logarithm, alone;
    cot__view   x, z;
    int64_t     n;             /* values along the axis */
    int64_t     x_axis, z_axis; /* strides along it */
    int64_t     x_step, z_step; /* strides from slice to slice */
    const void *m, *s;
} slices;

/* i-th value with the i-th m and s (q = 1) or all with the same (q = 0). */
#define MAP(NAME, T, EXP, LOG)                                                                                         \
    static void NAME(bool logarithm, T *restrict v, const T *x, const T *m, const T *s, int q, int n) {                \
        if (!logarithm) {                                                                                              \
            for (int i = 0; i < n; i++) v[i] = x[i] - m[i * q];                                                        \
            EXP(n, v, v);                                                                                              \
            for (int i = 0; i < n; i++) v[i] /= s[i * q];                                                              \
        } else if (q)                                                                                                  \
            for (int i = 0; i < n; i++) v[i] = (x[i] - m[i]) - LOG(s[i]);                                              \
        else {                                                                                                         \
            T log_s = LOG(*s);                                                                                         \
            for (int i = 0; i < n; i++) v[i] = (x[i] - *m) - log_s;                                                    \
        }                                                                                                              \
    }
MAP(map_f64, double, cot__exp_f64, cot__log)
MAP(map_f32, float, cot__exp_f32, cot__logf)

/* n values from x (stride xs) to z (stride zs); the first belongs to slice `first`. */
static void map_strip(const slices *c, int64_t x, int64_t xs, int64_t z, int64_t zs, int first, int q, int n) {
    uint64_t in[COT__BLOCK], out[COT__BLOCK];
    cot__strip(c->d, c->x.dtype)(in, 1, cot__at(&c->x, x), xs, n);
    if (c->d == COT_F64)
        map_f64(c->logarithm, (double *)(void *)out, (const double *)(const void *)in, (const double *)c->m + first,
                (const double *)c->s + first, q, n);
    else
        map_f32(c->logarithm, (float *)(void *)out, (const float *)(const void *)in, (const float *)c->m + first,
                (const float *)c->s + first, q, n);
    cot__strip(c->z.dtype, c->d)(cot__at(&c->z, z), zs, out, 1, n);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Do slices lie as rows of the computing type, element beside element? */
static bool are_rows(const slices *c) {
    return c->alone && c->x.dtype == c->d && c->z.dtype == c->d && c->x_axis == 1 && c->z_axis == 1;
}

/* A row, each exponential of which is computed once; z may be x. False: it is too long, or m is
 * infinite or NaN, and nothing is written. */
#define ROW(NAME, T, F, DTYPE, LOG)                                                                                    \
    static bool NAME(bool logarithm, int64_t n, const T *x, T *z) {                                                    \
        static const int64_t one[1] = {1};                                                                             \
        T                    m, s, power[COT__BLOCK], *to = logarithm ? power : z;                                     \
        if (n > (logarithm ? COT__BLOCK : LONGEST) || !isfinite(m = cot__most_##F(n, x))) return false;                \
        cot__exp_less_##F(n, x, m, to);                                                                                \
        if (n <= COT__BLOCK) cot__leaves_of(DTYPE)->sum(to, (int)n, &s);                                               \
        else cot__reduce(COT__SUM, &(cot__view){to, DTYPE, 1, &n, one}, 1, &(cot__view){&s, DTYPE, 1, one, one});      \
        if (logarithm) cot__less_##F(n, x, m, LOG(s), z);                                                              \
        else cot__divide_##F(n, z, s);                                                                                 \
        return true;                                                                                                   \
    }
ROW(row_f64, double, f64, COT_F64, cot__log)
ROW(row_f32, float, f32, COT_F32, cot__logf)

/* How many of w rows, the first of them, are done. */
static int soften_rows(const slices *c, int64_t x, int64_t z, int w) {
    int  i = 0;
    bool done = are_rows(c);
    for (; i < w && done; i += done) {
        const void *from = cot__at(&c->x, x + i * c->x_step);
        void       *to = cot__at(&c->z, z + i * c->z_step);
        done = c->d == COT_F64 ? row_f64(c->logarithm, c->n, from, to) : row_f32(c->logarithm, c->n, from, to);
    }
    return i;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* w neighbouring slices whose m and s are known. */
static void map_slices(const slices *c, int64_t x, int64_t z, int w) {
    if (!c->alone) {
        for (int64_t r = 0; r < c->n; r++)
            map_strip(c, x + r * c->x_axis, c->x_step, z + r * c->z_axis, c->z_step, 0, 1, w);
        return;
    }
    for (int i = 0; i < w; i++)
        for (int64_t r = 0; r < c->n; r += COT__BLOCK) {
            int n = c->n - r < COT__BLOCK ? (int)(c->n - r) : COT__BLOCK;
            map_strip(c, x + i * c->x_step + r * c->x_axis, c->x_axis, z + i * c->z_step + r * c->z_axis, c->z_axis, i,
                      0, n);
        }
}

static void softmax_chunk(slices *c, int64_t x, int64_t z, int w) {
    int done = soften_rows(c, x, z, w);
    if (done == w) return;
    x += done * c->x_step, z += done * c->z_step, w -= done;
    uint64_t        m[WIDTH], s[WIDTH];
    const int64_t   shape[2] = {w, c->n}, stride[2] = {c->x_step, c->x_axis}, one[2] = {1, 0}, kept[2] = {w, 1};
    const cot__view v = {cot__at(&c->x, x), c->x.dtype, 2, shape, stride};
    const cot__view vm = {m, c->d, 2, kept, one}, vs = {s, c->d, 2, kept, one};
    cot__reduce_exp(&v, 2, c->d, &vm, &vs);
    c->m = m;
    c->s = s;
    map_slices(c, x, z, w);
}

static void softmax_here(const cot__view *x, int axis, bool logarithm, const cot__view *z) {
    cot__walk w;
    int64_t   step[2];
    cot__walk_start(&w, 2);
    for (int i = 0; i < x->ndim; i++)
        if (i != axis) cot__walk_axis(&w, x->shape[i], x->stride[i], z->stride[i], 0);
    cot__walk_sort(&w, 0);
    cot__walk_merge(&w);
    int64_t   extent = cot__walk_pop(&w, step);
    cot_dtype d      = cot__dtype_compute(cot__dtype_is_float(x->dtype) ? x->dtype : z->dtype);
    slices    c      = {d == COT_I64 ? COT_F64 : d, logarithm, false, *x, *z, x->shape[axis],
                        x->stride[axis], z->stride[axis], step[0], step[1], NULL, NULL};
    c.alone = extent == 1 || (c.n >= WIDTH && llabs(c.x_axis) < llabs(c.x_step));
    do {
        for (int64_t j = 0; j < extent; j += WIDTH) {
            int n = extent - j < WIDTH ? (int)(extent - j) : WIDTH;
            softmax_chunk(&c, w.offset[0] + j * step[0], w.offset[1] + j * step[1], n);
        }
    } while (cot__walk_next(&w));
}

typedef struct softmaxes { const cot__view *x, *z; int axis, cut; bool logarithm; int64_t parts; } softmaxes;

static void softmax_part(void *ctx, int64_t part) {
    const softmaxes *c = ctx;
    int64_t          shape[COT_MAX_NDIM], extent = c->x->shape[c->cut];
    int64_t   start = cot__part_start(extent, c->parts, part), stop = cot__part_start(extent, c->parts, part + 1);
    cot__view x = cot__split_view(c->x, c->cut, start, stop, shape),
              z = cot__split_view(c->z, c->cut, start, stop, shape);
    softmax_here(&x, c->axis, c->logarithm, &z);
}

void cot__softmax(const cot__view *x, int axis, bool logarithm, const cot__view *z) {
    int64_t size = cot__count(x->ndim, x->shape);
    if (size == 0) return;
    softmaxes c = {x, z, axis, cot__split_axis(x->ndim, x->shape, ~(UINT32_C(1) << axis)), logarithm, 1};
    if (c.cut >= 0) c.parts = cot__parts(x->shape[c.cut], 16 * (size / x->shape[c.cut]), COT__MOST_PARTS);
    if (c.parts > 1) cot__parallel(c.parts, softmax_part, &c);
    else softmax_here(x, axis, logarithm, z);
}
