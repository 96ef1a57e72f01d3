/* same.c: common subexpressions: of two operations that are the same, the second goes, and its
 * readers read the first; so of two constants with the same elements.
 *
 * Two operations are the same if they have the same number, operands, plain number (by its bits),
 * attributes, asked types and bodies. Sums, products and comparisons for equality may have their
 * two operands in either order: IEEE gives the same result, but for which NaN it is. Operations
 * that draw random numbers are functions of their key. If an operation with an effect stands twice,
 * the second one finds nothing that the first has not found: it may go, too. Functions of the
 * user's never do, as nobody knows what else they do. */
#include "program/passes/rewrite.h"
#include "rules/elementwise_ids.h"

#include <string.h>

typedef struct table { cot__entries operations, constants; } table;

/* What is looked for: operation or constant k of the old program, its operands in r->x. */
typedef struct key { const cot__rewrite *r; uint32_t k; const cot__append *o; } key;

static bool may_be_merged(const cot__op *record) { return !record->opaque; }

static bool is_symmetric(int op) {
    return op == OP_add || op == OP_mul || op == OP_smul || op == OP_equal || op == OP_not_equal ||
           op == OP_logical_and || op == OP_logical_or;
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint32_t hash_attr(uint32_t hash, const cot__attr *a) {
    hash = cot__hash_more(hash, bits_of(a->number));
    for (uint32_t i = 0; i < a->nints; i++) hash = cot__hash_more(hash, (uint64_t)a->ints[i]);
    return hash;
}

static uint32_t hash_operation(const cot__append *o) {
    uint32_t hash = cot__hash_more((uint32_t)o->op, bits_of(o->number));
    if (is_symmetric(o->op)) {
        bool later = o->x[0] > o->x[1];
        hash = cot__hash_more(cot__hash_more(hash, o->x[later]), o->x[!later]);
    } else
        for (int i = 0; i < o->n; i++) hash = cot__hash_more(hash, o->x[i]);
    if (o->attr) hash = hash_attr(hash, o->attr);
    hash = cot__hash_more(hash, (uint64_t)o->asked->dtype);
    for (int i = 0; i < o->asked->shape.ndim; i++) hash = cot__hash_more(hash, (uint64_t)o->asked->shape.dim[i]);
    return hash;
}

static bool same_attributes(const cot__attr *a, const cot__attr *b) {
    if (!a || !b) return a == b;
    return a->nints == b->nints && bits_of(a->number) == bits_of(b->number) &&
           memcmp(a->ints, b->ints, a->nints * sizeof *a->ints) == 0;
}

static bool same_operands(const cot__append *o, const uint32_t *x, int n) {
    if (o->n != n) return false;
    if (n == 0 || memcmp(o->x, x, (size_t)n * sizeof *x) == 0) return true;
    return is_symmetric(o->op) && o->x[0] == x[1] && o->x[1] == x[0];
}

static bool same_bodies(const cot__append *o, const cot__program *p, uint32_t k) {
    if (o->bodies != cot__operation_bodies(p, k)) return false;
    for (int i = 0; i < o->bodies; i++)
        if (o->body[i] != p->body[p->operation[k].body + (uint32_t)i]) return false;
    return true;
}

static bool is_operation(const void *list, uint32_t k, const void *looked_for) {
    const cot__program   *p = list;
    const cot__operation *z = &p->operation[k];
    const key            *q = looked_for;
    const cot__append    *o = q->o;
    if (z->op != o->op || !same_operands(o, cot__operation_operand(p, k), cot__operation_operands(p, k))) return false;
    bool number = z->op < OP_structural && z->extra != COT__NO_VALUE;
    if (number && bits_of(cot__operation_number(p, k)) != bits_of(o->number)) return false;
    return same_attributes(cot__operation_attr(p, k), o->attr) && same_bodies(o, p, k) &&
           cot__same_type(p, z->result, q->r->from, q->r->from->operation[q->k].result);
}

/* Reads the results of operation `of` of the new program in place of those of operation k. */
static void read_other(cot__rewrite *r, uint32_t k, uint32_t of) {
    const cot__operation *old = &r->from->operation[k];
    for (uint32_t i = 0; i < old->results; i++) r->value[old->result + i] = r->to.p->operation[of].result + i;
    r->changes++;
}

static bool has_room(cot__rewrite *r, cot__entries *e) {
    bool room = cot__entries_reserve(e, &r->to.p->al);
    if (!room) cot__rewrite_no_memory(r, 2 * (size_t)e->size * sizeof *e->at);
    return room;
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    table      *t = r->edit->state;
    cot__type   asked;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    if (!may_be_merged(cot__op_of(o.op))) {
        cot__rewrite_put(r, k, &o);
        return;
    }
    if (!has_room(r, &t->operations)) return;
    uint32_t    hash = hash_operation(&o), number = r->to.p->operations;
    cot__entry *at = cot__entries_find(&t->operations, hash, is_operation, r->to.p, &(key){r, k, &o});
    if (at->number) {
        read_other(r, k, at->number - 1);
        return;
    }
    cot__rewrite_put(r, k, &o);
    cot__entries_put(&t->operations, at, hash, number);
}

/* ---- constants ------------------------------------------------------------------------------- */

static uint32_t hash_elements(const char *data, size_t bytes) {
    uint32_t hash = (uint32_t)bytes;
    uint64_t word = 0;
    for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = cot__hash_more(hash, word);
    }
    word = 0;
    if (bytes) memcpy(&word, data, bytes);
    return cot__hash_more(hash, word);
}

static bool is_constant(const void *list, uint32_t k, const void *looked_for) {
    const cot__program *p = list;
    const key          *q = looked_for;
    uint32_t            v = q->r->from->constant[q->k].value, w = p->constant[k].value;
    size_t              bytes = cot__value_bytes(q->r->from, v);
    return cot__same_type(p, w, q->r->from, v) &&
           (!bytes || memcmp(cot__constant_elements(p, k), cot__constant_elements(q->r->from, q->k), bytes) == 0);
}

static void edit_constant(cot__rewrite *r, uint32_t constant) {
    table   *t = r->edit->state;
    uint32_t v = r->from->constant[constant].value, number = r->to.p->constants;
    if (!has_room(r, &t->constants)) return;
    uint32_t    hash = hash_elements(cot__constant_elements(r->from, constant), cot__value_bytes(r->from, v));
    cot__entry *at = cot__entries_find(&t->constants, hash, is_constant, r->to.p, &(key){r, constant, NULL});
    if (at->number) {
        r->value[v] = r->to.p->constant[at->number - 1].value;
        r->changes++;
        return;
    }
    cot__rewrite_keep_constant(r, constant);
    cot__entries_put(&t->constants, at, hash, number);
}

cot__program *cot__pass_same(const cot__program *p, const cot__pass_options *o) {
    table         t = {{0}, {0}};
    cot__edit     how = {.state = &t, .constant = edit_constant, .operation = edit_operation};
    cot__program *made = cot__rewrite_run(p, o, &how);
    cot__entries_free(&t.operations, o->al);
    cot__entries_free(&t.constants, o->al);
    return made;
}
