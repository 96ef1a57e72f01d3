/* scalars.c: the interpreter of instructions on slots: one switch made from rules.def, each case
 * the arithmetic that records the operation on scalars (ops/elementwise/scalar.c). */
#include "program/scalars.h"
#include "base/math/special.h"
#include "rules/elementwise_ids.h"
#include "rules/elementwise_table.h"

#define T double
#define F(name) cot__##name
#define S(name) name
#define N(name) name##_f64
#include "rules/words/kernel_words.h"
#undef T
#undef F
#undef S
#undef N
#define T float
#define F(name) cot__##name##f
#define S(name) name##f
#define N(name) name##_f32
#include "rules/words/kernel_words.h"
#undef T
#undef F
#undef S
#undef N

/* A test answers with a bool; the first operand of `where` is one. */
#define CASE(name, cls, kind, X, Y, W)                                                                                 \
    if (cls == TEST) slots[c->z].u8 = name##_value_##kind(X, Y, W) != 0;                                               \
    else slots[c->z].kind = name##_value_##kind(X, Y, W);                                                              \
    break;
#define AT(operand, kind) slots[c->operand].kind
#define FIRST(name, kind) (OP_##name == OP_where ? AT(x, u8) : AT(x, kind))

#define UNARY(name, cls, ...)                                                                                          \
    case 2 * OP_##name: CASE(name, cls, f64, AT(x, f64), 0, 0)                                                         \
    case 2 * OP_##name + 1: CASE(name, cls, f32, AT(x, f32), 0, 0)
#define BINARY(name, cls, ...)                                                                                         \
    case 2 * OP_##name: CASE(name, cls, f64, AT(x, f64), AT(y, f64), 0)                                                \
    case 2 * OP_##name + 1: CASE(name, cls, f32, AT(x, f32), AT(y, f32), 0)
#define TERNARY(name, cls, ...)                                                                                        \
    case 2 * OP_##name: CASE(name, cls, f64, FIRST(name, f64), AT(y, f64), AT(w, f64))                                 \
    case 2 * OP_##name + 1: CASE(name, cls, f32, FIRST(name, f32), AT(y, f32), AT(w, f32))

void cot__scalars_run(const cot__scalar *code, uint32_t n, cot__slot *slots) {
    for (const cot__scalar *c = code; c < code + n; c++) switch (c->code) {
#include "rules/rules.def"
        }
}
