"""The golden cases, a module a family. JAX computes in f64, on the CPU, from its first array on."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax

jax.config.update("jax_enable_x64", True)
