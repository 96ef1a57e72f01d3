/* squares.c: compensated sums. */
#include "optim/squares.h"

#include <math.h>

/* Neumaier's sum of exact products. */
typedef struct sum {
    double high, low;
} sum;

static void add(sum *s, double v) {
    double t = s->high + v;
    s->low += fabs(s->high) >= fabs(v) ? (s->high - t) + v : (v - t) + s->high;
    s->high = t;
}

static void add_product(sum *s, double a, double b) {
    double product = a * b;
    add(s, product);
    s->low += fma(a, b, -product);
}

double cot__squares_sum(int64_t n, const double *r) {
    sum s = {0};
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(r[i])) return (double)INFINITY;
        add_product(&s, r[i], r[i]);
    }
    double total = s.high + s.low;
    return isfinite(total) ? total : (double)INFINITY;
}

double cot__squares_decrease(int64_t n, const double *a, const double *b) {
    sum s = {0};
    for (int64_t i = 0; i < n; i++) add_product(&s, a[i] - b[i], a[i] + b[i]);
    return s.high + s.low;
}
