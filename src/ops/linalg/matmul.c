/* matmul.c: products of matrices and vectors.
 *
 * One bilinear operation. Its node takes (k,) @ (k,), (m,k) @ (k,), (k,) @ (k,n), and (…, m, k) @
 * (…, k, n) with equal leading axes; everything else is brought to one of these by recorded views:
 * leading axes are broadcast, or folded into the rows when the right side is a single matrix, so
 * that one large product is done and its gradient is one product too. Transposes cost nothing. */
#include "rules/structural_ids.h"
#include "ops/structural.h"
#include "pending/pending.h"

enum { LEFT, RIGHT };

/* ---- the node -------------------------------------------------------------------------------- */

static bool check_inner(const cot__caller *c, const cot__view *a, const cot__view *b) {
    char ta[COT__SHAPE_TEXT], tb[COT__SHAPE_TEXT];
    if (a->ndim > 0 && b->ndim > 0 && a->shape[a->ndim - 1] == b->shape[b->ndim > 1 ? b->ndim - 2 : 0]) return true;
    cot__shape_text(a->ndim, a->shape, ta);
    cot__shape_text(b->ndim, b->shape, tb);
    if (a->ndim == 0 || b->ndim == 0)
        return cot__refuse(c, COT_SHAPE, "a scalar has no axis to multiply along: %s @ %s; cot_mul takes scalars", ta,
                           tb);
    return cot__refuse(c, COT_SHAPE, "inner dimensions differ: %s @ %s; the last axis of a must equal the %s of b", ta,
                       tb, b->ndim > 1 ? "second last" : "only one");
}

/* Both have the same leading axes, or no more than two axes. */
static bool check_leading(const cot__job *j) {
    const cot__view *a = &j->x[LEFT], *b = &j->x[RIGHT];
    if (a->ndim <= 2 && b->ndim <= 2) return true;
    bool same = a->ndim == b->ndim;
    for (int k = 0; same && k < a->ndim - 2; k++) same = a->shape[k] == b->shape[k];
    return same || cot__job_illegal(j, "the leading axes differ");
}

static int64_t rows_of(const cot__view *a) { return a->ndim > 1 ? a->shape[a->ndim - 2] : 1; }
static int64_t columns_of(const cot__view *b) { return b->ndim > 1 ? b->shape[b->ndim - 1] : 1; }

static bool matmul_infer(const cot__job *j, cot__type *z) {
    const cot__view *a = &j->x[LEFT], *b = &j->x[RIGHT];
    if (!cot__job_has(j, 2, 2, 0) || !cot__job_dtype(j, RIGHT, a->dtype)) return false;
    if (a->dtype == COT_BOOL) return cot__job_illegal(j, "the operands have dtype bool");
    if (!check_inner(j->caller, a, b) || !check_leading(j)) return false;
    z->dtype = a->dtype;
    z->shape.ndim = 0;
    for (int k = 0; k < a->ndim - 2; k++) z->shape.dim[z->shape.ndim++] = a->shape[k];
    if (a->ndim > 1) z->shape.dim[z->shape.ndim++] = rows_of(a);
    if (b->ndim > 1) z->shape.dim[z->shape.ndim++] = columns_of(b);
    return true;
}

static int64_t matmul_workspace(const cot__job *j) {
    const cot__view *a = &j->x[LEFT], *b = &j->x[RIGHT];
    return (int64_t)j->backend->matmul_workspace(a, b, rows_of(a), columns_of(b));
}

static void matmul_run(const cot__job *j) {
    const cot__view *a = &j->x[LEFT], *b = &j->x[RIGHT];
    j->backend->matmul(a, b, j->z.data, rows_of(a), columns_of(b), j->workspace);
}

/* A product of depth 1 may wait. */
static bool waits(cot__recording *r, const uint32_t xs[2]) {
    const cot__view *v = &r->job.x[LEFT];
    if (LIKELY(v->shape[v->ndim - 1] != 1) || !r->result->tensor) return false;
    cot__bound a = cot__bound_at(r->t, xs[LEFT]), b = cot__bound_at(r->t, xs[RIGHT]),
               z = {r->result->view, r->result->tensor->storage};
    return cot__pending_product(r->t, &a, &b, &z);
}

