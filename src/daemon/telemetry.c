/* SPDX-License-Identifier: Apache-2.0 */

/*
 * After a good sync its services are looked at: their health check ports and their flows. Those of a
 * failed sync are not lost, but not remembered one by one either: the next good one looks at all.
 */

#include "daemon/telemetry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/gates.h"
#include "config/program.h"
#include "conntrack/stale_flows.h"
#include "daemon/live_page.h"
#include "daemon/sync_held.h"
#include "kernel/conntrack.h"
#include "kernel/interfaces.h"
#include "kernel/nfacct.h"
#include "kernel/nfnetlink.h"
#include "serving/client_metrics.h"
#include "serving/connection_budget.h"
#include "serving/process_metrics.h"
#include "serving/proxy_health.h"
#include "serving/proxy_metrics.h"
#include "serving/service_health.h"
#include "sources/api_http.h"
#include "xtables/chains.h"

#define HEALTH_PERIODS 2 /* a sync that is this many sync periods late is a bad sign */
#define CODE_TEXT_MAX  12

/* Answers that are on their way are let through before their flows are forgotten: a reply without its flow would reach no client.
 * Changes that come meanwhile put it off, up to the second. */
#define FLOWS_GRACE_NS     (100 * CLOCK_NS_PER_MS)
#define FLOWS_GRACE_MAX_NS (1000 * CLOCK_NS_PER_MS)

struct family_telemetry {
	struct telemetry *telemetry;
	enum family family;
	bool on;
	bool all_doubtful; /* the next good sync is about all services */
	struct service_health *ports;
	struct stale_flows *flows;
	struct event *flows_timer;
	int64_t flows_since_ns; /* that some wait to be forgotten; 0: none do */
	char *flows_failure;    /* what was logged last; NULL: nothing */
};

struct telemetry {
	struct telemetry_config config;
	struct family_sync_observer observer;
	struct metrics *metrics;
	struct proxy_metrics proxy;
	struct process_metrics process;
	struct client_metrics client;
	struct nfnetlink_conn line; /* for whatever is asked of netfilter */
	bool nfacct;
	struct proxy_health health;
	struct sync_held held;
	struct readiness *readiness;
	struct live_page *page; /* is told what happens; NULL: there is none */
	bool waiting;           /* for another instance to end */
	struct family_telemetry families[FAMILY_COUNT];
};

static struct health_time now(void)
{
	return (struct health_time){.steady_ns = clock_now_ns(), .wall_ns = clock_wall_ns()};
}

static double seconds(int64_t ns)
{
	return (double)ns / (double)CLOCK_NS_PER_SECOND;
}

/* -- health check ports */

static bool proxy_is_good(void *arg)
{
	const struct telemetry *telemetry = arg;
	struct health_time time = now();

	return proxy_health_is_good(&telemetry->health, &time);
}

static void on_port_failed(void *arg, const char *ns, const char *name, uint16_t port attr_unused,
			   const struct err *err)
{
	const struct telemetry *telemetry = arg;

	telemetry->config.port_failed(telemetry->config.arg, ns, name, err);
}

static void check_service(struct telemetry *telemetry, enum family family, const char *key)
{
	const struct model *model = telemetry->config.model;
	const struct service *service = model_service(model, key);
	const char *slash = strchr(key, '/');
	cleanup_free char *ns = xasprintf("%.*s", (int)(slash - key), key);
	uint16_t port = service_in_family(service, family) ? service->health_check_node_port : 0;

	service_health_set(telemetry->families[family].ports, ns, slash + 1, port,
			   port ? model_local_ready_addresses(model, family, key) : 0);
}

/* -- after a good sync */

