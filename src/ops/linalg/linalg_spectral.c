/* linalg_spectral.c: eigenvalues of symmetric matrices and singular values.
 *
 * Their rules divide by differences of eigenvalues. Where two are equal, vectors are any basis of
 * what the pair spans and have no derivative: those terms are taken as 0, which holds the basis
 * still, and a note says so. */
#include "rules/structural_ids.h"
#include "ops/kinks.h"
#include "ops/linalg/linalg.h"
#include "rules/kinks.h"

/* x / d, 0 where d is 0; both derivatives stay finite there. */
static cot_var over(cot_var x, cot_var d) {
    cot_var zero = cot_equal(d, 0.0);
    return cot_where(zero, 0.0, cot_div(x, cot_where(zero, 1.0, d)));
}

static cot_var as_row(cot_var x) { return cot_expand_dims(x, -2); }
static cot_var as_column(cot_var x) { return cot_expand_dims(x, -1); }

/* ---- eigh: v (n,n), then w (n) --------------------------------------------------------------- */

/* results; the values are the second ones of both operations of this file */
enum { VECTORS, VALUES };

static int eigh_results(const cot__job *j) { return (void)j, 2; }

static bool eigh_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_matrix(j, 0, true)) return false;
    cot_shape s = cot__view_extents(&j->x[0]);
    z[VECTORS] = z[VALUES] = (cot__type){j->x[0].dtype, s};
    z[VALUES].shape.ndim--;
    return true;
}
static int64_t eigh_workspace(const cot__job *j) { return j->backend->eigh_workspace(&j->x[0]); }
static void    eigh_run(const cot__job *j) {
    j->backend->eigh(&j->x[0], &j->z, &j->more[0], j->workspace, j->status);
}
static void    spectral_tell(const cot__job *j, const int64_t found[2]) {
    cot__tell_matrices(j, found, "did not converge", "its results are NaN");
}

static cot_var push_eigh(cot_tape *t, const char *op, cot_var a) {
    uint32_t i;
    return cot__enter(t, a, op, "", &i) ? cot__record(t, op, OP_eigh, 1, &i, NULL, NULL) : INVALID(t);
}

static cot_status eigh_of(const char *op, cot_var x, cot_var *w, cot_var *v) {
    cot_var   out[2] = {cot__invalid(1, &x), cot__invalid(1, &x)};
    cot_dtype dtype;
    uint32_t  a;
    cot_tape *t = cot__enter_matrix(op, x, true, &a, &dtype);
    if (t) {
        cot_var z = push_eigh(t, op, cot__symmetrised(VAR(t, a)));
        if (w) out[0] = cot_cast(cot__result_of(z, VALUES), dtype);
        if (v) out[1] = cot_cast(z, dtype);
    }
    if (w) *w = out[0];
    if (v) *v = out[1];
    return cot__status_of(1, &x);
}

cot_status(cot_eigh)(cot_var x, cot_var *w, cot_var *v) { return eigh_of("eigh", x, w, v); }

cot_var cot_eigvalsh(cot_var x) {
    cot_var w;
    eigh_of("eigvalsh", x, &w, NULL);
    return w;
}

/* ā += v (diag w̄ + (vᵀ v̄) / (w_j - w_i)) vᵀ */
static void eigh_vjp(cot__rule *r) {
    cot_var v = cot__rule_z(r), w = cot__rule_result_of(r, VALUES), gv = cot__rule_adjoint(r, VECTORS),
            gw = cot__rule_adjoint(r, VALUES);
    cot__note_ties(r->t, "eigh", r->node, false);
    cot_var turns = over(cot_matmul(cot__swap_last(v), gv), cot_sub(as_row(w), as_column(w)));
    cot__give(r, 0, cot_matmul(cot_matmul(v, cot_add(cot__diagonal(gw), turns)), cot__swap_last(v)));
}

/* Eigenvalues or singular values that are equal. */
static void equal_values(cot__findings *r) {
    bool    svd = r->j->op == OP_svd;
    int64_t first, count = cot__count_ties(r->j->backend, &r->j->more[VALUES - 1], svd, 0, &first);
    if (!count) return;
    const cot__array_kink *kink = &cot__array_kinks[svd ? ARRAY_KINK_svd_tie : ARRAY_KINK_eigh_tie];
    cot__kink_begin(r);
    cot__putf(&r->x, " has %s in %lld of its matrices; its derivative there: %s.", kink->condition, (long long)count,
              kink->convention);
}

