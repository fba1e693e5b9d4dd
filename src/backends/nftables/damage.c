/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/damage.h"

#include <linux/netfilter/nf_tables.h>

#include "backends/nftables/element_read.h"
#include "kernel/nft_describe.h"
#include "kernel/nft_message.h"

void damage_everything(struct damage *damage)
{
	damage->any = damage->everything = true;
}

/* -- chains */

static void note_chain(struct damage *damage, struct chain chain)
{
	for (size_t i = 0; i < damage->n_chains; i++)
		if (damage->chains[i].id == chain.id && damage->chains[i].number == chain.number)
			return;
	if (damage->n_chains == DAMAGE_CHAINS_MAX)
		damage_everything(damage);
	else
		damage->chains[damage->n_chains++] = chain;
}

static void take_chain(struct damage *damage, const char *name)
{
	struct chain chain;

	if (name && chain_parse(name, &chain))
		note_chain(damage, chain);
	else
		damage_everything(damage);
}

/* -- elements */

static void note_key(struct damage *damage, const struct element *element, bool there)
{
	struct damage_key *key = damage->keys;

	if (damage->containers[element->container])
		return;
	while (key < damage->keys + damage->n_keys && element_compare(&key->element, element) != 0)
		key++;
	if (key == damage->keys + DAMAGE_KEYS_MAX) {
		damage->containers[element->container] = true;
		return;
	}
	if (key == damage->keys + damage->n_keys)
		damage->n_keys++;
	*key = (struct damage_key){*element, there};
}

struct taking {
	struct damage *damage;
	bool there;
};

/* What its data are does not count. */
static void take_key(void *arg, const struct element_read *read)
{
	const struct taking *taking = arg;
	struct element key = read->element;

	if (key.key_size == 0) {
		taking->damage->containers[key.container] = true;
		return;
	}
	element_begin(&key, key.container);
	key.key_size = read->element.key_size;
	memcpy(key.bytes, read->element.bytes, key.key_size);
	note_key(taking->damage, &key, taking->there);
}

static void take_elements(struct damage *damage, enum family family, const struct nlmsghdr *message)
{
	struct taking taking = {damage, nft_message_type(message) == NFT_MSG_NEWSETELEM};
	const char *name = nft_describe_name(message);
	enum container container;
	struct err ignored;
	uint32_t number;

	if (!name || !container_parse(name, &container, &number)) {
		damage_everything(damage);
		return;
	}
	if (container_types[container].dynamic || damage->containers[container])
		return;
	if (container_types[container].ranges ||
	    element_read_each(message, family, container, take_key, &taking, &ignored) < 0)
		damage->containers[container] = true;
}

/* -- all of it */

void damage_take(struct damage *damage, enum family family, const struct nlmsghdr *message)
{
	damage->any = true;
	switch (nft_message_type(message)) {
	case NFT_MSG_NEWCHAIN:
	case NFT_MSG_DELCHAIN:
	case NFT_MSG_NEWRULE:
	case NFT_MSG_DELRULE:
		take_chain(damage, nft_describe_name(message));
		break;
	case NFT_MSG_NEWSETELEM:
	case NFT_MSG_DELSETELEM:
		take_elements(damage, family, message);
		break;
	default:
		damage_everything(damage);
	}
}

bool damage_covers(const struct damage *damage, const struct element *element)
{
	if (damage->containers[element->container])
		return true;
	for (size_t i = 0; i < damage->n_keys; i++)
		if (element_compare(&damage->keys[i].element, element) == 0)
			return true;
	return false;
}
