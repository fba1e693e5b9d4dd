/* SPDX-License-Identifier: Apache-2.0 */

/* What a mode is told of other programs, when it is to repair, and what it writes on, in front of the real kernel. */

#include <errno.h>
#include <event2/event.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/nft_watch.h"
#include "nft_world.h"

#define COST_NS (300 * CLOCK_NS_PER_MS) /* of a repair: the next one waits as long */

/* A mode that owns chain "c", and whose damage is a number of messages. */
struct world {
	struct event_base *loop;
	struct nft_watch *watch;
	struct nft_batch *batch, *foreign_batch;
	struct nft_socket *stranger;
	size_t damage, n_repairs;
	int n_meddle; /* so often a stranger writes before what send() commits */
	size_t n_sent, n_blind;
	int log;
};

static void take_message(void *arg, const struct nlmsghdr *message, struct foreign_changes *changes)
{
	struct world *world = arg;
	const char *chain = nft_message_string(message, NFTA_RULE_CHAIN);

	if (nft_message_type(message) != NFT_MSG_NEWRULE || !chain || !streq(chain, "c"))
		return;
	world->damage++;
	foreign_changes_take(changes, message);
}

static void take_loss(void *arg, struct foreign_changes *changes attr_unused)
{
	struct world *world = arg;

	world->damage++;
}

static bool is_damaged(void *arg)
{
	const struct world *world = arg;

	return world->damage > 0;
}

static void repair(void *arg)
{
	struct world *world = arg;

	world->n_repairs++;
}

static int set_up(void **state)
{
	static const struct nft_watch_ops ops = {take_message, take_loss, is_damaged, repair};
	struct world *world = xcalloc(1, sizeof(*world));
	struct err err;

	private_network();
	world->loop = event_base_new();
	world->batch = nft_batch_new();
	world->foreign_batch = nft_batch_new();
	world->stranger = open_socket();
	fresh_table(world->stranger, world->batch);
	if (nft_watch_open(world->loop, FAMILY_IPV4, &ops, world, &world->watch, &err) < 0)
		fail_msg("%s", err.text);
	world->log = memfd_create("log", 0);
	log_set_fd(world->log);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	log_set_fd(STDERR_FILENO);
	close(world->log);
	nft_watch_free(world->watch);
	nft_socket_free(world->stranger);
	nft_batch_free(world->batch);
	nft_batch_free(world->foreign_batch);
	event_base_free(world->loop);
	free(world);
	return 0;
}

static void meddle(struct world *world, const char *chain)
{
	put_rule(world->foreign_batch, chain, 0, 0);
	commit(world->stranger, world->foreign_batch);
}

static void wait_for_repair(struct world *world, size_t n)
{
	while (world->n_repairs < n)
		event_base_loop(world->loop, EVLOOP_ONCE);
	assert_int_equal(world->n_repairs, n);
}

