/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What nf_tables itself takes, without any proxy: the least that a proxy which writes the same rules
 * could take. Times are from the send of a transaction to its acknowledgement.
 *
 *   bench-kernel-price change TABLE COUNT
 *       In table ip TABLE of this namespace, as it is: adds one rule to a small chain of its own to
 *       which nothing leads, replaces that rule in one transaction, and deletes it; COUNT times.
 *       The chain is gone afterwards. The rule ends in a verdict, as all rules of a proxy do, so the
 *       kernel validates the table when it is added.
 *   bench-kernel-price load TABLE
 *       Reads table ip TABLE of this namespace and writes the same chains and rules into a new
 *       namespace in the cheapest known order: chains, then the rules of per-service chains, to
 *       which nothing leads yet, in pieces, and last the rest, in one transaction. Building the
 *       messages is not counted.
 *
 * Prints one JSON object.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OWN_CHAIN    "PORTOLAN-BENCH"
#define SOCKET_BYTES (1 << 30) /* SO_SNDBUFFORCE doubles it: 2 GiB - 1 is the most */
#define PIECE_BYTES  (4 << 20) /* a transaction of a load is about so large */
#define MESSAGE_MAX  (1 << 16) /* more than the largest rule */
#define READ_BYTES   (1 << 17)

struct batch {
	char *data;
	size_t size, capacity;
	uint32_t sequence;
	size_t last; /* offset of the last message; 0: none but the beginning */
};

/* What a dump of a chain or rule says, as the body of the message that makes it again. */
struct piece {
	struct piece *next;
	uint16_t type, flags;
	uint16_t size;
	bool own; /* belongs to a per-service chain */
	char attributes[] __attribute__((aligned(MNL_ALIGNTO)));
};

struct list {
	struct piece *first, **end;
	size_t n;
};

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "bench-kernel-price: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *need(void *memory)
{
	if (!memory)
		fail("memory");
	return memory;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct mnl_socket *socket_open(void)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_NETFILTER);
	int bytes = SOCKET_BYTES - 1, fd;

	if (!sock || mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0)
		fail("opening a netlink socket");
	fd = mnl_socket_get_fd(sock);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		fail("widening the netlink socket");
	return sock;
}

/* -- batches ------------------------------------------------------------------------------------- */

static struct nlmsghdr *put_header(char *at, uint16_t type, uint16_t flags, uint8_t family,
				   uint16_t res_id, uint32_t sequence)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(at);
	struct nfgenmsg *generic;

	header->nlmsg_type = type;
	header->nlmsg_flags = flags;
	header->nlmsg_seq = sequence;
	generic = mnl_nlmsg_put_extra_header(header, sizeof(*generic));
	*generic = (struct nfgenmsg){
		.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(res_id)};
	return header;
}

static char *batch_room(struct batch *batch)
{
	if (batch->capacity - batch->size < MESSAGE_MAX) {
		batch->capacity = batch->capacity * 2 + 2 * (size_t)MESSAGE_MAX;
		batch->data = need(realloc(batch->data, batch->capacity));
	}
	return batch->data + batch->size;
}

static void batch_control(struct batch *batch, uint16_t type)
{
	struct nlmsghdr *header = put_header(batch_room(batch), type, NLM_F_REQUEST, AF_UNSPEC,
					     NFNL_SUBSYS_NFTABLES, ++batch->sequence);

	batch->size += header->nlmsg_len;
}

static void batch_begin(struct batch *batch)
{
	batch->size = batch->last = 0;
	batch_control(batch, NFNL_MSG_BATCH_BEGIN);
}

static struct nlmsghdr *batch_message(struct batch *batch, uint16_t type, uint16_t flags)
{
	return put_header(batch_room(batch), (uint16_t)((NFNL_SUBSYS_NFTABLES << 8) | type),
			  (uint16_t)(NLM_F_REQUEST | flags), NFPROTO_IPV4, 0, ++batch->sequence);
}

