/* folder.c: see folder.h. */
#define _GNU_SOURCE /* O_NOFOLLOW, openat */
#include "native/folder.h"
#include "native/native.h"

#if COT__HAS_NATIVE
#include "base/number.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What stands behind an object in its file. */
static const char mark[8] = "COTNAT1\n";
enum { TRAILER = sizeof mark + COT__DIGEST, PIECE = 16384, DAY = 86400 };
#define DEFAULT_BYTES (INT64_C(256) << 20)

static bool fail(char *why, const char *what, const char *path, const char *reason) {
    cot__format(why, COT__NATIVE_TEXT, "%s %s: %s", what, path, reason);
    return false;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static const char *from_environment(const char *name) {
    const char *text = getenv(name);
    return text && text[0] ? text : NULL;
}

static bool read_most_bytes(int64_t *to, char *why) {
    const char *text = from_environment("COTANGENT_CACHE_BYTES");
    char       *end = NULL;
    *to = text ? strtoll(text, &end, 10) : DEFAULT_BYTES;
    if (!text || (end != text && !*end && *to >= 0)) return true;
    cot__format(why, COT__NATIVE_TEXT, "COTANGENT_CACHE_BYTES is \"%.200s\"; it must be a number of bytes, 0 at least",
                text);
    return false;
}

bool cot__folder_find(cot__folder *f, char why[COT__NATIVE_TEXT]) {
    const char *own = from_environment("COTANGENT_CACHE"), *cache = from_environment("XDG_CACHE_HOME"),
               *home = from_environment("HOME");
    const char *base = own ? own : cache && cache[0] == '/' ? cache : home;
    const char *behind = own ? "" : base == cache ? "/cotangent" : "/.cache/cotangent";
    f->fd = -1;
    if (!read_most_bytes(&f->most_bytes, why)) return false;
    if (!base) {
        cot__format(why, COT__NATIVE_TEXT, "there is no cache folder: neither COTANGENT_CACHE nor HOME is set");
        return false;
    }
    if (base[0] != '/') return fail(why, "the cache folder", base, "its path does not begin with /");
    if (strlen(base) + strlen(behind) >= COT__PATH)
        return fail(why, "the cache folder", "in the environment", "its path is too long");
    cot__format(f->path, COT__PATH, "%s%s", base, behind);
    /* a slash at the end would follow a link */
    for (size_t n = strlen(f->path); n > 1 && f->path[n - 1] == '/'; n--) f->path[n - 1] = 0;
    return true;
}

/* With the folders above it. */
static void make_folder(const cot__folder *f) {
    char path[COT__PATH];
    memcpy(path, f->path, COT__PATH);
    for (char *s = path + 1; *s; s++) {
        if (*s != '/') continue;
        *s = 0;
        mkdir(path, 0700);
        *s = '/';
    }
    mkdir(path, 0700);
}

/* May it be believed? */
static bool is_own(const struct stat *s, bool folder, const char *name, char *why) {
    const char *what = folder ? "the cache folder" : "the object";
    if (folder ? !S_ISDIR(s->st_mode) : !S_ISREG(s->st_mode)) return fail(why, what, name, "it is something else");
    if (s->st_uid != geteuid()) return fail(why, what, name, "it belongs to another user");
    if (s->st_mode & 022) return fail(why, what, name, "others may write to it");
    return true;
}

bool cot__folder_open(cot__folder *f, char why[COT__NATIVE_TEXT]) {
    struct stat s;
    make_folder(f);
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0)
        return fail(why, "the cache folder", f->path,
                    errno == ELOOP || errno == ENOTDIR ? "it is a symbolic link, or no folder" : strerror(errno));
    if (fstat(f->fd, &s) == 0 && is_own(&s, true, f->path, why)) return true;
    cot__folder_close(f);
    return false;
}

