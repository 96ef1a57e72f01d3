#!/usr/bin/env python3
"""Makes the golden cases beside this file: what JAX (and PyTorch, where it has the convention we share) computes for every
operation of the library. tests/test_golden.c reads them.

    python3 -m venv .golden
    .golden/bin/pip install jax==0.10.2 jaxlib==0.10.2 numpy torch==2.13.0
    .golden/bin/python tests/golden/make_golden.py             # a few minutes; names of topics (see main) make only those

The inputs come from a counter, not from a library's generator, so a second run writes the same files (up to the last bits of
another version of the libraries).

The format, one file a topic, one case a block:

    case NAME                     op NAME                       the function cot_NAME
    attr KEY=NUMBER,NUMBER …      axes, shapes, dtypes by name; absent when there are none
    in    DTYPE SHAPE : values    an operand, differentiated    SHAPE 2,3; a single number is ()
    const DTYPE SHAPE : values    an operand that is not
    number VALUE | integer VALUE  a plain number as operand
    out   DTYPE SHAPE : values    the result
    ct    : values                a cotangent of the result
    grad K : values               of operand K (counted over all operands), vector-Jacobian product with ct
    tan K : values                a tangent of operand K
    jvp   : values                the derivative along the tangents
    hvp K : values                the derivative of grad K along the tangents
    third K : values              the derivative of hvp K along the tangents
    orders : values               f(x), f'(x), f''(x), … of a function of one number
    ~     : scales                how wide an error of one unit in every intermediate makes the line above; see spread()
    end

`exact` as an attribute asks for equality; ulps=U replaces the default number of units.

expr.txt has whole expressions instead (tests/test_expr_golden.c): `text EXPRESSION` with \\n for a new line, and operands by name.

Where the library deliberately differs from JAX (and what stands here instead):
  bool + bool          a logical or in both; left out of the promotion table all the same, as are -, * of bools.
  sum, prod of u8      JAX: uint64, which we do not have. Ours: i64. The case's dtype is i64.
  clamp on its ends    jnp.clip halves, lax.clamp gives nothing to anyone. Ours: strictly inside to x, else to the bound that won.
                       The values of x's gradient agree with lax.clamp and are kept.
  int / int, sqrt(int) JAX: f32 unless an i64 takes part. Ours, as NumPy's: f64. Computed here in f64.
  abs'(0)              JAX: 1. Ours and PyTorch's: 0. From torch.
  pow(x, 0.0) at 0     JAX: NaN as derivative for a float exponent, 0 for an integer. Ours and PyTorch's: 0 for both. The orders of
                       x^n for a float n are those of an integer n; both operands moving is from torch.
  leaky_relu'(0)       JAX: 1. Ours and PyTorch's: the slope. From torch.
  hard_sigmoid'(±3)    JAX: half. Ours and PyTorch's: 0. From torch.
  norm'(0)             JAX: NaN. Ours and PyTorch's: 0. From torch.
  gelu, silu, mish (-inf)  JAX: NaN (-inf · 0). Ours: the limit, -0. Left out.
  digamma(±0)          JAX: NaN. Ours, as SciPy's: ∓inf. Left out; at -0.5 JAX loses seven bits. test_special has the exact values.
  atanh, sinh, cosh    JAX loses six bits near 0.4 (atanh) and eight at 700 (sinh, cosh), where it takes exp(x - log 2): written with
                       log1p, and from torch.
  hypot', atan2' (0,0) JAX: NaN. Ours: 0 (a zero wins). Left out.
  where(x > 0, log x)  JAX: NaN at 0, because 0 · inf. Ours: 0 (a zero wins). Left out here, tested elsewhere.
  one_hot(-1)          JAX: a row of zeros. Ours: the last class. Left out.
  positions too large  JAX clips or fills. Ours: an error. Left out.
  cummax, cummin       at ties JAX shares. Ours: all to the first met. Left out.
  cumsum of i32        JAX: i32. Ours, as NumPy's and as sum: i64. From numpy.
"""
import os
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax
from jax.extend import core as jcore

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f64": jnp.float64, "f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16, "i64": jnp.int64, "i32": jnp.int32,
          "u8": jnp.uint8, "bool": jnp.bool_}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


# ---- inputs -----------------------------------------------------------------------------------------------------------

def uniform(seed, shape, lo=-1.0, hi=1.0):
    """Element i depends on (seed, i) only: splitmix64 of the counter."""
    n = int(np.prod(shape)) if len(shape) else 1
    m = (1 << 64) - 1
    out = []
    for i in range(n):
        z = ((seed << 32) + i + 1) * 0x9E3779B97F4A7C15 & m
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & m
        z = (z ^ z >> 27) * 0x94D049BB133111EB & m
        z ^= z >> 31
        out.append(lo + (hi - lo) * ((z >> 11) * 2.0 ** -53))
    return np.array(out).reshape(shape)


SEED = [0]


def fresh(shape, lo=-1.0, hi=1.0):
    """Short decimals: exact in the text, and the files stay small."""
    SEED[0] += 1
    return np.asarray(np.round(uniform(SEED[0], shape, lo, hi), 4))


# ---- how wide an error spreads ----------------------------------------------------------------------------------------

STEP = 2.0 ** -24
# Results of these are exact: chosen, moved or counted, not computed.
EXACT = {"select_n", "broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "pad", "concatenate", "rev", "gather", "copy",
         "convert_element_type", "neg", "abs", "sign", "max", "min", "reduce_max", "reduce_min", "clamp", "floor", "ceil", "round",
         "stop_gradient", "expand_dims", "iota", "dynamic_slice", "copy_p", "symbolic_zeros", "argmax", "argmin", "split",
         "complex", "real", "imag", "conj"}
# One step to JAX, but terms that may cancel inside: each term is moved.
SUMS = {"reduce_sum", "dot_general", "scatter-add", "scatter_add", "cumsum", "reduce_prod", "fft"}


def closed(j):
    return (j.jaxpr, j.consts) if hasattr(j, "consts") else (j, [])


def evaluate(jaxpr, consts, args, noise):
    """Runs a jaxpr, passing every computed float through noise()."""
    env = {}

    def read(v):
        return v.val if isinstance(v, jcore.Literal) else env[v]

    for v, a in list(zip(jaxpr.constvars, consts)) + list(zip(jaxpr.invars, args)):
        env[v] = a
    for eqn in jaxpr.eqns:
        xs = [read(v) for v in eqn.invars]
        name = eqn.primitive.name
        inner = next((eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params), None)
        if inner is not None and name not in ("while", "scan", "cond"):
            j, c = closed(inner)
            outs = evaluate(j, c, xs, noise)
        else:
            if name in SUMS:
                xs = [noise(x) for x in xs]
            outs = eqn.primitive.bind(*xs, **eqn.primitive.get_bind_params(eqn.params))
            outs = outs if eqn.primitive.multiple_results else [outs]
            if name not in EXACT:
                outs = [noise(o) for o in outs]
        for v, o in zip(eqn.outvars, outs):
            env[v] = o
    return [read(v) for v in jaxpr.outvars]


def spread(f, args, values, inputs, samples=12):
    """The scale of the rounding error of each element of each result of f, in units of the relative precision: every
    intermediate result is moved by a random relative amount of up to STEP, and the largest move of the result, over STEP, is the
    scale. `inputs`: move the operands as well, for functions that are one step here and several inside."""
    j = jax.make_jaxpr(f)(*args)
    rng = np.random.default_rng(1)

    def noise(a):
        if jnp.issubdtype(jnp.result_type(a), jnp.complexfloating):
            a = np.asarray(a)
            return lax.complex(noise(a.real), noise(a.imag))
        if not jnp.issubdtype(jnp.result_type(a), jnp.floating):
            return a
        a = np.asarray(a)
        return jnp.asarray(a * (1 + STEP * rng.choice([-1.0, 1.0], a.shape)))

    scales = [np.abs(np.asarray(v, dtype=np.float64)) for v in values]
    for _ in range(samples):
        moved = evaluate(j.jaxpr, j.consts, [noise(a) if inputs else a for a in args], noise)
        for k, (m, v) in enumerate(zip(moved, values)):
            with np.errstate(all="ignore"):
                d = np.abs(np.asarray(m, dtype=np.float64) - np.asarray(v, dtype=np.float64)) / STEP
            scales[k] = np.maximum(scales[k], np.where(np.isfinite(d), d, 0))
    return scales


# ---- writing ----------------------------------------------------------------------------------------------------------

OUT = [None]
COUNT = {}


def open_file(name):
    if OUT[0]:
        OUT[0].close()
    OUT[0] = open(os.path.join(HERE, name + ".txt"), "w")
    print(f"# Golden cases, made by make_golden.py with JAX {jax.__version__}. Do not edit.", file=OUT[0])
    COUNT[name] = 0


def number(v):
    v = float(v)
    if np.isnan(v):
        return "nan"
    if np.isinf(v):
        return "inf" if v > 0 else "-inf"
    if v == int(v) and abs(v) < 1e15 and not (v == 0 and np.signbit(v)):
        return str(int(v))
    return repr(v)


def values_of(a):
    return " ".join(number(v) for v in np.asarray(a, dtype=np.float64).reshape(-1))


def typed(a):
    a = jnp.asarray(a)
    return f"{NAMES[a.dtype]} {','.join(map(str, a.shape)) if a.ndim else '()'} : {values_of(a)}"


def scales_of(s):
    return "~ : " + " ".join("0" if v == 0 else f"{v:.1e}" if np.isfinite(v) else "1" for v in np.asarray(s).reshape(-1))


def attr_text(v):
    if isinstance(v, (list, tuple)):
        return ",".join(attr_text(x) for x in v) if len(v) else "()"
    return v if isinstance(v, str) else number(v)


class Const:
    """An operand that is not differentiated."""

    def __init__(self, a, dtype=None):
        self.a = jnp.asarray(a, dtype=DTYPES[dtype] if dtype else None)


def case(name, op, f, operands, attrs=None, order=2, exact=False, ulps=None, inputs=False, out=None, ct=None, tan=None, grads=None):
    """Writes one case. operands: float arrays (differentiated), Const, python numbers. f takes them all.
    order: 0 value only, 1 grad and jvp, 2 hvp, 3 third. out, grads: values from elsewhere instead of JAX's."""
    w = OUT[0]
    COUNT[os.path.basename(w.name)[:-4]] += 1
    attrs = dict(attrs or {})
    if exact:
        attrs["exact"] = 1
    if ulps:
        attrs["ulps"] = ulps
    print(f"case {name}\nop {op}", file=w)
    if attrs:
        print("attr " + " ".join(f"{k}={attr_text(v)}" for k, v in attrs.items()), file=w)
    diff, full = [], []
    for k, x in enumerate(operands):
        if isinstance(x, Const):
            print("const " + typed(x.a), file=w)
            full.append(x.a)
        elif isinstance(x, bool):
            raise ValueError("a bool is no number")
        elif isinstance(x, int):
            print(f"integer {x}", file=w)
            full.append(x)
        elif isinstance(x, float):
            print(f"number {number(x)}", file=w)
            full.append(x)
        else:
            a = jnp.asarray(x)
            print("in " + typed(a), file=w)
            diff.append(k)
            full.append(a)

    def g(*xs):
        ys = list(full)
        for k, x in zip(diff, xs):
            ys[k] = x
        return f(*ys)

    xs = [full[k] for k in diff]
    y = g(*xs) if out is None else jnp.asarray(out)
    floats = jnp.issubdtype(y.dtype, jnp.floating)
    order = order if floats and diff else 0
    tans = []
    half = y.dtype if y.dtype in (jnp.float32, jnp.bfloat16, jnp.float16) else None
    if order:
        ct = jnp.asarray(fresh(y.shape) if ct is None else ct, dtype=y.dtype).reshape(y.shape)
        tans = [jnp.asarray(fresh(x.shape), dtype=x.dtype) for x in xs] if tan is None else [jnp.asarray(t, x.dtype) for t, x in zip(tan, xs)]

    def first(*xs):
        return jax.vjp(g, *xs)[1](ct)

    def second(*xs):
        return jax.jvp(first, tuple(xs), tuple(tans))[1]

    def third(*xs):
        return jax.jvp(second, tuple(xs), tuple(tans))[1]

    def everything(*xs):
        r = [g(*xs)]
        if order >= 1:
            r += list(first(*xs)) + [jax.jvp(g, tuple(xs), tuple(tans))[1]]
        if order >= 2:
            r += list(second(*xs))
        if order >= 3:
            r += list(third(*xs))
        return r

    if grads is not None or out is not None:
        vals = [y] + ([jnp.asarray(v) for v in grads] if grads is not None else [])
    else:
        vals = everything(*xs)
    scales = None
    if floats and not exact and out is None and grads is None:
        if half is None:
            scales = spread(everything, xs, vals, inputs)
        elif diff:  # the spread of the same computation in f64
            keep = full[:], ct, tans
            up = lambda a: a.astype(jnp.float64) if hasattr(a, "dtype") and jnp.issubdtype(a.dtype, jnp.floating) else a
            full[:] = map(up, full)
            ct, tans = up(ct), [up(t) for t in tans]
            wide = [full[k] for k in diff]
            scales = spread(everything, wide, everything(*wide), inputs)
            full[:], ct, tans = keep
    lines = ["out " + typed(vals[0])]
    if order >= 1:
        n = len(diff)
        lines += [f"grad {k} : " + values_of(v) for k, v in zip(diff, vals[1:1 + n])]
        if grads is None:
            lines.append("jvp : " + values_of(vals[1 + n]))
        if order >= 2 and grads is None:
            lines += [f"hvp {k} : " + values_of(v) for k, v in zip(diff, vals[2 + n:2 + 2 * n])]
        if order >= 3 and grads is None:
            lines += [f"third {k} : " + values_of(v) for k, v in zip(diff, vals[2 + 2 * n:2 + 3 * n])]
    if order >= 1:
        print("ct : " + values_of(ct), file=w)
        if grads is None:
            for k, t in zip(diff, tans):
                print(f"tan {k} : " + values_of(t), file=w)
    for k, line in enumerate(lines):
        print(line, file=w)
        if scales is not None and k < len(scales):
            print(scales_of(scales[k]), file=w)
    print("end", file=w)


# ---- elementwise ------------------------------------------------------------------------------------------------------

