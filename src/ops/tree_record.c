/* tree_record.c: a rule recorded: its tree, walked, writes the operations. */
#include "ops/elementwise.h"

/* Recursive over a rule, whose depth the table bounds; never over the tape. */
cot_var cot__tree_record(cot_tape *t, const cot__tree *tree, const cot_var *xs, cot_var z, cot_var g) {
    switch (tree->what) {
    case TREE_OPERAND: return xs[tree->op];
    case TREE_RESULT: return z;
    case TREE_G: return g;
    case TREE_NUMBER: return cot_number(tree->number);
    case TREE_OP: break;
    }
    int     n = cot__elementwise_table[tree->op].arity;
    cot_var a[3] = {cot_number(0), cot_number(0), cot_number(0)};
    bool    numbers = true, single = true, tensor = cot__is_tensor(&t->nodes[cot__index(g)]);
    for (int k = 0; k < n; k++) {
        a[k] = cot__tree_record(t, tree->arg[k], xs, z, g);
        if (t->status != COT_OK) return INVALID(t);
        numbers &= cot__is_number(a[k]);
        single &= cot__is_number(a[k]) || !cot__is_tensor(&t->nodes[cot__index(a[k])]);
    }
    /* In the compute type of the rule and, for a tensor, in its kernels, so that what is recorded has the bits of the kernels,
     * which fold nothing and repeat a single value before they take its logarithm. */
    cot_dtype compute = cot__dtype_compute(cot_dtype_of(g));
    if (numbers) return cot__fold((tensor ? cot__blocks : cot__plain_blocks)(tree->op, compute), compute, n, a);
    if (tensor && single && cot__elementwise_table[tree->op].class == REAL)
        for (int k = 0; k < n; k++)
            if (!cot__is_number(a[k])) a[k] = cot_broadcast_to(a[k], cot_shape_of(g));
    return cot__call(tree->op, a);
}
