/* measure.h: the common part of the workload programs: numbers, clock, command line, one JSON
 * object on each line.
 *
 * A line has the same members as in the peers' scripts: {"workload", "system", "device", "dtype",
 * "median_s", "min_s", "runs", "peak_bytes", "first", "third"}. `first` is the loss of the first
 * step, or the sum of its result; `third` is that of the third step, after two steps of the
 * optimiser. Of a program there is `compile_s` too, the time that compiling it took. The peak is
 * that of steps, not of what is done once before them, where the system can forget that. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* With sanitizers a step takes some thirty times as long, and only results are compared. So the
 * longest workloads are smaller there, and their results are not known numbers. */
#ifdef BENCH_SMALL
#define SIZED(full, small) (small)
#else
#define SIZED(full, small) (full)
#endif

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Element i of uniform(seed, shape, scale): every language makes the same numbers. */
static inline double uniform(uint64_t seed, uint64_t i, double scale) {
    uint64_t z = ((seed << 32) + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z = z ^ z >> 31;
    return (2 * (double)(z >> 11) * 0x1p-53 - 1) * scale;
}

static inline void *must(void *p) {
    if (p) return p;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

static inline float *uniform_f32(uint64_t seed, int64_t n, double scale) {
    float *x = must(malloc((size_t)n * sizeof *x));
    for (int64_t i = 0; i < n; i++) x[i] = (float)uniform(seed, (uint64_t)i, scale);
    return x;
}

static inline double *uniform_f64(uint64_t seed, int64_t n, double scale) {
    double *x = must(malloc((size_t)n * sizeof *x));
    for (int64_t i = 0; i < n; i++) x[i] = uniform(seed, (uint64_t)i, scale);
    return x;
}

/* One workload: make gives its state, step runs one whole step and returns the loss. */
typedef struct workload {
    const char *name, *dtype;
    void *(*make)(void);
    double (*step)(void *state);
    void (*destroy)(void *state);
    double known, tolerance; /* known: the result of the first step; tolerance 0: unknown */
    double (*compile_s)(const void *state); /* NULL: it is no program */
} workload;

typedef struct settings {
    const char *system, *only;
    int         threads;
    double      seconds;
    int64_t     rss_start;
} settings;

static inline int64_t resident_bytes(void) {
    long  total = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &total, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* The peak is what is resident now. */
static inline void forget_peak(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f && fputs("5", f) < 0) fprintf(stderr, "the peak of memory is not forgotten\n");
    if (f) fclose(f);
}

static inline int64_t peak_bytes(void) {
    char          line[256];
    long          kilobytes = -1;
    struct rusage usage;
    FILE         *f = fopen("/proc/self/status", "r");
    while (f && kilobytes < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kilobytes) != 1) kilobytes = -1;
    if (f) fclose(f);
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(kilobytes >= 0 ? kilobytes : usage.ru_maxrss) * 1024;
}

static inline int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Is `name` in the comma separated list, or the list empty? */
static inline bool wanted(const char *only, const char *name) {
    size_t n = strlen(name);
    for (const char *p = only; *p; p += strcspn(p, ",")) {
        p += strspn(p, ",");
        if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == 0)) return true;
    }
    return *only == 0;
}

/* Prints the line of a workload. False when its first step gave a wrong number. */
static inline bool measure(const workload *w, const settings *s) {
    enum { MOST = 1 << 20 };
    static double times[MOST];
    if (isatty(2)) fprintf(stderr, "%s …\r", w->name);
    void  *state = w->make();
    forget_peak();
    double first = w->step(state), third = (w->step(state), w->step(state));
    int    runs = 0;
    double end = now() + s->seconds;
    while (s->seconds > 0 && runs < MOST && (runs < 3 || now() < end)) {
        double start = now();
        w->step(state);
        times[runs++] = now() - start;
    }
    int64_t peak = peak_bytes();
    double  compile_s = w->compile_s ? w->compile_s(state) : 0;
    w->destroy(state);
    qsort(times, (size_t)runs, sizeof *times, compare_times);
    printf("{\"workload\": \"%s\", \"system\": \"%s\", \"device\": \"cpu\", \"dtype\": \"%s\", \"threads\": %d, "
           "\"median_s\": %.9g, \"min_s\": %.9g, "
           "\"runs\": %d, \"peak_bytes\": %lld, \"first\": %.17g, \"third\": %.17g",
           w->name, s->system, w->dtype, s->threads, runs ? times[runs / 2] : 0, runs ? times[0] : 0, runs,
           (long long)peak - (long long)s->rss_start, first, third);
    if (compile_s > 0) printf(", \"compile_s\": %.6g", compile_s);
    puts("}");
    fflush(stdout);
    bool right = w->tolerance == 0 || fabs(first / w->known - 1) <= w->tolerance;
    if (!right) fprintf(stderr, "%s: WRONG: the first step gave %.9g, not %.9g\n", w->name, first, w->known);
    return right;
}

/* Reads --only NAME,NAME --threads N --seconds S; anything else is an error. With 0 seconds only
 * results are compared, and no step is timed. */
static inline settings read_arguments(int argc, char **argv, const char *system) {
    settings s = {system, "", 2, 3, resident_bytes()};
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--only") == 0) s.only = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0) s.threads = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) s.seconds = atof(argv[++i]);
        else {
            fprintf(stderr, "usage: %s [--only NAME,NAME] [--threads N] [--seconds S]\n", argv[0]);
            exit(2);
        }
    }
    if (s.threads < 1) s.threads = 1;
    return s;
}

static inline int measure_all(const workload *all, int n, const settings *s) {
    int wrong = 0, ran = 0;
    for (int i = 0; i < n; i++)
        if (wanted(s->only, all[i].name)) ran++, wrong += !measure(&all[i], s);
    if (ran == 0) fprintf(stderr, "there is no workload %s\n", s->only);
    return wrong > 0 || ran == 0;
}

#endif
