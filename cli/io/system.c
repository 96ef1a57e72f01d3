/* system.c: terminals, signals, time, files. */
#include "io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

#ifndef __wasi__
#include <signal.h>
#include <sys/ioctl.h>

/* The name of the file that is being written, which the signal handler removes. It is set before
 * the file exists, and cleared when the file has its final name. */
static char *volatile unfinished;

static void interrupted(int signal_number) {
    if (unfinished) unlink(unfinished);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void system_start(void) {
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, handle = {.sa_handler = interrupted}, old;
    sigaction(SIGPIPE, &ignore, NULL);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            /* ignored signals (nohup) stay ignored */
            sigaction(deadly[i], &handle, NULL);
    }
}

int system_width(FILE *file) {
    struct winsize size;
    const char    *columns = getenv("COLUMNS");
    int            n = columns ? atoi(columns) : 0;
    if (n < 1 && ioctl(fileno(file), TIOCGWINSZ, &size) == 0) n = size.ws_col;
    return n >= 20 && n <= 1000 ? n : 80;
}

static void guard(char *path) { unfinished = path; }

/* Gives the new file the permissions of the file that it replaces. */
static void keep_rights(const char *path, mode_t mode) { chmod(path, mode & 07777); }
#else
void system_start(void) {}

int system_width(FILE *file) {
    (void)file;
    return 80;
}

static void guard(char *path) { (void)path; }

static void keep_rights(const char *path, mode_t mode) { (void)path, (void)mode; }
#endif

bool system_is_terminal(FILE *file) { return isatty(fileno(file)) == 1; }

bool system_colour(FILE *file) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && !(term && strcmp(term, "dumb") == 0) && system_is_terminal(file);
}

double system_seconds(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* fclose writes too, so its result counts. */
static bool fill(FILE *file, const char *bytes, size_t n) {
    bool fine = fwrite(bytes, 1, n, file) == n;
    int  error = errno;
    if (fclose(file) != 0 && fine) return false;
    if (!fine) errno = error;
    return fine;
}

/* Opens a new file beside `path`, and writes its name to `name`. NULL, with errno, when that is not
 * possible. */
static FILE *open_beside(const char *path, char *name, size_t size) {
    for (int k = 0; k < 100; k++) {
        snprintf(name, size, "%s.new%d", path, k);
        guard(name);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd >= 0) {
            FILE *file = fdopen(fd, "wb");
            if (file) return file;
            int error = errno;
            close(fd);
            unlink(name);
            errno = error;
            break;
        }
        guard(NULL); /* the name belongs to another file */
        if (errno != EEXIST) break;
    }
    guard(NULL);
    return NULL;
}

#ifndef __wasi__
/* The path of a file behind symbolic links. The links stay, also if they lead to no file yet.
 * Malloced; NULL, with errno, if links form a circle or cannot be read. */
static char *place_of(const char *path) {
    char   link[4096];
    char  *at = malloc(strlen(path) + 1);
    /* set here, because a compiler may assume that malloc does not change errno */
    if (!at) return errno = ENOMEM, NULL;
    strcpy(at, path);
    for (int k = 0; k < 40; k++) {
        ssize_t n = readlink(at, link, sizeof link);
        /* not a link, or no such file */
        if (n < 0 && (errno == EINVAL || errno == ENOENT)) return at;
        if (n < 0 || n == sizeof link) {
            if (n >= 0) errno = ENAMETOOLONG;
            break;
        }
        const char *slash = strrchr(at, '/');
        size_t      folder = link[0] == '/' || !slash ? 0 : (size_t)(slash - at) + 1;
        char       *next = malloc(folder + (size_t)n + 1);
        if (!next) {
            errno = ENOMEM;
            break;
        }
        memcpy(next, at, folder);
        memcpy(next + folder, link, (size_t)n);
        next[folder + (size_t)n] = 0;
        free(at);
        at = next;
        if (k == 39) errno = ELOOP;
    }
    int error = errno;
    free(at);
    errno = error;
    return NULL;
}

/* Opens the standard output if `about` describes it, because the user gave another name of it, such
 * as /dev/stdout. It is written through its own descriptor, so other text that goes there stays. */
static FILE *open_as_output(const struct stat *about) {
    struct stat out;
    if (fstat(STDOUT_FILENO, &out) != 0 || out.st_dev != about->st_dev || out.st_ino != about->st_ino) return NULL;
    fflush(stdout);
    int   fd = dup(STDOUT_FILENO);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!file && fd >= 0) close(fd);
    return file;
}
#else
static char *place_of(const char *path) {
    char *at = malloc(strlen(path) + 1);
    if (at) strcpy(at, path);
    return at;
}

static FILE *open_as_output(const struct stat *about) { return (void)about, NULL; }
#endif

/* Writes a file beside the target, then renames it: the target is complete, or as it was. */
static bool replace(const char *target, const struct stat *before, const char *bytes, size_t n) {
    size_t size = strlen(target) + 16;
    char  *name = malloc(size);
    if (!name) return errno = ENOMEM, false;
    FILE *file = open_beside(target, name, size);
    bool  fine = file && fill(file, bytes, n);
    if (fine && before) keep_rights(name, before->st_mode);
    fine = fine && rename(name, target) == 0;
    int error = errno;
    if (file && !fine) unlink(name);
    guard(NULL);
    free(name);
    errno = error;
    return fine;
}

static bool put(const char *path, const char *bytes, size_t n) {
    struct stat about;
    bool        there = stat(path, &about) == 0;
    if (!there && errno != ENOENT) return false;
    if (there && S_ISDIR(about.st_mode)) return errno = EISDIR, false;
    FILE *output = there ? open_as_output(&about) : NULL;
    if (output) return fill(output, bytes, n);
    if (there && !S_ISREG(about.st_mode)) {
        FILE *file = fopen(path, "wb");
        return file && fill(file, bytes, n);
    }
    /* without this check, renaming would replace a file that may not be written */
    if (there && access(path, W_OK) != 0) return false;
    char *target = place_of(path);
    if (!target) return false;
    bool fine = replace(target, there ? &about : NULL, bytes, n);
    int  error = errno;
    free(target);
    errno = error;
    return fine;
}

bool system_put_file(const char *path, const char *bytes, size_t n, failure *f) {
    if (!put(path, bytes, n)) {
        if (errno == EISDIR) return failure_set(f, EXIT_RUN, "file", "cannot write %s: it is a directory", path);
        return failure_file(f, "write", path, errno);
    }
    fputs("cotangent: wrote ", stderr);
    system_put_safely(stderr, path);
    fputs("\n", stderr);
    return true;
}

void system_put_safely(FILE *file, const char *text) {
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = *text == '\n' ? 1 : cot__utf8_shown(text, left);
        if (n) fwrite(text, 1, n, file);
        else putc('?', file), n = 1;
    }
}

bool system_write(FILE *file, const char *bytes, size_t n, failure *f) {
    if ((n == 0 || fwrite(bytes, 1, n, file) == n) && fflush(file) == 0) return true;
    if (errno == EPIPE) return false;
    return failure_set(f, EXIT_RUN, "write", "cannot write the output: %s", strerror(errno));
}
