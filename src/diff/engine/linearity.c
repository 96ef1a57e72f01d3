/* linearity.c: how nodes depend on others, in one pass over the tape. */
#include "diff/engine/linearity.h"

#include <string.h>

uint8_t cot__operand_depends(const cot__places *p, const cot__node *n, int k) {
    if (p->ref) return p->ref[k] == COT__REF_NUMBER ? COT__DEPENDS_NOT : p->how[p->ref[k]];
    uint32_t a = cot__arg(n, k);
    return a == COT__NONE || a < p->first ? COT__DEPENDS_NOT : p->how[a - p->first];
}

static uint8_t larger(uint8_t a, uint8_t b) { return a > b ? a : b; }

static uint8_t elementwise(const cot__places *p, const cot__node *n) {
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    uint8_t                      how = COT__DEPENDS_NOT;
    for (int k = 0; k < e->arity; k++) {
        uint8_t is = cot__operand_depends(p, n, k);
        if (!is) continue;
        how = larger(how, is);
        if (!e->partial[k] || (e->saves[k] & COT__SAVES_Z)) how = COT__DEPENDS_OTHERWISE;
        for (int j = 0; j < e->arity; j++)
            if (cot__operand_depends(p, n, j) && e->saves[k] >> j & 1) how = COT__DEPENDS_OTHERWISE;
    }
    return how;
}

/* By its record: it is linear in the operands that move, and no two of them are multiplied. */
static uint8_t structural(const cot__places *p, const cot__node *n) {
    const cot__op *op = cot__op_of(n->op);
    uint8_t        how = COT__DEPENDS_NOT;
    for (int k = 0, count = cot__nargs(n); k < count && how != COT__DEPENDS_OTHERWISE; k++) {
        uint8_t is = cot__operand_depends(p, n, k);
        if (is == COT__DEPENDS_NOT) continue;
        int  other = cot__factor_of(op, k, count);
        bool squared = other >= 0 && cot__operand_depends(p, n, other) != COT__DEPENDS_NOT;
        how = squared || !cot__linear_in(op, k) ? COT__DEPENDS_OTHERWISE : larger(how, is);
    }
    return how;
}

uint8_t cot__node_depends(const cot__places *p, uint32_t node) {
    const cot__node *n = &p->t->nodes[node];
    uint8_t (*closer)(const cot__places *p, uint32_t i) = cot__op_of(n->op)->depends;
    uint8_t how = n->op < OP_elementwise_count ? elementwise(p, n) : closer ? closer(p, node) : structural(p, n);
    /* whole numbers are rounded */
    return how && !cot__dtype_is_float(cot__dtype_at(n)) ? COT__DEPENDS_OTHERWISE : how;
}

bool cot__find_curved(const cot_tape *t, int n, const uint32_t *from, uint32_t y, uint32_t *curved) {
    uint32_t first = from[0];
    bool     failed = false;
    *curved = COT__NONE;
    for (int k = 0; k < n; k++) first = from[k] < first ? from[k] : first;
    if (first > y) return true;
    size_t      bytes = (size_t)y - first + 1;
    uint8_t    *how = cot__alloc(&t->al, bytes);
    cot__places p = {t, how, first, NULL, &failed};
    uint32_t    bad = COT__NONE;
    if (!how) return false;
    memset(how, COT__DEPENDS_NOT, bytes);
    for (int k = 0; k < n; k++)
        if (from[k] <= y) how[from[k] - first] = COT__DEPENDS_LINEARLY;
    for (uint32_t i = first; i <= y && !failed; i++) {
        uint8_t is = cot__node_depends(&p, i);
        how[i - first] = larger(how[i - first], is);
        if (is == COT__DEPENDS_OTHERWISE && bad == COT__NONE) bad = i;
    }
    if (how[y - first] == COT__DEPENDS_OTHERWISE) *curved = bad;
    cot__free(&t->al, how, bytes);
    return !failed;
}
