/* train_ode.c: the rates of Lotka and Volterra's equations from counts of prey and predators, in a
 * file or generated. A step sees all counts; the loss is the mean square of what the logarithms of
 * the solution are off by. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>

#include "base/file/bytes.h"
#include "base/number.h"
#include "draw/chart.h"
#include "models/lotka.h"
#include "train/pictures.h"

typedef struct task {
    const char *from;
    lotka       counts;
    double      found[LOTKA_UNKNOWN]; /* after the test: logarithms */
    double      solution[2 * LOTKA_MOST];
} task;

static void close_task(void *model) {
    task *a = model;
    if (!a) return;
    lotka_free(&a->counts);
    free(a);
}

static void *open_task(const options *o, failure *f) {
    char  why[600] = "";
    task *a = calloc(1, sizeof *a);
    if (!a) {
        failure_memory(f);
        return NULL;
    }
    a->from = o->train.data ? o->train.data : "generated";
    int wrong = o->train.data ? lotka_read(&a->counts, a->from, why, sizeof why)
                              : lotka_generate(&a->counts, o->train.seed, why, sizeof why);
    if (!wrong) return a;
    train_no_data(f, why);
    close_task(a);
    return NULL;
}

static void describe(const void *model, char *text, size_t room) {
    const task *a = model;
    snprintf(text, room, "%s: %lld counts of prey and predators", a->from, (long long)a->counts.n);
}

static bool sum(const void *model, uint64_t *sum, failure *f) {
    const lotka *c = &((const task *)model)->counts;
    (void)f;
    *sum = cot__checksum(0, c->time, (size_t)c->n * sizeof *c->time);
    *sum = cot__checksum(*sum, c->count, 2 * (size_t)c->n * sizeof *c->count);
    return true;
}

static cot_var unknown(cot_params *p, cot_var x) {
    return cot_nn_parameter(p, "log_rates_and_start", COT_SHAPE(LOTKA_UNKNOWN), x, (cot_init){COT_INIT_CONSTANT, 0});
}

static bool begin(training *r, failure *f) {
    task        *a = r->model;
    double       guess[LOTKA_UNKNOWN];
    cot_schedule cosine = {.kind = COT_RATE_COSINE, .rate = train_rate(r, 0.1), .steps = r->steps};
    lotka_guess(&a->counts, guess);
    cot_var x = cot_full(r->t, COT_F64, COT_SCALAR, 0);
    cot_params_init(r->p, unknown, x, r->key);
    cot_assign_data(unknown(r->p, x), guess);
    r->optim = cot_optim_create(r->p, &(cot_optim_options){.kind = COT_ADAM, .schedule = &cosine});
    return train_fine(r, f);
}

static cot_var loss(training *r) {
    task *a = r->model;
    return cot_mean(cot_square(lotka_residuals(&a->counts, cot_params_get(r->p, "log_rates_and_start"))), COT_ALL);
}

/* Nothing is held back to test: what is wanted are the rates. */
static bool test(training *r, failure *f) {
    task   *a = r->model;
    int64_t n = 2 * a->counts.n;
    cot_var x = cot_params_get(r->p, "log_rates_and_start"), off = lotka_residuals(&a->counts, x);
    cot_read(x, a->found, LOTKA_UNKNOWN);
    cot_read(off, a->solution, n);
    for (int64_t k = 0; k < n; k++) a->solution[k] = exp(a->solution[k]) * a->counts.count[k];
    return train_fine(r, f);
}

static void draw_counts(training *r, FILE *out) {
    task        *a = r->model;
    int64_t      n = a->counts.n;
    double       y[4][LOTKA_MOST];
    chart_series lines[4] = {{.name = "prey, counted", .n = n, .x = a->counts.time, .y = y[0]},
                             {.name = "predators, counted", .n = n, .x = a->counts.time, .y = y[1]},
                             {.name = "prey, solution", .n = n, .x = a->counts.time, .y = y[2]},
                             {.name = "predators, solution", .n = n, .x = a->counts.time, .y = y[3]}};
    chart c = {.title = "Counts, and the solution that fits them", .x_label = "time", .y_label = "animals", .n = 4,
               .series = lines};
    for (int64_t k = 0; k < 2 * n; k++) {
        y[k % 2][k / 2] = a->counts.count[k];
        y[2 + k % 2][k / 2] = a->solution[k];
    }
    chart_measure(&c);
    chart_svg(&c, out, "Prey and predators over time: as counted, and as the equations have them.");
}

static bool show(training *r, FILE *out, look how, failure *f) {
    task *a = r->model;
    (void)how;
    fprintf(out, "\nrate                        found%s\n", r->o->train.data ? "" : "   in fact");
    for (int k = 0; k < LOTKA_RATES; k++) {
        cot__write(out, "%-24s %8.4f", lotka_names[k], exp(a->found[k]));
        if (!r->o->train.data) cot__write(out, "  %8.4f", lotka_truth[k]);
        fprintf(out, "\n");
    }
    return !r->o->train.pictures || picture_file(r, r->o->train.pictures, "counts.svg", draw_counts, out, f);
}

static bool show_json(training *r, cot__json *j, failure *f) {
    static const char *const keys[LOTKA_RATES] = {"prey_birth", "prey_eaten", "predator_death", "predator_birth"};
    task                    *a = r->model;
    (void)f;
    cot__json_key(j, "rates");
    cot__json_open(j, '{');
    for (int k = 0; k < LOTKA_RATES; k++) {
        cot__json_key(j, keys[k]);
        cot__json_number(j, exp(a->found[k]));
    }
    cot__json_close(j, '}');
    return true;
}

const trainable train_ode = {
    .name = "ode",
    .about = "the rates of prey and predators; --data a table of time, prey, predators",
    .steps = 500,
    .open = open_task,
    .scheduled = true,
    .describe = describe,
    .sum = sum,
    .begin = begin,
    .loss = loss,
    .test = test,
    .show = show,
    .show_json = show_json,
    .close = close_task,
};
