/* colours.c: the kernels of sparse matrices: seeds of one colour, and entries picked from
 * products. */
#include "backend/cpu/strip.h"
#include "base/parallel.h"

typedef struct seeds {
    const int32_t   *colours;
    int32_t          colour;
    int64_t          n, parts;
    const cot__view *to;
} seeds;

static void ones(const int32_t *colours, int32_t colour, int64_t n, double *to) {
    for (int64_t j = 0; j < n; j++) to[j] = colours[j] == colour;
}

static void seed_part(void *ctx, int64_t part) {
    const seeds *s = ctx;
    int64_t      j = cot__part_start(s->n, s->parts, part), end = cot__part_start(s->n, s->parts, part + 1);
    double       block[COT__BLOCK];
    char        *to = s->to->data;
    if (s->to->dtype == COT_F64) {
        ones(s->colours + j, s->colour, end - j, (double *)(void *)to + j);
        return;
    }
    for (int64_t n; j < end; j += n) {
        n = end - j < COT__BLOCK ? end - j : COT__BLOCK;
        ones(s->colours + j, s->colour, n, block);
        cot__strip(s->to->dtype, COT_F64)(to + j * cot__dtype_size(s->to->dtype), 1, block, 1, (int)n);
    }
}

void cot__equal_to(const int32_t *which, int32_t value, const cot__view *z) {
    seeds s = {.colours = which, .colour = value, .n = cot__count(z->ndim, z->shape), .to = z};
    s.parts = cot__parts(s.n, 1, 64);
    cot__parallel(s.parts, seed_part, &s);
}

typedef struct gather { const cot__picks *p; int64_t parts; } gather;

static void pick_part(void *ctx, int64_t part) {
    const gather     *g = ctx;
    const cot__picks *p = g->p;
    int64_t           k = p->first + cot__part_start(p->n, g->parts, part),
            end         = p->first + cot__part_start(p->n, g->parts, part + 1);
    const int32_t    *source = p->source;
    const uint8_t    *lane = p->lane;
    if (!p->entry)
        for (; k < end; k++) p->values[k] = p->products[lane[k]][source[k]];
    else
        for (const uint32_t *entry = p->entry; k < end; k++) p->values[entry[k]] = p->products[lane[k]][source[k]];
}

void cot__pick(const cot__picks *p) {
    gather g = {p, cot__parts(p->n, 4, 64)};
    cot__parallel(g.parts, pick_part, &g);
}
