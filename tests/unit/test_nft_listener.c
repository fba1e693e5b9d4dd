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

static int set_up(void **state)
{
	static const struct nft_listener_events events = {on_message, on_generation,
							  on_own_generation, on_lost};
	struct world *world = xcalloc(1, sizeof(*world));
	struct err err;

	private_network();
	world->loop = event_base_new();
	world->socket = open_socket();
	world->other = open_socket();
	world->batch = nft_batch_new();
	fresh_table(world->socket, world->batch);
	assert_int_equal(nft_listener_open(world->loop, nft_socket_port(world->socket), &events,
					   world, &world->listener, &err),
			 0);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	nft_listener_free(world->listener);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
