/* settings.c: what an optimiser is told: defaults, ranges, the states that follow from it, and the
 * factors of a step, which are computed in f64 and rounded where they are used. */
#include "optim/optim.h"

#include "base/math/elementary.h"
#include "rules/words/updates.h"

const char *const cot__state_names[COT__STATES] = {"m", "v", "momentum", "average"};

static bool adaptive(const cot_optim_options *o) { return o->kind == COT_ADAM || o->kind == COT_ADAMW; }

cot_optim_options cot__optim_defaults(cot_optim_options o) {
    if (o.alpha == 0) o.alpha = 0.99;
    if (o.beta1 == 0) o.beta1 = 0.9;
    if (o.beta2 == 0) o.beta2 = 0.999;
    if (o.eps == 0) o.eps = 1e-8;
    return o;
}

static bool part_of_one(double v) { return v >= 0 && v < 1; }

static bool check_groups(cot_tape *t, const char *op, const cot_optim_options *o) {
    if (o->group_count < 0 || (o->group_count > 0 && !o->groups)) {
        cot__fail(t, COT_VALUE, "[%s] there are %d groups%s; list as many, or leave both out", op, o->group_count,
                  o->groups ? "" : ", but the list is NULL");
        return false;
    }
    for (int k = 0; o->groups && k < o->group_count; k++) {
        if (cot__is_rate(o->groups[k].scale) && cot__is_rate(o->groups[k].decay)) continue;
        cot__fail(t, COT_VALUE, "[%s] group %d has scale %g, decay %g; they must be finite and not negative", op, k,
                  o->groups[k].scale, o->groups[k].decay);
        return false;
    }
    return true;
}

bool cot__optim_check(cot_tape *t, const char *op, const cot_optim_options *o) {
    if ((unsigned)o->kind > COT_ADAMW)
        cot__fail(t, COT_VALUE, "[%s] there is no optimiser %d; kinds are COT_SGD, COT_RMSPROP, COT_ADAM, COT_ADAMW",
                  op, (int)o->kind);
    else if (!part_of_one(o->alpha) || !part_of_one(o->beta1) || !part_of_one(o->beta2) || !part_of_one(o->average))
        cot__fail(t, COT_VALUE, "[%s] alpha %g, betas %g and %g, average %g; they must be in [0, 1)", op, o->alpha,
                  o->beta1, o->beta2, o->average);
    else if (!cot__is_rate(o->momentum) || !cot__is_rate(o->eps) || !cot__is_rate(o->decay))
        cot__fail(t, COT_VALUE, "[%s] momentum %g, eps %g, decay %g; they must be finite and not negative", op,
                  o->momentum, o->eps, o->decay);
    else if (o->nesterov && (o->momentum == 0 || o->kind != COT_SGD))
        cot__fail(t, COT_VALUE, "[%s] nesterov is set; it is for COT_SGD with a momentum", op);
    else if (o->momentum != 0 && adaptive(o))
        cot__fail(t, COT_VALUE, "[%s] the momentum is %g; it is for COT_SGD and COT_RMSPROP, of Adam it is beta1", op,
                  o->momentum);
    else if (o->centered && o->kind != COT_RMSPROP)
        cot__fail(t, COT_VALUE, "[%s] centered is set; it is for COT_RMSPROP", op);
    else if (o->eps_hat && !adaptive(o))
        cot__fail(t, COT_VALUE, "[%s] eps_hat is set; it is for COT_ADAM and COT_ADAMW", op);
    else return check_groups(t, op, o);
    return false;
}

unsigned cot__optim_keeps(const cot_optim_options *o) {
    bool     rms = o->kind == COT_RMSPROP, moving = o->momentum != 0 && !adaptive(o);
    unsigned keeps = o->average != 0 ? 1u << COT__AVERAGE : 0;
    if (adaptive(o) || (rms && o->centered)) keeps |= 1u << COT__MEAN;
    if (adaptive(o) || rms) keeps |= 1u << COT__SQUARE;
    if (moving) keeps |= 1u << COT__VELOCITY;
    return keeps;
}

bool cot__optim_group(cot_tape *t, const char *op, const cot_optim_options *o, int group, cot_optim_group *out) {
    *out = (cot_optim_group){1, o->decay};
    if (!o->groups) return true;
    if (group < 0 || group >= o->group_count) {
        cot__fail(t, COT_VALUE, "[%s] a parameter is in group %d; the optimiser has %d", op, group, o->group_count);
        return false;
    }
    *out = o->groups[group];
    if (out->scale == 0) out->scale = 1;
    return true;
}

#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define SQRT(a) sqrt(a)
#define POW(a, b) cot__pow(a, b)

cot__update cot__update_of(const cot_optim_options *o, double rate, double decay, int64_t step) {
    cot__update u = {.kind = o->kind, .nesterov = o->nesterov, .rate = rate, .decay = decay, .keep = 1,
                     .momentum = o->momentum, .b1 = o->beta1, .b2 = o->beta2, .eps = o->eps, .average = o->average};
    if (o->kind == COT_RMSPROP) u.b2 = o->alpha;
    if (o->kind == COT_ADAMW) u.keep = COT__KEPT(rate, decay), u.decay = 0;
    if (!adaptive(o)) return u;
    u.rate = COT__CORRECTED(rate, o->beta1, (double)step);
    if (o->eps_hat) u.rate = MUL(u.rate, COT__SHORT(o->beta2, (double)step));
    u.spread = o->eps_hat ? 1 : COT__SPREAD(o->beta2, (double)step);
    return u;
}
