/* SPDX-License-Identifier: Apache-2.0 */

/* What others do to the table of nftables mode, in a network namespace, and what is told of it. */

#include "nftables_host.h"

/* Service ns1/svc1 at 10.96.0.1, synced and watched. */
static void start(struct node_host *host)
{
	struct service *service = build_service(KEY, "10.96.0.1");
	struct draft *slice = new_slice();

	host_init(host);
	build_port(service, "", PROTOCOL_TCP, 80, 0);
	model_set_service(host->world.model, service);
	build_endpoint(slice, "10.1.1.1", OTHER, BUILD_READY);
	build_set_slice(host->world.model, slice);
	host_watch(host);
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

static void expect_flush(struct node_host *host, const char *command, const char *what, bool full)
{
	size_t before = host->n_flushed;

	host_run(command);
	while (host->n_flushed == before)
		event_base_loop(host->loop, EVLOOP_ONCE);
	assert_string_equal(host->what, what);
	host_sync(host);
	assert_int_equal(host->result.full, full);
	assert_int_equal(host->n_flushed, before + 1);
	assert_int_equal(host->n_repaired, 0);
	host_run("nft get element ip kube-proxy service-ips '{ 10.96.0.1 . tcp . 80 }' >/dev/null");
}

#define ELEMENT "element ip kube-proxy service-ips '{ 10.96.0.1 . tcp . 80 }'"

static void damage_is_told_by_its_name(void **state attr_unused)
{
	static const struct {
		const char *command, *what;
		bool full;
	} damages[] = {
		{"nft delete " ELEMENT, "element of map service-ips deleted"},
		{"nft flush map ip kube-proxy service-ips", "element of map service-ips deleted"},
		{"nft add chain ip kube-proxy mine", "chain mine added", true},
		{"nft add rule ip kube-proxy services accept", "rule of chain services added"},
		{"nft delete table ip kube-proxy", "table kube-proxy deleted", true},
		{"nft flush ruleset", "table kube-proxy deleted", true},
	};
	struct node_host host;

	start(&host);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++)
		expect_flush(&host, damages[i].command, damages[i].what, damages[i].full);
	host_done(&host);
}

static void what_somebody_does_elsewhere_is_nothing(void **state attr_unused)
{
	struct node_host host;

	start(&host);
	host_run("nft add table ip mine; nft add table ip6 kube-proxy; nft delete table ip mine");
	expect_flush(&host, "nft delete " ELEMENT, "element of map service-ips deleted", false);
	host_done(&host);
}

/* It is read from the kernel by the sync, before the event loop comes to it. */
static void damage_that_a_sync_comes_upon_is_told_as_repaired(void **state attr_unused)
{
	struct node_host host;

	start(&host);
	host_run("nft delete " ELEMENT);
	host_sync(&host);
	assert_false(host.result.full);
	assert_int_equal(host.n_repaired, 1);
	assert_int_equal(host.n_flushed, 0);
	expect_logged(&host, "what=\"element of map service-ips deleted\"");
	host_run("nft get " ELEMENT " >/dev/null");
	host_sync(&host);
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
