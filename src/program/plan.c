/* plan.c: three passes over the operations: how each is done and which values are aliases; how long
 * each value is read; where it lies. */
#include "program/plan_parts.h"
#include "backend/elements.h"
#include "backend/job_run.h"
#include "rules/elementwise_ids.h"

#include <string.h>

static bool no_memory(const cot__planner *q) {
    return cot__refuse(q->caller, COT_MEMORY, "out of memory: the plan of %u operations", q->p->operations);
}

/* ---- questions ------------------------------------------------------------------------------- */

bool cot__in_slot(const cot__plan *plan, uint32_t v) {
    return plan->slots && plan->p->type[plan->p->value[v].type].ndim == 0;
}

bool cot__in_arena(const cot__plan *plan, uint32_t root) {
    cot__origin from = cot__value_origin(plan->p, root);
    if (from == COT__FROM_OPERATION || cot__in_slot(plan, root)) return true;
    return from == COT__FROM_CONSTANT && !cot__on_host(plan->backend);
}

cot__view cot__plan_view(const cot__plan *plan, uint32_t value) {
    cot__view v = cot__value_view(plan->p, value);
    if (plan->stride[value] != COT__NO_VALUE) v.stride = plan->strides + plan->stride[value];
    return v;
}

int64_t cot__planned_bytes(const cot__program *p, uint32_t value) {
    cot__view v = cot__value_view(p, value);
    return cot__view_size(&v) * cot__dtype_size(v.dtype);
}

/* Its operands are slots of one float dtype (the condition of `where` is a bool). */
static bool is_scalar(const cot__planner *q, uint32_t k) {
    const cot__operation *o = &q->p->operation[k];
    const uint32_t       *x = cot__operation_operand(q->p, k);
    if (!q->plan->slots || o->op >= OP_structural || !cot__in_slot(q->plan, o->result)) return false;
    for (int i = o->op == OP_where; i < cot__operation_operands(q->p, k); i++) {
        if (x[i] == COT__NO_VALUE) continue;
        cot_dtype dtype = cot__value_view(q->p, x[i]).dtype;
        if (dtype != COT_F64 && dtype != COT_F32) return false;
    }
    return true;
}

/* ---- how, and aliases ------------------------------------------------------------------------ */

static bool add_strides(cot__planner *q, uint32_t v, int ndim, const int64_t *stride) {
    cot__plan *plan = q->plan;
    uint32_t   need = plan->strides_count + (uint32_t)ndim, room = plan->strides_room ? plan->strides_room : 64;
    while (room < need) room *= 2;
    if (room > plan->strides_room) {
        void *more = cot__resize(&plan->al, plan->strides, plan->strides_room * sizeof *stride, room * sizeof *stride);
        if (!more) return no_memory(q);
        plan->strides = more;
        plan->strides_room = room;
    }
    memcpy(plan->strides + plan->strides_count, stride, (size_t)ndim * sizeof *stride);
    plan->stride[v] = plan->strides_count;
    plan->strides_count = need;
    return true;
}

static bool set_strides(cot__planner *q, uint32_t v, const int64_t *stride) {
    cot__view x = cot__value_view(q->p, v);
    if (x.ndim == 0 || memcmp(stride, x.stride, (size_t)x.ndim * sizeof *stride) == 0) return true;
    return add_strides(q, v, x.ndim, stride);
}

static cot__job job_of(const cot__planner *q, uint32_t k, void *number) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    cot__job        j;
    cot__operation_job(q->p, k, q->caller, q->x, number, &j);
    j.backend = q->plan->backend;
    j.z = cot__value_view(q->p, q->p->operation[k].result);
    for (int i = 0; i < j.n; i++)
        if (x[i] != COT__NO_VALUE) q->x[i] = cot__plan_view(q->plan, x[i]);
    return j;
}

