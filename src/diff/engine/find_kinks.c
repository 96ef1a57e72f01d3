/* find_kinks.c: does an operation sit exactly on a kink of kinks.def, or choose between equals? One
 * finder for each kind of operation. */
#include "diff/engine/find_kinks.h"
#include "rules/kinks.h"
#include "ops/linalg/linalg.h"
#include "tape/show.h"

void cot__finding_begin(cot__findings *r, uint32_t i) {
    char text[200];
    if (r->found++) cot__put(&r->x, "\n");
    cot__put(&r->x, r->where);
    cot__put(&r->x, cot__describe(r->t, i, text, sizeof text));
}

/* " at [0,1] and 2 more of 4 elements" */
void cot__finding_where(cot__findings *r, const cot__view *v, int64_t first, int64_t count) {
    char place[COT__SHAPE_TEXT];
    if (v->ndim == 0) return;
    cot__putf(&r->x, " at %s", cot__place(v, first, place));
    if (count > 1) cot__putf(&r->x, " and %lld more of %lld elements", (long long)count - 1,
                             (long long)cot__count(v->ndim, v->shape));
}

/* Does anything that wants a derivative flow into the node? (Operations without derivative are
 * themselves inactive.) */
bool cot__has_active_operand(const cot_tape *t, uint32_t i) {
    for (int k = 0, count = cot__nargs(&t->nodes[i]); k < count; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a != COT__NONE && (t->nodes[a].flags & COT__ACTIVE)) return true;
    }
    return false;
}

bool cot__operands_are_there(const cot_tape *t, uint32_t i) {
    for (int k = 0, count = cot__nargs(&t->nodes[i]); k < count; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a != COT__NONE && cot__overwritten(t, a, i)) return false;
    }
    return true;
}

/* ---- kinks ----------------------------------------------------------------------------------- */

