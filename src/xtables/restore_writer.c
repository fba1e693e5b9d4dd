/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/restore_writer.h"

#include <assert.h>

/*
 * A rule becomes one line, put together in place and added to the text at once. Chain lines must
 * stand before all rules of their table while rules and chains are said in one stream, so each
 * table has two texts, which are hung behind each other in the end without being copied.
 */

/* Words of a comment stand in quotes when there are several. */
static char *put_comment(char *at, const struct match *match)
{
	bool quoted = strchr(match->text, ' ');

	return put_comment_match(at, match->text, quoted);
}

static char *put_protocol(char *at, const struct match *match)
{
	switch (match->protocol) {
	case PROTOCOL_TCP:
		return PUT(at, " -m tcp -p tcp");
	case PROTOCOL_UDP:
		return PUT(at, " -m udp -p udp");
	default:
		return PUT(at, " -m sctp -p sctp");
	}
}

static char *put_invert(char *at, const struct match *match)
{
	return match->invert ? PUT(at, " !") : at;
}

static char *put_prefix(char *at, const struct match *match)
{
	if (match->bare)
		return at + addr_print(&match->prefix.addr, at);
	return at + prefix_print(&match->prefix, at);
}

static char *put_source(char *at, const struct match *match)
{
	return put_prefix(PUT(put_invert(at, match), " -s "), match);
}

static char *put_destination(char *at, const struct match *match)
{
	return put_prefix(PUT(put_invert(at, match), " -d "), match);
}

static char *put_interface(char *at, const struct match *match)
{
	return put_string(PUT(put_invert(at, match), " -i "), match->text);
}

static char *put_port(char *at, const struct match *match)
{
	return put_number(PUT(at, " --dport "), match->port);
}

static char *put_ctstate(char *at, const struct match *match)
{
	at = put_invert(PUT(at, " -m conntrack"), match);
	return put_ctstates(PUT(at, " --ctstate "), match->ctstate);
}

/* Eight digits, always. */
static char *put_mark_number(char *at, uint32_t mark)
{
	at = PUT(at, "0x");
	for (int shift = 28; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[mark >> shift & 15];
	return at;
}

static char *put_mark(char *at, const struct match *match)
{
	at = put_invert(PUT(at, " -m mark"), match);
	at = put_mark_number(PUT(at, " --mark "), match->mark);
	*at++ = '/';
	return put_mark_number(at, match->mark);
}

static char *put_source_local(char *at, const struct match *match attr_unused)
{
	return PUT(at, " -m addrtype --src-type LOCAL");
}

static char *put_destination_local(char *at, const struct match *match attr_unused)
{
	return PUT(at, " -m addrtype --dst-type LOCAL");
}

static char *put_statistic(char *at, const struct match *match)
{
	at = PUT(at, " -m statistic --mode random --probability ");
	return put_bytes(at, probability_text(match->one_in), PROBABILITY_LENGTH);
}

static char *put_recent_check(char *at, const struct match *match)
{
	at = put_string(PUT(at, " -m recent --name "), match->recent.name);
	at = put_number(PUT(at, " --rcheck --seconds "), match->recent.seconds);
	return PUT(at, " --reap");
}

static char *put_recent_set(char *at, const struct match *match)
{
	at = put_string(PUT(at, " -m recent --name "), match->recent.name);
	return PUT(at, " --set");
}

static char *put_nfacct(char *at, const struct match *match)
{
	return put_string(PUT(at, " -m nfacct --nfacct-name "), match->text);
}

static char *(*const put_match[])(char *at, const struct match *match) = {
	[MATCH_COMMENT] = put_comment,
	[MATCH_PROTOCOL] = put_protocol,
	[MATCH_SOURCE] = put_source,
	[MATCH_DESTINATION] = put_destination,
	[MATCH_INTERFACE] = put_interface,
	[MATCH_PORT] = put_port,
	[MATCH_CTSTATE] = put_ctstate,
	[MATCH_MARK] = put_mark,
	[MATCH_SOURCE_TYPE_LOCAL] = put_source_local,
	[MATCH_DESTINATION_TYPE_LOCAL] = put_destination_local,
	[MATCH_STATISTIC] = put_statistic,
	[MATCH_RECENT_CHECK] = put_recent_check,
	[MATCH_RECENT_SET] = put_recent_set,
	[MATCH_NFACCT] = put_nfacct,
};

static_assert(ARRAY_SIZE(put_match) == MATCH_OTHER, "one function for each match of ours");

static char *put_target(char *at, const struct target *target)
{
	switch (target->kind) {
	case TARGET_REJECT:
		return PUT(at, " -j REJECT");
	case TARGET_MARK_XOR:
		return put_mark_number(PUT(at, " -j MARK --xor-mark "), target->mark);
	case TARGET_MARK_OR:
		return put_mark_number(PUT(at, " -j MARK --or-mark "), target->mark);
	default:
		return put_plain_target(at, target);
	}
}

/* Every word has a blank before it. */
static char *put_words(char *at, const struct rule *rule)
{
	for (size_t i = 0; i < rule->n_matches; i++)
		at = put_match[rule->matches[i].kind](at, &rule->matches[i]);
	return put_target(at, &rule->target);
}

static void write_chain(struct txn *txn, enum table table, const char *name)
{
	struct restore_writer *writer = (struct restore_writer *)txn;
	struct text *text = &writer->chains[table];

	if (!(writer->wanted[table] & RESTORE_CHAINS))
		return;
	text_add(text, ":", 1);
	text_str(text, name);
	text_str(text, " - [0:0]\n");
}

static void write_line(struct txn *txn, const char start[3], const struct rule *rule)
{
	struct restore_writer *writer = (struct restore_writer *)txn;
	char line[RULE_TEXT_MAX];
	char *at;

	if (!(writer->wanted[rule->table] & RESTORE_RULES))
		return;
	at = put_string(put_bytes(line, start, 3), rule->chain);
	at = put_words(at, rule);
	*at++ = '\n';
	text_add(&writer->rules[rule->table], line, (size_t)(at - line));
}

static void write_rule(struct txn *txn, const struct rule *rule)
{
	write_line(txn, "-A ", rule);
}

static void write_insert_rule(struct txn *txn, const struct rule *rule)
{
	write_line(txn, "-I ", rule);
}

static void write_remove_rule(struct txn *txn, const struct rule *rule)
{
	write_line(txn, "-D ", rule);
}

static void write_delete_chain(struct txn *txn, enum table table, const char *name)
{
	struct restore_writer *writer = (struct restore_writer *)txn;
	struct text *text = &writer->rules[table];

	if (!(writer->wanted[table] & RESTORE_RULES))
		return;
	text_str(text, "-X ");
	text_str(text, name);
	text_add(text, "\n", 1);
}

static const struct txn_ops restore_ops = {
	.chain = write_chain,
	.rule = write_rule,
	.insert_rule = write_insert_rule,
	.remove_rule = write_remove_rule,
	.delete_chain = write_delete_chain,
};

void restore_writer_init(struct restore_writer *writer)
{
	writer->txn.ops = &restore_ops;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		writer->wanted[i] = RESTORE_CHAINS | RESTORE_RULES;
		text_init(&writer->chains[i]);
		text_init(&writer->rules[i]);
	}
}

