/* taylor_rules.c: the coefficients of one operation. The only rules written here are the product
 * and the quotient of series.
 *
 * Sums, products, quotients and choices are computed coefficient by coefficient. Linear operations
 * are applied to each coefficient, bilinear ones to pairs. For any other operation its derivative
 * is used: its rule for forward mode is recorded once, with tangents x' = dx/ds, and gives z' =
 * dz/ds. Then
 *
 *     z_m = z'_(m-1) / m
 *
 * and the coefficients of z' follow from the recorded operations by this same file. These
 * operations may need their own rules, with one order less each time. An operation that was
 * recorded before is recognised and not recorded again: the rule of sin has a cos, whose rule has a
 * sin, and there it ends. Coefficients of order m then cost O(m). Where operations do not come back
 * to themselves (pow, digamma, solving), there are as many of them as orders, and all coefficients
 * together cost O(order³).
 *
 * Computing coefficient m nests rules at most m deep, because each level needs one order less. A
 * node that is used again was recorded at the same depth or a smaller one, so at least as many of
 * its coefficients are needed there, and they are computed first. The recursion is over the order,
 * never over the tape: nodes that a rule recorded are walked in their order. */
#include "rules/elementwise_ids.h"
#include "diff/taylor/taylor.h"

#include "ops/structural.h"

#include <string.h>

#define ZERO   UINT32_MAX       /* in `where`: the node is zero at every order */
/* in `where`, while a rule is looked through: the result depends on the node */
#define NEEDED (UINT32_MAX - 1)

/* ---- entries --------------------------------------------------------------------------------- */

static uint32_t *where_of(const cot__taylor *s, uint32_t node) {
    return node < s->from || node - s->from >= s->where_capacity ? NULL : &s->where[node - s->from];
}

/* The entry of a node. COT__NONE: the node does not move. */
static uint32_t entry_of(const cot__taylor *s, uint32_t node) {
    const uint32_t *w = node == COT__NONE ? NULL : where_of(s, node);
    return w && *w && *w < NEEDED ? *w - 1 : COT__NONE;
}

bool cot__taylor_memory(cot_tape *t, size_t bytes) {
    cot__fail(t, COT_MEMORY, "[taylor] out of memory: %zu bytes", bytes);
    return false;
}

static bool grow(cot_tape *t, void *list, uint32_t *capacity, uint32_t need, size_t element) {
    void    *p;
    uint32_t more = *capacity < 64 ? 64 : *capacity;
    memcpy(&p, list, sizeof p);
    while (more < need) more = more > UINT32_MAX / 2 ? UINT32_MAX : 2 * more;
    if (need > *capacity) {
        void *fresh = cot__list_resize(t, p, *capacity * element, more * element);
        if (!fresh) return cot__taylor_memory(t, more * element);
        memcpy(list, &fresh, sizeof fresh);
        *capacity = more;
    }
    return true;
}

/* Makes room in `where` for all nodes of the tape. New nodes have no entry. */
static bool where_room(cot__taylor *s) {
    uint32_t had = s->where_capacity, need = s->t->count - s->from;
    if (!grow(s->t, &s->where, &s->where_capacity, need, sizeof *s->where)) return false;
    cot__list_clear(s->t, s->where + had, (s->where_capacity - had) * sizeof *s->where);
    return true;
}

uint32_t cot__taylor_enter(cot__taylor *s, uint32_t node) {
    uint32_t e = s->count, width = (uint32_t)s->order + 1;
    if (!where_room(s) || !grow(s->t, &s->entries, &s->capacity, e + 1, sizeof *s->entries) ||
        !grow(s->t, &s->coefficients, &s->coefficient_capacity, (e + 1) * width, sizeof *s->coefficients))
        return COT__NONE;
    s->entries[e] = (cot__taylor_entry){.node = node, .shift = COT__NONE, .derivative = COT__NONE, .result = COT__NONE};
    for (uint32_t m = 0; m < width; m++) s->coefficients[e * width + m] = COT__NONE;
    s->coefficients[e * width] = node;
    *where_of(s, node) = e + 1;
    s->count++;
    return e;
}

