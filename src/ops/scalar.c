/* scalar.c: the public elementwise functions, each with a fast path for f64 and f32 scalars.
 *
 * The path checks everything the slow one checks (same tape, alive, room, no error) in a handful of comparisons and writes the node;
 * whatever it does not recognise goes to cot__elementwise. */
#include "base/special.h"
#include "ops/elementwise.h"
#include "ops/has_partial.h"

#define T double
#define F(name) name
#define S(name) name
#define N(name) name##_f64
#include "ops/kernel_words.h"
#undef T
#undef F
#undef S
#undef N
#define T float
#define F(name) name##f
#define S(name) name##f
#define N(name) name##_f32
#include "ops/kernel_words.h"
#undef T
#undef F
#undef S
#undef N

/* The functions below are the ones the mixing macros of the header stand in front of. */
#define FUNCTION_NAME(name) (cot_##name)

static inline bool is_real(const cot_tape *t) { return (uintptr_t)t > 2; }

/* The node of x if x is alive on t and t has room for a result; else NULL. */
static inline const cot__node *alive(const cot_tape *t, cot_var x) {
    uint32_t i = (uint32_t)x.id;
    if (UNLIKELY(i >= t->count)) return NULL;
    const cot__node *n = &t->nodes[i];
    return LIKELY(n->stamp == (uint32_t)(x.id >> 32)) ? n : NULL;
}

static inline cot__node *next_node(cot_tape *t, int op, uint8_t kind, uint32_t flags, uint32_t a, uint32_t b) {
    cot__node *n = &t->nodes[t->count];
    n->op = (uint16_t)op;
    n->kind = kind;
    n->flags = (uint8_t)(flags & t->active_mask);
    n->stamp = t->stamp;
    n->a = a;
    n->b = b;
    return n;
}

static inline cot_var commit(cot_tape *t) {
    uint32_t i = t->count++;
    return (cot_var){t, (uint64_t)t->stamp << 32 | i};
}

enum {
#define UNARY(name, cls, ...) name##_fast = cls != TEST,
#define BINARY(name, cls, ...) name##_fast = cls != TEST,
#define TERNARY(name, cls, ...) name##_fast = cls != TEST,
#include "ops/rules.def"
};

