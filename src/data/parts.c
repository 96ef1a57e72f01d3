/* parts.c: lists of what is saved and loaded by name: parameters, states of optimisers, arrays. */
#include "data/data.h"

#include "base/text.h"
#include "nn/nn.h"

#include <string.h>

/* ---- the list -------------------------------------------------------------------------------- */

static size_t bytes_of(const cot_array *a) { return (size_t)a->size * (size_t)cot__dtype_size(a->dtype); }

bool cot__parts_add(cot__parts *x, const char *before, const char *name, cot_var var, const cot_array *array) {
    cot__part *grown = cot__keep_grow(&x->keep, x->part, x->n, &x->room, sizeof *grown);
    size_t     n = strlen(before), m = strlen(name);
    char      *full = cot__keep_take(&x->keep, n + m + 1);
    if (!grown || !full) return false;
    memcpy(full, before, n);
    memcpy(full + n, name, m + 1);
    x->part       = grown;
    grown[x->n++] = (cot__part){full, var, *array};
    if (bytes_of(array) > x->scratch_bytes) x->scratch_bytes = bytes_of(array);
    return true;
}

bool cot__parts_of_params(cot__parts *x, const cot_params *p, const char *before) {
    for (int k = 0; k < cot_params_count(p); k++) {
        cot_param q = cot_params_at(p, k);
        cot_array a = {cot_dtype_of(q.var), cot_shape_of(q.var), cot_size(q.var), NULL};
        if (!cot__parts_add(x, before, q.name, q.var, &a)) return false;
    }
    return true;
}

void cot__parts_free(cot__parts *x) {
    if (x->scratch) cot__free(&x->keep.al, x->scratch, x->scratch_bytes);
    cot__keep_free(&x->keep);
}

/* Elements of vars are copied out of the tape, and into it. */
static bool make_scratch(cot__parts *x, cot__trouble *t) {
    if (!x->scratch) x->scratch = cot__alloc(&x->keep.al, x->scratch_bytes);
    return x->scratch || cot__trouble_memory_for(t, x->scratch_bytes);
}

static bool tape_failed(cot_tape *tape, cot__trouble *t) {
    return cot__trouble_set(t, cot_tape_status(tape), "the tape of the parameters has an error: %.900s",
                            cot_tape_message(tape));
}

/* ---- saving ---------------------------------------------------------------------------------- */

static const void *elements(void *user, int k, cot__trouble *t) {
    cot__parts      *x = user;
    const cot__part *p = &x->part[k];
    if (!p->var.tape) return p->array.data ? p->array.data : "";
    if (cot_read_as(p->var, p->array.dtype, x->scratch, p->array.size) == COT_OK) return x->scratch;
    tape_failed(p->var.tape, t);
    return NULL;
}

