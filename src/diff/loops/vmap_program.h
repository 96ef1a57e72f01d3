/* vmap_program.h: cot_vmap as a program. */
#ifndef COT_VMAP_PROGRAM_H
#define COT_VMAP_PROGRAM_H

#include "tape/region.h"

/* A body that is to be played for a batch, with values for its inputs, then for its captures. */
typedef struct cot__mapping {
    const cot__region *r;
    const cot_var     *values;
    const bool        *given; /* which of them have the batch as axis 0 */
    bool              *is;    /* which results have it */
    int64_t            extent;
} cot__mapping;
static inline int cot__mapping_values(const cot__region *r) { return r->n + r->captures; }

/* Nothing has a derivative. *done: it ran as a program, and ys and b->is are set. False: there is
 * an error on the tape. */
bool cot__vmap_as_program(cot_tape *t, cot__mapping *b, cot_var *ys, bool *done);

#endif
