/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/restore/canary.h"
#include "base/clock.h"
#include "fake_tools.h"
#include "xtables/chains.h"

#define INTERVAL_NS (20 * CLOCK_NS_PER_MS)

struct context {
	struct fake fake;
	struct event_base *loop;
	struct iptables_tool *tool;
	struct canary *canary;
	size_t flushes;
};

static void on_gone(void *arg)
{
	struct context *context = arg;

	context->flushes++;
}

static int set_up(void **state)
{
	struct context *context = xcalloc(1, sizeof(*context));
	struct err err;

	*state = context;
	fake_start(&context->fake);
	context->loop = event_base_new();
	assert_int_equal(iptables_tool_open(context->loop, FAMILY_IPV4, IPTABLES_VARIANT_AUTO,
					    &context->tool, &err),
			 0);
	free(fake_log(&context->fake));
	return 0;
}

static int tear_down(void **state)
{
	struct context *context = *state;

	canary_free(context->canary);
	iptables_tool_close(context->tool);
	event_base_free(context->loop);
	fake_stop(&context->fake);
	free(context);
	return 0;
}

static void start(struct context *context, int64_t limit_ns)
{
	const struct canary_times times = {INTERVAL_NS, 5 * CLOCK_NS_PER_MS, limit_ns};

	context->canary = canary_new(context->loop, context->tool, &times, on_gone, context);
}

static char *chain_file(const char *table)
{
	return xasprintf("state/iptables.%s.%s", table, CHAIN_CANARY);
}

static bool has_chain(const struct context *context, const char *table)
{
	cleanup_free char *name = chain_file(table);

	return fake_has(&context->fake, name);
}

static void remove_chain(const struct context *context, const char *table)
{
	cleanup_free char *name = chain_file(table);

	assert_true(fake_has(&context->fake, name));
	fake_remove(&context->fake, name);
}

/* Turns the loop until the log has this many commands with these words since it was last emptied.
 */
static void wait_for(struct context *context, const char *words, size_t times)
{
	int64_t deadline = clock_now_ns() + 30 * CLOCK_NS_PER_SECOND;

	for (;;) {
		cleanup_free char *log = fake_read(&context->fake, "log");
		const char *at = log;
		size_t seen = 0;

		while ((at = strstr(at, words))) {
			at += strlen(words);
			seen++;
		}
		if (seen >= times)
			return;
		assert_true(clock_now_ns() < deadline);
		event_base_loop(context->loop, EVLOOP_ONCE);
	}
}

static void wait_for_flushes(struct context *context, size_t flushes)
{
	int64_t deadline = clock_now_ns() + 30 * CLOCK_NS_PER_SECOND;

	while (context->flushes < flushes) {
		assert_true(clock_now_ns() < deadline);
		event_base_loop(context->loop, EVLOOP_ONCE);
	}
}

/* All canaries are there, and the one in mangle has been looked at. */
static void wait_until_watching(struct context *context)
{
	free(fake_log(&context->fake));
	wait_for(context, "-S " CHAIN_CANARY " -t mangle", 1);
	assert_true(has_chain(context, "mangle") && has_chain(context, "nat") &&
		    has_chain(context, "filter"));
}

static void monitor_creates_canaries_then_checks_only_mangle(void **state)
{
	struct context *context = *state;
	cleanup_free char *log = NULL;

	start(context, CLOCK_NS_PER_SECOND);
	wait_for(context, "-S", 2);
	log = fake_log(&context->fake);
	assert_true(has_prefix(log, "iptables -w 5 -N KUBE-PROXY-CANARY -t mangle\n"
				    "iptables -w 5 -N KUBE-PROXY-CANARY -t nat\n"
				    "iptables -w 5 -N KUBE-PROXY-CANARY -t filter\n"
				    "iptables -w 5 -S KUBE-PROXY-CANARY -t mangle\n"
				    "iptables -w 5 -S KUBE-PROXY-CANARY -t mangle\n"));
	assert_int_equal(context->flushes, 0);
}

