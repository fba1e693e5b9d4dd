/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A command line as it was given, no judgement yet. options_config() judges all of it, and the
 * configuration file that it may name, in one pass. To add a flag: a row in options_flags.c with
 * the path of its configuration field, or with a member here when it has none.
 */

#include "config/config.h"
#include "config/flags.h"
#include "config/problems.h"
#include "config/program.h"

struct options {
	/* source and identity */
	const char *manifests;
	const char *master;
	const char *hostname_override;

	/* the configuration */
	const char *config; /* NULL or "": made from flags */
	struct flag_settings fields;
	int32_t healthz_port;
	int32_t metrics_port;

	/* Portolan's own, beside the configuration */
	const char *iptables_variant;
	const char *iptables_writer;
	bool service_index;
	int32_t affinity_clients;
	const char *terminate;
	const char *sync_guard;
	const char *probe;
	const char *probe_target;
	int64_t probe_interval;
	bool status_page;
	bool service_metrics;
	int32_t service_metrics_limit;
	const char *sandbox;
	bool no_sandbox;
	bool takeover;

	/* what to do instead of running */
	const char *write_config_to;
	bool cleanup;
	bool init_only;
	bool help;
	const char *version;

	/* render */
	const char *format;
	const char *ip_family;

	/* explain, trace and list */
	const char *argument;      /* what to explain, trace or list; whose completion */
	struct flag_list services; /* what to draw */
	const char *chart_format;
	const char *from;
	const char *proto;
	const char *output;
	const char *kernel;
	const char *prefer_family;
	const char *name_space;
	bool flows;
	int32_t seconds;
	int32_t count;
	const char *sort;
	bool batch;
	int32_t lists;
	int64_t interval;

	/* no use */
	const char *boot_id_file;
	const char *machine_id_file;
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
 * Reads the configuration file, if any, and judges all settings: what is wrong goes to `problems`,
 * one line each, with the name of the flag or the field. Returns 0, or -EINVAL when there was any;
 * *ret is good for config_done() in both cases and borrows from options.
 */
int options_config(const struct options *options, struct config *ret, struct problems *problems);

#define cleanup_options attr_cleanup(options_done)
