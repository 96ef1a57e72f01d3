/* loop_adjoint_job.c: the way back through a loop as an operation of a program: it runs the loop,
 * keeps states in memory that was planned, and runs the steps back, each a run of the body's
 * derivative. Nothing is swept, and nothing allocated in a run. */
#include "backend/elements.h"
#include "diff/loops/loop_job.h"
#include "ops/structural.h"

#include <string.h>

enum { ALIGN = 64 };

static const cot__program *back_at(const cot__job *j, const cot__back_form *q, int b) {
    return j->body[cot__back_form_body(&q->f, b)];
}

/* ---- the way --------------------------------------------------------------------------------- */

/* What the lists of a way are filled from. */
typedef struct lists {
    cot__view *g, *captured;
    bool      *has_bar;
    void     **bar;
    void      *way;
} lists;

static int most_captures(const cot__back_form *q) {
    return q->captures[0] > q->captures[1] ? q->captures[0] : q->captures[1];
}

static size_t lists_bytes(const cot__back_form *q) {
    size_t n = (size_t)q->operands, m = (size_t)cot__form_results(&q->f), c = (size_t)most_captures(q);
    return ((m + c) * sizeof(cot__view) + n * sizeof(void *) + cot__way_lists(&q->f, (int)c) + n + 15) & ~(size_t)15;
}

/* Where they are in one piece of memory. */
static void lay_lists(lists *l, const cot__back_form *q, void *memory) {
    size_t n = (size_t)q->operands, m = (size_t)cot__form_results(&q->f), c = (size_t)most_captures(q);
    l->g = memory;
    l->captured = l->g + m;
    l->bar = (void **)(void *)(l->captured + c);
    l->way = l->bar + n;
    l->has_bar = (bool *)l->way + cot__way_lists(&q->f, (int)c);
}

static bool has_bar(const cot__job *j, const cot__back_form *q, int k) {
    return cot__back_form_has_bar(q, k, j->x[k].dtype);
}

/* The way of the step back through body b, as far as shapes, strides and operands are known. */
static cot__way see_way(const cot__job *j, const cot__back_form *q, const cot__steps *s, const lists *l, int b,
                        bool bars) {
    cot__way w = {.x = j->x, .has_bar = l->has_bar, .bar = bars ? l->bar : NULL, .g = l->g, .captured = l->captured,
                  .captures = most_captures(q)};
    cot__way_lay(&w, &q->f, l->way);
    w.captures = q->captures[b];
    for (int k = 0; k < q->operands; k++) l->has_bar[k] = has_bar(j, q, k);
    for (int k = 0, seed = q->operands; k < cot__form_results(&q->f); k++)
        l->g[k] = q->has[k] ? j->x[seed++] : (cot__view){.dtype = COT_BOOL};
    for (int k = 0; k < w.captures; k++) l->captured[k] = j->x[q->from[b][k]];
    cot__way_see(&w, s);
    return w;
}

/* ---- types ----------------------------------------------------------------------------------- */

int cot__loop_adjoint_job_results(const cot__job *j) {
    cot__back_form q = {0};
    if (!cot__loop_is_countable(j, true)) return 1;
    q.f = cot__form_read(j->attr, j->body);
    return cot__back_form_lists(&q, j->attr) && q.count > 0 && q.count <= UINT16_MAX ? q.count : 1;
}

static bool same_type(const cot__view *a, const cot__view *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int k = 0; same && k < a->ndim; k++) same = a->shape[k] == b->shape[k];
    return same;
}

/* Are the flags flags, and the captures operands of the loop? */
static bool lists_are_legal(const cot__job *j, const cot__back_form *q) {
    for (int k = 0; k < cot__form_results(&q->f) + q->operands; k++)
        if (q->has[k] != 0 && q->has[k] != 1) return cot__job_illegal(j, "a flag that is none");
    for (int b = 0; b < 1 + q->f.chosen; b++)
        for (int k = 0; k < q->captures[b]; k++)
            if (q->from[b][k] < 0 || q->from[b][k] >= q->operands)
                return cot__job_illegal(j, "a capture that is no operand");
    for (int k = 0; k < q->operands; k++)
        if (q->of[k] && !cot__dtype_is_float(j->x[k].dtype))
            return cot__job_illegal(j, "operand %d has no adjoint", k);
    return true;
}

