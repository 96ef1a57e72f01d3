/* params.c: parameters by name: the table, the path of pushed names, lookups, freezing, binding.
 *
 * A name is put together in the path, and found where the last one was followed before, or by its
 * hash in a table of open addressing: a layer in a training loop allocates nothing. Entries are
 * added by a lookup while cot_params_init runs its net (params_init.c), and never removed but by
 * its failure. */
#include "nn/nn.h"

#include "base/file/bytes.h"
#include "base/names/nearest.h"
#include "base/number.h"
#include "base/text.h"

#include <string.h>

/* FNV-1a, which is the checksum of files from another start on: part of the bits, as initial
 * numbers come from it. */
static uint64_t hash_of(const char *text, size_t n) {
    return cot__checksum(UINT64_C(0xcbf29ce484222325), text, n);
}

/* ---- making, and what is simply kept --------------------------------------------------------- */

cot_params *cot_params_create(cot_tape *t) {
    if (!t) return NULL;
    cot_allocator al = t->cache.below;
    cot_params   *p  = cot__alloc(&al, sizeof *p);
    if (!p) return cot__fail(t, COT_MEMORY, "[params_create] out of memory: %zu bytes", sizeof *p), NULL;
    *p = (cot_params){.tape = t, .al = al, .on = t, .training = true, .op = "nn"};
    return p;
}

/* Puts entry k into the first free slot of its hash. */
static void place(cot_params *p, uint32_t k) {
    uint32_t mask = 2 * p->capacity - 1, at = (uint32_t)p->entry[k].hash & mask;
    while (p->slot[at]) at = (at + 1) & mask;
    p->slot[at] = k + 1;
}

void cot__params_drop(cot_params *p, uint32_t count) {
    while (p->count > count) {
        const char *name = p->names[--p->count];
        cot__free(&p->al, (void *)(uintptr_t)name, strlen(name) + 1);
    }
    if (p->slot) memset(p->slot, 0, 2 * p->capacity * sizeof *p->slot);
    for (uint32_t k = 0; k < p->count; k++) place(p, k);
}

static void free_tables(const cot_params *p, cot__entry *entry, const char **names, cot_var *vars, uint32_t *slot,
                        uint32_t n) {
    cot__free(&p->al, entry, n * sizeof *entry);
    cot__free(&p->al, names, n * sizeof *names);
    cot__free(&p->al, vars, n * sizeof *vars);
    cot__free(&p->al, slot, 2 * n * sizeof *slot);
}

void cot_params_destroy(cot_params *p) {
    if (!p) return;
    cot_allocator al = p->al;
    cot__params_drop(p, 0);
    free_tables(p, p->entry, p->names, p->vars, p->slot, p->capacity);
    for (uint32_t k = 0; k < p->rules; k++) cot__free(&al, p->rule[k].pattern, strlen(p->rule[k].pattern) + 1);
    cot__free(&al, p->rule, p->rule_capacity * sizeof *p->rule);
    for (uint32_t k = 0; k < p->precisions; k++)
        cot__free(&al, p->precision[k].pattern, strlen(p->precision[k].pattern) + 1);
    cot__free(&al, p->precision, p->precision_capacity * sizeof *p->precision);
    cot__free(&al, p, sizeof *p);
}

cot_tape *cot_params_tape(const cot_params *p) { return p ? p->tape : NULL; }
void     *cot_params_user(const cot_params *p) { return p ? p->user : NULL; }
void      cot_params_set_user(cot_params *p, void *user) {
         if (p) p->user = user;
}
int  cot_params_count(const cot_params *p) { return p ? (int)p->count : 0; }
bool cot_params_training(const cot_params *p) { return p && p->training; }
void cot_params_train(cot_params *p, bool on) {
    if (p) p->training = on;
}
void cot_params_set_key(cot_params *p, cot_key key) {
    if (p) p->key = key, p->has_key = true;
}

