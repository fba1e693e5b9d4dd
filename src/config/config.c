/* SPDX-License-Identifier: Apache-2.0 */

#include "config/config.h"

#include <errno.h>
#include <stdlib.h>

#include "config/kubeproxy_config.h"
#include "config/message.h"

void config_done(struct config *config)
{
	kubeproxy_config_free(config->effective);
	problems_done(&config->warnings);
	free(config->node_name);
	free(config->node_port_addresses);
	free(config->cluster_cidrs);
	free(config->interface);
	*config = (struct config){0};
}

static const char *const live_fields[] = {
	"clusterCIDR",       "detectLocal.bridgeInterface", "detectLocal.interfaceNamePrefix",
	"detectLocalMode",   "iptables.minSyncPeriod",      "iptables.syncPeriod",
	"logging.verbosity", "nftables.minSyncPeriod",      "nftables.syncPeriod",
	"nodePortAddresses",
};

static void add_name(void *arg, const char *path)
{
	problems_add(arg, "%s", path);
}

static bool is_live(const char *path)
{
	return word_among(path, live_fields);
}

bool config_compare(const struct config *a, const struct config *b, struct problems *fields)
{
	bool live = true;

	message_compare(&a->effective->message->base, &b->effective->message->base, add_name,
			fields);
	if (a->min_sync_explicit != b->min_sync_explicit &&
	    a->min_sync_period_ns == b->min_sync_period_ns)
		add_name(fields, "iptables.minSyncPeriod");
	for (size_t i = 0; i < fields->n; i++)
		live = live && is_live(fields->v[i]);
	return live;
}

static enum family other_family(enum family family)
{
	return family == FAMILY_IPV4 ? FAMILY_IPV6 : FAMILY_IPV4;
}

static struct addr loopback(enum family family)
{
	struct addr addr = {.family = (uint8_t)family};

	if (family == FAMILY_IPV4)
		addr.bytes[0] = 127;
	addr.bytes[addr_bytes(family) - 1] = 1;
	return addr;
}

void config_node_ips(const struct config *config, const struct node *node, struct node_ips *ret)
{
	ret->primary = FAMILY_IPV4;
	if (node && node->n_addresses > 0)
		ret->primary = node->addresses[0].family;
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		const struct addr *addr = node ? node_primary_address(node, family) : NULL;

		ret->addr[family] = addr ? *addr : loopback(family);
	}
	if (config->has_bind_address) {
		ret->primary = config->bind_address.family;
		ret->addr[ret->primary] = config->bind_address;
	}
}

/* The CIDRs for node ports on this node; the caller frees. */
static struct prefix *node_port_cidrs(const struct config *config, const struct node_ips *ips,
				      size_t *ret_n)
{
	return node_port_addresses_expand(config->node_port_addresses,
					  config->n_node_port_addresses, ips->addr, ret_n);
}

static const struct prefix *pod_cidrs(const struct config *config, const struct node *node,
				      size_t *ret_n)
{
	if (config->detect_mode == DETECT_NODE_CIDR) {
		*ret_n = node ? node->n_pod_cidrs : 0;
		return node ? node->pod_cidrs : NULL;
	}
	*ret_n = config->n_cluster_cidrs;
	return config->cluster_cidrs;
}

int config_settings(const struct config *config, const struct node *node, enum family family,
		    struct settings *ret, struct err *err)
{
	cleanup_free struct prefix *cidrs = NULL;
	const struct prefix *pods;
	struct detector detector;
	struct node_ips ips;
	size_t n_cidrs;
	size_t n_pods;
	int r;

