/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs iptables, iptables-save and iptables-restore (or their ip6 twins) of one family,
 * version 1.6.2 or newer: older ones refuse `-w 5`, and the error has their words.
 *
 * Commands of one tool run one after another, in the order in which they were asked for. Each ends
 * with its callback, from the loop:
 *
 *	command			1			0			negative
 *	IPTABLES_NEW_CHAIN	created			was there
 *	IPTABLES_CHECK		present			absent
 *	the others, save,	done			-
 *	restore
 *
 * -EAGAIN stands for exit status 4: the lock was not to be had, or the kernel lacked a resource.
 * Any other failure is an error with the tool's own words.
 */

#include "base/addr.h"
#include "base/err.h"
#include "base/text.h"
#include "base/variant.h"

struct arena;
struct event_base;
struct iptables_tool;
struct iptables_job;

enum iptables_op {
	IPTABLES_NEW_CHAIN = 0, /* -N */
	IPTABLES_CHECK,         /* -C */
	IPTABLES_PREPEND,       /* -I */
	IPTABLES_DELETE,        /* -D */
	IPTABLES_LIST,          /* -S */
	IPTABLES_DELETE_CHAIN,  /* -X */
	IPTABLES_OP_COUNT,
};

struct iptables_command {
	enum iptables_op op;
	const char *table;
	const char *chain;
	const char *const
		*words; /* of the rule, for CHECK, PREPEND and DELETE; NULL-terminated, or NULL */
};

typedef void iptables_done_fn(void *arg, int r, struct err *err);
typedef void iptables_line_fn(void *arg, const char *line, size_t length);

/*
 * Finds the programs of a variant (iptables_programs.h; this blocks, for some milliseconds).
 * Without a loop the tool gets one of its own: iptables_tool_call() and iptables_tool_finish() turn
 * it.
 */
int iptables_tool_open(struct event_base *loop, enum family family, enum iptables_variant variant,
		       struct iptables_tool **ret, struct err *err);
/* Accepts NULL. Ends what is running; a restore gets two seconds to finish. No callbacks. */
struct iptables_tool *iptables_tool_close(struct iptables_tool *tool);

/* The command and its words are copied. */
struct iptables_job *iptables_tool_start(struct iptables_tool *tool,
					 const struct iptables_command *command,
					 iptables_done_fn *done, void *arg);
/* iptables-save -t TABLE, line by line. */
struct iptables_job *iptables_tool_save(struct iptables_tool *tool, const char *table,
					iptables_line_fn *line, iptables_done_fn *done, void *arg);
/*
 * iptables-restore --noflush --counters; table NULL: all that the input names. The input is moved
 * away. Nothing is run when it is empty.
 */
struct iptables_job *iptables_tool_restore(struct iptables_tool *tool, const char *table,
					   struct text *input, iptables_done_fn *done, void *arg);
/* The same with input in pieces: more(arg, ...) as struct process_spec has it, from the loop. */
typedef bool iptables_more_fn(void *arg, struct text *input);
struct iptables_job *iptables_tool_restore_pieces(struct iptables_tool *tool, const char *table,
						  iptables_more_fn *more, iptables_done_fn *done,
						  void *arg);
/* A job that has not yet called back. */
void iptables_tool_cancel(struct iptables_tool *tool, struct iptables_job *job);

/* Waits for one command, or for all: only for a tool that has a loop of its own. */
int iptables_tool_call(struct iptables_tool *tool, const struct iptables_command *command,
		       struct err *err);
void iptables_tool_finish(struct iptables_tool *tool);

/*
 * iptables-nft -S CHAIN: the n rules of a chain as iptables-save prints them, an array in the arena. NULL: there are
 * no such programs, or the chain has another number of rules by now. Blocks.
 */
const char **iptables_tool_words(enum family family, const char *table, const char *chain, size_t n,
				 struct arena *arena);
