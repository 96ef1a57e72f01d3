/* loop_back_program.c: steps back through a loop as runs of a program: the body's recorded
 * gradient, recorded once for the whole way and lowered. A step that is recorded and swept gives
 * the same bits, but for the sign of zeros, and costs many times as much where its values are
 * small. The tape knows the program from then on: the way back through a loop with the same body is
 * not recorded again.
 *
 * Where signs of zeros are kept (`always`) and there is no program, the recorded gradient is
 * played, unless a derivative of the user's is in it. */
#include "rules/structural_ids.h"
#include "diff/loops/loop.h"
#include "ops/structural.h"
#include "tape/record_job.h"

#include <string.h>

/* Recording the gradient of a body costs as much as some steps back. */
enum { WORTH_RECORDING = 16 };

/* Are there derivatives of the user's in the body, or in one inside of it? */
static bool has_users_rules(cot_tape *t, const cot__region *body) {
    for (uint32_t i = body->first; i < body->end; i++) {
        const cot__op *op = cot__op_of(t->nodes[i].op);
        if (op->users_rule && op->users_rule(&(cot__rule){.t = t, .node = i})) return true;
    }
    return false;
}

/* Derivatives of the user's may read values, which there are in a sweep alone; a program's may
 * not. */
static bool is_worth_it(const cot__way_back *w, int64_t length) {
    cot_tape *t = w->s->t;
    if (t->kinks.look) return false;
    if (!w->always) return length >= WORTH_RECORDING && w->s->program && !t->options.smooth;
    return length > 0 && (w->s->program || !has_users_rules(t, w->s->body));
}

/* ---- recording the body ---------------------------------------------------------------------- */

/* The operands as values: constants and captures as the steps see them, copies above the sweep that
 * is under way. */
static void see_operands(const cot__way_back *w, cot_var *x) {
    const cot__stepper *s = w->s;
    const cot__loop    *l = s->loop;
    int                 captured = cot__loop_first_capture(l) + (s->steps.choice ? l->body[0]->captures : 0);
    for (int k = 0; k < cot__loop_operands(l); k++) x[k] = VAR(s->t, s->args[k]);
    for (int k = 0; k < l->consts; k++) x[cot__loop_first_const(l) + k] = s->player.value[k];
    for (int k = 0; k < s->body->captures; k++) x[captured + k] = s->player.value[s->body->n + k];
}

/* What a capture of the recorded body is: operand k of the loop, or fixed value -1 - k of the
 * loop's body. False: it is neither. */
static bool find_capture(const cot__way_back *w, const cot_var *x, uint32_t node, int32_t *from) {
    const cot__stepper *s = w->s;
    for (int k = 0; k < cot__loop_operands(s->loop); k++)
        if (cot__index(x[k]) == node) return *from = k, true;
    for (uint32_t k = 0; k < s->body->fixed; k++)
        if (cot__index(s->player.value[(uint32_t)(s->body->n + s->body->captures) + k]) == node)
            return *from = -1 - (int32_t)k, true;
    return false;
}

static bool list_captures(cot__way_back *w, const cot__region *body, const cot_var *x) {
    int32_t *from = cot__arena(w->s->t, ((size_t)body->captures + 1) * sizeof *from, w->s->loop->name);
    w->from = from;
    for (int k = 0; from && k < body->captures; k++)
        if (!find_capture(w, x, body->captured[k], &from[k])) return false;
    return from;
}

/* ---- knowing it ------------------------------------------------------------------------------ */

/* All that the way back of a step depends on: the program of the step, how the loop calls it, and
 * which adjoints there are. */
