/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_variant.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/iptables_chain.h"
#include "kernel/iptables_programs.h"
#include "kernel/nft_socket.h"

#define HINT_TABLE "mangle"

static const char *const hints[] = {"KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"};

/* Where a hint was found; chain NULL: nowhere. */
struct hint {
	const char *chain;
	enum family family;
};

/* -- nft */

/*
 * A request to nf_tables makes the kernel load it. /sys/module has loaded modules but not what is
 * built in; that shows among the kernel's symbols.
 */
static bool has_nf_tables(void)
{
	char line[512];
	bool found = false;
	FILE *file;

	if (access("/sys/module/nf_tables", F_OK) == 0)
		return true;
	file = fopen("/proc/kallsyms", "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, " nf_tables_getchain\n") != NULL;
	if (file)
		fclose(file);
	return found;
}

static int look_in_nft(struct nft_socket *socket, struct hint *ret, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		for (enum family family = 0; family < FAMILY_COUNT; family++) {
			int r = iptables_chain_in_nft(socket, family, HINT_TABLE, hints[i], err);

			if (r > 0)
				*ret = (struct hint){hints[i], family};
			if (r != 0)
				return r;
		}
	}
	return 0;
}

static void find_in_nft(struct hint *ret)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	struct err err;
	int r;

	if (!has_nf_tables())
		return;
	r = nft_socket_open(&socket, &err);
	if (r >= 0)
		r = look_in_nft(socket, ret, &err);
	if (r < 0)
		log_debug(2, "nf_tables cannot be asked for kubelet's chains",
			  KV("err", LOG_STR(err.text)));
}

/* -- legacy */

static bool legacy_is_hidden(void)
{
	const char *file = iptables_chain_legacy_tables[FAMILY_IPV4];

	return access(file, F_OK) == 0 && access(file, R_OK) < 0;
}

/* A family without the programs, or whose programs fail, has told nothing. */
static void find_in_legacy(struct hint *ret)
{
	for (enum family family = 0; family < FAMILY_COUNT && !ret->chain; family++) {
		cleanup_iptables_programs struct iptables_programs programs = {0};
		struct err err;

		if (!iptables_chain_has_legacy_table(family, HINT_TABLE) ||
		    iptables_programs_find(family, IPTABLES_VARIANT_LEGACY, &programs, &err) < 0)
			continue;
		ret->family = family;
		if (iptables_chain_in_legacy(&programs, HINT_TABLE, hints, ARRAY_SIZE(hints),
					     &ret->chain, &err) < 0)
			log_debug(2, "ip_tables cannot be asked for kubelet's chains",
				  KV("err", LOG_STR(err.text)));
	}
}

/* -- the choice */

static bool has_programs(enum iptables_variant variant)
{
	cleanup_iptables_programs struct iptables_programs programs = {0};
	struct err ignored;

	return iptables_programs_find(FAMILY_IPV4, variant, &programs, &ignored) >= 0;
}

static void choose_by_program(struct iptables_variant_found *ret)
{
	cleanup_iptables_programs struct iptables_programs programs = {0};
	struct err ignored;

	if (iptables_programs_find(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &programs, &ignored) >= 0 &&
	    programs.variant != IPTABLES_VARIANT_AUTO) {
		ret->variant = programs.variant;
		snprintf(ret->reason, sizeof(ret->reason), "the program iptables is of this kind");
		return;
	}
	ret->variant = !has_programs(IPTABLES_VARIANT_NFT) && has_programs(IPTABLES_VARIANT_LEGACY)
			       ? IPTABLES_VARIANT_LEGACY
			       : IPTABLES_VARIANT_NFT;
	snprintf(ret->reason, sizeof(ret->reason),
		 "there is no program iptables, or it does not tell its version");
}

void iptables_variant_find(struct iptables_variant_found *ret)
{
	enum iptables_variant variant = IPTABLES_VARIANT_NFT;
	struct hint hint = {0};

	*ret = (struct iptables_variant_found){0};
	find_in_nft(&hint);
	if (!hint.chain) {
		variant = IPTABLES_VARIANT_LEGACY;
		find_in_legacy(&hint);
	}
	if (hint.chain && has_programs(variant)) {
		ret->variant = variant;
		snprintf(ret->reason, sizeof(ret->reason), "chain %s of %s is in table %s",
			 hint.chain, family_name(hint.family), HINT_TABLE);
		return;
	}
	choose_by_program(ret);
	if (!hint.chain && legacy_is_hidden()) {
		ret->doubtful = true;
		snprintf(ret->reason, sizeof(ret->reason),
			 "a guess by the program iptables: whether kubelet uses legacy only root "
			 "can see");
	}
	if (hint.chain) {
		ret->doubtful = true;
		snprintf(ret->reason, sizeof(ret->reason),
			 "kubelet uses %s (chain %s of %s), but there are no such programs here",
			 iptables_variant_name(variant), hint.chain, family_name(hint.family));
	}
}
