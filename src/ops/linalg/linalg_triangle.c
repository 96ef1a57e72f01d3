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

static bool check_flags(const cot__caller *c, int64_t flags) {
    return !(flags & ~(int64_t)ALL_FLAGS) ||
           cot__refuse(c, COT_VALUE,
                       "the flags are %lld; they are COT_UPPER, COT_TRANSPOSED, COT_UNIT_DIAGONAL and COT_RIGHT, or-ed",
                       (long long)flags);
}

static bool triangular_solve_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, 1) || !check_flags(j->caller, cot__job_int(j, 0)) || !cot__job_matrix(j, 0, true) ||
        !cot__job_matrix(j, 1, false) || !cot__job_dtype(j, 1, j->x[0].dtype))
        return false;
    cot_shape a = cot__view_extents(&j->x[0]), b = cot__view_extents(&j->x[1]);
    int64_t   fits[2] = {cot__rows_of(&b), cot__columns_of(&b)};
    fits[cot__job_int(j, 0) & COT_RIGHT ? 1 : 0] = cot__rows_of(&a);
    *z = (cot__type){j->x[1].dtype, b};
    return cot__job_beside(j, 1, 0, 2, fits);
}
static int64_t triangular_solve_workspace(const cot__job *j) {
    return j->backend->triangular_workspace(&j->x[0], &j->x[1]);
}
static void triangular_solve_run(const cot__job *j) {
    j->backend->copy(&j->z, &j->x[1]);
    j->backend->triangular(&j->x[0], (int)cot__job_int(j, 0), &j->z, j->workspace, j->status);
}
static void triangular_solve_tell(const cot__job *j, const int64_t found[2]) {
    cot__tell_matrices(j, found, "has a 0 on its diagonal", "its solution is infinite or NaN");
}

cot_var cot_triangular_solve(cot_var x, cot_var y, int flags) {
    cot_var   a = x, b = y;
    bool      vector;
    cot_dtype dtype;
    cot_tape *t = cot__enter_system("triangular_solve", &a, &b, true, flags & COT_RIGHT, &vector, &dtype);
    if (!t) return cot__invalid(2, (cot_var[]){x, y});
    cot__caller caller = cot__tape_caller(t, "triangular_solve");
    if (!check_flags(&caller, flags) || !cot__broadcast_batches(t, "triangular_solve", &a, &b)) return INVALID(t);
    uint32_t   xs[2] = {cot__index(a), cot__index(b)};
    cot__attr *attr = cot__attr_make(t, "triangular_solve", 1, (int64_t[]){flags}, 0, NULL);
    if (!attr) return INVALID(t);
    cot_var z = cot__record(t, "triangular_solve", OP_triangular_solve, 2, xs, attr, NULL);
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

const cot__op cot__op_triangular_solve = {
    .name     = "triangular_solve",
    .batch    = cot__batch_shift,
    .attrs    = "flags:d",
    .kind     = KIND_GENERIC,
    .saves    = 1u | COT__SAVES_Z,
    .vjp      = triangular_solve_vjp,
    .infer    = triangular_solve_infer,
    .workspace = triangular_solve_workspace,
    .run      = triangular_solve_run,
    .tell     = triangular_solve_tell,
    .formula  = "a @ z = b, a triangular; b̄ += a⁻ᵀ @ z̄, ā += -a⁻ᵀ @ z̄ @ zᵀ in the triangle",
    .cost     = {.each_inner = 1},
    .linear   = 2u,
    .operands = "a b"};

/* ---- Cholesky -------------------------------------------------------------------------------- */

static bool cholesky_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_matrix(j, 0, true)) return false;
    *z = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    return true;
}
static int64_t cholesky_workspace(const cot__job *j) { return j->backend->cholesky_workspace(&j->x[0]); }
static void    cholesky_run(const cot__job *j) {
    j->backend->copy(&j->z, &j->x[0]);
    j->backend->cholesky(&j->z, j->workspace, j->status);
}
static void cholesky_tell(const cot__job *j, const int64_t found[2]) {
    cot__tell_matrices(j, found, "is not positive definite", "its factor is NaN");
}

cot_var cot_cholesky(cot_var x) {
    cot_dtype dtype;
    uint32_t  i;
    cot_tape *t = cot__enter_matrix("cholesky", x, true, &i, &dtype);
    if (!t) return cot__invalid(1, &x);
    if (!cot__enter(t, cot__symmetrised(VAR(t, i)), "cholesky", "", &i)) return INVALID(t);
    return cot_cast(cot__record(t, "cholesky", OP_cholesky, 1, &i, NULL, NULL), dtype);
}

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
                                  .infer        = cholesky_infer,
                                  .workspace    = cholesky_workspace,
                                  .run          = cholesky_run,
                                  .tell         = cholesky_tell,
                                  .formula =
                                      "z @ zᵀ = a, z lower; ā += z⁻ᵀ Φ(zᵀ z̄) z⁻¹, Φ: lower half, diagonal halved",
                                  .cost         = {.each_cube = 1.0 / 3},
                                  .operands     = "a"};

/* ---- QR -------------------------------------------------------------------------------------- */

static int qr_results(const cot__job *j) { return (void)j, 2; }

