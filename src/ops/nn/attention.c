/* attention.c: scaled dot-product attention, one node whose memory grows with the sequence and not
 * with its square.
 *
 * Three operations: `attention_lse`, the log-sum-exp of each query's scores, has no derivative and
 * is what backward needs to compute weights again; `attention`, whose operands hold it; and
 * `attention_backward`, its whole vector-Jacobian product as one flat array [q̄, k̄, v̄], recorded so
 * that cot_backward stays fused. The rules of forward mode, of an additive mask and of
 * attention_backward are written in elementary operations on the matrix of weights: every order
 * exists, but from there on memory is quadratic. */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/structural.h"

/* operands of attention: then the mask and the bias, those that there are */
enum { Q, K, V, LSE, MASKS };
/* and of attention_backward */
enum { BACK_G, BACK_Q, BACK_K, BACK_V, BACK_Z, BACK_LSE, BACK_MASKS };
enum { CAUSAL, HAS_MASK, HAS_BIAS };          /* attributes; attr->number is the scale */

/* ---- checks ---------------------------------------------------------------------------------- */

static bool check_shapes(cot_tape *t, const cot_shape *q, const cot_shape *k, const cot_shape *v) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT], c[COT__SHAPE_TEXT];
    cot__shape_text(q->ndim, q->dim, a);
    cot__shape_text(k->ndim, k->dim, b);
    cot__shape_text(v->ndim, v->dim, c);
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2)
        cot__fail(
            t, COT_SHAPE,
            "[attention] q, k and v have shapes %s, %s and %s; each has at least two axes, positions and features", a,
            b, c);
    else if (q->dim[q->ndim - 1] != k->dim[k->ndim - 1])
        cot__fail(t, COT_SHAPE, "[attention] q has shape %s and k %s; their last axes must be equal", a, b);
    else if (k->dim[k->ndim - 2] != v->dim[v->ndim - 2])
        cot__fail(t, COT_SHAPE, "[attention] k has shape %s and v %s; their second last axes, the keys, must be equal",
                  b, c);
    else return true;
    return false;
}

/* The leading axes that all three broadcast to. */
static bool broadcast_leading(cot_tape *t, const cot_shape *const s[3], cot_shape *z) {
    char text[3][COT__SHAPE_TEXT];
    *z = (cot_shape){0, {0}};
    for (int o = 0; o < 3; o++)
        if (s[o]->ndim - 2 > z->ndim) z->ndim = s[o]->ndim - 2;
    for (int i = 0; i < z->ndim; i++) {
        z->dim[i] = 1;
        for (int o = 0; o < 3; o++) {
            int     at = i - (z->ndim + 2 - s[o]->ndim);
            int64_t extent = at < 0 ? 1 : s[o]->dim[at];
            if (extent == 1 || extent == z->dim[i]) continue;
            if (z->dim[i] == 1) z->dim[i] = extent;
            else {
                for (int l = 0; l < 3; l++) cot__shape_text(s[l]->ndim, s[l]->dim, text[l]);
                cot__fail(t, COT_SHAPE,
                          "[attention] leading axes of q %s, k %s and v %s do not broadcast; aligned before the last "
                          "two, extents are equal or 1",
                          text[0], text[1], text[2]);
                return false;
            }
        }
    }
    return true;
}

/* The mask or bias as a view of the scores' shape. */
static bool enter_mask(cot_tape *t, cot_var mask, const char *what, bool truth, cot_dtype dtype,
                       const cot_shape *scores, uint32_t *index) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    if (!cot__enter(t, mask, "attention", what, index)) return false;
    cot_dtype d = cot__dtype_at(&t->nodes[*index]);
    if (truth ? d != COT_BOOL : !cot__dtype_is_float(d)) {
        cot__fail(t, COT_DTYPE, "[attention] the %s has dtype %s; %s", what, cot__dtype_name(d),
                  truth ? "a mask is bool, true where a key is seen; bias is what is added"
                        : "what is added is a float; a bool goes in as mask");
        return false;
    }
    cot_shape s = cot__shape_at(t, *index);
    bool      fits = s.ndim <= scores->ndim;
    for (int i = 1; fits && i <= s.ndim; i++)
        fits = s.dim[s.ndim - i] == 1 || s.dim[s.ndim - i] == scores->dim[scores->ndim - i];
    if (!fits) {
        cot__fail(t, COT_SHAPE, "[attention] the %s has shape %s, the scores %s; it must broadcast to theirs", what,
                  cot__shape_text(s.ndim, s.dim, a), cot__shape_text(scores->ndim, scores->dim, b));
        return false;
    }
    if (!truth && (*index = cot__as(t, *index, dtype)) == COT__NONE) return false;
    cot_var wide = cot_broadcast_to(VAR(t, *index), *scores);
    *index = cot__index(wide);
    return !cot__failed(wide);
}

