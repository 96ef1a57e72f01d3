/* checks.c: what runs for what it looks at alone does nothing else.
 *
 * Nobody reads its results, but a position that does not exist is refused all the same. In its
 * place comes a take from an array of zeros, which is a view of one: it asks for the same
 * positions, for the same function, under the same name and source line, so it refuses in the same
 * words. What the operation read besides has one reader less, and may go: of a loss of which the
 * gradient alone is given out stays the look at its labels.
 *
 * A checkpoint or a condition of which nobody reads a result gives zeros: what its bodies compute
 * for nobody goes, and what they look at stays. */
#include "program/loop_form.h"
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

typedef struct finding {
    const cot__pass_options *o;
    uint8_t                 *read; /* of each value */
    cot__view               *x;    /* operands of one operation */
} finding;

static uint32_t most_operands(const cot__program *p) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < p->operations; k++)
        if ((uint32_t)cot__operation_operands(p, k) > most) most = (uint32_t)cot__operation_operands(p, k);
    return most;
}

static void find_read(const cot__program *p, uint8_t *read) {
    memset(read, 0, p->values);
    for (uint32_t k = 0; k < p->outputs; k++) read[p->output[k]] = 1;
    for (uint32_t k = 0; k < p->operands; k++)
        if (p->operand[k] != COT__NO_VALUE) read[p->operand[k]] = 1;
}

/* Is it what this pass makes? */
static bool is_least(const cot__program *p, uint32_t k) {
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]);
    return p->operation[k].op == OP_take && x.dtype == COT_BOOL && x.ndim == 1;
}

static bool is_read(const finding *f, const cot__operation *o) {
    bool read = false;
    for (uint32_t i = 0; i < o->results; i++) read |= f->read[o->result + i];
    return read;
}

static bool checks_alone(const finding *f, const cot__program *p, uint32_t k, cot__positions *asked) {
    const cot__operation *o = &p->operation[k];
    uint64_t              number[2];
    cot__job              j;
    if (is_read(f, o)) return false;
    const cot__op *record = o->op < OP_structural ? NULL : cot__op_of(o->op);
    if (!record || !record->positions || record->tell || is_least(p, k)) return false;
    cot__operation_job(p, k, f->o->caller, f->x, number, &j);
    cot__asker who = cot__asker_in(record, j.attr);
    return record->positions(&j, asked) && who != COT__FOR_ITSELF && cot__asker_wraps(who) == asked->wrap;
}

/* The positions as they are told: labels of rows without their last axis. */
static uint32_t told(cot__rewrite *r, uint32_t k, const cot__positions *asked) {
    uint32_t  v = cot__operation_operand(r->from, k)[asked->operand], x = r->value[v];
    cot__type type = cot__value_type(r->from, v);
    if (!asked->rows) return x;
    type.shape.ndim--;
    return cot__build_operation(&r->to, &(cot__append){.op = OP_reshape, .n = 1, .x = &x, .asked = &type,
                                                       .name = "reshape"});
}

static uint32_t zeros(cot__rewrite *r, const cot__type *type) {
    cot__type one = {type->dtype, {0}};
    void     *element;
    uint32_t  v = cot__build_constant(&r->to, &one, &element);
    if (v != COT__NO_VALUE) memset(element, 0, (size_t)cot__dtype_size(type->dtype));
    if (v == COT__NO_VALUE || type->shape.ndim == 0) return v;
    return cot__build_operation(&r->to, &(cot__append){.op = OP_broadcast_to, .n = 1, .x = &v, .asked = type,
                                                       .name = "broadcast_to"});
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void give_zeros(cot__rewrite *r) {
    for (uint32_t k = 0; k < r->from->outputs && !r->to.failed; k++) {
        cot__type type = cot__value_type(r->from, r->from->output[k]);
        uint32_t  z = zeros(r, &type);
        if (z != COT__NO_VALUE) cot__build_output(&r->to, z);
    }
    r->changes++;
}

static bool gives_constants(const cot__program *p) {
    bool all = true;
    for (uint32_t k = 0; k < p->outputs && all; k++) {
        uint32_t v = p->output[k];
        cot__made_by(p, v, OP_broadcast_to, &v);
        all = cot__value_origin(p, v) == COT__FROM_CONSTANT;
    }
    return all;
}

/* Steps of a loop read what the one before gave. */
static bool looks_alone(const finding *f, const cot__program *p, uint32_t k) {
    const cot__operation *o = &p->operation[k];
    if (o->op != OP_loop || is_read(f, o) || !cot__form_of(cot__operation_attr(p, k)).once) return false;
    bool idle = true;
    for (int b = 0; b < cot__operation_bodies(p, k); b++) idle &= gives_constants(p->body[o->body + (uint32_t)b]);
    return !idle;
}

static void look_alone(cot__rewrite *r, uint32_t k) {
    const finding *f = r->edit->state;
    cot__edit      how = {.outputs = give_zeros};
    cot__program  *body[2] = {NULL}; /* one that runs once has no test */
    cot__type      asked;
    cot__append    o = cot__rewrite_operation(r, k, &asked);
    for (int b = 0; b < o.bodies && !r->to.failed; b++)
        r->to.failed |= !(body[b] = cot__rewrite_run(o.body[b], f->o, &how));
    o.body = body;
    if (!r->to.failed) cot__rewrite_put(r, k, &o), r->changes++;
    for (int b = 0; b < 2; b++) cot__program_release(body[b]);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void edit_operation(cot__rewrite *r, uint32_t k) {
    union { cot__attr attr; char room[sizeof(cot__attr) + sizeof(int64_t)]; } a = {.attr = {.nints = 1}};
    cot__positions asked;
    cot__type      type;
    if (looks_alone(r->edit->state, r->from, k)) {
        look_alone(r, k);
        return;
    }
    if (!checks_alone(r->edit->state, r->from, k, &asked)) {
        cot__rewrite_keep(r, k);
        return;
    }
    const cot__op *record = cot__op_of(r->from->operation[k].op);
    cot__append    o = cot__operation_again(r->from, k, r->value, r->x, &type);
    uint32_t       x[2] = {zeros(r, &(cot__type){COT_BOOL, {1, {asked.extent}}}), 0};
    if (!r->to.failed) x[1] = told(r, k, &asked);
    if (r->to.failed) return;
    a.attr.number = cot__asker_in(record, o.attr);
    a.attr.ints[0] = 0;
    cot__build_operation(&r->to, &(cot__append){.op = OP_take, .n = 2, .x = x, .attr = &a.attr, .name = o.name,
                                                .file = o.file, .line = o.line});
    r->changes++;
}

cot__program *cot__pass_checks(const cot__program *p, const cot__pass_options *o) {
    size_t    bytes = most_operands(p) * sizeof(cot__view) + p->values;
    finding   f = {.o = o};
    cot__edit how = {.state = &f, .operation = edit_operation};
    if (!p->effects) return cot__program_share(p);
    f.x = cot__alloc(o->al, bytes);
    if (!f.x) {
        cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes);
        return NULL;
    }
    f.read = (uint8_t *)(f.x + most_operands(p));
    find_read(p, f.read);
    cot__program *made = cot__rewrite_run(p, o, &how);
    cot__free(o->al, f.x, bytes);
    return made;
}
