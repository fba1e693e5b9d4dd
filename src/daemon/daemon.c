/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/daemon.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/loop.h"
#include "config/duration.h"
#include "config/kubeproxy_config.h"
#include "config/program.h"
#include "config/reload.h"
#include "conntrack/conntrack_watch.h"
#include "conntrack/traffic_meter.h"
#include "daemon/announcer.h"
#include "daemon/confinement.h"
#include "daemon/family_set.h"
#include "daemon/host_setup.h"
#include "daemon/live_page.h"
#include "daemon/node_lock.h"
#include "daemon/node_wait.h"
#include "daemon/other_modes.h"
#include "daemon/plugin.h"
#include "daemon/servers.h"
#include "daemon/telemetry.h"
#include "serving/connection_budget.h"
#include "sources/api_client.h"
#include "sources/api_source.h"
#include "sources/manifests.h"

#define LAST_WORD_NS   CLOCK_NS_PER_SECOND /* for an event before the end */
#define SHORT_AGAIN_NS (60 * CLOCK_NS_PER_SECOND)

#define NO_MODE_REASON                                                                        \
	"the default becomes nftables in Kubernetes 1.40; to stay with iptables, give mode: " \
	"iptables in the configuration file, or --proxy-mode=iptables"

struct daemon {
	const struct daemon_input *input;
	const struct config *config; /* in force */
	struct reload *reload;       /* NULL: there is no configuration file */
	struct event_base *loop;
	struct model *model;
	struct manifests *manifests; /* the source is one of these two */
	struct api_source *api;
	struct announcer *announcer; /* with an API server only */
	struct plugin plugin;
	struct event *signals[5];
	struct node_wait *node_wait;
	struct node_lock *lock; /* NULL with --init-only */
	bool node_known;        /* as well as it ever will be */
	bool waited;            /* for another instance to end */
	bool in_turn;           /* no other instance writes rules */

	struct node *node; /* when that was, or the configuration last changed; NULL: none */

	bool listed; /* the source has reported all that there was */
	bool ended;
	int exit_code;

	struct family_set_input family_set_input;
	struct other_modes_leftovers leftovers;
	struct confinement *confinement; /* NULL: not confined */
	struct family_set *family_set;   /* NULL while the Node is waited for */
	struct telemetry *telemetry;
	struct connection_budget *budget;
	int64_t short_ns;              /* when a lack of descriptors was logged; 0: never */
	struct live_page *page;        /* NULL: --status-page=false */
	struct servers *servers;       /* from then on */
	struct conntrack_watch *watch; /* likewise */
	struct traffic_meter *meter;   /* likewise; NULL also without --service-metrics */
	struct event *last_word;       /* ends the program; see on_server_failed() */
};

static void end(struct daemon *daemon, int exit_code)
{
	daemon->ended = true;
	daemon->exit_code = exit_code;
	event_base_loopbreak(daemon->loop);
}

static void fail(struct daemon *daemon, const char *message, const char *reason)
{
	log_error(message, KV("err", LOG_STR(reason)));
	end(daemon, EXIT_FAILED);
}

/* Where descriptors are short that concerns many Services for the same reason: then one line is enough for a while. */
static bool is_worth_a_line(struct daemon *daemon, const struct err *err)
{
	int64_t now = clock_now_ns();

	if (err->code != -EMFILE)
		return true;
	if (daemon->short_ns && now - daemon->short_ns < SHORT_AGAIN_NS)
		return false;
	daemon->short_ns = now;
	return true;
}

static void on_port_failed(void *arg, const char *ns, const char *name, const struct err *err)
{
	cleanup_free char *key = xasprintf("%s/%s", ns, name);
	struct daemon *daemon = arg;

	if (is_worth_a_line(daemon, err))
		log_error("A health check port cannot be opened, trying again with each sync",
			  KV("service", LOG_STR(key)), KV("err", LOG_STR(err->text)));
	announcer_tell_port(daemon->announcer, ns, name, err->text);
}

static void on_cannot_accept(void *arg attr_unused, const struct err *err)
{
	log_error("Connections cannot be accepted, trying again", KV("err", LOG_STR(err->text)));
}

