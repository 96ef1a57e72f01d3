/* record.h: what an operation brings, whichever it is: how it is differentiated, done again and
 * batched, and what people read about it. The records of structural operations stand in src/ops and
 * src/diff, at the end of the file of their family. */
#ifndef COT_RECORD_H
#define COT_RECORD_H

#include "base/base.h"
#include "rules/elementwise_table.h"
#include "job/job.h"
#include "rules/op_facts.h"
#include "rules/op_numbers.h"

typedef struct cot__rule cot__rule;
struct cot__findings;
struct cot__plain;
struct cot__places;

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
    /* vjp (its two transposes) and apply; forward mode is f(dx, y) + f(x, dy). A third operand, if
     * any, is inactive */
    KIND_BILINEAR,
    /* vjp in recorded operations; forward mode is jvp where given, else the transpose of the vjp */
    KIND_GENERIC,
    /* pick: a further result of the operation before it, whose rule gives its adjoint or tangent */
    KIND_PICK
} cot__kind;

/* What `rows` and `fold` of a record may be. */
enum { COT__BY_ITSELF = -1 };
enum { COT__ASKS_DTYPE = 1, COT__ASKS_SHAPE = 2 };

/* How elements of a result are told that they read elements of an operand (cot__op.reach). */
typedef struct cot__reading {
    const cot__rule *r;
    int              k;
    const int64_t   *places; /* the elements of the last operand, so many */
    int64_t          count;
    void            *ctx;
    void (*add)(void *ctx, int64_t z, int64_t x);
    /* Each of n elements of the result, from element z on, reads n of the operand, from x on. */
    void (*mix)(void *ctx, int64_t z, int64_t x, int64_t n);
} cot__reading;

