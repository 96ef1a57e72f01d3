"""Our workloads beside PyTorch eager and JAX jit: prints the ratios and writes docs/performance.md.
Called by tools/bench_peers.sh.

Every measurement is a process of its own on the same cores; the systems take turns, round after
round, and the least time of each counts. What stands between the two `notes` lines of the page is
written by hand and kept. """
import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

TARGETS = {"mlp_small": 0.2, "mlp": 1.0, "mlp_wide": 1.0, "cnn": 1.1, "gpt_nano": 1.0, "elementwise": 0.5,
    "rosenbrock_hvp": 0.7, "jac_tall": 0.5}
NOTES = "<!-- notes: written by hand, kept by make bench-peers -->"
THREADS = 2

ap = argparse.ArgumentParser()
for name in ("bench", "peers", "output"):
    ap.add_argument("--" + name, required=True)
ap.add_argument("--seconds", type=float, default=2)
ap.add_argument("--rounds", type=int, default=3)
a = ap.parse_args()


def program(name):
    for found in Path(a.bench).rglob(name):
        if found.is_file() and os.access(found, os.X_OK) and "CMakeFiles" not in found.parts:
            return str(found)
    sys.exit(f"bench-peers: {name} is not built in {a.bench}")


def cores():
    return sorted(os.sched_getaffinity(0))[:THREADS]


def run(command, threads=THREADS):
    """The JSON lines of a program on our cores; an error is a line too."""
    pinned = set(cores()[:threads])
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, pinned))
    lines = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
    if done.returncode and not lines:
        return [{"error": (done.stderr.strip().splitlines() or ["exit status %d" % done.returncode])[-1]}]
    if done.stderr.strip() and "WRONG" in done.stderr:
        print(done.stderr.strip())
    return lines


OURS, HAND, GEMM = program("workloads"), program("handwritten"), program("gemm")
SECONDS = ["--seconds", str(a.seconds)]
SYSTEMS = {
    "ours": lambda w, t=THREADS: [OURS, "--only", w, "--threads", str(t), *SECONDS],
    "c": lambda w, t=THREADS: [HAND, "--only", w, "--threads", str(t), *SECONDS],
    "torch": lambda w, t=THREADS: [sys.executable, str(Path(a.peers) / "torch_steps.py"), "--threads", str(t), "--only",
    w, *SECONDS],
    "jax": lambda w, t=THREADS: [sys.executable, str(Path(a.peers) / "jax_steps.py"), "--only", w, *SECONDS],
}


def measure(workload, jobs):
    """{job: its line with the least min_s}; jobs: {name: (system, threads)}. They take turns."""
    best = {}
    for round in range(a.rounds):
        for job, (system, threads) in jobs.items():
            print(f"  {workload}: round {round + 1} of {a.rounds}, {job} …", end="\033[K\r" if sys.stderr.isatty()
                else "\n", file=sys.stderr, flush=True)
            for line in run(SYSTEMS[system](workload, threads), threads):
                if "min_s" in line and (job not in best or line["min_s"] < best[job]["min_s"]):
                    best[job] = line
    return best


def verdict(good):
    return "met" if good else "MISSED"


def ms(line):
    return f"{line['min_s'] * 1e3:.4g}" if line else "-"


def ratio(x, y):
    return x["min_s"] / y["min_s"] if x and y else None


def text(r):
    return "-" if r is None else f"{r:.2f}"


def say(line):
    print(line, flush=True)
    page.append(line)


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions(found):
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists()
        else "")
    gemm = subprocess.run([GEMM, "--seconds", "0"], capture_output=True, text=True).stdout.splitlines()
    return [
        f"- Machine: {cpu.group(1) if cpu else platform.machine()}, {len(cores())} of {os.cpu_count()} "
        f"processors used, {platform.system()} {platform.release()}",
        f"- Date: {datetime.date.today().isoformat()}; revision "
        f"{command('git', 'describe', '--always', '--dirty')}; {command('cc', '--version').splitlines()[0]}",
        "- " + "; ".join(sorted({x["system"] for x in found})),
        f"- OpenBLAS: {gemm[0].split('; ', 1)[1] if gemm else 'not run'}",
    ]


