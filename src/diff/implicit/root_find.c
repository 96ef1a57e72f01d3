/* root_find.c: finds x with F(x, θ) = 0 in numbers, by Newton's method, by the way down to a
 * minimum, or by a solver of the user's, whose result is checked. */
#include "base/number.h"
#include "diff/implicit/descend.h"
#include "diff/implicit/implicit.h"
#include "ops/structural.h"
#include "backend/elements.h"

#include <string.h>

static double norm_of(const cot_tape *t, cot_var y) {
    cot__view     v = cot__view_read(t, cot__index(y));
    double        s = 0;
    cot__elements e;
    cot__elements_open(&e, t->backend, &v, COT_F64);
    while (cot__elements_next(&e))
        for (int k = 0; k < e.n; k++) s += e.f64[k] * e.f64[k];
    return sqrt(s);
}

/* The operands of F. x is read from the memory `raw`, in dtype and shape of operand 0. NULL after
 * an error. */
static cot_var *values_at(cot_tape *t, const cot__root *q, const uint32_t *args, const void *raw) {
    cot_var *values = cot__arena(t, (size_t)cot__root_operands(q) * sizeof *values + 8, q->name);
    if (!values) return NULL;
    for (int k = 0; k < cot__root_operands(q); k++) values[k] = VAR(t, args[k]);
    values[0] = cot_data(t, cot__dtype_at(&t->nodes[args[0]]), cot__shape_at(t, args[0]), raw);
    return t->status == COT_OK ? values : NULL;
}

/* |F| at x. NaN after an error. */
static double residual_at(cot_tape *t, const cot__root *q, const uint32_t *args, const void *raw) {
    cot_mark m = cot__mark(t);
    cot_var *values = values_at(t, q, args, raw), y = values ? cot__root_play(t, q, values, NULL) : INVALID(t);
    double   norm = t->status == COT_OK ? norm_of(t, y) : (double)NAN;
    cot__rewind(t, m);
    return norm;
}

/* The size of the terms of F that cancel at x: |∂F/∂x x|, the change of F if x moved by x. 0 where
 * there is no derivative. */
static double terms_at(cot_tape *t, const cot__root *q, const uint32_t *args, const void *raw) {
    cot_mark m = cot__mark(t);
    cot_var *values = values_at(t, q, args, raw), dy = INVALID(t);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    if (values) cot__root_forth(1, &values[0], 1, &dy, &(cot__near){t, q, values[0], values});
    cot__scope_close(t, &scope);
    double norm = t->status == COT_OK && !cot__failed(dy) ? norm_of(t, dy) : 0;
    if (t->status != COT_OK && t->status != COT_MEMORY) cot_tape_clear_error(t);
    cot__rewind(t, m);
    return isfinite(norm) ? norm : 0;
}

/* Writes the Newton step dx = (∂F/∂x)⁻¹ F at x to `step`. */
static bool newton_step(cot_tape *t, const cot__root *q, const uint32_t *args, const void *raw, double *step,
                        int64_t n) {
    cot_mark m = cot__mark(t);
    cot_var *values = values_at(t, q, args, raw);
    bool     ok = false;
    if (values) {
        cot__near at = {t, q, values[0], values};
        cot_var   y = cot__root_play(t, q, values, NULL), dx = y;
        cot_solve_options linear = cot__root_linear(q);
        if (t->status == COT_OK)
            dx = cot__linear_solve(q->name, "a step of Newton's method", cot__root_forth, &at, y, &linear);
        if (t->status == COT_OK) {
            cot__view v = cot__view_read(t, cot__index(dx));
            ok = cot__read_view(t, q->name, &v, COT_F64, step, n) == COT_OK;
        }
    }
    cot__rewind(t, m);
    return ok;
}

static void move(void *to, const void *from, cot_dtype dtype, int64_t n, const double *step, double by) {
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k * cot__dtype_size(dtype);
        cot__store_f64((char *)to + at, dtype, cot__load_f64((const char *)from + at, dtype) - by * step[k]);
    }
}

static void no_start(cot_tape *t, const cot__root *q, double value) {
    cot__fail(t, COT_VALUE, "[%s] %s is %s at x0; give a start where it has a value", q->name,
              q->least ? "the function or its gradient" : "|F|", isnan(value) ? "NaN" : "infinite");
}

/* Adds to the message that there is no next step where the search stood. */
static void say_where(cot_tape *t, double residual, int steps) {
    size_t used = strlen(t->errors.message);
    cot__format(t->errors.message + used, sizeof t->errors.message - used,
                "; |F| is %g after %d steps; give a better start, or a solver of your own", residual, steps);
}

/* Newton's method. A step that does not bring the residual down is halved. It ends when no step
 * brings the residual down. */
