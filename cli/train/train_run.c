/* train_run.c: one run: steps, validation, checkpoints, and what ends it early: the model's own
 * rule, Ctrl-C, or a loss that is no number. */
#include "train/train.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "io/system.h"
#include "problem/limit.h"

#define LIMIT_SAID "; the memory limit is "

bool train_no_data(failure *f, const char *why) {
    if (strstr(why, "out of memory") || strstr(why, "memory is short")) return failure_memory(f);
    return failure_set(f, EXIT_RUN, "file", "[train] %s", why);
}

bool train_fine(const training *r, failure *f) {
    if (cot_tape_status(r->t) == COT_OK) return true;
    /* our own limit, not the system's */
    bool limit = strstr(cot_tape_message(r->t), LIMIT_SAID) != NULL;
    if (cot_tape_status(r->t) == COT_MEMORY && !limit) return failure_memory(f);
    return failure_said(f, EXIT_RUN, "run", "%s", cot_tape_message(r->t));
}

bool train_loads(const training *r, failure *f) {
    if (!r->loader || cot_loader_status(r->loader) == COT_MEMORY) return failure_memory(f);
    if (cot_loader_status(r->loader) == COT_OK) return true;
    return failure_set(f, EXIT_RUN, "run", "%s", cot_loader_message(r->loader));
}

const cot_array *train_batch(training *r, int n, const char *const *names) {
    r->batch = cot_loader_next(r->loader);
    r->batch_arrays = r->batch ? n : 0;
    r->batch_names = names;
    return r->batch;
}

double train_rate(const training *r, double rate) { return r->o->train.rate > 0 ? r->o->train.rate : rate; }

void train_end(training *r) {
    watch_close(r->w);
    cot_loader_destroy(r->loader);
    cot_optim_destroy(r->optim);
    cot_params_destroy(r->p);
    cot_tape_destroy(r->t);
    r->w = NULL;
    r->loader = NULL;
    r->optim = NULL;
    r->p = NULL;
    r->t = NULL;
}

/* What layers compute in; losses and parameters stay f32. */
static bool set_precision(training *r, failure *f) {
    const char *name = r->o->train.precision;
    r->precision = COT_F32;
    r->scale = (cot_loss_scale){0};
    if (!name || strcmp(name, "f32") == 0) return true;
    r->precision = strcmp(name, "bf16") == 0 ? COT_BF16 : COT_F16;
    if (strcmp(name, cot_dtype_name(r->precision)) != 0)
        return failure_usage(f, "--precision is \"%s\"; it is bf16, f16 or f32", name);
    cot_tape_set_precision(r->t, (cot_precision){.compute = r->precision});
    cot_params_set_precision(r->p, "*", r->precision);
    return train_fine(r, f);
}

/* A tape and no parameters yet. */
static bool open_tape(training *r, failure *f) {
    r->key = cot_key_of(r->seed);
    r->t = cot_tape_create(NULL);
    r->p = cot_params_create(r->t);
    r->step = 0;
    r->loss = r->accuracy = r->test_loss = NAN;
    return r->p ? set_precision(r, f) : failure_memory(f);
}

/* Only the first of several seeds writes files: they would be the same files. */
static bool open_watch(training *r, const trainable *m, failure *f) {
    const train_settings *s = &r->o->train;
    watch_options         o = {.name = m->name,
                               .steps = r->steps,
                               .resumed = r->step,
                               .log = r->seed == s->seed ? s->log : NULL,
                               .tensorboard = r->seed == s->seed ? s->tensorboard : NULL,
                               .unit = m->unit,
                               .quiet = s->quiet};
    if (m->work) m->work(r, &o.examples, &o.flops);
    r->w = watch_open(&o, f);
    return r->w != NULL;
}

/* The first parameter that has an element which is no finite number; NULL: there is none. */
static const char *spoilt(const training *r) {
    for (int k = 0; k < cot_params_count(r->p); k++) {
        cot_param one = cot_params_at(r->p, k);
        double    fine = cot_value(cot_all(cot_isfinite(cot_detach(one.var)), COT_ALL));
        if (cot_tape_status(r->t) == COT_OK && fine == 0) return one.name;
    }
    return NULL;
}

