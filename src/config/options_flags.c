/* SPDX-License-Identifier: Apache-2.0 */

#include "config/options.h"

/* Refuses to compile when the member is not of the type that the kind of flag writes. */
#define AT(type, member) \
	(offsetof(struct options, member) + 0 * sizeof((type *)0 == &((struct options *)0)->member))
#define BOOL(member)   .kind = FLAG_BOOL, .offset = AT(bool, member)
#define INT(member)    .kind = FLAG_INT, .offset = AT(int32_t, member)
#define STRING(member) .kind = FLAG_STRING, .offset = AT(const char *, member)
#define PERIOD(member) .kind = FLAG_DURATION, .offset = AT(int64_t, member)
#define WORD(member)   .kind = FLAG_WORD, .offset = AT(const char *, member)
#define ARGUMENT(member) \
	.name = "", .kind = FLAG_ARGUMENT, .offset = AT(const char *, member), .help = ""
#define ARGUMENTS(member) \
	.name = "", .kind = FLAG_ARGUMENTS, .offset = AT(struct flag_list, member), .help = ""
/* A field of the configuration, by its path. */
#define FIELD(k, p) .kind = FLAG_##k, .offset = AT(struct flag_settings, fields), .path = (p)

#define RUN     (1u << COMMAND_RUN)
#define RENDER  (1u << COMMAND_RENDER)
#define CLEANUP (1u << COMMAND_CLEANUP)
#define VERSION (1u << COMMAND_VERSION)
#define HELP    (1u << COMMAND_HELP)
#define EXPLAIN (1u << COMMAND_EXPLAIN)
#define TRACE   (1u << COMMAND_TRACE)
#define LIST    (1u << COMMAND_LIST)
#define CHART   (1u << COMMAND_CHART)
#define SHELLS  (1u << COMMAND_COMPLETION)
#define DIFF    (1u << COMMAND_DIFF)
#define TRACKED (1u << COMMAND_CONNTRACK)
#define TOP     (1u << COMMAND_TOP)
#define LOOK    (EXPLAIN | TRACE | LIST | CHART | DIFF | TRACKED | TOP) /* nothing stays */
#define BOTH    (RUN | RENDER | LOOK)                                   /* all that plan rules */
#define ALWAYS  (RUN | RENDER | LOOK | CLEANUP | SHELLS | VERSION | HELP)
#define LOGS    (RUN | RENDER | LOOK | CLEANUP)

#define SOURCE    "Source and identity"
#define CONFIG    "Configuration"
#define RULES     "Rules"
#define LOCAL     "Traffic of this node's pods"
#define SERVERS   "Servers"
#define CONNTRACK "Connection tracking"
#define INSTEAD   "Instead of running"
#define OUTPUT    "Output"
#define LOGGING   "Logs and help"
#define UNUSED    "Accepted for kube-proxy's sake"

/*
 * `render`, `explain`, `trace`, `list` and `chart` take every setting of `run`, also those that change no rule, so
 * that one command line serves all. A default here is what the help shows; for a field it is in force through
 * kubeproxy_fields.c.
 */
