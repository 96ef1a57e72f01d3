/* train_gpt.c: a transformer that learns to go on with a text. Where the windows of a step begin
 * depends on the seed and on the number of the step alone, so a run that goes on needs to know
 * nothing else. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/bytes.h"
#include "data/data.h"
#include "io/system.h"
#include "models/gpt.h"
#include "train/gpt_text.h"

enum { VALIDATED = 64 }; /* windows at most */

typedef struct task {
    gpt       net;
    gpt_text  text;
    int64_t   batch;
    int64_t  *window; /* (context + 1) */
    int64_t  *buffer; /* the tokens (batch, context) and those that follow each */
    cot_array arrays[2];
    failure   trouble; /* of reading a window */
    char      heads[24];
} task;

static void close_task(void *model) {
    task *a = model;
    if (!a) return;
    gpt_text_close(&a->text);
    free(a->window);
    free(a->buffer);
    free(a);
}

static bool configure(task *a, const options *o, failure *f) {
    const train_settings *s = &o->train;
    a->net                  = (gpt){.context = s->context ? s->context : 128,
                                    .layers  = s->layers ? s->layers : 4,
                                    .heads   = s->heads ? s->heads : 4,
                                    .width   = s->width ? s->width : 128};
    a->batch                = s->batch ? s->batch : 8;
    if (a->net.width % a->net.heads == 0) return true;
    return failure_usage(f, "a width of %lld is not divided by %lld heads; each has as many numbers as the others",
                         (long long)a->net.width, (long long)a->net.heads);
}

/* How many tokens the table of a run has that does not begin with nothing: that of --initial, or of
 * a checkpoint. 0: not known. */
static int64_t earlier_vocabulary(const train_settings *s) {
    static const char *const names[] = {"wte.weight", "transformer.wte.weight", "model.wte.weight"};
    char                    *saved = s->resume ? cot__training_newest(s->resume) : NULL;
    const char              *path = saved ? saved : s->initial;
    cot_file                *f = path ? cot_file_open(path, NULL) : NULL;
    int64_t                  n = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names && n == 0; k++)
        if (cot_file_find(f, names[k]) >= 0) n = cot_file_shape(f, cot_file_find(f, names[k])).dim[0];
    cot_file_close(f);
    free(saved);
    return n;
}

static bool open_text(task *a, const options *o, failure *f) {
    int64_t n = a->batch * a->net.context;
    if (!gpt_text_open(&a->text, o->train.data, o->train.tokenizer, a->net.context + 1,
                       earlier_vocabulary(&o->train), f))
        return false;
    a->net.vocabulary = a->text.vocabulary;
    a->window         = malloc((size_t)(a->net.context + 1) * sizeof *a->window);
    a->buffer         = malloc(2 * (size_t)n * sizeof *a->buffer);
    if (!a->window || !a->buffer) return failure_memory(f);
    for (int k = 0; k < 2; k++)
        a->arrays[k] = (cot_array){COT_I64, COT_SHAPE(a->batch, a->net.context), n, a->buffer + k * n};
    return true;
}

static void *open_task(const options *o, failure *f) {
    task *a = o->train.data ? calloc(1, sizeof *a) : NULL;
    if (!o->train.data)
        failure_usage(f, "gpt needs --data FILE, a text or a .bin of tokens of two bytes");
    else if (!a)
        failure_memory(f);
    if (!a) return NULL;
    if (configure(a, o, f) && open_text(a, o, f)) return a;
    close_task(a);
    return NULL;
}

static void describe(const void *model, char *text, size_t room) {
    const task *a = model;
    snprintf(text, room, "%.200s: %lld %s of %lld, a tenth of them to validate", a->text.path, (long long)a->text.n,
             a->text.characters ? "characters" : "tokens", (long long)a->net.vocabulary);
}

/* In parts, since a file of tokens may be larger than the memory. */
static bool sum(const void *model, uint64_t *sum, failure *f) {
    enum { AT_ONCE = 4096 };
    const gpt_text *x = &((const task *)model)->text;
    int64_t         some[AT_ONCE];
    *sum = 0;
    for (int64_t k = 0; k < x->n; k += AT_ONCE) {
        int64_t n = x->n - k < AT_ONCE ? x->n - k : AT_ONCE;
        if (!gpt_text_read(x, k, n, some, f)) return false;
        *sum = cot__checksum(*sum, some, (size_t)n * sizeof *some);
    }
    return true;
}

static void make_optimiser(training *r) {
    int64_t         warmup   = r->steps / 10 < 100 ? r->steps / 10 : 100;
    double          rate     = train_rate(r, 1e-3);
    cot_schedule    s        = {.kind   = COT_RATE_COSINE,
                                .rate   = rate,
                                .end    = rate / 10,
                                .warmup = warmup,
                                .start  = 0.01,
                                .steps  = r->steps - warmup};
    cot_optim_options adam = gpt_optim(r->p);
    adam.schedule          = &s;
    r->optim               = cot_optim_create(r->p, &adam);
}

static bool begin(training *r, failure *f) {
    task       *a       = r->model;
    const char *initial = r->o->train.initial;
    char        why[900];
    cot_status  status = COT_OK;
    cot_var     one = cot_full(r->t, COT_I64, COT_SHAPE(1, 1), 0);
    cot_params_set_user(r->p, &a->net);
    gpt_begin(r->p, &a->net);
    cot_params_init(r->p, gpt_net, one, cot_key_fold(r->key, 0));
    if (!train_fine(r, f)) return false;
    if (initial) status = gpt_load(r->p, initial, why, sizeof why);
    if (status == COT_MEMORY) return failure_memory(f);
    if (status != COT_OK) return failure_said(f, EXIT_RUN, "file", "%s", why);
    make_optimiser(r);
    return train_fine(r, f);
}