void cot__taylor_clear(cot__taylor *s) {
    for (uint32_t e = 0; e < s->count; e++) *where_of(s, s->entries[e].node) = 0;
    uint32_t used = s->base - s->from;
    if (used < s->where_capacity)
        memset(s->where + used, 0,
               (s->where_capacity - used < s->t->count - s->base ? s->where_capacity - used : s->t->count - s->base) *
                   sizeof *s->where);
    s->count = 0;
}

/* Coefficient m of operand k of a node: a var or a number; invalid where absent. */
static cot_var operand(cot__taylor *s, uint32_t node, int k, int m) {
    cot_tape *t = s->t;
    uint32_t  a = cot__arg(&t->nodes[node], k), e = entry_of(s, a);
    if (a == COT__NONE) return m ? INVALID(t) : cot_number(t->nodes[node].extra.number);
    if (e == COT__NONE) return m ? INVALID(t) : VAR(t, a);
    if (!cot__taylor_advance(s, e, m)) return INVALID(t);
    uint32_t c = cot__taylor_coefficients(s, e)[m];
    return c == COT__NONE ? INVALID(t) : VAR(t, c);
}

/* ---- products, quotients, choices ------------------------------------------------------------ */

static cot_var plus(cot_var a, cot_var b) { return cot__failed(a) ? b : cot__failed(b) ? a : cot_add(a, b); }
static cot_var minus(cot_var a, cot_var b) { return cot__failed(b) ? a : cot__failed(a) ? cot_neg(b) : cot_sub(a, b); }

/* Products are `smul`, as in the rules: a zero wins over infinities. */
static cot_var product(cot__taylor *s, uint32_t node, int m) {
    cot_var sum = INVALID(s->t);
    for (int j = 0; j <= m; j++) {
        cot_var x = operand(s, node, 0, j), y = cot__failed(x) ? x : operand(s, node, 1, m - j);
        if (!cot__failed(y)) sum = plus(sum, cot_smul(x, y));
    }
    return sum;
}

/* x = y z, solved for the last coefficient of z. The two parts are divided one by one, as in the
 * rule of division: at y = 0 they are infinities that may cancel. */
static cot_var quotient(cot__taylor *s, uint32_t e, int m) {
    cot_tape *t = s->t;
    uint32_t  node = s->entries[e].node;
    cot_var   x = operand(s, node, 0, m), by = operand(s, node, 1, 0), sum = INVALID(t);
    for (int j = 1; j <= m; j++) {
        cot_var  y = operand(s, node, 1, j);
        uint32_t z = cot__taylor_coefficients(s, e)[m - j];
        if (!cot__failed(y) && z != COT__NONE) sum = plus(sum, cot_smul(y, VAR(t, z)));
    }
    if (!cot__failed(x)) x = cot_sdiv(x, by);
    return cot__failed(sum) ? x : minus(x, cot_sdiv(sum, by));
}

static cot_var choice(cot__taylor *s, uint32_t node, int m) {
    cot_var x = operand(s, node, 1, m), y = operand(s, node, 2, m);
    if (cot__failed(x) && cot__failed(y)) return x;
    return cot_where(operand(s, node, 0, 0), cot__failed(x) ? cot_number(0) : x, cot__failed(y) ? cot_number(0) : y);
}

static cot_var bilinear(cot__taylor *s, uint32_t node, const cot__op *op, int m) {
    cot__rule r = {.t = s->t, .node = node, .op = op};
    cot_var   sum = INVALID(s->t), xs[3];
    for (int k = 2, n = cot__nargs(&s->t->nodes[node]); k < n; k++) xs[k] = cot__rule_x(&r, k);
    for (int j = 0; j <= m && s->t->status == COT_OK; j++) {
        xs[0] = j ? operand(s, node, 0, j) : cot__rule_x(&r, 0);
        if (cot__failed(xs[0])) continue;
        xs[1] = m - j ? operand(s, node, 1, m - j) : cot__rule_x(&r, 1);
        if (!cot__failed(xs[1])) sum = plus(sum, cot__apply(&r, xs));
    }
    return sum;
}

/* ---- an operation by its rule ---------------------------------------------------------------- */

/* The node that stands for the derivative of entry e. It is a new node with a series of its own, or
 * the first coefficient if there are no higher ones. */
