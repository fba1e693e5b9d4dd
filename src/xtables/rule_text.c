/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/rule_text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * iptables-restore gets the words in the order in which the rule has them. iptables-save puts source,
 * destination, interface and protocol first, in this order, then the extensions in the order of their
 * -m words; and it says more than was said to it.
 */

enum rule_form rule_form_save(enum family family)
{
	return family == FAMILY_IPV4 ? RULE_FORM_SAVE_IPV4 : RULE_FORM_SAVE_IPV6;
}

char *put_string(char *at, const char *s)
{
	return put_bytes(at, s, strnlen(s, RULE_COMMENT_MAX));
}

static char *put_number(char *at, uint32_t n)
{
	char digits[10];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return put_bytes(at, digits + first, sizeof(digits) - first);
}

/* kube-proxy writes eight digits, always; iptables-save prints no more than it needs. */
static char *put_hex(char *at, uint32_t n, enum rule_form form)
{
	int shift = 28;

	while (form != RULE_FORM_RESTORE && shift > 0 && n >> shift == 0)
		shift -= 4;
	at = PUT(at, "0x");
	for (; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[n >> shift & 15];
	return at;
}

static char *put_invert(char *at, const struct match *match)
{
	return match->invert ? PUT(at, " !") : at;
}

/* -- matches */

/* In quotes: where there are several words, or where iptables-save sees more than plain letters. */
static char *put_comment(char *at, const struct match *match, enum rule_form form)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	bool quoted = form == RULE_FORM_RESTORE ? strchr(match->text, ' ') != NULL
						: match->text[strspn(match->text, plain)];

	at = PUT(at, " -m comment --comment ");
	if (quoted)
		*at++ = '"';
	at = put_string(at, match->text);
	if (quoted)
		*at++ = '"';
	return at;
}

static char *put_protocol(char *at, const struct match *match, enum rule_form form)
{
	const char *name = protocol_name(match->protocol);

	if (!match->bare)
		at = put_string(PUT(at, " -m "), name);
	return form == RULE_FORM_RESTORE ? put_string(PUT(at, " -p "), name) : at;
}

/* iptables-save prints what the kernel keeps: no bits behind the length. */
static char *put_prefix(char *at, const struct match *match, enum rule_form form)
{
	struct prefix prefix = match->prefix;
	uint8_t mask[16];

	at = put_invert(at, match);
	at = match->kind == MATCH_SOURCE ? PUT(at, " -s ") : PUT(at, " -d ");
	if (match->bare && form == RULE_FORM_RESTORE)
		return at + addr_print(&prefix.addr, at);
	prefix_mask(prefix.length, mask);
	for (size_t i = 0; form != RULE_FORM_RESTORE && i < sizeof(mask); i++)
		prefix.addr.bytes[i] &= mask[i];
	return at + prefix_print(&prefix, at);
}

static char *put_interface(char *at, const struct match *match, enum rule_form form attr_unused)
{
	return put_string(PUT(put_invert(at, match), " -i "), match->text);
}

static char *put_port(char *at, const struct match *match, enum rule_form form attr_unused)
{
	return put_number(PUT(at, " --dport "), match->port);
}

const char *const ctstate_names[CTSTATE_COUNT] = {"INVALID", "NEW", "RELATED", "ESTABLISHED",
						  "DNAT"};

static_assert(1 << (CTSTATE_COUNT - 1) == CTSTATE_DNAT, "one name for each bit");

static char *put_ctstate(char *at, const struct match *match, enum rule_form form attr_unused)
{
	bool first = true;

	at = put_invert(match->bare ? PUT(at, " -m state") : PUT(at, " -m conntrack"), match);
	at = match->bare ? PUT(at, " --state ") : PUT(at, " --ctstate ");
	for (size_t i = 0; i < CTSTATE_COUNT; i++) {
		if (!(match->ctstate & 1U << i))
			continue;
		if (!first)
			*at++ = ',';
		at = put_string(at, ctstate_names[i]);
		first = false;
	}
	return at;
}

