/* Derivatives by complex step: d f / d x = Im f(x + ih) / h, with no difference taken and so no
 * digits lost. h is so small that h*h underflows to 0: branches, which look at real parts, go the
 * way they go for real input. */
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
