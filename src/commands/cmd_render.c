/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The dry run: a folder of manifests in, the text of a first, full sync out. Nothing of the machine
 * that it runs on gets into the text, so that the rules of any node can be looked at anywhere: the
 * host is taken to have all that a current kernel offers, and the Node object's addresses for its
 * interfaces'.
 */

#include <errno.h>
#include <stdio.h>

#include "backends/backend.h"
#include "commands/command.h"
#include "commands/snapshot.h"

struct render_job {
	const char *manifests;
	size_t format; /* of the mode */
	bool families[FAMILY_COUNT];
	bool both;
};

/* A place among the formats of the mode; -EINVAL: it has no such one. */
static int find_format(const struct backend_ops *mode, const char *name, size_t *ret)
{
	for (size_t i = 0; mode->formats[i]; i++) {
		if (!streq(mode->formats[i], name))
			continue;
		*ret = i;
		return 0;
	}
	return -EINVAL;
}

static bool is_format_of_any(const char *name)
{
	size_t unused;

	for (size_t i = 0; backend_modes[i]; i++)
		if (find_format(backend_modes[i], name, &unused) == 0)
			return true;
	return false;
}

static void check_job(const struct options *options, const struct config *config,
		      struct render_job *ret, struct problems *problems)
{
	const char *families = options->ip_family;

	*ret = (struct render_job){.manifests = options->manifests};
	if (!options->manifests || !options->manifests[0])
		problems_add(problems, "no source: give --manifests DIR");
	if (!is_format_of_any(options->format))
		problems_add(problems, "--format: \"%s\" is not restore or save", options->format);
	else if (config->backend && find_format(config->backend, options->format, &ret->format) < 0)
		problems_add(problems, "--format: \"%s\" is not for %s mode", options->format,
			     config->backend->name);
	ret->both = streq(families, "both");
	ret->families[FAMILY_IPV4] = ret->both || streq(families, "ipv4");
	ret->families[FAMILY_IPV6] = ret->both || streq(families, "ipv6");
	if (!ret->families[FAMILY_IPV4] && !ret->families[FAMILY_IPV6])
		problems_add(problems, "--ip-family: \"%s\" is not ipv4, ipv6 or both", families);
}

static int render_family(const struct render_job *job, const struct config *config,
			 struct model *model, enum family family, struct text *ret, struct err *err)
{
	const struct node *node = model_node(model);
	struct settings settings;
	size_t n;
	cleanup_free struct addr *addresses = NULL;
	struct plan_once once;
	int r;

	r = config_settings(config, node, family, &settings, err);
	if (r < 0)
		return r;
	addresses = snapshot_node_addresses(config, node, family, &n);
	plan_once_take(&once, &settings, model);
	config->backend->render(&(struct backend_render){.settings = &settings,
							 .delta = once.delta,
							 .addresses = addresses,
							 .n_addresses = n,
							 .format = job->format,
							 .titled = job->both},
				ret);
	plan_once_done(&once);
	config_settings_done(&settings);
	return 0;
}

static int render_all(const struct render_job *job, const struct call *call, struct model *model)
{
	struct err err;

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		cleanup_text struct text text = {0};

		if (!job->families[family])
			continue;
		if (render_family(job, &call->config, model, family, &text, &err) < 0 ||
		    snapshot_print(&text, &err) < 0)
			return call_fail(call, &err, EXIT_FAILED);
	}
	return EXIT_DONE;
}

static int load_and_render(const struct render_job *job, const struct call *call,
			   struct model *model)
{
	const struct config *config = &call->config;
	const struct node *node;
	struct err err;
	/* the number of files and objects that are not in the model; they have been named */
	int broken = snapshot_load_folder(job->manifests, "render", model, &err);

	if (broken < 0)
		return call_fail(call, &err, EXIT_FAILED);
	node = model_node(model);
	if (config->detect_mode == DETECT_NODE_CIDR && (!node || node->n_pod_cidrs == 0))
		fprintf(stderr,
			"portolan render: --detect-local-mode=NodeCIDR: no Node %s with podCIDRs, "
			"going on without\n",
			config->node_name);
	if (render_all(job, call, model) != EXIT_DONE)
		return EXIT_FAILED;
	return broken > 0 ? EXIT_FAILED : EXIT_DONE;
}

int cmd_render(struct call *call)
{
	struct render_job job;
	struct model *model;
	int r;

	check_job(&call->options, &call->config, &job, &call->problems);
	if (call_is_wrong(call))
		return EXIT_USAGE;
	model = model_new(call->config.node_name, 0);
	r = load_and_render(&job, call, model);
	model_free(model);
	return r;
}
