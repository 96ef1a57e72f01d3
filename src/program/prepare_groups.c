/* prepare_groups.c: a group as one step of a run: each member as a run over blocks, a fold, an
 * operation on rows or a product, with what moves from block to block. The plan has said where all
 * of their values lie (plan_groups.c). */
#include "backend/elements.h"
#include "backend/runs.h"
#include "program/plan_parts.h"
#include "program/run_parts.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Operand i of a member, or its plain number. */
static cot__view member_operand(cot__run *r, const cot__plan *plan, uint32_t v, cot_dtype compute, double *number) {
    if (v == COT__NO_VALUE) return cot__number_view(number, compute);
    cot__view x = cot__run_see(r, plan, v);
    x.dtype = cot__inside_dtype(&plan->fusion, r->p, v);
    return x;
}

/* Does the value move with the blocks? */
static bool moves(const cot__plan *plan, uint32_t v) {
    uint8_t inside = plan->fusion.inside[plan->root[v]];
    return inside == COT__INSIDE || inside == COT__INSIDE_AS_NUMBER;
}

static cot__run_span span_of(const cot__plan *plan, uint32_t k) {
    bool spans = plan->fusion.group[plan->fusion.of[k]].spans;
    return spans ? plan->fusion.span[k] : (cot__run_span){0, 0, 0};
}

/* What lies in memory of the caller's is bound where the run has it. */
static void prepare_member(cot__run *r, const cot__plan *plan, uint32_t k) {
    uint32_t        at = r->runs++, z = r->p->operation[k].result;
    cot__block_run *b = &r->block_run[at];
    const uint32_t *x = cot__operation_operand(r->p, k);
    int             n = cot__operation_operands(r->p, k), op = r->p->operation[k].op;
    cot_dtype       compute = cot__member_compute(r->p, k);
    cot__view       to = member_operand(r, plan, z, compute, NULL), from[COT__MEMBER_VIEWS];
    if (op < OP_structural && r->p->operation[k].extra != COT__NO_VALUE)
        cot__store_f64(&r->number[at], compute, cot__operation_number(r->p, k));
    r->moves[at] = (uint16_t)(moves(plan, z) << COT__RUN_VIEWS);
    r->span[at] = span_of(plan, k);
    for (int i = 0; i < n; i++) from[i] = member_operand(r, plan, x[i], compute, &r->number[at]);
    if (op < OP_structural) cot__block_run_of_value(b, op, compute, n, from, &to);
    else cot__block_run_of_copy(b, &to, from);
    cot__run_bind_view(r, plan, z, &b->out[0].to);
    for (int i = 0; i < n; i++) {
        if (x[i] == COT__NO_VALUE) continue;
        cot__run_bind_view(r, plan, x[i], &b->x[i]);
        r->moves[at] |= (uint16_t)(moves(plan, x[i]) << i);
    }
}

/* Several members as one partial. A run has the operands first, then the result, then G. */
static void prepare_partial(cot__run *r, const cot__plan *plan, const cot__partial *f) {
    uint32_t        at = r->runs++, z = r->p->operation[f->last].result;
    cot__block_run *b = &r->block_run[at];
    cot__view       x[COT__PARTIAL_READS] = {{0}}, to = cot__run_see(r, plan, z);
    for (int i = 0; i < COT__PARTIAL_READS; i++)
        if (f->x[i] != COT__NO_VALUE) x[i] = cot__run_see(r, plan, f->x[i]);
    int arity = cot__elementwise_arity(f->op), where[COT__PARTIAL_READS] = {0, 1, 2, arity, arity + 1};
    cot__block_run_of_partials(b, f->op, to.dtype, arity, x, &x[COT__PARTIAL_Z], 1,
                               &(cot__term){f->k, false, x[COT__PARTIAL_G], to});
    cot__run_bind_view(r, plan, z, &b->out[0].to);
    r->moves[at] = (uint16_t)(moves(plan, z) << COT__RUN_VIEWS);
    r->span[at] = (cot__run_span){0, 0, 0};
    for (int i = 0; i < COT__PARTIAL_READS; i++) {
        if (f->x[i] == COT__NO_VALUE) continue;
        cot__run_bind_view(r, plan, f->x[i], &b->x[where[i]]);
        r->moves[at] |= (uint16_t)(moves(plan, f->x[i]) << where[i]);
    }
}

static const int64_t no_strides[COT_MAX_NDIM], one_stride[1] = {1};

/* Has a constant equal elements, so that the first stands for all? */
static bool is_uniform(const cot__run *r, const cot__plan *plan, uint32_t v) {
    uint32_t root = plan->root[v];
    size_t   bytes = (size_t)cot__planned_bytes(r->p, root);
    size_t   size = (size_t)cot__dtype_size(cot__value_view(r->p, v).dtype);
    if (cot__value_origin(r->p, root) != COT__FROM_CONSTANT || !cot__on_host(r->backend)) return false;
    const char *first = cot__constant_elements(r->p, cot__value_maker(r->p, root));
    return memcmp(first, first + size, bytes - size) == 0;
}

