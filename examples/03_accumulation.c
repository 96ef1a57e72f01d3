/* Adjoints add up: over every use of a variable within a sweep, and over sweeps until gradients are
 * zeroed.
 *
 * Three functions share the leaves x and y here. Between them the tape is rewound to a mark, which
 * forgets what was recorded since, and the gradients of the leaves are set to zero. */
#include <cotangent.h>
#include <stdio.h>

static int check(const char *text, cot_var f, cot_var x, cot_var y, double value, double dx, double dy) {
    double got[3] = {cot_value(f), cot_grad_value(x), cot_grad_value(y)};
    printf("%s   f = %5.2f   df/dx = %5.2f   df/dy = %5.2f\n", text, got[0], got[1], got[2]);
    return got[0] != value || got[1] != dx || got[2] != dy; /* small integers: exact */
}

int main(void) {
    cot_tape *t    = cot_tape_create(NULL);
    cot_var   x    = cot_scalar(t, 2.0);
    cot_var   y    = cot_scalar(t, 3.0);
    cot_mark  mark = cot_tape_mark(t);

    /* (x + y)²: one value, used twice in its square. */
    cot_var s = cot_add(x, y), f = cot_mul(s, s);
    cot_backward(f);
    int wrong = check("(x + y)² at (2, 3)         ", f, x, y, 25, 10, 10);

    /* A second sweep adds its gradient to the first one's: that is how gradients of several losses
     * are summed. */
    cot_backward(f);
    wrong |= check("  the same, swept once more", f, x, y, 25, 20, 20);
    cot_tape_rewind(t, mark);
    cot_tape_zero_grads(t);

    /* x·y + x + y: dx is y from the product and 1 from the sum. */
    f = cot_add(cot_add(cot_mul(x, y), x), y);
    cot_backward(f);
    wrong |= check("x·y + x + y at (2, 3)      ", f, x, y, 11, 4, 3);
    cot_tape_rewind(t, mark);
    cot_tape_zero_grads(t);

    /* x² + x at 3: the same variable through two operations, 2x + 1. y takes no part, and gets
     * nothing. */
    cot_assign(x, 3.0);
    f = cot_add(cot_square(x), x);
    cot_backward(f);
    wrong |= check("x² + x at 3                ", f, x, y, 12, 7, 0);

    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
