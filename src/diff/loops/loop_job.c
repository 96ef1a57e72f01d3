/* loop_job.c: a loop as an operation of a program, whose bodies are programs of their own: its
 * types, its memory, and running it. Nothing is allocated in a run. */
#include "backend/elements.h"
#include "diff/loops/loop_job.h"
#include "ops/structural.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED = 1, BOUNDED = 2, OPEN = 4, KEEPS_END = 8 };
enum { MOST = 65535 }; /* results, and values of each kind */

/* ---- its form -------------------------------------------------------------------------------- */

static const cot__program *body_at(const cot__job *j, int k) { return j->body[k]; }
static const cot__program *test_of(const cot__job *j, const cot__form *f) { return j->body[1 + f->chosen]; }

/* Are there as many values of each kind, and as many bodies, as there can be? */
bool cot__loop_is_countable(const cot__job *j, bool back) {
    const cot__attr *a = j->attr;
    if (!a || a->nints < COT__LOOP_INTS) return false;
    if (a->ints[COT__LOOP_FORM] < 0 || a->ints[COT__LOOP_FORM] >= COT__LOOP_FORM_END) return false;
    for (int k = COT__LOOP_CONSTS; k <= COT__LOOP_NYS; k++)
        if (a->ints[k] < 0 || a->ints[k] > MOST) return false;
    bool chosen = a->ints[COT__LOOP_FORM] & COT__LOOP_CHOSEN, tests = a->ints[COT__LOOP_FORM] & COT__LOOP_TESTS;
    int64_t results = a->ints[COT__LOOP_CARRY] + a->ints[COT__LOOP_NYS];
    /* a file of few bytes may say that there are many results, but not have them all */
    return j->bodies == (1 + chosen) * (1 + back) + tests && results >= 1 && results <= MOST &&
           results == (int64_t)j->body[0]->outputs;
}

bool cot__loop_is_legal(const cot__job *j, cot__form *f, bool back) {
    if (!cot__job_has(j, 0, INT32_MAX, COT__LOOP_INTS)) return false;
    for (int k = COT__LOOP_CONSTS; k <= COT__LOOP_NYS; k++)
        if (!cot__job_range(j, k, 0, MOST)) return false;
    if (!cot__job_range(j, COT__LOOP_FORM, 0, COT__LOOP_FORM_END - 1) ||
        !cot__job_range(j, COT__LOOP_KEEPS, 0, KEEPS_END - 1) || !cot__job_range(j, COT__LOOP_LENGTH, 0, INT64_MAX) ||
        !cot__job_range(j, COT__LOOP_STATES, 1, INT32_MAX - 8))
        return false;
    *f = cot__form_of(j->attr);
    if (f->counts && f->first > INT64_MAX - f->length)
        return cot__job_illegal(j, "%lld steps from %lld, which ends beyond 64 bits", (long long)f->length,
                                (long long)f->first);
    int bodies = (1 + f->chosen) * (1 + back) + f->tests;
    if (j->bodies != bodies) return cot__job_illegal(j, "%d bodies, where %d belong", j->bodies, bodies);
    if (cot__form_results(f) < 1 || cot__form_results(f) > MOST)
        return cot__job_illegal(j, "%d results", cot__form_results(f));
    if ((f->tests && (f->nys || f->nxs || f->counts || f->reverse)) || (f->once && (f->length != 1 || f->carry)))
        return cot__job_illegal(j, "a loop of unknown length, or of one step, that counts or carries");
    cot__form_count(f, j->body);
    if (f->captures[0] < 0 || f->captures[1] < 0 || f->tested < 0 || j->n < cot__form_operands(f) ||
        (!back && j->n > cot__form_operands(f)))
        return cot__job_illegal(j, "%d operands, where its bodies take others", j->n);
    return true;
}

/* ---- types ----------------------------------------------------------------------------------- */

static bool same_type(const cot__view *a, const cot__view *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int k = 0; same && k < a->ndim; k++) same = a->shape[k] == b->shape[k];
    return same;
}

/* Do the operands, as a step sees them, have the types of the inputs of this body? */
static bool inputs_fit(const cot__job *j, const cot__form *f, const cot__program *body, int choice, bool test) {
    cot__steps s = {.f = *f, .choice = choice};
    for (uint32_t k = 0; k < body->inputs; k++) {
        cot__view want = cot__value_view(body, body->input[k]);
        cot__view have = test ? cot__steps_tested(&s, j->x, (int)k) : cot__steps_input(&s, j->x, (int)k);
        if (!same_type(&have, &want)) return cot__job_illegal(j, "input %u of a body has another type", k);
    }
    return true;
}