/* ---- the nodes ------------------------------------------------------------------------------- */

/* What the kernel sees of operands q, k, v at xs and masks at `masks`. */
static cot__attention job_of(const cot_tape *t, const uint32_t *qkv, const uint32_t *masks, const cot__attr *attr) {
    cot__attention a = {.q = cot__view_read(t, qkv[0]), .k = cot__view_read(t, qkv[1]), .v = cot__view_read(t, qkv[2]),
                        .causal = attr->ints[CAUSAL] != 0, .scale = attr->number};
    if (attr->ints[HAS_MASK]) a.mask = cot__view_read(t, *masks++);
    if (attr->ints[HAS_BIAS]) a.bias = cot__view_read(t, *masks);
    return a;
}

/* Runs a kernel in memory that the next call finds again: the tape keeps large blocks for a
 * while. */
static bool run(cot_tape *t, const char *op, const cot__attention *a, bool backward) {
    int64_t bytes = t->backend->attention_workspace(a, backward);
    if (bytes < 0) {
        char text[COT__SHAPE_TEXT];
        cot__fail(t, COT_LIMIT, "[%s] q has shape %s; its tiles are larger than memory can hold", op,
                  cot__shape_text(a->q.ndim, a->q.shape, text));
        return false;
    }
    cot__storage *s = cot__storage_create(t, (size_t)bytes, op);
    if (!s) return false;
    if (backward) t->backend->attention_backward(a, s->data);
    else t->backend->attention_forward(a, s->data);
    cot__storage_release(t, s);
    return true;
}

static cot__attr *attr_like(cot_tape *t, const char *op, const int64_t ints[3], double scale, int n,
                            const uint32_t *args) {
    cot__attr *attr = cot__attr_make(t, op, 3, ints, n, args);
    if (attr) attr->number = scale;
    return attr;
}

/* masks: the indices of mask and bias, those that there are. */
static cot_var push_attention(cot_tape *t, const uint32_t qkv[3], int masks, const uint32_t *mask,
                              const int64_t ints[3], double scale) {
    uint32_t    args[MASKS + 2] = {qkv[0], qkv[1], qkv[2], COT__NONE}, lse_args[4] = {qkv[0], qkv[1]};
    cot__view   q = cot__view_read(t, qkv[0]), v = cot__view_read(t, qkv[2]);
    cot_shape   shape = cot__shape_at(t, qkv[0]);
    cot__result z, lse;
    for (int i = 0; i < masks; i++) args[MASKS + i] = lse_args[2 + i] = mask[i];
    cot__attr *lse_attr = attr_like(t, "attention", ints, scale, 2 + masks, lse_args);
    if (!lse_attr || !cot__result_open(t, &lse, "attention", cot__dtype_compute(q.dtype), shape.ndim - 1, shape.dim))
        return INVALID(t);
    shape.dim[shape.ndim - 1] = v.shape[v.ndim - 1];
    if (!cot__check_shape(t, "attention", &shape) ||
        !cot__result_open(t, &z, "attention", q.dtype, shape.ndim, shape.dim))
        return INVALID(t);
    cot__attention a = job_of(t, qkv, mask, lse_attr);
    a.z = z.view, a.lse = lse.view;
    if (!run(t, "attention", &a, false)) return INVALID(t);
    cot_var sums = cot__result_push(t, &lse, OP_attention_lse, 2 + masks, lse_args, lse_attr);
    if (cot__failed(sums)) return sums;
    args[LSE] = cot__index(sums);
    cot__attr *attr = attr_like(t, "attention", ints, scale, MASKS + masks, args);
    return attr ? cot__result_push(t, &z, OP_attention, MASKS + masks, args, attr) : INVALID(t);
}

