/* lower.h: from a body, which lives on its tape, to a program, which needs none. */
#ifndef COT_LOWER_H
#define COT_LOWER_H

#include "program/known/known.h"
#include "tape/region.h"

/* Why a body cannot be a program yet. */
typedef struct cot__not_yet {
    const char *op;  /* the operation in the way; NULL: none is */
    const char *why;
} cot__not_yet;

/* A node whose operation has bodies, or functions of the user's, as a program holds it: attributes,
 * a name for messages, and bodies. */
enum { COT__PLAIN_BODIES = 6 };
typedef struct cot__plain {
    const cot__attr   *attr;
    const char        *name;
    int                bodies;
    const cot__region *body[COT__PLAIN_BODIES];
    /* in place of a body that lives on the tape: one that is a program already */
    cot__program      *program[COT__PLAIN_BODIES];
    /* captures of a body that are constants of its program, not inputs; NULL: none is */
    const bool        *constant[COT__PLAIN_BODIES];
    const char        *why; /* it cannot be in a program yet; NULL: it can */
} cot__plain;

/* The program of a body, in memory of `al`. Its inputs are the n inputs of the body, then the
 * captures; its constants are the fixed values, its outputs the m results. NULL: it cannot be
 * lowered yet, and *not_yet says why; or there is an error on the tape. */
cot__program *cot__region_lower(cot_tape *t, const cot__region *r, const cot_allocator *al, cot__not_yet *not_yet);

/* The same, kept with the body: made on the first call, in the tape's memory, or found among the
 * programs that the tape knows; and forgotten with the body, or by a rewind that forgets what was
 * recorded since. NULL: it cannot be lowered yet, or there is an error on the tape. */
const cot__program *cot__region_program(cot_tape *t, const cot__region *r);

/* A body that is nothing but a program, which it shares: all inputs are the body's, and it has no
 * nodes. `known`: its number among those that the tape knows. Kept and forgotten like any body;
 * NULL after an error. */
cot__region *cot__region_of_program(cot_tape *t, const char *name, const cot__program *p, uint64_t known);
/* Makes the program of a body, which the tape knows from now on by these words, with what the maker
 * adds; *known: its number, 0 if there was no memory for that. It is the caller's. NULL: as
 * above. */
cot__program *cot__region_make_known(cot_tape *t, const cot__region *r, const cot__words *w, uint32_t count,
                                     const int32_t *more, cot__not_yet *not_yet, uint64_t *known);

/* Describes the program of a body, word by word: bodies with the same words have the same program.
 * The words fail where a body cannot be told so: it has large constants, or is no program. */
void cot__region_describe(cot_tape *t, const cot__region *r, cot__words *w);
/* The programs that the tape knows; NULL: it has no memory for them. */
cot__known *cot__tape_known(cot_tape *t);

/* A whole tape as a program: its leaves are inputs, its constants constants, and nodes outputs[0 …
 * m) are given out. Each node is one value, in the same order, whose number goes to value[node];
 * COT__NO_VALUE for nodes of bodies that are over. NULL after telling the caller; or, where
 * *not_yet says why, it cannot be. */
cot__program *cot__tape_lower(cot_tape *t, const cot_allocator *al, int m, const uint32_t *outputs, uint32_t *value,
                              const cot__caller *caller, cot__not_yet *not_yet);
/* ---- operations that came out of a file ---- */

/* A tape that was loaded saves an operation with bodies as it stood in its file. Its bodies were
 * recorded again: they compute the same, but may be other operations, since what reads constants
 * alone is computed once; and what was derived of them for the file might be derived otherwise
 * here.
 *
 * Makes a list for so many operations, kept by the tape. False after an error. */
bool cot__filed_open(cot_tape *t, uint32_t operations, const char *op);
/* The node is operation k of p, in the file. */
bool cot__filed_add(cot_tape *t, uint32_t node, const cot__program *p, uint32_t k);

/* The way back: records a program on operands xs, and gives its outputs. False after an error. */
typedef bool cot__replayer(cot_tape *t, const cot__program *p, const cot_var *xs, cot_var *ys);
/* Has the node no gradient, though it reads what has one: was it recorded in a no-grad scope? */
bool cot__recorded_without_gradient(const cot_tape *t, uint32_t node);

#endif
