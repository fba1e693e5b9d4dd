/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/announcer.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "sources/events.h"

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

void announcer_tell_node(struct announcer *announcer, const char *reason, const char *action,
			 const char *note)
{
	if (!announcer)
		return;
	events_record(announcer->events, &(struct events_item){
						 .warning = *note,
						 .reason = reason,
						 .action = action,
						 .note = note,
						 .kind = "Node",
						 .ns = "",
						 .name = announcer->node_name,
					 });
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

static void tell_service(struct announcer *announcer, const char *ns, const char *name,
			 const char *reason, const char *action, const char *note)
{
	if (!announcer)
		return;
	events_record(announcer->events, &(struct events_item){
						 .warning = true,
						 .reason = reason,
						 .action = action,
						 .note = note,
						 .kind = "Service",
						 .ns = ns,
						 .name = name,
					 });
}

void announcer_tell_port(struct announcer *announcer, const char *ns, const char *name,
			 const char *reason)
{
	cleanup_free char *note =
		xasprintf("The health check port cannot be served, load balancers will avoid this "
			  "node: %s",
			  reason);

	tell_service(announcer, ns, name, "FailedToStartServiceHealthcheck", "Listen", note);
}

static void tell_rules(struct announcer *announcer, const char *service, const char *reason,
		       const char *note)
{
	const char *slash = strchr(service, '/');
	cleanup_free char *ns = NULL;

	if (!slash)
		return;
	ns = xasprintf("%.*s", (int)(slash - service), service);
	tell_service(announcer, ns, slash + 1, reason, "SyncRules", note);
}

void announcer_tell_conflict(struct announcer *announcer, const struct backend_conflict *conflict)
{
	cleanup_free char *note = xasprintf("%s belongs to the older Service %s",
					    conflict->destination, conflict->owner);

	tell_rules(announcer, conflict->service, "DestinationInUse", note);
}

void announcer_tell_refusal(struct announcer *announcer, const struct backend_refusal *refusal)
{
	cleanup_free char *note =
		xasprintf("the kernel refuses %s, which is not served on this node: %s",
			  refusal->port, refusal->reason);

	tell_rules(announcer, refusal->service, "RulesRefused", note);
}
