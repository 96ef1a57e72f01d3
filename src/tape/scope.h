/* scope.h: the modes of a tape, saved together and given back together.
 *
 * Modes say on whose behalf a tape records: with gradients or without, in which body, inside which
 * custom operation. Code that changes a mode for a while opens a scope before and closes it after.
 * If a function of the user's leaves a mode changed, closing the scope mends that too. */
#ifndef COT_SCOPE_H
#define COT_SCOPE_H

#include "tape/tape.h"

typedef struct cot__scope {
    cot__modes mode;
    uint8_t    active_mask;
    bool       noted; /* there was a note already */
} cot__scope;

/* Saves the modes; from here on values are recorded with COT__ACTIVE, with 0, or with the mask that
 * the tape has: t->active_mask. */
static inline cot__scope cot__scope_open(cot_tape *t, uint8_t active_mask) {
    cot__scope s = {t->mode, t->active_mask, t->notes.first[0] != 0};
    t->active_mask = active_mask;
    return s;
}

static inline void cot__scope_close(cot_tape *t, const cot__scope *s) {
    t->mode = s->mode;
    t->active_mask = s->active_mask;
}

/* The same. It also forgets a note that was made since, because the note is about an example. */
static inline void cot__scope_close_unnoted(cot_tape *t, const cot__scope *s) {
    cot__scope_close(t, s);
    if (!s->noted) cot_tape_clear_note(t);
}

/* The version of a value of a body whose memory the body may not write: a write went to a copy, and
 * the value is stale as if its memory had been written. No storage comes to this version. */
#define COT__WRITTEN_ON_COPY UINT32_MAX

/* The name of the user's scope (cot_scope_close) that closed over node i; NULL: none did. */
const char *cot__closed_scope(const cot_tape *t, uint32_t i);
/* Did the memory of this value go when a scope of the user's closed? */
static inline bool cot__is_let_go(const cot__tensor *v) {
    return v->storage->bytes == 0 && v->version == 0 && v->storage->version == 1 && v->size > 0;
}

#endif
