/* rewrite.h: what passes are made of: a walk over a program that builds another one.
 *
 * A pass says what becomes of each constant and operation, in order. When it is asked about an
 * operation, everything before it has its place in the new program, so what it finds there is
 * already simplified, and one walk does whole chains. */
#ifndef COT_PASSES_REWRITE_H
#define COT_PASSES_REWRITE_H

#include "program/build.h"
#include "program/passes/passes.h"

typedef struct cot__rewrite cot__rewrite;

typedef struct cot__edit {
    void *state; /* the pass's own */
    /* The input that is value v, constant `constant` and operation k of the old program, and at
     * last the outputs; NULL: all are kept. */
    void (*input)(cot__rewrite *r, uint32_t v);
    void (*constant)(cot__rewrite *r, uint32_t constant);
    void (*operation)(cot__rewrite *r, uint32_t k);
    void (*outputs)(cot__rewrite *r);
} cot__edit;

struct cot__rewrite {
    const cot__program *from;
    const cot__edit    *edit;
    cot__builder        to;
    uint32_t           *value; /* for each old value: the new one; COT__NO_VALUE: it has gone */
    uint32_t           *x;     /* room for the operands of any operation */
    uint32_t            most;
    uint32_t            changes; /* not 0: the new program is not the old one */
};

/* The new program, or p itself if there were no changes; NULL after telling the caller. */
cot__program *cot__rewrite_run(const cot__program *p, const cot__pass_options *o, const cot__edit *edit);

/* These keep it as it is. */
void cot__rewrite_keep_input(cot__rewrite *r, uint32_t v);
void cot__rewrite_keep_outputs(cot__rewrite *r);
void cot__rewrite_keep_constant(cot__rewrite *r, uint32_t constant);
void cot__rewrite_keep(cot__rewrite *r, uint32_t k);
/* Operation k as it would be kept, its operands in r->x, to be changed before it is put. */
cot__append cot__rewrite_operation(cot__rewrite *r, uint32_t k, cot__type *asked);
/* Puts this in the place of operation k, which makes the same values. */
void cot__rewrite_put(cot__rewrite *r, uint32_t k, const cot__append *o);
/* Operation k has one result, which is this value of the new program, of the same type. */
void cot__rewrite_replace(cot__rewrite *r, uint32_t k, uint32_t by);
/* The pass needs more memory than there is. */
void cot__rewrite_no_memory(cot__rewrite *r, size_t bytes);

/* Have values of two programs the same type? */
bool cot__same_type(const cot__program *p, uint32_t v, const cot__program *q, uint32_t w);
/* Bytes of the elements of a value. */
size_t cot__value_bytes(const cot__program *p, uint32_t v);

#endif
