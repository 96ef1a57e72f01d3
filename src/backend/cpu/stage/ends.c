/* ends.c: stages that begin with a matrix product: the runs are its end. Each rectangle of the
 * product is handed over when its last depth block was added, and all runs are done on a few rows
 * of it while these are in cache.
 *
 * An array has, of a rectangle, a piece of each row. Where that is long enough for a call of a
 * kernel, rows are done one by one, where they lie. Shorter pieces are gathered side by side in a
 * slot, kernels work on slots, and what was written goes back. Of a rectangle of whole rows the
 * pieces lie side by side already. Pieces are fetched while the product is made: they are too
 * far apart for the machine to guess. */
#include "backend/cpu/kernels.h"
#include "backend/cpu/stage/direct.h"
#include "backend/cpu/stage/stage.h"

#include <string.h>

/* Bytes of a slot, and how many there are; filled blocks, and bytes of one, with a row. */
enum { AT_ONCE = 2048, SLOTS = 20, FILLED = COT__MOST_FILLED, FILLED_BYTES = AT_ONCE + COT__FILLED_ROW };
/* Elements of a piece that is worth calls of its own; bytes that are fetched at a time. */
enum { LONG = 64, LINE = 64 };

/* An array, or rows that repeat every `row` elements; filled: as often as elements are done at a
 * time. */
typedef struct slot {
    char   *at;
    int64_t row, size; /* 0: it is an array; bytes of an element */
    bool    loads, stores, filled;
} slot;

/* A run on slots; those from SLOTS on are numbers, at `x`. */
typedef struct slot_run { cot__value_kernel value; uint8_t from[3], to; const char *x[3]; } slot_run;
enum { NUMBER = SLOTS };

typedef struct ending {
    int64_t  columns, most; /* of the product; elements that are done at a time */
    int      runs, slots;
    slot     slot[SLOTS];
    slot_run run[COT__STAGE_RUNS];
} ending;

/* A few rows of a rectangle. */
typedef struct rows { int64_t row, count, column, width; } rows;

/* ---- slots ----------------------------------------------------------------------------------- */

/* SLOTS: there are no more. */
static int slot_of(ending *e, const char *at, int64_t row, int64_t size, bool loads) {
    int k = 0;
    while (k < e->slots && (e->slot[k].at != at || e->slot[k].row != row || e->slot[k].size != size)) k++;
    if (k == e->slots && k < SLOTS) e->slot[e->slots++] = (slot){(char *)(uintptr_t)at, row, size, loads, false, false};
    return k;
}

/* Do rows begin with rows of the product, so that no piece goes beyond their end? */
static bool fits(const ending *e, const cot__direct_run *d, int i) {
    return d->kind[i] != COT__ROWS || d->row[i] % e->columns == 0;
}

static bool open_operand(ending *e, slot_run *r, const cot__direct_run *d, int i) {
    r->from[i] = NUMBER;
    r->x[i] = d->x[i]; /* NULL: there is none */
    if (d->kind[i] == COT__ABSENT || d->kind[i] == COT__REPEATING) return true;
    if (!fits(e, d, i)) return false;
    bool repeats = d->kind[i] == COT__ROWS || d->kind[i] == COT__FILLED_ROWS;
    r->from[i] = (uint8_t)slot_of(e, d->x[i], repeats ? d->row[i] : 0, d->size, d->kind[i] != COT__MOVED);
    if (r->from[i] == SLOTS) return false;
    e->slot[r->from[i]].filled |= d->kind[i] == COT__FILLED_ROWS;
    return true;
}

static bool open_run(ending *e, const cot__direct_run *d) {
    slot_run *r = &e->run[e->runs++];
    r->value = d->value;
    for (int i = 0; i < 3; i++)
        if (!open_operand(e, r, d, i)) return false;
    r->to = (uint8_t)slot_of(e, d->z, 0, d->size, false);
    if (r->to < SLOTS) e->slot[r->to].stores |= d->to == COT__ABSOLUTE;
    return r->to < SLOTS;
}

/* ---- rectangles ------------------------------------------------------------------------------ */

/* The elements of a slot that lie side by side, in a row of the product. */
static char *piece(const ending *e, const slot *s, const rows *r, int64_t i) {
    int64_t start = (r->row + i) * e->columns + r->column;
    return s->at + (s->row ? start % s->row : start) * s->size;
}

static void load(const ending *e, const slot *s, const rows *r, char *to) {
    size_t bytes = (size_t)(r->width * s->size);
    for (int64_t i = 0; i < r->count; i++) memcpy(to + (size_t)i * bytes, piece(e, s, r, i), bytes);
}
static void store(const ending *e, const slot *s, const rows *r, const char *from) {
    size_t bytes = (size_t)(r->width * s->size);
    for (int64_t i = 0; i < r->count; i++) memcpy(piece(e, s, r, i), from + (size_t)i * bytes, bytes);
}