/* -- the servers */

static void on_last_word(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	end(arg, EXIT_FAILED);
}

/* Only with --bind-address-hard-fail. The event has a moment to get out. */
static void on_server_failed(void *arg, enum servers_kind kind, const struct err *err)
{
	static const char *const reasons[] = {
		[SERVERS_HEALTH] = "FailedToStartProxierHealthcheck",
		[SERVERS_METRICS] = "FailedToStartMetricServer",
	};
	struct daemon *daemon = arg;

	static_assert(ARRAY_SIZE(reasons) == SERVERS_KIND_COUNT, "a reason for each server");
	announcer_tell_node(daemon->announcer, reasons[kind], "StartKubeProxy", err->text);
	if (daemon->announcer)
		loop_arm(daemon->last_word, LAST_WORD_NS);
	else
		end(daemon, EXIT_FAILED);
}

static void make_servers(struct daemon *daemon)
{
	const struct servers_config config = {
		.loop = daemon->loop,
		.telemetry = daemon->telemetry,
		.budget = daemon->budget,
		.options = daemon->input->options,
		.page = live_page_status(daemon->page),
		.failed = on_server_failed,
		.arg = daemon,
	};

	if (!daemon->servers)
		daemon->servers = servers_new(&config, daemon->config);
}

static void check_rules(void *arg)
{
	const struct daemon *daemon = arg;

	family_set_check(daemon->family_set);
}

static bool read_localhost(void *arg, enum family family, struct backend_localhost *ret)
{
	const struct daemon *daemon = arg;

	return family_set_localhost(daemon->family_set, family, ret);
}

/* -- the status page */

static struct live_page *make_page(struct daemon *daemon)
{
	if (!daemon->input->options->status_page || !daemon->config->metrics.on)
		return NULL;
	return live_page_new(&(struct live_page_config){
		.loop = daemon->loop,
		.model = daemon->model,
		.config = daemon->config,
		.telemetry = daemon->telemetry,
		.metered = daemon->input->options->service_metrics,
	});
}

/* -- */

static struct telemetry *make_telemetry(struct daemon *daemon)
{
	const struct config *config = daemon->config;

	return telemetry_new(&(struct telemetry_config){
		.loop = daemon->loop,
		.model = daemon->model,
		.mode = config->effective->message->mode,
		.gates = &config->gates,
		.budget = daemon->budget,
		.sync_period_ns = config->sync_period_ns,
		.terminate = config->terminate,
		.probe = config->probe,
		.probe_target = config->probe_target,
		.probe_interval_ns = config->probe_interval_ns,
		.check_rules = check_rules,
		.read_localhost = config->mode.localhost_proxy ? read_localhost : NULL,
		.port_failed = on_port_failed,
		.arg = daemon,
	});
}

/* -- connection tracking */

static void on_table_filling(void *arg, enum table_level level, const char *note)
{
	const struct daemon *daemon = arg;

	announcer_tell_table(daemon->announcer, level, note);
}

static void start_watch(struct daemon *daemon)
{
	daemon->watch = conntrack_watch_new(&(struct conntrack_watch_config){
		.loop = daemon->loop,
		.model = daemon->model,
		.cores = sysconf(_SC_NPROCESSORS_ONLN),
		.now_ns = clock_now_ns,
		.stats = conntrack_stats,
		.warned = on_table_filling,
		.arg = daemon,
	});
}

static void start_meter(struct daemon *daemon)
{
	const struct options *options = daemon->input->options;

	if (!options->service_metrics)
		return;
	daemon->meter = traffic_meter_new(&(struct traffic_meter_config){
		.loop = daemon->loop,
		.model = daemon->model,
		.metrics = telemetry_metrics(daemon->telemetry),
		.limit = (size_t)options->service_metrics_limit,
	});
	live_page_set_meter(daemon->page, daemon->meter);
}

/* -- the phases */

static void on_conflict(void *arg, const struct conflict *conflict)
{
	const struct daemon *daemon = arg;

	live_page_conflict(daemon->page, conflict);
	announcer_tell_conflict(daemon->announcer, conflict);
}

