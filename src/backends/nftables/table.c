/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/table.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "backends/nftables/element_read.h"
#include "backends/nftables/elements.h"
#include "backends/nftables/layout.h"
#include "backends/nftables/named_counter.h"
#include "backends/nftables/user_data.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_message.h"

/* Lists what is in the table, or in a chain or set of it; one: that alone. */
static int dump(struct nft_socket *socket, enum family family, uint16_t type, const char *name,
		bool one, const struct nft_dump_ops *ops, void *arg, struct err *err)
{
	const struct nft_dump_request request = {
		.type = type,
		.family = family,
		.table = LAYOUT_TABLE,
		.chain = name,
		.one = one,
	};

	return nft_dump(socket, &request, ops, arg, err);
}

/* -- whose it is */

static enum table_kind kind_of(const struct nlmsghdr *message)
{
	const struct nlattr *attribute = nft_message_attr(message, NFTA_TABLE_USERDATA);
	char comment[USER_DATA_COMMENT_MAX];

	if (!user_data_read_comment(attribute, comment))
		return TABLE_FOREIGN;
	if (streq(comment, LAYOUT_COMMENT))
		return TABLE_OURS;
	return has_prefix(comment, LAYOUT_COMMENT_ANY) ? TABLE_OTHER_LAYOUT : TABLE_FOREIGN;
}

static int take_table(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	enum table_kind *kind = arg;

	*kind = kind_of(message);
	return 0;
}

static int take_set(void *arg, const struct nlmsghdr *message attr_unused,
		    struct err *err attr_unused)
{
	*(bool *)arg = true;
	return 0;
}

/*
 * A table's comment never changes: ours stays when kube-proxy starts over the table, and writes to it
 * what we do not know. This map it always has, and we never.
 */
static int has_kube_proxys_map(struct nft_socket *socket, enum family family, bool *ret,
			       struct err *err)
{
	static const struct nft_dump_ops ops = {.message = take_set};
	int r;

	*ret = false;
	r = dump(socket, family, NFT_MSG_GETSET, "firewall-ips", true, &ops, ret, err);
	return r == -ENOENT ? 0 : r;
}

int table_find(struct nft_socket *socket, enum family family, enum table_kind *ret, struct err *err)
{
	static const struct nft_dump_ops ops = {.message = take_table};
	enum table_kind kind = TABLE_ABSENT;
	bool taken_over = false;
	int r = dump(socket, family, NFT_MSG_GETTABLE, NULL, true, &ops, &kind, err);

	if (r == -ENOENT)
		kind = TABLE_ABSENT;
	else if (r == 0 && kind == TABLE_OURS)
		r = has_kube_proxys_map(socket, family, &taken_over, err);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret = taken_over ? TABLE_FOREIGN : kind;
	return 0;
}

/* -- chains */

static void forget_chains(void *arg)
{
	table_chains_done(arg);
}

static int take_chain(void *arg, const struct nlmsghdr *message, struct err *err)
{
	struct table_chains *chains = arg;
	const char *name = nft_message_string(message, NFTA_CHAIN_NAME);

	if (!name)
		return err_set(err, -EBADMSG, "the kernel lists a chain without a name");
	array_grow(&chains->names, &chains->capacity, chains->n, sizeof(*chains->names));
	chains->names[chains->n++] = xstrdup(name);
	return 0;
}

int table_list_chains(struct nft_socket *socket, enum family family, struct table_chains *ret,
		      struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = forget_chains, .message = take_chain};

	return dump(socket, family, NFT_MSG_GETCHAIN, NULL, false, &ops, ret, err);
}

void table_chains_done(struct table_chains *chains)
{
	for (size_t i = 0; i < chains->n; i++)
		free(chains->names[i]);
	free(chains->names);
	*chains = (struct table_chains){0};
}

/* -- is it there? */

static int count_rule(void *arg, const struct nlmsghdr *message attr_unused,
		      struct err *err attr_unused)
{
	++*(size_t *)arg;
	return 0;
}

/* 1 or 0, or an error. */
static int has_rules(struct nft_socket *socket, enum family family, const char *chain,
		     struct err *err)
{
	static const struct nft_dump_ops ops = {.message = count_rule};
	size_t n = 0;
	int r = dump(socket, family, NFT_MSG_GETRULE, chain, false, &ops, &n, err);

