/* Second order and beyond.
 *
 * cot_grad_of records the derivative on the tape, in the same operations as everything else, so
 * that it can be differentiated again. Hessians and their products with a vector come
 * ready-made. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

static int differs(double got, double want) { return !(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))); }

/* Rosenbrock's valley, Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])², with its minimum 0 at (1, …, 1). */
static cot_var rosenbrock(int n, const cot_var *x) {
    cot_var sum = cot_full_like(x[0], 0);
    for (int i = 0; i + 1 < n; i++) {
        cot_var across = cot_sub(x[i + 1], cot_square(x[i]));
        cot_var along  = cot_sub(1.0, x[i]);
        sum            = cot_add(sum, cot_add(cot_mul(100.0, cot_square(across)), cot_square(along)));
    }
    return sum;
}

/* Newton's method walks to where the quadratic model has its minimum: H·step = -gradient, here two
 * by two. */
static int newton(cot_tape *t) {
    cot_var  x[2] = {cot_scalar(t, -1.2), cot_scalar(t, 1.0)};
    cot_mark mark = cot_tape_mark(t);
    printf("Newton's method on Rosenbrock's function from (-1.2, 1)\n");
    printf("  step        x1        x2            f\n");
    for (int step = 0; step <= 6; step++) {
        cot_var f = rosenbrock(2, x);
        double  g[2], h[4], a = cot_value(x[0]), b = cot_value(x[1]);
        printf("  %4d  %8.5f  %8.5f  %11.6f\n", step, a, b, cot_value(f));
        cot_backward(f);
        for (int i = 0; i < 2; i++) g[i] = cot_grad_value(x[i]);
        cot_hessian(f, 2, x, h);
        double det = h[0] * h[3] - h[1] * h[2];
        cot_tape_rewind(t, mark);
        cot_tape_zero_grads(t);
        cot_assign(x[0], a - (h[3] * g[0] - h[1] * g[1]) / det);
        cot_assign(x[1], b - (h[0] * g[1] - h[2] * g[0]) / det);
    }
    return differs(cot_value(x[0]), 1) || differs(cot_value(x[1]), 1);
}

/* H·v without H: for n variables one sweep more than the gradient, not n of them. H is tridiagonal,
 * so its rows fit in a line. */
static int hessian_vector(cot_tape *t) {
    enum { N = 1000 };
    static cot_var x[N];
    static double  at[N], v[N], hv[N];
    for (int i = 0; i < N; i++) {
        at[i] = 0.5 + 0.001 * i;
        v[i]  = i % 2 ? -1 : 2;
        x[i]  = cot_scalar(t, at[i]);
    }
    cot_hvp(rosenbrock(N, x), N, x, v, hv);

    double worst = 0;
    for (int i = 0; i < N; i++) {
        double want = 0;
        if (i + 1 < N) want += (1200 * at[i] * at[i] - 400 * at[i + 1] + 2) * v[i] - 400 * at[i] * v[i + 1];
        if (i > 0) want += 200 * v[i] - 400 * at[i - 1] * v[i - 1];
        worst = fmax(worst, fabs(hv[i] - want) / fmax(1, fabs(want)));
    }
    printf("\nHessian times vector in %d variables\n", N);
    printf("  H·v = (%.4f, %.4f, …, %.4f), against the formula: %s\n", hv[0], hv[1], hv[N - 1],
           worst < 1e-12 ? "agrees to 1e-12" : "differs");
    return !(worst < 1e-12);
}

/* sin(x)·exp(x): each derivative is √2·exp(x)·sin(x + π/4) and so on, the n-th 2^(n/2)·exp(x)·sin(x
 * + n·π/4). */
static int fifth_order(cot_tape *t) {
    cot_var x = cot_scalar(t, 0.5), d = cot_mul(cot_sin(x), cot_exp(x));
    int     wrong = 0;
    printf("\nDerivatives of sin(x)·exp(x) at 0.5\n");
    for (int n = 0; n <= 5; n++) {
        double want = pow(2, n / 2.0) * exp(0.5) * sin(0.5 + n * atan(1.0));
        printf("  order %d  %9.4f   by formula %9.4f\n", n, cot_value(d), want);
        wrong |= differs(cot_value(d), want);
        if (n < 5) cot_grad_of(d, 1, &x, &d); /* d becomes its own derivative */
    }
    return wrong;
}

int main(void) {
    cot_tape *t     = cot_tape_create(NULL);
    int       wrong = newton(t);
    wrong |= hessian_vector(t);
    wrong |= fifth_order(t);
    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
