/* partials.c: members of a group that together are the partial of one operation.
 *
 * A derivative is recorded word by word, as its rule is written (rules.def), so the partial of a
 * GELU is fourteen operations; a sweep has one kernel for it. Where all of them stand in a group
 * one after the other, and nobody else reads what they make on the way, that kernel does them at
 * once. It computes the same words in the same order, so the bits are the same. */
#include "base/element.h"
#include "program/plan_parts.h"
#include "rules/elementwise_ids.h"
#include "rules/elementwise_table.h"

#include <math.h>

enum { FARTHEST = 63 }; /* operations between the first and the last */

typedef struct look {
    const cot__plan *plan;
    const cot__tree *at; /* the node that comes next */
    cot__partial    *to;
    cot_dtype        compute;
    uint64_t         covered; /* bit i: operation last - i belongs to it */
} look;

/* The operation, a member of the group, that makes the value, or COT__NO_VALUE. */
static uint32_t maker_in(const look *l, uint32_t v) {
    const cot__plan *plan = l->plan;
    if (v == COT__NO_VALUE || cot__value_origin(plan->p, v) != COT__FROM_OPERATION) return COT__NO_VALUE;
    uint32_t k = cot__value_maker(plan->p, v);
    return plan->fusion.of[k] == plan->fusion.of[l->to->last] ? k : COT__NO_VALUE;
}

/* Every place of the tree that names this operand names one value, of the type that is computed
 * in. */
static bool is_read_as(const look *l, int i, uint32_t v) {
    uint32_t *x = &l->to->x[i];
    if (v == COT__NO_VALUE || (*x != COT__NO_VALUE && *x != v)) return false;
    *x = v;
    return cot__value_view(l->plan->p, v).dtype == l->compute;
}

static bool is_covered(const look *l, uint32_t v) {
    uint32_t k = maker_in(l, v), last = l->to->last;
    return k <= last && last - k <= FARTHEST && l->covered >> (last - k) & 1;
}

/* Is it this number, with its sign: one of the operation's own, or a constant without axes? */
static bool is_number(const look *l, uint32_t v, double number, double wanted) {
    const cot__program *p = l->plan->p;
    if (v != COT__NO_VALUE) {
        cot__view x = cot__value_view(p, v);
        if (x.ndim > 0 || x.dtype != l->compute || cot__value_origin(p, v) != COT__FROM_CONSTANT) return false;
        number = cot__load_f64(cot__constant_elements(p, cot__value_maker(p, v)), x.dtype);
    }
    return number == wanted && signbit(number) == signbit(wanted);
}

/* Is the value made as the tree says? Recursive over a rule, whose depth the table bounds. */
static bool matches(look *l, uint32_t v, double number) {
    const cot__program *p = l->plan->p;
    const cot__tree    *tree = l->at++;
    uint32_t            k = maker_in(l, v), last = l->to->last;
    switch (tree->what) {
    case TREE_OPERAND: return is_read_as(l, tree->op, v);
    case TREE_RESULT: return is_read_as(l, COT__PARTIAL_Z, v);
    case TREE_G: return is_read_as(l, COT__PARTIAL_G, v);
    case TREE_NUMBER: return is_number(l, v, number, cot__tree_number(tree));
    }
    if (k > last || last - k > FARTHEST || p->operation[k].op != tree->op) return false;
    if (cot__member_compute(p, k) != l->compute || (k != last && !l->plan->fusion.inside[v])) return false;
    const uint32_t *x = cot__operation_operand(p, k);
    double          c = p->operation[k].extra == COT__NO_VALUE ? 0 : cot__operation_number(p, k);
    for (int i = 0; i < cot__operation_operands(p, k); i++)
        if (!matches(l, x[i], c)) return false;
    l->covered |= UINT64_C(1) << (last - k);
    return true;
}

/* Do all members from the first to the last belong to it, and does nobody behind read them? */
static bool stands_alone(const look *l) {
    const cot__plan *plan = l->plan;
    uint32_t         last = l->to->last, group = plan->fusion.of[last];
    for (int i = 0; i < COT__PARTIAL_READS; i++) /* a view of a member is that member */
        if (l->to->x[i] != COT__NO_VALUE && is_covered(l, plan->root[l->to->x[i]])) return false;
    for (uint32_t k = l->to->first; k < last; k++)
        if (plan->fusion.of[k] == group && !(l->covered >> (last - k) & 1)) return false;
    for (uint32_t k = last + 1; k < plan->fusion.group[group].end; k++) {
        const uint32_t *x = cot__operation_operand(plan->p, k);
        for (int i = 0; i < cot__operation_operands(plan->p, k); i++)
            if (x[i] != COT__NO_VALUE && plan->root[x[i]] != plan->p->operation[last].result &&
                is_covered(l, plan->root[x[i]]))
                return false;
    }
    return true;
}

static bool is_partial(const cot__plan *plan, const cot__tree *tree, cot__partial *f) {
    uint32_t v = plan->p->operation[f->last].result;
    look     l = {plan, tree, f, cot__member_compute(plan->p, f->last), 0};
    for (int i = 0; i < COT__PARTIAL_READS; i++) f->x[i] = COT__NO_VALUE;
    if (!matches(&l, v, 0) || __builtin_popcountll(l.covered) < COT__SHORTEST_PARTIAL) return false;
    f->first = f->last - (63 - (uint32_t)__builtin_clzll(l.covered));
    return stands_alone(&l);
}

/* The longest that ends with this member. */
static bool find_partial(const cot__plan *plan, uint32_t last, cot__partial *found) {
    const cot__program *p = plan->p;
    cot__view           z = cot__value_view(p, p->operation[last].result);
    cot__partial        f = {.last = last};
    bool                any = false;
    if (p->operation[last].op >= OP_structural || (z.dtype != COT_F32 && z.dtype != COT_F64)) return false;
    for (f.op = 0; f.op < OP_elementwise_count; f.op++)
        for (f.k = 0; f.k < 3; f.k++) {
            const cot__tree *tree = cot__elementwise_table[f.op].partial[f.k];
            if (!tree || tree->what != TREE_OP || tree->op != p->operation[last].op) continue;
            if (is_partial(plan, tree, &f) && (!any || f.first < found->first)) *found = f, any = true;
        }
    return any;
}

int cot__find_partials(const cot__plan *plan, const cot__group *g, cot__partial *found) {
    int n = 0;
    if (g->spans || g->runs < COT__SHORTEST_PARTIAL) return 0;
    for (uint32_t k = g->end; k-- > g->first;)
        if (plan->how[k] == COT__BY_GROUP && find_partial(plan, k, &found[n])) k = found[n++].first;
    return n;
}
