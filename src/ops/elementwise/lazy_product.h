/* lazy_product.h: lazy products, results that are cheaper to compute again than to write
 * (lazy_product.c). */
#ifndef COT_LAZY_PRODUCT_H
#define COT_LAZY_PRODUCT_H

#include "ops/elementwise/elementwise.h"

/* Makes r, (…, m, n), a lazy product: the product of depth 1 of views a (…, m, 1) and b (…, 1, n)
 * of the nodes xs. False: it must be written now. */
bool cot__lazy_product_open(cot_tape *t, const cot__result *r, const uint32_t xs[2], const cot__view *a,
                            const cot__view *b);
/* The same for an elementwise operation, one of whose operands is a lazy product; `number` is the
 * operand that has no node. */
bool cot__lazy_product_extend(cot_tape *t, const cot__result *r, int op, int n, const uint32_t *xs,
                              const cot__value *number);
/* Reduces node x without writing it. False: x is no lazy product, or is better written. */
bool cot__lazy_product_reduce(cot_tape *t, cot__reduction what, uint32_t x, uint32_t axes, const cot__view *z);

/* A product of fewer bytes is written at once, and so is one of fewer times the bytes it is made
 * from. These are variables only for the tests: neither must show in any result, nor must the
 * third, which fills memory with ones (a NaN) until it is written, so that code which reads it
 * without cot__view_read finds them. */
extern size_t cot__lazy_product_from, cot__lazy_product_times;
extern bool   cot__lazy_product_spoils;

#endif
