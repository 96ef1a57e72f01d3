/* schedule.c: rates as functions of the number of a step. */
#include "optim/optim.h"

#include "base/math/elementary.h"

static const double pi = 3.14159265358979323846;

/* From `from` (at 0) to `to` (at 1) along half a wave. */
static double half_wave(double from, double to, double at) { return to + (from - to) / 2 * (1 + cot__cos(pi * at)); }

static double one_cycle(const cot_schedule *s, double t) {
    double rise = s->rise != 0 ? s->rise : 0.3, last = (double)s->steps - 1, top = rise * (double)s->steps - 1;
    double low = s->rate / (s->divide != 0 ? s->divide : 25), end = low / (s->divide_end != 0 ? s->divide_end : 1e4);
    if (t <= top) return top > 0 ? half_wave(low, s->rate, t / top) : s->rate;
    return t < last ? half_wave(s->rate, end, (t - top) / (last - top)) : end;
}

/* The rate t steps after the warm-up. */
static double after_warmup(const cot_schedule *s, int64_t t) {
    double at = (double)t / (double)s->steps;
    switch (s->kind) {
    case COT_RATE_STAIRS: return s->rate * cot__pow(s->factor != 0 ? s->factor : 0.1, (double)(t / s->steps));
    case COT_RATE_LINEAR: return at < 1 ? s->rate + (s->end - s->rate) * at : s->end;
    case COT_RATE_COSINE: return at < 1 ? half_wave(s->rate, s->end, at) : s->end;
    case COT_RATE_ONE_CYCLE: return one_cycle(s, (double)t);
    default: return s->rate;
    }
}

static bool in_range(const cot_schedule *s) {
    bool known = (unsigned)s->kind <= COT_RATE_ONE_CYCLE, long_enough = s->kind == COT_RATE_CONSTANT || s->steps >= 1;
    bool rates = cot__is_rate(s->rate) && cot__is_rate(s->end) && cot__is_rate(s->factor) && cot__is_rate(s->start);
    bool cycle = s->rise >= 0 && s->rise <= 1 && cot__is_rate(s->divide) && cot__is_rate(s->divide_end);
    return known && long_enough && rates && cycle && s->warmup >= 0;
}

double cot_schedule_rate(const cot_schedule *s, int64_t step) {
    if (!s || step < 0 || !in_range(s)) return (double)NAN;
    if (step >= s->warmup) return after_warmup(s, step - s->warmup);
    return s->rate * (s->start + (1 - s->start) * ((double)step / (double)s->warmup));
}
