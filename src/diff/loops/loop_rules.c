/* loop_rules.c: derivatives of a loop as recorded loops, which have derivatives again, of every
 * order.
 *
 * Reverse: the loop runs once more and gives out the state before each step. Then a second loop
 * goes through these states from the last to the first. Its body is the recorded gradient of the
 * first body. Its carried values are the adjoints of the carried values, of constants and of
 * captures.
 *
 * Forward: one loop carries values and tangents. */
#include "diff/engine/find_kinks.h"
#include "diff/loops/loop.h"
#include "ops/structural.h"

#include <string.h>

/* The argument of the derived bodies. All values in it were recorded outside of these bodies. */
typedef struct derived {
    cot_tape        *t;
    const cot__loop *l;
    int              which;   /* which of the two bodies is played */
    const cot_var   *x;       /* operands of the loop */
    const cot_var   *dx; /* forward: tangents of the operands, invalid where they do not move */
    const bool      *wanted;  /* reverse: which operands get an adjoint */
    /* reverse: adjoints of the results; invalid: it has none */
    const cot_var   *g;
    const bool      *reached; /* reverse: see cot__loop_reached */
} derived;

static bool is_float(const cot_tape *t, uint32_t node) { return cot__dtype_is_float(cot__dtype_at(&t->nodes[node])); }
static bool var_is_float(cot_var x) { return cot__dtype_is_float(cot_dtype_of(x)); }

/* The operand that is constant or capture k of the body that is played. */
static int outer_operand(const derived *d, int k) {
    const cot__loop *l = d->l;
    int              captured = cot__loop_first_capture(l) + (d->which ? l->body[0]->captures : 0);
    return k < l->consts ? cot__loop_first_const(l) + k : captured + k - l->consts;
}
static int outer_count(const derived *d) { return d->l->consts + d->l->body[d->which]->captures; }
/* The place of this operand among the values of a player. */
static int outer_place(const derived *d, int k) {
    return k < d->l->consts ? k : d->l->body[d->which]->n + k - d->l->consts;
}

/* Room in the arena for n vars. */
static cot_var *vars(cot_tape *t, const cot__loop *l, int n) {
    return cot__arena(t, ((size_t)n + 1) * sizeof(cot_var), l->name);
}

/* Plays the body: the count, carried values and slices come from the derived loop's inputs,
 * constants and captures from `outer`. */
static bool play(cot_tape *t, const derived *d, const cot_var *count, const cot_var *carry, const cot_var *slices,
                 const cot_var *outer, cot_var *out) {
    const cot__loop   *l = d->l;
    const cot__region *body = l->body[d->which];
    cot_var           *values = vars(t, l, body->n + body->captures), *value = cot__behind(values, l->consts);
    if (!values) return false;
    for (int k = 0; k < outer_count(d); k++) values[outer_place(d, k)] = outer[k];
    if (l->counts) *value++ = *count;
    for (int k = 0; k < l->carry; k++) *value++ = carry[k];
    for (int k = 0; k < l->nxs; k++) *value++ = slices[k];
    return cot__play_once(t, l->name, body, values, out);
}

/* ---- the states before each step ------------------------------------------------------------- */

static int states_body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const derived   *d = user;
    const cot__loop *l = d->l;
    cot_tape        *t = d->t;
    const cot_var   *carry = xs + l->counts;
    cot_var         *outer = vars(t, l, outer_count(d)), *out = outer ? vars(t, l, l->carry + l->nys) : NULL;
    (void)n, (void)m;
    if (!out) return 0;
    /* all that the steps check, too: so they are those of the loop, and a program takes them once
     * (program/passes/loops.c) */
    t->mode.repeats = 0;
    for (int k = 0; k < outer_count(d); k++) outer[k] = d->x[outer_operand(d, k)];
    if (!play(t, d, xs, carry, carry + l->carry, outer, out)) return 0;
    for (int k = 0; k < l->carry; k++) ys[k] = out[k], ys[l->carry + k] = carry[k];
    return 0;
}

/* Records a derived loop: examples for its body, its operands and its node. `operands` are in the
 * order of the body's inputs, without the count: first the carried values, then the nxs sliced
 * ones. */
