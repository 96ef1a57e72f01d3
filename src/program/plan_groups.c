/* plan_groups.c: where the results of a group lie. Its blocks are done in any order, by several
 * threads, so memory that one member reads or writes is another one's only where element i of the
 * one is element i of the other. */
#include "program/plan_parts.h"
#include "backend/elements.h"

static bool is_inside(const cot__planner *q, uint32_t v) { return q->plan->fusion.inside[v]; }
static bool is_member(const cot__planner *q, uint32_t k) { return q->plan->how[k] == COT__BY_GROUP; }
static bool is_fold(const cot__planner *q, uint32_t k) {
    return is_member(q, k) && cot__is_fold(q->p, k);
}
static bool is_row_number(const cot__planner *q, uint32_t k) {
    return is_member(q, k) && cot__is_row_number(&q->plan->fusion, q->p, k);
}
static bool is_on_rows(const cot__planner *q, uint32_t k) {
    return is_member(q, k) && cot__rows_read(q->p, k) > 0;
}

bool cot__plan_is_whole(const cot__planner *q, uint32_t v) {
    cot__view x = cot__plan_view(q->plan, v);
    uint32_t  root = q->plan->root[v];
    if (root == v && q->plan->stride[v] == COT__NO_VALUE) return true;
    return cot__is_contiguous(x.ndim, x.shape, x.stride) &&
           cot__planned_bytes(q->p, v) == cot__planned_bytes(q->p, root);
}

bool cot__plan_does_more(const cot__planner *q, uint32_t k) {
    const cot__fusion *f = &q->plan->fusion;
    return f->group[f->of[k]].spans && (f->span[k].before + f->span[k].after > 0 || cot__is_patch(q->p, k));
}

bool cot__plan_reads_more(const cot__planner *q, uint32_t k) {
    return cot__is_product(q->p, k) || cot__plan_does_more(q, k);
}

/* Does member k read operand i for every block? */
static bool is_for_all_rows(const cot__planner *q, uint32_t k, int i) {
    return is_on_rows(q, k) && i >= cot__rows_read(q->p, k);
}

/* What is read so, or for elements beyond a block, may not be written before the group is done. */
static void mark_scattered(cot__planner *q, uint32_t group) {
    const cot__group *g = &q->plan->fusion.group[group];
    for (uint32_t k = g->first; k < g->end; k++) {
        const uint32_t *x = cot__operation_operand(q->p, k);
        for (int i = 0; is_member(q, k) && i < cot__operation_operands(q->p, k); i++)
            if (x[i] != COT__NO_VALUE &&
                (!cot__plan_is_whole(q, x[i]) || cot__plan_reads_more(q, k) || is_for_all_rows(q, k, i)))
                q->scattered[q->plan->root[x[i]]] = group + 1;
    }
}

/* Is operand i read after elements of the result are written: what is patched in, or another view
 * of it, or rows? The result must not lie on that. */
static bool is_read_later(const cot__planner *q, uint32_t k, int i) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    return is_on_rows(q, k) || (cot__is_patch(q->p, k) && q->plan->root[x[i]] == q->plan->root[x[1]]);
}

static int element_bytes(const cot__planner *q, uint32_t v) {
    return cot__dtype_size(cot__inside_dtype(&q->plan->fusion, q->p, v));
}
static int64_t piece_bytes(const cot__planner *q, uint32_t v) {
    cot__view x = cot__value_view(q->p, v);
    return cot__view_size(&x) * element_bytes(q, v);
}

/* Each thread has the part of a piece that belongs to its first block, which elements of another
 * size would count otherwise. */
static int free_piece(const cot__planner *q, uint32_t v, bool at_home) {
    bool moves = q->plan->fusion.inside[v] == COT__INSIDE_AS_NUMBER;
    for (int i = 0; i < q->pieces; i++)
        if (q->piece[i].free && q->piece[i].bytes == piece_bytes(q, v) && !(moves && q->piece[i].whole) &&
            q->piece[i].element == element_bytes(q, v) && (q->piece[i].home != COT__NO_VALUE) == at_home)
            return i;
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
        if (of_its_type && (q->p->value[root].type != type || is_read_later(q, k, i))) continue;
        q->last[root] = COT__NO_VALUE;
        for (int j = 0; j < q->pieces; j++) q->piece[j].free |= q->piece[j].at == q->plan->place[root];
    }
}

