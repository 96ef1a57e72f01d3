/* block_run.c: elementwise kernels over views of any layout and dtype: block by block, shared
 * out over threads. */
#include "rules/elementwise_ids.h"
#include "backend/cpu/strip.h"
#include "base/parallel.h"
#include "backend/cpu/elementwise/block_run.h"

#include <string.h>

static const int64_t zero_strides[COT_MAX_NDIM];

/* A 0-d operand next to a tensor is that tensor's shape with strides 0. */
static cot__view spread(const cot__view *x, const cot__view *z) {
    return x->ndim == z->ndim ? *x : (cot__view){x->data, x->dtype, z->ndim, z->shape, zero_strides};
}

/* Blocks of every operand. An operand that is not already a plain array of the compute type has a
 * buffer. */
typedef struct feed {
    int         n;
    cot__cursor cursor[7];
    union { double f64[COT__BLOCK]; int64_t i64[COT__BLOCK]; } buffer[7];
} feed;

static void feed_add(feed *f, const cot__view *v, const cot__view *z, cot_dtype compute) {
    cot__view full = spread(v, z);
    cot__cursor_open(&f->cursor[f->n++], &full, compute);
}

static const void *feed_next(feed *f, int k, int n) { return cot__cursor_load(&f->cursor[k], n, &f->buffer[k]); }
static bool        is_read(const cot__view *x) { return x->data != NULL; }

/* Operands that a partial does not read are set to g, because kernels may load values that they do
 * not use. */
static void fill_unread(const cot__block_run *r, const void **p) {
    for (int k = 0; k < r->n && !r->value; k++)
        if (!p[k]) p[k] = p[r->out[0].g];
}

typedef union block { double f64[COT__BLOCK]; int64_t i64[COT__BLOCK]; } block;

static void call(const cot__block_run *r, int k, int n, const void *const *p, void *to) {
    if (r->value) r->value(n, p[0], p[1], p[2], to);
    else
        r->out[k].partial(n, p[r->out[k].g], p[0], r->arity > 1 ? p[1] : NULL, r->arity > 2 ? p[2] : NULL, p[r->arity],
                          to);
}