static void shapes_of(const training *r, shapes *of) {
    const task *a = r->model;
    *of = (shapes){.is_gpt = true, .net = a->net, .batch = a->batch, .precision = r->precision};
}

/* Of a token: twice two operations a weight on the way back, and the attention's own products. */
static void work(const training *r, double *examples, double *flops) {
    const task *a = r->model;
    double      w = (double)a->net.width, l = (double)a->net.layers, c = (double)a->net.context;
    *examples = (double)(a->batch * a->net.context);
    *flops    = 6 * *examples * (12 * l * w * w + w * (double)a->net.vocabulary + 2 * l * c * w);
}

/* Row `row` of the batch is the window that begins at token `from`. */
static void fill(task *a, int64_t row, int64_t from) {
    int64_t c = a->net.context, *x = a->buffer + row * c, *y = x + a->batch * c;
    if (!gpt_text_read(&a->text, from, c + 1, a->window, &a->trouble))
        memset(a->window, 0, (size_t)(c + 1) * sizeof *x);
    memcpy(x, a->window, (size_t)c * sizeof *x);
    memcpy(y, a->window + 1, (size_t)c * sizeof *y);
}

/* Of the first `rows` windows of the batch. */
static cot_var mean_loss(training *r, int64_t rows) {
    task     *a = r->model;
    cot_shape s = COT_SHAPE(rows, a->net.context);
    cot_var   x = cot_wrap(r->t, COT_I64, s, a->arrays[0].data), y = cot_wrap(r->t, COT_I64, s, a->arrays[1].data);
    return gpt_loss(r->p, x, y);
}

static cot_var loss(training *r) {
    static const char *const names[] = {"tokens", "next"};
    task                    *a       = r->model;
    cot_key                  step    = cot_key_fold(cot_key_fold(r->key, 1), (uint64_t)r->step);
    uint64_t                 starts  = (uint64_t)(a->text.trained - a->net.context);
    for (int64_t b = 0; b < a->batch; b++) {
        cot_key k = cot_key_fold(step, (uint64_t)b);
        fill(a, b, (int64_t)(((uint64_t)k.word[1] << 32 | k.word[0]) % starts));
    }
    r->batch_arrays = 2;
    r->batch        = a->arrays;
    r->batch_names  = names;
    return mean_loss(r, a->batch);
}

/* The mean over the windows of the last tenth, or over VALIDATED of them, evenly spaced. */
static double validation_loss(training *r) {
    task   *a = r->model;
    int64_t c = a->net.context, all = (a->text.n - a->text.trained - 1) / c, n = all < VALIDATED ? all : VALIDATED;
    double  sum = 0;
    for (int64_t k = 0; k < n; k += a->batch) {
        int64_t  rows = n - k < a->batch ? n - k : a->batch;
        cot_mark mark = cot_tape_mark(r->t);
        for (int64_t b = 0; b < rows; b++) fill(a, b, a->text.trained + (k + b) * all / n * c);
        sum += (double)rows * cot_value(mean_loss(r, rows));
        if (cot_tape_status(r->t)) return NAN; /* rewinding would forget why */
        cot_tape_rewind(r->t, mark);
    }
    return sum / (double)n;
}

static bool validate(training *r) {
    r->numbers[r->shown++] = (watch_number){"val_loss", validation_loss(r)};
    return false;
}

static bool test(training *r, failure *f) {
    task *a      = r->model;
    r->test_loss = validation_loss(r);
    if (!train_fine(r, f)) return false;
    if (a->trouble.status) *f = a->trouble;
    return f->status == EXIT_FINE;
}

static int pairs(const training *r, int most, cot_text_pair *out) {
    task *a = r->model;
    int   n = 0;
    snprintf(a->heads, sizeof a->heads, "%lld", (long long)a->net.heads);
    if (n < most) out[n++] = (cot_text_pair){"heads", a->heads};
    if (n < most && a->text.characters) out[n++] = (cot_text_pair){"characters", a->text.characters};
    return n;
}

/* A model of byte pairs goes with their files. */
static bool save(const training *r, const char *folder, failure *f) {
    static const char *const names[] = {"vocab.json", "merges.txt"};
    char                     path[4096];
    for (int k = 0; k < 2 && r->o->train.tokenizer; k++) {
        size_t bytes;
        snprintf(path, sizeof path, "%.4000s/%s", r->o->train.tokenizer, names[k]);
        char *text = gpt_read(path, &bytes, f);
        if (!text) return false;
        snprintf(path, sizeof path, "%.4000s/%s", folder, names[k]);
        bool fine = system_put_file(path, text, bytes, f);
        free(text);
        if (!fine) return false;
    }
    return true;
}

const trainable train_gpt = {
    .name      = "gpt",
    .about     = "a transformer; --data a text, or a .bin of tokens",
    .steps     = 1000,
    .every     = 100,
    .unit      = "tokens",
    .tells_perplexity = true,
    .clip      = GPT_CLIP,
    .draws     = true,
    .open      = open_task,
    .scheduled = true,
    .describe  = describe,
    .sum       = sum,
    .begin     = begin,
    .shapes    = shapes_of,
    .work      = work,
    .loss      = loss,
    .validate  = validate,
    .test      = test,
    .pairs     = pairs,
    .save      = save,
    .close     = close_task,
};