typedef struct cot__op {
    const char *name;

    /* ---- small ones, which share words: there are many records ---- */

    uint32_t inactive; /* mask of operands without derivative (indices, labels) */
    uint32_t saves;    /* which values the vjp reads */
    /* Of a generic operation: the operands that its value is linear in, all of them together while
     * the others rest (bits as in a save mask); in the others it is curved. Linear operations are
     * so in all operands, bilinear ones in either. See cot__linear_in. */
    uint32_t linear;
    /* Operands that its rule reads though `saves` does not note them, as they are scalars, which
     * nothing overwrites in place. */
    uint32_t  unwatched;
    cot__kind kind : 8;
    uint8_t   asks; /* COT__ASKS_DTYPE, COT__ASKS_SHAPE: what infer reads of *z */
    /* What patterns of dependence (diff/sparse) and sweeps must know of its elements. choice: every
     * linear operation with operands that are not differentiated has one. same: 1 + the operand
     * whose elements its own are, one by one, perhaps rounded; 0: none. */
    cot__op_choice choice;
    uint8_t        same;
    cot__op_write  writes : 8;
    /* How many bodies it takes at most, programs of their own (program/program.h). */
    int8_t bodies;
    /* The result lies in the memory of operand 0: when run begins, j->z holds its elements. */
    bool in_place;
    /* It may hold addresses of the user's, and a program with one of them is bound to this
     * process. */
    bool binds;
    /* Directions through it are swept one by one (diff/products/product_batch.c): as a batch its
     * sweep would round differently, lose a note about one matrix, or keep all states of a loop. */
    bool sweeps_alone;
    /* Functions of the user's make its value, so what it is linear in is not known. */
    bool opaque;
    /* While a body is recorded it does not run, and its value is an example. */
    bool example;
    /* Passes over programs make it, and nothing else: no tape records it, and no file holds it. */
    bool planned;
    /* What its rule reads may be kept as bf16 (cot_precision.saved): values that are off by 2^-8 of
     * themselves give products that are off by no more than so each, or the rule reads a sign
     * alone. Not so of 1 - z², of x == z, or of a difference beside statistics that are exact. */
    bool rounds;
    /* Of an operation that looks at positions: for which function, unless the number among its
     * attributes names another (a cot__asker, job.h). 0: it looks at none, or needs no name. */
    uint8_t asker;
    /* How groups of a program do it block by block (program/fusion.h); COT__BY_ITSELF: they do not.
     * rows: of a generic operation that mixes an axis, or one and all after it (see `attrs`): a row
     * of the result is made of that row of so many operands, the first, and of all of the others.
     * fold: of a reduction ("axes:m"): 1 + the cot__reduction that it is. */
    int8_t rows, fold;

    /* ---- its names and rules ---- */

    const char *formula;  /* for people */
    /* The names of its operands in the formula, in order:
     *   "a b"     two operands
     *   "x*"      a list
     *   "x* y*"   two lists of equal length
     *   "*"       any number: x, y, w or x0, x1, …
     * For elementwise operations see rules/operands.def. */
    const char *operands;
    /* Public functions of other names that record this operation and have its rule: "dot outer". */
    const char *functions;
    /* How messages call it where users do not know its name: "gather". NULL: by its name. See
     * cot__caller_name. */
    const char *called;
    void (*vjp)(cot__rule *r);
    void (*jvp)(cot__rule *r);

    /* ---- running it on arrays, without a tape (job.h) ---- */

    /* How many results it has, from the types of the operands and the attributes; it is asked
     * before infer, so of jobs that infer will refuse, too. The first result is of a float dtype if
     * any is. NULL: one. */
    int (*results)(const cot__job *j);
    /* The type of each result, z[0 … results), from the types of the operands and the attributes
     * alone. Refuses every job that run could not do: its operands may come from a file. For
     * operations whose result's dtype or shape is an attribute in all but name (`asks`), *z holds
     * it when called; it is checked. False after telling the caller why. */
    bool (*infer)(const cot__job *j, cot__type *z);
    /* Are the elements legal? False after telling the caller. NULL: all are. */
    bool (*check)(const cot__job *j);
    /* If check asks for nothing but that all elements of one operand are positions on an axis: what
     * it asks for. False: for more, or nothing. NULL: likewise. */
    bool (*positions)(const cot__job *j, cot__positions *asked);
    /* Bytes that run needs besides; negative: more than there can be. NULL: none. */
    int64_t (*workspace)(const cot__job *j);
    /* Writes the result to j->z, and further ones to j->more. */
    void (*run)(const cot__job *j);
    /* Words a note about what run found in the data: found[0] things, the first is number found[1].
     * NULL: it finds nothing. */
    void (*tell)(const cot__job *j, const int64_t found[2]);
    /* The result as a view of operand 0: strides, and the first element, counted from the
     * operand's. False: the elements do not lie so, and run copies them. */
    bool (*view)(const cot__job *j, const cot__type *z, int64_t *stride, int64_t *offset);
    /* Why it cannot run without a tape. NULL: it can. */
    const char *needs_tape;
    /* Of an operation with bodies or functions of the user's, in place of run:
     *   open   all that running needs besides, runs of the bodies above all, made when shapes and
     *          strides are known and no element is. NULL after telling the caller
     *   go     writes the results, by what is held (j->held). False after telling the caller what
     *          was refused
     *   close  frees what was held */
    void *(*open)(const cot__job *j, const cot_allocator *al);
    bool (*go)(const cot__job *j);
    void (*close)(void *held);
    /* May `go` be done again, without recording it, for the same result? NULL: never. */
    bool (*again)(const cot__attr *a);
    /* Must an operation with these attributes run though nobody reads its results, whatever its
     * bodies do? NULL: not for this. */
    bool (*effect)(const cot__attr *a);
    /* Of a node with bodies: has one of them an effect, or may it never end? NULL: none has. */
    bool (*bodies_act)(const cot__rule *r);

    /* ---- on a tape ---- */

    /* Records the operation of node r->node on other operands xs, as many as the node has (optional
     * ones that it does not have, stay away), with its attributes. Operands of the node's shapes
     * and dtypes always do; other dtypes where the public function takes them. Extents that are not
     * in the attributes follow from the operands, but for the few operations whose result's shape
     * is an attribute in all but name (`asks`). NULL: cot__record does it, with the node's
     * attributes; see cot__reapply. Never in place: an operand stays as it is. Of an operation with
     * several results: its node, which its picks follow. */
    cot_var (*apply)(cot__rule *r, const cot_var *xs);
    /* Of an operation with `open`: the node as a program holds it (tape/lower.h). False after
     * setting the error. */
    bool (*plain)(cot__rule *r, struct cot__plain *to);
    /* Records the operation for a batch: the result has the batch as axis 0, and so have further
     * ones, which go to r->more. xs may be changed. NULL: one element of the batch after the other.
     * Most are cot__batch_shift, which needs no more than apply and attrs. */
    cot_var (*batch)(cot__rule *r, const cot__batch *b, cot_var *xs);
    /* Which results have the batch where some operands (`is`) have it; then batch is asked though
     * none has. False after setting the error. NULL: all have it if any operand has. */
    bool (*reached)(cot__rule *r, const bool *is, bool *results);
    /* The names of the integers among its attributes, for people, checks and batches. "axes:m
     * keepdims:f" gives the name of each and a code that says what it is:
     *   d   a number
     *   u   a number, left out when 1
     *   f   a flag; one that is 2 or more counts something, and is shown as a number
     *   a   an axis
     *   m   a bit mask of axes
     *   n   attr->number, not an integer
     *   l   a list of all remaining integers
     *   p   the same: an order of all axes
     *   b   the same: two for each axis
     * In a generic operation the first attribute may say which axes the operation mixes; then
     * diff/sparse/sparsity.c takes all other axes as independent:
     *   "axes:m keepdims:f"   reduces these axes
     *   "axis:a"              mixes this axis, in operands of the result's shape
     *   "from:a"              mixes this axis and all after it, likewise */
    const char *attrs;
    /* What its value costs; elementwise operations are counted in their formulas instead. */
    cot__op_cost cost;
    /* The operand that operand k of n is multiplied by, or -1: the value is linear in the one only
     * while the other rests. NULL: none is. Not for bilinear operations, where it is the other. */
    int (*factor)(int k, int n);
    /* How node i depends on what its operands depend on (diff/engine/linearity.h), where this is
     * found by looking closer than `linear` does; NULL: by that. */
    uint8_t (*depends)(const struct cot__places *p, uint32_t i);
    /* Is the rule of this node one of the user's, which may be wrong? NULL: never. */
    bool (*users_rule)(const cot__rule *r);
    /* Says what the operation sits on, by its value and those of its operands, where it has no
     * derivative; a convention of rules/kinks.def is told of it. NULL: it has one everywhere. (Of
     * elementwise operations kinks.def has the conditions.) */
    void (*kinks)(struct cot__findings *r);
    /* Records on operands xs the operations that it stands for, and gives its results zs, as many
     * as the node has. False after an error on the tape. NULL: it stands for none. */
    bool (*inlined)(cot__rule *r, const cot_var *xs, cot_var *zs);
    /* Tells which elements of operand q->k each element of the result reads, where the last operand
     * lists places; NULL: patterns find out by running it, or take all of them. */
    void (*reach)(const cot__reading *q);
} cot__op;

