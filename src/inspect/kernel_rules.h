/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of iptables mode that the kernel has, as the values that we write (xtables/rule.h). Of the nft
 * variant a chain is read when it is asked for, over netlink; of the legacy variant, iptables-save lists
 * all of them at once.
 */

#include "base/err.h"
#include "base/variant.h"
#include "inspect/iptables_rules.h"

struct kernel_rules;

/* Tables nat and filter. */
int kernel_rules_open(enum family family, enum iptables_variant variant, struct kernel_rules **ret,
		      struct err *err);
struct kernel_rules *kernel_rules_free(struct kernel_rules *kernel); /* accepts NULL */
DEFINE_CLEANUP(kernel_rules)
#define cleanup_kernel_rules attr_cleanup(kernel_rules_cleanup)

/* NULL: there is none, or it could not be read, which kernel_rules_end() tells. */
struct stored_chain *kernel_rules_chain(struct kernel_rules *kernel, enum table table,
					const char *name);
/* Chains of a table, whether they have been read or not; as map_next(). */
const struct stored_chain *kernel_rules_next(const struct kernel_rules *kernel, enum table table,
					     size_t *at);
/*
 * The words of a rule, as iptables-save prints them. Those of other programs' rules are the tool's own;
 * without it they have the names of what is not understood.
 */
const char *kernel_rules_text(struct kernel_rules *kernel, struct stored_chain *chain, size_t at);
/* 1: all that was asked for is from one moment; 0: the rules were changed meanwhile; or an error. */
int kernel_rules_end(struct kernel_rules *kernel, struct err *err);

/* -- lines of iptables-save, one call for each */

struct kernel_rules *kernel_rules_new(enum family family);
void kernel_rules_line(struct kernel_rules *kernel, const char *line);
