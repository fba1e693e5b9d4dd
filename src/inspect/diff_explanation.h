/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Does the kernel have exactly the chains, rules, maps and elements that the packet of an explanation met?
 *
 * This is `diff` of what the packet met. In iptables mode rules of other programs that stand before ours in
 * a base chain are told as well: those that end a packet's way there as a difference, the others as a note.
 * Whether the packet matches them is not looked at; what is behind ours, and other tables, are not told.
 */

#include "inspect/diff.h"
#include "inspect/explain.h"

struct backend_host;

/* Fills in `kernel` of steps and explanation. An error: the kernel's rules cannot be read. */
int diff_explanation(struct explanation *explanation, const struct backend_host *backend_host,
		     struct err *err);
/* The same when the differences are known. */
void diff_explanation_tell(const struct diff *diff, struct explanation *explanation);
