"""Elementwise operations: smooth points, special points, integers, broadcasting."""
import os
import re
import sys

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax

from .inputs import Const, SEED, fresh
from .late_torch import torch
from .writing import HERE, case, open_file

UNARY = dict(
    neg=jnp.negative, abs=jnp.abs, sign=jnp.sign, sqrt=jnp.sqrt, rsqrt=lax.rsqrt, cbrt=jnp.cbrt, square=jnp.square,
    reciprocal=jnp.reciprocal, exp=jnp.exp, exp2=jnp.exp2, expm1=jnp.expm1, log=jnp.log, log2=jnp.log2, log10=jnp.log10,
    log1p=jnp.log1p, sin=jnp.sin, cos=jnp.cos, tan=jnp.tan, asin=jnp.arcsin, acos=jnp.arccos, atan=jnp.arctan,
    sinh=jnp.sinh,
    cosh=jnp.cosh, tanh=jnp.tanh, asinh=jnp.arcsinh, acosh=jnp.arccosh, atanh=lambda x: jnp.where(jnp.abs(x) == 1,
        jnp.copysign(jnp.inf, x), 0.5 * jnp.log1p(2 * x / (1 - x))), sigmoid=jax.nn.sigmoid,
    log_sigmoid=jax.nn.log_sigmoid, softplus=jax.nn.softplus, relu=jax.nn.relu, selu=jax.nn.selu,
    gelu=lambda x: jax.nn.gelu(x, approximate=False), gelu_tanh=lambda x: jax.nn.gelu(x,
        approximate=True), silu=jax.nn.silu,
    mish=jax.nn.mish, hard_sigmoid=jax.nn.hard_sigmoid, erf=jsp.erf, erfc=jsp.erfc, erfinv=jsp.erfinv,
    lgamma=jsp.gammaln,
    digamma=jsp.digamma, floor=jnp.floor, ceil=jnp.ceil, round=jnp.round, trunc=jnp.trunc, isnan=jnp.isnan,
    isinf=jnp.isinf,
    isfinite=jnp.isfinite, logical_not=jnp.logical_not)
BINARY = dict(
    add=jnp.add, sub=jnp.subtract, mul=jnp.multiply, div=jnp.true_divide, smul=jnp.multiply, sdiv=jnp.true_divide,
    pow=jnp.power,
    atan2=jnp.arctan2, hypot=jnp.hypot, maximum=jnp.maximum, minimum=jnp.minimum, fmod=jnp.fmod,
    remainder=jnp.remainder,
    logaddexp=jnp.logaddexp, leaky_relu=lambda x, y: jnp.where(x > 0, x, x * y), elu=lambda x, y: jnp.where(x > 0, x,
        y * jnp.expm1(x)),
    polygamma=jsp.polygamma, equal=jnp.equal, not_equal=jnp.not_equal, less=jnp.less, less_equal=jnp.less_equal,
    greater=jnp.greater, greater_equal=jnp.greater_equal, logical_and=jnp.logical_and, logical_or=jnp.logical_or)
TERNARY = dict(
    where=jnp.where, clamp=lambda x, lo, hi: jnp.minimum(jnp.maximum(x, lo), hi), fma=lambda x, y, w: x * y + w,
    lerp=lambda x, y, w: x + w * (y - x))
# One step to JAX, several inside: their error follows the condition of the function.
INSIDE = {"lgamma", "digamma", "polygamma", "exp2", "erfinv", "gelu", "mish"}


def domains():
    """name -> (lo, hi): the last two numbers of each rule."""
    text = open(os.path.join(HERE, "../../src/rules/rules.def")).read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for rule in re.split(r"\n(?=UNARY|BINARY|TERNARY)", text)[1:]:
        name = re.match(r"\w+\s*\((\w+)", rule).group(1)
        lo, hi = re.search(r"(-?[\d.]+),\s*(-?[\d.]+)\)\s*(?:\n|$)(?!\s+\S.*-?[\d.]+,\s*-?[\d.]+\)\s*$)", rule).groups()
        found[name] = (float(lo), float(hi))
    return found


