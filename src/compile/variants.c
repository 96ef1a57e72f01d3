/* variants.c: see variants.h. */
#include "compile/variants.h"

#include "compile/replay.h"
#include "diff/engine/recorded.h"

#include <cotangent_transform.h>

#include <string.h>

/* ---- functions that record a derivative ------------------------------------------------------ */

typedef struct deriving {
    cot_program   *p;
    bool           smooth;
    const bool    *inputs, *results;
    const uint32_t *first; /* of each input: the first one that is the same operand */
    bool          *absent; /* a list of the inputs that have no adjoint is made here */
    const cot_var *xs; /* inputs of the derivative that is being recorded */
} deriving;

static int play(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    return cot__replay(xs[0].tape, ((const deriving *)user)->p->source, xs, ys) ? 0 : 1;
}

/* The same of those inputs that are differentiated by: the others stand still. */
static int play_moving(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const deriving *d = user;
    int             inputs = cot_program_inputs(d->p);
    cot_var        *all = cot__arena(xs[0].tape, ((size_t)inputs + 1) * sizeof *all, "compile");
    if (!all) return 1;
    (void)n;
    for (int k = 0; k < inputs; k++) all[k] = d->inputs[k] ? *xs++ : d->xs[k];
    return play(inputs, all, m, ys, user);
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
    cot_var  *out = list_of(t, results), *seeds = list_of(t, results), *grads = list_of(t, inputs),
            *moving = list_of(t, inputs);
    int       some = 0;
    (void)n, (void)m;
    if (!out || !seeds || !grads || !moving) return 1;
    for (int k = 0; k < results; k++)
        if (d->results[k]) seeds[k] = xs[at++];
    for (int k = 0; k < inputs; k++)
        if (d->inputs[k]) moving[some++] = xs[k];
    d->xs = xs;
    if (cot__fn_vjp(play_moving, d, some, moving, results, out, seeds, grads, d->absent) != COT_OK) return 1;
    for (int k = 0; joint && k < results; k++) *ys++ = out[k];
    for (int k = 0; k < some; k++) *ys++ = grads[k];
    return 0;
}

static int record_joint(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return pull(n, xs, m, ys, user, true);
}
/* Where a derivative is a program of its own, the function has run before it. */
static int record_pull(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    xs[0].tape->mode.repeats = COT__REPEATS;
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
    t->mode.repeats = COT__REPEATS;
    for (int k = 0; k < inputs; k++)
        if (d->inputs[k]) tangents[k] = xs[at++];
    if (cot_fn_jvp(play, d, inputs, xs, tangents, results, out, moved) != COT_OK) return 1;
    for (int k = 0; k < results; k++)
        if (d->results[k]) *ys++ = moved[k];
    return 0;
}

/* ---- what has a derivative ------------------------------------------------------------------- */

/* May operation k have a derivative by operand i? */
static bool is_followed(const cot__program *p, uint32_t k, int i) {
    const cot__op *op = cot__op_of(p->operation[k].op);
    return op->kind != KIND_NONE && cot__operation_operand(p, k)[i] != COT__NO_VALUE &&
           !(i < 32 && op->inactive >> i & 1);
}

/* The rule by which a tape says that a node is active. */
static bool is_active(const cot__program *p, uint32_t k, const uint8_t *active) {
    for (int i = 0; i < cot__operation_operands(p, k); i++)
        if (is_followed(p, k, i) && active[cot__operation_operand(p, k)[i]]) return true;
    return false;
}

/* Of each output the first one that has its value. */
static bool find_same(cot__variant *v, const cot_program *of) {
    const cot__program *p = of->source;
    uint32_t           *first = cot__alloc(&of->al, p->values * sizeof *first);
    v->count = p->outputs;
    v->saved = first ? cot__alloc(&of->al, v->count * sizeof *v->saved) : NULL;
    for (uint32_t k = p->outputs; v->saved && k-- > 0;) first[p->output[k]] = k;
    for (uint32_t k = 0; v->saved && k < p->outputs; k++) v->saved[k] = first[p->output[k]];
    cot__free(&of->al, first, p->values * sizeof *first);
    return v->saved;
}

