/* The life of values: overwritten, forgotten, detached; and how C's own loops and branches differentiate.
 *
 * With COT_SOURCE_LINES defined before the include, messages name the lines of this file. */
#define COT_SOURCE_LINES
#include <cotangent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int differs(double got, double want) { return !(fabs(got - want) < 1e-9); }

/* y = x² has derivative 2x and so needs x once more on the way back. If x has been overwritten by then there is no right answer;
 * the tape says so, instead of giving a wrong one. */
static int overwritten(cot_tape *t) {
    cot_var x = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), "x");
    cot_var y = cot_sum(cot_square(x), COT_ALL), before = x;
    cot_mul_into(&x, 10.0);
    cot_backward(y);
    printf("Overwritten in place\n  status %s\n  %s\n", cot_status_name(cot_tape_status(t)), cot_tape_message(t));
    int wrong = cot_tape_status(t) != COT_STALE;

    /* Clear the error, which would otherwise stick, and do it with a value of its own for the product: all is well. */
    cot_tape_clear_error(t);
    cot_assign(x, 0.0);
    (void)before;
    return wrong;
}

int main(void) {
    cot_tape *t     = cot_tape_create(NULL);
    int       wrong = overwritten(t);
    printf("%s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
