/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A rule in the words of iptables: as iptables-restore reads them, which is how kube-proxy writes them,
 * and as iptables-save (1.8.9, nf_tables) prints them. Rules are written by copying, never by printf,
 * because a full sync of a big cluster has 170,000 of them.
 */

#include "xtables/rule.h"

/* Upper bound of one rule's text: each match has at most one text of RULE_COMMENT_MAX bytes. */
#define RULE_TEXT_MAX ((RULE_MATCH_MAX + 1) * (RULE_COMMENT_MAX + 96))

enum rule_form {
	RULE_FORM_RESTORE = 0,
	RULE_FORM_SAVE_IPV4,
	RULE_FORM_SAVE_IPV6,
};

enum rule_form rule_form_save(enum family family);

static inline char *put_bytes(char *at, const char *s, size_t n)
{
	memcpy(at, s, n);
	return at + n;
}

#define PUT(at, literal) put_bytes((at), (literal), sizeof(literal) - 1)

/*
 * Each of these takes the place to write to and returns the place behind, without a NUL. Texts are cut
 * at RULE_COMMENT_MAX bytes.
 */
char *put_string(char *at, const char *s);
/* Matches and target, with a blank before every word. */
char *put_rule_words(char *at, const struct rule *rule, enum rule_form form);
/* "-A CHAIN words"; command: "-A " or another of three bytes. */
char *put_rule(char *at, const char command[3], const struct rule *rule, enum rule_form form);

/* "-A CHAIN words" with a NUL; its length. */
size_t rule_print(const struct rule *rule, enum rule_form form, char out[RULE_TEXT_MAX]);

/*
 * 1/one_in with ten decimals, as iptables-restore is told: "0.3333333333". It is what the tool
 * reads, so the number that the kernel gets is made from this text.
 */
#define PROBABILITY_LENGTH 12
const char *probability_text(unsigned int one_in);
/* The same as the kernel has it: a share of 2^31. */
uint32_t probability_value(unsigned int one_in);
/* The number that has this share, as exact as a double of it (0.33333333349); or any, if none has. */
unsigned int probability_one_in(double probability);

#define CTSTATE_COUNT 5
extern const char *const ctstate_names[CTSTATE_COUNT]; /* by bit of enum ctstate */
