/* train_files.c: what a run leaves in its folder: checkpoints while it goes on, the model at the
 * end. */
#include <string.h>

#include "data/file/source.h"
#include "io/system.h"
#include "train/train.h"

static bool failed(failure *f, cot_status status, const char *why) {
    if (status == COT_OK) return true;
    if (status == COT_MEMORY) return failure_memory(f);
    return failure_set(f, EXIT_RUN, "file", "[train] %s", why);
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
    if (!s->checkpoint || s->resume) return true;
    /* a folder with a run in it */
    snprintf(marker, sizeof marker, "%s/model.safetensors", s->checkpoint);
    if (!cot__source_exists(marker) && !has_checkpoint(s->checkpoint)) return true;
    return failure_usage(f, "there is a run in %s already; go on with it by --resume %s, or choose another folder",
                         s->checkpoint, s->checkpoint);
}

static cot_training parts(const training *r) {
    return (cot_training){.params = r->p, .optim = r->optim, .loader = r->loader, .step = r->step, .key = r->key,
                          .extras = r->extras, .extra_names = r->extra_names, .extra = r->extra};
}

bool train_resume(training *r, const char *folder, failure *f) {
    char         why[900], text[1200];
    cot_training t = parts(r);
    cot_status   status = cot_training_resume(folder, &t, why, sizeof why);
    if (!failed(f, status, why)) return false;
    if (t.resumed) r->step = t.step;
    if (t.resumed && why[0])
        snprintf(text, sizeof text, "%s; the run goes on after step %lld\n", why, (long long)r->step);
    else if (t.resumed)
        snprintf(text, sizeof text, "the run goes on after step %lld\n", (long long)r->step);
    else
        snprintf(text, sizeof text, "there is no checkpoint in %s; the run begins at 0\n", folder);
    system_put_safely(stderr, text);
    return true;
}

bool train_save(training *r, const char *folder, failure *f) {
    char         why[900];
    cot_training t = parts(r);
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
