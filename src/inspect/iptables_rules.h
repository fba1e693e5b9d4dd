/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of iptables mode for one family, kept so that packets can walk them. What is there is what was
 * said to the store, so it cannot know better than the rules.
 *
 *	struct rule_store *rules = rule_store_new(FAMILY_IPV4);
 *	iptables_rules_plan(rules, settings, delta, &host, NULL);
 *	path = iptables_rules_walk(rules, &packet, &host);
 *
 * A jump to a chain that was not told comes back at once: to explain one Service, the shared chains
 * and that Service's own are enough.
 */

#include "inspect/packet_path.h"
#include "xtables/rule_store.h"

struct plan_delta;
struct ruleset_host;

/*
 * All that a first, full sync would write, which is what a full delta asks for, jumps included.
 * features NULL: a host that has all of them.
 */
void iptables_rules_plan(struct rule_store *rules, const struct settings *settings,
			 const struct plan_delta *delta, const struct host *host,
			 const struct ruleset_host *features);
/* The rules of base chains that lead to ours, as a first sync puts them there. */
void iptables_rules_jumps(struct rule_store *rules);

struct packet_path *iptables_rules_walk(struct rule_store *rules, const struct packet *packet,
					const struct host *host);

/* Leaves out what depends on the host: counters of nfacct, --random-fully. */
void iptables_rules_strip(struct rule *rule);
/* Do two lines of iptables-save say the same, up to what depends on the host? */
bool iptables_rules_same_line(enum family family, const char *a, const char *b);