/* The result as a view of operand 0, if it is one. */
static bool try_view(cot__planner *q, uint32_t k, bool *is_view) {
    cot__plan     *plan = q->plan;
    const cot__op *record = cot__op_of(q->p->operation[k].op);
    uint32_t       z = q->p->operation[k].result, of;
    int64_t        stride[COT_MAX_NDIM], offset = 0;
    double         number;
    *is_view = false;
    if (q->p->operation[k].op < OP_structural || !record->view) return true;
    cot__job  j = job_of(q, k, &number);
    cot__type type = cot__value_type(q->p, z);
    if (!record->view(&j, &type, stride, &offset)) return true;
    *is_view = true;
    of = cot__operation_operand(q->p, k)[0];
    offset = (plan->root[of] == of ? 0 : plan->place[of]) + offset * cot__dtype_size(j.x[0].dtype);
    /* what is in a slot already stays there */
    bool moves = cot__in_slot(plan, z) && !cot__in_slot(plan, plan->root[of]);
    plan->how[k] = moves ? COT__BY_MOVE : COT__BY_VIEW;
    if (moves) return plan->extra[k] = offset, true;
    plan->root[z] = plan->root[of];
    plan->place[z] = offset;
    return set_strides(q, z, stride);
}

/* Workspaces are ranges, too; the plan notes their bytes first. */
static bool plan_job(cot__planner *q, uint32_t k) {
    double   number;
    cot__job j = job_of(q, k, &number);
    int64_t  bytes = cot__job_workspace(&j);
    if (bytes < 0)
        return cot__refuse(&(cot__caller){cot__operation_name(q->p, k), q->caller->to, q->caller->fail,
                                          q->caller->note, NULL},
                           COT_MEMORY, "out of memory: the workspace would be larger than any memory");
    q->plan->how[k] = COT__BY_JOB;
    q->plan->workspace[k] = bytes > 0 ? bytes : -1;
    if (bytes > q->plan->most_workspace) q->plan->most_workspace = bytes;
    return true;
}

static bool choose_ways(cot__planner *q) {
    for (uint32_t k = 0; k < q->p->operations; k++) {
        bool is_view;
        q->plan->workspace[k] = q->plan->extra[k] = -1;
        if (q->plan->fusion.of && q->plan->fusion.of[k] != COT__NO_VALUE) {
            if (cot__is_product(q->p, k) && !plan_job(q, k)) return false;
            q->plan->how[k] = COT__BY_GROUP;
            continue;
        }
        if (is_scalar(q, k)) {
            q->plan->how[k] = COT__BY_SCALARS;
            continue;
        }
        if (!try_view(q, k, &is_view) || (!is_view && !plan_job(q, k))) return false;
    }
    return true;
}

/* ---- what lies in a file meanwhile ----------------------------------------------------------- */

static bool is_given(const cot__planner *q, uint32_t root) {
    uint32_t k = 0;
    while (k < q->p->outputs && q->plan->root[q->p->output[k]] != root) k++;
    return k < q->p->outputs;
}

static bool is_fetched(const cot__planner *q, uint32_t k) {
    if (!cot__is_fetch(q->p, k)) return false;
    uint32_t x = cot__operation_operand(q->p, k)[0];
    return q->plan->root[x] == x && cot__value_origin(q->p, x) == COT__FROM_OPERATION && !cot__in_slot(q->plan, x) &&
           !is_given(q, q->p->operation[k].result);
}

static void note_fetch(cot__planner *q, uint32_t k) {
    cot__plan *plan = q->plan;
    uint32_t  *as = &plan->stored_as[cot__operation_operand(q->p, k)[0]];
    if (*as == COT__NO_VALUE) plan->stored[*as = plan->stores++].value = (uint32_t)(as - plan->stored_as);
    plan->how[k] = COT__BY_FETCH;
    plan->extra[k] = plan->fetches++;
}