/* Carried values keep their type, and both bodies give the same. */
static bool outputs_fit(const cot__job *j, const cot__form *f, int b) {
    const cot__program *body = body_at(j, b);
    if ((int)body->outputs != cot__form_results(f))
        return cot__job_illegal(j, "a body gives %u results, where %d belong", body->outputs, cot__form_results(f));
    for (int k = 0; k < cot__form_results(f); k++) {
        cot__view have = cot__value_view(body, body->output[k]);
        cot__view want = cot__value_view(body_at(j, 0), body_at(j, 0)->output[k]);
        if (k < f->carry) want = j->x[cot__form_first_carry(f) + k];
        if (!same_type(&have, &want)) return cot__job_illegal(j, "result %d of a body has another type", k);
    }
    return true;
}

static bool test_fits(const cot__job *j, const cot__form *f) {
    const cot__program *test = test_of(j, f);
    if (test->outputs != 1 || cot__value_view(test, test->output[0]).ndim)
        return cot__job_illegal(j, "its test gives another thing than one number");
    return inputs_fit(j, f, test, 0, true);
}

static bool operands_fit(const cot__job *j, const cot__form *f) {
    if (f->chosen && j->x[0].ndim) return cot__job_illegal(j, "its choice has axes");
    for (int k = cot__form_first_xs(f); k < cot__form_first_capture(f); k++)
        if (j->x[k].ndim < 1 || j->x[k].shape[0] != f->length)
            return cot__job_illegal(j, "operand %d has not as many rows as there are steps", k);
    return true;
}

int cot__loop_job_results(const cot__job *j) {
    return cot__loop_is_countable(j, false) ? (int)(j->attr->ints[COT__LOOP_CARRY] + j->attr->ints[COT__LOOP_NYS]) : 1;
}

bool cot__loop_fits(const cot__job *j, const cot__form *f) {
    if (!operands_fit(j, f)) return false;
    for (int b = 0; b < 1 + f->chosen; b++)
        if (!inputs_fit(j, f, body_at(j, b), b, false) || !outputs_fit(j, f, b)) return false;
    return !f->tests || test_fits(j, f);
}

bool cot__loop_job_infer(const cot__job *j, cot__type *z) {
    cot__form f;
    if (!cot__loop_is_legal(j, &f, false) || !cot__loop_fits(j, &f)) return false;
    cot__form_order o = cot__form_order_of(body_at(j, 0));
    for (int k = 0; k < cot__form_results(&f); k++) {
        cot__view  v = cot__value_view(body_at(j, 0), body_at(j, 0)->output[k]);
        cot__type *to = &z[cot__form_place(&o, k)];
        bool       stacked = k >= f.carry && !f.once;
        if (v.ndim + stacked > COT_MAX_NDIM) return cot__job_illegal(j, "result %d has too many axes", k);
        to->dtype = v.dtype;
        to->shape.ndim = v.ndim + stacked;
        if (stacked) to->shape.dim[0] = f.length;
        for (int i = 0; i < v.ndim; i++) to->shape.dim[i + stacked] = v.shape[i];
    }
    return true;
}

