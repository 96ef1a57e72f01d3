/* forms.h: a C function that was run on inputs of its own, to be differentiated: what the forms share. */
#ifndef COT_FORMS_H
#define COT_FORMS_H

#include "tape/tape.h"

typedef struct cot__form {
    cot_tape   *t;
    const char *op;
    int         n, m;
    cot_var    *in; /* what the function read */
    uint32_t   *x, *y;
} cot__form;

/* The lists that a form fills or reads besides: there, or an error; what it fills is invalid at first. */
bool cot__form_lists(const char *op, int n, const cot_var *xs, int fills, cot_var *filled, int reads, const cot_var *read);
/* Runs f; false after a failure. ys receives its m results as values of the tape. */
bool cot__form_run(cot__form *c, const char *op, cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys);
/* Σ <seeds[k], ∂ys[k]/∂x> of what was run, recorded. */
cot_status cot__form_pull(cot__form *c, const cot_var *seeds, cot_var *grads);
cot_status cot__form_status(int n, const cot_var *xs);

#endif
