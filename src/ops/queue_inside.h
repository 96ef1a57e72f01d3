/* queue_inside.h: the work that waits: runs in stages, and what memory they touch. queue.c puts off, queue_run.c does it. */
#ifndef COT_QUEUE_INSIDE_H
#define COT_QUEUE_INSIDE_H

#include "ops/queue.h"
#include "ops/run.h"

enum { COT__STAGES = 8 };

/* Where the elements of a view lie, 0 … size - 1: what is asked is whether two views are the same elements in the same order. */
typedef struct cot__place {
    const char *lo, *hi; /* all its elements lie in [lo, hi) */
    const void *data;
    int64_t     size, element; /* bytes from each to the next; 0: repeats; -1: see view */
    cot__view   view;
    int         first, read, written; /* stages: the first that touches it, the last that reads and writes it; -1: none */
} cot__place;

/* Runs of the same number of elements, done together; a later stage may count on all elements of an earlier one. */
typedef struct cot__stage {
    int64_t size, cost, parts, step;
} cot__stage;

typedef struct cot__capacity {
    int runs, places, numbers, buried, stages;
} cot__capacity;

typedef struct cot__buried {
    cot__storage *storage;
    int           stage; /* the last that touches it */
} cot__buried;

typedef struct cot__queue {
    cot__put_off     head; /* how many runs */
    const cot__capacity *room;
    int              places, numbers, buried, stages, last; /* the stage of the run put off last */
    cot__stage       stage[COT__STAGES];
    cot__run        *run;
    uint8_t         *stage_of; /* each run */
    uint16_t        *moves;    /* see find_scratch */
    cot__place      *place;
    int64_t         *number; /* shapes, strides and single values that runs refer to */
    cot__buried     *bury;
} cot__queue;

static inline bool cot__overlaps(const cot__place *a, const char *lo, const char *hi) { return a->lo < hi && lo < a->hi; }
static inline int  cot__last_stage(const cot__place *p) { return p->read > p->written ? p->read : p->written; }

/* Does all that waits, and leaves the lists as they are. */
void cot__queue_do(cot__queue *q);

#endif
