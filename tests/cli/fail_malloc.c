/* fail_malloc.c: malloc, calloc and realloc that fail on demand. For glibc, which exports its
 * allocator under second names. */
#include "fail_malloc.h"

#include <errno.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static long count, fail_at;
static bool fail_on;

void fail_malloc(long at, bool later_too) { count = 0, fail_at = at, fail_on = later_too; }
bool fail_malloc_did(void) { return fail_at > 0 && count >= fail_at; }

static int fails(void) {
    if (fail_at == 0) return 0;
    count++;
    if (count != fail_at && !(fail_on && count > fail_at)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
