/* stage.c: does runs of elementwise work together: all runs on a block of elements while it is in
 * cache, on each of the pool's threads. Folds reduce each block to a node, and the nodes at the
 * end; operations on rows are done on those of a block. */
#include "backend/cpu/stage/stage.h"
#include "backend/cpu/elementwise/block_run.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/leaves.h"
#include "backend/cpu/reduce/reduce.h"
#include "backend/cpu/stage/direct.h"
#include "base/parallel.h"

#include <string.h>

/* Elements of a short block; bytes of an array in a block of operations on rows, which take a while
 * to begin. */
enum { SHORT = 1024, ROWS_BYTES = 16384 };

typedef struct part {
    const cot__stage *s;
    int64_t           first, block; /* the part's first block, and the one that is done */
    int64_t           home; /* the block whose piece it uses of memory that moves */
    int64_t           most; /* elements of a direct call */
    bool              directly;
    cot__direct_run   run[COT__STAGE_RUNS];
    /* without direct runs: those of the stage, or copies whose views move from block to block */
    const cot__block_run *general[COT__STAGE_RUNS];
} part;

/* ---- folds ----------------------------------------------------------------------------------- */

static cot_dtype node_dtype(const cot__stage_fold *f) { return cot__dtype_compute(f->x.dtype); }

/* The tree of two or four whole leaves. */
static void sum_block(cot_dtype d, const void *x, int leaves, void *node) {
    union { double f64[4]; float f32[4]; } sum;
    cot__leaves_of(d)->sums(x, leaves, &sum);
    if (d == COT_F64) *(double *)node = leaves == 2 ? sum.f64[0] + sum.f64[1]
                                                    : (sum.f64[0] + sum.f64[1]) + (sum.f64[2] + sum.f64[3]);
    else *(float *)node = leaves == 2 ? sum.f32[0] + sum.f32[1]
                                      : (sum.f32[0] + sum.f32[1]) + (sum.f32[2] + sum.f32[3]);
}

/* Each of some rows, which lie from `at` on, to one element of z. */
static void fold_rows(const cot__stage_fold *f, int64_t at, int64_t start, int64_t stop) {
    int64_t   shape[2] = {(stop - start) / f->row, f->row}, stride[2] = {f->row, 1};
    int64_t   each[2] = {shape[0], 1}, one[2] = {1, 0};
    cot__view x = {(char *)f->x.data + at * cot__dtype_size(f->x.dtype), f->x.dtype, 2, shape, stride};
    cot__view z = {(char *)f->z.data + start / f->row * cot__dtype_size(f->z.dtype), f->z.dtype, 2, each, one};
    cot__reduce((cot__reduction)f->what, &x, 2, &z);
}

/* The node of one block, elements start … stop - 1 as far as there are any. What moves lies `back`
 * elements before its place. */
static void fold_block(const cot__stage_fold *f, int64_t block, int64_t start, int64_t stop, int64_t back) {
    if (f->rows) {
        cot__stage_rows_do(f->rows, start / f->row, (stop - start) / f->row, back / f->row);
        return;
    }
    static const int64_t one[1] = {1};
    int64_t              size = cot__dtype_size(node_dtype(f)), end = cot__count(f->x.ndim, f->x.shape);
    int64_t              n = (stop < end ? stop : end) - start, at = f->moves ? start - back : start;
    if (f->row) fold_rows(f, at, start, stop);
    if (n <= 0 || f->row) return;
    cot__view x = {(char *)f->x.data + at * cot__dtype_size(f->x.dtype), f->x.dtype, 1, &n, one},
              node = {(char *)f->nodes + block * size, node_dtype(f), 1, one, one};
    if (f->what == COT__SUM && (n == 4 * COT__BLOCK || n == 2 * COT__BLOCK) && f->x.dtype == node_dtype(f))
        sum_block(f->x.dtype, x.data, (int)(n / COT__BLOCK), node.data);
    else cot__reduce((cot__reduction)f->what, &x, 1, &node);
}

