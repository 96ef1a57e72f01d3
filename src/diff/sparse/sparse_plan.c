/* sparse_plan.c: makes plans from a tape, and computes sparse Jacobians and Hessians by them.
 *
 * The pattern of a Hessian is the pattern of the recorded gradient. Its rules are the ones that the
 * sweeps run. A separate analysis of which operands meet nonlinearly would be a second table to
 * keep true. The pattern may lack symmetry where generic operations count as dense, so it is joined
 * with its transpose. */
#include "diff/second/second.h"
#include "base/random.h"
#include "diff/products/products.h"
#include "diff/sparse/sparse.h"
#include "pending/pending.h"

#include <math.h>
#include <string.h>

/* ---- colours --------------------------------------------------------------------------------- */

/* Replaces the pattern by its union with the transpose. */
static bool symmetrise(const cot_allocator *al, cot__csr *m) {
    cot__csr t, z = {m->rows, m->cols, 2 * m->nnz, NULL, NULL};
    if (!cot__csr_transpose(al, m, &t)) return false;
    z.row_start = cot__alloc(al, (size_t)(z.rows + 1) * sizeof *z.row_start);
    z.col = cot__alloc(al, (size_t)z.nnz * sizeof *z.col);
    int64_t n = 0;
    bool    ok = z.row_start && z.col;
    if (ok) z.row_start[0] = 0;
    for (int64_t i = 0; i < m->rows && ok; i++) {
        int64_t a = m->row_start[i], a_end = m->row_start[i + 1], b = t.row_start[i], b_end = t.row_start[i + 1];
        while (a < a_end || b < b_end) {
            int32_t x = a < a_end ? m->col[a] : INT32_MAX, y = b < b_end ? t.col[b] : INT32_MAX;
            z.col[n++] = x < y ? x : y;
            a += x <= y;
            b += y <= x;
        }
        z.row_start[i + 1] = n;
    }
    void *exact = ok ? cot__resize(al, z.col, (size_t)z.nnz * sizeof *z.col, (size_t)n * sizeof *z.col) : NULL;
    if (ok && (exact || n == 0)) {
        z.col = exact;
        z.nnz = n;
        cot__csr t2 = *m;
        *m = z;
        z = t2;
    } else
        ok = false;
    cot__csr_free(al, &t);
    cot__csr_free(al, &z);
    return ok;
}

/* Colours the columns of m, and stores the colours in p if they are fewer than those p has. */
static bool take_if_fewer(cot_sparse_plan *p, const cot__csr *m, bool forward) {
    int32_t *colour = cot__alloc(&p->al, (size_t)m->cols * sizeof *colour);
    int32_t  colours = !colour      ? -1
                       : p->hessian ? cot__colour_star(&p->al, m, colour)
                                    : cot__colour_columns(&p->al, m, colour);
    bool     take = colours >= 0 && (!p->colour || colours < p->colours);
    if (take) {
        cot__free(&p->al, p->colour, (size_t)cot__plan_coloured(p) * sizeof *colour);
        p->colour = colour;
        p->colours = colours;
        p->forward = forward;
    } else
        cot__free(&p->al, colour, (size_t)m->cols * sizeof *colour);
    return colours >= 0;
}

static bool nothing_to_colour(cot_sparse_plan *p) {
    size_t bytes = (size_t)p->pattern.cols * sizeof *p->colour;
    p->forward = true;
    p->colour = cot__alloc(&p->al, bytes);
    if (p->colour) memset(p->colour, 0, bytes);
    return p->colour != NULL;
}

/* No colouring has fewer colours than the fullest row (or column) has entries. The mode with the
 * lower bound is coloured first. The other mode is tried only if it could need fewer. */
