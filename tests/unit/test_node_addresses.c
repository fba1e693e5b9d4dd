/* SPDX-License-Identifier: Apache-2.0 */

/*
 * NodePorts on chosen addresses in nftables mode, while the host's addresses come, go, or cannot be
 * read: a process that may open no more files gets no answer about them.
 */

#include <event2/event.h>
#include <sys/resource.h>

#include "backends/nftables/table_sync.h"
#include "fake_tools.h"
#include "plan_feed.h"
#include "quiet_watch.h"

static void sync_now(struct table_sync *sync, struct plan_feed *feed)
{
	struct backend_result result;

	table_sync_run(sync, plan_feed_next(feed), &result);
	plan_feed_end(feed, result.error == 0);
	if (result.error < 0)
		fail_msg("%s", result.err.text);
}

/* As if all files were open that may be. */
static void sync_blind(struct table_sync *sync, struct plan_feed *feed)
{
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	sync_now(sync, feed);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void shell(const char *command)
{
	assert_int_equal(system(command), 0);
}

static bool answers_on(const char *address)
{
	cleanup_free char *command = xasprintf(
		"nft list set ip kube-proxy nodeport-ips | grep -q '[ {]%s[ ,]'", address);

	return system(command) == 0;
}

static void the_last_known_addresses_stay_when_none_can_be_read(void **state attr_unused)
{
	struct prefix cidr;
	struct settings settings = {.family = FAMILY_IPV4, .node_name = "a", .masquerade_mark = 1};
	const struct backend_events *events = &backend_no_events;
	struct model *model = model_new("a", 0);
	struct event_base *loop = event_base_new();
	struct damage damage = {0};
	struct nft_watch *watch;
	struct table_sync *sync;
	struct plan_feed feed;

	private_network();
	shell("ip link add d0 type bridge && ip addr add 192.0.2.5/24 dev d0 && "
	      "ip addr add 198.51.100.5/24 dev d0");
	assert_int_equal(prefix_parse("192.0.2.0/24", &cidr), 0);
	node_ports_init(&settings.node_ports, FAMILY_IPV4, &cidr, 1);
	watch = quiet_watch(loop);
	sync = table_sync_new(watch, &damage, &settings, &events);
	plan_feed_open(&feed, &settings, model);
	sync_now(sync, &feed);
	assert_true(answers_on("192.0.2.5"));
	assert_false(answers_on("198.51.100.5"));
	sync_blind(sync, &feed);
	assert_true(answers_on("192.0.2.5"));
	table_sync_need_full(sync);
	sync_blind(sync, &feed);
	assert_true(answers_on("192.0.2.5"));
	shell("ip addr del 192.0.2.5/24 dev d0 && ip addr add 192.0.2.6/24 dev d0");
	sync_now(sync, &feed);
	assert_true(answers_on("192.0.2.6"));
	assert_false(answers_on("192.0.2.5"));
	table_sync_free(sync);
	nft_watch_free(watch);
	event_base_free(loop);
	plan_feed_close(&feed);
	model_free(model);
	node_ports_done(&settings.node_ports);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_known_addresses_stay_when_none_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
