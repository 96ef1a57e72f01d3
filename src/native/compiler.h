/* compiler.h: the compiler of the system, and how it is called.
 *
 *   COTANGENT_CC, a path or a name, or the first of cc, gcc and clang that PATH has
 *
 * Options switch off whatever would change bits, and name the instruction set that the library
 * uses, so an object does not depend on the processor beyond that. The compiler gets HOME
 * and TMPDIR, the absolute folders of PATH, nothing else of the host's environment, and
 * COTANGENT_NATIVE_SECONDS (60) of time. */
#ifndef COT_NATIVE_COMPILER_H
#define COT_NATIVE_COMPILER_H

#include "native/folder.h"

#include "base/base.h"

typedef struct cot__compiler {
    char    path[COT__PATH];
    int64_t bytes, seconds, nanoseconds; /* of its file: its size, and when it was changed */
    int64_t milliseconds;                /* that it may take */
    char  **environment;                 /* a copy: the host's may change */
} cot__compiler;

/* Looks for one. False: there is none, and `why` says so. */
bool cot__compiler_find(cot__compiler *c, char why[COT__NATIVE_TEXT]);
void cot__compiler_close(cot__compiler *c);
/* All that decides what it makes of a text. */
void cot__compiler_digest(const cot__compiler *c, cot__digest *d);
/* Compiles the text to the object of the key in the folder, in a thread that may sleep (spawn.h).
 * False, and `why`. */
bool cot__compile_text(const cot__compiler *c, const cot__folder *f, const char *text, size_t bytes,
                       const char key[COT__DIGEST_TEXT], char why[COT__NATIVE_TEXT]);

#endif
