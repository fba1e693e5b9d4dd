/* SPDX-License-Identifier: Apache-2.0 */

/* What others do to the table of nftables mode, in a network namespace, and what is told of it. */

#include <errno.h>
#include <event2/event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/log.h"
#include "plan_world.h"

struct node_host {
	struct world world;
	struct event_base *loop;
	struct backend *backend;
	struct backend_events events;
	struct backend_result result;
	size_t n_flushed, n_repaired;
	char what[1024]; /* of the last flush */
	int log;
};

static void on_synced(void *arg, const struct backend_result *result)
{
	struct node_host *host = arg;

	host->result = *result;
	host->result.changes = NULL;
}

static void on_flushed(void *arg, const char *what)
{
	struct node_host *host = arg;

	host->n_flushed++;
	snprintf(host->what, sizeof(host->what), "%s", what);
}

static void on_repaired(void *arg)
{
	struct node_host *host = arg;

	host->n_repaired++;
}

static void expect_sync(struct node_host *host)
{
	backend_nftables.sync(host->backend, host->world.model);
	if (host->result.error < 0)
		fail_msg("%s", host->result.err.text);
}

/* Service ns1/svc1 at 10.96.0.1, synced and watched. */
static void host_init(struct node_host *host)
{
	struct service *service = build_service(KEY, "10.96.0.1");
	struct slice *slice = new_slice();
	struct err err;

	if (unshare(CLONE_NEWNET) < 0)
		fail_msg("no private network namespace: %s", strerror(errno));
	*host = (struct node_host){.world = world_new(), .log = memfd_create("log", 0)};
	host->world.settings.masquerade_mark = 0x4000;
	host->world.settings.node_ports.match_all = true;
	host->events = (struct backend_events){
		.synced = on_synced,
		.flushed = on_flushed,
		.repaired = on_repaired,
		.arg = host,
	};
	host->loop = event_base_new();
	build_port(service, "", PROTOCOL_TCP, 80, 0);
	model_set_service(host->world.model, service);
	build_endpoint(slice, "10.1.1.1", OTHER, BUILD_READY);
	model_set_slice(host->world.model, slice);
	if (backend_nftables.open(host->loop, &host->world.settings, &host->events, &host->backend,
				  &err) < 0)
		fail_msg("%s", err.text);
	expect_sync(host);
	backend_nftables.watch(host->backend);
	log_set_fd(host->log);
}

static void host_done(struct node_host *host)
{
	log_set_fd(STDERR_FILENO);
	close(host->log);
	backend_nftables.close(host->backend);
	world_done(&host->world);
	event_base_free(host->loop);
}

static void run(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s failed", command);
}

static void expect_logged(const struct node_host *host, const char *part)
{
	char text[8192];
	ssize_t n = pread(host->log, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	if (!strstr(text, part))
		fail_msg("'%s' is not in the log:\n%s", part, text);
}

static void expect_flush(struct node_host *host, const char *command, const char *what)
{
	size_t before = host->n_flushed;

	run(command);
	while (host->n_flushed == before)
		event_base_loop(host->loop, EVLOOP_ONCE);
	assert_string_equal(host->what, what);
	expect_sync(host);
	assert_true(host->result.full);
	assert_int_equal(host->n_flushed, before + 1);
	assert_int_equal(host->n_repaired, 0);
	run("nft get element ip kube-proxy service-ips '{ 10.96.0.1 . tcp . 80 }' >/dev/null");
}

#define ELEMENT "element ip kube-proxy service-ips '{ 10.96.0.1 . tcp . 80 }'"

static void damage_is_told_by_its_name(void **state attr_unused)
{
	static const struct {
		const char *command, *what;
	} damages[] = {
		{"nft delete " ELEMENT, "element of map service-ips deleted"},
		{"nft flush map ip kube-proxy service-ips", "element of map service-ips deleted"},
		{"nft add chain ip kube-proxy mine", "chain mine added"},
		{"nft add rule ip kube-proxy services accept", "rule of chain services added"},
		{"nft delete table ip kube-proxy", "table kube-proxy deleted"},
		{"nft flush ruleset", "table kube-proxy deleted"},
	};
	struct node_host host;

	host_init(&host);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++)
		expect_flush(&host, damages[i].command, damages[i].what);
	host_done(&host);
}

static void what_somebody_does_elsewhere_is_nothing(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	run("nft add table ip mine; nft add table ip6 kube-proxy; nft delete table ip mine");
	expect_flush(&host, "nft delete " ELEMENT, "element of map service-ips deleted");
	host_done(&host);
}

/* It is read from the kernel by the sync, before the event loop comes to it. */
static void damage_that_a_sync_comes_upon_is_told_as_repaired(void **state attr_unused)
{
	struct node_host host;

	host_init(&host);
	run("nft delete " ELEMENT);
	expect_sync(&host);
	assert_true(host.result.full);
	assert_int_equal(host.n_repaired, 1);
	assert_int_equal(host.n_flushed, 0);
	expect_logged(&host, "what=\"element of map service-ips deleted\"");
	run("nft get " ELEMENT " >/dev/null");
	expect_sync(&host);
	assert_int_equal(host.n_repaired, 1);
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_is_told_by_its_name),
		cmocka_unit_test(what_somebody_does_elsewhere_is_nothing),
		cmocka_unit_test(damage_that_a_sync_comes_upon_is_told_as_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
