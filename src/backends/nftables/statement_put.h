/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Statements as nf_tables expressions; all but raw ones. */

#include "backends/nftables/statement.h"

struct nlmsghdr;

/* Puts the expressions of one, each a NFTA_LIST_ELEM. */
void statement_put(struct nlmsghdr *message, enum family family, const struct statement *statement);
/* Puts NFTA_RULE_EXPRESSIONS. */
void statement_put_all(struct nlmsghdr *message, enum family family, const struct nft_rule *rule);
