/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A rule as the kernel lists it, in nft's words: the way back from statement_put.h. Of a rule that is
 * ours it makes what statement_text_rule() says of the same rule, so that texts can be compared. Of
 * any other it says as much as it understands; an expression that it does not know is named in
 * brackets.
 */

#include "base/addr.h"
#include "base/text.h"

struct nlmsghdr;

/* NFT_MSG_NEWRULE. Lengths are not trusted. */
void expression_text_rule(struct text *text, enum family family, const struct nlmsghdr *message);
