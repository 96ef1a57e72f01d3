/* params_file.c: parameters in files. */
#include "data/data.h"

#include <string.h>

cot_status cot_params_save(cot_params *p, const char *path, const cot_save_options *options, char *why, size_t room) {
    cot_save_options defaults = {0};
    cot__trouble     t        = {0};
    if (!options) options = &defaults;
    cot__parts  x = {.keep.al = options->allocator};
    cot__saving w = {.pair_count = options->pairs, .pairs = options->texts, .pack = options->compress};
    if (!p || !path)
        cot__trouble_file(&t, "the %s NULL", p ? "path is" : "parameters are");
    else if ((w.form = cot__file_form_of(path)) != COT__FILE_SAFETENSORS && w.form != COT__FILE_NPZ)
        cot__trouble_file(&t, "%s ends neither in .safetensors nor in .npz, which says what to write", path);
    else if (cot__pairs_given(path, &w, &t)) {
        if (cot__parts_of_params(&x, p, ""))
            cot__parts_save(&x, path, &w, &t);
        else
            cot__trouble_memory(&t);
    }
    cot__parts_free(&x);
    return cot__trouble_tell(&t, "params_save", why, room);
}

static void load(cot__parts *x, cot_params *p, cot_file *f, const char *path, const cot_load_options *o,
                 cot__trouble *t) {
    if (!f)
        cot__trouble_memory(t);
    else if (cot_file_status(f))
        cot__trouble_set(t, cot_file_status(f), "%s", cot_file_message(f));
    else if (!cot__parts_of_params(x, p, ""))
        cot__trouble_memory(t);
    if (t->status) return;
    int *place = cot__keep_take(&x->keep, x->n * sizeof *place);
    if (!place)
        cot__trouble_memory(t);
    else if (cot__parts_match(x, f, path, o, place, t) || (o->partial && t->status == COT_VALUE)) {
        cot__trouble note = *t; /* what is missing or unknown is told, and no error */
        *t                = (cot__trouble){0};
        if (cot__parts_load(x, f, place, t) && note.status) memcpy(t->message, note.message, sizeof t->message);
    }
}

cot_status cot_params_load(cot_params *p, const char *path, const cot_load_options *options, char *why, size_t room) {
    cot_load_options defaults = {0};
    cot__trouble     t        = {0};
    if (!options) options = &defaults;
    cot__parts x = {.keep.al = options->allocator};
    if (!p || !path)
        cot__trouble_file(&t, "the %s NULL", p ? "path is" : "parameters are");
    else if (options->ignores < 0 || (options->ignores && !options->ignore))
        cot__trouble_file(&t, "the list of %d names to ignore is NULL or negative", options->ignores);
    else {
        cot_file *f = cot_file_open(path, &options->allocator);
        load(&x, p, f, path, options, &t);
        cot_file_close(f);
    }
    cot__parts_free(&x);
    return cot__trouble_tell(&t, "params_load", why, room);
}
