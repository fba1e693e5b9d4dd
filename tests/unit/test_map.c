/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/map.h"

#define MANY 5000

struct item {
	char key[16];
	bool seen;
};

static struct item items[MANY];

static void fill(struct map *map)
{
	for (size_t i = 0; i < MANY; i++) {
		snprintf(items[i].key, sizeof(items[i].key), "ns/%zu", i);
		items[i].seen = false;
		assert_null(map_set(map, items[i].key, &items[i]));
	}
}

static void empty_map_has_nothing(void **state attr_unused)
{
	struct map map = {0};
	size_t at = 0;

	assert_null(map_get(&map, "x"));
	assert_null(map_remove(&map, "x"));
	assert_null(map_next(&map, &at));
	assert_null(map_next_key(&map, &at));
	map_done(&map);
}

static void every_entry_is_found_and_walked_once(void **state attr_unused)
{
	struct map map = {0};
	struct item *item;
	size_t at = 0, n = 0;

	fill(&map);
	assert_int_equal(map.count, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_ptr_equal(map_get(&map, items[i].key), &items[i]);
	assert_null(map_get(&map, "ns/5000"));
	while ((item = map_next(&map, &at))) {
		assert_false(item->seen);
		item->seen = true;
		n++;
	}
	assert_int_equal(n, MANY);
	map_done(&map);
}

static void set_replaces_key_and_value(void **state attr_unused)
{
	struct map map = {0};
	char first[] = "key", second[] = "key";
	int a, b;
	size_t at = 0;

	map_set(&map, first, &a);
	assert_ptr_equal(map_set(&map, second, &b), &a);
	first[0] = 'x'; /* the old key may go */
	assert_ptr_equal(map_get(&map, "key"), &b);
	assert_ptr_equal(map_next_key(&map, &at), second);
	assert_int_equal(map.count, 1);
	map_done(&map);
}

static void entries_may_be_removed_while_walking(void **state attr_unused)
{
	struct map map = {0};
	struct item *item;
	size_t at = 0, n = 0;

	fill(&map);
	while ((item = map_next(&map, &at))) {
		assert_ptr_equal(map_remove(&map, item->key), item);
		n++;
	}
	assert_int_equal(n, MANY);
	assert_int_equal(map.count, 0);
	map_done(&map);
}

static void removed_places_are_used_again(void **state attr_unused)
{
	struct map map = {0};
	size_t size;

	fill(&map);
	size = map.size;
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < MANY; i++)
			assert_ptr_equal(map_remove(&map, items[i].key), &items[i]);
		for (size_t i = 0; i < MANY; i++)
			assert_null(map_get(&map, items[i].key));
		fill(&map);
		assert_true(map.count + map.dead < map.size);
	}
	assert_int_equal(map.size, size);
	assert_int_equal(map.count, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_ptr_equal(map_get(&map, items[i].key), &items[i]);
	map_done(&map);
}

static int order_in_a_process_of_its_own(char *out, size_t size)
{
	int fds[2];
	pid_t pid;
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) { /* the map of this process has not been used: the key is not drawn */
		struct map map = {0};
		const char *key;
		size_t at = 0;

		for (size_t i = 0; i < 64; i++) {
			snprintf(items[i].key, sizeof(items[i].key), "ns/%zu", i);
			map_set(&map, items[i].key, &items[i]);
		}
		while ((key = map_next_key(&map, &at)))
			dprintf(fds[1], "%s ", key);
		_exit(0);
	}
	close(fds[1]);
	n = read(fds[0], out, size - 1); /* less than a pipe holds, written before the end */
	for (ssize_t more = n; more > 0; n += more)
		more = read(fds[0], out + n, size - 1 - (size_t)n);
	close(fds[0]);
	out[n] = '\0';
	return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

/* First of all tests: nothing may have drawn the key before. */
static void order_differs_from_process_to_process(void **state attr_unused)
{
	char first[1024], second[1024];

	assert_int_equal(order_in_a_process_of_its_own(first, sizeof(first)), 0);
	assert_int_equal(order_in_a_process_of_its_own(second, sizeof(second)), 0);
	assert_int_equal(strlen(first), strlen(second));
	assert_true(strlen(first) > 64 * 4);
	assert_string_not_equal(first, second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_differs_from_process_to_process),
		cmocka_unit_test(empty_map_has_nothing),
		cmocka_unit_test(every_entry_is_found_and_walked_once),
		cmocka_unit_test(set_replaces_key_and_value),
		cmocka_unit_test(entries_may_be_removed_while_walking),
		cmocka_unit_test(removed_places_are_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
