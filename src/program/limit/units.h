/* units.h: a program as units: what a run does at once. A unit is a group (program/fusion.h) or an
 * operation that runs by itself. Views are no units: they take no memory, and stand wherever they
 * are read. */
#ifndef COT_PROGRAM_UNITS_H
#define COT_PROGRAM_UNITS_H

#include "program/plan.h"

typedef struct cot__unit {
    uint32_t first, end;  /* its operations, and views between them */
    double   work;        /* see cot__work_of */
    int64_t  workspace;   /* bytes */
    bool     once;        /* it may not be done again */
    bool     elementwise; /* its results may lie where an operand lay */
    /* in `made`: the values that it makes and that take memory; they end where those of the next
     * unit begin */
    uint32_t made;
    uint32_t reads; /* in `reads`, likewise: what it reads of others that takes memory */
} cot__unit;

typedef struct cot__units {
    const cot__program *p;
    const cot__plan    *plan; /* of p */
    cot_allocator       al;
    cot__unit          *unit; /* and one more that ends the list of the last */
    uint32_t            count, *made, *reads;
    uint32_t           *of;    /* for each operation: its unit; COT__NO_VALUE: it is a view */
    int64_t            *bytes; /* for each value: what it takes of the arena while it is kept */
    /* The units that read value v, a root, or a view of it, in order: reader[read[v] …
     * read[v + 1]). The last of an output's is `count`. */
    uint32_t           *read, *reader;
    uint32_t            readers;
    /* For each value: the last unit that reads it, or anything that can be made of it again. */
    uint32_t           *until;
    /* For each value: the last unit before which it can be made again. It writes over a donated
     * input that the value is made from. COT__NO_VALUE: none does. */
    uint32_t           *latest;
} cot__units;

/* False after telling the caller that there is no memory. */
bool cot__units_open(cot__units *u, const cot__plan *plan, const cot_allocator *al, const cot__caller *caller);
void cot__units_close(cot__units *u);

/* The unit that makes a root; COT__NO_VALUE: it is an input or a constant. */
static inline uint32_t cot__unit_of(const cot__units *u, uint32_t root) {
    if (cot__value_origin(u->p, root) != COT__FROM_OPERATION) return COT__NO_VALUE;
    return u->of[cot__value_maker(u->p, root)];
}

/* What an operation costs, in operations on numbers: those of its value, by its record, and one for
 * each element that it reads or writes. That of bodies is not known. */
double cot__work_of(const cot__program *p, uint32_t k);

#endif
