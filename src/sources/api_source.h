/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An API server as a source: the Services that are a proxy's, their EndpointSlices, this node's own
 * Node, and if the sink takes them ServiceCIDRs, each followed by a watch (see api_watch.h) on
 * one connection.
 *
 *   - "synced" comes when Services and EndpointSlices have been delivered and it is known whether
 *     there is a Node. One that may not be read does not hold up the rest, and one that cannot be
 *     read (while the others can) does so for 30 s. Both are asked for again, so there is hope.
 *   - ServiceCIDRs hold up the rest until the first answer about them, whatever it is: a server may
 *     not have them, or not let us read them, and one that is silent has as long as for the Node.
 *   - Whatever goes wrong afterwards changes nothing in the sink. Each kind of failure is reported
 *     once, and once that it is over.
 *   - A list that would remove too many Services, or the endpoints of too many, is held back.
 *   - An object that cannot be understood is reported by name; its last good version stays.
 */

#include "sources/api_client.h"
#include "sources/source.h"

struct api_source;

/* How long the Node may hold up the rest, as long as kube-proxy waits for it. */
#define API_SOURCE_NODE_GRACE_MS 30000 /* and ServiceCIDRs */

struct api_source_config {
	struct credentials_config credentials; /* where the server is; `report` is ours to set */
	const char *node_name;
	/* one line each, without a full stop */
	void (*report)(void *arg, enum log_severity severity, const char *text);
	/* What tenants can make us say, which must not keep the rest from being heard. NULL: report() */
	void (*report_object)(void *arg, enum log_severity severity, const char *text);
	/* After a report about it; may be NULL. */
	void (*misread)(void *arg, const struct source_misread *misread);
	/* Likewise: a list is held back, or not any more; and whenever the number changes. */
	void (*held)(void *arg, const struct source_held *held);
	void *report_arg;           /* of all four */
	unsigned int guard_percent; /* see sync_guard.h; 0: every list counts */
	api_http_seen_fn *seen;     /* is told of each request; may be NULL */
	void *seen_arg;
	/* for tests; NULL: the machine's own, 0: API_SOURCE_NODE_GRACE_MS */
	uint32_t (*random)(void);
	int64_t node_grace_ms;
};

/*
 * Fails when the credentials cannot be read; all else is tried again for ever. Nothing is reported
 * to the sink before the loop runs. sink is copied. The sink must not free the source.
 */
int api_source_start(struct event_base *loop, const struct api_source_config *config,
		     const struct source_sink *sink, struct api_source **ret, struct err *err);
struct api_source *api_source_free(struct api_source *source); /* accepts NULL, returns NULL */
/* What is held back goes now. False: nothing was. */
bool api_source_release(struct api_source *source);
struct api_client *api_source_client(struct api_source *source); /* for other requests */
