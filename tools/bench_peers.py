"""Our workloads, eager, compiled and native, beside PyTorch eager, torch.compile and JAX jit: keeps
the times in a file of docs/performance, from which tools/bench_page.py writes docs/performance.md.
Called by tools/bench_peers.sh.

Every measurement is a process of its own on the same cores; the systems take turns, round after
round, and the least time of each counts. A file that holds the same machine, revision and number of
threads is added to, so rounds may be taken one by one. """
import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

WORKLOADS = ["mlp_small", "mlp", "mlp_wide", "cnn", "gpt_nano", "gcn_cora", "gcn_cora_sparse", "elementwise", "chain",
    "rosenbrock_hvp", "jac_tall", "deep_ckpt"]
# The workloads that torch_steps.py can compile.
TORCH_COMPILES = {"mlp_small", "mlp", "mlp_wide", "cnn", "gpt_nano", "elementwise"}

ap = argparse.ArgumentParser()
for name in ("bench", "peers", "keep"):
    ap.add_argument("--" + name, required=True)
ap.add_argument("--seconds", type=float, default=2)
ap.add_argument("--rounds", type=int, default=3)
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--only", default="", help="workloads, separated by commas")
ap.add_argument("--systems", default="", help="systems, separated by commas")
ap.add_argument("--revision", default="", help="of the programs, where git cannot tell")
ap.add_argument("--without-products", action="store_true")
a = ap.parse_args()
THREADS = a.threads


def program(name):
    for found in Path(a.bench).rglob(name):
        if found.is_file() and os.access(found, os.X_OK) and "CMakeFiles" not in found.parts:
            return str(found)
    sys.exit(f"bench-peers: {name} is not built in {a.bench}")


def cores():
    return sorted(os.sched_getaffinity(0))[:THREADS]


def run(command, threads, native):
    """The JSON lines of a program on our cores; an error is a line too."""
    pinned = set(cores()[:threads])
    env = {**os.environ, "COTANGENT_NATIVE": "1" if native else "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=env,
        preexec_fn=lambda: os.sched_setaffinity(0, pinned))
    lines = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
    if done.returncode and not lines:
        return [{"error": (done.stderr.strip().splitlines() or ["exit status %d" % done.returncode])[-1]}]
    if done.stderr.strip() and ("WRONG" in done.stderr or native):
        print(done.stderr.strip())
    return lines


OURS, HAND, GEMM = program("workloads"), program("handwritten"), program("gemm")
SECONDS = ["--seconds", str(a.seconds)]


def ours(w, t):
    return [OURS, "--only", w, "--threads", str(t), *SECONDS]


def torch(w, t):
    return [sys.executable, str(Path(a.peers) / "torch_steps.py"), "--threads", str(t), "--only", w, *SECONDS]


SYSTEMS = {
    "eager": ours,
    "compiled": lambda w, t: ours(w + "_compiled", t),
    "native": lambda w, t: ours(w + "_compiled", t),
    "torch": torch,
    "torch.compile": lambda w, t: [*torch(w, t), "--compile"],
    "jax": lambda w, t: [sys.executable, str(Path(a.peers) / "jax_steps.py"), "--only", w, *SECONDS],
    "c": lambda w, t: [HAND, "--only", w, "--threads", str(t), *SECONDS],
}


def systems_of(workload):
    for system in SYSTEMS:
        known = system != "torch.compile" or workload in TORCH_COMPILES
        if known and (not a.systems or system in a.systems.split(",")):
            yield system


def keep_least(times, key, line):
    if "error" in line:
        print(f"{key}: {line['error']}")
    elif "min_s" in line and (key not in times or line["min_s"] < times[key]["min_s"]):
        times[key] = line


def measure(times, workload, jobs):
    """jobs: (name, system, threads); they take turns."""
    for round in range(a.rounds):
        for name, system, threads in jobs:
            print(f"  {workload}: round {round + 1} of {a.rounds}, {name} …", end="\033[K\r" if sys.stderr.isatty()
                else "\n", file=sys.stderr, flush=True)
            for line in run(SYSTEMS[system](workload, threads), threads, system == "native"):
                keep_least(times, f"{workload} {name}", line)


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def about():
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists()
        else "")
    return {"machine": cpu.group(1) if cpu else platform.machine(), "processors": os.cpu_count(), "threads": THREADS,
        "revision": a.revision or command("git", "describe", "--always", "--dirty"),
        "cc": command("cc", "--version").splitlines()[0]}


def scaling(times):
    """What a gradient costs, and what a second thread gives."""
    for name in (*(f"{w}_{what}" for w in ("mlp_small", "mlp", "mlp_wide", "cnn", "gpt_nano")
        for what in ("function", "gradient")), "elementwise_function", "deep_ckpt_function"):
        measure(times, name, [(k, k, THREADS) for k in ("eager", "compiled", "native")
            if k == "eager" or not name.startswith("deep")])
    if THREADS != 2:
        return
    measure(times, "mlp_wide", [("1 thread", "eager", 1), ("2 threads", "eager", 2)])
    measure(times, "elementwise", [("1 thread", "eager", 1), ("by hand, 1", "c", 1), ("2 threads", "eager", 2),
        ("by hand, 2", "c", 2)])
    measure(times, "elementwise_passes", [("by hand, 1", "c", 1), ("by hand, 2", "c", 2)])


def products():
    done = subprocess.run([GEMM, "--threads", str(THREADS), "--seconds", "0.5"], capture_output=True, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, set(cores())))
    return done.stdout.splitlines()


out, told = Path(a.keep), about()
kept = json.loads(out.read_text()) if out.exists() else {}
if any(kept.get(k) != told[k] for k in ("machine", "threads", "revision")):
    kept = {"times": {}}
kept.update(told, date=datetime.date.today().isoformat())
for name in WORKLOADS:
    if a.only and name not in a.only.split(","):
        continue
    measure(kept["times"], name, [(k, k, THREADS) for k in systems_of(name)])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(kept, indent=1) + "\n")
if not a.only:
    scaling(kept["times"])
if not a.without_products:
    kept["products"] = products()
out.write_text(json.dumps(kept, indent=1) + "\n")
print(f"wrote {out}")