static uint32_t derivative(cot__taylor *s, uint32_t e) {
    cot_tape *t = s->t;
    if (s->entries[e].derivative != COT__NONE) return s->entries[e].derivative;
    if (!cot__taylor_advance(s, e, 1)) return COT__NONE;
    uint32_t        node = s->entries[e].node;
    const uint32_t *c = cot__taylor_coefficients(s, e);
    bool            moves = s->entries[e].known < s->order;
    for (int m = 2; m <= s->order; m++) moves |= c[m] != COT__NONE;
    cot_var v = c[1] != COT__NONE ? VAR(t, c[1]) : cot_zeros(t, cot__dtype_at(&t->nodes[node]), cot__shape_at(t, node));
    if (cot__failed(v)) return COT__NONE;
    /* a node that moves must be active, or rules would leave it out */
    if (moves) {
        v = cot__fresh_input(v);
        uint32_t d = cot__failed(v) ? COT__NONE : cot__taylor_enter(s, cot__index(v));
        if (d == COT__NONE) return COT__NONE;
        s->entries[d].shift = e;
    }
    return s->entries[e].derivative = cot__index(v);
}

/* Does the derivative of the node depend on its operand k? */
static bool counts(const cot__node *n, int k) {
    if (n->op < OP_structural) return cot__elementwise_table[n->op].partial[k] != NULL;
    const cot__op *op = cot__op_of(n->op);
    return op->kind != KIND_NONE && !(k < 32 && op->inactive >> k & 1);
}

/* Calls the forward rule of a node with coefficients of its operands as tangents. With m > 0 they
 * are the coefficients of order m, with m = 0 the derivatives by s. The tangents of further results
 * go to `more`; NULL: there are none. */
static cot_var run_rule(cot__taylor *s, uint32_t node, int m, uint32_t *first, cot_var *more) {
    cot_tape *t = s->t;
    int       n = cot__nargs(&t->nodes[node]);
    cot_var   few[8], *xs = n > 8 ? cot__alloc(&t->al, (size_t)n * sizeof *xs) : few, z = INVALID(t);
    if (!xs) return cot__taylor_memory(t, (size_t)n * sizeof *xs), z;
    for (int k = 0; k < n; k++) {
        uint32_t x =
            counts(&t->nodes[node], k) && t->status == COT_OK ? entry_of(s, cot__arg(&t->nodes[node], k)) : COT__NONE;
        uint32_t d = x == COT__NONE || m ? COT__NONE : derivative(s, x);
        xs[k] = x == COT__NONE ? INVALID(t) : m ? operand(s, node, k, m) : d == COT__NONE ? INVALID(t) : VAR(t, d);
    }
    *first = t->count;
    if (t->status == COT_OK)
        z = t->nodes[node].op < OP_structural ? cot__elementwise_tangent(t, node, xs)
                                              : cot__structural_tangent(t, node, xs, more);
    if (n > 8) cot__free(&t->al, xs, (size_t)n * sizeof *xs);
    return z;
}

static bool is_zero(const cot__taylor *s, const cot__node *n, int k) {
    uint32_t a = cot__arg(n, k);
    return a == COT__NONE ? n->extra.number == 0 : a >= s->base && *where_of(s, a) == ZERO;
}

/* Is the node zero at every order by its form? pow(x, 0) has the derivative smul(smul(x', 0),
 * pow(x, -1)), which is zero whatever pow(x, -1) is. */
static bool stays_zero(const cot__taylor *s, const cot__node *n) {
    if (n->op == OP_smul) return is_zero(s, n, 0) || is_zero(s, n, 1);
    return (n->op == OP_sdiv || n->op == OP_neg) && is_zero(s, n, 0);
}

static bool same_operands(const cot__taylor *s, const cot__node *a, const cot__node *b) {
    int n = cot__nargs(a);
    if (n != cot__nargs(b)) return false;
    for (int k = 0; k < n; k++) {
        uint32_t x = cot__arg(a, k), y = cot__arg(b, k), e = entry_of(s, x);
        if (x != y && (e == COT__NONE || e != entry_of(s, y))) return false;
    }
    return true;
}

static bool same_attributes(const cot__attr *a, const cot__attr *b) {
    if (!a || !b) return a == b;
    return a->nints == b->nints && a->pointer == b->pointer && a->pointer2 == b->pointer2 &&
           memcmp(&a->number, &b->number, sizeof a->number) == 0 &&
           memcmp(a->ints, b->ints, a->nints * sizeof *a->ints) == 0;
}

