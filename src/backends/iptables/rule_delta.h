/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way from rules that stand to those that are wanted, two lists of one owner, chain by chain:
 *
 *	PREPARE	chains of its own that do not stand yet are declared and filled: nothing leads to them
 *	SWITCH	in shared chains in which its entries differ the old ones go and the new ones come, those
 *		that lead at the head, the others at the end; chains of its own that stand and differ are
 *		revised by a writer that can, or emptied and filled
 *	CLEAR	chains of its own that are not wanted any more, and that nothing leads to by now, are
 *		emptied and deleted
 *
 * What is the same is not mentioned. In this order, and with chains in the order of who leads to whom,
 * every step is lawful at its time.
 */

#include "xtables/rule_list.h"
#include "xtables/txn.h"

enum rule_delta_phase {
	RULE_DELTA_PREPARE = 0,
	RULE_DELTA_SWITCH,
	RULE_DELTA_CLEAR,
	RULE_DELTA_PHASES,
};

/* What was written. */
struct rule_delta_stats {
	size_t rules[TABLE_COUNT];
	size_t chains_deleted;
	bool enters_services; /* rules were put behind the last one of nat KUBE-SERVICES */
};

/* The lists have been compared and ordered. Adds to *stats. */
void rule_delta_write(const struct rule_list *old, const struct rule_list *wanted,
		      enum rule_delta_phase phase, struct txn *txn, struct rule_delta_stats *stats);
