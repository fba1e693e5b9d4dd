/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "cli/duration.h"
#include "cli/gates.h"

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

static bool given(const char *s)
{
	return s && *s;
}

/* As kube-proxy makes a node name: without blanks around it, in lower case. */
static char *tidy_name(const char *s)
{
	size_t n;
	char *name;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]);)
		n--;
	name = xasprintf("%.*s", (int)n, s);
	for (size_t i = 0; i < n; i++)
		name[i] = (char)tolower((unsigned char)name[i]);
	return name;
}

static void check_node_name(const struct options *options, struct config *config,
			    struct problems *problems)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (!given(options->hostname_override) && gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	config->node_name =
		tidy_name(given(options->hostname_override) ? options->hostname_override : host);
	if (config->node_name[0])
		return;
	if (given(options->hostname_override))
		problems_add(problems, "--hostname-override: the name is empty");
	else
		problems_add(problems, "this host has no name: give --hostname-override");
}

static void check_bind_address(const struct options *options, struct config *config,
			       struct problems *problems)
{
	if (!given(options->bind_address))
		return;
	if (addr_parse(options->bind_address, &config->bind_address) < 0)
		problems_add(problems, "--bind-address: \"%s\" is not an IP address",
			     options->bind_address);
	else
		config->has_bind_address = !addr_is_unspecified(&config->bind_address);
}

static void check_proxy_mode(const struct options *options, struct problems *problems)
{
	const char *mode = options->proxy_mode;

	if (!given(mode) || streq(mode, "iptables"))
		return;
	if (streq(mode, "nftables") || streq(mode, "ipvs"))
		problems_add(problems,
			     "--proxy-mode: %s is not available in this version; use iptables",
			     mode);
	else
		problems_add(problems,
			     "--proxy-mode: \"%s\" is not a mode; use iptables or leave it empty",
			     mode);
}

static void check_periods(const struct options *options, struct config *config,
			  struct problems *problems)
{
	char sync[DURATION_TEXT_MAX];
	char min[DURATION_TEXT_MAX];

	config->sync_period_ns = options->iptables_sync_period_ns;
	config->min_sync_period_ns = options->iptables_min_sync_period_ns;
	duration_print(config->sync_period_ns, sync);
	duration_print(config->min_sync_period_ns, min);
	if (config->sync_period_ns <= 0)
		problems_add(problems, "--iptables-sync-period: %s is not greater than 0", sync);
	if (config->min_sync_period_ns < 0)
		problems_add(problems, "--iptables-min-sync-period: %s is less than 0", min);
	if (config->min_sync_period_ns > config->sync_period_ns)
		problems_add(
			problems,
			"--iptables-min-sync-period: %s is more than --iptables-sync-period, %s",
			min, sync);
}

static void check_masquerade_bit(const struct options *options, struct config *config,
				 struct problems *problems)
{
	int32_t bit = options->iptables_masquerade_bit;

	if (bit < 0 || bit > 31)
		problems_add(problems, "--iptables-masquerade-bit: %d is not within 0 to 31", bit);
	else
		config->masquerade_mark = UINT32_C(1) << bit;
}

static void check_node_port_addresses(const struct options *options, struct config *config,
				      struct problems *problems)
{
	const struct flag_list *list = &options->nodeport_addresses;

	config->node_port_cidrs = xcalloc(list->n + 1, sizeof(*config->node_port_cidrs));
	for (size_t i = 0; i < list->n; i++) {
		struct prefix *cidr = &config->node_port_cidrs[config->n_node_port_cidrs];

		if (streq(list->v[i], "primary")) {
			config->node_ports_primary = true;
			if (list->n != 1)
				problems_add(problems, "--nodeport-addresses: primary and CIDRs "
						       "cannot be used together");
			return;
		}
		if (prefix_parse(list->v[i], cidr) < 0)
			problems_add(problems,
				     "--nodeport-addresses: \"%s\" is not a CIDR such as "
				     "192.0.2.0/24",
				     list->v[i]);
		else
			config->n_node_port_cidrs++;
	}
}

