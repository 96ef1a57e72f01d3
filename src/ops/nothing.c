/* nothing.c: the public functions that may have nothing to do. They are built on functions that
 * return such an operand itself. */
#define COT__PUBLIC_NAMES
#include "rules/structural_ids.h"
#include "ops/structural.h"
#include "tape/region.h"

cot_var cot__own(cot_var z, cot__how how) {
    cot_tape *t = z.tape;
    uint32_t  i = cot__index(z);
    if (cot__failed(z)) return z;
    if (how == COT__COPY) return cot__copy_var(t, i);
    cot__view v = cot__layout_at(t, i);
    return cot__push_view(t, OP_reshape, i, v.ndim, v.shape, v.stride, 0, NULL);
}

/* A leaf or a constant, or what stands for one where a function is recorded on other values. */
static bool is_given(int op) {
    return cot__op_of(op)->kind == KIND_SOURCE || op == OP_alias || op == OP_parameter;
}

cot_var cot__unchanged(cot_var z, cot__how how) {
    if (cot__failed(z) || !is_given(z.tape->nodes[cot__index(z)].op)) return z;
    const char *body = z.tape->mode.body;
    return !body || body == cot__compile_name ? cot__own(z, how) : z;
}

/* Memory may be short for the copy: the message names the function that was called. */
static cot_var own_result(const char *op, cot_var z, cot__how how) {
    if (cot__failed(z)) return z;
    const char *before = cot__ask(z.tape, op);
    cot_var     own = cot__unchanged(z, how);
    cot__asked(z.tape, before);
    return own;
}

#define NOTHING(name, how, parameters, arguments)                                                                      \
    cot_var cot_##name parameters { return own_result(#name, cot__inner_##name arguments, COT__##how); }
#include "ops/nothing.def"
