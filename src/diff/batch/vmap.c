/* vmap.c: cot_vmap. A function is recorded once, on the first elements of a batch, and then played
 * for all elements at once.
 *
 * Operations that depend on no batched input are done once. All others have the batch as axis 0 of
 * operands and result. The user may choose other axes: they are moved to the front before, and back
 * afterwards. The rules are in ops/replay. */
#include "rules/structural_ids.h"
#include "diff/batch/vmap.h"
#include "ops/structural.h"
#include "tape/scope.h"

#include <string.h>

/* ---- inputs ---------------------------------------------------------------------------------- */

typedef struct inputs {
    int      n;
    cot_var *x;       /* the values; batched ones have the batch as axis 0 */
    cot_var *example; /* the first element of each value */
    bool    *is;
    int64_t  extent;
} inputs;

/* All batched inputs must have the extent of the first one. */
static bool same_extent(cot_tape *t, inputs *in, int k, int axis, int64_t extent, int *first) {
    if (*first < 0) {
        *first = k;
        in->extent = extent;
    }
    if (extent == in->extent) return true;
    cot__fail(t, COT_SHAPE, "[vmap] axis %d of xs[%d] has extent %lld, the batch of xs[%d] %lld; all have the same",
              axis, k, (long long)extent, *first, (long long)in->extent);
    return false;
}

static bool enter_inputs(cot_tape *t, inputs *in, const cot_var *xs, const int *axes) {
    int first = -1;
    for (int k = 0; k < in->n; k++) {
        int      axis = axes ? axes[k] : 0;
        uint32_t i;
        if (!cot__enter_listed(t, xs[k], "vmap", "xs", k, "", &i)) return false;
        in->x[k] = in->example[k] = VAR(t, i);
        in->is[k] = axis != COT_NOT_BATCHED;
        if (!in->is[k]) continue;
        if (!cot__check_axis(t, "vmap", axis, cot__ndim_at(t, i), &axis)) return false;
        if (!same_extent(t, in, k, axis, cot__layout_at(t, i).shape[axis], &first)) return false;
        in->x[k] = cot__moved_axis(VAR(t, i), axis, 0);
        in->example[k] = cot__failed(in->x[k]) ? in->x[k] : cot__first_slice(t, in->x[k]);
        if (t->status != COT_OK) return false;
    }
    if (first >= 0) return true;
    cot__fail(t, COT_VALUE,
              "[vmap] none of the %d inputs is batched; give one of them an axis, or call the function itself", in->n);
    return false;
}

/* ---- playing --------------------------------------------------------------------------------- */

/* Memory for one operation at a time: as many as any has. */
typedef struct step_lists {
    cot_var *xs, *more; /* operands; further results */
    bool    *batched;   /* which operands have the batch */
    bool    *results;   /* which results have it */
    bool    *is;        /* of each value of the body: does it depend on the batch? */
    size_t   bytes;
} step_lists;

static bool lists_open(step_lists *l, cot_tape *t, const cot__region *r) {
    int operands = 1, results = 1;
    for (uint32_t s = 0; s < r->steps; s++) {
        uint32_t node = r->node[s];
        int      n = cot__nargs(&t->nodes[node]), m = t->nodes[node].op == OP_pick ? 1 : cot__results_at(t, node);
        operands = n > operands ? n : operands;
        results = m > results ? m : results;
    }
    size_t vars = (size_t)operands + (size_t)results, values = (size_t)(r->n + r->captures) + r->fixed + r->steps;
    l->bytes = vars * (sizeof(cot_var) + 1) + values + 1;
    l->xs = cot__alloc(&t->al, l->bytes);
    if (!l->xs) {
        cot__fail(t, COT_MEMORY, "[vmap] out of memory: the values of a body of %u operations", r->steps);
        return false;
    }
    l->more = l->xs + operands;
    l->batched = (bool *)(l->xs + vars);
    l->results = l->batched + operands;
    l->is = l->results + results;
    return true;
}