/* Adjoints have the types of the results. */
static bool seeds_fit(const cot__job *j, const cot__back_form *q) {
    const cot__program *body = j->body[0];
    for (int k = 0, at = q->operands; k < cot__form_results(&q->f); k++) {
        if (!q->has[k]) continue;
        cot__view want = cot__value_view(body, body->output[k]), have = j->x[at++];
        bool      stacked = k >= q->f.carry && !q->f.once;
        if (stacked && (have.ndim < 1 || have.shape[0] != q->f.length))
            return cot__job_illegal(j, "the adjoint of result %d has not as many rows as there are steps", k);
        if (stacked) have.ndim--, have.shape++;
        if (!same_type(&want, &have) || !cot__dtype_is_float(have.dtype))
            return cot__job_illegal(j, "the adjoint of result %d has another type", k);
    }
    return true;
}

static bool steps_fit(const cot__job *j, const cot__back_form *q, const lists *l) {
    cot__steps s = {.f = q->f};
    for (int b = 0; b < 1 + q->f.chosen; b++) {
        const cot__program *body = back_at(j, q, b);
        cot__way            w = see_way(j, q, &s, l, b, false);
        bool                fits = (int)body->inputs == w.inputs && (int)body->outputs == w.outputs;
        for (int k = 0; fits && k < w.inputs; k++) {
            cot__view want = cot__value_view(body, body->input[k]);
            fits = same_type(&want, &w.input[k]);
        }
        for (int k = 0; fits && k < w.outputs; k++) {
            cot__view want = cot__value_view(body, body->output[k]);
            fits = same_type(&want, &w.output[k]);
        }
        if (!fits) return cot__job_illegal(j, "a step back that does not fit its loop");
    }
    return true;
}

static bool ways_fit(const cot__job *j, const cot__back_form *q) {
    lists  l;
    size_t bytes = lists_bytes(q);
    void  *memory = cot__alloc(NULL, bytes);
    if (!memory) return cot__refuse(j->caller, COT_MEMORY, "out of memory: lists of %d operands", q->operands);
    lay_lists(&l, q, memory);
    bool fits = steps_fit(j, q, &l);
    cot__free(NULL, memory, bytes);
    return fits;
}

