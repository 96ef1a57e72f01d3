/* kinks.c: two meanings of the conditions in kinks.def: a function on numbers, and a tree to print. */
#include "ops/kinks.h"

#define T double
#define F(name) name
#define S(name) name
#define N(name) name
#include "ops/kernel_vocabulary.h"
#define KINK(id, op, condition, ...)                                                                                         \
    static bool at_##id(double X, double Y, double W) { (void)X, (void)Y, (void)W; return (condition) != 0; }
#define KINK_OF(...)
#include "ops/kinks.def"
#include "ops/words_undef.h"

#define TREE(...) (&(const cot__tree){__VA_ARGS__})
#define X TREE(.what = TREE_OPERAND, .op = 0)
#define Y TREE(.what = TREE_OPERAND, .op = 1)
#define W TREE(.what = TREE_OPERAND, .op = 2)
#define K(c) TREE(.what = TREE_NUMBER, .number = (c))
#define OP1(name, a) TREE(.what = TREE_OP, .op = OP_##name, .arg = {a})
#define OP2(name, a, b) TREE(.what = TREE_OP, .op = OP_##name, .arg = {a, b})
#define OP3(name, a, b, c) TREE(.what = TREE_OP, .op = OP_##name, .arg = {a, b, c})
#include "ops/words_ops.h"

const cot__kink cot__kinks[KINK_count] = {
#define KINK(id, op, condition, convention, x, y, w, dx, dy, dw)                                                             \
    {OP_##op, condition, convention, at_##id, {x, y, w}, {dx, dy, dw}},
#define KINK_OF(...)
#include "ops/kinks.def"
};

const cot__array_kink cot__array_kinks[ARRAY_KINK_count] = {
#define KINK(...)
#define KINK_OF(id, op, condition, convention, ...) {OP_##op, condition, convention},
#include "ops/kinks.def"
};
