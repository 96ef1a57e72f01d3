/* vmath.h: elementary functions as straight lines of arithmetic, for loops that the compiler turns
 * into vectors.
 *
 * No function here branches, calls or looks up: choices are selects, powers of two are made of
 * bits. A loop over one of them becomes wide instructions, and its last elements, done one by one
 * or in a padded vector, get the same bits as the others, since every step rounds the same way. FMA
 * is an instruction, or software that rounds the same way (software_fma.h), so the bits are those
 * of every machine.
 *
 * Promise: 2 ulp, with the values of C's Annex F at zeros and infinities, for every argument,
 * except that sines, cosines and tangents are NaN beyond TRIG_MOST: a large argument needs integers
 * and many digits of pi. elementary.h has these functions for single numbers, and all arguments.
 *
 * A template: vmath_f64.h and vmath_f32.h include it. They define
 *   T, U              double or float; the unsigned integer of its size
 *   M(name)           name with the suffix of the type
 *   FMA, SQRT, …      functions for T; POLY(name) its polynomial; the constants of the type; SINGLE
 *                     for float
 * and may define VM, what each function is: inlined into its loop, if they do not. */

#ifndef VM
#define VM static inline __attribute__((always_inline))
#endif

VM T M(from_bits)(U u) { return ((union { U u; T t; }){.u = u}).t; }
VM U M(to_bits)(T t) { return ((union { T t; U u; }){.t = t}).u; }

/* One end after the other: a compare and a choice each, where a choice of three takes more. NaN
 * stays. */
VM T M(between)(T least, T x, T most) {
    x = x < least ? least : x;
    return x > most ? most : x;
}

/* ---- exponentials ---------------------------------------------------------------------------- */

/* x = n log 2 + r + lo with |r| <= log(2)/2 (1 + tiny); `shifted` holds n in its low bits. */
typedef struct M(reduced) { T n, shifted, r, lo; } M(reduced);

VM M(reduced) M(exp_reduce)(T x) {
    T shifted = FMA(x, (T)1.44269504088896340736, ROUNDER), n = shifted - ROUNDER;
    T r1 = FMA(n, -LN2_HI, x), r = FMA(n, -LN2_LO, r1);
    return (M(reduced)){n, shifted, r, FMA(n, -LN2_LO, r1 - r)};
}

/* e^(r + lo) - 1 - r for a reduced r. */
VM T M(exp_rest)(T r, T lo) {
    T q = HORNER(r, POLY(POLY_EXPM1), (T)0.5);
    return FMA(r * r, q, lo);
}
VM T M(expm1_core)(T r, T lo) { return r + M(exp_rest)(r, lo); }

/* p 2^(n + up) in two steps, so that n may run from twice the least exponent to twice the
 * largest. */
VM T M(scale_up)(T p, T shifted, U up) {
    /* positive, so that a logical shift halves it */
    U n = M(to_bits)(shifted) - M(to_bits)(ROUNDER) + (4 * BIAS + up);
    U half = n >> 1, rest = n - half;
    return p * M(from_bits)((half - BIAS) << MANTISSA) * M(from_bits)((rest - BIAS) << MANTISSA);
}

VM T M(scale)(T p, T shifted) { return M(scale_up)(p, shifted, 0); }

/* p 2^(n + up) in one step, for n + up that are exponents of normal numbers. */
VM T M(scale_once)(T p, T shifted, U up) {
    return p * M(from_bits)((M(to_bits)(shifted) - M(to_bits)(ROUNDER) + (BIAS + up)) << MANTISSA);
}

/* e^(x + dx) 2^up, dx being tiny. */
VM T M(exp_sum_up)(T x, T dx, U up) {
    x = M(between)(EXP_LEAST, x, EXP_MOST);
    M(reduced) v = M(exp_reduce)(x);
    T rest = M(exp_rest)(v.r, v.lo), sum = 1 + v.r, lost = (1 - sum) + v.r;
    return M(scale_up)(sum + FMA(dx, sum + rest, rest + lost), v.shifted, up);
}
VM T M(exp_sum)(T x, T dx) { return M(exp_sum_up)(x, dx, 0); }