/* At most one of each family. */
static void check_cluster_cidr(const struct options *options, struct config *config,
			       struct problems *problems)
{
	struct prefix *cidrs = xcalloc(2, sizeof(*cidrs));
	const char *at = options->cluster_cidr;
	size_t n = 0;

	config->cluster_cidrs = cidrs;
	if (!at)
		return;
	for (;; at++) {
		size_t length = strcspn(at, ",");
		cleanup_free char *one = xasprintf("%.*s", (int)length, at);

		if (n == 2) {
			n++;
			break;
		}
		if (prefix_parse(one, &cidrs[n]) < 0) {
			problems_add(problems,
				     "--cluster-cidr: \"%s\" is not a CIDR such as 10.244.0.0/16",
				     one);
			return;
		}
		n++;
		at += length;
		if (*at == '\0')
			break;
	}
	if (n > 2 || (n == 2 && cidrs[0].addr.family == cidrs[1].addr.family))
		problems_add(problems,
			     "--cluster-cidr: \"%s\" is neither one CIDR nor one of IPv4 "
			     "and one of IPv6",
			     options->cluster_cidr);
	else
		config->n_cluster_cidrs = n;
}

static void check_interface(const char *flag, const char *name, struct config *config,
			    struct problems *problems)
{
	struct detector detector;
	struct err err;

	if (!given(name)) {
		problems_add(problems, "--%s: a name is needed with --detect-local-mode=%s", flag,
			     detect_mode_name(config->detect_mode));
		return;
	}
	config->interface = xstrdup(name);
	if (detector_make(config->detect_mode, FAMILY_IPV4, NULL, 0, name, &detector, &err) < 0)
		problems_add(problems, "--%s: %s", flag, err.text);
}

static void check_detect_local(const struct options *options, struct config *config,
			       struct problems *problems)
{
	const char *mode = options->detect_local_mode;

	config->detect_mode = DETECT_CLUSTER_CIDR;
	if (given(mode) && detect_mode_parse(mode, &config->detect_mode) < 0) {
		problems_add(problems,
			     "--detect-local-mode: \"%s\" is not one of ClusterCIDR, NodeCIDR, "
			     "BridgeInterface, InterfaceNamePrefix",
			     mode);
		return;
	}
	if (config->detect_mode == DETECT_CLUSTER_CIDR)
		check_cluster_cidr(options, config, problems);
	else if (config->detect_mode == DETECT_BRIDGE_INTERFACE)
		check_interface("pod-bridge-interface", options->pod_bridge_interface, config,
				problems);
	else if (config->detect_mode == DETECT_INTERFACE_NAME_PREFIX)
		check_interface("pod-interface-name-prefix", options->pod_interface_name_prefix,
				config, problems);
}

int options_logging(const struct options *options, struct config *ret, struct problems *problems)
{
	ret->verbosity = options->verbosity;
	ret->log_format = LOG_FORMAT_TEXT;
	if (streq(options->logging_format, "json")) {
		ret->log_format = LOG_FORMAT_JSON;
	} else if (!streq(options->logging_format, "text")) {
		problems_add(problems, "--logging-format: \"%s\" is not text or json",
			     options->logging_format);
		return -EINVAL;
	}
	return 0;
}

int options_config(const struct options *options, struct config *ret, struct problems *problems)
{
	size_t before = problems->n;
	struct gates gates;

	*ret = (struct config){
		.masquerade_all = options->masquerade_all,
		.localhost_node_ports = options->iptables_localhost_nodeports,
	};
	check_node_name(options, ret, problems);
	check_bind_address(options, ret, problems);
	check_proxy_mode(options, problems);
	gates_parse(&options->feature_gates, &gates, problems);
	ret->allow_external_ips = gates.on[GATE_ALLOW_SERVICE_EXTERNAL_IPS];
	check_masquerade_bit(options, ret, problems);
	check_periods(options, ret, problems);
	check_node_port_addresses(options, ret, problems);
	check_detect_local(options, ret, problems);
	options_logging(options, ret, problems);
	return problems->n > before ? -EINVAL : 0;
}
