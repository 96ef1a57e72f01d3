/* sparsity_loop.c: the pattern of a loop, condition or checkpoint. The body is played as the loop
 * played it, and the recorded nodes are walked.
 *
 * A loop of known length is played step by step on its own values. The sets of the carried values
 * go from step to step. The walk ends early when the sets stay the same, if no step used positions
 * that differ from step to step and no slice depends on the inputs.
 *
 * A cot_while may run longer at another point, and so may loops that were derived from it. Their
 * steps are joined until the sets no longer grow, and every position that a step computes counts as
 * varying.
 *
 * Both bodies of a condition count if its choice depends on the inputs. The body that was not taken
 * is played as bodies are recorded, on examples, so that no equation is solved that may have no
 * solution.
 *
 * A function with rules of the user's has the pattern of its recorded tangent: its body says
 * nothing about the user's derivative. */
#include "diff/loops/loop.h"
#include "diff/sparse/sparsity.h"
#include "ops/structural.h"

#include <string.h>

/* Nodes at the end of the tape that are walked and then forgotten. */
typedef struct frame {
    cot_mark    mark;
    uint32_t    first;
    int64_t     arrays, probes;
    cot_var     numbers, noise;
    cot__scope  scope;
    bool        examples;
} frame;

static frame frame_open(cot__patterns *p, const char *name, bool examples) {
    cot_tape *t    = p->t;
    frame     f    = {.mark     = cot__mark(t),
                      .first    = t->count,
                      .arrays   = p->array_count,
                      .probes   = p->probes,
                      .numbers  = p->numbers,
                      .noise    = p->noise,
                      .scope    = cot__scope_open(t, COT__ACTIVE),
                      .examples = p->examples};
    t->mode.no_grad = 0;
    p->depth++;
    p->examples |= examples;
    t->mode.strict_positions = true;
    if (examples && !t->mode.body) t->mode.body = name, t->mode.body_from = t->count;
    return f;
}

static void frame_close(cot__patterns *p, const frame *f) {
    cot_tape *t   = p->t;
    int64_t   end = p->of_capacity < p->varies_capacity ? p->of_capacity : p->varies_capacity,
            from  = (int64_t)f->first - p->lo;
    int64_t   top = (int64_t)t->count - p->lo < end ? (int64_t)t->count - p->lo : end;
    cot__patterns_drop(p, f->arrays);
    if (top > from) {
        memset(p->of + from, 0, (size_t)(top - from) * sizeof *p->of);
        memset(p->varies + from, 0, (size_t)(top - from));
    }
    p->numbers = f->numbers, p->noise = f->noise, p->probes = f->probes;
    p->depth--;
    p->examples = f->examples;
    /* Playing again repeats notes that the tape has already. */
    cot__scope_close_unnoted(t, &f->scope);
    cot__rewind(t, f->mark);
}

/* Walks the nodes of the frame, up to `end`, that the results `out` depend on. */
static bool walk_frame(cot__patterns *p, const frame *f, uint32_t end, int m, const cot_var *out) {
    cot_tape *t     = p->t;
    size_t    bytes = (size_t)m * sizeof(uint32_t);
    uint32_t *index = cot__alloc(&t->al, bytes);
    for (int k = 0; index && k < m; k++) index[k] = cot__index(out[k]);
    uint8_t *needed = index && end > f->first ? cot__needed(t, f->first, end - 1, m, index, COT__EDGES_VALUES) : NULL;
    bool     ok     = index && (needed || end == f->first);
    if (!ok) cot__patterns_short(p);
    ok = ok && (!needed || cot__patterns_walk(p, f->first, end, needed));
    cot__list_free(t, needed, end - f->first);
    cot__free(&t->al, index, bytes);
    return ok;
}

/* ---- sets of the carried values -------------------------------------------------------------- */

/* The walk over a loop. `now` and `next` hold the sets of all carried values one after the other,
 * before and after a step. */