bool cot__loop_job_effect(const cot__attr *a) {
    return a && a->nints > COT__LOOP_FORM && a->ints[COT__LOOP_FORM] & COT__LOOP_TESTS;
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { ALIGN = 64 };

/* What is held for all runs. */
typedef struct holding {
    cot__steps    s;
    cot__run     *run[2];
    cot__view    *y; /* where given out values go */
    int          *at; /* result k of the loop is result at[k] of the operation */
    cot_allocator al;
    void         *lists;
    size_t        bytes;
} holding;

/* Lists of steps, in memory of the caller's; the state is measured. */
static bool measure(const cot__job *j, cot__steps *s, void *lists) {
    s->f = cot__form_of(j->attr);
    cot__form_count(&s->f, j->body);
    s->backend = j->backend;
    cot__steps_lay(s, lists);
    return cot__steps_measure(s, j->x);
}

/* The number of the step and two states. */
int64_t cot__loop_job_workspace(const cot__job *j) {
    int64_t   bytes = 0;
    cot__form f = cot__form_of(j->attr);
    for (int k = 0; k < f.carry; k++) {
        const cot__view *v = &j->x[cot__form_first_carry(&f) + k];
        int64_t          one = cot__view_size(v) * cot__dtype_size(v->dtype);
        bytes = cot__size_add(bytes, cot__size_add(one, 2 * ALIGN));
    }
    return bytes > INT64_MAX / 4 ? -1 : 2 * (bytes + ALIGN) + ALIGN;
}

cot__run *cot__loop_open_run(const cot__job *j, const cot__program *body, cot__view *views, const cot_allocator *al) {
    for (uint32_t k = 0; k < body->inputs; k++)
        if (!views[k].stride) views[k].stride = cot__value_view(body, body->input[k]).stride;
    return cot__run_create(body, j->backend, al, views, j->caller);
}

static cot__run *open_body(const cot__job *j, const cot__steps *s, const cot__program *body, bool test,
                           const cot_allocator *al) {
    size_t     bytes = body->inputs * sizeof(cot__view);
    cot__view *views = cot__alloc(al, bytes);
    if (!views) return cot__refuse(j->caller, COT_MEMORY, "out of memory: a list of %u values", body->inputs), NULL;
    for (uint32_t k = 0; k < body->inputs; k++)
        views[k] = test ? cot__steps_tested(s, j->x, (int)k) : cot__steps_input(s, j->x, (int)k);
    cot__run *run = cot__loop_open_run(j, body, views, al);
    cot__free(al, views, bytes);
    return run;
}

bool cot__loop_open_runs(const cot__job *j, cot__steps *s, cot__run **run, const cot_allocator *al) {
    for (int b = 0; b < 1 + s->f.chosen; b++) {
        s->choice = b;
        run[b] = open_body(j, s, body_at(j, b), false, al);
        if (!run[b]) return false;
    }
    s->choice = 0;
    if (s->f.tests) s->test = open_body(j, s, test_of(j, &s->f), true, al);
    return !s->f.tests || s->test;
}

static bool open_lists(const cot__job *j, holding *h) {
    cot__form f = cot__form_of(j->attr);
    cot__form_count(&f, j->body);
    size_t results = (size_t)cot__form_results(&f);
    h->bytes = cot__steps_lists(&f) + (size_t)f.nys * sizeof *h->y + results * sizeof *h->at;
    h->lists = cot__alloc(&h->al, h->bytes);
    if (!h->lists) return cot__refuse(j->caller, COT_MEMORY, "out of memory: lists of %zu results", results);
    h->y = h->lists;
    void *steps = h->y + f.nys;
    h->at = (int *)(void *)((char *)steps + cot__steps_lists(&f));
    if (!measure(j, &h->s, steps))
        return cot__refuse(j->caller, COT_LIMIT, "the carried values have more elements together than memory can hold");
    cot__form_order o = cot__form_order_of(body_at(j, 0));
    for (size_t k = 0; k < results; k++) h->at[k] = cot__form_place(&o, (int)k);
    return true;
}

void *cot__loop_job_open(const cot__job *j, const cot_allocator *al) {
    holding *h = cot__alloc(al, sizeof *h);
    if (!h) return cot__refuse(j->caller, COT_MEMORY, "out of memory: %zu bytes to run a loop", sizeof *h), NULL;
    memset(h, 0, sizeof *h);
    h->al = *al;
    if (open_lists(j, h) && cot__loop_open_runs(j, &h->s, h->run, al)) return h;
    cot__loop_job_close(h);
    return NULL;
}

void cot__loop_job_close(void *held) {
    holding      *h = held;
    cot_allocator al = h->al;
    cot__run_destroy(h->run[0]);
    cot__run_destroy(h->run[1]);
    cot__run_destroy(h->s.test);
    cot__free(&al, h->lists, h->bytes);
    cot__free(&al, h, sizeof *h);
}

/* ---- errors ---------------------------------------------------------------------------------- */

void cot__add_place(char text[COT__PLACED_TEXT], const char *format, ...) {
    size_t  used = strlen(text), room = COT__PLACED_TEXT - used;
    va_list args;
    if (room < 8) return;
    memcpy(text + used, " (in ", 6);
    va_start(args, format);
    int length = vsnprintf(text + used + 5, room - 6, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room - 6) text[used] = 0;
    else memcpy(text + used + 5 + length, ")", 2);
}

static void hear_note(const cot__job *j, const cot__run *run) {
    if (cot__run_note(run)[0]) j->caller->note(j->caller, cot__run_note(run));
}

bool cot__loop_refused(const cot__job *j, const cot__steps *s, const cot__run *run, int64_t k) {
    char        text[COT__PLACED_TEXT];
    const char *name = j->caller->name;
    int64_t     at = s->f.reverse ? s->f.length - 1 - k : k;
    snprintf(text, sizeof text, "%s", cot__run_message(run));
    if (k < 0) cot__add_place(text, "the test of [%s]", name);
    if (k >= 0 && s->f.chosen) cot__add_place(text, "the %s of [%s]", cot__branch(s->choice), name);
    if (k >= 0 && (s->f.tests || s->f.length != 1))
        cot__add_place(text, "step %lld of [%s]", (long long)(s->f.first + at), name);
    j->caller->fail(j->caller, cot__run_status(run), text);
    return false;
}

/* ---- running --------------------------------------------------------------------------------- */

static cot__view result_at(const cot__job *j, int k) { return k ? j->more[k - 1] : j->z; }

static bool run_step(const cot__job *j, holding *h, int64_t k) {
    cot__steps *s = &h->s;
    bool        ok = cot__steps_go(s, j->x, h->y, k, s->f.tests ? 0 : s->f.length);
    hear_note(j, s->body);
    return ok || cot__loop_refused(j, s, s->body, k);
}

static bool run_while(const cot__job *j, holding *h) {
    cot__steps *s = &h->s;
    for (int64_t k = 0;; k++) {
        bool go, ok = cot__steps_test(s, &go);
        hear_note(j, s->test);
        if (!ok) return cot__loop_refused(j, s, s->test, -1);
        if (!go) return true;
        if (s->f.length > 0 && k == s->f.length)
            return cot__refuse(j->caller, COT_LIMIT, "still going on after %lld step%s, the most it was allowed",
                               (long long)k, k == 1 ? "" : "s");
        if (!run_step(j, h, k)) return false;
    }
}

static void begin(const cot__job *j, holding *h) {
    cot__steps *s = &h->s;
    char       *memory = (char *)(((uintptr_t)j->workspace + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    s->count = (int64_t *)(void *)memory;
    s->state = memory + ALIGN;
    s->next = s->state + s->bytes;
    s->choice = s->f.chosen && cot__element_f64(j->backend, &j->x[0], 0) == 0;
    s->body = h->run[s->choice];
    for (int k = 0; k < s->f.nys; k++) h->y[k] = result_at(j, h->at[s->f.carry + k]);
    cot__steps_bind(s, j->x);
    cot__steps_first(s, j->x);
}

bool cot__loop_job_go(const cot__job *j) {
    holding *h = j->held;
    begin(j, h);
    if (h->s.f.tests && !run_while(j, h)) return false;
    int64_t length = h->s.f.tests ? 0 : h->s.f.length;
    bool    along = cot__steps_go_along(&h->s, j->x, h->y, 0, length, length, 0);
    for (int64_t k = 0; !along && k < length; k++)
        if (!run_step(j, h, k)) return false;
    for (int k = 0; k < h->s.f.carry; k++) {
        cot__view to = result_at(j, h->at[k]), from = to;
        from.data = h->s.state + h->s.offset[k];
        j->backend->copy(&to, &from);
    }
    return true;
}

/* ---- from a tape ----------------------------------------------------------------------------- */

void cot__loop_ints(const cot__loop *l, int64_t *ints) {
    ints[COT__LOOP_CONSTS] = l->consts, ints[COT__LOOP_CARRY] = l->carry;
    ints[COT__LOOP_NXS] = l->nxs, ints[COT__LOOP_NYS] = l->nys;
    ints[COT__LOOP_FIRST] = l->first, ints[COT__LOOP_LENGTH] = l->length, ints[COT__LOOP_STATES] = l->states;
    ints[COT__LOOP_FORM] = (l->counts ? COT__LOOP_COUNTS : 0) | (l->reverse ? COT__LOOP_REVERSE : 0) |
                           (l->once ? COT__LOOP_ONCE : 0) | (l->body[1] ? COT__LOOP_CHOSEN : 0) |
                           (l->test ? COT__LOOP_TESTS : 0);
    ints[COT__LOOP_KEEPS] = (l->asked ? ASKED : 0) | (l->bounded ? BOUNDED : 0) | (l->open ? OPEN : 0);
}

/* The derivatives that the user gave stay with it, for those who differentiate the program. */
bool cot__loop_plain(cot__rule *r, cot__plain *to) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    int64_t          ints[COT__LOOP_INTS];
    cot__loop_ints(l, ints);
    to->name = l->name;
    cot__attr *a = cot__attr_make(r->t, l->name, COT__LOOP_INTS, ints, 0, NULL);
    to->attr = a;
    to->body[to->bodies++] = l->vmapped ? cot__vmapped_body(r->t, l->vmapped, cot__rule_attr(r)->args) : l->body[0];
    if (l->body[1]) to->body[to->bodies++] = l->body[1];
    if (l->test) to->body[to->bodies++] = l->test;
    if (a && l->rules && r->t->mode.compiling) {
        a->pointer = l->rules;
        a->pointer2 = l->user;
    }
    return a && to->body[0];
}

/* ---- and back -------------------------------------------------------------------------------- */

static int replay_body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot__replaying_body *p = user;
    cot_var                   *all = cot__arena(p->t, ((size_t)p->body->inputs + 1) * sizeof *all, "program_call");
    (void)m;
    if (!all) return 0;
    for (int k = 0; k < n; k++) all[k] = xs[k];
    for (uint32_t k = (uint32_t)n; k < p->body->inputs; k++) all[k] = p->captured[k - (uint32_t)n];
    p->replay(p->t, p->body, all, ys);
    return 0;
}

typedef struct capture { uint32_t node; int place; } capture;

static int by_node(const void *a, const void *b) {
    const capture *x = a, *y = b;
    if (x->node != y->node) return x->node > y->node ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Two captures of an operation in a tape's file may be one value, as in a function that a batch
 * gives what it has from outside, too. But a body captures a value once. So each but the first
 * becomes a node of its own, an example; the list has the nodes that they stand for at its
 * beginning. NULL after an error. */
static capture *tell_apart(cot_tape *t, const char *op, int n, cot_var *captured, int *apart) {
    capture *at = cot__arena(t, ((size_t)n + 1) * sizeof *at, op);
    *apart = 0;
    if (!at) return NULL;
    for (int k = 0; k < n; k++) at[k] = (capture){cot__index(captured[k]), k};
    if (n > 1) qsort(at, (size_t)n, sizeof *at, by_node);
    for (int k = 1; k < n && t->status == COT_OK; k++) {
        if (at[k].node != at[k - 1].node) continue;
        captured[at[k].place] = cot__parameter(t, at[k].node);
        at[(*apart)++].node = at[k].node;
    }
    return t->status == COT_OK ? at : NULL;
}

cot__region *cot__record_again(const cot__replaying_body *b, const char *op, const char *part, int n,
                               const cot_var *examples, int m) {
    cot_tape           *t = b->t;
    int                 captures = (int)b->body->inputs - n, apart = 0;
    cot_var            *captured = cot__arena(t, ((size_t)captures + 1) * sizeof *captured, op);
    cot__replaying_body of = {t, b->body, captured, b->replay};
    uint32_t            from = t->count;
    if (!captured) return NULL;
    memcpy(captured, b->captured, (size_t)captures * sizeof *captured);
    const capture *real = cot__is_loading(t) ? tell_apart(t, op, captures, captured, &apart) : NULL;
    if (t->status != COT_OK) return NULL;
    cot__region *r = part ? cot__region_record_part(t, op, part, replay_body, &of, n, examples, m)
                          : cot__region_record(t, op, replay_body, &of, n, examples, m);
    cot__examples_over(t, from, from + (uint32_t)apart);
    for (int k = 0; r && k < r->captures && apart; k++) {
        uint32_t *node = (uint32_t *)(uintptr_t)&r->captured[k];
        if (*node >= from && *node < from + (uint32_t)apart) *node = real[*node - from].node;
    }
    return r;
}

const char *cot__copy_name(cot_tape *t, const char *name) {
    size_t bytes = strlen(name) + 1;
    char  *copy = cot__arena(t, bytes, name);
    return copy ? memcpy(copy, name, bytes) : NULL;
}

/* The loop without its bodies. */
static cot__loop *make_loop(cot_tape *t, const char *name, const cot__attr *a) {
    cot__form   f = cot__form_of(a);
    cot__loop  *l = cot__arena(t, sizeof *l, name);
    const char *copy = l ? cot__copy_name(t, name) : NULL;
    if (!copy) return NULL;
    *l = (cot__loop){.name = copy, .consts = f.consts, .carry = f.carry, .nxs = f.nxs, .nys = f.nys,
                     .counts = f.counts, .reverse = f.reverse, .once = f.once, .first = f.first, .length = f.length,
                     .states = (int)a->ints[COT__LOOP_STATES], .asked = a->ints[COT__LOOP_KEEPS] & ASKED,
                     .bounded = a->ints[COT__LOOP_KEEPS] & BOUNDED, .open = a->ints[COT__LOOP_KEEPS] & OPEN,
                     .rules = a->pointer, .user = (void *)(uintptr_t)a->pointer2};
    return l;
}

/* Examples for the inputs of a body, in order. */
static cot_var *make_examples(cot_tape *t, const cot__loop *l, const cot__form *f, const cot_var *xs) {
    cot_var *examples = cot__arena(t, ((size_t)cot__form_own_inputs(f) + 1) * sizeof *examples, l->name);
    cot_var *to = examples;
    if (!examples) return NULL;
    for (int k = 0; k < f->consts; k++) *to++ = xs[cot__form_first_const(f) + k];
    if (f->counts) *to++ = cot_data(t, COT_I64, COT_SCALAR, &f->first);
    for (int k = 0; k < f->carry; k++) *to++ = xs[cot__form_first_carry(f) + k];
    for (int k = 0; k < f->nxs; k++) *to++ = cot__first_slice(t, xs[cot__form_first_xs(f) + k]);
    return t->status == COT_OK ? examples : NULL;
}

static bool replay_bodies(cot_tape *t, cot__loop *l, const cot__form *f, struct cot__program *const *body,
                          const cot_var *xs, cot__replayer *replay) {
    uint32_t       from = t->count;
    const cot_var *examples = make_examples(t, l, f, xs), *captured = xs + cot__form_first_capture(f);
    uint32_t       to = t->count;
    cot__replaying_body test = {t, f->tests ? body[1 + f->chosen] : NULL, xs + cot__form_first_tested(f), replay};
    if (!examples) return false;
    if (f->tests)
        l->test = cot__record_again(&test, l->name, "test", f->carry, examples + f->consts, 1);
    int n = cot__form_own_inputs(f), m = cot__form_results(f);
    for (int b = 0; b < 1 + f->chosen && t->status == COT_OK; b++) {
        cot__replaying_body r = {t, body[b], captured, replay};
        l->body[b] = cot__record_again(&r, l->name, f->chosen ? cot__branch(b) : NULL, n, examples, m);
        captured += f->captures[b];
    }
    cot__examples_over(t, from, to);
    return t->status == COT_OK;
}

/* The operands but for the captures, then what the bodies have captured now. */
uint32_t *cot__loop_list_operands(cot_tape *t, const cot__loop *l, const cot_var *xs, int more) {
    int       given = cot__loop_first_capture(l);
    uint32_t *args = cot__arena(t, ((size_t)cot__loop_operands(l) + (size_t)more + 1) * sizeof *args, l->name);
    uint32_t *to = args + given;
    for (int k = 0; args && k < given; k++)
        if (!cot__enter(t, xs[k], l->name, "replayed", &args[k])) return NULL;
    for (int b = 0; args && b < 2 && l->body[b]; b++)
        for (int k = 0; k < l->body[b]->captures; k++) *to++ = l->body[b]->captured[k];
    for (int k = 0; args && l->test && k < l->test->captures; k++) *to++ = l->test->captured[k];
    return args;
}

cot__loop *cot__loop_record_again(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                                  cot__replayer *replay) {
    const cot__attr            *a = cot__operation_attr(p, operation);
    struct cot__program *const *body = p->body + p->operation[operation].body;
    cot__form                   f = cot__form_read(a, body);
    cot__loop                  *l = make_loop(t, cot__operation_name(p, operation), a);
    return l && replay_bodies(t, l, &f, body, xs, replay) ? l : NULL;
}

cot_var cot__loop_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                         cot__replayer *replay) {
    const cot__loop *l = cot__loop_record_again(t, p, operation, xs, replay);
    uint32_t        *args = l ? cot__loop_list_operands(t, l, xs, 0) : NULL;
    return args ? cot__loop_node(t, l, args) : INVALID(t);
}
