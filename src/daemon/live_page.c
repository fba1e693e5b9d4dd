/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/live_page.h"

#include <stdlib.h>

#include "config/config.h"
#include "config/program.h"
#include "conntrack/service_traffic.h"
#include "conntrack/traffic_meter.h"
#include "daemon/family_set.h"
#include "daemon/telemetry.h"
#include "kernel/conntrack.h"
#include "kernel/interfaces.h"
#include "kernel/nfnetlink.h"
#include "page/status_page.h"

struct live_page {
	struct live_page_config config;
	struct status_source source;
	struct status_page *page;
	struct nfnetlink_conn line;
	const struct family_set *families; /* NULL: not yet */
	struct traffic_meter *meter;       /* NULL: not yet, or there is none */
};

/* -- what it reads */

static const struct settings *settings_of(void *arg, enum family family)
{
	const struct live_page *live = arg;

	return family_set_settings(live->families, family);
}

static int addresses_of(void *arg attr_unused, enum family family, struct addr **ret, size_t *ret_n,
			struct err *err)
{
	return interfaces_addresses(family, ret, ret_n, err);
}

static void read_gauges(void *arg, struct status_gauges *ret)
{
	struct live_page *live = arg;
	struct conntrack_stats stats;
	struct err ignored;

	*ret = (struct status_gauges){0};
	ret->healthy = telemetry_healthy(live->config.telemetry, &ret->reason);
	ret->degraded = telemetry_degraded(live->config.telemetry);
	if (conntrack_stats(&live->line, &stats, &ignored) < 0)
		return;
	ret->conntrack = stats.entries;
	ret->conntrack_max = stats.max;
}

struct teller {
	status_traffic_fn *each;
	void *arg;
};

static void tell_port(void *arg, const struct service_traffic_port *port)
{
	const struct teller *teller = arg;

	teller->each(teller->arg, port->ns, port->service, port->port, port->totals.connections);
}

static void read_traffic(void *arg, status_traffic_fn *each, void *each_arg)
{
	const struct live_page *live = arg;
	struct teller teller = {each, each_arg};

	if (live->meter)
		traffic_meter_each(live->meter, tell_port, &teller);
}

void live_page_set_families(struct live_page *live, const struct family_set *families)
{
	if (live)
		live->families = families;
}

void live_page_set_meter(struct live_page *live, struct traffic_meter *meter)
{
	if (live)
		live->meter = meter;
}

/* -- what it is told */

static struct status_feed *feed_of(const struct live_page *live)
{
	return status_page_feed(live->page);
}

void live_page_synced(struct live_page *live, enum family family,
		      const struct backend_result *result)
{
	if (live)
		status_feed_synced(feed_of(live), family, result);
}

static void tell_repair(const struct live_page *live, const char *words, enum family family)
{
	cleanup_free char *text = xasprintf("%s (%s)", words, family_name(family));

	status_feed_repaired(feed_of(live), text);
}

void live_page_flushed(struct live_page *live, enum family family)
{
	if (live)
		tell_repair(live, "Rules were changed by another program, and written again",
			    family);
}

void live_page_repaired(struct live_page *live, enum family family)
{
	if (live)
		tell_repair(live, "Rules were changed by another program, and repaired", family);
}

void live_page_conflict(struct live_page *live, const struct conflict *conflict)
{
	cleanup_free char *text =
		xasprintf("Service %s asks for %s, which belongs to %s%s", conflict->service,
			  conflict->destination, conflict->owner ? "Service " : "this node",
			  conflict->owner ? conflict->owner : "");

	if (live)
		status_feed_trouble(feed_of(live), text);
}

void live_page_refused(struct live_page *live, const struct backend_refusal *refusal)
{
	cleanup_free char *text =
		xasprintf("The kernel refuses %s, which %s: %s", refusal->port,
			  refusal->kept ? "stays as it was" : "is not served", refusal->reason);

	if (live)
		status_feed_trouble(feed_of(live), text);
}

void live_page_clients_full(struct live_page *live, const struct backend_full *full)
{
	cleanup_free char *text =
		xasprintf("%s has affinity and more clients than the %u that are remembered",
			  full->port, full->clients);

	if (live)
		status_feed_trouble(feed_of(live), text);
}

void live_page_reported(struct live_page *live, enum log_severity severity, const char *text)
{
	if (live && severity != LOG_SEVERITY_INFO)
		status_feed_trouble(feed_of(live), text);
}

/* -- begin and end */

struct live_page *live_page_new(const struct live_page_config *config)
{
	struct live_page *live = xcalloc(1, sizeof(*live));

	live->config = *config;
	live->source = (struct status_source){
		.model = config->model,
		.backend = config->config->backend,
		.node_name = config->config->node_name,
		.version = PORTOLAN_VERSION,
		.kubernetes = KUBERNETES_VERSION,
		.metered = config->metered,
		.settings = settings_of,
		.addresses = addresses_of,
		.gauges = read_gauges,
		.traffic = read_traffic,
		.arg = live,
	};
	live->page = status_page_new(config->loop, &live->source);
	return live;
}

struct live_page *live_page_free(struct live_page *live)
{
	if (!live)
		return NULL;
	status_page_free(live->page);
	nfnetlink_conn_done(&live->line);
	free(live);
	return NULL;
}

struct status_page *live_page_status(const struct live_page *live)
{
	return live ? live->page : NULL;
}
