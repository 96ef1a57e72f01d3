/* optimiser.c: cot_optim: the states beside the parameters of a model, and a step of all of them.
 *
 * A slot belongs to the parameter of the same number. States are memory of the host that stays
 * where it is, so a checkpoint reads and writes it in place. They are made with the optimiser; of
 * parameters that are made or thawed later, at their first step. Nothing else allocates. */
#include "optim/optim.h"

#include "pending/pending.h"
#include "tape/region.h"

#include <string.h>

typedef struct slot {
    cot_dtype dtype;
    cot_shape shape;
    int64_t   size;
    void     *state[COT__STATES];
    char     *names[COT__STATES]; /* "fc1.weight.m" */
} slot;

struct cot_optim {
    cot_params       *p;
    cot_allocator     al;
    cot_optim_options o; /* groups and schedule are copies */
    cot_schedule      schedule;
    unsigned          keeps;
    slot             *slots;
    int               count, states; /* slots; arrays in all of them */
    int64_t           steps;
    bool              swapped;
};

static size_t state_bytes(const slot *s) { return (size_t)s->size * (size_t)cot__dtype_size(s->dtype); }

/* ---- making ---------------------------------------------------------------------------------- */

static void free_state(cot_optim *o, slot *s, int k) {
    if (s->state[k]) cot__free(&o->al, s->state[k], state_bytes(s));
    if (s->names[k]) cot__free(&o->al, s->names[k], strlen(s->names[k]) + 1);
    s->state[k] = s->names[k] = NULL;
}

void cot_optim_destroy(cot_optim *o) {
    if (!o) return;
    for (int i = 0; i < o->count; i++)
        for (int k = 0; k < COT__STATES; k++) free_state(o, &o->slots[i], k);
    cot_allocator al = o->al;
    cot__free(&al, o->slots, (size_t)o->count * sizeof *o->slots);
    cot__free(&al, (void *)(uintptr_t)o->o.groups, (size_t)o->o.group_count * sizeof *o->o.groups);
    cot__free(&al, o, sizeof *o);
}

static bool no_memory(cot_tape *t, const char *op, size_t bytes) {
    cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for states of the optimiser", op, bytes);
    return false;
}

static bool make_state(cot_optim *o, cot_tape *t, const char *op, const cot_param *p, slot *s, int k) {
    size_t room = strlen(p->name) + strlen(cot__state_names[k]) + 2;
    s->state[k] = cot__alloc(&o->al, state_bytes(s));
    s->names[k] = cot__alloc(&o->al, room);
    if (!s->state[k] || !s->names[k]) {
        if (s->names[k]) cot__free(&o->al, s->names[k], room);
        s->names[k] = NULL;
        free_state(o, s, k);
        return no_memory(t, op, state_bytes(s));
    }
    memset(s->state[k], 0, state_bytes(s));
    memcpy(s->names[k], p->name, strlen(p->name));
    s->names[k][strlen(p->name)] = '.';
    memcpy(s->names[k] + strlen(p->name) + 1, cot__state_names[k], strlen(cot__state_names[k]) + 1);
    o->states++;
    return k != COT__AVERAGE || cot_read_as(p->var, s->dtype, s->state[k], s->size) == COT_OK;
}

static bool trained(const cot_param *p) { return !p->statistic && !p->frozen; }

/* Makes what is missing beside parameter i. A state that could not be made is tried again with the
 * next step. */
static bool make_slot(cot_optim *o, cot_tape *t, const char *op, int i) {
    cot_param p = cot_params_at(o->p, i);
    slot     *s = &o->slots[i];
    uint32_t  at;
    if (!trained(&p)) return true;
    if (!cot__weight(t, op, p.name, -1, p.var, &at)) return false;
    s->dtype = cot_dtype_of(p.var), s->shape = cot_shape_of(p.var), s->size = cot_size(p.var);
    for (int k = 0; k < COT__STATES; k++)
        if (o->keeps & 1u << k && !s->state[k] && !make_state(o, t, op, &p, s, k)) return false;
    return true;
}

