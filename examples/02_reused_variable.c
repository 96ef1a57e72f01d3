/* A variable used twice: f(x1, x2) = (x1 + x2)·x1 at (3, 4).
 *
 * x1 reaches f by two ways, through the sum and as a factor. Its adjoint is what arrives by the one
 * plus what arrives by the other: df/dx1 = x1 + (x1 + x2) = 10, df/dx2 = x1 = 3. */
#include <cotangent.h>
#include <stdio.h>

int main(void) {
    cot_tape *t  = cot_tape_create(NULL);
    cot_var   x1 = cot_name(cot_scalar(t, 3.0), "x1");
    cot_var   x2 = cot_name(cot_scalar(t, 4.0), "x2");

    cot_var sum = cot_name(cot_add(x1, x2), "sum");
    cot_var f   = cot_mul(sum, x1);
    cot_backward(f);

    printf("f(x1, x2) = (x1 + x2)·x1 at (3, 4)\n\n");
    cot_tape_print_sweep(f, stdout);
    printf("\nf      = %.4f\n", cot_value(f));
    printf("df/dx1 = %.4f   3 by way of the sum, 7 as the factor\n", cot_grad_value(x1));
    printf("df/dx2 = %.4f\n", cot_grad_value(x2));

    int wrong = cot_tape_status(t) != COT_OK || cot_value(f) != 21 || cot_grad_value(x1) != 10 ||
                cot_grad_value(x2) != 3; /* small integers: exact */
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
