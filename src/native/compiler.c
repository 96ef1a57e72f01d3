/* compiler.c: see compiler.h. */
#define _GNU_SOURCE /* O_NOFOLLOW */
#include "native/compiler.h"
#include "native/native.h"
#include "native/spawn.h"

#if COT__HAS_NATIVE
#include "base/cpu.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_SECONDS = 60, MOST_SECONDS = 1000000, MOST_ARGUMENTS = 40 };

/* ---- options --------------------------------------------------------------------------------- */

/* Contraction, reassociation and the like are off; traps and errno are not looked at. Memory is
 * used again for other types. gcc and clang know all of these. */
static const char *const always[] = {
    "-x", "c", "-std=gnu11", "-O3", "-w", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off",
    "-fno-fast-math", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing",
    "-fno-asynchronous-unwind-tables", NULL};
#if defined(__x86_64__)
static const char *const avx2[] = {"-mavx2", "-mfma", NULL};
static const char *const avx512[] = {"-mavx2",     "-mfma",      "-mavx512f", "-mavx512bw", "-mavx512dq",
                                     "-mavx512vl", "-mprefer-vector-width=512", NULL};
#endif

static const char *const *of_processor(void) {
    static const char *const none[] = {NULL};
#if defined(__x86_64__)
    if (cot__cpu_isa() == COT__ISA_AVX2) return avx2;
    if (cot__cpu_isa() == COT__ISA_AVX512) return avx512;
#endif
    return none;
}

void cot__compiler_digest(const cot__compiler *c, cot__digest *d) {
    const char *const *lists[2] = {always, of_processor()};
    const int64_t      file[3] = {c->bytes, c->seconds, c->nanoseconds};
    cot__digest_take(d, c->path, strlen(c->path) + 1);
    cot__digest_take(d, file, sizeof file);
    for (int k = 0; k < 2; k++)
        for (const char *const *o = lists[k]; *o; o++) cot__digest_take(d, *o, strlen(*o) + 1);
}

/* ---- finding one ----------------------------------------------------------------------------- */

static bool is_program(const char *path, cot__compiler *c) {
    struct stat s;
    if (stat(path, &s) || !S_ISREG(s.st_mode) || access(path, X_OK)) return false;
    memmove(c->path, path, strlen(path) + 1);
    c->bytes = s.st_size;
    c->seconds = s.st_mtim.tv_sec;
    c->nanoseconds = s.st_mtim.tv_nsec;
    return true;
}

/* In the folders of PATH whose paths are absolute. */
static bool is_in_path(const char *name, cot__compiler *c) {
    const char *path = getenv("PATH");
    for (const char *s = path ? path : "/usr/bin:/bin"; *s;) {
        size_t n = strcspn(s, ":");
        char   full[COT__PATH];
        if (*s == '/' && n + strlen(name) + 2 < sizeof full) {
            cot__format(full, sizeof full, "%.*s/%s", (int)n, s, name);
            if (is_program(full, c)) return true;
        }
        s += n + (s[n] == ':');
    }
    return false;
}

static bool find_program(cot__compiler *c, char *why) {
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char              *own = getenv("COTANGENT_CC");
    if (!own || !own[0]) {
        for (int k = 0; k < COUNTOF(names); k++)
            if (is_in_path(names[k], c)) return true;
        cot__format(why, COT__NATIVE_TEXT, "there is no compiler: neither cc nor gcc nor clang is in PATH; install "
                                           "one, or name one in COTANGENT_CC");
        return false;
    }
    bool is_path = own[0] == '/' && strlen(own) < COT__PATH;
    if (strchr(own, '/') ? is_path && is_program(own, c) : is_in_path(own, c)) return true;
    cot__format(why, COT__NATIVE_TEXT, "COTANGENT_CC is %.200s, which is no program; it is an absolute path or a name "
                                       "in PATH, without options", own);
    return false;
}

static bool read_milliseconds(int64_t *to, char *why) {
    const char *text = getenv("COTANGENT_NATIVE_SECONDS");
    char       *end = NULL;
    double      seconds = text && text[0] ? cot__read_number(text, &end) : DEFAULT_SECONDS;
    *to = seconds > 0 && seconds < MOST_SECONDS ? (int64_t)(seconds * 1000) : 0;
    if (*to > 0 && (!end || !*end)) return true;
    cot__format(why, COT__NATIVE_TEXT, "COTANGENT_NATIVE_SECONDS is \"%.200s\"; it must be a number of seconds, 0.001 "
                                       "at least and below %d", text, MOST_SECONDS);
    return false;
}

/* ---- its environment ------------------------------------------------------------------------- */

/* What a compiler needs to find its parts and a place for its files. All else (CPATH,
 * COMPILER_PATH, GCC_EXEC_PREFIX, DEPENDENCIES_OUTPUT, LD_PRELOAD …) could bring the code of others
 * into the object, and is not in its key. */
static const char *const passed_on[] = {"HOME", "TMPDIR"};

/* Without the folders that are relative: an empty one is the current folder. */
static char *put_path(char *to, const char *list) {
    memcpy(to, "PATH=", 5);
    char *first = to += 5;
    for (const char *s = list; *s;) {
        size_t n = strcspn(s, ":");
        if (*s == '/') {
            if (to != first) *to++ = ':';
            memcpy(to, s, n);
            to += n;
        }
        s += n + (s[n] == ':');
    }
    *to++ = 0;
    return to;
}

