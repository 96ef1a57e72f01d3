/* The error function's family: erfinv, erfc, gelu.  See special.h.
 *
 * The coefficients come from tests/data/fit_special.py.  Pairs _HI, _LO are one
 * constant as an unevaluated sum of two doubles: an argument u of exp or erfc
 * that is large has to be known beyond double, as an error of half an ulp of u
 * becomes u/2 (erfc: u^2) ulps of the result. */
#include "special.h"
#include "special_poly.h"
#include "vmath_polynomials.h"

#include <math.h>

#define INV_SQRT2_HI 0x1.6a09e667f3bcdp-1
#define INV_SQRT2_LO (-0x1.bdd3413b26456p-55)
double cot__erfinv_by(double (*logarithm)(double), double x) {
    /* |x| <= 1/2: erfinv(x) / x as a function of x^2.  Here and below a constant near the
     * middle of the ratio is taken out, so that the rounding of the fit hardly counts. */
    static const double mid_p[] = {
        -0.03564807454724199, 0.3268359273570877, -0.5811564897145315, 0.3818198469245063,
        -0.09548483843992145, 0.006514337797789889};
    static const double mid_q[] = {
        1.0, -2.6599546266312846, 2.5686335220784353, -1.0828992979876984, 0.18562996432609088,
        -0.00880258939807174};
    /* Beyond: with w = sqrt(-log(1 - |x|)), the ratio erfinv(x) / w, which stays
     * within 0.57 and 0.98, as a function of w - 0.83 up to w = 2.125, then of w - 2.125. */
    static const double near_p[] = {
        -0.1782274184193006, -0.255498416125873, 0.14142234848138438, 0.6840325143535492,
        0.7398703307542895, 0.3950129341742633, 0.10590670032446982, 0.012162157065017254,
        0.00040732348829550295};
    static const double near_q[] = {
        1.0, 3.8233425523094087, 6.787318369578545, 7.068146359387578, 4.615550236749858,
        1.8743912640693232, 0.4394161716901552, 0.04869944811147518, 0.0016291411202843129};
    static const double far_p[] = {
        -0.05948123777329063, -0.012000749702315777, 0.046150222544461286, 0.03428055208684793,
        0.009632076211998346, 0.0012129854447021815, 6.465919115700203e-05, 1.081175683212103e-06};
    static const double far_q[] = {
        1.0, 1.8055014303979011, 1.3542546965459448, 0.5344760444696416, 0.11619852893779542,
        0.013273860056791289, 0.0006902956616401316, 1.153012868950362e-05};
    double a = fabs(x);
    if (a <= 0.5) {
        double u = x * x, p = COT__POLY(mid_p, u) / COT__POLY(mid_q, u), r = 0.921875 + p, y = x * r;
        /* As below; tiny x, whose halves would vanish, need it not. */
        return a < 0x1p-200 ? y : y + (cot__product_error(x, r, y) + x * ((0.921875 - r) + p));
    }
    if (a == 1)
        return copysign(INFINITY, x);
    if (!(a < 1))
        return NAN;
    double l = -logarithm(1 - a), w = sqrt(l); /* 1 - a is exact */
    double s = w * w, dw = ((l - s) - cot__product_error(w, w, s)) / (2 * w);
    double base = w < 2.125 ? 0.75 : 0.90625;
    double p    = w < 2.125 ? COT__POLY(near_p, w - 0.83) / COT__POLY(near_q, w - 0.83)
                            : COT__POLY(far_p, w - 2.125) / COT__POLY(far_q, w - 2.125);
    /* (w + dw) (base + p), each with what its rounding lost. */
    double r = base + p, y = w * r;
    return copysign(y + (cot__product_error(w, r, y) + (w * ((base - r) + p) + dw * r)), x);
}

double cot__erfinv(double x) { return cot__erfinv_by(log, x); }

/* e^(a^2) erfc(a) for a = c + dc between 0.7 and 28, as hi + lo: erfcx of vmath_erf_f64.h without
 * fused operations. */
typedef struct pair { double hi, lo; } pair;
/* hi + lo + t p, |hi| being the larger */
static pair step(pair p, double t, double hi, double lo) {
    double m = t * p.hi, sum = hi + m;
    return (pair){sum, ((hi - sum) + m) + (cot__product_error(t, p.hi, m) + (t * p.lo + lo))};
}
static pair erfcx(double c, double dc) {
    static const double rest[] = {POLY_ERFCX_f64}; /* the highest power first */
    double d = c + 4, dd = (c - (d - 4)) + dc, u = 1 / d, m = u * d;
    double du = u * (((1 - m) - cot__product_error(u, d, m)) - u * dd);
    double w = -8 * u, t = 1 + w, b = t - 1, dt = ((1 - (t - b)) + (w - b)) - 8 * du;
    double r = rest[0];
    for (int i = 1; i < (int)(sizeof rest / sizeof rest[0]); i++)
        r = r * t + rest[i];
    pair p2 = step((pair){r, 0}, t, ERFCX_2_HI, ERFCX_2_LO), p1 = step(p2, t, ERFCX_1_HI, ERFCX_1_LO);
    pair p = step(p1, t, ERFCX_0_HI, ERFCX_0_LO);
    p.lo += dt * (p1.hi + t * p2.hi);
    double q = p.hi * u;
    return (pair){q, cot__product_error(p.hi, u, q) + (p.lo * u + p.hi * du)};
}

/* erf(x) / x - 1 for |x| <= 1. */
static double erf_rest(double x) {
    static const double c[] = {POLY_ERF_f64};
    double u = x * x, r = c[0];
    for (int i = 1; i < (int)(sizeof c / sizeof c[0]); i++)
        r = r * u + c[i];
    return r;
}

double cot__erfc(double x) {
    double a = fabs(x);
    if (a < 0.75) {
        double one = 1 - x;
        return one + (((1 - one) - x) - x * erf_rest(x));
    }
    if (a > 28)
        return x < 0 ? 2 : 0;
    double s = a * a, ds = cot__product_error(a, a, s), e = exp(-s);
    pair   p = erfcx(a, 0);
    double r = e * p.hi;
    r += e > 0x1p-900 ? cot__product_error(e, p.hi, r) + e * (p.lo - ds * p.hi) : e * (p.lo - ds * p.hi);
    return x < 0 ? 2 - r : r;
}

double cot__gelu(double x) {
    double a = fabs(x), m = 0.5 * x;
    if (a > 39)
        return x < 0 ? -0.0 : x;
    if (x == 0)
        return x;
    double u = a * INV_SQRT2_HI, du = cot__product_error(a, INV_SQRT2_HI, u) + a * INV_SQRT2_LO;
    if (a < 1.0625) {
        double v = copysign(u, x), one = 1 + v, rest = ((1 - one) + v) + (v * erf_rest(u) + copysign(1, x) * du),
               r = m * one;
        return r + (cot__product_error(m, one, r) + m * rest);
    }
    /* x e^(-x^2/2) erfcx(a / sqrt 2) / 2: x first, so that no part goes subnormal before the whole
     * does. */
    double s = a * a, ds = cot__product_error(a, a, s), e = exp(-0.5 * s);
    pair   p = erfcx(u, du);
    double g = m * p.hi, dg = cot__product_error(m, p.hi, g) + m * p.lo, r = e * g;
    r += (e > 0x1p-900 ? cot__product_error(e, g, r) : 0) + e * (dg - 0.5 * ds * g);
    return x < 0 ? copysign(r, x) : x - r;
}
