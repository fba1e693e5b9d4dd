/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Does the kernel have the rules that an explanation was read from?
 *
 * iptables: each rule met must be in its chain as iptables-save lists it; chains of a Service must have these
 * rules alone, in this order. What depends on the host (counters of nfacct, --random-fully) does not count.
 * nftables: each element met must be there with the same data, and those that decide where a packet goes first
 * must not be there unless they are planned. An endpoint may have another slot of its group, and ids of affinity are
 * each process's own. Rules are only counted, chain by chain.
 */

#include "base/variant.h"
#include "explain/explain.h"

/* Fills in `kernel` of steps and explanation. An error: the kernel's rules cannot be read. */
int kernel_rules_compare(struct explain *explain, struct explanation *explanation,
			 enum iptables_variant variant, struct err *err);

/* -- for each mode, and for tests */

/* A difference at no step; takes over the words. */
void kernel_rules_note(struct explanation *explanation, char *words);

/* Lines of iptables-save, one call for each; then the comparison. */
struct saved_rules;
struct saved_rules *saved_rules_new(void);
struct saved_rules *saved_rules_free(struct saved_rules *saved); /* accepts NULL */
void saved_rules_line(struct saved_rules *saved, const char *line);
/* Both tables, by iptables-save. */
int saved_rules_read(enum family family, enum iptables_variant variant, struct saved_rules **ret,
		     struct err *err);
void saved_rules_cleanup(struct saved_rules **saved);
#define cleanup_saved_rules attr_cleanup(saved_rules_cleanup)

struct saved_line {
	char *text;
	char *plain; /* without what depends on the host */
};

struct saved_chain {
	char *key;        /* "nat KUBE-SERVICES" */
	const char *name; /* within it */
	struct saved_line *lines;
	size_t n, capacity;
};

/* NULL: there is none. */
const struct saved_chain *saved_rules_chain(const struct saved_rules *saved, const char *table,
					    const char *name);
const struct saved_chain *saved_rules_next(const struct saved_rules *saved,
					   size_t *at); /* as map_next() */
/* A line without what depends on the host; for the caller to free. */
char *saved_rules_plain(const char *line);

void saved_rules_compare(const struct saved_rules *saved, struct iptables_rules *rules,
			 struct explanation *explanation);

int kernel_iptables_compare(struct explain *explain, struct explanation *explanation,
			    enum iptables_variant variant, struct err *err);
int kernel_nftables_compare(struct explain *explain, struct explanation *explanation,
			    struct err *err);
