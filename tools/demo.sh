#!/usr/bin/env bash
# Runs the first and the seventh example from build/ and says what to try next.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in build/examples/0[17]_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then
        printf '\n== %s  (source: examples/%s.c)\n' "$program" "$(basename "$program")"
        "$program"
    fi
done
cat << 'TXT'

Try next:
  ls build/examples/                 the other examples; each is one short file in examples/
  build/examples/from_scratch        the idea in a hundred lines: docs/autodiff-from-scratch.md
  less include/cotangent.h           the manual
  make test                          all tests
  make bench                         how fast it is here
  make install PREFIX=$HOME/.local   then: cc prog.c $(pkg-config --cflags --libs cotangent)
TXT
