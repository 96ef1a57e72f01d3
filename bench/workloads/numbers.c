/* numbers.c: a large elementwise function with its gradient, a Hessian-vector product, and a tall
 * Jacobian. */
#include "workloads/workloads.h"

enum { ELEMENTS = 1 << SIZED(22, 18), ROSENBROCK = 100000, INPUTS = 8, HIDDEN = 256, OUTPUTS = 1024 };

typedef struct numbers {
    cot_tape *t;
    cot_mark  start;
    cot_var   x, w1, w2;
    double   *v, *out;
} numbers;

static void destroy(void *state) {
    numbers *n = state;
    cot_tape_destroy(n->t);
    free(n->v), free(n->out);
    free(n);
}

/* Sums in eight chains. One chain would wait for each addition, which takes a tenth of a whole step
 * here. */
static double sum_of(const double *x, int n) {
    double chain[8] = {0}, sum = 0;
    int    i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) chain[k] += x[i + k];
    for (int k = 0; k < 8; k++) sum += chain[k];
    for (; i < n; i++) sum += x[i];
    return sum;
}

static numbers *make(void) {
    numbers *n = must(calloc(1, sizeof *n));
    n->t = must(cot_tape_create(NULL));
    return n;
}

/* ---- elementwise: y = sum(tanh(x) exp(-x²) + sin(x) sigmoid(x)), value and gradient ---------- */

static void *elementwise_make(void) {
    numbers *n = make();
    n->x = weights(n->t, 7, COT_SHAPE(ELEMENTS), 3);
    n->start = cot_tape_mark(n->t);
    return n;
}

static cot_var waves(cot_var x) {
    cot_var a = cot_mul(cot_tanh(x), cot_exp(cot_neg(cot_mul(x, x))));
    return cot_sum(cot_add(a, cot_mul(cot_sin(x), cot_sigmoid(x))), COT_ALL);
}

static double elementwise_function(void *state) {
    numbers *n = state;
    double   value = cot_value(waves(n->x));
    check(n->t);
    cot_tape_rewind(n->t, n->start);
    return value;
}

static double elementwise_step(void *state) {
    numbers *n = state;
    cot_var  y = waves(n->x);
    double   value = cot_value(y);
    cot_backward(y);
    check(n->t);
    cot_zero_grad(n->x);
    cot_tape_rewind(n->t, n->start);
    return value;
}

/* ---- rosenbrock_hvp: sum 100 (x[i+1] - x[i]²)² + (1 - x[i])² --------------------------------- */

static void *rosenbrock_make(void) {
    numbers *n = make();
    double  *x = uniform_f64(8, ROSENBROCK, 1);
    n->v = uniform_f64(9, ROSENBROCK, 1);
    n->out = must(malloc(ROSENBROCK * sizeof *n->out));
    n->x = cot_tensor(n->t, COT_F64, COT_SHAPE(ROSENBROCK), x);
    free(x);
    n->start = cot_tape_mark(n->t);
    return n;
}

static double rosenbrock_step(void *state) {
    numbers *n = state;
    cot_var  head = cot_slice(n->x, 0, 0, -1, 1), tail = cot_slice(n->x, 0, 1, COT_END, 1);
    cot_var  a = cot_mul(100.0, cot_square(cot_sub(tail, cot_square(head)))), b = cot_square(cot_sub(1.0, head));
    double   sum = 0;
    cot_hvp(cot_sum(cot_add(a, b), COT_ALL), 1, &n->x, n->v, n->out);
    sum = sum_of(n->out, ROSENBROCK);
    check(n->t);
    cot_tape_rewind(n->t, n->start);
    return sum;
}

/* ---- jac_tall: y = tanh(W2 tanh(W1 x)), the whole Jacobian ----------------------------------- */

static void *jacobian_make(void) {
    numbers *n = make();
    double  *x = uniform_f64(20, INPUTS, 1), *w1 = uniform_f64(21, HIDDEN * INPUTS, 0.3),
           *w2 = uniform_f64(22, OUTPUTS * HIDDEN, 0.06);
    n->x = cot_tensor(n->t, COT_F64, COT_SHAPE(INPUTS), x);
    n->w1 = cot_data(n->t, COT_F64, COT_SHAPE(HIDDEN, INPUTS), w1);
    n->w2 = cot_data(n->t, COT_F64, COT_SHAPE(OUTPUTS, HIDDEN), w2);
    n->out = must(malloc(OUTPUTS * INPUTS * sizeof *n->out));
    free(x), free(w1), free(w2);
    n->start = cot_tape_mark(n->t);
    return n;
}

static double jacobian_step(void *state) {
    numbers *n = state;
    double   sum = 0;
    cot_var  y = cot_tanh(cot_matmul(n->w2, cot_tanh(cot_matmul(n->w1, n->x))));
    cot_jacobian(1, &y, 1, &n->x, COT_AUTO, n->out);
    sum = sum_of(n->out, OUTPUTS * INPUTS);
    check(n->t);
    cot_tape_rewind(n->t, n->start);
    return sum;
}

/* `elementwise` is known to seven digits; the others to fourteen. */
const workload number_workloads[4] = {
    {"elementwise_function", "f32", elementwise_make, elementwise_function, destroy, 852839.9, SIZED(1e-6, 0), NULL},
    {"elementwise", "f32", elementwise_make, elementwise_step, destroy, 852839.9, SIZED(1e-6, 0), NULL},
    {"rosenbrock_hvp", "f64", rosenbrock_make, rosenbrock_step, destroy, 299794.59591440, 1e-12, NULL},
    {"jac_tall", "f64", jacobian_make, jacobian_step, destroy, 4.41506599338597, 1e-12, NULL},
};