/* All plain arrays: one call, unless the number of elements is too large for it. */
static void run_plain(const cot__block_run *r, int64_t start, int64_t stop) {
    int64_t size = cot__dtype_size(r->compute), most = 1 << 30;
    for (int64_t at = start; at < stop; at += most) {
        const void *p[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
        for (int k = 0; k < r->n; k++) p[k] = is_read(&r->x[k]) ? (const char *)r->x[k].data + at * size : NULL;
        fill_unread(r, p);
        call(r, 0, (int)(stop - at < most ? stop - at : most), p, (char *)r->out[0].to.data + at * size);
    }
}

/* Runs all kernels on one block, the first output last, then writes the outputs that are in
 * buffers: the first output may be one of the operands, and others may add to it. */
static void run_blocks(const cot__block_run *r, int64_t start, int64_t stop) {
    feed        f;
    cot__cursor to[3];
    block       result[3];
    int64_t     size = cot__dtype_size(r->compute), most = (int64_t)sizeof(block) / size;
    f.n = 0; /* the rest stays: zeroing buffers would cost more than a short vector */
    for (int k = 0; k < r->n; k++)
        feed_add(&f, is_read(&r->x[k]) ? &r->x[k] : &r->out[0].to, &r->out[0].to, r->compute);
    for (int k = 0; k < r->outputs; k++) cot__cursor_open(&to[k], &r->out[k].to, r->compute);
    if (start > 0) {
        for (int k = 0; k < r->n; k++)
            if (is_read(&r->x[k])) cot__cursor_seek(&f.cursor[k], start);
        for (int k = 0; k < r->outputs; k++) cot__cursor_seek(&to[k], start);
    }
    for (int64_t at = start; at < stop; at += most) {
        int         m = (int)(stop - at < most ? stop - at : most);
        const void *p[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
        for (int k = 0; k < r->n; k++)
            if (is_read(&r->x[k])) p[k] = feed_next(&f, k, m);
        fill_unread(r, p);
        for (int k = r->outputs - 1; k >= 0; k--)
            call(r, k, m, p, r->out[k].direct ? (char *)r->out[k].to.data + at * size : (char *)&result[k]);
        for (int k = 0; k < r->outputs; k++) {
            if (r->out[k].direct) continue;
            if (r->out[k].accumulate) cot__cursor_add(&to[k], m, &result[k]);
            else cot__cursor_store(&to[k], m, &result[k]);
        }
    }
}

/* ---- plain arrays and numbers that repeat: longer blocks, and no cursors --------------------- */

enum { LONG = COT__LONG, REPEATS = 2 };

typedef uint64_t fill __attribute__((vector_size(32), aligned(8), may_alias));

/* A block that is full of one number, of those that are there if possible; `taken` are in use. */
static const void *repeat(cot__repeated *c, const cot__block_run *r, const cot__view *x, int n, uint32_t *taken) {
    uint64_t bits = 0;
    int      size = cot__dtype_size(r->compute), k = 0;
    cot__strip(r->compute, x->dtype)(&bits, 1, x->data, 0, 1);
    while (k < c->count && (c->block[k].bits != bits || c->block[k].size != size)) k++;
    if (k == c->count && c->count < COT__REPEATED) {
        c->block[c->count++].filled = 0;
    } else if (k == c->count) {
        do k = c->next++ % COT__REPEATED;
        while (*taken >> k & 1);
        c->block[k].filled = 0;
    }
    *taken |= 1u << k;
    int from = c->block[k].filled;
    c->block[k].bits = bits;
    c->block[k].size = size;
    if (from < n) { /* from a vector's start to a vector's end */
        int   per = (int)sizeof(fill) / size;
        fill *to = (fill *)(void *)c->block[k].u64, all = (size == 8 ? bits : bits | bits << 32) - (fill){0};
        for (int i = from / per; i < (n + per - 1) / per; i++) to[i] = all;
        c->block[k].filled = n;
    }
    return c->block[k].u64;
}

static void run_simple(const cot__block_run *r, int64_t start, int64_t stop, cot__repeated *repeated) {
    union { double f64[LONG]; int64_t i64[LONG]; } result[3];
    int64_t     size = cot__dtype_size(r->compute), most = (int64_t)sizeof *result / size;
    const void *base[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    uint32_t    taken = 0;
    for (int k = 0; k < r->n; k++)
        if (r->x[k].ndim == 0 && is_read(&r->x[k]))
            base[k] = repeat(repeated, r, &r->x[k], (int)(stop - start < most ? stop - start : most), &taken);
    for (int64_t at = start; at < stop; at += most) {
        int         m = (int)(stop - at < most ? stop - at : most);
        const void *p[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
        for (int k = 0; k < r->n; k++)
            p[k] = base[k] || !is_read(&r->x[k]) ? base[k] : (const char *)r->x[k].data + at * size;
        fill_unread(r, p);
        for (int k = r->outputs - 1; k >= 0; k--)
            call(r, k, m, p, r->out[k].direct ? (char *)r->out[k].to.data + at * size : (char *)&result[k]);
        for (int k = 0; k < r->outputs; k++) {
            void *to = (char *)r->out[k].to.data + at * size;
            if (!r->out[k].direct) r->add(m, to, &result[k], NULL, to);
        }
    }
}

/* Are all operands plain or repeated (a view with strides 0), and all outputs plain and written
 * directly or added to? */
static bool is_simple(cot__block_run *r) {
    int repeats = 0;
    for (int k = 0; k < r->outputs; k++)
        if (!cot__is_dense(&r->out[k].to, r->compute) || (!r->out[k].direct && !r->out[k].accumulate)) return false;
    for (int k = 0; k < r->n; k++) {
        cot__view *x = &r->x[k];
        bool       same = cot__repeats(x);
        if (!is_read(x)) continue;
        if (x->ndim == r->out[0].to.ndim && cot__is_dense(x, r->compute) && !(same && r->size > 1)) continue;
        if (!same || ++repeats > REPEATS) return false;
        x->ndim = 0;
    }
    return true;
}

void cot__block_run_range(const cot__block_run *r, int64_t start, int64_t stop, cot__repeated *repeated) {
    if (r->plain) run_plain(r, start, stop);
    else if (r->simple) run_simple(r, start, stop, repeated);
    else run_blocks(r, start, stop);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void copy_1(int n, const void *x, const void *y, const void *w, void *z) {
    (void)y, (void)w, memcpy(z, x, (size_t)n);
}
static void copy_2(int n, const void *x, const void *y, const void *w, void *z) {
    (void)y, (void)w, memcpy(z, x, (size_t)n * 2);
}
static void copy_4(int n, const void *x, const void *y, const void *w, void *z) {
    (void)y, (void)w, memcpy(z, x, (size_t)n * 4);
}
static void copy_8(int n, const void *x, const void *y, const void *w, void *z) {
    (void)y, (void)w, memcpy(z, x, (size_t)n * 8);
}

static cot__value_kernel copy_of(int bytes) {
    return bytes == 8 ? copy_8 : bytes == 4 ? copy_4 : bytes == 2 ? copy_2 : copy_1;
}

static const cot__block_kernels *kernels(int op, cot_dtype compute, int ndim) {
    return ndim == 0 ? cot__plain_blocks(op, compute) : cot__blocks(op, compute);
}

static void choose_kernels(cot__block_run *r) {
    if (r->op == COT__RUN_COPY) {
        r->value = copy_of(cot__dtype_size(r->compute));
        return;
    }
    r->value = r->values ? kernels(r->op, r->compute, r->out[0].to.ndim)->value : NULL;
    for (int i = 0; i < r->outputs && !r->values; i++)
        r->out[i].partial = kernels(r->op, r->compute, r->out[i].to.ndim)->partial[r->out[i].k];
}

void cot__block_run_prepare(cot__block_run *r) {
    choose_kernels(r);
    r->size = cot__count(r->out[0].to.ndim, r->out[0].to.shape);
    for (int k = 0; k < r->outputs; k++) {
        cot__output *o = &r->out[k];
        o->direct = !o->accumulate && cot__is_dense(&o->to, r->compute);
        /* the first output may replace an operand, so it is written last */
        for (int i = 0; i < r->n && k > 0; i++) o->direct &= r->x[i].data != o->to.data;
    }
    r->plain = r->outputs == 1 && r->out[0].direct;
    for (int k = 0; k < r->n && r->plain; k++) /* 0-d values repeat */
        r->plain = !is_read(&r->x[k]) || (r->x[k].ndim == r->out[0].to.ndim && cot__is_dense(&r->x[k], r->compute));
    r->simple = !r->plain && r->size >= LONG && cot__dtype_size(r->compute) >= 4 && is_simple(r);
    r->add = r->simple ? cot__blocks(OP_add, r->compute)->value : NULL;
}

static void run_part(void *ctx, int64_t part) {
    const cot__block_run *r = ctx;
    int64_t         blocks = (r->size + COT__BLOCK - 1) / COT__BLOCK;
    int64_t               start  = cot__part_start(blocks, r->parts, part) * COT__BLOCK,
            stop                 = cot__part_start(blocks, r->parts, part + 1) * COT__BLOCK;
    cot__repeated   repeated;
    repeated.count = repeated.next = 0;
    cot__block_run_range(r, start, stop < r->size ? stop : r->size, &repeated);
}

void cot__block_run_now(cot__block_run *r) {
    r->parts = cot__parts(r->size, r->cost, 64);
    if (r->parts > 1) cot__parallel(r->parts, run_part, r);
    else run_part(r, 0);
}
