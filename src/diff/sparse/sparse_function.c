/* sparse_function.c: sparse derivatives of functions. The function is run on inputs of its own, as
 * in functions.h; the derivative is computed on the tape; then everything is forgotten. */
#include "diff/functions/functions.h"
#include "diff/sparse/sparse.h"
#include "diff/engine/sweep.h"
#include "ops/structural.h"
#include "tape/region.h"

/* A function that has been run, and the inputs by which it is differentiated. */
typedef struct recorded {
    cot_tape *t;
    cot_mark  mark;
    cot__form form;
    cot_var  *ys; /* in the arena */
} recorded;

/* A function may write to its inputs in place, and its recording is forgotten afterwards. It works
 * on copies, so that xs keep their numbers. */
static const cot_var *copies(cot_tape *t, const char *op, int n, const cot_var *xs) {
    cot_var *own = cot__arena(t, (size_t)n * sizeof *own, op);
    for (int k = 0; own && k < n; k++)
        own[k] = xs[k].tape == t && cot_is_valid(xs[k]) && cot_shape_of(xs[k]).ndim ? cot_copy(xs[k]) : xs[k];
    return own;
}

static bool record(recorded *r, const char *op, cot_fn f, void *user, int n, const cot_var *xs, int m) {
    *r = (recorded){.t = n > 0 ? cot__tape_of(n, xs) : NULL};
    /* while a body is recorded, values are examples and there are no numbers to differentiate */
    if (!r->t || !cot__may_sweep_numbers(r->t, op, r->t->count)) return false;
    r->mark = cot_tape_mark(r->t);
    r->ys   = cot__arena(r->t, ((size_t)(m > 0 ? m : 0) + 1) * sizeof *r->ys, op);
    if (!r->ys || !(xs = copies(r->t, op, n, xs)) || !cot__form_open(&r->form, op, n, xs, 0, NULL) ||
        !cot__form_run(&r->form, f, user, xs, m, r->ys))
        return false;
    /* as nodes, so that they are differentiated also in a no-grad scope */
    for (int k = 0; k < m; k++) r->ys[k] = VAR(r->t, r->form.y[k]);
    return true;
}

/* The user may have kept vars of f. The public rewind makes them known as forgotten. It would also
 * forget an error, so after one only the nodes are rewound, and the stamp is changed here. */
static void forget(recorded *r) {
    if (!r->t) return;
    if (r->t->status == COT_OK)
        cot_tape_rewind(r->t, r->mark);
    else if (r->ys) {
        cot__rewind(r->t, r->mark);
        cot__next_stamp(r->t);
    }
}

cot_sparse_plan *cot_sparse_jacobian_plan_of(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_mode mode) {
    const char      *op = "sparse_jacobian_plan_of";
    recorded         r;
    cot_sparse_plan *p =
        record(&r, op, f, user, n, xs, m) ? cot__sparse_jacobian_plan(op, m, r.ys, n, r.form.in, mode) : NULL;
    forget(&r);
    return p;
}

cot_sparse_plan *cot_sparse_hessian_plan_of(cot_fn f, void *user, int n, const cot_var *xs) {
    const char      *op = "sparse_hessian_plan_of";
    recorded         r;
    cot_sparse_plan *p = record(&r, op, f, user, n, xs, 1) ? cot__sparse_hessian_plan(op, r.ys[0], n, r.form.in) : NULL;
    forget(&r);
    return p;
}

static cot_status failed(const cot_sparse_plan *p, int n, const cot_var *xs, double *values) {
    for (int64_t k = 0, nnz = cot_sparse_plan_info(p).nnz; values && k < nnz; k++) values[k] = (double)NAN;
    return cot__status_of(n, xs);
}

cot_status cot_sparse_jacobian_of(const cot_sparse_plan *p, cot_fn f, void *user, int n, const cot_var *xs, int m,
                                  double *values) {
    const char *op = "sparse_jacobian_of";
    recorded    r;
    bool        ok     = record(&r, op, f, user, n, xs, m);
    cot_status  status = ok ? cot__sparse_jacobian(op, p, m, r.ys, n, r.form.in, values) : failed(p, n, xs, values);
    forget(&r);
    return status;
}

cot_status cot_sparse_hessian_of(const cot_sparse_plan *p, cot_fn f, void *user, int n, const cot_var *xs,
                                 double *values) {
    const char *op = "sparse_hessian_of";
    recorded    r;
    bool        ok     = record(&r, op, f, user, n, xs, 1);
    cot_status  status = ok ? cot__sparse_hessian(op, p, r.ys[0], n, r.form.in, values) : failed(p, n, xs, values);
    forget(&r);
    return status;
}
