/* known.h: programs that were made before, and runs of them.
 *
 * What the folder does: whoever makes programs again and again from the same description, as a tape
 * does that records one loop in each of a thousand evaluations, describes them in words and asks
 * here first. A program that is met again is worth the passes, which are run then; and a run that
 * nobody uses just now is kept with it.
 *
 * The last few programs are known, each under a number of its own that no later one gets.
 *
 * May call: base, job, rules, backend, program, passes. Must not touch: tapes. */
#ifndef COT_KNOWN_H
#define COT_KNOWN_H

#include "program/run.h"

/* A description, word by word. */
typedef struct cot__words {
    cot_allocator al;
    uint64_t     *at;
    uint32_t      count, room;
    bool          failed; /* there was no memory, or it was given up: it describes nothing */
} cot__words;

void cot__words_put_more(cot__words *w, uint64_t word); /* where there is no room */
static inline void cot__words_put(cot__words *w, uint64_t word) {
    if (LIKELY(w->count < w->room)) w->at[w->count++] = word;
    else cot__words_put_more(w, word);
}
void cot__words_put_bytes(cot__words *w, const void *bytes, size_t n);
void cot__words_free(cot__words *w);

typedef struct cot__known cot__known;

/* What is known of a description. */
typedef struct cot__known_program {
    uint64_t            number; /* 0: nothing is; */
    /* but it was asked for lately, and there is room for it. Rarely that is said of another one */
    bool                again;
    const cot__program *program; /* lives as long as it is known: share it */
    const int32_t      *more;   /* what the maker has added, `count` of them */
    uint32_t            count;
} cot__known_program;

/* NULL: no memory, and nothing will be known. All functions take that. */
cot__known *cot__known_open(const cot_allocator *al);
void        cot__known_close(cot__known *k);

/* The program of this description. The `worth`-th time that it is found it is made smaller by the
 * passes. */
cot__known_program cot__known_find(cot__known *k, const cot__words *w, uint32_t worth);
/* Makes a program known, sharing it; the oldest is forgotten. Without memory nothing happens. */
cot__known_program cot__known_add(cot__known *k, const cot__words *w, const cot__program *p, uint32_t count,
                                  const int32_t *more);

/* A run of the program with this number, for inputs that lie as its description says (row-major, if
 * it says nothing), that nobody uses; NULL: there is
 * none. And back. */
cot__run *cot__known_take(cot__known *k, uint64_t number);
void      cot__known_give(cot__known *k, uint64_t number, cot__run *r);

#endif