static void on_refused(void *arg, const struct backend_refusal *refusal)
{
	const struct daemon *daemon = arg;

	live_page_refused(daemon->page, refusal);
	announcer_tell_refusal(daemon->announcer, refusal);
}

static void on_clients_full(void *arg, const struct backend_full *full)
{
	const struct daemon *daemon = arg;

	live_page_clients_full(daemon->page, full);
	announcer_tell_clients_full(daemon->announcer, full);
}

static bool ending(const struct daemon *daemon)
{
	return daemon->ended || event_pending(daemon->last_word, EV_TIMEOUT, NULL);
}

/* -- the sandbox */

static void on_launcher_gone(void *arg)
{
	fail(arg, "The launcher of programs ended, a new start is needed",
	     "another program ended it");
}

/* All that needs more than it leaves is done. */
static void confine(struct daemon *daemon)
{
	const struct daemon_input *input = daemon->input;
	unsigned int needs = family_set_needs(daemon->family_set) | daemon->leftovers.needs;

	daemon->confinement = confinement_enter(&(struct confinement_input){
		.loop = daemon->loop,
		.mode = input->sandbox,
		.config = daemon->config,
		.programs = needs & BACKEND_NEEDS_PROGRAMS,
		.raw = needs & BACKEND_NEEDS_RAW,
		.plugin = &daemon->plugin,
		.credentials = daemon->api ? api_source_client(daemon->api)->credentials : NULL,
		.config_file = input->options->config,
		.manifests = input->manifests,
		.launcher_gone = on_launcher_gone,
		.arg = daemon,
	});
}

/* The Node and all else are known. The meter's first round tells old connections by their Services. */
static void start_syncs(struct daemon *daemon)
{
	start_meter(daemon);
	family_set_start(daemon->family_set);
}

/* What takes programs, and nothing is written for: so it can be done before another instance has ended. */
static void look_at_host(struct daemon *daemon)
{
	struct family_set_input *input = &daemon->family_set_input;
	struct err err;

	if (!input->host && daemon->config->backend->open_host)
		input->host = daemon->config->backend->open_host(&daemon->config->mode, 0);
	if (family_set_find_families(daemon->config, model_node(daemon->model), input, &err) < 0)
		fail(daemon, "Cannot start", err.text);
}

/* The Node is known and no other instance is there. Rules are written once all else is known, too. */
static void begin(struct daemon *daemon)
{
	struct family_set_input *input = &daemon->family_set_input;
	struct err err;

	if (host_setup_conntrack(daemon->config, &err) < 0 ||
	    family_set_new(input, daemon->config, &daemon->family_set, &err) < 0) {
		fail(daemon, "Cannot start", err.text);
		return;
	}
	live_page_set_families(daemon->page, daemon->family_set);
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (!input->usable[family])
			model_ignore_family(daemon->model, family);
	if (daemon->input->init_only) {
		log_info("Set up, ending before any rule is written");
		end(daemon, EXIT_DONE);
		return;
	}
	other_modes_look(daemon->config->backend, &daemon->leftovers);
	host_setup_oom_score(daemon->config);
	make_servers(daemon);
	servers_open(daemon->servers, daemon->waited);
	if (ending(daemon))
		return;
	if (daemon->input->config->effective->mode_defaulted)
		announcer_tell_node(daemon->announcer, "KubeProxyDefaultMode", "StartKubeProxy",
				    "No mode is given, using iptables: " NO_MODE_REASON);
	/* what kube-proxy says of itself where it has come so far */
	announcer_tell_node(daemon->announcer, "Starting", "StartKubeProxy", "");
	start_watch(daemon);
	confine(daemon);
	if (daemon->listed)
		start_syncs(daemon);
}

/* -- another instance */

/* One that asks the other to end does so when it could go on at once. */
static void begin_in_turn(struct daemon *daemon)
{
	if (daemon->ended || !daemon->node_known || daemon->family_set)
		return;
	if (daemon->in_turn)
		begin(daemon);
	else if (daemon->listed && daemon->input->options->takeover)
		node_lock_take_over(daemon->lock);
}

