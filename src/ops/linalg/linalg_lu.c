/* linalg_lu.c: what is made by Gaussian elimination: lu, solve, inv, determinants.
 *
 * solve factors its matrix once, as two results without derivative (lu_factors), and lu_solve takes
 * them as operands beside the matrix itself: the rule of lu_solve is lu_solve again, of the
 * transpose, so values and derivatives of every order share one factorisation. */
#include "rules/structural_ids.h"
#include "ops/linalg/linalg.h"
#include "base/sizes.h"

#include <string.h>

enum { MATRIX, SIDE, FACTORS, PERMUTATION }; /* operands of lu_solve */

/* ---- the factorisation ----------------------------------------------------------------------- */

/* The factors, and their permutation. */
static int two_results(const cot__job *j) { return (void)j, 2; }

static bool factors_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_matrix(j, 0, false)) return false;
    z[0] = z[1] = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    z[1].dtype = COT_I64;
    z[1].shape.ndim--;
    return true;
}

static int64_t factors_workspace(const cot__job *j) { return j->backend->lu_workspace(&j->x[0]); }

static void factors_run(const cot__job *j) {
    j->backend->copy(&j->z, &j->x[0]);
    j->backend->lu(&j->z, &j->more[0], j->workspace);
}

/* Both as nodes without derivative, of one factorisation of node a (…,m,n). */
static bool push_factors(cot_tape *t, const char *op, uint32_t a, cot_var *factors, cot_var *permutation) {
    *factors = cot__record(t, op, OP_lu_factors, 1, &a, NULL, NULL);
    *permutation = cot__result_of(*factors, 1);
    return t->status == COT_OK;
}

const cot__op cot__op_lu_factors = {.name         = "lu_factors",
                                    .sweeps_alone = true,
                                    .batch        = cot__batch_shift,
                                    .kind         = KIND_NONE,
                                    .formula      = "z = l - 1 + u, and the permutation p, with a[p] = l @ u",
                                    .results      = two_results,
                                    .infer        = factors_infer,
                                    .workspace    = factors_workspace,
                                    .run          = factors_run,
                                    .cost         = {.each_cube = 2.0 / 3},
                                    .operands     = "a"};

/* ---- lu: l (m,k), then u (k,n) --------------------------------------------------------------- */

/* Operands of lu. */
enum { OF, OF_FACTORS, OF_PERMUTATION };

static bool lu_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 3, 3, 0) || !cot__job_matrix(j, OF, false)) return false;
    cot_shape s = cot__view_extents(&j->x[OF]);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s);
    if (!cot__job_dtype(j, OF_FACTORS, j->x[OF].dtype) || !cot__job_shape(j, OF_FACTORS, s.ndim, s.dim) ||
        !cot__job_dtype(j, OF_PERMUTATION, COT_I64) || !cot__job_beside(j, OF_PERMUTATION, OF, 1, &m))
        return false;
    z[0] = (cot__type){j->x[OF].dtype, cot__matrices(s, m, m < n ? m : n)};
    z[1] = (cot__type){j->x[OF].dtype, cot__matrices(s, m < n ? m : n, n)};
    return true;
}

static int64_t lu_workspace(const cot__job *j) { return cot__pack_bytes(&j->x[OF_FACTORS], j->z.dtype); }

/* The factors are known, so both triangles are only copied. */
static void lu_run(const cot__job *j) {
    int64_t   stride[COT_MAX_NDIM];
    char     *at = j->workspace;
    cot__view f = j->x[OF_FACTORS];
    f.data = (void *)(uintptr_t)cot__pack_operand(j, OF_FACTORS, f.dtype, &at);
    f.stride = stride;
    cot__strides(f.ndim, f.shape, stride);
    j->backend->lu_split(&f, &j->z, &j->more[0]);
}

