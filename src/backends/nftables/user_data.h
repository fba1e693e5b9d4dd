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

#define USER_DATA_COMMENT_MAX 256

/* A comment, cut at ELEMENT_COMMENT_MAX bytes, as an attribute of a table, chain, rule or element. */
void user_data_comment(struct nlmsghdr *message, uint16_t attribute, const char *comment);
/* So much of it as is kept. */
void user_data_cut(const char *comment, char out[static USER_DATA_COMMENT_MAX]);

struct nlattr;
/* The way back; false: there is none. attribute NULL: none either. */
bool user_data_read_comment(const struct nlattr *attribute, char out[static USER_DATA_COMMENT_MAX]);
/* The same for the user data of a set or map. */
bool user_data_read_set_comment(const struct nlattr *attribute,
				char out[static USER_DATA_COMMENT_MAX]);
/* NFTA_SET_USERDATA of a set or map. */
void user_data_container(struct nlmsghdr *message, enum family family, enum container container,
			 const char *comment);
