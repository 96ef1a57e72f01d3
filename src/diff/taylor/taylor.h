/* taylor.h: Taylor coefficients of one node of a tape, from those of its operands.
 *
 * Along a curve, s -> x(s), every value is a power series z = z_0 + z_1 s + z_2 s² + …, cut off
 * after the order that is asked for. Coefficients are vars. z_0 is the value on the tape, the
 * others are recorded behind it (taylor_walk.c forgets them again where only numbers are wanted). A
 * coefficient that is known to be zero is not recorded: it is absent.
 *
 * May call: base, rules, backend, tape, ops, the engine. Must not touch: slots and adjoints. */
#ifndef COT_TAYLOR_H
#define COT_TAYLOR_H

#include "diff/engine/sweep.h"

/* k! must be finite, and a mask of coefficients must fit into 64 bits */
#define COT__TAYLOR_ORDERS 60

/* The series of a node. The node was on the tape before, or a rule recorded it during the walk. */
typedef struct cot__taylor_entry {
    uint32_t node;
    uint32_t shift;       /* COT__NONE, or the entry whose derivative by s this entry is */
    uint32_t derivative; /* the node that stands for the derivative by s; COT__NONE: not made yet */
    uint32_t result;      /* the node that the rule gave as derivative by s, */
    uint32_t *further;    /* those of further results, COT__NONE where one does not move, and */
    uint32_t first, last; /* the entries for the nodes that the rule recorded: [first, last) */
    int      known;       /* coefficients 0 … known have been computed */
    bool     opened;      /* the rule has run */
} cot__taylor_entry;

/* The state of the work on one node. */
typedef struct cot__taylor {
    cot_tape          *t;
    int                order;
    uint32_t           from;  /* the first node of the sweep */
    uint32_t          *where; /* of node from + i: its entry + 1, or 0 */
    uint32_t           where_capacity;
    uint32_t           base; /* the first node that was recorded for the present one */
    cot__taylor_entry *entries;
    uint32_t           count, capacity;
    /* coefficients of entry e begin at e * (order + 1): nodes, COT__NONE where absent */
    uint32_t          *coefficients;
    uint32_t           coefficient_capacity;
} cot__taylor;

/* Sets the error of memory. Returns false. */
bool cot__taylor_memory(cot_tape *t, size_t bytes);
/* Makes an entry for a node; coefficient 0 is known. COT__NONE after setting the error. */
uint32_t cot__taylor_enter(cot__taylor *s, uint32_t node);
static inline uint32_t *cot__taylor_coefficients(const cot__taylor *s, uint32_t e) {
    return s->coefficients + (size_t)e * (size_t)(s->order + 1);
}
/* Computes the coefficients of entry e up to m. */
bool cot__taylor_advance(cot__taylor *s, uint32_t e, int m);
/* Forgets all entries. */
void cot__taylor_clear(cot__taylor *s);

/* ---- the walk: taylor_walk.c ----------------------------------------------------------------- */

typedef struct cot__series cot__series;

/* One sweep, from node work.from to node top. */
typedef struct cot__taylor_walk {
    cot__taylor   work;
    bool          recording;
    uint32_t      top;
    cot__series **kept; /* series of nodes from … top */
    /* of nodes from … top: how many operands of needed nodes still to come are this node */
    uint32_t     *uses;
    uint8_t      *needed;
} cot__taylor_walk;

/* Takes memory for the walk. Close it also after a failure. */
bool cot__taylor_open(cot__taylor_walk *w);
void cot__taylor_close(cot__taylor_walk *w);
/* Walks from the inputs, whose series are kept already, to the top. */
bool cot__taylor_run(cot__taylor_walk *w);
/* Keeps the series of entry e for node i. */
bool cot__taylor_keep(cot__taylor_walk *w, uint32_t i, uint32_t e);
/* Makes an entry for node i from its kept series. COT__NONE after a failure. */
uint32_t cot__taylor_load(cot__taylor_walk *w, uint32_t i);
/* Coefficient m of the kept series of node i, as a var. Invalid where absent, or after a
 * failure. */
cot_var cot__taylor_loaded(cot__taylor_walk *w, uint32_t i, int m);

#endif
