/* pool.c: pooling over planes; each thread takes whole planes. See backend/backend.h for what is
 * computed. */
#include "backend/cpu/conv/pool.h"
#include "base/cpu.h"
#include "base/parallel.h"
#include "base/poison.h"

#include <string.h>

/* Taps [first, last) of a window that meet elements. start: the element under its first tap,
 * negative inside the padding. */
typedef struct span { int64_t start, first, last; } span;

static inline span span_of(const cot__pool *g, int a, int64_t q) {
    int64_t start = q * g->stride[a] - g->before[a], left = g->x[a] - start;
    return (span){start, start < 0 ? -start : 0, left < g->window[a] ? left : g->window[a]};
}

/* Windows [first, last) of a row whose tap k meets an element. */
static inline span places_of(const cot__pool *g, int64_t k) {
    int64_t at = k - g->before[2], s = g->stride[2];
    int64_t first = at < 0 ? (-at + s - 1) / s : 0, last = g->x[2] > at ? (g->x[2] - at + s - 1) / s : 0;
    if (last > g->z[2]) last = g->z[2];
    return (span){at, first < last ? first : last, last};
}

/* Taps [first, last) of a row that meet an element in any of its windows. The taps of a wide window
 * mostly meet padding. */
static inline span taps_of(const cot__pool *g) {
    int64_t first = g->before[2] - (g->z[2] - 1) * g->stride[2], last = g->x[2] + g->before[2];
    return (span){0, first > 0 ? first : 0, last < g->window[2] ? last : g->window[2]};
}

/* Elements along one axis that a mean counts: the padding too, but not what lies beyond it. */
static inline int64_t counted(const cot__pool *g, bool exclude, int a, int64_t q) {
    span    s = span_of(g, a, q);
    int64_t padded = g->x[a] + g->before[a] - s.start;
    return exclude ? s.last - s.first : padded < g->window[a] ? padded : g->window[a];
}

static inline int64_t element_of(const cot__pool *g, int64_t d, int64_t h, int64_t w, int32_t tap) {
    int64_t kw = tap % g->window[2], kh = tap / g->window[2] % g->window[1], kd = tap / g->window[2] / g->window[1];
    return ((d * g->stride[0] - g->before[0] + kd) * g->x[1] + h * g->stride[1] - g->before[1] + kh) * g->x[2] +
           w * g->stride[2] - g->before[2] + kw;
}

#define T float
#define LOWEST (-INFINITY)
#define N(name) name##_f32
#define TARGET COT__BASELINE
#define SUMS
#include "backend/cpu/conv/pool_template.h"

#define T double
#define LOWEST (-(double)INFINITY)
#define N(name) name##_f64
#define TARGET
#define SUMS
#include "backend/cpu/conv/pool_template.h"

#define T int64_t
#define LOWEST INT64_MIN
#define N(name) name##_i64
#define TARGET
#include "backend/cpu/conv/pool_template.h"

#define T int32_t
#define LOWEST INT32_MIN
#define N(name) name##_i32
#define TARGET
#include "backend/cpu/conv/pool_template.h"

#define T uint8_t /* bools too */
#define LOWEST 0
#define N(name) name##_u8
#define TARGET
#include "backend/cpu/conv/pool_template.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "backend/cpu/conv/pool_avx2.h"

#define T float
#define MAX_ROW_2X2 max_row_2x2_avx2
#define PUT_ROW_2X2 put_row_2x2_avx2
#define LOWEST (-INFINITY)
#define N(name) name##_f32_avx2
#define TARGET __attribute__((target("avx2")))
#define SUMS
#include "backend/cpu/conv/pool_template.h"

#define HAS_AVX2 (cot__cpu_isa() >= COT__ISA_AVX2)
#else
#define HAS_AVX2 0
#define max_plane_f32_avx2 max_plane_f32
#define put_plane_f32_avx2 put_plane_f32
#define avg_plane_f32_avx2 avg_plane_f32
#define avg_unplane_f32_avx2 avg_unplane_f32
#endif

typedef struct work {
    const cot__pool *g;
    cot_dtype        dtype;
    enum { MAX, TAKE, PUT, AVERAGE, SPREAD } what;
    bool             exclude, avx2;
    int              size;
    const char      *x;
    const char      *z;
    const int32_t   *index;
    char            *to;    /* the result, and */
    int32_t         *chose; /* the positions, if they are a result too */
    int64_t          x_plane, z_plane, parts;
} work;

static void take_plane(const work *w, const char *x, const int32_t *index, char *z) {
    const cot__pool *g = w->g;
    for (int64_t d = 0; d < g->z[0]; d++)
        for (int64_t h = 0; h < g->z[1]; h++)
            for (int64_t q = 0; q < g->z[2]; q++, z += w->size, index++) {
                int64_t at = element_of(g, d, h, q, *index);
                if ((uint64_t)at < (uint64_t)w->x_plane) memcpy(z, x + at * w->size, (size_t)w->size);
                else memset(z, 0, (size_t)w->size);
            }
}

