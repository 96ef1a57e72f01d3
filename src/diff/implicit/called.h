/* called.h: bodies of solvers in programs: a body is a function that a solver calls again and
 * again, in numbers. Nothing is allocated by a call. */
#ifndef COT_CALLED_H
#define COT_CALLED_H

#include "program/run.h"

typedef struct cot__called {
    const cot__program *body;
    cot__run           *run;
    /* so many inputs, the first ones, are given by each call; the others are the operands of the
     * job from 1 on */
    int                 given;
    const void        **in; /* where the inputs lie */
    cot_allocator       al;
} cot__called;

/* Do the operands fit, are the given inputs like operand 0, and the first of `outputs` outputs,
 * too? False after telling the caller. */
bool cot__called_fits(const cot__job *j, const cot__program *body, int given, int outputs);
/* Bytes of workspace for what is given; negative: more than there can be. */
int64_t cot__called_bytes(const cot__program *body, int given);
/* Makes the run. Where all inputs are given, they may have any types. */
bool cot__called_open(cot__called *c, const cot__job *j, const cot__program *body, int given, const cot_allocator *al);
/* Before the first call of a run of the job: what is given will lie at `memory`, in the workspace.
 * Returns what follows it. */
char *cot__called_begin(cot__called *c, const cot__job *j, char *memory);
/* Input k is given: row-major elements of the host, in its dtype. */
void cot__called_give(cot__called *c, const cot__job *j, int k, const void *elements);
/* Calls it. False after telling `caller` what was refused, and in the body of which operation. */
bool cot__called_go(cot__called *c, const cot__caller *caller);
/* What the last call has noted; "": nothing. */
const char *cot__called_note(const cot__called *c);
/* Output k of the last call, and its elements as f64. */
cot__view cot__called_output(const cot__called *c, uint32_t k);
void      cot__called_read(const cot__called *c, const cot__job *j, uint32_t k, double *to);
void      cot__called_close(cot__called *c);

/* The elements of a view, row-major: from the backend to the host as f64. */
void cot__fetch_f64(const cot__job *j, const cot__view *v, double *to);
/* Numbers of the host, row-major and rounded to `dtype`. */
void cot__round_all(void *to, cot_dtype dtype, const double *from, int64_t n);

#endif
