"""Cases whose values and derivatives are PyTorch's, and comparisons with it."""
import os

import jax.numpy as jnp
import numpy as np

from .inputs import DTYPES, fresh
from .late_torch import torch
from .writing import COUNT, OUT, attr_text, case, scales_of, typed, values_of


def tensor(a):
    return torch.tensor(np.asarray(a), dtype=torch.float64)


def agree(mine, theirs):
    """The formula in JAX, which gives derivatives and scales, is PyTorch's function."""
    np.testing.assert_allclose(np.asarray(mine), theirs.numpy(), rtol=1e-12, atol=1e-13)


def from_torch(name, op, f, xs, rest=(), attrs=None):
    vs = [torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=True) for x in xs]
    y = f(*vs)
    y.sum().backward()
    case(name, op, None, [np.asarray(x, dtype=np.float64) for x in xs] + list(rest), attrs, order=1,
         out=y.detach().numpy(),
         ct=np.ones(y.shape), grads=[v.grad.numpy() for v in vs])


def with_double_backward(name, op, f, shapes, attrs=None, dtype="f64"):
    """Value, gradients, directional derivative and Hessian-vector product (by backward of
    backward), all from torch, with the spread of sums of so many terms: the same computation on
    absolute values."""
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
