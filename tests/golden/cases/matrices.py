"""Products of matrices, sums of products, Fourier transforms, factorisations."""
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .inputs import Const, fresh
from .writing import COUNT, case, open_file


def matrices():
    open_file("matrices")
    for s, t in (((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (2, 3, 2)),
                 ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)),
                 ((2, 1, 2, 3), (3, 3, 2)), ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((2, 0), (0, 3)), ((1, 1), (1, 1))):
        label = "x".join(map(str, s)) + "_" + "x".join(map(str, t))
        case(f"matmul_{label}", "matmul", jnp.matmul, [fresh(s), fresh(t)])
    sw = lambda a: jnp.swapaxes(a, -1, -2)
    for ta, tb in ((1, 0), (0, 1), (1, 1)):
        a, b = fresh((3, 2) if ta else (2, 3)), fresh((4, 3) if tb else (3, 4))
        case(f"matmul_transposed_{ta}{tb}", "matmul", lambda a, b: jnp.matmul(sw(a) if ta else a, sw(b) if tb else b),
            [a, b], dict(ta=ta, tb=tb))
        a, b = fresh((2, 3, 2) if ta else (2, 2, 3)), fresh((2, 2, 3) if tb else (2, 3, 2))
        case(f"matmul_batched_transposed_{ta}{tb}", "matmul", lambda a,
            b: jnp.matmul(sw(a) if ta else a, sw(b) if tb else b), [a, b], dict(ta=ta, tb=tb))
    case("matmul_i32", "matmul", jnp.matmul, [Const([[1, 2], [3, 4]], "i32"), Const([[5, 6], [7, 8]], "i32")])
    case("matmul_i32_f32", "matmul", jnp.matmul, [Const([[1, 2], [3, 4]], "i32"), Const([[0.5, 6], [7, 8]], "f32")])
    case("dot", "dot", jnp.dot, [fresh((5,)), fresh((5,))], order=3)
    case("outer", "outer", jnp.outer, [fresh((3,)), fresh((2,))], order=3)


def einsums():
    open_file("einsum")
    for s, *shapes in (("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ba,ca", (2, 3), (4, 3)),
                       ("ij->ji", (2, 3)), ("ij->", (2, 3)),
                       ("ij->j", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->ji", (2, 2, 3)), ("iii->i",
                       (2, 2, 2)), ("i,i", (4,), (4,)),
                       ("i,j", (3,), (2,)), ("i,i->i", (4,), (4,)), ("bhqd,bkhd->bhqk", (2, 2, 3, 2),
                       (2, 4, 2, 2)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
                       ("...ij->...ji", (2, 2, 3)), ("...i,i...->...", (2, 3), (3, 2)), ("i...,i...->i...", (2, 1, 3),
                       (2, 2, 1)),
                       ("ij,jk,kl->il", (2, 3), (3, 2), (2, 3)), ("i,ij,j->", (2,), (2, 3), (3,)), ("ab,bc,ca->abc",
                       (2, 3), (3, 2), (2, 2)),
                       ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3)), ("a,b,c->cab", (2,), (3,), (2,)), (",ij,->j", (),
                       (2, 3), ()), ("Ab,bA", (2, 3), (3, 2)),
                       ("zB,Bz->z", (2, 3), (3, 2)), ("ij,k->ijk", (2, 0), (3,)), ("ij,jk->ik", (2, 0),
                       (0, 3)), ("ijk,ilm,njm,nlk,abc->", (2, 3, 2), (2, 2, 3), (2, 3, 3), (2, 2, 2), (1, 2, 1))):
        label = re.sub("[^A-Za-z]+", "_", s.replace("...", "_dots_"))
        case(f"einsum_{label}_{COUNT['einsum']}", "einsum", lambda *xs: jnp.einsum(s, *xs), [fresh(x) for x in shapes],
            dict(subscripts=s))
    case("einsum_f32", "einsum", lambda a, b: jnp.einsum("ij,kj->ik", a, b),
         [fresh((2, 3)).astype(np.float32), fresh((2, 3)).astype(np.float32)],
         dict(subscripts="ij,kj->ik"))
    case("einsum_i32", "einsum", lambda a, b: jnp.einsum("ij,jk->ik", a, b),
         [Const([[1, 2], [3, 4]], "i32"), Const([[5, 6], [7, 8]], "i32")],
         dict(subscripts="ij,jk->ik"))
    case("einsum_i32_sum", "einsum", lambda a: jnp.einsum("ij->i", a), [Const([[1, 2], [3, 4]], "i32")],
        dict(subscripts="ij->i"))
    case("einsum_of_transpose", "einsum", lambda a, b: jnp.einsum("ij,jk->ki", a.T, b), [fresh((3, 2)), fresh((3, 2))],
        dict(subscripts="ij,jk->ki", via="transpose"))
    for a, b, p, q in (((2, 3, 4), (4, 3, 2), [1, 2], [1, 0]), ((2, 3), (3, 2), [1], [0]),
                       ((2, 3), (2, 3), [0, 1], [0, 1]), ((2,), (3,), [], []),
                       ((2, 3, 2), (2, 2, 3), [0, -1], [1, 0])):
        case(f"tensordot_{'_'.join(map(str, a + b))}", "tensordot", lambda x, y: jnp.tensordot(x, y, axes=(p, q)),
            [fresh(a), fresh(b)], dict(a=p, b=q))