/* Does the value of a step depend on the batch, where `l->batched` tells which operands do? Picks
 * follow their operation, which has found it for all of its results. */
static bool step_is(cot_tape *t, uint32_t node, int n, const step_lists *l, bool *is) {
    cot__rule r = {.t = t, .node = node, .op = cot__op_of(t->nodes[node].op)};
    uint32_t  of = cot__operation_at(t, node);
    *is = false;
    for (int k = 0; k < n; k++) *is |= l->batched[k];
    if (!cot__op_of(t->nodes[of].op)->reached) return true;
    if (of == node && !r.op->reached(&r, l->batched, l->results)) return false;
    *is = l->results[node - of];
    return true;
}

/* Finds which values of a program depend on a batched input or capture (`given`). The answer for
 * value ref is is[ref]. (Programs of bodies have places `ref` where tapes have nodes: see
 * flow.h.) */
static bool spread(cot_tape *t, const cot__region *r, const bool *given, const step_lists *l) {
    size_t          outer = (size_t)(r->n + r->captures);
    const uint64_t *ref = r->ref;
    memset(l->is, 0, outer + r->fixed + r->steps);
    memcpy(l->is, given, outer);
    for (uint32_t s = 0; s < r->steps; s++) {
        int n = cot__nargs(&t->nodes[r->node[s]]);
        for (int k = 0; k < n; k++, ref++) l->batched[k] = *ref != COT__REF_NUMBER && l->is[*ref];
        if (!step_is(t, r->node[s], n, l, &l->is[outer + r->fixed + s])) return false;
    }
    return true;
}

/* Plays one operation of the body on the present values of its operands. Its further results are
 * the next steps, where they are needed. */
static bool play_step(cot__player *p, int64_t extent, uint32_t step, const uint64_t *ref,
                      const step_lists *l) {
    const cot__region *r = p->region;
    uint32_t           node = r->node[step], place = (uint32_t)(r->n + r->captures) + r->fixed + step;
    int                n = cot__nargs(&p->t->nodes[node]);
    cot_var           *xs = l->xs;
    bool              *batched = l->batched;
    if (p->t->nodes[node].op == OP_pick) {
        p->value[place] = l->more[node - p->t->nodes[node].a - 1];
        return true;
    }
    for (int k = 0; k < n; k++) {
        bool number = ref[k] == COT__REF_NUMBER;
        xs[k] = number ? COT_NONE : p->value[ref[k]];
        batched[k] = !number && l->is[ref[k]];
    }
    if (p->t->nodes[node].op == OP_watch) {
        p->value[place] = INVALID(p->t);
        return cot__play_watch(p->t, r->name, node, xs);
    }
    cot__scope scope = cot__scope_open(p->t, cot__replay_mask(p->t, node, p->t->active_mask));
    p->value[place] = cot__reapply_batched(p->t, node, &(cot__batch){extent, n, batched}, xs, l->more);
    cot__scope_close(p->t, &scope);
    return p->t->status == COT_OK;
}

/* A result with its batch at the axis that the user wants, counted in the shape with the batch. */
static cot_var placed(cot_tape *t, cot_var y, bool is, int64_t extent, int k, const int *axes) {
    int axis = axes ? axes[k] : 0;
    if (axis == COT_NOT_BATCHED && is)
        return cot__fail(t, COT_VALUE,
                         "[vmap] ys[%d] is to have no batch, but depends on a batched input; give it an axis", k);
    if (axis == COT_NOT_BATCHED) return cot__own(y, COT__VIEW); /* y may be a node of the body */
    cot_shape s = cot_shape_of(y);
    if (!is) s = cot__batch_shape(t, extent, s);
    if (t->status != COT_OK || !cot__check_axis(t, "vmap", axis, s.ndim, &axis)) return INVALID(t);
    return cot__unchanged(cot__moved_axis(is ? y : cot_broadcast_to(y, s), 0, axis), COT__VIEW);
}