static void monitor_reloads_only_after_all_are_gone(void **state)
{
	struct context *context = *state;

	start(context, 30 * CLOCK_NS_PER_SECOND);
	wait_until_watching(context);
	remove_chain(context, "mangle");
	free(fake_log(&context->fake));
	wait_for(context, "-t nat", 3); /* looks for the next one again and again */
	assert_int_equal(context->flushes, 0);
	remove_chain(context, "nat");
	free(fake_log(&context->fake));
	wait_for(context, "-t filter", 3);
	assert_int_equal(context->flushes, 0);
	remove_chain(context, "filter");
	wait_for_flushes(context, 1);
}

static void monitor_recreates_canaries_after_the_reload(void **state)
{
	struct context *context = *state;

	start(context, CLOCK_NS_PER_SECOND);
	wait_until_watching(context);
	for (size_t flush = 1; flush <= 2; flush++) {
		remove_chain(context, "filter");
		remove_chain(context, "nat");
		remove_chain(context, "mangle");
		wait_for_flushes(context, flush);
		wait_until_watching(context);
	}
	assert_int_equal(context->flushes, 2);
}

static void monitor_ignores_canaries_that_go_while_mangle_stays(void **state)
{
	struct context *context = *state;

	start(context, CLOCK_NS_PER_SECOND);
	wait_until_watching(context);
	remove_chain(context, "nat");
	remove_chain(context, "filter");
	free(fake_log(&context->fake));
	wait_for(context, "-S", 3);
	assert_int_equal(context->flushes, 0);
}

static void monitor_reloads_when_some_stay_for_too_long(void **state)
{
	struct context *context = *state;
	int64_t before;

	start(context, 60 * CLOCK_NS_PER_MS);
	wait_until_watching(context);
	remove_chain(context, "mangle");
	before = clock_now_ns();
	wait_for_flushes(context, 1);
	assert_true(clock_now_ns() - before >= 60 * CLOCK_NS_PER_MS);
	assert_true(has_chain(context, "nat"));
}

static void monitor_retries_creation_while_the_lock_is_held(void **state)
{
	struct context *context = *state;

	fake_answer(&context->fake, "*-N*-t nat*", 4, false,
		    "Another app is holding the xtables lock.");
	start(context, CLOCK_NS_PER_SECOND);
	wait_for(context, "-t nat", 3);
	assert_true(has_chain(context, "mangle"));
	assert_false(has_chain(context, "filter"));
	fake_no_answers(&context->fake);
	wait_until_watching(context);
	assert_int_equal(context->flushes, 0);
}

/* Exit status 4 is "unknown": neither there nor gone. */
static void monitor_takes_a_held_lock_for_unknown(void **state)
{
	struct context *context = *state;

	start(context, 30 * CLOCK_NS_PER_SECOND);
	wait_until_watching(context);
	fake_answer(&context->fake, "*-S*", 4, false, "Another app is holding the xtables lock.");
	free(fake_log(&context->fake));
	wait_for(context, "-S " CHAIN_CANARY " -t mangle", 3);
	assert_int_equal(context->flushes, 0);
	fake_no_answers(&context->fake);
	fake_answer(&context->fake, "*-S*-t nat*", 4, false,
		    "Another app is holding the xtables lock.");
	remove_chain(context, "mangle");
	remove_chain(context, "nat");
	remove_chain(context, "filter");
	wait_for(context, "-t nat", 3);
	assert_int_equal(context->flushes, 0); /* with the lock held it might still be there */
	fake_no_answers(&context->fake);
	wait_for_flushes(context, 1);
}

static void monitor_leaves_the_chains_when_it_ends(void **state)
{
	struct context *context = *state;

	start(context, CLOCK_NS_PER_SECOND);
	wait_until_watching(context);
	context->canary = canary_free(context->canary);
	event_base_loop(context->loop, EVLOOP_NONBLOCK);
	assert_true(has_chain(context, "mangle") && has_chain(context, "nat") &&
		    has_chain(context, "filter"));
}

#define canary_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		canary_test(monitor_creates_canaries_then_checks_only_mangle),
		canary_test(monitor_reloads_only_after_all_are_gone),
		canary_test(monitor_recreates_canaries_after_the_reload),
		canary_test(monitor_ignores_canaries_that_go_while_mangle_stays),
		canary_test(monitor_reloads_when_some_stay_for_too_long),
		canary_test(monitor_retries_creation_while_the_lock_is_held),
		canary_test(monitor_takes_a_held_lock_for_unknown),
		canary_test(monitor_leaves_the_chains_when_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
