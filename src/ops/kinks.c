/* kinks.c: finds values of structural operations that sit exactly on a kink, or were chosen between
 * equals. kinks.def says what replaces the derivative there. */
#include "rules/structural_ids.h"
#include "ops/kinks.h"

#include "rules/kinks.h"
#include "tape/reader.h"
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

/* ---- by operation ---------------------------------------------------------------------------- */

void cot__norm_kinks(cot__findings *r, uint32_t i) {
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

/* If more elements equal their extreme than there are extremes, several share one. */
void cot__extreme_kinks(cot__findings *r, uint32_t i) {
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

/* Is the element that z chose at place e equal to another that could stand there instead? x is the
 * operand of an argsort or a cumargmax. */
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
        /* left out, but equal to the last one taken */
        if (element(t, x, base + i * step) == v) return true;
    return false;
}

void cot__order_kinks(cot__findings *r, uint32_t i) {
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

/* How many elements of the window at place q of a plane of x equal `value`; attributes as in
 * ops/nn/pool.c. */
static int64_t equal_in_window(const cot_tape *t, const cot__view *x, const cot__attr *a, const int64_t *at,
                               double value) {
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

/* Finds windows whose maximum several elements reach. A max_pool that took over the choice of
 * another one has no windows of its own. */
void cot__pool_kinks(cot__findings *r, uint32_t i) {
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
