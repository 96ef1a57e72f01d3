/* csr_ops.c: the operations of sparse matrices: products with dense ones, dense products at the
 * places of a sparse one, and softmax over rows.
 *
 * The first two are bilinear and closed under differentiation. With z = a x: the values receive z̄
 * xᵀ at their places, x receives aᵀ z̄. With v = x yᵀ at places: x receives v̄ y and y receives v̄ᵀ
 * x. The pattern is an operand without derivative (sparse.h); infer holds its length against the
 * shapes, and the kernels believe none of its elements, so that no pass over it is needed before a
 * run. */
#include "rules/structural_ids.h"
#include "ops/sparse/sparse.h"
#include "backend/job_run.h"
#include "base/sizes.h"
#include "ops/costs.h"

/* operands of csr_matmul and csr_sddmm; of csr_softmax */
enum { VALUES, X, PATTERN };
enum { LEFT, RIGHT };
enum { SOFT_PATTERN = 1 };

/* ---- patterns -------------------------------------------------------------------------------- */

/* What is left of the pattern's length beside two ends, `given` rows or columns, and three integers
 * for each entry. */
static int64_t rest_of(const cot__job *j, int pattern, int64_t given, int64_t entries) {
    return j->x[pattern].shape[0] - 2 - given - 3 * entries;
}

static bool has_pattern(const cot__job *j, int k) {
    return cot__job_dtype(j, k, COT_I32) && (j->x[k].ndim == 1 || cot__job_illegal(j, "the pattern is no vector"));
}

/* The pattern in memory as kernels take it. */
static cot__compressed csr_of(const int32_t *p, int64_t rows, int64_t columns, int64_t entries, bool transposed) {
    const int32_t *turned = p + rows + 1 + entries;
    if (!transposed) return (cot__compressed){rows, entries, p, p + rows + 1, NULL};
    return (cot__compressed){columns, entries, turned, turned + columns + 1, turned + columns + 1 + entries};
}

/* ---- operands as kernels take them: the computing type, rows side by side -------------------- */

typedef struct packed { cot__view v; int64_t stride[COT_MAX_NDIM]; } packed;

static bool fits(const cot__view *v, cot_dtype dtype) {
    int last = v->ndim - 1;
    return v->dtype == dtype && (v->shape[last] <= 1 || v->stride[last] == 1);
}

static int64_t packed_bytes(const cot__view *v, cot_dtype dtype) {
    return fits(v, dtype) ? 0 : cot__room_bytes(v, dtype);
}

static void pack(const cot__job *j, int k, cot_dtype dtype, char **at, packed *to) {
    to->v = j->x[k];
    if (fits(&to->v, dtype)) return;
    to->v = (cot__view){*at, dtype, to->v.ndim, to->v.shape, to->stride};
    cot__strides(to->v.ndim, to->v.shape, to->stride);
    *at += cot__room_bytes(&to->v, dtype);
    j->backend->copy(&to->v, &j->x[k]);
}

/* Room for n float operands, the pattern behind them, and the result. */
static int64_t workspace_of(const cot__job *j, int n) {
    cot_dtype d = cot__dtype_compute(j->z.dtype);
    int64_t   bytes = cot__size_add(cot__pack_bytes(&j->z, d), cot__pack_bytes(&j->x[n], COT_I32));
    for (int k = 0; k < n; k++) bytes = cot__size_add(bytes, packed_bytes(&j->x[k], d));
    return bytes;
}
static int64_t two_workspace(const cot__job *j) { return workspace_of(j, 2); }
static int64_t one_workspace(const cot__job *j) { return workspace_of(j, 1); }

/* Operands 0 … n - 1, the pattern, and where the result is computed. */
static const int32_t *pack_all(const cot__job *j, int n, packed *xs, cot__view *z) {
    char     *at = j->workspace;
    cot_dtype d = cot__dtype_compute(j->z.dtype);
    for (int k = 0; k < n; k++) pack(j, k, d, &at, &xs[k]);
    *z = (cot__view){cot__pack_room(&j->z, d, &at), d, j->z.ndim, j->z.shape, j->z.stride};
    return cot__pack_operand(j, n, COT_I32, &at);
}

