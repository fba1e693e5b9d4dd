/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/batch_writer.h"

#include <assert.h>
#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "backends/nftables/named_counter.h"
#include "backends/nftables/statement_put.h"
#include "backends/nftables/user_data.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_message.h"
#include "plan/plan.h"

/* nft's numbers of types, six bits each in a concatenation, the first field highest. */
enum {
	TYPE_INTEGER = 4,
	TYPE_IPV4 = 7,
	TYPE_IPV6 = 8,
	TYPE_PROTOCOL = 12,
	TYPE_SERVICE = 13,
	TYPE_CLASSID = 23,
	TYPE_BITS = 6,
};

/*
 * Elements of one container, gathered as attributes behind a header that is never sent. Room for
 * names and for one element too many stays free in the message that they are copied to.
 */
#define PENDING_LIMIT (NFT_MESSAGE_MAX - 1024)

struct batch_writer_pending {
	union {
		struct nlmsghdr head;
		char bytes[NFT_MESSAGE_MAX];
	};
};

static struct batch_writer *of(struct writer *writer)
{
	return (struct batch_writer *)writer;
}

static struct nlmsghdr *message(struct batch_writer *writer, uint16_t type, uint16_t flags,
				uint16_t table_attribute)
{
	struct nlmsghdr *m = nft_batch_message(writer->batch, type, writer->writer.family, flags);

	mnl_attr_put_strz(m, table_attribute, writer->table);
	return m;
}

/* -- tables and chains */

/* nft add table ip kube-proxy { comment "..."; } */
void batch_writer_table(struct batch_writer *writer, const char *comment)
{
	struct nlmsghdr *m = message(writer, NFT_MSG_NEWTABLE, NLM_F_CREATE, NFTA_TABLE_NAME);

	nft_put_u32(m, NFTA_TABLE_FLAGS, 0);
	user_data_comment(m, NFTA_TABLE_USERDATA, comment);
}

void batch_writer_delete_table(struct batch_writer *writer)
{
	message(writer, NFT_MSG_DELTABLE, 0, NFTA_TABLE_NAME);
}

static void put_hook(struct nlmsghdr *m, const struct chain_hook *hook)
{
	nft_put_hook(m, hook->hook_number, hook->priority);
	nft_put_u32(m, NFTA_CHAIN_POLICY, NF_ACCEPT);
	mnl_attr_put_strz(m, NFTA_CHAIN_TYPE, hook->type);
}

static void write_chain(struct writer *writer, struct chain chain)
{
	struct nlmsghdr *m = message(of(writer), NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFTA_CHAIN_TABLE);
	const struct chain_hook *hook = chain_hook(chain.id);
	char name[CHAIN_NAME_MAX], comment[128];

	chain_name(chain, name);
	chain_comment(chain, comment);
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, name);
	if (hook)
		put_hook(m, hook);
	else
		user_data_comment(m, NFTA_CHAIN_USERDATA, comment);
}

void batch_writer_delete_chain(struct batch_writer *writer, const char *name)
{
	struct nlmsghdr *m = message(writer, NFT_MSG_DELCHAIN, 0, NFTA_CHAIN_TABLE);

	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, name);
}

/* -- rules */

static void write_rule(struct writer *writer, const struct nft_rule *rule)
{
	struct nlmsghdr *m =
		message(of(writer), NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, NFTA_RULE_TABLE);
	char name[CHAIN_NAME_MAX];

	chain_name(rule->chain, name);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, name);
	statement_put_all(m, writer->family, rule);
	if (rule->comment)
		user_data_comment(m, NFTA_RULE_USERDATA, rule->comment);
}

/* nft flush table ip kube-proxy */
void batch_writer_flush_rules(struct batch_writer *writer)
{
	message(writer, NFT_MSG_DELRULE, 0, NFTA_RULE_TABLE);
}

void batch_writer_flush_chain(struct batch_writer *writer, struct chain chain)
{
	struct nlmsghdr *m = message(writer, NFT_MSG_DELRULE, 0, NFTA_RULE_TABLE);
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, name);
}

/* -- sets and maps */

static uint32_t field_type(enum family family, enum container_field field)
{
	switch (field) {
	case FIELD_ADDRESS:
		return family == FAMILY_IPV4 ? TYPE_IPV4 : TYPE_IPV6;
	case FIELD_PROTOCOL:
		return TYPE_PROTOCOL;
	case FIELD_PORT:
		return TYPE_SERVICE;
	case FIELD_SLOT:
		return TYPE_INTEGER;
	default:
		return TYPE_CLASSID;
	}
}

