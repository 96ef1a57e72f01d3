/* search.c: x with F(x) = 0, by Newton's method, by the way down to a minimum, or by a solver of
 * the user's, whose result is checked. */
#include "diff/implicit/search.h"
#include "base/element.h"
#include "base/number.h"
#include "diff/implicit/descend.h"

#include <math.h>
#include <string.h>

/* Three vectors and what descend.c needs; Newton's method needs less. */
size_t cot__search_bytes(int64_t size) {
    if (size > INT64_MAX / 256) return SIZE_MAX;
    return 3 * (size_t)size * sizeof(double) + cot__descend_bytes(size);
}

static bool is_well(const cot__search *s) { return *s->status == COT_OK; }

static void no_start(const cot__search *s, double value) {
    cot__refuse(s->caller, COT_VALUE, "%s is %s at x0; give a start where it has a value",
                s->least ? "the function or its gradient" : "|F|", isnan(value) ? "NaN" : "infinite");
}

/* ---- Newton's method ------------------------------------------------------------------------- */

static void move(const cot__search *s, void *to, const void *from, const double *step, double by) {
    for (int64_t k = 0; k < s->size; k++) {
        int64_t at = k * cot__dtype_size(s->dtype);
        cot__store_f64((char *)to + at, s->dtype, cot__load_f64((const char *)from + at, s->dtype) - by * step[k]);
    }
}

/* There is no next step. If x is a root already, that is no error. Otherwise the message says where
 * the search stood; an error inside F stays as it is. */
static void no_step(const cot__search *s, double residual, double allowed, int steps) {
    size_t used = strlen(s->message);
    if (*s->status != COT_VALUE || strstr(s->message, " (in the body of [")) return;
    if (residual <= allowed) s->forget(s->ctx);
    else
        cot__format(s->message + used, s->room - used,
                    "; |F| is %g after %d steps; give a better start, or a solver of your own", residual, steps);
}

/* A step that does not bring the residual down is halved. It ends when no step brings the residual
 * down. */
static bool newton(const cot__search *s, void *x, double *step) {
    double first = s->residual(s->ctx, x), now = first;
    int    most = s->options.iterations > 0 ? s->options.iterations : 100, k = 0;
    double allowed = cot__solve_tolerance(&s->options, s->dtype, 1e-10, 1e-4) * (1 + first);
    void  *next = step + s->size;
    if (is_well(s) && !isfinite(first)) no_start(s, first);
    for (; k < most && now > 0 && is_well(s); k++) {
        if (!s->step(s->ctx, x, step)) {
            no_step(s, now, allowed, k);
            break;
        }
        double by = 1, then = (double)NAN;
        for (; by > 1e-4; by /= 2) {
            move(s, next, x, step, by);
            then = s->residual(s->ctx, next);
            if (then < now) break;
        }
        if (!(then < now)) break; /* rounding, or no way down */
        memcpy(x, next, (size_t)(s->size * cot__dtype_size(s->dtype)));
        now = then;
    }
    if (!is_well(s) || now <= allowed) return is_well(s);
    return cot__refuse(
        s->caller, COT_VALUE,
        "the solver did not converge: the residual is %g after %d steps, from %g at the start; at most %g was asked%s",
        now, k, first, allowed,
        k == most
            ? ", in so many steps (.iterations)"
            : ", and no step brings it lower: give a better start, a larger .tolerance, or a solver of your own");
}

/* ---- minima ---------------------------------------------------------------------------------- */

/* The function in the form that descend.c calls; x and v in their own dtype. */
typedef struct ground { const cot__search *s; void *x, *v; } ground;

static void *rounded(const cot__search *s, void *to, const double *x) {
    for (int64_t k = 0; k < s->size; k++)
        cot__store_f64((char *)to + k * cot__dtype_size(s->dtype), s->dtype, x[k]);
    return to;
}
static void widened(const cot__search *s, double *to, const void *x) {
    for (int64_t k = 0; k < s->size; k++)
        to[k] = cot__load_f64((const char *)x + k * cot__dtype_size(s->dtype), s->dtype);
}

static bool ground_at(void *ctx, double *x, double *f, double *gradient) {
    const ground *g = ctx;
    bool          ok = g->s->at(g->s->ctx, rounded(g->s, g->x, x), f, gradient);
    widened(g->s, x, g->x);
    return ok;
}

