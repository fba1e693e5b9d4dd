/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"
#include "sources/events.h"

#define SECOND_NS INT64_C(1000000000)

static int64_t steady, wall;
static struct text posted;
static int n_posted;
static struct events *events;

static int64_t steady_ns(void)
{
	return steady;
}

static int64_t wall_ns(void)
{
	return wall;
}

static void post(void *arg attr_unused, const char *path, const char *json)
{
	text_done(&posted);
	text_init(&posted);
	text_printf(&posted, "%s\n%s", path, json);
	n_posted++;
}

static int set_up(void **state attr_unused)
{
	const struct events_config config = {
		.host = "host-a", .steady_ns = steady_ns, .wall_ns = wall_ns, .post = post};

	steady = 77 * SECOND_NS;
	wall = 1709208000 * SECOND_NS + 1234567;
	n_posted = 0;
	events = events_new(&config);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	events = events_free(events);
	text_done(&posted);
	return 0;
}

static const struct events_item starting = {
	.reason = "Starting",
	.action = "StartKubeProxy",
	.note = "",
	.kind = "Node",
	.ns = "",
	.name = "node-a",
};

static void assert_posted(const char *expected)
{
	char *all cleanup_free = text_dup(&posted);

	assert_string_equal(all, expected);
}

static void starting_is_about_the_node_in_the_default_namespace(void **state attr_unused)
{
	assert_true(events_record(events, &starting));
	assert_posted(
		"/apis/events.k8s.io/v1/namespaces/default/events\n"
		"{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\","
		"\"metadata\":{\"name\":\"node-a.17b8539ec7545687\",\"namespace\":\"default\"},"
		"\"eventTime\":\"2024-02-29T12:00:00.001234Z\","
		"\"reportingController\":\"kube-proxy\","
		"\"reportingInstance\":\"kube-proxy-host-a\","
		"\"action\":\"StartKubeProxy\",\"reason\":\"Starting\","
		"\"regarding\":{\"kind\":\"Node\",\"name\":\"node-a\",\"apiVersion\":\"v1\"},"
		"\"type\":\"Normal\"}");
}

static void a_service_has_its_namespace_and_a_note_is_made_harmless(void **state attr_unused)
{
	struct events_item item = {
		.warning = true,
		.reason = "FailedToStartServiceHealthcheck",
		.action = "Listen",
		.note = "port \"80\"\\\n",
		.kind = "Service",
		.ns = "shop",
		.name = "web",
	};

	assert_true(events_record(events, &item));
	assert_posted(
		"/apis/events.k8s.io/v1/namespaces/shop/events\n"
		"{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\","
		"\"metadata\":{\"name\":\"web.17b8539ec7545687\",\"namespace\":\"shop\"},"
		"\"eventTime\":\"2024-02-29T12:00:00.001234Z\","
		"\"reportingController\":\"kube-proxy\",\"reportingInstance\":\"kube-proxy-host-"
		"a\","
		"\"action\":\"Listen\",\"reason\":\"FailedToStartServiceHealthcheck\","
		"\"regarding\":{\"kind\":\"Service\",\"namespace\":\"shop\",\"name\":\"web\","
		"\"apiVersion\":\"v1\"},\"note\":\"port \\\"80\\\"\\\\?\",\"type\":\"Warning\"}");
}

static void a_note_and_a_name_that_are_too_long_are_cut(void **state attr_unused)
{
	char note[5000], name[254];
	char *all cleanup_free = NULL;
	struct events_item item = starting;
	const char *at;

	memset(note, 'n', sizeof(note) - 1);
	note[sizeof(note) - 1] = '\0';
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	item.note = note;
	item.name = name;
	assert_true(events_record(events, &item));
	all = text_dup(&posted);
	assert_non_null(strstr(all, "{\"name\":\"kube-proxy.17b8539ec7545687\""));
	at = strstr(all, "\"note\":\"");
	assert_non_null(at);
	at += strlen("\"note\":\"");
	assert_int_equal(strchr(at, '"') - at, 1023);
}

