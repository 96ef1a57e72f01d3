/* keep.c: see keep.h. */
#include "data/file/keep.h"

#include <string.h>

enum { BLOCK = 4096, ALIGNED = 16, HEAD = (sizeof(cot__keep_block) + ALIGNED - 1) / ALIGNED * ALIGNED };

void *cot__keep_take(cot__keep *p, size_t bytes) {
    if (bytes > PTRDIFF_MAX / 2) return NULL;
    size_t           need = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    cot__keep_block *b    = p->last;
    if (!b || b->room - b->used < need) {
        size_t room = HEAD + (need < BLOCK - HEAD ? BLOCK - HEAD : need);
        b           = cot__alloc(&p->al, room);
        if (!b) return NULL;
        *b      = (cot__keep_block){p->last, room, HEAD};
        p->last = b;
    }
    void *place = (char *)b + b->used;
    b->used += need;
    return place;
}

char *cot__keep_text(cot__keep *p, const char *text, size_t n) {
    char *copy = cot__keep_take(p, n + 1);
    if (!copy) return NULL;
    if (n) memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

void *cot__keep_grow(cot__keep *p, void *list, size_t used, size_t *room, size_t size) {
    if (used < *room) return list;
    size_t more  = *room ? 2 * *room : 16;
    void  *grown = more <= SIZE_MAX / 2 / size ? cot__keep_take(p, more * size) : NULL;
    if (!grown) return NULL;
    if (used) memcpy(grown, list, used * size);
    *room = more;
    return grown;
}

void cot__keep_free(cot__keep *p) {
    while (p->last) {
        cot__keep_block *b = p->last;
        p->last            = b->before;
        cot__free(&p->al, b, b->room);
    }
}
