/* stage.c: does runs of elementwise work together: all runs on a block of elements while it is in
 * cache, on each of the pool's threads. */
#include "backend/cpu/elementwise/block_run.h"
#include "base/parallel.h"

enum { SHORT = 1024 };

static void move_back(cot__view *v, int64_t elements) {
    v->data = (char *)v->data - elements * cot__dtype_size(v->dtype);
}

static void run_part(void *ctx, int64_t part) {
    const cot__stage *s = ctx;
    const cot__block_run *run[COT__STAGE_RUNS];
    /* copies of the part's own, whose views move from block to block */
    cot__block_run        moved[COT__STAGE_MOVED];
    uint16_t        moves[COT__STAGE_MOVED];
    cot__repeated   repeated;
    int             n = 0;
    int64_t         blocks = (s->size + s->step - 1) / s->step, last = cot__part_start(blocks, s->parts, part + 1);
    repeated.count = repeated.next = 0;
    for (int k = 0; k < s->count; k++) {
        run[k] = &s->run[k];
        if (!s->moves || !s->moves[k]) continue;
        moves[n] = s->moves[k];
        moved[n] = s->run[k];
        run[k] = &moved[n++];
    }
    for (int64_t b = cot__part_start(blocks, s->parts, part); b < last; b++) {
        int64_t start = b * s->step, stop = start + s->step < s->size ? start + s->step : s->size;
        for (int k = 0; k < s->count; k++) cot__block_run_range(run[k], start, stop, &repeated);
        for (int k = 0; k < n; k++) {
            for (int i = 0; i < moved[k].n; i++)
                if (moves[k] >> i & 1) move_back(&moved[k].x[i], s->step);
            for (int i = 0; i < moved[k].outputs; i++)
                if (moves[k] >> (COT__RUN_VIEWS + i) & 1) move_back(&moved[k].out[i].to, s->step);
        }
    }
}

/* Blocks that stay in the second cache, with all arrays of the stage; shorter ones where each
 * thread would get none else. A part should have several: it copies runs and fills blocks with
 * numbers first. */
static void cut(cot__stage *s) {
    int64_t most   = s->block_bytes / cot__dtype_size(s->run[0].compute),
            share  = s->size / 8 < SHORT ? SHORT : s->size / 8;
    int64_t blocks = ((most < share ? most : share) + COT__BLOCK - 1) / COT__BLOCK;
    s->step = (blocks > 0 ? blocks : 1) * COT__BLOCK;
    blocks = (s->size + s->step - 1) / s->step;
    s->parts = cot__parts(s->size, s->cost, blocks > 16 ? blocks / 2 : blocks);
    if (s->parts > 64) s->parts = 64;
}

void cot__stage_run(cot__stage *s) {
    for (int k = 0; k < s->count; k++) cot__block_run_prepare(&s->run[k]);
    if (s->count == 1) {
        cot__block_run_now(&s->run[0]);
        return;
    }
    cut(s);
    if (s->parts > 1) cot__parallel(s->parts, run_part, s);
    else run_part(s, 0);
}
