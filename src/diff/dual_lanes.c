/* dual_lanes.c: products of a Hessian with four directions in one walk, over f64 scalars, for sparse Hessians.
 *
 * Duals with four tangents would be four times the code of dual.c. But what the directions have in common is all there is to
 * compute at a node: its partials p[k], and with its adjoint g the curvatures s[k][u] = d(g ∂z/∂x[k]) / dx[u]. These are taken
 * once, by duals along one operand at a time, and applied to all lanes: x̄[k] += g p[k], and its tangent += ḡ p[k] + Σ s[k][u]
 * ẋ[u]. A zero wins over infinite factors, as in the rules. */
#include "diff/dual_words.h"
#include "diff/sweep.h"

#include <string.h>

enum { LANES = 4 };

typedef double  lanes_of_four __attribute__((vector_size(8 * LANES)));
typedef int64_t masks_of_four __attribute__((vector_size(8 * LANES)));
typedef lanes_of_four four __attribute__((may_alias, aligned(8))); /* memory is aligned for numbers, not for several lanes */

typedef struct bar { double v; four d; } bar; /* an adjoint and its tangents */

typedef struct walk {
    const cot__node *nodes;
    const four      *tangents; /* by node */
    bar             *bars;     /* by node, from `lo` on */
    uint32_t         lo;
} walk;

/* r += a b, with strong zeros */
static inline four times(four a, double b) {
    if (b == 0) return (four){0};
    lanes_of_four r = a * b;
    return __builtin_expect(b - b != 0, 0) ? (lanes_of_four)((masks_of_four)r & (a != 0)) : r;
}

/* ---- one elementwise node -------------------------------------------------------------------------------------------------- */

typedef struct curve {
    double   x[3], z, g;             /* operands, result, adjoint */
    uint32_t units;                  /* operands that move: bits; 0 also where the partials are constants */
    double   p[3], give[3], s[3][3]; /* partials, g times them; curvatures s[k][u] for the units u alone */
} curve;

/* Many and rarely all used: "cold" has gcc compile them for size, in a file whose walk is compiled for speed. */
#define SMALL __attribute__((cold, noinline))
/* Operand k as a dual along unit u */
#define ALONG(k) ((dual){c->x[k], u == (k)})
#define EACH_UNIT(arity) for (int u = 0; u < (arity); u++) if (c->units >> u & 1)
#define UNARY(name, ...)                                                                                                     \
    SMALL static void name##_curve(curve *c) {                                                                               \
        dual zero = {0, 0};                                                                                                  \
        c->p[0] = name##_dX_f64(1, c->x[0], 0, 0, c->z);                                                                     \
        c->give[0] = name##_dX_f64(c->g, c->x[0], 0, 0, c->z);                                                               \
        EACH_UNIT(1) c->s[0][0] = name##_dX((dual){c->g, 0}, ALONG(0), zero, zero, (dual){c->z, c->p[0]}).d;                 \
    }
#define BINARY(name, ...)                                                                                                    \
    SMALL static void name##_curve(curve *c) {                                                                               \
        dual zero = {0, 0};                                                                                                  \
        c->p[0] = name##_dX_f64(1, c->x[0], c->x[1], 0, c->z), c->give[0] = name##_dX_f64(c->g, c->x[0], c->x[1], 0, c->z);  \
        c->p[1] = name##_dY_f64(1, c->x[0], c->x[1], 0, c->z), c->give[1] = name##_dY_f64(c->g, c->x[0], c->x[1], 0, c->z);  \
        EACH_UNIT(2) {                                                                                                       \
            dual g = {c->g, 0}, x = ALONG(0), y = ALONG(1), z = {c->z, c->p[u]};                                             \
            c->s[0][u] = name##_dX(g, x, y, zero, z).d, c->s[1][u] = name##_dY(g, x, y, zero, z).d;                          \
        }                                                                                                                    \
    }
#define TERNARY(name, ...)                                                                                                   \
    SMALL static void name##_curve(curve *c) {                                                                               \
        const double *x_ = c->x, g_ = c->g;                                                                                  \
        c->p[0] = name##_dX_f64(1, x_[0], x_[1], x_[2], c->z), c->give[0] = name##_dX_f64(g_, x_[0], x_[1], x_[2], c->z);    \
        c->p[1] = name##_dY_f64(1, x_[0], x_[1], x_[2], c->z), c->give[1] = name##_dY_f64(g_, x_[0], x_[1], x_[2], c->z);    \
        c->p[2] = name##_dW_f64(1, x_[0], x_[1], x_[2], c->z), c->give[2] = name##_dW_f64(g_, x_[0], x_[1], x_[2], c->z);    \
        EACH_UNIT(3) {                                                                                                       \
            dual g = {g_, 0}, x = ALONG(0), y = ALONG(1), w = ALONG(2), z = {c->z, c->p[u]};                                 \
            c->s[0][u] = name##_dX(g, x, y, w, z).d, c->s[1][u] = name##_dY(g, x, y, w, z).d;                                \
            c->s[2][u] = name##_dW(g, x, y, w, z).d;                                                                         \
        }                                                                                                                    \
    }
#include "ops/rules.def"

/* By operation. A table, not a switch: gcc takes what follows the call of a cold function for cold too. */
static void (*const curves[])(curve *) = {
#define UNARY(name, ...) name##_curve,
#define BINARY(name, ...) name##_curve,
#define TERNARY(name, ...) name##_curve,
#include "ops/rules.def"
};