static bool colour_plan(cot_sparse_plan *p, cot_mode mode) {
    if (p->pattern.nnz == 0) return nothing_to_colour(p);
    if (p->hessian) return take_if_fewer(p, &p->pattern, true);
    cot__csr t;
    if (!cot__csr_transpose(&p->al, &p->pattern, &t)) return false;
    int64_t columns = cot__fullest_row(&p->pattern), rows = cot__fullest_row(&t);
    bool    forward = mode == COT_FORWARD || (mode == COT_AUTO && columns <= rows);
    bool    ok = take_if_fewer(p, forward ? &p->pattern : &t, forward);
    if (ok && mode == COT_AUTO && (forward ? rows : columns) < p->colours)
        ok = take_if_fewer(p, forward ? &t : &p->pattern, !forward);
    cot__csr_free(&p->al, &t);
    return ok;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static cot_sparse_plan *make(const char *op, cot_tape *t, bool hessian, int m, const cot_var *ys, int n,
                             const cot_var *xs, cot_mode mode) {
    cot_sparse_plan *p = cot__plan_create(&t->cache.below);
    if (p) p->hessian = hessian;
    const char *before = cot__ask(t, op);
    bool        ok = p && cot__sparsity(op, t, &p->al, m, ys, n, xs, &p->pattern);
    cot__asked(t, before);
    ok = ok && t->status == COT_OK && (!hessian || symmetrise(&p->al, &p->pattern)) && colour_plan(p, mode);
    cot__plan_verdict verdict = ok ? cot__plan_finish(p) : COT__PLAN_MEMORY;
    if (verdict == COT__PLAN_FINE) return p;
    if (verdict == COT__PLAN_MIXES) /* a mistake of ours */
        cot__fail(t, COT_VALUE, "[%s] its colours would mix entries", op);
    /* has no effect if another error stands already */
    cot__fail(t, COT_MEMORY, "[%s] out of memory: a plan for %d outputs and %d inputs", op, m, n);
    cot_sparse_plan_destroy(p);
    return NULL;
}

cot_sparse_plan *cot__sparse_jacobian_plan(const char *op, int m, const cot_var *ys, int n, const cot_var *xs,
                                           cot_mode mode) {
    cot_tape *t = cot__tape_beside(op, m == 1 ? "y" : "ys", m, ys, n, xs);
    if (!t) return NULL;
    if ((unsigned)mode > COT_FORWARD) {
        cot__fail(t, COT_VALUE, "[%s] %d is not a mode; COT_AUTO, COT_REVERSE and COT_FORWARD are", op, (int)mode);
        return NULL;
    }
    return cot__products(op, true, 0, m, ys, n, xs, NULL, NULL) == COT_OK ? make(op, t, false, m, ys, n, xs, mode)
                                                                          : NULL;
}

cot_sparse_plan *cot_sparse_jacobian_plan(int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode) {
    return cot__sparse_jacobian_plan("sparse_jacobian_plan", m, ys, n, xs, mode);
}

/* Records the gradient of y: n vars from the tape's allocator, which the caller frees and rewinds.
 * NULL after setting the error. */
static cot_var *gradient(const char *op, cot_tape *t, cot_var y, int n, const cot_var *xs) {
    size_t   count = (size_t)(n > 0 ? n : 0);
    cot_var *grads = cot__alloc(&t->al, count * sizeof *grads);
    if (!grads) cot__fail(t, COT_MEMORY, "[%s] out of memory: %d gradients", op, n);
    if (!grads) return NULL;
    bool    may = !cot_is_valid(y) || cot__may_sweep_numbers(t, op, cot__index(y));
    /* the gradient is differentiated again, so it must be active, also in a no-grad scope */
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot_status status = may ? cot__grad_of(op, y, NULL, n, xs, grads) : t->status;
    cot__scope_close(t, &scope);
    if (status == COT_OK && cot__check_second_order_inputs(t, op, n, xs)) return grads;
    cot__free(&t->al, grads, count * sizeof *grads);
    return NULL;
}

cot_sparse_plan *cot__sparse_hessian_plan(const char *op, cot_var y, int n, const cot_var *xs) {
    cot_tape *t = cot__tape_beside(op, "y", 1, &y, n, xs);
    if (!t) return NULL;
    cot_mark         mark = cot__mark(t);
    cot_var         *grads = gradient(op, t, y, n, xs);
    cot_sparse_plan *p = grads ? make(op, t, true, n, grads, n, xs, COT_FORWARD) : NULL;
    if (grads) cot__free(&t->al, grads, (size_t)n * sizeof *grads);
    cot__rewind(t, mark);
    return p;
}

cot_sparse_plan *cot_sparse_hessian_plan(cot_var y, int n, const cot_var *xs) {
    return cot__sparse_hessian_plan("sparse_hessian_plan", y, n, xs);
}

/* ---- evaluations ----------------------------------------------------------------------------- */

bool cot__sparse_fits(const char *op, cot_tape *t, const cot_sparse_plan *p, bool hessian, int64_t rows, int64_t cols,
                      const void *values) {
    if (!p)
        cot__fail(t, COT_VALUE, "[%s] the plan is NULL; make one first", op);
    else if (p->hessian != hessian)
        cot__fail(t, COT_VALUE, "[%s] the plan is for a %s; make one for a %s", op, p->hessian ? "Hessian" : "Jacobian",
                  hessian ? "Hessian" : "Jacobian");
    else if (p->pattern.rows != rows || p->pattern.cols != cols)
        cot__fail(
            t, COT_SHAPE,
            "[%s] the plan is for (%lld,%lld), the matrix is (%lld,%lld); make a plan for these outputs and inputs", op,
            (long long)p->pattern.rows, (long long)p->pattern.cols, (long long)rows, (long long)cols);
    else if (!values && p->pattern.nnz > 0)
        cot__fail(t, COT_VALUE, "[%s] a list of %lld values is NULL", op, (long long)p->pattern.nnz);
    else
        return true;
    return false;
}

/* After a failure no numbers remain that could be taken for results. */
static cot_status finish(cot_status status, const cot_sparse_plan *p, double *values) {
    if (status == COT_OK || !p || !values) return status;
    for (int64_t k = 0; k < p->pattern.nnz; k++) values[k] = (double)NAN;
    return status;
}

cot_status cot__sparse_jacobian(const char *op, const cot_sparse_plan *p, int m, const cot_var *ys, int n,
                                const cot_var *xs, double *values) {
    cot_tape *t = cot__tape_beside(op, m == 1 ? "y" : "ys", m, ys, n, xs);
    if (!t) return finish(cot__status_of(m, ys), p, values);
    if (cot__products(op, true, 0, m, ys, n, xs, NULL, NULL) == COT_OK &&
        cot__sparse_fits(op, t, p, false, cot__total_size(m, ys), cot__total_size(n, xs), values))
        cot__sparse_entries(op, t, p, m, ys, n, xs, values);
    return finish(t->status, p, values);
}

cot_status cot_sparse_jacobian(const cot_sparse_plan *p, int m, const cot_var *ys, int n, const cot_var *xs,
                               double *values) {
    return cot__sparse_jacobian("sparse_jacobian", p, m, ys, n, xs, values);
}

enum { AT_ONCE = 4 }; /* Hessian-vector products that one sweep over scalars carries */

/* Between f64 scalars, Hessian-vector products need no recording (dual.c). *done: this way was
 * taken. */
static void over_scalars(const char *op, cot_tape *t, const cot_sparse_plan *p, cot_var y, int n, const cot_var *xs,
                         double *values, bool *done) {
    bool     may = n > 0 && !t->options.smooth && cot_is_valid(y) && cot__may_sweep_numbers(t, op, cot__index(y));
    uint32_t yi, lo = UINT32_MAX, hi = 0, *index = may ? cot__alloc(&t->al, (size_t)n * sizeof *index) : NULL;
    *done = false;
    if (!index) return; /* the recorded way will report the error */
    bool ok = cot__operand(t, y, op, "", &yi) && cot__check_inputs(t, op, n, xs, index) && t->nodes[yi].kind == COT_F64;
    for (int k = 0; k < n && ok; k++) {
        ok = t->nodes[index[k]].kind == COT_F64;
        lo = index[k] < lo ? index[k] : lo;
        hi = index[k] > hi ? index[k] : hi;
    }
    int most = ok && hi <= yi && cot__hvp_lanes_apply(t, lo, yi) ? AT_ONCE : 1;
    *done = ok && hi <= yi && (most > 1 || cot__hvp_applies(t, lo, yi));
    if (*done && cot__sparse_fits(op, t, p, true, n, n, values) && cot__leaves_unassigned(t, op, 1, &yi, n, index)) {
        int64_t       size = n;
        size_t        row = (size_t)n * sizeof(double), bytes = (size_t)(AT_ONCE + p->lanes) * row;
        double       *v = cot__alloc(&t->al, bytes), *out = v ? v + AT_ONCE * size : NULL;
        const double *products[COT__HELD];
        if (!v)
            cot__fail(t, COT_MEMORY, "[%s] out of memory: %d products of %zu bytes in all", op, (int)p->lanes, bytes);
        for (int32_t c = 0; c < p->colours && t->status == COT_OK;) {
            int group = c / p->lanes, lane = c % p->lanes,
                left  = p->colours - c < p->lanes - lane ? p->colours - c : p->lanes - lane;
            int lanes = left < most ? left : most;
            for (int l = 0; l < lanes; l++) {
                products[lane + l] = out + (lane + l) * size;
                cot__sparse_seed(t, p, c + l, 0, &(cot__view){v + l * size, COT_F64, 1, &size, NULL});
            }
            double *to = out + lane * size;
            ok         = lanes > 1 ? cot__hvp_lanes(t, yi, n, index, lo, lanes, v, to)
                                   : cot__hvp_scalars(t, yi, n, index, lo, v, to);
            if (ok && lanes == left) cot__sparse_collect(t, p, group, products, values);
            c += lanes;
        }
        cot__free(&t->al, v, bytes);
    }
    cot__free(&t->al, index, (size_t)n * sizeof *index);
}

cot_status cot__sparse_hessian(const char *op, const cot_sparse_plan *p, cot_var y, int n, const cot_var *xs,
                               double *values) {
    cot_tape *t = cot__tape_beside(op, "y", 1, &y, n, xs);
    bool      done;
    if (!t) return finish(cot__status_of(1, &y), p, values);
    const char *before = cot__ask(t, op);
    over_scalars(op, t, p, y, n, xs, values, &done);
    cot__asked(t, before);
    if (done || t->status != COT_OK) return finish(t->status, p, values);
    cot_mark mark = cot__mark(t);
    cot__pending_open(t); /* the gradient may wait until the first product */
    uint32_t since = t->storages.count, from = t->count;
    cot_var *grads = gradient(op, t, y, n, xs);
    cot__drop_dead_values(t, since, from);
    if (grads) {
        if (cot__sparse_fits(op, t, p, true, cot__total_size(n, xs), cot__total_size(n, xs), values))
            cot__sparse_entries(op, t, p, n, grads, n, xs, values);
        cot__free(&t->al, grads, (size_t)n * sizeof *grads);
    }
    cot__pending_close(t);
    cot__rewind(t, mark);
    return finish(t->status, p, values);
}

cot_status cot_sparse_hessian(const cot_sparse_plan *p, cot_var y, int n, const cot_var *xs, double *values) {
    return cot__sparse_hessian("sparse_hessian", p, y, n, xs, values);
}

/* ---- the check ------------------------------------------------------------------------------- */

static double precision(const cot_tape *t, int n, const cot_var *vars, double least) {
    static const double of[COT_DTYPE_COUNT] = {
        [COT_F64] = 0x1p-52, [COT_F32] = 0x1p-23, [COT_BF16] = 0x1p-7, [COT_F16] = 0x1p-10};
    for (int k = 0; k < n; k++) least = fmax(least, of[cot__dtype_at(&t->nodes[cot__index(vars[k])])]);
    return least;
}

/* The allowed difference by rounding: half the digits of the sum of a row, plus a few units in the
 * last place of the largest number anywhere. The sweep may have had such a number as an
 * intermediate one on the way to a small row. */
static void compare(const char *op, cot_tape *t, const cot_sparse_plan *p, double unit, const double *v,
                    const double *want, const double *values) {
    const cot__csr *m = &p->pattern;
    double          largest = 0;
    for (int64_t i = 0; i < m->rows; i++) largest = isfinite(want[i]) ? fmax(largest, fabs(want[i])) : largest;
    for (int64_t e = 0; e < m->nnz; e++) largest = isfinite(values[e]) ? fmax(largest, fabs(values[e])) : largest;
    for (int64_t i = 0; i < m->rows; i++) {
        double sum = 0, size = fabs(want[i]);
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++) {
            sum += values[e] * v[m->col[e]];
            size += fabs(values[e] * v[m->col[e]]);
        }
        if (fabs(sum - want[i]) <= sqrt(unit) * size + 64 * unit * largest || (!isfinite(sum) && !isfinite(want[i])))
            continue;
        cot__fail(t, COT_GRAD,
                  "[%s] along a random direction row %lld of the sparse matrix gives %.9g, the function %.9g; the "
                  "pattern lacks an entry "
                  "(other control flow or positions?), make a plan here",
                  op, (long long)i, sum, want[i]);
        return;
    }
}

