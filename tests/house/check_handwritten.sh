#!/bin/sh
# check_handwritten.sh WORKLOADS HANDWRITTEN: the hand-written C computes what the library computes:
# the results of the first step and of the third, after two steps of the optimiser, agree to 2e-6
# (f32, sums in other orders). A ratio to a program that computes something else would mean nothing.
set -eu
# mlp_wide is mlp with other numbers, and takes seconds; so does deep_ckpt
names=mlp_small,mlp,cnn,gpt_nano,elementwise,rosenbrock_hvp,jac_tall,chain

results() { # PROGRAM THREADS: one line a workload: name, first, third
    "$1" --only $names --threads "$2" --seconds 0 |
        sed 's/.*"workload": "\([a-z_]*\)".*"first": \([^,]*\), "third": \([^,}]*\).*/\1 \2 \3/'
}

ours=$(results "$1" 2)
[ "$(echo "$ours" | wc -l)" -eq 8 ] || { echo "not eight workloads: $ours" >&2; exit 1; }
for threads in 1 2 3; do
    hand=$(results "$2" $threads) || exit 1
    printf '%s\n%s\n' "$ours" "$hand" | awk -v threads=$threads '
        function far(x, y) { return x !~ /^-?[0-9]/ || y !~ /^-?[0-9]/ || x / y > 1 + 2e-6 || x / y < 1 - 2e-6 }
        NR <= 8 { first[$1] = $2; third[$1] = $3; next }
        { seen++ }
        far($2, first[$1]) || far($3, third[$1]) {
            print $1 ", " threads " threads: " $2 ", " $3 " by hand, ours " first[$1] ", " third[$1]; bad = 1 }
        END { if (seen != 8) print "by hand there are " seen + 0 " of eight"; exit bad || seen != 8 }' >&2
done
