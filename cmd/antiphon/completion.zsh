#compdef antiphon
# Completion of antiphon for zsh. Written by: antiphon completion zsh

_antiphon() {
    local line word files=""
    local -a found shown
    while IFS= read -r line; do
        case $line in
            (:files) files=-f ;;
            (:folders) files=-/ ;;
            (*)
                word=${line%%$'\t'*}
                found+=("$word")
                if [[ $line == *$'\t'* ]]; then
                    shown+=("$word  -- ${line#*$'\t'}")
                else
                    shown+=("$word")
                fi
                ;;
        esac
    done < <(command antiphon @complete@ "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    local none=1
    ((${#found})) && compadd -l -d shown -a found && none=0
    if [[ -n $files ]]; then
        [[ $PREFIX == --*=* ]] && compset -P '*='
        _files ${files:#-f} && none=0
    fi
    return none
}

# The file is read as the function's own body where fpath has it, and by source otherwise.
if [[ $funcstack[1] == _antiphon ]]; then
    _antiphon "$@"
else
    compdef _antiphon antiphon
fi