def fourier():
    open_file("fourier")
    value = lambda x: lax.complex(x[..., 0], x[..., 1])
    pairs = lambda z: jnp.stack([z.real, z.imag], -1)
    length = lambda n: n or None
    for name, f in (("fft", jnp.fft.fft), ("ifft", jnp.fft.ifft)):
        for shape, n, axis in (((1, 2), 0, 0), ((2, 2), 0, -1), ((3, 2), 0, -1), ((8, 2), 0, -1), ((7, 2), 0, -1),
                               ((15, 2), 0, -1), ((2, 11, 2), 0, -1),
                               ((5, 2, 2), 0, 0), ((6, 2, 2), 4, 0), ((2, 3, 2), 5, 1), ((2, 3, 2, 2), 0, 1), ((20, 2),
                               0, -1)):
            case(f"{name}_{'_'.join(map(str, shape))}_{n}_{axis}", name, lambda x: pairs(f(value(x), length(n), axis)),
                [fresh(shape)], dict(n=n, axis=axis))
        x = fresh((6, 2)).astype(np.float32)
        case(f"{name}_f32", name, lambda x: pairs(f(value(x))), [x], dict(n=0, axis=-1))
    for shape, n, axis in (((1,), 0, 0), ((2,), 0, -1), ((3,), 0, -1), ((8,), 0, -1), ((7,), 0, -1), ((14,), 0, -1),
                           ((2, 9), 0, -1), ((6, 2), 4, 0),
                           ((2, 3), 5, 1), ((2, 3), 6, 1), ((2, 4, 2), 0, 1)):
        case(f"rfft_{'_'.join(map(str, shape))}_{n}_{axis}", "rfft", lambda x: pairs(jnp.fft.rfft(x, length(n), axis)),
            [fresh(shape)], dict(n=n, axis=axis))
    for shape, n, axis in (((2, 2), 0, -1), ((1, 2), 1, -1), ((5, 2), 0, -1), ((5, 2), 9, -1), ((2, 4, 2), 7, -1),
                           ((4, 2, 2), 0, 0), ((4, 2), 4, -1),
                           ((3, 2), 8, 0), ((2, 8, 2), 0, 1)):
        case(f"irfft_{'_'.join(map(str, shape))}_{n}_{axis}", "irfft", lambda x: jnp.fft.irfft(value(x), length(n),
            axis), [fresh(shape)], dict(n=n, axis=axis))
    # no scale: its inputs have no error
    case("rfft_i32", "rfft", lambda x: pairs(jnp.fft.rfft(x.astype(jnp.float64))), [Const([1, -2, 3, 5], "i32")],
        dict(n=0, axis=0), ulps=16)
    from jax.scipy.signal import fftconvolve
    for mode in ("full", "same", "valid"):
        for a, b, axis in (((5,), (3,), 0), ((2, 6), (2, 4), 1), ((4, 2), (3, 2), 0)):
            case(f"fft_convolve_{mode}_{'_'.join(map(str, a + b))}", "fft_convolve", lambda x,
                 h: fftconvolve(x, h, mode=mode, axes=[axis]),
                 [fresh(a), fresh(b)], dict(mode=mode, axis=axis))


