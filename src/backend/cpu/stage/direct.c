/* direct.c: runs of a stage as calls of their kernels. */
#include "backend/cpu/stage/direct.h"
#include "backend/cpu/strip.h"

#include <string.h>

enum { SHORT_ROW = 8 }; /* elements of the shortest row that is worth it */

/* ---- blocks that are filled ------------------------------------------------------------------ */

/* The block that is full of it, or the next, of `elements`, which is to be filled; NULL: there is
 * none. */
static void *find(cot__filled *f, const void *from, uint64_t bits, int size, int64_t elements, bool *is_new) {
    /* whole lines of the cache, as each block begins with one */
    int k = 0, bytes = (int)(elements * size + 63) & ~63;
    while (k < f->count && (f->bits[k] != bits || f->size[k] != size || f->from[k] != from)) k++;
    *is_new = k == f->count;
    if (!*is_new) return f->block[k];
    if (k == COT__MOST_FILLED || bytes > COT__FILLED_BYTES - f->used) return NULL;
    f->from[k]  = from;
    f->bits[k]  = bits;
    f->size[k]  = size;
    f->block[k] = f->memory + f->used;
    f->used += bytes;
    f->count++;
    return f->block[k];
}

/* `have` bytes again and again, `all` in the end. */
static void fill_again(void *memory, const void *from, int64_t have, int64_t all) {
    char *to = memory;
    memcpy(to, from, (size_t)have);
    for (; have < all; have *= 2) memcpy(to + have, to, (size_t)(2 * have < all ? have : all - have));
}

static const void *fill(cot__filled *f, const cot__block_run *r, const cot__view *x) {
    uint64_t bits = 0;
    bool     is_new;
    cot__strip(r->compute, x->dtype)(&bits, 1, x->data, 0, 1);
    int       size = cot__dtype_size(r->compute), n = f->length;
    void     *to = find(f, NULL, bits, size, n, &is_new);
    if (to && is_new) fill_again(to, &bits, size, (int64_t)n * size);
    return to;
}

static const void *fill_rows(cot__filled *f, const cot__view *x, int64_t row) {
    int64_t size = cot__dtype_size(x->dtype), have = row * size, all = (f->length + row) * size;
    bool    is_new;
    void   *to = find(f, x->data, (uint64_t)row, (int)size, f->length + row, &is_new);
    if (to && is_new) fill_again(to, x->data, have, all);
    return to;
}

/* ---- which can ------------------------------------------------------------------------------- */

/* The elements after which those of a view begin again: its last axes lie row-major, and those
 * before repeat them. 0: it is another view. */
static int64_t row_of(const cot__view *x) {
    int64_t row = 1;
    int     i = x->ndim - 1;
    for (; i >= 0 && (x->stride[i] == row || x->shape[i] == 1); i--) row *= x->shape[i];
    for (; i >= 0; i--)
        if (x->stride[i] != 0 && x->shape[i] != 1) return 0;
    return row;
}

/* An array of one element may be made by the stage itself. */
static bool is_number(const cot__block_run *r, const cot__view *x) {
    return x->ndim == 0 || (r->size > 1 && cot__repeats(x));
}

/* Is the operand read as the kernel takes it, from one place for each block? */
static bool is_direct_operand(const cot__block_run *r, const cot__view *x) {
    int size = cot__dtype_size(r->compute);
    if (x->ndim == r->out[0].to.ndim && cot__is_dense(x, r->compute)) return true;
    if (size < 4) return false;
    if (is_number(r, x)) return true;
    return x->ndim == r->out[0].to.ndim && x->dtype == r->compute && row_of(x) >= SHORT_ROW;
}

bool cot__is_direct(const cot__block_run *r) {
    bool is = r->outputs == 1 && r->out[0].direct;
    for (int i = 0; i < r->n && is; i++) is = !r->x[i].data || is_direct_operand(r, &r->x[i]);
    return is;
}

/* ---- opening --------------------------------------------------------------------------------- */

static const void *open_rows(cot__direct_run *d, int i, cot__filled *f, const cot__view *x) {
    d->row[i] = row_of(x);
    bool full = d->row[i] * d->size <= COT__FILLED_ROW;
    d->kind[i] = full ? COT__FILLED_ROWS : COT__ROWS;
    d->splits |= !full;
    return full ? fill_rows(f, x, d->row[i]) : x->data;
}

static bool open_direct(cot__direct_run *d, const cot__block_run *r, uint32_t moves, cot__filled *f) {
    *d = (cot__direct_run){.value = r->value, .partial = r->out[0].partial, .z = r->out[0].to.data,
                           .to = moves >> COT__RUN_VIEWS & 1 ? COT__MOVED : COT__ABSOLUTE,
                           .size = (int8_t)cot__dtype_size(r->compute)};
    for (int k = 0; k < r->n; k++) {
        const cot__view *x = &r->x[k];
        bool             dense = x->ndim == r->out[0].to.ndim && cot__is_dense(x, r->compute);
        int              i = k < r->arity ? k : COT__DIRECT_Z + k - r->arity;
        if (!x->data) continue;
        d->kind[i] = dense ? (moves >> k & 1 ? COT__MOVED : COT__ABSOLUTE) : COT__REPEATING;
        d->x[i] = dense ? x->data : is_number(r, x) ? fill(f, r, x) : open_rows(d, i, f, x);
        if (!d->x[i]) return false;
    }
    return true;
}

bool cot__direct_runs_open(cot__direct_run *d, const cot__stage *s, cot__filled *f) {
    for (int k = 0; k < s->count; k++)
        if (!open_direct(&d[k], &s->run[k], s->moves ? s->moves[k] : 0, f)) return false;
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Where operand i is for elements from `start` on. */
static const void *operand_at(const cot__direct_run *d, int i, int64_t start, int64_t back) {
    switch (d->kind[i]) {
    case COT__ABSOLUTE: return d->x[i] + start * d->size;
    case COT__MOVED: return d->x[i] + (start - back) * d->size;
    case COT__REPEATING: return d->x[i];
    case COT__FILLED_ROWS:
    case COT__ROWS: return d->x[i] + start % d->row[i] * d->size;
    default: return NULL;
    }
}

/* How many of n elements are left in each row that ends a call. */
static int64_t to_row_end(const cot__direct_run *d, int64_t start, int64_t n) {
    for (int i = 0; i < COT__DIRECT_READS; i++) {
        int64_t left = d->kind[i] == COT__ROWS ? d->row[i] - start % d->row[i] : n;
        if (left < n) n = left;
    }
    return n;
}

/* Operands that it does not read are G, because kernels may load values that they do not use. */
static void call_partial(const cot__direct_run *d, int n, int64_t start, int64_t back, void *z) {
    const void *x[COT__DIRECT_READS];
    for (int i = COT__DIRECT_G; i >= 0; i--)
        x[i] = d->kind[i] ? operand_at(d, i, start, back) : x[COT__DIRECT_G];
    d->partial(n, x[COT__DIRECT_G], x[0], x[1], x[2], x[COT__DIRECT_Z], z);
}

void cot__direct_run_range(const cot__direct_run *d, int64_t start, int64_t n, int64_t back) {
    for (int64_t m; n > 0; start += m, n -= m) {
        m = d->splits ? to_row_end(d, start, n) : n;
        char *z = d->z + (d->to == COT__MOVED ? start - back : start) * d->size;
        if (!d->value) call_partial(d, (int)m, start, back, z);
        else
            d->value((int)m, operand_at(d, 0, start, back), operand_at(d, 1, start, back),
                     operand_at(d, 2, start, back), z);
    }
}