static char *put_mark(char *at, const struct match *match, enum rule_form form)
{
	at = PUT(put_invert(PUT(at, " -m mark"), match), " --mark ");
	at = put_hex(at, match->mark, form);
	*at++ = '/';
	return put_hex(at, match->mark, form);
}

static char *put_local(char *at, const struct match *match, enum rule_form form attr_unused)
{
	return match->kind == MATCH_SOURCE_TYPE_LOCAL ? PUT(at, " -m addrtype --src-type LOCAL")
						      : PUT(at, " -m addrtype --dst-type LOCAL");
}

/* iptables-save has the kernel's share of 2^31, as a number between 0 and 1 again. */
static char *put_statistic(char *at, const struct match *match, enum rule_form form)
{
	at = PUT(at, " -m statistic --mode random --probability ");
	if (form == RULE_FORM_RESTORE)
		return put_bytes(at, probability_text(match->one_in), PROBABILITY_LENGTH);
	return at + sprintf(at, "%.11f", probability_value(match->one_in) / 2147483648.0);
}

static char *put_recent_action(char *at, const struct match *match)
{
	if (match->kind == MATCH_RECENT_SET)
		return PUT(at, " --set");
	at = put_number(PUT(at, " --rcheck --seconds "), match->recent.seconds);
	return PUT(at, " --reap");
}

static char *put_recent(char *at, const struct match *match, enum rule_form form)
{
	at = PUT(at, " -m recent");
	if (form != RULE_FORM_RESTORE)
		at = put_recent_action(at, match);
	at = put_string(PUT(at, " --name "), match->recent.name);
	if (form == RULE_FORM_RESTORE)
		return put_recent_action(at, match);
	at = form == RULE_FORM_SAVE_IPV4
		     ? PUT(at, " --mask 255.255.255.255")
		     : PUT(at, " --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	return PUT(at, " --rsource");
}

/* Two blanks: iptables-save's own. */
static char *put_nfacct(char *at, const struct match *match, enum rule_form form)
{
	at = PUT(at, " -m nfacct --nfacct-name ");
	if (form != RULE_FORM_RESTORE)
		*at++ = ' ';
	return put_string(at, match->text);
}

static char *put_other(char *at, const struct match *match, enum rule_form form attr_unused)
{
	return PUT(put_string(PUT(at, " -m "), match->text), " ...");
}

static char *(*const put_match[])(char *at, const struct match *match, enum rule_form form) = {
	[MATCH_COMMENT] = put_comment,
	[MATCH_PROTOCOL] = put_protocol,
	[MATCH_SOURCE] = put_prefix,
	[MATCH_DESTINATION] = put_prefix,
	[MATCH_INTERFACE] = put_interface,
	[MATCH_PORT] = put_port,
	[MATCH_CTSTATE] = put_ctstate,
	[MATCH_MARK] = put_mark,
	[MATCH_SOURCE_TYPE_LOCAL] = put_local,
	[MATCH_DESTINATION_TYPE_LOCAL] = put_local,
	[MATCH_STATISTIC] = put_statistic,
	[MATCH_RECENT_CHECK] = put_recent,
	[MATCH_RECENT_SET] = put_recent,
	[MATCH_NFACCT] = put_nfacct,
	[MATCH_OTHER] = put_other,
};

static_assert(ARRAY_SIZE(put_match) == MATCH_COUNT, "one function for each match");

/* -- in iptables-save's order */

static bool is_front(enum match_kind kind)
{
	return kind == MATCH_SOURCE || kind == MATCH_DESTINATION || kind == MATCH_INTERFACE;
}

/* A prefix of length 0 says nothing and is not shown, unless it is inverted. */
static char *put_front(char *at, const struct rule *rule, enum rule_form form)
{
	static const enum match_kind order[] = {MATCH_SOURCE, MATCH_DESTINATION, MATCH_INTERFACE};
	const struct match *match;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		match = rule_match(rule, order[i]);
		if (match &&
		    (match->kind == MATCH_INTERFACE || match->invert || match->prefix.length > 0))
			at = put_match[match->kind](at, match, form);
	}
	match = rule_match(rule, MATCH_PROTOCOL);
	return match ? put_string(PUT(at, " -p "), protocol_name(match->protocol)) : at;
}

