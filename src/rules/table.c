/* table.c: the saves (saves.h) and tree meanings of rules.def, as one constant table. Trees
 * (tree.h) are constants, so nothing is built at run time. */
#include "rules/elementwise_ids.h"
#include "rules/rules.h"
#include "rules/saves.h"
#include "rules/words_tree.h"

const cot__elementwise_info cot__elementwise_table[OP_elementwise_count] = {
#define UNARY(name, cls, value, dx, lo, hi) {#name, 1, cls, AS_TREE(value), {AS_TREE(dx)}, {name##_dX_saves}, lo, hi},
#define BINARY(name, cls, value, dx, dy, lo, hi)                                                                       \
    {#name, 2, cls, AS_TREE(value), {AS_TREE(dx), AS_TREE(dy)}, {name##_dX_saves, name##_dY_saves}, lo, hi},
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi)                                                                  \
    {#name,                                                                                                            \
     3,                                                                                                                \
     cls,                                                                                                              \
     AS_TREE(value),                                                                                                   \
     {AS_TREE(dx), AS_TREE(dy), AS_TREE(dw)},                                                                          \
     {name##_dX_saves, name##_dY_saves, name##_dW_saves},                                                              \
     lo,                                                                                                               \
     hi},
#include "rules/rules.def"
};

/* The records of elementwise operations, as the tape sees them: operands without derivative, and
 * all values that any partial reads. NONE becomes the bit of the operand. */
#undef X
#undef Y
#undef W
#undef Z
#undef G
#undef OP1
#undef OP2
#undef OP3
#define X 0
#define Y 0
#define W 0
#define Z 0
#define G 0
#define K(c) 0
#define NONE 1
#define OP1(name, a) 0
#define OP2(name, a, b) 0
#define OP3(name, a, b, c) 0
#include "rules/words_ops.h"
#define KIND(inactive, arity) ((inactive) == (1 << (arity)) - 1 ? KIND_NONE : KIND_GENERIC)
/* partials that are products of one value, or read a sign alone */
#define ROUNDS(op)                                                                                                     \
    ((op) == OP_mul || (op) == OP_smul || (op) == OP_fma || (op) == OP_square || (op) == OP_exp || (op) == OP_exp2 ||  \
     (op) == OP_abs || (op) == OP_relu || (op) == OP_leaky_relu)
#define ROW(op, arity, none, reads)                                                                                    \
    {.name = #op, .kind = KIND(none, arity), .inactive = (none), .saves = (reads), .rounds = ROUNDS(OP_##op)},
const cot__op cot__elementwise_ops[OP_elementwise_count] = {
#define UNARY(name, cls, value, dx, lo, hi) ROW(name, 1, dx, name##_dX_saves)
#define BINARY(name, cls, value, dx, dy, lo, hi) ROW(name, 2, (dx) | (dy) << 1, name##_dX_saves | name##_dY_saves)
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi)                                                                  \
    ROW(name, 3, (dx) | (dy) << 1 | (dw) << 2, name##_dX_saves | name##_dY_saves | name##_dW_saves)
#include "rules/rules.def"
};

int      cot__elementwise_arity(int op) { return cot__elementwise_table[op].arity; }
bool     cot__op_is_test(int op) { return cot__elementwise_table[op].class == TEST; }
uint32_t cot__elementwise_saves(int op, int k) { return cot__elementwise_table[op].saves[k]; }

const char *cot__operand_name(int op, int k) {
    static const char *const usual[] = {"x", "y", "w"};
    static const char *const own[OP_elementwise_count][3] = {
#define OPERANDS(name, first, second, third) [OP_##name] = {first, second, third},
#include "rules/operands.def"
    };
    return own[op][k] ? own[op][k] : usual[k];
}
