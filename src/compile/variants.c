/* variants.c: see variants.h. */
#include "compile/variants.h"

#include "compile/replay.h"

#include <string.h>

/* ---- functions that record a derivative ------------------------------------------------------ */

typedef struct deriving {
    cot_program *p;
    const bool  *inputs, *results;
} deriving;

static int play(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    return cot__replay(xs[0].tape, ((cot_program *)user)->source, xs, ys) ? 0 : 1;
}

/* Lists of vars on the tape, which is forgotten soon. */
static cot_var *list_of(cot_tape *t, int n) {
    cot_var *list = cot__arena(t, ((size_t)n + 1) * sizeof *list, "compile");
    for (int k = 0; list && k < n; k++) list[k] = COT_NONE;
    return list;
}

/* xs: the inputs, then the seeds of some results. ys: the results if asked for, then the adjoints
 * of some inputs. */
static int pull(int n, const cot_var *xs, int m, cot_var *ys, deriving *d, bool joint) {
    int       inputs = cot_program_inputs(d->p), results = cot_program_outputs(d->p), at = inputs;
    cot_tape *t = xs[0].tape;
    cot_var  *out = list_of(t, results), *seeds = list_of(t, results), *grads = list_of(t, inputs);
    (void)n, (void)m;
    if (!out || !seeds || !grads) return 1;
    for (int k = 0; k < results; k++)
        if (d->results[k]) seeds[k] = xs[at++];
    if (cot_fn_vjp(play, d->p, inputs, xs, results, out, seeds, grads) != COT_OK) return 1;
    for (int k = 0; joint && k < results; k++) *ys++ = out[k];
    for (int k = 0; k < inputs; k++)
        if (d->inputs[k]) *ys++ = grads[k];
    return 0;
}

static int record_joint(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return pull(n, xs, m, ys, user, true);
}
static int record_pull(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return pull(n, xs, m, ys, user, false);
}

/* xs: the inputs, then the tangents of some. ys: the tangents of some results. */
static int record_push(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    deriving *d = user;
    int       inputs = cot_program_inputs(d->p), results = cot_program_outputs(d->p), at = inputs;
    cot_tape *t = xs[0].tape;
    cot_var  *out = list_of(t, results), *tangents = list_of(t, inputs), *moved = list_of(t, results);
    (void)n, (void)m;
    if (!out || !tangents || !moved) return 1;
    for (int k = 0; k < inputs; k++)
        if (d->inputs[k]) tangents[k] = xs[at++];
    if (cot_fn_jvp(play, d->p, inputs, xs, tangents, results, out, moved) != COT_OK) return 1;
    for (int k = 0; k < results; k++)
        if (d->results[k]) *ys++ = moved[k];
    return 0;
}

/* ---- making one ------------------------------------------------------------------------------ */

static int count(int n, const bool *list) {
    int some = 0;
    for (int k = 0; k < n; k++) some += list[k];
    return some;
}

/* The program of the derivative; its types are those of the inputs, then of what is given for some
 * inputs or results. */
static cot_program *compile(deriving *d, cot__derivative what) {
    static const cot_fn functions[] = {[COT__SPLIT] = record_joint, [COT__PULL] = record_pull,
                                       [COT__PUSH] = record_push};
    int       inputs = cot_program_inputs(d->p), results = cot_program_outputs(d->p), n = inputs, m;
    int       given = what == COT__PUSH ? count(inputs, d->inputs) : count(results, d->results);
    cot_type *types = cot__alloc(&d->p->al, (size_t)(inputs + given) * sizeof *types);
    if (!types) return NULL;
    for (int k = 0; k < inputs; k++) types[k] = cot_program_input_type(d->p, k);
    for (int k = 0; what == COT__PUSH && k < inputs; k++)
        if (d->inputs[k]) types[n++] = types[k];
    for (int k = 0; what != COT__PUSH && k < results; k++)
        if (d->results[k]) types[n++] = cot_program_output_type(d->p, k);
    m = what == COT__PUSH ? count(results, d->results) : count(inputs, d->inputs);
    if (what == COT__SPLIT) m += results;
    cot_program *made = cot_compile(functions[what], d, n, types, m,
                                    &(cot_compile_options){.allocator = d->p->al, .plain = d->p->plain});
    cot__free(&d->p->al, types, (size_t)(inputs + given) * sizeof *types);
    return made;
}