static bool newton(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x) {
    size_t  bytes = (size_t)x->size * (sizeof(double) + 8) + 8;
    double *step = cot__alloc(&t->al, bytes), first = residual_at(t, q, args, x->data), now = first;
    int     most = q->options.iterations > 0 ? q->options.iterations : 100, k = 0;
    double  allowed = cot__solve_tolerance(&q->options, x->dtype, 1e-10, 1e-4) * (1 + first);
    if (!step) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for its vectors", q->name, bytes);
        return false;
    }
    void *next = step + x->size;
    if (t->status == COT_OK && !isfinite(first)) no_start(t, q, first);
    for (; k < most && now > 0 && t->status == COT_OK; k++) {
        if (!newton_step(t, q, args, x->data, step, x->size)) {
            /* If x is a root already, a missing next step is no error. An error inside F stays. */
            bool own = t->status == COT_VALUE && !strstr(t->errors.message, " (in the body of [");
            if (own && now <= allowed) cot_tape_clear_error(t);
            else if (own) say_where(t, now, k);
            break;
        }
        double by = 1, then = (double)NAN;
        for (; by > 1e-4; by /= 2) {
            move(next, x->data, x->dtype, x->size, step, by);
            then = residual_at(t, q, args, next);
            if (then < now) break;
        }
        if (!(then < now)) break; /* rounding, or no way down */
        memcpy(x->data, next, (size_t)(x->size * cot__dtype_size(x->dtype)));
        now = then;
    }
    cot__free(&t->al, step, bytes);
    if (t->status == COT_OK && !(now <= allowed))
        cot__fail(
            t, COT_VALUE,
            "[%s] the solver did not converge: the residual is %g after %d steps, from %g at the start; at most %g was "
            "asked%s",
            q->name, now, k, first, allowed,
            k == most
                ? ", in so many steps (.iterations)"
                : ", and no step brings it lower: give a better start, a larger .tolerance, or a solver of your own");
    return t->status == COT_OK;
}

/* ---- minima ---------------------------------------------------------------------------------- */

/* The function whose gradient is F, in the form that descend.c calls. raw holds x in its own
 * dtype. */
typedef struct ground {
    cot_tape        *t;
    const cot__root *q;
    const uint32_t  *args;
    cot_dtype        dtype;
    int64_t          n;
    void            *raw;
} ground;

static void *rounded(const ground *g, const double *x) {
    for (int64_t k = 0; k < g->n; k++) cot__store_f64((char *)g->raw + k * cot__dtype_size(g->dtype), g->dtype, x[k]);
    return g->raw;
}

static bool read_into(const ground *g, cot_var y, double *out, int64_t n) {
    if (g->t->status != COT_OK) return false;
    cot__view v = cot__view_read(g->t, cot__index(y));
    return cot__read_view(g->t, g->q->name, &v, COT_F64, out, n) == COT_OK;
}

static bool ground_at(void *ctx, double *x, double *f, double *gradient) {
    const ground *g = ctx;
    cot_mark      m = cot__mark(g->t);
    cot_var       value = INVALID(g->t), y = value, *values = values_at(g->t, g->q, g->args, rounded(g, x));
    if (values) y = cot__root_play(g->t, g->q, values, &value);
    bool ok = read_into(g, y, gradient, g->n) && read_into(g, value, f, 1);
    cot__rewind(g->t, m);
    for (int64_t k = 0; k < g->n; k++) x[k] = cot__load_f64((char *)g->raw + k * cot__dtype_size(g->dtype), g->dtype);
    return ok;
}

static bool ground_bend(void *ctx, const double *x, const double *v, double *hv) {
    const ground *g = ctx;
    cot_tape     *t = g->t;
    cot_mark      m = cot__mark(t);
    cot_var       dx = INVALID(t), dy = dx, *values = values_at(t, g->q, g->args, rounded(g, x));
    if (values) dx = cot_data(t, g->dtype, cot__shape_at(t, g->args[0]), rounded(g, v));
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    if (t->status == COT_OK) cot__root_forth(1, &dx, 1, &dy, &(cot__near){t, g->q, values[0], values});
    cot__scope_close(t, &scope);
    bool ok = read_into(g, dy, hv, g->n);
    cot__rewind(t, m);
    return ok;
}

static double eps_of(cot_dtype d) {
    return d == COT_F64 ? 0x1p-52 : d == COT_F32 ? 0x1p-23 : d == COT_F16 ? 0x1p-10 : 0x1p-7;
}

