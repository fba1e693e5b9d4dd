/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "build.h"
#include "serving/process_metrics.h"
#include "serving/proxy_metrics.h"

struct fixture {
	struct metrics *metrics;
	struct proxy_metrics proxy;
	char *page;
};

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->metrics = metrics_new();
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	metrics_free(f->metrics);
	free(f->page);
	free(f);
	return 0;
}

static const char *scrape(struct fixture *f)
{
	cleanup_text struct text text = {0};

	metrics_print(f->metrics, &text);
	free(f->page);
	f->page = text_dup(&text);
	return f->page;
}

static void assert_line(struct fixture *f, const char *line)
{
	if (!strstr(scrape(f), line))
		fail_msg("%s is not in:\n%s", line, f->page);
}

static void each_mode_has_its_own_and_ignores_the_others(void **state)
{
	struct fixture *f = *state;

	proxy_metrics_register(&f->proxy, f->metrics, "iptables", true);
	proxy_metrics_add(&f->proxy, PROXY_NFT_FAILURES, "IPv4", "", 1);
	proxy_metrics_add(&f->proxy, PROXY_RESTORE_FAILURES, "IPv4", "", 1);
	assert_null(strstr(scrape(f), "nftables"));
	assert_line(f, "iptables_restore_failures_total{ip_family=\"IPv4\"} 1\n");
	metrics_free(f->metrics);
	f->metrics = metrics_new();
	proxy_metrics_register(&f->proxy, f->metrics, "nftables", false);
	proxy_metrics_add(&f->proxy, PROXY_RESTORE_FAILURES, "IPv4", "", 1);
	proxy_metrics_set(&f->proxy, PROXY_RULES_LAST, "IPv4", "nat", 1);
	proxy_metrics_add(&f->proxy, PROXY_NFT_FAILURES, "IPv6", "", 2);
	assert_null(strstr(scrape(f), "iptables"));
	assert_line(f, "nftables_sync_failures_total{ip_family=\"IPv6\"} 2\n");
}

static void what_is_known_about_localhost_is_there_if_asked_for(void **state)
{
	struct fixture *f = *state;

	proxy_metrics_register(&f->proxy, f->metrics, "nftables", false);
	proxy_metrics_set(&f->proxy, PROXY_LOCALHOST_LISTENERS, "IPv4", "", 3);
	assert_null(strstr(scrape(f), "localhost"));
	metrics_free(f->metrics);
	f->metrics = metrics_new();
	proxy_metrics_register(&f->proxy, f->metrics, "nftables", true);
	proxy_metrics_set(&f->proxy, PROXY_LOCALHOST_LISTENERS, "IPv4", "", 3);
	proxy_metrics_set(&f->proxy, PROXY_LOCALHOST_REJECTED, "IPv6", "SCTP", 4);
	assert_line(f, "nftables_localhost_nodeport_listeners{ip_family=\"IPv4\"} 3\n");
	assert_line(f,
		    "# TYPE kubeproxy_nftables_localhost_nodeport_rejected_packets_total counter\n"
		    "kubeproxy_nftables_localhost_nodeport_rejected_packets_total"
		    "{ip_family=\"IPv6\",protocol=\"SCTP\"} 4\n");
}

static void buckets_are_those_of_kube_proxy(void **state)
{
	struct fixture *f = *state;
	size_t n = 0;

	proxy_metrics_register(&f->proxy, f->metrics, "iptables", true);
	proxy_metrics_observe(&f->proxy, PROXY_SYNC_DURATION, "IPv4", 0.0015);
	proxy_metrics_observe(&f->proxy, PROXY_PROGRAMMING, "IPv6", 61);
	assert_line(f, "rules_duration_seconds_bucket{ip_family=\"IPv4\",le=\"0.001\"} 0\n");
	assert_line(f, "rules_duration_seconds_bucket{ip_family=\"IPv4\",le=\"0.002\"} 1\n");
	assert_line(f, "rules_duration_seconds_bucket{ip_family=\"IPv4\",le=\"16.384\"} 1\n");
	assert_line(f, "programming_duration_seconds_bucket{ip_family=\"IPv6\",le=\"0.25\"} 0\n");
	assert_line(f, "programming_duration_seconds_bucket{ip_family=\"IPv6\",le=\"60\"} 0\n");
	assert_line(f, "programming_duration_seconds_bucket{ip_family=\"IPv6\",le=\"65\"} 1\n");
	assert_line(f, "programming_duration_seconds_bucket{ip_family=\"IPv6\",le=\"300\"} 1\n");
	for (const char *at = f->page; (at = strstr(at, "programming_duration_seconds_bucket"));
	     at++)
		n++;
	assert_int_equal(n, 1 + 2 + 59 + 12 + 7 + 1);
}

static void what_is_cleared_is_not_told(void **state)
{
	struct fixture *f = *state;

	proxy_metrics_register(&f->proxy, f->metrics, "iptables", true);
	proxy_metrics_set(&f->proxy, PROXY_INVALID_DROPPED, "", "", 7);
	assert_line(f, "invalid_dropped_packets_total 7\n");
	proxy_metrics_clear(&f->proxy, PROXY_INVALID_DROPPED);
	assert_null(strstr(scrape(f), "invalid_dropped_packets_total"));
}

static double value_of(struct fixture *f, const char *name)
{
	cleanup_free char *line = xasprintf("\n%s ", name);
	const char *at = strstr(scrape(f), line);

	assert_non_null(at);
	return strtod(at + strlen(line), NULL);
}

static void a_process_is_described(void **state)
{
	struct process_metrics process;
	struct fixture *f = *state;

	process_metrics_register(&process, f->metrics);
	assert_true(value_of(f, "process_resident_memory_bytes") > 100000);
	assert_true(value_of(f, "process_virtual_memory_bytes") >
		    value_of(f, "process_resident_memory_bytes"));
	assert_true(value_of(f, "process_open_fds") >= 3);
	assert_true(value_of(f, "process_max_fds") > value_of(f, "process_open_fds"));
	assert_true(value_of(f, "process_cpu_seconds_total") >= 0);
	assert_true(process_start_time() > 1.5e9);
	assert_true(value_of(f, "process_start_time_seconds") == process_start_time());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(each_mode_has_its_own_and_ignores_the_others),
		TEST(what_is_known_about_localhost_is_there_if_asked_for),
		TEST(buckets_are_those_of_kube_proxy),
		TEST(what_is_cleared_is_not_told),
		TEST(a_process_is_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
