/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_describe.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>

#include "kernel/nft_message.h"

_Static_assert(NFTA_TABLE_NAME == NFT_DESCRIBE_TABLE && NFTA_CHAIN_TABLE == NFT_DESCRIBE_TABLE &&
		       NFTA_RULE_TABLE == NFT_DESCRIBE_TABLE &&
		       NFTA_SET_TABLE == NFT_DESCRIBE_TABLE &&
		       NFTA_SET_ELEM_LIST_TABLE == NFT_DESCRIBE_TABLE,
	       "the table's name comes first");

static const struct {
	int type;
	uint16_t name;     /* the attribute; 0: none */
	const char *words; /* before the name */
	const char *bare;  /* where there is no name */
} kinds[] = {
	{NFT_MSG_NEWTABLE, 0, "", "adding"},
	{NFT_MSG_DELTABLE, 0, "", "deleting"},
	{NFT_MSG_GETTABLE, 0, "", "reading"},
	{NFT_MSG_NEWCHAIN, NFTA_CHAIN_NAME, "adding chain", "adding a chain to"},
	{NFT_MSG_DELCHAIN, NFTA_CHAIN_NAME, "deleting chain", "deleting a chain of"},
	{NFT_MSG_GETCHAIN, NFTA_CHAIN_NAME, "reading chain", "listing the chains of"},
	{NFT_MSG_NEWRULE, NFTA_RULE_CHAIN, "adding a rule to chain", "adding a rule to"},
	{NFT_MSG_DELRULE, NFTA_RULE_CHAIN, "deleting a rule of chain", "deleting a rule of"},
	{NFT_MSG_GETRULE, NFTA_RULE_CHAIN, "listing the rules of chain", "listing the rules of"},
	{NFT_MSG_NEWSET, NFTA_SET_NAME, "adding set", "adding a set to"},
	{NFT_MSG_DELSET, NFTA_SET_NAME, "deleting set", "deleting a set of"},
	{NFT_MSG_GETSET, NFTA_SET_NAME, "reading set", "listing the sets of"},
	{NFT_MSG_NEWSETELEM, NFTA_SET_ELEM_LIST_SET, "adding elements to set",
	 "adding elements to"},
	{NFT_MSG_DELSETELEM, NFTA_SET_ELEM_LIST_SET, "deleting elements of set",
	 "deleting elements of"},
	{NFT_MSG_GETSETELEM, NFTA_SET_ELEM_LIST_SET, "listing the elements of set",
	 "listing the elements of"},
	{NFT_MSG_NEWOBJ, NFTA_OBJ_NAME, "adding object", "adding an object to"},
	{NFT_MSG_DELOBJ, NFTA_OBJ_NAME, "deleting object", "deleting an object of"},
	{NFT_MSG_GETOBJ, NFTA_OBJ_NAME, "reading object", "listing the objects of"},
};

#define UNKNOWN ARRAY_SIZE(kinds)

static size_t kind_of(int type)
{
	size_t i = 0;

	while (i < UNKNOWN && kinds[i].type != type)
		i++;
	return i;
}

uint16_t nft_describe_name_attribute(int type)
{
	size_t kind = kind_of(type);

	return kind == UNKNOWN ? 0 : kinds[kind].name;
}

const char *nft_describe_table(const struct nlmsghdr *message)
{
	return nft_message_string(message, NFT_DESCRIBE_TABLE);
}

const char *nft_describe_name(const struct nlmsghdr *message)
{
	uint16_t attribute = nft_describe_name_attribute(nft_message_type(message));

	return attribute ? nft_message_string(message, attribute) : NULL;
}

static const char *words_of(const struct nlmsghdr *message, bool named)
{
	size_t kind = kind_of(nft_message_type(message));

	if (kind == UNKNOWN)
		return "a message about";
	if (kinds[kind].type == NFT_MSG_DELRULE && !nft_message_attr(message, NFTA_RULE_HANDLE))
		return named ? "emptying chain" : "emptying"; /* what it means without a handle */
	return named ? kinds[kind].words : kinds[kind].bare;
}

static const char *family_words(const struct nlmsghdr *message)
{
	uint8_t family = nft_message_family(message);

	return family == NFPROTO_IPV4 ? "IPv4 " : family == NFPROTO_IPV6 ? "IPv6 " : "";
}

void nft_describe(const struct nlmsghdr *message, char *out, size_t size)
{
	const char *table = nft_describe_table(message);
	const char *name = nft_describe_name(message);

	snprintf(out, size, "%s %s%s%s%s%s", words_of(message, name), name ? name : "",
		 name ? " of " : "", family_words(message), table ? "table " : "tables",
		 table ? table : "");
}

/* The attribute that holds the offset. */
static const struct nlattr *around(struct nl_attrs attrs, const char *target)
{
	const struct nlattr *attr;

	while (nl_attr_next(&attrs, &attr) > 0)
		if (target < (const char *)attr + attr->nla_len)
			return attr;
	return NULL;
}

/* From the message's attributes down to the one that begins there; nf_tables nests a handful of levels. */
void nft_describe_attribute(const struct nlmsghdr *message, size_t offset, char *out, size_t size)
{
	const char *target = (const char *)message + offset;
	struct nl_attrs attrs = nl_attr_message(message, sizeof(struct nfgenmsg));
	const struct nlattr *attr;
	size_t n = 0;

	out[0] = '\0';
	if (nft_message_type(message) < 0)
		return;
	while (n < size && attrs.at <= target && (attr = around(attrs, target))) {
		n += (size_t)snprintf(out + n, size - n, "%s%u", n ? "." : "", nl_attr_type(attr));
		if ((const char *)attr == target || !(attr->nla_type & NLA_F_NESTED))
			return;
		attrs = nl_attr_nest(attr);
	}
	out[0] = '\0';
}
