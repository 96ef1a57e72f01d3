/* loop_reached.c: which operands of a loop get an adjoint: those on which, in some step, a result
 * depends that has one. A carried value that nobody reads behind the loop, and on which nothing
 * that is read depends, has no adjoint in any step, just as it would have none if the steps stood
 * on the tape one by one. Zeros instead would meet infinities in its matrix products and be NaN. */
#include "diff/loops/loop.h"
#include "ops/structural.h"

#include <string.h>

/* The operand that is input or capture k of body `which`. -1: it is the count. */
static int operand_of(const cot__loop *l, int which, int k) {
    const cot__region *body = l->body[which];
    if (k >= body->n) return cot__loop_first_capture(l) + (which ? l->body[0]->captures : 0) + k - body->n;
    if (l->counts && k >= l->consts) return k == l->consts ? -1 : cot__loop_first_const(l) + k - 1;
    return cot__loop_first_const(l) + k;
}

static size_t places_of(const cot__region *r) { return (size_t)(r->n + r->captures) + r->fixed + r->steps; }

/* Has result j of a step an adjoint, in some step? */
static bool has_adjoint(const cot__loop *l, const cot_var *gs, const bool *reached, int j) {
    return j < l->carry ? reached[cot__loop_first_carry(l) + j] : !cot__failed(gs[j]);
}

/* One walk down a body, whose values are `is`. True: it reached an operand for the first time. */
static bool walk(const cot_tape *t, const cot__loop *l, int which, const cot_var *gs, bool *reached, bool *is) {
    const cot__region *r = l->body[which];
    const uint64_t    *ref = r->ref;
    bool               more = false;
    memset(is, 0, places_of(r));
    for (uint32_t k = 0; k < r->steps; k++) ref += cot__nargs(&t->nodes[r->node[k]]);
    for (int j = 0; j < r->m; j++) is[ref[j]] |= has_adjoint(l, gs, reached, j);
    for (uint32_t k = r->steps; k-- > 0;) {
        const cot__node *n = &t->nodes[r->node[k]];
        uint32_t         inactive = cot__op_of(n->op)->inactive;
        ref -= cot__nargs(n);
        if (!is[places_of(r) - r->steps + k] || !(n->flags & COT__ACTIVE)) continue;
        for (int i = 0; i < cot__nargs(n); i++)
            if (ref[i] != COT__REF_NUMBER && !(i < 32 && inactive >> i & 1)) is[ref[i]] = true;
    }
    for (int k = 0; k < r->n + r->captures; k++) {
        int operand = operand_of(l, which, k);
        if (!is[k] || operand < 0 || reached[operand]) continue;
        reached[operand] = more = true;
    }
    return more;
}

bool *cot__loop_reached(cot_tape *t, const cot__loop *l, const cot_var *gs) {
    size_t operands = (size_t)cot__loop_operands(l), places = places_of(l->body[0]);
    if (l->body[1] && places_of(l->body[1]) > places) places = places_of(l->body[1]);
    bool *reached = cot__arena(t, operands + 1, l->name), *is = reached ? cot__alloc(&t->al, places + 1) : NULL;
    if (reached && !is) cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %zu values", l->name, places);
    if (!is) return NULL;
    memset(reached, 0, operands + 1);
    /* without a step the operand is the result */
    for (int j = 0; j < l->carry; j++) reached[cot__loop_first_carry(l) + j] = !cot__failed(gs[j]);
    for (bool more = true; more;) {
        more = false;
        for (int b = 0; b < 2 && l->body[b]; b++) more |= walk(t, l, b, gs, reached, is);
    }
    cot__free(&t->al, is, places + 1);
    return reached;
}
