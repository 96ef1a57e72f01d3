/* program.c: the life of a program, and its operations as jobs. */
#include "program/build.h"
#include "backend/runs.h"
#include "base/element.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

bool cot__operation_exists(int op) {
    return (op >= 0 && op < OP_elementwise_count) || (op >= OP_structural && op < OP_count);
}

bool cot__is_fetch(const cot__program *p, uint32_t k) {
    const cot__attr *a = p->operation[k].op == OP_copy ? cot__operation_attr(p, k) : NULL;
    return a && a->number == COT__FETCHES;
}

#define LIST(list, length)                                                                                             \
    {offsetof(cot__program, list), offsetof(cot__program, length), sizeof *((cot__program *)0)->list},
const cot__list_info cot__list_table[COT__LIST_COUNT] = {COT__LISTS(LIST)};

/* ---- life ------------------------------------------------------------------------------------ */

cot__program *cot__program_share(const cot__program *p) {
    cot__program *shared = (cot__program *)(uintptr_t)p;
    if (shared) atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

/* Bodies nest no deeper than COT__PROGRAM_DEPTH, so this may call itself. */
void cot__program_release(const cot__program *p) {
    cot__program *last = (cot__program *)(uintptr_t)p;
    if (!last || atomic_fetch_sub_explicit(&last->refs, 1, memory_order_acq_rel) != 1) return;
    cot_allocator al = last->al;
    for (uint32_t k = 0; k < last->bodies; k++) cot__program_release(last->body[k]);
    for (int k = 0; k < COT__LIST_COUNT; k++)
        cot__free(&al, cot__list_get(last, k), cot__list_length(last, k) * cot__list_table[k].size);
    cot__free(&al, last->data_block, last->data_room);
    cot__free(&al, last, sizeof *last);
}

size_t cot__program_bytes(const cot__program *p) {
    size_t bytes = sizeof *p + p->data_room;
    for (int k = 0; k < COT__LIST_COUNT; k++) bytes += cot__list_length(p, k) * cot__list_table[k].size;
    return bytes;
}

/* ---- operations as jobs ---------------------------------------------------------------------- */

/* A plain number stands beside a value, whose computing dtype it has. */
static cot__view number_operand(const cot__program *p, uint32_t k, void *number) {
    const uint32_t *x = cot__operation_operand(p, k);
    cot_dtype       compute = cot__dtype_compute(cot__value_view(p, x[x[0] == COT__NO_VALUE]).dtype);
    cot__store_f64(number, compute, cot__operation_number(p, k));
    return cot__number_view(number, compute);
}

void cot__operation_job(const cot__program *p, uint32_t k, const cot__caller *caller, cot__view *x, void *number,
                        cot__job *j) {
    const uint32_t *operand = cot__operation_operand(p, k);
    *j = (cot__job){.caller = caller, .op = p->operation[k].op, .n = cot__operation_operands(p, k), .x = x};
    j->record = cot__op_of(j->op);
    j->attr = cot__operation_attr(p, k);
    j->bodies = cot__operation_bodies(p, k);
    j->body = cot__behind(p->body, p->operation[k].body);
    for (int i = 0; i < j->n; i++) {
        if (operand[i] != COT__NO_VALUE) x[i] = cot__value_view(p, operand[i]);
        else x[i] = number_operand(p, k, number), j->numbers |= 1u << i;
    }
}
