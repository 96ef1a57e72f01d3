/* linalg_triangle.c: triangular systems, Cholesky factors, QR, and least squares, which are made of
 * those. */
#include "rules/structural_ids.h"
#include "ops/linalg/linalg.h"

#include <float.h>
#include <string.h>

/* ---- triangular systems ---------------------------------------------------------------------- */

enum { ALL_FLAGS = COT_UPPER | COT_TRANSPOSED | COT_UNIT_DIAGONAL | COT_RIGHT };

/* The kernels have the public flags under names of their own. */
typedef char flags_are_those_of_the_kernel[(int)COT_UPPER == (int)COT__LIN_UPPER &&
                                                   (int)COT_TRANSPOSED == (int)COT__LIN_TRANSPOSED &&
                                                   (int)COT_UNIT_DIAGONAL == (int)COT__LIN_UNIT &&
                                                   (int)COT_RIGHT == (int)COT__LIN_RIGHT
                                               ? 1
                                               : -1];

cot_var cot_triangular_solve(cot_var x, cot_var y, int flags) {
    cot_var     a = x, b = y;
    bool        vector;
    cot_dtype   dtype;
    int64_t     count;
    cot__result r;
    cot_tape   *t = cot__enter_system("triangular_solve", &a, &b, true, flags & COT_RIGHT, &vector, &dtype);
    if (!t) return cot__invalid(2, (cot_var[]){x, y});
    if (flags & ~ALL_FLAGS)
        return cot__fail(
            t, COT_VALUE,
            "[triangular_solve] the flags are %d; they are COT_UPPER, COT_TRANSPOSED, COT_UNIT_DIAGONAL and "
            "COT_RIGHT, or-ed",
            flags);
    if (!cot__broadcast_batches(t, "triangular_solve", &a, &b)) return INVALID(t);
    uint32_t   xs[2] = {cot__index(a), cot__index(b)};
    cot__view  va = cot__view_read(t, xs[0]), vb = cot__view_read(t, xs[1]);
    cot_shape  s = cot__shape_at(t, xs[1]);
    cot__attr *attr = cot__attr_make(t, "triangular_solve", 1, (int64_t[]){flags}, 0, NULL);
    if (!attr || !cot__result_open(t, &r, "triangular_solve", vb.dtype, s.ndim, s.dim)) return INVALID(t);
    t->backend->copy(&r.view, &vb);
    uint8_t *bad = cot__lin_open(t, "triangular_solve", &s, &count);
    if (!bad) return INVALID(t);
    bool done = t->backend->triangular(&t->al, &va, flags, &r.view, bad);
    cot__lin_close(t, "triangular_solve", &s, bad, "has a 0 on its diagonal", "its solution is infinite or NaN");
    if (!done) return cot__lin_no_memory(t, "triangular_solve");
    cot_var z = cot__result_push(t, &r, OP_triangular_solve, 2, xs, attr);
    return cot_cast(vector ? cot_squeeze(z, COT_AXES(-1)) : z, dtype);
}

/* a z = b: b̄ += a⁻ᵀ z̄, ā += -b̄ zᵀ, of which only the half of a that was read counts; the other
 * cases are transposes of this one */
static void triangular_solve_vjp(cot__rule *r) {
    int     flags = (int)cot__rule_attr(r)->ints[0], offset = flags & COT_UNIT_DIAGONAL ? 1 : 0;
    bool    transposed = flags & COT_TRANSPOSED;
    cot_var gb = cot_triangular_solve(cot__rule_x(r, 0), r->g, flags ^ COT_TRANSPOSED);
    if (cot__rule_wants(r, 1)) cot__give(r, 1, gb);
    if (!cot__rule_wants(r, 0)) return;
    cot_var z = cot__rule_z(r), left = transposed ? z : gb, right = transposed ? gb : z, ga;
    if (flags & COT_RIGHT) ga = cot_matmul(cot__swap_last(right), left);
    else ga = cot_matmul(left, cot__swap_last(right));
    cot__give(r, 0, cot_neg(flags & COT_UPPER ? cot__upper(ga, offset) : cot__lower(ga, -offset)));
}

