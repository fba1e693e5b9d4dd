/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/proxy_health.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#define S         1000000000LL
#define WALL      1763250000LL /* 2025-11-15T23:40:00Z */
#define TIMEOUT_S 60
#define NEVER     "0001-01-01T00:00:00Z"
#define AT(s)     (&(struct health_time){(s)*S, (WALL + (s)) * S})

static struct proxy_health new_health(void)
{
	return (struct proxy_health){.timeout_ns = TIMEOUT_S * S};
}

static void expect_healthz(const struct proxy_health *health, const struct node *node, int second,
			   int status, const char *wanted)
{
	cleanup_text struct text text = {0};
	cleanup_free char *body = NULL;

	assert_int_equal(proxy_health_print_healthz(health, node, NULL, NULL, AT(second), &text),
			 status);
	body = text_dup(&text);
	assert_string_equal(body, wanted);
}

static void a_reason_makes_it_unhealthy_and_is_told(void **state attr_unused)
{
	struct proxy_health health = new_health();
	cleanup_text struct text text = {0};
	cleanup_free char *body = NULL;

	assert_int_equal(proxy_health_print_healthz(&health, NULL, "a \"\\\n", NULL, AT(0), &text),
			 503);
	body = text_dup(&text);
	assert_string_equal(body, "{\"lastUpdated\":\"" NEVER
				  "\",\"currentTime\":\"2025-11-15T23:40:00Z\",\"nodeEligible\":"
				  "false,\"healthy\":false,\"reason\":\"a \\\"\\\\\\n\"}");
}

static void what_degrades_it_is_told_and_changes_no_status(void **state attr_unused)
{
	struct proxy_health health = new_health();
	struct node *node = node_new("a");
	cleanup_text struct text text = {0};
	cleanup_free char *body = NULL;

	assert_int_equal(proxy_health_print_healthz(&health, node, NULL, "\"held\"", AT(0), &text),
			 200);
	body = text_dup(&text);
	assert_string_equal(body, "{\"lastUpdated\":\"2025-11-15T23:40:00Z"
				  "\",\"currentTime\":\"2025-11-15T23:40:00Z\",\"nodeEligible\":"
				  "true,\"healthy\":true,\"degraded\":\"\\\"held\\\"\"}");
	node_unref(node);
}

static void expect_livez(const struct proxy_health *health, int second, int status,
			 const char *wanted)
{
	cleanup_text struct text text = {0};
	cleanup_free char *body = NULL;

	assert_int_equal(proxy_health_print_livez(health, AT(second), &text), status);
	body = text_dup(&text);
	assert_string_equal(body, wanted);
}

static void before_any_update_it_is_well_but_no_family_is_listed(void **state attr_unused)
{
	struct proxy_health health = new_health();

	proxy_health_queued(&health, FAMILY_IPV4, AT(0));
	expect_livez(&health, 1000, 200,
		     "{\"lastUpdated\":\"2025-11-15T23:56:40Z\",\"currentTime\":\"2025-11-15T23:56:"
		     "40Z\",\"healthy\":true}");
}

static void queued_change_is_late_after_the_timeout(void **state attr_unused)
{
	struct proxy_health health = new_health();

	proxy_health_updated(&health, FAMILY_IPV4, AT(0));
	proxy_health_queued(&health, FAMILY_IPV4, AT(10));
	proxy_health_queued(&health, FAMILY_IPV4, AT(60)); /* the oldest counts */
	assert_true(proxy_health_is_good(&health, AT(69)));
	assert_false(proxy_health_is_good(&health, AT(70)));
	proxy_health_updated(&health, FAMILY_IPV4, AT(75));
	assert_true(proxy_health_is_good(&health, AT(1000)));
}

static void one_late_family_makes_all_unhealthy(void **state attr_unused)
{
	struct proxy_health health = new_health();

	proxy_health_updated(&health, FAMILY_IPV4, AT(1));
	proxy_health_updated(&health, FAMILY_IPV6, AT(2));
	proxy_health_queued(&health, FAMILY_IPV6, AT(3));
	expect_livez(
		&health, 100, 503,
		"{\"lastUpdated\":\"2025-11-15T23:40:02Z\",\"currentTime\":\"2025-11-15T23:41:"
		"40Z\",\"healthy\":false,\"status\":{\"IPv4\":{\"lastUpdated\":\"2025-11-15T23:"
		"40:01Z\",\"healthy\":true},\"IPv6\":{\"lastUpdated\":\"2025-11-15T23:40:02Z\","
		"\"healthy\":false}}}");
}

static void healthz_asks_for_a_node_that_stays(void **state attr_unused)
{
	struct proxy_health health = new_health();
	struct node *node = node_new("n");

	proxy_health_updated(&health, FAMILY_IPV4, AT(1));
	expect_healthz(&health, node, 5, 200,
		       "{\"lastUpdated\":\"2025-11-15T23:40:05Z\",\"currentTime\":\"2025-11-15T23:"
		       "40:05Z\",\"nodeEligible\":true,\"healthy\":true,\"status\":{\"IPv4\":{"
		       "\"lastUpdated\":\"2025-11-15T23:40:01Z\",\"healthy\":true}}}");
	node->autoscaler_taint = true;
	expect_healthz(&health, node, 5, 503,
		       "{\"lastUpdated\":\"2025-11-15T23:40:01Z\",\"currentTime\":\"2025-11-15T23:"
		       "40:05Z\",\"nodeEligible\":false,\"healthy\":true,\"status\":{\"IPv4\":{"
		       "\"lastUpdated\":\"2025-11-15T23:40:01Z\",\"healthy\":true}}}");
	node->autoscaler_taint = false;
	node->being_deleted = true;
	assert_false(proxy_health_node_eligible(node));
	assert_false(proxy_health_node_eligible(NULL));
	node_unref(node);
}

static void livez_does_not_mind_the_node(void **state attr_unused)
{
	struct proxy_health health = new_health();

	expect_healthz(&health, NULL, 0, 503,
		       "{\"lastUpdated\":\"" NEVER "\",\"currentTime\":\"2025-11-15T23:40:00Z\","
		       "\"nodeEligible\":false,\"healthy\":true}");
	expect_livez(&health, 0, 200,
		     "{\"lastUpdated\":\"2025-11-15T23:40:00Z\",\"currentTime\":\"2025-11-15T23:40:"
		     "00Z\",\"healthy\":true}");
}

static void fractions_of_a_second_lose_their_zeros(void **state attr_unused)
{
	struct proxy_health health = new_health();
	const struct health_time now = {0, WALL * S + 120000000};
	cleanup_text struct text text = {0};
	cleanup_free char *body = NULL;

	proxy_health_print_livez(&health, &now, &text);
	body = text_dup(&text);
	assert_non_null(strstr(body, "\"currentTime\":\"2025-11-15T23:40:00.12Z\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reason_makes_it_unhealthy_and_is_told),
		cmocka_unit_test(what_degrades_it_is_told_and_changes_no_status),
		cmocka_unit_test(before_any_update_it_is_well_but_no_family_is_listed),
		cmocka_unit_test(queued_change_is_late_after_the_timeout),
		cmocka_unit_test(one_late_family_makes_all_unhealthy),
		cmocka_unit_test(healthz_asks_for_a_node_that_stays),
		cmocka_unit_test(livez_does_not_mind_the_node),
		cmocka_unit_test(fractions_of_a_second_lose_their_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