	if (r < 0 && r != -ENOENT)
		return r;
	return n > 0;
}

int table_check(struct nft_socket *socket, enum family family, struct err *err)
{
	enum table_kind kind;
	int r = table_find(socket, family, &kind, err);

	if (r < 0)
		return r;
	if (kind != TABLE_OURS) {
		err_set(err, -ENOENT, "table " LAYOUT_TABLE " is %s",
			kind == TABLE_ABSENT ? "gone" : "not ours any more");
		return 0;
	}
	for (enum chain_id id = 0; id < CHAIN_BASE_COUNT; id++) {
		char name[CHAIN_NAME_MAX];

		chain_name((struct chain){.id = id}, name);
		r = has_rules(socket, family, name, err);
		if (r == 0)
			err_set(err, -ENOENT, "chain %s of table " LAYOUT_TABLE " has no rules",
				name);
		if (r <= 0)
			return r;
	}
	return 1;
}

/* -- elements */

static int list_elements(struct nft_socket *socket, enum family family, enum container container,
			 uint32_t number, const struct nft_dump_ops *ops, void *arg,
			 struct err *err)
{
	char name[CONTAINER_NAME_MAX];
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETSETELEM,
		.family = family,
		.table = LAYOUT_TABLE,
		.chain = name,
		.moving = container_types[container].dynamic,
	};

	container_name(container, number, name);
	return nft_dump(socket, &request, ops, arg, err);
}

static uint16_t port_of(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static struct addr addr_of(enum family family, const uint8_t *bytes)
{
	struct addr addr = {.family = (uint8_t)family};

	memcpy(addr.bytes, bytes, addr_bytes(family));
	return addr;
}

/* -- maps of clients */

void table_maps_done(struct table_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->v[i].comment);
	free(maps->v);
	*maps = (struct table_maps){0};
}

static void forget_maps(void *arg)
{
	table_maps_done(arg);
}

static int take_map(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	struct nl_attrs description = nl_attr_nest(nft_message_attr(message, NFTA_SET_DESC));
	const char *name = nft_message_string(message, NFTA_SET_NAME);
	struct table_maps *maps = arg;
	struct table_map map = {.size = 0};
	char comment[USER_DATA_COMMENT_MAX];

	if (!name || !container_parse(name, &map.container, &map.number))
		return 0;
	maps->localhost_rejects |= map.container == CONTAINER_LOCALHOST_REJECTS;
	if (map.container < CONTAINER_FIXED_COUNT)
		return 0;
	map.size = nl_attr_u32(nl_attr_find(description, NFTA_SET_DESC_SIZE));
	if (user_data_read_set_comment(nft_message_attr(message, NFTA_SET_USERDATA), comment))
		map.comment = xstrdup(comment);
	array_grow(&maps->v, &maps->capacity, maps->n, sizeof(*maps->v));
	maps->v[maps->n++] = map;
	return 0;
}

int table_list_maps(struct nft_socket *socket, enum family family, struct table_maps *ret,
		    struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = forget_maps, .message = take_map};

	return dump(socket, family, NFT_MSG_GETSET, NULL, false, &ops, ret, err);
}

/* -- counters */

static void forget_counters(void *arg)
{
	*(struct table_counters *)arg = (struct table_counters){0};
}

static int take_counter(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	const char *name = nft_message_string(message, NFTA_OBJ_NAME);
	const struct nlattr *data = nft_message_attr(message, NFTA_OBJ_DATA);
	struct table_counters *counters = arg;
	enum protocol protocol;

	if (!name || !named_counter_parse(name, &protocol))
		return 0;
	counters->there[protocol] = true;
	counters->packets[protocol] =
		nl_attr_u64(nl_attr_find(nl_attr_nest(data), NFTA_COUNTER_PACKETS));
	return 0;
}

int table_read_counters(struct nft_socket *socket, enum family family, struct table_counters *ret,
			struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = forget_counters,
						.message = take_counter};
	int r;

	*ret = (struct table_counters){0};
	r = dump(socket, family, NFT_MSG_GETOBJ, NULL, false, &ops, ret, err);
	return r == -ENOENT ? 0 : r;
}

/* -- ids */

