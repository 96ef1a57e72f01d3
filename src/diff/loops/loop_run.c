/* loop_run.c: runs the steps of a loop, one after the other. A step whose values alone are wanted
 * is a run of a program (loop_program.c). Otherwise its operations are recorded, read and
 * forgotten, so the tape never grows longer than one body. */
#include "rules/structural_ids.h"
#include "diff/loops/loop.h"

#include "program/memory/revolve.h"
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

void cot__state_first(cot__stepper *s) {
    for (int k = 0; k < s->loop->carry; k++)
        store(s->t, cot__look(s->t, carried(s, k)), s->steps.state + s->steps.offset[k]);
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
    cot__view   v = cot__look(s->t, x);
    const char *p = (const char *)v.data + k * v.stride[0] * cot__dtype_size(v.dtype);
    return push_memory(s->t, op, v.dtype, v.ndim - 1, v.shape + 1, v.stride + 1, p);
}

static cot_var push_count(cot_tape *t, int64_t count) {
    cot__result r;
    if (!cot__result_open(t, &r, "loop", COT_I64, 0, NULL)) return INVALID(t);
    cot__set_i64(t->backend, &r.view, count);
    return cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
}

static bool push_carried(cot__stepper *s, int op, cot_var *to) {
    cot_tape *t = s->t;
    for (int k = 0; k < s->loop->carry; k++) {
        cot_shape shape = cot__shape_at(t, carried(s, k));
        to[k] = push_memory(t, op, cot__dtype_at(&t->nodes[carried(s, k)]), shape.ndim, shape.dim, NULL,
                            s->steps.state + s->steps.offset[k]);
        if (cot__failed(to[k])) return false;
    }
    return true;
}

