#!/usr/bin/env bash
# Runs the benchmarks that were built, all or those named: tools/bench.sh [NAME...]; bench/README.md
# says how to read them.
#   BUILD            another build folder (build)
#   COT_SHARED_DATA  where the data sets are (what the build was configured with); without them
#                    adbench gets small random ones
#   BENCH_THREADS    threads of the workloads and matrix products (2)
#   BENCH_SECONDS    the shortest batch that adbench times (0.1); all of it takes some 25 times that
#                    for each line
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
build=${BUILD:-build}
folder=$build/bench
data=${COT_SHARED_DATA:-$(sed -n 's/^COT_SHARED_DATA:[^=]*=//p' "$build/CMakeCache.txt" 2> /dev/null || true)}
seconds=${BENCH_SECONDS:-0.1}
styles=(hand scalar fused tensor compiled)
status=0
ran=0

wanted() { # NAME MINE...: is it among the names asked for, if any were?
    local name=$1
    shift
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]
}

# ---- adbench: a table over instances and styles --------------------------------------------------

# The target for a ratio: a multiple of what the fastest tape reaches with the same instance, or,
# for native code, of what the best tool reaches (bench/README.md); empty for none.
target_of() { # INSTANCE STYLE
    awk -v name="$1" -v style="$2" -v native="${COTANGENT_NATIVE:-0}" 'BEGIN {
        best["gmm_d2_K5"] = 1.67; best["gmm_d10_K25"] = 1.84; best["lstm_l2_c1024"] = 2.5
        best["ba1_n49_m7776_p31843"] = 6
        best["hand_simple_small/hand1_t26_c100"] = 0.94; best["hand_complicated_small/hand1_t26_c100"] = 2
        if (style == "compiled" && native == 1) { if (name in best) print best[name]; exit }
        tape["gmm_d2_K5"] = 5.2; tape["gmm_d10_K25"] = 8.6; tape["lstm_l2_c1024"] = 2.8
        tape["ba1_n49_m7776_p31843"] = 34
        tape["hand_simple_small/hand1_t26_c100"] = 31; tape["hand_complicated_small/hand1_t26_c100"] = 34
        # sparse: one Jacobian of the whole, measured, not held against tapes of one observation
        if (!(name in tape) || style == "hand" || style == "sparse") exit
        gradient = name ~ /^(gmm|lstm)/ # the others are Jacobians
        if (style == "tensor" && gradient) { if (name ~ /^gmm/) print 5; exit }
        print tape[name] * (style == "scalar" && gradient ? 2 : 1)
    }'
}

problem_of() { # INSTANCE
    case $1 in
    gmm*) echo gmm ;;
    bafull*) echo bafull ;;
    ba*) echo ba ;;
    lstm*) echo lstm ;;
    hand_complicated*) echo hand_complicated ;;
    hand*) echo hand ;;
    esac
}

list_instances() { # FOLDER: every instance in it, without folder and .txt, in the problems' order
    local problem
    for problem in gmm ba lstm hand_simple hand_complicated; do
        (cd "$1" && find . -name '*.txt' -path "./$problem*" \
            ! -name '*.f.txt' ! -name '*.f3.txt' ! -name '*.csr.txt' ! -path '*/model/*') |
            sed 's/^\.\///; s/\.txt$//' | sort -V
    done
}

make_instances() { # FOLDER: one small random instance of each problem
    local problem
    mkdir -p "$1/hand_simple" "$1/hand_complicated"
    for problem in gmm ba bafull lstm; do "$folder/adbench" generate $problem 1 "$1/${problem}_random.txt"; done
    "$folder/adbench" generate hand 1 "$1/hand_simple/random.txt"
    "$folder/adbench" generate hand_complicated 1 "$1/hand_complicated/random.txt"
}

number() { sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" <<< "$report"; }

adbench_line() { # FOLDER INSTANCE STYLE
    local target verdict='' lean
    # before the run: one sees what is being waited for
    printf '%-17s %-38s %-7s' "$(problem_of "$2")" "$2" "$3"
    if ! report=$("$folder/adbench" "$(problem_of "$2")" "$1/$2.txt" --style "$3" --seconds "$seconds"); then
        echo "  failed"
        return 1
    fi
    target=$(target_of "$2" "$3")
    lean=$(number lean_ratio)
    if [ -n "$target" ]; then
        verdict=$(awk -v r="$(number ratio)" -v t="$target" 'BEGIN { print r <= t ? "met" : "MISSED" }')
        if [ "$verdict" = met ]; then met=$((met + 1)); else missed=$((missed + 1)); fi
    fi
    awk -v f="$(number objective_ms)" -v d="$(number derivative_ms)" -v r="$(number ratio)" \
        -v t="${target:--}" -v v="$verdict" \
        -v lean="$lean" 'BEGIN {
        line = sprintf(" %10.4g %10.4g %8.3g %8s %-6s", f, d, r, t, v)
        if (lean != "") line = line sprintf(" (%.3g)", lean)
        sub(/ +$/, "", line)
        print line
    }'
}

run_adbench() {
    local where instance style temporary='' bad=0
    met=0 missed=0
    if [ -n "$data" ] && [ -d "$data/adbench" ]; then
        where=$data/adbench
    else
        temporary=$(mktemp -d)
        make_instances "$temporary"
        where=$temporary
        echo "no data sets at ${data:-COT_SHARED_DATA}/adbench: small random instances instead, without targets"
    fi
    echo "ratio = derivative / objective in plain C; in brackets the ratio to a hand that skips unused vertices"
    printf '%-17s %-38s %-7s %10s %10s %8s %8s\n' problem instance style 'f, ms' "f', ms" ratio target
    for instance in $(list_instances "$where"); do
        for style in "${styles[@]}" $(case $instance in ba*) echo sparse ;; esac); do
            adbench_line "$where" "$instance" "$style" || bad=1
        done
    done
    [ -z "$temporary" ] || rm -rf "$temporary"
    [ $((met + missed)) -eq 0 ] || echo "targets: $met met, $missed missed"
    return $bad
}

