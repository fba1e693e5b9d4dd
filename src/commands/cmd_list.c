/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "base/doc.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/output.h"
#include "commands/snapshot.h"
#include "inspect/overview.h"

struct list_job {
	bool endpoints;
	enum output output;
	const char *name_space;
};

static void check_job(const struct options *options, struct list_job *job,
		      struct problems *problems)
{
	const char *what = options->argument ? options->argument : "services";

	job->name_space = options->name_space;
	job->endpoints = streq(what, "endpoints");
	if (!job->endpoints && !streq(what, "services"))
		problems_add(problems, "\"%s\" is not services or endpoints", what);
	output_parse(options->output, &job->output, problems);
}

static void print_list(const struct list_job *job, const struct model *model, struct text *text)
{
	struct doc doc;

	if (job->output == OUTPUT_HUMAN) {
		(job->endpoints ? overview_endpoints_human
				: overview_services_human)(model, job->name_space, text);
		return;
	}
	doc_init(&doc, text, job->output == OUTPUT_JSON ? DOC_JSON : DOC_YAML);
	(job->endpoints ? overview_endpoints_doc : overview_services_doc)(model, job->name_space,
									  &doc);
}

static int list(const struct list_job *job, const struct call *call)
{
	cleanup_snapshot struct snapshot snapshot = {0};
	cleanup_text struct text text = {0};
	struct err err;
	int r = snapshot_load(call, false, &snapshot, &err);

	if (r == 0) {
		print_list(job, snapshot.model, &text);
		r = snapshot_print(&text, &err);
	}
	if (r < 0)
		return call_fail(call, &err, EXIT_FAILED);
	return snapshot.n_broken > 0 ? EXIT_FAILED : EXIT_DONE;
}

int cmd_list(struct call *call)
{
	struct list_job job = {0};

	check_job(&call->options, &job, &call->problems);
	return call_is_wrong(call) ? EXIT_USAGE : list(&job, call);
}
