#!/bin/sh
# check_compiled_workloads.sh WORKLOADS: every workload of the benchmarks that has a compiled form
# gives the same digits on a tape, by the executor and by native code, at 1, 2 and 7 threads, and so
# does one that is written with layers: in the first step, and in the third, after two steps of the
# optimiser.
set -eu
# mlp_wide is mlp with other numbers, and takes seconds
names="mlp_small mlp cnn gpt_nano elementwise chain gcn_cora gcn_cora_sparse"
# on a tape these are sweeps of numbers, which are no part of a program
others="rosenbrock_hvp jac_tall"
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COTANGENT_CACHE="$work/cache"

results() { # THREADS SUFFIX NAMES: one line a workload: name, first, third
    "$program" --only "$(for n in $3; do printf '%s%s,' "$n" "$2"; done | sed 's/,$//')" --threads "$1" --seconds 0 |
        sed -e 's/.*"workload": "\([a-z_]*\)".*"first": \([^,]*\), "third": \([^,}]*\).*/\1 \2 \3/' \
            -e 's/_compiled / /;s/_layers / /'
}

want=$(results 2 "" "$names"; COTANGENT_NATIVE=0 results 2 _compiled "$others")
[ "$(echo "$want" | wc -l)" -eq 10 ] || { echo "not ten workloads: $want" >&2; exit 1; }
layered="mlp_small mlp cnn gpt_nano"
if [ "$(results 2 _layers "$layered")" != "$(echo "$want" | head -4)" ]; then
    { echo "with layers:"; results 2 _layers "$layered"; echo "wanted:"; echo "$want" | head -4; } >&2
    exit 1
fi
want=$(echo "$want" | sort)
for native in 0 1; do
    for threads in 1 2 7; do
        got=$(COTANGENT_NATIVE=$native results $threads _compiled "$names $others" 2> "$work/told") ||
            { cat "$work/told" >&2; exit 1; }
        # one of them is products alone, which the library does
        if [ "$(echo "$got" | sort)" != "$want" ] || grep -v "there is nothing in the program" "$work/told"; then
            echo "compiled, native $native, $threads threads:" >&2
            { cat "$work/told"; echo "$got"; echo "wanted:"; echo "$want"; } >&2
            exit 1
        fi
    done
done