/* Where the loss before was a number and the weights are none, the step between has made them so:
 * an explanation of this loss would only say that it was given such weights. */
static void explain_loss(const training *r, cot_var loss, char *why, size_t room) {
    const char *name = r->step > 0 ? spoilt(r) : NULL;
    if (!name) {
        cot_explain(loss, why, room);
        return;
    }
    cot__format(why, room, "The weights are to blame: %.200s became infinite or nan in step %lld, at a rate of %.3g. A "
                           "smaller --rate helps; so do other starting values, where --initial gave them.",
                name, (long long)r->step, r->rate);
}

/* The loss is NaN or infinite: says why, before anything is written over, and keeps the batch. */
static bool not_a_number(training *r, cot_var loss, const char *folder, failure *f) {
    char why[900], path[4096] = "", trouble[400];
    explain_loss(r, loss, why, sizeof why);
    if (folder && r->batch_arrays) {
        snprintf(path, sizeof path, "%s/bad-batch.safetensors", folder);
        if (cot_file_save(path, r->batch_arrays, r->batch_names, r->batch, NULL, trouble, sizeof trouble)) path[0] = 0;
    }
    return failure_set(f, EXIT_DISAGREES, "loss",
                       "[train] the loss of step %lld is %s; the step was not taken%s%.300s. %s",
                       (long long)r->step + 1, isnan(r->loss) ? "nan" : "infinite",
                       path[0] ? ", and its batch is in " : "", path, why);
}

static bool one_step(training *r, const trainable *m, const char *folder, failure *f) {
    cot_params_train(r->p, true);
    cot_params_set_key(r->p, cot_key_at(r->key, cot_integer(r->step + 1)));
    cot_var loss = m->loss(r);
    if (r->loader && !train_loads(r, f)) return false;
    r->loss = cot_value(loss);
    if (!train_fine(r, f)) return false;
    if (!isfinite(r->loss)) return not_a_number(r, loss, folder, f);
    bool   scaled = r->precision == COT_F16;
    double norm = NAN, rate = cot_optim_rate(r->optim);
    cot_backward(scaled ? cot_loss_scaled(&r->scale, loss) : loss);
    if (!scaled || cot_unscale_grads(r->p, &r->scale)) {
        norm = m->clip > 0 ? cot_clip_grad_norm(r->p, m->clip) : 0;
        cot_optim_step(r->optim);
    }
    cot_tape_zero_grads(r->t);
    if (!train_fine(r, f)) return false;
    r->step++;
    r->rate = rate;
    r->numbers[0] = (watch_number){"rate", rate};
    r->numbers[1] = (watch_number){"gradient_norm", norm};
    r->shown = m->clip > 0 ? 2 : 1;
    return true;
}

static bool tested(training *r, const trainable *m, failure *f) {
    cot_mark mark = cot_tape_mark(r->t);
    cot_params_train(r->p, false);
    cot_no_grad_open(r->t);
    bool fine = m->test(r, f);
    cot_no_grad_close(r->t);
    cot_tape_rewind(r->t, mark);
    return fine;
}

/* ---- the limit of memory --------------------------------------------------------------------- */

enum { TRIED = 2 }; /* steps: where a solver chooses its own, the second may take another way */

/* A few steps and a test under a limit, of a run that is thrown away; what they take. */
static bool tried(const training *r, const trainable *m, int64_t limit, double *peak, failure *f) {
    training other = {.o = r->o, .model = r->model, .seed = r->seed, .steps = r->steps, .limit = limit};
    bool     fine = open_tape(&other, f);
    if (fine) cot_tape_set_memory_limit(other.t, limit);
    fine = fine && m->begin(&other, f) && train_fine(&other, f);
    cot_mark mark = cot_tape_mark(other.t);
    for (int k = 0; fine && k < TRIED && k < r->steps; k++) {
        fine = one_step(&other, m, NULL, f);
        if (fine) cot_tape_rewind(other.t, mark);
    }
    fine = fine && tested(&other, m, f);
    *peak = fine ? (double)cot_tape_peak_bytes(other.t) : 0;
    train_end(&other);
    return fine;
}

