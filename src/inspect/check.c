/* check.c: checks the derivatives of a function. It compares jvp with central differences, and vjp
 * with jvp by inner product. At order 2 it does both again for the gradient of <seed, y>: its jvp
 * is forward over reverse, its vjp reverse over reverse.
 *
 * No constant here was tuned to make a test pass. All steps are powers of two and directions have
 * few bits, so x ± h·v hardly ever rounds. Two errors remain: the truncation of the difference,
 * O(h²), and the rounding of f, O(eps/h). Both are measured by comparing steps:
 *
 *     D(h) = (f(x + h v) - f(x - h v)) / 2h,   h = 2^-9, 2^-12, …, 2^-24
 *         (the balance, eps^(1/3), is 2^-17.3)
 *
 * Where truncation is the larger error, |D(8h) - D(h)| is 63 times the truncation error in D(h).
 * Where rounding is larger, it is about the rounding error in D(h). Should the two cancel there,
 * |D(64h) - D(8h)| / 64 still gives the truncation error, and the difference at the smallest steps,
 * where rounding is larger, gives the noise in f and so the rounding error. For each element the
 * step with the smallest sum of both is taken, and the doubled sum is the tolerance. So a function
 * that computes its value badly or bends sharply is checked more loosely, but not wrongly.
 *
 * If this finds a disagreement, the steps may have been too long: sin at 1e10, sqrt at 1e-12. Then
 * shorter steps, down to 2^-60, are tried, and a step counts only if no shorter one contradicts it.
 * It may be that even the shorter steps change f as much as the long ones do, and by no more than
 * rounding x would if the derivative were right. Then differences cannot decide; the report says
 * so, and it is no failure.
 *
 * vjp and jvp are computed, not approximated: <w, J v> = <Jᵀ w, v> up to one rounding for each
 * operation and each term. Inside either, terms may cancel that do not show in the result. The
 * tangents that a recorded jvp leaves on the tape show how large they are. (v moves x by its own
 * size, so terms of f that cancel are about as large: they count as noise in f too.) */
#include "base/number.h"
#include "base/random.h"
#include "backend/elements.h"
#include "diff/engine/sweep.h"
#include "tape/tape.h"

#include <float.h>
#include <stdarg.h>
#include <string.h>

enum { USUAL = 6, LEVELS = 18 };
static const double steps[LEVELS] = {0x1p-9,  0x1p-12, 0x1p-15, 0x1p-18, 0x1p-21, 0x1p-24, 0x1p-27, 0x1p-30, 0x1p-33,
                                     0x1p-36, 0x1p-39, 0x1p-42, 0x1p-45, 0x1p-48, 0x1p-51, 0x1p-54, 0x1p-57, 0x1p-60};

typedef struct check {
    cot_tape         *t;
    cot_function      f;
    void             *user;
    int               n;
    const cot_array  *xs;
    cot_check_report *report;
    bool              failed; /* something disagrees, and the report says what */
    uint64_t          random;

    int      order;    /* 1: the outputs are y; 2: they are the gradients of <seed, y> */
    cot_var *leaves, *grads, *tangents;
    cot_var  y, *outs; /* after record() */
    int      m;        /* number of outputs */
    int64_t  in, out;  /* elements of all inputs, of all outputs */
    int64_t  y_size;

    double *x, *point, *v, *vjp;                /* (in) */
    double *base, *up, *down, *jvp, *w, *steps; /* (out); steps: (LEVELS, out) */
    double *seed;                               /* (y_size) */
    double  largest;                            /* the largest tangent in the present direction */
    int     levels; /* steps that were tried in this direction: USUAL or LEVELS */
    char    doubt[256];                         /* what could not be judged, "" for nothing */
    double *block;
    size_t  block_bytes, vars_bytes;
} check;

/* ---- reporting ------------------------------------------------------------------------------- */

