/* A boundary value problem by Newton's method: u'' = exp(u) on [0, 1], u = 0 at both ends.
 *
 * With n points inside, the equations are u[i-1] - 2 u[i] + u[i+1] - h² exp(u[i]) = 0. Each knows
 * three of the n unknowns, so the Jacobian has three diagonals, and three sweeps give all of it
 * whatever n is. The plan finds that out by itself, once; every step uses it again. */
#include <cotangent.h>

#include <math.h>
#include <stdio.h>

enum { N = 1000 };

static int equations(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var u = cot_pad(xs[0], COT_SHAPE(1), COT_SHAPE(1), 0); /* with the ends */
    cot_var left = cot_slice(u, 0, 0, N, 1), right = cot_slice(u, 0, 2, N + 2, 1);
    double  h = 1.0 / (N + 1);
    ys[0] = cot_sub(cot_add(left, right), cot_add(cot_mul(2.0, xs[0]), cot_mul(h * h, cot_exp(xs[0]))));
    return 0;
}

/* Solves the tridiagonal system whose rows the plan describes; b becomes the solution. */
static void solve(const cot_sparse_info *p, const double *values, double *b) {
    static double diagonal[N], upper[N];
    for (int64_t i = 0; i < N; i++) {
        const double *row = values + p->row_start[i]; /* columns i-1, i, i+1, where they exist */
        double        lower = i > 0 ? row[0] : 0, d = row[i > 0];
        upper[i] = i + 1 < N ? row[1 + (i > 0)] : 0;
        diagonal[i] = i > 0 ? d - lower * upper[i - 1] / diagonal[i - 1] : d;
        if (i > 0) b[i] -= lower * b[i - 1] / diagonal[i - 1];
    }
    for (int64_t i = N - 1; i >= 0; i--) b[i] = (b[i] - (i + 1 < N ? upper[i] * b[i + 1] : 0)) / diagonal[i];
}

int main(void) {
    static double u[N], f[N], values[3 * N];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_tensor(t, COT_F64, COT_SHAPE(N), u), y;

    cot_sparse_plan *plan = cot_sparse_jacobian_plan_of(equations, NULL, 1, &x, 1, COT_AUTO);
    cot_sparse_info  info = cot_sparse_plan_info(plan);
    printf("a Jacobian of %lld by %lld with %lld entries, in %d sweeps\n", (long long)info.rows, (long long)info.cols,
           (long long)info.nnz, info.colours);

    for (int step = 0; step < 10; step++) {
        cot_mark mark = cot_tape_mark(t);
        equations(1, &x, 1, &y, NULL);
        cot_read(y, f, N);
        cot_sparse_jacobian(plan, 1, &y, 1, &x, values);
        cot_tape_rewind(t, mark);
        solve(&info, values, f);
        double most = 0;
        for (int i = 0; i < N; i++) {
            u[i] -= f[i];
            most = fmax(most, fabs(f[i]));
        }
        cot_assign_data(x, u);
        if (most < 1e-6) break; /* the error is the square of that, and less than rounding */
        printf("step %d: u moved by %.1e, u(1/2) = %.6f\n", step + 1, most, (u[N / 2 - 1] + u[N / 2]) / 2);
    }
    if (cot_tape_status(t) != COT_OK) printf("%s\n", cot_tape_message(t));
    int status = cot_tape_status(t) != COT_OK;
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
    return status;
}
