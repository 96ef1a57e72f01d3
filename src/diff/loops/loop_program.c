/* loop_program.c: the steps of a loop on a tape as runs of a program, where only their values are
 * wanted. A body is played instead
 *   - if it cannot be lowered yet: it holds a solver, a function of the user's, …;
 *   - while a body around it is recorded: values are examples then, and a position that is none is
 *     excused;
 *   - on operands of other types than it was recorded with;
 *   - if it has bodies itself, while a file is loaded, whose steps are counted one by one. */
#include "diff/loops/loop.h"
#include "tape/record_job.h"

/* ---- operands -------------------------------------------------------------------------------- */

/* Nodes may have moved since the last step, and 0-d operands with them. */
static void see_operands(cot__stepper *s) {
    if (s->nodes == s->t->nodes) return;
    for (int k = 0; k < cot__form_operands(&s->steps.f); k++) s->view[k] = cot__look(s->t, s->args[k]);
    s->nodes = s->t->nodes;
    cot__steps_bind(&s->steps, s->view);
}

/* ---- making a run ---------------------------------------------------------------------------- */

static bool same_type(const cot__view *a, const cot__view *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int k = 0; same && k < a->ndim; k++) same = a->shape[k] == b->shape[k];
    return same;
}

/* Views of the inputs, for their strides. *usual: runs that the tape knows take them as they lie.
 * False: one has another type than the program takes. */
static bool see_inputs(const cot__stepper *s, bool test, const cot__program *p, cot__view *to, bool *usual) {
    *usual = true;
    for (uint32_t k = 0; k < p->inputs; k++) {
        cot__view want = cot__value_view(p, p->input[k]);
        to[k] = test ? cot__steps_tested(&s->steps, s->view, (int)k) : cot__steps_input(&s->steps, s->view, (int)k);
        if (!same_type(&to[k], &want)) return false;
        if (!to[k].stride) to[k].stride = want.stride;
        *usual &= cot__is_contiguous(to[k].ndim, to[k].shape, to[k].stride);
    }
    *usual |= s->loop->vmapped && s->loop->vmapped->told;
    return true;
}

/* A run of the body or of the test: one that is left over from another loop, or a new one. */
static cot__run *open_run(cot__stepper *s, bool test, const cot__program **p) {
    cot_tape          *t = s->t;
    const cot__region *body = test ? s->loop->test : s->body;
    size_t             n = (*p)->inputs;
    cot__caller        caller = cot__tape_caller(t, s->loop->name);
    cot__view         *views = cot__alloc(&t->al, n * sizeof *views);
    cot__run          *run = NULL;
    if (!views) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %zu values", s->loop->name, n);
        return NULL;
    }
    see_operands(s);
    if (!see_inputs(s, test, *p, views, &s->usual[test])) *p = NULL;
    else if (s->usual[test]) run = cot__known_take(t->known, body->known);
    if (*p && !run) run = cot__run_create(*p, t->backend, &t->al, views, &caller);
    cot__free(&t->al, views, n * sizeof *views);
    return run;
}

static bool has_bodies(const cot_tape *t, const cot__region *r) {
    bool has = false;
    for (uint32_t k = 0; k < r->steps && !has; k++) has = cot__op_of(t->nodes[r->node[k]].op)->bodies > 0;
    return has;
}

/* NULL: it is to be played, or there is an error. */
static const cot__program *program_of(cot_tape *t, const cot__region *r) {
    return cot__is_loading(t) && has_bodies(t, r) ? NULL : cot__region_program(t, r);
}

bool cot__stepper_lower(cot__stepper *s) {
    if (s->t->mode.body) return true;
    s->program = program_of(s->t, s->body);
    if (s->loop->test && s->t->status == COT_OK) s->test_program = program_of(s->t, s->loop->test);
    return s->t->status == COT_OK;
}

static void end_run(cot__stepper *s, cot__run *run, bool test) {
    const cot__region *body = test ? s->loop->test : s->body;
    if (run && s->usual[test]) cot__known_give(s->t->known, body->known, run);
    else cot__run_destroy(run);
}

void cot__stepper_end_runs(cot__stepper *s) {
    end_run(s, s->steps.body, false);
    end_run(s, s->steps.test, true);
}

/* ---- running --------------------------------------------------------------------------------- */

bool cot__run_heard(cot_tape *t, const cot__run *run, bool ok) {
    if (cot__run_note(run)[0]) cot__note(t, "%s", cot__run_note(run));
    if (!ok) cot__fail(t, cot__run_status(run), "%s", cot__run_message(run));
    return ok;
}

bool cot__stepper_run(cot__stepper *s, const cot__view *y, int64_t k, int64_t length) {
    if (!s->steps.body) s->steps.body = open_run(s, false, &s->program);
    if (!s->steps.body) return false;
    see_operands(s);
    return cot__run_heard(s->t, s->steps.body, cot__steps_go(&s->steps, s->view, y, k, length));
}

bool cot__stepper_run_along(cot__stepper *s, const cot__view *y, int64_t k, int64_t n, int64_t length, size_t apart) {
    if (!s->steps.body || cot__is_loading(s->t)) return false;
    see_operands(s);
    return cot__steps_go_along(&s->steps, s->view, y, k, n, length, apart);
}

bool cot__stepper_run_test(cot__stepper *s, bool *go) {
    if (!s->steps.test) s->steps.test = open_run(s, true, &s->test_program);
    if (!s->steps.test) return false;
    see_operands(s);
    return cot__run_heard(s->t, s->steps.test, cot__steps_test(&s->steps, go));
}