void cot_params_set_dtype(cot_params *p, cot_dtype dtype) {
    if (!p) return;
    if ((unsigned)dtype < COT_DTYPE_COUNT && cot__dtype_is_float(dtype))
        p->dtype = dtype, p->has_dtype = true;
    else
        cot__fail(p->on, COT_DTYPE, "[params_set_dtype] the dtype is no float; parameters are");
}

cot_dtype cot__params_dtype(const cot_params *p, cot_var x) {
    if (p->has_dtype) return p->dtype;
    cot_dtype d = x.tape && !cot__is_number(x) ? cot_dtype_of(x) : COT_F32;
    /* where layers compute in 16 bits, their parameters have more */
    bool narrow = p->precisions && (d == COT_BF16 || d == COT_F16);
    return cot__dtype_is_float(d) && !narrow ? d : COT_F32;
}

cot_param cot_params_at(const cot_params *p, int k) {
    if (!p || k < 0 || (uint32_t)k >= p->count) return (cot_param){0};
    const cot__entry *e = &p->entry[k];
    return (cot_param){e->wish.name, e->leaf, e->wish.statistic, e->frozen, e->group};
}

/* ---- the path -------------------------------------------------------------------------------- */

/* Adds a piece to the path: a new level, which is counted also where it does not fit. */
static bool push(cot_params *p, const char *name) {
    int    d = p->depth++;
    size_t n = name ? strlen(name) : 0;
    if (d < COT__DEEPEST_PATH && n > 0 && p->level[d] + n < COT__LONGEST_PATH) {
        size_t from = p->level[d];
        memcpy(p->path + from, name, n);
        p->path[from + n] = '.';
        p->level[d + 1]   = (uint16_t)(from + n + 1);
        return true;
    }
    if (d < COT__DEEPEST_PATH) p->level[d + 1] = p->level[d];
    if (n == 0)
        cot__fail(p->on, COT_VALUE, "[%s] the name is %s; parameters are found by it", p->op, name ? "empty" : "NULL");
    else
        cot__fail(p->on, COT_LIMIT, "[%s] the name \"%.40s\" makes a path of more than %d letters or %d names", p->op,
                  name, COT__LONGEST_PATH - 1, COT__DEEPEST_PATH);
    return false;
}

void cot_params_push(cot_params *p, const char *name) {
    if (!p) return;
    p->op = "params_push";
    push(p, name);
}

void cot_params_push_number(cot_params *p, int64_t number) {
    char text[24];
    if (!p) return;
    cot__format(text, sizeof text, "%lld", (long long)number);
    p->op = "params_push_number";
    push(p, text);
}

void cot_params_pop(cot_params *p) {
    if (!p) return;
    if (p->depth > 0)
        p->depth--;
    else
        cot__fail(p->on, COT_VALUE, "[params_pop] no name is pushed; each pop belongs to a push before it");
}

cot_var cot__layer_narrowed(const cot_params *p, cot_var x) {
    bool is = (p->narrow == COT_BF16 || p->narrow == COT_F16) && cot_dtype_of(x) == COT_F32;
    return is ? cot_cast(x, p->narrow) : x;
}

/* The dtype of the last rule that matches the path, up to so many letters. */
static cot_dtype precision_at(cot_params *p, size_t letters) {
    cot_dtype found = COT_F64;
    char      after = p->path[letters];
    p->path[letters] = 0;
    for (uint32_t k = 0; k < p->precisions; k++)
        if (cot__matches(p->precision[k].pattern, p->path)) found = p->precision[k].dtype;
    p->path[letters] = after;
    return found;
}

