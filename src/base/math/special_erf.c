/* The inverse error function.  See special.h.  The coefficients come from
 * tests/data/fit_special.py. */
#include "special.h"
#include "special_poly.h"

#include <math.h>

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

double cot__erfinv(double x) { return cot__erfinv_by(cot__log, x); }
