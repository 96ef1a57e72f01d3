/* direct.c: which outputs may be written where the caller wants them, and when. */
#include "program/direct.h"
#include "program/plan_parts.h"

#include <string.h>

/* Smaller ones are copied: to ask where all inputs lie takes longer. */
enum { LEAST_BYTES = 8192 };

/* ---- which ----------------------------------------------------------------------------------- */

/* Does the operation ask only whether an operand's elements are positions? Of which input, and
 * for which? */
static bool asks_positions(const cot__planner *q, uint32_t k, uint32_t *root, cot__positions *asked) {
    uint64_t number[2];
    cot__job j;
    if (q->p->operation[k].op < OP_structural || !cot__op_of(q->p->operation[k].op)->positions) return false;
    cot__operation_job(q->p, k, q->caller, q->x, number, &j);
    if (j.record->tell || !j.record->positions(&j, asked)) return false;
    uint32_t v = cot__operation_operand(q->p, k)[asked->operand];
    if (v == COT__NO_VALUE) return false;
    *root = q->plan->root[v];
    return cot__value_origin(q->p, *root) == COT__FROM_INPUT; /* nobody writes over its elements */
}

/* What is known of the elements of a value: 0: nothing. */
typedef struct known { int64_t extent; bool wrap; } known;

/* After how many operations the last effect has happened that may still refuse: not the check of
 * positions that were checked before, as those of an embedding's gradient were. */
static uint32_t after_effects(const cot__planner *q) {
    const cot__program *p = q->p;
    known              *of = p->effects ? cot__alloc(&q->plan->al, p->values * sizeof *of) : NULL;
    uint32_t            last = 0, root;
    cot__positions      asked;
    if (of) memset(of, 0, p->values * sizeof *of);
    for (uint32_t k = 0; k < p->operations; k++) {
        if (!cot__operation_has_effect(p, k)) continue;
        bool asks = of && asks_positions(q, k, &root, &asked);
        if (asks && of[root].extent > 0 && of[root].extent <= asked.extent && (asked.wrap || !of[root].wrap)) continue;
        last = k + 1;
        bool whole = asks && cot__plan_is_whole(q, cot__operation_operand(p, k)[asked.operand]);
        if (whole) of[root] = (known){asked.extent, asked.wrap};
    }
    if (of) cot__free(&q->plan->al, of, p->values * sizeof *of);
    return last;
}

static bool is_large(const cot__planner *q, uint32_t v) {
    return !cot__in_slot(q->plan, v) && cot__planned_bytes(q->p, v) >= LEAST_BYTES;
}

/* Is the output all of a result that something makes from nothing, row-major? */
static bool can_be_direct(const cot__planner *q, uint32_t v, uint32_t effects) {
    const cot__plan *plan = q->plan;
    uint32_t         root = plan->root[v];
    if (!is_large(q, v) || cot__value_origin(q->p, root) != COT__FROM_OPERATION) return false;
    uint32_t k = cot__value_maker(q->p, root);
    int      op = q->p->operation[k].op;
    bool     by_job = plan->how[k] != COT__BY_GROUP;
    if (k < effects || (by_job && op >= OP_structural && cot__op_of(op)->in_place)) return false;
    return plan->stride[v] == COT__NO_VALUE && (root == v || plan->place[v] == 0) &&
           cot__planned_bytes(q->p, v) == cot__planned_bytes(q->p, root);
}

static void find(cot__planner *q, uint32_t effects) {
    cot__directs *d = &q->plan->directs;
    for (uint32_t i = 0; i < q->p->outputs; i++) {
        uint32_t v = q->p->output[i], root = q->plan->root[v], k = cot__value_maker(q->p, root);
        if (!can_be_direct(q, v, effects) || d->of[root] != COT__NO_VALUE) continue;
        bool in_group = q->plan->how[k] == COT__BY_GROUP;
        d->of[root] = d->count;
        d->one[d->count++] = (cot__direct){root, i, k,
                                           in_group ? q->plan->fusion.group[q->plan->fusion.of[k]].first : k,
                                           cot__planned_bytes(q->p, v), 0, COT__NO_VALUE};
    }
}

/* ---- what is read when ----------------------------------------------------------------------- */

/* Does operation k read, for element i of its result, element i of the operand's root alone? One on
 * rows, of a group, reads the row, but all that a block has before the next member writes. */
static bool reads_straight(const cot__planner *q, uint32_t k, uint32_t v) {
    uint8_t how = q->plan->how[k];
    if (how != COT__BY_GROUP && (how != COT__BY_JOB || q->p->operation[k].op >= OP_structural)) return false;
    if (how == COT__BY_GROUP && cot__plan_reads_more(q, k)) return false;
    return cot__plan_is_whole(q, v) &&
           cot__planned_bytes(q->p, v) == cot__planned_bytes(q->p, q->p->operation[k].result);
}

static cot__last_read not_read(const cot__planner *q, uint32_t v) {
    cot__view      x = cot__plan_view(q->plan, v);
    cot__last_read r = {COT__NO_VALUE, COT__NO_VALUE, COT__NO_VALUE, 0, 0};
    if (cot__view_size(&x) == 0) return r;
    r.high = cot__dtype_size(x.dtype);
    for (int i = 0; i < x.ndim; i++) {
        int64_t far = (x.shape[i] - 1) * x.stride[i] * cot__dtype_size(x.dtype);
        if (far < 0) r.low += far;
        else r.high += far;
    }
    return r;
}

