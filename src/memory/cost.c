/* cost.c: what it costs to compute a value again. */
#include "memory/memory.h"
#include "ops/costs.h"
#include "rules/elementwise_table.h"
#include "rules/structural_ids.h"

enum { ELEMENTARY = 8 }; /* a function like exp, beside an addition */

static double operations(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    if (n->op == OP_constant) return ELEMENTARY * (double)cot__size_at(t, i); /* random numbers */
    if (n->op >= OP_structural) return cot__cost_of_value(t, i);
    return (double)cot__size_at(t, i) * (cot__elementwise_table[n->op].class == REAL ? ELEMENTARY : 1);
}

double cot__cost_again(const cot_tape *t, uint32_t operation) {
    double moved = 0;
    for (int k = 0, m = cot__results_at(t, operation); k < m; k++)
        moved += (double)cot__size_at(t, operation + (uint32_t)k);
    for (int k = 0, n = cot__nargs(&t->nodes[operation]); k < n; k++) moved += cot__operand_size(t, operation, k);
    return operations(t, operation) + moved;
}