/* Is it used where it lies? Of one row, whatever lies in memory is; of whole rows, arrays and
 * filled rows are. */
static bool lies(const ending *e, const slot *s, const rows *r) {
    if (s->row == 0 && !s->loads && !s->stores) return false;
    return r->count == 1 || (r->width == e->columns && (s->row == 0 || s->filled));
}

static const void *operand(const slot_run *r, int i, char *const *place) {
    return r->from[i] == NUMBER ? r->x[i] : place[r->from[i]];
}

static void do_rows(const ending *e, const rows *r, char (*memory)[AT_ONCE]) {
    int   n = (int)(r->count * r->width);
    char *place[SLOTS];
    for (int k = 0; k < e->slots; k++) {
        const slot *s = &e->slot[k];
        place[k] = lies(e, s, r) ? piece(e, s, r, 0) : memory[k];
        if (place[k] == memory[k] && s->loads) load(e, s, r, memory[k]);
    }
    for (int k = 0; k < e->runs; k++) {
        const slot_run *x = &e->run[k];
        x->value(n, operand(x, 0, place), operand(x, 1, place), operand(x, 2, place), place[x->to]);
    }
    for (int k = 0; k < e->slots; k++)
        if (place[k] == memory[k] && e->slot[k].stores) store(e, &e->slot[k], r, memory[k]);
}

static void do_rectangle(void *ctx, int64_t i, int64_t i_end, int64_t j, int64_t j_end) {
    const ending     *e = ctx;
    _Alignas(64) char memory[SLOTS][AT_ONCE];
    int64_t           width = j_end - j < e->most ? j_end - j : e->most;
    int64_t           count = width < e->columns && width >= LONG ? 1 : e->most / width;
    for (int64_t column = j; column < j_end; column += width)
        for (int64_t row = i; row < i_end; row += count)
            do_rows(e,
                    &(rows){row, i_end - row < count ? i_end - row : count, column,
                            j_end - column < width ? j_end - column : width},
                    memory);
}

/* The pieces of arrays that are read. The product itself is written meanwhile. */
static void fetch_rectangle(void *ctx, int64_t i, int64_t i_end, int64_t j, int64_t j_end) {
    const ending *e = ctx;
    for (int k = 0; k < e->slots; k++)
        for (int64_t row = i; row < i_end && e->slot[k].loads && e->slot[k].row == 0; row++) {
            const char *at = piece(e, &e->slot[k], &(rows){row, 1, j, j_end - j}, 0);
            for (int64_t l = 0; l < (j_end - j) * e->slot[k].size; l += LINE) __builtin_prefetch(at + l);
        }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int64_t widest(const cot__stage *s) {
    int64_t bytes = 4;
    for (int k = 0; k < s->count; k++)
        if (cot__dtype_size(s->run[k].compute) > bytes) bytes = cot__dtype_size(s->run[k].compute);
    return bytes;
}

static bool open_ending(ending *e, const cot__stage *s, cot__filled *f) {
    cot__direct_run d[COT__STAGE_RUNS];
    e->columns = s->product->c.shape[1];
    e->most = f->length;
    e->runs = e->slots = 0;
    if (!cot__direct_runs_open(d, s, f)) return false;
    for (int k = 0; k < s->count; k++)
        if (!open_run(e, &d[k])) return false;
    return true;
}

/* False: nothing was done, because there are too many arrays, numbers or rows. */
static __attribute__((noinline)) bool do_ended(const cot__stage *s, bool *ended) {
    const cot__stage_product *x = s->product;
    _Alignas(64) char         memory[FILLED * FILLED_BYTES];
    ending                    e;
    cot__product_end          end = {do_rectangle, fetch_rectangle, &e};
    cot__filled f = {.length = (int)(AT_ONCE / widest(s)), .most = FILLED, .bytes = FILLED_BYTES, .memory = memory};
    if (!open_ending(&e, s, &f)) return false;
    *ended = cot__matmul_ended(&x->a, &x->b, x->c.data, x->c.shape[0], x->c.shape[1], x->workspace, &end);
    return true;
}

void cot__stage_product_run(cot__stage *s) {
    const cot__stage_product *x = s->product;
    bool                      ended = false;
    if (!s->directly || !do_ended(s, &ended))
        cot__matmul(&x->a, &x->b, x->c.data, x->c.shape[0], x->c.shape[1], x->workspace);
    if (!ended) cot__stage_blocks(s);
}
