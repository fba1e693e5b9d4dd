/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The subcommands: a row in command.c and a file cmd_NAME.c each. */

#include "base/err.h"
#include "config/options.h"

/* What a command was called with. */
struct call {
	enum command_id id;
	int argc; /* without program and command name */
	char **argv;
	struct options options;
	struct config config;
	struct problems problems; /* with either */
};

struct command {
	const char *name;
	const char *arguments; /* for the usage line; see completion.h for its first word */
	const char *summary;
	int (*run)(struct call *call); /* returns an exit code */
	bool raw;                      /* it reads its words itself: options and config are empty */
};

extern const struct command commands[COMMAND_COUNT];

/* NULL when there is none of that name. */
const struct command *command_find(const char *name);
/* "did you mean" for a name that command_find() does not know; NULL: nothing is near. */
const char *command_suggest(const char *name);
/* Usage and flags of one command, on stdout. */
void command_help(enum command_id id);

int cmd_run(struct call *call);
int cmd_render(struct call *call);
int cmd_explain(struct call *call);
int cmd_trace(struct call *call);
int cmd_list(struct call *call);
int cmd_chart(struct call *call);
int cmd_diff(struct call *call);
int cmd_conntrack(struct call *call);
int cmd_top(struct call *call);
int cmd_cleanup(struct call *call);
int cmd_completion(struct call *call);
int cmd_version(struct call *call);
int cmd_help(struct call *call);

/* Reads the flags and the configuration, unless the command does, and has it work. */
int command_run(const struct command *command, int argc, char **argv);

#define COMMAND_ANSWERED -1

/*
 * Reads the flags of a raw command. Returns EXIT_DONE; an exit code after an error, which has been
 * printed; or COMMAND_ANSWERED after --help or --version, which is the command's whole work.
 */
int command_parse(struct call *call);
/* For a command that has added what it finds wrong itself: prints all problems, if there are any;
 * else sets up the log. */
bool call_is_wrong(const struct call *call);
/* Prints "portolan NAME: " and the error; returns the code. */
int call_fail(const struct call *call, const struct err *err, int code);

/* The one line of `portolan version`, or one line for each fact, on stdout. */
void cmd_version_print(bool raw);
/* Removes the rules of both families; prints what fails and returns an exit code. */
int cmd_cleanup_all(const struct call *call);