static bool find_fetches(cot__planner *q) {
    cot__plan *plan = q->plan;
    uint32_t   n = 0;
    if (!q->lent.spill || !plan->slots) return true;
    for (uint32_t k = 0; k < q->p->operations; k++) n += is_fetched(q, k);
    if (!n) return true;
    plan->stored_as = cot__alloc(&plan->al, q->p->values * sizeof *plan->stored_as);
    plan->stored = cot__alloc(&plan->al, q->p->operations * sizeof *plan->stored);
    if (!plan->stored_as || !plan->stored) return no_memory(q);
    for (uint32_t v = 0; v < q->p->values; v++) plan->stored_as[v] = COT__NO_VALUE;
    for (uint32_t k = 0; k < q->p->operations; k++)
        if (is_fetched(q, k)) note_fetch(q, k);
    return true;
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

static void find_last_readers(cot__planner *q) {
    const cot__program *p = q->p;
    for (uint32_t v = 0; v < p->values; v++)
        q->last[v] = cot__value_origin(p, v) == COT__FROM_OPERATION ? cot__value_maker(p, v) : 0;
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        for (int i = 0; i < cot__operation_operands(p, k) && q->plan->how[k] != COT__BY_FETCH; i++)
            if (x[i] != COT__NO_VALUE) q->last[q->plan->root[x[i]]] = k;
    }
    for (uint32_t k = 0; k < p->outputs; k++) q->last[q->plan->root[p->output[k]]] = p->operations;
    for (uint32_t k = 0; k < q->plan->stores; k++) q->plan->stored[k].until = q->last[q->plan->stored[k].value];
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint32_t take_slot(cot__planner *q) { return q->free_slots ? q->free_slot[--q->free_slots] : q->slots++; }

static bool give_slot(cot__planner *q, uint32_t slot) {
    if (q->free_slots == q->free_room) {
        uint32_t room = q->free_room ? 2 * q->free_room : 64;
        void    *more = cot__resize(&q->plan->al, q->free_slot, q->free_room * sizeof slot, room * sizeof slot);
        if (!more) return no_memory(q);
        q->free_slot = more;
        q->free_room = room;
    }
    q->free_slot[q->free_slots++] = slot;
    return true;
}

bool cot__plan_take_range(cot__planner *q, int64_t bytes, int64_t *at) {
    int64_t top = q->ranges.top;
    *at = cot__ranges_take(&q->ranges, cot__range_bytes(bytes));
    if (q->ranges.top > top) q->plan->fullest = q->at;
    return *at >= 0 || no_memory(q);
}

bool cot__plan_give_range(cot__planner *q, int64_t at, int64_t bytes) {
    return cot__ranges_give(&q->ranges, at, cot__range_bytes(bytes)) || no_memory(q);
}

/* Is it made in an input that was donated, or where the caller wants it? */
static bool take_lent(cot__planner *q, uint32_t v) {
    uint32_t one = cot__direct_of(&q->plan->directs, v), input;
    if (one == COT__NO_VALUE) return false;
    if ((input = cot__direct_donor(q, one)) == COT__NO_VALUE) return q->plan->lends_outputs;
    q->plan->directs.one[one].donor = input;
    return true;
}

bool cot__plan_is_callers(const cot__planner *q, uint32_t v) {
    return q->plan->lends_outputs && cot__direct_of(&q->plan->directs, v) != COT__NO_VALUE;
}

bool cot__plan_take_memory(cot__planner *q, uint32_t v) {
    if (take_lent(q, v)) return true;
    if (!cot__in_slot(q->plan, v)) return cot__plan_take_range(q, cot__planned_bytes(q->p, v), &q->plan->place[v]);
    q->plan->place[v] = 8 * (int64_t)take_slot(q);
    return true;
}

/* Gives back the memory of a root that operation k reads last, once. */
bool cot__plan_let_go(cot__planner *q, uint32_t root, uint32_t k) {
    if (q->last[root] != k || !cot__in_arena(q->plan, root)) return true;
    if (cot__value_origin(q->p, root) == COT__FROM_CONSTANT) return true;
    q->last[root] = COT__NO_VALUE;
    if (cot__in_slot(q->plan, root)) return give_slot(q, (uint32_t)(q->plan->place[root] / 8));
    return cot__plan_give_range(q, q->plan->place[root], cot__planned_bytes(q->p, root));
}

bool cot__plan_let_operands_go(cot__planner *q, uint32_t k) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    for (int i = 0; i < cot__operation_operands(q->p, k); i++)
        if (x[i] != COT__NO_VALUE && !cot__plan_let_go(q, q->plan->root[x[i]], k)) return false;
    return true;
}