UNARY = dict(
    neg=jnp.negative, abs=jnp.abs, sign=jnp.sign, sqrt=jnp.sqrt, rsqrt=lax.rsqrt, cbrt=jnp.cbrt, square=jnp.square,
    reciprocal=jnp.reciprocal, exp=jnp.exp, exp2=jnp.exp2, expm1=jnp.expm1, log=jnp.log, log2=jnp.log2, log10=jnp.log10,
    log1p=jnp.log1p, sin=jnp.sin, cos=jnp.cos, tan=jnp.tan, asin=jnp.arcsin, acos=jnp.arccos, atan=jnp.arctan, sinh=jnp.sinh,
    cosh=jnp.cosh, tanh=jnp.tanh, asinh=jnp.arcsinh, acosh=jnp.arccosh, atanh=lambda x: jnp.where(jnp.abs(x) == 1, jnp.copysign(jnp.inf, x), 0.5 * jnp.log1p(2 * x / (1 - x))), sigmoid=jax.nn.sigmoid,
    log_sigmoid=jax.nn.log_sigmoid, softplus=jax.nn.softplus, relu=jax.nn.relu, selu=jax.nn.selu,
    gelu=lambda x: jax.nn.gelu(x, approximate=False), gelu_tanh=lambda x: jax.nn.gelu(x, approximate=True), silu=jax.nn.silu,
    mish=jax.nn.mish, hard_sigmoid=jax.nn.hard_sigmoid, erf=jsp.erf, erfc=jsp.erfc, erfinv=jsp.erfinv, lgamma=jsp.gammaln,
    digamma=jsp.digamma, floor=jnp.floor, ceil=jnp.ceil, round=jnp.round, trunc=jnp.trunc, isnan=jnp.isnan, isinf=jnp.isinf,
    isfinite=jnp.isfinite, logical_not=jnp.logical_not)
BINARY = dict(
    add=jnp.add, sub=jnp.subtract, mul=jnp.multiply, div=jnp.true_divide, smul=jnp.multiply, sdiv=jnp.true_divide, pow=jnp.power,
    atan2=jnp.arctan2, hypot=jnp.hypot, maximum=jnp.maximum, minimum=jnp.minimum, fmod=jnp.fmod, remainder=jnp.remainder,
    logaddexp=jnp.logaddexp, leaky_relu=lambda x, y: jnp.where(x > 0, x, x * y), elu=lambda x, y: jnp.where(x > 0, x, y * jnp.expm1(x)),
    polygamma=jsp.polygamma, equal=jnp.equal, not_equal=jnp.not_equal, less=jnp.less, less_equal=jnp.less_equal,
    greater=jnp.greater, greater_equal=jnp.greater_equal, logical_and=jnp.logical_and, logical_or=jnp.logical_or)
TERNARY = dict(
    where=jnp.where, clamp=lambda x, lo, hi: jnp.minimum(jnp.maximum(x, lo), hi), fma=lambda x, y, w: x * y + w,
    lerp=lambda x, y, w: x + w * (y - x))
# One step to JAX, several inside: their error follows the condition of the function.
INSIDE = {"lgamma", "digamma", "polygamma", "exp2", "erfinv", "gelu", "mish"}


def domains():
    """name -> (lo, hi): the last two numbers of each rule."""
    text = open(os.path.join(HERE, "../../src/ops/rules.def")).read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for rule in re.split(r"\n(?=UNARY|BINARY|TERNARY)", text)[1:]:
        name = re.match(r"\w+\s*\((\w+)", rule).group(1)
        lo, hi = re.search(r"(-?[\d.]+),\s*(-?[\d.]+)\)\s*(?:\n|$)(?!\s+\S.*-?[\d.]+,\s*-?[\d.]+\)\s*$)", rule).groups()
        found[name] = (float(lo), float(hi))
    return found


def elementwise():
    open_file("elementwise")
    lim = domains()
    missing = set(lim) ^ (set(UNARY) | set(BINARY) | set(TERNARY))
    if missing:
        sys.exit(f"no case for {missing}")
    for name, f in UNARY.items():
        case(f"{name}_smooth", name, f, [fresh((5,), *lim[name])], order=3, inputs=name in INSIDE)
        case(f"{name}_scalar", name, f, [fresh((), *lim[name])], order=2, inputs=name in INSIDE)
    for name, f in BINARY.items():
        x, y = fresh((2, 3), *lim[name]), fresh((2, 3), *lim[name])
        if name == "polygamma":
            for n in range(4):
                case(f"polygamma_{n}", name, f, [Const(np.full((4,), n)), fresh((4,), *lim[name])], order=2, inputs=True)
            continue
        if name.startswith(("fmod", "remainder")):
            y = fresh((2, 3), 0.6, 1.5)
        case(f"{name}_smooth", name, f, [x, y], order=3)
        case(f"{name}_scalar", name, f, [fresh((), *lim[name]), fresh((), *lim[name])])
        case(f"{name}_number", name, f, [x, 1.25], order=2)
        case(f"number_{name}", name, f, [1.25, y], order=2)
    for name, f in TERNARY.items():
        xs = [fresh((2, 3), *lim[name]) for _ in range(3)]
        if name == "where":
            xs[0] = Const(xs[0] > 0)
        if name == "clamp":
            xs[1:] = [fresh((2, 3), -1, -0.3), fresh((2, 3), 0.3, 1)]
        case(f"{name}_smooth", name, f, xs, order=3)
    case("fmod_signs", "fmod", jnp.fmod, [np.array([5.5, -5.5, 5.5, -5.5]), np.array([2.0, 2, -2, -2])], order=1)
    case("remainder_signs", "remainder", jnp.remainder, [np.array([5.5, -5.5, 5.5, -5.5]), np.array([2.0, 2, -2, -2])], order=1)
    case("clamp_numbers", "clamp", lambda x, a, b: lax.clamp(a, x, b), [fresh((6,), -2, 2), -1.0, 1.0])
    case("where_numbers", "where", lambda c, a, b: jnp.where(c, a, b), [Const([True, False, True]), fresh((3,)), 2.0])


# Values only, at points where functions are decided by cases.
POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-10, -1e-10, 1e-300, 30.0, -30.0, 700.0, -700.0, 1e10, -1e10, 1e300, np.inf, -np.inf,
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
        # exp2(x) is exp(x log 2) to JAX, lgamma and erfinv one polynomial for all x: they lose up to six bits at the far points.
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


def integers():
    open_file("integers")
    a, b = np.array([7, -7, 7, -7, 0, 3, -128, 100]), np.array([2, 2, -2, -2, 5, 3, 1, 100])
    for d in ("i64", "i32", "u8"):
        x, y = Const(a if d != "u8" else np.abs(a), d), Const(b if d != "u8" else np.abs(b), d)
        for name in ("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "logical_not",
                     "sqrt", "exp", "tanh", "reciprocal"):
            case(f"{name}_{d}", name, from_integers(UNARY[name]) if name in ("sqrt", "exp", "tanh", "reciprocal") else UNARY[name], [x])
        for name in ("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "equal", "not_equal", "less", "less_equal",
                     "greater", "greater_equal", "logical_and", "logical_or", "atan2", "hypot"):
            case(f"{name}_{d}", name, from_integers(BINARY[name]) if name in ("div", "atan2", "hypot") else BINARY[name], [x, y])
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
    pairs = [((3,), ()), ((), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,)), ((2, 1, 3), (4, 1)), ((1,), (2, 2)), ((1, 1), (3,)), ((2, 3), (1, 3)),
             ((0, 3), (3,)), ((2, 1), (1, 0))]
    for s, t in pairs:
        text = "x".join(map(str, s)) or "scalar", "x".join(map(str, t)) or "scalar"
        for name in ("mul", "div", "maximum", "pow"):
            case(f"{name}_{text[0]}_{text[1]}", name, BINARY[name], [fresh(s, 0.3, 2), fresh(t, 0.3, 2)])
    case("fma_2x1_3_scalar", "fma", TERNARY["fma"], [fresh((2, 1)), fresh((3,)), fresh(())])
    case("where_2x1_3_scalar", "where", jnp.where, [Const(np.array([[True], [False]])), fresh((3,)), fresh(())])
    case("lerp_3_2x1_2x3", "lerp", TERNARY["lerp"], [fresh((3,)), fresh((2, 1)), fresh((2, 3), 0, 1)])
    case("clamp_2x3_3_scalar", "clamp", TERNARY["clamp"], [fresh((2, 3), -2, 2), fresh((3,), -1, -0.3), fresh((), 0.3, 1)])


# ---- pow --------------------------------------------------------------------------------------------------------------

def orders(f, x, n):
    out = []
    for _ in range(n):
        out.append(f(x))
        f = jax.grad(f)
    return out


def order_case(name, op, f, x, operands, n, attrs=None):
    """operands: x among python numbers; only x moves."""
    w = OUT[0]
    COUNT[os.path.basename(w.name)[:-4]] += 1
    print(f"case {name}\nop {op}", file=w)
    for v in operands:
        print("in f64 () : " + number(x) if v is None else f"integer {v}" if isinstance(v, int) else f"number {number(v)}", file=w)
    vals = orders(f, jnp.float64(x), n)
    print("orders : " + values_of(vals), file=w)
    print("~ : " + " ".join("%.1e" % (max(1, abs(v)) if np.isfinite(v) else 1) for v in map(float, vals)), file=w)
    print("end", file=w)


def powers():
    open_file("pow")
    for x in (0.0, -0.0, -2.0, 1.5):
        for n in (0, 1, 2, 3, 4):
            order_case(f"integer_{number(x)}_{n}", "pow", lambda v, n=n: jnp.power(v, n), x, [None, n], 5)
            order_case(f"number_{number(x)}_{n}", "pow", lambda v, n=n: jnp.power(v, n), x, [None, float(n)], 5)
    for n in (-1, -2, -3):
        order_case(f"integer_-2_{n}", "pow", lambda v, n=n: jnp.power(v, n), -2.0, [None, n], 4)
        order_case(f"integer_1.5_{n}", "pow", lambda v, n=n: jnp.power(v, n), 1.5, [None, n], 4)
    for y in (0.5, 1.5, 2.5, -0.5):
        order_case(f"fraction_2_{y}", "pow", lambda v, y=y: jnp.power(v, y), 2.0, [None, y], 4)
    order_case("half_at_0", "pow", lambda v: jnp.power(v, 0.5), 0.0, [None, 0.5], 2)
    order_case("base_2", "pow", lambda v: jnp.power(2.0, v), 1.5, [2.0, None], 4)
    order_case("base_0_exponent_2", "pow", lambda v: jnp.power(0.0, v), 2.0, [0.0, None], 3)
    order_case("base_0_exponent_0", "pow", lambda v: jnp.power(0.0, v), 0.0, [0.0, None], 2)
    # Both operands move: 0^0 = 1, 0^y with y > 0, and negative bases with whole exponents (no derivative by the exponent there).
    from_torch("zero_base", "pow", lambda x, y: torch.pow(x, y), [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    case("negative_base", "pow", lambda x, y: jnp.power(x, y), [np.array([-2.0, -1.5, -0.5, -3.0]), Const(np.array([2.0, 3.0, -1.0, 0.0]))])
    case("negative_base_fraction", "pow", jnp.power, [np.array([-2.0, -1.0]), Const(np.array([0.5, 1.5]))], order=0)


# ---- kinks ------------------------------------------------------------------------------------------------------------

def kinks():
    open_file("kinks")
    zero = np.array([0.0, -0.0, 1.0, -1.0])
    one = dict(ct=np.ones(4), exact=True, order=1)
    case("relu_at_0", "relu", jax.nn.relu, [zero], **one)
    case("sign_at_0", "sign", jnp.sign, [zero], **one)
    case("elu_at_0", "elu", lambda x, a: jnp.where(x > 0, x, a * jnp.expm1(x)), [np.array([0.0, -0.0, 1.0]), 0.5], order=1)
    case("selu_at_0", "selu", jax.nn.selu, [np.array([0.0, -0.0, 1.0])], order=1)
    a, b = np.array([1.0, 2.0, 0.0, -1.0]), np.array([1.0, 3.0, -0.0, -1.0])
    case("maximum_tie", "maximum", jnp.maximum, [a, b], **one)
    case("minimum_tie", "minimum", jnp.minimum, [a, b], **one)
    case("maximum_itself", "maximum_self", lambda x: jnp.maximum(x, x), [a], **one)
    case("maximum_number_tie", "maximum", jnp.maximum, [a, 1.0], **one)
    t = np.array([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
    for name, f in (("max", jnp.max), ("min", jnp.min)):
        case(f"{name}_ties_rows", name, lambda x, f=f: f(x, axis=1), [t], dict(axes=[1], keep=0), order=1)
        case(f"{name}_ties_all", name, lambda x, f=f: f(x), [t], dict(axes="all", keep=0), order=1)
        case(f"{name}_ties_columns", name, lambda x, f=f: f(x, axis=0, keepdims=True), [t], dict(axes=[0], keep=1), order=1)
    case("clamp_ends", "clamp", lambda x, lo, hi: lax.clamp(lo, x, hi), [np.array([-1.0, 1.0, 0.0, -2.0, 2.0]), -1.0, 1.0], order=1,
         exact=True, ct=np.ones(5))
    case("sqrt_at_0", "sqrt", jnp.sqrt, [np.array([0.0, 4.0])], exact=True, order=1, ct=np.ones(2), tan=[np.ones(2)])
    case("norm_inf_ties", "norm", lambda x: jnp.linalg.norm(x, jnp.inf), [np.array([1.0, -3.0, 3.0])], dict(p=np.inf, axes="all", keep=0), order=1)
    case("floor_whole", "floor", jnp.floor, [zero], **one)
    case("round_half", "round", jnp.round, [np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.5])], order=1, exact=True)
    case("argmax_ties", "argmax", lambda x: jnp.argmax(x, axis=1), [Const(t)], dict(axes=[1], keep=0))
    case("argmin_ties", "argmin", lambda x: jnp.argmin(x, axis=0), [Const(t)], dict(axes=[0], keep=0))
    case("argmax_nan", "argmax", lambda x: jnp.argmax(x), [Const([1.0, np.nan, 3.0, np.nan])], dict(axes="all", keep=0))
    case("argmin_nan", "argmin", lambda x: jnp.argmin(x), [Const([1.0, np.nan, -3.0, np.nan])], dict(axes="all", keep=0))
    case("max_nan", "max", lambda x: jnp.max(x), [Const([1.0, np.nan, 3.0])], dict(axes="all", keep=0))
    case("min_nan", "min", lambda x: jnp.min(x), [Const([1.0, np.nan, 3.0])], dict(axes="all", keep=0))
    case("prod_one_zero", "prod", lambda x: jnp.prod(x), [np.array([2.0, 0.0, 3.0])], dict(axes="all", keep=0))
    case("prod_two_zeros", "prod", lambda x: jnp.prod(x), [np.array([2.0, 0.0, 3.0, 0.0])], dict(axes="all", keep=0))
    case("logsumexp_empty_terms", "logsumexp", lambda x: jsp.logsumexp(x), [np.array([-np.inf, 1.0, 2.0])], dict(axes="all", keep=0), order=1)
    at_zero = [0.0, -0.0, 1.0, -1.0]
    from_torch("relu_torch", "relu", torch.relu, [at_zero])
    from_torch("abs_at_0", "abs", torch.abs, [at_zero])
    from_torch("leaky_relu_at_0", "leaky_relu", lambda x: torch.nn.functional.leaky_relu(x, 0.25), [at_zero], [0.25])
    from_torch("hard_sigmoid_ends", "hard_sigmoid", torch.nn.functional.hardsigmoid, [[-3.0, 3.0, -4.0, 4.0]])
    from_torch("norm_2_at_0", "norm", lambda x: torch.linalg.vector_norm(x, 2), [[0.0, 0.0]], attrs=dict(p=2, axes="all", keep=0))
    from_torch("norm_1_at_0", "norm", lambda x: torch.linalg.vector_norm(x, 1), [[0.0, -3.0, 3.0]], attrs=dict(p=1, axes="all", keep=0))
    from_torch("maximum_torch", "maximum", torch.maximum, [a, b])
    from_torch("minimum_torch", "minimum", torch.minimum, [a, b])
    from_torch("amax_torch", "max", lambda x: torch.amax(x, 1), [t], attrs=dict(axes=[1], keep=0))


def from_torch(name, op, f, xs, rest=(), attrs=None):
    vs = [torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=True) for x in xs]
    y = f(*vs)
    y.sum().backward()
    case(name, op, None, [np.asarray(x, dtype=np.float64) for x in xs] + list(rest), attrs, order=1, out=y.detach().numpy(),
         ct=np.ones(y.shape), grads=[v.grad.numpy() for v in vs])


# ---- dtypes -----------------------------------------------------------------------------------------------------------

def from_integers(f):
    """Integers become f64 first."""
    return lambda *xs: f(*(x if isinstance(x, (int, float)) or jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.float64) for x in xs))


