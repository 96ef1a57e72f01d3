/* dual_lanes.c: products of a Hessian with four directions in one walk, over f64 scalars, for
 * sparse Hessians.
 *
 * Duals with four tangents would be four times the code of dual.c. But all that a node has to
 * compute is the same for all directions: its partials p[k] and, with its adjoint g, the curvatures
 * s[k][u] = d(g ∂z/∂x[k]) / dx[u]. These are computed once, by duals along one operand at a time.
 * Then they are applied to all lanes, with ẋ the tangents of operands and ġ the tangent of g:
 *
 *     x̄[k] += g p[k]        tangent of x̄[k] += ġ p[k] + Σ s[k][u] ẋ[u]
 *
 * A zero wins over infinite factors, as in the rules. */
#include "rules/elementwise_ids.h"
#include "rules/saves.h" /* first: dual_words.h leaves its words' meaning behind */
#include "rules/words/dual_words.h"
#include "diff/second/second.h"

enum { LANES = 4 };

/* Two vectors of two numbers, the width that every machine has: gcc spills one vector of four to
 * memory. Slots are aligned for one number, not for a vector. */
typedef double  numbers __attribute__((vector_size(16)));
typedef int64_t masks __attribute__((vector_size(16)));
typedef numbers pair __attribute__((may_alias, aligned(8)));
typedef struct four { pair a, b; } four;

typedef struct bar { double v; four d; } bar; /* an adjoint and its tangents */
enum { BAR = 1 + LANES };                     /* size in numbers */
_Static_assert(sizeof(four) == 8 * LANES && sizeof(bar) == 8 * BAR, "they lie in slots without gaps");

typedef struct walk {
    const cot__node *nodes;
    pair            *tangents[2]; /* by node: of lanes 0 and 1, 2 and 3 */
    bar             *bars;     /* by node, from `lo` on */
    uint32_t         lo;
} walk;

static const four zero_tangents;

static inline four plus(four x, four y) { return (four){x.a + y.a, x.b + y.b}; }

/* x c, with strong zeros */
static inline four times(four x, double c) {
    if (c == 0) return zero_tangents;
    four r = {x.a * c, x.b * c};
    if (__builtin_expect(c - c != 0, 0))
        r = (four){(numbers)((masks)r.a & (x.a != 0)), (numbers)((masks)r.b & (x.b != 0))};
    return r;
}

/* ---- one elementwise node -------------------------------------------------------------------- */

typedef struct curve {
    double   x[3], z, g;             /* operands, result, adjoint */
    /* operands that move, as bits; 0 also if all partials are constants */
    uint32_t units;
    /* p: partials; give: g times partials; s[k][u]: curvatures, only for units u */
    double   p[3], give[3], s[3][3];
} curve;

/* There are many of these functions, and a program rarely uses all. "cold" lets gcc compile them
 * for size, in a file whose walk is compiled for speed. */
#define SMALL __attribute__((cold, noinline))
/* Operand k as a dual that moves along unit u */
#define ALONG(k) ((dual){c->x[k], u == (k)})
#define EACH_UNIT(arity) for (int u = 0; u < (arity); u++) if (c->units >> u & 1)
#define UNARY(name, ...)                                                                                               \
    SMALL static void name##_curve(curve *c) {                                                                         \
        dual zero               = {0, 0};                                                                              \
        c->p[0]                 = name##_dX_f64(1, c->x[0], 0, 0, c->z);                                               \
        c->give[0]              = name##_dX_f64(c->g, c->x[0], 0, 0, c->z);                                            \
        EACH_UNIT(1) c->s[0][0] = name##_dX((dual){c->g, 0}, ALONG(0), zero, zero, (dual){c->z, c->p[0]}).d;           \
    }
#define BINARY(name, ...)                                                                                              \
    SMALL static void name##_curve(curve *c) {                                                                         \
        dual zero  = {0, 0};                                                                                           \
        c->p[0]    = name##_dX_f64(1, c->x[0], c->x[1], 0, c->z),                                                      \
        c->give[0] = name##_dX_f64(c->g, c->x[0], c->x[1], 0, c->z);                                                   \
        c->p[1]    = name##_dY_f64(1, c->x[0], c->x[1], 0, c->z),                                                      \
        c->give[1] = name##_dY_f64(c->g, c->x[0], c->x[1], 0, c->z);                                                   \
        EACH_UNIT(2) {                                                                                                 \
            dual g = {c->g, 0}, x = ALONG(0), y = ALONG(1), z = {c->z, c->p[u]};                                       \
            c->s[0][u] = name##_dX(g, x, y, zero, z).d, c->s[1][u] = name##_dY(g, x, y, zero, z).d;                    \
        }                                                                                                              \
    }
