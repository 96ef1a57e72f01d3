/* train_files.c: what a run leaves in its folder: checkpoints while it goes on, the model at the
 * end. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "data/data.h"
#include "data/file/source.h"
#include "io/system.h"
#include "train/train.h"

static bool failed(failure *f, cot_status status, const char *why) {
    if (status == COT_OK) return true;
    if (status == COT_MEMORY) return failure_memory(f);
    return failure_said(f, EXIT_RUN, "file", "%s", why);
}

/* One that fits nothing is one too. */
static bool has_checkpoint(const char *folder) {
    cot_training nothing = {0};
    return cot_training_resume(folder, &nothing, NULL, 0) != COT_OK || nothing.resumed;
}

bool train_folder(const options *o, const char **folder, failure *f) {
    const train_settings *s = &o->train;
    char                  marker[4096];
    *folder = s->resume ? s->resume : s->checkpoint;
    if (*folder && s->seeds > 1)
        return failure_usage(f, "a run that is saved has one seed; leave out --seeds %lld", (long long)s->seeds);
    if (s->resume && s->checkpoint && strcmp(s->resume, s->checkpoint) != 0)
        return failure_usage(f, "--resume %s goes on saving there; leave out --checkpoint %s", s->resume,
                             s->checkpoint);
    if (!*folder) return true;
    if (!system_make_folder(*folder, f)) return false;
    if (s->resume) return true;
    /* a folder with a run in it */
    snprintf(marker, sizeof marker, "%s/model.safetensors", s->checkpoint);
    if (!cot__source_exists(marker) && !has_checkpoint(s->checkpoint)) return true;
    return failure_usage(f, "there is a run in %s already; go on with it by --resume %s, or choose another folder",
                         s->checkpoint, s->checkpoint);
}

/* What a run was told, as numbers: one that goes on must be told the same, but for its length. The
 * last two are that length and the checksum of its data, as many of its bits as a double holds. */
static const char *const told[] = {"seed", "rate", "batch", "width", "layers", "heads", "context", "precision"};
enum { SAME = sizeof told / sizeof *told, STEPS = SAME, DATA, TOLD, EXTRAS = 8 };

static void tell(const training *r, double *numbers) {
    const train_settings *s = &r->o->train;
    double all[TOLD] = {(double)r->seed,    s->rate,           (double)s->batch,  (double)s->width,
                        (double)s->layers, (double)s->heads, (double)s->context,
                        r->precision == COT_F32 ? 0 : (double)r->precision,
                        (double)r->steps,  (double)(r->data >> 11)};
    memcpy(numbers, all, sizeof all);
}

/* A checkpoint's lists of arrays: the model's own, and what the run was told. */
typedef struct lists {
    const char *names[EXTRAS];
    cot_array   arrays[EXTRAS];
} lists;

static cot_training parts(training *r, lists *all, double *numbers) {
    int n = 0;
    for (; n < r->extras && n < EXTRAS - 2; n++) all->names[n] = r->extra_names[n], all->arrays[n] = r->extra[n];
    all->names[n] = "told";
    all->arrays[n++] = (cot_array){COT_F64, COT_SHAPE(TOLD), TOLD, numbers};
    if (r->precision == COT_F16) {
        all->names[n] = "loss_scale";
        all->arrays[n++] = (cot_array){COT_F64, COT_SHAPE(3), 3, r->mixed};
    }
    return (cot_training){.params = r->p, .optim = r->optim, .loader = r->loader, .step = r->step, .key = r->key,
                          .extras = n, .extra_names = all->names, .extra = all->arrays};
}

/* 0 is what the model takes where nothing is said. */
static bool same_told(const training *r, const double *was, const char *folder, failure *f) {
    double now[TOLD];
    char   before[40] = "left out", after[40] = "left out";
    tell(r, now);
    for (int k = 0; k < SAME; k++) {
        if (now[k] == was[k]) continue;
        if (was[k] != 0 || k == 0) cot__format(before, sizeof before, "%.17g", was[k]);
        if (now[k] != 0 || k == 0) cot__format(after, sizeof after, "%.17g", now[k]);
        if (k == SAME - 1) { /* the last one has names */
            if (was[k] > 0 && was[k] < COT_DTYPE_COUNT)
                snprintf(before, sizeof before, "%s", cot_dtype_name((cot_dtype)was[k]));
            if (now[k] > 0) snprintf(after, sizeof after, "%s", cot_dtype_name(r->precision));
        }
        return failure_usage(f, "--%s was %s in the run that is saved in %s, and is %s now; it goes on with the same",
                             told[k], before, folder, after);
    }
    if (now[DATA] == was[DATA]) return true;
    return failure_usage(f, "--data has other contents than the run that is saved in %s was trained on; it goes on "
                            "with the same", folder);
}

