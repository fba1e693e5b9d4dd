/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon: one loop that joins a source, the model and a family_sync for each family.
 *
 *   waiting    for the Node (node_wait.h) and for another instance to end (node_lock.h), while the
 *              source reports the initial state into the model
 *   listing    settings are made from the Node, backends are open, servers answer; but not all of
 *              the initial state is there
 *   syncing    changes lead to syncs
 *
 * SIGTERM and SIGINT end it and leave the rules as they are. So does another instance that asks to
 * take over, and a change of the configuration
 * file that cannot be made while running; other changes are, by new family_syncs for the old ones.
 */

#include "config/options.h"

struct daemon_input {
	const struct options *options; /* to make the configuration once more */
	const struct config *config;
	const char *manifests;  /* the folder to read; NULL or "": an API server is the source */
	const char *kubeconfig; /* each may be NULL or "" */
	const char *master;
	bool init_only;               /* stop where rules would be written for the first time */
	enum sandbox_mode sandbox;    /* entered before the first rule is written */
	int64_t pod_cidrs_timeout_ms; /* for tests; 0: as node_wait.h */
};

/* Runs until told to stop; logs what goes wrong and returns an exit code. */
int daemon_run(const struct daemon_input *input);
