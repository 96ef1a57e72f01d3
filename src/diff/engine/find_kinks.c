/* find_kinks.c: does the operation of a node sit exactly on a kink? */
#include "diff/engine/find_kinks.h"
#include "tape/scope.h"
#include "tape/show.h"

#include <stdio.h>

/* Does anything that wants a derivative flow into the node? (Operations without derivative are
 * themselves inactive.) */
bool cot__has_active_operand(const cot_tape *t, uint32_t i) {
    for (int k = 0, count = cot__nargs(&t->nodes[i]); k < count; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a != COT__NONE && (t->nodes[a].flags & COT__ACTIVE)) return true;
    }
    return false;
}

bool cot__operands_are_there(const cot_tape *t, uint32_t i) {
    for (int k = 0, count = cot__nargs(&t->nodes[i]); k < count; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a != COT__NONE && cot__overwritten(t, a, i)) return false;
    }
    return true;
}

/* ---- kinks ----------------------------------------------------------------------------------- */

/* The operation of node i on its values. False: it has more operands than what can kink. */
static bool job_at(const cot_tape *t, uint32_t i, cot__job *j, cot__view *x, cot__view *more, cot__value *number) {
    const cot__node *n = &t->nodes[i];
    bool             structural = n->op >= OP_structural;
    *j = (cot__job){.backend = t->backend, .op = n->op, .record = cot__op_of(n->op), .n = cot__nargs(n), .x = x};
    if (j->n > COT__KINK_OPERANDS) return false;
    j->attr = structural ? n->extra.attr : NULL;
    j->z = cot__look(t, i);
    j->more = more;
    if (!structural) return cot__operand_views(t, n, cot__dtype_compute(cot__dtype_at(n)), x, number), true;
    for (int k = 0; k < j->n; k++) x[k] = cot__look(t, cot__arg(n, k));
    for (int k = 1, m = cot__results_at(t, i); k < m && k < COT__JOB_RESULTS; k++)
        more[k - 1] = cot__look(t, i + (uint32_t)k);
    return true;
}

void cot__find_kinks(cot__findings *r, uint32_t i) {
    const cot__node *n = &r->t->nodes[i];
    cot__job         j;
    cot__view        x[COT__KINK_OPERANDS], more[COT__JOB_RESULTS - 1];
    cot__value       number;
    if (!cot__can_kink(n->op) || !cot__operands_are_there(r->t, i) || cot__is_stale(n)) return;
    if (!job_at(r->t, i, &j, x, more, &number)) return;
    r->j = &j;
    r->node = i;
    cot__kinks_of(r);
    r->j = NULL;
}

/* ---- operations that stand for others -------------------------------------------------------- */

/* The operations from node `first` on. */
static void look_behind(cot__findings *f, uint32_t first) {
    snprintf(f->where, sizeof f->where, "In a called program: ");
    for (uint32_t i = first; i < f->t->count; i++)
        if (cot__has_active_operand(f->t, i)) cot__find_kinks(f, i);
    f->where[0] = 0;
}

/* They are recorded behind the end of the tape, looked at, and forgotten. */
void cot__find_kinks_inside(cot__findings *f, uint32_t i) {
    cot_tape  *t = f->t;
    if (!cot__op_of(t->nodes[i].op)->inlined || !cot__operands_are_there(t, i)) return;
    cot_mark   mark = cot__mark(t);
    uint32_t   first = t->count;
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot__rule  r = {.t = t, .node = i, .op = cot__op_of(t->nodes[i].op)};
    int        n = cot__nargs(&t->nodes[i]), m = cot__results_at(t, i);
    cot_var   *xs = cot__arena(t, ((size_t)n + (size_t)m + 1) * sizeof *xs, "report");
    t->mode.no_grad = 0;
    for (int k = 0; xs && k < n; k++) xs[k] = VAR(t, cot__arg(&t->nodes[i], k));
    if (xs && r.op->inlined(&r, xs, xs + n)) look_behind(f, first);
    cot__scope_close_unnoted(t, &scope);
    cot__rewind(t, mark);
}
