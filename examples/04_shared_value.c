/* A value computed once and used twice: a = x·y, L = a + sin(a) at (2, 3).
 *
 * The tape holds a once, however often it is used. The reverse sweep waits until both uses have
 * given a its adjoint, 1 + cos(a), and passes it through the product once. A formula written out in
 * full, x·y + sin(x·y), would do that part of the work twice. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

static int differs(double got, double want) { return !(fabs(got - want) < 1e-12); }

int main(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_name(cot_scalar(t, 2.0), "x");
    cot_var   y = cot_name(cot_scalar(t, 3.0), "y");

    cot_var a = cot_name(cot_mul(x, y), "a");
    cot_var L = cot_name(cot_add(a, cot_sin(a)), "L");
    cot_retain_grad(a); /* leaves keep their gradients by themselves; other values when asked to */
    cot_backward(L);

    printf("a = x·y, L = a + sin(a) at (2, 3)\n\n");
    cot_tape_print_sweep(L, stdout);
    printf("\nL     = %.4f\n", cot_value(L));
    printf("dL/da = %.4f   (1 + cos a)\n", cot_grad_value(a));
    printf("dL/dx = %.4f   (y·dL/da)\n", cot_grad_value(x));
    printf("dL/dy = %.4f   (x·dL/da)\n", cot_grad_value(y));

    int wrong = cot_tape_status(t) != COT_OK || differs(cot_value(L), 6 + sin(6)) ||
                differs(cot_grad_value(a), 1 + cos(6)) || differs(cot_grad_value(x), 3 * (1 + cos(6))) ||
                differs(cot_grad_value(y), 2 * (1 + cos(6)));
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
