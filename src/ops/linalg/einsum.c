/* einsum.c: sums of products over named axes (einsum, tensordot), done in recorded operations, so
 * every order of derivative is there.
 *
 * Each operand is prepared alone: a repeated subscript takes the diagonal, an axis of extent 1 that
 * others repeat is dropped, a subscript that nothing else needs is summed. Then two terms at a time
 * become one (einsum_plan.c chooses which): their axes are sorted into batch (both have it and it
 * is needed later), inner (both have it, summed here), left and right (only one has it), and the
 * product is a batched matmul, or, with nothing to sum, a broadcast multiplication. */
#include "ops/linalg/einsum.h"

#include <string.h>

/* ---- one term -------------------------------------------------------------------------------- */

static bool set_term(cot__einsum_term *term, cot_var x, int ndim, const uint8_t *label) {
    term->x = x;
    term->ndim = ndim;
    term->set = 0;
    memmove(term->label, label, (size_t)ndim);
    for (int k = 0; k < ndim; k++) term->set |= cot__label_bit(label[k]);
    return !cot__failed(x);
}

/* The axes p < q, equal in extent, become their diagonal at the end: (…, n, n) as (…, n·n), every
 * (n+1)-th. */
static bool take_diagonal(cot__einsum_term *term, int p, int q) {
    cot_axes  order = {term->ndim, false, {0}};
    cot_shape s = cot_shape_of(term->x), flat = {0, {0}};
    uint8_t   label[COT_MAX_NDIM];
    int       n = 0;
    for (int k = 0; k < term->ndim; k++) {
        if (k == p || k == q) continue;
        flat.dim[n] = s.dim[k];
        label[n] = term->label[k];
        order.axis[n++] = k;
    }
    order.axis[n] = p, order.axis[n + 1] = q;
    label[n] = term->label[p];
    flat.dim[n] = s.dim[p] * s.dim[p];
    flat.ndim = n + 1;
    return set_term(term, cot_slice(cot_reshape(cot_permute(term->x, order), flat), n, 0, COT_END, s.dim[p] + 1), n + 1,
                    label);
}

static bool take_diagonals(cot__einsum_term *term) {
    for (int q = 1; q < term->ndim; q++)
        for (int p = 0; p < q; p++)
            if (term->label[p] == term->label[q]) {
                if (!take_diagonal(term, p, q)) return false;
                q = 0; /* the axes have moved: look from the start */
                break;
            }
    return true;
}

/* An axis of extent 1 that is longer elsewhere: the term is constant along it. */
static bool drop_repeated(const cot__einsum *e, cot__einsum_term *term) {
    cot_shape s = cot_shape_of(term->x), left = {0, {0}};
    uint8_t   label[COT_MAX_NDIM];
    for (int k = 0; k < term->ndim; k++)
        if (s.dim[k] == e->extent[term->label[k]]) label[left.ndim] = term->label[k], left.dim[left.ndim++] = s.dim[k];
    return left.ndim == term->ndim || set_term(term, cot_reshape(term->x, left), left.ndim, label);
}

/* Sums over the labels outside `kept`, in the term's own dtype. */
static bool sum_alone(cot__einsum_term *term, uint64_t kept) {
    cot_axes axes = {0, false, {0}};
    uint8_t  label[COT_MAX_NDIM];
    int      n = 0;
    for (int k = 0; k < term->ndim; k++)
        if (kept & cot__label_bit(term->label[k])) label[n++] = term->label[k];
        else axes.axis[axes.n++] = k;
    return axes.n == 0 || set_term(term, cot_cast(cot_sum(term->x, axes), cot_dtype_of(term->x)), n, label);
}

/* Labels that something besides term k has: another term or the result. */
static uint64_t needed_besides(const cot__einsum *e, int k, int also) {
    uint64_t set = e->out.set;
    for (int i = 0; i < e->n; i++)
        if (i != k && i != also) set |= e->terms[i].set;
    return set;
}

/* ---- two terms ------------------------------------------------------------------------------- */

typedef struct axes {
    int     n;
    uint8_t label[2 * COT_MAX_NDIM];
} axes;

/* Appends the labels of a set, in the order of the term. */
static void append(axes *to, const cot__einsum_term *term, uint64_t set) {
    for (int k = 0; k < term->ndim; k++)
        if (set & cot__label_bit(term->label[k])) to->label[to->n++] = term->label[k];
}

static cot_var permuted(const cot__einsum_term *term, const axes *to) {
    cot_axes order = {term->ndim, false, {0}};
    for (int k = 0; k < to->n; k++)
        for (int i = 0; i < term->ndim; i++)
            if (term->label[i] == to->label[k]) order.axis[k] = i;
    return cot_permute(term->x, order);
}

