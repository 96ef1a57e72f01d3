/* scalars.c: the interpreter of instructions on slots, made from rules.def: each instruction is the
 * arithmetic that records the operation on scalars (ops/elementwise/scalar.c), and jumps to the
 * next one itself, so that a processor guesses each jump by what came before it. What one has made
 * the next one finds in a register: through memory it would wait three times as long. Of most
 * others two are done behind one jump. */
#include "program/scalars/scalars.h"
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
    else slots[c->z].kind = LAST_##kind name##_value_##kind(X, Y, W);                                                  \
    NEXT;
#define LAST_f64 a =
#define LAST_f32
#define AT(operand, kind) slots[c->operand].kind
#define FIRST(name, kind) (OP_##name == OP_where ? AT(x, u8) : AT(x, kind))
#define NEXT                                                                                                           \
    c++;                                                                                                               \
    goto *c->go

/* The six forms of a pair: t + w, t - w and w - t, and those where t itself is read again. */
#define FORM(name, kind, form, value, kept)                                                                            \
    name##_##form##_##kind: {                                                                                          \
        const T_##kind t = name##_value_##kind(AT(x, kind), AT(y, kind), 0), w = AT(w, kind);                          \
        if (kept) AT(t, kind) = t;                                                                                     \
        AT(z, kind) = LAST_##kind(value);                                                                              \
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

/* Instructions whose first factor or term, or the last term of a pair, is what was made just
 * before: it is still in a register, `a`. */
#define OF(operand) slots[c->operand].f64
#define LATE(_)                                                                                                        \
    _(mul, FACTOR, mul_value_f64(a, OF(y), 0)) _(smul, FACTOR, smul_value_f64(a, OF(y), 0))                            \
    _(add, FACTOR, add_value_f64(a, OF(y), 0)) _(sub, FACTOR, sub_value_f64(a, OF(y), 0))                              \
    _(sub, TERM, sub_value_f64(OF(x), a, 0)) _(neg, FACTOR, neg_value_f64(a, 0, 0))                                    \
    _(mul_add, FACTOR, mul_value_f64(a, OF(y), 0) + OF(w)) _(mul_add, TERM, mul_value_f64(OF(x), OF(y), 0) + a)        \
    _(mul_sub, FACTOR, mul_value_f64(a, OF(y), 0) - OF(w)) _(mul_sub, TERM, mul_value_f64(OF(x), OF(y), 0) - a)        \
    _(mul_from, FACTOR, OF(w) - mul_value_f64(a, OF(y), 0)) _(mul_from, TERM, a - mul_value_f64(OF(x), OF(y), 0))      \
    _(smul_add, FACTOR, smul_value_f64(a, OF(y), 0) + OF(w)) _(smul_add, TERM, smul_value_f64(OF(x), OF(y), 0) + a)
#define DO_LATE(name, which, value)                                                                                    \
    late_##name##_##which:                                                                                             \
    OF(z) = a = (value);                                                                                               \
    NEXT;
#define LATE_LABEL(name, which, value) &&late_##name##_##which,

/* Two instructions behind one jump: the first may take the register, the second reads slots. A
 * product that is not NaN is a strong one as well; where it is NaN, the instruction is done by
 * itself. */
#define FIND_product(X) v = mul_value_f64(X, OF(y), 0); if (UNLIKELY(v != v)) goto apart
#define FIND_sum(X) v = add_value_f64(X, OF(y), 0)
#define FIND_neg(X) v = neg_value_f64(X, 0, 0)
#define FIND_product_sum(X) FIND_product(X); v = v + OF(w)
#define FIND_product_less(X) FIND_product(OF(x)); v = v - X
#define FROM_slot OF(x)
#define FROM_register a
#define TWO(first, from, second)                                                                                       \
    first##_##from##_##second:                                                                                         \
    FIND_##first(FROM_##from);                                                                                         \
    OF(z) = v;                                                                                                         \
    c++;                                                                                                               \
    FIND_##second(OF(x));                                                                                              \
    OF(z) = a = v;                                                                                                     \
    NEXT;
#define TWO_LABEL(first, from, second) &&first##_##from##_##second,
#define THEN(_, first, from) _(first, from, product) _(first, from, sum) _(first, from, neg) _(first, from, product_sum)
#define TWOS(_)                                                                                                        \
    THEN(_, product, slot) THEN(_, sum, slot) THEN(_, neg, slot) THEN(_, product_sum, slot)                            \
    THEN(_, product, register) THEN(_, sum, register) THEN(_, product_sum, register) THEN(_, product_less, register)

