/* The error function's family: erfinv, the normal distribution, gelu.  See special.h.
 *
 * The coefficients come from tests/data/fit_special.py.  Pairs _HI, _LO are one
 * constant as an unevaluated sum of two doubles: an argument u of exp or erfc
 * that is large has to be known beyond double, as an error of half an ulp of u
 * becomes u/2 (erfc: u^2) ulps of the result. */
#include "special.h"
#include "special_poly.h"

#include <math.h>

#define INV_SQRT2_HI 0x1.6a09e667f3bcdp-1
#define INV_SQRT2_LO (-0x1.bdd3413b26456p-55)
#define TWO_INV_SQRTPI 0x1.20dd750429b6dp+0
#define INV_SQRT2PI 0x1.9884533d43651p-2
/* 2 sqrt(2/pi), and the same times 0.044715 */
#define GELU_C_HI 0x1.9884533d43651p+0
#define GELU_C_LO (-0x1.cbc0d30ebfd15p-54)
#define GELU_D_HI 0x1.2444f2a4d8b4bp-4
#define GELU_D_LO (-0x1.6c843a29d1c70p-61)

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
        double u = x * x;
        return x * (0.921875 + COT__POLY(mid_p, u) / COT__POLY(mid_q, u));
    }
    if (a == 1)
        return copysign(INFINITY, x);
    if (!(a < 1))
        return NAN;
    double w = sqrt(-logarithm(1 - a)); /* 1 - a is exact */
    double r;
    if (w < 2.125)
        r = 0.75 + COT__POLY(near_p, w - 0.83) / COT__POLY(near_q, w - 0.83);
    else
        r = 0.90625 + COT__POLY(far_p, w - 2.125) / COT__POLY(far_q, w - 2.125);
    return copysign(w * r, x);
}

double cot__erfinv(double x) { return cot__erfinv_by(log, x); }

double cot__normcdf(double x) {
    if (x > 40)
        return 1;
    if (x < -40)
        return 0;
    double u = -x * INV_SQRT2_HI;
    double du = -(fma(x, INV_SQRT2_HI, u) + x * INV_SQRT2_LO);
    /* erfc(u + du), one Taylor term being plenty as du < ulp(u). */
    return 0.5 * (erfc(u) - du * (TWO_INV_SQRTPI * exp(-u * u)));
}

double cot__normpdf(double x) {
    if (fabs(x) > 40)
        return 0;
    double h = x * x, l = fma(x, x, -h);
    /* The constant goes first: once the result is subnormal there are no bits to lose. */
    double e = INV_SQRT2PI * exp(-0.5 * h);
    return e - e * (0.5 * l);
}

double cot__gelu_tanh(double x) {
    /* (1 + tanh u) / 2 = 1 / (1 + e^(-2u)), so this is x times a logistic. */
    if (x > 40)
        return x;
    if (x < -40)
        return -0.0;
    /* 2u = v + dv = x * (C + D x^2) in twice the working precision. */
    double s = x * x, ds = fma(x, x, -s);
    double t = GELU_D_HI * s, dt = fma(GELU_D_HI, s, -t) + (GELU_D_HI * ds + GELU_D_LO * s);
    double c = GELU_C_HI + t, b = c - GELU_C_HI;
    double dc = (GELU_C_HI - (c - b)) + (t - b) + (dt + GELU_C_LO);
    double v = x * c, dv = fma(x, c, -v) + x * dc;
    if (v >= 0)
        return x / (1 + exp(-v));
    /* exp(v/2) twice, so that e^v does not go subnormal before x multiplies it. */
    double h = exp(0.5 * v);
    return x * h * (1 + dv) * h / (1 + h * h);
}
