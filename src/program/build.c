/* build.c: building a program. Lists grow by doubling, and are cut to their length at the end. */
#include "program/build.h"
#include "backend/job_run.h"

#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

/* Tells the caller and builds no more. Always false. */
#define REFUSE(b, ...) ((b)->failed = true, cot__refuse(&(b)->caller, __VA_ARGS__))

static bool no_memory(cot__builder *b, uint64_t bytes) {
    return REFUSE(b, COT_MEMORY, "out of memory: %llu bytes of a program", (unsigned long long)bytes);
}

static bool resize(cot__builder *b, int list, uint64_t to) {
    size_t size = cot__list_table[list].size;
    void  *fresh = cot__resize(&b->p->al, cot__list_get(b->p, list), b->room[list] * size, to * size);
    if (!fresh && to > 0) return no_memory(b, to * size);
    cot__list_set(b->p, list, fresh);
    b->room[list] = to;
    return true;
}

static bool reserve(cot__builder *b, int list, uint64_t more) {
    uint64_t need = cot__list_length(b->p, list) + more, to = b->room[list] ? b->room[list] : 8;
    if (LIKELY(need <= b->room[list])) return true;
    while (to < need) to *= 2;
    if (need >= COT__NO_VALUE) return REFUSE(b, COT_LIMIT, "the program is too large: a list of 2^32 parts");
    return resize(b, list, to);
}
#define RESERVE(b, list, more) reserve(b, COT__LIST_##list, more)

/* Elements of constants are aligned, so their memory cannot be resized where it lies. */
static bool reserve_data(cot__builder *b, uint64_t need) {
    cot__program *p = b->p;
    uint64_t      room = 2 * need + 64;
    if (p->data_block && need + 64 <= p->data_room) return true;
    if (need > (uint64_t)PTRDIFF_MAX / 4) return no_memory(b, need);
    void *block = cot__alloc(&p->al, room);
    if (!block) return no_memory(b, room);
    char *data = (char *)(((uintptr_t)block + 63) & ~(uintptr_t)63);
    if (p->data_bytes) memcpy(data, p->data, p->data_bytes);
    cot__free(&p->al, p->data_block, p->data_room);
    p->data = data;
    p->data_block = block;
    p->data_room = room;
    return true;
}

/* ---- parts that stand once ------------------------------------------------------------------- */

static bool reserve_entry(cot__builder *b, cot__entries *e) {
    if (LIKELY(cot__entries_have_room(e))) return true;
    return cot__entries_reserve(e, &b->p->al) || no_memory(b, 2 * (uint64_t)e->size * sizeof *e->at);
}

static bool is_type(const void *list, uint32_t k, const void *key) {
    const cot__program      *p = list;
    const cot__program_type *t = &p->type[k];
    const cot__type         *z = key;
    return t->dtype == (uint16_t)z->dtype && t->ndim == z->shape.ndim &&
           memcmp(p->extent + t->at, z->shape.dim, t->ndim * sizeof *p->extent) == 0;
}

/* The number of a legal type. */
static bool type_number(cot__builder *b, const cot__type *z, uint32_t *number) {
    cot__program *p = b->p;
    uint32_t      n = (uint32_t)z->shape.ndim, hash = cot__hash_more((uint32_t)z->dtype, n);
    for (uint32_t k = 0; k < n; k++) hash = cot__hash_more(hash, (uint64_t)z->shape.dim[k]);
    if (!reserve_entry(b, &b->types)) return false;
    cot__entry *at = cot__entries_find(&b->types, hash, is_type, p, z);
    *number = at->number - 1;
    if (at->number) return true;
    if (!RESERVE(b, type, 1) || !RESERVE(b, extent, 2 * n)) return false;
    *number = p->types++;
    p->type[*number] = (cot__program_type){(uint16_t)z->dtype, (uint16_t)n, n ? p->extents : 0};
    for (uint32_t k = 0; k < n; k++) p->extent[p->extents + k] = z->shape.dim[k];
    cot__strides((int)n, z->shape.dim, p->extent + p->extents + n);
    p->extents += 2 * n;
    cot__entries_put(&b->types, at, hash, *number);
    return true;
}

static bool is_text(const void *list, uint32_t k, const void *key) {
    return strcmp(((const cot__program *)list)->text + k, key) == 0;
}

/* Eight bytes at a time, with zeros behind the last. */
static uint32_t hash_of(const char *text, uint32_t length) {
    uint32_t hash = 0;
    for (uint32_t k = 0; k < length; k += 8) {
        uint64_t word = 0;
        memcpy(&word, text + k, length - k < 8 ? length - k : 8);
        hash = cot__hash_more(hash, word);
    }
    return hash;
}

