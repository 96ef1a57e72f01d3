#!/usr/bin/env python3
"""Derive the rational approximations and constants of src/base/math/special*.c.

Each function is interpolated by P(t)/Q(t), Q(0) = 1, at Chebyshev nodes, with
40 digits to spare; that is within a small factor of the minimax fit.  Prints C
arrays, lowest order first, and the largest relative error of each fit.
Needs mpmath.
"""
from mpmath import mp, mpf, cos, pi, matrix, lu_solve, digamma, erfinv, exp, findroot, sqrt, log, bernoulli, factorial

mp.dps = 60


def fit(name, f, a, b, m, n, offset=0):
    """P/Q ~ f - offset, the error still relative to f: where the offset is near f,
    the rounding of P/Q hardly counts in offset + P/Q."""
    k = m + n + 1
    t = [(a + b) / mpf(2) + (b - a) / mpf(2) * cos(pi * (2 * i + 1) / (2 * k)) for i in range(k)]
    A, r = matrix(k, k), matrix(k, 1)
    for i, ti in enumerate(t):
        fi = f(ti)
        for j in range(m + 1):
            A[i, j] = ti ** j
        for j in range(1, n + 1):
            A[i, m + j] = -fi * ti ** j
        r[i] = fi
    c = list(lu_solve(A, r))
    p, q = c[:m + 1], [mpf(1)] + c[m + 1:]
    offset = mpf(offset)
    for j in range(min(m, n) + 1):
        p[j] -= offset * q[j]
    # The error that counts is that of the coefficients as rounded to double.
    pr, qr = [mpf(float(x)) for x in p], [mpf(float(x)) for x in q]

    def err(p, q):
        worst = mpf(0)
        for i in range(400):
            x = a + (b - a) * mpf(i) / 399
            v = sum(c * x ** j for j, c in enumerate(p)) / sum(c * x ** j for j, c in enumerate(q))
            worst = max(worst, abs((offset + v) / f(x) - 1))
        return worst

    print(f"/* {name}: error {mp.nstr(err(p, q), 3)}, rounded {mp.nstr(err(pr, qr), 3)} */")
    for nm, cs in (("p", p), ("q", q)):
        print(f"static const double {name}_{nm}[] = {{" + ", ".join(repr(float(x)) for x in cs) + "};")


def dd(name, v):
    hi = mpf(float(v))
    print(f"{name}: {float(hi).hex()} {float(v - hi).hex()}")


x0 = findroot(digamma, mpf("1.4616"))


def digamma_slope(t):
    return digamma(1 + t) / (1 + t - x0)


def lgamma_slope(t):
    if t == 0 or t == 1:
        return mp.euler if t == 0 else 1 - mp.euler
    return mp.loggamma(1 + t) / (t * (t - 1))


def erfinv_tail(w):
    q = exp(-w * w)
    # erfcinv by Newton on erfc from the asymptotic size, as mpmath's erfinv(1-q) would cancel.
    y = w * mpf("0.9") if w < 2 else sqrt(w * w - log(w * sqrt(pi)))
    y = max(y, mpf("0.3"))
    for _ in range(60):
        d = (mp.erfc(y) / q - 1) / (2 / sqrt(pi) * exp(-y * y) / q)
        d = d if abs(d) < mpf("0.3") else d / abs(d) * mpf("0.3")
        y += d
        if abs(d) < mpf(10) ** -50:
            break
    return y


if __name__ == "__main__":
    fit("lgamma_near", lgamma_slope, mpf("-0.25"), mpf("0.5"), 7, 7, 0.5625)
    fit("lgamma_mid", lgamma_slope, mpf("0.5"), mpf(2), 7, 6, 0.375)
    fit("digamma", digamma_slope, mpf(0), mpf(2), 7, 6)
    fit("erfinv_mid", lambda u: erfinv(sqrt(u)) / sqrt(u) if u else sqrt(pi) / 2, mpf(0), mpf("0.25"), 5, 5, 0.921875)
    for nm, a, b, m, n, c in (("erfinv_near", "0.83", "2.125", 8, 8, 0.75),
            ("erfinv_far", "2.125", "6.1", 7, 7, 0.90625)):
        a, b = mpf(a), mpf(b)
        fit(nm, lambda u: erfinv_tail(u + a) / (u + a), mpf(0), b - a, m, n, c)
    dd("digamma root", x0)
    dd("1/sqrt(2)", 1 / sqrt(mpf(2)))
    dd("2/sqrt(pi)", 2 / sqrt(pi))
    dd("1/sqrt(2 pi)", 1 / sqrt(2 * pi))
    dd("2 sqrt(2/pi)", 2 * sqrt(2 / pi))
    dd("0.044715 * 2 sqrt(2/pi)", mpf("0.044715") * 2 * sqrt(2 / pi))
    print("B_2j/(2j):", [repr(float(bernoulli(2 * j) / (2 * j))) for j in range(1, 11)])
    print("B_2j/(2j (2j-1)):", [repr(float(bernoulli(2 * j) / (2 * j * (2 * j - 1)))) for j in range(1, 9)])
    print("B_2j/(2j)!:", [repr(float(bernoulli(2 * j) / factorial(2 * j))) for j in range(1, 15)])