static void one_like_another_is_dropped_for_ten_minutes(void **state attr_unused)
{
	struct events_item other = starting;

	assert_true(events_record(events, &starting));
	other.note = "again"; /* a note alone makes no difference */
	assert_false(events_record(events, &other));
	other.name = "node-b";
	assert_true(events_record(events, &other));
	steady += EVENTS_ALIKE_NS - 1;
	assert_false(events_record(events, &starting));
	steady += 1;
	assert_true(events_record(events, &starting));
	assert_int_equal(n_posted, 3);
}

/* Tries many different ones, and counts those that go. */
static int flood(void)
{
	static int serial;
	int n = 0;

	for (int i = 0; i < 1000; i++) {
		char name[32];
		struct events_item item = starting;

		snprintf(name, sizeof(name), "n%d", serial++);
		item.name = name;
		n += events_record(events, &item);
	}
	return n;
}

static void a_flood_becomes_a_trickle(void **state attr_unused)
{
	assert_int_equal(flood(), EVENTS_BURST);
	assert_int_equal(flood(), 0);
	steady += EVENTS_REFILL_NS - 1;
	assert_int_equal(flood(), 0);
	steady += 1;
	assert_int_equal(flood(), 1);
	steady += 3 * EVENTS_REFILL_NS;
	assert_int_equal(flood(), 3);
	steady += 3600 * SECOND_NS;
	assert_int_equal(flood(), EVENTS_BURST);
	assert_int_equal(n_posted, 2 * EVENTS_BURST + 4);
}

/* As many as go of a thousand Services of one namespace. */
static int flood_namespace(const char *ns)
{
	int n = 0;

	for (int i = 0; i < 1000; i++) {
		char name[32];
		struct events_item item = starting;

		snprintf(name, sizeof(name), "s%d", i);
		item.kind = "Service";
		item.ns = ns;
		item.name = name;
		n += events_record(events, &item);
	}
	return n;
}

static void a_namespace_takes_none_from_the_others(void **state attr_unused)
{
	assert_int_equal(flood_namespace("evil"), EVENTS_NAMESPACE);
	assert_int_equal(flood_namespace("shop"), EVENTS_NAMESPACE);
	steady += 5 * EVENTS_REFILL_NS;
	assert_int_equal(flood_namespace("evil"), 0);
	steady += EVENTS_ALIKE_NS;
	assert_int_equal(flood_namespace("evil"), EVENTS_NAMESPACE);
}

static void namespaces_leave_some_for_the_node(void **state attr_unused)
{
	int n = 0;

	for (int i = 0; i < 20; i++) {
		char ns[32];

		snprintf(ns, sizeof(ns), "evil-%d", i);
		n += flood_namespace(ns);
	}
	assert_int_equal(n, EVENTS_BURST - EVENTS_NODE);
	assert_int_equal(flood(), EVENTS_NODE);
}

/* However many went in between: all that can have gone is remembered. */
static void likeness_is_remembered_through_a_flood(void **state attr_unused)
{
	assert_true(events_record(events, &starting));
	for (int64_t waited = 0; waited < EVENTS_ALIKE_NS; waited += EVENTS_REFILL_NS) {
		flood();
		assert_false(events_record(events, &starting));
		steady += EVENTS_REFILL_NS;
	}
	assert_true(events_record(events, &starting));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(starting_is_about_the_node_in_the_default_namespace),
		T(a_service_has_its_namespace_and_a_note_is_made_harmless),
		T(a_note_and_a_name_that_are_too_long_are_cut),
		T(one_like_another_is_dropped_for_ten_minutes),
		T(a_flood_becomes_a_trickle),
		T(a_namespace_takes_none_from_the_others),
		T(namespaces_leave_some_for_the_node),
		T(likeness_is_remembered_through_a_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
