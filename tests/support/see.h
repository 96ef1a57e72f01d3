/* see.h: the common part of tests of printing, explaining and reporting: reads text from a FILE. */
#ifndef SEE_H
#define SEE_H

#include <stdio.h>
#include <stdlib.h>

/* The contents of a temporary file, as a string in static memory. */
static inline const char *text_of(FILE *f) {
    static char buf[1 << 14];
    rewind(f);
    size_t n = fread(buf, 1, sizeof buf - 1, f);
    buf[n] = 0;
    fclose(f);
    return buf;
}

#endif
