/* matrix.c: the public functions over many directions (products.h): products with several seeds or
 * tangents, Jacobians, Hessians. */
#include "diff/second/second.h"
#include "diff/engine/find_kinks.h"
#include "diff/products/products.h"
#include "pending/pending.h"

#include <string.h>

/* After a failure no numbers remain that could be taken for results. out is (rows, elements of the
 * vars). */
static cot_status finish(cot_status status, double *out, int64_t rows, int n, const cot_var *vars) {
    if (status == COT_OK || !out) return status;
    for (int64_t i = 0, count = cot__size_mul(rows, cot__total_size(n, vars)); i < count; i++) out[i] = (double)NAN;
    return status;
}

cot_status cot_vjps(int lanes, int m, const cot_var *ys, const double *seeds, int n, const cot_var *xs, double *out) {
    return finish(cot__products("vjps", true, lanes, m, ys, n, xs, seeds, out), out, lanes, n, xs);
}

cot_status cot_jvps(int lanes, int n, const cot_var *xs, const double *tangents, int m, const cot_var *ys,
                    double *out) {
    return finish(cot__products("jvps", false, lanes, m, ys, n, xs, tangents, out), out, lanes, m, ys);
}

/* Unit directions are taken in groups, so that memory stays a few rows whatever the size. Small
 * matrices are one group. */
enum { GROUP = 64, GROUP_ELEMENTS = 1 << 18 };

static int64_t group_of(int64_t directions, int64_t results) {
    int64_t longest = directions > results ? directions : results, fit = GROUP_ELEMENTS / longest,
            group = fit > GROUP ? fit : GROUP;
    return directions < group ? directions : group;
}

static cot_status jacobian(const char *op, int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode,
                           double *out) {
    cot_tape *t = cot__tape_beside(op, m == 1 ? "y" : "ys", m, ys, n, xs);
    if (!t) return cot__status_of(m, ys);
    if ((unsigned)mode > COT_FORWARD) {
        cot__fail(t, COT_VALUE, "[%s] %d is not a mode; COT_AUTO, COT_REVERSE and COT_FORWARD are", op, (int)mode);
        return t->status;
    }
    int64_t rows = cot__total_size(m, ys), cols = cot__total_size(n, xs);
    bool    reverse = mode == COT_REVERSE || (mode == COT_AUTO && rows <= cols);
    int64_t directions = reverse ? rows : cols, results = reverse ? cols : rows;
    if (directions == 0 || results == 0)
        /* no lanes: only the checks */
        return cot__products(op, reverse, 0, m, ys, n, xs, NULL, NULL);
    if (!out) {
        cot__fail(t, COT_VALUE, "[%s] the place for the result is NULL", op);
        return t->status;
    }
    int64_t group = group_of(directions, results);
    size_t  unit_bytes, column_bytes;
    bool    fits = cot__size_bytes(cot__size_mul(group, directions), sizeof(double), &unit_bytes);
    fits = cot__size_bytes(cot__size_mul(group, results), sizeof(double), &column_bytes) && fits;
    double *unit   = fits ? cot__alloc(&t->al, unit_bytes) : NULL,
           *column = reverse || !fits ? NULL : cot__alloc(&t->al, column_bytes);
    if (!unit || (!reverse && !column))
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %lld directions of %lld elements", op, (long long)group,
                  (long long)directions);
    for (int64_t at = 0; at < directions && t->status == COT_OK; at += group) {
        int64_t k = directions - at < group ? directions - at : group;
        memset(unit, 0, unit_bytes);
        for (int64_t i = 0; i < k; i++) unit[i * directions + at + i] = 1;
        double *to = reverse ? out + at * cols : column;
        cot__products(op, reverse, (int)k, m, ys, n, xs, unit, to);
        for (int64_t i = 0; i < k && !reverse; i++)
            for (int64_t r = 0; r < rows; r++) out[r * cols + at + i] = column[i * rows + r];
    }
    if (unit) cot__free(&t->al, unit, unit_bytes);
    if (column) cot__free(&t->al, column, column_bytes);
    return t->status;
}

