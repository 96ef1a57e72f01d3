/* kinks.c: finds values of operations that sit exactly on a kink, or were chosen between equals:
 * elementwise ones by the conditions of kinks.def, the others by the `kinks` of their records.
 * kinks.def says what replaces the derivative there. */
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

void cot__kink_begin(cot__findings *r) {
    if (r->node != COT__NONE) {
        cot__finding_begin(r, r->node);
        return;
    }
    if (r->found++) cot__put(&r->x, "\n");
    cot__put(&r->x, r->where);
    cot__put(&r->x, cot__op_of(r->j->op)->name);
}

/* A formula with what its letters stand for, where this is known. */
static const char *filled_in(const cot__findings *r, const char *formula, char *buf, size_t size) {
    return r->node == COT__NONE ? formula : cot__filled(r->t, r->node, formula, buf, size);
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

void cot__norm_kinks(cot__findings *r) {
    const cot__view *z = &r->j->z;
    cot__reader      in;
    int64_t          first = -1, count = 0;
    cot__reader_open(&in, r->j->backend, z);
    while (in.at < in.size)
        if (cot__reader_next(&in) == 0 && count++ == 0) first = in.at - 1;
    if (!count) return;
    cot__kink_begin(r);
    char filled[COT__FILLED_TEXT];
    const cot__array_kink *kink = &cot__array_kinks[ARRAY_KINK_norm_0];
    cot__putf(&r->x, " sits on its kink %s", filled_in(r, kink->condition, filled, sizeof filled));
    cot__finding_where(r, z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.", kink->convention);
}

/* If more elements equal their extreme than there are extremes, several share one. */
void cot__extreme_kinks(cot__findings *r) {
    const cot__job  *j = r->j;
    const cot__view  x = j->x[0], z = j->z;
    uint32_t         mask = (uint32_t)cot__job_int(j, 0);
    bool             keep = cot__job_int(j, 1) != 0;
    int64_t          stride[COT_MAX_NDIM], equal = 0;
    for (int k = 0, at = 0; k < x.ndim; k++) {
        bool goes = mask >> k & 1;
        stride[k] = goes ? 0 : z.stride[at];
        at += !goes || keep;
    }
    cot__view   wide = {z.data, z.dtype, x.ndim, x.shape, stride};
    cot__reader a, b;
    cot__reader_open(&a, j->backend, &x);
    cot__reader_open(&b, j->backend, &wide);
    while (a.at < a.size) {
        double v = cot__reader_next(&a);
        equal += v == cot__reader_next(&b);
    }
    int64_t extremes = cot__count(z.ndim, z.shape);
    if (equal <= extremes) return;
    cot__kink_begin(r);
    if (extremes == 1)
        cot__putf(&r->x, " is reached by %lld elements", (long long)equal);
    else
        cot__putf(&r->x, " has %lld results, reached by %lld elements", (long long)extremes, (long long)equal);
    cot__putf(&r->x, "; its derivative there: %s.",
              cot__array_kinks[j->op == OP_max ? ARRAY_KINK_max_tie : ARRAY_KINK_min_tie].convention);
}

static double element(const cot__job *j, const cot__view *x, int64_t offset) {
    cot__view one = cot__view_at(x, offset);
    return cot__element_f64(j->backend, &one, 0);
}

/* Is the element that z chose at place e equal to another that could stand there instead? x is the
 * operand of an argsort or a cumargmax. A place that does not exist is equal to none. */
static bool tied_choice(const cot__job *j, int axis, bool order, int64_t e) {
    const cot__view *x = &j->x[0], *z = &j->z;
    int64_t base = 0, place = 0, chosen = cot__element_i64(j->backend, z, e), step = x->stride[axis];
    int64_t n = x->shape[axis], next_row = 1;
    for (int k = z->ndim - 1; k >= 0; k--) {
        int64_t at = e / next_row % z->shape[k];
        if (k == axis) place = at;
        else base += at * x->stride[k];
        next_row *= z->shape[k];
    }
    if (chosen < 0 || chosen >= n) return false;
    double v = element(j, x, base + chosen * step);
    if (!order) return chosen != place && element(j, x, base + place * step) == v;
    if (place + 1 < z->shape[axis]) {
        int64_t next = cot__element_i64(j->backend, z, e + z->stride[axis]);
        return next >= 0 && next < n && element(j, x, base + next * step) == v;
    }
    for (int64_t i = chosen + 1; z->shape[axis] < n && i < n; i++)
        /* left out, but equal to the last one taken */
        if (element(j, x, base + i * step) == v) return true;
    return false;
}

void cot__order_kinks(cot__findings *r) {
    const cot__job *j = r->j;
    int64_t         first = -1, count = 0, size = cot__view_size(&j->z);
    int             axis = (int)cot__job_int(j, 0);
    bool            order = j->op == OP_argsort;
    for (int64_t e = 0; e < size; e++)
        if (tied_choice(j, axis, order, e) && count++ == 0) first = e;
    if (!count) return;
    cot__kink_begin(r);
    cot__putf(&r->x, " chooses between equal elements");
    cot__finding_where(r, &j->z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.",
              cot__array_kinks[order ? ARRAY_KINK_sort_tie : ARRAY_KINK_cummax_tie].convention);
}

/* How many elements of the window at place q of a plane of x equal `value`; attributes as in
 * ops/nn/pool.c. */
static int64_t equal_in_window(const cot__job *j, const int64_t *at, double value) {
    const cot__view *x = &j->x[0];
    const cot__attr *a = j->attr;
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
        count += inside && element(j, x, place) == value;
    }
    return count;
}

/* Finds windows whose maximum several elements reach. */
void cot__pool_kinks(cot__findings *r) {
    const cot__job *j = r->j;
    cot__view       z = j->z;
    cot__reader     in;
    int64_t         first = -1, count = 0;
    cot__reader_open(&in, j->backend, &z);
    while (in.at < in.size) {
        int64_t at[COT_MAX_NDIM], k = in.at;
        for (int a = z.ndim - 1; a >= 0; k /= z.shape[a], a--) at[a] = k % z.shape[a];
        if (equal_in_window(j, at, cot__reader_next(&in)) > 1 && count++ == 0) first = in.at - 1;
    }
    if (!count) return;
    cot__kink_begin(r);
    cot__putf(&r->x, " sits on its kink %s", cot__array_kinks[ARRAY_KINK_max_pool_tie].condition);
    cot__finding_where(r, &z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.", cot__array_kinks[ARRAY_KINK_max_pool_tie].convention);
}

/* ---- any operation --------------------------------------------------------------------------- */

static void find_kink(cot__findings *r, const cot__kink *kink) {
    const cot__job *j = r->j;
    cot__reader     in[COT__KINK_OPERANDS];
    int64_t         first = -1, count = 0;
    char            text[COT__FORMULA_TEXT], filled[COT__FILLED_TEXT];
    for (int k = 0; k < j->n; k++) cot__reader_spread(&in[k], j->backend, &j->x[k], &j->z);
    while (in[0].at < in[0].size) {
        double v[COT__KINK_OPERANDS] = {0, 0, 0};
        for (int k = 0; k < j->n; k++) v[k] = cot__reader_next(&in[k]);
        if (kink->holds(v[0], v[1], v[2]) && count++ == 0) first = in[0].at - 1;
    }
    if (!count) return;
    cot__kink_begin(r);
    cot__formula(j->op, kink->condition, text, sizeof text);
    cot__putf(&r->x, " sits on its kink %s", filled_in(r, text, filled, sizeof filled));
    cot__finding_where(r, &j->z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.", filled_in(r, kink->convention, filled, sizeof filled));
}

bool cot__can_kink(int op) {
    if (op >= OP_structural) return cot__op_of(op)->kinks != NULL;
    for (int k = 0; k < KINK_count; k++)
        if (cot__kinks[k].op == op) return true;
    return false;
}

void cot__kinks_of(cot__findings *r) {
    int op = r->j->op;
    if (op >= OP_structural) {
        if (cot__op_of(op)->kinks) cot__op_of(op)->kinks(r);
        return;
    }
    for (int k = 0; k < KINK_count; k++)
        if (cot__kinks[k].op == op) find_kink(r, &cot__kinks[k]);
}
