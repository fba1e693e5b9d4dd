/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Syncs of nftables mode in a network namespace: what service ports with affinity have of their own, and what happens
 * where something goes wrong: the kernel refuses a Service, foreign hands have bent the table, clients cannot be read.
 *
 * elements_of_destination(), table_each_client() and clock_now_ns() are wrapped (meson.build), so that one Service can be
 * made to say what no kernel takes, so that reading can fail, and so that time passes.
 */

#include <errno.h>
#include <event2/event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "backends/nftables/clients.h"
#include "backends/nftables/table_sync.h"
#include "base/clock.h"
#include "neighbour.h"
#include "plan_feed.h"
#include "plan_world.h"
#include "quiet_watch.h"
#include "shell.h"

static struct {
	const char *poisoned; /* a service port that the kernel refuses; NULL: none */
	uint32_t from;        /* only with that many endpoints or more */
	bool unreadable;      /* clients cannot be listed */
	int64_t ahead_ns;     /* of the clock */
} faults;

void __real_elements_of_destination(const struct slotted_port *port,
				    const struct destination *destination, uint32_t id, bool slots,
				    element_fn *fn, void *arg);
void __wrap_elements_of_destination(const struct slotted_port *port,
				    const struct destination *destination, uint32_t id, bool slots,
				    element_fn *fn, void *arg);
int64_t __real_clock_now_ns(void);
int64_t __wrap_clock_now_ns(void);
int __real_table_each_client(struct nft_socket *socket, enum family family,
			     const struct table_map *map, table_client_fn *fn,
			     table_restart_fn *restart, void *arg, struct err *err);
int __wrap_table_each_client(struct nft_socket *socket, enum family family,
			     const struct table_map *map, table_client_fn *fn,
			     table_restart_fn *restart, void *arg, struct err *err);

/* The same key with two verdicts. */
void __wrap_elements_of_destination(const struct slotted_port *port,
				    const struct destination *destination, uint32_t id, bool slots,
				    element_fn *fn, void *arg)
{
	struct element element;

	__real_elements_of_destination(port, destination, id, slots, fn, arg);
	if (!faults.poisoned || !slots || !streq(port->plan->id, faults.poisoned) ||
	    port->plan->endpoints->n < faults.from)
		return;
	element_begin(&element, CONTAINER_SERVICE_IPS);
	element_key_addr(&element, &destination->addr);
	element_key_protocol(&element, destination->protocol);
	element_key_port(&element, destination->port);
	element.verdict = VERDICT_DROP;
	fn(arg, &element);
}

int64_t __wrap_clock_now_ns(void)
{
	return __real_clock_now_ns() + faults.ahead_ns;
}

int __wrap_table_each_client(struct nft_socket *socket, enum family family,
			     const struct table_map *map, table_client_fn *fn,
			     table_restart_fn *restart, void *arg, struct err *err)
{
	if (faults.unreadable)
		return err_set(err, -EIO, "made to fail");
	return __real_table_each_client(socket, family, map, fn, restart, arg, err);
}

struct node_host {
	struct world world;
	struct plan_feed feed;
	struct event_base *loop;
	struct nft_watch *watch;
	struct damage damage;
	struct table_sync *sync;
	struct backend_result result;
	struct backend_events events;
	const struct backend_events *told;
	size_t n_refused;
	char refused[256], reason[256]; /* the last */
	bool kept;
	size_t n_full;
	char full[256]; /* the last */
};

static void no_conflict(void *arg attr_unused, const struct conflict *conflict attr_unused)
{
	fail();
}

static void note_refused(void *arg, const struct backend_refusal *refusal)
{
	struct node_host *host = arg;

	host->n_refused++;
	snprintf(host->refused, sizeof(host->refused), "%s %s", refusal->service, refusal->port);
	snprintf(host->reason, sizeof(host->reason), "%s", refusal->reason);
	host->kept = refusal->kept;
}

static void note_full(void *arg, const struct backend_full *full)
{
	struct node_host *host = arg;

	host->n_full++;
	snprintf(host->full, sizeof(host->full), "%s %s %u", full->service, full->port,
		 full->clients);
}

static void open_sync(struct node_host *host)
{
	host->events = (struct backend_events){
		.refused = note_refused,
		.clients_full = note_full,
		.arg = host,
	};
	host->told = &host->events;
	host->sync = table_sync_new(host->watch, &host->damage, &host->world.settings, &host->told);
	host->feed.full = true;
}

