/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A command line as it was given: one member for each flag, no judgement yet. options_config()
 * judges all of it in one pass. To add a flag: a member here, a row in options_flags.c, and its
 * rule in options.c.
 */

#include "cli/command.h"
#include "cli/config.h"
#include "cli/flags.h"
#include "cli/problems.h"

struct options {
	/* source and identity */
	const char *manifests;
	const char *kubeconfig;
	const char *master;
	const char *hostname_override;
	const char *bind_address;

	/* rules */
	const char *proxy_mode;
	bool masquerade_all;
	struct flag_list nodeport_addresses;
	struct flag_list feature_gates;
	int32_t iptables_masquerade_bit;
	bool iptables_localhost_nodeports;
	int64_t iptables_sync_period_ns;
	int64_t iptables_min_sync_period_ns;

	/* which traffic is that of this node's pods */
	const char *detect_local_mode;
	const char *cluster_cidr; /* NULL: not given, which "" is not */
	const char *pod_bridge_interface;
	const char *pod_interface_name_prefix;

	/* what to do instead of running */
	bool cleanup;
	bool init_only;
	bool help;
	const char *version;

	/* render */
	const char *format;
	const char *ip_family;

	/* logs */
	int32_t verbosity;
	const char *logging_format;
};

extern const struct flag options_flags[];
extern const size_t options_n_flags;

/*
 * Defaults, then the command line, which is without program and command name. *ret is good for
 * options_done() in all cases.
 */
int options_parse(enum command_id command, int argc, char **argv, struct options *ret,
		  struct err *err);
void options_done(struct options *options);

/*
 * Judges all settings: what is wrong goes to `problems`, one line each, with the flag's name.
 * Returns 0, or -EINVAL when there was any; *ret is good for config_done() in both cases.
 */
int options_config(const struct options *options, struct config *ret, struct problems *problems);
/* Only the flags about logs, for commands that have no others. Nothing to free. */
int options_logging(const struct options *options, struct config *ret, struct problems *problems);

#define cleanup_options attr_cleanup(options_done)
