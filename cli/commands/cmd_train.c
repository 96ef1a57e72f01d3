/* cmd_train.c: cotangent train: a model trained, by one seed or several, and its summary. */
#include "commands/commands.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "io/system.h"
#include "train/train.h"

typedef struct totals {
    int64_t runs;
    double  sum, squares, test_loss, seconds;
    bool    stopped;
} totals;

static double mean(const totals *a) { return a->runs ? a->sum / (double)a->runs : NAN; }

/* Of one run it is 0; over several, by n - 1. */
static double deviation(const totals *a) {
    double n = (double)a->runs;
    if (a->runs < 2) return isnan(mean(a)) ? NAN : 0;
    double v = (a->squares - n * mean(a) * mean(a)) / (n - 1);
    return v > 0 ? sqrt(v) : 0;
}

static void number(cot__json *j, const char *key, double value) {
    if (isnan(value)) return;
    cot__json_key(j, key);
    cot__json_number(j, value);
}

static void train_json(FILE *out, const trainable *m, training *r, const totals *a) {
    char      text[400];
    cot__json j = cot__json_to(out);
    m->describe(r->model, text, sizeof text);
    cot__json_open(&j, '{');
    cot__json_key(&j, "model");
    cot__json_string(&j, m->name);
    cot__json_key(&j, "data");
    cot__json_string(&j, text);
    cot__json_key(&j, "seeds");
    cot__json_integer(&j, a->runs);
    cot__json_key(&j, "steps");
    cot__json_integer(&j, r->step);
    number(&j, "loss", r->loss);
    number(&j, "test_accuracy_mean", mean(a));
    number(&j, "test_accuracy_std", deviation(a));
    number(&j, "test_loss", r->test_loss);
    number(&j, "seconds", a->seconds);
    if (m->show_json) m->show_json(r, &j);
    cot__json_close(&j, '}');
    fputs("\n", out);
}

static void train_text(FILE *out, const trainable *m, const training *r, const totals *a) {
    char text[400];
    m->describe(r->model, text, sizeof text);
    fprintf(out, "%s on %s\n", m->name, text);
    cot__write(out, "%lld steps%s, %.1f s", (long long)r->step, a->runs > 1 ? " in the last run" : "", a->seconds);
    if (!isnan(r->loss)) cot__write(out, ", loss %.4g", r->loss);
    fprintf(out, "\n");
    if (!isnan(mean(a)) && a->runs > 1)
        cot__write(out, "test accuracy %.2f %% ± %.2f over %lld seeds\n", 100 * mean(a), 100 * deviation(a),
                (long long)a->runs);
    else if (!isnan(mean(a)))
        cot__write(out, "test accuracy %.2f %%\n", 100 * mean(a));
    if (!isnan(r->test_loss)) cot__write(out, "test loss %.4f\n", r->test_loss);
}

/* All seeds; the last run stays open, to be shown. */
static bool run_seeds(training *r, const trainable *m, totals *a, failure *f) {
    double start = system_seconds();
    for (int64_t k = 0; k < r->o->train.seeds && !a->stopped; k++) {
        train_end(r);
        r->seed = r->o->train.seed + (uint64_t)k;
        if (!train_run(r, m, &a->stopped, f)) return false;
        if (a->stopped) break;
        a->runs++;
        a->sum += r->accuracy;
        a->squares += r->accuracy * r->accuracy;
    }
    a->seconds = system_seconds() - start;
    return true;
}

/* Is everything that is given for this model? */
static bool takes_all(const trainable *m, const train_settings *s, failure *f) {
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
    r.model = m && takes_all(m, &o->train, f) ? m->open(o, f) : NULL;
    if (!r.model) return f->status;
    system_stop_gently();
    if (run_seeds(&r, m, &a, f) && !a.stopped) {
        if (o->json) {
            train_json(out, m, &r, &a);
        } else {
            train_text(out, m, &r, &a);
            if (m->show) m->show(&r, out, how, f);
        }
    }
    train_end(&r);
    m->close(r.model);
    return f->status;
}
