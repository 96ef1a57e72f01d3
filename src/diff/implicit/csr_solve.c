/* csr_solve.c: a linear system whose matrix is sparse: cot_linear_solve with a product as its
 * function, so that no factor is made, and derivatives solve the transposed system by products with
 * the transposed pattern. */
#include "diff/implicit/implicit.h"
#include "ops/structural.h"

static int multiply(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_csr_matmul(*(const cot_csr *)user, xs[0]);
    return 0;
}

cot_var cot_csr_solve(cot_csr a, cot_var b, const cot_solve_options *options) {
    static const char        op[] = "csr_solve";
    static const char *const names[] = {"values", "b"};
    uint32_t  xs[2], pattern;
    char      text[COT__SHAPE_TEXT];
    cot_tape *t = cot__enter_all(op, names, 2, (cot_var[]){a.values, b}, true, xs);
    if (!t || !cot__enter(t, a.pattern, op, "pattern", &pattern))
        return cot__invalid(3, (cot_var[]){a.values, b, a.pattern});
    cot_shape s = cot__shape_at(t, xs[1]);
    if (a.rows != a.columns)
        return cot__fail(t, COT_SHAPE, "[%s] the matrix has %lld rows and %lld columns; it must be square", op,
                         (long long)a.rows, (long long)a.columns);
    if (s.ndim < 1 || s.ndim > 2 || s.dim[0] != a.rows)
        return cot__fail(t, COT_SHAPE, "[%s] b has shape %s, and the matrix %lld rows; b has as many", op,
                         cot__shape_text(s.ndim, s.dim, text), (long long)a.rows);
    a.values = VAR(t, xs[0]);
    return cot__linear_solve(op, NULL, multiply, &a, VAR(t, xs[1]), options);
}
