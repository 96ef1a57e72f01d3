/* fusion.c: finds the groups of a program: one walk that joins neighbours, one that looks who reads
 * what a group makes. */
#include "program/fusion.h"
#include "backend/runs.h"
#include "rules/structural_ids.h"

#include <string.h>

#define TEXT(name, text) text,
const char *const cot__unfused_text[COT__UNFUSED_COUNT] = {COT__UNFUSED(TEXT)};

typedef struct search {
    cot__fusion        *f;
    const cot__program *p;
    /* For each value: the one whose elements it views, itself if it is no view; and whether it has
     * all of them in their order. */
    uint32_t           *base;
    uint8_t            *straight;
    int64_t             size;    /* of the group that is open */
    uint32_t            open, last; /* its number (COT__NO_VALUE: none) and its last member */
} search;

/* ---- operations by themselves ---------------------------------------------------------------- */

bool cot__is_fusable(const cot__program *p, uint32_t k) {
    int op = p->operation[k].op;
    if (cot__value_view(p, p->operation[k].result).ndim == 0 || cot__fused_size(p, k) == 0) return false;
    return op < OP_structural || op == OP_copy || op == OP_cast;
}

int64_t cot__fused_size(const cot__program *p, uint32_t k) {
    cot__view z = cot__value_view(p, p->operation[k].result);
    return cot__view_size(&z);
}

bool cot__keeps_order(int op) { return op == OP_reshape || op == OP_detach || op == OP_alias; }

