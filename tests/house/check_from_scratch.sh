#!/bin/sh
# check_from_scratch.sh PAGE PROGRAM: the C blocks of the page, in order, must be the program (blank
# lines aside), so that what the page shows is what gets compiled and run.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```c$/ { code = 1; next } /^```/ { code = 0 } code && NF' "$1" > "$work/page.c"
awk 'NF' "$2" > "$work/program.c"
if ! diff -u "$work/program.c" "$work/page.c"; then
    echo "the C blocks of $1 are not $2" >&2
    exit 1
fi
# What the page says the program prints is what the example test compares: its last block.
awk '/^```text$/ { code = 1; text = ""; next } /^```/ { code = 0 } code { text = text $0 "\n" }
    END { printf "%s", text }' "$1" \
    > "$work/page.txt"
diff -u "$(dirname "$2")/expected/from_scratch.txt" "$work/page.txt"