def divided(x, y):
    """The quotient; two integers become f64, but an integer beside a float takes the float's dtype."""
    some = any(jnp.issubdtype(jnp.result_type(v), jnp.floating) for v in (x, y) if hasattr(v, "dtype"))
    return jnp.true_divide(x, y) if some else from_integers(jnp.true_divide)(x, y)


def promotion():
    open_file("promotion")
    for op, f in (("add", jnp.add), ("div", divided)):
        for a, ta in DTYPES.items():
            for b, tb in DTYPES.items():
                if op == "add" and a == b == "bool":
                    continue
                case(f"{op}_{a}_{b}", op, f, [Const(np.array([1]), a), Const(np.array([1]), b)])
            for v in (2, 0.5):
                if op == "add" or v == 2 or a != "bool":
                    case(f"{op}_{a}_{number(v)}", op, f, [Const(np.array([1]), a), v])
                    case(f"{op}_{number(v)}_{a}", op, f, [v, Const(np.array([1]), a)])
    for a in DTYPES:
        for name in ("sqrt", "exp"):
            case(f"{name}_{a}", name, from_integers(UNARY[name]), [Const(np.array([1]), a)])


def narrow():
    """f32, bf16, f16: values and first derivatives."""
    open_file("narrow")
    lim = domains()
    for d in ("f32", "bf16", "f16"):
        for name, f in list(UNARY.items()) + list(BINARY.items()):
            if name in ("polygamma", "smul", "sdiv") or (d != "f32" and name not in
                    ("add", "sub", "mul", "div", "exp", "log", "tanh", "sqrt", "relu", "sigmoid", "maximum", "gelu_tanh", "square")):
                continue
            n = 1 if name in UNARY else 2
            xs = [jnp.asarray(fresh((4,), *lim[name]), dtype=DTYPES[d]) for _ in range(n)]
            # JAX's lgamma, digamma and erfinv in f32 are good to 16 units or so of their condition; ours are rounded from f64.
            case(f"{name}_{d}", name, f, xs, order=1, inputs=name in INSIDE, ulps=16 if name in INSIDE else None)
        x = jnp.asarray(fresh((3, 5)), dtype=DTYPES[d])
        y = jnp.asarray(fresh((5, 2)), dtype=DTYPES[d])
        rows, columns = dict(axes=[1], keep=0), dict(axes=[0], keep=0)
        case(f"sum_{d}", "sum", lambda x: jnp.sum(x, axis=1), [x], rows)
        case(f"mean_{d}", "mean", lambda x: jnp.mean(x, axis=0), [x], columns)
        case(f"variance_{d}", "variance", lambda x: jnp.var(x, axis=0), [x], columns, order=1)
        case(f"logsumexp_{d}", "logsumexp", lambda x: jsp.logsumexp(x, axis=1), [x + 20], rows, order=1)
        case(f"norm_{d}", "norm", lambda x: jnp.linalg.norm(x, 2, axis=1), [x], dict(p=2, **rows), order=1)
        case(f"max_{d}", "max", lambda x: jnp.max(x, axis=1), [x], rows, order=1)
        case(f"softmax_{d}", "softmax", lambda x: jax.nn.softmax(x, axis=1), [x], dict(axis=1))
        case(f"log_softmax_{d}", "log_softmax", lambda x: jax.nn.log_softmax(x, axis=1), [x], dict(axis=1), order=1)
        case(f"matmul_{d}", "matmul", jnp.matmul, [x, y])
        case(f"mse_{d}", "mse", lambda x, y: jnp.mean((x - y) ** 2), [x, y[:3, :1] * jnp.ones((3, 5), x.dtype)], order=1)
        case(f"cross_entropy_{d}", "softmax_cross_entropy",
             lambda l, i: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(l, axis=-1), i[..., None], -1)), [x, Const([1, 0, 4], "i64")], order=1)
        case(f"take_{d}", "take", lambda x, i: jnp.take(x, i, axis=0), [x, Const([1, 1, 0], "i64")], dict(axis=0), order=1)


def casts():
    open_file("casts")
    v = np.array([0.0, 1.5, -1.5, 2.5, 300.7, -300.7, 1e10, -1e10, 1e30, -1e30, np.inf, -np.inf, np.nan, 65504.0, 65520.0, 1.00390625])
    for a in ("f64", "f32", "bf16", "f16"):
        for b in DTYPES:
            case(f"{a}_{b}", "cast", lambda x, b=b: x.astype(DTYPES[b]), [Const(v, a)], dict(dtype=b), exact=True)
    i = np.array([0, 1, -1, 127, 128, 255, 256, 1000, -1000, 70000, -70000])
    for a in ("i64", "i32", "u8", "bool"):
        for b in DTYPES:
            s = Const(jnp.asarray(i).astype(DTYPES[a]))
            case(f"{a}_{b}", "cast", lambda x, b=b: x.astype(DTYPES[b]), [s], dict(dtype=b), exact=True)
    case("f64_f32_gradient", "cast", lambda x: x.astype(jnp.float32), [np.array([0.1, 0.2])], dict(dtype="f32"), order=1, exact=True,
         ct=[1.0, 0.5], tan=[np.array([1.0, 0.25])])
    case("f32_f64_gradient", "cast", lambda x: x.astype(jnp.float64), [np.float32([0.5, 0.25])], dict(dtype="f64"), order=1, exact=True,
         ct=[1.0, 0.5], tan=[np.array([1.0, 0.25])])


# ---- reductions -------------------------------------------------------------------------------------------------------

def reductions():
    open_file("reductions")
    real = dict(
        sum=jnp.sum, mean=jnp.mean, prod=jnp.prod, max=jnp.max, min=jnp.min, variance=jnp.var, std=jnp.std, logsumexp=jsp.logsumexp)
    sets = [("all", None), ([0], (0,)), ([1], (1,)), ([-1], (-1,)), ([0, 2], (0, 2)), ([0, 1, 2], (0, 1, 2))]
    for name, f in real.items():
        for text, axes in sets:
            for keep in (0, 1):
                if keep and text not in ("all", [1], [0, 2]):
                    continue
                label = "all" if text == "all" else "_".join(map(str, text))
                case(f"{name}_{label}{'_keep' if keep else ''}", name, lambda x: f(x, axis=axes, keepdims=bool(keep)),
                     [fresh((2, 3, 2), 0.2, 2)], dict(axes=text, keep=keep), order=3 if text == [1] else 2)
        case(f"{name}_transposed", name, lambda x: f(x.T, axis=0), [fresh((3, 4), 0.2, 2)], dict(axes=[0], keep=0, via="transpose"))
        case(f"{name}_scalar", name, lambda x: f(x), [fresh((), 0.2, 2)], dict(axes="all", keep=0), order=0 if name == "std" else 1)
        for d in ("i32", "bool", "u8"):
            if name in ("variance", "std", "logsumexp") and d != "i32":
                continue

            def g(x, d=d):
                r = f(x, axis=1) if name not in ("mean", "variance", "std", "logsumexp") else f(x.astype(jnp.float64), axis=1)
                return r.astype(jnp.int64) if r.dtype == jnp.uint64 else r
            case(f"{name}_{d}", name, g, [Const(np.array([[1, 0, 3], [2, 2, 1]]), d)], dict(axes=[1], keep=0))
    for p in (1, 2, 3, 2.5, np.inf, -np.inf):
        for text, axes in (("all", None), ([1], 1)):
            f = (lambda x: jnp.linalg.norm(x.reshape(-1), p)) if axes is None else (lambda x: jnp.linalg.norm(x, p, axis=1))
            case(f"norm_{number(p)}_{'all' if axes is None else 1}", "norm", f, [fresh((2, 3))], dict(p=p, axes=text, keep=0))
    case("norm_2_keep", "norm", lambda x: jnp.linalg.norm(x, 2, axis=0, keepdims=True), [fresh((2, 3))], dict(p=2, axes=[0], keep=1), order=3)
    case("norm_0", "norm", lambda x: jnp.linalg.norm(x, 0), [Const([1.0, 0.0, -2.0])], dict(p=0, axes="all", keep=0))
    case("norm_2_large", "norm", lambda x: jnp.float64(5e200), [Const([3e200, 4e200])], dict(p=2, axes="all", keep=0))
    x = fresh((2, 3, 2))
    for name, f in (("argmax", jnp.argmax), ("argmin", jnp.argmin)):
        case(f"{name}_all", name, lambda x: f(x), [Const(x)], dict(axes="all", keep=0))
        case(f"{name}_all_keep", name, lambda x: f(x, keepdims=True), [Const(x)], dict(axes="all", keep=1))
        for a in (0, 1, -1):
            case(f"{name}_{a}", name, lambda x: f(x, axis=a), [Const(x)], dict(axes=[a], keep=0))
        case(f"{name}_1_keep", name, lambda x: f(x, axis=1, keepdims=True), [Const(x)], dict(axes=[1], keep=1))
        case(f"{name}_i32", name, lambda x: f(x, axis=1), [Const([[3, 1, 2], [5, 5, 9]], "i32")], dict(axes=[1], keep=0))
    for name, f in (("any", jnp.any), ("all", jnp.all)):
        for d in ("bool", "i32", "f64"):
            y = Const(np.array([[1, 0, 1], [1, 1, 1], [0, 0, 0]]), d)
            case(f"{name}_all_{d}", name, lambda x: f(x), [y], dict(axes="all", keep=0))
            case(f"{name}_0_{d}", name, lambda x: f(x, axis=0), [y], dict(axes=[0], keep=0))
            case(f"{name}_1_keep_{d}", name, lambda x: f(x, axis=1, keepdims=True), [y], dict(axes=[1], keep=1))
        case(f"{name}_nan", name, lambda x: f(x), [Const([np.nan])], dict(axes="all", keep=0))
        case(f"{name}_empty", name, lambda x: f(x), [Const(np.zeros((0,)))], dict(axes="all", keep=0))
    case("sum_empty", "sum", lambda x: jnp.sum(x, axis=0), [np.zeros((0, 2))], dict(axes=[0], keep=0), order=1)
    case("prod_empty", "prod", lambda x: jnp.prod(x, axis=0), [np.zeros((0, 2))], dict(axes=[0], keep=0), order=1)
    case("logsumexp_large", "logsumexp", jsp.logsumexp, [np.array([1000.0, 1001.0, -1000.0])], dict(axes="all", keep=0), order=1)
    case("logsumexp_all_minus_inf", "logsumexp", jsp.logsumexp, [Const([-np.inf, -np.inf])], dict(axes="all", keep=0))
    case("sum_of", "sum_of", lambda *xs: sum(xs[1:], xs[0]), [fresh(()) for _ in range(5)])
    case("dot_of", "dot_of", lambda *xs: sum(a * b for a, b in zip(xs[:4], xs[4:])), [fresh(()) for _ in range(8)])
    lse = lambda *xs: jsp.logsumexp(jnp.stack(xs))
    case("logsumexp_of", "logsumexp_of", lse, [fresh(()) for _ in range(5)])
    case("logsumexp_of_large", "logsumexp_of", lse, [np.array(v) for v in (1000.0, 1001.0, -1000.0)], order=1)
    case("logsumexp_of_all_minus_inf", "logsumexp_of", lse, [Const(-np.inf), Const(-np.inf)])


# ---- shape ------------------------------------------------------------------------------------------------------------

def at_axis(x, axis, s):
    return x[(slice(None),) * (axis % x.ndim) + (s,)]


