/* parts.c: finds the parts of a file and numbers what they refer to; see parts.h. */
#include "program/file/parts.h"

#include <string.h>

static bool no_memory(const cot__file_parts *f, uint64_t bytes) {
    return cot__refuse(f->caller, COT_MEMORY, "out of memory: %llu bytes to go through a program",
                       (unsigned long long)bytes);
}

/* One more element of a list that grows by doubling; NULL: there is no memory. */
static void *one_more(cot__file_parts *f, void *list, uint32_t count, uint32_t *room, size_t size) {
    uint32_t to = *room ? 2 * *room : 4;
    if (count < *room) return list;
    void *fresh = cot__resize(&f->al, list, *room * size, to * size);
    if (fresh) *room = to;
    else no_memory(f, to * size);
    return fresh;
}

static bool reserve(cot__file_parts *f, cot__entries *e) {
    return cot__entries_reserve(e, &f->al) || no_memory(f, 2 * (uint64_t)e->size * sizeof *e->at);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static bool is_key(const void *list, uint32_t k, const void *key) {
    return ((const uint32_t *)list)[k] == *(const uint32_t *)key;
}

static cot__entry *find_key(const cot__order *o, uint32_t key, uint32_t *hash) {
    *hash = cot__hash_more(0, key);
    return cot__entries_find(&o->found, *hash, is_key, o->key, &key);
}

/* Gives the key a number if it has none. */
static bool number_key(cot__file_parts *f, cot__order *o, uint32_t key) {
    uint32_t hash;
    if (!reserve(f, &o->found)) return false;
    cot__entry *at = find_key(o, key, &hash);
    if (at->number) return true;
    void *list = one_more(f, o->key, o->count, &o->room, sizeof *o->key);
    if (!list) return false;
    o->key = list;
    o->key[o->count] = key;
    cot__entries_put(&o->found, at, hash, o->count++);
    return true;
}

uint32_t cot__order_find(const cot__order *o, uint32_t key) {
    uint32_t hash;
    return find_key(o, key, &hash)->number - 1;
}

static void order_close(cot__file_parts *f, cot__order *o) {
    cot__entries_free(&o->found, &f->al);
    cot__free(&f->al, o->key, o->room * sizeof *o->key);
}

/* ---- one part -------------------------------------------------------------------------------- */

/* Does the operation mean the same in another process? */
static bool is_free(const cot__file_parts *f, const cot__program *p, uint32_t k) {
    const cot__op   *record = cot__op_of(p->operation[k].op);
    const cot__attr *a = cot__operation_attr(p, k);
    if (!record->needs_tape && !(a && (a->pointer || a->pointer2))) return true;
    return cot__refuse(f->caller, COT_VALUE,
                       "the operation '%s' is bound to this process (%s); a program with it cannot be saved",
                       cot__operation_name(p, k), record->needs_tape ? record->needs_tape : "it holds an address");
}

static bool number_operation(cot__file_parts *f, cot__file_part *part, uint32_t k) {
    const cot__program   *p = part->p;
    const cot__operation *o = &p->operation[k];
    bool                  fine = is_free(f, p, k) && number_key(f, &part->op, o->op);
    for (uint32_t v = o->result; fine && v < o->result + o->results; v++)
        fine = number_key(f, &part->type, p->value[v].type);
    return fine && number_key(f, &part->label, o->label);
}

/* The file tells no numbers of inputs and constants: they follow from the order. */
static bool is_in_order(const cot__file_parts *f, uint32_t number, uint32_t seen) {
    return number == seen ||
           cot__refuse(f->caller, COT_VALUE, "input or constant %u was built in place %u; they are saved in order",
                       number, seen);
}

static bool number_entries(cot__file_parts *f, cot__file_part *part) {
    const cot__program *p = part->p;
    cot__walk           w = {0};
    uint32_t            k, seen[2] = {0};
    for (int kind; (kind = cot__walk_on(p, &w, &k)) >= 0;) {
        if (kind == COT__ENTRY_OPERATION) {
            if (!number_operation(f, part, k)) return false;
            continue;
        }
        uint32_t v = kind == COT__ENTRY_INPUT ? p->input[k] : p->constant[k].value;
        if (!is_in_order(f, k, seen[kind]++) || !number_key(f, &part->type, p->value[v].type)) return false;
    }
    return true;
}

static bool number_texts(cot__file_parts *f, cot__file_part *part) {
    for (uint32_t k = 0; k < part->label.count; k++) {
        const cot__label *l = &part->p->label[part->label.key[k]];
        if ((l->name && !number_key(f, &part->text, l->name)) || (l->file && !number_key(f, &part->text, l->file)))
            return false;
    }
    return true;
}

static bool number_part(cot__file_parts *f, cot__file_part *part) {
    cot__sink count = {0};
    if (!number_entries(f, part) || !number_texts(f, part)) return false;
    cot__part_write(f, part, &count);
    part->bytes = count.count;
    return true;
}

/* ---- all parts ------------------------------------------------------------------------------- */

static bool is_part(const void *list, uint32_t k, const void *p) { return ((const cot__file_part *)list)[k].p == p; }

static cot__entry *find_part(const cot__file_parts *f, const cot__program *p, uint32_t *hash) {
    *hash = cot__hash_more(0, (uintptr_t)p);
    return cot__entries_find(&f->found, *hash, is_part, f->part, p);
}

uint32_t cot__part_number(const cot__file_parts *f, const cot__program *p) {
    uint32_t hash;
    return find_part(f, p, &hash)->number - 1;
}

/* Whoever goes through all bodies of all operations meets a body as often as it is used, and must
 * come to an end soon, however short the file is. */
enum { ALWAYS_LIGHT = 1 << 16, TIMES_USED = 64 };

static bool weigh(cot__file_parts *f, cot__file_part *part) {
    part->weight = 1 + (uint64_t)part->p->operations;
    f->operations += part->weight;
    uint64_t most = f->operations > ALWAYS_LIGHT / TIMES_USED ? TIMES_USED * f->operations : ALWAYS_LIGHT;
    for (uint32_t k = 0; k < part->p->bodies && part->weight <= most; k++)
        part->weight += f->part[cot__part_number(f, part->p->body[k])].weight;
    return part->weight <= most ||
           cot__refuse(f->caller, COT_LIMIT,
                       "a program and its bodies, each counted wherever it is used, have more than %llu operations: "
                       "bodies may be used %d times on average",
                       (unsigned long long)most, TIMES_USED);
}

static bool add_part(cot__file_parts *f, const cot__program *p) {
    uint32_t hash;
    void    *list = one_more(f, f->part, f->count, &f->room, sizeof *f->part);
    if (!list) return false;
    f->part = list;
    if (!reserve(f, &f->found)) return false;
    cot__entry *at = find_part(f, p, &hash);
    cot__entries_put(&f->found, at, hash, f->count);
    cot__file_part *part = &f->part[f->count++];
    *part = (cot__file_part){.p = p};
    return weigh(f, part) && number_part(f, part);
}

static bool has_part(const cot__file_parts *f, const cot__program *p) {
    return f->found.size && cot__part_number(f, p) != COT__NO_VALUE;
}

/* Bodies nest no deeper than COT__PROGRAM_DEPTH, so this may call itself. */
static bool add_parts(cot__file_parts *f, const cot__program *p) {
    if (has_part(f, p)) return true;
    for (uint32_t k = 0; k < p->bodies; k++)
        if (!add_parts(f, p->body[k])) return false;
    return add_part(f, p);
}

bool cot__file_parts_open(cot__file_parts *f, const cot__program *p, const cot__caller *caller) {
    *f = (cot__file_parts){.caller = caller, .al = p->al};
    return add_parts(f, p);
}

void cot__file_parts_close(cot__file_parts *f) {
    for (uint32_t k = 0; k < f->count; k++) {
        cot__order *all[] = {&f->part[k].op, &f->part[k].type, &f->part[k].label, &f->part[k].text};
        for (int i = 0; i < COUNTOF(all); i++) order_close(f, all[i]);
    }
    cot__free(&f->al, f->part, f->room * sizeof *f->part);
    cot__entries_free(&f->found, &f->al);
}

uint64_t cot__file_parts_bytes(const cot__file_parts *f) {
    uint64_t bytes = COT__FILE_HEAD + COT__FILE_SUM;
    for (uint32_t k = 0; k < f->count; k++) bytes += COT__PART_HEAD + f->part[k].bytes;
    return bytes;
}
