/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_dump.h"
#include "nft_world.h"

struct world {
	struct nft_socket *socket, *other;
	struct nft_batch *batch;
	struct err err;

	/* what a list does and sees */
	int disturb, fail_at;
	bool disturb_always, with_elements;
	size_t seen, restarts, names;
	char text[4096];
};

static int set_up(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));

	private_network();
	world->socket = open_socket();
	world->other = open_socket();
	world->batch = nft_batch_new();
	fresh_table(world->socket, world->batch);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	nft_batch_free(world->batch);
	nft_socket_free(world->socket);
	nft_socket_free(world->other);
	free(world);
	return 0;
}

static void on_restart(void *arg)
{
	struct world *world = arg;

	world->restarts++;
	world->seen = 0;
	if (world->disturb_always)
		world->disturb = 1;
}

static int on_message(void *arg, const struct nlmsghdr *message, struct err *err)
{
	struct world *world = arg;
	const char *name = nft_message_string(message, NFTA_CHAIN_NAME);
	char chain[32];

	if (world->seen++ == 0 && world->disturb-- > 0) {
		snprintf(chain, sizeof(chain), "new-%zu", world->names++);
		put_chain(world->batch, NFT_MSG_NEWCHAIN, chain);
		commit(world->other, world->batch);
	}
	if (world->fail_at && world->seen == (size_t)world->fail_at)
		return err_set(err, -EDOM, "enough");
	if (nft_message_type(message) == NFT_MSG_NEWCHAIN) {
		strcat(world->text, name ? name : "?");
		strcat(world->text, " ");
	}
	return 0;
}

static int dump(struct world *world, uint16_t type, const char *table, const char *chain)
{
	const struct nft_dump_request request = {type, FAMILY_IPV4, table, chain, false};
	const struct nft_dump_ops ops = {on_restart, on_message};

	world->seen = world->restarts = 0;
	return nft_dump(world->socket, &request, &ops, world, &world->err);
}

static void put_rules(struct world *world, const char *chain, int n)
{
	for (int i = 0; i < n; i++)
		put_rule(world->batch, chain, 200, 0);
	commit(world->socket, world->batch);
}

static void only_the_table_asked_for_is_told(void **state)
{
	struct world *world = *state;
	struct nlmsghdr *message;

	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	put_table(world->batch, "second");
	message = nft_batch_message(world->batch, NFT_MSG_NEWCHAIN, FAMILY_IPV4, NLM_F_CREATE);
	mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, "second");
	mnl_attr_put_strz(message, NFTA_CHAIN_NAME, "e");
	commit(world->socket, world->batch);
	assert_int_equal(dump(world, NFT_MSG_GETCHAIN, "test", NULL), 0);
	assert_string_equal(world->text, "c d ");
	assert_int_equal(dump(world, NFT_MSG_GETCHAIN, NULL, NULL), 0);
	assert_int_equal(world->seen, 3);
	assert_int_equal(dump(world, NFT_MSG_GETTABLE, NULL, NULL), 0);
	assert_int_equal(world->seen, 2);
}

static void only_the_chain_asked_for_is_told(void **state)
{
	struct world *world = *state;

	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	put_rules(world, "c", 3);
	put_rules(world, "d", 2);
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", "d"), 0);
	assert_int_equal(world->seen, 2);
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", NULL), 0);
	assert_int_equal(world->seen, 5);
	assert_int_equal(dump(world, NFT_MSG_GETRULE, NULL, NULL), 0);
	assert_int_equal(world->seen, 5);
}

static void a_list_of_many_pieces_is_complete(void **state)
{
	struct world *world = *state;

	put_rules(world, "c", 5000);
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", "c"), 0);
	assert_int_equal(world->seen, 5000);
	assert_int_equal(world->restarts, 0);
}

static void a_list_that_a_writer_disturbs_begins_again(void **state)
{
	struct world *world = *state;

	put_rules(world, "c", 2000);
	world->disturb = 1;
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", "c"), 0);
	assert_int_equal(world->restarts, 1);
	assert_int_equal(world->seen, 2000);
}