void cot__folder_close(cot__folder *f) {
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

/* ---- digests --------------------------------------------------------------------------------- */

/* Of the first `bytes` of a file, and the key, so that no object passes for another. */
static bool digest_of(int fd, int64_t bytes, const char *key, uint8_t out[COT__DIGEST]) {
    char        piece[PIECE];
    cot__digest d;
    cot__digest_begin(&d);
    for (int64_t at = 0; at < bytes;) {
        ssize_t n = pread(fd, piece, (size_t)(bytes - at < PIECE ? bytes - at : PIECE), at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        cot__digest_take(&d, piece, (size_t)n);
        at += n;
    }
    cot__digest_take(&d, key, strlen(key));
    cot__digest_end(&d, out);
    return true;
}

static bool is_whole(int fd, int64_t bytes, const char *key) {
    uint8_t trailer[TRAILER], digest[COT__DIGEST];
    int64_t body = bytes - TRAILER;
    if (body <= 0 || pread(fd, trailer, TRAILER, body) != TRAILER) return false;
    return memcmp(trailer, mark, sizeof mark) == 0 && digest_of(fd, body, key, digest) &&
           memcmp(trailer + sizeof mark, digest, COT__DIGEST) == 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

static void object_name(char name[COT__FILE_NAME], const char *key) {
    cot__format(name, COT__FILE_NAME, "%s.so", key);
}

int cot__folder_object(const cot__folder *f, const char key[COT__DIGEST_TEXT], char why[COT__NATIVE_TEXT]) {
    char        name[COT__FILE_NAME];
    struct stat s;
    object_name(name, key);
    why[0] = 0;
    int fd = openat(f->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return -1;
    if (fd < 0) return fail(why, "the object", name, errno == ELOOP ? "it is a symbolic link" : strerror(errno)), -1;
    bool ok = fstat(fd, &s) == 0 && is_own(&s, false, name, why);
    if (ok && !is_whole(fd, s.st_size, key)) ok = fail(why, "the object", name, "it is not what was written");
    if (!ok) return close(fd), -1;
    futimens(fd, NULL); /* it was used now */
    return fd;
}

void cot__folder_unfinished(char name[COT__FILE_NAME], const char *ending) {
    static atomic_uint count;
    struct timespec    now = {0, 0};
    /* numbers of processes come again, and machines share folders */
    clock_gettime(CLOCK_REALTIME, &now);
    cot__format(name, COT__FILE_NAME, "tmp-%ld-%llx-%u%s", (long)getpid(),
                (unsigned long long)now.tv_sec << 30 | (unsigned long long)now.tv_nsec, atomic_fetch_add(&count, 1),
                ending);
}

static bool add_trailer(int fd, const char *key) {
    uint8_t     trailer[TRAILER];
    struct stat s;
    memcpy(trailer, mark, sizeof mark);
    return fstat(fd, &s) == 0 && digest_of(fd, s.st_size, key, trailer + sizeof mark) &&
           pwrite(fd, trailer, TRAILER, s.st_size) == TRAILER && fchmod(fd, 0600) == 0 && fsync(fd) == 0;
}

/* ---- old ones -------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *ending) {
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

/* All bytes of objects, and the one that was not used for the longest time. Unfinished files that
 * are a day old are left over from a process that has ended. */
static int64_t look_through(const cot__folder *f, char oldest[COT__FILE_NAME], int64_t *oldest_bytes) {
    int             fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR            *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct timespec least = {0, 0}, now;
    int64_t         all = 0;
    oldest[0] = 0;
    if (!d) return fd >= 0 ? close(fd), 0 : 0;
    clock_gettime(CLOCK_REALTIME, &now);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat s;
        bool        object = ends_with(e->d_name, ".so") && strlen(e->d_name) == COT__DIGEST_TEXT + 2;
        bool        unfinished = strncmp(e->d_name, "tmp-", 4) == 0;
        if ((!object && !unfinished) || fstatat(f->fd, e->d_name, &s, AT_SYMLINK_NOFOLLOW)) continue;
        if (unfinished && now.tv_sec - s.st_mtim.tv_sec > DAY) unlinkat(f->fd, e->d_name, 0);
        if (!object) continue;
        all += s.st_size;
        bool older = s.st_mtim.tv_sec < least.tv_sec ||
                     (s.st_mtim.tv_sec == least.tv_sec && s.st_mtim.tv_nsec < least.tv_nsec);
        if (oldest[0] && !older) continue;
        least = s.st_mtim;
        *oldest_bytes = s.st_size;
        cot__format(oldest, COT__FILE_NAME, "%s", e->d_name);
    }
    closedir(d);
    return all;
}

static void remove_old(const cot__folder *f) {
    char    oldest[COT__FILE_NAME];
    int64_t bytes = 0;
    while (look_through(f, oldest, &bytes) > f->most_bytes && oldest[0])
        if (unlinkat(f->fd, oldest, 0)) return;
}

bool cot__folder_add(const cot__folder *f, const char *unfinished, const char key[COT__DIGEST_TEXT],
                     char why[COT__NATIVE_TEXT]) {
    char name[COT__FILE_NAME];
    int  fd = openat(f->fd, unfinished, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    object_name(name, key);
    bool ok = fd >= 0 && add_trailer(fd, key) && renameat(f->fd, unfinished, f->fd, name) == 0;
    if (!ok) fail(why, "the object", name, strerror(errno));
    if (fd >= 0) close(fd);
    if (ok) remove_old(f);
    return ok;
}
#endif