cot_status cot_lu(cot_var x, cot_var *permutation, cot_var *l, cot_var *u) {
    cot_var   out[3] = {cot__invalid(1, &x), cot__invalid(1, &x), cot__invalid(1, &x)}, factors;
    cot_dtype dtype;
    uint32_t  a;
    cot_tape *t = cot__enter_matrix("lu", x, false, &a, &dtype);
    if (t && push_factors(t, "lu", a, &factors, &out[0])) {
        uint32_t xs[3] = {a, cot__index(factors), cot__index(out[0])};
        cot_var  z = cot__record(t, "lu", OP_lu, 3, xs, NULL, NULL);
        out[1] = cot_cast(z, dtype);
        out[2] = cot_cast(cot__result_of(z, 1), dtype);
    }
    if (permutation) *permutation = out[0];
    if (l) *l = out[1];
    if (u) *u = out[2];
    return cot__status_of(1, &x);
}

static cot_var rows_between(cot_var x, int64_t from, int64_t to) { return cot_slice(x, -2, from, to, 1); }
static cot_var columns_between(cot_var x, int64_t from, int64_t to) { return cot_slice(x, -1, from, to, 1); }

/* Square: l⁻ᵀ (strict lower of lᵀ l̄ + upper of ū uᵀ) u⁻ᵀ. Rows of l below the square are a₂ u⁻¹,
 * columns of u beside it l⁻¹ a₂: their adjoints go to a₂ and on to the square. */
static void lu_vjp(cot__rule *r) {
    cot_shape s = cot__rule_shape(r, 0);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s), k = m < n ? m : n;
    cot_var   zl = cot__rule_z(r), zu = cot__rule_result_of(r, 1), l = rows_between(zl, 0, k),
            u = columns_between(zu, 0, k);
    cot_var tall = cot__rule_adjoint(r, 0), wide = cot__rule_adjoint(r, 1), gl = rows_between(tall, 0, k),
            gu = columns_between(wide, 0, k), below = gl, beside = gu;
    if (m > k) {
        below = cot_triangular_solve(u, rows_between(tall, k, m), COT_UPPER | COT_TRANSPOSED | COT_RIGHT);
        gu = cot_sub(gu, cot_matmul(cot__swap_last(rows_between(zl, k, m)), below));
    }
    if (n > k) {
        beside = cot_triangular_solve(l, columns_between(wide, k, n), COT_TRANSPOSED | COT_UNIT_DIAGONAL);
        gl = cot_sub(gl, cot_matmul(beside, cot__swap_last(columns_between(zu, k, n))));
    }
    cot_var lower = cot__lower(cot_matmul(cot__swap_last(l), gl), -1),
            upper = cot__upper(cot_matmul(gu, cot__swap_last(u)), 0);
    cot_var ga = cot_triangular_solve(l, cot_add(lower, upper), COT_TRANSPOSED | COT_UNIT_DIAGONAL);
    ga = cot_triangular_solve(u, ga, COT_UPPER | COT_TRANSPOSED | COT_RIGHT);
    if (m > k) ga = cot_concat(2, (cot_var[]){ga, below}, -2);
    if (n > k) ga = cot_concat(2, (cot_var[]){ga, beside}, -1);
    cot__give_scatter(r, 0, ga, cot_broadcast_to(cot_expand_dims(cot__rule_x(r, OF_PERMUTATION), -1), s),
                      s.ndim - 2, true);
}

const cot__op cot__op_lu = {.name         = "lu",
                            .sweeps_alone = true,
                            .batch        = cot__batch_shift,
                            .kind         = KIND_GENERIC,
                            .inactive     = 1u << OF_FACTORS | 1u << OF_PERMUTATION,
                            .saves        = 1u << OF_PERMUTATION | COT__SAVES_Z,
                            .vjp          = lu_vjp,
                            .results      = two_results,
                            .infer        = lu_infer,
                            .workspace    = lu_workspace,
                            .run          = lu_run,
                            .formula =
                                "z = l, then u, with a[p] = l @ u; ā[p] += l⁻ᵀ (⌊lᵀ l̄⌋ + ⌈ū uᵀ⌉) u⁻ᵀ",
                            .cost         = {.none = "moves data"},
                            .operands     = "a f p"};

/* ---- solve ----------------------------------------------------------------------------------- */