/* Elements of a value from `first` on, as many as `like` has: row-major, or one that repeats. */
typedef struct range { uint32_t value; int64_t first; bool repeats; } range;

static cot__view see_range(const cot__run *r, const cot__plan *plan, range g, const cot__view *like) {
    cot__view x = *like;
    x.data = cot__run_see(r, plan, g.value).data;
    if (g.repeats) x.stride = no_strides;
    else if (x.data) x.data = (char *)x.data + g.first * cot__dtype_size(x.dtype);
    return x;
}

static void bind_range(cot__run *r, const cot__plan *plan, range g, cot__view *x) {
    uint32_t before = r->bindings;
    cot__run_bind_view(r, plan, g.value, x);
    if (r->bindings > before) r->binding[before].place += g.first * cot__dtype_size(x->dtype);
}

/* A range of the result of patch k becomes that of operand 0, or the sum of that and operand 1. */
static void prepare_range(cot__run *r, const cot__plan *plan, uint32_t k, range from, int64_t first,
                          const cot__view *like, const uint32_t *added) {
    uint32_t        at = r->runs++, z = r->p->operation[k].result;
    range           to = {z, first, false};
    cot__block_run *b = &r->block_run[at];
    cot__view       out = see_range(r, plan, to, like), x[2] = {see_range(r, plan, from, like), *like};
    if (added) x[1] = cot__run_see(r, plan, *added);
    if (added) cot__block_run_of_value(b, OP_add, cot__dtype_compute(out.dtype), 2, x, &out);
    else cot__block_run_of_copy(b, &out, x);
    bind_range(r, plan, to, &b->out[0].to);
    bind_range(r, plan, from, &b->x[0]);
    if (added) cot__run_bind_view(r, plan, *added, &b->x[1]);
    r->moves[at] = (uint16_t)(moves(plan, z) << COT__RUN_VIEWS | moves(plan, from.value));
    if (added) r->moves[at] |= (uint16_t)(moves(plan, *added) << 1);
    r->span[at] = span_of(plan, k);
    r->span[at].at = first;
}

/* What is patched outside of the range: elements first … end - 1. */
static void prepare_side(cot__run *r, const cot__plan *plan, uint32_t k, range from, int64_t first, int64_t end) {
    int64_t  *extent = &r->extent[r->runs];
    cot__view like = {NULL, cot__value_view(r->p, from.value).dtype, 1, extent, one_stride};
    *extent = end - first;
    from.first = from.repeats ? 0 : first;
    if (*extent > 0) prepare_range(r, plan, k, from, first, &like, NULL);
}

/* Lies operand 0 of the patch where its result lies? */
static bool is_in_place(const cot__plan *plan, uint32_t x, uint32_t z) {
    return cot__run_base(plan, z) == COT__NO_VALUE && cot__run_base(plan, x) == COT__NO_VALUE &&
           cot__in_arena(plan, plan->root[x]) && plan->place[plan->root[x]] == plan->place[z];
}

/* The strides of an operand that the last run reads. */
static void use_strides(cot__run *r, const cot__plan *plan, uint32_t v) {
    if (plan->stride[v] != COT__NO_VALUE) r->block_run[r->runs - 1].x[0].stride = r->strides + plan->stride[v];
}

static void prepare_patch(cot__run *r, const cot__plan *plan, uint32_t k) {
    const uint32_t *x = cot__operation_operand(r->p, k);
    uint32_t        z = r->p->operation[k].result;
    cot__view       u = cot__value_view(r->p, x[1]);
    int64_t         first = cot__range_at(r->p, k), end = first + cot__view_size(&u);
    bool            adds = r->p->operation[k].op == OP_add_slice, strided = plan->stride[x[0]] != COT__NO_VALUE;
    range           from = {x[0], first, is_uniform(r, plan, x[0])};
    if (from.repeats) from.first = 0;
    if (strided && !from.repeats) { /* it is copied as a whole first */
        cot__view whole = cot__value_view(r->p, x[0]);
        prepare_range(r, plan, k, (range){x[0], 0, false}, 0, &whole, NULL);
        use_strides(r, plan, x[0]);
        from.value = z;
    } else if (!is_in_place(plan, x[0], z)) {
        prepare_side(r, plan, k, from, 0, first);
        prepare_side(r, plan, k, from, end, cot__fused_size(r->p, k));
    }
    if (adds) prepare_range(r, plan, k, from, first, &u, &x[1]);
    else {
        prepare_range(r, plan, k, (range){x[1], 0, false}, first, &u, NULL);
        use_strides(r, plan, x[1]);
    }
}

