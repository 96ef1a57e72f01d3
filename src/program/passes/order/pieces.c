/* pieces.c: an array that is put together from pieces, and then read permuted as one row of
 * memory, is put together permuted. A part of the pass turns.
 *
 *   permute(add_slice(x, v))    is add_slice(permute(x), permute(v)) on the axis that this becomes
 *
 * The gradient of what was permuted and cut (the queries, keys and values of attention) is made so:
 * zeros, to which pieces are added. A permutation of the whole is a copy where it is reshaped or
 * given out; that of a piece is a view, and zeros are the same in any order. So it goes down a
 * chain of pieces, of which nobody else reads any, to a number repeated. */
#include "program/passes/makers.h"
#include "program/passes/order/pieces.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Of a value of the old program: how often it is read, outputs too; the last operation that does;
 * and the permutation that it is made in, or COT__NO_VALUE. */
typedef struct seen { uint32_t readers, reader, order; } seen;

static bool is_piece(int op) { return op == OP_add_slice || op == OP_update_slice; }

/* Is permutation k a copy: given out, or read by a reshape alone? */
static bool copies(const cot__program *p, const seen *of, uint32_t k) {
    const seen *z = &of[p->operation[k].result];
    return z->reader == COT__NO_VALUE ? z->readers > 0
                                      : z->readers == 1 && p->operation[z->reader].op == OP_reshape;
}

/* The permutation in which the result of operation k is wanted, by its one reader. */
static uint32_t wanted(const cot__program *p, const seen *of, uint32_t k) {
    uint32_t z = p->operation[k].result, reader = of[z].reader;
    if (!is_piece(p->operation[k].op) || of[z].readers != 1 || reader == COT__NO_VALUE) return COT__NO_VALUE;
    if (p->operation[reader].op == OP_permute) return copies(p, of, reader) ? reader : COT__NO_VALUE;
    bool goes_on = is_piece(p->operation[reader].op) && cot__operation_operand(p, reader)[0] == z;
    return goes_on ? of[p->operation[reader].result].order : COT__NO_VALUE;
}

/* Found from the last reader back; then, from the first piece on, only chains are kept that begin
 * with a number repeated. */
static bool look_around(const cot__program *p, seen *of) {
    bool some = false;
    for (uint32_t v = 0; v < p->values; v++) of[v] = (seen){0, COT__NO_VALUE, COT__NO_VALUE};
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        for (int i = 0; i < cot__operation_operands(p, k); i++) {
            if (x[i] == COT__NO_VALUE) continue;
            of[x[i]].readers++;
            of[x[i]].reader = k;
        }
    }
    for (uint32_t k = 0; k < p->outputs; k++) of[p->output[k]].readers++;
    for (uint32_t k = p->operations; k-- > 0;) of[p->operation[k].result].order = wanted(p, of, k);
    for (uint32_t k = 0; k < p->operations; k++) {
        seen    *z = &of[p->operation[k].result];
        uint32_t of_base, base;
        if (z->order == COT__NO_VALUE) continue;
        base = cot__operation_operand(p, k)[0];
        if (of[base].order == COT__NO_VALUE && !cot__made_by(p, base, OP_broadcast_to, &of_base))
            z->order = COT__NO_VALUE;
        some |= z->order != COT__NO_VALUE;
    }
    return some;
}

/* A value of the new program, as permutation `order` of the old one has it. */
static uint32_t permuted(cot__rewrite *r, uint32_t v, uint32_t order, const cot__append *o) {
    return cot__build_operation(&r->to, &(cot__append){.op = OP_permute, .n = 1, .x = &v,
                                                       .attr = cot__operation_attr(r->from, order), .name = "permute",
                                                       .file = o->file, .line = o->line});
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    const seen     *of = r->edit->state;
    const uint32_t *old = cot__operation_operand(r->from, k);
    uint32_t        order = of[r->from->operation[k].result].order;
    union { cot__attr attr; char room[sizeof(cot__attr) + 4 * sizeof(int64_t)]; } made;
    cot__type   asked;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    if (o.op == OP_permute && of[old[0]].order == k) {
        cot__rewrite_replace(r, k, r->x[0]);
        return;
    }
    if (order != COT__NO_VALUE) {
        const cot__attr *by = cot__operation_attr(r->from, order);
        memcpy(&made, o.attr, sizeof(cot__attr) + o.attr->nints * sizeof(int64_t));
        for (uint32_t a = 0; a < by->nints; a++)
            if (by->ints[a] == o.attr->ints[0]) made.attr.ints[0] = a;
        o.attr = &made.attr;
        if (of[old[0]].order == COT__NO_VALUE) r->x[0] = permuted(r, r->x[0], order, &o);
        r->x[1] = permuted(r, r->x[1], order, &o);
        r->changes++;
    }
    if (!r->to.failed) cot__rewrite_put(r, k, &o);
}

cot__program *cot__put_together_permuted(const cot__program *p, const cot__pass_options *o) {
    size_t        bytes = p->values * sizeof(seen);
    seen         *of = cot__alloc(o->al, bytes);
    cot__edit     how = {.state = of, .operation = edit_operation};
    cot__program *made = NULL;
    if (!of) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes), NULL;
    made = look_around(p, of) ? cot__rewrite_run(p, o, &how) : cot__program_share(p);
    cot__free(o->al, of, bytes);
    return made;
}
