/* tape_load.c: a tape from a file: everything is recorded again, and compared with the file. */
#include "compile/tape_file.h"

#include "compile/replay.h"
#include "pending/pending.h"
#include "program/file/load.h"
#include "tape/lower.h"
#include "tape/record_job.h"

#include <cotangent_program.h>

#include <string.h>

static const char NAME[] = "tape_load";

/* Lists of the file, each in the order of values, of which `next` are still to come. */
typedef struct loading {
    cot_tape      *t;
    cot__program  *p;
    cot__reader    leaves, cut, kept, gone, names, sites; /* the rest of each list */
    uint32_t       cuts, keeps, losses, named, sited;
    cot__replaying r;
} loading;

static bool illegal(cot_tape *t, const char *what) {
    cot__fail(t, COT_VALUE, "[%s] this tape file is not legal: %s", NAME, what);
    return false;
}

/* ---- finding the lists ----------------------------------------------------------------------- */

static bool load_program(loading *l, cot__reader *r) {
    cot__caller          caller = cot__tape_caller(l->t, NAME);
    uint64_t             bytes = cot__take_number(r, 8);
    const unsigned char *at = cot__take(r, bytes, 1);
    if (!at) return illegal(l->t, "its program is longer than the file");
    l->p = cot__program_load(at, (size_t)bytes, &l->t->cache.below, &caller); /* beside the limit */
    return l->p != NULL;
}

static void skip_leaves(loading *l, cot__reader *r) {
    l->leaves = *r;
    for (uint32_t k = 0; k < l->p->inputs; k++) {
        cot__type type = cot__value_type(l->p, l->p->input[k]);
        cot__take_elements(r, &type);
    }
}

static void skip_value(const loading *l, cot__reader *r) {
    uint64_t v = cot__take_number(r, 4);
    if (v >= l->p->values) r->ended = true;
    if (r->ended) return;
    cot__type type = cot__value_type(l->p, (uint32_t)v);
    cot__take_elements(r, &type);
}

static void skip_lists(loading *l, cot__reader *r) {
    l->cuts = (uint32_t)cot__take_number(r, 4);
    l->cut = *r;
    cot__take(r, l->cuts, 4);
    l->keeps = (uint32_t)cot__take_number(r, 4);
    l->kept = *r;
    for (uint32_t k = 0; k < l->keeps && !r->ended; k++) skip_value(l, r);
    l->losses = (uint32_t)cot__take_number(r, 4);
    l->gone = *r;
    cot__take(r, l->losses, 4);
    l->named = (uint32_t)cot__take_number(r, 4);
    l->names = *r;
    for (uint32_t k = 0; k < l->named && !r->ended; k++) cot__take(r, 4, 1), cot__take_text(r);
    l->sited = (uint32_t)cot__take_number(r, 4);
    l->sites = *r;
    for (uint32_t k = 0; k < l->sited && !r->ended; k++)
        cot__take(r, 4, 1), cot__take_text(r), cot__take(r, 4, 1), cot__take_text(r);
}

static bool find_lists(loading *l, cot__reader r) {
    if (!load_program(l, &r)) return false;
    skip_leaves(l, &r);
    skip_lists(l, &r);
    return (!r.ended && r.at == r.end) || illegal(l->t, "its lists are longer or shorter than the file");
}

/* ---- recording ------------------------------------------------------------------------------- */

/* The number at the beginning of a list, if anything is left of it. */
static uint32_t next_of(const cot__reader *list, uint32_t left) {
    return left && list->end - list->at >= 4 ? (uint32_t)cot__from_bytes(list->at, 4) : COT__NO_VALUE;
}

static size_t bytes_of(const cot__type *z) {
    return (size_t)cot__count(z->shape.ndim, z->shape.dim) * (size_t)cot__dtype_size(z->dtype);
}

/* The next elements of a list, as the machine has them; NULL after an error. */
static void *elements_of(loading *l, cot__reader *list, const cot__type *type) {
    void *elements = cot__alloc(&l->t->al, bytes_of(type));
    if (elements) cot__elements_of_file(type, cot__take_elements(list, type), elements);
    else cot__fail(l->t, COT_MEMORY, "[%s] out of memory: %zu bytes of a value", NAME, bytes_of(type));
    return elements;
}

static void record_leaf(loading *l, uint32_t v) {
    cot__type type = cot__value_type(l->p, v);
    void     *elements = elements_of(l, &l->leaves, &type);
    if (elements) l->r.value[v] = cot_tensor(l->t, type.dtype, type.shape, elements);
    cot__free(&l->t->al, elements, bytes_of(&type));
}