static void host_init(struct node_host *host)
{
	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	*host = (struct node_host){.world = world_new()};
	host->world.settings.masquerade_mark = 0x4000;
	host->world.settings.node_ports.match_all = true;
	host->world.settings.mode.affinity_clients = 100;
	faults.poisoned = NULL;
	faults.from = 0;
	faults.unreadable = false;
	host->loop = event_base_new();
	host->watch = quiet_watch(host->loop);
	plan_feed_open(&host->feed, &host->world.settings, host->world.model);
	plan_store_on_conflict(host->feed.store, no_conflict, NULL);
	open_sync(host);
}

static void host_done(struct node_host *host)
{
	table_sync_free(host->sync);
	nft_watch_free(host->watch);
	event_base_free(host->loop);
	plan_feed_close(&host->feed);
	world_done(&host->world);
}

static int host_sync(struct node_host *host)
{
	table_sync_run(host->sync, plan_feed_next(&host->feed), &host->result);
	plan_feed_end(&host->feed, host->result.error == 0);
	return host->result.error;
}

static void expect_sync(struct node_host *host)
{
	if (host_sync(host) < 0)
		fail_msg("%s", host->result.err.text);
}

/* ns1/NAME at 10.96.0.NUMBER, endpoints 10.1.1.1 and so on, all of that node. */
static void serve_at(struct node_host *host, const char *name, int number, int n_endpoints,
		     int sticky, const char *node)
{
	cleanup_free char *key = xasprintf("ns1/%s", name);
	cleanup_free char *slice_key = xasprintf("ns1/%s-1", name);
	cleanup_free char *ip = xasprintf("10.96.0.%d", number);
	struct service *service = build_service(key, ip);
	struct draft *slice = build_slice(slice_key, name, FAMILY_IPV4);

	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	service->sticky_seconds = (uint32_t)sticky;
	model_set_service(host->world.model, service);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	for (int i = 1; i <= n_endpoints; i++) {
		cleanup_free char *endpoint = xasprintf("10.1.1.%d", i);

		build_endpoint(slice, endpoint, node, BUILD_READY);
	}
	build_set_slice(host->world.model, slice);
}

static void serve(struct node_host *host, const char *name, int number, int n_endpoints, int sticky)
{
	serve_at(host, name, number, n_endpoints, sticky, OTHER);
}

static void run(const char *command)
{
	free(shell_output(command));
}

static bool lists(const char *what, const char *words)
{
	cleanup_free char *command = xasprintf("nft list %s", what);
	cleanup_free char *output = shell_output(command);

	return strstr(output, words) != NULL;
}

static bool has_chain(const char *name)
{
	cleanup_free char *words = xasprintf("chain %s {", name);

	return lists("table ip kube-proxy", words);
}

static bool is_served(int number)
{
	cleanup_free char *words = xasprintf("10.96.0.%d . tcp . 80", number);

	return lists("map ip kube-proxy service-ips", words);
}

/* Elements of a Service that lead to its endpoints. */
static int slots_of(int number)
{
	cleanup_free char *output = shell_output("nft list map ip kube-proxy endpoints");
	cleanup_free char *words = xasprintf("10.96.0.%d . tcp . 80 . ", number);
	int n = 0;

	for (const char *at = output; (at = strstr(at, words)); at += strlen(words))
		n++;
	return n;
}

/* -- a Service that the kernel refuses */

/* How long it is until then. */
static int64_t next_try_ns(const struct node_host *host)
{
	int64_t next = refused_services_next_ns(table_sync_refused(host->sync));

	return next == REFUSED_NONE ? next : next - clock_now_ns();
}

static void expect_left_out(struct node_host *host)
{
	expect_sync(host);
	assert_int_equal(host->n_refused, 1);
	assert_string_equal(host->refused, "ns1/bad ns1/bad:http");
	assert_non_null(strstr(host->reason, "service-ips"));
	assert_non_null(strstr(host->reason, strerror(EEXIST)));
	assert_true(is_served(1));
	assert_true(is_served(3));
	assert_false(is_served(2));
}

static void a_refused_service_is_named_and_left_out(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve(&host, "a", 1, 2, 0);
	serve(&host, "bad", 2, 2, 0);
	serve(&host, "c", 3, 2, 0);
	faults.poisoned = "ns1/bad:http";
	expect_left_out(&host);
	host_done(&host);
}

static void one_that_comes_later_does_not_stop_the_others(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve(&host, "a", 1, 2, 0);
	expect_sync(&host);
	faults.poisoned = "ns1/bad:http";
	serve(&host, "bad", 2, 2, 0);
	serve(&host, "c", 3, 2, 0);
	expect_left_out(&host);
	serve(&host, "d", 4, 2, 0);
	expect_sync(&host);
	assert_false(host.result.full);
	assert_true(is_served(4));
	assert_int_equal(host.n_refused, 1);
	host_done(&host);
}

