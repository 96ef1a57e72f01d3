/* sparse: measures the cost of a sparse Hessian, in units of colours times gradient, and how the
 * cost of a plan grows with n.
 *
 * A gradient means recording the function and cot_backward. A Hessian means recording it and
 * cot_sparse_hessian with a plan that exists. Times are the least of several samples, ten times as
 * many if n is a tenth; the sides of a ratio take turns. This is not a test: speed is measured, not
 * asserted. */
#include <cotangent.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Records a function of n variables. The leaves go to xs, their number to *count. */
typedef cot_var (*recorder)(cot_tape *t, int n, cot_var *xs, int *count);

/* the point of evaluation, made before the timing */
static double *starts;

/* Rosenbrock's chain, Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])²: tridiagonal */
static cot_var chain_scalars(cot_tape *t, int n, cot_var *xs, int *count) {
    cot_var f = cot_constant(t, 0);
    for (int i = 0; i < n; i++) xs[i] = cot_scalar(t, starts[i]);
    for (int i = 0; i + 1 < n; i++) {
        cot_var a = cot_sub(xs[i + 1], cot_square(xs[i])), b = cot_sub(1.0, xs[i]);
        f = cot_add(f, cot_add(cot_mul(100.0, cot_square(a)), cot_square(b)));
    }
    *count = n;
    return f;
}

static cot_var leaf_vector(cot_tape *t, int n) { return cot_tensor(t, COT_F64, COT_SHAPE(n), starts); }

static cot_var chain_tensor(cot_tape *t, int n, cot_var *xs, int *count) {
    cot_var x = leaf_vector(t, n), left = cot_slice(x, 0, 0, n - 1, 1), right = cot_slice(x, 0, 1, n, 1);
    xs[0] = x;
    *count = 1;
    return cot_sum(
        cot_add(cot_mul(100.0, cot_square(cot_sub(right, cot_square(left)))), cot_square(cot_sub(1.0, left))), COT_ALL);
}

/* The area of a surface over a grid of sqrt(n) by sqrt(n): cells of four corners, nine points a
 * row */
static cot_var surface(cot_tape *t, int n, cot_var *xs, int *count) {
    int     side = (int)sqrt((double)n);
    cot_var x = leaf_vector(t, side * side), z = cot_reshape(x, COT_SHAPE(side, side));
    cot_var top = cot_slice(z, 0, 0, side - 1, 1), bottom = cot_slice(z, 0, 1, side, 1);
    cot_var a = cot_slice(top, 1, 0, side - 1, 1), b = cot_slice(top, 1, 1, side, 1),
            c = cot_slice(bottom, 1, 0, side - 1, 1), d = cot_slice(bottom, 1, 1, side, 1);
    xs[0] = x;
    *count = 1;
    return cot_sum(cot_sqrt(cot_add(1.0, cot_add(cot_square(cot_sub(a, d)), cot_square(cot_sub(b, c))))), COT_ALL);
}

/* A layer of eight by eight for each of n / 8 items, Σ tanh(A x)²: matrix products between the
 * elementwise work, eight points a row */
static double *matrices;

static cot_var blocks(cot_tape *t, int n, cot_var *xs, int *count) {
    int     items = n / 8;
    cot_var a = cot_wrap(t, COT_F64, COT_SHAPE(items, 8, 8), matrices), x = leaf_vector(t, items * 8);
    xs[0] = x;
    *count = 1;
    return cot_sum(cot_square(cot_tanh(cot_matmul(a, cot_reshape(x, COT_SHAPE(items, 8, 1))))), COT_ALL);
}

static void measure(const char *name, recorder f, int n, int samples) {
    cot_tape *t = cot_tape_create(NULL);
    cot_mark  mark = cot_tape_mark(t);
    cot_var  *xs = malloc((size_t)n * sizeof *xs);
    int       count;
    double    gradient = INFINITY, backward = INFINITY, hessian = INFINITY, making = INFINITY;
    cot_var   y = f(t, n, xs, &count);
    double    t0 = now();
    cot_sparse_plan *plan = cot_sparse_hessian_plan(y, count, xs);
    making = now() - t0;
    cot_sparse_info info = cot_sparse_plan_info(plan);
    double         *values = malloc(((size_t)info.nnz + 1) * sizeof *values);
    for (int k = 0; k < samples && plan && values; k++) {
        cot_tape_rewind(t, mark);
        t0 = now();
        y = f(t, n, xs, &count);
        double t1 = now();
        cot_backward(y);
        double t2 = now();
        gradient = fmin(gradient, t2 - t0);
        backward = fmin(backward, t2 - t1);
        cot_tape_rewind(t, mark);
        t0 = now();
        y = f(t, n, xs, &count);
        cot_sparse_hessian(plan, y, count, xs, values);
        hessian = fmin(hessian, now() - t0);
    }
    if (cot_tape_status(t) != COT_OK) printf("%s: %s\n", name, cot_tape_message(t));
    double ratio = hessian / (info.colours * gradient);
    printf("%-24s n %7d  %2d colours  gradient %8.3f ms (sweep %8.3f)  Hessian %8.3f ms  plan %8.3f ms   Hessian / "
           "(colours x "
           "gradient) %5.2f, target <= 1.2 %s\n",
           name, n, info.colours, 1e3 * gradient, 1e3 * backward, 1e3 * hessian, 1e3 * making, ratio,
           ratio <= 1.2 ? "met" : "MISSED");
    fflush(stdout);
    free(values);
    free(xs);
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 100000, samples = argc > 2 ? atoi(argv[2]) : 20;
    if (n < 20 || samples < 1) {
        fprintf(stderr, "usage: sparse [N [SAMPLES]]   N at least 20\n");
        return 2;
    }
    starts = malloc((size_t)n * sizeof *starts);
    matrices = malloc((size_t)n * 8 * sizeof *matrices);
    if (!starts || !matrices) return 1;
    for (int i = 0; i < 8 * n; i++) matrices[i] = 0.4 * cos(3.0 * i);
    for (int i = 0; i < n; i++) starts[i] = 0.5 + 0.3 * sin(i + 1.0);
    for (int k = 10; k >= 1; k /= 10) {
        measure("chain, scalars", chain_scalars, n / k, k * samples);
        measure("chain, tensor", chain_tensor, n / k, k * samples);
        measure("surface, tensor", surface, n / k, k * samples);
        measure("blocks, tensor", blocks, n / k, k * samples);
    }
    free(starts);
    free(matrices);
    return 0;
}
