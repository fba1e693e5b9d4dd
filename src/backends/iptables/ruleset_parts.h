/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What ruleset.c (what stands and what is wanted) and ruleset_write.c (the way there) share. */

#include "backends/iptables/rule_delta.h"
#include "backends/iptables/rule_facts.h"
#include "backends/iptables/service_index.h"
#include "backends/iptables/service_set.h"

struct change {
	struct service_rules *old; /* owned; NULL: none */
	struct service_rules *new; /* in the set; NULL: gone */
};

/* How far a delta has been written. */
struct delta_walk {
	enum rule_delta_phase phase;
	size_t at;                    /* of the next change in it */
	struct rule_list old, wanted; /* of the change in hand; without an arena: none is */
	size_t chain;                 /* the next one of it */
	struct rule_delta_stats stats;
};

struct ruleset {
	const struct settings *settings;
	const struct ruleset_host *host;
	struct ruleset_host applied_host; /* as it was when the rules were written */

	struct service_set services;
	struct change *changes; /* since the sync before the one that has begun */
	size_t n_changes, changes_capacity;
	struct delta_walk walk;
	size_t n_rules[TABLE_COUNT]; /* of all services, as of the last sync that went well */
	struct service_index *index; /* NULL: none */
	/* the rules of no Service: they are kept, because the node's addresses are not */
	struct rule_list *fixed;         /* wanted */
	struct rule_list *applied_fixed; /* they stand; may be the same list */

	const char **stale; /* of a full sync that has begun: input's; NULL: not looked for yet */
	size_t n_stale;
	size_t n_deleted; /* of them */

	bool need_full;
	bool full;          /* the sync that has begun */
	bool large_cluster; /* as of the sync that has begun, or the last */
	int64_t last_full_ns;
	struct chain_name key; /* of a chain of the index that was asked for */
};

/* -- ruleset.c */

struct rule_facts ruleset_facts(const struct ruleset *ruleset);
/* They initialise the list. service: NULL: an empty one. */
void ruleset_make_rules(const struct ruleset *ruleset, struct service_rules *service,
			unsigned int parts, struct rule_list *ret);
void ruleset_make_index(struct ruleset *ruleset, size_t number, struct rule_list *ret);
void ruleset_make_fixed(struct ruleset *ruleset, const struct ruleset_input *input);

/* -- ruleset_write.c */

void ruleset_forget_stale(struct ruleset *ruleset);
