/* Polynomials for the special functions' coefficient tables, and products in twice the
 * precision. */
#ifndef COT_BASE_SPECIAL_POLY_H
#define COT_BASE_SPECIAL_POLY_H

/* c[0] + c[1] x + ... by Horner's rule, for an array c (not a pointer). */
#define COT__POLY(c, x) cot__poly((c), (int)(sizeof(c) / sizeof((c)[0])), (x))

static inline double cot__poly(const double *c, int n, double x) {
    double r = c[n - 1];
    for (int i = n - 2; i >= 0; i--)
        r = r * x + c[i];
    return r;
}

/* a b - p for p = a b rounded, exactly, from halves of 26 bits (Dekker), for numbers well inside
 * the range. */
static inline double cot__product_error(double a, double b, double p) {
    double s = 0x1.0000002p27 * a, t = 0x1.0000002p27 * b, ah = s - (s - a), bh = t - (t - b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

#endif
