/* lower.c: a body as a program. The body has left out what its results do not need, and has put a
 * place among its values in place of every operand, so one pass does it. A write in place becomes
 * an operation with a new result; where it may take its operand's memory, the plan finds out. */
#include "rules/structural_ids.h"
#include "tape/lower.h"
#include "backend/elements.h"
#include "program/build.h"
#include "tape/record_job.h"

typedef struct lowering {
    cot_tape          *t;
    const cot__region *r;
    cot__builder       b;
    uint32_t          *value; /* the number of each of the body's values, by its place */
    uint32_t          *x;     /* operands of one operation */
    size_t             places, most;
} lowering;

/* ---- may it be? ------------------------------------------------------------------------------ */

static bool can_be_lowered(const lowering *l, cot__not_yet *not_yet) {
    *not_yet = (cot__not_yet){0};
    if (l->r->watches) not_yet->why = "kinks are looked for whenever it is played";
    for (uint32_t s = 0; !not_yet->why && s < l->r->steps; s++) {
        const cot__op *op = cot__op_of(l->t->nodes[l->r->node[s]].op);
        if (op->needs_tape) *not_yet = (cot__not_yet){op->name, op->needs_tape};
    }
    return !not_yet->why;
}

/* ---- values ---------------------------------------------------------------------------------- */

static cot__type type_at(const cot_tape *t, uint32_t node) {
    return (cot__type){cot__dtype_at(&t->nodes[node]), cot__shape_at(t, node)};
}

/* The elements of a fixed value, brought to the host. */
static uint32_t lower_constant(lowering *l, uint32_t node) {
    cot__type type = type_at(l->t, node);
    void     *elements;
    int64_t   stride[COT_MAX_NDIM];
    uint32_t  v = cot__build_constant(&l->b, &type, &elements);
    if (v == COT__NO_VALUE) return v;
    cot__strides(type.shape.ndim, type.shape.dim, stride);
    cot__view host = {elements, type.dtype, type.shape.ndim, type.shape.dim, stride}, from = cot__view_read(l->t, node);
    l->t->backend->copy_out(&host, &from);
    return v;
}

/* The inputs of a body are its first nodes. */
static void lower_sources(lowering *l) {
    const cot__region *r = l->r;
    uint32_t          *to = l->value;
    for (int k = 0; k < r->n; k++) {
        cot__type type = type_at(l->t, r->first + (uint32_t)k);
        *to++ = cot__build_input(&l->b, &type);
    }
    for (int k = 0; k < r->captures; k++) {
        cot__type type = type_at(l->t, r->captured[k]);
        *to++ = cot__build_input(&l->b, &type);
    }
    for (uint32_t k = 0; k < r->fixed; k++) *to++ = lower_constant(l, r->constant[k]);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* What was recorded without a gradient reads its operands through a detach, so that it has none
 * either when the program is recorded again. */
static bool is_cut(const lowering *l, uint32_t node) {
    const cot__node *n = &l->t->nodes[node];
    return !(n->flags & COT__ACTIVE) && cot__op_of(n->op)->kind != KIND_NONE && cot__dtype_is_float(cot__dtype_at(n));
}

static uint32_t detached(lowering *l, uint32_t operand, uint32_t value) {
    const cot__node *n = &l->t->nodes[operand];
    if (!(n->flags & COT__ACTIVE) || !cot__dtype_is_float(cot__dtype_at(n))) return value;
    return cot__build_operation(&l->b, &(cot__append){.op = OP_detach, .n = 1, .x = &value, .name = "detach"});
}

static uint32_t lower_node(lowering *l, uint32_t node, const uint64_t *ref) {
    const cot__node *n = &l->t->nodes[node];
    const cot__op   *op = cot__op_of(n->op);
    const cot_site  *site = cot__site_of(l->t, node);
    cot__type        asked = type_at(l->t, node);
    bool             structural = n->op >= OP_structural;
    cot__append      o = {.op = n->op, .n = cot__nargs(n), .x = l->x, .asked = &asked};
    bool             cut = is_cut(l, node) && n->op != OP_detach;
    for (int k = 0; k < o.n; k++) {
        l->x[k] = ref[k] == COT__REF_NUMBER ? COT__NO_VALUE : l->value[ref[k]];
        if (cut && ref[k] != COT__REF_NUMBER) l->x[k] = detached(l, cot__arg(n, k), l->x[k]);
    }
    o.attr = structural ? n->extra.attr : NULL;
    o.number = structural || o.n != 2 ? 0 : n->extra.number;
    o.name = op->called ? op->called : op->name;
    if (site) o.file = site->file, o.line = site->line;
    return cot__build_operation(&l->b, &o);
}

static void lower_steps(lowering *l) {
    const cot__region *r = l->r;
    const uint64_t    *ref = r->ref;
    uint32_t          *to = l->value + r->n + r->captures + r->fixed;
    for (uint32_t s = 0; s < r->steps && !l->b.failed; s++) {
        const cot__node *n = &l->t->nodes[r->node[s]];
        /* further results follow the first */
        if (n->op == OP_pick) *to++ = l->value[ref[0]] + (r->node[s] - n->a);
        else *to++ = lower_node(l, r->node[s], ref);
        ref += cot__nargs(n);
    }
    if (l->b.failed) return;
    for (int k = 0; k < r->m; k++) cot__build_output(&l->b, l->value[ref[k]]);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool open_lists(lowering *l) {
    l->places = (size_t)(l->r->n + l->r->captures) + l->r->fixed + l->r->steps;
    for (uint32_t s = 0; s < l->r->steps; s++) {
        size_t n = (size_t)cot__nargs(&l->t->nodes[l->r->node[s]]);
        if (n > l->most) l->most = n;
    }
    l->value = cot__alloc(&l->t->al, l->places * sizeof *l->value);
    l->x = cot__alloc(&l->t->al, l->most * sizeof *l->x);
    if (!l->value || !l->x)
        cot__fail(l->t, COT_MEMORY, "[%s] out of memory: the program of a body of %u operations", l->r->name,
                  l->r->steps);
    return l->value && l->x;
}

cot__program *cot__region_lower(cot_tape *t, const cot__region *r, const cot_allocator *al, cot__not_yet *not_yet) {
    lowering      l = {.t = t, .r = r};
    cot__program *p = NULL;
    cot__caller   caller = cot__tape_caller(t, r->name);
    if (!can_be_lowered(&l, not_yet)) return NULL;
    if (open_lists(&l)) {
        cot__builder_open(&l.b, al, &caller);
        if (!l.b.failed) lower_sources(&l);
        if (!l.b.failed) lower_steps(&l);
        p = cot__builder_close(&l.b);
    }
    cot__free(&t->al, l.value, l.places * sizeof *l.value);
    cot__free(&t->al, l.x, l.most * sizeof *l.x);
    return p;
}

/* ---- kept with the body ---------------------------------------------------------------------- */

static void forget_program(void *region) {
    cot__region *r = region;
    cot__program_release(r->program);
    r->program = NULL;
}

const cot__program *cot__region_program(cot_tape *t, const cot__region *region) {
    cot__region *r = (cot__region *)(uintptr_t)region;
    cot__not_yet not_yet;
    if (r->program || r->needs_tape) return r->program;
    r->program = cot__region_lower(t, r, &t->al, &not_yet);
    r->needs_tape = !r->program && not_yet.why;
    if (r->program && !cot__tape_keep(t, r, forget_program, r->name)) forget_program(r);
    return r->program;
}
