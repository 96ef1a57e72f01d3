/* system.c: terminals, signals, time, files. */
#include "system.h"

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

/* The file being written, to be removed by the handler. Set before the file exists and cleared after it has its name. */
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
            sigaction(deadly[i], &handle, NULL); /* nohup stays */
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

/* Of the file it replaces. */
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

static bool cannot_write(const char *path, int error, failure *f) {
    return failure_file(f, "write", path, error);
}

/* fclose writes too, so its answer counts. */
static bool fill(FILE *file, const char *bytes, size_t n) {
    bool fine = fwrite(bytes, 1, n, file) == n;
    int  error = errno;
    if (fclose(file) != 0 && fine) return false;
    if (!fine) errno = error;
    return fine;
}

/* A new file beside `path`; its name is written into `name`. NULL, with errno, when there can be none. */
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
        guard(NULL); /* the name belongs to somebody else */
        if (errno != EEXIST) break;
    }
    guard(NULL);
    return NULL;
}

bool system_put_file(const char *path, const char *bytes, size_t n, failure *f) {
    struct stat about;
    bool        there = stat(path, &about) == 0;
    if (there && S_ISDIR(about.st_mode)) return failure_set(f, EXIT_RUN, "file", "cannot write %s: it is a directory", path);
    if (there && !S_ISREG(about.st_mode)) {
        FILE *file = fopen(path, "wb");
        return (file && fill(file, bytes, n)) || cannot_write(path, errno, f);
    }
    char *place = NULL;
#ifndef __wasi__
    if (there) place = realpath(path, NULL); /* through a symbolic link: the link stays */
#endif
    const char *target = place ? place : path;
    size_t      size = strlen(target) + 16;
    char       *name = malloc(size);
    if (!name) {
        free(place);
        return failure_memory(f);
    }
    FILE *file = open_beside(target, name, size);
    bool  fine = file && fill(file, bytes, n);
    if (fine && there) keep_rights(name, about.st_mode);
    fine = fine && rename(name, target) == 0;
    int error = errno;
    if (file && !fine) unlink(name);
    guard(NULL);
    free(name);
    free(place);
    return fine || cannot_write(path, error, f);
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
