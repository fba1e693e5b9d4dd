/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes a transaction as input for iptables-restore --noflush --counters: filter, then nat. */

#include "base/text.h"
#include "xtables/rule_text.h"
#include "xtables/txn.h"

enum restore_kind {
	RESTORE_CHAINS = 1 << 0, /* ":CHAIN" lines */
	RESTORE_RULES = 1 << 1,  /* all others */
};

struct restore_writer {
	struct txn txn;
	unsigned int wanted[TABLE_COUNT]; /* of enum restore_kind: what is not wanted is left out */
	struct text chains[TABLE_COUNT];
	struct text rules[TABLE_COUNT]; /* -A, -D and -X lines, in the order given */
};

void restore_writer_init(struct restore_writer *writer);
void restore_writer_done(struct restore_writer *writer);
/* Moves the finished text to *ret (appending), leaving the writer empty. */
void restore_writer_finish(struct restore_writer *writer, struct text *ret);

/*
 * A rule's words as separate arguments, as a command line needs them (a comment is one word without
 * quotes): a NULL-terminated array in `arena`, chain not included.
 */
char **restore_rule_argv(const struct rule *rule, struct arena *arena, size_t *ret_n);