static bool is_logged(const struct world *world, const char *part)
{
	char text[4096];
	ssize_t n = pread(world->log, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	return strstr(text, part) != NULL;
}

/* -- writing */

static int send_rule(void *arg, uint32_t generation, struct err *err)
{
	struct world *world = arg;

	world->n_sent++;
	world->n_blind += generation == 0;
	if (world->n_meddle-- > 0)
		meddle(world, "c");
	nft_batch_reset(world->batch);
	put_rule(world->batch, "c", 0, 0);
	return nft_batch_commit(nft_session_socket(nft_watch_session(world->watch)), world->batch,
				generation, NULL, NULL, err);
}

static void write_rule(struct world *world)
{
	struct err err;

	world->n_sent = 0;
	if (nft_watch_write(world->watch, send_rule, world, &err) < 0)
		fail_msg("%s", err.text);
}

static void what_is_written_again_stands_on_what_was_heard(void **state)
{
	struct world *world = *state;

	write_rule(world);
	write_rule(world); /* on what it wrote itself */
	assert_int_equal(world->n_sent, 1);
	meddle(world, "c"); /* heard before it is sent */
	write_rule(world);
	assert_int_equal(world->n_sent, 1);
	assert_int_equal(world->damage, 1);
	world->n_meddle = 2; /* while it is sent */
	write_rule(world);
	assert_int_equal(world->n_sent, 3);
	assert_int_equal(world->damage, 3);
	assert_int_equal(nft_watch_n_resent(world->watch), 2);
	assert_int_equal(world->n_blind, 0);
}

static void who_never_stops_writing_is_not_waited_for(void **state)
{
	struct world *world = *state;

	world->n_meddle = 1000;
	write_rule(world);
	assert_int_equal(world->n_blind, 1);
	assert_int_equal(nft_watch_n_resent(world->watch), world->n_sent - 1);
}

static int refuse(void *arg attr_unused, uint32_t generation attr_unused, struct err *err)
{
	return err_set(err, -ESTALE, "there is damage");
}

static void a_writer_may_end_it(void **state)
{
	struct world *world = *state;
	struct err err;

	assert_int_equal(nft_watch_write(world->watch, refuse, world, &err), -ESTALE);
	assert_string_equal(err.text, "there is damage");
	assert_int_equal(nft_watch_n_resent(world->watch), 0);
}

/* -- repairs */

static void a_repair_is_asked_for_once_until_it_is_over(void **state)
{
	struct world *world = *state;

	assert_false(nft_watch_synced(world->watch, true, 0));
	meddle(world, "c");
	wait_for_repair(world, 1);
	meddle(world, "c"); /* heard, but the mode is at work */
	while (world->damage < 2)
		event_base_loop(world->loop, EVLOOP_ONCE);
	world->damage = 1;
	nft_watch_repaired(world->watch, 0, true);
	nft_watch_idle(world->watch);
	wait_for_repair(world, 2);
}

static void nothing_is_repaired_before_a_sync_was_good(void **state)
{
	struct world *world = *state;

	assert_false(nft_watch_synced(world->watch, false, 0));
	meddle(world, "c");
	while (world->damage == 0)
		event_base_loop(world->loop, EVLOOP_ONCE);
	assert_int_equal(event_base_get_num_events(world->loop, EVENT_BASE_COUNT_ADDED), 2);
	assert_false(
		nft_watch_synced(world->watch, true, 0)); /* what was before that is not told */
	wait_for_repair(world, 1);
}

static void what_is_not_ours_causes_nothing(void **state)
{
	struct world *world = *state;

	nft_watch_synced(world->watch, true, 0);
	put_chain(world->foreign_batch, NFT_MSG_NEWCHAIN, "d");
	commit(world->stranger, world->foreign_batch);
	meddle(world, "d");
	nft_watch_hear(world->watch);
	assert_int_equal(world->damage, 0);
	nft_watch_idle(world->watch);
	meddle(world, "c");
	wait_for_repair(world, 1);
}

/* The distance to the next repair is what the last one cost. */
static void the_pace_follows_the_cost(void **state)
{
	struct world *world = *state;
	int64_t began;

	nft_watch_synced(world->watch, true, 0);
	nft_watch_repaired(world->watch, COST_NS, true);
	began = clock_now_ns();
	meddle(world, "c");
	wait_for_repair(world, 1);
	assert_true(clock_now_ns() - began >= COST_NS - CLOCK_NS_PER_MS);
}

/* -- what is told */

static void what_a_sync_came_upon_is_told_at_its_end(void **state)
{
	struct world *world = *state;

	nft_watch_synced(world->watch, true, 0);
	nft_watch_busy(world->watch);
	meddle(world, "c");
	nft_watch_hear(world->watch);
	nft_watch_found(world->watch);
	assert_false(nft_watch_synced(world->watch, false, 0)); /* it failed: the next one will */
	world->damage = 0;
	assert_true(nft_watch_synced(world->watch, true, 0));
	assert_true(is_logged(world, "this sync repaired them\" ipFamily=\"IPv4\" what=\"rule of "
				     "chain c added\""));
	assert_false(nft_watch_synced(world->watch, true, 0));
}

static void what_a_sync_was_asked_for_is_told_once(void **state)
{
	struct world *world = *state;
	cleanup_free char *what = NULL;

	nft_watch_synced(world->watch, true, 0);
	nft_watch_note(world->watch, "all is wrong");
	what = nft_watch_ask(world->watch);
	assert_string_equal(what, "all is wrong");
	nft_watch_busy(world->watch);
	meddle(world, "c");
	nft_watch_hear(world->watch);
	nft_watch_found(world->watch);
	assert_false(nft_watch_synced(world->watch, true, 0));
	assert_false(is_logged(world, "this sync repaired them"));
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD(what_is_written_again_stands_on_what_was_heard),
		WORLD(who_never_stops_writing_is_not_waited_for),
		WORLD(a_writer_may_end_it),
		WORLD(a_repair_is_asked_for_once_until_it_is_over),
		WORLD(nothing_is_repaired_before_a_sync_was_good),
		WORLD(what_is_not_ours_causes_nothing),
		WORLD(the_pace_follows_the_cost),
		WORLD(what_a_sync_came_upon_is_told_at_its_end),
		WORLD(what_a_sync_was_asked_for_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