static bool find_flow(cot__variant *v, const cot_program *of, const bool *inputs) {
    const cot__program *p = of->source;
    uint8_t            *active = find_same(v, of) ? cot__alloc(&of->al, p->values) : NULL;
    if (!active) return false;
    memset(active, 0, p->values);
    for (uint32_t k = 0; k < p->inputs; k++) active[p->input[k]] = inputs[k];
    for (uint32_t k = 0; k < p->operations; k++)
        for (uint32_t z = p->operation[k].result, end = z + p->operation[k].results; z < end; z++)
            active[z] = cot__dtype_is_float(cot__value_view(p, z).dtype) && is_active(p, k, active);
    for (uint32_t k = 0; k < p->outputs; k++)
        v->results[k] = active[p->output[k]] && v->saved[k] == k;
    cot__free(&of->al, active, p->values);
    return true;
}

/* Of v->inputs those that a wanted result may depend on: the others have no adjoint for certain. If
 * there are none it leaves them all, of which one program is made as well. */
static bool find_reached(cot__variant *v, const cot_program *of) {
    const cot__program *p = of->source;
    uint8_t            *wanted = cot__alloc(&of->al, p->values);
    bool                some = false;
    if (!wanted) return false;
    memset(wanted, 0, p->values);
    for (uint32_t k = 0; k < p->outputs; k++) wanted[p->output[k]] |= v->results[k];
    for (uint32_t k = p->operations; k-- > 0;) {
        bool any = false;
        for (uint32_t z = p->operation[k].result, end = z + p->operation[k].results; z < end; z++) any |= wanted[z];
        for (int i = 0; any && i < cot__operation_operands(p, k); i++)
            if (is_followed(p, k, i)) wanted[cot__operation_operand(p, k)[i]] = true;
    }
    for (uint32_t k = 0; k < p->inputs; k++) some |= v->inputs[k] && wanted[p->input[k]];
    for (uint32_t k = 0; k < p->inputs && some; k++) v->reached[k] = v->inputs[k] && wanted[p->input[k]];
    cot__free(&of->al, wanted, p->values);
    return true;
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
    bool      joint = what != COT__PUSH && !d->smooth;
    cot_fn    function = joint ? record_joint : what == COT__PULL ? record_pull : record_push;
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
    if (joint) m += results;
    cot_compile_options options = cot__program_options(d->p);
    options.native = false; /* its parts are compiled, if it is split */
    cot_program        *made = cot__compile(function, d, n, types, m, &options, d->smooth);
    cot__free(&d->p->al, types, (size_t)(inputs + given) * sizeof *types);
    return made;
}

static bool split(cot__variant *v, const cot_program *p, const cot_program *joint, const cot__caller *caller) {
    cot__split s;
    bool       ran = v->what == COT__PULL;
    cot_compile_options options = cot__program_options(p);
    if (!cot__split_open(&s, joint->source, p->source->inputs, p->source->outputs, ran, caller)) return false;
    if (!ran) v->forward = cot__program_object(cot__program_share(s.forward), &options, ran);
    v->backward = cot__program_object(cot__program_share(s.backward), &options, true);
    v->saved = s.saved, v->count = s.count, v->recomputed = s.recomputed;
    s.saved = NULL;
    s.count = 0;
    cot__split_close(&s, &joint->source->al);
    return (ran || v->forward) && v->backward;
}

/* A derivative that reads all inputs. */
static bool keep_whole(cot__variant *v, const cot_program *p, cot_program *made) {
    v->backward = cot__program_counted(made);
    v->count = (uint32_t)cot_program_inputs(p);
    v->saved = cot__alloc(&p->al, v->count * sizeof *v->saved);
    for (uint32_t k = 0; v->saved && k < v->count; k++) v->saved[k] = k;
    return v->saved != NULL;
}

static void destroy(const cot_program *p, cot__variant *v) {
    size_t flags = 2 * (size_t)cot_program_inputs(p) + (size_t)cot_program_outputs(p);
    cot_program_destroy(v->forward);
    cot_program_destroy(v->backward);
    cot__free(&p->al, v->saved, v->count * sizeof *v->saved);
    cot__free(&p->al, v->inputs, flags * sizeof *v->inputs);
    cot__free(&p->al, v, sizeof *v);
}

