/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "backends/modes.h"
#include "backends/nftables/layout.h"
#include "backends/nftables/localhost/localhost_policy.h"
#include "backends/nftables/localhost/localhost_ports.h"
#include "backends/nftables/probe.h"
#include "backends/nftables/script.h"
#include "backends/nftables/table.h"
#include "backends/nftables/table_sync.h"
#include "base/clock.h"
#include "base/loop.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"
#include "kernel/nft_watch.h"
#include "kernel/open_files.h"
#include "kernel/sysctl.h"

/*
 * The nftables backend: what is wanted (state.h), the transaction (table_sync.h), and the watch for
 * changes by other programs (kernel/nft_watch.h). One that changes table kube-proxy of our family makes us ask for a
 * sync, which repairs what was touched. Three timers are set when there is reason: for Services that the kernel
 * refused, for chains and lingering elements that no Service uses any more, and for clients that affinity has no room for.
 */

#define AGE_INTERVAL_NS (60 * CLOCK_NS_PER_SECOND) /* of what no Service uses */
/* How often full maps of clients are looked for; each is known as such for LAYOUT_FULL_SECONDS. */
#define FULL_INTERVAL_NS (5 * CLOCK_NS_PER_SECOND)
#define BIND_INTERVAL_NS (30 * CLOCK_NS_PER_SECOND) /* of NodePorts that cannot be bound */
#define TABLE_ATTRIBUTE  1 /* of the messages of all kinds: NFTA_TABLE_NAME, NFTA_CHAIN_TABLE... */

_Static_assert(NFTA_TABLE_NAME == TABLE_ATTRIBUTE && NFTA_CHAIN_TABLE == TABLE_ATTRIBUTE &&
		       NFTA_RULE_TABLE == TABLE_ATTRIBUTE && NFTA_SET_TABLE == TABLE_ATTRIBUTE &&
		       NFTA_SET_ELEM_LIST_TABLE == TABLE_ATTRIBUTE &&
		       NFTA_OBJ_TABLE == TABLE_ATTRIBUTE && NFTA_FLOWTABLE_TABLE == TABLE_ATTRIBUTE,
	       "one number names the table everywhere");

struct backend {
	const struct settings *settings;
	const struct backend_events *events;
	struct nft_watch *watch;
	struct nft_session *session; /* the watch's */
	struct nft_task sync_task, check_task, age_task, full_task;
	struct table_sync *sync;
	struct localhost_ports *localhost; /* NULL: nothing is carried on localhost */
	struct nft_socket *
		counters; /* whoever asks for them does not wait for a task; NULL: there are none */
	struct event *retry_timer, *age_timer, *full_timer, *bind_timer;
	struct damage damage; /* what is to be repaired */
	bool synced;          /* once at least */
	bool in_sync;
	const struct plan_delta *delta; /* of the sync that runs */
	struct backend_result result;   /* of the last sync */
	int check_result;               /* and of the last look, with its reason */
	struct err check_err;
	bool aged;       /* what is out of use could be removed */
	int full_result; /* of the last look for full maps */
	size_t n_full;   /* service ports whose map of clients was full when last looked for */
};

static int usable(const struct backend_host *host attr_unused, enum family family, struct err *err)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;

	if (family == FAMILY_IPV6 && !sysctl_has_ipv6(err))
		return 0;
	if (nft_socket_open(&socket, err) < 0)
		return 0;
	return probe(socket, family, err);
}

/* -- what other programs change */

static void take_message(void *arg, const struct nlmsghdr *message, struct foreign_changes *changes)
{
	struct backend *backend = arg;
	const char *table = nft_message_string(message, TABLE_ATTRIBUTE);

	if (nft_message_family(message) != nft_family(backend->settings->family) || !table ||
	    !streq(table, LAYOUT_TABLE))
		return;
	if (nft_message_type(message) == NFT_MSG_DELTABLE)
		*changes = (struct foreign_changes){0}; /* what was in it was told before */
	foreign_changes_take(changes, message);
	damage_take(&backend->damage, backend->settings->family, message);
}

static void take_loss(void *arg, struct foreign_changes *changes)
{
	struct backend *backend = arg;

	damage_everything(&backend->damage);
	foreign_changes_add(changes, "not known, notifications were lost", 1);
}

static bool is_damaged(void *arg)
{
	const struct backend *backend = arg;

	return backend->damage.any;
}

static void ask_for_repair(void *arg)
{
	const struct backend *backend = arg;
	cleanup_free char *what = nft_watch_ask(backend->watch);

	backend->events->flushed(backend->events->arg, what);
}

static const struct nft_watch_ops watch_ops = {take_message, take_loss, is_damaged, ask_for_repair};

/* -- NodePorts on localhost */

static void tell_node_port(void *arg, const struct destination *node_port,
			   const struct port_plan *owner)
{
	if (node_port->protocol == PROTOCOL_TCP)
		localhost_ports_tell(arg, node_port->port, owner);
}

