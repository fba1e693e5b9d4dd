/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an operator can choose about the rules, for one family: the part of the configuration
 * that plans and backends see. Filled by cli/, constant while a daemon runs.
 */

#include "plan/detector.h"
#include "plan/node_ports.h"

struct settings {
	enum family family;
	const char *node_name;
	struct addr node_ip; /* of this family; loopback when unknown */
	bool masquerade_all;
	uint32_t masquerade_mark;  /* one bit, 0x4000 by default */
	bool localhost_node_ports; /* as asked for; see settings_localhost_node_ports() */
	bool allow_external_ips;   /* gate AllowServiceExternalIPs */
	struct detector detector;
	struct node_ports node_ports;
	int64_t sync_period_ns;
	int64_t min_sync_period_ns;
};

/* Are NodePorts on 127.0.0.0/8 served: asked for, IPv4, and loopback is among node_ports? */
bool settings_localhost_node_ports(const struct settings *settings);