static int64_t size_of(const cot__einsum *e, const axes *of) {
    int64_t n = 1;
    for (int k = 0; k < of->n; k++) n *= e->extent[of->label[k]];
    return n;
}

static void append_extents(cot_shape *s, const cot__einsum *e, const axes *of) {
    for (int k = 0; k < of->n; k++) s->dim[s->ndim++] = e->extent[of->label[k]];
}

static void append_all(axes *to, const axes *more) {
    for (int k = 0; k < more->n; k++) to->label[to->n++] = more->label[k];
}

/* (batch…, left…) times (batch…, right…), each with ones where the other's axes are. */
static cot_var multiply(const cot__einsum *e, const cot__einsum_term *a, const cot__einsum_term *b, const axes *batch,
                        const axes *left, const axes *right) {
    axes      la = *batch, lb = *batch;
    cot_shape sa = {0, {0}}, sb = {0, {0}};
    append_all(&la, left);
    append_all(&lb, right);
    append_extents(&sa, e, &la);
    append_extents(&sb, e, batch);
    for (int k = 0; k < right->n; k++) sa.dim[sa.ndim++] = 1;
    for (int k = 0; k < left->n; k++) sb.dim[sb.ndim++] = 1;
    append_extents(&sb, e, right);
    cot_var x = cot_reshape(permuted(a, &la), sa), y = cot_reshape(permuted(b, &lb), sb);
    return cot_mul(x, y);
}

/* (batch…, left, inner) @ (batch…, inner, right). The batch axes stay apart, as merging them might
 * copy, if they are not too many. */
static cot_var contract(const cot__einsum *e, const cot__einsum_term *a, const cot__einsum_term *b, const axes *batch,
                        const axes *left, const axes *right, const axes *inner) {
    axes      la = *batch, lb = *batch;
    cot_shape sa = {0, {0}}, sb, z = {0, {0}};
    if (batch->n + 2 <= COT_MAX_NDIM) append_extents(&sa, e, batch);
    else sa.dim[sa.ndim++] = size_of(e, batch);
    sb = sa;
    append_all(&la, left);
    append_all(&la, inner);
    append_all(&lb, inner);
    append_all(&lb, right);
    sa.dim[sa.ndim++] = size_of(e, left), sa.dim[sa.ndim++] = size_of(e, inner);
    sb.dim[sb.ndim++] = size_of(e, inner), sb.dim[sb.ndim++] = size_of(e, right);
    append_extents(&z, e, batch);
    append_extents(&z, e, left);
    append_extents(&z, e, right);
    cot_var x = cot_reshape(permuted(a, &la), sa), y = cot_reshape(permuted(b, &lb), sb);
    return cot_reshape(cot_matmul(x, y), z);
}

/* Term i becomes its product with term j, summed over what nothing else needs; term j goes. */
static bool join(cot__einsum *e, int i, int j) {
    cot__einsum_term *a = &e->terms[i], *b = &e->terms[j];
    uint64_t   both = a->set & b->set, kept = needed_besides(e, i, j);
    axes       batch = {0}, left = {0}, right = {0}, inner = {0}, all;
    append(&batch, a, both & kept);
    append(&inner, a, both & ~kept);
    append(&left, a, a->set & ~b->set);
    append(&right, b, b->set & ~a->set);
    if (batch.n + left.n + right.n > COT_MAX_NDIM) {
        cot__fail(e->t, COT_LIMIT, "[%s] the product of two operands would have %d axes; there are at most %d", e->op,
                  batch.n + left.n + right.n, COT_MAX_NDIM);
        return false;
    }
    cot_var z = inner.n ? contract(e, a, b, &batch, &left, &right, &inner) : multiply(e, a, b, &batch, &left, &right);
    all = batch;
    append_all(&all, &left);
    append_all(&all, &right);
    memmove(b, b + 1, (size_t)(--e->n - j) * sizeof *b);
    return set_term(a, z, all.n, all.label);
}

cot_var cot__einsum_run(cot__einsum *e) {
    for (int k = 0; k < e->n; k++)
        if (!take_diagonals(&e->terms[k]) || !drop_repeated(e, &e->terms[k])) return INVALID(e->t);
    for (int k = 0; k < e->n; k++)
        if (!sum_alone(&e->terms[k], needed_besides(e, k, k))) return INVALID(e->t);
    for (int i, j; e->n > 1;) {
        cot__einsum_pick(e, &i, &j);
        if (!join(e, i, j)) return INVALID(e->t);
    }
    axes out = {0};
    append(&out, &e->out, e->out.set);
    return permuted(&e->terms[0], &out);
}

/* ---- the public functions -------------------------------------------------------------------- */

