/* The first gradient: f(x1, x2) = x1·x2 + sin(x1) at (π/4, 3).
 *
 * Calling cot_mul, cot_sin and cot_add computes f as usual and writes down, on the tape, what was
 * computed from what. One sweep over the tape in reverse then gives both derivatives: each line
 * hands its adjoint, the derivative of f by that line, on to its operands. By hand: df/dx1 = x2 +
 * cos(x1) and df/dx2 = x1. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

static int differs(double got, double want) { return !(fabs(got - want) < 1e-12); }

int main(void) {
    cot_tape *t  = cot_tape_create(NULL);
    cot_var   x1 = cot_name(cot_scalar(t, atan(1.0)), "x1"); /* π/4 */
    cot_var   x2 = cot_name(cot_scalar(t, 3.0), "x2");

    cot_var product = cot_mul(x1, x2);
    cot_var f       = cot_add(product, cot_sin(x1));
    cot_backward(f);

    printf("f(x1, x2) = x1·x2 + sin(x1) at (π/4, 3)\n\n");
    /* the values, top to bottom, and the adjoints, bottom to top */
    cot_tape_print_sweep(f, stdout);
    printf("\nf      = %.4f\n", cot_value(f));
    printf("df/dx1 = %.4f   (x2 + cos x1)\n", cot_grad_value(x1));
    printf("df/dx2 = %.4f   (x1)\n", cot_grad_value(x2));

    int wrong = cot_tape_status(t) != COT_OK || differs(cot_value(f), 3 * atan(1.0) + sqrt(0.5)) ||
                differs(cot_grad_value(x1), 3 + sqrt(0.5)) || differs(cot_grad_value(x2), atan(1.0));
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
