/* cache.h: an allocator that keeps freed blocks for the next request of about the same size.
 *
 * A training step asks for the blocks that the step before gave back. Getting them from the system
 * again, page by page, would cost more than computing in them; from here they come without a system
 * call. Sizes are rounded up to one of eight steps for each power of two, so that steps whose sizes
 * vary a little still find them. Kept blocks never make the total larger than a quarter above the
 * largest amount in use at once. Only one thread at a time may use it. */
#ifndef COT_CACHE_H
#define COT_CACHE_H

#include "base/base.h"

enum { COT__CACHE_CLASSES = 8 * 42 };

typedef struct cot__cache {
    cot_allocator below;                    /* where blocks come from */
    /* live: bytes in use; held: bytes taken from below; most: the largest that live has been */
    size_t        live, held, most;
    /* lists: the first word of a free block is the next one */
    void         *free[COT__CACHE_CLASSES];
} cot__cache;

/* The function for cot__alloc and its relatives, with the cache as `user`. */
void *cot__cache_alloc(void *cache, void *ptr, size_t old_size, size_t new_size);
/* Gives all free blocks back. */
void cot__cache_trim(cot__cache *c);

#endif
