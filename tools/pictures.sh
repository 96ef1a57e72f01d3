#!/usr/bin/env bash
# tools/pictures.sh: the two pictures of README.md, made again: the page in the middle of a sweep,
# and a fit. Run by `make pictures`, which builds both before.
set -euo pipefail
cd "$(dirname "$0")/.."
to=docs/pictures
mkdir -p "$to"
data=$(mktemp)
trap 'rm -f "$data"' EXIT

# A plant that grows to 12 cm: a logistic curve, with errors that are always the same.
awk 'BEGIN {
    print "day,height"
    for (day = 0; day <= 20; day++) {
        error = 0.35 * sin(12.9898 * (day + 1)) + 0.25 * cos(78.233 * (day + 1))
        printf "%d,%.2f\n", day, 12 / (1 + exp(-(day - 9) / 2.2)) + error
    }
}' > "$data"
build/cotangent fit 'top/(1 + exp(-(day - middle)/width))' "$data" top=10 middle=8 width=1 --y height \
    --plot "$to/fit.svg" > /dev/null
python3 tools/pictures.py build-web/cotangent.html "$to/page.png"
ls -l "$to"
