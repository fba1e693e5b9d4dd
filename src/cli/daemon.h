/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon: one loop that joins a source, the model and a proxier for each family.
 *
 *   reading    the source reports the initial state into the model
 *   waiting    only in mode NodeCIDR: the Node with its podCIDRs has not been seen
 *   proxying   settings are made from the Node, backends are open, changes lead to syncs
 *
 * SIGTERM and SIGINT end it and leave the rules as they are. So does a change of the configuration
 * file that cannot be made while running; other changes are, by new proxiers for the old ones.
 */

#include "cli/options.h"

/*
 * In mode NodeCIDR, as kube-proxy: 30 s for the Node to appear and 5 min more for its podCIDRs.
 * Without them there is nothing to tell local traffic by, and the daemon ends.
 */
#define DAEMON_POD_CIDRS_TIMEOUT_MS ((30 + 5 * 60) * 1000)

struct daemon_input {
	const struct options *options; /* to make the configuration once more */
	const struct config *config;
	const char *manifests;  /* the folder to read; NULL or "": an API server is the source */
	const char *kubeconfig; /* each may be NULL or "" */
	const char *master;
	bool init_only;               /* stop where rules would be written for the first time */
	int64_t pod_cidrs_timeout_ms; /* for tests; 0: DAEMON_POD_CIDRS_TIMEOUT_MS */
};

/* Runs until told to stop; logs what goes wrong and returns an exit code. */
int daemon_run(const struct daemon_input *input);
