/* prepare.c: making a run: the arena of the plan, and each operation as a step that only waits for
 * its inputs. Groups are made steps in prepare_groups.c. */
#include "backend/elements.h"
#include "backend/job_run.h"
#include "program/memory/ranges.h"
#include "program/plan_parts.h"
#include "program/run_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- what it hears --------------------------------------------------------------------------- */

static void keep_text(char *to, const char *text) {
    size_t n = strlen(text);
    if (n >= COT__RUN_TEXT) n = COT__RUN_TEXT - 1;
    memcpy(to, text, n);
    to[n] = 0;
}

/* Where the operation was recorded, if that is known. What a body has said names a place in it. */
static void put_place(const cot__run *r, char *text) {
    const cot__operation *o = r->at == COT__NO_VALUE ? NULL : &r->p->operation[r->at];
    const cot__label     *l = o ? &r->p->label[o->label] : NULL;
    const char           *file = l ? r->p->text + l->file : "", *slash = strrchr(file, '/');
    size_t                used = strlen(text);
    if (*file && o->body == o[1].body && !r->lost)
        snprintf(text + used, COT__RUN_TEXT - used, " (%s:%d)", slash ? slash + 1 : file, (int)l->line);
}

static void hear_error(const cot__caller *c, cot_status code, const char *text) {
    cot__run *r = c->to;
    if (r->code != COT_OK) return;
    r->code = code;
    r->failed_at = r->at;
    keep_text(r->message, text);
    put_place(r, r->message);
}