/* ---- csr_matmul ------------------------------------------------------------------------------ */

/* Have both the same axes before their last m and n? */
static bool same_leading(const cot__job *j, const cot__view *a, int m, const cot__view *b, int n) {
    bool same = a->ndim >= m && b->ndim >= n && a->ndim - m == b->ndim - n;
    for (int k = 0; same && k < a->ndim - m; k++) same = a->shape[k] == b->shape[k];
    return same || cot__job_illegal(j, "the leading axes differ");
}

/* So many integers, and two floats of one dtype beside a pattern, with equal axes before the last m
 * and the last two. */
static bool has_two(const cot__job *j, int ints, int m) {
    return cot__job_has(j, 3, 3, ints) && cot__job_float(j, LEFT) && cot__job_dtype(j, RIGHT, j->x[LEFT].dtype) &&
           has_pattern(j, PATTERN) && same_leading(j, &j->x[LEFT], m, &j->x[RIGHT], 2);
}

static bool matmul_infer(const cot__job *j, cot__type *z) {
    if (!has_two(j, 1, 1)) return false;
    const cot__view *x = &j->x[X];
    int64_t          other = rest_of(j, PATTERN, x->shape[x->ndim - 2], j->x[VALUES].shape[x->ndim - 2]);
    if (other < 0) return cot__job_illegal(j, "the pattern is too short");
    cot__type_like(z, x->dtype, x);
    z->shape.dim[x->ndim - 2] = other;
    return true;
}

static void matmul_run(const cot__job *j) {
    packed         xs[2];
    cot__view      z;
    const int32_t *pattern = pack_all(j, 2, xs, &z);
    bool           transposed = cot__job_int(j, 0) != 0;
    int64_t        in = xs[X].v.shape[z.ndim - 2], out = z.shape[z.ndim - 2], entries = xs[VALUES].v.shape[z.ndim - 2];
    cot__compressed       a = csr_of(pattern, transposed ? in : out, transposed ? out : in, entries, transposed);
    j->backend->csr_matmul(&a, &xs[VALUES].v, &xs[X].v, &z);
    cot__unpack(j, &j->z, z.dtype, z.data);
}

static cot_var push(const char *name, int op, int ints, int64_t first, int n, const cot_var *xs) {
    uint32_t  index[3];
    cot_tape *t = NULL;
    for (int k = 0; k < n; k++)
        if (!(t = cot__enter(t, xs[k], name, k == n - 1 ? "pattern" : "operand", &index[k])))
            return cot__invalid(n, xs);
    cot__attr *attr = n > 2 || ints ? cot__attr_make(t, name, ints, &first, n > 2 ? n : 0, n > 2 ? index : NULL) : NULL;
    return attr ? cot__record(t, name, op, n, index, attr, NULL) : INVALID(t);
}

cot_var cot__csr_product(const char *op, cot_var values, cot_var x, cot_var pattern, bool transposed) {
    return push(op, OP_csr_matmul, 1, transposed, 3, (cot_var[]){values, x, pattern});
}

static void matmul_vjp(cot__rule *r) {
    bool    transposed = cot__rule_attr(r)->ints[0] != 0;
    cot_var pattern = cot__rule_x(r, PATTERN);
    if (cot__rule_wants(r, VALUES)) {
        cot_var x = cot__rule_x(r, X);
        cot__give(r, VALUES, cot__csr_samples("csr_sddmm", transposed ? x : r->g, transposed ? r->g : x, pattern));
    }
    if (cot__rule_wants(r, X))
        cot__give(r, X, cot__csr_product("csr_matmul", cot__rule_x(r, VALUES), r->g, pattern, !transposed));
}

