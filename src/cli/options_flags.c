/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/options.h"

/* Refuses to compile when the member is not of the type that the kind of flag writes. */
#define AT(type, member) \
	(offsetof(struct options, member) + 0 * sizeof((type *)0 == &((struct options *)0)->member))
#define BOOL(member)     .kind = FLAG_BOOL, .offset = AT(bool, member)
#define INT(member)      .kind = FLAG_INT, .offset = AT(int32_t, member)
#define LEVEL(member)    .kind = FLAG_LEVEL, .offset = AT(int32_t, member)
#define STRING(member)   .kind = FLAG_STRING, .offset = AT(const char *, member)
#define WORD(member)     .kind = FLAG_WORD, .offset = AT(const char *, member)
#define LIST(member)     .kind = FLAG_LIST, .offset = AT(struct flag_list, member)
#define DURATION(member) .kind = FLAG_DURATION, .offset = AT(int64_t, member)

#define RUN     (1u << COMMAND_RUN)
#define RENDER  (1u << COMMAND_RENDER)
#define CLEANUP (1u << COMMAND_CLEANUP)
#define VERSION (1u << COMMAND_VERSION)
#define HELP    (1u << COMMAND_HELP)
#define ALWAYS  (RUN | RENDER | CLEANUP | VERSION | HELP)
#define SOURCE  "Source and identity"
#define RULES   "Rules"
#define LOCAL   "Traffic of this node's pods"
#define INSTEAD "Instead of running"
#define OUTPUT  "Output"
#define LOGGING "Logs and help"

/*
 * `render` takes every setting of `run`, also those that change no rule, so that one command line
 * serves both.
 */
