/* results.h: makes arrays with shapes from the library's flat arrays, and prints them in both
 * forms. */
#ifndef COT_CLI_RESULTS_H
#define COT_CLI_RESULTS_H

#include "output/print.h"
#include "problem/problem.h"

/* One block of a matrix of doubles with so many columns, as an array of the given shape: `height`
 * rows from row `top` on, `width` columns from `left` on. The array is f64 if dtype is f64,
 * otherwise f32, which holds bf16 and f16. */
bool result_block(cot_array *a, cot_dtype dtype, cot_shape shape, const double *matrix, int64_t columns, int64_t top,
                  int64_t height, int64_t left, int64_t width, failure *f);

/* Prints the value and the results by input: {"value": V, "grad": {"x": …}}, or lines. `flat` holds
 * the elements for the inputs in `of`, one input after the other. `before` and `behind` stand
 * around the name of the input. Also prints the notes of the tape. */
bool result_print(const problem *p, FILE *out, look how, const char *key, const char *before, const char *behind, int n,
                  problem_input *const *of, const double *flat, failure *f);

/* For jac --sparse, and for hess --sparse of a value with one element. */
bool sparse_jacobian_print(const problem *p, FILE *out, look how, failure *f);
bool sparse_hessian_print(const problem *p, FILE *out, look how, failure *f);
/* There is no plan: for a dense pattern, the library's advice is replaced by the command's. */
bool sparse_plan_failure(const problem *p, failure *f);

/* A malloced list of the wanted inputs; *n is their number. */
problem_input **result_wanted(const problem *p, int *n, failure *f);

/* Prints the notes of the tape, if there are any: a line, or a member of the open object. */
void result_note(const problem *p, FILE *out, cot__json *j);

#endif
