/* linearity.c: how nodes depend on others, in one pass over the tape, and over the bodies of loops
 * until what is carried from step to step stays as it is. Bodies in bodies are as deep as functions
 * were nested. */
#include "diff/engine/linearity.h"

#include "diff/loops/loop.h"
#include "ops/elementwise/elementwise.h"

#include <string.h>

enum { NOT, LINEARLY, OTHERWISE };

/* Where the operands of a node are found: among the nodes from `first` on, or by the refs of a
 * body's program. */
typedef struct places {
    const cot_tape *t;
    const uint8_t  *how;
    uint32_t        first;
    const uint64_t *ref; /* NULL: not in a body */
    bool           *failed;
} places;

static uint8_t operand(const places *p, const cot__node *n, int k) {
    if (p->ref) return p->ref[k] == COT__REF_NUMBER ? NOT : p->how[p->ref[k]];
    uint32_t a = cot__arg(n, k);
    return a == COT__NONE || a < p->first ? NOT : p->how[a - p->first];
}

static uint8_t larger(uint8_t a, uint8_t b) { return a > b ? a : b; }

static uint8_t elementwise(const places *p, const cot__node *n) {
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    uint8_t                      how = NOT;
    for (int k = 0; k < e->arity; k++) {
        uint8_t is = operand(p, n, k);
        if (!is) continue;
        how = larger(how, is);
        if (!e->partial[k] || (e->saves[k] & COT__SAVES_Z)) how = OTHERWISE;
        for (int j = 0; j < e->arity; j++)
            if (operand(p, n, j) && e->saves[k] >> j & 1) how = OTHERWISE;
    }
    return how;
}

/* By its record: it is linear in the operands that move, and no two of them are multiplied. */
static uint8_t structural(const places *p, const cot__node *n) {
    const cot__op *op = cot__op_of(n->op);
    uint8_t        how = NOT;
    for (int k = 0, count = cot__nargs(n); k < count && how != OTHERWISE; k++) {
        uint8_t is = operand(p, n, k);
        if (is == NOT) continue;
        int  other = cot__factor_of(op, k, count);
        bool squared = other >= 0 && operand(p, n, other) != NOT;
        how = squared || !cot__linear_in(op, k) ? OTHERWISE : larger(how, is);
    }
    return how;
}

static uint8_t depends(const places *p, uint32_t node);

/* ---- loops ----------------------------------------------------------------------------------- */

/* What the results of a body depend on, with `in` for its inputs and captures; they go to out. */
static void play(const places *p, const cot__region *body, const uint8_t *in, uint8_t *out) {
    const cot_tape *t = p->t;
    uint32_t        given = (uint32_t)(body->n + body->captures), at = given + body->fixed;
    size_t          bytes = (size_t)at + body->steps + 1;
    uint8_t        *how = cot__alloc(&t->al, bytes);
    places          inside = {t, how, 0, body->ref, p->failed};
    if (!how) {
        *p->failed = true;
        return;
    }
    memset(how, NOT, bytes);
    if (given) memcpy(how, in, given);
    for (uint32_t s = 0; s < body->steps; s++) {
        how[at + s] = depends(&inside, body->node[s]);
        inside.ref += cot__nargs(&t->nodes[body->node[s]]);
    }
    for (int k = 0; k < body->m; k++) out[k] = how[inside.ref[k]];
    cot__free(&t->al, how, bytes);
}

/* A loop on its way to where nothing changes: what its operands and carried values depend on. */
typedef struct walk { const cot__loop *l; const uint8_t *args; uint8_t *carry, *in, *out; } walk;

static void captures_of(const walk *w, const cot__region *body, int from) {
    for (int k = 0; k < body->captures; k++) w->in[body->n + k] = w->args[from + k];
}

/* One step of a body whose captures begin at operand `from`: the most that its results depend. */
static uint8_t step(const places *p, const walk *w, const cot__region *body, int from) {
    const cot__loop *l = w->l;
    int              at = l->consts;
    uint8_t          most = NOT;
    for (int k = 0; k < l->consts; k++) w->in[k] = w->args[cot__loop_first_const(l) + k];
    if (l->counts) w->in[at++] = NOT;
    for (int k = 0; k < l->carry; k++) w->in[at++] = w->carry[k];
    for (int k = 0; k < l->nxs; k++) w->in[at++] = w->args[cot__loop_first_xs(l) + k];
    captures_of(w, body, from);
    memset(w->out, NOT, (size_t)body->m);
    play(p, body, w->in, w->out);
    for (int k = 0; k < body->m; k++) most = larger(most, w->out[k]);
    return most;
}

