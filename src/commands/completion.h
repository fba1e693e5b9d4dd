/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What can stand at the end of a command line that is being typed.
 *
 * Everything is taken from the tables of commands and flags, so that whatever is added there is
 * completed too. What they call a value says what is offered for it:
 *
 *	human|json|yaml         these words
 *	file, dir               files, or folders, which the shell knows how to list
 *	namespace, SERVICE, ... names in the cluster
 *
 * and the first word of a command's usage line says the same of its arguments.
 */

#include "commands/command.h"

struct model;

enum completion_how {
	COMPLETION_WORDS = 0,
	COMPLETION_PARTS, /* words with more to come: no blank behind them */
	COMPLETION_FILES,
	COMPLETION_FOLDERS,
	COMPLETION_HOW_COUNT,
};

const char *completion_how_name(enum completion_how how);

struct completion_item {
	char *word;  /* in place of the whole word that was typed */
	char *about; /* in a few words; may be "" */
};

struct completion {
	enum completion_how how;
	struct completion_item *items; /* none for files and folders */
	size_t n, capacity;
};

/* More than this many are folded: what they have in common up to the next "/" stands for them. */
#define COMPLETION_MOST 200

/*
 * The cluster that a command with these words (flags that are complete, without the command's name)
 * would look at; NULL: unknown. Asked for at most once, and only when a name is wanted.
 */
typedef struct model *completion_load(void *arg, enum command_id command, int argc, char **argv);

/* The last word is the one that is being typed; it may be "". */
void completion_find(int argc, char **argv, completion_load *load, void *arg,
		     struct completion *ret);
void completion_done(struct completion *completion);
#define cleanup_completion attr_cleanup(completion_done)