VM T M(exp_core)(T r) { return 1 + FMA(r * r, HORNER(r, POLY(POLY_EXP), (T)0.5), r); }
VM T M(exp)(T x) {
    M(reduced) v = M(exp_reduce)(M(between)(EXP_LEAST, x, EXP_MOST));
    return M(scale)(M(exp_core)(v.r), v.shifted);
}
/* The same where |x| is so small that e^x is a normal number. */
VM T M(exp_near)(T x) {
    M(reduced) v = M(exp_reduce)(x);
    return M(scale_once)(M(exp_core)(v.r), v.shifted, 0);
}

VM T M(exp2)(T x) {
    x = x < -2 * BIAS ? (T)(-2 * BIAS) : x > 2 * BIAS ? (T)(2 * BIAS) : x;
    T shifted = x + ROUNDER, f = x - (shifted - ROUNDER);
    T r = f * LN2_HI;
    return M(scale)(1 + M(expm1_core)(r, FMA(f, LN2_HI, -r) + f * LN2_LO), shifted);
}

/* (e^x - 1)/2 = h (e^r - 1) + h - 1/2, h = 2^(n-1); halved, because 2^n may overflow where the
 * result does not; 2^-less of that, where the 1/2 no longer counts. */
VM T M(half_expm1)(T x, U less) {
    M(reduced) v = M(exp_reduce)(x);
    T h = M(from_bits)((M(to_bits)(v.shifted) - M(to_bits)(ROUNDER) + (BIAS - 1 - less)) << MANTISSA);
    T base = h - (T)0.5, step = h * v.r, sum = base + step;
    return sum + FMA(h, M(exp_rest)(v.r, v.lo), (base - sum) + step);
}

VM T M(expm1)(T x) {
    T e = 2 * M(half_expm1)(x < EXPM1_LEAST ? EXPM1_LEAST : x > EXP_MOST ? EXP_MOST : x, 0);
    return FABS(x) < TINY ? x : e;
}

/* 1 - 2/(e^2x + 1); near 0, where that cancels, a polynomial, or the ninth convergent of
 * tanh(x)/x = 1/(1 + z/(3 + z/(5 + …))), whose error is below 1e-20. */
VM T M(tanh)(T x) {
    T    a = FABS(x), z = x * x;
    bool near = a < (T)0.625;
    T    e = M(exp_near)(2 * (a > TANH_MOST ? TANH_MOST : a)); /* there tanh is 1 */
#ifdef SINGLE
    T far = 1 - 2 / (e + 1), r = near ? FMA(a * z, HORNER(z, POLY(POLY_TANH)), a) : far;
#else
    T base = near ? a : (T)1;
    T num = near ? a * z * FMA(FMA(FMA(44, z, 12870), z, 810810), z, 11486475) : (T)2;
    T den = near ? FMA(FMA(FMA(FMA(45, z, 13860), z, 945945), z, 16216200), z, 34459425) : e + 1;
    T r = base - num / den;
#endif
    return COPYSIGN(r, x);
}

/* e^-a for a >= 0, as exp_sum has it. The first step goes half of the exponents too high: so it
 * rounds nothing, and the second one rounds what is subnormal. */
VM T M(exp_down)(T a) {
    M(reduced) v = M(exp_reduce)(-(a > -EXP_LEAST ? -EXP_LEAST : a));
    T rest = M(exp_rest)(v.r, v.lo), sum = 1 + v.r, lost = (1 - sum) + v.r;
    return M(scale_once)(sum + (rest + lost), v.shifted, (BIAS + 1) / 2) * TWO_DOWN;
}

