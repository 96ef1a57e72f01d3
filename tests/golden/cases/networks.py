"""Softmax, losses over classes, attention."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .inputs import Const, SEED, fresh
from .late_torch import torch
from .writing import case, open_file


def networks():
    open_file("networks")
    x = fresh((2, 3, 4), -3, 3)
    for axis in (0, 1, -1):
        case(f"softmax_{axis}", "softmax", lambda x: jax.nn.softmax(x, axis=axis), [x], dict(axis=axis),
            order=3 if axis == 1 else 2)
        case(f"log_softmax_{axis}", "log_softmax", lambda x: jax.nn.log_softmax(x, axis=axis), [x], dict(axis=axis),
            order=3 if axis == 1 else 2)
    case("softmax_of_transpose", "softmax", lambda x: jax.nn.softmax(x.T, axis=0), [fresh((2, 3))],
        dict(axis=0, via="transpose"))
    big = np.array([[1000.0, 1001.0, 990.0], [-1000.0, 0.0, 1.0]])
    case("softmax_large", "softmax", lambda x: jax.nn.softmax(x, axis=1), [big], dict(axis=1), order=1)
    case("log_softmax_large", "log_softmax", lambda x: jax.nn.log_softmax(x, axis=1), [big], dict(axis=1), order=1)
    case("softmax_minus_inf", "softmax", lambda x: jax.nn.softmax(x, axis=0), [np.array([-np.inf, 0.5, 1.0])],
        dict(axis=0), order=1)

    def labelled(l, i):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(l, axis=-1), i[..., None], -1))

    def weighted(l, q):
        return -jnp.mean(jnp.sum(q * jax.nn.log_softmax(l, axis=-1), -1))
    i = Const([1, 0, 3], "i64")
    p = fresh((3, 4), 0.1, 1)
    q = fresh((3, 4), 0.1, 1)
    q = q / q.sum(-1, keepdims=True)
    case("softmax_cross_entropy_labels", "softmax_cross_entropy", labelled, [fresh((3, 4), -3, 3), i], order=3)
    case("softmax_cross_entropy_labels_i32_3d", "softmax_cross_entropy", labelled,
        [fresh((2, 2, 3)), Const([[0, 1], [2, 2]], "i32")])
    case("softmax_cross_entropy_one_row", "softmax_cross_entropy", labelled, [fresh((4,)), Const(2, "i64")])
    case("softmax_cross_entropy_probabilities", "softmax_cross_entropy", weighted, [fresh((3, 4), -3, 3), Const(q)])
    case("softmax_cross_entropy_both", "softmax_cross_entropy", weighted, [fresh((3, 4), -3, 3), q])
    case("softmax_cross_entropy_large", "softmax_cross_entropy", labelled,
        [np.array([[1000.0, 0.0], [0.0, 1000.0]]), Const([1, 1], "i64")], order=1)
    case("cross_entropy_labels", "cross_entropy", lambda p,
        i: -jnp.mean(jnp.log(jnp.take_along_axis(p, i[..., None], -1))), [p, i], order=3)
    case("cross_entropy_probabilities", "cross_entropy", lambda p, q: -jnp.mean(jnp.sum(q * jnp.log(p), -1)),
        [p, Const(q)])
    case("cross_entropy_both", "cross_entropy", lambda p, q: -jnp.mean(jnp.sum(q * jnp.log(p), -1)), [p, q])
    case("mse", "mse", lambda x, y: jnp.mean((x - y) ** 2), [fresh((2, 3)), fresh((2, 3))], order=3)
    case("mse_number", "mse", lambda x, y: jnp.mean((x - y) ** 2), [fresh((2, 3)), 0.5])
    case("mse_scalar", "mse", lambda x, y: jnp.mean((x - y) ** 2), [fresh((2, 3)), fresh(())])


def attention():
    """jax.nn.dot_product_attention takes (B, T, N, H); ours (B, N, T, H): written out, and compared
    with torch's own below."""
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
        """Values and gradients from torch's own function, then every derivative from the
        formula."""
        case(name, "attention", f, xs, attrs, order=order)
        ts = [torch.tensor(np.asarray(x), requires_grad=True) for x in xs[:3]]
        y = torch.nn.functional.scaled_dot_product_attention(*ts, **how)
        ct = fresh(tuple(y.shape))
        y.backward(torch.tensor(ct))
        # No spread is measured for torch's numbers: sums of terms near 1 that cancel down to 1e-3
        # lose ten bits in either library.
        case(name + "_torch", "attention", None, [np.asarray(x) for x in xs[:3]]
            + [x if isinstance(x, Const) else Const(x) for x in xs[3:]], attrs, order=1,
             ulps=8 << 10, out=y.detach().numpy(), ct=ct, grads=[t.grad.numpy() for t in ts])

    both("attention_plain", plain, [q, k, v], order=3)
    both("attention_causal_wide", lambda q, k, v: plain(q, k, v, causal=True), [q, k, v], dict(causal=1),
        is_causal=True)
    both("attention_causal_tall", lambda q, k, v: plain(q, k, v, causal=True),
        [fresh((1, 6, 4)), fresh((1, 4, 4)), fresh((1, 4, 2))], dict(causal=1), is_causal=True)
    both("attention_scaled", lambda q, k, v: plain(q, k, v, scale=0.3), [q, k, v], dict(scale=0.3), scale=0.3)
    both("attention_mask", lambda q, k, v, m: plain(q, k, v, mask=m), [q, k, v, Const(mask, "bool")], dict(mask=3),
        attn_mask=torch.tensor(mask))
    both("attention_bias", lambda q, k, v, b: plain(q, k, v, bias=b), [q, k, v, bias], dict(bias=3),
        attn_mask=torch.tensor(bias))
    case("attention_all", "attention", lambda q, k, v, m, b: plain(q, k, v, m, b, True),
         [q, k, v, Const(mask | np.eye(3, 5, dtype=bool), "bool"), bias],
         dict(mask=3, bias=4, causal=1))
    case("attention_heads_broadcast", "attention", plain, [fresh((2, 2, 3, 2)), fresh((1, 3, 2)), fresh((2, 1, 3, 2))])
    case("attention_f32", "attention", plain, [x.astype(np.float32) for x in (q, k, v)])