static void on_applied(void *arg, const struct state *state, bool full)
{
	struct backend *backend = arg;

	if (!backend->localhost)
		return;
	localhost_ports_begin(backend->localhost, full);
	state_each_node_port(state, tell_node_port, backend->localhost);
	localhost_ports_end(backend->localhost);
}

static int64_t now_ns(void *arg attr_unused)
{
	return clock_now_ns();
}

static uint32_t throw_dice(void *arg attr_unused, uint32_t n)
{
	return arc4random_uniform(n);
}

/* Without the counters' socket there is a number less to tell, no more. */
static void open_localhost(struct backend *backend, struct event_base *loop)
{
	struct err ignored;

	if (localhost_is_on(backend->settings))
		nft_socket_open(&backend->counters, &ignored);
	if (localhost_is_carried(backend->settings))
		backend->localhost = localhost_ports_new(&(struct localhost_ports_config){
			.loop = loop,
			.family = backend->settings->family,
			.descriptors = localhost_ports_share(open_files_limit()),
			.dial_ns = LOCALHOST_DIAL_NS,
			.half_closed_ns = LOCALHOST_HALF_CLOSED_NS,
			.now_ns = now_ns,
			.random = throw_dice,
		});
}

static void localhost(struct backend *backend, struct backend_localhost *ret)
{
	struct table_counters counters = {0};
	struct localhost_stats stats = {0};
	struct err ignored;

	if (backend->localhost)
		localhost_ports_stats(backend->localhost, &stats);
	if (backend->counters && table_read_counters(backend->counters, backend->settings->family,
						     &counters, &ignored) < 0)
		counters = (struct table_counters){0};
	*ret = (struct backend_localhost){
		.served = backend->localhost != NULL,
		.listeners = stats.listeners,
		.failures = stats.failures,
		.connections = stats.connections,
		.refused = stats.refused,
	};
	memcpy(ret->counted, counters.there, sizeof(ret->counted));
	memcpy(ret->rejected, counters.packets, sizeof(ret->rejected));
}

static size_t descriptors(const struct mode_options *options, size_t limit)
{
	return options->localhost_proxy ? FAMILY_COUNT * localhost_ports_share(limit) : 0;
}

/* -- what is done later */

static void on_retry_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	const struct backend *backend = arg;

	backend->events->wanted(backend->events->arg);
}

static void set_timers(struct backend *backend)
{
	refused_services_arm(table_sync_refused(backend->sync), backend->retry_timer);
	if (table_sync_idle(backend->sync) && !evtimer_pending(backend->age_timer, NULL))
		loop_arm(backend->age_timer, AGE_INTERVAL_NS);
	if ((table_sync_has_affinity(backend->sync) || backend->n_full > 0) &&
	    !evtimer_pending(backend->full_timer, NULL))
		loop_arm(backend->full_timer, FULL_INTERVAL_NS);
	if (backend->localhost && localhost_ports_wait(backend->localhost) &&
	    !evtimer_pending(backend->bind_timer, NULL))
		loop_arm(backend->bind_timer, BIND_INTERVAL_NS);
}

static void tell_full(const struct backend *backend)
{
	if (backend->events->clients_full_count)
		backend->events->clients_full_count(backend->events->arg, backend->n_full);
}

static void run_full_look(void *arg)
{
	struct backend *backend = arg;

	backend->full_result = table_sync_look_for_full(backend->sync);
}

static void full_look_done(void *arg)
{
	struct backend *backend = arg;

	if (backend->full_result >= 0) {
		backend->n_full = (size_t)backend->full_result;
		tell_full(backend);
	}
	set_timers(backend);
}

static void on_full_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct backend *backend = arg;

	nft_session_run(backend->session, &backend->full_task);
}

static void run_age(void *arg)
{
	struct backend *backend = arg;

	backend->aged = table_sync_age(backend->sync);
}

static void age_done(void *arg)
{
	struct backend *backend = arg;

	if (backend->aged)
		set_timers(backend);
	else
		backend->events->wanted(backend->events->arg);
}

static void on_age_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct backend *backend = arg;

	nft_session_run(backend->session, &backend->age_task);
}

/* -- syncing */

static void run_sync(void *arg)
{
	struct backend *backend = arg;

	table_sync_run(backend->sync, backend->delta, &backend->result);
}

static void sync_done(void *arg)
{
	struct backend *backend = arg;

	backend->in_sync = false;
	backend->result.cost_ns = nft_session_spent_ns(backend->session);
	if (nft_watch_synced(backend->watch, backend->result.error == 0, backend->result.cost_ns) &&
	    backend->events->repaired)
		backend->events->repaired(backend->events->arg);
	if (backend->result.error == 0) {
		backend->synced = true;
		tell_full(backend);
	} else if (backend->synced) {
		nft_watch_idle(
			backend->watch); /* what others do now does not wait for a good one */
	}
	set_timers(backend);
	backend->events->synced(backend->events->arg, &backend->result);
}

