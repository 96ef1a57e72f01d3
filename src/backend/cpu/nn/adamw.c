/* adamw.c: the AdamW update in one pass. Elements are independent of each other, so the work is
 * shared out freely. */
#include "backend/cpu/nn/nn.h"
#include "base/parallel.h"

#define PASS(NAME, T, SQRT)                                                                                            \
    static void NAME(const cot__adamw_pass *p, int64_t start, int64_t stop) {                                          \
        T *restrict w = p->w, *restrict m = p->m, *restrict v = p->v;                                                  \
        const T *restrict g = p->g;                                                                                    \
        const T keep = (T)p->keep, b1 = (T)p->b1, c1 = (T)(1 - p->b1), b2 = (T)p->b2, c2 = (T)(1 - p->b2);             \
        const T rate = (T)p->rate, spread = (T)p->spread, eps = (T)p->eps;                                             \
        for (int64_t i = start; i < stop; i++) {                                                                       \
            m[i] = b1 * m[i] + c1 * g[i];                                                                              \
            v[i] = b2 * v[i] + c2 * (g[i] * g[i]);                                                                     \
            w[i] = keep * w[i] - rate * m[i] / (SQRT(v[i]) * spread + eps);                                            \
        }                                                                                                              \
    }
PASS(pass_f64, double, sqrt)
PASS(pass_f32, float, sqrtf)

typedef struct share { const cot__adamw_pass *pass; int64_t parts; } share;

static void run(void *ctx, int64_t part) {
    const share *s = ctx;
    int64_t      n = s->pass->n;
    (s->pass->dtype == COT_F64 ? pass_f64 : pass_f32)(s->pass, cot__part_start(n, s->parts, part),
                                                      cot__part_start(n, s->parts, part + 1));
}

void cot__adamw(const cot__adamw_pass *p) {
    share s = {p, cot__parts(p->n, 8, 64)};
    cot__parallel(s.parts, run, &s);
}
