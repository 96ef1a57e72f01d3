/* linalg_lu.c: what is made by Gaussian elimination: lu, solve, inv, determinants.
 *
 * solve factors its matrix once, as two nodes without derivative (lu_factors, lu_permutation), and
 * lu_solve takes them as operands beside the matrix itself: the rule of lu_solve is lu_solve again,
 * of the transpose, so values and derivatives of every order share one factorisation. */
#include "rules/structural_ids.h"
#include "ops/linalg/linalg.h"

#include <string.h>

enum { MATRIX, SIDE, FACTORS, PERMUTATION }; /* operands of lu_solve */

/* ---- the factorisation ----------------------------------------------------------------------- */

/* The factors of node a (…,m,n), as lin.h lays them out, and the permutation (…,m). */
static bool factorise(cot_tape *t, const char *op, uint32_t a, cot__result *f, cot__result *p) {
    cot__view v = cot__view_read(t, a);
    if (!cot__result_open(t, f, op, v.dtype, v.ndim, v.shape) ||
        !cot__result_open(t, p, op, COT_I64, v.ndim - 1, v.shape))
        return false;
    t->backend->copy(&f->view, &v);
    return t->backend->lu(&t->al, &f->view, &p->view) || (cot__lin_no_memory(t, op), false);
}

/* Both as nodes without derivative. */
static bool push_factors(cot_tape *t, const char *op, uint32_t a, cot_var *factors, cot_var *permutation) {
    cot__result f, p;
    if (!factorise(t, op, a, &f, &p)) return false;
    *factors = cot__result_push(t, &f, OP_lu_factors, 1, &a, NULL);
    *permutation = cot__result_push(t, &p, OP_lu_permutation, 1, &a, NULL);
    return t->status == COT_OK;
}

static cot_var factors_apply(cot__rule *r, const cot_var *xs) {
    int         op = cot__rule_node(r)->op;
    uint32_t    a;
    cot__result f, p;
    if (!cot__enter(r->t, xs[0], r->op->name, "", &a) || !factorise(r->t, r->op->name, a, &f, &p)) return INVALID(r->t);
    return cot__result_push(r->t, op == OP_lu_factors ? &f : &p, op, 1, &a, NULL);
}

const cot__op cot__op_lu_factors     = {.name         = "lu_factors",
                                        .sweeps_alone = true,
                                        .batch        = cot__batch_shift,
                                        .kind         = KIND_NONE,
                                        .formula      = "z = l - 1 + u with a[p] = l @ u",
                                        .apply        = factors_apply,
                                        .cost         = {.each_cube = 2.0 / 3},
                                        .operands     = "a"};
const cot__op cot__op_lu_permutation = {.name = "lu_permutation", .batch = cot__batch_shift, .kind = KIND_NONE,
                                        .formula = "p with a[p] = l @ u", .apply = factors_apply,
                                        .cost = {.none = "comes with the factors"},
                                        .operands = "a"};

/* ---- lu: rows of l (m,k), then of uᵀ (n,k) --------------------------------------------------- */

/* Both triangles, of the factors of a. */
static cot_var push_lu(cot_tape *t, uint32_t a, uint32_t permutation, const cot__view *factors) {
    cot_shape   s = cot__shape_at(t, a);
    int64_t     m = cot__rows_of(&s), n = cot__columns_of(&s);
    cot__result r;
    s = cot__matrices(s, m + n, m < n ? m : n);
    if (!cot__check_shape(t, "lu", &s) || !cot__result_open(t, &r, "lu", factors->dtype, s.ndim, s.dim))
        return INVALID(t);
    t->backend->lu_pack(factors, &r.view);
    return cot__result_push(t, &r, OP_lu, 2, (uint32_t[]){a, permutation}, NULL);
}

static cot_var lu_apply(cot__rule *r, const cot_var *xs) {
    uint32_t    a, permutation;
    cot__result f, p;
    if (!cot__enter(r->t, xs[0], "lu", "", &a) || !cot__enter(r->t, xs[1], "lu", "", &permutation))
        return INVALID(r->t);
    return factorise(r->t, "lu", a, &f, &p) ? push_lu(r->t, a, permutation, &f.view) : INVALID(r->t);
}

