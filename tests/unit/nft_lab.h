/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two network namespaces to write the same rules into: in one with iptables-restore, in the other
 * with nft_rule.h; and ways to read what is there. Whatever runs, runs in the one last entered.
 */

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fake_tools.h"
#include "kernel/nfacct.h"
#include "nft_shapes.h"
#include "shell.h"
#include "xtables/nft_chain.h"
#include "xtables/nft_rule.h"
#include "xtables/restore_writer.h"

enum lab_side {
	LAB_TOOL = 0, /* written by iptables-restore */
	LAB_OURS,
	LAB_SIDES,
};

/* An empty namespace for that side from now on; skips the test where there can be none. */
static void lab_enter_new(void)
{
	if (unshare(CLONE_NEWNET) == 0)
		return;
	print_message("no private network namespace: %s\n", strerror(errno));
	skip();
}

attr_unused static int lab_namespace(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

attr_unused static void lab_enter(int fd)
{
	assert_int_equal(setns(fd, CLONE_NEWNET), 0);
}

/* Can rules name NFACCT_SHAPE in this namespace? */
static bool lab_nfacct(void)
{
	struct err err;

	if (nfacct_supported() != 1) {
		print_message("this kernel has no nfacct: rules are written without it\n");
		return false;
	}
	assert_true(nfacct_ensure(NULL, NFACCT_SHAPE, &err) >= 0);
	return true;
}

/* -- programs */

static const char *lab_tool(enum family family)
{
	return family == FAMILY_IPV4 ? "iptables-nft" : "ip6tables-nft";
}

/* "iptables-nft -t nat -C CHAIN words": the exit status. */
attr_unused static int lab_iptables(enum family family, const char *command,
				    const struct rule *rule)
{
	cleanup_arena struct arena *arena = arena_new(4096);
	char *argv[64] = {(char *)lab_tool(family), (char *)"-t", (char *)table_name(rule->table),
			  (char *)command, (char *)rule->chain};
	size_t n;
	char **words = restore_rule_argv(rule, arena, &n);
	int status;
	pid_t pid;

	assert_true(n + 6 < ARRAY_SIZE(argv));
	memcpy(argv + 5, words, n * sizeof(*words));
	assert_int_equal(posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/*
 * From now on iptables 1.8.11 instead of the system's, until lab_usual_tools(). Skips the test
 * where it cannot be had.
 */
attr_unused static void lab_newer_tools(void)
{
	const char *source = getenv("PORTOLAN_SOURCE");
	cleanup_free char *command =
		xasprintf("%s/tests/unit/newer_iptables", source ? source : ".");
	cleanup_free char *path = NULL;
	char folder[4096] = "";
	FILE *pipe = popen(command, "re");
	int status;

	assert_non_null(pipe);
	if (fgets(folder, sizeof(folder), pipe))
		folder[strcspn(folder, "\n")] = '\0';
	status = pclose(pipe);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("iptables 1.8.11 cannot be had here\n");
		skip();
	}
	assert_int_equal(status, 0);
	path = xasprintf("%s:%s", folder, getenv("PATH"));
	setenv("PATH", path, 1);
}

attr_unused static void lab_usual_tools(void)
{
	const char *path = getenv("PATH");
	cleanup_free char *usual = xstrdup(strchr(path, ':') + 1);

	setenv("PATH", usual, 1);
}

/* -- nf_tables messages */

struct lab_batch {
	uint8_t *bytes;
	size_t n;
	size_t room;
	uint32_t sequence;
};

static struct nlmsghdr *lab_message(struct lab_batch *batch, uint16_t type, uint8_t family,
				    uint16_t flags)
{
	struct nfgenmsg *head;
	struct nlmsghdr *message;

	if (batch->room < batch->n + NFT_RULE_MESSAGE_MAX) {
		batch->room = 2 * batch->n + NFT_RULE_MESSAGE_MAX;
		batch->bytes = xrealloc(batch->bytes, batch->room);
	}
	message = mnl_nlmsg_put_header(batch->bytes + batch->n);
	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | flags;
	message->nlmsg_seq = batch->sequence++;
	head = mnl_nlmsg_put_extra_header(message, sizeof(*head));
	head->nfgen_family = family;
	head->version = NFNETLINK_V0;
	return message;
}

static void lab_close(struct lab_batch *batch, const struct nlmsghdr *message)
{
	assert_true(message->nlmsg_len <= NFT_RULE_MESSAGE_MAX);
	batch->n += MNL_ALIGN(message->nlmsg_len);
}

static uint8_t lab_family(enum family family)
{
	return family == FAMILY_IPV4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

static struct nlmsghdr *lab_nft(struct lab_batch *batch, int type, enum family family, int flags)
{
	return lab_message(batch, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), lab_family(family),
			   (uint16_t)flags);
}

static struct mnl_socket *lab_socket(void)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	int size = 256 << 20;

	assert_non_null(socket);
	assert_int_equal(mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID), 0);
	setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return socket;
}

