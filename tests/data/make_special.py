#!/usr/bin/env python3
"""Write tests/data/special.txt: reference values for tests/base/test_special.c.

    make_special.py [density [seed]] > special.txt

Each line: function, second argument (the order n, b of logaddexp, or 0), x, and
the exact value as hi + lo, two doubles, all numbers as hex floats.  A density
above 1 gives a larger sample for measuring; 1 is what is committed.
Needs mpmath.
"""
import math
import random
import sys

from mpmath import mp, mpf

mp.dps = 70
density = int(sys.argv[1]) if len(sys.argv) > 1 else 1
rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)


def emit(name, second, x, value):
    value = mpf(value)
    if abs(value) >= mpf(sys.float_info.max):
        hi, lo = math.copysign(math.inf, value), 0.0
    else:
        hi = float(value)
        lo = float(value - mpf(hi))
    print(name, float(second).hex(), float(x).hex(), hi.hex() if math.isfinite(hi) else hi, lo.hex())


def some(k):
    return range(k * density)


def uniform(a, b, k):
    return [rng.uniform(a, b) for _ in some(k)]


def log_uniform(lo2, hi2, k):
    """Positive, exponents of two between the bounds."""
    return [math.ldexp(rng.uniform(1, 2), rng.randint(lo2, hi2 - 1)) for _ in some(k)]


def near(c, k, lo2=-50, hi2=-3):
    return [c + rng.choice((-1, 1)) * d for d in log_uniform(lo2, hi2, k)] + [
        math.nextafter(c, math.inf), math.nextafter(c, -math.inf)]


def both(xs):
    return list(xs) + [-x for x in xs]


def lgamma(x):
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


def polygamma(n, x):
    s, total = n + 1, mpf(0)
    while x < 0:
        total += x ** -s
        x += 1
    # Euler and Maclaurin far out, at a relative accuracy that mpmath's zeta, whose
    # accuracy is absolute, does not have where the value is tiny.
    while x < 60 + n:
        total += x ** -s
        x += 1
    total += x ** -n / n + x ** -s / 2
    term = s * x ** (-s - 1)
    for j in range(1, 40):
        total += mp.bernoulli(2 * j) / mp.factorial(2 * j) * term
        term *= (s + 2 * j - 1) * (s + 2 * j) / (x * x)
    return (-1) ** s * mp.factorial(n) * total


def gelu(x):
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def softplus(x):
    return mp.log1p(mp.exp(x))


def mish(x):
    e = mp.exp(x)
    m = e * (e + 2)
    return x * m / (m + 2)


def gelu_tanh(x):
    u = 2 * mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x ** 3)
    return x / (1 + mp.exp(-u))


for n, x in ((1, "0.3"), (5, "2.5"), (20, "30"), (3, "-2.3")):
    assert abs(polygamma(n, mpf(x)) / mp.psi(n, mpf(x)) - 1) < mpf(10) ** -45

ROOT = float(mp.findroot(mp.digamma, mpf("1.4616")))
LGAMMA_ROOTS = [float(mp.findroot(lgamma, (mpf(a), mpf(b)), solver="anderson", tol=1e-40))
                for a, b in ((-2.46, -2.45), (-2.75, -2.74), (-3.15, -3.14), (-3.96, -3.95))]
tails = both(log_uniform(-1074, -20, 8) + log_uniform(-20, 0, 20) + uniform(0, 5, 30) + uniform(5, 40, 20))

sets = {
    "erfinv": (lambda x: mp.erfinv(x), both(
        log_uniform(-1074, -20, 8) + log_uniform(-20, -1, 20) + uniform(0, 1, 50)
        + [1 - d for d in log_uniform(-53, -3, 40)] + [0.5, math.nextafter(0.5, 1), math.nextafter(1, 0)])),
    "lgamma": (lgamma, log_uniform(-1074, -3, 20) + [-x for x in log_uniform(-1074, -3, 20)] + uniform(0, 20, 50)
               + near(1, 20) + near(2, 20) + uniform(-30, 0, 60) + log_uniform(4, 1010, 20) + near(-3, 5)
               + [x for r in LGAMMA_ROOTS for x in near(r, 4, -50, -8)]),
    "digamma": (mp.digamma, both(log_uniform(-1020, -3, 20)) + uniform(0, 2, 40) + uniform(2, 12, 60)
                + near(ROOT, 20) + near(1, 5) + near(2, 5) + near(10, 5) + log_uniform(3, 1020, 20)
                + uniform(-20, 0, 60) + near(-3, 8) + near(-0.5040830082644554, 5) + uniform(-1e6, 0, 5)),
    "log1pexp": (softplus, tails + both(uniform(40, 740, 15))),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), tails + both(uniform(40, 740, 15))),
    "log_sigmoid": (lambda x: -softplus(-x), tails + both(uniform(40, 740, 15))),
    "erfc": (mp.erfc, tails + uniform(0.7, 1, 20) + uniform(20, 27.3, 20)),
    "gelu": (gelu, tails + both(uniform(1, 1.1, 10)) + uniform(-38.6, -30, 20)),
    "silu": (lambda x: x / (1 + mp.exp(-x)), tails + uniform(-750, -40, 30)),
    "mish": (mish, tails + uniform(-750, -40, 30)),
    "gelu_tanh": (gelu_tanh, tails + uniform(-22, 0, 30)),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), both(log_uniform(-1074, 1023, 30))),
}
for name, (f, xs) in sets.items():
    for x in xs:
        if x != 0:
            emit(name, 0, x, f(mpf(x)))

for n in (1, 2, 3, 4, 5, 7, 10, 15, 20, 31, 45, 60, 100, 171, 400, 1000):
    xs = (uniform(0, 2, 4) + uniform(2, 15, 5) + uniform(15, 60, 4) + log_uniform(-20, 10, 4)
          + uniform(-1, 0, 3) + uniform(-12, -1, 4) + near(-4.5, 1, -40) + near(-2, 1) + near(-0.5, 1, -40))
    # Sizes at which the power alone, without the factorial, would overflow or vanish.
    lo, hi = int(-1000 / (n + 1)), int(1000 / n)
    if n == 1000:  # nearly all else overflows
        xs += uniform(150, 1500, 12)
    xs += log_uniform(max(lo, -300), max(lo, -300) + 3, 2) + log_uniform(min(hi, 900), min(hi, 900) + 3, 2)
    for x in xs:
        emit("polygamma", n, x, polygamma(n, mpf(x)))

for _ in some(100):
    a = rng.choice((rng.uniform(-1, 1), rng.uniform(-40, 40), rng.uniform(-800, 800)))
    b = a + rng.choice((-1, 1)) * rng.choice((rng.uniform(0, 1e-3), rng.uniform(0, 2), rng.uniform(0, 40)))
    emit("logaddexp", b, a, mp.log(mp.exp(mpf(a)) + mp.exp(mpf(b))))
