/* mapped.c: see mapped.h. All blocks of the process stand in a list, for the moment of a fork: a
 * child that wrote to the pages that it shares would write to its parent's tape. */
#define _GNU_SOURCE /* mremap */
#include "base/file/mapped.h"
#include "base/file/nameless.h"
#include "base/poison.h"

#include <errno.h>

#if defined(__linux__)
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    cot__mapped    *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- forks ----------------------------------------------------------------------------------- */

static void hold(void) { pthread_mutex_lock(&all.lock); }
static void let_go(void) { pthread_mutex_unlock(&all.lock); }

/* Pages that the child writes from now on are its own. Where the system has none for it, a write
 * ends the child; and where nothing is there any more, nobody else is to come there. */
static void own(const cot__mapped *m) {
    if (mmap(m->data, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, m->fd, 0) != MAP_FAILED) return;
    if (mprotect(m->data, m->bytes, PROT_READ))
        mmap(m->data, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
/* What the child of a child inherits are pages already, which its parent may have written. */
static void become_own(void) {
    for (cot__mapped *m = all.first; m; m = m->behind) {
        if (m->bytes && !m->inherited) own(m);
        m->inherited = true;
    }
    let_go();
}
static void watch_forks(void) { pthread_atfork(hold, let_go, become_own); }

/* ---- blocks ---------------------------------------------------------------------------------- */

cot__mapped *cot__mapped_open(const cot_allocator *al, const char *folder) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cot__mapped          *m = cot__alloc(al, sizeof *m);
    if (!m) return errno = ENOMEM, NULL;
    *m = (cot__mapped){.al = *al, .fd = cot__nameless_open(folder)};
    if (m->fd < 0) {
        int why = errno;
        cot__free(al, m, sizeof *m);
        return errno = why, NULL;
    }
    pthread_once(&once, watch_forks);
    hold();
    m->behind = all.first;
    if (all.first) all.first->before = m;
    all.first = m;
    let_go();
    return m;
}

void cot__mapped_close(cot__mapped *m) {
    if (!m) return;
    hold();
    if (m->before) m->before->behind = m->behind;
    else all.first = m->behind;
    if (m->behind) m->behind->before = m->before;
    let_go();
    if (m->bytes) munmap(m->data, m->bytes);
    close(m->fd);
    cot__free(&m->al, m, sizeof *m);
}

static bool failed(int why) { return errno = why, false; }

bool cot__mapped_grow(cot__mapped *m, size_t bytes) {
    if (bytes <= m->bytes) return true;
    if (m->inherited) return failed(EPERM);
    int why = cot__nameless_grow(m->fd, m->bytes, bytes);
    if (why) return failed(why);
    hold();
    void *p = m->bytes ? mremap(m->data, m->bytes, bytes, MREMAP_MAYMOVE)
                       : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    why = errno;
    if (p != MAP_FAILED) m->data = p, m->bytes = bytes;
    let_go();
    if (p == MAP_FAILED) return failed(why);
    cot__unpoison(p, bytes); /* another mapping may have been there */
    cot__written(p, bytes);
    return true;
}

/* What a child has written lies nowhere else. */
void cot__mapped_leave(cot__mapped *m) {
    if (m->bytes && !m->inherited) madvise(m->data, m->bytes, MADV_DONTNEED);
}
#else
cot__mapped *cot__mapped_open(const cot_allocator *al, const char *folder) {
    return (void)al, (void)folder, errno = ENOSYS, NULL;
}
void cot__mapped_close(cot__mapped *m) { (void)m; }
bool cot__mapped_grow(cot__mapped *m, size_t bytes) { return (void)m, (void)bytes, errno = ENOSYS, false; }
void cot__mapped_leave(cot__mapped *m) { (void)m; }
#endif
