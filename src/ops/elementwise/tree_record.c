/* tree_record.c: a rule recorded: its tree, walked, writes the operations. */
#include "ops/elementwise/elementwise.h"

typedef struct writer {
    cot_tape        *t;
    const cot__tree *at; /* the node that comes next */
    const cot_var   *xs;
    cot_var          z, g;
} writer;

/* Recursive over a rule, whose depth the table bounds; never over the tape. */
static cot_var record(writer *w) {
    cot_tape        *t = w->t;
    const cot__tree *tree = w->at++;
    switch (tree->what) {
    case TREE_OPERAND: return w->xs[tree->op];
    case TREE_RESULT: return w->z;
    case TREE_G: return w->g;
    case TREE_NUMBER: return cot_number(cot__tree_number(tree));
    }
    int     n = cot__elementwise_table[tree->op].arity;
    cot_var a[3] = {cot_number(0), cot_number(0), cot_number(0)};
    bool    numbers = true;
    for (int k = 0; k < n; k++) {
        a[k] = record(w);
        if (t->status != COT_OK) return INVALID(t);
        numbers &= cot__is_number(a[k]);
    }
    /* in the compute type of the rule, so that what is recorded has the bits of the kernels, which
     * fold nothing */
    if (numbers) return cot__fold(tree->op, cot__dtype_compute(cot_dtype_of(w->g)), n, a);
    return cot__call(tree->op, a);
}

cot_var cot__tree_record(cot_tape *t, const cot__tree *tree, const cot_var *xs, cot_var z, cot_var g) {
    return record(&(writer){t, tree, xs, z, g});
}
