/* loops.c: of two loops that take the same steps, one that gives out more is enough.
 *
 * A gradient through a loop runs it twice: once for what it carries at the end, and once more, with
 * the same steps, for the states that the way back reads. The second runs in place of the first,
 * and the readers of both read its results.
 *
 * They take the same steps if they have the same operands and attributes, but for what they give
 * out, and bodies of the same operations; and the outputs of the first are the first of the
 * second. Loops that end by a test or have a choice stay, and so do those that hold functions of
 * the user's. What is given out lives from the first loop on, so it must be small, that of all
 * loops of a program together; and a memory limit, which could not undo it, has something done
 * again in the program without this pass.
 *
 * Where the steps look at data, both loops see the same and find the same, in the same step: what
 * the second would refuse or note first, the first has refused or noted before. So one of them is
 * enough, if it runs where the first stood, and says it as the first does: under its name, with the
 * source lines of its body. */
#include "program/loop_form.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

enum {
    WINDOW = 32, /* loops before one with which it is compared */
    SMALL  = 1 << 20, /* bytes that may live for longer, of all loops */
};

/* ---- bodies ---------------------------------------------------------------------------------- */

static bool same_words(const void *a, const void *b, uint32_t count, size_t size) {
    return count == 0 || memcmp(a, b, count * size) == 0;
}

static bool same_constants(const cot__program *p, const cot__program *q) {
    bool same = p->constants == q->constants;
    for (uint32_t k = 0; same && k < p->constants; k++) {
        size_t bytes = cot__value_bytes(p, p->constant[k].value);
        same = p->constant[k].value == q->constant[k].value &&
               cot__same_type(p, p->constant[k].value, q, q->constant[k].value) &&
               (!bytes || memcmp(cot__constant_elements(p, k), cot__constant_elements(q, k), bytes) == 0);
    }
    return same;
}

/* All but labels, which tell where an operation was recorded. */
static bool is_same_operation(const cot__operation *a, const cot__operation *b) {
    return a->op == b->op && a->results == b->results && a->result == b->result && a->operand == b->operand &&
           a->body == b->body && a->extra == b->extra;
}

static bool same_operations(const cot__program *p, const cot__program *q) {
    bool same = p->operations == q->operations && p->operands == q->operands && p->numbers == q->numbers &&
                p->attr_words == q->attr_words && p->bodies == q->bodies;
    for (uint32_t k = 0; same && k < p->operations; k++) same = is_same_operation(&p->operation[k], &q->operation[k]);
    return same && same_words(p->operand, q->operand, p->operands, sizeof *p->operand) &&
           same_words(p->number, q->number, p->numbers, sizeof *p->number) &&
           same_words(p->attr, q->attr, p->attr_words, sizeof *p->attr);
}

/* Tables of types are in the order in which values are made. */
static bool same_values(const cot__program *p, const cot__program *q) {
    return p->inputs == q->inputs && p->values == q->values && p->types == q->types && p->extents == q->extents &&
           same_words(p->input, q->input, p->inputs, sizeof *p->input) &&
           same_words(p->value, q->value, p->values, sizeof *p->value) &&
           same_words(p->type, q->type, p->types, sizeof *p->type) &&
           same_words(p->extent, q->extent, p->extents, sizeof *p->extent);
}

/* Bodies nest no deeper than COT__PROGRAM_DEPTH, so this may call itself. */
static bool same_steps(const cot__program *p, const cot__program *q) {
    bool same = p == q || (same_values(p, q) && same_constants(p, q) && same_operations(p, q));
    for (uint32_t b = 0; same && p != q && b < p->bodies; b++)
        same = p->body[b]->outputs == q->body[b]->outputs &&
               same_words(p->body[b]->output, q->body[b]->output, p->body[b]->outputs, sizeof *p->output) &&
               same_steps(p->body[b], q->body[b]);
    return same;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static const cot__program *body_of(const cot__program *p, uint32_t k) { return p->body[p->operation[k].body]; }

/* Its results are in the order of its outputs if all are floats. */
static bool is_plain(const cot__program *p, uint32_t k) {
    if (p->operation[k].op != OP_loop || cot__operation_bodies(p, k) != 1) return false;
    const cot__program *body = body_of(p, k);
    cot__form           f = cot__form_of(cot__operation_attr(p, k));
    bool                plain = !f.chosen && !f.tests && !f.once && !body->bound;
    for (uint32_t i = 0; plain && i < body->outputs; i++) plain = cot__form_is_float(body, (int)i);
    return plain;
}

static bool same_attributes(const cot__attr *a, const cot__attr *b) {
    bool same = a->nints == b->nints && memcmp(&a->number, &b->number, sizeof a->number) == 0;
    for (uint32_t i = 0; same && i < a->nints; i++) same = i == COT__LOOP_NYS || a->ints[i] == b->ints[i];
    return same;
}

static size_t bytes_of_results(const cot__program *p, uint32_t k) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < p->operation[k].results; i++) bytes += cot__value_bytes(p, p->operation[k].result + i);
    return bytes;
}

