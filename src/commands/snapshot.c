/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/text.h"
#include "config/kubeproxy_config.h"
#include "daemon/plugin.h"
#include "kernel/interfaces.h"
#include "sources/api_source.h"
#include "sources/manifests.h"

/* -- into the model */

struct loading {
	struct model *model;
	struct event_base *loop; /* NULL: a folder, which is read at once */
	const char *who;
	int timeout_s;
	bool synced;
	char last[512]; /* what was reported last: the reason if nothing comes */
	/* of one that goes on: */
	bool followed;         /* reports are kept, and not printed */
	bool services_changed; /* since snapshot_followed() */
	bool trouble;          /* what was reported last is */
};

static void on_set(void *arg, struct object object)
{
	struct loading *loading = arg;

	loading->services_changed |= object.kind == OBJECT_SERVICE;
	model_set_object(loading->model, object);
}

static void on_remove(void *arg, enum object_kind kind, const char *key)
{
	struct loading *loading = arg;

	loading->services_changed |= kind == OBJECT_SERVICE;
	model_remove_object(loading->model, kind, key);
}

static void on_synced(void *arg)
{
	struct loading *loading = arg;

	if (loading->loop && !loading->synced)
		event_base_loopbreak(loading->loop);
	loading->synced = true;
}

static void on_report(void *arg, enum log_severity severity, const char *text)
{
	struct loading *loading = arg;

	snprintf(loading->last, sizeof(loading->last), "%s", text);
	loading->trouble = severity != LOG_SEVERITY_INFO;
	if (loading->followed)
		return;
	if (severity != LOG_SEVERITY_INFO)
		fprintf(stderr, "portolan %s: %s\n", loading->who, text);
	else
		log_debug(2, text);
}

static struct source_sink sink_of(struct loading *loading)
{
	return (struct source_sink){
		.set = on_set,
		.remove = on_remove,
		.service_cidrs = true,
		.synced = on_synced,
		.arg = loading,
	};
}

/* -- from an API server */

static const char *get_environment(const char *name)
{
	return getenv(name);
}

static int64_t wall_clock_s(void)
{
	return time(NULL);
}

static const char *kubeconfig_of(const struct config *config)
{
	return config->effective ? config->effective->message->clientconnection->kubeconfig : NULL;
}

static void on_limit(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	event_base_loopbreak(arg);
}

static int wait_for_all(struct loading *loading, struct err *err)
{
	struct event *timer = loop_timer(loading->loop, on_limit, loading->loop);

	loop_arm(timer, loading->timeout_s * CLOCK_NS_PER_SECOND);
	if (!loading->synced)
		event_base_dispatch(loading->loop);
	loop_free(timer);
	if (loading->synced)
		return 0;
	return err_set(err, -ETIMEDOUT, "the API server did not tell all objects in %d s%s%s",
		       loading->timeout_s, loading->last[0] ? ": " : "", loading->last);
}

static int start_api(const struct options *options, const struct config *config,
		     struct loading *loading, struct plugin *plugin, struct api_source **ret,
		     struct err *err)
{
	const struct source_sink sink = sink_of(loading);
	struct api_source_config api = {
		.node_name = config->node_name,
		.report = on_report,
		.report_arg = loading,
	};
	int r;

	api.credentials = (struct credentials_config){
		.kubeconfig = kubeconfig_of(config),
		.master = options->master,
		.getenv = get_environment,
		.now_s = wall_clock_s,
		.runner = plugin_runner(plugin, loading->loop),
	};
	r = api_source_start(loading->loop, &api, &sink, ret, err);
	return r < 0 ? r : wait_for_all(loading, err);
}

static int load_api(const struct options *options, const struct config *config,
		    struct loading *loading, struct err *err)
{
	struct api_source *source = NULL;
	struct plugin plugin = {0};
	int r;

	loading->loop = event_base_new();
	r = start_api(options, config, loading, &plugin, &source, err);
	api_source_free(source);
	event_base_free(loading->loop);
	return r;
}

int snapshot_load_folder(const char *folder, const char *who, struct model *model, struct err *err)
{
	struct loading loading = {.model = model, .who = who};
	const struct source_sink sink = sink_of(&loading);
	int r = manifests_load(folder, model_node_name(model), &sink, on_report, &loading, err);

	return r < 0 ? err_wrap(err, r, "--manifests") : r;
}

int snapshot_load_objects(const struct options *options, const struct config *config,
			  const char *who, int timeout_s, struct model *model, struct err *err)
{
	struct loading loading = {.model = model, .who = who, .timeout_s = timeout_s};

	if (!is_given(options->manifests))
		return load_api(options, config, &loading, err);
	return snapshot_load_folder(options->manifests, who, model, err);
}

/* -- and on */

struct snapshot_follower {
	struct loading loading;
	struct plugin plugin;
	struct api_source *api;
	struct manifests *manifests;
};

static int start_folder(const struct options *options, struct snapshot_follower *follower,
			struct err *err)
{
	const struct source_sink sink = sink_of(&follower->loading);
	int r = manifests_start(follower->loading.loop, options->manifests,
				model_node_name(follower->loading.model), &sink, on_report,
				&follower->loading, &follower->manifests, err);

