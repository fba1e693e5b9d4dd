/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel keeps for nft and does not read itself: comments, and how to print keys.
 *
 * The latter is no decoration. A key with a plain number in it, without the expressions that it is
 * made of (nft's `typeof`), makes `nft list` abort as soon as a map has two elements.
 */

#include "backends/nftables/container.h"

struct nlmsghdr;

/* A comment, cut at 127 bytes, as an attribute of a table, chain, rule or element. */
void user_data_comment(struct nlmsghdr *message, uint16_t attribute, const char *comment);
/* NFTA_SET_USERDATA of a set or map. */
void user_data_container(struct nlmsghdr *message, enum family family, enum container container);