/* One pattern for all: the batch becomes a leading axis of what has one. */
static cot_var batch(cot__rule *r, const cot__batch *b, cot_var *xs) {
    if (b->is[b->n - 1]) return cot__batch_loop(r, b, xs);
    for (int k = 0; k < b->n - 1; k++) xs[k] = cot__batch_full(b, k, xs[k]);
    return cot__batch_apply(r, b->extent, xs);
}

/* ---- what reads what: of a matrix that is one of `count` behind each other ------------------- */

/* The range of row i's entries; an illegal pattern has none there. */
static int64_t row_range(const cot__reading *q, int64_t i, int64_t entries, int64_t *end) {
    int64_t from = q->places[i], to = q->places[i + 1];
    bool    legal = from >= 0 && from <= to && to <= entries;
    *end = legal ? to : 0;
    return legal ? from : 0;
}

/* An entry e in row i and column j, of matrix number m. */
typedef void visit(const cot__reading *q, int64_t m, int64_t e, int64_t i, int64_t j);

static void visit_entries(const cot__reading *q, int64_t count, int64_t rows, int64_t columns, int64_t entries,
                          visit *to) {
    for (int64_t m = 0; m < count; m++)
        for (int64_t i = 0, end; i < rows; i++)
            for (int64_t e = row_range(q, i, entries, &end); e < end; e++) {
                int64_t j = q->places[rows + 1 + e];
                if (j >= 0 && j < columns) to(q, m, e, i, j);
            }
}

static int64_t last_of(const cot_shape *s, int back) { return s->dim[s->ndim - back]; }

/* z[i] += v[e] x[j], of a transposed matrix z[j] += v[e] x[i]: in each of k columns. */
static void matmul_entry(const cot__reading *q, int64_t m, int64_t e, int64_t i, int64_t j) {
    cot_shape v = cot__rule_shape(q->r, VALUES), x = cot__rule_shape(q->r, X), z = cot__shape_at(q->r->t, q->r->node);
    bool      transposed = cot__rule_attr(q->r)->ints[0] != 0;
    int64_t   k = last_of(&x, 1), to = (m * last_of(&z, 2) + (transposed ? j : i)) * k;
    int64_t   from = (m * last_of(&x, 2) + (transposed ? i : j)) * k;
    for (int64_t c = 0; c < k; c++) q->add(q->ctx, to + c, q->k == VALUES ? m * last_of(&v, 1) + e : from + c);
}

static void matmul_reach(const cot__reading *q) {
    cot_shape v = cot__rule_shape(q->r, VALUES), x = cot__rule_shape(q->r, X), z = cot__shape_at(q->r->t, q->r->node);
    bool      transposed = cot__rule_attr(q->r)->ints[0] != 0;
    int64_t   in = last_of(&x, 2), out = last_of(&z, 2);
    visit_entries(q, cot__count(v.ndim - 1, v.dim), transposed ? in : out, transposed ? out : in, last_of(&v, 1),
                  matmul_entry);
}

static double matmul_cost(const cot_tape *t, uint32_t node) {
    return 2 * cot__operand_size(t, node, VALUES) * cot__operand_extent(t, node, X, -1);
}

const cot__op cot__op_csr_matmul = {.name      = "csr_matmul",
                                    .batch     = batch,
                                    .attrs     = "transposed:f",
                                    .kind      = KIND_BILINEAR,
                                    .inactive  = 1u << PATTERN,
                                    .saves     = 7u,
                                    .rounds    = true,
                                    .formula   = "z = A x, A with the entries v; v̄[i,j] += z̄[i]·x[j], x̄ += Aᵀ z̄",
                                    .vjp       = matmul_vjp,
                                    .infer     = matmul_infer,
                                    .workspace = two_workspace,
                                    .run       = matmul_run,
                                    .reach     = matmul_reach,
                                    .cost      = {.more = matmul_cost},
                                    .operands  = "v x a"};

/* ---- csr_sddmm ------------------------------------------------------------------------------- */

