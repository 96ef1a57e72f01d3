/* product_scalars.c: products over f64 scalars: a sweep carries up to four directions in its slots,
 * side by side. */
#include "diff/products/products.h"


/* The first node from i to hi that the scalar sweeps do not know. hi + 1: there is none. Most nodes
 * are elementwise and f64, which one load of the head shows. */
static uint32_t scalar_until(const cot__node *nodes, uint32_t i, uint32_t hi) {
    for (; i <= hi; i++) {
#if COT__HEADS
        uint64_t head = cot__head(&nodes[i]);
        if (LIKELY((head & (COT__HEAD_KIND | 0xffff)) < OP_structural)) continue;
#endif
        if (!cot__is_swept_scalar(&nodes[i])) break;
    }
    return i;
}

/* The tape often knows the answer, because it has recorded nothing but such scalars since
 * `scalars_from`. Otherwise all nodes are looked at first, which is cheap and mostly enough; then
 * only the nodes that ys need. */
bool cot__all_scalar(cot_tape *t, const char *op, uint32_t lo, uint32_t hi, const cot__side *ys) {
    if (lo >= t->scalars_from) return true;
    uint32_t i = scalar_until(t->nodes, lo, hi);
    if (i > hi) return true;
    uint8_t *needed = cot__needed(t, lo, hi, ys->n, ys->index, COT__EDGES_MOVING);
    bool     all = needed != NULL;
    if (!all)
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to mark what the results depend on", op,
                  (size_t)hi - lo + 1);
    for (; all && i <= hi; i = scalar_until(t->nodes, i + 1, hi)) all = !needed[i - lo];
    if (needed) cot__list_free(t, needed, (size_t)hi - lo + 1);
    return all;
}

static inline cot__slot_number *slot_at(const cot_tape *t, uint32_t i, int width) {
    return (cot__slot_number *)t->sweep.adjoints.data + (size_t)i * (size_t)width;
}

/* Adds rows of numbers, one for each lane, to the slots of these vars, or reads them from there. */
static void slots_add(const cot__side *vars, int width, int used, const double *rows) {
    for (int l = 0; l < used; l++, rows += vars->size)
        for (int k = 0; k < vars->n; k++) slot_at(vars->t, vars->index[k], width)[l] += rows[k];
}

static void slots_read(const cot__side *vars, int width, int used, double *rows) {
    for (int l = 0; l < used; l++, rows += vars->size)
        for (int k = 0; k < vars->n; k++) rows[k] = slot_at(vars->t, vars->index[k], width)[l];
}

static void slots_clear(cot_tape *t, uint32_t lo, uint32_t hi, int width) {
    if (lo <= hi)
        cot__list_clear(t, (char *)t->sweep.adjoints.data + (size_t)lo * 8 * (size_t)width,
                        ((size_t)hi - lo + 1) * 8 * (size_t)width);
}

/* One reverse sweep; `used` lanes hold directions. A run stops at a wanted node: the adjoint is
 * then complete, and is put back into its slot. */
void cot__reverse_products(cot__side *ys, cot__side *xs, const cot__scalar_runs *runs, int used, const double *seeds,
                           double *out) {
    cot_tape *t = ys->t;
    int       w = runs->lanes;
    uint32_t  lo = ys->lo < xs->lo ? ys->lo : xs->lo;
    slots_add(ys, w, used, seeds);
    int64_t      i = ys->hi;
    cot__windows windows = cot__windows_open(t, i);
    while (i >= (int64_t)xs->lo) {
        cot__windows_at(&windows, i);
        cot__node *n = &t->nodes[i];
        if (n->op == OP_leaf || n->kind != COT_F64 || !(n->flags & COT__ACTIVE)) {
            /* a node of another kind is not needed by ys */
            i--;
            continue;
        }
        uint8_t  stop = n->flags & (COT__WANTED | COT__RETAIN);
        uint32_t pushed = xs->lo; /* the run goes on down to the lowest input */
        /* the run empties the slot, and nothing is added to it any more */
        double   adjoint[4];
        for (int l = 0; l < used && (stop & COT__WANTED); l++) adjoint[l] = slot_at(t, (uint32_t)i, w)[l];
        n->flags &= (uint8_t)~stop;
        int64_t next = cot__windows_down(&windows, runs->reverse_f64, i, &pushed);
        n->flags |= stop;
        for (int l = 0; l < used && (stop & COT__WANTED); l++) slot_at(t, (uint32_t)i, w)[l] += adjoint[l];
        lo = pushed < lo ? pushed : lo;
        i = next < i ? next : i - 1;
    }
    slots_read(xs, w, used, out);
    slots_clear(t, lo, ys->hi > xs->hi ? ys->hi : xs->hi, w);
}

/* Sweeps node i alone, an input that is itself computed: it moves by its own tangent on top of the
 * tangent from its operands. */
static void forward_input(cot_tape *t, uint32_t i, const cot__scalar_runs *runs, cot__slot_number *slots) {
    double            given[4];
    cot__slot_number *at = slots + (size_t)i * (size_t)runs->lanes;
    for (int l = 0; l < runs->lanes; l++) given[l] = at[l];
    t->nodes[i].flags &= (uint8_t)~COT__WANTED;
    runs->forward_f64(t->nodes, i, i, slots);
    t->nodes[i].flags |= COT__WANTED;
    for (int l = 0; l < runs->lanes; l++) at[l] += given[l];
}

void cot__forward_lanes(cot_tape *t, uint32_t lo, uint32_t hi, const cot__scalar_runs *runs, void *slots) {
    uint32_t last = cot__window(t) > hi ? hi : 0;
    for (uint32_t i = lo; i <= hi;) {
        cot__windows_up(t, i, hi, &last);
        const cot__node *n = &t->nodes[i];
        /* a node that the sweep does not know is not needed by ys */
        bool known = cot__in_switch(n) && n->kind == COT_F64;
        if (!(n->flags & COT__ACTIVE) || !known)
            i++;
        else if (n->flags & COT__WANTED)
            forward_input(t, i++, runs, slots);
        else
            i = runs->forward_f64(t->nodes, i, last, slots);
    }
}

void cot__forward_products(cot__side *xs, cot__side *ys, const cot__scalar_runs *runs, int used, const double *tangents,
                           double *out) {
    cot_tape *t = xs->t;
    int       w = runs->lanes;
    slots_add(xs, w, used, tangents);
    cot__forward_lanes(t, xs->lo, ys->hi, runs, t->sweep.adjoints.data);
    slots_read(ys, w, used, out);
    uint32_t lo = xs->lo < ys->lo ? xs->lo : ys->lo, hi = xs->hi > ys->hi ? xs->hi : ys->hi;
    slots_clear(t, lo, hi, w);
}
