/* save.c: writes the parts of a program file. docs/file-format.md tells the same for readers. */
#include "program/file/parts.h"
#include "base/file/replace.h"

#include <errno.h>
#include <string.h>

static void put_text(cot__sink *to, const char *text) { cot__sink_put(to, text, strlen(text) + 1); }

static void put_bits(cot__sink *to, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    cot__sink_number(to, bits, 8);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_type(const cot__program *p, uint32_t type, cot__sink *to) {
    const cot__program_type *t = &p->type[type];
    put_text(to, cot__dtype_name((cot_dtype)t->dtype));
    cot__sink_number(to, t->ndim, 1);
    for (uint32_t k = 0; k < t->ndim; k++) cot__sink_number(to, (uint64_t)p->extent[t->at + k], 8);
}

/* Text 0 is the empty one, which stands in no table. */
static uint32_t text_number(const cot__file_part *part, uint32_t at) {
    return at ? 1 + cot__order_find(&part->text, at) : 0;
}

static void put_label(const cot__file_part *part, uint32_t label, cot__sink *to) {
    const cot__label *l = &part->p->label[label];
    cot__sink_number(to, text_number(part, l->name), 4);
    cot__sink_number(to, text_number(part, l->file), 4);
    cot__sink_number(to, (uint32_t)l->line, 4);
}

static void put_tables(const cot__file_part *part, cot__sink *to) {
    cot__sink_number(to, part->op.count, 4);
    for (uint32_t k = 0; k < part->op.count; k++) put_text(to, cot__op_of((int)part->op.key[k])->name);
    cot__sink_number(to, part->text.count, 4);
    for (uint32_t k = 0; k < part->text.count; k++) put_text(to, part->p->text + part->text.key[k]);
    cot__sink_number(to, part->type.count, 4);
    for (uint32_t k = 0; k < part->type.count; k++) put_type(part->p, part->type.key[k], to);
    cot__sink_number(to, part->label.count, 4);
    for (uint32_t k = 0; k < part->label.count; k++) put_label(part, part->label.key[k], to);
}

/* ---- entries --------------------------------------------------------------------------------- */

static uint64_t element_bits(const char *at, int size) {
    union { uint8_t b1; uint16_t b2; uint32_t b4; uint64_t b8; } v;
    memcpy(&v, at, (size_t)size);
    return size == 1 ? v.b1 : size == 2 ? v.b2 : size == 4 ? v.b4 : v.b8;
}

void cot__sink_elements(cot__sink *to, cot_dtype dtype, int64_t n, const void *elements) {
    const char *at = elements;
    int         size = cot__dtype_size(dtype);
    if (!to->write) to->count += (uint64_t)(n * size);
    else for (int64_t k = 0; k < n; k++) cot__sink_number(to, element_bits(at + k * size, size), size);
}

static void put_elements(const cot__program *p, uint32_t constant, cot__sink *to) {
    cot__view x = cot__value_view(p, p->constant[constant].value);
    cot__sink_elements(to, x.dtype, cot__view_size(&x), cot__constant_elements(p, constant));
}

static void put_attributes(const cot__attr *a, cot__sink *to) {
    cot__sink_number(to, COT__EXTRA_ATTRIBUTES, 1);
    put_bits(to, a->number);
    cot__sink_number(to, a->nints, 4);
    for (uint32_t k = 0; k < a->nints; k++) cot__sink_number(to, (uint64_t)a->ints[k], 8);
}

static void put_extra(const cot__program *p, uint32_t k, cot__sink *to) {
    const cot__operation *o = &p->operation[k];
    if (o->extra == COT__NO_VALUE) cot__sink_number(to, COT__EXTRA_NONE, 1);
    else if (o->op >= OP_structural) put_attributes(cot__operation_attr(p, k), to);
    else cot__sink_number(to, COT__EXTRA_NUMBER, 1), put_bits(to, cot__operation_number(p, k));
}

static void put_operation(const cot__file_parts *f, const cot__file_part *part, uint32_t k, cot__sink *to) {
    const cot__program   *p = part->p;
    const cot__operation *o = &p->operation[k];
    cot__sink_number(to, cot__order_find(&part->op, o->op), 2);
    cot__sink_number(to, cot__order_find(&part->label, o->label), 4);
    cot__sink_number(to, o->results, 2);
    for (uint32_t v = o->result; v < o->result + o->results; v++)
        cot__sink_number(to, cot__order_find(&part->type, p->value[v].type), 4);
    cot__sink_number(to, o[1].operand - o->operand, 4);
    for (uint32_t i = o->operand; i < o[1].operand; i++) cot__sink_number(to, p->operand[i], 4);
    cot__sink_number(to, o[1].body - o->body, 2);
    for (uint32_t i = o->body; i < o[1].body; i++) cot__sink_number(to, cot__part_number(f, p->body[i]), 4);
    put_extra(p, k, to);
}

/* ---- the whole ------------------------------------------------------------------------------- */

void cot__part_write(const cot__file_parts *f, const cot__file_part *part, cot__sink *to) {
    const cot__program *p = part->p;
    cot__walk           w = {0};
    uint32_t            k;
    put_tables(part, to);
    cot__sink_number(to, p->inputs + p->constants + p->operations, 4);
    for (int kind; (kind = cot__walk_on(p, &w, &k)) >= 0;) {
        cot__sink_number(to, (uint64_t)kind, 1);
        if (kind == COT__ENTRY_OPERATION) {
            put_operation(f, part, k, to);
            continue;
        }
        uint32_t v = kind == COT__ENTRY_INPUT ? p->input[k] : p->constant[k].value;
        cot__sink_number(to, cot__order_find(&part->type, p->value[v].type), 4);
        if (kind == COT__ENTRY_CONSTANT) put_elements(p, k, to);
    }
    cot__sink_number(to, p->outputs, 4);
    for (k = 0; k < p->outputs; k++) cot__sink_number(to, p->output[k], 4);
}

bool cot__file_parts_write(const cot__file_parts *f, cot__write_bytes *write, void *to) {
    cot__sink s = {.write = write, .to = to};
    cot__sink_put(&s, COT__FILE_MAGIC, 8);
    cot__sink_number(&s, COT__PROGRAM_FORMAT, 4);
    cot__sink_number(&s, 0, 4);
    cot__sink_number(&s, cot__file_parts_bytes(f), 8);
    for (uint32_t k = 0; k < f->count; k++) {
        cot__sink_put(&s, COT__PART_TAG, 4);
        cot__sink_number(&s, f->part[k].bytes, 8);
        cot__part_write(f, &f->part[k], &s);
    }
    cot__sink_number(&s, s.sum, COT__FILE_SUM);
    return cot__sink_end(&s);
}

bool cot__program_save(const cot__program *p, cot__write_bytes *write, void *to, const cot__caller *caller) {
    cot__file_parts f;
    bool            fine = cot__file_parts_open(&f, p, caller);
    if (fine && !cot__file_parts_write(&f, write, to))
        fine = cot__refuse(caller, COT_VALUE, "the %llu bytes of the program were not all taken",
                           (unsigned long long)cot__file_parts_bytes(&f));
    cot__file_parts_close(&f);
    return fine;
}

static bool fill(FILE *file, void *parts) { return cot__file_parts_write(parts, cot__write_to_file, file); }

bool cot__cannot_write(const char *path, int error, const cot__caller *caller) {
    const char *shown = *path ? path : "a file with an empty name";
    if (error == ENOMEM) return cot__refuse(caller, COT_MEMORY, "out of memory: a name beside %s", shown);
    return cot__refuse(caller, COT_VALUE, "cannot write %s: %s", shown,
                       error == EISDIR ? "it is a directory" : strerror(error));
}

bool cot__program_save_to_file(const cot__program *p, const char *path, const cot__caller *caller) {
    cot__file_parts f;
    bool            fine = cot__file_parts_open(&f, p, caller);
    if (fine && !cot__file_replace(&p->al, path, cot__file_parts_bytes(&f), fill, &f, NULL))
        fine = cot__cannot_write(path, errno, caller);
    cot__file_parts_close(&f);
    return fine;
}
