/* scalar.c: the public elementwise functions, each with a fast path for f64 and f32 scalars.
 *
 * The path checks everything the slow one checks (same tape, alive, room, no error) in a handful of
 * comparisons and writes the node; whatever it does not recognise goes to cot__elementwise. */
#include "rules/elementwise_ids.h"
#include "base/math/special.h"
#include "ops/elementwise/elementwise.h"
#include "rules/has_partial.h"
#include "rules/words/hot.h"

#include <string.h>

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

/* The functions below are the ones the mixing macros of the header stand in front of. */
#define FUNCTION_NAME(name) (cot_##name)

static inline bool is_real(const cot_tape *t) { return (uintptr_t)t > 2; }

enum {
#define UNARY(name, cls, ...) name##_fast = cls != TEST,
#define BINARY(name, cls, ...) name##_fast = cls != TEST,
#define TERNARY(name, cls, ...) name##_fast = cls != TEST,
#include "rules/rules.def"
};

/* The node of x if x is alive on t; else NULL. */
static inline const cot__node *alive(const cot_tape *t, cot_var x) {
    uint32_t i = (uint32_t)x.id;
    if (UNLIKELY(i >= t->count)) return NULL;
    const cot__node *n = &t->nodes[i];
    return LIKELY(n->stamp == (uint32_t)(x.id >> 32)) ? n : NULL;
}

static inline cot__node *next_node(cot_tape *t, int op, uint8_t kind, uint32_t flags, uint32_t a, uint32_t b) {
    cot__node *n = &t->nodes[t->count];
    flags &= t->active_mask;
#if COT__HEADS
    /* Two wide stores instead of six narrow ones: this is the hottest write of the library. */
    uint64_t head = (uint64_t)op | (uint64_t)kind << 16 | (uint64_t)flags << 24 | (uint64_t)t->stamp << 32;
    uint64_t operands = (uint64_t)a | (uint64_t)b << 32;
    memcpy(n, &head, sizeof head);
    memcpy(&n->a, &operands, sizeof operands);
#else
    n->op = (uint16_t)op;
    n->kind = kind;
    n->flags = (uint8_t)flags;
    n->stamp = t->stamp;
    n->a = a;
    n->b = b;
#endif
    return n;
}

static inline cot_var commit(cot_tape *t) {
    uint32_t i = t->count++;
    return (cot_var){t, (uint64_t)t->stamp << 32 | i};
}

static inline cot_var commit_f32(cot_tape *t) {
    t->scalars_from = t->count + 1;
    return commit(t);
}

/* The slow path, with its arguments in registers, so that the fast one needs no stack frame. */
static __attribute__((noinline)) cot_var slow_unary(cot_var x, int op) { return cot__elementwise(op, 1, &x); }
static __attribute__((noinline)) cot_var slow_binary(cot_var x, cot_var y, int op) {
    return cot__elementwise(op, 2, (cot_var[]){x, y});
}
static __attribute__((noinline)) cot_var slow_ternary(cot_var x, cot_var y, cot_var w, int op) {
    return cot__elementwise(op, 3, (cot_var[]){x, y, w});
}

#if COT__HEADS
/* One or two live f64 scalars on a tape with room: stamps equal those of the vars, kinds are 0. The
 * or of the heads is left in *heads. */
static inline bool one_f64(const cot_tape *t, cot_var x, uint64_t *heads, double *v) {
    uint32_t n = t->count, i = (uint32_t)x.id;
    if (UNLIKELY(n >= t->fast_limit || i >= n)) return false;
    const cot__node *node = &t->nodes[i];
    *heads = cot__head(node);
    *v = node->value.f64;
    return ((*heads ^ x.id) >> 32 | (*heads & COT__HEAD_KIND)) == 0;
}

