/* uniform.c: which values of a program are one number, repeated. */
#include "program/passes/uniform.h"
#include "base/element.h"
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Views of views are few after the pass that joins them; more are not followed. */
enum { VIEWS = 8 };

bool cot__uniform_open(cot__uniform *u, const cot__program *p, const cot__pass_options *o) {
    size_t bytes = p->constants * sizeof *u->constant;
    *u = (cot__uniform){cot__alloc(o->al, bytes), p->constants};
    if (!u->constant) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes);
    memset(u->constant, 0, bytes);
    return true;
}

void cot__uniform_close(cot__uniform *u, const cot__pass_options *o) {
    cot__free(o->al, u->constant, u->constants * sizeof *u->constant);
}

/* A row of equal elements is equal to itself moved by one. */
static void look_at(cot__uniform_constant *c, const cot__program *p, uint32_t constant) {
    uint32_t    v = p->constant[constant].value;
    cot_dtype   dtype = cot__value_view(p, v).dtype;
    size_t      bytes = cot__value_bytes(p, v), size = (size_t)cot__dtype_size(dtype);
    const char *data = cot__constant_elements(p, constant);
    c->known = 1;
    c->is = bytes >= size && memcmp(data, data + size, bytes - size) == 0;
    if (!c->is) return;
    c->number = cot__load_f64(data, dtype);
    if (dtype == COT_I64) {
        int64_t whole = cot__load_i64(data, dtype);
        c->is = whole > -(INT64_C(1) << 53) && whole < INT64_C(1) << 53;
    }
}

static bool is_view(int op) {
    return op == OP_broadcast_to || op == OP_reshape || op == OP_permute || op == OP_slice;
}

bool cot__uniform_value(cot__uniform *u, const cot__program *p, uint32_t v, double *number) {
    for (int step = 0; step < VIEWS; step++) {
        uint32_t k = cot__maker_of(p, v);
        if (k == COT__NO_VALUE) break;
        if (!is_view(p->operation[k].op)) return false;
        v = cot__operation_operand(p, k)[0];
    }
    if (v == COT__NO_VALUE || cot__value_origin(p, v) != COT__FROM_CONSTANT) return false;
    uint32_t               constant = cot__value_maker(p, v);
    cot__uniform_constant *c = &u->constant[constant];
    if (!c->known) look_at(c, p, constant);
    *number = c->number;
    return c->is;
}
