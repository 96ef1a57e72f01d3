/* sparsity_index.c: operations that are linear once positions stand, which were computed from the
 * inputs (the argsort behind a sort, the largest of a window). At another point the positions may
 * be others, so every element that they could choose counts. And operations that tell what they
 * read, by places that stand: those of sparse matrices. */
#include "diff/sparse/sparsity.h"

enum { VALUES, POSITIONS, UPDATES };

/* Positions along one axis. `whole` is the array that has the axis; `picked` has the axes of the
 * positions in its place. take makes the picked array from the whole one, scatter_add adds the
 * picked one to the whole. All other axes are shared. */
static bool along_axis(cot__patterns *p, uint32_t node, uint32_t x, bool x_is_whole, int positions) {
    int       axis = (int)p->t->nodes[node].extra.attr->ints[0], whole[COT_MAX_NDIM], picked[COT_MAX_NDIM], n = 0;
    cot_shape s = cot__shape_at(p->t, x_is_whole ? x : node);
    for (int b = 0; b < s.ndim; b++)
        if (b != axis) whole[n] = b, picked[n++] = b < axis ? b : b - 1 + positions;
    return cot__contract(p, node, x, n, x_is_whole ? whole : picked, x_is_whole ? picked : whole);
}

/* Writes `space` extents to the end of to[3]; the extents before them are 1. */
static void spread(int space, const int64_t *from, int64_t to[3]) {
    for (int k = 0; k < 3; k++) to[k] = k < 3 - space ? 1 : from[k - (3 - space)];
}

/* max_pool and max_take, and their transpose max_unpool (gives_back): every element of a window may
 * be the largest. */
static bool over_windows(cot__patterns *p, uint32_t node, bool gives_back) {
    cot_tape        *t     = p->t;
    const cot__attr *a     = t->nodes[node].extra.attr;
    uint32_t         x     = cot__arg(&t->nodes[node], VALUES);
    int              space = (int)a->nints / 4;
    cot_shape        s     = cot__shape_at(t, gives_back ? x : node);
    int64_t window[3], stride[3], before[3], full[3], pooled[3], planes = cot__count(s.ndim - space, s.dim), q = 0,
                                                                 at[3], w[3];
    cot__set *z = cot__sets_at(p, node);
    if (!z) return false;
    spread(space, a->ints, window);
    spread(space, a->ints + space, stride);
    spread(space, a->ints + 2 * space, before);
    spread(space, a->ints + 3 * space, full);
    spread(space, s.dim + s.ndim - space, pooled);
    for (int k = 0; k < 3 - space; k++) before[k] = 0;
    for (int64_t plane = 0; plane < planes; plane++)
        for (at[0] = 0; at[0] < pooled[0]; at[0]++)
            for (at[1] = 0; at[1] < pooled[1]; at[1]++)
                for (at[2] = 0; at[2] < pooled[2]; at[2]++, q++)
                    for (w[0] = 0; w[0] < window[0]; w[0]++)
                        for (w[1] = 0; w[1] < window[1]; w[1]++)
                            for (w[2] = 0; w[2] < window[2]; w[2]++) {
                                int64_t e      = plane;
                                bool    inside = true;
                                for (int k = 0; k < 3; k++) {
                                    int64_t i = at[k] * stride[k] - before[k] + w[k];
                                    inside    = inside && i >= 0 && i < full[k];
                                    e         = e * full[k] + i;
                                }
                                if (inside)
                                    cot__set_add(p, &z[gives_back ? e : q], cot__set_at(p, x, gives_back ? q : e));
                            }
    return true;
}

/* The operation chooses elements of x, or of the updates of x, along one axis. */
static bool on_axis(cot__patterns *p, uint32_t node, const cot__op_choice *choice) {
    const cot__node *n = &p->t->nodes[node];
    uint32_t         x = cot__arg(n, VALUES);
    int              axes = choice->along ? 1 : cot__shape_at(p->t, cot__arg(n, POSITIONS)).ndim;
    if (!choice->puts) return along_axis(p, node, x, true, axes);
    uint32_t updates = cot__arg(n, UPDATES);
    return cot__same_pattern(p, node, VALUES) &&
           (!cot__depends(p, updates) || along_axis(p, node, updates, false, axes));
}

bool cot__chosen_pattern(cot__patterns *p, uint32_t node) {
    const cot__op_choice *choice = &cot__op_of(p->t->nodes[node].op)->choice;
    switch (choice->from) {
    case COT__CHOOSES_ON_AXIS: return on_axis(p, node, choice);
    case COT__CHOOSES_IN_WINDOW: return over_windows(p, node, choice->puts);
    case COT__CHOOSES_NOTHING: break;
    }
    return cot__dense_pattern(p, node);
}

/* ---- operations that tell what they read ----------------------------------------------------- */

typedef struct reached {
    cot__patterns *p;
    uint32_t       x;
    cot__set      *z;
} reached;

static void add_one(void *ctx, int64_t z, int64_t x) {
    const reached *r = ctx;
    cot__set_add(r->p, &r->z[z], cot__set_at(r->p, r->x, x));
}

static void add_all(void *ctx, int64_t z, int64_t x, int64_t n) {
    const reached *r = ctx;
    cot__set       all = 0;
    for (int64_t k = 0; k < n; k++) cot__set_add(r->p, &all, cot__set_at(r->p, r->x, x + k));
    for (int64_t k = 0; k < n; k++) cot__set_add(r->p, &r->z[z + k], all);
}

bool cot__reached_pattern(cot__patterns *p, uint32_t node) {
    cot_tape      *t = p->t;
    const cot__op *op = cot__op_of(t->nodes[node].op);
    int            last = cot__nargs(&t->nodes[node]) - 1;
    uint32_t       at = cot__arg(&t->nodes[node], last);
    uint8_t        varies = cot__varies(p, at);
    if (varies & COT__VARIES) return cot__dense_pattern(p, node);
    p->consulted |= varies;
    cot__rule r = {.t = t, .node = node, .op = op};
    int64_t   count = cot__size_at(t, at);
    size_t    bytes = (size_t)count * sizeof(int64_t) + 8;
    int64_t  *places = cot__alloc(&t->al, bytes);
    cot__set *z = cot__sets_at(p, node);
    cot__view view = cot__look(t, at);
    if (!places) return cot__patterns_short(p);
    bool ok = z && cot__read_view(t, p->op, &view, COT_I64, places, count) == COT_OK;
    for (int k = 0; k < last && ok; k++) {
        reached to = {p, cot__arg(&t->nodes[node], k), z};
        if (cot__moves(p, node, k)) op->reach(&(cot__reading){&r, k, places, count, &to, add_one, add_all});
    }
    cot__free(&t->al, places, bytes);
    return ok;
}