/* Of three Services one changes to what the kernel refuses. */
static void change_to_what_is_refused(struct node_host *host)
{
	host_init(host);
	serve(host, "a", 1, 2, 0);
	serve(host, "bad", 2, 2, 0);
	serve(host, "c", 3, 2, 0);
	expect_sync(host);
	faults.poisoned = "ns1/bad:http";
	faults.from = 3;
	serve(host, "bad", 2, 3, 0);
	serve(host, "c", 3, 3, 0);
	expect_sync(host);
}

static void what_the_kernel_had_of_a_refused_service_stays(void **state attr_unused)
{
	struct node_host host;

	change_to_what_is_refused(&host);
	assert_int_equal(host.n_refused, 1);
	assert_true(host.kept);
	assert_int_equal(slots_of(2), 2);
	assert_int_equal(slots_of(3), 3);
	table_sync_need_full(host.sync); /* it stays over what comes later */
	expect_sync(&host);
	assert_int_equal(slots_of(2), 2);
	faults.ahead_ns += REFUSED_FIRST_NS; /* and over another attempt */
	expect_sync(&host);
	assert_int_equal(slots_of(2), 2);
	assert_int_equal(host.n_refused, 1);
	faults.poisoned = NULL;
	faults.ahead_ns += 2 * REFUSED_FIRST_NS;
	expect_sync(&host);
	assert_int_equal(slots_of(2), 3);
	host_done(&host);
}

static void it_goes_when_it_is_deleted(void **state attr_unused)
{
	struct node_host host;

	change_to_what_is_refused(&host);
	model_remove_service(host.world.model, "ns1/bad");
	expect_sync(&host);
	assert_false(is_served(2));
	assert_true(is_served(1) && is_served(3));
	assert_true(next_try_ns(&host) == REFUSED_NONE);
	host_done(&host);
}

static void it_goes_when_the_kernel_refuses_that_too(void **state attr_unused)
{
	struct node_host host;

	change_to_what_is_refused(&host);
	faults.from = 0;
	table_sync_need_full(host.sync);
	expect_sync(&host);
	assert_false(is_served(2));
	assert_true(is_served(1) && is_served(3));
	assert_int_equal(host.n_refused, 2); /* told once more: it is not kept any longer */
	assert_false(host.kept);
	host_done(&host);
}

static void start_with_one_left_out(struct node_host *host)
{
	host_init(host);
	serve(host, "a", 1, 2, 0);
	serve(host, "c", 3, 2, 0);
	expect_sync(host);
	faults.poisoned = "ns1/bad:http";
	serve(host, "bad", 2, 2, 0);
	expect_left_out(host);
	assert_in_range(next_try_ns(host), 1, REFUSED_FIRST_NS);
}

static void it_is_tried_again_later_and_later_still(void **state attr_unused)
{
	struct node_host host;

	start_with_one_left_out(&host);
	faults.ahead_ns += REFUSED_FIRST_NS;
	expect_sync(&host);
	assert_in_range(next_try_ns(&host), REFUSED_FIRST_NS, 2 * REFUSED_FIRST_NS);
	assert_int_equal(host.n_refused, 1); /* it has been told */
	faults.poisoned = NULL;
	expect_sync(&host); /* not yet */
	assert_false(is_served(2));
	faults.ahead_ns += 2 * REFUSED_FIRST_NS;
	expect_sync(&host);
	assert_true(is_served(2));
	assert_false(host.result.full);
	assert_true(next_try_ns(&host) == REFUSED_NONE);
	host_done(&host);
}

static void it_is_tried_again_when_it_changes(void **state attr_unused)
{
	struct node_host host;

	start_with_one_left_out(&host);
	faults.poisoned = NULL;
	serve(&host, "bad", 2, 3, 0);
	expect_sync(&host);
	assert_true(is_served(2));
	assert_true(next_try_ns(&host) == REFUSED_NONE);
	host_done(&host);
}

static void one_that_goes_is_forgotten(void **state attr_unused)
{
	struct node_host host;

	start_with_one_left_out(&host);
	model_remove_service(host.world.model, "ns1/bad");
	expect_sync(&host);
	assert_true(next_try_ns(&host) == REFUSED_NONE);
	host_done(&host);
}

/* -- a Service that asks for the same twice */

/* No API server accepts it, but it may stand in a manifest. */
static void a_service_with_two_ports_of_one_number_comes_and_goes(void **state attr_unused)
{
	struct service *service;
	struct node_host host;

	host_init(&host);
	serve(&host, "other", 1, 1, 0);
	expect_sync(&host);
	serve(&host, "twice", 2, 1, 0);
	service = build_service("ns1/twice", "10.96.0.2");
	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	build_port(service, "more", PROTOCOL_TCP, 80, 0);
	model_set_service(host.world.model, service);
	expect_sync(&host);
	assert_true(is_served(2));
	model_remove_service(host.world.model, "ns1/twice");
	expect_sync(&host);
	assert_false(is_served(2));
	assert_true(is_served(1));
	host_done(&host);
}

