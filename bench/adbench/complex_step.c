/* Derivatives by complex step: d f / d x = Im f(x + ih) / h. No difference is taken, so no digits
 * are lost. h is so small that h*h underflows to 0. Branches look at real parts, so they go the
 * same way as for real input. */
#include "problems.h"

void ab_complex_step(const struct ab_instance *in, size_t j, double complex *params, double complex *work,
                     double complex *out, double *column) {
    const double h = 1e-200, x = creal(params[j]);
    params[j] = x + h * I;
    ab_objective_complex(in, params, work, out);
    params[j] = x;
    for (size_t i = 0; i < in->output_count; i++)
        column[i] = cimag(out[i]) / h;
}
