/* attention.c: scaled dot-product attention, one node whose memory grows with the sequence and not
 * with its square.
 *
 * Two operations: `attention`, whose second result is the log-sum-exp of each query's scores, which
 * backward needs to compute weights again and nobody else sees; and `attention_backward`, its whole
 * vector-Jacobian product with results q̄, k̄ and v̄, recorded so that cot_backward stays fused. The
 * rules of forward mode, of an additive mask and of attention_backward are written in elementary
 * operations on the matrix of weights: every order exists, but from there on memory is
 * quadratic. */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/structural.h"

/* operands of attention: then the mask and the bias, those that there are; and its results */
enum { Q, K, V, MASKS };
enum { Z, LSE, RESULTS };
/* and of attention_backward */
enum { BACK_G, BACK_Q, BACK_K, BACK_V, BACK_Z, BACK_LSE, BACK_MASKS };
/* attributes; attr->number is the scale. CAUSAL: how many keys the first query sees, each one more
 * than the query before it; 0: all see all */
enum { CAUSAL, HAS_MASK, HAS_BIAS, ATTENTION_INTS };
/* with room for sums of positions */
static const int64_t MOST_KEYS = INT64_C(1) << 48;

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

/* ---- the jobs -------------------------------------------------------------------------------- */

/* How many of mask and bias an operation with these attributes has. */
static int masks_of(const cot__attr *attr) { return (attr->ints[HAS_MASK] != 0) + (attr->ints[HAS_BIAS] != 0); }

/* As many operands as `fixed` and the masks. */
static bool has_operands(const cot__job *j, int fixed) {
    if (!cot__job_has(j, fixed, fixed + 2, ATTENTION_INTS) || !cot__job_range(j, CAUSAL, 0, MOST_KEYS)) return false;
    int n = fixed + masks_of(j->attr);
    return cot__job_has(j, n, n, ATTENTION_INTS);
}

/* Operand k has this dtype, and the leading axes of q before extents m and n; n < 0: before m
 * alone. */
static bool is_matrix(const cot__job *j, int q, int k, cot_dtype dtype, int64_t m, int64_t n) {
    cot_shape want = cot__view_extents(&j->x[q]);
    want.dim[want.ndim - 2] = m;
    want.dim[want.ndim - 1] = n;
    return cot__job_dtype(j, k, dtype) && cot__job_shape(j, k, want.ndim - (n < 0), want.dim);
}

/* q (…,T,d), k (…,S,d), and masks (…,T,S) at operand `masks`. */
static bool check_scores(const cot__job *j, int q, int masks) {
    const cot__view *x = &j->x[q], *k = &j->x[q + 1];
    int              n = x->ndim;
    if (!cot__job_float(j, q)) return false;
    if (n < 2 || k->ndim != n) return cot__job_illegal(j, "queries of %d axes, keys of %d", n, k->ndim);
    int64_t queries = x->shape[n - 2], keys = k->shape[n - 2];
    if (!is_matrix(j, q, q + 1, x->dtype, keys, x->shape[n - 1])) return false;
    if (j->attr->ints[HAS_MASK] && !is_matrix(j, q, masks++, COT_BOOL, queries, keys)) return false;
    return !j->attr->ints[HAS_BIAS] || is_matrix(j, q, masks, x->dtype, queries, keys);
}

/* The same, and v (…,S,e). */
static bool check_values(const cot__job *j, int q, int masks) {
    if (!check_scores(j, q, masks)) return false;
    const cot__view *x = &j->x[q], *k = &j->x[q + 1], *v = &j->x[q + 2];
    int              n = x->ndim;
    if (v->ndim != n) return cot__job_illegal(j, "queries of %d axes, values of %d", n, v->ndim);
    return is_matrix(j, q, q + 2, x->dtype, k->shape[n - 2], v->shape[n - 1]);
}

static int attention_results(const cot__job *j) { return (void)j, RESULTS; }

static bool attention_infer(const cot__job *j, cot__type *z) {
    if (!has_operands(j, MASKS) || !check_values(j, Q, MASKS)) return false;
    z[Z] = z[LSE] = (cot__type){j->x[Q].dtype, cot__view_extents(&j->x[Q])};
    z[Z].shape.dim[z->shape.ndim - 1] = j->x[V].shape[z->shape.ndim - 1];
    z[LSE].dtype = cot__dtype_compute(j->x[Q].dtype);
    z[LSE].shape.ndim--;
    return true;
}

static int attention_backward_results(const cot__job *j) { return (void)j, 3; }

