/* along.h: the direction of jvp, hvp and taylor: the inputs that move, and their tangents. */
#ifndef COT_CLI_ALONG_H
#define COT_CLI_ALONG_H

#include "problem/problem.h"

/* The inputs that move or are asked for, and the direction: the elements of their tangents one
 * after the other, 0 for an input without a tangent. */
typedef struct direction {
    int             n;
    problem_input **inputs;
    cot_var        *vars;
    int64_t         size;
    double         *v;
} direction;

/* wanted_too: the inputs of --wrt are included. Call direction_free also after a failure. */
bool direction_make(direction *d, const problem *p, bool wanted_too, failure *f);
void direction_free(direction *d);

#endif
