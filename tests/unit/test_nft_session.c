/* SPDX-License-Identifier: Apache-2.0 */

/* Tasks, turns and the worker thread, in front of the real kernel. */

#include <errno.h>
#include <event2/event.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_session.h"
#include "nft_world.h"

#define MANY_RULES  20000 /* in a transaction: the kernel works on it for some ten milliseconds */
#define MANY_CHAINS 6000  /* in a list: more than is read at once */

struct world {
	struct event_base *loop;
	struct nft_session *session, *other;
	struct nft_task task, second;
	struct nft_batch *batch, *other_batch;
	struct event *tick;
	size_t n_ticks, n_messages, n_listed;
	int r, other_r;
	bool done, other_done, waits;
	char story[64];
};

static void on_message(void *arg, const struct nlmsghdr *message attr_unused)
{
	struct world *world = arg;

	world->n_messages++;
}

static void on_generation(void *arg attr_unused, uint32_t id attr_unused, uint32_t pid attr_unused,
			  const char *process attr_unused)
{
}

static void on_own_generation(void *arg attr_unused, uint32_t id attr_unused)
{
}

static void on_lost(void *arg attr_unused)
{
	fail_msg("notifications were lost");
}

static const struct nft_listener_events events = {on_message, on_generation, on_own_generation,
						  on_lost};

/* Every millisecond. */
static void on_tick(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct world *world = arg;

	world->n_ticks++;
}

static struct nft_session *open_session(struct world *world)
{
	struct nft_session *session;
	struct err err;

	if (nft_session_open(world->loop, &events, world, &session, &err) < 0)
		fail_msg("%s", err.text);
	return session;
}

static int set_up(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));

	private_network();
	world->loop = event_base_new();
	world->session = open_session(world);
	world->other = open_session(world);
	world->batch = nft_batch_new();
	world->other_batch = nft_batch_new();
	world->tick = event_new(world->loop, -1, EV_PERSIST, on_tick, world);
	event_add(world->tick, &(const struct timeval){.tv_usec = 1000});
	fresh_table(nft_session_socket(world->session), world->batch);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	nft_session_free(world->session);
	nft_session_free(world->other);
	nft_batch_free(world->batch);
	nft_batch_free(world->other_batch);
	event_free(world->tick);
	event_base_free(world->loop);
	free(world);
	return 0;
}

static void put_many_rules(struct nft_batch *batch)
{
	for (size_t i = 0; i < MANY_RULES; i++)
		put_rule(batch, "c", 64, 0);
}

static void wait_for(struct world *world, const bool *what)
{
	while (!*what)
		event_base_loop(world->loop, EVLOOP_ONCE);
}

/* -- tasks */

static void commit_batch(void *arg)
{
	struct world *world = arg;
	struct err err;

	strcat(world->story, "a");
	world->r = nft_batch_commit(nft_session_socket(world->session), world->batch, 0, NULL, NULL,
				    &err);
	strcat(world->story, "b");
}

static void note_done(void *arg)
{
	struct world *world = arg;

	world->done = true;
	strcat(world->story, "c");
}

static void commit_other(void *arg)
{
	struct world *world = arg;
	struct err err;

	strcat(world->story, "x");
	world->other_r = nft_batch_commit(nft_session_socket(world->other), world->other_batch, 0,
					  NULL, NULL, &err);
	strcat(world->story, "y");
}

static void note_other_done(void *arg)
{
	struct world *world = arg;

	world->other_done = true;
	strcat(world->story, "z");
}

static void the_loop_goes_on_while_the_kernel_works(void **state)
{
	struct world *world = *state;

	put_many_rules(world->batch);
	world->task = (struct nft_task){commit_batch, note_done, world};
	nft_session_run(world->session, &world->task);
	assert_string_equal(world->story, "a"); /* the kernel has it, and we are here */
	event_base_loop(world->loop, EVLOOP_NONBLOCK);
	wait_for(world, &world->done);
	assert_int_equal(world->r, 0);
	assert_string_equal(world->story, "abc");
}

static void a_session_runs_one_task_after_the_other(void **state)
{
	struct world *world = *state;

	put_many_rules(world->batch);
	world->task = (struct nft_task){commit_batch, note_done, world};
	world->second = (struct nft_task){commit_batch, note_other_done, world};
	nft_session_run(world->session, &world->task);
	nft_session_run(world->session, &world->second);
	nft_session_run(world->session, &world->second); /* waits already */
	wait_for(world, &world->other_done);
	assert_string_equal(world->story, "abcabz");
	event_base_loop(world->loop, EVLOOP_NONBLOCK);
	assert_string_equal(world->story, "abcabz");
}