/* May the result of operation k lie where its operand i lies? Nobody reads it later, no file takes
 * it, it has the bytes of the result, and no other operand is another view of it. */
static bool may_take_over(const cot__planner *q, uint32_t k, int i) {
    const cot__plan *plan = q->plan;
    const uint32_t  *x = cot__operation_operand(q->p, k);
    uint32_t         z = q->p->operation[k].result;
    if (x[i] == COT__NO_VALUE || plan->root[x[i]] != x[i] || q->last[x[i]] != k) return false;
    if (cot__plan_is_callers(q, z) || cot__is_in_file(plan, x[i])) return false;
    if (cot__value_origin(q->p, x[i]) != COT__FROM_OPERATION || cot__in_slot(plan, x[i])) return false;
    if (q->p->value[x[i]].type != q->p->value[z].type) return false;
    for (int other = 0; other < cot__operation_operands(q->p, k); other++)
        if (x[other] != COT__NO_VALUE && x[other] != x[i] && plan->root[x[other]] == x[i]) return false;
    return true;
}

bool cot__plan_take_over(cot__planner *q, uint32_t k, int i) {
    uint32_t x = cot__operation_operand(q->p, k)[i];
    if (!may_take_over(q, k, i)) return false;
    q->plan->place[q->p->operation[k].result] = q->plan->place[x];
    q->last[x] = COT__NO_VALUE;
    return true;
}

bool cot__plan_take_more(cot__planner *q, uint32_t k) {
    const cot__operation *o = &q->p->operation[k];
    for (uint32_t i = 1; i < o->results; i++)
        if (!cot__plan_take_memory(q, o->result + i)) return false;
    return true;
}

bool cot__plan_let_results_go(cot__planner *q, uint32_t k) {
    const cot__operation *o = &q->p->operation[k];
    for (uint32_t i = 0; i < o->results; i++)
        if (!cot__plan_let_go(q, o->result + i, k)) return false;
    return true;
}

/* An operation in place finds the elements of operand 0 in its result, and reads its other operands
 * while it writes. */
static bool place_in_place(cot__planner *q, uint32_t k) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    bool            again = false;
    for (int i = 1; i < cot__operation_operands(q->p, k); i++) again |= x[i] == x[0];
    if (!again && cot__plan_take_over(q, k, 0)) return true;
    q->plan->how[k] = COT__BY_JOB_COPY;
    return cot__plan_take_memory(q, q->p->operation[k].result);
}

static bool place_result(cot__planner *q, uint32_t k) {
    const cot__operation *o = &q->p->operation[k];
    if (o->op >= OP_structural)
        return cot__op_of(o->op)->in_place ? place_in_place(q, k) : cot__plan_take_memory(q, o->result);
    for (int i = 0; i < cot__operation_operands(q->p, k); i++)
        if (cot__plan_take_over(q, k, i)) return true;
    return cot__plan_take_memory(q, o->result);
}

/* The slot of the result may be that of an operand: an instruction loads before it stores. It is
 * that of what was made just before, if nobody reads that later: then a product and the sum that
 * reads it leave one value (scalars.h). */
