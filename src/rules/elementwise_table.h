/* elementwise_table.h: the table made from rules.def: for every elementwise operation its class,
 * the values that its partials read, and its expression trees. */
#ifndef COT_ELEMENTWISE_TABLE_H
#define COT_ELEMENTWISE_TABLE_H

#include "base/base.h"
#include "rules/op_numbers.h"
#include "rules/tree.h"

/* A save mask: bits 0 … 5 are operands, bit 6 all operands after those, bit 7 the result. */
#define COT__SAVES_Z 0x80u
static inline bool cot__saves_operand(uint32_t mask, int k) { return mask >> (k < 6 ? k : 6) & 1; }

typedef enum cot__class { ARITH, REAL, TEST } cot__class;

typedef struct cot__elementwise_info {
    const char      *name;
    int              arity;
    cot__class       class;
    const cot__tree *value, *partial[3]; /* partial NULL: no derivative */
    uint8_t          saves[3];           /* what partial k reads: bit 0 1 2 X Y W, COT__SAVES_Z */
    double           lo, hi;             /* test domain */
} cot__elementwise_info;

extern const cot__elementwise_info cot__elementwise_table[];

/* Does any partial of the operation read its result? */
static inline bool cot__reads_result(const cot__elementwise_info *e) {
    return (e->saves[0] | e->saves[1] | e->saves[2]) & COT__SAVES_Z;
}

int cot__elementwise_arity(int op);
/* Takes any dtype and answers with a bool. */
bool cot__op_is_test(int op);
/* The values that the partial by operand k reads, as a save mask. */
uint32_t cot__elementwise_saves(int op, int k);
/* The name of operand k in formulas: x, y, w, or the name in rules/operands.def. */
const char *cot__operand_name(int op, int k);

/* A tree of the operation as a formula over z, g and its operands, "g/(2·z)"; "" for NULL.
 * COT__FORMULA_TEXT bytes hold any rule. */
#define COT__FORMULA_TEXT 512
const char *cot__formula(int op, const cot__tree *tree, char *buf, size_t size);

#endif
