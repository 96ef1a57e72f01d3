/* run.c: going through the steps of a run. Nothing is allocated here. */
#include "program/run.h"
#include "backend/elements.h"
#include "backend/job_run.h"
#include "program/run_parts.h"

#include <string.h>

/* ---- what it found --------------------------------------------------------------------------- */

cot_status  cot__run_status(const cot__run *r) { return r->code; }
const char *cot__run_message(const cot__run *r) { return r->message; }
const char *cot__run_note(const cot__run *r) { return r->note; }
uint32_t    cot__run_failed_at(const cot__run *r) { return r->failed_at; }
uint32_t    cot__run_noted_at(const cot__run *r) { return r->noted_at; }
size_t      cot__run_bytes(const cot__run *r) { return r->arena_bytes; }
cot__view   cot__run_output(const cot__run *r, uint32_t k) { return r->given[k].view; }

static void forget_last(cot__run *r) {
    r->code = COT_OK;
    r->failed_at = r->noted_at = COT__NO_VALUE;
    r->message[0] = r->note[0] = 0;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* An input without elements may be NULL, on which C defines no arithmetic. */
static void *behind(const void *first, int64_t place) { return (void *)((uintptr_t)first + (uintptr_t)place); }

static void bind_inputs(cot__run *r, const void *const *inputs) {
    for (uint32_t k = 0; k < r->loads; k++) {
        const cot__load *l = &r->load[k];
        if (LIKELY(l->bytes == 8)) memcpy(l->to, inputs[l->input], 8);
        else memcpy(l->to, inputs[l->input], l->bytes);
    }
    for (uint32_t k = 0; k < r->bindings; k++)
        r->binding[k].view->data = behind(inputs[r->binding[k].input], r->binding[k].place);
    for (uint32_t k = 0; k < r->p->outputs; k++)
        if (r->given[k].input != COT__NO_VALUE)
            r->given[k].view.data = behind(inputs[r->given[k].input], r->given[k].place);
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
    if (q->stage.count) return r->backend->elementwise(&q->stage), true;
    if (q->moves) return r->backend->copy(&q->job.z, q->job.x), true;
    if (q->copies) r->backend->copy(&q->job.z, &q->job.x[0]);
    r->at = q->operation;
    r->caller.name = cot__operation_name(r->p, q->operation);
    if (q->effect) return run_with_effect(r, q);
    return cot__job_run(&q->job), true;
}

static bool run_steps(cot__run *r) {
    cot__slot *slots = (cot__slot *)(void *)r->arena;
    for (uint32_t k = 0; k < r->steps; k++) {
        const cot__step *s = &r->step[k];
        if (s->count) cot__scalars_run(r->scalar + s->first, s->count, slots);
        else if (!run_job(r, &r->job[s->first])) return false;
    }
    return true;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Row-major elements at `to`, from a view. */
static void copy_to(const cot__run *r, const cot__given *g, void *to, const cot__view *from) {
    int64_t stride[COT_MAX_NDIM];
    if (g->bytes >= 0) {
        if (g->bytes == 8) memcpy(to, from->data, 8);
        else if (g->bytes) memcpy(to, from->data, (size_t)g->bytes);
        return;
    }
    cot__strides(from->ndim, from->shape, stride);
    r->backend->copy(&(cot__view){to, from->dtype, from->ndim, from->shape, stride}, from);
}

/* What lies in inputs is kept elsewhere first, for the outputs may lie there. */
static void give_outputs(cot__run *r, void *const *outputs) {
    for (uint32_t k = 0; k < r->p->outputs; k++)
        if (r->given[k].kept && outputs[k]) copy_to(r, &r->given[k], r->given[k].kept, &r->given[k].view);
    for (uint32_t k = 0; k < r->p->outputs; k++) {
        const cot__given *g = &r->given[k];
        cot__view         from = g->view;
        int64_t           stride[COT_MAX_NDIM];
        if (!outputs[k]) continue;
        if (g->kept) {
            cot__strides(from.ndim, from.shape, stride);
            from.data = g->kept;
            from.stride = stride;
        }
        copy_to(r, g, outputs[k], &from);
    }
}

bool cot__run_go(cot__run *r, const void *const *inputs, void *const *outputs) {
    forget_last(r);
    bind_inputs(r, inputs);
    if (!run_steps(r)) return false;
    if (outputs) give_outputs(r, outputs);
    return true;
}