/* Terms for entered operands; truths count, as in matmul. */
static bool open_terms(cot__einsum *e, const uint32_t *index) {
    for (int k = 0; k < e->n; k++) {
        uint32_t i = index[k];
        if (cot__dtype_at(&e->t->nodes[i]) == COT_BOOL && (i = cot__as(e->t, i, COT_I64)) == COT__NONE) return false;
        e->terms[k] = (cot__einsum_term){.x = VAR(e->t, i), .ndim = cot__ndim_at(e->t, i)};
    }
    return true;
}

cot_var cot_einsum(const char *subscripts, int n, const cot_var *xs) {
    cot_tape   *t = n > 0 ? cot__tape_of(n, xs) : NULL;
    cot__einsum e = {.t = t, .op = "einsum", .n = n};
    uint32_t   *index;
    if (!t) return cot__invalid(n, xs);
    size_t bytes = (size_t)n * (sizeof *e.terms + sizeof *index);
    void  *memory = cot__alloc(&t->al, bytes);
    if (!memory)
        return cot__fail(t, COT_MEMORY, "[einsum] out of memory: %zu bytes for a plan of %d operands", bytes, n);
    e.terms = memory;
    index = (uint32_t *)(void *)(e.terms + n);
    bool    entered = cot__enter_all("einsum", NULL, n, xs, false, index) && open_terms(&e, index);
    cot_var z = entered && cot__einsum_parse(&e, subscripts) ? cot__einsum_run(&e) : INVALID(t);
    cot__free(&t->al, memory, bytes);
    return z;
}

/* The k-th axis of the list, counted from the front. */
static int listed(cot_axes list, int k, int ndim) {
    return list.n < 0 ? k : list.axis[k] < 0 ? list.axis[k] + ndim : list.axis[k];
}

static bool pair_axes(cot__einsum *e, cot_axes axes_a, cot_axes axes_b) {
    cot_shape sa = cot_shape_of(e->terms[0].x), sb = cot_shape_of(e->terms[1].x);
    char      ta[COT__SHAPE_TEXT], tb[COT__SHAPE_TEXT];
    uint32_t  ma, mb;
    if (!cot__check_axes(e->t, e->op, axes_a, sa.ndim, &ma) || !cot__check_axes(e->t, e->op, axes_b, sb.ndim, &mb))
        return false;
    int pairs = __builtin_popcount(ma);
    if (pairs != __builtin_popcount(mb)) {
        cot__fail(e->t, COT_SHAPE, "[%s] %d axes of a meet %d of b; each axis of one list meets one of the other",
                  e->op, pairs, __builtin_popcount(mb));
        return false;
    }
    for (int k = 0; k < sa.ndim; k++) e->terms[0].label[k] = (uint8_t)k, e->extent[k] = sa.dim[k];
    for (int k = 0; k < sb.ndim; k++) e->terms[1].label[k] = (uint8_t)(sa.ndim + k), e->extent[sa.ndim + k] = sb.dim[k];
    e->labels = sa.ndim + sb.ndim;
    for (int k = 0; k < pairs; k++) {
        int p = listed(axes_a, k, sa.ndim), q = listed(axes_b, k, sb.ndim);
        if (sa.dim[p] != sb.dim[q]) {
            cot__fail(e->t, COT_SHAPE, "[%s] axis %d of a %s meets axis %d of b %s; axes that meet have equal extents",
                      e->op, p, cot__shape_text(sa.ndim, sa.dim, ta), q, cot__shape_text(sb.ndim, sb.dim, tb));
            return false;
        }
        e->terms[1].label[q] = (uint8_t)p;
    }
    for (int k = 0; k < 2; k++) set_term(&e->terms[k], e->terms[k].x, e->terms[k].ndim, e->terms[k].label);
    axes out = {0};
    append(&out, &e->terms[0], e->terms[0].set & ~e->terms[1].set);
    append(&out, &e->terms[1], e->terms[1].set & ~e->terms[0].set);
    if (out.n > COT_MAX_NDIM) {
        cot__fail(e->t, COT_LIMIT, "[%s] the result would have %d axes; there are at most %d", e->op, out.n,
                  COT_MAX_NDIM);
        return false;
    }
    set_term(&e->out, e->terms[0].x, out.n, out.label);
    return true;
}

cot_var cot_tensordot(cot_var a, cot_var b, cot_axes axes_a, cot_axes axes_b) {
    static const char *const names[] = {"left", "right"};
    cot__einsum_term   terms[2];
    cot__einsum e = {.op = "tensordot", .n = 2, .terms = terms};
    uint32_t    index[2];
    e.t = cot__enter_all("tensordot", names, 2, (cot_var[]){a, b}, false, index);
    if (!e.t) return cot__invalid(2, (cot_var[]){a, b});
    return open_terms(&e, index) && pair_axes(&e, axes_a, axes_b) ? cot__einsum_run(&e) : INVALID(e.t);
}