static bool same_number(const cot__node *a, const cot__node *b) {
    bool number = cot__elementwise_table[a->op].arity == 2 && (a->a == COT__NONE || a->b == COT__NONE);
    return !number || memcmp(&a->extra.number, &b->extra.number, sizeof a->extra.number) == 0;
}

/* The entry of a node that computes the same from the same operands. COT__NONE: there is none. */
static uint32_t find_same(const cot__taylor *s, uint32_t node) {
    const cot_tape  *t = s->t;
    const cot__node *n = &t->nodes[node];
    cot_shape        shape = cot__shape_at(t, node);
    for (uint32_t e = 0; e < s->count; e++) {
        const cot__node *o = &t->nodes[s->entries[e].node];
        if (o->op != n->op || o->kind != n->kind || s->entries[e].shift != COT__NONE || !same_operands(s, n, o))
            continue;
        /* its memory was overwritten since */
        if (cot__is_tensor(o) && o->value.tensor->version != o->value.tensor->storage->version) continue;
        cot_shape other = cot__shape_at(t, s->entries[e].node);
        if (!cot__same_shape(&shape, &other)) continue;
        if (n->op == OP_pick && node - n->a != s->entries[e].node - o->a) continue;
        if (n->op < OP_structural ? same_number(n, o) : same_attributes(n->extra.attr, o->extra.attr)) return e;
    }
    return COT__NONE;
}

static bool moves(const cot__taylor *s, uint32_t node) {
    const cot__node *n = &s->t->nodes[node];
    if (n->op >= OP_structural && cot__op_of(n->op)->kind == KIND_SOURCE) return false;
    for (int k = 0, count = cot__nargs(n); k < count; k++)
        if (counts(n, k) && entry_of(s, cot__arg(n, k)) != COT__NONE) return true;
    return false;
}

/* Runs the rule of entry e. Its results are nodes, COT__NONE where one does not move. */
static bool results_of_rule(cot__taylor *s, uint32_t e, uint32_t *lo, int m) {
    cot_tape *t = s->t;
    cot_var  *more = m > 1 ? cot__arena(t, (size_t)m * sizeof *more, "taylor") : NULL;
    uint32_t *further = more ? cot__arena(t, (size_t)m * sizeof *further, "taylor") : NULL;
    if (m > 1 && !further) return false;
    cot_var z = run_rule(s, s->entries[e].node, 0, lo, more);
    if (t->status != COT_OK || !where_room(s)) return false;
    for (int k = 1; k < m; k++) further[k - 1] = cot__failed(more[k - 1]) ? COT__NONE : cot__index(more[k - 1]);
    s->entries[e].result = cot__failed(z) ? COT__NONE : cot__index(z);
    s->entries[e].further = further;
    return true;
}

static uint32_t result_of_rule(const cot__taylor *s, uint32_t e, int k) {
    return k ? s->entries[e].further[k - 1] : s->entries[e].result;
}

/* Makes entries for the nodes that the rule of entry e recorded, from node lo on. Left out are
 * nodes that no result needs, that do not move, or that have an entry already. */
static bool open_rule(cot__taylor *s, uint32_t e) {
    cot_tape *t = s->t;
    uint32_t  lo = t->count, hi, *w;
    int       m = cot__results_at(t, s->entries[e].node);
    s->entries[e].opened = true;
    s->entries[e].first = s->entries[e].last = s->count;
    if (!results_of_rule(s, e, &lo, m)) return false;
    hi = t->count;
    for (uint32_t i = lo; i < hi; i++)
        if (stays_zero(s, &t->nodes[i])) *where_of(s, i) = ZERO;
    for (int k = 0; k < m; k++) {
        uint32_t z = result_of_rule(s, e, k);
        if (z != COT__NONE && z >= lo && !*where_of(s, z)) *where_of(s, z) = NEEDED;
    }
    for (uint32_t i = hi; i-- > lo;) {
        w = where_of(s, i);
        for (int k = 0, n = *w == NEEDED ? cot__nargs(&t->nodes[i]) : 0; k < n; k++) {
            uint32_t a = cot__arg(&t->nodes[i], k);
            if (a != COT__NONE && a >= lo && !*where_of(s, a)) *where_of(s, a) = NEEDED;
        }
    }
    s->entries[e].first = s->count;
    for (uint32_t i = lo; i < hi; i++) {
        if (*(w = where_of(s, i)) != NEEDED) continue;
        *w = 0;
        /* its rule may read any of its results */
        bool several = t->nodes[i].op != OP_pick && i + 1 < hi && t->nodes[i + 1].op == OP_pick;
        for (uint32_t k = i + 1; several && k < hi && t->nodes[k].op == OP_pick; k++) *where_of(s, k) = NEEDED;
        if (!moves(s, i)) continue;
        uint32_t same = find_same(s, i);
        if (same != COT__NONE)
            *where_of(s, i) = same + 1;
        else if (cot__taylor_enter(s, i) == COT__NONE)
            return false;
    }
    s->entries[e].last = s->count;
    return true;
}