/* The report holds the first disagreement only. */
static void tell(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(check *c, const char *format, ...) {
    va_list args;
    if (c->report->message[0]) return;
    va_start(args, format);
    cot__vformat(c->report->message, sizeof c->report->message, format, args);
    va_end(args);
}

static const char *order_text(const check *c) { return c->order == 2 ? "second order: " : ""; }

/* "xs[1] along direction 2"; the last direction moves all inputs. */
static const char *direction_text(const check *c, int d, char buf[64]) {
    if (d < c->n || c->n == 1)
        snprintf(buf, 64, "xs[%d] along direction %d", d < c->n ? d : 0, d);
    else
        snprintf(buf, 64, "all xs along direction %d", d);
    return buf;
}

/* "element 3 of the result", or "… of the gradient of xs[1]": where the i-th output element
 * lies. */
static const char *element_text(const check *c, int64_t i, char buf[80]) {
    int k = 0;
    while (c->order == 2 && k < c->n - 1 && i >= c->xs[k].size) i -= c->xs[k++].size;
    if (c->order == 2) snprintf(buf, 80, "element %lld of the gradient of xs[%d]", (long long)i, k);
    else if (c->out == 1) snprintf(buf, 80, "the result");
    else snprintf(buf, 80, "element %lld of the result", (long long)i);
    return buf;
}

/* Keeps the worst ratio of an error to its tolerance. A result that is not a number is as wrong as
 * can be. */
static bool judge(check *c, double *worst, double error, double tolerance) {
    bool   fine = error <= tolerance && tolerance < (double)INFINITY;
    double ratio = error == 0 && fine ? 0 : error / tolerance;
    if (isnan(ratio) || (!fine && ratio <= 1)) ratio = (double)INFINITY;
    if (ratio > *worst) *worst = ratio;
    if (!fine) c->failed = true;
    return fine;
}

/* ---- the function ---------------------------------------------------------------------------- */

/* Records the outputs at a point. Returns the status of the tape. */
static cot_status record(check *c, const double *point) {
    for (int k = 0; k < c->n; k++) {
        c->leaves[k] = cot_tensor(c->t, COT_F64, c->xs[k].shape, point);
        point += c->xs[k].size;
    }
    if (c->t->status != COT_OK) return c->t->status;
    c->y = c->f(c->n, c->leaves, c->user);
    if (c->t->status != COT_OK) return c->t->status;
    if (!cot_is_valid(c->y) || c->y.tape != c->t) {
        cot__fail(c->t, COT_VAR, "[check_grads] f returned no value of the tape that its xs are on");
    } else if (cot_dtype_of(c->y) != COT_F64) {
        cot__fail(c->t, COT_DTYPE, "[check_grads] f returned %s; derivatives are checked in f64",
                  cot_dtype_name(cot_dtype_of(c->y)));
    } else if (c->order == 2) {
        c->outs = c->grads;
        cot_var seed = cot_data(c->t, COT_F64, cot_shape_of(c->y), c->seed);
        (cot_vjp)(c->y, seed, c->n, c->leaves, c->grads);
    } else
        c->outs = &c->y;
    return c->t->status;
}

static cot_status read_outputs(check *c, double *out) {
    int64_t have = cot__total_size(c->m, c->outs);
    if (have != c->out) {
        cot__fail(c->t, COT_SHAPE, "[check_grads] f returned %lld elements where it returned %lld before",
                  (long long)have, (long long)c->out);
        return c->t->status;
    }
    for (int k = 0; k < c->m; k++) {
        cot_read(c->outs[k], out, cot_size(c->outs[k]));
        out += cot_size(c->outs[k]);
    }
    return c->t->status;
}

/* Computes the outputs at x + h v. Where f refuses the point they are NaN, and that step is not
 * used. */
static cot_status evaluate(check *c, double h, double *out) {
    cot_mark m = cot_tape_mark(c->t);
    for (int64_t i = 0; i < c->in; i++) c->point[i] = c->x[i] + h * c->v[i];
    if (record(c, c->point) == COT_OK) read_outputs(c, out);
    cot_status status = c->t->status;
    if (status != COT_OK)
        for (int64_t i = 0; i < c->out; i++) out[i] = (double)NAN;
    cot_tape_rewind(c->t, m);
    return status == COT_MEMORY ? status : COT_OK;
}

/* ---- directions ------------------------------------------------------------------------------ */

/* A number in ±[1/2, 1) with 20 bits. The numbers are always the same, so a failure can be
 * repeated. */
static double random_number(check *c) {
    uint64_t z = cot__mixed(c->random++);
    double   size = (double)(z >> 45 | UINT64_C(1) << 19) * 0x1p-20;
    return z & 1 ? -size : size;
}

/* Direction d moves input d, the last direction moves all inputs. Each element moves on the scale
 * of its own value, at least 1, rounded to a power of two. */
static void make_direction(check *c, int d) {
    int64_t i = 0;
    for (int k = 0; k < c->n; k++)
        for (int64_t j = 0; j < c->xs[k].size; j++, i++) {
            double size = fabs(c->x[i]);
            int    e = 1;
            if (size > 1 && isfinite(size)) frexp(size, &e);
            c->v[i] = d == k || d >= c->n ? ldexp(random_number(c), e - 1) : 0;
        }
}

/* ---- jvp against central differences --------------------------------------------------------- */

/* Writes D(h) for all steps up to number `levels` to c->steps. The size of f around x goes to
 * c->base, whose values are not needed any more in this direction. */
static cot_status differences(check *c, int levels) {
    for (int64_t i = 0; i < c->out; i++) c->base[i] = fabs(c->base[i]);
    for (int j = c->levels; j < levels; j++) {
        double    *d = c->steps + j * c->out;
        cot_status status = evaluate(c, steps[j], c->up);
        if (status == COT_OK) status = evaluate(c, -steps[j], c->down);
        if (status != COT_OK) return status;
        for (int64_t i = 0; i < c->out; i++) {
            d[i] = (c->up[i] - c->down[i]) / (2 * steps[j]);
            /* fmax ignores NaN */
            c->base[i] = fmax(c->base[i], fmax(fabs(c->up[i]), fabs(c->down[i])));
        }
    }
    c->levels = levels;
    return COT_OK;
}

static double difference(const check *c, int j, int64_t i) { return c->steps[j * c->out + i]; }

/* Does a shorter step disagree with step j by more than the bounds of both? */
static bool contradicted(const check *c, int64_t i, int j, const double *bound) {
    for (int k = j + 1; k < c->levels; k++)
        if (fabs(difference(c, k, i) - difference(c, j, i)) > bound[j] + bound[k]) return true;
    return false;
}

/* The best difference for element i, and its tolerance. NaN if no three steps in a row gave
 * numbers. */
static double best_difference(const check *c, int64_t i, double *tolerance) {
    int    last = c->levels - 1;
    double best = (double)NAN, noise = steps[last] * fabs(difference(c, last, i) - difference(c, last - 1, i)),
           bound[LEVELS];
    noise = (isfinite(noise) ? noise : 0) + 4 * DBL_EPSILON * fmax(c->base[i], c->largest);
    *tolerance = (double)INFINITY;
    for (int j = 2; j < c->levels; j++) {
        double d = difference(c, j, i), before = difference(c, j - 1, i), first = difference(c, j - 2, i);
        bound[j] = 2 * (fabs(d - before) + fabs(before - first) / 64 + noise / steps[j]);
    }
    for (int j = 2; j < c->levels; j++)
        if (bound[j] < *tolerance && (c->levels == USUAL || !contradicted(c, i, j, bound)))
            *tolerance = bound[j], best = difference(c, j, i);
    return best;
}

/* Do short steps change f as much as most of the longer ones, and by no more than a few roundings
 * of x would if the derivative were right? For a function that differences can follow, the change
 * over a step shrinks with the step, or is far above the rounding of x. */
static bool beyond_differences(const check *c, int64_t i) {
    enum { SHORT = 10, SHORTEST = 13 }; /* steps 2^-39 to 2^-48 */
    double change[SHORTEST + 1], shortest = 0;
    int    no_more = 0;
    for (int j = 0; j <= SHORTEST; j++) {
        change[j] = 2 * steps[j] * fabs(difference(c, j, i));
        if (j >= SHORT) shortest = fmax(shortest, change[j]);
    }
    for (int j = 0; j <= SHORTEST; j++) no_more += change[j] <= 8 * shortest;
    return shortest > 0 && 2 * no_more > SHORTEST && 4096 * DBL_EPSILON * c->largest >= shortest;
}

/* jvp and D are sums of up to `in` products of intermediate values, so they cannot be more exact
 * than the rounding of these. */
static double rounding_floor(const check *c, const double *derivative) {
    double largest = 0;
    for (int64_t i = 0; i < c->out; i++) {
        if (derivative && isfinite(derivative[i])) largest = fmax(largest, fabs(derivative[i]));
        if (isfinite(c->steps[3 * c->out + i])) largest = fmax(largest, fabs(c->steps[3 * c->out + i]));
    }
    largest = fmax(largest, c->largest);
    return ((double)c->in + 16) * DBL_EPSILON * largest;
}

static cot_status compare_jvp(check *c, int d, double *worst) {
    char       where[80], along[64];
    double     least = rounding_floor(c, c->jvp), tolerance;
    cot_status status = COT_OK;
    for (int64_t i = 0; i < c->out && status == COT_OK; i++) {
        double best = best_difference(c, i, &tolerance);
        if (!(fabs(c->jvp[i] - best) <= tolerance + least) && c->levels == USUAL) {
            status = differences(c, LEVELS);
            best = best_difference(c, i, &tolerance);
        }
        double error = fabs(c->jvp[i] - best);
        if (!(error <= tolerance + least) && c->levels == LEVELS && beyond_differences(c, i)) {
            if (!c->doubt[0])
                snprintf(c->doubt, sizeof c->doubt,
                         "%s%s, %s: cannot be judged here: it changes too fast for differences, which are dominated by "
                         "rounding",
                         order_text(c), direction_text(c, d, along), element_text(c, i, where));
            continue;
        }
        if (judge(c, worst, error, tolerance + least)) continue;
        if (isnan(best))
            tell(c,
                 "%s%s, %s: jvp gives %.17g, and there are no central differences: no numbers on both sides of this "
                 "point",
                 order_text(c), direction_text(c, d, along), element_text(c, i, where), c->jvp[i]);
        else
            tell(c, "%s%s, %s: jvp gives %.17g, central differences %.17g (tolerance %.3g)", order_text(c),
                 direction_text(c, d, along), element_text(c, i, where), c->jvp[i], best, tolerance + least);
    }
    return status;
}

/* ---- vjp against jvp, or where there is no jvp against the differences ----------------------- */

static double inner(int64_t n, const double *a, const double *b, double *size) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        /* an input that does not move counts for nothing, whatever its adjoint is */
        if (a[i] == 0 || b[i] == 0) continue;
        sum += a[i] * b[i];
        *size += fabs(a[i] * b[i]);
    }
    return sum;
}

