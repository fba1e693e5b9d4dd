/* SPDX-License-Identifier: Apache-2.0 */

#include "config/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/backend.h"
#include "config/kubeproxy_config.h"
#include "config/kubeproxy_fields.h"
#include "sources/sync_guard.h"

#define PROBE_INTERVAL_MIN_NS (100 * INT64_C(1000000))

int options_parse(enum command_id command, int argc, char **argv, struct options *ret,
		  struct err *err)
{
	*ret = (struct options){0};
	flags_init(options_flags, options_n_flags, ret);
	return flags_parse(options_flags, options_n_flags, 1u << command, argc, argv, ret, err);
}

void options_done(struct options *options)
{
	flags_done(options_flags, options_n_flags, options);
}

static void find_node_name(struct config *config, struct problems *problems)
{
	const char *override = config->effective->message->hostnameoverride;
	char host[HOST_NAME_MAX + 1] = "";
	const char *name;

	if (!is_given(override) && gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	name = is_given(override) ? override : host;
	config->node_name = util_lower(util_trimmed(name, strlen(name)));
	if (config->node_name[0])
		return;
	if (is_given(override))
		kubeproxy_config_problem(config->effective, problems, "hostnameOverride",
					 "Invalid value: \"%s\": the name is empty", override);
	else
		problems_add(problems, "this host has no name: give --hostname-override");
}

/* A mode that kube-proxy has is a valid configuration, which can be written but not run. */
static void take_mode(struct config *config, struct problems *problems)
{
	const char *mode = config->effective->message->mode;

	config->backend = backend_find(mode);
	if (streq(mode, "ipvs") && gates_on(&config->gates, "KubeProxyIPVS"))
		kubeproxy_config_problem(config->effective, problems, "mode",
					 "%s is not available in this version; use iptables or "
					 "nftables",
					 mode);
}

/* A client costs the kernel about 100 bytes. */
#define AFFINITY_CLIENTS_MAX 1048576

static void take_affinity(const struct options *options, struct config *config,
			  struct problems *problems)
{
	config->mode.affinity_clients = (uint32_t)options->affinity_clients;
	if (options->affinity_clients < 1 || options->affinity_clients > AFFINITY_CLIENTS_MAX)
		problems_add(problems, "--affinity-clients: %d is not between 1 and %d",
			     options->affinity_clients, AFFINITY_CLIENTS_MAX);
}

static void take_iptables(const struct options *options, struct config *config,
			  struct problems *problems)
{
	config->mode.service_index = options->service_index;
	if (!iptables_variant_parse(options->iptables_variant, &config->mode.iptables_variant))
		problems_add(problems, "--iptables-variant: \"%s\" is not auto, nft or legacy",
			     options->iptables_variant);
	if (!iptables_writer_parse(options->iptables_writer, &config->mode.iptables_writer))
		problems_add(problems, "--iptables-writer: \"%s\" is not auto, netlink or restore",
			     options->iptables_writer);
	if (config->mode.iptables_variant == IPTABLES_VARIANT_LEGACY &&
	    config->mode.iptables_writer == IPTABLES_WRITER_NETLINK)
		problems_add(problems, "--iptables-writer=netlink: only rules of "
				       "--iptables-variant=nft can be written so");
}

static void take_terminate(const struct options *options, struct config *config,
			   struct problems *problems)
{
	if (!terminate_parse(options->terminate, &config->terminate))
		problems_add(problems,
			     "--terminate-connections: \"%s\" is not none or endpoint-removed",
			     options->terminate);
}

static void take_guard(const struct options *options, struct config *config,
		       struct problems *problems)
{
	if (!sync_guard_parse(options->sync_guard, &config->guard_percent))
		problems_add(problems,
			     "--sync-guard: \"%s\" is not off, on or a percentage from 1 to 99",
			     options->sync_guard);
}

static void take_probe(const struct options *options, struct config *config,
		       struct problems *problems)
{
	if (!readiness_probe_parse(options->probe, &config->probe))
		problems_add(problems, "--healthz-probe: \"%s\" is not off, rules or connect",
			     options->probe);
	if (!readiness_target_is_good(options->probe_target))
		problems_add(problems,
			     "--healthz-probe-target: \"%s\" is not namespace/name or "
			     "namespace/name:port",
			     options->probe_target);
	if (options->probe_interval < PROBE_INTERVAL_MIN_NS)
		problems_add(problems, "--healthz-probe-interval: must be at least 100ms");
	config->probe_target = options->probe_target;
	config->probe_interval_ns = options->probe_interval;
}

static void check_service_metrics(const struct options *options, struct problems *problems)
{
	if (options->service_metrics_limit < 0)
		problems_add(problems, "--service-metrics-limit: %d is less than 0",
			     options->service_metrics_limit);
}

static void take_sandbox(const struct options *options, struct config *config,
			 struct problems *problems)
{
	if (!sandbox_mode_parse(options->sandbox, &config->sandbox))
		problems_add(problems, "--sandbox: \"%s\" is not on, log or off", options->sandbox);
	if (options->no_sandbox)
		config->sandbox = SANDBOX_OFF;
}

/* From here on all values are known to be good. */

static void take_server(const char *text, struct config_server *ret)
{
	const char *colon = strrchr(text, ':');
	size_t skip = text[0] == '[';
	cleanup_free char *host = NULL;

	if (!colon)
		return;
	host = xasprintf("%.*s", (int)(colon - text - 2 * (ptrdiff_t)skip), text + skip);
	ret->on = addr_parse(host, &ret->addr) == 0;
	ret->port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

static void take_node_ports(const Kubeproxy__Configuration *message, struct config *config)
{
	size_t n = message->n_nodeportaddresses;

	config->node_port_addresses = xcalloc(n + 1, sizeof(*config->node_port_addresses));
	config->n_node_port_addresses = n;
	for (size_t i = 0; i < n; i++)
		node_port_address_parse(message->nodeportaddresses[i],
					&config->node_port_addresses[i]);
}

static void take_cluster_cidrs(const char *text, struct config *config)
{
	config->cluster_cidrs = xcalloc(2, sizeof(*config->cluster_cidrs));
	while (is_given(text) && config->n_cluster_cidrs < 2) {
		size_t n = strcspn(text, ",");
		cleanup_free char *one = xasprintf("%.*s", (int)n, text);

		if (prefix_parse(one, &config->cluster_cidrs[config->n_cluster_cidrs]) == 0)
			config->n_cluster_cidrs++;
		text += n + (text[n] == ',');
	}
}

static void take_detector(const Kubeproxy__Configuration *message, struct config *config)
{
	const char *interface = NULL;

	detect_mode_parse(message->detectlocalmode, &config->detect_mode);
	if (config->detect_mode == DETECT_CLUSTER_CIDR)
		take_cluster_cidrs(message->clustercidr, config);
	else if (config->detect_mode == DETECT_BRIDGE_INTERFACE)
		interface = message->detectlocal->bridgeinterface;
	else if (config->detect_mode == DETECT_INTERFACE_NAME_PREFIX)
		interface = message->detectlocal->interfacenameprefix;
	config->interface = interface ? xstrdup(interface) : NULL;
}

/* Each mode has a section of its own for what all of them have. */
static void take_section(const Kubeproxy__Configuration *message, struct config *config)
{
	const struct kubeproxy_section section = kubeproxy_section(message);

	config->masquerade_all = section.masquerade_all;
	config->masquerade_mark = UINT32_C(1) << section.masquerade_bit;
	config->sync_period_ns = kubeproxy_duration(section.sync_period);
	config->min_sync_period_ns = kubeproxy_duration(section.min_sync_period);
}

static void take_values(struct config *config)
{
	const Kubeproxy__Configuration *message = config->effective->message;

	config->has_bind_address = addr_parse(message->bindaddress, &config->bind_address) == 0 &&
				   !addr_is_unspecified(&config->bind_address);
	take_server(message->healthzbindaddress, &config->healthz);
	take_server(message->metricsbindaddress, &config->metrics);
	config->localhost_node_ports = message->iptables->localhostnodeports;
	config->allow_external_ips = gates_on(&config->gates, "AllowServiceExternalIPs");
	config->mode.localhost_proxy =
		gates_on(&config->gates, "KubeProxyNFTablesLocalhostNodePorts");
	take_section(message, config);
	config->min_sync_explicit = config->effective->min_sync_explicit;
	take_node_ports(message, config);
	take_detector(message, config);
	config->log_format =
		streq(message->logging->format, "json") ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
	config->verbosity = (int)message->logging->verbosity;
}

/* With a file, flags for its fields do nothing; kube-proxy says so in its help only. */
static void warn_of_unused_flags(const struct options *options, struct problems *warnings)
{
	for (size_t i = 0; i < options->fields.n; i++)
		if (!has_prefix(options->fields.v[i].flag->path, "logging."))
			problems_add(warnings, "--%s has no effect beside --config",
				     options->fields.v[i].flag->name);
}

static int make_effective(const struct options *options, struct config *config, struct err *err)
{
	const struct kubeproxy_flags flags = {
		.fields = &options->fields,
		.hostname_override = options->hostname_override,
		.healthz_port = options->healthz_port,
		.metrics_port = options->metrics_port,
		.keep_ports = is_given(options->write_config_to),
	};
	int r;

	if (!is_given(options->config))
		return kubeproxy_config_from_flags(&flags, &config->effective, err);
	r = kubeproxy_config_from_file(options->config, &flags, &config->warnings,
				       &config->effective, err);
	if (r < 0)
		return has_prefix(err->text, options->config) ? err_wrap(err, r, "--config") : r;
	warn_of_unused_flags(options, &config->warnings);
	return 0;
}

int options_config(const struct options *options, struct config *ret, struct problems *problems)
{
	size_t before = problems->n;
	struct err err;

	*ret = (struct config){0};
	if (make_effective(options, ret, &err) < 0) {
		problems_add(problems, "%s", err.text);
		return -EINVAL;
	}
	find_node_name(ret, problems);
	take_iptables(options, ret, problems);
	take_affinity(options, ret, problems);
	take_terminate(options, ret, problems);
	take_guard(options, ret, problems);
	take_probe(options, ret, problems);
	check_service_metrics(options, problems);
	take_sandbox(options, ret, problems);
	kubeproxy_config_validate(ret->effective, &ret->gates, problems, &ret->warnings);
	if (!is_given(options->write_config_to))
		take_mode(ret, problems);
	if (problems->n > before)
		return -EINVAL;
	take_values(ret);
	return 0;
}
