/* cost_node.c: operations and bytes of the value of one node. */
#include "trace/cost/cost.h"

#include "trace/cost/cost_rules.h"

int64_t cot__cost_of_tree(const cot__tree *tree) {
    int64_t n = 0;
    for (const cot__tree *end = tree ? cot__tree_after(tree) : tree; tree < end; tree++) n += tree->what == TREE_OP;
    return n;
}

uint32_t cot__values_read(const cot_tape *t, uint32_t node) {
    const cot__node *n = &t->nodes[node];
    return (n->op == OP_dot_of || n->op == OP_logsumexp_of) && (n->flags & COT__ACTIVE) ? 0x7fu
                                                                                        : cot__saved_mask(t, node);
}

bool cot__shares_storage(const cot_tape *t, uint32_t node, uint32_t *with) {
    const cot__node *n = &t->nodes[node];
    for (int k = 0, count = cot__is_tensor(n) ? cot__nargs(n) : 0; k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || !cot__is_tensor(&t->nodes[a]) ||
            t->nodes[a].value.tensor->storage != n->value.tensor->storage)
            continue;
        *with = a;
        return true;
    }
    return false;
}

/* ---- structural operations, by their sizes --------------------------------------------------- */

typedef struct sizes {
    const cot_tape  *t;
    const cot__node *n;
    double           z; /* elements of the result */
    double           x; /* … of the first operand */
} sizes;

static double elements(const sizes *s, int k) {
    return k < cot__nargs(s->n) && cot__arg(s->n, k) != COT__NONE ? (double)cot__size_at(s->t, cot__arg(s->n, k)) : 0;
}

/* Extent of an axis of operand k; from the end when negative; 1 when there is no such axis. */
static double extent(const sizes *s, int k, int axis) {
    if (k >= cot__nargs(s->n) || cot__arg(s->n, k) == COT__NONE) return 1;
    cot_shape shape = cot__shape_at(s->t, cot__arg(s->n, k));
    if (axis < 0) axis += shape.ndim;
    return axis >= 0 && axis < shape.ndim ? (double)shape.dim[axis] : 1;
}

static double log_of(double n) { return n > 1 ? ceil(log2(n)) : 1; }

/* The matrices of operand 0 of linear algebra: how many, and their cubes. */
static double cubes(const sizes *s) {
    double rows = extent(s, 0, -2), columns = extent(s, 0, -1), small = rows < columns ? rows : columns;
    return rows * columns > 0 ? s->x / (rows * columns) * rows * columns * small : 0;
}

/* 5 n log n for n complex numbers, half of that for real ones. */
static double transform(const sizes *s) {
    cot_shape z = cot__shape_at(s->t, (uint32_t)(s->n - s->t->nodes));
    int       axis = (int)s->n->extra.attr->ints[0];
    double    in = extent(s, 0, axis), out = axis < z.ndim ? (double)z.dim[axis] : 1;
    return 2.5 * (s->z > s->x ? s->z : s->x) * log_of(in > out ? in : out);
}

static double of_structural(const sizes *s) {
    switch (s->n->op) {
    case OP_scatter_add: case OP_scatter_add_along: return elements(s, 2);
    case OP_add_slice: return elements(s, 1);
    case OP_sum:
    case OP_max:
    case OP_min:
    case OP_argmax:
    case OP_argmin:
    case OP_any:
    case OP_all:
    case OP_cumsum:
    case OP_cumargmax:
    case OP_max_pool_index: case OP_avg_pool: case OP_max_unpool: return s->x;
    case OP_avg_unpool: return s->z;
    case OP_norm: return 2 * s->x + s->z;                        /* square, add; root */
    /* max, subtract, exp, add; log, add */
    case OP_logsumexp: return 4 * s->x + 2 * s->z;
    /* max, subtract, exp, add, and divide or subtract */
    case OP_softmax: case OP_log_softmax: return 5 * s->x;
    /* the same, and the product with the target */
    case OP_softmax_cross_entropy: return 6 * s->x;
    /* log, multiply, add; subtract, square, add */
    case OP_cross_entropy: case OP_mse: return 3 * s->x;
    case OP_matmul: return 2 * s->z * extent(s, 0, -1);          /* 2mnk */
    case OP_sum_of: return cot__nargs(s->n) - 1;
    /* n products and n - 1 sums of 2n operands */
    case OP_dot_of: return cot__nargs(s->n) - 1;
    case OP_logsumexp_of: return 4 * cot__nargs(s->n) + 2;       /* as logsumexp */
    case OP_recurrence: return 2 * s->z;
    case OP_argsort: return s->x * log_of(s->x);
    case OP_searchsorted: return s->z * log_of(s->x);
    case OP_fft: case OP_rfft: case OP_irfft: return transform(s);
    /* mean 1, variance 3, scale and shift 4 */
    case OP_layer_norm: return 8 * s->x;
    case OP_rms_norm: return 4 * s->x;
    case OP_norm_back: return 9 * s->x;
    case OP_norm_weights: return 5 * s->x;
    case OP_attention_lse: return s->x * extent(s, 1, -2) * 2 + s->z * extent(s, 1, -2) * 4;
    case OP_attention:
        return extent(s, 1, -2) * (2 * (s->x + s->z) + 5 * s->x / (extent(s, 0, -1) > 0 ? extent(s, 0, -1) : 1));
    case OP_attention_backward: return 10 * extent(s, 1, -2) * s->x;
    case OP_lu_factors: return 2.0 / 3 * cubes(s);
    /* from the factors */
    case OP_det: case OP_det_sign: case OP_logabsdet: return s->z * extent(s, 0, -1);
    case OP_cholesky: return 1.0 / 3 * cubes(s);
    case OP_qr: return 4 * cubes(s);
    case OP_eigh: return 9 * cubes(s);
    case OP_svd: return 20 * cubes(s);
    case OP_cofactors: return 24 * cubes(s);
    case OP_triangular_solve: return s->z * extent(s, 0, -1);
    case OP_lu_solve: return 2 * s->z * extent(s, 0, -1);
    case OP_conv: return 2 * s->z * elements(s, 1) / (extent(s, 1, 0) > 0 ? extent(s, 1, 0) : 1);
    case OP_conv_transpose: return 2 * s->x * elements(s, 1) / (extent(s, 1, 0) > 0 ? extent(s, 1, 0) : 1);
    case OP_conv_weight: return 2 * elements(s, 1) * s->z / (extent(s, 1, 1) > 0 ? extent(s, 1, 1) : 1);
    /* what it does is the user's: one an element */
    case OP_custom: case OP_custom_numbers: return s->z;
    default: return 0; /* moves data */
    }
}

void cot__cost_of_node(const cot_tape *t, uint32_t node, int64_t *operations, int64_t *bytes) {
    const cot__node *n = &t->nodes[node];
    double           size = (double)cot__size_at(t, node);
    uint32_t         with;
    if (n->op < OP_elementwise_count)
        *operations = (int64_t)size * cot__cost_of_tree(cot__elementwise_table[n->op].value);
    else {
        sizes s = {t, n, size, 0};
        s.x = elements(&s, 0);
        *operations = (int64_t)ceil(of_structural(&s));
    }
    *bytes = cot__shares_storage(t, node, &with) ? 0 : (int64_t)size * cot__dtype_size(cot__dtype_at(n));
}
