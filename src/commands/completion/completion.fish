# SPDX-License-Identifier: Apache-2.0
#
# fish completion of portolan: asks the program itself, which knows its commands, its flags and the Services.

function __portolan_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l typed (commandline --current-token --cut-at-cursor)
    set -l program (string replace --regex '^~/' "$HOME/" -- $words[1])
    set -e words[1]
    set -l answer ($program completion words (string replace --regex '^~/' "$HOME/" -- $words) "$typed" 2>/dev/null)
    set -l head (string match --regex '^--[^=]*=' -- $typed)
    set -l value (string sub --start (math (string length -- "$head") + 1) -- "$typed")
    switch "$answer[1]"
        case files
            printf '%s\n' "$head"(__fish_complete_path "$value")
        case folders
            printf '%s\n' "$head"(__fish_complete_directories "$value" '')
        case words parts
            set -e answer[1]
            printf '%s\n' $answer
    end
end

complete --command portolan --no-files --keep-order --arguments '(__portolan_complete)'
