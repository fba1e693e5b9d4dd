#compdef portolan
# SPDX-License-Identifier: Apache-2.0
#
# zsh completion of portolan: asks the program itself, which knows its commands, its flags and the Services.

_portolan() {
	local -a answer described
	local program=${(Q)words[1]} how line
	[[ $program == '~'/* ]] && program=$HOME/${program#'~/'}
	local -a typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
	typed=("${(@)typed/#\~\//$HOME/}")
	answer=("${(@f)$("$program" completion words "${typed[@]}" 2>/dev/null)}")
	how=$answer[1]
	shift answer
	case $how in
	files | folders)
		[[ $PREFIX == --*=* ]] && compset -P '*='
		if [[ $how == files ]]; then _files; else _files -/; fi
		return
		;;
	esac
	for line in $answer; do
		described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	if [[ $how == parts ]]; then
		_describe -V portolan described -S ''
	else
		_describe -V portolan described
	fi
}

if [[ $funcstack[1] == _portolan ]]; then
	_portolan "$@"
elif (( $+functions[compdef] )); then
	compdef _portolan portolan
fi