static void forget_flows(struct family_telemetry *f)
{
	struct telemetry *telemetry = f->telemetry;
	const char *label = family_name(f->family);
	int64_t begun = clock_now_ns();
	struct err err;
	int r;

	f->flows_since_ns = 0;
	r = stale_flows_delete(f->flows, &telemetry->line, &err);
	proxy_metrics_observe(&telemetry->proxy, PROXY_FLOWS_DURATION, label,
			      seconds(clock_now_ns() - begun));
	if (r >= 0) {
		free(take(f->flows_failure));
		proxy_metrics_add(&telemetry->proxy, PROXY_FLOWS_DELETED, label, "", r);
		if (r > 0)
			log_debug(2, "Forgot connections that led nowhere",
				  KV("ipFamily", LOG_STR(label)), KV("flows", LOG_INT(r)));
		return;
	}
	if (f->flows_failure && streq(f->flows_failure, err.text))
		return;
	log_error("Stale connections cannot be forgotten, some traffic may be lost",
		  KV("ipFamily", LOG_STR(label)), KV("err", LOG_STR(err.text)));
	free(f->flows_failure);
	f->flows_failure = xstrdup(err.text);
}

static void on_grace_over(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	forget_flows(arg);
}

static const struct service *planned_service(const void *arg, const char *key)
{
	return plan_store_service(arg, key);
}

static const struct service *planned_owner(const void *arg, enum protocol protocol,
					   const struct addr *addr, uint16_t port)
{
	return plan_store_owner(arg, &(struct destination){
					     .node_port = !addr,
					     .protocol = protocol,
					     .port = port,
					     .addr = addr ? *addr : (struct addr){0},
				     });
}

static void clean_flows(struct family_telemetry *f, const struct plan_store *plans,
			const char *const *services, size_t n_services)
{
	const struct stale_flows_rules rules = {
		.model = f->telemetry->config.model,
		.service = planned_service,
		.owner = planned_owner,
		.arg = plans,
	};
	int64_t now_ns = clock_now_ns();

	if (!stale_flows_prepare(f->flows, &rules, services, n_services))
		return;
	stale_flows_defer(f->flows);
	if (!f->flows_since_ns)
		f->flows_since_ns = now_ns;
	loop_arm(f->flows_timer,
		 MIN(FLOWS_GRACE_NS, f->flows_since_ns + FLOWS_GRACE_MAX_NS - now_ns));
}

static void look_at(struct telemetry *telemetry, enum family family, const struct plan_store *plans,
		    const char *const *services, size_t n_services)
{
	struct family_telemetry *f = &telemetry->families[family];

	if (!f->on)
		return;
	for (size_t i = 0; i < n_services; i++)
		check_service(telemetry, family, services[i]);
	service_health_open(f->ports);
	if (n_services > 0)
		clean_flows(f, plans, services, n_services);
}

static void add_key(const char ***keys, size_t *capacity, size_t *n, const char *key)
{
	array_grow(keys, capacity, *n, sizeof(**keys));
	(*keys)[(*n)++] = key;
}

static void close_ports_of_the_gone(struct telemetry *telemetry, enum family family)
{
	const struct family_telemetry *f = &telemetry->families[family];
	const char *key;
	size_t at = 0;

	while (f->on && (key = service_health_next(f->ports, &at))) {
		cleanup_free char *copy = xstrdup(key);

		if (!model_service(telemetry->config.model, copy))
			check_service(telemetry, family, copy);
	}
}

/* Those of the model, and those that are gone from it but not from here. */
static void look_at_all(struct telemetry *telemetry, enum family family,
			const struct plan_store *plans)
{
	struct family_telemetry *f = &telemetry->families[family];
	cleanup_free const char **keys = NULL;
	const struct service *service;
	size_t capacity = 0;
	size_t n = 0;
	size_t at = 0;
	const char *key;

	while ((service = model_next_service(telemetry->config.model, &at)))
		add_key(&keys, &capacity, &n, service->key);
	for (at = 0; f->on && (key = stale_flows_next(f->flows, &at));)
		if (!model_service(telemetry->config.model, key))
			add_key(&keys, &capacity, &n, key);
	close_ports_of_the_gone(telemetry, family);
	look_at(telemetry, family, plans, keys, n);
}

