/* cost_node.c: operations and bytes of the value of one node. */
#include "trace/cost/cost.h"

#include "ops/costs.h"
#include "trace/cost/cost_rules.h"

int64_t cot__cost_of_tree(const cot__tree *tree) {
    int64_t n = 0;
    for (const cot__tree *end = tree ? cot__tree_after(tree) : tree; tree < end; tree++) n += tree->what == TREE_OP;
    return n;
}

uint32_t cot__values_read(const cot_tape *t, uint32_t node) {
    const cot__node *n = &t->nodes[node];
    uint32_t         unwatched = n->flags & COT__ACTIVE ? cot__op_of(n->op)->unwatched : 0;
    return unwatched | cot__saved_mask(t, node);
}

bool cot__shares_storage(const cot_tape *t, uint32_t node, uint32_t *with) {
    const cot__node *n = &t->nodes[node];
    for (int k = 0, count = cot__is_tensor(n) ? cot__nargs(n) : 0; k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || !cot__is_tensor(&t->nodes[a]) ||
            t->nodes[a].value.tensor->storage != n->value.tensor->storage)
            continue;
        *with = a;
        return true;
    }
    return false;
}

void cot__cost_of_node(const cot_tape *t, uint32_t node, int64_t *operations, int64_t *bytes) {
    const cot__node *n = &t->nodes[node];
    double           size = (double)cot__size_at(t, node);
    uint32_t         with;
    if (n->op < OP_elementwise_count)
        *operations = (int64_t)size * cot__cost_of_tree(cot__elementwise_table[n->op].value);
    else
        *operations = (int64_t)ceil(cot__cost_of_value(t, node));
    *bytes = cot__shares_storage(t, node, &with) ? 0 : (int64_t)size * cot__dtype_size(cot__dtype_at(n));
}