static cot_status run_derived(cot_tape *t, cot__loop *to, cot_fn f, derived *d, const cot_var *operands,
                              cot_var *results) {
    const cot__loop *l = d->l;
    int              n = to->counts + to->carry + to->nxs, m = to->carry + to->nys;
    cot_var         *examples = vars(t, l, n), *x = examples;
    uint32_t         from = t->count;
    if (!examples) return t->status;
    if (to->counts) *x++ = cot_data(t, COT_I64, COT_SCALAR, &to->first);
    for (int k = 0; k < to->carry; k++) *x++ = operands[k];
    for (int k = 0; k < to->nxs; k++) *x++ = cot__first_slice(t, operands[to->carry + k]);
    uint32_t end = t->count;
    derived  other = *d;
    other.which = 1;
    d->which = 0;
    to->body[0] = cot__region_record(t, l->name, f, d, n, examples, m);
    if (l->body[1] && to->body[0]) to->body[1] = cot__region_record(t, l->name, f, &other, n, examples, m);
    cot__examples_over(t, from, end);
    if (!to->body[0] || (l->body[1] && !to->body[1])) return t->status;
    uint32_t *args = cot__arena(t, ((size_t)cot__loop_operands(to) + 1) * sizeof *args, l->name), *a = args;
    if (!args) return t->status;
    if (l->body[1]) *a++ = cot__index(d->x[0]);
    for (int k = 0; k < to->carry + to->nxs; k++) *a++ = cot__index(operands[k]);
    for (int b = 0; b < 2 && to->body[b]; b++)
        for (int k = 0; k < to->body[b]->captures; k++) *a++ = to->body[b]->captured[k];
    for (int k = 0; to->test && k < to->test->captures; k++) *a++ = to->test->captured[k];
    return t->status == COT_OK ? cot__loop_record(t, to, args, results) : t->status;
}

static cot__loop *like(cot_tape *t, const cot__loop *l, int64_t length) {
    cot__loop *to = cot__arena(t, sizeof *to, l->name);
    if (!to) return NULL;
    *to = (cot__loop){.name = l->name, .counts = l->counts, .first = l->first, .length = length, .states = l->states,
                      .spill = l->spill, .asked = l->asked, .bounded = l->bounded, .open = l->test || l->open};
    return to;
}

/* ---- reverse --------------------------------------------------------------------------------- */

/* Is operand k a constant or a capture? The adjoint of such an operand, if wanted, is carried from
 * step to step, behind the adjoints of the carried values. */
static bool is_outer(const cot__loop *l, int k) {
    return (k >= cot__loop_first_const(l) && k < cot__loop_first_carry(l)) || k >= cot__loop_first_capture(l);
}

static int back_body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const derived   *d = user;
    const cot__loop *l = d->l;
    cot_tape        *t = d->t;
    int              operands = cot__loop_operands(l), results = l->carry + l->nys, count = 0, seeds = 0;
    const cot_var   *at = xs + l->counts, *cbar = at;
    for (int k = 0; k < l->carry; k++) at += is_float(t, l->body[0]->out[k]);
    const cot_var *kbar = at;
    for (int k = 0; k < operands; k++) at += is_outer(l, k) && d->wanted[k];
    const cot_var *state = at, *slices = state + l->carry, *gy = slices + l->nxs;
    cot_var       *outer = vars(t, l, outer_count(d)), *out = outer ? vars(t, l, results) : NULL;
    cot_var       *seed = out ? vars(t, l, results) : NULL, *grad = seed ? vars(t, l, operands) : NULL;
    uint32_t      *y = grad ? cot__arena(t, ((size_t)results + (size_t)operands + 1) * sizeof *y, l->name) : NULL,
             *x      = cot__behind(y, results);
    (void)n, (void)m;
    if (!y) return 0;
    t->mode.repeats = COT__REPEATS; /* the loop has run */
    for (int k = 0; k < outer_count(d); k++) {
        int o = outer_operand(d, k);
        outer[k] = d->wanted[o] ? cot__fresh_input(d->x[o]) : d->x[o];
    }
    if (!play(t, d, xs, state, slices, outer, out)) return 0;
    for (int k = 0; k < results; k++) {
        if (k < l->carry ? !is_float(t, l->body[0]->out[k]) : cot__failed(d->g[k])) continue;
        cot_var g = k < l->carry ? *cbar++ : *gy++;
        if (k < l->carry && !d->reached[cot__loop_first_carry(l) + k]) continue;
        y[seeds] = cot__index(out[k]);
        seed[seeds++] = g;
    }
    for (int k = 0; k < l->carry; k++)
        if (var_is_float(state[k])) x[count++] = cot__index(state[k]);
    for (int k = 0; k < l->nxs; k++)
        if (d->wanted[cot__loop_first_xs(l) + k]) x[count++] = cot__index(slices[k]);
    for (int k = 0; k < outer_count(d); k++)
        if (d->wanted[outer_operand(d, k)]) x[count++] = cot__index(outer[k]);
    if (t->status != COT_OK || !cot__smooth_between(t, l->name, seeds, y, count, x)) return 0;
    if (cot__vjp_recorded(t, l->name, seeds, y, seed, count, x, grad) != COT_OK) return 0;
    cot_var *g = grad;
    for (int k = 0; k < l->carry; k++)
        if (var_is_float(state[k])) *ys++ = *g++;
    cot_var *gx = g;
    for (int k = 0; k < l->nxs; k++) g += d->wanted[cot__loop_first_xs(l) + k];
    for (int k = 0, j = 0; k < operands; k++) {
        /* captures of the other body are not read in this step: their adjoints stay as they are */
        if (!is_outer(l, k) || !d->wanted[k]) continue;
        while (j < outer_count(d) && outer_operand(d, j) < k) j++;
        bool mine = j < outer_count(d) && outer_operand(d, j) == k;
        *ys++ = mine ? cot_add(*kbar, *g++) : *kbar;
        kbar++;
    }
    for (int k = 0; k < l->nxs; k++)
        if (d->wanted[cot__loop_first_xs(l) + k]) *ys++ = *gx++;
    return 0;
}

