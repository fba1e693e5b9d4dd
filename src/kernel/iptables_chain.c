/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_chain.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>

#include "base/clock.h"
#include "kernel/iptables_programs.h"
#include "kernel/iptables_save.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_socket.h"
#include "kernel/process.h"

#define SAVE_TIMEOUT (30 * CLOCK_NS_PER_SECOND)
#define SAVE_OUTPUT  ((size_t)256 * 1024 * 1024)

static int found_chain(void *arg, const struct nlmsghdr *message attr_unused,
		       struct err *err attr_unused)
{
	*(bool *)arg = true;
	return 0;
}

int iptables_chain_in_nft(struct nft_socket *socket, enum family family, const char *table,
			  const char *chain, struct err *err)
{
	static const struct nft_dump_ops ops = {.message = found_chain};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETCHAIN,
		.family = family,
		.table = table,
		.chain = chain,
		.one = true,
	};
	bool found = false;
	int r = nft_dump(socket, &request, &ops, &found, err);

	return r < 0 && r != -ENOENT ? r : found;
}

const char *const iptables_chain_legacy_tables[FAMILY_COUNT] = {
	[FAMILY_IPV4] = "/proc/net/ip_tables_names",
	[FAMILY_IPV6] = "/proc/net/ip6_tables_names",
};

bool iptables_chain_has_legacy_table(enum family family, const char *table)
{
	FILE *file = fopen(iptables_chain_legacy_tables[family], "re");
	bool found = false;
	char line[64];

	while (file && !found && fgets(line, sizeof(line), file))
		found = strlen(line) == strlen(table) + 1 && has_prefix(line, table);
	if (file)
		fclose(file);
	return found;
}

struct search {
	const char *const *chains;
	size_t n;
	const char **ret;
};

static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	const struct search *search = arg;
	size_t n = iptables_save_chain(line);

	for (size_t i = 0; i < search->n; i++)
		if (n == strlen(search->chains[i]) && strncmp(line + 1, search->chains[i], n) == 0)
			*search->ret = search->chains[i];
}

static void on_done(void *arg attr_unused, const struct process_result *result attr_unused)
{
}

int iptables_chain_in_legacy(const struct iptables_programs *programs, const char *table,
			     const char *const *chains, size_t n, const char **ret, struct err *err)
{
	struct search search = {chains, n, ret};
	const struct process_spec spec = {
		.path = programs->paths[IPTABLES_PROGRAM_SAVE],
		.argv = (const char *const[]){programs->names[IPTABLES_PROGRAM_SAVE], "-t", table,
					      NULL},
		.output_max = SAVE_OUTPUT,
		.timeout_ns = SAVE_TIMEOUT,
		.line = on_line,
		.done = on_done,
		.arg = &search,
	};

	return process_run(&spec, err);
}
