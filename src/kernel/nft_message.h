/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading what the kernel's nf_tables part says: answers, dumps and notifications. Lengths are
 * never trusted: whatever the bytes are, nothing beyond them is read. data is aligned to 4 bytes.
 *
 *	struct nft_datagram datagram = {data, n};
 *	while ((message = nft_datagram_next(&datagram)))
 *		if (nft_message_type(message) == NFT_MSG_NEWRULE)
 *			chain = nft_message_string(message, NFTA_RULE_CHAIN);
 */

#include "base/addr.h"
#include "kernel/nl_attr.h"

struct nft_datagram {
	const void *data;
	size_t left;
	bool broken; /* at the end: what was left is no message */
};

const struct nlmsghdr *nft_datagram_next(struct nft_datagram *datagram); /* NULL: the end */

/* NFT_MSG_*; -1 when it is of another kind, or too short to be one. */
int nft_message_type(const struct nlmsghdr *message);
/* An attribute of an nf_tables message, the first of its type; NULL when there is none. */
const struct nlattr *nft_message_attr(const struct nlmsghdr *message, uint16_t type);
/* Its text, NULL when there is none or when it has no NUL at its end. */
const char *nft_message_string(const struct nlmsghdr *message, uint16_t type);
/* Its number, turned to the byte order of the host; false when missing or of another size. */
bool nft_message_u32(const struct nlmsghdr *message, uint16_t type, uint32_t *ret);
bool nft_message_u64(const struct nlmsghdr *message, uint16_t type, uint64_t *ret);
/* The generation's low 16 bits as the message saw it (its res_id). */
uint16_t nft_message_generation(const struct nlmsghdr *message);
uint8_t nft_message_family(const struct nlmsghdr *message); /* NFPROTO_* */

struct nft_verdict {
	bool known;        /* the code is there */
	int32_t code;      /* NF_ACCEPT, NFT_JUMP... */
	const char *chain; /* that it names; or NULL */
};

struct nft_verdict nft_verdict_of(const struct nlattr *nest); /* NFTA_VERDICT_* are in it */

/* Puts a number, in the byte order of the network; or, in a nest, bytes (NFTA_DATA_VALUE) or a verdict
 * (NFTA_DATA_VERDICT, with chain NULL where it names none). */
void nft_put_u32(struct nlmsghdr *message, uint16_t type, uint32_t value);
void nft_put_value(struct nlmsghdr *message, uint16_t type, const void *bytes, size_t n);
void nft_put_verdict(struct nlmsghdr *message, uint16_t type, int code, const char *chain);
/* Puts NFTA_CHAIN_HOOK: "hook prerouting priority -100". hook: NF_INET_* */
void nft_put_hook(struct nlmsghdr *message, uint32_t hook, int32_t priority);

uint8_t nft_family(enum family family); /* NFPROTO_IPV4, NFPROTO_IPV6 */

#define NFT_ERRNO_MAX 4095 /* no error of the kernel is larger */

/* NLMSG_ERROR: an error, or with code 0 an acknowledgement. */
struct nft_error {
	int code;         /* 0 or negative */
	const char *text; /* the kernel's own words, in the message; NULL: none */
	uint32_t offset;  /* of the attribute it minds, in the message that we sent; 0: not told */
};

int nft_message_error(const struct nlmsghdr *message, struct nft_error *ret); /* 0 or -EBADMSG */
