#!/usr/bin/env python3
"""Products with sparse matrices beside SciPy and PyTorch, taking turns.

usage: bench_csr.py BUILD/bench/csr [ROUNDS [CASE…]]

Prints for each case and dtype the least time of the product a x, and of its gradients by the values
and by x (SciPy has none: its product with the transposed matrix stands for the one by x), and ours
divided by the better of the two. Needs SciPy and PyTorch, both left at their own number of threads.
"""
import subprocess
import sys
import time

import numpy as np
import scipy.sparse
import torch

CASES = {"cora-16": (2708, 13264, 16), "cora-1433": (2708, 13264, 1433), "large-1": (110000, 860000, 1),
         "large-200": (110000, 860000, 200)}


def least(samples, work):
    best = float("inf")
    for _ in range(samples):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return 1e3 * best


def matrix(nodes, entries, dtype):
    random = np.random.default_rng(1)
    a = scipy.sparse.coo_matrix((random.standard_normal(entries), random.integers(0, nodes, (2, entries))),
                                shape=(nodes, nodes)).tocsr()
    a.sort_indices()
    return a.astype(dtype)


def peers(name, dtype, samples):
    nodes, entries, width = CASES[name]
    a = matrix(nodes, entries, dtype)
    x = np.random.default_rng(2).standard_normal((nodes, width)).astype(dtype)
    turned = a.T.tocsr()
    scipy_times = least(samples, lambda: a @ x), least(samples, lambda: turned @ x)
    b = torch.sparse_csr_tensor(torch.from_numpy(a.indptr.astype("int64")), torch.from_numpy(a.indices.astype("int64")),
                                torch.from_numpy(a.data), size=a.shape)
    y = torch.from_numpy(x)
    with torch.no_grad():
        product = least(samples, lambda: b @ y)
    if nodes > 10000:  # PyTorch makes a dense gradient of the matrix
        return scipy_times, (product, float("inf"))
    leaf, dense = b.clone().requires_grad_(), y.clone().requires_grad_()
    z = leaf @ dense
    seeds = z.detach().clone()
    gradients = least(max(1, samples // 10), lambda: torch.autograd.grad(z, (leaf, dense), seeds, retain_graph=True))
    return scipy_times, (product, gradients)


def ours(program, name, samples):
    out = subprocess.run([program, name, str(samples)], check=True, capture_output=True, text=True).stdout
    return {line.split()[1]: (float(line.split()[3]), float(line.split()[6])) for line in out.splitlines()}


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; scipy {scipy.__version__}; ms")
    print(f"{'case':10} dtype {'':9} {'ours':>9} {'scipy':>9} {'torch':>9}  ours / better")
    for name in sys.argv[3:] or CASES:
        _, entries, width = CASES[name]
        samples = 3 if entries * width > 5e7 else 20 if width > 200 else 100
        for short, dtype in (("f32", "float32"), ("f64", "float64")):
            all_times = {"ours": [1e9, 1e9], "scipy": [1e9, 1e9], "torch": [1e9, 1e9]}
            for _ in range(rounds):
                mine = ours(program, name, samples)[short]
                s, t = peers(name, dtype, samples)
                for who, times in (("ours", mine), ("scipy", s), ("torch", t)):
                    all_times[who] = [min(p, q) for p, q in zip(all_times[who], times)]
            for k, what in enumerate(("product", "gradients")):
                m, s, t = (all_times[who][k] for who in ("ours", "scipy", "torch"))
                better = min(s, t) if k == 0 else t
                print(f"{name:10} {short}   {what:9} {m:9.3f} {s:9.3f} {t:9.3f}  {m / better:.2f}", flush=True)


main()
