/* loop_run.c: runs the steps of a loop, one after the other. A step whose values alone are wanted
 * is a run of a program (loop_program.c). Otherwise its operations are recorded, read and
 * forgotten, so the tape never grows longer than one body. */
#include "rules/structural_ids.h"
#include "diff/loops/loop.h"

#include "diff/loops/revolve.h"
#include "ops/structural.h"
#include "backend/elements.h"

#include <string.h>

enum { ALIGN = 64, FEW = 16 }; /* FEW: number of kept states that the first list has places for */

/* ---- states ---------------------------------------------------------------------------------- */

static uint32_t carried(const cot__stepper *s, int k) { return s->args[cot__loop_first_carry(s->loop) + k]; }

/* Copies a value into a state, row-major. */
static void store(const cot_tape *t, cot__view v, void *to) {
    int64_t stride[COT_MAX_NDIM];
    if (v.ndim == 0) {
        cot__copy_element(t->backend, to, v.data, v.dtype);
        return;
    }
    cot__strides(v.ndim, v.shape, stride);
    cot__view dense = {to, v.dtype, v.ndim, v.shape, stride};
    t->backend->copy(&dense, &v);
}

void cot__state_first(cot__stepper *s, void *state) {
    for (int k = 0; k < s->loop->carry; k++)
        store(s->t, cot__view_read(s->t, carried(s, k)), (char *)state + s->offset[k]);
}

/* Does a result lie in the memory of the state that the step began with? It does if the step hands
 * a carried value on, perhaps to another place, or a view of one. */
static bool lies_in(const cot__stepper *s, const void *state) {
    for (int k = 0; k < s->loop->carry; k++) {
        const char *p = cot__step_result(s, k).data;
        if (p >= (const char *)state && p < (const char *)state + s->bytes) return true;
    }
    return false;
}

bool cot__state_next(cot__stepper *s, void *state) {
    void *to = state;
    if (lies_in(s, state)) {
        if (!s->spare) s->spare = cot__device_alloc(s->t, s->bytes);
        if (!s->spare) {
            cot__fail(s->t, COT_MEMORY, "[%s] out of memory: %zu bytes for its carried values", s->loop->name,
                      s->bytes);
            return false;
        }
        to = s->spare;
    }
    for (int k = 0; k < s->loop->carry; k++) store(s->t, cot__step_result(s, k), (char *)to + s->offset[k]);
    if (to != state) cot__state_copy(s->t, state, to, s->bytes);
    return true;
}

