/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_message.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

const struct nlmsghdr *nft_datagram_next(struct nft_datagram *datagram)
{
	const struct nlmsghdr *message = datagram->data;
	size_t size;

	if (datagram->left == 0)
		return NULL;
	if (datagram->left < sizeof(*message) || message->nlmsg_len < sizeof(*message) ||
	    message->nlmsg_len > datagram->left) {
		datagram->broken = true;
		datagram->left = 0;
		return NULL;
	}
	size = MIN(MNL_ALIGN((size_t)message->nlmsg_len), datagram->left);
	datagram->data = (const char *)datagram->data + size;
	datagram->left -= size;
	return message;
}

int nft_message_type(const struct nlmsghdr *message)
{
	if (message->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(struct nfgenmsg))
		return -1;
	return message->nlmsg_type & 0xff;
}

const struct nlattr *nft_message_attr(const struct nlmsghdr *message, uint16_t type)
{
	if (nft_message_type(message) < 0)
		return NULL;
	return nl_attr_find(nl_attr_message(message, sizeof(struct nfgenmsg)), type);
}

const char *nft_message_string(const struct nlmsghdr *message, uint16_t type)
{
	return nl_attr_text(nft_message_attr(message, type));
}

bool nft_message_u32(const struct nlmsghdr *message, uint16_t type, uint32_t *ret)
{
	if (!nl_attr_copy(nft_message_attr(message, type), ret, sizeof(*ret)))
		return false;
	*ret = be32toh(*ret);
	return true;
}

bool nft_message_u64(const struct nlmsghdr *message, uint16_t type, uint64_t *ret)
{
	if (!nl_attr_copy(nft_message_attr(message, type), ret, sizeof(*ret)))
		return false;
	*ret = be64toh(*ret);
	return true;
}

struct nft_verdict nft_verdict_of(const struct nlattr *nest)
{
	const struct nlattr *v[NFTA_VERDICT_CHAIN + 1];
	uint32_t code = 0;
	bool known;

	nl_attr_by_type(nl_attr_nest(nest), v, NFTA_VERDICT_CHAIN);
	known = nl_attr_copy(v[NFTA_VERDICT_CODE], &code, sizeof(code));
	return (struct nft_verdict){known, (int32_t)be32toh(code),
				    nl_attr_text(v[NFTA_VERDICT_CHAIN])};
}

static const struct nfgenmsg *generic(const struct nlmsghdr *message)
{
	return mnl_nlmsg_get_payload(message);
}

uint16_t nft_message_generation(const struct nlmsghdr *message)
{
	return nft_message_type(message) < 0 ? 0 : ntohs(generic(message)->res_id);
}

uint8_t nft_message_family(const struct nlmsghdr *message)
{
	return nft_message_type(message) < 0 ? NFPROTO_UNSPEC : generic(message)->nfgen_family;
}

void nft_put_u32(struct nlmsghdr *message, uint16_t type, uint32_t value)
{
	mnl_attr_put_u32(message, type, htobe32(value));
}

void nft_put_value(struct nlmsghdr *message, uint16_t type, const void *bytes, size_t n)
{
	struct nlattr *nest = mnl_attr_nest_start(message, type);

	mnl_attr_put(message, NFTA_DATA_VALUE, n, bytes);
	mnl_attr_nest_end(message, nest);
}

void nft_put_verdict(struct nlmsghdr *message, uint16_t type, int code, const char *chain)
{
	struct nlattr *nest = mnl_attr_nest_start(message, type);
	struct nlattr *verdict = mnl_attr_nest_start(message, NFTA_DATA_VERDICT);

	nft_put_u32(message, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		mnl_attr_put_strz(message, NFTA_VERDICT_CHAIN, chain);
	mnl_attr_nest_end(message, verdict);
	mnl_attr_nest_end(message, nest);
}

void nft_put_hook(struct nlmsghdr *message, uint32_t hook, int32_t priority)
{
	struct nlattr *nest = mnl_attr_nest_start(message, NFTA_CHAIN_HOOK);

	nft_put_u32(message, NFTA_HOOK_HOOKNUM, hook);
	nft_put_u32(message, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	mnl_attr_nest_end(message, nest);
}

uint8_t nft_family(enum family family)
{
	return family == FAMILY_IPV4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

/* They stand behind our own message's payload unless that was left out. */
static struct nl_attrs error_attributes(const struct nlmsghdr *message, const struct nlmsgerr *head)
{
	size_t copied = 0;

	if (!(message->nlmsg_flags & NLM_F_CAPPED) && head->msg.nlmsg_len > MNL_NLMSG_HDRLEN)
		copied = MNL_ALIGN((size_t)head->msg.nlmsg_len - MNL_NLMSG_HDRLEN);
	return nl_attr_message(message, sizeof(*head) + copied);
}

int nft_message_error(const struct nlmsghdr *message, struct nft_error *ret)
{
	const struct nlmsgerr *head = mnl_nlmsg_get_payload(message);
	struct nft_error error = {0};
	struct nl_attrs attrs;

	if (message->nlmsg_type != NLMSG_ERROR ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*head) || head->error > 0 ||
	    head->error < -NFT_ERRNO_MAX)
		return -EBADMSG;
	error.code = head->error;
	if (message->nlmsg_flags & NLM_F_ACK_TLVS) {
		attrs = error_attributes(message, head);
		error.text = nl_attr_text(nl_attr_find(attrs, NLMSGERR_ATTR_MSG));
		nl_attr_copy(nl_attr_find(attrs, NLMSGERR_ATTR_OFFS), &error.offset,
			     sizeof(error.offset));
	}
	*ret = error;
	return 0;
}