/* Takes out of v->reached what has no adjoint. */
static void leave_out(cot__variant *v, int n, const bool *absent) {
    for (int k = 0; k < n; k++)
        if (v->reached[k]) v->reached[k] = !*absent++;
}

/* The derivative by those of the inputs that have an adjoint: recorded, the others would get none
 * either. Which these are is known once it was made by all that may have one. */
static cot_program *compile_reached(cot__variant *v, cot_program *p) {
    int          n = cot_program_inputs(p), asked = 0, left;
    size_t       bytes = (size_t)n * sizeof(bool);
    bool        *absent = cot__alloc(&p->al, 2 * bytes), *by = cot__behind(absent, n);
    cot_program *made = NULL;
    deriving     d = {.p = p, .smooth = v->smooth, .inputs = by, .results = v->results, .absent = absent};
    memcpy(v->reached, v->inputs, bytes);
    if (absent && (v->what == COT__PUSH || find_reached(v, p))) {
        memcpy(by, v->reached, bytes);
        asked = count(n, by);
        made = compile(&d, v->what);
    }
    if (made && made->status == COT_OK && v->what != COT__PUSH) leave_out(v, n, absent);
    left = count(n, v->reached);
    if (made && left > 0 && left < asked) {
        cot_program_destroy(made);
        d.inputs = v->reached, d.absent = NULL;
        made = compile(&d, v->what);
    }
    cot__free(&p->al, absent, 2 * bytes);
    return made;
}

/* The programs of a derivative. */
static bool derive(cot__variant *v, cot_program *p, const cot__caller *caller) {
    cot_program *made = compile_reached(v, p);
    bool         ok = made && made->status == COT_OK;
    if (made && !ok) caller->fail(caller, made->status, made->message);
    if (ok) ok = v->smooth || v->what == COT__PUSH ? keep_whole(v, p, made) : split(v, p, made, caller);
    cot_program_destroy(made);
    return ok;
}

static cot__variant *make(cot_program *p, cot__derivative what, bool smooth, const bool *inputs, const bool *results,
                          const cot__caller *caller) {
    size_t        n = (size_t)cot_program_inputs(p), m = (size_t)cot_program_outputs(p);
    cot__variant *v = cot__alloc(&p->al, sizeof *v);
    if (!v) return NULL;
    *v = (cot__variant){.what = what, .smooth = smooth, .inputs = cot__alloc(&p->al, (2 * n + m) * sizeof *v->inputs)};
    v->results = cot__behind(v->inputs, n);
    v->reached = cot__behind(v->results, m);
    bool ok = v->inputs != NULL;
    if (ok) memcpy(v->inputs, inputs, n * sizeof *inputs);
    if (ok && results) memcpy(v->results, results, m * sizeof *results);
    ok = ok && (what == COT__FLOW ? find_flow(v, p, inputs) : derive(v, p, caller));
    if (ok) return v;
    destroy(p, v);
    return NULL;
}

/* ---- finding one ----------------------------------------------------------------------------- */

static cot__variant *find(const cot_program *p, cot__derivative what, bool smooth, const bool *inputs,
                          const bool *results) {
    size_t n = (size_t)cot_program_inputs(p), m = (size_t)cot_program_outputs(p);
    for (cot__variant *v = p->variants; v; v = v->next)
        if (v->what == what && v->smooth == smooth &&
            memcmp(v->inputs, inputs, n * sizeof *inputs) == 0 &&
            (!results || memcmp(v->results, results, m * sizeof *results) == 0))
            return v;
    return NULL;
}

const cot__variant *cot__variant_of(cot_program *p, cot__derivative what, bool smooth, const bool *inputs,
                                    const bool *results, const cot__caller *caller) {
    cot__lock_take(&p->making);
    cot__variant *v = find(p, what, smooth, inputs, results);
    if (!v && (v = make(p, what, smooth, inputs, results, caller)) != NULL) v->next = p->variants, p->variants = v;
    cot__lock_give(&p->making);
    if (!v) cot__refuse(caller, COT_MEMORY, "out of memory: the derivative of a program");
    return v;
}