static uint32_t key_type(enum family family, const struct container_type *type)
{
	uint32_t number = 0;

	for (size_t i = 0; i < CONTAINER_FIELDS && type->key[i]; i++)
		number = number << TYPE_BITS | field_type(family, type->key[i]);
	return number;
}

static uint32_t data_type(enum family family, enum container_data data)
{
	switch (data) {
	case DATA_VERDICT:
		return NFT_DATA_VERDICT;
	case DATA_ENDPOINT:
		return field_type(family, FIELD_ADDRESS) << TYPE_BITS | TYPE_SERVICE;
	default:
		return TYPE_CLASSID;
	}
}

static uint32_t flags_of(const struct container_type *type)
{
	return (type->data != DATA_NONE ? NFT_SET_MAP : 0) |
	       (type->ranges ? NFT_SET_INTERVAL | NFT_SET_CONCAT : 0) |
	       (type->dynamic ? NFT_SET_EVAL | NFT_SET_TIMEOUT : 0);
}

/* How long each field is: the kernel must know where a range begins. */
static void put_fields(struct nlmsghdr *m, enum family family, const struct container_type *type)
{
	struct nlattr *nest = mnl_attr_nest_start(m, NFTA_SET_DESC_CONCAT);

	for (size_t i = 0; i < CONTAINER_FIELDS && type->key[i]; i++) {
		struct nlattr *field = mnl_attr_nest_start(m, NFTA_LIST_ELEM);

		nft_put_u32(m, NFTA_SET_FIELD_LEN,
			    (uint32_t)container_field_size(type->key[i], family));
		mnl_attr_nest_end(m, field);
	}
	mnl_attr_nest_end(m, nest);
}

static void put_description(struct nlmsghdr *m, enum family family,
			    const struct container_type *type, uint32_t size)
{
	struct nlattr *nest = mnl_attr_nest_start(m, NFTA_SET_DESC);

	if (size > 0)
		nft_put_u32(m, NFTA_SET_DESC_SIZE, size);
	if (type->ranges)
		put_fields(m, family, type);
	mnl_attr_nest_end(m, nest);
}

struct declaration {
	enum container container;
	const char *name, *comment;
	uint32_t id;   /* in the transaction */
	uint32_t size; /* 0: not said */
};

/* nft add map ip kube-proxy NAME { type KEY : DATA; flags ...; } */
static void declare(struct writer *writer, const struct declaration *declaration)
{
	enum container container = declaration->container;
	const struct container_type *type = &container_types[container];
	enum family family = writer->family;
	struct nlmsghdr *m = message(of(writer), NFT_MSG_NEWSET, NLM_F_CREATE, NFTA_SET_TABLE);

	mnl_attr_put_strz(m, NFTA_SET_NAME, declaration->name);
	nft_put_u32(m, NFTA_SET_FLAGS, flags_of(type));
	nft_put_u32(m, NFTA_SET_KEY_TYPE, key_type(family, type));
	nft_put_u32(m, NFTA_SET_KEY_LEN, (uint32_t)container_key_size(container, family));
	if (type->data != DATA_NONE) {
		nft_put_u32(m, NFTA_SET_DATA_TYPE, data_type(family, type->data));
		nft_put_u32(m, NFTA_SET_DATA_LEN, (uint32_t)container_data_size(container, family));
	}
	nft_put_u32(m, NFTA_SET_ID, declaration->id);
	if (declaration->size > 0 || type->ranges)
		put_description(m, family, type, declaration->size);
	user_data_container(m, family, container, declaration->comment);
}

static void write_container(struct writer *writer, enum container container)
{
	const struct container_type *type = &container_types[container];

	declare(writer, &(struct declaration){
				.container = container,
				.name = type->name,
				.comment = type->comment,
				.id = (uint32_t)container + 1,
				.size = type->dynamic ? CONTAINER_FULL_SIZE : 0,
			});
}

/*
 * Before Linux 6.5 a map whose size is said takes the memory for all of its buckets at once. So a large size is said in
 * a second message, which older kernels do not heed: their map then holds CONTAINER_KERNEL_SIZE.
 */
static void write_clients(struct writer *writer, const struct clients_map *map)
{
	char name[CONTAINER_NAME_MAX];
	struct declaration declaration = {
		.container = map->container,
		.name = name,
		.comment = map->comment,
		.id = CONTAINER_COUNT + 2 * map->number +
		      (map->container == CONTAINER_LOCAL_CLIENTS),
		.size = map->size <= CONTAINER_KERNEL_SIZE ? map->size : 0,
	};

	container_name(map->container, map->number, name);
	declare(writer, &declaration);
	if (declaration.size == map->size)
		return;
	declaration.size = map->size;
	declare(writer, &declaration);
}

