/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/capability.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "nft_world.h"

struct world {
	struct nft_socket *socket;
	struct nft_batch *batch;
	struct err err;
};

static int set_up(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));

	private_network();
	world->socket = open_socket();
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
	free(world);
	return 0;
}

static int run_commit(struct world *world, uint32_t generation)
{
	return nft_batch_commit(world->socket, world->batch, generation, NULL, NULL, &world->err);
}

static void a_transaction_moves_the_generation_by_one(void **state)
{
	struct world *world = *state;
	uint32_t before = generation_of(world->socket);

	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	assert_int_equal(nft_batch_count(world->batch), 1);
	assert_int_equal(run_commit(world, before), 0);
	assert_null(nft_batch_failure(world->batch));
	assert_int_equal(generation_of(world->socket), before + 1);
}

static void an_empty_one_does_nothing(void **state)
{
	struct world *world = *state;
	uint32_t before = generation_of(world->socket);

	assert_int_equal(run_commit(world, 1), 0);
	assert_int_equal(generation_of(world->socket), before);
}

static void a_generation_that_moved_is_refused_and_the_batch_can_be_sent_again(void **state)
{
	struct world *world = *state;
	cleanup_nft_socket struct nft_socket *other = open_socket();
	cleanup_nft_batch struct nft_batch *foreign = nft_batch_new();
	uint32_t before = generation_of(world->socket);

	put_chain(foreign, NFT_MSG_NEWCHAIN, "foreign");
	commit(other, foreign);
	nft_batch_subject(world->batch, "somebody");
	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	assert_int_equal(run_commit(world, before), -ERESTART);
	assert_string_equal(world->err.text,
			    "a transaction of nf_tables: another program has written "
			    "meanwhile");
	assert_int_equal(nft_batch_failure(world->batch)->index, NFT_BATCH_WHOLE);
	assert_null(nft_batch_failure(world->batch)->subject);
	assert_int_equal(generation_of(world->socket), before + 1);
	assert_int_equal(run_commit(world, before + 1), 0);
	assert_null(nft_batch_failure(world->batch));
}

static void a_refused_message_is_named_with_its_subject(void **state)
{
	struct world *world = *state;
	const struct nft_batch_failure *failure;
	uint32_t before = generation_of(world->socket);

	nft_batch_subject(world->batch, "service 'a/good'");
	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	put_rule(world->batch, "d", 0, 0);
	nft_batch_subject(world->batch, "service 'a/replaced before it said anything'");
	nft_batch_subject(world->batch, "service 'a/bad'");
	put_rule(world->batch, "d", 0, 0);
	put_rule(world->batch, "missing", 0, 0);
	nft_batch_subject(world->batch, NULL);
	put_rule(world->batch, "d", 0, 0);
	put_chain(world->batch, NFT_MSG_DELCHAIN, "missing too");
	assert_int_equal(run_commit(world, 0), -ENOENT);
	assert_string_equal(world->err.text,
			    "service 'a/bad': adding a rule to chain missing of IPv4 table test: "
			    "No such file or directory (attribute 2); 1 more of 6 messages were "
			    "refused");
	failure = nft_batch_failure(world->batch);
	assert_int_equal(failure->index, 3);
	assert_int_equal(failure->type, NFT_MSG_NEWRULE);
	assert_int_equal(failure->error, -ENOENT);
	assert_string_equal(failure->subject, "service 'a/bad'");
	assert_string_equal(failure->table, "test");
	assert_string_equal(failure->chain, "missing");
	assert_int_equal(failure->n_refused, 2);
	assert_int_equal(failure->n_refusals, 2);
	assert_int_equal(failure->refusals[1].index, 5);
	assert_int_equal(failure->refusals[1].error, -ENOENT);
	assert_int_equal(generation_of(world->socket), before);
}

