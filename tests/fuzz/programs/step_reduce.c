/* step_reduce.c: operations along axes: sums, extremes, norms, cumulative operations, order,
 * softmax. */
#include "program.h"

#include <math.h>

typedef cot_var (*reduction)(cot_var, cot_axes);

STEP_FUNCTION(reduce) {
    static const struct {
        const char *name;
        reduction   f;
    } table[] = {
        {"cot_sum", cot_sum},       {"cot_mean", cot_mean},
        {"cot_prod", cot_prod},     {"cot_max", cot_max},
        {"cot_min", cot_min},       {"cot_variance", cot_variance},
        {"cot_std", cot_std},       {"cot_logsumexp", cot_logsumexp},
        {"cot_any", cot_any},       {"cot_all", cot_all},
        {"cot_argmax", cot_argmax}, {"cot_argmin", cot_argmin},
    };
    unsigned which = choose(c, sizeof table / sizeof *table);
    value    x     = any_of(f, c);
    if (x.name < 0) return;
    cot_axes axes = choose_axes(f, c, x);
    say(f, "%s(%s, %s)", table[which].name, name_of(x), axes_text(axes));
    put(f, table[which].f(x.var, axes));
}

STEP_FUNCTION(norm) {
    static const double orders[] = {2, 1, INFINITY, 3, 0.5, 1.5, -1, 4};
    value               x        = float_of(f, c);
    double              order    = orders[choose(c, 8)];
    if (x.name < 0) return;
    cot_axes axes = choose_axes(f, c, x);
    say(f, "cot_norm(%s, %s, %s)", name_of(x), number_text(order), axes_text(axes));
    put(f, cot_norm(x.var, order, axes));
}

STEP_FUNCTION(cumulative) {
    static const struct {
        const char *name;
        cot_var (*f)(cot_var, int, bool);
    } table[] = {
        {"cot_cumsum", cot_cumsum}, {"cot_cumprod", cot_cumprod}, {"cot_cummax", cot_cummax},
        {"cot_cummin", cot_cummin}, {"cot_sort", cot_sort},       {"cot_argsort", cot_argsort},
    };
    unsigned which = choose(c, sizeof table / sizeof *table);
    value    x     = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    int  axis = choose_axis(f, c, x, 0);
    bool back = chance(c, 2);
    say(f, "%s(%s, %d, %s)", table[which].name, name_of(x), axis, back ? "true" : "false");
    put(f, table[which].f(x.var, axis, back));
}

STEP_FUNCTION(softmax) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    int  axis = choose_axis(f, c, x, 0);
    bool log  = chance(c, 2);
    say(f, "%s(%s, %d)", log ? "cot_log_softmax" : "cot_softmax", name_of(x), axis);
    put(f, log ? cot_log_softmax(x.var, axis) : cot_softmax(x.var, axis));
}

static bool is_scalar(value x, value beside) { return is_float(x, beside) && rank(x) == 0; }

STEP_FUNCTION(scalars) {
    value x = pick(f, c, is_scalar, no_value), y = pick(f, c, is_scalar, no_value), z = pick(f, c, is_scalar, no_value);
    if (x.name < 0 || y.name < 0 || z.name < 0) return;
    cot_var xs[3] = {x.var, y.var, z.var}, ys[3] = {z.var, x.var, x.var};
    switch (choose(c, 3)) {
    case 0: say(f, "cot_sum_of(3, %s %s %s)", name_of(x), name_of(y), name_of(z)), put(f, cot_sum_of(3, xs)); break;
    case 1:
        say(f, "cot_logsumexp_of(3, %s %s %s)", name_of(x), name_of(y), name_of(z)), put(f, cot_logsumexp_of(3, xs));
        break;
    default:
        say(f, "cot_dot_of(3, %s %s %s, %s %s %s)", name_of(x), name_of(y), name_of(z), name_of(z), name_of(x),
            name_of(x));
        put(f, cot_dot_of(3, xs, ys));
    }
}

STEP_FUNCTION(order) {
    value x = pick(f, c, has_axes, no_value), v = any_of(f, c);
    if (x.name < 0) return;
    int axis = choose_axis(f, c, x, 0);
    if (chance(c, 3) && rank(x) == 1) {
        say(f, "cot_searchsorted(cot_sort(%s, 0, false), %s, false)", name_of(x), name_of(v));
        put(f, cot_searchsorted(cot_sort(x.var, 0, false), v.var, false));
        return;
    }
    int64_t k  = (int64_t)choose(c, (unsigned)extent(x, axis) + 1 + wild(f, c));
    cot_var at = {NULL, 0};
    say(f, "cot_topk(%s, %lld, %d, &indices)", name_of(x), (long long)k, axis);
    put(f, cot_topk(x.var, k, axis, &at));
    if (cot_is_valid(at)) say(f, "indices"), put(f, at);
}
