/* call_job.c: a call taken apart: its operations, recorded for those who look into it; and the call
 * as an operation of a program, which is how it stands in the file of a tape.
 *
 *     bodies      the source of what ran; then, if that was a forward variant, of what was called
 *     results     the outputs of the first body, the leading one first
 *     integers    which output leads; what the program was compiled with */
#include "compile/call.h"

#include "compile/replay.h"
#include "ops/structural.h"
#include "rules/structural_ids.h"
#include "tape/lower.h"

#include <string.h>

static const char NAME[] = "program_call";

enum { LEADING, OPTIONS, INTS };
enum { FAST = 1, NO_PASSES = 2, OPTIONS_END = 4 };
enum { MOST = 65535 }; /* results */

bool cot__call_inlined(cot__rule *r, const cot_var *xs, cot_var *zs) {
    const cot__call_node *c = cot__rule_attr(r)->pointer;
    const cot_program    *p = cot__call_runs(c);
    int                   m = cot_program_outputs(p);
    cot_var              *ys = cot__arena(r->t, ((size_t)m + 1) * sizeof *ys, NAME);
    if (!ys || !cot__replay(r->t, p->source, xs, ys)) return false;
    for (int k = 0; k < m; k++) zs[cot__result_of_output(c->leading, k)] = ys[k];
    return true;
}

/* ---- types ----------------------------------------------------------------------------------- */

int cot__call_job_results(const cot__job *j) {
    return j->bodies && j->body[0]->outputs && j->body[0]->outputs <= MOST ? (int)j->body[0]->outputs : 1;
}

static bool body_fits(const cot__job *j, const cot__program *body) {
    if ((uint32_t)j->n != body->inputs)
        return cot__job_illegal(j, "%d operands, where its body takes %u", j->n, body->inputs);
    for (int k = 0; k < j->n; k++) {
        cot__view want = cot__value_view(body, body->input[k]);
        if (!cot__job_dtype(j, k, want.dtype) || !cot__job_shape(j, k, want.ndim, want.shape)) return false;
    }
    return true;
}

bool cot__call_job_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 0, INT32_MAX, INTS)) return false;
    if (!j->bodies || !j->body[0]->outputs || j->body[0]->outputs > MOST)
        return cot__job_illegal(j, "no body that gives something");
    const cot__program *ran = j->body[0];
    if (!cot__job_range(j, LEADING, 0, (int64_t)ran->outputs - 1) || !cot__job_range(j, OPTIONS, 0, OPTIONS_END - 1))
        return false;
    for (int b = 0; b < j->bodies; b++)
        if (!body_fits(j, j->body[b])) return false;
    for (uint32_t k = 0; k < ran->outputs; k++)
        z[cot__result_of_output((int)cot__job_int(j, LEADING), (int)k)] = cot__value_type(ran, ran->output[k]);
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct holding {
    cot_allocator al;
    size_t        bytes;
    cot__run     *run;
    void        **output;
    const void   *input[];
} holding;

void *cot__call_job_open(const cot__job *j, const cot_allocator *al) {
    size_t   n = (size_t)j->n, m = j->body[0]->outputs, bytes = sizeof(holding) + (n + m) * sizeof(void *);
    holding *h = cot__alloc(al, bytes);
    if (!h) return cot__refuse(j->caller, COT_MEMORY, "out of memory: %zu bytes to run a call", bytes), NULL;
    *h = (holding){.al = *al, .bytes = bytes};
    h->output = (void **)(void *)(h->input + n);
    h->run = cot__run_create(j->body[0], j->backend, al, j->x, j->caller);
    if (h->run) return h;
    cot__call_job_close(h);
    return NULL;
}

void cot__call_job_close(void *held) {
    holding      *h = held;
    cot_allocator al = h->al;
    cot__run_destroy(h->run);
    cot__free(&al, h, h->bytes);
}