bool cot__play_batched(cot_tape *t, const char *op, const cot__region *r, const cot_var *values, const bool *given,
                       int64_t extent, cot_var *out, bool *out_is) {
    const uint64_t *ref = r->ref;
    step_lists      l;
    cot__player     p;
    if (!lists_open(&l, t, r)) return false;
    bool ok = cot__player_open(&p, t, op, r) && spread(t, r, given, &l);
    if (ok) memcpy(p.value, values, (size_t)(r->n + r->captures) * sizeof *values);
    for (uint32_t s = 0; ok && s < r->steps; s++) {
        ok = play_step(&p, extent, s, ref, &l);
        ref += cot__nargs(&t->nodes[r->node[s]]);
    }
    for (int k = 0; ok && k < r->m; k++) out[k] = p.value[ref[k]], out_is[k] = l.is[ref[k]];
    if (!ok) cot__error_in_function(t, "body", op);
    cot__player_close(&p);
    cot__free(&t->al, l.xs, l.bytes);
    return ok;
}

bool cot__batch_reaches(cot_tape *t, const cot__region *r, const bool *given, bool *out_is) {
    const uint64_t *ref = r->ref;
    step_lists      l;
    if (!lists_open(&l, t, r)) return false;
    bool ok = spread(t, r, given, &l);
    for (uint32_t s = 0; s < r->steps; s++) ref += cot__nargs(&t->nodes[r->node[s]]);
    for (int k = 0; ok && k < r->m; k++) out_is[k] = l.is[ref[k]];
    cot__free(&t->al, l.xs, l.bytes);
    return ok;
}

static void run(cot_tape *t, const cot__region *r, const inputs *in, cot_var *ys, const int *axes) {
    size_t   count = (size_t)(r->n + r->captures);
    cot_var *values = cot__arena(t, count * sizeof *values, "vmap");
    bool    *given = values ? cot__arena(t, count + (size_t)r->m, "vmap") : NULL;
    if (!given) return;
    bool *is = given + count;
    memcpy(values, in->x, (size_t)r->n * sizeof *values);
    memcpy(given, in->is, (size_t)r->n);
    for (int k = 0; k < r->captures; k++) values[r->n + k] = VAR(t, r->captured[k]), given[r->n + k] = false;
    bool ok = cot__play_batched(t, "vmap", r, values, given, in->extent, ys, is);
    for (int k = 0; k < r->m && ok; k++) {
        ys[k] = placed(t, ys[k], is[k], in->extent, k, axes);
        ok = t->status == COT_OK;
    }
}

static cot_status map(cot_fn f, void *user, int n, const cot_var *xs, const int *in_axes, int m, cot_var *ys,
                      const int *out_axes) {
    cot_tape *t = cot__tape_of(n, xs);
    if (!t) return cot__status_of(n, xs);
    if (!cot__check_call(t, "vmap", f, n, xs, m, ys)) return t->status;
    inputs in = {.n = n};
    in.x = cot__arena(t, 2 * (size_t)n * sizeof *in.x + (size_t)n, "vmap");
    if (!in.x) return t->status;
    in.example = in.x + n;
    in.is = (bool *)(in.example + n);
    if (!enter_inputs(t, &in, xs, in_axes)) return t->status;
    const cot__region *r = cot__region_record(t, cot__vmap_name, f, user, n, in.example, m);
    if (r) run(t, r, &in, ys, out_axes);
    return t->status;
}

/* The results may be written where the inputs are. After a failure they are invalid. */
cot_status cot_vmap(cot_fn f, void *user, int n, const cot_var *xs, const int *in_axes, int m, cot_var *ys,
                    const int *out_axes) {
    cot_var    none = cot__invalid(n, xs);
    cot_status status = map(f, user, n, xs, in_axes, m, ys, out_axes);
    for (int k = 0; ys && k < m && status != COT_OK; k++) ys[k] = none;
    return status;
}
