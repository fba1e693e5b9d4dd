/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as what was sent to iptables-restore and, behind a NUL, what it said when it failed. The first byte says in how large
 * pieces the input was sent; 255: it is repeated until most of it is forgotten.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_restore_error
 *	build-fuzz/tests/fuzz/fuzz_restore_error tests/fuzz/corpus/restore_error
 */

#include <assert.h>
#include <stdlib.h>

#include "kernel/restore_error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ALL_OF_IT 255

/* A line that is still known is the one that was sent. */
static void check_line(const struct restore_tail *tail, size_t number, const char *sent, size_t n)
{
	cleanup_free char *line = restore_tail_line(tail, number);
	const char *end = sent + n;

	for (size_t i = 1; sent && i < number; i++) {
		sent = memchr(sent, '\n', (size_t)(end - sent));
		sent = sent ? sent + 1 : NULL;
	}
	if (line)
		assert(sent && (size_t)(end - sent) >= strlen(line) &&
		       memcmp(sent, line, strlen(line)) == 0);
}

static void check_words(const struct restore_tail *tail, const char *said)
{
	const struct process_result result = {.exit_code = 1, .errors = said, .output = ""};
	struct err err;
	int r = restore_error_check("iptables-restore", &result, tail, &err);

	assert(r < 0 && err.text[0] && !strchr(err.text, '\n'));
}

static void send_pieces(struct restore_tail *tail, const char *sent, size_t n, size_t piece)
{
	for (size_t at = 0; at < n; at += piece)
		restore_tail_add(tail, sent + at, MIN(piece, n - at));
}

static void send_often(struct restore_tail *tail, const char *sent, size_t n)
{
	static char block[64 * 1024];
	size_t used = 0;

	while (used < sizeof(block)) {
		size_t part = MIN(n, sizeof(block) - used);

		memcpy(block + used, sent, part);
		used += part;
	}
	for (size_t all = 0; all < RESTORE_TAIL_MAX + sizeof(block); all += sizeof(block))
		restore_tail_add(tail, block, sizeof(block));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct restore_tail tail = {0};
	cleanup_free char *said = NULL;
	const char *sent = (const char *)data + 1;
	const char *end;
	size_t n;

	if (size < 2)
		return 0;
	end = memchr(sent, '\0', size - 1);
	n = end ? (size_t)(end - sent) : size - 1;
	said = xasprintf("%.*s", end ? (int)(size - n - 2) : 0, end ? end + 1 : "");
	if (data[0] == ALL_OF_IT && n > 0)
		send_often(&tail, sent, n);
	else
		send_pieces(&tail, sent, n, (size_t)data[0] + 1);
	check_words(&tail, said);
	for (size_t i = 0; data[0] != ALL_OF_IT && i < 8; i++)
		check_line(&tail, i, sent, n);
	restore_tail_done(&tail);
	return 0;
}
