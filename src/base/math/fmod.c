/* fmod.c: the remainder of a division, by integers, and so exact. */
#include "base/math/elementary.h"

#include <math.h>
#include <stdint.h>

static uint64_t bits_of(double x) { return ((union { double d; uint64_t u; }){.d = x}).u; }
static double   from_bits(uint64_t u) { return ((union { uint64_t u; double d; }){.u = u}).d; }

/* x = m 2^e for a finite x >= 0 */
static uint64_t parts(double x, int *e) {
    uint64_t bits = bits_of(x), m = bits & ((UINT64_C(1) << 52) - 1);
    int      biased = (int)(bits >> 52);
    *e = biased == 0 ? -1074 : biased - 1075;
    return biased == 0 ? m : m | UINT64_C(1) << 52;
}

/* a >= b implies that its exponent is not smaller. A remainder below 2^53 takes 11 more bits. */
double cot__fmod(double x, double y) {
    double a = fabs(x), b = fabs(y);
    int    ea, eb;
    if (!(a < INFINITY) || !(b > 0)) return NAN;
    if (a < b) return x;
    uint64_t m = parts(a, &ea), d = parts(b, &eb), r = m % d;
    for (int left = ea - eb; left > 0 && r != 0; left -= 11) r = (r << (left < 11 ? left : 11)) % d;
    double unit = eb < -1022 ? from_bits(UINT64_C(1) << (eb + 1074)) : from_bits((uint64_t)(eb + 1023) << 52);
    return copysign((double)r * unit, x);
}

float cot__fmodf(float x, float y) { return (float)cot__fmod((double)x, (double)y); }
