/* text.h: the parts of a program as C. Names in it are numbers behind a letter: no text of the
 * user's is in it. What an operation does is printed by program/emit, so exported C and native code
 * have one meaning, and the library's bits. */
#ifndef COT_NATIVE_TEXT_H
#define COT_NATIVE_TEXT_H

#include "base/text.h"
#include "native/parts/choose.h"
#include "program/emit/writer.h"

/* The name of the table of functions, in the order of the parts, that the object has. */
#define COT__NATIVE_TABLE "cot_native_parts"

/* *lines: statements, about. False after telling the caller that there is no memory. */
bool cot__native_write(const cot__choice *c, cot__text *to, uint32_t *lines, const cot__caller *caller);

/* ---- text.c ---------------------------------------------------------------------------------- */

/* What the text of a part calls its function, and another one that this may call: macros, which
 * whole.c defines, so that parts that do the same have the same text. */
#define COT__NATIVE_PART "COT_PART"
#define COT__NATIVE_STRONG "COT_STRONG"

/* A part as a function. False: it has an operation without a text. */
bool cot__native_put_part(cot__writer *w, const cot__choice *c, uint32_t part);

#endif