/* nft add set ip test s { type ipv4_addr; } and elements */
static void put_set(struct world *world, uint32_t n)
{
	struct nlattr *list, *element, *key;
	struct nlmsghdr *message =
		nft_batch_message(world->batch, NFT_MSG_NEWSET, FAMILY_IPV4, NLM_F_CREATE);

	mnl_attr_put_strz(message, NFTA_SET_TABLE, "test");
	mnl_attr_put_strz(message, NFTA_SET_NAME, "s");
	mnl_attr_put_u32(message, NFTA_SET_KEY_TYPE, htonl(7));
	mnl_attr_put_u32(message, NFTA_SET_KEY_LEN, htonl(4));
	mnl_attr_put_u32(message, NFTA_SET_ID, htonl(1));
	for (uint32_t i = 0; i < n;) {
		message = nft_batch_message(world->batch, NFT_MSG_NEWSETELEM, FAMILY_IPV4,
					    NLM_F_CREATE);
		mnl_attr_put_strz(message, NFTA_SET_ELEM_LIST_TABLE, "test");
		mnl_attr_put_strz(message, NFTA_SET_ELEM_LIST_SET, "s");
		list = mnl_attr_nest_start(message, NFTA_SET_ELEM_LIST_ELEMENTS);
		for (; i < n && nft_batch_room(world->batch) > 64; i++) {
			element = mnl_attr_nest_start(message, NFTA_LIST_ELEM);
			key = mnl_attr_nest_start(message, NFTA_SET_ELEM_KEY);
			mnl_attr_put_u32(message, NFTA_DATA_VALUE, htonl(0x0a000000 + i));
			mnl_attr_nest_end(message, key);
			mnl_attr_nest_end(message, element);
		}
		mnl_attr_nest_end(message, list);
	}
	commit(world->socket, world->batch);
}

static void a_disturbed_list_of_elements_is_noticed_by_the_generation(void **state)
{
	struct world *world = *state;
	size_t pieces;

	put_set(world, 20000);
	assert_int_equal(dump(world, NFT_MSG_GETSETELEM, "test", "s"), 0);
	pieces = world->seen;
	assert_true(pieces > 5);
	world->disturb = 1;
	assert_int_equal(dump(world, NFT_MSG_GETSETELEM, "test", "s"), 0);
	assert_int_equal(world->restarts, 1);
	assert_int_equal(world->seen, pieces);
}

static void who_writes_all_the_time_ends_the_attempts(void **state)
{
	struct world *world = *state;

	put_rules(world, "c", 2000);
	world->disturb = 1;
	world->disturb_always = true;
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", "c"), -EINTR);
	assert_string_equal(world->err.text, "listing the rules of chain c of IPv4 table test: "
					     "others wrote meanwhile, 10 times");
	assert_int_equal(world->restarts, 9);
	world->disturb = 0;
	world->disturb_always = false;
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", "c"), 0);
	assert_int_equal(world->seen, 2000);
}

static void the_reader_can_end_it(void **state)
{
	struct world *world = *state;

	put_rules(world, "c", 2000);
	world->fail_at = 10;
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", "c"), -EDOM);
	assert_string_equal(world->err.text,
			    "listing the rules of chain c of IPv4 table test: enough");
	world->fail_at = 0;
	generation_of(world->socket); /* nothing of the list is left over */
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", "c"), 0);
	assert_int_equal(world->seen, 2000);
}

static void one_object_is_there_or_not(void **state)
{
	struct world *world = *state;
	struct nft_dump_request request = {
		.type = NFT_MSG_GETCHAIN,
		.family = FAMILY_IPV4,
		.table = "test",
		.chain = "c",
		.one = true,
	};
	const struct nft_dump_ops ops = {on_restart, on_message};

	assert_int_equal(nft_dump(world->socket, &request, &ops, world, &world->err), 0);
	assert_string_equal(world->text, "c ");
	request.chain = "missing";
	assert_int_equal(nft_dump(world->socket, &request, &ops, world, &world->err), -ENOENT);
	assert_string_equal(world->err.text,
			    "reading chain missing of IPv4 table test: No such file "
			    "or directory");
	assert_int_equal(dump(world, NFT_MSG_GETSETELEM, "test", "missing"), -ENOENT);
}

static void a_name_that_no_kernel_takes_is_refused(void **state)
{
	struct world *world = *state;
	char name[NFT_NAME_SIZE + 1];

	memset(name, 'x', sizeof(name));
	name[NFT_NAME_SIZE] = '\0';
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", name), -ENAMETOOLONG);
	name[NFT_NAME_SIZE - 1] = '\0';
	assert_int_equal(dump(world, NFT_MSG_GETRULE, "test", name), 0);
	assert_int_equal(world->seen, 0);
}

int main(void)
{
#define WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WORLD(only_the_table_asked_for_is_told),
		WORLD(only_the_chain_asked_for_is_told),
		WORLD(a_list_of_many_pieces_is_complete),
		WORLD(a_list_that_a_writer_disturbs_begins_again),
		WORLD(a_disturbed_list_of_elements_is_noticed_by_the_generation),
		WORLD(who_writes_all_the_time_ends_the_attempts),
		WORLD(the_reader_can_end_it),
		WORLD(one_object_is_there_or_not),
		WORLD(a_name_that_no_kernel_takes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
