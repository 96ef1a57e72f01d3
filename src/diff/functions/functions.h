/* functions.h: a C function that was run on inputs of its own, to be differentiated: what the forms
 * share.
 *
 * May call: base, rules, backend, tape, ops, the engine, products. Must not touch: slots and
 * adjoints. */
#ifndef COT_FUNCTIONS_H
#define COT_FUNCTIONS_H

#include "tape/tape.h"

typedef struct cot__form {
    cot_tape   *t;
    const char *op;
    int         n, m;
    cot_var     none; /* what a form fills after a failure */
    cot_status  status;
    cot_var    *in, *out; /* what the function read and gave */
    uint32_t   *x, *y;
    uint32_t    from; /* what is older was there before the form was asked */
    bool       *absent; /* if given: which xs have no adjoint, where all are floats */
} cot__form;

/* A form on n inputs; false: there is nothing to do, c->status says why. What a form fills may lie
 * where it reads, so it is filled last. Where the xs are on no tape, the m others (seeds or
 * tangents, if it has any) may be on one that is told. */
bool cot__form_open(cot__form *c, const char *op, int n, const cot_var *xs, int m, const cot_var *others);
/* Runs f; false after a failure. c->out are its m results as values of the tape, for ys, which is
 * only looked at. */
bool cot__form_run(cot__form *c, cot_fn f, void *user, const cot_var *xs, int m, const cot_var *ys);
/* cot_value_and_grad for an operation of another name, whose rule it is that the function gives one
 * float. */
cot_status cot__value_and_grad(const char *op, const char *rule, cot_fn f, void *user, int n, const cot_var *xs,
                               cot_var *y, cot_var *grads);
/* Σ <seeds[k], ∂ys[k]/∂x> of what was run, recorded: one for each x. NULL after a failure. */
cot_var *cot__form_pull(cot__form *c, const cot_var *seeds);
/* A list of m vars: the given one, or if that is NULL one that nobody reads. NULL after a
 * failure. */
const cot_var *cot__form_list(const cot__form *c, int m, const cot_var *list);
/* Fills a list with what was found; without it (NULL), with invalid vars. */
void cot__form_fill(const cot__form *c, int n, cot_var *list, const cot_var *found);
cot_status cot__form_status(const cot__form *c);

#endif