/* Has the file none of the parameters of this run? */
static bool is_of_another(const training *r, const cot_file *file) {
    char name[400];
    for (int k = 0; k < cot_params_count(r->p); k++) {
        snprintf(name, sizeof name, "model.%s", cot_params_at(r->p, k).name);
        if (cot_file_find(file, name) >= 0) return false;
    }
    return true;
}

/* A checkpoint that does not fit: which option differs? True: not known. */
static bool says_what_differs(const training *r, const char *folder, failure *f) {
    double    was[TOLD];
    char     *path = cot__training_newest(folder);
    cot_file *file = path ? cot_file_open(path, NULL) : NULL;
    int       k = cot_file_find(file, "extra.told");
    bool      known = k >= 0 && cot_file_size(file, k) == TOLD && cot_file_read(file, k, COT_F64, was) == COT_OK;
    if (known && is_of_another(r, file))
        failure_usage(f, "the run that is saved in %s is of another model than %s; it goes on with the same", folder,
                      r->o->positionals[0]);
    else if (known) same_told(r, was, folder, f);
    cot_file_close(file);
    free(path);
    return f->status == EXIT_FINE;
}

/* A length may change, but not below what is done. */
static bool set_length(training *r, int64_t planned, const char *folder, failure *f) {
    r->planned = planned;
    r->again = !r->o->train.steps && r->steps != planned;
    if (r->again) r->steps = planned;
    return r->steps >= r->step ||
           failure_usage(f, "--steps is %lld, and the run that is saved in %s has done %lld; give as many or more, or "
                            "train in another folder", (long long)r->steps, folder, (long long)r->step);
}

/* A number of a file, which may be any. */
static int64_t count_of(double v) { return v >= 0 && v < 0x1p53 ? (int64_t)v : 0; }

bool train_resume(training *r, const char *folder, failure *f) {
    lists        all;
    double       was[TOLD] = {0};
    cot_training t = parts(r, &all, was);
    cot_status   status = cot_training_resume(folder, &t, r->torn, sizeof r->torn);
    r->again = false;
    r->resumed = t.resumed;
    if (status != COT_OK && status != COT_MEMORY && !says_what_differs(r, folder, f)) return false;
    if (!failed(f, status, r->torn)) return false;
    if (!t.resumed) return true;
    if (r->o->train.initial)
        return failure_usage(f, "--initial gives a run the parameters that it begins with, and the one in %s has done "
                                "%lld step%s; leave it out", folder, (long long)t.step, t.step == 1 ? "" : "s");
    if (!same_told(r, was, folder, f)) return false;
    r->step = t.step;
    if (r->precision == COT_F16)
        r->scale = (cot_loss_scale){
            .scale = r->mixed[0], .good = count_of(r->mixed[1]), .skipped = count_of(r->mixed[2])};
    return set_length(r, count_of(was[STEPS]), folder, f);
}

void train_tell_resumed(const training *r, const trainable *m, const char *folder) {
    char      text[2400];
    cot__text to = cot__text_buffer(text, sizeof text);
    if (r->torn[0]) cot__putf(&to, "%s; ", r->torn);
    if (!r->resumed) cot__putf(&to, "there is no checkpoint in %s; the run begins at 0", folder);
    else if (r->step == r->steps)
        cot__putf(&to, "the run has done its %lld step%s; more --steps would train it further", (long long)r->step,
                  r->step == 1 ? "" : "s");
    else cot__putf(&to, "the run goes on after step %lld", (long long)r->step);
    if (r->resumed && r->steps != r->planned)
        cot__putf(&to, "; it has %lld step%s now instead of %lld%s", (long long)r->steps, r->steps == 1 ? "" : "s",
                  (long long)r->planned,
                  m->scheduled ? ", and the rate goes on as if it had had them from the beginning" : "");
    cot__put(&to, "\n");
    system_put_safely(stderr, text);
}

bool train_save(training *r, const char *folder, failure *f) {
    char         why[900];
    lists        all;
    double       numbers[TOLD];
    cot_training t = parts(r, &all, numbers);
    tell(r, numbers);
    r->mixed[0] = r->scale.scale, r->mixed[1] = (double)r->scale.good, r->mixed[2] = (double)r->scale.skipped;
    return failed(f, cot_training_save(folder, &t, why, sizeof why), why);
}

bool train_save_model(training *r, const trainable *m, const char *folder, failure *f) {
    enum { MOST = 16 };
    char          path[4096], why[900];
    cot_text_pair pairs[MOST] = {{"model", m->name}};
    int           n = 1 + (m->pairs ? m->pairs(r, MOST - 1, pairs + 1) : 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (m->save && !m->save(r, folder, f)) return false;
    cot_save_options o = {.pairs = n, .texts = pairs};
    return failed(f, cot_params_save(r->p, path, &o, why, sizeof why), why);
}
