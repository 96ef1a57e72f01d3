/* fusion.h: which operations of a program run together, block by block, as one stage of elementwise
 * work (backend/runs.h), and which values then live only while a block is worked on.
 *
 * A group is a row of elementwise operations, casts and copies over arrays of one number of
 * elements, between which only views stand. A member may read anything from before the group: views
 * of any strides, values without axes. Of what the group itself makes it may read element i only to
 * make element i. So blocks can be done in any order, and every element is computed and rounded as
 * if each operation ran alone.
 *
 * None of these operations has an effect, and none moves across another: a group is where its
 * operations are. The pass `gather` (passes/gather.c) brings together what may stand together. */
#ifndef COT_PROGRAM_FUSION_H
#define COT_PROGRAM_FUSION_H

#include "program/program.h"

/* Why an operation does not run together with elementwise work before it. */
#define COT__UNFUSED(_)                                                                                                \
    _(FUSED, "it does")                                                                                                \
    _(NOT_ELEMENTWISE, "it is not elementwise, or has no axes")                                                        \
    _(NOTHING_BEFORE, "an operation stands between that is not elementwise")                                           \
    _(OTHER_SIZE, "its arrays have another number of elements")                                                        \
    _(OTHER_ORDER, "it reads elements of the group in another order")                                                  \
    _(FULL, "the group is full")

#define COT__UNFUSED_NAME(name, text) COT__##name,
typedef enum cot__unfused { COT__UNFUSED(COT__UNFUSED_NAME) COT__UNFUSED_COUNT } cot__unfused;
extern const char *const cot__unfused_text[COT__UNFUSED_COUNT];

/* How a value lives that only its group reads: within a block, or, as the plan decides, in a whole
 * array, mostly where a result of the group will lie. */
enum { COT__INSIDE = 1, COT__INSIDE_AT_HOME = 2 };

/* Operations first … end - 1: `runs` members, of two at least, and views. */
typedef struct cot__group { uint32_t first, end, runs; } cot__group;

typedef struct cot__fusion {
    cot_allocator  al;
    uint32_t       values, operations; /* of the program */
    cot__group    *group;
    uint32_t       groups, room;
    uint32_t      *of;     /* for each operation: its group, or COT__NO_VALUE */
    uint8_t       *why;    /* for each operation: a cot__unfused */
    uint8_t       *inside; /* for each value: 0, or how it lives */
} cot__fusion;

/* False after telling the caller that there is no memory; then there is nothing to close. */
bool cot__fusion_open(cot__fusion *f, const cot__program *p, const cot_allocator *al, const cot__caller *caller);
void cot__fusion_close(cot__fusion *f);

/* ---- for those who look at a program the same way -------------------------------------------- */

/* Can operation k be a member of a group? */
bool cot__is_fusable(const cot__program *p, uint32_t k);
/* How many elements it makes. */
int64_t cot__fused_size(const cot__program *p, uint32_t k);
/* Is operation k a view in every plan, and of no effect but this? `dense`: its operand has all
 * elements of a result in their order. */
bool cot__is_always_view(const cot__program *p, uint32_t k, bool dense);
/* Does it leave the order of the elements as it is? */
bool cot__keeps_order(int op);

#endif