cot_status cot_sparse_check(const cot_sparse_plan *p, int m, const cot_var *ys, int n, const cot_var *xs,
                            const double *values, uint64_t seed) {
    const char *op = "sparse_check";
    cot_tape   *t  = cot__tape_beside(op, m == 1 ? "y" : "ys", m, ys, n, xs);
    if (!t) return cot__status_of(m, ys);
    bool    hessian = p && p->hessian;
    int64_t cols = cot__total_size(n, xs), rows = hessian ? cols : cot__total_size(m, ys);
    if (cot__products(op, true, 0, m, ys, n, xs, NULL, NULL) != COT_OK) return t->status;
    if (!cot__sparse_fits(op, t, p, hessian, rows, cols, values)) return t->status;
    cot_mark mark = cot__mark(t);
    cot_var *grads = hessian ? gradient(op, t, ys[0], n, xs) : NULL;
    size_t   bytes = (size_t)(rows + cols) * sizeof(double);
    double  *v = cot__alloc(&t->al, bytes), *out = v ? v + cols : NULL;
    if (!v) cot__fail(t, COT_MEMORY, "[%s] out of memory: a direction of %lld elements", op, (long long)cols);
    if (v && t->status == COT_OK) {
        /* a matrix without entries writes no products */
        memset(out, 0, (size_t)rows * sizeof *out);
        for (int64_t j = 0; j < cols; j++)
            v[j] = cot__mixed_direction(seed * UINT64_C(0xD1342543DE82EF95) + (uint64_t)j);
        if (cot__products(op, false, 1, hessian ? n : m, hessian ? grads : ys, n, xs, v, out) == COT_OK)
            compare(op, t, p, precision(t, m, ys, precision(t, n, xs, 0)), v, out, values);
    }
    cot__free(&t->al, v, bytes);
    if (grads) cot__free(&t->al, grads, (size_t)n * sizeof *grads);
    cot__rewind(t, mark);
    return t->status;
}
