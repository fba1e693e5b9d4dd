/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/fiber.h"

struct story {
	char text[64];
	struct fiber *inner;
};

static void tell(struct story *story, const char *word)
{
	strcat(story->text, word);
}

static void runs_through(void *arg)
{
	assert_non_null(fiber_current());
	tell(arg, "a");
}

static void waits_twice(void *arg)
{
	tell(arg, "1");
	fiber_wait();
	tell(arg, "2");
	fiber_wait();
	tell(arg, "3");
}

static void what_does_not_wait_is_over_at_once(void **state attr_unused)
{
	struct fiber *fiber = fiber_new(NULL, NULL);
	struct story story = {0};

	assert_null(fiber_current());
	for (int i = 0; i < 3; i++)
		fiber_start(fiber, runs_through, &story);
	assert_false(fiber_is_busy(fiber));
	assert_null(fiber_current());
	assert_string_equal(story.text, "aaa");
	fiber_free(fiber);
}

static void what_waits_goes_on_where_it_was(void **state attr_unused)
{
	struct fiber *fiber = fiber_new(NULL, NULL);
	struct story story = {0};

	fiber_start(fiber, waits_twice, &story);
	tell(&story, "x");
	fiber_resume(fiber);
	tell(&story, "y");
	assert_true(fiber_is_busy(fiber));
	fiber_resume(fiber);
	assert_false(fiber_is_busy(fiber));
	assert_string_equal(story.text, "1x2y3");
	fiber_free(fiber);
}

static void two_fibers_keep_their_places(void **state attr_unused)
{
	struct fiber *a = fiber_new(NULL, NULL), *b = fiber_new(NULL, NULL);
	struct story story = {0};

	fiber_start(a, waits_twice, &story);
	fiber_start(b, waits_twice, &story);
	fiber_resume(b);
	fiber_resume(b);
	fiber_resume(a);
	fiber_resume(a);
	assert_string_equal(story.text, "112323");
	fiber_free(a);
	fiber_free(b);
}

static void starts_another(void *arg)
{
	struct story *story = arg;
	const struct fiber *self = fiber_current();

	fiber_start(story->inner, waits_twice, story);
	assert_ptr_equal(fiber_current(), self);
	tell(story, "o");
	fiber_wait();
	fiber_resume(story->inner);
	fiber_resume(story->inner);
}

static void a_fiber_may_start_another(void **state attr_unused)
{
	struct fiber *outer = fiber_new(NULL, NULL);
	struct story story = {.inner = fiber_new(NULL, NULL)};

	fiber_start(outer, starts_another, &story);
	tell(&story, "-");
	fiber_resume(outer);
	assert_string_equal(story.text, "1o-23");
	fiber_free(outer);
	fiber_free(story.inner);
}

static void breathes(void *arg)
{
	fiber_breathe();
	tell(arg, "2");
}

static void count_breath(void *arg)
{
	tell(arg, "1");
	fiber_wait();
}

static void only_a_fiber_breathes(void **state attr_unused)
{
	struct story story = {0};
	struct fiber *fiber = fiber_new(count_breath, &story), *other = fiber_new(NULL, NULL);

	fiber_breathe();
	fiber_start(other, breathes, &story);
	tell(&story, "-");
	fiber_start(fiber, breathes, &story);
	tell(&story, "x");
	fiber_resume(fiber);
	assert_string_equal(story.text, "2-1x2");
	fiber_free(fiber);
	fiber_free(other);
}

static void needs_room(void *arg)
{
	volatile char room[512 * 1024];

	memset((char *)room, 1, sizeof(room));
	fiber_wait();
	*(int *)arg = room[0] + room[sizeof(room) - 1];
}

static void half_a_megabyte_of_stack_is_there(void **state attr_unused)
{
	struct fiber *fiber = fiber_new(NULL, NULL);
	int sum = 0;

	fiber_start(fiber, needs_room, &sum);
	fiber_resume(fiber);
	assert_int_equal(sum, 2);
	fiber_free(fiber);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_wait_is_over_at_once),
		cmocka_unit_test(what_waits_goes_on_where_it_was),
		cmocka_unit_test(two_fibers_keep_their_places),
		cmocka_unit_test(a_fiber_may_start_another),
		cmocka_unit_test(only_a_fiber_breathes),
		cmocka_unit_test(half_a_megabyte_of_stack_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
