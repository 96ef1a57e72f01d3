/* tape: measures the cost of recording and sweeping, as ratios taken in one run on this machine.
 *
 * It prints one line for each measurement: its name, the number, the target, and whether it is met.
 * Times are the least of several samples; the sides of a ratio take turns. This is not a test:
 * speed is measured, not asserted. */
#include <cotangent.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void line(const char *what, double number, const char *unit, double target) {
    printf("%-62s %9.3g %-9s target <= %-6g %s\n", what, number, unit, target, number <= target ? "met" : "MISSED");
    fflush(stdout);
}

/* uniform(seed, i): the generator of the benchmark workloads. */
static double uniform(uint64_t seed, uint64_t i, double scale) {
    uint64_t z = ((seed << 32) + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z = z ^ z >> 31;
    return (2 * (double)(z >> 11) * 0x1p-53 - 1) * scale;
}

/* ---- chain: x <- r x (1 - x), 1000 steps ----------------------------------------------------- */

enum { STEPS = 1000 };

static volatile double sink, x_start = 0.3, r_start = 3.7;

static double chain_plain(void) {
    double x = x_start, r = r_start;
    for (int k = 0; k < STEPS; k++) x = r * x * (1.0 - x);
    return x;
}

static void bench_chain(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_mark  start = cot_tape_mark(t);
    double    plain = INFINITY, record = INFINITY, both = INFINITY;
    for (int rep = 0; rep < 3000; rep++) {
        double t0 = now();
        for (int i = 0; i < 20; i++) sink = chain_plain();
        double t1 = now();
        cot_tape_rewind(t, start);
        double  t2 = now();
        cot_var x0 = cot_scalar(t, x_start), r = cot_scalar(t, r_start), x = x0;
        for (int k = 0; k < STEPS; k++) x = cot_mul(cot_mul(r, x), cot_sub(1.0, x));
        double t3 = now();
        cot_backward(x);
        double t4 = now();
        plain = fmin(plain, (t1 - t0) / 20);
        record = fmin(record, t3 - t2);
        both = fmin(both, t4 - t2);
        if (rep == 0 && fabs(cot_grad_value(x0) / -1.8429505840e+146 - 1) > 1e-9)
            printf("chain: WRONG gradient %g\n", cot_grad_value(x0));
    }
    line("record one scalar multiply or subtract", record / (3 * STEPS) * 1e9, "ns", 5);
    line("record it and sweep it back", both / (3 * STEPS) * 1e9, "ns", 12);
    line("gradient of chain / the plain C loop", both / plain, "x", 12);
    cot_tape_destroy(t);
}

/* A million operations: the bytes that the tape holds, by its own account. (Tests compare this
 * account with the bytes that it asked for.) */
static void bench_node(void) {
    enum { OPERATIONS = 1000000 };
    cot_tape *t = cot_tape_create(NULL);
    int64_t   empty = cot_tape_bytes(t);
    cot_var   x = cot_scalar(t, 1);
    while (cot_tape_length(t) < OPERATIONS) x = cot_mul(x, 0.5);
    line("memory of a scalar's node", (double)(cot_tape_bytes(t) - empty) / OPERATIONS, "bytes", 32);
    cot_tape_destroy(t);
}

/* ---- one small tensor operation -------------------------------------------------------------- */

static void bench_small_add(void) {
    cot_tape *t = cot_tape_create(NULL);
    float     zero[16] = {0};
    cot_var   a = cot_tensor(t, COT_F32, COT_SHAPE(16), zero), b = cot_tensor(t, COT_F32, COT_SHAPE(16), zero);
    cot_mark  start = cot_tape_mark(t);
    double    best = INFINITY;
    for (int rep = 0; rep < 3000; rep++) {
        double t0 = now();
        for (int k = 0; k < 50; k++) (void)cot_add(a, b);
        best = fmin(best, now() - t0);
        cot_tape_rewind(t, start);
    }
    line("record and run a 16-element f32 add", best / 50 * 1e9, "ns", 150);
    cot_tape_destroy(t);
}

/* ---- Hessian-vector products ----------------------------------------------------------------- */

/* sum 100 (x[i+1] - x[i]²)² + (1 - x[i])² on a tensor */
static cot_var rosenbrock_tensor(cot_var x) {
    cot_var head = cot_slice(x, 0, 0, -1, 1), tail = cot_slice(x, 0, 1, COT_END, 1);
    cot_var a = cot_mul(100.0, cot_square(cot_sub(tail, cot_square(head)))), b = cot_square(cot_sub(1.0, head));
    return cot_sum(cot_add(a, b), COT_ALL);
}

static cot_var rosenbrock_scalar(int n, const cot_var *x) {
    cot_var sum = cot_square(cot_sub(1.0, x[0]));
    for (int i = 0; i + 1 < n; i++) {
        if (i > 0) sum = cot_add(sum, cot_square(cot_sub(1.0, x[i])));
        sum = cot_add(sum, cot_mul(100.0, cot_square(cot_sub(x[i + 1], cot_square(x[i])))));
    }
    return sum;
}

static void bench_hvp_tensor(void) {
    enum { SIZE = 100000 };
    cot_tape *t = cot_tape_create(NULL);
    double   *x = malloc(3 * SIZE * sizeof *x), *v = x + SIZE, *out = v + SIZE, gradient = INFINITY, product = INFINITY;
    for (int i = 0; i < SIZE; i++) x[i] = uniform(8, (uint64_t)i, 1), v[i] = uniform(9, (uint64_t)i, 1);
    cot_var  leaf = cot_tensor(t, COT_F64, COT_SHAPE(SIZE), x);
    cot_mark start = cot_tape_mark(t);
    for (int rep = 0; rep < 40; rep++) {
        double t0 = now();
        cot_backward(rosenbrock_tensor(leaf));
        cot_read_grad(leaf, out, SIZE);
        double t1 = now();
        cot_zero_grad(leaf);
        cot_tape_rewind(t, start);
        double t2 = now();
        cot_hvp(rosenbrock_tensor(leaf), 1, &leaf, v, out);
        double t3 = now();
        cot_tape_rewind(t, start);
        gradient = fmin(gradient, t1 - t0);
        product = fmin(product, t3 - t2);
    }
    double sum = 0;
    for (int i = 0; i < SIZE; i++) sum += out[i];
    if (fabs(sum / 299794.59591440 - 1) > 1e-12) printf("rosenbrock_hvp: WRONG sum %.14g\n", sum);
    line("Hessian-vector product / gradient, Rosenbrock, tensor of 100000", product / gradient, "x", 4);
    free(x);
    cot_tape_destroy(t);
}

/* All second derivatives of sum softplus(A x) by 40 inputs, A (400, 40): directions are batched. */
static void bench_hessian(void) {
    enum { SIZE = 40, ROWS = 400 };
    cot_tape *t = cot_tape_create(NULL);
    double   *a = malloc((ROWS * SIZE + SIZE + SIZE * SIZE) * sizeof *a), *x = a + ROWS * SIZE, *out = x + SIZE;
    double    gradient = INFINITY, hessian = INFINITY;
    for (int i = 0; i < ROWS * SIZE; i++) a[i] = uniform(8, (uint64_t)i, 1);
    for (int i = 0; i < SIZE; i++) x[i] = uniform(9, (uint64_t)i, 1);
    cot_var  matrix = cot_data(t, COT_F64, COT_SHAPE(ROWS, SIZE), a), leaf = cot_tensor(t, COT_F64, COT_SHAPE(SIZE), x);
    cot_mark start = cot_tape_mark(t);
    for (int rep = 0; rep < 300; rep++) {
        double t0 = now();
        cot_backward(cot_sum(cot_softplus(cot_matmul(matrix, leaf)), COT_ALL));
        double t1 = now();
        cot_tape_rewind(t, start);
        double t2 = now();
        cot_hessian(cot_sum(cot_softplus(cot_matmul(matrix, leaf)), COT_ALL), 1, &leaf, out);
        double t3 = now();
        cot_tape_rewind(t, start);
        gradient = fmin(gradient, t1 - t0);
        hessian = fmin(hessian, t3 - t2);
    }
    line("Hessian / gradient, logistic regression, tensor of 40 inputs", hessian / gradient, "x", SIZE / 2);
    free(a);
    cot_tape_destroy(t);
}

static void bench_hvp_scalar(void) {
    enum { SIZE = 200 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[SIZE];
    double    v[SIZE], out[SIZE], gradient = INFINITY, product = INFINITY;
    for (int i = 0; i < SIZE; i++) x[i] = cot_scalar(t, uniform(8, (uint64_t)i, 1)), v[i] = uniform(9, (uint64_t)i, 1);
    cot_mark start = cot_tape_mark(t);
    for (int rep = 0; rep < 3000; rep++) {
        double t0 = now();
        cot_backward(rosenbrock_scalar(SIZE, x));
        for (int i = 0; i < SIZE; i++) out[i] = cot_grad_value(x[i]);
        double t1 = now();
        cot_tape_rewind(t, start);
        double t2 = now();
        cot_hvp(rosenbrock_scalar(SIZE, x), SIZE, x, v, out);
        double t3 = now();
        cot_tape_rewind(t, start);
        gradient = fmin(gradient, t1 - t0);
        product = fmin(product, t3 - t2);
    }
    line("Hessian-vector product / gradient, Rosenbrock, 200 scalars", product / gradient, "x", 4);
    cot_tape_destroy(t);
}

int main(void) {
    bench_chain();
    bench_node();
    bench_small_add();
    bench_hvp_tensor();
    bench_hessian();
    bench_hvp_scalar();
    return 0;
}