bool cot__parts_save(cot__parts *x, const char *path, cot__saving *w, cot__trouble *t) {
    cot__saved_item *items = cot__keep_take(&x->keep, x->n * sizeof *items);
    const char     **names = cot__keep_take(&x->keep, x->n * sizeof *names);
    if (!items || !names) return cot__trouble_memory(t);
    for (size_t k = 0; k < x->n; k++) {
        items[k] = (cot__saved_item){x->part[k].name, x->part[k].array.dtype, x->part[k].array.shape};
        names[k] = x->part[k].name;
    }
    w->al       = x->keep.al;
    w->n        = (int)x->n;
    w->items    = items;
    w->elements = elements;
    w->user     = x;
    return make_scratch(x, t) && cot__names_differ(w->n, names, path, t) && cot__save(path, w, t);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* A list in a sentence: how many there are, and the first of them. */
typedef struct list {
    int       count;
    char      names[260];
    cot__text text;
} list;

static void add(list *l, const char *name, const cot_shape *in_file, const cot_shape *here) {
    if (!l->count) l->text = cot__text_buffer(l->names, sizeof l->names);
    if (l->count++ == 5) cot__put(&l->text, ", …");
    if (l->count > 5) return;
    cot__putf(&l->text, "%s%.60s", l->count > 1 ? ", " : "", name);
    for (int side = 0; in_file && side < 2; side++) {
        const cot_shape *s = side ? here : in_file;
        cot__put(&l->text, side ? ") in the file, (" : " (");
        for (int k = 0; k < s->ndim && k < 6; k++) cot__putf(&l->text, "%s%lld", k ? "," : "", (long long)s->dim[k]);
        if (side) cot__put(&l->text, ") here");
    }
}

static bool same_shape(const cot_shape *a, const cot_shape *b) {
    bool same = a->ndim == b->ndim;
    for (int k = 0; same && k < a->ndim; k++) same = a->dim[k] == b->dim[k];
    return same;
}

/* The number in the file of a part; -1: it is not there, -2: it is not wanted. */
static int find(const cot_file *f, const char *name, const cot_load_options *o) {
    char        renamed[512], full[512];
    const char *in_file = o->rename ? o->rename(name, renamed, sizeof renamed, o->user) : name;
    if (!in_file) return -2;
    if (o->prefix) {
        if (strlen(o->prefix) + strlen(in_file) >= sizeof full) return -1;
        strcpy(full, o->prefix);
        strcat(full, in_file);
        in_file = full;
    }
    return cot_file_find(f, in_file);
}

static bool is_ignored(const char *name, const cot_load_options *o) {
    for (int k = 0; k < o->ignores; k++)
        if (o->ignore[k] && cot__matches(o->ignore[k], name)) return true;
    return false;
}

static bool is_taken(const int *place, size_t n, int at) {
    for (size_t k = 0; k < n; k++)
        if (place[k] == at) return true;
    return false;
}

bool cot__parts_match(const cot__parts *x, const cot_file *f, const char *path, const cot_load_options *o, int *place,
                      cot__trouble *t) {
    list missing = {0}, unknown = {0}, differ = {0}, unlike = {0};
    for (size_t k = 0; k < x->n; k++) {
        place[k]        = find(f, x->part[k].name, o);
        cot_shape shape = cot_file_shape(f, place[k]);
        if (place[k] == -1)
            add(&missing, x->part[k].name, NULL, NULL);
        else if (place[k] >= 0 && !same_shape(&shape, &x->part[k].array.shape))
            add(&differ, x->part[k].name, &shape, &x->part[k].array.shape);
        else if (place[k] >= 0 && !cot__file_can_read(f, place[k], x->part[k].array.dtype))
            add(&unlike, x->part[k].name, NULL, NULL);
    }
    for (int i = 0; i < cot_file_count(f); i++)
        if (!is_taken(place, x->n, i) && !is_ignored(cot_file_name(f, i), o))
            add(&unknown, cot_file_name(f, i), NULL, NULL);
    if (!missing.count && !unknown.count && !differ.count && !unlike.count) return true;
    char      sentence[1200];
    cot__text text = cot__text_buffer(sentence, sizeof sentence);
    if (missing.count) cot__putf(&text, "; %d missing in it: %s", missing.count, missing.names);
    if (unknown.count) cot__putf(&text, "; %d unknown here: %s", unknown.count, unknown.names);
    if (differ.count) cot__putf(&text, "; %d of another shape: %s", differ.count, differ.names);
    if (unlike.count) cot__putf(&text, "; %d of a dtype that is not read as that here: %s", unlike.count, unlike.names);
    cot_status status = differ.count ? COT_SHAPE : unlike.count ? COT_DTYPE : COT_VALUE;
    return cot__trouble_set(t, status, "%.200s does not fit the %zu parameters%s", path,
                            x->n, sentence);
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool read_part(cot_file *f, int at, const cot_array *as, void *to, cot__trouble *t) {
    if (cot_file_read(f, at, as->dtype, to) == COT_OK) return true;
    return cot__trouble_set(t, cot_file_status(f), "%s", cot_file_message(f));
}

/* An integer may be too large for a narrower dtype, which only reading tells. */
static bool may_not_fit(const cot_file *f, int at, cot_dtype here) {
    cot_dtype there = cot_file_dtype(f, at);
    return there != here && !cot__dtype_is_float(there) && !cot__dtype_is_float(here);
}

/* Twice: what may not fit is read for that alone, before anything is written. */
bool cot__parts_load(cot__parts *x, cot_file *f, const int *place, cot__trouble *t) {
    if (!make_scratch(x, t)) return false;
    for (size_t k = 0; k < x->n; k++) {
        const cot_array *a = &x->part[k].array;
        if (place[k] < 0 || !a->size || !may_not_fit(f, place[k], a->dtype)) continue;
        if (!read_part(f, place[k], a, x->scratch, t)) return false;
    }
    for (size_t k = 0; k < x->n; k++) {
        const cot__part *p  = &x->part[k];
        void            *to = p->var.tape ? x->scratch : p->array.data;
        if (place[k] < 0 || !p->array.size) continue;
        if (!read_part(f, place[k], &p->array, to, t)) return false;
        if (p->var.tape && cot_assign_data(p->var, to) != COT_OK) return tape_failed(p->var.tape, t);
    }
    return true;
}