static cot_status state_stacks(cot_tape *t, derived *d, int64_t length, cot_var *stacks) {
    const cot__loop *l = d->l;
    cot__loop       *to = like(t, l, length);
    cot_var         *results = to ? vars(t, l, 2 * l->carry) : NULL;
    if (!results || l->carry == 0) return t->status;
    to->reverse = l->reverse;
    to->carry = l->carry, to->nxs = l->nxs, to->nys = l->carry;
    if (run_derived(t, to, states_body, d, d->x + cot__loop_first_carry(l), results) != COT_OK) return t->status;
    memcpy(stacks, results + l->carry, (size_t)l->carry * sizeof *stacks);
    return t->status;
}

bool cot__loop_back(cot_tape *t, const cot__loop *l, int64_t length, const cot_var *x, const bool *wanted,
                    const cot_var *gs, cot_var *bars) {
    int        operands = cot__loop_operands(l), n = 0;
    cot__loop *to = like(t, l, length);
    cot_var   *in = to ? vars(t, l, 3 * operands + l->carry + l->nys) : NULL;
    cot_var   *results = in ? vars(t, l, 2 * operands) : NULL;
    if (!results) return false;
    derived d = {.t = t, .l = l, .x = x, .wanted = wanted, .g = gs, .reached = cot__loop_reached(t, l, gs)};
    if (!d.reached) return false;
    for (int j = 0; j < l->carry; j++) {
        cot_var first = x[cot__loop_first_carry(l) + j];
        if (!var_is_float(first)) continue;
        in[n++] = cot__failed(gs[j]) ? cot_zeros(t, cot_dtype_of(first), cot_shape_of(first)) : gs[j];
    }
    for (int k = 0; k < operands; k++)
        if (is_outer(l, k) && wanted[k]) in[n++] = cot_zeros(t, cot_dtype_of(x[k]), cot_shape_of(x[k]));
    to->carry = n;
    if (t->status != COT_OK || state_stacks(t, &d, length, in + n) != COT_OK) return false;
    n += l->carry;
    for (int k = 0; k < l->nxs; k++) in[n++] = x[cot__loop_first_xs(l) + k];
    /* the derived loop goes through these adjoints, so a single step needs an axis of extent 1 */
    for (int j = l->carry; j < l->carry + l->nys; j++)
        if (!cot__failed(gs[j])) in[n++] = l->once ? cot_expand_dims(gs[j], 0) : gs[j];
    to->nxs = n - to->carry;
    for (int k = 0; k < l->nxs; k++) to->nys += wanted[cot__loop_first_xs(l) + k];
    to->reverse = !l->reverse;
    if (t->status != COT_OK || run_derived(t, to, back_body, &d, in, results) != COT_OK) return false;
    const cot_var *bar = results;
    for (int j = 0; j < l->carry; j++)
        if (var_is_float(x[cot__loop_first_carry(l) + j])) bars[cot__loop_first_carry(l) + j] = *bar++;
    for (int k = 0; k < operands; k++)
        if (is_outer(l, k) && wanted[k]) bars[k] = *bar++;
    for (int k = 0; k < l->nxs; k++)
        if (wanted[cot__loop_first_xs(l) + k]) bars[cot__loop_first_xs(l) + k] = *bar++;
    return true;
}

