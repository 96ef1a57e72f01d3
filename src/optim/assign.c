/* assign.c: writes to leaves and constants that stay, and the search for such writes before a
 * sweep. */
#include "diff/engine/sweep.h"
#include "optim/optim.h"
#include "pending/pending.h"
#include "ops/structural.h"
#include "tape/region.h"

#include <string.h>

/* ---- before a sweep -------------------------------------------------------------------------- */

/* Marks of nodes: an output depends on the node (MET); the node depends on an input (REACHED). */
enum { MET = 1, REACHED = 2 };

/* Does the sweep run the partial by operand a? If nothing is known of the inputs (met is NULL), it
 * runs all partials by active operands. */
static bool runs(const cot_tape *t, uint32_t a, const uint8_t *met) {
    return a != COT__NONE && (t->nodes[a].flags & COT__ACTIVE) && (!met || met[a] & REACHED);
}

/* The operands that are read by the partials of node i that the sweep runs, as a mask. UINT32_MAX
 * for a list of scalars: list_reads looks at its operands one by one. */
static uint32_t reads_of(const cot_tape *t, uint32_t i, const uint8_t *met) {
    const cot__node *n = &t->nodes[i];
    uint32_t         mask = 0;
    if (n->op >= OP_structural) return cot__op_of(n->op)->unwatched ? UINT32_MAX : 0;
    for (int k = 0, count = cot__nargs(n); k < count; k++)
        if (runs(t, cot__arg(n, k), met)) mask |= cot__elementwise_saves(n->op, k);
    return mask;
}

/* The same for operand k of a list of scalars. In a list of products operand k is read if the other
 * factor gets an adjoint; in a list of exponentials, if any operand does. */
static bool list_reads(const cot_tape *t, const cot__node *n, int k, const uint8_t *met) {
    int  count = cot__nargs(n), factor = cot__factor_of(cot__op_of(n->op), k, count);
    bool any = false;
    if (factor >= 0) return runs(t, cot__arg(n, factor), met);
    for (int j = 0; j < count && !any; j++) any = runs(t, cot__arg(n, j), met);
    return any;
}

/* Does node i, a scalar whose rule runs, read nothing that was assigned after i was recorded?
 * `report` sets the error. */
static bool reads_unassigned(cot_tape *t, uint32_t i, const uint8_t *met, bool report) {
    const cot__node *n = &t->nodes[i];
    if (!(n->flags & COT__ACTIVE) || cot__is_tensor(n) || !cot__in_switch(n) || cot__in_body(n)) return true;
    uint32_t reads = reads_of(t, i, met);
    for (int k = 0, count = reads ? cot__nargs(n) : 0; k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || !cot__saves_operand(reads, k) || !cot__assigned_since(t, a, i)) continue;
        if (reads == UINT32_MAX && !list_reads(t, n, k, met)) continue;
        return report && cot__saved_intact(t, i, a);
    }
    return true;
}

/* Goes down from the outputs, over nodes that depend on an input. */
static cot__onward meet(cot__flow *w, uint32_t i) {
    if (!(cot__flow_mark(w, i) & REACHED)) return COT__FLOW_PAST;
    return reads_unassigned(w->ctx, i, w->mark, true) ? COT__FLOW_ON : COT__FLOW_STOP;
}

/* Assigning a scalar leaves no trace at the nodes that read it, and runs over scalars do not check.
 * So this function checks before a sweep. First: does any scalar that is older than the last
 * assignment read an assigned value? (In a training loop that part of the tape holds only leaves.)
 * If so: can the sweep meet it? */
bool cot__leaves_unassigned(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs) {
    uint32_t hi = 0, end = 0;
    for (int k = 0; k < m; k++) hi = ys[k] > hi ? ys[k] : hi;
    while (end <= hi && end < t->assigned_at && reads_unassigned(t, end, NULL, false)) end++;
    if (m == 0 || end > hi || end == t->assigned_at) return true;
    cot__flow w;
    if (!cot__flow_open(&w, t, 0, hi + 1)) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to look for assigned leaves", op, cot__flow_bytes(&w));
        return false;
    }
    if (xs) {
        cot__flow_start(&w, n, xs, REACHED);
        cot__flow_up(&w, REACHED, COT__EDGES_MOVING);
    } else
        memset(w.mark, REACHED, cot__flow_bytes(&w));
    cot__flow_start(&w, m, ys, MET);
    w.visit = meet, w.ctx = t;
    bool clean = cot__flow_down(&w, MET, COT__EDGES_MOVING);
    cot__flow_close(&w);
    return clean;
}

/* ---- writes to leaves ------------------------------------------------------------------------ */

/* A leaf whose numbers were overwritten in place is assignable too: assigning gives it numbers
 * again. */
