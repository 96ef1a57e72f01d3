/* tree.h: the tree meaning of rules.def: a rule as data, walked to record derivatives and to print
 * formulas.
 *
 * A tree is an array of its nodes in the order in which a rule is written, an operation before its
 * operands: SDIV(G, MUL(K(2), Z)) is sdiv g mul 2 z. A node takes two bytes, because there are a
 * thousand of them; so numbers stand in a list of their own. */
#ifndef COT_TREE_H
#define COT_TREE_H

#include <math.h>
#include <stdint.h>

enum { TREE_OPERAND, TREE_RESULT, TREE_G, TREE_NUMBER, TREE_OP };

typedef struct cot__tree {
    uint8_t what;
    /* TREE_OP: an elementwise operation; TREE_OPERAND: 0, 1, 2; TREE_NUMBER: place in the list */
    uint8_t op;
} cot__tree;

/* The numbers of rules.def and kinks.def. For a number that is missing here a rule would need the
 * variable below, which does not exist: so the compiler refuses the rule. -0 would count as 0. */
extern const uint8_t cot__number_missing_in_tree_h;
/* clang-format off */
#define TREE_NUMBERS(_, c)                                                                            \
    _(1, 0, c) _(2, 1, c) _(3, 2, c) _(4, 3, c) _(5, 4, c) _(6, 6, c)                                 \
    _(7, -1, c) _(8, -3, c) _(9, 0.5, c) _(10, -0.5, c) _(11, INFINITY, c) _(12, -INFINITY, c)        \
    _(13, 0.69314718055994530942, c) _(14, 2.3025850929940456840, c)   /* log 2, log 10 */            \
    _(15, 1.1283791670955125739, c) _(16, 0.88622692545275801365, c)   /* 2/sqrt(pi), sqrt(pi)/2 */   \
    _(17, -0.70710678118654752440, c) _(18, 0.39894228040143267794, c) /* -1/sqrt(2), 1/sqrt(2pi) */ \
    _(19, 1.5957691216057307117, c) _(20, 0.071354816272600248, c)     /* gelu_tanh */                \
    _(21, 0.214064448817800744, c)                                     /* gelu_tanh */                \
    _(22, 1.0507009873554804934, c) _(23, 1.7580993408473768599, c)    /* selu */
/* clang-format on */
#define TREE_NUMBER_IS(k, number, c) (c) == (number) ? k :
#define TREE_NUMBER_OF(c) (TREE_NUMBERS(TREE_NUMBER_IS, c) cot__number_missing_in_tree_h)

double cot__tree_number(const cot__tree *tree);
/* The node behind the whole tree: the next operand, or the end. */
const cot__tree *cot__tree_after(const cot__tree *tree);

#endif