static const char *folder_in(const char *name) {
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

/* One block: the list, then the texts. Messages shall be in English. */
static char **make_environment(void) {
    const char *path = getenv("PATH");
    if (!path) path = "/usr/bin:/bin";
    size_t count = 3 + COUNTOF(passed_on), bytes = sizeof "LC_ALL=C" + strlen(path) + sizeof "PATH=";
    for (int k = 0; k < COUNTOF(passed_on); k++) {
        const char *value = folder_in(passed_on[k]);
        bytes += value ? strlen(passed_on[k]) + strlen(value) + 2 : 0;
    }
    char **list = malloc(count * sizeof *list + bytes), **entry = list;
    if (!list) return NULL;
    char *text = (char *)(list + count);
    *entry++ = memcpy(text, "LC_ALL=C", sizeof "LC_ALL=C");
    text += sizeof "LC_ALL=C";
    *entry++ = text;
    text = put_path(text, path);
    for (int k = 0; k < COUNTOF(passed_on); k++) {
        const char *value = folder_in(passed_on[k]);
        if (!value) continue;
        size_t n = strlen(passed_on[k]) + strlen(value) + 2;
        cot__format(text, n, "%s=%s", passed_on[k], value);
        *entry++ = text;
        text += n;
    }
    *entry = NULL;
    return list;
}

bool cot__compiler_find(cot__compiler *c, char why[COT__NATIVE_TEXT]) {
    c->environment = NULL;
    if (!find_program(c, why) || !read_milliseconds(&c->milliseconds, why)) return false;
    c->environment = make_environment();
    if (!c->environment) cot__format(why, COT__NATIVE_TEXT, "out of memory: the environment of a compiler");
    return c->environment != NULL;
}

void cot__compiler_close(cot__compiler *c) {
    free(c->environment);
    c->environment = NULL;
}

/* ---- calling it ------------------------------------------------------------------------------ */

static int make_file(const cot__folder *f, const char *name) {
    return openat(f->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static bool write_all(int fd, const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t n = write(fd, text, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* The first line that it has said. */
static void first_line(int log, char line[160]) {
    ssize_t n = pread(log, line, 159, 0);
    line[n > 0 ? n : 0] = 0;
    for (char *s = line; *s; s++)
        if ((unsigned char)*s < ' ' || (unsigned char)*s > '~') *s = *s == '\n' ? 0 : '?';
}

static bool tell_ending(const cot__compiler *c, const cot__spawned *s, int log, char *why) {
    char line[160];
    if (s->ending == COT__ENDED && s->detail == 0) return true;
    first_line(log, line);
    if (s->ending == COT__ENDED)
        cot__format(why, COT__NATIVE_TEXT, "%.200s has failed with exit status %d%s%s", c->path, s->detail,
                    line[0] ? ": " : "", line);
    else if (s->ending == COT__TIMED_OUT)
        cot__format(why, COT__NATIVE_TEXT, "%.200s was stopped after %g s; COTANGENT_NATIVE_SECONDS gives it more",
                    c->path, (double)c->milliseconds / 1000);
    else if (s->ending == COT__SIGNALLED)
        cot__format(why, COT__NATIVE_TEXT, "%.200s was ended by signal %d", c->path, s->detail);
    else cot__format(why, COT__NATIVE_TEXT, "%.200s could not be started: %s", c->path, strerror(s->detail));
    return false;
}

static bool run_compiler(const cot__compiler *c, const cot__folder *f, const char *source, const char *object, int log,
                         char *why) {
    const char *argument[MOST_ARGUMENTS];
    char        from[COT__PATH + COT__FILE_NAME], to[COT__PATH + COT__FILE_NAME];
    int         n = 0;
    cot__format(from, sizeof from, "%s/%s", f->path, source);
    cot__format(to, sizeof to, "%s/%s", f->path, object);
    argument[n++] = c->path;
    for (const char *const *o = always; *o; o++) argument[n++] = *o;
    for (const char *const *o = of_processor(); *o; o++) argument[n++] = *o;
    argument[n++] = "-o";
    argument[n++] = to;
    argument[n++] = from;
    argument[n++] = "-lm";
    argument[n] = NULL;
    cot__spawned s = {.path = c->path, .arguments = (char *const *)(uintptr_t)argument, .environment = c->environment,
                      .log = log, .milliseconds = c->milliseconds};
    atomic_fetch_add(&cot__native_started, 1);
    cot__spawn(&s);
    return tell_ending(c, &s, log, why);
}

bool cot__compile_text(const cot__compiler *c, const cot__folder *f, const char *text, size_t bytes,
                       const char key[COT__DIGEST_TEXT], char why[COT__NATIVE_TEXT]) {
    char source[COT__FILE_NAME], object[COT__FILE_NAME], log_name[COT__FILE_NAME];
    cot__folder_unfinished(source, ".c");
    cot__folder_unfinished(object, ".so");
    cot__folder_unfinished(log_name, ".log");
    int  fd = make_file(f, source), log = fd >= 0 ? make_file(f, log_name) : -1;
    bool ok = log >= 0 && write_all(fd, text, bytes);
    if (!ok) cot__format(why, COT__NATIVE_TEXT, "cannot write to the cache folder %.300s: %s", f->path,
                         strerror(errno));
    ok = ok && run_compiler(c, f, source, object, log, why) && cot__folder_add(f, object, key, why);
    /* a name that was there already is another's */
    if (fd >= 0) close(fd), unlinkat(f->fd, source, 0);
    if (log >= 0) close(log), unlinkat(f->fd, log_name, 0), unlinkat(f->fd, object, 0);
    return ok;
}
#endif