static void keep_node(struct daemon *daemon)
{
	const struct node *node = model_node(daemon->model);

	node_unref(daemon->node);
	daemon->node = node ? node_ref((struct node *)node) : NULL;
}

static void on_node_known(void *arg)
{
	struct daemon *daemon = arg;

	daemon->node_known = true;
	keep_node(daemon);
	look_at_host(daemon);
	begin_in_turn(daemon);
}

static void on_lock_waiting(void *arg)
{
	struct daemon *daemon = arg;

	daemon->waited = true;
	telemetry_set_waiting(daemon->telemetry, true);
	make_servers(daemon);
	servers_offer_health(daemon->servers);
}

static void on_lock_mine(void *arg)
{
	struct daemon *daemon = arg;

	telemetry_set_waiting(daemon->telemetry, false);
	daemon->in_turn = true;
	begin_in_turn(daemon);
}

static void on_lock_asked(void *arg)
{
	struct daemon *daemon = arg;

	if (daemon->ended)
		return;
	log_info("Ending, rules stay: another instance takes over");
	end(daemon, EXIT_DONE);
}

static struct node_lock *make_lock(struct daemon *daemon)
{
	if (daemon->input->init_only) {
		daemon->in_turn = true; /* it writes no rules */
		return NULL;
	}
	return node_lock_new(&(struct node_lock_config){
		.loop = daemon->loop,
		.name = NODE_LOCK_NAME,
		.waiting = on_lock_waiting,
		.mine = on_lock_mine,
		.asked = on_lock_asked,
		.arg = daemon,
	});
}

/* -- the source */

static void on_node_missing(void *arg, const char *reason)
{
	fail(arg, "Cannot start", reason);
}

static void on_node_listed(void *arg, bool hope)
{
	const struct daemon *daemon = arg;

	node_wait_begin(daemon->node_wait, daemon->config, hope);
}

static void on_synced(void *arg)
{
	struct daemon *daemon = arg;

	daemon->listed = true;
	if (!daemon->family_set)
		begin_in_turn(daemon);
	else if (!ending(daemon))
		start_syncs(daemon);
}

static bool same_pod_cidrs(const struct node *a, const struct node *b)
{
	if (a->n_pod_cidrs != b->n_pod_cidrs)
		return false;
	for (size_t i = 0; i < a->n_pod_cidrs; i++)
		if (!prefix_equal(&a->pod_cidrs[i], &b->pod_cidrs[i]))
			return false;
	return true;
}

/*
 * Rules stand on facts of the Node as it was when the start went on, also while another instance is
 * waited for. Of what changes later only the zone is followed. Other addresses or podCIDRs need a new start, and so does a Node that went, as
 * in kube-proxy: rules stay, and whoever supervises us decides when. NULL: it went. In mode NodeCIDR
 * there was one, or the start would still wait for its podCIDRs.
 */
static void compare_node(struct daemon *daemon, const struct node *node)
{
	char before[NODE_IPS_TEXT_MAX], now[NODE_IPS_TEXT_MAX];
	char reason[2 * NODE_IPS_TEXT_MAX + 32];

	if (!node) {
		fail(daemon, "The Node was deleted, a new start is needed",
		     daemon->config->node_name);
		return;
	}
	if (daemon->config->detect_mode == DETECT_NODE_CIDR &&
	    !same_pod_cidrs(daemon->node, node)) {
		fail(daemon, "The Node's podCIDRs changed, a new start is needed",
		     "podCIDRs differ from those at the start");
		return;
	}
	node_print_ips(daemon->node, before);
	node_print_ips(node, now);
	if (streq(now, before))
		return;
	snprintf(reason, sizeof(reason), "at the start: %s; now: %s", *before ? before : "none",
		 *now ? now : "none");
	fail(daemon, "The Node's addresses changed, a new start is needed", reason);
}

/* NULL: it is gone. */
static void set_node(struct daemon *daemon, struct node *node)
{
	bool zone_changed;

	if (daemon->node_known && !daemon->ended)
		compare_node(daemon, node);
	zone_changed = model_set_node(daemon->model, node);
	if (!daemon->node_known)
		node_wait_look(daemon->node_wait, daemon->config);
	else if (zone_changed)
		family_set_request_full(daemon->family_set);
}

