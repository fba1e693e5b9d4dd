/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/rule_compare.h"

#include <stdlib.h>

#include "base/siphash.h"
#include "xtables/rule_text.h"

/*
 * Rules are equal when their codes are. A code is what counts, in an order of its own: -i, -s and -d,
 * the other matches in the order of their words, the port with its protocol, the target. Each piece
 * begins with its kind and says its length, so that no two rules have one code.
 */

#define CODE_MAX    ((RULE_MATCH_MAX + 1) * (RULE_COMMENT_MAX + 32))
#define CODE_TARGET 0x80 /* above all matches */

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
	return (uint8_t *)memcpy(at, bytes, n) + n;
}

/* most: what the kernel holds. */
static uint8_t *put_text(uint8_t *at, const char *text, size_t most)
{
	size_t n = strnlen(text, most);

	*at++ = (uint8_t)n;
	return put(at, text, n);
}

static uint8_t *put_u32(uint8_t *at, uint32_t number)
{
	return put(at, &number, sizeof(number));
}

/* Bits behind the length do not count. */
static uint8_t *put_prefix(uint8_t *at, const struct prefix *prefix)
{
	uint8_t mask[16];

	prefix_mask(prefix->length, mask);
	*at++ = prefix->length;
	for (size_t i = 0; i < (prefix->length + 7u) / 8; i++)
		*at++ = prefix->addr.bytes[i] & mask[i];
	return at;
}

/* What the kernel holds of the text of a match. */
static size_t text_most(enum match_kind kind)
{
	switch (kind) {
	case MATCH_INTERFACE:
		return RULE_INTERFACE_MAX;
	case MATCH_NFACCT:
		return RULE_NFACCT_MAX;
	case MATCH_RECENT_CHECK:
	case MATCH_RECENT_SET:
		return RULE_RECENT_MAX;
	default:
		return RULE_COMMENT_MAX;
	}
}

/* --dport goes with its protocol. */
static uint8_t *put_value(uint8_t *at, const struct rule *rule, const struct match *match)
{
	const struct match *port = rule_match(rule, MATCH_PORT);

	if (match_has_prefix(match))
		return put_prefix(at, &match->prefix);
	at = put_u32(at, match->kind == MATCH_STATISTIC ? probability_value(match->one_in)
							: match->number);
	if (match->kind == MATCH_PROTOCOL)
		at = put_u32(at, port ? port->port : 0);
	return match->text ? put_text(at, match->text, text_most(match->kind)) : at;
}

static bool is_front(enum match_kind kind)
{
	return kind == MATCH_INTERFACE || kind == MATCH_SOURCE || kind == MATCH_DESTINATION;
}

static uint8_t *put_match(uint8_t *at, const struct rule *rule, const struct match *match)
{
	*at++ = (uint8_t)match->kind;
	*at++ = (uint8_t)(match->invert | (match->bare && !is_front(match->kind)) << 1);
	return put_value(at, rule, match);
}

static uint8_t *put_front(uint8_t *at, const struct rule *rule)
{
	static const enum match_kind kinds[] = {MATCH_INTERFACE, MATCH_SOURCE, MATCH_DESTINATION};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct match *match = rule_match(rule, kinds[i]);

		if (match &&
		    (match->kind == MATCH_INTERFACE || match->invert || match->prefix.length > 0))
			at = put_match(at, rule, match);
	}
	return at;
}

/* A mark that is nothing is nothing, whether or'ed or xor'ed. */
static uint8_t *put_target(uint8_t *at, const struct target *target)
{
	enum target_kind kind = target->kind;

	if (kind == TARGET_MARK_OR && target->mark == 0)
		kind = TARGET_MARK_XOR;
	*at++ = (uint8_t)(CODE_TARGET | kind);
	switch (kind) {
	case TARGET_CHAIN:
	case TARGET_GOTO:
	case TARGET_OTHER:
		return put_text(at, target->chain, RULE_COMMENT_MAX);
	case TARGET_MARK_XOR:
	case TARGET_MARK_OR:
		return put_u32(at, target->mark);
	case TARGET_MASQUERADE:
		*at++ = target->random_fully;
		return at;
	case TARGET_DNAT:
		at = put_u32(at, target->dnat.port);
		return put(at, target->dnat.addr.bytes, addr_bytes(target->dnat.addr.family));
	default:
		return at;
	}
}

static size_t encode(const struct rule *rule, uint8_t code[CODE_MAX])
{
	uint8_t *at = put_front(code, rule);

	for (size_t i = 0; i < rule->n_matches; i++)
		if (!is_front(rule->matches[i].kind) && rule->matches[i].kind != MATCH_PORT)
			at = put_match(at, rule, &rule->matches[i]);
	return (size_t)(put_target(at, &rule->target) - code);
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
	uint8_t codes[2][CODE_MAX];
	size_t n = encode(a, codes[0]);

	return n == encode(b, codes[1]) && memcmp(codes[0], codes[1], n) == 0;
}

static const uint64_t *hash_key(void)
{
	static uint64_t key[2];
	static bool drawn;

	if (!drawn)
		arc4random_buf(key, sizeof(key));
	drawn = true;
	return key;
}

uint64_t rule_hash(const struct rule *rule)
{
	uint8_t code[CODE_MAX];

	return siphash(hash_key(), code, encode(rule, code));
}