def shapes():
    open_file("shape")
    x = fresh((2, 3, 4))
    c2 = dict(order=1, exact=True)
    for s in ((24,), (4, 6), (3, -1, 2), (1, 24)):
        case("reshape_" + "x".join(map(str, s)), "reshape", lambda x: jnp.reshape(x, s), [x], dict(shape=s), **c2)
    case("reshape_scalar", "reshape", lambda x: x.reshape(()), [fresh((1, 1))], dict(shape=[]), **c2)
    case("reshape_of_transpose", "reshape", lambda x: x.T.reshape((4, 6)), [x], dict(shape=[4, 6], via="transpose"), **c2)
    case("transpose_3", "transpose", lambda x: x.T, [x], **c2)
    case("transpose_1", "transpose", lambda x: x.T, [fresh((3,))], **c2)
    for o in ((1, 0, 2), (2, 0, 1), (0, -1, 1)):
        case("permute_" + "_".join(map(str, o)), "permute", lambda x: jnp.transpose(x, [a % 3 for a in o]), [x], dict(axes=o), **c2)
    for s, t in (((3,), (2, 3)), ((2, 1), (2, 3)), ((), (2, 2)), ((1, 3, 1), (2, 2, 3, 2))):
        # sums of up to four small decimals: rounded, so not exact
        case(f"broadcast_to_{len(s)}_{len(t)}", "broadcast_to", lambda x: jnp.broadcast_to(x, t), [fresh(s)], dict(shape=t), order=1)
    for a in (0, 1, -1, -2):
        case(f"expand_dims_{a}", "expand_dims", lambda x: jnp.expand_dims(x, a), [fresh((2, 3))], dict(axis=a), **c2)
    case("squeeze_all", "squeeze", lambda x: jnp.squeeze(x), [fresh((1, 3, 1))], dict(axes="all", keep=0), **c2)
    case("squeeze_0", "squeeze", lambda x: jnp.squeeze(x, 0), [fresh((1, 3, 1))], dict(axes=[0], keep=0), **c2)
    case("squeeze_-1", "squeeze", lambda x: jnp.squeeze(x, -1), [fresh((1, 3, 1))], dict(axes=[-1], keep=0), **c2)
    case("concat_0", "concat", lambda *xs: jnp.concatenate(xs, 0), [fresh((2, 3)), fresh((1, 3)), fresh((3, 3))], dict(axis=0), **c2)
    case("concat_-1", "concat", lambda *xs: jnp.concatenate(xs, -1), [fresh((2, 3)), fresh((2, 1))], dict(axis=-1), **c2)
    case("concat_dtypes", "concat", lambda *xs: jnp.concatenate(xs, 0), [Const([1, 2], "i32"), Const([0.5, 1], "f32")], dict(axis=0), **c2)
    case("stack_0", "stack", lambda *xs: jnp.stack(xs, 0), [fresh((2, 3)), fresh((2, 3))], dict(axis=0), **c2)
    case("stack_1", "stack", lambda *xs: jnp.stack(xs, 1), [fresh((2, 3)), fresh((2, 3)), fresh((2, 3))], dict(axis=1), **c2)
    case("stack_-1", "stack", lambda *xs: jnp.stack(xs, -1), [fresh((2, 3)), fresh((2, 3))], dict(axis=-1), **c2)
    case("stack_scalars", "stack", lambda *xs: jnp.stack(xs, 0), [fresh(()) for _ in range(4)], dict(axis=0), **c2)
    end = "end"
    for axis, a, b, s in ((0, 0, 1, 1), (1, 1, end, 1), (2, 0, end, 2), (-1, -1, -5, -1), (2, 3, 0, -2), (1, -2, end, 1), (0, 5, 9, 1), (2, 1, -1, 1),
                          (1, -9, 9, 2)):
        case(f"slice_{axis}_{a}_{b}_{s}", "slice", lambda x: at_axis(x, axis, slice(a, None if b == end else b, s)), [x],
             dict(axis=axis, start=a, stop=b, step=s), **c2)
    for axis, i in ((0, 1), (1, -1), (2, 0), (-1, 2)):
        case(f"index_{axis}_{i}", "index", lambda x: at_axis(x, axis, i), [x], dict(axis=axis, i=i), **c2)
    for v in (0.0, 1.5):
        case(f"pad_{number(v)}", "pad", lambda x: jnp.pad(x, ((1, 0), (0, 2)), constant_values=v), [fresh((2, 2))],
             dict(before=[1, 0], after=[0, 2], value=v), **c2)
    case("flip_all", "flip", lambda x: jnp.flip(x), [x], dict(axes="all", keep=0), **c2)
    case("flip_1", "flip", lambda x: jnp.flip(x, 1), [x], dict(axes=[1], keep=0), **c2)
    case("flip_0_-1", "flip", lambda x: jnp.flip(x, (0, -1)), [x], dict(axes=[0, -1], keep=0), **c2)


# ---- index ------------------------------------------------------------------------------------------------------------
    case("copy_of_transpose", "copy", lambda x: x.T, [x], dict(via="transpose"), **c2)

