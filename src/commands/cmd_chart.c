/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "commands/command.h"
#include "commands/snapshot.h"
#include "inspect/chart.h"
#include "inspect/overview.h"

struct chart_job {
	const char *const *services; /* as given; none: all */
	size_t n_services;
	const char *name_space; /* NULL: all */
	enum chart_format format;
};

static void check_job(const struct options *options, struct chart_job *job,
		      struct problems *problems)
{
	job->services = (const char *const *)options->services.v;
	job->n_services = options->services.n;
	job->name_space = options->name_space;
	if (chart_format_parse(options->chart_format, &job->format) < 0)
		problems_add(problems, "--format: \"%s\" is not svg, html, dot or mermaid",
			     options->chart_format);
	if (job->n_services > 0 && job->name_space)
		problems_add(problems, "--namespace: give it, or the names of Services, not both");
}

/* "name" is one of the namespace default, as everywhere in Kubernetes. */
static char *service_key(const char *given)
{
	if (has_prefix(given, "service/") || has_prefix(given, "svc/"))
		given = strchr(given, '/') + 1;
	return xasprintf("%s%s", strchr(given, '/') ? "" : "default/", given);
}

/* The Services to draw, which have to be there. An array for the caller to free; so are its names. */
static int find_services(const struct chart_job *job, const struct model *model, char ***ret,
			 size_t *ret_n, struct err *err)
{
	size_t n = 0;
	struct service **all =
		job->name_space ? overview_services(model, job->name_space, &n) : NULL;
	char **keys = xcalloc(MAX(n + job->n_services, 1), sizeof(*keys));
	int r = 0;

	for (size_t i = 0; i < n; i++)
		keys[i] = xstrdup(all[i]->key);
	for (size_t i = 0; i < job->n_services; i++) {
		keys[n++] = service_key(job->services[i]);
		if (!model_service(model, keys[n - 1]) && r == 0)
			r = err_set(err, -ENOENT, "there is no Service %s", keys[n - 1]);
	}
	if (job->name_space && n == 0)
		r = err_set(err, -ENOENT, "--namespace: there is no Service in %s",
			    job->name_space);
	free(all);
	*ret = keys;
	*ret_n = n;
	return r;
}

static void draw(const struct chart_job *job, const struct snapshot *snapshot, char **keys,
		 size_t n_keys, struct text *text)
{
	struct chart_input input = {
		.model = snapshot->model,
		.chain_names = snapshot->config->backend->names_service_chains,
		.services = (const char *const *)keys,
		.n_services = n_keys,
	};
	cleanup_chart struct chart *chart = NULL;

	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (snapshot->has_settings[family])
			input.settings[family] = &snapshot->settings[family];
	chart = chart_new(&input);
	if (job->format == CHART_SVG || job->format == CHART_HTML)
		chart_layout(chart);
	chart_write(chart, job->format, text);
}

static int chart(const struct chart_job *job, const struct call *call)
{
	cleanup_snapshot struct snapshot snapshot = {0};
	cleanup_text struct text text = {0};
	char **keys = NULL;
	size_t n_keys = 0;
	struct err err;
	int r = snapshot_load(call, false, &snapshot, &err);

	if (r == 0)
		r = find_services(job, snapshot.model, &keys, &n_keys, &err);
	if (r == 0) {
		draw(job, &snapshot, keys, n_keys, &text);
		r = snapshot_print(&text, &err);
	}
	for (size_t i = 0; i < n_keys; i++)
		free(keys[i]);
	free(keys);
	if (r < 0)
		return call_fail(call, &err, EXIT_FAILED);
	return snapshot.n_broken > 0 ? EXIT_FAILED : EXIT_DONE;
}

int cmd_chart(struct call *call)
{
	struct chart_job job = {0};

	check_job(&call->options, &job, &call->problems);
	return call_is_wrong(call) ? EXIT_USAGE : chart(&job, call);
}
