/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules that traced packets meet, by handle: where each stands in its chain, and its words.
 *
 * The kernel is asked chain by chain, when a packet comes there. Rules of iptables have the words of
 * `iptables -S CHAIN`, whose n-th rule is the n-th that the kernel lists; all others those that can be
 * read from the kernel's list (backends/nftables/statement_read.h). Without the programs of iptables,
 * or when a chain changed while it was read, rules are known by their handles alone.
 */

#include "base/err.h"
#include "inspect/trace.h"

struct trace_rules;

int trace_rules_open(enum family family, struct trace_rules **ret, struct err *err);
struct trace_rules *trace_rules_free(struct trace_rules *rules); /* accepts NULL, returns NULL */

/* For trace_new(), with the rules as its argument. They must outlive the trace. */
extern const struct trace_ops trace_rules_ops;
