/* see.h: what the tests of printing, explaining and reporting share: text out of a FILE, and an allocator that fails on demand. */
#ifndef SEE_H
#define SEE_H

#include <stdio.h>
#include <stdlib.h>

/* What a temporary file holds, as a string of static storage. */
static inline const char *text_of(FILE *f) {
    static char buf[1 << 14];
    rewind(f);
    size_t n = fread(buf, 1, sizeof buf - 1, f);
    buf[n] = 0;
    fclose(f);
    return buf;
}

/* Lets `left` allocations succeed, then none; -1: all. Freeing always works. */
static inline void *failing_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    int *left = user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (*left == 0) return NULL;
    if (*left > 0) --*left;
    return realloc(ptr, new_size);
}

#endif
