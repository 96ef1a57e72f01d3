/* tangents.h: the tangents of all nodes of a trace, one walk for each input. */
#ifndef COT_TRACE_TANGENTS_H
#define COT_TRACE_TANGENTS_H

#include "trace/trace.h"

/* Numbers in all, over which there are none: a trace of large arrays is no walk to read. */
enum { COT__TANGENTS_MOST = 20000 };

typedef struct cot__tangents {
    const cot__trace *trace;
    int               inputs;   /* walks */
    int              *input;    /* for each walk: which of the inputs moves, by ones */
    int64_t           elements; /* of one walk */
    int64_t          *at;       /* for each node: where its tangent begins; -1: a source, or none */
    double           *value;    /* (inputs, elements) */
    bool              no_memory; /* why there are none */
} cot__tangents;

/* False where there are none: no input is active, they are too many, an operation has none, or
 * memory is short. */
bool cot__tangents_open(cot__tangents *w, const cot__trace *tr, int n, const cot__trace_input *inputs);
void cot__tangents_close(cot__tangents *w);
/* The tangent of a node in a walk, of its shape; a stride of NULL: row-major. */
cot__view cot__tangent(const cot__tangents *w, int which, int64_t node, const cot__trace_input *inputs);
/* What operand k of an elementwise node adds to its tangent, "x2·ẋ1". */
const char *cot__tangent_filled(const cot__trace *tr, int64_t node, int k, char *buf, size_t size);
/* "ẋ1·x2 + ẋ2·x1": what the operands that move add; of a structural node, its name. */
const char *cot__tangent_rule(const cot__trace *tr, int64_t node, char *buf, size_t size);

#endif
