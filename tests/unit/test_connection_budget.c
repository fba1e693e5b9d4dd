/* SPDX-License-Identifier: Apache-2.0 */

/* Who may have how many descriptors, and who gives way. */

#include "serving/connection_budget.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>

#include "base/clock.h"

#define MANY 4096

static int64_t fake_now = 1000 * CLOCK_NS_PER_SECOND;
static struct connection_place places[MANY];

int64_t __wrap_clock_now_ns(void);
int64_t __wrap_clock_now_ns(void)
{
	return fake_now;
}

static const struct http_server *server_number(uintptr_t n)
{
	return (const struct http_server *)(n * sizeof(void *)); /* told apart, never looked at */
}

static struct connection_budget *make(size_t descriptors)
{
	return connection_budget_new(
		&(struct connection_budget_config){.descriptors = descriptors});
}

static void occupy(struct connection_budget *budget, enum connection_kind kind,
		   struct connection_place *place)
{
	*place = (struct connection_place){
		.server = server_number(1), .kind = kind, .since_ns = fake_now};
	connection_budget_take(budget, place);
}

/* Takes all that there is; how many it was. */
static size_t fill(struct connection_budget *budget, enum connection_kind kind, size_t from)
{
	size_t n = 0;

	while (connection_budget_has_room(budget, kind))
		occupy(budget, kind, &places[from + n++]);
	return n;
}

static size_t listen_for_services(struct connection_budget *budget)
{
	struct err err;
	size_t n = 0;

	while (connection_budget_listen(budget, CONNECTION_SERVICE, &err) == 0)
		n++;
	assert_int_equal(err.code, -EMFILE);
	assert_non_null(strstr(err.text, "LimitNOFILE"));
	return n;
}

static void what_the_program_needs_is_never_given(void **state attr_unused)
{
	static const size_t limits[] = {2, 16, 100, 256, 512, 1024, 3000};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct connection_budget *budget = make(limits[i]);
		size_t all = listen_for_services(budget);

		for (enum connection_kind kind = 0; kind < CONNECTION_KIND_COUNT; kind++)
			all += fill(budget, kind, all);
		assert_true(all <= limits[i] - MIN(BUDGET_PROGRAM, limits[i] / 2));
		connection_budget_free(budget);
	}
}

static void each_kind_is_sure_of_its_share(void **state attr_unused)
{
	struct connection_budget *budget = make(1024);
	size_t listeners = listen_for_services(budget);
	struct err err;

	assert_int_equal(listeners, 1024 - BUDGET_PROGRAM - 64 - 32 - 64);
	assert_int_equal(fill(budget, CONNECTION_SERVICE, 0), 64);
	assert_int_equal(fill(budget, CONNECTION_METRICS, 1000), 32);
	assert_int_equal(fill(budget, CONNECTION_HEALTH, 2000), 64);
	/* the servers of the program itself come late, and are let in */
	assert_int_equal(connection_budget_listen(budget, CONNECTION_HEALTH, &err), 0);
	connection_budget_free(budget);
}

static void nobody_takes_everything_where_there_is_plenty(void **state attr_unused)
{
	struct connection_budget *budget = make(1u << 20);

	assert_int_equal(fill(budget, CONNECTION_SERVICE, 0), 1024);
	assert_int_equal(fill(budget, CONNECTION_METRICS, 2000), 256);
	assert_int_equal(fill(budget, CONNECTION_HEALTH, 3000), 256);
	connection_budget_free(budget);
}

static void what_is_given_back_can_be_taken_again(void **state attr_unused)
{
	struct connection_budget *budget = make(400);
	size_t n = fill(budget, CONNECTION_SERVICE, 0);

	connection_budget_give(budget, &places[0]);
	assert_true(connection_budget_has_room(budget, CONNECTION_SERVICE));
	occupy(budget, CONNECTION_SERVICE, &places[n]);
	assert_false(connection_budget_has_room(budget, CONNECTION_SERVICE));
	connection_budget_give(budget, &places[n]);
	assert_int_equal(listen_for_services(budget), 1);
	connection_budget_unlisten(budget);
	assert_true(connection_budget_has_room(budget, CONNECTION_SERVICE));
	connection_budget_free(budget);
}

static struct connection_place *victim(struct connection_budget *budget,
				       const struct http_server *server)
{
	return connection_budget_victim(budget, CONNECTION_HEALTH, server);
}

static void the_idle_go_before_the_oldest_and_streams_never(void **state attr_unused)
{
	struct connection_budget *budget = make(1024);

	assert_null(victim(budget, NULL));
	for (size_t i = 0; i < 4; i++)
		occupy(budget, CONNECTION_HEALTH, &places[i]);
	places[0].state = PLACE_STREAMING;
	places[1].state = PLACE_REPLYING;
	places[3].server = server_number(2);
	assert_ptr_equal(victim(budget, NULL), &places[1]); /* nobody has waited for long */
	assert_ptr_equal(victim(budget, server_number(2)), &places[3]);
	fake_now += CLOCK_NS_PER_SECOND;
	assert_ptr_equal(victim(budget, NULL), &places[2]);
	places[2].since_ns = fake_now; /* it asked for something */
	assert_ptr_equal(victim(budget, NULL), &places[3]);
	assert_ptr_equal(victim(budget, server_number(1)), &places[1]);
	for (size_t i = 0; i < 4; i++)
		places[i].state = PLACE_STREAMING;
	assert_null(victim(budget, NULL));
	connection_budget_free(budget);
}

static void count(void *arg, const struct err *err)
{
	assert_string_equal(err->text, "accept: Too many open files");
	(*(unsigned int *)arg)++;
}

static void failures_are_told_once_for_as_long_as_they_last(void **state attr_unused)
{
	unsigned int told = 0;
	struct connection_budget *budget = connection_budget_new(&(struct connection_budget_config){
		.descriptors = 512, .cannot_accept = count, .arg = &told});

	for (int i = 0; i < 1000; i++) {
		connection_budget_cannot_accept(budget, -EMFILE);
		fake_now += CLOCK_NS_PER_SECOND;
	}
	assert_int_equal(told, 1);
	fake_now += 61 * CLOCK_NS_PER_SECOND;
	connection_budget_cannot_accept(budget, -EMFILE);
	assert_int_equal(told, 2);
	connection_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_program_needs_is_never_given),
		cmocka_unit_test(each_kind_is_sure_of_its_share),
		cmocka_unit_test(nobody_takes_everything_where_there_is_plenty),
		cmocka_unit_test(what_is_given_back_can_be_taken_again),
		cmocka_unit_test(the_idle_go_before_the_oldest_and_streams_never),
		cmocka_unit_test(failures_are_told_once_for_as_long_as_they_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
