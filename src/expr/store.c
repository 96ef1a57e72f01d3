/* store.c: memory that grows in chunks and is freed as a whole. A program has one store, and each
 * run of it has another. */
#include "expr/program.h"

#include <string.h>

typedef struct cot__store_chunk {
    struct cot__store_chunk *next;
    size_t                  size, used; /* of the bytes behind this header */
} chunk;

enum { CHUNK_BYTES = 4096, ALIGNMENT = 16, HEADER = (sizeof(chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT };

void *cot__store_take(cot__store *p, size_t bytes) {
    chunk *c = p->chunks;
    if (bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!c || c->size - c->used < bytes) {
        /* Chunks double, so that their number stays small. */
        size_t size = c && c->size < SIZE_MAX / 8 ? 2 * c->size : CHUNK_BYTES;
        if (size > (size_t)1 << 20) size = (size_t)1 << 20;
        if (size < bytes) size = bytes;
        c = cot__alloc(&p->al, HEADER + size);
        if (!c) return NULL;
        *c = (chunk){p->chunks, size, 0};
        p->chunks = c;
    }
    void *at = (char *)c + HEADER + c->used;
    c->used += bytes;
    return at;
}

char *cot__store_text(cot__store *p, const char *text, size_t length) {
    char *copy = cot__store_take(p, length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

void cot__store_free(cot__store *p) {
    for (chunk *c = p->chunks, *next; c; c = next) {
        next = c->next;
        cot__free(&p->al, c, HEADER + c->size);
    }
    p->chunks = NULL;
}