bool cot__loop_step(cot__stepper *s, int64_t k, int64_t length, int as, uint32_t *inputs) {
    const cot__loop *l = s->loop;
    int64_t          at = l->reverse ? length - 1 - k : k;
    cot_var         *value = s->player.value + l->consts;
    if (l->counts) *value++ = push_count(s->t, l->first + at);
    if (!push_carried(s, as, value)) return false;
    for (int j = 0; j < l->nxs; j++) value[l->carry + j] = push_slice(s, as, s->args[cot__loop_first_xs(l) + j], at);
    if (s->t->status != COT_OK) return false;
    for (int j = 0; inputs && j < l->carry + l->nxs; j++) inputs[j] = cot__index(value[j]);
    return cot__play(&s->player, s->out);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool read_choice(const cot_tape *t, uint32_t i) {
    cot__view v = cot__look(t, i);
    return cot__element_f64(t->backend, &v, 0) != 0;
}

static void set_constants(cot__stepper *s) {
    const cot__loop *l = s->loop;
    int              from = cot__loop_first_capture(l) + (s->steps.choice ? l->body[0]->captures : 0);
    for (int k = 0; k < l->consts; k++) s->player.value[k] = VAR(s->t, s->args[cot__loop_first_const(l) + k]);
    for (int k = 0; k < s->body->captures; k++) s->player.value[s->body->n + k] = VAR(s->t, s->args[from + k]);
    if (!l->test) return;
    from = cot__loop_operands(l) - l->test->captures;
    for (int k = 0; k < l->test->captures; k++) s->test.value[l->test->n + k] = VAR(s->t, s->args[from + k]);
}

cot__form cot__loop_form(const cot__loop *l) {
    return (cot__form){.consts = l->consts, .carry = l->carry, .nxs = l->nxs, .nys = l->nys,
                       .captures = {l->body[0]->captures, l->body[1] ? l->body[1]->captures : 0},
                       .tested = l->test ? l->test->captures : 0, .chosen = l->body[1], .tests = l->test,
                       .counts = l->counts, .reverse = l->reverse, .once = l->once, .first = l->first,
                       .length = l->length};
}

static bool open_lists(cot__stepper *s) {
    size_t operands = (size_t)cot__form_operands(&s->steps.f), results = (size_t)s->body->m;
    s->list_bytes = operands * sizeof *s->view + results * sizeof *s->out + cot__steps_lists(&s->steps.f);
    s->lists = cot__alloc(&s->t->al, s->list_bytes);
    if (!s->lists)
        return cot__fail(s->t, COT_MEMORY, "[%s] out of memory: a list of %d values", s->loop->name, s->body->m), false;
    s->view = s->lists;
    s->out = (cot_var *)(void *)(s->view + operands);
    cot__steps_lay(&s->steps, s->out + results);
    for (size_t k = 0; k < operands; k++) s->view[k] = cot__layout_at(s->t, s->args[k]);
    if (cot__steps_measure(&s->steps, s->view)) return true;
    cot__fail(s->t, COT_LIMIT, "[%s] the carried values have more elements together than memory can hold",
              s->loop->name);
    return false;
}

static char *open_state(cot__stepper *s, void **memory) {
    if (s->steps.bytes > (size_t)PTRDIFF_MAX / 2)
        return cot__fail(s->t, COT_LIMIT, "[%s] the carried values have more elements together than memory can hold",
                         s->loop->name), NULL;
    s->memory_bytes = s->steps.bytes + 2 * ALIGN;
    *memory = cot__device_alloc(s->t, s->memory_bytes);
    if (!*memory)
        return cot__fail(s->t, COT_MEMORY, "[%s] out of memory: %zu bytes for its carried values", s->loop->name,
                         s->memory_bytes), NULL;
    return (char *)(((uintptr_t)*memory + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
}

/* The number of the step, then a state. */
static bool open_states(cot__stepper *s) {
    char *first = open_state(s, &s->memory);
    s->steps.count = (int64_t *)(void *)first;
    if (first) s->steps.state = first + ALIGN;
    return first;
}

/* Steps that are not kept one beside the other need a second state, from the first step on. */
static bool has_next(cot__stepper *s) {
    if (!s->steps.next) s->steps.next = open_state(s, &s->memory_of_next);
    return s->steps.next;
}

/* A result may lie in the memory of the state that the step began with. */
bool cot__state_next(cot__stepper *s) {
    char *from = s->steps.state;
    if (!has_next(s)) return false;
    for (int k = 0; k < s->loop->carry; k++)
        store(s->t, cot__look(s->t, cot__index(s->out[k])), s->steps.next + s->steps.offset[k]);
    s->steps.state = s->steps.next;
    s->steps.next = from;
    return true;
}

bool cot__stepper_open(cot__stepper *s, cot_tape *t, const cot__loop *l, const uint32_t *args) {
    *s = (cot__stepper){.t = t, .loop = l, .args = args, .player.t = t, .test.t = t};
    /* slices of operands are nodes of their own, on the operands' memory: it must not go */
    t->memory.holds++;
    s->steps.f = cot__loop_form(l);
    s->steps.backend = t->backend;
    s->steps.choice = cot__loop_chosen(l) && !read_choice(t, args[0]);
    s->body = l->body[s->steps.choice];
    if (!open_lists(s) || !open_states(s) || !cot__player_open(&s->player, t, l->name, s->body) ||
        (l->test && !cot__player_open(&s->test, t, l->name, l->test)))
        return false;
    set_constants(s);
    return cot__stepper_lower(s);
}

void cot__stepper_close(cot__stepper *s) {
    s->t->memory.holds--;
    cot__stepper_end_runs(s);
    cot__player_close(&s->player);
    cot__player_close(&s->test);
    cot__device_free(s->t, s->memory, s->memory_bytes);
    cot__device_free(s->t, s->memory_of_next, s->memory_bytes);
    cot__free(&s->t->al, s->lists, s->list_bytes);
}

/* ---- results --------------------------------------------------------------------------------- */

static cot__type type_of_result(const cot_tape *t, const cot__region *r, int j) {
    if (r->out) return (cot__type){cot__dtype_at(&t->nodes[r->out[j]]), cot__shape_at(t, r->out[j])};
    return cot__value_type(r->program, r->program->output[j]);
}

cot_dtype cot__loop_result(const cot_tape *t, const cot__loop *l, int64_t length, int j, cot_shape *shape) {
    cot__type type = type_of_result(t, l->body[0], j);
    cot_shape one = type.shape;
    *shape = one;
    if (j >= l->carry && !l->once) {
        shape->ndim = one.ndim + 1;
        shape->dim[0] = length;
        for (int k = 0; k < one.ndim; k++) shape->dim[k + 1] = one.dim[k];
    }
    return type.dtype;
}

static bool is_float(const cot_tape *t, const cot__loop *l, int j) {
    return cot__dtype_is_float(type_of_result(t, l->body[0], j).dtype);
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

/* Where the values go that steps give out. */
static bool given_out(const outcome *o, cot_tape *t, const cot__loop *l, cot__view **y) {
    *y = cot__arena(t, ((size_t)l->nys + 1) * sizeof **y, l->name);
    for (int j = 0; *y && j < l->nys; j++) (*y)[j] = o->r[o->at[l->carry + j]].view;
    return *y;
}

/* ---- the whole run --------------------------------------------------------------------------- */

static bool play_test(cot__stepper *s, bool *go) {
    cot_mark m = cot__mark(s->t);
    cot_var  y;
    bool     ok = push_carried(s, OP_constant, s->test.value) && cot__play(&s->test, &y);
    if (ok) {
        cot__view answer = cot__look(s->t, cot__index(y));
        *go = cot__element_f64(s->t->backend, &answer, 0) != 0;
    }
    cot__rewind(s->t, m);
    return ok;
}

bool cot__stepper_test(cot__stepper *s, bool *go) {
    if (s->test_program && cot__stepper_run_test(s, go)) return true;
    return !s->test_program && s->t->status == COT_OK && play_test(s, go);
}

static void copy_given_out(const cot__stepper *s, const cot__view *y, int64_t at) {
    const cot__loop *l = s->loop;
    for (int j = 0; y && j < l->nys; j++) {
        cot__view from = cot__look(s->t, cot__index(s->out[l->carry + j])), to = y[j];
        if (!l->once) to = (cot__view){cot__slice_at(&y[j], at), to.dtype, to.ndim - 1, to.shape + 1, to.stride + 1};
        s->t->backend->copy(&to, &from);
    }
}

bool cot__take_steps(cot_tape *t, int64_t steps) {
    if (LIKELY(!cot__is_loading(t))) return true;
    t->steps_left -= steps;
    if (t->steps_left >= 0) return true;
    t->steps_left = 0;
    cot__fail(t, COT_LIMIT, "%s", COT__TOO_MANY_STEPS);
    return false;
}

bool cot__stepper_go(cot__stepper *s, const cot__view *y, int64_t k, int64_t length) {
    if (!has_next(s) || !cot__take_steps(s->t, 1)) return false;
    if (s->program && cot__stepper_run(s, y, k, length)) return true;
    if (s->program || s->t->status != COT_OK) return false;
    cot_mark m = cot__mark(s->t);
    bool     ok = cot__loop_step(s, k, length, OP_constant, NULL);
    if (ok) {
        copy_given_out(s, y, s->loop->reverse ? length - 1 - k : k);
        ok = cot__state_next(s);
    }
    cot__rewind(s->t, m);
    return ok;
}

static bool goes_on(cot__stepper *s, bool *go) {
    bool ok = cot__stepper_test(s, go);
    if (!ok) cot__error_in(s->t, "the test of [%s]", s->loop->name);
    return ok;
}

bool cot__step_went(const cot__stepper *s, int64_t k, int64_t length, bool ok) {
    const cot__loop *l = s->loop;
    if (ok) return true;
    if (cot__loop_chosen(l)) cot__error_in(s->t, "the %s of [%s]", cot__branch(s->steps.choice), l->name);
    if (l->test || length != 1)
        cot__error_in(s->t, "step %lld of [%s]", (long long)(l->first + (l->reverse ? length - 1 - k : k)), l->name);
    return false;
}

static bool run_step(cot__stepper *s, int64_t k, int64_t length, const cot__view *y) {
    return cot__step_went(s, k, length, cot__stepper_go(s, y, k, length));
}

static bool run_known(cot__stepper *s, cot__loop_run *run, const cot__view *y) {
    int64_t next = run->at ? 0 : -1;
    for (int64_t k = 0; k < run->length; k++) {
        if (!cot__keep_planned(s->t, s->loop, run, &s->steps, k, &next) || !run_step(s, k, run->length, y))
            return false;
        if (k == 0 && !run->at && cot__stepper_run_along(s, y, 1, run->length - 1, run->length, 0)) break;
    }
    return true;
}

/* Every step works where its state is kept. */
static bool run_keeping_all(cot__stepper *s, cot__loop_run *run, const cot__view *y) {
    char *last = s->steps.state;
    s->steps.state = run->all;
    cot__state_first(s);
    for (int64_t k = 0, n = run->length; k < n; k++) {
        s->steps.next = k + 1 < n ? s->steps.state + s->steps.bytes : last;
        if (!run_step(s, k, n, y)) return false;
        /* the last one goes elsewhere */
        if (k == 0 && cot__stepper_run_along(s, y, 1, n - 2, n, s->steps.bytes)) k = n - 2;
    }
    return true;
}

static bool run_while(cot__stepper *s, cot__loop_run *run) {
    const cot__loop *l = s->loop;
    bool             go;
    run->length = 0;
    /* While a body is recorded the test reads examples, so the loop might never end. The initial
     * carried values are examples as good as any. */
    if (s->t->mode.body) return true;
    for (;; run->length++) {
        if (!goes_on(s, &go)) return false;
        if (!go) return true;
        if (l->length > 0 && run->length == l->length) {
            cot__fail(s->t, COT_LIMIT, "[%s] still going on after %lld step%s, the most it was allowed", l->name,
                      (long long)l->length, l->length == 1 ? "" : "s");
            return false;
        }
        if (run->at && run->length > 0 &&
            !cot__keep_online(s->t, l, run, run->length, s->steps.state, s->steps.bytes))
            return false;
        if (!run_step(s, run->length, 0, NULL)) return false;
    }
}

static bool any_active(const cot_tape *t, int n, const uint32_t *args) {
    for (int k = 0; k < n && t->active_mask; k++)
        if (args[k] != COT__NONE && (t->nodes[args[k]].flags & COT__ACTIVE)) return true;
    return false;
}

/* `at` NULL: no state is to be kept. */
static cot__loop_run *make_run(cot_tape *t, const cot__loop *l, const uint32_t *args) {
    cot__loop_run *run = cot__arena(t, sizeof *run, l->name);
    if (!run) return NULL;
    *run = (cot__loop_run){.length = l->length, .backend = t->backend};
    if (l->carry == 0 || l->states < 1 || !any_active(t, cot__loop_operands(l), args)) return run;
    run->room = !l->test && l->length < l->states ? (int)l->length : l->states;
    run->capacity = run->room < FEW ? run->room + 1 : FEW;
    run->at = cot__arena(t, (size_t)run->capacity * sizeof *run->at, l->name);
    return run->at ? run : NULL;
}

/* Unless the user has bounded them, small states of all steps are kept. */
enum { FEW_BYTES = 1 << 20 };

static bool keeps_all(const cot__stepper *s, const cot__loop_run *run) {
    const cot__loop *l = s->loop;
    size_t           bytes = s->steps.bytes ? s->steps.bytes : 1;
    if (!run->at || l->test || run->length < 1 || s->t->mode.body) return false;
    if (cot__states_folder(s->t, l, run->length, bytes)) return false;
    return run->length <= run->room || (!l->asked && (uint64_t)run->length <= FEW_BYTES / bytes);
}

/* Memory that stays with the tape until the loop is forgotten. */
static bool open_all(cot__stepper *s, cot__loop_run *run) {
    size_t bytes;
    if (!cot__size_bytes(run->length, (int64_t)s->steps.bytes, &bytes)) bytes = SIZE_MAX;
    cot__storage *memory = cot__storage_create(s->t, bytes, s->loop->name);
    if (!memory || !cot__storage_keep(s->t, memory, s->loop->name)) return false;
    run->all = memory->data;
    return true;
}

/* The last state holds the carried values. */
static void take_carried(const cot__stepper *s, const outcome *o) {
    for (int k = 0; k < s->loop->carry; k++) {
        cot__result *r = &o->r[o->at[k]];
        cot__view    from = r->view;
        from.data = s->steps.state + s->steps.offset[k];
        s->t->backend->copy(&r->view, &from);
    }
}

/* While a function is compiled, values are examples, and those with which a loop begins are as good
 * as those with which it ends. */
static bool give_examples(cot__stepper *s, cot__loop_run *run, outcome *o) {
    const cot__loop *l = s->loop;
    cot__view       *y;
    cot__state_first(s);
    if (!outcome_room(o, s->t, l, run->length) || !given_out(o, s->t, l, &y)) return false;
    for (int j = 0; j < l->nys; j++) s->t->backend->fill(&y[j], cot__dtype_is_float(y[j].dtype));
    return true;
}

static bool run_steps(cot__stepper *s, cot__loop_run *run, outcome *o) {
    const cot__loop *l = s->loop;
    cot__view       *y;
    bool             all = keeps_all(s, run);
    if (s->t->mode.compiling && !l->test) return give_examples(s, run, o);
    if (!all) cot__state_first(s);
    if (l->test) return run_while(s, run) && outcome_room(o, s->t, l, run->length);
    if (!outcome_room(o, s->t, l, run->length) || !given_out(o, s->t, l, &y)) return false;
    return all ? open_all(s, run) && run_keeping_all(s, run, y) : run_known(s, run, y);
}

/* Runs all steps. */
static bool run_loop(cot_tape *t, const cot__loop *l, const uint32_t *args, cot__loop_run *run, outcome *o) {
    cot__stepper s;
    bool         ok = cot__stepper_open(&s, t, l, args);
    cot__scope   scope = cot__scope_open(t, 0);
    ok = ok && run_steps(&s, run, o);
    cot__scope_close(t, &scope);
    if (ok) take_carried(&s, o);
    cot__stepper_close(&s);
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
    if (o->m > 0 && cot__room_for(t, l->name, (uint32_t)o->m))
        *z = cot__results_push(t, o->m, o->r, OP_loop, (int)attr->nargs, attr->args, attr);
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

/* Is a bound on the states kept? A program runs the way back as one operation in its bodies,
 * too. */
static bool asks_here(const cot_tape *t) { return !t->mode.body || t->mode.compiling; }

static void loop_vjp(cot__rule *r) {
    const cot__loop     *l = cot__rule_attr(r)->pointer;
    const cot__loop_run *run = cot__rule_attr(r)->pointer2;
    const cot__sweep    *s = r->driver;
    /* The length is unknown while a body is recorded. A run of 0 steps does not show what the loop
     * reads at another point. What is compared with a program is recorded as it was. */
    bool unknown = l->test && (r->t->mode.body || r->t->mode.verifying || run->length == 0);
    if (l->rules) cot__loop_given_vjp(r);
    else if (s && !s->recording) cot__loop_reverse_numbers(r);
    else if (l->bounded || unknown || (l->asked && asks_here(r->t))) cot__loop_reverse_as_operation(r);
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

static bool loop_bodies_act(const cot__rule *r) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    return l->test || l->body[0]->effects || (l->body[1] && l->body[1]->effects);
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
                              .results      = cot__loop_job_results,
                              .infer        = cot__loop_job_infer,
                              .workspace    = cot__loop_job_workspace,
                              .bodies       = 3,
                              .binds        = true,
                              .open         = cot__loop_job_open,
                              .go           = cot__loop_job_go,
                              .close        = cot__loop_job_close,
                              .effect       = cot__loop_job_effect,
                              .bodies_act   = loop_bodies_act,
                              .plain        = cot__loop_plain,
                              .batch        = cot__loop_batch,
                              .cost         = {.none = "what its functions do is not counted"},
                              .depends      = cot__loop_depends,
                              .operands     = "*",
                              .example      = true,
                              .users_rule   = loop_users_rule};