/* -- Services that ask for the same */

static void ask(struct node_host *host, const char *key, const char *ip, uint32_t created_s)
{
	struct service *service = build_service(key, ip);

	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	build_external_ip(service, "198.51.100.1");
	service->created_s = created_s;
	model_set_service(host->world.model, service);
}

static void one_that_was_made_again_goes_behind_those_who_waited(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	plan_store_on_conflict(host.feed.store, NULL, NULL);
	ask(&host, "ns1/first", "10.96.0.1", 100);
	ask(&host, "ns1/second", "10.96.0.2", 200);
	ask(&host, "ns1/third", "10.96.0.3", 300);
	expect_sync(&host);
	model_remove_service(host.world.model, "ns1/first");
	ask(&host, "ns1/second", "10.96.0.2", 400);
	expect_sync(&host);
	assert_false(host.result.full);
	assert_true(lists("map ip kube-proxy no-endpoint-services",
			  "198.51.100.1 . tcp . 80 comment \"ns1/third:http\""));
	host_done(&host);
}

/* -- foreign hands */

static void an_element_of_somebody_else_is_overwritten_in_the_same_sync(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve(&host, "a", 1, 2, 0);
	expect_sync(&host);
	run("nft add element ip kube-proxy service-ips '{ 10.96.0.2 . tcp . 80 : drop }'");
	serve(&host, "b", 2, 3, 0);
	expect_sync(&host);
	assert_true(host.result.full);
	assert_true(lists("map ip kube-proxy service-ips",
			  "10.96.0.2 . tcp . 80 comment \"ns1/b:http\" : goto pick-3"));
	assert_int_equal(host.n_refused, 0);
	host_done(&host);
}

/* The first Service with affinity has number 1, and its endpoints the next. */
#define CLIENT(address, id)                                                                       \
	"nft add element ip kube-proxy clients-1 '{ " address " timeout 3h expires 2h : 1000:" id \
	" }'"

/* What carries our name but has other types cannot be emptied and filled again. */
static void a_bent_table_is_replaced_and_clients_stay(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve(&host, "a", 1, 2, 10800);
	expect_sync(&host);
	run(CLIENT("192.0.2.1", "2"));
	run("nft flush map ip kube-proxy cluster-picks");
	run("nft flush chain ip kube-proxy to-cluster");
	run("nft delete map ip kube-proxy cluster-picks");
	run("nft add map ip kube-proxy cluster-picks '{ type mark : verdict; }'");
	table_sync_need_full(host.sync);
	expect_sync(&host);
	assert_true(lists("map ip kube-proxy cluster-picks", "10.96.0.1 . tcp . 80 : goto pick-2"));
	assert_true(lists("map ip kube-proxy clients-1", "192.0.2.1 timeout 3h expires 1h59m"));
	assert_int_equal(host.n_refused, 0);
	host_done(&host);
}

/* -- what service ports with affinity have of their own */

static bool has_map(const char *name)
{
	cleanup_free char *words = xasprintf("map %s {", name);

	return lists("table ip kube-proxy", words);
}

static bool remembers(const char *map, const char *client)
{
	cleanup_free char *what = xasprintf("map ip kube-proxy %s", map);

	return lists(what, client);
}

static void start_with_clients(struct node_host *host)
{
	host_init(host);
	serve(host, "a", 1, 3, 10800);
	expect_sync(host);
	run(CLIENT("192.0.2.1", "2"));
	run(CLIENT("192.0.2.3", "4"));
}

static void each_has_a_map_and_others_have_none(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve(&host, "a", 1, 1, 60);
	serve(&host, "b", 2, 1, 90);
	serve(&host, "c", 3, 1, 0);
	expect_sync(&host);
	assert_true(lists("map ip kube-proxy clients-1", "size 100"));
	assert_true(lists("map ip kube-proxy clients-1", "10.96.0.1 ns1/a:http/tcp"));
	assert_true(lists("map ip kube-proxy clients-3", "10.96.0.2 ns1/b:http/tcp"));
	assert_true(lists("chain ip kube-proxy remember-1", "timeout 1m : meta priority"));
	assert_true(lists("chain ip kube-proxy remember-3", "timeout 1m30s : meta priority"));
	assert_false(has_map("clients-5") || has_map("local-clients-1"));
	host_done(&host);
}

