/* along.h: the direction of jvp, hvp and taylor: which inputs move, and how. */
#ifndef COT_CLI_ALONG_H
#define COT_CLI_ALONG_H

#include "problem/problem.h"

/* The inputs that move, or are asked for too, and the direction: the elements of their tangents one
 * after the other, 0 where none was given. */
typedef struct direction {
    int             n;
    problem_input **inputs;
    cot_var        *vars;
    int64_t         size;
    double         *v;
} direction;

/* wanted_too: with the inputs of --wrt. direction_free in any case. */
bool direction_make(direction *d, const problem *p, bool wanted_too, failure *f);
void direction_free(direction *d);

#endif