/* BATCH_BEGIN or BATCH_END: the subsystem stands where others have the generation. */
static void lab_mark(struct lab_batch *batch, uint16_t type)
{
	struct nlmsghdr *message = lab_message(batch, type, AF_UNSPEC, 0);
	struct nfgenmsg *head = mnl_nlmsg_get_payload(message);

	head->res_id = htons(NFNL_SUBSYS_NFTABLES);
	lab_close(batch, message);
}

/* Sends it and reads what the kernel has to say: 0, or the first error. */
static int lab_commit(struct lab_batch *batch)
{
	struct mnl_socket *socket = lab_socket();
	static uint8_t answer[65536];
	ssize_t n;
	int error = 0;

	lab_mark(batch, NFNL_MSG_BATCH_END);
	assert_int_equal(mnl_socket_sendto(socket, batch->bytes, batch->n), batch->n);
	while (error == 0 &&
	       (n = recv(mnl_socket_get_fd(socket), answer, sizeof(answer), MSG_DONTWAIT)) > 0) {
		const struct nlmsghdr *message = (const void *)answer;

		if (message->nlmsg_type == NLMSG_ERROR)
			error = ((const struct nlmsgerr *)mnl_nlmsg_get_payload(message))->error;
	}
	mnl_socket_close(socket);
	free(batch->bytes);
	*batch = (struct lab_batch){0};
	return error;
}

/* -- whole lists of rules */

/* The chains that are not base chains: those with rules, and those jumped to, each once. */
static void lab_each_chain(const struct shapes *shapes, enum table table,
			   void (*each)(void *arg, enum table table, const char *chain), void *arg)
{
	const char *known[32];
	size_t n = 0;

	for (size_t i = 0; i < 2 * shapes->n; i++) {
		const struct rule *rule = &shapes->rules[i / 2];
		const char *chain = i % 2 == 0                          ? rule->chain
				    : rule->target.kind == TARGET_CHAIN ? rule->target.chain
									: NULL;
		size_t at = 0;

		if (rule->table != table || !chain || nft_chain_is_base(table, chain))
			continue;
		while (at < n && !streq(known[at], chain))
			at++;
		if (at < n)
			continue;
		assert_true(n < ARRAY_SIZE(known));
		known[n++] = chain;
		each(arg, table, chain);
	}
}

static void lab_restore_chain(void *arg, enum table table, const char *chain)
{
	txn_chain(arg, table, chain);
}

/* iptables-restore --noflush */
static void lab_write_with_tool(const struct shapes *shapes)
{
	cleanup_free char *command = xasprintf("%s-restore --noflush", lab_tool(shapes->family));
	cleanup_text struct text text = {0};
	struct restore_writer writer;
	const char *head;
	FILE *pipe;
	size_t n;

	restore_writer_init(&writer);
	for (int table = 0; table < TABLE_COUNT; table++)
		lab_each_chain(shapes, (enum table)table, lab_restore_chain, &writer.txn);
	for (size_t i = 0; i < shapes->n; i++)
		txn_rule(&writer.txn, &shapes->rules[i]);
	restore_writer_finish(&writer, &text);
	pipe = popen(command, "we");
	assert_non_null(pipe);
	while ((head = text_head(&text, &n))) {
		assert_int_equal(fwrite(head, 1, n, pipe), n);
		text_consume(&text, n);
	}
	assert_int_equal(pclose(pipe), 0);
	restore_writer_done(&writer);
}

