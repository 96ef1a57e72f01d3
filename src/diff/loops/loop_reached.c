/* loop_reached.c: which operands of a loop get an adjoint: those on which, in some step, a result
 * depends that has one. A carried value that nobody reads behind the loop, and on which nothing
 * that is read depends, has no adjoint in any step, just as it would have none if the steps stood
 * on the tape one by one. Zeros instead would meet infinities in its matrix products and be NaN.
 *
 * A result of a node with bodies counts as depending on all operands of the node, and a value as
 * having an adjoint in all steps if it has one in some; there zeros stand for what has none. */
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

static size_t outer_of(const cot__region *r) { return (size_t)(r->n + r->captures) + r->fixed; }
static size_t places_of(const cot__region *r) { return outer_of(r) + r->steps; }

/* Values of one body: which of them have an adjoint, and those whose operands are still to be
 * marked, each once. from: where the operands of each step begin, and after the last one the
 * results. */
typedef struct marked { size_t *from, *todo, count; bool *is; } marked;

typedef struct reaching {
    const cot_tape  *t;
    const cot__loop *l;
    bool            *reached;
    marked           body[2];
} reaching;

static void mark(reaching *s, int which, uint64_t place) {
    marked *b = &s->body[which];
    if (place == COT__REF_NUMBER || b->is[place]) return;
    b->is[place] = true;
    b->todo[b->count++] = place;
}

/* Result j of a step has an adjoint. */
static void mark_result(reaching *s, int j) {
    for (int b = 0; b < 2 && s->l->body[b]; b++) {
        const cot__region *r = s->l->body[b];
        if (j < r->m) mark(s, b, r->ref[s->body[b].from[r->steps] + (size_t)j]);
    }
}

static void reach(reaching *s, int operand) {
    int j = operand - cot__loop_first_carry(s->l);
    if (operand < 0 || s->reached[operand]) return;
    s->reached[operand] = true;
    if (j >= 0 && j < s->l->carry) mark_result(s, j); /* of the step before */
}

static void follow(reaching *s, int which, size_t place) {
    const cot__region *r = s->l->body[which];
    if (place < (size_t)(r->n + r->captures)) reach(s, operand_of(s->l, which, (int)place));
    if (place < outer_of(r)) return;
    size_t           k = place - outer_of(r), from = s->body[which].from[k];
    const cot__node *n = &s->t->nodes[r->node[k]];
    uint32_t         inactive = cot__op_of(n->op)->inactive;
    for (int i = 0; n->flags & COT__ACTIVE && i < cot__nargs(n); i++)
        if (!(i < 32 && inactive >> i & 1)) mark(s, which, r->ref[from + (size_t)i]);
}

static size_t room_of(const cot__region *r) {
    return r ? ((size_t)r->steps + 1 + places_of(r)) * sizeof(size_t) + (places_of(r) + 7) / 8 * 8 : 0;
}

/* Takes the lists out of one piece of memory; returns what is behind them. */
static char *open_body(const cot_tape *t, const cot__region *r, marked *b, char *at) {
    size_t refs = 0;
    if (!r) return at;
    b->from = (size_t *)(void *)at;
    b->todo = b->from + r->steps + 1;
    b->is = (bool *)(b->todo + places_of(r));
    memset(b->is, 0, places_of(r));
    for (uint32_t k = 0; k < r->steps; k++) {
        b->from[k] = refs;
        refs += (size_t)cot__nargs(&t->nodes[r->node[k]]);
    }
    b->from[r->steps] = refs;
    return at + room_of(r);
}

bool *cot__loop_reached(cot_tape *t, const cot__loop *l, const cot_var *gs) {
    size_t   operands = (size_t)cot__loop_operands(l), bytes = room_of(l->body[0]) + room_of(l->body[1]);
    reaching s = {.t = t, .l = l, .reached = cot__arena(t, operands + 1, l->name)};
    char    *room = s.reached ? cot__alloc(&t->al, bytes) : NULL;
    if (s.reached && !room) cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %zu bytes", l->name, bytes);
    if (!room) return NULL;
    memset(s.reached, 0, operands + 1);
    open_body(t, l->body[1], &s.body[1], open_body(t, l->body[0], &s.body[0], room));
    for (int j = 0; j < l->carry + l->nys; j++) {
        if (cot__failed(gs[j])) continue;
        /* without a step the operand is the result */
        if (j < l->carry) reach(&s, cot__loop_first_carry(l) + j);
        else mark_result(&s, j);
    }
    while (s.body[0].count + s.body[1].count)
        for (int b = 0; b < 2; b++)
            if (s.body[b].count) follow(&s, b, s.body[b].todo[--s.body[b].count]);
    cot__free(&t->al, room, bytes);
    return s.reached;
}
