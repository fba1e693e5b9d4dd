/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/proxy_metrics.h"

#include <assert.h>

static const double sync_buckets[] = {
	0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064,  0.128,
	0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
};

/* 0, which kube-proxy has too, 0.25 s and 0.5 s; by seconds to a minute, by 5 s to two, by 30 s to five */
static const double programming_buckets[] = {
	0,  0.25, 0.5, 1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11, 12, 13, 14,
	15, 16,   17,  18,  19,  20,  21,  22,  23,  24,  25,  26,  27,  28, 29, 30, 31,
	32, 33,   34,  35,  36,  37,  38,  39,  40,  41,  42,  43,  44,  45, 46, 47, 48,
	49, 50,   51,  52,  53,  54,  55,  56,  57,  58,  59,  60,  65,  70, 75, 80, 85,
	90, 95,   100, 105, 110, 115, 120, 150, 180, 210, 240, 270, 300,
};

enum where {
	EVERYWHERE = 0,
	IN_IPTABLES,
	IN_NFTABLES,
	ON_LOCALHOST, /* in nftables mode too, if asked for */
};

#define COUNTER(n, h) .kind = METRIC_COUNTER, .name = (n), .help = (h)
#define GAUGE(n, h)   .kind = METRIC_GAUGE, .name = (n), .help = (h)
#define TIMES(n, h, b)                                                      \
	.kind = METRIC_HISTOGRAM, .name = (n), .help = (h), .buckets = (b), \
	.n_buckets = ARRAY_SIZE(b)

