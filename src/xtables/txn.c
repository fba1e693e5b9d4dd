/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/txn.h"

void txn_chains(struct txn *txn, const struct rule_list *list)
{
	for (const struct rule_chain *chain = list->chains; chain; chain = chain->next)
		txn_chain(txn, chain->table, chain->name);
}

size_t txn_rules(struct txn *txn, const struct rule_list *list)
{
	const struct rule_item *last = NULL;
	size_t n = 0;

	for (const struct rule_item *item = list->items; item; item = item->next) {
		if (!last || item->subject != last->subject)
			txn_subject(txn, item->subject);
		last = item;
		txn_rule(txn, &item->rule);
		n++;
	}
	if (last && last->subject)
		txn_subject(txn, NULL);
	return n;
}
