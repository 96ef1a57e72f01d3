/* file_save.c: arrays of the caller's as a file. */
#include "data/data.h"

#include "data/file/save.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

bool cot__names_differ(int n, const char **names, const char *path, cot__trouble *t) {
    if (n > 0) qsort(names, (size_t)n, sizeof *names, by_text);
    for (int k = 1; k < n; k++)
        if (strcmp(names[k - 1], names[k]) == 0)
            return cot__trouble_file(t, "two tensors for %s have the name %.100s", path, names[k]);
    return true;
}

static const void *elements(void *user, int k, cot__trouble *t) {
    (void)t;
    const cot_array *a = (const cot_array *)user + k;
    return a->data ? a->data : ""; /* of none */
}

bool cot__array_given(const char *path, const char *name, const cot_array *a, cot__trouble *t) {
    int64_t  count;
    uint64_t bytes;
    if (!name) return cot__trouble_file(t, "a name of a tensor for %s is NULL", path);
    if ((unsigned)a->dtype >= COT_DTYPE_COUNT)
        return cot__trouble_set(t, COT_DTYPE, "the tensor %.100s for %s has a dtype that is none (%d)", name, path,
                                (int)a->dtype);
    if (!cot__elements_count(&a->shape, cot__dtype_size(a->dtype), &count, &bytes) || count != a->size)
        return cot__trouble_set(t, COT_SHAPE, "the tensor %.100s for %s has a shape that is not of its %lld elements",
                                name, path, (long long)a->size);
    return a->data || !count || cot__trouble_file(t, "the elements of the tensor %.100s for %s are NULL", name, path);
}

bool cot__pairs_given(const char *path, const cot__saving *w, cot__trouble *t) {
    if (w->pair_count < 0 || (w->pair_count && !w->pairs))
        return cot__trouble_file(t, "the list of %d texts for %s is NULL or negative", w->pair_count, path);
    if (w->pair_count && w->form != COT__FILE_SAFETENSORS)
        return cot__trouble_file(t, "texts beside tensors stand in .safetensors files alone, not in %s", path);
    for (int k = 0; k < w->pair_count; k++)
        if (!w->pairs[k].key || !w->pairs[k].text)
            return cot__trouble_file(t, "text %d for %s, or its key, is NULL", k, path);
    return true;
}

static bool save(const char *path, cot__saving *w, cot__keep *keep, const char *const *names, const cot_array *arrays,
                 cot__trouble *t) {
    size_t           n      = w->n > 0 ? (size_t)w->n : 0;
    cot__saved_item *items  = cot__keep_take(keep, n * sizeof *items);
    const char     **sorted = cot__keep_take(keep, n * sizeof *sorted);
    if (!items || !sorted) return cot__trouble_memory(t);
    for (size_t k = 0; k < n; k++) {
        if (!cot__array_given(path, names[k], &arrays[k], t)) return false;
        items[k]  = (cot__saved_item){names[k], arrays[k].dtype, arrays[k].shape};
        sorted[k] = names[k];
    }
    w->items = items;
    return cot__names_differ(w->n, sorted, path, t) && cot__save(path, w, t);
}

cot_status cot_file_save(const char *path, int n, const char *const *names, const cot_array *arrays,
                         const cot_save_options *options, char *why, size_t room) {
    cot_save_options defaults = {0};
    cot__trouble     t        = {0};
    if (!options) options = &defaults;
    cot__keep   keep = {.al = options->allocator};
    cot__saving w    = {.al         = options->allocator,
                        .n          = n,
                        .elements   = elements,
                        .pair_count = options->pairs,
                        .pairs      = options->texts,
                        .pack       = options->compress};
    /* only read */
    memcpy(&w.user, &arrays, sizeof arrays);
    if (!path)
        cot__trouble_file(&t, "the path is NULL");
    else if (n < 0 || (n > 0 && (!names || !arrays)))
        cot__trouble_file(&t, "the list of %d tensors for %s is NULL or negative", n, path);
    else if ((w.form = cot__file_form_of(path)) == COT__FILE_OTHER)
        cot__trouble_file(&t, "%s ends neither in .safetensors nor in .npy nor in .npz, which says what to write",
                          path);
    else if (w.form == COT__FILE_NPY && n != 1)
        cot__trouble_file(&t, "%s is to hold %d arrays, and an .npy file holds one; write an .npz file", path, n);
    else if (cot__pairs_given(path, &w, &t))
        save(path, &w, &keep, names, arrays, &t);
    cot__keep_free(&keep);
    return cot__trouble_tell(&t, "file_save", why, room);
}
