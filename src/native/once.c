/* once.c: see once.h. */
#include "native/once.h"

#include <string.h>

bool cot__once_open(cot__once *o, uint32_t parts, const cot_allocator *al) {
    *o = (cot__once){.al = *al, .parts = parts, .slots = 16};
    while (o->slots < 2 * (uint64_t)parts && o->slots < UINT32_C(1) << 31) o->slots *= 2;
    o->digest = cot__alloc(al, parts * sizeof *o->digest);
    o->first = cot__alloc(al, parts * sizeof *o->first);
    o->slot = cot__alloc(al, o->slots * sizeof *o->slot);
    if (o->digest && o->first && o->slot) return memset(o->slot, 0, o->slots * sizeof *o->slot), true;
    cot__once_close(o);
    return false;
}

void cot__once_close(cot__once *o) {
    cot__free(&o->al, o->digest, o->parts * sizeof *o->digest);
    cot__free(&o->al, o->first, o->parts * sizeof *o->first);
    cot__free(&o->al, o->slot, o->slots * sizeof *o->slot);
    *o = (cot__once){0};
}

/* The slot of the digest, or the free one where it would be. */
static uint32_t *find(const cot__once *o, const uint8_t digest[COT__DIGEST]) {
    uint32_t at;
    memcpy(&at, digest, sizeof at);
    for (;; at++) {
        uint32_t *slot = &o->slot[at & (o->slots - 1)];
        if (!*slot || memcmp(o->digest[*slot - 1], digest, COT__DIGEST) == 0) return slot;
    }
}

bool cot__once_is_first(cot__once *o, uint32_t part, const char *text, size_t bytes) {
    cot__digest d;
    cot__digest_begin(&d);
    cot__digest_take(&d, text, bytes);
    cot__digest_end(&d, o->digest[part]);
    uint32_t *slot = find(o, o->digest[part]);
    bool      first = !*slot;
    if (first) *slot = part + 1;
    o->first[part] = *slot - 1;
    return first;
}
