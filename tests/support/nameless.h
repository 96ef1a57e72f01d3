/* nameless.h: the files of stores (base/file/store.h) as the system sees them. They have no name,
 * but the process has them open. */
#ifndef COT_TEST_NAMELESS_H
#define COT_TEST_NAMELESS_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/tape_test.h"

static inline bool is_nameless(int fd) {
    char link[32], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name - 1);
    name[n > 0 ? n : 0] = 0;
    return strstr(name, "/cotangent-") && strstr(name, "(deleted)");
}

/* How many are open, and the bytes that they have. */
static inline int64_t nameless_files(int64_t *bytes) {
    int64_t files = 0;
    *bytes = 0;
    for (int fd = 0; fd < 64; fd++) {
        struct stat file;
        if (!is_nameless(fd) || fstat(fd, &file)) continue;
        files++;
        *bytes += file.st_size;
    }
    return files;
}

/* The descriptor of the only one. */
static inline int nameless_file(void) {
    int fd = 0;
    while (fd < 64 && !is_nameless(fd)) fd++;
    if (fd == 64) fail_msg("there is no file without a name");
    return fd;
}

/* From now on the disk takes no bytes, and gives zeros. */
static inline void nameless_file_fails(void) {
    int fd = nameless_file(), full = open("/dev/full", O_RDWR);
    assert_true(full >= 0 && dup2(full, fd) == fd);
    close(full);
}

/* One bit of each byte is another. */
static inline void nameless_file_is_damaged(void) {
    int           fd = nameless_file();
    unsigned char b[4096];
    struct stat   file;
    assert_int_equal(fstat(fd, &file), 0);
    for (off_t at = 0; at < file.st_size; at += (off_t)sizeof b) {
        ssize_t n = pread(fd, b, sizeof b, at);
        for (ssize_t k = 0; k < n; k++) b[k] ^= 16;
        assert_int_equal(pwrite(fd, b, (size_t)n, at), n);
    }
}

#endif