	pods = pod_cidrs(config, node, &n_pods);
	r = detector_make(config->detect_mode, family, pods, n_pods, config->interface, &detector,
			  err);
	if (r < 0)
		return err_wrap(err, r, "--detect-local-mode");
	config_node_ips(config, node, &ips);
	*ret = (struct settings){
		.family = family,
		.node_name = config->node_name,
		.node_ip = ips.addr[family],
		.masquerade_all = config->masquerade_all,
		.masquerade_mark = config->masquerade_mark,
		.localhost_node_ports = config->localhost_node_ports,
		.allow_external_ips = config->allow_external_ips,
		.detector = detector,
		.sync_period_ns = config->sync_period_ns,
		.min_sync_period_ns = config->min_sync_period_ns,
		.min_sync_explicit = config->min_sync_explicit,
		.mode = config->mode,
	};
	cidrs = node_port_cidrs(config, &ips, &n_cidrs);
	node_ports_init(&ret->node_ports, family, cidrs, n_cidrs);
	return 0;
}

void config_settings_done(struct settings *settings)
{
	node_ports_done(&settings->node_ports);
}

static size_t count_family(const struct prefix *cidrs, size_t n, enum family family)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += cidrs[i].addr.family == family;
	return count;
}

static bool of_both_families(const struct prefix *cidrs, size_t n)
{
	size_t ipv4 = count_family(cidrs, n, FAMILY_IPV4);

	return ipv4 > 0 && ipv4 < n;
}

/* No Service has been seen yet, so whether the cluster is dual-stack is read off the settings. */
static void check_node_ports(const struct config *config, const struct node *node,
			     const struct node_ips *ips, struct problems *warnings)
{
	enum family other = other_family(ips->primary);
	size_t n;
	cleanup_free struct prefix *cidrs = node_port_cidrs(config, ips, &n);
	size_t primary = count_family(cidrs, n, ips->primary);
	bool dual = of_both_families(config->cluster_cidrs, config->n_cluster_cidrs) ||
		    of_both_families(cidrs, n) ||
		    (node && of_both_families(node->pod_cidrs, node->n_pod_cidrs));

	if (n == 0)
		problems_add(warnings, "--nodeport-addresses is not set: NodePorts are answered on "
				       "all addresses; consider --nodeport-addresses=primary");
	else if (dual && primary == n)
		problems_add(warnings,
			     "--nodeport-addresses has only %s addresses, but the cluster looks "
			     "dual-stack: NodePorts are answered on all %s addresses",
			     family_name(ips->primary), family_name(other));
	else if (primary == 0)
		problems_add(warnings,
			     "--nodeport-addresses has only %s addresses, but the primary family "
			     "is %s: NodePorts are answered on all %s addresses",
			     family_name(other), family_name(ips->primary),
			     family_name(ips->primary));
}

static bool all_of(const struct prefix *cidrs, size_t n, enum family family)
{
	return n > 0 && count_family(cidrs, n, family) == n;
}

int config_check_families(const struct config *config, const struct node *node, bool dual_stack,
			  struct problems *warnings, struct err *err)
{
	struct node_ips ips;
	enum family wrong;

	config_node_ips(config, node, &ips);
	wrong = other_family(ips.primary);
	check_node_ports(config, node, &ips, warnings);
	if (all_of(config->cluster_cidrs, config->n_cluster_cidrs, wrong)) {
		if (!dual_stack)
			return err_set(err, -EINVAL,
				       "--cluster-cidr has only %s ranges, but this node is "
				       "%s only",
				       family_name(wrong), family_name(ips.primary));
		problems_add(warnings,
			     "--cluster-cidr has only %s ranges, but the primary family "
			     "is %s",
			     family_name(wrong), family_name(ips.primary));
	}
	if (node && all_of(node->pod_cidrs, node->n_pod_cidrs, wrong)) {
		if (config->detect_mode == DETECT_NODE_CIDR)
			return err_set(err, -EINVAL,
				       "podCIDRs of Node %s are only %s, but the primary family is "
				       "%s",
				       config->node_name, family_name(wrong),
				       family_name(ips.primary));
		problems_add(warnings,
			     "podCIDRs of Node %s are only %s, but the primary family is %s",
			     config->node_name, family_name(wrong), family_name(ips.primary));
	}
	return 0;
}
