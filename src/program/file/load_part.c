/* load_part.c: builds the program of one part of a file, through the builder. Every count is held
 * against the bytes that are left before memory is asked for, and every number against the table
 * that it points into before it is followed. */
#include "program/file/load.h"
#include "program/file/parts.h"
#include "program/build.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Memory that is freed with its size. */
typedef struct block { void *at; size_t bytes; } block;

/* A type of the table; its extents are bytes of the file. */
typedef struct type { cot_dtype dtype; int ndim; const unsigned char *extent; } type;

typedef struct part_loader {
    const cot__loader *l;
    cot__reader        r;
    cot__builder       b;
    cot__caller        caller; /* the builder's */
    uint32_t           names, texts, types, labels;
    const char        *what;  /* is being built: an entry, … */
    uint32_t           entry; /* … and its number */
    block              name, text, type, label; /* int, const char *, type, cot__label */
    block              operands, bodies, attr;  /* of the operation that is being built */
} part_loader;

#define ILLEGAL(p, ...) cot__file_illegal((p)->l->caller, __VA_ARGS__)

/* What the builder refuses is told in words of the file: the name in front is of the file, and may
 * be anything. */
static void retell(const cot__caller *c, cot_status code, const char *text) {
    const part_loader *p = c->to;
    size_t             name = strlen(c->name) + 3, n = strlen(text);
    const char        *fact = text + (name < n ? name : n);
    if (code == COT_MEMORY) cot__refuse(p->l->caller, code, "%s", fact);
    else ILLEGAL(p, "part %u, %s %u: %s", p->l->parts, p->what, p->entry, fact);
}
static void ignore(const cot__caller *c, const char *text) { (void)c, (void)text; }

