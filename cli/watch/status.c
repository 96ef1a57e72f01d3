/* status.c: numbers of a run that is going on. */
#include "watch/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define KEEP    0.98 /* of the mean loss, at each step */
#define SECONDS 5.0  /* after which an old rate counts 1/e */

void status_loss(run_status *s, double loss) {
    if (!isfinite(loss)) {
        s->loss   = loss;
        s->weight = 0;
        return;
    }
    double weight = 1 - KEEP * (1 - s->weight), part = (1 - KEEP) / weight;
    s->loss   = s->weight > 0 ? s->loss + part * (loss - s->loss) : loss;
    s->weight = weight;
}

void status_time(run_status *s, double now) {
    double passed = now - s->rate_at;
    if (!(passed > 0) || s->step <= s->rate_step) return;
    double rate = (double)(s->step - s->rate_step) / passed, old = s->rate > 0 ? exp(-passed / SECONDS) : 0;
    s->rate      = old * s->rate + (1 - old) * rate;
    s->rate_at   = now;
    s->rate_step = s->step;
}

/* 0:21, 3:05, 1:02:03, 2d 3h */
static void duration(char *buf, size_t size, double seconds) {
    long long s = seconds < 1e12 ? (long long)ceil(seconds) : 0;
    if (s >= 172800)
        snprintf(buf, size, "%lldd %lldh left", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(buf, size, "%lld:%02lld:%02lld left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, size, "%lld:%02lld left", s / 60, s % 60);
}

/* Three digits, and a letter for thousands: 7.25 steps/s, 26.4k examples/s, 84.0 MB. */
static void amount(char *buf, size_t size, double v, const char *before, const char *unit) {
    static const char *const letters[] = {"", "k", "M", "G", "T", "P"};
    int                      k         = 0;
    while (v >= 999.5 && k < 5) v /= 1000, k++;
    cot__format(buf, size, "%.*f%s%s%s", v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, before, letters[k], unit);
}

/* Adds a field behind two blanks if there is room for it and for those before it. */
static void field(char *buf, size_t size, int width, bool *fits, const char *text) {
    size_t used = strlen(buf), n = strlen(text) + (used ? 2 : 0);
    *fits = *fits && used + n < size && (used == 0 || (int)(used + n) < width);
    if (*fits) snprintf(buf + used, size - used, "%s%s", used ? "  " : "", text);
}

const char *status_text(const run_status *s, int width, char *buf, size_t size) {
    char text[96];
    bool fits = true;
    buf[0]    = 0;
    if (s->steps > 0)
        cot__format(text, sizeof text, "%.40s %lld/%lld %.0f%%", s->name, (long long)s->step, (long long)s->steps,
                    floor(100.0 * (double)s->step / (double)s->steps));
    else
        snprintf(text, sizeof text, "%.40s %lld", s->name, (long long)s->step);
    field(buf, size, width, &fits, text);
    cot__format(text, sizeof text, "loss %.4g", isnan(s->loss) ? fabs(s->loss) : s->loss);
    /* a run that has just gone on has none */
    if (s->weight > 0 || !isfinite(s->loss)) field(buf, size, width, &fits, text);
    if (!(s->rate > 0)) return buf;
    if (s->steps > s->step) {
        duration(text, sizeof text, (double)(s->steps - s->step) / s->rate);
        field(buf, size, width, &fits, text);
    }
    amount(text, sizeof text, s->rate, "", " steps/s");
    field(buf, size, width, &fits, text);
    if (s->examples > 0) {
        char unit[32];
        snprintf(unit, sizeof unit, " %.20s/s", s->unit ? s->unit : "examples");
        amount(text, sizeof text, s->rate * s->examples, "", unit);
        field(buf, size, width, &fits, text);
    }
    if (s->memory > 0) {
        amount(text, sizeof text, s->memory, " ", "B");
        field(buf, size, width, &fits, text);
    }
    if (s->peak > 0 && s->flops > 0) {
        cot__format(text, sizeof text, "%.0f%% of matmul", 100 * s->rate * s->flops / s->peak);
        field(buf, size, width, &fits, text);
    }
    return buf;
}
