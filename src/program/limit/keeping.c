/* keeping.c: see keeping.h. A choice looks at all that is kept, and at the neighbours of each: with
 * some hundred values that are large enough to matter this is little. */
#include "program/limit/keeping.h"
#include "base/file/store.h"

#include <float.h>
#include <string.h>

bool cot__keeping_open(cot__keeping *q, const cot__units *u, int64_t budget, bool spills) {
    size_t n = u->p->values;
    *q = (cot__keeping){.u = u, .budget = budget, .spills = spills};
    q->state = cot__alloc(&u->al, n);
    q->price = cot__alloc(&u->al, 2 * n * sizeof *q->price);
    q->wanted = cot__alloc(&u->al, 4 * n * sizeof *q->wanted);
    if (!q->state || !q->price || !q->wanted) return cot__keeping_close(q), false;
    q->burden = q->price + n;
    q->next = q->wanted + n;
    q->place = q->next + n;
    q->list = q->place + n;
    memset(q->state, 0, n);
    memset(q->wanted, 0, n * sizeof *q->wanted);
    for (size_t v = 0; v < n; v++) q->next[v] = u->read[v], q->place[v] = COT__NO_VALUE, q->price[v] = q->burden[v] = 0;
    return true;
}

void cot__keeping_close(cot__keeping *q) {
    size_t n = q->u->p->values;
    cot__free(&q->u->al, q->state, n);
    cot__free(&q->u->al, q->price, 2 * n * sizeof *q->price);
    cot__free(&q->u->al, q->wanted, 4 * n * sizeof *q->wanted);
    *q = (cot__keeping){.u = q->u};
}

bool cot__keeping_is_over(const cot__keeping *q, uint32_t root) { return q->next[root] == q->u->read[root + 1]; }

void cot__keeping_passed(cot__keeping *q, uint32_t root) {
    if (!cot__keeping_is_over(q, root) && q->u->reader[q->next[root]] == q->now) q->next[root]++;
}

/* ---- what it costs to make a value again ----------------------------------------------------- */

static bool is_gone(const cot__keeping *q, uint32_t root) {
    return (q->state[root] & (COT__HERE | COT__MADE | COT__FILED)) == COT__MADE;
}

static bool is_filed(const cot__keeping *q, uint32_t root) { return q->state[root] & COT__FILED; }

/* Of what is not here: what it cost to make it when it was looked at last, or what it costs to read
 * it. */
static double known_price(const cot__keeping *q, uint32_t x) {
    if (cot__is_here(q, x)) return 0;
    return is_filed(q, x) ? (double)COT__READ_BYTE * (double)q->u->bytes[x] : q->price[x];
}

/* Of its unit, and of the dearest that this reads and that is not there. What these cost themselves
 * was found when they were looked at last. */
static double price_by(const cot__keeping *q, uint32_t v) {
    const cot__units *u = q->u;
    const cot__unit  *maker = &u->unit[cot__unit_of(u, v)];
    double            dearest = 0;
    for (uint32_t i = maker->reads; i < maker[1].reads; i++) {
        double price = known_price(q, u->reads[i]);
        if (price > dearest) dearest = price;
    }
    return maker->work + dearest;
}

/* The same, after looking at these once more. */
static double price(cot__keeping *q, uint32_t v) {
    const cot__units *u = q->u;
    const cot__unit  *maker = &u->unit[cot__unit_of(u, v)];
    for (uint32_t i = maker->reads; i < maker[1].reads; i++)
        if (is_gone(q, u->reads[i])) q->price[u->reads[i]] = price_by(q, u->reads[i]);
    return price_by(q, v);
}

/* The dearest that is not there, is still read, and is made of it: without it that takes longer. */
static double burden_by(const cot__keeping *q, uint32_t v) {
    const cot__units *u = q->u;
    double            dearest = 0;
    for (uint32_t i = u->read[v]; i < u->read[v + 1] && u->reader[i] < u->count; i++)
        for (uint32_t k = u->unit[u->reader[i]].made; k < u->unit[u->reader[i] + 1].made; k++) {
            uint32_t z = u->made[k];
            double   more = q->burden[z] + u->unit[u->reader[i]].work;
            if (is_gone(q, z) && !cot__keeping_is_over(q, z) && more > dearest) dearest = more;
        }
    return dearest;
}