def elementwise():
    lim = domains()
    missing = set(lim) ^ (set(UNARY) | set(BINARY) | set(TERNARY))
    if missing:
        sys.exit(f"{missing}: in rules.def or in UNARY, BINARY, TERNARY of {__file__}, but not in both")
    open_file("elementwise")
    # Each part counts on from a number of its own, so an operation that is added at the end of its
    # dictionary moves the inputs of no other.
    for name, f in UNARY.items():
        case(f"{name}_smooth", name, f, [fresh((5,), *lim[name])], order=3, inputs=name in INSIDE)
        case(f"{name}_scalar", name, f, [fresh((), *lim[name])], order=2, inputs=name in INSIDE)
    SEED[0] = 1284
    for name, f in BINARY.items():
        x, y = fresh((2, 3), *lim[name]), fresh((2, 3), *lim[name])
        if name == "polygamma":
            for n in range(4):
                case(f"polygamma_{n}", name, f, [Const(np.full((4,), n)), fresh((4,), *lim[name])], order=2,
                    inputs=True)
            continue
        if name.startswith(("fmod", "remainder")):
            y = fresh((2, 3), 0.6, 1.5)
        case(f"{name}_smooth", name, f, [x, y], order=3)
        case(f"{name}_scalar", name, f, [fresh((), *lim[name]), fresh((), *lim[name])])
        case(f"{name}_number", name, f, [x, 1.25], order=2)
        case(f"number_{name}", name, f, [1.25, y], order=2)
    SEED[0] = 1556
    for name, f in TERNARY.items():
        xs = [fresh((2, 3), *lim[name]) for _ in range(3)]
        if name == "where":
            xs[0] = Const(xs[0] > 0)
        if name == "clamp":
            xs[1:] = [fresh((2, 3), -1, -0.3), fresh((2, 3), 0.3, 1)]
        case(f"{name}_smooth", name, f, xs, order=3)
    SEED[0] = 1585
    case("fmod_signs", "fmod", jnp.fmod, [np.array([5.5, -5.5, 5.5, -5.5]), np.array([2.0, 2, -2, -2])], order=1)
    case("remainder_signs", "remainder", jnp.remainder, [np.array([5.5, -5.5, 5.5, -5.5]), np.array([2.0, 2, -2, -2])],
        order=1)
    case("clamp_numbers", "clamp", lambda x, a, b: lax.clamp(a, x, b), [fresh((6,), -2, 2), -1.0, 1.0])
    case("where_numbers", "where", lambda c, a, b: jnp.where(c, a, b), [Const([True, False, True]), fresh((3,)), 2.0])


# Values only, at points where functions are decided by cases.
POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-10, -1e-10, 1e-300, 30.0, -30.0, 700.0, -700.0, 1e10, -1e10,
          1e300, np.inf, -np.inf,
          np.nan]


def special():
    open_file("special")
    x = np.array(POINTS)
    for name, f in UNARY.items():
        p = x
        if name in ("sin", "cos", "tan"):
            p = x[(np.abs(x) < 1e11) | ~np.isfinite(x)]
        if name in ("gelu", "gelu_tanh", "silu", "mish"):
            p = x[x != -np.inf]
        if name == "digamma":
            p = x[(x != 0) & (x != -0.5)]
        if name in ("sinh", "cosh"):
            f = lambda v, name=name: jnp.asarray(getattr(torch, name)(torch.tensor(np.array(v))).numpy())
        # exp2(x) is exp(x log 2) to JAX, lgamma and erfinv one polynomial for all x: they lose up
        # to six bits at the far points.
        case(f"{name}_points", name, f, [Const(p)], ulps=None if name not in INSIDE else 64)
    for name, f in BINARY.items():
        if name in ("polygamma",):
            continue
        if name == "smul":  # a zero wins
            f = lambda x, y: jnp.where((x == 0) | (y == 0), 0.0, x * y)
        if name == "sdiv":
            f = lambda x, y: jnp.where(x == 0, 0.0, x / y)
        p = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -3.0, np.inf, -np.inf, np.nan])
        a, b = np.repeat(p, len(p)), np.tile(p, len(p))
        case(f"{name}_points", name, f, [Const(a), Const(b)])


