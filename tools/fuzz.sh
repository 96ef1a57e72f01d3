#!/usr/bin/env bash
# tools/fuzz.sh MINUTES [TARGET…]: hostile trials for so many minutes, all targets or those named,
# as many at a time as there are processors.
#
# Each target is run by libFuzzer (the preset `fuzz`: clang, AddressSanitizer, UBSan), and goes on
# after a finding. `seeds` is random programs of seeds that were not run before. What libFuzzer
# learns stays in build-fuzz/corpus/TARGET for the next time; what is wrong goes to
# build-fuzz/found/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-60}
shift || true
[[ $minutes =~ ^[1-9][0-9]*$ ]] || { echo "usage: tools/fuzz.sh MINUTES [TARGET…]" >&2; exit 2; }
jobs=${JOBS:-$(nproc 2> /dev/null || echo 2)}
build=build-fuzz
bin=$PWD/$build/tests/fuzz

echo "building into $build/ with clang and sanitizers, minutes the first time"
cmake --preset fuzz > /dev/null
cmake --build --preset fuzz -j "$jobs" > "$build/build.log" 2>&1 || { tail -30 "$build/build.log" >&2; exit 3; }

targets=()
while read -r name _; do targets+=("$name"); done < "$bin/targets"
targets+=(seeds)
if [ $# -gt 0 ]; then
    for name in "$@"; do
        [[ " ${targets[*]} " == *" $name "* ]] || { echo "no target $name; there are: ${targets[*]}" >&2; exit 2; }
    done
    targets=("$@")
fi
[ "$jobs" -le ${#targets[@]} ] || jobs=${#targets[@]}
share=$((minutes * 60 * jobs / ${#targets[@]})) # seconds of each target

run_target() { # run_target NAME: ends after its share of time
    local name=$1 length corpus
    if [ "$name" = seeds ]; then
        run_seeds
        return
    fi
    corpus=$(awk -v n="$name" '$1 == n { print $2 }' "$bin/targets")
    length=$(awk -v n="$name" '$1 == n { print $3 }' "$bin/targets")
    local end=$((SECONDS + share))
    while [ $SECONDS -lt $end ]; do # libFuzzer ends at a finding
        "$bin/fuzz_$name" -max_total_time=$((end - SECONDS)) -max_len="$length" -timeout=30 \
            -rss_limit_mb=2048 -malloc_limit_mb=4096 \
            -print_final_stats=1 -artifact_prefix="found/$name/" "corpus/$name" "$corpus" || sleep 1
    done
}

run_seeds() {
    local next end=$((SECONDS + share))
    next=$(cat corpus/seeds/next 2> /dev/null || echo 1000000)
    while [ $SECONDS -lt $end ]; do
        (cd found/seeds && "$bin/random_programs" 500 "$next") || true
        next=$((next + 500))
        echo "$next" > corpus/seeds/next
    done
}

findings() {
    find "found/$1" -type f \( -name 'crash-*' -o -name 'leak-*' -o -name 'timeout-*' -o -name 'oom-*' \
        -o -name 'program-*' \)
}

executions() { # of one target, from its log
    if [ "$1" = seeds ]; then awk '/random programs from seed/ { n += $1 } END { print n + 0 }' "log/$1"
    else awk '/^INFO: Seed/ { n += last; last = 0 } /^#[0-9]/ { last = substr($1, 2) + 0 }
        /number_of_executed_units/ { last = $2 } END { print n + last }' "log/$1"
    fi
}

coverage() { sed -n 's/.*cov: \([0-9]*\) ft.*/\1/p' "log/$1" | tail -1; }

table() {
    printf '%-10s %14s %10s %9s\n' target executions branches findings
    local each n c
    for each in "${targets[@]}"; do
        [ -e "log/$each" ] || continue
        n=$(executions "$each") c=$(coverage "$each")
        printf '%-10s %14s %10s %9s\n' "$each" "${n:-0}" "${c:--}" "$(findings "$each" | wc -l)"
    done
}

cd "$build"
mkdir -p log
rm -f log/*
for name in "${targets[@]}"; do
    mkdir -p "corpus/$name" "found/$name" "before/$name"
    # what an earlier run found is kept
    find "found/$name" -type f -exec mv -f -t "before/$name" {} +
done
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
echo "${#targets[@]} targets, $jobs at a time, $share s each: ${targets[*]}"
for name in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        sleep 5
        if [ $((SECONDS / 60)) != "${said:-0}" ]; then
            said=$((SECONDS / 60)) && printf '\n%d min\n' "$said" && table
        fi
    done
    (run_target "$name" > "log/$name" 2>&1 || true) &
done
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do
    sleep 5
    if [ $((SECONDS / 60)) != "${said:-0}" ]; then
            said=$((SECONDS / 60)) && printf '\n%d min\n' "$said" && table
        fi
done
wait

printf '\n'
table
for name in "${targets[@]}"; do # one that did not even start has found nothing, which says nothing
    n=$(executions "$name")
    if [ "${n:-0}" = 0 ]; then
        tail -5 "log/$name"
        echo "FAILED: $name did not run: $build/log/$name"
        exit 3
    fi
done
total=0
for name in "${targets[@]}"; do
    while read -r path; do
        total=$((total + 1))
        case $name in
        program | seeds) echo "$build/$path: again, made smaller and as a list of calls:" \
            "build-fuzz/tests/fuzz/random_programs --replay $build/$path" ;;
        *) echo "$build/$path: again: build-fuzz/tests/fuzz/fuzz_$name $build/$path" ;;
        esac
    done < <(findings "$name")
done
if [ $total -gt 0 ]; then
    echo "FOUND $total: their logs are in $build/log"
    exit 1
fi
echo "nothing found in $minutes minutes"
