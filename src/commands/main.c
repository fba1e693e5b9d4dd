/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Portolan's life on one page: called as kube-proxy it is `portolan run`; started by a daemon that
 * goes into its sandbox it is the launcher of programs (kernel/launcher.h); otherwise the first word
 * says which command, and that does the rest: command.c has the table, cmd_*.c the commands.
 */

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/oom.h"
#include "base/util.h"
#include "commands/command.h"
#include "kernel/launcher.h"

/*
 * A standard file that the program that started us has closed would lend its number to the next file that is
 * opened, a pipe to iptables-restore perhaps, and what is logged would go there.
 */
static void open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/*
 * Whatever is larger is given back as a whole when it is freed. glibc would raise the limit with the
 * first large table that is freed, and the next ones would leave gaps among what stays.
 */
#define ALONE_FROM_BYTES (128 * 1024)

static int no_such_command(const char *name)
{
	const char *nearest = command_suggest(name);

	if (nearest)
		fprintf(stderr, "portolan: unknown command \"%s\"; did you mean \"%s\"?\n", name,
			nearest);
	else if (name[0] == '-')
		fprintf(stderr,
			"portolan: \"%s\" before a command: write \"portolan run %s\", or see "
			"\"portolan help\"\n",
			name, name);
	else
		fprintf(stderr, "portolan: unknown command \"%s\"; \"portolan help\" lists them\n",
			name);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const char *program = argc > 0 ? argv[0] : "portolan";
	const char *slash = strrchr(program, '/');
	const struct command *command;

	if (streq(program, LAUNCHER_NAME))
		launcher_main();
	open_standard_files();
	oom_watch_libraries();
	mallopt(M_MMAP_THRESHOLD, ALONE_FROM_BYTES);
	if (streq(slash ? slash + 1 : program, "kube-proxy"))
		return command_run(&commands[COMMAND_RUN], argc - 1, argv + 1);
	if (argc < 2) {
		fprintf(stderr, "portolan: a command is missing; \"portolan help\" lists them\n");
		return EXIT_USAGE;
	}
	command = command_find(argv[1]);
	return command ? command_run(command, argc - 2, argv + 2) : no_such_command(argv[1]);
}
