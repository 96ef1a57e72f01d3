/* ends.c: looks for the ends of matrix products. */
#include "program/passes/order/ends.h"
#include "program/fusion.h"
#include "rules/elementwise_ids.h"

#include <string.h>

/* ---- who reads what -------------------------------------------------------------------------- */

static void find_readers(cot__ends *e) {
    const cot__program *p = e->p;
    for (uint32_t v = 0; v < p->values; v++) e->first[v] = COT__NO_VALUE;
    for (uint32_t k = p->operations; k-- > 0;) {
        const uint32_t *x = cot__operation_operand(p, k);
        for (int i = cot__operation_operands(p, k); i-- > 0;) {
            uint32_t at = (uint32_t)(x + i - p->operand);
            e->reader[at] = k;
            e->next[at] = x[i] == COT__NO_VALUE ? COT__NO_VALUE : e->first[x[i]];
            if (x[i] != COT__NO_VALUE) e->first[x[i]] = at;
        }
    }
}

/* From the last operation on, so that a view holds what it views as long as it is held itself. */
static void find_holders(cot__ends *e) {
    const cot__program *p = e->p;
    memset(e->held, 0, p->values * sizeof *e->held);
    memset(e->onward, 0, p->values);
    for (uint32_t k = p->operations; k-- > 0;) {
        const uint32_t *x = cot__operation_operand(p, k);
        uint32_t        z = p->operation[k].result;
        bool            view = cot__is_always_view(p, k, true), member = cot__is_fusable(p, k);
        uint32_t        until = view ? e->held[z] : member ? 0 : k;
        for (int i = 0; i < cot__operation_operands(p, k); i++) {
            if (x[i] == COT__NO_VALUE) continue;
            if (e->held[x[i]] < until) e->held[x[i]] = until;
            e->onward[x[i]] |= view || member ? e->onward[z] : 1;
        }
    }
}

bool cot__ends_open(cot__ends *e, const cot__program *p, const cot_allocator *al) {
    *e = (cot__ends){.p = p, .bytes = (2 * p->values + 2 * (size_t)p->operands) * sizeof *e->first + p->values +
                                          p->operations};
    e->first = cot__alloc(al, e->bytes);
    if (!e->first) return false;
    e->held = e->first + p->values;
    e->next = e->held + p->values;
    e->reader = e->next + p->operands;
    e->onward = (uint8_t *)(e->reader + p->operands);
    e->done = e->onward + p->values;
    memset(e->done, 0, p->operations);
    find_readers(e);
    find_holders(e);
    return true;
}

void cot__ends_close(cot__ends *e, const cot_allocator *al) { cot__free(al, e->first, e->bytes); }

/* ---- the end of one product ------------------------------------------------------------------ */

enum { MOST = 2 * COT__STAGE_RUNS, NEAR = 16 /* operations */ };

typedef struct ending {
    cot__ends            *e;
    const cot__ends_user *u;
    uint32_t              product;
    uint32_t              made[MOST]; /* values that are the product, or depend on it */
    uint32_t              list[MOST]; /* operations that a reader of one needs, and itself */
    int                   values, listed, members, more; /* more: members of the list */
} ending;

static bool is_made(const ending *n, uint32_t v) {
    for (int i = 0; i < n->values; i++)
        if (n->made[i] == v) return true;
    return false;
}
static bool is_listed(const ending *n, uint32_t k) {
    for (int i = 0; i < n->listed; i++)
        if (n->list[i] == k) return true;
    return false;
}

/* Views of the end keep its order; others read what was there before. */
static bool can_be_view(const ending *n, uint32_t k) {
    if (cot__operation_operands(n->e->p, k) != 1) return false;
    uint32_t x = cot__operation_operand(n->e->p, k)[0];
    if (n->u->is_there(n->u->user, x) && !is_made(n, x)) return cot__is_always_view(n->e->p, k, false);
    return cot__keeps_order(n->e->p->operation[k].op) && cot__is_always_view(n->e->p, k, true);
}

/* A parameter that is still read as a whole stays where it is: a step would have to be written
 * elsewhere first. */
static bool is_held(const ending *n, uint32_t x) {
    uint32_t k = n->e->held[x];
    return cot__value_origin(n->e->p, x) == COT__FROM_INPUT && k > n->product && !n->e->done[k];
}

/* Notes what makes operand x, if that is not there. */
static bool need_operand(ending *n, uint32_t x) {
    if (x == COT__NO_VALUE) return true;
    if (is_held(n, x)) return false;
    if (n->u->is_there(n->u->user, x)) return true;
    if (cot__value_origin(n->e->p, x) != COT__FROM_OPERATION || !n->u->is_free(n->u->user, x)) return false;
    uint32_t k = cot__value_maker(n->e->p, x);
    if (is_listed(n, k)) return true;
    if (n->listed == MOST) return false;
    n->list[n->listed++] = k;
    return true;
}

static bool can_follow(ending *n, uint32_t k, int64_t size) {
    const cot__program *p = n->e->p;
    const uint32_t     *x = cot__operation_operand(p, k);
    bool                member = cot__is_fusable(p, k);
    if (member ? cot__fused_size(p, k) != size : !can_be_view(n, k)) return false;
    n->more += member;
    if (n->members + n->more > COT__STAGE_RUNS) return false;
    for (int i = 0; i < cot__operation_operands(p, k); i++)
        if (!need_operand(n, x[i])) return false;
    return true;
}

static void sort(uint32_t *list, int n) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && list[j] < list[j - 1]; j--) {
            uint32_t k = list[j];
            list[j] = list[j - 1], list[j - 1] = k;
        }
}

static void put(ending *n, uint32_t k) {
    const cot__program *p = n->e->p;
    const uint32_t     *x = cot__operation_operand(p, k);
    bool                depends = false;
    for (int i = 0; i < cot__operation_operands(p, k); i++) depends |= x[i] != COT__NO_VALUE && is_made(n, x[i]);
    n->u->put(n->u->user, k);
    n->e->done[k] = 1;
    if (depends && n->values < MOST) n->made[n->values++] = p->operation[k].result;
}

/* A truth would be kept, and converted to bytes, for readers that are not there. */
static bool is_wanted(const ending *n, uint32_t k) {
    const cot__program *p = n->e->p;
    uint32_t            z = p->operation[k].result;
    if (cot__value_view(p, z).dtype == COT_BOOL) return false;
    return k - n->product <= NEAR || !n->e->onward[z];
}

/* Operation k with all that it needs, or nothing. */
static void put_reader(ending *n, uint32_t k, int64_t size) {
    if (!is_wanted(n, k)) return;
    n->list[0] = k;
    n->listed = 1;
    n->more = 0;
    for (int i = 0; i < n->listed; i++)
        if (n->e->done[n->list[i]] || !can_follow(n, n->list[i], size)) return;
    sort(n->list, n->listed);
    n->members += n->more;
    for (int i = 0; i < n->listed; i++) put(n, n->list[i]);
}

void cot__ends_put(cot__ends *e, uint32_t k, const cot__ends_user *u) {
    ending n = {.e = e, .u = u, .product = k, .values = 1};
    n.made[0] = e->p->operation[k].result;
    for (int i = 0; i < n.values; i++)
        for (uint32_t at = e->first[n.made[i]]; at != COT__NO_VALUE; at = e->next[at])
            if (!e->done[e->reader[at]]) put_reader(&n, e->reader[at], cot__fused_size(e->p, k));
}