static bool split(cot__variant *v, const cot_program *p, const cot_program *joint, const cot__caller *caller) {
    cot__split s;
    if (!cot__split_open(&s, joint->source, p->source->inputs, p->source->outputs, caller)) return false;
    v->forward = cot__program_object(&p->al, cot__program_share(s.forward), p->plain);
    v->backward = cot__program_object(&p->al, cot__program_share(s.backward), p->plain);
    v->saved = s.saved, v->count = s.count;
    s.saved = NULL;
    s.count = 0;
    cot__split_close(&s, &joint->source->al);
    return v->forward && v->backward;
}

static void destroy(const cot_program *p, cot__variant *v) {
    size_t flags = (size_t)cot_program_inputs(p) + (size_t)cot_program_outputs(p);
    cot_program_destroy(v->forward);
    cot_program_destroy(v->backward);
    cot__free(&p->al, v->saved, v->count * sizeof *v->saved);
    cot__free(&p->al, v->inputs, flags * sizeof *v->inputs);
    cot__free(&p->al, v, sizeof *v);
}

static cot__variant *make(cot_program *p, cot__derivative what, const bool *inputs, const bool *results,
                          const cot__caller *caller) {
    int           n = cot_program_inputs(p), m = cot_program_outputs(p);
    cot__variant *v = cot__alloc(&p->al, sizeof *v);
    if (!v) return NULL;
    *v = (cot__variant){.what = what};
    v->inputs = cot__alloc(&p->al, ((size_t)n + (size_t)m) * sizeof *v->inputs);
    v->results = cot__behind(v->inputs, n);
    cot_program *made = v->inputs ? compile(&(deriving){p, inputs, results}, what) : NULL;
    bool         ok = made && made->status == COT_OK;
    if (made && !ok) caller->fail(caller, made->status, made->message);
    if (ok) memcpy(v->inputs, inputs, (size_t)n * sizeof *inputs);
    if (ok) memcpy(v->results, results, (size_t)m * sizeof *results);
    if (ok && what == COT__SPLIT) ok = split(v, p, made, caller);
    else if (ok) v->backward = cot__program_counted(made);
    cot_program_destroy(made);
    if (ok) return v;
    destroy(p, v);
    return NULL;
}

/* ---- finding one ----------------------------------------------------------------------------- */

static cot__variant *find(const cot_program *p, cot__derivative what, const bool *inputs, const bool *results) {
    size_t n = (size_t)cot_program_inputs(p), m = (size_t)cot_program_outputs(p);
    for (cot__variant *v = p->variants; v; v = v->next)
        if (v->what == what && memcmp(v->inputs, inputs, n * sizeof *inputs) == 0 &&
            memcmp(v->results, results, m * sizeof *results) == 0)
            return v;
    return NULL;
}

const cot__variant *cot__variant_of(cot_program *p, cot__derivative what, const bool *inputs, const bool *results,
                                    const cot__caller *caller) {
    cot__lock_take(&p->lock);
    cot__variant *v = find(p, what, inputs, results);
    if (!v && (v = make(p, what, inputs, results, caller)) != NULL) v->next = p->variants, p->variants = v;
    cot__lock_give(&p->lock);
    if (!v) cot__refuse(caller, COT_MEMORY, "out of memory: the derivative of a program");
    return v;
}

void cot__variants_close(cot_program *p) {
    while (p->variants) {
        cot__variant *v = p->variants;
        p->variants = v->next;
        destroy(p, v);
    }
}
