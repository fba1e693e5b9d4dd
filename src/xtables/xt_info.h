/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The matches and targets of xtables in rules of ours, both ways: name, revision, and the structure of
 * the kernel's header, padded. The same rows say how a structure is filled from a value and how the
 * value is taken from a structure.
 */

#include "kernel/nft_expr.h"
#include "xtables/rule.h"

/* Only the kinds that nf_tables has no expressions for; see nft_rule.c. */
void xt_put_match(struct nlmsghdr *message, const struct match *match);
/* "-m tcp --dport N"; port 0: any. */
void xt_put_port(struct nlmsghdr *message, enum protocol protocol, uint16_t port);
void xt_put_target(struct nlmsghdr *message, enum family family, const struct target *target);