static bool attention_backward_infer(const cot__job *j, cot__type *z) {
    if (!has_operands(j, BACK_MASKS) || !check_values(j, BACK_Q, BACK_MASKS)) return false;
    const cot__view *q = &j->x[BACK_Q], *v = &j->x[BACK_V];
    int64_t          queries = q->shape[q->ndim - 2], features = v->shape[q->ndim - 1];
    for (int k = 0; k < 3; k++) cot__type_like(&z[k], q->dtype, &j->x[BACK_Q + k]);
    return is_matrix(j, BACK_Q, BACK_LSE, cot__dtype_compute(q->dtype), queries, -1) &&
           is_matrix(j, BACK_Q, BACK_G, q->dtype, queries, features) &&
           is_matrix(j, BACK_Q, BACK_Z, q->dtype, queries, features);
}

/* What the kernel sees of q, k, v from operand `q` on, and of the masks. */
static cot__attention kernel_job(const cot__job *j, int q, int masks) {
    const cot__attr *attr = j->attr;
    cot__attention   a = {.q = j->x[q], .k = j->x[q + 1], .causal = attr->ints[CAUSAL], .scale = attr->number};
    a.v = j->x[q + 2];
    if (attr->ints[HAS_MASK]) a.mask = j->x[masks++];
    if (attr->ints[HAS_BIAS]) a.bias = j->x[masks];
    return a;
}

static int64_t attention_workspace(const cot__job *j) {
    cot__attention a = kernel_job(j, Q, MASKS);
    return j->backend->attention_workspace(&a, false);
}

static void attention_run(const cot__job *j) {
    cot__attention a = kernel_job(j, Q, MASKS);
    a.z = j->z;
    a.lse = j->more[LSE - 1];
    j->backend->attention_forward(&a, j->workspace);
}

static int64_t attention_backward_workspace(const cot__job *j) {
    cot__attention a = kernel_job(j, BACK_Q, BACK_MASKS);
    int64_t        tiles = j->backend->attention_workspace(&a, true);
    return tiles < 0 ? tiles : cot__size_add(tiles, cot__pack_bytes(&j->x[BACK_LSE], j->x[BACK_LSE].dtype));
}

static void attention_backward_run(const cot__job *j) {
    cot__attention a = kernel_job(j, BACK_Q, BACK_MASKS);
    char          *memory = j->workspace;
    a.dq = j->z;
    a.dk = j->more[0];
    a.dv = j->more[1];
    a.g = j->x[BACK_G];
    a.z = j->x[BACK_Z];
    a.lse = j->x[BACK_LSE];
    a.lse.data = (void *)(uintptr_t)cot__pack_operand(j, BACK_LSE, a.lse.dtype, &memory);
    j->backend->attention_backward(&a, memory);
}

/* ---- the nodes ------------------------------------------------------------------------------- */

static cot__attr *attr_like(cot_tape *t, const char *op, const int64_t ints[3], double scale, int n,
                            const uint32_t *args) {
    cot__attr *attr = cot__attr_make(t, op, ATTENTION_INTS, ints, n, args);
    if (attr) attr->number = scale;
    return attr;
}

/* masks: the indices of mask and bias, those that there are. */
static cot_var push_attention(cot_tape *t, const uint32_t qkv[3], int masks, const uint32_t *mask,
                              const int64_t ints[3], double scale) {
    static const char name[] = "attention";
    uint32_t          args[MASKS + 2] = {qkv[0], qkv[1], qkv[2]};
    for (int i = 0; i < masks; i++) args[MASKS + i] = mask[i];
    cot__attr *attr = attr_like(t, name, ints, scale, MASKS + masks, args);
    return attr ? cot__record(t, name, OP_attention, MASKS + masks, args, attr, NULL) : INVALID(t);
}