static void compare_vjp(check *c, int d, double operations, double *worst) {
    char   along[64];
    double size = c->largest, a = inner(c->out, c->w, c->jvp, &size), b = inner(c->in, c->vjp, c->v, &size);
    double tolerance = 4 * DBL_EPSILON * ((double)c->in + (double)c->out + operations + 16) * size;
    if (judge(c, worst, fabs(a - b), tolerance)) return;
    tell(c, "%s%s, vjp against jvp: <w, jvp(v)> = %.17g, <vjp(w), v> = %.17g (tolerance %.3g)", order_text(c),
         direction_text(c, d, along), a, b, tolerance);
}

static void compare_vjp_differences(check *c, int d, double *worst) {
    char   along[64];
    double size = 0, a = 0, tolerance = 0, least = rounding_floor(c, NULL), b = inner(c->in, c->vjp, c->v, &size);
    for (int64_t i = 0; i < c->out; i++) {
        double trust, best = best_difference(c, i, &trust);
        a += c->w[i] * best;
        tolerance += fabs(c->w[i]) * (trust + least);
    }
    tolerance += ((double)c->in + 16) * DBL_EPSILON * size;
    if (judge(c, worst, fabs(a - b), tolerance)) return;
    tell(c, "%s%s, vjp against differences: <w, central differences> = %.17g, <vjp(w), v> = %.17g (tolerance %.3g)",
         order_text(c), direction_text(c, d, along), a, b, tolerance);
}

