"""Fits the polynomials of src/base/math/vmath.h and prints src/base/math/vmath_polynomials.h (needs
mpmath).

    python3 fit_vmath.py > ../../src/base/vmath_polynomials.h

Each is the interpolant at Chebyshev nodes, in 60 digits, which is within a small factor of the best
polynomial; its relative error against the function it completes is printed beside it. _mid are for
double where a float is wanted. Coefficients stand from the highest power down, as Horner's rule
reads them. """
import mpmath as mp

mp.mp.dps = 60


def fit(f, lo, hi, degree):
    nodes = [mp.cos(mp.pi * (2 * k + 1) / (2 * degree + 2)) for k in range(degree + 1)]
    mid, half = (mp.mpf(lo) + hi) / 2, (mp.mpf(hi) - lo) / 2
    xs = [mid + half * t for t in nodes]
    a = mp.matrix([[x**k for k in range(degree + 1)] for x in xs])
    return list(mp.lu_solve(a, mp.matrix([f(x) for x in xs])))


def define(name, coefficients, digits, ending):
    line = f"#define {name} "
    for word in ", ".join(mp.nstr(v, digits) + ending for v in coefficients).split(" "):
        if len(line) + len(word) > 126:
            print(line + "\\")
            line = "    "
        line += word + " "
    print(line.rstrip())


def show(name, comment, suffix, f, lo, hi, degree, whole, rebuild):
    """whole(x): the function completed by the fit; rebuild(x, p): the same from the fit's value
    p."""
    c = fit(f, lo, hi, degree)
    worst = 0
    for k in range(501):
        x = mp.mpf(lo) + (mp.mpf(hi) - lo) * k / 500
        if x == 0:
            continue
        p = sum(v * x**i for i, v in enumerate(c))
        worst = max(worst, abs(rebuild(x, p) / whole(x) - 1))
    print(f"/* {comment}; relative error {mp.nstr(worst, 2)} */")
    define(f"{name}_{suffix}", list(reversed(c)), 9 if suffix == "f32" else 17, "f" if suffix == "f32" else "")


def even(f, lead):
    """(f(sqrt z)/sqrt z - lead)/z as a function of z = x^2."""
    def g(z):
        x = mp.sqrt(z)
        return (f(x) / x - lead) / z
    return g


def odd_pair(name, comment, f, zmax, degrees, lead=1):
    for suffix, degree in degrees.items():
        show(name, comment, suffix, even(f, lead), 0, zmax, degree,
             lambda z: f(mp.sqrt(z)) / mp.sqrt(z), lambda z, p: lead + z * p)


print("/* vmath_polynomials.h: coefficients of vmath.h. Printed by tests/data/fit_vmath.py; change that. */")
print("#ifndef COT_VMATH_POLYNOMIALS_H\n#define COT_VMATH_POLYNOMIALS_H\n")
half_ln2 = mp.log(2) / 2
for suffix, degree in {"f64": 9, "mid": 4, "f32": 3}.items():
    show("POLY_EXP", "(e^r - 1 - r - r^2/2)/r^3 on |r| <= log(2)/2", suffix,
         lambda r: (mp.exp(r) - 1 - r - r * r / 2) / r**3 if r * r > 1e-30 else mp.mpf(
             1) / 6, -half_ln2 * 1.01, half_ln2 * 1.01, degree,
         mp.exp, lambda r, p: 1 + r + r * r * (0.5 + r * p))
show("POLY_EXPM1", "the same, for functions that can afford it", "f32",
     lambda r: (mp.exp(r) - 1 - r - r * r / 2) / r**3 if r * r > 1e-30 else mp.mpf(
         1) / 6, -half_ln2 * 1.01, half_ln2 * 1.01, 4,
     mp.exp, lambda r, p: 1 + r + r * r * (0.5 + r * p))
print("#define POLY_EXPM1_f64 POLY_EXP_f64")
s_max = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
odd_pair("POLY_LOG", "(2 atanh(s)/s - 2)/z, z = s^2, |s| <= 0.1716", lambda s: 2 * mp.atanh(s), (s_max * 1.001) ** 2,
         {"f64": 6, "f32": 2}, 2)