def from_integers(f):
    """Integers become f64 first."""
    return lambda *xs: f(*(x if isinstance(x, (int, float)) or jnp.issubdtype(x.dtype, jnp.floating)
        else x.astype(jnp.float64) for x in xs))


def integers():
    open_file("integers")
    a, b = np.array([7, -7, 7, -7, 0, 3, -128, 100]), np.array([2, 2, -2, -2, 5, 3, 1, 100])
    for d in ("i64", "i32", "u8"):
        x, y = Const(a if d != "u8" else np.abs(a), d), Const(b if d != "u8" else np.abs(b), d)
        for name in ("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round", "trunc", "isnan", "isinf",
                     "isfinite", "logical_not",
                     "sqrt", "exp", "tanh", "reciprocal"):
            case(f"{name}_{d}", name, from_integers(UNARY[name]) if name in ("sqrt", "exp", "tanh", "reciprocal")
                else UNARY[name], [x])
        for name in ("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "equal", "not_equal",
                     "less", "less_equal",
                     "greater", "greater_equal", "logical_and", "logical_or", "atan2", "hypot"):
            case(f"{name}_{d}", name, from_integers(BINARY[name]) if name in ("div", "atan2", "hypot")
                else BINARY[name], [x, y])
        case(f"pow_{d}", "pow", jnp.power, [x, Const(np.array([0, 1, 2, 3, 0, 5, 2, 9]), d)])
        case(f"where_{d}", "where", jnp.where, [Const(np.array([1, 0] * 4), "bool"), x, y])
        case(f"clamp_{d}", "clamp", lambda x, a, b: jnp.minimum(jnp.maximum(x, a), b), [x, 1, 5])
        case(f"fma_{d}", "fma", lambda x, y, w: x * y + w, [x, y, x])
    t = Const([True, True, False, False])
    u = Const([True, False, True, False])
    for name in ("equal", "not_equal", "less", "logical_and", "logical_or", "maximum", "minimum"):
        case(f"{name}_bool", name, BINARY[name], [t, u])
    case("logical_not_bool", "logical_not", jnp.logical_not, [t])


def broadcast():
    open_file("broadcast")
    pairs = [((3,), ()), ((), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,)), ((2, 1, 3), (4, 1)), ((1,), (2, 2)),
             ((1, 1), (3,)), ((2, 3), (1, 3)),
             ((0, 3), (3,)), ((2, 1), (1, 0))]
    for s, t in pairs:
        text = "x".join(map(str, s)) or "scalar", "x".join(map(str, t)) or "scalar"
        for name in ("mul", "div", "maximum", "pow"):
            case(f"{name}_{text[0]}_{text[1]}", name, BINARY[name], [fresh(s, 0.3, 2), fresh(t, 0.3, 2)])
    case("fma_2x1_3_scalar", "fma", TERNARY["fma"], [fresh((2, 1)), fresh((3,)), fresh(())])
    case("where_2x1_3_scalar", "where", jnp.where, [Const(np.array([[True], [False]])), fresh((3,)), fresh(())])
    case("lerp_3_2x1_2x3", "lerp", TERNARY["lerp"], [fresh((3,)), fresh((2, 1)), fresh((2, 3), 0, 1)])
    case("clamp_2x3_3_scalar", "clamp", TERNARY["clamp"], [fresh((2, 3), -2, 2), fresh((3,), -1, -0.3),
        fresh((), 0.3, 1)])