/* Labels in the order of their names, which is that of printing. */
static const struct {
	enum where where;
	struct metric_desc desc;
} table[] = {
	[PROXY_SYNC_DURATION] = {EVERYWHERE,
				 {TIMES("kubeproxy_sync_proxy_rules_duration_seconds",
					"[ALPHA] SyncProxyRules latency in seconds", sync_buckets),
				  .labels = {"ip_family"}}},
	[PROXY_SYNC_FULL_DURATION] =
		{EVERYWHERE,
		 {TIMES("kubeproxy_sync_full_proxy_rules_duration_seconds",
			"[ALPHA] SyncProxyRules latency in seconds for full resyncs", sync_buckets),
		  .labels = {"ip_family"}}},
	[PROXY_SYNC_PART_DURATION] =
		{EVERYWHERE,
		 {TIMES("kubeproxy_sync_partial_proxy_rules_duration_seconds",
			"[ALPHA] SyncProxyRules latency in seconds for partial resyncs",
			sync_buckets),
		  .labels = {"ip_family"}}},
	[PROXY_LAST_SYNC] = {EVERYWHERE,
			     {GAUGE("kubeproxy_sync_proxy_rules_last_timestamp_seconds",
				    "[ALPHA] The last time proxy rules were successfully synced"),
			      .labels = {"ip_family"}}},
	[PROXY_LAST_QUEUED] = {EVERYWHERE,
			       {GAUGE("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
				      "[ALPHA] The last time a sync of proxy rules was queued"),
				.labels = {"ip_family"}}},
	[PROXY_PROGRAMMING] = {EVERYWHERE,
			       {TIMES("kubeproxy_network_programming_duration_seconds",
				      "[ALPHA] In Cluster Network Programming Latency in seconds",
				      programming_buckets),
				.labels = {"ip_family"}}},
	[PROXY_ENDPOINTS_PENDING] = {EVERYWHERE,
				     {GAUGE("kubeproxy_sync_proxy_rules_endpoint_changes_pending",
					    "[ALPHA] Pending proxy rules Endpoint changes")}},
	[PROXY_ENDPOINTS_TOTAL] = {EVERYWHERE,
				   {COUNTER("kubeproxy_sync_proxy_rules_endpoint_changes_total",
					    "[ALPHA] Cumulative proxy rules Endpoint changes")}},
	[PROXY_SERVICES_PENDING] = {EVERYWHERE,
				    {GAUGE("kubeproxy_sync_proxy_rules_service_changes_pending",
					   "[ALPHA] Pending proxy rules Service changes")}},
	[PROXY_SERVICES_TOTAL] = {EVERYWHERE,
				  {COUNTER("kubeproxy_sync_proxy_rules_service_changes_total",
					   "[ALPHA] Cumulative proxy rules Service changes")}},
	[PROXY_NO_LOCAL] =
		{EVERYWHERE,
		 {GAUGE("kubeproxy_sync_proxy_rules_no_local_endpoints_total",
			"[ALPHA] Number of services with a Local traffic policy and no endpoints"),
		  .labels = {"ip_family", "traffic_policy"}}},
	[PROXY_HEALTHZ] = {EVERYWHERE,
			   {COUNTER("kubeproxy_proxy_healthz_total",
				    "[ALPHA] Cumulative proxy healthz HTTP status"),
			    .labels = {"code"}}},
	[PROXY_LIVEZ] = {EVERYWHERE,
			 {COUNTER("kubeproxy_proxy_livez_total",
				  "[ALPHA] Cumulative proxy livez HTTP status"),
			  .labels = {"code"}}},
	[PROXY_RULES_TOTAL] = {IN_IPTABLES,
			       {GAUGE("kubeproxy_sync_proxy_rules_iptables_total",
				      "[ALPHA] Total number of iptables rules owned by kube-proxy"),
				.labels = {"ip_family", "table"}}},
	[PROXY_RULES_LAST] =
		{IN_IPTABLES,
		 {GAUGE("kubeproxy_sync_proxy_rules_iptables_last",
			"[ALPHA] Number of iptables rules written by kube-proxy in last sync"),
		  .labels = {"ip_family", "table"}}},
	[PROXY_RESTORE_FAILURES] =
		{IN_IPTABLES,
		 {COUNTER("kubeproxy_sync_proxy_rules_iptables_restore_failures_total",
			  "[ALPHA] Cumulative proxy iptables restore failures"),
		  .labels = {"ip_family"}}},
	[PROXY_PARTIAL_FAILURES] =
		{IN_IPTABLES,
		 {COUNTER("kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total",
			  "[ALPHA] Cumulative proxy iptables partial restore failures"),
		  .labels = {"ip_family"}}},
	[PROXY_INVALID_DROPPED] =
		{IN_IPTABLES,
		 {COUNTER(
			 "kubeproxy_iptables_ct_state_invalid_dropped_packets_total",
			 "[ALPHA] packets dropped by iptables to work around conntrack problems")}},
	[PROXY_LOCALHOST_ACCEPTED] =
		{IN_IPTABLES,
		 {COUNTER(
			 "kubeproxy_iptables_localhost_nodeports_accepted_packets_total",
			 "[ALPHA] Number of packets accepted on nodeports of loopback interface")}},
	[PROXY_FLOWS_DURATION] =
		{EVERYWHERE,
		 {TIMES("kubeproxy_conntrack_reconciler_sync_duration_seconds",
			"[ALPHA] ReconcileConntrackFlowsLatency latency in seconds", sync_buckets),
		  .labels = {"ip_family"}}},
	[PROXY_FLOWS_DELETED] =
		{EVERYWHERE,
		 {COUNTER("kubeproxy_conntrack_reconciler_deleted_entries_total",
			  "[ALPHA] Cumulative conntrack flows deleted by conntrack reconciler"),
		  .labels = {"ip_family"}}},
	[PROXY_NFT_FAILURES] = {IN_NFTABLES,
				{COUNTER("kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
					 "[ALPHA] Cumulative proxy nftables sync failures"),
				 .labels = {"ip_family"}}},
	[PROXY_NFT_CLEANUP_FAILURES] =
		{IN_NFTABLES,
		 {COUNTER("kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total",
			  "[ALPHA] Cumulative proxy nftables cleanup failures"),
		  .labels = {"ip_family"}}},
	[PROXY_AFFINITY_FULL] =
		{IN_NFTABLES,
		 {GAUGE("portolan_affinity_full_service_ports",
			"Service ports with ClientIP affinity that had no room to remember a new "
			"client in the last minute."),
		  .labels = {"ip_family"}}},
	[PROXY_LOCALHOST_LISTENERS] =
		{ON_LOCALHOST,
		 {GAUGE("kubeproxy_nftables_localhost_nodeport_listeners",
			"[ALPHA] Number of active localhost NodePort userspace proxy listeners."),
		  .labels = {"ip_family"}}},
	[PROXY_LOCALHOST_FAILURES] =
		{ON_LOCALHOST,
		 {COUNTER("kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total",
			  "[ALPHA] Number of localhost NodePort userspace proxy listener creation "
			  "failures."),
		  .labels = {"ip_family"}}},
	[PROXY_LOCALHOST_REJECTED] =
		{ON_LOCALHOST,
		 {COUNTER("kubeproxy_nftables_localhost_nodeport_rejected_packets_total",
			  "[ALPHA] Number of packets rejected on localhost NodePorts. UDP and SCTP "
			  "are always rejected; TCP is rejected when the localhost NodePort proxy "
			  "is not running"),
		  .labels = {"ip_family", "protocol"}}},
	[PROXY_LOCALHOST_CONNECTIONS] =
		{ON_LOCALHOST,
		 {GAUGE("portolan_localhost_nodeport_connections",
			"Connections to NodePorts on localhost that are open."),
		  .labels = {"ip_family"}}},
	[PROXY_LOCALHOST_REFUSED] =
		{ON_LOCALHOST,
		 {COUNTER("portolan_localhost_nodeport_connections_refused_total",
			  "Connections to NodePorts on localhost that were reset because there "
			  "were "
			  "too many."),
		  .labels = {"ip_family"}}},
	[PROXY_REPAIRS] = {EVERYWHERE,
			   {COUNTER("portolan_repairs_total",
				    "Times that rules which another program had removed or changed "
				    "were put back."),
			    .labels = {"ip_family"}}},
	[PROXY_CONFLICTS] =
		{EVERYWHERE,
		 {GAUGE("portolan_address_conflicts",
			"Addresses, or addresses with a port, that a Service asks for and that are "
			"another Service's or this node's."),
		  .labels = {"ip_family", "kind"}}},
	[PROXY_PROBE_FAILURES] = {EVERYWHERE,
				  {COUNTER("portolan_healthz_probe_failures_total",
					   "Times that a look behind --healthz-probe found "
					   "something wrong, by what was looked at."),
				   .labels = {"probe"}}},
	[PROXY_SYNC_HELD] = {EVERYWHERE,
			     {GAUGE("portolan_sync_held_objects",
				    "Objects that a list of the API server lacks and --sync-guard "
				    "holds back."),
			      .labels = {"resource"}}},
	[PROXY_CONNTRACK_ENTRIES] = {EVERYWHERE,
				     {GAUGE("portolan_conntrack_entries",
					    "Connections that the kernel tracks.")}},
	[PROXY_CONNTRACK_MAX] =
		{EVERYWHERE,
		 {GAUGE("portolan_conntrack_max_entries",
			"Connections that the kernel can track: nf_conntrack_max.")}},
	[PROXY_CONNTRACK_INSERT_FAILED] =
		{EVERYWHERE,
		 {COUNTER("portolan_conntrack_insert_failed_total",
			  "Connections that could not be entered because another had the place.")}},
	[PROXY_CONNTRACK_DROPPED] =
		{EVERYWHERE,
		 {COUNTER("portolan_conntrack_dropped_total",
			  "Packets dropped because no connection could be tracked for them.")}},
	[PROXY_CONNTRACK_EARLY_DROPPED] =
		{EVERYWHERE,
		 {COUNTER("portolan_conntrack_early_dropped_total",
			  "Connections forgotten to make room for new ones.")}},
	[PROXY_HTTP_REFUSED] = {EVERYWHERE,
				{COUNTER("portolan_http_connections_refused_total",
					 "Connections to Portolan's own servers that were closed "
					 "because there were "
					 "too many, by the kind of server."),
				 .labels = {"server"}}},
	[PROXY_LOG_DROPPED] = {EVERYWHERE,
			       {COUNTER("portolan_log_lines_dropped_total",
					"Lines of the log that were lost because its reader did "
					"not keep up.")}},
};
static_assert(ARRAY_SIZE(table) == PROXY_METRIC_COUNT, "a description for each metric");

