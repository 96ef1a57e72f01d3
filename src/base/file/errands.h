/* errands.h: a thread that moves bytes between memory and a file while others compute.
 *
 * There are few errands at a time, done one after the other in the order in which they were begun.
 * The thread touches nothing but the errand itself and the bytes that it names. */
#ifndef COT_ERRANDS_H
#define COT_ERRANDS_H

#include "base/base.h"

typedef struct cot__transfer {
    int      fd;
    bool     writes;
    uint64_t at;      /* in the file */
    void    *data;
    size_t   bytes;
    uint64_t sum;     /* their checksum: of a write it is computed, of a read it is compared */
    int      trouble; /* 0: it went well; errno; -1: the checksum differs */
} cot__transfer;

/* Does it, on the thread that calls. */
void cot__transfer_do(cot__transfer *x);

/* How often this process, or one that it was forked from, was forked off since the first call. */
unsigned cot__forks(void);

/* In a forked child there is no thread: what was to be read is read by the caller, and what was to
 * be written is not. */
typedef struct cot__errands cot__errands;

/* Memory that they take; opening them. NULL: there is no memory, or no thread. */
size_t        cot__errands_bytes(void);
cot__errands *cot__errands_open(const cot_allocator *al);
/* Does what was begun, and ends the thread. NULL is fine. */
void cot__errands_close(cot__errands *e);
/* Its number, from 1 on; 0: there are too many. */
int cot__errands_begin(cot__errands *e, const cot__transfer *x);
/* Waits until it is done, and forgets it. */
cot__transfer cot__errands_finish(cot__errands *e, int number);
bool cot__errands_are_done(cot__errands *e);

#endif
