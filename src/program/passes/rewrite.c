/* rewrite.c: the walk over a program that builds another one. */
#include "program/passes/rewrite.h"

#include <string.h>

bool cot__same_type(const cot__program *p, uint32_t v, const cot__program *q, uint32_t w) {
    cot__view a = cot__value_view(p, v), b = cot__value_view(q, w);
    return a.dtype == b.dtype && a.ndim == b.ndim && memcmp(a.shape, b.shape, (size_t)a.ndim * sizeof *a.shape) == 0;
}

size_t cot__value_bytes(const cot__program *p, uint32_t v) {
    cot__view x = cot__value_view(p, v);
    return (size_t)(cot__view_size(&x) * cot__dtype_size(x.dtype));
}

void cot__rewrite_no_memory(cot__rewrite *r, size_t bytes) {
    if (!r->to.failed) cot__refuse(&r->to.caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes);
    r->to.failed = true;
}

/* ---- parts ----------------------------------------------------------------------------------- */

void cot__rewrite_keep_input(cot__rewrite *r, uint32_t v) {
    cot__type type = cot__value_type(r->from, v);
    r->value[v] = cot__build_input(&r->to, &type);
}

void cot__rewrite_keep_constant(cot__rewrite *r, uint32_t constant) {
    uint32_t  v = r->from->constant[constant].value;
    cot__type type = cot__value_type(r->from, v);
    size_t    bytes = cot__value_bytes(r->from, v);
    void     *elements;
    r->value[v] = cot__build_constant(&r->to, &type, &elements);
    if (r->value[v] != COT__NO_VALUE && bytes)
        memcpy(elements, cot__constant_elements(r->from, constant), bytes);
}

cot__append cot__rewrite_operation(cot__rewrite *r, uint32_t k, cot__type *asked) {
    return cot__operation_again(r->from, k, r->value, r->x, asked);
}

void cot__rewrite_put(cot__rewrite *r, uint32_t k, const cot__append *o) {
    const cot__operation *old = &r->from->operation[k];
    uint32_t              first = cot__build_operation(&r->to, o);
    for (uint32_t i = 0; i < old->results && first != COT__NO_VALUE; i++) r->value[old->result + i] = first + i;
}

void cot__rewrite_keep(cot__rewrite *r, uint32_t k) {
    cot__type   asked;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    cot__rewrite_put(r, k, &o);
}

void cot__rewrite_replace(cot__rewrite *r, uint32_t k, uint32_t by) {
    r->value[r->from->operation[k].result] = by;
    r->changes++;
}

/* ---- the walk -------------------------------------------------------------------------------- */

void cot__rewrite_keep_outputs(cot__rewrite *r) {
    for (uint32_t k = 0; k < r->from->outputs; k++) cot__build_output(&r->to, r->value[r->from->output[k]]);
}

/* Value v of the old program, which is not a further result of an operation. */
static void edit_value(cot__rewrite *r, uint32_t v) {
    const cot__edit *e = r->edit;
    uint32_t         maker = cot__value_maker(r->from, v);
    switch (cot__value_origin(r->from, v)) {
    case COT__FROM_INPUT: (e->input ? e->input : cot__rewrite_keep_input)(r, v); break;
    case COT__FROM_CONSTANT: (e->constant ? e->constant : cot__rewrite_keep_constant)(r, maker); break;
    case COT__FROM_OPERATION: (e->operation ? e->operation : cot__rewrite_keep)(r, maker); break;
    }
}

static void walk(cot__rewrite *r) {
    const cot__program *p = r->from;
    for (uint32_t v = 0; v < p->values && !r->to.failed; v++) {
        bool further = cot__value_origin(p, v) == COT__FROM_OPERATION &&
                       p->operation[cot__value_maker(p, v)].result != v;
        if (!further) edit_value(r, v);
    }
    if (!r->to.failed) (r->edit->outputs ? r->edit->outputs : cot__rewrite_keep_outputs)(r);
}

static bool open_lists(cot__rewrite *r, const cot_allocator *al) {
    const cot__program *p = r->from;
    r->most = 3; /* of elementwise operations, which a pass may put where there were none */
    for (uint32_t k = 0; k < p->operations; k++)
        if ((uint32_t)cot__operation_operands(p, k) > r->most) r->most = (uint32_t)cot__operation_operands(p, k);
    r->value = cot__alloc(al, p->values * sizeof *r->value);
    r->x = cot__alloc(al, r->most * sizeof *r->x);
    if (!r->value || !r->x) return false;
    for (uint32_t v = 0; v < p->values; v++) r->value[v] = COT__NO_VALUE;
    return true;
}

cot__program *cot__rewrite_run(const cot__program *p, const cot__pass_options *o, const cot__edit *edit) {
    cot__rewrite r = {.from = p, .edit = edit};
    cot__builder_open(&r.to, o->al, o->caller);
    if (!open_lists(&r, o->al)) cot__rewrite_no_memory(&r, (p->values + r.most) * sizeof *r.value);
    else walk(&r);
    cot__free(o->al, r.value, p->values * sizeof *r.value);
    cot__free(o->al, r.x, r.most * sizeof *r.x);
    cot__program *made = cot__builder_close(&r.to);
    if (!made || r.changes) return made;
    cot__program_release(made);
    return cot__program_share(p);
}
