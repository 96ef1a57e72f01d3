/* line_search.c: bracketing, then zooming with cubic interpolation (Nocedal and Wright, algorithms
 * 3.5 and 3.6).
 *
 * The interval always has at one end, `low`, the lowest point so far that satisfies the first
 * condition, where the function falls towards the other end. Near a minimum the decrease is lost in
 * the rounding of φ: a few units in its last place count as no increase, and the slopes decide. */
#include "optim/line_search.h"

#include <float.h>
#include <math.h>

static const double enough = 1e-4, flat = 0.9;
enum { MOST_EVALUATIONS = 40 };

typedef struct point { double a, value, slope; } point;

typedef struct search {
    const cot__line *l;
    int              left;
    bool             failed;
} search;

static point evaluate(search *s, double a) {
    point p = {a, (double)NAN, (double)NAN};
    s->left--;
    if (!s->l->at(s->l->user, a, &p.value, &p.slope)) s->failed = true;
    return p;
}

static bool usable(point p) { return isfinite(p.value) && isfinite(p.slope); }

/* The first condition: a decrease in proportion to the step. */
static bool decreases(const search *s, point p) {
    const cot__line *l = s->l;
    return usable(p) && p.value <= l->value + enough * p.a * l->slope + 4 * DBL_EPSILON * fabs(l->value);
}
/* The second: most of the slope is gone. */
static bool flattens(const search *s, point p) { return fabs(p.slope) <= -flat * s->l->slope; }

/* The least of the cubic through both values and slopes; NaN if it has none. */
static double cubic_least(point p, point q) {
    double d1 = p.slope + q.slope - 3 * (p.value - q.value) / (p.a - q.a), root = d1 * d1 - p.slope * q.slope;
    if (!(root >= 0)) return (double)NAN;
    double d2 = q.a > p.a ? sqrt(root) : -sqrt(root);
    return q.a - (q.a - p.a) * ((q.slope + d2 - d1) / (q.slope - p.slope + 2 * d2));
}

/* A point well inside the interval. */
static double between(point low, point high) {
    double least = usable(high) ? cubic_least(low, high) : (double)NAN, width = fabs(high.a - low.a);
    double from = fmin(low.a, high.a) + 0.1 * width, to = fmax(low.a, high.a) - 0.1 * width;
    return least >= from && least <= to ? least : low.a + 0.5 * (high.a - low.a);
}

/* What is left when nothing satisfies both conditions: `low`, evaluated again. */
static cot__line_end settle(search *s, point low, double *a) {
    if (s->failed) return COT__LINE_FAILED;
    if (low.a == 0) return COT__LINE_NONE;
    *a = low.a;
    evaluate(s, low.a);
    return s->failed ? COT__LINE_FAILED : COT__LINE_LOWER;
}

static cot__line_end zoom(search *s, point low, point high, double *a) {
    while (s->left > 0 && fabs(high.a - low.a) > 4 * DBL_EPSILON * fmax(low.a, high.a)) {
        point p = evaluate(s, between(low, high));
        if (s->failed) break;
        if (!decreases(s, p) || p.value > low.value) {
            high = p;
            continue;
        }
        if (flattens(s, p)) return *a = p.a, COT__LINE_FOUND;
        if (p.slope * (high.a - low.a) >= 0) high = low;
        low = p;
    }
    return settle(s, low, a);
}

cot__line_end cot__line_search(const cot__line *l, double *a) {
    search s = {l, MOST_EVALUATIONS, false};
    point  before = {0, l->value, l->slope};
    double next = *a;
    while (s.left > 0) {
        point p = evaluate(&s, next);
        if (s.failed) return COT__LINE_FAILED;
        if (!decreases(&s, p) || (before.a > 0 && p.value >= before.value && !flattens(&s, p)))
            return zoom(&s, before, p, a);
        if (flattens(&s, p)) return *a = p.a, COT__LINE_FOUND;
        if (p.slope >= 0) return zoom(&s, p, before, a);
        /* still falling: go further, where the cubic says, within bounds */
        double least = cubic_least(before, p), farthest = p.a + 10 * (p.a - before.a);
        next = least > p.a + (p.a - before.a) && least <= farthest ? least : p.a + 2 * (p.a - before.a);
        before = p;
        if (!isfinite(next)) break;
    }
    return settle(&s, before, a);
}