static void count_event(struct daemon *daemon, enum object_kind kind, unsigned int families)
{
	if (kind == OBJECT_SLICE)
		telemetry_slice_event(daemon->telemetry, families);
	if (kind != OBJECT_SERVICE)
		return;
	telemetry_service_event(daemon->telemetry);
	traffic_meter_services_changed(daemon->meter);
}

static void on_set(void *arg, struct object object)
{
	struct daemon *daemon = arg;

	if (object.kind == OBJECT_NODE) {
		set_node(daemon, object.node);
		return;
	}
	count_event(daemon, object.kind,
		    object.kind == OBJECT_SLICE ? 1u << object.slice->family : 0);
	family_set_request(daemon->family_set, model_set_object(daemon->model, object));
}

static void on_remove(void *arg, enum object_kind kind, const char *key)
{
	struct daemon *daemon = arg;
	unsigned int families = model_remove_object(daemon->model, kind, key);

	if (kind == OBJECT_NODE)
		set_node(daemon, NULL);
	count_event(daemon, kind, families);
	family_set_request(daemon->family_set, families);
}

/* A new start waits for podCIDRs that are missing; from then on nobody does. */
static bool can_change_config(void *arg, const struct config *config)
{
	const struct daemon *daemon = arg;
	const struct node *node = model_node(daemon->model);

	return !daemon->node_known || config->detect_mode != DETECT_NODE_CIDR ||
	       (node && node->n_pod_cidrs > 0);
}

/* The new rules' owner is made before the old one goes, which therefore stays if that fails. */
static int change_config(void *arg, const struct config *config, struct err *err)
{
	struct daemon *daemon = arg;
	struct family_set *family_set = NULL;
	int r;

	if (daemon->family_set) {
		r = family_set_new(&daemon->family_set_input, config, &family_set, err);
		if (r < 0)
			return r;
		family_set_free(daemon->family_set);
		daemon->family_set = family_set;
		live_page_set_families(daemon->page, family_set);
	}
	daemon->config = config;
	keep_node(daemon);
	if (daemon->servers)
		servers_set_config(daemon->servers, config);
	log_setup(config->log_format, config->verbosity);
	if (!daemon->family_set)
		node_wait_look(daemon->node_wait, config);
	else if (daemon->listed)
		family_set_start(daemon->family_set);
	return 0;
}

static void end_for_config(void *arg)
{
	end(arg, EXIT_FAILED);
}

static void on_report(void *arg, enum log_severity severity, const char *text)
{
	const struct daemon *daemon = arg;

	LOG_CALL(severity, 0, text);
	live_page_reported(daemon->page, severity, text);
}

static void on_misread(void *arg, const struct source_misread *misread)
{
	const struct daemon *daemon = arg;

	announcer_tell_misread(daemon->announcer, misread);
}

/* What tenants write comes this way: whatever is wrong with one object is one thing to the log. */
static void on_object_report(void *arg, enum log_severity severity, const char *text)
{
	const struct daemon *daemon = arg;

	log_report(severity, text);
	live_page_reported(daemon->page, severity, text);
}

static void on_held(void *arg, const struct source_held *held)
{
	const struct daemon *daemon = arg;

	telemetry_held(daemon->telemetry, held);
	if (held->n > 0 && held->text)
		announcer_tell_node(daemon->announcer, "SyncHeld", "GuardSync", held->text);
}

static void count_stranded(void *arg, const struct model_slice_change *change, size_t *ret_known,
			   size_t *ret_stranded)
{
	const struct daemon *daemon = arg;

	model_count_stranded(daemon->model, change, ret_known, ret_stranded);
}

static void release(struct daemon *daemon)
{
	if ((daemon->api && api_source_release(daemon->api)) ||
	    (daemon->manifests && manifests_release(daemon->manifests)))
		log_info("SIGUSR2: what was held back is removed");
	else
		log_info("SIGUSR2: nothing is held back");
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)what;
	if (number == SIGHUP) {
		log_info("SIGHUP is ignored: the source is followed, nothing needs reloading");
		return;
	}
	if (number == SIGUSR1) {
		log_info("SIGUSR1: comparing all rules with the kernel's");
		family_set_audit(daemon->family_set);
		return;
	}
	if (number == SIGUSR2) {
		release(daemon);
		return;
	}
	log_info("Ending, rules stay",
		 KV("signal", LOG_STR(number == SIGTERM ? "SIGTERM" : "SIGINT")));
	end(daemon, EXIT_DONE);
}