static cot_var triangular_solve_apply(cot__rule *r, const cot_var *xs) {
    return cot_triangular_solve(xs[0], xs[1], (int)cot__rule_attr(r)->ints[0]);
}

const cot__op cot__op_triangular_solve = {
    .name     = "triangular_solve",
    .batch    = cot__batch_shift,
    .attrs    = "flags:d",
    .kind     = KIND_GENERIC,
    .saves    = 1u | COT__SAVES_Z,
    .vjp      = triangular_solve_vjp,
    .apply    = triangular_solve_apply,
    .formula  = "a @ z = b, a triangular; b̄ += a⁻ᵀ @ z̄, ā += -a⁻ᵀ @ z̄ @ zᵀ in the triangle",
    .cost     = {.each_inner = 1},
    .linear   = 2u,
    .operands = "a b"};

/* ---- Cholesky -------------------------------------------------------------------------------- */

static cot_var push_cholesky(cot_tape *t, cot_var a) {
    uint32_t    i;
    int64_t     count;
    cot__result r;
    if (!cot__enter(t, a, "cholesky", "", &i)) return INVALID(t);
    cot__view v = cot__view_read(t, i);
    cot_shape s = cot__shape_at(t, i);
    uint8_t  *bad =
        cot__result_open(t, &r, "cholesky", v.dtype, s.ndim, s.dim) ? cot__lin_open(t, "cholesky", &s, &count) : NULL;
    if (!bad) return INVALID(t);
    t->backend->copy(&r.view, &v);
    bool done = t->backend->cholesky(&t->al, &r.view, bad);
    cot__lin_close(t, "cholesky", &s, bad, "is not positive definite", "its factor is NaN");
    return done ? cot__result_push(t, &r, OP_cholesky, 1, &i, NULL) : cot__lin_no_memory(t, "cholesky");
}

cot_var cot_cholesky(cot_var x) {
    cot_dtype dtype;
    uint32_t  i;
    cot_tape *t = cot__enter_matrix("cholesky", x, true, &i, &dtype);
    return t ? cot_cast(push_cholesky(t, cot__symmetrised(VAR(t, i))), dtype) : cot__invalid(1, &x);
}

static cot_var cholesky_apply(cot__rule *r, const cot_var *xs) { return push_cholesky(r->t, xs[0]); }

/* ā += z⁻ᵀ Φ(zᵀ z̄) z⁻¹, Φ: the lower half with its diagonal halved */
static void cholesky_vjp(cot__rule *r) {
    cot_var l = cot__rule_z(r), m = cot_matmul(cot__swap_last(l), r->g);
    cot_var phi = cot_mul(cot_add(cot__lower(m, 0), cot__lower(m, -1)), 0.5);
    cot__give(r, 0, cot_triangular_solve(l, cot_triangular_solve(l, phi, COT_TRANSPOSED), COT_RIGHT));
}

const cot__op cot__op_cholesky = {.name         = "cholesky",
                                  .sweeps_alone = true,
                                  .batch        = cot__batch_shift,
                                  .kind         = KIND_GENERIC,
                                  .saves        = COT__SAVES_Z,
                                  .vjp          = cholesky_vjp,
                                  .apply        = cholesky_apply,
                                  .formula =
                                      "z @ zᵀ = a, z lower; ā += z⁻ᵀ Φ(zᵀ z̄) z⁻¹, Φ: lower half, diagonal halved",
                                  .cost         = {.each_cube = 1.0 / 3},
                                  .operands     = "a"};

/* ---- QR: rows of q (m,n), then of rᵀ (n,n) --------------------------------------------------- */

/* Of node a (…,m,n), m >= n. */
static cot_var pack_qr(cot_tape *t, uint32_t a) {
    cot__view   v = cot__view_read(t, a);
    cot_shape   s = cot__shape_at(t, a);
    cot__result z;
    s = cot__matrices(s, cot__rows_of(&s) + cot__columns_of(&s), cot__columns_of(&s));
    if (!cot__check_shape(t, "qr", &s) || !cot__result_open(t, &z, "qr", v.dtype, s.ndim, s.dim)) return INVALID(t);
    return t->backend->qr(&t->al, &v, &z.view) ? cot__result_push(t, &z, OP_qr, 1, &a, NULL)
                                               : cot__lin_no_memory(t, "qr");
}

