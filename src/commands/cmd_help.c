/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "commands/command.h"

static void print_overview(void)
{
	printf("Usage: portolan COMMAND [flags]\n\n"
	       "Portolan is kube-proxy in C: it turns Services and EndpointSlices into this node's "
	       "rules.\n\nCommands:\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		printf("  %-10s  %s\n", commands[i].name, commands[i].summary);
	printf("\n\"portolan help COMMAND\" lists a command's flags. Called as kube-proxy, it is "
	       "\"portolan run\".\n");
}

int cmd_help(struct call *call)
{
	int argc = call->argc;
	char **argv = call->argv;
	const struct command *command;
	const char *nearest;

	if (argc == 0 || streq(argv[0], "--help") || streq(argv[0], "-h")) {
		print_overview();
		return EXIT_DONE;
	}
	command = command_find(argv[0]);
	if (command && argc == 1) {
		command_help((enum command_id)(command - commands));
		return EXIT_DONE;
	}
	nearest = command_suggest(argv[0]);
	if (command)
		fprintf(stderr, "portolan help: one command at a time\n");
	else if (nearest)
		fprintf(stderr, "portolan help: no command \"%s\"; did you mean \"%s\"?\n", argv[0],
			nearest);
	else
		fprintf(stderr, "portolan help: no command \"%s\"\n", argv[0]);
	return EXIT_USAGE;
}