static void listen_to_signals(struct daemon *daemon)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

	_Static_assert(ARRAY_SIZE(numbers) == ARRAY_SIZE(daemon->signals), "a place for each");

	signal(SIGPIPE, SIG_IGN); /* a tool that ends early is an error of a write, not our end */
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		daemon->signals[i] = evsignal_new(daemon->loop, numbers[i], on_signal, daemon);
		event_add(daemon->signals[i], NULL);
	}
}

/* A cluster that was never asked would change its mode with an upgrade to 1.40. */
static void log_default_mode(const struct config *config)
{
	if (config->effective->mode_defaulted)
		log_error("No mode is given, using iptables",
			  KV("reason", LOG_STR(NO_MODE_REASON)));
}

static void log_start(const struct daemon_input *input)
{
	const struct config *config = input->config;
	char sync[DURATION_TEXT_MAX];
	char min[DURATION_TEXT_MAX];

	duration_print(config->sync_period_ns, sync);
	duration_print(config->min_sync_period_ns, min);
	log_info("Starting Portolan", KV("version", LOG_STR(PORTOLAN_VERSION)),
		 KV("mode", LOG_STR(config->backend->name)), KV("node", LOG_STR(config->node_name)),
		 KV("manifests", LOG_STR(input->manifests)),
		 KV("kubeconfig", LOG_STR(input->kubeconfig)),
		 KV("detectLocalMode", LOG_STR(detect_mode_name(config->detect_mode))),
		 KV("masqueradeAll", LOG_BOOL(config->masquerade_all)),
		 KV("syncPeriod", LOG_STR(sync)),
		 KV("minSyncPeriod", LOG_STR(config->min_sync_explicit ? min : "by cost")));
}

static const char *get_environment(const char *name)
{
	return getenv(name);
}

static int64_t wall_clock_s(void)
{
	return clock_wall_ns() / CLOCK_NS_PER_SECOND;
}

static int start_source(struct daemon *daemon, const struct source_sink *sink, struct err *err)
{
	const struct daemon_input *input = daemon->input;
	const struct api_source_config api = {
		.credentials =
			{
				.kubeconfig = input->kubeconfig,
				.master = input->master,
				.getenv = get_environment,
				.now_s = wall_clock_s,
				.runner = plugin_runner(&daemon->plugin, daemon->loop),
			},
		.node_name = daemon->config->node_name,
		.report = on_report,
		.report_object = on_object_report,
		.misread = on_misread,
		.held = on_held,
		.guard_percent = daemon->config->guard_percent,
		.report_arg = daemon,
		.seen = telemetry_request_seen,
		.seen_arg = daemon->telemetry,
	};
	int r;

	if (!input->manifests || !*input->manifests) {
		r = api_source_start(daemon->loop, &api, sink, &daemon->api, err);
		if (r == 0)
			daemon->announcer = announcer_new(api_source_client(daemon->api),
							  daemon->config->node_name);
		return r;
	}
	r = manifests_start(daemon->loop, input->manifests, daemon->config->node_name, sink,
			    on_report, daemon, &daemon->manifests, err);
	if (r < 0)
		return err_wrap(err, r, "--manifests");
	manifests_set_guard(daemon->manifests,
			    &(struct manifests_guard){.on = daemon->config->guard_percent > 0,
						      .held = on_held,
						      .arg = daemon});
	return 0;
}

