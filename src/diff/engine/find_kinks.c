/* find_kinks.c: does an operation sit exactly on a kink? Elementwise ones by the conditions of
 * kinks.def, the others by the `kinks` of their records. */
#include "diff/engine/find_kinks.h"
#include "rules/kinks.h"
#include "tape/show.h"

/* Does anything that wants a derivative flow into the node? (Operations without derivative are
 * themselves inactive.) */
bool cot__has_active_operand(const cot_tape *t, uint32_t i) {
    for (int k = 0, count = cot__nargs(&t->nodes[i]); k < count; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a != COT__NONE && (t->nodes[a].flags & COT__ACTIVE)) return true;
    }
    return false;
}

bool cot__operands_are_there(const cot_tape *t, uint32_t i) {
    for (int k = 0, count = cot__nargs(&t->nodes[i]); k < count; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a != COT__NONE && cot__overwritten(t, a, i)) return false;
    }
    return true;
}

/* ---- kinks ----------------------------------------------------------------------------------- */

static void find_kink(cot__findings *r, uint32_t i, const cot__kink *kink) {
    const cot__node *n = &r->t->nodes[i];
    cot__view        xs[3], z = cot__view_read(r->t, i);
    cot__value       number;
    cot__reader      in[3];
    int              arity = cot__elementwise_arity(n->op);
    int64_t          first = -1, count = 0;
    char             text[COT__FORMULA_TEXT], filled[COT__FILLED_TEXT];
    cot__operand_views(r->t, n, cot__dtype_compute(cot__dtype_at(n)), xs, &number);
    for (int k = 0; k < arity; k++) cot__reader_spread(&in[k], r->t->backend, &xs[k], &z);
    while (in[0].at < in[0].size) {
        double v[3] = {0, 0, 0};
        for (int k = 0; k < arity; k++) v[k] = cot__reader_next(&in[k]);
        if (kink->holds(v[0], v[1], v[2]) && count++ == 0) first = in[0].at - 1;
    }
    if (!count) return;
    cot__finding_begin(r, i);
    cot__formula(n->op, kink->condition, text, sizeof text);
    cot__putf(&r->x, " sits on its kink %s", cot__filled(r->t, i, text, filled, sizeof filled));
    cot__finding_where(r, &z, first, count);
    cot__putf(&r->x, "; its derivative there: %s.", cot__filled(r->t, i, kink->convention, filled, sizeof filled));
}

bool cot__can_kink(int op) {
    if (op >= OP_structural) return cot__op_of(op)->kinks != NULL;
    for (int k = 0; k < KINK_count; k++)
        if (cot__kinks[k].op == op) return true;
    return false;
}

void cot__find_kinks(cot__findings *r, uint32_t i) {
    const cot__node *n = &r->t->nodes[i];
    if (!cot__operands_are_there(r->t, i) || cot__is_stale(n)) return;
    if (n->op >= OP_structural) {
        if (cot__op_of(n->op)->kinks) cot__op_of(n->op)->kinks(r, i);
        return;
    }
    for (int k = 0; k < KINK_count; k++)
        if (cot__kinks[k].op == n->op) find_kink(r, i, &cot__kinks[k]);
}