/* May results of the group lie where this value lies, once the group has read an element? */
static bool may_be_written(const cot__planner *q, uint32_t v, uint32_t group) {
    return !is_inside(q, v) && !cot__is_in_file(q->plan, v) && q->plan->root[v] == v && !cot__in_slot(q->plan, v) &&
           q->scattered[v] != group + 1 && cot__value_origin(q->p, v) == COT__FROM_OPERATION;
}

/* Has each element of the one the place of an element of the other? Members that read ranges have
 * several sizes, of which two may take as many bytes in other dtypes. */
static bool lie_alike(const cot__planner *q, uint32_t v, uint32_t z) {
    return cot__planned_bytes(q->p, v) == cot__planned_bytes(q->p, z) &&
           cot__dtype_size(cot__value_view(q->p, v).dtype) == cot__dtype_size(cot__value_view(q->p, z).dtype);
}

/* The memory of a value that an earlier member has read last. */
static bool take_read(cot__planner *q, uint32_t k) {
    uint32_t z = q->p->operation[k].result;
    for (int i = 0; i < q->reads && !cot__plan_is_callers(q, z); i++) {
        if (!lie_alike(q, q->read[i], z)) continue;
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
        if (x[i] != COT__NO_VALUE && !is_read_later(q, k, i) && may_be_written(q, x[i], group) &&
            cot__plan_take_over(q, k, i))
            return true;
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

/* Must the value, which operation k reads last, lie in a piece of its own? Several blocks make some
 * of its elements, or k reads it while it writes others, or it lies there as another dtype. */
static bool lives_in_blocks(const cot__planner *q, uint32_t v, uint32_t k) {
    const uint32_t *x = cot__operation_operand(q->p, k);
    if (cot__plan_does_more(q, cot__value_maker(q->p, v)) || cot__plan_does_more(q, k)) return true;
    if (q->plan->fusion.inside[v] == COT__INSIDE_AS_NUMBER) return true;
    return is_on_rows(q, k) || (cot__is_patch(q->p, k) && cot__operation_operands(q->p, k) > 1 &&
                                q->plan->root[x[1]] == v);
}

/* Where a chain of inside values ends: each is read last by the operation that makes the next, and
 * all have one type. If the end is a result that leaves the group, the whole chain may lie there.
 * COT__NO_VALUE: it does not end so, or another chain lies there, or the caller has the memory. */
static uint32_t home_of(const cot__planner *q, uint32_t v) {
    const cot__program *p = q->p;
    while (is_inside(q, v)) {
        uint32_t k = q->last[v], next = k < p->operations && is_member(q, k) ? p->operation[k].result : v;
        if (next == v || p->value[next].type != p->value[v].type || lives_in_blocks(q, v, k)) return COT__NO_VALUE;
        v = next;
    }
    for (int i = 0; i < q->pieces; i++)
        if (q->piece[i].home == v) return COT__NO_VALUE;
    return cot__direct_of(&q->plan->directs, v) == COT__NO_VALUE ? v : COT__NO_VALUE;
}

/* The piece of the chain that comes to this operation, or one that is free. */
static int find_piece(const cot__planner *q, uint32_t v) {
    int i = free_piece(q, v, true);
    return i >= 0 ? i : free_piece(q, v, false);
}

static bool new_piece(cot__planner *q, uint32_t k, uint32_t group) {
    uint32_t z = q->p->operation[k].result, home = home_of(q, z);
    int64_t  bytes = piece_bytes(q, z), room = q->room * element_bytes(q, z), at;
    int64_t  taken = (q->room && room < bytes && !cot__is_product(q->p, k) ? room : bytes) + q->lead;
    if (home != COT__NO_VALUE) {
        if (!place_outside(q, k, group)) return false;
        at = q->plan->place[z];
    } else if (!cot__plan_take_range(q, taken, &at)) return false;
    else at += q->lead;
    q->piece[q->pieces].at = at;
    q->piece[q->pieces].bytes = bytes;
    q->piece[q->pieces].taken = taken;
    q->piece[q->pieces].element = element_bytes(q, z);
    q->piece[q->pieces].whole = home != COT__NO_VALUE || cot__is_product(q->p, k);
    q->piece[q->pieces++].home = home;
    return true;
}

static bool place_inside(cot__planner *q, uint32_t k, uint32_t group) {
    uint32_t z = q->p->operation[k].result;
    let_pieces_go(q, k, true);
    int i = find_piece(q, z);
    if (i < 0) {
        i = q->pieces;
        if (!new_piece(q, k, group)) return false;
    }
    q->piece[i].free = false;
    q->plan->place[z] = q->piece[i].at;
    if (q->piece[i].whole) q->plan->fusion.inside[z] = COT__INSIDE_AT_HOME;
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

static int64_t node_bytes(const cot__planner *q, uint32_t k) {
    return cot__fold_row(q->p, k) ? 0 : 8 * cot__fold_blocks(cot__fused_size(q->p, k));
}

/* The result and the nodes of a fold. */
static bool place_fold(cot__planner *q, uint32_t k) {
    q->plan->folds++;
    let_pieces_go(q, k, false);
    if (!cot__plan_take_memory(q, q->p->operation[k].result)) return false;
    return node_bytes(q, k) == 0 || cot__plan_take_range(q, node_bytes(q, k), &q->plan->workspace[k]);
}

/* What runs as a job on the rows of a block. */
static void count_rows(cot__planner *q, uint32_t k) {
    q->plan->folds++, q->plan->rows++;
    q->plan->views += (uint32_t)cot__operation_operands(q->p, k) + q->p->operation[k].results - 1;
}

static bool place_row_number(cot__planner *q, uint32_t k) {
    count_rows(q, k);
    return cot__plan_take_memory(q, q->p->operation[k].result);
}

static bool place_member(cot__planner *q, uint32_t k, uint32_t group) {
    uint32_t z = q->p->operation[k].result;
    bool     placed = is_inside(q, z) ? place_inside(q, k, group) : come_home(q, z) || place_outside(q, k, group);
    if (cot__is_product(q->p, k)) q->plan->products++;
    else if (is_on_rows(q, k)) {
        count_rows(q, k);
        placed = placed && cot__plan_take_more(q, k);
    }
    else q->plan->runs += cot__is_patch(q->p, k) ? COT__PATCH_RUNS : 1;
    let_pieces_go(q, k, false);
    note_reads(q, k, group);
    return placed;
}

/* Its sums of depth blocks lie in an array of its own, unless it is at home. */
static void note_product(cot__planner *q, const cot__group *g) {
    uint32_t z = q->p->operation[g->first].result;
    if (cot__ends_product(g) && is_inside(q, z) && q->piece[0].home == COT__NO_VALUE) q->plan->fusion.inside[z] = 0;
}

/* A device may work on all blocks at once, and what neighbouring blocks make twice lies in their
 * places. Of short arrays each block may have a part of the work to itself. */
int64_t cot__group_room(const cot__plan *plan, const cot__group *g) {
    if (!cot__on_host(plan->backend) || g->spans || g->size < COT__STAGE_ROOM / 2) return 0;
    return g->size / 2 < COT__STAGE_ROOM ? g->size / 2 : COT__STAGE_ROOM;
}

/* Nothing is given back before the group is done: its blocks come in any order. */
bool cot__plan_group(cot__planner *q, uint32_t group) {
    const cot__group *g = &q->plan->fusion.group[group];
    int64_t           room = cot__ends_product(g) ? q->plan->workspace[g->first] : -1; /* bytes */
    if (room > 0 && !cot__plan_take_range(q, room, &q->plan->workspace[g->first])) return false;
    q->plan->jobs++;
    q->pieces = q->reads = 0;
    q->lead = g->spans ? 8 * COT__MOST_AGAIN : 0;
    q->room = cot__group_room(q->plan, g);
    mark_scattered(q, group);
    for (uint32_t k = g->first; k < g->end; k++)
        if (is_member(q, k) && !(is_fold(q, k)         ? place_fold(q, k)
                                 : is_row_number(q, k) ? place_row_number(q, k)
                                                       : place_member(q, k, group)))
            return false;
    for (uint32_t k = g->first; k < g->end; k++)
        if (is_fold(q, k) && node_bytes(q, k) &&
            !cot__plan_give_range(q, q->plan->workspace[k], node_bytes(q, k)))
            return false;
    if (room > 0 && !cot__plan_give_range(q, q->plan->workspace[g->first], room)) return false;
    for (int i = 0; i < q->pieces; i++)
        if (q->piece[i].home == COT__NO_VALUE &&
            !cot__plan_give_range(q, q->piece[i].at - q->lead, q->piece[i].taken))
            return false;
    for (uint32_t k = g->first; k < g->end; k++) {
        uint32_t z = q->p->operation[k].result;
        if (is_inside(q, z)) q->last[z] = COT__NO_VALUE;
    }
    for (uint32_t k = g->first; k < g->end; k++)
        if (!cot__plan_let_operands_go(q, k) ||
            (is_member(q, k) && !cot__plan_let_results_go(q, k)))
            return false;
    note_product(q, g);
    return true;
}
