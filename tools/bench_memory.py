"""Measures three nets under memory limits, ours and PyTorch's side by side, and draws peak against
time: make bench-memory.

    bench_memory.py --bench build/bench --to docs/performance [--torch PYTHON] [--rounds N]
                    [--seconds S] [--threads N] [--folder FOLDER] [--models deep,cnn,gpt]

Every measurement is a process of its own. In a round all take turns; of several rounds the least
time and the largest peak count. Without --torch (a Python that has PyTorch) only ours are measured.
Writes memory.md and a picture for each model to the folder --to, anew after each model of a round,
so that an interrupted run leaves what it has."""
import argparse
import json
import pathlib
import subprocess
import tempfile

PARTS = (50, 30, 20)  # per cent of what the tape, or a run of the program, takes without a limit
UNREACHED = 3  # the status of bench/memory where no run of a program keeps to the limit
HERE = pathlib.Path(__file__).parent


def run(command):
    """What it measured; None: no run of the program keeps to the limit."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    if done.returncode == UNREACHED:
        return None
    done.check_returncode()
    return json.loads(done.stdout.splitlines()[-1])


def limited(a, series, label, command, key):
    """[(series, label, command)]: without a limit, then within parts of what that takes, without
    a folder and with one."""
    usual = ["--seconds", a.seconds, "--threads", a.threads]
    whole = run(command + ["--seconds", 0, "--threads", a.threads])[key]
    ways = [(series, label or "no limit", command + usual)]
    for part in PARTS:
        within = command + usual + ["--limit", whole * part // 100]
        name = f"{label}, {part} %" if label else f"{part} %"
        ways.append((series, name, within))
        ways.append((series + " and a folder", name + ", a folder", within + ["--folder", a.folder]))
    return ways


def ways_of(a, model):
    """[(series, label, command)]: ours without a limit first."""
    usual = ["--seconds", a.seconds, "--threads", a.threads]
    ours = [a.bench / "memory", "--model", model]
    ways = limited(a, "Cotangent, a limit", "", ours, "tape_peak")
    ways += limited(a, "Cotangent, a program, a limit", "a program", ours + ["--as", "program"], "run_bytes")
    if model == "deep":
        some = ["--seconds", max(a.seconds, 0.1), "--threads", a.threads]  # 0: it times nothing
        for label, name in (("checkpoints every 8", "deep_ckpt"),
                            ("a program within 48 activations", "deep_ckpt_compiled")):
            ways.append(("Cotangent, " + label, label, [a.bench / "workloads", "--only", name] + some))
    if a.torch:
        torch = [a.torch, HERE / "bench_memory_torch.py", "--model", model] + usual
        ways.append(("PyTorch", "PyTorch", torch))
        ways.append(("PyTorch", "PyTorch, checkpoints", torch + ["--checkpoint"]))
    return ways


def measure(model, ways, best):
    """All ways of a model once; `best` has the least seconds and the largest peak of each label."""
    for _, label, command in ways:
        got = run(command)
        if not got:
            continue
        seconds, peak = best.get(label, (float("inf"), 0))
        best[label] = min(seconds, got["min_s"]), max(peak, got["peak_bytes"])
        print(f"{model}: {label}: {got['min_s']:.3f} s, {got['peak_bytes'] / 2**20:.0f} MiB", flush=True)


def write(a, measured):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
        for model, rows in measured:
            for series, _, seconds, peak in rows:
                table.write(f"{model}\t{series}\t{peak}\t{seconds}\n")
        table.flush()
        subprocess.run([str(a.bench / "memory"), "--draw", table.name, str(a.to)], check=True)
    (a.to / "memory.md").write_text(page(a, measured))


def page(a, measured):
    lines = ["# Peak against time", "",
             "Written by `make bench-memory` (tools/bench_memory.py). Three nets, a step with all gradients, f32, "
             f"{a.threads} threads, without an optimiser: as they are, under limits of",
             "50, 30 and 20 % of what the tape takes without one, with a folder beside the limit, the same as compiled "
             "programs (of what a run takes; a limit that cannot be",
             "reached is left out), and PyTorch without and with `torch.utils.checkpoint`. The peak is that of the "
             "process, weights and gradients in it, above what it had when",
             "it began. Every measurement is a process of its own; all take turns, and the least time and the largest "
             "peak count. " + a.note, ""]
    for model, rows in measured:
        lines += [f"## {model}", "", f"![peak against time](memory-{model}.svg)", "",
                  "| | peak, MiB | seconds | against ours without a limit |", "| --- | --- | --- | --- |"]
        usual = rows[0][2:]
        lines += [f"| {label} | {peak / 2**20:.0f} | {seconds:.3f} | {peak / usual[1]:.2f} of the memory, "
                  f"{seconds / usual[0]:.2f} of the time |" for _, label, seconds, peak in rows]
        lines.append("")
    return "\n".join(lines)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bench", type=pathlib.Path, required=True)
    arguments.add_argument("--to", type=pathlib.Path, required=True)
    arguments.add_argument("--torch", default="")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=2)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--folder", default="/tmp")
    arguments.add_argument("--models", default="deep,cnn,gpt")
    arguments.add_argument("--note", default="")
    a = arguments.parse_args()
    names = a.models.split(",")
    ways = {model: ways_of(a, model) for model in names}
    best = {model: {} for model in names}
    for _ in range(a.rounds):
        for model in names:
            measure(model, ways[model], best[model])
            write(a, [(m, [(series, label) + best[m][label] for series, label, _ in ways[m] if label in best[m]])
                      for m in names if best[m]])


main()
