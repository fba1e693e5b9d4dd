/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/announcer.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "sources/events.h"
#include "sources/source.h"

struct announcer {
	struct events *events;
	char *node_name;
	char host[HOST_NAME_MAX + 1];
};

struct announcer *announcer_new(struct api_client *client, const char *node_name)
{
	struct announcer *announcer = xcalloc(1, sizeof(*announcer));

	announcer->node_name = xstrdup(node_name);
	if (gethostname(announcer->host, sizeof(announcer->host) - 1) < 0)
		announcer->host[0] = '\0';
	announcer->events = events_new(&(struct events_config){
		.host = announcer->host,
		.steady_ns = clock_now_ns,
		.wall_ns = clock_wall_ns,
		.post = events_post,
		.arg = client,
	});
	return announcer;
}

struct announcer *announcer_free(struct announcer *announcer)
{
	if (!announcer)
		return NULL;
	events_free(announcer->events);
	free(announcer->node_name);
	free(announcer);
	return NULL;
}

/* ns "": of an object that is in none. */
static void record(struct announcer *announcer, const char *api_version, const char *kind,
		   const char *ns, const char *name, const char *reason, const char *action,
		   const char *note)
{
	if (announcer)
		events_record(announcer->events, &(struct events_item){
							 .warning = *note,
							 .reason = reason,
							 .action = action,
							 .note = note,
							 .api_version = api_version,
							 .kind = kind,
							 .ns = ns,
							 .name = name,
						 });
}

void announcer_tell_node(struct announcer *announcer, const char *reason, const char *action,
			 const char *note)
{
	if (announcer)
		record(announcer, NULL, "Node", "", announcer->node_name, reason, action, note);
}

void announcer_tell_table(struct announcer *announcer, enum table_level level, const char *note)
{
	static const char *const reasons[] = {
		[TABLE_FILLING] = "ConntrackTableFilling",
		[TABLE_NEARLY_FULL] = "ConntrackTableNearlyFull",
	};

	static_assert(ARRAY_SIZE(reasons) == TABLE_LEVEL_COUNT, "a reason for each level");
	announcer_tell_node(announcer, reasons[level], "WatchConntrack", note);
}

void announcer_tell_port(struct announcer *announcer, const char *ns, const char *name,
			 const char *reason)
{
	cleanup_free char *note =
		xasprintf("The health check port cannot be served, load balancers will avoid this "
			  "node: %s",
			  reason);

	record(announcer, NULL, "Service", ns, name, "FailedToStartServiceHealthcheck", "Listen",
	       note);
}

/* Of an object with the key "namespace/name". */
static void tell_object(struct announcer *announcer, const char *api_version, const char *kind,
			const char *key, const char *reason, const char *action, const char *note)
{
	const char *slash = strchrnul(key, '/');
	cleanup_free char *ns = xasprintf("%.*s", (int)(slash - key), key);

	if (*slash)
		record(announcer, api_version, kind, ns, slash + 1, reason, action, note);
}

static void tell_rules(struct announcer *announcer, const char *service, const char *reason,
		       const char *note)
{
	tell_object(announcer, NULL, "Service", service, reason, "SyncRules", note);
}

void announcer_tell_misread(struct announcer *announcer, const struct source_misread *misread)
{
	const char *reason = misread->refused ? "ObjectNotUnderstood" : "PartlyServed";
	const char *what = !misread->refused ? "is served without what this node cannot use"
			   : misread->served
				   ? "is not understood, this node serves its last good version"
				   : "is not understood, this node does not serve it";
	cleanup_free char *note =
		xasprintf("%s %s %s: %s", misread->kind, misread->key, what, misread->why);

	if (*misread->service)
		tell_object(announcer, NULL, "Service", misread->service, reason, "ReadObject",
			    note);
	else if (streq(misread->kind, "EndpointSlice"))
		tell_object(announcer, "discovery.k8s.io/v1", misread->kind, misread->key, reason,
			    "ReadObject", note);
	else
		announcer_tell_node(announcer, reason, "ReadObject", note);
}

static const char *const conflict_reasons[] = {
	[CONFLICT_DESTINATION] = "DestinationInUse",
	[CONFLICT_CLUSTER_IP] = "ClusterIPOfAnotherService",
	[CONFLICT_NODE_ADDRESS] = "AddressOfNode",
};

static_assert(ARRAY_SIZE(conflict_reasons) == CONFLICT_KIND_COUNT, "a reason for each kind");

static bool same_namespace(const char *a, const char *b)
{
	size_t n = strcspn(a, "/");

	return n == strcspn(b, "/") && strncmp(a, b, n) == 0;
}

/* The Service's owner, who reads it, may know the names in the Service's own namespace, and no others. */
static char *conflict_note(const struct conflict *conflict)
{
	bool known = conflict->owner && same_namespace(conflict->owner, conflict->service);
	cleanup_free char *owner =
		known ? xasprintf("Service %s", conflict->owner) : xstrdup("another Service");

	switch (conflict->kind) {
	case CONFLICT_CLUSTER_IP:
		return xasprintf("%s is the cluster IP of %s, which keeps its ports",
				 conflict->destination, owner);
	case CONFLICT_NODE_ADDRESS:
		return xasprintf("%s is an address of a node: what listens there on the same port "
				 "cannot be reached by it",
				 conflict->destination);
	default:
		return xasprintf("%s belongs to %s, which goes first", conflict->destination,
				 owner);
	}
}

void announcer_tell_conflict(struct announcer *announcer, const struct conflict *conflict)
{
	cleanup_free char *note = conflict_note(conflict);

	tell_rules(announcer, conflict->service, conflict_reasons[conflict->kind], note);
}

void announcer_tell_refusal(struct announcer *announcer, const struct backend_refusal *refusal)
{
	cleanup_free char *note =
		xasprintf("the kernel refuses %s, which %s on this node: %s", refusal->port,
			  refusal->kept ? "stays as it was" : "is not served", refusal->reason);

	tell_rules(announcer, refusal->service, "RulesRefused", note);
}

void announcer_tell_clients_full(struct announcer *announcer, const struct backend_full *full)
{
	cleanup_free char *note = xasprintf(
		"%s has session affinity and more clients than the %u that this node remembers: "
		"new ones get any endpoint",
		full->port, full->clients);

	tell_rules(announcer, full->service, "AffinityFull", note);
}
