/* householder.c: QR with column pivoting. The caller scales the columns to about the same length,
 * so that small pivots show undetermined parameters. */
#include "optim/householder.h"

#include "base/math/vectors.h"

/* Reflects x (length n) at the plane with normal v: x - v (vᵀx) / beta. */
static void reflect(int64_t n, const double *v, double beta, double *x) {
    double sum = cot__dot(n, v, x) / beta;
    for (int64_t i = 0; i < n; i++) x[i] -= sum * v[i];
}

static void swap_columns(int64_t m, double *a, double *b) {
    for (int64_t i = 0; i < m; i++) {
        double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

void cot__householder_qr(int64_t m, int n, double *a, double *c, int *perm) {
    for (int k = 0; k < n; k++) perm[k] = k;
    for (int k = 0; k < n; k++) {
        /* Norms are computed again in each step: updating them would lose digits, and n is
         * small. */
        int    pivot = k;
        double most = -1;
        for (int j = k; j < n; j++) {
            double norm = cot__length(m - k, a + j * m + k);
            if (norm > most) most = norm, pivot = j;
        }
        if (pivot != k) {
            int t = perm[k];
            swap_columns(m, a + k * m, a + pivot * m);
            perm[k] = perm[pivot];
            perm[pivot] = t;
        }
        double *v = a + k * m + k, head = v[0];
        if (!(most > 0)) continue;
        /* the sign opposite to head, so that nothing cancels */
        double diagonal = head > 0 ? -most : most;
        v[0] = head - diagonal;
        double beta = -diagonal * v[0]; /* |v|²/2 */
        for (int j = k + 1; j < n; j++) reflect(m - k, v, beta, a + j * m + k);
        reflect(m - k, v, beta, c + k);
        v[0] = diagonal;
    }
}

void cot__householder_solve(int64_t m, int n, int rank, const double *r, const double *c, double *z) {
    for (int k = n - 1; k >= 0; k--) {
        z[k] = 0;
        if (k >= rank) continue;
        double sum = c[k];
        for (int j = k + 1; j < rank; j++) sum -= r[j * m + k] * z[j];
        z[k] = sum / r[k * m + k];
    }
}
