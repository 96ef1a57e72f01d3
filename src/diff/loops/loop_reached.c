/* loop_reached.c: which operands of a loop get an adjoint: those on which, in some step, a result
 * depends that has one. A carried value that nobody reads behind the loop, and on which nothing
 * that is read depends, has no adjoint in any step, just as it would have none if the steps stood
 * on the tape one by one. Zeros instead would meet infinities in its matrix products and be NaN.
 *
 * Loops in a body are walked result by result: each stands on a level of its own. A result of any
 * other node with bodies (a way back, a rule of the user's) counts as depending on all operands of
 * the node, and a value as having an adjoint in all steps if it has one in some; there zeros stand
 * for what has none. */
#include "rules/structural_ids.h"
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

/* Values of one body. from: where the operands of each step begin, and after the last one the
 * results. inner: the level of each step that is a loop; 0: none yet. is: which of them have an
 * adjoint. */
typedef struct marked { size_t *from; uint32_t *inner; bool *is; } marked;

/* A loop: the one that is asked about, level 0, or one in the body of another level. */
typedef struct level {
    const cot__loop *l;
    uint32_t         around; /* the level with the body that it stands in, */
    int              which;  /* which of the two, */
    const uint64_t  *args;   /* and its operands there */
    marked           body[2];
    int             *result; /* results of its node as results of the loop */
    void            *room;
    size_t           bytes;
} level;

/* A value whose operands are still to be marked. Each is listed once. */
typedef struct spot { uint32_t level; int which; size_t place; } spot;

typedef struct reaching {
    cot_tape *t;
    bool     *reached; /* operands of level 0 */
    level    *at;
    spot     *todo;
    uint32_t  levels, level_room, count, room;
} reaching;

static void mark(reaching *s, uint32_t on, int which, uint64_t place) {
    bool *is = s->at[on].body[which].is;
    void *list = s->todo;
    if (place == COT__REF_NUMBER || is[place]) return;
    is[place] = true;
    if (!cot__grow(s->t, &list, &s->room, s->count, sizeof *s->todo, s->at[0].l->name)) return;
    s->todo = list;
    s->todo[s->count++] = (spot){on, which, place};
}

/* Result j of a step has an adjoint. */
static void mark_result(reaching *s, uint32_t on, int j) {
    for (int b = 0; b < 2 && s->at[on].l->body[b]; b++) {
        const cot__region *r = s->at[on].l->body[b];
        if (j < r->m) mark(s, on, b, r->ref[s->at[on].body[b].from[r->steps] + (size_t)j]);
    }
}

static void reach(reaching *s, uint32_t on, int operand) {
    const level *a = &s->at[on];
    int          j = operand - cot__loop_first_carry(a->l), carry = a->l->carry;
    if (operand < 0 || (on == 0 && s->reached[operand])) return;
    if (on == 0) s->reached[operand] = true;
    else mark(s, a->around, a->which, a->args[operand]);
    if (j >= 0 && j < carry) mark_result(s, on, j); /* of the step before */
}

/* Result j of the loop has an adjoint. Without a step a carried operand is the result. */
static void reach_result(reaching *s, uint32_t on, int j) {
    if (j < s->at[on].l->carry) reach(s, on, cot__loop_first_carry(s->at[on].l) + j);
    else mark_result(s, on, j);
}

static size_t room_of(const cot__region *r) {
    return r ? ((size_t)r->steps + 1) * (sizeof(size_t) + sizeof(uint64_t)) + (places_of(r) + 7) / 8 * 8 : 0;
}

/* Takes the lists out of one piece of memory, of zeros; returns what is behind them. */
static char *open_body(const cot_tape *t, const cot__region *r, marked *b, char *at) {
    size_t refs = 0;
    if (!r) return at;
    b->from = (size_t *)(void *)at;
    b->inner = (uint32_t *)(void *)(b->from + r->steps + 1);
    b->is = (bool *)((uint64_t *)(void *)b->inner + r->steps + 1);
    for (uint32_t k = 0; k < r->steps; k++) {
        b->from[k] = refs;
        refs += (size_t)cot__nargs(&t->nodes[r->node[k]]);
    }
    b->from[r->steps] = refs;
    return at + room_of(r);
}