/* [q̄, k̄, v̄], one after the other; xs as in the node, `of` the attributes of the attention. */
static cot_var push_backward(cot_tape *t, const cot__attr *of, int masks, const cot_var *xs) {
    uint32_t    args[BACK_MASKS + 2];
    int64_t     total = 0;
    cot__result z;
    for (int i = 0; i < BACK_MASKS + masks; i++)
        if (!cot__operand(t, xs[i], "attention_backward", "", &args[i])) return INVALID(t);
    if ((args[BACK_LSE] = cot__dense(t, args[BACK_LSE])) == COT__NONE) return INVALID(t);
    for (int i = BACK_Q; i <= BACK_V; i++) total += cot__size_at(t, args[i]);
    cot__attr *attr = attr_like(t, "attention_backward", of->ints, of->number, BACK_MASKS + masks, args);
    if (!attr || !cot__result_open(t, &z, "attention_backward", cot__dtype_at(&t->nodes[args[BACK_Q]]), 1, &total))
        return INVALID(t);
    cot__attention a = job_of(t, args + BACK_Q, args + BACK_MASKS, attr);
    cot__view     *part[3] = {&a.dq, &a.dk, &a.dv}, like[3] = {a.q, a.k, a.v};
    int64_t        stride[3][COT_MAX_NDIM];
    char          *at = z.view.data;
    for (int i = 0; i < 3; i++) {
        cot__strides(like[i].ndim, like[i].shape, stride[i]);
        *part[i] = (cot__view){at, like[i].dtype, like[i].ndim, like[i].shape, stride[i]};
        at += cot__count(like[i].ndim, like[i].shape) * cot__dtype_size(like[i].dtype);
    }
    a.g = cot__view_read(t, args[BACK_G]), a.z = cot__view_read(t, args[BACK_Z]),
    a.lse = cot__view_read(t, args[BACK_LSE]);
    if (!run(t, "attention_backward", &a, true)) return INVALID(t);
    return cot__result_push(t, &z, OP_attention_backward, BACK_MASKS + masks, args, attr);
}

/* Applied to other operands, each of the two nodes runs the kernel for itself: the log-sums with
 * values of no features, the values with room for log-sums that nobody sees. */
static cot_var attention_apply(cot__rule *r, const cot_var *xs) {
    cot_tape   *t = r->t;
    int op = cot__rule_node(r)->op, n = cot__nargs(cot__rule_node(r)), first_mask = op == OP_attention ? MASKS : V;
    const char *name = cot__op_of(op)->name;
    uint32_t    args[MASKS + 2];
    cot__result z, lse;
    for (int i = 0; i < n; i++)
        if (!cot__operand(t, xs[i], name, "", &args[i])) return INVALID(t);
    cot__attr *attr = attr_like(t, name, cot__rule_attr(r)->ints, cot__rule_attr(r)->number, n, args);
    if (!attr) return INVALID(t);
    cot__attention a =
        job_of(t, (uint32_t[]){args[Q], args[K], op == OP_attention ? args[V] : args[K]}, args + first_mask, attr);
    cot_shape      shape = cot__shape_at(t, args[Q]), no_features = cot__shape_at(t, args[K]);
    no_features.dim[no_features.ndim - 1] = 0;
    if (op == OP_attention_lse) a.v.shape = no_features.dim;
    if (!cot__result_open(t, &lse, name, cot__dtype_compute(a.q.dtype), shape.ndim - 1, shape.dim)) return INVALID(t);
    shape.dim[shape.ndim - 1] = a.v.shape[a.v.ndim - 1];
    if (!cot__result_open(t, &z, name, a.q.dtype, shape.ndim, shape.dim)) return INVALID(t);
    a.z = z.view, a.lse = lse.view;
    if (!run(t, name, &a, false)) return INVALID(t);
    return cot__result_push(t, op == OP_attention ? &z : &lse, op, n, args, attr);
}

static cot_var backward_apply(cot__rule *r, const cot_var *xs) {
    return push_backward(r->t, cot__rule_attr(r), cot__nargs(cot__rule_node(r)) - BACK_MASKS, xs);
}

/* ---- the public function --------------------------------------------------------------------- */

static bool given(cot_var mask) { return mask.tape != NULL || mask.id != 0; }

