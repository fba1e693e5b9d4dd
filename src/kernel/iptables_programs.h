/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which programs stand for iptables, iptables-save and iptables-restore (or their ip6 twins).
 *
 * The plain names come first, so that programs that the operator puts in front of PATH are used.
 * When those are of the other variant than is wanted, or missing, names with the variant in them are
 * taken: iptables-nft, iptables-nft-save, iptables-nft-restore, and so on.
 */

#include "base/addr.h"
#include "base/err.h"
#include "base/variant.h"

enum iptables_program {
	IPTABLES_PROGRAM_COMMAND = 0, /* iptables */
	IPTABLES_PROGRAM_SAVE,
	IPTABLES_PROGRAM_RESTORE,
	IPTABLES_PROGRAM_COUNT,
};

struct iptables_programs {
	enum iptables_variant variant; /* what they say to be; AUTO: they do not answer */
	const char *names[IPTABLES_PROGRAM_COUNT];
	char *paths[IPTABLES_PROGRAM_COUNT];
};

/*
 * Finds the programs and asks for their version (this blocks, for some milliseconds). With AUTO:
 * the plain ones, whatever they are. *ret is good for iptables_programs_done() in all cases.
 */
int iptables_programs_find(enum family family, enum iptables_variant wanted,
			   struct iptables_programs *ret, struct err *err);
void iptables_programs_done(struct iptables_programs *programs);

/*
 * Calls use() with the path of each program that there is, of all variants of both families: whatever
 * iptables_programs_find() may come to.
 */
void iptables_programs_each(void (*use)(void *arg, const char *path), void *arg);

#define cleanup_iptables_programs attr_cleanup(iptables_programs_done)
