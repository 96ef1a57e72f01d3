/* code_calls.h: a node that is to be said as a call, and what its files share. */
#ifndef COT_CODE_CALLS_H
#define COT_CODE_CALLS_H

#include "trace/code.h"

typedef struct cot__c_calling {
    cot__text         *to;
    const cot_tape    *t;
    uint32_t           id;
    const cot__node   *n;
    const int64_t     *a; /* the integers among its attributes */
    const char *const *operand;
} cot__c_calling;

/* COT_SHAPE(2, 3), COT_SCALAR */
void cot__c_shape_put(cot__text *x, int n, const int64_t *extent);
const char *cot__c_dtype_name(cot_dtype dtype);

/* code_layers.c: calls whose options stand in attributes. False: no public function does this. */
bool cot__c_conv_put(const cot__c_calling *c);
bool cot__c_pool_put(const cot__c_calling *c);
bool cot__c_norm_put(const cot__c_calling *c);
bool cot__c_attention_put(const cot__c_calling *c);
bool cot__c_fft_put(const cot__c_calling *c);

/* code_formulas.c: what the rule of node `id` gives to its only operand, by a formula of its
 * adjoint, which is called `bar`. False: it has none. */
bool cot__c_formula_put(cot__text *x, const cot_tape *t, uint32_t id, const char *bar);

#endif