bool cot__layer_open(cot_params *p, const char *op, const char *name, cot_var *x) {
    uint32_t i;
    if (!p) {
        cot_tape *t = cot__tape_of(1, x);
        if (t) cot__fail(t, COT_VALUE, "[%s] p is NULL; cot_params_create makes parameters", op);
        return false;
    }
    p->op       = op;
    cot_tape *t = cot__params_on(p);
    if (!t || !cot__operand(t, *x, op, "", &i)) return false;
    bool fine = push(p, name);
    if (!fine)
        p->depth--;
    else if (p->rows)
        cot__summary_open(p);
    /* without the dot behind the name */
    if (fine && p->precisions) p->narrow = precision_at(p, p->level[p->depth] - 1u), *x = cot__layer_narrowed(p, *x);
    return fine;
}

cot_var cot__layer_none(const cot_params *p, cot_var x) { return p ? INVALID(p->on) : cot__invalid(1, &x); }

cot_var cot__layer_close(cot_params *p, cot_var y) {
    if (p->rows && p->on->status == COT_OK) cot__summary_close(p, y);
    p->depth--;
    p->narrow = COT_F64;
    return y;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Is the entry's name the first `from` letters of the path and then `name`? */
static inline bool is_called(const cot_params *p, const cot__entry *e, size_t from, const char *name) {
    return e->length >= from && memcmp(e->wish.name, p->path, from) == 0 && strcmp(e->wish.name + from, name) == 0;
}

static cot__entry *find_hashed(cot_params *p, size_t from, const char *name) {
    uint64_t hash = cot__checksum(hash_of(p->path, from), name, strlen(name));
    uint32_t mask = 2 * p->capacity - 1;
    for (uint32_t at = (uint32_t)hash & mask; p->count && p->slot[at]; at = (at + 1) & mask) {
        cot__entry *e = &p->entry[p->slot[at] - 1];
        if (e->hash == hash && is_called(p, e, from, name)) return p->next = p->slot[at], e;
    }
    return NULL;
}

/* The entry that is called so, or NULL. Layers ask in the same order at each step: the entry after
 * the last one found is tried first; no name is put together, and no letter hashed. */
static inline cot__entry *find(cot_params *p, size_t from, const char *name) {
    if (!p->count) return find_hashed(p, from, name);
    uint32_t    k = p->next < p->count ? p->next : 0;
    cot__entry *e = &p->entry[k];
    if (!is_called(p, e, from, name)) return find_hashed(p, from, name);
    p->next = k + 1;
    return e;
}

static bool out_of_memory(cot_params *p, size_t bytes) {
    cot__fail(p->on, COT_MEMORY, "[%s] out of memory: %zu bytes for the list of parameters", p->op, bytes);
    return false;
}

static bool grow(cot_params *p) {
    uint32_t     n     = p->capacity ? 2 * p->capacity : 16;
    cot__entry  *entry = cot__alloc(&p->al, n * sizeof *entry);
    const char **names = cot__alloc(&p->al, n * sizeof *names);
    cot_var     *vars  = cot__alloc(&p->al, n * sizeof *vars);
    uint32_t    *slot  = cot__alloc(&p->al, 2 * n * sizeof *slot);
    if (!entry || !names || !vars || !slot) {
        free_tables(p, entry, names, vars, slot, n);
        return out_of_memory(p, n * sizeof *entry);
    }
    if (p->count) {
        memcpy(entry, p->entry, p->count * sizeof *entry);
        memcpy(names, p->names, p->count * sizeof *names);
        memcpy(vars, p->vars, p->trained * sizeof *vars);
    }
    free_tables(p, p->entry, p->names, p->vars, p->slot, p->capacity);
    p->entry = entry, p->names = names, p->vars = vars, p->slot = slot, p->capacity = n;
    cot__params_drop(p, p->count); /* fills the slots */
    return true;
}

/* A copy of a text; NULL after setting the error. */
static char *copied(cot_params *p, const char *text) {
    size_t n    = strlen(text) + 1;
    char  *copy = cot__alloc(&p->al, n);
    if (copy)
        memcpy(copy, text, n);
    else
        out_of_memory(p, n);
    return copy;
}

static cot__entry *add(cot_params *p, const char *name, const cot__wish *wish) {
    if (p->count == p->capacity && !grow(p)) return NULL;
    char  *copy = copied(p, name);
    size_t n    = strlen(name);
    if (!copy) return NULL;
    cot__entry *e      = &p->entry[p->count];
    *e                 = (cot__entry){.hash = hash_of(name, n), .length = n, .wish = *wish};
    p->names[p->count] = e->wish.name = copy;
    e->wish.how                       = cot__params_how(p, copy, wish->how);
    place(p, p->count++);
    return e;
}

static cot_var missing(cot_params *p, const char *name) {
    const char *near = cot__nearest(name, (int)p->count, p->names);
    return cot__fail(p->on, COT_VALUE,
                     "[%s] there is no parameter \"%s\"%s%s%s; cot_params_init makes those that its net asks for",
                     p->op, name, near ? ", a near name is \"" : "", near ? near : "", near ? "\"" : "");
}

/* Numbers that become a leaf do not count to what the tape has in use, as leaves do not. An example
 * outside of bodies stays for the next use, so that a forecast sees one parameter. */
static cot_var initial(cot_params *p, cot__entry *e) {
    cot_var x = cot__initial(p->on, p, e);
    if (p->making && p->on->mode.compiling && !p->on->mode.body) e->bound = x;
    if (cot_is_valid(x) && cot__is_tensor(&p->on->nodes[cot__index(x)]))
        cot__storage_set_aside(p->on, p->on->nodes[cot__index(x)].value.tensor->storage);
    return x;
}

/* What layers use for an entry. While cot_params_init runs, that are initial numbers, made anew at
 * each use: one made in a body could not be used outside of it. */
static cot_var in_use(cot_params *p, cot__entry *e) {
    if (e->bound.tape) return e->bound;
    if (!e->leaf.tape) return initial(p, e);
    if (p->on != p->tape)
        return cot__fail(p->on, COT_VALUE,
                         "[%s] \"%s\" is not bound, and is on another tape than what is; statistics and frozen "
                         "parameters are bound where n is cot_params_count",
                         p->op, e->wish.name);
    return e->frozen ? cot_detach(e->leaf) : e->leaf;
}

static cot_var misshaped(cot_params *p, const cot__entry *e, uint32_t i, const cot_shape *want) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    return cot__fail(p->on, COT_SHAPE,
                     "[%s] the parameter \"%s\" has shape %s, the layer wants %s; a name has one shape, which follows "
                     "from the layer's input",
                     p->op, e->wish.name, cot__shape_text_at(p->on, i, a), cot__shape_text(want->ndim, want->dim, b));
}

