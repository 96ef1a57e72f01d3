# Completion of the cotangent command for bash. Commands and options are those of `cotangent help`; names of operations come from the command.

_cotangent() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
    local commands="eval grad vjp jvp hvp taylor jac hess trace check cost explain ops help"
    local expression="-f --file --dtype --threads" options="--json -h --help"
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$commands --help --version" -- "$current"))
        return
    fi
    case $previous in
    -f | --file | --html | --dot) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --dtype) COMPREPLY=($(compgen -W "f64 f32" -- "$current")); return ;;
    --mode) COMPREPLY=($(compgen -W "reverse forward" -- "$current")); return ;;
    --wrt | --seed | --tangent | --along | --order | --threads | --inputs | --outputs) return ;;
    esac
    case $command in
    eval | explain) options+=" $expression" ;;
    grad) options+=" $expression --wrt --seed --mode" ;;
    vjp) options+=" $expression --wrt --seed" ;;
    jvp) options+=" $expression --tangent" ;;
    hvp) options+=" $expression --wrt --tangent" ;;
    taylor) options+=" $expression --along --order" ;;
    jac | hess) options+=" $expression --wrt --mode" ;;
    trace) options+=" $expression --wrt --seed --step --html --dot" ;;
    check) options+=" $expression --wrt" ;;
    cost) options+=" $expression --wrt --inputs --outputs" ;;
    ops)
        options+=" --names"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" ops --names 2>/dev/null)" -- "$current"))
            return
        fi
        ;;
    help)
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
        return
        ;;
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ $current == @* ]]; then # a value from a file: name=@file (bash splits words at =)
        COMPREPLY=($(compgen -P @ -f -- "${current#@}"))
    fi
}
complete -F _cotangent cotangent
