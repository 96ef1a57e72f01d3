"""Writes cases; make_golden.py describes the format."""
import os

import jax
import jax.numpy as jnp
import numpy as np

from .inputs import Const, NAMES, fresh
from .spread import spread

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
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
    return "~ : " + " ".join("0" if v == 0 else f"{v:.1e}" if np.isfinite(v) else "1"
        for v in np.asarray(s).reshape(-1))


def attr_text(v):
    if isinstance(v, (list, tuple)):
        return ",".join(attr_text(x) for x in v) if len(v) else "()"
    return v if isinstance(v, str) else number(v)


def case(name, op, f, operands, attrs=None, order=2, exact=False, ulps=None, inputs=False, out=None, ct=None, tan=None,
        grads=None):
    """Writes one case. operands: float arrays (differentiated), Const, python numbers. f takes them
    all. order: 0 value only, 1 grad and jvp, 2 hvp, 3 third. out, grads: values from elsewhere
    instead of JAX's."""
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
        tans = [jnp.asarray(fresh(x.shape), dtype=x.dtype) for x in xs] if tan is None else [jnp.asarray(t, x.dtype)
            for t, x in zip(tan, xs)]

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
