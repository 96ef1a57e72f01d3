"""Normalisation, losses, random numbers; JAX's formulas are compared with PyTorch's functions
first."""
import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax

from .from_torch import agree, from_torch, tensor
from .inputs import Const, DTYPES, fresh
from .late_torch import F, torch
from .writing import case, open_file


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
    case("layer_norm_of_transpose", "layer_norm", lambda x, w: layer(x.T, w), [fresh((4, 3)), fresh((4,))],
        dict(axis=-1, eps=1e-5, via="transpose"))
    deep, many = fresh((2, 2, 3), -2, 2), fresh((2, 3), 0.5, 2)
    agree(layer(deep, many, axis=1), F.layer_norm(tensor(deep), (2, 3), tensor(many), None, 1e-5))
    case("layer_norm_axes", "layer_norm", lambda x, w: layer(x, w, axis=1), [deep, many], dict(axis=1, eps=1e-5))
    case("layer_norm_f32", "layer_norm", layer, [x.astype(np.float32), w.astype(np.float32), b.astype(np.float32)], at,
        order=1)
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
    case("batch_norm_inference_plain", "batch_norm_inference", given, [x, Const(m), Const(v)],
        dict(axes=[0, 2], eps=1e-5))


def losses():
    open_file("losses")

    def bce(x, q):
        return jnp.mean(q * jax.nn.softplus(-x) + (1 - q) * jax.nn.softplus(x))
    x, q = fresh((2, 3), -4, 4), fresh((2, 3), 0, 1)
    agree(bce(x, q), F.binary_cross_entropy_with_logits(tensor(x), tensor(q)))
    case("bce", "bce_with_logits", bce, [x, q], order=3)
    case("bce_far", "bce_with_logits", bce, [np.array([40.0, -40.0, 700.0, -800.0]), Const([1.0, 0.0, 1.0, 0.0])],
        order=1)
    case("bce_wrong", "bce_with_logits", bce, [np.array([40.0, -40.0, 700.0, -800.0]), Const([0.0, 1.0, 0.0, 1.0])],
        order=1)
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
    case("kl_div_zeros", "kl_div", None, [x.detach().numpy(), Const(q.numpy())], order=1, out=y.detach().numpy(),
        ct=1.0, grads=[x.grad.numpy()])

    def cosine(x, y, axis=-1):
        n = lambda v: v / jnp.maximum(jnp.sqrt(jnp.sum(v * v, axis, keepdims=True)), 1e-8)
        return jnp.sum(n(x) * n(y), axis)
    x, y = fresh((3, 4)), fresh((3, 4))
    agree(cosine(x, y), F.cosine_similarity(tensor(x), tensor(y), -1, 1e-8))
    case("cosine", "cosine_similarity", cosine, [x, y], dict(axis=-1, eps=1e-8), order=3)
    case("cosine_columns", "cosine_similarity", lambda x, y: cosine(x, y, 0), [x, Const(y)], dict(axis=0, eps=1e-8))
    from_torch("cosine_of_zero", "cosine_similarity", lambda x, y: F.cosine_similarity(x, y, 1, 0.5),
               [[[0.0, 0.0], [3.0, 4.0]], [[0.0, 2.0], [0.0, 0.0]]],
               attrs=dict(axis=1, eps=0.5))

    table = fresh((4, 3))
    i = Const([[1, 0], [3, 3]], "i64")
    case("embedding", "embedding", lambda t, i: t[i], [table, i], dict(padding="none"))
    t = tensor(table).requires_grad_()
    y, ct = F.embedding(torch.tensor([[1, 0], [3, 3]]), t, padding_idx=3), fresh((2, 2, 3))
    y.backward(tensor(ct))
    case("embedding_padding", "embedding", None, [table, i], dict(padding=3), order=1, out=y.detach().numpy(), ct=ct,
        grads=[t.grad.numpy()])


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
            case(f"uniform_{d}_{seed}", "uniform", None, [], dict(at, dtype=d, lo=0, hi=1),
                out=jnp.asarray(u, DTYPES[d]), exact=True)
            # 2u + 1 - 1/m in exact arithmetic; JAX's erfinv is good to 8 units of f64
            odd = ((2 * upper(key, (2, 3), n) + 1).astype(np.int64) - 2 ** n) / 2.0 ** n
            case(f"normal_{d}_{seed}", "normal", None, [], dict(at, dtype=d),
                out=jnp.asarray(np.sqrt(2) * jsp.erfinv(odd), DTYPES[d]), ulps=16)
            case(f"gumbel_{d}_{seed}", "gumbel", None, [], dict(at, dtype=d),
                out=jnp.asarray(gumbel(key, (2, 3), n), DTYPES[d]), ulps=16)
    case("uniform_range", "uniform", None, [], dict(seed=3, shape=[5], dtype="f64", lo=-2, hi=6),
        out=-2 + 8 * unit(jax.random.key(3), (5,)), exact=True)
    case("uniform_bf16", "uniform", None, [], dict(seed=3, shape=[5], dtype="bf16", lo=0, hi=1),
         out=jnp.asarray(unit(jax.random.key(3), (5,), 24), jnp.bfloat16), exact=True)
    key = jax.random.fold_in(jax.random.key(5), 77)
    case("uniform_fold", "uniform", None, [], dict(seed=5, fold=77, shape=[4], dtype="f64", lo=0, hi=1),
        out=unit(key, (4,)), exact=True)
    key = jax.random.split(jax.random.key(5), 3)[2]
    case("uniform_split", "uniform", None, [], dict(seed=5, split=2, shape=[4], dtype="f64", lo=0, hi=1),
        out=unit(key, (4,)), exact=True)
    key = jax.random.key(11)
    case("bernoulli", "bernoulli", None, [0.3], dict(seed=11, shape=[3, 4]), out=jnp.asarray(unit(key, (3, 4)) < 0.3))
    p = fresh((4,), 0, 1)
    case("bernoulli_each", "bernoulli", None, [Const(p)], dict(seed=11, shape=[3, 4]),
        out=jnp.asarray(unit(key, (3, 4)) < p))
    logits = fresh((3, 4), -2, 2)
    case("categorical", "categorical", None, [Const(logits)], dict(seed=11, axis=1),
        out=jnp.asarray(np.argmax(logits + gumbel(key, (3, 4)), 1)))
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
