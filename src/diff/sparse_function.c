/* sparse_function.c: sparse derivatives of functions: record, do it on the tape, forget. */
#include "diff/sparse.h"

/* A function that has been run. */
typedef struct recorded {
    cot_tape *t;
    cot_mark  mark;
    int       m;
    cot_var  *ys;
} recorded;

static bool record(recorded *r, const char *op, cot_fn f, void *user, int n, const cot_var *xs, int m) {
    *r = (recorded){.t = n > 0 ? cot__tape_of(n, xs) : NULL, .m = m};
    if (!r->t) return false;
    if (m < 0 || !f) {
        if (!f) cot__fail(r->t, COT_VALUE, "[%s] the function is NULL", op);
        else cot__fail(r->t, COT_VALUE, "[%s] a negative number of outputs: %d", op, m);
        r->m = 0;
        return false;
    }
    r->mark = cot_tape_mark(r->t);
    r->ys = cot__alloc(&r->t->al, (size_t)m * sizeof *r->ys);
    if (!r->ys) {
        cot__fail(r->t, COT_MEMORY, "[%s] out of memory: %d outputs", op, m);
        return false;
    }
    for (int k = 0; k < m; k++) r->ys[k] = INVALID(r->t);
    int code = f(n, xs, m, r->ys, user);
    if (r->t->status == COT_OK && code != 0) cot__fail(r->t, COT_CUSTOM, "[%s] the function returned %d; 0 is success", op, code);
    for (int k = 0; k < m && r->t->status == COT_OK; k++)
        if (r->ys[k].tape != r->t || cot__index(r->ys[k]) >= r->t->count)
            cot__fail(r->t, COT_VAR,
                      "[%s] output %d of the function is not a value of the tape of its inputs; it records every output there", op,
                      k);
    return r->t->status == COT_OK;
}

/* The user may have kept vars of f: the rewind is the public one, which makes them known as forgotten. It would also forget an
 * error. */
static void forget(recorded *r) {
    if (!r->t) return;
    cot__free(&r->t->al, r->ys, (size_t)r->m * sizeof *r->ys);
    if (r->t->status == COT_OK) cot_tape_rewind(r->t, r->mark);
}

cot_sparse_plan *cot_sparse_jacobian_plan_of(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_mode mode) {
    recorded         r;
    cot_sparse_plan *p =
        record(&r, "sparse_jacobian_plan_of", f, user, n, xs, m) ? cot_sparse_jacobian_plan(m, r.ys, n, xs, mode) : NULL;
    forget(&r);
    return p;
}

cot_sparse_plan *cot_sparse_hessian_plan_of(cot_fn f, void *user, int n, const cot_var *xs) {
    recorded         r;
    cot_sparse_plan *p = record(&r, "sparse_hessian_plan_of", f, user, n, xs, 1) ? cot_sparse_hessian_plan(r.ys[0], n, xs) : NULL;
    forget(&r);
    return p;
}

static cot_status failed(const cot_sparse_plan *p, int n, const cot_var *xs, double *values) {
    for (int64_t k = 0, nnz = cot_sparse_plan_info(p).nnz; values && k < nnz; k++) values[k] = (double)NAN;
    return cot__status_of(n > 0 ? n : 0, xs);
}

cot_status cot_sparse_jacobian_of(const cot_sparse_plan *p, cot_fn f, void *user, int n, const cot_var *xs, int m, double *values) {
    recorded   r;
    bool       ok = record(&r, "sparse_jacobian_of", f, user, n, xs, m);
    cot_status status = ok ? cot_sparse_jacobian(p, m, r.ys, n, xs, values) : failed(p, n, xs, values);
    forget(&r);
    return status;
}

cot_status cot_sparse_hessian_of(const cot_sparse_plan *p, cot_fn f, void *user, int n, const cot_var *xs, double *values) {
    recorded   r;
    bool       ok = record(&r, "sparse_hessian_of", f, user, n, xs, 1);
    cot_status status = ok ? cot_sparse_hessian(p, r.ys[0], n, xs, values) : failed(p, n, xs, values);
    forget(&r);
    return status;
}