static inline bool two_f64(const cot_tape *t, cot_var x, cot_var y, uint64_t *heads, double *xv, double *yv) {
    uint32_t n = t->count, i = (uint32_t)x.id, j = (uint32_t)y.id;
    if (UNLIKELY(n >= t->fast_limit)) return false;
    if (UNLIKELY(i >= n)) return false;
    if (UNLIKELY(j >= n)) return false;
    const cot__node *a = &t->nodes[i], *b = &t->nodes[j];
    uint64_t         p = cot__head(a), q = cot__head(b);
    *xv = a->value.f64;
    *yv = b->value.f64;
    *heads = p | q;
    if (UNLIKELY(((p ^ x.id) | (q ^ y.id)) >> 32)) return false;
    return LIKELY((*heads & COT__HEAD_KIND) == 0);
}

static inline bool three_f64(const cot_tape *t, cot_var x, cot_var y, cot_var w, uint64_t *heads, double *xv,
                             double *yv, double *wv) {
    uint32_t n = t->count, i = (uint32_t)x.id, j = (uint32_t)y.id, k = (uint32_t)w.id;
    if (UNLIKELY(n >= t->fast_limit)) return false;
    if (UNLIKELY(i >= n)) return false;
    if (UNLIKELY(j >= n)) return false;
    if (UNLIKELY(k >= n)) return false;
    const cot__node *a = &t->nodes[i], *b = &t->nodes[j], *c = &t->nodes[k];
    uint64_t         p = cot__head(a), q = cot__head(b), r = cot__head(c);
    *xv = a->value.f64;
    *yv = b->value.f64;
    *wv = c->value.f64;
    *heads = p | q | r;
    if (UNLIKELY(((p ^ x.id) | (q ^ y.id) | (r ^ w.id)) >> 32)) return false;
    return LIKELY((*heads & COT__HEAD_KIND) == 0);
}

static inline cot_var push_f64(cot_tape *t, int op, uint64_t heads, uint32_t a, uint32_t b, double value) {
    uint32_t   i = t->count;
    uint64_t   stamp = t->stamp_head, head = (uint64_t)op | (heads & t->active_head) | stamp;
    cot__node *n = &t->nodes[i];
    memcpy(n, &head, sizeof head);
    n->a = a;
    n->b = b;
    n->value.f64 = value;
    t->count = i + 1;
    return (cot_var){t, stamp | i};
}
#else
static inline bool one_f64(const cot_tape *t, cot_var x, uint64_t *heads, double *v) {
    (void)t, (void)x, *heads = 0, *v = 0;
    return false;
}
static inline bool    two_f64(const cot_tape *t, cot_var x, cot_var y, uint64_t *heads, double *xv, double *yv) {
    (void)t, (void)x, (void)y, *heads = 0, *xv = *yv = 0;
    return false;
}
static inline bool three_f64(const cot_tape *t, cot_var x, cot_var y, cot_var w, uint64_t *heads, double *xv,
                             double *yv, double *wv) {
    (void)t, (void)x, (void)y, (void)w, *heads = 0, *xv = *yv = *wv = 0;
    return false;
}
static inline cot_var push_f64(cot_tape *t, int op, uint64_t heads, uint32_t a, uint32_t b, double value) {
    (void)op, (void)heads, (void)a, (void)b, (void)value;
    return INVALID(t);
}
#endif

/* Operations that are rarely recorded on scalars are built for size. */
#define BUILT(hot) BUILT_FOR(hot)
#define BUILT_FOR(hot) BUILT_##hot
#define BUILT_1
#define BUILT_0 __attribute__((cold))

