/* dual.c: Hessian-vector products over scalars: forward over reverse, in numbers.
 *
 * Partials written with dual words (dual_words.h) carry an adjoint and its tangent down the tape
 * together. Nothing is recorded: there is one forward run for the tangents, and one reverse walk
 * for the pairs. */
#include "rules/elementwise_ids.h"
#include "rules/words/dual_words.h"
#include "diff/second/second.h"


/* ---- the walk -------------------------------------------------------------------------------- */

typedef struct walk {
    const cot__node *nodes;
    const double    *tangents; /* by node */
    dual            *bars;     /* by node, from `lo` on */
    uint32_t         lo;
} walk;

static inline dual operand(const walk *w, const cot__node *n, uint32_t a) {
    return a == COT__NONE ? (dual){n->extra.number, 0} : (dual){w->nodes[a].value.f64, w->tangents[a]};
}

/* Nodes below the lowest input depend on no input, so they are skipped. Inactive nodes above it may
 * be pushed to: their slots are never read. */
static inline void push(const walk *w, uint32_t a, dual g) {
    if (a < w->lo) return;
    w->bars[a - w->lo].v += g.v;
    w->bars[a - w->lo].d += g.d;
}

static void push_nary(const walk *w, const cot__node *n, dual g) {
    const uint32_t *args = n->extra.attr->args, count = n->extra.attr->nargs;
    if (n->op == OP_sum_of)
        for (uint32_t k = 0; k < count; k++) push(w, args[k], g);
    else if (n->op == OP_logsumexp_of) {
        /* The weight e/s = exp(x - z) has the tangent e/s (dx - dz), where dz = Σ dx·e/s is the
         * part of z's tangent that comes from its operands. If z is an input too, its own tangent
         * holds more. */
        const double *e = n->extra.attr->pointer, s = n->extra.attr->number;
        double        dz = 0;
        for (uint32_t k = 0; k < count; k++) dz += smul_value_f64(w->tangents[args[k]], e[k], 0);
        dz = sdiv_value_f64(dz, s, 0);
        for (uint32_t k = 0; k < count; k++) {
            const double weight = sdiv_value_f64(e[k], s, 0);
            push(w, args[k], smul_dual(g, (dual){weight, smul_value_f64(weight, w->tangents[args[k]] - dz, 0)}));
        }
    } else
        for (uint32_t k = 0; k < count / 2; k++) {
            uint32_t x = args[k], y = args[count / 2 + k];
            push(w, x, smul_dual(g, operand(w, n, y)));
            push(w, y, smul_dual(g, operand(w, n, x)));
        }
}

static inline __attribute__((always_inline)) void step(const walk *w, const cot__node *n, uint32_t i, dual g) {
    dual z = {n->value.f64, w->tangents[i]}, zero = {0, 0};
    switch (n->op) {
#define UNARY(name, ...)                                                                                               \
    case OP_##name:                                                                                                    \
        push(w, n->a, name##_dX(g, operand(w, n, n->a), zero, zero, z));                                               \
        break;
#define BINARY(name, ...)                                                                                              \
    case OP_##name: {                                                                                                  \
        dual x = operand(w, n, n->a), y = operand(w, n, n->b);                                                         \
        if (n->a != COT__NONE) push(w, n->a, name##_dX(g, x, y, zero, z));                                             \
        if (n->b != COT__NONE) push(w, n->b, name##_dY(g, x, y, zero, z));                                             \
        break;                                                                                                         \
    }
#define TERNARY(name, ...)                                                                                             \
    case OP_##name: {                                                                                                  \
        dual x = operand(w, n, n->a), y = operand(w, n, n->b), c = operand(w, n, n->extra.c);                          \
        if (w->nodes[n->a].kind != COT_F64)                                                                            \
            x.v = cot__load_f64(&w->nodes[n->a].value, cot__dtype_at(&w->nodes[n->a]));                                \
        push(w, n->a, name##_dX(g, x, y, c, z));                                                                       \
        push(w, n->b, name##_dY(g, x, y, c, z));                                                                       \
        push(w, n->extra.c, name##_dW(g, x, y, c, z));                                                                 \
        break;                                                                                                         \
    }
#include "rules/rules.def"
    default: push_nary(w, n, g); break;
    }
}

bool cot__hvp_applies(const cot_tape *t, uint32_t lo, uint32_t y) {
    for (uint32_t i = lo; i <= y && lo < t->scalars_from; i++)
        if (!cot__is_swept_scalar(&t->nodes[i])) return false;
    return true;
}

bool cot__hvp_scalars(cot_tape *t, uint32_t y, int n, const uint32_t *xs, uint32_t lo, const double *v, double *out) {
    size_t bytes = ((size_t)y - lo + 1) * sizeof(dual);
    dual  *bars = cot__list_zeros(t, bytes);
    if (!bars || !cot__slots(t, y, 1, "hvp")) {
        cot__list_free(t, bars, bytes);
        cot__fail(t, COT_MEMORY, "[hvp] out of memory: %zu bytes for the adjoints", bytes);
        return false;
    }
    cot__sweep s = {.t = t, .lo = lo, .top = y};
    for (int k = 0; k < n; k++) *cot__slot_f64(t, xs[k]) += v[k];
    cot__mark_wanted(t, n, xs, true);
    /* only scalars, so it cannot fail */
    cot__forward(&s, lo);
    cot__mark_wanted(t, n, xs, false);
    walk w = {t->nodes, (const double *)t->sweep.adjoints.data, bars, lo};
    bars[y - lo] = (dual){1, 0};
    cot__windows windows = cot__windows_open(t, y);
    for (int64_t i = y; i >= (int64_t)lo; i--) {
        cot__windows_at(&windows, i);
        const cot__node *node = &t->nodes[i];
        dual             g = bars[i - lo];
        if ((g.v == 0 && g.d == 0) || node->op == OP_leaf || !(node->flags & COT__ACTIVE)) continue;
        step(&w, node, (uint32_t)i, g);
    }
    for (int k = 0; k < n; k++) out[k] = bars[xs[k] - lo].d;
    cot__sweep_close(&s, false);
    cot__list_free(t, bars, bytes);
    return true;
}
