# Completion of antiphon for fish. Written by: antiphon completion fish

function __antiphon_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -e words[1]
    set -l before (string match -r -- '^--[^=]+=' "$current")
    set -l rest (string replace -r -- '^--[^=]+=' '' "$current")
    for line in (command antiphon @complete@ $words "$current" 2>/dev/null)
        switch $line
            case :files
                for path in (__fish_complete_path "$rest")
                    echo "$before$path"
                end
            case :folders
                for path in (__fish_complete_directories "$rest")
                    echo "$before$path"
                end
            case '*'
                echo $line
        end
    end
end

complete -c antiphon -f -a '(__antiphon_complete)'
