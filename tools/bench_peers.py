"""Our workloads beside PyTorch eager, torch.compile and JAX jit: prints the ratios and writes
docs/performance.md. Called by tools/bench_peers.sh.

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

# At most this often the time of the best peer in the same run.
TARGETS = {"mlp_small": 0.3, "mlp": 0.85, "mlp_wide": 0.95, "cnn": 0.8, "gpt_nano": 0.75, "elementwise": 0.5,
    "chain": 0.2, "rosenbrock_hvp": 0.8, "jac_tall": 0.6, "deep_ckpt": None}
BY_HAND = 1.15  # and this often the time of C by hand
# The workloads that torch_steps.py can compile.
COMPILED = {"mlp_small", "mlp", "mlp_wide", "cnn", "gpt_nano", "elementwise"}
NOTES = "<!-- notes: written by hand, kept by make bench-peers -->"

ap = argparse.ArgumentParser()
for name in ("bench", "peers", "output"):
    ap.add_argument("--" + name, required=True)
ap.add_argument("--seconds", type=float, default=2)
ap.add_argument("--rounds", type=int, default=3)
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--only", default="", help="workloads, separated by commas")
a = ap.parse_args()
THREADS = a.threads


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
    "compile": lambda w, t=THREADS: [*SYSTEMS["torch"](w, t), "--compile"],
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


def mb(line):
    return f"{line['peak_bytes'] / 1e6:.4g}" if line and line.get("peak_bytes") else "-"


def workloads():
    found, missed, targets = [], 0, 0
    say("| workload | ours, ms | PyTorch eager | torch.compile | JAX jit | C by hand | ours / best peer | target | | "
        "ours / C | peak MB: ours, PyTorch, C |")
    say("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, target in TARGETS.items():
        if a.only and name not in a.only.split(","):
            continue
        systems = [k for k in ("ours", "torch", "compile", "jax", "c") if k != "compile" or name in COMPILED]
        best = measure(name, {k: (k, THREADS) for k in systems})
        found += best.values()
        ours, torch, compiled, jax, c = (best.get(k) for k in ("ours", "torch", "compile", "jax", "c"))
        peers = [x for x in (torch, compiled, jax) if x]
        r = ratio(ours, min(peers, key=lambda x: x["min_s"])) if peers else None
        good = target is None or (r is not None and r <= target)
        missed, targets = missed + (not good), targets + (target is not None)
        say(f"| `{name}` | {ms(ours)} | {ms(torch)} | {ms(compiled)} | {ms(jax)} | {ms(c)} | {text(r)} | "
            f"{'none' if target is None else f'≤ {target}'} | {'' if target is None else verdict(good)} | "
            f"{text(ratio(ours, c))} | {mb(ours)}, {mb(torch)}, {mb(c)} |")
        firsts = [x["first"] for x in (ours, torch) if x]
        if len(firsts) == 2 and name not in ("elementwise",) and abs(firsts[0] / firsts[1] - 1) > 1e-5:
            say(f"\n{name}: WRONG: our first step gave {firsts[0]}, PyTorch's {firsts[1]}\n")
    say("")
    say(f"{targets - missed} of {targets} targets met; against C by hand every workload should take at most "
        f"{BY_HAND} times as long. `first` of every workload, the loss of its first step, was compared with its "
        f"known value. Peaks are resident memory above that at the start.")
    return found


def gradient(name, function, whole, target):
    """A line: what a gradient costs, in evaluations of its function."""
    f, g = (measure(x, {"ours": ("ours", THREADS)}).get("ours") for x in (function, whole))
    r = ratio(g, f)
    say(f"| `{name}`: gradient / function | {text(r)} | ≤ {target} | {verdict(r is not None and r <= target)} |")


def scaling():
    say("\n## Scaling and gradients\n")
    say("| what | measured | target | |")
    say("| --- | --- | --- | --- |")
    gradient("mlp_wide", "mlp_wide_function", "mlp_wide_gradient", 3.0)
    gradient("deep_ckpt", "deep_ckpt_function", "deep_ckpt", 4.0)
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