static void describe(const cot__way_back *w, cot__words *words) {
    const cot__stepper *s = w->s;
    const cot__form    *f = &s->steps.f;
    const int64_t       form[] = {f->consts, f->carry, f->nxs, f->nys, f->captures[0], f->captures[1], f->tested,
                                  f->chosen, f->counts, f->once, f->counts ? f->first : 0, s->steps.choice};
    words->failed = !s->body->known || f->chosen;
    cot__words_put(words, ~s->body->known);
    cot__words_put_bytes(words, form, sizeof form);
    for (int k = 0; k < cot__form_operands(f); k++) cot__words_put(words, w->bar[k] != NULL);
    for (int j = 0; j < cot__form_results(f); j++) cot__words_put(words, !cot__failed(w->g[j]));
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Lists in the arena of what the way reads and writes. */
static bool open_lists(cot__way_back *w, int captures) {
    cot__stepper    *s = w->s;
    cot_tape        *t = s->t;
    const cot__form *f = &s->steps.f;
    size_t           n = (size_t)cot__form_operands(f), m = (size_t)cot__form_results(f), c = (size_t)captures;
    cot__view       *x = cot__arena(t, (n + m + c + 1) * sizeof *x, s->loop->name), *g = cot__behind(x, n);
    cot__view       *captured = cot__behind(g, m);
    void           **bar = x ? cot__arena(t, (n + 1) * sizeof *bar, s->loop->name) : NULL;
    bool            *has = bar ? cot__arena(t, n + 1, s->loop->name) : NULL;
    w->way = (cot__way){.x = x, .has_bar = has, .bar = bar, .g = g, .captured = captured, .captures = captures};
    void *lists = has ? cot__arena(t, cot__way_lists(f, captures), s->loop->name) : NULL;
    if (!lists) return false;
    cot__way_lay(&w->way, f, lists);
    for (size_t k = 0; k < n; k++) {
        x[k] = cot__look(t, s->args[k]);
        has[k] = w->bar[k] != NULL;
        bar[k] = has[k] ? w->bar[k]->data : NULL;
    }
    for (size_t k = 0; k < m; k++)
        g[k] = cot__failed(w->g[k]) ? (cot__view){.dtype = COT_BOOL} : cot__look(t, cot__index(w->g[k]));
    for (size_t k = 0; k < c; k++)
        captured[k] = cot__look(t, w->from[k] >= 0 ? s->args[w->from[k]] : s->body->constant[-1 - w->from[k]]);
    return t->status == COT_OK;
}

static bool open_run(cot__way_back *w, int captures) {
    cot_tape   *t = w->s->t;
    cot__caller caller = cot__tape_caller(t, w->s->loop->name);
    if (!open_lists(w, captures)) return false;
    cot__way_see(&w->way, &w->s->steps);
    w->usual = true;
    for (uint32_t k = 0; k < w->program->inputs; k++) {
        cot__view *v = &w->way.input[k];
        if (!v->stride) v->stride = cot__value_view(w->program, w->program->input[k]).stride;
        w->usual &= cot__is_contiguous(v->ndim, v->shape, v->stride);
    }
    if (w->usual) w->run = cot__known_take(t->known, w->known);
    if (!w->run) w->run = cot__run_create(w->program, t->backend, &t->al, w->way.input, &caller);
    return w->run;
}

bool cot__way_find(cot__way_back *w, int64_t length) {
    cot_tape  *t = w->s->t;
    cot__words words = {.al = t->al};
    if (!is_worth_it(w, length) || !w->s->program) return false;
    describe(w, &words);
    cot__known_program found = cot__known_find(t->known, &words, 1);
    cot__words_free(&words);
    if (!found.number) return false;
    w->program = cot__program_share(found.program);
    w->known = found.number;
    int32_t *from = cot__arena(t, (found.count + 1) * sizeof *from, w->s->loop->name);
    if (from && found.count) memcpy(from, found.more, found.count * sizeof *from);
    w->from = from;
    return from && open_run(w, (int)found.count);
}

/* Records the way back of a step; w->program stays NULL if it cannot be a program, or is not to be
 * (loop_program.c). */
static bool record_step(cot__way_back *w, int *captures) {
    cot_tape        *t = w->s->t;
    const cot__loop *l = w->s->loop;
    size_t           n = (size_t)cot__loop_operands(l) + 1;
    cot__not_yet     not_yet;
    cot__words       words = {.al = t->al};
    cot_var         *x = cot__arena(t, n * sizeof *x, l->name);
    bool            *wanted = x ? cot__arena(t, n, l->name) : NULL;
    if (!wanted) return false;
    see_operands(w, x);
    for (int k = 0; k < cot__loop_operands(l); k++) wanted[k] = w->bar[k] != NULL;
    const cot__region *body = cot__loop_back_step(t, l, w->s->steps.choice, x, wanted, w->g);
    w->played = w->always ? body : NULL;
    if (!body || !w->s->program || !list_captures(w, body, x)) return t->status == COT_OK;
    *captures = body->captures;
    w->program = cot__region_lower(t, body, &t->al, &not_yet);
    describe(w, &words);
    if (w->program)
        w->known = cot__known_add(t->known, &words, w->program, (uint32_t)body->captures, w->from).number;
    cot__words_free(&words);
    return t->status == COT_OK;
}

bool cot__way_open(cot__way_back *w, int64_t length) {
    if (!is_worth_it(w, length)) return true;
    int captures = 0;
    if (!record_step(w, &captures)) return false;
    if (w->program) return open_run(w, captures);
    if (!w->played) return true;
    bool ok = open_lists(w, 0);
    if (ok) cot__way_see(&w->way, &w->s->steps);
    return ok;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static cot__view dense(cot__view v, void *data, int64_t *stride) {
    v.data = data;
    if (!v.stride) cot__strides(v.ndim, v.shape, stride), v.stride = stride;
    return v;
}

/* Input k, copied: results are written where inputs lie. */
static cot_var push_input(const cot__way_back *w, int k) {
    cot_tape   *t = w->s->t;
    int64_t     stride[COT_MAX_NDIM];
    cot__view   from = dense(w->way.input[k], w->way.in[k], stride);
    cot__result r;
    if (!cot__result_open(t, &r, w->s->loop->name, from.dtype, from.ndim, from.shape)) return INVALID(t);
    t->backend->copy(&r.view, &from);
    return cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
}

static bool play_step(const cot__way_back *w) {
    cot_tape          *t = w->s->t;
    const cot__region *r = w->played;
    int64_t            stride[COT_MAX_NDIM];
    cot_mark           m = cot__mark(t);
    cot__scope         scope = cot__scope_open(t, 0);
    size_t             n = (size_t)(r->n + r->captures);
    cot_var           *value = cot__arena(t, (n + (size_t)r->m + 1) * sizeof *value, r->name);
    cot_var           *out = cot__behind(value, n);
    for (int k = 0; k < r->n && t->status == COT_OK; k++) value[k] = push_input(w, k);
    for (int k = 0; k < r->captures && t->status == COT_OK; k++) value[r->n + k] = VAR(t, r->captured[k]);
    bool ok = t->status == COT_OK && cot__play_once(t, r->name, r, value, out);
    for (int k = 0; ok && k < r->m; k++) {
        cot__view to = dense(w->way.output[k], w->way.out[k], stride), from = cot__look(t, cot__index(out[k]));
        t->backend->copy(&to, &from);
    }
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    return t->status == COT_OK;
}

bool cot__way_step(cot__way_back *w, int64_t at) {
    cot__way *way = &w->way;
    cot__way_at(way, &w->s->steps, at);
    if (!w->run) return play_step(w);
    return cot__run_heard(w->s->t, w->run, cot__run_go(w->run, (const void *const *)way->in, way->out));
}

void cot__way_close(cot__way_back *w) {
    if (w->usual) cot__known_give(w->s->t->known, w->known, w->run);
    else cot__run_destroy(w->run);
    cot__program_release(w->program);
}
