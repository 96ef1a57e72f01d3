#!/bin/sh
# Every command and option that the help names stands in the manual page and in both completions,
# and the other way round.
#     check_documented.sh COMMAND SOURCE
command=$1 manual=$2/docs/man/cotangent.1 bash=$2/cli/completion/cotangent.bash zsh=$2/cli/completion/_cotangent
bad=0
complain() { echo "$*"; bad=1; }

commands=$("$command" --help | sed -n '/^commands/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 13 ] || complain "the help lists too few commands"
for c in $commands; do
    grep -qE "^\.BR? $c( |$)" "$manual" || complain "the manual has no command $c"
    grep -qE "[ \"]$c[ \"]" "$bash" || complain "the completion for bash has no command $c"
    grep -q "'$c:" "$zsh" || complain "the completion for zsh has no command $c"
    help=$("$command" "$c" --help)
    options=$(echo "$help" | sed -nE 's/^  (    |-[a-z], )(--[a-z]+(-[a-z]+)*).*/\2/p')
    [ -n "$options" ] || complain "the help of $c lists no options"
    # what bash offers for the command is what its help lists
    offered=$(bash -c ". '$bash'; COMP_WORDS=(cotangent $c --); COMP_CWORD=2; \
        _cotangent; echo \${COMPREPLY[*]}" 2>/dev/null)
    if [ "$c" != help ] && [ -n "$offered" ]; then
        [ "$(echo "$options" | sort | tr '\n' ' ')" = \
            "$(echo "$offered" | tr ' ' '\n' | grep -e -- | sort | tr '\n' ' ')" ] ||
            complain "bash offers $offered for $c; its help lists" $options
    fi
    for o in $options; do
        grep -qF -e "$(echo "$o" | sed 's/-/\\-/g')" "$manual" || complain "the manual has no $o"
        grep -qE -e "$o([=[,}+])" "$zsh" || complain "the completion for zsh has no $o"
    done
done
for o in $(sed -nE 's/^\.BI? *(.*)/\1/p; s/^\.BR (.*)/\1/p' "$manual" |
    grep -oE '\\-\\-[a-z]+(\\-[a-z]+)*' | sed 's/\\//g' | sort -u); do
    [ "$o" = --version ] && continue
    [ "$o" = --opt ] && continue
    for c in $commands; do "$command" "$c" --help; done | grep -qe "$o" || complain "the manual has $o, and no help"
done
exit $bad
