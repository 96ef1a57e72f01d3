/* tangents.h: the tangents of all nodes of a trace, one walk for each number that moves. */
#ifndef COT_TRACE_TANGENTS_H
#define COT_TRACE_TANGENTS_H

#include "trace/trace.h"

/* Numbers in all, over which there are none: a trace of large arrays is no walk to read. */
enum { COT__TANGENTS_MOST = 20000 };

/* Numbers in the inputs up to which each has a walk of its own. With more of them a walk moves a
 * whole input, by ones: a direction. */
enum { COT__TANGENTS_PLACES = 24 };

typedef struct cot__walk {
    int     input;                 /* which of the inputs moves */
    int64_t place;                 /* the element that moves; -1: all of them, by ones */
    char    name[COT__TRACE_TEXT]; /* "x", "x[2]", "W[0,1]" */
} cot__walk;

typedef struct cot__tangents {
    const cot__trace *trace;
    int               walks;
    cot__walk        *walk;      /* (walks,) */
    int64_t           elements;  /* of one walk */
    int64_t           width;     /* numbers in the inputs that can move */
    /* for each node: where its tangent begins in `value`; -1: nowhere, it stays; -2 - k: an input,
     * at k of a row of `direction` */
    int64_t          *at;
    double           *direction; /* (walks, width): how the inputs move */
    double           *value;     /* (walks, elements) */
    bool              no_memory; /* why there are none */
} cot__tangents;

/* False where there are none: no input is active, they are too many, an operation has none, or
 * memory is short. */
bool cot__tangents_open(cot__tangents *w, const cot__trace *tr, int n, const cot__trace_input *inputs);
void cot__tangents_close(cot__tangents *w);
/* The tangent of a node in a walk, of its shape; a stride of NULL: row-major. */
cot__view cot__tangent(const cot__tangents *w, int which, int64_t node);
/* What operand k of an elementwise node adds to its tangent, "x2·ẋ1". */
const char *cot__tangent_filled(const cot__trace *tr, int64_t node, int k, char *buf, size_t size);
/* "ẋ1·x2 + ẋ2·x1": what the operands that move add; of a structural node, its name. */
const char *cot__tangent_rule(const cot__trace *tr, int64_t node, char *buf, size_t size);

#endif
