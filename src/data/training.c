/* training.c: checkpoints of training runs: a folder of .safetensors files, the newest two.
 *
 * A checkpoint is one file, step-000000001200.safetensors: "model.", "optim." and "extra." stand
 * before the names of its tensors, and all numbers beside them are texts of its metadata. Its
 * first text is the sum of all other bytes, so that one which is cut short or altered is known.
 *
 * Invariant: a file of such a name that is complete is never written to, and removed only when two
 * newer ones are complete. */
#include "data/data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT = 2, DIGITS = 12, NUMBERS = 8, TEXT = 24 };

static const char before[] = "step-", after[] = ".safetensors";
/* Names have 18 digits at most. */
static const int64_t last_step = INT64_C(999999999999999999);
#define NAME_BYTES (sizeof before - 1 + 20 + sizeof after)

/* ---- the folder ------------------------------------------------------------------------------ */

static bool given(const char *folder, const cot_training *t, cot__trouble *trouble) {
    if (!folder || !t) return cot__trouble_file(trouble, "the %s NULL", folder ? "training is" : "folder is");
    if (t->extras < 0 || (t->extras && (!t->extra || !t->extra_names)))
        return cot__trouble_file(trouble, "the list of %d more arrays is NULL or negative", t->extras);
    for (int k = 0; k < t->extras; k++)
        if (!cot__array_given(folder, t->extra_names[k], &t->extra[k], trouble)) return false;
    if (t->step < 0) return cot__trouble_file(trouble, "step %lld is negative", (long long)t->step);
    if (t->step > last_step)
        return cot__trouble_file(trouble, "step %lld has no name; the last one is %lld", (long long)t->step,
                                 (long long)last_step);
    if (t->optim && cot_optim_swapped(t->optim))
        return cot__trouble_file(trouble, "weights and their averages are exchanged; exchange them back before");
    return true;
}

static char *path_of(cot__keep *keep, const char *folder, const char *name) {
    size_t n = strlen(folder), room = n + strlen(name) + 2;
    char  *path = cot__keep_take(keep, room);
    if (path) snprintf(path, room, "%s/%s", folder, name);
    return path;
}

/* The step of a checkpoint by its name; -1: it is none. *rest: what follows a whole name. */
static int64_t step_of(const char *name, const char **rest) {
    int64_t step   = 0;
    int     digits = 0;
    if (strncmp(name, before, sizeof before - 1) != 0) return -1;
    for (name += sizeof before - 1; *name >= '0' && *name <= '9' && digits < 18; name++, digits++)
        step = 10 * step + (*name - '0');
    if (digits < DIGITS || strncmp(name, after, sizeof after - 1) != 0) return -1;
    *rest = name + sizeof after - 1;
    return step;
}

static void name_of(int64_t step, char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "%s%0*lld%s", before, DIGITS, (long long)step, after);
}

/* Steps of the checkpoints in a folder, the newest first. Without a folder there are none. */
typedef struct steps {
    int64_t *at;
    size_t   n, room;
} steps;

static int newest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

static bool list_steps(const char *folder, cot__keep *keep, steps *all, cot__trouble *t) {
    DIR *d = opendir(folder);
    if (!d) return errno == ENOENT || cot__trouble_errno(t, "read", folder, errno);
    bool fine = true;
    for (struct dirent *e; fine && (e = readdir(d));) {
        const char *rest = "";
        int64_t     step = step_of(e->d_name, &rest);
        if (step < 0 || *rest) continue;
        int64_t *grown = cot__keep_grow(keep, all->at, all->n, &all->room, sizeof *grown);
        fine           = grown || cot__trouble_memory(t);
        if (grown) all->at = grown, grown[all->n++] = step;
    }
    closedir(d);
    if (all->n) qsort(all->at, all->n, sizeof *all->at, newest_first);
    return fine;
}

/* What a process that was killed left unfinished. Nobody else writes here. */
static void sweep(const char *folder, cot__keep *keep) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *rest = "";
        char       *path =
            step_of(e->d_name, &rest) >= 0 && strncmp(rest, ".new", 4) == 0 ? path_of(keep, folder, e->d_name) : NULL;
        if (path) unlink(path);
    }
    if (d) closedir(d);
}

/* Brings the names in a folder to the disk, where the system can. */
static void sync_folder(const char *folder) {
#ifndef __wasi__
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
#else
    (void)folder;
#endif
}

/* ---- what is in a checkpoint ----------------------------------------------------------------- */