/* Nothing is read, and no client is written, however many there are. */
static void an_endpoint_that_goes_takes_its_id_along(void **state attr_unused)
{
	struct node_host host;

	start_with_clients(&host);
	assert_true(lists("map ip kube-proxy member-endpoints", "1000:4 : 10.1.1.3"));
	serve(&host, "a", 1, 2, 10800);
	faults.unreadable = true;
	expect_sync(&host);
	assert_false(host.result.full);
	assert_int_equal(host.result.cleanup_failures, 0);
	assert_false(lists("map ip kube-proxy member-endpoints", "1000:4 "));
	assert_true(lists("map ip kube-proxy member-endpoints", "1000:2 : 10.1.1.1"));
	serve(&host, "a", 1, 3, 10800); /* it comes back as another */
	expect_sync(&host);
	assert_true(lists("map ip kube-proxy member-endpoints", "1000:5 : 10.1.1.3"));
	host_done(&host);
}

static void a_time_out_that_changes_leaves_the_clients_alone(void **state attr_unused)
{
	struct node_host host;

	start_with_clients(&host);
	serve(&host, "a", 1, 3, 60);
	expect_sync(&host);
	assert_false(host.result.full);
	assert_true(lists("chain ip kube-proxy remember-1", "timeout 1m : meta priority"));
	assert_false(lists("chain ip kube-proxy remember-1", "timeout 3h"));
	assert_true(remembers("clients-1", "192.0.2.1 "));
	host_done(&host);
}

static void expect_nothing_of_one(void)
{
	assert_false(has_map("clients-1") || has_map("local-clients-1") || has_chain("recall-1") ||
		     has_chain("local-recall-1") || has_chain("remember-1"));
}

static void what_is_no_longer_wanted_goes(void **state attr_unused)
{
	struct node_host host;

	for (int full = 0; full < 2; full++) {
		for (int gone = 0; gone < 3; gone++) {
			start_with_clients(&host);
			if (gone == 0)
				model_remove_service(host.world.model, "ns1/a");
			else if (gone == 1)
				serve(&host, "a", 1, 3, 0);
			else
				serve(&host, "a", 7, 3, 10800); /* deleted and made again */
			if (full)
				table_sync_need_full(host.sync);
			expect_sync(&host);
			assert_int_equal(host.result.full, full);
			expect_nothing_of_one();
			assert_int_equal(has_map("clients-5"), gone == 2);
			host_done(&host);
		}
	}
}

/* externalTrafficPolicy Local. */
static void serve_local(struct node_host *host, bool local)
{
	struct service *service = build_service("ns1/a", "10.96.0.1");

	serve_at(host, "a", 1, 2, 60, NODE);
	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	service->sticky_seconds = 60;
	service->external_local = local;
	model_set_service(host->world.model, service);
}

static void a_local_policy_has_a_second_map(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve_local(&host, true);
	expect_sync(&host);
	run(CLIENT("192.0.2.1", "2"));
	assert_true(has_map("local-clients-1") && has_chain("local-recall-1"));
	serve_local(&host, false);
	expect_sync(&host);
	assert_false(host.result.full);
	assert_false(has_map("local-clients-1") || has_chain("local-recall-1"));
	assert_true(remembers("clients-1", "192.0.2.1 "));
	serve_local(&host, true);
	expect_sync(&host);
	assert_false(host.result.full);
	assert_true(has_map("local-clients-1") && has_chain("local-recall-1"));
	assert_true(remembers("clients-1", "192.0.2.1 "));
	host_done(&host);
}

static void restart(struct node_host *host)
{
	table_sync_free(host->sync);
	open_sync(host);
	expect_sync(host);
	assert_true(host->result.full);
}

/* Another Service now comes before it in the order of keys. */
static void a_new_process_goes_on_with_the_clients(void **state attr_unused)
{
	struct node_host host;

	start_with_clients(&host);
	serve(&host, "0", 9, 1, 60);
	serve(&host, "a", 1, 2, 10800);
	restart(&host);
	assert_true(remembers("clients-1", "192.0.2.1 ") && remembers("clients-1", "192.0.2.3 "));
	assert_true(lists("map ip kube-proxy clients-1", "10.96.0.1 ns1/a:http/tcp"));
	assert_true(lists("map ip kube-proxy member-endpoints", "1000:2 : 10.1.1.1"));
	/* 1000:4 is still in the map of clients, and must mean nobody; the mark is at 0x405 */
	assert_false(lists("map ip kube-proxy member-endpoints", "1000:4 "));
	assert_false(lists("map ip kube-proxy member-endpoints", "1000:5 "));
	assert_true(has_map("clients-1029"));
	host_done(&host);
}

