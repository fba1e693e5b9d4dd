/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/probe.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <sys/utsname.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/layout.h"
#include "kernel/nft_batch.h"

#define PROBE_TABLE  "portolan-probe"
#define NEEDS_KERNEL "5.13"

/* What a refused object of that name, or with that in its name, would have been the first to need. */
static const struct {
	uint16_t type;
	const char *name;
	const char *what, *since;
} needs[] = {
	{NFT_MSG_NEWTABLE, "", "tables of nf_tables, with comments", "5.10"},
	{NFT_MSG_NEWSET, "source-ranges", "sets of ranges in concatenations", "5.6"},
	{NFT_MSG_NEWSET, "clients", "maps that packets write, with time-outs", "4.17"},
	{NFT_MSG_NEWSET, "", "maps of concatenations", "4.17"},
	{NFT_MSG_NEWCHAIN, "nat-", "chains of type nat (CONFIG_NFT_NAT)", "4.18"},
	{NFT_MSG_NEWCHAIN, "", "chains with comments", "5.10"},
	{NFT_MSG_NEWRULE, "external-local", "lookups of address types (CONFIG_NFT_FIB)", "4.10"},
	{NFT_MSG_NEWRULE, "pick-",
	 "translation to address and port of a map (CONFIG_NFT_NAT, CONFIG_NFT_NUMGEN)", "5.13"},
	{NFT_MSG_NEWRULE, "recall", "translation to address and port of a map (CONFIG_NFT_NAT)",
	 "5.13"},
	{NFT_MSG_NEWRULE, "masquerading", "masquerading (CONFIG_NFT_MASQ)", "3.18"},
	{NFT_MSG_NEWRULE, "reject", "refusals (CONFIG_NFT_REJECT)", "3.14"},
	{NFT_MSG_NEWRULE, "remember", "maps that packets write, with data (CONFIG_NFT_CT)", "4.17"},
	{NFT_MSG_NEWRULE, "", "expressions of nf_tables", NEEDS_KERNEL},
};

static void write_all(struct batch_writer *writer, const struct settings *settings)
{
	const struct layout_facts facts = {.settings = settings, .affinity = true};
	const struct layout_affinity affinity = {
		.number = 1, .seconds = 1, .local = true, .clients = 1, .comment = ""};
	struct writer *base = &writer->writer;

	batch_writer_table(writer, LAYOUT_COMMENT);
	layout_containers(base, settings);
	layout_fixed_chains(base, settings);
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++)
		layout_rules(base, &facts, id);
	for (enum chain_id id = CHAIN_PICK; id < CHAIN_PICKS_END; id++)
		layout_numbered(base, settings, (struct chain){id, 1});
	layout_affinity_maps(base, &affinity);
	for (enum chain_id id = CHAIN_RECALL; id < CHAIN_COUNT; id++) {
		base->ops->chain(base, (struct chain){id, affinity.number});
		layout_affinity_rules(base, &affinity, id);
	}
	batch_writer_delete_table(writer);
}

static int explain(const struct nft_batch_failure *failure, struct err *err)
{
	struct utsname system;

	uname(&system);
	for (size_t i = 0; failure && i < ARRAY_SIZE(needs); i++)
		if (failure->type == needs[i].type && strstr(failure->chain, needs[i].name)) {
			err_wrap(err, -EOPNOTSUPP,
				 "this kernel (%s) lacks something that nftables mode needs: %s, "
				 "there since Linux %s; " NEEDS_KERNEL " has all",
				 system.release, needs[i].what, needs[i].since);
			return 0;
		}
	err_wrap(err, -EOPNOTSUPP, "nftables mode on this kernel (%s)", system.release);
	return 0;
}

int probe(struct nft_socket *socket, enum family family, struct err *err)
{
	const struct settings settings = {
		.family = family,
		.masquerade_mark = 1,
		.masquerade_all = true,
		.node_ports.match_all = true,
	};
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	struct batch_writer writer;
	int r;

	batch_writer_init(&writer, family, PROBE_TABLE, batch);
	write_all(&writer, &settings);
	batch_writer_done(&writer);
	r = nft_batch_commit(socket, batch, 0, NULL, NULL, err);
	if (r >= 0)
		return 1;
	if (r == -EPERM) {
		err_wrap(err, r, "nftables mode needs CAP_NET_ADMIN");
		return 0;
	}
	return explain(nft_batch_failure(batch), err);
}
