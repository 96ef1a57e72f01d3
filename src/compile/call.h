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
    const bool         *kept_active; /* the same of all results of the variant's forward program */
    int                 leading; /* the output that is the first result of the node */
    const uint32_t     *same;    /* of each output the first one that is the same value, or NULL */
    /* Of a call in a body: has a derivative there read what the variant gives beside the outputs of
     * p? Else the body is played with p. NULL: the call is in no body. */
    bool               *kept_is_read;
} cot__call_node;

static inline cot_program *cot__call_runs(const cot__call_node *c) { return c->variant ? c->variant->forward : c->p; }
/* Which result of the node output k is. */
static inline int cot__result_of_output(int leading, int k) { return k == leading ? 0 : k < leading ? k + 1 : k; }

/* Parts of its record: the operations of the program, recorded; and the call as an operation of a
 * program. */
bool  cot__call_inlined(cot__rule *r, const cot_var *xs, cot_var *zs);
/* A call stands in a body: sets the error. Always false. */
bool  cot__call_nested(cot_tape *t);
bool  cot__call_plain(cot__rule *r, struct cot__plain *to);
int   cot__call_job_results(const cot__job *j);
bool  cot__call_job_infer(const cot__job *j, cot__type *z);
void *cot__call_job_open(const cot__job *j, const cot_allocator *al);
bool  cot__call_job_go(const cot__job *j);
void  cot__call_job_close(void *held);

/* Records a call as one node, which its picks follow. Invalid: there is an error on the tape, or
 * its operations would have to be recorded instead. */
cot_var cot__call_node_on(cot_tape *t, cot_program *p, const cot_var *xs);

/* Programs of bodies in a file that were called; in the arena. */
typedef struct cot__recalled {
    const cot__program *body;
    int64_t             options;
    cot_program        *made; /* NULL: there was no memory */
    struct cot__recalled *next;
} cot__recalled;
void cot__recalled_close(cot__recalled *all);
/* Operation k of p, a call, recorded again. False after an error on the tape. */
bool cot__call_replay(cot_tape *t, const cot__program *p, uint32_t k, const cot_var *xs, cot__recalled **all,
                      cot_var *zs);

#endif
