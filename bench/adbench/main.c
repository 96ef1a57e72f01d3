/* The program adbench: times one style of differentiation on one instance and prints one JSON
 * object. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "problems.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_USAGE = 2, EXIT_FILE = 3 };

static const char help[] =
    "usage: adbench PROBLEM FILE [--style STYLE] [--out F.bin] [--seconds S]\n"
    "       adbench generate PROBLEM SEED OUTFILE\n"
    "       adbench --help\n"
    "\n"
    "PROBLEM  gmm | ba | bafull | lstm | hand | hand_complicated\n"
    "FILE     an instance in ADBench's text format; hand needs the folder model/ beside it\n"
    "STYLE    scalar (the default) | fused | tensor | compiled | sparse (ba alone) | hand (written by hand)\n"
    "F.bin    receives the derivative as raw little-endian float64 in the reference layout\n"
    "S        the shortest batch worth timing, 0.3 unless told\n"
    "\n"
    "Prints one JSON object: problem, file, style, objective (a value, or the first entries of a vector), "
    "objective_ms,\n"
    "derivative_ms, ratio = derivative_ms / objective_ms, peak_bytes (most memory the derivative held).\n"
    "Exit status: 0 done, 1 the derivative failed, 2 wrong usage, 3 trouble with a file.\n";

static int usage(const char *format, const char *word) {
    fputs("adbench: ", stderr);
    fprintf(stderr, format, word);
    fputs("\ntry 'adbench --help'\n", stderr);
    return EXIT_USAGE;
}

static int trouble(int status, const char *text) {
    fprintf(stderr, "adbench: %s\n", text);
    return status;
}

/* ---- timing ---------------------------------------------------------------------------------- */

struct job {
    const struct ab_instance *in;
    const struct ab_method   *method;
    void                     *state;
    double                   *work, *out, *derivative;
    /* seconds of the objective that skips unused vertices, if there are two objectives */
    double                    lean;
    struct ab_error           error;
};

static bool is_hand(const struct ab_instance *in) { return in->kind == AB_HAND || in->kind == AB_HAND_COMPLICATED; }

/* Scratch for the objective; for the hand also all vertices and the dense weights. */
static double *make_work(const struct ab_instance *in) {
    const struct ab_hand_model *m = &in->u.hand.model;
    size_t                      count = in->work_count + 1;
    if (is_hand(in))
        count += (2 * 12 + (size_t)m->vertices) * AB_BONES + 3 * (size_t)m->vertices;
    double *work = calloc(count, sizeof *work);
    if (work && is_hand(in))
        ab_hand_dense_weights(m, work);
    return work;
}

static bool run_lean(struct job *j) {
    ab_objective(j->in, j->in->params, j->work, j->out);
    return true;
}

/* The objective as the problem's formula has it: times are divided by its time. */
static bool run_objective(struct job *j) {
    if (is_hand(j->in))
        ab_hand_as_written(j->in, j->in->params, j->work, j->out);
    else
        run_lean(j);
    return true;
}

