/* A differential equation and data: the four rates of Lotka and Volterra's equations from noisy
 * counts of prey and predators. The equations are solved by steps of Dormand and Prince's method,
 * as long as their errors allow, on the tape (models/dopri.c); least squares then has exact
 * derivatives of the solution at 24 times by the rates. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

#include "../models/lotka.h"

static cot_var residuals(int n, const cot_var *xs, void *user) {
    return n == 1 ? lotka_residuals(user, xs[0]) : COT_NONE;
}

int main(void) {
    double    guess[LOTKA_UNKNOWN], found[LOTKA_UNKNOWN], errors[LOTKA_UNKNOWN];
    char      why[600] = "";
    lotka     counts   = {0};
    cot_tape *t        = cot_tape_create(NULL);
    int       wrong    = lotka_generate(&counts, 7, why, sizeof why);
    if (!wrong) {
        lotka_guess(&counts, guess);
        cot_var                  unknown = cot_tensor(t, COT_F64, COT_SHAPE(LOTKA_UNKNOWN), guess);
        cot_least_squares_report report  = {.errors = errors};
        /* steps of 1e-7 need no more */
        cot_least_squares(1, &unknown, residuals, &counts, &(cot_least_squares_options){.tolerance = 1e-6}, &report);
        cot_read(unknown, found, LOTKA_UNKNOWN);
        wrong = cot_tape_status(t) != COT_OK || report.end != COT_FIT_CONVERGED;
        printf("%lld counts of both, each off by about 5 %%; what is left after the fit is %.1f %%\n\n",
               (long long)counts.n, 100 * report.sd);
        printf("rate                      first guess   found    error   in fact\n");
        for (int k = 0; k < LOTKA_RATES; k++) {
            double rate = exp(found[k]), error = rate * errors[k];
            printf("%-24s  %11.4f  %6.4f  %7.4f  %7.3f\n", lotka_names[k], exp(guess[k]), rate, error, lotka_truth[k]);
            wrong |= !(fabs(rate - lotka_truth[k]) < 3 * error) || !(error < 0.1 * rate);
        }
    }
    if (wrong) fprintf(stderr, "a result is off. %s%s\n", why, cot_tape_message(t));
    lotka_free(&counts);
    cot_tape_destroy(t);
    return wrong;
}
