/* SPDX-License-Identifier: Apache-2.0 */

/* Services in the order of their changes, and readers that each read at their own pace. */

#include <stdio.h>

#include "build.h"
#include "page/service_log.h"

/* All that is behind the cursor: "a b !c", where ! says gone; for the caller to free. */
static char *read_all(const struct service_log *log, uint64_t *cursor)
{
	const struct service_log_item *item;
	char *all = xstrdup("");

	while ((item = service_log_next(log, cursor))) {
		char *more = xasprintf("%s%s%s%s", all, *all ? " " : "", item->gone ? "!" : "",
				       item->key);

		free(all);
		all = more;
	}
	return all;
}

static void assert_reads(const struct service_log *log, uint64_t *cursor, const char *expected)
{
	cleanup_free char *all = read_all(log, cursor);

	assert_string_equal(all, expected);
	assert_true(service_log_seen(log, *cursor));
}

static void a_new_reader_gets_all_and_then_what_changes(void **state attr_unused)
{
	struct service_log *log = service_log_new();
	uint64_t cursor = 0;

	assert_reads(log, &cursor, "");
	service_log_touch(log, "a", false, 0);
	service_log_touch(log, "b", false, 0);
	service_log_touch(log, "c", false, 0);
	assert_false(service_log_seen(log, cursor));
	assert_reads(log, &cursor, "a b c");
	service_log_touch(log, "b", false, 7);
	assert_reads(log, &cursor, "b");
	assert_reads(log, &cursor, "");
	service_log_free(log);
}

static void a_slow_reader_gets_the_newest_once(void **state attr_unused)
{
	struct service_log *log = service_log_new();
	const struct service_log_item *item;
	uint64_t cursor = 0;

	for (int64_t i = 1; i <= 100; i++)
		service_log_touch(log, "busy", false, i);
	service_log_touch(log, "b", false, 0);
	item = service_log_next(log, &cursor);
	assert_string_equal(item->key, "busy");
	assert_int_equal(item->changed_s, 100);
	assert_reads(log, &cursor, "b");
	service_log_free(log);
}

static void what_is_gone_is_told_to_everyone_and_then_forgotten(void **state attr_unused)
{
	struct service_log *log = service_log_new();
	uint64_t quick = 0;
	uint64_t slow = 0;

	service_log_touch(log, "never-there", true, 0);
	service_log_touch(log, "a", false, 0);
	service_log_touch(log, "b", false, 0);
	assert_reads(log, &quick, "a b");
	service_log_touch(log, "a", true, 0);
	assert_int_equal(service_log_count(log), 1);
	assert_reads(log, &quick, "!a");
	service_log_trim(log, slow); /* which has read nothing */
	assert_reads(log, &slow, "b !a");
	service_log_trim(log, slow);
	slow = 0;
	assert_reads(log, &slow, "b");
	service_log_touch(log, "a", false, 0);
	assert_reads(log, &quick, "a");
	assert_int_equal(service_log_count(log), 2);
	service_log_free(log);
}

/* Readers of every pace agree with a list that is kept in the simplest way. */
static void random_changes_reach_every_reader(void **state attr_unused)
{
	enum { KEYS = 200, READERS = 5 };
	struct service_log *log = service_log_new();
	uint64_t cursors[READERS] = {0};
	bool there[KEYS] = {0};
	bool seen[READERS][KEYS] = {0};

	srand(1);
	for (int step = 0; step < 20000; step++) {
		int key = rand() % KEYS;
		int reader = rand() % READERS;
		const struct service_log_item *item;
		uint64_t slowest = UINT64_MAX;
		char name[16];

		snprintf(name, sizeof(name), "%d", key);
		there[key] = rand() % 3 > 0;
		service_log_touch(log, name, !there[key], step);
		for (int n = rand() % 8 * (reader + 1); n > 0; n--) {
			item = service_log_next(log, &cursors[reader]);
			if (item)
				seen[reader][atoi(item->key)] = !item->gone;
		}
		for (int i = 0; i < READERS; i++)
			slowest = MIN(slowest, cursors[i]);
		if (step % 50 == 0)
			service_log_trim(log, slowest);
	}
	for (int i = 0; i < READERS; i++) {
		const struct service_log_item *item;

		while ((item = service_log_next(log, &cursors[i])))
			seen[i][atoi(item->key)] = !item->gone;
		assert_memory_equal(seen[i], there, sizeof(there));
	}
	service_log_free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_reader_gets_all_and_then_what_changes),
		cmocka_unit_test(a_slow_reader_gets_the_newest_once),
		cmocka_unit_test(what_is_gone_is_told_to_everyone_and_then_forgotten),
		cmocka_unit_test(random_changes_reach_every_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
