/* scalars.c: the interpreter of instructions on slots, made from rules.def: each instruction is the
 * arithmetic that records the operation on scalars (ops/elementwise/scalar.c), and jumps to the
 * next one itself, so that a processor guesses each jump by what came before it. */
#include "program/scalars.h"
#include "base/math/special.h"
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

/* A product, then a sum or a difference that reads it, as one instruction: without a second jump,
 * and without a way through memory. Both are rounded. */
#define PAIRS(_) _(mul, f64, 0) _(smul, f64, 0) _(mul, f32, 1) _(smul, f32, 1)

bool cot__scalars_join(cot__scalar *first, const cot__scalar *next) {
    static const uint32_t start[2 * OP_elementwise_count] = {
#define START(name, kind, is32) [2 * OP_##name + (is32)] = COT__PAIR_##name##_##kind,
        PAIRS(START)
    };
    bool     sum = next->code >> 1 == OP_add;
    uint32_t at = first->code < 2 * OP_elementwise_count ? start[first->code] : 0;
    if (!at || (first->code & 1) != (next->code & 1) || (!sum && next->code >> 1 != OP_sub)) return false;
    if ((next->x == first->z) == (next->y == first->z)) return false;
    bool left = next->x == first->z;
    first->code = at + (sum ? COT__PAIR_ADD : left ? COT__PAIR_SUB : COT__PAIR_FROM);
    if (first->z != next->z) first->code += COT__PAIR_KEPT;
    first->w = left ? next->y : next->x;
    first->t = first->z;
    first->z = next->z;
    return true;
}

/* A test answers with a bool; the first operand of `where` is one. */
#define DO(name, cls, kind, X, Y, W)                                                                                   \
    name##_##kind:                                                                                                     \
    if (cls == TEST) slots[c->z].u8 = name##_value_##kind(X, Y, W) != 0;                                               \
    else slots[c->z].kind = name##_value_##kind(X, Y, W);                                                              \
    NEXT;
#define AT(operand, kind) slots[c->operand].kind
#define FIRST(name, kind) (OP_##name == OP_where ? AT(x, u8) : AT(x, kind))
#define NEXT                                                                                                           \
    c++;                                                                                                               \
    goto *label[c->code]

/* The six forms of a pair: t + w, t - w and w - t, and those where t itself is read again. */
#define FORM(name, kind, form, value, kept)                                                                            \
    name##_##form##_##kind: {                                                                                          \
        const T_##kind t = name##_value_##kind(AT(x, kind), AT(y, kind), 0), w = AT(w, kind);                          \
        if (kept) AT(t, kind) = t;                                                                                     \
        AT(z, kind) = (value);                                                                                         \
        NEXT;                                                                                                          \
    }
#define FORMS(name, kind, is32)                                                                                        \
    FORM(name, kind, add, t + w, false) FORM(name, kind, sub, t - w, false) FORM(name, kind, from, w - t, false)       \
    FORM(name, kind, kept_add, t + w, true) FORM(name, kind, kept_sub, t - w, true)                                    \
    FORM(name, kind, kept_from, w - t, true)
#define FORM_LABELS(name, kind, is32)                                                                                  \
    [COT__PAIR_##name##_##kind + COT__PAIR_ADD] = &&name##_add_##kind,                                                 \
    [COT__PAIR_##name##_##kind + COT__PAIR_SUB] = &&name##_sub_##kind,                                                 \
    [COT__PAIR_##name##_##kind + COT__PAIR_FROM] = &&name##_from_##kind,                                               \
    [COT__PAIR_##name##_##kind + COT__PAIR_KEPT + COT__PAIR_ADD] = &&name##_kept_add_##kind,                           \
    [COT__PAIR_##name##_##kind + COT__PAIR_KEPT + COT__PAIR_SUB] = &&name##_kept_sub_##kind,                           \
    [COT__PAIR_##name##_##kind + COT__PAIR_KEPT + COT__PAIR_FROM] = &&name##_kept_from_##kind,
#define T_f64 double
#define T_f32 float

/* Labels as values are an extension that gcc and clang share. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

void cot__scalars_run(const cot__scalar *c, cot__slot *slots) {
    static const void *const label[COT__SCALAR_CODES] = {
#define LABELS(name) [2 * OP_##name] = &&name##_f64, [2 * OP_##name + 1] = &&name##_f32,
#define UNARY(name, ...) LABELS(name)
#define BINARY(name, ...) LABELS(name)
#define TERNARY(name, ...) LABELS(name)
#include "rules/rules.def"
        PAIRS(FORM_LABELS)[COT__SCALAR_END] = &&end,
    };
    goto *label[c->code];
#define UNARY(name, cls, ...)                                                                                          \
    DO(name, cls, f64, AT(x, f64), 0, 0)                                                                               \
    DO(name, cls, f32, AT(x, f32), 0, 0)
#define BINARY(name, cls, ...)                                                                                         \
    DO(name, cls, f64, AT(x, f64), AT(y, f64), 0)                                                                      \
    DO(name, cls, f32, AT(x, f32), AT(y, f32), 0)
#define TERNARY(name, cls, ...)                                                                                        \
    DO(name, cls, f64, FIRST(name, f64), AT(y, f64), AT(w, f64))                                                       \
    DO(name, cls, f32, FIRST(name, f32), AT(y, f32), AT(w, f32))
#include "rules/rules.def"
    PAIRS(FORMS)
end:
    return;
}

#pragma GCC diagnostic pop