static double burden(cot__keeping *q, uint32_t v) {
    const cot__units *u = q->u;
    for (uint32_t i = u->read[v]; i < u->read[v + 1] && u->reader[i] < u->count; i++)
        for (uint32_t k = u->unit[u->reader[i]].made; k < u->unit[u->reader[i] + 1].made; k++)
            if (is_gone(q, u->made[k])) q->burden[u->made[k]] = burden_by(q, u->made[k]);
    return burden_by(q, v);
}

enum { LEAST_FILED = 4096 }; /* less is not worth a step of its own */

/* DBL_MAX: it cannot be moved. */
static double price_to_move(const cot__keeping *q, uint32_t v) {
    int64_t bytes = q->u->bytes[v];
    if (!q->spills || bytes < LEAST_FILED) return DBL_MAX;
    return (double)bytes * (is_filed(q, v) ? COT__READ_BYTE : COT__WRITE_BYTE + COT__READ_BYTE);
}

/* Is a donated input written over, that it is made from, before it is read next? */
static bool is_too_late(const cot__keeping *q, uint32_t v) {
    return !cot__keeping_is_over(q, v) && q->u->reader[q->next[v]] > q->u->latest[v];
}

/* Of letting it go while it is still of use. DBL_MAX: it may not be made twice, or cannot be. */
static double price_to_make(cot__keeping *q, uint32_t v) {
    bool stays = q->u->unit[cot__unit_of(q->u, v)].once || is_too_late(q, v);
    return stays ? DBL_MAX : price(q, v) + burden(q, v);
}

/* Is something made of the value that is still to be read? */
static bool is_useful(const cot__keeping *q, uint32_t v) {
    const cot__units *u = q->u;
    for (uint32_t i = u->read[v]; i < u->read[v + 1] && u->reader[i] < u->count; i++)
        for (uint32_t k = u->unit[u->reader[i]].made; k < u->unit[u->reader[i] + 1].made; k++)
            if (!cot__keeping_is_over(q, u->made[k])) return true;
    return false;
}

/* All outputs lie in memory together in the end, so they stay. */
static bool is_output(const cot__units *u, uint32_t root) {
    return u->read[root] < u->read[root + 1] && u->reader[u->read[root + 1] - 1] == u->count;
}

/* ---- what is here ---------------------------------------------------------------------------- */

void cot__keeping_put(cot__keeping *q, uint32_t root) {
    if (q->state[root] & COT__HERE) return;
    q->state[root] |= COT__HERE | COT__MADE;
    q->used += q->u->bytes[root];
    if (!q->u->bytes[root] || is_output(q->u, root)) return;
    q->place[root] = q->listed;
    q->list[q->listed++] = root;
}

void cot__keeping_drop(cot__keeping *q, uint32_t root) {
    if (q->place[root] == COT__NO_VALUE) return;
    bool filed = price_to_move(q, root) < price_to_make(q, root);
    q->state[root] = (uint8_t)(filed ? q->state[root] | COT__FILED : q->state[root] & ~COT__FILED);
    q->price[root] = price(q, root);
    q->burden[root] = burden(q, root);
    q->state[root] &= (uint8_t)~COT__HERE;
    q->used -= q->u->bytes[root];
    q->list[q->place[root]] = q->list[--q->listed];
    q->place[q->list[q->place[root]]] = q->place[root];
    q->place[root] = COT__NO_VALUE;
}

/* The lower, the sooner it goes; DBL_MAX: it stays. */
static double score(cot__keeping *q, uint32_t v) {
    bool over = cot__keeping_is_over(q, v), once = q->u->unit[cot__unit_of(q->u, v)].once;
    if (q->wanted[v]) return DBL_MAX;
    if (once ? q->u->until[v] < q->now : over && !is_useful(q, v)) return 0;
    double make = price_to_make(q, v), move = price_to_move(q, v), least = move < make ? move : make;
    if (least == DBL_MAX) return DBL_MAX;
    uint32_t when = over ? q->u->count + q->now : q->u->reader[q->next[v]];
    return least / ((double)q->u->bytes[v] * (when - q->now + 1.0));
}

void cot__keeping_make_room(cot__keeping *q, int64_t bytes) {
    while (q->used + bytes > q->budget) {
        uint32_t best = COT__NO_VALUE;
        double   least = DBL_MAX;
        for (uint32_t i = 0; i < q->listed && least > 0; i++) {
            double s = score(q, q->list[i]);
            if (s < least) least = s, best = q->list[i];
        }
        if (best == COT__NO_VALUE) return;
        cot__keeping_drop(q, best);
    }
}
