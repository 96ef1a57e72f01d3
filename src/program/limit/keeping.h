/* keeping.h: what lies in memory while the units of a program are done within a budget, and what is
 * let go when there is no more room.
 *
 * The one goes that costs least to make again for what it frees and for how long nobody reads it,
 * as on a tape with a limit; but here the next reader is known. Making it again costs its own unit,
 * the longest way there from what is in memory, and the longest way on to what is still read and
 * would be made of it. So a chain is not let go as a whole. Where there is a folder, a value goes
 * to a file if moving it there and back costs less; what may not be made again always does. */
#ifndef COT_PROGRAM_KEEPING_H
#define COT_PROGRAM_KEEPING_H

#include "program/limit/units.h"

typedef struct cot__keeping {
    const cot__units *u;
    int64_t           budget, used; /* bytes */
    uint32_t          now;          /* the unit whose turn it is */
    bool              spills;       /* there is a folder */
    /* For each value, of which roots count: */
    uint8_t          *state;  /* bits of below */
    uint32_t         *wanted; /* by so many units that are about to be done: it stays */
    uint32_t         *next;   /* in u->reader: the next whose turn comes */
    uint32_t         *place;  /* in `list` */
    /* Of what is not here, when it was looked at last: what it costs to make it, and what has to be
     * made of it. */
    double           *price, *burden;
    uint32_t         *list, listed; /* what may be let go */
} cot__keeping;

enum {
    COT__HERE = 1, /* it lies in memory, or takes none */
    COT__MADE = 2, /* it was made before */
    COT__FILED = 4 /* it lies in the file: if it is not here, it is read from there */
};

/* False: there is no memory. */
bool cot__keeping_open(cot__keeping *q, const cot__units *u, int64_t budget, bool spills);
void cot__keeping_close(cot__keeping *q);

static inline bool cot__is_here(const cot__keeping *q, uint32_t root) {
    return cot__unit_of(q->u, root) == COT__NO_VALUE || (q->state[root] & COT__HERE);
}

/* Lets go what it may until there is room for so many bytes more, if it can. */
void cot__keeping_make_room(cot__keeping *q, int64_t bytes);
/* The root was made, and lies in memory; it does no longer. */
void cot__keeping_put(cot__keeping *q, uint32_t root);
void cot__keeping_drop(cot__keeping *q, uint32_t root);
/* Does nobody read it whose turn is still to come? */
bool cot__keeping_is_over(const cot__keeping *q, uint32_t root);
/* The unit whose turn it was has read the root. */
void cot__keeping_passed(cot__keeping *q, uint32_t root);

#endif