typedef struct walker {
    cot__patterns   *p;
    const cot__loop *l;
    uint32_t         node;
    const uint32_t  *args;
    int64_t          length, elements; /* elements: of all carried values together */
    cot__stepper     s;
    cot__set        *now, *next;
    uint8_t         *varies, *varies_next; /* of each carried value */
    int             *at;     /* result k of the loop is result at[k] of its node */
    uint32_t        *inputs; /* nodes of carried values and slices */
    size_t           list_bytes;
} walker;

static uint32_t carried(const walker *w, int k) { return w->args[cot__loop_first_carry(w->l) + k]; }
static uint32_t sliced(const walker *w, int k) { return w->args[cot__loop_first_xs(w->l) + k]; }

static bool walker_open(walker *w) {
    cot__patterns   *p  = w->p;
    cot_tape        *t  = p->t;
    const cot__loop *l  = w->l;
    bool             ok = cot__stepper_open(&w->s, t, l, w->args);
    for (int k = 0; k < l->carry; k++) w->elements = cot__size_add(w->elements, cot__size_at(t, carried(w, k)));
    w->list_bytes = (size_t)cot__loop_results(l) * sizeof(int) + 2 * (size_t)w->elements * sizeof(cot__set) +
                    ((size_t)l->carry + (size_t)l->nxs) * sizeof(uint32_t) + 2 * (size_t)l->carry;
    w->at = cot__alloc(&t->al, w->list_bytes);
    if (!ok || !w->at) return cot__patterns_short(p);
    cot__loop_order(t, l, w->at);
    w->now         = (cot__set *)(void *)(w->at + cot__loop_results(l));
    w->next        = w->now + w->elements;
    w->inputs      = w->next + w->elements;
    w->varies      = (uint8_t *)(w->inputs + l->carry + l->nxs);
    w->varies_next = w->varies + l->carry;
    cot__state_first(&w->s);
    for (int64_t k = 0, at = 0; k < l->carry; k++) {
        for (int64_t e = 0, n = cot__size_at(t, carried(w, (int)k)); e < n; e++)
            w->now[at++] = cot__set_at(p, carried(w, (int)k), e);
        w->varies[k] = cot__varies(p, carried(w, (int)k));
    }
    /* a first value that was dropped may be gone, and no step need read it */
    return t->status == COT_OK;
}

static void walker_close(walker *w) {
    cot_tape *t = w->p->t;
    cot__stepper_close(&w->s);
    cot__free(&t->al, w->at, w->list_bytes);
}

/* The sets of result k of the loop; NULL: it has none, as it is no float. */
static cot__set *result_sets(const walker *w, int k) {
    uint32_t z = w->node + (uint32_t)w->at[k];
    return cot__dtype_is_float(cot__dtype_at(&w->p->t->nodes[z])) ? cot__sets_at(w->p, z) : NULL;
}

static bool set_input(cot__patterns *p, uint32_t input, int64_t n, const cot__set *sets) {
    bool any = false;
    for (int64_t e = 0; e < n && !any; e++) any = sets[e] != 0;
    cot__set *to = any ? cot__sets_at(p, input) : NULL;
    if (to) memcpy(to, sets, (size_t)n * sizeof *sets);
    return to || !any;
}

/* Sets of slice `at` of operand k that the steps go through. at < 0: the union of all slices. */
static bool set_slice(walker *w, int k, int64_t at) {
    cot__patterns *p = w->p;
    uint32_t       x = sliced(w, k), input = w->inputs[w->l->carry + k];
    if (!cot__depends(p, x)) return true;
    int64_t   n = cot__size_at(p->t, input), from = at < 0 ? 0 : at, to = at < 0 ? w->length : at + 1;
    cot__set *sets = cot__sets_at(p, input);
    for (int64_t slice = from; sets && slice < to; slice++)
        for (int64_t e = 0; e < n; e++) cot__set_add(p, &sets[e], cot__set_at(p, x, slice * n + e));
    return sets != NULL;
}

