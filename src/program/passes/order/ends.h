/* ends.h: which operations can follow a matrix product as its end (program/fusion.h): what reads
 * it, what reads that, and what else those need and is made element by element, too. */
#ifndef COT_PASSES_ENDS_H
#define COT_PASSES_ENDS_H

#include "program/program.h"

typedef struct cot__ends {
    const cot__program *p;
    size_t              bytes;
    uint32_t           *first;  /* for each value: the first operand that is it, or COT__NO_VALUE */
    uint32_t           *next;   /* for each operand: the next that is the same value */
    uint32_t           *reader; /* for each operand: the operation whose it is */
    /* For each value: the last operation that reads it, or a view of it, and is not elementwise. */
    uint32_t           *held;
    /* For each value: something reads it, or what is made of it element by element, that is not
     * elementwise. */
    uint8_t            *onward;
    uint8_t            *done;   /* for each operation: the pass has put it somewhere */
} cot__ends;

/* False: there is no memory. */
bool cot__ends_open(cot__ends *e, const cot__program *p, const cot_allocator *al);
void cot__ends_close(cot__ends *e, const cot_allocator *al);

/* What a pass tells of a value, and what it does with an operation. */
typedef struct cot__ends_user {
    void *user;
    bool (*is_there)(void *user, uint32_t v);  /* is it made already? */
    bool (*is_free)(void *user, uint32_t v);   /* or may what makes it be put now? */
    void (*put)(void *user, uint32_t k);
} cot__ends_user;

/* Puts the end of product k, which was put. What stands far behind it is left there, as it would
 * take memory until then, unless nothing but outputs is made of it. */
void cot__ends_put(cot__ends *e, uint32_t k, const cot__ends_user *u);

#endif
