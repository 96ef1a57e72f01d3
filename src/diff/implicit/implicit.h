/* implicit.h: values that an equation defines: linear systems without a matrix, roots, minima.
 *
 * May call: base, rules, backend, program, tape, ops, the engine, functions, loops. Must not touch:
 * slots and adjoints. */
#ifndef COT_IMPLICIT_H
#define COT_IMPLICIT_H

#include "diff/engine/sweep.h"
#include "diff/implicit/system.h"
#include "tape/lower.h"

struct cot__called;

typedef struct cot__linsolve {
    const char        *name;
    /* what the solution is for the caller, for messages ("the derivative of the solution"). NULL: a
     * solution */
    const char        *wanted;
    const cot__region *a; /* the linear function: one input and one result of the same shape */
    cot_solve_options  options;
    /* a is known to be linear: by the way it was made, or by a test at the first solution */
    bool               proven;
} cot__linsolve;

/* cot_linear_solve for an operation called `name` that needs it. `wanted` says what the solution is
 * for the caller, such as "the derivative of the solution"; A is then ∂F/∂x. */
cot_var cot__linear_solve(const char *name, const char *wanted, cot_fn a, void *user, cot_var b,
                          const cot_solve_options *options);

/* Records a solve whose operator is there. */
cot_var cot__linear_solve_record(cot_tape *t, cot__linsolve *l, cot_var b);

/* ---- elimination, of so many unknowns as become a matrix ---- */

bool cot__has_elimination(int64_t size, bool positive_definite);
/* ys[0] = x with xs[0]ᵀ x = xs[1]: a cot_fn. */
int cot__eliminate(int n, const cot_var *xs, int m, cot_var *ys, void *user);
/* The same as a body, recorded; NULL after an error. Is a program that body? And calling it. */
const cot__region *cot__record_elimination(cot_tape *t, const char *name, int64_t n);
bool cot__elimination_fits(const cot__job *j, const cot__program *p, int64_t n);
bool cot__elimination_go(struct cot__called *c, const cot__job *j, const cot__caller *caller, const double *m,
                         const double *b, double *x);

/* The operation without a tape, in a program (linear_solve_job.c). */
bool    cot__linear_solve_infer(const cot__job *j, cot__type *z);
int64_t cot__linear_solve_workspace(const cot__job *j);
void   *cot__linear_solve_open(const cot__job *j, const cot_allocator *al);
bool    cot__linear_solve_go(const cot__job *j);
void    cot__linear_solve_close(void *held);
bool    cot__linear_solve_effect(const cot__attr *a);
bool    cot__linear_solve_plain(cot__rule *r, cot__plain *to);
/* Records it on a tape again: see cot__loop_replay. */
cot_var cot__linear_solve_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                                 cot__replayer *replay);

/* Are the options valid? Otherwise sets the error. */
bool cot__solve_options_fit(cot_tape *t, const char *name, const cot_solve_options *options);
/* ---- x with F(x, θ) = 0 ---- */

typedef struct cot__root {
    const char        *name;
    /* inputs x and θ; a result like x, and for a minimum also the value of which it is the
     * gradient */
    const cot__region *f;
    bool               least; /* a minimum is asked for */
    cot_solver         solver;
    void              *user;
    cot_solve_options  options;
} cot__root;

/* The operands are x0, θ and captures, in the order in which the player takes them. */
static inline int cot__root_operands(const cot__root *q) { return q->f->n + q->f->captures; }
/* Plays F on operands. For a minimum `value`, unless NULL, receives the value whose gradient F
 * is. */
cot_var cot__root_play(cot_tape *t, const cot__root *q, const cot_var *values, cot_var *value);

/* The derivative of F at a point, as a linear function (a cot_fn): v -> ∂F/∂x v. */
typedef struct cot__near { cot_tape *t; const cot__root *q; cot_var x; const cot_var *values; } cot__near;
int cot__root_forth(int n, const cot_var *xs, int m, cot_var *ys, void *near);

/* Records F's root, F being there; index: the nodes of x0 and θ. */
cot_var cot__root_record(cot_tape *t, cot__root *q, const uint32_t *index);

/* The operation without a tape, in a program (root_job.c). */
bool    cot__root_infer(const cot__job *j, cot__type *z);
int64_t cot__root_workspace(const cot__job *j);
void   *cot__root_open(const cot__job *j, const cot_allocator *al);
bool    cot__root_go(const cot__job *j);
void    cot__root_close(void *held);
bool    cot__root_effect(const cot__attr *a);
bool    cot__root_plain(cot__rule *r, cot__plain *to);
cot_var cot__root_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                         cot__replayer *replay);

/* x holds the start of the search and receives the solution of F for the operands args. Otherwise
 * sets the error. */
bool cot__root_find(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x);

#endif
