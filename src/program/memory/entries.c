/* entries.c: a hash table with open addressing, which grows by doubling. */
#include "program/memory/entries.h"

#include <string.h>

static void put_again(cot__entries *e, cot__entry old) {
    uint32_t i = old.hash & (e->size - 1);
    while (e->at[i].number) i = (i + 1) & (e->size - 1);
    e->at[i] = old;
}

bool cot__entries_reserve(cot__entries *e, const cot_allocator *al) {
    cot__entries more = {.size = e->size ? 2 * e->size : 16, .count = e->count};
    if (cot__entries_have_room(e)) return true;
    more.at = cot__alloc(al, more.size * sizeof *more.at);
    if (!more.at) return false;
    memset(more.at, 0, more.size * sizeof *more.at);
    for (uint32_t i = 0; i < e->size; i++)
        if (e->at[i].number) put_again(&more, e->at[i]);
    cot__entries_free(e, al);
    *e = more;
    return true;
}

void cot__entries_free(cot__entries *e, const cot_allocator *al) {
    cot__free(al, e->at, e->size * sizeof *e->at);
    *e = (cot__entries){0};
}

cot__entry *cot__entries_find(const cot__entries *e, uint32_t hash, cot__is_entry *is, const void *list,
                              const void *key) {
    uint32_t i = hash & (e->size - 1);
    while (e->at[i].number && (e->at[i].hash != hash || !is(list, e->at[i].number - 1, key)))
        i = (i + 1) & (e->size - 1);
    return &e->at[i];
}

void cot__entries_put(cot__entries *e, cot__entry *at, uint32_t hash, uint32_t number) {
    *at = (cot__entry){hash, number + 1};
    e->count++;
}
