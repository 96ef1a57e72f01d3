/* lotka.h: prey x and predators y by the equations of Lotka and Volterra,
 *
 *     x' = a x - b x y        y' = d x y - c y
 *
 * and counts of both, from which the rates a, b, c, d are to be found. Unknown are the logarithms
 * of the four and of the state at the first count, so that all stay positive. */
#ifndef MODELS_LOTKA_H
#define MODELS_LOTKA_H

#include <cotangent.h>

#include "dopri.h"

enum { LOTKA_RATES = 4, LOTKA_UNKNOWN = 6, LOTKA_MOST = 1000 }; /* at most so many counts */
/* "birth of prey", … */
extern const char *const lotka_names[LOTKA_RATES];
/* Those of the counts that are generated. */
extern const double lotka_truth[LOTKA_RATES];

typedef struct lotka {
    int64_t n;
    double *time;  /* (n), rising */
    double *count; /* (n, 2): prey, predators */
} lotka;

/* Each returns 0, or sets a sentence and returns 1; call lotka_free in both cases. */

/* 24 counts of both at times 0, 1, …, each off by a random factor of about 5 %. */
int lotka_generate(lotka *c, uint64_t seed, char *why, size_t room);
/* A table with the columns time, prey and predators. Everything is checked. */
int  lotka_read(lotka *c, const char *path, char *why, size_t room);
void lotka_free(lotka *c);

/* A guess at the unknown to begin with: its first counts, and rates for cycles of its length. */
void lotka_guess(const lotka *c, double unknown[LOTKA_UNKNOWN]);
/* From the unknown (6), f64, what the counts are off by: the logarithm of the solution less that of
 * the count, (n, 2). */
cot_var lotka_residuals(const lotka *c, cot_var unknown);

#endif