static bool lu_solve_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 4, 4, 1) || !cot__job_range(j, 0, 0, 1) || !cot__job_matrix(j, MATRIX, true) ||
        !cot__job_matrix(j, SIDE, false))
        return false;
    cot_shape a = cot__view_extents(&j->x[MATRIX]), b = cot__view_extents(&j->x[SIDE]);
    int64_t   n = cot__rows_of(&a);
    *z = (cot__type){j->x[SIDE].dtype, b};
    return cot__job_dtype(j, MATRIX, z->dtype) && cot__job_dtype(j, FACTORS, z->dtype) &&
           cot__job_dtype(j, PERMUTATION, COT_I64) && cot__job_shape(j, FACTORS, a.ndim, a.dim) &&
           cot__job_beside(j, SIDE, MATRIX, 2, (int64_t[]){n, cot__columns_of(&b)}) &&
           cot__job_beside(j, PERMUTATION, MATRIX, 1, &n);
}
static int64_t lu_solve_workspace(const cot__job *j) {
    return j->backend->lu_solve_workspace(&j->x[FACTORS], &j->x[SIDE]);
}
static void lu_solve_run(const cot__job *j) {
    j->backend->lu_solve(&j->x[FACTORS], &j->x[PERMUTATION], &j->x[SIDE], cot__job_int(j, 0) != 0, &j->z, j->workspace,
                         j->status);
}
/* Nobody calls lu_solve itself. */
static void lu_solve_tell(const cot__job *j, const int64_t found[2]) {
    bool        inverse = strcmp(j->caller->name, "inv") == 0;
    cot__caller caller = *j->caller;
    cot_shape   batch = cot__view_extents(&j->z);
    if (!inverse) caller.name = "solve";
    cot__note_matrices(&caller, &batch, found, "is singular", inverse ? "its inverse is NaN" : "its solution is NaN");
}

/* a⁻¹ b, or a⁻ᵀ b; all with the same leading axes. `op` is what the caller called. */
static cot_var lu_solve(cot_tape *t, const char *op, const cot_var xs[4], bool transposed) {
    uint32_t i[4];
    for (int k = 0; k < 4; k++)
        if (!cot__enter(t, xs[k], "lu_solve", "", &i[k])) return INVALID(t);
    cot__attr *attr = cot__attr_make(t, "lu_solve", 1, (int64_t[]){transposed}, 0, NULL);
    return attr ? cot__record(t, op, OP_lu_solve, 4, i, attr, NULL) : INVALID(t);
}

/* b̄ += a⁻ᵀ z̄, ā += -b̄ zᵀ; with the transpose of a: b̄ += a⁻¹ z̄, ā += -z b̄ᵀ */
static void lu_solve_vjp(cot__rule *r) {
    bool    transposed = cot__rule_attr(r)->ints[0] != 0;
    cot_var xs[4] = {cot__rule_x(r, MATRIX), r->g, cot__rule_x(r, FACTORS), cot__rule_x(r, PERMUTATION)};
    cot_var gb = lu_solve(r->t, "solve", xs, !transposed), z = cot__rule_z(r);
    if (cot__rule_wants(r, SIDE)) cot__give(r, SIDE, gb);
    if (cot__rule_wants(r, MATRIX))
        cot__give(r, MATRIX,
                  cot_neg(transposed ? cot_matmul(z, cot__swap_last(gb)) : cot_matmul(gb, cot__swap_last(z))));
}

const cot__op cot__op_lu_solve = {
    .name         = "lu_solve",
    .sweeps_alone = true,
    .batch        = cot__batch_shift,
    .attrs        = "transposed:f",
    .kind         = KIND_GENERIC,
    .inactive     = 4u | 8u,
    .saves        = 1u | 4u | 8u | COT__SAVES_Z,
    .vjp          = lu_solve_vjp,
    .infer        = lu_solve_infer,
    .workspace    = lu_solve_workspace,
    .run          = lu_solve_run,
    .tell         = lu_solve_tell,
    .formula      = "z = a⁻¹ @ b (or a⁻ᵀ @ b), by the factors of a; b̄ += a⁻ᵀ @ z̄, ā += -a⁻ᵀ @ z̄ @ zᵀ",
    .cost         = {.each_inner = 2},
    .linear       = 1u << SIDE,
    .operands     = "a b f p",
    .functions    = "solve inv"};

