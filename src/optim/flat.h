/* flat.h: a function of leaves as a function of one vector of doubles: it is recorded at each
 * point, read, and forgotten at the next. */
#ifndef COT_OPTIM_FLAT_H
#define COT_OPTIM_FLAT_H

#include "optim/optim.h"

typedef struct cot__flat {
    cot_tape      *t;
    const char    *op;
    int            n;
    const cot_var *xs;
    cot_function   f;
    void          *user;
    int64_t        size; /* elements of all xs */
    cot_mark       start;
    cot_var        y;    /* what f recorded last */
} cot__flat;

/* Checks the leaves (f64, or with `narrow` f32 too). False after setting the error. */
bool cot__flat_open(cot__flat *w, const char *op, int n, const cot_var *xs, cot_function f, void *user, bool narrow);
/* Forgets what was recorded; an error stays. */
void cot__flat_close(cot__flat *w);
/* The numbers of the leaves, as they are. */
bool cot__flat_read(const cot__flat *w, double *x);
/* Puts x into the leaves and records f there, which becomes w->y. */
bool cot__flat_record(cot__flat *w, const double *x);

#endif