static void run_check(void *arg)
{
	struct backend *backend = arg;

	nft_watch_hear(backend->watch);
	backend->check_err = (struct err){0};
	backend->check_result =
		backend->damage.any ? 0
				    : table_check(nft_session_socket(backend->session),
						  backend->settings->family, &backend->check_err);
}

static void check_done(void *arg)
{
	struct backend *backend = arg;
	struct err *err = &backend->check_err;

	if (backend->damage.any) {
		err_set(err, -EUCLEAN,
			"table " LAYOUT_TABLE
			", which another program changed, is not repaired yet");
	} else if (backend->check_result == 0) {
		damage_everything(&backend->damage);
		nft_watch_note(backend->watch, err->text);
	}
	backend->events->checked(backend->events->arg,
				 backend->damage.any ? 0 : backend->check_result, err);
}

static void set_tasks(struct backend *backend)
{
	backend->sync_task = (struct nft_task){run_sync, sync_done, backend};
	backend->check_task = (struct nft_task){run_check, check_done, backend};
	backend->age_task = (struct nft_task){run_age, age_done, backend};
	backend->full_task = (struct nft_task){run_full_look, full_look_done, backend};
}

/* -- open and close */

static void backend_close(struct backend *backend)
{
	if (!backend)
		return;
	backend->events = &backend_no_events;
	nft_watch_free(backend->watch);
	table_sync_free(backend->sync);
	localhost_ports_free(backend->localhost);
	nft_socket_free(backend->counters);
	loop_free(backend->retry_timer);
	loop_free(backend->age_timer);
	loop_free(backend->full_timer);
	loop_free(backend->bind_timer);
	free(backend);
}

static int open_parts(struct backend *backend, struct event_base *loop, struct err *err)
{
	int r = nft_watch_open(loop, backend->settings->family, &watch_ops, backend,
			       &backend->watch, err);

	if (r < 0)
		return r;
	backend->session = nft_watch_session(backend->watch);
	set_tasks(backend);
	backend->sync = table_sync_new(backend->watch, &backend->damage, backend->settings,
				       &backend->events);
	table_sync_on_applied(backend->sync, on_applied, backend);
	backend->retry_timer = loop_timer(loop, on_retry_timer, backend);
	backend->age_timer = loop_timer(loop, on_age_timer, backend);
	backend->full_timer = loop_timer(loop, on_full_timer, backend);
	backend->bind_timer = loop_timer(loop, on_retry_timer, backend);
	open_localhost(backend, loop);
	return 0;
}

static int backend_open(struct event_base *loop, const struct backend_host *host attr_unused,
			const struct settings *settings, const struct backend_events *events,
			struct backend **ret, struct err *err)
{
	struct backend *backend = xcalloc(1, sizeof(*backend));
	int r;

	backend->settings = settings;
	backend->events = events;
	r = open_parts(backend, loop, err);
	if (r < 0) {
		backend_close(backend);
		return r;
	}
	*ret = backend;
	return 0;
}

/* -- the operations */

static void backend_sync(struct backend *backend, const struct plan_delta *delta)
{
	backend->in_sync = true;
	backend->delta = delta;
	nft_watch_busy(backend->watch);
	nft_session_run(backend->session, &backend->sync_task);
}

static bool syncing(const struct backend *backend)
{
	return backend->in_sync;
}

static void need_full_sync(struct backend *backend)
{
	table_sync_need_full(backend->sync);
}

/* nft_watch.h does, from the first good sync on. */
static void watch(struct backend *backend attr_unused)
{
}

/* What a full sync writes is all there is to compare. */
static bool audit(struct backend *backend attr_unused)
{
	return false;
}

static void check(struct backend *backend)
{
	nft_session_run(backend->session, &backend->check_task);
}

static int cleanup(const struct backend_host *host attr_unused, enum family family,
		   unsigned int leftovers attr_unused, struct err *err)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	int r = nft_socket_open(&socket, err);

	if (r < 0)
		return r;
	return table_sync_delete(socket, family, err);
}

static void render_table(const struct backend_render *input, struct text *ret)
{
	script_render(input->settings, input->delta, input->addresses, input->n_addresses, ret);
}

/* A script for `nft -f`, by the name of what it stands for in the other mode. */
static const char *const formats[] = {"restore", NULL};

extern const struct inspect_ops inspect_nftables;

const struct backend_ops backend_nftables = {
	.name = "nftables",
	.wants_service_cidrs = true,
	.formats = formats,
	.usable = usable,
	.open = backend_open,
	.close = backend_close,
	.sync = backend_sync,
	.syncing = syncing,
	.need_full_sync = need_full_sync,
	.watch = watch,
	.audit = audit,
	.check = check,
	.cleanup = cleanup,
	.localhost = localhost,
	.descriptors = descriptors,
	.render = render_table,
	.inspect = &inspect_nftables,
};
