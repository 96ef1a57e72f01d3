/* play.c: a body that was recorded for one element is played for all elements of a batch at once.
 *
 * Operations that depend on no batched input are done once. All others have the batch as axis 0 of
 * operands and result. The rules are in ops/replay. */
#include "rules/structural_ids.h"
#include "diff/batch/vmap.h"
#include "ops/structural.h"
#include "tape/scope.h"

#include <string.h>

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
    p->t->mode.repeats |= p->t->nodes[node].flags & COT__REPEATS;
    p->value[place] = cot__reapply_batched(p->t, node, &(cot__batch){extent, n, batched}, xs, l->more);
    cot__scope_close(p->t, &scope);
    return p->t->status == COT_OK;
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