cot_status cot_jacobian(int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode, double *out) {
    cot_status status = jacobian("jacobian", m, ys, n, xs, mode, out);
    return finish(status, out, status == COT_OK ? 0 : cot__total_size(m, ys), n, xs);
}

/* The gradient is recorded, then its Jacobian taken in forward mode: forward over reverse. */
static cot_status over_gradient(const char *op, cot_var y, int n, const cot_var *xs, const double *v, double *out) {
    cot_tape *t = cot__tape_beside(op, "y", 1, &y, n, xs);
    if (!t) return cot__status_of(1, &y);
    if (cot_is_valid(y) && !cot__may_sweep_numbers(t, op, cot__index(y))) return t->status;
    if (!out && cot__total_size(n, xs) > 0) {
        cot__fail(t, COT_VALUE, "[%s] the place for the result is NULL", op);
        return t->status;
    }
    cot_mark m = cot__mark(t);
    cot_var *grads = cot__alloc(&t->al, (size_t)(n > 0 ? n : 0) * sizeof *grads);
    if (!grads) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %d gradients", op, n);
        return t->status;
    }
    const char *before = cot__ask(t, op);
    /* the gradient is differentiated again, so it must be active, also in a no-grad scope */
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot__pending_open(t); /* the gradient may wait until the product */
    uint32_t   since = t->storages.count, from = t->count;
    cot_status status = cot__grad_of(op, y, NULL, n, xs, grads);
    cot__scope_close(t, &scope);
    cot__drop_dead_values(t, since, from);
    if (status == COT_OK && cot__check_second_order_inputs(t, op, n, xs)) {
        if (v)
            cot__products(op, false, 1, n, grads, n, xs, v, out);
        else
            jacobian(op, n, grads, n, xs, COT_FORWARD, out);
    }
    cot__pending_close(t);
    cot__asked(t, before);
    cot__free(&t->al, grads, (size_t)(n > 0 ? n : 0) * sizeof *grads);
    cot__rewind(t, m);
    return t->status;
}

cot_status cot_hessian(cot_var y, int n, const cot_var *xs, double *out) {
    cot_status status = over_gradient("hessian", y, n, xs, NULL, out);
    return finish(status, out, status == COT_OK ? 0 : cot__total_size(n, xs), n, xs);
}

static cot_status hvp(cot_var y, int n, const cot_var *xs, const double *v, double *out) {
    uint32_t  i;
    cot_tape *t = cot__tape_beside("hvp", "y", 1, &y, n, xs);
    cot__side inputs;
    if (!t || !cot__enter(t, y, "hvp", "", &i) || !cot__may_sweep_numbers(t, "hvp", i)) return cot__status_of(1, &y);
    if ((!v || !out) && cot__total_size(n, xs) > 0) {
        cot__fail(t, COT_VALUE, "[hvp] %s is NULL; both have an element for each of the xs",
                  v ? "the place for the product" : "the direction v");
        return t->status;
    }
    bool ok            = cot__side_open(&inputs, t, "hvp", true, n, xs),
         scalars       = ok && n > 0 && inputs.each_one && inputs.hi <= i;
    ok = ok && cot__check_second_order_inputs(t, "hvp", n, xs);
    scalars = scalars && ok && t->nodes[i].kind == COT_F64 && cot__hvp_applies(t, inputs.lo, i);
    const char *before = cot__ask(t, "hvp");
    if (scalars && cot__leaves_unassigned(t, "hvp", 1, &i, n, inputs.index) &&
        cot__smooth_between(t, "hvp", 1, &i, n, inputs.index))
        cot__hvp_scalars(t, i, n, inputs.index, inputs.lo, v, out);
    cot__asked(t, before);
    cot__side_close(&inputs);
    return scalars || !ok ? t->status : over_gradient("hvp", y, n, xs, v, out);
}

cot_status cot_hvp(cot_var y, int n, const cot_var *xs, const double *v, double *out) {
    return finish(hvp(y, n, xs, v, out), out, 1, n, xs);
}