/* Of elementwise operations: name, kind, inactive and saves only. */
extern const cot__op cot__elementwise_ops[];
/* The record of any operation; for elementwise ones name, kind and saves only. */
const cot__op *cot__op_of(int op);
/* For which function it looks at positions. */
static inline cot__asker cot__asker_in(const cot__op *op, const cot__attr *a) {
    cot__asker who = op->asker && a ? cot__asker_of(a) : COT__FOR_ITSELF;
    return who == COT__FOR_ITSELF ? (cot__asker)op->asker : who;
}
/* How messages call it when it is recorded again, or runs in a program. */
static inline const char *cot__caller_name(const cot__op *op, const cot__attr *a) {
    return op->asker ? cot__asker_name(cot__asker_in(op, a)) : op->called ? op->called : op->name;
}
/* Must it run though nobody reads its results, whatever its bodies do? It looks at the data and may
 * refuse them, tells what it found, or may not end. */
static inline bool cot__acts(const cot__op *op, const cot__attr *a) {
    return op->check || op->tell || (op->effect && op->effect(a));
}
/* Is the value of a structural operation linear in operand k, as far as is known, while the operand
 * that this one is multiplied by (cot__factor_of n operands; -1: none) rests? */
static inline bool cot__linear_in(const cot__op *op, int k) {
    if (op->kind == KIND_NONE || (k < 32 && op->inactive >> k & 1)) return false;
    return op->kind != KIND_GENERIC || op->opaque || cot__saves_operand(op->linear, k);
}
static inline int cot__factor_of(const cot__op *op, int k, int n) {
    return op->kind == KIND_BILINEAR ? 1 - k : op->factor ? op->factor(k, n) : -1;
}
/* What formulas call operand k of n of any operation: static storage or buf (16 bytes). */
const char *cot__operand_letter(int op, int k, int n, char *buf);
/* Does a structural operation take lists, whose elements its formula calls x[i]? */
bool cot__takes_lists(int op);

#endif
