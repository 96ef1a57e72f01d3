/* see.h: what the tests of printing, explaining and reporting share: text out of a FILE. */
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

#endif
