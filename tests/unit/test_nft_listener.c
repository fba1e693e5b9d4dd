/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_listener.h"
#include "nft_world.h"

struct world {
	struct event_base *loop;
	struct nft_socket *socket, *other;
	struct nft_batch *batch;
	struct nft_listener *listener;

	size_t messages, generations, own, lost;
	uint32_t id, pid;
	int type; /* of the last message */
	char process[32];
	bool heard;
};

static void on_message(void *arg, const struct nlmsghdr *message)
{
	struct world *world = arg;

	world->messages++;
	world->type = nft_message_type(message);
	assert_string_equal(nft_message_string(message, NFTA_RULE_TABLE), "test");
}

static void on_generation(void *arg, uint32_t id, uint32_t pid, const char *process)
{
	struct world *world = arg;

	world->generations++;
	world->id = id;
	world->pid = pid;
	snprintf(world->process, sizeof(world->process), "%s", process);
	world->heard = true;
}

static void on_own_generation(void *arg, uint32_t id)
{
	struct world *world = arg;

	world->own++;
	world->id = id;
}

static void on_lost(void *arg)
{
	struct world *world = arg;

	world->lost++;
}

static void set_up_listener(struct world *world)
{
	static const struct nft_listener_events events = {on_message, on_generation,
							  on_own_generation, on_lost};
	struct err err;

	assert_int_equal(nft_listener_open(world->loop, nft_socket_port(world->socket), &events,
					   world, &world->listener, &err),
			 0);
}

static void tear_down_listener(struct world *world)
{
	world->listener = nft_listener_free(world->listener);
}

static int set_up(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));

	private_network();
	world->loop = event_base_new();
	world->socket = open_socket();
	world->other = open_socket();
	world->batch = nft_batch_new();
	fresh_table(world->socket, world->batch);
	set_up_listener(world);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	tear_down_listener(world);
	nft_batch_free(world->batch);
	nft_socket_free(world->socket);
	nft_socket_free(world->other);
	event_base_free(world->loop);
	free(world);
	return 0;
}

static void foreign_changes_are_told_and_end_with_their_generation(void **state)
{
	struct world *world = *state;

	put_rule(world->batch, "c", 0, 0);
	put_rule(world->batch, "c", 0, 0);
	commit(world->other, world->batch);
	fake_wait(world->loop, &world->heard);
	assert_int_equal(world->messages, 2);
	assert_int_equal(world->type, NFT_MSG_NEWRULE);
	assert_int_equal(world->generations, 1);
	assert_int_equal(world->id, generation_of(world->socket));
	assert_int_equal(world->pid, getpid());
	assert_string_equal(world->process, "test_nft_listen"); /* 15 letters */
	assert_int_equal(world->own + world->lost, 0);
}

static void a_foreign_program_is_named(void **state)
{
	struct world *world = *state;

	put_rule(world->batch, "c", 0, 0);
	commit(world->socket, world->batch);
	assert_int_equal(system("nft flush chain ip test c"), 0);
	nft_listener_drain(world->listener);
	assert_int_equal(world->messages, 1);
	assert_int_equal(world->type, NFT_MSG_DELRULE);
	assert_string_equal(world->process, "nft");
}

static void of_own_changes_only_the_generation_is_told(void **state)
{
	struct world *world = *state;

	put_rule(world->batch, "c", 0, NLM_F_ECHO);
	commit(world->socket, world->batch);
	nft_listener_drain(world->listener);
	assert_int_equal(world->messages + world->generations + world->lost, 0);
	assert_int_equal(world->own, 1);
	assert_int_equal(world->id, generation_of(world->socket));
}

static void put_many(struct world *world)
{
	for (int i = 0; i < 100000; i++)
		put_rule(world->batch, "c", 250, 0);
}

static void own_changes_of_any_size_lose_nothing(void **state)
{
	struct world *world = *state;

	put_many(world);
	commit(world->socket, world->batch);
	nft_listener_drain(world->listener);
	assert_int_equal(world->lost + world->messages, 0);
	assert_int_equal(world->own, 1);
}

static void loss_is_told_once_and_what_comes_after_it_is_complete(void **state)
{
	struct world *world = *state;

	put_many(world);
	commit(world->other, world->batch);
	nft_listener_drain(world->listener);
	assert_int_equal(world->lost, 1);
	assert_int_equal(world->messages, 0);
	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	commit(world->other, world->batch);
	nft_listener_drain(world->listener);
	assert_int_equal(world->lost, 1);
	assert_int_equal(world->messages, 1);
	assert_int_equal(world->type, NFT_MSG_NEWCHAIN);
	assert_int_equal(world->generations, 1);
	assert_int_equal(world->id, generation_of(world->socket));
}

static void a_long_queue_is_read_in_several_turns_of_the_loop(void **state)
{
	struct world *world = *state;
	char name[32];

	for (int i = 0; i < 100; i++) { /* two datagrams each */
		snprintf(name, sizeof(name), "chain-%d", i);
		put_chain(world->batch, NFT_MSG_NEWCHAIN, name);
		commit(world->other, world->batch);
	}
	event_base_loop(world->loop, EVLOOP_ONCE);
	assert_int_equal(world->messages + world->generations, 64);
	nft_listener_drain(world->listener);
	assert_int_equal(world->messages, 100);
	assert_int_equal(world->generations, 100);
}

