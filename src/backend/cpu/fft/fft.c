/* fft.c: plans and runs Fourier transforms along one axis.
 *
 * Lengths made of 2, 3 and 5 are transformed directly, others through a convolution of such a
 * length, so that every length takes O(n log n). Tables are made for each call, from sines in f64
 * whatever the working type. A few rows go side by side through the passes; groups of rows are the
 * parts that threads take, each part with buffers of its own. */
#include "backend/cpu/fft/fft.h"
#include "backend/cpu/strip.h"
#include "base/cpu.h"
#include "base/math/elementary.h"
#include "base/parallel.h"

#include <string.h>

/* The widest variant allowed: 0 baseline, 1 AVX2. All give the same bits. */
#ifndef COT__FFT_ISA
#define COT__FFT_ISA 1
#endif

/* The steps of the next loop do not touch each other's elements, so the compiler need not prove
 * it. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define T float
#define WORKING COT_F32
#define TYPED(name) name##_f32
#include "backend/cpu/fft/fft_template.h"

#define T double
#define WORKING COT_F64
#define TYPED(name) name##_f64
#include "backend/cpu/fft/fft_template.h"

#define T float
#define TYPED(name) name##_f32
#define N(name) name##_f32_plain
#define TARGET COT__BASELINE
#include "backend/cpu/fft/fft_passes.h"

#define T double
#define TYPED(name) name##_f64
#define N(name) name##_f64_plain
#define TARGET COT__BASELINE
#include "backend/cpu/fft/fft_passes.h"

#if defined(__x86_64__)

#define T float
#define TYPED(name) name##_f32
#define N(name) name##_f32_avx2
#define TARGET __attribute__((target("avx2")))
#include "backend/cpu/fft/fft_passes.h"

#define T double
#define TYPED(name) name##_f64
#define N(name) name##_f64_avx2
#define TARGET __attribute__((target("avx2")))
#include "backend/cpu/fft/fft_passes.h"

#endif

/* ---- tables ---------------------------------------------------------------------------------- */

/* The angle is reduced to an eighth of a turn in integers, so that values that should be 0, 1 or
 * equal are exactly so. */
void cot__fft_root(int64_t j, int64_t n, double *re, double *im) {
    int64_t quarter = (4 * j + n / 2) / n, rest = 4 * j - quarter * n;
    double  angle = 1.57079632679489661923 * (double)rest / (double)n, c = cot__cos(angle), s = cot__sin(angle);
    switch (quarter & 3) { /* exp(-i(angle + quarter π/2)) */
    case 0: *re = c, *im = -s; break;
    case 1: *re = -s, *im = -c; break;
    case 2: *re = -c, *im = s; break;
    default: *re = s, *im = c; break;
    }
}

/* The factors of m; false: there are others. */
static bool factorise(cot__fft_plan *p, int64_t m) {
    static const int radix[] = {4, 2, 3, 5};
    int64_t          left = m;
    p->m = m;
    p->factors = 0;
    for (int k = 0; k < COUNTOF(radix) && left > 1; k++)
        for (; left % radix[k] == 0; left /= radix[k]) p->factor[p->factors++] = radix[k];
    return left == 1;
}

/* The tables have no places yet. */
static void make_plan(cot__fft_plan *p, const cot__fft_job *job) {
    bool halved = job->kind != COT__FFT_COMPLEX && job->n % 2 == 0;
    p->n = halved ? job->n / 2 : job->n;
    p->twists = halved ? job->n / 2 + 1 : 0;
    p->twist[0] = p->twist[1] = NULL;
    p->chirped = !factorise(p, p->n);
    if (p->chirped) factorise(p, cot__fft_fast_length(2 * p->n - 1));
}

static size_t table_bytes(const cot__fft_plan *p, size_t size) {
    return (size_t)(2 * p->m + (p->chirped ? 2 * p->n + 2 * p->m : 0) + 2 * p->twists) * size;
}

static void place_tables(cot__fft_plan *p, char *memory, size_t size) {
    struct { void **table; int64_t entries; } all[] = {
        {p->root, p->m}, {p->chirp, p->chirped ? p->n : 0}, {p->kernel, p->chirped ? p->m : 0}, {p->twist, p->twists}};
    for (int k = 0; k < COUNTOF(all); k++)
        for (int part = 0; part < 2 && all[k].entries; part++, memory += (size_t)all[k].entries * size)
            all[k].table[part] = memory;
}

