/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a proxy counts, under kube-proxy's names, with its help texts, labels and buckets, so that
 * dashboards and alerts made for it go on working; and a few under Portolan's own name.
 *
 * Which of them exist depends on the mode. One that does not exist in the mode is counted without
 * effect, so that the caller need not know.
 */

#include "serving/metrics.h"

enum proxy_metric {
	PROXY_SYNC_DURATION = 0,     /* ip_family */
	PROXY_SYNC_FULL_DURATION,    /* ip_family */
	PROXY_SYNC_PART_DURATION,    /* ip_family */
	PROXY_LAST_SYNC,             /* ip_family */
	PROXY_LAST_QUEUED,           /* ip_family */
	PROXY_PROGRAMMING,           /* ip_family */
	PROXY_ENDPOINTS_PENDING,     /* none */
	PROXY_ENDPOINTS_TOTAL,       /* none */
	PROXY_SERVICES_PENDING,      /* none */
	PROXY_SERVICES_TOTAL,        /* none */
	PROXY_NO_LOCAL,              /* ip_family, traffic_policy */
	PROXY_HEALTHZ,               /* code */
	PROXY_LIVEZ,                 /* code */
	PROXY_RULES_TOTAL,           /* ip_family, table */
	PROXY_RULES_LAST,            /* ip_family, table */
	PROXY_RESTORE_FAILURES,      /* ip_family */
	PROXY_PARTIAL_FAILURES,      /* ip_family */
	PROXY_INVALID_DROPPED,       /* none; of a kernel that counts them */
	PROXY_LOCALHOST_ACCEPTED,    /* none; likewise */
	PROXY_FLOWS_DURATION,        /* ip_family */
	PROXY_FLOWS_DELETED,         /* ip_family */
	PROXY_NFT_FAILURES,          /* ip_family */
	PROXY_NFT_CLEANUP_FAILURES,  /* ip_family */
	PROXY_AFFINITY_FULL,         /* ip_family */
	PROXY_LOCALHOST_LISTENERS,   /* ip_family; these with the gate of NodePorts on localhost */
	PROXY_LOCALHOST_FAILURES,    /* ip_family */
	PROXY_LOCALHOST_REJECTED,    /* ip_family, protocol */
	PROXY_LOCALHOST_CONNECTIONS, /* ip_family */
	PROXY_LOCALHOST_REFUSED,     /* ip_family */
	PROXY_REPAIRS,               /* ip_family */
	PROXY_CONFLICTS,             /* ip_family, kind */
	PROXY_PROBE_FAILURES,        /* probe */
	PROXY_SYNC_HELD,             /* resource */
	PROXY_CONNTRACK_ENTRIES,     /* none */
	PROXY_CONNTRACK_MAX,         /* none */
	PROXY_CONNTRACK_INSERT_FAILED, /* none */
	PROXY_CONNTRACK_DROPPED,       /* none */
	PROXY_CONNTRACK_EARLY_DROPPED, /* none */
	PROXY_HTTP_REFUSED,            /* server */
	PROXY_LOG_DROPPED,             /* none */
	PROXY_METRIC_COUNT,
};

struct proxy_metrics {
	struct metric *v[PROXY_METRIC_COUNT]; /* NULL: not in this mode */
};

/* mode: "iptables" or "nftables"; localhost: with what is known about NodePorts on localhost in the latter. */
void proxy_metrics_register(struct proxy_metrics *proxy, struct metrics *metrics, const char *mode,
			    bool localhost);

/* Label values in the order above, as many as the metric has; "" for those that it has not. */
void proxy_metrics_set(struct proxy_metrics *proxy, enum proxy_metric id, const char *label1,
		       const char *label2, double value);
void proxy_metrics_add(struct proxy_metrics *proxy, enum proxy_metric id, const char *label1,
		       const char *label2, double value);
void proxy_metrics_observe(struct proxy_metrics *proxy, enum proxy_metric id, const char *label1,
			   double value);
/* Forgets the value, until the next one: what cannot be read is not told. */
void proxy_metrics_clear(struct proxy_metrics *proxy, enum proxy_metric id);
