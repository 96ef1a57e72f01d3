/* look.c: the operations of a called program, recorded for those who look into the call. */
#include "compile/call.h"

#include "compile/replay.h"

bool cot__call_inlined(cot__rule *r, const cot_var *xs, cot_var *zs) {
    const cot__call_node *c = cot__rule_attr(r)->pointer;
    const cot_program    *p = cot__call_runs(c);
    int                   m = cot_program_outputs(p);
    cot_var              *ys = cot__arena(r->t, ((size_t)m + 1) * sizeof *ys, "program_call");
    if (!ys || !cot__replay(r->t, p->source, xs, ys)) return false;
    for (int k = 0; k < m; k++) zs[cot__result_of_output(c->leading, k)] = ys[k];
    return true;
}