static cot_var checked(cot_params *p, const cot__entry *e, cot_var x, const cot_shape *want) {
    uint32_t i;
    if (!cot__operand(p->on, x, p->op, "", &i)) return INVALID(p->on);
    return cot__has_shape(p->on, i, want) ? x : misshaped(p, e, i, want);
}

/* The name after what is pushed, in p->path. Its length, or 0 if it is too long. */
static size_t whole_name(cot_params *p, const char *name) {
    int d = p->depth;
    if (d > COT__DEEPEST_PATH) return 0; /* the error is set */
    size_t n = strlen(name), from = p->level[d];
    if (from + n <= COT__LONGEST_PATH) return memcpy(p->path + from, name, n + 1), from + n;
    cot__fail(p->on, COT_LIMIT, "[%s] the name of a parameter has more than %d letters", p->op, COT__LONGEST_PATH);
    return 0;
}

uint64_t cot__layer_hash(const cot_params *p) { return hash_of(p->path, p->level[p->depth]); }

cot_var cot__layer_get(cot_params *p, const cot__wish *wish) {
    bool        fine = cot__params_on(p) && p->depth <= COT__DEEPEST_PATH;
    cot__entry *e    = fine ? find(p, p->level[p->depth], wish->name) : NULL;
    if (!fine || (!e && !whole_name(p, wish->name))) return INVALID(p->on);
    if (!e && !p->making) return missing(p, p->path);
    if (!e && !(e = add(p, p->path, wish))) return INVALID(p->on);
    int64_t before = p->rows ? cot_tape_storage_bytes(p->on) : 0;
    cot_var x      = checked(p, e, in_use(p, e), &wish->shape);
    if (p->rows) cot__summary_asked(p, e, cot_size(x), cot_tape_storage_bytes(p->on) - before);
    return e->wish.statistic ? x : cot__layer_narrowed(p, x);
}