static void batch_add(struct batch *batch, const struct nlmsghdr *header)
{
	batch->last = batch->size;
	batch->size += MNL_ALIGN(header->nlmsg_len);
}

/* Waits for the acknowledgement of the last message, or fails with the first error. */
static void read_answer(struct mnl_socket *sock, uint32_t sequence)
{
	static char answer[READ_BYTES];

	for (;;) {
		ssize_t size = mnl_socket_recvfrom(sock, answer, sizeof(answer));
		int left = (int)size;

		if (size < 0)
			fail("reading the kernel's answer");
		for (const struct nlmsghdr *header = (const void *)answer;
		     mnl_nlmsg_ok(header, left); header = mnl_nlmsg_next(header, &left)) {
			const struct nlmsgerr *error = mnl_nlmsg_get_payload(header);

			if (header->nlmsg_type != NLMSG_ERROR)
				continue;
			errno = -error->error;
			if (error->error != 0)
				fail("the kernel refuses a transaction");
			if (header->nlmsg_seq == sequence)
				return;
		}
	}
}

/* The time from send to acknowledgement. */
static int64_t batch_commit(struct mnl_socket *sock, struct batch *batch)
{
	struct nlmsghdr *last;
	int64_t begin;

	batch_control(batch, NFNL_MSG_BATCH_END);
	last = (struct nlmsghdr *)(void *)(batch->data + batch->last);
	last->nlmsg_flags |= NLM_F_ACK;
	begin = now_ns();
	if (mnl_socket_sendto(sock, batch->data, batch->size) < 0)
		fail("sending a transaction");
	read_answer(sock, last->nlmsg_seq);
	return now_ns() - begin;
}

/* -- one rule ------------------------------------------------------------------------------------ */

static void put_chain(struct batch *batch, const char *table, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *header = batch_message(batch, type, flags);

	mnl_attr_put_strz(header, NFTA_CHAIN_TABLE, table);
	mnl_attr_put_strz(header, NFTA_CHAIN_NAME, OWN_CHAIN);
	batch_add(batch, header);
}