static inline double value(const walk *w, const cot__node *n, uint32_t a) {
    if (a == COT__NONE) return n->extra.number;
    const cot__node *x = &w->nodes[a];
    return LIKELY(x->kind == COT_F64) ? x->value.f64 : cot__load_f64(&x->value, cot__dtype_at(x)); /* a condition of where */
}

static inline four tangent(const walk *w, uint32_t a) { return a == COT__NONE ? (four){0} : w->tangents[a]; }

/* What lies below the lowest input does not depend on any. Inactive nodes above it are pushed to without asking, and never read. */
static inline void push(const walk *w, uint32_t a, double v, four d) {
    if (a == COT__NONE || a < w->lo) return;
    w->bars[a - w->lo].v += v;
    w->bars[a - w->lo].d += d;
}

static inline bool moves(const walk *w, uint32_t a) { return a != COT__NONE && a >= w->lo && w->nodes[a].flags & COT__ACTIVE; }

static inline void elementwise(const walk *w, const cot__node *n, const bar *g) {
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    uint32_t                     a[3] = {n->a, n->b, COT__NONE};
    curve                        c;
    c.x[0] = value(w, n, a[0]);
    c.x[1] = value(w, n, a[1]); /* of an operation with one operand: whatever */
    if (e->arity == 3) {
        a[2] = n->extra.c;
        c.x[2] = value(w, n, a[2]);
    }
    c.z = n->value.f64;
    c.g = g->v;
    c.units = 0;
    if (e->saves[0] | e->saves[1] | e->saves[2]) /* some partial is not a constant */
        for (int k = 0; k < 3; k++) c.units |= (uint32_t)moves(w, a[k]) << k;
    curves[n->op](&c);
    for (int k = 0; k < e->arity; k++) {
        if (a[k] == COT__NONE || a[k] < w->lo) continue;
        four d = times(g->d, c.p[k]);
        for (int u = 0; u < e->arity; u++)
            if (c.units >> u & 1) d += times(w->tangents[a[u]], c.s[k][u]);
        w->bars[a[k] - w->lo].v += c.give[k];
        w->bars[a[k] - w->lo].d += d;
    }
}

static void sum_or_dot(const walk *w, const cot__node *n, const bar *g) {
    const uint32_t *args = n->extra.attr->args, count = n->extra.attr->nargs;
    for (uint32_t k = 0; k < count; k++) {
        if (n->op == OP_sum_of) {
            push(w, args[k], g->v, g->d);
            continue;
        }
        uint32_t other = args[k < count / 2 ? k + count / 2 : k - count / 2];
        double   y = w->nodes[other].value.f64;
        push(w, args[k], smul_value_f64(g->v, y, 0), times(g->d, y) + times(tangent(w, other), g->v));
    }
}

/* ---- the walk -------------------------------------------------------------------------------------------------------------- */

bool cot__hvp_lanes_apply(const cot_tape *t, uint32_t lo, uint32_t y) {
    for (uint32_t i = lo; i <= y; i++) {
        const cot__node *n = &t->nodes[i];
        bool known = n->op < OP_elementwise_count || n->op == OP_leaf || n->op == OP_sum_of || n->op == OP_dot_of;
        if ((n->flags & COT__ACTIVE) && !(known && n->kind == COT_F64)) return false;
    }
    return true;
}

static bool is_zero(const bar *g) {
    masks_of_four none = g->d == 0;
    return g->v == 0 && (none[0] & none[1] & none[2] & none[3]);
}

bool cot__hvp_lanes(cot_tape *t, uint32_t y, int n, const uint32_t *xs, uint32_t lo, int used, const double *v, double *out) {
    size_t count = (size_t)y - lo + 1, bytes = count * sizeof(bar);
    bar   *bars = cot__alloc(&t->al, bytes);
    if (!bars || !cot__slots(t, y, LANES, "hvp")) {
        if (bars) cot__free(&t->al, bars, bytes);
        cot__fail(t, COT_MEMORY, "[hvp] out of memory: %zu bytes for the adjoints", bytes);
        return false;
    }
    memset(bars, 0, bytes);
    four *tangents = t->adjoints.data;
    for (int k = 0; k < n; k++)
        for (int l = 0; l < used; l++) tangents[xs[k]][l] += v[(int64_t)l * n + k];
    cot__mark_wanted(t, n, xs, true);
    cot__forward_lanes(t, lo, y, cot__runs_for(LANES), used);
    cot__mark_wanted(t, n, xs, false);
    walk w = {t->nodes, tangents, bars, lo};
    bars[y - lo].v = 1;
    for (int64_t i = y; i >= (int64_t)lo; i--) {
        const cot__node *node = &t->nodes[i];
        if (node->op == OP_leaf || !(node->flags & COT__ACTIVE) || is_zero(&bars[i - lo])) continue;
        if (node->op < OP_elementwise_count) elementwise(&w, node, &bars[i - lo]);
        else sum_or_dot(&w, node, &bars[i - lo]);
    }
    for (int k = 0; k < n; k++)
        for (int l = 0; l < used; l++) out[(int64_t)l * n + k] = bars[xs[k] - lo].d[l];
    memset(tangents + lo, 0, count * sizeof *tangents);
    cot__free(&t->al, bars, bytes);
    return true;
}
