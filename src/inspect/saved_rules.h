/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of iptables mode that the kernel has, as iptables-save lists them.
 *
 * What depends on the host (counters of nfacct, --random-fully) is left out of `plain`, by which lines
 * are compared.
 */

#include "base/addr.h"
#include "base/err.h"
#include "base/variant.h"

struct saved_rules;

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

struct saved_rules *saved_rules_new(void);
struct saved_rules *saved_rules_free(struct saved_rules *saved); /* accepts NULL */
void saved_rules_cleanup(struct saved_rules **saved);
#define cleanup_saved_rules attr_cleanup(saved_rules_cleanup)

/* Takes a line, one call for each. */
void saved_rules_line(struct saved_rules *saved, const char *line);
/* Both tables, by iptables-save. */
int saved_rules_read(enum family family, enum iptables_variant variant, struct saved_rules **ret,
		     struct err *err);

/* NULL: there is none. */
const struct saved_chain *saved_rules_chain(const struct saved_rules *saved, const char *table,
					    const char *name);
const struct saved_chain *saved_rules_next(const struct saved_rules *saved,
					   size_t *at); /* as map_next() */
/* A line without what depends on the host; for the caller to free. */
char *saved_rules_plain(const char *line);
