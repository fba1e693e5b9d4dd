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

/* The next letter of a word in which "0x00004000" reads "0x4000"; NUL at its end. */
static char next_letter(const char *word, size_t n, size_t *at)
{
	if (*at >= 2 && memcmp(word + *at - 2, "0x", 2) == 0)
		while (*at < n && word[*at] == '0')
			(*at)++;
	return *at < n ? word[(*at)++] : '\0';
}

static bool same_word(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t at_a = 0, at_b = 0;
	char letter;

	do {
		letter = next_letter(a, n_a, &at_a);
		if (letter != next_letter(b, n_b, &at_b))
			return false;
	} while (letter != '\0');
	return true;
}

static bool line_has_word(const char *line, const char *wanted, size_t n_wanted)
{
	const char *word;
	size_t n;

	while ((word = next_word(&line, &n)))
		if (same_word(word, n, wanted, n_wanted))
			return true;
	return false;
}

static size_t count_words(const char *text)
{
	size_t n, count = 0;

	while (next_word(&text, &n))
		count++;
	return count;
}

bool iptables_save_rule(const char *line, const char *chain, const char *const *words)
{
	size_t count = 2, n; /* -A CHAIN */

	if (!has_prefix(line, "-A ") || !has_prefix(line + 3, chain) ||
	    line[3 + strlen(chain)] != ' ')
		return false;
	for (size_t i = 0; words[i]; i++) {
		const char *at = words[i]; /* a comment is one word here and several there */
		const char *word;

		count += count_words(words[i]);
		while ((word = next_word(&at, &n)))
			if (!line_has_word(line, word, n))
				return false;
	}
	return count_words(line) == count;
}
