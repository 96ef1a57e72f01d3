#!/bin/sh
# check_adbench.sh PROGRAM DATA: the program adbench as a user meets it: for every problem and style
# one JSON object and a file with the right derivative, and exit codes that tell wrong usage from a
# bad file. DATA, the reference data, may be absent.
set -eu
program=$1
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "check_adbench: $*" >&2
    exit 1
}

# same A B: two files of float64 agree: |x - y| / max(1, |x| + |y|) < 1e-8 everywhere
same() {
    for f in "$1" "$2"; do od -An -v -t f8 "$f" | tr -s ' ' '\n' | grep . > "$f.text" || fail "$f is empty"; done
    paste "$1.text" "$2.text" | awk '
        function abs(v) { return v < 0 ? -v : v }
        NF != 2 || $1 ~ /nan|inf/ { bad = 1; exit }
        { d = abs($1 - $2); s = abs($1) + abs($2); if (d >= 1e-8 * (s > 1 ? s : 1)) { bad = 1; exit } }
        END { exit bad }'
}

# is_report FILE PROBLEM STYLE: one line, one JSON object with the promised keys
is_report() {
    [ "$(wc -l < "$1")" -eq 1 ] || fail "more than one line: $(cat "$1")"
    if command -v python3 > /dev/null; then
        python3 - "$@" << 'PY' || fail "not the promised JSON: $(cat "$1")"
import json, sys
r = json.load(open(sys.argv[1]))
assert (r["problem"], r["style"]) == (sys.argv[2], sys.argv[3])
assert all(r[k] > 0 for k in ("objective_ms", "derivative_ms", "ratio", "peak_bytes"))
assert "file" in r and "objective" in r and ("lean_ratio" in r) == r["problem"].startswith("hand")
PY
    else
        head="{\"problem\": \"$2\", \"file\": \".*\", \"style\": \"$3\", "
        grep -q "^$head.*\"ratio\": [0-9.e+-]*, \"peak_bytes\": [0-9]*.*}\$" "$1" ||
            fail "not the promised JSON: $(cat "$1")"
    fi
}

# derive PROBLEM FILE STYLE OUT
derive() {
    "$program" "$1" "$2" --style "$3" --out "$4" --seconds 0 > "$work/report" || fail "$1 $2 --style $3 failed"
    is_report "$work/report" "$1" "$3"
}

for problem in gmm ba bafull lstm hand hand_complicated; do
    mkdir "$work/$problem"
    "$program" generate $problem 3 "$work/$problem/in.txt" || fail "generate $problem failed"
    styles="hand scalar fused tensor compiled"
    case $problem in ba*) styles="$styles sparse" ;; esac
    for style in $styles; do
        derive $problem "$work/$problem/in.txt" $style "$work/$problem/$style.bin"
        same "$work/$problem/hand.bin" "$work/$problem/$style.bin" || fail "$problem: style $style is not what hand is"
    done
done

if [ -d "$data" ]; then
    compared=0
    while read -r problem path; do
        [ -f "$data/$path.txt" ] || continue
        derive "$problem" "$data/$path.txt" scalar "$work/out.bin"
        cp "$data/$path.J.bin" "$work/want.bin"
        same "$work/want.bin" "$work/out.bin" || fail "$path: not the reference derivative"
        compared=$((compared + 1))
    done << 'LIST'
gmm gmm_test
bafull bafull_n7_m50_p200
lstm lstm_l2_c1024
hand hand_simple_small/hand1_t26_c100
hand_complicated hand_complicated_small/hand1_t26_c100
LIST
    echo "compared with $compared reference files in $data"
else
    echo "skipped the reference files: no folder $data"
fi

# refuses CODE ARGUMENT...: this exit code, nothing on stdout, something on stderr
refuses() {
    want=$1
    shift
    code=0
    "$program" "$@" > "$work/out" 2> "$work/err" || code=$?
    [ "$code" -eq "$want" ] || fail "exit code $code, not $want, for: $*"
    [ ! -s "$work/out" ] && [ -s "$work/err" ] || fail "a refusal belongs on stderr: $*"
}
good=$work/gmm/in.txt
refuses 2
refuses 2 nonsense "$good"
refuses 2 gmm
refuses 2 gmm "$good" "$good"
refuses 2 gmm "$good" --style nonsense
refuses 2 gmm "$good" --style
refuses 2 gmm "$good" --seconds -1
refuses 2 gmm "$good" --nonsense 1
refuses 2 generate gmm 1
refuses 2 generate gmm x "$work/x.txt"
refuses 3 gmm "$work/absent.txt"
refuses 3 lstm "$good"
refuses 3 gmm "$good" --seconds 0 --out "$work/absent/out.bin"
refuses 3 generate gmm 1 "$work/absent/in.txt"
"$program" --help | grep -q '^usage: adbench' || fail "no help"
