/* SPDX-License-Identifier: Apache-2.0 */

/* When a table is filling up, what would help, and who has the most entries. */

#include <netinet/in.h>
#include <stdio.h>

#include "build.h"
#include "conntrack/table_watch.h"

static enum table_level next(enum table_level before, uint64_t entries)
{
	const struct conntrack_stats stats = {.entries = entries, .max = 1000};

	return table_level_next(before, &stats);
}

static void levels_rise_at_once_and_fall_with_distance(void **state attr_unused)
{
	const struct conntrack_stats unlimited = {.entries = 5};

	assert_int_equal(next(TABLE_ROOMY, 799), TABLE_ROOMY);
	assert_int_equal(next(TABLE_ROOMY, 800), TABLE_FILLING);
	assert_int_equal(next(TABLE_FILLING, 750), TABLE_FILLING);
	assert_int_equal(next(TABLE_FILLING, 749), TABLE_ROOMY);
	assert_int_equal(next(TABLE_FILLING, 949), TABLE_FILLING);
	assert_int_equal(next(TABLE_FILLING, 950), TABLE_NEARLY_FULL);
	assert_int_equal(next(TABLE_ROOMY, 1001), TABLE_NEARLY_FULL);
	assert_int_equal(next(TABLE_NEARLY_FULL, 900), TABLE_NEARLY_FULL);
	assert_int_equal(next(TABLE_NEARLY_FULL, 899), TABLE_FILLING);
	assert_int_equal(next(TABLE_NEARLY_FULL, 749), TABLE_ROOMY);
	assert_int_equal(table_level_next(TABLE_NEARLY_FULL, &unlimited), TABLE_ROOMY);
}

static void advises(uint64_t entries, int64_t cores, const char *wanted)
{
	const struct conntrack_stats stats = {.entries = entries};
	struct text text = {0};
	char *advice;

	table_advice(&stats, cores, &text);
	advice = text_dup(&text);
	assert_string_equal(advice, wanted);
	free(advice);
	text_done(&text);
}

static void advice_names_a_value_that_helps(void **state attr_unused)
{
	advises(110000, 4, "conntrack.maxPerCore=55296 (cores: 4) would leave half of it free");
	advises(10, 1, "conntrack.maxPerCore=1024 (cores: 1) would leave half of it free");
	advises(10, 0, "conntrack.maxPerCore=1024 (cores: 1) would leave half of it free");
	advises(1000000, 16,
		"conntrack.maxPerCore gives no more than 1048576 entries: with a smaller one, "
		"conntrack.min=2015232 would leave half of it free");
}

static void see(struct table_top *top, const char *dst, uint16_t port, int times)
{
	struct conntrack_flow flow = {.protocol = IPPROTO_TCP};

	flow.original.dst = build_addr(dst);
	flow.original.dst_port = port;
	while (times-- > 0)
		table_top_see(top, &flow);
}

static void prints(const struct table_top *top, const char *wanted)
{
	struct text text = {0};
	char *found;

	table_top_print(top, &text);
	found = text_dup(&text);
	assert_string_equal(found, wanted);
	free(found);
	text_done(&text);
}

static void the_largest_services_are_named(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);
	struct table_top *top;
	char key[32], addr[32];

	for (int i = 1; i <= 7; i++) {
		struct service *service;

		snprintf(key, sizeof(key), "ns/s%d", i);
		snprintf(addr, sizeof(addr), "10.96.0.%d", i);
		service = build_service(key, addr);
		build_port(service, i == 1 ? "" : "http", PROTOCOL_TCP, 80, 0);
		model_set_service(model, service);
	}
	top = table_top_new(model);
	prints(top, "");
	see(top, "8.8.8.8", 53, 20);
	prints(top, "no Service 100%");
	see(top, "10.96.0.1", 80, 40);
	see(top, "10.96.0.2", 80, 5);
	see(top, "10.96.0.3", 80, 20);
	see(top, "10.96.0.4", 80, 8);
	see(top, "10.96.0.5", 80, 6);
	see(top, "10.96.0.6", 80, 1);
	prints(top, "ns/s1:80/tcp 40%, ns/s3:http/tcp 20%, ns/s4:http/tcp 8%, ns/s5:http/tcp 6%, "
		    "ns/s2:http/tcp 5%, no Service 20%");
	table_top_free(top);
	assert_null(table_top_free(NULL));
	model_free(model);
}

/* The order among equals is any, but each is named once. */
static void equals_are_named_once_each(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);
	struct text text = {0};
	struct table_top *top;
	char *found;

	for (int i = 1; i <= 2; i++) {
		struct service *service =
			build_service(i == 1 ? "ns/a" : "ns/b", i == 1 ? "10.96.0.1" : "10.96.0.2");

		build_port(service, "p", PROTOCOL_TCP, 80, 0);
		model_set_service(model, service);
	}
	top = table_top_new(model);
	see(top, "10.96.0.1", 80, 5);
	see(top, "10.96.0.2", 80, 5);
	table_top_print(top, &text);
	found = text_dup(&text);
	assert_non_null(strstr(found, "ns/a:p/tcp 50%"));
	assert_non_null(strstr(found, "ns/b:p/tcp 50%"));
	assert_int_equal(strlen(found), strlen("ns/a:p/tcp 50%, ns/b:p/tcp 50%"));
	free(found);
	text_done(&text);
	table_top_free(top);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_rise_at_once_and_fall_with_distance),
		cmocka_unit_test(advice_names_a_value_that_helps),
		cmocka_unit_test(the_largest_services_are_named),
		cmocka_unit_test(equals_are_named_once_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
