/* The gamma function's family: lgamma, digamma, polygamma.  See special.h. */
#include "special.h"
#include "special_poly.h"

#include <math.h>

#define PI 0x1.921fb54442d18p+1
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* lgamma(1 + t) for -1/4 <= t <= 2, as t (t - 1) times a ratio, which keeps the zeros at 0 and 1.
 * Of the ratio a constant is taken out, so that the rounding of the fit hardly counts. Coefficients
 * from tests/data/fit_special.py. */
static double lgamma_1p(double t) {
    static const double near_p[] = {
        0.01471566490153286, -0.19229384970862215, -0.651140572125768, -0.7672236615047375,
        -0.4214569741154061, -0.11085741620748106, -0.012437040702100085, -0.0004090572942513375};
    static const double near_q[] = {
        1.0, 3.598717364679993, 5.1656191638411695, 3.767010121367219,
        1.47013708256878, 0.2957730084037103, 0.026714742480293086, 0.0007446697621663678};
    static const double mid_p[] = {
        0.2022156648529922, 0.3055356208682525, 0.050080504244418525, -0.10547200427767615,
        -0.053705748298215, -0.008051983980084583, -0.00032188769480878264, -1.1385288115950591e-07};
    static const double mid_q[] = {
        1.0, 2.7237602429183707, 2.782436131256059, 1.3288045618576563,
        0.3021139365284784, 0.029517268210547214, 0.0008991444872070809};
    double ratio = t <= 0.5 ? 0.5625 + COT__POLY(near_p, t) / COT__POLY(near_q, t)
                            : 0.375 + COT__POLY(mid_p, t) / COT__POLY(mid_q, t);
    return t * (t - 1) * ratio + 0.0; /* no -0 */
}

/* Stirling's series for x >= 10: (x - 1/2) (log x - 1) + (log(2 pi) - 1)/2 + the sum of B_2j / (2j
 * (2j - 1)) over x^(2j-1). */
static double lgamma_large(double x) {
    static const double c[] = {0.08333333333333333,   -0.002777777777777778, 0.0007936507936507937,
                               -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176,
                               0.00641025641025641,    -0.029550653594771242};
    double r = 1 / x, u = r * r;
    return (x - 0.5) * (cot__log(x) - 1) + (0.41893853320467274178 + r * COT__POLY(c, u));
}

static double lgamma_right(double x) {
    if (x >= 10)
        return lgamma_large(x);
    if (x < 0.75)
        return lgamma_1p(x) - cot__log(x);
    /* Down to (2, 3] by Gamma(x) = (x - 1) Gamma(x - 1), each x - k exact. */
    double product = 1;
    for (; x > 3; x -= 1)
        product *= x - 1;
    return product == 1 ? lgamma_1p(x - 1) : lgamma_1p(x - 1) + cot__log(product);
}

double cot__lgamma(double x) {
    if (x > 0)
        return lgamma_right(x);
    if (x > -0.25)
        return lgamma_1p(x) - cot__log(-x);
    double r = fabs(x - rint(x)); /* exact: all the phase there is */
    if (!(r > 0)) /* an integer, -inf, or a NaN */
        return x < 0 ? INFINITY : x;
    /* Gamma(x) Gamma(-x) = -pi / (x sin(pi x)) */
    return cot__log(PI / (-x * cot__sin(PI * r))) - lgamma_right(-x);
}

/* psi(1 + t) for 0 <= t <= 2, as (1 + t - x0) * P(t) / Q(t), x0 being the root,
 * taken to twice the precision so that the result is good next to it too.
 * Coefficients from tests/data/fit_special.py. */
static double digamma_1p(double t) {
    static const double p[] = {
        1.2503801375034054, 1.8998845370478825, 1.0164566510246777, 0.2374725594485366,
        0.0238414069598138, 0.000818874142960514, 2.5009024312418424e-06, -1.578585859621291e-08};
    static const double q[] = {
        1.0, 2.2029923661052755, 1.7169749127558187, 0.6092694909208878, 0.10266883844857362,
        0.007561224327355051, 0.00017933601981804436};
    const double root = 0x1.762d86356be3fp+0 - 1, root_lo = 0x1.b86a722197829p-54;
    return ((t - root) - root_lo) * (COT__POLY(p, t) / COT__POLY(q, t));
}

/* B_2j / (2j): psi(x) ~ log x - 1/(2x) - sum of these over x^2j, here for x >= 10. */
static double digamma_large(double x) {
    static const double c[] = {0.08333333333333333,  -0.008333333333333333, 0.003968253968253968,
                               -0.004166666666666667, 0.007575757575757576,  -0.021092796092796094,
                               0.08333333333333333,   -0.4432598039215686};
    double r = 1 / x, u = r * r;
    return cot__log(x) - (0.5 * r + u * COT__POLY(c, u));
}

/* pi * cot(pi * r) for 0 < |r| <= 1/2.  From 1/4 on the complement, which is exact,
 * keeps the zero at 1/2. */
static double pi_cot_pi(double r) {
    double a = fabs(r);
    double v = a <= 0.25 ? PI / cot__tan(PI * a) : PI * cot__tan(PI * (0.5 - a));
    return copysign(v, r);
}

