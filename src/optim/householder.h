/* householder.h: small dense least squares by Householder reflections with column pivoting, in
 * place and without allocation. Matrices are stored column by column. */
#ifndef COT_OPTIM_HOUSEHOLDER_H
#define COT_OPTIM_HOUSEHOLDER_H

#include <stdint.h>

/* A (m, n), m >= n, becomes R in its upper triangle, with the columns in the order perm[]; c (m)
 * becomes Qᵀc. */
void cot__householder_qr(int64_t m, int n, double *a, double *c, int *perm);

/* Solves R z = c for the first `rank` unknowns; the others are 0. R has stride m between
 * columns. */
void cot__householder_solve(int64_t m, int n, int rank, const double *r, const double *c, double *z);

#endif