/* What a step takes without one: by its shapes, or by trying. *least: a limit that is enough; 0:
 * not known. */
static bool unlimited_peak(const training *r, const trainable *m, double *peak, double *least, failure *f) {
    cot__forecast a = {0};
    shapes        s;
    int64_t       parameters;
    *least = 0;
    /* a limit that nothing reaches: under one small values, too, have memory of their own */
    if (!m->shapes) return tried(r, m, INT64_MAX, peak, f);
    m->shapes(r, &s);
    bool fine = shapes_forecast_layers(&s, &a, &parameters, f);
    *peak = a.whole > 0 ? a.whole : a.peak;
    *least = a.least;
    cot__forecast_free(&a);
    return fine;
}

/* The smallest percentage that would do, by the forecast, or by trying; 0: not known. */
static int enough_percent(const training *r, const trainable *m) {
    double  peak, least, unused;
    failure unsaid = {0};
    int     low = 0, high = 100;
    if (!unlimited_peak(r, m, &peak, &least, &unsaid)) return 0;
    if (m->shapes) high = least > 0 ? (int)ceil(100 * least / peak) : 0;
    while (!m->shapes && high - low > 1) {
        int     mid = (low + high) / 2;
        failure small = {0};
        if (tried(r, m, (int64_t)(mid / 100.0 * peak), &unused, &small)) high = mid;
        else low = mid;
    }
    return high > 0 && (double)r->limit < high / 100.0 * peak ? high : 0;
}

/* A limit that was too small fails with what would have been enough. */
static void say_what_is_enough(const training *r, const trainable *m, failure *f) {
    size_t said = strlen(f->message);
    if (!r->limit || !strstr(f->message, LIMIT_SAID)) return;
    int percent = enough_percent(r, m);
    if (percent) snprintf(f->message + said, sizeof f->message - said, "; --memory %d%% would do", percent);
}

/* --memory, in bytes. All seeds have the limit of the first. */
static bool set_limit(training *r, const trainable *m, failure *f) {
    memory_wish wish;
    double      peak, least;
    if (!r->o->train.memory) return true;
    if (!read_memory(r->o->train.memory, &wish, f)) return false;
    if (!r->limit && wish.part > 0) {
        if (!unlimited_peak(r, m, &peak, &least, f)) return false;
        wish.bytes = (int64_t)(wish.part * peak);
    }
    if (!r->limit) r->limit = wish.bytes > 0 ? wish.bytes : 1;
    cot_tape_set_memory_limit(r->t, r->limit);
    return train_fine(r, f);
}

