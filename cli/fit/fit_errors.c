/* fit_errors.c: what standard errors say: which digits of a parameter count, and the interval in
 * which it lies with 95 % confidence, by Student's distribution. */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "fit/fit.h"

/* ---- Student's distribution ------------------------------------------------------------------ */

/* P(|T| < t) for T with n degrees of freedom: the integral of (1 + t²/n)^(-(n + 1)/2), which with
 * t = √n·tan a is one of cos^(n - 1) a, and integration by parts makes a finite sum of it. */
static double within(double t, int64_t n) {
    double a = atan(t / sqrt((double)n)), c = cos(a), term = n % 2 ? c : 1, sum = n == 1 ? 0 : term;
    for (int64_t k = n % 2 ? 3 : 2; k <= n - 2; k += 2) {
        term *= c * c * (double)(k - 1) / (double)k;
        sum += term;
    }
    return n % 2 ? (a + sin(a) * sum) * 2 / acos(-1) : sin(a) * sum;
}

/* MANY: from here on the series in 1/n is as good as the sum: its first term left out is some
 * 10/n⁴. */
enum { MANY = 1000 };

double fit_student(int64_t degrees) {
    const double normal = 1.959963984540054; /* the same of the normal distribution */
    double       z = normal, n = (double)degrees;
    if (degrees < 1) return NAN;
    if (degrees >= MANY)
        return z + z * (z * z + 1) / (4 * n) + z * (z * z * (5 * z * z + 16) + 3) / (96 * n * n) +
               z * (z * z * (z * z * (3 * z * z + 19) + 17) - 15) / (384 * n * n * n);
    double low = normal, high = 13; /* of one degree: 12.7 */
    for (double middle = (low + high) / 2; middle > low && middle < high; middle = (low + high) / 2)
        if (within(middle, degrees) < 0.95) low = middle;
        else high = middle;
    return high;
}

/* ---- digits ---------------------------------------------------------------------------------- */

/* The decimal place of the second digit of an error, after rounding: -2 of 0.31, -1 of 0.996. */
static int last_place(double error) {
    int  place = 0;
    char text[32], *end;
    cot__format(text, sizeof text, "%.1e", error);
    for (end = text; *end && *end != 'e'; end++) {}
    if (*end) place = atoi(end + 1);
    return place - 1;
}

const char *fit_rounded(double v, double error, char *buf) {
    int place = error > 0 && isfinite(error) ? last_place(error) : 0;
    int first = v != 0 && isfinite(v) ? (int)floor(log10(fabs(v))) : place;
    if (!(error > 0) || !isfinite(error) || !isfinite(v)) return cot__shortest(v, buf);
    /* an error of rounding alone: as many digits as every double holds */
    if (first - place > 14) return cot__format(buf, 32, "%.15g", v), buf;
    if (place <= 0 && place >= -8 && first < 9) cot__format(buf, 32, "%.*f", -place, v);
    else cot__format(buf, 32, "%.*e", first > place ? first - place : 0, v);
    return buf;
}
