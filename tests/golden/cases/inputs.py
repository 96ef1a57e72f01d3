"""The operands of the cases: numbers from a counter, dtypes by name, operands that are not
differentiated."""
import jax.numpy as jnp
import numpy as np

DTYPES = {"f64": jnp.float64, "f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16, "i64": jnp.int64,
          "i32": jnp.int32,
          "u8": jnp.uint8, "bool": jnp.bool_}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


def uniform(seed, shape, lo=-1.0, hi=1.0):
    """Element i depends on (seed, i) only: splitmix64 of the counter."""
    n = int(np.prod(shape)) if len(shape) else 1
    m = (1 << 64) - 1
    out = []
    for i in range(n):
        z = ((seed << 32) + i + 1) * 0x9E3779B97F4A7C15 & m
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & m
        z = (z ^ z >> 27) * 0x94D049BB133111EB & m
        z ^= z >> 31
        out.append(lo + (hi - lo) * ((z >> 11) * 2.0 ** -53))
    return np.array(out).reshape(shape)


SEED = [0]


def fresh(shape, lo=-1.0, hi=1.0):
    """Short decimals: exact in the text, and the files stay small."""
    SEED[0] += 1
    return np.asarray(np.round(uniform(SEED[0], shape, lo, hi), 4))


class Const:
    """An operand that is not differentiated."""

    def __init__(self, a, dtype=None):
        self.a = jnp.asarray(a, dtype=DTYPES[dtype] if dtype else None)
