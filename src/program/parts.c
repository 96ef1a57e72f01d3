/* parts.c: parts of a run that functions made elsewhere may do: the steps once more, with a part
 * where its operations were, and the memory that its function is given. */
#include "program/run_parts.h"
#include "base/parallel.h"

/* ---- making ---------------------------------------------------------------------------------- */

static void *next(char *from, size_t *at, size_t bytes) {
    void *p = cot__behind(from, *at);
    *at += (bytes + 15) & ~(size_t)15;
    return p;
}

size_t cot__run_lay_out_parts(cot__run *r, const cot__run_parts *parts, size_t steps, char *from) {
    size_t at = 0;
    r->part_step = next(from, &at, steps * sizeof *r->part_step);
    r->part = next(from, &at, parts->parts * sizeof *r->part);
    r->part_at = next(from, &at, parts->values * sizeof *r->part_at);
    r->part_binding = next(from, &at, parts->values * sizeof *r->part_binding);
    return at;
}

/* The part of an operation, or the number of parts. Parts stand in the order of operations. */
static uint32_t part_of(const cot__run_parts *parts, uint32_t operation) {
    uint32_t low = 0, high = parts->parts;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (parts->part[middle].end <= operation) low = middle + 1;
        else high = middle;
    }
    return low < parts->parts && parts->part[low].first <= operation ? low : parts->parts;
}

bool cot__run_parts_differ(const cot__run_parts *parts, uint32_t a, uint32_t b) {
    return parts && part_of(parts, a) != part_of(parts, b);
}

/* The memory of `root`, and of what lies so many bytes behind it. */
static void find_place(cot__run *r, const cot__plan *plan, uint32_t k, uint32_t root, int64_t place) {
    uint32_t base = cot__run_base(plan, root);
    char    *data = cot__run_see(r, plan, root).data;
    r->part_at[k] = cot__behind(data, place);
    if (base != COT__NO_VALUE) r->part_binding[r->part_bindings++] = (cot__part_binding){k, base, place};
}

static void find_memory(cot__run *r, const cot__plan *plan, const cot__run_parts *parts) {
    for (uint32_t k = 0; k < parts->values; k++) {
        uint32_t v = parts->value[k], of = v & ~(COT__WORKSPACE_OF | COT__ELEMENT_OF);
        if (v & COT__WORKSPACE_OF) r->part_at[k] = r->arena + plan->workspace[of];
        else if (v & COT__ELEMENT_OF)
            find_place(r, plan, k, plan->root[cot__operation_operand(r->p, of)[0]], plan->extra[of]);
        else find_place(r, plan, k, plan->root[v], plan->root[v] == v ? 0 : plan->place[v]);
    }
}

void cot__run_prepare_parts(cot__run *r, const cot__plan *plan, const cot__run_parts *parts) {
    for (uint32_t k = 0; k < parts->parts; k++)
        r->part[k] = (cot__ready_part){parts->part[k].value, parts->part[k].shared, parts->part[k].cost,
                                       parts->part[k].ends};
    find_memory(r, plan, parts);
    for (uint32_t k = 0, last = parts->parts; k < r->steps; k++) {
        uint32_t part = part_of(parts, r->step[k].operation);
        if (part == parts->parts) r->part_step[r->part_steps++] = r->step[k];
        else if (part != last)
            r->part_step[r->part_steps++] = (cot__step){part, COT__STEP_PART, parts->part[part].first};
        last = part;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

void cot__run_bind_parts(cot__run *r) {
    for (uint32_t k = 0; k < r->part_bindings; k++) {
        const cot__part_binding *b = &r->part_binding[k];
        r->part_at[b->at] = (void *)((uintptr_t)r->base[b->base] + (uintptr_t)b->place);
    }
}

typedef struct share {
    cot__part_fn *fn;
    void *const  *at;
    int64_t       shared, parts;
} share;

static void do_share(void *ctx, int64_t part) {
    const share *s = ctx;
    s->fn(s->at, cot__part_start(s->shared, s->parts, part), cot__part_start(s->shared, s->parts, part + 1));
}

void cot__run_do_part(const cot__run *r, uint32_t part, cot__part_fn *fn) {
    const cot__ready_part *p = &r->part[part];
    share                  s = {fn, r->part_at + p->at, p->shared, cot__parts(p->shared, p->cost, 64)};
    if (p->shared && s.parts > 1) cot__parallel(s.parts, do_share, &s);
    else fn(s.at, 0, p->shared);
    if (p->ends) fn(s.at, -1, 0);
}