def workloads():
    found, missed = [], 0
    say("| workload | ours, ms | PyTorch eager, ms | JAX jit, ms | C by hand, ms | ours / PyTorch | target | | ours "
        "/ JAX | ours / C |")
    say("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, target in TARGETS.items():
        best = measure(name, {k: (k, THREADS) for k in ("ours", "torch", "jax", "c")})
        found += best.values()
        ours, torch, jax, c = (best.get(k) for k in ("ours", "torch", "jax", "c"))
        r = ratio(ours, torch)
        good = r is not None and r <= target
        missed += not good
        say(f"| `{name}` | {ms(ours)} | {ms(torch)} | {ms(jax)} | {ms(c)} | {text(r)} | ≤ {target} | "
            f"{verdict(good) if ours else 'not there'} | "
            f"{text(ratio(ours, jax))} | {text(ratio(ours, c))} |")
        firsts = [x["first"] for x in (ours, torch) if x]
        if len(firsts) == 2 and name not in ("elementwise",) and abs(firsts[0] / firsts[1] - 1) > 1e-5:
            say(f"\n{name}: WRONG: our first step gave {firsts[0]}, PyTorch's {firsts[1]}\n")
    say("")
    say(f"{len(TARGETS) - missed} of {len(TARGETS)} targets met. `first` of every workload, the loss of its first "
        f"step, was compared with its known value.")
    return found


def scaling():
    say("\n## Scaling and gradients\n")
    say("| what | measured | target | |")
    say("| --- | --- | --- | --- |")
    f, g = measure("mlp_wide_function", {"ours": ("ours", 2)}).get("ours"), measure("mlp_wide_gradient",
        {"ours": ("ours", 2)}).get("ours")
    r = ratio(g, f)
    say(f"| `mlp_wide`: gradient / function | {text(r)} | ≤ 3.1 | {verdict(r is not None and r <= 3.1)} |")
    wide = measure("mlp_wide", {"1 thread": ("ours", 1), "2 threads": ("ours", 2)})
    r = ratio(wide.get("1 thread"), wide.get("2 threads"))
    say(f"| `mlp_wide`: 1 to 2 threads | {text(r)}x | ≥ 1.8x | {verdict(r is not None and r >= 1.8)} |")
    both = measure("elementwise", {"1 thread": ("ours", 1), "by hand, 1": ("c", 1), "2 threads": ("ours", 2),
        "by hand, 2": ("c", 2)})
    r, h = ratio(both.get("1 thread"), both.get("2 threads")), ratio(both.get("by hand, 1"), both.get("by hand, 2"))
    passes = measure("elementwise_passes", {"by hand, 1": ("c", 1), "by hand, 2": ("c", 2)})
    p = ratio(passes.get("by hand, 1"), passes.get("by hand, 2"))
    say(f"| `elementwise`: 1 to 2 threads | {text(r)}x, a hand-threaded loop, fused, {text(h)}x; one that makes a "
        f"pass an operation {text(p)}x | ≥ 95 % of the fused one | "
        f"{verdict(r is not None and h is not None and r >= 0.95 * h)} |")


def products():
    say("\n## Matrix products against OpenBLAS's own threads\n")
    say("```")
    done = subprocess.run([GEMM, "--threads", str(THREADS), "--seconds", "0.5"], capture_output=True, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, set(cores())))
    for line in done.stdout.splitlines():
        say(line)
    say("```")


def kept_notes(path):
    old = path.read_text() if path.exists() else ""
    parts = old.split(NOTES)
    return parts[1].strip("\n") if len(parts) == 3 else ""


page = []
out = Path(a.output)
found = workloads()
scaling()
products()
head = ["# Performance", "",
    "Written by `make bench-peers` from one full run; [bench/README.md](../bench/README.md) says what the workloads "
    "are. A whole step each: forward, loss,",
        "backward and, where the workload has one, the optimiser. The least of several times, all systems "
        "taking turns on the same cores. Times do not", "travel; ratios mostly do.", "",
        *versions(found), "", "## Workloads", ""]
out.write_text("\n".join(head + page + ["", "## Where a target is missed", "", NOTES, kept_notes(out), NOTES, ""]))
print(f"wrote {out}")