/* The empty text is the first, number 0. */
static bool text_number(cot__builder *b, const char *text, uint32_t *number) {
    cot__program *p = b->p;
    *number = 0;
    if (!text[0] && p->text_bytes) return true;
    uint32_t length = (uint32_t)strlen(text), hash = hash_of(text, length);
    if (!reserve_entry(b, &b->texts)) return false;
    cot__entry *at = cot__entries_find(&b->texts, hash, is_text, p, text);
    *number = at->number - 1;
    if (at->number) return true;
    if (!RESERVE(b, text, length + 1)) return false;
    *number = p->text_bytes;
    memcpy(p->text + *number, text, length + 1);
    p->text_bytes += length + 1;
    cot__entries_put(&b->texts, at, hash, *number);
    return true;
}

static bool is_label(const void *list, uint32_t k, const void *key) {
    const cot__label *a = &((const cot__program *)list)->label[k], *z = key;
    return a->name == z->name && a->file == z->file && a->line == z->line;
}

static bool label_number(cot__builder *b, const cot__append *o, uint32_t *number) {
    cot__program *p = b->p;
    cot__label    l = {.line = o->file ? o->line : 0};
    if (!text_number(b, o->name, &l.name) || !text_number(b, o->file ? o->file : "", &l.file)) return false;
    uint32_t hash = cot__hash_more(cot__hash_more(l.name, l.file), (uint32_t)l.line);
    if (!reserve_entry(b, &b->labels)) return false;
    cot__entry *at = cot__entries_find(&b->labels, hash, is_label, p, &l);
    *number = at->number - 1;
    if (at->number) return true;
    if (!RESERVE(b, label, 1)) return false;
    *number = p->labels++;
    p->label[*number] = l;
    cot__entries_put(&b->labels, at, hash, *number);
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t add_value(cot__builder *b, const cot__type *type, cot__origin origin, uint32_t maker) {
    cot__program *p = b->p;
    uint32_t      number;
    if (p->values >= COT__PROGRAM_MOST - 1)
        REFUSE(b, COT_LIMIT, "the program is too large: it has 2^30 values");
    if (b->failed || !type_number(b, type, &number) || !RESERVE(b, value, 1)) return COT__NO_VALUE;
    p->value[p->values] = (cot__program_value){number, (uint32_t)origin << 30 | maker};
    return p->values++;
}

static bool is_legal(cot__builder *b, const cot__type *type) {
    if (b->failed) return false;
    b->failed = !cot__legal_dtype(&b->caller, type->dtype) || !cot__legal_shape(&b->caller, &type->shape);
    return !b->failed;
}

uint32_t cot__build_input(cot__builder *b, const cot__type *type) {
    if (!is_legal(b, type) || !RESERVE(b, input, 1)) return COT__NO_VALUE;
    uint32_t v = add_value(b, type, COT__FROM_INPUT, b->p->inputs);
    if (v != COT__NO_VALUE) b->p->input[b->p->inputs++] = v;
    return v;
}

uint32_t cot__build_constant(cot__builder *b, const cot__type *type, void **elements) {
    cot__program *p = b->p;
    if (!is_legal(b, type)) return COT__NO_VALUE;
    uint64_t bytes = (uint64_t)(cot__count(type->shape.ndim, type->shape.dim) * cot__dtype_size(type->dtype));
    uint64_t align = bytes < 64 ? 8 : 64, at = (p->data_bytes + align - 1) & ~(align - 1);
    if (!RESERVE(b, constant, 1) || !reserve_data(b, at + bytes)) return COT__NO_VALUE;
    uint32_t v = add_value(b, type, COT__FROM_CONSTANT, p->constants);
    if (v == COT__NO_VALUE) return v;
    p->constant[p->constants++] = (cot__program_constant){v, at};
    memset(p->data + p->data_bytes, 0, at - p->data_bytes); /* no byte stays unwritten */
    p->data_bytes = at + bytes;
    *elements = p->data + at;
    return v;
}

void cot__build_output(cot__builder *b, uint32_t value) {
    if (b->failed || !RESERVE(b, output, 1)) return;
    if (value < b->p->values) b->p->output[b->p->outputs++] = value;
    else REFUSE(b, COT_VALUE, "output %u is value %u, which is not there", b->p->outputs, value);
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool can_run(cot__builder *b, const cot__append *o) {
    const cot__op *record = cot__operation_exists(o->op) ? cot__op_of(o->op) : NULL;
    if (!record) return REFUSE(b, COT_VALUE, "there is no operation %d", o->op);
    if (record->kind == KIND_SOURCE) return REFUSE(b, COT_VALUE, "a source is no operation of a program");
    if (record->kind == KIND_PICK) return REFUSE(b, COT_VALUE, "a result is picked by its number, not by an operation");
    if (record->needs_tape) return REFUSE(b, COT_VALUE, "it cannot run in a program: %s", record->needs_tape);
    if (record->attrs && !o->attr) return REFUSE(b, COT_VALUE, "it lacks its attributes (%s)", record->attrs);
    if (o->bodies > record->bodies)
        return REFUSE(b, COT_VALUE, "%d bodies, where at most %d belong", o->bodies, record->bodies);
    return true;
}

/* One of two operands of an elementwise operation may be a number. */
static bool has_operands(cot__builder *b, const cot__append *o) {
    int numbers = 0;
    for (int k = 0; k < o->n; k++) {
        numbers += o->x[k] == COT__NO_VALUE;
        if (o->x[k] != COT__NO_VALUE && o->x[k] >= b->p->values)
            return REFUSE(b, COT_VALUE, "operand %d is value %u, which is not there", k, o->x[k]);
    }
    if (numbers > 1 || (numbers && (o->op >= OP_structural || o->n != 2)))
        return REFUSE(b, COT_VALUE, "%d of %d operands are numbers; one of two may be, in an elementwise operation",
                      numbers, o->n);
    return true;
}

static bool add_attributes(cot__builder *b, const cot__attr *of, bool binds, uint32_t *extra) {
    cot__program *p = b->p;
    size_t        bytes = sizeof *of + of->nints * sizeof *of->ints;
    cot__attr     head = {.nints = of->nints, .number = of->number};
    if (binds) head.pointer = of->pointer, head.pointer2 = of->pointer2;
    p->bound |= head.pointer || head.pointer2;
    if (!RESERVE(b, attr, bytes / 8)) return false;
    *extra = p->attr_words;
    memcpy(p->attr + *extra, &head, sizeof head);
    if (of->nints) memcpy((char *)(p->attr + *extra) + sizeof head, of->ints, of->nints * sizeof *of->ints);
    p->attr_words += (uint32_t)(bytes / 8);
    return true;
}

static bool add_extra(cot__builder *b, const cot__append *o, uint32_t *extra) {
    cot__program *p = b->p;
    *extra = COT__NO_VALUE;
    if (o->op >= OP_structural) return !o->attr || add_attributes(b, o->attr, cot__op_of(o->op)->binds, extra);
    if (o->n != 2 || (o->x[0] != COT__NO_VALUE && o->x[1] != COT__NO_VALUE)) return true;
    if (!RESERVE(b, number, 1)) return false;
    *extra = p->numbers;
    p->number[p->numbers++] = o->number;
    return true;
}

static bool add_bodies(cot__builder *b, const cot__append *o) {
    cot__program *p = b->p;
    if (!RESERVE(b, body, (uint64_t)o->bodies)) return false;
    for (int k = 0; k < o->bodies; k++) {
        if (o->body[k]->depth >= COT__PROGRAM_DEPTH)
            return REFUSE(b, COT_LIMIT, "bodies nest more than %d deep", COT__PROGRAM_DEPTH);
        p->body[p->bodies++] = cot__program_share(o->body[k]);
        p->bound |= o->body[k]->bound;
        if (p->depth <= o->body[k]->depth) p->depth = o->body[k]->depth + 1;
    }
    return true;
}

/* The operation without its results, and behind it the one that ends its lists. */
static bool add_operation(cot__builder *b, const cot__append *o) {
    cot__program  *p = b->p;
    cot__operation z = {.op = (uint16_t)o->op, .operand = p->operands, .body = p->bodies, .result = p->values};
    if (p->operations >= COT__PROGRAM_MOST - 1)
        return REFUSE(b, COT_LIMIT, "the program is too large: it has 2^30 operations");
    if (!RESERVE(b, operation, 1) || !RESERVE(b, operand, (uint64_t)o->n) ||
        !label_number(b, o, &z.label) || !add_extra(b, o, &z.extra) || !add_bodies(b, o))
        return false;
    if (o->n) memcpy(p->operand + p->operands, o->x, (size_t)o->n * sizeof *o->x);
    p->operands += (uint32_t)o->n;
    p->operation[p->operations] = z;
    p->operation[p->operations + 1] = (cot__operation){.operand = p->operands, .body = p->bodies};
    return true;
}

enum { FEW = 8 };

/* The results of the operation that was added last, as values of the types that are inferred. */
static bool add_results(cot__builder *b, const cot__append *o, const cot__job *j) {
    cot__program *p = b->p;
    cot__type     few[COT__JOB_RESULTS];
    int           results = cot__job_results(j);
    size_t        bytes = (size_t)results * sizeof *few;
    cot__type    *z = results <= COT__JOB_RESULTS ? few : cot__alloc(&p->al, bytes);
    if (!z) return no_memory(b, bytes);
    *z = o->asked ? *o->asked : (cot__type){0};
    b->failed = !cot__job_infer(j, z);
    for (int k = 0; k < results && !b->failed; k++) add_value(b, &z[k], COT__FROM_OPERATION, p->operations);
    p->operation[p->operations].results = (uint16_t)results;
    if (z != few) cot__free(&p->al, z, bytes);
    return !b->failed;
}

static bool infer(cot__builder *b, const cot__append *o) {
    cot__view few[FEW], *x = o->n <= FEW ? few : cot__alloc(&b->p->al, (size_t)o->n * sizeof *x);
    cot__job  j;
    double    number;
    if (!x) return no_memory(b, (uint64_t)o->n * sizeof *x);
    cot__operation_job(b->p, b->p->operations, &b->caller, x, &number, &j);
    bool ok = add_results(b, o, &j);
    if (x != few) cot__free(&b->p->al, x, (size_t)o->n * sizeof *x);
    return ok;
}

uint32_t cot__build_operation(cot__builder *b, const cot__append *o) {
    cot__program *p = b->p;
    if (b->failed) return COT__NO_VALUE;
    const char *before = b->caller.name;
    uint32_t    first = p->values;
    b->caller.name = o->name;
    bool ok = can_run(b, o) && has_operands(b, o) && add_operation(b, o) && infer(b, o);
    b->caller.name = before;
    if (!ok) return COT__NO_VALUE;
    p->effects |= cot__operation_has_effect(p, p->operations);
    p->operations++;
    return first;
}

/* ---- the whole ------------------------------------------------------------------------------- */

void cot__builder_open(cot__builder *b, const cot_allocator *al, const cot__caller *caller) {
    uint32_t empty;
    *b = (cot__builder){.p = cot__alloc(al, sizeof *b->p), .caller = *caller};
    if (!b->p) {
        cot__refuse(caller, COT_MEMORY, "out of memory: %zu bytes of a program", sizeof *b->p);
        b->failed = true;
        return;
    }
    memset(b->p, 0, sizeof *b->p);
    atomic_init(&b->p->refs, 1);
    b->p->al = al ? *al : (cot_allocator){0};
    b->p->depth = 1;
    /* the empty text is there, 0-d values have a shape, the list of operations has an end */
    if (!text_number(b, "", &empty) || !RESERVE(b, extent, 1) || !RESERVE(b, operation, 0)) return;
    b->p->extent[b->p->extents++] = 0;
    b->p->operation[0] = (cot__operation){0};
}

/* The program is as long as its lists say, or nobody gets it. */
static bool cut_lists(cot__builder *b) {
    for (int k = 0; k < COT__LIST_COUNT; k++)
        if (!resize(b, k, cot__list_length(b->p, k))) return false;
    return true;
}

static void free_unfinished(cot__builder *b) {
    cot_allocator al = b->p->al;
    for (uint32_t k = 0; k < b->p->bodies; k++) cot__program_release(b->p->body[k]);
    for (int k = 0; k < COT__LIST_COUNT; k++)
        cot__free(&al, cot__list_get(b->p, k), b->room[k] * cot__list_table[k].size);
    cot__free(&al, b->p->data_block, b->p->data_room);
    cot__free(&al, b->p, sizeof *b->p);
}

cot__program *cot__builder_close(cot__builder *b) {
    if (!b->p) return NULL;
    cot__entries_free(&b->types, &b->p->al);
    cot__entries_free(&b->labels, &b->p->al);
    cot__entries_free(&b->texts, &b->p->al);
    if (b->failed || !cut_lists(b)) return free_unfinished(b), NULL;
    return b->p;
}

cot__append cot__operation_again(const cot__program *p, uint32_t k, const uint32_t *value, uint32_t *x,
                                 cot__type *asked) {
    const cot__operation *o = &p->operation[k];
    const cot__label     *l = &p->label[o->label];
    const uint32_t       *from = cot__operation_operand(p, k);
    int                   n = cot__operation_operands(p, k);
    bool                  number = o->op < OP_structural && o->extra != COT__NO_VALUE;
    *asked = cot__value_type(p, o->result);
    for (int i = 0; i < n; i++) x[i] = from[i] == COT__NO_VALUE ? COT__NO_VALUE : value[from[i]];
    return (cot__append){.op = o->op, .n = n, .x = x, .number = number ? cot__operation_number(p, k) : 0,
                         .attr = cot__operation_attr(p, k), .asked = asked, .name = p->text + l->name,
                         .file = l->file ? p->text + l->file : NULL, .line = (int)l->line,
                         .bodies = cot__operation_bodies(p, k), .body = cot__behind(p->body, o->body)};
}
