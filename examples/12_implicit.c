/* Values that solve an equation.
 *
 * Their derivatives come from the equation, by solving one linear system at the solution; how the
 * solution was found does not matter, and is not recorded. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

static int line(const char *what, double got, double want) {
    printf("  %-10s %11.8f   by formula %11.8f\n", what, got, want);
    return !(fabs(got - want) <= 1e-10);
}

/* x = cos(a x). What it is a fixed point of, x first, then the parameters. */
static int next(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    ys[0] = cot_cos(cot_mul(xs[1], xs[0]));
    return n != 2 || m != 1;
}

/* Kepler's equation, E - e sin E = M: where a planet is at the time M, on an orbit of eccentricity
 * e. */
static int kepler(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    ys[0] = cot_sub(cot_sub(xs[0], cot_mul(xs[1], cot_sin(xs[0]))), xs[2]);
    return n != 3 || m != 1;
}

/* By halving, in plain numbers: the solution lies between M - 1 and M + 1. */
static int halving(int n, const cot_array *theta, cot_array *x, void *user) {
    double e = *(double *)theta[0].data, mean = *(double *)theta[1].data, low = mean - 1, high = mean + 1;
    ++*(int *)user;
    for (int k = 0; k < 60; k++) {
        double middle = 0.5 * (low + high);
        if (middle - e * sin(middle) < mean) low = middle;
        else high = middle;
    }
    *(double *)x->data = low;
    return n != 2;
}

/* (K + s) u, K the stiffness of a chain of springs: a linear map, no matrix. */
static int chain(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var u = xs[0], left = cot_pad(cot_slice(u, 0, 0, -1, 1), COT_SHAPE(1), COT_SHAPE(0), 0);
    cot_var right = cot_pad(cot_slice(u, 0, 1, COT_END, 1), COT_SHAPE(0), COT_SHAPE(1), 0);
    ys[0] = cot_sub(cot_mul(cot_add(*(const cot_var *)user, 2.0), u), cot_add(left, right));
    return n != 1 || m != 1;
}

int main(void) {
    cot_tape *t = cot_tape_create(NULL);
    int       wrong = 0, calls = 0;

    cot_var a = cot_scalar(t, 0.7), x = cot_fixed_point(next, NULL, NULL, cot_constant(t, 1), 1, &a, NULL);
    cot_backward(x);
    double at = cot_value(x), s = sin(0.7 * at);
    printf("The fixed point of cos(a x) at a = 0.7\n");
    wrong |= line("x", at, cos(0.7 * at));
    wrong |= line("dx/da", cot_grad_value(a), -at * s / (1 + 0.7 * s));

    cot_var theta[2] = {cot_scalar(t, 0.3), cot_scalar(t, 1.2)}, dM[2], dMM; /* e, M */
    cot_var E = cot_root(kepler, &calls, halving, cot_constant(t, 1), 2, theta, NULL);
    cot_grad_of(E, 2, theta, dM);
    cot_grad_of(dM[1], 1, &theta[1], &dMM);
    double here = cot_value(E), slope = 1 - 0.3 * cos(here);
    printf("\nKepler's equation at e = 0.3, M = 1.2\n");
    wrong |= line("E", here, 1.2 + 0.3 * sin(here));
    wrong |= line("dE/de", cot_value(dM[0]), sin(here) / slope);
    wrong |= line("dE/dM", cot_value(dM[1]), 1 / slope);
    wrong |= line("d2E/dM2", cot_value(dMM), -0.3 * sin(here) / pow(slope, 3));
    printf("  the solver ran %s\n", calls == 1 ? "once" : "MORE than once");
    wrong |= calls != 1;

    /* A wave is an eigenvector, so that the answer is known: K u = (2 - 2 cos(pi/(n + 1))) u. */
    enum { N = 999 };
    static double wave[N];
    for (int k = 0; k < N; k++) wave[k] = sin(3.14159265358979324 * (k + 1) / (N + 1));
    cot_var spring = cot_scalar(t, 0.5), f = cot_data(t, COT_F64, COT_SHAPE(N), wave), ds;
    cot_var u = cot_linear_solve(chain, &spring, f, NULL), energy = cot_sum(cot_mul(u, f), COT_ALL);
    cot_grad_of(energy, 1, &spring, &ds);
    double stiffness = 0.5 + 2 - 2 * cos(3.14159265358979324 / (N + 1)), length = (N + 1) / 2.0;
    printf("\nA chain of %d springs, no matrix\n", N);
    wrong |= line("u.f / 500", cot_value(energy) / length, 1 / stiffness);
    wrong |= line("d/ds", cot_value(ds) / length, -1 / (stiffness * stiffness));

    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
