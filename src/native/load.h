/* load.h: loads an object that has been checked. */
#ifndef COT_NATIVE_LOAD_H
#define COT_NATIVE_LOAD_H

#include "native/folder.h"
#include "program/run.h"

typedef struct cot__loaded {
    void                *handle;
    cot__part_fn *const *functions;
} cot__loaded;

/* Can this library load any? */
extern const bool cot__loads_objects;
/* The object that is open as fd. False, and `why`. */
bool cot__object_load(int fd, cot__loaded *l, char why[COT__NATIVE_TEXT]);
void cot__object_unload(cot__loaded *l);
/* The library stays loaded from now on, whoever closes it: a thread of its own is at work. */
void cot__stay_loaded(void);

#endif