/* ---- one direction --------------------------------------------------------------------------- */

/* At order 1 one mode may be missing (a custom operation in numbers). The error is kept for the
 * case that both modes are missing. */
static bool mode_missing(check *c) {
    if (c->t->status != COT_GRAD || c->order != 1) return false;
    tell(c, "%s", c->t->errors.message);
    cot_tape_clear_error(c->t);
    return true;
}

/* Inputs that do not move are left out and not given zeros, because rules must handle that case
 * too. */
static cot_status jvp_along(check *c, int d) {
    int64_t at = 0;
    if (d >= c->n) return cot_jvps(1, c->n, c->leaves, c->v, c->m, c->outs, c->jvp);
    for (int k = 0; k < d; k++) at += c->xs[k].size;
    return cot_jvps(1, 1, &c->leaves[d], c->v + at, c->m, c->outs, c->jvp);
}

/* Bodies have let their values go: there is no memory of their shape to read. */
static double largest_value(const cot_tape *t, uint32_t from) {
    double largest = 0;
    for (uint32_t i = from; i < t->count; i++) {
        if (cot__in_body(&t->nodes[i])) continue;
        cot__view     v = cot__look(t, i);
        cot__elements e;
        cot__elements_open(&e, t->backend, &v, COT_F64);
        while (cot__elements_next(&e))
            for (int k = 0; k < e.n; k++)
                if (fabs(e.f64[k]) > largest && isfinite(e.f64[k])) largest = fabs(e.f64[k]);
    }
    return largest;
}