const cot__op cot__op_eigh = {
    .name         = "eigh",
    .sweeps_alone = true,
    .batch        = cot__batch_shift,
    .kind         = KIND_GENERIC,
    .saves        = COT__SAVES_Z,
    .vjp          = eigh_vjp,
    .results      = eigh_results,
    .infer        = eigh_infer,
    .workspace    = eigh_workspace,
    .run          = eigh_run,
    .tell         = spectral_tell,
    .formula      = "z = v, then w, with a = v diag(w) vᵀ; ā += v (diag w̄ + (vᵀ v̄)ᵢⱼ/(wⱼ - wᵢ)) vᵀ",
    .cost         = {.each_cube = 9},
    .operands     = "a",
    .functions    = "eigvalsh",
    .kinks        = equal_values};

/* ---- svd: u (m,k), s (k), vᵀ (k,n) ----------------------------------------------------------- */

enum { VT = VALUES + 1 };

static int svd_results(const cot__job *j) { return (void)j, 3; }

static bool svd_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_matrix(j, 0, false)) return false;
    cot_shape s = cot__view_extents(&j->x[0]);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s);
    int64_t   k = m < n ? m : n;
    z[VECTORS] = (cot__type){j->x[0].dtype, cot__matrices(s, m, k)};
    z[VALUES] = (cot__type){j->x[0].dtype, cot__matrices(s, k, 1)};
    z[VALUES].shape.ndim--;
    z[VT] = (cot__type){j->x[0].dtype, cot__matrices(s, k, n)};
    return true;
}
static int64_t svd_workspace(const cot__job *j) { return j->backend->svd_workspace(&j->x[0]); }
static void    svd_run(const cot__job *j) {
    j->backend->svd(&j->x[0], &j->z, &j->more[0], &j->more[1], j->workspace, j->status);
}

static cot_status svd_of(const char *op, cot_var x, cot_var *u, cot_var *sv, cot_var *vt) {
    cot_var   out[3] = {cot__invalid(1, &x), cot__invalid(1, &x), cot__invalid(1, &x)};
    cot_dtype dtype;
    uint32_t  i;
    cot_tape *t = cot__enter_matrix(op, x, false, &i, &dtype);
    if (t) {
        cot_var z = cot__record(t, op, OP_svd, 1, &i, NULL, NULL);
        if (u) out[0] = cot_cast(z, dtype);
        if (sv) out[1] = cot_cast(cot__result_of(z, VALUES), dtype);
        if (vt) out[2] = cot_cast(cot__result_of(z, VT), dtype);
    }
    if (u) *u = out[0];
    if (sv) *sv = out[1];
    if (vt) *vt = out[2];
    return cot__status_of(1, &x);
}

cot_status(cot_svd)(cot_var x, cot_var *u, cot_var *s, cot_var *vt) { return svd_of("svd", x, u, s, vt); }

cot_var cot_svdvals(cot_var x) {
    cot_var s;
    svd_of("svdvals", x, NULL, &s, NULL);
    return s;
}

/* With j = (uᵀ ū - ūᵀ u) / (s_j² - s_i²) and k likewise of v: ā += u (j diag(s) + diag(s) k +
 * diag(s̄)) vᵀ, and where u or v is no whole basis, what ū and v̄ have outside of it: (ū - u uᵀ ū)
 * diag(1/s) vᵀ + u diag(1/s) (v̄ - v vᵀ v̄)ᵀ */
static void svd_vjp(cot__rule *r) {
    cot_shape shape = cot__rule_shape(r, 0);
    int64_t   m = cot__rows_of(&shape), n = cot__columns_of(&shape), k = m < n ? m : n;
    cot_var   u = cot__rule_z(r), s = cot__rule_result_of(r, VALUES), v = cot__swap_last(cot__rule_result_of(r, VT));
    cot_var   gu = cot__rule_adjoint(r, VECTORS), gs = cot__rule_adjoint(r, VALUES),
            gv = cot__swap_last(cot__rule_adjoint(r, VT));
    cot_var   gap = cot_mul(cot_sub(as_row(s), as_column(s)), cot_add(as_row(s), as_column(s)));
    cot_var   uu = cot_matmul(cot__swap_last(u), gu), vv = cot_matmul(cot__swap_last(v), gv);
    cot__note_ties(r->t, "svd", r->node, true);
    cot_var turns_u = cot_mul(over(cot_sub(uu, cot__swap_last(uu)), gap), as_row(s));
    cot_var turns_v = cot_mul(over(cot_sub(vv, cot__swap_last(vv)), gap), as_column(s));
    cot_var inside = cot_add(cot_add(turns_u, turns_v), cot__diagonal(gs));
    cot_var ga = cot_matmul(cot_matmul(u, inside), cot__swap_last(v));
    if (m > k) ga = cot_add(ga, cot_matmul(over(cot_sub(gu, cot_matmul(u, uu)), as_row(s)), cot__swap_last(v)));
    if (n > k) ga = cot_add(ga, cot_matmul(u, cot__swap_last(over(cot_sub(gv, cot_matmul(v, vv)), as_row(s)))));
    cot__give(r, 0, ga);
}

