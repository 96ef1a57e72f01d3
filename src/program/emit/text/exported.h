/* exported.h: the text of all functions that an exported file may hold (text/exported.inc), as
 * lines. The library holds it packed, in a third of its size; whoever needs it unpacks it. */
#ifndef COT_EMIT_EXPORTED_H
#define COT_EMIT_EXPORTED_H

#include "base/base.h"

/* Made when the library is built (tools/pack_text.c). */
extern const int           cot__packed_lines, cot__packed_letters, cot__packed_bytes;
extern const unsigned char cot__packed_text[];

typedef struct cot__exported {
    const cot_allocator *al;
    char                *text;
    const char         **line; /* NULL ends them */
} cot__exported;

/* False: out of memory. */
bool cot__exported_open(cot__exported *x, const cot_allocator *al);
void cot__exported_close(cot__exported *x);

#endif
