/* check.c: is a program what program.h says? The first broken rule of the grammar, as a sentence.
 *
 * Reads everything, and trusts nothing that it has not checked before: a check only follows numbers
 * that an earlier one has found in range. */
#include "program/program.h"
#include "backend/job_run.h"
#include "base/number.h"

#include <stdarg.h>
#include <string.h>

typedef struct checker {
    const cot__program *p;
    cot__text          *why;
    cot__caller         caller; /* hears what infer refuses */
} checker;

/* Says the broken rule and returns false. */
static bool broken(const checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool broken(const checker *c, const char *format, ...) {
    char    text[400];
    va_list args;
    va_start(args, format);
    cot__vformat(text, sizeof text, format, args);
    va_end(args);
    cot__put(c->why, text);
    return false;
}

static void hear(const cot__caller *caller, cot_status code, const char *text) {
    (void)code;
    cot__put(((const checker *)caller->to)->why, text);
}
static void ignore(const cot__caller *caller, const char *text) { (void)caller, (void)text; }

/* ---- tables ---------------------------------------------------------------------------------- */

static bool types_are_sound(const checker *c) {
    const cot__program *p = c->p;
    for (uint32_t k = 0; k < p->types; k++) {
        const cot__program_type *t = &p->type[k];
        cot__type                z = {(cot_dtype)t->dtype, {t->ndim, {0}}};
        int64_t                  stride[COT_MAX_NDIM];
        if (t->ndim > COT_MAX_NDIM || (uint64_t)t->at + 2u * t->ndim > p->extents || !p->extents)
            return broken(c, "type %u has %u axes, of which %u extents and strides are there.", k, t->ndim,
                          t->at < p->extents ? p->extents - t->at : 0);
        memcpy(z.shape.dim, p->extent + t->at, t->ndim * sizeof *stride);
        if (!cot__legal_dtype(&c->caller, z.dtype) || !cot__legal_shape(&c->caller, &z.shape)) return false;
        cot__strides(t->ndim, z.shape.dim, stride);
        if (memcmp(stride, p->extent + t->at + t->ndim, t->ndim * sizeof *stride))
            return broken(c, "type %u has strides that are not row-major.", k);
    }
    return true;
}

static bool labels_are_sound(const checker *c) {
    const cot__program *p = c->p;
    if (!p->text_bytes || p->text[0] || p->text[p->text_bytes - 1])
        return broken(c, "the texts do not begin with the empty one and end with an end.");
    for (uint32_t k = 0; k < p->labels; k++)
        if (p->label[k].name >= p->text_bytes || p->label[k].file >= p->text_bytes)
            return broken(c, "label %u has a text that is not there.", k);
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_result(const cot__program *p, uint32_t k, uint32_t v) {
    const cot__operation *o = &p->operation[k];
    return k < p->operations && v >= o->result && v - o->result < o->results;
}

/* Is it made where it says? */
static bool value_is_sound(const checker *c, uint32_t v) {
    const cot__program *p = c->p;
    uint32_t            k = cot__value_maker(p, v);
    bool                made = false;
    if (p->value[v].type >= p->types) return broken(c, "%%%u has type %u, which is not there.", v, p->value[v].type);
    switch (cot__value_origin(p, v)) {
    case COT__FROM_OPERATION: made = is_result(p, k, v); break;
    case COT__FROM_INPUT: made = k < p->inputs && p->input[k] == v; break;
    case COT__FROM_CONSTANT: made = k < p->constants && p->constant[k].value == v; break;
    }
    return made || broken(c, "%%%u is not made where it says.", v);
}

static bool constant_is_sound(const checker *c, uint32_t k) {
    const cot__program *p = c->p;
    uint32_t            v = p->constant[k].value;
    uint64_t            at = p->constant[k].at;
    if (v >= p->values || p->value[v].from != ((uint32_t)COT__FROM_CONSTANT << 30 | k))
        return broken(c, "constant %u is %%%u, which is another.", k, v);
    cot__view x = cot__value_view(p, v);
    uint64_t  bytes = (uint64_t)(cot__view_size(&x) * cot__dtype_size(x.dtype));
    if (at % (bytes < 64 ? 8 : 64) || at > p->data_bytes || bytes > p->data_bytes - at)
        return broken(c, "constant %u takes %llu bytes from %llu on, of %llu.", k, (unsigned long long)bytes,
                      (unsigned long long)at, (unsigned long long)p->data_bytes);
    return true;
}

static bool values_are_sound(const checker *c) {
    const cot__program *p = c->p;
    for (uint32_t v = 0; v < p->values; v++)
        if (!value_is_sound(c, v)) return false;
    for (uint32_t k = 0; k < p->inputs; k++)
        if (p->input[k] >= p->values || p->value[p->input[k]].from != ((uint32_t)COT__FROM_INPUT << 30 | k))
            return broken(c, "input %u is %%%u, which is another.", k, p->input[k]);
    for (uint32_t k = 0; k < p->constants; k++)
        if (!constant_is_sound(c, k)) return false;
    for (uint32_t k = 0; k < p->outputs; k++)
        if (p->output[k] >= p->values) return broken(c, "output %u is %%%u, which is not there.", k, p->output[k]);
    return true;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Its lists lie within those of the program, and begin where those of the one before end. */
static bool lists_are_sound(const checker *c) {
    const cot__program *p = c->p;
    const cot__operation *end = &p->operation[p->operations];
    if (p->operation[0].operand || p->operation[0].body || end->operand != p->operands || end->body != p->bodies)
        return broken(c, "the lists of operands and bodies are not as long as the operations say.");
    for (uint32_t k = 0; k < p->operations; k++) {
        const cot__operation *o = &p->operation[k];
        if (o[1].operand < o->operand || o[1].operand > p->operands || o[1].body < o->body || o[1].body > p->bodies)
            return broken(c, "operation %u has operands or bodies of another.", k);
        if (o->label >= p->labels) return broken(c, "operation %u has label %u, which is not there.", k, o->label);
    }
    return true;
}

static bool record_is_sound(const checker *c, uint32_t k) {
    const cot__operation *o = &c->p->operation[k];
    if (!cot__operation_exists(o->op)) return broken(c, "operation %u has number %u, which does not exist.", k, o->op);
    const cot__op *record = cot__op_of(o->op);
    if (record->kind == KIND_SOURCE || record->kind == KIND_PICK || record->needs_tape)
        return broken(c, "operation %u, %s, cannot run in a program.", k, record->name);
    if (cot__operation_bodies(c->p, k) > record->bodies)
        return broken(c, "operation %u, %s, has %d bodies, where at most %d belong.", k, record->name,
                      cot__operation_bodies(c->p, k), record->bodies);
    return true;
}

static bool attributes_are_sound(const checker *c, uint32_t k) {
    const cot__program *p = c->p;
    uint32_t            at = p->operation[k].extra, head = sizeof(cot__attr) / 8;
    const cot__op      *record = cot__op_of(p->operation[k].op);
    if (at == COT__NO_VALUE)
        return !record->attrs || broken(c, "operation %u, %s, lacks its attributes.", k, record->name);
    if (at > p->attr_words || p->attr_words - at < head ||
        cot__operation_attr(p, k)->nints > p->attr_words - at - head)
        return broken(c, "operation %u, %s, has attributes that are not there.", k, record->name);
    const cot__attr *a = cot__operation_attr(p, k);
    bool bound = record->binds && c->p->bound;
    return (!a->nargs && !a->args && (bound || (!a->pointer && !a->pointer2))) ||
           broken(c, "operation %u, %s, has an address among its attributes.", k, record->name);
}

static bool operands_are_sound(const checker *c, uint32_t k) {
    const cot__program   *p = c->p;
    const cot__operation *o = &p->operation[k];
    const char           *name = cot__op_of(o->op)->name;
    const uint32_t       *x = cot__operation_operand(p, k);
    int                   n = cot__operation_operands(p, k), numbers = 0;
    for (int i = 0; i < n; i++) {
        numbers += x[i] == COT__NO_VALUE;
        if (x[i] != COT__NO_VALUE && x[i] >= o->result)
            return broken(c, "operand %d of operation %u, %s, is %%%u, which is not older.", i, k, name, x[i]);
    }
    if (!numbers) return true;
    if (numbers > 1 || n != 2 || o->op >= OP_structural || o->extra >= p->numbers)
        return broken(c, "operation %u, %s, has a number for an operand that is not there.", k, name);
    return true;
}

static bool results_are_sound(const checker *c, uint32_t k) {
    const cot__program   *p = c->p;
    const cot__operation *o = &p->operation[k];
    const char           *name = cot__op_of(o->op)->name;
    uint32_t              before = k ? o[-1].result + o[-1].results : 0;
    if (o->results < 1 || (o->results > COT__JOB_RESULTS && !cot__operation_bodies(p, k)))
        return broken(c, "operation %u, %s, has %u results; 1 to %d are possible.", k, name, o->results,
                      COT__JOB_RESULTS);
    if (o->result < before || o->result >= p->values || o->results > p->values - o->result)
        return broken(c, "operation %u, %s, makes %%%u, which is not its own.", k, name, o->result);
    for (uint32_t v = o->result; v < o->result + o->results; v++)
        if (p->value[v].from != k) return broken(c, "operation %u, %s, makes %%%u, which another makes.", k, name, v);
    return true;
}

enum { FEW = 8 };

static bool same_type(const cot__type *a, const cot__type *b) {
    bool same = a->dtype == b->dtype && a->shape.ndim == b->shape.ndim;
    for (int i = 0; same && i < a->shape.ndim; i++) same = a->shape.dim[i] == b->shape.dim[i];
    return same;
}

/* Does infer give the results, all of them, the types that they have? */
static bool results_are_inferred(const checker *c, uint32_t k, const cot__job *j) {
    const cot__program *p = c->p;
    uint32_t            v = p->operation[k].result, results = p->operation[k].results;
    int                 makes = cot__job_results(j);
    size_t              bytes = (size_t)makes * sizeof(cot__type);
    cot__type           few[COT__JOB_RESULTS], *z = makes <= COT__JOB_RESULTS ? few : cot__alloc(&p->al, bytes);
    if (!z) return broken(c, "out of memory: %zu bytes to check operation %u.", bytes, k);
    z[0] = cot__value_type(p, v);
    bool legal = cot__job_infer(j, z);
    if (legal && (uint32_t)makes != results)
        legal = broken(c, "operation %u, %s, has %u results; it makes %d.", k, j->record->name, results, makes);
    for (uint32_t i = 0; legal && i < results; i++) {
        cot__type have = cot__value_type(p, v + i);
        if (!same_type(&z[i], &have))
            legal = broken(c, "%%%u has another type than operation %u, %s, gives it.", v + i, k, j->record->name);
    }
    if (z != few) cot__free(&p->al, z, bytes);
    return legal;
}

static bool types_are_inferred(checker *c, uint32_t k) {
    const cot__program *p = c->p;
    size_t              n = (size_t)cot__operation_operands(p, k);
    cot__view           few[FEW], *x = n <= FEW ? few : cot__alloc(&p->al, n * sizeof *x);
    cot__job            j;
    double              number;
    if (!x) return broken(c, "out of memory: %zu bytes to check operation %u.", n * sizeof *x, k);
    c->caller.name = cot__operation_name(p, k);
    cot__operation_job(p, k, &c->caller, x, &number, &j);
    bool legal = results_are_inferred(c, k, &j);
    if (x != few) cot__free(&p->al, x, n * sizeof *x);
    return legal;
}

static bool operations_are_sound(checker *c) {
    for (uint32_t k = 0; k < c->p->operations; k++)
        if (!record_is_sound(c, k) || !results_are_sound(c, k) || !operands_are_sound(c, k) ||
            (c->p->operation[k].op >= OP_structural && !attributes_are_sound(c, k)))
            return false;
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool tables_are_sound(checker *c) {
    return types_are_sound(c) && labels_are_sound(c) && lists_are_sound(c) && operations_are_sound(c) &&
           values_are_sound(c);
}

/* Bodies are checked as programs of their own; they nest no deeper than they say. */
static bool bodies_are_sound(const checker *c) {
    for (uint32_t k = 0; k < c->p->bodies; k++) {
        const cot__program *body = c->p->body[k];
        if (!body || body->depth >= c->p->depth)
            return broken(c, "body %u is %s.", k, body ? "nested deeper than the program says" : "not there");
        if (!cot__program_check(body, c->why)) return false;
    }
    return true;
}

/* Whoever drops what nobody reads goes by what a program says of itself. */
static bool effects_are_sound(const checker *c) {
    bool has = false;
    for (uint32_t k = 0; k < c->p->operations; k++) has |= cot__operation_has_effect(c->p, k);
    return has == c->p->effects || broken(c, "it does not say rightly whether it has effects.");
}

bool cot__program_check(const cot__program *p, cot__text *why) {
    checker c = {.p = p, .why = why};
    c.caller = (cot__caller){"program", &c, hear, ignore, NULL};
    if (p->depth < 1 || p->depth > COT__PROGRAM_DEPTH)
        return broken(&c, "it says that its bodies nest %u deep; %d is the most.", p->depth, COT__PROGRAM_DEPTH);
    if (!tables_are_sound(&c) || !bodies_are_sound(&c)) return false;
    for (uint32_t k = 0; k < p->operations; k++)
        if (!types_are_inferred(&c, k)) return false;
    return effects_are_sound(&c);
}
