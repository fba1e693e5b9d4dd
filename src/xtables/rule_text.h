/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pieces of text that both writers need. Each takes the place to write to and returns the place
 * behind: rules are written by copying, never by printf, because a full sync of a big cluster has
 * 170,000 of them.
 */

#include "xtables/rule.h"

/* Upper bound of one rule's text: each match has at most one text of RULE_COMMENT_MAX bytes. */
#define RULE_TEXT_MAX ((RULE_MATCH_MAX + 1) * (RULE_COMMENT_MAX + 96))

static inline char *put_bytes(char *at, const char *s, size_t n)
{
	memcpy(at, s, n);
	return at + n;
}

#define PUT(at, literal) put_bytes((at), (literal), sizeof(literal) - 1)

/* Cuts at RULE_COMMENT_MAX bytes; no text in a rule may be longer. */
char *put_string(char *at, const char *s);
char *put_comment_match(char *at, const char *text, bool quoted); /* " -m comment --comment ..." */
char *put_number(char *at, uint32_t n);
char *put_ctstates(char *at, unsigned int states); /* "RELATED,ESTABLISHED" */

/* " -j ..." for the targets that iptables-restore reads as iptables-save writes them. */
char *put_plain_target(char *at, const struct target *target);

/*
 * 1/one_in with ten decimals, as iptables-restore is told: "0.3333333333". It is what the tool
 * reads, so whoever needs the number that the kernel gets starts from this text.
 */
#define PROBABILITY_LENGTH 12
const char *probability_text(unsigned int one_in);
/* The same as the kernel has it: a share of 2^31. */
uint32_t probability_value(unsigned int one_in);
