/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/foreign_changes.h"

#include <linux/netfilter/nf_tables.h>
#include <stdio.h>

#include "base/text.h"
#include "kernel/nft_describe.h"
#include "kernel/nft_message.h"

static const struct {
	int added, deleted; /* NFT_MSG_* */
	const char *words;
} kinds[] = {
	{NFT_MSG_NEWTABLE, NFT_MSG_DELTABLE, "table"},
	{NFT_MSG_NEWCHAIN, NFT_MSG_DELCHAIN, "chain"},
	{NFT_MSG_NEWRULE, NFT_MSG_DELRULE, "rule of chain"},
	{NFT_MSG_NEWSET, NFT_MSG_DELSET, "set"},
	{NFT_MSG_NEWSETELEM, NFT_MSG_DELSETELEM, "element of set"},
	{NFT_MSG_NEWOBJ, NFT_MSG_DELOBJ, "object"},
};

/* Of a message about elements: how many, and whether they are those of a map. */
static size_t count_elements(const struct nlmsghdr *message, bool *ret_map)
{
	struct nl_attrs list = nl_attr_nest(nft_message_attr(message, NFTA_SET_ELEM_LIST_ELEMENTS));
	const struct nlattr *element;
	size_t n = 0;

	for (; nl_attr_next(&list, &element) > 0; n++)
		*ret_map |= nl_attr_find(nl_attr_nest(element), NFTA_SET_ELEM_DATA) != NULL;
	return n;
}

static bool is_map(const struct nlmsghdr *message)
{
	uint32_t flags;

	return nft_message_u32(message, NFTA_SET_FLAGS, &flags) && (flags & NFT_SET_MAP);
}

/* The words for the thing, without its name. */
static const char *words_of(const struct nlmsghdr *message, size_t kind, size_t *ret_n)
{
	bool map = false;

	*ret_n = 1;
	switch (kinds[kind].added) {
	case NFT_MSG_NEWSET:
		return is_map(message) ? "map" : kinds[kind].words;
	case NFT_MSG_NEWSETELEM:
		*ret_n = MAX(count_elements(message, &map), 1);
		return map ? "element of map" : kinds[kind].words;
	default:
		return kinds[kind].words;
	}
}

void foreign_changes_take(struct foreign_changes *foreign_changes, const struct nlmsghdr *message)
{
	int type = nft_message_type(message);
	const char *name = nft_describe_name(message);
	char words[sizeof(foreign_changes->v[0].words)];
	size_t kind = 0, n;

	while (kind < ARRAY_SIZE(kinds) && type != kinds[kind].added && type != kinds[kind].deleted)
		kind++;
	if (kind < ARRAY_SIZE(kinds) && kinds[kind].added == NFT_MSG_NEWTABLE)
		name = nft_describe_table(message);
	if (kind == ARRAY_SIZE(kinds) || !name) {
		foreign_changes->n_more++;
		return;
	}
	snprintf(words, sizeof(words), "%s %.255s %s", words_of(message, kind, &n), name,
		 type == kinds[kind].added ? "added" : "deleted");
	foreign_changes_add(foreign_changes, words, n);
}

void foreign_changes_add(struct foreign_changes *foreign_changes, const char *words, size_t n)
{
	struct foreign_change *foreign_change = foreign_changes->v;

	while (foreign_change < foreign_changes->v + foreign_changes->n &&
	       strncmp(foreign_change->words, words, sizeof(foreign_change->words) - 1) != 0)
		foreign_change++;
	if (foreign_change == foreign_changes->v + FOREIGN_CHANGES_MAX) {
		foreign_changes->n_more += n;
		return;
	}
	if (foreign_change == foreign_changes->v + foreign_changes->n) {
		snprintf(foreign_change->words, sizeof(foreign_change->words), "%s", words);
		foreign_changes->n++;
	}
	foreign_change->n += n;
}

void foreign_changes_merge(struct foreign_changes *foreign_changes, struct foreign_changes *from)
{
	for (size_t i = 0; i < from->n; i++)
		foreign_changes_add(foreign_changes, from->v[i].words, from->v[i].n);
	foreign_changes->n_more += from->n_more;
	*from = (struct foreign_changes){0};
}

char *foreign_changes_text(const struct foreign_changes *foreign_changes)
{
	cleanup_text struct text text = {0};

	for (size_t i = 0; i < foreign_changes->n; i++) {
		text_printf(&text, "%s%s", i ? ", " : "", foreign_changes->v[i].words);
		if (foreign_changes->v[i].n > 1)
			text_printf(&text, " (%zu times)", foreign_changes->v[i].n);
	}
	if (foreign_changes->n_more > 0)
		text_printf(&text, foreign_changes->n ? ", and %zu more" : "%zu changes",
			    foreign_changes->n_more);
	return text_dup(&text);
}