void restore_writer_done(struct restore_writer *writer)
{
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		text_done(&writer->chains[i]);
		text_done(&writer->rules[i]);
	}
}

void restore_writer_finish(struct restore_writer *writer, struct text *ret)
{
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		if (writer->chains[i].size == 0 && writer->rules[i].size == 0)
			continue;
		text_str(ret, "*");
		text_str(ret, table_name((enum table)i));
		text_str(ret, "\n");
		text_move(ret, &writer->chains[i]);
		text_move(ret, &writer->rules[i]);
		text_str(ret, "COMMIT\n");
	}
}

size_t restore_rule_line(const struct rule *rule, char line[RULE_TEXT_MAX])
{
	char *end = put_words(put_string(PUT(line, "-A "), rule->chain), rule);

	*end = '\0';
	return (size_t)(end - line);
}

void restore_rule_words(const struct rule *rule, struct text *ret)
{
	char line[RULE_TEXT_MAX];
	char *end = put_words(line, rule);

	if (end > line)
		text_add(ret, line + 1, (size_t)(end - line - 1));
}

/* Cuts the next word off the line: up to a blank, or between quotes. NULL: there is none. */
static char *cut_word(char **at)
{
	char *word = *at + strspn(*at, " ");
	char end = ' ';

	if (!*word)
		return NULL;
	if (*word == '"') {
		word++;
		end = '"';
	}
	*at = strchrnul(word, end);
	if (**at)
		*(*at)++ = '\0';
	return word;
}

char **restore_rule_argv(const struct rule *rule, struct arena *arena, size_t *ret_n)
{
	char line[RULE_TEXT_MAX];
	char *at = line;
	char **argv;
	char *word;
	size_t n = 0;

	*put_words(line, rule) = '\0';
	argv = arena_array(arena, strlen(line) / 2 + 1, sizeof(*argv));
	while ((word = cut_word(&at)))
		argv[n++] = arena_strdup(arena, word);
	*ret_n = n;
	return argv;
}
