/* sweep.c: the steps of the reverse sweep. The library sweeps once and keeps its adjoints; then the
 * rule of each node runs again, alone. */
#include "trace/build.h"

#include <string.h>

/* The adjoint of a node as the sweep had it, where the rule can read it. Zeros where nothing
 * arrived. */
static cot__view adjoint_of(cot__trace_build *b, uint32_t id, bool *arrived) {
    static const int64_t still[COT_MAX_NDIM];
    static double        zero[2];
    cot_tape            *t = b->trace.t;
    cot__view            g;
    *arrived = cot__kept_adjoint(&b->watch, id, &g);
    if (!*arrived) {
        cot__view v = cot__look(t, id);
        return (cot__view){zero, v.dtype, v.ndim, v.shape, still};
    }
    if (cot__is_tensor(&t->nodes[id])) return g;
    cot__view kept = cot__trace_array(b, &g, cot__dtype_at(&t->nodes[id]), false);
    if (kept.data) cot__store_f64(kept.data, kept.dtype, *(const double *)g.data);
    return kept;
}

/* Has any result of the operation an adjoint? */
static bool any_arrived(cot__trace_build *b, uint32_t id) {
    cot__view g;
    uint32_t  end = id + (uint32_t)cot__results_at(b->trace.t, id);
    for (uint32_t i = id; i < end && i <= b->top; i++)
        if (cot__kept_adjoint(&b->watch, i, &g)) return true;
    return false;
}

static bool add_step(cot__trace_build *b, int64_t node, cot__trace_giver *giver, cot__trace_step *out) {
    uint32_t id = b->trace.nodes[node].id;
    bool     arrived;
    cot__view g = adjoint_of(b, id, &arrived);
    *out = (cot__trace_step){.node = (uint32_t)node, .adjoint = arrived ? cot__trace_shown(b, &g) : g};
    if (b->failed) return false;
    cot__kind kind = cot__op_of(b->trace.nodes[node].op)->kind;
    /* a pick is swept with its operation */
    if (kind == KIND_SOURCE || kind == KIND_PICK) return true;
    out->skipped = !any_arrived(b, id);
    if (out->skipped) return true;
    giver->id = id;
    giver->g = g;
    if (!arrived) giver->g.data = NULL;
    giver->count = giver->capacity = 0;
    giver->adds = NULL;
    if (!cot__trace_give(giver)) return false;
    out->adds = giver->adds;
    out->add_count = giver->count;
    return true;
}

static bool make_steps(cot__trace_build *b) {
    cot__trace      *tr = &b->trace;
    int64_t          count = 0;
    size_t           sums = (size_t)tr->node_count * sizeof(cot__view);
    cot__trace_giver giver = {.sweep = {.t = tr->t}, .build = b};
    for (int64_t i = 0; i < tr->node_count; i++) count += (b->marks[tr->nodes[i].id] & COT__TRACE_FLOWS) != 0;
    tr->steps = cot__trace_memory(b, (size_t)count * sizeof *tr->steps);
    giver.sums = cot__alloc(&tr->t->al, sums);
    bool ok = tr->steps && giver.sums;
    if (giver.sums) memset(giver.sums, 0, sums);
    for (int64_t i = tr->node_count; ok && i-- > 0;)
        if (b->marks[tr->nodes[i].id] & COT__TRACE_FLOWS) ok = add_step(b, i, &giver, &tr->steps[tr->step_count++]);
    cot__free(&tr->t->al, giver.sums, giver.sums ? sums : 0);
    return ok;
}

bool cot__trace_sweep(cot__trace_build *b) {
    cot__trace *tr = &b->trace;
    cot_tape   *t = tr->t;
    uint32_t    y = tr->nodes[tr->output].id;
    b->watching = true;
    if (!cot__kept_adjoints_open(&b->watch, t, y, &b->seed)) {
        memcpy(tr->why, b->watch.why, sizeof tr->why);
        return strstr(tr->why, "out of memory") == NULL;
    }
    bool ok = make_steps(b);
    if (t->status != COT_OK) {
        if (t->status == COT_MEMORY) b->failed = true;
        memcpy(tr->why, t->errors.message, sizeof tr->why);
        tr->step_count = 0;
        cot_tape_clear_error(t);
        return !b->failed;
    }
    return ok;
}
