# bash completion of portolan                                              -*- shell-script -*-
# SPDX-License-Identifier: Apache-2.0
#
# Asks the program itself, which knows its commands, its flags and the Services.

# The words up to the cursor, in `words`. Bash has cut them at the characters of COMP_WORDBREAKS, too, "=" and ":" among
# them: pieces with no blank between them belong together.
__portolan_words() {
	local rest=${COMP_LINE:0:COMP_POINT} i blanks piece
	words=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		blanks=${rest%%[![:blank:]]*}
		rest=${rest:${#blanks}}
		piece=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || piece=$rest
		rest=${rest:${#piece}}
		if ((i == 0)) || [[ $blanks ]]; then
			words+=("$piece")
		else
			words[${#words[@]} - 1]+=$piece
		fi
	done
}

_portolan() {
	local IFS=$' \t\n' words answer how typed quote value cut candidate i
	__portolan_words
	typed=${words[-1]}
	quote=
	[[ $typed != [\"\']* || ${typed:1} == *"${typed:0:1}"* ]] || quote=${typed:0:1}
	for ((i = 1; i < ${#words[@]}; i++)); do
		case ${words[i]} in
		\"* | --*=\"*) words[i]=${words[i]//\"/} ;;
		\'* | --*=\'*) words[i]=${words[i]//\'/} ;;
		*) words[i]=${words[i]/#\~\//"$HOME/"} ;;
		esac
	done
	COMPREPLY=()
	typed=${words[-1]}
	mapfile -t answer < <("${words[0]/#\~\//"$HOME/"}" completion words "${words[@]:1}" 2>/dev/null)
	how=${answer[0]}
	value=$typed
	[[ $typed != --*=* ]] || value=${typed#*=}
	case $how in
	files) mapfile -t COMPREPLY < <(compgen -f -- "$value") ;;
	folders) mapfile -t COMPREPLY < <(compgen -d -- "$value") ;;
	esac
	case $how in
	files | folders)
		compopt -o filenames
		return
		;;
	parts) compopt -o nospace ;;
	esac
	# What stands before the last of those characters stays as it is: only the rest is replaced. In quotes they are characters as
	# any other.
	cut=
	[[ $quote || $COMP_WORDBREAKS != *=* || $typed != *=* ]] || cut=${typed%"${typed##*=}"}
	[[ $quote || $COMP_WORDBREAKS != *:* || ${typed#"$cut"} != *:* ]] || cut=${typed%"${typed##*:}"}
	for candidate in "${answer[@]:1}"; do
		candidate=${candidate%%$'\t'*}
		COMPREPLY+=("${candidate#"$cut"}")
	done
}

complete -F _portolan portolan