/* Gives the inputs of a step that was just played their sets and `varies` bits. */
static bool set_inputs(walker *w, const frame *f, int64_t at, uint8_t bits) {
    cot__patterns   *p = w->p;
    const cot__loop *l = w->l;
    /* the number of the step is its first node */
    if (l->counts) p->varies[f->first - p->lo] = bits;
    for (int64_t k = 0, e = 0; k < l->carry; k++) {
        uint32_t i = w->inputs[k];
        if (!set_input(p, i, cot__size_at(p->t, i), w->now + e)) return false;
        p->varies[i - p->lo] = w->varies[k] | bits;
        e += cot__size_at(p->t, i);
    }
    for (int k = 0; k < l->nxs; k++) {
        if (!set_slice(w, k, at)) return false;
        p->varies[w->inputs[l->carry + k] - p->lo] = cot__varies(p, sliced(w, k)) | bits;
    }
    return true;
}

/* Takes the sets after a step. Those of carried values go to `next`, joined with the sets before
 * the step if asked. Those of values that are given out go to the sets of the loop's results, for
 * steps from … to - 1. */
static bool take_outputs(walker *w, int64_t from, int64_t to, uint8_t bits, bool join) {
    cot__patterns   *p = w->p;
    const cot__loop *l = w->l;
    for (int64_t k = 0, e = 0; k < l->carry; k++) {
        uint32_t y = cot__index(w->s.out[k]);
        for (int64_t j = 0, n = cot__size_at(p->t, y); j < n; j++, e++)
            w->next[e] = join ? cot__set_union(&p->sets, w->now[e], cot__set_at(p, y, j)) : cot__set_at(p, y, j);
        w->varies_next[k] = cot__varies(p, y) & (uint8_t)~bits;
    }
    for (int k = l->carry; k < l->carry + l->nys; k++) {
        uint32_t  y = cot__index(w->s.out[k]);
        int64_t   n = cot__size_at(p->t, y);
        cot__set *z = result_sets(w, k);
        for (int64_t at = from; z && at < to && cot__depends(p, y); at++)
            for (int64_t j = 0; j < n; j++) cot__set_add(p, &z[(l->once ? 0 : at) * n + j], cot__set_at(p, y, j));
    }
    return !p->sets.failed || cot__patterns_short(p);
}

static bool settled(walker *w) {
    for (int64_t e = 0; e < w->elements; e++)
        if (!cot__set_same(&w->p->sets, w->now[e], w->next[e])) return false;
    return memcmp(w->varies, w->varies_next, (size_t)w->l->carry) == 0;
}

static void advance(walker *w) {
    cot__set *sets   = w->now;
    uint8_t  *varies = w->varies;
    w->now = w->next, w->next = sets;
    w->varies = w->varies_next, w->varies_next = varies;
}

/* ---- loops of known length ------------------------------------------------------------------- */

static bool play_step(walker *w, const frame *f, int64_t k, int64_t at, uint8_t bits, uint32_t *end) {
    bool ok = cot__loop_step(&w->s, k, w->length, OP_parameter, w->inputs) && cot__patterns_grow(w->p);
    *end    = w->p->t->count;
    return ok && set_inputs(w, f, at, bits);
}

static bool step_by_step(walker *w, bool examples) {
    cot__patterns   *p  = w->p;
    const cot__loop *l  = w->l;
    bool             ok = true, done = false, moving = false;
    for (int k = 0; k < l->nxs; k++) moving |= cot__depends(p, sliced(w, k));
    uint8_t bit = cot__varies_by_step(p->depth);
    p->consulted &= (uint8_t)~bit;
    for (int64_t k = 0; k < w->length && ok && !done; k++) {
        int64_t  at = l->reverse ? w->length - 1 - k : k, from = at, to = at + 1;
        uint32_t end;
        frame    f = frame_open(p, l->name, examples);
        ok         = play_step(w, &f, k, at, bit, &end) && walk_frame(p, &f, end, l->carry + l->nys, w->s.out) &&
             take_outputs(w, from, to, bit, false);
        done = ok && k + 1 < w->length && !moving && !(p->consulted & bit) && settled(w);
        if (done) /* all further steps do what this one did */
            ok = take_outputs(w, l->reverse ? 0 : at + 1, l->reverse ? at : w->length, bit, false);
        else if (ok && k + 1 < w->length)
            ok = cot__state_next(&w->s);
        frame_close(p, &f);
        if (ok) advance(w);
    }
    return ok;
}

