/* SPDX-License-Identifier: Apache-2.0 */

/* What is remembered while no page is open: bounded, and told to each reader once. */

#include <stdio.h>

#include "build.h"
#include "page/status_history.h"

static struct status_history history;

static int teardown(void **state attr_unused)
{
	status_history_done(&history);
	return 0;
}

static void syncs_are_told_once_and_the_last_ones_are_kept(void **state attr_unused)
{
	cleanup_text struct text text = {0};
	cleanup_free char *first = NULL, *all = NULL;
	uint64_t cursor = 0;
	size_t n = 0;

	assert_false(status_history_print_syncs(&history, &cursor, &text));
	status_history_sync(&history, &(struct status_sync){.at_s = 5,
							    .duration_ns = 1500000,
							    .services = 2,
							    .family = FAMILY_IPV6,
							    .full = true});
	assert_true(status_history_print_syncs(&history, &cursor, &text));
	first = text_dup(&text);
	assert_string_equal(first, "[{\"at\":5,\"ms\":1.500,\"services\":2,\"family\":\"IPv6\","
				   "\"full\":true,\"good\":false}]");
	assert_false(status_history_print_syncs(&history, &cursor, &text));
	for (size_t i = 0; i < 3 * STATUS_SYNCS; i++)
		status_history_sync(&history, &(struct status_sync){.at_s = 100, .good = true});
	text_consume(&text, text.size);
	assert_true(status_history_print_syncs(&history, &cursor, &text));
	all = text_dup(&text);
	for (const char *at = all; (at = strstr(at, "\"at\":100")); at++)
		n++;
	assert_int_equal(n, STATUS_SYNCS);
}

static void the_same_trouble_again_is_one_and_is_told_again(void **state attr_unused)
{
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;
	uint64_t cursor = 0;

	status_history_trouble(&history, 1, "no \"way\"");
	assert_true(status_history_print_troubles(&history, &cursor, &text));
	assert_false(status_history_print_troubles(&history, &cursor, &text));
	status_history_trouble(&history, 2, "other");
	status_history_trouble(&history, 3, "no \"way\"");
	text_consume(&text, text.size);
	assert_true(status_history_print_troubles(&history, &cursor, &text));
	all = text_dup(&text);
	assert_string_equal(all, "[{\"id\":1,\"at\":3,\"times\":2,\"text\":\"no \\\"way\\\"\"},"
				 "{\"id\":2,\"at\":2,\"times\":1,\"text\":\"other\"}]");
}

static void only_the_last_troubles_are_kept(void **state attr_unused)
{
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;
	uint64_t cursor = 0;

	for (int i = 0; i < 2 * STATUS_TROUBLES; i++) {
		cleanup_free char *words = xasprintf("trouble-%d.", i);

		status_history_trouble(&history, i, words);
	}
	assert_true(status_history_print_troubles(&history, &cursor, &text));
	all = text_dup(&text);
	assert_null(strstr(all, "trouble-31."));
	assert_non_null(strstr(all, "trouble-32."));
	assert_non_null(strstr(all, "trouble-63."));
}

static bool is_there(void *arg attr_unused, const char *key)
{
	return !streq(key, "gone");
}

static void recent_changes_are_replayed_in_their_order(void **state attr_unused)
{
	struct service_log *log = service_log_new();
	const struct service_log_item *item;
	uint64_t cursor = 0;

	for (size_t i = 0; i < STATUS_RECENT; i++)
		status_history_changed(&history, 1, "old");
	status_history_changed(&history, 2, "a");
	status_history_changed(&history, 3, "gone");
	status_history_changed(&history, 4, "b");
	status_history_changed(&history, 5, "a");
	status_history_replay(&history, log, is_there, NULL);
	assert_int_equal(service_log_count(log), 3);
	service_log_next(log, &cursor);
	item = service_log_next(log, &cursor);
	assert_string_equal(item->key, "b");
	item = service_log_next(log, &cursor);
	assert_string_equal(item->key, "a");
	assert_int_equal(item->changed_s, 5);
	service_log_free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(syncs_are_told_once_and_the_last_ones_are_kept, teardown),
		cmocka_unit_test_teardown(the_same_trouble_again_is_one_and_is_told_again,
					  teardown),
		cmocka_unit_test_teardown(only_the_last_troubles_are_kept, teardown),
		cmocka_unit_test_teardown(recent_changes_are_replayed_in_their_order, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
