/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_leftovers.h"

#include <linux/netfilter/nf_tables.h>
#include <stdio.h>

#include "base/clock.h"
#include "kernel/iptables_programs.h"
#include "kernel/iptables_save.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_socket.h"
#include "kernel/process.h"

#define CHAIN        "KUBE-SERVICES" /* every proxy has it in both tables */
#define SAVE_TIMEOUT (30 * CLOCK_NS_PER_SECOND)
#define SAVE_OUTPUT  ((size_t)256 * 1024 * 1024)

static const char *const tables[] = {"nat", "filter"};

/* -- nft */

static int found_chain(void *arg, const struct nlmsghdr *message attr_unused,
		       struct err *err attr_unused)
{
	*(bool *)arg = true;
	return 0;
}

static bool nft_has_chain(enum family family)
{
	static const struct nft_dump_ops ops = {.message = found_chain};
	cleanup_nft_socket struct nft_socket *socket = NULL;
	bool found = false;
	struct err ignored;

	if (nft_socket_open(&socket, &ignored) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct nft_dump_request request = {
			.type = NFT_MSG_GETCHAIN,
			.family = family,
			.table = tables[i],
			.chain = CHAIN,
			.one = true,
		};

		nft_dump(socket, &request, &ops, &found, &ignored);
	}
	return found;
}

/* -- legacy */

static bool legacy_has_table(enum family family, const char *table)
{
	const char *path =
		family == FAMILY_IPV4 ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names";
	FILE *file = fopen(path, "re");
	bool found = false;
	char line[64];

	while (file && !found && fgets(line, sizeof(line), file))
		found = strlen(line) == strlen(table) + 1 && has_prefix(line, table);
	if (file)
		fclose(file);
	return found;
}

static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	bool *found = arg;
	size_t n = iptables_save_chain(line);

	if (n == strlen(CHAIN) && strncmp(line + 1, CHAIN, n) == 0)
		*found = true;
}

static void on_done(void *arg attr_unused, const struct process_result *result attr_unused)
{
}

static bool legacy_has_chain(enum family family)
{
	cleanup_iptables_programs struct iptables_programs programs = {0};
	bool found = false;
	struct err ignored;

	if (iptables_programs_find(family, IPTABLES_VARIANT_LEGACY, &programs, &ignored) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tables) && !found; i++) {
		const struct process_spec spec = {
			.path = programs.paths[IPTABLES_PROGRAM_SAVE],
			.argv = (const char *const[]){programs.names[IPTABLES_PROGRAM_SAVE], "-t",
						      tables[i], NULL},
			.output_max = SAVE_OUTPUT,
			.timeout_ns = SAVE_TIMEOUT,
			.line = on_line,
			.done = on_done,
			.arg = &found,
		};

		if (legacy_has_table(family, tables[i]))
			process_run(&spec, &ignored);
	}
	return found;
}

bool iptables_leftovers(enum family family, enum iptables_variant variant)
{
	return variant == IPTABLES_VARIANT_LEGACY ? legacy_has_chain(family)
						  : nft_has_chain(family);
}