static void find_kink(cot__findings *r, uint32_t i, const cot__kink *kink) {
    const cot__node *n = &r->t->nodes[i];
    cot__view        xs[3], z = cot__view_read(r->t, i);
    cot__value       number;
    cot__reader      in[3];
    int              arity = cot__elementwise_arity(n->op);
    int64_t          first = -1, count = 0;
    char             text[COT__FORMULA_TEXT], filled[COT__FILLED_TEXT];
    cot__operand_views(r->t, n, cot__dtype_compute(cot__dtype_at(n)), xs, &number);
    for (int k = 0; k < arity; k++) cot__reader_spread(&in[k], r->t->backend, &xs[k], &z);
    while (in[0].at < in[0].size) {
        double v[3] = {0, 0, 0};
        for (int k = 0; k < arity; k++) v[k] = cot__reader_next(&in[k]);
        if (kink->holds(v[0], v[1], v[2]) && count++ == 0) first = in[0].at - 1;
    }
    if (!count) return;
    cot__finding_begin(r, i);
    cot__formula(n->op, kink->condition, text, sizeof text);
    cot__putf(&r->x, " sits on its kink %s", cot__filled(r->t, i, text, filled, sizeof filled));
    cot__finding_where(r, &z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.", cot__filled(r->t, i, kink->convention, filled, sizeof filled));
}

static void find_norm_of_zero(cot__findings *r, uint32_t i) {
    cot__view   z = cot__view_read(r->t, i);
    cot__reader in;
    int64_t     first = -1, count = 0;
    cot__reader_open(&in, r->t->backend, &z);
    while (in.at < in.size)
        if (cot__reader_next(&in) == 0 && count++ == 0) first = in.at - 1;
    if (!count) return;
    cot__finding_begin(r, i);
    char filled[COT__FILLED_TEXT];
    const cot__array_kink *kink = &cot__array_kinks[ARRAY_KINK_norm_0];
    cot__putf(&r->x, " sits on its kink %s", cot__filled(r->t, i, kink->condition, filled, sizeof filled));
    cot__finding_where(r, &z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.", kink->convention);
}

/* More elements equal to their extreme than there are extremes: some are shared. */
static void find_ties(cot__findings *r, uint32_t i) {
    const cot__node *n = &r->t->nodes[i];
    cot__view        x = cot__view_read(r->t, n->a), z = cot__view_read(r->t, i);
    uint32_t         mask = (uint32_t)n->extra.attr->ints[0];
    bool             keep = n->extra.attr->ints[1] != 0;
    int64_t          stride[COT_MAX_NDIM], equal = 0;
    for (int k = 0, at = 0; k < x.ndim; k++) {
        bool goes = mask >> k & 1;
        stride[k] = goes ? 0 : z.stride[at];
        at += !goes || keep;
    }
    cot__view   wide = {z.data, z.dtype, x.ndim, x.shape, stride};
    cot__reader a, b;
    cot__reader_open(&a, r->t->backend, &x);
    cot__reader_open(&b, r->t->backend, &wide);
    while (a.at < a.size) {
        double v = cot__reader_next(&a);
        equal += v == cot__reader_next(&b);
    }
    int64_t extremes = cot__count(z.ndim, z.shape);
    if (equal <= extremes) return;
    cot__finding_begin(r, i);
    if (extremes == 1)
        cot__putf(&r->x, " is reached by %lld elements", (long long)equal);
    else
        cot__putf(&r->x, " has %lld results, reached by %lld elements", (long long)extremes, (long long)equal);
    cot__putf(&r->x, "; its derivative there: %s.",
              cot__array_kinks[n->op == OP_max ? ARRAY_KINK_max_tie : ARRAY_KINK_min_tie].convention);
}

static double element(const cot_tape *t, const cot__view *x, int64_t offset) {
    cot__view one = cot__view_at(x, offset);
    return cot__element_f64(t->backend, &one, 0);
}

/* Element e of an array of places, row-major. */
static int64_t place_at(const cot_tape *t, const cot__view *z, int64_t e) {
    return cot__element_i64(t->backend, z, e);
}

/* Is the element that z chose at its e-th place equal to one that could stand there instead? x is
 * the operand of an argsort or a cumargmax. */
static bool tied_choice(const cot_tape *t, const cot__view *x, const cot__view *z, int axis, bool order, int64_t e) {
    int64_t base = 0, place = 0, chosen = place_at(t, z, e), step = x->stride[axis], n = x->shape[axis], next_row = 1;
    for (int k = z->ndim - 1; k >= 0; k--) {
        int64_t at = e / next_row % z->shape[k];
        if (k == axis) place = at;
        else base += at * x->stride[k];
        next_row *= z->shape[k];
    }
    double v = element(t, x, base + chosen * step);
    if (!order) return chosen != place && element(t, x, base + place * step) == v;
    if (place + 1 < z->shape[axis]) return element(t, x, base + place_at(t, z, e + z->stride[axis]) * step) == v;
    for (int64_t i = chosen + 1; z->shape[axis] < n && i < n; i++)
        /* left out, though as good as the last one taken */
        if (element(t, x, base + i * step) == v) return true;
    return false;
}

static void find_tied_choices(cot__findings *r, uint32_t i) {
    const cot__node *n = &r->t->nodes[i];
    cot__view        x = cot__view_read(r->t, n->a), z = cot__view_read(r->t, i);
    int64_t          first = -1, count = 0, size = cot__count(z.ndim, z.shape);
    int              axis = (int)n->extra.attr->ints[0];
    bool             order = n->op == OP_argsort;
    for (int64_t e = 0; e < size; e++)
        if (tied_choice(r->t, &x, &z, axis, order, e) && count++ == 0) first = e;
    if (!count) return;
    cot__finding_begin(r, i);
    cot__putf(&r->x, " chooses between equal elements");
    cot__finding_where(r, &z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.",
              cot__array_kinks[order ? ARRAY_KINK_sort_tie : ARRAY_KINK_cummax_tie].convention);
}

/* Eigenvalues or singular values that are equal. */
static void find_equal_values(cot__findings *r, uint32_t i) {
    bool    svd = r->t->nodes[i].op == OP_svd;
    int64_t first, count = cot__count_ties(r->t, i, svd, 0, &first);
    if (!count) return;
    const cot__array_kink *kink = &cot__array_kinks[svd ? ARRAY_KINK_svd_tie : ARRAY_KINK_eigh_tie];
    cot__finding_begin(r, i);
    cot__putf(&r->x, " has %s in %lld of its matrices; its derivative there: %s.", kink->condition, (long long)count,
              kink->convention);
}

/* How many elements of the window at place q of a plane of x equal `value`; attributes as in
 * ops/nn/pool.c. */
static int64_t equal_in_window(const cot_tape *t, const cot__view *x, const cot__attr *a, const int64_t *at, double value) {
    int     space = (int)a->nints / 4, first = x->ndim - space;
    int64_t count = 0, window = cot__count(space, a->ints), offset = 0;
    for (int k = 0; k < first; k++) offset += at[k] * x->stride[k];
    for (int64_t tap = 0; tap < window; tap++) {
        int64_t left = tap, place = offset;
        bool    inside = true;
        for (int k = space - 1; k >= 0; left /= a->ints[k], k--) {
            int64_t i = at[first + k] * a->ints[space + k] - a->ints[2 * space + k] + left % a->ints[k];
            inside &= i >= 0 && i < x->shape[first + k];
            place += i * x->stride[first + k];
        }
        count += inside && element(t, x, place) == value;
    }
    return count;
}

/* Windows whose maximum several elements reach. A max_pool that took over the choice of another one
 * has no windows of its own. */
static void find_pool_ties(cot__findings *r, uint32_t i) {
    const cot__node *n = &r->t->nodes[i], *chosen = &r->t->nodes[n->b];
    if (chosen->op != OP_max_pool_index || chosen->a != n->a) return;
    cot__view   x = cot__view_read(r->t, n->a), z = cot__view_read(r->t, i);
    cot__reader in;
    int64_t     first = -1, count = 0;
    cot__reader_open(&in, r->t->backend, &z);
    while (in.at < in.size) {
        int64_t at[COT_MAX_NDIM], k = in.at;
        for (int a = z.ndim - 1; a >= 0; k /= z.shape[a], a--) at[a] = k % z.shape[a];
        if (equal_in_window(r->t, &x, n->extra.attr, at, cot__reader_next(&in)) > 1 && count++ == 0) first = in.at - 1;
    }
    if (!count) return;
    cot__finding_begin(r, i);
    cot__putf(&r->x, " sits on its kink %s", cot__array_kinks[ARRAY_KINK_max_pool_tie].condition);
    cot__finding_where(r, &z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.", cot__array_kinks[ARRAY_KINK_max_pool_tie].convention);
}

bool cot__can_kink(int op) {
    if (op == OP_norm || op == OP_max || op == OP_min || op == OP_max_pool) return true;
    if (op == OP_argsort || op == OP_cumargmax || op == OP_eigh || op == OP_svd) return true;
    for (int k = 0; k < KINK_count; k++)
        if (cot__kinks[k].op == op) return true;
    return false;
}

void cot__find_kinks(cot__findings *r, uint32_t i) {
    const cot__node *n = &r->t->nodes[i];
    if (!cot__operands_are_there(r->t, i) || cot__is_stale(n)) return;
    if (n->op == OP_norm) find_norm_of_zero(r, i);
    if (n->op == OP_max || n->op == OP_min) find_ties(r, i);
    if (n->op == OP_argsort || n->op == OP_cumargmax) find_tied_choices(r, i);
    if (n->op == OP_eigh || n->op == OP_svd) find_equal_values(r, i);
    if (n->op == OP_max_pool) find_pool_ties(r, i);
    for (int k = 0; k < KINK_count && n->op < OP_elementwise_count; k++)
        if (cot__kinks[k].op == n->op) find_kink(r, i, &cot__kinks[k]);
}
