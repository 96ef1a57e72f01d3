/* descend.h: the way down to a minimum of a function of many variables (descend.c). It works on
 * plain numbers and knows no tape. */
#ifndef COT_DESCEND_H
#define COT_DESCEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The function f, as calls. Each call returns false to stop the search, after setting an error
 * elsewhere. `at` may round x to numbers that its dtype can hold. */
typedef struct cot__landscape {
    void   *ctx;
    int64_t n;
    /* machine epsilon of the dtype in which f is computed */
    double  eps;
    bool (*at)(void *ctx, double *x, double *f, double *g);           /* value and gradient at x */
    /* the second derivative at x times v */
    bool (*bend)(void *ctx, const double *x, const double *v, double *hv);
} cot__landscape;

typedef enum cot__descent { COT__DOWN, COT__DOWN_STUCK, COT__DOWN_STOPPED } cot__descent;

typedef struct cot__descended { int steps; double first, f, gradient; } cot__descended;

size_t cot__descend_bytes(int64_t n);
/* Moves x to a point where the gradient is at most goal * (1 + the first gradient), and around
 * which f does not bend down. `work` has cot__descend_bytes bytes. */
cot__descent cot__descend(const cot__landscape *f, double *x, int most, double goal, void *work, cot__descended *how);
/* Does f bend down around x? 1: yes; 0: no such direction was found; -1: stopped. `work` as
 * above. */
int cot__bends_down(const cot__landscape *f, const double *x, void *work);

#endif