/* Of (…,m,n), m >= n: q (…,m,n) and r (…,n,n). */
static bool qr_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_matrix(j, 0, false)) return false;
    cot_shape s = cot__view_extents(&j->x[0]);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s);
    if (m < n) return cot__job_illegal(j, "a matrix of %lld rows and %lld columns", (long long)m, (long long)n);
    z[0] = (cot__type){j->x[0].dtype, s};
    z[1] = (cot__type){j->x[0].dtype, cot__matrices(s, n, n)};
    return true;
}

static int64_t qr_workspace(const cot__job *j) { return j->backend->qr_workspace(&j->x[0]); }
static void    qr_run(const cot__job *j) { j->backend->qr(&j->x[0], &j->z, &j->more[0], j->workspace); }

static bool push_qr(cot_tape *t, uint32_t a, cot_var *q, cot_var *r) {
    *q = cot__record(t, "qr", OP_qr, 1, &a, NULL, NULL);
    *r = cot__result_of(*q, 1);
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

/* Which triangles r (…,n,n) of factored (m,n) have a diagonal that says: not of full rank, up to
 * rounding. */
typedef struct ranks {
    int64_t count, found[2]; /* triangles; how many are short, and the first of these */
    uint8_t *is_short;       /* a byte for each; NULL after a failure */
    double  *diagonal;
    size_t   bytes;
} ranks;

static bool is_short(const double *d, int64_t n, double slack) {
    double most = 0, least = (double)INFINITY;
    for (int64_t k = 0; k < n; k++) most = fmax(most, fabs(d[k])), least = fmin(least, fabs(d[k]));
    return n > 0 && least <= slack * most;
}

static bool ranks_open(ranks *r, cot_tape *t, const char *op, cot_var triangles, int64_t m) {
    cot_shape s = cot_shape_of(triangles);
    int64_t   n = cot__columns_of(&s);
    double    eps = cot_dtype_of(triangles) == COT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    *r = (ranks){.count = cot_size(triangles) == 0 ? 0 : cot__count(s.ndim - 2, s.dim)};
    r->bytes = (size_t)r->count * ((size_t)n * sizeof *r->diagonal + 1) + 1;
    if (!(r->diagonal = cot__alloc(&t->al, r->bytes))) return cot__lin_no_memory(t, op), false;
    r->is_short = (uint8_t *)(r->diagonal + r->count * n);
    cot_var d = cot_reshape(cot_diag(triangles, 0), COT_SHAPE(r->count, n));
    bool    known = cot_read(d, r->diagonal, r->count * n) == COT_OK;
    for (int64_t i = 0; i < r->count; i++) {
        r->is_short[i] = known && is_short(r->diagonal + i * n, n, eps * (double)(m > n ? m : n));
        if (r->is_short[i] && r->found[0]++ == 0) r->found[1] = i;
    }
    return true;
}

/* Says which they are. */
static void ranks_close(ranks *r, cot_tape *t, const char *op, cot_var triangles, const char *what,
                        const char *consequence) {
    cot__caller caller = cot__tape_caller(t, op);
    cot_shape   s = cot_shape_of(triangles);
    if (r->found[0]) cot__note_matrices(&caller, &s, r->found, what, consequence);
    cot__free(&t->al, r->diagonal, r->bytes);
}

/* ā += (q̄ + q sym(m)) r⁻ᵀ, m = r r̄ᵀ - q̄ᵀ q, sym: the lower half mirrored */
static void qr_vjp(cot__rule *k) {
    cot_shape s = cot__rule_shape(k, 0);
    int64_t   m = cot__rows_of(&s);
    cot_var   q = cot__rule_z(k), rt = cot__swap_last(cot__rule_result_of(k, 1)), gq = cot__rule_adjoint(k, 0),
            grt = cot__swap_last(cot__rule_adjoint(k, 1));
    cot_var   middle = cot_sub(cot_matmul(cot__swap_last(rt), grt), cot_matmul(cot__swap_last(gq), q));
    cot_var   sym = cot_add(cot__lower(middle, 0), cot__swap_last(cot__lower(middle, -1)));
    ranks     r;
    /* a body has no values to speak of */
    if (!k->t->mode.body && ranks_open(&r, k->t, "qr", rt, m))
        ranks_close(&r, k->t, "qr", rt, "has columns that depend on each other",
                    "its derivative divides by what is left of one, and means nothing");
    cot__give(k, 0, cot_triangular_solve(rt, cot_add(gq, cot_matmul(q, sym)), COT_RIGHT));
}

const cot__op cot__op_qr = {.name         = "qr",
                            .sweeps_alone = true,
                            .batch        = cot__batch_shift,
                            .kind         = KIND_GENERIC,
                            .saves        = COT__SAVES_Z,
                            .vjp          = qr_vjp,
                            .results      = qr_results,
                            .infer        = qr_infer,
                            .workspace    = qr_workspace,
                            .run          = qr_run,
                            .formula = "z = q, then r, with a = q @ r; ā += (q̄ + q sym(r r̄ᵀ - q̄ᵀ q)) r⁻ᵀ",
                            .cost         = {.each_cube = 4},
                            .operands     = "a"};

/* ---- least squares --------------------------------------------------------------------------- */

/* Short ranks as operations, for bodies: a bool (…,1,1). */
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
    ranks     k;
    if (t->mode.body) return cot__columns_of(&s) > 0 ? short_ranks_recorded(r, m) : z;
    if (!ranks_open(&k, t, "lstsq", r, m)) return z;
    if (k.found[0]) z = cot_data(t, COT_BOOL, one, k.is_short);
    ranks_close(&k, t, "lstsq", r, "is not of full rank", "its solution is NaN");
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