static void after_success(struct telemetry *telemetry, enum family family,
			  const struct backend_result *result)
{
	struct family_telemetry *f = &telemetry->families[family];

	if (f->all_doubtful || !result->changes)
		look_at_all(telemetry, family, result->plans);
	else
		look_at(telemetry, family, result->plans, result->changes->services,
			result->changes->n_services);
	f->all_doubtful = false;
}

/* -- what family_syncs tell */

static void on_queued(void *arg, enum family family)
{
	struct telemetry *telemetry = arg;
	struct health_time time = now();

	proxy_health_queued(&telemetry->health, family, &time);
	proxy_metrics_set(&telemetry->proxy, PROXY_LAST_QUEUED, family_name(family), "",
			  seconds(time.wall_ns));
}

static void on_started(void *arg, enum family family)
{
	struct telemetry *telemetry = arg;
	struct health_time time = now();

	proxy_health_updated(&telemetry->health, family, &time);
	proxy_metrics_set(&telemetry->proxy, PROXY_LAST_QUEUED, family_name(family), "",
			  seconds(time.wall_ns));
}

static void count_attempt(struct telemetry *telemetry, const char *label,
			  const struct backend_result *result)
{
	struct proxy_metrics *proxy = &telemetry->proxy;
	double took = seconds(result->duration_ns);

	proxy_metrics_observe(proxy, PROXY_SYNC_DURATION, label, took);
	proxy_metrics_observe(proxy,
			      result->full ? PROXY_SYNC_FULL_DURATION : PROXY_SYNC_PART_DURATION,
			      label, took);
	if (result->cleanup_failures > 0)
		proxy_metrics_add(proxy, PROXY_NFT_CLEANUP_FAILURES, label, "",
				  (double)result->cleanup_failures);
}

static void count_failure(struct telemetry *telemetry, const char *label,
			  const struct backend_result *result)
{
	struct proxy_metrics *proxy = &telemetry->proxy;

	proxy_metrics_add(proxy, PROXY_NFT_FAILURES, label, "", 1);
	if (result->write_failed)
		proxy_metrics_add(proxy, PROXY_RESTORE_FAILURES, label, "", 1);
	if (!result->full)
		proxy_metrics_add(proxy, PROXY_PARTIAL_FAILURES, label, "", 1);
}

static void count_success(struct telemetry *telemetry, const char *label,
			  const struct backend_result *result, int64_t wall_ns)
{
	static const char *const tables[] = {[BACKEND_FILTER] = "filter", [BACKEND_NAT] = "nat"};
	struct proxy_metrics *proxy = &telemetry->proxy;
	const struct model_changes *changes = result->changes;

	static_assert(ARRAY_SIZE(tables) == BACKEND_TABLE_COUNT, "a word for each table");
	for (enum backend_table table = 0; table < BACKEND_TABLE_COUNT; table++) {
		proxy_metrics_set(proxy, PROXY_RULES_TOTAL, label, tables[table],
				  (double)result->rules_total[table]);
		proxy_metrics_set(proxy, PROXY_RULES_LAST, label, tables[table],
				  (double)result->rules_last[table]);
	}
	proxy_metrics_set(proxy, PROXY_NO_LOCAL, label, "internal",
			  (double)result->no_local_internal);
	proxy_metrics_set(proxy, PROXY_NO_LOCAL, label, "external",
			  (double)result->no_local_external);
	for (enum conflict_kind kind = 0; kind < CONFLICT_KIND_COUNT; kind++)
		proxy_metrics_set(proxy, PROXY_CONFLICTS, label, conflict_kind_name(kind),
				  (double)result->conflicts[kind]);
	proxy_metrics_set(proxy, PROXY_LAST_SYNC, label, "", seconds(wall_ns));
	for (size_t i = 0; changes && i < changes->n_triggers; i++)
		proxy_metrics_observe(proxy, PROXY_PROGRAMMING, label,
				      seconds(wall_ns - changes->triggers[i].time_ns));
}

static void take_success(struct telemetry *telemetry, enum family family,
			 const struct backend_result *result)
{
	struct health_time time = now();

	proxy_health_updated(&telemetry->health, family, &time);
	readiness_synced(telemetry->readiness, family);
	count_success(telemetry, family_name(family), result, time.wall_ns);
	after_success(telemetry, family, result);
}

