/* kept_adjoints.h: a reverse sweep that keeps the adjoint of every node, for code that
 * looks at a sweep: print, explain, report.
 *
 * It is the one driver with every active node marked as wanted; leaf gradients are not touched, and
 * no error stays on the tape. */
#ifndef COT_KEPT_ADJOINTS_H
#define COT_KEPT_ADJOINTS_H

#include "diff/engine/sweep.h"
#include "tape/reader.h"

typedef struct cot__kept_adjoints {
    cot__sweep sweep;
    char       why[512];        /* why it failed, else "" */
    bool       short_of_memory; /* and that was why */
} cot__kept_adjoints;

/* Sweeps from y. seed: of y's shape, or 0-d for every element the same; NULL: ones (with more than
 * one element: the gradient of their sum). An inactive y gives no adjoints at all. */
bool cot__kept_adjoints_open(cot__kept_adjoints *w, cot_tape *t, uint32_t y, const cot__view *seed);
void cot__kept_adjoints_close(cot__kept_adjoints *w);
/* The adjoint of a node, shaped like it; false: nothing arrived there, it is zero. */
bool cot__kept_adjoint(const cot__kept_adjoints *w, uint32_t node, cot__view *g);

/* What elementwise node i adds to the adjoint of its operand k (0 or more, with a derivative) when
 * its own adjoint is g; a 0-d g repeats. In 16 bits it is rounded once, where a sweep rounds each
 * operation of the rule. Row-major in the node's dtype, in memory of t's device:
 * free it with cot__contribution_free. NULL when there is none. */
void *cot__contribution(cot_tape *t, uint32_t i, int k, const cot__view *g, cot__view *out,
                        int64_t stride[COT_MAX_NDIM]);
void  cot__contribution_free(cot_tape *t, void *data, const cot__view *out);

/* One byte a node, 0 … y: 1 where y was computed from it (y too). NULL when memory is short; free
 * it with cot__free, y + 1 bytes. */
uint8_t *cot__ancestors(cot_tape *t, uint32_t y);

/* Row-major index of the first element that is not finite, or -1; and is every element zero? */
int64_t cot__first_odd(const cot__backend *b, const cot__view *v, int64_t *count);
bool    cot__all_zero(const cot__backend *b, const cot__view *v);

#endif