#define UNARY(name, ...)                                                                                               \
    static BUILT(HOT(name)) __attribute__((noinline)) cot_var name##_other(cot_var x) {                                \
        cot_tape *t = x.tape;                                                                                          \
        if (name##_fast && is_real(t) && t->count < t->fast_limit) {                                                   \
            const cot__node *a = alive(t, x);                                                                          \
            if (a && a->kind == COT_F32) {                                                                             \
                float v = name##_value_f32(a->value.f32, 0, 0);                                                        \
                next_node(t, OP_##name, COT_F32, name##_x ? a->flags : 0, (uint32_t)x.id, COT__NONE)->value.f32 = v;   \
                return commit_f32(t);                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
        return slow_unary(x, OP_##name);                                                                               \
    }                                                                                                                  \
    BUILT(HOT(name)) cot_var FUNCTION_NAME(name)(cot_var x) {                                                          \
        cot_tape *t = x.tape;                                                                                          \
        uint64_t  heads;                                                                                               \
        double    xv = 0, yv = 0, wv = 0;                                                                              \
        (void)xv, (void)yv, (void)wv;                                                                                  \
        if (LIKELY(name##_fast && is_real(t) && one_f64(t, x, &heads, &xv)))                                           \
            return push_f64(t, OP_##name, name##_x ? heads : 0, (uint32_t)x.id, COT__NONE,                             \
                            name##_value_f64(xv, 0, 0));                                                               \
        return name##_other(x);                                                                                        \
    }

/* f64 with f64, or with a number on one side, is told apart by the tapes; f32 and the rest are the
 * business of name_other. */
#define BINARY(name, ...)                                                                                              \
    static BUILT(HOT(name)) __attribute__((noinline)) cot_var name##_other(cot_var x, cot_var y) {                     \
        cot_tape *t = x.tape;                                                                                          \
        if (name##_fast && is_real(t) && t == y.tape && t->count < t->fast_limit) {                                    \
            const cot__node *a = alive(t, x), *b = alive(t, y);                                                        \
            if (a && b && a->kind == COT_F32 && b->kind == COT_F32) {                                                  \
                float    v     = name##_value_f32(a->value.f32, b->value.f32, 0);                                      \
                uint32_t flags = (name##_x ? a->flags : 0u) | (name##_y ? b->flags : 0u);                              \
                next_node(t, OP_##name, COT_F32, flags, (uint32_t)x.id, (uint32_t)y.id)->value.f32 = v;                \
                return commit_f32(t);                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
        return slow_binary(x, y, OP_##name);                                                                           \
    }                                                                                                                  \
    static BUILT(HOT(name)) __attribute__((noinline)) cot_var name##_mixed(cot_var x, cot_var y) {                     \
        cot_tape *t;                                                                                                   \
        uint64_t  heads;                                                                                               \
        double    xv, yv;                                                                                              \
        (void)xv, (void)yv;                                                                                            \
        if ((uintptr_t)x.tape == 1) {                                                                                  \
            t = y.tape;                                                                                                \
            if (LIKELY(name##_fast && is_real(t) && one_f64(t, y, &heads, &yv))) {                                     \
                xv                              = cot__number_value(x);                                                \
                t->nodes[t->count].extra.number = xv;                                                                  \
                return push_f64(t, OP_##name, name##_y ? heads : 0, COT__NONE, (uint32_t)y.id,                         \
                                name##_value_f64(xv, yv, 0));                                                          \
            }                                                                                                          \
        } else if ((uintptr_t)y.tape == 1) {                                                                           \
            t = x.tape;                                                                                                \
            if (LIKELY(name##_fast && is_real(t) && one_f64(t, x, &heads, &xv))) {                                     \
                yv                              = cot__number_value(y);                                                \
                t->nodes[t->count].extra.number = yv;                                                                  \
                return push_f64(t, OP_##name, name##_x ? heads : 0, (uint32_t)x.id, COT__NONE,                         \
                                name##_value_f64(xv, yv, 0));                                                          \
            }                                                                                                          \
        }                                                                                                              \
        return name##_other(x, y);                                                                                     \
    }                                                                                                                  \
    BUILT(HOT(name)) cot_var FUNCTION_NAME(name)(cot_var x, cot_var y) {                                               \
        cot_tape *t = x.tape;                                                                                          \
        uint64_t  heads;                                                                                               \
        double    xv = 0, yv = 0;                                                                                      \
        (void)xv, (void)yv;                                                                                            \
        if (UNLIKELY(t != y.tape)) return name##_mixed(x, y);                                                          \
        if (LIKELY(name##_fast && name##_x && name##_y && is_real(t) && two_f64(t, x, y, &heads, &xv, &yv)))           \
            return push_f64(t, OP_##name, heads, (uint32_t)x.id, (uint32_t)y.id, name##_value_f64(xv, yv, 0));         \
        return name##_other((cot_var){t, x.id}, (cot_var){t, y.id});                                                   \
    }

/* Three operands leave a node no room for a number: it becomes a 0-d constant of its own. False
 * when the slow path must decide. */
static inline bool f64_operand(cot_tape *t, cot_var x) {
    const cot__node *n = cot__is_number(x) ? NULL : x.tape == t ? alive(t, x) : NULL;
    return n ? n->kind == COT_F64 : cot__is_number(x);
}

static inline uint32_t f64_index(cot_tape *t, cot_var x) {
    if (LIKELY(!cot__is_number(x))) return (uint32_t)x.id;
    next_node(t, OP_constant, COT_F64, 0, COT__NONE, COT__NONE)->value.f64 = cot__number_value(x);
    return (uint32_t)commit(t).id;
}

#define TERNARY(name, ...)                                                                                             \
    static BUILT(HOT(name)) __attribute__((noinline)) cot_var name##_other(cot_var x, cot_var y, cot_var w) {          \
        cot_tape *t = is_real(x.tape) ? x.tape : is_real(y.tape) ? y.tape : w.tape;                                    \
        if (OP_##name != OP_where && is_real(t) && (uint64_t)t->count + 3 < t->fast_limit && f64_operand(t, x) &&      \
            f64_operand(t, y) && f64_operand(t, w)) {                                                                  \
            uint32_t         a = f64_index(t, x), b = f64_index(t, y), c = f64_index(t, w);                            \
            const cot__node *p = &t->nodes[a], *q = &t->nodes[b], *r = &t->nodes[c];                                   \
            double           v = name##_value_f64(p->value.f64, q->value.f64, r->value.f64);                           \
            uint32_t   flags   = (name##_x ? p->flags : 0u) | (name##_y ? q->flags : 0u) | (name##_w ? r->flags : 0u); \
            cot__node *n       = next_node(t, OP_##name, COT_F64, flags, a, b);                                        \
            n->extra.c         = c;                                                                                    \
            n->value.f64       = v;                                                                                    \
            return commit(t);                                                                                          \
        }                                                                                                              \
        return slow_ternary(x, y, w, OP_##name);                                                                       \
    }                                                                                                                  \
    BUILT(HOT(name)) cot_var FUNCTION_NAME(name)(cot_var x, cot_var y, cot_var w) {                                    \
        cot_tape *t = x.tape;                                                                                          \
        uint64_t  heads;                                                                                               \
        double    xv = 0, yv = 0, wv = 0;                                                                              \
        if (UNLIKELY(t != y.tape || t != w.tape)) return name##_other(x, y, w);                                        \
        if (LIKELY(OP_##name != OP_where && (OP_##name != OP_fma || cot__fma_is_inline()) && is_real(t) &&             \
                   three_f64(t, x, y, w, &heads, &xv, &yv, &wv))) {                                                    \
            const double z             = name##_value_f64(xv, yv, wv);                                                 \
            t->nodes[t->count].extra.c = (uint32_t)w.id;                                                               \
            return push_f64(t, OP_##name, heads, (uint32_t)x.id, (uint32_t)y.id, z);                                   \
        }                                                                                                              \
        return name##_other((cot_var){t, x.id}, (cot_var){t, y.id}, (cot_var){t, w.id});                               \
    }
#include "rules/rules.def"

/* ---- by number ------------------------------------------------------------------------------- */

static const struct {
    cot_var (*unary)(cot_var);
    cot_var (*binary)(cot_var, cot_var);
    cot_var (*ternary)(cot_var, cot_var, cot_var);
} functions[OP_elementwise_count] = {
#define UNARY(name, ...) {.unary = cot_##name},
#define BINARY(name, ...) {.binary = cot_##name},
#define TERNARY(name, ...) {.ternary = cot_##name},
#include "rules/rules.def"
};

cot_var cot__call(int op, const cot_var *xs) {
    switch (cot__elementwise_table[op].arity) {
    case 1: return functions[op].unary(xs[0]);
    case 2: return functions[op].binary(xs[0], xs[1]);
    default: return functions[op].ternary(xs[0], xs[1], xs[2]);
    }
}
