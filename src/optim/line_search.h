/* line_search.h: a step along a line that satisfies the strong Wolfe conditions, in plain
 * numbers. */
#ifndef COT_OPTIM_LINE_SEARCH_H
#define COT_OPTIM_LINE_SEARCH_H

#include <stdbool.h>

/* A function φ of one number a >= 0 with φ'(0) < 0. */
typedef struct cot__line {
    /* φ(a) and φ'(a); values that are not finite mean that the step was too long. False: the
     * search cannot go on. */
    bool (*at)(void *user, double a, double *value, double *slope);
    void  *user;
    double value, slope; /* at 0 */
} cot__line;

typedef enum cot__line_end {
    COT__LINE_FOUND,
    COT__LINE_LOWER, /* the conditions hold nowhere it looked, but φ(a) is lower by the first */
    COT__LINE_NONE,  /* no lower point was found */
    COT__LINE_FAILED
} cot__line_end;

/* From the first guess *a; *a receives the step. The last call of `at` was there, if it found one
 * or a lower point. */
cot__line_end cot__line_search(const cot__line *l, double *a);

#endif
