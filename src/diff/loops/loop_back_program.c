/* loop_back_program.c: steps back through a loop as runs of a program: the body's recorded
 * gradient, recorded once for the whole way and lowered. A step that is recorded and swept gives
 * the same bits, and costs many times as much where its values are small. */
#include "diff/loops/loop.h"
#include "ops/structural.h"
#include "tape/record_job.h"

/* Recording the gradient of a body costs as much as some steps back. */
enum { WORTH_RECORDING = 16 };

/* ---- the body -------------------------------------------------------------------------------- */

/* The operands as values: constants and captures as the steps see them, copies above the sweep that
 * is under way. */
static void see_operands(const cot__way_back *w, cot_var *x) {
    const cot__stepper *s = w->s;
    const cot__loop    *l = s->loop;
    int                 captured = cot__loop_first_capture(l) + (s->choice ? l->body[0]->captures : 0);
    for (int k = 0; k < cot__loop_operands(l); k++) x[k] = VAR(s->t, s->args[k]);
    for (int k = 0; k < l->consts; k++) x[cot__loop_first_const(l) + k] = s->player.value[k];
    for (int k = 0; k < s->body->captures; k++) x[captured + k] = s->player.value[s->body->n + k];
}

static bool record_step(cot__way_back *w) {
    cot_tape        *t = w->s->t;
    const cot__loop *l = w->s->loop;
    size_t           n = (size_t)cot__loop_operands(l) + 1;
    cot__not_yet     not_yet;
    cot_var         *x = cot__arena(t, n * sizeof *x, l->name);
    bool            *wanted = x ? cot__arena(t, n, l->name) : NULL;
    if (!wanted) return false;
    see_operands(w, x);
    for (int k = 0; k < cot__loop_operands(l); k++) wanted[k] = w->bar[k] != NULL;
    w->body = cot__loop_back_step(t, l, w->s->choice, x, wanted, w->g);
    w->program = w->body ? cot__region_lower(t, w->body, &t->al, &not_yet) : NULL;
    return t->status == COT_OK;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

/* Operand k of the loop; data at `at`, row-major: its strides are not told. */
static cot__view like_operand(const cot__way_back *w, int k, void *data) {
    cot__view v = cot__view_shape(w->s->t, w->s->args[k]);
    return (cot__view){data, v.dtype, v.ndim, v.shape, NULL};
}

static cot__view row_of(cot__view v, int64_t at) {
    int64_t step = v.stride ? v.stride[0] : cot__count(v.ndim - 1, v.shape + 1);
    return (cot__view){(char *)v.data + at * step * cot__dtype_size(v.dtype), v.dtype, v.ndim - 1, v.shape + 1,
                       v.stride ? v.stride + 1 : NULL};
}

static bool is_outer(const cot__loop *l, int k) {
    return (k >= cot__loop_first_const(l) && k < cot__loop_first_carry(l)) || k >= cot__loop_first_capture(l);
}

/* The adjoints that stay between steps: of carried floats, then of constants and captures. */
static cot__view *see_bars(const cot__way_back *w, cot__view *to) {
    const cot__loop *l = w->s->loop;
    int              first = cot__loop_first_carry(l);
    for (int k = first; k < first + l->carry; k++)
        if (w->bar[k]) *to++ = like_operand(w, k, w->bar[k]->data);
    for (int k = 0; k < cot__loop_operands(l); k++)
        if (is_outer(l, k) && w->bar[k]) *to++ = like_operand(w, k, w->bar[k]->data);
    return to;
}

/* In the order of cot__loop_back_step, then the captures of its body. */
static void see_inputs(const cot__way_back *w, int64_t at, cot__view *to) {
    const cot__stepper *s = w->s;
    const cot__loop    *l = s->loop;
    if (l->counts) *to++ = (cot__view){s->count, COT_I64, 0, cot__no_axes, cot__no_axes};
    to = see_bars(w, to);
    for (int k = 0; k < l->carry; k++)
        *to++ = like_operand(w, cot__loop_first_carry(l) + k, (char *)(uintptr_t)w->state + s->offset[k]);
    for (int k = 0; k < l->nxs; k++) *to++ = row_of(cot__view_read(s->t, s->args[cot__loop_first_xs(l) + k]), at);
    for (int j = l->carry; j < l->carry + l->nys; j++) {
        if (cot__failed(w->g[j])) continue;
        cot__view g = cot__view_read(s->t, cot__index(w->g[j]));
        *to++ = l->once ? g : row_of(g, at);
    }
    for (int k = 0; k < w->body->captures; k++) *to++ = cot__view_read(s->t, w->body->captured[k]);
}

static void see_outputs(const cot__way_back *w, int64_t at, cot__view *to) {
    const cot__loop *l = w->s->loop;
    to = see_bars(w, to);
    for (int k = cot__loop_first_xs(l); k < cot__loop_first_capture(l); k++)
        if (w->bar[k]) *to++ = row_of(like_operand(w, k, w->bar[k]->data), at);
}

/* ---- the way --------------------------------------------------------------------------------- */

static bool open_lists(cot__way_back *w) {
    cot_tape *t = w->s->t;
    size_t    n = w->program->inputs, m = w->program->outputs;
    w->views = cot__arena(t, (n + m + 1) * sizeof *w->views, w->s->loop->name);
    w->in = w->views ? cot__arena(t, (n + 1) * sizeof *w->in, w->s->loop->name) : NULL;
    w->out = w->in ? cot__arena(t, (m + 1) * sizeof *w->out, w->s->loop->name) : NULL;
    if (w->out && !cot__count_open(w->s))
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %zu values", w->s->loop->name, n);
    return t->status == COT_OK;
}

bool cot__way_open(cot__way_back *w, int64_t length) {
    cot_tape   *t = w->s->t;
    cot__caller caller = cot__tape_caller(t, w->s->loop->name);
    if (length < WORTH_RECORDING || !w->s->steps.program || t->options.smooth || t->kinks.look) return true;
    if (!record_step(w)) return false;
    if (!w->program) return true;
    if (!open_lists(w)) return false;
    see_inputs(w, 0, w->views);
    for (uint32_t k = 0; k < w->program->inputs; k++)
        if (!w->views[k].stride) w->views[k].stride = cot__value_view(w->program, w->program->input[k]).stride;
    w->run = cot__run_create(w->program, t->backend, &t->al, w->views, &caller);
    return t->status == COT_OK;
}

bool cot__way_step(cot__way_back *w, int64_t at) {
    cot__view *in = w->views, *out = in + w->program->inputs;
    cot__count_set(w->s, at);
    see_inputs(w, at, in);
    see_outputs(w, at, out);
    for (uint32_t k = 0; k < w->program->inputs; k++) w->in[k] = in[k].data;
    for (uint32_t k = 0; k < w->program->outputs; k++) w->out[k] = out[k].data;
    return cot__run_on_tape(w->s->t, w->run, w->in, w->out);
}

void cot__way_close(cot__way_back *w) {
    cot__run_destroy(w->run);
    cot__program_release(w->program);
}
