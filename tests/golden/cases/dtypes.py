"""Promotion, narrow floats, casts."""
import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

from .elementwise import BINARY, INSIDE, UNARY, domains, from_integers
from .inputs import Const, DTYPES, fresh
from .writing import case, number, open_file


def divided(x, y):
    """The quotient; two integers become f64, but an integer beside a float takes the float's
    dtype."""
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
                    ("add", "sub", "mul", "div", "exp", "log", "tanh", "sqrt", "relu", "sigmoid", "maximum",
                    "gelu_tanh", "square")):
                continue
            n = 1 if name in UNARY else 2
            xs = [jnp.asarray(fresh((4,), *lim[name]), dtype=DTYPES[d]) for _ in range(n)]
            # JAX's lgamma, digamma and erfinv in f32 are good to 16 units or so of their condition;
            # ours are rounded from f64.
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
        case(f"mse_{d}", "mse", lambda x, y: jnp.mean((x - y) ** 2), [x, y[:3, :1] * jnp.ones((3, 5), x.dtype)],
            order=1)
        case(f"cross_entropy_{d}", "softmax_cross_entropy",
                 lambda l, i: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(l, axis=-1), i[..., None], -1)), [x,
                 Const([1, 0, 4], "i64")], order=1)
        case(f"take_{d}", "take", lambda x, i: jnp.take(x, i, axis=0), [x, Const([1, 1, 0], "i64")], dict(axis=0),
            order=1)


def casts():
    open_file("casts")
    v = np.array([0.0, 1.5, -1.5, 2.5, 300.7, -300.7, 1e10, -1e10, 1e30, -1e30, np.inf, -np.inf, np.nan, 65504.0,
        65520.0, 1.00390625])
    for a in ("f64", "f32", "bf16", "f16"):
        for b in DTYPES:
            case(f"{a}_{b}", "cast", lambda x, b=b: x.astype(DTYPES[b]), [Const(v, a)], dict(dtype=b), exact=True)
    i = np.array([0, 1, -1, 127, 128, 255, 256, 1000, -1000, 70000, -70000])
    for a in ("i64", "i32", "u8", "bool"):
        for b in DTYPES:
            s = Const(jnp.asarray(i).astype(DTYPES[a]))
            case(f"{a}_{b}", "cast", lambda x, b=b: x.astype(DTYPES[b]), [s], dict(dtype=b), exact=True)
    case("f64_f32_gradient", "cast", lambda x: x.astype(jnp.float32), [np.array([0.1, 0.2])], dict(dtype="f32"),
         order=1, exact=True,
         ct=[1.0, 0.5], tan=[np.array([1.0, 0.25])])
    case("f32_f64_gradient", "cast", lambda x: x.astype(jnp.float64), [np.float32([0.5, 0.25])], dict(dtype="f64"),
         order=1, exact=True,
         ct=[1.0, 0.5], tan=[np.array([1.0, 0.25])])
