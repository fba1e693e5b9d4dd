/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `portolan run` keeps of its privileges once all that needs them is done (kernel/sandbox.h), and the
 * process that starts programs for it then, where any are needed (kernel/launcher.h):
 *
 *	who needs it				the daemon keeps	the launcher is for
 *	rules over netlink, connections,
 *	sysctls of the network			NET_ADMIN
 *	a server on a port below 1024		NET_BIND_SERVICE
 *	rules by iptables-restore, rules of
 *	iptables that mode nftables removes				iptables' programs, with NET_ADMIN
 *	the same of the legacy variant					and NET_RAW
 *	a credential plugin						that plugin, without capabilities
 */

#include "kernel/sandbox.h"

struct config;
struct credentials;
struct event_base;
struct plugin;

struct confinement;

struct confinement_input {
	struct event_base *loop;
	enum sandbox_mode mode;
	const struct config *config;
	bool programs; /* those of iptables are needed */
	bool raw;      /* and take CAP_NET_RAW: those of the legacy variant */
	const struct plugin *plugin;
	/* What is read again later; each may be NULL or "" */
	const struct credentials *credentials;
	const char *config_file;
	const char *manifests;
	void (*launcher_gone)(void *arg); /* no program can be started any more */
	void *arg;
};

/* Logs what was done and what could not be. NULL: the mode is off. */
struct confinement *confinement_enter(const struct confinement_input *input);
struct confinement *
confinement_free(struct confinement *confinement); /* accepts NULL, returns NULL */
