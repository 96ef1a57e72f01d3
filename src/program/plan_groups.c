/* plan_groups.c: where the results of a group lie. Its blocks are done in any order, by several
 * threads, so memory that one member reads or writes is another one's only where element i of the
 * one is element i of the other. */
#include "program/plan_parts.h"

static bool is_inside(const cot__planner *q, uint32_t v) { return q->plan->fusion.inside[v]; }
static bool is_member(const cot__planner *q, uint32_t k) { return q->plan->how[k] == COT__BY_GROUP; }

/* Has the view all elements of its root, in their order? */
static bool is_whole(const cot__planner *q, uint32_t v) {
    cot__view x = cot__plan_view(q->plan, v);
    uint32_t  root = q->plan->root[v];
    if (root == v && q->plan->stride[v] == COT__NO_VALUE) return true;
    return cot__is_contiguous(x.ndim, x.shape, x.stride) &&
           cot__planned_bytes(q->p, v) == cot__planned_bytes(q->p, root);
}

/* What is read so may not be written before the group is done. */
static void mark_scattered(cot__planner *q, uint32_t group) {
    const cot__group *g = &q->plan->fusion.group[group];
    for (uint32_t k = g->first; k < g->end; k++) {
        const uint32_t *x = cot__operation_operand(q->p, k);
        for (int i = 0; is_member(q, k) && i < cot__operation_operands(q->p, k); i++)
            if (x[i] != COT__NO_VALUE && !is_whole(q, x[i])) q->scattered[q->plan->root[x[i]]] = group + 1;
    }
}

/* Each thread has the part of a piece that belongs to its first block, which elements of another
 * size would count otherwise. */
static int free_piece(const cot__planner *q, int64_t bytes) {
    for (int i = 0; i < q->pieces; i++)
        if (q->piece[i].free && q->piece[i].bytes == bytes && q->piece[i].home == COT__NO_VALUE) return i;
    return -1;
}

/* Operands that operation k reads last let their pieces go; before the result is placed, those of
 * its type, where the result may take their place. */
static void let_pieces_go(cot__planner *q, uint32_t k, bool of_its_type) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    uint32_t        type = q->p->value[q->p->operation[k].result].type;
    for (int i = 0; i < cot__operation_operands(q->p, k); i++) {
        uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : q->plan->root[x[i]];
        if (root == COT__NO_VALUE || !is_inside(q, root) || q->last[root] != k) continue;
        if (of_its_type && q->p->value[root].type != type) continue;
        q->last[root] = COT__NO_VALUE;
        for (int j = 0; j < q->pieces; j++) q->piece[j].free |= q->piece[j].at == q->plan->place[root];
    }
}

/* May results of the group lie where this value lies, once the group has read an element? */
static bool may_be_written(const cot__planner *q, uint32_t v, uint32_t group) {
    return !is_inside(q, v) && q->plan->root[v] == v && !cot__in_slot(q->plan, v) && q->scattered[v] != group + 1 &&
           cot__value_origin(q->p, v) == COT__FROM_OPERATION;
}

/* The memory of a value that an earlier member has read last. */
static bool take_read(cot__planner *q, uint32_t k) {
    uint32_t z = q->p->operation[k].result;
    for (int i = 0; i < q->reads; i++) {
        if (cot__planned_bytes(q->p, q->read[i]) != cot__planned_bytes(q->p, z)) continue;
        q->plan->place[z] = q->plan->place[q->read[i]];
        q->last[q->read[i]] = COT__NO_VALUE;
        q->read[i] = q->read[--q->reads];
        return true;
    }
    return false;
}

static bool place_outside(cot__planner *q, uint32_t k, uint32_t group) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    for (int i = 0; i < cot__operation_operands(q->p, k); i++)
        if (x[i] != COT__NO_VALUE && may_be_written(q, x[i], group) && cot__plan_take_over(q, k, i)) return true;
    return take_read(q, k) || cot__plan_take_memory(q, q->p->operation[k].result);
}

static void note_reads(cot__planner *q, uint32_t k, uint32_t group) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    for (int i = 0; i < cot__operation_operands(q->p, k) && q->reads < COT__STAGE_RUNS; i++) {
        uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : q->plan->root[x[i]];
        bool     known = root == COT__NO_VALUE;
        for (int j = 0; j < q->reads && !known; j++) known = q->read[j] == root;
        if (!known && q->last[root] == k && may_be_written(q, root, group)) q->read[q->reads++] = root;
    }
}

/* Where a chain of inside values ends: each is read last by the operation that makes the next, and
 * all have one type. If the end is a result that leaves the group, the whole chain may lie there.
 * COT__NO_VALUE: it does not end so, or another chain lies there. */
static uint32_t home_of(const cot__planner *q, uint32_t v) {
    const cot__program *p = q->p;
    while (is_inside(q, v)) {
        uint32_t k = q->last[v], next = k < p->operations && is_member(q, k) ? p->operation[k].result : v;
        if (next == v || p->value[next].type != p->value[v].type) return COT__NO_VALUE;
        v = next;
    }
    for (int i = 0; i < q->pieces; i++)
        if (q->piece[i].home == v) return COT__NO_VALUE;
    return v;
}