/* An entry by its full name; NULL after setting the error. */
static cot__entry *named(cot_params *p, const char *op, const char *name) {
    if (!p) return NULL;
    p->op = op;
    if (!cot__params_on(p)) return NULL;
    if (!name) return cot__fail(p->on, COT_VALUE, "[%s] the name is NULL; parameters are found by it", op), NULL;
    cot__entry *e = find(p, 0, name);
    if (!e) missing(p, name);
    return e;
}

cot_var cot_params_get(cot_params *p, const char *name) {
    cot__entry *e = named(p, "params_get", name);
    return e ? in_use(p, e) : p ? INVALID(p->on) : COT_NONE;
}

bool cot__layer_axes(cot_params *p, cot_var x, int least) {
    int n = cot_shape_of(x).ndim;
    if (n >= least) return true;
    cot__fail(p->on, COT_SHAPE, "[%s] x has %d axes; it needs %d or more", p->op, n, least);
    return false;
}

static cot_key key_of(cot_params *p, const char *name) {
    size_t n = whole_name(p, name);
    if (!p->has_key && !p->making)
        cot__fail(p->on, COT_VALUE, "[%s] the step has no key; cot_params_set_key sets one, another at each step",
                  p->op);
    else if (n)
        return cot_key_fold(p->has_key ? p->key : p->init_key, hash_of(p->path, n));
    return (cot_key){0};
}

cot_key cot__layer_key(cot_params *p) { return key_of(p, ""); }

cot_key cot_params_key(cot_params *p, const char *name) {
    if (!p || !cot__params_on(p)) return (cot_key){0};
    p->op = "params_key";
    if (name) return key_of(p, name);
    cot__fail(p->on, COT_VALUE, "[params_key] the name is NULL; it is folded into the key");
    return (cot_key){0};
}

cot_var cot__layer_vector(cot_params *p, const char *name, int64_t n, cot_var like, cot_init_kind how) {
    return cot__layer_get(p, &(cot__wish){.name      = name,
                                          .shape     = {1, {n}},
                                          .dtype     = cot__params_dtype(p, like),
                                          .statistic = strncmp(name, "running", 7) == 0,
                                          .how       = {how, 0}});
}

/* ---- parameters of one's own ----------------------------------------------------------------- */

static cot_var own(cot_params *p, const char *op, const char *name, cot_shape shape, cot_var like, cot_init how,
                   bool statistic) {
    if (!p) return cot__invalid(1, &like);
    p->op = op;
    if (!name || !*name)
        return cot__fail(p->on, COT_VALUE, "[%s] the name is %s; parameters are found by it", op,
                         name ? "empty" : "NULL");
    cot__wish w = {name, shape, cot__params_dtype(p, like), statistic, how, 1, 1, 0};
    if (!cot__params_on(p) || cot__checked_size(p->on, op, w.dtype, shape.ndim, shape.dim) < 0) return INVALID(p->on);
    for (int k = 0; k < shape.ndim; k++) *(k + 1 < shape.ndim ? &w.fan_in : &w.fan_out) *= (double)shape.dim[k];
    if (how.kind == COT_INIT_DEFAULT) w.how.kind = statistic ? COT_INIT_CONSTANT : COT_INIT_UNIFORM;
    size_t letters = p->precisions ? whole_name(p, name) : 0;
    if (letters) p->narrow = precision_at(p, letters);
    cot_var x = cot__layer_get(p, &w);
    p->narrow = COT_F64;
    return x;
}