cot_status cot_lu(cot_var x, cot_var *permutation, cot_var *l, cot_var *u) {
    cot_var   out[3] = {cot__invalid(1, &x), cot__invalid(1, &x), cot__invalid(1, &x)}, factors;
    cot_dtype dtype;
    uint32_t  a;
    cot_tape *t = cot__enter_matrix("lu", x, false, &a, &dtype);
    if (t && push_factors(t, "lu", a, &factors, &out[0])) {
        cot_shape s = cot__shape_at(t, a);
        int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s);
        cot__view f = cot__view_read(t, cot__index(factors));
        cot_var   z = push_lu(t, a, cot__index(out[0]), &f);
        out[1] = cot_cast(cot__result_rows(z, 0, m), dtype);
        out[2] = cot_cast(cot__swap_last(cot__result_rows(z, m, m + n)), dtype);
    }
    if (permutation) *permutation = out[0];
    if (l) *l = out[1];
    if (u) *u = out[2];
    return cot__status_of(1, &x);
}

/* Square: l⁻ᵀ (strict lower of lᵀ l̄ + upper of ū uᵀ) u⁻ᵀ. Rows of l below the square are a₂ u⁻¹,
 * columns of u beside it l⁻¹ a₂: their adjoints go to a₂ and on to the square. */
static void lu_vjp(cot__rule *r) {
    cot_shape s = cot__rule_shape(r, 0);
    int64_t   m = cot__rows_of(&s), n = cot__columns_of(&s), k = m < n ? m : n;
    cot_var   z = cot__rule_z(r), l = cot__result_rows(z, 0, k), u = cot__swap_last(cot__result_rows(z, m, m + k));
    cot_var   gl = cot__result_rows(r->g, 0, k), gu = cot__swap_last(cot__result_rows(r->g, m, m + k)), below = gl,
            beside = gu;
    if (m > k) {
        below = cot_triangular_solve(u, cot__result_rows(r->g, k, m), COT_UPPER | COT_TRANSPOSED | COT_RIGHT);
        gu = cot_sub(gu, cot_matmul(cot__swap_last(cot__result_rows(z, k, m)), below));
    }
    if (n > k) {
        beside = cot_triangular_solve(l, cot__swap_last(cot__result_rows(r->g, m + k, m + n)),
                                      COT_TRANSPOSED | COT_UNIT_DIAGONAL);
        gl = cot_sub(gl, cot_matmul(beside, cot__result_rows(z, m + k, m + n)));
    }
    cot_var lower = cot__lower(cot_matmul(cot__swap_last(l), gl), -1),
            upper = cot__upper(cot_matmul(gu, cot__swap_last(u)), 0);
    cot_var ga = cot_triangular_solve(l, cot_add(lower, upper), COT_TRANSPOSED | COT_UNIT_DIAGONAL);
    ga = cot_triangular_solve(u, ga, COT_UPPER | COT_TRANSPOSED | COT_RIGHT);
    if (m > k) ga = cot_concat(2, (cot_var[]){ga, below}, -2);
    if (n > k) ga = cot_concat(2, (cot_var[]){ga, beside}, -1);
    cot__give_scatter(r, 0, ga, cot_broadcast_to(cot_expand_dims(cot__rule_x(r, 1), -1), s), s.ndim - 2, true);
}

const cot__op cot__op_lu = {.name         = "lu",
                            .sweeps_alone = true,
                            .batch        = cot__batch_shift,
                            .kind         = KIND_GENERIC,
                            .inactive     = 2u,
                            .saves        = 2u | COT__SAVES_Z,
                            .vjp          = lu_vjp,
                            .apply        = lu_apply,
                            .formula =
                                "z = rows of l, then of uᵀ, with a[p] = l @ u; ā[p] += l⁻ᵀ (⌊lᵀ l̄⌋ + ⌈ū uᵀ⌉) u⁻ᵀ",
                            .cost         = {.none = "moves data"},
                            .operands     = "a f"};

/* ---- solve ----------------------------------------------------------------------------------- */

