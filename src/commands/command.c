/* SPDX-License-Identifier: Apache-2.0 */

#include "commands/command.h"

#include <stdio.h>

#include "base/nearest.h"

const struct command commands[COMMAND_COUNT] = {
	[COMMAND_RUN] = {"run", "[flags]",
			 "Keep this node's rules as the Services ask, until told to stop.",
			 cmd_run},
	[COMMAND_RENDER] = {"render", "--manifests DIR [flags]",
			    "Print the rules that run would write, and touch nothing.", cmd_render},
	[COMMAND_EXPLAIN] = {"explain", "DEST [--from WHO] [flags]",
			     "Say step by step what becomes of a connection to DEST, and why.",
			     cmd_explain},
	[COMMAND_TRACE] = {"trace", "DEST [--from ADDRESS] [flags]",
			   "Say what becomes of a real connection to DEST, as it happens.",
			   cmd_trace},
	[COMMAND_LIST] = {"list", "[services|endpoints] [flags]",
			  "List Services, or endpoints, as this node sees them.", cmd_list},
	[COMMAND_CHART] = {"chart", "[NAMESPACE/NAME...] [flags]",
			   "Draw the way from entry points to endpoints.", cmd_chart},
	[COMMAND_DIFF] = {"diff", "[flags]",
			  "Show how the kernel's rules differ from those that are wanted.",
			  cmd_diff},
	[COMMAND_CONNTRACK] =
		{"conntrack", "SERVICE [--flows] [flags]",
		 "Count the connections that this node tracks for a Service, by backend.",
		 cmd_conntrack},
	[COMMAND_TOP] = {"top", "[flags]",
			 "Show live which Services have the most connections and traffic.",
			 cmd_top},
	[COMMAND_CLEANUP] = {"cleanup", "[flags]",
			     "Remove the rules that a proxy left on this node.", cmd_cleanup},
	[COMMAND_COMPLETION] = {"completion", "bash|zsh|fish",
				"Print what makes a shell complete commands, flags and Services.",
				cmd_completion, true},
	[COMMAND_VERSION] = {"version", "", "Print the version.", cmd_version, true},
	[COMMAND_HELP] = {"help", "[COMMAND]", "Explain a command and its flags.", cmd_help, true},
};

const struct command *command_find(const char *name)
{
	if (streq(name, "--help") || streq(name, "-h"))
		return &commands[COMMAND_HELP];
	if (streq(name, "--version"))
		return &commands[COMMAND_VERSION];
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (streq(name, commands[i].name))
			return &commands[i];
	return NULL;
}

const char *command_suggest(const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		nearest_offer(&nearest, commands[i].name);
	return nearest.best;
}

void command_help(enum command_id id)
{
	const struct command *command = &commands[id];

	printf("Usage: portolan %s%s%s\n\n%s\n", command->name, command->arguments[0] ? " " : "",
	       command->arguments, command->summary);
	flags_help(options_flags, options_n_flags, 1u << id, stdout);
}

static int command_usage(enum command_id id, const char *problem)
{
	fprintf(stderr, "portolan %s: %s\n", commands[id].name, problem);
	return id == COMMAND_RUN ? EXIT_FAILED : EXIT_USAGE;
}

/* --version and --version=raw; kube-proxy also takes true and false here. */
static int answer_version(enum command_id id, const char *value)
{
	bool wanted = true;

	if (!streq(value, "raw") && flag_bool_parse(value, &wanted) < 0)
		return command_usage(id, "--version: give no value, or raw");
	if (!wanted)
		return EXIT_DONE;
	cmd_version_print(streq(value, "raw"));
	return COMMAND_ANSWERED;
}

int command_parse(struct call *call)
{
	struct options *options = &call->options;
	struct err err;

	if (options_parse(call->id, call->argc, call->argv, options, &err) < 0)
		return command_usage(call->id, err.text);
	if (options->help) {
		command_help(call->id);
		return COMMAND_ANSWERED;
	}
	return options->version ? answer_version(call->id, options->version) : EXIT_DONE;
}

bool call_is_wrong(const struct call *call)
{
	for (size_t i = 0; i < call->problems.n; i++)
		command_usage(call->id, call->problems.v[i]);
	if (call->problems.n == 0)
		log_setup(call->config.log_format, call->config.verbosity);
	return call->problems.n > 0;
}

int call_fail(const struct call *call, const struct err *err, int code)
{
	command_usage(call->id, err->text);
	return code;
}

static void call_done(struct call *call)
{
	config_done(&call->config);
	problems_done(&call->problems);
	options_done(&call->options);
}

int command_run(const struct command *command, int argc, char **argv)
{
	attr_cleanup(call_done) struct call call = {
		.id = (enum command_id)(command - commands),
		.argc = argc,
		.argv = argv,
	};
	int r = command->raw ? EXIT_DONE : command_parse(&call);

	if (r != EXIT_DONE)
		return r == COMMAND_ANSWERED ? EXIT_DONE : r;
	if (!command->raw)
		options_config(&call.options, &call.config, &call.problems);
	return command->run(&call);
}