/* z_m = z'_(m-1) / m, of result k. */
static cot_var by_rule(cot__taylor *s, uint32_t e, int m, int k) {
    cot_tape *t = s->t;
    if (!s->entries[e].opened && !open_rule(s, e)) return INVALID(t);
    for (uint32_t i = s->entries[e].first; i < s->entries[e].last; i++)
        if (!cot__taylor_advance(s, i, m - 1)) return INVALID(t);
    uint32_t z = result_of_rule(s, e, k), x = entry_of(s, z);
    if (z != COT__NONE && x == COT__NONE && m > 1) z = COT__NONE; /* the result does not move */
    if (x != COT__NONE) z = cot__taylor_advance(s, x, m - 1) ? cot__taylor_coefficients(s, x)[m - 1] : COT__NONE;
    if (z == COT__NONE) return INVALID(t);
    return m > 1 ? cot_div(VAR(t, z), cot_number(m)) : VAR(t, z);
}

/* A further result of an operation: the rule of that gives all. */
static cot_var picked(cot__taylor *s, uint32_t node, int m) {
    uint32_t of = s->t->nodes[node].a, e = entry_of(s, of);
    return e == COT__NONE ? INVALID(s->t) : by_rule(s, e, m, (int)(node - of));
}

/* ---- any operation --------------------------------------------------------------------------- */

static cot_var shifted(cot__taylor *s, uint32_t x, int m) {
    if (m + 1 > s->order || !cot__taylor_advance(s, x, m + 1)) return INVALID(s->t);
    uint32_t c = cot__taylor_coefficients(s, x)[m + 1];
    return c == COT__NONE ? INVALID(s->t) : cot_mul(cot_number(m + 1), VAR(s->t, c));
}

static cot_var coefficient(cot__taylor *s, uint32_t e, int m) {
    uint32_t node = s->entries[e].node, first;
    int      op = s->t->nodes[node].op;
    if (s->entries[e].shift != COT__NONE) return shifted(s, s->entries[e].shift, m);
    switch (op) {
    case OP_add: return plus(operand(s, node, 0, m), operand(s, node, 1, m));
    case OP_sub: return minus(operand(s, node, 0, m), operand(s, node, 1, m));
    case OP_neg: return minus(INVALID(s->t), operand(s, node, 0, m));
    case OP_mul:
    case OP_smul: return product(s, node, m);
    case OP_div:
    case OP_sdiv: return quotient(s, e, m);
    case OP_where: return choice(s, node, m);
    case OP_pick: return picked(s, node, m);
    default: break;
    }
    const cot__op *record = cot__op_of(op);
    bool linear = record->kind == KIND_LINEAR || record->choice.from != COT__CHOOSES_NOTHING;
    if (op >= OP_structural && linear) return run_rule(s, node, m, &first, NULL);
    if (op >= OP_structural && record->kind == KIND_BILINEAR) return bilinear(s, node, record, m);
    return by_rule(s, e, m, 0);
}

bool cot__taylor_advance(cot__taylor *s, uint32_t e, int m) {
    while (s->entries[e].known < m && s->t->status == COT_OK) {
        int     q = s->entries[e].known + 1;
        cot_var z = coefficient(s, e, q);
        if (s->t->status != COT_OK) break;
        cot__taylor_coefficients(s, e)[q] = cot__failed(z) ? COT__NONE : cot__index(z);
        s->entries[e].known = q;
    }
    return s->t->status == COT_OK;
}
