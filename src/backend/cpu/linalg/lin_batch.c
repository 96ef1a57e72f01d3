/* lin_batch.c: matrices of a batch shared out over threads, and the memory they are done in. The
 * parts depend on the number of matrices and their size only. */
#include "backend/cpu/linalg/lin.h"

#include "base/parallel.h"

enum { MOST_PARTS = 64, LINE = 64 };

typedef struct shared {
    const cot__lin_job *job;
    int64_t             count, parts;
    char               *work;
    size_t              bytes; /* of work, for a part */
} shared;

static void run_part(void *ctx, int64_t part) {
    const shared *s = ctx;
    int64_t       end = cot__part_start(s->count, s->parts, part + 1);
    void         *work = s->bytes ? s->work + (size_t)part * s->bytes : NULL;
    for (int64_t i = cot__part_start(s->count, s->parts, part); i < end; i++) s->job->one(s->job, i, work);
}

static int64_t parts_of(const cot__lin_plan *p) {
    if (p->shared >= 0 || p->count == 1) return 1;
    int64_t price = p->cost < 1 ? 1 : p->cost > 1e9 ? (int64_t)1e9 : (int64_t)p->cost;
    return cot__parts(p->count, price, MOST_PARTS);
}

/* What is too much stays too much. */
static double whole_lines(double bytes) {
    return bytes < 0x1p61 ? (double)(((int64_t)bytes + LINE - 1) / LINE * LINE) : bytes;
}

int64_t cot__lin_bytes(const cot__lin_plan *p) {
    if (p->count == 0) return 0;
    double bytes = (p->tells ? whole_lines((double)p->count) : 0) + whole_lines(p->work) * (double)parts_of(p) +
                   (p->shared > 0 ? p->shared : 0);
    return bytes < 0x1p62 ? (int64_t)bytes : -1;
}

static void report(const uint8_t *bad, int64_t count, int64_t *status) {
    status[0] = status[1] = 0;
    for (int64_t i = 0; i < count; i++)
        if (bad[i] && status[0]++ == 0) status[1] = i;
}

void cot__lin_run(cot__lin_job *j, const cot__lin_plan *p, void *scratch, int64_t *status) {
    char  *memory = scratch;
    shared s = {.job = j, .count = p->count, .parts = parts_of(p), .bytes = (size_t)whole_lines(p->work)};
    if (status) report(NULL, 0, status);
    if (p->count == 0) return;
    if (status) {
        j->bad = scratch;
        memset(j->bad, 0, (size_t)p->count);
        memory += (size_t)whole_lines((double)p->count);
    }
    s.work = memory;
    if (p->shared > 0) j->room = (cot__lent){memory + s.bytes, (size_t)p->shared};
    if (s.parts == 1) run_part(&s, 0);
    else cot__parallel(s.parts, run_part, &s);
    if (status) report(j->bad, p->count, status);
}

static double most(double x, double y) { return x > y ? x : y; }

double cot__lin_system_room(cot_dtype d, int64_t n, int64_t k) {
    return most((double)cot__gemm_workspace(d, n, k, n), (double)cot__gemm_workspace(d, k, n, n));
}

/* Vᵀ V, Vᵀ c and the update of c. */
double cot__lin_block_room(cot_dtype d, int64_t m, int64_t n) {
    enum { WIDE = COT__LIN_BASE };
    double inner = (double)cot__gemm_workspace(d, WIDE, WIDE, m), left = (double)cot__gemm_workspace(d, WIDE, n, m);
    return most(most(inner, left), (double)cot__gemm_workspace(d, m, n, WIDE));
}
