#!/bin/bash
# What Tab offers, at lines as bash gives them to a completion: check_completion.sh COMPLETION
# COMMAND
set -u
source "$1" || exit 1
command=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
touch weights.npy weights.safetensors expr.txt "two words.npy"
mkdir data
failed=0

# tab LINE EXPECTED…: the cursor stands at the end of LINE; what is offered must be just that, in
# any order.
tab() {
    COMP_LINE=$1 COMP_POINT=${#1}
    shift
    read -ra COMP_WORDS <<<"$COMP_LINE"
    [[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _cotangent
    local got want
    got=$(printf '%s\n' "${COMPREPLY[@]}" | sort) want=$(printf '%s\n' "$@" | sort)
    [[ $got == "$want" ]] && return
    printf "at '%s'\n  offered: %s\n  not:     %s\n" "$COMP_LINE" "${got//$'\n'/ | }" "${want//$'\n'/ | }"
    failed=1
}

# as it is by default, and as people set it
for COMP_WORDBREAKS in $' \t\n"\'@><=;|&(:' $' \t\n"\'><;|&('; do
    whole=
    [[ $COMP_WORDBREAKS == *=* ]] || whole=1
    tab "cotangent gr" grad
    tab "cotangent he" hess help
    tab "cotangent grad 'x*y' --mo" --mode
    tab "cotangent jac x x=1 --sp" --sparse
    tab "cotangent grad x --mode " reverse forward
    tab "cotangent grad x --mode rev" reverse
    tab "cotangent grad x --mode=rev" "${whole:+--mode=}reverse"
    tab "cotangent grad x --mode=" "${whole:+--mode=}reverse" "${whole:+--mode=}forward"
    tab "cotangent grad x --dtype=f3" "${whole:+--dtype=}f32"
    tab "cotangent eval x x=@we" "${whole:+x=@}weights.npy" "${whole:+x=@}weights.safetensors"
    tab "cotangent eval 'x + y' x=2 y=@weights.n" "${whole:+y=@}weights.npy"
    tab "cotangent eval x x=@da" "${whole:+x=@}data"
    tab "cotangent eval x x=@tw" "${whole:+x=@}two words.npy"
    tab "cotangent jvp x x=1 --tangent x=@weights.n" "${whole:+x=@}weights.npy"
    tab "cotangent jvp x x=1 --along x=@weights.n" "${whole:+x=@}weights.npy"
    tab "cotangent taylor x x=1 --ta" --tangent
    tab "cotangent vjp x x=1 --seed @weights.n" "${whole:+@}weights.npy"
    tab "cotangent vjp x x=1 --seed=@weights.n" "${whole:+--seed=@}weights.npy"
    tab "cotangent eval -f ex" expr.txt
    tab "cotangent eval --file=ex" "${whole:+--file=}expr.txt"
    tab "cotangent trace x x=1 --html " data expr.txt "two words.npy" weights.npy weights.safetensors
    tab "cotangent plot ex" expr.txt
    tab "cotangent plot run.jsonl --x se" seconds
    tab "cotangent grad x x=1 --ra" --rank
    tab "cotangent eval x x=" ""
    tab "cotangent help exp" explain expressions
    tab "$command ops logsum" logsumexp logsumexp_of
done
exit $failed
