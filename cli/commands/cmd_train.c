/* cmd_train.c: cotangent train: a model trained, by one seed or several, and its summary. */
#include "commands/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "io/memory_file.h"
#include "io/system.h"
#include "problem/limit.h"
#include "train/train.h"

/* What each run gave. */
typedef struct outcome {
    uint64_t seed;
    int64_t  steps;
    double   loss, accuracy, test_loss; /* NAN where there is none */
} outcome;

typedef struct totals {
    int64_t  runs, room;
    int64_t  ended; /* of these runs; one that was interrupted is the last */
    outcome *each;
    double   seconds;
    bool     stopped;
} totals;

typedef enum measure { LOSS, ACCURACY, TEST_LOSS, PERPLEXITY } measure;
static double of(const outcome *o, measure what) {
    return what == LOSS        ? o->loss
           : what == ACCURACY  ? o->accuracy
           : what == TEST_LOSS ? o->test_loss
                               : exp(o->test_loss);
}

/* Means are of the runs that ended; of one that was interrupted where there is no other. */
static int64_t counted(const totals *a) { return a->ended ? a->ended : a->runs; }

static double mean(const totals *a, measure what) {
    double  sum = 0;
    int64_t n = counted(a);
    for (int64_t k = 0; k < n; k++) sum += of(&a->each[k], what);
    return n ? sum / (double)n : NAN;
}

/* Of one run it is 0; over several, by n - 1. */
static double deviation(const totals *a, measure what) {
    double  m = mean(a, what), squares = 0;
    int64_t n = counted(a);
    if (n < 2) return isnan(m) ? NAN : 0;
    for (int64_t k = 0; k < n; k++) squares += (of(&a->each[k], what) - m) * (of(&a->each[k], what) - m);
    return sqrt(squares / (double)(n - 1));
}

static bool add_outcome(totals *a, const training *r, failure *f) {
    if (a->runs == a->room) {
        int64_t  room = 2 * a->room + 8;
        outcome *more = realloc(a->each, (size_t)room * sizeof *more);
        if (!more) return failure_memory(f);
        a->each = more;
        a->room = room;
    }
    a->each[a->runs++] = (outcome){r->seed, r->step, r->loss, r->accuracy, r->test_loss};
    return true;
}

static void number(cot__json *j, const char *key, double value) {
    if (isnan(value)) return;
    cot__json_key(j, key);
    cot__json_number(j, value);
}

