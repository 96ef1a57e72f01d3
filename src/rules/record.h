/* record.h: what an operation brings, whichever it is: how it is differentiated, done again and
 * batched, and what people read about it. The records of structural operations stand in src/ops and
 * src/diff, at the end of the file of their family. */
#ifndef COT_RECORD_H
#define COT_RECORD_H

#include "base/base.h"
#include "rules/op_ids.h"

typedef struct cot__rule cot__rule;

/* Operands of an operation that is done for a batch at once: is[k] says whether operand k has the
 * batch as a new axis 0. At least one has. */
typedef struct cot__batch {
    int64_t     extent;
    int         n;
    const bool *is;
} cot__batch;

/* How a structural operation is differentiated; decides what its record must bring. */
typedef enum cot__kind {
    KIND_NONE,     /* no derivative */
    KIND_SOURCE,   /* leaf, constant: no operands */
    KIND_LINEAR,   /* vjp (its transpose) and apply; forward mode is apply on the tangents */
    KIND_BILINEAR, /* vjp (its two transposes) and apply; forward mode is f(dx, y) + f(x, dy) */
    /* vjp in recorded operations; forward mode is jvp where given, else the transpose of the vjp */
    KIND_GENERIC
} cot__kind;

typedef struct cot__op {
    const char *name;
    cot__kind   kind;
    uint32_t    inactive; /* mask of operands without derivative (indices, labels) */
    uint32_t    saves;    /* which values the vjp reads */
    const char *formula;  /* for people */
    void (*vjp)(cot__rule *r);
    void (*jvp)(cot__rule *r);
    /* Records the operation of node r->node on other operands xs, as many as the node has (optional
     * ones that it does not have, stay away), with its attributes. Operands of the node's shapes
     * and dtypes always do; other dtypes where the public function takes them. Extents that are not
     * in the attributes follow from the operands, but for the few operations whose result's shape
     * is an attribute in all but name: reshape, broadcast_to, one_hot, irfft, pools. Every record
     * but those of sources has it: see cot__reapply. Never in place: an operand stays as it is. */
    cot_var (*apply)(cot__rule *r, const cot_var *xs);
    /* Records the operation for a batch: the result has the batch as axis 0. xs may be changed.
     * NULL: one element of the batch after the other. Most are cot__batch_shift, which needs no
     * more than apply and attrs. */
    cot_var (*batch)(cot__rule *r, const cot__batch *b, cot_var *xs);
    /* What the integers of its attributes are, for people, checks and batches: "axes:m keepdims:f"
     * names each and says how it is written:
     * d a number   u a number, left out when 1   f a flag   a an axis   m a bit mask of axes
     * n attr->number, no integer
     * and lists, of all that are left: l any   p an order of all axes   b two for each axis
     * In a generic operation the first may say which axes it mixes, and diff/sparse/sparsity.c
     * believes it: "axes:m keepdims:f" reduces them; "axis:a" this one and "from:a" this and all
     * after it, in operands of the result's shape. Others are then independent. */
    const char *attrs;
    /* Directions through it are swept one by one (diff/products/product_batch.c): as a batch its
     * sweep would round differently, lose a note about one matrix, or keep all states of a loop. */
    bool sweeps_alone;
} cot__op;

/* Of elementwise operations: name, kind, inactive and saves only. */
extern const cot__op cot__elementwise_ops[OP_elementwise_count];
/* The record of any operation; for elementwise ones name, kind and saves only. */
const cot__op *cot__op_of(int op);

#endif