bool cot__call_job_go(const cot__job *j) {
    holding *h = j->held;
    for (int k = 0; k < j->n; k++) h->input[k] = j->x[k].data;
    for (int k = 0; k < (int)j->body[0]->outputs; k++) {
        int at = cot__result_of_output((int)cot__job_int(j, LEADING), k);
        h->output[k] = at ? j->more[at - 1].data : j->z.data;
    }
    bool ok = cot__run_go(h->run, h->input, h->output);
    if (!ok) j->caller->fail(j->caller, cot__run_status(h->run), cot__run_message(h->run));
    else if (cot__run_note(h->run)[0]) j->caller->note(j->caller, cot__run_note(h->run));
    return ok;
}

/* ---- from a tape, and back ------------------------------------------------------------------- */

bool cot__call_plain(cot__rule *r, cot__plain *to) {
    const cot__call_node *c = cot__rule_attr(r)->pointer;
    int64_t ints[INTS] = {c->leading, (c->p->fast ? FAST : 0) | (c->p->plain ? NO_PASSES : 0)};
    to->name = NAME;
    /* which program it is played with, is found when it is played */
    if (c->kept_is_read) to->why = "in a body its operations are recorded instead";
    to->attr = cot__attr_make(r->t, NAME, INTS, ints, 0, NULL);
    to->program[to->bodies++] = cot__call_runs(c)->source;
    if (c->variant) to->program[to->bodies++] = c->p->source;
    return to->attr;
}

/* The program of a body, made once for all calls of it. */
static cot_program *called(cot_tape *t, cot__program *body, int64_t options, cot__recalled **all) {
    cot__recalled *c = *all;
    while (c && (c->body != body || c->options != options)) c = c->next;
    if (c) return c->made;
    c = cot__arena(t, sizeof *c, NAME);
    if (!c) return NULL;
    cot_compile_options how = {.fast = options & FAST, .plain = options & NO_PASSES, .allocator = t->cache.below};
    *c = (cot__recalled){.body = body, .options = options, .next = *all,
                       .made = cot__program_object(cot__program_share(body), &how, false)};
    *all = c;
    if (!c->made) cot__fail(t, COT_MEMORY, "[%s] out of memory: a program of %u operations", NAME, body->operations);
    return c->made;
}

void cot__recalled_close(cot__recalled *all) {
    for (; all; all = all->next) cot_program_destroy(all->made);
}

bool cot__call_nested(cot_tape *t) {
    cot__fail(t, COT_VALUE, "[%s] a call inside of a body; on tapes its operations stand there instead", NAME);
    return false;
}

/* Bodies nest no deeper than a file may say. */
static bool holds_a_call(const cot__program *p) {
    for (uint32_t k = 0; k < p->operations; k++)
        if (p->operation[k].op == OP_call) return true;
    for (uint32_t k = 0; k < p->bodies; k++)
        if (holds_a_call(p->body[k])) return true;
    return false;
}

bool cot__call_replay(cot_tape *t, const cot__program *p, uint32_t k, const cot_var *xs, cot__recalled **all,
                      cot_var *zs) {
    const cot__operation *o = &p->operation[k];
    int                   bodies = cot__operation_bodies(p, k), m = o->results;
    cot__program         *body = p->body[o->body + (uint32_t)bodies - 1];
    int64_t               options = cot__operation_attr(p, k)->ints[OPTIONS];
    if (holds_a_call(body)) return cot__call_nested(t);
    cot_program          *made = called(t, body, options, all);
    cot_var               z = made ? cot__call_node_on(t, made, xs) : INVALID(t);
    if (t->status != COT_OK) return false;
    if (cot__failed(z) || cot__results_at(t, cot__index(z)) != m) {
        cot__fail(t, COT_VALUE, "[%s] a call of the file has %d results, and here another number; a tape is loaded "
                  "with the options (smooth) that it was recorded with", NAME, m);
        return false;
    }
    for (int i = 0; i < m; i++) zs[i] = cot__result_of(z, i);
    return true;
}