cot_var cot_nn_parameter(cot_params *p, const char *name, cot_shape shape, cot_var like, cot_init how) {
    return own(p, "nn_parameter", name, shape, like, how, false);
}

cot_var cot_nn_statistic(cot_params *p, const char *name, cot_shape shape, cot_var like, cot_init how) {
    return own(p, "nn_statistic", name, shape, like, how, true);
}

cot_status cot_nn_update(cot_params *p, const char *name, cot_var value) {
    size_t n;
    if (!p) return cot__status_of(1, &value);
    if (!name) cot__fail(p->on, COT_VALUE, "[nn_update] the name is NULL; statistics are found by it");
    if (p->making || !p->training || !cot__params_on(p) || !(n = whole_name(p, name))) return cot_tape_status(p->on);
    cot__entry *e = find(p, 0, p->path);
    if (!e)
        p->op = "nn_update", missing(p, p->path);
    else if (!e->wish.statistic)
        cot__fail(p->on, COT_VALUE, "[nn_update] \"%s\" is trained; only statistics are updated", p->path);
    else if (e->bound.tape)
        e->bound = cot_detach(value);
    else if (p->on == p->tape && !p->bound)
        return (cot_assign)(e->leaf, value);
    return cot_tape_status(p->on);
}

/* ---- freezing, groups, binding --------------------------------------------------------------- */

void cot__params_list(cot_params *p) {
    p->trained = 0;
    for (uint32_t k = 0; k < p->count; k++)
        if (!p->entry[k].wish.statistic && !p->entry[k].frozen) p->vars[p->trained++] = p->entry[k].leaf;
}

const cot_var *cot_params_vars(cot_params *p, int *n) {
    if (n) *n = p ? (int)p->trained : 0;
    return p ? p->vars : NULL;
}

/* The next entry from k on that matches, or p->count. */
static uint32_t next_match(const cot_params *p, const char *pattern, uint32_t k) {
    while (k < p->count && !cot__matches(pattern, p->names[k])) k++;
    return k;
}

/* Does the pattern match anything? Otherwise sets the error. */
static bool any_match(cot_params *p, const char *op, const char *pattern) {
    if (!p || !cot__params_on(p)) return false;
    if (!pattern)
        cot__fail(p->on, COT_VALUE, "[%s] the pattern is NULL; \"*\" matches every name", op);
    else if (next_match(p, pattern, 0) < p->count)
        return true;
    else {
        const char *near = cot__nearest(pattern, (int)p->count, p->names);
        cot__fail(p->on, COT_VALUE,
                  "[%s] no parameter matches \"%.100s\"%s%s%s; * stands for any letters, dots too, ? for one", op,
                  pattern, near ? ", a near name is \"" : "", near ? near : "", near ? "\"" : "");
    }
    return false;
}

static cot_status status_of(const cot_params *p) { return p ? cot_tape_status(p->on) : COT_VAR; }

cot_status cot_params_freeze(cot_params *p, const char *pattern, bool frozen) {
    if (!any_match(p, "params_freeze", pattern)) return status_of(p);
    for (uint32_t k = next_match(p, pattern, 0); k < p->count; k = next_match(p, pattern, k + 1))
        if (!p->entry[k].wish.statistic) p->entry[k].frozen = frozen;
    cot__params_list(p);
    return COT_OK;
}

cot_status cot_params_group(cot_params *p, const char *pattern, int group) {
    if (!any_match(p, "params_group", pattern)) return status_of(p);
    for (uint32_t k = next_match(p, pattern, 0); k < p->count; k = next_match(p, pattern, k + 1))
        p->entry[k].group = group;
    return COT_OK;
}

