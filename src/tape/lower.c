/* lower.c: a body as a program. The body has left out what its results do not need, and has put a
 * place among its values in place of every operand, so one pass does it. A write in place becomes
 * an operation with a new result; where it may take its operand's memory, the plan finds out. */
#include "rules/structural_ids.h"
#include "tape/lower.h"
#include "backend/elements.h"
#include "program/build.h"
#include "program/limit/limit.h"
#include "tape/record_job.h"
#include "tape/show.h"

#include <string.h>

enum { LARGE = 4096 }; /* bytes of the least constant that is worth an operation */

typedef struct lowering {
    cot_tape          *t;
    const cot__region *r;
    cot__builder       b;
    uint32_t          *value; /* the number of each of the body's values, by its place */
    uint32_t          *x;     /* operands of one operation */
    size_t             places, most;
    cot__not_yet      *not_yet;
    const bool        *constant; /* captures that are constants; NULL: none is */
    bool               whole; /* of a tape: each node is one value, and gradients are not cut */
    /* for a file: bodies know no source lines, and nothing of the user's is in them */
    bool               filed;
    const struct filed *loaded; /* operations of the tape that came out of a file; NULL: none */
} lowering;

/* ---- may it be? ------------------------------------------------------------------------------ */

static bool can_be_lowered(const lowering *l) {
    cot__not_yet *not_yet = l->not_yet;
    *not_yet = (cot__not_yet){0};
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

/* Is it one number, repeated often enough? A seed for every element of a large array is, and the
 * zeros that a gradient is added to. */
static bool is_repeated(const lowering *l, uint32_t node) {
    cot__view x = cot__layout_at(l->t, node);
    size_t    bytes = cot__bytes_at(l->t, node), one = (size_t)cot__dtype_size(x.dtype);
    if (x.ndim == 0 || bytes < LARGE) return false;
    if (cot__repeats(&x)) return true;
    if (!cot__on_host(l->t->backend) || !cot__is_dense(&x, x.dtype)) return false;
    const char *element = cot__look(l->t, node).data;
    return memcmp(element, element + one, bytes - one) == 0;
}

static uint32_t lower_repeated(lowering *l, uint32_t node) {
    cot__type type = type_at(l->t, node), one = {type.dtype, {0}};
    void     *element;
    uint32_t  v = cot__build_constant(&l->b, &one, &element);
    if (v == COT__NO_VALUE) return v;
    l->t->backend->copy_out(&(cot__view){element, type.dtype, 0, NULL, NULL},
                            &(cot__view){cot__look(l->t, node).data, type.dtype, 0, NULL, NULL});
    return cot__build_operation(&l->b, &(cot__append){.op = OP_broadcast_to, .n = 1, .x = &v, .asked = &type,
                                                      .name = "broadcast_to"});
}

/* The elements of a fixed value, brought to the host; zeros of one that was written over. */
static uint32_t lower_constant(lowering *l, uint32_t node) {
    if (!l->whole && is_repeated(l, node)) return lower_repeated(l, node);
    cot__type type = type_at(l->t, node);
    void     *elements;
    int64_t   stride[COT_MAX_NDIM];
    uint32_t  v = cot__build_constant(&l->b, &type, &elements);
    if (v == COT__NO_VALUE) return v;
    cot__strides(type.shape.ndim, type.shape.dim, stride);
    cot__view host = {elements, type.dtype, type.shape.ndim, type.shape.dim, stride}, from = cot__look(l->t, node);
    if (l->whole && cot__is_stale(&l->t->nodes[node]))
        memset(elements, 0, (size_t)(cot__view_size(&host) * cot__dtype_size(type.dtype)));
    else l->t->backend->copy_out(&host, &from);
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
        bool      constant = l->constant && l->constant[k];
        *to++ = constant ? lower_constant(l, r->captured[k]) : cot__build_input(&l->b, &type);
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

static cot__program *lower(lowering *l, const cot_allocator *al, const cot__caller *caller);

static bool lower_bodies(lowering *l, const cot__plain *plain, cot__program **body) {
    for (int k = 0; k < plain->bodies; k++) {
        if (plain->program[k]) {
            body[k] = cot__program_share(plain->program[k]);
            continue;
        }
        lowering of = {.t = l->t, .r = plain->body[k], .not_yet = l->not_yet, .constant = plain->constant[k],
                       .filed = l->filed};
        body[k] = lower(&of, &l->b.p->al, &l->b.caller);
        if (!body[k]) return false;
    }
    return true;
}

/* Why a node with bodies or functions cannot be in a file; NULL: it can. */
static const char *is_unfit_for_files(const lowering *l, uint32_t node) {
    const cot__op *op = cot__op_of(l->t->nodes[node].op);
    bool           theirs = op->users_rule && op->users_rule(&(cot__rule){.t = l->t, .node = node});
    return op->bodies && !theirs ? NULL : "it calls a function of the user's";
}

static bool as_in_its_file(const lowering *l, uint32_t node, cot__plain *to);

/* What the node is in a program. For a file it is what it would be in a program that is compiled:
 * what a solver needs besides its bodies is recorded on examples, of which nothing is computed. */
static bool make_plain(lowering *l, uint32_t node, cot__plain *to) {
    cot__rule r = {.t = l->t, .node = node};
    bool      compiling = l->t->mode.compiling;
    if (as_in_its_file(l, node, to)) return true;
    l->t->mode.compiling |= l->filed;
    bool made = cot__op_of(l->t->nodes[node].op)->plain(&r, to);
    l->t->mode.compiling = compiling;
    return made;
}

/* The bodies of the node become programs first; where one cannot, this cannot either. */
static uint32_t lower_plain(lowering *l, uint32_t node, cot__append *o) {
    cot__plain    plain = {0};
    cot__program *body[COT__PLAIN_BODIES] = {NULL};
    uint32_t      z = COT__NO_VALUE;
    const char   *unfit = l->filed ? is_unfit_for_files(l, node) : NULL;
    cot_mark      before = cot__mark(l->t);
    if (unfit) *l->not_yet = (cot__not_yet){cot__op_name(l->t, node), unfit}, l->b.failed = true;
    else if (!make_plain(l, node, &plain)) l->b.failed = true;
    else if (plain.why) *l->not_yet = (cot__not_yet){plain.name, plain.why}, l->b.failed = true;
    else if (!lower_bodies(l, &plain, body)) l->b.failed = true;
    else {
        o->attr = plain.attr, o->name = plain.name;
        o->bodies = plain.bodies, o->body = body;
        z = cot__build_operation(&l->b, o);
    }
    for (int k = 0; k < COT__PLAIN_BODIES; k++) cot__program_release(body[k]);
    if (l->whole) cot__rewind(l->t, before); /* a tape may have very many of them */
    return z;
}

static uint32_t lower_node(lowering *l, uint32_t node, const uint64_t *ref) {
    const cot__node *n = &l->t->nodes[node];
    const cot__op   *op = cot__op_of(n->op);
    const cot_site  *site = cot__site_of(l->t, node);
    cot__type        asked = type_at(l->t, node);
    bool             structural = n->op >= OP_structural;
    /* a loop may read nothing at all, which is no number either */
    bool             reads = !structural || cot__nargs(n) != 1 || ref[0] != COT__REF_NUMBER;
    cot__append      o = {.op = n->op, .n = reads ? cot__nargs(n) : 0, .x = l->x, .asked = &asked};
    bool             cut = !l->whole && is_cut(l, node) && n->op != OP_detach;
    for (int k = 0; k < o.n; k++) {
        l->x[k] = ref[k] == COT__REF_NUMBER ? COT__NO_VALUE : l->value[ref[k]];
        if (cut && ref[k] != COT__REF_NUMBER) l->x[k] = detached(l, cot__arg(n, k), l->x[k]);
    }
    o.attr = structural ? n->extra.attr : NULL;
    o.number = structural || o.n != 2 ? 0 : n->extra.number;
    o.name = structural ? cot__caller_name(op, o.attr) : op->name;
    /* it speaks for the body, and of what it watches */
    if (n->op == OP_watch && l->r) o.name = l->r->name, site = cot__site_of(l->t, cot__arg(n, o.n - 1));
    if (site && (l->whole || !l->filed)) o.file = site->file, o.line = site->line;
    return op->plain ? lower_plain(l, node, &o) : cot__build_operation(&l->b, &o);
}

static void lower_steps(lowering *l) {
    const cot__region *r = l->r;
    const uint64_t    *ref = r->ref;
    uint32_t          *to = l->value + r->n + r->captures + r->fixed;
    for (uint32_t s = 0; s < r->steps && !l->b.failed; s++) {
        const cot__node *n = &l->t->nodes[r->node[s]];
        int              args = cot__nargs(n); /* now: lowering may record, and then nodes move */
        /* further results follow the first */
        if (n->op == OP_pick) *to++ = l->value[ref[0]] + (r->node[s] - n->a);
        else *to++ = lower_node(l, r->node[s], ref);
        ref += args;
    }
    if (l->b.failed) return;
    for (int k = 0; k < r->m; k++) cot__build_output(&l->b, l->value[ref[k]]);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool open_lists(lowering *l, const cot__caller *caller) {
    l->places = (size_t)(l->r->n + l->r->captures) + l->r->fixed + l->r->steps;
    for (uint32_t s = 0; s < l->r->steps; s++) {
        size_t n = (size_t)cot__nargs(&l->t->nodes[l->r->node[s]]);
        if (n > l->most) l->most = n;
    }
    l->value = cot__alloc(&l->t->al, l->places * sizeof *l->value);
    l->x = cot__alloc(&l->t->al, l->most * sizeof *l->x);
    return (l->value && l->x) ||
           cot__refuse(caller, COT_MEMORY, "out of memory: the program of a body of %u operations", l->r->steps);
}

/* Tells the caller in the name of the body. */
static cot__program *lower(lowering *l, const cot_allocator *al, const cot__caller *caller) {
    cot__program *p = NULL;
    cot__caller   body = *caller;
    body.name = l->r->name;
    if (!can_be_lowered(l)) return NULL;
    if (open_lists(l, &body)) {
        cot__builder_open(&l->b, al, &body);
        if (!l->b.failed) lower_sources(l);
        if (!l->b.failed) lower_steps(l);
        p = cot__builder_close(&l->b);
    }
    cot__free(&l->t->al, l->value, l->places * sizeof *l->value);
    cot__free(&l->t->al, l->x, l->most * sizeof *l->x);
    return p;
}

cot__program *cot__region_lower(cot_tape *t, const cot__region *r, const cot_allocator *al, cot__not_yet *not_yet) {
    lowering    l = {.t = t, .r = r, .not_yet = not_yet};
    cot__caller caller = cot__tape_caller(t, r->name);
    return lower(&l, al, &caller);
}

/* ---- out of a file --------------------------------------------------------------------------- */

typedef struct filed_operation {
    uint32_t      node;
    const char   *name;
    cot__attr    *attr;
    int           bodies;
    cot__program *body[COT__PLAIN_BODIES];
} filed_operation;

/* In the order of nodes; in the arena. */
typedef struct filed {
    uint32_t        count, room;
    filed_operation operation[];
} filed;

static void forget_filed(void *list) {
    filed *f = list;
    for (uint32_t k = 0; k < f->count; k++)
        for (int b = 0; b < f->operation[k].bodies; b++) cot__program_release(f->operation[k].body[b]);
    f->count = 0;
}

/* What the tape keeps is known by who lets it go. */
static filed *filed_of(const cot_tape *t) {
    for (uint32_t k = 0; k < t->kept.count; k++)
        if (t->kept.list[k].release == forget_filed) return t->kept.list[k].object;
    return NULL;
}

bool cot__filed_open(cot_tape *t, uint32_t operations, const char *op) {
    filed *f = cot__arena(t, sizeof *f + operations * sizeof *f->operation, op);
    if (!f) return false;
    f->count = 0, f->room = operations;
    return cot__tape_keep(t, f, forget_filed, op);
}

bool cot__filed_add(cot_tape *t, uint32_t node, const cot__program *p, uint32_t k) {
    filed           *f = filed_of(t);
    const char      *name = cot__operation_name(p, k);
    const cot__attr *a = cot__operation_attr(p, k);
    char            *copy = cot__arena(t, strlen(name) + 1, name);
    filed_operation  o = {.node = node, .name = copy, .bodies = cot__operation_bodies(p, k)};
    /* no operation of a tape has so many: it will be another when it is saved */
    if (!f || f->count == f->room || !a || o.bodies > COT__PLAIN_BODIES) return true;
    o.attr = copy ? cot__attr_make(t, name, (int)a->nints, a->ints, 0, NULL) : NULL;
    if (!o.attr) return false;
    memcpy(copy, name, strlen(name) + 1);
    o.attr->number = a->number;
    for (int b = 0; b < o.bodies; b++)
        o.body[b] = cot__program_share(p->body[p->operation[k].body + (uint32_t)b]);
    f->operation[f->count++] = o;
    return true;
}

static bool as_in_its_file(const lowering *l, uint32_t node, cot__plain *to) {
    uint32_t low = 0, high = l->loaded ? l->loaded->count : 0;
    while (low < high) { /* the first that is not before the node */
        uint32_t middle = low + (high - low) / 2;
        if (l->loaded->operation[middle].node < node) low = middle + 1;
        else high = middle;
    }
    if (!l->loaded || low == l->loaded->count || l->loaded->operation[low].node != node) return false;
    const filed_operation *o = &l->loaded->operation[low];
    *to = (cot__plain){.attr = o->attr, .name = o->name, .bodies = o->bodies};
    memcpy(to->program, o->body, sizeof o->body);
    return true;
}

/* ---- a whole tape ---------------------------------------------------------------------------- */

/* Nodes of bodies that are over belong to the operations that play them. But a body that was played
 * on the tape itself (cot_vmap) may have left fixed values of its own to be read: `value` is 0 of
 * these. */
static bool tape_can_be_lowered(lowering *l, cot__not_yet *not_yet) {
    *not_yet = (cot__not_yet){0};
    for (uint32_t i = 0; i < l->t->count; i++) {
        const cot__node *n = &l->t->nodes[i];
        const cot__op   *op = cot__op_of(n->op);
        l->value[i] = COT__NO_VALUE;
        if (cot__in_body(n)) continue;
        for (int k = 0; k < cot__nargs(n); k++)
            if (cot__arg(n, k) != COT__NONE && cot__in_body(&l->t->nodes[cot__arg(n, k)])) l->value[cot__arg(n, k)] = 0;
        if (op->needs_tape) *not_yet = (cot__not_yet){cot__op_name(l->t, i), op->needs_tape};
        if (not_yet->why) return false;
        if ((size_t)cot__nargs(n) > l->most) l->most = (size_t)cot__nargs(n);
    }
    return true;
}

static uint32_t lower_tape_node(lowering *l, uint32_t node, uint64_t *ref) {
    const cot__node *n = &l->t->nodes[node];
    cot__type        type = type_at(l->t, node);
    if (cot__in_body(n)) return l->value[node] == COT__NO_VALUE ? COT__NO_VALUE : lower_constant(l, node);
    if (n->op == OP_leaf) return cot__build_input(&l->b, &type);
    if (n->op == OP_constant) return lower_constant(l, node);
    if (n->op == OP_pick) return l->value[n->a] + (node - n->a);
    for (int k = 0; k < cot__nargs(n); k++) ref[k] = cot__arg(n, k) == COT__NONE ? COT__REF_NUMBER : cot__arg(n, k);
    return lower_node(l, node, ref);
}

cot__program *cot__tape_lower(cot_tape *t, const cot_allocator *al, int m, const uint32_t *outputs, uint32_t *value,
                              const cot__caller *caller, cot__not_yet *not_yet) {
    lowering      l = {.t = t, .value = value, .whole = true, .filed = true, .not_yet = not_yet,
                         .loaded = filed_of(t)};
    cot__program *p = NULL;
    uint64_t     *ref = NULL;
    uint32_t      count = t->count; /* what an operation holds may be recorded behind */
    if (!tape_can_be_lowered(&l, not_yet)) return NULL;
    l.x = cot__alloc(&t->al, l.most * sizeof *l.x);
    ref = cot__alloc(&t->al, l.most * sizeof *ref);
    if (l.x && ref) {
        cot__builder_open(&l.b, al, caller);
        for (uint32_t i = 0; i < count && !l.b.failed; i++) value[i] = lower_tape_node(&l, i, ref);
        for (int k = 0; k < m && !l.b.failed; k++) cot__build_output(&l.b, value[outputs[k]]);
        p = cot__builder_close(&l.b);
    } else cot__refuse(caller, COT_MEMORY, "out of memory: a list of %zu operands", l.most);
    cot__free(&t->al, l.x, l.most * sizeof *l.x);
    cot__free(&t->al, ref, l.most * sizeof *ref);
    return p;
}

bool cot__recorded_without_gradient(const cot_tape *t, uint32_t node) {
    const cot__node *n = &t->nodes[node];
    bool             active = false;
    if (!is_cut(&(lowering){.t = (cot_tape *)(uintptr_t)t}, node) || n->op == OP_detach) return false;
    if (cot__op_of(n->op)->kind == KIND_SOURCE || n->op == OP_pick) return false;
    for (int k = 0; k < cot__nargs(n); k++)
        active |= cot__arg(n, k) != COT__NONE && (t->nodes[cot__arg(n, k)].flags & COT__ACTIVE);
    return active;
}

/* ---- kept with the body ---------------------------------------------------------------------- */

static void forget_program(void *region) {
    cot__region *r = region;
    cot__program_release(r->program);
    r->program = NULL;
}

cot__known *cot__tape_known(cot_tape *t) {
    if (!t->known) t->known = cot__known_open(&t->al);
    return t->known;
}

cot__program *cot__region_make_known(cot_tape *t, const cot__region *r, const cot__words *w, uint32_t count,
                                     const int32_t *more, cot__not_yet *not_yet, uint64_t *known) {
    cot__program *p = cot__region_lower(t, r, &t->al, not_yet);
    if (p && cot__again_always) {
        cot__program *tight = cot__limit_tightest(p, t->backend, &t->al);
        cot__program_release(p);
        p = tight;
    }
    *known = p ? cot__known_add(cot__tape_known(t), w, p, count, more).number : 0;
    return p;
}

/* A tape that records the same body again and again has its program already. */
static void find_or_lower(cot_tape *t, cot__region *r, cot__not_yet *not_yet) {
    cot__words words = {.al = t->al};
    cot__region_describe(t, r, &words);
    cot__known_program found = cot__known_find(cot__tape_known(t), &words, 1);
    r->known = found.number;
    if (found.number) r->program = cot__program_share(found.program);
    else r->program = cot__region_make_known(t, r, &words, 0, NULL, not_yet, &r->known);
    cot__words_free(&words);
}

const cot__program *cot__region_program(cot_tape *t, const cot__region *region) {
    cot__region *r = (cot__region *)(uintptr_t)region;
    cot__not_yet not_yet = {0};
    if (r->program || r->needs_tape) return r->program;
    find_or_lower(t, r, &not_yet);
    r->needs_tape = !r->program && not_yet.why;
    if (r->program && !cot__tape_keep(t, r, forget_program, r->name)) forget_program(r);
    return r->program;
}

cot__region *cot__region_of_program(cot_tape *t, const char *name, const cot__program *p, uint64_t known) {
    cot__region *r = cot__arena(t, sizeof *r, name);
    if (!r || !cot__tape_keep(t, r, forget_program, name)) return NULL;
    *r = (cot__region){.name = name, .n = (int)p->inputs, .m = (int)p->outputs, .program = cot__program_share(p),
                       .known = known};
    return r;
}