static void on_synced(void *arg, enum family family, const struct backend_result *result)
{
	struct telemetry *telemetry = arg;

	count_attempt(telemetry, family_name(family), result);
	if (result->error < 0) {
		telemetry->families[family].all_doubtful = true;
		count_failure(telemetry, family_name(family), result);
	} else {
		take_success(telemetry, family, result);
	}
	live_page_synced(telemetry->page, family, result);
}

static void count_repair(void *arg, enum family family)
{
	struct telemetry *telemetry = arg;

	proxy_metrics_add(&telemetry->proxy, PROXY_REPAIRS, family_name(family), "", 1);
}

static void on_flushed(void *arg, enum family family)
{
	const struct telemetry *telemetry = arg;

	count_repair(arg, family);
	readiness_damaged(telemetry->readiness, family);
	live_page_flushed(telemetry->page, family);
}

static void on_repaired(void *arg, enum family family)
{
	const struct telemetry *telemetry = arg;

	count_repair(arg, family);
	readiness_synced(telemetry->readiness, family);
	live_page_repaired(telemetry->page, family);
}

static void on_clients_full(void *arg, enum family family, size_t n)
{
	struct telemetry *telemetry = arg;

	proxy_metrics_set(&telemetry->proxy, PROXY_AFFINITY_FULL, family_name(family), "",
			  (double)n);
}

static void on_checked(void *arg, enum family family, int r, const struct err *err)
{
	const struct telemetry *telemetry = arg;

	readiness_checked(telemetry->readiness, family, r, err);
}

const struct family_sync_observer *telemetry_observer(const struct telemetry *telemetry)
{
	return &telemetry->observer;
}

/* -- what the sources tell */

/* kube-proxy has a tracker of Services for each family, and both count. */
void telemetry_service_event(struct telemetry *telemetry)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (!model_ignores_family(telemetry->config.model, family))
			proxy_metrics_add(&telemetry->proxy, PROXY_SERVICES_TOTAL, "", "", 1);
}

void telemetry_slice_event(struct telemetry *telemetry, unsigned int families)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (families & 1u << family &&
		    !model_ignores_family(telemetry->config.model, family))
			proxy_metrics_add(&telemetry->proxy, PROXY_ENDPOINTS_TOTAL, "", "", 1);
}

void telemetry_request_seen(void *arg, const struct api_http_seen *seen)
{
	struct telemetry *telemetry = arg;

	client_metrics_count(&telemetry->client, seen->host, seen->method, seen->status,
			     seconds(seen->duration_ns));
}

/* -- what is read when a client asks */

static void read_pending(struct telemetry *telemetry)
{
	const struct model *model = telemetry->config.model;
	size_t services = 0;
	size_t slices = 0;

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		services = MAX(services, model_pending_services(model, family));
		slices += model_pending_slices(model, family);
	}
	proxy_metrics_set(&telemetry->proxy, PROXY_SERVICES_PENDING, "", "", (double)services);
	proxy_metrics_set(&telemetry->proxy, PROXY_ENDPOINTS_PENDING, "", "", (double)slices);
}

static void read_counter(struct telemetry *telemetry, enum proxy_metric id, const char *name)
{
	struct nfacct_counter counter;
	struct err ignored;

	proxy_metrics_clear(&telemetry->proxy, id);
	if (telemetry->nfacct && nfacct_get(&telemetry->line, name, &counter, &ignored) >= 0)
		proxy_metrics_set(&telemetry->proxy, id, "", "", (double)counter.packets);
}

