/* product_scalars.c: products over f64 scalars: a sweep carries up to two directions in its slots, side by side. */
#include "diff/products.h"

#include <string.h>

static bool is_scalar_run(const cot__node *n) {
    return !(n->flags & COT__ACTIVE) || ((cot__in_switch(n) || n->op == OP_leaf) && n->kind == COT_F64);
}

/* First without regard to what the ys need, which is cheap and mostly enough. */
bool cot__all_scalar(cot_tape *t, const char *op, uint32_t lo, uint32_t hi, const cot__side *ys) {
    uint32_t i = lo;
    while (i <= hi && is_scalar_run(&t->nodes[i])) i++;
    if (i > hi) return true;
    uint8_t *needed = cot__needed(t, lo, hi, ys->n, ys->index, false);
    bool     all = needed != NULL;
    if (!all) cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to mark what the results depend on", op, (size_t)hi - lo + 1);
    for (; all && i <= hi; i++) all = !needed[i - lo] || is_scalar_run(&t->nodes[i]);
    if (needed) cot__free(&t->al, needed, (size_t)hi - lo + 1);
    return all;
}

static void slot_add(cot_tape *t, uint32_t i, int width, int lane, double v) {
    char *p = (char *)t->adjoints.data + (size_t)i * 8 * (size_t)width;
    ((double *)(void *)p)[lane] += v;
}

static double slot_get(const cot_tape *t, uint32_t i, int width, int lane) {
    const char *p = (const char *)t->adjoints.data + (size_t)i * 8 * (size_t)width;
    return ((const double *)(const void *)p)[lane];
}

static void slots_clear(cot_tape *t, uint32_t lo, uint32_t hi, int width) {
    if (lo <= hi) memset((char *)t->adjoints.data + (size_t)lo * 8 * (size_t)width, 0, ((size_t)hi - lo + 1) * 8 * (size_t)width);
}

/* One reverse sweep, `used` of its lanes real. Wanted nodes stop the run: their adjoint is complete then, and stays in its slot. */
void cot__reverse_products(cot__side *ys, cot__side *xs, const cot__runs *runs, int used, const double *seeds, double *out) {
    cot_tape *t = ys->t;
    int       w = runs->lanes;
    uint32_t  lo = ys->lo < xs->lo ? ys->lo : xs->lo;
    for (int k = 0; k < ys->n; k++)
        for (int l = 0; l < used; l++) slot_add(t, ys->index[k], w, l, seeds[(int64_t)l * ys->size + k]);
    int64_t i = ys->hi;
    while (i >= (int64_t)xs->lo) {
        cot__node *n = &t->nodes[i];
        if (n->op == OP_leaf || n->op == OP_constant || cot__is_tensor(n) || !cot__dtype_is_float((cot_dtype)n->kind) ||
            !(n->flags & COT__ACTIVE)) {
            i--;
            continue;
        }
        uint8_t  stop = n->flags & (COT__WANTED | COT__RETAIN);
        uint32_t pushed = xs->lo; /* the run goes on down to the lowest input */
        double   adjoint[8];      /* the run consumes it; nothing is added to it any more */
        for (int l = 0; l < used && (stop & COT__WANTED); l++) adjoint[l] = slot_get(t, (uint32_t)i, w, l);
        n->flags &= (uint8_t)~stop;
        int64_t next = runs->reverse_f64(t->nodes, i, t->adjoints.data, &pushed);
        n->flags |= stop;
        for (int l = 0; l < used && (stop & COT__WANTED); l++) slot_add(t, (uint32_t)i, w, l, adjoint[l]);
        lo = pushed < lo ? pushed : lo;
        i = next < i ? next : i - 1;
    }
    for (int k = 0; k < xs->n; k++)
        for (int l = 0; l < used; l++) out[(int64_t)l * xs->size + k] = slot_get(t, xs->index[k], w, l);
    slots_clear(t, lo, ys->hi > xs->hi ? ys->hi : xs->hi, w);
}

/* Runs over node i alone, an input that is itself computed: it moves by its own tangent on top of what moves it. */
static void forward_input(cot_tape *t, uint32_t i, const cot__runs *runs, cot__slot_number *slots) {
    double            given[2];
    cot__slot_number *at = slots + (size_t)i * (size_t)runs->lanes;
    for (int l = 0; l < runs->lanes; l++) given[l] = at[l];
    t->nodes[i].flags &= (uint8_t)~COT__WANTED;
    runs->forward_f64(t->nodes, i, i, slots);
    t->nodes[i].flags |= COT__WANTED;
    for (int l = 0; l < runs->lanes; l++) at[l] += given[l];
}

void cot__forward_lanes(cot_tape *t, uint32_t lo, uint32_t hi, const cot__runs *runs, void *slots) {
    for (uint32_t i = lo; i <= hi;) {
        const cot__node *n = &t->nodes[i];
        bool known = cot__in_switch(n) && n->kind == COT_F64; /* what is not known here is not needed either */
        if (!(n->flags & COT__ACTIVE) || !known)
            i++;
        else if (n->flags & COT__WANTED)
            forward_input(t, i++, runs, slots);
        else
            i = runs->forward_f64(t->nodes, i, hi, slots);
    }
}

void cot__forward_products(cot__side *xs, cot__side *ys, const cot__runs *runs, int used, const double *tangents, double *out) {
    cot_tape *t = xs->t;
    int       w = runs->lanes;
    for (int k = 0; k < xs->n; k++)
        for (int l = 0; l < used; l++) slot_add(t, xs->index[k], w, l, tangents[(int64_t)l * xs->size + k]);
    cot__forward_lanes(t, xs->lo, ys->hi, runs, t->adjoints.data);
    for (int k = 0; k < ys->n; k++)
        for (int l = 0; l < used; l++) out[(int64_t)l * ys->size + k] = slot_get(t, ys->index[k], w, l);
    uint32_t lo = xs->lo < ys->lo ? xs->lo : ys->lo, hi = xs->hi > ys->hi ? xs->hi : ys->hi;
    slots_clear(t, lo, hi, w);
}
