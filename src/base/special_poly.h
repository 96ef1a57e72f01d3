/* Polynomials for the special functions' coefficient tables. */
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

#endif
