/* cache.h: an allocator that keeps what is freed for the next request of about the same size.
 *
 * A training step asks for the blocks that the step before gave back. Getting them from the system
 * again, page by page, would cost more than computing in them; from here they come without a system
 * call. Sizes are rounded up to one of eight steps for each power of two, so that steps whose sizes
 * vary a little still find them. What is kept never makes the whole larger than a quarter above the
 * most that was in use at once. One thread at a time. */
#ifndef COT_CACHE_H
#define COT_CACHE_H

#include "base/base.h"

enum { COT__CACHE_CLASSES = 8 * 42 };

typedef struct cot__cache {
    cot_allocator below;                    /* where blocks come from */
    /* bytes in use; taken from below; the largest that live has been */
    size_t        live, held, most;
    /* lists: the first word of a free block is the next one */
    void         *free[COT__CACHE_CLASSES];
} cot__cache;

/* For cot__alloc and its like, with the cache as `user`. */
void *cot__cache_alloc(void *cache, void *ptr, size_t old_size, size_t new_size);
/* Gives all that is free back. */
void cot__cache_trim(cot__cache *c);

#endif