static bool begin(training *r, const trainable *m, failure *f) {
    return open_tape(r, f) && set_limit(r, m, f) && m->begin(r, f) && train_fine(r, f);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* In evaluation, without recording for derivatives. A validation after each step is a part of the
 * step's row; a rare one is a row of its own, which people see. */
static bool validated(training *r, const trainable *m) {
    bool stop = false, now = m->validate && m->every > 0 && (r->step % m->every == 0 || r->step == r->steps);
    int  of_step = r->shown;
    if (now) {
        cot_params_train(r->p, false);
        cot_no_grad_open(r->t);
        stop = m->validate(r);
        cot_no_grad_close(r->t);
    }
    watch_step(r->w, r->step, r->loss, m->every == 1 ? r->shown : of_step, r->numbers);
    if (now && m->every > 1) watch_row(r->w, r->step, r->shown - of_step, r->numbers + of_step);
    return stop;
}

/* A word of a shell's line: as it stands, or in quotes, in which ' is '\''. */
static void put_word(cot__text *to, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (*word && word[strspn(word, plain)] == 0) {
        cot__put(to, word);
        return;
    }
    cot__put(to, "'");
    for (char one[2] = ""; (one[0] = *word) != 0; word++) cot__put(to, *word == '\'' ? "'\\''" : one);
    cot__put(to, "'");
}

/* The options without which a run would go on as another, or be written elsewhere: those that were
 * given. */
static void put_options(cot__text *to, const train_settings *s) {
    const struct {
        const char *name;
        int64_t     value;
    } numbers[] = {{"steps", s->steps}, {"seed", (int64_t)s->seed}, {"batch", s->batch},    {"width", s->width},
                   {"layers", s->layers}, {"heads", s->heads},      {"context", s->context}, {"every", s->every}};
    const struct {
        const char *name, *value;
    } texts[] = {{"data", s->data},         {"tokenizer", s->tokenizer},     {"pictures", s->pictures},
                 {"log", s->log},           {"tensorboard", s->tensorboard}, {"memory", s->memory}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (texts[k].value) cot__putf(to, " --%s ", texts[k].name), put_word(to, texts[k].value);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (numbers[k].value > 0) cot__putf(to, " --%s %lld", numbers[k].name, (long long)numbers[k].value);
    if (s->has_node) cot__putf(to, " --node %lld", (long long)s->node);
    if (s->precision) cot__putf(to, " --precision %s", s->precision);
    if (s->rate > 0) cot__putf(to, " --rate %.17g", s->rate);
}

static void say_how_to_resume(training *r, const trainable *m, const char *folder) {
    char      text[8192];
    cot__text to = cot__text_buffer(text, sizeof text);
    cot__putf(&to, "stopped after step %lld", (long long)r->step);
    if (folder) {
        cot__putf(&to, ", which is saved; go on with: cotangent train %s", m->name);
        put_options(&to, &r->o->train);
        cot__put(&to, " --resume ");
        put_word(&to, folder);
    } else {
        cot__put(&to, "; with --checkpoint DIR it could be resumed");
    }
    watch_say(r->w, text);
}

/* Steps until the last, or until the model or the user wants no more. */
static bool steps(training *r, const trainable *m, const char *folder, bool *stopped, failure *f) {
    cot_mark mark = cot_tape_mark(r->t);
    int64_t  every = r->o->train.every > 0 ? r->o->train.every : 100;
    bool     enough = false;
    while (r->step < r->steps && !enough && !*stopped) {
        if (!one_step(r, m, folder, f)) return false;
        cot_tape_rewind(r->t, mark); /* a validation needs the memory of the step, not its values */
        enough = validated(r, m);
        if (!train_fine(r, f)) return false; /* before rewinding, which forgets errors too */
        cot_tape_rewind(r->t, mark);
        *stopped = system_stop_asked();
        bool save = r->step % every == 0 || r->step == r->steps || *stopped;
        if (folder && save && !train_save(r, folder, f)) return false;
    }
    return true;
}

/* Goes on with a saved run, whose optimiser is made for the steps of that run. */
static bool resume(training *r, const trainable *m, const char *folder, failure *f) {
    if (!train_resume(r, folder, f)) return false;
    if (r->again) {
        train_end(r);
        if (!begin(r, m, f) || !train_resume(r, folder, f)) return false;
    }
    train_tell_resumed(r, m, folder);
    return true;
}

static bool run(training *r, const trainable *m, bool *stopped, failure *f) {
    const char *folder;
    r->steps = r->o->train.steps > 0 ? r->o->train.steps : m->steps;
    if (!train_folder(r->o, &folder, f) || (folder && !m->sum(r->model, &r->data, f)) || !begin(r, m, f)) return false;
    if (r->o->train.resume && !resume(r, m, folder, f)) return false;
    if (!open_watch(r, m, f)) return false;
    if (!steps(r, m, folder, stopped, f)) return false;
    if (*stopped) {
        say_how_to_resume(r, m, folder);
        return true;
    }
    return tested(r, m, f) && (!folder || train_save_model(r, m, folder, f));
}

bool train_run(training *r, const trainable *m, bool *stopped, failure *f) {
    bool fine = run(r, m, stopped, f);
    if (!fine) say_what_is_enough(r, m, f);
    return fine;
}
