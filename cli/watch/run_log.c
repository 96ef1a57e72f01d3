/* run_log.c: a row is made in memory and written at once, so that a reader sees whole lines, but
 * for the last one. */
#include "watch/run_log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/memory_file.h"
#include "io/data_file.h"
#include "trace/json/json.h"
#include "watch/run_row.h"

enum { MOST_BYTES = 2000000000 };

typedef struct kept {
    int64_t bytes;
    double  seconds, steps; /* of the last row; of the last line without a step (NAN: none) */
} kept;

/* How much of a file was written up to a step. Whatever is no log of a run is not touched. */
static bool find_kept(const char *path, int64_t resumed, kept *k, failure *f) {
    size_t size = 0;
    *k          = (kept){.steps = NAN};
    if (!cot__source_exists(path)) return true;
    char *text = source_text(path, "the run", MOST_BYTES, &size, f);
    bool  fine = text != NULL, going = true;
    long  line = 1;
    for (char *at = text, *end; fine && going && (end = memchr(at, '\n', size - (size_t)(at - text)));
         at       = end + 1, line++) {
        run_row     row;
        bool        memory;
        const char *what = run_row_read(&row, at, (size_t)(end - at), &memory);
        if (memory)
            fine = failure_memory(f);
        else if (what)
            fine = failure_set(f, EXIT_RUN, "file", "cannot go on with %.300s: line %ld is no row of a run, it has %s",
                               path, line, what);
        going = fine && !(row.has_step && row.step > (double)resumed);
        if (going) {
            k->bytes = end + 1 - text;
            if (row.has_step && row.seconds >= 0) k->seconds = row.seconds;
            if (!row.has_step) k->steps = row.steps;
        }
        run_row_free(&row);
    }
    free(text);
    return fine;
}

static bool put(run_log *l, memory_file *m, failure *f) {
    bool fine = memory_file_close(m, f) ? append_record(&l->file, m->text, m->size) : append_miss(&l->file, ENOMEM);
    memory_file_free(m);
    return fine;
}

/* The first line; also when the run is to have another number of steps than it said before. */
static bool put_head(run_log *l, const watch_options *o) {
    failure     f = {0};
    memory_file m;
    if (!memory_file_open(&m, &f)) return append_miss(&l->file, ENOMEM);
    cot__json j = cot__json_to(m.file);
    cot__json_open(&j, '{');
    cot__json_key(&j, "run"), cot__json_string(&j, o->name);
    if (o->steps > 0) cot__json_key(&j, "steps"), cot__json_integer(&j, o->steps);
    cot__json_close(&j, '}');
    fputs("\n", m.file);
    return put(l, &m, &f);
}

bool run_log_open(run_log *l, const watch_options *o, failure *f) {
    kept k = {.steps = NAN};
    *l     = (run_log){0};
    bool standard = strcmp(o->log, "-") == 0; /* a file there is not gone on with */
    if (o->resumed > 0 && !standard && !find_kept(o->log, o->resumed, &k, f)) return false;
    if (!append_open(&l->file, o->log, k.bytes, f)) return false;
    l->before = k.seconds;
    if (k.bytes > 0 && (o->steps <= 0 || k.steps == (double)o->steps)) return true;
    if (put_head(l, o) || append_is_left(&l->file)) return true;
    return failure_file(f, "write", append_name(&l->file), l->file.error);
}

bool run_log_row(run_log *l, int64_t step, double seconds, int n, const watch_number *numbers, const char *note) {
    failure     f = {0};
    memory_file m;
    if (!l->file.path) return true;
    if (!memory_file_open(&m, &f)) return append_miss(&l->file, ENOMEM);
    cot__json j = cot__json_to(m.file);
    cot__json_open(&j, '{');
    cot__json_key(&j, "step"), cot__json_integer(&j, step);
    cot__json_key(&j, "seconds"), cot__json_number(&j, round(1000 * (l->before + seconds)) / 1000);
    for (int k = 0; k < n; k++) cot__json_key(&j, numbers[k].name), cot__json_number(&j, numbers[k].value);
    if (note) cot__json_key(&j, "note"), cot__json_string(&j, note);
    cot__json_close(&j, '}');
    fputs("\n", m.file);
    return put(l, &m, &f);
}

void run_log_close(run_log *l) { append_close(&l->file); }