static bool list_parts(cot__parts *x, const cot_training *t) {
    bool fine = cot__parts_of_params(x, t->params, "model.");
    for (int k = 0; fine && k < cot_optim_states(t->optim); k++) {
        const char *name = "";
        cot_array   a    = cot_optim_state(t->optim, k, &name);
        fine             = cot__parts_add(x, "optim.", name, (cot_var){NULL, 0}, &a);
    }
    for (int k = 0; fine && k < t->extras; k++)
        fine = cot__parts_add(x, "extra.", t->extra_names[k], (cot_var){NULL, 0}, &t->extra[k]);
    return fine;
}

/* The numbers beside the tensors, as texts. */
typedef struct numbers {
    int64_t       value[NUMBERS];
    char          text[NUMBERS][TEXT];
    cot_text_pair pairs[NUMBERS];
} numbers;

enum { FORMAT, STEP, KEY_0, KEY_1, OPTIM_STEPS, EPOCH, ROW, BITS };
static const char *const number_names[NUMBERS] = {"format",      "step",  "key.0", "key.1",
                                                  "optim.steps", "epoch", "row",   "bits"};

static void collect(numbers *x, const cot_training *t) {
    cot_position at              = cot_loader_position(t->loader);
    int64_t      values[NUMBERS] = {1,        t->step, t->key.word[0], t->key.word[1], cot_optim_steps(t->optim),
                                    at.epoch, at.row,  COT_BITS};
    for (int k = 0; k < NUMBERS; k++) {
        x->value[k] = values[k];
        snprintf(x->text[k], TEXT, "%lld", (long long)values[k]);
        x->pairs[k] = (cot_text_pair){number_names[k], x->text[k]};
    }
}

