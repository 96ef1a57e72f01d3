#!/usr/bin/env python3
"""Makes the golden cases beside this file: what JAX (and PyTorch, where it has the convention we
share) computes for every operation of the library. tests/rules/test_golden.c reads them.

    python3 -m venv .golden
    .golden/bin/pip install jax==0.10.2 jaxlib==0.10.2 numpy torch==2.13.0
    # a few minutes; names of topics (see main) make only those
    .golden/bin/python tests/golden/make_golden.py

PyTorch is imported by the topics that compare with it, JAX is enough for the others: `elementwise`,
for example. PyTorch's wheels for the CPU, without some GB of CUDA, are at
https://download.pytorch.org/whl/cpu (pip's --index-url).

The inputs come from a counter, not from a library's generator, so a second run writes the same
files (up to the last bits of another version of the libraries). The topics are functions in cases/,
a module a family; cases/writing.py writes what they ask for.

The format, one file a topic, one case a block:

    case NAME                     op NAME                       the function cot_NAME
    attr KEY=NUMBER,NUMBER …      axes, shapes, dtypes by name; absent when there are none
    in    DTYPE SHAPE : values    an operand, differentiated    SHAPE 2,3; a single number is ()
    const DTYPE SHAPE : values    an operand that is not
    number VALUE | integer VALUE  a plain number as operand
    out   DTYPE SHAPE : values    the result
    ct    : values                a cotangent of the result
    grad K : values               of operand K (counted over all operands), vector-Jacobian product
                                  with ct
    tan K : values                a tangent of operand K
    jvp   : values                the derivative along the tangents
    hvp K : values                the derivative of grad K along the tangents
    third K : values              the derivative of hvp K along the tangents
    orders : values               f(x), f'(x), f''(x), … of a function of one number
    ~     : scales                how wide an error of one unit in every intermediate makes the line
                                  above; see spread()
    end

`exact` as an attribute asks for equality; ulps=U replaces the default number of units.

expr.txt has whole expressions instead (tests/expr/test_expr_golden.c): `text EXPRESSION` with \\n
for a new line, and operands by name.

Where the library deliberately differs from JAX (and what stands here instead):
  bool + bool          a logical or in both; left out of the promotion table all the same, as are -,
                       * of bools.
  sum, prod of u8      JAX: uint64, which we do not have. Ours: i64. The case's dtype is i64.
  clamp on its ends    jnp.clip halves, lax.clamp gives nothing to anyone. Ours: strictly inside to
                       x, else to the bound that won. The values of x's gradient agree with
                       lax.clamp and are kept.
  int / int, sqrt(int) JAX: f32 unless an i64 takes part. Ours, as NumPy's: f64. Computed here in
                       f64.
  abs'(0)              JAX: 1. Ours and PyTorch's: 0. From torch.
  pow(x, 0.0) at 0     JAX: NaN as derivative for a float exponent, 0 for an integer. Ours and
                       PyTorch's: 0 for both. The orders of x^n for a float n are those of an
                       integer n; both operands moving is from torch.
  leaky_relu'(0)       JAX: 1. Ours and PyTorch's: the slope. From torch.
  hard_sigmoid'(±3)    JAX: half. Ours and PyTorch's: 0. From torch.
  norm'(0)             JAX: NaN. Ours and PyTorch's: 0. From torch.
  gelu, silu, mish (-inf)  JAX: NaN (-inf · 0). Ours: the limit, -0. Left out.
  digamma(±0)          JAX: NaN. Ours, as SciPy's: ∓inf. Left out; at -0.5 JAX loses seven bits.
                       test_special has the exact values.
  atanh, sinh, cosh    JAX loses six bits near 0.4 (atanh) and eight at 700 (sinh, cosh), where it
                       takes exp(x - log 2): written with log1p, and from torch.
  hypot', atan2' (0,0) JAX: NaN. Ours: 0 (a zero wins). Left out.
  where(x > 0, log x)  JAX: NaN at 0, because 0 · inf. Ours: 0 (a zero wins). Left out here, tested
                       elsewhere.
  one_hot(-1)          JAX: a row of zeros. Ours: the last class. Left out.
  positions too large  JAX clips or fills. Ours: an error. Left out.
  cummax, cummin       at ties JAX shares. Ours: all to the first met. Left out.
  cumsum of i32        JAX: i32. Ours, as NumPy's and as sum: i64. From numpy.
"""
import os
import sys

from cases import arrays, convolution, corners, dtypes, elementwise, expressions
from cases import matrices, networks, reductions, training
from cases.inputs import SEED
from cases.writing import COUNT, HERE, OUT


def main():
    common = [elementwise.elementwise, elementwise.special, elementwise.integers, elementwise.broadcast, corners.powers,
              corners.kinks,
              dtypes.promotion, dtypes.narrow, dtypes.casts, reductions.reductions, arrays.shapes, arrays.indexing,
              matrices.matrices,
              networks.networks, arrays.creation]
    families = [[arrays.cumulating, arrays.ordering, arrays.arranging, arrays.selecting],
                [matrices.einsums, matrices.fourier],
                [training.normalisation, training.losses,
                training.random], [networks.attention], [matrices.linear_algebra],
                [convolution.convolution], [expressions.expressions]]
    # Each topic has its own inputs, whatever the others do: a family counts on from where the
    # common ones end.
    topics = list(enumerate(common)) + [(len(common) + k, topic) for family in families for k,
        topic in enumerate(family)]
    wanted = sys.argv[1:]
    for k, topic in topics:
        SEED[0] = 1000 * (k + 1)
        if not wanted or topic.__name__ in wanted:
            topic()
    OUT[0].close()
    for name, n in COUNT.items():
        print(f"{name:12} {n:4} cases {os.path.getsize(os.path.join(HERE, name + '.txt')):7} bytes")


main()
