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

static const struct nlattr *find(const struct nlmsghdr *message, unsigned int offset, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, offset) if (mnl_attr_get_type(attr) == type) return attr;
	return NULL;
}

const struct nlattr *nft_message_attr(const struct nlmsghdr *message, uint16_t type)
{
	return nft_message_type(message) < 0 ? NULL : find(message, sizeof(struct nfgenmsg), type);
}

static const char *string(const struct nlattr *attr)
{
	uint16_t size = attr ? mnl_attr_get_payload_len(attr) : 0;
	const char *text = size ? mnl_attr_get_payload(attr) : NULL;

	return text && text[size - 1] == '\0' ? text : NULL;
}

const char *nft_message_string(const struct nlmsghdr *message, uint16_t type)
{
	return string(nft_message_attr(message, type));
}

static bool number(const struct nlattr *attr, void *ret, size_t size)
{
	if (!attr || mnl_attr_get_payload_len(attr) != size)
		return false;
	memcpy(ret, mnl_attr_get_payload(attr), size);
	return true;
}

bool nft_message_u32(const struct nlmsghdr *message, uint16_t type, uint32_t *ret)
{
	uint32_t value;

	if (!number(nft_message_attr(message, type), &value, sizeof(value)))
		return false;
	*ret = be32toh(value);
	return true;
}

bool nft_message_u64(const struct nlmsghdr *message, uint16_t type, uint64_t *ret)
{
	uint64_t value;

	if (!number(nft_message_attr(message, type), &value, sizeof(value)))
		return false;
	*ret = be64toh(value);
	return true;
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

/* Where the attributes begin, behind our own message's payload unless that was left out. */
static size_t error_attributes(const struct nlmsghdr *message, const struct nlmsgerr *head)
{
	size_t copied = 0;

	if (!(message->nlmsg_flags & NLM_F_CAPPED) && head->msg.nlmsg_len > MNL_NLMSG_HDRLEN)
		copied = MNL_ALIGN((size_t)head->msg.nlmsg_len - MNL_NLMSG_HDRLEN);
	return sizeof(*head) + copied;
}

int nft_message_error(const struct nlmsghdr *message, struct nft_error *ret)
{
	const struct nlmsgerr *head = mnl_nlmsg_get_payload(message);
	struct nft_error error = {0};
	size_t offset;

	if (message->nlmsg_type != NLMSG_ERROR ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*head) || head->error > 0 ||
	    head->error < -NFT_ERRNO_MAX)
		return -EBADMSG;
	error.code = head->error;
	offset = error_attributes(message, head);
	if ((message->nlmsg_flags & NLM_F_ACK_TLVS) &&
	    offset < mnl_nlmsg_get_payload_len(message)) {
		error.text = string(find(message, (unsigned int)offset, NLMSGERR_ATTR_MSG));
		number(find(message, (unsigned int)offset, NLMSGERR_ATTR_OFFS), &error.offset,
		       sizeof(error.offset));
	}
	*ret = error;
	return 0;
}