/* Searches a minimum from x. Without `search` it only tests whether f bends down at x. */
static bool down(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x, bool search) {
    size_t  bytes = cot__descend_bytes(x->size) + 2 * (size_t)x->size * sizeof(double);
    double *start = cot__alloc(&t->al, bytes);
    if (!start) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for its vectors", q->name, bytes);
        return false;
    }
    double        *raw = start + x->size;
    ground         g = {t, q, args, x->dtype, x->size, raw};
    cot__landscape f = {&g, x->size, eps_of(x->dtype), ground_at, ground_bend};
    cot__descended how;
    for (int64_t k = 0; k < x->size; k++)
        start[k] = cot__load_f64((char *)x->data + k * cot__dtype_size(x->dtype), x->dtype);
    if (!search) {
        if (cot__bends_down(&f, start, raw + x->size) > 0)
            cot__fail(
                t, COT_VALUE,
                "[%s] what the solver found is no minimum: the function bends down there; INFINITY is a tolerance "
                "that takes all",
                q->name);
    } else {
        int    most = q->options.iterations > 0 ? q->options.iterations : 100;
        double goal = cot__solve_tolerance(&q->options, x->dtype, 1e-10, 1e-4);
        cot__descent ended = cot__descend(&f, start, most, goal, raw + x->size, &how);
        if (t->status == COT_OK && !how.steps && !isfinite(how.f + how.first))
            no_start(t, q, how.f + how.first);
        else if (ended == COT__DOWN_STUCK)
            cot__fail(
                t, COT_VALUE,
                "[%s] the solver did not converge: the function is %g and its gradient %g after %d of at most %d steps "
                "(.iterations), from a gradient of %g at the start, and at most %g was asked; there may be no minimum; "
                "give a "
                "better start, or a solver of your own",
                q->name, how.f, how.gradient, how.steps, most, how.first, goal * (1 + how.first));
        for (int64_t k = 0; k < x->size; k++)
            cot__store_f64((char *)x->data + k * cot__dtype_size(x->dtype), x->dtype, start[k]);
    }
    cot__free(&t->al, start, bytes);
    return t->status == COT_OK;
}

/* ---- a solver of the user's ------------------------------------------------------------------ */

/* The largest residual that the result of the user's solver may have. Without a tolerance it is a
 * third of the digits of the terms (about ∛eps): a minimum that was found by values of the function
 * alone is no more exact. */
static double residual_allowed(cot_tape *t, const cot__root *q, const uint32_t *args, const cot_array *x, double first,
                               double now) {
    double third = cot__third_of_digits(x->dtype);
    if (!isfinite(first)) first = 0; /* F may have no value at the start */
    if (q->options.tolerance > 0) return q->options.tolerance * (1 + first);
    return now <= third * first ? now : third * (first + terms_at(t, q, args, x->data));
}

static void judge(cot_tape *t, const cot__root *q, const uint32_t *args, const cot_array *x, double first, double now) {
    double allowed = t->status == COT_OK ? residual_allowed(t, q, args, x, first, now) : 0;
    if (t->status != COT_OK || (isfinite(now) && now <= allowed)) return;
    cot__fail(t, COT_VALUE, "[%s] the residual of what the solver found is %g, from %g at the start; at most %g is %s",
              q->name, now, first, allowed,
              q->options.tolerance > 0 ? "within the tolerance that was asked"
                                       : "taken without a tolerance (INFINITY is one that takes all)");
}

static bool call_solver(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x) {
    int        n = q->f->n - 1;
    cot_array *theta = cot__arena(t, ((size_t)n + 1) * sizeof *theta, q->name);
    if (!theta) return false;
    for (int k = 0; k < n; k++) {
        cot_var dense = cot_copy(VAR(t, args[1 + k]));
        if (cot__failed(dense)) return false;
        cot__view v = cot__view_read(t, cot__index(dense));
        theta[k] = (cot_array){v.dtype, cot_shape_of(dense), cot_size(dense), v.data};
        if (v.ndim && cot__on_host(t->backend)) continue;
        theta[k].data = cot__arena(t, cot__bytes_at(t, cot__index(dense)) + 8, q->name);
        if (!theta[k].data) return false;
        cot__read_view(t, q->name, &v, v.dtype, theta[k].data, theta[k].size);
    }
    double      first = residual_at(t, q, args, x->data);
    cot__scope  scope = cot__scope_open(t, t->active_mask);
    t->mode.inside = q->name, t->mode.inside_from = t->count;
    /* the solver may change its description of the array; the numbers in x's memory count */
    cot_array given = *x;
    int       code = q->solver(n, theta, &given, q->user);
    cot__scope_close(t, &scope);
    cot__error_in_function(t, "solver", q->name);
    double now = residual_at(t, q, args, x->data);
    if (code) cot__fail(t, COT_CUSTOM, "[%s] the solver failed with code %d; the residual is %g", q->name, code, now);
    judge(t, q, args, x, first, now);
    if (t->status == COT_OK && q->least && isfinite(q->options.tolerance)) down(t, q, args, x, false);
    return t->status == COT_OK;
}

bool cot__root_find(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x) {
    if (q->solver) return call_solver(t, q, args, x);
    return q->least ? down(t, q, args, x, true) : newton(t, q, args, x);
}
