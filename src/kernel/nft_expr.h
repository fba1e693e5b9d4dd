/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The expressions that nf_tables rules are made of, one function for each. All rules of Portolan, of
 * iptables mode, of nftables mode and of the tracer, are put together from these.
 *
 *	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
 *	nft_expr_protocol(message, NFT_REG_1, IPPROTO_TCP);
 *	nft_expr_dport(message, NFT_REG_1);
 *	nft_expr_cmp(message, NFT_REG_1, NFT_CMP_EQ, &port, sizeof(port));
 *	nft_expr_verdict(message, NFT_JUMP, "services");
 *	mnl_attr_nest_end(message, list);
 *
 * The kernel lists them with the bytes that nft or iptables-nft would have left there. nft_expr.c says
 * above each function what a person would type for it, and how `nft --debug=netlink` prints it. The
 * message must have room.
 *
 * A register is NFT_REG_1 to NFT_REG_4, each of 16 bytes, or NFT_EXPR_WORD(n): the n-th word of four
 * bytes, which is how the fields of a key lie one behind the other. Values are bytes as the kernel
 * compares them: addresses and ports in the order of the network, marks and ids in that of the host.
 */

#include "base/addr.h"
#include "kernel/nl_attr.h"

/* Every fourth has two names, of which the kernel lists the old one. */
#define NFT_EXPR_WORD(n) ((n) % 4 ? NFT_REG32_00 + (uint32_t)(n) : NFT_REG_1 + (uint32_t)(n) / 4)
#define NFT_EXPR_CT_NEW \
	(1u << (IP_CT_NEW + 1)) /* NF_CT_STATE_BIT, which the kernel keeps to itself */

/* Where an address begins in the header of its family. */
uint32_t nft_expr_address_offset(enum family family, bool source);

/* -- loads: what comes into a register */

/* base: enum nft_payload_bases */
void nft_expr_payload(struct nlmsghdr *m, uint32_t reg, uint32_t base, size_t offset, size_t n);
void nft_expr_address(struct nlmsghdr *m, uint32_t reg, enum family family, bool source);
void nft_expr_dport(struct nlmsghdr *m, uint32_t reg); /* of any protocol that has ports */
void nft_expr_meta(struct nlmsghdr *m, uint32_t reg, uint32_t key);        /* enum nft_meta_keys */
void nft_expr_ct(struct nlmsghdr *m, uint32_t reg, uint32_t key);          /* enum nft_ct_keys */
void nft_expr_ct_original(struct nlmsghdr *m, uint32_t reg, uint32_t key); /* before translation */
void nft_expr_random(struct nlmsghdr *m, uint32_t reg, uint32_t modulus);
void nft_expr_value(struct nlmsghdr *m, uint32_t reg, const void *bytes, size_t n);
/* & mask ^ xor, in the same register; xor NULL: zeros. At most 16 bytes. */
void nft_expr_bitwise(struct nlmsghdr *m, uint32_t reg, const void *mask, const void * xor,
		      size_t n);

/* -- conditions: the rule ends where one does not hold */

void nft_expr_cmp(struct nlmsghdr *m, uint32_t reg, uint32_t op, const void *bytes, size_t n);
void nft_expr_protocol(struct nlmsghdr *m, uint32_t reg, uint8_t number); /* loads it, too */
void nft_expr_local(struct nlmsghdr *m, uint32_t reg, uint32_t flag);     /* loads it, too */
void nft_expr_any_bit(struct nlmsghdr *m, uint32_t reg, uint32_t mask);   /* of a number's */
void nft_expr_lookup(struct nlmsghdr *m, uint32_t reg, const char *set, bool invert);
void nft_expr_limit(struct nlmsghdr *m, uint64_t rate, uint32_t burst); /* packets a second */
void nft_expr_match(struct nlmsghdr *m, const char *name, uint32_t revision, const void *info,
		    size_t size);

/* -- what happens */

/* to: a register, or NFT_REG_VERDICT for a map of verdicts */
void nft_expr_lookup_map(struct nlmsghdr *m, uint32_t reg, const char *map, uint32_t to);
void nft_expr_meta_set(struct nlmsghdr *m, uint32_t reg, uint32_t key);
void nft_expr_dnat(struct nlmsghdr *m, enum family family, uint32_t addr, uint32_t port);
void nft_expr_masquerade(struct nlmsghdr *m, uint32_t flags); /* NF_NAT_RANGE_* */
void nft_expr_counter(struct nlmsghdr *m);
void nft_expr_named_counter(struct nlmsghdr *m, const char *name);

struct nft_expr_update {
	uint32_t op; /* enum nft_dynset_ops */
	const char *set;
	uint32_t key, data;  /* registers; data 0: a set, which has none */
	uint64_t timeout_ms; /* 0: not said */
};

void nft_expr_dynset(struct nlmsghdr *m, const struct nft_expr_update *update);

/* -- how a rule ends */

void nft_expr_verdict(struct nlmsghdr *m, int code, const char *chain); /* NULL: none is named */
void nft_expr_reject(struct nlmsghdr *m, enum family family);
void nft_expr_reset(struct nlmsghdr *m); /* reject, of TCP */
void nft_expr_target(struct nlmsghdr *m, const char *name, uint32_t revision, const void *info,
		     size_t size);

/* -- reading */

#define NFT_EXPR_ATTR_MAX 15 /* no expression has attributes of higher types yet */

/* An expression of a rule that the kernel lists; all of it lies in the message. */
struct nft_expr {
	const char *name;
	const struct nlattr *data;                     /* NULL: none */
	const struct nlattr *v[NFT_EXPR_ATTR_MAX + 1]; /* the attributes in data, by type */
	int parsed;                                    /* what nl_attr_by_type() said of data */
};

/* The next of a list (NFTA_RULE_EXPRESSIONS). 1: there is one; 0: that was all; -EBADMSG: it is no
 * list, or one in it has no name. Data that are not well formed are told in *ret. */
int nft_expr_next(struct nl_attrs *list, struct nft_expr *ret);
