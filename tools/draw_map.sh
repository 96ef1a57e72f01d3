#!/bin/sh
# draw_map.sh: writes docs/map.dot and draws docs/map.svg. Arrows that follow from others are left
# out; a last line says of which map.dot the picture is, which a test compares.
set -eu
cd "$(dirname "$0")/.."
tools/map.sh > docs/map.dot
{
    tred docs/map.dot | dot -Tsvg
    echo "<!-- of map.dot, cksum $(cksum < docs/map.dot) -->"
} > docs/map.svg