/* A new level, with all but its lists set. False after setting the error. */
static bool open_level(reaching *s, level a) {
    void  *list = s->at;
    size_t results = (size_t)cot__loop_results(a.l), bodies = room_of(a.l->body[0]) + room_of(a.l->body[1]);
    if (!cot__grow(s->t, &list, &s->level_room, s->levels, sizeof *s->at, a.l->name)) return false;
    s->at = list;
    a.bytes = bodies + 2 * (results + 1) * sizeof *a.result;
    a.room = cot__alloc(&s->t->al, a.bytes);
    if (!a.room) {
        cot__fail(s->t, COT_MEMORY, "[%s] out of memory: a list of %zu bytes", a.l->name, a.bytes);
        return false;
    }
    memset(a.room, 0, a.bytes);
    char *behind = open_body(s->t, a.l->body[0], &a.body[0], a.room);
    a.result = (int *)(void *)open_body(s->t, a.l->body[1], &a.body[1], behind);
    int *order = a.result + results + 1;
    cot__loop_order(s->t, a.l, order);
    for (int j = 0; j < (int)results; j++) a.result[order[j]] = j;
    s->at[s->levels++] = a;
    return true;
}

/* Result k of the loop that is node `node`, step `step` of a body, has an adjoint. */
static void follow_loop(reaching *s, spot p, uint32_t node, size_t step, uint32_t k) {
    const cot__loop *l = s->t->nodes[node].extra.attr->pointer;
    const marked    *b = &s->at[p.level].body[p.which];
    const uint64_t  *args = s->at[p.level].l->body[p.which]->ref + b->from[step];
    if (!b->inner[step]) {
        b->inner[step] = s->levels;
        if (!open_level(s, (level){.l = l, .around = p.level, .which = p.which, .args = args})) return;
    }
    uint32_t inner = s->at[p.level].body[p.which].inner[step];
    reach_result(s, inner, s->at[inner].result[k]);
}

static bool is_loop(const cot__node *n) {
    return n->op == OP_loop && !((const cot__loop *)n->extra.attr->pointer)->rules;
}

static void follow(reaching *s, spot p) {
    const cot__loop   *l = s->at[p.level].l;
    const cot__region *r = l->body[p.which];
    size_t             inputs = (size_t)(r->n + r->captures), outer = outer_of(r);
    if (p.place < inputs) reach(s, p.level, operand_of(l, p.which, (int)p.place));
    if (p.place < outer) return;
    uint32_t         node = r->node[p.place - outer];
    const cot__node *n = &s->t->nodes[node];
    const uint64_t  *ref = r->ref + s->at[p.level].body[p.which].from[p.place - outer];
    uint32_t         inactive = cot__op_of(n->op)->inactive;
    if (!(n->flags & COT__ACTIVE)) return;
    if (n->op == OP_pick && is_loop(&s->t->nodes[n->a])) follow_loop(s, p, n->a, (size_t)*ref - outer, node - n->a);
    else if (is_loop(n)) follow_loop(s, p, node, p.place - outer, 0);
    else
        for (int i = 0; i < cot__nargs(n); i++)
            if (!(i < 32 && inactive >> i & 1)) mark(s, p.level, p.which, ref[i]);
}

static void close_all(reaching *s) {
    const cot_allocator *al = &s->t->al;
    for (uint32_t k = 0; k < s->levels; k++) cot__free(al, s->at[k].room, s->at[k].bytes);
    cot__free(al, s->at, s->level_room * sizeof *s->at);
    cot__free(al, s->todo, s->room * sizeof *s->todo);
}

bool *cot__loop_reached(cot_tape *t, const cot__loop *l, const cot_var *gs) {
    size_t   operands = (size_t)cot__loop_operands(l);
    reaching s = {.t = t, .reached = cot__arena(t, operands + 1, l->name)};
    if (!s.reached) return NULL;
    memset(s.reached, 0, operands + 1);
    bool ok = open_level(&s, (level){.l = l});
    for (int j = 0; ok && j < cot__loop_results(l); j++)
        if (!cot__failed(gs[j])) reach_result(&s, 0, j);
    while (s.count && t->status == COT_OK) follow(&s, s.todo[--s.count]);
    close_all(&s);
    return t->status == COT_OK ? s.reached : NULL;
}