def indexing():
    open_file("index")
    x = fresh((3, 4))
    for axis, p in ((0, [2, 0, 2]), (1, [3, -1, 0, 1, 1]), (-1, [[0, 1], [2, 3]]), (0, 1)):
        q = Const(np.array(p), "i64")
        case(f"take_{axis}_{np.ndim(p)}d", "take", lambda x, i: jnp.take(x, i, axis=axis), [x, q], dict(axis=axis))
    case("take_i32_positions", "take", lambda x, i: jnp.take(x, i, axis=0), [x, Const([1, 1], "i32")], dict(axis=0))
    case("take_of_transpose", "take", lambda x, i: jnp.take(x.T, i, axis=0), [x, Const([3, 3, 1], "i64")], dict(axis=0, via="transpose"))
    case("take_along_1", "take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), [x, Const([[0, 3], [1, 1], [-1, 2]], "i64")], dict(axis=1))
    case("take_along_0", "take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 0), [x, Const([[0, 2, 1, 1]], "i64")], dict(axis=0))
    case("scatter_add_0", "scatter_add", lambda x, i, u: x.at[i].add(u), [x, Const([2, 0, 2], "i64"), fresh((3, 4))], dict(axis=0))
    case("scatter_add_1", "scatter_add", lambda x, i, u: x.at[:, i].add(u), [x, Const([1, -1], "i64"), fresh((3, 2))], dict(axis=1))
    case("scatter_add_2d", "scatter_add", lambda x, i, u: x.at[i].add(u), [fresh((4,)), Const([[0, 1], [1, 3]], "i64"), fresh((2, 2))], dict(axis=0))
    case("scatter_add_i32", "scatter_add", lambda x, i, u: x.at[i].add(u), [Const([1, 2, 3], "i32"), Const([0, 0, 2], "i64"), Const([5, 6, 7], "i32")], dict(axis=0))
    for d in ("f64", "f32", "i32", "bool"):
        case(f"one_hot_{d}", "one_hot", lambda i: jax.nn.one_hot(i, 4, dtype=DTYPES[d]), [Const([[0, 3], [2, 2]], "i64")], dict(n=4, dtype=d), exact=True)
    case("one_hot_scalar", "one_hot", lambda i: jax.nn.one_hot(i, 3, dtype=jnp.float64), [Const(1, "i32")], dict(n=3, dtype="f64"), exact=True)


# ---- cumulative, order, selection ------------------------------------------------------------------------------------------

def cumulating():
    open_file("cumulative")
    x = fresh((3, 4))
    back = lambda f: lambda x, axis: jnp.flip(f(jnp.flip(x, axis), axis), axis)
    cummax = lambda x, axis: lax.cummax(x, axis % x.ndim)
    cummin = lambda x, axis: lax.cummin(x, axis % x.ndim)
    for name, f in dict(cumsum=jnp.cumsum, cumprod=jnp.cumprod, cummax=cummax, cummin=cummin).items():
        for axis in (0, -1):
            for reverse in (0, 1):
                g = back(f) if reverse else f
                case(f"{name}_{axis}_{reverse}", name, lambda x: g(x, axis), [x], dict(axis=axis, reverse=reverse), order=3)
        case(f"{name}_transposed", name, lambda x: f(x.T, 0), [x], dict(axis=0, reverse=0, via="transpose"), order=1)
        case(f"{name}_f32", name, lambda x: f(x, 0), [fresh((4,)).astype(np.float32)], dict(axis=0, reverse=0), order=1)
        case(f"{name}_i64", name, lambda x: f(x, 0), [Const([3, -1, 4, 1, -5, 9], "i64")], dict(axis=0, reverse=0))
        case(f"{name}_empty", name, lambda x: f(x, 1), [Const(np.zeros((2, 0)))], dict(axis=1, reverse=0))
    # JAX's own cumprod is an associative scan of products: right at zeros
    case("cumprod_one_zero", "cumprod", lambda x: jnp.cumprod(x), [np.array([0.5, 0.0, 2.0, 3.0])], dict(axis=0, reverse=0), order=3)
    case("cumprod_zeros", "cumprod", lambda x: jnp.cumprod(x), [np.array([0.0, 1.5, 0.0, 0.0, 2.0])], dict(axis=0, reverse=0), order=3)
    # numpy: int32 and bool are counted in int64, as ours; JAX keeps int32
    case("cumsum_i32", "cumsum", lambda x: jnp.asarray(np.cumsum(np.asarray(x))), [Const([3, -1, 4], "i32")], dict(axis=0, reverse=0))
    case("cumsum_bool", "cumsum", lambda x: jnp.asarray(np.cumsum(np.asarray(x))), [Const([True, True, False, True])], dict(axis=0, reverse=0))
    # from numpy; at ties JAX shares and ours gives all to the first: tests/test_cumulative.c
    nan = np.array([1.0, np.nan, 3.0])
    for name, f in dict(cummax=np.maximum, cummin=np.minimum).items():
        case(f"{name}_nan", name, lambda x: jnp.asarray(f.accumulate(np.asarray(x))), [Const(nan)], dict(axis=0, reverse=0))


def ordering():
    open_file("order")
    x = fresh((3, 4))
    for axis in (0, -1):
        for down in (0, 1):
            case(f"sort_{axis}_{down}", "sort", lambda x: jnp.sort(x, axis=axis, descending=bool(down)), [x], dict(axis=axis, descending=down), order=2)
            case(f"argsort_{axis}_{down}", "argsort", lambda x: jnp.argsort(x, axis=axis, stable=True, descending=bool(down)), [Const(x)],
                 dict(axis=axis, descending=down))
    special = np.array([2.0, np.nan, -np.inf, 0.0, -0.0, np.inf, 2.0, -1.0, np.nan, -0.0])
    for down in (0, 1):
        case(f"sort_special_{down}", "sort", lambda x: jnp.sort(x, descending=bool(down)), [Const(special)], dict(axis=0, descending=down))
        case(f"argsort_special_{down}", "argsort", lambda x: jnp.argsort(x, stable=True, descending=bool(down)), [Const(special)], dict(axis=0, descending=down))
        for d in DTYPES:
            v = Const(np.array([3, 0, 1, 3, 2, 0, 1]), d)
            case(f"argsort_{d}_{down}", "argsort", lambda x: jnp.argsort(x, stable=True, descending=bool(down)), [v], dict(axis=0, descending=down))
            case(f"sort_{d}_{down}", "sort", lambda x: jnp.sort(x, descending=bool(down)), [v], dict(axis=0, descending=down))
    # ties: the first of equals comes first and has the first place's gradient, in JAX too
    case("sort_ties", "sort", lambda x: jnp.sort(x), [np.array([1.0, 0.5, 1.0, 0.5])], dict(axis=0, descending=0), order=1)
    for k, axis in ((1, 1), (3, -1), (0, 1), (4, 1)):
        case(f"topk_{k}", "topk", lambda x: lax.top_k(x, k)[0], [x], dict(k=k, axis=axis))
    case("topk_axis_0", "topk", lambda x: lax.top_k(x.T, 2)[0].T, [x], dict(k=2, axis=0))
    case("topk_long", "topk", lambda x: lax.top_k(x, 3)[0], [fresh((2, 60))], dict(k=3, axis=1), order=1)
    e = np.array([-1.0, 0.0, 0.0, 0.5, 2.0])
    v = np.array([[-2.0, -1.0, 0.0], [0.25, 2.0, np.nan], [3.0, -np.inf, -0.0]])
    for right in (0, 1):
        f = lambda a, v: jnp.searchsorted(a, v, side="right" if right else "left")
        case(f"searchsorted_{right}", "searchsorted", lambda a, v: f(a, v).astype(jnp.int64), [Const(e), Const(v)], dict(right=right))
        case(f"searchsorted_nan_{right}", "searchsorted", lambda a, v: jnp.asarray(np.searchsorted(np.asarray(a), np.asarray(v), "right" if right else "left")),
             [Const([0.0, 1.0, np.nan]), Const([np.nan, 1.0, 5.0])], dict(right=right))
        case(f"searchsorted_mixed_{right}", "searchsorted", lambda a, v: f(a, v).astype(jnp.int64), [Const([1, 3, 5], "i32"), Const([0.5, 3, 5.5])], dict(right=right))
        case(f"searchsorted_u8_{right}", "searchsorted", lambda a, v: f(a, v).astype(jnp.int64), [Const([1, 3, 200], "u8"), Const(3, "u8")], dict(right=right))


def arranging():
    open_file("arrange")
    x = fresh((3, 4))
    for shift, axis in ((1, 0), (-1, 1), (6, -1), (0, 0), (-9, 1)):
        case(f"roll_{shift}_{axis}", "roll", lambda x: jnp.roll(x, shift, axis), [x], dict(shift=shift, axis=axis))
    for reps in ([2], [2, 3], [2, 1, 2], [1, 1], [0, 2], []):
        case("tile_" + "x".join(map(str, reps)), "tile", lambda x: jnp.tile(x, reps), [fresh((2, 3))], dict(reps=reps))
    case("tile_scalar", "tile", lambda x: jnp.tile(x, (2, 2)), [fresh(())], dict(reps=[2, 2]))
    for n, axis in ((3, 0), (2, -1), (1, 0), (0, 1)):
        case(f"repeat_{n}_{axis}", "repeat", lambda x: jnp.repeat(x, n, axis), [x], dict(n=n, axis=axis))
    for k in (0, 1, -2):
        case(f"diag_vector_{k}", "diag", lambda x: jnp.diag(x, k), [fresh((3,))], dict(k=k))
        for s in ((3, 4), (4, 3), (2, 2)):
            m = fresh(s)
            label = f"{s[0]}x{s[1]}_{k}"
            case(f"diag_{label}", "diag", lambda x: jnp.diag(x, k), [m], dict(k=k))
            case(f"trace_{label}", "trace", lambda x: jnp.trace(x, k), [m], dict(k=k))
            case(f"tril_{label}", "tril", lambda x: jnp.tril(x, k), [m], dict(k=k))
            case(f"triu_{label}", "triu", lambda x: jnp.triu(x, k), [m], dict(k=k))
        b = fresh((2, 3, 4))
        case(f"diag_batched_{k}", "diag", lambda x: jnp.diagonal(x, k, -2, -1), [b], dict(k=k))
        case(f"trace_batched_{k}", "trace", lambda x: jnp.trace(x, k, -2, -1), [b], dict(k=k))
        case(f"tril_batched_{k}", "tril", lambda x: jnp.tril(x, k), [b], dict(k=k))
        case(f"trace_transposed_{k}", "trace", lambda x: jnp.trace(x.T, k), [x], dict(k=k, via="transpose"))
    case("triu_bool", "triu", lambda x: jnp.triu(x, 1), [Const(np.ones((2, 3), bool))], dict(k=1))
    case("diag_i32", "diag", lambda x: jnp.diag(x, 1), [Const([1, 2], "i32")], dict(k=1))
    for s, t in (((2, 2), (2, 3)), ((3,), (2,)), ((2,), (2, 2)), ((2, 1, 2), (2, 2)), ((), (2,)), ((0, 2), (2, 2))):
        case("kron_" + "x".join(map(str, s)) + "_" + "x".join(map(str, t)), "kron", jnp.kron, [fresh(s), fresh(t)])
    case("kron_mixed", "kron", jnp.kron, [Const([1, 2], "i32"), fresh((2,)).astype(np.float32)], order=1)


def selecting():
    open_file("select")
    x = fresh((3, 4))
    for label, i in (("rows", [[2], [-1], [0]]), ("elements", [[0, 3], [2, -2], [0, 3]]), ("one", [1, 2]), ("grid", [[[0, 0], [1, 1]], [[2, 2], [-3, -4]]])):
        i = np.array(i)
        case(f"gather_{label}", "gather", lambda x, j: x[tuple(jnp.moveaxis(j, -1, 0))], [x, Const(i, "i64")])
    case("gather_none", "gather", lambda x, j: jnp.broadcast_to(x, (2,) + x.shape), [x, Const(np.zeros((2, 0)), "i64")])
    case("gather_deep", "gather", lambda x, j: x[j[:, 0], j[:, 1]], [fresh((2, 3, 2)), Const([[1, 2], [0, -1], [1, 2]], "i32")])
    case("scatter_0", "scatter", lambda x, i, u: x.at[i].set(u), [x, Const([2, 0], "i64"), fresh((2, 4))], dict(axis=0))
    case("scatter_1", "scatter", lambda x, i, u: x.at[:, i].set(u), [x, Const([1, -1], "i64"), fresh((3, 2))], dict(axis=1))
    case("scatter_2d", "scatter", lambda x, i, u: x.at[i].set(u), [fresh((5,)), Const([[0, 1], [4, 3]], "i64"), fresh((2, 2))], dict(axis=0))
    case("scatter_number", "scatter", lambda x, i, u: x.at[:, i].set(u), [x, Const([1, 1], "i64"), 2.5], dict(axis=1))
    case("scatter_scalar", "scatter", lambda x, i, u: x.at[i].set(u), [x, Const([1], "i64"), fresh(())], dict(axis=0))
    # equal positions: the last wins, as when assigning one after the other; the losers leave no trace
    case("scatter_last_wins", "scatter", lambda x, i, u: x.at[jnp.array([1, 3])].set(u[jnp.array([2, 1])]),
         [fresh((4,)), Const([1, 3, 1], "i64"), fresh((3,))], dict(axis=0))
    case("scatter_i32", "scatter", lambda x, i, u: x.at[i].set(u), [Const([1, 2, 3], "i32"), Const([2], "i64"), Const([7], "i32")], dict(axis=0))
    m = np.array([True, False, True, True])
    case("compress_1", "compress", lambda x, m: x[:, np.array([0, 2, 3])], [x, Const(m)], dict(axis=1))
    case("compress_0", "compress", lambda x, m: x[np.array([1])], [x, Const([False, True, False])], dict(axis=0))
    case("compress_nothing", "compress", lambda x, m: x[:0], [x, Const([False, False, False])], dict(axis=0))
    for size in (0, 2, 3, 4):
        case(f"compress_to_{size}", "compress_to", lambda x, m: jnp.compress(m, x, 1, size=size, fill_value=1.5), [x, Const(m)],
             dict(axis=1, size=size, fill=1.5), order=1)
    w = np.array([[True, False, False, True], [False] * 4, [True, True, False, True]])
    at = np.flatnonzero(w)
    case("masked_select", "masked_select", lambda x, m: x.reshape(-1)[at], [x, Const(w)])
    case("masked_select_rows", "masked_select", lambda x, m: x[np.array([0, 2])], [x, Const([True, False, True])])
    case("masked_select_scalar", "masked_select", lambda x, m: x[None], [x, Const(True)])


# ---- matrices and networks --------------------------------------------------------------------------------------------

def matrices():
    open_file("matrices")
    for s, t in (((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)),
                 ((2, 1, 2, 3), (3, 3, 2)), ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((2, 0), (0, 3)), ((1, 1), (1, 1))):
        label = "x".join(map(str, s)) + "_" + "x".join(map(str, t))
        case(f"matmul_{label}", "matmul", jnp.matmul, [fresh(s), fresh(t)])
    sw = lambda a: jnp.swapaxes(a, -1, -2)
    for ta, tb in ((1, 0), (0, 1), (1, 1)):
        a, b = fresh((3, 2) if ta else (2, 3)), fresh((4, 3) if tb else (3, 4))
        case(f"matmul_transposed_{ta}{tb}", "matmul", lambda a, b: jnp.matmul(sw(a) if ta else a, sw(b) if tb else b), [a, b], dict(ta=ta, tb=tb))
        a, b = fresh((2, 3, 2) if ta else (2, 2, 3)), fresh((2, 2, 3) if tb else (2, 3, 2))
        case(f"matmul_batched_transposed_{ta}{tb}", "matmul", lambda a, b: jnp.matmul(sw(a) if ta else a, sw(b) if tb else b), [a, b], dict(ta=ta, tb=tb))
    case("matmul_i32", "matmul", jnp.matmul, [Const([[1, 2], [3, 4]], "i32"), Const([[5, 6], [7, 8]], "i32")])
    case("matmul_i32_f32", "matmul", jnp.matmul, [Const([[1, 2], [3, 4]], "i32"), Const([[0.5, 6], [7, 8]], "f32")])
    case("dot", "dot", jnp.dot, [fresh((5,)), fresh((5,))], order=3)
    case("outer", "outer", jnp.outer, [fresh((3,)), fresh((2,))], order=3)


def einsums():
    open_file("einsum")
    for s, *shapes in (("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ba,ca", (2, 3), (4, 3)), ("ij->ji", (2, 3)), ("ij->", (2, 3)),
                       ("ij->j", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->ji", (2, 2, 3)), ("iii->i", (2, 2, 2)), ("i,i", (4,), (4,)),
                       ("i,j", (3,), (2,)), ("i,i->i", (4,), (4,)), ("bhqd,bkhd->bhqk", (2, 2, 3, 2), (2, 4, 2, 2)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
                       ("...ij->...ji", (2, 2, 3)), ("...i,i...->...", (2, 3), (3, 2)), ("i...,i...->i...", (2, 1, 3), (2, 2, 1)),
                       ("ij,jk,kl->il", (2, 3), (3, 2), (2, 3)), ("i,ij,j->", (2,), (2, 3), (3,)), ("ab,bc,ca->abc", (2, 3), (3, 2), (2, 2)),
                       ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3)), ("a,b,c->cab", (2,), (3,), (2,)), (",ij,->j", (), (2, 3), ()), ("Ab,bA", (2, 3), (3, 2)),
                       ("zB,Bz->z", (2, 3), (3, 2)), ("ij,k->ijk", (2, 0), (3,)), ("ij,jk->ik", (2, 0), (0, 3)), ("ijk,ilm,njm,nlk,abc->", (2, 3, 2), (2, 2, 3), (2, 3, 3), (2, 2, 2), (1, 2, 1))):
        label = re.sub("[^A-Za-z]+", "_", s.replace("...", "_dots_"))
        case(f"einsum_{label}_{COUNT['einsum']}", "einsum", lambda *xs: jnp.einsum(s, *xs), [fresh(x) for x in shapes], dict(subscripts=s))
    case("einsum_f32", "einsum", lambda a, b: jnp.einsum("ij,kj->ik", a, b), [fresh((2, 3)).astype(np.float32), fresh((2, 3)).astype(np.float32)],
         dict(subscripts="ij,kj->ik"))
    case("einsum_i32", "einsum", lambda a, b: jnp.einsum("ij,jk->ik", a, b), [Const([[1, 2], [3, 4]], "i32"), Const([[5, 6], [7, 8]], "i32")],
         dict(subscripts="ij,jk->ik"))
    case("einsum_i32_sum", "einsum", lambda a: jnp.einsum("ij->i", a), [Const([[1, 2], [3, 4]], "i32")], dict(subscripts="ij->i"))
    case("einsum_of_transpose", "einsum", lambda a, b: jnp.einsum("ij,jk->ki", a.T, b), [fresh((3, 2)), fresh((3, 2))], dict(subscripts="ij,jk->ki", via="transpose"))
    for a, b, p, q in (((2, 3, 4), (4, 3, 2), [1, 2], [1, 0]), ((2, 3), (3, 2), [1], [0]), ((2, 3), (2, 3), [0, 1], [0, 1]), ((2,), (3,), [], []),
                       ((2, 3, 2), (2, 2, 3), [0, -1], [1, 0])):
        case(f"tensordot_{'_'.join(map(str, a + b))}", "tensordot", lambda x, y: jnp.tensordot(x, y, axes=(p, q)), [fresh(a), fresh(b)], dict(a=p, b=q))


def fourier():
    open_file("fourier")
    value = lambda x: lax.complex(x[..., 0], x[..., 1])
    pairs = lambda z: jnp.stack([z.real, z.imag], -1)
    length = lambda n: n or None
    for name, f in (("fft", jnp.fft.fft), ("ifft", jnp.fft.ifft)):
        for shape, n, axis in (((1, 2), 0, 0), ((2, 2), 0, -1), ((3, 2), 0, -1), ((8, 2), 0, -1), ((7, 2), 0, -1), ((15, 2), 0, -1), ((2, 11, 2), 0, -1),
                               ((5, 2, 2), 0, 0), ((6, 2, 2), 4, 0), ((2, 3, 2), 5, 1), ((2, 3, 2, 2), 0, 1), ((20, 2), 0, -1)):
            case(f"{name}_{'_'.join(map(str, shape))}_{n}_{axis}", name, lambda x: pairs(f(value(x), length(n), axis)), [fresh(shape)], dict(n=n, axis=axis))
        x = fresh((6, 2)).astype(np.float32)
        case(f"{name}_f32", name, lambda x: pairs(f(value(x))), [x], dict(n=0, axis=-1))
    for shape, n, axis in (((1,), 0, 0), ((2,), 0, -1), ((3,), 0, -1), ((8,), 0, -1), ((7,), 0, -1), ((14,), 0, -1), ((2, 9), 0, -1), ((6, 2), 4, 0),
                           ((2, 3), 5, 1), ((2, 3), 6, 1), ((2, 4, 2), 0, 1)):
        case(f"rfft_{'_'.join(map(str, shape))}_{n}_{axis}", "rfft", lambda x: pairs(jnp.fft.rfft(x, length(n), axis)), [fresh(shape)], dict(n=n, axis=axis))
    for shape, n, axis in (((2, 2), 0, -1), ((1, 2), 1, -1), ((5, 2), 0, -1), ((5, 2), 9, -1), ((2, 4, 2), 7, -1), ((4, 2, 2), 0, 0), ((4, 2), 4, -1),
                           ((3, 2), 8, 0), ((2, 8, 2), 0, 1)):
        case(f"irfft_{'_'.join(map(str, shape))}_{n}_{axis}", "irfft", lambda x: jnp.fft.irfft(value(x), length(n), axis), [fresh(shape)], dict(n=n, axis=axis))
    case("rfft_i32", "rfft", lambda x: pairs(jnp.fft.rfft(x.astype(jnp.float64))), [Const([1, -2, 3, 5], "i32")], dict(n=0, axis=0), ulps=16)  # no scale: its inputs have no error
    from jax.scipy.signal import fftconvolve
    for mode in ("full", "same", "valid"):
        for a, b, axis in (((5,), (3,), 0), ((2, 6), (2, 4), 1), ((4, 2), (3, 2), 0)):
            case(f"fft_convolve_{mode}_{'_'.join(map(str, a + b))}", "fft_convolve", lambda x, h: fftconvolve(x, h, mode=mode, axes=[axis]),
                 [fresh(a), fresh(b)], dict(mode=mode, axis=axis))
def linear_algebra():
    """Signs of vectors are ours: the first element of (to a thousandth) the largest magnitude is positive."""
    open_file("linear_algebra")
    la = jnp.linalg
    near = lambda shape, d=3.0: np.round(fresh(shape) + d * np.eye(shape[-2], shape[-1]), 4)
    apart = lambda shape: np.round(fresh(shape, -0.5, 0.5) + np.eye(shape[-2], shape[-1]) * (1.5 * np.arange(1, shape[-1] + 1)), 4)
    # jax.numpy takes one unit for a whole solution, ours and theirs are off by a few for each unknown
    wide = dict(ulps=64)
    # an element of a unit vector is as exact as the vector, not as itself: some here are a thousandth of the largest
    unit = dict(ulps=4096)
    for s, t in (((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 2, 2), (2, 2, 1)), ((2, 2), (3, 2, 2)), ((2, 1, 2, 2), (3, 2, 1)), ((1, 1), (1, 1)), ((0, 0), (0, 2)),
                 ((2, 2, 2), (2,))):
        label = "x".join(map(str, s)) + "_" + "x".join(map(str, t))
        case(f"solve_{label}", "solve", la.solve, [near(s), fresh(t)], **wide)
    case("solve_pivots", "solve", la.solve, [np.array([[0.0, 2, 1], [1, 0, 3], [4, 1, 0]]), fresh((3, 2))], **wide)
    for flags in range(16):
        upper, trans, unit, right = (bool(flags >> k & 1) for k in range(4))
        case(f"triangular_{flags}", "triangular_solve", lambda a, b: lax.linalg.triangular_solve(
            a, b, left_side=not right, lower=not upper, transpose_a=trans, unit_diagonal=unit), [near((3, 3)), fresh((2, 3) if right else (3, 2))],
            dict(flags=flags), **wide)
    for s in ((3, 3), (2, 2, 2), (1, 1)):
        label = "x".join(map(str, s))
        case(f"inv_{label}", "inv", la.inv, [near(s)], **wide)
        case(f"det_{label}", "det", la.det, [near(s)], order=1 if s == (1, 1) else 2, **wide)  # where jax knows that there is no second one
        case(f"logabsdet_{label}", "logabsdet", lambda a: la.slogdet(a)[1], [near(s, -3.0)], **wide)
        case(f"sign_{label}", "det_sign", lambda a: la.slogdet(a)[0], [near(s, -3.0)], exact=True)
        case(f"cholesky_{label}", "cholesky", la.cholesky, [near(s)], **wide)
        case(f"matrix_exp_{label}", "matrix_exp", jax.scipy.linalg.expm, [fresh(s)], **wide)
    case("matrix_exp_squared", "matrix_exp", jax.scipy.linalg.expm, [fresh((3, 3), -8, 8)], ulps=256)  # four squarings double an error each time
    for s in ((3, 3), (4, 2), (2, 3, 2)):
        label = "x".join(map(str, s))
        case(f"qr_q_{label}", "qr_q", lambda a: la.qr(a)[0], [near(s)], **wide)
        case(f"qr_r_{label}", "qr_r", lambda a: la.qr(a)[1], [near(s)], **wide)
    case("qr_r_wide", "qr_r", lambda a: (lambda q, r: jnp.concatenate([r, q.T @ a[:, 2:]], 1))(*la.qr(a[:, :2])), [near((2, 4))], **wide)
    for s in ((3, 3), (4, 2), (2, 3), (2, 3, 3)):
        label = "x".join(map(str, s))
        lower = lambda a: jax.scipy.linalg.lu(a)[1]
        upper = lambda a: jax.scipy.linalg.lu(a)[2]
        case(f"lu_l_{label}", "lu_l", jax.vmap(lower) if len(s) > 2 else lower, [near(s, 0)], **wide)
        case(f"lu_u_{label}", "lu_u", jax.vmap(upper) if len(s) > 2 else upper, [near(s, 0)], **wide)

    def sign(u):
        big = jnp.abs(u) >= 0.999 * jnp.max(jnp.abs(u), -2, keepdims=True)
        first = jnp.take_along_axis(u, jnp.argmax(big, -2, keepdims=True), -2)
        return lax.stop_gradient(jnp.where(first < 0, -1.0, 1.0))

    def vectors(a):
        v = la.eigh(a)[1]
        return v * sign(v)

    def left(a):
        u = la.svd(a, full_matrices=False)[0]
        return u * sign(u)

    def right(a):
        u, _, vt = la.svd(a, full_matrices=False)
        return vt * jnp.swapaxes(sign(u), -1, -2)
    for s in ((3, 3), (2, 2, 2), (1, 1)):
        label = "x".join(map(str, s))
        case(f"eigvalsh_{label}", "eigvalsh", lambda a: la.eigh(a)[0], [apart(s)], **wide)
        case(f"eigh_v_{label}", "eigh_v", vectors, [apart(s)], **unit)
    for s in ((3, 3), (3, 2), (2, 3), (2, 2, 2)):
        label = "x".join(map(str, s))
        case(f"svdvals_{label}", "svdvals", lambda a: la.svd(a, full_matrices=False)[1], [apart(s)], **wide)
        case(f"svd_u_{label}", "svd_u", left, [apart(s)], **unit)
        case(f"svd_vt_{label}", "svd_vt", right, [apart(s)], **unit)

    def shortest(a, b):
        return la.solve(a.T @ a, a.T @ b) if a.shape[0] >= a.shape[1] else a.T @ la.solve(a @ a.T, b)
    for s, t in (((4, 2), (4, 2)), ((3, 2), (3,)), ((2, 3), (2, 2))):
        case("lstsq_" + "x".join(map(str, s + t)), "lstsq", shortest, [near(s), fresh(t)], ulps=256)  # the normal equations square the condition
    case("solve_f32", "solve", la.solve, [Const([[4, 1], [2, 3]], "f32"), Const([[1, 2], [3, 5]], "f32")], **wide)


def networks():
    open_file("networks")
    x = fresh((2, 3, 4), -3, 3)
    for axis in (0, 1, -1):
        case(f"softmax_{axis}", "softmax", lambda x: jax.nn.softmax(x, axis=axis), [x], dict(axis=axis), order=3 if axis == 1 else 2)
        case(f"log_softmax_{axis}", "log_softmax", lambda x: jax.nn.log_softmax(x, axis=axis), [x], dict(axis=axis), order=3 if axis == 1 else 2)
    case("softmax_of_transpose", "softmax", lambda x: jax.nn.softmax(x.T, axis=0), [fresh((2, 3))], dict(axis=0, via="transpose"))
    big = np.array([[1000.0, 1001.0, 990.0], [-1000.0, 0.0, 1.0]])
    case("softmax_large", "softmax", lambda x: jax.nn.softmax(x, axis=1), [big], dict(axis=1), order=1)
    case("log_softmax_large", "log_softmax", lambda x: jax.nn.log_softmax(x, axis=1), [big], dict(axis=1), order=1)
    case("softmax_minus_inf", "softmax", lambda x: jax.nn.softmax(x, axis=0), [np.array([-np.inf, 0.5, 1.0])], dict(axis=0), order=1)

    def labelled(l, i):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(l, axis=-1), i[..., None], -1))

    def weighted(l, q):
        return -jnp.mean(jnp.sum(q * jax.nn.log_softmax(l, axis=-1), -1))
    i = Const([1, 0, 3], "i64")
    p = fresh((3, 4), 0.1, 1)
    q = fresh((3, 4), 0.1, 1)
    q = q / q.sum(-1, keepdims=True)
    case("softmax_cross_entropy_labels", "softmax_cross_entropy", labelled, [fresh((3, 4), -3, 3), i], order=3)
    case("softmax_cross_entropy_labels_i32_3d", "softmax_cross_entropy", labelled, [fresh((2, 2, 3)), Const([[0, 1], [2, 2]], "i32")])
    case("softmax_cross_entropy_one_row", "softmax_cross_entropy", labelled, [fresh((4,)), Const(2, "i64")])
    case("softmax_cross_entropy_probabilities", "softmax_cross_entropy", weighted, [fresh((3, 4), -3, 3), Const(q)])
    case("softmax_cross_entropy_both", "softmax_cross_entropy", weighted, [fresh((3, 4), -3, 3), q])
    case("softmax_cross_entropy_large", "softmax_cross_entropy", labelled, [np.array([[1000.0, 0.0], [0.0, 1000.0]]), Const([1, 1], "i64")], order=1)
    case("cross_entropy_labels", "cross_entropy", lambda p, i: -jnp.mean(jnp.log(jnp.take_along_axis(p, i[..., None], -1))), [p, i], order=3)
    case("cross_entropy_probabilities", "cross_entropy", lambda p, q: -jnp.mean(jnp.sum(q * jnp.log(p), -1)), [p, Const(q)])
    case("cross_entropy_both", "cross_entropy", lambda p, q: -jnp.mean(jnp.sum(q * jnp.log(p), -1)), [p, q])
    case("mse", "mse", lambda x, y: jnp.mean((x - y) ** 2), [fresh((2, 3)), fresh((2, 3))], order=3)
    case("mse_number", "mse", lambda x, y: jnp.mean((x - y) ** 2), [fresh((2, 3)), 0.5])
    case("mse_scalar", "mse", lambda x, y: jnp.mean((x - y) ** 2), [fresh((2, 3)), fresh(())])


