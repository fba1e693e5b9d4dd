/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The configuration file says something else while the daemon runs. What can be changed then is;
 * for anything else the daemon is told to end, to be started again, as kube-proxy does for every
 * change. A file that cannot be used is logged once and changes nothing.
 */

#include "config/options.h"

struct event_base;
struct reload;

struct reload_ops {
	/* Whether this configuration can be put in force while running, apart from its fields. */
	bool (*can_change)(void *arg, const struct config *config);
	/* Puts it in force, or leaves the old one there. After success the old one goes. */
	int (*change)(void *arg, const struct config *config, struct err *err);
	/* A new start is needed. */
	void (*end)(void *arg);
};

/*
 * Follows the file of --config; `config` is what was read from it. The configuration that is in
 * force later belongs to the reload and lives as long as it, or until the next one.
 */
int reload_new(struct event_base *loop, const struct options *options, const struct config *config,
	       const struct reload_ops *ops, void *arg, struct reload **ret, struct err *err);
struct reload *reload_free(struct reload *reload); /* accepts NULL, returns NULL */