void batch_writer_flush_container(struct batch_writer *writer, enum container container)
{
	struct nlmsghdr *m = message(writer, NFT_MSG_DELSETELEM, 0, NFTA_SET_ELEM_LIST_TABLE);

	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, container_types[container].name);
}

/* nft delete map ip kube-proxy NAME */
void batch_writer_delete_clients(struct batch_writer *writer, enum container container,
				 uint32_t number)
{
	struct nlmsghdr *m = message(writer, NFT_MSG_DELSET, 0, NFTA_SET_TABLE);
	char name[CONTAINER_NAME_MAX];

	container_name(container, number, name);
	mnl_attr_put_strz(m, NFTA_SET_NAME, name);
}

/* nft delete map ip kube-proxy NAME */
void batch_writer_delete_container(struct batch_writer *writer, enum container container)
{
	batch_writer_delete_clients(writer, container, 0);
}

/* -- counters */

static struct nlmsghdr *about_counter(struct batch_writer *writer, uint16_t type, uint16_t flags,
				      enum protocol protocol)
{
	struct nlmsghdr *m = message(writer, type, flags, NFTA_OBJ_TABLE);
	char name[NAMED_COUNTER_MAX];

	named_counter_name(protocol, name);
	mnl_attr_put_strz(m, NFTA_OBJ_NAME, name);
	nft_put_u32(m, NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
	return m;
}

/* nft add counter ip kube-proxy NAME: one that is there keeps what it has counted */
static void write_counter(struct writer *writer, enum protocol protocol)
{
	struct nlmsghdr *m = about_counter(of(writer), NFT_MSG_NEWOBJ, NLM_F_CREATE, protocol);
	struct nlattr *data = mnl_attr_nest_start(m, NFTA_OBJ_DATA);

	mnl_attr_put_u64(m, NFTA_COUNTER_BYTES, 0);
	mnl_attr_put_u64(m, NFTA_COUNTER_PACKETS, 0);
	mnl_attr_nest_end(m, data);
}

/* nft delete counter ip kube-proxy NAME */
void batch_writer_delete_counter(struct batch_writer *writer, enum protocol protocol)
{
	about_counter(writer, NFT_MSG_DELOBJ, 0, protocol);
}

/* -- elements */

static void put_verdict(struct nlmsghdr *m, const struct element *element)
{
	const struct element_verdict_type *type = &element_verdicts[element->verdict];
	char name[CHAIN_NAME_MAX];

	chain_name(element->chain, name);
	nft_put_verdict(m, NFTA_SET_ELEM_DATA, type->code, type->has_chain ? name : NULL);
}

/* The last address of the prefix that the key ends with. */
static void put_range_end(struct nlmsghdr *m, enum family family, const struct element *element)
{
	size_t n = addr_bytes(family);
	uint8_t key[ELEMENT_BYTES];

	memcpy(key, element->bytes, element->key_size);
	for (size_t i = element->prefix; i < addr_bits(family); i++)
		key[element->key_size - n + i / 8] |= (uint8_t)(0x80 >> i % 8);
	nft_put_value(m, NFTA_SET_ELEM_KEY_END, key, element->key_size);
}

/* How long an element lives; 0 and 0: for ever. */
struct lifetime {
	uint64_t timeout_ms, expires_ms;
};

static void put_lifetime(struct nlmsghdr *m, struct lifetime lifetime)
{
	if (lifetime.timeout_ms == 0)
		return;
	mnl_attr_put_u64(m, NFTA_SET_ELEM_TIMEOUT, htobe64(lifetime.timeout_ms));
	mnl_attr_put_u64(m, NFTA_SET_ELEM_EXPIRATION, htobe64(lifetime.expires_ms));
}

static void put_element(struct nlmsghdr *m, enum family family, const struct element *element,
			bool with_data, struct lifetime lifetime)
{
	struct nlattr *nest = mnl_attr_nest_start(m, NFTA_LIST_ELEM);

	nft_put_value(m, NFTA_SET_ELEM_KEY, element->bytes, element->key_size);
	if (container_types[element->container].ranges)
		put_range_end(m, family, element);
	if (with_data && element->verdict)
		put_verdict(m, element);
	else if (with_data && element->data_size > 0)
		nft_put_value(m, NFTA_SET_ELEM_DATA, element->bytes + element->key_size,
			      element->data_size);
	if (with_data && element->comment)
		user_data_comment(m, NFTA_SET_ELEM_USERDATA, element->comment);
	put_lifetime(m, lifetime);
	mnl_attr_nest_end(m, nest);
}

/* nft add element ip kube-proxy NAME { ... }, and delete */
static void send_pending(struct batch_writer *writer, enum container container)
{
	struct batch_writer_pending *pending = writer->pending[container];
	char name[CONTAINER_NAME_MAX];
	struct nlattr *list;
	struct nlmsghdr *m;
	size_t n;

	if (!pending || pending->head.nlmsg_len == sizeof(struct nlmsghdr))
		return;
	m = writer->removing
		    ? message(writer, NFT_MSG_DELSETELEM, 0, NFTA_SET_ELEM_LIST_TABLE)
		    : message(writer, NFT_MSG_NEWSETELEM, NLM_F_CREATE, NFTA_SET_ELEM_LIST_TABLE);
	container_name(container, writer->clients_number, name);
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, name);
	n = pending->head.nlmsg_len - sizeof(struct nlmsghdr);
	list = mnl_attr_nest_start(m, NFTA_SET_ELEM_LIST_ELEMENTS);
	memcpy(mnl_nlmsg_get_payload_tail(m), pending->bytes + sizeof(struct nlmsghdr), n);
	m->nlmsg_len += (uint32_t)n;
	mnl_attr_nest_end(m, list);
	pending->head.nlmsg_len = sizeof(struct nlmsghdr);
}

