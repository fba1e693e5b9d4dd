/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way from rules that stand to those that are wanted, two lists of one owner, chain by chain:
 *
 *	OWN	chains of its own that do not stand yet are declared and filled; one that stands and differs
 *		is revised by a writer that can, or emptied and filled. Each comes behind those that it leads
 *		to
 *	ENTRIES	in shared chains in which its entries differ the old ones go and the new ones come, those
 *		that lead at the head, the others at the end
 *	CLEAR	chains of its own that are not wanted any more, and that nothing leads to by now, are
 *		emptied and deleted
 *
 * What is the same is not mentioned. Every step is lawful at its time, and OWN and CLEAR may be cut
 * between chains: what works is never gone for a moment.
 */

#include "xtables/rule_list.h"
#include "xtables/txn.h"

enum rule_delta_phase {
	RULE_DELTA_OWN = 0,
	RULE_DELTA_ENTRIES,
	RULE_DELTA_CLEAR,
	RULE_DELTA_PHASES,
};

/* What was written. */
struct rule_delta_stats {
	size_t rules[TABLE_COUNT];
	size_t chains_deleted;
	bool enters_services; /* rules were put behind the last one of nat KUBE-SERVICES */
};

/*
 * The lists have been compared. *at begins at 0 for each phase. True: the writer has enough for one
 * transaction, and this goes on where it was when it is called again. Adds to *stats.
 */
bool rule_delta_write(const struct rule_list *old, const struct rule_list *wanted,
		      enum rule_delta_phase phase, size_t *at, struct txn *txn,
		      struct rule_delta_stats *stats);
