/* zlib_none.c: nothing is loaded at run time: in the static library, in WebAssembly, and everywhere
 * with COT_LAPACK_AT_RUN_TIME=OFF. */
#include "data/file/zlib.h"

bool cot__has_zlib(void) { return false; }

cot__inflated cot__inflate(const void *from, size_t n, bool gzip, void *to, size_t room, size_t *made) {
    (void)from, (void)n, (void)gzip, (void)to, (void)room;
    *made = 0;
    return COT__INFLATE_MISSING;
}

size_t cot__deflate(const void *from, size_t n, void *to, size_t room) {
    return (void)from, (void)n, (void)to, (void)room, 0;
}