cot__region *cot__loop_back_step(cot_tape *t, const cot__loop *l, int which, const cot_var *x, const bool *wanted,
                                 const cot_var *gs) {
    derived  d = {.t = t, .l = l, .which = which, .x = x, .wanted = wanted, .g = gs};
    int      operands = cot__loop_operands(l), first = cot__loop_first_carry(l), n = 0, m = 0;
    cot_var *in = vars(t, l, 2 * operands + l->nys + 1);
    if (!in || !(d.reached = cot__loop_reached(t, l, gs))) return NULL;
    if (l->counts) in[n++] = cot_data(t, COT_I64, COT_SCALAR, &l->first);
    for (int k = 0; k < l->carry; k++)
        if (var_is_float(x[first + k])) in[n++] = x[first + k], m++;
    for (int k = 0; k < operands; k++)
        if (is_outer(l, k) && wanted[k]) in[n++] = x[k], m++;
    for (int k = 0; k < l->carry; k++) in[n++] = x[first + k];
    for (int k = 0; k < l->nxs; k++) {
        in[n++] = cot__first_slice(t, x[cot__loop_first_xs(l) + k]);
        m += wanted[cot__loop_first_xs(l) + k];
    }
    for (int j = l->carry; j < l->carry + l->nys; j++)
        if (!cot__failed(gs[j])) in[n++] = l->once ? gs[j] : cot__first_slice(t, gs[j]);
    return t->status == COT_OK ? cot__region_record(t, l->name, back_body, &d, n, in, m) : NULL;
}

void cot__loop_reverse_recorded(cot__rule *r) {
    cot_tape            *t = r->t;
    const cot__loop     *l = cot__rule_attr(r)->pointer;
    const cot__loop_run *run = cot__rule_attr(r)->pointer2;
    int                  operands = cot__loop_operands(l);
    cot_var             *x = vars(t, l, operands), *bars = x ? vars(t, l, operands) : NULL;
    cot_var             *gs = bars ? vars(t, l, cot__loop_results(l)) : NULL;
    bool                *wanted = gs ? cot__arena(t, (size_t)operands + 1, l->name) : NULL;
    if (!wanted) return;
    cot__loop_adjoints(r, l, gs);
    bool *reached = cot__loop_reached(t, l, gs), some = false;
    for (int k = 0; reached && k < operands; k++) {
        x[k] = cot__rule_x(r, k);
        some |= wanted[k] = reached[k] && cot__loop_has_adjoint(l, k) && cot__rule_wants(r, k);
    }
    if (!some || !cot__loop_back(t, l, run->length, x, wanted, gs, bars)) return;
    for (int k = 0; k < operands; k++)
        if (wanted[k]) cot__give(r, k, bars[k]);
}

/* ---- forward --------------------------------------------------------------------------------- */

static int forward_body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const derived   *d = user;
    const cot__loop *l = d->l;
    cot_tape        *t = d->t;
    int              operands = cot__loop_operands(l), results = l->carry + l->nys, moving = 0, floats = 0;
    const cot_var   *carry = xs + l->counts, *dcarry = carry + l->carry, *at = dcarry;
    for (int k = 0; k < l->carry; k++) at += var_is_float(carry[k]);
    const cot_var *slices = at, *dslices = slices + l->nxs;
    cot_var       *outer = vars(t, l, outer_count(d)), *out = outer ? vars(t, l, results) : NULL;
    cot_var       *dy = out ? vars(t, l, results) : NULL;
    uint32_t      *x = dy ? cot__arena(t, (2 * (size_t)operands + (size_t)results + 1) * sizeof *x, l->name) : NULL;
    uint32_t      *dx = cot__behind(x, operands), *y = cot__behind(dx, operands);
    (void)n, (void)m;
    if (!x) return 0;
    for (int k = 0; k < outer_count(d); k++) {
        int  o = outer_operand(d, k);
        bool moves = !cot__failed(d->dx[o]);
        outer[k] = moves ? cot__fresh_input(d->x[o]) : d->x[o];
        if (moves) x[moving] = cot__index(outer[k]), dx[moving++] = cot__index(d->dx[o]);
    }
    for (int k = 0; k < l->carry; k++)
        if (var_is_float(carry[k])) x[moving] = cot__index(carry[k]), dx[moving++] = cot__index(*dcarry++);
    for (int k = 0; k < l->nxs; k++)
        if (!cot__failed(d->dx[cot__loop_first_xs(l) + k]))
            x[moving] = cot__index(slices[k]), dx[moving++] = cot__index(*dslices++);
    if (t->status != COT_OK || !play(t, d, xs, carry, slices, outer, out)) return 0;
    for (int j = 0; j < results; j++)
        if (is_float(t, l->body[0]->out[j])) y[floats++] = cot__index(out[j]);
    if (!cot__smooth_between(t, l->name, floats, y, moving, x)) return 0;
    if (cot__jvp_recorded(t, l->name, floats, y, moving, x, dx, dy) != COT_OK) return 0;
    for (int k = 0; k < l->carry; k++) *ys++ = out[k];
    for (int k = 0; k < floats; k++) *ys++ = dy[k];
    return 0;
}