static bool sddmm_infer(const cot__job *j, cot__type *z) {
    if (!has_two(j, 0, 2)) return false;
    const cot__view *x = &j->x[LEFT], *y = &j->x[RIGHT];
    int              n = x->ndim;
    if (x->shape[n - 1] != y->shape[n - 1]) return cot__job_illegal(j, "the last axes differ");
    int64_t rest = rest_of(j, PATTERN, x->shape[n - 2] + y->shape[n - 2], 0);
    if (rest < 0 || rest % 3) return cot__job_illegal(j, "the pattern is not that of a matrix of these rows");
    cot__type_like(z, x->dtype, x);
    z->shape.ndim = n - 1;
    z->shape.dim[n - 2] = rest / 3;
    return true;
}

static void sddmm_run(const cot__job *j) {
    packed         xs[2];
    cot__view      z;
    const int32_t *pattern = pack_all(j, 2, xs, &z);
    int            n = xs[LEFT].v.ndim;
    cot__compressed       a =
        csr_of(pattern, xs[LEFT].v.shape[n - 2], xs[RIGHT].v.shape[n - 2], z.shape[n - 2], false);
    j->backend->csr_sddmm(&a, &xs[LEFT].v, &xs[RIGHT].v, &z);
    cot__unpack(j, &j->z, z.dtype, z.data);
}

cot_var cot__csr_samples(const char *op, cot_var x, cot_var y, cot_var pattern) {
    return push(op, OP_csr_sddmm, 0, 0, 3, (cot_var[]){x, y, pattern});
}

static void sddmm_vjp(cot__rule *r) {
    cot_var pattern = cot__rule_x(r, PATTERN);
    if (cot__rule_wants(r, LEFT))
        cot__give(r, LEFT, cot__csr_product("csr_matmul", r->g, cot__rule_x(r, RIGHT), pattern, false));
    if (cot__rule_wants(r, RIGHT))
        cot__give(r, RIGHT, cot__csr_product("csr_matmul", r->g, cot__rule_x(r, LEFT), pattern, true));
}

/* z[e] = x[i]·y[j] */
static void sddmm_entry(const cot__reading *q, int64_t m, int64_t e, int64_t i, int64_t j) {
    cot_shape s = cot__rule_shape(q->r, q->k), z = cot__shape_at(q->r->t, q->r->node);
    int64_t   k = last_of(&s, 1), from = (m * last_of(&s, 2) + (q->k == LEFT ? i : j)) * k;
    for (int64_t c = 0; c < k; c++) q->add(q->ctx, m * last_of(&z, 1) + e, from + c);
}

static void sddmm_reach(const cot__reading *q) {
    cot_shape x = cot__rule_shape(q->r, LEFT), y = cot__rule_shape(q->r, RIGHT), z = cot__shape_at(q->r->t, q->r->node);
    visit_entries(q, cot__count(z.ndim - 1, z.dim), last_of(&x, 2), last_of(&y, 2), last_of(&z, 1), sddmm_entry);
}

static double sddmm_cost(const cot_tape *t, uint32_t node) {
    return 2 * (double)cot__size_at(t, node) * cot__operand_extent(t, node, LEFT, -1);
}

const cot__op cot__op_csr_sddmm = {.name      = "csr_sddmm",
                                   .batch     = batch,
                                   .kind      = KIND_BILINEAR,
                                   .inactive  = 1u << PATTERN,
                                   .saves     = 7u,
                                   .rounds    = true,
                                   .formula   = "z[i,j] = x[i]·y[j] at the entries of a; x̄ += z̄ y, ȳ += z̄ᵀ x",
                                   .vjp       = sddmm_vjp,
                                   .infer     = sddmm_infer,
                                   .workspace = two_workspace,
                                   .run       = sddmm_run,
                                   .reach     = sddmm_reach,
                                   .cost      = {.more = sddmm_cost},
                                   .operands  = "x y a"};

/* ---- csr_softmax ----------------------------------------------------------------------------- */

