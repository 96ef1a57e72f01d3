/* words_tree.h: the words of rules.def as nodes of a tree (tree.h), in the order in which they are
 * written. Every word is a list in parentheses, (SOME, node, node, …) or (NO), so that no macro
 * sees its commas; AS_TREE opens the list. No include guard on purpose. */
#define JOIN_NODES(list) WITHOUT_HEAD list
#define WITHOUT_HEAD(head, ...) __VA_ARGS__
#define AS_TREE(list) CHOOSE_TREE list
#define CHOOSE_TREE(head, ...) head##_TREE(__VA_ARGS__)
#define SOME_TREE(...) ((const cot__tree[]){__VA_ARGS__})
#define NO_TREE(...) NULL

#define X (SOME, {TREE_OPERAND, 0})
#define Y (SOME, {TREE_OPERAND, 1})
#define W (SOME, {TREE_OPERAND, 2})
#define Z (SOME, {TREE_RESULT, 0})
#define G (SOME, {TREE_G, 0})
#define K(c) (SOME, {TREE_NUMBER, TREE_NUMBER_OF(c)})
#define NONE (NO, 0)
#define OP1(name, a) (SOME, {TREE_OP, OP_##name}, JOIN_NODES(a))
#define OP2(name, a, b) (SOME, {TREE_OP, OP_##name}, JOIN_NODES(a), JOIN_NODES(b))
#define OP3(name, a, b, c) (SOME, {TREE_OP, OP_##name}, JOIN_NODES(a), JOIN_NODES(b), JOIN_NODES(c))
#include "rules/elementwise_ids.h"
#include "rules/words_ops.h"
