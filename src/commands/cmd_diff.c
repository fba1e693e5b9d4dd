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

static int diff_job(enum output output, const struct call *call)
{
	cleanup_snapshot struct snapshot snapshot = {0};
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	struct err err;
	int r = snapshot_load(call, true, &snapshot, &err);

	if (r == 0)
		r = compare(&snapshot, &diff, &err);
	if (r == 0) {
		print_diff(output, &snapshot, &diff, &text);
		r = snapshot_print(&text, &err);
	}
	if (r < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	return diff.n > 0 ? EXIT_FAILED : EXIT_DONE;
}

int cmd_diff(struct call *call)
{
	enum output output = OUTPUT_HUMAN;

	output_parse(call->options.output, &output, &call->problems);
	return call_is_wrong(call) ? EXIT_USAGE : diff_job(output, call);
}