static cot_var push_matmul(cot_tape *t, const uint32_t xs[2]) {
    cot__recording r;
    if (!cot__record_open(&r, t, "matmul", OP_matmul, 2, xs, NULL, NULL)) return INVALID(t);
    return waits(&r, xs) || cot__record_run(&r) ? cot__record_push(&r) : INVALID(t);
}

/* ---- bringing operands to its shapes --------------------------------------------------------- */

/* x with its leading axes replaced by those of `to` (the last two stay). */
static cot_var with_leading(cot_var x, int n, const int64_t *to) {
    cot_shape s = cot_shape_of(x), z = {n + 2, {0}};
    for (int k = 0; k < n; k++) z.dim[k] = to[k];
    z.dim[n] = cot__extent_back(&s, 2);
    z.dim[n + 1] = cot__extent_back(&s, 1);
    return cot_broadcast_to(x, z);
}

static bool broadcast_leading(cot_tape *t, const cot_shape *a, const cot_shape *b, cot_shape *z) {
    char ta[COT__SHAPE_TEXT], tb[COT__SHAPE_TEXT];
    z->ndim = (a->ndim > b->ndim ? a->ndim : b->ndim) - 2;
    for (int k = 0; k < z->ndim; k++) {
        int     ka = k - (z->ndim + 2 - a->ndim), kb = k - (z->ndim + 2 - b->ndim);
        int64_t da = ka < 0 ? 1 : a->dim[ka], db = kb < 0 ? 1 : b->dim[kb];
        if (da != db && da != 1 && db != 1) {
            cot__fail(
                t, COT_SHAPE,
                "[matmul] leading axes do not broadcast: %s @ %s; aligned before the last two, extents are equal or 1",
                cot__shape_text(a->ndim, a->dim, ta), cot__shape_text(b->ndim, b->dim, tb));
            return false;
        }
        z->dim[k] = da == 1 ? db : da;
    }
    return true;
}

/* (…, m, k) @ (k, n): the leading axes become rows. */
static cot_var matmul_folded(cot_var a, cot_var b, const cot_shape *sa, int64_t n) {
    cot_shape z = *sa;
    int64_t   k = sa->dim[sa->ndim - 1], rows = cot__count(sa->ndim - 1, sa->dim);
    z.dim[z.ndim - 1] = n;
    return cot_reshape(cot_matmul(cot_reshape(a, COT_SHAPE(rows, k)), b), z);
}

/* Ranks of at least 2, one of them more. */
static cot_var matmul_batched(cot_tape *t, cot_var a, cot_var b) {
    cot_shape sa = cot_shape_of(a), sb = cot_shape_of(b), z;
    if (sb.ndim == 2) return matmul_folded(a, b, &sa, sb.dim[1]);
    if (!broadcast_leading(t, &sa, &sb, &z)) return INVALID(t);
    a = with_leading(a, z.ndim, z.dim);
    b = with_leading(b, z.ndim, z.dim);
    if (cot__failed(a) || cot__failed(b)) return INVALID(t);
    return push_matmul(t, (uint32_t[]){cot__index(a), cot__index(b)});
}

static cot_tape *enter(const char *op, cot_var a, cot_var b, uint32_t xs[2]) {
    static const char *const names[] = {"left", "right"};
    cot_tape *t = cot__enter_all(op, names, 2, (cot_var[]){a, b}, false, xs);
    if (t && cot__dtype_at(&t->nodes[xs[LEFT]]) == COT_BOOL) /* truths count */
        for (int k = 0; k < 2; k++)
            if ((xs[k] = cot__as(t, xs[k], COT_I64)) == COT__NONE) return NULL;
    return t;
}