/* Steps until the carried values stay as they are; what decides which body plays, and how often,
 * must not depend on anything. */
static uint8_t settle(const places *p, const walk *w) {
    const cot__loop *l = w->l;
    uint8_t          most = cot__loop_chosen(l) && w->args[0] ? OTHERWISE : NOT;
    for (bool moved = true; moved && !*p->failed;) {
        moved = false;
        for (int b = 0, from = cot__loop_first_capture(l); b < 2 && l->body[b]; from += l->body[b]->captures, b++) {
            most = larger(most, step(p, w, l->body[b], from));
            for (int k = 0; k < l->carry; k++) {
                moved |= w->out[k] > w->carry[k];
                w->carry[k] = larger(w->carry[k], w->out[k]);
            }
        }
    }
    for (int k = 0; k < l->carry; k++) most = larger(most, w->carry[k]);
    if (!l->test) return most;
    for (int k = 0; k < l->carry; k++) w->in[k] = w->carry[k];
    captures_of(w, l->test, cot__loop_operands(l) - l->test->captures);
    play(p, l->test, w->in, w->out);
    return w->out[0] ? OTHERWISE : most;
}

static uint8_t loop(const places *p, const cot__node *n) {
    const cot__loop     *l = n->extra.attr->pointer;
    const cot_allocator *al = &p->t->al;
    size_t  inputs = 0, results = 1, operands = (size_t)cot__loop_operands(l), carry = (size_t)l->carry;
    uint8_t how = NOT;
    for (int b = 0; b < 3; b++) {
        const cot__region *body = b < 2 ? l->body[b] : l->test;
        if (!body) continue;
        inputs += (size_t)(body->n + body->captures);
        results += (size_t)body->m;
    }
    size_t   bytes = operands + carry + inputs + results;
    uint8_t *args = cot__alloc(al, bytes);
    if (!args) return *p->failed = true, NOT;
    walk w = {l, args, args + operands, args + operands + carry, args + operands + carry + inputs};
    for (int k = 0; k < (int)operands; k++) how = larger(how, args[k] = operand(p, n, k));
    for (int k = 0; k < l->carry; k++) w.carry[k] = args[cot__loop_first_carry(l) + k];
    if (how != NOT) how = settle(p, &w);
    cot__free(al, args, bytes);
    return how;
}

/* ---- all ------------------------------------------------------------------------------------- */

static uint8_t depends(const places *p, uint32_t node) {
    const cot__node *n = &p->t->nodes[node];
    uint8_t how = n->op < OP_elementwise_count ? elementwise(p, n) : n->op == OP_loop ? loop(p, n) : structural(p, n);
    /* whole numbers are rounded */
    return how && !cot__dtype_is_float(cot__dtype_at(n)) ? OTHERWISE : how;
}

bool cot__find_curved(const cot_tape *t, int n, const uint32_t *from, uint32_t y, uint32_t *curved) {
    uint32_t first = from[0];
    bool     failed = false;
    *curved = COT__NONE;
    for (int k = 0; k < n; k++) first = from[k] < first ? from[k] : first;
    if (first > y) return true;
    size_t   bytes = (size_t)y - first + 1;
    uint8_t *how = cot__alloc(&t->al, bytes);
    places   p = {t, how, first, NULL, &failed};
    uint32_t bad = COT__NONE;
    if (!how) return false;
    memset(how, NOT, bytes);
    for (int k = 0; k < n; k++)
        if (from[k] <= y) how[from[k] - first] = LINEARLY;
    for (uint32_t i = first; i <= y && !failed; i++) {
        uint8_t is = depends(&p, i);
        how[i - first] = larger(how[i - first], is);
        if (is == OTHERWISE && bad == COT__NONE) bad = i;
    }
    if (how[y - first] == OTHERWISE) *curved = bad;
    cot__free(&t->al, how, bytes);
    return !failed;
}
