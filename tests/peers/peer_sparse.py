"""Sparse matrices that SciPy saved are values of expressions, with SciPy's numbers.

    peer_sparse.py BUILD        needs: numpy scipy
"""
import json
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse as sp


def command(build, *words):
    done = subprocess.run([f"{build}/cotangent", *words, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def text(x):
    return "[" + ",".join(text(v) if v.ndim else repr(float(v)) for v in x) + "]"


def compare(build, path, a, rng):
    dense = a.toarray().astype(float)
    x, y = rng.integers(-8, 8, a.shape[1]) / 4, rng.integers(-8, 8, a.shape[0]) / 4
    given = [f"A=@{path}", f"x={text(x)}", f"y={text(y)}"]
    # the numbers have few digits, so that sums are exact in any order
    assert np.array_equal(command(build, "eval", "A @ x + 0*y", *given)["value"], dense @ x), path
    assert np.array_equal(command(build, "eval", "y @ A + 0*x", *given)["value"], y @ dense), path
    got = command(build, "grad", "y @ (A @ x)", *given)["grad"]
    csr = sp.csr_matrix(a)
    csr.sum_duplicates()
    entries = got["A"]
    assert entries["shape"] == list(a.shape) and entries["row_start"] == csr.indptr.tolist(), path
    assert entries["col"] == csr.indices.tolist(), path
    rows = np.repeat(np.arange(a.shape[0]), np.diff(csr.indptr))
    assert np.array_equal(entries["values"], y[rows] * x[csr.indices]), path
    assert np.array_equal(got["x"], y @ dense), path


def main():
    build, count = sys.argv[1], 0
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.npz"
        for rows, columns, n in ((1, 1, 1), (3, 4, 5), (40, 7, 60), (5, 90, 200)):
            places = rng.integers(0, rows, n), rng.integers(0, columns, n)
            coo = sp.coo_matrix((rng.integers(-32, 32, n) / 8, places), shape=(rows, columns))
            unsorted = sp.csr_matrix(coo)
            unsorted.indices = unsorted.indices[::-1].copy() if rows == 1 else unsorted.indices
            for a in (coo, coo.tocsr(), coo.tocsc(), sp.csr_array(coo), unsorted, coo.tocsr().astype(np.float32),
                      (8 * coo).tocsr().astype(np.int16)):
                for compressed in (False, True):
                    sp.save_npz(path, a, compressed=compressed)
                    compare(build, path, a, rng)
                    count += 1
    print(f"{count} matrices of SciPy's, their products and gradients")


if __name__ == "__main__":
    main()
