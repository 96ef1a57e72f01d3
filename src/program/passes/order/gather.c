/* gather.c: elementwise operations that could run together are brought together.
 *
 * A group (program/fusion.h) is a row of neighbours. Here an elementwise operation waits until
 * something reads its result that cannot wait with it, and then all that waits for arrays of that
 * size follows at once, in its old order. What waits are operations without effect, so effects
 * keep their order; and nothing is computed before its operands. Views of what waits wait with it.
 *
 * A fold waits with the operations that make what it reduces, and an operation on rows waits as an
 * elementwise one, where all rows have one length. Behind a matrix product its end
 * follows at once (ends.h), though that be what stood far behind it: the step of an optimiser. Some
 * arithmetic on numbers alone comes before the first product, as ends may read it: the factors of
 * such a step.
 *
 * For a few sizes operations wait at the same time. When a group is full it waits no longer. */
#include "backend/runs.h"
#include "program/fusion.h"
#include "program/passes/order/ends.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

enum { QUEUES = 8, NOBODY = QUEUES };
enum { EARLY = 64 }; /* most operations on numbers that come before a product */

/* How a value has the elements of what waits: in another order; in theirs; it is what folds have
 * made of rows, or repeats that along the rows. */
enum { OTHERWISE, IN_ORDER, OF_ROWS, ALONG_ROWS };

/* Operations that wait: `count` from `first` on in the list `next`. */
typedef struct queue { int64_t size, row; uint32_t first, last, members, folds; } queue;

typedef struct gathering {
    queue    queue[QUEUES];
    uint32_t *next;    /* for each operation: the one that waits behind it */
    uint8_t  *waits;   /* for each value: the queue of the operation that makes it, or NOBODY */
    uint8_t  *straight; /* for each value: has it the elements of what waits in their order? */
    uint32_t  turn, emitted;
    bool      early; /* a product has come, and before it the numbers */
    cot__ends ends;
} gathering;

static void emit(cot__rewrite *r, uint32_t k) {
    gathering            *g = r->edit->state;
    const cot__operation *o = &r->from->operation[k];
    cot__rewrite_keep(r, k);
    for (uint32_t i = 0; i < o->results; i++) g->waits[o->result + i] = NOBODY;
    r->changes += k != g->emitted; /* another order than before */
    g->emitted = k + 1;
}

static void empty(cot__rewrite *r, int which) {
    gathering *g = r->edit->state;
    queue     *q = &g->queue[which];
    uint32_t   k = q->first;
    while (k != COT__NO_VALUE) {
        uint32_t after = g->next[k];
        emit(r, k);
        k = after;
    }
    *q = (queue){.first = COT__NO_VALUE};
}

static void wait(cot__rewrite *r, uint32_t k, int which) {
    gathering *g = r->edit->state;
    queue     *q = &g->queue[which];
    g->next[k] = COT__NO_VALUE;
    if (q->first == COT__NO_VALUE) q->first = k;
    else g->next[q->last] = k;
    q->last = k;
    g->waits[r->from->operation[k].result] = (uint8_t)which;
}

/* All that operation k reads and that waits follows now, but what waits in queue `but`. */
static void empty_operands(cot__rewrite *r, uint32_t k, int but) {
    const gathering *g = r->edit->state;
    const uint32_t  *x = cot__operation_operand(r->from, k);
    for (int i = 0; i < cot__operation_operands(r->from, k); i++)
        if (x[i] != COT__NO_VALUE && g->waits[x[i]] != NOBODY && g->waits[x[i]] != but) empty(r, g->waits[x[i]]);
}

/* The queue for arrays of this size: one in which such wait, an empty one, or the next in turn. */
static int queue_for(cot__rewrite *r, int64_t size) {
    gathering *g = r->edit->state;
    for (int i = 0; i < QUEUES; i++)
        if (g->queue[i].first != COT__NO_VALUE && g->queue[i].size == size) return i;
    for (int i = 0; i < QUEUES; i++)
        if (g->queue[i].first == COT__NO_VALUE) return i;
    int turn = (int)(g->turn++ % QUEUES);
    empty(r, turn);
    return turn;
}

