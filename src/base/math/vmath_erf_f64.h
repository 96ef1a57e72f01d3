/* vmath_erf_f64.h: error functions and activations in double. Part of vmath_f64.h.
 *
 * A quotient or product whose rounding would be one too many for 2 ulp is a pair hi + lo, as in
 * log_core. */

/* e^(a^2) erfc(a) for a = c + dc between 0.7 and 28: P(t)/(a + 4), t = (a - 4)/(a + 4). */
VM pair_vf64 erfcx_vf64(double c, double dc) {
    /* u + du = 1/(a + 4) */
    double d = c + 4, dd = (c - (d - 4)) + dc, u = 1 / d, du = u * (FMA(-u, d, 1) - u * dd);
    double w = -8 * u, t = 1 + w, b = t - 1, dt = ((1 - (t - b)) + (w - b)) - 8 * du;
    double p3 = HORNER(t, POLY(POLY_ERFCX));
    double m2 = t * p3, p2 = ERFCX_2_HI + m2, l2 = ((ERFCX_2_HI - p2) + m2) + (FMA(t, p3, -m2) + ERFCX_2_LO);
    double m1 = t * p2, p1 = ERFCX_1_HI + m1,
           l1 = ((ERFCX_1_HI - p1) + m1) + (FMA(t, p2, -m1) + FMA(t, l2, ERFCX_1_LO));
    double m0 = t * p1, p0 = ERFCX_0_HI + m0,
           l0 = ((ERFCX_0_HI - p0) + m0) + (FMA(t, p1, -m0) + FMA(t, l1, ERFCX_0_LO));
    l0 = FMA(dt, FMA(t, p2, p1), l0); /* nearly P'(t) dt */
    double q = p0 * u;
    return (pair_vf64){q, FMA(p0, u, -q) + FMA(l0, u, p0 * du)};
}

VM double erf_vf64(double x) {
    double a = FABS(x), c = a > 28 ? 28 : a, s = c * c;
    double near = FMA(a, HORNER(a * a, POLY(POLY_ERF)), a), e = exp_sum_vf64(-s, -FMA(c, c, -s));
    pair_vf64 p = erfcx_vf64(c, 0);
    return COPYSIGN(a < 1 ? near : 1 - FMA(e, p.hi, e * p.lo), x);
}

VM double erfc_vf64(double x) {
    double    a = FABS(x), c = a > 28 ? 28 : a, s = c * c, e = exp_sum_vf64(-s, -FMA(c, c, -s));
    pair_vf64 p = erfcx_vf64(c, 0);
    double    far = FMA(e, p.hi, e * p.lo), one = 1 - x;
    double    near = one + FMA(-x, HORNER(x * x, POLY(POLY_ERF)), (1 - one) - x);
    return a < 0.75 ? near : x < 0 ? 2 - far : far;
}

/* x Phi(x), where Phi(-a) = e^(-a^2/2) erfcx(a/sqrt(2))/2, and near 0 it is (1 + erf)/2. */
VM double gelu_vf64(double x) {
    const double r_hi = 0x1.6a09e667f3bcdp-1, r_lo = -0x1.bdd3413b26456p-55; /* sqrt(1/2) */
    double       a = FABS(x), c = a > 39 ? 39 : a, m = 0.5 * x;
    double       u = c * r_hi, du = FMA(c, r_hi, -u) + c * r_lo, s = c * c;
    double       e = exp_sum_vf64(-0.5 * s, -0.5 * FMA(c, c, -s));
    pair_vf64    p = erfcx_vf64(u, du);
    double       g = m * p.hi, tail = FMA(e, g, e * (FMA(m, p.hi, -g) + m * p.lo));
    double       v = COPYSIGN(u, x), one = 1 + v,
           rest       = ((1 - one) + v) + FMA(v, HORNER(u * u, POLY(POLY_ERF)), COPYSIGN(1, x) * du);
    double       near = FMA(m, one, m * rest);
    double       r = a < 1.0625 ? near : x < 0 ? COPYSIGN(tail, x) : x - tail;
    return x == 0 ? x : a > 39 ? (x < 0 ? -0.0 : x) : r;
}

/* x sigmoid(v + dv). Far left e^v would leave the normal numbers before x multiplies it: there it
 * is 2^100 times as large, until the end. */
VM double times_sigmoid_vf64(double x, double v, double dv) {
    bool   far = v < -600;
    double up = exp_sum_up_vf64(-FABS(v), v < 0 ? dv : -dv, far ? 100 : 0), down = far ? 0x1p-100 : 1;
    double e = up * down, n = v < 0 ? x * up : x, dn = v < 0 ? FMA(x, up, -n) : 0;
    double d = 1 + e, inverse = 1 / d, q = n * inverse;
    double r = FMA(FMA(-q, d, n) + (dn - q * ((1 - d) + e)), inverse, q);
    return v < -800 ? -0.0 : ((v > 40) | (x == 0)) ? x : r * down;
}

VM double silu_vf64(double x) { return times_sigmoid_vf64(x, x, 0); }

/* x / (1 + e^-2u), 2u = x (C + D x^2), C = 2 sqrt(2/pi), D = 0.044715 C: in twice the precision, as
 * an error of half an ulp of a large u becomes u/2 ulps of the result. */
VM double gelu_tanh_vf64(double x) {
    const double c_hi = 0x1.9884533d43651p+0, c_lo = -0x1.cbc0d30ebfd15p-54, d_hi = 0x1.2444f2a4d8b4bp-4,
                 d_lo = -0x1.6c843a29d1c70p-61;
    double       y = x > 40 ? 40 : x < -40 ? -40 : x;
    double       s = y * y, ds = FMA(y, y, -s);
    double       t = d_hi * s, dt = FMA(d_hi, s, -t) + FMA(d_hi, ds, d_lo * s);
    double       c = c_hi + t, b = c - c_hi, dc = ((c_hi - (c - b)) + (t - b)) + (dt + c_lo);
    double       v = y * c;
    return times_sigmoid_vf64(x, v, FMA(y, c, -v) + y * dc);
}

/* x tanh(log(1 + e^x)) = x n/d: with e = e^-|x|, n = e^2 + 2 e and d = n + 2 on the left, n = 1 + 2
 * e and d = n + 2 e^2 on the right; far left as in times_sigmoid. */
VM double mish_vf64(double x) {
    bool   left = x < 0, far = x < -600;
    double up = exp_sum_up_vf64(-FABS(x), 0, far ? 100 : 0), down = far ? 0x1p-100 : 1;
    double e = up * down, p = e * e, dp = FMA(e, e, -p);
    double big = left ? 2 * up : (T)1, small = left ? p : 2 * e, n = big + small,
           dn    = ((big - n) + small) + (left ? dp : 0);
    double first = left ? 2 : n, second = left ? n * down : 2 * p, d = first + second,
           dd      = ((first - d) + second) + (left ? dn * down : FMA(2, dp, dn));
    double inverse = 1 / d, q = n * inverse, dq = (FMA(-q, d, n) + (dn - q * dd)) * inverse;
    double r = FMA(x, q, x * dq);
    return x < -800 ? -0.0 : ((x > 40) | (x == 0)) ? x : r * down;
}
