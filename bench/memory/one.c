/* one.c: steps of one model on a tape, under one limit. The peak is that of the process in these
 * steps, above what it had when it began, so that weights and gradients count, as they do for
 * PyTorch. */
#include "memory/one.h"
#include "workloads/measure.h"

typedef struct asked {
    const model *of;
    cot_options  options;
    double       seconds;
    int          threads;
    bool         program;
} asked;

static const model *find(const char *name) {
    for (int k = 0; k < MODELS; k++)
        if (strcmp(models[k].name, name) == 0) return &models[k];
    fprintf(stderr, "there is no model %s\n", name);
    exit(2);
}

static asked read_asked(int argc, char **argv) {
    asked a = {.seconds = 3, .threads = 2};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--model") == 0) a.of = find(argv[i + 1]);
        else if (strcmp(argv[i], "--as") == 0 && strcmp(argv[i + 1], "program") == 0) a.program = true;
        else if (strcmp(argv[i], "--limit") == 0) a.options.memory_limit = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--folder") == 0) a.options.spill = argv[i + 1];
        else if (strcmp(argv[i], "--seconds") == 0) a.seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0) a.threads = atoi(argv[i + 1]);
        else a.of = NULL, i = argc;
    }
    if (a.of && argc % 2 == 1) return a;
    fprintf(stderr, "usage: %s [--model NAME [--as program] [--limit BYTES] [--folder FOLDER] [--seconds S] "
                    "[--threads N]]\n", argv[0]);
    exit(2);
}

static void stop_if_failed(cot_tape *t) {
    if (cot_tape_status(t) == COT_OK) return;
    fprintf(stderr, "%s\n", cot_tape_message(t));
    exit(1);
}

typedef struct state { cot_tape *t; cot_params *p; cot_var x; cot_mark start; } state;

static double step(const asked *a, state *s) {
    cot_var loss = a->of->loss(a->of->net(s->p, s->x), s->x);
    double  value = cot_value(loss);
    cot_backward(loss);
    stop_if_failed(s->t);
    cot_tape_zero_grads(s->t);
    cot_tape_rewind(s->t, s->start);
    return value;
}

int measure_one(int argc, char **argv) {
    asked   a = read_asked(argc, argv);
    int64_t at_first = resident_bytes();
    double  least = INFINITY;
    cot_set_threads(a.threads);
    if (a.program) return measure_program(a.of, &a.options, a.seconds);
    state s = {.t = must(cot_tape_create(&a.options))};
    s.p = must(cot_params_create(s.t));
    s.x = a.of->input(s.t);
    cot_params_init(s.p, a.of->net, s.x, cot_key_of(1));
    s.start = cot_tape_mark(s.t);
    stop_if_failed(s.t);
    forget_peak();
    double first = step(&a, &s), end = now() + a.seconds;
    int    runs = 0;
    do {
        double start = now();
        if (step(&a, &s) != first) return fprintf(stderr, "the losses differ\n"), 1;
        if (now() - start < least) least = now() - start;
    } while (++runs < 2 || now() < end);
    printf("{\"model\": \"%s\", \"system\": \"cotangent-%s\", \"limit\": %lld, \"folder\": %s, \"min_s\": %.6g, "
           "\"runs\": %d, \"peak_bytes\": %lld, \"tape_peak\": %lld, \"loss\": %.17g}\n",
           a.of->name, cot_version(), (long long)a.options.memory_limit, a.options.spill ? "true" : "false", least,
           runs, (long long)(peak_bytes() - at_first), (long long)cot_tape_peak_bytes(s.t), first);
    cot_params_destroy(s.p);
    cot_tape_destroy(s.t);
    return 0;
}
