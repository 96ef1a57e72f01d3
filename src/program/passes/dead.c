/* dead.c: operations and constants that nobody reads go.
 *
 * An operation lives if it has an effect, if an output is one of its results, or if a living
 * operation reads one. Operations are older than their readers, so one walk back finds them all.
 * Inputs stay: they are what a run is given. */
#include "program/passes/rewrite.h"

#include <string.h>

static bool is_read(const cot__program *p, uint32_t k, const uint8_t *read) {
    const cot__operation *o = &p->operation[k];
    bool                  lives = cot__operation_has_effect(p, k);
    for (uint32_t i = 0; i < o->results; i++) lives |= read[o->result + i];
    return lives;
}

static void find_read(const cot__program *p, uint8_t *read) {
    memset(read, 0, p->values);
    for (uint32_t k = 0; k < p->outputs; k++) read[p->output[k]] = 1;
    for (uint32_t k = p->operations; k-- > 0;) {
        const uint32_t *x = cot__operation_operand(p, k);
        if (!is_read(p, k, read)) continue;
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE) read[x[i]] = 1;
    }
}

static void edit_constant(cot__rewrite *r, uint32_t constant) {
    const uint8_t *read = r->edit->state;
    if (read[r->from->constant[constant].value]) cot__rewrite_keep_constant(r, constant);
    else r->changes++;
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    if (is_read(r->from, k, r->edit->state)) cot__rewrite_keep(r, k);
    else r->changes++;
}

cot__program *cot__pass_dead(const cot__program *p, const cot__pass_options *o) {
    uint8_t *read = cot__alloc(o->al, p->values);
    if (!read) {
        cot__refuse(o->caller, COT_MEMORY, "out of memory: %u bytes of a pass", p->values);
        return NULL;
    }
    find_read(p, read);
    cot__edit     how = {.state = read, .constant = edit_constant, .operation = edit_operation};
    cot__program *made = cot__rewrite_run(p, o, &how);
    cot__free(o->al, read, p->values);
    return made;
}
