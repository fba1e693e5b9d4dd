/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "backends/backend.h"
#include "base/doc.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/output.h"
#include "commands/snapshot.h"
#include "daemon/family_set.h"
#include "inspect/inspect_ops.h"

static int compare_family(const struct snapshot *snapshot, enum family family,
			  const struct backend_host *backend_host, struct diff *diff,
			  struct err *err)
{
	const struct host host = {snapshot->addresses[family], snapshot->n_addresses[family]};
	cleanup_plan_once struct plan_once once;

	plan_once_take(&once, &snapshot->settings[family], snapshot->model);
	return snapshot->config->backend->inspect->diff(
		diff,
		&(struct inspect_question){
			.settings = &snapshot->settings[family],
			.delta = once.delta,
			.host = &host,
			.backend_host = backend_host,
		},
		err);
}

/* The families that a daemon with this configuration would write here. */
static int compare(struct snapshot *snapshot, struct diff *diff, struct err *err)
{
	struct family_set_input input = {.host = (struct backend_host *)snapshot_host(snapshot)};
	int r = family_set_find_families(snapshot->config, model_node(snapshot->model), &input,
					 err);

	for (enum family family = 0; r == 0 && family < FAMILY_COUNT; family++) {
		if (!input.usable[family])
			continue;
		r = compare_family(snapshot, family, input.host, diff, err);
		if (r < 0)
			return err_wrap(err, r, "reading the kernel's rules");
	}
	return r;
}

static void print_diff(enum output output, const struct snapshot *snapshot, const struct diff *diff,
		       struct text *text)
{
	struct human_style style;
	struct doc doc;

	if (output == OUTPUT_HUMAN) {
		output_style(&style);
		diff_human(diff, style.colour, text);
		return;
	}
	doc_init(&doc, text, output == OUTPUT_JSON ? DOC_JSON : DOC_YAML);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "kind", "Diff");
	doc_number(&doc, "version", 1);
	doc_string(&doc, "mode", snapshot->config->backend->name);
	doc_bool(&doc, "same", diff->n == 0);
	diff_doc(diff, &doc);
	doc_close(&doc);
}

static int diff_job(enum output output, const struct options *options, const struct config *config)
{
	cleanup_snapshot struct snapshot snapshot = {0};
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	struct err err;
	int r = snapshot_load(options, config, "diff", true, &snapshot, &err);

	if (r == 0)
		r = compare(&snapshot, &diff, &err);
	if (r == 0) {
		print_diff(output, &snapshot, &diff, &text);
		r = snapshot_print(&text, &err);
	}
	if (r < 0) {
		fprintf(stderr, "portolan diff: %s\n", err.text);
		return EXIT_NO_STATE;
	}
	return diff.n > 0 ? EXIT_FAILED : EXIT_DONE;
}

int cmd_diff(int argc, char **argv)
{
	cleanup_options struct options options = {0};
	cleanup_problems struct problems problems = {0};
	cleanup_config struct config config = {0};
	enum output output = OUTPUT_HUMAN;
	int r = command_parse(COMMAND_DIFF, argc, argv, &options);

	if (r != EXIT_DONE)
		return r == COMMAND_ANSWERED ? EXIT_DONE : r;
	options_config(&options, &config, &problems);
	output_parse(options.output, &output, &problems);
	if (problems.n > 0) {
		problems_print(&problems, "portolan diff");
		return EXIT_USAGE;
	}
	log_setup(config.log_format, config.verbosity);
	return diff_job(output, &options, &config);
}
