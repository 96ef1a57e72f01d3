/* watch.c: each step goes to the files, and now and then to the line of progress. In a terminal the
 * line is drawn in place, at most ten times a second; elsewhere it is a line every five seconds. */
#include "watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "io/system.h"
#include "watch/events.h"
#include "watch/peak.h"
#include "watch/run_log.h"
#include "watch/status.h"

enum { MOST_NUMBERS = 63 };
#define IN_PLACE 0.1 /* seconds between two drawings */
#define LINES    5.0 /* seconds between two lines */

struct watch {
    run_log     log;
    append_file events;
    run_status  s;
    double      start, shown; /* times: of the opening, of the last drawing */
    bool        quiet, redraws, visible;
};

static void clear_line(watch *w) {
    if (w->visible) fputs("\r\033[K", stderr);
    w->visible = false;
}

/* A line that stays; the line of progress goes on below it. */
static void say(watch *w, const char *text) {
    clear_line(w);
    system_put_safely(stderr, text);
    fputs("\n", stderr);
}

static void draw(watch *w, double now, bool stays) {
    char line[400];
    w->shown    = now;
    w->s.memory = system_peak_memory();
    status_time(&w->s, now);
    status_text(&w->s, w->redraws ? system_width(stderr) : 200, line, sizeof line);
    if (w->redraws) fputs("\r\033[K", stderr);
    system_put_safely(stderr, line);
    if (!w->redraws || stays) fputs("\n", stderr);
    w->visible = w->redraws && !stays;
    fflush(stderr);
}

watch *watch_open(const watch_options *o, failure *f) {
    watch *w = calloc(1, sizeof *w);
    if (!w) {
        failure_memory(f);
        return NULL;
    }
    w->quiet   = o->quiet;
    w->redraws = system_redraws(stderr);
    w->s       = (run_status){.name      = o->name,
                              .step      = o->resumed,
                              .steps     = o->steps,
                              .rate_step = o->resumed,
                              .examples  = o->examples,
                              .unit      = o->unit,
                              .flops     = o->flops};
    bool fine  = !o->log || run_log_open(&w->log, o, f);
    fine       = fine && (!o->tensorboard || events_open(&w->events, o->tensorboard, o->resumed, system_date(), f));
    if (!fine) {
        run_log_close(&w->log);
        append_close(&w->events);
        free(w);
        return NULL;
    }
    if (!o->quiet && o->flops > 0) w->s.peak = peak_measure();
    w->start = w->shown = w->s.rate_at = system_seconds();
    return w;
}

static void tell_missed(watch *w, const append_file *a) {
    char text[500];
    if (append_is_left(a)) return;
    snprintf(text, sizeof text, "cotangent: cannot write %.300s: %s; the run goes on", append_name(a),
             strerror(a->error));
    say(w, text);
}

static void put_row(watch *w, int64_t step, double now, int n, const watch_number *numbers, const char *note) {
    if (!run_log_row(&w->log, step, now - w->start, n, numbers, note)) tell_missed(w, &w->log.file);
    if (n > 0 && !events_row(&w->events, system_date(), step, n, numbers)) tell_missed(w, &w->events);
}

void watch_step(watch *w, int64_t step, double loss, int n, const watch_number *more) {
    watch_number all[MOST_NUMBERS] = {{"loss", loss}};
    double       now               = system_seconds();
    if (n > MOST_NUMBERS - 1) n = MOST_NUMBERS - 1;
    if (n > 0) memcpy(all + 1, more, (size_t)n * sizeof *all);
    w->s.step = step;
    status_loss(&w->s, loss);
    put_row(w, step, now, n + 1, all, NULL);
    if (!w->quiet && now - w->shown >= (w->redraws ? IN_PLACE : LINES)) draw(w, now, false);
}

void watch_row(watch *w, int64_t step, int n, const watch_number *numbers) {
    char line[400];
    int  used = snprintf(line, sizeof line, "step %lld", (long long)step);
    if (n > MOST_NUMBERS) n = MOST_NUMBERS;
    put_row(w, step, system_seconds(), n, numbers, NULL);
    if (w->quiet) return;
    for (int k = 0; k < n && used < 300; k++)
        used += cot__format(line + used, sizeof line - (size_t)used, "  %.40s %.4g", numbers[k].name, numbers[k].value);
    say(w, line);
}

void watch_note(watch *w, int64_t step, const char *text) {
    char line[400];
    put_row(w, step, system_seconds(), 0, NULL, text);
    snprintf(line, sizeof line, "step %lld  %.360s", (long long)step, text);
    if (!w->quiet) say(w, line);
}

void watch_say(watch *w, const char *text) { say(w, text); }

static void tell_lost(watch *w, const append_file *a) {
    char text[500];
    if (!a->path || a->missed == 0 || append_is_left(a)) return;
    snprintf(text, sizeof text, "cotangent: %.300s lacks %lld row%s: %s", append_name(a), (long long)a->missed,
             a->missed == 1 ? "" : "s", strerror(a->error));
    say(w, text);
}

void watch_close(watch *w) {
    if (!w) return;
    if (!w->quiet) draw(w, system_seconds(), true);
    tell_lost(w, &w->log.file);
    tell_lost(w, &w->events);
    run_log_close(&w->log);
    append_close(&w->events);
    free(w);
}
