/* halves.c: a program without arithmetic on 16-bit floats. The library computes with them in f32
 * and rounds each result of an operation once (docs/bits.md); so here such an operation becomes
 * casts to f32, the operation in f32, and a cast back, with the same bits. What only moves elements
 * stays. So casts are all that an exported file has to know of these dtypes. It makes programs
 * longer, so it is none of those that run in order: exports ask for it. */
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

enum { MOST_BODIES = 8 };

static bool is_half(cot_dtype d) { return d == COT_F16 || d == COT_BF16; }
static bool is_half_value(const cot__program *p, uint32_t v) {
    return v != COT__NO_VALUE && is_half(cot__value_view(p, v).dtype);
}

static bool only_moves(int op) {
    const cot__op *record = cot__op_of(op);
    switch (op) {
    case OP_cast:
    case OP_copy:
    case OP_reshape:
    case OP_concat:
    case OP_pad:
    case OP_take:
    case OP_take_along_axis:
    case OP_one_hot:
    case OP_update_slice:
    case OP_copy_into: return true;
    default: return op >= OP_structural && record->view && !record->run;
    }
}

static bool reads_or_makes_halves(const cot__program *p, uint32_t k) {
    bool any = false;
    for (int i = 0; i < cot__operation_operands(p, k); i++) any |= is_half_value(p, cot__operation_operand(p, k)[i]);
    for (uint32_t i = 0; i < p->operation[k].results; i++) any |= is_half_value(p, p->operation[k].result + i);
    return any;
}

/* A value of the new program in another dtype. */
static uint32_t put_cast(cot__rewrite *r, uint32_t v, cot_dtype d) {
    if (v == COT__NO_VALUE) return v;
    cot__type type = cot__value_type(r->to.p, v);
    type.dtype = d;
    return cot__build_operation(&r->to, &(cot__append){.op = OP_cast, .n = 1, .x = &v, .asked = &type, .name = "cast"});
}

static void widen(cot__rewrite *r, uint32_t k) {
    const cot__operation *old = &r->from->operation[k];
    cot__type             asked;
    cot__append           a = cot__rewrite_operation(r, k, &asked);
    for (int i = 0; i < a.n; i++)
        if (is_half_value(r->to.p, r->x[i])) r->x[i] = put_cast(r, r->x[i], COT_F32);
    if (is_half(asked.dtype)) asked.dtype = COT_F32;
    cot__rewrite_put(r, k, &a);
    for (uint32_t v = old->result; v < old->result + old->results && !r->to.failed; v++)
        if (is_half_value(r->from, v)) r->value[v] = put_cast(r, r->value[v], cot__value_view(r->from, v).dtype);
    r->changes++;
}

static void widen_bodies(cot__rewrite *r, uint32_t k) {
    cot__program *body[MOST_BODIES] = {NULL};
    cot__type     asked;
    cot__append   a = cot__rewrite_operation(r, k, &asked);
    bool          ok = a.bodies <= MOST_BODIES;
    for (int i = 0; ok && i < a.bodies; i++) {
        body[i] = cot__pass_halves(a.body[i], r->edit->state);
        ok = body[i];
        r->changes += body[i] != a.body[i];
    }
    if (ok) a.body = body, cot__rewrite_put(r, k, &a);
    r->to.failed |= !ok;
    for (int i = 0; i < MOST_BODIES; i++) cot__program_release(body[i]);
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    if (cot__operation_bodies(r->from, k)) widen_bodies(r, k);
    else if (reads_or_makes_halves(r->from, k) && !only_moves(r->from->operation[k].op)) widen(r, k);
    else cot__rewrite_keep(r, k);
}

/* Recursive over bodies, which nest at most COT__PROGRAM_DEPTH deep. */
cot__program *cot__pass_halves(const cot__program *p, const cot__pass_options *o) {
    cot__edit edit = {.state = (void *)(uintptr_t)o, .operation = edit_operation};
    bool      any = p->bodies > 0;
    for (uint32_t i = 0; i < p->types; i++) any |= is_half((cot_dtype)p->type[i].dtype);
    return any ? cot__rewrite_run(p, o, &edit) : cot__program_share(p);
}
