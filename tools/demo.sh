#!/usr/bin/env bash
# Runs the first and the seventh example from build/ and says what to try next. Colours only on a
# terminal.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi

show() { # program title
    printf '\n%s== %s%s  %sexamples/%s.c%s\n\n' "$bold" "$2" "$off" "$dim" "$1" "$off"
    "build/examples/$1" | sed 's/^./  &/'
}
show 01_first_gradient 'A function of two numbers and its gradient'
show 07_gcn_karate 'A network on a graph: who goes with whom when a club splits?'

cat << TXT

${bold}== Try next${off}

  less examples/README.md            the other examples; each is one short file
  build/examples/06_mlp              train a small network
  build/examples/08_life             what the library says when a program goes wrong
  build/examples/from_scratch        the idea in a hundred lines: docs/autodiff-from-scratch.md
  make web                           a page that steps through a tape: build-web/cotangent.html
  less include/cotangent.h           the manual
  make test                          all tests
  make bench                         how fast it is here
  make install PREFIX=\$HOME/.local   then: cc prog.c \$(pkg-config --cflags --libs cotangent)
TXT
