/* recipe.c: making ranges of arrays that are not written. */
#include "backend/cpu/recipe.h"
#include "base/parallel.h"

#include <string.h>

/* ---- axes ---------------------------------------------------------------------------------------------------------------------- */

static bool one_axis(const cot__recipe *r, int outer, int inner) {
    for (int l = 0; l < r->leaves; l++)
        if (r->leaf[l].stride[outer] != r->leaf[l].stride[inner] * r->shape[inner]) return false;
    return true;
}

static void move_axis(cot__recipe *r, int from, int to) {
    r->shape[to] = r->shape[from];
    for (int l = 0; l < r->leaves; l++) r->leaf[l].stride[to] = r->leaf[l].stride[from];
}

cot__recipe cot__recipe_merged(const cot__recipe *r) {
    cot__recipe m = *r;
    m.ndim = 0;
    for (int k = 0; k < r->ndim; k++) {
        if (r->shape[k] == 1) continue;
        move_axis(&m, k, m.ndim);
        if (m.ndim > 0 && one_axis(&m, m.ndim - 1, m.ndim)) {
            int64_t outer = m.shape[m.ndim - 1];
            move_axis(&m, m.ndim, m.ndim - 1);
            m.shape[m.ndim - 1] *= outer;
        } else
            m.ndim++;
    }
    if (m.ndim == 0) {
        m.ndim = 1;
        m.shape[0] = 1;
        for (int l = 0; l < m.leaves; l++) m.leaf[l].stride[0] = 0;
    }
    return m;
}

/* The index of element `first`. */
static void seek(const cot__recipe *r, int64_t first, int64_t *index) {
    for (int k = r->ndim - 1; k > 0; k--) {
        index[k] = first % r->shape[k];
        first /= r->shape[k];
    }
    index[0] = first;
}

static void next_row(const cot__recipe *r, int64_t *index) {
    int k = r->ndim - 1;
    index[k] = 0;
    while (--k >= 0 && ++index[k] == r->shape[k]) index[k] = 0;
}

static int64_t offset_of(const cot__recipe *r, int leaf, const int64_t *index) {
    int64_t at = 0;
    for (int k = 0; k < r->ndim; k++) at += index[k] * r->leaf[leaf].stride[k];
    return at;
}

/* ---- ranges --------------------------------------------------------------------------------------------------------------------- */

#define T double
#define N(name) name##_f64
#include "backend/cpu/recipe_template.h"

#define T float
#define N(name) name##_f32
#include "backend/cpu/recipe_template.h"

void cot__recipe_load(const cot__recipe *r, int64_t first, int n, void *to) {
    int64_t index[COT__RECIPE_AXES];
    seek(r, first, index);
    if (r->dtype == COT_F64) load_f64(r, index, n, to);
    else load_f32(r, index, n, to);
}

typedef struct share { const cot__recipe *r; int64_t blocks, parts, size; } share;

static void write_part(void *ctx, int64_t part) {
    const share *s = ctx;
    int          bytes = cot__dtype_size(s->r->dtype);
    int64_t      last = cot__part_start(s->blocks, s->parts, part + 1);
    for (int64_t b = cot__part_start(s->blocks, s->parts, part); b < last; b++) {
        int64_t at = b * COT__BLOCK;
        cot__recipe_load(s->r, at, (int)(s->size - at < COT__BLOCK ? s->size - at : COT__BLOCK), (char *)s->r->data + at * bytes);
    }
}

void cot__recipe_write(const cot__recipe *r) {
    cot__recipe m = cot__recipe_merged(r);
    share       s = {&m, 0, 1, cot__count(m.ndim, m.shape)};
    s.blocks = (s.size + COT__BLOCK - 1) / COT__BLOCK;
    s.parts = cot__parts(s.blocks, COT__BLOCK * m.steps, 64);
    if (s.size > 0) cot__parallel(s.parts, write_part, &s);
}
