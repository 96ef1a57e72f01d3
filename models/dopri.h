/* dopri.h: y' = f(t, y) by the pair of Dormand and Prince, orders 5 and 4, with steps as long as
 * the tolerances allow. The solver is one cot_while on the tape, so a reverse sweep goes back
 * through the steps that were taken, keeping a hundred states and running others again; the lengths
 * of steps count as given, and carry no derivative. */
#ifndef MODELS_DOPRI_H
#define MODELS_DOPRI_H

#include <cotangent.h>

enum { DOPRI_MOST = 8 }; /* components of y */

/* dy = f(t, y); records on the tape of y, whose d components are f64 scalars. */
typedef void (*dopri_f)(int d, cot_var t, const cot_var *y, cot_var *dy, void *user);

typedef struct dopri {
    dopri_f f;
    void   *user;
    int     d;
    double  relative, absolute; /* tolerances of a step; 0: 1e-8, 1e-10 */
} dopri;

/* From y at time t0 to time t1 > t0: y becomes the solution there. *h is the first step to try, and
 * becomes the one to go on with. The error is on the tape: more than a million steps, say. */
cot_status dopri_solve(const dopri *problem, double t0, double t1, cot_var *h, cot_var *y);

#endif