/* -A PORTOLAN-BENCH -j RETURN */
static void put_rule(struct batch *batch, const char *table)
{
	struct nlmsghdr *header =
		batch_message(batch, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	struct nlattr *list, *element, *data, *value, *verdict;

	mnl_attr_put_strz(header, NFTA_RULE_TABLE, table);
	mnl_attr_put_strz(header, NFTA_RULE_CHAIN, OWN_CHAIN);
	list = mnl_attr_nest_start(header, NFTA_RULE_EXPRESSIONS);
	element = mnl_attr_nest_start(header, NFTA_LIST_ELEM);
	mnl_attr_put_strz(header, NFTA_EXPR_NAME, "counter");
	mnl_attr_nest_end(header, element);
	element = mnl_attr_nest_start(header, NFTA_LIST_ELEM);
	mnl_attr_put_strz(header, NFTA_EXPR_NAME, "immediate");
	data = mnl_attr_nest_start(header, NFTA_EXPR_DATA);
	mnl_attr_put_u32(header, NFTA_IMMEDIATE_DREG, htonl(NFT_REG_VERDICT));
	value = mnl_attr_nest_start(header, NFTA_IMMEDIATE_DATA);
	verdict = mnl_attr_nest_start(header, NFTA_DATA_VERDICT);
	mnl_attr_put_u32(header, NFTA_VERDICT_CODE, htonl((uint32_t)NFT_RETURN));
	mnl_attr_nest_end(header, verdict);
	mnl_attr_nest_end(header, value);
	mnl_attr_nest_end(header, data);
	mnl_attr_nest_end(header, element);
	mnl_attr_nest_end(header, list);
	batch_add(batch, header);
}

/* As long as a proxy rests between two changes: back to back, small tables would be in the processor's cache. */
#define REST_US 150000

/* -F PORTOLAN-BENCH, which holds one rule */
static void put_flush(struct batch *batch, const char *table)
{
	struct nlmsghdr *header = batch_message(batch, NFT_MSG_DELRULE, 0);

	mnl_attr_put_strz(header, NFTA_RULE_TABLE, table);
	mnl_attr_put_strz(header, NFTA_RULE_CHAIN, OWN_CHAIN);
	batch_add(batch, header);
}

static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

static double median_ms(int64_t *times, size_t n)
{
	size_t middle = n / 2;

	qsort(times, n, sizeof(*times), compare);
	return (double)times[middle] / 1e6;
}

static void change(const char *table, size_t count)
{
	struct mnl_socket *sock = socket_open();
	struct batch batch = {};
	int64_t *added = need(calloc(count, sizeof(*added)));
	int64_t *replaced = need(calloc(count, sizeof(*replaced)));
	int64_t *deleted = need(calloc(count, sizeof(*deleted)));

	batch_begin(&batch);
	put_chain(&batch, table, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	batch_commit(sock, &batch);
	for (size_t i = 0; i < count; i++) {
		usleep(REST_US);
		batch_begin(&batch);
		put_rule(&batch, table);
		added[i] = batch_commit(sock, &batch);
		batch_begin(&batch);
		put_flush(&batch, table);
		put_rule(&batch, table);
		replaced[i] = batch_commit(sock, &batch);
		batch_begin(&batch);
		put_flush(&batch, table);
		deleted[i] = batch_commit(sock, &batch);
	}
	batch_begin(&batch);
	put_chain(&batch, table, NFT_MSG_DELCHAIN, 0);
	batch_commit(sock, &batch);
	printf("{\"count\": %zu, \"add_ms\": %.3f, \"replace_ms\": %.3f, \"delete_ms\": %.3f}\n",
	       count, median_ms(added, count), median_ms(replaced, count),
	       median_ms(deleted, count));
	free(batch.data);
	free(added);
	free(replaced);
	free(deleted);
	mnl_socket_close(sock);
}

/* -- a whole table ------------------------------------------------------------------------------- */

static bool is_own_chain(const char *name)
{
	static const char *const prefixes[] = {"KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-EXT-",
					       "KUBE-FW-"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void list_add(struct list *list, const struct nlmsghdr *header, bool own)
{
	struct piece *piece;
	size_t skip = MNL_ALIGN(sizeof(*header)) + MNL_ALIGN(sizeof(struct nfgenmsg));
	uint16_t size = (uint16_t)(header->nlmsg_len - skip);

	piece = need(malloc(sizeof(*piece) + size));
	*piece = (struct piece){.type = header->nlmsg_type & 0xff,
				.flags = header->nlmsg_flags,
				.size = size,
				.own = own};
	memcpy(piece->attributes, (const char *)header + skip, size);
	*list->end = piece;
	list->end = &piece->next;
	list->n++;
}

static void copy_attribute(struct nlmsghdr *header, const struct nlattr *attribute)
{
	mnl_attr_put(header, mnl_attr_get_type(attribute) | (attribute->nla_type & NLA_F_NESTED),
		     mnl_attr_get_payload_len(attribute), mnl_attr_get_payload(attribute));
}

static int take_chain(const struct nlmsghdr *dumped, void *arg)
{
	static char space[MESSAGE_MAX];
	struct nlmsghdr *header =
		put_header(space, NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_IPV4, 0, 0);
	const struct nlattr *attribute;
	const char *name = "";

	mnl_attr_for_each(attribute, dumped, sizeof(struct nfgenmsg))
	{
		switch (mnl_attr_get_type(attribute)) {
		case NFTA_CHAIN_NAME:
			name = mnl_attr_get_str(attribute);
			copy_attribute(header, attribute);
			break;
		case NFTA_CHAIN_TABLE:
		case NFTA_CHAIN_HOOK:
		case NFTA_CHAIN_TYPE:
			copy_attribute(header, attribute);
			break;
		default:
			break;
		}
	}
	list_add(arg, header, is_own_chain(name));
	return MNL_CB_OK;
}

static const struct nlattr *find(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attribute;

	mnl_attr_for_each_nested(attribute, nest)
	{
		if (mnl_attr_get_type(attribute) == type)
			return attribute;
	}
	return NULL;
}

/* The protocol of a rule's xt match, which the kernel checks when a rule is made, and forgets. */
static uint32_t compat_protocol(const struct nlattr *expressions)
{
	const struct nlattr *element;

	mnl_attr_for_each_nested(element, expressions)
	{
		const struct nlattr *name = find(element, NFTA_EXPR_NAME);
		const struct nlattr *data = find(element, NFTA_EXPR_DATA);
		const struct nlattr *match;

		if (!name || !data || strcmp(mnl_attr_get_str(name), "match") != 0)
			continue;
		match = find(data, NFTA_MATCH_NAME);
		if (!match)
			continue;
		if (strcmp(mnl_attr_get_str(match), "tcp") == 0)
			return IPPROTO_TCP;
		if (strcmp(mnl_attr_get_str(match), "udp") == 0)
			return IPPROTO_UDP;
		if (strcmp(mnl_attr_get_str(match), "sctp") == 0)
			return IPPROTO_SCTP;
	}
	return 0;
}

static int take_rule(const struct nlmsghdr *dumped, void *arg)
{
	static char space[MESSAGE_MAX];
	struct nlmsghdr *header =
		put_header(space, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, NFPROTO_IPV4, 0, 0);
	const struct nlattr *attribute;
	struct nlattr *compat;
	const char *chain = "";
	uint32_t protocol = 0;

	mnl_attr_for_each(attribute, dumped, sizeof(struct nfgenmsg))
	{
		uint16_t type = mnl_attr_get_type(attribute);

		if (type == NFTA_RULE_CHAIN)
			chain = mnl_attr_get_str(attribute);
		if (type == NFTA_RULE_EXPRESSIONS)
			protocol = compat_protocol(attribute);
		if (type == NFTA_RULE_TABLE || type == NFTA_RULE_CHAIN ||
		    type == NFTA_RULE_EXPRESSIONS)
			copy_attribute(header, attribute);
	}
	compat = mnl_attr_nest_start(header, NFTA_RULE_COMPAT);
	mnl_attr_put_u32(header, NFTA_RULE_COMPAT_PROTO, htonl(protocol));
	mnl_attr_put_u32(header, NFTA_RULE_COMPAT_FLAGS, 0);
	mnl_attr_nest_end(header, compat);
	list_add(arg, header, is_own_chain(chain));
	return MNL_CB_OK;
}

static void dump(struct mnl_socket *sock, struct nlmsghdr *request, mnl_cb_t take, struct list *ret)
{
	static char answer[READ_BYTES];
	uint32_t port = mnl_socket_get_portid(sock);
	int r = MNL_CB_OK;

	if (mnl_socket_sendto(sock, request, request->nlmsg_len) < 0)
		fail("asking for a dump");
	while (r == MNL_CB_OK) {
		ssize_t size = mnl_socket_recvfrom(sock, answer, sizeof(answer));

		if (size < 0)
			fail("reading a dump");
		r = mnl_cb_run(answer, (size_t)size, request->nlmsg_seq, port, take, ret);
	}
	if (r == MNL_CB_ERROR)
		fail("reading a dump");
}

static struct nlmsghdr *dump_request(char *space, uint16_t type)
{
	static uint32_t sequence;

	return put_header(space, (uint16_t)((NFNL_SUBSYS_NFTABLES << 8) | type),
			  NLM_F_REQUEST | NLM_F_DUMP, NFPROTO_IPV4, 0, ++sequence);
}

static const struct nlattr *piece_find(const struct piece *piece, uint16_t type)
{
	const void *attributes = piece->attributes;
	const struct nlattr *attr; /* the macro wants this name */

	mnl_attr_for_each_payload(attributes, piece->size)
	{
		if (mnl_attr_get_type(attr) == type)
			return attr;
	}
	return NULL;
}

/* All chains of the namespace are listed: the kernel has no filter for tables there. */
static void list_keep_table(struct list *list, const char *table)
{
	struct piece **at = &list->first;

	while (*at) {
		const struct nlattr *name = piece_find(*at, NFTA_CHAIN_TABLE);
		struct piece *piece = *at;

		if (name && strcmp(mnl_attr_get_str(name), table) == 0) {
			at = &piece->next;
			continue;
		}
		*at = piece->next;
		free(piece);
		list->n--;
	}
	list->end = at;
}

/* Chain by chain: a dump of a whole table takes the square of its size. */
static void read_table(const char *table, struct list *chains, struct list *rules)
{
	static char space[MESSAGE_MAX];
	struct mnl_socket *sock = socket_open();

	dump(sock, dump_request(space, NFT_MSG_GETCHAIN), take_chain, chains);
	list_keep_table(chains, table);
	for (const struct piece *chain = chains->first; chain; chain = chain->next) {
		struct nlmsghdr *request = dump_request(space, NFT_MSG_GETRULE);

		mnl_attr_put_strz(request, NFTA_RULE_TABLE, table);
		mnl_attr_put_strz(request, NFTA_RULE_CHAIN,
				  mnl_attr_get_str(piece_find(chain, NFTA_CHAIN_NAME)));
		dump(sock, request, take_rule, rules);
	}
	mnl_socket_close(sock);
}

struct load {
	struct mnl_socket *sock;
	struct batch batch;
	int64_t total, worst;
	size_t n;
};

static void load_commit(struct load *load)
{
	int64_t time;

	if (load->batch.last == 0)
		return;
	time = batch_commit(load->sock, &load->batch);
	load->total += time;
	load->worst = time > load->worst ? time : load->worst;
	load->n++;
	batch_begin(&load->batch);
}

static void load_pieces(struct load *load, const struct list *list, bool own, bool in_pieces)
{
	for (const struct piece *piece = list->first; piece; piece = piece->next) {
		struct nlmsghdr *header;

		if (piece->own != own)
			continue;
		header = batch_message(&load->batch, piece->type, piece->flags);
		memcpy(mnl_nlmsg_get_payload_tail(header), piece->attributes, piece->size);
		header->nlmsg_len += piece->size;
		batch_add(&load->batch, header);
		if (in_pieces && load->batch.size > PIECE_BYTES)
			load_commit(load);
	}
}

static void load_table(const char *table, const struct list *chains, const struct list *rules)
{
	struct load load = {.sock = socket_open()};
	struct nlmsghdr *header;

	batch_begin(&load.batch);
	header = batch_message(&load.batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	mnl_attr_put_strz(header, NFTA_TABLE_NAME, table);
	batch_add(&load.batch, header);
	load_pieces(&load, chains, false, false);
	load_pieces(&load, chains, true, true);
	load_commit(&load);
	load_pieces(&load, rules, true, true);
	load_commit(&load);
	load_pieces(&load, rules, false, false);
	load_commit(&load);
	printf("{\"chains\": %zu, \"rules\": %zu, \"transactions\": %zu, \"load_ms\": %.1f, "
	       "\"worst_ms\": %.1f}\n",
	       chains->n, rules->n, load.n, (double)load.total / 1e6, (double)load.worst / 1e6);
	free(load.batch.data);
	mnl_socket_close(load.sock);
}

static void list_free(struct list *list)
{
	while (list->first) {
		struct piece *piece = list->first;

		list->first = piece->next;
		free(piece);
	}
}

static void load(const char *table)
{
	struct list chains = {.end = &chains.first}, rules = {.end = &rules.first};

	read_table(table, &chains, &rules);
	if (unshare(CLONE_NEWNET) < 0)
		fail("making a network namespace");
	load_table(table, &chains, &rules);
	list_free(&chains);
	list_free(&rules);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "change") == 0 && atoi(argv[3]) > 0) {
		change(argv[2], (size_t)atoi(argv[3]));
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "load") == 0) {
		load(argv[2]);
		return 0;
	}
	fprintf(stderr, "usage: bench-kernel-price change TABLE COUNT\n"
			"       bench-kernel-price load TABLE\n");
	return 2;
}
