/* taylor.h: Taylor coefficients of one node of a tape, from those of its operands.
 *
 * Along a curve, s -> x(s), every value is a power series z = z_0 + z_1 s + z_2 s² + …, cut off
 * after the order asked for. Coefficients are vars: z_0 is the value on the tape, the others are
 * recorded behind it (taylor_walk.c forgets them again where only numbers are wanted). One that is
 * known to be zero is not recorded at all: it is absent.
 *
 * May call: base, rules, backend, tape, ops, the engine. Must not touch: slots and adjoints. */
#ifndef COT_TAYLOR_H
#define COT_TAYLOR_H

#include "diff/engine/sweep.h"

#define COT__TAYLOR_ORDERS 60 /* k! and a mask of coefficients must fit */

/* The series of a node: one of the tape's, or one of those that a rule has recorded on the way. */
typedef struct cot__taylor_entry {
    uint32_t node;
    uint32_t shift;       /* COT__NONE, or the entry whose derivative by s this is */
    uint32_t derivative;  /* the node that stands for its own derivative; COT__NONE: not made yet */
    uint32_t result;      /* the node that the rule of its operation gave for its derivative, … */
    uint32_t first, last; /* … and the entries of what that rule recorded: [first, last) */
    int      known;       /* coefficients 0 … known */
    bool     opened;      /* the rule has run */
} cot__taylor_entry;

/* What is known while one node is worked on. */
typedef struct cot__taylor {
    cot_tape          *t;
    int                order;
    uint32_t           from;  /* the first node of the sweep */
    uint32_t          *where; /* of node from + i: its entry + 1, or 0 */
    uint32_t           where_capacity;
    uint32_t           base; /* the first node recorded for this one */
    cot__taylor_entry *entries;
    uint32_t           count, capacity;
    /* of entry e from e * (order + 1) on: nodes, COT__NONE where absent */
    uint32_t          *coefficients;
    uint32_t           coefficient_capacity;
} cot__taylor;

/* Sets the error; false. */
bool cot__taylor_memory(cot_tape *t, size_t bytes);
/* A new entry for a node, coefficient 0 known; COT__NONE after setting the error. */
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
    cot__series **kept; /* of nodes from … top */
    uint32_t     *uses; /* of nodes from … top: operands of needed nodes that are still to come */
    uint8_t      *needed;
} cot__taylor_walk;

/* Memory for the walk; close it in any case. */
bool cot__taylor_open(cot__taylor_walk *w);
void cot__taylor_close(cot__taylor_walk *w);
/* From the series of the inputs, which are kept, to that of the top. */
bool cot__taylor_run(cot__taylor_walk *w);
/* Keeps the series of entry e as that of node i. */
bool cot__taylor_keep(cot__taylor_walk *w, uint32_t i, uint32_t e);
/* An entry for node i, with what is kept of it; COT__NONE after a failure. */
uint32_t cot__taylor_load(cot__taylor_walk *w, uint32_t i);
/* Coefficient m of what is kept of node i, as a var; invalid where absent, or after a failure. */
cot_var cot__taylor_loaded(cot__taylor_walk *w, uint32_t i, int m);

#endif