static cot_var qr_apply(cot__rule *r, const cot_var *xs) {
    uint32_t a;
    return cot__enter(r->t, xs[0], "qr", "", &a) ? pack_qr(r->t, a) : INVALID(r->t);
}

static bool push_qr(cot_tape *t, uint32_t a, cot_var *q, cot_var *r) {
    cot_shape s = cot__shape_at(t, a);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s);
    cot_var   packed = pack_qr(t, a);
    *q = cot__result_rows(packed, 0, m);
    *r = cot__swap_last(cot__result_rows(packed, m, m + n));
    return t->status == COT_OK;
}

/* The same for any m and n: a wide matrix is factored by its first m columns, and r goes on with qᵀ
 * times the others. */
static bool qr_of(cot_tape *t, uint32_t a, cot_var *q, cot_var *r) {
    cot_shape s = cot__shape_at(t, a);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s);
    if (m >= n) return push_qr(t, a, q, r);
    cot_var first = cot_slice(VAR(t, a), -1, 0, m, 1), rest = cot_slice(VAR(t, a), -1, m, n, 1);
    if (cot__failed(first) || cot__failed(rest) || !push_qr(t, cot__index(first), q, r)) return false;
    *r = cot_concat(2, (cot_var[]){*r, cot_matmul(cot__swap_last(*q), rest)}, -1);
    return t->status == COT_OK;
}

cot_status cot_qr(cot_var x, cot_var *q, cot_var *r) {
    cot_var   out[2] = {cot__invalid(1, &x), cot__invalid(1, &x)};
    cot_dtype dtype;
    uint32_t  a;
    cot_tape *t = cot__enter_matrix("qr", x, false, &a, &dtype);
    if (t && qr_of(t, a, &out[0], &out[1])) out[0] = cot_cast(out[0], dtype), out[1] = cot_cast(out[1], dtype);
    if (q) *q = out[0];
    if (r) *r = out[1];
    return cot__status_of(1, &x);
}

/* Which of the triangles r (…,n,n) of factored (m,n) have a diagonal that says: not of full rank,
 * up to rounding. NULL after a failure; how many in *found. To be closed. */
static uint8_t *short_ranks(cot_tape *t, const char *op, cot_var r, int64_t m, int64_t *found) {
    cot_shape s = cot_shape_of(r);
    int64_t   n = cot__columns_of(&s), count;
    double    eps = cot_dtype_of(r) == COT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    uint8_t  *bad = cot__lin_open(t, op, &s, &count);
    double   *d = bad ? cot__alloc(&t->al, (size_t)(count * n) * sizeof *d + 1) : NULL;
    *found = 0;
    if (bad && !d) cot__lin_no_memory(t, op);
    if (d && cot_read(cot_reshape(cot_diag(r, 0), COT_SHAPE(count, n)), d, count * n) == COT_OK)
        for (int64_t i = 0; i < count; i++) {
            double most = 0, least = (double)INFINITY;
            for (int64_t k = 0; k < n; k++)
                most = fmax(most, fabs(d[i * n + k])), least = fmin(least, fabs(d[i * n + k]));
            *found += bad[i] = n > 0 && least <= eps * (double)(m > n ? m : n) * most;
        }
    if (d) cot__free(&t->al, d, (size_t)(count * n) * sizeof *d + 1);
    return bad;
}

