# Completion of antiphon for bash. Written by: antiphon completion bash

_antiphon() {
    # Bash breaks words at = and :, antiphon does not.
    local words=() whole="" last="" i part
    for ((i = 1; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]}
        case $part in
            = | :) whole+=$part last="" ;;
            *)
                case $whole in
                    --*[=:] | [!-]*:) whole+=$part ;;
                    *)
                        ((i > 1)) && words+=("$whole")
                        whole=$part
                        ;;
                esac
                last=$part
                ;;
        esac
    done
    local before=${whole%"$last"} line word files=""
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) files=-f ;;
            :folders) files=-d ;;
            *)
                word=${line%%$'\t'*}
                word=${word#"$before"}
                [[ $word == "${word//[^[:alnum:]=:,.\/@%+_-]/}" ]] || printf -v word %q "$word"
                COMPREPLY+=("$word")
                ;;
        esac
    done < <(command antiphon @complete@ "${words[@]}" "$whole" 2>/dev/null)
    if [[ -n $files ]]; then
        if ((${#COMPREPLY[@]} == 0)); then
            # Readline knows ~ and quotes, compgen does not.
            [[ $files == -f ]] && compopt -o default 2>/dev/null && return
            compopt -o filenames 2>/dev/null
        fi
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen "$files" -- "$last")
    fi
}
complete -F _antiphon antiphon