static void find_reads(cot__planner *q) {
    const cot__program *p = q->p;
    cot__last_read     *read = q->plan->directs.read;
    for (uint32_t i = 0; i < p->inputs; i++) read[i] = not_read(q, p->input[i]);
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        if (q->plan->how[k] == COT__BY_VIEW) continue;
        for (int i = 0; i < cot__operation_operands(p, k); i++) {
            uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : q->plan->root[x[i]];
            if (root == COT__NO_VALUE || cot__value_origin(p, root) != COT__FROM_INPUT) continue;
            cot__last_read *r = &read[cot__value_maker(p, root)];
            r->any = k;
            if (!reads_straight(q, k, x[i])) r->scattered = k;
            else if (cot__rows_read(p, k)) r->rows = k;
        }
    }
    for (uint32_t i = 0; i < p->outputs; i++) {
        uint32_t root = q->plan->root[p->output[i]];
        if (cot__value_origin(p, root) == COT__FROM_INPUT)
            read[cot__value_maker(p, root)].any = read[cot__value_maker(p, root)].scattered = p->operations;
    }
}

bool cot__directs_open(cot__planner *q) {
    const cot__program *p = q->p;
    cot__directs       *d = &q->plan->directs;
    bool                any = false;
    for (uint32_t i = 0; i < p->outputs; i++) any |= is_large(q, p->output[i]);
    if (!any || !q->plan->slots) return true;
    d->of = cot__alloc(&q->plan->al, p->values * sizeof *d->of);
    d->one = cot__alloc(&q->plan->al, p->outputs * sizeof *d->one);
    d->read = cot__alloc(&q->plan->al, p->inputs * sizeof *d->read);
    if (!d->of || !d->one || !d->read)
        return cot__refuse(q->caller, COT_MEMORY, "out of memory: the plan of %u outputs", p->outputs);
    for (uint32_t v = 0; v < p->values; v++) d->of[v] = COT__NO_VALUE;
    find(q, after_effects(q));
    find_reads(q);
    return true;
}

void cot__directs_close(cot__directs *d, const cot__program *p, const cot_allocator *al) {
    cot__free(al, d->of, p->values * sizeof *d->of);
    cot__free(al, d->one, p->outputs * sizeof *d->one);
    cot__free(al, d->read, p->inputs * sizeof *d->read);
    *d = (cot__directs){0};
}

/* ---- when ------------------------------------------------------------------------------------ */

static bool overlap(uintptr_t a, int64_t a_bytes, uintptr_t b, int64_t b_bytes) {
    return a_bytes > 0 && b_bytes > 0 && a < b + (uintptr_t)b_bytes && b < a + (uintptr_t)a_bytes;
}

bool cot__bytes_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
    return overlap((uintptr_t)a, a_bytes, (uintptr_t)b, b_bytes);
}

static bool is_before(uint32_t read, uint32_t k) { return read == COT__NO_VALUE || read < k; }

/* May the output lie just where input i lies? */
static bool may_take_place(const cot__program *p, const cot__directs *d, const cot__direct *one, uint32_t i) {
    const cot__last_read *r = &d->read[i];
    return p->value[p->input[i]].type == p->value[one->root].type && is_before(r->scattered, one->first) &&
           (r->any == COT__NO_VALUE || r->any <= one->at) && r->rows != one->at;
}

bool cot__may_take_place(const cot__program *p, const cot__directs *d, uint32_t one, uint32_t i) {
    return may_take_place(p, d, &d->one[one], i);
}

/* Is input i read no longer when the output is written; or element by element, up to there? */
static bool is_spared(const cot__program *p, const cot__directs *d, const cot__direct *one, uint32_t i,
                      const void *input, const void *output) {
    const cot__last_read *r = &d->read[i];
    if (is_before(r->any, one->first)) return true;
    if (!overlap((uintptr_t)input + (uintptr_t)r->low, r->high - r->low, (uintptr_t)output, one->bytes)) return true;
    return input == output && may_take_place(p, d, one, i);
}

static bool is_taken(const cot__directs *d, uint32_t input) {
    for (uint32_t k = 0; k < d->count; k++)
        if (d->one[k].donor == input) return true;
    return false;
}

/* An operand of the operation that makes it is taken first: that is where a step that changes its
 * parameters leaves them. */
uint32_t cot__direct_donor(const cot__planner *q, uint32_t which) {
    const cot__directs *d = &q->plan->directs;
    const cot__direct  *one = &d->one[which];
    const uint32_t     *x = cot__operation_operand(q->p, one->at);
    uint32_t            found = COT__NO_VALUE;
    for (uint32_t i = 0; q->lent.donated && i < q->p->inputs; i++) {
        bool strided = q->plan->stride[q->p->input[i]] != COT__NO_VALUE;
        if (!q->lent.donated[i] || strided || is_taken(d, i) || !may_take_place(q->p, d, one, i)) continue;
        for (int k = 0; k < cot__operation_operands(q->p, one->at); k++)
            if (x[k] == q->p->input[i]) return i;
        if (found == COT__NO_VALUE) found = i;
    }
    return found;
}

bool cot__may_write_there(const cot__program *p, const cot__directs *d, uint32_t which, const void *to,
                          const void *const *inputs, void *const *outputs) {
    const cot__direct *one = &d->one[which];
    if (!to) return false;
    for (uint32_t i = 0; i < p->inputs; i++)
        if (!is_spared(p, d, one, i, inputs[i], to)) return false;
    for (uint32_t i = 0; outputs && i < p->outputs; i++) {
        cot__view v = cot__value_view(p, p->output[i]);
        if ((i != one->output || to != outputs[i]) && overlap((uintptr_t)to, one->bytes, (uintptr_t)outputs[i],
                                        outputs[i] ? cot__view_size(&v) * cot__dtype_size(v.dtype) : 0))
            return false;
    }
    return true;
}
