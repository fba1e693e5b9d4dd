/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All that the status page reads of the running program. Nothing here changes anything: the model is const, and
 * what is planned for a question is planned in an excerpt of it (model_excerpt()).
 */

#include "base/err.h"
#include "inspect/explain.h"

/* Numbers of this moment. */
struct status_gauges {
	bool healthy;
	char *reason;       /* why not; NULL: it is, or that is not known. The reader's to free */
	char *degraded;     /* what else is wrong; likewise */
	uint64_t conntrack; /* entries of the table */
	uint64_t conntrack_max; /* 0: the table cannot be read */
};

/* Connections to a service port since the daemon began to count. */
typedef void status_traffic_fn(void *arg, const char *ns, const char *service, const char *port,
			       uint64_t connections);

/* Every function is there. All is borrowed and outlives the page. */
struct status_source {
	const struct model *model;
	const struct backend_ops *backend; /* the mode */
	const char *node_name;
	const char *version;    /* of Portolan */
	const char *kubernetes; /* whose kube-proxy it takes the place of */
	bool metered;           /* traffic() has something to tell */

	/* What the rules of a family are made with; NULL: it is not proxied, or not yet. */
	const struct settings *(*settings)(void *arg, enum family family);
	/* The addresses of this node's interfaces, for the caller to free. */
	int (*addresses)(void *arg, enum family family, struct addr **ret, size_t *ret_n,
			 struct err *err);
	void (*gauges)(void *arg, struct status_gauges *ret);
	void (*traffic)(void *arg, status_traffic_fn *each, void *each_arg);
	void *arg;
};
