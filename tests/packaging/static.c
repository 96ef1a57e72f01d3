/* A program that is linked with no shared library: eigenvalues of a matrix that is large enough for
 * LAPACK, if there is one, and enough work for the threads. The matrix is tridiagonal, 2 with -1
 * beside it; its eigenvalues are 2 - 2 cos(kπ/(n + 1)). */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

enum { N = 120 };

int main(void) {
    static double a[N * N], w[N];
    double        worst = 0;
    for (int i = 0; i < N; i++) {
        a[i * N + i] = 2;
        if (i > 0) a[i * N + i - 1] = a[(i - 1) * N + i] = -1;
    }
    cot_tape *t = cot_tape_create(NULL);
    cot_read(cot_eigvalsh(cot_tensor(t, COT_F64, COT_SHAPE(N, N), a)), w, N);
    for (int k = 1; k <= N; k++) worst = fmax(worst, fabs(w[k - 1] - (2 - 2 * cos(k * acos(-1.0) / (N + 1)))));
    printf("cotangent %s: %d eigenvalues, the worst by %.1g %s\n", cot_version(), N, worst, cot_tape_message(t));
    cot_tape_destroy(t);
    return !(worst < N * 4 * 2.3e-16); /* of the norm, which is below 4 */
}