/* The piece of the chain that comes to this operation, or one that is free. */
static int find_piece(const cot__planner *q, int64_t bytes) {
    for (int i = 0; i < q->pieces; i++)
        if (q->piece[i].free && q->piece[i].bytes == bytes && q->piece[i].home != COT__NO_VALUE) return i;
    return free_piece(q, bytes);
}

static bool new_piece(cot__planner *q, uint32_t k, uint32_t group) {
    uint32_t z = q->p->operation[k].result, home = home_of(q, z);
    int64_t  bytes = cot__planned_bytes(q->p, z), at;
    if (home != COT__NO_VALUE) {
        if (!place_outside(q, k, group)) return false;
        at = q->plan->place[z];
    } else if (!cot__plan_take_range(q, bytes, &at)) return false;
    q->piece[q->pieces].at = at;
    q->piece[q->pieces].bytes = bytes;
    q->piece[q->pieces++].home = home;
    return true;
}

static bool place_inside(cot__planner *q, uint32_t k, uint32_t group) {
    uint32_t z = q->p->operation[k].result;
    let_pieces_go(q, k, true);
    int i = find_piece(q, cot__planned_bytes(q->p, z));
    if (i < 0) {
        i = q->pieces;
        if (!new_piece(q, k, group)) return false;
    }
    q->piece[i].free = false;
    q->plan->place[z] = q->piece[i].at;
    if (q->piece[i].home != COT__NO_VALUE) q->plan->fusion.inside[z] = COT__INSIDE_AT_HOME;
    return true;
}

/* Where the chain lies that ends here; nothing else of the group may lie there. */
static bool come_home(cot__planner *q, uint32_t z) {
    for (int i = 0; i < q->pieces; i++) {
        if (q->piece[i].home != z) continue;
        q->plan->place[z] = q->piece[i].at;
        q->piece[i].bytes = -1;
        return true;
    }
    return false;
}

static bool place_member(cot__planner *q, uint32_t k, uint32_t group) {
    uint32_t z = q->p->operation[k].result;
    bool     placed = is_inside(q, z) ? place_inside(q, k, group) : come_home(q, z) || place_outside(q, k, group);
    q->plan->runs++;
    let_pieces_go(q, k, false);
    note_reads(q, k, group);
    return placed;
}

/* The members, as bits in their order, that make or read the value. */
static uint32_t members_with(const cot__planner *q, const cot__group *g, uint32_t v) {
    uint32_t members = 0, bit = 1;
    for (uint32_t k = g->first; k < g->end; k++) {
        const uint32_t *x = cot__operation_operand(q->p, k);
        bool            has = q->p->operation[k].result == v;
        if (!is_member(q, k)) continue;
        for (int i = 0; i < cot__operation_operands(q->p, k); i++)
            has |= x[i] != COT__NO_VALUE && q->plan->root[x[i]] == v;
        members |= has ? bit : 0;
        bit <<= 1;
    }
    return members;
}

/* A stage takes COT__STAGE_MOVED members with such values. Those of others have whole arrays
 * anyway, and use them. */
static void limit_moved(const cot__planner *q, const cot__group *g) {
    uint32_t all = 0;
    for (uint32_t k = g->first; k < g->end; k++) {
        uint8_t *inside = &q->plan->fusion.inside[q->p->operation[k].result];
        if (!is_member(q, k) || *inside != COT__INSIDE) continue;
        uint32_t more = all | members_with(q, g, q->p->operation[k].result);
        if (__builtin_popcount(more) <= COT__STAGE_MOVED) all = more;
        else *inside = COT__INSIDE_AT_HOME;
    }
}

/* Nothing is given back before the group is done: its blocks come in any order. */
bool cot__plan_group(cot__planner *q, uint32_t group) {
    const cot__group *g = &q->plan->fusion.group[group];
    q->plan->jobs++;
    q->pieces = q->reads = 0;
    mark_scattered(q, group);
    for (uint32_t k = g->first; k < g->end; k++)
        if (is_member(q, k) && !place_member(q, k, group)) return false;
    limit_moved(q, g);
    for (int i = 0; i < q->pieces; i++)
        if (q->piece[i].home == COT__NO_VALUE && !cot__plan_give_range(q, q->piece[i].at, q->piece[i].bytes))
            return false;
    for (uint32_t k = g->first; k < g->end; k++) {
        uint32_t z = q->p->operation[k].result;
        if (is_inside(q, z)) q->last[z] = COT__NO_VALUE;
    }
    for (uint32_t k = g->first; k < g->end; k++)
        if (!cot__plan_let_operands_go(q, k) ||
            (is_member(q, k) && !cot__plan_let_go(q, q->p->operation[k].result, k)))
            return false;
    return true;
}
