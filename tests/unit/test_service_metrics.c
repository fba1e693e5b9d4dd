/* SPDX-License-Identifier: Apache-2.0 */

/* How the numbers of service ports are printed. */

#include "fake_tools.h"
#include "serving/service_metrics.h"

static void prints(struct metrics *metrics, const char *line, bool wanted)
{
	struct text text = {0};
	char *page;

	metrics_print(metrics, &text);
	page = text_dup(&text);
	if (wanted != (strstr(page, line) != NULL))
		fail_msg("%s: %s in\n%s", wanted ? "missing" : "too much", line, page);
	free(page);
	text_done(&text);
}

static void ports_have_numbers_and_the_others_a_sum(void **state attr_unused)
{
	struct metrics *metrics = metrics_new();
	struct service_metrics *service = service_metrics_new(metrics);
	const struct service_numbers web = {
		.ns = "default",
		.service = "web",
		.port = "http",
		.protocol = "tcp",
		.connections = 3,
		.packets_to = 10,
		.packets_from = 11,
		.bytes_to = 1000,
		.bytes_from = 9007199254740991,
		.tracked = 2,
	};
	const struct service_numbers sum = {.connections = 7};
	const struct service_metrics_work work = {
		.folded = 5, .rounds = 2, .overflows = 1, .seconds = 0.5};

	prints(metrics, "portolan_service_ports_folded 0\n", true);
	service_metrics_set(service, &web);
	service_metrics_set_other(service, &sum);
	service_metrics_set_work(service, &work);
#define WEB "namespace=\"default\",port=\"http\",protocol=\"tcp\",service=\"web\"} "
#define SUM "namespace=\"\",port=\"\",protocol=\"\",service=\"other\"} "
	prints(metrics, "\nportolan_service_connections_total{" WEB "3\n", true);
	prints(metrics, "\nportolan_service_connections_total{" SUM "7\n", true);
	prints(metrics, "\nportolan_service_packets_total{direction=\"to_service\"," WEB "10\n",
	       true);
	prints(metrics, "\nportolan_service_packets_total{direction=\"from_service\"," WEB "11\n",
	       true);
	prints(metrics, "\nportolan_service_bytes_total{direction=\"to_service\"," WEB "1000\n",
	       true);
	prints(metrics,
	       "\nportolan_service_bytes_total{direction=\"from_service\"," WEB
	       "9007199254740991\n",
	       true);
	prints(metrics, "\nportolan_service_tracked_connections{" WEB "2\n", true);
	prints(metrics, "\nportolan_service_ports_folded 5\n", true);
	prints(metrics, "\nportolan_service_traffic_rounds_total 2\n", true);
	prints(metrics, "\nportolan_service_traffic_seconds_total 0.5\n", true);
	prints(metrics, "\nportolan_service_traffic_overflows_total 1\n", true);
	service_metrics_clear(service);
	prints(metrics, "{", false);
	prints(metrics, "\nportolan_service_ports_folded 5\n", true);
	assert_null(service_metrics_free(service));
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_have_numbers_and_the_others_a_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