/* ---- batches: which outputs have one --------------------------------------------------------- */

bool cot__batched_outputs(cot_tape *t, const cot_program *of, const bool *is, bool *outputs) {
    const cot__program *p = of->source;
    bool               *has = cot__alloc(&t->al, p->values);
    if (!has)
        return cot__fail(t, COT_MEMORY, "[vmap] out of memory: the values of a program of %u operations",
                         p->operations), false;
    memset(has, 0, p->values);
    for (uint32_t k = 0; k < p->inputs; k++) has[p->input[k]] = is[k];
    for (uint32_t k = 0; k < p->operations; k++) {
        const cot__operation *o = &p->operation[k];
        const uint32_t       *x = cot__operation_operand(p, k);
        bool                  any = false;
        for (int i = 0; i < cot__operation_operands(p, k); i++) any |= x[i] != COT__NO_VALUE && has[x[i]];
        memset(&has[o->result], any, o->results);
    }
    for (uint32_t k = 0; k < p->outputs; k++) outputs[k] = has[p->output[k]];
    cot__free(&t->al, has, p->values);
    return true;
}

/* ---- batches: making one --------------------------------------------------------------------- */

bool cot__batched_record(cot_tape *t, cot_program *p, const bool *is, const cot_var *xs, cot_var *ys) {
    int    n = cot_program_inputs(p), m = cot_program_outputs(p);
    size_t count = (size_t)n + (size_t)m;
    int   *in = cot__arena(t, count * (sizeof *in + 1), "vmap"), *out = cot__behind(in, n);
    bool  *has = (bool *)cot__behind(in, count);
    if (!in || !cot__batched_outputs(t, p, is, has)) return false;
    for (int k = 0; k < n; k++) in[k] = is[k] ? 0 : COT_NOT_BATCHED;
    for (int k = 0; k < m; k++) out[k] = has[k] ? 0 : COT_NOT_BATCHED;
    return cot_vmap(play, &(deriving){.p = p}, n, xs, in, m, ys, out) == COT_OK;
}

static int record_batched(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const deriving *d = user;
    (void)n, (void)m;
    return cot__batched_record(xs[0].tape, d->p, d->inputs, xs, ys) ? 0 : 1;
}

/* Batches of no extent: the same program for inputs that are computed; and for inputs of which some
 * are one operand, which has one input. */
enum { COMPUTED = -1, ONE_OPERAND = -2 };

static int record_computed(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const deriving *d = user;
    (void)n, (void)m;
    return cot__replay_computed(xs[0].tape, d->p->source, d->inputs, xs, ys) ? 0 : 1;
}

static int record_merged(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const deriving *d = user;
    int             inputs = cot_program_inputs(d->p);
    cot_var        *all = cot__arena(xs[0].tape, ((size_t)inputs + 1) * sizeof *all, "compile");
    (void)n;
    for (int k = 0; all && k < inputs; k++) all[k] = d->first[k] == (uint32_t)k ? *xs++ : all[d->first[k]];
    return all ? play(inputs, all, m, ys, user) : 1;
}

static bool widen(cot_type *type, int64_t extent, const cot__caller *caller) {
    int n = type->shape.ndim++;
    if (n >= COT_MAX_NDIM) return cot__refuse(caller, COT_LIMIT, "an input has %d axes already", n);
    memmove(type->shape.dim + 1, type->shape.dim, (size_t)n * sizeof *type->shape.dim);
    type->shape.dim[0] = extent;
    return true;
}

/* The key of a batch: flags of inputs (`is`), or of one operand for several the first input of
 * each. */
static size_t key_bytes(const cot_program *p, int64_t extent) {
    return (size_t)cot_program_inputs(p) * (extent == ONE_OPERAND ? sizeof(uint32_t) : sizeof(bool));
}