void batch_writer_flush(struct batch_writer *writer)
{
	for (enum container i = 0; i < CONTAINER_COUNT; i++)
		send_pending(writer, i);
}

static void gather(struct batch_writer *writer, const struct element *element, bool removing,
		   struct lifetime lifetime)
{
	struct batch_writer_pending **pending = &writer->pending[element->container];

	if (writer->removing != removing)
		batch_writer_flush(writer);
	writer->removing = removing;
	if (!*pending) {
		*pending = xmalloc(sizeof(**pending));
		(*pending)->head = (struct nlmsghdr){.nlmsg_len = sizeof(struct nlmsghdr)};
	}
	put_element(&(*pending)->head, writer->writer.family, element, !removing, lifetime);
	writer->n_elements++;
	if ((*pending)->head.nlmsg_len > PENDING_LIMIT)
		send_pending(writer, element->container);
}

static void write_add(struct writer *writer, const struct element *element)
{
	gather(of(writer), element, false, (struct lifetime){0});
}

static void write_remove(struct writer *writer, const struct element *element)
{
	gather(of(writer), element, true, (struct lifetime){0});
}

void batch_writer_add_client(struct batch_writer *writer, const struct batch_client *client)
{
	struct element element;

	if (writer->clients_number != client->number)
		batch_writer_flush(writer);
	writer->clients_number = client->number;
	element_begin(&element, client->container);
	element_key_addr(&element, &client->addr);
	element_data_id(&element, client->endpoint);
	gather(writer, &element, false, (struct lifetime){client->timeout_ms, client->expires_ms});
}

/* -- owners */

static void write_owner(struct writer *writer, const struct port_plan *port)
{
	struct batch_writer *batch_writer = of(writer);
	struct batch_owners *owners = batch_writer->owners;
	cleanup_free char *subject = NULL;

	if (!owners)
		return;
	batch_writer_flush(batch_writer);
	if (port)
		subject = xasprintf("service port '%s'", port->id);
	nft_batch_subject(batch_writer->batch, subject);
	array_grow(&owners->v, &owners->capacity, owners->n, sizeof(*owners->v));
	owners->v[owners->n++] = (struct batch_owner){nft_batch_count(batch_writer->batch), port};
}

void batch_writer_note_owners(struct batch_writer *writer, struct batch_owners *owners)
{
	owners->n = 0;
	writer->owners = owners;
	writer->writer.by_owner = true;
}

const struct port_plan *batch_owners_find(const struct batch_owners *owners, size_t message)
{
	size_t low = 0, high = owners->n;

	while (low < high) { /* the first one behind it */
		size_t middle = (low + high) / 2;

		if (owners->v[middle].first <= message)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? owners->v[low - 1].port : NULL;
}

void batch_owners_done(struct batch_owners *owners)
{
	free(owners->v);
	*owners = (struct batch_owners){0};
}

static const struct writer_ops ops = {
	.container = write_container,
	.clients = write_clients,
	.counter = write_counter,
	.chain = write_chain,
	.rule = write_rule,
	.add = write_add,
	.remove = write_remove,
	.owner = write_owner,
};

void batch_writer_init(struct batch_writer *writer, enum family family, const char *table,
		       struct nft_batch *batch)
{
	*writer = (struct batch_writer){
		.writer = {.ops = &ops, .family = family},
		.batch = batch,
		.table = table,
	};
}

void batch_writer_done(struct batch_writer *writer)
{
	for (enum container i = 0; i < CONTAINER_COUNT; i++)
		free(writer->pending[i]);
}
