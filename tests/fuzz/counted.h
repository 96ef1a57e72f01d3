/* counted.h: an allocator for fuzz targets: it counts the bytes that are in use, and refuses large
 * requests. A few bytes of input may claim any number of elements; what needs memory for them is
 * refused then, as on a machine that has none. */
#ifndef COT_FUZZ_COUNTED_H
#define COT_FUZZ_COUNTED_H

#include <stdlib.h>

enum { MOST_MEMORY = 1 << 24 };

/* user: a size_t, the bytes in use. */
static inline void *counted(void *user, void *ptr, size_t old_size, size_t new_size) {
    size_t *used = user;
    if (new_size > MOST_MEMORY) return NULL;
    if (new_size == 0) return *used -= ptr ? old_size : 0, free(ptr), NULL;
    void *moved = realloc(ptr, new_size);
    if (moved) *used += new_size - (ptr ? old_size : 0);
    return moved;
}

#endif