/* Does it read what waits in this queue in another order? */
static bool is_out_of_order(const cot__rewrite *r, uint32_t k, int which) {
    const gathering *g = r->edit->state;
    const uint32_t  *x = cot__operation_operand(r->from, k);
    for (int i = 0; i < cot__operation_operands(r->from, k); i++)
        if (x[i] != COT__NO_VALUE && g->waits[x[i]] == which && g->straight[x[i]] != IN_ORDER &&
            g->straight[x[i]] != ALONG_ROWS)
            return true;
    return false;
}

/* How a view of x, which waits, has its elements. */
static uint8_t seen_through(const cot__rewrite *r, uint32_t k, uint8_t x) {
    if (cot__keeps_order(r->from->operation[k].op)) return x;
    return x == OF_ROWS && cot__is_along_rows(r->from, k) ? ALONG_ROWS : OTHERWISE;
}

static void gather(cot__rewrite *r, uint32_t k) {
    gathering *g = r->edit->state;
    int64_t    size = cot__fused_size(r->from, k);
    int        which = queue_for(r, size);
    if (is_out_of_order(r, k, which) || g->queue[which].members == COT__STAGE_RUNS) empty(r, which);
    empty_operands(r, k, which);
    wait(r, k, which);
    g->queue[which].size = size;
    g->queue[which].members++;
}

/* Nobody who waits may read its further results: they are there when the group is done. */
static bool gather_rows(cot__rewrite *r, uint32_t k) {
    gathering *g = r->edit->state;
    if (!cot__is_on_rows(r->from, k)) return false;
    const cot__operation *o = &r->from->operation[k];
    int64_t               size = cot__fused_size(r->from, k), row = cot__fold_row(r->from, k);
    int                   which = queue_for(r, size);
    queue                *q = &g->queue[which];
    if (is_out_of_order(r, k, which) || q->folds == COT__STAGE_FOLDS || (q->folds && q->row != row)) empty(r, which);
    empty_operands(r, k, which);
    wait(r, k, which);
    q->size = size;
    q->row = row;
    q->folds++;
    for (uint32_t i = 1; i < o->results; i++) {
        g->waits[o->result + i] = (uint8_t)which;
        g->straight[o->result + i] = OTHERWISE;
    }
    return true;
}

/* An operation on what folds have made of rows waits with them; `which`: where those wait that it
 * reads. */
static bool gather_row_number(cot__rewrite *r, uint32_t k) {
    gathering      *g = r->edit->state;
    const uint32_t *x = cot__operation_operand(r->from, k);
    int             which = NOBODY;
    for (int i = 0; i < cot__operation_operands(r->from, k); i++)
        if (x[i] != COT__NO_VALUE && g->waits[x[i]] != NOBODY && g->straight[x[i]] == OF_ROWS) which = g->waits[x[i]];
    if (which == NOBODY) return false;
    queue *q = &g->queue[which];
    if (cot__fused_size(r->from, k) * q->row != q->size || q->folds == COT__STAGE_FOLDS) return false;
    for (int i = 0; i < cot__operation_operands(r->from, k); i++)
        if (x[i] != COT__NO_VALUE && g->waits[x[i]] == which && g->straight[x[i]] != OF_ROWS) return false;
    empty_operands(r, k, which);
    wait(r, k, which);
    q->folds++;
    g->straight[r->from->operation[k].result] = OF_ROWS;
    return true;
}

/* A fold waits with what makes its operand. Who waits there may read what it makes of rows, along
 * these. */
static bool gather_fold(cot__rewrite *r, uint32_t k) {
    gathering *g = r->edit->state;
    if (!cot__is_fold(r->from, k)) return false; /* others may have no operands */
    uint32_t x = cot__operation_operand(r->from, k)[0], z = r->from->operation[k].result;
    if (g->waits[x] == NOBODY || g->straight[x] != IN_ORDER) return false;
    queue *q = &g->queue[g->waits[x]];
    if (q->folds == COT__STAGE_FOLDS || (q->folds && q->row != cot__fold_row(r->from, k))) return false;
    q->folds++;
    q->row = cot__fold_row(r->from, k);
    g->straight[z] = cot__is_row_fold(r->from, k) ? OF_ROWS : OTHERWISE;
    wait(r, k, g->waits[x]);
    return true;
}

