/* call.h: what a node of a called program knows, for those who look into it. */
#ifndef COT_COMPILE_CALL_H
#define COT_COMPILE_CALL_H

#include "compile/variants.h"
#include "tape/tape.h"

/* It lives in the arena, and the tape keeps the program alive. */
typedef struct cot__call_node {
    cot_program        *p;       /* that was called */
    const cot__variant *variant; /* whose forward program ran; NULL: p itself did */
    /* of each output: has it a derivative by the operands? NULL: no operand was active */
    const bool         *active;
    int                 leading; /* the output that is the first result of the node */
    /* Of a call in a body: has a derivative there read what the variant gives beside the outputs of
     * p? Else the body is played with p. NULL: the call is in no body. */
    bool               *kept_is_read;
} cot__call_node;

static inline cot_program *cot__call_runs(const cot__call_node *c) { return c->variant ? c->variant->forward : c->p; }
/* Which result of the node output k is. */
static inline int cot__result_of_output(int leading, int k) { return k == leading ? 0 : k < leading ? k + 1 : k; }

/* Part of its record: the operations of the program, recorded. */
bool cot__call_inlined(cot__rule *r, const cot_var *xs, cot_var *zs);

#endif