static bool place_scalar(cot__planner *q, uint32_t k) {
    const cot__operation *o = &q->p->operation[k];
    const uint32_t       *x = cot__operation_operand(q->p, k);
    bool                  before = k > 0 && x[0] == q->p->operation[k - 1].result;
    q->plan->scalars++;
    if (before && cot__operation_operands(q->p, k) == 2 && x[1] != COT__NO_VALUE &&
        !cot__plan_let_go(q, q->plan->root[x[1]], k))
        return false;
    if (o->extra != COT__NO_VALUE) q->plan->extra[k] = 8 * (int64_t)q->slots++;
    return cot__plan_let_operands_go(q, k) && cot__plan_take_memory(q, o->result) && cot__plan_let_go(q, o->result, k);
}

static bool place_job(cot__planner *q, uint32_t k) {
    int64_t bytes = q->plan->workspace[k];
    q->plan->jobs++;
    q->plan->views += (uint32_t)cot__operation_operands(q->p, k) + q->p->operation[k].results - 1;
    if (!place_result(q, k) || !cot__plan_take_more(q, k)) return false;
    if (bytes > 0 &&
        (!cot__plan_take_range(q, bytes, &q->plan->workspace[k]) ||
         !cot__plan_give_range(q, q->plan->workspace[k], bytes)))
        return false;
    return cot__plan_let_operands_go(q, k) && cot__plan_let_results_go(q, k);
}

static bool place_move(cot__planner *q, uint32_t k) {
    uint32_t z = q->p->operation[k].result;
    q->plan->jobs++;
    q->plan->views++;
    return cot__plan_take_memory(q, z) && cot__plan_let_operands_go(q, k) && cot__plan_let_go(q, z, k);
}

static bool place_fetch(cot__planner *q, uint32_t k) {
    uint32_t z = q->p->operation[k].result;
    return cot__plan_take_memory(q, z) && cot__plan_let_go(q, z, k);
}

static bool place_operations(cot__planner *q) {
    for (uint32_t k = 0; k < q->p->operations; k++) {
        uint8_t how = q->plan->how[k];
        q->at = k;
        if (how == COT__BY_GROUP) {
            uint32_t group = q->plan->fusion.of[k];
            if (!cot__plan_group(q, group)) return false;
            k = q->plan->fusion.group[group].end - 1;
            continue;
        }
        bool    ok = how == COT__BY_SCALARS ? place_scalar(q, k)
                     : how == COT__BY_MOVE  ? place_move(q, k)
                     : how == COT__BY_FETCH ? place_fetch(q, k)
                     : how == COT__BY_VIEW  ? cot__plan_let_operands_go(q, k)
                                            : place_job(q, k);
        if (!ok) return false;
    }
    return true;
}

/* What is there before the first operation. */
static bool place_sources(cot__planner *q) {
    for (uint32_t v = 0; v < q->p->values; v++)
        if (cot__value_origin(q->p, v) != COT__FROM_OPERATION && cot__in_arena(q->plan, v) &&
            !cot__plan_take_memory(q, v))
            return false;
    return true;
}

