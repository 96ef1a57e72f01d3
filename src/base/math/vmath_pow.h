/* vmath_pow.h: powers. Part of vmath_f64.h.
 *
 * x^y = e^(y log|x|), the logarithm in twice the precision, since an error in y log|x| counts as
 * often as that is large. x^2 is x x to the bit. */

/* log(x) for x > 0 as hi + lo: with s = f/(2 + f), z = s^2 it is k log 2 + s (2 + 2 z/3 + z^2
 * P(z)). */
VM pair_vf64 log_pair_vf64(double x) {
    parts_vf64 v = log_parts_vf64(x);
    double     d = 2 + v.f, s = v.f / d, ds = (FMA(-s, d, v.f) - s * (v.f - (d - 2))) / d;
    double     z = s * s, dz = FMA(s, s, -z) + 2 * s * ds;
    double     a = z * 0x1.5555555555555p-1,
           da    = FMA(z, 0x1.5555555555555p-1, -a) + FMA(z, 0x1.5555555555555p-55, dz * 0x1.5555555555555p-1);
    double     b = z * z * HORNER(z, POLY(POLY_POW)), r = a + b, dr = ((a - r) + b) + da;
    double     m = s * r, dm = FMA(s, r, -m) + FMA(s, dr, ds * r);
    double     l = 2 * s + m, dl = ((2 * s - l) + m) + FMA(2, ds, dm);
    double     whole = v.k * LN2_HI, sum = whole + l;
    return (pair_vf64){sum, ((whole - sum) + l) + (dl + FMA(v.k, LN2_LO, FMA(v.k, LN2_HI, -whole)))};
}

/* What Annex F says of signs, zeros, infinities and NaN; p = |x|^y elsewhere. */
VM double pow_cases_vf64(double x, double y, double p) {
    double a = FABS(x), half = 0.5 * y;
    bool   whole = __builtin_rint(y) == y, odd = whole & (__builtin_rint(half) != half);
    p = a == 0 ? (y > 0 ? 0 : INFINITY) : a == INFINITY ? (y > 0 ? INFINITY : 0) : p;
    p = odd ? COPYSIGN(p, x) : p;
    p = ((x < 0) & !whole & (a < INFINITY)) ? NAN : p;
    p = y == 2 ? x * x : p;
    p = ((a == 1) & (FABS(y) == INFINITY)) ? 1 : p;
    p = ((x == x) & (y == y)) ? p : NAN;
    return ((x == 1) | (y == 0)) ? 1 : p;
}

VM double pow_vf64(double x, double y) {
    pair_vf64 l = log_pair_vf64(FABS(x));
    /* beyond, all is over, and dv not small */
    double v = y * l.hi, dv = FABS(v) < 800 ? FMA(y, l.hi, -v) + y * l.lo : 0;
    return pow_cases_vf64(x, y, exp_sum_vf64(v, dv));
}

/* For float: y log|x| is at most 104 where that counts, and double has 29 bits to spare. */
VM double pow_rough_vf64(double x, double y) { return pow_cases_vf64(x, y, exp_vf64(y * log_vf64(FABS(x)))); }
