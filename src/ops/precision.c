/* precision.c: the policy of mixed precision, by the names of operations. It is asked where
 * operands are brought to one dtype, so the casts are recorded like any other. */
#include "ops/precision.h"

#include "base/text.h"

#include <string.h>

static const char NARROW[] = "matmul einsum tensordot conv* attention";
static const char WIDE[] = "*cross_entropy mse bce_with_logits huber nll kl_div";

/* Is the name one of the list? */
static bool is_listed(const char *list, const char *name) {
    char word[64];
    while (*list) {
        size_t n = strcspn(list, " ");
        if (n > 0 && n < sizeof word) {
            memcpy(word, list, n);
            word[n] = 0;
            if (cot__matches(word, name)) return true;
        }
        list += n + (list[n] == ' ');
    }
    return false;
}

cot_dtype cot__precision_of(const cot_tape *t, const char *op, cot_dtype dtype) {
    const cot_precision *p = &t->precision;
    if (p->compute != COT_BF16 && p->compute != COT_F16) return dtype;
    if (dtype == COT_F32) return is_listed(p->narrow ? p->narrow : NARROW, op) ? p->compute : dtype;
    if (dtype == COT_BF16 || dtype == COT_F16) return is_listed(p->wide ? p->wide : WIDE, op) ? COT_F32 : dtype;
    return dtype;
}

cot_precision cot_tape_set_precision(cot_tape *t, cot_precision how) {
    cot_precision before = {COT_F64, NULL, NULL};
    if (!t) return before;
    before = t->precision;
    t->precision = how;
    return before;
}
