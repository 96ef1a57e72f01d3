/* update.c: a step of an optimiser in one pass over weights, gradient and states. Elements are
 * independent of each other, so the work is shared out freely. */
#include "backend/cpu/nn/nn.h"
#include "base/parallel.h"
#include "rules/words/updates.h"

/* Elements that go through all formulas before the next. */
enum { BLOCK = 512 };

#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define SQRT(a) ROOT(a)
#define POSITIVE(a) ((a) < 0 ? 0 : (a))

#define T double
#define N(name) name##_f64
#define ROOT sqrt
#include "backend/cpu/nn/update.inc"
#undef T
#undef N
#undef ROOT
#define T float
#define N(name) name##_f32
#define ROOT sqrtf
#include "backend/cpu/nn/update.inc"

typedef struct share {
    const cot__update *update;
    int64_t            parts;
} share;

static void run(void *ctx, int64_t part) {
    const share       *s = ctx;
    const cot__update *p = s->update;
    int64_t            stop = cot__part_start(p->n, s->parts, part + 1);
    for (int64_t i = cot__part_start(p->n, s->parts, part); i < stop; i += BLOCK)
        (p->dtype == COT_F64 ? block_f64 : block_f32)(p, i, stop - i < BLOCK ? stop - i : BLOCK);
}

void cot__update_step(const cot__update *p) {
    share s = {p, cot__parts(p->n, p->kind == COT_SGD ? 1 : 8, 64)};
    cot__parallel(s.parts, run, &s);
}
