#!/usr/bin/env bash
# Measures three nets under memory limits beside PyTorch, and writes docs/performance/memory.md with
# its pictures: make bench-memory.
#   PEERS_PYTHON   a Python that has torch (.peers/bin/python, which make bench-peers makes);
#                  without one, only ours are measured
#   BENCH_ROUNDS   how often all take turns (3); BENCH_SECONDS how long each measures (2)
#   BENCH_THREADS  how many threads each uses (2)
#   BENCH_NOTE     a sentence for the page: on which machine, how busy
#   TMPDIR         a folder on a disk, for what goes to files (/tmp)
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
python=${PEERS_PYTHON:-.peers/bin/python}
if ! "$python" -c 'import torch' 2> /dev/null; then
    echo "bench-memory: without PyTorch: $python cannot import torch (PEERS_PYTHON names another)"
    python=
fi
exec python3 tools/bench_memory.py --bench "${BUILD:-build}/bench" --to docs/performance --torch "$python" \
    --rounds "${BENCH_ROUNDS:-3}" --seconds "${BENCH_SECONDS:-2}" --threads "${BENCH_THREADS:-2}" \
    --folder "${TMPDIR:-/tmp}" --note "${BENCH_NOTE:-}"
