/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The subcommands: a row in command.c and a file cmd_NAME.c each. */

#include "base/util.h"
#include "config/program.h"

struct config;

struct command {
	const char *name;
	const char *arguments; /* for the usage line; see completion.h for its first word */
	const char *summary;
	/* argv is without program and command name; returns an exit code */
	int (*run)(int argc, char **argv);
};

extern const struct command commands[COMMAND_COUNT];

/* NULL when there is none of that name. */
const struct command *command_find(const char *name);
/* "did you mean" for a name that command_find() does not know; NULL: nothing is near. */
const char *command_suggest(const char *name);
/* Usage and flags of one command, on stdout. */
void command_help(enum command_id id);

int cmd_run(int argc, char **argv);
int cmd_render(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_chart(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_conntrack(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_cleanup(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_help(int argc, char **argv);

struct options;

#define COMMAND_ANSWERED -1

/*
 * Reads a command's flags. Returns EXIT_DONE; an exit code after an error, which has been printed;
 * or COMMAND_ANSWERED after --help or --version, which is the command's whole work. *ret is good
 * for options_done() in all cases.
 */
int command_parse(enum command_id id, int argc, char **argv, struct options *ret);

/* The one line of `portolan version`, or one line for each fact, on stdout. */
void cmd_version_print(bool raw);
/* Removes the rules of both families; prints what fails as "who: ..." and returns an exit code. */
int cmd_cleanup_all(const char *who, const struct config *config);
