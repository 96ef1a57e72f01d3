/* object.h: the inside of native code of a program, which native.c makes, queue.c compiles and
 * go.c runs. */
#ifndef COT_NATIVE_OBJECT_H
#define COT_NATIVE_OBJECT_H

#include "native/compiler.h"
#include "native/load.h"
#include "native/native.h"

/* Runs that were timed: those begun and done; the least nanoseconds by the executor and by native
 * code, 0: none has ended. */
typedef struct cot__trial { atomic_int begun, done; _Atomic int64_t least[2]; } cot__trial;

struct cot__native {
    atomic_uint         refs; /* its program, and the queue */
    atomic_int          state;
    const cot__program *p;
    cot__run_parts      parts;
    void               *lists; /* of the parts, in one piece */
    /* what is compiled */
    char               *text;
    size_t              text_bytes;
    char                key[COT__DIGEST_TEXT];
    cot__folder         folder;
    cot__compiler       compiler;
    cot__loaded         loaded;
    struct cot__native *next; /* in the queue */
    /* sentences: why there is none, written before the state says so; and of a comparison */
    char                why[COT__NATIVE_TEXT], differs[COT__NATIVE_TEXT];
    atomic_flag         told;
    cot__trial          trial;
};

/* Lets one owner go; the last frees it. */
void cot__native_release(cot__native *n);

/* ---- trial.c --------------------------------------------------------------------------------- */

/* Have enough runs been timed? */
bool cot__native_is_tried(const cot__native *n);
/* A run of those that are: by the executor or by native code, in turns. */
bool cot__native_try(cot__native *n, cot__run *r, const void *const *inputs, void *const *outputs);

/* ---- queue.c --------------------------------------------------------------------------------- */

/* Compiles it when its turn comes. False: there is no thread for that. */
bool cot__native_queue(cot__native *n, char why[COT__NATIVE_TEXT]);
/* Waits until it is no longer being compiled. */
void cot__native_wait(cot__native *n);
/* Opens the folder, and loads the object if it is there. `why` is empty if there is none. */
bool cot__native_find(cot__native *n, char why[COT__NATIVE_TEXT]);

#endif
