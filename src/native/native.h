/* native.h: native code for programs: what a program does element by element is written as C,
 * compiled in the background, and called by its runs instead of the executor's steps.
 *
 * What the folder does: choose.h says which operations of a program become functions, text.h writes
 * them as C without any text of the user's, compiler.h runs a compiler of the system on it,
 * folder.h keeps the objects, load.h checks one and loads it. Everything else, such as products of
 * matrices, is done by the library as before.
 *
 * The first run with a new object is done twice, by the executor and by native code, and the
 * results are compared bit by bit. If they differ, the native code is not used again; nor is it if
 * the next runs, which go by turns, take longer by it. Whatever goes wrong, runs go on by the
 * executor, and a sentence says why.
 *
 * May call: program, program/emit and what is below. Must not touch: tapes, memory of the
 * user's. */
#ifndef COT_NATIVE_H
#define COT_NATIVE_H

#include "program/run.h"

/* Where there is a way to run a compiler that the host does not notice (spawn.c), and to load what
 * it makes. */
#if defined(__linux__) && !defined(__wasm__)
#define COT__HAS_NATIVE 1
#else
#define COT__HAS_NATIVE 0
#endif

typedef enum cot__native_state {
    COT__NATIVE_OFF,
    COT__NATIVE_COMPILING,
    COT__NATIVE_LOADED,  /* no run has been compared yet */
    COT__NATIVE_READY,
    COT__NATIVE_DROPPED
} cot__native_state;

typedef struct cot__native cot__native;

/* Is it asked for? COTANGENT_NATIVE is 1: always, 0: never; otherwise `wanted` says. */
bool cot__native_wanted(bool wanted);

/* Native code of the program: found in the cache, or being compiled. Its memory is the system's,
 * since a thread of its own may be the last that has it; `al` is used until this returns. NULL:
 * there is no memory. The program must outlive it, as it does while it has runs. */
cot__native *cot__native_open(const cot__program *p, const cot_allocator *al);
/* The owner lets it go. Nobody waits for a compiler. NULL is fine. */
void cot__native_close(cot__native *n);

/* `wait`: until it is known how compiling ends. */
cot__native_state cot__native_look(cot__native *n, bool wait);
/* A sentence for the state. */
const char *cot__native_message(const cot__native *n);
/* Which operations become functions: for runs, which are to be made with them. */
const cot__run_parts *cot__native_parts(const cot__native *n);

/* A run that was made with the parts goes, by native code if that is there. `aside` has room for
 * all outputs, see below, for the first comparison; NULL: none is made, and the executor runs until
 * another run has compared. */
bool   cot__native_go(cot__native *n, cot__run *r, void *aside, const void *const *inputs, void *const *outputs);
/* Bytes of `aside`; 0 when nothing needs to be compared any more. */
size_t cot__native_aside(cot__native *n);

/* ---- for tests ------------------------------------------------------------------------------- */

/* What is asked of the system once for each program. -1: it is not forced. */
extern int cot__native_secure;
/* Compilers started so far. */
extern atomic_int cot__native_started;

#endif
