/* saved_values.h: is a value still the one that an operation saw? (reverse.c) */
#ifndef COT_SAVED_VALUES_H
#define COT_SAVED_VALUES_H

#include "tape/tape.h"

/* Was node x, a leaf or constant, assigned after node `by` was recorded? (What a body read when it
 * was recorded is an example.) */
static inline bool cot__assigned_since(const cot_tape *t, uint32_t x, uint32_t by) {
    const cot__node *n = &t->nodes[x], *user = &t->nodes[by];
    if (!cot__was_assigned(n) || cot__in_body(user)) return false;
    return n->b / COT__ASSIGNERS > user->stamp || (n->b / COT__ASSIGNERS == user->stamp && n->a > by);
}
/* Has the value of node x, as node `by` saw it, been overwritten? */
static inline bool cot__overwritten(const cot_tape *t, uint32_t x, uint32_t by) {
    const cot__node *n = &t->nodes[x];
    return (cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version) ||
           cot__assigned_since(t, x, by);
}
/* Is the value of node x still the one that node `by` saw? Otherwise sets the error that names both
 * operations. */
bool cot__saved_intact(cot_tape *t, uint32_t by, uint32_t x);
/* The same for all that an elementwise partial of node i reads (a mask of
 * elementwise_info.saves). */
bool cot__saves_intact(cot_tape *t, uint32_t i, uint32_t saves);

#endif
