/* squares.h: sums of squares to about the last digit. */
#ifndef COT_OPTIM_SQUARES_H
#define COT_OPTIM_SQUARES_H

#include <stdint.h>

/* |r|²; infinite if the sum or an element is not finite. */
double cot__squares_sum(int64_t n, const double *r);
/* |a|² - |b|², to about the last digit also when both are nearly the same. */
double cot__squares_decrease(int64_t n, const double *a, const double *b);

#endif
