/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/rule_text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

char *put_string(char *at, const char *s)
{
	return put_bytes(at, s, strnlen(s, RULE_COMMENT_MAX));
}

char *put_comment_match(char *at, const char *text, bool quoted)
{
	at = PUT(at, " -m comment --comment ");
	if (quoted)
		*at++ = '"';
	at = put_string(at, text);
	if (quoted)
		*at++ = '"';
	return at;
}

char *put_number(char *at, uint32_t n)
{
	char digits[10];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return put_bytes(at, digits + first, sizeof(digits) - first);
}

char *put_ctstates(char *at, unsigned int states)
{
	static const char *const names[] = {"INVALID", "NEW", "RELATED", "ESTABLISHED", "DNAT"};
	bool first = true;

	static_assert(1 << (ARRAY_SIZE(names) - 1) == CTSTATE_DNAT, "one name for each bit");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(states & 1U << i))
			continue;
		if (!first)
			*at++ = ',';
		at = put_string(at, names[i]);
		first = false;
	}
	return at;
}

char *put_plain_target(char *at, const struct target *target)
{
	switch (target->kind) {
	case TARGET_CHAIN:
		return put_string(PUT(at, " -j "), target->chain);
	case TARGET_ACCEPT:
		return PUT(at, " -j ACCEPT");
	case TARGET_DROP:
		return PUT(at, " -j DROP");
	case TARGET_RETURN:
		return PUT(at, " -j RETURN");
	case TARGET_MASQUERADE:
		at = PUT(at, " -j MASQUERADE");
		return target->random_fully ? PUT(at, " --random-fully") : at;
	case TARGET_DNAT:
		at = PUT(at, " -j DNAT --to-destination ");
		return at + addr_port_print(&target->dnat.addr, target->dnat.port, at);
	default:
		assert(target->kind == TARGET_NONE);
		return at;
	}
}

/*
 * A service with n endpoints needs 1/n, 1/(n-1), ... 1/2, and so does the next: the texts are made
 * once. Bigger numbers than the table holds are rare, and are made each time.
 */
const char *probability_text(unsigned int one_in)
{
	static char known[256][PROBABILITY_LENGTH + 1];
	static char other[PROBABILITY_LENGTH + 1];
	char *text = one_in < ARRAY_SIZE(known) ? known[one_in] : other;

	if (text == other || !text[0])
		snprintf(text, PROBABILITY_LENGTH + 1, "%.10f", 1.0 / one_in);
	return text;
}

uint32_t probability_value(unsigned int one_in)
{
	static uint32_t known[256];
	uint32_t value = one_in < ARRAY_SIZE(known) ? known[one_in] : 0;

	if (value == 0)
		value = (uint32_t)(2147483648.0 * strtod(probability_text(one_in), NULL) + 0.5);
	if (one_in < ARRAY_SIZE(known))
		known[one_in] = value;
	return value;
}
