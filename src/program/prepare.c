/* prepare.c: making a run: the arena of the plan, and each operation as a step that only waits for
 * its inputs. */
#include "backend/elements.h"
#include "backend/job_run.h"
#include "program/ranges.h"
#include "program/run_parts.h"

#include <string.h>

/* ---- what it hears --------------------------------------------------------------------------- */

static void keep_text(char *to, const char *text) {
    size_t n = strlen(text);
    if (n >= COT__RUN_TEXT) n = COT__RUN_TEXT - 1;
    memcpy(to, text, n);
    to[n] = 0;
}

static void hear_error(const cot__caller *c, cot_status code, const char *text) {
    cot__run *r = c->to;
    if (r->code != COT_OK) return;
    r->code = code;
    r->failed_at = r->at;
    keep_text(r->message, text);
}

static void hear_note(const cot__caller *c, const char *text) {
    cot__run *r = c->to;
    if (r->note[0]) return;
    r->noted_at = r->at;
    keep_text(r->note, text);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool no_memory(const cot__caller *caller, size_t bytes) {
    return cot__refuse(caller, COT_MEMORY, "out of memory: %zu bytes to run a program", bytes);
}

/* Does an output lie in a tensor input? */
static bool lies_in_input(const cot__plan *plan, uint32_t v) {
    uint32_t root = plan->root[v];
    return cot__value_origin(plan->p, root) == COT__FROM_INPUT && !cot__in_arena(plan, root);
}

static int64_t kept_bytes(const cot__program *p, uint32_t v) {
    cot__view x = cot__value_view(p, v);
    return cot__range_bytes(cot__view_size(&x) * cot__dtype_size(x.dtype));
}

/* The plan's arena, room for outputs that lie in inputs, and the status words. */
static bool open_arena(cot__run *r, const cot__plan *plan, const cot__caller *caller) {
    int64_t bytes = plan->bytes;
    for (uint32_t k = 0; k < r->p->outputs; k++)
        if (lies_in_input(plan, r->p->output[k])) bytes = cot__size_add(bytes, kept_bytes(r->p, r->p->output[k]));
    if (!cot__size_bytes(cot__size_add(bytes, 128), 1, &r->arena_bytes)) return no_memory(caller, SIZE_MAX);
    bool host = cot__on_host(r->backend);
    r->block_bytes = r->arena_bytes;
    r->block = host ? cot__alloc(&r->al, r->block_bytes) : r->backend->alloc(&r->al, r->block_bytes);
    if (!r->block) return no_memory(caller, r->block_bytes);
    r->arena = host ? (char *)(((uintptr_t)r->block + 63) & ~(uintptr_t)63) : r->block;
    r->status = host ? r->host_status : (int64_t *)(void *)(r->arena + bytes);
    return true;
}

/* The next part of the lists, which begin at `from`; NULL: its bytes are only counted. */
static void *part(char *from, size_t *at, size_t bytes) {
    void *p = cot__behind(from, *at);
    *at += (bytes + 15) & ~(size_t)15;
    return p;
}

/* All lists, as long as the plan says they are at most. */
static size_t lay_out(cot__run *r, const cot__plan *plan, char *from) {
    size_t at = 0;
    r->job = part(from, &at, plan->jobs * sizeof *r->job);
    r->view = part(from, &at, plan->views * sizeof *r->view);
    r->step = part(from, &at, (2 * (size_t)plan->jobs + 1) * sizeof *r->step);
    r->binding = part(from, &at, plan->views * sizeof *r->binding);
    r->load = part(from, &at, r->p->inputs * sizeof *r->load);
    r->given = part(from, &at, r->p->outputs * sizeof *r->given);
    r->strides = part(from, &at, plan->strides_count * sizeof *r->strides);
    r->scalar = part(from, &at, plan->scalars * sizeof *r->scalar);
    return at;
}

static bool open_lists(cot__run *r, const cot__plan *plan, const cot__caller *caller) {
    r->lists_bytes = lay_out(r, plan, NULL);
    r->lists = cot__alloc(&r->al, r->lists_bytes);
    if (!r->lists) return no_memory(caller, r->lists_bytes);
    lay_out(r, plan, r->lists);
    if (plan->strides_count) memcpy(r->strides, plan->strides, plan->strides_count * sizeof *r->strides);
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The value where it lies. In an input: data is NULL, and *input and *place tell. */
static cot__view see(const cot__run *r, const cot__plan *plan, uint32_t v, uint32_t *input, int64_t *place) {
    uint32_t  root = plan->root[v], maker = cot__value_maker(r->p, root);
    cot__view x = cot__value_view(r->p, v);
    if (plan->stride[v] != COT__NO_VALUE) x.stride = r->strides + plan->stride[v];
    *input = COT__NO_VALUE;
    *place = root == v ? 0 : plan->place[v];
    if (cot__in_arena(plan, root)) x.data = r->arena + plan->place[root] + *place;
    else if (cot__value_origin(r->p, root) == COT__FROM_INPUT) *input = maker;
    else x.data = (char *)(uintptr_t)cot__constant_elements(r->p, maker) + *place;
    return x;
}

static void bind(cot__run *r, const cot__plan *plan, uint32_t v, cot__view *x) {
    uint32_t input;
    int64_t  place;
    *x = see(r, plan, v, &input, &place);
    if (input != COT__NO_VALUE) r->binding[r->bindings++] = (cot__binding){x, place, input};
}

static void place_constants(cot__run *r, const cot__plan *plan) {
    for (uint32_t k = 0; k < r->p->constants; k++) {
        uint32_t v = r->p->constant[k].value, input;
        int64_t  place;
        if (!cot__in_arena(plan, v)) continue;
        cot__view to = see(r, plan, v, &input, &place), from = to;
        from.data = (void *)(uintptr_t)cot__constant_elements(r->p, k);
        r->backend->copy_in(&to, &from);
    }
}

static void place_inputs(cot__run *r, const cot__plan *plan) {
    for (uint32_t k = 0; k < r->p->inputs; k++) {
        uint32_t v = r->p->input[k], input;
        int64_t  place;
        if (!cot__in_arena(plan, v)) continue;
        cot__view x = see(r, plan, v, &input, &place);
        r->load[r->loads++] = (cot__load){x.data, k, (uint32_t)cot__dtype_size(x.dtype)};
    }
}

static void place_outputs(cot__run *r, const cot__plan *plan) {
    char *kept = r->arena + plan->bytes;
    for (uint32_t k = 0; k < r->p->outputs; k++) {
        cot__given *g = &r->given[k];
        *g = (cot__given){.bytes = -1};
        g->view = see(r, plan, r->p->output[k], &g->input, &g->place);
        if (cot__on_host(r->backend) && cot__is_contiguous(g->view.ndim, g->view.shape, g->view.stride))
            g->bytes = cot__view_size(&g->view) * cot__dtype_size(g->view.dtype);
        if (g->input == COT__NO_VALUE) continue;
        g->kept = kept;
        kept += kept_bytes(r->p, r->p->output[k]);
    }
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint32_t slot_of(const cot__plan *plan, uint32_t v) { return (uint32_t)(plan->place[plan->root[v]] / 8); }

static void prepare_scalar(cot__run *r, const cot__plan *plan, uint32_t k) {
    const uint32_t *x = cot__operation_operand(r->p, k);
    uint32_t        slot[3] = {0, 0, 0};
    cot_dtype       dtype = COT_F64;
    for (int i = 0; i < cot__operation_operands(r->p, k); i++) {
        if (x[i] == COT__NO_VALUE) slot[i] = (uint32_t)(plan->extra[k] / 8);
        else slot[i] = slot_of(plan, x[i]), dtype = cot__value_view(r->p, x[i]).dtype;
    }
    if (plan->extra[k] >= 0) cot__store_f64(r->arena + plan->extra[k], dtype, cot__operation_number(r->p, k));
    r->scalar[r->scalars++] = (cot__scalar){cot__scalar_code(r->p->operation[k].op, dtype),
                                            slot_of(plan, r->p->operation[k].result), slot[0], slot[1], slot[2]};
}

static void prepare_job(cot__run *r, const cot__plan *plan, uint32_t k) {
    cot__prepared        *q = &r->job[r->jobs++];
    const cot__operation *o = &r->p->operation[k];
    const uint32_t       *x = cot__operation_operand(r->p, k);
    uint32_t              input;
    int64_t               place;
    *q = (cot__prepared){.operation = k, .copies = plan->how[k] == COT__BY_JOB_COPY};
    q->effect = cot__operation_has_effect(r->p, k);
    cot__operation_job(r->p, k, &r->caller, r->view + r->views, &q->number, &q->job);
    for (int i = 0; i < q->job.n; i++)
        if (x[i] != COT__NO_VALUE) bind(r, plan, x[i], &q->job.x[i]);
    r->views += (uint32_t)q->job.n;
    q->job.backend = r->backend;
    q->job.status = r->status;
    q->job.z = see(r, plan, o->result, &input, &place);
    q->job.more = r->view + r->views;
    for (uint32_t i = 1; i < o->results; i++) r->view[r->views++] = see(r, plan, o->result + i, &input, &place);
    if (plan->workspace[k] >= 0) q->job.workspace = r->arena + plan->workspace[k];
}

/* The element is the only one of operand 0 as the operation views it. */
static void prepare_move(cot__run *r, const cot__plan *plan, uint32_t k) {
    cot__prepared *q = &r->job[r->jobs++];
    uint32_t       root = plan->root[cot__operation_operand(r->p, k)[0]], input;
    int64_t        place;
    *q = (cot__prepared){.operation = k, .moves = true};
    q->job.z = see(r, plan, r->p->operation[k].result, &input, &place);
    q->job.x = r->view + r->views++;
    *q->job.x = q->job.z;
    q->job.x->data = see(r, plan, root, &input, &place).data;
    if (input == COT__NO_VALUE) q->job.x->data = (char *)q->job.x->data + plan->extra[k];
    else r->binding[r->bindings++] = (cot__binding){q->job.x, plan->extra[k], input};
}

static void add_step(cot__run *r, bool scalar) {
    cot__step *last = r->steps ? &r->step[r->steps - 1] : NULL;
    if (!scalar) r->step[r->steps++] = (cot__step){r->jobs - 1, 0};
    else if (last && last->count) last->count++;
    else r->step[r->steps++] = (cot__step){r->scalars - 1, 1};
}

static void prepare_operations(cot__run *r, const cot__plan *plan) {
    for (uint32_t k = 0; k < r->p->operations; k++) {
        uint8_t how = plan->how[k];
        if (how == COT__BY_VIEW) continue;
        if (how == COT__BY_SCALARS) prepare_scalar(r, plan, k);
        else if (how == COT__BY_MOVE) prepare_move(r, plan, k);
        else prepare_job(r, plan, k);
        add_step(r, how == COT__BY_SCALARS);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool prepare(cot__run *r, const cot__view *inputs, const cot__caller *caller) {
    cot__plan plan;
    if (!cot__plan_open(&plan, r->p, r->backend, &r->al, inputs, caller)) return false;
    bool ok = open_arena(r, &plan, caller) && open_lists(r, &plan, caller);
    if (ok) {
        place_constants(r, &plan);
        place_inputs(r, &plan);
        prepare_operations(r, &plan);
        place_outputs(r, &plan);
    }
    cot__plan_close(&plan);
    return ok;
}

cot__run *cot__run_create(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                          const cot__view *inputs, const cot__caller *caller) {
    cot__run *r = cot__alloc(al, sizeof *r);
    if (!r) return no_memory(caller, sizeof *r), NULL;
    memset(r, 0, sizeof *r);
    r->p = cot__program_share(p);
    r->backend = backend;
    r->al = al ? *al : (cot_allocator){0};
    r->caller = (cot__caller){"program", r, hear_error, hear_note, NULL};
    r->failed_at = r->noted_at = COT__NO_VALUE;
    if (prepare(r, inputs, caller)) return r;
    cot__run_destroy(r);
    return NULL;
}

void cot__run_destroy(cot__run *r) {
    if (!r) return;
    cot_allocator al = r->al;
    if (!r->backend->free) cot__free(&al, r->block, r->block_bytes);
    else if (r->block) r->backend->free(&al, r->block, r->block_bytes);
    cot__free(&al, r->lists, r->lists_bytes);
    cot__program_release(r->p);
    cot__free(&al, r, sizeof *r);
}