static void runs_json(cot__json *j, const totals *a) {
    cot__json_key(j, "runs");
    cot__json_open(j, '[');
    for (int64_t k = 0; k < a->runs; k++) {
        const outcome *o = &a->each[k];
        cot__json_open(j, '{');
        cot__json_key(j, "seed");
        cot__json_integer(j, (int64_t)o->seed);
        cot__json_key(j, "steps");
        cot__json_integer(j, o->steps);
        number(j, "loss", o->loss);
        number(j, "test_accuracy", o->accuracy);
        number(j, "test_loss", o->test_loss);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
}

static void train_json(FILE *out, const trainable *m, training *r, const totals *a, failure *f) {
    char      text[400];
    cot__json j = cot__json_to(out);
    m->describe(r->model, text, sizeof text);
    cot__json_open(&j, '{');
    cot__json_key(&j, "model");
    cot__json_string(&j, m->name);
    cot__json_key(&j, "data");
    cot__json_string(&j, text);
    cot__json_key(&j, "seeds");
    cot__json_integer(&j, a->ended);
    if (a->stopped) {
        cot__json_key(&j, "interrupted");
        cot__json_bool(&j, true);
    }
    cot__json_key(&j, "steps");
    cot__json_integer(&j, r->step);
    number(&j, "loss", mean(a, LOSS));
    number(&j, "test_accuracy_mean", mean(a, ACCURACY));
    number(&j, "test_accuracy_std", deviation(a, ACCURACY));
    number(&j, "test_loss_mean", mean(a, TEST_LOSS));
    number(&j, "test_loss_std", deviation(a, TEST_LOSS));
    number(&j, "test_loss", mean(a, TEST_LOSS)); /* the name that it had at first */
    number(&j, "seconds", a->seconds);
    number(&j, "memory_limit", r->limit ? (double)r->limit : NAN);
    number(&j, "memory_peak", r->limit ? (double)cot_tape_peak_bytes(r->t) : NAN);
    runs_json(&j, a);
    if (m->tells_perplexity) number(&j, "perplexity", mean(a, PERPLEXITY));
    if (m->show_json && !a->stopped) m->show_json(r, &j, f);
    cot__json_close(&j, '}');
    fputs("\n", out);
}

static void train_text(FILE *out, const trainable *m, const training *r, const totals *a) {
    char text[400], peak[32], limit[32];
    m->describe(r->model, text, sizeof text);
    fprintf(out, "%s on %s\n", m->name, text);
    cot__write(out, "%lld step%s%s, %.1f s", (long long)r->step, r->step == 1 ? "" : "s",
               a->runs > 1 ? " in the last run" : "", a->seconds);
    if (!isnan(mean(a, LOSS))) cot__write(out, ", loss %.4g%s", mean(a, LOSS), a->runs > 1 ? " (mean)" : "");
    fprintf(out, "\n");
    if (r->limit)
        fprintf(out, "%s of memory at most, of a limit of %s\n",
                cot__bytes_text((double)cot_tape_peak_bytes(r->t), peak), cot__bytes_text((double)r->limit, limit));
    if (!isnan(mean(a, ACCURACY)) && a->runs > 1)
        cot__write(out, "test accuracy %.2f %% ± %.2f over %lld seeds\n", 100 * mean(a, ACCURACY),
                   100 * deviation(a, ACCURACY), (long long)a->runs);
    else if (!isnan(mean(a, ACCURACY)))
        cot__write(out, "test accuracy %.2f %%\n", 100 * mean(a, ACCURACY));
    if (!isnan(mean(a, TEST_LOSS)) && a->runs > 1)
        cot__write(out, "test loss %.4f ± %.4f over %lld seeds\n", mean(a, TEST_LOSS), deviation(a, TEST_LOSS),
                   (long long)a->runs);
    else if (!isnan(mean(a, TEST_LOSS)))
        cot__write(out, "test loss %.4f\n", mean(a, TEST_LOSS));
}

static bool logs_to_output(const options *o) { return o->train.log && strcmp(o->train.log, "-") == 0; }

/* A log on the standard output stands there instead; pictures are drawn all the same. */
static void for_people(training *r, const trainable *m, const totals *a, FILE *out, look how, failure *f) {
    memory_file unread;
    bool        log = logs_to_output(r->o);
    if (log && !memory_file_open(&unread, f)) return;
    FILE *to = log ? unread.file : out;
    train_text(to, m, r, a);
    if (m->show) m->show(r, to, how, f);
    if (!log) return;
    memory_file_close(&unread, f);
    memory_file_free(&unread);
}

/* All seeds; the last run stays open, to be shown. */
static bool run_seeds(training *r, const trainable *m, totals *a, failure *f) {
    double start = system_seconds();
    for (int64_t k = 0; k < r->o->train.seeds && !a->stopped; k++) {
        train_end(r);
        r->seed = r->o->train.seed + (uint64_t)k;
        if (!train_run(r, m, &a->stopped, f)) return false;
        if (!add_outcome(a, r, f)) return false;
        if (!a->stopped) a->ended++;
    }
    a->seconds = system_seconds() - start;
    return true;
}

/* Is everything that is given for this model? */
static bool takes_all(const trainable *m, const options *o, failure *f) {
    const train_settings *s = &o->train;
    const struct {
        const char *option, *models;
        bool        given;
    } all[] = {
        {"layers", "gpt", s->layers > 0},         {"heads", "gpt", s->heads > 0},
        {"context", "gpt", s->context > 0},       {"initial", "gpt", s->initial != NULL},
        {"tokenizer", "gpt", s->tokenizer != NULL}, {"width", "gcn and gpt", s->width > 0},
        {"batch", "mnist and gpt", s->batch > 0}, {"node", "gcn", s->has_node},
        {"precision", "mnist and gpt", s->precision != NULL},
        {"pictures", "gcn, mnist and ode", s->pictures != NULL},
    };
    memory_wish wish;
    if (!read_memory(s->memory, &wish, f)) return false;
    if (o->json && logs_to_output(o))
        return failure_usage(f, "only one of --json and --log - can go to the standard output");
    if (s->every && !s->checkpoint && !s->resume)
        return failure_usage(f, "--every says how often a run is saved; it goes with --checkpoint or --resume");
    if (s->seeds > 1 && !m->draws)
        return failure_usage(f, "--seeds repeats a run with other random numbers, and one of %s draws none; --seed N "
                                "gives its generated counts other noise", m->name);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k].given && !strstr(all[k].models, m->name))
            return failure_usage(f, "--%s is for %s; %s has nothing that it would set", all[k].option, all[k].models,
                                 m->name);
    return true;
}

int run_train(const options *o, FILE *out, look how, failure *f) {
    training r = {.o = o};
    totals   a = {0};
    if (o->positional_count != 1) {
        failure_usage(f, "train takes the name of one model: %s", train_names());
        return EXIT_USAGE;
    }
    const trainable *m = train_find(o->positionals[0], f);
    bool             fine = m && takes_all(m, o, f);
    /* a folder that cannot be written is told before hours of training, not after */
    if (fine && o->train.pictures) fine = system_make_folder(o->train.pictures, f);
    r.model = fine ? m->open(o, f) : NULL;
    if (!r.model) return f->status;
    system_stop_gently();
    if (run_seeds(&r, m, &a, f)) {
        if (o->json) {
            train_json(out, m, &r, &a, f);
        } else if (!a.stopped) {
            for_people(&r, m, &a, out, how, f);
        }
    }
    train_end(&r);
    m->close(r.model);
    free(a.each);
    return f->status == EXIT_FINE && a.stopped ? system_stop_status() : f->status;
}
