/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rules of iptables mode, in the words of iptables-save: the chains that are a proxy's, and the rules
 * of base chains that lead to them. Tables nat and filter.
 *
 * No differences are: counters, canaries, the order of entries in chains that all Services share, comments in
 * chains of a Service (whether endpoints have one depends on when it was last written), and what
 * depends on the host (saved_rules.h). KUBE-FIREWALL is kubelet's too: only what is missing there
 * counts.
 */

#include "base/err.h"
#include "base/variant.h"
#include "inspect/diff.h"
#include "inspect/iptables_rules.h"
#include "plan/settings.h"

struct saved_rules;

/*
 * Appends the differences of one family; of a packet, if there is one: those in chains that it enters,
 * in chains without an order its own rules and foreign ones, and the obstacles before them. An error: the kernel's rules cannot be read.
 */
int diff_iptables(struct diff *diff, const struct settings *settings,
		  const struct plan_delta *delta, const struct host *host,
		  enum iptables_variant variant, const struct packet *packet, struct err *err);
/* The same when both sides are known, and the packet has walked through the wanted ones. */
void diff_iptables_compare(struct diff *diff, struct iptables_rules *wanted,
			   const struct saved_rules *kernel);
