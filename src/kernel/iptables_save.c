/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_save.h"

size_t iptables_save_chain(const char *line)
{
	const char *end;

	if (line[0] != ':')
		return 0;
	end = strchr(line, ' ');
	return end ? (size_t)(end - line) - 1 : 0;
}

#define BLANKS " \t"

/* Walks over words, whatever quotes are around them or around several of them. */
static const char *next_word(const char **at, size_t *n)
{
	const char *word;

	*at += strspn(*at, BLANKS);
	word = *at;
	*n = strcspn(word, BLANKS);
	*at += *n;
	if (*n == 0)
		return NULL;
	while (*n > 0 && word[0] == '"') {
		word++;
		(*n)--;
	}
	while (*n > 0 && word[*n - 1] == '"')
		(*n)--;
	return word;
}

/* False when it does not fit. */
static bool copy_word(const char *word, size_t n, char *out, size_t size)
{
	if (n >= size)
		return false;
	memcpy(out, word, n);
	out[n] = '\0';
	return true;
}

/* The last word behind a -j or -g: those of a comment stand before. */
bool iptables_save_jump(const char *line, struct iptables_jump *ret)
{
	struct iptables_jump jump = {0};
	bool leads = false;
	const char *word;
	size_t n;

	if (!has_prefix(line, "-A "))
		return false;
	line += strlen("-A ");
	word = next_word(&line, &n);
	if (!word || !copy_word(word, n, jump.chain, sizeof(jump.chain)))
		return false;
	while ((word = next_word(&line, &n))) {
		if (leads && !copy_word(word, n, jump.target, sizeof(jump.target)))
			return false;
		leads = n == 2 && word[0] == '-' && (word[1] == 'j' || word[1] == 'g');
	}
	*ret = jump;
	return jump.target[0] != '\0';
}
