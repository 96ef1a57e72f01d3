/* run_file.c: lines to series. */
#include "watch/run_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/data_file.h"

enum { MOST_BYTES = 2000000000, MOST_SERIES = 1000 };

/* The series of this name, which takes the name over if it is new. NULL when memory is short. */
static run_series *series_of(run_file *r, char **name) {
    for (int k = 0; k < r->n; k++)
        if (strcmp(r->series[k].name, *name) == 0) return &r->series[k];
    run_series *more = realloc(r->series, ((size_t)r->n + 1) * sizeof *more);
    if (!more) return NULL;
    r->series       = more;
    r->series[r->n] = (run_series){.name = *name};
    *name           = NULL;
    return &r->series[r->n++];
}

static bool add(run_series *s, double step, double seconds, double value) {
    if (s->n == s->room) {
        int64_t room = s->room ? 2 * s->room : 256;
        double *more = malloc(3 * (size_t)room * sizeof *more);
        if (!more) return false;
        if (s->n) {
            memcpy(more, s->step, (size_t)s->n * sizeof *more);
            memcpy(more + room, s->seconds, (size_t)s->n * sizeof *more);
            memcpy(more + 2 * room, s->value, (size_t)s->n * sizeof *more);
        }
        free(s->step);
        s->step = more, s->seconds = more + room, s->value = more + 2 * room, s->room = room;
    }
    s->step[s->n] = step, s->seconds[s->n] = seconds, s->value[s->n++] = value;
    return true;
}

static bool take_row(run_file *r, run_row *row, failure *f) {
    if (!isnan(row->steps) && !row->has_step) r->steps = row->steps;
    if (!row->has_step) return true;
    r->last = row->step;
    for (int k = 0; k < row->n; k++) {
        run_series *s = series_of(r, &row->names[k]);
        if (!s || !add(s, row->step, row->seconds, row->values[k])) return failure_memory(f);
        if (r->n > MOST_SERIES)
            return failure_set(f, EXIT_RUN, "file", "%.300s has more than %d names of numbers", r->path, MOST_SERIES);
    }
    return true;
}

static bool take_line(run_file *r, const char *text, size_t n, int64_t line, failure *f) {
    run_row     row;
    bool        memory, fine = true;
    const char *what = run_row_read(&row, text, n, &memory);
    if (memory)
        fine = failure_memory(f);
    else if (what)
        fine = failure_set(f, EXIT_RUN, "file", "line %lld of %.300s is no row of a run: it has %s", (long long)line,
                           r->path, what);
    fine = fine && take_row(r, &row, f);
    run_row_free(&row);
    return fine;
}

bool run_file_parse(run_file *r, const char *path, const char *text, size_t size, failure *f) {
    int64_t line = 1;
    bool    fine = true;
    *r           = (run_file){.path = path, .bytes = (int64_t)size, .steps = NAN, .last = NAN};
    for (const char *at = text, *end; fine && (end = memchr(at, '\n', size - (size_t)(at - text))); at = end + 1) {
        fine = end == at || take_line(r, at, (size_t)(end - at), line, f);
        line++;
    }
    return fine;
}

bool run_file_read(run_file *r, const char *path, failure *f) {
    size_t size = 0;
    *r          = (run_file){.path = path};
    char *text  = source_text(path, "the run", MOST_BYTES, &size, f);
    bool  fine  = text && run_file_parse(r, path, text, size, f);
    free(text);
    return fine;
}

void run_file_free(run_file *r) {
    for (int k = 0; k < r->n; k++) {
        free(r->series[k].name);
        free(r->series[k].step);
    }
    free(r->series);
    r->series = NULL;
    r->n      = 0;
}
