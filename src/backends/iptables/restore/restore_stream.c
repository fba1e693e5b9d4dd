/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/restore/restore_stream.h"

#include <stdlib.h>

#include "xtables/restore_writer.h"

static const struct pass {
	enum table table;
	enum restore_kind kind;
	unsigned int rounds[2]; /* parts of each Service, one round after the other; 0: none */
} passes[] = {
	{TABLE_FILTER, RESTORE_CHAINS, {0}},
	{TABLE_FILTER, RESTORE_RULES, {RULESET_LEADING, RULESET_FOLLOWING}},
	{TABLE_NAT, RESTORE_CHAINS, {RULESET_OWN_CHAINS}},
	{TABLE_NAT, RESTORE_RULES, {RULESET_LEADING, RULESET_FOLLOWING | RULESET_OWN_RULES}},
};

struct restore_stream {
	struct ruleset *ruleset;
	struct ruleset_input input;
	struct restore_writer writer;
	size_t pass; /* ARRAY_SIZE(passes): at the end */
	size_t round;
	size_t at; /* the next Service */
	bool open; /* the pass has begun */
};

struct restore_stream *restore_stream_new(struct ruleset *ruleset,
					  const struct ruleset_input *input)
{
	struct restore_stream *stream = xcalloc(1, sizeof(*stream));

	stream->ruleset = ruleset;
	stream->input = *input;
	restore_writer_init(&stream->writer);
	return stream;
}

struct restore_stream *restore_stream_free(struct restore_stream *stream)
{
	if (!stream)
		return NULL;
	restore_writer_done(&stream->writer);
	free(stream);
	return NULL;
}

static struct text *text_of(struct restore_stream *stream, const struct pass *pass)
{
	return pass->kind == RESTORE_CHAINS ? &stream->writer.chains[pass->table]
					    : &stream->writer.rules[pass->table];
}

static void begin_pass(struct restore_stream *stream, const struct pass *pass)
{
	struct text *text = text_of(stream, pass);

	memset(stream->writer.wanted, 0, sizeof(stream->writer.wanted));
	stream->writer.wanted[pass->table] = pass->kind;
	stream->open = true;
	stream->at = stream->round = 0;
	if (pass->kind == RESTORE_CHAINS) {
		text_str(text, "*");
		text_str(text, table_name(pass->table));
		text_str(text, "\n");
	}
	ruleset_write_head(stream->ruleset, &stream->input, &stream->writer.txn);
}

static void end_pass(struct restore_stream *stream, const struct pass *pass)
{
	ruleset_write_tail(stream->ruleset, &stream->input, &stream->writer.txn);
	if (pass->kind == RESTORE_RULES)
		text_str(text_of(stream, pass), "COMMIT\n");
	stream->open = false;
	stream->pass++;
}

/* False: the piece is full, and the round has not ended. */
static bool go_round(struct restore_stream *stream, const struct pass *pass)
{
	const struct text *text = text_of(stream, pass);
	unsigned int parts = pass->rounds[stream->round];
	size_t n = parts ? ruleset_n_services(stream->ruleset) : 0;

	while (stream->at < n && text->size < RESTORE_STREAM_PIECE)
		ruleset_write_service(stream->ruleset, stream->at++, parts, &stream->writer.txn);
	if (stream->at < n)
		return false;
	stream->at = 0;
	stream->round++;
	return true;
}

/* Until a piece is full, or the pass has ended. */
static void go_on(struct restore_stream *stream, const struct pass *pass)
{
	if (!stream->open)
		begin_pass(stream, pass);
	while (stream->round < ARRAY_SIZE(pass->rounds))
		if (!go_round(stream, pass))
			return;
	end_pass(stream, pass);
}

bool restore_stream_more(struct restore_stream *stream, struct text *ret)
{
	const struct pass *pass = &passes[stream->pass];

	if (stream->pass == ARRAY_SIZE(passes))
		return false;
	go_on(stream, pass); /* every pass has something: its first lines, or its last */
	text_move(ret, text_of(stream, pass));
	return true;
}
