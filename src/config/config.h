/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The configuration, once it is known to be valid, and what follows from it when the Node is known.
 */

#include "base/log.h"
#include "config/gates.h"
#include "config/node_port_addresses.h"
#include "config/problems.h"
#include "config/readiness_probe.h"
#include "kernel/sandbox.h"
#include "model/node.h"
#include "model/service.h"
#include "plan/settings.h"

struct kubeproxy_config;

/* Where a server listens, once there is one. */
struct config_server {
	bool on;
	struct addr addr;
	uint16_t port;
};

struct backend_ops;

struct config {
	struct kubeproxy_config *effective; /* what all of this was made from */
	struct problems warnings;           /* that it was made with */
	struct gates gates;

	const struct backend_ops *backend; /* of the mode */

	char *node_name;       /* lower case, never empty */
	bool has_bind_address; /* given, and not 0.0.0.0 or :: */
	struct addr bind_address;
	struct config_server healthz;
	struct config_server metrics;

	bool masquerade_all;
	uint32_t masquerade_mark;
	bool localhost_node_ports;
	bool allow_external_ips;
	int64_t sync_period_ns;
	int64_t min_sync_period_ns;
	bool min_sync_explicit; /* a flag or the file says it */

	struct mode_options mode;
	enum terminate terminate;   /* NONE or ENDPOINT_REMOVED */
	unsigned int guard_percent; /* see sources/sync_guard.h; 0: off */
	enum readiness_probe probe;
	const char *probe_target; /* borrowed from the options */
	int64_t probe_interval_ns;

	struct node_port_address *node_port_addresses;
	size_t n_node_port_addresses;

	enum detect_mode detect_mode;
	struct prefix *cluster_cidrs; /* only read in mode ClusterCIDR */
	size_t n_cluster_cidrs;
	char *interface; /* bridge or prefix; "" in the CIDR modes */

	enum sandbox_mode sandbox;

	enum log_format log_format;
	int verbosity;
};

void config_done(struct config *config);

/*
 * Adds the names of the fields in which two configurations differ; the least time between syncs
 * differs also when it was said once and left open once. True when all of them can be
 * changed while a daemon runs: the log level, sync periods, node port addresses and how local
 * traffic is told from other.
 */
bool config_compare(const struct config *a, const struct config *b, struct problems *fields);

/* This node's addresses: a bind address, else the Node's (NULL: not known), else loopback. */
struct node_ips {
	enum family primary;
	struct addr addr[FAMILY_COUNT];
};

void config_node_ips(const struct config *config, const struct node *node, struct node_ips *ret);

/*
 * What plans and backends see, for one family. Borrows from config, which must live longer;
 * config_settings_done() frees the rest.
 */
int config_settings(const struct config *config, const struct node *node, enum family family,
		    struct settings *ret, struct err *err);
void config_settings_done(struct settings *settings);

/*
 * Does the configuration fit the families that this host and Node have? What is only doubtful goes
 * to `warnings`; an error is something that can never work.
 */
int config_check_families(const struct config *config, const struct node *node, bool dual_stack,
			  struct problems *warnings, struct err *err);

#define cleanup_config attr_cleanup(config_done)
