/* elementwise.h: the table made from rules.def: for every elementwise operation its class, what its
 * partials read, its expression trees, and its block kernels. */
#ifndef COT_ELEMENTWISE_H
#define COT_ELEMENTWISE_H

#include "base/cpu.h"
#include "rules/tree.h"
#include "tape/tape.h"

typedef enum cot__class { ARITH, REAL, TEST } cot__class;

/* n <= COT__BLOCK elements, contiguous, of one compute type. Unused operands are NULL. */
typedef void (*cot__value_kernel)(int n, const void *x, const void *y, const void *w, void *z);
typedef void (*cot__partial_kernel)(int n, const void *g, const void *x, const void *y, const void *w, const void *z,
                                    void *out);

typedef struct cot__elementwise_info {
    const char      *name;
    int              arity;
    cot__class       class;
    const cot__tree *value, *partial[3]; /* partial NULL: no derivative */
    uint8_t          saves[3];           /* what partial k reads: bit 0 1 2 X Y W, COT__SAVES_Z */
    double           lo, hi;             /* test domain */
} cot__elementwise_info;

typedef struct cot__block_kernels {
    cot__value_kernel   value;
    cot__partial_kernel partial[3];
} cot__block_kernels;

extern const cot__elementwise_info cot__elementwise_table[OP_elementwise_count];
/* Compute types: f64, f32, i64 (value only; NULL where integers are not taken). */
extern const cot__block_kernels cot__blocks_f64[OP_elementwise_count], cot__blocks_f32[OP_elementwise_count],
    cot__blocks_i64[OP_elementwise_count];

/* The same in vectors, for the instruction sets after the first of base/cpu.h. */
extern const cot__block_kernels *const cot__vector_blocks[COT__ISAS][2];

/* Plain kernels: libm for every element. For single values, which shall have the bits of recorded
 * scalars. */
static inline const cot__block_kernels *cot__plain_blocks(int op, cot_dtype compute) {
    return compute == COT_F64 ? &cot__blocks_f64[op] : compute == COT_F32 ? &cot__blocks_f32[op] : &cot__blocks_i64[op];
}

static inline const cot__block_kernels *cot__blocks(int op, cot_dtype compute) {
    return compute == COT_I64 ? &cot__blocks_i64[op] : &cot__vector_blocks[cot__cpu_isa()][compute == COT_F32][op];
}

/* Does any partial of the operation read its result? */
static inline bool cot__reads_result(const cot__elementwise_info *e) {
    return (e->saves[0] | e->saves[1] | e->saves[2]) & COT__SAVES_Z;
}

/* The operation on plain numbers alone, done in a compute type (I64: all are integers). */
cot_var cot__fold(const cot__block_kernels *kernels, cot_dtype compute, int n, const cot_var *xs);
/* The public function of an operation, by number. */
cot_var cot__call(int op, const cot_var *xs);
/* Records the tree on the tape with these operands; numbers fold into numbers. */
cot_var cot__tree_record(cot_tape *t, const cot__tree *tree, const cot_var *xs, cot_var z, cot_var g);

/* A tree of the operation as a formula over z, g and its operands, "g/(2·z)"; "" for NULL.
 * COT__FORMULA_TEXT bytes hold any rule. */
#define COT__FORMULA_TEXT 512
const char *cot__formula(int op, const cot__tree *tree, char *buf, size_t size);

/* z = op(xs) for views of z's shape (0-d operands repeat); z may be one of the operands. */
void cot__block_run_elementwise(int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z);
/* For each of `count` terms, in one pass: out = (accumulate ? out : 0) + partial k of op at (xs, z)
 * applied to g. Terms with one `out` are added in order. The first out, if it is not accumulated,
 * may be the g of the terms itself. */
typedef struct cot__term { int k; bool accumulate; cot__view g, out; } cot__term;
void cot__block_run_partials(int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z, int count,
                             const cot__term *terms);

/* Does x op y into x's own storage; see cot_add_into. */
cot_status cot__elementwise_into(int op, cot_var *x, cot_var y);

#endif
