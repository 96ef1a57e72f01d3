/* loop_program.c: the steps of a loop as runs of a program, where only their values are wanted.
 *
 * A body that is a program (tape/lower.h) runs without recording: its run is made once for all
 * steps, and each step binds the state, the slices and the captures anew. A body is played instead
 *   - if it cannot be lowered yet: it holds another loop, a function of the user's, …;
 *   - while a body around it is recorded: values are examples then, and a position that is none is
 *     excused;
 *   - on operands of other types than it was recorded with. */
#include "backend/elements.h"
#include "diff/loops/loop.h"
#include "tape/record_job.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

static cot__view captured(const cot__stepper *s, const cot__region *body, int k) {
    const cot__loop *l = s->loop;
    int from = body == l->test ? cot__loop_operands(l) - body->captures
                               : cot__loop_first_capture(l) + (s->choice ? l->body[0]->captures : 0);
    return cot__view_read(s->t, s->args[from + k]);
}

static cot__view sliced(const cot__stepper *s, int k, int64_t at) {
    cot__view v = cot__view_read(s->t, s->args[cot__loop_first_xs(s->loop) + k]);
    char     *first = (char *)v.data + at * v.stride[0] * cot__dtype_size(v.dtype);
    return (cot__view){first, v.dtype, v.ndim - 1, v.shape + 1, v.stride + 1};
}

/* Carried value k of a state, row-major: its strides are not told. */
static cot__view carried(const cot__stepper *s, int k, const void *state) {
    cot__view v = cot__view_shape(s->t, s->args[cot__loop_first_carry(s->loop) + k]);
    v.data = (char *)(uintptr_t)state + s->offset[k];
    v.stride = NULL;
    return v;
}

/* Input k of a body at step `at`. Those of a test are the carried values. */
static cot__view input(const cot__stepper *s, const cot__region *body, int k, const void *state, int64_t at) {
    const cot__loop *l = s->loop;
    if (k >= body->n) return captured(s, body, k - body->n);
    if (body == l->test) return carried(s, k, state);
    if (k < l->consts) return cot__view_read(s->t, s->args[cot__loop_first_const(l) + k]);
    k -= l->consts;
    if (l->counts && k-- == 0) return (cot__view){s->count, COT_I64, 0, cot__no_axes, cot__no_axes};
    return k < l->carry ? carried(s, k, state) : sliced(s, k - l->carry, at);
}

/* ---- making a run ---------------------------------------------------------------------------- */

static bool same_type(const cot__view *a, const cot__view *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int k = 0; same && k < a->ndim; k++) same = a->shape[k] == b->shape[k];
    return same;
}

/* Views of the inputs, for their strides. False: one has another type than the program takes. */
static bool see_inputs(const cot__stepper *s, const cot__region *body, const cot__program *p, const void *state,
                       cot__view *to) {
    for (uint32_t k = 0; k < p->inputs; k++) {
        cot__view want = cot__value_view(p, p->input[k]);
        to[k] = input(s, body, (int)k, state, 0);
        if (!same_type(&to[k], &want)) return false;
        if (!to[k].stride) to[k].stride = want.stride;
    }
    return true;
}

static bool open_run(cot__stepper *s, cot__body_run *b, const cot__region *body, const void *state) {
    cot_tape   *t = s->t;
    size_t      n = b->program->inputs;
    cot__caller caller = cot__tape_caller(t, s->loop->name);
    cot__view  *views = cot__alloc(&t->al, n * sizeof *views);
    b->input = cot__alloc(&t->al, n * sizeof *b->input);
    if (!views || !b->input || !cot__count_open(s))
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %zu values", s->loop->name, n);
    else if (see_inputs(s, body, b->program, state, views))
        b->run = cot__run_create(b->program, t->backend, &t->al, views, &caller);
    else b->program = NULL;
    cot__free(&t->al, views, n * sizeof *views);
    if (!b->program) cot__free(&t->al, b->input, n * sizeof *b->input), b->input = NULL;
    return t->status == COT_OK;
}

bool cot__stepper_lower(cot__stepper *s) {
    if (s->t->mode.body) return true;
    s->steps.program = cot__region_program(s->t, s->body);
    if (s->loop->test && s->t->status == COT_OK) s->tests.program = cot__region_program(s->t, s->loop->test);
    return s->t->status == COT_OK;
}

static void end_run(cot__stepper *s, cot__body_run *b) {
    cot__run_destroy(b->run);
    if (b->input) cot__free(&s->t->al, b->input, b->program->inputs * sizeof *b->input);
}

void cot__stepper_end_runs(cot__stepper *s) {
    end_run(s, &s->steps);
    end_run(s, &s->tests);
    if (s->count) cot__device_free(s->t, s->count, sizeof *s->count);
}

/* ---- running --------------------------------------------------------------------------------- */

bool cot__run_on_tape(cot_tape *t, cot__run *run, const void *const *inputs, void *const *outputs) {
    bool ok = cot__run_go(run, inputs, outputs);
    if (cot__run_note(run)[0]) cot__note(t, "%s", cot__run_note(run));
    if (!ok) cot__fail(t, cot__run_status(run), "%s", cot__run_message(run));
    return ok;
}

bool cot__count_open(cot__stepper *s) {
    if (s->loop->counts && !s->count) s->count = cot__device_alloc(s->t, sizeof *s->count);
    return s->count || !s->loop->counts;
}

void cot__count_set(cot__stepper *s, int64_t at) {
    cot__view count = {s->count, COT_I64, 0, cot__no_axes, cot__no_axes};
    if (s->loop->counts) cot__set_i64(s->t->backend, &count, s->loop->first + at);
}

/* Nodes may have moved since the last step, and 0-d operands with them. */
static bool go(cot__stepper *s, cot__body_run *b, const cot__region *body, const void *state, int64_t at) {
    for (uint32_t k = 0; k < b->program->inputs; k++) b->input[k] = input(s, body, (int)k, state, at).data;
    return cot__run_on_tape(s->t, b->run, b->input, NULL);
}

bool cot__step_values(cot__stepper *s, const void *state, int64_t k, int64_t length) {
    const cot__loop *l = s->loop;
    int64_t          at = l->reverse ? length - 1 - k : k;
    if (s->steps.program && !s->steps.run && !open_run(s, &s->steps, s->body, state)) return false;
    if (!s->steps.program) return cot__loop_step(s, state, k, length, OP_constant, NULL);
    cot__count_set(s, at);
    s->played = false;
    return go(s, &s->steps, s->body, state, at);
}

cot__view cot__step_result(const cot__stepper *s, int j) {
    if (!s->played) return cot__run_output(s->steps.run, (uint32_t)j);
    return cot__view_read(s->t, cot__index(s->out[j]));
}

bool cot__test_values(cot__stepper *s, const void *state, cot__view *answer) {
    const cot__region *test = s->loop->test;
    if (s->tests.program && !s->tests.run && !open_run(s, &s->tests, test, state)) return false;
    if (!s->tests.program) return cot__test_step(s, state, answer);
    if (!go(s, &s->tests, test, state, 0)) return false;
    *answer = cot__run_output(s->tests.run, 0);
    return true;
}
