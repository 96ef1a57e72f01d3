/* append.c: each record is one write, which readers see as a whole. */
#include "io/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool append_open(append_file *a, const char *path, int64_t keep, failure *f) {
    *a = (append_file){.fd = -1, .size = keep, .path = strdup(path), .lent = strcmp(path, "-") == 0};
    if (!a->path) return failure_memory(f);
    a->fd = a->lent ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (a->lent) return true;
    /* a device or a pipe has no length to cut */
    bool fine = a->fd >= 0 && (ftruncate(a->fd, (off_t)keep) == 0 || errno == EINVAL);
    /* in parentheses: a macro of wasi-libc uses what C has not */
    if (fine && keep > 0) fine = (lseek)(a->fd, (off_t)keep, SEEK_SET) == (off_t)keep;
    int error = errno;
    if (fine) return true;
    append_close(a);
    return failure_file(f, "write", path, error);
}

bool append_miss(append_file *a, int error) {
    if (!a->path || a->missed++ > 0) return true;
    a->error = error;
    return false;
}

bool append_record(append_file *a, const void *bytes, size_t n) {
    const char *at   = bytes;
    size_t      left = n;
    if (!a->path) return true;
    while (left > 0) {
        ssize_t got = write(a->fd, at, left);
        if (got > 0)
            at += got, left -= (size_t)got;
        else if (got == 0 || errno != EINTR) {
            if (got == 0) errno = EIO; /* nothing was taken, and nothing said why */
            break;
        }
    }
    if (left == 0) {
        a->size += (int64_t)n;
        return true;
    }
    int error = errno;
    if (!a->lent && ftruncate(a->fd, (off_t)a->size) == 0) (void)(lseek)(a->fd, (off_t)a->size, SEEK_SET);
    return append_miss(a, error);
}

void append_close(append_file *a) {
    if (a->path && a->fd >= 0 && !a->lent) close(a->fd);
    free(a->path);
    a->path = NULL;
}

const char *append_name(const append_file *a) { return a->lent ? "the standard output" : a->path; }
bool        append_is_left(const append_file *a) { return a->lent && a->error == EPIPE; }