static int run_loop(struct daemon *daemon, struct err *err)
{
	const struct source_sink sink = {
		.set = on_set,
		.remove = on_remove,
		.service_cidrs = daemon->config->backend->wants_service_cidrs,
		.count_stranded = count_stranded,
		.node_listed = on_node_listed,
		.synced = on_synced,
		.arg = daemon,
	};
	static const struct reload_ops reload = {
		.can_change = can_change_config,
		.change = change_config,
		.end = end_for_config,
	};
	const struct options *options = daemon->input->options;
	int r = 0;

	if (options->config && options->config[0])
		r = reload_new(daemon->loop, options, daemon->config, &reload, daemon,
			       &daemon->reload, err);
	if (r < 0)
		return r;
	r = start_source(daemon, &sink, err);
	if (r < 0)
		return r;
	/* the source may have reported all, and more, before it returned */
	while (!daemon->ended) {
		if (event_base_dispatch(daemon->loop) != 0 && !daemon->ended)
			return err_set(err, -EIO, "the event loop ended by itself");
	}
	return 0;
}

static struct node_wait *make_node_wait(struct daemon *daemon)
{
	return node_wait_new(&(struct node_wait_config){
		.loop = daemon->loop,
		.model = daemon->model,
		.pod_cidrs_ms = daemon->input->pod_cidrs_timeout_ms,
		.over = on_node_known,
		.failed = on_node_missing,
		.arg = daemon,
	});
}

static void daemon_done(struct daemon *daemon)
{
	servers_free(daemon->servers);
	telemetry_set_page(daemon->telemetry, NULL); /* what still ends is not told */
	daemon->page = live_page_free(daemon->page);
	traffic_meter_free(daemon->meter);
	conntrack_watch_free(daemon->watch);
	announcer_free(daemon->announcer);
	manifests_free(daemon->manifests);
	api_source_free(daemon->api);
	family_set_free(daemon->family_set);
	if (daemon->family_set_input.host)
		daemon->config->backend->close_host(daemon->family_set_input.host);
	confinement_free(daemon->confinement);
	plugin_done(&daemon->plugin);
	telemetry_free(daemon->telemetry);
	connection_budget_free(daemon->budget);
	reload_free(daemon->reload);
	for (size_t i = 0; i < ARRAY_SIZE(daemon->signals); i++)
		loop_free(daemon->signals[i]);
	node_wait_free(daemon->node_wait);
	loop_free(daemon->last_word);
	node_unref(daemon->node);
	model_free(daemon->model);
	node_lock_free(daemon->lock); /* last: from then on another instance writes */
	log_attach(NULL);
	event_base_free(daemon->loop);
}

/* What the mode takes of the process's descriptors is not theirs. */
static size_t descriptors_for_servers(const struct config *config)
{
	size_t limit = host_setup_open_files();

	if (config->backend->descriptors)
		limit -= config->backend->descriptors(&config->mode, limit);
	return limit;
}

int daemon_run(const struct daemon_input *input)
{
	struct daemon daemon = {
		.input = input,
		.config = input->config,
		.loop = event_base_new(),
		.model = model_new(input->config->node_name, clock_wall_ns()),
	};
	struct err err;

	log_attach(daemon.loop);
	log_start(input);
	log_default_mode(input->config);
	daemon.budget = connection_budget_new(&(struct connection_budget_config){
		.descriptors = descriptors_for_servers(input->config),
		.cannot_accept = on_cannot_accept,
	});
	daemon.family_set_input.loop = daemon.loop;
	daemon.family_set_input.model = daemon.model;
	daemon.telemetry = daemon.family_set_input.telemetry = make_telemetry(&daemon);
	daemon.family_set_input.leftovers = &daemon.leftovers;
	daemon.family_set_input.conflict = on_conflict;
	daemon.family_set_input.refused = on_refused;
	daemon.family_set_input.clients_full = on_clients_full;
	daemon.family_set_input.arg = &daemon;
	daemon.page = make_page(&daemon);
	telemetry_set_page(daemon.telemetry, daemon.page);
	sandbox_prepare();
	listen_to_signals(&daemon);
	daemon.node_wait = make_node_wait(&daemon);
	daemon.last_word = loop_timer(daemon.loop, on_last_word, &daemon);
	daemon.lock = make_lock(&daemon);
	if (run_loop(&daemon, &err) < 0)
		fail(&daemon, "Cannot run", err.text);
	daemon_done(&daemon);
	return daemon.exit_code;
}
