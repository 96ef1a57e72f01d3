/* fail_malloc.c: preloaded into the command, fails its allocation number COT_FAIL_AT, counted from 1, and all later ones when
 * COT_FAIL_ON is set. For glibc, which exports its allocator under second names. */
#include <stdlib.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static int fails(void) {
    static long count, at = -1;
    static int  on;
    if (at < 0) {
        const char *text = getenv("COT_FAIL_AT");
        at = text ? atol(text) : 0;
        on = getenv("COT_FAIL_ON") != NULL;
    }
    count++;
    return at > 0 && (count == at || (on && count > at));
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