/* Labels as values are an extension that gcc and clang share. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

/* Without instructions: gives the place of the code for each. */
static const void *const *walk(const cot__scalar *c, cot__slot *slots) {
    static const void *const label[COT__SCALAR_CODES] = {
#define LABELS(name) [2 * OP_##name] = &&name##_f64, [2 * OP_##name + 1] = &&name##_f32,
#define UNARY(name, ...) LABELS(name)
#define BINARY(name, ...) LABELS(name)
#define TERNARY(name, ...) LABELS(name)
#include "rules/rules.def"
        PAIRS(FORM_LABELS)[COT__SCALAR_END] = &&end,
        [COT__SCALAR_LATE] = LATE(LATE_LABEL) TWOS(TWO_LABEL)
    };
    double a = 0, v;
    if (!c) return label;
    goto *c->go;
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
    LATE(DO_LATE)
    TWOS(TWO)
apart:
    goto *label[c->code];
end:
    return label;
}

#pragma GCC diagnostic pop

void cot__scalars_run(const cot__scalar *c, cot__slot *slots) { walk(c, slots); }

/* ---- linking --------------------------------------------------------------------------------- */

enum { FACTOR, TERM };
enum { CODE_mul = 2 * OP_mul, CODE_smul = 2 * OP_smul, CODE_add = 2 * OP_add, CODE_sub = 2 * OP_sub,
       CODE_neg = 2 * OP_neg, CODE_mul_add = COT__PAIR_mul_f64 + COT__PAIR_ADD,
       CODE_mul_sub = COT__PAIR_mul_f64 + COT__PAIR_SUB, CODE_mul_from = COT__PAIR_mul_f64 + COT__PAIR_FROM,
       CODE_smul_add = COT__PAIR_smul_f64 + COT__PAIR_ADD };

/* The code for an instruction of which this operand is in the register; 0: there is none. */
static uint32_t late(uint32_t code, int which) {
#define LATE_CODE(name, which, value) {CODE_##name, which},
    static const struct { uint16_t code, which; } of[COT__SCALAR_TWO - COT__SCALAR_LATE] = {LATE(LATE_CODE)};
    for (uint32_t k = 0; k < COUNTOF(of); k++)
        if (of[k].code == code && of[k].which == which) return COT__SCALAR_LATE + k;
    return 0;
}

/* The same where `last` is the slot of what was made just before; factors, and terms of a sum, may
 * change places. */
static uint32_t late_code(cot__scalar *c, uint32_t last) {
    bool fixed = c->code == CODE_sub || c->code == CODE_neg;
    if (!fixed && c->x != last && c->y == last && late(c->code, FACTOR)) {
        c->y = c->x;
        c->x = last;
    }
    uint32_t code = c->x == last ? late(c->code, FACTOR) : 0;
    if (!code && (c->code == CODE_sub ? c->y : c->w) == last) code = late(c->code, TERM);
    return code;
}

/* Does the instruction leave its result in the register? */
static bool makes_f64(uint32_t code) {
    if (code < COT__PAIR_mul_f64) return !(code & 1) && !cot__op_is_test((int)(code / 2));
    return (code - COT__PAIR_mul_f64) / COT__PAIR_FORMS % 2 == 0;
}

/* What an instruction is as one of two; in_register: its code if it takes the register, or 0. -1:
 * nothing. */
enum { PRODUCT, SUM, NEG, PRODUCT_SUM, SECONDS, LATE_PRODUCT = SECONDS, LATE_SUM, LATE_PRODUCT_SUM, LATE_LESS };
static int form_of(uint32_t code, uint32_t in_register) {
    bool factor = in_register && in_register == late(code, FACTOR);
    if (in_register && !factor) return code == CODE_mul_sub ? LATE_LESS : -1;
    switch (code) {
    case CODE_mul: case CODE_smul: return factor ? LATE_PRODUCT : PRODUCT;
    case CODE_add: return factor ? LATE_SUM : SUM;
    case CODE_mul_add: case CODE_smul_add: return factor ? LATE_PRODUCT_SUM : PRODUCT_SUM;
    case CODE_neg: return factor ? -1 : NEG;
    default: return -1;
    }
}

void cot__scalars_link(cot__scalar *first, uint32_t n) {
    const void *const *label = walk(NULL, NULL);
    int                before = -1; /* the form of the one before, if it is not the second of two */
    first[n] = (cot__scalar){.code = COT__SCALAR_END};
    for (uint32_t k = 0; k <= n; k++) {
        uint32_t code = k > 0 && makes_f64(first[k - 1].code) ? late_code(&first[k], first[k - 1].z) : 0;
        int      form = form_of(first[k].code, code);
        bool     both = before >= 0 && form >= 0 && form < SECONDS;
        first[k].go = label[code ? code : first[k].code];
        if (both) first[k - 1].go = label[COT__SCALAR_TWO + SECONDS * before + form];
        before = both ? -1 : form;
    }
}