/* The other one's task begins, and its transaction waits for this one's. */
static void sessions_take_turns(void **state)
{
	struct world *world = *state;

	put_many_rules(world->batch);
	put_chain(world->other_batch, NFT_MSG_NEWCHAIN, "d");
	world->task = (struct nft_task){commit_batch, note_done, world};
	world->second = (struct nft_task){commit_other, note_other_done, world};
	nft_session_run(world->session, &world->task);
	nft_session_run(world->other, &world->second);
	assert_string_equal(world->story, "ax");
	wait_for(world, &world->other_done);
	assert_int_equal(world->r, 0);
	assert_int_equal(world->other_r, 0);
	assert_string_equal(world->story, "axbcyz");
}

/* -- lists */

static int count_chain(void *arg, const struct nlmsghdr *message attr_unused,
		       struct err *err attr_unused)
{
	struct world *world = arg;

	world->n_listed++;
	return 0;
}

static void list_chains(void *arg)
{
	static const struct nft_dump_ops ops = {.message = count_chain};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETCHAIN, .family = FAMILY_IPV4, .table = "test"};
	struct world *world = arg;
	struct err err;

	world->r = nft_dump(nft_session_socket(world->session), &request, &ops, world, &err);
}

static void make_chains(struct world *world)
{
	char name[32];

	for (size_t i = 0; i < MANY_CHAINS; i++) {
		snprintf(name, sizeof(name), "chain-with-a-name-%zu", i);
		put_chain(world->batch, NFT_MSG_NEWCHAIN, name);
	}
	commit(nft_session_socket(world->session), world->batch);
}

static void a_long_list_is_complete(void **state)
{
	struct world *world = *state;

	make_chains(world);
	world->task = (struct nft_task){list_chains, note_done, world};
	for (size_t i = 0; i < 3; i++) {
		world->n_listed = 0;
		world->done = false;
		nft_session_run(world->session, &world->task);
		wait_for(world, &world->done);
		assert_int_equal(world->r, 0);
		assert_int_equal(world->n_listed, MANY_CHAINS + 1);
		generation_of(nft_session_socket(world->session)); /* nothing of it is left over */
	}
}

/* A transaction of the other session comes behind it, so that the list need not begin again. */
static void nothing_of_ours_disturbs_a_long_list(void **state)
{
	struct world *world = *state;

	make_chains(world);
	put_chain(world->other_batch, NFT_MSG_NEWCHAIN, "d");
	world->task = (struct nft_task){list_chains, note_done, world};
	world->second = (struct nft_task){commit_other, note_other_done, world};
	nft_session_run(world->session, &world->task);
	assert_false(world->done); /* the list is long enough */
	nft_session_run(world->other, &world->second);
	wait_for(world, &world->other_done);
	assert_true(world->done);
	assert_int_equal(world->r, 0);
	assert_int_equal(world->n_listed, MANY_CHAINS + 1);
}

/* -- what other programs do */

static void is_told_between_tasks(void **state)
{
	struct world *world = *state;
	struct nft_socket *stranger = open_socket();

	put_many_rules(world->batch);
	world->task = (struct nft_task){commit_batch, note_done, world};
	put_chain(world->other_batch, NFT_MSG_NEWCHAIN, "foreign");
	commit(stranger, world->other_batch);
	nft_session_run(world->session, &world->task);
	nft_listener_hold(nft_session_listener(world->other), true);
	wait_for(world, &world->done);
	assert_int_equal(world->n_messages, 0);
	while (world->n_messages == 0)
		event_base_loop(world->loop, EVLOOP_ONCE);
	nft_listener_hold(nft_session_listener(world->other), false);
	nft_socket_free(stranger);
}

/* -- long work */

static void work_long(void *arg)
{
	struct world *world = arg;
	size_t before = world->n_ticks;

	while (world->n_ticks < before + 3)
		fiber_breathe();
}

static void who_breathes_lets_the_loop_go_on(void **state)
{
	struct world *world = *state;

	world->task = (struct nft_task){work_long, note_done, world};
	nft_session_run(world->session, &world->task);
	wait_for(world, &world->done);
	assert_true(world->n_ticks >= 3);
}

#define BUSY_NS (30 * CLOCK_NS_PER_MS)

/* The loop does other things for a while. */
static void be_busy(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct world *world = arg;
	int64_t until = clock_now_ns() + BUSY_NS;

	while (clock_now_ns() < until)
		;
	world->other_done = true;
}

static void work_beside(void *arg)
{
	struct world *world = arg;

	while (!world->other_done)
		fiber_breathe();
}