bool cot__is_always_view(const cot__program *p, uint32_t k, bool dense) {
    int op = p->operation[k].op;
    if (op < OP_structural || !cot__op_of(op)->view || cot__value_view(p, p->operation[k].result).ndim == 0)
        return false;
    return op != OP_reshape || dense;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Elements of results and constants lie row-major; those of inputs lie as they are given. */
static bool is_dense(const search *s, uint32_t v) {
    return s->straight[v] && cot__value_origin(s->p, s->base[v]) != COT__FROM_INPUT;
}

static bool is_in_open_group(const search *s, uint32_t v) {
    uint32_t base = s->base[v];
    return s->open != COT__NO_VALUE && cot__value_origin(s->p, base) == COT__FROM_OPERATION &&
           s->f->of[cot__value_maker(s->p, base)] == s->open;
}

static cot__unfused reason(const search *s, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    if (s->open == COT__NO_VALUE) return COT__NOTHING_BEFORE;
    if (cot__fused_size(s->p, k) != s->size) return COT__OTHER_SIZE;
    for (int i = 0; i < cot__operation_operands(s->p, k); i++)
        if (x[i] != COT__NO_VALUE && is_in_open_group(s, x[i]) && !s->straight[x[i]]) return COT__OTHER_ORDER;
    return s->f->group[s->open].runs == COT__STAGE_RUNS ? COT__FULL : COT__FUSED;
}

/* A group of one is none. */
static void close_group(search *s) {
    if (s->open == COT__NO_VALUE) return;
    cot__group *g = &s->f->group[s->open];
    g->end = s->last + 1;
    if (g->runs == 1) {
        s->f->of[s->last] = COT__NO_VALUE;
        s->f->groups--;
    }
    s->open = COT__NO_VALUE;
}

static bool open_group(search *s, uint32_t k) {
    cot__fusion *f = s->f;
    if (f->groups == f->room) {
        uint32_t room = f->room ? 2 * f->room : 16;
        void    *more = cot__resize(&f->al, f->group, f->room * sizeof *f->group, room * sizeof *f->group);
        if (!more) return false;
        f->group = more;
        f->room = room;
    }
    f->group[f->groups] = (cot__group){.first = k};
    s->open = f->groups++;
    s->size = cot__fused_size(s->p, k);
    return true;
}

static bool join(search *s, uint32_t k) {
    cot__unfused why = reason(s, k);
    s->f->why[k] = (uint8_t)why;
    if (why != COT__FUSED) {
        close_group(s);
        if (!open_group(s, k)) return false;
    }
    s->f->of[k] = s->open;
    s->f->group[s->open].runs++;
    s->last = k;
    return true;
}

/* What a view views. */
static void follow_view(search *s, uint32_t k) {
    uint32_t z = s->p->operation[k].result, x = cot__operation_operand(s->p, k)[0];
    s->base[z] = s->base[x];
    s->straight[z] = s->straight[x] && cot__keeps_order(s->p->operation[k].op);
}

static bool walk(search *s) {
    for (uint32_t v = 0; v < s->p->values; v++) s->base[v] = v, s->straight[v] = 1;
    for (uint32_t k = 0; k < s->p->operations; k++) {
        bool structural = s->p->operation[k].op >= OP_structural;
        s->f->of[k] = COT__NO_VALUE;
        s->f->why[k] = COT__NOT_ELEMENTWISE;
        if (cot__is_fusable(s->p, k)) {
            if (!join(s, k)) return false;
        } else if (structural && cot__operation_operands(s->p, k) == 1 &&
                   cot__is_always_view(s->p, k, is_dense(s, cot__operation_operand(s->p, k)[0])))
            follow_view(s, k);
        else close_group(s);
    }
    close_group(s);
    return true;
}

/* ---- what stays inside ----------------------------------------------------------------------- */

static uint32_t group_of(const search *s, uint32_t v) {
    bool made = cot__value_origin(s->p, v) == COT__FROM_OPERATION;
    return made ? s->f->of[cot__value_maker(s->p, v)] : COT__NO_VALUE;
}

/* Values that something else than their group reads do not. */
static void find_readers(search *s) {
    const cot__program *p = s->p;
    uint8_t            *inside = s->f->inside;
    for (uint32_t v = 0; v < p->values; v++) inside[v] = group_of(s, v) != COT__NO_VALUE ? COT__INSIDE : 0;
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        bool            is_view = s->base[p->operation[k].result] != p->operation[k].result;
        if (is_view) continue; /* it reads nothing */
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE && s->f->of[k] != group_of(s, s->base[x[i]])) inside[s->base[x[i]]] = 0;
    }
    for (uint32_t k = 0; k < p->outputs; k++) inside[s->base[p->output[k]]] = 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool open_lists(search *s) {
    cot__fusion *f = s->f;
    f->of = cot__alloc(&f->al, f->operations * sizeof *f->of);
    f->why = cot__alloc(&f->al, f->operations);
    f->inside = cot__alloc(&f->al, f->values);
    s->base = cot__alloc(&f->al, f->values * sizeof *s->base);
    s->straight = cot__alloc(&f->al, f->values);
    return f->of && f->why && f->inside && s->base && s->straight;
}

bool cot__fusion_open(cot__fusion *f, const cot__program *p, const cot_allocator *al, const cot__caller *caller) {
    *f = (cot__fusion){.al = al ? *al : (cot_allocator){0}, .values = p->values, .operations = p->operations};
    search s = {.f = f, .p = p, .open = COT__NO_VALUE};
    bool   ok = open_lists(&s) && walk(&s);
    if (ok) find_readers(&s);
    cot__free(&f->al, s.base, f->values * sizeof *s.base);
    cot__free(&f->al, s.straight, f->values);
    if (ok) return true;
    cot__fusion_close(f);
    return cot__refuse(caller, COT_MEMORY, "out of memory: the groups of %u operations", p->operations);
}

void cot__fusion_close(cot__fusion *f) {
    cot__free(&f->al, f->of, f->operations * sizeof *f->of);
    cot__free(&f->al, f->why, f->operations);
    cot__free(&f->al, f->inside, f->values);
    cot__free(&f->al, f->group, f->room * sizeof *f->group);
    *f = (cot__fusion){0};
}
