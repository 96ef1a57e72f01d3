/* tree.c: steps through trees (tree.h). */
#include "rules/elementwise_table.h"

_Static_assert(OP_elementwise_count <= UINT8_MAX, "a node of a tree holds its operation in a byte");

double cot__tree_number(const cot__tree *tree) {
#define NUMBER(k, number, c) [k] = number,
    static const double numbers[] = {TREE_NUMBERS(NUMBER, 0)};
    return numbers[tree->op];
}

const cot__tree *cot__tree_after(const cot__tree *tree) {
    for (int left = 1; left; tree++) left += tree->what == TREE_OP ? cot__elementwise_table[tree->op].arity - 1 : -1;
    return tree;
}
