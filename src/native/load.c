/* load.c: see load.h. In the shared library; load_none.c is in the static one. */
#define _GNU_SOURCE /* dladdr */
#include "native/load.h"
#include "native/native.h"
#include "native/text.h"

#if COT__HAS_NATIVE
#include "base/number.h"

#include <dlfcn.h>
#include <stdatomic.h>

const bool cot__loads_objects = true;

/* The very file that was checked, whatever its name is by now. The loader takes two objects of one
 * name for the same, and numbers of files come again: so each path is spelled in its own way, with
 * the bits of a counter as /. and /. */
static void path_of(int fd, char path[256]) {
    static atomic_uint count;
    cot__text          text = cot__text_buffer(path, 256);
    cot__put(&text, "/proc/self/fd");
    for (unsigned bits = atomic_fetch_add(&count, 1) | 1u << 31; bits; bits >>= 1)
        cot__put(&text, bits & 1 ? "/." : "/");
    cot__putf(&text, "/%d", fd);
}

bool cot__object_load(int fd, cot__loaded *l, char why[COT__NATIVE_TEXT]) {
    char path[256];
    *l = (cot__loaded){0};
    path_of(fd, path);
    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (l->handle) l->functions = dlsym(l->handle, COT__NATIVE_TABLE);
    if (l->functions) return true;
    const char *reason = dlerror();
    cot__format(why, COT__NATIVE_TEXT, "the object cannot be loaded: %.300s", reason ? reason : "it has no functions");
    cot__object_unload(l);
    return false;
}

/* Taken once and never given back. */
void cot__stay_loaded(void) {
    Dl_info me;
    if (dladdr(&cot__loads_objects, &me) && me.dli_fname) dlopen(me.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void cot__object_unload(cot__loaded *l) {
    if (l->handle) dlclose(l->handle);
    *l = (cot__loaded){0};
}
#endif