/* Room for `bytes`, whatever it held before. */
static bool make_room(part_loader *p, block *k, uint64_t bytes) {
    if (k->at && bytes <= k->bytes) return true;
    cot__free(&p->l->al, k->at, k->bytes);
    *k = (block){cot__alloc(&p->l->al, bytes), bytes};
    if (k->at) return true;
    k->bytes = 0;
    return cot__refuse(p->l->caller, COT_MEMORY, "out of memory: %llu bytes to load a program",
                       (unsigned long long)bytes);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The number of entries of a table, each of which has at least so many bytes in the file, and room
 * for them. */
static bool take_count(part_loader *p, uint64_t least, block *k, size_t size, uint32_t *count) {
    *count = (uint32_t)cot__take_number(&p->r, 4);
    if (*count > (uint64_t)(p->r.end - p->r.at) / least) p->r.ended = true;
    return !p->r.ended && make_room(p, k, *count * (uint64_t)size);
}

const char *cot__take_text(cot__reader *r) {
    const unsigned char *end = r->ended ? NULL : memchr(r->at, 0, (size_t)(r->end - r->at));
    const unsigned char *at = end ? cot__take(r, (uint64_t)(end - r->at) + 1, 1) : NULL;
    if (!at) r->ended = true;
    return (const char *)at;
}
static const char *take_text(part_loader *p) { return cot__take_text(&p->r); }

/* A name that is not known, as far as it may be shown. */
static bool unknown(part_loader *p, const char *what, const char *name) {
    char shown[41] = "";
    for (int k = 0; k < 40 && name[k]; k++) shown[k] = name[k] >= ' ' && name[k] <= '~' ? name[k] : '?';
    return cot__refuse(p->l->caller, COT_VALUE,
                       "the %s '%s' does not exist in version %s of the library; a newer one may know it", what, shown,
                       cot_version());
}

/* What passes alone make stands in no file. */
static int op_named(const char *name) {
    for (int op = 0; op < OP_count; op++)
        if (cot__operation_exists(op) && !cot__op_of(op)->planned && !strcmp(cot__op_of(op)->name, name)) return op;
    return -1;
}

static bool take_names(part_loader *p) {
    if (!take_count(p, 1, &p->name, sizeof(int), &p->names)) return false;
    if (p->names > OP_count) return ILLEGAL(p, "part %u names %u operations", p->l->parts, p->names);
    for (uint32_t k = 0; k < p->names; k++) {
        const char *name = take_text(p);
        int         op = name ? op_named(name) : -1;
        if (op < 0) return name ? unknown(p, "operation", name) : false;
        ((int *)p->name.at)[k] = op;
    }
    return true;
}

static bool take_texts(part_loader *p) {
    if (!take_count(p, 1, &p->text, sizeof(char *), &p->texts)) return false;
    for (uint32_t k = 0; k < p->texts; k++)
        if (!(((const char **)p->text.at)[k] = take_text(p))) return false;
    return true;
}

static cot__type whole_type(const type *t) {
    cot__type z = {t->dtype, {t->ndim, {0}}};
    for (int k = 0; k < t->ndim; k++) z.shape.dim[k] = (int64_t)cot__from_bytes(t->extent + 8 * k, 8);
    return z;
}

static bool take_type(part_loader *p, type *t) {
    const char *name = take_text(p);
    int         dtype = 0;
    while (name && dtype < COT_DTYPE_COUNT && strcmp(cot__dtype_name((cot_dtype)dtype), name)) dtype++;
    if (name && dtype == COT_DTYPE_COUNT) return unknown(p, "dtype", name);
    *t = (type){(cot_dtype)dtype, (int)cot__take_number(&p->r, 1), NULL};
    if (t->ndim > COT_MAX_NDIM) return ILLEGAL(p, "part %u, type %u has %d axes", p->l->parts, p->entry, t->ndim);
    t->extent = cot__take(&p->r, (uint64_t)t->ndim, 8);
    if (!t->extent) return false;
    cot__type z = whole_type(t);
    return cot__legal_shape(&p->caller, &z.shape);
}

static bool take_types(part_loader *p) {
    if (!take_count(p, 2, &p->type, sizeof(type), &p->types)) return false;
    p->what = "type";
    for (p->entry = 0; p->entry < p->types; p->entry++)
        if (!take_type(p, (type *)p->type.at + p->entry)) return false;
    return true;
}

static bool take_labels(part_loader *p) {
    if (!take_count(p, 12, &p->label, sizeof(cot__label), &p->labels)) return false;
    for (uint32_t k = 0; k < p->labels; k++) {
        cot__label *l = (cot__label *)p->label.at + k;
        l->name = (uint32_t)cot__take_number(&p->r, 4);
        l->file = (uint32_t)cot__take_number(&p->r, 4);
        l->line = (int32_t)(uint32_t)cot__take_number(&p->r, 4);
        if (l->name > p->texts || l->file > p->texts)
            return ILLEGAL(p, "part %u, label %u has a text that is not there", p->l->parts, k);
    }
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The type of this number. */
static bool get_type(part_loader *p, uint64_t number, cot__type *z) {
    if (number >= p->types)
        return ILLEGAL(p, "part %u, entry %u has type %llu of %u", p->l->parts, p->entry, (unsigned long long)number,
                       p->types);
    *z = whole_type((const type *)p->type.at + number);
    return true;
}

static void put_element(char *to, uint64_t bits, int size) {
    union { uint8_t b1; uint16_t b2; uint32_t b4; uint64_t b8; } v;
    if (size == 1) v.b1 = (uint8_t)bits;
    else if (size == 2) v.b2 = (uint16_t)bits;
    else if (size == 4) v.b4 = (uint32_t)bits;
    else v.b8 = bits;
    memcpy(to, &v, (size_t)size);
}

void cot__elements_of_file(const cot__type *z, const unsigned char *from, void *to) {
    int     size = cot__dtype_size(z->dtype);
    int64_t n = cot__count(z->shape.ndim, z->shape.dim);
    for (int64_t k = 0; k < n; k++) put_element((char *)to + k * size, cot__from_bytes(from + k * size, size), size);
}

const unsigned char *cot__take_elements(cot__reader *r, const cot__type *z) {
    return cot__take(r, (uint64_t)cot__count(z->shape.ndim, z->shape.dim), (uint64_t)cot__dtype_size(z->dtype));
}

static bool take_constant(part_loader *p, const cot__type *z) {
    const unsigned char *from = cot__take_elements(&p->r, z);
    void                *to;
    if (!from || cot__build_constant(&p->b, z, &to) == COT__NO_VALUE) return false;
    cot__elements_of_file(z, from, to);
    return true;
}

static bool take_operands(part_loader *p, cot__append *o) {
    uint64_t             n = cot__take_number(&p->r, 4);
    const unsigned char *from = cot__take(&p->r, n, 4);
    if (!from || !make_room(p, &p->operands, n * 4)) return false;
    if (n > INT32_MAX) return ILLEGAL(p, "part %u, entry %u has 2^31 operands", p->l->parts, p->entry);
    for (uint64_t k = 0; k < n; k++) ((uint32_t *)p->operands.at)[k] = (uint32_t)cot__from_bytes(from + 4 * k, 4);
    o->n = (int)n;
    o->x = p->operands.at;
    return true;
}

/* Bodies stand before the programs that use them. */
static bool take_bodies(part_loader *p, cot__append *o) {
    uint64_t             n = cot__take_number(&p->r, 2);
    const unsigned char *from = cot__take(&p->r, n, 4);
    if (!from || !make_room(p, &p->bodies, n * sizeof(cot__program *))) return false;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t number = cot__from_bytes(from + 4 * k, 4);
        if (number >= p->l->parts)
            return ILLEGAL(p, "part %u, entry %u has part %llu for a body; bodies stand before", p->l->parts, p->entry,
                           (unsigned long long)number);
        ((cot__program **)p->bodies.at)[k] = p->l->part[number];
    }
    o->bodies = (int)n;
    o->body = p->bodies.at;
    return true;
}

static double take_bits(part_loader *p) {
    uint64_t bits = cot__take_number(&p->r, 8);
    double   v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static bool take_attributes(part_loader *p, cot__append *o) {
    double               number = take_bits(p);
    uint64_t             n = cot__take_number(&p->r, 4);
    const unsigned char *from = cot__take(&p->r, n, 8);
    if (!from || !make_room(p, &p->attr, sizeof(cot__attr) + n * 8)) return false;
    cot__attr *a = p->attr.at;
    *a = (cot__attr){.nints = (uint32_t)n, .number = number};
    for (uint64_t k = 0; k < n; k++) a->ints[k] = (int64_t)cot__from_bytes(from + 8 * k, 8);
    o->attr = a;
    return true;
}

static bool take_extra(part_loader *p, cot__append *o) {
    switch (cot__take_number(&p->r, 1)) {
    case COT__EXTRA_NONE: return true;
    case COT__EXTRA_NUMBER: o->number = take_bits(p); return true;
    case COT__EXTRA_ATTRIBUTES: return take_attributes(p, o);
    default: return ILLEGAL(p, "part %u, entry %u goes on in no known way", p->l->parts, p->entry);
    }
}

static const char *text_of(const part_loader *p, uint32_t number) {
    return number ? ((const char **)p->text.at)[number - 1] : "";
}

static bool take_name(part_loader *p, cot__append *o) {
    uint64_t name = cot__take_number(&p->r, 2), label = cot__take_number(&p->r, 4);
    if (name >= p->names || label >= p->labels)
        return p->r.ended ? false : ILLEGAL(p, "part %u, entry %u has name %llu of %u and label %llu of %u",
                                            p->l->parts, p->entry, (unsigned long long)name, p->names,
                                            (unsigned long long)label, p->labels);
    const cot__label *l = (const cot__label *)p->label.at + label;
    o->op = ((const int *)p->name.at)[name];
    o->name = text_of(p, l->name);
    o->file = text_of(p, l->file);
    o->line = l->line;
    return true;
}

/* Has value v the type that the file says? */
static bool is_of_type(part_loader *p, uint32_t v, const cot__type *said) {
    cot__view x = cot__value_view(p->b.p, v);
    bool      same = x.dtype == said->dtype && x.ndim == said->shape.ndim;
    for (int k = 0; same && k < x.ndim; k++) same = x.shape[k] == said->shape.dim[k];
    return same || ILLEGAL(p, "part %u, entry %u, %s, gives another type than the file says", p->l->parts, p->entry,
                           cot__op_of(p->b.p->operation[p->b.p->operations - 1].op)->name);
}

/* Are the results of the operation that was built last what the file says? */
static bool are_results(part_loader *p, uint64_t n, const unsigned char *types) {
    const cot__operation *o = &p->b.p->operation[p->b.p->operations - 1];
    cot__type             said;
    if (o->results != n)
        return ILLEGAL(p, "part %u, entry %u, %s, has %llu results, not %d", p->l->parts, p->entry,
                       cot__op_of(o->op)->name, (unsigned long long)n, o->results);
    for (uint32_t k = 0; k < n; k++, types += 4)
        if (!get_type(p, cot__from_bytes(types, 4), &said) || !is_of_type(p, o->result + k, &said)) return false;
    return true;
}

static bool take_operation(part_loader *p) {
    cot__append o = {0};
    cot__type   asked = {0};
    if (!take_name(p, &o)) return false;
    uint64_t             n = cot__take_number(&p->r, 2);
    const unsigned char *types = cot__take(&p->r, n, 4);
    if (!types || (n && !get_type(p, cot__from_bytes(types, 4), &asked))) return false;
    o.asked = n ? &asked : NULL;
    if (!take_operands(p, &o) || !take_bodies(p, &o) || !take_extra(p, &o) || p->r.ended) return false;
    return cot__build_operation(&p->b, &o) != COT__NO_VALUE && are_results(p, n, types);
}

static bool take_entry(part_loader *p) {
    uint64_t  kind = cot__take_number(&p->r, 1);
    cot__type z;
    if (kind == COT__ENTRY_OPERATION) return take_operation(p);
    if (kind > COT__ENTRY_OPERATION)
        return ILLEGAL(p, "part %u, entry %u is of no known kind", p->l->parts, p->entry);
    uint64_t number = cot__take_number(&p->r, 4);
    if (p->r.ended || !get_type(p, number, &z)) return false;
    return kind == COT__ENTRY_INPUT ? cot__build_input(&p->b, &z) != COT__NO_VALUE : take_constant(p, &z);
}

static bool take_entries(part_loader *p) {
    uint64_t n = cot__take_number(&p->r, 4);
    p->what = "entry";
    for (p->entry = 0; p->entry < n; p->entry++)
        if (!take_entry(p)) return false;
    return true;
}

static bool take_outputs(part_loader *p) {
    uint64_t             n = cot__take_number(&p->r, 4);
    const unsigned char *from = cot__take(&p->r, n, 4);
    p->what = "output";
    for (p->entry = 0; from && p->entry < n; p->entry++)
        cot__build_output(&p->b, (uint32_t)cot__from_bytes(from + 4 * (uint64_t)p->entry, 4));
    return from && !p->b.failed;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool take_all(part_loader *p) {
    if (p->b.failed) return false;
    bool fine = take_names(p) && take_texts(p) && take_types(p) && take_labels(p) && take_entries(p) && take_outputs(p);
    if (p->r.ended) return ILLEGAL(p, "part %u ends in the middle", p->l->parts);
    if (fine && p->r.at != p->r.end) return ILLEGAL(p, "part %u goes on after its end", p->l->parts);
    return fine;
}

cot__program *cot__load_part(const cot__loader *l, cot__reader r) {
    part_loader p = {.l = l, .r = r};
    p.caller = (cot__caller){l->caller->name, &p, retell, ignore, NULL};
    cot__builder_open(&p.b, &l->al, &p.caller);
    bool fine = take_all(&p);
    p.b.failed = p.b.failed || !fine;
    cot__program *made = cot__builder_close(&p.b);
    block        *blocks[] = {&p.name, &p.text, &p.type, &p.label, &p.operands, &p.bodies, &p.attr};
    for (int k = 0; k < COUNTOF(blocks); k++) cot__free(&l->al, blocks[k]->at, blocks[k]->bytes);
    return made;
}
