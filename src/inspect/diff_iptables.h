/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rules of iptables mode, in the words of iptables-save: the chains that are a proxy's, and the rules
 * of base chains that lead to them. Tables nat and filter.
 *
 * No differences are: counters, canaries, the order of entries in chains that all Services share, comments in
 * chains of a Service (whether endpoints have one depends on when it was last written), and what
 * depends on the host (iptables_rules_strip). KUBE-FIREWALL is kubelet's too: only what is missing there
 * counts.
 */

#include "base/err.h"
#include "inspect/inspect_ops.h"
#include "inspect/iptables_rules.h"

struct kernel_rules;

/*
 * Appends the differences of one family; of a packet, if there is one: those in chains that it enters,
 * in chains without an order its own rules and foreign ones, and the obstacles before them. An error:
 * the kernel's rules cannot be read, or other programs change them without a pause.
 */
int diff_iptables(struct diff *diff, const struct inspect_question *question, struct err *err);
/* The same when both sides are known, and the packet has walked through the wanted ones. */
void diff_iptables_compare(struct diff *diff, struct rule_store *wanted,
			   struct kernel_rules *kernel);