#define UNARY(name, ...)                                                                                                     \
    cot_var FUNCTION_NAME(name)(cot_var x) {                                                                                 \
        cot_tape *t = x.tape;                                                                                                \
        if (LIKELY(name##_fast && is_real(t) && t->count < t->fast_limit)) {                                                 \
            const cot__node *a = alive(t, x);                                                                                \
            if (LIKELY(a && a->kind == COT_F64)) {                                                                           \
                double v = name##_value_f64(a->value.f64, 0, 0);                                                             \
                next_node(t, OP_##name, COT_F64, name##_x ? a->flags : 0, (uint32_t)x.id, COT__NONE)->value.f64 = v;         \
                return commit(t);                                                                                            \
            }                                                                                                                \
            if (a && a->kind == COT_F32) {                                                                                   \
                float v = name##_value_f32(a->value.f32, 0, 0);                                                              \
                next_node(t, OP_##name, COT_F32, name##_x ? a->flags : 0, (uint32_t)x.id, COT__NONE)->value.f32 = v;         \
                return commit(t);                                                                                            \
            }                                                                                                                \
        }                                                                                                                    \
        return cot__elementwise(OP_##name, 1, &x);                                                                           \
    }

#define BINARY(name, ...)                                                                                                    \
    cot_var FUNCTION_NAME(name)(cot_var x, cot_var y) {                                                                      \
        cot_tape *t = x.tape;                                                                                                \
        if (LIKELY(name##_fast && t == y.tape && is_real(t) && t->count < t->fast_limit)) {                                  \
            const cot__node *a = alive(t, x), *b = alive(t, y);                                                              \
            if (LIKELY(a && b && (a->kind | b->kind) == COT_F64)) {                                                          \
                double   v = name##_value_f64(a->value.f64, b->value.f64, 0);                                                \
                uint32_t flags = (name##_x ? a->flags : 0u) | (name##_y ? b->flags : 0u);                                    \
                next_node(t, OP_##name, COT_F64, flags, (uint32_t)x.id, (uint32_t)y.id)->value.f64 = v;                      \
                return commit(t);                                                                                            \
            }                                                                                                                \
            if (a && b && a->kind == COT_F32 && b->kind == COT_F32) {                                                        \
                float    v = name##_value_f32(a->value.f32, b->value.f32, 0);                                                \
                uint32_t flags = (name##_x ? a->flags : 0u) | (name##_y ? b->flags : 0u);                                    \
                next_node(t, OP_##name, COT_F32, flags, (uint32_t)x.id, (uint32_t)y.id)->value.f32 = v;                      \
                return commit(t);                                                                                            \
            }                                                                                                                \
        } else if (name##_fast && is_real(t) && (uintptr_t)y.tape == 1 && t->count < t->fast_limit) {                        \
            const cot__node *a = alive(t, x);                                                                                \
            if (LIKELY(a && a->kind == COT_F64)) {                                                                           \
                double     c = cot__number_value(y), v = name##_value_f64(a->value.f64, c, 0);                               \
                cot__node *n = next_node(t, OP_##name, COT_F64, name##_x ? a->flags : 0, (uint32_t)x.id, COT__NONE);         \
                n->extra.number = c;                                                                                         \
                n->value.f64 = v;                                                                                            \
                return commit(t);                                                                                            \
            }                                                                                                                \
        } else if (name##_fast && (uintptr_t)t == 1 && is_real(y.tape) && y.tape->count < y.tape->fast_limit) {              \
            const cot__node *b = alive(t = y.tape, y);                                                                       \
            if (LIKELY(b && b->kind == COT_F64)) {                                                                           \
                double     c = cot__number_value(x), v = name##_value_f64(c, b->value.f64, 0);                               \
                cot__node *n = next_node(t, OP_##name, COT_F64, name##_y ? b->flags : 0, COT__NONE, (uint32_t)y.id);         \
                n->extra.number = c;                                                                                         \
                n->value.f64 = v;                                                                                            \
                return commit(t);                                                                                            \
            }                                                                                                                \
        }                                                                                                                    \
        return cot__elementwise(OP_##name, 2, (cot_var[]){x, y});                                                            \
    }

#define TERNARY(name, ...)                                                                                                   \
    cot_var FUNCTION_NAME(name)(cot_var x, cot_var y, cot_var w) {                                                           \
        cot_tape *t = x.tape;                                                                                                \
        if (LIKELY(name##_fast && t == y.tape && t == w.tape && is_real(t) && t->count < t->fast_limit)) {                                  \
            const cot__node *a = alive(t, x), *b = alive(t, y), *c = alive(t, w);                                            \
            if (LIKELY(a && b && c && (a->kind | b->kind | c->kind) == COT_F64 && OP_##name != OP_where)) {                  \
                double   v = name##_value_f64(a->value.f64, b->value.f64, c->value.f64);                                     \
                uint32_t flags = (name##_x ? a->flags : 0u) | (name##_y ? b->flags : 0u) | (name##_w ? c->flags : 0u);       \
                cot__node *n = next_node(t, OP_##name, COT_F64, flags, (uint32_t)x.id, (uint32_t)y.id);                      \
                n->extra.c = (uint32_t)w.id;                                                                                 \
                n->value.f64 = v;                                                                                            \
                return commit(t);                                                                                            \
            }                                                                                                                \
        }                                                                                                                    \
        return cot__elementwise(OP_##name, 3, (cot_var[]){x, y, w});                                                         \
    }
#include "ops/rules.def"

/* ---- trees: rules recorded through the same functions --------------------------------------------------------------------- */

static const struct {
    cot_var (*unary)(cot_var);
    cot_var (*binary)(cot_var, cot_var);
    cot_var (*ternary)(cot_var, cot_var, cot_var);
} functions[OP_elementwise_count] = {
#define UNARY(name, ...) {.unary = cot_##name},
#define BINARY(name, ...) {.binary = cot_##name},
#define TERNARY(name, ...) {.ternary = cot_##name},
#include "ops/rules.def"
};

/* Numbers fold in the compute type of the rule, so that what is recorded has the bits of the kernels, which fold nothing. */
static cot_var fold(int op, const cot_var *a, cot_dtype compute) {
    double x = cot__number_value(a[0]), y = cot__number_value(a[1]), w = cot__number_value(a[2]), z;
    if (compute == COT_F32) {
        float xf = (float)x, yf = (float)y, wf = (float)w, zf;
        cot__blocks_f32[op].value(1, &xf, &yf, &wf, &zf);
        return cot_number((double)zf);
    }
    cot__blocks_f64[op].value(1, &x, &y, &w, &z);
    return cot_number(z);
}

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
    bool    numbers = true;
    for (int k = 0; k < n; k++) {
        a[k] = cot__tree_record(t, tree->arg[k], xs, z, g);
        numbers &= cot__is_number(a[k]);
    }
    if (numbers) return fold(tree->op, a, cot__dtype_compute(cot_dtype_of(g)));
    if (n == 1) return functions[tree->op].unary(a[0]);
    if (n == 2) return functions[tree->op].binary(a[0], a[1]);
    return functions[tree->op].ternary(a[0], a[1], a[2]);
}