static bool assignable(cot_var leaf, const char *op, cot_tape **t, uint32_t *i) {
    char text[160];
    *t = cot__is_number(leaf) ? NULL : cot__usable(leaf.tape);
    *i = cot__index(leaf);
    if (!*t || (!cot_is_valid(leaf) && !cot__operand(*t, leaf, op, "", i)) || !cot__outside_bodies(*t, op))
        return false;
    if (cot__op_of((*t)->nodes[*i].op)->kind == KIND_SOURCE) return true;
    cot__fail(*t, COT_VALUE, "[%s] %s is computed from other values; only leaves and constants can be assigned", op,
              cot__describe(*t, *i, text, sizeof text));
    return false;
}

void cot__note_time(cot_tape *t, uint32_t i, cot__assigner who) {
    cot__node *n = &t->nodes[i];
    n->a = t->assigned_at = t->count;
    n->b = t->stamp * COT__ASSIGNERS + who;
    for (int k = 0; k < t->scopes.depth; k++) {
        cot__open_scope *s = &t->scopes.open[k];
        if (i < s->low) s->low = i;
        if (i >= s->high) s->high = i + 1;
    }
}

void cot__note_assign(cot_tape *t, uint32_t i, cot__assigner who) {
    cot__node *n = &t->nodes[i];
    if (cot__is_tensor(n)) {
        cot__bump(n->value.tensor->storage, COT__NONE);
        n->value.tensor->version = n->value.tensor->storage->version;
    }
    cot__note_time(t, i, who);
}

/* host: `from` is memory of the host. */
static cot_status assign_view(cot_tape *t, uint32_t i, const cot__view *from, bool host, cot__assigner who) {
    cot__settle(t, i);
    cot__view to = cot__look(t, i);
    (host ? t->backend->copy_in : t->backend->copy)(&to, from);
    cot__note_assign(t, i, who);
    return t->status;
}

cot_status cot__assign_doubles(cot_tape *t, uint32_t i, const double *x) {
    cot__view to = cot__look(t, i), from = to;
    int64_t   stride[COT_MAX_NDIM];
    cot__strides(to.ndim, to.shape, stride);
    memcpy(&from.data, &x, sizeof x); /* drops const; the memory is only read */
    from.dtype = COT_F64, from.stride = stride;
    return assign_view(t, i, &from, true, COT__ASSIGN_DATA);
}

cot_status(cot_assign)(cot_var leaf, cot_var value) {
    cot_tape *t;
    uint32_t  i, v;
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    cot__tape_beside("assign", "the leaf", 1, &leaf, 1, &value);
    if (!assignable(leaf, "assign", &t, &i)) return cot__status_of(1, &leaf);
    if (cot__is_number(value)) {
        double    number = cot__number_value(value);
        int64_t   stride[COT_MAX_NDIM] = {0}, whole = cot_value_i64(value);
        /* an integer beyond 2^53 is not exact as a double */
        bool      exact = (uintptr_t)value.tape == 2;
        cot__view to = cot__look(t, i), from = {&number, COT_F64, to.ndim, to.shape, stride};
        if (exact) from.data = &whole, from.dtype = COT_I64;
        return assign_view(t, i, &from, true, COT__ASSIGN);
    }
    if (!cot__operand(t, value, "assign", "new", &v)) return t->status;
    cot_shape want = cot__shape_at(t, i), have = cot__shape_at(t, v);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[assign] the value has shape %s, the leaf %s; they must be equal",
                  cot__shape_text_at(t, v, b), cot__shape_text_at(t, i, a));
        return t->status;
    }
    /* A view of the leaf itself would be read while it is written. */
    if (cot__has_axes(&t->nodes[v]) && t->nodes[v].value.tensor->storage == t->nodes[i].value.tensor->storage) {
        cot__fail(t, COT_VALUE,
                  "[assign] the value is a view of the leaf's own memory; compute it into memory of its own first");
        return t->status;
    }
    cot__view from = cot__look(t, v);
    return assign_view(t, i, &from, false, COT__ASSIGN);
}

cot_status cot_assign_data(cot_var leaf, const void *data) {
    cot_tape *t;
    uint32_t  i;
    if (!assignable(leaf, "assign_data", &t, &i)) return cot__status_of(1, &leaf);
    if (!data && cot__size_at(t, i) > 0) {
        cot__fail(t, COT_VALUE, "[assign_data] the data is NULL; it must hold %lld elements",
                  (long long)cot__size_at(t, i));
        return t->status;
    }
    cot__view to = cot__look(t, i);
    int64_t   stride[COT_MAX_NDIM];
    cot__strides(to.ndim, to.shape, stride);
    cot__view from = to;
    /* the copy of the pointer drops const; the memory is only read */
    memcpy(&from.data, &data, sizeof data);
    from.stride = stride;
    return assign_view(t, i, &from, true, COT__ASSIGN_DATA);
}

cot_var(cot_leaf)(cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "leaf", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, i);
    cot_dtype d = cot__dtype_at(&t->nodes[i]);
    cot_var   leaf = s.ndim ? cot_tensor(t, d, s, NULL) : cot_scalar_of(t, d, 0);
    if (t->status == COT_OK) (cot_assign)(leaf, x);
    return t->status == COT_OK ? leaf : INVALID(t);
}