bool cot__loop_adjoint_job_infer(const cot__job *j, cot__type *z) {
    cot__back_form q = {0};
    if (!cot__loop_is_legal(j, &q.f, true) || !cot__loop_fits(j, &q.f)) return false;
    if (!cot__back_form_lists(&q, j->attr) || q.count < 1 || j->n != q.operands + q.seeds)
        return cot__job_illegal(j, "lists of other lengths than its loop has");
    if (!lists_are_legal(j, &q) || !seeds_fit(j, &q) || !ways_fit(j, &q)) return false;
    for (int k = 0; k < q.operands; k++)
        if (q.of[k]) cot__type_like(z++, j->x[k].dtype, &j->x[k]);
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct holding {
    cot__back_form q;
    cot__steps    s;
    cot__run     *run[2], *back[2];
    lists         l; /* of one step back at a time */
    cot__loop_run kept;
    cot__kept    *at;
    int           room;
    cot_allocator al;
    void         *memory;
    size_t        bytes;
} holding;

static int64_t state_bytes(const cot__job *j, const cot__form *f) {
    int64_t bytes = 0;
    for (int k = cot__form_first_carry(f); k < cot__form_first_xs(f); k++)
        bytes = cot__size_add(bytes, cot__size_add(cot__view_size(&j->x[k]) * cot__dtype_size(j->x[k].dtype), ALIGN));
    return cot__size_add(bytes, ALIGN);
}

/* The number of the step, two states, those that are kept, and adjoints of carried values, which
 * take no more than a state. */
int64_t cot__loop_adjoint_job_workspace(const cot__job *j) {
    cot__form f = cot__form_read(j->attr, j->body);
    int64_t   one = state_bytes(j, &f), many = (int64_t)cot__back_form_room(&f, j->attr) + 5;
    return one > INT64_MAX / 8 / many ? -1 : one * many + 2 * ALIGN;
}

static bool open_memory(const cot__job *j, holding *h) {
    size_t first = lists_bytes(&h->q), steps = cot__steps_lists(&h->q.f);
    h->room = cot__back_form_room(&h->q.f, j->attr);
    h->bytes = first + steps + ((size_t)h->room + 2) * sizeof *h->at;
    h->memory = cot__alloc(&h->al, h->bytes);
    if (!h->memory) return cot__refuse(j->caller, COT_MEMORY, "out of memory: lists of %d operands", h->q.operands);
    lay_lists(&h->l, &h->q, h->memory);
    h->s.f = h->q.f;
    h->s.backend = j->backend;
    h->at = (cot__kept *)(void *)((char *)h->memory + first);
    cot__steps_lay(&h->s, h->at + h->room + 2);
    return cot__steps_measure(&h->s, j->x) ||
           cot__refuse(j->caller, COT_LIMIT, "the carried values have more elements together than memory can hold");
}

static bool open_back(const cot__job *j, holding *h) {
    for (int b = 0; b < 1 + h->q.f.chosen; b++) {
        cot__way w = see_way(j, &h->q, &h->s, &h->l, b, false);
        h->back[b] = cot__loop_open_run(j, back_at(j, &h->q, b), w.input, &h->al);
        if (!h->back[b]) return false;
    }
    return true;
}

void *cot__loop_adjoint_job_open(const cot__job *j, const cot_allocator *al) {
    holding *h = cot__alloc(al, sizeof *h);
    if (!h) return cot__refuse(j->caller, COT_MEMORY, "out of memory: %zu bytes to run a loop", sizeof *h), NULL;
    memset(h, 0, sizeof *h);
    h->al = *al;
    h->q = cot__back_form_read(j->attr, j->body);
    if (open_memory(j, h) && cot__loop_open_runs(j, &h->s, h->run, al) && open_back(j, h)) return h;
    cot__loop_adjoint_job_close(h);
    return NULL;
}

void cot__loop_adjoint_job_close(void *held) {
    holding      *h = held;
    cot_allocator al = h->al;
    for (int b = 0; b < 2; b++) {
        cot__run_destroy(h->run[b]);
        cot__run_destroy(h->back[b]);
    }
    cot__run_destroy(h->s.test);
    cot__free(&al, h->memory, h->bytes);
    cot__free(&al, h, sizeof *h);
}

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct walking { const cot__job *j; holding *h; } walking;

/* Step k, there or back, or the test (k < 0). */
static bool hear(const cot__job *j, const cot__steps *s, const cot__run *run, bool ok, int64_t k) {
    if (cot__run_note(run)[0]) j->caller->note(j->caller, cot__run_note(run));
    return ok || cot__loop_refused(j, s, run, k);
}

/* Does step k, or, k = -1, takes the first state. */
static bool go_on(void *to, int64_t k) {
    const walking *w = to;
    cot__steps    *s = &w->h->s;
    if (k < 0) return cot__steps_first(s, w->j->x), true;
    return hear(w->j, s, s->body, cot__steps_go(s, w->j->x, NULL, k, w->h->kept.length), k);
}

static bool run_while(walking *w) {
    cot__steps    *s = &w->h->s;
    cot__loop_run *run = &w->h->kept;
    for (run->length = 0;; run->length++) {
        bool go = false, ok = cot__steps_test(s, &go);
        if (!hear(w->j, s, s->test, ok, -1)) return false;
        if (!go) return true;
        if (s->f.length > 0 && run->length == s->f.length)
            return cot__refuse(w->j->caller, COT_LIMIT, "still going on after %lld step%s, the most it was allowed",
                               (long long)s->f.length, s->f.length == 1 ? "" : "s");
        if (run->length > 0 && !cot__keep_online(NULL, NULL, run, run->length, s->state, s->bytes)) return false;
        if (!go_on(w, run->length)) return false;
    }
}

static bool run_known(walking *w) {
    int64_t next = 0;
    for (int64_t k = 0; k < w->h->kept.length; k++)
        if (!cot__keep_planned(NULL, NULL, &w->h->kept, &w->h->s, k, &next) || !go_on(w, k)) return false;
    return true;
}

/* ---- back ------------------------------------------------------------------------------------ */

static cot__view result_at(const cot__job *j, int k) { return k ? j->more[k - 1] : j->z; }

/* Memory for what is carried, and zeros in all adjoints; those of carried values lie behind the
 * states. */
static void open_bars(const cot__job *j, holding *h, char *memory) {
    const cot__form *f = &h->q.f;
    int64_t          stride[COT_MAX_NDIM];
    for (int k = 0, result = 0; k < h->q.operands; k++) {
        bool carried = cot__form_is_carried(f, k);
        if (carried) h->l.bar[k] = memory + h->s.offset[k - cot__form_first_carry(f)];
        else h->l.bar[k] = h->q.of[k] ? result_at(j, result).data : NULL;
        result += h->q.of[k] != 0;
        if (!has_bar(j, &h->q, k)) continue;
        cot__strides(j->x[k].ndim, j->x[k].shape, stride);
        j->backend->fill(&(cot__view){h->l.bar[k], j->x[k].dtype, j->x[k].ndim, j->x[k].shape, stride}, 0);
    }
}

/* The adjoints of the last carried values: the first seeds. And at the end those of the first. */
static void start_carried(const cot__job *j, holding *h) {
    int64_t stride[COT_MAX_NDIM];
    for (int k = 0, seed = h->q.operands; k < h->q.f.carry; k++) {
        if (!h->q.has[k]) continue;
        const cot__view *from = &j->x[seed++];
        cot__strides(from->ndim, from->shape, stride);
        cot__view to = {h->l.bar[cot__form_first_carry(&h->q.f) + k], from->dtype, from->ndim, from->shape, stride};
        j->backend->copy(&to, from);
    }
}
static void give_carried(const cot__job *j, holding *h) {
    for (int k = 0, result = 0; k < h->q.operands; k++) {
        if (!h->q.of[k]) continue;
        cot__view to = result_at(j, result++), from = to;
        if (k < cot__form_first_carry(&h->q.f) || k >= cot__form_first_xs(&h->q.f)) continue;
        from.data = h->l.bar[k];
        j->backend->copy(&to, &from);
    }
}

static bool run_back(walking *w) {
    holding  *h = w->h;
    cot__way  way = see_way(w->j, &h->q, &h->s, &h->l, h->s.choice, true);
    cot__run *back = h->back[h->s.choice];
    for (int64_t k = h->kept.length; k-- > 0;) {
        if (!cot__reach(NULL, NULL, &h->kept, &h->s, k, go_on, w)) return false;
        cot__way_at(&way, &h->s, h->s.f.reverse ? h->kept.length - 1 - k : k);
        if (!hear(w->j, &h->s, back, cot__run_go(back, (const void *const *)way.in, way.out), k)) return false;
    }
    return true;
}

/* Memory in the workspace: the number of the step, two states, adjoints, states that are kept. */
static void begin(const cot__job *j, holding *h) {
    cot__steps *s = &h->s;
    char       *memory = (char *)(((uintptr_t)j->workspace + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    size_t      bytes = (s->bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    s->count = (int64_t *)(void *)memory;
    s->state = memory + ALIGN;
    s->next = s->state + bytes;
    h->kept = (cot__loop_run){.backend = j->backend, .length = s->f.length, .room = h->room, .capacity = h->room + 2,
                              .at = h->at, .free = s->next + 2 * bytes, .left = ((size_t)h->room + 1) * s->bytes};
    s->choice = s->f.chosen && cot__element_f64(j->backend, &j->x[0], 0) == 0;
    s->body = h->run[s->choice];
    cot__steps_bind(s, j->x);
    cot__steps_first(s, j->x);
    open_bars(j, h, s->next + bytes);
    start_carried(j, h);
}

bool cot__loop_adjoint_job_go(const cot__job *j) {
    walking w = {j, j->held};
    begin(j, w.h);
    if (!(w.h->s.f.tests ? run_while(&w) : run_known(&w)) || !run_back(&w)) return false;
    give_carried(j, w.h);
    return true;
}
