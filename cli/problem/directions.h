/* directions.h: Jacobians, and their products with seeds, by sweeps in either mode. Few directions
 * are swept at a time, so that progress can be shown. */
#ifndef COT_CLI_DIRECTIONS_H
#define COT_CLI_DIRECTIONS_H

#include "problem/problem.h"

/* The most elements of a matrix: 1 GB of numbers, some 2.5 GB of text. */
enum { MATRIX_MOST = 1 << 27 };

/* The matrix (M, N) of derivatives of the ys (M elements in all) by the n xs (N elements in all).
 * `what` names it in the progress line. */
bool directions_jacobian(const char *what, cot_tape *t, cot_mode mode, int m, const cot_var *ys, int64_t M, int n,
                         const cot_var *xs, int64_t N, double *out, failure *f);
/* seed (M) times this matrix: out (N). Forward mode sweeps once for each element of the inputs. */
bool directions_gradient(cot_tape *t, cot_mode mode, cot_var y, int64_t M, const double *seed, int n, const cot_var *xs,
                         int64_t N, double *out, failure *f);

#endif
