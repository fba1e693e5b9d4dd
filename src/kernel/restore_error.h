/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What iptables-restore complained about.
 *
 * The tool names a line by its number in the input, which is gone by then: a restore's memory is
 * released as it is written. So the last part of what was sent is kept: as much as a pipe holds that
 * the tool has stopped reading from, and some more. A partial sync fits as a whole, and of a very
 * large one at least what the tool was reading when it stopped.
 */

#include "base/err.h"
#include "base/text.h"
#include "kernel/process.h"

#define RESTORE_TAIL_MAX (1280UL * 1024) /* a pipe: 1 MiB; and 256 KiB */

struct restore_tail {
	struct text text;
	size_t lines_dropped; /* whole lines before the text */
	bool cut;             /* the first line of the text lacks its beginning */
};

void restore_tail_add(struct restore_tail *tail, const char *data, size_t n);
void restore_tail_done(struct restore_tail *tail);
/* Line n (from 1) without newline, for the caller to free; NULL: not there, or no longer. */
char *restore_tail_line(const struct restore_tail *tail, size_t n);

/* The number of the line that the tool's words name; 0: none. */
size_t restore_error_line(const char *said);
/* As process_check(), with the line quoted; its neighbours go to the debug log. */
int restore_error_check(const char *what, const struct process_result *result,
			const struct restore_tail *tail, struct err *err);
