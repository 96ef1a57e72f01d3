/* lazy_product.h: products that wait: results that are cheaper to compute again than to write
 * (lazy_product.c). */
#ifndef COT_LAZY_PRODUCT_H
#define COT_LAZY_PRODUCT_H

#include "ops/elementwise/elementwise.h"

/* Makes the result r, (…, m, n), of the product of depth 1 of views a (…, m, 1) and b (…, 1, n) of
 * the nodes xs wait. False: it must be written now. */
bool cot__lazy_product_open(cot_tape *t, const cot__result *r, const uint32_t xs[2], const cot__view *a,
                            const cot__view *b);
/* The same for an elementwise operation on operands one of which waits; `number` is the operand
 * that has no node. */
bool cot__lazy_product_extend(cot_tape *t, const cot__result *r, int op, int n, const uint32_t *xs,
                              const cot__value *number);
/* Reduces node x without writing it; false: it does not wait, or is better written. */
bool cot__lazy_product_reduce(cot_tape *t, cot__reduction what, uint32_t x, uint32_t axes, const cot__view *z);

/* Fewer bytes do not wait, nor less than so many times the bytes they are made from. Variables only
 * for the tests: neither must show in any result, nor the third, which fills memory with ones (a
 * NaN) until it is written: who reads it around cot__view_read finds them. */
extern size_t cot__lazy_product_from, cot__lazy_product_times;
extern bool   cot__lazy_product_spoils;

#endif