	return r < 0 ? err_wrap(err, r, "--manifests") : 0;
}

int snapshot_follow(const struct options *options, const struct config *config, const char *who,
		    struct event_base *loop, struct model *model, struct snapshot_follower **ret,
		    struct err *err)
{
	struct snapshot_follower *follower = xcalloc(1, sizeof(*follower));
	int r;

	follower->loading = (struct loading){
		.model = model, .loop = loop, .who = who, .timeout_s = SNAPSHOT_TIMEOUT_S};
	r = is_given(options->manifests) ? start_folder(options, follower, err)
					 : start_api(options, config, &follower->loading,
						     &follower->plugin, &follower->api, err);
	if (r < 0) {
		snapshot_unfollow(follower);
		return r;
	}
	follower->loading.followed = true;
	follower->loading.trouble = false;
	*ret = follower;
	return 0;
}

struct snapshot_follower *snapshot_unfollow(struct snapshot_follower *follower)
{
	if (!follower)
		return NULL;
	api_source_free(follower->api);
	manifests_free(follower->manifests);
	free(follower);
	return NULL;
}

bool snapshot_followed(struct snapshot_follower *follower)
{
	bool changed = follower->loading.services_changed;

	follower->loading.services_changed = false;
	return changed;
}

const char *snapshot_trouble(const struct snapshot_follower *follower)
{
	return follower->loading.trouble ? follower->loading.last : "";
}

/* -- what follows from them */

struct addr *snapshot_node_addresses(const struct config *config, const struct node *node,
				     enum family family, size_t *ret_n)
{
	size_t n_node = node ? node->n_addresses : 0;
	struct addr *addresses = xcalloc(n_node + 2, sizeof(*addresses));
	struct node_ips ips;
	size_t n = 0;

	config_node_ips(config, node, &ips);
	for (size_t i = 0; i < n_node; i++)
		if (node->addresses[i].family == family)
			addresses[n++] = node->addresses[i];
	addresses[n++] = ips.addr[family]; /* a bind address; duplicates do no harm */
	addr_parse(family == FAMILY_IPV4 ? "127.0.0.1" : "::1", &addresses[n++]);
	*ret_n = n;
	return addresses;
}

static int add_family(struct snapshot *snapshot, enum family family, struct err *err)
{
	int r = config_settings(snapshot->config, model_node(snapshot->model), family,
				&snapshot->settings[family], err);

	if (r < 0)
		return r;
	snapshot->has_settings[family] = true;
	if (snapshot->live)
		r = interfaces_addresses(family, &snapshot->addresses[family],
					 &snapshot->n_addresses[family], err);
	else
		snapshot->addresses[family] =
			snapshot_node_addresses(snapshot->config, model_node(snapshot->model),
						family, &snapshot->n_addresses[family]);
	return r;
}

const struct backend_host *snapshot_host(struct snapshot *snapshot)
{
	const struct backend_ops *backend = snapshot->config->backend;

	if (!snapshot->host && backend->open_host)
		snapshot->host = backend->open_host(&snapshot->config->mode, 2);
	return snapshot->host;
}

struct explain *snapshot_explain(struct snapshot *snapshot, enum family family)
{
	const struct explain_input input = {
		.backend = snapshot->config->backend,
		.settings = &snapshot->settings[family],
		.model = snapshot->model,
		.live = snapshot->live,
		.host = {snapshot->addresses[family], snapshot->n_addresses[family]},
	};

	if (!snapshot->explain[family] && snapshot->complete)
		snapshot->explain[family] = explain_new(&input);
	return snapshot->explain[family];
}

int snapshot_load(const struct call *call, bool live, struct snapshot *ret, struct err *err)
{
	const struct config *config = &call->config;
	int r;

	*ret = (struct snapshot){
		.config = config,
		.model = model_new(config->node_name, 0),
		.live = live,
	};
	r = snapshot_load_objects(&call->options, config, commands[call->id].name,
				  SNAPSHOT_TIMEOUT_S, ret->model, err);
	if (r > 0)
		ret->n_broken = (size_t)r;
	for (enum family family = 0; r >= 0 && family < FAMILY_COUNT; family++)
		r = add_family(ret, family, err);
	for (enum family family = 0; r >= 0 && family < FAMILY_COUNT; family++)
		plan_store_take_only(ret->model, family);
	ret->complete = r >= 0;
	return r < 0 ? r : 0;
}

void snapshot_done(struct snapshot *snapshot)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		explain_free(snapshot->explain[family]);
		free(snapshot->addresses[family]);
		if (snapshot->has_settings[family])
			config_settings_done(&snapshot->settings[family]);
	}
	model_free(snapshot->model);
	if (snapshot->host)
		snapshot->config->backend->close_host(snapshot->host);
	*snapshot = (struct snapshot){0};
}

int snapshot_print(struct text *text, struct err *err)
{
	const char *data;
	size_t n;

	while ((data = text_head(text, &n))) {
		if (fwrite(data, 1, n, stdout) != n)
			return err_sys(err, -errno, "writing to standard output");
		text_consume(text, n);
	}
	if (fflush(stdout) != 0)
		return err_sys(err, -errno, "writing to standard output");
	return 0;
}