/* ---- loops whose length is found by running -------------------------------------------------- */

enum { MOST_ROUNDS = 64 };

/* Gives every carried element all columns that anything in the loop can depend on. Then no set can
 * grow any more. */
static bool join_all(walker *w) {
    cot__patterns *p   = w->p;
    cot__set       all = 0;
    for (int64_t e = 0; e < w->elements; e++) cot__set_add(p, &all, w->now[e]);
    for (int k = 0, n = cot__loop_operands(w->l); k < n; k++)
        for (int64_t e = 0, size = cot__depends(p, w->args[k]) ? cot__size_at(p->t, w->args[k]) : 0; e < size; e++)
            cot__set_add(p, &all, cot__set_at(p, w->args[k], e));
    for (int64_t e = 0; e < w->elements; e++) w->now[e] = all;
    return !p->sets.failed || cot__patterns_short(p);
}

static bool until_settled(walker *w) {
    cot__patterns *p = w->p;
    uint32_t       end;
    frame          f    = frame_open(p, w->l->name, true);
    bool           done = false, ok = cot__loop_step(&w->s, 0, w->length, OP_parameter, w->inputs);
    end = p->t->count;
    for (int round = 0; ok && !done; round++) {
        ok = cot__patterns_grow(p) && set_inputs(w, &f, -1, COT__VARIES) &&
             walk_frame(p, &f, end, w->l->carry + w->l->nys, w->s.out) &&
             take_outputs(w, 0, w->l->once ? 1 : w->length, 0, true);
        if (!ok) break;
        memset(w->varies, COT__VARIES, (size_t)w->l->carry);
        memset(w->varies_next, COT__VARIES, (size_t)w->l->carry);
        done = settled(w);
        advance(w);
        if (!done && round + 2 >= MOST_ROUNDS) ok = join_all(w);
        if (done) break;
        cot__patterns_drop(p, f.arrays);
        memset(p->of + (f.first - p->lo), 0, (size_t)(end - f.first) * sizeof *p->of);
    }
    frame_close(p, &f);
    return ok;
}

/* ---- functions with rules -------------------------------------------------------------------- */

/* Adds the sets of dz, the tangent of result z, to those of z. */
static void add_sets(cot__patterns *p, uint32_t z, cot_var dz) {
    cot__set *to = cot__failed(dz) ? NULL : cot__sets_at(p, z);
    for (int64_t e = 0, size = to ? cot__size_at(p->t, z) : 0; e < size; e++)
        cot__set_add(p, &to[e], cot__set_at(p, cot__index(dz), e));
}

/* Walks what the rule recorded; dz are the tangents of the m results that move. */
static bool walk_rule(cot__patterns *p, const frame *f, uint32_t end, uint32_t node, int m, const cot_var *dz) {
    uint32_t hidden = p->hidden;
    cot_var *moving = cot__arena(p->t, (size_t)m * sizeof *moving, p->op);
    int      count = 0;
    for (int k = 0; moving && k < m; k++)
        if (!cot__failed(dz[k])) moving[count++] = dz[k];
    if (!moving || count == 0) return moving != NULL;
    p->hidden = f->first;
    bool ok = walk_frame(p, f, end, count, moving);
    for (int k = 0; ok && k < m; k++) add_sets(p, node + (uint32_t)k, dz[k]);
    p->hidden = hidden;
    return ok;
}