static bool ground_bend(void *ctx, const double *x, const double *v, double *hv) {
    const ground *g = ctx;
    return g->s->bend(g->s->ctx, rounded(g->s, g->x, x), rounded(g->s, g->v, v), hv);
}

static void refuse_end(const cot__search *s, const cot__descended *how, int most, double goal) {
    cot__refuse(
        s->caller, COT_VALUE,
        "the solver did not converge: the function is %g and its gradient %g after %d of at most %d steps "
        "(.iterations), from a gradient of %g at the start, and at most %g was asked; there may be no minimum; give a "
        "better start, or a solver of your own",
        how->f, how->gradient, how->steps, most, how->first, goal * (1 + how->first));
}

/* Searches a minimum from x. Without `search` it only tests whether f bends down at x. */
static bool down(const cot__search *s, void *x, double *work, bool search) {
    double        *start = work, *rest = start + 3 * s->size;
    ground         g = {s, start + s->size, start + 2 * s->size};
    cot__landscape f = {&g, s->size, cot__eps_of(s->dtype), ground_at, ground_bend};
    cot__descended how;
    widened(s, start, x);
    if (!search) {
        if (cot__bends_down(&f, start, rest) > 0)
            cot__refuse(s->caller, COT_VALUE,
                        "what the solver found is no minimum: the function bends down there; INFINITY is a tolerance "
                        "that takes all");
        return is_well(s);
    }
    int          most = s->options.iterations > 0 ? s->options.iterations : 100;
    double       goal = cot__solve_tolerance(&s->options, s->dtype, 1e-10, 1e-4);
    cot__descent ended = cot__descend(&f, start, most, goal, rest, &how);
    if (is_well(s) && !how.steps && !isfinite(how.f + how.first)) no_start(s, how.f + how.first);
    else if (ended == COT__DOWN_STUCK) refuse_end(s, &how, most, goal);
    rounded(s, x, start);
    return is_well(s);
}

/* ---- a solver of the user's ------------------------------------------------------------------ */

/* The size of the terms of F that cancel at x: |∂F/∂x x|, the change of F if x moved by x. 0 where
 * there is no derivative. */
static double terms_at(const cot__search *s, const void *x, double *dy) {
    double sum = 0;
    bool   ok = s->bend(s->ctx, x, x, dy);
    if (!is_well(s) && *s->status != COT_MEMORY) s->forget(s->ctx);
    for (int64_t k = 0; ok && k < s->size; k++) sum += dy[k] * dy[k];
    return isfinite(sum) ? sqrt(sum) : 0;
}

/* The largest residual that the result of the user's solver may have. Without a tolerance it is a
 * third of the digits of the terms (about ∛eps): a minimum that was found by values of the function
 * alone is no more exact. */
static double residual_allowed(const cot__search *s, const void *x, double first, double now, double *work) {
    double third = cot__third_of_digits(s->dtype);
    if (!isfinite(first)) first = 0; /* F may have no value at the start */
    if (s->options.tolerance > 0) return s->options.tolerance * (1 + first);
    return now <= third * first ? now : third * (first + terms_at(s, x, work));
}

static void judge(const cot__search *s, const void *x, double first, double now, double *work) {
    double allowed = is_well(s) ? residual_allowed(s, x, first, now, work) : 0;
    if (!is_well(s) || (isfinite(now) && now <= allowed)) return;
    cot__refuse(s->caller, COT_VALUE,
                "the residual of what the solver found is %g, from %g at the start; at most %g is %s", now, first,
                allowed,
                s->options.tolerance > 0 ? "within the tolerance that was asked"
                                         : "taken without a tolerance (INFINITY is one that takes all)");
}

static bool call_solver(const cot__search *s, void *x, void *work) {
    double first = s->residual(s->ctx, x);
    int    code = s->solver(s->ctx, x);
    double now = s->residual(s->ctx, x);
    if (code)
        cot__refuse(s->caller, COT_CUSTOM, "the solver failed with code %d; the residual is %g", code, now);
    judge(s, x, first, now, work);
    if (is_well(s) && s->least && isfinite(s->options.tolerance)) down(s, x, work, false);
    return is_well(s);
}

bool cot__search_go(const cot__search *s, void *x, void *work) {
    if (s->solver) return call_solver(s, x, work);
    return s->least ? down(s, x, work, true) : newton(s, x, work);
}