#define TERNARY(name, ...)                                                                                             \
    SMALL static void name##_curve(curve *c) {                                                                         \
        const double *x_ = c->x, g_ = c->g;                                                                            \
        c->p[0]    = name##_dX_f64(1, x_[0], x_[1], x_[2], c->z),                                                      \
        c->give[0] = name##_dX_f64(g_, x_[0], x_[1], x_[2], c->z);                                                     \
        c->p[1]    = name##_dY_f64(1, x_[0], x_[1], x_[2], c->z),                                                      \
        c->give[1] = name##_dY_f64(g_, x_[0], x_[1], x_[2], c->z);                                                     \
        c->p[2]    = name##_dW_f64(1, x_[0], x_[1], x_[2], c->z),                                                      \
        c->give[2] = name##_dW_f64(g_, x_[0], x_[1], x_[2], c->z);                                                     \
        EACH_UNIT(3) {                                                                                                 \
            dual g = {g_, 0}, x = ALONG(0), y = ALONG(1), w = ALONG(2), z = {c->z, c->p[u]};                           \
            c->s[0][u] = name##_dX(g, x, y, w, z).d, c->s[1][u] = name##_dY(g, x, y, w, z).d;                          \
            c->s[2][u] = name##_dW(g, x, y, w, z).d;                                                                   \
        }                                                                                                              \
    }
#include "rules/rules.def"

/* The functions by operation. A table, not a switch: after the call of a cold function gcc would
 * treat the following code as cold too. */
static void (*const curves[])(curve *) = {
#define UNARY(name, ...) name##_curve,
#define BINARY(name, ...) name##_curve,
#define TERNARY(name, ...) name##_curve,
#include "rules/rules.def"
};

static inline double value(const walk *w, const cot__node *n, uint32_t a) {
    if (a == COT__NONE) return n->extra.number;
    const cot__node *x = &w->nodes[a];
    /* the condition of a where is not f64 */
    return LIKELY(x->kind == COT_F64) ? x->value.f64 : cot__load_f64(&x->value, cot__dtype_at(x));
}

static inline four moved(const walk *w, uint32_t a) { return (four){w->tangents[0][a], w->tangents[1][a]}; }
static inline four tangent(const walk *w, uint32_t a) { return a == COT__NONE ? zero_tangents : moved(w, a); }

/* Nodes below the lowest input depend on no input, so they are skipped. Inactive nodes above it may
 * be pushed to: their slots are never read. */
static inline void push(const walk *w, uint32_t a, double v, four d) {
    if (a == COT__NONE || a < w->lo) return;
    bar *to = &w->bars[a - w->lo];
    to->v += v;
    to->d = plus(to->d, d);
}

static inline bool moves(const walk *w, uint32_t a) {
    return a != COT__NONE && a >= w->lo && w->nodes[a].flags & COT__ACTIVE;
}

/* The operations of which functions of many scalars mostly consist, inlined. There the arithmetic
 * takes the time. Inlined, the set of curvatures is known at compile time. */
#define CURVATURE(D, name, u, x, y)                                                                                    \
    (name##_##D##_saves & (1 << (u) | COT__SAVES_Z)                                                                    \
         ? name##_##D((dual){g.v, 0}, (dual){x, (u) == 0}, (dual){y, (u) == 1}, (dual){0, 0}, (dual){z, p[u]}).d       \
         : 0.0)