/* Records the same derivative, to measure the size of all tangents in between. */
static cot_status measure_tangents(check *c, int d) {
    const double *v = c->v;
    int           first = d < c->n ? d : 0, count = d < c->n ? 1 : c->n;
    for (int k = 0; k < c->n; k++) {
        c->tangents[k] = cot_data(c->t, COT_F64, c->xs[k].shape, v);
        v += c->xs[k].size;
    }
    uint32_t from = c->t->count;
    for (int k = 0; k < c->m && c->t->status == COT_OK; k++)
        cot_jvp(c->outs[k], count, c->leaves + first, c->tangents + first);
    c->largest = largest_value(c->t, from);
    return c->t->status;
}

static cot_status check_direction(check *c, int d, double *jvp_worst, double *vjp_worst) {
    char     where[80];
    cot_mark m = cot_tape_mark(c->t);
    bool     told = c->report->message[0] != 0, no_jvp = false, no_vjp = false;
    make_direction(c, d);
    for (int64_t i = 0; i < c->out; i++) c->w[i] = random_number(c);
    if (record(c, c->x) != COT_OK || read_outputs(c, c->up) != COT_OK) return c->t->status;
    for (int64_t i = 0; i < c->out && d > 0; i++)
        if (memcmp(&c->up[i], &c->down[i], sizeof(double)) != 0) {
            tell(c, "f is not a function of its xs alone: %s was %.17g, then %.17g at the same point",
                 element_text(c, i, where), c->down[i], c->up[i]);
            return COT_VALUE;
        }
    memcpy(c->base, c->up, (size_t)c->out * sizeof(double));
    double operations = (double)cot_tape_length(c->t);
    if (jvp_along(c, d) != COT_OK && !(no_jvp = mode_missing(c))) return c->t->status;
    c->largest = 0;
    if (!no_jvp && measure_tangents(c, d) != COT_OK) return c->t->status;
    if (cot_vjps(1, c->m, c->outs, c->w, c->n, c->leaves, c->vjp) != COT_OK && !(no_vjp = mode_missing(c)))
        return c->t->status;
    if (no_jvp && no_vjp) return COT_GRAD;
    if ((no_jvp || no_vjp) && !told) c->report->message[0] = 0;
    cot_tape_rewind(c->t, m);
    c->levels = 0;
    cot_status status = differences(c, USUAL);
    if (status == COT_OK && !no_jvp) status = compare_jvp(c, d, jvp_worst);
    if (status != COT_OK) return status;
    if (!no_jvp && !no_vjp) compare_vjp(c, d, operations, vjp_worst);
    if (no_jvp) compare_vjp_differences(c, d, vjp_worst);
    return evaluate(c, 0, c->down); /* the next direction compares with these values */
}

/* ---- the check ------------------------------------------------------------------------------- */

static cot_status check_order(check *c, int order, double *jvp_worst, double *vjp_worst) {
    c->order = order;
    c->m = order == 2 ? c->n : 1;
    c->out = order == 2 ? c->in : c->y_size;
    cot_status status = COT_OK;
    for (int d = 0; d <= c->n && status == COT_OK; d++) status = check_direction(c, d, jvp_worst, vjp_worst);
    if (status == COT_OK) return status;
    if (c->t->status != COT_OK) tell(c, "%s%s", order_text(c), c->t->errors.message);
    cot_tape_clear_error(c->t);
    return status;
}