/* The operands of lu_solve with a's leading axes brought to b's. */
static cot_var solve_with(cot_tape *t, cot_var a, cot_var b, cot_var factors, cot_var permutation, bool transposed) {
    cot_shape s = cot_shape_of(a), was = cot_shape_of(factors);
    if (!cot__same_shape(&s, &was)) {
        factors = cot__with_leading(factors, 2, s.ndim - 2, s.dim);
        permutation = cot__with_leading(permutation, 1, s.ndim - 2, s.dim);
    }
    return lu_solve(t, "solve", (cot_var[]){a, b, factors, permutation}, transposed);
}

cot_var cot_solve(cot_var x, cot_var y) {
    cot_var   a = x, b = y, factors, permutation;
    bool      vector;
    cot_dtype dtype;
    cot_tape *t = cot__enter_system("solve", &a, &b, true, false, &vector, &dtype);
    if (!t) return cot__invalid(2, (cot_var[]){x, y});
    if (!push_factors(t, "solve", cot__index(a), &factors, &permutation) || !cot__broadcast_batches(t, "solve", &a, &b))
        return INVALID(t);
    const char *before = cot__ask(t, "solve");
    cot_var     z = solve_with(t, a, b, factors, permutation, false);
    cot__asked(t, before);
    return cot_cast(vector ? cot_squeeze(z, COT_AXES(-1)) : z, dtype);
}

static cot_var identity_like(cot_tape *t, cot_var a) {
    cot_shape s = cot_shape_of(a);
    if (cot_size(a) == 0) return cot_zeros(t, cot_dtype_of(a), s);
    return cot_broadcast_to(cot_eye(t, cot_dtype_of(a), cot__rows_of(&s), cot__rows_of(&s)), s);
}