# ---- workloads: ours beside hand-written C
# ------------------------------------------------------------------------------

threads=${BENCH_THREADS:-2}
program_of() { find "$folder" -type f -name "$1" -perm -u+x ! -path '*CMakeFiles*' | head -1; }

# The least time of one workload in milliseconds; empty when the program does not have it. PROGRAM
# NAME THREADS
time_of() {
    "$1" --only "$2" --threads "$3" --seconds 1 2> /dev/null |
        sed -n 's/.*"min_s": \([0-9.e+-]*\).*/\1/p' | awk '{ print $1 * 1000 }'
}

least() { printf '%s\n' "$@" | grep . | sort -g | head -1; }

# Both programs take turns, three times each, one process a workload.
workload_line() { # NAME
    local ours=() hand=() i a b
    printf '%-18s' "$1"
    for i in 1 2 3; do
        ours+=("$(time_of "$workloads" "$1" "$threads")") || true
        hand+=("$(time_of "$handwritten" "$1" "$threads")") || true
    done
    a=$(least "${ours[@]}") b=$(least "${hand[@]}" || true)
    awk -v a="$a" -v b="$b" 'BEGIN {
        
        printf " %12.5g %12s %8s\n", a, b == "" ? "-" : sprintf("%.5g", b), b == "" ? "-" : sprintf("%.3g", a / b) }'
}

# How much faster two threads are than one: PROGRAM NAME
gain_of() {
    local one=() two=() i
    for i in 1 2 3; do
        one+=("$(time_of "$1" "$2" 1)")
        two+=("$(time_of "$1" "$2" 2)")
    done
    awk -v a="$(least "${one[@]}")" -v b="$(least "${two[@]}")" 'BEGIN { printf "%.3g", a / b }'
}

run_workloads() {
    local name ours hand bad=0
    workloads=$(program_of workloads) handwritten=$(program_of handwritten)
    products="plain loops (OpenBLAS is not installed)"
    if "$handwritten" --only mlp_small --seconds 0.01 | grep -q openblas; then products="OpenBLAS's"; fi
    echo "a whole step, $threads threads; the hand-written C uses all instructions of this machine and" \
        "fast-math; its matrix products are $products"
    "$workloads" --threads "$threads" --seconds 0 > /dev/null || bad=1 # says which result is wrong
    printf '%-18s %12s %12s %8s\n' workload 'ours, ms' 'C, ms' ratio
    for name in mlp_small mlp mlp_wide cnn gpt_nano elementwise rosenbrock_hvp jac_tall; do
        "$workloads" --only "$name" --seconds 0 > /dev/null 2>&1 ||
            { printf '%-18s not there, or wrong\n' "$name"; continue; }
        workload_line "$name"
    done
    awk -v f="$(time_of "$workloads" mlp_wide_function "$threads")" \
        -v g="$(time_of "$workloads" mlp_wide_gradient "$threads")" 'BEGIN {
        printf "mlp_wide: gradient / function %.3g  target <= 3.1 %s\n", g / f, g <= 3.1 * f ? "met" : "MISSED" }'
    awk -v e="$(time_of "$workloads" mlp_each "$threads")" \
        -v g="$(time_of "$workloads" mlp_gradient "$threads")" 'BEGIN {
        printf "mlp: norms of the gradients of each example / gradient %.3g  target <= 2 %s ",
            e / g, (e <= 2 * g ? "met" : "MISSED")
        print "(as arrays: bench/per_example)" }'
    ours=$(gain_of "$workloads" mlp_wide)
    awk -v a="$ours" 'BEGIN {
        printf "mlp_wide: two threads against one %.3gx  target >= 1.8 %s\n", a, (a >= 1.8 ? "met" : "MISSED") }'
    ours=$(gain_of "$workloads" elementwise) hand=$(gain_of "$handwritten" elementwise)
    awk -v a="$ours" -v b="$hand" 'BEGIN {
        printf "elementwise: two threads against one %.3gx, a hand-threaded loop %.3gx  target >= 95 %% of it %s\n",
            a, b, (a >= 0.95 * b ? "met" : "MISSED") }'
    return $bad
}

# ---- all -----------------------------------------------------------------------------------------

programs=$(find "$folder" -type f -perm -u+x ! -path '*CMakeFiles*' 2> /dev/null | sort)
for name in tape $(for p in $programs; do basename "$p"; done |
    grep -v -x -e tape -e adbench -e handwritten) adbench; do
    program=$(grep "/$name\$" <<< "$programs" | head -1 || true)
    if [ -z "$program" ] || ! wanted "$name" "$@"; then continue; fi
    printf '\n== %s\n' "$name"
    ran=$((ran + 1))
    case $name in
    adbench) run=(run_adbench) ;;
    workloads) run=(run_workloads) ;;
    gemm) run=("$program" --threads "$threads" --seconds 0.3) ;;
    *) run=("$program") ;;
    esac
    "${run[@]}" || { status=1; echo "bench: $name failed" >&2; }
done
[ "$ran" -gt 0 ] || { echo "bench: nothing to run in $folder" >&2; exit 1; }
exit $status
