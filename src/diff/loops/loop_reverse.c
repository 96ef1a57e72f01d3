/* loop_reverse.c: the way back through a loop, in numbers. From the last step to the first, each
 * step is played again from its state, swept and forgotten. A state that was not kept is computed
 * again from the last kept state before it. */
#include "rules/elementwise_ids.h"
#include "diff/engine/find_kinks.h"
#include "backend/elements.h"
#include "diff/loops/loop.h"
#include "ops/structural.h"

#include <string.h>

/* The adjoints of the loop's operands, in memory of this sweep:
 *   constants, captures   added up over the steps
 *   carried values        handed from step to step
 *   xs                    written row by row */
typedef struct back {
    cot__rule     *rule;
    cot__stepper   s;
    cot__storage **bar;     /* the adjoint of each operand; NULL: not wanted */
    uint32_t      *source;  /* in the steps, the node that stands for each constant and capture */
    uint32_t      *inputs;  /* in the present step, the nodes of carried values and slices */
    cot_var       *g;       /* the adjoint of each result; INVALID: it has none */
    const bool    *reached; /* the operands that get an adjoint */
    cot__loop_run *run;
    int            operands;
    cot__way_back  way;
} back;

/* A row-major view of an operand's adjoint. */
static cot__view bar_view(back *b, int k, int64_t *stride) {
    cot__view v = cot__look(b->s.t, b->s.args[k]);
    cot__strides(v.ndim, v.shape, stride);
    return (cot__view){b->bar[k]->data, v.dtype, v.ndim, v.shape, stride};
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_sliced(const cot__loop *l, int k) {
    return k >= cot__loop_first_xs(l) && k < cot__loop_first_capture(l);
}
static bool is_carried(const cot__loop *l, int k) { return k >= cot__loop_first_carry(l) && k < cot__loop_first_xs(l); }

/* Carried operands with a float dtype, and other operands that are wanted, get an adjoint. It
 * begins with zeros. */
static bool open_bars(back *b) {
    cot_tape        *t = b->s.t;
    const cot__loop *l = b->s.loop;
    for (int k = 0; k < b->operands; k++) {
        uint32_t x = b->s.args[k];
        bool needs = is_carried(l, k) ? cot__dtype_is_float(cot__dtype_at(&t->nodes[x])) : cot__rule_wants(b->rule, k);
        if (!needs) continue;
        b->bar[k] = cot__storage_create(t, cot__bytes_at(t, x), l->name);
        if (!b->bar[k]) return false;
        int64_t   stride[COT_MAX_NDIM];
        cot__view v = bar_view(b, k, stride);
        t->backend->fill(&v, 0);
    }
    return true;
}

/* A passive copy of node x, above all nodes of the sweep that is under way. */
static cot_var local(cot_tape *t, uint32_t x) {
    cot__scope scope = cot__scope_open(t, 0);
    cot_var p = cot__parameter(t, x);
    cot__scope_close(t, &scope);
    return p;
}

/* The steps read copies of the loop's operands. The copies lie above all nodes of the sweep that is
 * under way, so the sweep of a step does not touch its slots. An operand that gets an adjoint is
 * copied as an active parameter, any other as a passive one. */
static bool open_sources(back *b) {
    cot_tape          *t = b->s.t;
    const cot__loop   *l = b->s.loop;
    const cot__region *body = b->s.body;
    int                captured = cot__loop_first_capture(l) + (b->s.steps.choice ? l->body[0]->captures : 0);
    for (int k = 0; k < l->consts + body->captures; k++) {
        int     operand = k < l->consts ? cot__loop_first_const(l) + k : captured + k - l->consts;
        cot_var p = b->bar[operand] ? cot__parameter(t, b->s.args[operand]) : local(t, b->s.args[operand]);
        if (cot__failed(p)) return false;
        if (b->bar[operand]) b->source[operand] = cot__index(p);
        b->s.player.value[k < l->consts ? k : body->n + k - l->consts] = p;
    }
    for (uint32_t k = 0; k < body->fixed; k++) {
        cot_var p = local(t, body->constant[k]);
        if (cot__failed(p)) return false;
        b->s.player.value[(uint32_t)(body->n + body->captures) + k] = p;
    }
    return true;
}

/* ---- seeds ----------------------------------------------------------------------------------- */

static bool seed(cot__sweep *w, uint32_t y, const cot__view *g) {
    cot_tape *t = w->t;
    if (!(t->nodes[y].flags & COT__ACTIVE)) return true;
    if (y < w->lo) w->lo = y;
    if (!cot__is_tensor(&t->nodes[y])) {
        cot__slot_add(t, y, cot__element_f64(t->backend, g, 0));
        return true;
    }
    if (*cot__slot(t, y)) return cot__acc_add(w, y, &(cot__bound){*g, NULL});
    /* the first one is copied, not added to 0, where -0 would be lost */
    int64_t stride[COT_MAX_NDIM];
    if (!cot__acc_own(w, y, false)) return false;
    cot__bound to = cot__acc_bound(w, y, stride);
    cot__pending_copy(t, &to, &(cot__bound){*g, NULL});
    return true;
}

/* The adjoint of result j at step `at`: a row of the result's adjoint, if it has one. */
static bool seed_given_out(back *b, cot__sweep *w, int64_t at, int j) {
    const cot__loop *l = b->s.loop;
    if (cot__failed(b->g[j])) return true;
    cot__view row = cot__look(b->s.t, cot__index(b->g[j]));
    if (!l->once) {
        row.data = (char *)row.data + at * row.stride[0] * cot__dtype_size(row.dtype);
        row.ndim--, row.shape++, row.stride++;
    }
    return seed(w, cot__index(b->s.out[j]), &row);
}

/* ---- one step back --------------------------------------------------------------------------- */

static void set_bar(const cot_tape *t, cot__view *to, const cot__arrival *a) {
    if (!a) {
        t->backend->fill(to, 0);
        return;
    }
    cot__view from = {NULL, to->dtype, to->ndim, to->shape, a->tensor.stride};
    if (!a->tensor.storage) {
        t->backend->fill(to, a->scalar);
        return;
    }
    from.data = (char *)a->tensor.storage->data + a->tensor.offset * cot__dtype_size(to->dtype);
    t->backend->copy(to, &from);
}

static void add_bar(const cot_tape *t, cot__view *to, const cot__arrival *a) {
    if (!a->tensor.storage) {
        t->backend->fill(to, cot__element_f64(t->backend, to, 0) + a->scalar);
        return;
    }
    cot__view pair[2] = {*to, *to};
    pair[1].stride = a->tensor.stride;
    pair[1].data = (char *)a->tensor.storage->data + a->tensor.offset * cot__dtype_size(to->dtype);
    cot__run_value(t->backend, OP_add, cot__dtype_compute(to->dtype), 2, pair, to);
}

/* Moves the adjoints that arrived in one step to the storages of the operands. */
static void collect(back *b, const cot__sweep *w, int64_t at) {
    const cot__loop *l = b->s.loop;
    int64_t          stride[COT_MAX_NDIM];
    for (int k = 0; k < b->operands; k++) {
        if (!b->bar[k]) continue;
        cot__view v = bar_view(b, k, stride);
        if (is_carried(l, k)) {
            set_bar(b->s.t, &v, cot__arrival_at(w, b->inputs[k - cot__loop_first_carry(l)]));
        } else if (is_sliced(l, k)) {
            cot__view row = {(char *)v.data + at * v.stride[0] * cot__dtype_size(v.dtype), v.dtype, v.ndim - 1,
                             v.shape + 1, v.stride + 1};
            set_bar(b->s.t, &row, cot__arrival_at(w, b->inputs[k - cot__loop_first_carry(l)]));
        } else if (b->source[k] != COT__NONE) {
            const cot__arrival *a = cot__arrival_at(w, b->source[k]);
            if (a) add_bar(b->s.t, &v, a);
        }
    }
}

static void mark_inputs(back *b, bool on) {
    cot_tape        *t = b->s.t;
    const cot__loop *l = b->s.loop;
    for (int k = 0; k < b->operands; k++) {
        uint32_t i = is_carried(l, k) || is_sliced(l, k) ? b->inputs[k - cot__loop_first_carry(l)] : b->source[k];
        if (b->bar[k] && i != COT__NONE) cot__mark_wanted(t, 1, &i, on);
    }
}

static uint32_t highest_result(const back *b) {
    uint32_t top = 0;
    for (int j = 0; j < b->s.body->m; j++)
        if (cot__index(b->s.out[j]) > top) top = cot__index(b->s.out[j]);
    return top;
}

static bool step_back(back *b, int64_t k) {
    cot_tape        *t = b->s.t;
    const cot__loop *l = b->s.loop;
    int64_t          at = l->reverse ? b->run->length - 1 - k : k, stride[COT_MAX_NDIM];
    if (!cot__take_steps(t, 1)) return false;
    if (b->way.run || b->way.played) return cot__step_went(&b->s, k, b->run->length, cot__way_step(&b->way, at));
    cot_mark         m = cot__mark(t);
    uint32_t         from = t->count;
    bool ok = cot__step_went(&b->s, k, b->run->length,
                             cot__loop_step(&b->s, k, b->run->length, OP_parameter, b->inputs));
    uint32_t         top = ok ? highest_result(b) : 0;
    ok = ok && cot__smooth_step(t, l->name, from, top, at);
    cot__sweep       w = {.t = t, .lo = top, .top = top, .wanted_only = true};
    if (ok && (ok = cot__slots(t, top, 1, l->name)) != false) {
        mark_inputs(b, true);
        for (int j = 0; ok && j < l->carry; j++) {
            if (!b->bar[cot__loop_first_carry(l) + j] || !b->reached[cot__loop_first_carry(l) + j]) continue;
            cot__view g = bar_view(b, cot__loop_first_carry(l) + j, stride);
            ok = seed(&w, cot__index(b->s.out[j]), &g);
        }
        for (int j = l->carry; ok && j < l->carry + l->nys; j++)
            ok = seed_given_out(b, &w, at, j);
        ok = cot__step_went(&b->s, k, b->run->length, ok && cot__reverse(&w));
        mark_inputs(b, false);
        if (ok) collect(b, &w, at);
        cot__sweep_close(&w, false);
    }
    cot__rewind(t, m);
    return ok;
}

/* ---- to the state before a step -------------------------------------------------------------- */

/* Does step k, or, k = -1, takes the first state. */
static bool go_on(void *to, int64_t k) {
    back *b = to;
    if (k < 0) return cot__state_first(&b->s), true;
    cot__scope scope = cot__scope_open(b->s.t, 0);
    bool       ok = cot__step_went(&b->s, k, b->run->length, cot__stepper_go(&b->s, NULL, k, b->run->length));
    cot__scope_close(b->s.t, &scope);
    b->run->again++;
    return ok;
}

static bool reach(back *b, int64_t k) {
    return cot__reach(b->s.t, b->s.loop, b->run, &b->s.steps, k, go_on, b);
}

/* All steps at once, where their states lie side by side. False: nothing was done. */
static bool go_back_along(back *b) {
    int64_t last = b->run->length - 1;
    if (!b->way.run || !b->run->all || cot__is_loading(b->s.t)) return false;
    b->s.steps.state = b->run->all + (size_t)last * b->s.steps.bytes;
    bool up = b->s.loop->reverse;
    return cot__way_go_along(&b->way.way, &b->s.steps, b->way.run, up ? 0 : last, last + 1, up);
}

/* ---- the rule -------------------------------------------------------------------------------- */

static bool open_back(back *b, cot__rule *r) {
    cot_tape        *t = r->t;
    const cot__attr *attr = cot__rule_attr(r);
    const cot__loop *l = attr->pointer;
    b->rule = r;
    b->operands = (int)attr->nargs;
    b->run = (cot__loop_run *)(uintptr_t)attr->pointer2;
    size_t n = (size_t)b->operands;
    for (int k = 0; k < b->operands; k++)
        /* an operand was overwritten since: the steps would compute other values */
        if (cot__failed(cot__rule_x(r, k))) return false;
    b->bar = cot__arena(t, (n + 1) * sizeof *b->bar, l->name);
    b->source = b->bar ? cot__arena(t, (n + 1) * sizeof *b->source, l->name) : NULL;
    b->inputs = b->source ? cot__arena(t, (n + 1) * sizeof *b->inputs, l->name) : NULL;
    if (!b->inputs) return false;
    memset(b->bar, 0, (n + 1) * sizeof *b->bar);
    memset(b->source, 0xff, (n + 1) * sizeof *b->source);
    memset(b->inputs, 0xff, (n + 1) * sizeof *b->inputs);
    b->reached = cot__loop_reached(t, l, b->g);
    if (!cot__stepper_open(&b->s, t, l, attr->args) || !b->reached) return false;
    if (!open_bars(b)) return false;
    b->way = (cot__way_back){.s = &b->s, .bar = b->bar, .g = b->g, .always = !r->driver};
    if (cot__way_find(&b->way, b->run->length)) return true;
    return t->status == COT_OK && open_sources(b) && cot__way_open(&b->way, b->run->length);
}

/* The adjoints of the last carried values, where they have arrived. */
static void start_carried(back *b) {
    const cot__loop *l = b->s.loop;
    int64_t          stride[COT_MAX_NDIM];
    for (int j = 0; j < l->carry; j++) {
        int k = cot__loop_first_carry(l) + j;
        if (!b->bar[k] || cot__failed(b->g[j])) continue;
        cot__view to = bar_view(b, k, stride), from = cot__look(b->s.t, cot__index(b->g[j]));
        b->s.t->backend->copy(&to, &from);
    }
}

/* Hands the adjoints to the driver. A storage that the tape keeps outlives this function; wrapped
 * memory would not. */
static void give_all(back *b) {
    cot_tape *t = b->s.t;
    for (int k = 0; k < b->operands && t->status == COT_OK; k++) {
        /* without a driver each adjoint that was asked for is taken, zeros too */
        if (!b->bar[k] || (b->rule->driver && !b->reached[k]) || !cot__rule_wants(b->rule, k)) continue;
        cot__view v = cot__look(t, b->s.args[k]);
        cot_var   g;
        if (!cot__is_tensor(&t->nodes[b->s.args[k]])) {
            cot__result r;
            if (!cot__result_open(t, &r, b->s.loop->name, v.dtype, 0, NULL)) return;
            cot__copy_element(t->backend, r.view.data, b->bar[k]->data, v.dtype);
            g = cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
        } else {
            b->bar[k]->refs++;
            if (!cot__storage_keep(t, b->bar[k], b->s.loop->name)) return;
            g = cot__push_storage(t, OP_constant, b->bar[k], v.dtype, v.ndim, v.shape, NULL, 0, 0, NULL);
        }
        if (!cot__failed(g)) cot__give(b->rule, k, g);
    }
}

static void close_back(back *b) {
    cot_tape *t = b->s.t;
    for (int k = 0; b->bar && k < b->operands; k++) cot__storage_release(t, b->bar[k]);
    cot__way_close(&b->way);
    if (b->s.loop) cot__stepper_close(&b->s);
}

void cot__loop_reverse_numbers(cot__rule *r) {
    cot_tape        *t = r->t;
    const cot__loop *l = cot__rule_attr(r)->pointer;
    back             b = {.s.t = t, .g = cot__arena(t, ((size_t)cot__loop_results(l) + 1) * sizeof *b.g, l->name)};
    if (!b.g) return;
    cot__loop_adjoints(r, l, b.g);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    bool ok = open_back(&b, r);
    if (ok) {
        start_carried(&b);
        struct cot__findings *look = t->kinks.look;
        int                   found = look ? look->found : 0;
        for (int64_t k = go_back_along(&b) ? 0 : b.run->length; ok && k-- > 0;) {
            ok = reach(&b, k) && step_back(&b, k);
            /* report the kinks of one step only */
            if (look && look->found != found) t->kinks.look = NULL;
        }
        t->kinks.look = look;
        t->active_mask = 0;
        if (ok) give_all(&b);
    }
    cot__scope_close(t, &scope);
    close_back(&b);
}
