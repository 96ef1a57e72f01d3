/* sgd.c: w -= rate g in one pass, each product and difference rounded, as cot_sub(w, cot_mul(rate,
 * g)) would. */
#include "backend/cpu/nn/nn.h"
#include "base/parallel.h"

typedef struct descent { cot_dtype dtype; void *w; const void *g; double rate; int64_t n, parts; } descent;

static void descend(void *ctx, int64_t part) {
    const descent *d = ctx;
    int64_t        start = cot__part_start(d->n, d->parts, part), stop = cot__part_start(d->n, d->parts, part + 1);
    if (d->dtype == COT_F64) {
        double *restrict w = d->w;
        const double *restrict g = d->g;
        for (int64_t i = start; i < stop; i++) w[i] = w[i] - d->rate * g[i];
    } else {
        float *restrict w = d->w, rate = (float)d->rate;
        const float *restrict g = d->g;
        for (int64_t i = start; i < stop; i++) w[i] = w[i] - rate * g[i];
    }
}

void cot__sgd(cot_dtype dtype, int64_t n, void *w, const void *g, double rate) {
    descent d = {dtype, w, g, rate, n, cot__parts(n, 1, 64)};
    cot__parallel(d.parts, descend, &d);
}