static void read_conntrack(struct telemetry *telemetry)
{
	static const enum proxy_metric ids[] = {
		PROXY_CONNTRACK_ENTRIES,       PROXY_CONNTRACK_MAX,
		PROXY_CONNTRACK_INSERT_FAILED, PROXY_CONNTRACK_DROPPED,
		PROXY_CONNTRACK_EARLY_DROPPED,
	};
	struct conntrack_stats stats;
	struct err ignored;
	bool known = conntrack_stats(&telemetry->line, &stats, &ignored) >= 0;
	const uint64_t values[] = {stats.entries, stats.max, stats.insert_failed, stats.drop,
				   stats.early_drop};

	static_assert(ARRAY_SIZE(ids) == ARRAY_SIZE(values), "a value for each metric");
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		proxy_metrics_clear(&telemetry->proxy, ids[i]);
		if (known)
			proxy_metrics_set(&telemetry->proxy, ids[i], "", "", (double)values[i]);
	}
}

static void read_refused(struct telemetry *telemetry)
{
	const struct connection_budget *budget = telemetry->config.budget;

	for (enum connection_kind kind = 0; kind < CONNECTION_KIND_COUNT; kind++)
		proxy_metrics_set(&telemetry->proxy, PROXY_HTTP_REFUSED, connection_kind_name(kind),
				  "", (double)connection_budget_refused(budget, kind));
}

static void set_localhost(struct proxy_metrics *proxy, const char *label,
			  const struct backend_localhost *localhost)
{
	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++)
		if (localhost->counted[i])
			proxy_metrics_set(proxy, PROXY_LOCALHOST_REJECTED, label,
					  protocol_api_name(i), (double)localhost->rejected[i]);
	if (!localhost->served)
		return;
	proxy_metrics_set(proxy, PROXY_LOCALHOST_LISTENERS, label, "",
			  (double)localhost->listeners);
	proxy_metrics_set(proxy, PROXY_LOCALHOST_FAILURES, label, "", (double)localhost->failures);
	proxy_metrics_set(proxy, PROXY_LOCALHOST_CONNECTIONS, label, "",
			  (double)localhost->connections);
	proxy_metrics_set(proxy, PROXY_LOCALHOST_REFUSED, label, "", (double)localhost->refused);
}

static void read_localhost(struct telemetry *telemetry)
{
	const struct telemetry_config *config = &telemetry->config;
	struct backend_localhost localhost;

	for (enum proxy_metric id = PROXY_LOCALHOST_LISTENERS; id <= PROXY_LOCALHOST_REFUSED; id++)
		proxy_metrics_clear(&telemetry->proxy, id);
	for (enum family family = 0; config->read_localhost && family < FAMILY_COUNT; family++)
		if (config->read_localhost(config->arg, family, &localhost))
			set_localhost(&telemetry->proxy, family_name(family), &localhost);
}

static void before_scrape(void *arg)
{
	struct telemetry *telemetry = arg;

	read_pending(telemetry);
	read_counter(telemetry, PROXY_INVALID_DROPPED, NFACCT_INVALID);
	read_counter(telemetry, PROXY_LOCALHOST_ACCEPTED, NFACCT_LOCALHOST);
	read_conntrack(telemetry);
	read_refused(telemetry);
	read_localhost(telemetry);
	proxy_metrics_set(&telemetry->proxy, PROXY_LOG_DROPPED, "", "", (double)log_dropped());
}

struct metrics *telemetry_metrics(const struct telemetry *telemetry)
{
	return telemetry->metrics;
}

static void count_answer(struct telemetry *telemetry, enum proxy_metric id, int status)
{
	char code[CODE_TEXT_MAX];

	snprintf(code, sizeof(code), "%d", status);
	proxy_metrics_add(&telemetry->proxy, id, code, "", 1);
}

void telemetry_set_page(struct telemetry *telemetry, struct live_page *page)
{
	telemetry->page = page;
}

void telemetry_set_waiting(struct telemetry *telemetry, bool waiting)
{
	telemetry->waiting = waiting;
}

static char *why_not_ready(const struct telemetry *telemetry)
{
	if (telemetry->waiting)
		return xstrdup("another instance runs on this node and is waited for");
	return readiness_why_not(telemetry->readiness);
}