/* What a limit has done with the computed value is forgotten. */
static bool may_be_written(cot_tape *t, uint32_t node) {
    if (!cot__is_tensor(&t->nodes[node])) return true;
    cot__storage *s = t->nodes[node].value.tensor->storage;
    if (!cot__memory_before_write(t, s)) return false;
    cot__extent_give(&s->stored);
    return true;
}

/* The value that the file has for it, since it cannot be computed again. */
static void restore(loading *l, uint32_t v) {
    if (next_of(&l->kept, l->keeps) != v) return;
    cot__take(&l->kept, 1, 4);
    l->keeps--;
    cot__type type = cot__value_type(l->p, v);
    void     *elements = elements_of(l, &l->kept, &type);
    cot__settle(l->t, cot__index(l->r.value[v]));
    bool      may = may_be_written(l->t, cot__index(l->r.value[v]));
    cot__view to = cot__look(l->t, cot__index(l->r.value[v])), from = to;
    int64_t   stride[COT_MAX_NDIM];
    from.data = elements;
    from.stride = stride;
    cot__strides(to.ndim, to.shape, stride);
    size_t there = (size_t)(cot__view_size(&to) * cot__dtype_size(to.dtype));
    bool   same = may && elements && to.dtype == type.dtype && there == bytes_of(&type);
    if (same && cot__is_contiguous(to.ndim, to.shape, to.stride)) l->t->backend->copy_in(&to, &from);
    else if (may && elements) illegal(l->t, "a value that it holds is a view");
    cot__free(&l->t->al, elements, bytes_of(&type));
}

/* At the end, because nothing can be recorded that reads it. */
static void forget(loading *l) {
    for (uint32_t v; l->t->status == COT_OK && (v = next_of(&l->gone, l->losses)) != COT__NO_VALUE; l->losses--) {
        cot__take(&l->gone, 1, 4);
        if (v >= l->p->values || !cot__is_tensor(&l->t->nodes[cot__index(l->r.value[v])]))
            illegal(l->t, "a value that is gone is none of an array");
        else l->t->nodes[cot__index(l->r.value[v])].value.tensor->storage->version++;
    }
}

static void record_operation(loading *l, uint32_t k) {
    bool cut = next_of(&l->cut, l->cuts) == l->p->operation[k].result;
    if (cut) {
        cot__take(&l->cut, 1, 4);
        l->cuts--;
        cot_no_grad_open(l->t);
    }
    cot__replay_operation(&l->r, k);
    if (cut) cot_no_grad_close(l->t);
    if (l->t->status == COT_OK && cot__operation_bodies(l->p, k))
        cot__filed_add(l->t, cot__index(l->r.value[l->p->operation[k].result]), l->p, k);
}

static void record_name(loading *l, uint32_t v) {
    if (next_of(&l->names, l->named) != v) return;
    cot__take(&l->names, 1, 4);
    l->named--;
    cot_name(l->r.value[v], cot__take_text(&l->names));
}

/* A copy of a text that lives as long as the tape. */
static const char *kept(cot_tape *t, const char *text) {
    size_t bytes = strlen(text) + 1;
    char  *copy = cot__arena(t, bytes, NAME);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* A run of values ends with this one. */
static void record_site(loading *l, uint32_t v) {
    if (next_of(&l->sites, l->sited) != v + 1) return;
    cot__take(&l->sites, 1, 4);
    l->sited--;
    cot_site    site = {.file = cot__take_text(&l->sites)};
    cot_site   *copy = cot__arena(l->t, sizeof *copy, NAME);
    const char *function;
    site.line = (int32_t)(uint32_t)cot__take_number(&l->sites, 4);
    function = cot__take_text(&l->sites);
    if (!copy || !(copy->file = kept(l->t, site.file)) || !(copy->function = kept(l->t, function))) return;
    copy->line = site.line;
    if (!*function) copy->function = NULL;
    cot_sited(l->r.value[v], *site.file ? copy : NULL);
}

static uint32_t operations_with_bodies(const cot__program *p) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->operations; k++) count += cot__operation_bodies(p, k) > 0;
    return count;
}

static void record_all(loading *l) {
    cot__walk w = {0};
    uint32_t  k;
    cot__filed_open(l->t, operations_with_bodies(l->p), NAME);
    for (int kind; l->t->status == COT_OK && (kind = cot__walk_on(l->p, &w, &k)) >= 0;) {
        uint32_t last = w.value - 1;
        if (kind == COT__ENTRY_INPUT) record_leaf(l, last);
        else if (kind == COT__ENTRY_CONSTANT) cot__replay_constant(&l->r, k);
        else record_operation(l, k);
        uint32_t first = kind == COT__ENTRY_OPERATION ? l->p->operation[k].result : last;
        for (uint32_t v = first; v <= last && l->t->status == COT_OK; v++) restore(l, v);
        for (uint32_t v = first; v <= last && l->t->status == COT_OK; v++) record_name(l, v);
        if (l->t->status == COT_OK) record_site(l, last);
    }
}

