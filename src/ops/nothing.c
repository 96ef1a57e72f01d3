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
    cot__type asked;
    /* in a program it can be told from the copy that somebody asked for: calls leave it out where
     * the function itself would */
    if (how == COT__COPY && t->mode.body == cot__compile_name)
        return cot__record(t, "copy", OP_cast, 1, &i, NULL, cot__ask_dtype(&asked, cot__dtype_at(&t->nodes[i])));
    if (how == COT__COPY) return cot__copy_var(t, i);
    cot__view v = cot__layout_at(t, i);
    return cot__push_view(t, OP_reshape, i, v.ndim, v.shape, v.stride, 0, NULL);
}

/* A leaf or a constant, or what stands for one where a function is recorded on other values. */
static bool is_given(int op) {
    return cot__op_of(op)->kind == KIND_SOURCE || op == OP_alias || op == OP_parameter;
}

bool cot__is_unchanged_apart(const cot_tape *t, uint32_t i) {
    const char *body = t->mode.body;
    return is_given(t->nodes[i].op) && (!body || body == cot__compile_name);
}

cot_var cot__unchanged(cot_var z, cot__how how) {
    return !cot__failed(z) && cot__is_unchanged_apart(z.tape, cot__index(z)) ? cot__own(z, how) : z;
}

/* Memory may be short for the copy: the message names the function that was called. A call, as two
 * dozen functions end with it. */
static __attribute__((noinline)) cot_var own_result(const char *op, cot_var z, cot__how how) {
    if (cot__failed(z)) return z;
    const char *before = cot__ask(z.tape, op);
    cot_var     own = cot__unchanged(z, how);
    cot__asked(z.tape, before);
    return own;
}

#define NOTHING(name, how, parameters, arguments)                                                                      \
    cot_var cot_##name parameters { return own_result(#name, cot__inner_##name arguments, COT__##how); }
#include "ops/nothing.def"