static void more_refusals_than_are_remembered_are_counted(void **state)
{
	struct world *world = *state;
	const struct nft_batch_failure *failure;

	for (int i = 0; i < 50000; i++)
		put_rule(world->batch, "missing", 0, 0);
	assert_int_equal(run_commit(world, 0), -ENOENT);
	failure = nft_batch_failure(world->batch);
	assert_int_equal(failure->n_refused, 50000);
	assert_int_equal(failure->n_refusals, NFT_REFUSALS_MAX);
	assert_int_equal(failure->refusals[NFT_REFUSALS_MAX - 1].index, NFT_REFUSALS_MAX - 1);
	nft_batch_reset(world->batch);
	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	commit(world->socket, world->batch); /* nothing is left over */
}

static void the_words_of_the_kernel_are_told(void **state)
{
	struct world *world = *state;
	struct nlmsghdr *message = put_rule(world->batch, "c", 0, 0);

	mnl_attr_put_u64(message, NFTA_RULE_POSITION, htobe64(4711)); /* no such rule */
	assert_int_equal(run_commit(world, 0), -ENOENT);
	assert_non_null(strstr(world->err.text, "(attribute 6)"));
}

static bool kernel_is_older_than(unsigned major, unsigned minor)
{
	struct utsname name;
	unsigned here_major, here_minor;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%u.%u", &here_major, &here_minor), 2);
	return here_major < major || (here_major == major && here_minor < minor);
}

/* Older kernels, 6.1 among them, have only the code for malformed messages in a transaction. */
static void the_words_of_the_kernel_about_a_malformed_message_are_told(void **state)
{
	struct world *world = *state;
	struct nlmsghdr *message =
		nft_batch_message(world->batch, NFT_MSG_NEWCHAIN, FAMILY_IPV4, NLM_F_CREATE);
	const char *words;

	mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, "test");
	mnl_attr_put(message, NFTA_CHAIN_HANDLE, 3, "abc"); /* should be eight bytes */
	assert_int_equal(run_commit(world, 0), -ERANGE);
	assert_non_null(strstr(world->err.text, strerror(ERANGE)));
	words = nft_batch_failure(world->batch)->words;
	if (!words[0] && kernel_is_older_than(6, 10))
		return;
	assert_non_null(strstr(words, "attribute 2"));
	assert_true(strlen(words) > strlen("attribute 2"));
}

/* -- echoes */

struct echoes {
	size_t rules, generations, next;
	uint64_t handle;
	uint32_t generation;
};

static void on_echo(void *arg, size_t index, const struct nlmsghdr *message)
{
	struct echoes *echoes = arg;
	uint64_t handle;

	if (nft_message_type(message) == NFT_MSG_NEWGEN) {
		assert_int_equal(index, NFT_BATCH_WHOLE);
		assert_true(nft_message_u32(message, NFTA_GEN_ID, &echoes->generation));
		echoes->generations++;
		return;
	}
	assert_int_equal(nft_message_type(message), NFT_MSG_NEWRULE);
	assert_int_equal(index, echoes->next++);
	assert_true(nft_message_u64(message, NFTA_RULE_HANDLE, &handle));
	assert_true(handle > echoes->handle);
	echoes->handle = handle;
	echoes->rules++;
}

static void each_echo_carries_index_and_handle(void **state)
{
	struct world *world = *state;
	struct echoes echoes = {0};

	for (int i = 0; i < 10000; i++)
		put_rule(world->batch, "c", 200, NLM_F_ECHO);
	assert_int_equal(
		nft_batch_commit(world->socket, world->batch, 0, on_echo, &echoes, &world->err), 0);
	assert_int_equal(echoes.rules, 10000);
	assert_int_equal(echoes.generations, 1);
	assert_int_equal(echoes.generation, generation_of(world->socket));
}

/* Gives the socket a queue for a few answers only. */
static void shrink_queue(const struct nft_socket *socket)
{
	int small = 1, found = 0;

	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_nl name = {0};
		socklen_t n = sizeof(name);

		if (getsockname(fd, (struct sockaddr *)&name, &n) == 0 &&
		    name.nl_family == AF_NETLINK && name.nl_pid == nft_socket_port(socket)) {
			assert_int_equal(
				setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
			found++;
		}
	}
	assert_int_equal(found, 1);
}

