/* program_test.h: bodies as programs, programs as runs, and programs in files, in one line each. */
#ifndef COT_PROGRAM_TEST_H
#define COT_PROGRAM_TEST_H

#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "program/file/file.h"
#include "program/run.h"
#include "tape/lower.h"
#include "tape/record_job.h"

/* The program of a body like these values; NULL: it cannot be recorded so, or not lowered yet. */
static inline cot__program *lower(cot_tape *t, const char *name, cot_fn fn, void *user, int n, const cot_var *xs,
                                  int m) {
    cot__not_yet  not_yet = {NULL, NULL};
    cot__region  *r = cot__region_record(t, "test", fn, user, n, xs, m);
    t->mode.compiling = true; /* solvers and functions of the user's need no tape then */
    cot__program *p = r ? cot__region_lower(t, r, NULL, &not_yet) : NULL;
    t->mode.compiling = false;
    TEST_CHECK(!r || p || not_yet.why, "%s: %s", name, cot_tape_message(t));
    return p;
}

static inline cot__run *prepare(cot_tape *t, const char *name, const cot__program *p) {
    char        why[512];
    cot__text   text = cot__text_buffer(why, sizeof why);
    cot__caller caller = cot__tape_caller(t, "test");
    bool        legal = cot__program_check(p, &text);
    cot__run   *run = legal ? cot__run_create(p, t->backend, NULL, NULL, &caller) : NULL;
    TEST_CHECK(legal, "%s: %s", name, why);
    TEST_CHECK(run || !legal, "%s: %s", name, cot_tape_message(t));
    return run;
}

/* ---- files in memory ------------------------------------------------------------------------- */

typedef struct saved { unsigned char *at; size_t size, room; } saved;

/* A cot__write_bytes. */
static inline bool append_bytes(void *to, const void *bytes, size_t n) {
    saved *s = to;
    while (s->size + n > s->room) {
        s->room = 2 * s->room + 256;
        s->at = realloc(s->at, s->room);
        if (!s->at) abort();
    }
    memcpy(s->at + s->size, bytes, n);
    s->size += n;
    return true;
}

/* The program out of a file to which p was saved. */
static inline cot__program *through_a_file(cot_tape *t, const char *name, const cot__program *p) {
    saved         s = {0};
    cot__caller   caller = cot__tape_caller(t, "test");
    bool          fine = cot__program_save(p, append_bytes, &s, &caller);
    cot__program *q = fine ? cot__program_load(s.at, s.size, NULL, &caller) : NULL;
    TEST_CHECK(q, "%s: %s", name, cot_tape_message(t));
    free(s.at);
    return q;
}

#endif