static bool by_rule(cot__patterns *p, uint32_t node) {
    cot_tape *t        = p->t;
    int       n        = cot__nargs(&t->nodes[node]), m = cot__results_at(t, node);
    size_t    bytes    = (size_t)(n + m) * sizeof(cot_var);
    cot_var  *tangents = cot__alloc(&t->al, bytes), *dz = cot__behind(tangents, n);
    if (!tangents) return cot__patterns_short(p);
    frame     f = frame_open(p, cot__op_name(t, node), false);
    cot__rule r = {.t = t, .node = node, .op = cot__op_of(t->nodes[node].op), .tangents = tangents, .more = dz + 1};
    r.tangent   = INVALID(t);
    for (int k = 0; k < m; k++) dz[k] = INVALID(t);
    for (int k = 0; k < n; k++)
        tangents[k] = cot__moves(p, node, k) && t->status == COT_OK ? cot__parameter(t, cot__arg(&t->nodes[node], k))
                                                                    : INVALID(t);
    if (t->status == COT_OK) cot__loop_given_jvp(&r);
    uint32_t end = t->count;
    bool     ok  = t->status == COT_OK && cot__patterns_grow(p);
    for (int k = 0; k < n && ok; k++) {
        if (cot__failed(tangents[k])) continue;
        uint32_t  i = cot__index(tangents[k]), x = cot__arg(&t->nodes[node], k);
        cot__set *to = cot__sets_at(p, i);
        ok           = to != NULL;
        for (int64_t e = 0, size = cot__size_at(t, i); e < size && ok; e++) to[e] = cot__set_at(p, x, e);
        p->varies[i - p->lo] = COT__VARIES;
    }
    dz[0] = r.tangent;
    ok    = ok && walk_rule(p, &f, end, node, m, dz);
    frame_close(p, &f);
    cot__free(&t->al, tangents, bytes);
    return ok;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The pattern of a loop on the given operands. examples: the steps are played on values that they
 * may never meet. */
static bool pattern_with(cot__patterns *p, uint32_t node, const uint32_t *args, bool examples) {
    cot_tape            *t    = p->t;
    const cot__loop     *l    = t->nodes[node].extra.attr->pointer;
    const cot__loop_run *run  = t->nodes[node].extra.attr->pointer2;
    walker               w    = {.p = p, .l = l, .node = node, .args = args, .length = run->length};
    bool                 open = l->test || l->open;
    /* there is no slice on which a step could be played */
    if (open && w.length == 0 && l->nxs > 0) return cot__dense_pattern(p, node);
    bool      ok = walker_open(&w) && (open ? until_settled(&w) : step_by_step(&w, examples));
    for (int64_t k = 0, e = 0; ok && k < l->carry; k++) {
        cot__set *z = result_sets(&w, (int)k);
        for (int64_t j = 0, n = cot__size_at(t, carried(&w, (int)k)); j < n; j++, e++)
            if (z) cot__set_add(p, &z[j], w.now[e]);
    }
    walker_close(&w);
    return ok;
}

/* Handles an error in a step that the loop would not take at this point: in the other body of a
 * condition, or in a step of a cot_while. The error is cleared, and the node depends on all that
 * its operands depend on. */
static bool unless_it_failed(cot__patterns *p, uint32_t node, bool ok) {
    if (ok || p->t->status == COT_MEMORY || p->t->status == COT_LIMIT || p->t->status == COT_OK) return ok;
    cot_tape_clear_error(p->t);
    return cot__dense_pattern(p, node);
}

/* Adds the pattern of the body that the condition does not take at this point. */
static bool other_body(cot__patterns *p, uint32_t node, const uint32_t *args) {
    cot_tape        *t      = p->t;
    const cot__loop *l      = t->nodes[node].extra.attr->pointer;
    int              n      = cot__loop_operands(l);
    uint32_t        *others = cot__alloc(&t->al, (size_t)n * sizeof *others);
    if (!others) return cot__patterns_short(p);
    frame     f      = frame_open(p, l->name, true);
    double    is     = 0;
    cot__view choice = cot__look(t, args[0]);
    memcpy(others, args, (size_t)n * sizeof *others);
    cot_var turned =
        cot__read_view(t, l->name, &choice, COT_F64, &is, 1) == COT_OK ? cot_constant(t, is == 0) : INVALID(t);
    bool    ok     = t->status == COT_OK && cot__patterns_grow(p);
    if (ok) others[0] = cot__index(turned), ok = pattern_with(p, node, others, true);
    frame_close(p, &f);
    cot__free(&t->al, others, (size_t)n * sizeof *others);
    return unless_it_failed(p, node, ok);
}

/* The sets of all results are made before any frame is opened: closing a frame frees the sets made
 * in it. */
static bool open_sets(cot__patterns *p, uint32_t node) {
    for (uint32_t z = node, end = node + (uint32_t)cot__results_at(p->t, node); z < end; z++)
        if (cot__dtype_is_float(cot__dtype_at(&p->t->nodes[z])) && !cot__sets_at(p, z)) return false;
    return true;
}

bool cot__loop_pattern(cot__patterns *p, uint32_t node) {
    const cot__attr *a = p->t->nodes[node].extra.attr;
    const cot__loop *l = a->pointer;
    if (!open_sets(p, node)) return false;
    /* an operand that was overwritten since would give other steps */
    for (int k = 0, n = cot__nargs(&p->t->nodes[node]); k < n; k++)
        if (!cot__saved_intact(p->t, node, a->args[k])) return false;
    if (l->rules) return by_rule(p, node);
    if (!cot__loop_chosen(l)) {
        bool ok = pattern_with(p, node, a->args, false);
        return l->test ? unless_it_failed(p, node, ok) : ok;
    }
    uint8_t varies = cot__varies(p, a->args[0]);
    p->consulted |= varies;
    return pattern_with(p, node, a->args, false) && (!(varies & COT__VARIES) || other_body(p, node, a->args));
}

/* The way back as one operation has the pattern of the way back as loops. */
bool cot__loop_adjoint_pattern(cot__patterns *p, uint32_t node) {
    cot_tape *t = p->t;
    int       m = cot__results_at(t, node);
    if (!open_sets(p, node)) return false;
    frame    f    = frame_open(p, cot__op_name(t, node), true);
    cot_var *bars = cot__loop_adjoint_as_loops(t, node);
    uint32_t end  = t->count;
    bool     ok   = bars && t->status == COT_OK && cot__patterns_grow(p) && walk_frame(p, &f, end, m, bars);
    for (int k = 0; k < m && ok; k++) add_sets(p, node + (uint32_t)k, bars[k]);
    frame_close(p, &f);
    return unless_it_failed(p, node, ok);
}

static bool inline_node(cot__patterns *p, uint32_t node, const frame *f, cot_var *xs, cot_var *zs) {
    cot_tape  *t = p->t;
    cot__rule  r = {.t = t, .node = node, .op = cot__op_of(t->nodes[node].op)};
    int        n = cot__nargs(&t->nodes[node]), m = cot__results_at(t, node);
    for (int k = 0; k < n; k++) xs[k] = VAR(t, cot__arg(&t->nodes[node], k));
    if (!r.op->inlined(&r, xs, zs) || !cot__patterns_grow(p) || !walk_frame(p, f, t->count, m, zs)) return false;
    for (int k = 0; k < m; k++) add_sets(p, node + (uint32_t)k, zs[k]);
    return true;
}

bool cot__inlined_pattern(cot__patterns *p, uint32_t node) {
    cot_tape *t     = p->t;
    int       n     = cot__nargs(&t->nodes[node]), m = cot__results_at(t, node);
    size_t    bytes = ((size_t)n + (size_t)m) * sizeof(cot_var);
    if (!open_sets(p, node)) return false;
    /* an operand that was overwritten since would give other positions */
    for (int k = 0; k < n; k++)
        if (!cot__saved_intact(t, node, cot__arg(&t->nodes[node], k))) return false;
    cot_var *xs = cot__alloc(&t->al, bytes);
    if (!xs) return cot__patterns_short(p);
    frame f  = frame_open(p, cot__op_name(t, node), false);
    bool  ok = inline_node(p, node, &f, xs, xs + n);
    frame_close(p, &f);
    cot__free(&t->al, xs, bytes);
    return unless_it_failed(p, node, ok);
}