cot_var cot_inv(cot_var x) {
    cot_dtype dtype;
    uint32_t  a;
    cot_var   factors, permutation;
    cot_tape *t = cot__enter_matrix("inv", x, true, &a, &dtype);
    if (!t) return cot__invalid(1, &x);
    if (!push_factors(t, "inv", a, &factors, &permutation)) return INVALID(t);
    const char *before = cot__ask(t, "inv");
    cot_var z = lu_solve(t, "inv", (cot_var[]){VAR(t, a), identity_like(t, VAR(t, a)), factors, permutation}, false);
    cot__asked(t, before);
    return cot_cast(z, dtype);
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* One number for each matrix, from operands (a, factors, permutation), or, for the sign, the last
 * two. */
static bool number_infer(const cot__job *j, cot__type *z) {
    int n = j->op == OP_det_sign ? 2 : 3;
    if (!cot__job_has(j, n, n, 0)) return false;
    for (int k = 0; k < n - 1; k++)
        if (!cot__job_matrix(j, k, true)) return false;
    cot_shape s = cot__view_extents(&j->x[n - 2]);
    int64_t   extent = cot__columns_of(&s);
    *z = (cot__type){j->x[n - 2].dtype, s};
    z->shape.ndim -= 2;
    return cot__job_dtype(j, 0, z->dtype) && cot__job_shape(j, 0, s.ndim, s.dim) &&
           cot__job_dtype(j, n - 1, COT_I64) && cot__job_beside(j, n - 1, n - 2, 1, &extent);
}
static void number_run(const cot__job *j) {
    const cot__view *factors = &j->x[j->n - 2], *permutation = factors + 1;
    if (j->op == OP_det_sign) j->backend->lu_sign(factors, permutation, &j->z);
    else j->backend->lu_det(factors, permutation, j->op == OP_logabsdet, &j->z);
}

static cot_var push_number(cot_tape *t, int op, uint32_t a, cot_var factors, cot_var permutation) {
    uint32_t xs[3] = {a, cot__index(factors), cot__index(permutation)};
    int      skip = op == OP_det_sign;
    return cot__record(t, cot__op_of(op)->name, op, 3 - skip, xs + skip, NULL, NULL);
}

cot_var cot_det(cot_var x) {
    cot_dtype dtype;
    uint32_t  a;
    cot_var   factors, permutation;
    cot_tape *t = cot__enter_matrix("det", x, true, &a, &dtype);
    if (!t) return cot__invalid(1, &x);
    return push_factors(t, "det", a, &factors, &permutation)
               ? cot_cast(push_number(t, OP_det, a, factors, permutation), dtype)
               : INVALID(t);
}

cot_status cot_slogdet(cot_var x, cot_var *sign, cot_var *logabsdet) {
    cot_dtype dtype;
    uint32_t  a;
    cot_var   factors, permutation, out[2] = {cot__invalid(1, &x), cot__invalid(1, &x)};
    cot_tape *t = cot__enter_matrix("slogdet", x, true, &a, &dtype);
    if (t && push_factors(t, "slogdet", a, &factors, &permutation)) {
        out[0] = cot_cast(push_number(t, OP_det_sign, a, factors, permutation), dtype);
        out[1] = cot_cast(push_number(t, OP_logabsdet, a, factors, permutation), dtype);
    }
    if (sign) *sign = out[0];
    if (logabsdet) *logabsdet = out[1];
    return cot__status_of(1, &x);
}

/* factor a⁻ᵀ */
static cot_var times_inverse(cot__rule *r, cot_var factor) {
    cot_var a = cot__rule_x(r, 0), xs[4] = {a, identity_like(r->t, a), cot__rule_x(r, 1), cot__rule_x(r, 2)};
    cot_var inverse = lu_solve(r->t, "inv", xs, true);
    return cot_mul(cot_expand_dims(cot_expand_dims(factor, -1), -1), inverse);
}

/* ā by the inverse, and where a determinant is 0: it has a derivative, the cofactors, but
 * det a · a⁻ᵀ does not find it, so there they come from singular values. */
static int pull_by_inverse(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot__rule *r = user;
    (void)n, (void)xs, (void)m;
    ys[0] = times_inverse(r, cot_mul(r->g, cot__rule_z(r)));
    return 0;
}
static int pull_by_values(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot__rule *r = user;
    (void)n, (void)xs, (void)m;
    ys[0] = cot_mul(cot_expand_dims(cot_expand_dims(r->g, -1), -1), cot__cofactors(cot__rule_x(r, 0)));
    return 0;
}

/* ā += z̄ (det a) a⁻ᵀ. In a body, which has no values, both ways are recorded and one will run. */
static void det_vjp(cot__rule *r) {
    cot_var z = cot__rule_z(r), singular = cot__failed(z) ? z : cot_any(cot_equal(cot_detach(z), 0.0), COT_ALL), bar;
    if (cot__failed(singular)) return;
    if (r->t->mode.body) cot_cond(singular, pull_by_values, pull_by_inverse, r, 0, NULL, 1, &bar);
    else (cot_value_i64(singular) ? pull_by_values : pull_by_inverse)(0, NULL, 1, &bar, r);
    cot__give(r, 0, bar);
}
static void logabsdet_vjp(cot__rule *r) { cot__give(r, 0, times_inverse(r, r->g)); }

const cot__op cot__op_det       = {.name         = "det",
                                   .sweeps_alone = true,
                                   .batch        = cot__batch_shift,
                                   .kind         = KIND_GENERIC,
                                   .inactive     = 6u,
                                   .saves        = 7u | COT__SAVES_Z,
                                   .vjp          = det_vjp,
                                   .infer        = number_infer,
                                   .run          = number_run,
                                   .formula      = "z = det a; ā += z̄ cof(a), cof(a) = z a⁻ᵀ",
                                   /* from the factors */
                                   .cost         = {.each_inner = 1},
                                   .operands     = "a f p"};
const cot__op cot__op_logabsdet = {.name         = "logabsdet",
                                   .sweeps_alone = true,
                                   .batch        = cot__batch_shift,
                                   .kind         = KIND_GENERIC,
                                   .inactive     = 6u,
                                   .saves        = 7u,
                                   .vjp          = logabsdet_vjp,
                                   .infer        = number_infer,
                                   .run          = number_run,
                                   .formula      = "z = log |det a|; ā += z̄ a⁻ᵀ",
                                   .cost         = {.each_inner = 1},
                                   .operands     = "a f p"};
const cot__op cot__op_det_sign = {.name = "det_sign", .batch = cot__batch_shift, .kind = KIND_NONE,
                                  .formula = "z = the sign of det a",
                                  .infer = number_infer, .run = number_run,
                                  .cost = {.each_inner = 1},
                                  .operands = "a f p"};