static bool read_numbers(numbers *x, const cot_file *f, const char *path, cot__trouble *t) {
    for (int k = 0; k < NUMBERS; k++) {
        const char *text = cot_file_text(f, number_names[k]);
        char       *end  = NULL;
        errno            = 0;
        x->value[k]      = text && *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
        if (!end || *end || errno || x->value[k] < 0)
            return cot__trouble_file(t, "%s has no number %s beside its tensors", path, number_names[k]);
    }
    if (x->value[FORMAT] != 1)
        return cot__trouble_file(t, "%s is a checkpoint of format %lld; 1 can be read", path,
                                 (long long)x->value[FORMAT]);
    return true;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Is it whole? */
static bool is_whole(const char *path, const cot_allocator *al, cot__trouble *t) {
    cot__source s;
    if (!cot__source_open(&s, path, al, t)) return false;
    bool fine = cot__safetensors_sum(&s, t);
    cot__source_close(&s);
    return fine;
}

/* The path of checkpoint k; NULL when memory is short. */
static char *path_at(const char *folder, cot__keep *keep, const steps *all, size_t k) {
    char name[NAME_BYTES];
    name_of(all->at[k], name);
    return path_of(keep, folder, name);
}

/* A later checkpoint that is whole would be what a run goes on from, and what is saved now lost. */
static bool is_latest(const char *folder, cot__keep *keep, int64_t step, cot__trouble *t) {
    steps all = {0};
    if (!list_steps(folder, keep, &all, t)) return false;
    for (size_t k = 0; k < all.n && all.at[k] > step; k++) {
        cot__trouble torn = {0};
        const char  *path = path_at(folder, keep, &all, k);
        if (!path) return cot__trouble_memory(t);
        if (is_whole(path, &keep->al, &torn))
            return cot__trouble_file(t, "step %lld comes before %s, which is there already; go on from that, or save "
                                        "to another folder", (long long)step, path);
        if (torn.status == COT_MEMORY) return *t = torn, false;
    }
    return true;
}

/* Only behind two that are whole is an old one removed, so that others which are not cost none. */
static void remove_old(const char *folder, cot__keep *keep, int64_t saved) {
    steps        all   = {0};
    cot__trouble torn  = {0};
    int          whole = 0;
    if (!list_steps(folder, keep, &all, &torn)) return;
    for (size_t k = 0; k < all.n; k++) {
        char *path = path_at(folder, keep, &all, k);
        if (!path) return;
        if (whole == KEPT)
            unlink(path);
        else
            whole += all.at[k] == saved || is_whole(path, &keep->al, &torn);
    }
}

cot_status cot_training_save(const char *folder, const cot_training *t, char *why, size_t room) {
    cot__trouble trouble = {0};
    cot__parts   x       = {0};
    numbers      n;
    if (!given(folder, t, &trouble)) return cot__trouble_tell(&trouble, "training_save", why, room);
    x.keep.al = t->allocator;
    char name[NAME_BYTES];
    name_of(t->step, name);
    char *path = path_of(&x.keep, folder, name);
    collect(&n, t);
    cot__saving w = {.form = COT__FILE_SAFETENSORS, .pair_count = NUMBERS, .pairs = n.pairs, .sum = true};
    if (!path || !list_parts(&x, t))
        cot__trouble_memory(&trouble);
    else if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        cot__trouble_errno(&trouble, "make", folder, errno);
    else if (is_latest(folder, &x.keep, t->step, &trouble)) {
        sweep(folder, &x.keep);
        if (cot__parts_save(&x, path, &w, &trouble)) {
            sync_folder(folder);
            remove_old(folder, &x.keep, t->step);
        }
    }
    cot__parts_free(&x);
    return cot__trouble_tell(&trouble, "training_save", why, room);
}

/* ---- going on -------------------------------------------------------------------------------- */

/* Everything is compared before anything is written. */
static bool load(const char *path, cot__parts *x, cot_training *t, cot__trouble *trouble) {
    cot_load_options o     = {0};
    numbers          n     = {0};
    cot_file        *f     = cot_file_open(path, &t->allocator);
    int             *place = cot__keep_take(&x->keep, x->n * sizeof *place);
    bool             fine  = (f && place) || cot__trouble_memory(trouble);
    if (fine && cot_file_status(f)) fine = cot__trouble_set(trouble, cot_file_status(f), "%s", cot_file_message(f));
    fine = fine && read_numbers(&n, f, path, trouble) && cot__parts_match(x, f, path, &o, place, trouble);
    cot_position before_it = cot_loader_position(t->loader), at = {n.value[EPOCH], n.value[ROW]};
    if (fine && t->loader && cot_loader_seek(t->loader, at) != COT_OK)
        fine = cot__trouble_file(trouble, "%s stands at row %lld of the data, which has %lld rows", path,
                                 (long long)at.row, (long long)cot_loader_rows(t->loader));
    if (fine && !cot__parts_load(x, f, place, trouble)) {
        if (t->loader) cot_loader_seek(t->loader, before_it);
        fine = false;
    }
    if (fine) {
        if (t->optim) cot_optim_set_steps(t->optim, n.value[OPTIM_STEPS]);
        t->step    = n.value[STEP];
        t->key     = (cot_key){.word = {(uint32_t)n.value[KEY_0], (uint32_t)n.value[KEY_1]}};
        t->resumed = true;
    }
    cot_file_close(f);
    return fine;
}

/* The newest that is whole; *torn is what is wrong with the first that is not. NULL: none is. */
static char *find_whole(const char *folder, cot__keep *keep, const steps *all, cot__trouble *torn, cot__trouble *t) {
    for (size_t k = 0; k < all->n; k++) {
        cot__trouble now  = {0};
        char        *path = path_at(folder, keep, all, k);
        if (!path) return cot__trouble_memory(t), NULL;
        if (is_whole(path, &keep->al, &now)) return path;
        if (now.status == COT_MEMORY) return *t = now, NULL;
        if (!torn->status) *torn = now;
    }
    if (all->n)
        cot__trouble_file(t, "none of the %zu checkpoints in %.200s is whole: %.700s", all->n, folder, torn->message);
    return NULL;
}

cot_status cot_training_resume(const char *folder, cot_training *t, char *why, size_t room) {
    cot__trouble trouble = {0}, torn = {0};
    cot__parts   x   = {0};
    steps        all = {0};
    if (t) t->resumed = false;
    if (!given(folder, t, &trouble)) return cot__trouble_tell(&trouble, "training_resume", why, room);
    x.keep.al = t->allocator;
    if (!list_parts(&x, t))
        cot__trouble_memory(&trouble);
    else if (list_steps(folder, &x.keep, &all, &trouble)) {
        const char *path = find_whole(folder, &x.keep, &all, &torn, &trouble);
        if (path && load(path, &x, t, &trouble) && torn.status)
            snprintf(trouble.message, sizeof trouble.message, "%.700s; training goes on from %.400s, the one before",
                     torn.message, path);
    }
    cot__parts_free(&x);
    return cot__trouble_tell(&trouble, "training_resume", why, room);
}

char *cot__training_newest(const char *folder) {
    cot__trouble trouble = {0}, torn = {0};
    cot__keep    keep = {0};
    steps        all = {0};
    const char  *path = list_steps(folder, &keep, &all, &trouble) ? find_whole(folder, &keep, &all, &torn, &trouble)
                                                                  : NULL;
    char        *mine = path ? strdup(path) : NULL;
    cot__keep_free(&keep);
    return mine;
}