static bool softmax_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, 1) || !cot__job_float(j, VALUES) || !has_pattern(j, SOFT_PATTERN)) return false;
    const cot__view *v = &j->x[VALUES];
    if (v->ndim < 1) return cot__job_illegal(j, "the values have no axis");
    int64_t most = rest_of(j, SOFT_PATTERN, 0, v->shape[v->ndim - 1]);
    if (most < 0) return cot__job_illegal(j, "the pattern is too short");
    cot__type_like(z, v->dtype, v);
    return cot__job_range(j, 0, 0, most);
}

static void softmax_run(const cot__job *j) {
    packed         x;
    cot__view      z;
    const int32_t *pattern = pack_all(j, 1, &x, &z);
    cot__compressed       a = csr_of(pattern, cot__job_int(j, 0), 0, z.shape[z.ndim - 1], false);
    j->backend->csr_softmax(&a, &x.v, &z);
    cot__unpack(j, &j->z, z.dtype, z.data);
}

cot_var cot__csr_weights(const char *op, cot_var values, cot_var pattern, int64_t rows) {
    return push(op, OP_csr_softmax, 1, rows, 2, (cot_var[]){values, pattern});
}

cot_var cot__csr_ones(cot_var like, int drop, int64_t n) {
    cot_shape s = cot_shape_of(like);
    s.ndim = s.ndim < drop ? 0 : s.ndim - drop;
    s.dim[s.ndim++] = n;
    if (s.ndim < COT_MAX_NDIM) s.dim[s.ndim] = 1;
    s.ndim++; /* broadcasting refuses too many */
    return cot_broadcast_to(cot_ones(like.tape, cot_dtype_of(like), COT_SCALAR), s);
}

/* z (h - Σ z h), the sum over each row: the Jacobian of a softmax is symmetric. */
static cot_var through(cot__rule *r, cot_var h) {
    int64_t rows = cot__rule_attr(r)->ints[0];
    cot_var z = cot__rule_z(r), pattern = cot__rule_x(r, SOFT_PATTERN), w = cot_smul(h, z);
    cot_shape p = cot_shape_of(pattern), v = cot_shape_of(z);
    cot_var   ones = cot__csr_ones(z, 1, cot__extent_back(&p, 1) - 2 - rows - 3 * cot__extent_back(&v, 1));
    cot_var   sums = cot__csr_product("csr_matmul", w, ones, pattern, false);
    return cot_sub(w, cot_mul(z, cot__csr_samples("csr_sddmm", sums, ones, pattern)));
}

static void softmax_reach(const cot__reading *q) {
    cot_shape v = cot__rule_shape(q->r, VALUES);
    int64_t   entries = last_of(&v, 1), rows = cot__rule_attr(q->r)->ints[0];
    for (int64_t m = 0; m < cot__count(v.ndim - 1, v.dim); m++)
        for (int64_t i = 0, end; i < rows; i++) {
            int64_t from = row_range(q, i, entries, &end);
            if (end > from) q->mix(q->ctx, m * entries + from, m * entries + from, end - from);
        }
}

static void softmax_vjp(cot__rule *r) { cot__give(r, VALUES, through(r, r->g)); }
static void softmax_jvp(cot__rule *r) { r->tangent = through(r, r->tangents[VALUES]); }

const cot__op cot__op_csr_softmax = {.name      = "csr_softmax",
                                     .batch     = batch,
                                     .attrs     = "rows:d",
                                     .kind      = KIND_GENERIC,
                                     .inactive  = 1u << SOFT_PATTERN,
                                     .saves     = 1u << SOFT_PATTERN | COT__SAVES_Z,
                                     .formula   = "z = exp(v) / Σ exp(v) over the row; v̄ += z (z̄ - Σ z z̄)",
                                     .vjp       = softmax_vjp,
                                     .jvp       = softmax_jvp,
                                     .infer     = softmax_infer,
                                     .workspace = one_workspace,
                                     .run       = softmax_run,
                                     .reach     = softmax_reach,
                                     .cost      = {.each_x = 5},
                                     .operands  = "v a"};