cot_var cot_attention(cot_var q, cot_var k, cot_var v, const cot_attention_options *options) {
    static const char *const names[] = {"q", "k", "v"};
    cot_attention_options    o = options ? *options : (cot_attention_options){0};
    uint32_t                 xs[3], mask[2];
    int                      masks = 0;
    cot_tape                *t = cot__enter_all("attention", names, 3, (cot_var[]){q, k, v}, true, xs);
    if (!t) return cot__invalid(3, (cot_var[]){q, k, v});
    cot_shape        sq = cot__shape_at(t, xs[Q]), sk = cot__shape_at(t, xs[K]), sv = cot__shape_at(t, xs[V]), lead;
    const cot_shape *shapes[3] = {&sq, &sk, &sv};
    if (!check_shapes(t, &sq, &sk, &sv) || !broadcast_leading(t, shapes, &lead)) return INVALID(t);
    if (!(o.scale >= 0) || isinf(o.scale))
        return cot__fail(
            t, COT_VALUE,
            "[attention] the scale is %g; it must be positive and finite, or 0 for 1/sqrt of the last axis", o.scale);
    for (int i = 0; i < 3; i++) {
        cot_shape to = lead;
        to.dim[to.ndim++] = shapes[i]->dim[shapes[i]->ndim - 2];
        to.dim[to.ndim++] = shapes[i]->dim[shapes[i]->ndim - 1];
        cot_var wide = cot_broadcast_to(VAR(t, xs[i]), to);
        if (cot__failed(wide)) return wide;
        xs[i] = cot__index(wide);
    }
    cot_shape scores = lead;
    int64_t   d = sq.dim[sq.ndim - 1];
    scores.dim[scores.ndim++] = sq.dim[sq.ndim - 2];
    scores.dim[scores.ndim++] = sk.dim[sk.ndim - 2];
    cot_dtype dtype = cot__dtype_at(&t->nodes[xs[Q]]);
    if (given(o.mask) && !enter_mask(t, o.mask, "mask", true, dtype, &scores, &mask[masks++])) return INVALID(t);
    if (given(o.bias) && !enter_mask(t, o.bias, "bias", false, dtype, &scores, &mask[masks++])) return INVALID(t);
    return push_attention(t, xs, masks, mask, (int64_t[]){o.causal, given(o.mask), given(o.bias)},
                          o.scale > 0 ? o.scale : d > 0 ? 1 / sqrt((double)d) : 1);
}

/* ---- rules: the matrix of weights in elementary operations ----------------------------------- */

static cot_var widened(cot_var x) { return cot_cast(x, cot__dtype_compute(cot_dtype_of(x))); }
static cot_var row_sum(cot_var x) { return cot_sum(x, COT_KEEP(-1)); }

/* q, k, v, g widened, and the weights p = softmax(scale q kᵀ + bias), 0 where masked and in rows
 * without keys. */
typedef struct parts {
    cot_var q, k, v, p;
    double  scale;
    int     bias; /* operand, or -1 */
} parts;

static parts parts_of(cot__rule *r, int q, int masks) {
    const cot__attr *attr = cot__rule_attr(r);
    bool             causal = attr->ints[CAUSAL] != 0, has_mask = attr->ints[HAS_MASK] != 0;
    int              bias = attr->ints[HAS_BIAS] ? masks + has_mask : -1;
    parts            x    = {widened(cot__rule_x(r, q)),
                             widened(cot__rule_x(r, q + 1)),
                             widened(cot__rule_x(r, q + 2)),
                             {NULL, 0},
                             attr->number,
                             bias};
    cot_var          s = cot_mul(cot_matmul(x.q, cot__swap_last(x.k)), x.scale);
    if (bias >= 0) s = cot_add(s, widened(cot__rule_x(r, bias)));
    if (has_mask) s = cot_where(cot__rule_x(r, masks), s, -INFINITY);
    if (causal) {
        cot_shape shape = cot_shape_of(s);
        cot_var   i = cot_arange(r->t, COT_I64, 0, (double)cot__extent_back(&shape, 2), 1);
        cot_var   j = cot_arange(r->t, COT_I64, 0, (double)cot__extent_back(&shape, 1), 1);
        s = cot_where(cot_greater_equal(cot_expand_dims(i, 1), j), s, -INFINITY);
    }
    cot_var alive = cot_any(cot_not_equal(s, -INFINITY), COT_KEEP(-1));
    x.p = cot_where(alive, cot_softmax(cot_where(alive, s, 0.0), -1), 0.0);
    return x;
}

/* p (x - Σ p x): the softmax's Jacobian, which is symmetric. */
static cot_var through_softmax(cot_var p, cot_var x) {
    cot_var px = cot_smul(x, p);
    return cot_sub(px, cot_smul(row_sum(px), p));
}

