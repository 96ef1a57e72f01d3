/* A user's program: f = x1 x2 + 2 sin x1, whose derivatives at (0.5, 3) are known. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

int main(void) {
    cot_tape *t  = cot_tape_create(NULL);
    cot_var   x1 = cot_scalar(t, 0.5), x2 = cot_scalar(t, 3.0);
    cot_var   f  = cot_add(cot_mul(x1, x2), cot_mul(2.0, cot_sin(x1)));
    cot_backward(f);
    double d1 = cot_grad_value(x1), d2 = cot_grad_value(x2);
    /* 3 + 2 cos 0.5, 0.5 */
    int    ok = cot_tape_status(t) == COT_OK && fabs(d1 - 4.7551651237807455) < 1e-14 && d2 == 0.5;
    printf("cotangent %s from C: f = %g  df/dx1 = %g  df/dx2 = %g %s\n", cot_version(), cot_value(f), d1, d2,
           cot_tape_message(t));
    cot_tape_destroy(t);
    return !ok;
}
