/* keep.h: memory for the names and lists of one object, which is freed all at once.
 *
 * Nothing of it is given back alone: a list that grows leaves its old place behind, which is at
 * most as much again as the list itself. */
#ifndef COT_DATA_KEEP_H
#define COT_DATA_KEEP_H

#include "base/base.h"

typedef struct cot__keep_block {
    struct cot__keep_block *before;
    size_t                  room, used; /* bytes, this head included */
} cot__keep_block;

typedef struct cot__keep {
    cot_allocator    al;
    cot__keep_block *last;
} cot__keep;

/* Memory for anything; not zeroed. NULL when it is short. */
void *cot__keep_take(cot__keep *p, size_t bytes);
/* A copy of n bytes with a 0 behind them. */
char *cot__keep_text(cot__keep *p, const char *text, size_t n);
/* A list of elements of `size` bytes, which are `used`, has room for one more: itself or a copy
 * twice as long. NULL when memory is short; the old list stays. */
void *cot__keep_grow(cot__keep *p, void *list, size_t used, size_t *room, size_t size);
void  cot__keep_free(cot__keep *p);

#endif