/* clang-format off */
const struct flag options_flags[] = {
	{.group = SOURCE, .name = "manifests", STRING(manifests), .commands = RUN | RENDER,
	 .value = "dir",
	 .help = "Folder with Services, EndpointSlices, Endpoints and Nodes as YAML or JSON files; run follows its changes."},
	{.group = SOURCE, .name = "kubeconfig", STRING(kubeconfig), .commands = RUN,
	 .value = "file",
	 .help = "Where the API server is and how to speak to it. Without it, and without --master or --manifests: the service account of the pod that this runs in."},
	{.group = SOURCE, .name = "master", STRING(master), .commands = RUN,
	 .value = "url", .help = "The API server's address, in place of the one in the kubeconfig."},
	{.group = SOURCE, .name = "hostname-override", STRING(hostname_override), .commands = RUN | RENDER,
	 .value = "name",
	 .help = "Name of this machine's Node. Without it, the host's own name in lower case."},
	{.group = SOURCE, .name = "node-name", STRING(hostname_override), .commands = RUN | RENDER,
	 .value = "name", .help = "The same as --hostname-override."},
	{.group = SOURCE, .name = "bind-address", STRING(bind_address), .commands = RUN | RENDER,
	 .initial = "0.0.0.0", .value = "ip",
	 .help = "Takes the place of the Node's primary address and decides the primary family; nothing is bound to it."},

	{.group = RULES, .name = "proxy-mode", STRING(proxy_mode), .commands = RUN | RENDER,
	 .value = "mode", .help = "How rules are written: iptables, which is also what empty means."},
	{.group = RULES, .name = "masquerade-all", BOOL(masquerade_all), .commands = RUN | RENDER,
	 .help = "Give the node's address as source to all traffic for a cluster IP."},
	{.group = RULES, .name = "nodeport-addresses", LIST(nodeport_addresses), .commands = RUN | RENDER,
	 .value = "cidrs",
	 .help = "NodePorts are answered only on this node's addresses within these CIDRs, or with the one word primary on its primary addresses. Without it: on all."},
	{.group = RULES, .name = "feature-gates", LIST(feature_gates), .commands = RUN | RENDER,
	 .value = "name=bool,...",
	 .help = "Turns features on or off. AllowServiceExternalIPs=false ignores externalIPs of Services; the other gates of kube-proxy that are known change nothing here."},
	{.group = RULES, .name = "iptables-masquerade-bit", INT(iptables_masquerade_bit), .commands = RUN | RENDER,
	 .initial = "14", .value = "0-31",
	 .help = "The bit of the packet mark that asks for source address translation."},
	{.group = RULES, .name = "iptables-localhost-nodeports", BOOL(iptables_localhost_nodeports),
	 .commands = RUN | RENDER, .initial = "true",
	 .help = "Answer NodePorts on 127.0.0.0/8 too (IPv4 only); sets the sysctl route_localnet."},
	{.group = RULES, .name = "iptables-sync-period", DURATION(iptables_sync_period_ns),
	 .commands = RUN | RENDER, .initial = "30s",
	 .help = "How soon a failed sync is tried again, and how often foreign changes are looked for."},
	{.group = RULES, .name = "iptables-min-sync-period", DURATION(iptables_min_sync_period_ns),
	 .commands = RUN | RENDER, .initial = "1s",
	 .help = "The least time between two syncs; 0: each change at once."},

	{.group = LOCAL, .name = "detect-local-mode", STRING(detect_local_mode), .commands = RUN | RENDER,
	 .value = "mode",
	 .help = "ClusterCIDR (also when empty), NodeCIDR, BridgeInterface or InterfaceNamePrefix."},
	{.group = LOCAL, .name = "cluster-cidr", STRING(cluster_cidr), .commands = RUN | RENDER,
	 .value = "cidr[,cidr]",
	 .help = "Addresses of all pods, for mode ClusterCIDR; two when one is IPv4 and one IPv6."},
	{.group = LOCAL, .name = "pod-bridge-interface", STRING(pod_bridge_interface), .commands = RUN | RENDER,
	 .value = "name", .help = "The bridge of this node's pods, for mode BridgeInterface."},
	{.group = LOCAL, .name = "pod-interface-name-prefix", STRING(pod_interface_name_prefix),
	 .commands = RUN | RENDER, .value = "prefix",
	 .help = "How the names of this node's pod interfaces begin, for mode InterfaceNamePrefix."},

	{.group = INSTEAD, .name = "cleanup", BOOL(cleanup), .commands = RUN,
	 .help = "Remove all rules of a proxy and exit, as portolan cleanup does."},
	{.group = INSTEAD, .name = "init-only", BOOL(init_only), .commands = RUN,
	 .help = "Set the sysctls that need privileges and exit before any rule is written."},

	{.group = OUTPUT, .name = "format", STRING(format), .commands = RENDER,
	 .initial = "restore", .value = "restore|save",
	 .help = "restore: exactly what iptables-restore would be given; save: what iptables-save would show afterwards on an empty host."},
	{.group = OUTPUT, .name = "ip-family", STRING(ip_family), .commands = RENDER,
	 .initial = "both", .value = "ipv4|ipv6|both",
	 .help = "Whose rules to print; with both, a comment line names the tool that each part is for."},

	{.group = LOGGING, .name = "v", .letter = 'v', LEVEL(verbosity), .commands = RUN | RENDER | CLEANUP,
	 .initial = "0", .help = "How much to log: 2 tells of each sync, 4 and more are for debugging."},
	{.group = LOGGING, .name = "logging-format", STRING(logging_format), .commands = RUN | RENDER | CLEANUP,
	 .initial = "text", .value = "text|json", .help = "How log lines are written."},
	{.group = LOGGING, .name = "version", WORD(version), .commands = RUN | RENDER | CLEANUP,
	 .value = "raw", .help = "Print the version and exit; raw: with all details."},
	{.group = LOGGING, .name = "help", .letter = 'h', BOOL(help), .commands = ALWAYS,
	 .help = "Print this help and exit."},
};
/* clang-format on */

const size_t options_n_flags = ARRAY_SIZE(options_flags);
