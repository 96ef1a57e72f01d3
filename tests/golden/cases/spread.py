"""How wide an error of one unit in every intermediate result makes a result: the scales on the
lines "~"."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jcore

STEP = 2.0 ** -24
# Results of these are exact: chosen, moved or counted, not computed.
EXACT = {"select_n", "broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "pad", "concatenate", "rev",
         "gather", "copy",
         "convert_element_type", "neg", "abs", "sign", "max", "min", "reduce_max", "reduce_min", "clamp", "floor",
         "ceil", "round",
         "stop_gradient", "expand_dims", "iota", "dynamic_slice", "copy_p", "symbolic_zeros", "argmax", "argmin",
         "split",
         "complex", "real", "imag", "conj"}
# One step to JAX, but terms that may cancel inside: each term is moved.
SUMS = {"reduce_sum", "dot_general", "scatter-add", "scatter_add", "cumsum", "reduce_prod", "fft"}


def closed(j):
    return (j.jaxpr, j.consts) if hasattr(j, "consts") else (j, [])


def evaluate(jaxpr, consts, args, noise):
    """Runs a jaxpr, passing every computed float through noise()."""
    env = {}

    def read(v):
        return v.val if isinstance(v, jcore.Literal) else env[v]

    for v, a in list(zip(jaxpr.constvars, consts)) + list(zip(jaxpr.invars, args)):
        env[v] = a
    for eqn in jaxpr.eqns:
        xs = [read(v) for v in eqn.invars]
        name = eqn.primitive.name
        inner = next((eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params), None)
        if inner is not None and name not in ("while", "scan", "cond"):
            j, c = closed(inner)
            outs = evaluate(j, c, xs, noise)
        else:
            if name in SUMS:
                xs = [noise(x) for x in xs]
            outs = eqn.primitive.bind(*xs, **eqn.primitive.get_bind_params(eqn.params))
            outs = outs if eqn.primitive.multiple_results else [outs]
            if name not in EXACT:
                outs = [noise(o) for o in outs]
        for v, o in zip(eqn.outvars, outs):
            env[v] = o
    return [read(v) for v in jaxpr.outvars]


def spread(f, args, values, inputs, samples=12):
    """The scale of the rounding error of each element of each result of f, in units of the relative
    precision: every intermediate result is moved by a random relative amount of up to STEP, and the
    largest move of the result, over STEP, is the scale. `inputs`: move the operands as well, for
    functions that are one step here and several inside."""
    j = jax.make_jaxpr(f)(*args)
    rng = np.random.default_rng(1)

    def noise(a):
        if jnp.issubdtype(jnp.result_type(a), jnp.complexfloating):
            a = np.asarray(a)
            return lax.complex(noise(a.real), noise(a.imag))
        if not jnp.issubdtype(jnp.result_type(a), jnp.floating):
            return a
        a = np.asarray(a)
        return jnp.asarray(a * (1 + STEP * rng.choice([-1.0, 1.0], a.shape)))

    scales = [np.abs(np.asarray(v, dtype=np.float64)) for v in values]
    for _ in range(samples):
        moved = evaluate(j.jaxpr, j.consts, [noise(a) if inputs else a for a in args], noise)
        for k, (m, v) in enumerate(zip(moved, values)):
            with np.errstate(all="ignore"):
                d = np.abs(np.asarray(m, dtype=np.float64) - np.asarray(v, dtype=np.float64)) / STEP
            scales[k] = np.maximum(scales[k], np.where(np.isfinite(d), d, 0))
    return scales