#define HOT_UNARY(name)                                                                                                \
    case OP_##name: {                                                                                                  \
        const double x = value(&w, n, a), p[1] = {name##_dX_f64(1, x, 0, 0, z)};                                       \
        const four   d = plus(times(g.d, p[0]), times(tangent(&w, a), CURVATURE(dX, name, 0, x, 0)));                  \
        push(&w, a, name##_dX_f64(g.v, x, 0, 0, z), d);                                                                \
        return true;                                                                                                   \
    }
#define HOT_BINARY(name)                                                                                               \
    case OP_##name: {                                                                                                  \
        const double x = value(&w, n, a), y = value(&w, n, b),                                                         \
                     p[2] = {name##_dX_f64(1, x, y, 0, z), name##_dY_f64(1, x, y, 0, z)};                              \
        const four   dx = tangent(&w, a), dy = tangent(&w, b);                                                         \
        const double vx = name##_dX_f64(g.v, x, y, 0, z), vy = name##_dY_f64(g.v, x, y, 0, z);                         \
        const four   sx = plus(times(dx, CURVATURE(dX, name, 0, x, y)), times(dy, CURVATURE(dX, name, 1, x, y)));      \
        const four   sy = plus(times(dx, CURVATURE(dY, name, 0, x, y)), times(dy, CURVATURE(dY, name, 1, x, y)));      \
        push(&w, a, vx, plus(times(g.d, p[0]), sx));                                                                   \
        push(&w, b, vy, plus(times(g.d, p[1]), sy));                                                                   \
        return true;                                                                                                   \
    }
static inline __attribute__((always_inline)) bool hot(const walk w, const cot__node *n, const bar g) {
    const uint32_t a = n->a, b = n->b;
    const double   z = n->value.f64;
    switch (n->op) {
    HOT_BINARY(add)
    HOT_BINARY(sub)
    HOT_BINARY(mul)
    HOT_BINARY(div)
    HOT_UNARY(square)
    HOT_UNARY(neg)
    HOT_UNARY(exp)
    default: return false;
    }
}

static __attribute__((noinline)) void elementwise(const walk w, const cot__node *n, const bar g) {
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    uint32_t                     a[3] = {n->a, n->b, COT__NONE};
    curve                        c;
    c.x[0] = value(&w, n, a[0]);
    c.x[1] = value(&w, n, a[1]); /* unused by an operation with one operand */
    if (e->arity == 3) {
        a[2] = n->extra.c;
        c.x[2] = value(&w, n, a[2]);
    }
    c.z = n->value.f64;
    c.g = g.v;
    c.units = 0;
    if (e->saves[0] | e->saves[1] | e->saves[2]) /* some partial is not a constant */
        for (int k = 0; k < 3; k++) c.units |= (uint32_t)moves(&w, a[k]) << k;
    curves[n->op](&c);
    for (int k = 0; k < e->arity; k++) {
        if (a[k] == COT__NONE || a[k] < w.lo) continue;
        four d = times(g.d, c.p[k]);
        for (int u = 0; u < e->arity; u++)
            if (c.units >> u & 1) d = plus(d, times(moved(&w, a[u]), c.s[k][u]));
        push(&w, a[k], c.give[k], d);
    }
}

static __attribute__((noinline)) void sum_or_dot(const walk w, const cot__node *n, const bar g) {
    const uint32_t *args = n->extra.attr->args, count = n->extra.attr->nargs;
    for (uint32_t k = 0; k < count; k++) {
        if (n->op == OP_sum_of) {
            push(&w, args[k], g.v, g.d);
            continue;
        }
        uint32_t other = args[k < count / 2 ? k + count / 2 : k - count / 2];
        double   y = w.nodes[other].value.f64;
        push(&w, args[k], smul_value_f64(g.v, y, 0), plus(times(g.d, y), times(tangent(&w, other), g.v)));
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

bool cot__hvp_lanes_apply(const cot_tape *t, uint32_t lo, uint32_t y) {
    for (uint32_t i = lo; i <= y; i++) {
        const cot__node *n = &t->nodes[i];
        bool known = n->op < OP_structural || n->op == OP_leaf || n->op == OP_sum_of || n->op == OP_dot_of;
        if ((n->flags & COT__ACTIVE) && !(known && n->kind == COT_F64)) return false;
    }
    return true;
}

static inline bool is_zero(bar g) {
    if (g.v != 0) return false;
    masks some = (g.d.a != 0) | (g.d.b != 0);
    return !(some[0] | some[1]);
}

bool cot__hvp_lanes(cot_tape *t, uint32_t y, int n, const uint32_t *xs, uint32_t lo, int used, const double *v,
                    double *out) {
    /* Tangents and adjoints lie in the slots, which are zero between sweeps. The walk zeroes each
     * slot after its last use. */
    if (!cot__slots(t, y, LANES + BAR, "hvp")) return false;
    pair *slots = t->sweep.adjoints.data;
    walk  w = {t->nodes, {slots, slots + y + 1}, (bar *)(slots + 2 * ((size_t)y + 1)), lo};
    for (int k = 0; k < n; k++)
        for (int l = 0; l < used; l++) ((cot__slot_number *)&w.tangents[l / 2][xs[k]])[l % 2] += v[(int64_t)l * n + k];
    cot__mark_wanted(t, n, xs, true);
    for (int l = 0; l < used; l += 2) cot__forward_lanes(t, lo, y, cot__scalar_runs_for(2), w.tangents[l / 2]);
    w.bars[y - lo].v = 1;
    cot__windows windows = cot__windows_open(t, y);
    for (int64_t i = y; i >= (int64_t)lo; i--) {
        cot__windows_at(&windows, i);
        const cot__node *node = &w.nodes[i];
        bar             *here = &w.bars[i - lo];
        const bar        g = {here->v, {here->d.a, here->d.b}};
        w.tangents[0][i] = w.tangents[1][i] = zero_tangents.a; /* nothing below reads it */
        /* inactive nodes may have been pushed to, so they are zeroed too */
        if (!(node->flags & COT__WANTED)) here->v = 0, here->d = zero_tangents;
        if (!(node->flags & COT__ACTIVE) || node->op == OP_leaf || is_zero(g)) continue;
        if (hot(w, node, g)) continue;
        (node->op < OP_structural ? elementwise : sum_or_dot)(w, node, g);
    }
    cot__mark_wanted(t, n, xs, false);
    for (int k = 0; k < n; k++)
        for (int l = 0; l < used; l++) out[(int64_t)l * n + k] = ((const cot__slot_number *)&w.bars[xs[k] - lo].d)[l];
    for (int k = 0; k < n; k++) w.bars[xs[k] - lo] = (bar){0, {{0}, {0}}};
    return true;
}