/* Are there slots for all parameters, and groups for those that are trained? */
static bool prepare(cot_optim *o, cot_tape *t, const char *op) {
    int             n = cot_params_count(o->p);
    cot_optim_group group;
    if (n > o->count) {
        size_t before = (size_t)o->count * sizeof(slot), bytes = (size_t)n * sizeof(slot);
        slot  *more = cot__resize(&o->al, o->slots, before, bytes);
        if (!more) return no_memory(t, op, bytes);
        memset(more + o->count, 0, bytes - before);
        o->slots = more, o->count = n;
    }
    for (int i = 0; i < n; i++) {
        cot_param p = cot_params_at(o->p, i);
        if (trained(&p) && !cot__optim_group(t, op, &o->o, p.group, &group)) return false;
        if (!make_slot(o, t, op, i)) return false;
    }
    return true;
}

static bool check_rate(cot_tape *t, const char *op, const cot_optim_options *o) {
    if (o->schedule && isnan(cot_schedule_rate(o->schedule, 0)))
        cot__fail(t, COT_VALUE,
                  "[%s] the schedule has a number out of its range; rates are finite and not negative, and there is at "
                  "least one step",
                  op);
    else if (!o->schedule && !cot__is_rate(o->rate))
        cot__fail(t, COT_VALUE, "[%s] the rate is %g; it must be finite and not negative", op, o->rate);
    else return true;
    return false;
}

/* Takes copies of what the options point to. */
static bool keep_options(cot_optim *o, cot_tape *t, const cot_optim_options *given) {
    size_t           bytes = (size_t)given->group_count * sizeof *given->groups;
    cot_optim_group *groups = given->groups ? cot__alloc(&o->al, bytes) : NULL;
    if (given->groups && bytes && !groups) return no_memory(t, "optim_create", bytes);
    o->o = *given;
    if (groups) memcpy(groups, given->groups, bytes);
    o->o.groups = groups;
    if (!groups) o->o.group_count = 0;
    if (given->schedule) o->schedule = *given->schedule, o->o.schedule = &o->schedule;
    return true;
}

cot_optim *cot_optim_create(cot_params *p, const cot_optim_options *options) {
    cot_tape *t = cot__usable(cot_params_tape(p));
    if (!t) return NULL;
    if (!options) cot__fail(t, COT_VALUE, "[optim_create] the options are NULL; they say which rate it has");
    if (!options) return NULL;
    cot_optim_options given = cot__optim_defaults(*options);
    if (!cot__optim_check(t, "optim_create", &given) || !check_rate(t, "optim_create", &given)) return NULL;
    cot_allocator al = t->cache.below;
    cot_optim    *o = cot__alloc(&al, sizeof *o);
    if (!o) return no_memory(t, "optim_create", sizeof *o), NULL;
    *o = (cot_optim){.p = p, .al = al, .keeps = cot__optim_keeps(&given)};
    if (keep_options(o, t, &given) && prepare(o, t, "optim_create")) return o;
    cot_optim_destroy(o);
    return NULL;
}

/* ---- stepping -------------------------------------------------------------------------------- */

double cot_optim_rate(const cot_optim *o) {
    if (!o) return (double)NAN;
    return o->o.schedule ? cot_schedule_rate(&o->schedule, o->steps) : o->o.rate;
}

/* The tape of an optimiser that can go on; NULL otherwise. */
static cot_tape *tape_of(const cot_optim *o) { return o ? cot__usable(cot_params_tape(o->p)) : NULL; }
static cot_status status_of(const cot_optim *o) { return o ? cot_tape_status(cot_params_tape(o->p)) : COT_VALUE; }

cot_status cot_optim_set_rate(cot_optim *o, double rate) {
    cot_tape         *t = tape_of(o);
    cot_optim_options next = {.rate = rate};
    if (!t || !check_rate(t, "optim_set_rate", &next)) return status_of(o);
    o->o.rate = rate, o->o.schedule = NULL;
    return COT_OK;
}

