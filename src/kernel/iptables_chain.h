/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Does a table of iptables have a chain, in either variant? Looking changes nothing: no table comes
 * into being by it, as it would by asking the programs. All block, for some milliseconds.
 */

#include "base/addr.h"
#include "base/err.h"

struct iptables_programs;
struct nft_socket;

/* 1, 0, or a negative error. */
int iptables_chain_in_nft(struct nft_socket *socket, enum family family, const char *table,
			  const char *chain, struct err *err);

extern const char *const iptables_chain_legacy_tables[FAMILY_COUNT]; /* a file with their names */
/* Only where this is true, in this network namespace, may the programs be asked. */
bool iptables_chain_has_legacy_table(enum family family, const char *table);
/* *ret: the last that iptables-save lists of these; left alone if there is none. */
int iptables_chain_in_legacy(const struct iptables_programs *programs, const char *table,
			     const char *const *chains, size_t n, const char **ret,
			     struct err *err);
