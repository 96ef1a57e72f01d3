/* layout.h: what the printed function does when, and where its values lie.
 *
 *   - Operations on 0-d values are statements, and their results are local variables.
 *   - Neighbouring elementwise operations over one shape become one loop, a block. A value that
 *     only this block reads, element by element, is a local variable in it.
 *   - Every other operation is a block of its own.
 *   - An output lies where the caller wants it, everything else in the workspace, in the smallest
 *     range that is free while it is read. */
#ifndef COT_EMIT_LAYOUT_H
#define COT_EMIT_LAYOUT_H

#include "program/plan.h"

typedef enum cot__home {
    COT__AT_NAME,      /* a 0-d value: a variable, a parameter or a number */
    COT__AT_LOOP,      /* a variable in the loop of its block */
    COT__AT_INPUT,
    COT__AT_CONSTANT,
    COT__AT_OUTPUT,
    COT__AT_WORKSPACE
} cot__home;

typedef struct cot__layout {
    const cot__program *p;
    cot__plan           plan;  /* which values are views of which */
    uint32_t           *block; /* of each operation */
    /* for each value: does anything that is printed read it, or a view of it? */
    uint8_t            *wanted;
    uint8_t            *home;  /* of each value that is no view, a cot__home */
    int64_t            *place; /* its byte in the workspace, or the number of its output */
    /* of each operation: where it has memory of its own while it runs; -1: it needs none */
    int64_t            *scratch;
    int64_t             workspace;
} cot__layout;

bool cot__layout_open(cot__layout *l, const cot__program *p, const cot_allocator *al, const cot__caller *caller);
void cot__layout_close(cot__layout *l);

/* Is it done element by element: an elementwise operation, a cast or a copy? */
bool cot__is_by_element(const cot__program *p, uint32_t k);
/* Is it a view, or is its result not wanted, so that nothing is done? */
bool cot__is_no_work(const cot__layout *l, uint32_t k);
/* Is it done element by element on an array? Then it is part of a loop. */
bool cot__is_in_loop(const cot__layout *l, uint32_t k);
/* Does it read its operands row-major? Those that are not are copied first, to scratch memory: to
 * this byte of it, or -1: operand i is row-major. */
bool    cot__wants_dense(int op);
int64_t cot__dense_copy(const cot__layout *l, uint32_t k, int i);
/* All such copies. What a loop needs besides follows (bodies.h). */
int64_t cot__dense_bytes(const cot__layout *l, uint32_t k);
/* What a value takes in the workspace. */
int64_t cot__home_bytes(const cot__view *v);
/* Do the elements of a value stand in the order of its root's, all of them? */
bool cot__is_whole(const cot__layout *l, uint32_t value);
static inline uint32_t cot__root_of(const cot__layout *l, uint32_t value) { return l->plan.root[value]; }

#endif