static bool moves(cot_var tangent) { return tangent.tape != NULL && tangent.id != UINT64_MAX; }
static cot_var plus(cot_var a, cot_var b) { return !moves(a) ? b : !moves(b) ? a : cot_add(a, b); }

/* How the scores move: scale (dq kᵀ + q dkᵀ) + d bias. */
static cot_var score_tangent(const parts *x, cot_var dq, cot_var dk, cot_var dbias) {
    cot_var e = {NULL, 0};
    if (moves(dq)) e = cot_mul(cot_matmul(widened(dq), cot__swap_last(x->k)), x->scale);
    if (moves(dk)) e = plus(e, cot_mul(cot_matmul(x->q, cot__swap_last(widened(dk))), x->scale));
    return moves(dbias) ? plus(e, widened(dbias)) : e;
}

static void attention_jvp(cot__rule *r) {
    static const cot_var none = {NULL, 0};
    parts   x = parts_of(r, Q, MASKS);
    cot_var e = score_tangent(&x, r->tangents[Q], r->tangents[K], x.bias >= 0 ? r->tangents[x.bias] : none), z = none;
    if (moves(e)) z = cot_matmul(through_softmax(x.p, e), x.v);
    if (moves(r->tangents[V])) z = plus(z, cot_matmul(x.p, widened(r->tangents[V])));
    r->tangent = cot_cast(z, cot__dtype_at(cot__rule_node(r)));
}

/* Part k of a flat [q, k, v], shaped like operand `q + k` of the node. */
static cot_var part_of(cot__rule *r, cot_var flat, int q, int k) {
    int64_t from = 0;
    for (int i = 0; i < k; i++) from += cot__size_at(r->t, cot__rule_arg(r, q + i));
    return cot_reshape(cot_slice(flat, 0, from, from + cot__size_at(r->t, cot__rule_arg(r, q + k)), 1),
                       cot__rule_shape(r, q + k));
}

static void attention_vjp(cot__rule *r) {
    if (cot__rule_wants(r, Q) || cot__rule_wants(r, K) || cot__rule_wants(r, V)) {
        int     masks = cot__nargs(cot__rule_node(r)) - MASKS;
        cot_var xs[BACK_MASKS + 2] = {r->g,           cot__rule_x(r, Q),  cot__rule_x(r, K), cot__rule_x(r, V),
                                      cot__rule_z(r), cot__rule_x(r, LSE)};
        for (int i = 0; i < masks; i++) xs[BACK_MASKS + i] = cot__rule_x(r, MASKS + i);
        cot_var flat = push_backward(r->t, cot__rule_attr(r), masks, xs);
        for (int i = Q; i <= V; i++)
            if (cot__rule_wants(r, i)) cot__give(r, i, part_of(r, flat, Q, i));
    }
    const cot__attr *attr = cot__rule_attr(r);
    int              bias = attr->ints[HAS_BIAS] ? MASKS + (attr->ints[HAS_MASK] != 0) : -1;
    if (bias < 0 || !cot__rule_wants(r, bias)) return;
    parts x = parts_of(r, Q, MASKS);
    cot__give(r, bias,
              cot_cast(through_softmax(x.p, cot_matmul(widened(r->g), cot__swap_last(x.v))),
                       cot__dtype_at(cot__rule_node(r))));
}

/* With h the adjoint of [q̄, k̄, v̄] and e how the scores would move along h: φ = ⟨g, the tangent of
 * attention along h⟩ is what to differentiate, φ = Σ p (e x + y) - Σ_i (Σ_j p e) (Σ_j p x), x = g
 * vᵀ, y = g hvᵀ. Its derivative by p is m, and p depends on the scores. */
