/* loop_linearity.c: finds whether a loop, condition or checkpoint is linear in its operands. The
 * walk goes through its bodies as through a tape, again and again until the answer for the carried
 * values stays the same. Recursion is as deep as the user nested the functions. */
#include "diff/engine/linearity.h"
#include "diff/loops/loop.h"

#include <string.h>

static uint8_t larger(uint8_t a, uint8_t b) { return a > b ? a : b; }

/* Finds how the results of a body depend on values outside, given how its inputs and captures do
 * (`in`). The answers go to `out`. */
static void play(const cot__places *p, const cot__region *body, const uint8_t *in, uint8_t *out) {
    const cot_tape *t = p->t;
    uint32_t        given = (uint32_t)(body->n + body->captures), at = given + body->fixed;
    size_t          bytes = (size_t)at + body->steps + 1;
    uint8_t        *how = cot__alloc(&t->al, bytes);
    cot__places     inside = {t, how, 0, body->ref, p->failed};
    if (!how) {
        *p->failed = true;
        return;
    }
    memset(how, COT__DEPENDS_NOT, bytes);
    if (given) memcpy(how, in, given);
    for (uint32_t s = 0; s < body->steps; s++) {
        how[at + s] = cot__node_depends(&inside, body->node[s]);
        inside.ref += cot__nargs(&t->nodes[body->node[s]]);
    }
    for (int k = 0; k < body->m; k++) out[k] = how[inside.ref[k]];
    cot__free(&t->al, how, bytes);
}

/* The state of a walk over a loop: how its operands (args) and carried values (carry) depend, with
 * room for the inputs and results of a body. */
typedef struct walk { const cot__loop *l; const uint8_t *args; uint8_t *carry, *in, *out; } walk;

static void captures_of(const walk *w, const cot__region *body, int from) {
    for (int k = 0; k < body->captures; k++) w->in[body->n + k] = w->args[from + k];
}

/* One step of a body whose captures begin at operand `from`. Returns the strongest dependence of
 * its results. */
static uint8_t step(const cot__places *p, const walk *w, const cot__region *body, int from) {
    const cot__loop *l = w->l;
    int              at = l->consts;
    uint8_t          most = COT__DEPENDS_NOT;
    for (int k = 0; k < l->consts; k++) w->in[k] = w->args[cot__loop_first_const(l) + k];
    if (l->counts) w->in[at++] = COT__DEPENDS_NOT;
    for (int k = 0; k < l->carry; k++) w->in[at++] = w->carry[k];
    for (int k = 0; k < l->nxs; k++) w->in[at++] = w->args[cot__loop_first_xs(l) + k];
    captures_of(w, body, from);
    memset(w->out, COT__DEPENDS_NOT, (size_t)body->m);
    play(p, body, w->in, w->out);
    for (int k = 0; k < body->m; k++) most = larger(most, w->out[k]);
    return most;
}

/* A batch depends on what its elements depend on. */
static uint8_t of_batch(const cot__places *p, const walk *w) {
    uint8_t            most = COT__DEPENDS_NOT;
    const cot__region *one = w->l->vmapped->one;
    play(p, one, w->args, w->out);
    for (int k = 0; k < one->m; k++) most = larger(most, w->out[k]);
    return most;
}

/* Walks until the dependence of the carried values stays the same. The choice of a condition and
 * the test of a cot_while must depend on nothing, or the loop is not linear. */
static uint8_t settle(const cot__places *p, const walk *w) {
    const cot__loop *l = w->l;
    uint8_t          most = cot__loop_chosen(l) && w->args[0] ? COT__DEPENDS_OTHERWISE : COT__DEPENDS_NOT;
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
    return w->out[0] ? COT__DEPENDS_OTHERWISE : most;
}

uint8_t cot__loop_depends(const cot__places *p, uint32_t node) {
    const cot__node     *n = &p->t->nodes[node];
    const cot__loop     *l = n->extra.attr->pointer;
    const cot_allocator *al = &p->t->al;
    size_t  inputs = 0, results = 1, operands = (size_t)cot__loop_operands(l), carry = (size_t)l->carry;
    uint8_t how = COT__DEPENDS_NOT;
    for (int b = 0; b < 3; b++) {
        const cot__region *body = b < 2 ? l->body[b] : l->test;
        if (!body) continue;
        inputs += (size_t)(body->n + body->captures);
        results += (size_t)body->m;
    }
    size_t   bytes = operands + carry + inputs + results;
    uint8_t *args = cot__alloc(al, bytes);
    if (!args) return *p->failed = true, COT__DEPENDS_NOT;
    walk w = {l, args, args + operands, args + operands + carry, args + operands + carry + inputs};
    for (int k = 0; k < (int)operands; k++) how = larger(how, args[k] = cot__operand_depends(p, n, k));
    for (int k = 0; k < l->carry; k++) w.carry[k] = args[cot__loop_first_carry(l) + k];
    if (how != COT__DEPENDS_NOT) how = l->vmapped ? of_batch(p, &w) : settle(p, &w);
    cot__free(al, args, bytes);
    return how;
}