cot_status cot_optim_step(cot_optim *o) {
    cot_tape *t = tape_of(o);
    double    rate = cot_optim_rate(o);
    if (!t) return status_of(o);
    if (o->swapped)
        cot__fail(t, COT_VALUE, "[optim_step] the averages of weights are swapped in; cot_optim_swap them back first");
    if (o->swapped || !prepare(o, t, "optim_step")) return t->status;
    for (int i = 0; i < cot_params_count(o->p); i++) {
        cot_param       p = cot_params_at(o->p, i);
        cot_optim_group group;
        if (!trained(&p) || !cot__optim_group(t, "optim_step", &o->o, p.group, &group)) continue;
        cot__update u = cot__update_of(&o->o, rate * group.scale, group.decay, o->steps + 1);
        memcpy(u.state, o->slots[i].state, sizeof u.state);
        if (!cot__update_leaf(t, "optim_step", cot__index(p.var), &u, COT__OPTIM_STEP)) return t->status;
    }
    o->steps++;
    return t->status;
}

/* ---- averages -------------------------------------------------------------------------------- */

/* Reads all weights that have an average to `to`, one after the other, and has what waits for them
 * done: what could fail of an exchange fails here, before anything is written. */
static bool read_weights(cot_optim *o, cot_tape *t, char *to) {
    for (int i = 0; i < o->count && t->status == COT_OK; i++) {
        slot   *s = &o->slots[i];
        cot_var w = cot_params_at(o->p, i).var;
        if (!s->state[COT__AVERAGE] || !cot__outside_bodies(t, "optim_swap")) continue;
        if (cot_read_as(w, s->dtype, to, s->size) == COT_OK) cot__settle(t, cot__index(w));
        to += state_bytes(s);
    }
    return t->status == COT_OK;
}

static void exchange(cot_optim *o, cot_tape *t, const char *weights) {
    for (int i = 0; i < o->count; i++) {
        slot   *s = &o->slots[i];
        cot_var w = cot_params_at(o->p, i).var;
        if (!s->state[COT__AVERAGE]) continue;
        cot_assign_data(w, s->state[COT__AVERAGE]);
        cot__note_time(t, cot__index(w), COT__OPTIM_SWAP);
        memcpy(s->state[COT__AVERAGE], weights, state_bytes(s));
        weights += state_bytes(s);
    }
    o->swapped = !o->swapped;
}

cot_status cot_optim_swap(cot_optim *o) {
    cot_tape *t = tape_of(o);
    size_t    bytes = 1;
    if (!t) return status_of(o);
    if (o->o.average == 0)
        cot__fail(t, COT_VALUE, "[optim_swap] no averages of weights are kept; .average of the options asks for them");
    for (int i = 0; i < o->count; i++)
        if (o->slots[i].state[COT__AVERAGE]) bytes += state_bytes(&o->slots[i]);
    char *weights = t->status == COT_OK ? cot__alloc(&o->al, bytes) : NULL;
    if (!weights) return t->status == COT_OK && no_memory(t, "optim_swap", bytes) ? COT_OK : t->status;
    if (read_weights(o, t, weights)) exchange(o, t, weights);
    cot__free(&o->al, weights, bytes);
    return t->status;
}

bool cot_optim_swapped(const cot_optim *o) { return o && o->swapped; }

/* ---- for checkpoints ------------------------------------------------------------------------- */

int cot_optim_states(const cot_optim *o) { return o ? o->states : 0; }

cot_array cot_optim_state(const cot_optim *o, int k, const char **name) {
    if (name) *name = NULL;
    for (int i = 0; o && k >= 0 && i < o->count; i++)
        for (int j = 0; j < COT__STATES; j++) {
            slot *s = &o->slots[i];
            if (!s->state[j] || k-- > 0) continue;
            if (name) *name = s->names[j];
            return (cot_array){s->dtype, s->shape, s->size, s->state[j]};
        }
    return (cot_array){0};
}

int64_t cot_optim_steps(const cot_optim *o) { return o ? o->steps : 0; }
void    cot_optim_set_steps(cot_optim *o, int64_t steps) {
       if (o) o->steps = steps < 0 ? 0 : steps;
}