/* a⁻¹ b, or a⁻ᵀ b; all with the same leading axes. `op` is what the caller called, for a note. */
static cot_var lu_solve(cot_tape *t, const char *op, const cot_var xs[4], bool transposed) {
    uint32_t    i[4];
    int64_t     count;
    cot__result r;
    for (int k = 0; k < 4; k++)
        if (!cot__enter(t, xs[k], "lu_solve", "", &i[k])) return INVALID(t);
    cot__view  b = cot__view_read(t, i[SIDE]), f = cot__view_read(t, i[FACTORS]), p = cot__view_read(t, i[PERMUTATION]);
    cot_shape  s = cot__shape_at(t, i[SIDE]);
    cot__attr *attr = cot__attr_make(t, "lu_solve", 1, (int64_t[]){transposed}, 0, NULL);
    uint8_t   *bad  = attr && cot__result_open(t, &r, "lu_solve", b.dtype, s.ndim, s.dim)
                          ? cot__lin_open(t, "lu_solve", &s, &count)
                          : NULL;
    if (!bad) return INVALID(t);
    bool done = t->backend->lu_solve(&t->al, &f, &p, &b, transposed, &r.view, bad);
    cot__lin_close(t, op, &s, bad, "is singular",
                   strcmp(op, "inv") == 0 ? "its inverse is NaN" : "its solution is NaN");
    return done ? cot__result_push(t, &r, OP_lu_solve, 4, i, attr) : cot__lin_no_memory(t, "lu_solve");
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

static cot_var lu_solve_apply(cot__rule *r, const cot_var *xs) {
    return lu_solve(r->t, "solve", xs, cot__rule_attr(r)->ints[0] != 0);
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
    .apply        = lu_solve_apply,
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

/* One number for each matrix, from operands (a, factors, permutation) or, where a is COT__NONE, the
 * last two. */
static cot_var push_number(cot_tape *t, int op, uint32_t a, cot_var factors, cot_var permutation) {
    uint32_t    xs[3] = {a, cot__index(factors), cot__index(permutation)};
    cot__view   f = cot__view_read(t, xs[1]), p = cot__view_read(t, xs[2]);
    cot__result r;
    if (!cot__result_open(t, &r, cot__op_of(op)->name, f.dtype, f.ndim - 2, f.shape)) return INVALID(t);
    if (op == OP_det_sign) t->backend->lu_sign(&f, &p, &r.view);
    else t->backend->lu_det(&f, &p, op == OP_logabsdet, &r.view);
    return a == COT__NONE ? cot__result_push(t, &r, op, 2, xs + 1, NULL) : cot__result_push(t, &r, op, 3, xs, NULL);
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
        out[0] = cot_cast(push_number(t, OP_det_sign, COT__NONE, factors, permutation), dtype);
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

/* A determinant that is 0 has a derivative, the cofactors, but det a · a⁻ᵀ does not find it: there
 * they come from singular values. */
static int cofactors_by_inverse(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)xs, (void)m;
    ys[0] = times_inverse(user, cot__rule_z(user));
    return 0;
}
static int cofactors_by_values(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)xs, (void)m;
    ys[0] = cot__cofactors(cot__rule_x(user, 0));
    return 0;
}

/* ā += z̄ (det a) a⁻ᵀ. In a body, which has no values, both ways are recorded and one will run. */
static void det_vjp(cot__rule *r) {
    cot_var z = cot__rule_z(r), singular = cot__failed(z) ? z : cot_any(cot_equal(cot_detach(z), 0.0), COT_ALL),
            cofactors;
    if (cot__failed(singular)) return;
    if (r->t->mode.body)
        cot_cond(singular, cofactors_by_values, cofactors_by_inverse, r, 0, NULL, 1, &cofactors);
    else if (cot_value_i64(singular) == 0) {
        cot__give(r, 0, times_inverse(r, cot_mul(r->g, z)));
        return;
    } else
        cofactors = cot__cofactors(cot__rule_x(r, 0));
    cot__give(r, 0, cot_mul(cot_expand_dims(cot_expand_dims(r->g, -1), -1), cofactors));
}
static void logabsdet_vjp(cot__rule *r) { cot__give(r, 0, times_inverse(r, r->g)); }

static cot_var number_apply(cot__rule *r, const cot_var *xs) {
    int      n = cot__nargs(cot__rule_node(r));
    uint32_t i[3];
    for (int k = 0; k < n; k++)
        if (!cot__enter(r->t, xs[k], r->op->name, "", &i[k])) return INVALID(r->t);
    if ((i[n - 1] = cot__dense(r->t, i[n - 1])) == COT__NONE) return INVALID(r->t);
    return push_number(r->t, cot__rule_node(r)->op, n == 3 ? i[0] : COT__NONE, xs[n - 2], VAR(r->t, i[n - 1]));
}

const cot__op cot__op_det       = {.name         = "det",
                                   .sweeps_alone = true,
                                   .batch        = cot__batch_shift,
                                   .kind         = KIND_GENERIC,
                                   .inactive     = 6u,
                                   .saves        = 7u | COT__SAVES_Z,
                                   .vjp          = det_vjp,
                                   .apply        = number_apply,
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
                                   .apply        = number_apply,
                                   .formula      = "z = log |det a|; ā += z̄ a⁻ᵀ",
                                   .cost         = {.each_inner = 1},
                                   .operands     = "a f p"};
const cot__op cot__op_det_sign = {.name = "det_sign", .batch = cot__batch_shift, .kind = KIND_NONE,
                                  .formula = "z = the sign of det a", .apply = number_apply,
                                  .cost = {.each_inner = 1},
                                  .operands = "a f p"};
