/* rank.h: the inputs in the order of how much the value depends on them, for grad --rank. */
#ifndef COT_CLI_RANK_H
#define COT_CLI_RANK_H

#include "output/print.h"
#include "problem/problem.h"

/* Do the options that have to do with --rank fit together? */
bool rank_usage(const options *o, failure *f);
/* Prints and draws the sensitivities of the n inputs in `of`; `gradient` holds their derivatives,
 * one input after the other. */
void rank_print(const problem *p, FILE *out, look how, int n, problem_input *const *of, const double *gradient,
                failure *f);

#endif
