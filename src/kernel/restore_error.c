/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/restore_error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

#define CONTEXT_LINES   3 /* before and behind the failing one */
#define CONTEXT_LOG     2 /* --v */
#define QUOTED_LINE_MAX 320

void restore_tail_add(struct restore_tail *tail, const char *data, size_t n)
{
	text_add(&tail->text, data, n);
	while (tail->text.size > RESTORE_TAIL_MAX) {
		size_t size;
		const char *oldest = text_head(&tail->text, &size);

		tail->cut = oldest[size - 1] != '\n';
		for (size_t i = 0; i < size; i++)
			tail->lines_dropped += oldest[i] == '\n';
		text_consume(&tail->text, size);
	}
}

void restore_tail_done(struct restore_tail *tail)
{
	text_done(&tail->text);
	*tail = (struct restore_tail){0};
}

char *restore_tail_line(const struct restore_tail *tail, size_t n)
{
	cleanup_text struct text line = {0};
	size_t at = tail->lines_dropped + 1;
	bool seen = false;

	if (n < at || (n == at && tail->cut))
		return NULL;
	for (const struct text_block *block = tail->text.first; block && at <= n;
	     block = block->next) {
		for (size_t i = 0; i < block->used && at <= n; i++) {
			seen = seen || at == n;
			if (block->data[i] == '\n')
				at++;
			else if (at == n)
				text_add(&line, block->data + i, 1);
		}
	}
	return seen ? text_dup(&line) : NULL;
}

/*
 * "iptables-restore: line 4 failed", "Error occurred at line: 4", "line 4: RULE_APPEND failed
 * (...)", "COMMIT expected at line 3".
 */
size_t restore_error_line(const char *said)
{
	for (const char *at = said; (at = strstr(at, "line")); at += strlen("line")) {
		const char *digits = at + strlen("line");

		if (*digits == ':')
			digits++;
		if (*digits == ' ' && isdigit((unsigned char)digits[1]))
			return strtoul(digits + 1, NULL, 10);
	}
	return 0;
}

/* Cuts off the advice to read the manual. */
static void trim(char *said)
{
	char *advice = strstr(said, "Try `");

	if (advice && (advice == said || advice[-1] == '\n'))
		*advice = '\0';
}

static void log_context(const char *what, const struct restore_tail *tail, size_t number)
{
	size_t first = number > CONTEXT_LINES ? number - CONTEXT_LINES : 1;

	for (size_t i = first; i <= number + CONTEXT_LINES; i++) {
		cleanup_free char *line = restore_tail_line(tail, i);

		if (line)
			log_debug(CONTEXT_LOG, "Context of the failing line",
				  KV("command", LOG_STR(what)), KV("line", LOG_INT(i)),
				  KV("text", LOG_STR(line)));
	}
}

int restore_error_check(const char *what, const struct process_result *result,
			const struct restore_tail *tail, struct err *err)
{
	struct process_result trimmed = *result;
	cleanup_free char *said = xstrdup(result->errors);
	cleanup_free char *line = NULL;
	cleanup_free char *where = NULL;
	size_t number = restore_error_line(said);

	if (result->error == 0 && result->exit_code == 0)
		return 0;
	trim(said);
	trimmed.errors = said;
	line = restore_tail_line(tail, number);
	if (!line)
		return process_check(what, &trimmed, err);
	log_context(what, tail, number);
	where = xasprintf("%s, line %zu '%.*s',", what, number, QUOTED_LINE_MAX, line);
	return process_check(where, &trimmed, err);
}
