/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/rule_parse.h"

#include <stdlib.h>

#include "xtables/rule_text.h"

/*
 * Words are read without asking whether they belong there: what was read is printed again, and if that is
 * not the line, then the line is none of ours.
 */

struct parsing {
	struct rule *rule;
	bool has_protocol; /* -p was said: */
	enum protocol protocol;
	bool invert; /* "!" was the last word */
	bool full;   /* there are more matches than a rule holds */
};

char *rule_next_word(char **at)
{
	char *word = *at + strspn(*at, " "), *from = word, *to = word;
	bool quoted = *word == '"';

	if (!*word)
		return NULL;
	for (from += quoted; *from && *from != (quoted ? '"' : ' '); from++) {
		if (quoted && *from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*at = from + (*from != '\0');
	*to = '\0';
	return word;
}

static uint32_t number(const char *word)
{
	return (uint32_t)strtoul(word, NULL, 0);
}

static unsigned int states(const char *word)
{
	unsigned int bits = 0;

	for (size_t i = 0; i < CTSTATE_COUNT; i++)
		if (strstr(word, ctstate_names[i]))
			bits |= 1U << i;
	return bits;
}

/* -- matches */

static struct match *add(struct parsing *parsing, enum match_kind kind)
{
	struct rule *rule = parsing->rule;
	struct match *match;

	parsing->full |= rule->n_matches == RULE_MATCH_MAX;
	match = &rule->matches[MIN(rule->n_matches, RULE_MATCH_MAX - 1)];
	rule->n_matches += !parsing->full;
	*match = (struct match){.kind = kind, .invert = parsing->invert};
	return match;
}

static void set_value(struct match *match, const char *word)
{
	switch (match->kind) {
	case MATCH_SOURCE:
	case MATCH_DESTINATION:
		prefix_parse(word, &match->prefix);
		break;
	case MATCH_COMMENT:
	case MATCH_INTERFACE:
	case MATCH_NFACCT:
		match->text = word;
		break;
	case MATCH_PORT:
		match->port = (uint16_t)number(word);
		break;
	case MATCH_CTSTATE:
		match->ctstate = states(word);
		break;
	case MATCH_MARK:
		match->mark = number(word);
		break;
	case MATCH_STATISTIC:
		match->one_in = probability_one_in(strtod(word, NULL));
		break;
	case MATCH_RECENT_CHECK:
	case MATCH_RECENT_SET: /* which have options of their own */
		match->recent.name = "";
		break;
	default:
		break;
	}
}

static const struct {
	const char *word;
	enum match_kind kind;
	bool has_value;
} matches[] = {
	{"-s", MATCH_SOURCE, true},
	{"-d", MATCH_DESTINATION, true},
	{"-i", MATCH_INTERFACE, true},
	{"--comment", MATCH_COMMENT, true},
	{"--dport", MATCH_PORT, true},
	{"--ctstate", MATCH_CTSTATE, true},
	{"--state", MATCH_CTSTATE, true},
	{"--mark", MATCH_MARK, true},
	{"--src-type", MATCH_SOURCE_TYPE_LOCAL, true},
	{"--dst-type", MATCH_DESTINATION_TYPE_LOCAL, true},
	{"--probability", MATCH_STATISTIC, true},
	{"--rcheck", MATCH_RECENT_CHECK, false},
	{"--set", MATCH_RECENT_SET, false},
	{"--nfacct-name", MATCH_NFACCT, true},
};

static bool take_match(struct parsing *parsing, const char *word, char **rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(matches); i++) {
		const char *value = "";

		if (!streq(word, matches[i].word))
			continue;
		if (matches[i].has_value)
			value = rule_next_word(rest);
		if (value) {
			struct match *match = add(parsing, matches[i].kind);

			match->bare = streq(word, "--state");
			set_value(match, value);
		}
		return true;
	}
	return false;
}

/* Options of the match before: those of -m recent. */
static bool take_recent(struct parsing *parsing, const char *word, char **rest)
{
	struct rule *rule = parsing->rule;
	struct match *match = rule->n_matches > 0 ? &rule->matches[rule->n_matches - 1] : NULL;
	const char *value;

	if (!match || (match->kind != MATCH_RECENT_CHECK && match->kind != MATCH_RECENT_SET) ||
	    (!streq(word, "--seconds") && !streq(word, "--name")))
		return false;
	value = rule_next_word(rest);
	if (value && streq(word, "--name"))
		match->recent.name = value;
	else if (value)
		match->recent.seconds = number(value);
	return true;
}

/* "-p tcp" stands in front, and "-m tcp" where the match is. */
static bool take_protocol(struct parsing *parsing, const char *word, char **rest)
{
	const char *name;

	if (!streq(word, "-p") && !streq(word, "-m"))
		return false;
	name = rule_next_word(rest);
	for (enum protocol protocol = 0; name && protocol < PROTOCOL_COUNT; protocol++) {
		if (!streq(name, protocol_name(protocol)))
			continue;
		if (streq(word, "-m"))
			add(parsing, MATCH_PROTOCOL)->protocol = protocol;
		parsing->has_protocol = streq(word, "-p");
		parsing->protocol = protocol;
	}
	return true;
}

/* -- targets */

/* "10.0.0.1:80" or "[fd00::1]:80" */
static void set_destination(struct target *target, char *word)
{
	char *colon = strrchr(word, ':');
	bool brackets = word[0] == '[' && colon && colon > word && colon[-1] == ']';

	if (!colon)
		return;
	target->dnat.port = (uint16_t)number(colon + 1);
	colon[-brackets] = '\0';
	addr_parse(word + brackets, &target->dnat.addr);
}

/* "--set-xmark MARK/MASK": --or-mark or --xor-mark, by the mask. */
static void set_mark(struct target *target, const char *word)
{
	const char *mask = strchr(word, '/');

	target->kind = mask && number(mask + 1) ? TARGET_MARK_OR : TARGET_MARK_XOR;
	target->mark = number(word);
}

static void set_target(struct target *target, const char *word, bool goes)
{
	static const char *const names[TARGET_COUNT] = {
		[TARGET_ACCEPT] = "ACCEPT",         [TARGET_DROP] = "DROP",
		[TARGET_RETURN] = "RETURN",         [TARGET_REJECT] = "REJECT",
		[TARGET_MARK_XOR] = "MARK",         [TARGET_DNAT] = "DNAT",
		[TARGET_MASQUERADE] = "MASQUERADE",
	};

	*target = (struct target){.kind = goes ? TARGET_GOTO : TARGET_CHAIN, .chain = word};
	for (enum target_kind kind = 0; !goes && kind < TARGET_COUNT; kind++)
		if (names[kind] && streq(names[kind], word))
			*target = (struct target){.kind = kind};
}

static bool take_target(struct parsing *parsing, const char *word, char **rest)
{
	struct target *target = &parsing->rule->target;
	char *value;

	if (target->kind == TARGET_MASQUERADE && streq(word, "--random-fully"))
		return target->random_fully = true;
	if (!streq(word, "-j") && !streq(word, "-g") &&
	    !(target->kind == TARGET_DNAT && streq(word, "--to-destination")) &&
	    !(target->kind == TARGET_MARK_XOR && streq(word, "--set-xmark")))
		return false;
	value = rule_next_word(rest);
	if (!value)
		return true;
	if (word[1] != '-')
		set_target(target, value, word[1] == 'g');
	else if (target->kind == TARGET_DNAT)
		set_destination(target, value);
	else
		set_mark(target, value);
	return true;
}

/* -- lines */

static void parse_words(struct parsing *parsing, char *rest)
{
	const char *word;

	while ((word = rule_next_word(&rest))) {
		bool invert = streq(word, "!");

		if (!invert && !take_match(parsing, word, &rest) &&
		    !take_recent(parsing, word, &rest) && !take_protocol(parsing, word, &rest))
			take_target(parsing, word, &rest);
		parsing->invert = invert;
	}
	if (parsing->has_protocol) {
		struct match *match = add(parsing, MATCH_PROTOCOL);

		match->protocol = parsing->protocol;
		match->bare = true;
	}
}

bool rule_parse(const char *line, enum family family, struct arena *arena, struct rule *ret)
{
	struct parsing parsing = {.rule = ret};
	char printed[RULE_TEXT_MAX];
	char *rest;

	if (!has_prefix(line, "-A "))
		return false;
	rest = arena_strdup(arena, line + strlen("-A "));
	rule_init(ret, TABLE_COUNT, rule_next_word(&rest));
	if (!ret->chain)
		return false;
	parse_words(&parsing, rest);
	if (!parsing.full)
		rule_print(ret, rule_form_save(family), printed);
	if (parsing.full || !streq(printed, line))
		*add(&parsing, MATCH_OTHER) = (struct match){MATCH_OTHER, .text = "other"};
	return true;
}
