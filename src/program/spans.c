/* spans.c: groups whose members read each other shifted: which elements each member makes for a
 * block.
 *
 * A member that reads element j + 1 of another one for its element j needs, of each block, one
 * element more. So members in front of it make some elements before or behind the block, too;
 * neighbouring blocks make them again. This works for values that live within blocks alone. */
#include "program/fusion.h"
#include "rules/structural_ids.h"

enum { MOST_SHIFT = 1024 }; /* elements; a block has some thousands */

enum { AXIS, FIRST, LENGTH, STEP };

/* ---- patches --------------------------------------------------------------------------------- */

/* The first element of a slice whose elements lie side by side in x, row-major; -1: they do not. */
static int64_t range_of(const cot__view *x, const int64_t *slice) {
    int64_t inner = 1;
    if (slice[STEP] != 1 && slice[LENGTH] != 1) return -1;
    for (int i = 0; i < slice[AXIS]; i++)
        if (x->shape[i] != 1) return -1;
    for (int i = (int)slice[AXIS] + 1; i < x->ndim; i++) inner *= x->shape[i];
    return slice[FIRST] * inner;
}

int64_t cot__range_at(const cot__program *p, uint32_t k) {
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]);
    return range_of(&x, cot__operation_attr(p, k)->ints);
}

bool cot__is_patch(const cot__program *p, uint32_t k) {
    int op = p->operation[k].op;
    if (op != OP_add_slice && op != OP_update_slice) return false;
    cot__view u = cot__value_view(p, cot__operation_operand(p, k)[1]);
    return cot__view_size(&u) > 0 && cot__range_at(p, k) >= 0;
}

/* ---- shifts ---------------------------------------------------------------------------------- */

int64_t cot__shift_of(const cot__group_search *s, uint32_t k, int i) {
    uint32_t v = cot__operation_operand(s->p, k)[i];
    int64_t  shift = s->straight[v] == COT__RANGE_IN_ORDER ? s->shift[v] : 0;
    return i == 1 && cot__is_patch(s->p, k) ? shift - cot__range_at(s->p, k) : shift;
}

bool cot__shift_is_short(int64_t shift) { return shift <= MOST_SHIFT && shift >= -MOST_SHIFT; }

static void need_more(cot__run_span *of, const cot__run_span *reader, int64_t shift) {
    if (reader->before - shift > of->before) of->before = reader->before - shift;
    if (reader->after + shift > of->after) of->after = reader->after + shift;
}

/* What member k reads of the group must be there for all that k makes. */
static void ask_operands(cot__group_search *s, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    for (int i = 0; i < cot__operation_operands(s->p, k); i++)
        if (cot__in_open_group(s, x[i]))
            need_more(&s->f->span[cot__value_maker(s->p, s->base[x[i]])], &s->f->span[k], cot__shift_of(s, k, i));
}

static bool is_possible(const cot__group_search *s, uint32_t k) {
    const cot__run_span *n = &s->f->span[k];
    if (n->before + n->after == 0) return true;
    return n->before + n->after <= COT__MOST_AGAIN && s->last_reader[s->p->operation[k].result] <= s->last;
}

bool cot__find_spans(cot__group_search *s) {
    uint32_t first = s->f->group[s->open].first;
    bool     possible = true;
    for (uint32_t k = first; k <= s->last; k++)
        if (s->f->of[k] == s->open)
            s->f->span[k] = (cot__run_span){cot__is_patch(s->p, k) ? cot__range_at(s->p, k) : 0, 0, 0};
    for (uint32_t k = s->last + 1; k-- > first;)
        if (s->f->of[k] == s->open) ask_operands(s, k);
    for (uint32_t k = first; k <= s->last; k++)
        if (s->f->of[k] == s->open) possible &= is_possible(s, k);
    return possible;
}
