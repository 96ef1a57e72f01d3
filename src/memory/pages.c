/* pages.c: memory that a tape with a limit computes in comes from the system, and goes back there.
 *
 * The system promises it when it is asked, and may refuse: a refusal is an error on the tape, where
 * a promise that is not kept would be the end of the process. */
#include "memory/memory.h"

#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>

enum { LARGE = 1 << 16 };

static void *take(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* A process may have so many mappings that none can be cut in two: then the addresses stay taken,
 * and the memory behind them goes. */
static void give_back(void *p, size_t bytes) {
    if (munmap(p, bytes) != 0) madvise(p, bytes, MADV_DONTNEED);
}

void *cot__pages(void *allocator, void *ptr, size_t old_size, size_t new_size) {
    bool was = ptr && old_size >= LARGE, is = new_size >= LARGE;
    if (!was && !is) return cot__resize(allocator, ptr, old_size, new_size);
    void *fresh = !new_size ? NULL : is ? take(new_size) : cot__alloc(allocator, new_size);
    if (new_size && !fresh) return NULL;
    if (ptr && fresh) memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    if (was) give_back(ptr, old_size);
    else cot__free(allocator, ptr, old_size);
    return fresh;
}
#else
void *cot__pages(void *allocator, void *ptr, size_t old_size, size_t new_size) {
    return cot__resize(allocator, ptr, old_size, new_size);
}
#endif
