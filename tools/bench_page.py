"""Writes docs/performance.md from the files of docs/performance, one for each machine and number of
threads that tools/bench_peers.py has measured. What stands between the two `notes` lines of the
page is written by hand and kept.

    bench_page.py FOLDER PAGE """
import json
import sys
from pathlib import Path

# At most this often the time of the best peer in the same run.
TARGETS = {"mlp_small": 0.3, "mlp": 0.85, "mlp_wide": 0.95, "cnn": 0.8, "gpt_nano": 0.75, "elementwise": 0.5,
    "chain": 0.2, "rosenbrock_hvp": 0.8, "jac_tall": 0.6, "deep_ckpt": None, "gcn_cora": None, "gcn_cora_sparse": None}
BY_HAND = 1.15  # and this often the time of C by hand
NOTES = "<!-- notes: written by hand, kept by make bench-peers -->"
OURS, PEERS = ("eager", "compiled", "native"), ("torch", "torch.compile", "jax")
HEAD = """# Performance

Written by `make bench-peers`; [bench/README.md](../bench/README.md) says what the workloads are.
A whole step each: forward, loss, backward and, where the workload has one, the optimiser. The least
of several times, all systems taking turns on the same cores. Times do not travel; ratios mostly do.
The best of our three ways to run counts against the best peer of the same run; native code is
compiled before it is measured.
"""


def ms(line):
    return f"{line['min_s'] * 1e3:.4g}" if line else "-"


def mb(line):
    return f"{line['peak_bytes'] / 1e6:.4g}" if line and line.get("peak_bytes") else "-"


def ratio(x, y):
    return x["min_s"] / y["min_s"] if x and y else None


def text(r):
    return "-" if r is None else f"{r:.2f}"


def verdict(r, most):
    return "" if r is None or most is None else "met" if r <= most else "**missed**"


def least(times, name, systems):
    found = [times[f"{name} {s}"] for s in systems if f"{name} {s}" in times]
    return min(found, key=lambda x: x["min_s"]) if found else None


COLUMNS = ("workload", "eager, ms", "compiled", "native", "PyTorch", "torch.compile", "JAX jit",
    "C by hand", "ours / best peer", "target", "", "ours / C", "",
    "peak MB: eager, compiled, PyTorch, C")


def row(cells):
    return f"| {' | '.join(cells)} |"


def workloads(times):
    yield row(COLUMNS)
    yield row(["---"] * len(COLUMNS))
    for name, target in TARGETS.items():
        at = [times.get(f"{name} {s}") for s in (*OURS, *PEERS, "c")]
        if not any(at):
            continue
        best, c = least(times, name, OURS), at[-1]
        peer, hand = ratio(best, least(times, name, PEERS)), ratio(best, c)
        yield row([f"`{name}`", *(ms(x) for x in at), text(peer),
            str(target or "none"), verdict(peer, target), text(hand), verdict(hand, BY_HAND),
            ", ".join(mb(at[k]) for k in (0, 1, 3, 6))])


def quotients(times):
    def of(x, y):
        return ratio(times.get(x), times.get(y))

    yield "", ""
    trained = ("mlp_small", "mlp", "mlp_wide", "cnn", "gpt_nano")
    for name, what, most in (*((w, f"{w}_gradient", 3.0) for w in trained),
        ("elementwise", "elementwise", 2.5), ("deep_ckpt", "deep_ckpt", 4.0)):
        found = [(way, of(f"{what} {way}", f"{name}_function {way}")) for way in OURS]
        told = [f"{way} {text(r)} ({verdict(r, most)})" for way, r in found if r]
        if told:
            yield f"`{name}`: gradient / function, at most {most}", ", ".join(told)
    compiled = times.get("gpt_nano compiled", {}).get("compile_s")
    if compiled:
        yield ("`gpt_nano`: compiling the step",
            f"{compiled * 1e3:.0f} ms, at most 50: {verdict(compiled, 0.05)}")
    r = of("mlp_wide 1 thread", "mlp_wide 2 threads")
    if r:
        yield "`mlp_wide`: 1 to 2 threads", f"{text(r)}x"
    r, h = of("elementwise 1 thread", "elementwise 2 threads"), \
        of("elementwise by hand, 1", "elementwise by hand, 2")
    if r and h:
        yield "`elementwise`: 1 to 2 threads", f"{text(r)}x; by hand, fused, {text(h)}x"


def section(kept):
    yield f"\n## {kept['machine']}, {kept['threads']} threads of {kept['processors']}\n"
    names = sorted({x["system"] for x in kept["times"].values() if "system" in x})
    yield f"{kept['date']}, revision {kept['revision']}, {kept['cc']}; {', '.join(names)}.\n"
    yield from workloads(kept["times"])
    for what, told in quotients(kept["times"]):
        yield f"- {what}: {told}" if what else ""
    if kept.get("products"):
        yield "\nMatrix products against OpenBLAS's own threads:\n\n```"
        yield from kept["products"]
        yield "```"


def kept_notes(path):
    parts = (path.read_text() if path.exists() else "").split(NOTES)
    return parts[1].strip("\n") if len(parts) == 3 else ""


def main(folder, page):
    lines = [HEAD.rstrip("\n")]
    for file in sorted(Path(folder).glob("*.json")):
        lines += section(json.loads(file.read_text()))
    notes = kept_notes(Path(page))
    Path(page).write_text("\n".join([*lines, "", "## Where a target is missed", "",
        NOTES, notes, NOTES, ""]))
    print(f"wrote {page}")


main(*sys.argv[1:])