/* ā += (q̄ + q sym(m)) r⁻ᵀ, m = r r̄ᵀ - q̄ᵀ q, sym: the lower half mirrored */
static void qr_vjp(cot__rule *k) {
    cot_shape s = cot__rule_shape(k, 0);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s);
    cot_var   z = cot__rule_z(k), q = cot__result_rows(z, 0, m), rt = cot__result_rows(z, m, m + n),
            gq = cot__result_rows(k->g, 0, m), grt = cot__result_rows(k->g, m, m + n);
    cot_var   middle = cot_sub(cot_matmul(cot__swap_last(rt), grt), cot_matmul(cot__swap_last(gq), q));
    cot_var   sym = cot_add(cot__lower(middle, 0), cot__swap_last(cot__lower(middle, -1)));
    int64_t   found;
    /* a body has no values to speak of */
    uint8_t  *bad = k->t->mode.body ? NULL : short_ranks(k->t, "qr", rt, m, &found);
    cot_shape triangles = cot_shape_of(rt);
    if (bad)
        cot__lin_close(k->t, "qr", &triangles, bad, "has columns that depend on each other",
                       "its derivative divides by what is left of one, and means nothing");
    cot__give(k, 0, cot_triangular_solve(rt, cot_add(gq, cot_matmul(q, sym)), COT_RIGHT));
}

const cot__op cot__op_qr = {.name         = "qr",
                            .sweeps_alone = true,
                            .batch        = cot__batch_shift,
                            .kind         = KIND_GENERIC,
                            .saves        = COT__SAVES_Z,
                            .vjp          = qr_vjp,
                            .apply        = qr_apply,
                            .formula = "z = rows of q, then of rᵀ, with a = q @ r; ā += (q̄ + q sym(r r̄ᵀ - q̄ᵀ q)) r⁻ᵀ",
                            .cost         = {.each_cube = 4},
                            .operands     = "a"};

/* ---- least squares --------------------------------------------------------------------------- */

/* short_ranks as operations, for bodies: a bool (…,1,1). */
static cot_var short_ranks_recorded(cot_var r, int64_t m) {
    cot_shape s = cot_shape_of(r);
    int64_t   n = cot__columns_of(&s);
    double    eps = cot_dtype_of(r) == COT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    cot_var   d   = cot_abs(cot_diag(cot_detach(r), 0)),
            limit = cot_mul(eps * (double)(m > n ? m : n), cot_max(d, COT_KEEP(-1)));
    return cot_expand_dims(cot_less_equal(cot_min(d, COT_KEEP(-1)), limit), -1);
}

/* A bool (…,1,1), true where the rank is short; COT_NONE: nowhere. Leaves the note. */
static cot_var where_rank_is_short(cot_tape *t, cot_var r, int64_t m) {
    cot_shape s = cot_shape_of(r), one = cot__matrices(s, 1, 1);
    cot_var   z = COT_NONE;
    int64_t   found;
    if (t->mode.body) return cot__columns_of(&s) > 0 ? short_ranks_recorded(r, m) : z;
    uint8_t *bad = short_ranks(t, "lstsq", r, m, &found);
    if (found) z = cot_data(t, COT_BOOL, one, bad);
    if (bad) cot__lin_close(t, "lstsq", &s, bad, "is not of full rank", "its solution is NaN");
    return z;
}

/* Tall: a = q r, x = r⁻¹ qᵀ b. Wide: aᵀ = q r, and the shortest of the solutions is q r⁻ᵀ b. The
 * rank comes first: of two notes the first stays, and nobody called triangular_solve. */
cot_var cot_lstsq(cot_var x, cot_var y) {
    cot_var   a = x, b = y, q, r, z;
    bool      vector;
    cot_dtype dtype;
    cot_tape *t = cot__enter_system("lstsq", &a, &b, false, false, &vector, &dtype);
    if (!t) return cot__invalid(2, (cot_var[]){x, y});
    cot_shape s = cot_shape_of(a);
    bool      wide = cot__rows_of(&s) < cot__columns_of(&s);
    if (wide) a = cot__swap_last(a);
    if (cot__failed(a) || !push_qr(t, cot__index(a), &q, &r)) return INVALID(t);
    cot_var bad = where_rank_is_short(t, r, wide ? cot__columns_of(&s) : cot__rows_of(&s));
    if (wide) z = cot_matmul(q, cot_triangular_solve(r, b, COT_UPPER | COT_TRANSPOSED));
    else z = cot_triangular_solve(r, cot_matmul(cot__swap_last(q), b), COT_UPPER);
    if (cot__failed(z)) return z;
    if (bad.tape) z = cot_where(bad, (double)NAN, z);
    return cot_cast(vector ? cot_squeeze(z, COT_AXES(-1)) : z, dtype);
}
