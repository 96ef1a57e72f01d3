/* replay.h: a program recorded on a tape, operation by operation: where derivatives, batches and
 * bodies begin, since those are made on tapes; and how a tape comes out of a file. */
#ifndef COT_COMPILE_REPLAY_H
#define COT_COMPILE_REPLAY_H

#include "program/program.h"
#include "tape/tape.h"

/* Records p on inputs xs, which have its types, and gives its outputs. False after an error. */
bool cot__replay(cot_tape *t, const cot__program *p, const cot_var *xs, cot_var *ys);
/* The same, but for nodes of their own that inputs get where an operation has nothing to do
 * (nothing.h): an input that is `computed` gets none. */
bool cot__replay_computed(cot_tape *t, const cot__program *p, const bool *computed, const cot_var *xs, cot_var *ys);
/* The input that operation k is such a node of; -1: it is none. */
int  cot__idle_input(const cot__program *p, uint32_t k);

/* The same step by step, in the order in which the values are numbered. */
typedef struct cot__replaying {
    cot_tape           *t;
    const cot__program *p;
    cot_var            *value; /* of each value of the program; those of inputs are to be set */
    cot_var            *x;     /* operands of one operation */
    uint32_t           *args;
    uint32_t            most;
    const bool         *computed; /* of each input, as above; NULL: none is */
    bool                nested; /* it is a body, or a program that was called */
    const cot_site     *site;    /* of the last operation, and its label */
    uint32_t            stamped;
    struct cot__recalled *recalled; /* programs that operations of it have called */
} cot__replaying;

/* False after an error on the tape; to be closed in any case. */
bool cot__replay_open(cot__replaying *r, cot_tape *t, const char *op, const cot__program *p);
void cot__replay_constant(cot__replaying *r, uint32_t constant);
void cot__replay_operation(cot__replaying *r, uint32_t operation);
void cot__replay_close(cot__replaying *r);

#endif
