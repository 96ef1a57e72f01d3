/* show.h: programs for people: formulas, what a program takes before it runs, and a graph.
 *
 * What the folder does: it looks at a program and at its plan, and writes text. A plan is made as a
 * run makes it, but no memory to run in is taken.
 *
 * May call: base, job, rules, backend, program. Must not touch: tapes, elements. */
#ifndef COT_PROGRAM_SHOW_H
#define COT_PROGRAM_SHOW_H

#include "base/text.h"
#include "program/plan.h"

/* ---- formulas -------------------------------------------------------------------------------- */

/* How a formula is written: what a value is a view of, which values are written out, and the names
 * of the others. */
typedef struct cot__formula_style {
    const cot__program *p;
    cot__text          *to;
    void               *user;
    uint32_t (*root)(const void *user, uint32_t value);
    bool (*written_out)(const void *user, uint32_t root);
    void (*name)(void *user, uint32_t root);
    int depth; /* of operations in one formula */
} cot__formula_style;

/* tanh(a + b): what the operation computes that makes the value. */
void cot__put_formula_of(const cot__formula_style *s, uint32_t value);

/* ---- what a program takes -------------------------------------------------------------------- */

typedef struct cot__facts {
    /* operations in all, of which so many are views, instructions on scalars, members of groups;
     * the rest are jobs */
    int64_t operations, views, scalars, fused, jobs, groups;
    int64_t inputs, constants, outputs; /* bytes of their elements */
    int64_t workspace;                  /* bytes of the largest workspace, in the arena of a run */
    int64_t fused_away;                 /* bytes of values that live within their group */
    int64_t stored;                     /* bytes of values that lie in a file meanwhile */
} cot__facts;

cot__facts cot__plan_facts(const cot__plan *plan);
/* The groups of a plan with their formulas, then who reads from an array what another operation
 * made, and why the two do not run together. Needs memory of the plan's allocator; false: there is
 * none. */
bool cot__plan_print(const cot__plan *plan, cot__text *to);

/* ---- graphs ---------------------------------------------------------------------------------- */

/* The program as a graph for Graphviz: values as edges, groups as boxes around their operations. */
void cot__plan_dot(const cot__plan *plan, cot__text *to);

#endif
