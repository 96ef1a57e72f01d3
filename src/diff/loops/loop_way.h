/* loop_way.h: what a step back through a loop reads and writes, on plain memory: the inputs and
 * outputs of the body that cot__loop_back_step records. */
#ifndef COT_LOOP_WAY_H
#define COT_LOOP_WAY_H

#include "diff/loops/loop_steps.h"

/* An input or output that is another row at each step. */
typedef struct cot__moving { void **to; char *first; int64_t step; } cot__moving;

typedef struct cot__way {
    /* given: the operands of the loop; which of them have an adjoint, and where it lies, row-major;
     * the adjoint of each result, dtype COT_BOOL where there is none; what the body captures */
    const cot__view *x;
    const bool      *has_bar;
    void *const     *bar; /* NULL: nowhere yet, only types are asked for */
    const cot__view *g, *captured;
    int              captures;
    /* found: views of inputs and outputs at step 0, where they lie at the present one, which of
     * them are carried values, and which move; what has no strides is row-major */
    cot__view       *input, *output;
    void           **in, **out, **state;
    int64_t         *in_step, *out_step; /* how far each moves from step to step, in bytes */
    cot__moving     *moving;
    int              inputs, outputs, moves;
} cot__way;

/* Bytes of the lists of a way with so many captures; and puts them there. */
size_t cot__way_lists(const cot__form *f, int captures);
void   cot__way_lay(cot__way *w, const cot__form *f, void *lists);
/* Fills in all that is found, from what is given. */
void cot__way_see(cot__way *w, const cot__steps *s);
/* Goes to step `at`, counted along the xs, from the state of s. */
void cot__way_at(cot__way *w, const cot__steps *s, int64_t at);
/* n steps at once, by a run, from step `at` on, to the one before it, or, `up`, behind it; the
 * state of each lies before that of the last. False as for cot__steps_go_along. */
bool cot__way_go_along(cot__way *w, const cot__steps *s, cot__run *run, int64_t at, int64_t n, bool up);

#endif