/* --dport belongs to the words of -m tcp, wherever it was written. */
static char *put_extensions(char *at, const struct rule *rule, enum rule_form form)
{
	const struct match *port = rule_match(rule, MATCH_PORT);

	for (size_t i = 0; i < rule->n_matches; i++) {
		const struct match *match = &rule->matches[i];

		if (match->kind == MATCH_PORT || is_front(match->kind))
			continue;
		at = put_match[match->kind](at, match, form);
		if (match->kind == MATCH_PROTOCOL && port)
			at = put_port(at, port, form);
	}
	return at;
}

/* -- targets */

static char *put_reject(char *at, enum rule_form form)
{
	at = PUT(at, " -j REJECT");
	if (form == RULE_FORM_RESTORE)
		return at;
	return form == RULE_FORM_SAVE_IPV4 ? PUT(at, " --reject-with icmp-port-unreachable")
					   : PUT(at, " --reject-with icmp6-port-unreachable");
}

static char *put_mark_target(char *at, const struct target *target, enum rule_form form)
{
	bool or = target->kind == TARGET_MARK_OR;

	at = PUT(at, " -j MARK");
	if (form == RULE_FORM_RESTORE)
		return put_hex(or ? PUT(at, " --or-mark ") : PUT(at, " --xor-mark "), target->mark,
			       form);
	at = put_hex(PUT(at, " --set-xmark "), target->mark, form);
	*at++ = '/';
	return put_hex(at, or ? target->mark : 0, form);
}

static char *put_target(char *at, const struct target *target, enum rule_form form)
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
	case TARGET_REJECT:
		return put_reject(at, form);
	case TARGET_MARK_XOR:
	case TARGET_MARK_OR:
		return put_mark_target(at, target, form);
	case TARGET_MASQUERADE:
		at = PUT(at, " -j MASQUERADE");
		return target->random_fully ? PUT(at, " --random-fully") : at;
	case TARGET_DNAT:
		at = PUT(at, " -j DNAT --to-destination ");
		return at + addr_port_print(&target->dnat.addr, target->dnat.port, at);
	case TARGET_GOTO:
		return put_string(PUT(at, " -g "), target->chain);
	case TARGET_OTHER:
		return PUT(put_string(PUT(at, " -j "), target->chain), " ...");
	default:
		assert(target->kind == TARGET_NONE);
		return at;
	}
}

/* -- whole rules */

char *put_rule_words(char *at, const struct rule *rule, enum rule_form form)
{
	if (form != RULE_FORM_RESTORE)
		at = put_extensions(put_front(at, rule, form), rule, form);
	for (size_t i = 0; form == RULE_FORM_RESTORE && i < rule->n_matches; i++)
		at = put_match[rule->matches[i].kind](at, &rule->matches[i], form);
	return put_target(at, &rule->target, form);
}

char *put_rule(char *at, const char command[3], const struct rule *rule, enum rule_form form)
{
	return put_rule_words(put_string(put_bytes(at, command, 3), rule->chain), rule, form);
}

size_t rule_print(const struct rule *rule, enum rule_form form, char out[RULE_TEXT_MAX])
{
	char *end = put_rule(out, "-A ", rule, form);

	*end = '\0';
	return (size_t)(end - out);
}

/* -- probabilities */

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

/* Shares are rounded, so the next number may be the one. */
unsigned int probability_one_in(double probability)
{
	uint32_t share = probability > 0 && probability <= 1
				 ? (uint32_t)(probability * 2147483648.0 + 0.5)
				 : 0;
	unsigned int one_in = share ? (1U << 31) / share : 1;

	return probability_value(one_in) == share ? one_in : one_in + 1;
}
