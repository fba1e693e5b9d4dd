/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/restore_writer.h"

#include "xtables/rule_parse.h"

/*
 * A rule becomes one line, put together in place and added to the text at once. Chain lines must
 * stand before all rules of their table while rules and chains are said in one stream, so each
 * table has two texts, which are hung behind each other in the end without being copied.
 */

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
	at = put_rule(line, start, rule, RULE_FORM_RESTORE);
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

char **restore_rule_argv(const struct rule *rule, struct arena *arena, size_t *ret_n)
{
	char line[RULE_TEXT_MAX];
	char *at = line;
	char **argv;
	char *word;
	size_t n = 0;

	*put_rule_words(line, rule, RULE_FORM_RESTORE) = '\0';
	argv = arena_array(arena, strlen(line) / 2 + 1, sizeof(*argv));
	while ((word = rule_next_word(&at)))
		argv[n++] = arena_strdup(arena, word);
	*ret_n = n;
	return argv;
}
