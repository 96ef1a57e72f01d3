/* memory.c: every allocation of the library passes here, on its way to the caller's allocator or to
 * libc.
 *
 * The caller's function is asked for zero bytes only to free, so it need not know what zero means
 * elsewhere. A request for no bytes is a request for one byte, also when it is freed. Limits and
 * accounting are left to the caller. */
#define _GNU_SOURCE /* madvise, mremap */
#include "base/base.h"
#include "base/poison.h"

#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

static size_t at_least_one(size_t size) { return size > 0 ? size : 1; }

/* Large arrays ask for huge pages, where the system gives them on request: walking through 4 kB
 * pages costs a tenth of the time of a simple operation, measured over 16 MB. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM (2 * HUGE_PAGE)

static void *huge(size_t size) {
#if defined(MADV_HUGEPAGE)
    size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void  *p = whole >= size ? aligned_alloc(HUGE_PAGE, whole) : NULL;
    /* if the advice is refused, the memory is as good as any other */
    if (p) madvise(p, whole, MADV_HUGEPAGE);
    return p;
#else
    return malloc(size);
#endif
}

void *cot__alloc(const cot_allocator *al, size_t size) {
    if (al && al->alloc) return al->alloc(al->user, NULL, 0, at_least_one(size));
    return size < HUGE_FROM ? malloc(at_least_one(size)) : huge(size);
}

void *cot__resize(const cot_allocator *al, void *ptr, size_t old_size, size_t new_size) {
    if (!ptr) return new_size > 0 ? cot__alloc(al, new_size) : NULL;
    if (new_size == 0) {
        cot__free(al, ptr, old_size);
        return NULL;
    }
    if (al && al->alloc) return al->alloc(al->user, ptr, at_least_one(old_size), new_size);
    return realloc(ptr, new_size);
}

void cot__free(const cot_allocator *al, void *ptr, size_t size) {
    if (!ptr) return;
    if (al && al->alloc) al->alloc(al->user, ptr, at_least_one(size), 0);
    else free(ptr);
}

/* ---- large blocks of the system -------------------------------------------------------------- */

#if defined(__linux__)
enum { LARGE = 1 << 16 };

static void *take(size_t bytes, int flags) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* A process may have so many mappings that none can be cut in two: then the addresses stay taken,
 * and the memory behind them goes. */
static void give_back(void *p, size_t bytes) {
    if (munmap(p, bytes) != 0) madvise(p, bytes, MADV_DONTNEED);
}

/* The pages of a block that grows go with it, so that it is never there twice. (Sanitizers do not
 * see that.) */
static void *moved(void *p, size_t old_size, size_t new_size) {
    void *at = COT__ADDRESS_SANITIZER || COT__MEMORY_SANITIZER ? MAP_FAILED
                                                               : mremap(p, old_size, new_size, MREMAP_MAYMOVE);
    return at == MAP_FAILED ? NULL : at;
}

static void *of_the_system(void *allocator, void *ptr, size_t old_size, size_t new_size, int flags) {
    bool was = ptr && old_size >= LARGE, is = new_size >= LARGE;
    if (!was && !is) return cot__resize(allocator, ptr, old_size, new_size);
    void *fresh = was && is ? moved(ptr, old_size, new_size) : NULL;
    if (fresh) return fresh;
    fresh = !new_size ? NULL : is ? take(new_size, flags) : cot__alloc(allocator, new_size);
    if (new_size && !fresh) return NULL;
    if (ptr && fresh) memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    if (was) give_back(ptr, old_size);
    else cot__free(allocator, ptr, old_size);
    return fresh;
}

void *cot__pages(void *allocator, void *ptr, size_t old_size, size_t new_size) {
    return of_the_system(allocator, ptr, old_size, new_size, 0);
}
void *cot__reserve(void *allocator, void *ptr, size_t old_size, size_t new_size) {
    return of_the_system(allocator, ptr, old_size, new_size, MAP_NORESERVE);
}
#else
void *cot__pages(void *allocator, void *ptr, size_t old_size, size_t new_size) {
    return cot__resize(allocator, ptr, old_size, new_size);
}
void *cot__reserve(void *allocator, void *ptr, size_t old_size, size_t new_size) {
    return cot__resize(allocator, ptr, old_size, new_size);
}
#endif