/* ---- is it what the file says? --------------------------------------------------------------- */

/* A cot__write_bytes that compares. */
static bool is_next(void *reader, const void *bytes, size_t n) {
    const unsigned char *at = cot__take(reader, n, 1);
    return at && !memcmp(at, bytes, n);
}

static bool is_what_the_file_says(loading *l, cot__reader file) {
    cot__tape_file again;
    cot__caller    caller = cot__tape_caller(l->t, NAME);
    uint32_t      *nodes = cot__alloc(&l->t->al, l->p->outputs * sizeof *nodes);
    if (!nodes) return cot__fail(l->t, COT_MEMORY, "[%s] out of memory: a list of values", NAME), false;
    for (uint32_t k = 0; k < l->p->outputs; k++) nodes[k] = cot__index(l->r.value[l->p->output[k]]);
    if (cot__tape_file_open(&again, l->t, (int)l->p->outputs, nodes, &caller) &&
        !cot__tape_file_write(&again, is_next, &file, &caller))
        illegal(l->t, "something in it stands twice, is not used or is out of order");
    cot__tape_file_close(&again);
    cot__free(&l->t->al, nodes, l->p->outputs * sizeof *nodes);
    return l->t->status == COT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool takes_all(const loading *l, int n) {
    if ((uint32_t)n == l->p->outputs) return true;
    cot__fail(l->t, COT_VALUE, "[%s] %d values are asked for, but the file has %u", NAME, n, l->p->outputs);
    return false;
}

/* Steps of loops, unless the options say otherwise. */
enum { LOAD_STEPS = 1 << 24 };

static bool bound_steps(cot_tape *t) {
    int64_t most = t->options.load_steps;
    if (most < 0)
        cot__fail(t, COT_VALUE, "[%s] load_steps is %lld; 0 is the default, 1 and more a bound", NAME, (long long)most);
    t->steps_left = most ? most : LOAD_STEPS;
    if (most == INT64_MAX) t->steps_left--; /* which would mean that none is loaded */
    return t->status == COT_OK;
}

bool cot__tape_file_record(cot_tape *t, const unsigned char *bytes, size_t size, int n, cot_var *vars) {
    cot__caller caller = cot__tape_caller(t, NAME);
    loading     l = {.t = t};
    if (!cot__file_is_whole(&cot__tape_file_kind, bytes, size, &caller)) return false;
    cot__reader lists = {bytes + COT__FILE_HEAD, bytes + size - COT__FILE_SUM, false};
    if (bound_steps(t) && find_lists(&l, lists) && takes_all(&l, n)) {
        if (cot__replay_open(&l.r, t, NAME, l.p)) record_all(&l), forget(&l);
        if (t->status == COT_OK && is_what_the_file_says(&l, (cot__reader){bytes, bytes + size, false}))
            for (int k = 0; k < n; k++) vars[k] = l.r.value[l.p->output[k]];
        cot__replay_close(&l.r);
    }
    cot__program_release(l.p);
    t->steps_left = INT64_MAX;
    return t->status == COT_OK;
}

static void load(cot_tape *t, const char *path, int n, cot_var *vars) {
    cot__caller     caller = cot__tape_caller(t, NAME);
    cot__file_bytes b = {.al = &t->cache.below};
    if (cot__file_read_path(&b, &cot__tape_file_kind, path, &caller)) cot__tape_file_record(t, b.at, b.count, n, vars);
    cot__free(&t->cache.below, b.at, b.room);
    if (t->status != COT_OK && !strstr(t->errors.message, path)) cot__error_in(t, "the file %s", path);
}

cot_tape *cot_tape_load(const char *path, const cot_options *options, int n, cot_var *vars) {
    cot_tape *t = cot_tape_create(options);
    for (int k = 0; vars && k < n; k++) vars[k] = INVALID(t);
    if (!t) return NULL;
    if (!path) cot__fail(t, COT_VALUE, "[%s] the path is NULL", NAME);
    else if (n < 0) cot__fail(t, COT_VALUE, "[%s] a negative number of values: %d", NAME, n);
    else if (n > 0 && !vars) cot__fail(t, COT_VALUE, "[%s] a list of %d values is NULL", NAME, n);
    else load(t, path, n, vars);
    return t;
}

cot_var cot_tape_named(cot_tape *t, const char *name) {
    for (uint32_t k = t && name ? t->names.count : 0; k-- > 0;)
        if (!strcmp(t->names.list[k].name, name) && !t->names.list[k].closed &&
            !cot__in_body(&t->nodes[t->names.list[k].node]))
            return VAR(t, t->names.list[k].node);
    return COT_NONE;
}
