/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon: one loop that joins a source, the model and a proxier for each family.
 *
 *   waiting    for the Node (node_wait.h), while the source reports the initial state into the model
 *   listing    settings are made from the Node, backends are open, servers answer; but not all of
 *              the initial state is there
 *   proxying   changes lead to syncs
 *
 * SIGTERM and SIGINT end it and leave the rules as they are. So does a change of the configuration
 * file that cannot be made while running; other changes are, by new proxiers for the old ones.
 */

#include "cli/options.h"

struct daemon_input {
	const struct options *options; /* to make the configuration once more */
	const struct config *config;
	const char *manifests;  /* the folder to read; NULL or "": an API server is the source */
	const char *kubeconfig; /* each may be NULL or "" */
	const char *master;
	bool init_only;               /* stop where rules would be written for the first time */
	int64_t pod_cidrs_timeout_ms; /* for tests; 0: as node_wait.h */
};

/* Runs until told to stop; logs what goes wrong and returns an exit code. */
int daemon_run(const struct daemon_input *input);