const cot__op cot__op_svd = {.name         = "svd",
                             .sweeps_alone = true,
                             .batch        = cot__batch_shift,
                             .kind         = KIND_GENERIC,
                             .saves        = COT__SAVES_Z,
                             .vjp          = svd_vjp,
                             .results      = svd_results,
                             .infer        = svd_infer,
                             .workspace    = svd_workspace,
                             .run          = svd_run,
                             .tell         = spectral_tell,
                             .formula      = "z = u, then s and vᵀ, with a = u diag(s) vᵀ; "
                                             "ā += u (f∘(uᵀū - ūᵀu) s + s f∘(vᵀv̄ - v̄ᵀv) + diag s̄) vᵀ"
                                             " + outside terms, fᵢⱼ = 1/(sⱼ² - sᵢ²)",
                             .cost         = {.each_cube = 20},
                             .operands     = "a",
                             .functions    = "svdvals",
                             .kinks        = equal_values};

/* ---- cofactors ------------------------------------------------------------------------------- */

/* Π s_j over j ≠ i, for each i: no division, so zeros are fine. */
static cot_var products_of_others(cot_var s) {
    cot_shape shape = cot_shape_of(s);
    if (cot_size(s) == 0) return s;
    cot_var   one = cot_eye(s.tape, cot_dtype_of(s), cot__columns_of(&shape), cot__columns_of(&shape));
    return cot_prod(cot_where(cot_not_equal(one, 0.0), 1.0, as_row(s)), COT_AXES(-1));
}

/* With a = u diag(s) vt they are det(u) det(vt) u diag(Π of the other s) vt, singular or not. That
 * is recorded of a constant, for the value; the derivative is that of det a · a⁻ᵀ. */
static bool cofactors_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, 0) || !cot__job_matrix(j, 0, true) || !cot__job_dtype(j, 1, j->x[0].dtype) ||
        !cot__job_shape(j, 1, j->x[0].ndim, j->x[0].shape))
        return false;
    *z = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    return true;
}
static void cofactors_run(const cot__job *j) { j->backend->copy(&j->z, &j->x[1]); }

cot_var cot__cofactors(cot_var a) {
    cot_var u, s, vt, su, sv;
    if (cot__failed(a)) return a;
    cot_svd(cot_detach(a), &u, &s, &vt);
    cot_slogdet(u, &su, NULL);
    cot_slogdet(vt, &sv, NULL);
    cot_var sign = as_column(as_column(cot_mul(su, sv)));
    cot_var value = cot_mul(sign, cot_matmul(cot_mul(u, as_row(products_of_others(s))), vt));
    uint32_t xs[2];
    if (!cot__enter(a.tape, a, "cofactors", "", &xs[0]) || !cot__enter(a.tape, value, "cofactors", "", &xs[1]))
        return INVALID(a.tape);
    return cot__record(a.tape, "cofactors", OP_cofactors, 2, xs, NULL, NULL);
}

/* ā += ⟨z̄, z⟩ a⁻ᵀ - z z̄ᵀ a⁻ᵀ */
static void cofactors_vjp(cot__rule *r) {
    cot_var inverse = cot__swap_last(cot_inv(cot__rule_x(r, 0))), z = cot__rule_z(r);
    cot_var inner = cot_sum(cot_mul(r->g, z), COT_KEEP(-2, -1));
    cot__give(r, 0, cot_sub(cot_mul(inner, inverse), cot_matmul(cot_matmul(z, cot__swap_last(r->g)), inverse)));
}

const cot__op cot__op_cofactors = {.name     = "cofactors", .batch = cot__batch_shift,
                                   .kind     = KIND_GENERIC,
                                   .inactive = 2u,
                                   .saves    = 1u | COT__SAVES_Z,
                                   .vjp      = cofactors_vjp,
                                   .infer    = cofactors_infer,
                                   .run      = cofactors_run,
                                   .formula  = "z = cof(a), in numbers; ā += ⟨z̄, z⟩ a⁻ᵀ - z z̄ᵀ a⁻ᵀ",
                                   .cost = {.each_cube = 24},
                                   .operands = "a s"};