static void lost_echoes_leave_no_doubt_that_it_was_done(void **state)
{
	struct world *world = *state;
	uint32_t before = generation_of(world->socket);
	struct echoes echoes = {0};

	shrink_queue(world->socket);
	for (int i = 0; i < 1000; i++)
		put_rule(world->batch, "c", 200, NLM_F_ECHO);
	assert_int_equal(
		nft_batch_commit(world->socket, world->batch, 0, on_echo, &echoes, &world->err),
		NFT_COMMIT_ECHOES_LOST);
	assert_true(echoes.rules > 0 && echoes.rules < 1000);
	assert_false(nft_batch_uncertain(world->batch));
	assert_int_equal(generation_of(world->socket), before + 1);
	nft_batch_reset(world->batch);
	put_rule(world->batch, "c", 0, 0);
	commit(world->socket, world->batch); /* the queue works again */
}

static void lost_errors_leave_no_doubt_that_it_was_refused(void **state)
{
	struct world *world = *state;
	uint32_t before = generation_of(world->socket);

	shrink_queue(world->socket);
	for (int i = 0; i < 1000; i++)
		put_rule(world->batch, "missing", 0, 0);
	assert_int_equal(run_commit(world, 0), -ENOENT);
	assert_int_equal(nft_batch_failure(world->batch)->index, 0);
	assert_true(nft_batch_failure(world->batch)->n_refused < 1000);
	assert_int_equal(generation_of(world->socket), before);
}

static void no_answer_at_all_is_uncertain(void **state)
{
	struct world *world = *state;
	struct nft_batch_outcome outcome = {.lost = true};

	put_rule(world->batch, "c", 0, 0);
	assert_int_equal(nft_batch_judge(world->batch, &outcome, &world->err), -ENOBUFS);
	assert_true(nft_batch_uncertain(world->batch));
	assert_null(nft_batch_failure(world->batch));
	outcome.lost = false;
	assert_int_equal(nft_batch_judge(world->batch, &outcome, &world->err), -EPROTO);
	assert_int_equal(run_commit(world, 0), 0);
	assert_false(nft_batch_uncertain(world->batch));
}

/* A commit that fails after all messages were good: an error, and yet an acknowledgement. */
static void an_error_counts_more_than_an_acknowledgement(void **state)
{
	struct world *world = *state;
	struct nft_batch_outcome outcome = {0};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
	} answers[2] = {0};

	put_rule(world->batch, "c", 0, 0);
	put_rule(world->batch, "c", 0, 0);
	for (int i = 0; i < 2; i++) {
		answers[i].head.nlmsg_len = sizeof(answers[i]);
		answers[i].head.nlmsg_type = NLMSG_ERROR;
		answers[i].head.nlmsg_seq = 2 + (uint32_t)i;
	}
	answers[0].error.error = -ENOMEM;
	nft_batch_answer(world->batch, answers, sizeof(answers), NULL, NULL, &outcome);
	assert_true(outcome.acknowledged);
	assert_int_equal(nft_batch_judge(world->batch, &outcome, &world->err), -ENOMEM);
	assert_int_equal(nft_batch_failure(world->batch)->index, NFT_BATCH_WHOLE);
	assert_string_equal(world->err.text, "a transaction of nf_tables: Cannot allocate memory");
}

/* -- size */

/* Fills a message up with an attribute that the kernel does not know, and skips. */
static void pad(struct nft_batch *batch, struct nlmsghdr *message)
{
	static const char zeros[NFT_MESSAGE_MAX];

	mnl_attr_put(message, 100, nft_batch_room(batch) - MNL_ATTR_HDRLEN, zeros);
	assert_int_equal(nft_batch_room(batch), 0);
}