static bool is_there(void *user, uint32_t v) { return ((const cot__rewrite *)user)->value[v] != COT__NO_VALUE; }
static bool is_free(void *user, uint32_t v) {
    return ((const gathering *)((const cot__rewrite *)user)->edit->state)->waits[v] == NOBODY;
}
static void put_end(void *user, uint32_t k) { emit(user, k); }

/* Is operation k elementwise, or a cast, on numbers that are there? */
static bool is_on_numbers(cot__rewrite *r, uint32_t k) {
    const cot__program *p = r->from;
    const uint32_t     *x = cot__operation_operand(p, k);
    bool                is = p->operation[k].op < OP_structural || p->operation[k].op == OP_cast;
    for (int i = 0; i < cot__operation_operands(p, k) && is; i++)
        is = x[i] == COT__NO_VALUE || (cot__value_view(p, x[i]).ndim == 0 && is_there(r, x[i]));
    return is;
}

static void put_numbers(cot__rewrite *r, uint32_t from) {
    gathering *g = r->edit->state;
    for (uint32_t k = from, n = 0; k < r->from->operations && n < EARLY; k++) {
        if (g->ends.done[k] || !is_on_numbers(r, k)) continue;
        emit(r, k);
        g->ends.done[k] = 1;
        n++;
    }
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    gathering          *g = r->edit->state;
    const cot__program *p = r->from;
    uint32_t            z = p->operation[k].result, x;
    if (g->ends.done[k]) return;
    if (cot__is_fusable(p, k)) {
        if (!gather_row_number(r, k)) gather(r, k);
        return;
    }
    if (gather_fold(r, k) || gather_rows(r, k)) return;
    x = cot__operation_operands(p, k) == 1 ? cot__operation_operand(p, k)[0] : COT__NO_VALUE;
    bool dense = x != COT__NO_VALUE && (g->straight[x] == IN_ORDER || g->straight[x] == OF_ROWS);
    if (x != COT__NO_VALUE && g->waits[x] != NOBODY && cot__is_always_view(p, k, dense)) {
        g->straight[z] = seen_through(r, k, g->straight[x]);
        wait(r, k, g->waits[x]);
        return;
    }
    empty_operands(r, k, NOBODY);
    if (cot__is_product(p, k) && !g->early) put_numbers(r, k);
    g->early |= cot__is_product(p, k);
    emit(r, k);
    if (cot__is_product(p, k)) cot__ends_put(&g->ends, k, &(cot__ends_user){r, is_there, is_free, put_end});
}

static void give_outputs(cot__rewrite *r) {
    for (int i = 0; i < QUEUES; i++) empty(r, i);
    cot__rewrite_keep_outputs(r);
}

cot__program *cot__pass_gather(const cot__program *p, const cot__pass_options *o) {
    gathering g = {.turn = 0};
    cot__edit how = {.state = &g, .operation = edit_operation, .outputs = give_outputs};
    size_t    bytes = p->operations * sizeof *g.next + 2 * (size_t)p->values;
    g.next = cot__alloc(o->al, bytes);
    if (!g.next) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes), NULL;
    g.waits = (uint8_t *)(g.next + p->operations);
    g.straight = g.waits + p->values;
    memset(g.waits, NOBODY, p->values);
    memset(g.straight, IN_ORDER, p->values);
    for (int i = 0; i < QUEUES; i++) g.queue[i] = (queue){.first = COT__NO_VALUE};
    cot__program *made = NULL;
    if (cot__ends_open(&g.ends, p, o->al)) made = cot__rewrite_run(p, o, &how);
    else cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", g.ends.bytes);
    cot__ends_close(&g.ends, o->al);
    cot__free(o->al, g.next, bytes);
    return made;
}
