"""Creation, shapes, positions, cumulative operations, order, selection."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .inputs import Const, DTYPES, fresh
from .writing import case, number, open_file


def creation():
    open_file("creation")
    for d, t in DTYPES.items():
        case(f"zeros_{d}", "zeros", lambda: jnp.zeros((2, 3), t), [], dict(dtype=d, shape=[2, 3]), exact=True)
        case(f"ones_{d}", "ones", lambda: jnp.ones((2,), t), [], dict(dtype=d, shape=[2]), exact=True)
        case(f"full_{d}", "full", lambda: jnp.full((2, 1), 1, t), [], dict(dtype=d, shape=[2, 1], value=1), exact=True)
        case(f"eye_{d}", "eye", lambda: jnp.eye(2, 3, dtype=t), [], dict(dtype=d, rows=2, columns=3), exact=True)
    for d, t in DTYPES.items():
        case(f"full_like_{d}", "full_like", lambda x: jnp.full_like(x, 2), [Const(np.ones((2, 3), t))], dict(value=2),
            exact=True)
    case("full_like_scalar", "full_like", lambda x: jnp.full_like(x, 0.1), [Const(np.array(3.0))], dict(value=0.1),
        exact=True)
    case("full_like_empty", "full_like", lambda x: jnp.full_like(x, 5), [Const(np.zeros((2, 0)))], dict(value=5),
        exact=True)
    case("full_scalar", "full", lambda: jnp.full((), 2.5), [], dict(dtype="f64", shape=[], value=2.5), exact=True)
    case("full_bf16_rounds", "full", lambda: jnp.full((1,), 0.1, jnp.bfloat16), [],
        dict(dtype="bf16", shape=[1], value=0.1), exact=True)
    case("eye_tall", "eye", lambda: jnp.eye(3, 2), [], dict(dtype="f64", rows=3, columns=2), exact=True)
    for d, a, b, s in (("f64", 0, 1, 0.25), ("f64", 1, 0, -0.3), ("f32", 0, 5, 1), ("i64", 0, 7, 2), ("i32", 5, -5, -3),
            ("u8", 0, 4, 1), ("f64", 1, 1, 1)):
        case(f"arange_{d}_{number(a)}_{number(b)}_{number(s)}", "arange", lambda: jnp.arange(a, b, s, dtype=DTYPES[d]),
             [],
             dict(dtype=d, start=a, stop=b, step=s))
    for d, a, b, n in (("f64", 0, 1, 5), ("f64", -1, 2, 7), ("f32", 0, 3, 4), ("f64", 2, 5, 1), ("f64", 0, 1, 0)):
        case(f"linspace_{d}_{number(a)}_{number(b)}_{n}", "linspace", lambda: jnp.linspace(a, b, n, dtype=DTYPES[d]),
             [],
             dict(dtype=d, start=a, stop=b, n=n))


def at_axis(x, axis, s):
    return x[(slice(None),) * (axis % x.ndim) + (s,)]


def shapes():
    open_file("shape")
    x = fresh((2, 3, 4))
    c2 = dict(order=1, exact=True)
    for s in ((24,), (4, 6), (3, -1, 2), (1, 24)):
        case("reshape_" + "x".join(map(str, s)), "reshape", lambda x: jnp.reshape(x, s), [x], dict(shape=s), **c2)
    case("reshape_scalar", "reshape", lambda x: x.reshape(()), [fresh((1, 1))], dict(shape=[]), **c2)
    case("reshape_of_transpose", "reshape", lambda x: x.T.reshape((4, 6)), [x], dict(shape=[4, 6], via="transpose"),
        **c2)
    case("transpose_3", "transpose", lambda x: x.T, [x], **c2)
    case("transpose_1", "transpose", lambda x: x.T, [fresh((3,))], **c2)
    for o in ((1, 0, 2), (2, 0, 1), (0, -1, 1)):
        case("permute_" + "_".join(map(str, o)), "permute", lambda x: jnp.transpose(x, [a % 3 for a in o]), [x],
            dict(axes=o), **c2)
    for s, t in (((3,), (2, 3)), ((2, 1), (2, 3)), ((), (2, 2)), ((1, 3, 1), (2, 2, 3, 2))):
        # sums of up to four small decimals: rounded, so not exact
        case(f"broadcast_to_{len(s)}_{len(t)}", "broadcast_to", lambda x: jnp.broadcast_to(x, t), [fresh(s)],
            dict(shape=t), order=1)
    for a in (0, 1, -1, -2):
        case(f"expand_dims_{a}", "expand_dims", lambda x: jnp.expand_dims(x, a), [fresh((2, 3))], dict(axis=a), **c2)
    case("squeeze_all", "squeeze", lambda x: jnp.squeeze(x), [fresh((1, 3, 1))], dict(axes="all", keep=0), **c2)
    case("squeeze_0", "squeeze", lambda x: jnp.squeeze(x, 0), [fresh((1, 3, 1))], dict(axes=[0], keep=0), **c2)
    case("squeeze_-1", "squeeze", lambda x: jnp.squeeze(x, -1), [fresh((1, 3, 1))], dict(axes=[-1], keep=0), **c2)
    case("concat_0", "concat", lambda *xs: jnp.concatenate(xs, 0), [fresh((2, 3)), fresh((1, 3)), fresh((3, 3))],
        dict(axis=0), **c2)
    case("concat_-1", "concat", lambda *xs: jnp.concatenate(xs, -1), [fresh((2, 3)), fresh((2, 1))], dict(axis=-1),
        **c2)
    case("concat_dtypes", "concat", lambda *xs: jnp.concatenate(xs, 0), [Const([1, 2], "i32"), Const([0.5, 1], "f32")],
        dict(axis=0), **c2)
    case("stack_0", "stack", lambda *xs: jnp.stack(xs, 0), [fresh((2, 3)), fresh((2, 3))], dict(axis=0), **c2)
    case("stack_1", "stack", lambda *xs: jnp.stack(xs, 1), [fresh((2, 3)), fresh((2, 3)), fresh((2, 3))], dict(axis=1),
        **c2)
    case("stack_-1", "stack", lambda *xs: jnp.stack(xs, -1), [fresh((2, 3)), fresh((2, 3))], dict(axis=-1), **c2)
    case("stack_scalars", "stack", lambda *xs: jnp.stack(xs, 0), [fresh(()) for _ in range(4)], dict(axis=0), **c2)
    end = "end"
    for axis, a, b, s in ((0, 0, 1, 1), (1, 1, end, 1), (2, 0, end, 2), (-1, -1, -5, -1), (2, 3, 0, -2),
                          (1, -2, end, 1), (0, 5, 9, 1), (2, 1, -1, 1),
                          (1, -9, 9, 2)):
        case(f"slice_{axis}_{a}_{b}_{s}", "slice", lambda x: at_axis(x, axis, slice(a, None if b == end else b, s)),
             [x],
             dict(axis=axis, start=a, stop=b, step=s), **c2)
    for axis, i in ((0, 1), (1, -1), (2, 0), (-1, 2)):
        case(f"index_{axis}_{i}", "index", lambda x: at_axis(x, axis, i), [x], dict(axis=axis, i=i), **c2)
    for v in (0.0, 1.5):
        case(f"pad_{number(v)}", "pad", lambda x: jnp.pad(x, ((1, 0), (0, 2)), constant_values=v), [fresh((2, 2))],
             dict(before=[1, 0], after=[0, 2], value=v), **c2)
    case("flip_all", "flip", lambda x: jnp.flip(x), [x], dict(axes="all", keep=0), **c2)
    case("flip_1", "flip", lambda x: jnp.flip(x, 1), [x], dict(axes=[1], keep=0), **c2)
    case("flip_0_-1", "flip", lambda x: jnp.flip(x, (0, -1)), [x], dict(axes=[0, -1], keep=0), **c2)


# ---- index ---------------------------------------------------------------------------------------
    case("copy_of_transpose", "copy", lambda x: x.T, [x], dict(via="transpose"), **c2)


def indexing():
    open_file("index")
    x = fresh((3, 4))
    for axis, p in ((0, [2, 0, 2]), (1, [3, -1, 0, 1, 1]), (-1, [[0, 1], [2, 3]]), (0, 1)):
        q = Const(np.array(p), "i64")
        case(f"take_{axis}_{np.ndim(p)}d", "take", lambda x, i: jnp.take(x, i, axis=axis), [x, q], dict(axis=axis))
    case("take_i32_positions", "take", lambda x, i: jnp.take(x, i, axis=0), [x, Const([1, 1], "i32")], dict(axis=0))
    case("take_of_transpose", "take", lambda x, i: jnp.take(x.T, i, axis=0), [x, Const([3, 3, 1], "i64")],
        dict(axis=0, via="transpose"))
    case("take_along_1", "take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1),
        [x, Const([[0, 3], [1, 1], [-1, 2]], "i64")], dict(axis=1))
    case("take_along_0", "take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 0),
        [x, Const([[0, 2, 1, 1]], "i64")], dict(axis=0))
    case("scatter_add_0", "scatter_add", lambda x, i, u: x.at[i].add(u), [x, Const([2, 0, 2], "i64"), fresh((3, 4))],
        dict(axis=0))
    case("scatter_add_1", "scatter_add", lambda x, i, u: x.at[:, i].add(u), [x, Const([1, -1], "i64"), fresh((3, 2))],
        dict(axis=1))
    case("scatter_add_2d", "scatter_add", lambda x, i, u: x.at[i].add(u), [fresh((4,)), Const([[0, 1], [1, 3]], "i64"),
        fresh((2, 2))], dict(axis=0))
    case("scatter_add_i32", "scatter_add", lambda x, i, u: x.at[i].add(u),
        [Const([1, 2, 3], "i32"), Const([0, 0, 2], "i64"), Const([5, 6, 7], "i32")], dict(axis=0))
    for d in ("f64", "f32", "i32", "bool"):
        case(f"one_hot_{d}", "one_hot", lambda i: jax.nn.one_hot(i, 4, dtype=DTYPES[d]),
            [Const([[0, 3], [2, 2]], "i64")], dict(n=4, dtype=d), exact=True)
    case("one_hot_scalar", "one_hot", lambda i: jax.nn.one_hot(i, 3, dtype=jnp.float64), [Const(1, "i32")],
        dict(n=3, dtype="f64"), exact=True)


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
                case(f"{name}_{axis}_{reverse}", name, lambda x: g(x, axis), [x], dict(axis=axis, reverse=reverse),
                    order=3)
        case(f"{name}_transposed", name, lambda x: f(x.T, 0), [x], dict(axis=0, reverse=0, via="transpose"), order=1)
        case(f"{name}_f32", name, lambda x: f(x, 0), [fresh((4,)).astype(np.float32)], dict(axis=0, reverse=0), order=1)
        case(f"{name}_i64", name, lambda x: f(x, 0), [Const([3, -1, 4, 1, -5, 9], "i64")], dict(axis=0, reverse=0))
        case(f"{name}_empty", name, lambda x: f(x, 1), [Const(np.zeros((2, 0)))], dict(axis=1, reverse=0))
    # JAX's own cumprod is an associative scan of products: right at zeros
    case("cumprod_one_zero", "cumprod", lambda x: jnp.cumprod(x), [np.array([0.5, 0.0, 2.0, 3.0])],
        dict(axis=0, reverse=0), order=3)
    case("cumprod_zeros", "cumprod", lambda x: jnp.cumprod(x), [np.array([0.0, 1.5, 0.0, 0.0, 2.0])],
        dict(axis=0, reverse=0), order=3)
    # numpy: int32 and bool are counted in int64, as ours; JAX keeps int32
    case("cumsum_i32", "cumsum", lambda x: jnp.asarray(np.cumsum(np.asarray(x))), [Const([3, -1, 4], "i32")],
        dict(axis=0, reverse=0))
    case("cumsum_bool", "cumsum", lambda x: jnp.asarray(np.cumsum(np.asarray(x))), [Const([True, True, False, True])],
        dict(axis=0, reverse=0))
    # from numpy; at ties JAX shares and ours gives all to the first: tests/test_cumulative.c
    nan = np.array([1.0, np.nan, 3.0])
    for name, f in dict(cummax=np.maximum, cummin=np.minimum).items():
        case(f"{name}_nan", name, lambda x: jnp.asarray(f.accumulate(np.asarray(x))), [Const(nan)],
            dict(axis=0, reverse=0))


def ordering():
    open_file("order")
    x = fresh((3, 4))
    for axis in (0, -1):
        for down in (0, 1):
            case(f"sort_{axis}_{down}", "sort", lambda x: jnp.sort(x, axis=axis, descending=bool(down)), [x],
                dict(axis=axis, descending=down), order=2)
            case(f"argsort_{axis}_{down}", "argsort", lambda x: jnp.argsort(x, axis=axis, stable=True,
                 descending=bool(down)), [Const(x)],
                 dict(axis=axis, descending=down))
    special = np.array([2.0, np.nan, -np.inf, 0.0, -0.0, np.inf, 2.0, -1.0, np.nan, -0.0])
    for down in (0, 1):
        case(f"sort_special_{down}", "sort", lambda x: jnp.sort(x, descending=bool(down)), [Const(special)],
            dict(axis=0, descending=down))
        case(f"argsort_special_{down}", "argsort", lambda x: jnp.argsort(x, stable=True, descending=bool(down)),
            [Const(special)], dict(axis=0, descending=down))
        for d in DTYPES:
            v = Const(np.array([3, 0, 1, 3, 2, 0, 1]), d)
            case(f"argsort_{d}_{down}", "argsort", lambda x: jnp.argsort(x, stable=True, descending=bool(down)), [v],
                dict(axis=0, descending=down))
            case(f"sort_{d}_{down}", "sort", lambda x: jnp.sort(x, descending=bool(down)), [v],
                dict(axis=0, descending=down))
    # ties: the first of equals comes first and has the first place's gradient, in JAX too
    case("sort_ties", "sort", lambda x: jnp.sort(x), [np.array([1.0, 0.5, 1.0, 0.5])], dict(axis=0, descending=0),
        order=1)
    for k, axis in ((1, 1), (3, -1), (0, 1), (4, 1)):
        case(f"topk_{k}", "topk", lambda x: lax.top_k(x, k)[0], [x], dict(k=k, axis=axis))
    case("topk_axis_0", "topk", lambda x: lax.top_k(x.T, 2)[0].T, [x], dict(k=2, axis=0))
    case("topk_long", "topk", lambda x: lax.top_k(x, 3)[0], [fresh((2, 60))], dict(k=3, axis=1), order=1)
    e = np.array([-1.0, 0.0, 0.0, 0.5, 2.0])
    v = np.array([[-2.0, -1.0, 0.0], [0.25, 2.0, np.nan], [3.0, -np.inf, -0.0]])
    for right in (0, 1):
        f = lambda a, v: jnp.searchsorted(a, v, side="right" if right else "left")
        case(f"searchsorted_{right}", "searchsorted", lambda a, v: f(a, v).astype(jnp.int64), [Const(e), Const(v)],
            dict(right=right))
        case(f"searchsorted_nan_{right}", "searchsorted", lambda a,
             v: jnp.asarray(np.searchsorted(np.asarray(a), np.asarray(v), "right" if right else "left")),
             [Const([0.0, 1.0, np.nan]), Const([np.nan, 1.0, 5.0])], dict(right=right))
        case(f"searchsorted_mixed_{right}", "searchsorted", lambda a, v: f(a, v).astype(jnp.int64),
            [Const([1, 3, 5], "i32"), Const([0.5, 3, 5.5])], dict(right=right))
        case(f"searchsorted_u8_{right}", "searchsorted", lambda a, v: f(a, v).astype(jnp.int64),
            [Const([1, 3, 200], "u8"), Const(3, "u8")], dict(right=right))


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
    for label, i in (("rows", [[2], [-1], [0]]), ("elements", [[0, 3], [2, -2], [0, 3]]), ("one", [1, 2]),
            ("grid", [[[0, 0], [1, 1]], [[2, 2], [-3, -4]]])):
        i = np.array(i)
        case(f"gather_{label}", "gather", lambda x, j: x[tuple(jnp.moveaxis(j, -1, 0))], [x, Const(i, "i64")])
    case("gather_none", "gather", lambda x, j: jnp.broadcast_to(x, (2,) + x.shape), [x, Const(np.zeros((2, 0)), "i64")])
    case("gather_deep", "gather", lambda x, j: x[j[:, 0], j[:, 1]],
        [fresh((2, 3, 2)), Const([[1, 2], [0, -1], [1, 2]], "i32")])
    case("scatter_0", "scatter", lambda x, i, u: x.at[i].set(u), [x, Const([2, 0], "i64"), fresh((2, 4))], dict(axis=0))
    case("scatter_1", "scatter", lambda x, i, u: x.at[:, i].set(u), [x, Const([1, -1], "i64"), fresh((3, 2))],
        dict(axis=1))
    case("scatter_2d", "scatter", lambda x, i, u: x.at[i].set(u), [fresh((5,)), Const([[0, 1], [4, 3]], "i64"),
        fresh((2, 2))], dict(axis=0))
    case("scatter_number", "scatter", lambda x, i, u: x.at[:, i].set(u), [x, Const([1, 1], "i64"), 2.5], dict(axis=1))
    case("scatter_scalar", "scatter", lambda x, i, u: x.at[i].set(u), [x, Const([1], "i64"), fresh(())], dict(axis=0))
    # equal positions: the last wins, as when assigning one after the other; the losers leave no
    # trace
    case("scatter_last_wins", "scatter", lambda x, i, u: x.at[jnp.array([1, 3])].set(u[jnp.array([2, 1])]),
         [fresh((4,)), Const([1, 3, 1], "i64"), fresh((3,))], dict(axis=0))
    case("scatter_i32", "scatter", lambda x, i, u: x.at[i].set(u), [Const([1, 2, 3], "i32"), Const([2], "i64"),
        Const([7], "i32")], dict(axis=0))
    m = np.array([True, False, True, True])
    case("compress_1", "compress", lambda x, m: x[:, np.array([0, 2, 3])], [x, Const(m)], dict(axis=1))
    case("compress_0", "compress", lambda x, m: x[np.array([1])], [x, Const([False, True, False])], dict(axis=0))
    case("compress_nothing", "compress", lambda x, m: x[:0], [x, Const([False, False, False])], dict(axis=0))
    for size in (0, 2, 3, 4):
        case(f"compress_to_{size}", "compress_to", lambda x, m: jnp.compress(m, x, 1, size=size, fill_value=1.5),
             [x, Const(m)],
             dict(axis=1, size=size, fill=1.5), order=1)
    w = np.array([[True, False, False, True], [False] * 4, [True, True, False, True]])
    at = np.flatnonzero(w)
    case("masked_select", "masked_select", lambda x, m: x.reshape(-1)[at], [x, Const(w)])
    case("masked_select_rows", "masked_select", lambda x, m: x[np.array([0, 2])], [x, Const([True, False, True])])
    case("masked_select_scalar", "masked_select", lambda x, m: x[None], [x, Const(True)])
