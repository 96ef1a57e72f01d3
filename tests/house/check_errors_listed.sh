#!/bin/sh
# Every error of the tape, the drivers, elementwise operations and in-place writes has a test that
# compares its text, and every public function is called with things that are not values.
#
# usage: check_errors_listed.sh PROJECT_ROOT
#
# A test compares whole sentences, where the format's %s and %d have become text. So a format counts
# as tested when its longest piece between two conversions appears in a string of some test.
set -eu
cd "$1"
missing=$(mktemp)
trap 'rm -f "$missing"' EXIT

# String literals, joined where C joins them, one line each.
joined() { tr '\n' ' ' | sed 's/\\"/\x01/g; s/"[[:space:]\\]*"//g' | tr '\001' "'"; }
literals() { cat "$@" | joined; }

tested=$(mktemp)
trap 'rm -f "$missing" "$tested"' EXIT
find tests -name "*.c" | LC_ALL=C sort | xargs cat | joined > "$tested"

held() {
    literals src/tape/*.c src/diff/*/*.c src/optim/*.c src/inspect/*.c src/ops/elementwise/elementwise.c \
        src/ops/array/inplace.c src/ops/elementwise/nary.c
}

held |
    grep -o 'cot__fail([^"]*COT_[A-Z]*, *"[^"]*"' | sed 's/^[^"]*"//; s/"$//' | sort -u |
    while IFS= read -r format; do
        piece=$(printf '%s\n' "$format" | sed 's/^\[[^]]*\] *//; s/%[-0-9.]*[lz]*[a-z]/\n/g; s/%%/%/g' |
            awk '{ if (length($0) > length(best)) best = $0 } END { print best }')
        grep -qF -- "$piece" "$tested" || printf 'no test has the error: %s\n' "$format" >> "$missing"
    done

count=$(held | grep -o 'cot__fail([^"]*COT_[A-Z]*, *"' | wc -l)
[ "$count" -ge 40 ] ||
    printf 'only %s errors found in the sources: does this script still read them?\n' "$count" >> "$missing"

# The public functions that exist (elementwise ones are called through their table).
elementwise=$(sed -n 's/^ *\(UNARY\|BINARY\|TERNARY\) *(\([a-z0-9_]*\),.*/\2/p' src/rules/rules.def)
for name in $(sed -n 's/^COT_API .*[ *]\(cot_[a-z0-9_]*\)(.*/\1/p' include/*.h | sort -u); do
    printf '%s\n' "$elementwise" | grep -qx "${name#cot_}" && continue
    grep -qE "^[a-z].*[ *(]$name\)?\(" -r src --include=*.c || continue # declared, not written yet
    # what is no value for a function of programs, files or layers is known there
    grep -qE "[^a-z_]$name\)?\(" tests/tape/test_errors.c $(find tests/compile -name "test_*.c") \
        tests/data/test_*.c tests/nn/test_*.c ||
        printf 'tests/tape/test_errors.c does not call %s with things that are not values\n' "$name" >> "$missing"
done

cat "$missing"
[ ! -s "$missing" ]