/* One plane: a case for each kernel and type, as their arguments differ. */
static void run_plane(const work *w, int64_t p) {
    const cot__pool *g = w->g;
    const char      *x = w->x + p * w->x_plane * w->size, *z = w->z + p * w->z_plane * w->size;
    char            *to = w->to + p * (w->what == PUT || w->what == SPREAD ? w->x_plane : w->z_plane) * w->size;
    bool             f64 = w->dtype == COT_F64;
    switch (w->what) {
    case MAX: {
        int32_t *chose = w->chose + p * w->z_plane;
        if (w->dtype == COT_I64) max_plane_i64(g, (const void *)x, (void *)to, chose);
        else if (w->dtype == COT_I32) max_plane_i32(g, (const void *)x, (void *)to, chose);
        else if (w->dtype == COT_U8 || w->dtype == COT_BOOL) max_plane_u8(g, (const void *)x, (void *)to, chose);
        else if (f64) max_plane_f64(g, (const void *)x, (void *)to, chose);
        else if (w->avx2) max_plane_f32_avx2(g, (const void *)x, (void *)to, chose);
        else max_plane_f32(g, (const void *)x, (void *)to, chose);
        break;
    }
    case TAKE: take_plane(w, x, w->index + p * w->z_plane, to); break;
    case PUT: {
        const int32_t *index = w->index + p * w->z_plane;
        if (f64) put_plane_f64(g, (const void *)z, index, (void *)to);
        else if (w->avx2) put_plane_f32_avx2(g, (const void *)z, index, (void *)to);
        else put_plane_f32(g, (const void *)z, index, (void *)to);
        break;
    }
    case AVERAGE:
        if (f64) avg_plane_f64(g, w->exclude, (const void *)x, (void *)to);
        else if (w->avx2) avg_plane_f32_avx2(g, w->exclude, (const void *)x, (void *)to);
        else avg_plane_f32(g, w->exclude, (const void *)x, (void *)to);
        break;
    case SPREAD:
        if (f64) avg_unplane_f64(g, w->exclude, (const void *)z, (void *)to);
        else if (w->avx2) avg_unplane_f32_avx2(g, w->exclude, (const void *)z, (void *)to);
        else avg_unplane_f32(g, w->exclude, (const void *)z, (void *)to);
        break;
    }
}

static void run_part(void *ctx, int64_t part) {
    const work *w = ctx;
    for (int64_t p   = cot__part_start(w->g->planes, w->parts, part),
                 end = cot__part_start(w->g->planes, w->parts, part + 1);
         p < end; p++)
        run_plane(w, p);
}

static void run(work *w, const cot__pool *g) {
    w->g = g;
    w->avx2 = HAS_AVX2;
    w->x_plane = g->x[0] * g->x[1] * g->x[2];
    w->z_plane = g->z[0] * g->z[1] * g->z[2];
    int64_t of_window = w->what == TAKE ? 1 : g->window[0] * g->window[1] * g->window[2];
    /* with no planes, one may be of any size */
    w->parts = cot__parts(g->planes, cot__size_add(w->x_plane, cot__size_mul(w->z_plane, of_window)), g->planes);
    if (g->planes > 0) cot__parallel(w->parts, run_part, w);
}

void cot__max_pool(const cot__pool *g, cot_dtype dtype, const void *x, void *z, int32_t *index) {
    run(&(work){.what = MAX, .dtype = dtype, .size = cot__dtype_size(dtype), .x = x, .z = z, .to = z, .chose = index},
        g);
}

void cot__pool_take(const cot__pool *g, int size, const void *x, const int32_t *index, void *z) {
    run(&(work){.what = TAKE, .size = size, .x = x, .z = z, .to = z, .index = index}, g);
}

void cot__pool_put(const cot__pool *g, cot_dtype dtype, const void *z, const int32_t *index, void *x) {
    run(&(work){.what = PUT, .dtype = dtype, .size = cot__dtype_size(dtype), .x = x, .z = z, .to = x, .index = index},
        g);
}

void cot__avg_pool(const cot__pool *g, cot_dtype dtype, bool exclude, const void *x, void *z) {
    run(&(work){.what    = AVERAGE,
                .dtype   = dtype,
                .size    = cot__dtype_size(dtype),
                .exclude = exclude,
                .x       = x,
                .z       = z,
                .to      = z},
        g);
}

void cot__avg_unpool(const cot__pool *g, cot_dtype dtype, bool exclude, const void *z, void *x) {
    run(&(work){.what    = SPREAD,
                .dtype   = dtype,
                .size    = cot__dtype_size(dtype),
                .exclude = exclude,
                .x       = x,
                .z       = z,
                .to      = x},
        g);
}