static void hear_note(const cot__caller *c, const char *text) {
    cot__run *r = c->to;
    if (r->note[0]) return;
    r->noted_at = r->at;
    keep_text(r->note, text);
    put_place(r, r->note);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Everything that a run holds is taken through its own allocator, which counts it, and so are the
 * runs that its operations hold. */
static void *counted(void *user, void *ptr, size_t old_size, size_t new_size) {
    cot__run *r = user;
    void     *to = cot__resize(&r->below, ptr, old_size, new_size);
    if (to || !new_size) r->held = r->held - old_size + new_size;
    return to;
}

/* The run whose allocator it is; NULL: none's. */
static cot__run *run_of(const cot_allocator *al) { return al && al->alloc == counted ? al->user : NULL; }

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

enum { STATUS_BYTES = 128 }; /* the words, and what makes the arena aligned */

/* The plan's arena, room for outputs that lie in inputs, and the status words. */
static int64_t arena_bytes(const cot__plan *plan) {
    const cot__program *p = plan->p;
    int64_t             bytes = plan->bytes;
    for (uint32_t k = 0; k < p->outputs; k++)
        if (lies_in_input(plan, p->output[k])) bytes = cot__size_add(bytes, kept_bytes(p, p->output[k]));
    return cot__size_add(bytes, STATUS_BYTES);
}

/* What is not taken, because it is only measured; runs around it would hold it too. */
static void count(cot__run *r, size_t bytes) {
    for (cot__run *q = r; q; q = q->below.alloc == counted ? q->below.user : NULL)
        q->held = (size_t)cot__size_add((int64_t)q->held, (int64_t)bytes);
}

/* Nobody reads or writes at its address. */
static bool count_arena(cot__run *r) {
    count(r, r->arena_bytes);
    r->arena = (char *)(uintptr_t)64;
    return true;
}

static bool open_arena(cot__run *r, const cot__plan *plan, const cot__caller *caller) {
    int64_t bytes = arena_bytes(plan);
    if (!cot__size_bytes(bytes, 1, &r->arena_bytes)) return no_memory(caller, SIZE_MAX);
    if (r->measured) return count_arena(r);
    bool host = cot__on_host(r->backend);
    r->block_bytes = r->arena_bytes;
    r->block = host ? cot__alloc(&r->al, r->block_bytes) : r->backend->alloc(&r->al, r->block_bytes);
    if (!r->block) return no_memory(caller, r->block_bytes);
    r->arena = host ? (char *)(((uintptr_t)r->block + 63) & ~(uintptr_t)63) : r->block;
    r->status = host ? r->host_status : (int64_t *)(void *)(r->arena + bytes - STATUS_BYTES);
    return true;
}

/* The next part of the lists, which begin at `from`; NULL: its bytes are only counted. */
static void *part(char *from, size_t *at, size_t bytes) {
    void *p = cot__behind(from, *at);
    *at += (bytes + 15) & ~(size_t)15;
    return p;
}

/* Operands, results and outputs. */
static size_t most_bindings(const cot__program *p, const cot__plan *plan) {
    return plan->views + (COT__MEMBER_VIEWS + 1) * (size_t)plan->runs + 2 * (size_t)plan->folds +
           3 * (size_t)plan->products + plan->jobs + p->outputs;
}

/* All lists, as long as the plan says they are at most. */
static size_t lay_out(cot__run *r, const cot__plan *plan, const cot__run_parts *parts, char *from) {
    size_t moves = (size_t)plan->stores + plan->fetches;
    size_t others = (size_t)plan->jobs + 2 * moves; /* steps; each move is begun and awaited */
    /* Before each of them and in the end, and where a part begins or ends, there may be a row of
     * instructions. */
    size_t at = 0, rows = others + 1 + 2 * (parts ? (size_t)parts->parts : 0), steps = others + rows;
    r->job = part(from, &at, plan->jobs * sizeof *r->job);
    r->view = part(from, &at, plan->views * sizeof *r->view);
    r->step = part(from, &at, steps * sizeof *r->step);
    r->binding = part(from, &at, most_bindings(r->p, plan) * sizeof *r->binding);
    r->base = part(from, &at, (r->p->inputs + (size_t)plan->directs.count) * sizeof *r->base);
    r->lay = part(from, &at, (plan->directs.count ? r->p->inputs + (size_t)r->p->outputs : 0) * sizeof *r->lay);
    r->load = part(from, &at, r->p->inputs * sizeof *r->load);
    r->given = part(from, &at, r->p->outputs * sizeof *r->given);
    r->strides = part(from, &at, plan->strides_count * sizeof *r->strides);
    r->scalar = part(from, &at, (plan->scalars + rows) * sizeof *r->scalar); /* with ends of rows */
    r->block_run = part(from, &at, plan->runs * sizeof *r->block_run);
    r->number = part(from, &at, plan->runs * sizeof *r->number);
    r->moves = part(from, &at, plan->runs * sizeof *r->moves);
    r->fold = part(from, &at, plan->folds * sizeof *r->fold);
    r->on_rows = part(from, &at, plan->rows * sizeof *r->on_rows);
    r->product = part(from, &at, plan->products * sizeof *r->product);
    r->span = part(from, &at, plan->runs * sizeof *r->span);
    r->extent = part(from, &at, plan->runs * sizeof *r->extent);
    r->spilled.move = part(from, &at, moves * sizeof *r->spilled.move);
    r->spilled.extent = part(from, &at, plan->stores * sizeof *r->spilled.extent);
    return parts ? at + cot__run_lay_out_parts(r, parts, steps, cot__behind(from, at)) : at;
}

static bool open_lists(cot__run *r, const cot__plan *plan, const cot__run_parts *parts, const cot__caller *caller) {
    r->lists_bytes = lay_out(r, plan, parts, NULL);
    r->lists = cot__alloc(&r->al, r->lists_bytes);
    if (!r->lists) return no_memory(caller, r->lists_bytes);
    lay_out(r, plan, parts, r->lists);
    if (plan->strides_count) memcpy(r->strides, plan->strides, plan->strides_count * sizeof *r->strides);
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The value where it lies. In an input: data is NULL, and *input and *place tell. What is direct
 * lies in the arena for this. */
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

cot__view cot__run_see(const cot__run *r, const cot__plan *plan, uint32_t v) {
    uint32_t input;
    int64_t  place;
    return see(r, plan, v, &input, &place);
}

uint32_t cot__run_base(const cot__plan *plan, uint32_t v) {
    uint32_t root = plan->root[v], direct = cot__direct_of(&plan->directs, root);
    if (direct != COT__NO_VALUE) return plan->p->inputs + direct;
    bool given = cot__value_origin(plan->p, root) == COT__FROM_INPUT && !cot__in_arena(plan, root);
    return given ? cot__value_maker(plan->p, root) : COT__NO_VALUE;
}

void cot__run_bind_view(cot__run *r, const cot__plan *plan, uint32_t v, cot__view *x) {
    uint32_t base = cot__run_base(plan, v);
    if (base == COT__NO_VALUE) return;
    r->binding[r->bindings++] = (cot__binding){x, plan->root[v] == v ? 0 : plan->place[v], base};
}

void cot__run_bind(cot__run *r, const cot__plan *plan, uint32_t v, cot__view *x) {
    uint32_t input;
    int64_t  place;
    *x = see(r, plan, v, &input, &place);
    cot__run_bind_view(r, plan, v, x);
}

static void place_constants(cot__run *r, const cot__plan *plan) {
    for (uint32_t k = 0; k < r->p->constants; k++) {
        uint32_t v = r->p->constant[k].value, input;
        int64_t  place;
        if (!cot__in_arena(plan, v) || r->measured) continue;
        cot__view to = see(r, plan, v, &input, &place), from = to;
        from.data = (void *)(uintptr_t)cot__constant_elements(r->p, k);
        r->backend->copy_in(&to, &from);
    }
}

static void place_input(cot__run *r, const cot__plan *plan, uint32_t k, bool words) {
    uint32_t v = r->p->input[k], input;
    int64_t  place;
    if (!cot__in_arena(plan, v)) return;
    cot__view x = see(r, plan, v, &input, &place);
    if ((cot__dtype_size(x.dtype) == 8) == words)
        r->load[r->loads++] = (cot__load){x.data, k, (uint16_t)cot__dtype_size(x.dtype), false};
}

static void place_inputs(cot__run *r, const cot__plan *plan) {
    for (uint32_t k = 0; k < r->p->inputs; k++) place_input(r, plan, k, true);
    r->words = r->loads;
    for (uint32_t k = 0; k < r->p->inputs; k++) place_input(r, plan, k, false);
}

static void place_outputs(cot__run *r, const cot__plan *plan) {
    char   *kept = r->arena + plan->bytes;
    int64_t place;
    for (uint32_t k = 0; k < r->p->outputs; k++) {
        cot__given *g = &r->given[k];
        *g = (cot__given){.bytes = -1};
        g->view = see(r, plan, r->p->output[k], &g->input, &place);
        cot__run_bind_view(r, plan, r->p->output[k], &g->view);
        g->direct = cot__direct_of(&plan->directs, plan->root[r->p->output[k]]) != COT__NO_VALUE;
        if (cot__on_host(r->backend) && cot__is_contiguous(g->view.ndim, g->view.shape, g->view.stride))
            g->bytes = cot__view_size(&g->view) * cot__dtype_size(g->view.dtype);
        if (g->input == COT__NO_VALUE) continue;
        r->lent = true;
        g->kept = kept;
        kept += kept_bytes(r->p, r->p->output[k]);
    }
}

static bool is_straight(const cot__run *r) {
    bool all = r->steps == 1 && r->step[0].kind == COT__STEP_SCALARS && r->loads == r->words && !r->bindings;
    for (uint32_t k = 0; k < r->p->outputs && all; k++) all = r->given[k].bytes == 8 && !r->given[k].kept;
    return all && !r->directs.count;
}

/* Fewer instructions are not done in lanes, nor brought in another order. */
enum { SHORTEST_ALONG = 8 };

static void find_staying(cot__run *r) {
    for (uint32_t k = 0; k < r->words; k++) {
        uint32_t slot = (uint32_t)((cot__slot *)r->load[k].to - (cot__slot *)(void *)r->arena), i = 0;
        while (i < r->scalars && r->scalar[i].z != slot && r->scalar[i].t != slot) i++;
        r->load[k].stays = i == r->scalars;
    }
}

static bool open_along(cot__run *r, const cot__caller *caller) {
    if (r->scalars < SHORTEST_ALONG) return true;
    r->along = cot__alloc(&r->al, cot__along_bytes());
    if (!r->along) return no_memory(caller, cot__along_bytes());
    memset(r->along, 0, cot__along_bytes());
    return true;
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint32_t slot_of(const cot__plan *plan, uint32_t v) { return (uint32_t)(plan->place[plan->root[v]] / 8); }

static bool has_scalars(const cot__run *r) {
    return r->steps && r->step[r->steps - 1].kind == COT__STEP_SCALARS;
}

static void end_scalars(cot__run *r) {
    if (!has_scalars(r)) return;
    uint32_t first = r->step[r->steps - 1].first;
    cot__scalars_link(r->scalar + first, r->scalars++ - first);
}

/* To the instructions of the last step, or as a step of its own: so is what begins a part. */
static void add_scalar(cot__run *r, cot__scalar c, uint32_t k, const cot__run_parts *parts) {
    bool more = has_scalars(r) && !cot__run_parts_differ(parts, r->step[r->steps - 1].operation, k);
    if (more && cot__scalars_join(&r->scalar[r->scalars - 1], &c)) return;
    if (!more) {
        end_scalars(r);
        r->step[r->steps++] = (cot__step){r->scalars, COT__STEP_SCALARS, k};
    }
    r->scalar[r->scalars++] = c;
}

static void prepare_scalar(cot__run *r, const cot__plan *plan, uint32_t k, const cot__run_parts *parts) {
    const uint32_t *x = cot__operation_operand(r->p, k);
    uint32_t        slot[3] = {0, 0, 0};
    cot_dtype       dtype = COT_F64;
    for (int i = 0; i < cot__operation_operands(r->p, k); i++) {
        if (x[i] == COT__NO_VALUE) slot[i] = (uint32_t)(plan->extra[k] / 8);
        else slot[i] = slot_of(plan, x[i]), dtype = cot__value_view(r->p, x[i]).dtype;
    }
    if (plan->extra[k] >= 0 && !r->measured)
        cot__store_f64(r->arena + plan->extra[k], dtype, cot__operation_number(r->p, k));
    add_scalar(r, (cot__scalar){cot__scalar_code(r->p->operation[k].op, dtype),
                                slot_of(plan, r->p->operation[k].result), slot[0], slot[1], slot[2], 0, NULL},
               k, parts);
}

static void prepare_job(cot__run *r, const cot__plan *plan, uint32_t k) {
    cot__prepared        *q = &r->job[r->jobs++];
    const cot__operation *o = &r->p->operation[k];
    const uint32_t       *x = cot__operation_operand(r->p, k);
    *q = (cot__prepared){.operation = k, .copies = plan->how[k] == COT__BY_JOB_COPY};
    q->effect = cot__operation_has_effect(r->p, k);
    cot__operation_job(r->p, k, &r->caller, r->view + r->views, &q->number, &q->job);
    for (int i = 0; i < q->job.n; i++)
        if (x[i] != COT__NO_VALUE) cot__run_bind(r, plan, x[i], &q->job.x[i]);
    r->views += (uint32_t)q->job.n;
    q->job.backend = r->backend;
    q->job.status = r->status;
    cot__run_bind(r, plan, o->result, &q->job.z);
    q->job.more = r->view + r->views;
    for (uint32_t i = 1; i < o->results; i++) cot__run_bind(r, plan, o->result + i, &r->view[r->views++]);
    if (plan->workspace[k] >= 0) q->job.workspace = r->arena + plan->workspace[k];
}

/* What an operation with bodies, or a function of the user's, needs to run them. */
static bool open_held(cot__run *r, const cot__caller *caller) {
    cot__job *j = &r->job[r->jobs - 1].job;
    if (!j->record || !j->record->open) return true;
    j->caller = caller; /* hears that there is no memory */
    j->held = j->record->open(j, &r->al);
    j->caller = &r->caller;
    return j->held;
}

static void close_held(cot__run *r) {
    for (uint32_t k = 0; k < r->jobs; k++)
        if (r->job[k].job.held) r->job[k].job.record->close(r->job[k].job.held);
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
    cot__run_bind_view(r, plan, root, q->job.x);
    if (r->bindings && r->binding[r->bindings - 1].view == q->job.x) r->binding[r->bindings - 1].place = plan->extra[k];
}

/* ---- files ----------------------------------------------------------------------------------- */

static void add_move(cot__run *r, uint32_t move, cot__moving what, uint32_t k) {
    end_scalars(r);
    r->step[r->steps++] = (cot__step){move, COT__STEP_MOVE + (uint32_t)what, k};
}

static void await(cot__run *r, uint32_t move, uint32_t k) {
    if (r->spilled.move[move].awaited) return;
    r->spilled.move[move].awaited = true;
    add_move(r, move, COT__MOVE_WAIT, k);
}

static void begin_move(cot__run *r, const cot__plan *plan, uint32_t move, cot__moving what, uint32_t v, uint32_t as,
                       uint32_t k) {
    r->spilled.move[move] = (cot__move){cot__run_see(r, plan, v).data, as, false};
    add_move(r, move, what, k);
}

static void prepare_fetch(cot__run *r, const cot__plan *plan, uint32_t k) {
    uint32_t as = plan->stored_as[cot__operation_operand(r->p, k)[0]];
    begin_move(r, plan, plan->stores + (uint32_t)plan->extra[k], COT__MOVE_BACK, r->p->operation[k].result, as, k);
}

/* What operation k reads, or views, and a fetch brings. */
static void await_operands(cot__run *r, const cot__plan *plan, uint32_t k) {
    const uint32_t *x = cot__operation_operand(r->p, k);
    for (int i = 0; i < cot__operation_operands(r->p, k); i++) {
        uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : plan->root[x[i]];
        if (root == COT__NO_VALUE || cot__value_origin(r->p, root) != COT__FROM_OPERATION) continue;
        uint32_t maker = cot__value_maker(r->p, root);
        if (plan->how[maker] == COT__BY_FETCH) await(r, plan->stores + (uint32_t)plan->extra[maker], k);
    }
}

/* Before its memory is another's, a value that operation k makes or reads last has been written. */
static void await_store(cot__run *r, const cot__plan *plan, uint32_t v, uint32_t k) {
    if (cot__is_in_file(plan, v) && plan->stored[plan->stored_as[v]].until == k) await(r, plan->stored_as[v], k);
}

static void store_results(cot__run *r, const cot__plan *plan, uint32_t k) {
    const cot__operation *o = &r->p->operation[k];
    const uint32_t       *x = cot__operation_operand(r->p, k);
    for (uint32_t v = o->result; v < o->result + o->results; v++) {
        if (!cot__is_in_file(plan, v)) continue;
        begin_move(r, plan, plan->stored_as[v], COT__MOVE_OUT, v, plan->stored_as[v], k);
        await_store(r, plan, v, k);
    }
    for (int i = 0; i < cot__operation_operands(r->p, k); i++)
        if (x[i] != COT__NO_VALUE) await_store(r, plan, plan->root[x[i]], k);
}

/* The room on the disk is taken now, so that no run finds it full. */
static bool open_file(cot__run *r, const cot__plan *plan, const char *folder, const cot__caller *caller) {
    if (!plan->stores) return true;
    if (r->measured) return count(r, cot__store_bytes(folder)), true;
    if (!cot__moves_open(&r->spilled, &r->al, folder))
        return errno == ENOMEM ? no_memory(caller, cot__store_bytes(folder))
                               : cot__refuse(caller, COT_VALUE, "a file in %s could not be made: %s", folder,
                                             strerror(errno));
    int64_t bytes = 0;
    for (uint32_t k = 0; k < plan->stores; k++) {
        int64_t more = cot__planned_bytes(r->p, plan->stored[k].value);
        bytes += more;
        if (!cot__moves_take(&r->spilled, (size_t)more))
            return cot__refuse(caller, COT_MEMORY, "there is no room for %lld bytes in a file in %s: %s",
                               (long long)bytes, folder, strerror(errno));
    }
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The job that was prepared last. */
static void add_job(cot__run *r) {
    end_scalars(r);
    r->step[r->steps++] = (cot__step){r->jobs - 1, COT__STEP_JOB, r->job[r->jobs - 1].operation};
}

/* Operation k, or the group that begins there. */
static bool prepare_operation(cot__run *r, const cot__plan *plan, uint32_t k, const cot__run_parts *parts,
                              const cot__caller *caller) {
    switch ((cot__how)plan->how[k]) {
    case COT__BY_VIEW: return true;
    case COT__BY_SCALARS: return prepare_scalar(r, plan, k, parts), true;
    case COT__BY_FETCH: return prepare_fetch(r, plan, k), true;
    case COT__BY_GROUP: cot__run_prepare_group(r, plan, &plan->fusion.group[plan->fusion.of[k]]); break;
    case COT__BY_MOVE: prepare_move(r, plan, k); break;
    default: prepare_job(r, plan, k);
    }
    add_job(r);
    return open_held(r, caller);
}

static bool prepare_operations(cot__run *r, const cot__plan *plan, const cot__run_parts *parts,
                               const cot__caller *caller) {
    for (uint32_t k = 0, end; k < r->p->operations; k = end) {
        end = plan->how[k] == COT__BY_GROUP ? plan->fusion.group[plan->fusion.of[k]].end : k + 1;
        for (uint32_t i = k; plan->fetches && i < end; i++) await_operands(r, plan, i);
        if (!prepare_operation(r, plan, k, parts, caller)) return false;
        for (uint32_t i = k; plan->fetches && i < end; i++) store_results(r, plan, i);
    }
    end_scalars(r);
    if (parts) cot__run_prepare_parts(r, plan, parts);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* What a run is made with, beside its program. */
typedef struct wishes {
    const cot__view      *inputs;
    bool                  unfused;
    const cot__run_parts *parts;
    const cot__lent      *lent;
    bool                  measured;
} wishes;

static bool prepare(cot__run *r, const wishes *w, const cot__caller *caller) {
    cot__plan plan;
    if (!cot__plan_open_lent(&plan, r->p, r->backend, &r->al, w->inputs, !w->unfused, w->lent, caller)) return false;
    r->lends_outputs = plan.lends_outputs;
    bool ok = open_arena(r, &plan, caller) && open_lists(r, &plan, w->parts, caller) &&
              open_file(r, &plan, w->lent ? w->lent->spill : NULL, caller);
    if (ok) {
        place_constants(r, &plan);
        place_inputs(r, &plan);
        ok = prepare_operations(r, &plan, w->parts, caller);
        place_outputs(r, &plan);
    }
    for (uint32_t k = 0; k < plan.directs.count; k++)
        plan.directs.one[k].place = plan.place[plan.directs.one[k].root];
    r->directs = plan.directs;
    plan.directs = (cot__directs){0};
    r->straight = is_straight(r);
    if (r->straight && r->words <= COT__MOST_WORDS) {
        find_staying(r);
        ok = ok && open_along(r, caller);
    }
    cot__plan_close(&plan);
    return ok;
}

static cot__run *create(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                        const wishes *w, const cot__caller *caller) {
    cot__run *r = cot__alloc(al, sizeof *r);
    if (!r) return no_memory(caller, sizeof *r), NULL;
    memset(r, 0, sizeof *r);
    r->p = cot__program_share(p);
    r->backend = backend;
    r->below = al ? *al : (cot_allocator){0};
    r->al = (cot_allocator){counted, r};
    r->held = sizeof *r;
    r->outermost = run_of(al) ? run_of(al)->outermost : r;
    r->measured = w->measured || r->outermost->measured;
    r->caller = (cot__caller){"program", r, hear_error, hear_note, NULL};
    r->failed_at = r->noted_at = r->at = COT__NO_VALUE;
    if (prepare(r, w, caller)) return r;
    cot__run_destroy(r);
    return NULL;
}

cot__run *cot__run_create(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                          const cot__view *inputs, const cot__caller *caller) {
    return create(p, backend, al, &(wishes){.inputs = inputs}, caller);
}

cot__run *cot__run_create_unfused(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                                  const cot__view *inputs, const cot__caller *caller) {
    return create(p, backend, al, &(wishes){.inputs = inputs, .unfused = true}, caller);
}

cot__run *cot__run_create_with(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                               const cot__run_parts *parts, const cot__lent *lent, const cot__caller *caller) {
    return create(p, backend, al, &(wishes){.parts = parts, .lent = lent}, caller);
}

static bool measure(const cot__program *p, const cot__backend *backend, const cot_allocator *al, const wishes *w,
                    const cot__caller *caller, int64_t *bytes, int64_t *arena) {
    cot__run *r = create(p, backend, al, w, caller);
    if (!r) return false;
    *bytes = (int64_t)r->held;
    *arena = (int64_t)cot__run_arena_bytes(r);
    cot__run_destroy(r);
    return true;
}

bool cot__run_measure_arena(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                            const cot__lent *lent, const cot__caller *caller, int64_t *bytes, int64_t *arena) {
    return measure(p, backend, al, &(wishes){.lent = lent, .measured = true}, caller, bytes, arena);
}

bool cot__run_measure(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                      const cot__run_parts *parts, const cot__lent *lent, const cot__caller *caller, int64_t *bytes) {
    int64_t arena;
    return measure(p, backend, al, &(wishes){.parts = parts, .lent = lent, .measured = true}, caller, bytes, &arena);
}

void cot__run_destroy(cot__run *r) {
    if (!r) return;
    cot_allocator al = r->al, below = r->below;
    close_held(r);
    cot__moves_close(&r->spilled);
    if (!r->backend->free) cot__free(&al, r->block, r->block_bytes);
    else if (r->block) r->backend->free(&al, r->block, r->block_bytes);
    cot__free(&al, r->lists, r->lists_bytes);
    cot__free(&al, r->along, cot__along_bytes());
    cot__directs_close(&r->directs, r->p, &al);
    cot__program_release(r->p);
    cot__free(&below, r, sizeof *r);
}
