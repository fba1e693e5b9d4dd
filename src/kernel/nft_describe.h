/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an nf_tables message of ours asks for, in words, for errors. */

#include "base/util.h"

struct nlmsghdr;

#define NFT_DESCRIBE_TABLE 1 /* the attribute with the table's name, in every kind of message */

/* "adding a rule to chain KUBE-SVC-X of IPv4 table nat" */
void nft_describe(const struct nlmsghdr *message, char *out, size_t size);
const char *nft_describe_table(const struct nlmsghdr *message); /* NULL: none */
const char *
nft_describe_name(const struct nlmsghdr *message); /* of the chain, set...; NULL: none */
uint16_t nft_describe_name_attribute(int type);    /* of NFT_MSG_*; 0: it has none */
/* The attribute at an offset of the message, as numbers from the outermost to it: "4.1.2"; "" when
 * there is none. */
void nft_describe_attribute(const struct nlmsghdr *message, size_t offset, char *out, size_t size);
