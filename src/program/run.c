/* run.c: going through the steps of a run. Nothing is allocated here. */
#include "program/run.h"
#include "backend/elements.h"
#include "backend/job_run.h"
#include "program/scalars/along.h"
#include "program/run_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what it found --------------------------------------------------------------------------- */

cot_status  cot__run_status(const cot__run *r) { return r->code; }
const char *cot__run_message(const cot__run *r) { return r->message; }
const char *cot__run_note(const cot__run *r) { return r->note; }
uint32_t    cot__run_failed_at(const cot__run *r) { return r->failed_at; }
uint32_t    cot__run_noted_at(const cot__run *r) { return r->noted_at; }
const cot__program *cot__run_program(const cot__run *r) { return r->p; }
size_t      cot__run_bytes(const cot__run *r) { return r->held; }
size_t      cot__run_arena_bytes(const cot__run *r) { return r->arena_bytes; }
bool        cot__run_unfit(const cot__run *r) { return r->unfit; }
bool        cot__run_lost(const cot__run *r) { return r->lost; }
uint32_t    cot__run_unfit_output(const cot__run *r) { return r->unfit_output; }
cot__view   cot__run_output(const cot__run *r, uint32_t k) { return r->given[k].view; }

bool cot__run_disk_is_broken(const cot__run *r) {
    return r->spilled.store && cot__store_is_broken(r->spilled.store);
}

static void forget_last(cot__run *r) {
    r->code = COT_OK;
    r->lost = false;
    r->failed_at = r->noted_at = r->at = COT__NO_VALUE;
    r->message[0] = r->note[0] = 0;
}

/* ---- memory of the caller's ------------------------------------------------------------------ */

/* An input without elements may be NULL, on which C defines no arithmetic. */
static void *behind(const void *first, int64_t place) { return (void *)((uintptr_t)first + (uintptr_t)place); }

/* Two are not made in the same donated memory. */
static bool is_alone(const cot__run *r, uint32_t k, const void *to) {
    for (uint32_t i = 0; i < k; i++)
        if (cot__bytes_overlap(to, r->directs.one[k].bytes, r->base[r->p->inputs + i], r->directs.one[i].bytes))
            return false;
    return true;
}

/* Where direct output k is made: where the caller wants it, if it may be; or in a donated input, or
 * in the arena. NULL: nowhere. */
static const void *direct_base(const cot__run *r, uint32_t k, const void *const *inputs, void *const *outputs) {
    const cot__direct *one = &r->directs.one[k];
    const void        *to = outputs ? outputs[one->output] : NULL, *gift;
    bool               donated = one->donor != COT__NO_VALUE;
    if (cot__may_write_there(r->p, &r->directs, k, to, inputs, outputs) && (!donated || is_alone(r, k, to))) return to;
    if (!donated) return r->lends_outputs ? NULL : r->arena + one->place;
    gift = inputs[one->donor];
    bool fits = cot__may_write_there(r->p, &r->directs, k, gift, inputs, outputs) && is_alone(r, k, gift);
    return fits ? gift : NULL;
}

/* Do all inputs and outputs lie where they lay when direct outputs were bound last? Those of a
 * training loop do, and to ask about each output and each input takes long where there are
 * hundreds. (That outputs lie apart from one another has been asked before, once for all runs
 * that a cot_run has: lie_as_before of compile/run.c.) */
static bool lie_as_before(cot__run *r, const void *const *inputs, void *const *outputs) {
    bool same = r->bound_directs;
    for (uint32_t k = 0; k < r->p->inputs; k++) same &= r->lay[k] == inputs[k], r->lay[k] = inputs[k];
    const void **lay = r->lay + r->p->inputs;
    for (uint32_t k = 0; k < r->p->outputs; k++) same &= lay[k] == outputs[k], lay[k] = outputs[k];
    return r->bound_directs = same;
}

static bool bind_directs(cot__run *r, const void *const *inputs, void *const *outputs) {
    if (!r->directs.count) return true;
    if (!outputs) r->bound_directs = false;
    else if (lie_as_before(r, inputs, outputs)) return true;
    for (uint32_t k = 0; k < r->directs.count; k++) {
        if ((r->base[r->p->inputs + k] = direct_base(r, k, inputs, outputs))) continue;
        r->unfit_output = r->directs.one[k].output;
        return false;
    }
    r->bound_directs = outputs != NULL;
    return true;
}

