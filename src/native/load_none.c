/* load_none.c: the static library loads nothing: with dlopen in it the linker warns of every
 * program that is linked -static. */
#include "native/load.h"

const bool cot__loads_objects = false;

bool cot__object_load(int fd, cot__loaded *l, char why[COT__NATIVE_TEXT]) {
    (void)fd, why[0] = 0;
    *l = (cot__loaded){0};
    return false;
}

void cot__object_unload(cot__loaded *l) { *l = (cot__loaded){0}; }

void cot__stay_loaded(void) {}
