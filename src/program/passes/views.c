/* views.c: operations that move elements, or nothing at all.
 *
 *   copy, detach, alias            are their operand: a value of a program is never written again
 *   pad, concat, slice, …          of which nothing comes but the operand itself: by its type a
 *                                  reshape, broadcast, padding or joining of one has no more to do;
 *                                  a permutation that is in order; a slice of all
 *   reshape of reshape             the last one; so of broadcasts
 *   permute of permute             one in the order of both
 *   permute of reshape             the reshape, if only axes of extent 1 are moved
 *   slice of slice                 one, on the same axis
 *   cast of cast                   the last one, if the first one keeps every number (to a wider
 *                                  dtype): both round the same number. Back to where it came from:
 *                                  nothing */
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

enum { AXIS, FIRST, LENGTH, STEP, DROP, SLICE_INTS }; /* attributes of a slice */

/* Attributes that are made here: the builder copies them. */
typedef union made_attr {
    cot__attr attr;
    char      room[sizeof(cot__attr) + COT_MAX_NDIM * sizeof(int64_t)];
} made_attr;

static bool is_operand(int op) { return op == OP_copy || op == OP_detach || op == OP_alias; }

/* Does a result of the operand's type have the operand's elements? */
static bool is_told_by_type(int op) {
    return op == OP_reshape || op == OP_broadcast_to || op == OP_cast || op == OP_pad || op == OP_concat;
}

static bool is_in_order(const cot__attr *a) {
    for (uint32_t k = 0; k < a->nints; k++)
        if (a->ints[k] != k) return false;
    return true;
}

static bool does_nothing(const cot__rewrite *r, uint32_t k, const cot__append *o) {
    bool same = o->n == 1 && cot__same_type(r->to.p, o->x[0], r->from, r->from->operation[k].result);
    if (!same) return false;
    return is_operand(o->op) || is_told_by_type(o->op) || (o->op == OP_permute && is_in_order(o->attr)) ||
           (o->op == OP_slice && o->attr->ints[STEP] == 1);
}

/* ---- two in one ------------------------------------------------------------------------------ */

/* Can every number of dtype a be one of dtype b? 255 has 8 bits, as many as bf16 keeps. */
static bool keeps_numbers(cot_dtype a, cot_dtype b) {
    switch (a) {
    case COT_BOOL: return true;
    case COT_U8: return b != COT_BOOL;
    case COT_I32: return b == COT_I64 || b == COT_F64;
    case COT_F16:
    case COT_BF16: return b == COT_F32 || b == COT_F64;
    case COT_F32: return b == COT_F64;
    default: return false;
    }
}

/* Attributes of the operation that makes operand 0 of the new program. */
static const cot__attr *attr_before(const cot__rewrite *r, const cot__append *o) {
    return cot__operation_attr(r->to.p, cot__maker_of(r->to.p, o->x[0]));
}

static bool join_permutes(const cot__rewrite *r, cot__append *o, made_attr *made) {
    const cot__attr *before = attr_before(r, o);
    made->attr = (cot__attr){.nints = o->attr->nints};
    for (uint32_t k = 0; k < made->attr.nints; k++) made->attr.ints[k] = before->ints[o->attr->ints[k]];
    o->attr = &made->attr;
    return true;
}

static bool join_slices(const cot__rewrite *r, cot__append *o, made_attr *made) {
    const int64_t *a = attr_before(r, o)->ints, *b = o->attr->ints;
    if (a[AXIS] != b[AXIS] || a[DROP]) return false;
    int64_t both[SLICE_INTS] = {a[AXIS], a[FIRST] + b[FIRST] * a[STEP], b[LENGTH], a[STEP] * b[STEP], b[DROP]};
    if (b[LENGTH] < 2) both[STEP] = 1; /* as slices of one element and of none are written */
    if (b[LENGTH] == 0) both[FIRST] = 0;
    made->attr = (cot__attr){.nints = SLICE_INTS};
    memcpy(made->attr.ints, both, sizeof both);
    o->attr = &made->attr;
    return true;
}

/* Do all elements stay in their order? */
static bool moves_ones(const cot__program *p, const cot__append *o) {
    cot__view x = cot__value_view(p, o->x[0]);
    int64_t   last = -1;
    for (uint32_t k = 0; k < o->attr->nints; k++) {
        if (x.shape[o->attr->ints[k]] == 1) continue;
        if (o->attr->ints[k] < last) return false;
        last = o->attr->ints[k];
    }
    return true;
}

/* Makes one operation of this one and the one before it, of the same kind, which reads `of`. */
static bool join(const cot__rewrite *r, cot__append *o, uint32_t of, made_attr *made) {
    const cot__program *p = r->to.p;
    switch (o->op) {
    case OP_reshape:
    case OP_broadcast_to: return true;
    case OP_cast: return keeps_numbers(cot__value_view(p, of).dtype, cot__value_view(p, o->x[0]).dtype);
    case OP_permute: return join_permutes(r, o, made);
    case OP_slice: return join_slices(r, o, made);
    default: return false;
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void edit_operation(cot__rewrite *r, uint32_t k) {
    cot__type   asked;
    made_attr   made;
    uint32_t    of;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    if (o.op == OP_permute && cot__made_by(r->to.p, o.x[0], OP_reshape, &of) && moves_ones(r->to.p, &o)) {
        o.op = OP_reshape;
        o.attr = NULL;
        o.name = "reshape";
    }
    if (o.n == 1 && o.op >= OP_structural && cot__made_by(r->to.p, o.x[0], o.op, &of) && join(r, &o, of, &made)) {
        r->x[0] = of;
        r->changes++;
    }
    if (does_nothing(r, k, &o)) cot__rewrite_replace(r, k, o.x[0]);
    else cot__rewrite_put(r, k, &o);
}

cot__program *cot__pass_views(const cot__program *p, const cot__pass_options *o) {
    return cot__rewrite_run(p, o, &(cot__edit){.operation = edit_operation});
}
