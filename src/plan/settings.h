/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an operator can choose about the rules, for one family: the part of the configuration
 * that plans and backends see. Filled by config/, constant while a daemon runs.
 */

#include "base/variant.h"
#include "plan/detector.h"
#include "plan/node_ports.h"

/* How iptables rules get into the kernel. */
enum iptables_writer {
	IPTABLES_WRITER_AUTO = 0, /* netlink where variant and kernel allow it, else restore */
	IPTABLES_WRITER_NETLINK,  /* nf_tables messages: the variant nft only */
	IPTABLES_WRITER_RESTORE,  /* the input of iptables-restore */
	IPTABLES_WRITER_COUNT,
};

/* "auto", "netlink", "restore" */
bool iptables_writer_parse(const char *name, enum iptables_writer *ret);

/* What an operator can choose about one mode alone. */
struct mode_options {
	enum iptables_variant iptables_variant; /* AUTO: whatever the node uses */
	enum iptables_writer iptables_writer;
	bool service_index; /* KUBE-SERVICES as a tree: --iptables-service-index */
	/* that a service port with affinity remembers in nftables mode; 0: as many as the kernel likes */
	uint32_t affinity_clients;
	bool localhost_proxy; /* nftables mode: gate KubeProxyNFTablesLocalhostNodePorts */
};

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
	int64_t min_sync_period_ns; /* the least time between two syncs ... */
	bool min_sync_explicit;     /* ... if asked for; else syncs are paced by what they cost */
	struct mode_options mode;
};

/* Are NodePorts on 127.0.0.0/8 served: asked for, IPv4, and loopback is among node_ports? */
bool settings_localhost_node_ports(const struct settings *settings);