/* Slots stand in front of the ranges. */
static void move_ranges(cot__planner *q) {
    cot__plan *plan = q->plan;
    int64_t    base = cot__range_bytes(8 * (int64_t)q->slots);
    plan->bytes = base + q->ranges.top;
    for (uint32_t v = 0; v < q->p->values; v++)
        if (plan->root[v] == v && cot__in_arena(plan, v) && !cot__in_slot(plan, v)) plan->place[v] += base;
    for (uint32_t k = 0; k < q->p->operations; k++)
        if (plan->workspace[k] >= 0) plan->workspace[k] += base;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool take_inputs(cot__planner *q, const cot__view *inputs) {
    for (uint32_t k = 0; inputs && k < q->p->inputs; k++)
        if (!cot__in_slot(q->plan, q->p->input[k]) && !set_strides(q, q->p->input[k], inputs[k].stride)) return false;
    return true;
}

static bool open_lists(cot__planner *q) {
    cot__plan *plan = q->plan;
    size_t     values = q->p->values, operations = q->p->operations;
    for (uint32_t k = 0; k < operations; k++)
        if ((uint32_t)cot__operation_operands(q->p, k) > q->most) q->most = (uint32_t)cot__operation_operands(q->p, k);
    plan->root = cot__alloc(&plan->al, values * sizeof *plan->root);
    plan->place = cot__alloc(&plan->al, values * sizeof *plan->place);
    plan->stride = cot__alloc(&plan->al, values * sizeof *plan->stride);
    plan->how = cot__alloc(&plan->al, operations);
    plan->workspace = cot__alloc(&plan->al, operations * sizeof *plan->workspace);
    plan->extra = cot__alloc(&plan->al, operations * sizeof *plan->extra);
    q->last = cot__alloc(&plan->al, values * sizeof *q->last);
    q->x = cot__alloc(&plan->al, q->most * sizeof *q->x);
    q->scattered = cot__alloc(&plan->al, values * sizeof *q->scattered);
    if (!plan->root || !plan->place || !plan->stride || !plan->how || !plan->workspace || !plan->extra || !q->last ||
        !q->x || !q->scattered)
        return no_memory(q);
    memset(q->scattered, 0, values * sizeof *q->scattered);
    for (uint32_t v = 0; v < values; v++) plan->root[v] = v, plan->place[v] = 0, plan->stride[v] = COT__NO_VALUE;
    return true;
}

static void close_planner(cot__planner *q) {
    const cot_allocator *al = &q->plan->al;
    cot__free(al, q->last, q->p->values * sizeof *q->last);
    cot__free(al, q->x, q->most * sizeof *q->x);
    cot__free(al, q->scattered, q->p->values * sizeof *q->scattered);
    cot__free(al, q->free_slot, q->free_room * sizeof *q->free_slot);
    cot__ranges_close(&q->ranges);
}

bool cot__plan_open(cot__plan *plan, const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                    const cot__view *inputs, bool fuse, const cot__caller *caller) {
    return cot__plan_open_lent(plan, p, backend, al, inputs, fuse, NULL, caller);
}

bool cot__plan_open_lent(cot__plan *plan, const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                         const cot__view *inputs, bool fuse, const cot__lent *lent, const cot__caller *caller) {
    *plan = (cot__plan){.p = p, .backend = backend, .al = al ? *al : (cot_allocator){0}};
    cot__planner q = {.plan = plan, .p = p, .caller = caller, .ranges.al = &plan->al,
                      .lent = lent ? *lent : (cot__lent){0}};
    plan->slots = cot__on_host(backend);
    plan->lends_outputs = q.lent.outputs;
    bool ok = open_lists(&q) && (!fuse || cot__fusion_open(&plan->fusion, p, al, inputs, caller)) &&
              take_inputs(&q, inputs) && choose_ways(&q) && find_fetches(&q);
    if (ok) find_last_readers(&q);
    ok = ok && cot__directs_open(&q) && place_sources(&q) && place_operations(&q);
    if (ok) move_ranges(&q);
    close_planner(&q);
    if (!ok) cot__plan_close(plan);
    return ok;
}

void cot__plan_close(cot__plan *plan) {
    const cot_allocator *al = &plan->al;
    size_t               values = plan->p ? plan->p->values : 0, operations = plan->p ? plan->p->operations : 0;
    cot__free(al, plan->root, values * sizeof *plan->root);
    cot__free(al, plan->place, values * sizeof *plan->place);
    cot__free(al, plan->stride, values * sizeof *plan->stride);
    cot__free(al, plan->strides, plan->strides_room * sizeof *plan->strides);
    cot__free(al, plan->how, operations);
    cot__free(al, plan->workspace, operations * sizeof *plan->workspace);
    cot__free(al, plan->extra, operations * sizeof *plan->extra);
    cot__free(al, plan->stored_as, values * sizeof *plan->stored_as);
    cot__free(al, plan->stored, operations * sizeof *plan->stored);
    cot__fusion_close(&plan->fusion);
    if (plan->p) cot__directs_close(&plan->directs, plan->p, al);
    *plan = (cot__plan){0};
}
