/* entries.h: a hash table of numbers of entries of some list, by which each entry stands there
 * once. */
#ifndef COT_ENTRIES_H
#define COT_ENTRIES_H

#include "base/base.h"

typedef struct cot__entry { uint32_t hash, number; } cot__entry; /* number: + 1; 0: free */

typedef struct cot__entries {
    cot__entry *at;
    uint32_t    size, count; /* size: a power of two, at least twice the count */
} cot__entries;

/* Is entry k of the list the one that is looked for? */
typedef bool cot__is_entry(const void *list, uint32_t k, const void *key);

static inline bool cot__entries_have_room(const cot__entries *e) { return 2 * ((uint64_t)e->count + 1) <= e->size; }
/* Room for one more; false: out of memory. */
bool cot__entries_reserve(cot__entries *e, const cot_allocator *al);
void cot__entries_free(cot__entries *e, const cot_allocator *al);
/* The place of the entry, or the free place for it. There must be room. */
cot__entry *cot__entries_find(const cot__entries *e, uint32_t hash, cot__is_entry *is, const void *list,
                              const void *key);
void cot__entries_put(cot__entries *e, cot__entry *at, uint32_t hash, uint32_t number);

static inline uint32_t cot__hash_more(uint32_t hash, uint64_t word) {
    uint64_t x = (hash + word) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

#endif
