/* queue_run.c: what waits is done: stage by stage, and in each all runs on one block of elements after the other, on each of the pool's threads. */
#include "base/parallel.h"
#include "ops/queue_inside.h"

enum { SHORT = 1024, CACHE = 1 << 19 };

int64_t cot__queue_bytes = 32768;

/* ---- memory that only the runs see --------------------------------------------------------------------------------------------- */

/* A buried storage that the runs of one stage alone write before they read it holds nothing of interest, before or after. Then every block of a part can
 * have the same piece of it, which stays in cache and need not go to memory. That takes views of the whole storage, row by row. */
static bool is_scratch(const cot__queue *q, const cot__storage *s, int stage) {
    const char *lo = s->data, *hi = lo + s->bytes;
    for (int k = 0; k < q->places; k++) {
        const cot__place *p = &q->place[k];
        if (!cot__overlaps(p, lo, hi)) continue;
        if (p->lo != lo || p->hi != hi || p->element <= 0 || p->first != stage || cot__last_stage(p) != stage) return false;
    }
    for (int k = 0; k < q->head.runs; k++) {
        const cot__run *r = &q->run[k];
        for (int i = 0; i < r->n; i++)
            if (r->x[i].data == s->data) return false;
        for (int i = 0; i < r->outputs; i++)
            if (r->out[i].to.data == s->data) return !r->out[i].accumulate;
    }
    return false;
}

/* Bit i of q->moves[k]: view i of run k lies there; outputs come after the operands. */
static uint16_t views_on(const cot__run *r, const void *data) {
    uint32_t views = 0;
    for (int i = 0; i < r->n; i++) views |= (uint32_t)(r->x[i].data == data) << i;
    for (int i = 0; i < r->outputs; i++) views |= (uint32_t)(r->out[i].to.data == data) << (COT__MOVES_OUT + i);
    return (uint16_t)views;
}

static void find_scratch(cot__queue *q) {
    for (int k = 0; k < q->head.runs; k++) q->moves[k] = 0;
    for (int b = 0; b < q->buried; b++) {
        const cot__buried *s = &q->bury[b];
        if (!is_scratch(q, s->storage, s->stage)) continue;
        for (int k = 0; k < q->head.runs; k++) q->moves[k] |= views_on(&q->run[k], s->storage->data);
    }
}

/* ---- running ------------------------------------------------------------------------------------------------------------------- */

typedef struct work {
    const cot__queue *q;
    int               stage;
} work;

static void run_part(void *ctx, int64_t part) {
    const work       *w = ctx;
    const cot__queue *q = w->q;
    const cot__stage *s = &q->stage[w->stage];
    cot__repeated     repeated;
    int64_t           blocks = (s->size + s->step - 1) / s->step, first = cot__part_start(blocks, s->parts, part);
    repeated.count = repeated.next = 0;
    for (int64_t b = first, last = cot__part_start(blocks, s->parts, part + 1); b < last; b++) {
        int64_t start = b * s->step, stop = start + s->step < s->size ? start + s->step : s->size;
        for (int k = 0; k < q->head.runs; k++)
            if (q->stage_of[k] == w->stage) cot__run_range(&q->run[k], start, stop, (b - first) * s->step, q->moves[k], &repeated);
    }
}

/* Blocks that stay in the second cache, with all arrays of the stage; shorter ones where each thread would get none else. A part should have several:
 * it fills blocks with numbers first. */
static void cut(cot__queue *q, int stage, int element) {
    cot__stage *s = &q->stage[stage];
    int64_t     arrays = 1;
    for (int k = 0; k < q->places; k++) arrays += q->place[k].first <= stage && cot__last_stage(&q->place[k]) >= stage;
    int64_t bytes = CACHE / arrays < cot__queue_bytes ? CACHE / arrays : cot__queue_bytes;
    int64_t most = bytes / element, share = s->size / 8 < SHORT ? SHORT : s->size / 8;
    int64_t blocks = ((most < share ? most : share) + COT__BLOCK - 1) / COT__BLOCK;
    s->step = (blocks > 0 ? blocks : 1) * COT__BLOCK;
    blocks = (s->size + s->step - 1) / s->step;
    s->parts = cot__parts(s->size, s->cost, blocks > 16 ? blocks / 2 : blocks);
    if (s->parts > 64) s->parts = 64;
}

static void run_stage(cot__queue *q, int stage) {
    work w = {q, stage};
    int  k = 0;
    while (q->stage_of[k] != stage) k++;
    cut(q, stage, cot__dtype_size(q->run[k].compute));
    if (q->stage[stage].parts > 1) cot__parallel(q->stage[stage].parts, run_part, &w);
    else run_part(&w, 0);
}

void cot__queue_do(cot__queue *q) {
    if (q->head.runs == 1) {
        cot__run_now(&q->run[0]);
        return;
    }
    find_scratch(q);
    for (int s = 0; s < q->stages; s++) run_stage(q, s);
}
