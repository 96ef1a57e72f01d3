"""Powers to high orders, and what derivatives are where there is none."""
import os

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax

from .from_torch import from_torch
from .inputs import Const
from .late_torch import torch
from .writing import COUNT, OUT, case, number, open_file, values_of


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
        print("in f64 () : " + number(x) if v is None else f"integer {v}" if isinstance(v, int)
            else f"number {number(v)}", file=w)
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
    # Both operands move: 0^0 = 1, 0^y with y > 0, and negative bases with whole exponents (no
    # derivative by the exponent there).
    from_torch("zero_base", "pow", lambda x, y: torch.pow(x, y), [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    case("negative_base", "pow", lambda x, y: jnp.power(x, y),
        [np.array([-2.0, -1.5, -0.5, -3.0]), Const(np.array([2.0, 3.0, -1.0, 0.0]))])
    case("negative_base_fraction", "pow", jnp.power, [np.array([-2.0, -1.0]), Const(np.array([0.5, 1.5]))], order=0)


def kinks():
    open_file("kinks")
    zero = np.array([0.0, -0.0, 1.0, -1.0])
    one = dict(ct=np.ones(4), exact=True, order=1)
    case("relu_at_0", "relu", jax.nn.relu, [zero], **one)
    case("sign_at_0", "sign", jnp.sign, [zero], **one)
    case("elu_at_0", "elu", lambda x, a: jnp.where(x > 0, x, a * jnp.expm1(x)), [np.array([0.0, -0.0, 1.0]), 0.5],
        order=1)
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
        case(f"{name}_ties_columns", name, lambda x, f=f: f(x, axis=0, keepdims=True), [t], dict(axes=[0], keep=1),
            order=1)
    case("clamp_ends", "clamp", lambda x, lo, hi: lax.clamp(lo, x, hi), [np.array([-1.0, 1.0, 0.0, -2.0, 2.0]), -1.0,
         1.0], order=1,
         exact=True, ct=np.ones(5))
    case("sqrt_at_0", "sqrt", jnp.sqrt, [np.array([0.0, 4.0])], exact=True, order=1, ct=np.ones(2), tan=[np.ones(2)])
    case("norm_inf_ties", "norm", lambda x: jnp.linalg.norm(x, jnp.inf), [np.array([1.0, -3.0, 3.0])],
        dict(p=np.inf, axes="all", keep=0), order=1)
    case("floor_whole", "floor", jnp.floor, [zero], **one)
    case("round_half", "round", jnp.round, [np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.5])], order=1, exact=True)
    case("argmax_ties", "argmax", lambda x: jnp.argmax(x, axis=1), [Const(t)], dict(axes=[1], keep=0))
    case("argmin_ties", "argmin", lambda x: jnp.argmin(x, axis=0), [Const(t)], dict(axes=[0], keep=0))
    case("argmax_nan", "argmax", lambda x: jnp.argmax(x), [Const([1.0, np.nan, 3.0, np.nan])], dict(axes="all", keep=0))
    case("argmin_nan", "argmin", lambda x: jnp.argmin(x), [Const([1.0, np.nan, -3.0, np.nan])],
        dict(axes="all", keep=0))
    case("max_nan", "max", lambda x: jnp.max(x), [Const([1.0, np.nan, 3.0])], dict(axes="all", keep=0))
    case("min_nan", "min", lambda x: jnp.min(x), [Const([1.0, np.nan, 3.0])], dict(axes="all", keep=0))
    case("prod_one_zero", "prod", lambda x: jnp.prod(x), [np.array([2.0, 0.0, 3.0])], dict(axes="all", keep=0))
    case("prod_two_zeros", "prod", lambda x: jnp.prod(x), [np.array([2.0, 0.0, 3.0, 0.0])], dict(axes="all", keep=0))
    case("logsumexp_empty_terms", "logsumexp", lambda x: jsp.logsumexp(x), [np.array([-np.inf, 1.0, 2.0])],
        dict(axes="all", keep=0), order=1)
    at_zero = [0.0, -0.0, 1.0, -1.0]
    from_torch("relu_torch", "relu", torch.relu, [at_zero])
    from_torch("abs_at_0", "abs", torch.abs, [at_zero])
    from_torch("leaky_relu_at_0", "leaky_relu", lambda x: torch.nn.functional.leaky_relu(x, 0.25), [at_zero], [0.25])
    from_torch("hard_sigmoid_ends", "hard_sigmoid", torch.nn.functional.hardsigmoid, [[-3.0, 3.0, -4.0, 4.0]])
    from_torch("norm_2_at_0", "norm", lambda x: torch.linalg.vector_norm(x, 2), [[0.0, 0.0]],
        attrs=dict(p=2, axes="all", keep=0))
    from_torch("norm_1_at_0", "norm", lambda x: torch.linalg.vector_norm(x, 1), [[0.0, -3.0, 3.0]],
        attrs=dict(p=1, axes="all", keep=0))
    from_torch("maximum_torch", "maximum", torch.maximum, [a, b])
    from_torch("minimum_torch", "minimum", torch.minimum, [a, b])
    from_torch("amax_torch", "max", lambda x: torch.amax(x, 1), [t], attrs=dict(axes=[1], keep=0))
