/* samples_linalg.h: linear algebra, for samples.h. Inputs lie between -2 and 2. The matrices made
 * of them are well conditioned, and their eigenvalues and singular values are well separated,
 * because the tests allow only a few ulps. */
#ifndef ROWS
#include "ops/linalg/linalg.h"

/* x/4 with `diagonal`, 2·diagonal, … added on the diagonal of its last two axes (from `first`
 * on). */
static cot_var linalg_apart(cot_var x, double first, double diagonal) {
    cot_shape s = cot_shape_of(x);
    if (cot__failed(x)) return x; /* it has no axes */
    int64_t   m = s.dim[s.ndim - 2], n = s.dim[s.ndim - 1];
    double    d[16] = {0};
    /* without elements, in an empty batch */
    if (m > 4 || n > 4) return cot_mul(x, 0.25);
    for (int64_t i = 0; i < m && i < n; i++) d[i * n + i] = first + (double)i * diagonal;
    return cot_add(cot_mul(x, 0.25), cot_cast(cot_data(x.tape, COT_F64, COT_SHAPE(m, n), d), cot_dtype_of(x)));
}
SAMPLE(s_solve) { UNUSED; return cot_solve(linalg_apart(x[0], 3, 0), x[1]); }
SAMPLE(s_inv) { UNUSED; return cot_inv(linalg_apart(x[0], 3, -2)); }
SAMPLE(s_det) { UNUSED; return cot_det(linalg_apart(x[0], 1, 0.5)); }
SAMPLE(s_cofactors) { UNUSED; return cot__cofactors(linalg_apart(x[0], 1, 0.5)); }
SAMPLE(s_logabsdet) {
    UNUSED;
    cot_var l;
    cot_slogdet(linalg_apart(x[0], -2, 0), NULL, &l);
    return l;
}
SAMPLE(s_det_sign) {
    UNUSED;
    cot_var sign, l;
    cot_slogdet(linalg_apart(x[0], -2, 0), &sign, &l);
    return cot_mul(sign, cot_exp(l));
}
SAMPLE(s_triangular) { UNUSED; return cot_triangular_solve(linalg_apart(x[0], 2, 0), x[1], 0); }
SAMPLE(s_triangular_upper) {
    UNUSED;
    return cot_triangular_solve(linalg_apart(x[0], 2, 0), x[1], COT_UPPER | COT_TRANSPOSED);
}
SAMPLE(s_triangular_unit) {
    UNUSED;
    return cot_triangular_solve(linalg_apart(x[0], 2, 0), x[1], COT_UNIT_DIAGONAL | COT_TRANSPOSED);
}
SAMPLE(s_triangular_right) { UNUSED; return cot_triangular_solve(linalg_apart(x[0], 2, 0), x[1], COT_RIGHT); }
SAMPLE(s_triangular_right_upper) {
    UNUSED;
    return cot_triangular_solve(linalg_apart(x[0], 2, 0), x[1],
                                COT_UPPER | COT_RIGHT | COT_TRANSPOSED | COT_UNIT_DIAGONAL);
}
SAMPLE(s_cholesky) { UNUSED; return cot_cholesky(linalg_apart(x[0], 2, 1)); }
SAMPLE(s_qr_q) { UNUSED; cot_var q; cot_qr(linalg_apart(x[0], 2, 0), &q, NULL); return q; }
SAMPLE(s_qr_r) { UNUSED; cot_var r; cot_qr(linalg_apart(x[0], 2, 0), NULL, &r); return r; }
SAMPLE(s_qr_both) {
    UNUSED;
    cot_var q, r;
    cot_qr(linalg_apart(x[0], 2, 0), &q, &r);
    return cot_matmul(cot_mul(q, q), cot_sin(r));
}
SAMPLE(s_lu_l) { UNUSED; cot_var l; cot_lu(linalg_apart(x[0], 2, 0), NULL, &l, NULL); return l; }
SAMPLE(s_lu_u) { UNUSED; cot_var u; cot_lu(linalg_apart(x[0], 2, 0), NULL, NULL, &u); return u; }
SAMPLE(s_lu_moved) { /* a permutation that is not the identity */
    UNUSED;
    cot_var p, l, u;
    cot_lu(cot_flip(linalg_apart(x[0], 2, 0), COT_AXES(-2)), &p, &l, &u);
    return cot_matmul(l, cot_sin(u));
}
SAMPLE(s_eigh_w) { UNUSED; return cot_eigvalsh(linalg_apart(x[0], -2, 2)); }
SAMPLE(s_eigh_v) { UNUSED; cot_var v; cot_eigh(linalg_apart(x[0], -2, 2), NULL, &v); return v; }
SAMPLE(s_eigh_both) {
    UNUSED;
    cot_var w, v;
    cot_eigh(linalg_apart(x[0], -2, 2), &w, &v);
    return cot_matmul(cot_mul(v, cot_expand_dims(cot_sin(w), -2)), v);
}
SAMPLE(s_svd_s) { UNUSED; return cot_svdvals(linalg_apart(x[0], 2, 2)); }
SAMPLE(s_svd_u) { UNUSED; cot_var u; cot_svd(linalg_apart(x[0], 2, 2), &u, NULL, NULL); return u; }
SAMPLE(s_svd_v) { UNUSED; cot_var vt; cot_svd(linalg_apart(x[0], 2, 2), NULL, NULL, &vt); return vt; }
SAMPLE(s_svd_all) {
    UNUSED;
    cot_var u, s, vt;
    cot_svd(linalg_apart(x[0], 2, 2), &u, &s, &vt);
    return cot_matmul(cot_mul(u, cot_expand_dims(cot_sin(s), -2)), cot_mul(vt, vt));
}
SAMPLE(s_lstsq) { UNUSED; return cot_lstsq(linalg_apart(x[0], 2, 0), x[1]); }
SAMPLE(s_matrix_exp) { UNUSED; return cot_matrix_exp(linalg_apart(x[0], 0.5, -0.25)); }
SAMPLE(s_matrix_exp_large) {
    UNUSED;
    return cot_mul(cot_matrix_exp(cot_sub(cot_mul(x[0], 2.0), cot_eye(x[0].tape, cot_dtype_of(x[0]), 2, 2))), 0.01);
}