struct id_list {
	enum family family;
	struct affinity_ids *ids;
};

static void take_member(void *arg, const struct element_read *read)
{
	const struct id_list *list = arg;
	const uint8_t *key = read->element.bytes;
	uint32_t port = element_id_number(key);
	uint32_t id = element_id_number(key + read->element.key_size);
	struct addr addr = addr_of(list->family, key + 4);

	if (read->is_raw)
		return;
	if (port == 0)
		affinity_ids_found_mark(list->ids, id);
	else
		affinity_ids_found_endpoint(list->ids, port, &addr,
					    port_of(key + 4 + addr_bytes(list->family)), id);
}

static int take_member_message(void *arg, const struct nlmsghdr *message, struct err *err)
{
	const struct id_list *list = arg;

	return element_read_each(message, list->family, CONTAINER_AFFINITY_MEMBERS, take_member,
				 arg, err);
}

int table_find_ids(struct nft_socket *socket, enum family family, struct affinity_ids *ids,
		   struct err *err)
{
	static const struct nft_dump_ops ops = {.message = take_member_message};
	cleanup_table_maps struct table_maps maps = {0};
	struct id_list list = {family, ids};
	int r = table_list_maps(socket, family, &maps, err);

	for (size_t i = 0; r == 0 && i < maps.n; i++)
		if (maps.v[i].container == CONTAINER_CLIENTS && maps.v[i].comment)
			affinity_ids_found_port(ids, maps.v[i].comment, maps.v[i].number);
	return r < 0 ? r
		     : list_elements(socket, family, CONTAINER_AFFINITY_MEMBERS, 0, &ops, &list,
				     err);
}

/* -- clients */

struct client_list {
	enum family family;
	table_client_fn *fn;
	table_restart_fn *restart;
	void *arg;
	int r;
};

static void take_client(void *arg, const struct element_read *read)
{
	struct client_list *list = arg;
	const uint8_t *key = read->element.bytes;
	const struct table_client client = {
		.addr = addr_of(list->family, key),
		.endpoint = element_id_number(key + read->element.key_size),
		.timeout_ms = read->timeout_ms,
		.expires_ms = read->expires_ms,
	};

	if (list->r >= 0 && !read->is_raw)
		list->r = list->fn(list->arg, &client);
}

static int take_client_message(void *arg, const struct nlmsghdr *message, struct err *err)
{
	struct client_list *list = arg;
	int r = element_read_each(message, list->family, CONTAINER_CLIENTS, take_client, arg, err);

	if (r == 0 && list->r < 0)
		return err_set(err, list->r, "the list is not read to its end");
	return r;
}

static void restart_clients(void *arg)
{
	const struct client_list *list = arg;

	list->restart(list->arg);
}

int table_each_client(struct nft_socket *socket, enum family family, const struct table_map *map,
		      table_client_fn *fn, table_restart_fn *restart, void *arg, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = restart_clients,
						.message = take_client_message};
	struct client_list list = {.family = family, .fn = fn, .restart = restart, .arg = arg};

	return list_elements(socket, family, map->container, map->number, &ops, &list, err);
}

/* -- full maps */

struct number_list {
	enum family family;
	uint32_t *v;
	size_t n, capacity;
};

static void take_full(void *arg, const struct element_read *read)
{
	struct number_list *list = arg;

	if (read->is_raw)
		return;
	array_grow(&list->v, &list->capacity, list->n, sizeof(*list->v));
	list->v[list->n++] = element_id_number(read->element.bytes);
}

static int take_full_message(void *arg, const struct nlmsghdr *message, struct err *err)
{
	const struct number_list *list = arg;

	return element_read_each(message, list->family, CONTAINER_FULL_CLIENTS, take_full, arg,
				 err);
}

static void restart_full(void *arg)
{
	((struct number_list *)arg)->n = 0;
}

int table_find_full(struct nft_socket *socket, enum family family, uint32_t **ret, size_t *ret_n,
		    struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = restart_full,
						.message = take_full_message};
	struct number_list list = {.family = family};
	int r = list_elements(socket, family, CONTAINER_FULL_CLIENTS, 0, &ops, &list, err);

	if (r < 0) {
		free(list.v);
		return r;
	}
	*ret = list.v;
	*ret_n = list.n;
	return 0;
}