static void clients_move_to_a_map_of_another_size(void **state attr_unused)
{
	struct node_host host;

	start_with_clients(&host);
	host.world.settings.mode.affinity_clients = 200000;
	restart(&host);
	assert_true(lists("map ip kube-proxy clients-1", "size 200000"));
	assert_true(remembers("clients-1", "192.0.2.1 timeout 3h expires 1h59m"));
	assert_true(remembers("clients-1", "192.0.2.3 timeout 3h expires 1h59m"));
	host.world.settings.mode.affinity_clients = 1;
	restart(&host);
	assert_true(lists("map ip kube-proxy clients-1", "size 1\n"));
	assert_true(remembers("clients-1", "192.0.2.1 ") != remembers("clients-1", "192.0.2.3 "));
	faults.unreadable = true;
	host.world.settings.mode.affinity_clients = 5;
	restart(&host);
	assert_true(lists("map ip kube-proxy clients-1", "size 5"));
	assert_false(remembers("clients-1", "192.0.2."));
	host_done(&host);
}

/* One map for all, and other types under names that stand there still. */
static void the_table_of_another_version_is_replaced(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	run("nft 'add table ip kube-proxy { comment \"rules for kube-proxy, by Portolan (layout "
	    "2)\"; "
	    "}; add map ip kube-proxy affinity { type ipv4_addr . classid : ipv4_addr . "
	    "inet_service; flags dynamic,timeout; }; add set ip kube-proxy members { type mark; "
	    "}'");
	serve(&host, "a", 1, 2, 60);
	expect_sync(&host);
	assert_false(has_map("affinity"));
	assert_true(has_map("members") && has_map("clients-1"));
	host_done(&host);
}

static void a_full_map_is_told_once_until_there_is_room(void **state attr_unused)
{
	struct node_host host;

	start_with_clients(&host);
	serve(&host, "b", 2, 1, 60); /* number 5 */
	expect_sync(&host);
	assert_true(table_sync_has_affinity(host.sync));
	assert_int_equal(table_sync_look_for_full(host.sync), 0);
	run("nft add element ip kube-proxy full-clients '{ 1000:1 timeout 60s, 1000:7 timeout 60s "
	    "}'"); /* the last is of no port */
	assert_int_equal(table_sync_look_for_full(host.sync), 1);
	assert_int_equal(table_sync_look_for_full(host.sync), 1);
	assert_int_equal(host.n_full, 1);
	assert_string_equal(host.full, "ns1/a ns1/a:http 100");
	run("nft add element ip kube-proxy full-clients '{ 1000:5 timeout 60s }'");
	assert_int_equal(table_sync_look_for_full(host.sync), 2);
	assert_int_equal(host.n_full, 2);
	assert_string_equal(host.full, "ns1/b ns1/b:http 100");
	run("nft flush set ip kube-proxy full-clients");
	assert_int_equal(table_sync_look_for_full(host.sync), 0);
	run("nft add element ip kube-proxy full-clients '{ 1000:1 timeout 60s }'");
	assert_int_equal(table_sync_look_for_full(host.sync), 1);
	assert_int_equal(host.n_full, 3);
	host_done(&host);
}

/* -- chains with a number */

static void chains_that_nobody_uses_go_after_two_rounds(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve(&host, "a", 1, 20, 0);
	expect_sync(&host);
	assert_false(table_sync_idle(host.sync));
	serve(&host, "a", 1, 2, 0);
	expect_sync(&host);
	assert_true(table_sync_idle(host.sync));
	assert_true(table_sync_age(host.sync));
	assert_true(has_chain("pick-20"));
	assert_true(table_sync_age(host.sync));
	assert_false(has_chain("pick-20"));
	assert_true(has_chain("pick-16"));
	assert_false(table_sync_idle(host.sync));
	serve(&host, "a", 1, 20, 0);
	expect_sync(&host);
	assert_false(host.result.full);
	assert_true(has_chain("pick-20"));
	host_done(&host);
}

/* Chain pick-20. */
static void start_with_an_idle_chain(struct node_host *host)
{
	host_init(host);
	serve(host, "a", 1, 20, 0);
	expect_sync(host);
	serve(host, "a", 1, 2, 0);
	expect_sync(host);
}

/* Somebody else's rule leads to it. The next sync is full, and its result tells of it. */
static void a_chain_that_cannot_be_removed_is_a_failed_cleanup(void **state attr_unused)
{
	struct node_host host;

	start_with_an_idle_chain(&host);
	assert_true(table_sync_age(host.sync));
	run("nft 'add chain ip kube-proxy mine; add rule ip kube-proxy mine goto pick-20'");
	assert_false(table_sync_age(host.sync));
	expect_sync(&host);
	assert_true(host.result.full);
	assert_int_equal(host.result.cleanup_failures, 1);
	assert_false(has_chain("pick-20"));
	expect_sync(&host);
	assert_int_equal(host.result.cleanup_failures, 0);
	host_done(&host);
}