/* ---- rows ------------------------------------------------------------------------------------ */

int64_t cot__fft_row(const cot__view *v, int axis, bool is_complex, int64_t r) {
    int64_t at = 0;
    for (int k = v->ndim - 1 - is_complex; k >= 0; k--) {
        if (k == axis) continue;
        at += r % v->shape[k] * v->stride[k];
        r /= v->shape[k];
    }
    return at;
}

static int64_t count_rows(const cot__view *v, int axis, bool is_complex) {
    int64_t rows = 1;
    for (int k = 0; k < v->ndim - is_complex; k++)
        if (k != axis) rows *= v->shape[k];
    return rows;
}

static void run_part(void *ctx, int64_t part) {
    const cot__fft_work *w = ctx;
    int64_t              last = cot__part_start(w->groups, w->parts, part + 1);
    for (int64_t g = cot__part_start(w->groups, w->parts, part); g < last; g++) {
        int64_t row = g * w->lanes, lanes = w->rows - row < w->lanes ? w->rows - row : w->lanes;
        w->group(w, row, lanes, w->buffers + (size_t)part * w->room);
    }
}

/* Enough rows side by side to fill vectors while the buffers stay in the cache; parts so few that
 * their buffers are about as large as the data. */
static void divide(cot__fft_work *w) {
    int64_t length = w->plan.m, lanes = 8192 / length, passes = w->plan.factors + 2;
    lanes = lanes < 4 ? 4 : lanes > 16 ? 16 : lanes;
    w->lanes = lanes < w->rows ? lanes : w->rows;
    w->groups = (w->rows + w->lanes - 1) / w->lanes;
    int64_t most = w->groups < 4 ? w->groups : w->groups / 2 < 64 ? (w->groups + 1) / 2 : 64;
    w->parts = cot__parts(w->groups, (w->plan.chirped ? 3 : 1) * length * w->lanes * passes * 2, most);
}

static const void *choose_loops(cot_dtype d) {
#if defined(__x86_64__)
    if (COT__FFT_ISA >= 1 && cot__cpu_isa() >= COT__ISA_AVX2)
        return d == COT_F64 ? (const void *)&loops_f64_avx2 : &loops_f32_avx2;
#endif
    return d == COT_F64 ? (const void *)&loops_f64_plain : &loops_f32_plain;
}

/* The plan of the work, which is done in tables, then the buffers of all parts. Returns the bytes
 * of the tables. It is made twice, so it is not cleared before. */
static size_t make_work(cot__fft_work *w, const cot__fft_job *job, const cot__view *x, int64_t rows) {
    size_t size = (size_t)cot__dtype_size(cot__dtype_compute(x->dtype));
    w->job = *job;
    w->x = *x;
    w->rows = rows;
    make_plan(&w->plan, job);
    divide(w);
    /* half a real row has one bin more than complex points */
    int64_t bins = w->plan.twists > w->plan.m ? w->plan.twists : w->plan.m;
    w->room = 4 * (size_t)(bins * w->lanes) * size;
    return (table_bytes(&w->plan, size) + 63) / 64 * 64;
}

int64_t cot__fft_workspace(const cot__fft_job *job, const cot__view *x) {
    enum { MOST_BITS = 44 }; /* of a length: no memory holds the tables of longer ones */
    int64_t       rows = count_rows(x, job->axis, job->kind != COT__FFT_REAL);
    cot__fft_work w;
    if (rows == 0) return 0;
    if (job->n >> MOST_BITS) return -1;
    size_t tables = make_work(&w, job, x, rows);
    return (int64_t)(tables + w.room * (size_t)w.parts);
}

void cot__fft(const cot__fft_job *job, const cot__view *x, const cot__view *z, void *scratch) {
    cot_dtype     d = cot__dtype_compute(z->dtype);
    int64_t       rows = count_rows(x, job->axis, job->kind != COT__FFT_REAL);
    cot__fft_work w;
    if (rows == 0) return;
    size_t tables = make_work(&w, job, x, rows);
    w.z = *z;
    w.group = d == COT_F64 ? group_f64 : group_f32;
    w.plan.loops = choose_loops(d);
    place_tables(&w.plan, scratch, (size_t)cot__dtype_size(d));
    w.buffers = (char *)scratch + tables;
    (d == COT_F64 ? fill_tables_f64 : fill_tables_f32)(&w.plan, w.buffers);
    cot__parallel(w.parts, run_part, &w);
}