/* clang-format off */
const struct flag options_flags[] = {
	{.group = SOURCE, .name = "manifests", STRING(manifests), .commands = BOTH, .value = "dir",
	 .help = "Folder with Services, EndpointSlices, Endpoints and Nodes as YAML or JSON files; run follows its changes."},
	{.group = SOURCE, .name = "kubeconfig", FIELD(STRING, "clientConnection.kubeconfig"), .commands = BOTH, .value = "file",
	 .help = "Where the API server is and how to speak to it. Without it, and without --master or --manifests: the service account of the pod that this runs in."},
	{.group = SOURCE, .name = "master", STRING(master), .commands = BOTH, .value = "url",
	 .help = "The API server's address, in place of the one in the kubeconfig."},
	{.group = SOURCE, .name = "hostname-override", STRING(hostname_override), .commands = BOTH, .value = "name",
	 .help = "Name of this machine's Node. Without it, the host's own name in lower case."},
	{.group = SOURCE, .name = "node-name", STRING(hostname_override), .commands = BOTH, .value = "name",
	 .help = "The same as --hostname-override."},
	{.group = SOURCE, .name = "bind-address", FIELD(ADDRESS, "bindAddress"), .commands = BOTH, .initial = "0.0.0.0", .value = "ip",
	 .help = "Takes the place of the Node's primary address and decides the primary family; nothing is bound to it."},
	{.group = SOURCE, .name = "sync-guard", STRING(sync_guard), .commands = BOTH, .initial = "on", .value = "off|on|percent",
	 .help = "Hold back a list of the API server that would remove more than half (on), or this percentage, of at least 20 Services or the endpoints of so many, until a list a minute later says the same. off: believe every list, as kube-proxy."},

	{.group = CONFIG, .name = "config", STRING(config), .commands = BOTH, .value = "file",
	 .help = "KubeProxyConfiguration file. All settings are taken from it; of the flags only those about logs, --hostname-override, --master and the actions count. run follows its changes."},
	{.group = CONFIG, .name = "feature-gates", FIELD(GATES, "featureGates"), .commands = BOTH,
	 .help = "Turns features on or off. AllowServiceExternalIPs=false ignores externalIPs of Services, KubeProxyNFTablesLocalhostNodePorts=true serves NodePorts on localhost in nftables mode; most other gates of Kubernetes 1.35 to 1.37 are accepted and change nothing here."},
	{.group = CONFIG, .name = "sandbox", STRING(sandbox), .commands = BOTH, .initial = "on", .value = "on|log|off",
	 .help = "After the start, give up all privileges but those that the mode needs, and refuse system calls that nothing here makes. log: such calls are only reported, in the kernel's audit log."},
	{.group = CONFIG, .name = "no-sandbox", BOOL(no_sandbox), .commands = BOTH,
	 .help = "The same as --sandbox=off: keep all privileges."},
	{.group = CONFIG, .name = "oom-score-adj", FIELD(INT, "oomScoreAdj"), .commands = BOTH, .initial = "-999",
	 .help = "How likely the kernel ends the process when memory is short."},
	{.group = CONFIG, .name = "takeover", BOOL(takeover), .commands = RUN,
	 .help = "Ask another instance that runs on this node to end, as soon as this one is ready. Without it, this one waits until the other ends by itself."},

	{.group = RULES, .name = "proxy-mode", FIELD(STRING, "mode"), .commands = BOTH, .value = "iptables|nftables",
	 .help = "How rules are written: iptables, which is also what empty means, or nftables."},
	{.group = RULES, .name = "masquerade-all", FIELD(BOOL, "iptables.masqueradeAll"), .commands = BOTH,
	 .help = "Give the node's address as source to all traffic for a cluster IP."},
	{.group = RULES, .name = "nodeport-addresses", FIELD(LIST, "nodePortAddresses"), .commands = BOTH, .value = "cidrs|primary|localhost|all",
	 .help = "NodePorts are answered only on this node's addresses within these CIDRs. primary stands for the Node's own addresses, localhost for 127.0.0.0/8 and ::1/128, all for 0.0.0.0/0 and ::/0. Without it: on all, in nftables mode on primary."},
	{.group = RULES, .name = "iptables-masquerade-bit", FIELD(INT, "iptables.masqueradeBit"), .commands = BOTH, .initial = "14", .value = "0-31",
	 .help = "The bit of the packet mark that asks for source address translation."},
	{.group = RULES, .name = "iptables-localhost-nodeports", FIELD(BOOL, "iptables.localhostNodePorts"), .commands = BOTH, .initial = "true",
	 .help = "Answer NodePorts on 127.0.0.0/8 too (IPv4 only); sets the sysctl route_localnet."},
	{.group = RULES, .name = "iptables-sync-period", FIELD(DURATION, "iptables.syncPeriod"), .commands = BOTH, .initial = "30s",
	 .help = "How soon a failed sync is tried again, and how often foreign changes are looked for."},
	{.group = RULES, .name = "iptables-min-sync-period", FIELD(DURATION, "iptables.minSyncPeriod"), .commands = BOTH, .initial = "1s",
	 .help = "The least time between two syncs; 0: each change at once. Where neither a flag nor the file gives it, the pace follows what syncs cost."},
	{.group = RULES, .name = "iptables-variant", STRING(iptables_variant), .commands = LOGS, .initial = "auto", .value = "auto|nft|legacy",
	 .help = "Which of the two kinds of iptables holds the rules. auto: the one that kubelet's rules are in, else the one that the program iptables is."},
	{.group = RULES, .name = "iptables-writer", STRING(iptables_writer), .commands = BOTH, .initial = "auto", .value = "auto|netlink|restore",
	 .help = "How rules get into the kernel: by nf_tables messages (variant nft only) or by iptables-restore. auto: by messages where that can be done."},
	{.group = RULES, .name = "iptables-service-index", BOOL(service_index), .commands = BOTH,
	 .help = "Lead packets to their Service through a tree of prefixes instead of a list of all Services."},
	{.group = RULES, .name = "affinity-clients", INT(affinity_clients), .commands = BOTH, .initial = "65536", .value = "clients",
	 .help = "nftables mode: how many clients each port of a Service with ClientIP affinity remembers, from 1 to 1048576. Further ones get any endpoint."},

	{.group = LOCAL, .name = "detect-local-mode", FIELD(STRING, "detectLocalMode"), .commands = BOTH, .value = "ClusterCIDR|NodeCIDR|BridgeInterface|InterfaceNamePrefix",
	 .help = "ClusterCIDR (also when empty), NodeCIDR, BridgeInterface or InterfaceNamePrefix."},
	{.group = LOCAL, .name = "cluster-cidr", FIELD(STRING, "clusterCIDR"), .commands = BOTH, .value = "cidr[,cidr]",
	 .help = "Addresses of all pods, for mode ClusterCIDR; two when one is IPv4 and one IPv6."},
	{.group = LOCAL, .name = "pod-bridge-interface", FIELD(STRING, "detectLocal.bridgeInterface"), .commands = BOTH, .value = "name",
	 .help = "The bridge of this node's pods, for mode BridgeInterface."},
	{.group = LOCAL, .name = "pod-interface-name-prefix", FIELD(STRING, "detectLocal.interfaceNamePrefix"), .commands = BOTH, .value = "prefix",
	 .help = "How the names of this node's pod interfaces begin, for mode InterfaceNamePrefix."},

	{.group = SERVERS, .name = "healthz-bind-address", FIELD(ADDRESS, "healthzBindAddress"), .commands = BOTH, .initial = "0.0.0.0:10256", .value = "ip[:port]",
	 .help = "Where the health of the proxy is told."},
	{.group = SERVERS, .name = "healthz-probe", STRING(probe), .commands = BOTH, .initial = "off", .value = "off|rules|connect",
	 .help = "What /healthz needs beyond kube-proxy's: rules, that the rules which lead to all others are in the kernel; connect, that a connection through a cluster IP comes about, too."},
	{.group = SERVERS, .name = "healthz-probe-target", STRING(probe_target), .commands = BOTH, .initial = "default/kubernetes", .value = "namespace/name[:port]",
	 .help = "The Service to connect to."},
	{.group = SERVERS, .name = "healthz-probe-interval", PERIOD(probe_interval), .commands = BOTH, .initial = "10s",
	 .help = "How often that is looked at."},
	{.group = SERVERS, .name = "healthz-port", INT(healthz_port), .commands = BOTH, .initial = "10256", .value = "port",
	 .help = "Deprecated: the port when --healthz-bind-address has none; 0: no such server."},
	{.group = SERVERS, .name = "metrics-bind-address", FIELD(ADDRESS, "metricsBindAddress"), .commands = BOTH, .initial = "127.0.0.1:10249", .value = "ip[:port]",
	 .help = "Where metrics are told; 0.0.0.0 or [::]: on all addresses. Empty is the default."},
	{.group = SERVERS, .name = "metrics-port", INT(metrics_port), .commands = BOTH, .initial = "10249", .value = "port",
	 .help = "Deprecated: the port when --metrics-bind-address has none."},
	{.group = SERVERS, .name = "bind-address-hard-fail", FIELD(BOOL, "bindAddressHardFail"), .commands = BOTH,
	 .help = "End when one of these addresses cannot be listened on."},
	{.group = SERVERS, .name = "profiling", FIELD(BOOL, "enableProfiling"), .commands = BOTH,
	 .help = "PUT /debug/flags/v, beside the metrics, sets the log level. There are no profiles to offer."},
	{.group = SERVERS, .name = "show-hidden-metrics-for-version", FIELD(STRING, "showHiddenMetricsForVersion"), .commands = BOTH, .value = "major.minor",
	 .help = "Show metrics that were hidden since this version: the previous minor one, or none."},

	{.group = SERVERS, .name = "status-page", BOOL(status_page), .commands = BOTH, .initial = "true",
	 .help = "Show what the proxy does, live, to browsers at the metrics' address. Nothing can be changed there."},
	{.group = SERVERS, .name = "service-metrics", BOOL(service_metrics), .commands = BOTH,
	 .help = "Count connections, packets and bytes of each service port, and tell them with the metrics. Turns on the kernel's accounting of connections."},
	{.group = SERVERS, .name = "service-metrics-limit", INT(service_metrics_limit), .commands = BOTH, .initial = "1000", .value = "ports",
	 .help = "Most service ports with numbers of their own: those with the most traffic. The others are told as one sum."},

	{.group = CONNTRACK, .name = "conntrack-max-per-core", FIELD(INT, "conntrack.maxPerCore"), .commands = BOTH, .initial = "32768",
	 .help = "Most connections to track, for each core; 0: leave the limit as it is."},
	{.group = CONNTRACK, .name = "conntrack-min", FIELD(INT, "conntrack.min"), .commands = BOTH, .initial = "131072",
	 .help = "The limit is at least this, however few the cores."},
	{.group = CONNTRACK, .name = "conntrack-tcp-timeout-established", FIELD(DURATION, "conntrack.tcpEstablishedTimeout"), .commands = BOTH, .initial = "24h0m0s",
	 .help = "How long an idle TCP connection is remembered; 0: leave as it is."},
	{.group = CONNTRACK, .name = "conntrack-tcp-timeout-close-wait", FIELD(DURATION, "conntrack.tcpCloseWaitTimeout"), .commands = BOTH, .initial = "1h0m0s",
	 .help = "How long a half-closed TCP connection is remembered."},
	{.group = CONNTRACK, .name = "conntrack-tcp-be-liberal", FIELD(BOOL, "conntrack.tcpBeLiberal"), .commands = BOTH,
	 .help = "Do not take TCP packets out of window for invalid."},
	{.group = CONNTRACK, .name = "conntrack-udp-timeout", FIELD(DURATION, "conntrack.udpTimeout"), .commands = BOTH, .initial = "0s",
	 .help = "How long UDP packets without an answer are remembered; 0: leave as it is."},
	{.group = CONNTRACK, .name = "conntrack-udp-timeout-stream", FIELD(DURATION, "conntrack.udpStreamTimeout"), .commands = BOTH, .initial = "0s",
	 .help = "How long an idle UDP conversation is remembered; 0: leave as it is."},

	{.group = CONNTRACK, .name = "terminate-connections", STRING(terminate), .commands = BOTH, .initial = "none", .value = "none|endpoint-removed",
	 .help = "endpoint-removed: forget TCP connections to an endpoint that is gone, so that clients connect again. A Service may say otherwise in its annotation portolan.io/terminate-connections."},

	{.group = INSTEAD, .name = "cleanup", BOOL(cleanup), .commands = RUN,
	 .help = "Remove all rules of a proxy and exit, as portolan cleanup does."},
	{.group = INSTEAD, .name = "init-only", BOOL(init_only), .commands = RUN,
	 .help = "Set the sysctls that need privileges and exit before any rule is written."},
	{.group = INSTEAD, .name = "write-config-to", STRING(write_config_to), .commands = RUN, .value = "file",
	 .help = "Write the configuration that is in force to this file, and exit."},

	{.group = OUTPUT, .name = "format", STRING(format), .commands = RENDER, .initial = "restore", .value = "restore|save",
	 .help = "restore: exactly what iptables-restore would be given; save: what iptables-save would show afterwards on an empty host."},
	{.group = OUTPUT, .name = "ip-family", STRING(ip_family), .commands = RENDER, .initial = "both", .value = "ipv4|ipv6|both",
	 .help = "Whose rules to print; with both, a comment line names the tool that each part is for."},

	{.group = OUTPUT, .commands = EXPLAIN | TRACE | LIST | TRACKED, ARGUMENT(argument)},
	{.group = OUTPUT, .commands = SHELLS, ARGUMENT(argument)},
	{.group = OUTPUT, .name = "output", .letter = 'o', STRING(output), .commands = EXPLAIN | TRACE | LIST | DIFF | TRACKED | TOP, .initial = "human", .value = "human|json|yaml",
	 .help = "For people, or as a document for programs, with the same content."},
	{.group = OUTPUT, .name = "from", STRING(from), .commands = EXPLAIN, .value = "pod|node|outside|ip",
	 .help = "Who connects: a pod, this node, a client outside the cluster, or an address. Without it: a pod for a cluster IP, a client outside for all else."},
	{.group = OUTPUT, .name = "from", STRING(from), .commands = TRACE, .value = "ip",
	 .help = "Only connections from this address."},
	{.group = OUTPUT, .name = "seconds", INT(seconds), .commands = TRACE, .initial = "10", .value = "n",
	 .help = "How long to wait for connections, at most 3600."},
	{.group = OUTPUT, .name = "count", INT(count), .commands = TRACE, .initial = "1", .value = "n",
	 .help = "After how many connections to end, at most 1000."},
	{.group = OUTPUT, .name = "proto", STRING(proto), .commands = EXPLAIN | TRACE | TRACKED, .value = "tcp|udp|sctp",
	 .help = "The protocol. Without it: the one that the Service's port has; tcp where there are several, or none."},
	{.group = OUTPUT, .name = "ip-family", STRING(prefer_family), .commands = EXPLAIN | TRACE, .initial = "ipv4", .value = "ipv4|ipv6",
	 .help = "Of a Service with both, and for node ports, the family that is meant."},
	{.group = OUTPUT, .name = "kernel", WORD(kernel), .commands = EXPLAIN, .initial = "auto", .value = "auto|true|false",
	 .help = "Compare with the rules that the kernel has. auto: not with --manifests, which may be those of any cluster."},
	{.group = OUTPUT, .name = "flows", BOOL(flows), .commands = TRACKED,
	 .help = "Every single flow too, with client, state and time left."},
	{.group = OUTPUT, .name = "sort", STRING(sort), .commands = TOP, .initial = "connections", .value = "connections|flows|packets|bytes|name",
	 .help = "What comes first: the most new connections, flows, packets or bytes, or names in order."},
	{.group = OUTPUT, .name = "batch", BOOL(batch), .commands = TOP,
	 .help = "Print list after list instead of a screen. So it is without a terminal, too."},
	{.group = OUTPUT, .name = "count", INT(lists), .commands = TOP, .initial = "0", .value = "n",
	 .help = "Print so many lists and exit. 0: until told to stop."},
	{.group = OUTPUT, .name = "interval", PERIOD(interval), .commands = TOP, .initial = "1s",
	 .help = "How often rates are measured. A large table makes it longer."},
	{.group = OUTPUT, .commands = CHART, ARGUMENTS(services)},
	{.group = OUTPUT, .name = "format", STRING(chart_format), .commands = CHART, .initial = "svg", .value = "svg|html|dot|mermaid",
	 .help = "A picture, a page around it, or text for Graphviz and Mermaid."},
	{.group = OUTPUT, .name = "namespace", .letter = 'n', STRING(name_space), .commands = LIST | CHART, .value = "namespace",
	 .help = "Only Services of this namespace."},

	{.group = LOGGING, .name = "v", .letter = 'v', FIELD(LEVEL, "logging.verbosity"), .commands = LOGS, .initial = "0",
	 .help = "How much to log: 2 tells of each sync, 4 and more are for debugging."},
	{.group = LOGGING, .name = "logging-format", FIELD(STRING, "logging.format"), .commands = LOGS, .initial = "text", .value = "text|json",
	 .help = "How log lines are written."},
	{.group = LOGGING, .name = "version", WORD(version), .commands = LOGS, .value = "raw",
	 .help = "Print the version and exit; raw: with all details."},
	{.group = LOGGING, .name = "help", .letter = 'h', BOOL(help), .commands = ALWAYS,
	 .help = "Print this help and exit."},

	{.group = UNUSED, .name = "kube-api-content-type", FIELD(STRING, "clientConnection.contentType"), .commands = BOTH, .initial = "application/vnd.kubernetes.protobuf",
	 .help = "Objects are always asked for as protobuf."},
	{.group = UNUSED, .name = "kube-api-qps", FIELD(FLOAT, "clientConnection.qps"), .commands = BOTH, .initial = "5",
	 .help = "Three watches need no limit."},
	{.group = UNUSED, .name = "kube-api-burst", FIELD(INT, "clientConnection.burst"), .commands = BOTH, .initial = "10",
	 .help = "As --kube-api-qps."},
	{.group = UNUSED, .name = "config-sync-period", FIELD(DURATION, "configSyncPeriod"), .commands = BOTH, .initial = "15m0s",
	 .help = "A watch that loses nothing needs no refresh."},
	{.group = UNUSED, .name = "ipvs-scheduler", FIELD(STRING, "ipvs.scheduler"), .commands = BOTH,
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "ipvs-exclude-cidrs", FIELD(LIST, "ipvs.excludeCIDRs"), .commands = BOTH,
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "ipvs-strict-arp", FIELD(BOOL, "ipvs.strictARP"), .commands = BOTH,
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "ipvs-sync-period", FIELD(DURATION, "ipvs.syncPeriod"), .commands = BOTH, .initial = "30s",
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "ipvs-min-sync-period", FIELD(DURATION, "ipvs.minSyncPeriod"), .commands = BOTH, .initial = "1s",
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "ipvs-tcp-timeout", FIELD(DURATION, "ipvs.tcpTimeout"), .commands = BOTH, .initial = "0s",
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "ipvs-tcpfin-timeout", FIELD(DURATION, "ipvs.tcpFinTimeout"), .commands = BOTH, .initial = "0s",
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "ipvs-udp-timeout", FIELD(DURATION, "ipvs.udpTimeout"), .commands = BOTH, .initial = "0s",
	 .help = "Only mode ipvs has this."},
	{.group = UNUSED, .name = "log-flush-frequency", FIELD(DURATION, "logging.flushFrequency"), .commands = LOGS, .initial = "5s",
	 .help = "Every line is written at once."},
	{.group = UNUSED, .name = "vmodule", FIELD(VMODULE, "logging.vmodule"), .commands = LOGS,
	 .help = "Levels for single source files."},
	{.group = UNUSED, .name = "log-text-split-stream", FIELD(BOOL, "logging.options.text.splitStream"), .commands = LOGS,
	 .help = "All lines go to standard error."},
	{.group = UNUSED, .name = "log-text-info-buffer-size", FIELD(QUANTITY, "logging.options.text.infoBufferSize"), .commands = LOGS, .initial = "0",
	 .help = "Every line is written at once."},
	{.group = UNUSED, .name = "log-json-split-stream", FIELD(BOOL, "logging.options.json.splitStream"), .commands = LOGS,
	 .help = "All lines go to standard error."},
	{.group = UNUSED, .name = "log-json-info-buffer-size", FIELD(QUANTITY, "logging.options.json.infoBufferSize"), .commands = LOGS, .initial = "0",
	 .help = "Every line is written at once."},
	{.group = UNUSED, .name = "boot-id-file", STRING(boot_id_file), .commands = BOTH, .value = "files", .past = true,
	 .help = "Nothing reads it; kube-proxy had it until v1.36."},
	{.group = UNUSED, .name = "machine-id-file", STRING(machine_id_file), .commands = BOTH, .value = "files", .past = true,
	 .help = "Nothing reads it; kube-proxy had it until v1.36."},
};
/* clang-format on */

const size_t options_n_flags = ARRAY_SIZE(options_flags);
