/* elimination.c: the matrix of few unknowns as a body of a solver in a program: (M, b) -> x with
 * Mᵀ x = b, in f64. */
#include "diff/implicit/implicit.h"
#include "diff/implicit/called.h"

bool cot__has_elimination(int64_t size, bool positive_definite) {
    return size > 0 && cot__system_is_dense(size, positive_definite);
}

int cot__eliminate(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_solve(cot_transpose(xs[0]), xs[1]);
    return 0;
}

const cot__region *cot__record_elimination(cot_tape *t, const char *name, int64_t n) {
    cot_var m = cot_zeros(t, COT_F64, COT_SHAPE(n, n)), b = cot_zeros(t, COT_F64, COT_SHAPE(n));
    if (t->status != COT_OK) return NULL;
    return cot__region_record(t, name, cot__eliminate, NULL, 2, (cot_var[]){m, b}, 1);
}

static bool is_f64(const cot__program *p, uint32_t value, int ndim, int64_t n) {
    cot__view v = cot__value_view(p, value);
    bool      is = v.dtype == COT_F64 && v.ndim == ndim;
    for (int k = 0; is && k < ndim; k++) is = v.shape[k] == n;
    return is;
}

bool cot__elimination_fits(const cot__job *j, const cot__program *p, int64_t n) {
    return (p->inputs == 2 && p->outputs == 1 && is_f64(p, p->input[0], 2, n) && is_f64(p, p->input[1], 1, n) &&
            is_f64(p, p->output[0], 1, n)) ||
           cot__job_illegal(j, "its last body eliminates no matrix of its size");
}

/* A singular matrix is reported by its residual, so no note is needed. */
bool cot__elimination_go(cot__called *c, const cot__job *j, const cot__caller *caller, const double *m,
                         const double *b, double *x) {
    cot__called_give(c, j, 0, m);
    cot__called_give(c, j, 1, b);
    bool ok = cot__called_go(c, caller);
    if (ok) cot__called_read(c, j, 0, x);
    return ok;
}