/* What was forgotten could not be taken back, and the next sync had to be full. */
static void chains_stay_until_damage_is_repaired(void **state attr_unused)
{
	struct node_host host;

	start_with_an_idle_chain(&host);
	assert_true(table_sync_age(host.sync));
	host.damage.any = true;
	host.damage.chains[host.damage.n_chains++] = (struct chain){.id = CHAIN_SERVICES};
	assert_false(table_sync_age(host.sync));
	expect_sync(&host);
	assert_false(host.result.full);
	assert_true(has_chain("pick-20"));
	assert_true(table_sync_age(host.sync));
	assert_false(has_chain("pick-20"));
	host_done(&host);
}

static void a_chain_that_is_used_again_stays(void **state attr_unused)
{
	struct node_host host;

	start_with_an_idle_chain(&host);
	table_sync_age(host.sync);
	serve(&host, "a", 1, 20, 0);
	expect_sync(&host);
	table_sync_age(host.sync);
	assert_true(has_chain("pick-20"));
	host_done(&host);
}

/* What they lead to goes a round later. */
static void chains_behind_others_go_after_them(void **state attr_unused)
{
	struct node_host host;
	struct service *service;

	host_init(&host);
	serve(&host, "a", 1, 20, 0);
	service = build_service("ns1/a", "10.96.0.1");
	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	model_set_service(host.world.model, service);
	expect_sync(&host);
	assert_true(has_chain("nodeport-masq-pick-20") && has_chain("nodeport-pick-20"));
	serve(&host, "a", 1, 1, 0);
	expect_sync(&host);
	table_sync_age(host.sync);
	table_sync_age(host.sync);
	assert_false(has_chain("nodeport-masq-pick-20"));
	table_sync_age(host.sync);
	assert_false(has_chain("nodeport-pick-20"));
	assert_false(table_sync_idle(host.sync));
	host_done(&host);
}

/* -- endpoints that may reach themselves */

static bool may_reach_itself(int endpoint)
{
	cleanup_free char *words =
		xasprintf("10.1.1.%d . 10.1.1.%d . tcp . 8080", endpoint, endpoint);

	return lists("set ip kube-proxy hairpin-connections", words);
}

/* The second of the node's two endpoints has just left. */
static void start_with_one_that_left(struct node_host *host)
{
	host_init(host);
	serve_at(host, "a", 1, 2, 0, NODE);
	expect_sync(host);
	assert_false(table_sync_idle(host->sync));
	serve_at(host, "a", 1, 1, 0, NODE);
	expect_sync(host);
	assert_false(host->result.full);
	assert_false(lists("map ip kube-proxy endpoints", "10.1.1.2"));
}

/* Its last packets may still be on their way. */
static void an_endpoint_that_left_may_reach_itself_for_two_rounds(void **state attr_unused)
{
	struct node_host host;

	start_with_one_that_left(&host);
	assert_true(may_reach_itself(2) && table_sync_idle(host.sync));
	assert_true(table_sync_age(host.sync));
	assert_true(may_reach_itself(2) && table_sync_idle(host.sync));
	assert_true(table_sync_age(host.sync));
	assert_false(may_reach_itself(2) || table_sync_idle(host.sync));
	assert_true(may_reach_itself(1));
	host_done(&host);
}

static void it_may_after_a_full_sync_too(void **state attr_unused)
{
	struct node_host host;

	start_with_one_that_left(&host);
	assert_true(table_sync_age(host.sync));
	model_remove_service(host.world.model, "ns1/a");
	table_sync_need_full(host.sync);
	expect_sync(&host);
	assert_true(host.result.full);
	assert_true(may_reach_itself(1) && may_reach_itself(2));
	assert_true(table_sync_age(host.sync));
	assert_true(may_reach_itself(1));
	assert_false(may_reach_itself(2));
	assert_true(table_sync_age(host.sync));
	assert_false(may_reach_itself(1) || table_sync_idle(host.sync));
	host_done(&host);
}

static void it_may_when_a_service_is_refused_meanwhile(void **state attr_unused)
{
	struct node_host host;

	start_with_one_that_left(&host);
	faults.poisoned = "ns1/bad:http";
	serve(&host, "bad", 2, 2, 0);
	expect_sync(&host);
	assert_int_equal(host.n_refused, 1);
	assert_true(may_reach_itself(1) && may_reach_itself(2));
	host_done(&host);
}

static void one_that_comes_back_stays(void **state attr_unused)
{
	struct node_host host;

	start_with_one_that_left(&host);
	assert_true(table_sync_age(host.sync));
	serve_at(&host, "a", 1, 2, 0, NODE);
	expect_sync(&host);
	assert_false(host.result.full || table_sync_idle(host.sync));
	assert_true(table_sync_age(host.sync));
	assert_true(may_reach_itself(2));
	host_done(&host);
}

/* -- the other family of the process, which has its turn in front of the kernel meanwhile */

