/* replace.c: a file is written beside its place, then renamed. */
#include "base/file/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef __wasi__
#include <sys/resource.h>

/* Gives the new file the permissions of the file that it replaces. */
static void keep_rights(const char *path, mode_t mode) { chmod(path, mode & 07777); }

static bool to_disk(FILE *file) { return fflush(file) == 0 && fsync(fileno(file)) == 0; }

/* Writing more than the process may write to a file would end it by a signal. */
static bool may_be_that_long(uint64_t bytes) {
    struct rlimit most;
    bool          may = getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY || bytes <= most.rlim_cur;
    if (!may) errno = EFBIG;
    return may;
}
#else
static void keep_rights(const char *path, mode_t mode) { (void)path, (void)mode; }
static bool to_disk(FILE *file) { return fflush(file) == 0; }
static bool may_be_that_long(uint64_t bytes) { return (void)bytes, true; }
#endif

bool cot__file_fill(FILE *file, cot__fill_file *fill, void *content, bool sync) {
    bool fine = fill(file, content) && (!sync || to_disk(file));
    int  error = errno;
    if (fclose(file) != 0 && fine) return false;
    if (!fine) errno = error;
    return fine;
}

/* ---- names ----------------------------------------------------------------------------------- */

typedef struct name {
    char  *text;
    size_t room;
} name;

static bool name_open(const cot_allocator *al, name *n, size_t room) {
    *n = (name){cot__alloc(al, room), room};
    /* set here, because a compiler may assume that allocating does not change errno */
    if (!n->text) errno = ENOMEM;
    return n->text;
}

/* errno stays. */
static void name_close(const cot_allocator *al, name *n) {
    int error = errno;
    cot__free(al, n->text, n->room);
    errno = error;
}

#ifndef __wasi__
/* The path that the link at *at, with `n` bytes in `link`, leads to takes its place. */
static bool follow(const cot_allocator *al, name *at, const char *link, size_t n) {
    const char *slash = strrchr(at->text, '/');
    size_t      folder = link[0] == '/' || !slash ? 0 : (size_t)(slash - at->text) + 1;
    name        next;
    if (!name_open(al, &next, folder + n + 1)) return false;
    memcpy(next.text, at->text, folder);
    memcpy(next.text + folder, link, n);
    next.text[folder + n] = 0;
    name_close(al, at);
    *at = next;
    return true;
}

/* Makes *at the path of the file behind symbolic links. False, with errno, if links form a circle
 * or cannot be read. */
static bool follow_links(const cot_allocator *al, name *at) {
    char link[4096];
    for (int k = 0; k < 40; k++) {
        ssize_t n = readlink(at->text, link, sizeof link);
        /* not a link, or no such file */
        if (n < 0 && (errno == EINVAL || errno == ENOENT)) return true;
        if (n == sizeof link) errno = ENAMETOOLONG;
        if (n < 0 || n == sizeof link || !follow(al, at, link, (size_t)n)) return false;
    }
    errno = ELOOP;
    return false;
}
#else
static bool follow_links(const cot_allocator *al, name *at) { return (void)al, (void)at, true; }
#endif

/* ---- writing --------------------------------------------------------------------------------- */

static void no_guard(char *path) { (void)path; }

/* Opens a new file beside `path`, and writes its name to *at. NULL, with errno, when that is not
 * possible. */
static FILE *open_beside(const char *path, name *at, cot__guard_file *guard) {
    for (int k = 0; k < 100; k++) {
        snprintf(at->text, at->room, "%s.new%d", path, k);
        guard(at->text);
        int fd = open(at->text, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd >= 0) {
            FILE *file = fdopen(fd, "wb");
            if (file) return file;
            int error = errno;
            close(fd);
            unlink(at->text);
            errno = error;
            break;
        }
        guard(NULL); /* the name belongs to another file */
        if (errno != EEXIST) break;
    }
    guard(NULL);
    return NULL;
}

/* `before`: of the file that is there; NULL: none is. */
static bool replace(const cot_allocator *al, const char *target, const struct stat *before, cot__fill_file *fill,
                    void *content, cot__guard_file *guard) {
    name beside;
    if (!name_open(al, &beside, strlen(target) + 16)) return false;
    FILE *file = open_beside(target, &beside, guard);
    bool  fine = file && cot__file_fill(file, fill, content, true);
    if (fine && before) keep_rights(beside.text, before->st_mode);
    fine = fine && rename(beside.text, target) == 0;
    int error = errno;
    if (file && !fine) unlink(beside.text);
    guard(NULL);
    errno = error;
    name_close(al, &beside);
    return fine;
}

bool cot__file_replace(const cot_allocator *al, const char *path, uint64_t bytes, cot__fill_file *fill, void *content,
                       cot__guard_file *guard) {
    struct stat about;
    name        target;
    bool        there = stat(path, &about) == 0;
    if (!there && errno != ENOENT) return false;
    if (there && S_ISDIR(about.st_mode)) return errno = EISDIR, false;
    if (there && !S_ISREG(about.st_mode)) {
        FILE *file = fopen(path, "wb");
        return file && cot__file_fill(file, fill, content, false);
    }
    /* without this check, renaming would replace a file that may not be written */
    if ((there && access(path, W_OK) != 0) || !may_be_that_long(bytes)) return false;
    if (!name_open(al, &target, strlen(path) + 1)) return false;
    strcpy(target.text, path);
    bool fine = follow_links(al, &target) &&
                replace(al, target.text, there ? &about : NULL, fill, content, guard ? guard : no_guard);
    name_close(al, &target);
    return fine;
}
