/* once.h: parts that have the same text are one function: steps of a loop that was unrolled do the
 * same to other arrays, and a compiler shall see them once. */
#ifndef COT_NATIVE_ONCE_H
#define COT_NATIVE_ONCE_H

#include "base/base.h"
#include "native/digest.h"

typedef struct cot__once {
    cot_allocator al;
    uint8_t     (*digest)[COT__DIGEST]; /* of the text of each part */
    uint32_t     *slot;                 /* by digest: a part, and 1; 0: none */
    uint32_t     *first;                /* for each part: the first that has its text */
    uint32_t      parts, slots;         /* slots: a power of two */
} cot__once;

/* False: there is no memory, and nothing to close. */
bool cot__once_open(cot__once *o, uint32_t parts, const cot_allocator *al);
void cot__once_close(cot__once *o);
/* Is it the first part that has this text? */
bool cot__once_is_first(cot__once *o, uint32_t part, const char *text, size_t bytes);

#endif
