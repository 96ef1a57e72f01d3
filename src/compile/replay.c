/* replay.c: see replay.h. */
#include "rules/structural_ids.h"
#include "compile/call.h"
#include "compile/replay.h"
#include "diff/implicit/implicit.h"
#include "diff/loops/loop.h"

#include "ops/custom_job.h"
#include "ops/elementwise/elementwise.h"
#include "ops/kinks.h"
#include "ops/structural.h"
#include "tape/record_job.h"

#include <string.h>

bool cot__replay_open(cot__replaying *r, cot_tape *t, const char *op, const cot__program *p) {
    *r = (cot__replaying){.t = t, .p = p};
    for (uint32_t k = 0; k < r->p->operations; k++) {
        uint32_t n = (uint32_t)cot__operation_operands(r->p, k);
        if (n > r->most) r->most = n;
    }
    r->value = cot__alloc(&r->t->al, r->p->values * sizeof *r->value);
    r->x = cot__alloc(&r->t->al, r->most * sizeof *r->x);
    r->args = cot__alloc(&r->t->al, r->most * sizeof *r->args);
    if (r->value && r->x && r->args) return true;
    cot__fail(r->t, COT_MEMORY, "[%s] out of memory: the values of a program of %u operations", op,
              r->p->operations);
    return false;
}

void cot__replay_close(cot__replaying *r) {
    cot__recalled_close(r->recalled);
    cot__free(&r->t->al, r->value, r->p->values * sizeof *r->value);
    cot__free(&r->t->al, r->x, r->most * sizeof *r->x);
    cot__free(&r->t->al, r->args, r->most * sizeof *r->args);
}

void cot__replay_constant(cot__replaying *r, uint32_t constant) {
    uint32_t  v = r->p->constant[constant].value;
    cot__type type = cot__value_type(r->p, v);
    r->value[v] = cot_data(r->t, type.dtype, type.shape, cot__constant_elements(r->p, constant));
}

/* A number beside integers is a whole one; a fraction would make f64 of them. */
static cot_var number_of(const cot__replaying *r, uint32_t k, const uint32_t *x) {
    uint32_t other = x[0] == COT__NO_VALUE ? x[1] : x[0];
    double   number = cot__operation_number(r->p, k);
    bool     real = cot__dtype_is_float(cot__value_view(r->p, other).dtype);
    return real ? cot_number(number) : cot_integer((int64_t)number);
}

static cot_var replay_elementwise(cot__replaying *r, uint32_t k) {
    const uint32_t *x = cot__operation_operand(r->p, k);
    for (int i = 0; i < cot__operation_operands(r->p, k); i++)
        r->x[i] = x[i] == COT__NO_VALUE ? number_of(r, k, x) : r->value[x[i]];
    return cot__call(r->p->operation[k].op, r->x);
}

static void replay_way_back(cot__replaying *r, uint32_t k) {
    const uint32_t *x = cot__operation_operand(r->p, k);
    for (int i = 0; i < cot__operation_operands(r->p, k); i++) r->x[i] = r->value[x[i]];
    cot__loop_adjoint_replay(r->t, r->p, k, r->x, cot__replay, &r->value[r->p->operation[k].result]);
}

static void replay_call(cot__replaying *r, uint32_t k) {
    const uint32_t *x = cot__operation_operand(r->p, k);
    if (r->nested) {
        cot__call_nested(r->t);
        return;
    }
    for (int i = 0; i < cot__operation_operands(r->p, k); i++) r->x[i] = r->value[x[i]];
    cot__call_replay(r->t, r->p, k, r->x, &r->recalled, &r->value[r->p->operation[k].result]);
}

static cot_var replay_structural(cot__replaying *r, uint32_t k) {
    cot_tape             *t = r->t;
    const cot__operation *o = &r->p->operation[k];
    const char           *name = cot__operation_name(r->p, k);
    const uint32_t       *x = cot__operation_operand(r->p, k);
    int                   n = cot__operation_operands(r->p, k);
    const cot__attr      *of = cot__operation_attr(r->p, k);
    cot__type             asked = cot__value_type(r->p, o->result);
    cot__attr            *attr = NULL;
    for (int i = 0; i < n; i++) {
        r->x[i] = r->value[x[i]];
        if (!cot__operand(t, r->x[i], name, "replayed", &r->args[i])) return INVALID(t);
    }
    if (o->op == OP_custom)
        return (cot_call)(of->pointer, n, r->x, (void *)(uintptr_t)of->pointer2);
    if (o->op == OP_custom_numbers) return cot__numbers_record(t, of, n, r->x);
    if (o->op == OP_loop) return cot__loop_replay(t, r->p, k, r->x, cot__replay);
    if (o->op == OP_linear_solve) return cot__linear_solve_replay(t, r->p, k, r->x, cot__replay);
    if (o->op == OP_root) return cot__root_replay(t, r->p, k, r->x, cot__replay);
    /* sweeps over numbers read what its own function keeps with its node */
    if (o->op == OP_logsumexp_of) return cot_logsumexp_of(n, r->x);
    if (of) {
        attr = cot__attr_make(t, name, (int)of->nints, of->ints, n > 2 ? n : 0, r->args);
        if (!attr) return INVALID(t);
        attr->number = of->number;
    }
    if (o->op == OP_watch) return cot__watch_again(t, name, n, r->args, attr);
    return cot__record(t, name, o->op, n, r->args, attr, &asked);
}

