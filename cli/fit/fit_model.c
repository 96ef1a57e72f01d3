/* fit_model.c: the model and its derivatives. The columns are recorded once. Each evaluation
 * rewinds to the mark behind them and records the expression again, for all rows at once, with
 * parameters as scalar leaves. The Jacobian has few columns and many rows, so forward sweeps
 * compute it: one direction for each parameter, several directions in a sweep. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "problem/expression.h"
#include "fit/fit.h"

bool fit_start(fit *x, failure *f) {
    int64_t m = x->table.rows;
    int     n = x->p.n;
    x->t = cot_tape_create(NULL);
    x->inputs = malloc(((size_t)n + (size_t)x->column_count + 1) * sizeof *x->inputs);
    x->units = calloc((size_t)n * (size_t)n + 1, sizeof *x->units);
    x->b = malloc(((size_t)n + (size_t)m) * sizeof *x->b);
    if (!x->t || !x->inputs || !x->units || !x->b) return failure_memory(f);
    x->r = x->b + n;
    for (int k = 0; k < n; k++) {
        x->b[k] = *(double *)x->p.inputs[k].value.data;
        x->units[k * n + k] = 1;
    }
    for (int k = 0; k < x->column_count; k++) {
        cot_var v = cot_data(x->t, COT_F64, COT_SHAPE(m), x->columns[k].values);
        x->inputs[n + k] = cot_name(v, x->columns[k].name);
    }
    x->mark = cot_tape_mark(x->t);
    return cot_tape_status(x->t) == COT_OK || tape_failure(x->t, f);
}

/* The value of the expression for the parameters in inputs[]. */
static cot_var run(const fit *x, cot_tape *t, const cot_var *inputs, failure *f) {
    int              n = x->p.n + x->column_count;
    cot__expr_error  error = {0};
    cot__expr_input *given = malloc(((size_t)n + 1) * sizeof *given);
    if (!given) {
        failure_memory(f);
        return COT_NONE;
    }
    for (int k = 0; k < n; k++)
        given[k] = (cot__expr_input){k < x->p.n ? x->p.inputs[k].name : x->columns[k - x->p.n].name, inputs[k], NULL};
    cot_var y = cot__expr_run(x->p.expr, t, n, given, &error, NULL, NULL);
    free(given);
    if (!cot_is_valid(y)) expression_failure(&error, x->p.text, x->p.length, f);
    return y;
}

/* Gives one value for each row. A model without columns has one value for all rows. */
static cot_var on_rows(cot_var y, int64_t rows, failure *f) {
    char      has[400];
    cot_shape shape = cot_shape_of(y);
    if (!cot__dtype_is_float(cot_dtype_of(y))) {
        failure_set(f, EXIT_RUN, "dtype", "[fit] the expression is %s; only floats can be fitted",
                    cot_dtype_name(cot_dtype_of(y)));
        return COT_NONE;
    }
    if (shape.ndim == 0) return cot_broadcast_to(y, COT_SHAPE(rows));
    if (shape.ndim == 1 && shape.dim[0] == rows) return y;
    failure_set(f, EXIT_RUN, "shape",
                "[fit] the expression has shape %s; it must have one value for each of the %lld rows",
                shape_text(shape, has), (long long)rows);
    return COT_NONE;
}

bool fit_residuals(void *user, const double *b, double *r) {
    fit    *x = user;
    int64_t m = x->table.rows;
    cot_tape_rewind(x->t, x->mark);
    for (int k = 0; k < x->p.n; k++) x->inputs[k] = cot_name(cot_scalar(x->t, b[k]), x->p.inputs[k].name);
    cot_var y = cot_tape_status(x->t) == COT_OK ? run(x, x->t, x->inputs, x->f) : COT_NONE;
    if (cot_is_valid(y)) y = on_rows(y, m, x->f);
    x->model = y;
    if (x->f->status != EXIT_FINE) return false;
    if (!cot_is_valid(y) || cot_read(y, r, m) != COT_OK) return tape_failure(x->t, x->f);
    for (int64_t i = 0; i < m; i++) r[i] = x->y[i] - r[i];
    progress_at(&x->shown, ++x->evaluations);
    return true;
}

bool fit_jacobian(void *user, double *j) {
    fit *x = user;
    if (!cot_requires_grad(x->model)) { /* no parameter has any effect on the model */
        memset(j, 0, (size_t)x->table.rows * (size_t)x->p.n * sizeof *j);
        return true;
    }
    return cot_jvps(x->p.n, x->p.n, x->inputs, x->units, 1, &x->model, j) == COT_OK || tape_failure(x->t, x->f);
}

bool fit_curve(fit *x, int64_t n, const double *at, double *out) {
    /* A plot without a curve is still a plot, so this failure is not reported, except for lack of
     * memory. */
    failure   unsaid = {0};
    cot_tape *t = cot_tape_create(NULL);
    cot_var  *inputs = malloc(((size_t)x->p.n + 2) * sizeof *inputs);
    bool      fine = t && inputs;
    if (fine) {
        for (int k = 0; k < x->p.n; k++) inputs[k] = cot_scalar(t, x->b[k]);
        inputs[x->p.n] = cot_data(t, COT_F64, COT_SHAPE(n), at);
        cot_var y = cot_tape_status(t) == COT_OK ? run(x, t, inputs, &unsaid) : COT_NONE;
        if (cot_is_valid(y)) y = on_rows(y, n, &unsaid);
        fine = cot_is_valid(y) && cot_read(y, out, n) == COT_OK;
    }
    if (!t || !inputs || cot_tape_status(t) == COT_MEMORY || strcmp(unsaid.code, "memory") == 0) failure_memory(x->f);
    free(inputs);
    cot_tape_destroy(t);
    return fine;
}