VM T M(sigmoid)(T x) {
    T e = M(exp_down)(FABS(x));
    T n = x < 0 ? e : (T)1, d = 1 + e;
    T lost = (1 - d) + e, inverse = 1 / d, q = n * inverse; /* without the correction 2.4 ulp */
    return FMA(FMA(-q, d, n) - q * lost, inverse, q);
}

VM T M(cosh)(T x) {
    T a = FABS(x);
    a = a > EXP_MOST + 1 ? EXP_MOST + 1 : a;
    M(reduced) v = M(exp_reduce)(a);
    /* e^a/2, which overflows only where cosh does */
    T h = M(scale)((T)0.5 * (1 + M(expm1_core)(v.r, v.lo)), v.shifted);
    return h + (T)0.25 / h;
}

VM T M(sinh)(T x) {
    T    a = FABS(x), c = a > EXP_MOST + 1 ? EXP_MOST + 1 : a;
    bool far = a > EXP_MOST - 1; /* near the end h alone would overflow */
    T    m = M(half_expm1)(c, far ? 2 : 0);
    T q = m / FMA(2, m, 1), r = m > (T)0.5 ? m + q : FMA(-2 * m, q, 2 * m);
    r = far ? 4 * r : r;
    return COPYSIGN(a < TINY ? a : r, x);
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* x = 2^k (1 + f), 1 + f between sqrt(1/2) and sqrt(2), for x > 0. */
typedef struct M(parts) { T k, f; } M(parts);

VM M(parts) M(log_parts)(T x) {
    bool small = x < LEAST_NORMAL;
    U    bits = M(to_bits)(small ? x * TWO_P : x) + (M(to_bits)(1) - SQRT_HALF_BITS);
    U    k = bits >> MANTISSA, m = (bits & (((U)1 << MANTISSA) - 1)) + SQRT_HALF_BITS;
    T    e = M(from_bits)(k | M(to_bits)(INTEGER)) - (INTEGER + (small ? (T)(BIAS + P_DIGITS) : (T)BIAS));
    return (M(parts)){e, M(from_bits)(m) - 1};
}

/* log(1 + f) = hi + lo, hi being f - f^2/2: with s = f/(2 + f) it is f - f^2/2 + s (f^2/2 + s^2
 * P(s^2)). */
typedef struct M(pair) { T hi, lo; } M(pair);

VM M(pair) M(log_core)(T f) {
    T s = f / (2 + f), z = s * s, h = (T)0.5 * f * f;
    T hi = f - h;
    return (M(pair)){hi, FMA(s, FMA(z, HORNER(z, POLY(POLY_LOG)), h), (f - hi) - h)};
}

VM T M(log_special)(T x, T r) {
    r = x > 0 ? r : x == 0 ? -(T)INFINITY : (T)NAN;
    return x == (T)INFINITY ? x : r;
}

VM T M(log)(T x) {
    M(parts) p = M(log_parts)(x);
    M(pair)  l = M(log_core)(p.f);
    return M(log_special)(x, FMA(p.k, LN2_HI, l.hi + FMA(p.k, LN2_LO, l.lo)));
}

/* k c + log(1 + f) b, where b = b_hi + b_lo and c = c_hi + c_lo. */
VM T M(log_base)(T x, T b_hi, T b_lo, T c_hi, T c_lo) {
    M(parts) p = M(log_parts)(x);
    M(pair)  l = M(log_core)(p.f);
    T hi = l.hi * b_hi, lo = FMA(l.hi, b_hi, -hi) + FMA(l.lo, b_hi, l.hi * b_lo);
    T whole = p.k * c_hi, sum = whole + hi;
    return M(log_special)(x, sum + (((whole - sum) + hi) + (lo + FMA(p.k, c_lo, FMA(p.k, c_hi, -whole)))));
}

VM T M(log2)(T x) { return M(log_base)(x, LOG2E_HI, LOG2E_LO, 1, 0); }
VM T M(log10)(T x) { return M(log_base)(x, LOG10E_HI, LOG10E_LO, LOG10_2_HI, LOG10_2_LO); }

/* log(1 + x + dx), dx being tiny beside x. */
VM T M(log1p_sum)(T x, T dx) {
    T        u = 1 + x;
    T        rest = x > 1 ? 1 - (u - x) : x - (u - 1); /* what 1 + x lost */
    M(parts) p = M(log_parts)(u);
    bool     near = p.k == 0;
    T        f = near ? x : p.f;
    M(pair)  l = M(log_core)(f);
    /* What was lost counts 1/u of it: a power of two and a line through 1/m on [1, 2] are near
     * enough. */
    T scale = M(from_bits)(((U)(2 * BIAS) << MANTISSA) - (M(to_bits)(u) & ~(((U)1 << MANTISSA) - 1)));
    T back = ((near ? (T)0 : rest) + dx) * (scale * FMA((T)-0.5, u * scale, (T)1.457));
    T r = FMA(p.k, LN2_HI, l.hi + FMA(p.k, LN2_LO, l.lo + back));
    return x == (T)INFINITY ? x : r;
}

VM T M(log1p)(T x) {
    T r = M(log1p_sum)(x, 0);
    r = x > -1 ? r : x == -1 ? -(T)INFINITY : (T)NAN;
    return FABS(x) < TINY ? x : r;
}

VM T M(log1pexp)(T x) { return (x > 0 ? x : (T)0) + M(log1p)(M(exp)(-FABS(x))); }
VM T M(log_sigmoid)(T x) { return -M(log1pexp)(-x); }
VM T M(logaddexp)(T a, T b) {
    T d = a == b ? (T)0 : a - b; /* equal infinities too */
    return (a > b ? a : b) + M(log1p)(M(exp)(-FABS(d)));
}

/* ---- sine and cosine ------------------------------------------------------------------------- */

/* x = n pi/2 + r + lo. pi/2 in three parts: the first product is exact with FMA, as it cancels. */
VM M(reduced) M(trig_reduce)(T x) {
    T shifted = FMA(x, (T)0.63661977236758134308, ROUNDER), n = shifted - ROUNDER;
    T r1 = FMA(n, -PIO2_1, x), w = n * PIO2_2, dw = FMA(n, PIO2_2, -w);
    T r = r1 - w, back = r - r1, lost = (r1 - (r - back)) - (w + back);
    return (M(reduced)){n, shifted, r, FMA(n, -PIO2_3, lost - dw)};
}

/* The sine of quadrant `turn` more than the reduced number. */
VM T M(sin_of)(M(reduced) v, U turn) {
    T r = v.r, z = r * r, h = (T)0.5 * z, one = 1 - h;
    T s = r + FMA(z * r, HORNER(z, POLY(POLY_SIN)), FMA(-h, v.lo, v.lo));
    T c = one + (((1 - one) - h) + FMA(z * z, HORNER(z, POLY(POLY_COS)), -(r * v.lo)));
    U quadrant = M(to_bits)(v.shifted) + turn;
    T b = (quadrant & 1) != 0 ? c : s;
    return M(from_bits)(M(to_bits)(b) ^ (quadrant << (8 * sizeof(T) - 2) & (U)1 << (8 * sizeof(T) - 1)));
}

VM bool M(trig_is_near)(T x) { return FABS(x) <= TRIG_MOST; }
VM T M(sin_near)(T x) {
    T r = M(sin_of)(M(trig_reduce)(x), 0);
    return FABS(x) < TINY ? x : r; /* -0 */
}
VM T M(cos_near)(T x) { return M(sin_of)(M(trig_reduce)(x), 1); }
VM T M(sin)(T x) { return M(trig_is_near)(x) ? M(sin_near)(x) : (T)NAN; }
VM T M(cos)(T x) { return M(trig_is_near)(x) ? M(cos_near)(x) : (T)NAN; }
