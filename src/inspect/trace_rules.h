/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules that traced packets meet, by handle: where each stands in its chain, what it does, and its words.
 *
 * The kernel is asked chain by chain, when a packet comes there. What a rule does is read from its value
 * (xtables/nft_rule.h, backends/nftables/statement_read.h), and so are its words. Only rules of iptables with parts that
 * Portolan does not write have the words of `iptables -S CHAIN`, whose n-th rule is the n-th that the kernel lists.
 * Without the programs of iptables, or when a chain changed while it was read, they have none.
 */

#include "base/err.h"
#include "inspect/trace.h"

struct trace_rules;

int trace_rules_open(enum family family, struct trace_rules **ret, struct err *err);
struct trace_rules *trace_rules_free(struct trace_rules *rules); /* accepts NULL, returns NULL */

struct nlmsghdr;
/*
 * What a listed rule does, and its words unless iptables has to be asked for them; where it stands is left out. Lengths are not trusted. Texts
 * live in the arena.
 */
void trace_rules_read(struct arena *arena, enum family family, bool is_iptables,
		      const struct nlmsghdr *message, struct trace_rule *ret);

/* For trace_new(), with the rules as its argument. They must outlive the trace. */
extern const struct trace_ops trace_rules_ops;
