"""Reductions over axes."""
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

from .inputs import Const, fresh
from .writing import case, number, open_file


def reductions():
    open_file("reductions")
    real = dict(
        sum=jnp.sum, mean=jnp.mean, prod=jnp.prod, max=jnp.max, min=jnp.min, variance=jnp.var, std=jnp.std,
        logsumexp=jsp.logsumexp)
    sets = [("all", None), ([0], (0,)), ([1], (1,)), ([-1], (-1,)), ([0, 2], (0, 2)), ([0, 1, 2], (0, 1, 2))]
    for name, f in real.items():
        for text, axes in sets:
            for keep in (0, 1):
                if keep and text not in ("all", [1], [0, 2]):
                    continue
                label = "all" if text == "all" else "_".join(map(str, text))
                case(f"{name}_{label}{'_keep' if keep else ''}", name, lambda x: f(x, axis=axes, keepdims=bool(keep)),
                     [fresh((2, 3, 2), 0.2, 2)], dict(axes=text, keep=keep), order=3 if text == [1] else 2)
        case(f"{name}_transposed", name, lambda x: f(x.T, axis=0), [fresh((3, 4), 0.2, 2)],
            dict(axes=[0], keep=0, via="transpose"))
        case(f"{name}_scalar", name, lambda x: f(x), [fresh((), 0.2, 2)], dict(axes="all", keep=0),
            order=0 if name == "std" else 1)
        for d in ("i32", "bool", "u8"):
            if name in ("variance", "std", "logsumexp") and d != "i32":
                continue

            def g(x, d=d):
                r = f(x, axis=1) if name not in ("mean", "variance", "std", "logsumexp") else f(x.astype(jnp.float64),
                    axis=1)
                return r.astype(jnp.int64) if r.dtype == jnp.uint64 else r
            case(f"{name}_{d}", name, g, [Const(np.array([[1, 0, 3], [2, 2, 1]]), d)], dict(axes=[1], keep=0))
    for p in (1, 2, 3, 2.5, np.inf, -np.inf):
        for text, axes in (("all", None), ([1], 1)):
            f = (lambda x: jnp.linalg.norm(x.reshape(-1), p)) if axes is None else (lambda x: jnp.linalg.norm(x, p,
                axis=1))
            case(f"norm_{number(p)}_{'all' if axes is None else 1}", "norm", f, [fresh((2, 3))],
                dict(p=p, axes=text, keep=0))
    case("norm_2_keep", "norm", lambda x: jnp.linalg.norm(x, 2, axis=0, keepdims=True), [fresh((2, 3))],
        dict(p=2, axes=[0], keep=1), order=3)
    case("norm_0", "norm", lambda x: jnp.linalg.norm(x, 0), [Const([1.0, 0.0, -2.0])], dict(p=0, axes="all", keep=0))
    case("norm_2_large", "norm", lambda x: jnp.float64(5e200), [Const([3e200, 4e200])], dict(p=2, axes="all", keep=0))
    x = fresh((2, 3, 2))
    for name, f in (("argmax", jnp.argmax), ("argmin", jnp.argmin)):
        case(f"{name}_all", name, lambda x: f(x), [Const(x)], dict(axes="all", keep=0))
        case(f"{name}_all_keep", name, lambda x: f(x, keepdims=True), [Const(x)], dict(axes="all", keep=1))
        for a in (0, 1, -1):
            case(f"{name}_{a}", name, lambda x: f(x, axis=a), [Const(x)], dict(axes=[a], keep=0))
        case(f"{name}_1_keep", name, lambda x: f(x, axis=1, keepdims=True), [Const(x)], dict(axes=[1], keep=1))
        case(f"{name}_i32", name, lambda x: f(x, axis=1), [Const([[3, 1, 2], [5, 5, 9]], "i32")],
            dict(axes=[1], keep=0))
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
    case("logsumexp_large", "logsumexp", jsp.logsumexp, [np.array([1000.0, 1001.0, -1000.0])], dict(axes="all", keep=0),
        order=1)
    case("logsumexp_all_minus_inf", "logsumexp", jsp.logsumexp, [Const([-np.inf, -np.inf])], dict(axes="all", keep=0))
    case("sum_of", "sum_of", lambda *xs: sum(xs[1:], xs[0]), [fresh(()) for _ in range(5)])
    case("dot_of", "dot_of", lambda *xs: sum(a * b for a, b in zip(xs[:4], xs[4:])), [fresh(()) for _ in range(8)])
    lse = lambda *xs: jsp.logsumexp(jnp.stack(xs))
    case("logsumexp_of", "logsumexp_of", lse, [fresh(()) for _ in range(5)])
    case("logsumexp_of_large", "logsumexp_of", lse, [np.array(v) for v in (1000.0, 1001.0, -1000.0)], order=1)
    case("logsumexp_of_all_minus_inf", "logsumexp_of", lse, [Const(-np.inf), Const(-np.inf)])