bool telemetry_healthy(const struct telemetry *telemetry, char **ret_reason)
{
	const struct node *node = model_node(telemetry->config.model);
	struct health_time time = now();

	*ret_reason = why_not_ready(telemetry);
	if (!*ret_reason && !proxy_health_is_good(&telemetry->health, &time))
		*ret_reason = xstrdup("a change has waited for too long");
	if (!*ret_reason && !proxy_health_node_eligible(node))
		*ret_reason = xstrdup(node ? "the Node is going away" : "the Node is not known");
	return !*ret_reason;
}

void telemetry_held(struct telemetry *telemetry, const struct source_held *held)
{
	sync_held_told(&telemetry->held, held);
}

char *telemetry_degraded(const struct telemetry *telemetry)
{
	return sync_held_words(&telemetry->held);
}

int telemetry_healthz(struct telemetry *telemetry, struct text *ret)
{
	struct health_time time = now();
	cleanup_free char *why_not = why_not_ready(telemetry);
	cleanup_free char *degraded = telemetry_degraded(telemetry);
	int status =
		proxy_health_print_healthz(&telemetry->health, model_node(telemetry->config.model),
					   why_not, degraded, &time, ret);

	count_answer(telemetry, PROXY_HEALTHZ, status);
	return status;
}

int telemetry_livez(struct telemetry *telemetry, struct text *ret)
{
	struct health_time time = now();
	int status = proxy_health_print_livez(&telemetry->health, &time, ret);

	count_answer(telemetry, PROXY_LIVEZ, status);
	return status;
}

/* -- begin and end */

static void add_build(struct metrics *metrics)
{
	static const struct metric_desc kubernetes = {
		.name = "kubernetes_build_info",
		.help = "[BETA] Constant 1: the Kubernetes release whose kube-proxy this takes the "
			"place of.",
		.kind = METRIC_GAUGE,
		.labels = {"build_date", "compiler", "git_commit", "git_tree_state", "git_version",
			   "go_version", "major", "minor", "platform"},
	};
	static const struct metric_desc portolan = {
		.name = "portolan_build_info",
		.help = "Constant 1: the version of Portolan.",
		.kind = METRIC_GAUGE,
		.labels = {"compiler", "version"},
	};
	static const char release[] = KUBERNETES_VERSION ".0";
	static const char *const kubernetes_values[] = {
		"", "gcc", "", "", release, "", "1", KUBERNETES_MINOR, "linux"};
	static const char *const portolan_values[] = {__VERSION__, PORTOLAN_VERSION};

	series_set(metric_series(metrics_add(metrics, &kubernetes), kubernetes_values), 1);
	series_set(metric_series(metrics_add(metrics, &portolan), portolan_values), 1);
}

static void add_gates(struct metrics *metrics, const struct gates *gates)
{
	static const struct metric_desc desc = {
		.name = "kubernetes_feature_enabled",
		.help = "[BETA] This metric records the data about the stage and enablement of a "
			"k8s feature.",
		.kind = METRIC_GAUGE,
		.labels = {"name", "stage"},
	};
	static const char *const stages[] = {
		[GATE_ALPHA] = "ALPHA",
		[GATE_BETA] = "BETA",
		[GATE_GA] = "",
		[GATE_DEPRECATED] = "DEPRECATED",
	};
	struct metric *metric = metrics_add(metrics, &desc);

	static_assert(ARRAY_SIZE(stages) == GATE_STAGE_COUNT, "a word for each stage");
	for (size_t i = 0; i < gates_n; i++) {
		const struct gate *gate = &gates_table[i];
		const char *const values[] = {gate->name, stages[gate->stage]};

		if (!gate->dropped)
			series_set(metric_series(metric, values), gates->on[i]);
	}
}

static void check_rules(void *arg)
{
	const struct telemetry *telemetry = arg;

	telemetry->config.check_rules(telemetry->config.arg);
}

static void count_probe_failure(void *arg, const char *probe)
{
	struct telemetry *telemetry = arg;

	proxy_metrics_add(&telemetry->proxy, PROXY_PROBE_FAILURES, probe, "", 1);
}

static struct readiness *make_readiness(struct telemetry *telemetry)
{
	const struct telemetry_config *config = &telemetry->config;