static void prepare_fold(cot__run *r, const cot__plan *plan, uint32_t k, uint32_t first) {
    cot__stage_fold *f = &r->fold[r->folds++];
    uint32_t   x = cot__operation_operand(r->p, k)[0];
    *f = (cot__stage_fold){.what = cot__fold_reduction(r->p->operation[k].op),
                     .after = (int)(r->runs - first),
                     .row = cot__fold_row(r->p, k),
                     .moves = moves(plan, x),
                     .nodes = plan->workspace[k] < 0 ? NULL : r->arena + plan->workspace[k]};
    cot__run_bind(r, plan, x, &f->x);
    cot__run_bind(r, plan, r->p->operation[k].result, &f->z);
}

/* As a job of whole arrays. Each element is a row where there is one for each. */
static void prepare_rows(cot__run *r, const cot__plan *plan, uint32_t k, uint32_t first, int64_t row) {
    const cot__operation *o = &r->p->operation[k];
    const uint32_t       *x = cot__operation_operand(r->p, k);
    cot__stage_rows      *on = &r->on_rows[r->rows++];
    bool                  number = cot__is_row_number(&plan->fusion, r->p, k);
    *on = (cot__stage_rows){.axes = number ? cot__value_view(r->p, o->result).ndim : cot__axes_of_rows(r->p, k),
                            .operands = number ? cot__operation_operands(r->p, k) : cot__rows_read(r->p, k),
                            .results = (int)o->results};
    cot__operation_job(r->p, k, &r->caller, r->view + r->views, &on->number, &on->job);
    on->job.backend = r->backend;
    on->moves = (uint16_t)(moves(plan, o->result) << COT__RUN_VIEWS);
    for (int i = 0; i < on->job.n; i++) {
        if (x[i] == COT__NO_VALUE) continue;
        cot__run_bind(r, plan, x[i], &on->job.x[i]);
        on->moves |= (uint16_t)(moves(plan, x[i]) << i);
    }
    r->views += (uint32_t)on->job.n;
    cot__run_bind(r, plan, o->result, &on->job.z);
    on->job.more = r->view + r->views;
    for (uint32_t i = 1; i < o->results; i++) cot__run_bind(r, plan, o->result + i, &r->view[r->views++]);
    r->fold[r->folds++] = (cot__stage_fold){.rows = on, .after = (int)(r->runs - first), .row = row};
}

static void prepare_product(cot__run *r, const cot__plan *plan, uint32_t k) {
    cot__stage_product *m = &r->product[r->products++];
    const uint32_t     *x = cot__operation_operand(r->p, k);
    *m = (cot__stage_product){.workspace = plan->workspace[k] < 0 ? NULL : r->arena + plan->workspace[k]};
    cot__run_bind(r, plan, x[0], &m->a);
    cot__run_bind(r, plan, x[1], &m->b);
    cot__run_bind(r, plan, r->p->operation[k].result, &m->c);
}

enum { BLOCK_BYTES = 32768 }; /* of an array: some of them stay in the second cache */
enum { ROWS_COST = 8 }; /* of an element of an operation on rows, in additions */

void cot__run_prepare_group(cot__run *r, const cot__plan *plan, const cot__group *g) {
    cot__prepared *q = &r->job[r->jobs++];
    cot__stage    *s = &q->stage;
    uint32_t       first = r->runs, fold = r->folds;
    cot__partial   partial[COT__MOST_PARTIALS];
    int            partials = cot__find_partials(plan, g, partial);
    *q = (cot__prepared){.operation = g->first};
    for (uint32_t k = g->first; k < g->end; k++) {
        if (plan->how[k] != COT__BY_GROUP) continue;
        if (partials && partial[partials - 1].first == k) {
            prepare_partial(r, plan, &partial[--partials]);
            k = partial[partials].last;
        } else if (cot__is_product(r->p, k)) prepare_product(r, plan, k);
        else if (cot__is_fold(r->p, k)) prepare_fold(r, plan, k, first);
        else if (cot__is_patch(r->p, k)) prepare_patch(r, plan, k);
        else if (cot__rows_read(r->p, k) || cot__is_row_number(&plan->fusion, r->p, k))
            prepare_rows(r, plan, k, first, g->row);
        else prepare_member(r, plan, k);
    }
    *s = (cot__stage){.run = r->block_run + first, .count = (int)(r->runs - first), .block_bytes = BLOCK_BYTES,
                      .span = g->spans ? r->span + first : NULL, .size = g->size, .moves = r->moves + first,
                      .fold = r->fold + fold, .folds = (int)(r->folds - fold), .room = cot__group_room(plan, g)};
    if (cot__ends_product(g)) s->product = &r->product[r->products - 1];
    for (int i = 0; i < s->count; i++) s->cost += s->run[i].cost;
    for (int i = 0; i < s->folds; i++) s->cost += s->fold[i].rows ? ROWS_COST : 1;
}