/* A node whose numbers lie in memory of the tape's device. That memory must outlive the node. */
static cot_var push_memory(cot_tape *t, int op, cot_dtype dtype, int ndim, const int64_t *shape, const int64_t *stride,
                           const void *p) {
    if (ndim == 0) {
        cot__result r;
        if (!cot__result_open(t, &r, "loop", dtype, 0, NULL)) return INVALID(t);
        cot__copy_element(t->backend, r.view.data, p, dtype);
        return cot__result_push(t, &r, op, 0, NULL, NULL);
    }
    cot__storage *s = cot__storage_wrap(t, (void *)(uintptr_t)p, (size_t)PTRDIFF_MAX, "loop");
    if (s) s->backend = t->backend;
    if (!s || !cot__storage_keep(t, s, "loop")) return INVALID(t);
    return cot__push_storage(t, op, s, dtype, ndim, shape, stride, 0, 0, NULL);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Slice k of an operand that the steps go through. */
static cot_var push_slice(cot__stepper *s, int op, uint32_t x, int64_t k) {
    cot__view   v = cot__view_read(s->t, x);
    const char *p = (const char *)v.data + k * v.stride[0] * cot__dtype_size(v.dtype);
    return push_memory(s->t, op, v.dtype, v.ndim - 1, v.shape + 1, v.stride + 1, p);
}

static cot_var push_count(cot_tape *t, int64_t count) {
    cot__result r;
    if (!cot__result_open(t, &r, "loop", COT_I64, 0, NULL)) return INVALID(t);
    cot__set_i64(t->backend, &r.view, count);
    return cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
}

static bool push_carried(cot__stepper *s, const void *state, int op, cot_var *to) {
    cot_tape *t = s->t;
    for (int k = 0; k < s->loop->carry; k++) {
        cot_shape shape = cot__shape_at(t, carried(s, k));
        to[k] = push_memory(t, op, cot__dtype_at(&t->nodes[carried(s, k)]), shape.ndim, shape.dim, NULL,
                            (const char *)state + s->offset[k]);
        if (cot__failed(to[k])) return false;
    }
    return true;
}

bool cot__loop_step(cot__stepper *s, const void *state, int64_t k, int64_t length, int as, uint32_t *inputs) {
    const cot__loop *l = s->loop;
    int64_t          at = l->reverse ? length - 1 - k : k;
    cot_var         *value = s->player.value + l->consts;
    if (l->counts) *value++ = push_count(s->t, l->first + at);
    if (!push_carried(s, state, as, value)) return false;
    for (int j = 0; j < l->nxs; j++) value[l->carry + j] = push_slice(s, as, s->args[cot__loop_first_xs(l) + j], at);
    s->played = true;
    if (s->t->status != COT_OK) return false;
    for (int j = 0; inputs && j < l->carry + l->nxs; j++) inputs[j] = cot__index(value[j]);
    return cot__play(&s->player, s->out);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool read_choice(const cot_tape *t, uint32_t i) {
    cot__view v = cot__view_read(t, i);
    return cot__element_f64(t->backend, &v, 0) != 0;
}

static void set_constants(cot__stepper *s) {
    const cot__loop *l = s->loop;
    int              from = cot__loop_first_capture(l) + (s->choice ? l->body[0]->captures : 0);
    for (int k = 0; k < l->consts; k++) s->player.value[k] = VAR(s->t, s->args[cot__loop_first_const(l) + k]);
    for (int k = 0; k < s->body->captures; k++) s->player.value[s->body->n + k] = VAR(s->t, s->args[from + k]);
    if (!l->test) return;
    from = cot__loop_operands(l) - l->test->captures;
    for (int k = 0; k < l->test->captures; k++) s->test.value[l->test->n + k] = VAR(s->t, s->args[from + k]);
}

bool cot__stepper_open(cot__stepper *s, cot_tape *t, const cot__loop *l, const uint32_t *args) {
    *s = (cot__stepper){.t = t, .loop = l, .args = args, .player.t = t, .test.t = t};
    s->choice = cot__loop_chosen(l) && !read_choice(t, args[0]);
    s->body = l->body[s->choice];
    s->offset = cot__alloc(&t->al, ((size_t)l->carry + 1) * sizeof *s->offset);
    s->out = cot__alloc(&t->al, ((size_t)s->body->m + 1) * sizeof *s->out);
    if (!s->offset || !s->out) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d values", l->name, s->body->m);
        return false;
    }
    for (int k = 0; k < l->carry; k++) {
        s->offset[k] = s->bytes;
        size_t one = (cot__bytes_at(t, carried(s, k)) + ALIGN - 1) / ALIGN * ALIGN;
        if (cot__size_bytes(cot__size_add((int64_t)s->bytes, (int64_t)one), 1, &s->bytes)) continue;
        cot__fail(t, COT_LIMIT, "[%s] the carried values have more elements together than memory can hold", l->name);
        return false;
    }
    if (!cot__player_open(&s->player, t, l->name, s->body) ||
        (l->test && !cot__player_open(&s->test, t, l->name, l->test)))
        return false;
    set_constants(s);
    return cot__stepper_lower(s);
}

void cot__stepper_close(cot__stepper *s) {
    cot_allocator *al = &s->t->al;
    cot__stepper_end_runs(s);
    cot__player_close(&s->player);
    cot__player_close(&s->test);
    cot__device_free(s->t, s->spare, s->bytes);
    cot__free(al, s->offset, s->offset ? ((size_t)s->loop->carry + 1) * sizeof *s->offset : 0);
    cot__free(al, s->out, s->out ? ((size_t)s->body->m + 1) * sizeof *s->out : 0);
}

/* ---- results --------------------------------------------------------------------------------- */

cot_dtype cot__loop_result(const cot_tape *t, const cot__loop *l, int64_t length, int j, cot_shape *shape) {
    uint32_t  node = l->body[0]->out[j];
    cot_shape one = cot__shape_at(t, node);
    *shape = one;
    if (j >= l->carry && !l->once) {
        shape->ndim = one.ndim + 1;
        shape->dim[0] = length;
        for (int k = 0; k < one.ndim; k++) shape->dim[k + 1] = one.dim[k];
    }
    return cot__dtype_at(&t->nodes[node]);
}

static bool is_float(const cot_tape *t, const cot__loop *l, int j) {
    return cot__dtype_is_float(cot__dtype_at(&t->nodes[l->body[0]->out[j]]));
}

int cot__loop_floats(const cot_tape *t, const cot__loop *l) {
    int floats = 0;
    for (int j = 0; j < cot__loop_results(l); j++) floats += is_float(t, l, j);
    return floats;
}

void cot__loop_order(const cot_tape *t, const cot__loop *l, int *at) {
    int next = 0, other = cot__loop_floats(t, l);
    for (int j = 0; j < cot__loop_results(l); j++) at[j] = is_float(t, l, j) ? next++ : other++;
}

/* The results of a run under construction, in the order of the loop's results. */
typedef struct outcome {
    int          m;
    int         *at; /* result j of the loop is result at[j] of the node */
    cot__result *r;
    void        *memory;
    size_t       bytes;
} outcome;

static bool outcome_open(outcome *o, cot_tape *t, const cot__loop *l) {
    o->m = cot__loop_results(l);
    o->bytes = ((size_t)o->m + 1) * (sizeof *o->r + sizeof *o->at);
    o->memory = cot__alloc(&t->al, o->bytes);
    if (!o->memory) return cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d values", l->name, o->m), false;
    o->r = o->memory;
    o->at = (int *)(void *)(o->r + o->m + 1);
    cot__loop_order(t, l, o->at);
    return true;
}

/* Room for each result of a run of this length. Together they must be addressable, too. */
static bool outcome_room(outcome *o, cot_tape *t, const cot__loop *l, int64_t length) {
    int64_t total = 0;
    for (int j = 0; j < o->m; j++) {
        cot_shape shape;
        cot_dtype dtype = cot__loop_result(t, l, length, j, &shape);
        int64_t   size = cot__checked_size(t, l->name, dtype, shape.ndim, shape.dim);
        if (size < 0) return false;
        total = cot__size_add(total, size);
    }
    if (total >= COT__SIZE_MOST)
        return cot__fail(t, COT_LIMIT, "[%s] the results have more elements together than memory can hold", l->name),
               false;
    for (int j = 0; j < o->m; j++) {
        cot_shape shape;
        cot_dtype dtype = cot__loop_result(t, l, length, j, &shape);
        if (!cot__result_open(t, &o->r[o->at[j]], l->name, dtype, shape.ndim, shape.dim)) return false;
    }
    return true;
}

/* Where step `at` puts what it gives out as result j. */
static cot__view row_of(const outcome *o, const cot__loop *l, int j, int64_t at) {
    cot__view v = o->r[o->at[j]].view;
    if (l->once) return v;
    v.data = (char *)v.data + at * v.stride[0] * cot__dtype_size(v.dtype);
    v.ndim--, v.shape++, v.stride++;
    return v;
}

/* ---- the whole run --------------------------------------------------------------------------- */

bool cot__test_step(cot__stepper *s, const void *state, cot__view *answer) {
    cot_var y;
    if (!push_carried(s, state, OP_constant, s->test.value) || !cot__play(&s->test, &y)) return false;
    *answer = cot__view_read(s->t, cot__index(y));
    return true;
}

static bool goes_on(cot__stepper *s, const void *state, bool *go) {
    cot_tape *t = s->t;
    cot_mark  m = cot__mark(t);
    cot__view answer;
    bool      ok = cot__test_values(s, state, &answer);
    if (ok) *go = cot__element_f64(t->backend, &answer, 0) != 0;
    cot__rewind(t, m);
    if (!ok) cot__error_in(t, "the test of [%s]", s->loop->name);
    return ok;
}

/* Does step k and writes the values that it gives out to the results. */
static bool run_step(cot__stepper *s, void *state, int64_t k, int64_t length, const outcome *o) {
    const cot__loop *l = s->loop;
    cot_mark         m = cot__mark(s->t);
    int64_t          at = l->reverse ? length - 1 - k : k;
    bool             ok = cot__step_values(s, state, k, length);
    for (int j = l->carry; ok && j < o->m; j++) {
        cot__view v = cot__step_result(s, j), row = row_of(o, l, j, at);
        s->t->backend->copy(&row, &v);
    }
    ok = ok && cot__state_next(s, state);
    cot__rewind(s->t, m);
    if (!ok && cot__loop_chosen(l)) cot__error_in(s->t, "the %s of [%s]", cot__branch(s->choice), l->name);
    if (!ok && length != 1) cot__error_in(s->t, "step %lld of [%s]", (long long)(l->first + at), l->name);
    return ok;
}

/* A loop of known length keeps the states with which the optimal way back begins. *next is the step
 * whose state is kept next. */
static bool keep_planned(cot__stepper *s, cot__loop_run *run, int64_t k, int64_t *next, const void *state) {
    if (k != *next) return true;
    if (k > 0 && !cot__keep_state(s->t, s->loop, run, k, state, s->bytes)) return false;
    *next = cot__next_kept(run, k, run->length - 1);
    /* The way back begins at the last step. Its state is at hand now, and is kept beside the
     * others. */
    if (*next < 0) *next = k < run->length - 1 ? run->length - 1 : -1;
    return true;
}

static bool run_known(cot__stepper *s, cot__loop_run *run, void *state, const outcome *o) {
    int64_t next = run->at ? 0 : -1;
    for (int64_t k = 0; k < run->length; k++)
        if (!keep_planned(s, run, k, &next, state) || !run_step(s, state, k, run->length, o)) return false;
    return true;
}

static bool run_while(cot__stepper *s, cot__loop_run *run, void *state, const outcome *o) {
    const cot__loop *l = s->loop;
    bool             go;
    run->length = 0;
    /* While a body is recorded the test reads examples, so the loop might never end. The initial
     * carried values are examples as good as any. */
    if (s->t->mode.body) return true;
    for (;; run->length++) {
        if (!goes_on(s, state, &go)) return false;
        if (!go) return true;
        if (l->length > 0 && run->length == l->length) {
            cot__fail(s->t, COT_LIMIT, "[%s] still going on after %lld steps, the most it was allowed", l->name,
                      (long long)l->length);
            return false;
        }
        if (run->at && run->length > 0 && !cot__keep_online(s->t, l, run, run->length, state, s->bytes)) return false;
        if (!run_step(s, state, run->length, 0, o)) return false;
    }
}

static bool any_active(const cot_tape *t, int n, const uint32_t *args) {
    for (int k = 0; k < n && t->active_mask; k++)
        if (args[k] != COT__NONE && (t->nodes[args[k]].flags & COT__ACTIVE)) return true;
    return false;
}

static cot__loop_run *make_run(cot_tape *t, const cot__loop *l, const uint32_t *args) {
    cot__loop_run *run = cot__arena(t, sizeof *run, l->name);
    if (!run) return NULL;
    *run = (cot__loop_run){.length = l->length};
    if (l->carry == 0 || l->states < 1 || !any_active(t, cot__loop_operands(l), args)) return run;
    run->room = !l->test && l->length < l->states ? (int)l->length : l->states;
    run->capacity = run->room < FEW ? run->room + 1 : FEW;
    run->at = cot__arena(t, (size_t)run->capacity * sizeof *run->at, l->name);
    return run->at ? run : NULL;
}

/* The last state holds the carried values. */
static void take_carried(const cot__stepper *s, const void *state, const outcome *o) {
    for (int k = 0; k < s->loop->carry; k++) {
        cot__result *r = &o->r[o->at[k]];
        cot__view    from = r->view;
        from.data = (char *)(uintptr_t)state + s->offset[k];
        s->t->backend->copy(&r->view, &from);
    }
}

/* Runs all steps. */
static bool run_loop(cot_tape *t, const cot__loop *l, const uint32_t *args, cot__loop_run *run, outcome *o) {
    cot__stepper s;
    bool         ok = cot__stepper_open(&s, t, l, args);
    size_t       bytes = ok ? s.bytes + ALIGN : 0;
    void        *block = ok ? cot__device_alloc(t, bytes) : NULL;
    void        *state = (void *)(((uintptr_t)block + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    if (ok && !block) cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for its carried values", l->name, bytes);
    ok = ok && block;
    if (ok) cot__state_first(&s, state);
    cot__scope scope = cot__scope_open(t, 0);
    if (ok && l->test) ok = run_while(&s, run, state, o);
    ok = ok && outcome_room(o, t, l, run->length);
    if (ok && !l->test) ok = run_known(&s, run, state, o);
    cot__scope_close(t, &scope);
    if (ok) take_carried(&s, state, o);
    cot__stepper_close(&s);
    cot__device_free(t, block, bytes);
    return ok;
}

/* Runs the loop. The node is that of result 0; without any result there is none, and z is as it
 * was. */
static bool record_node(cot_tape *t, const cot__loop *l, const uint32_t *args, const outcome *o, cot_var *z) {
    cot__attr     *attr = cot__attr_make(t, l->name, 0, NULL, cot__loop_operands(l), args);
    cot__loop_run *run = attr ? make_run(t, l, args) : NULL;
    outcome        all = *o;
    if (!run || !run_loop(t, l, attr->args, run, &all)) return false;
    attr->pointer = l;
    attr->pointer2 = run;
    if (o->m > 0) *z = cot__results_push(t, o->m, o->r, OP_loop, (int)attr->nargs, attr->args, attr);
    return t->status == COT_OK;
}

cot_var cot__loop_node(cot_tape *t, const cot__loop *l, const uint32_t *args) {
    outcome o;
    cot_var z = INVALID(t);
    if (!outcome_open(&o, t, l)) return z;
    if (!record_node(t, l, args, &o, &z)) z = INVALID(t);
    cot__free(&t->al, o.memory, o.bytes);
    return z;
}

cot_status cot__loop_record(cot_tape *t, cot__loop *l, const uint32_t *args, cot_var *results) {
    outcome o;
    cot_var z = INVALID(t);
    if (!outcome_open(&o, t, l)) return t->status;
    if (record_node(t, l, args, &o, &z))
        for (int j = 0; j < o.m; j++) results[j] = cot__result_of(z, o.at[j]);
    cot__free(&t->al, o.memory, o.bytes);
    return t->status;
}

void cot__loop_adjoints(const cot__rule *r, const cot__loop *l, cot_var *gs) {
    for (int j = 0, f = 0; j < cot__loop_results(l); j++)
        gs[j] = is_float(r->t, l, j) ? cot__rule_g(r, f++) : INVALID(r->t);
}

/* ---- the record ------------------------------------------------------------------------------ */

static cot_var loop_apply(cot__rule *r, const cot_var *xs) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    int              n = cot__loop_operands(l);
    cot_tape        *t = r->t;
    uint32_t        *args = cot__arena(t, ((size_t)n + 1) * sizeof *args, l->name);
    for (int k = 0; args && k < n; k++)
        if (!cot__enter(t, xs[k], l->name, "replayed", &args[k])) return INVALID(t);
    return args ? cot__loop_node(t, l, args) : INVALID(t);
}

static void loop_vjp(cot__rule *r) {
    const cot__loop     *l = cot__rule_attr(r)->pointer;
    const cot__loop_run *run = cot__rule_attr(r)->pointer2;
    const cot__sweep    *s = r->driver;
    /* The length is unknown while a body is recorded. A run of 0 steps does not show what the loop
     * reads at another point. */
    bool unknown = l->test && (r->t->mode.body || run->length == 0);
    if (l->rules) cot__loop_given_vjp(r);
    else if (s && !s->recording) cot__loop_reverse_numbers(r);
    else if (l->bounded || unknown || (!r->t->mode.body && l->asked)) cot__loop_reverse_as_operation(r);
    else cot__loop_reverse_recorded(r);
}

static void loop_jvp(cot__rule *r) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    if (l->rules) cot__loop_given_jvp(r);
    else cot__loop_forward(r);
}

static bool loop_users_rule(const cot__rule *r) {
    return ((const cot__loop *)cot__rule_attr(r)->pointer)->rules != NULL;
}

const cot__op cot__op_loop = {.name         = "loop",
                              .kind         = KIND_GENERIC,
                              .sweeps_alone = true,
                              .formula =
                                  "z = a body played again and again; x̄ += z̄ swept back through the steps, last first",
                              .saves        = 0x7f,
                              .vjp          = loop_vjp,
                              .jvp          = loop_jvp,
                              .apply        = loop_apply,
                              .needs_tape   = "it plays a body, on the tape of the body",
                              .batch        = cot__loop_batch,
                              .cost         = {.none = "what its functions do is not counted"},
                              .depends      = cot__loop_depends,
                              .operands     = "*",
                              .example      = true,
                              .users_rule   = loop_users_rule};