def linear_algebra():
    """Signs of vectors are ours: the first element of (to a thousandth) the largest magnitude is
    positive."""
    open_file("linear_algebra")
    la = jnp.linalg
    near = lambda shape, d=3.0: np.round(fresh(shape) + d * np.eye(shape[-2], shape[-1]), 4)
    apart = lambda shape: np.round(fresh(shape, -0.5, 0.5)
        + np.eye(shape[-2], shape[-1]) * (1.5 * np.arange(1, shape[-1] + 1)), 4)
    # jax.numpy takes one unit for a whole solution, ours and theirs are off by a few for each
    # unknown
    wide = dict(ulps=64)
    # an element of a unit vector is as exact as the vector, not as itself: some here are a
    # thousandth of the largest
    unit = dict(ulps=4096)
    for s, t in (((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 2, 2), (2, 2, 1)), ((2, 2), (3, 2, 2)),
                 ((2, 1, 2, 2), (3, 2, 1)), ((1, 1), (1, 1)), ((0, 0), (0, 2)),
                 ((2, 2, 2), (2,))):
        label = "x".join(map(str, s)) + "_" + "x".join(map(str, t))
        case(f"solve_{label}", "solve", la.solve, [near(s), fresh(t)], **wide)
    case("solve_pivots", "solve", la.solve, [np.array([[0.0, 2, 1], [1, 0, 3], [4, 1, 0]]), fresh((3, 2))], **wide)
    for flags in range(16):
        upper, trans, ones, right = (bool(flags >> k & 1) for k in range(4))
        case(f"triangular_{flags}", "triangular_solve", lambda a, b: lax.linalg.triangular_solve(
            a, b, left_side=not right, lower=not upper, transpose_a=trans, unit_diagonal=ones), [
                near((3, 3)), fresh((2, 3) if right else (3, 2))],
            dict(flags=flags), **wide)
    for s in ((3, 3), (2, 2, 2), (1, 1)):
        label = "x".join(map(str, s))
        case(f"inv_{label}", "inv", la.inv, [near(s)], **wide)
        # where jax knows that there is no second one
        case(f"det_{label}", "det", la.det, [near(s)], order=1 if s == (1, 1) else 2, **wide)
        case(f"logabsdet_{label}", "logabsdet", lambda a: la.slogdet(a)[1], [near(s, -3.0)], **wide)
        case(f"sign_{label}", "det_sign", lambda a: la.slogdet(a)[0], [near(s, -3.0)], exact=True)
        case(f"cholesky_{label}", "cholesky", la.cholesky, [near(s)], **wide)
        case(f"matrix_exp_{label}", "matrix_exp", jax.scipy.linalg.expm, [fresh(s)], **wide)
    # four squarings double an error each time
    case("matrix_exp_squared", "matrix_exp", jax.scipy.linalg.expm, [fresh((3, 3), -8, 8)], ulps=256)
    for s in ((3, 3), (4, 2), (2, 3, 2)):
        label = "x".join(map(str, s))
        case(f"qr_q_{label}", "qr_q", lambda a: la.qr(a)[0], [near(s)], **wide)
        case(f"qr_r_{label}", "qr_r", lambda a: la.qr(a)[1], [near(s)], **wide)
    case("qr_r_wide", "qr_r", lambda a: (lambda q, r: jnp.concatenate([r, q.T @ a[:, 2:]], 1))(*la.qr(a[:, :2])),
        [near((2, 4))], **wide)
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
        # the normal equations square the condition
        case("lstsq_" + "x".join(map(str, s + t)), "lstsq", shortest, [near(s), fresh(t)], ulps=256)
    case("solve_f32", "solve", la.solve, [Const([[4, 1], [2, 3]], "f32"), Const([[1, 2], [3, 5]], "f32")], **wide)