cot_init cot__params_how(const cot_params *p, const char *name, cot_init how) {
    for (uint32_t k = p->rules; k-- > 0;)
        if (cot__matches(p->rule[k].pattern, name)) return p->rule[k].how.kind ? p->rule[k].how : how;
    return how;
}

cot_status cot_params_init_with(cot_params *p, const char *pattern, cot_init how) {
    if (!p || !cot__params_on(p)) return status_of(p);
    p->op = "params_init_with";
    if (!pattern || (unsigned)how.kind > COT_INIT_HE_NORMAL || !isfinite(how.value)) {
        cot__fail(p->on, COT_VALUE,
                  "[params_init_with] the pattern is %s, the kind %d, the value %g; there must be a pattern, a "
                  "kind of cot_init_kind and a finite value",
                  pattern ? "given" : "NULL", (int)how.kind, how.value);
        return status_of(p);
    }
    if (p->rules == p->rule_capacity) {
        uint32_t        n    = 2 * p->rule_capacity + 4;
        cot__init_rule *more = cot__resize(&p->al, p->rule, p->rule_capacity * sizeof *more, n * sizeof *more);
        if (!more) return out_of_memory(p, n * sizeof *more), COT_MEMORY;
        p->rule = more, p->rule_capacity = n;
    }
    char *copy = copied(p, pattern);
    if (copy) p->rule[p->rules++] = (cot__init_rule){copy, how};
    return status_of(p);
}

cot_status cot_params_set_precision(cot_params *p, const char *pattern, cot_dtype dtype) {
    if (!p || !cot__params_on(p)) return status_of(p);
    p->op = "params_set_precision";
    if (!pattern || (unsigned)dtype >= COT_DTYPE_COUNT || !cot__dtype_is_float(dtype)) {
        cot__fail(p->on, COT_VALUE, "[%s] the pattern is %s, the dtype %s; there must be a pattern and a float dtype",
                  p->op, pattern ? "given" : "NULL", cot_dtype_name(dtype));
        return status_of(p);
    }
    if (p->precisions == p->precision_capacity) {
        uint32_t             n    = 2 * p->precision_capacity + 4;
        size_t               had  = p->precision_capacity * sizeof *p->precision;
        cot__precision_rule *more = cot__resize(&p->al, p->precision, had, n * sizeof *more);
        if (!more) return out_of_memory(p, n * sizeof *more), COT_MEMORY;
        p->precision = more, p->precision_capacity = n;
    }
    char *copy = copied(p, pattern);
    if (copy) p->precision[p->precisions++] = (cot__precision_rule){copy, dtype};
    return status_of(p);
}

cot_status cot_params_bind(cot_params *p, int n, const cot_var *xs) {
    if (!p) return n > 0 && xs ? cot__status_of(n, xs) : n == 0 ? COT_OK : COT_VAR;
    for (uint32_t k = 0; k < p->count; k++) p->entry[k].bound = (cot_var){0};
    p->on = p->tape, p->bound = false;
    if (n == 0) return COT_OK;
    cot_tape *t = n > 0 && xs ? cot__tape_of(n, xs) : cot__usable(p->tape);
    if (!t) return n > 0 && xs ? cot__status_of(n, xs) : status_of(p);
    if (!cot__list_given(t, "params_bind", "xs", n, xs)) return t->status;
    if ((uint32_t)n != p->trained && (uint32_t)n != p->count) {
        cot__fail(t, COT_VALUE,
                  "[params_bind] n is %d, of %u parameters %u are trained; xs stand for the trained or for all", n,
                  p->count, p->trained);
        return t->status;
    }
    int from = 0;
    p->on = t, p->bound = true;
    for (uint32_t k = 0; k < p->count; k++) {
        cot__entry *e = &p->entry[k];
        if ((uint32_t)n == p->count || (!e->wish.statistic && !e->frozen)) e->bound = xs[from++];
    }
    return COT_OK;
}