static void fill(struct world *world, size_t size)
{
	char subject[64];

	for (int i = 0; nft_batch_size(world->batch) < size; i++) {
		snprintf(subject, sizeof(subject), "service %d", i);
		nft_batch_subject(world->batch, subject);
		pad(world->batch, put_rule(world->batch, "c", 0, 0));
	}
}

static void a_batch_of_64_mib_is_taken_or_refused_as_a_whole(void **state)
{
	struct world *world = *state;
	uint32_t before = generation_of(world->socket);

	fill(world, 64 << 20);
	assert_int_equal(run_commit(world, before), 0);
	assert_int_equal(generation_of(world->socket), before + 1);
	nft_batch_reset(world->batch);
	fill(world, 64 << 20);
	put_rule(world->batch, "missing", 0, 0);
	assert_int_equal(run_commit(world, before + 1), -ENOENT);
	assert_int_equal(nft_batch_failure(world->batch)->index, nft_batch_count(world->batch) - 1);
	assert_true(has_prefix(nft_batch_failure(world->batch)->subject, "service 4"));
	assert_int_equal(generation_of(world->socket), before + 1);
}

static size_t resident_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	size_t n = 0;
	char line[256];

	assert_non_null(file);
	while (n == 0 && fgets(line, sizeof(line), file))
		(void)sscanf(line, "VmRSS: %zu kB", &n);
	fclose(file);
	return n;
}

static void a_reset_gives_the_memory_back(void **state)
{
	struct world *world = *state;
	size_t before = resident_kib();

	fill(world, 32 << 20);
	assert_true(resident_kib() > before + (30 << 10));
	nft_batch_reset(world->batch);
	assert_true(resident_kib() < before + (2 << 10));
	assert_int_equal(nft_batch_size(world->batch), 0);
	put_chain(world->batch, NFT_MSG_NEWCHAIN, "d");
	assert_int_equal(run_commit(world, 0), 0);
}

/* In a process without CAP_NET_ADMIN. */
static int commit_without_privilege(struct world *world)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	cleanup_nft_socket struct nft_socket *socket = NULL;

	if (syscall(SYS_capset, &head, none) < 0)
		return 1;
	socket = open_socket();
	fill(world, nft_socket_send_limit(socket) + 1);
	if (nft_batch_commit(socket, world->batch, 0, NULL, NULL, &world->err) != -EMSGSIZE ||
	    !strstr(world->err.text, "net.core.wmem_max"))
		return 2;
	nft_batch_reset(world->batch);
	fill(world, 100000); /* fits: refused by the kernel for what it is */
	if (nft_batch_commit(socket, world->batch, 0, NULL, NULL, &world->err) != -EPERM ||
	    nft_batch_failure(world->batch)->index != NFT_BATCH_WHOLE)
		return 3;
	return 0;
}

static void without_privilege_the_size_has_a_limit_that_is_named(void **state)
{
	struct world *world = *state;
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(commit_without_privilege(world));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
#define WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WORLD(a_transaction_moves_the_generation_by_one),
		WORLD(an_empty_one_does_nothing),
		WORLD(a_generation_that_moved_is_refused_and_the_batch_can_be_sent_again),
		WORLD(a_refused_message_is_named_with_its_subject),
		WORLD(more_refusals_than_are_remembered_are_counted),
		WORLD(the_words_of_the_kernel_are_told),
		WORLD(the_words_of_the_kernel_about_a_malformed_message_are_told),
		WORLD(each_echo_carries_index_and_handle),
		WORLD(lost_echoes_leave_no_doubt_that_it_was_done),
		WORLD(lost_errors_leave_no_doubt_that_it_was_refused),
		WORLD(no_answer_at_all_is_uncertain),
		WORLD(an_error_counts_more_than_an_acknowledgement),
		WORLD(a_batch_of_64_mib_is_taken_or_refused_as_a_whole),
		WORLD(a_reset_gives_the_memory_back),
		WORLD(without_privilege_the_size_has_a_limit_that_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