/* Plays the test of the old loop on the values that the new loop carries. Tangents are left out. */
static int forward_test(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const derived     *d = user;
    const cot__region *test = d->l->test;
    cot_tape          *t = d->t;
    const cot_var     *captured = d->x + cot__loop_operands(d->l) - test->captures;
    cot_var           *values = vars(t, d->l, test->n + test->captures);
    (void)n, (void)m;
    if (!values) return 0;
    memcpy(values, xs, (size_t)test->n * sizeof *values);
    memcpy(values + test->n, captured, (size_t)test->captures * sizeof *values);
    cot__play_once(t, d->l->name, test, values, ys);
    return 0;
}

cot_status cot__loop_with_tangents(cot_tape *t, const cot__loop *l, int64_t length, const cot_var *x, const cot_var *dx,
                                   cot_var *results) {
    int        n = 0;
    cot__loop *to = like(t, l, length);
    cot_var   *in = to ? vars(t, l, 2 * cot__loop_operands(l)) : NULL;
    derived    d = {.t = t, .l = l, .x = x, .dx = dx};
    if (!in) return t->status;
    for (int k = 0; k < l->carry; k++) in[n++] = x[cot__loop_first_carry(l) + k];
    for (int k = 0; k < l->carry; k++) {
        int o = cot__loop_first_carry(l) + k;
        if (!var_is_float(x[o])) continue;
        in[n++] = cot__failed(dx[o]) ? cot_zeros(t, cot_dtype_of(x[o]), cot_shape_of(x[o])) : dx[o];
    }
    to->carry = n;
    for (int k = 0; k < l->nxs; k++) in[n++] = x[cot__loop_first_xs(l) + k];
    for (int k = 0; k < l->nxs; k++)
        if (!cot__failed(dx[cot__loop_first_xs(l) + k])) in[n++] = dx[cot__loop_first_xs(l) + k];
    to->nxs = n - to->carry;
    for (int j = l->carry; j < l->carry + l->nys; j++) to->nys += is_float(t, l->body[0]->out[j]);
    to->reverse = l->reverse;
    to->once = l->once;
    if (l->test && (t->mode.body || l->bounded)) {
        /* the length is known only when the body is played, so the derived loop is a cot_while
         * too */
        to->length = l->length;
        to->test = t->status == COT_OK ? cot__region_record(t, l->name, forward_test, &d, to->carry, in, 1) : NULL;
        if (!to->test) return t->status;
    }
    return t->status == COT_OK ? run_derived(t, to, forward_body, &d, in, results) : t->status;
}

void cot__loop_forward(cot__rule *r) {
    cot_tape            *t = r->t;
    const cot__loop     *l = cot__rule_attr(r)->pointer;
    const cot__loop_run *run = cot__rule_attr(r)->pointer2;
    int                  operands = cot__loop_operands(l);
    cot_var             *x = vars(t, l, operands), *results = x ? vars(t, l, 2 * (l->carry + l->nys)) : NULL;
    if (!results) return;
    for (int k = 0; k < operands; k++) x[k] = cot__rule_x(r, k);
    if (cot__loop_with_tangents(t, l, run->length, x, r->tangents, results) != COT_OK) return;
    for (int f = 0, floats = cot__loop_floats(t, l); f < floats; f++) cot__rule_tangent(r, f, results[l->carry + f]);
}
