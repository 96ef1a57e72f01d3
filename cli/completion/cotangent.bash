# Completion of the cotangent command for bash. Commands and options are those of `cotangent help`; names of operations come from the command.
#
# bash splits words at = @ and : (COMP_WORDBREAKS), so that x=@file or --mode=reverse come in pieces, and what is completed replaces only the
# last piece. So the line is split here, at spaces, and what stands before the last break is cut off every answer.

# Sets words, current (the word at the cursor, up to it) and previous from the line.
_cotangent_words() {
    local line=${COMP_LINE:0:COMP_POINT} i c quote= word= any=
    words=()
    for ((i = 0; i < ${#line}; i++)); do
        c=${line:i:1}
        if [[ -n $quote ]]; then
            if [[ $c == "$quote" ]]; then quote=; else word+=$c; fi
        elif [[ $c == [\'\"] ]]; then
            quote=$c any=1
        elif [[ $c == \\ ]]; then
            ((i++))
            word+=${line:i:1} any=1
        elif [[ $c == [[:space:]] ]]; then
            [[ -n $any ]] && words+=("$word")
            word= any=
        else
            word+=$c any=1
        fi
    done
    current=$word
    previous=${words[${#words[@]}-1]-}
}

# What bash takes for the word: behind the last break character of the current one.
_cotangent_reply() {
    local break= i
    for ((i = 0; i < ${#current}; i++)); do
        [[ ${current:i:1} == [=@:] && $COMP_WORDBREAKS == *"${current:i:1}"* ]] && break=${current:0:i+1}
    done
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$break"}; done
}

# Files, written behind $1, of the part that is typed already.
_cotangent_files() {
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -P "$1" -f -- "${current#"$1"}"))
    [[ ${#COMPREPLY[@]} == 1 && -d ${COMPREPLY[0]#"$1"} ]] && compopt -o nospace 2>/dev/null
}

_cotangent() {
    local words current previous option value
    local commands="eval grad vjp jvp hvp taylor jac hess trace check cost memory explain fit plot compile train sample predict ops help"
    local expression="-f --file --dtype --threads" options="--json -h --help"
    _cotangent_words
    local command=${words[1]-}
    COMPREPLY=()

    if ((${#words[@]} == 1)); then
        COMPREPLY=($(compgen -W "$commands --help --version" -- "$current"))
        return
    fi
    option=$previous value=$current
    if [[ $current == --*=* ]]; then option=${current%%=*} value=${current#*=}; fi
    local before=${current%"$value"}
    case $option in
    -f | --file | --html | --dot | --plot | --svg | -o | --output | --data | --tokenizer | --initial | --checkpoint | --resume | --tensorboard | --pictures | --model) _cotangent_files "$before" ;;
    --dtype) COMPREPLY=($(compgen -P "$before" -W "f64 f32" -- "$value")) ;;
    --precision) COMPREPLY=($(compgen -P "$before" -W "bf16 f16 f32" -- "$value")) ;;
    --mode) COMPREPLY=($(compgen -P "$before" -W "reverse forward" -- "$value")) ;;
    --x) COMPREPLY=($(compgen -P "$before" -W "step seconds" -- "$value")) ;;
    --tangent | --seed | --along)
        if [[ $value == *@* ]]; then _cotangent_files "${current%%@*}@"; fi ;;
    --wrt | --limit | --memory | --order | --threads | --inputs | --outputs | --depth | --states | --micro | --y | --max-iterations | --tolerance | --top | --smooth | --steps | --seeds | --rate | --batch | --width | --layers | --heads | --context | --vocabulary | --every | --node | --prompt | --length | --temperature | --top-p) ;;
    *) option= ;;
    esac
    if [[ -n $option ]]; then
        _cotangent_reply
        return
    fi
    case $command in
    eval | explain) options+=" $expression" ;;
    grad) options+=" $expression --wrt --seed --mode --rank --top --svg" ;;
    vjp) options+=" $expression --wrt --seed" ;;
    jvp) options+=" $expression --along --tangent" ;;
    hvp) options+=" $expression --wrt --along --tangent" ;;
    taylor) options+=" $expression --along --tangent --order" ;;
    jac | hess) options+=" $expression --wrt --mode --sparse" ;;
    trace) options+=" $expression --wrt --seed --mode --step --c --html --dot" ;;
    check) options+=" $expression --wrt" ;;
    memory) options+=" $expression --wrt --model --layers --heads --width --context --vocabulary --batch --precision --limit --svg" ;;
    cost) options+=" $expression --wrt --inputs --outputs --depth --width --batch --states --micro --precision --limit" ;;
    compile)
        options+=" $expression --wrt --seed --along --tangent --grad --vjp --jvp --hvp --jac --hess --sparse --main --libm --print --report --dot --model --training-step --batch -o --output" ;;
    fit)
        options+=" -f --file --threads --y --plot --chart --max-iterations --tolerance"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -- "$current"))
            return
        fi
        ;;
    plot)
        options+=" --x --y --log --smooth --follow --svg"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -- "$current"))
            return
        fi
        ;;
    train)
        options+=" --data --steps --seeds --seed --rate --batch --width --layers --heads --context --precision --memory --tokenizer --initial --checkpoint --every --resume --log --tensorboard --pictures --node --quiet --threads"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -W "gcn mnist gpt ode" -- "$current"))
            return
        fi
        ;;
    sample | predict)
        options+=" --threads"
        [[ $command == sample ]] && options+=" --seed --prompt --length --temperature --top-p"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -- "$current"))
            return
        fi
        ;;
    ops)
        options+=" --names"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -W "$("${words[0]}" ops --names 2>/dev/null)" -- "$current"))
            return
        fi
        ;;
    help)
        COMPREPLY=($(compgen -W "$commands expressions" -- "$current"))
        return
        ;;
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ $current == *=@* ]]; then # a value from a file: name=@file
        _cotangent_files "${current%%@*}@"
        _cotangent_reply
    fi
}
complete -F _cotangent cotangent