static void attention_backward_vjp(cot__rule *r) {
    parts     x = parts_of(r, BACK_Q, BACK_MASKS);
    cot_dtype d = cot__dtype_at(cot__rule_node(r));
    cot_var   g = widened(cot__rule_x(r, BACK_G)), none = {NULL, 0}, h[3];
    for (int i = 0; i < 3; i++) h[i] = widened(part_of(r, r->g, BACK_Q, i));
    cot_var e = score_tangent(&x, h[0], h[1], none), w = through_softmax(x.p, e);
    if (cot__rule_wants(r, BACK_G))
        cot__give(r, BACK_G, cot_cast(cot_add(cot_matmul(w, x.v), cot_matmul(x.p, h[2])), d));
    if (cot__rule_wants(r, BACK_V)) cot__give(r, BACK_V, cot_cast(cot_matmul(cot__swap_last(w), g), d));
    if (!cot__rule_wants(r, BACK_Q) && !cot__rule_wants(r, BACK_K) && (x.bias < 0 || !cot__rule_wants(r, x.bias)))
        return;
    cot_var dp = cot_matmul(g, cot__swap_last(x.v)), ds = through_softmax(x.p, dp);
    cot_var m = cot_add(cot_mul(e, dp), cot_matmul(g, cot__swap_last(h[2])));
    m = cot_sub(m, cot_add(cot_mul(e, row_sum(cot_smul(dp, x.p))), cot_mul(dp, row_sum(cot_smul(e, x.p)))));
    cot_var s = through_softmax(x.p, m);
    if (cot__rule_wants(r, BACK_Q))
        cot__give(r, BACK_Q, cot_cast(cot_mul(cot_add(cot_matmul(s, x.k), cot_matmul(ds, h[1])), x.scale), d));
    if (cot__rule_wants(r, BACK_K))
        cot__give(r, BACK_K,
                  cot_cast(cot_mul(cot_add(cot_matmul(cot__swap_last(s), x.q), cot_matmul(cot__swap_last(ds), h[0])),
                                   x.scale),
                           d));
    if (x.bias >= 0 && cot__rule_wants(r, x.bias)) cot__give(r, x.bias, cot_cast(s, d));
}

#define ATTRS "causal:f mask:f bias:f scale:n"

/* Products of q and k, and the sum over the keys as of logsumexp. */
static double attention_lse_cost(const cot_tape *t, uint32_t node) {
    double keys = cot__operand_extent(t, node, K, -2), z = (double)cot__size_at(t, node);
    return cot__operand_size(t, node, Q) * keys * 2 + z * keys * 4;
}

/* Products with k and v, and a softmax for each query. */
static double attention_cost(const cot_tape *t, uint32_t node) {
    double q = cot__operand_size(t, node, Q), features = cot__operand_extent(t, node, Q, -1);
    double z = (double)cot__size_at(t, node), keys = cot__operand_extent(t, node, K, -2);
    return keys * (2 * (q + z) + 5 * q / (features > 0 ? features : 1));
}

static double attention_backward_cost(const cot_tape *t, uint32_t node) {
    return 10 * cot__operand_extent(t, node, BACK_Q, -2) * cot__operand_size(t, node, BACK_G);
}

const cot__op cot__op_attention_lse = {.name     = "attention_lse",
                                       .batch    = cot__batch_shift,
                                       .kind     = KIND_NONE,
                                       .attrs    = ATTRS,
                                       .apply    = attention_apply,
                                       .formula  = "z = log Σ exp(scale q kᵀ + bias)",
                                       .cost     = {.more = attention_lse_cost},
                                       .operands = "q k b b"};
const cot__op cot__op_attention     = {
        .name     = "attention",
        .batch    = cot__batch_shift,
        .kind     = KIND_GENERIC,
        .attrs    = ATTRS,
        .inactive = 1u << LSE,
        .saves    = 0x7fu | COT__SAVES_Z,
        .vjp      = attention_vjp,
        .jvp      = attention_jvp,
        .apply    = attention_apply,
        .formula =
            "z = p v, p = softmax(scale q kᵀ + bias); v̄ += pᵀ z̄, s̄ = p (z̄ vᵀ - Σ z z̄), "
            "q̄ += scale s̄ k, k̄ += scale s̄ᵀ q",
        .cost     = {.more = attention_cost},
        .linear   = 1u << V,
        .operands = "q k v lse b b"};
const cot__op cot__op_attention_backward = {
    .name     = "attention_backward",
    .batch    = cot__batch_attention_backward,
    .kind     = KIND_GENERIC,
    .attrs    = ATTRS,
    .inactive = 1u << BACK_Z | 1u << BACK_LSE,
    .saves    = 0x4fu,
    .vjp      = attention_backward_vjp,
    .apply    = backward_apply,
    .formula =
        "z = [q̄, k̄, v̄] of attention; its rule is the derivative of ⟨g, dattention⟩ along z̄, in elementary operations",
    .cost     = {.more = attention_backward_cost},
    .linear   = 1u << BACK_G,
    .operands = "g q k v z lse b b"};