static void join_folds(const cot__stage *s) {
    for (int i = 0; i < s->folds; i++) {
        const cot__stage_fold *f = &s->fold[i];
        if (f->row) continue; /* its elements are there */
        int64_t size = cot__count(f->x.ndim, f->x.shape);
        cot__reduce_join((cot__reduction)f->what, node_dtype(f), f->nodes, size / s->step,
                         (size + s->step - 1) / s->step, &f->z);
    }
}

/* ---- other runs ------------------------------------------------------------------------------ */

static void move_back(cot__view *v, int64_t elements) {
    v->data = (char *)v->data - elements * cot__dtype_size(v->dtype);
}

/* The views of copies go on so many elements. */
static void move_views(cot__block_run *r, uint32_t moves, int64_t elements) {
    for (int i = 0; i < r->n; i++)
        if (moves >> i & 1) move_back(&r->x[i], elements);
    for (int i = 0; i < r->outputs; i++)
        if (moves >> (COT__RUN_VIEWS + i) & 1) move_back(&r->out[i].to, elements);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Bytes of the largest element that runs compute in, folds read or operations on rows make. */
static int64_t widest(const cot__stage *s) {
    int64_t bytes = 4;
    for (int k = 0; k < s->count; k++)
        if (cot__dtype_size(s->run[k].compute) > bytes) bytes = cot__dtype_size(s->run[k].compute);
    for (int k = 0; k < s->folds; k++) {
        const cot__stage_fold *f = &s->fold[k];
        int64_t                size = cot__dtype_size(f->rows ? f->rows->job.z.dtype : f->x.dtype);
        if (size > bytes) bytes = size;
    }
    return bytes;
}

/* Where each run is one call, what it is called for stays in the first cache. */
static int64_t near_step(const cot__stage *s) { return COT__NEAR_BYTES / widest(s); }

static int64_t moved(const part *p) { return (p->block - p->home) * p->s->step; }

/* What run k does for elements start … stop - 1 of the stage. */
static void do_run(const part *p, int k, int64_t start, int64_t stop, cot__repeated *repeated) {
    const cot__stage *s = p->s;
    if (s->span) {
        start = start - s->span[k].at - s->span[k].before;
        stop = stop - s->span[k].at + s->span[k].after;
        if (start < 0) start = 0;
        if (stop > s->run[k].size) stop = s->run[k].size;
        if (start >= stop) return;
    }
    if (!p->directly) cot__block_run_range(p->general[k], start, stop, repeated);
    else
        for (; start < stop; start += p->most)
            cot__direct_run_range(&p->run[k], start, stop - start < p->most ? stop - start : p->most, moved(p));
}

/* All runs on one block, and the folds between them. */
static void do_block(const part *p, cot__repeated *repeated) {
    const cot__stage *s = p->s;
    int64_t           start = p->block * s->step, stop = start + s->step < s->size ? start + s->step : s->size;
    int               fold = 0;
    for (int k = 0; k <= s->count; k++) {
        for (; fold < s->folds && s->fold[fold].after == k; fold++)
            fold_block(&s->fold[fold], p->block, start, stop, moved(p));
        if (k < s->count) do_run(p, k, start, stop, repeated);
    }
}

/* False: there are too many numbers. */
static __attribute__((noinline)) bool do_directly(part *p, int64_t last) {
    _Alignas(64) char memory[COT__FILLED_BYTES];
    cot__filled f = {.memory = memory};
    p->most = near_step(p->s) + (p->s->span ? near_step(p->s) / 8 : 0); /* see prepare */
    f.length = (int)(p->s->size < p->most ? p->s->size : p->most);
    if (!cot__direct_runs_open(p->run, p->s, &f)) return false;
    for (; p->block < last; p->block++) do_block(p, NULL);
    return true;
}

static __attribute__((noinline)) void do_generally(part *p, int64_t last) {
    const cot__stage *s = p->s;
    cot__block_run    copy[COT__STAGE_RUNS];
    uint16_t          moves[COT__STAGE_RUNS];
    cot__repeated     repeated;
    int               n = 0;
    repeated.count = repeated.next = 0;
    for (int k = 0; k < s->count; k++) {
        p->general[k] = &s->run[k];
        /* one block moves nothing */
        if (!s->moves || !s->moves[k] || (last - p->first < 2 && p->home == p->first)) continue;
        moves[n] = s->moves[k];
        copy[n] = s->run[k];
        move_views(&copy[n], moves[n], moved(p));
        p->general[k] = &copy[n++];
    }
    for (; p->block < last; p->block++) {
        do_block(p, &repeated);
        for (int k = 0; k < n; k++) move_views(&copy[k], moves[k], s->step);
    }
}

static void run_part(void *ctx, int64_t number) {
    const cot__stage *s = ctx;
    part              p; /* its lists are long, and stay as they are */
    int64_t           blocks = (s->size + s->step - 1) / s->step, last = cot__part_start(blocks, s->parts, number + 1);
    p.s = s;
    p.directly = s->directly;
    p.first = p.block = cot__part_start(blocks, s->parts, number);
    p.home = s->room ? number : p.first;
    if (p.directly && do_directly(&p, last)) return;
    p.directly = false;
    do_generally(&p, last);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* How many elements of a block are done again. */
static int64_t again(const cot__stage *s) {
    int64_t most = 0;
    for (int k = 0; k < s->count && s->span; k++)
        if (s->span[k].before + s->span[k].after > most) most = s->span[k].before + s->span[k].after;
    return most;
}

/* Elements of the rows of folds; 0: there are none. */
static int64_t row_of(const cot__stage *s) { return s->folds ? s->fold[0].row : 0; }

static bool has_rows(const cot__stage *s) {
    for (int k = 0; k < s->folds; k++)
        if (s->fold[k].rows) return true;
    return false;
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Blocks that stay in the second cache, with all arrays of the stage; shorter ones where each
 * thread would get none else. A part should have several: it copies runs and fills blocks with
 * numbers first. */
static int64_t far_step(const cot__stage *s) {
    int64_t most = s->block_bytes / (s->count ? cot__dtype_size(s->run[0].compute) : 4), step = SHORT;
    int64_t share = s->size / 8 < SHORT ? SHORT : s->size / 8;
    if (row_of(s)) return most < share ? most : share;
    if (!s->folds) return round_up(most < 1 ? 1 : most < share ? most : share, COT__BLOCK);
    while (2 * step <= most && 2 * step <= share) step *= 2;
    return step;
}

static void cut(cot__stage *s) {
    s->step = has_rows(s) ? ROWS_BYTES / widest(s) : s->directly ? near_step(s) : far_step(s);
    if (row_of(s)) s->step = s->step < row_of(s) ? row_of(s) : s->step / row_of(s) * row_of(s);
    int64_t blocks = (s->size + s->step - 1) / s->step, threads = cot_threads();
    int64_t most = blocks > 64 ? blocks / 8 : blocks > 16 ? blocks / 2 : blocks;
    /* several for each of many threads, too: of twelve parts four of 16 threads would have none */
    if (most < 4 * threads) most = blocks < 4 * threads ? blocks : 4 * threads;
    s->parts = cot__parts(s->size, s->cost, most < 64 ? most : 64);
    if (s->room && s->parts > s->room / s->step) s->parts = s->room / s->step;
    /* each part works in the memory of its first block, and a little more */
    if (s->span && s->parts > blocks / 2) s->parts = blocks > 1 ? blocks / 2 : 1;
}

static void prepare(cot__stage *s) {
    s->directly = true;
    for (int k = 0; k < s->count; k++) {
        cot__block_run_prepare(&s->run[k]);
        s->directly &= cot__is_direct(&s->run[k]);
    }
    s->directly &= 8 * again(s) <= near_step(s);
    s->ready = true;
}

static void run_blocks(cot__stage *s) {
    if (s->count == 1 && !s->folds) {
        cot__block_run_now(&s->run[0]);
        return;
    }
    cut(s);
    if (s->parts > 1) cot__parallel(s->parts, run_part, s);
    else run_part(s, 0);
    join_folds(s);
}

void cot__stage_run(cot__stage *s) {
    if (!s->ready) prepare(s);
    const cot__stage_product *x = s->product;
    if (x) cot__matmul(&x->a, &x->b, x->c.data, x->c.shape[0], x->c.shape[1], x->workspace);
    run_blocks(s);
}