cot_var cot_matmul(cot_var a, cot_var b) {
    uint32_t  xs[2];
    cot_tape *t = enter("matmul", a, b, xs);
    if (!t) return cot__invalid(2, (cot_var[]){a, b});
    if (cot__ndim_at(t, xs[LEFT]) <= 2 && cot__ndim_at(t, xs[RIGHT]) <= 2) return push_matmul(t, xs);
    cot__caller caller = cot__tape_caller(t, "matmul");
    cot__view   va = cot__layout_at(t, xs[LEFT]), vb = cot__layout_at(t, xs[RIGHT]);
    if (!check_inner(&caller, &va, &vb)) return INVALID(t);
    cot_shape sa = cot__view_extents(&va), sb = cot__view_extents(&vb);
    a = VAR(t, xs[LEFT]), b = VAR(t, xs[RIGHT]);
    if (sb.ndim == 1) { /* a column whose axis goes again */
        sa.ndim--;
        return cot_reshape(matmul_batched(t, a, cot_expand_dims(b, 1)), sa);
    }
    if (sa.ndim == 1) { /* a row whose axis goes again */
        sb.dim[sb.ndim - 2] = sb.dim[sb.ndim - 1];
        sb.ndim--;
        return cot_reshape(matmul_batched(t, cot_expand_dims(a, 0), b), sb);
    }
    return matmul_batched(t, a, b);
}

static bool check_vectors(cot_tape *t, const char *op, const uint32_t xs[2]) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    if (cot__ndim_at(t, xs[LEFT]) == 1 && cot__ndim_at(t, xs[RIGHT]) == 1) return true;
    cot__fail(t, COT_SHAPE, "[%s] the operands have shapes %s and %s; both must be vectors", op,
              cot__shape_text_at(t, xs[LEFT], a), cot__shape_text_at(t, xs[RIGHT], b));
    return false;
}

cot_var cot_dot(cot_var a, cot_var b) {
    uint32_t  xs[2];
    char      ta[COT__SHAPE_TEXT], tb[COT__SHAPE_TEXT];
    cot_tape *t = enter("dot", a, b, xs);
    if (!t) return cot__invalid(2, (cot_var[]){a, b});
    if (!check_vectors(t, "dot", xs)) return INVALID(t);
    if (cot__size_at(t, xs[LEFT]) != cot__size_at(t, xs[RIGHT]))
        return cot__fail(t, COT_SHAPE, "[dot] the operands have shapes %s and %s; both must have the same extent",
                         cot__shape_text_at(t, xs[LEFT], ta), cot__shape_text_at(t, xs[RIGHT], tb));
    return push_matmul(t, xs);
}

cot_var cot_outer(cot_var a, cot_var b) {
    uint32_t  xs[2];
    cot_tape *t = enter("outer", a, b, xs);
    if (!t) return cot__invalid(2, (cot_var[]){a, b});
    if (!check_vectors(t, "outer", xs)) return INVALID(t);
    return cot_matmul(cot_expand_dims(VAR(t, xs[LEFT]), 1), cot_expand_dims(VAR(t, xs[RIGHT]), 0));
}

/* ---- its transposes: ā += z̄ bᵀ, b̄ += aᵀ z̄ ------------------------------------------------- */

static void matmul_vjp(cot__rule *r) {
    int na = cot__ndim_at(r->t, cot__rule_arg(r, LEFT)), nb = cot__ndim_at(r->t, cot__rule_arg(r, RIGHT));
    if (cot__rule_wants(r, LEFT)) {
        cot_var b = cot__rule_x(r, RIGHT);
        cot__give(r, LEFT,
                  nb > 1   ? cot_matmul(r->g, cot__swap_last(b))
                  : na > 1 ? cot_outer(r->g, b)
                           : cot_mul(r->g, b));
    }
    if (cot__rule_wants(r, RIGHT)) {
        cot_var a = cot__rule_x(r, LEFT);
        cot__give(r, RIGHT,
                  na > 1   ? cot_matmul(cot__swap_last(a), r->g)
                  : nb > 1 ? cot_outer(a, r->g)
                           : cot_mul(r->g, a));
    }
}

const cot__op cot__op_matmul = {.name = "matmul", .batch = cot__batch_matmul, .kind = KIND_BILINEAR, .saves = 3u,
                                .rounds = true,
                                .formula = "z = a @ b; ā += z̄ @ bᵀ, b̄ += aᵀ @ z̄",
                                .vjp = matmul_vjp,
                                .infer = matmul_infer, .workspace = matmul_workspace, .run = matmul_run,
                                /* 2mnk */
                                .cost = {.each_inner = 2},
                                .operands = "a b",
                                .functions = "dot outer"};
