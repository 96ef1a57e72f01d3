/* fusion_parts.h: the inside of looking for groups, which fusion.c and spans.c share. */
#ifndef COT_PROGRAM_FUSION_PARTS_H
#define COT_PROGRAM_FUSION_PARTS_H

#include "backend/runs.h"
#include "program/fusion.h"

/* How a value views the elements of its base: all of them, a range, or each of them repeated along
 * a row. */
enum { COT__OTHER_WAY, COT__WHOLE_IN_ORDER, COT__RANGE_IN_ORDER, COT__ALONG_ROWS };

typedef struct cot__group_search {
    cot__fusion        *f;
    const cot__program *p;
    const cot__view    *inputs; /* their strides, or NULL */
    /* For each value: the one whose elements it views, itself if it is no view; how; and of a range
     * its first element. */
    uint32_t           *base;
    uint8_t            *straight;
    int64_t            *shift;
    uint32_t           *last_reader; /* of each base; p->operations: it is given out */
    /* For each operation: it may read nothing shifted, because that did not work out. */
    uint8_t            *alone;
    int64_t             size;       /* of the group that is open */
    uint32_t            open, last; /* its number (COT__NO_VALUE: none) and its last member */
    uint32_t            shifted;    /* the first member that reads something shifted, or none */
    bool                reads_product; /* does a member, if the group begins with one? */
    uint32_t            again;      /* where the walk goes on if not with the next operation */
} cot__group_search;

/* Does the group that is open make the value, or what it views? */
static inline bool cot__in_open_group(const cot__group_search *s, uint32_t v) {
    if (v == COT__NO_VALUE || s->open == COT__NO_VALUE) return false;
    uint32_t base = s->base[v];
    return cot__value_origin(s->p, base) == COT__FROM_OPERATION && s->f->of[cot__value_maker(s->p, base)] == s->open;
}

/* How many elements further on than its result operation k reads operand i, which its group makes;
 * of a patch, than the result that is patched. */
int64_t cot__shift_of(const cot__group_search *s, uint32_t k, int i);
/* Is that within what groups do? */
bool cot__shift_is_short(int64_t shift);

/* The spans of the members of the group that is open. False: there are none, because what would be
 * made twice is read elsewhere, or is too much. */
bool cot__find_spans(cot__group_search *s);

#endif