struct lab_chains {
	struct lab_batch *batch;
	enum family family;
};

static void lab_batch_chain(void *arg, enum table table, const char *chain)
{
	struct lab_chains *chains = arg;
	struct nlmsghdr *message =
		lab_nft(chains->batch, NFT_MSG_NEWCHAIN, chains->family, NLM_F_CREATE);

	nft_chain_put(message, table, chain);
	lab_close(chains->batch, message);
}

static void lab_batch_rule(struct lab_batch *batch, enum family family, const struct rule *rule)
{
	struct nlmsghdr *message;

	if (nft_chain_is_base(rule->table, rule->chain)) {
		message = lab_nft(batch, NFT_MSG_NEWCHAIN, family, NLM_F_CREATE);
		nft_base_chain_put(message, rule->table, rule->chain);
		lab_close(batch, message);
	}
	message = lab_nft(batch, NFT_MSG_NEWRULE, family, NLM_F_CREATE | NLM_F_APPEND);
	nft_rule_put(message, family, rule);
	lab_close(batch, message);
}

/* In the order of iptables-restore, so that even the handles come out the same. */
static int lab_write_ours(const struct shapes *shapes)
{
	struct lab_batch batch = {0};
	struct lab_chains chains = {&batch, shapes->family};

	lab_mark(&batch, NFNL_MSG_BATCH_BEGIN);
	for (int table = 0; table < TABLE_COUNT; table++) {
		struct nlmsghdr *message;
		bool used = false;

		for (size_t i = 0; i < shapes->n; i++)
			used = used || shapes->rules[i].table == (enum table)table;
		if (!used)
			continue;
		message = lab_nft(&batch, NFT_MSG_NEWTABLE, shapes->family, NLM_F_CREATE);
		nft_table_put(message, (enum table)table);
		lab_close(&batch, message);
		lab_each_chain(shapes, (enum table)table, lab_batch_chain, &chains);
		for (size_t i = 0; i < shapes->n; i++)
			if (shapes->rules[i].table == (enum table)table)
				lab_batch_rule(&batch, shapes->family, &shapes->rules[i]);
	}
	return lab_commit(&batch);
}

/* -- dumps */

typedef void lab_dump_fn(void *arg, const struct nlmsghdr *message);

struct lab_dump {
	lab_dump_fn *fn;
	void *arg;
};

static int lab_dumped(const struct nlmsghdr *message, void *data)
{
	const struct lab_dump *dump = data;

	dump->fn(dump->arg, message);
	return MNL_CB_OK;
}

/* All tables, chains or rules of a family: NFT_MSG_GETTABLE, GETCHAIN, GETRULE. */
static void lab_dump(enum family family, int type, lab_dump_fn *fn, void *arg)
{
	struct mnl_socket *socket = lab_socket();
	struct lab_batch batch = {0};
	struct nlmsghdr *message = lab_nft(&batch, type, family, NLM_F_DUMP);
	struct lab_dump dump = {fn, arg};
	static uint8_t answer[65536];
	ssize_t n;
	int r = MNL_CB_OK;

	assert_true(mnl_socket_sendto(socket, message, message->nlmsg_len) > 0);
	while (r == MNL_CB_OK) {
		n = mnl_socket_recvfrom(socket, answer, sizeof(answer));
		assert_true(n > 0);
		r = mnl_cb_run(answer, (size_t)n, 0, mnl_socket_get_portid(socket), lab_dumped,
			       &dump);
		assert_true(r >= 0);
	}
	mnl_socket_close(socket);
	free(batch.bytes);
}
