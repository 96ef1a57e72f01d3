/* flat.c: see flat.h. */
#include "optim/flat.h"

#include "tape/region.h"

bool cot__flat_open(cot__flat *w, const char *op, int n, const cot_var *xs, cot_function f, void *user, bool narrow) {
    cot_tape *t = cot__tape_of(n, xs);
    uint32_t  i;
    if (!t || !cot__outside_bodies(t, op)) return false;
    if (!f) cot__fail(t, COT_VALUE, "[%s] the function is NULL", op);
    *w = (cot__flat){.t = t, .op = op, .n = n, .xs = xs, .f = f, .user = user};
    for (int k = 0; k < n && t->status == COT_OK; k++) {
        if (!cot__weight(t, op, "xs", k, xs[k], &i)) return false;
        if (!narrow && cot__dtype_at(&t->nodes[i]) != COT_F64)
            cot__fail(t, COT_DTYPE, "[%s] xs[%d] has dtype f32; it takes f64", op, k);
        w->size += cot__size_at(t, i);
    }
    if (t->status != COT_OK) return false;
    w->start = cot_tape_mark(t);
    return true;
}

void cot__flat_close(cot__flat *w) {
    if (w->t->status == COT_OK) {
        cot_tape_rewind(w->t, w->start);
        return;
    }
    cot__rewind(w->t, w->start);
    cot__next_stamp(w->t);
}

bool cot__flat_read(const cot__flat *w, double *x) {
    for (int k = 0; k < w->n; k++) {
        int64_t size = cot_size(w->xs[k]);
        if (cot_read(w->xs[k], x, size) != COT_OK) return false;
        x += size;
    }
    return true;
}

bool cot__flat_record(cot__flat *w, const double *x) {
    cot_tape_rewind(w->t, w->start);
    for (int k = 0; k < w->n && w->t->status == COT_OK; k++) {
        cot__assign_doubles(w->t, cot__index(w->xs[k]), x);
        x += cot_size(w->xs[k]);
    }
    if (w->t->status == COT_OK) w->y = w->f(w->n, w->xs, w->user);
    uint32_t i;
    return w->t->status == COT_OK && cot__operand(w->t, w->y, w->op, "resulting", &i);
}
