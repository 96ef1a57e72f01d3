/* axes.c: over which axes the loop of a group goes. */
#include "native/parts/choose.h"
#include "backend/runs.h"
#include "native/parts/shifts.h"
#include "program/emit/layout.h"
#include "rules/elementwise_ids.h"

#include <string.h>

enum { UNIT = 64, ENOUGH = 16 };

/* The views that the loop reads and writes in memory, one after the other. */
typedef bool see_view(const cot__view *v, void *ctx);

static bool is_made_in(const cot__choice *c, const cot__group *g, uint32_t root) {
    if (cot__value_origin(c->p, root) != COT__FROM_OPERATION) return false;
    uint32_t k = cot__value_maker(c->p, root);
    return k >= g->first && k < g->end;
}

static bool for_each_view(const cot__choice *c, const cot__group *g, see_view *see, void *ctx) {
    for (uint32_t k = g->first; k < g->end; k++) {
        const uint32_t *x = cot__operation_operand(c->p, k);
        cot__view       z = cot__value_view(c->p, c->p->operation[k].result);
        if (c->kind[k] != COT__AS_LOOP) continue;
        if (!see(&z, ctx)) return false;
        for (int i = 0; i < cot__operation_operands(c->p, k); i++) {
            if (x[i] == COT__NO_VALUE || is_made_in(c, g, c->plan.root[x[i]])) continue;
            cot__view v = cot__plan_view(&c->plan, x[i]);
            if (v.ndim > 0 && !see(&v, ctx)) return false;
        }
    }
    return true;
}

static bool is_flat(const cot__view *v, void *ctx) {
    (void)ctx;
    return cot__is_contiguous(v->ndim, v->shape, v->stride) || cot__repeats(v);
}

static bool has_size(const cot__view *v, void *ctx) { return cot__view_size(v) == *(const int64_t *)ctx; }

/* Is all that the loop makes and reads again read where it is made? `shifted`: or a range of it. */
static bool is_straight(const cot__choice *c, const cot__group *g, bool shifted) {
    for (uint32_t k = g->first; k < g->end; k++) {
        const uint32_t *x = cot__operation_operand(c->p, k);
        bool reads = c->kind[k] == COT__AS_LOOP || c->kind[k] == COT__AS_FOLD;
        for (int i = 0; reads && i < cot__operation_operands(c->p, k); i++) {
            if (x[i] == COT__NO_VALUE || !is_made_in(c, g, c->plan.root[x[i]])) continue;
            cot__view v = cot__plan_view(&c->plan, x[i]), root = cot__value_view(c->p, c->plan.root[x[i]]);
            if (!cot__is_contiguous(v.ndim, v.shape, v.stride)) return false;
            if (!shifted && cot__view_size(&v) != cot__view_size(&root)) return false;
        }
    }
    return true;
}

static bool has_shape(const cot__view *v, void *ctx) {
    const cot__view *z = ctx;
    return v->ndim == z->ndim && memcmp(v->shape, z->shape, (size_t)z->ndim * sizeof *z->shape) == 0;
}

/* Are axis and the one behind it one axis of the view? */
typedef struct joint { int axis, next; } joint;
static bool is_joined(const cot__view *v, void *ctx) {
    const joint *j = ctx;
    return v->stride[j->axis] == v->stride[j->next] * v->shape[j->next];
}

/* From the last axis on; a part of it that has one position does not count. */
static void join_axes(const cot__choice *c, const cot__group *g, const cot__view *z, cot__loop_axes *a) {
    int     axis[COT_MAX_NDIM], n = 0;
    int64_t extent[COT_MAX_NDIM];
    for (int k = z->ndim - 1, before = -1; k >= 0; k--) {
        if (z->shape[k] == 1) continue;
        joint j = {k, before};
        if (before >= 0 && for_each_view(c, g, is_joined, &j)) extent[n - 1] *= z->shape[k];
        else axis[n] = k, extent[n++] = z->shape[k];
        before = k;
    }
    a->count = n;
    for (int k = 0; k < n; k++) a->axis[k] = axis[n - 1 - k], a->extent[k] = extent[n - 1 - k];
}

/* The outermost, unless it is short and another one is longer. */
static int shared_axis(const cot__loop_axes *a) {
    int best = 0;
    for (int k = 1; k < a->count; k++)
        if (a->extent[best] < ENOUGH && a->extent[k] > a->extent[best]) best = k;
    return best;
}

static bool has_trig(const cot__choice *c, const cot__group *g) {
    for (uint32_t k = g->first; k < g->end; k++) {
        int op = c->p->operation[k].op;
        if (op == OP_sin || op == OP_cos || op == OP_tan) return true;
    }
    return false;
}

/* Over the largest member. Sines would be looked at for each shift, and are the executor's. */
static bool find_shifted_axes(const cot__choice *c, const cot__group *g, cot__loop_axes *a) {
    cot__loop_cuts cuts;
    *a = (cot__loop_axes){.flat = true, .count = 1, .extent = {g->size}, .unit = UNIT};
    return for_each_view(c, g, is_flat, NULL) && is_straight(c, g, true) && !has_trig(c, g) &&
           cot__find_cuts(c, g, &cuts);
}

bool cot__find_axes(const cot__choice *c, const cot__group *g, cot__loop_axes *a) {
    cot__view z = {0};
    if (cot__is_shifted(c, g)) return find_shifted_axes(c, g, a);
    for (uint32_t k = g->first; k < g->end; k++)
        if (c->kind[k] == COT__AS_LOOP) z = cot__value_view(c->p, c->p->operation[k].result);
    int64_t size = cot__view_size(&z);
    *a = (cot__loop_axes){.unit = 1};
    if (!for_each_view(c, g, has_size, &size) || !is_straight(c, g, false)) return false;
    if (for_each_view(c, g, is_flat, NULL)) {
        a->flat = true;
        a->count = 1;
        a->extent[0] = size;
    } else if (for_each_view(c, g, has_shape, &z)) join_axes(c, g, &z, a);
    else return false;
    a->shared = shared_axis(a);
    if (a->count && a->shared == a->count - 1) a->unit = UNIT;
    return true;
}
