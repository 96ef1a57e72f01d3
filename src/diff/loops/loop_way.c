/* loop_way.c: see loop_way.h. */
#include "diff/loops/loop_way.h"

#include "backend/elements.h"

static const int64_t no_axes[1] = {0};

/* ---- lists ----------------------------------------------------------------------------------- */

/* There are no more inputs than this, and no more outputs. */
static size_t most(const cot__form *f, int captures) {
    return 1 + 2 * (size_t)f->carry + (size_t)cot__form_operands(f) + (size_t)f->nys + (size_t)captures;
}

size_t cot__way_lists(const cot__form *f, int captures) {
    return 2 * most(f, captures) * (sizeof(cot__view) + sizeof(void *) + sizeof(int64_t) + sizeof(cot__moving));
}

void cot__way_lay(cot__way *w, const cot__form *f, void *lists) {
    size_t n = most(f, w->captures);
    w->input = lists;
    w->output = w->input + n;
    w->moving = (cot__moving *)(void *)(w->output + n);
    w->in = (void **)(void *)(w->moving + 2 * n);
    w->out = w->in + n;
    w->in_step = (int64_t *)(void *)(w->out + n);
    w->out_step = w->in_step + n;
}

/* ---- views ----------------------------------------------------------------------------------- */

static void take_input(cot__way *w, cot__view v) {
    w->in[w->inputs] = v.data;
    w->input[w->inputs++] = v;
}
static void take_output(cot__way *w, cot__view v) {
    w->out[w->outputs] = v.data;
    w->output[w->outputs++] = v;
}

/* Row 0 of a view; at step k it is row k. */
static cot__view rows(cot__way *w, cot__view v, void **to) {
    w->moving[w->moves++] = (cot__moving){to, v.data, cot__slice_step(&v)};
    return (cot__view){v.data, v.dtype, v.ndim - 1, v.shape + 1, v.stride ? v.stride + 1 : NULL};
}

/* The adjoint of operand k. */
static cot__view bar_of(const cot__way *w, int k) {
    return (cot__view){w->bar ? w->bar[k] : NULL, w->x[k].dtype, w->x[k].ndim, w->x[k].shape, NULL};
}

/* The adjoints that stay between steps: of carried floats, then of constants and captures. */
static void see_bars(cot__way *w, const cot__form *f, void (*take)(cot__way *, cot__view)) {
    for (int k = cot__form_first_carry(f); k < cot__form_first_xs(f); k++)
        if (w->has_bar[k]) take(w, bar_of(w, k));
    for (int k = 0; k < cot__form_operands(f); k++)
        if (cot__form_is_outer(f, k) && w->has_bar[k]) take(w, bar_of(w, k));
}

static void see_inputs(cot__way *w, const cot__steps *s) {
    const cot__form *f = &s->f;
    if (f->counts) take_input(w, (cot__view){s->count, COT_I64, 0, no_axes, no_axes});
    see_bars(w, f, take_input);
    w->state = w->in + w->inputs;
    for (int k = cot__form_first_carry(f); k < cot__form_first_xs(f); k++)
        take_input(w, (cot__view){NULL, w->x[k].dtype, w->x[k].ndim, w->x[k].shape, NULL});
    for (int k = cot__form_first_xs(f); k < cot__form_first_capture(f); k++)
        take_input(w, rows(w, w->x[k], &w->in[w->inputs]));
    for (int j = f->carry; j < cot__form_results(f); j++) {
        if (w->g[j].dtype == COT_BOOL) continue;
        take_input(w, f->once ? w->g[j] : rows(w, w->g[j], &w->in[w->inputs]));
    }
    for (int k = 0; k < w->captures; k++) take_input(w, w->captured[k]);
}

void cot__way_see(cot__way *w, const cot__steps *s) {
    const cot__form *f = &s->f;
    w->inputs = w->outputs = w->moves = 0;
    see_inputs(w, s);
    see_bars(w, f, take_output);
    for (int k = cot__form_first_xs(f); k < cot__form_first_capture(f); k++)
        if (w->has_bar[k]) take_output(w, rows(w, bar_of(w, k), &w->out[w->outputs]));
}

void cot__way_at(cot__way *w, const cot__steps *s, int64_t at) {
    cot__view count = {s->count, COT_I64, 0, no_axes, no_axes};
    if (s->f.counts) cot__set_i64(s->backend, &count, s->f.first + at);
    for (int k = 0; k < s->f.carry; k++) w->state[k] = s->state + s->offset[k];
    for (int k = 0; k < w->moves; k++) {
        const cot__moving *m = &w->moving[k];
        *m->to = (void *)((uintptr_t)m->first + (uintptr_t)(at * m->step));
    }
}

bool cot__way_go_along(cot__way *w, const cot__steps *s, cot__run *run, int64_t at, int64_t n, bool up) {
    if (s->f.counts) return false;
    cot__way_at(w, s, at);
    for (int k = 0; k < w->inputs; k++) w->in_step[k] = 0;
    for (int k = 0; k < w->outputs; k++) w->out_step[k] = 0;
    for (int k = 0; k < s->f.carry; k++) w->in_step[w->state - w->in + k] = -(int64_t)s->bytes;
    for (int k = 0; k < w->moves; k++) {
        const cot__moving *m = &w->moving[k];
        bool               is_input = m->to >= w->in && m->to < w->in + w->inputs;
        *(is_input ? &w->in_step[m->to - w->in] : &w->out_step[m->to - w->out]) = up ? m->step : -m->step;
    }
    return cot__run_go_along(run, n, (const void *const *)w->in, w->in_step, w->out, w->out_step);
}
