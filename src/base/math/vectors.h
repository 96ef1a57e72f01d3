/* vectors.h: products and lengths of vectors of doubles, for solvers. Orders of sums depend on n
 * alone. */
#ifndef COT_VECTORS_H
#define COT_VECTORS_H

#include <math.h>
#include <stdint.h>

/* aᵀb in eight independent sums, because vectors are long and one sum would have to wait for each
 * addition. */
static inline double cot__dot(int64_t n, const double *a, const double *b) {
    double  sum[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) sum[k] += a[i + k] * b[i + k];
    for (int k = 0; k < 8 && i < n; i++, k++) sum[k] += a[i] * b[i];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* aᵀb as one chain. The iterations of cot_linear_solve are results with promised bits
 * (docs/bits.md), and have always added so. */
static inline double cot__dot_chain(int64_t n, const double *a, const double *b) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
}

/* The largest absolute value; NaN where any is. 0 of none. */
static inline double cot__largest(int64_t n, const double *v) {
    double most = 0;
    for (int64_t k = 0; k < n && !isnan(most); k++)
        if (!(fabs(v[k]) <= most)) most = fabs(v[k]);
    return most;
}

/* The power of two that is next to x > 0 from below: dividing by it rounds nothing. */
static inline double cot__power_near(double x) {
    int e;
    frexp(x, &e);
    return ldexp(1, e - 1);
}

/* |v|, also where squares of its elements are too large or too small for a number: as one chain of
 * squares, scaled by a power of two. */
static inline double cot__length_chain(int64_t n, const double *v) {
    double most = cot__largest(n, v), sum = 0;
    if (most == 0 || !isfinite(most)) return most;
    double scale = cot__power_near(most);
    for (int64_t k = 0; k < n; k++) sum += (v[k] / scale) * (v[k] / scale);
    return sqrt(sum) * scale;
}

/* The same in eight sums, where no scale is needed. */
static inline double cot__length(int64_t n, const double *v) {
    double sum = cot__dot(n, v, v);
    return sum > 1e-250 && sum < 1e250 ? sqrt(sum) /* no square of weight was */ : cot__length_chain(n, v);
}

#endif