/* xs as in the node, `of` the attributes of the attention. */
static cot_var push_backward(cot_tape *t, const cot__attr *of, const cot_var *xs) {
    static const char name[] = "attention_backward";
    uint32_t          args[BACK_MASKS + 2];
    int               n = BACK_MASKS + masks_of(of);
    for (int i = 0; i < n; i++)
        if (!cot__operand(t, xs[i], name, "", &args[i])) return INVALID(t);
    cot__attr *attr = attr_like(t, name, of->ints, of->number, n, args);
    return attr ? cot__record(t, name, OP_attention_backward, n, args, attr, NULL) : INVALID(t);
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
    if (o.first_query < 0 || o.first_query >= MOST_KEYS)
        return cot__fail(t, COT_VALUE,
                         "[attention] the first query is at position %lld; positions count from 0, to 2^48",
                         (long long)o.first_query);
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
    return push_attention(t, xs, masks, mask,
                          (int64_t[]){o.causal ? o.first_query + 1 : 0, given(o.mask), given(o.bias)},
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
    bool             has_mask = attr->ints[HAS_MASK] != 0;
    double           first = (double)attr->ints[CAUSAL] - 1; /* the last key that query 0 sees */
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
    if (first >= 0) {
        cot_shape shape = cot_shape_of(s);
        cot_var   i = cot_arange(r->t, COT_I64, first, first + (double)cot__extent_back(&shape, 2), 1);
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

static void attention_vjp(cot__rule *r) {
    if (cot__rule_wants(r, Q) || cot__rule_wants(r, K) || cot__rule_wants(r, V)) {
        int     masks = masks_of(cot__rule_attr(r));
        cot_var xs[BACK_MASKS + 2] = {r->g,           cot__rule_x(r, Q),  cot__rule_x(r, K), cot__rule_x(r, V),
                                      cot__rule_z(r), cot__rule_result_of(r, LSE)};
        for (int i = 0; i < masks; i++) xs[BACK_MASKS + i] = cot__rule_x(r, MASKS + i);
        cot_var bars = push_backward(r->t, cot__rule_attr(r), xs);
        for (int i = Q; i <= V; i++)
            if (cot__rule_wants(r, i)) cot__give(r, i, cot__result_of(bars, i - Q));
    }
    const cot__attr *attr = cot__rule_attr(r);
    int              bias = attr->ints[HAS_BIAS] ? MASKS + (attr->ints[HAS_MASK] != 0) : -1;
    if (bias < 0 || !cot__rule_wants(r, bias)) return;
    parts x = parts_of(r, Q, MASKS);
    cot__give(r, bias,
              cot_cast(through_softmax(x.p, cot_matmul(widened(r->g), cot__swap_last(x.v))),
                       cot__dtype_at(cot__rule_node(r))));
}

/* With h the adjoint of q̄, k̄ and v̄ and e how the scores would move along h: φ = ⟨g, the tangent of
 * attention along h⟩ is what to differentiate, φ = Σ p (e x + y) - Σ_i (Σ_j p e) (Σ_j p x), x = g
 * vᵀ, y = g hvᵀ. Its derivative by p is m, and p depends on the scores. */
static void attention_backward_vjp(cot__rule *r) {
    parts     x = parts_of(r, BACK_Q, BACK_MASKS);
    cot_dtype d = cot__dtype_at(cot__rule_node(r));
    cot_var   g = widened(cot__rule_x(r, BACK_G)), none = {NULL, 0}, h[3];
    for (int i = 0; i < 3; i++) h[i] = widened(cot__rule_adjoint(r, i));
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

/* Products with k and v, and a softmax for each query. */
static double attention_cost(const cot_tape *t, uint32_t node) {
    double q = cot__operand_size(t, node, Q), features = cot__operand_extent(t, node, Q, -1);
    double z = (double)cot__size_at(t, node), keys = cot__operand_extent(t, node, K, -2);
    return keys * (2 * (q + z) + 5 * q / (features > 0 ? features : 1));
}

/* Five products over the keys: the scores, q̄ and k̄ have the features of q, z̄ vᵀ and v̄ those of
 * v. */
static double attention_backward_cost(const cot_tape *t, uint32_t node) {
    double q = cot__operand_size(t, node, BACK_Q), g = cot__operand_size(t, node, BACK_G);
    return cot__operand_extent(t, node, BACK_K, -2) * 2 * (3 * q + 2 * g);
}

const cot__op cot__op_attention     = {
        .name      = "attention",
        .batch     = cot__batch_shift,
        .kind      = KIND_GENERIC,
        .attrs     = ATTRS,
        .saves     = 0x7fu | COT__SAVES_Z,
        .vjp      = attention_vjp,
        .jvp      = attention_jvp,
        .results   = attention_results,
        .infer     = attention_infer,
        .workspace = attention_workspace,
        .run      = attention_run,
        .formula =
            "z = p v, p = softmax(scale q kᵀ + bias); v̄ += pᵀ z̄, s̄ = p (z̄ vᵀ - Σ z z̄), "
            "q̄ += scale s̄ k, k̄ += scale s̄ᵀ q",
        .cost      = {.more = attention_cost},
        .linear    = 1u << V,
        .operands  = "q k v b b"};
const cot__op cot__op_attention_backward = {
    .name      = "attention_backward",
    .batch     = cot__batch_shift,
    .kind      = KIND_GENERIC,
    .attrs     = ATTRS,
    .inactive  = 1u << BACK_Z | 1u << BACK_LSE,
    .saves     = 0x4fu,
    .vjp      = attention_backward_vjp,
    .results   = attention_backward_results,
    .infer     = attention_backward_infer,
    .workspace = attention_backward_workspace,
    .run      = attention_backward_run,
    .formula =
        "z = q̄, then k̄ and v̄; its rule is the derivative of ⟨g, dattention⟩ along z̄, in elementary operations",
    .cost      = {.more = attention_backward_cost},
    .linear    = 1u << BACK_G,
    .operands  = "g q k v z lse b b"};
