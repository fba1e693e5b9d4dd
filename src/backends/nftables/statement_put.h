/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Statements as nf_tables expressions. */

#include "backends/nftables/statement.h"

struct nlmsghdr;

/* Puts NFTA_RULE_EXPRESSIONS. */
void statement_put_all(struct nlmsghdr *message, enum family family, const struct nft_rule *rule);
