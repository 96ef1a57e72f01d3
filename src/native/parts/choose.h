/* choose.h: which operations of a program become functions of native code, and what these read and
 * write.
 *
 * A part is a row of operations that stand next to each other: statements on 0-d values, loops over
 * arrays, loops over steps whose bodies are such statements, small reductions and moves. A loop
 * that threads should share is a part of its own. All else stands between parts: products of
 * matrices, long reductions, whatever checks its data.
 *
 * May call: base, rules, backend, program, program/emit. Must not touch: tapes, compilers. */
#ifndef COT_NATIVE_CHOOSE_H
#define COT_NATIVE_CHOOSE_H

#include "program/plan.h"
#include "program/run.h"

typedef enum cot__part_kind {
    COT__FOR_LIBRARY, /* the executor does it */
    COT__FOR_NOBODY,  /* a view: nothing is done */
    COT__AS_STATEMENT,
    COT__AS_LOOP,
    COT__AS_FOLD,     /* a reduction at the end of a loop */
    COT__AS_BLOCK,    /* a structural operation, as exported C has it */
    COT__AS_SCAN      /* a loop over steps whose bodies are statements */
} cot__part_kind;

typedef struct cot__choice {
    const cot__program *p;
    cot_allocator       al;
    cot__plan           plan;   /* the one that runs have */
    uint8_t            *kind;   /* of each operation */
    uint32_t           *of;     /* for each operation its part, or COT__NO_VALUE */
    /* for each value: is it read, or given out, outside the part that makes it? */
    uint8_t            *leaves;
    cot__run_part      *part;
    uint32_t           *value;
    uint32_t            parts, part_room, values, value_room;
} cot__choice;

/* False after telling the caller that there is no memory; then there is nothing to close. */
bool cot__choice_open(cot__choice *c, const cot__program *p, const cot_allocator *al, const cot__caller *caller);
void cot__choice_close(cot__choice *c);

/* The operations of the loop of operation k: its group's, or itself. */
cot__group cot__loop_of(const cot__choice *c, uint32_t k);
static inline int64_t cot__result_size(const cot__program *p, uint32_t k) {
    cot__view z = cot__value_view(p, p->operation[k].result);
    return cot__view_size(&z);
}

/* ---- loops (axes.c) -------------------------------------------------------------------------- */

/* The axes over which a loop goes: neighbouring axes that all of its arrays have as one are one. */
typedef struct cot__loop_axes {
    bool    flat;                /* one axis, whose positions are places of elements */
    int     count;
    int     axis[COT_MAX_NDIM];  /* the axis of the arrays that stands for each */
    int64_t extent[COT_MAX_NDIM];
    int     shared;              /* the one that threads share */
    int64_t unit;                /* positions of it that are done at a time */
} cot__loop_axes;

/* False: there is no such loop: its arrays have different shapes, or it reads what it makes in
 * another order, or shifted in too many ways (shifts.h). */
bool cot__find_axes(const cot__choice *c, const cot__group *g, cot__loop_axes *a);

/* Elements of a block of a loop with folds: it is a part of the reduction's tree, so a power of two
 * of its leaves. */
static inline int64_t cot__native_step(int64_t size) {
    int64_t step = 4 * COT__BLOCK;
    while (step < 16 * COT__BLOCK && 16 * step <= size) step *= 2;
    return step;
}

#endif
