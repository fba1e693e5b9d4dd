/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_leftovers.h"

#include "kernel/iptables_chain.h"
#include "kernel/iptables_programs.h"
#include "kernel/nft_socket.h"

static const char *const chains[] = {"KUBE-SERVICES"}; /* every proxy has it in both tables */
static const char *const tables[] = {"nat", "filter"};

static bool nft_has_chain(enum family family)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	bool found = false;
	struct err ignored;

	if (nft_socket_open(&socket, &ignored) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tables) && !found; i++)
		found = iptables_chain_in_nft(socket, family, tables[i], chains[0], &ignored) > 0;
	return found;
}

static bool legacy_has_chain(enum family family)
{
	cleanup_iptables_programs struct iptables_programs programs = {0};
	const char *found = NULL;
	struct err ignored;

	if (iptables_programs_find(family, IPTABLES_VARIANT_LEGACY, &programs, &ignored) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tables) && !found; i++)
		if (iptables_chain_has_legacy_table(family, tables[i]))
			iptables_chain_in_legacy(&programs, tables[i], chains, ARRAY_SIZE(chains),
						 &found, &ignored);
	return found;
}

bool iptables_leftovers(enum family family, enum iptables_variant variant)
{
	return variant == IPTABLES_VARIANT_LEGACY ? legacy_has_chain(family)
						  : nft_has_chain(family);
}