	return readiness_new(&(struct readiness_config){
		.loop = config->loop,
		.model = config->model,
		.probe = config->probe,
		.target = config->probe_target,
		.interval_ns = config->probe_interval_ns,
		.check = check_rules,
		.failed = count_probe_failure,
		.arg = telemetry,
	});
}

struct telemetry *telemetry_new(const struct telemetry_config *config)
{
	struct telemetry *telemetry = xcalloc(1, sizeof(*telemetry));

	*telemetry = (struct telemetry){
		.config = *config,
		.observer =
			{
				.started = on_started,
				.queued = on_queued,
				.synced = on_synced,
				.flushed = on_flushed,
				.repaired = on_repaired,
				.clients_full = on_clients_full,
				.checked = on_checked,
				.arg = telemetry,
			},
		.metrics = metrics_new(),
		.nfacct = nfacct_supported() == 1,
		.health = {.timeout_ns = HEALTH_PERIODS * config->sync_period_ns},
	};
	telemetry->readiness = make_readiness(telemetry);
	proxy_metrics_register(&telemetry->proxy, telemetry->metrics, config->mode,
			       config->read_localhost != NULL);
	sync_held_init(&telemetry->held, &telemetry->proxy);
	process_metrics_register(&telemetry->process, telemetry->metrics);
	client_metrics_register(&telemetry->client, telemetry->metrics);
	add_build(telemetry->metrics);
	add_gates(telemetry->metrics, config->gates);
	metrics_before_scrape(telemetry->metrics, before_scrape, telemetry);
	return telemetry;
}

/* Where health check ports are opened; none: everywhere. */
static int find_addresses(const struct settings *settings, struct addr **ret, size_t *ret_n,
			  struct err *err)
{
	cleanup_free struct addr *all = NULL;
	size_t n = 0;
	int r;

	*ret = NULL;
	*ret_n = 0;
	if (settings->node_ports.match_all)
		return 0;
	r = interfaces_addresses(settings->family, &all, &n, err);
	if (r < 0)
		return err_wrap(err, r, "finding addresses for health check ports");
	*ret = node_ports_select(&settings->node_ports, all, n, ret_n);
	return 0;
}

int telemetry_set_family(struct telemetry *telemetry, const struct settings *settings,
			 struct err *err)
{
	struct family_telemetry *f = &telemetry->families[settings->family];
	cleanup_free struct addr *addresses = NULL;
	struct service_health_config config = {
		.family = settings->family,
		.budget = telemetry->config.budget,
		.proxy_is_good = proxy_is_good,
		.failed = on_port_failed,
		.arg = telemetry,
	};
	int r = find_addresses(settings, &addresses, &config.n_addresses, err);

	if (r < 0)
		return r;
	config.limited = !settings->node_ports.match_all;
	config.addresses = addresses;
	service_health_free(f->ports);
	f->ports = service_health_new(telemetry->config.loop, &config);
	if (!f->flows) {
		f->telemetry = telemetry;
		f->family = settings->family;
		f->flows = stale_flows_new(settings->family, telemetry->config.terminate);
		f->flows_timer = loop_timer(telemetry->config.loop, on_grace_over, f);
	}
	f->on = f->all_doubtful = true;
	readiness_add_family(telemetry->readiness, settings->family);
	telemetry->health.timeout_ns = HEALTH_PERIODS * settings->sync_period_ns;
	return 0;
}

struct telemetry *telemetry_free(struct telemetry *telemetry)
{
	if (!telemetry)
		return NULL;
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct family_telemetry *f = &telemetry->families[family];

		if (f->flows_since_ns)
			forget_flows(f);
		loop_free(f->flows_timer);
		service_health_free(f->ports);
		stale_flows_free(f->flows);
		free(f->flows_failure);
	}
	sync_held_done(&telemetry->held);
	readiness_free(telemetry->readiness);
	metrics_free(telemetry->metrics);
	nfnetlink_conn_done(&telemetry->line);
	free(telemetry);
	return NULL;
}
