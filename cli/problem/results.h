/* results.h: numbers from the library's flat arrays, as arrays with shapes, and both forms of
 * printing them. */
#ifndef COT_CLI_RESULTS_H
#define COT_CLI_RESULTS_H

#include "output/print.h"
#include "problem/problem.h"

/* One block of a matrix of doubles with so many columns, as an array of that shape: `height` rows
 * from row `top` on, `width` columns from `left` on. f32 unless the dtype is f64: f32 holds bf16
 * and f16. */
bool result_block(cot_array *a, cot_dtype dtype, cot_shape shape, const double *matrix, int64_t columns, int64_t top,
                  int64_t height, int64_t left, int64_t width, failure *f);

/* "value" and an object of results by input: {"value": V, "grad": {"x": …}}, or lines. flat holds
 * the elements of the inputs in `of` one after the other; label stands before the name of the
 * input. Also what the tape notes. */
bool result_print(const problem *p, FILE *out, look how, const char *key, const char *label, int n,
                  problem_input *const *of, const double *flat, failure *f);

/* jac --sparse and hess --sparse (of a value of one element). */
bool sparse_jacobian_print(const problem *p, FILE *out, look how, failure *f);
bool sparse_hessian_print(const problem *p, FILE *out, look how, failure *f);

/* The wanted inputs; *n of them. Malloced. */
problem_input **result_wanted(const problem *p, int *n, failure *f);

/* What the tape notes about its data, if anything: a line, or a member of the open object. */
void result_note(const problem *p, FILE *out, cot__json *j);

#endif
