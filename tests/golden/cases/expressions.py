"""Whole expressions as Python runs them."""
import re

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax

from .inputs import fresh, uniform
from .spread import spread
from .writing import COUNT, OUT, open_file, typed, values_of


def namespace():
    """Python's words for the text of an expression: NumPy's from jax.numpy, and what JAX keeps
    elsewhere."""
    names = dict(vars(jnp))
    names.update({n: getattr(jnp.linalg, n) for n in ("norm", "det", "inv", "solve", "qr", "cholesky", "eigh",
        "slogdet", "eigvalsh")})
    names.update({n: getattr(jax.nn, n) for n in ("softmax", "log_softmax", "relu", "sigmoid", "softplus", "silu",
                                                  "leaky_relu", "elu", "selu",
                                                  "one_hot", "log_sigmoid")})
    names.update(svd=lambda a: jnp.linalg.svd(a, full_matrices=False), gelu=lambda x: jax.nn.gelu(x, approximate=False),
                 logsumexp=jsp.logsumexp, erf=jsp.erf, gammaln=jsp.gammaln, rsqrt=lax.rsqrt,
                 top_k=lax.top_k, stop_gradient=lax.stop_gradient, lerp=lambda x, y, w: x + w * (y - x))
    # jax.numpy's, not Python's own
    for hidden in ("sum", "max", "min", "abs", "round", "all", "any", "pow"):
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
    """The text of each line, in Python with jax.numpy: its value, and the gradients of a weighted
    sum of its elements. tests/test_expr_golden.c
    reads them. Lines in which JAX cannot be traced (a condition that depends on a value) are short,
    and taken with the plain scale."""
    open_file("expr")
    names = namespace()
    spd = uniform(7, (3, 3))
    inputs = dict(x=0.625, y=2.25, v=uniform(1, (3,)), w=uniform(2, (3,)), A=uniform(3, (2, 3)),
        S=spd @ spd.T + 2 * np.eye(3), i=np.array([0, 2]))
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