void proxy_metrics_register(struct proxy_metrics *proxy, struct metrics *metrics, const char *mode,
			    bool localhost)
{
	enum where here = streq(mode, "iptables") ? IN_IPTABLES : IN_NFTABLES;

	*proxy = (struct proxy_metrics){0};
	for (enum proxy_metric id = 0; id < PROXY_METRIC_COUNT; id++)
		if (table[id].where == EVERYWHERE || table[id].where == here ||
		    (table[id].where == ON_LOCALHOST && here == IN_NFTABLES && localhost))
			proxy->v[id] = metrics_add(metrics, &table[id].desc);
}

/* NULL when the mode has no such metric. */
static struct series *find(struct proxy_metrics *proxy, enum proxy_metric id, const char *label1,
			   const char *label2)
{
	const char *const values[] = {label1, label2};

	return proxy->v[id] ? metric_series(proxy->v[id], values) : NULL;
}

void proxy_metrics_set(struct proxy_metrics *proxy, enum proxy_metric id, const char *label1,
		       const char *label2, double value)
{
	struct series *series = find(proxy, id, label1, label2);

	if (series)
		series_set(series, value);
}

void proxy_metrics_add(struct proxy_metrics *proxy, enum proxy_metric id, const char *label1,
		       const char *label2, double value)
{
	struct series *series = find(proxy, id, label1, label2);

	if (series)
		series_add(series, value);
}

void proxy_metrics_observe(struct proxy_metrics *proxy, enum proxy_metric id, const char *label1,
			   double value)
{
	struct series *series = find(proxy, id, label1, "");

	if (series)
		series_observe(series, value);
}

void proxy_metrics_clear(struct proxy_metrics *proxy, enum proxy_metric id)
{
	if (proxy->v[id])
		metric_clear(proxy->v[id]);
}
