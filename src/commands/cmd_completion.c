/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `completion SHELL` prints a script. All three scripts are short and know nothing: with each Tab they
 * call `completion words`, with the words up to the cursor, and hand its answer to the shell. The
 * first line of the answer says how (completion.h), the others are word, tab, explanation.
 *
 * Scripts that hold the words themselves would go without this call, but they are those of another
 * version as soon as the program is updated, and could not know any Service.
 */

#include <stdio.h>

#include "commands/command.h"
#include "commands/completion.h"
#include "commands/completion/scripts.h"
#include "commands/snapshot.h"

/* The operator waits with a finger on the Tab key; what has come by then is offered. */
#define PATIENCE_S 1

static const struct shell {
	const char *name;
	const char *script;
} shells[] = {
	{"bash", completion_bash},
	{"zsh", completion_zsh},
	{"fish", completion_fish},
};

static struct model *load(void *arg, enum command_id command, int argc, char **argv)
{
	struct model **model = arg;
	cleanup_options struct options options = {0};
	cleanup_problems struct problems problems = {0};
	cleanup_config struct config config = {0};
	struct err err;

	if (options_parse(command, argc, argv, &options, &err) < 0 ||
	    options_config(&options, &config, &problems) < 0)
		return NULL;
	*model = model_new(config.node_name, 0);
	if (snapshot_load_objects(&options, &config, "completion", PATIENCE_S, *model, &err) < 0)
		log_debug(2, err.text);
	return *model;
}

/* Nothing goes to standard error: it would land in the line that is being typed. */
static int print_words(int argc, char **argv)
{
	struct model *model = NULL;
	cleanup_completion struct completion found = {0};

	if (!freopen("/dev/null", "we", stderr))
		return EXIT_FAILED;
	completion_find(argc, argv, load, &model, &found);
	printf("%s\n", completion_how_name(found.how));
	for (size_t i = 0; i < found.n; i++)
		printf("%s\t%s\n", found.items[i].word, found.items[i].about);
	model_free(model);
	return EXIT_DONE;
}

static int print_script(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(shells); i++) {
		if (streq(name, shells[i].name)) {
			fputs(shells[i].script, stdout);
			return EXIT_DONE;
		}
	}
	if (name)
		fprintf(stderr, "portolan completion: \"%s\" is not bash, zsh or fish\n", name);
	else
		fprintf(stderr, "portolan completion: for which shell? Give bash, zsh or fish\n");
	return EXIT_USAGE;
}

int cmd_completion(struct call *call)
{
	int r;

	if (call->argc > 0 && streq(call->argv[0], "words"))
		return print_words(call->argc - 1, call->argv + 1);
	r = command_parse(call);
	if (r != EXIT_DONE)
		return r == COMMAND_ANSWERED ? EXIT_DONE : r;
	return print_script(call->options.argument);
}
