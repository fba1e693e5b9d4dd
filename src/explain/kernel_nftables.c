/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>

#include "backends/nftables/layout.h"
#include "backends/nftables/table.h"
#include "explain/kernel_rules.h"
#include "explain/nftables_rules.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_socket.h"

/* -- one element among those of a container */

enum found {
	FOUND_NOTHING = 0,
	FOUND_OTHER, /* the key, with other data */
	FOUND_SAME,
};

struct search {
	const struct element *element;
	enum found found;
};

static bool same_key(const struct element *wanted, const struct table_element *element)
{
	size_t n = wanted->key_size;

	if (element->key_size != n)
		return false;
	/* an endpoint may have any slot of its group */
	if (container_has_slots((enum container)wanted->container))
		n -= sizeof(uint32_t);
	return memcmp(element->key, wanted->bytes, n) == 0;
}

static bool same_data(const struct element *wanted, const struct table_element *element)
{
	char name[CHAIN_NAME_MAX];

	if (wanted->verdict == VERDICT_NONE)
		return element->data_size == wanted->data_size &&
		       (!wanted->data_size ||
			memcmp(element->data, wanted->bytes + wanted->key_size,
			       wanted->data_size) == 0);
	if (wanted->verdict == VERDICT_DROP)
		return element->verdict && !element->chain;
	chain_name(wanted->chain, name);
	return element->chain && streq(element->chain, name);
}

static void look_at(void *arg, const struct table_element *element)
{
	struct search *search = arg;

	if (search->found == FOUND_SAME || !same_key(search->element, element))
		return;
	search->found = same_data(search->element, element) ? FOUND_SAME : FOUND_OTHER;
}

static int take_message(void *arg, const struct nlmsghdr *message, struct err *err)
{
	return table_each_element(message, look_at, arg, err);
}

static void forget(void *arg)
{
	((struct search *)arg)->found = FOUND_NOTHING;
}

static int find(struct nft_socket *socket, enum family family, const struct element *element,
		enum found *ret, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = forget, .message = take_message};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETSETELEM,
		.family = family,
		.table = LAYOUT_TABLE,
		.chain = container_types[element->container].name,
	};
	struct search search = {.element = element};
	int r = nft_dump(socket, &request, &ops, &search, err);

	if (r < 0 && r != -ENOENT)
		return r;
	*ret = r == -ENOENT ? FOUND_NOTHING : search.found;
	return 0;
}

/* -- rules of a chain */

static int count_message(void *arg, const struct nlmsghdr *message attr_unused,
			 struct err *err attr_unused)
{
	(*(size_t *)arg)++;
	return 0;
}

static void count_anew(void *arg)
{
	*(size_t *)arg = 0;
}

static int count_rules(struct nft_socket *socket, enum family family, const char *chain,
		       size_t *ret, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = count_anew, .message = count_message};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETRULE,
		.family = family,
		.table = LAYOUT_TABLE,
		.chain = chain,
	};
	int r;

	*ret = 0;
	r = nft_dump(socket, &request, &ops, ret, err);
	return r == -ENOENT ? 0 : r;
}

/* -- steps */

/* Those whose keys or data each process chooses by itself. */
static bool is_private(enum container container)
{
	return container >= CONTAINER_AFFINITY_IDS && container < CONTAINER_COUNT;
}

static int compare_step(struct nft_socket *socket, enum family family, struct step *step,
			struct err *err)
{
	const struct element *element = step->element_identity;
	enum found found = FOUND_SAME;
	size_t n_rules;
	int r = count_rules(socket, family, step->chain, &n_rules, err);

	if (r == 0 && element && !is_private((enum container)element->container))
		r = find(socket, family, element, &found, err);
	if (r < 0)
		return r;
	if (n_rules != step->length)
		step->kernel = n_rules == 0 ? "there is no such chain, or it is empty"
					    : "the chain has another number of rules";
	else if (found != FOUND_SAME)
		step->kernel = found == FOUND_OTHER ? "this element has other data"
						    : "this element is missing";
	return 0;
}

/* -- what decides first, and is not planned */

static void first_key(const struct packet *packet, enum container container, bool node_port,
		      struct element *ret)
{
	element_begin(ret, container);
	if (!node_port)
		element_key_addr(ret, &packet->destination);
	element_key_protocol(ret, packet->protocol);
	element_key_port(ret, packet->port);
}

static int find_extra(struct nft_socket *socket, struct explain *explain,
		      struct explanation *explanation, struct err *err)
{
	static const struct {
		enum container container;
		bool node_port;
	} first[] = {
		{CONTAINER_SERVICE_IPS, false},
		{CONTAINER_SERVICE_NODEPORTS, true},
		{CONTAINER_NO_ENDPOINT_SERVICES, false},
		{CONTAINER_NO_ENDPOINT_NODEPORTS, true},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(first); i++) {
		enum found found = FOUND_NOTHING;
		struct element key;

		first_key(&explanation->way->packet, first[i].container, first[i].node_port, &key);
		if (nftables_rules_find(explain_nftables(explain), &key))
			continue;
		r = find(socket, explanation->way->packet.family, &key, &found, err);
		if (r == 0 && found != FOUND_NOTHING)
			kernel_rules_note(
				explanation,
				xasprintf("map %s has an element for this destination that is not "
					  "planned",
					  container_types[first[i].container].name));
	}
	return r;
}

int kernel_nftables_compare(struct explain *explain, struct explanation *explanation,
			    struct err *err)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	struct way *way = explanation->way;
	int r = nft_socket_open(&socket, err);

	for (size_t i = 0; r == 0 && i < way->n_outcomes; i++) {
		size_t from = i == 0 ? 0 : way->n_common;

		for (size_t j = from; r == 0 && j < way->outcomes[i].n_steps; j++)
			r = compare_step(socket, way->packet.family, &way->outcomes[i].steps[j],
					 err);
	}
	return r < 0 ? r : find_extra(socket, explain, explanation, err);
}