#else

    {"lu_factors", s_solve, 2, {{2, 3, 3}, {2, 3, 2}}},
    {"pick", s_solve, 2, {{3, 2, 2, 2}, {1, 2}}},
    {"lu_solve", s_solve, 2, {{2, 2, 2}, {3, 2, 2, 1}}},
    {"lu_solve", s_inv, 1, {{3, 2, 2, 2}}},
    {"det", s_det, 1, {{2, 3, 3}}},
    {"det", s_det, 1, {{3, 2, 2, 2}}},
    {"det", s_det, 1, {{2, 1, 1}}},
    {"cofactors", s_cofactors, 1, {{2, 3, 3}}},
    {"cofactors", s_cofactors, 1, {{3, 2, 2, 2}}},
    {"logabsdet", s_logabsdet, 1, {{3, 2, 2, 2}}},
    {"det_sign", s_det_sign, 1, {{2, 3, 3}}},
    {"triangular_solve", s_triangular, 2, {{2, 3, 3}, {2, 3, 2}}},
    {"triangular_solve", s_triangular, 2, {{3, 2, 2, 2}, {1, 2}}},
    {"triangular_solve", s_triangular_upper, 2, {{2, 3, 3}, {2, 3, 2}}},
    {"triangular_solve", s_triangular_unit, 2, {{2, 3, 3}, {1, 3}}},
    {"triangular_solve", s_triangular_right, 2, {{2, 3, 3}, {2, 2, 3}}},
    {"triangular_solve", s_triangular_right_upper, 2, {{2, 3, 3}, {3, 2, 1, 3}}},
    {"cholesky", s_cholesky, 1, {{2, 3, 3}}},
    {"cholesky", s_cholesky, 1, {{3, 2, 2, 2}}},
    {"qr", s_qr_q, 1, {{2, 3, 2}}},
    {"qr", s_qr_r, 1, {{2, 2, 2}}},
    {"qr", s_qr_both, 1, {{2, 3, 3}}},
    {"qr", s_qr_both, 1, {{3, 2, 2, 3}}},
    {"lu", s_lu_l, 1, {{2, 3, 2}}},
    {"lu", s_lu_u, 1, {{2, 2, 3}}},
    {"lu", s_lu_moved, 1, {{2, 3, 3}}},
    {"lu", s_lu_moved, 1, {{3, 2, 3, 2}}},
    {"lu", s_lu_moved, 1, {{3, 2, 2, 3}}},
    {"eigh", s_eigh_w, 1, {{2, 3, 3}}},
    {"eigh", s_eigh_v, 1, {{2, 3, 3}}},
    {"eigh", s_eigh_both, 1, {{3, 2, 2, 2}}},
    {"svd", s_svd_s, 1, {{2, 2, 3}}},
    {"svd", s_svd_u, 1, {{2, 3, 2}}},
    {"svd", s_svd_v, 1, {{2, 2, 3}}},
    {"svd", s_svd_all, 1, {{2, 3, 3}}},
    {"svd", s_svd_all, 1, {{3, 2, 2, 3}}},
    {NULL, s_lstsq, 2, {{2, 3, 2}, {2, 3, 2}}},
    {NULL, s_lstsq, 2, {{2, 2, 3}, {1, 2}}},
    {NULL, s_matrix_exp, 1, {{2, 3, 3}}},
    {NULL, s_matrix_exp, 1, {{3, 2, 2, 2}}},
    {NULL, s_matrix_exp_large, 1, {{3, 2, 2, 2}}},

#endif
