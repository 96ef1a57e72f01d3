/* cache.h: an allocator that keeps freed blocks for the next request of about the same size.
 *
 * A training step asks for the blocks that the step before gave back. Getting them from the system
 * again, page by page, would cost more than computing in them; from here they come without a system
 * call. Sizes are rounded up to one of eight steps for each power of two, so that steps whose sizes
 * vary a little still find them. Kept blocks never make the total larger than a quarter above the
 * largest amount in use at once. Only one thread at a time may use it.
 *
 * It also counts: the most bytes that were ever in use, and, where there is a limit, that no more
 * are taken from below. Bytes that are set aside (leaves, gradients) count for neither. */
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
    /* aside: bytes of `live` that neither count; peak: the largest that live - aside has been */
    size_t        aside, peak, seen; /* seen: the same since somebody set it (memory/scratch.c) */
    size_t        limit;   /* the most that held - aside may be; 0: no limit */
    bool          beside;  /* blocks that are asked for now are set aside */
    bool          refused; /* the last request that failed did so because of the limit */
    bool          set;     /* what it hands out counts as written (memory/rehearse.c) */
    /* Gives blocks back until `bytes` more are within the limit, if it can. NULL: nobody can. */
    void (*make_room)(void *of, size_t bytes);
    void         *of;
} cot__cache;

/* The function for cot__alloc and its relatives, with the cache as `user`. */
void *cot__cache_alloc(void *cache, void *ptr, size_t old_size, size_t new_size);
/* The bytes that a block of this size takes. */
size_t cot__cache_takes(size_t size);
/* Gives all free blocks back. */
void cot__cache_trim(cot__cache *c);
/* A block of this size is set aside, or counts again. */
void cot__cache_set_aside(cot__cache *c, size_t size, bool aside);
/* Are `bytes` more within the limit? Gives back what it can first. */
bool cot__cache_room(cot__cache *c, size_t bytes);
/* Memory that was taken from below without the cache grew from old_size to new_size bytes. */
void cot__cache_count(cot__cache *c, size_t old_size, size_t new_size);
/* Bytes in use that count. More may be set aside than is in use: room for gradients to come. */
static inline size_t cot__cache_used(const cot__cache *c) { return c->live > c->aside ? c->live - c->aside : 0; }

#endif