static bool bind_callers(cot__run *r, const void *const *inputs, void *const *outputs) {
    for (uint32_t k = 0; k < r->words; k++) memcpy(r->load[k].to, inputs[r->load[k].input], 8);
    for (uint32_t k = r->words; k < r->loads; k++) memcpy(r->load[k].to, inputs[r->load[k].input], r->load[k].bytes);
    bool bound = r->bindings || r->part_bindings;
    for (uint32_t k = 0; k < r->p->inputs && bound; k++) r->base[k] = inputs[k];
    if (!bind_directs(r, inputs, outputs)) return false;
    for (uint32_t k = 0; k < r->bindings; k++)
        r->binding[k].view->data = behind(r->base[r->binding[k].base], r->binding[k].place);
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void clear_status(const cot__run *r) {
    static const int64_t two[1] = {2}, one[1] = {1};
    if (r->status == r->host_status) r->status[0] = r->status[1] = 0;
    else r->backend->fill(&(cot__view){r->status, COT_I64, 1, two, one}, 0);
}

/* A job that may refuse its data, or tell what it found in them. */
static bool run_with_effect(cot__run *r, const cot__prepared *q) {
    int64_t found[2];
    clear_status(r);
    if (!cot__job_check(&q->job)) return false;
    cot__job_run(&q->job);
    if (!q->job.record->tell) return true;
    cot__job_found(&q->job, found);
    if (found[0]) q->job.record->tell(&q->job, found);
    return true;
}

static bool run_job(cot__run *r, cot__prepared *q) {
    if (q->stage.size) return r->backend->elementwise(&q->stage), true;
    if (q->moves) return r->backend->copy(&q->job.z, q->job.x), true;
    if (q->copies) r->backend->copy(&q->job.z, &q->job.x[0]);
    r->at = q->operation;
    r->caller.name = cot__operation_name(r->p, q->operation);
    if (q->job.held) return q->job.record->go(&q->job);
    if (q->effect) return run_with_effect(r, q);
    return cot__job_run(&q->job), true;
}

/* What it had moved is of no use to the next run. */
static bool lose(cot__run *r, const cot__step *s) {
    const char *why = cot__store_trouble(r->spilled.store);
    r->at = s->operation;
    r->lost = true;
    r->caller.name = "spill";
    return cot__refuse(&r->caller, COT_MEMORY, "the disk of %s failed: %s; what lay there is lost, and the run with it",
                       cot__store_folder(r->spilled.store), why ? why : strerror(errno));
}

static bool run_move(cot__run *r, const cot__step *s) {
    return cot__moves_do(&r->spilled, s->first, (cot__moving)(s->kind - COT__STEP_MOVE)) || lose(r, s);
}

static bool run_steps(cot__run *r, cot__part_fn *const *functions) {
    cot__slot       *slots = (cot__slot *)(void *)r->arena;
    const cot__step *step = functions ? r->part_step : r->step;
    uint32_t         steps = functions ? r->part_steps : r->steps;
    for (uint32_t k = 0; k < steps; k++) {
        const cot__step *s = &step[k];
        if (s->kind == COT__STEP_PART) cot__run_do_part(r, s->first, functions[s->first]);
        else if (s->kind == COT__STEP_SCALARS) cot__scalars_run(r->scalar + s->first, slots);
        else if (!(s->kind >= COT__STEP_MOVE ? run_move(r, s) : run_job(r, &r->job[s->first]))) return false;
    }
    return true;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Row-major elements at `to`, from a view. */
static void copy_to(const cot__run *r, const cot__given *g, void *to, const cot__view *from) {
    int64_t stride[COT_MAX_NDIM];
    if (g->bytes >= 0) {
        if (g->bytes) memcpy(to, from->data, (size_t)g->bytes);
        return;
    }
    cot__strides(from->ndim, from->shape, stride);
    r->backend->copy(&(cot__view){to, from->dtype, from->ndim, from->shape, stride}, from);
}

/* What lies in inputs is kept elsewhere first, for the outputs may lie there. */
void cot__run_give(cot__run *r, void *const *outputs) {
    for (uint32_t k = 0; r->lent && k < r->p->outputs; k++)
        if (r->given[k].kept && outputs[k]) copy_to(r, &r->given[k], r->given[k].kept, &r->given[k].view);
    for (uint32_t k = 0; k < r->p->outputs; k++) {
        const cot__given *g = &r->given[k];
        if (!outputs[k]) continue;
        if (LIKELY(g->bytes == 8 && !g->kept && !g->direct)) {
            memcpy(outputs[k], g->view.data, 8);
            continue;
        }
        cot__view from = g->view;
        int64_t   stride[COT_MAX_NDIM];
        if (g->direct && from.data == outputs[k]) continue; /* it is there */
        if (g->kept) {
            cot__strides(from.ndim, from.shape, stride);
            from.data = g->kept;
            from.stride = stride;
        }
        copy_to(r, g, outputs[k], &from);
    }
}

bool cot__run_go_by(cot__run *r, cot__part_fn *const *functions, const void *const *inputs, void *const *outputs) {
    forget_last(r);
    r->unfit = !bind_callers(r, inputs, outputs);
    if (r->unfit) return false;
    if (functions) cot__run_bind_parts(r);
    if (!run_steps(r, functions)) return cot__moves_rest(&r->spilled), false;
    if (outputs) cot__run_give(r, outputs);
    return true;
}

/* What a step of a loop over numbers is: shorter than its way through all of the above. */
static bool go_straight(const cot__run *r, const void *const *inputs, void *const *outputs) {
    const cot__load  *load = r->load, *end = load + r->words;
    const cot__given *given = r->given;
    for (; load < end; load++) memcpy(load->to, inputs[load->input], 8);
    cot__scalars_run(r->scalar, (cot__slot *)(void *)r->arena);
    for (uint32_t k = 0, n = outputs ? r->p->outputs : 0; k < n; k++)
        if (outputs[k]) memcpy(outputs[k], given[k].view.data, 8);
    return true;
}

/* A word that is copied before or after each of many runs, and how far it moves in between. */
typedef struct passing { char *to; const char *from; int64_t step; } passing;

static bool is_written(const void *word, int64_t n, uint32_t outputs, void *const *out, const int64_t *step) {
    bool is = false;
    for (uint32_t k = 0; k < outputs && !is; k++) {
        int64_t way = (n - 1) * step[k];
        is = out[k] && cot__bytes_overlap(word, 8, (char *)out[k] + (way < 0 ? way : 0), llabs(way) + 8);
    }
    return is;
}

static uint32_t slot_at(const cot__run *r, const void *to) { return (uint32_t)(((const char *)to - r->arena) / 8); }

static bool go_in_lanes(const cot__run *r, int64_t n, const void *const *in, const int64_t *in_step, void *const *out,
                        const int64_t *out_step) {
    cot__word to[COT__MOST_WORDS], from[COT__MOST_WORDS];
    uint32_t  gives = 0;
    for (uint32_t k = 0; k < r->words; k++) {
        const cot__load *l = &r->load[k];
        to[k] = (cot__word){(char *)(uintptr_t)in[l->input], in_step[l->input], slot_at(r, l->to)};
    }
    for (uint32_t k = 0; k < r->p->outputs; k++)
        if (out[k]) from[gives++] = (cot__word){out[k], out_step[k], slot_at(r, r->given[k].view.data)};
    return cot__along_go(r->along, r->scalar, (const cot__slot *)(const void *)r->arena, n, to, r->words, from, gives);
}

bool cot__run_go_along(cot__run *r, int64_t n, const void *const *in, const int64_t *in_step, void *const *out,
                       const int64_t *out_step) {
    passing  load[COT__MOST_WORDS], give[COT__MOST_WORDS];
    uint32_t loads = 0, gives = 0, outputs = r->p->outputs;
    if (n < 1 || !r->straight || r->outermost->left) return false;
    if (r->words > COT__MOST_WORDS || outputs > COT__MOST_WORDS) return false;
    if (r->along && go_in_lanes(r, n, in, in_step, out, out_step)) return true;
    for (const cot__load *l = r->load, *end = l + r->words; l < end; l++) {
        const char *from = in[l->input];
        memcpy(l->to, from, 8);
        if (!l->stays || in_step[l->input] || is_written(from, n, outputs, out, out_step))
            load[loads++] = (passing){l->to, from, in_step[l->input]};
    }
    for (uint32_t k = 0; k < outputs; k++)
        if (out[k]) give[gives++] = (passing){out[k], r->given[k].view.data, out_step[k]};
    for (; n > 0; n--) {
        for (passing *l = load; l < load + loads; l->from += l->step, l++) memcpy(l->to, l->from, 8);
        cot__scalars_run(r->scalar, (cot__slot *)(void *)r->arena);
        for (passing *g = give; g < give + gives; g->to += g->step, g++) memcpy(g->to, g->from, 8);
    }
    return true;
}

void cot__run_bound(cot__run *r, int64_t *left) { r->left = left; }

static bool may_begin(cot__run *r) {
    int64_t *left = r->outermost->left;
    if (LIKELY(!left)) return true;
    if (*left > 0) return --*left, true;
    forget_last(r);
    r->caller.fail(&r->caller, COT_LIMIT, COT__TOO_MANY_STEPS);
    return false;
}

bool cot__run_go(cot__run *r, const void *const *inputs, void *const *outputs) {
    if (!may_begin(r)) return false;
    return r->straight ? go_straight(r, inputs, outputs) : cot__run_go_by(r, NULL, inputs, outputs);
}
