#!/usr/bin/env bash
# Runs our workloads and those of PyTorch and JAX on the same cores, taking turns, and writes
# docs/performance.md: make bench-peers.
#   PEERS_PYTHON   a Python that has torch, jax and numpy; otherwise a virtual environment .peers is
#                  made (needs the network, some GB)
#   PEERS          the folder of torch_steps.py and jax_steps.py (COT_SHARED_DATA/../peers)
#   BENCH_SECONDS  how long each program measures a workload (2); BENCH_ROUNDS how often they take
#                  turns (3)
#   BENCH_THREADS  how many threads each uses (2)
#   BENCH_NAME     the file of docs/performance in which the times are kept (the processor's name
#                  and the number of threads): the page shows all files that are there
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
build=${BUILD:-build}
data=${COT_SHARED_DATA:-$(sed -n 's/^COT_SHARED_DATA:[^=]*=//p' "$build/CMakeCache.txt" 2> /dev/null || true)}
peers=${PEERS:-$data/../peers}
needs=(torch==2.13.0 jax jaxlib numpy)

if [ ! -f "$peers/torch_steps.py" ] || [ ! -f "$peers/jax_steps.py" ]; then
    echo "bench-peers: skipped: torch_steps.py and jax_steps.py are not in $peers (PEERS names another folder)"
    exit 0
fi

python=${PEERS_PYTHON:-.peers/bin/python}
if ! "$python" -c 'import torch, jax, numpy' 2> /dev/null; then
    if [ -n "${PEERS_PYTHON:-}" ]; then
        echo "bench-peers: $PEERS_PYTHON cannot import torch, jax and numpy" >&2
        exit 1
    fi
    echo "bench-peers: making the virtual environment .peers with ${needs[*]}"
    if ! python3 -m venv .peers || ! .peers/bin/pip install --progress-bar on "${needs[@]}"; then
        echo "bench-peers: skipped: pip could not install ${needs[*]} (no network?);" \
            "PEERS_PYTHON names a Python that has them"
        exit 0
    fi
fi
threads=${BENCH_THREADS:-2}
name=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2> /dev/null | head -n 1 | tr -cs 'A-Za-z0-9\n' '-')
name=${BENCH_NAME:-${name:-machine}-$threads}
"$python" tools/bench_peers.py --bench "$build/bench" --peers "$peers" --seconds "${BENCH_SECONDS:-2}" \
    --rounds "${BENCH_ROUNDS:-3}" --threads "$threads" --keep "docs/performance/$name.json"
exec "$python" tools/bench_page.py docs/performance docs/performance.md