show("POLY_POW", "(2 atanh(s)/s - 2 - 2 z/3)/z^2, z = s^2, |s| <= 0.1716", "f64",
     lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - 2 * z / 3) / z**2, mp.mpf("1e-12"), (s_max * 1.001) ** 2, 7,
     lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z), lambda z, p: 2 + 2 * z / 3 + z * z * p)
q = (mp.pi / 4 * 1.01) ** 2
odd_pair("POLY_SIN", "(sin(r)/r - 1)/z, z = r^2, |r| <= pi/4", mp.sin, q, {"f64": 5, "f32": 2})
for suffix, degree in {"f64": 5, "f32": 2}.items():
    show("POLY_COS", "(cos(r) - 1 + z/2)/z^2, z = r^2, |r| <= pi/4", suffix,
         lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, 0, q, degree, lambda z: mp.cos(mp.sqrt(z)),
         lambda z, p: 1 - z / 2 + z * z * p)
odd_pair("POLY_TANH", "(tanh(x)/x - 1)/z, z = x^2, |x| <= 0.625", mp.tanh, mp.mpf(0.625) ** 2, {"f32": 4})
odd_pair("POLY_ATAN", "(atan(t)/t - 1)/z, z = t^2, |t| <= tan(pi/8)", mp.atan, (mp.tan(mp.pi / 8) * 1.001) ** 2,
    {"f64": 10})
odd_pair("POLY_ASIN", "(asin(s)/s - 1)/z, z = s^2 <= 1/4", mp.asin, mp.mpf(0.25), {"f64": 12})
for suffix, edge, degree in (("f64", 1, 13), ("mid", 1, 7), ("f32", 0.9, 5)):
    f = lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1
    show("POLY_ERF", f"erf(x)/x - 1, z = x^2, |x| <= {edge}", suffix, f, mp.mpf("1e-30"), mp.mpf(edge) ** 2, degree,
         lambda z: 1 + f(z), lambda z, p: 1 + p)


def erfcx(a):
    return mp.erfc(a) * mp.exp(a * a)


K = mp.mpf(4)
a_of = lambda t: K * (1 + t) / (1 - t)
t_of = lambda a: (a - K) / (a + K)
# In double the last three coefficients are pairs of doubles: their steps are done in twice the
# precision.
c = fit(lambda t: erfcx(a_of(t)) * (a_of(t) + K), t_of(mp.mpf("0.7")), t_of(mp.mpf(28)), 20)
worst = max(abs(sum(v * t**i for i, v in enumerate(c)) / (erfcx(a_of(t)) * (a_of(t) + K)) - 1)
            for t in (t_of(mp.mpf("0.7")) + (t_of(28) - t_of(mp.mpf("0.7"))) * k / 300 for k in range(301)))
print(f"/* e^(a^2) erfc(a) (a + 4) = C0 + t (C1 + t (C2 + t POLY)), t = (a - 4)/(a + 4), 0.7 <= a <= 28; relative "
    f"error {mp.nstr(worst, 2)} */")
for i in range(3):
    print(f"#define ERFCX_{i}_HI {float(c[i]).hex()}\n#define ERFCX_{i}_LO {float(c[i] - mp.mpf(float(c[i]))).hex()}")
define("POLY_ERFCX_f64", list(reversed(c[3:])), 17, "")
show("POLY_ERFCX", "e^(a^2) erfc(a) (a + 4), t = (a - 4)/(a + 4), 1 <= a <= 28", "mid",
     lambda t: erfcx(a_of(t)) * (a_of(t) + K), t_of(mp.mpf("0.999")), t_of(mp.mpf(28)), 10, lambda t: erfcx(a_of(t)),
     lambda t, p: p / (a_of(t) + K))
show("POLY_LOG_ERFC", "log(erfc(a))/a, 0.9 <= a <= 4; the error is that of 1 - e^(a p) against erf(a)", "f32",
     lambda a: mp.log(mp.erfc(a)) / a, mp.mpf("0.89"), 4, 6, mp.erf, lambda a, p: 1 - mp.exp(a * p))
show("POLY_CBRT", "cbrt(1 + f), sqrt(1/2) <= 1 + f <= sqrt(2)", "mid", lambda f: mp.cbrt(1 + f), mp.sqrt(0.5) - 1,
     mp.sqrt(2) - 1, 4,
     lambda f: mp.cbrt(1 + f), lambda f, p: p)
print("\n#endif")
