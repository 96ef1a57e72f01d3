/* loop_job.h: what loops and their ways back share as operations of programs. */
#ifndef COT_LOOP_JOB_H
#define COT_LOOP_JOB_H

#include "diff/loops/loop.h"

/* Writes the integers of its attributes (loop_form.h). */
void cot__loop_ints(const cot__loop *l, int64_t *ints);
/* Are there as many of everything that its results can be counted? Asked of hostile jobs, too. */
bool cot__loop_is_countable(const cot__job *j, bool back);
/* Are they legal, and are there as many bodies, of a way back with one for each step back? False
 * after telling the caller. */
bool cot__loop_is_legal(const cot__job *j, cot__form *f, bool back);
/* Do the operands of the loop have the types that its bodies take? */
bool cot__loop_fits(const cot__job *j, const cot__form *f);
/* Step k of the loop, or its test (k < 0), was refused: tells the caller. Always false. */
bool cot__loop_refused(const cot__job *j, const cot__steps *s, const cot__run *run, int64_t k);
/* A run of a body whose inputs lie like these views, of which it has as many. */
cot__run *cot__loop_open_run(const cot__job *j, const cot__program *body, cot__view *views, const cot_allocator *al);
/* Runs of all bodies of the loop itself; s->body is that of the first. */
bool cot__loop_open_runs(const cot__job *j, cot__steps *s, cot__run **run, const cot_allocator *al);

/* Adds to the text of an error where it happened, as cot__error_in does on a tape. */
enum { COT__PLACED_TEXT = 512 };
void cot__add_place(char text[COT__PLACED_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A body of a program that is recorded again, a cot_fn: its inputs, then what it captured. */
typedef struct cot__replaying_body {
    cot_tape           *t;
    const cot__program *body;
    const cot_var      *captured;
    cot__replayer      *replay;
} cot__replaying_body;
/* Records it as the body of an operation; part: see cot__region_record_part, NULL: it is the only
 * one. NULL after an error. */
cot__region *cot__record_again(const cot__replaying_body *b, const char *op, const char *part, int n,
                               const cot_var *examples, int m);
/* The name of an operation, for a tape: the program may be gone before it. NULL: no memory. */
const char *cot__copy_name(cot_tape *t, const char *name);

/* The loop of an operation, recorded on operands xs by `replay`, but for its node. */
cot__loop *cot__loop_record_again(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                                  cot__replayer *replay);
/* Its operands as nodes. */
uint32_t *cot__loop_list_operands(cot_tape *t, const cot__loop *l, const cot_var *xs, int more);

#endif