int cot__idle_input(const cot__program *p, uint32_t k) {
    const cot__operation *o = &p->operation[k];
    if (o->op != OP_reshape && o->op != OP_cast) return -1;
    uint32_t  x = cot__operation_operand(p, k)[0];
    cot__type a = cot__value_type(p, x), z = cot__value_type(p, o->result);
    if (cot__value_origin(p, x) != COT__FROM_INPUT || a.dtype != z.dtype || !cot__same_shape(&a.shape, &z.shape))
        return -1;
    int i = 0;
    while (p->input[i] != x) i++;
    return i;
}

/* Leaves out what an input has no need of. */
static bool is_left_out(cot__replaying *r, uint32_t k) {
    int input = r->computed ? cot__idle_input(r->p, k) : -1;
    if (input < 0 || !r->computed[input]) return false;
    r->value[r->p->operation[k].result] = r->value[r->p->input[input]];
    return true;
}

void cot__replay_operation(cot__replaying *r, uint32_t operation) {
    const cot__operation *o = &r->p->operation[operation];
    if (is_left_out(r, operation)) return;
    if (o->op == OP_loop_adjoint) {
        replay_way_back(r, operation);
        return;
    }
    if (o->op == OP_call) {
        replay_call(r, operation);
        return;
    }
    cot_var z = o->op < OP_structural ? replay_elementwise(r, operation) : replay_structural(r, operation);
    for (uint32_t i = 0; i < o->results; i++) r->value[o->result + i] = cot__result_of(z, (int)i);
}

/* ---- source lines ---------------------------------------------------------------------------- */

static bool has_lines(const cot__program *p) {
    for (uint32_t k = 0; k < p->operations; k++)
        if (p->label[p->operation[k].label].file) return true;
    return false;
}

/* A site that lives as long as what is recorded: the program may go before. */
static const cot_site *site_again(cot_tape *t, const cot__program *p, const cot__label *l) {
    const char *file = p->text + l->file;
    size_t      bytes = strlen(file) + 1;
    cot_site   *site = cot__arena(t, sizeof *site + bytes, "program_call");
    if (!site) return NULL;
    *site = (cot_site){.file = memcpy(site + 1, file, bytes), .line = (int)l->line};
    return site;
}

/* What operation k has recorded, and its error, get the line that was recorded with it. */
static void stamp(cot__replaying *r, uint32_t k) {
    uint32_t          label = r->p->operation[k].label;
    const cot__label *l = &r->p->label[label];
    if (!r->site || r->stamped != label) r->site = l->file ? site_again(r->t, r->p, l) : NULL;
    r->stamped = label;
    cot_sited((cot_var){r->t, 0}, r->site);
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool cot__replay(cot_tape *t, const cot__program *p, const cot_var *xs, cot_var *ys) {
    return cot__replay_computed(t, p, NULL, xs, ys);
}

bool cot__replay_computed(cot_tape *t, const cot__program *p, const bool *computed, const cot_var *xs, cot_var *ys) {
    cot__replaying r;
    if (cot__replay_open(&r, t, "program_call", p)) {
        r.nested = true;
        r.computed = computed;
        for (uint32_t k = 0; k < p->inputs; k++) r.value[p->input[k]] = xs[k];
        for (uint32_t k = 0; k < p->constants && t->status == COT_OK; k++) cot__replay_constant(&r, k);
        bool lines = has_lines(p);
        if (lines) cot_sited((cot_var){t, 0}, NULL); /* what was recorded before has others */
        for (uint32_t k = 0; k < p->operations && t->status == COT_OK; k++) {
            cot__replay_operation(&r, k);
            if (lines) stamp(&r, k);
        }
        for (uint32_t k = 0; k < p->outputs && t->status == COT_OK; k++) ys[k] = r.value[p->output[k]];
    }
    cot__replay_close(&r);
    return t->status == COT_OK;
}
