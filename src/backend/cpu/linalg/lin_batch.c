/* lin_batch.c: matrices of a batch shared out over threads. The parts depend on the number of
 * matrices and their size only. */
#include "backend/cpu/linalg/lin.h"

#include "base/parallel.h"

enum { MOST_PARTS = 64 };

typedef struct shared {
    const cot__lin_job *job;
    int64_t             count, parts;
    char               *work;
    size_t              bytes; /* of work, for a part */
    bool                done[MOST_PARTS];
} shared;

static void run_part(void *ctx, int64_t part) {
    shared *s = ctx;
    int64_t end = cot__part_start(s->count, s->parts, part + 1);
    s->done[part] = true;
    for (int64_t i = cot__part_start(s->count, s->parts, part); i < end && s->done[part]; i++)
        s->done[part] = s->job->one(s->job, i, s->work + (size_t)part * s->bytes);
}

bool cot__lin_run(const cot__lin_job *j, int64_t count, double cost, double work, bool alone) {
    shared  s = {.job = j, .count = count};
    int64_t price = cost < 1 ? 1 : cost > 1e9 ? (int64_t)1e9 : (int64_t)cost;
    if (count == 0) return true;
    s.parts = alone ? 1 : cot__parts(count, price, MOST_PARTS);
    if (work > 0x1p60 / (double)s.parts) return false;
    s.bytes = ((size_t)work + 63) / 64 * 64 + 64;
    s.work = cot__alloc(j->al, s.bytes * (size_t)s.parts);
    if (!s.work) return false;
    if (s.parts == 1) run_part(&s, 0);
    else cot__parallel(s.parts, run_part, &s);
    bool done = true;
    for (int64_t p = 0; p < s.parts; p++) done &= s.done[p];
    cot__free(j->al, s.work, s.bytes * (size_t)s.parts);
    return done;
}