static cot_status check_arguments(check *c, int order) {
    if (!c->f || c->n < 1 || !c->xs || order < 1 || order > 2) {
        tell(c, "[check_grads] f %s, n = %d, order = %d; f is needed, at least one input, and order 1 or 2",
             c->f ? "given" : "NULL", c->n, order);
        return COT_VALUE;
    }
    for (int k = 0; k < c->n; k++) {
        const cot_array *x = &c->xs[k];
        bool             shaped = x->shape.ndim >= 0 && x->shape.ndim <= COT_MAX_NDIM;
        for (int i = 0; shaped && i < x->shape.ndim; i++) shaped = x->shape.dim[i] >= 0;
        if (x->dtype != COT_F64) {
            tell(c, "[check_grads] xs[%d] has dtype %s; derivatives are checked in f64", k, cot_dtype_name(x->dtype));
            return COT_DTYPE;
        }
        if (!shaped || cot__count(x->shape.ndim, x->shape.dim) != x->size || (!x->data && x->size)) {
            tell(c, "[check_grads] xs[%d] has size %lld, which is not that of its shape, or no data", k,
                 (long long)x->size);
            return COT_SHAPE;
        }
        c->in += x->size;
    }
    return COT_OK;
}

static const cot_allocator ordinary = {0};

/* Takes memory for everything. f runs once to show how much it returns. */
static cot_status open_check(check *c) {
    c->vars_bytes = 3 * (size_t)c->n * sizeof *c->leaves;
    c->leaves = cot__alloc(&ordinary, c->vars_bytes);
    size_t  bytes = (size_t)(c->in ? c->in : 1) * sizeof(double);
    double *x = cot__alloc(&ordinary, bytes), *to = x;
    for (int k = 0; k < c->n && x; k++) {
        if (c->xs[k].size) memcpy(to, c->xs[k].data, (size_t)c->xs[k].size * sizeof *to);
        to += c->xs[k].size;
    }
    cot_status status = c->leaves && x && c->t ? COT_OK : COT_MEMORY;
    if (status == COT_OK) {
        cot_mark m = cot_tape_mark(c->t);
        c->grads = c->leaves + c->n;
        c->tangents = c->grads + c->n;
        c->order = 1;
        status = record(c, x);
        if (status != COT_OK) tell(c, "%s", c->t->errors.message);
        c->y_size = cot_size(c->y);
        cot_tape_rewind(c->t, m);
    }
    if (status == COT_OK) {
        int64_t out = c->y_size > c->in ? c->y_size : c->in;
        int64_t all =
            cot__size_add(cot__size_mul(4, c->in), cot__size_add(cot__size_mul(5 + LEVELS, out), c->y_size + 1));
        if (cot__size_bytes(all, sizeof(double), &c->block_bytes)) c->block = cot__alloc(&ordinary, c->block_bytes);
        double *p = c->block;
        if (p) {
            c->x = p, c->point = p += c->in, c->v = p += c->in, c->vjp = p += c->in, p += c->in;
            c->base = p, c->up = p += out, c->down = p += out, c->jvp = p += out, c->w = p += out, c->steps = p += out;
            c->seed = p + LEVELS * out;
            memcpy(c->x, x, (size_t)c->in * sizeof *x);
            for (int64_t i = 0; i < c->y_size; i++) c->seed[i] = random_number(c);
        } else
            status = COT_MEMORY;
    }
    cot__free(&ordinary, x, bytes);
    return status;
}

cot_status cot_check_grads(cot_function f, void *user, int n, const cot_array *xs, int order,
                           cot_check_report *report) {
    cot_check_report own;
    check            c = {.f = f, .user = user, .n = n, .xs = xs, .report = report ? report : &own};
    *c.report = (cot_check_report){0};
    cot_status status = check_arguments(&c, order);
    if (status != COT_OK) return status;
    c.t = cot_tape_create(NULL);
    status = open_check(&c);
    if (status == COT_OK) status = check_order(&c, 1, &c.report->jvp_error, &c.report->vjp_error);
    if (status == COT_OK && order == 2) status = check_order(&c, 2, &c.report->second_error, &c.report->second_error);
    if (status == COT_MEMORY) tell(&c, "[check_grads] out of memory");
    if (status == COT_OK && !c.failed && !c.report->message[0])
        snprintf(c.report->message, sizeof c.report->message, "%s", c.doubt);
    cot__free(&ordinary, c.block, c.block_bytes);
    cot__free(&ordinary, c.leaves, c.vars_bytes);
    cot_tape_destroy(c.t);
    return status != COT_OK ? status : c.failed ? COT_GRAD : COT_OK;
}
