/* Seeds: differentiating a function with several results.
 *
 * y = x² elementwise has three results, so there is no one gradient; there is a Jacobian, here
 * diag(2x). A reverse sweep starts from a seed, one weight for each result, and gives seed ·
 * Jacobian: the gradient of the weighted sum of the results. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

static int sweep(const char *text, cot_var y, cot_var x, cot_var seed, const double want[3]) {
    double grad[3];
    cot_zero_grad(x);
    cot_backward_seeded(y, seed);
    cot_read_grad(x, grad, 3);
    printf("%-26s gradient [%.2f, %.2f, %.2f]\n", text, grad[0], grad[1], grad[2]);
    int wrong = 0;
    for (int i = 0; i < 3; i++) wrong |= !(fabs(grad[i] - want[i]) < 1e-12);
    return wrong;
}

int main(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3});
    cot_var   y = cot_square(x);

    double value[3];
    cot_read(y, value, 3);
    printf("y = x² at [1, 2, 3]:       value    [%.2f, %.2f, %.2f]\n", value[0], value[1], value[2]);

    int     wrong   = sweep("seed 1 everywhere:", y, x, cot_ones(t, COT_F64, COT_SHAPE(3)), (double[]){2, 4, 6});
    cot_var weights = cot_data(t, COT_F64, COT_SHAPE(3), (double[]){10, 1, 0.1});
    wrong |= sweep("seed [10, 1, 0.1]:", y, x, weights, (double[]){20, 4, 0.6});

    /* A sum has one result and needs no seed: its own derivative seeds y with ones. */
    cot_zero_grad(x);
    cot_backward(cot_sum(y, COT_ALL));
    double grad[3];
    cot_read_grad(x, grad, 3);
    printf("%-26s gradient [%.2f, %.2f, %.2f]\n", "backward of the sum:", grad[0], grad[1], grad[2]);
    wrong |= grad[0] != 2 || grad[1] != 4 || grad[2] != 6;

    /* All seeds at once, (1,0,0), (0,1,0), (0,0,1): the whole Jacobian. */
    double jacobian[9];
    cot_jacobian(1, &y, 1, &x, COT_AUTO, jacobian);
    printf("the Jacobian, diag(2x):\n");
    for (int i = 0; i < 9; i++) {
        printf("%6.2f%s", jacobian[i], i % 3 == 2 ? "\n" : "");
        wrong |= jacobian[i] != (i % 4 == 0 ? 2 * (i / 4 + 1) : 0);
    }

    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