def attention():
    """jax.nn.dot_product_attention takes (B, T, N, H); ours (B, N, T, H): written out, and compared with torch's own below."""
    open_file("attention")
    SEED[0] = 700000

    def plain(q, k, v, mask=None, bias=None, causal=False, scale=None):
        s = jnp.matmul(q, jnp.swapaxes(k, -1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
        s = s if bias is None else s + bias
        keep = jnp.tril(jnp.ones(s.shape[-2:], bool)) if causal else jnp.ones(s.shape[-2:], bool)
        keep = keep if mask is None else keep & mask
        s = jnp.where(keep, s, -jnp.inf)
        m = lax.stop_gradient(jnp.max(s, axis=-1, keepdims=True))
        e = jnp.exp(s - m)
        return jnp.matmul(e / jnp.sum(e, axis=-1, keepdims=True), v)

    q, k, v = fresh((2, 3, 4), -2, 2), fresh((2, 5, 4), -2, 2), fresh((2, 5, 3), -2, 2)
    mask = np.array([[1, 0, 1, 1, 1], [0, 1, 0, 0, 1], [1, 1, 0, 1, 0]], bool)
    bias = fresh((3, 5), -2, 2)

    def both(name, f, xs, attrs=None, order=2, **how):
        """Values and gradients from torch's own function, then every derivative from the formula."""
        case(name, "attention", f, xs, attrs, order=order)
        ts = [torch.tensor(np.asarray(x), requires_grad=True) for x in xs[:3]]
        y = torch.nn.functional.scaled_dot_product_attention(*ts, **how)
        ct = fresh(tuple(y.shape))
        y.backward(torch.tensor(ct))
        # No spread is measured for torch's numbers: sums of terms near 1 that cancel down to 1e-3 lose ten bits in either library.
        case(name + "_torch", "attention", None, [np.asarray(x) for x in xs[:3]] + [x if isinstance(x, Const) else Const(x) for x in xs[3:]], attrs, order=1,
             ulps=8 << 10, out=y.detach().numpy(), ct=ct, grads=[t.grad.numpy() for t in ts])

    both("attention_plain", plain, [q, k, v], order=3)
    both("attention_causal_wide", lambda q, k, v: plain(q, k, v, causal=True), [q, k, v], dict(causal=1), is_causal=True)
    both("attention_causal_tall", lambda q, k, v: plain(q, k, v, causal=True), [fresh((1, 6, 4)), fresh((1, 4, 4)), fresh((1, 4, 2))], dict(causal=1), is_causal=True)
    both("attention_scaled", lambda q, k, v: plain(q, k, v, scale=0.3), [q, k, v], dict(scale=0.3), scale=0.3)
    both("attention_mask", lambda q, k, v, m: plain(q, k, v, mask=m), [q, k, v, Const(mask, "bool")], dict(mask=3), attn_mask=torch.tensor(mask))
    both("attention_bias", lambda q, k, v, b: plain(q, k, v, bias=b), [q, k, v, bias], dict(bias=3), attn_mask=torch.tensor(bias))
    case("attention_all", "attention", lambda q, k, v, m, b: plain(q, k, v, m, b, True), [q, k, v, Const(mask | np.eye(3, 5, dtype=bool), "bool"), bias],
         dict(mask=3, bias=4, causal=1))
    case("attention_heads_broadcast", "attention", plain, [fresh((2, 2, 3, 2)), fresh((1, 3, 2)), fresh((2, 1, 3, 2))])
    case("attention_f32", "attention", plain, [x.astype(np.float32) for x in (q, k, v)])


def creation():
    open_file("creation")
    for d, t in DTYPES.items():
        case(f"zeros_{d}", "zeros", lambda: jnp.zeros((2, 3), t), [], dict(dtype=d, shape=[2, 3]), exact=True)
        case(f"ones_{d}", "ones", lambda: jnp.ones((2,), t), [], dict(dtype=d, shape=[2]), exact=True)
        case(f"full_{d}", "full", lambda: jnp.full((2, 1), 1, t), [], dict(dtype=d, shape=[2, 1], value=1), exact=True)
        case(f"eye_{d}", "eye", lambda: jnp.eye(2, 3, dtype=t), [], dict(dtype=d, rows=2, columns=3), exact=True)
    case("full_scalar", "full", lambda: jnp.full((), 2.5), [], dict(dtype="f64", shape=[], value=2.5), exact=True)
    case("full_bf16_rounds", "full", lambda: jnp.full((1,), 0.1, jnp.bfloat16), [], dict(dtype="bf16", shape=[1], value=0.1), exact=True)
    case("eye_tall", "eye", lambda: jnp.eye(3, 2), [], dict(dtype="f64", rows=3, columns=2), exact=True)
    for d, a, b, s in (("f64", 0, 1, 0.25), ("f64", 1, 0, -0.3), ("f32", 0, 5, 1), ("i64", 0, 7, 2), ("i32", 5, -5, -3), ("u8", 0, 4, 1), ("f64", 1, 1, 1)):
        case(f"arange_{d}_{number(a)}_{number(b)}_{number(s)}", "arange", lambda: jnp.arange(a, b, s, dtype=DTYPES[d]), [],
             dict(dtype=d, start=a, stop=b, step=s))
    for d, a, b, n in (("f64", 0, 1, 5), ("f64", -1, 2, 7), ("f32", 0, 3, 4), ("f64", 2, 5, 1), ("f64", 0, 1, 0)):
        case(f"linspace_{d}_{number(a)}_{number(b)}_{n}", "linspace", lambda: jnp.linspace(a, b, n, dtype=DTYPES[d]), [],
             dict(dtype=d, start=a, stop=b, n=n))


# ---- normalisation, losses, random numbers --------------------------------------------------------------------------------------------

F = torch.nn.functional


def tensor(a):
    return torch.tensor(np.asarray(a), dtype=torch.float64)


def agree(mine, theirs):
    """The formula in JAX, which gives derivatives and scales, is PyTorch's function."""
    np.testing.assert_allclose(np.asarray(mine), theirs.numpy(), rtol=1e-12, atol=1e-13)


def layer(x, w=1.0, b=0.0, axis=-1, eps=1e-5):
    axes = tuple(range(axis % x.ndim, x.ndim))
    d = x - x.mean(axes, keepdims=True)
    return d * lax.rsqrt((d * d).mean(axes, keepdims=True) + eps) * w + b


def rms(x, w=1.0, axis=-1, eps=1e-5):
    return x * lax.rsqrt((x * x).mean(tuple(range(axis % x.ndim, x.ndim)), keepdims=True) + eps) * w


def normalisation():
    open_file("normalisation")
    x, w, b = fresh((3, 5), -3, 3), fresh((5,), 0.5, 2), fresh((5,))
    at = dict(axis=-1, eps=1e-5)
    agree(layer(x, w, b), F.layer_norm(tensor(x), (5,), tensor(w), tensor(b), 1e-5))
    agree(rms(x, w), F.rms_norm(tensor(x), (5,), tensor(w), 1e-5))
    case("layer_norm", "layer_norm", layer, [x, w, b], at, order=3)
    case("layer_norm_plain", "layer_norm", layer, [x], at, order=3)
    case("layer_norm_weight", "layer_norm", layer, [x, Const(w)], at)
    case("layer_norm_far_from_0", "layer_norm", layer, [x + 1000, w, b], at, order=1)
    case("layer_norm_eps", "layer_norm", lambda x: layer(x, eps=0.5), [fresh((2, 3))], dict(axis=1, eps=0.5))
    case("layer_norm_vector", "layer_norm", layer, [fresh((40,))], at)
    case("layer_norm_one", "layer_norm", layer, [fresh((3, 1))], at, order=1)
    case("layer_norm_of_transpose", "layer_norm", lambda x, w: layer(x.T, w), [fresh((4, 3)), fresh((4,))], dict(axis=-1, eps=1e-5, via="transpose"))
    deep, many = fresh((2, 2, 3), -2, 2), fresh((2, 3), 0.5, 2)
    agree(layer(deep, many, axis=1), F.layer_norm(tensor(deep), (2, 3), tensor(many), None, 1e-5))
    case("layer_norm_axes", "layer_norm", lambda x, w: layer(x, w, axis=1), [deep, many], dict(axis=1, eps=1e-5))
    case("layer_norm_f32", "layer_norm", layer, [x.astype(np.float32), w.astype(np.float32), b.astype(np.float32)], at, order=1)
    case("rms_norm", "rms_norm", rms, [x, w], at, order=3)
    case("rms_norm_plain", "rms_norm", rms, [x], at, order=3)
    case("rms_norm_axes", "rms_norm", lambda x: rms(x, axis=0), [deep], dict(axis=0, eps=1e-5))

    def group(x, w=None, b=None, groups=2):
        y = layer(x.reshape(x.shape[0], groups, -1)).reshape(x.shape)
        along = (1, -1) + (1,) * (x.ndim - 2)
        return y if w is None else y * w.reshape(along) + b.reshape(along)
    x, w, b = fresh((2, 4, 3), -2, 2), fresh((4,), 0.5, 2), fresh((4,))
    agree(group(x, w, b), F.group_norm(tensor(x), 2, tensor(w), tensor(b), 1e-5))
    case("group_norm", "group_norm", group, [x, w, b], dict(groups=2, eps=1e-5))
    case("group_norm_plain", "group_norm", group, [x], dict(groups=2, eps=1e-5))
    case("group_norm_each", "group_norm", lambda x: group(x, groups=4), [x], dict(groups=4, eps=1e-5), order=1)

    def batch(x, w=None, b=None, axes=(0, 2)):
        m = x.mean(axes, keepdims=True)
        return given(x, m, ((x - m) ** 2).mean(axes, keepdims=True), w, b)

    def given(x, m, v, w=None, b=None):
        along = (1, -1) + (1,) * (x.ndim - 2)
        y = (x - m.reshape(along)) * lax.rsqrt(v.reshape(along) + 1e-5)
        return y if w is None else y * w.reshape(along) + b.reshape(along)
    x, w, b, m, v = fresh((3, 2, 2), -2, 2), fresh((2,), 0.5, 2), fresh((2,)), fresh((2,)), fresh((2,), 0.5, 2)
    agree(batch(x, w, b), F.batch_norm(tensor(x), None, None, tensor(w), tensor(b), True, 0.1, 1e-5))
    agree(given(x, m, v, w, b), F.batch_norm(tensor(x), tensor(m), tensor(v), tensor(w), tensor(b), False, 0.1, 1e-5))
    case("batch_norm", "batch_norm", batch, [x, w, b], dict(axes=[0, 2], eps=1e-5), order=3)
    case("batch_norm_plain", "batch_norm", lambda x: batch(x, axes=(0,)), [fresh((4, 3))], dict(axes=[0], eps=1e-5))
    case("batch_norm_inference", "batch_norm_inference", given, [x, m, v, w, b], dict(axes=[0, 2], eps=1e-5))
    case("batch_norm_inference_plain", "batch_norm_inference", given, [x, Const(m), Const(v)], dict(axes=[0, 2], eps=1e-5))


def losses():
    open_file("losses")

    def bce(x, q):
        return jnp.mean(q * jax.nn.softplus(-x) + (1 - q) * jax.nn.softplus(x))
    x, q = fresh((2, 3), -4, 4), fresh((2, 3), 0, 1)
    agree(bce(x, q), F.binary_cross_entropy_with_logits(tensor(x), tensor(q)))
    case("bce", "bce_with_logits", bce, [x, q], order=3)
    case("bce_far", "bce_with_logits", bce, [np.array([40.0, -40.0, 700.0, -800.0]), Const([1.0, 0.0, 1.0, 0.0])], order=1)
    case("bce_wrong", "bce_with_logits", bce, [np.array([40.0, -40.0, 700.0, -800.0]), Const([0.0, 1.0, 0.0, 1.0])], order=1)
    case("bce_number", "bce_with_logits", bce, [x, 1.0])
    case("bce_f32", "bce_with_logits", bce, [x.astype(np.float32), Const(q, "f32")], order=1)

    def labelled(l, i):
        return -jnp.mean(jnp.take_along_axis(l, i[..., None], -1))
    x, i = fresh((3, 4), -3, 0), Const([1, 0, 3], "i64")
    agree(labelled(x, i.a), F.nll_loss(tensor(x), torch.tensor([1, 0, 3])))
    case("nll_labels", "nll", labelled, [x, i])
    case("nll_probabilities", "nll", lambda l, q: -jnp.mean(jnp.sum(q * l, -1)), [x, fresh((3, 4), 0, 1)])
    case("nll_one_row", "nll", labelled, [fresh((4,)), Const(2, "i32")])

    def huber(x, y, d=1.0):
        a = jnp.abs(x - y)
        return jnp.mean(jnp.where(a <= d, 0.5 * a * a, d * (a - 0.5 * d)))
    x, y = fresh((3, 4), -3, 3), fresh((3, 4), -3, 3)
    agree(huber(x, y), F.huber_loss(tensor(x), tensor(y)))
    case("huber", "huber", huber, [x, y], dict(delta=1), order=3)
    case("huber_wide", "huber", lambda x, y: huber(x, y, 2.5), [x, 0.5], dict(delta=2.5))
    from_torch("huber_on_the_edge", "huber", lambda x: F.huber_loss(x, torch.zeros(4, dtype=torch.float64), delta=1.5),
               [[1.5, -1.5, 2.0, 0.0]], [0.0], dict(delta=1.5))

    def kl(l, q):
        return jnp.mean(jnp.sum(q * (jnp.log(q) - l), -1))
    x, q = fresh((3, 4), -3, 0), fresh((3, 4), 0.1, 1)
    agree(kl(x, q), F.kl_div(tensor(x), tensor(q), reduction="batchmean"))
    case("kl_div", "kl_div", kl, [x, q], order=3)
    x, q = tensor(x).requires_grad_(), tensor([[0, 1, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    y = F.kl_div(x, q, reduction="batchmean")
    y.backward()
    case("kl_div_zeros", "kl_div", None, [x.detach().numpy(), Const(q.numpy())], order=1, out=y.detach().numpy(), ct=1.0, grads=[x.grad.numpy()])

    def cosine(x, y, axis=-1):
        n = lambda v: v / jnp.maximum(jnp.sqrt(jnp.sum(v * v, axis, keepdims=True)), 1e-8)
        return jnp.sum(n(x) * n(y), axis)
    x, y = fresh((3, 4)), fresh((3, 4))
    agree(cosine(x, y), F.cosine_similarity(tensor(x), tensor(y), -1, 1e-8))
    case("cosine", "cosine_similarity", cosine, [x, y], dict(axis=-1, eps=1e-8), order=3)
    case("cosine_columns", "cosine_similarity", lambda x, y: cosine(x, y, 0), [x, Const(y)], dict(axis=0, eps=1e-8))
    from_torch("cosine_of_zero", "cosine_similarity", lambda x, y: F.cosine_similarity(x, y, 1, 0.5), [[[0.0, 0.0], [3.0, 4.0]], [[0.0, 2.0], [0.0, 0.0]]],
               attrs=dict(axis=1, eps=0.5))

    table = fresh((4, 3))
    i = Const([[1, 0], [3, 3]], "i64")
    case("embedding", "embedding", lambda t, i: t[i], [table, i], dict(padding="none"))
    t = tensor(table).requires_grad_()
    y, ct = F.embedding(torch.tensor([[1, 0], [3, 3]]), t, padding_idx=3), fresh((2, 2, 3))
    y.backward(tensor(ct))
    case("embedding_padding", "embedding", None, [table, i], dict(padding=3), order=1, out=y.detach().numpy(), ct=ct, grads=[t.grad.numpy()])


def random():
    """JAX's keys and bits (partitionable Threefry); how bits become numbers is ours: kernels.h."""
    open_file("random")

    def upper(key, shape, n):
        bits = np.asarray(jax.random.bits(key, shape, jnp.uint64))
        return bits >> np.uint64(64 - n)

    def unit(key, shape, n=53):
        return upper(key, shape, n).astype(np.float64) / 2.0 ** n

    def gumbel(key, shape, n=53):
        m = 2.0 ** n
        return -np.log(-np.log((2 * upper(key, shape, n).astype(np.float64) + 1) / (2 * m)))
    for seed in (0, 1, 123456789012345):
        at, key = dict(seed=str(seed), shape=[2, 3]), jax.random.key(seed)
        for d, n in (("f64", 53), ("f32", 24)):
            u = unit(key, (2, 3), n)
            case(f"uniform_{d}_{seed}", "uniform", None, [], dict(at, dtype=d, lo=0, hi=1), out=jnp.asarray(u, DTYPES[d]), exact=True)
            # 2u + 1 - 1/m in exact arithmetic; JAX's erfinv is good to 8 units of f64
            odd = ((2 * upper(key, (2, 3), n) + 1).astype(np.int64) - 2 ** n) / 2.0 ** n
            case(f"normal_{d}_{seed}", "normal", None, [], dict(at, dtype=d), out=jnp.asarray(np.sqrt(2) * jsp.erfinv(odd), DTYPES[d]), ulps=16)
            case(f"gumbel_{d}_{seed}", "gumbel", None, [], dict(at, dtype=d), out=jnp.asarray(gumbel(key, (2, 3), n), DTYPES[d]), ulps=16)
    case("uniform_range", "uniform", None, [], dict(seed=3, shape=[5], dtype="f64", lo=-2, hi=6), out=-2 + 8 * unit(jax.random.key(3), (5,)), exact=True)
    case("uniform_bf16", "uniform", None, [], dict(seed=3, shape=[5], dtype="bf16", lo=0, hi=1),
         out=jnp.asarray(unit(jax.random.key(3), (5,), 24), jnp.bfloat16), exact=True)
    key = jax.random.fold_in(jax.random.key(5), 77)
    case("uniform_fold", "uniform", None, [], dict(seed=5, fold=77, shape=[4], dtype="f64", lo=0, hi=1), out=unit(key, (4,)), exact=True)
    key = jax.random.split(jax.random.key(5), 3)[2]
    case("uniform_split", "uniform", None, [], dict(seed=5, split=2, shape=[4], dtype="f64", lo=0, hi=1), out=unit(key, (4,)), exact=True)
    key = jax.random.key(11)
    case("bernoulli", "bernoulli", None, [0.3], dict(seed=11, shape=[3, 4]), out=jnp.asarray(unit(key, (3, 4)) < 0.3))
    p = fresh((4,), 0, 1)
    case("bernoulli_each", "bernoulli", None, [Const(p)], dict(seed=11, shape=[3, 4]), out=jnp.asarray(unit(key, (3, 4)) < p))
    logits = fresh((3, 4), -2, 2)
    case("categorical", "categorical", None, [Const(logits)], dict(seed=11, axis=1), out=jnp.asarray(np.argmax(logits + gumbel(key, (3, 4)), 1)))
    case("categorical_f32", "categorical", None, [Const(logits, "f32")], dict(seed=11, axis=0),
         out=jnp.asarray(np.argmax(logits + gumbel(key, (3, 4), 24), 0)))
    order = list(range(300))
    for i, word in zip(range(299, 0, -1), np.asarray(jax.random.bits(key, (299,), jnp.uint64)).tolist()):
        j = word * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    case("permutation", "permutation", None, [], dict(seed=11, n=300), out=jnp.asarray(order, jnp.int64))
    order = [0, 1, 2]
    for i, word in zip((2, 1), np.asarray(jax.random.bits(key, (2,), jnp.uint64)).tolist()):
        j = word * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    case("shuffle", "shuffle", lambda x: x[:, jnp.asarray(order)], [fresh((2, 3))], dict(seed=11, axis=1))
    mask = jnp.asarray(np.where(unit(key, (3, 4)) >= 0.4, 1 / (1 - 0.4), 0))
    case("dropout", "dropout", lambda x: x * mask, [fresh((3, 4))], dict(seed=11, rate=0.4))
    case("dropout_0", "dropout", lambda x: x + 0, [fresh((2,))], dict(seed=11, rate=0), exact=True)
    case("dropout_1", "dropout", lambda x: x * 0, [fresh((2,), 0.1, 1)], dict(seed=11, rate=1), exact=True)
# ---- convolution and pooling, from PyTorch ------------------------------------------------------------------------------

def with_double_backward(name, op, f, shapes, attrs=None, dtype="f64"):
    """Value, gradients, directional derivative and Hessian-vector product (by backward of backward), all from torch, with the spread of
    sums of so many terms: the same computation on absolute values."""
    t = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    w = OUT[0]
    COUNT[os.path.basename(w.name)[:-4]] += 1
    data = [torch.tensor(fresh(s)).to(t) for s in shapes]
    tans = [torch.tensor(fresh(s)).to(t) for s in shapes]
    y = f(*data)
    ct = torch.tensor(fresh(tuple(y.shape))).to(t)

    def everything(xs, ts, c):
        xs = [x.clone().requires_grad_() for x in xs]
        y = f(*xs)
        first = torch.autograd.grad(y, xs, c, create_graph=True)
        along = sum((g * v).sum() for g, v in zip(first, ts))
        hvp = torch.autograd.grad(along, xs, allow_unused=True) if along.requires_grad else [None] * len(xs)
        jvp = torch.autograd.functional.jvp(f, tuple(xs), tuple(ts))[1]
        return [y, *first, jvp, *[torch.zeros_like(x) if h is None else h for h, x in zip(hvp, xs)]]

    up = [[a.double() for a in l] for l in (data, tans)]
    vals = everything(*up, ct.double())
    linear = "max" in op  # nothing is summed
    scales = vals if linear else everything(*[[a.abs() for a in l] for l in up], ct.double().abs())
    print(f"case {name}\nop {op}", file=w)
    if attrs:
        print("attr " + " ".join(f"{k}={attr_text(v)}" for k, v in attrs.items()), file=w)
    array = lambda a: jnp.asarray(a.detach().double().numpy()).astype(DTYPES[dtype])
    for x in data:
        print("in " + typed(array(x)), file=w)
    print("ct : " + values_of(array(ct)), file=w)
    for k, v in enumerate(tans):
        print(f"tan {k} : " + values_of(array(v)), file=w)
    n = len(data)
    heads = ["out "] + [f"grad {k} : " for k in range(n)] + ["jvp : "] + [f"hvp {k} : " for k in range(n)]
    for head, v, s in zip(heads, vals, scales):
        v = array(v)
        print(head + (typed(v) if head == "out " else values_of(v)), file=w)
        print(scales_of(np.abs(s.detach().numpy())), file=w)
    print("end", file=w)


def convolution():
    open_file("convolution")
    F = torch.nn.functional
    for name, op, kw, shapes in (
            ("plain", "conv1d", {}, [(2, 3, 7), (4, 3, 3)]),
            ("stride_padding", "conv1d", dict(stride=[2], padding=[2]), [(1, 2, 8), (3, 2, 3)]),
            ("dilated_groups", "conv1d", dict(dilation=[2], padding=[1], groups=2), [(2, 4, 9), (4, 2, 3)]),
            ("plain", "conv2d", {}, [(1, 2, 5, 4), (3, 2, 3, 2)]),
            ("all", "conv2d", dict(stride=[2, 1], padding=[1, 2], dilation=[1, 2], groups=2), [(2, 4, 6, 5), (2, 2, 3, 2)]),
            ("depthwise", "conv2d", dict(padding=[1, 1], groups=3), [(1, 3, 4, 4), (6, 1, 3, 3)]),
            ("pointwise", "conv2d", dict(stride=[2, 2]), [(1, 3, 4, 5), (2, 3, 1, 1)]),
            ("plain", "conv3d", dict(padding=[1, 0, 1]), [(1, 2, 3, 3, 3), (2, 2, 2, 2, 3)]),
            ("stride", "conv3d", dict(stride=[1, 2, 2], padding=[0, 1, 1]), [(1, 1, 2, 4, 5), (2, 1, 2, 3, 3)]),
            ("plain", "conv_transpose1d", {}, [(2, 3, 4), (3, 2, 3)]),
            ("output_padding", "conv_transpose1d", dict(stride=[3], padding=[1], output=[2]), [(1, 2, 4), (2, 3, 4)]),
            ("all", "conv_transpose2d", dict(stride=[2, 1], padding=[1, 0], dilation=[1, 2], groups=2, output=[1, 0]), [(1, 4, 3, 3), (4, 1, 3, 2)]),
            ("stride_beyond_kernel", "conv_transpose2d", dict(stride=[3, 2]), [(1, 1, 2, 3), (1, 2, 2, 1)]),
            ("plain", "conv_transpose3d", dict(stride=[1, 2, 1], padding=[0, 1, 1]), [(1, 2, 2, 3, 2), (2, 1, 2, 3, 3)])):
        call = {("output_padding" if k == "output" else k): (v if k == "groups" else tuple(v)) for k, v in kw.items()}
        with_double_backward(f"{op}_{name}", op, lambda x, w: getattr(F, op)(x, w, **call), shapes, kw)
        if name == "all":
            for d in ("f32", "bf16", "f16"):
                with_double_backward(f"{op}_{d}", op, lambda x, w: getattr(F, op)(x, w, **call), shapes, kw, dtype=d)
    causal = lambda x, w: F.conv1d(F.pad(x, (2, 0)), w)
    with_double_backward("conv1d_causal", "conv1d", causal, [(1, 2, 6), (2, 2, 3)], dict(before=[2]))
    uneven = lambda x, w: F.conv2d(F.pad(x, (1, 2, 1, 3)), w, stride=2)
    with_double_backward("conv2d_uneven", "conv2d", uneven, [(1, 1, 4, 4), (2, 1, 3, 3)], dict(stride=[2, 2], padding=[1, 1], after=[2, 1]))
    for name, op, kw, s in (
            ("plain", "max_pool1d", dict(window=[2]), (2, 3, 7)),
            ("ceil", "max_pool1d", dict(window=[3], stride=[2], padding=[1], ceil=1), (1, 2, 8)),
            ("2x2", "max_pool2d", dict(window=[2, 2]), (2, 2, 4, 6)),
            ("overlapping", "max_pool2d", dict(window=[3, 2], stride=[1, 2], padding=[1, 0]), (1, 2, 5, 5)),
            ("ceil", "max_pool2d", dict(window=[2, 3], stride=[2, 2], ceil=1), (1, 2, 5, 6)),
            ("plain", "max_pool3d", dict(window=[2, 2, 2], stride=[1, 2, 1]), (1, 1, 3, 4, 4)),
            ("plain", "avg_pool1d", dict(window=[3], stride=[2]), (2, 2, 8)),
            ("ceil", "avg_pool1d", dict(window=[3], stride=[2], padding=[1], ceil=1), (1, 2, 8)),
            ("2x2", "avg_pool2d", dict(window=[2, 2]), (2, 2, 4, 6)),
            ("include", "avg_pool2d", dict(window=[3, 2], stride=[2, 1], padding=[1, 1]), (1, 2, 5, 4)),
            ("exclude", "avg_pool2d", dict(window=[3, 2], stride=[2, 1], padding=[1, 1], exclude=1), (1, 2, 5, 4)),
            ("ceil", "avg_pool2d", dict(window=[3, 3], stride=[2, 2], padding=[1, 0], ceil=1), (1, 2, 6, 6)),
            ("ceil_exclude", "avg_pool2d", dict(window=[3, 3], stride=[2, 2], padding=[1, 0], ceil=1, exclude=1), (1, 2, 6, 6)),
            ("plain", "avg_pool3d", dict(window=[2, 2, 2], stride=[1, 2, 1], padding=[1, 0, 1]), (1, 1, 3, 4, 3))):
        call = dict(kernel_size=tuple(kw["window"]), stride=tuple(kw["stride"]) if "stride" in kw else None,
                    padding=tuple(kw.get("padding", [0] * len(kw["window"]))), ceil_mode="ceil" in kw)
        if op.startswith("avg"):
            call["count_include_pad"] = "exclude" not in kw
        with_double_backward(f"{op}_{name}", op, lambda x: getattr(F, op)(x, **call), [s], kw)
    tied = [[[1.0, 2.0, 2.0, 0.0, 3.0, 3.0]]]
    from_torch("max_pool1d_ties", "max_pool1d", lambda x: F.max_pool1d(x, 3, 1), [tied], attrs=dict(window=[3], stride=[1]))
    from_torch("max_pool2d_ties", "max_pool2d", lambda x: F.max_pool2d(x, 2), [[[[1.0, 2.0, 0.0, 0.0], [2.0, 2.0, 0.0, 0.0]]]], attrs=dict(window=[2, 2]))


# ---- expressions ------------------------------------------------------------------------------------------------------

def namespace():
    """Python's words for the text of an expression: NumPy's from jax.numpy, and what JAX keeps elsewhere."""
    names = dict(vars(jnp))
    names.update({n: getattr(jnp.linalg, n) for n in ("norm", "det", "inv", "solve", "qr", "cholesky", "eigh", "slogdet", "eigvalsh")})
    names.update({n: getattr(jax.nn, n) for n in ("softmax", "log_softmax", "relu", "sigmoid", "softplus", "silu", "leaky_relu", "elu", "selu",
                                                  "one_hot", "log_sigmoid")})
    names.update(svd=lambda a: jnp.linalg.svd(a, full_matrices=False), gelu=lambda x: jax.nn.gelu(x, approximate=False), logsumexp=jsp.logsumexp, erf=jsp.erf, gammaln=jsp.gammaln, rsqrt=lax.rsqrt,
                 top_k=lax.top_k, stop_gradient=lax.stop_gradient, lerp=lambda x, y, w: x + w * (y - x))
    for hidden in ("sum", "max", "min", "abs", "round", "all", "any", "pow"):  # jax.numpy's, not Python's own
        names[hidden] = getattr(jnp, hidden)
    return names


def python_value(text, names):
    """Runs the statements; the value of the last is the result, also of an assignment."""
    import ast
    body = ast.parse(text).body
    scope = dict(names)
    exec(compile(ast.Module(body[:-1], []), "text", "exec"), scope)
    if isinstance(body[-1], ast.Expr):
        return eval(compile(ast.Expression(body[-1].value), "text", "eval"), scope)
    exec(compile(ast.Module(body[-1:], []), "text", "exec"), scope)
    return scope[body[-1].targets[0].id if isinstance(body[-1], ast.Assign) else body[-1].target.id]


EXPRESSIONS = r"""
1
2.5
1_000 + .5 + 1e-3
7 // 2 + -7 // 2 * 10 + -7 % 3 * 100
2 ** 3 ** 2
-2 ** 2
2 ** -1
1 // 0.1
x*y + sin(x)
-x**2
2**-x
x**y**0.5
-x ** -y
(x + y) * (x - y) / 2
x - y - 3
x / y / 2
+x - -y
x // y
7.5 // y
x % y - -x % y
y % -x
x**3 - 2*x**2 + x - 5
exp(-x**2 / 2) / sqrt(2*pi)
log(1 + exp(x*y))
e**x
x if x > 0 else y
y if x > 1 else x*y
x*2 if x < 0 else y*3 if y > 2 else x
0 < x < 1 < y
x < y
x == x and y != x
not x > y
x and y
0 or x
where(v > 0, v**2, exp(v))
maximum(v, w)
clip(v, -0.5, 0.75)
hypot(x, y) + arctan2(x, y)
tanh(v) + sigmoid(w) * softplus(v)
gelu(v) + silu(w)
leaky_relu(v) - elu(w) + selu(v)
leaky_relu(v, negative_slope=0.2)
erf(x) + gammaln(y)
sqrt(abs(v))
sqrt(2) * x + cos(0)
round(v * 3) + floor(w)
sum(A)
sum(A, axis=0)
sum(A, axis=1, keepdims=True) * A
sum(A, (0, 1))
mean(A, axis=-1)
prod(v)
max(A, axis=0) - min(A, axis=0)
var(A, axis=1) + std(A, axis=1)
logsumexp(A, axis=1)
norm(v)
norm(A, axis=1)
softmax(A)
softmax(A, axis=0)
-log_softmax(A)[0, 2]
cumsum(v)
cumsum(A, axis=0)
cumprod(A)
A @ v
A @ A.T
v @ w
v @ A.T @ A @ w
outer(v, w)
einsum('ij,j->i', A, v)
einsum("ij,kj->ik", A, A)
dot(v, w)
A[0]
A[-1, 1:]
A[1:, ::2] * 2
A[..., 0]
A[:, None, 1]
v[None] * w[:, None]
v[::-1]
v[-2:]
v[2:0:-1]
v[i]
A[:, i]
A[1, i]
A[[0, 1], [2, 0]]
v[v > 0]
A[A > 0.1]
stack([x, y, x*y])
concatenate([v, 2*w])
array([x, y]) @ array([[1, 2], [3, 4]])
array([[1, 2], [3, 4.5]])
array([1, 2, 3]) // 2
reshape(A, (3, 2)) @ reshape(v, [3, 1])[:2]
reshape(A, -1)[1:5]
transpose(A) @ array([1.0, -1.0])
A.T[1]
A.shape[1] * x
v.size + A.ndim
expand_dims(v, axis=1) + w
squeeze(v[None, :])
tril(S) + triu(S, k=1)
trace(S)
diag(v)
roll(A, 1)
roll(A, shift=1, axis=0)
flip(v)
tile(v, [2, 1])
repeat(v, 2)
sort(v)
argsort(v)
top_k(v, 2)[0]
take(A, i, axis=1)
zeros([2, 3]) + v
ones(3) * x
full([2], 7) * x
arange(3) * v
arange(0, 1, 0.25) + x
linspace(0, 1, num=5) * x
eye(2) * y
one_hot(i, 3) @ A.T
astype(v, float32)
zeros_like(A) + x
solve(S, v)
inv(S)
det(S)
cholesky(S)
slogdet(S)[1]
q, r = qr(S); r * r
w2, u = eigh(S); w2
u, s, vt = svd(A); s
stop_gradient(x) * x
a = 2*x; b = a + y; a*b
a = b = x; a * b
a, b = x*y, x + y\na - b
x += y; x *= 2; x
h = tanh(A @ v)  # a layer\ny2 = sum(h**2)\ny2 / 2
(x +\n   y) * 2
a = x + \\\n    y\na**2
logical_and(v > 0, w > 0)
isnan(v * nan)
sum(where(v > 0, 1, 0) * v)
sum(v > 0)
inf - x
pad(v, 1) * 2
pad(A, (1, 2), constant_values=3.5)
pad(A, [[0, 1], [2, 0]])
tensordot(A, A)
tensordot(A, A, axes=([1], [1]))
tensordot(v, A, axes=(0, 1))
transpose(A[None], (2, 0, 1))
permute_dims(A[None], (1, 2, 0))
"""


def expressions():
    """The text of each line, in Python with jax.numpy: its value, and the gradients of a weighted sum of its elements. tests/test_expr_golden.c
    reads them. Lines in which JAX cannot be traced (a condition that depends on a value) are short, and taken with the plain scale."""
    open_file("expr")
    names = namespace()
    spd = uniform(7, (3, 3))
    inputs = dict(x=0.625, y=2.25, v=uniform(1, (3,)), w=uniform(2, (3,)), A=uniform(3, (2, 3)), S=spd @ spd.T + 2 * np.eye(3), i=np.array([0, 2]))
    inputs = {k: jnp.asarray(a) for k, a in inputs.items()}
    for n, line in enumerate(EXPRESSIONS.strip().split("\n")):
        text = line.replace("\\n", "\n").replace("\\\\", "\\")
        used = [k for k in inputs if re.search(rf"\b{k}\b", re.sub(r"'[^']*'|\"[^\"]*\"", "", text))]
        moving = [k for k in used if k != "i"]

        def value(*xs):
            scope = dict(names)
            scope.update(inputs)
            scope.update(zip(moving, xs))
            return jnp.asarray(python_value(text, scope))

        xs = [inputs[k] for k in moving]
        y = value(*xs)
        grads = jnp.issubdtype(y.dtype, jnp.floating) and bool(moving)
        ct = jnp.asarray(fresh(y.shape), y.dtype) if grads else None

        def everything(*xs):
            return [value(*xs)] + (list(jax.vjp(value, *xs)[1](ct)) if grads else [])

        vals = everything(*xs)
        try:
            scales = spread(everything, xs, vals, True)
        except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError):
            scales = [np.abs(np.asarray(a, dtype=np.float64)) for a in vals]
        w = OUT[0]
        COUNT["expr"] += 1
        print(f"case {n + 1}\ntext {line}", file=w)
        for k in used:
            print(f"{'const' if k == 'i' else 'in'} {k} {typed(inputs[k])}", file=w)
        print(f"out {typed(y)}\n~ : {values_of(scales[0])}", file=w)
        if grads:
            print(f"ct : {values_of(ct)}", file=w)
            for k, g, s in zip(moving, vals[1:], scales[1:]):
                print(f"grad {k} : {values_of(g)}\n~ : {values_of(s)}", file=w)
        print("end", file=w)


def main():
    common = [elementwise, special, integers, broadcast, powers, kinks, promotion, narrow, casts, reductions, shapes, indexing, matrices, networks, creation]
    families = [[cumulating, ordering, arranging, selecting], [einsums, fourier], [normalisation, losses, random], [attention], [linear_algebra],
                [convolution], [expressions]]
    # Each topic has its own inputs, whatever the others do: a family counts on from where the common ones end.
    topics = list(enumerate(common)) + [(len(common) + k, topic) for family in families for k, topic in enumerate(family)]
    wanted = sys.argv[1:]
    for k, topic in topics:
        SEED[0] = 1000 * (k + 1)
        if not wanted or topic.__name__ in wanted:
            topic()
    OUT[0].close()
    for name, n in COUNT.items():
        print(f"{name:12} {n:4} cases {os.path.getsize(os.path.join(HERE, name + '.txt')):7} bytes")


main()