static cot_program *compile_batched(cot_program *p, const void *key, int64_t extent, const cot__caller *caller) {
    int                 n = cot_program_inputs(p), count = 0;
    cot_compile_options options = cot__program_options(p);
    cot_type           *types = cot__alloc(&p->al, (size_t)n * sizeof *types);
    cot_program        *made = NULL;
    deriving            d = {.p = p};
    bool                ok = types != NULL;
    if (extent == ONE_OPERAND) d.first = key;
    else d.inputs = key;
    for (int k = 0; ok && k < n; k++) {
        if (d.first && d.first[k] != (uint32_t)k) continue;
        types[count] = cot_program_input_type(p, k);
        ok = extent < 0 || !d.inputs[k] || widen(&types[count], extent, caller);
        count++;
    }
    cot_fn function = extent == COMPUTED ? record_computed : extent < 0 ? record_merged : record_batched;
    if (ok) made = cot__compile(function, &d, count, types, cot_program_outputs(p), &options, false);
    cot__free(&p->al, types, (size_t)n * sizeof *types);
    if (!made || made->status == COT_OK) return made;
    caller->fail(caller, made->status, made->message);
    cot_program_destroy(made);
    return NULL;
}

/* ---- batches: those that are kept ------------------------------------------------------------ */

enum { KEPT = 16 };

typedef struct cot__batched_program {
    struct cot__batched_program *next; /* used longer ago */
    int64_t                      extent;
    cot_program                 *made;
    char                         key[];
} batched;

static size_t bytes_of(const cot_program *p, int64_t extent) { return sizeof(batched) + key_bytes(p, extent); }

static void drop(cot_program *p, batched **at) {
    batched *b = *at;
    if (!b) return;
    *at = b->next;
    cot_program_destroy(b->made);
    cot__free(&p->al, b, bytes_of(p, b->extent));
}

/* Puts one that was found, or is new, first; the last of too many goes. */
static void put_first(cot_program *p, batched *b) {
    batched **at = &p->batched;
    b->next = p->batched;
    p->batched = b;
    for (int k = 0; k < KEPT && *at; k++) at = &(*at)->next;
    drop(p, at);
}

static batched *taken_out(cot_program *p, const void *key, int64_t extent) {
    for (batched **at = &p->batched; *at; at = &(*at)->next) {
        batched *b = *at;
        if (b->extent != extent || memcmp(b->key, key, key_bytes(p, extent)) != 0) continue;
        *at = b->next;
        return b;
    }
    return NULL;
}

static batched *make_batched(cot_program *p, const void *key, int64_t extent, const cot__caller *caller) {
    batched *b = cot__alloc(&p->al, bytes_of(p, extent));
    if (!b) return NULL;
    b->extent = extent;
    b->made = compile_batched(p, key, extent, caller);
    memcpy(b->key, key, key_bytes(p, extent));
    if (b->made) return b;
    cot__free(&p->al, b, bytes_of(p, extent));
    return NULL;
}

static cot_program *batched_by(cot_program *p, const void *key, int64_t extent, const cot__caller *caller) {
    cot__lock_take(&p->making);
    batched     *b = taken_out(p, key, extent);
    if (!b) b = make_batched(p, key, extent, caller);
    cot_program *made = b ? cot__program_counted(b->made) : NULL;
    if (b) put_first(p, b);
    cot__lock_give(&p->making);
    if (!made) cot__refuse(caller, COT_MEMORY, "out of memory: the program of a batch");
    return made;
}

cot_program *cot__batched(cot_program *p, const bool *is, int64_t extent, const cot__caller *caller) {
    return batched_by(p, is, extent, caller);
}

cot_program *cot__computed(cot_program *p, const bool *is, const cot__caller *caller) {
    return batched_by(p, is, COMPUTED, caller);
}

cot_program *cot__merged(cot_program *p, const uint32_t *first, const cot__caller *caller) {
    return batched_by(p, first, ONE_OPERAND, caller);
}

/* ---- the end --------------------------------------------------------------------------------- */

void cot__variants_close(cot_program *p) {
    while (p->variants) {
        cot__variant *v = p->variants;
        p->variants = v->next;
        destroy(p, v);
    }
    while (p->batched) drop(p, &p->batched);
}
