/* nameless.c: see nameless.h. */
#define _GNU_SOURCE /* mkostemp */
#include "base/file/nameless.h"

#include <errno.h>

#if defined(__linux__)
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int cot__nameless_open(const char *folder) {
    char name[4096];
    if (snprintf(name, sizeof name, "%s/cotangent-XXXXXX", folder) >= (int)sizeof name) return errno = ENAMETOOLONG, -1;
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0) unlink(name);
    return fd;
}

/* Beyond the limit on the sizes of files a write would end the process by a signal. */
static bool may_have(uint64_t size) {
    struct rlimit most;
    return getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur == RLIM_INFINITY || size <= most.rlim_cur;
}

int cot__nameless_grow(int fd, uint64_t size, uint64_t more) {
    int why = more <= INT64_MAX && may_have(more) ? EINTR : EFBIG;
    while (why == EINTR) why = posix_fallocate(fd, (off_t)size, (off_t)(more - size));
    return why;
}
#else
int cot__nameless_open(const char *folder) { return (void)folder, errno = ENOSYS, -1; }
int cot__nameless_grow(int fd, uint64_t size, uint64_t more) { return (void)fd, (void)size, (void)more, ENOSYS; }
#endif
