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

/*
 * Reads what these put; texts are borrowed from the expression. False, with *ret untouched: none of
 * ours, or not as we would have put it.
 */
bool xt_read_match(const struct nft_expr *expr, struct match *ret);
bool xt_read_port(const struct nft_expr *expr, enum protocol protocol, uint16_t *ret);
bool xt_read_target(const struct nft_expr *expr, enum family family, struct target *ret);
