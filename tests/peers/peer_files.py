"""Our files of tensors are read by safetensors and NumPy, and theirs by us, without a bit changed.

    peer_files.py BUILD        needs: numpy safetensors
"""
import ctypes
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file
from safetensors import safe_open


def command(build, *words):
    done = subprocess.run([f"{build}/cotangent", *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def value(build, source):
    """The elements that the command reads from a file, through its own printing of numbers."""
    return np.array(command(build, "eval", "x*1", f"x=@{source}", "--json")["value"])


def theirs_to_ours(build, folder):
    rng = np.random.default_rng(3)
    tensors = {
        "f64": rng.standard_normal((3, 5)),
        "f32": rng.standard_normal((2, 3, 4)).astype(np.float32),
        "f16": rng.standard_normal(7).astype(np.float16),
        "i64": rng.integers(-(2**53), 2**53, 9),
        "i32": rng.integers(-(2**31), 2**31, 4, dtype=np.int32),
        "u8": rng.integers(0, 255, (2, 2), dtype=np.uint8),
        "one": np.array(0.1),
        "fortran": np.asfortranarray(rng.standard_normal((4, 6))),
    }
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, f"{folder}/their.safetensors")
    np.savez(f"{folder}/their.npz", **tensors)
    np.savez_compressed(f"{folder}/packed.npz", **tensors)
    count = 0
    for name, x in tensors.items():
        np.save(f"{folder}/{name}.npy", x)
        np.save(f"{folder}/big.npy", x.astype(x.dtype.newbyteorder(">")))
        for source in (f"{folder}/{name}.npy", f"{folder}/big.npy", f"{folder}/their.npz:{name}",
                       f"{folder}/packed.npz:{name}", f"{folder}/their.safetensors:{name}"):
            read = value(build, source)
            assert np.array_equal(read.reshape(x.shape), x.astype(read.dtype)), (source, read, x)
            count += 1
    return count


def ours_to_theirs(build, folder):
    """What a trained model leaves: its tensors by name, and the texts beside them."""
    subprocess.run([f"{build}/cotangent", "train", "gcn", "--steps", "3", "--quiet", "--checkpoint", f"{folder}/run"],
                   check=True, capture_output=True)
    path = f"{folder}/run/model.safetensors"
    tensors = load_file(path)
    assert {k: v.shape for k, v in tensors.items()} == {"gc1.weight": (34, 16), "gc2.weight": (16, 2)}, tensors
    with safe_open(path, "np") as file:
        assert file.metadata() == {"model": "gcn", "width": "16"}, file.metadata()
    for name, x in tensors.items():
        assert x.dtype == np.float32 and np.isfinite(x).all() and np.abs(x).max() > 0
        assert np.array_equal(value(build, f"{path}:{name}").reshape(x.shape), x.astype(np.float64))
    # written again by them, it is the same model
    pathlib.Path(f"{folder}/again").mkdir()
    save_file(tensors, f"{folder}/again/model.safetensors", {"model": "gcn", "width": "16"})
    ours, again = (command(build, "predict", f"{folder}/{run}", "karate", "--json") for run in ("run", "again"))
    assert ours == again, (ours, again)
    return len(tensors)


class Shape(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_int), ("dim", ctypes.c_int64 * 16)]


class Array(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("shape", Shape), ("size", ctypes.c_int64), ("data", ctypes.c_void_p)]


DTYPES = ["float64", "float32", None, "float16", "int64", "int32", "uint8", "bool"]  # cot_dtype


def saved_by_the_library(build, folder):
    library = ctypes.CDLL(f"{build}/libcotangent.so")
    rng = np.random.default_rng(4)
    xs = [(rng.standard_normal((2, 3)) * 3).astype(name) for name in DTYPES if name] + [np.array(0.5), np.zeros((0, 4))]
    names = [f"x{k}" for k in range(len(xs))]
    arrays = [Array(DTYPES.index(x.dtype.name), Shape(x.ndim, (ctypes.c_int64 * 16)(*x.shape)), x.size, x.ctypes.data)
              for x in xs]
    why = ctypes.create_string_buffer(500)
    for file, n in (("our.safetensors", len(xs)), ("our.npz", len(xs)), ("our.npy", 1)):
        called = (ctypes.c_char_p * n)(*[name.encode() for name in names[:n]])
        status = library.cot_file_save(f"{folder}/{file}".encode(), n, called, (Array * n)(*arrays[:n]), None, why, 500)
        assert status == 0, why.value
        read = load_file(f"{folder}/{file}") if file.endswith("s") else np.load(f"{folder}/{file}")
        for name, x in zip(names[:n], xs):
            y = read if file.endswith("npy") else read[name]
            assert y.dtype == x.dtype and y.shape == x.shape and np.array_equal(y, x), (file, name, y, x)
    return 2 * len(xs) + 1


def main(build):
    with tempfile.TemporaryDirectory() as folder:
        read = theirs_to_ours(build, folder)
        written = ours_to_theirs(build, folder) + saved_by_the_library(build, folder)
        print(f"{read} arrays of theirs are read as they are, {written} tensors of ours too")


main(sys.argv[1])