static bool run_derivative(struct job *j) { return j->method->run(j->state, j->derivative, &j->error); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds for `repeats` runs, negative if one failed. */
static double batch(struct job *j, bool (*run)(struct job *), long repeats) {
    const double start = now();
    for (long i = 0; i < repeats; i++)
        if (!run(j))
            return -1;
    return now() - start;
}

/* Repeats doubled until one batch takes `seconds`; *best is the time of one run so far. */
static bool find_repeats(struct job *j, bool (*run)(struct job *), double seconds, long *repeats, double *best) {
    for (*repeats = 1;; *repeats *= 2) {
        const double took = batch(j, run, *repeats);
        if (took < 0)
            return false;
        *best = took / (double)*repeats;
        if (took > seconds || *repeats > 1L << 30)
            return true;
    }
}

/* The least of several samples. Objective and derivative take turns, so that both meet the same
 * load on the machine. */
static bool measure(struct job *j, double seconds, double *objective, double *derivative) {
    enum { SAMPLES = 5 };
    long f_repeats, d_repeats;
    if (!find_repeats(j, run_objective, seconds, &f_repeats, objective) ||
        !find_repeats(j, run_derivative, seconds, &d_repeats, derivative))
        return false;
    for (int i = 0; i < SAMPLES; i++) {
        const double f = batch(j, run_objective, f_repeats), d = batch(j, run_derivative, d_repeats);
        if (d < 0)
            return false;
        *objective = fmin(*objective, f / (double)f_repeats);
        *derivative = fmin(*derivative, d / (double)d_repeats);
    }
    if (is_hand(j->in)) {
        find_repeats(j, run_lean, seconds, &f_repeats, &j->lean);
        /* leave the dense weights' scratch as it was: lean work overlaps the vertices only */
        run_objective(j);
    }
    return true;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_string(const char *s) {
    putchar('"');
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            printf("\\u%04x", (unsigned)*s);
        else
            putchar(*s);
    putchar('"');
}

/* JSON has no NaN and no infinity. */
static void print_number(double v) {
    if (isfinite(v))
        printf("%.17g", v);
    else
        fputs("null", stdout);
}

static void print_report(const struct job *j, const char *file, double objective, double derivative) {
    fputs("{\"problem\": ", stdout);
    print_string(ab_kind_name(j->in->kind));
    fputs(", \"file\": ", stdout);
    print_string(file);
    fputs(", \"style\": ", stdout);
    print_string(j->method->style);
    fputs(", \"objective\": ", stdout);
    if (j->in->output_count == 1)
        print_number(j->out[0]);
    else
        for (int i = 0; i < 3; i++) {
            fputs(i == 0 ? "[" : ", ", stdout);
            print_number(j->out[i]);
        }
    printf("%s, \"objective_ms\": %.6g, \"derivative_ms\": %.6g, \"ratio\": %.4g, \"peak_bytes\": %zu",
           j->in->output_count == 1 ? "" : "]", objective * 1e3, derivative * 1e3, derivative / objective,
           j->method->peak_bytes(j->state));
    if (is_hand(j->in))
        printf(", \"lean_objective_ms\": %.6g, \"lean_ratio\": %.4g", j->lean * 1e3, derivative / j->lean);
    puts("}");
}

static bool write_derivative(const struct job *j, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < j->in->derivative_count; i++) {
        unsigned char bytes[8];
        uint64_t      bits;
        memcpy(&bits, j->derivative + i, sizeof bits);
        for (int b = 0; b < 8; b++)
            bytes[b] = (unsigned char)(bits >> (8 * b));
        ok = fwrite(bytes, sizeof bytes, 1, file) == 1;
    }
    return (fclose(file) == 0) && ok;
}

/* ---- commands -------------------------------------------------------------------------------- */

static int bench(struct job *j, const char *file, const char *out, double seconds) {
    double objective, derivative;
    j->work = make_work(j->in);
    j->out = malloc(j->in->output_count * sizeof(double));
    j->derivative = malloc(j->in->derivative_count * sizeof(double));
    if (!j->work || !j->out || !j->derivative)
        return trouble(EXIT_FAILURE, "not enough memory for the results");
    if (!(j->state = j->method->open(j->in, &j->error)) || !measure(j, seconds, &objective, &derivative))
        return trouble(EXIT_FAILURE, j->error.text);
    if (out && !write_derivative(j, out)) {
        fprintf(stderr, "adbench: %s: cannot write: %s\n", out, strerror(errno));
        return EXIT_FILE;
    }
    print_report(j, file, objective, derivative);
    return EXIT_SUCCESS;
}

static int command_bench(enum ab_kind kind, int argc, char **argv) {
    const char *file = NULL, *style = "scalar", *out = NULL;
    double      seconds = 0.3;
    for (int i = 0; i < argc; i++) {
        const bool option = strncmp(argv[i], "--", 2) == 0;
        if (option && strcmp(argv[i], "--style") && strcmp(argv[i], "--out") && strcmp(argv[i], "--seconds"))
            return usage("unknown option '%s'", argv[i]);
        if (option && i + 1 == argc)
            return usage("option '%s' needs a value", argv[i]);
        if (!option && file)
            return usage("one FILE only, '%s' is a second", argv[i]);
        if (!option)
            file = argv[i];
        else if (argv[i][2] == 'o')
            out = argv[++i];
        else if (argv[i][3] == 't')
            style = argv[++i];
        else {
            char *end;
            seconds = strtod(argv[++i], &end);
            if (*end || end == argv[i] || !(seconds >= 0 && seconds <= 60))
                return usage("--seconds needs a number from 0 to 60, not '%s'", argv[i]);
        }
    }
    if (!file)
        return usage("%s needs a FILE", ab_kind_name(kind));
    const struct ab_method *method = ab_method_find(kind, style);
    if (!method)
        return usage("this problem has no style '%s'", style);

    struct ab_instance in;
    struct job         j = {.in = &in, .method = method};
    if (!ab_read(kind, file, &in, &j.error))
        return trouble(EXIT_FILE, j.error.text);
    const int status = bench(&j, file, out, seconds);
    if (j.state)
        method->close(j.state);
    free(j.work);
    free(j.out);
    free(j.derivative);
    ab_free(&in);
    return status;
}

static int command_generate(int argc, char **argv) {
    enum ab_kind kind;
    char        *end;
    if (argc != 3)
        return usage("%s needs PROBLEM SEED OUTFILE", "generate");
    if (!ab_kind_parse(argv[0], &kind))
        return usage("unknown problem '%s'", argv[0]);
    const unsigned long seed = strtoul(argv[1], &end, 10);
    if (*end || end == argv[1] || argv[1][0] == '-' || seed > 0xffffffff)
        return usage("SEED must be a whole number below 2^32, not '%s'", argv[1]);
    struct ab_error error;
    return ab_generate(kind, seed, argv[2], &error) ? EXIT_SUCCESS : trouble(EXIT_FILE, error.text);
}

int main(int argc, char **argv) {
    enum ab_kind kind;
    if (argc < 2)
        return usage("%s", "a PROBLEM and a FILE are needed");
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
    if (strcmp(argv[1], "generate") == 0)
        return command_generate(argc - 2, argv + 2);
    if (!ab_kind_parse(argv[1], &kind))
        return usage("unknown problem '%s'", argv[1]);
    return command_bench(kind, argc - 2, argv + 2);
}
