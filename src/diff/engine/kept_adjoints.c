/* kept_adjoints.c: a reverse sweep whose adjoints stay to be looked at, and the contributions of
 * elementwise nodes one by one. */
#include "diff/engine/kept_adjoints.h"

#include "backend/elements.h"
#include "ops/structural.h"

#include <string.h>

/* ---- the sweep ------------------------------------------------------------------------------- */

static void want_all(cot_tape *t, uint32_t y, bool on) {
    for (uint32_t i = 0; i <= y; i++) {
        if (on && (t->nodes[i].flags & COT__ACTIVE)) t->nodes[i].flags |= COT__WANTED;
        if (!on) t->nodes[i].flags &= (uint8_t)~COT__WANTED;
    }
}

static bool seed_with(cot__sweep *s, uint32_t y, const cot__view *seed) {
    int64_t stride[COT_MAX_NDIM];
    double  all = !seed ? 1 : seed->ndim == 0 ? cot__element_f64(s->t->backend, seed, 0) : 0;
    if (!cot__is_tensor(&s->t->nodes[y])) {
        cot__slot_add(s->t, y, all);
        return true;
    }
    if (!cot__acc_own(s, y, true)) return false;
    cot__view g = cot__acc_bound(s, y, stride).view; /* new memory: nothing waits to touch it */
    if (seed && seed->ndim)
        s->t->backend->copy(&g, seed);
    else
        s->t->backend->fill(&g, all);
    return true;
}

bool cot__kept_adjoints_open(cot__kept_adjoints *w, cot_tape *t, uint32_t y, const cot__view *seed) {
    *w = (cot__kept_adjoints){.sweep = {.t = t, .lo = y, .top = y, .wanted_only = true}};
    if (t->status != COT_OK) {
        memcpy(w->why, t->errors.message, sizeof w->why);
        w->sweep.lo = y + 1;
        return false;
    }
    if (!(t->nodes[y].flags & COT__ACTIVE)) {
        w->sweep.lo = y + 1;
        return true;
    }
    const char *before = cot__ask(t, "sweep");
    if (!cot__may_sweep(t, "sweep") || !cot__leaves_unassigned(t, "sweep", 1, &y, 0, NULL) ||
        !cot__slots(t, y, 1, "sweep"))
        w->sweep.lo = y + 1; /* no slot was touched */
    else {
        want_all(t, y, true);
        if (seed_with(&w->sweep, y, seed)) cot__reverse(&w->sweep);
        want_all(t, y, false);
    }
    cot__asked(t, before);
    if (t->status == COT_OK) return true;
    memcpy(w->why, t->errors.message, sizeof w->why);
    w->short_of_memory = t->status == COT_MEMORY;
    cot_tape_clear_error(t);
    return false;
}

void cot__kept_adjoints_close(cot__kept_adjoints *w) { cot__sweep_close(&w->sweep, false); }

bool cot__kept_adjoint(const cot__kept_adjoints *w, uint32_t node, cot__view *g) {
    cot__arrival *a = cot__arrival_at(&w->sweep, node);
    if (!a) return false;
    *g = cot__look(w->sweep.t, node);
    if (!a->tensor.storage) {
        g->dtype = COT_F64;
        g->data = &a->scalar;
    } else {
        g->data = (char *)a->tensor.storage->data + a->tensor.offset * cot__dtype_size(g->dtype);
        g->stride = a->tensor.stride;
    }
    return true;
}

/* ---- contributions --------------------------------------------------------------------------- */

static size_t bytes_of(const cot__view *v) {
    size_t n = (size_t)(cot__count(v->ndim, v->shape) * cot__dtype_size(v->dtype));
    return n ? n : 1;
}

void *cot__contribution(cot_tape *t, uint32_t i, int k, const cot__view *g, cot__view *out,
                        int64_t stride[COT_MAX_NDIM]) {
    const cot__node *n = &t->nodes[i];
    cot_dtype        compute = cot__dtype_compute(cot__dtype_at(n));
    cot__view        xs[3], z = cot__look(t, i);
    cot__value       number;
    *out = z;
    cot__strides(z.ndim, z.shape, stride);
    out->stride = stride;
    out->data = cot__device_alloc(t, bytes_of(out));
    if (!out->data) return NULL;
    cot__operand_views(t, n, compute, xs, &number);
    cot__run_partials(t->backend, n->op, compute, cot__elementwise_arity(n->op), xs, &z, 1,
                      &(cot__term){k, false, *g, *out});
    return out->data;
}

void cot__contribution_free(cot_tape *t, void *data, const cot__view *out) {
    cot__device_free(t, data, bytes_of(out));
}

/* ---- looking around -------------------------------------------------------------------------- */

uint8_t *cot__ancestors(cot_tape *t, uint32_t y) {
    cot__flow w;
    if (!cot__flow_open(&w, t, 0, y + 1)) return NULL;
    cot__flow_start(&w, 1, &y, 1);
    cot__flow_down(&w, 1, COT__EDGES_ALL);
    return w.mark;
}

int64_t cot__first_odd(const cot__backend *b, const cot__view *v, int64_t *count) {
    cot__reader r;
    int64_t     first = -1;
    *count = 0;
    if (!cot__dtype_is_float(v->dtype)) return -1;
    cot__reader_open(&r, b, v);
    while (r.at < r.size)
        if (!isfinite(cot__reader_next(&r)) && (*count)++ == 0) first = r.at - 1;
    return first;
}

bool cot__all_zero(const cot__backend *b, const cot__view *v) {
    cot__reader r;
    cot__reader_open(&r, b, v);
    while (r.at < r.size)
        if (cot__reader_next(&r) != 0) return false;
    return true;
}
