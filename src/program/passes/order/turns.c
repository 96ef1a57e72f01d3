/* turns.c: a matrix that is read turned alone is made turned; and see pieces.c.
 *
 *   permute(matmul(a, b))    is matmul(bᵀ, aᵀ), bit for bit, as a product of numbers commutes
 *   permute(f(x, y))         is f(xᵀ, yᵀ), elementwise
 *
 * Then the turned matrix lies in the order in which it is read: an output needs no copy, a sum runs
 * along memory, and what is done to it element by element is the end of its product. Where a
 * product reads a transpose, that is a view and costs nothing; so this begins at transposes that
 * somebody else reads, and goes up through operations whose one reader wants their result turned,
 * as long as that turns no operand back: of an elementwise operation each must itself be turned, a
 * transpose, a broadcast or a number; of a product one is a transpose. */
#include "program/passes/makers.h"
#include "program/passes/order/pieces.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Of a value of the old program. */
typedef struct seen {
    uint32_t readers, reader; /* how often it is read, outputs too; the last operation that does */
    bool     bare;            /* somebody reads it that is no product */
    bool     can, turned;     /* it could be made turned, and is */
} seen;

static bool is_matrix(const cot__program *p, uint32_t v) {
    cot__view x = cot__value_view(p, v);
    return x.ndim == 2 && x.shape[0] > 1 && x.shape[1] > 1;
}

/* Is v the transpose of a matrix? */
static bool is_transpose(const cot__program *p, uint32_t v, uint32_t *of) {
    return is_matrix(p, v) && cot__made_by(p, v, OP_permute, of) &&
           cot__operation_attr(p, cot__maker_of(p, v))->ints[0] == 1;
}

/* ---- what could be, and what is wanted ------------------------------------------------------- */

static bool product_can(const cot__program *p, const uint32_t *x) {
    uint32_t  of;
    cot_dtype dtype = cot__value_view(p, x[0]).dtype;
    return (dtype == COT_F64 || dtype == COT_F32) && is_matrix(p, x[0]) && is_matrix(p, x[1]) &&
           (is_transpose(p, x[0], &of) || is_transpose(p, x[1], &of));
}

static bool operand_can(const cot__program *p, const seen *of, uint32_t v) {
    uint32_t x;
    if (v == COT__NO_VALUE || cot__value_view(p, v).ndim == 0) return true;
    return is_transpose(p, v, &x) || cot__made_by(p, v, OP_broadcast_to, &x) || (of[v].can && of[v].readers == 1);
}

static bool can_turn(const cot__program *p, const seen *of, uint32_t k) {
    const cot__operation *o = &p->operation[k];
    const uint32_t       *x = cot__operation_operand(p, k);
    if (!is_matrix(p, o->result)) return false;
    if (o->op == OP_matmul) return product_can(p, x);
    bool can = o->op < OP_structural;
    for (int i = 0; i < cot__operation_operands(p, k) && can; i++) can = operand_can(p, of, x[i]);
    return can;
}

/* Does its reader want the value turned? The reader stands behind it, and is decided. */
static bool is_wanted(const cot__program *p, const seen *of, uint32_t v) {
    uint32_t k = of[v].reader, result = p->operation[k].result, x;
    return is_transpose(p, result, &x) ? of[result].bare : of[result].turned;
}

static void look_around(const cot__program *p, seen *of) {
    memset(of, 0, p->values * sizeof *of);
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        for (int i = 0; i < cot__operation_operands(p, k); i++) {
            if (x[i] == COT__NO_VALUE) continue;
            of[x[i]].readers++;
            of[x[i]].reader = k;
            of[x[i]].bare |= p->operation[k].op != OP_matmul;
        }
    }
    for (uint32_t k = 0; k < p->outputs; k++) {
        of[p->output[k]].readers += 2; /* it is wanted as it is */
        of[p->output[k]].bare = true;
    }
    for (uint32_t k = 0; k < p->operations; k++) of[p->operation[k].result].can = can_turn(p, of, k);
    for (uint32_t k = p->operations; k-- > 0;) {
        seen *z = &of[p->operation[k].result];
        z->turned = z->can && z->readers == 1 && is_wanted(p, of, p->operation[k].result);
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* The transpose of a value of the old program. */
static uint32_t turned(cot__rewrite *r, uint32_t v, const cot__append *o) {
    const seen *of = r->edit->state;
    uint32_t    x;
    union { cot__attr attr; char room[sizeof(cot__attr) + 2 * sizeof(int64_t)]; } order = {.attr = {.nints = 2}};
    if (v == COT__NO_VALUE || of[v].turned || cot__value_view(r->from, v).ndim == 0)
        return v == COT__NO_VALUE ? v : r->value[v];
    if (is_transpose(r->from, v, &x) && !of[x].turned) return r->value[x];
    order.attr.ints[0] = 1;
    order.attr.ints[1] = 0;
    return cot__build_operation(&r->to, &(cot__append){.op = OP_permute, .n = 1, .x = &r->value[v], .attr = &order.attr,
                                                       .name = "permute", .file = o->file, .line = o->line});
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    const seen     *of = r->edit->state;
    const uint32_t *old = cot__operation_operand(r->from, k);
    uint32_t        x;
    cot__type       asked;
    cot__append     o = cot__rewrite_operation(r, k, &asked);
    if (is_transpose(r->from, r->from->operation[k].result, &x) && of[x].turned) {
        cot__rewrite_replace(r, k, r->value[x]);
        return;
    }
    if (of[r->from->operation[k].result].turned) {
        bool product = o.op == OP_matmul;
        asked.shape.dim[0] = cot__value_view(r->from, r->from->operation[k].result).shape[1];
        asked.shape.dim[1] = cot__value_view(r->from, r->from->operation[k].result).shape[0];
        for (int i = 0; i < o.n; i++) r->x[i] = turned(r, old[product ? 1 - i : i], &o);
        r->changes++;
    }
    if (!r->to.failed) cot__rewrite_put(r, k, &o);
}

static cot__program *turn_matrices(const cot__program *p, const cot__pass_options *o) {
    size_t    bytes = p->values * sizeof(seen);
    seen     *of = cot__alloc(o->al, bytes);
    cot__edit how = {.state = of, .operation = edit_operation};
    if (!of) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes), NULL;
    look_around(p, of);
    cot__program *made = cot__rewrite_run(p, o, &how);
    cot__free(o->al, of, bytes);
    return made;
}

cot__program *cot__pass_turns(const cot__program *p, const cot__pass_options *o) {
    cot__program *pieces = cot__put_together_permuted(p, o), *made = pieces ? turn_matrices(pieces, o) : NULL;
    cot__program_release(pieces);
    return made;
}