static void what_the_loop_does_meanwhile_costs_a_task_nothing(void **state)
{
	struct world *world = *state;
	struct event *busy = evtimer_new(world->loop, be_busy, world);
	int64_t began = clock_now_ns(), took;

	evtimer_add(busy, &(const struct timeval){0});
	world->task = (struct nft_task){work_beside, note_done, world};
	nft_session_run(world->session, &world->task);
	wait_for(world, &world->done);
	took = clock_now_ns() - began;
	assert_true(nft_session_spent_ns(world->session) > 0);
	assert_true(nft_session_spent_ns(world->session) <= took - BUSY_NS);
	event_free(busy);
}

/* -- the end */

static void commit_twice(void *arg)
{
	struct world *world = arg;
	struct err err;

	commit_batch(arg);
	world->other_r = nft_batch_commit(nft_session_socket(world->session), world->batch, 0, NULL,
					  NULL, &err);
}

static void an_end_waits_for_the_kernel_and_for_nothing_else(void **state)
{
	struct world *world = *state;
	uint32_t before = generation_of(nft_session_socket(world->other));

	put_many_rules(world->batch);
	world->task = (struct nft_task){commit_twice, note_done, world};
	nft_session_run(world->session, &world->task);
	world->session = nft_session_free(world->session);
	assert_int_equal(world->r, 0);
	assert_int_equal(world->other_r, -ECANCELED);
	assert_false(world->done);
	assert_int_equal(generation_of(nft_session_socket(world->other)), before + 1);
}

static void who_waits_for_its_turn_can_end(void **state)
{
	struct world *world = *state;

	put_many_rules(world->batch);
	put_chain(world->other_batch, NFT_MSG_NEWCHAIN, "d");
	world->task = (struct nft_task){commit_batch, note_done, world};
	world->second = (struct nft_task){commit_other, note_other_done, world};
	nft_session_run(world->session, &world->task);
	nft_session_run(world->other, &world->second);
	world->other = nft_session_free(world->other);
	assert_int_equal(world->other_r, -ECANCELED);
	wait_for(world, &world->done);
	assert_int_equal(world->r, 0);
	assert_false(world->other_done);
}

/* The turn was given away, and who got it ends before it knows. */
static void who_has_just_got_its_turn_can_end(void **state)
{
	struct world *world = *state;

	put_many_rules(world->batch);
	put_chain(world->other_batch, NFT_MSG_NEWCHAIN, "d");
	world->task = (struct nft_task){commit_batch, note_done, world};
	world->second = (struct nft_task){commit_other, note_other_done, world};
	nft_session_run(world->session, &world->task);
	nft_session_run(world->other, &world->second);
	world->session = nft_session_free(world->session);
	world->other = nft_session_free(world->other);
	assert_int_equal(world->r, 0);
	assert_int_equal(world->other_r, -ECANCELED);
	world->session = open_session(world);
	world->done = false;
	nft_session_run(world->session, &world->task);
	wait_for(world, &world->done);
	assert_int_equal(world->r, 0);
}

/* -- the beginning */

static void limit_descriptors(rlim_t n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A new configuration finds that clients hold all descriptors: the owner of the old rules goes on. */
static void is_refused_where_there_are_no_descriptors(void **state)
{
	struct world *world = *state;
	struct nft_session *session = NULL;
	int first = dup(STDIN_FILENO), r = -EMFILE;
	size_t n_refused = 0;
	struct rlimit before;
	struct err err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	close(first);
	for (rlim_t room = 0; r == -EMFILE; room++) {
		limit_descriptors((rlim_t)first + room);
		r = nft_session_open(world->loop, &events, world, &session, &err);
		n_refused += r == -EMFILE;
	}
	limit_descriptors(before.rlim_cur);
	assert_int_equal(r, 0);
	assert_int_equal(n_refused,
			 3); /* one socket to ask, one to listen, one to hear of the worker */
	nft_session_free(session);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_loop_goes_on_while_the_kernel_works),
		TEST(a_session_runs_one_task_after_the_other),
		TEST(sessions_take_turns),
		TEST(a_long_list_is_complete),
		TEST(nothing_of_ours_disturbs_a_long_list),
		TEST(is_told_between_tasks),
		TEST(who_breathes_lets_the_loop_go_on),
		TEST(what_the_loop_does_meanwhile_costs_a_task_nothing),
		TEST(an_end_waits_for_the_kernel_and_for_nothing_else),
		TEST(who_waits_for_its_turn_can_end),
		TEST(who_has_just_got_its_turn_can_end),
		TEST(is_refused_where_there_are_no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
