/* verify.h: what a program gives against what its function records now, by bits. They differ if the
 * function read something in C that has changed since it was compiled. */
#ifndef COT_COMPILE_VERIFY_H
#define COT_COMPILE_VERIFY_H

#include "compile/compile.h"
#include "tape/tape.h"

/* The function, recorded on a tape of its own. */
typedef struct cot__verifying {
    const cot_program *p;
    cot_tape          *t;  /* NULL: there was no memory */
    cot_var           *ys; /* on it, in its arena */
    int                code; /* that the function returned */
} cot__verifying;

/* Records the function on these inputs. What goes wrong is told later, by cot__verify: an input
 * that the function refuses is one that the program should have refused. */
cot__verifying cot__verify_open(const cot_program *p, const void *const *inputs);
/* Are these the results, row-major? NULL: one that is not compared. False after telling the caller
 * which element differs. */
bool cot__verify(const cot__verifying *v, const void *const *results, const cot__caller *caller);
void cot__verify_close(cot__verifying *v);

/* The same for the outputs ys of a call on operands `args`. False after an error on the tape. */
bool cot__verify_call(cot_tape *t, const cot_program *p, const uint32_t *args, const cot_var *ys);

/* The first of n elements of which the bits differ, where all NaN count as one; -1: none. */
int64_t cot__first_difference(cot_dtype dtype, int64_t n, const void *a, const void *b);

#endif