/* -- paused */

static void write_own(struct world *world)
{
	put_rule(world->batch, "c", 0, 0);
	commit(world->socket, world->batch);
}

static void write_foreign(struct world *world)
{
	put_rule(world->batch, "c", 0, 0);
	commit(world->other, world->batch);
}

/* A generation was heard of, so that leaving is possible. */
static void get_ready(struct world *world)
{
	write_own(world);
	nft_listener_drain(world->listener);
	world->own = 0;
}

static void of_a_paused_transaction_the_generation_is_told(void **state)
{
	struct world *world = *state;

	get_ready(world);
	assert_true(nft_listener_pause(world->listener));
	write_own(world);
	nft_listener_resume(world->listener, world->socket, NFT_PAUSE_NEXT);
	assert_int_equal(world->own, 1);
	assert_int_equal(world->id, generation_of(world->socket));
	assert_int_equal(world->lost + world->generations + world->messages, 0);
	write_foreign(world);
	nft_listener_drain(world->listener);
	assert_int_equal(world->messages, 1);
	assert_int_equal(world->generations, 1);
	assert_true(nft_listener_pause(world->listener));
	nft_listener_resume(world->listener, world->socket, NFT_PAUSE_SAME);
	assert_int_equal(world->lost, 0);
}

/* Whether before, behind or instead of our own. */
static void who_writes_while_it_is_paused_makes_it_lose(void **state)
{
	struct world *world = *state;

	for (int i = 0; i < 3; i++) {
		struct nft_listener *listener = world->listener;

		get_ready(world);
		assert_true(nft_listener_pause(listener));
		if (i == 0)
			write_foreign(world);
		if (i < 2)
			write_own(world);
		if (i > 0)
			write_foreign(world);
		nft_listener_resume(listener, world->socket,
				    i < 2 ? NFT_PAUSE_NEXT : NFT_PAUSE_SAME);
		assert_int_equal(world->lost, i + 1);
		assert_int_equal(world->messages + world->generations + world->own, 0);
		get_ready(world);
		assert_false(nft_listener_pause(listener)); /* not so soon */
		tear_down_listener(world);
		set_up_listener(world);
	}
}

static void an_unknown_outcome_counts_as_a_loss(void **state)
{
	struct world *world = *state;

	get_ready(world);
	assert_true(nft_listener_pause(world->listener));
	nft_listener_resume(world->listener, world->socket, NFT_PAUSE_UNKNOWN);
	assert_int_equal(world->lost, 1);
}

static void who_has_heard_of_no_generation_goes_on_listening(void **state)
{
	struct world *world = *state;

	assert_false(nft_listener_pause(world->listener));
	write_foreign(world);
	nft_listener_drain(world->listener);
	assert_int_equal(world->messages, 1);
}

static void other_listeners_of_the_process_are_paused_too(void **state)
{
	struct world *world = *state;
	struct world mate = {.socket = world->other, .loop = world->loop};

	set_up_listener(&mate);
	get_ready(world);
	assert_true(nft_listener_pause(world->listener)); /* drains both */
	assert_int_equal(mate.messages, 1);
	write_own(world);
	nft_listener_resume(world->listener, world->socket, NFT_PAUSE_NEXT);
	assert_int_equal(mate.messages, 1);
	assert_int_equal(mate.generations, 2);
	assert_int_equal(mate.id, world->id);
	assert_int_equal(mate.own + mate.lost + world->lost, 0);
	tear_down_listener(&mate);
	assert_true(nft_listener_pause(world->listener)); /* and nobody misses it */
	nft_listener_resume(world->listener, world->socket, NFT_PAUSE_SAME);
}

static void listeners_in_another_namespace_are_left_alone(void **state)
{
	struct world *world = *state;
	struct world there = {.loop = world->loop};

	get_ready(world);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	there.socket = open_socket();
	there.batch = world->batch;
	fresh_table(there.socket, there.batch);
	set_up_listener(&there);
	assert_true(nft_listener_pause(world->listener));
	write_own(world);
	nft_listener_resume(world->listener, world->socket, NFT_PAUSE_NEXT);
	assert_int_equal(world->own, 1);
	assert_int_equal(there.generations + there.lost, 0);
	tear_down_listener(&there);
	nft_socket_free(there.socket);
}

int main(void)
{
#define WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WORLD(foreign_changes_are_told_and_end_with_their_generation),
		WORLD(a_foreign_program_is_named),
		WORLD(of_own_changes_only_the_generation_is_told),
		WORLD(own_changes_of_any_size_lose_nothing),
		WORLD(loss_is_told_once_and_what_comes_after_it_is_complete),
		WORLD(a_long_queue_is_read_in_several_turns_of_the_loop),
		WORLD(of_a_paused_transaction_the_generation_is_told),
		WORLD(who_writes_while_it_is_paused_makes_it_lose),
		WORLD(an_unknown_outcome_counts_as_a_loss),
		WORLD(who_has_heard_of_no_generation_goes_on_listening),
		WORLD(other_listeners_of_the_process_are_paused_too),
		WORLD(listeners_in_another_namespace_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
