/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"

static void memory_is_zeroed_aligned_and_separate(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(16);
	uint64_t *previous = NULL;

	for (size_t i = 0; i < 10000; i++) {
		uint64_t *p = arena_alloc(arena, sizeof(*p));

		assert_int_equal((uintptr_t)p % 8, 0);
		assert_int_equal(*p, 0);
		*p = i;
		if (previous)
			assert_int_equal(*previous, i - 1);
		previous = p;
	}
}

static void large_pieces_fit_whatever_the_first_block(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(0);
	char *large = arena_alloc(arena, 1024 * 1024);
	char *small = arena_alloc(arena, 1);

	memset(large, 'x', 1024 * 1024);
	assert_int_equal(*small, 0);
	assert_true(arena_size(arena) >= 1024 * 1024 + 1);
}

static void object_that_fits_its_first_block_takes_no_other(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(256);
	size_t before = arena_size(arena);

	arena_alloc(arena, 200);
	arena_strdup(arena, "as many letters as are left in it, less one for the NUL");
	arena_array(arena, 0, 8);
	assert_int_equal(arena_size(arena), before);
	assert_true(before <= 256 + 16);
	arena_alloc(arena, 1);
	assert_true(arena_size(arena) > before);
}

static void strings_are_copied_and_formatted(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(8);
	char original[] = "abc";
	char *copy = arena_strdup(arena, original);
	char *formatted = arena_printf(arena, "%s/%d", "name", 42);

	original[0] = 'x';
	assert_string_equal(copy, "abc");
	assert_string_equal(formatted, "name/42");
	assert_string_equal(arena_strdup(arena, ""), "");
}

static void empty_array_is_no_null(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(0);

	assert_non_null(arena_array(arena, 0, 16));
	assert_non_null(arena_array(arena, 3, 16));
}

static void first_allocation_leads_back_to_the_arena(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(16);
	void *first = arena_alloc(arena, 16);

	arena_alloc(arena, 1000); /* another block */
	assert_ptr_equal(arena_of(first), arena);
}

static void nothing_can_be_freed(void **state attr_unused)
{
	assert_null(arena_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_separate),
		cmocka_unit_test(large_pieces_fit_whatever_the_first_block),
		cmocka_unit_test(object_that_fits_its_first_block_takes_no_other),
		cmocka_unit_test(strings_are_copied_and_formatted),
		cmocka_unit_test(empty_array_is_no_null),
		cmocka_unit_test(first_allocation_leads_back_to_the_arena),
		cmocka_unit_test(nothing_can_be_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
