/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What decides on the rules of a sync, besides plans. */

#include "backends/iptables/ruleset.h"

struct rule_facts {
	const struct settings *settings;
	const struct ruleset_host *host;
	bool localhost_node_ports;
	bool indexed; /* entries of nat KUBE-SERVICES belong to an index and are left out */
	/* for the index: nothing is made but entries for that address, into that chain. NULL: all */
	const struct addr *only;
	const char *into;
};

/* 127.0.0.0/8 */
extern const struct prefix rule_loopback_ipv4;