double cot__digamma(double x) {
    if (x >= 10)
        return digamma_large(x);
    if (x >= 1) {
        /* Down to (2, 3], where psi is positive yet, by psi(x) = psi(x - 1) + 1/(x - 1),
         * each x - k exact. */
        double s = 0;
        for (; x > 3; x -= 1)
            s += 1 / (x - 1);
        return digamma_1p(x - 1) + s;
    }
    if (x > 0)
        return digamma_1p(x) - 1 / x;
    if (x == 0)
        return -copysign(INFINITY, x);
    double r = x - rint(x); /* exact: all the phase there is */
    if (!(fabs(r) > 0)) /* an integer, or a NaN, which -inf has become */
        return NAN;
    /* 1 - x would round off a bit of x that counts where psi(1 - x) is small. */
    return (x > -1 ? digamma_1p(-x) : cot__digamma(1 - x)) - pi_cot_pi(r);
}

/* ((x + k) / x)^-s for x > 0, k >= 0.  A rounded ratio raised to s would carry s
 * times its error; here the error counts |log| * ratio^s times, which is below 1. */
static double ratio_pow(double x, double k, double s) { return cot__exp(-s * cot__log1p(k / x)); }

/* x^s * zeta(s, x) = sum over k >= 0 of (x / (x + k))^s, for x > 0: terms one by one
 * up to x + k >= s + 10, then Euler and Maclaurin for the rest. */
static double scaled_zeta(double s, double x) {
    /* B_2j / (2j)! */
    static const double c[] = {0.08333333333333333,     -0.001388888888888889,   3.306878306878307e-05,
                               -8.267195767195768e-07,  2.08767569878681e-08,    -5.284190138687493e-10,
                               1.3382536530684679e-11,  -3.3896802963225827e-13, 8.586062056277845e-15,
                               -2.174868698558062e-16, 5.5090028283602295e-18,  -1.3954464685812522e-19};
    /* sum + lost: a dozen roundings of the sum would show, so they are gathered. */
    double sum = 0, lost = 0, a = x, w = 1;
    for (double k = 0; a < s + 10; w = ratio_pow(x, k, s)) {
        double next = sum + w;
        lost += k == 0 ? 0 : w - (next - sum); /* exact, as sum >= 1 >= w from then on */
        sum = next;
        if (w * (1 + a / (s - 1)) < 0x1p-60)
            return sum + lost; /* the rest is less than that bound */
        k += 1;
        a = x + k;
    }
    double tail = a / (s - 1) + 0.5, t = s / a;
    for (int j = 0; j < COUNT(c); j++) {
        double d = c[j] * t;
        tail += d;
        if (fabs(d) < 0x1p-58 * tail)
            break;
        t *= ((s + 2 * j + 1) / a) * ((s + 2 * j + 2) / a);
    }
    return sum + (w * tail + lost);
}

/* b * n! * d^-(n+1), with no overflow on the way. */
static double times_factorial_over_power(double b, int n, double d) {
    if (n > 1000) {
        double l = cot__lgamma(n + 1.0) - (n + 1.0) * cot__log(d) + cot__log(fabs(b));
        return copysign(cot__exp(l), b);
    }
    int e, scale = 0;
    double m = frexp(d, &e);
    if (m < 0x1.6a09e667f3bcdp-1) { /* to [sqrt(1/2), sqrt(2)), whose powers stay in range */
        m *= 2;
        e -= 1;
    }
    /* n! as f + g, in twice the precision: 60 or 1000 roundings would show. */
    double f = 1, g = 0;
    for (int i = 2; i <= n; i++) {
        double p = f * i, r = cot__product_error(f, i, p) + g * i;
        f = p + r;
        g = r - (f - p);
        if (f > 0x1p500) {
            f *= 0x1p-500;
            g *= 0x1p-500;
            scale += 500;
        }
    }
    int b_exp;
    b = frexp(b, &b_exp); /* may be as large as d */
    return ldexp(b * f * cot__pow(m, -(n + 1.0)), scale + b_exp - e * (n + 1));
}

/* psi_n(x) = (-1)^(n+1) n! * sum over k >= 0 of (x + k)^-s, s = n + 1, for every x
 * that is no pole.  For x < 0 the terms fall into those left of the origin, a
 * finite sum and thus the difference of two zetas, and those right of it.  All is
 * divided by d^-s, d = |x + k| for the nearest k. */
double cot__polygamma(int n, double x) {
    if (n < 0 || isnan(x))
        return NAN;
    if (n == 0)
        return cot__digamma(x);
    double s = n + 1.0, odd = n % 2 ? 1 : -1; /* (-1)^(n+1) = (-1)^s */
    if (x == 0)
        return n % 2 ? INFINITY : -copysign(INFINITY, x);
    if (x > 0)
        return isinf(x) ? odd * 0.0 : odd * times_factorial_over_power(scaled_zeta(s, x), n, x);
    if (isinf(x))
        return NAN;
    double r = x - rint(x); /* exact */
    if (r == 0)
        return n % 2 ? INFINITY : NAN;
    double d = fabs(r), o = 1 - d; /* the nearest terms on the two sides */
    double near = scaled_zeta(s, d), far = ratio_pow(d, 1 - 2 * d, s) * scaled_zeta(s, o);
    /* What the left zeta counts in excess, from 1 - x on. */
    double excess = ratio_pow(d, (1 - x) - d, s) * scaled_zeta(s, 1 - x);
    double left = r < 0 ? near : far, right = r < 0 ? far : near;
    return odd * times_factorial_over_power(odd * (left - excess) + right, n, d);
}