/* What would live for longer, if loop j ran in place of loop k. */
static size_t bytes_more(const cot__program *p, uint32_t j, uint32_t k) {
    return bytes_of_results(p, j) - bytes_of_results(p, k);
}

/* Does loop j make all that loop k makes, and at most so many bytes more? */
static bool gives_more(const cot__program *p, uint32_t j, uint32_t k, size_t most) {
    const cot__program *all = body_of(p, j), *some = body_of(p, k);
    int                 n = cot__operation_operands(p, k);
    return n == cot__operation_operands(p, j) &&
           same_words(cot__operation_operand(p, j), cot__operation_operand(p, k), (uint32_t)n, sizeof *p->operand) &&
           same_attributes(cot__operation_attr(p, j), cot__operation_attr(p, k)) && some->outputs <= all->outputs &&
           same_words(all->output, some->output, some->outputs, sizeof *some->output) && same_steps(all, some) &&
           bytes_more(p, j, k) <= most;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* Of each operation: itself, or the other one of the two. *longer: the bytes that live for
 * longer. */
static bool find_pairs(const cot__program *p, uint32_t *other, size_t *longer) {
    uint32_t recent[WINDOW], count = 0;
    bool     found = false;
    for (uint32_t k = 0; k < p->operations; k++) other[k] = k;
    for (uint32_t j = 0; j < p->operations; j++) {
        if (!is_plain(p, j)) continue;
        for (uint32_t i = 0; i < (count < WINDOW ? count : WINDOW) && other[j] == j; i++) {
            uint32_t k = recent[i];
            if (other[k] != k || !gives_more(p, j, k, SMALL - *longer)) continue;
            other[j] = k, other[k] = j, found = true;
            *longer += bytes_more(p, j, k);
        }
        recent[count++ % WINDOW] = j;
    }
    return found;
}

/* Of each operation the other one, or itself. */
typedef struct merging { const cot__pass_options *o; uint32_t *other; } merging;

static void give_all(cot__rewrite *r) {
    const cot__program *all = r->edit->state;
    for (uint32_t i = 0; i < all->outputs; i++) cot__build_output(&r->to, r->value[all->output[i]]);
    r->changes++;
}

/* The body of loop k, which gives out what that of loop j does. */
static cot__program *merged_body(const cot__rewrite *r, uint32_t k, uint32_t j) {
    const merging *m = r->edit->state;
    cot__edit      how = {.state = (void *)(uintptr_t)body_of(r->from, j), .outputs = give_all};
    return cot__rewrite_run(body_of(r->from, k), m->o, &how);
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    const merging        *m = r->edit->state;
    const cot__operation *some = &r->from->operation[k];
    uint32_t              j = m->other[k];
    cot__type             asked;
    if (j < k) return; /* it stands where that one was */
    cot__append   o = cot__rewrite_operation(r, k, &asked);
    cot__program *body = j > k ? merged_body(r, k, j) : NULL;
    if (j > k && !body) {
        r->to.failed = true;
        return;
    }
    if (body) o.attr = cot__operation_attr(r->from, j), o.body = &body;
    cot__rewrite_put(r, j, &o);
    cot__program_release(body);
    for (uint32_t i = 0; j > k && i < some->results; i++)
        r->value[some->result + i] = r->value[r->from->operation[j].result + i];
    r->changes += j > k;
}

cot__program *cot__pass_loops(const cot__program *p, const cot__pass_options *o) {
    size_t  bytes = p->operations * sizeof(uint32_t), none = 0;
    merging m = {o, p->bodies > 1 ? cot__alloc(o->al, bytes) : NULL};
    if (p->bodies <= 1) return cot__program_share(p);
    if (!m.other) {
        cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes);
        return NULL;
    }
    cot__edit     how = {.state = &m, .operation = edit_operation};
    bool          found = find_pairs(p, m.other, o->longer ? o->longer : &none);
    cot__program *made = found ? cot__rewrite_run(p, o, &how) : cot__program_share(p);
    cot__free(o->al, m.other, bytes);
    return made;
}
