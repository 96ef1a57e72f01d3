/* system.c: terminals, signals, time, files. */
#include "io/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file/replace.h"
#include "base/utf8.h"

#ifndef __wasi__
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

/* The name of the file that is being written, which the signal handler removes. It is set before
 * the file exists, and cleared when the file has its final name. */
static char *volatile unfinished;

/* What the first signal does to a computation that wants to end in order; its number. */
static volatile sig_atomic_t gentle, asked;

static void interrupted(int signal_number) {
    if (gentle && !asked && signal_number != SIGHUP) {
        static const char said[] = "\ncotangent: this step ends, then the run; once more ends it at once\n";
        asked = signal_number;
        /* nobody is to be told, perhaps */
        if (write(STDERR_FILENO, said, sizeof said - 1) < 0) asked = signal_number;
        return;
    }
    if (unfinished) unlink(unfinished);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void system_start(void) {
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    struct sigaction handle = {.sa_handler = interrupted, .sa_flags = SA_RESTART};
    sigaction(SIGPIPE, &ignore, NULL);
    /* a file beyond the limit is an error of the write as well */
    sigaction(SIGXFSZ, &ignore, NULL);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            /* ignored signals (nohup) stay ignored */
            sigaction(deadly[i], &handle, NULL);
    }
}

void system_stop_gently(void) {
    asked = 0;
    gentle = 1;
}

bool system_stop_asked(void) { return asked != 0; }
int  system_stop_status(void) { return 128 + (int)asked; }

double system_peak_memory(void) {
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? 1024.0 * (double)used.ru_maxrss : 0;
}

int system_width(FILE *file) {
    struct winsize size;
    const char    *columns = getenv("COLUMNS");
    int            n = columns ? atoi(columns) : 0;
    if (n < 1 && ioctl(fileno(file), TIOCGWINSZ, &size) == 0) n = size.ws_col;
    return n >= 20 && n <= 1000 ? n : 80;
}

static void guard(char *path) { unfinished = path; }
#else
void   system_start(void) {}
void   system_stop_gently(void) {}
bool   system_stop_asked(void) { return false; }
int    system_stop_status(void) { return 0; }
double system_peak_memory(void) { return 0; }

int system_width(FILE *file) {
    (void)file;
    return 80;
}

static void guard(char *path) { (void)path; }
#endif

bool system_is_terminal(FILE *file) { return isatty(fileno(file)) == 1; }

bool system_redraws(FILE *file) {
    const char *term = getenv("TERM");
    return !(term && strcmp(term, "dumb") == 0) && system_is_terminal(file);
}

bool system_colour(FILE *file) {
    const char *no = getenv("NO_COLOR");
    return !(no && *no) && system_redraws(file);
}

double system_seconds(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double system_date(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void system_sleep(double seconds) {
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL);
}

typedef struct content {
    const char *bytes;
    size_t      n;
} content;

static bool fill(FILE *file, void *what) {
    const content *c = what;
    return fwrite(c->bytes, 1, c->n, file) == c->n;
}

#ifndef __wasi__
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
static FILE *open_as_output(const struct stat *about) { return (void)about, NULL; }
#endif

static bool put(const char *path, const char *bytes, size_t n) {
    content     c = {bytes, n};
    struct stat about;
    FILE       *output = stat(path, &about) == 0 ? open_as_output(&about) : NULL;
    if (output) return cot__file_fill(output, fill, &c, false);
    return cot__file_replace(NULL, path, n, fill, &c, guard);
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

bool system_make_folder(const char *path, failure *f) {
    struct stat about;
    int         error = mkdir(path, 0777) != 0 && errno != EEXIST ? errno : 0;
    if (!error && stat(path, &about) == 0 && !S_ISDIR(about.st_mode)) error = ENOTDIR;
    if (!error && access(path, W_OK | X_OK) != 0) error = errno;
    return !error || failure_file(f, "write", path, error);
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
