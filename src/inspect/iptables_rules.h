/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of iptables mode for one family, kept so that packets can walk them: a writer (txn.h)
 * that remembers. What it holds is what was said to it, so it cannot know better than the rules.
 *
 *	struct iptables_rules *rules = iptables_rules_new(FAMILY_IPV4);
 *	iptables_rules_jumps(rules);
 *	ruleset_write(ruleset, &facts, iptables_rules_txn(rules), &stats);
 *	way = iptables_rules_walk(rules, &packet, &host);
 *
 * A jump to a chain that was not told comes back at once: to explain one Service, the shared chains
 * and that Service's own are enough.
 */

#include "base/map.h"
#include "inspect/way.h"
#include "xtables/txn.h"

struct plan_delta;
struct ruleset_host;

/*
 * What the last packet met has the number of its walk: chains that it entered, and rules of them that
 * it matched or that a step tells about.
 */

struct iptables_rule {
	const char *service; /* its key; NULL: a rule of no Service */
	const char *text;    /* as iptables-save prints it; NULL: it was not asked for yet */
	size_t position;     /* in its chain, from 1 */
	uint64_t met;        /* by which walk, the last of them; 0: by none */
	struct target target;
	size_t n_matches;
	struct match matches[];
};

struct iptables_chain {
	enum table table;
	const char *name;
	uint64_t met; /* as of a rule */
	bool unread;  /* of the kernel's (kernel_rules.h): the rules have not been asked for */
	bool listed;  /* of the kernel's: iptables has been asked for the texts */
	struct iptables_rule **v;
	size_t n, capacity;
};

struct iptables_rules {
	struct txn txn;
	enum family family;
	struct arena *arena;
	struct map chains[TABLE_COUNT]; /* by name */
	const char *service;            /* whose rules are being told */
	uint64_t walks;                 /* packets so far */
};

struct iptables_rules *iptables_rules_new(enum family family);
struct iptables_rules *iptables_rules_free(struct iptables_rules *rules); /* accepts NULL */
struct txn *iptables_rules_txn(struct iptables_rules *rules);
/*
 * All that a first, full sync would write, which is what a full delta asks for, jumps included.
 * features NULL: a host that has all of them.
 */
void iptables_rules_plan(struct iptables_rules *rules, const struct settings *settings,
			 const struct plan_delta *delta, const struct host *host,
			 const struct ruleset_host *features);
/* The rules of base chains that lead to ours, as a first sync puts them there. */
void iptables_rules_jumps(struct iptables_rules *rules);

struct iptables_chain *iptables_rules_chain(const struct iptables_rules *rules, enum table table,
					    const char *name); /* NULL: none */
struct iptables_chain *iptables_rules_open_chain(struct iptables_rules *rules, enum table table,
						 const char *name); /* made if it is missing */
/* At the end of its chain, for the caller to add to. All of it is copied. */
struct iptables_rule *iptables_rules_add(struct iptables_rules *rules, const struct rule *rule);
const char *iptables_rules_text(struct iptables_rules *rules, const struct iptables_chain *chain,
				struct iptables_rule *kept);
const struct match *iptables_rule_match(const struct iptables_rule *rule,
					enum match_kind kind); /* the first; NULL: none */
/* As a value, which borrows the texts of the kept one. */
void iptables_rules_value(const struct iptables_chain *chain, const struct iptables_rule *kept,
			  struct rule *ret);
/* Leaves out what depends on the host: counters of nfacct, --random-fully. */
void iptables_rules_strip(struct rule *rule);
/* Do two lines of iptables-save say the same, up to what depends on the host? */
bool iptables_rules_same_line(enum family family, const char *a, const char *b);

struct way *iptables_rules_walk(struct iptables_rules *rules, const struct packet *packet,
				const struct host *host);
