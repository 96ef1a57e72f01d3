/* run.c: running a program on plain arrays. */
#include "compile/compile.h"

#include "backend/cpu/table/cpu.h"

#include <stdio.h>
#include <string.h>

/* ---- making one ------------------------------------------------------------------------------ */

static void heard(const cot__caller *c, cot_status code, const char *text) {
    cot_run *r = c->to;
    if (r->status != COT_OK) return;
    r->status = code;
    snprintf(r->message, sizeof r->message, "%s", text);
}
static void ignored(const cot__caller *c, const char *text) { (void)c, (void)text; }

cot_run *cot_run_create(cot_program *p) {
    cot_run *r = p ? cot__alloc(&p->al, sizeof *r) : NULL;
    if (!r) return NULL;
    memset(r, 0, sizeof *r);
    r->p = cot__program_counted(p);
    cot__caller caller = {"run_create", r, heard, ignored, NULL};
    if (p->status != COT_OK) heard(&caller, p->status, p->message);
    else r->run = cot__run_create(p->runs, &cot__cpu_backend, &p->al, NULL, &caller);
    return r;
}

void cot_run_destroy(cot_run *r) {
    if (!r) return;
    cot_program *p = r->p;
    cot__run_destroy(r->run);
    cot__free(&p->al, r, sizeof *r);
    cot_program_destroy(p);
}

/* ---- what it says ---------------------------------------------------------------------------- */

cot_status cot_run_status(const cot_run *r) {
    if (!r) return COT_MEMORY;
    return r->status != COT_OK || !r->run ? r->status : cot__run_status(r->run);
}
const char *cot_run_message(const cot_run *r) {
    if (!r) return "the run is NULL: cot_run_create was given no program, or found no memory";
    return r->status != COT_OK || !r->run ? r->message : cot__run_message(r->run);
}
const char *cot_run_note(const cot_run *r) { return r && r->run ? cot__run_note(r->run) : ""; }
size_t cot_run_bytes(const cot_run *r) { return r && r->run ? cot__run_bytes(r->run) : 0; }

/* ---- running --------------------------------------------------------------------------------- */

static bool refuse(cot_run *r, const char *format, const char *what, int k) {
    r->status = COT_VALUE;
    snprintf(r->message, sizeof r->message, format, what, k);
    return false;
}

static int64_t size_of(cot_type type) { return cot__count(type.shape.ndim, type.shape.dim); }

static bool arguments_are_given(cot_run *r, const void *const *inputs, void *const *outputs) {
    int n = cot_program_inputs(r->p), m = cot_program_outputs(r->p);
    if (n && !inputs) return refuse(r, "[program_run] the list of %s is NULL; it has %d elements", "inputs", n);
    if (m && !outputs) return refuse(r, "[program_run] the list of %s is NULL; it has %d elements", "outputs", m);
    for (int k = 0; k < n; k++)
        if (!inputs[k] && size_of(cot_program_input_type(r->p, k)) > 0)
            return refuse(r, "[program_run] %s[%d] is NULL; every input must be given", "inputs", k);
    return true;
}

cot_status cot_program_run(cot_run *r, const void *const *inputs, void *const *outputs) {
    if (!r || !r->run) return cot_run_status(r);
    r->status = COT_OK;
    if (!arguments_are_given(r, inputs, outputs)) return r->status;
    cot__run_go(r->run, inputs, outputs);
    return cot__run_status(r->run);
}