struct sync_task {
	struct nft_task task;
	struct node_host *host;
	bool done;
};

static void run_sync(void *arg)
{
	const struct sync_task *sync = arg;

	host_sync(sync->host);
}

static void note_synced(void *arg)
{
	struct sync_task *sync = arg;

	sync->done = true;
}

/* A sync that comes to where it waits for its turn, and has it after something was written. */
static void sync_behind(struct node_host *host, const char *command)
{
	struct sync_task sync = {.task = {run_sync, note_synced, &sync}, .host = host};
	struct neighbour neighbour;

	neighbour_open(&neighbour, host->loop);
	neighbour_run(&neighbour);
	nft_session_run(nft_watch_session(host->watch), &sync.task);
	for (size_t i = 0; i < 10; i++)
		event_base_loop(host->loop, EVLOOP_ONCE);
	assert_false(sync.done);
	free(shell_output(command));
	neighbour.may_end = true;
	while (!sync.done)
		event_base_loop(host->loop, EVLOOP_ONCE);
	assert_int_equal(host->result.error, 0);
	nft_session_free(neighbour.session);
}

/* Its transaction is no foreign one: what comes behind it is made and sent once. */
static void a_sync_stands_on_what_the_other_family_wrote(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	serve(&host, "a", 1, 2, 0);
	sync_behind(&host, "nft add table ip one");
	assert_true(host.result.full);
	assert_int_equal(nft_watch_n_resent(host.watch), 0);
	serve(&host, "b", 2, 2, 0);
	sync_behind(&host, "nft add table ip two");
	assert_false(host.result.full);
	assert_int_equal(nft_watch_n_resent(host.watch), 0);
	host_done(&host);
}

/* The wait is for longer than clients may be read. */
static void clients_move_after_a_wait_for_the_other_family(void **state attr_unused)
{
	struct node_host host;

	start_with_clients(&host);
	host.world.settings.mode.affinity_clients = 200000;
	table_sync_free(host.sync);
	open_sync(&host);
	sync_behind(&host, "sleep 1; nft add table ip one");
	assert_true(lists("map ip kube-proxy clients-1", "size 200000"));
	assert_true(remembers("clients-1", "192.0.2.1 ") && remembers("clients-1", "192.0.2.3 "));
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sync_stands_on_what_the_other_family_wrote),
		cmocka_unit_test(clients_move_after_a_wait_for_the_other_family),
		cmocka_unit_test(a_refused_service_is_named_and_left_out),
		cmocka_unit_test(what_the_kernel_had_of_a_refused_service_stays),
		cmocka_unit_test(it_goes_when_it_is_deleted),
		cmocka_unit_test(it_goes_when_the_kernel_refuses_that_too),
		cmocka_unit_test(one_that_comes_later_does_not_stop_the_others),
		cmocka_unit_test(it_is_tried_again_later_and_later_still),
		cmocka_unit_test(it_is_tried_again_when_it_changes),
		cmocka_unit_test(one_that_goes_is_forgotten),
		cmocka_unit_test(a_service_with_two_ports_of_one_number_comes_and_goes),
		cmocka_unit_test(one_that_was_made_again_goes_behind_those_who_waited),
		cmocka_unit_test(an_element_of_somebody_else_is_overwritten_in_the_same_sync),
		cmocka_unit_test(a_bent_table_is_replaced_and_clients_stay),
		cmocka_unit_test(each_has_a_map_and_others_have_none),
		cmocka_unit_test(an_endpoint_that_goes_takes_its_id_along),
		cmocka_unit_test(a_time_out_that_changes_leaves_the_clients_alone),
		cmocka_unit_test(what_is_no_longer_wanted_goes),
		cmocka_unit_test(a_local_policy_has_a_second_map),
		cmocka_unit_test(a_new_process_goes_on_with_the_clients),
		cmocka_unit_test(clients_move_to_a_map_of_another_size),
		cmocka_unit_test(the_table_of_another_version_is_replaced),
		cmocka_unit_test(a_full_map_is_told_once_until_there_is_room),
		cmocka_unit_test(chains_that_nobody_uses_go_after_two_rounds),
		cmocka_unit_test(a_chain_that_cannot_be_removed_is_a_failed_cleanup),
		cmocka_unit_test(chains_stay_until_damage_is_repaired),
		cmocka_unit_test(a_chain_that_is_used_again_stays),
		cmocka_unit_test(chains_behind_others_go_after_them),
		cmocka_unit_test(an_endpoint_that_left_may_reach_itself_for_two_rounds),
		cmocka_unit_test(it_may_after_a_full_sync_too),
		cmocka_unit_test(it_may_when_a_service_is_refused_meanwhile),
		cmocka_unit_test(one_that_comes_back_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
